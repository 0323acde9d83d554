#!/usr/bin/env python3
"""Opens connections as fast as they are answered while others are served, on our server and on Redis in turn.

    storm.py --server BIN --oracle BIN [-n ROUNDS] [--newcomers N] [--busy N] [--window N] [--threads N]

Each round starts both servers afresh and runs storm.c against them; printed are medians over the rounds, latencies in
ms: of the busy clients before and during the storm, of the newcomers from connect to their first answer, and the
longest that INFO or CLIENT LIST took. Fails when a connection was refused or ours has the worse p99 during the storm.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "differential"))

from harness import Lost, Server      # noqa: E402

LATENCIES = ("p50", "p99", "p99.9", "most")


def build():
    program = os.path.join(TOP, "build", "bench", "storm")
    os.makedirs(os.path.dirname(program), exist_ok=True)
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror", "-o",
                    program, os.path.join(HERE, "storm.c")], check=True)
    return program


def one_run(program, binary, threads, options):
    settings = ["--maxclients", options.newcomers + options.busy + 100, "--tcp-backlog", 4096]
    with Server(binary, settings, threads) as server:
        done = subprocess.run([program, str(server.port), str(options.newcomers), str(options.busy),
                               str(options.window)], capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise Lost("%s: %s" % (binary, done.stderr.strip()))
        return json.loads(done.stdout)


def median(runs, *path):
    def one(run):
        for name in path:
            run = run[name]
        return run
    return statistics.median(one(run) for run in runs)


def show(label, runs):
    for phase in ("calm", "storm", "welcome"):
        print("%-6s %-8s %9d  %s" % (label, phase, median(runs, phase, "count"),
                                    "  ".join("%s %8.3f" % (name, median(runs, phase, name) / 1000)
                                              for name in LATENCIES)))
    print("%-6s %-8s %6.0f ms; INFO and CLIENT LIST: longest %.1f ms, up to %d clients listed, %d refused" % (
        label, "took", median(runs, "storm_ms"), median(runs, "watch_longest_us") / 1000,
        max(run["listed"] for run in runs), sum(run["refused"] for run in runs)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("-n", "--rounds", type=int, default=5)
    parser.add_argument("--newcomers", type=int, default=10000)
    parser.add_argument("--busy", type=int, default=50)
    parser.add_argument("--window", type=int, default=1000, help="newcomers on their way at a time")
    parser.add_argument("--threads", type=int, default=1, help="of our server; Redis has one")
    options = parser.parse_args()
    program = build()
    runs = {"redis": [], "ours": []}
    for _ in range(options.rounds):
        runs["redis"].append(one_run(program, options.oracle, None, options))
        runs["ours"].append(one_run(program, options.server, options.threads, options))
    for label, figures in runs.items():
        show(label, figures)
    good = (all(run["refused"] == 0 for run in runs["ours"]) and
            median(runs["ours"], "storm", "p99") <= median(runs["redis"], "storm", "p99"))
    print("passed" if good else "FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
