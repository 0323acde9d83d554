#!/usr/bin/env python3
"""Scripts beside each other: EVALSHA by two clients, each with keys of its own, on one worker and on two.

    scripts.py --server BIN [--server BIN2 ...] [--rounds N] [--steps N]

    get         calls GET of one key, `steps` times
    incr        the same with INCR
    two         INCR of one key and GET of another
    undeclared  GET of a key that is not declared: such scripts are alone

With many steps the client takes little of the processors. Rounds of one and of two workers alternate. Prints medians:
requests a second, the server's processor time a request, and how many times as many requests two workers served.
"""
import argparse
import os
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "differential"))

from harness import Connection, Server, encode      # noqa: E402

KINDS = {
    "get": (1, "redis.call('GET', KEYS[1])"),
    "incr": (1, "redis.call('INCR', KEYS[1])"),
    "two": (2, "redis.call('INCR', KEYS[1]) redis.call('GET', KEYS[2])"),
    "undeclared": (0, "redis.call('GET', ARGV[2])"),
}
SCRIPT = "for i = 1, tonumber(ARGV[1]) do %s end return 1"
PIPELINE = 4
CLIENTS = 2


class Client(threading.Thread):
    def __init__(self, port, words):
        super().__init__(daemon=True)
        self.connection = Connection(port, 30)
        self.request, self.count, self.stopped = encode(words) * PIPELINE, 0, False

    def run(self):
        while not self.stopped:
            self.connection.exchange(self.request, PIPELINE)
            self.count += PIPELINE
        self.connection.close()


def processor_seconds(process):
    with open("/proc/%d/stat" % process.pid) as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(binary, workers, kind, steps, seconds=1.0):
    """Requests a second, and microseconds of processor time for each."""
    key_count, call = KINDS[kind]
    server = Server(binary, ["--min-clients-per-thread", "1"], threads=workers)
    try:
        control = Connection(server.port, 5)
        sha = control.command("SCRIPT", "LOAD", SCRIPT % call)[1]
        clients = []
        for number in range(CLIENTS):
            keys = ["key:%d" % number, "other:%d" % number]
            clients.append(Client(server.port, ["EVALSHA", sha, key_count, *keys[:key_count], steps, keys[0]]))
        for client in clients:
            client.start()
        time.sleep(0.2)
        begin, before, ticks = time.monotonic(), sum(c.count for c in clients), processor_seconds(server.process)
        time.sleep(seconds)
        count = sum(c.count for c in clients) - before
        spent, elapsed = processor_seconds(server.process) - ticks, time.monotonic() - begin
        for client in clients:
            client.stopped = True
        for client in clients:
            client.join()
        control.close()
    finally:
        server.stop()
    return count / elapsed, spent * 1e6 / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    options = parser.parse_args()
    for binary in options.server:
        for kind in options.kinds:
            rounds = [[measure(binary, workers, kind, options.steps) for workers in (1, 2)]
                      for _ in range(options.rounds)]
            rates = [statistics.median(row[column][0] for row in rounds) for column in (0, 1)]
            times = [statistics.median(row[column][1] for row in rounds) for column in (0, 1)]
            print("%s  %-10s  1 worker: %6.0f/s %7.1f us   2 workers: %6.0f/s %7.1f us   x %.2f" %
                  (binary, kind, rates[0], times[0], rates[1], times[1],
                   statistics.median(row[1][0] / row[0][0] for row in rounds)), flush=True)


if __name__ == "__main__":
    main()
