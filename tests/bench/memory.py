"""Bytes a key and bytes an idle connection: resident memory after, less before, divided. What the allocator keeps for
itself is part of the price."""
import re
import resource
import socket
import ssl
import time

from harness import Server, encode, free_port
from workloads import CONNECTION_LIMITS, CONNECTIONS, KEY_BYTES_LIMIT, KEY_COUNTS

BATCH = 10000
SETTLE_S = 2


def fill(server, count, first):
    """Keys of 16 and values of 64 bytes."""
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        for begin in range(first, count, BATCH):
            numbers = range(begin, min(begin + BATCH, count))
            sock.sendall(b"".join(b"*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$64\r\n%064d\r\n" % (number, number)
                                  for number in numbers))
            wanted = 5 * len(numbers)
            while wanted > 0:
                received = sock.recv(1 << 20)
                if not received:
                    raise OSError("connection closed by the server")
                wanted -= len(received)


def bytes_a_key(binary, counts):
    """Mean over the counts: tables grow in steps, one count alone may be a lucky one."""
    server = Server(binary, [], 1)
    try:
        before = server.rss()
        shares, have = [], 0
        for count in counts:
            fill(server, count, have)
            have = count
            time.sleep(SETTLE_S)
            shares.append((server.rss() - before) / count)
        return sum(shares) / len(shares)
    finally:
        server.stop()


def bytes_a_connection(binary, kind, count, certs):
    options = ["--maxclients", count + 100]
    if kind == "tls":
        tls_port = free_port()
        options += ["--tls-port", tls_port, "--tls-cert-file", certs + "/server.crt", "--tls-key-file",
                    certs + "/server.key", "--tls-ca-cert-file", certs + "/ca.crt", "--tls-auth-clients", "no"]
    context = ssl.create_default_context(cafile=certs + "/ca.crt")
    server = Server(binary, options, 1)
    connections = []
    try:
        before = server.rss()
        for _ in range(count):
            sock = socket.create_connection(("127.0.0.1", tls_port if kind == "tls" else server.port))
            if kind == "tls":
                sock = context.wrap_socket(sock, server_hostname="localhost")
            sock.sendall(encode(["PING"]))
            sock.recv(100)
            connections.append(sock)
        time.sleep(SETTLE_S + 1)
        return (server.rss() - before) / count
    finally:
        for sock in connections:
            sock.close()
        server.stop()


def run(options, table, results):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    counts = [count // (10 if options.quick else 1) for count in KEY_COUNTS]
    rows = [("memory_key", KEY_BYTES_LIMIT, lambda binary: bytes_a_key(binary, counts))]
    for kind, limit in CONNECTION_LIMITS.items():
        count = min(CONNECTIONS[kind], (hard - 200) // 2)
        rows.append(("memory_connection_" + kind, limit,
                     lambda binary, kind=kind, count=count: bytes_a_connection(binary, kind, count, options.certs)))
    for name, limit, measure in rows:
        if not re.search(options.workloads, name):
            continue
        redis, ours = measure(options.oracle), measure(options.server)
        results[name] = {"oracle": redis, "server": ours}
        print("%-26s redis %9.1f   ours %9.1f bytes   x%.2f   %s budget %d" % (
            name, redis, ours, ours / redis, table.judge(ours <= limit), limit), flush=True)
