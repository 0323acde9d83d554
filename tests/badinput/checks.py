"""The checks. An attack gets a running server and gives (what the client saw, bytes by which memory may have grown);
what the client saw must be the same with Redis. A mistake gets the world and yields (label, good, detail)."""
import os
import random
import re
import socket
import ssl
import struct
import subprocess
import time

from harness import Connection, Lost, encode, exchange_all, free_port
from protocol import answer

MB = 1 << 20
PATIENCE_S = 10


def open_socket(port):
    sock = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def until_closed(sock, seconds=PATIENCE_S):
    """What comes until the server closes or says nothing for so long, and whether it closed."""
    received = bytearray()
    sock.settimeout(seconds)
    closed = True
    try:
        while True:
            data = sock.recv(1 << 20)
            if not data:
                break
            received += data
    except socket.timeout:
        closed = False
    except OSError:
        pass
    return bytes(received), closed


def shut(sockets):
    for sock in sockets:
        sock.close()


def wait_for(condition, what):
    """Until it is so; at most PATIENCE_S."""
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > limit:
            raise Lost("not within %d s: %s" % (PATIENCE_S, what))
        time.sleep(0.01)


def address(sock):
    return "%s:%d" % sock.getsockname()


def clients_of(admin, sockets):
    """What CLIENT LIST tells of those of these connections that the server has: a list of dictionaries."""
    return clients_at(admin, set(map(address, sockets)))


def clients_at(admin, addresses):
    lines = admin.command("CLIENT", "LIST")[1].decode().splitlines()
    clients = [dict(field.split("=", 1) for field in line.split(" ") if "=" in field) for line in lines]
    return [client for client in clients if client["addr"] in addresses]


def wait_for_all(admin, sockets, condition, what):
    """Until the server has all of these connections and this holds of each."""
    wait_for(lambda: sum(map(condition, clients_of(admin, sockets))) == len(sockets), what)


def info_number(admin, name):
    return int(re.search(rb"\b%s:(\d+)" % name.encode(), admin.command("INFO")[1]).group(1))


# -- attacks ----------------------------------------------------------------------------------------------------------

def random_bytes(server, world):
    """300 connections of noise: whatever the answer is, it is an error and the end."""
    source = random.Random(world.options.seed)
    seen = []
    for _ in range(300):
        # Without NUL, at which Redis stops to look for the end of an inline command.
        payload = source.randbytes(source.choice((1, 10, 100, 1000, 4000))).replace(b"\0", b"")
        if source.random() < 0.3:
            payload = b"*" + payload
        seen.append(answer(server, payload)[:40])
    return seen, 48 * MB


def noise_at_once(server, world):
    """500 connections open together, noise on all, most of it cut off by a reset."""
    source = random.Random(world.options.seed)
    sockets = [open_socket(server.port) for _ in range(500)]
    for _ in range(3):
        for sock in sockets:
            try:
                sock.sendall(source.randbytes(3000))
            except OSError:
                pass
    for sock in sockets[::2]:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    shut(sockets)
    return ping(server), 48 * MB


def ping(server):
    connection = server.connect(PATIENCE_S)
    reply = connection.command("PING")
    connection.close()
    return reply


def announced_too_long(server, world):
    sock = open_socket(server.port)
    sock.sendall(b"*1\r\n$1073741824\r\n")
    seen = until_closed(sock)
    sock.close()
    return seen, 16 * MB


def announced_not_sent(server, world):
    """Half a gigabyte announced on 40 connections, 100 bytes sent: memory is given when bytes come, not before."""
    admin = server.connect(PATIENCE_S)
    sockets = [open_socket(server.port) for _ in range(40)]
    for sock in sockets:
        sock.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n" + b"x" * 100)
    wait_for_all(admin, sockets, lambda client: int(client["qbuf"]) >= 100, "the bytes are read")
    seen = ping(server)
    shut(sockets)
    admin.close()
    return seen, 64 * MB


def many_arguments_announced(server, world):
    admin = server.connect(PATIENCE_S)
    sockets = [open_socket(server.port) for _ in range(40)]
    for sock in sockets:
        sock.sendall(b"*1048576\r\n$4\r\nMSET\r\n$1\r\nk\r\n")
    wait_for_all(admin, sockets, lambda client: int(client["argv-mem"]) > 0, "the arguments are read")
    seen = ping(server)
    shut(sockets)
    admin.close()
    return seen, 32 * MB


def half_open(server, world):
    """5,000 connections with half a command each; later each gets its other half, and its answer."""
    sockets = []
    for number in range(5000):
        sock = open_socket(server.port)
        sock.sendall(b"*2\r\n$4\r\nECHO\r\n$6\r\n%03d" % (number % 1000))
        sockets.append(sock)
    wrong = 0
    for number, sock in enumerate(sockets):
        sock.sendall(b"%03d\r\n" % (number % 777))
        wrong += sock.recv(100) != b"$6\r\n%03d%03d\r\n" % (number % 1000, number % 777)
    seen = ping(server)
    shut(sockets)
    return (seen, wrong), 128 * MB


def drip(server, world):
    """Commands that come a byte at a time on 50 connections."""
    payload = encode(["SET", "drip", "x" * 20]) + encode(["GET", "drip"]) + b"PING\r\n"
    sockets = [open_socket(server.port) for _ in range(50)]
    for index in range(len(payload)):
        for sock in sockets:
            sock.sendall(payload[index:index + 1])
    wanted = b"+OK\r\n$20\r\n" + b"x" * 20 + b"\r\n+PONG\r\n"
    wrong = 0
    for sock in sockets:
        got = b""
        while len(got) < len(wanted):
            data = sock.recv(100)
            if not data:
                break
            got += data
        wrong += got != wanted
    shut(sockets)
    return wrong, 32 * MB


def slow_reader(server, world):
    """Asks for 400 MB and reads nothing, with a limit of 32 MB: it is dropped, and the memory comes back."""
    admin = server.connect(PATIENCE_S)
    before = info_number(admin, "used_memory")
    admin.command("SET", "big", b"b" * MB)
    sock = open_socket(server.port)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    sock.sendall(encode(["GET", "big"]) * 400)
    wait_for(lambda: not clients_of(admin, [sock]), "the client is dropped")
    received, closed = until_closed(sock)
    sock.close()
    admin.command("DEL", "big")
    wait_for(lambda: info_number(admin, "used_memory") < before + MB // 2, "the memory is back")
    admin.close()
    return (closed, len(received) < 200 * MB), 80 * MB


def patient_reader(server, world):
    """The same without a limit: everything comes, in order, after a pause."""
    admin = server.connect(PATIENCE_S)
    values = [bytes([65 + number]) * MB for number in range(8)]
    for number, value in enumerate(values):
        admin.command("SET", "big%d" % number, value)
    sock = open_socket(server.port)
    sock.sendall(b"".join(encode(["GET", "big%d" % (number % 8)]) for number in range(100)))
    wait_for_all(admin, [sock], lambda client: client["cmd"] == "get" and client["qbuf"] == "0" and
                 client["omem"] != "0", "all has been asked for")
    for number in range(8):     # what a pending reply refers to must not change under it
        admin.command("SETRANGE", "big%d" % number, 0, "changed")
    connection = Connection.__new__(Connection)
    connection.sock, connection.data, connection.timeout = sock, bytearray(), 30
    replies = exchange_all([(connection, b"", 100)])[0]
    if isinstance(replies, Lost):
        raise replies
    wrong = sum(reply[1] != values[number % 8] for number, reply in enumerate(replies))
    sock.close()
    admin.command("FLUSHALL")
    admin.close()
    return wrong, 200 * MB


def query_buffer(server, world):
    """With client-query-buffer-limit at 1 MB: one argument of 3 MB, and a transaction that is queued without end."""
    seen = []
    for payload in (b"*3\r\n$3\r\nSET\r\n$1\r\nq\r\n$50000000\r\n" + b"x" * (3 * MB),
                    encode(["MULTI"]) + encode(["SET", "q", "x" * 10000]) * 400,
                    b"*2\r\n$3\r\nGET\r\n$900000\r\n" + b"x" * 900000 + b"\r\n"):
        sock = open_socket(server.port)
        sock.settimeout(3)
        try:
            sock.sendall(payload)
        except OSError:
            pass
        seen.append(until_closed(sock, 2)[1])
        sock.close()
    return seen, 64 * MB


def too_many_clients(server, world):
    """maxclients is 20, the healthy client and this have some of them."""
    admin = server.connect(PATIENCE_S)
    sockets = [open_socket(server.port) for _ in range(30)]
    wait_for(lambda: len(clients_of(admin, sockets)) + info_number(admin, "rejected_connections") == 30,
             "each was taken or refused")
    taken = {client["addr"] for client in clients_of(admin, sockets)}
    refused = [sock for sock in sockets if address(sock) not in taken]
    texts = {until_closed(sock) for sock in refused}
    shut(sockets)
    wait_for(lambda: not clients_at(admin, taken), "they have gone")
    admin.close()
    return (len(refused), texts, ping(server)), 16 * MB


def idle_timeout(server, world):
    """timeout is 1 s: idle connections go."""
    sockets = [open_socket(server.port) for _ in range(20)]
    closed = [until_closed(sock, 5)[1] for sock in sockets]
    shut(sockets)
    return all(closed), 16 * MB


def tls_context(certs, name, authority="ca"):
    context = ssl.create_default_context(cafile="%s/%s.crt" % (certs, authority))
    if name:
        context.load_cert_chain("%s/%s.crt" % (certs, name), "%s/%s.key" % (certs, name))
    return context


def tls_ping(server, context):
    """The answer to PING over TLS, or that there was none."""
    try:
        with open_socket(server.tls_port) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as sock:
                sock.sendall(b"PING\r\n")
                return sock.recv(100)
    except OSError:
        return "refused"


def certificates(server, world):
    """A certificate by a stranger, none at all, and the right one. The stranger trusts our authority, it is us who
    must not trust it."""
    seen = [tls_ping(server, tls_context(world.certs, name)) for name in ("other-client", None, "client")]
    seen.append(tls_ping(server, tls_context(world.certs, "client", "other-ca")))
    return seen, 32 * MB


def plain_on_tls_port(server, world):
    """RESP to the TLS port, TLS to the plain port, noise and silence to the TLS port."""
    sock = open_socket(server.tls_port)
    sock.sendall(encode(["PING"]) + encode(["SET", "k", "v"]))
    received, closed = until_closed(sock)
    sock.close()
    seen = [b"PONG" in received, closed]
    silent = [open_socket(server.tls_port) for _ in range(200)]
    source = random.Random(world.options.seed)
    for _ in range(100):
        with open_socket(server.tls_port) as noisy:
            noisy.sendall(b"\x16\x03\x01" + source.randbytes(200))
    try:
        with open_socket(server.port) as plain:
            plain.settimeout(2)
            tls_context(world.certs, "client").wrap_socket(plain, server_hostname="localhost")
            seen.append("TLS on the plain port")
    except OSError:
        seen.append("refused")
    seen.append(tls_ping(server, tls_context(world.certs, "client")))
    shut(silent)
    return seen, 64 * MB


def tls_records_cut(server, world):
    """A proper handshake whose bytes come one at a time, then connections cut in the middle of a record."""
    context = tls_context(world.certs, "client")
    seen = []
    for cut in (None, 5, 60, 300):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        peer = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        sock = open_socket(server.tls_port)
        sent = 0

        def flush():
            nonlocal sent
            for byte in outgoing.read():
                if cut is not None and sent >= cut:
                    return False
                sock.sendall(bytes([byte]))
                sent += 1
            return True

        def step(action):
            while True:
                try:
                    result = action()
                    flush()
                    return result
                except ssl.SSLWantReadError:
                    if not flush():
                        return "cut"
                    data = sock.recv(65536)
                    if not data:
                        return "closed"
                    incoming.write(data)

        outcome = step(peer.do_handshake)
        if outcome is None:
            step(lambda: peer.write(b"PING\r\n"))
            outcome = step(lambda: peer.read(100))
        seen.append(outcome)
        sock.close()
    return seen, 32 * MB


# name, function, options of the server, whether it listens for TLS
ATTACKS = [
    ("random bytes", random_bytes, [], False),
    ("noise at once", noise_at_once, [], False),
    ("1 GB announced", announced_too_long, [], False),
    ("512 MB announced, not sent", announced_not_sent, [], False),
    ("1 M arguments announced", many_arguments_announced, [], False),
    ("5,000 half-open connections", half_open, [], False),
    ("byte by byte", drip, [], False),
    ("slow reader", slow_reader, ["--client-output-buffer-limit", "normal 33554432 0 0"], False),
    ("patient reader", patient_reader, [], False),
    ("query buffer limit", query_buffer, ["--client-query-buffer-limit", "1048576"], False),
    ("too many clients", too_many_clients, ["--maxclients", "20"], False),
    ("idle timeout", idle_timeout, ["--timeout", "1"], False),
    ("untrusted certificate", certificates, [], True),
    ("plain on the TLS port", plain_on_tls_port, [], True),
    ("TLS in pieces", tls_records_cut, [], True),
]


# -- mistakes ---------------------------------------------------------------------------------------------------------

def ends(binary, words, folder):
    """Exit code and output of a server that cannot start; None when it runs on."""
    process = subprocess.Popen([os.path.abspath(binary), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, cwd=folder)
    try:
        output = process.communicate(timeout=PATIENCE_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        output = process.communicate()[0]
        return None, output.decode(errors="replace")
    return process.returncode, output.decode(errors="replace")


def port_in_use(world):
    with world.start(world.options.server) as server:
        for what in ("the same server", "another program"):
            port, holder = server.port, None
            if what == "another program":
                holder = socket.socket()
                holder.bind(("127.0.0.1", 0))
                holder.listen()
                port = holder.getsockname()[1]
            words = ["--port", str(port), "--save", "", "--dir", server.folder]
            ours = ends(world.options.server, words, server.folder)
            oracle = ends(world.options.oracle, words, server.folder)
            yield "%s: exit code as redis" % what, ours[0] == oracle[0], "ours %r, redis %r" % (ours[0], oracle[0])
            yield "%s: says why" % what, "Address already in use" in ours[1] and str(port) in ours[1], ours[1][-300:]
            if holder:
                holder.close()
        yield "the first one goes on", ping(server) == ("+", b"PONG"), ""


CONFIG_ERRORS = ["maxclients abc", "nosuchdirective 5", "save 900", "port 99999", "appendonly maybe", "bind \"open",
                 "databases 0", "maxmemory 5xb", "include", "maxclients 5 6", "rename-command a",
                 "tcp-backlog -1", "client-output-buffer-limit normal 1", "hz", "maxmemory-policy nosuch"]


def complaint(output):
    """The lines of the message without the name and version in the first."""
    lines = output.split("*** FATAL CONFIG FILE ERROR", 1)
    if len(lines) < 2:
        return output
    return re.sub(r"^ \([^)]*\)", "", lines[1])


def config_error(world):
    folder = world.certs
    for error in CONFIG_ERRORS:
        path = os.path.join(folder, "bad.conf")
        with open(path, "w") as file:
            file.write("# a comment\nport %d\n\nsave \"\"\n   # indented\ndatabases 16\n%s\ntimeout 0\n" % (
                free_port(), error))
        ours, oracle = (ends(binary, [path], folder) for binary in (world.options.server, world.options.oracle))
        yield "line 7 '%s': exit code" % error, ours[0] == oracle[0], "ours %r, redis %r" % (ours[0], oracle[0])
        same = complaint(ours[1]) == complaint(oracle[1]) or oracle[0] is None
        yield "line 7 '%s': message" % error, same, "" if same else "ours %r, redis %r" % (
            complaint(ours[1])[-300:], complaint(oracle[1])[-300:])
        if oracle[0] is not None:
            yield "line 7 '%s': names the line" % error, "at line 7" in ours[1], ours[1][-200:]


def missing_files(world):
    for label, words in (("no such config file", ["/nonexistent/keydb.conf"]),
                         ("no such folder", ["--port", str(free_port()), "--dir", "/nonexistent"]),
                         ("certificate missing", ["--port", "0", "--tls-port", str(free_port()), "--tls-cert-file",
                                                  "/nonexistent.crt", "--tls-key-file", "/nonexistent.key"]),
                         ("TLS without certificate", ["--port", "0", "--tls-port", str(free_port())]),
                         ("unknown option", ["--port", str(free_port()), "--nosuchoption", "1"])):
        ours, oracle = (ends(binary, words, world.certs) for binary in (world.options.server, world.options.oracle))
        yield "%s: exit code as redis" % label, ours[0] == oracle[0], "ours %r, redis %r" % (ours, oracle[0])
        yield "%s: says something" % label, oracle[0] is None or bool(ours[1].strip()), ours[1][-200:]


MISTAKES = [("port in use", port_in_use), ("config file", config_error), ("missing files", missing_files)]
