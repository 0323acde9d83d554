"""Bytes that are no proper commands: each goes to both servers over a connection of its own that is then half closed,
and what comes back until the end is compared."""
import random
import socket

from harness import Lost

FIXED = [
    b"PING\r\n", b"ping\r\nECHO x\r\n", b"  PING  \r\n", b"\r\nPING\r\n", b"PING\n", b"\n\n", b"ECHO \"a b\"\r\n",
    b"ECHO 'a\\'b'\r\n", b"ECHO \"\\x41\\n\"\r\n", b"ECHO \"open\r\n", b"ECHO \"a\"b\r\n", b"ECHO ''\r\n", b"SET\r\n",
    b"*0\r\n", b"*-1\r\n", b"*1\r\n$4\r\nPING\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$0\r\n\r\n", b"*1\r\n:1\r\n",
    b"*1\r\nPING\r\n", b"*a\r\n", b"*\r\n", b"* 1\r\n$4\r\nPING\r\n", b"*01\r\n$4\r\nPING\r\n",
    b"*1\r\n$04\r\nPING\r\n",
    b"*+1\r\n$4\r\nPING\r\n", b"*1048577\r\n", b"*1048576\r\n", b"*2147483648\r\n", b"*99999999999999999999\r\n",
    b"*-99999999999999999999\r\n", b"*1\r\n$536870913\r\n", b"*1\r\n$1048577\r\n", b"*1\r\n$1048576\r\n",
    b"*1\r\n$9999999999999999999\r\n", b"*1\r\n$abc\r\n", b"*1\r\n$\r\n", b"*1\r\n$ 4\r\nPING\r\n",
    b"*1\r\n$4\r\nPINGxx",
    b"*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n", b"*1\r\n$4\r\nPING\n\n*1\r\n$4\r\nPING\r\n", b"*1\n$4\nPING\n",
    b"*1\r\n$4\r\nPING\r\n*x\r\n*1\r\n$4\r\nPING\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"host: x\r\nPING\r\n", b"QUIT\r\nPING\r\n", b"\x00\r\nPING\r\n",
    b"PI\x00NG\r\n", b"\xff\xfe\r\n", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n", b"x" * 65535 + b"\r\n", b"x" * 65536,
    b"x" * 70000 + b"\r\n", b"*" + b"1" * 70000, b"*1\r\n$" + b"1" * 70000, b"*2\r\n$3\r\nGET\r\n$1\r\n" + b"k" * 10,
    b"QUIT now\r\nPING\r\n", b"*1\r\n$4\r\nquit\r\n*1\r\n$4\r\nPING\r\n",
]
PIECES = [b"*1\r\n", b"*2\r\n", b"*3\r\n", b"$4\r\nPING\r\n", b"$4\r\n", b"PING\r\n", b"$0\r\n\r\n",
          b"$-1\r\n", b"\r\n",
          b"\n", b"*0\r\n", b"*-1\r\n", b"$3\r\nGET\r\n", b"$1\r\nk\r\n", b"ECHO x\r\n", b"\"", b"'", b" ", b":1\r\n",
          b"+OK\r\n", b"*2\r\n$4\r\nECHO\r\n$1\r\nz\r\n", b"\x00", b"*a\r\n", b"$b\r\n"]
RANDOM_ONES = 60


def answer(server, payload):
    """All that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), 10) as sock:
        received = b""
        try:
            sock.sendall(payload)
            sock.shutdown(socket.SHUT_WR)
            while True:
                data = sock.recv(65536)
                if not data:
                    return received
                received += data
        except socket.timeout:
            return received + b"(left open)"
        except OSError:     # a reset: the server closed with bytes of ours unread
            return received


def payloads(seed):
    source = random.Random(seed)
    yield from FIXED
    for _ in range(RANDOM_ONES):
        yield b"".join(source.choices(PIECES, k=source.randint(1, 8)))


def run(sides, seed, accepted):
    passed = failed = 0
    for payload in payloads(seed):
        try:
            oracle, server = (answer(each, payload) for each in sides.servers)
        except (OSError, Lost) as problem:
            oracle, server = b"", str(problem).encode()
        if oracle == server or accepted.allows("protocol", repr(payload), repr(oracle), repr(server)):
            passed += 1
            continue
        failed += 1
        shown = payload if len(payload) < 100 else payload[:60] + b"...(%d bytes)" % len(payload)
        print("FAILED protocol: %r\n  oracle: %r\n  ours:   %r" % (shown, oracle[:300], server[:300]))
    return passed, failed
