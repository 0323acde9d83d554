#!/usr/bin/env python3
"""Append only files in both directions: the same random commands to our server and to redis-server, both writing a
file; then each starts from what the other has written. All data has to be as it was before, and equal.

    tests/differential/aof.py --server build/release/bin/keydb-server --oracle build/oracle/redis-server [--blocks N]

Blocks take turns: the file as it was written, rewritten as RDB, rewritten as commands, rewritten in mid-block."""
import argparse
import os
import shutil
import sys
import time

import compare
from generate import Generator
from harness import Lost
from roundtrip import settle
from run import DATABASES, READ_VALUE, Difference, Tester

WAYS = (("as written", "yes", None), ("rewritten as RDB", "yes", 1.0), ("rewritten as commands", "no", 1.0),
        ("rewritten in between", "no", 0.5), ("rewritten as RDB in between", "yes", 0.5))


def makes_unwritten_consumer(words):
    """XREADGROUP of what was delivered makes a consumer that redis-server does not tell of, and we do."""
    return isinstance(words[0], bytes) and words[0].upper() == b"XREADGROUP" and words[-1] != b">"


class FileTester(Tester):
    def __init__(self, options):
        super().__init__(options)
        self.common = self.sides.common
        self.end_servers()

    def end_servers(self):
        self.sides.stop()
        self.sides.servers = [None, None]
        self.sides.journals = [None, None]
        self.sides.clients = None

    def compare_keys(self, database, keys):
        """Without the forms in which values are kept: they depend on how a value came to be."""
        types = self.sides.both([["TYPE", key] for key in keys])
        questions = []
        for key, kind in zip(keys, types[0]):
            read = READ_VALUE.get(kind[1], ["TYPE"])
            questions += [["TYPE", key], [read[0], key, *read[1:]], ["PTTL", key]]
            if kind[1] == b"stream":
                questions += [["XINFO", "STREAM", key], ["XINFO", "GROUPS", key]]
        for words, one, two in zip(questions, *self.sides.both(questions)):
            if words[0] in ("SMEMBERS", "HGETALL"):
                one, two = compare.canonical(one), compare.canonical(two)
            if words[0] == "PTTL" and compare.close_numbers(one, two, 3000):
                continue
            if words[0] == "XINFO" and compare.equal_stream("xinfo|" + words[1].lower(), one, two):
                continue
            difference = self.same("db %d %s" % (database, compare.show_words(words)), one, two)
            if difference:
                return difference
        return None

    def digests(self):
        return [self.sides.both([["DEBUG", "DIGEST"]])[side][0] for side in (0, 1)]

    def rewrite(self):
        for admin in self.sides.admins:
            admin.command("BGREWRITEAOF")
        for admin in self.sides.admins:
            end = time.monotonic() + 30
            while b"aof_rewrite_in_progress:1" in admin.command("INFO", "persistence")[1]:
                if time.monotonic() > end:
                    raise Lost("a rewrite does not end")
                time.sleep(0.02)

    def swap(self):
        """Both end in order, and start from each other's files."""
        servers = self.sides.servers
        for server, admin in zip(servers, self.sides.admins):
            try:
                admin.command("SHUTDOWN", "NOSAVE", "NOW")  # without waiting for replicas
            except Lost:
                pass
            if server.process.wait(30) != 0:
                raise Lost("a server did not end in order: %s" % server.log())
        folders = [os.path.join(server.folder, "appendonlydir") for server in servers]
        os.rename(folders[0], folders[0] + ".other")
        shutil.move(folders[1], folders[0])
        shutil.move(folders[0] + ".other", folders[1])
        for side, server in enumerate(servers):
            server.start()
            self.sides.admins[side] = server.connect()
            self.sides.admins[side].command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            if b"is sending an error to its AOF-loading-client" in server.log(10**6).encode():
                raise Lost("a command of the other's file is an error:\n%s" % server.log(3000))

    def round(self, items, way):
        name, preamble, place = way
        self.sides.common = [*self.common, "--appendonly", "yes", "--aof-use-rdb-preamble", preamble]
        cut = int(len(items) * place) if place else len(items)
        difference = self.run(items[:cut], 2)
        if difference or self.damaged:
            return difference
        if place:
            self.rewrite()
            for which, words in items[cut:]:
                if words[0] != "@sleep":
                    for side in (0, 1):
                        self.sides.clients[side][which].command(*words)
        for server in self.sides.servers:
            settle(server)
        before = self.digests()
        if before[0] != before[1]:
            return None  # what the differential test is about, not this one
        self.swap()
        difference = self.compare_data()
        after = self.digests()
        if difference is None and after != before:
            difference = Difference("data", "DEBUG DIGEST, " + name, *map(compare.show, (before[0], after[0])))
        return difference


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--block", type=int, default=600, help="commands a block")
    parser.add_argument("--only-block", type=int)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--profile", default="mixed")
    options = parser.parse_args()
    options.events, options.inject, options.small_limits = False, None, False
    tester = FileTester(options)
    passed, failed = 0, 0
    print("seed %d, databases %d" % (options.seed, DATABASES))
    try:
        for number in range(options.blocks):
            if options.only_block not in (None, number):
                continue
            way = WAYS[number % len(WAYS)]
            items = Generator("%d/%d" % (options.seed, number), tester.commands, options.profile).block(options.block)
            items = [item for item in items if not makes_unwritten_consumer(item[1])]
            try:
                difference = tester.round(items, way)
            except (Lost, OSError) as problem:
                difference = Difference("lost", "block %d" % number, "", str(problem))
            if difference is None:
                passed += 1
            else:
                failed += 1
                print("FAILED block %d (seed %d), %s: %s\n  at: %s" % (number, options.seed, way[0], difference.kind,
                                                                      difference.what))
                print("  oracle, from our file: %s\n  ours, from its: %s" % (difference.oracle, difference.server))
            tester.end_servers()
    finally:
        tester.sides.stop()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
