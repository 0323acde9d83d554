#!/usr/bin/env python3
"""What it costs to compare two nodes by digests, and to bring a node up to date whose peers have cut their history.

    tests/active/comparing.py --server build/release/bin/keydb-server [--only equal|rewritten|restarted|late|frontier]
                              [--keys 1000000] [--changes 100000] [--nodes 6] [--check]

    equal      two nodes with the same keys compare: bytes on the wire, processor time of each node
    rewritten  two nodes each rewrite some keys during a cut, with a history that holds that, and with less: bytes,
               seconds until equal. How long the cut takes makes no difference
    restarted  one of several nodes is down while keys are rewritten, with less history than that: bytes, its memory,
               how long commands of the others take meanwhile
    late       two nodes add to the same keys during a cut, with a window that does not hold that: how much is lost
    frontier   how far F is behind the clock while all write

With --check the figures have to be within the bounds (512 KiB and, for each million keys, 0.2 s; 1.3 times the changes
and 5 s; 1.3 times the memory, twice the time of idle nodes; one in a hundred lost; three beats).
"""
import argparse
import os
import random
import re
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
for folder in (os.path.join(TOP, "tests", "replication"), os.path.join(TOP, "tests", "differential"), HERE):
    sys.path.insert(0, folder)

from group import Wrong, wait_until     # noqa: E402
from harness import Connection, Lost, Server     # noqa: E402

ACTIVE = ["--active-replica", "yes", "--multi-master", "yes", "--enable-debug-command", "yes"]
ENTRY_BYTES = 90        # a SET of a key of 16 and a value of 64 bytes, on a link
REWRITE = """
for i = tonumber(ARGV[1]), ARGV[2] - 1 do
    local text = redis.sha1hex(ARGV[3] .. i)
    redis.call("SET", string.format("key:%012d", i), ARGV[3] .. text .. redis.sha1hex(text):sub(1, 23))
end"""


class Node:
    def __init__(self, options, more=()):
        self.server = Server(options.server, [*ACTIVE, *more], threads=options.threads)
        self.connection = Connection(self.server.port, 600)
        self.masters = []

    def ask(self, *words):
        kind, value = self.connection.command(*words)
        if kind == "-":
            raise Wrong("%s: %s" % (words[0], value))
        return int(value) if kind == ":" else value

    def info(self, section):
        text = self.ask("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def follow(self, *others):
        for other in others:
            self.ask("REPLICAOF", "127.0.0.1", other.server.port)

    def received_bytes(self):
        return sum(int(re.search("received_bytes=(\\d+)", value).group(1))
                   for name, value in self.info("replication").items()
                   if name.startswith("active_peer") and "received_bytes=" in value)

    def cpu_s(self):
        cpu = self.info("cpu")
        return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])

    def write(self, begin, end, letter, step=1000):
        for at in range(begin, end, step):
            self.ask("EVAL", REWRITE, "0", str(at), str(min(at + step, end)), letter)

    def links_up(self):
        return int(self.info("replication")["active_links_up"])

    def digest(self):
        """None while it is loading."""
        try:
            return self.ask("DEBUG", "DIGEST")
        except Wrong:
            return None

    def has(self, key, value):
        """Not while it is loading."""
        try:
            return self.ask("GET", key) == value
        except Wrong:
            return False

    def stop(self):
        self.connection.close()
        self.server.stop()


class Nodes:
    def __init__(self, options, count, more=()):
        self.items = [Node(options, more) for _ in range(count)]

    def __enter__(self):
        return self.items

    def __exit__(self, *_):
        for node in self.items:
            node.stop()


def join(nodes):
    for node in nodes:
        node.follow(*[other for other in nodes if other is not node])
    wait_until(lambda: all(node.links_up() == len(nodes) - 1 for node in nodes), 60, "links are up")


def seconds_until_equal(nodes, key, value):
    begun = time.monotonic()

    def is_there(node):
        try:
            return node.ask("GET", key) == value
        except Wrong:
            return False
    def dirty(node):
        try:
            return int(node.info("replication")["active_dirty_keys"])
        except Wrong:
            return None
    wait_until(lambda: all(node.has(key, value) for node in nodes), 120, "%s is there" % key)
    came = time.monotonic() - begun
    while True:
        wait_until(lambda: all(dirty(node) == 0 for node in nodes), 120, "all is clean")
        took = time.monotonic() - begun         # to take the digests takes its time, too
        if nodes[0].digest() is not None and len({node.digest() for node in nodes}) == 1:
            return came, took
        if took > 120:
            raise Wrong("they are not equal")


def equal(options):
    with Nodes(options, 2) as nodes:
        a, b = nodes
        join(nodes)
        for node in nodes:
            node.ask("DEBUG", "POPULATE", str(options.keys), "key", "64")
        idle = measure(nodes, lambda: time.sleep(5))
        compared = measure(nodes, lambda: reply.append(a.connection.command("KEYDB.ACTIVE", "COMPARE", "600000")))
        assert b"equal" in str(reply[-1]).encode()
        for at, node in enumerate("ab"):
            cpu, size = (compared[at][i] - idle[at][i] * compared[at][2] / idle[at][2] for i in (0, 1))
            print("    %s: %.2f s of processor time, %d bytes received beside beats, %.1f s" %
                  (node, cpu, size, compared[at][2]))
            if options.check and (cpu > 0.2 * options.keys / 1e6 + 0.1 or size > 512 << 10):
                raise Wrong("too much")
        if a.info("replication")["active_compared_different"] != "0":
            raise Wrong("slots differ")


reply = []


def measure(nodes, act):
    begun = time.monotonic()
    before = [(node.cpu_s(), node.received_bytes()) for node in nodes]
    act()
    took = time.monotonic() - begun
    return [(node.cpu_s() - cpu, node.received_bytes() - size, took) for node, (cpu, size) in zip(nodes, before)]


def rewritten(options):
    for limit in ("256mb", "1mb"):
        rewrite(options, limit)


def rewrite(options, limit):
    with Nodes(options, 2, ["--active-history-limit", limit]) as nodes:
        a, b = nodes
        join(nodes)
        a.write(0, options.keys, "o")
        a.ask("SET", "loaded", "1")
        seconds_until_equal(nodes, "loaded", b"1")
        for node in nodes:
            node.ask("REPLICAOF", "NO", "ONE")
        a.write(0, options.changes, "a")
        both = options.changes * options.changes // options.keys       # as many as if they were random
        b.write(options.changes - both, 2 * options.changes - both, "b")
        a.ask("SET", "of-a", "1")
        b.ask("SET", "of-b", "1")
        a.follow(b)
        b.follow(a)
        _, took = seconds_until_equal(nodes, "of-a", b"1")
        peers = [node.info("replication")["active_peer0"] for node in nodes]
        report(options, "rewritten, history of " + limit, sum(node.received_bytes() for node in nodes),
               2 * options.changes, took)
        print("    of states: " + ", ".join(re.search("state_bytes=(\\d+)", peer).group(1) for peer in peers))
        if options.check and took > 5:
            raise Wrong("it took too long")


class Watch:
    """Asks some nodes in turn, and notes how long they take to answer."""

    def __init__(self, nodes):
        self.connections = [Connection(node.server.port, 60) for node in nodes]
        self.times, self.ends = [], False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.ends:
            for connection in self.connections:
                begun = time.monotonic()
                connection.command("GET", "key:%012d" % random.randrange(100000))
                self.times.append(time.monotonic() - begun)
                time.sleep(0.001)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        self.thread.join()
        for connection in self.connections:
            connection.close()

    def p99_ms(self):
        return sorted(self.times)[len(self.times) * 99 // 100] * 1000


def restarted(options):
    with Nodes(options, options.nodes, ["--active-history-limit", "1mb", "--appendonly", "yes", "--appendfsync",
                                        "everysec"]) as nodes:
        join(nodes)
        nodes[0].write(0, options.keys, "o")
        nodes[0].ask("SET", "loaded", "1")
        seconds_until_equal(nodes, "loaded", b"1")
        down = nodes[-1]
        memory = int(down.info("memory")["used_memory_peak"])
        with Watch(nodes[:-1]) as idle:
            time.sleep(3)
        down.connection.close()
        down.server.process.kill()
        down.server.process.wait(60)
        nodes[0].write(0, options.changes, "a")
        nodes[0].ask("SET", "of-a", "1")
        with Watch(nodes[:-1]) as watch:
            down.server.start()
            down.connection = Connection(down.server.port, 600)
            wait_until(lambda: down.has("loaded", b"1"), 120, "its own data is there")
            begun = time.monotonic()
            down.follow(*nodes[:-1])
            wait_until(lambda: down.has("of-a", b"1"), 120, "it is back")
            took = time.monotonic() - begun
        seconds_until_equal([down, nodes[0]], "of-a", b"1")
        report(options, "restarted", down.received_bytes(), options.changes, took)
        peak = int(down.info("memory")["used_memory_peak"])
        print("    memory at most %.0f MB, before %.0f MB" % (peak / 1e6, memory / 1e6))
        print("    the others answer: 99 %% within %.2f ms, idle %.2f ms" % (watch.p99_ms(), idle.p99_ms()))
        if options.check and peak > 1.3 * memory:
            raise Wrong("too much memory")


ADD = """
for i = 1, 1000 do redis.call("INCRBY", "n:" .. i, ARGV[1]) end"""


def late(options):
    """Keys that were there before, and more operations than the window holds."""
    with Nodes(options, 2, ["--active-window-size", "1mb"]) as nodes:
        a, b = nodes
        join(nodes)
        a.ask("EVAL", ADD, "0", "1000")
        a.ask("SET", "loaded", "1")
        seconds_until_equal(nodes, "loaded", b"1")
        for node in nodes:
            node.ask("REPLICAOF", "NO", "ONE")
        for _ in range(100):
            for node in nodes:
                node.ask("EVAL", ADD, "0", "1")
        a.ask("SET", "of-a", "1")
        a.follow(b)
        b.follow(a)
        for _ in range(20):     # while dirty keys are written anew
            for node in nodes:
                node.ask("EVAL", ADD, "0", "1")
        b.ask("SET", "of-b", "1")
        seconds_until_equal(nodes, "of-b", b"1")
        values = [int(a.ask("GET", "n:%d" % i)) - 1000 for i in range(1, 1001)]
        facts = [node.info("replication") for node in nodes]
        lost = 1 - sum(values) / 240000
        print("    late: %.3f %% of the increments is lost, at most %.1f %% of a key; late %s, given up %s" % (
            100 * lost, 100 * max(abs(1 - value / 240) for value in values),
            [fact["active_operations_late"] for fact in facts], [fact["active_window_given_up"] for fact in facts]))
        if options.check and abs(lost) > 0.01:
            raise Wrong("too much")


def frontier(options):
    with Nodes(options, 3) as nodes:
        join(nodes)
        ages = []
        end = time.monotonic() + 5
        while time.monotonic() < end:
            for node in nodes:
                node.write(0, 200, "a", 200)
                ages.append(int(node.info("replication")["active_frontier_age_ms"]))
                time.sleep(0.005)
        ages.sort()
        print("    frontier: %d ms behind the clock, 99 %% within %d ms" % (
            ages[len(ages) // 2], ages[len(ages) * 99 // 100]))
        if options.check and ages[len(ages) // 2] > 300:
            raise Wrong("too far behind")


def report(options, what, size, changes, took):
    share = size / (changes * ENTRY_BYTES)
    print("    %s: %d bytes for %d changes (%.2f of them as entries), equal after %.1f s" %
          (what, size, changes, share, took))
    if options.check and share > 1.3:
        raise Wrong("too many bytes")


PARTS = [equal, rewritten, restarted, late, frontier]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--keys", type=int, default=200000)
    parser.add_argument("--changes", type=int, default=20000)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    failed = 0
    for part in PARTS:
        if options.only not in part.__name__:
            continue
        try:
            part(options)
            print("%s: ok" % part.__name__)
        except (Wrong, Lost, OSError, AssertionError) as problem:
            failed += 1
            print("%s: failed: %s" % (part.__name__, problem))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
