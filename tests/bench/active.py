#!/usr/bin/env python3
"""What active replication costs: a pair of nodes of which one is written, beside the same server without it.

    active.py --server BIN [--plain BIN] [--only PART ...] [--runs N] [--quick] [--threads N] [--verbose]

set, incr, hset  processor time a request of the writing and of the receiving node; pipeline 32, --keys keys that are
                 there (16 bytes; values of 64 bytes). The server without active replication gets the same requests
                 from clients. Where the machine counts instructions of processes, these, too
memory           bytes a key of a node and of its peer, beside the server without
window           100,000 INCR/s on 1,000,000 keys, 20 ms from node to node and back: the most that the window took
pushes           100,000 RPUSH that come behind a cut among 1,000,000 of the node's own, of one list: seconds until they
                 are in their places, and the longest that a batch of them held its stripes; then one LPUSH 100 back
pops             both nodes pop the same 100,000 elements of a list of 1,000,000 behind a cut, one behind the other:
                 processor time of each pop by value, where all of them are gone and where they go before younger ones
cut              a pair is cut: 3,000,000 INCR of 10,000 counters and 300,000 HINCRBY and SADD on one side, 300,000 on
                 the other, active-window-size 32mb. Seconds until both have all, the most that the windows took
                 meanwhile; what was not exact
off              instructions a GET and a SET of --plain (an older server) and of this one, active replication off

Servers take turns, printed are medians. Where processor time is measured the written node has a processor of its own,
and its peer and the load generator share another one: so none of them drives the written one away. The load
generator is build/release/bench/load beside the server.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "active"))

from mesh import Kinds, Mesh, Node      # noqa: E402
from group import Wrong, wait_until     # noqa: E402 (the path is set by mesh)

MIB = 1 << 20
WRITES = ("set", "incr", "hset")
CPUS = sorted(os.sched_getaffinity(0))


def pin(node, cpu):
    for thread in os.listdir("/proc/%d/task" % node.pid()):
        os.sched_setaffinity(int(thread), {cpu})


class Instructions:
    """Of some processes, while they work; None where there is no counter."""

    def __init__(self, pids):
        self.perf = []
        for pid in pids:
            self.perf.append(subprocess.Popen(["perf", "stat", "-x", ",", "-e", "instructions:u", "-p", str(pid)],
                                              stderr=subprocess.PIPE, text=True))
        time.sleep(0.2)

    def end(self):
        counts = []
        for perf in self.perf:
            perf.send_signal(2)
            text = perf.communicate(timeout=20)[1].split(",")[0]
            counts.append(int(text) if text.isdigit() else None)
        return counts


class Bench:
    def __init__(self, options):
        self.options = options
        self.kinds = Kinds(options.server, None)
        self.program = options.load or os.path.join(os.path.dirname(os.path.abspath(options.server)), "..", "bench",
                                                    "load")

    def load(self, node, *words, apart=False):
        pinned = ["taskset", "-c", str(CPUS[-1])] if apart else []
        done = subprocess.run([*pinned, self.program, "--port", str(node.port), "--json", *map(str, words)],
                              capture_output=True, text=True, timeout=600, check=False)
        if not done.stdout:
            raise Wrong("the load generator: %s" % done.stderr.strip())
        done = json.loads(done.stdout)
        if done.get("errors"):
            raise Wrong("the load generator: %s" % done)
        return done

    def fill(self, node, write, keys):
        self.load(node, "--write", write, "--sequential", "--keys", keys, "--count", keys, "--pipeline", 32)

    def servers(self, kind):
        return Alone(self) if kind == "plain" else Two(self)

    def many(self, count):
        return count // 10 if self.options.quick else count

    # ---- the parts: each gives {figure: number}

    def cost(self, kind, write):
        keys, count = self.many(self.options.keys), self.many(self.options.count)
        with self.servers(kind) as servers:
            self.fill(servers.nodes[0], write, keys)
            servers.wait()
            for index, node in enumerate(servers.nodes):
                pin(node, CPUS[0] if index == 0 else CPUS[-1])
            before = [node.cpu_seconds() for node in servers.nodes]
            counters = Instructions([node.pid() for node in servers.nodes] if self.options.instructions else [])
            done = self.load(servers.nodes[0], "--write", write, "--keys", keys, "--count", count, "--pipeline", 32,
                             "--connections", self.options.connections, apart=True)
            servers.wait()
            cpu = [(node.cpu_seconds() - start) / count * 1e6 for node, start in zip(servers.nodes, before)]
            counts = counters.end()
            figures = {"writer us": cpu[0], "rate": done["rate"]}
            if len(cpu) > 1:
                figures["receiver us"] = cpu[1]
            for name, number in zip(("writer instructions", "receiver instructions"), counts):
                if number is not None:
                    figures[name] = number / count
            return figures

    def memory(self, kind):
        keys = self.many(self.options.memory_keys)
        with self.servers(kind) as servers:
            for node in servers.nodes:
                if kind != "plain":
                    node.ask("CONFIG", "SET", "active-history-limit", 0)
            before = [self.used(node) for node in servers.nodes]
            self.fill(servers.nodes[0], "set", keys)
            servers.wait()
            servers.wait_settled()
            for node in servers.nodes:
                self.wait_steady(node)
            used = [(self.used(node) - start) / keys for node, start in zip(servers.nodes, before)]
            return {"node, bytes a key": used[0], "peer, bytes a key": used[-1]}

    def used(self, node):
        """Without what the journal has."""
        fields = node.info("memory")
        return int(fields["used_memory"]) - int(fields.get("mem_journal", 0))

    def wait_steady(self, node):
        """What the history and links had is given back by and by."""
        seen = [self.used(node)]

        def is_steady():
            time.sleep(0.5)
            seen.append(self.used(node))
            return len(seen) > 3 and max(seen[-3:]) - min(seen[-3:]) < max(seen) // 10000

        wait_until(is_steady, 60, "its memory is steady")

    def window(self, kind):
        if kind == "plain":
            return {}
        keys, seconds = self.many(1000000), 4
        with Mesh(self.kinds, ["ours", "ours"], threads=self.options.threads, separate=True, delay_s=0.01) as mesh:
            node = mesh.nodes[0]
            self.fill(node, "incr", keys)
            wait_until(lambda: int(node.info("replication")["active_window_keys"]) == 0, 60, "all is settled")
            load = subprocess.Popen([self.program, "--port", str(node.port), "--json", "--write", "incr", "--keys",
                                     str(keys), "--rate", "100000", "--seconds", str(seconds), "--pipeline", "32"],
                                    stdout=subprocess.PIPE, text=True)
            most = [0, 0]
            while load.poll() is None:
                for index, each in enumerate(mesh.nodes):
                    most[index] = max(most[index], int(each.info("replication")["active_window_bytes"]))
                time.sleep(0.02)
            done = json.loads(load.communicate()[0])
            return {"node MiB": most[0] / MIB, "peer MiB": most[1] / MIB, "rate": done["rate"]}

    def pushes(self, kind):
        if kind == "plain":
            return {}
        late, rounds = 1000, 100
        own = self.many(10 * late)
        figures = {}
        with Mesh(self.kinds, ["ours", "ours"], threads=self.options.threads, separate=True,
                  options=["--active-window-size", "2gb", "--active-history-limit", "1gb"]) as mesh:
            a, b = mesh.nodes
            for node in mesh.nodes:
                node.ask("DEBUG", "OPERATIONS", "STOP")
            a.ask("RPUSH", "l", "first")
            wait_until(lambda: int(b.ask("LLEN", "l")) == 1, 30, "the list is there")
            mesh.cut()
            slowest = 0
            for turn in range(rounds):
                a.calls([["RPUSH", "l", "late %d" % number] for number in range(turn * late, (turn + 1) * late)])
                b.calls([["RPUSH", "l", "own %d" % number] for number in range(turn * own, (turn + 1) * own)])
                begin = time.monotonic()
                int(b.ask("LLEN", "l"))
                slowest = max(slowest, time.monotonic() - begin)
            for node in mesh.nodes:
                node.debug_active("longest_batch_us")
            size = 1 + rounds * (late + own)
            mesh.heal()
            wait_until(lambda: int(b.ask("LLEN", "l")) > 1 + rounds * own, 60, "the first ones are there")
            begin = at = time.monotonic()
            while int(b.ask("LLEN", "l")) < size:
                now = time.monotonic()
                slowest, at = max(slowest, now - at), now
                if at - begin > 200:
                    raise Wrong("%s of %d are there" % (int(b.ask("LLEN", "l")), size))
            figures["late, seconds"] = time.monotonic() - begin
            figures["client waits, ms"] = slowest * 1e3
            figures["held, ms"] = b.debug_active("longest_batch_us") / 1e3
            wait_until(lambda: int(a.ask("LLEN", "l")) == size, 200, "the other node has all of it")
            figures["many, seconds"] = time.monotonic() - begin
            figures["many, held, ms"] = a.debug_active("longest_batch_us") / 1e3
            wait_until(lambda: b.info("replication")["active_window_keys"] == "0", 60, "all is settled")
            if a.ask("DEBUG", "DIGEST") != b.ask("DEBUG", "DIGEST"):
                raise Wrong("the lists differ")
            mesh.cut()
            a.ask("LPUSH", "l", "x")
            time.sleep(0.01)
            b.calls([["LPUSH", "l", "y"] for _ in range(100)])
            mesh.heal()
            wait_until(lambda: int(b.ask("LLEN", "l")) == size + 101, 60, "it is there")
            if b.ask("LINDEX", "l", 100) != b"x":
                raise Wrong("it is not in its place")
            figures["100 back, held, ms"] = b.debug_active("longest_batch_us") / 1e3
        return figures

    def pops(self, kind):
        if kind == "plain":
            return {}
        pops, size, step = self.many(100000), self.many(1000000), 1000
        with Mesh(self.kinds, ["ours", "ours"], threads=self.options.threads, separate=True,
                  options=["--active-window-size", "2gb", "--active-history-limit", "1gb"]) as mesh:
            a, b = mesh.nodes
            for node in mesh.nodes:
                node.ask("DEBUG", "OPERATIONS", "STOP")
            for first in range(0, size, step):
                a.ask("RPUSH", "l", *("element %07d" % number for number in range(first, first + step)))
            wait_until(lambda: int(b.ask("LLEN", "l")) == size, 60, "the list is there")
            wait_until(lambda: b.info("replication")["active_window_keys"] == "0", 60, "all is settled")
            mesh.cut()
            for node in (b, a):     # what b does is older
                for _ in range(0, pops, step):
                    node.calls([["LPOP", "l"]] * step)
                time.sleep(0.01)
                node.ask("SET", "mark %s" % node.index, "behind its pops")
            before = [node.cpu_seconds() for node in mesh.nodes]
            mesh.heal()
            for node, other in ((a, b), (b, a)):
                wait_until(lambda node=node, other=other: node.ask("EXISTS", "mark %s" % other.index) == b"1", 300,
                           "all pops have come")
            cpu = [(node.cpu_seconds() - start) / pops * 1e6 for node, start in zip(mesh.nodes, before)]
            for node in mesh.nodes:
                if int(node.ask("LLEN", "l")) != size - pops:
                    raise Wrong("the list has %s elements" % node.ask("LLEN", "l"))
            return {"gone, us a pop": cpu[1], "older, us a pop": cpu[0]}

    def cut(self, kind):
        if kind == "plain":
            return {}
        keys, chunk = 10000, 10000
        own, late = self.many(3000000), self.many(300000)
        most, figures = [0, 0], {}
        with Mesh(self.kinds, ["ours", "ours"], threads=self.options.threads, separate=True,
                  options=["--active-window-size", "32mb", "--active-history-limit", "2gb",
                           "--journal-memory-limit", "64mb"]) as mesh:
            a, b = mesh.nodes

            def look():
                for index, node in enumerate(mesh.nodes):
                    most[index] = max(most[index], int(node.info("replication")["active_window_bytes"]))

            for node in mesh.nodes:
                node.ask("DEBUG", "OPERATIONS", "STOP")
            for at in range(0, keys, chunk):
                a.calls([["SET", "n:%d" % key, 1] for key in range(at, at + chunk)])
            wait_until(lambda: int(b.ask("DBSIZE")) == keys, 30, "the counters are there")
            mesh.cut()
            begin = time.monotonic()
            for at in range(0, own, chunk):
                a.calls([["INCR", "n:%d" % (number % keys)] for number in range(at, at + chunk)])
                a.calls([["HINCRBY", "h:%d" % (number % 1000), number // 7 % 5, 2] if number % 4 else
                         ["SADD", "s:%d" % (number % 1000), number] for number in range(at // 10, (at + chunk) // 10)])
                b.calls([["INCR", "n:%d" % (number % keys)] for number in range(at // 10, (at + chunk) // 10)])
                look()
            figures["cut, seconds"] = time.monotonic() - begin
            mesh.heal()
            begin = time.monotonic()
            total = own // keys + late // keys + 1
            counters = ["n:%d" % key for key in range(keys)]
            while any(set(node.ask("MGET", *counters)) != {("$", b"%d" % total)} for node in mesh.nodes):
                look()
                time.sleep(0.1)
                if time.monotonic() - begin > 600:
                    raise Wrong("they are %s" % [set(node.ask("MGET", *counters[:20])) for node in mesh.nodes])
            figures["heals, seconds"] = time.monotonic() - begin
            wait_until(lambda: all(node.info("replication")["active_window_keys"] == "0" for node in mesh.nodes), 60,
                       "all is settled")
            if a.ask("DEBUG", "DIGEST") != b.ask("DEBUG", "DIGEST"):
                raise Wrong("the nodes differ")
            facts = [node.info("replication") for node in mesh.nodes]
        for name, field in (("given up", "active_window_given_up"), ("late", "active_operations_late"),
                            ("written anew", "active_repaired_keys")):
            figures[name] = sum(int(each[field]) for each in facts)
        figures["node MiB"], figures["peer MiB"] = most[0] / MIB, most[1] / MIB
        return figures

    def off(self, kind):
        """`plain` is the older server here."""
        binary = self.options.plain if kind == "plain" else self.options.server
        if binary is None:
            return {}
        figures = {}
        for name, words in (("get", ["--gets", 100]), ("set", [])):
            figures[name] = self.count_instructions(binary, name, words)
        return figures

    def count_instructions(self, binary, name, words):
        """By valgrind: of 20,000 requests less than of 60,000, so that the start does not count."""
        counts = []
        for number in (20000, 60000):
            node = Traced(Kinds(binary, None), binary)
            try:
                self.load(node, *words, "--keys", 1000, "--count", number, "--pipeline", 32, "--connections", 1)
                node.shut_down()
            finally:
                node.stop()
            counts.append(node.instructions())
        return (counts[1] - counts[0]) / 40000


class Traced(Node):
    """A server that is not active, whose instructions valgrind counts. It is read when the server has ended."""

    def __init__(self, kinds, binary):
        self.folder_of_counts = tempfile.mkdtemp(prefix="keydb-bench-")
        wrapper = os.path.join(self.folder_of_counts, "server")
        with open(wrapper, "w", encoding="ascii") as script:
            script.write("#!/bin/sh\nexec valgrind --tool=callgrind --callgrind-out-file='%s' '%s' \"$@\" 2>/dev/null\n"
                         % (self.counts(), os.path.abspath(binary)))
        os.chmod(wrapper, 0o755)
        kinds.binaries["ours"] = wrapper
        super().__init__(kinds, "ours", 0, [], 1, active=False)

    def counts(self):
        return os.path.join(self.folder_of_counts, "counts")

    def instructions(self):
        with open(self.counts(), encoding="ascii", errors="replace") as lines:
            total = next(int(line.split()[1]) for line in lines if line.startswith("totals:"))
        shutil.rmtree(self.folder_of_counts)
        return total


class Alone:
    def __init__(self, bench):
        self.nodes = [Node(bench.kinds, "ours", 0, [], bench.options.threads, active=False)]

    def wait(self):
        self.nodes[0].ask("PING")

    def wait_settled(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in reversed(self.nodes):
            node.stop()


class Two(Alone):
    """Without proxies in between, which take processor time that others need."""

    def __init__(self, bench):
        self.nodes = []
        self.marks = 0
        try:
            for index in range(2):
                self.nodes.append(Node(bench.kinds, "ours", index, [], bench.options.threads))
                self.nodes[-1].ask("DEBUG", "OPERATIONS", "STOP")   # the harness reads them; nobody does here
            for node, other in zip(self.nodes, reversed(self.nodes)):
                node.ask("REPLICAOF", "127.0.0.1", other.port)
            for node in self.nodes:
                wait_until(lambda node=node: node.info("replication")["active_links_up"] == "1", 30, "the links are up")
            self.wait()
        except BaseException:
            self.__exit__()
            raise

    def wait(self):
        """Until the second node has what the first one has."""
        self.marks += 1
        self.nodes[0].ask("SET", "mark", self.marks)
        wait_until(lambda: self.nodes[1].ask("GET", "mark") == b"%d" % self.marks, 120, "the peer has everything")

    def wait_settled(self):
        for node in self.nodes:
            wait_until(lambda node=node: node.info("replication")["active_window_keys"] == "0", 60, "all is settled")


# Part: figure, of which figure of the server without (None: of none), the bound.
BUDGETS = {
    "set": [("writer us", "writer us", 1.5), ("receiver us", "writer us", 1.0)],
    "incr": [("writer us", "writer us", 1.7), ("receiver us", "writer us", None)],
    "hset": [("writer us", "writer us", 1.7), ("receiver us", "writer us", None)],
    "memory": [("node, bytes a key", "less", 8), ("peer, bytes a key", "less", 8)],
    "window": [("node MiB", None, 32), ("peer MiB", None, 32)],
    "pushes": [("late, seconds", None, 5), ("held, ms", None, 5), ("client waits, ms", None, None),
               ("many, seconds", None, None), ("many, held, ms", None, 5), ("100 back, held, ms", None, 1)],
    "pops": [("gone, us a pop", None, 5), ("older, us a pop", None, None)],
    "cut": [("node MiB", None, 32), ("peer MiB", None, 32), ("given up", None, 0), ("late", None, 0),
            ("written anew", None, 0), ("cut, seconds", None, None), ("heals, seconds", None, None)],
    "off": [("get", "get", 1.01), ("set", "set", 1.01)],
}


def judge(part, active, plain):
    bad = 0
    for name, of, bound in BUDGETS[part]:
        mine = active.get(name)
        theirs = None if of is None else plain.get(name if of == "less" else of)
        if mine is None:
            print("%-8s %-20s not measured" % (part, name))
            continue
        value = mine
        if theirs is not None:
            value = mine - theirs if of == "less" else mine / theirs
        good = bound is None or value <= bound
        bad += not good
        print("%-8s %-20s %10.3f %10s %10.3f   %-8s %s" % (
            part, name, mine, "-" if theirs is None else "%.3f" % theirs, value,
            "-" if bound is None else "<= %g" % bound, "" if bound is None else "ok" if good else "MISSED"), flush=True)
    for name in active:
        if name.endswith("instructions") and name in active:
            theirs = plain.get("writer instructions")
            print("%-8s %-20s %10.0f %10.0f %10.3f" % (part, name, active[name], theirs, active[name] / theirs))
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--plain", help="an older server, for `off`")
    parser.add_argument("--only", nargs="+", choices=sorted(BUDGETS), metavar="PART")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--keys", type=int, default=100000)
    parser.add_argument("--memory-keys", type=int, default=1000000, help="of the part `memory`")
    parser.add_argument("--count", type=int, default=2000000)
    parser.add_argument("--connections", type=int, default=10)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--instructions", action="store_true", help="count them, where the machine can")
    parser.add_argument("--load", help="the load generator")
    parser.add_argument("--verbose", action="store_true", help="each run's figures")
    bench = Bench(parser.parse_args())
    print("%-8s %-20s %10s %10s %10s   %s" % ("part", "medians of %d" % bench.options.runs, "active", "without", "",
                                              "budget"))
    bad = 0
    for part in bench.options.only or BUDGETS:
        results = {"plain": [], "active": []}
        runs = 1 if part in ("memory", "window", "pushes", "pops", "off") else bench.options.runs
        for _ in range(runs):
            for kind, figures in results.items():
                figures.append(bench.cost(kind, part) if part in WRITES else getattr(bench, part)(kind))
                if bench.options.verbose:
                    print("  %s %s: %s" % (part, kind, json.dumps(figures[-1])), flush=True)
        medians = {kind: {name: statistics.median(run[name] for run in figures) for name in figures[0]}
                   for kind, figures in results.items()}
        bad += judge(part, medians["active"], medians["plain"])
    print("%d outside of the budget" % bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
