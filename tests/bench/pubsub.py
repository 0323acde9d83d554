#!/usr/bin/env python3
"""PUBLISH to many subscribers: deliveries a second and server CPU time a delivery, ours beside redis-server.

    pubsub.py --server BIN --oracle BIN [--subscribers N] [--pipeline N,...] [--bytes N] [--publishers N]
              [--seconds S] [--runs N] [--threads N] [--io-threads N] [--least RATIO]
              [--server-cpus LIST] [--client-cpus LIST]

Each run starts both servers afresh and runs fanout.c against them, in turn; medians are printed, and the ratio of
deliveries a second. With --least it fails when a ratio is below. All threads share the processors of the machine, so
the ratio says what two servers make of one machine; the CPU time says what a delivery costs each.
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

# A subscriber is never cut off here: the window of fanout.c is what bounds it.
SETTINGS = ["--client-output-buffer-limit", "pubsub 0 0 0"]


def build():
    program = os.path.join(TOP, "build", "bench", "fanout")
    os.makedirs(os.path.dirname(program), exist_ok=True)
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror", "-o",
                    program, os.path.join(HERE, "fanout.c")], check=True)
    return program


def measure(program, binary, options, pipeline):
    ours = "redis" not in os.path.basename(binary)
    extra = ["--min-clients-per-thread", "0"] if ours else []
    with Server(binary, SETTINGS + extra, options.threads if ours else options.io_threads,
                cpus=options.server_cpus) as server:
        pinned = ["taskset", "-c", options.client_cpus] if options.client_cpus else []
        done = subprocess.run([*pinned, program, str(server.port), str(server.process.pid), str(options.subscribers),
                               str(pipeline), str(options.bytes), str(options.seconds), str(options.publishers)],
                              capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise Lost("%s: %s" % (binary, done.stderr.strip()))
        return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--subscribers", type=int, default=100)
    parser.add_argument("--publishers", type=int, default=1)
    parser.add_argument("--pipeline", default="1,16", help="PUBLISH under way for each publisher")
    parser.add_argument("--bytes", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="workers of ours")
    parser.add_argument("--io-threads", type=int, default=1, help="io-threads of redis-server")
    parser.add_argument("--server-cpus", help="as for taskset; without it anywhere")
    parser.add_argument("--client-cpus")
    parser.add_argument("--least", type=float, default=0)
    options = parser.parse_args()
    program = build()
    failed = False
    for pipeline in (int(word) for word in options.pipeline.split(",")):
        results = {options.oracle: [], options.server: []}
        for _ in range(options.runs):
            for binary, runs in results.items():
                runs.append(measure(program, binary, options, pipeline))
        medians = []
        for binary, runs in results.items():
            rate, cpu = (statistics.median(run[name] for run in runs) for name in ("rate", "cpu_us"))
            medians.append((rate, cpu))
            print("pipeline %-3d %-14s %9.0f deliveries/s, %.3f us of server CPU each" % (
                pipeline, os.path.basename(binary), rate, cpu))
        ratio = medians[1][0] / medians[0][0]
        print("pipeline %-3d ratio: %.2f of the deliveries/s, %.2f of the CPU time" % (
            pipeline, ratio, medians[1][1] / medians[0][1]), flush=True)
        failed = failed or ratio < options.least
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
