#!/usr/bin/env python3
"""Many subscriptions over many connections: memory and time, ours beside redis-server.

    subscriptions.py --server BIN --oracle BIN [--connections N] [--each N] [--threads N] [--runs N]

Every connection subscribes to --each channels of its own in one command. Told are: how long that takes, the memory of
it (used_memory and the resident set, beyond what the connections alone take), how long it takes to publish one message
to each channel, all of which have to arrive, and to leave again; and what memory is left after that.
"""
import argparse
import os
import resource
import select
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "differential"))

from harness import Server, encode, is_redis      # noqa: E402

FIELDS = ["subscribe s", "used MB", "resident MB", "publish s", "leave s", "used MB after"]


def memory(admin):
    text = admin.command("INFO", "memory")[1].decode()
    lines = dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)
    return int(lines["used_memory"]), int(lines["used_memory_rss"])


def read_all(clients, sizes):
    """So many bytes from each."""
    poll = select.epoll()
    by_number = {client.sock.fileno(): index for index, client in enumerate(clients)}
    left = list(sizes)
    buffer = bytearray(1 << 18)
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    missing = sum(1 for size in left if size)
    while missing:
        events = poll.poll(60)
        if not events:
            raise SystemExit("something did not arrive")
        for number, _ in events:
            index = by_number[number]
            left[index] -= clients[index].sock.recv_into(buffer)
            if left[index] == 0:
                poll.unregister(number)
                missing -= 1
    poll.close()


def answer_bytes(kind, names, begin, step):
    return sum(len(encode([kind, name])) + len(":%d\r\n" % (begin + step * i)) for i, name in enumerate(names))


def measure(binary, options):
    settings = ["--maxclients", options.connections + 100]
    if not is_redis(binary):
        settings += ["--min-clients-per-thread", 0]
    with Server(binary, settings, None if is_redis(binary) else options.threads) as server:
        admin = server.connect()
        clients = [server.connect() for _ in range(options.connections)]
        names = [["channel-%d-%d" % (index, i) for i in range(options.each)] for index in range(len(clients))]
        used, resident = memory(admin)
        begin = time.monotonic()
        for client, mine in zip(clients, names):
            client.sock.sendall(encode(["SUBSCRIBE", *mine]))
        read_all(clients, [answer_bytes("subscribe", mine, 1, 1) for mine in names])
        figures = [time.monotonic() - begin]
        now_used, now_resident = memory(admin)
        figures += [(now_used - used) / 1e6, (now_resident - resident) / 1e6]
        begin = time.monotonic()
        for mine in names:
            batch = b"".join(encode(["PUBLISH", name, "x" * 32]) for name in mine)
            for reply in admin.exchange(batch, len(mine)):
                assert reply == (":", b"1"), reply
        read_all(clients, [sum(len(encode(["message", name, "x" * 32])) for name in mine) for mine in names])
        figures.append(time.monotonic() - begin)
        begin = time.monotonic()
        for client, mine in zip(clients, names):
            client.sock.sendall(encode(["UNSUBSCRIBE", *mine]))
        read_all(clients, [answer_bytes("unsubscribe", mine, len(mine) - 1, -1) for mine in names])
        figures.append(time.monotonic() - begin)
        assert admin.command("PUBSUB", "CHANNELS") == ("*", [])
        figures.append((memory(admin)[0] - used) / 1e6)
        return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--connections", type=int, default=5000)
    parser.add_argument("--each", type=int, default=20, help="channels of a connection")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (options.connections * 2 + 1000,) * 2)
    results = {options.oracle: [], options.server: []}
    for _ in range(options.runs):
        for binary, runs in results.items():
            runs.append(measure(binary, options))
    print("%-16s %s" % ("", "  ".join("%13s" % field for field in FIELDS)))
    for binary, runs in results.items():
        medians = [statistics.median(run[i] for run in runs) for i in range(len(FIELDS))]
        print("%-16s %s" % (os.path.basename(binary), "  ".join("%13.2f" % median for median in medians)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
