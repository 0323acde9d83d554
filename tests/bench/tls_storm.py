#!/usr/bin/env python3
"""TLS handshakes without a pause while others are served, on our server and on Redis in turn.

    tls_storm.py --server BIN --oracle BIN --tool redis-benchmark [-n ROUNDS] [--seconds N] [--storm N] [--threads N]

50 TLS clients ask GET; first alone, then while --storm processes of `openssl s_time -new` make one full handshake after
the other. Printed are medians over the rounds: requests/s and latencies (ms) of the 50, handshakes/s. All share the
processors, so the figures say how a machine that is full divides its time. Fails when ours has the worse p99 meanwhile.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "differential"))

from harness import Lost, Server, free_port      # noqa: E402

FIGURES = ("requests/s", "p50", "p99", "most")


def busy(options, port, certs, requests):
    """One line of redis-benchmark --csv: test, rps, avg, min, p50, p95, p99, max."""
    done = subprocess.run([options.tool, "--csv", "-p", str(port), "-c", "50", "-n", str(requests), "-t", "get", "-d",
                           "64", "--tls", "--cacert", certs + "/ca.crt", "--cert", certs + "/client.crt", "--key",
                           certs + "/client.key"], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise Lost(done.stderr.strip() or done.stdout.strip())
    fields = [field.strip('"') for field in done.stdout.strip().split("\n")[-1].split(",")]
    return {"requests/s": float(fields[1]), "p50": float(fields[4]), "p99": float(fields[6]), "most": float(fields[7])}


def handshakes(process):
    text = process.communicate(timeout=60)[0]
    found = re.search(r"(\d+) connections in (\d+) real seconds", text)
    return int(found.group(1)) / max(1, int(found.group(2))) if found else 0


def one_run(options, binary, threads, certs):
    port = free_port()
    settings = ["--tls-port", port, "--tls-cert-file", certs + "/server.crt", "--tls-key-file", certs + "/server.key",
                "--tls-ca-cert-file", certs + "/ca.crt", "--maxclients", 5000]
    with Server(binary, settings, threads):
        calm = busy(options, port, certs, options.requests)
        storm = [subprocess.Popen(["openssl", "s_time", "-connect", "127.0.0.1:%d" % port, "-new", "-time",
                                   str(options.seconds), "-CAfile", certs + "/ca.crt", "-cert", certs + "/client.crt",
                                   "-key", certs + "/client.key"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True) for _ in range(options.storm)]
        meanwhile = busy(options, port, certs, options.requests)
        rate = sum(handshakes(process) for process in storm)
    return {"calm": calm, "storm": meanwhile, "rate": rate}


def show(label, runs):
    for phase in ("calm", "storm"):
        print("%-6s %-6s %s" % (label, phase, "  ".join(
            "%s %9.3f" % (name, statistics.median(run[phase][name] for run in runs)) for name in FIGURES)))
    print("%-6s handshakes/s %.0f" % (label, statistics.median(run["rate"] for run in runs)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--tool", required=True)
    parser.add_argument("-n", "--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=8, help="how long the storm lasts")
    parser.add_argument("--requests", type=int, default=60000, help="of the 50, in each phase")
    parser.add_argument("--storm", type=int, default=20, help="processes that shake hands")
    parser.add_argument("--threads", type=int, default=1, help="of our server; Redis has one")
    options = parser.parse_args()
    runs = {"redis": [], "ours": []}
    with tempfile.TemporaryDirectory() as certs:
        subprocess.run(["sh", os.path.join(TOP, "utils", "gen-test-certs.sh"), certs], check=True)
        for _ in range(options.rounds):
            runs["redis"].append(one_run(options, options.oracle, None, certs))
            runs["ours"].append(one_run(options, options.server, options.threads, certs))
    for label, figures in runs.items():
        show(label, figures)
    p99 = {label: statistics.median(run["storm"]["p99"] for run in figures) for label, figures in runs.items()}
    print("passed" if p99["ours"] <= p99["redis"] else "FAILED")
    return 0 if p99["ours"] <= p99["redis"] else 1


if __name__ == "__main__":
    sys.exit(main())
