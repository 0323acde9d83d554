#!/usr/bin/env python3
"""Replication between our server and redis-server, in both directions: random commands to the master, and in the end
the replica has the same data: digests, deadlines, functions, streams with their groups and what is pending in them.

    replication.py --server BIN --oracle BIN [--count N] [--seed N] [--threads N] [--way ours-oracle|oracle-ours|all]

Blocks take turns: our master with the oracle as replica, and the reverse; and in how the replica gets it: a snapshot
before all, amidst the commands (diskless or from disk), a link that is cut again and again. A chain, ours -> oracle ->
ours, is the last of four. --inject changes the last replica behind the master's back, to see the test fail.
"""
import argparse
import random
import sys
import time
import os

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "replication"))

import facts        # noqa: E402
import roundtrip    # noqa: E402
from generate import Generator      # noqa: E402
from group import Member, Proxy, Wrong, wait_caught_up, wait_until      # noqa: E402
from harness import Lost, Server, encode, exchange_all      # noqa: E402
from interleave import CLIENTS      # noqa: E402
from run import DATABASES, segments       # noqa: E402

# What the oracle's own replicas do not get either: see journal.py.
NEVER_TO_ORACLE = {b"XREADGROUP": lambda words: words[-1] != b">",
                   b"BITFIELD": lambda words: b"FAIL" in [word.upper() for word in words],
                   b"PFCOUNT": lambda words: True}      # it may rewrite the cached count, or not
NOT_SENT = {b"DEBUG", b"SHUTDOWN", b"SAVE", b"BGSAVE", b"CONFIG"}
OPTIONS = ["--repl-timeout", "60", "--client-output-buffer-limit", "replica 0 0 0", "--repl-backlog-size", "16mb"]


def commands_for(items, master_is_redis):
    for which, words in items:
        if words[0] != "@sleep":
            name = words[0].upper()
            if name in NOT_SENT or any(b"set_repl" in word for word in words):
                continue
            if master_is_redis and name in NEVER_TO_ORACLE and NEVER_TO_ORACLE[name](words):
                continue
        yield which, words


def picture(member):
    """As roundtrip.picture, and what groups of streams are waiting for."""
    seen = roundtrip.without_forms(roundtrip.picture(member))
    connection = member.connect()
    for place, value in list(seen.items()):
        if isinstance(place, tuple) and value[0] == b"stream":
            connection.command("SELECT", place[0])
            for group in connection.command("XINFO", "GROUPS", place[1])[1]:
                fields = group[1]
                about = {fields[i][1]: fields[i + 1][1] for i in range(0, len(fields), 2)}
                pending = connection.command("XPENDING", place[1], about[b"name"], "-", "+", "100000")[1]
                seen[place[0], place[1], about[b"name"]] = (
                    about[b"last-delivered-id"], about[b"entries-read"],
                    about[b"consumers"],
                    [(one[1][0][1], one[1][1][1], one[1][3][1]) for one in pending])
    connection.close()
    return seen


class Run:
    def __init__(self, options, commands, number):
        self.options, self.commands, self.number = options, commands, number
        self.random = random.Random("%d/%d" % (options.seed, number))
        self.members = []
        self.proxies = []

    def member(self, name, kind, *more):
        binary = self.options.oracle if kind == "oracle" else self.options.server
        member = Member("%s (%s)" % (name, kind), binary, [*OPTIONS, *more], self.options.threads)
        self.members.append(member)
        return member

    def send(self, master, items, cut):
        clients = [master.connect() for _ in range(CLIENTS)]
        items = list(commands_for(items, master.redis))
        for begin, end in segments(items):
            if items[begin][1][0] == "@sleep":
                time.sleep(items[begin][1][1] / 1000)
                continue
            which = items[begin][0]
            payload = b"".join(encode(words) for _, words in items[begin:end])
            result = exchange_all([(clients[which], payload, end - begin)])[0]
            if isinstance(result, Lost):
                raise Wrong("%s after %s: %s" % (master.name, [words for _, words in items[begin:end]][-3:], result))
            if cut and self.random.random() < 0.05:
                cut.cut()
        for client in clients:
            client.close()

    def go(self, kinds, way):
        """kinds: of the master, of its replica, and so on down the chain."""
        diskless = self.random.choice(("yes", "no"))
        version = self.random.choice(("auto", "10"))
        members = [self.member("%d" % number, kind, "--repl-diskless-sync", diskless,
                               *(["--rdb-version", version] if kind == "ours" else []))
                   for number, kind in enumerate(kinds)]
        master, replicas = members[0], members[1:]
        for member in members:
            member.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        generator = Generator("%d/%d" % (self.options.seed, self.number), self.commands, self.options.profile)
        proxy = Proxy(master.port)
        self.proxies.append(proxy)

        def link():
            replicas[0].follow(proxy.port)
            for before, replica in zip(replicas, replicas[1:]):
                replica.follow(before.port)
            for replica in replicas:
                wait_until(replica.link_is_up, 30, "the link of %s is up\n%s" % (replica.name, replica.log(2000)))

        items = generator.block(self.options.block)
        if way != "amidst":
            link()
        half = len(items) // 2
        self.send(master, items[:half], proxy if way == "cuts" else None)
        if way == "amidst":
            roundtrip.settle(master)
            link()
        self.send(master, items[half:], proxy if way == "cuts" else None)
        roundtrip.settle(master)
        wait_caught_up(master, replicas)
        if self.options.inject:
            replicas[-1].config(replica_read_only="no")
            replicas[-1].ask("XGROUP", "CREATE", "injected", "group", "0", "MKSTREAM")
        expected = picture(master)
        for replica in replicas:
            roundtrip.compare(expected, picture(replica),
                              "%s beside %s" % (master.name, replica.name))
        if way == "cuts":
            counts = master.sync_counts()
            if counts["full"] != 1:
                raise Wrong("cuts led to full syncs: %s\n%s" % (counts, replicas[0].log(3000)))
        for member in members:
            complaint = member.complaint()
            if complaint:
                raise Wrong(complaint)

    def end(self):
        for proxy in self.proxies:
            proxy.close()
        for member in reversed(self.members):
            member.stop()


WAYS = ("before", "amidst", "cuts")
KINDS = {"ours-oracle": ("ours", "oracle"), "oracle-ours": ("oracle", "ours"), "ours-ours": ("ours", "ours"),
         "oracle-oracle": ("oracle", "oracle"), "chain": ("ours", "oracle", "ours")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--count", type=int, default=20000, help="commands")
    parser.add_argument("--block", type=int, default=600, help="commands a block")
    parser.add_argument("--only-block", type=int)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--profile", default="mixed")
    parser.add_argument("--way", choices=["all", *KINDS], default="all")
    parser.add_argument("--inject", action="store_true")
    options = parser.parse_args()
    with Server(options.oracle) as oracle, Server(options.server) as server:
        commands = facts.load(oracle, server)[0]
    order = ["ours-oracle", "oracle-ours", "ours-ours", "chain"] if options.way == "all" else [options.way]
    passed, failed = 0, 0
    print("seed %d, databases %d" % (options.seed, DATABASES))
    for number in range(max(1, options.count // options.block)):
        if options.only_block not in (None, number):
            continue
        kinds, way = order[number % len(order)], WAYS[number // len(order) % len(WAYS)]
        run = Run(options, commands, number)
        try:
            run.go(KINDS[kinds], way)
            passed += 1
        except (Lost, OSError, Wrong, roundtrip.Mistake) as problem:
            failed += 1
            print("FAILED block %d (seed %d), %s, %s: %s" % (number, options.seed, kinds, way, problem), flush=True)
        finally:
            run.end()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
