#!/usr/bin/env python3
"""What a client loses, and for how long, when a master is killed and redis-sentinel makes a replica the master.

    failover.py --server build/release/bin/keydb-server --oracle build/oracle/redis-server [--rounds 20]
                [--clients redis-py,ioredis] [--redis]

A master, two replicas, a Sentinel (down-after 1 s). Clients follow by asking the Sentinel: of each library one
writes with WAIT 2, and one with WAIT 1. In each round the master is killed with SIGKILL, and comes back as replica
afterwards. No write that two replicas have acknowledged may be lost. One that was acknowledged by one replica may be,
if the other one was chosen: then the line says so. `stall` is the time from the kill to the first acknowledged write,
`late` the time from +switch-master to a client's last error. --redis measures redis-server instead, for comparison.
Exit code 1: a write was lost that may not be, or errors went on for more than 2 s.
"""
import argparse
import importlib.machinery
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "replication"))

from group import Member, wait_caught_up, wait_same, wait_until     # noqa: E402
from harness import Connection, Lost, free_port     # noqa: E402

LATE_MOST_S = 2.0


def prepare(library):
    """The command that starts a writer; packages as for tests/clients."""
    path = os.path.join(TOP, "tests", "clients", "run")
    loader = importlib.machinery.SourceFileLoader("clients", path)
    clients = importlib.util.module_from_spec(importlib.util.spec_from_loader("clients", loader))
    loader.exec_module(clients)
    if library == "redis-py":
        return [clients.prepare_python("")[0], "-I", os.path.join(HERE, "failover_writer.py")]
    folder = os.path.dirname(clients.prepare_node("ioredis")[1])
    shutil.copy(os.path.join(HERE, "failover_writer.mjs"), folder)
    return ["node", os.path.join(folder, "failover_writer.mjs")]


class Writer:
    def __init__(self, library, command, sentinel_port, replicas, round_number):
        self.library, self.replicas = library, replicas
        self.prefix = "%s:%d:%d:" % (library, replicas, round_number)
        self.acks, self.errors = [], []     # (number, replicas, time); (time, what)
        self.process = subprocess.Popen([*command, str(sentinel_port), self.prefix, str(replicas)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            words = line.split(None, 2)
            if words[0] == "ack":
                count, when = words[2].split()
                self.acks.append((int(words[1]), int(count), float(when)))
            elif words[0] == "error":
                self.errors.append((float(words[1]), words[2].strip()))

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.thread.join()


class SentinelProcess:
    def __init__(self, binary, master_port):
        self.folder = tempfile.mkdtemp(prefix="keydb-sentinel-")
        self.port = free_port()
        conf = os.path.join(self.folder, "sentinel.conf")
        with open(conf, "w") as file:
            file.write("port %d\ndir %s\nlogfile %s/log\nsentinel monitor group 127.0.0.1 %d 1\n"
                       "sentinel down-after-milliseconds group 1000\nsentinel failover-timeout group 10000\n"
                       "sentinel parallel-syncs group 2\n" % (self.port, self.folder, self.folder, master_port))
        self.process = subprocess.Popen([binary, conf, "--sentinel"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.link = wait_until(lambda: Connection(self.port, 30), 10, "the Sentinel answers")
        self.switched = []
        self.listener = Connection(self.port, 1000000)
        self.listener.command("SUBSCRIBE", "+switch-master")
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        try:
            while True:
                self.listener.exchange(b"", 1)
                self.switched.append(time.time())
        except (Lost, OSError):
            pass

    def fields(self, reply):
        words = [each[1].decode() for each in reply[1]]
        return dict(zip(words[::2], words[1::2]))

    def healthy_replicas(self):
        rows = self.link.command("SENTINEL", "REPLICAS", "group")[1]
        return sum(row["flags"] == "slave" and row["master-link-status"] == "ok" for row in map(self.fields, rows))

    def master_port(self):
        return int(self.link.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "group")[1][1][1])

    def stop(self):
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.folder)


def missing_of(member, writer):
    """Acknowledged numbers that this member does not have."""
    numbers = [number for number, count, _ in writer.acks if count]
    missing = set()
    for at in range(0, len(numbers), 500):
        part = numbers[at:at + 500]
        values = member.ask("MGET", *(writer.prefix + str(number) for number in part))
        missing |= {number for number, value in zip(part, values) if value[1] is None}
    return missing


def one_round(number, members, sentinel, commands, figures):
    by_port = {member.port: member for member in members}
    master = by_port[sentinel.master_port()]
    replicas = [member for member in members if member is not master]
    wait_until(lambda: sentinel.healthy_replicas() == 2, 60, "the Sentinel knows two replicas")
    wait_same(master, replicas)
    writers = [Writer(library, command, sentinel.port, count, number)
               for library, command in commands for count in (2, 1)]
    wait_until(lambda: all(len(writer.acks) > 100 for writer in writers), 30, "all clients write")
    switches = len(sentinel.switched)
    killed = time.time()
    master.kill()
    wait_until(lambda: not any(replica.link_is_up() for replica in replicas), 10, "the replicas have lost their master")
    had = {replica: [missing_of(replica, writer) for writer in writers] for replica in replicas}
    wait_until(lambda: len(sentinel.switched) > switches, 60, "the Sentinel has switched")
    switched = sentinel.switched[switches]
    wait_until(lambda: all(writer.acks[-1][2] > switched for writer in writers), 60, "all clients write again")
    wait_until(lambda: time.time() > switched + 1.5 * LATE_MOST_S, 60, "errors would have come")
    for writer in writers:
        writer.end()
    chosen = by_port[sentinel.master_port()]
    other = next(replica for replica in replicas if replica is not chosen)
    wait_caught_up(chosen, [other])
    problems, lost_one = [], 0
    for index, writer in enumerate(writers):
        gone = missing_of(chosen, writer)
        counts = {each: count for each, count, _ in writer.acks}
        for each in sorted(gone):
            explained = counts[each] == 1 and each in had[chosen][index] and each not in had[other][index]
            lost_one += explained
            if not explained:
                problems.append("%s%d, acknowledged by %d, is lost" % (writer.prefix, each, counts[each]))
        late = max(0.0, max((when for when, _ in writer.errors), default=0.0) - switched)
        stall = min(when for _, _, when in writer.acks if when > switched) - killed
        figures.setdefault(writer.library, []).append((stall, late, len(writer.errors)))
        if late > LATE_MOST_S:
            problems.append("%s: errors for %.2f s after the switch: %s" % (writer.prefix, late, writer.errors[-1][1]))
    figures["lost"] = figures.get("lost", 0) + lost_one
    figures["acks"] = figures.get("acks", 0) + sum(len(writer.acks) for writer in writers)
    figures.setdefault("switch", []).append(switched - killed)
    figures["full"] = figures.get("full", 0) + chosen.sync_counts()["full"]
    print("round %d: switch after %.2f s; %s has taken over; %d writes; lost with one acknowledgement: %d%s" % (
        number, switched - killed, chosen.name, sum(len(writer.acks) for writer in writers), lost_one,
        " (all acknowledged by %s alone)" % other.name if lost_one else ""), flush=True)
    master.start()
    wait_until(lambda: master.info("replication")["role"] == "slave", 60, "the old master is a replica")
    wait_same(chosen, [other, master])
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--clients", default="redis-py,ioredis")
    parser.add_argument("--redis", action="store_true")
    options = parser.parse_args()
    libraries = [name for name in options.clients.split(",") if name]
    if "ioredis" in libraries and not shutil.which("node"):
        print("skipped: ioredis (no node)")
        libraries.remove("ioredis")
    commands = [(library, prepare(library)) for library in libraries]
    members = [Member(name, options.oracle if options.redis else options.server, ["--save", ""], 2) for name in "abc"]
    sentinel, problems, figures = None, [], {}
    try:
        for member in members[1:]:
            member.follow(members[0].port)
        wait_caught_up(members[0], members[1:])
        sentinel = SentinelProcess(options.oracle, members[0].port)
        for number in range(1, options.rounds + 1):
            problems += one_round(number, members, sentinel, commands, figures)
    finally:
        if sentinel:
            sentinel.stop()
        for member in members:
            complaint = member.complaint()
            problems += [complaint] if complaint else []
            member.stop()
    print("%d rounds, %d writes; lost with one acknowledgement, explained: %d; full syncs by who took over, but of the"
          " old master: %d" % (options.rounds, figures["acks"], figures["lost"], figures["full"]))
    print("+switch-master after the kill: median %.2f s, most %.2f s" % (
        statistics.median(figures["switch"]), max(figures["switch"])))
    for library in libraries:
        stalls, lates, errors = zip(*figures[library])
        print("%s: stall median %.2f s, most %.2f s; last error after +switch-master: median %.2f s, most %.2f s;"
              " %d errors" % (library, statistics.median(stalls), max(stalls), statistics.median(lates), max(lates),
                              sum(errors)))
    for problem in problems:
        print("WRONG: " + problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
