#!/usr/bin/env python3
"""Bad input: what strangers send, and what operators get wrong.

    run.py --server BIN [--oracle BIN] [--seed N] [--threads N] [--only REGEX]

While each check does its worst, a healthy client works on; its latency and the server's memory are printed and have
limits. Where Redis has a behaviour, both servers are asked and the answers compared. Python's standard library only.
"""
import argparse
import os
import re
import resource
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "differential"))
sys.path.insert(0, HERE)

import checks       # noqa: E402
from harness import Lost, Server, free_port, is_redis       # noqa: E402
from healthy import Healthy     # noqa: E402

# A healthy client may wait longer beside an attack, but not this long. Generous: the machine may be busy otherwise.
HEALTHY_P99_MS = 500


class World:
    """How the checks start servers."""

    def __init__(self, options, certs):
        self.options = options
        self.certs = certs

    def start(self, binary, more=(), tls=False, ready=True, port=None):
        words = ["--maxclients", "11000", *more]
        tls_port = free_port() if tls else None
        if tls:
            words += ["--tls-port", tls_port, "--tls-cert-file", self.certs + "/server.crt", "--tls-key-file",
                      self.certs + "/server.key", "--tls-ca-cert-file", self.certs + "/ca.crt"]
        threads = None if is_redis(binary) else self.options.threads
        server = Server(binary, words, threads, ready=ready, port=port)
        server.tls_port = tls_port
        return server


class Memory:
    """How large a server becomes: the system keeps the most, from here on."""

    def __init__(self, server):
        self.status = "/proc/%d/status" % server.pid()
        with open("/proc/%d/clear_refs" % server.pid(), "w") as file:
            file.write("5")
        self.before = server.rss()

    def stop(self):
        try:
            with open(self.status) as file:
                most = int(re.search(r"VmHWM:\s*(\d+) kB", file.read()).group(1)) * 1024
        except (OSError, AttributeError):   # it died, which others will tell
            most = 0
        return self.before, max(self.before, most)


class Report:
    def __init__(self):
        self.passed = 0
        self.failed = 0

    def add(self, name, good, detail=""):
        if good:
            self.passed += 1
        else:
            self.failed += 1
        print("  %s %s%s" % ("ok     " if good else "FAILED ", name, "" if good else ": " + detail))
        sys.stdout.flush()


def under_attack(world, report, name, check, more, tls):
    """A check against a running server, with the healthy client beside it; then the same against the oracle."""
    outcomes = []
    for binary in (world.options.server, world.options.oracle):
        server = world.start(binary, more, tls)
        healthy, memory = Healthy(server.port), Memory(server)
        try:
            seen, limit = check(server, world)
        except (Lost, OSError) as problem:
            seen, limit = "%s: %s" % (type(problem).__name__, problem), 0
        outcomes.append((seen, limit, *memory.stop(), *healthy.finish(), server.alive(), server.log(1500)))
        server.stop()
    (ours, limit, before, peak, p50, p99, errors, alive, log), redis = outcomes
    print("%s: healthy p50 %.2f p99 %.2f ms (redis %.2f %.2f), memory %.1f -> %.1f MB (redis %.1f -> %.1f)" % (
        name, p50, p99, redis[4], redis[5], before / 1e6, peak / 1e6, redis[2] / 1e6, redis[3] / 1e6))
    report.add(name + ", server alive", alive, log)
    report.add(name + ", as redis", ours == redis[0], "ours %.300r, redis %.300r" % (ours, redis[0]))
    report.add(name + ", memory", peak - before <= limit, "grew %.1f MB, limit %.1f" % (
        (peak - before) / 1e6, limit / 1e6))
    report.add(name + ", healthy client", errors == 0 and p99 <= HEALTHY_P99_MS, "%d errors, p99 %.1f ms" % (
        errors, p99))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", default=os.path.join(TOP, "build", "oracle", "redis-server"))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default=".")
    options = parser.parse_args()
    print("seed %d" % options.seed)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    report = Report()
    with tempfile.TemporaryDirectory(prefix="keydb-certs-") as certs:
        if os.system("'%s' '%s' >/dev/null 2>&1" % (os.path.join(TOP, "utils", "gen-test-certs.sh"), certs)):
            raise SystemExit("no certificates")
        world = World(options, certs)
        for name, check, more, tls in checks.ATTACKS:
            if re.search(options.only, name):
                under_attack(world, report, name, check, more, tls)
        for name, check in checks.MISTAKES:
            if re.search(options.only, name):
                try:
                    for label, good, detail in check(world):
                        report.add("%s, %s" % (name, label), good, detail)
                except (Lost, OSError) as problem:
                    report.add(name, False, "%s: %s" % (type(problem).__name__, problem))
    print("%d passed, %d failed" % (report.passed, report.failed))
    return 1 if report.failed or not report.passed else 0


if __name__ == "__main__":
    sys.exit(main())
