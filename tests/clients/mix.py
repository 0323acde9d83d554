"""A load like a cache sees it: several connections, ten GETs for a SET, in pipelines of several depths. Every reply
is checked: a connection owns its keys, so it knows what each GET has to find."""
import random
import ssl
import threading

from harness import Connection, Lost, encode

CONNECTIONS = 8
ROUNDS = 60
KEYS = 500
DEPTHS = (1, 4, 32, 256)
SIZES = (0, 8, 64, 1000, 20000, 70000)


class Mix(threading.Thread):
    def __init__(self, number, connection):
        super().__init__()
        self.number = number
        self.connection = connection
        self.random = random.Random(number)
        self.known = {}
        self.problem = None

    def batch(self, depth):
        payload, wanted = [], []
        for _ in range(depth):
            key = "mix:%d:%d" % (self.number, self.random.randrange(KEYS))
            if self.random.randrange(11) == 0:
                value = bytes([self.random.randrange(256)]) * self.random.choice(SIZES)
                self.known[key] = value
                payload.append(encode(["SET", key, value]))
                wanted.append(("+", b"OK"))
            else:
                payload.append(encode(["GET", key]))
                wanted.append(("$", self.known.get(key)))
        return b"".join(payload), wanted

    def run(self):
        try:
            for turn in range(ROUNDS):
                payload, wanted = self.batch(DEPTHS[turn % len(DEPTHS)])
                replies = self.talk(payload, len(wanted))
                for one, two in zip(replies, wanted):
                    if one != two:
                        raise Lost("%.60r instead of %.60r" % (one, two))
            self.connection.close()
        except (Lost, OSError) as problem:
            self.problem = "connection %d: %s" % (self.number, problem)

    def talk(self, payload, count):
        return self.connection.exchange(payload, count)


class TlsMix(Mix):
    """TLS sockets cannot be polled like plain ones; the batches are small enough to send first, then receive."""

    def talk(self, payload, count):
        sock = self.connection.sock
        replies = []
        sock.sendall(payload)
        while len(replies) < count:
            data = sock.recv(1 << 18)
            if not data:
                raise Lost("connection closed by the server")
            self.connection.data += data
            self.connection.take(replies, count)
        return replies


def tls_connection(where):
    context = ssl.create_default_context(cafile=where["CERTS"] + "/ca.crt")
    context.load_cert_chain(where["CERTS"] + "/client.crt", where["CERTS"] + "/client.key")
    connection = Connection(int(where["TLS_PORT"]))
    connection.sock = context.wrap_socket(connection.sock, server_hostname="localhost")
    return connection


def run(where, count):
    kinds = [("plain", Mix, lambda: Connection(int(where["PORT"]))),
             ("unix socket", Mix, lambda: Connection(where["UNIX_SOCKET"])),
             ("TLS", TlsMix, lambda: tls_connection(where))]
    for name, make, connect in kinds:
        try:
            threads = [make(number, connect()) for number in range(CONNECTIONS)]
        except (Lost, OSError) as problem:
            count.add("mix " + name, str(problem))
            continue
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        problems = [thread.problem for thread in threads if thread.problem]
        count.add("mix " + name, "; ".join(problems)[:600] if problems else None)
        admin = Connection(int(where["PORT"]))
        admin.command("FLUSHALL")
        admin.close()
