#!/usr/bin/env python3
"""What a request costs keydb-benchmark, beside redis-benchmark: CPU time of the client, and the rate that each reads.

    client_cpu.py --tools FOLDER --oracle FOLDER [--server BIN] [--runs N] [--requests N]

FOLDER has keydb-benchmark, or redis-benchmark. Both run in turn against one server, which is pinned to a CPU of its
own; medians are printed, with the budget of keydb-benchmark's share: 0.9 at pipeline 1, 0.6 at pipeline 32. In the last
line requests are so heavy that the server is the limit: then both have to read the same rate, within 5 %."""
import argparse
import os
import re
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "differential"))
from harness import Server      # noqa: E402

BUDGETS = {1: 0.9, 32: 0.6}


def pinned(cpu, words):
    return ["taskset", "-c", str(cpu), *words]


HEAVY = ("eval", "local sum = 0 for i = 1, 20000 do sum = sum + i end return sum", "0")


def run(program, port, requests, *words):
    """CPU seconds of the client, and requests a second as it tells them."""
    words = pinned(0, [program, "-p", str(port), "-n", str(requests), "-q", *map(str, words)])
    began = os.times()
    text = subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120).stdout
    ended = os.times()
    used = ended.children_user + ended.children_system - began.children_user - began.children_system
    return used, float(re.findall(rb": ([0-9.]+) requests per second", text)[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--server")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--requests", type=int, default=400000)
    options = parser.parse_args()
    ours, theirs = (os.path.join(options.tools, "keydb-benchmark"), os.path.join(options.oracle, "redis-benchmark"))
    server = Server(options.server or os.path.join(options.tools, "keydb-server"), [])
    missed = 0
    try:
        subprocess.run(["taskset", "-a", "-cp", "1", str(server.process.pid)], check=True, stdout=subprocess.DEVNULL)
        print("%-9s %-6s %12s %12s %7s %7s   %s" % ("pipeline", "keys", "ours us", "theirs us", "ratio", "budget",
                                                    "rates"))
        for pipeline, budget in BUDGETS.items():
            for keys in (0, 100000):
                requests = options.requests * (1 if pipeline == 1 else 8)
                found = {ours: [], theirs: []}
                for _ in range(options.runs):
                    for program in (ours, theirs):
                        found[program].append(run(program, server.port, requests, "-t", "set", "-P", pipeline, "-d", 64,
                                                  *(["-r", keys] if keys else [])))
                cpu = {name: statistics.median(one[0] for one in runs) / requests * 1e6 for name, runs in found.items()}
                rate = {name: statistics.median(one[1] for one in runs) for name, runs in found.items()}
                ratio = cpu[ours] / cpu[theirs]
                missed += ratio > budget
                print("%-9d %-6d %12.3f %12.3f %7.3f %7.1f   %.0f, %.0f (%.3f)  %s" % (
                    pipeline, keys, cpu[ours], cpu[theirs], ratio, budget, rate[ours], rate[theirs],
                    rate[ours] / rate[theirs], "ok" if ratio <= budget else "MISSED"))
        rates = {ours: [], theirs: []}
        for _ in range(3 * options.runs):
            for program in (ours, theirs):
                rates[program].append(run(program, server.port, options.requests // 20, *HEAVY)[1])
        ours_rate, theirs_rate = (statistics.median(rates[name]) for name in (ours, theirs))
        good = 0.95 <= ours_rate / theirs_rate <= 1.05
        missed += not good
        print("a heavy script: %.0f, %.0f a second (%.3f)  %s" % (ours_rate, theirs_rate, ours_rate / theirs_rate,
                                                                 "ok" if good else "MISSED"))
    finally:
        server.stop()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
