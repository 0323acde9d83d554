#!/usr/bin/env python3
"""What TLS costs: our server beside Redis, and beside the TLS library alone (floor_tls.c).

    tls.py --server BIN [--server BIN2 ...] --oracle BIN [-n ROUNDS] [--seconds N] [--requests N] [CASE ...]

    p1, p32    GET of 64 bytes, pipeline 1 and 32, 50 clients of redis-benchmark
    8k         GET of 8 KiB
    full       connections that shake hands in full (ECDSA P-256, with a client's certificate), PING, and go
    resumed    the same, each resuming the one before
    beside     GET of 64 bytes at 20,000/s (open loop, load.c) alone, and while 300 connections a second shake hands in
               full (also open): milliseconds

Each round runs a case with floor, Redis and ours in turn, each freshly started, with one worker, on one processor, and
the clients on the other one; printed are medians over the rounds. cpu is the server's processor time, of all threads,
for a request or a connection; x its share of Redis'. Of connections 1 / cpu is what a processor can do a second; what
it did do is less, since the client has to do as much. With several servers all take turns; our last one is judged.
Figures mean something on an otherwise idle machine only.
"""
import argparse
import json
import os
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "differential"))

from harness import Lost, Server, cpu_ns, free_port      # noqa: E402

SERVER_CPU, CLIENT_CPU = "0", "1"
CLIENTS, THREADS = 50, 4
KEYS = {64: 100000, 8192: 10000}
GET_RATE, HANDSHAKE_RATE = 20000, 300
# Most cpu as a share of Redis', and the most by which p99 may grow.
BUDGETS = {"p1": 0.88, "p32": 0.38, "8k": 0.88, "full": 1.0, "resumed": 1 / 1.5, "beside": 2.0}


class Floor:
    """floor_tls.c, started and measured like a server."""

    def __init__(self, options, value_bytes):
        self.tls_port = free_port()
        self.process = subprocess.Popen(["taskset", "-c", SERVER_CPU, options.program("floor_tls"), str(self.tls_port),
                                         str(value_bytes), options.certs])
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.tls_port), 1).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def open_server(options, binary, value_bytes):
    """A server with the keys, or the floor."""
    if binary is None:
        return Floor(options, value_bytes)
    port, certs = free_port(), options.certs
    server = Server(binary, ["--tls-port", port, "--tls-cert-file", certs + "/server.crt", "--tls-key-file",
                             certs + "/server.key", "--tls-ca-cert-file", certs + "/ca.crt"], 1, SERVER_CPU)
    server.tls_port = port
    try:
        load(options, server.port, None, "--sequential", "--count", KEYS[value_bytes], "--pipeline", 32,
             "--connections", 4, "--keys", KEYS[value_bytes], "--value-size", value_bytes)
    except Lost:
        server.stop()
        raise
    return server


def run_pinned(*words):
    command = ["taskset", "-c", CLIENT_CPU, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise Lost("%s\n%s%s" % (shlex.join(command), done.stdout[-500:], done.stderr[-500:]))
    return done.stdout


def load(options, port, certs, *words):
    over = ["--tls", certs] if certs else []
    return json.loads(run_pinned(options.program("load"), "--port", port, "--json", *over, *words))


def handshakes(options, server, kind, rate=0):
    return [options.program("handshakes"), str(server.tls_port), options.certs, kind, str(options.seconds),
            str(rate), str(THREADS)]


def gets(pipeline, value_bytes):
    def case(options, binary):
        certs = options.certs
        requests = options.requests * pipeline // (3 if pipeline > 1 else 1)
        with open_server(options, binary, value_bytes) as server:
            before = cpu_ns(server.process.pid)
            text = run_pinned(options.tool, "-p", server.tls_port, "--csv", "-t", "get", "-c", CLIENTS, "-P", pipeline,
                              "-n", requests, "-r", KEYS[value_bytes], "-d", value_bytes, "--tls", "--cacert",
                              certs + "/ca.crt", "--cert", certs + "/client.crt", "--key", certs + "/client.key")
            cpu_us = (cpu_ns(server.process.pid) - before) / 1000 / requests
        fields = [field.strip('"') for field in text.strip().splitlines()[-1].split(",")]
        return {"rate": float(fields[1]), "cpu": cpu_us, "p50": float(fields[4]), "p99": float(fields[6])}
    return case


def connections(kind):
    def case(options, binary):
        with open_server(options, binary, 64) as server:
            before = cpu_ns(server.process.pid)
            figures = json.loads(run_pinned(*handshakes(options, server, kind)))
            cpu_us = (cpu_ns(server.process.pid) - before) / 1000 / figures["connections"]
        return {"rate": figures["rate"], "cpu": cpu_us, "p50": figures["p50"], "p99": figures["p99"]}
    return case


def beside(options, binary):
    words = ["--rate", GET_RATE, "--gets", 100, "--connections", CLIENTS, "--keys", KEYS[64], "--seconds",
             options.seconds, "--pipeline", 100]
    with open_server(options, binary, 64) as server:
        alone = load(options, server.tls_port, options.certs, *words)
        with subprocess.Popen(["taskset", "-c", CLIENT_CPU, *handshakes(options, server, "full", HANDSHAKE_RATE)],
                              stdout=subprocess.PIPE, text=True) as others:
            meanwhile = load(options, server.tls_port, options.certs, *words)
            came = json.loads(others.communicate(timeout=60)[0])
    return {"alone p50": alone["p50"], "alone p99": alone["p99"], "p50": meanwhile["p50"], "p99": meanwhile["p99"],
            "grows": meanwhile["p99"] / alone["p99"], "connections/s": came["rate"], "their p99": came["p99"]}


CASES = {"p1": gets(1, 64), "p32": gets(32, 64), "8k": gets(1, 8192), "full": connections("full"),
         "resumed": connections("resumed"), "beside": beside}


def show(name, label, figures, redis):
    if name == "beside":
        text = "  ".join("%s %7.3f" % pair for pair in figures.items())
    else:
        text = "%9.0f /s  cpu %7.2f us" % (figures["rate"], figures["cpu"])
        text += "  x %4.2f" % (figures["cpu"] / redis["cpu"]) if redis else "        "
        text += "  p50 %6.3f  p99 %6.3f ms" % (figures["p50"], figures["p99"])
    print("%-8s %-8s %s" % (name, label, text), flush=True)


def run_case(options, name):
    """Whether ours keeps the budget."""
    whos = {"floor": None, "redis": options.oracle}
    whos.update(("ours" if len(options.server) == 1 else "ours.%d" % index, binary)
                for index, binary in enumerate(options.server, 1))
    rounds = {label: [] for label in whos}
    refused = {}
    for _ in range(options.rounds):
        for label, binary in whos.items():
            try:
                rounds[label].append(CASES[name](options, binary))
            except Lost as problem:
                refused[label] = str(problem).splitlines()[-1]
    figures = {label: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
               for label, runs in rounds.items() if runs}
    for label in whos:
        if label in figures:
            show(name, label, figures[label], figures.get("redis"))
        else:
            print("%-8s %-8s %s" % (name, label, refused[label]), flush=True)
    ours = figures.get(label)
    if ours is None:
        return False
    if name != "beside" and "redis" not in figures:
        return True
    share = ours["grows"] if name == "beside" else ours["cpu"] / figures["redis"]["cpu"]
    print("%-8s %s  %.2f, budget %.2f" % (name, "pass" if share <= BUDGETS[name] else "MISS", share, BUDGETS[name]),
          flush=True)
    return share <= BUDGETS[name]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--tool", help="redis-benchmark; else the one beside the oracle")
    parser.add_argument("-n", "--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5, help="of the cases with handshakes")
    parser.add_argument("--requests", type=int, default=150000, help="of the cases without; with a pipeline more")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    if not set(options.cases) <= set(CASES):
        parser.error("the cases are " + ", ".join(CASES))
    options.tool = options.tool or os.path.join(os.path.dirname(os.path.abspath(options.oracle)), "redis-benchmark")
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(options.server[-1]))), "bench")
    options.program = lambda name: os.path.join(folder, name)
    with tempfile.TemporaryDirectory(prefix="keydb-tls-") as options.certs:
        subprocess.run(["sh", os.path.join(TOP, "utils", "gen-test-certs.sh"), options.certs], check=True)
        kept = [run_case(options, name) for name in options.cases or CASES]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
