#!/usr/bin/env python3
"""Scripts beside each other: EVALSHA by four clients, each with keys of its own, on one worker and on two.

    scripts.py --server BIN [--server BIN2 ...] [--rounds N] [--steps N]

    get         calls GET of one key, `steps` times
    incr        the same with INCR
    two         INCR of one key and GET of another
    undeclared  GET of a key that is not declared: such scripts are alone

With many steps the client takes little of the processors. Rounds of one and of two workers alternate. Prints medians:
requests a second, the server's processor time a request, and how many workers had work they could do: they ran, or
waited for a processor that others used. On a machine that is busy this tells more than requests a second.
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
PIPELINE = 16
CLIENTS = 4


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


def seconds_of_threads(process):
    """Seconds that the threads ran, and that they waited for a processor."""
    ran = waited = 0
    for task in os.listdir("/proc/%d/task" % process.pid):
        with open("/proc/%d/task/%s/schedstat" % (process.pid, task)) as stat:
            fields = stat.read().split()
        ran, waited = ran + int(fields[0]) / 1e9, waited + int(fields[1]) / 1e9
    return ran, waited


def measure(binary, workers, kind, steps, seconds=1.0):
    """Requests a second, microseconds of processor time for each, and the number of workers that could run."""
    key_count, call = KINDS[kind]
    server = Server(binary, ["--min-clients-per-thread", "1", "--active-client-balancing", "no"], threads=workers)
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
        begin, before, start = time.monotonic(), sum(c.count for c in clients), seconds_of_threads(server.process)
        time.sleep(seconds)
        count, end = sum(c.count for c in clients) - before, seconds_of_threads(server.process)
        elapsed = time.monotonic() - begin
        for client in clients:
            client.stopped = True
        for client in clients:
            client.join()
        control.close()
    finally:
        server.stop()
    return count / elapsed, (end[0] - start[0]) * 1e6 / count, (sum(end) - sum(start)) / elapsed


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
            one, two = ([statistics.median(row[column][what] for row in rounds) for what in range(3)]
                        for column in (0, 1))
            print("%s  %-10s  1 worker: %6.0f/s %7.1f us  %.2f   2 workers: %6.0f/s %7.1f us  %.2f" %
                  (binary, kind, *one, *two), flush=True)


if __name__ == "__main__":
    main()
