#!/usr/bin/env python3
"""PUBLISH to many subscribers: deliveries a second and server CPU time a delivery, ours beside redis-server.

    pubsub.py --server BIN --oracle BIN [--subscribers N] [--pipeline N] [--seconds S] [--runs N] [--threads N]

Runs alternate between the servers; medians are printed. A publisher keeps so many PUBLISH under way and goes on when
all subscribers have everything, so that nobody is measured while buffers fill. Subscribers count bytes, nothing else.
"""
import argparse
import os
import select
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "differential"))

from harness import Server, encode      # noqa: E402


def measure(binary, options, threads):
    words = ["--server-threads", str(threads), "--min-clients-per-thread", "0"] if "redis" not in binary else []
    with Server(binary, words) as server:
        payload = b"v" * options.bytes
        message = encode(["message", "news", payload])
        subscribers = []
        poll = select.epoll()
        for number in range(options.subscribers):
            connection = server.connect()
            connection.command("SUBSCRIBE", "news")
            connection.sock.setblocking(False)
            subscribers.append(connection.sock)
            poll.register(connection.sock, select.EPOLLIN)
        publisher = server.connect()
        batch = encode(["PUBLISH", "news", payload]) * options.pipeline
        expected = len(message) * options.pipeline * options.subscribers
        by_number = {sock.fileno(): sock for sock in subscribers}
        buffer = bytearray(1 << 18)

        def exchange():
            publisher.sock.sendall(batch)
            left = expected
            while left:
                for number, _ in poll.poll(10):
                    left -= by_number[number].recv_into(buffer)
            replies = []
            publisher.data.clear()
            while len(replies) < options.pipeline:
                publisher.data += publisher.sock.recv(1 << 16)
                publisher.take(replies, options.pipeline)
            assert set(replies) == {(":", b"%d" % options.subscribers)}

        for _ in range(20):
            exchange()
        begin, cpu, count = time.monotonic(), server.cpu_seconds(), 0
        while time.monotonic() - begin < options.seconds:
            exchange()
            count += options.pipeline * options.subscribers
        seconds = time.monotonic() - begin
        return count / seconds, (server.cpu_seconds() - cpu) / count * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--subscribers", type=int, default=100)
    parser.add_argument("--pipeline", type=int, default=16)
    parser.add_argument("--bytes", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    results = {options.oracle: [], options.server: []}
    for _ in range(options.runs):
        for binary, runs in results.items():
            runs.append(measure(binary, options, options.threads))
    medians = []
    for binary, runs in results.items():
        rate, cpu = (statistics.median(run[i] for run in runs) for i in (0, 1))
        medians.append((rate, cpu))
        print("%-14s %9.0f deliveries/s, %.3f us of server CPU each" % (os.path.basename(binary), rate, cpu))
    print("ratio: %.2f of the deliveries/s, %.2f of the CPU time" % (medians[1][0] / medians[0][0],
                                                                    medians[1][1] / medians[0][1]))


if __name__ == "__main__":
    main()
