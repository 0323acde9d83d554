#!/usr/bin/env python3
"""SET with an append only file: requests a second, latency and server CPU time, ours beside redis-server.

    aof.py --server BIN --oracle BIN [--runs N] [--requests N] [--threads N] [--only everysec|always] [--folder DIR]

everysec: a pipeline of 32; always: none, each request waits for the disk, and writes a sync are told. Both servers run
in turn, each run with new files in the folder (default: the system's for temporary files); redis-benchmark beside the
oracle is the client. Medians are printed. A disk that others use makes `always` differ from run to run: take many.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "differential"))

from harness import Server      # noqa: E402

KINDS = {"everysec": ["-P", "32", "-n", "{:d}"], "always": ["-P", "1", "-n", "{:d}"]}
SHARE = {"everysec": 1.0, "always": 0.03}   # of the requests


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def syncs_of(client, port):
    text = subprocess.run([client, "-p", str(port), "info", "persistence"], capture_output=True, text=True,
                          check=True).stdout
    for line in text.splitlines():
        if line.startswith("aof_syncs:"):
            return int(line.split(":")[1])
    return 0


def measure(binary, kind, options, folder):
    tools = os.path.dirname(os.path.abspath(options.oracle))
    requests = int(options.requests * SHARE[kind])
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    settings = ["--dir", folder, "--appendonly", "yes", "--appendfsync", kind, "--auto-aof-rewrite-percentage", "0"]
    with Server(binary, settings, options.threads if binary == options.server else 1) as server:
        before = cpu_seconds(server.process.pid)
        words = [word.format(requests) for word in KINDS[kind]]
        done = subprocess.run([os.path.join(tools, "redis-benchmark"), "-p", str(server.port), "--csv", "-t", "set",
                               "-c", "50", "-d", "64", "-r", "100000"] + words,
                              capture_output=True, text=True, timeout=600, check=True)
        cpu = cpu_seconds(server.process.pid) - before
        syncs = syncs_of(os.path.join(tools, "redis-cli"), server.port)
    fields = [float(word.strip('"')) for word in done.stdout.strip().splitlines()[-1].split(",")[1:]]
    return {"rate": fields[0], "p50": fields[3], "p99": fields[5], "cpu": cpu * 1e6 / requests,
            "writes": requests / syncs if syncs else 0}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--requests", type=int, default=2000000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=sorted(KINDS))
    parser.add_argument("--folder", default=tempfile.gettempdir())
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="keydb-bench-", dir=options.folder)
    try:
        for kind in [options.only] if options.only else ["everysec", "always"]:
            results = {options.oracle: [], options.server: []}
            for _ in range(options.runs):
                for binary, runs in results.items():
                    runs.append(measure(binary, kind, options, os.path.join(folder, "data")))
            medians = {binary: {name: statistics.median(run[name] for run in runs) for name in runs[0]}
                       for binary, runs in results.items()}
            for binary, now in medians.items():
                print("%-9s %-14s %9.0f requests/s, p50 %6.3f ms, p99 %7.3f ms, %6.2f us of CPU a request%s" % (
                    kind, os.path.basename(binary), now["rate"], now["p50"], now["p99"], now["cpu"],
                    ", %.1f writes a sync" % now["writes"] if kind == "always" and now["writes"] else ""))
            ours, theirs = medians[options.server], medians[options.oracle]
            print("%-9s ratio: %.2f of the requests/s, %.2f of the p99, %.2f of the CPU time" % (
                kind, ours["rate"] / theirs["rate"], ours["p99"] / theirs["p99"], ours["cpu"] / theirs["cpu"]),
                flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
