#!/usr/bin/env python3
"""What commands newer than Redis 7.4 cost beside the plain ones: processor time of the server a request, pipeline 32.

    newer.py --server BIN [--tool redis-benchmark] [-n ROUNDS] [--requests N]

The server has one worker on the first processor, redis-benchmark with 20 clients runs on the last one. The two of a
pair take turns; printed are medians, and the pair's ratio, which may be 1.3.
"""
import argparse
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "differential"))

from harness import Server, cpu_ns      # noqa: E402

KEYS = 10000
VALUE = "v" * 64
KEY, HASH, FIELD = "key:__rand_int__", "h:__rand_int__", "field:1"
PAIRS = [("SET", ["SET", KEY, VALUE], "SET IFEQ", ["SET", KEY, VALUE, "IFEQ", VALUE]),
         ("INCR", ["INCR", "n:__rand_int__"], "INCREX", ["INCREX", "n:__rand_int__", "UBOUND", "1000000000"]),
         ("HSET", ["HSET", HASH, FIELD, VALUE], "HSETEX", ["HSETEX", HASH, "FIELDS", "1", FIELD, VALUE]),
         ("HGET", ["HGET", HASH, FIELD], "HGETEX", ["HGETEX", HASH, "FIELDS", "1", FIELD]),
         ("HSET", ["HSET", HASH, FIELD, VALUE],
          "HSETEX EX", ["HSETEX", HASH, "EX", "9999", "FIELDS", "1", FIELD, VALUE]),
         ("HGET", ["HGET", HASH, FIELD], "HGETEX EX", ["HGETEX", HASH, "EX", "9999", "FIELDS", "1", FIELD])]


def run(options, words, requests):
    command = ["taskset", "-c", str(os.cpu_count() - 1), options.tool, "-p", str(options.port), "-c", "20", "-P", "32",
               "-q", "-n", str(requests), "-r", str(KEYS), *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(options, pid, words):
    before = cpu_ns(pid)
    run(options, words, options.requests)
    return (cpu_ns(pid) - before) / options.requests


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--tool", default="redis-benchmark")
    parser.add_argument("-n", "--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=1000000)
    options = parser.parse_args()
    with Server(options.server, ["--event-loop", "epoll"], 1, cpus=0) as server:
        options.port = server.port
        for plain_name, plain, name, words in PAIRS:
            for each in (plain, words):
                run(options, each, 200000)
            costs = [(measure(options, server.pid(), plain), measure(options, server.pid(), words))
                     for _ in range(options.rounds)]
            one, two = (statistics.median(cost) for cost in zip(*costs))
            print("%-8s %5.0f ns   %-10s %5.0f ns   %.2f" % (plain_name, one, name, two, two / one), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
