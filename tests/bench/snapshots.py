#!/usr/bin/env python3
"""What a snapshot costs while clients write, and how long it takes: methods take turns on one server; the budget.

    snapshots.py --server BIN [--methods threads,fork] [--keys N] [--zset N] [--runs N] [--threads N] [--folder DIR]
                 [--quick] [--verbose]

One server has --keys keys (16 bytes, values of 64 bytes) and one sorted set of --zset members. Each run does for each
method:

idle  BGSAVE while nobody writes: seconds
full  writers at full speed: SET over all keys, pipeline 32, and ZADD over all members. First 3 s without a snapshot,
      then one is made: requests/s of the writers while it runs as the server counts them, and memory above what there
      was before. Memory is the proportional set size (smaps_rollup) of the server and its child
half  the same writers in an open loop at half of what the server took in the first of these parts, and a client that
      sends ZADD and ZSCORE to the sorted set, 500 a second each. 5 s without a snapshot, then one is made: seconds, the
      longest waits of clients and the 99.9th percentile from outside, and what the server itself counts as stall
      because of the snapshot: the longest hold of a stripe for which a command waited, and the time at the gate (INFO
      persistence: snapshot_longest_wait_usec, snapshot_gate_usec; latest_fork_usec of a child; of a server without the
      first, snapshot_longest_hold_usec, for which maybe nobody waited). That is judged, as the former is the machine's,
      too

Printed are medians, the single values with --verbose. A method that the server does not know is left out; one that has
only fork is measured as it is. Files go to a folder that is removed. --quick: 100,000 keys and members, one run.
"""
import argparse
import json
import multiprocessing
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "replication"))

from group import Lost, Member, Wrong      # noqa: E402
from harness import Connection, encode      # noqa: E402

MIB = 1 << 20
KEY_BYTES, KEY_FILE_BYTES = 115, 85         # of memory and of the file, for the look at what the machine has
MEMBER_BYTES, MEMBER_FILE_BYTES = 65, 32
ZSET = b"zset"
FILL_BATCH, FILL_PROCESSES = 500, 4
LOOK_S = 0.2
ASIDE_S = 3600      # a generator that was forgotten ends by itself
COUNTS = ("snapshot_longest_wait_usec", "snapshot_gate_usec", "snapshot_longest_hold_usec", "snapshot_slowed_usec")

# Figure, how it is judged, and the bound: of threads alone, or of threads beside fork.
BUDGET = [
    ("half: stall counted by the server, ms", "<=", 2.0),
    ("half: gate, ms", "", None),
    ("half: longest hold, ms", "", None),
    ("half: longest wait, ms", "", None),
    ("half: fork, ms", "", None),
    ("half: slowed, ms", "", None),
    ("half: SET max without, ms", "", None),
    ("half: SET max, ms", "", None),
    ("half: SET p99.9 without, ms", "", None),
    ("half: SET p99.9, ms", "", None),
    ("half: zset max without, ms", "", None),
    ("half: zset max, ms", "<= or as without", 10.0),
    ("half: zset p99.9, ms", "", None),
    ("full: memory above, %", "<=", 8.0),
    ("full: kept at most, MiB", "", None),
    ("full: SET/s without", "", None),
    ("full: SET/s", "ratio >=", 1.0),
    ("full: ZADD/s without", "", None),
    ("full: ZADD/s", "ratio >=", 1.0),
    ("idle: seconds", "ratio <=", 1.5),
    ("half: seconds", "ratio <=", 1.5),
    ("full: seconds", "", None),
]


def fill_part(port, first, count):
    """Members as keydb-benchmark names them, with scores that are not in their order."""
    connection = Connection(port)
    for begin in range(first, first + count, FILL_BATCH):
        words = [b"ZADD", ZSET]
        for number in range(begin, min(begin + FILL_BATCH, first + count)):
            words += (b"%d" % (number * 7919 % 1000003), b"m:%012d" % number)
        connection.command(*words)
    connection.close()


def children_of(pid):
    found = []
    for thread in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/children" % (pid, thread)) as file:
                found += map(int, file.read().split())
        except OSError:     # it has ended
            pass
    return found


def memory_of(pid):
    """Bytes: of a page that several processes share, each has its part."""
    total = 0
    for each in [pid, *children_of(pid)]:
        try:
            with open("/proc/%d/smaps_rollup" % each) as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
        except OSError:
            pass
    return total


class Memory:
    """The most that a process and its children have. Looking holds its memory map, so it is not done too often."""

    def __init__(self, pid):
        self.pid = pid
        self.before = self.most = memory_of(pid)
        self.at = time.monotonic()

    def look(self):
        if time.monotonic() - self.at > LOOK_S:
            self.most = max(self.most, memory_of(self.pid))
            self.at = time.monotonic()


class Bench:
    def __init__(self, options):
        self.options = options
        tools = os.path.dirname(os.path.abspath(options.server))
        self.load_program = options.load or os.path.join(tools, "..", "bench", "load")
        self.mix_program = os.path.join(tools, "keydb-benchmark")
        self.folder = tempfile.mkdtemp(prefix="snapshots-", dir=options.folder)
        self.server = None
        self.running = []
        self.files = 0
        self.has_methods = False
        self.rate = None    # of the writers in the open loop, the same for all methods

    # ---- set up

    def check_room(self):
        memory = self.options.keys * KEY_BYTES + self.options.zset * MEMBER_BYTES
        file = self.options.keys * KEY_FILE_BYTES + self.options.zset * MEMBER_FILE_BYTES
        with open("/proc/meminfo") as info:
            free = next(int(line.split()[1]) * 1024 for line in info if line.startswith("MemAvailable"))
        disk = shutil.disk_usage(self.folder).free
        if free < 2.2 * memory + 200 * MIB or disk < 2.2 * file + 200 * MIB:
            raise Wrong("%d MiB of memory and %d MiB of the disk are too little for data of %d MiB" % (
                free // MIB, disk // MIB, memory // MIB))

    def begin(self):
        self.check_room()
        self.server = Member("server", self.options.server, ["--min-clients-per-thread", "1", "--dir", self.folder],
                             self.options.threads)
        begin = time.monotonic()
        keys = self.options.keys
        self.finish(self.load("--sequential", "--keys", keys, "--count", keys, "--pipeline", 64, "--connections", 8))
        part = -(-self.options.zset // FILL_PROCESSES)
        processes = [multiprocessing.Process(target=fill_part, args=(
            self.server.port, first, min(part, self.options.zset - first)))
            for first in range(0, self.options.zset, part)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        if int(self.server.ask("DBSIZE")) != keys + (self.options.zset > 0) or \
                int(self.server.ask("ZCARD", ZSET)) != self.options.zset:
            raise Wrong("it was not filled")
        print("filled in %.0f s; %d MiB resident" % (time.monotonic() - begin, self.server.rss() // MIB), flush=True)

    def methods(self):
        self.has_methods = self.server.call("CONFIG", "SET", "snapshot-method", "fork")[0] != "-"
        wanted = self.options.methods.split(",")
        if not self.has_methods:
            print("the server has no snapshot-method: fork alone is measured")
            wanted = [method for method in wanted if method == "fork"]
        return wanted

    # ---- load

    def start(self, command):
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.running.append(process)
        return process

    def load(self, *words):
        return self.start([self.load_program, "--port", self.server.port, "--json", "--value-size", 64, *words])

    def writers(self, *words):
        return self.load("--keys", self.options.keys, "--pipeline", 32, "--connections", 16, "--seconds", ASIDE_S,
                         *words)

    def mix(self, mix, *words):
        """keydb-benchmark; its results are in a file."""
        self.files += 1
        path = os.path.join(self.folder, "mix-%d.json" % self.files)
        process = self.start([self.mix_program, "-p", self.server.port, "--duration", ASIDE_S, "-r",
                              max(1, self.options.zset), "-q", "--json", path, "--mix", mix, *words])
        process.path = path
        return process

    def finish(self, process, stop=False):
        if stop:
            process.send_signal(signal.SIGTERM)
        out, problem = process.communicate(timeout=self.options.timeout)
        self.running.remove(process)
        if process.returncode != 0:
            raise Wrong("a load generator: %s" % problem.strip())
        if not hasattr(process, "path"):
            return json.loads(out)
        with open(process.path) as file:
            return json.load(file)["tests"][0]

    def counts(self):
        """Calls of the writers' commands, as the server counts them."""
        fields = self.server.info("commandstats")
        return [int(fields.get("cmdstat_" + name, "calls=0,").split("=")[1].split(",")[0]) for name in ("set", "zadd")]

    # ---- snapshots

    def save(self, watch=None):
        """Makes one; seconds."""
        before = int(self.server.info("persistence")["rdb_saves"])
        begin = time.monotonic()
        self.server.ask("BGSAVE")
        while True:
            fields = self.server.info("persistence")
            if fields["rdb_last_bgsave_status"] != "ok":
                raise Wrong("BGSAVE failed\n" + self.server.log())
            if int(fields["rdb_saves"]) != before:
                return time.monotonic() - begin
            if time.monotonic() - begin > self.options.timeout:
                raise Wrong("BGSAVE does not end in %d s" % self.options.timeout)
            if watch:
                watch()
            time.sleep(0.02)

    def choose(self, method):
        if self.has_methods:
            self.server.ask("CONFIG", "SET", "snapshot-method", method)
            if method == "threads" and self.options.snapshot_threads:
                self.server.ask("CONFIG", "SET", "snapshot-threads", self.options.snapshot_threads)

    def check_method(self, method):
        said = self.server.info("persistence").get("snapshot_method", method)
        if said != method:
            raise Wrong("snapshot_method is %s, not %s" % (said, method))

    # ---- the parts: each gives {figure: number}

    def idle(self):
        return {"idle: seconds": self.save()}

    def full(self):
        zset = "1 ZADD %s __rand_int__ m:__rand_int__" % ZSET.decode()
        running = [self.writers(), self.mix(zset, "-P", 32, "-c", 2)]
        time.sleep(1)
        begin, first = time.monotonic(), self.counts()
        time.sleep(self.options.calm)
        seconds, second = time.monotonic() - begin, self.counts()
        figures = {"full: SET/s without": (second[0] - first[0]) / seconds,
                   "full: ZADD/s without": (second[1] - first[1]) / seconds}
        memory = Memory(self.server.pid())
        first, begin = self.counts(), time.monotonic()
        figures["full: seconds"] = self.save(memory.look)
        seconds, second = time.monotonic() - begin, self.counts()
        figures.update({"full: SET/s": (second[0] - first[0]) / seconds,
                        "full: ZADD/s": (second[1] - first[1]) / seconds,
                        "full: memory above, %": (memory.most - memory.before) / memory.before * 100})
        fields = self.server.info("persistence")
        if "snapshot_kept_peak_bytes" in fields:
            figures["full: kept at most, MiB"] = int(fields["snapshot_kept_peak_bytes"]) / MIB
        for process in running:
            self.finish(process, stop=True)
        return figures

    def half_load(self, rate, act):
        """What the clients see while it acts."""
        zset = "1 ZADD {0} __rand_int__ m:__rand_int__; 1 ZSCORE {0} m:__rand_int__".format(ZSET.decode())
        running = [self.writers("--rate", int(rate), "--warm-up", 1),
                   self.mix(zset, "--rate", 1000, "-c", 4, "--warm-up", 1)]
        time.sleep(1.5)
        result = act()
        writers, others = (self.finish(process, stop=True) for process in running)
        return result, writers, others["latency_ms"]

    def half(self, rate):
        _, calm, calm_zset = self.half_load(rate, lambda: time.sleep(self.options.calm + 2))
        seconds, busy, busy_zset = self.half_load(rate, self.save)
        figures = {"half: seconds": seconds,
                   "half: SET max without, ms": calm["max"], "half: SET p99.9 without, ms": calm["p99.9"],
                   "half: SET max, ms": busy["max"], "half: SET p99.9, ms": busy["p99.9"],
                   "half: zset max without, ms": calm_zset["max"], "half: zset max, ms": busy_zset["max"],
                   "half: zset p99.9, ms": busy_zset["p99.9"]}
        figures.update(self.stalls())
        return figures

    def stalls(self):
        """As the server counts them, of the last snapshot."""
        fields = self.server.info("persistence")
        counted = {name: int(fields[name]) / 1000 for name in COUNTS if name in fields}
        if fields.get("snapshot_method", "fork") == "fork":
            fork = int(self.server.info("stats")["latest_fork_usec"]) / 1000
            return {"half: fork, ms": fork, "half: stall counted by the server, ms": max(
                [fork, *(counted.get(name, 0) for name in COUNTS[:3])])}
        figures = {"half: " + name: counted[field] for name, field in (
            ("longest wait, ms", COUNTS[0]), ("gate, ms", COUNTS[1]), ("longest hold, ms", COUNTS[2]),
            ("slowed, ms", COUNTS[3])) if field in counted}
        stalls = COUNTS[:2] if COUNTS[0] in counted else COUNTS[1:3]
        figures["half: stall counted by the server, ms"] = max(counted.get(name, 0) for name in stalls)
        return figures

    def measure(self, method):
        self.choose(method)
        figures = self.idle()
        self.check_method(method)
        figures.update(self.full())
        if self.rate is None:
            self.rate = figures["full: SET/s without"] / 2
        figures.update(self.half(self.rate))
        self.check_method(method)
        return figures

    def end(self):
        for process in self.running:
            process.kill()
            process.wait()
        if self.server:
            self.server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def verdict(how, bound, mine, theirs, without):
    """How it is judged, and whether it is good; nothing: it is not judged. What is measured from outside is the
    machine's, too."""
    if how.endswith("as without") and bound is not None and without is not None:
        how, bound = "<=", max(bound, without)
    value = mine / theirs if mine is not None and theirs else None
    if not how.startswith("ratio"):
        value = mine
    if bound is None or value is None:
        return "", None
    return "%s %g" % (how, bound), value <= bound if how.endswith("<=") else value >= bound


def judge(results):
    """Prints the table; gives how many figures of threads are outside of the budget."""
    medians = {}
    for method, runs in results.items():
        for name, _, _ in BUDGET:
            values = [run[name] for run in runs if name in run]
            medians[method, name] = statistics.median(values) if values else None
    print("%-40s %12s %12s %8s   %s" % ("figure (medians)", "threads", "fork", "ratio", "budget"))
    bad = 0
    for name, how, bound in BUDGET:
        mine, theirs = (medians.get((method, name)) for method in ("threads", "fork"))
        if mine is None and theirs is None:
            continue
        text, good = verdict(how, bound, mine, theirs, medians.get(("threads", name.replace(" max,", " max without,"))))
        bad += good is False
        print("%-40s %12s %12s %8s   %-14s %s" % (
            name, *("%.3f" % each if each is not None and each < 1000 else "%d" % each if each is not None else "-"
                    for each in (mine, theirs)),
            "%.2f x" % (mine / theirs) if mine is not None and theirs else "-", text,
            "" if good is None else "ok" if good else "MISSED"), flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--methods", default="threads,fork")
    parser.add_argument("--keys", type=int, default=10000000)
    parser.add_argument("--zset", type=int, default=3000000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="workers of the server")
    parser.add_argument("--snapshot-threads", type=int, help="threads that write; without it the server's default")
    parser.add_argument("--calm", type=float, default=3, help="seconds of what is measured without a snapshot")
    parser.add_argument("--timeout", type=float, default=600, help="seconds a snapshot may take")
    parser.add_argument("--folder", help="where the files go, below it")
    parser.add_argument("--load", help="the load generator")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="each run's figures")
    options = parser.parse_args()
    if options.quick:
        options.keys, options.zset, options.runs = min(options.keys, 100000), min(options.zset, 100000), 1
    bench, results, failed = Bench(options), {}, 0
    try:
        bench.begin()
        methods = bench.methods()
        for number in range(options.runs):
            for method in methods if number % 2 == 0 else methods[::-1]:
                figures = bench.measure(method)
                results.setdefault(method, []).append(figures)
                if options.verbose:
                    print("  run %d, %s: %s" % (number + 1, method, json.dumps(
                        {name: round(value, 3) for name, value in figures.items()})), flush=True)
    except (Wrong, Lost, OSError, subprocess.TimeoutExpired) as problem:
        print("FAILED: %s" % problem)
        failed = 1
    finally:
        bench.end()
    bad = judge(results) + failed
    print("%d outside of the budget or failed" % bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
