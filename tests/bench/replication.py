#!/usr/bin/env python3
"""Replication in figures: ours beside a pair of redis-server in the same run, alternating; medians, and the budget.

    replication.py --server BIN --oracle BIN [--only PART ...] [--runs N] [--quick] [--threads N] [--pin]

lru8k            SETs of 8 KiB at full speed, maxmemory 500mb allkeys-lru, one replica, default configuration
cpu64            processor time a SET of 64 bytes: of the master, of its replica, of the master for a further replica
rate2            client and master on one core, replica on the other: does it keep up, and how far behind is it at 80 %
fullsync         REPLICAOF to link up, diskless, with --keys keys of 16 + 64 bytes
fullsync_latency GET and SET at 20,000/s on the master during that
memory           the master's memory above idle during that, with writes (copied pages are the child's)
stopped          three replicas stand still for --stop-seconds while 20 MB/s are written: memory, syncs, catching up
cuts             a link is down for --cut-seconds under load, --cuts times: partial syncs, and how soon it is up again
stalls           GETs on the replica while it applies 1,000,000 SETs/s, or what the master can write if that is less;
                 master and writer on one core, replica and reader on the other; then the same reads at a server that
                 has nothing to do, on the replica's core: what the machine adds
failover         FAILOVER under load, --failovers times: acknowledged writes lost, and how long writes were parked

--quick is for trying it out: small counts, short times. --pin: the master on core 0, replicas on core 1, the client
wherever it likes (rate2 and stalls always pin). The load generator is build/release/bench/load beside the server.
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "replication"))

from group import Lost, Member, Proxy, Wrong, wait_caught_up, wait_linked, wait_until      # noqa: E402
from harness import Connection      # noqa: E402

MIB = 1 << 20


class Pair:
    """A master with replicas of one kind. Use with `with`; replicas follow at once unless told otherwise."""

    def __init__(self, bench, kind, replicas=1, master_options=(), replica_options=(), cpus=(None, None), follow=True):
        options = bench.options
        binary = options.server if kind == "ours" else options.oracle
        if options.pin and cpus == (None, None):
            cpus = (0, 1)
        self.bench = bench
        self.master = Member("master", binary, master_options, bench.threads, cpus[0])
        self.replicas = []
        try:
            for number in range(replicas):
                self.replicas.append(Member("replica %d" % number, binary, replica_options, bench.threads, cpus[1]))
            if follow:
                self.follow()
        except BaseException:
            self.__exit__()
            raise

    def follow(self):
        for replica in self.replicas:
            replica.follow(self.master.port)
        wait_linked(self.replicas, 300)
        wait_until(lambda: b"state=online" in self.master.ask("INFO", "replication"), 60, "online")

    def all(self):
        return [self.master, *self.replicas]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in reversed(self.all()):
            member.stop()


class Bench:
    def __init__(self, options):
        self.options = options
        self.threads = options.threads
        self.program = os.path.join(os.path.dirname(os.path.abspath(options.server)), "..", "bench", "load")
        if options.load:
            self.program = options.load

    def many(self, count, quick):
        return quick if self.options.quick else count

    def load(self, port, *words, cpus=None):
        """Started; see finish."""
        command = [self.program, "--port", str(port), "--json", *map(str, words)]
        if cpus is not None:
            command = ["taskset", "-c", str(cpus), *command]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, process, timeout=3600):
        out, problem = process.communicate(timeout=timeout)
        if not out:
            raise Wrong("the load generator: %s" % problem.strip())
        return json.loads(out)

    def run_load(self, port, *words, cpus=None):
        return self.finish(self.load(port, *words, cpus=cpus))

    def fill(self, master, keys):
        self.run_load(master.port, "--sequential", "--keys", keys, "--count", keys, "--pipeline", 64, "--connections",
                      8)

    # ---- the parts: each gives {figure: number}

    def lru8k(self, kind):
        limit = ["--maxmemory", "500mb", "--maxmemory-policy", "allkeys-lru"]
        count = self.many(1000000, 40000)
        with Pair(self, kind, 1, limit, limit) as pair:
            full = pair.master.sync_counts()["full"]
            before = [each.cpu_seconds() for each in pair.all()]
            done = self.run_load(pair.master.port, "--count", count, "--keys", count, "--value-size", 8192,
                                 "--connections", 50, "--pipeline", 16)
            try:
                wait_caught_up(pair.master, pair.replicas, 120)
                equal = pair.master.dataset() == pair.replicas[0].dataset()
            except Wrong:
                equal = False
            cpu = sum(each.cpu_seconds() for each in pair.all()) - sum(before)
            return {"requests/s": done["rate"], "p99 ms": done["p99"], "cpu us a SET": cpu / count * 1e6,
                    "full syncs": pair.master.sync_counts()["full"] - full, "equal": int(equal)}

    def cpu64(self, kind):
        count = self.many(3000000, 300000)

        def cost(replicas):
            with Pair(self, kind, replicas) as pair:
                before = [each.cpu_seconds() for each in pair.all()]
                self.run_load(pair.master.port, "--count", count, "--pipeline", 32)
                wait_caught_up(pair.master, pair.replicas, 300)
                return [(each.cpu_seconds() - start) / count * 1e6 for each, start in zip(pair.all(), before)]

        one, two = cost(1), cost(2)
        return {"master us a SET": one[0], "replica us a SET": one[1], "further replica us": max(0.0, two[0] - one[0])}

    def rate2(self, kind):
        seconds = self.many(60, 5)
        threads, self.threads = self.threads, 2
        try:
            with Pair(self, kind, cpus=(0, 1)) as pair:
                master, replica = pair.master, pair.replicas[0]
                before = [each.cpu_seconds() for each in pair.all()]
                lag = Lag(master, replica, 0.1)
                full = self.run_load(master.port, "--seconds", seconds, "--pipeline", 32, cpus=0)
                bytes_behind = lag.end()
                wait_caught_up(master, [replica], 300)
                cpu = [each.cpu_seconds() - start for each, start in zip(pair.all(), before)]
                third = max(1, len(bytes_behind) // 3)
                grows = statistics.mean(bytes_behind[-third:]) - statistics.mean(bytes_behind[:third])
                lag = Lag(master, replica, 0.005)
                self.run_load(master.port, "--seconds", seconds, "--pipeline", 32, "--rate", int(full["rate"] * 0.8),
                              cpus=0)
                lag.end()
                return {"requests/s": full["rate"], "lag grows by MB": grows / 1e6,
                        "replica's cpu / master's": cpu[1] / cpu[0], "lag p99 ms at 80 %": lag.p99_ms()}
        finally:
            self.threads = threads

    def fullsync(self, kind):
        with Pair(self, kind, follow=False, master_options=["--repl-diskless-sync", "yes"]) as pair:
            self.fill(pair.master, self.options.keys)
            start = time.monotonic()
            pair.replicas[0].follow(pair.master.port)
            wait_linked(pair.replicas, 600)
            took = time.monotonic() - start
            cpu = [each.cpu_seconds() for each in pair.all()]
            return {"seconds": took, "replica's cpu s": cpu[1]}

    def fullsync_latency(self, kind):
        with Pair(self, kind, follow=False, master_options=["--repl-diskless-sync", "yes"]) as pair:
            self.fill(pair.master, self.options.keys)
            load = self.load(pair.master.port, "--rate", 20000, "--gets", 50, "--seconds", 3600, "--keys",
                             self.options.keys, "--connections", 50)
            pair.replicas[0].follow(pair.master.port)
            wait_linked(pair.replicas, 600)
            load.send_signal(signal.SIGTERM)
            done = self.finish(load)
            return {"p99 ms": done["p99"], "p99.9 ms": done["p99.9"], "seconds": done["seconds"]}

    def memory(self, kind):
        with Pair(self, kind, follow=False, master_options=["--repl-diskless-sync", "yes"]) as pair:
            self.fill(pair.master, self.options.keys)
            time.sleep(1)
            idle = pair.master.rss()
            load = self.load(pair.master.port, "--rate", 20000, "--seconds", 3600, "--keys", self.options.keys)
            pair.replicas[0].follow(pair.master.port)
            most = Most(pair.master.rss)
            wait_linked(pair.replicas, 600)
            load.send_signal(signal.SIGTERM)
            self.finish(load)
            return {"MiB above idle": (most.end() - idle) / MIB}

    def stopped(self, kind):
        rate, size = 20000, 1000
        options = ["--repl-timeout", "3"] if self.options.quick else []
        with Pair(self, kind, 3, options, options) as pair:
            master = pair.master
            load = self.load(master.port, "--rate", rate, "--value-size", size, "--seconds", 36000, "--keys", 10000)
            time.sleep(2)
            full, idle = master.sync_counts()["full"], master.rss()
            most = Most(master.rss)
            for replica in pair.replicas:
                replica.pause()
            time.sleep(self.many(self.options.stop_seconds, 6))
            behind = [each.offset() for each in (master,)] * 3
            for replica in pair.replicas:
                replica.resume()
            start, begin = time.monotonic(), [replica.offset() for replica in pair.replicas]
            seconds, ends = [], {}
            while len(ends) < 3 and time.monotonic() - start < 600:
                for number, replica in enumerate(pair.replicas):
                    if number not in ends and replica.link_is_up() and replica.offset() >= master.offset() - 3 * MIB:
                        ends[number] = replica.offset()
                        seconds.append(time.monotonic() - start)
                time.sleep(0.05)
            rates = [(ends[number] - begin[number]) / second for number, second in zip(ends, seconds)]
            load.send_signal(signal.SIGTERM)
            done = self.finish(load)
            limit = 0
            if kind == "ours":
                limit = sum(int(master.ask("CONFIG", "GET", name)[1][1])
                            for name in ("journal-memory-limit", "repl-backlog-size")) + 64 * MIB
            wait_caught_up(master, pair.replicas, 120)
            return {"MiB above idle": (most.end() - idle) / MIB, "MiB allowed": limit / MIB,
                    "full syncs": master.sync_counts()["full"] - full,
                    "catches up, times the write rate": min(rates or [0]) / (rate * (size + 50)),
                    "MB behind": (behind[0] - min(begin)) / 1e6, "p99 ms of writers": done["p99"]}

    def cuts(self, kind):
        cuts, seconds = self.many(self.options.cuts, 3), self.many(self.options.cut_seconds, 2)
        with Pair(self, kind, follow=False) as pair:
            master, replica = pair.all()
            proxy = Proxy(master.port)
            try:
                replica.follow(proxy.port)
                wait_linked([replica], 60)
                load = self.load(master.port, "--rate", 20000, "--seconds", 36000)
                before, up = master.sync_counts(), []
                for _ in range(cuts):
                    time.sleep(1)
                    proxy.take_down()
                    time.sleep(seconds)
                    proxy.put_up()
                    start = time.monotonic()
                    wait_until(replica.link_is_up, 60, "the link is up")
                    up.append(time.monotonic() - start)
                load.send_signal(signal.SIGTERM)
                self.finish(load)
                wait_caught_up(master, [replica])
                after = master.sync_counts()
                equal = master.dataset() == replica.dataset()
                return {"full syncs": after["full"] - before["full"],
                        "partial syncs of cuts": (after["partial_ok"] - before["partial_ok"]) / cuts,
                        "up again s, longest": max(up), "equal": int(equal)}
            finally:
                proxy.close()

    def stalls(self, kind):
        with Pair(self, kind, cpus=(0, 1)) as pair:
            done, reads = self.reads_while_applying(pair, pair.replicas[0])
            with Member("idle", self.options.server, (), self.threads, 1) as idle:
                _, idle_reads = self.reads_while_applying(pair, idle)
            return {"p99 ms": reads["p99"], "p99.9 ms": reads["p99.9"], "max ms": reads["max"],
                    "SETs/s of the master": done["rate"], "p99.9 ms, idle server": idle_reads["p99.9"]}

    def reads_while_applying(self, pair, server):
        seconds = self.many(20, 4)
        writes = self.load(pair.master.port, "--rate", 1000000, "--seconds", seconds, "--pipeline", 32, cpus=0)
        reads = self.run_load(server.port, "--rate", 5000, "--gets", 100, "--seconds", seconds - 1, "--warm-up", 1,
                              cpus=1)
        done = self.finish(writes)
        wait_caught_up(pair.master, pair.replicas, 300)
        return done, reads

    def failover(self, kind):
        with Pair(self, kind) as pair:
            writer = AckedWriter(pair.master, pair.replicas[0])
            parked = []
            master, replica = pair.all()
            for _ in range(self.many(self.options.failovers, 3)):
                time.sleep(0.3)
                writer.gap()
                master.ask("FAILOVER", "TO", "127.0.0.1", replica.port)
                wait_until(lambda replica=replica: replica.info("replication")["role"] == "master", 30, "takes over")
                master, replica = replica, master
                wait_linked([replica])
                time.sleep(0.2)
                parked.append(writer.gap() * 1000)
            lost = writer.end(master)
            wait_caught_up(master, [replica])
            full = sum(each.sync_counts()["full"] for each in pair.all())
            return {"acknowledged writes lost": lost, "parked ms, longest": max(parked), "full syncs": full - 1,
                    "writes": writer.number}


class Most:
    """The largest value of something while it is watched."""

    def __init__(self, read):
        self.read, self.most, self.over = read, 0, False
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.over:
            self.most = max(self.most, self.read())
            time.sleep(0.02)

    def end(self):
        self.over = True
        self.thread.join()
        return self.most


class Lag:
    """How far the replica is behind: in bytes, and in time by when the master was where the replica is now."""

    def __init__(self, master, replica, period):
        self.period, self.over = period, False
        self.connections = Connection(master.port), Connection(replica.port)
        self.samples = []       # (time, offset of the master, time, offset of the replica)
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def offset(self, which, name):
        text = self.connections[which].command("INFO", "replication")[1]
        return int(text.split(name)[1].split(b"\r\n")[0])

    def watch(self):
        while not self.over:
            first = time.monotonic(), self.offset(0, b"\nmaster_repl_offset:")
            second = self.offset(1, b"\nslave_repl_offset:"), time.monotonic()
            self.samples.append((*first, second[1], second[0]))
            time.sleep(self.period)

    def end(self):
        self.over = True
        self.thread.join()
        return [max(0, sample[1] - sample[3]) for sample in self.samples]

    def p99_ms(self):
        lags, place = [], 0
        for when, _, seen, applied in self.samples:
            # The first moment at which the master is known to have been there.
            while place + 1 < len(self.samples) and self.samples[place + 1][1] <= applied:
                place += 1
            at, offset = self.samples[place][:2]
            if offset > applied:    # before the first sample
                continue
            if place + 1 < len(self.samples) and self.samples[place + 1][1] > offset:
                later, beyond = self.samples[place + 1][:2]
                at += (later - at) * (applied - offset) / (beyond - offset)
            lags.append(max(0.0, seen - at) * 1000 if at <= when else 0.0)
        return statistics.quantiles(lags, n=100)[98] if len(lags) > 2 else 0.0


class AckedWriter:
    """Writes one key after the other to whoever is the master, and knows which writes were acknowledged."""

    def __init__(self, *members):
        self.members = members
        self.over = False
        self.number = 0
        self.acked = []
        self.longest, self.last = 0.0, time.monotonic()
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        at, connection = 0, None
        while not self.over:
            try:
                if connection is None:
                    connection = Connection(self.members[at].port, 5)
                reply = connection.command("SET", "acked:%d" % self.number, self.number)
            except (Lost, OSError):
                reply = ("-", b"lost")
            if reply == ("+", b"OK"):
                now = time.monotonic()
                with self.lock:
                    self.acked.append(self.number)
                    self.longest, self.last = max(self.longest, now - self.last), now
                self.number += 1
            else:
                if connection:
                    connection.close()
                at, connection = 1 - at, None
                time.sleep(0.001)

    def gap(self):
        """The longest time without an acknowledgement since the last call."""
        with self.lock:
            longest, self.longest = max(self.longest, time.monotonic() - self.last), 0.0
        return longest

    def end(self, master):
        self.over = True
        self.thread.join()
        lost = 0
        for begin in range(0, len(self.acked), 1000):
            numbers = self.acked[begin:begin + 1000]
            reply = master.ask("MGET", *("acked:%d" % number for number in numbers))
            lost += sum(value[1] != b"%d" % number for number, value in zip(numbers, reply))
        return lost


# Figure of a part, how it is judged (its ratio to redis-server's, or itself), the bound.
BUDGETS = {
    "lru8k": [("requests/s", "ratio >=", 1.0), ("p99 ms", "ratio <=", 1.0), ("cpu us a SET", "ratio <=", 0.85),
              ("full syncs", "<=", 0), ("equal", ">=", 1)],
    "cpu64": [("master us a SET", "ratio <=", 0.45), ("replica us a SET", "ratio <=", 0.4),
              ("further replica us", "ratio <=", 0.5)],
    "rate2": [("lag grows by MB", "<=", 1), ("replica's cpu / master's", "<=", 1.0), ("lag p99 ms at 80 %", "<=", 20)],
    "fullsync": [("seconds", "ratio <=", 0.6)],
    "fullsync_latency": [("p99 ms", "ratio <=", 1.0), ("p99.9 ms", "ratio <=", 1.0)],
    "memory": [("MiB above idle", "<=", 64)],
    "stopped": [("MiB above idle", "<= allowed", "MiB allowed"), ("full syncs", "<=", 0),
                ("catches up, times the write rate", ">=", 1.5)],
    "cuts": [("full syncs", "<=", 0), ("partial syncs of cuts", ">=", 1), ("up again s, longest", "<=", 1.5),
             ("equal", ">=", 1)],
    "stalls": [("p99.9 ms", "<=", 5)],
    "failover": [("acknowledged writes lost", "<=", 0), ("parked ms, longest", "<=", 300), ("full syncs", "<=", 0)],
}


def judge(part, ours, redis):
    """Prints the figures of a part; gives how many are outside of the budget."""
    bad = 0
    budgets = {name: (how, bound) for name, how, bound in BUDGETS[part]}
    for name in ours or redis:
        mine, theirs = ours.get(name), redis.get(name)
        ratio = mine / theirs if mine is not None and theirs else None
        text = verdict = ""
        if name in budgets:
            how, bound = budgets[name]
            if how == "<= allowed":
                how, bound = "<=", ours.get(bound)
            text = "%s %s" % (how, "%g" % bound if bound is not None else "?")
            value = ratio if how.startswith("ratio") else mine
            if value is not None and bound is not None:
                good = value <= bound if how.endswith("<=") else value >= bound
                verdict = "ok" if good else "MISSED"
                bad += not good
        print("%-17s %-34s %13s %13s %8s   %-14s %s" % (
            part, name, *("%.3f" % each if each is not None else "-" for each in (mine, theirs)),
            "%.2f x" % ratio if ratio is not None else "-", text, verdict), flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--only", nargs="+", choices=sorted(BUDGETS), metavar="PART")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="of ours")
    parser.add_argument("--kinds", nargs="+", choices=("ours", "redis"), default=["redis", "ours"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pin", action="store_true")
    parser.add_argument("--keys", type=int, default=5000000, help="of a full sync")
    parser.add_argument("--stop-seconds", type=int, default=90)
    parser.add_argument("--cut-seconds", type=int, default=10)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--failovers", type=int, default=20)
    parser.add_argument("--load", help="the load generator")
    parser.add_argument("--verbose", action="store_true", help="each run's figures")
    options = parser.parse_args()
    if options.quick:
        options.keys = min(options.keys, 200000)
    bench = Bench(options)
    print("%-17s %-34s %13s %13s %8s   %s" % ("part", "figure (medians of %d)" % options.runs, "ours", "redis", "ratio",
                                             "budget"))
    bad = 0
    for part in options.only or BUDGETS:
        results = {"ours": [], "redis": []}
        for _ in range(options.runs):
            for kind in options.kinds:
                try:
                    figures = getattr(bench, part)(kind)
                except (Wrong, Lost, OSError) as problem:
                    print("%-17s FAILED with %s: %s" % (part, kind, problem), flush=True)
                    bad += 1
                    continue
                if options.verbose:
                    print("  %s %s: %s" % (part, kind, json.dumps(figures)), flush=True)
                results[kind].append(figures)
        medians = {kind: {name: statistics.median(run[name] for run in runs) for name in runs[0]} if runs else {}
                   for kind, runs in results.items()}
        bad += judge(part, medians["ours"], medians["redis"])
    print("%d outside of the budget or failed" % bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
