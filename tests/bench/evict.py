#!/usr/bin/env python3
"""Eviction: does memory stay at the limit at full speed, how long do clients wait, and are the right keys kept?

    evict.py --server BIN --oracle BIN --tool redis-benchmark [--seconds N] [--maxmemory 200mb] [--trace N] [--keys N]

First each policy: 4 workers and 40 clients that write as fast as they can; used memory is asked for all the time, and
one more client asks for one key after the other and measures how long that takes. The same load on Redis, for its
times. Then hit ratios: a Zipf trace, read through a cache that is filled on a miss, on both with room for equally many
keys. The last line is "N passed, N failed".
"""
import argparse
import bisect
import itertools
import os
import random
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "differential"))

from harness import Server, encode      # noqa: E402

POLICIES = ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random",
            "volatile-ttl"]
THREADS = 4
VALUE_BYTES = 100
GROUP_MOST, PUBLISH_BYTES = 8, 4096
BATCH = 200
RATIO_TOLERANCE = 0.01

passed = failed = 0


def check(ok, text):
    global passed, failed
    passed += ok
    failed += not ok
    print("  %s  %s" % ("ok   " if ok else "FAIL ", text), flush=True)


def memory_bytes(text):
    return int(text[:-2]) * 1024 ** ({"kb": 1, "mb": 2, "gb": 3}[text[-2:]])


def info(connection, field):
    text = connection.command("INFO")[1].decode()
    return int(text.split("\r\n%s:" % field)[1].split("\r\n")[0])


def percentile(times, percent):
    times.sort()
    return times[min(len(times) - 1, int(len(times) * percent / 100))] * 1e3


class Watcher(threading.Thread):
    """Calls a function over and over until told to stop."""

    def __init__(self, visit):
        super().__init__()
        self.visit, self.going = visit, True
        self.start()

    def run(self):
        while self.going:
            self.visit()

    def stop(self):
        self.going = False
        self.join()


def full_speed(binary, options, policy):
    server = Server(binary, ["--maxmemory", options.maxmemory, "--maxmemory-policy", policy], THREADS)
    most, times = [0], []
    try:
        asker, prober = server.connect(), server.connect()

        def look():
            most[0] = max(most[0], info(asker, "used_memory"))
            time.sleep(0.002)

        def probe():
            began = time.perf_counter()
            prober.command("GET", "probe")
            times.append(time.perf_counter() - began)

        deadline = ["EX", "10000"] if policy.startswith("volatile") else []
        load = subprocess.Popen([options.tool, "-p", str(server.port), "-c", "40", "-P", "8", "-n", "1000000000", "-r",
                                 "100000000", "--threads", "2", "-q", "SET", "key:__rand_int__", "x" * VALUE_BYTES,
                                 *deadline], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while info(asker, "evicted_keys") == 0 and load.poll() is None:
            time.sleep(0.1)
        watchers = [Watcher(look), Watcher(probe)]
        time.sleep(options.seconds)
        for watcher in watchers:
            watcher.stop()
        load.kill()
        load.wait()
        return most[0], percentile(times, 50), percentile(times, 99.9), info(asker, "evicted_keys")
    finally:
        server.stop()


def limits(options):
    limit = memory_bytes(options.maxmemory)
    bound = THREADS * (PUBLISH_BYTES + GROUP_MOST * (VALUE_BYTES + 128))
    for policy in POLICIES:
        most, p50, p999, evicted = full_speed(options.server, options, policy)
        theirs = full_speed(options.oracle, options, policy)
        check(most <= limit + bound and evicted > 0,
              "%s: most %+d bytes from the limit (Redis %+d), bound %d; %d evicted (%d); a GET meanwhile, ms: p50 %.3f "
              "(%.3f), p99.9 %.3f (%.3f)" % (policy, most - limit, theirs[0] - limit, bound, evicted, theirs[3], p50,
                                             theirs[1], p999, theirs[2]))


# --- hit ratios ---

def zipf_trace(options):
    chance = random.Random(options.seed)
    weights = list(itertools.accumulate(1 / (rank + 1) ** 0.99 for rank in range(options.keys)))
    names = list(range(options.keys))
    chance.shuffle(names)
    return [names[bisect.bisect(weights, chance.random() * weights[-1])] for _ in range(options.trace)]


def pipeline(connection, commands):
    return connection.exchange(b"".join(encode(words) for words in commands), len(commands))


def fill(connection, count, first=0):
    for begin in range(first, first + count, BATCH):
        pipeline(connection, [["SET", "key:%08d" % number, "x" * VALUE_BYTES]
                              for number in range(begin, min(begin + BATCH, first + count))])


def room_for(binary, keys):
    """Bytes of maxmemory with which so many keys fit."""
    server = Server(binary, [], THREADS)
    try:
        connection = server.connect()
        connection.command("PING")
        fill(connection, keys)
        return info(connection, "used_memory")
    finally:
        server.stop()


def hit_ratio(binary, policy, limit, trace):
    server = Server(binary, ["--maxmemory", str(limit), "--maxmemory-policy", policy], THREADS)
    try:
        connection = server.connect()
        hits = asked = 0
        for begin in range(0, len(trace), BATCH):
            names = ["key:%08d" % number for number in trace[begin:begin + BATCH]]
            replies = pipeline(connection, [["GET", name] for name in names])
            missing = [name for name, reply in zip(names, replies) if reply[1] is None]
            if missing:
                pipeline(connection, [["SET", name, "x" * VALUE_BYTES] for name in missing])
            if begin >= len(trace) // 4:        # the cache is warm
                hits += len(names) - len(missing)
                asked += len(names)
        return hits / asked, int(connection.command("DBSIZE")[1])
    finally:
        server.stop()


def ratios(options):
    trace = zipf_trace(options)
    capacity = options.keys // 10
    rooms = [room_for(binary, capacity) for binary in (options.server, options.oracle)]
    for policy in ("allkeys-lru", "allkeys-lfu"):
        ours, held = hit_ratio(options.server, policy, rooms[0], trace)
        theirs, their_held = hit_ratio(options.oracle, policy, rooms[1], trace)
        check(ours >= theirs - RATIO_TOLERANCE,
              "%s: hit ratio %.4f with %d keys in %.1f MB, Redis %.4f with %d in %.1f MB" %
              (policy, ours, held, rooms[0] / 1e6, theirs, their_held, rooms[1] / 1e6))
        ours, held = hit_ratio(options.server, policy, rooms[1], trace)
        print("         with Redis' %.1f MB: %.4f with %d keys" % (rooms[1] / 1e6, ours, held), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--maxmemory", default="200mb")
    parser.add_argument("--trace", type=int, default=1000000)
    parser.add_argument("--keys", type=int, default=200000)
    parser.add_argument("--seed", type=int, default=4711)
    options = parser.parse_args()
    limits(options)
    ratios(options)
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
