#!/usr/bin/env python3
"""Differential test: the same commands to our server and to an oracle (redis-server), everything compared.

    run.py --server BIN --oracle BIN [--count N] [--seed N] [--resp 2|3|both] [--threads N] [--profile NAME]

Commands come in blocks (--block, 200 commands each). A block begins with empty servers; replies are compared with
their exact types, then the data of all databases, the digests, and the effects each server hands on to replicas.
What differs is reduced to the few commands that are needed and printed. The last line counts blocks.

--inject reply|data|journal falsifies our side on purpose, to see the test fail.
"""
import argparse
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import forms        # noqa: E402
import compare      # noqa: E402
import events       # noqa: E402
import facts        # noqa: E402
import journal      # noqa: E402
import protocol     # noqa: E402
import scripts      # noqa: E402
import tables       # noqa: E402
from generate import PROFILES, Generator    # noqa: E402
from harness import Lost, Server, encode, exchange_all      # noqa: E402
from interleave import CLIENTS      # noqa: E402
from shrink import shrink       # noqa: E402

DATABASES = 16
# A small limit, so that the commands at it are quick. Both take it by CONFIG SET, as a user would.
BULK_LIMIT = b"1048576"
# With this policy and any limit the oracle gives small integers a value of their own each; else all keys that hold the
# same number share one, with one time of last use and a count of users that depends on how the value came about.
COMMON = ["--enable-debug-command", "yes", "--maxmemory", "100gb", "--maxmemory-policy", "allkeys-lru"]
# As our defaults are: then DEL is UNLINK in effects.
COMMON += [word for what in ("expire", "eviction", "server-del", "user-del", "user-flush")
           for word in ("--lazyfree-lazy-" + what, "yes")]
# With these every value changes its form again and again.
SMALL_LIMITS = ["--hash-max-listpack-entries", "3", "--hash-max-listpack-value", "6", "--set-max-intset-entries", "3",
                "--zset-max-listpack-entries", "3", "--zset-max-listpack-value", "6", "--list-max-listpack-size", "3",
                "--list-compress-depth", "1", "--stream-node-max-entries", "3", "--hll-sparse-max-bytes", "60"]
READ_VALUE = {b"string": ["GET"], b"list": ["LRANGE", 0, -1], b"set": ["SMEMBERS"], b"hash": ["HGETALL"],
              b"zset": ["ZRANGE", 0, -1, "WITHSCORES"], b"stream": ["XRANGE", "-", "+"]}


class Difference:
    """kind: reply, data, journal, events, lost (a server has gone). signature: equal for what is the same mistake."""

    def __init__(self, kind, what, oracle, server, index=None):
        self.kind = kind
        self.what = what
        self.oracle = oracle
        self.server = server
        self.index = index

    def signature(self):
        if self.kind == "journal":
            names = [re.sub(r"^db\d+ ", "", text).split(" ")[0].lower() for text in (self.oracle, self.server)]
            return (self.kind, *names)
        if self.kind == "events":
            return (self.kind, events.signature(self.oracle), events.signature(self.server))
        return (self.kind, self.what.split(" ")[0].lower(), self.oracle[:12], self.server[:12])


class Sides:
    """Both servers with their connections; whatever has died is started anew."""

    def __init__(self, options):
        self.options = options
        self.common = COMMON + (SMALL_LIMITS if getattr(options, "small_limits", False) else [])
        self.servers = [None, None]
        self.journals = [None, None]
        self.listeners = [None, None]
        self.admins = [None, None]
        self.clients = None
        self.missing = set()

    def start(self, side):
        if side == 0:
            options = [*self.common, "--repl-ping-replica-period", "3600", "--repl-timeout", "7200",
                       "--repl-diskless-sync", "no", "--client-output-buffer-limit", "replica 0 0 0"]
            self.servers[0] = Server(self.options.oracle, options)
        else:
            options = list(self.common)
            if "redis" in os.path.basename(self.options.server):
                options += ["--repl-ping-replica-period", "3600", "--repl-timeout", "7200"]
            else:
                options += ["--server-threads", str(self.options.threads)]
            self.servers[1] = Server(self.options.server, options)
        self.admins[side] = self.servers[side].connect()
        for words in (["DEBUG", "SET-ACTIVE-EXPIRE", "0"], ["CONFIG", "SET", "proto-max-bulk-len", BULK_LIMIT]):
            reply = self.admins[side].command(*words)
            if reply != ("+", b"OK"):
                self.missing.add("%s answers %s" % (" ".join(map(str, words[:3])), compare.show(reply)))
        try:
            self.journals[side] = journal.attach(self.servers[side])
        except Lost as problem:
            self.missing.add("no journal: %s" % problem)
        if self.options.events:
            self.listeners[side] = events.Listener(self.servers[side])

    def ensure(self):
        for side in (0, 1):
            if self.servers[side] is None or not self.servers[side].alive():
                if self.servers[side]:
                    self.servers[side].stop()
                self.start(side)

    def fresh(self, resp):
        """Empty servers and new connections."""
        self.ensure()
        if self.clients:
            for connection in self.clients[0] + self.clients[1]:
                connection.close()
        wipe = [["FLUSHALL"], ["SELECT", 0], ["FUNCTION", "FLUSH"], ["SCRIPT", "FLUSH"]]
        payload = b"".join(encode(words) for words in wipe)
        for side, result in enumerate(exchange_all([(admin, payload, len(wipe)) for admin in self.admins])):
            if isinstance(result, Lost):
                raise result
        self.clients = [[server.connect() for _ in range(CLIENTS)] for server in self.servers]
        if resp == 3:
            for side in self.clients:
                for connection in side:
                    connection.command("HELLO", "3")
        for each in self.journals + self.listeners:
            if each:
                each.read()

    def both(self, words_list):
        payload = b"".join(encode(words) for words in words_list)
        results = exchange_all([(admin, payload, len(words_list)) for admin in self.admins])
        for result in results:
            if isinstance(result, Lost):
                raise result
        return results

    def stop(self):
        for server in self.servers:
            if server:
                server.stop()


class Tester:
    def __init__(self, options):
        self.options = options
        self.sides = Sides(options)
        self.damaged = False
        self.accepted = compare.Accepted(os.path.join(os.path.dirname(os.path.abspath(__file__)), "accepted.txt"))
        self.sides.ensure()
        self.commands, self.shared, self.only_oracle = facts.load(*self.sides.servers)

    # -- one block ----------------------------------------------------------------------------------------------

    def run(self, items, resp):
        """The first difference, or None."""
        try:
            self.sides.fresh(resp)
        except (Lost, OSError) as problem:
            return Difference("lost", "before the block", "", str(problem))
        talks = [compare.Conversation(self.commands, self.shared) for _ in range(CLIENTS)]
        self.damaged = False
        for begin, end in segments(items):
            difference = self.run_segment(items, begin, end, talks)
            if difference or self.damaged:
                return difference
        try:
            return self.compare_journals() or self.compare_events() or self.compare_data()
        except (Lost, OSError) as problem:
            return Difference("lost", "after the block", "", str(problem))

    def run_segment(self, items, begin, end, talks):
        if items[begin][1][0] == "@sleep":
            time.sleep(items[begin][1][1] / 1000)
            return None
        which = items[begin][0]
        payload = b"".join(encode(words) for _, words in items[begin:end])
        other = payload
        if self.options.inject in ("data", "journal"):
            other = b"".join(encode(self.falsify(words)) for _, words in items[begin:end])
        oracle, server = exchange_all([(self.sides.clients[0][which], payload, end - begin),
                                       (self.sides.clients[1][which], other, end - begin)])
        oracle_replies, server_replies = (getattr(replies, "replies", replies) for replies in (oracle, server))
        for offset in range(end - begin):
            words = items[begin + offset][1]
            one = oracle_replies[offset] if offset < len(oracle_replies) else None
            two = server_replies[offset] if offset < len(server_replies) else None
            if one is None or two is None:
                lost = [compare.show(one) if one else str(oracle), compare.show(two) if two else str(server)]
                return Difference("lost", compare.show_words(words), *lost, begin + offset)
            if "INVALIDOBJ Corrupted" in repr((one, two)):
                self.damaged = True     # a command edited a HyperLogLog by hand: who notices when is not the same
                return None
            if self.options.inject == "reply" and words[0].upper() == b"APPEND" and two[0] == ":":
                two = ("$", two[1])
            if not talks[which].equal(words, one, two):
                shown = compare.show_words(words), compare.show(one), compare.show(two)
                if not self.accepted.allows("reply", *shown):
                    return Difference("reply", *shown, begin + offset)
        return None

    def falsify(self, words):
        name = words[0].upper()
        if self.options.inject == "data" and name == b"SETRANGE" and len(words) == 4 and words[3]:
            return words[:3] + [words[3][:-1] + b"?"]
        if self.options.inject == "journal" and name == b"DEL":
            return [b"UNLINK"] + words[1:]
        if name in (b"EVAL", b"EVAL_RO") and len(words) > 1:     # of what the script calls
            swaps = {"data": (b"'RPUSH'", b"'LPUSH'"), "journal": (b"'DEL'", b"'UNLINK'")}
            return [words[0], words[1].replace(*swaps[self.options.inject])] + words[2:]
        return words

    def compare_journals(self):
        if None in self.sides.journals:
            return None
        oracle, server = (journal.effects(each.read()) for each in self.sides.journals)
        oracle, server = journal.without_growth(oracle, server)
        oracle, server = journal.without_consumers(oracle, server)
        oracle, server = journal.settle_order(oracle), journal.settle_order(server)
        difference = journal.first_difference(oracle, server)
        if difference is None:
            return None
        shown = [journal.show_effect(effect) for effect in difference[1:]]
        if self.accepted.allows("journal", shown[0], *shown):
            return None
        return Difference("journal", "effect %d" % difference[0], *shown)

    def compare_events(self):
        if not self.options.events:
            return None
        difference = events.first_difference(*(each.read() for each in self.sides.listeners))
        if difference is None:
            return None
        shown = [events.show_event(event) for event in difference[1:]]
        if self.accepted.allows("events", shown[0], *shown):
            return None
        return Difference("events", "event %d" % difference[0], *shown)

    def compare_data(self):
        self.has_own_zero = False
        for database in range(DATABASES):
            # SCAN removes what has expired and was not looked at since.
            oracle, server = (replies[1:] for replies in self.sides.both(
                [["SELECT", database], ["SCAN", 0, "COUNT", 10**6], ["KEYS", "*"], ["DBSIZE"]]))
            difference = self.same("db %d KEYS" % database, *(compare.canonical(side[1]) for side in (oracle, server)))
            difference = difference or self.same("db %d DBSIZE" % database, oracle[2], server[2])
            keys = [key[1] for key in oracle[1][1]]
            if not difference and keys:
                difference = self.compare_keys(database, keys) or self.compare_scan(database, keys)
            if difference:
                return difference
        if self.has_own_zero:       # digests have the texts of scores
            return None
        oracle, server = self.sides.both([["DEBUG", "DIGEST"]])
        return self.same("DEBUG DIGEST", oracle[0], server[0])

    def compare_keys(self, database, keys):
        types = self.sides.both([["TYPE", key] for key in keys])
        questions = []
        for key, kind in zip(keys, types[0]):
            read = READ_VALUE.get(kind[1], ["TYPE"])
            questions.append(["TYPE", key])
            questions.append([read[0], key, *read[1:]])
            questions += [["OBJECT", "ENCODING", key], ["PTTL", key]]
            if kind[1] == b"stream":
                questions.append(["XINFO", "STREAM", key, "FULL", "COUNT", 0])
        oracle, server = self.sides.both(questions)
        kind = None
        for words, one, two in zip(questions, oracle, server):
            if words[0] == "TYPE":
                kind = two[1]
            if words[0] == "OBJECT" and compare.newer_encoding(kind, one, two):
                continue
            if words[0] in ("SMEMBERS", "HGETALL"):
                one, two = compare.canonical(one), compare.canonical(two)
            if words[0] == "ZRANGE" and one != two and compare.with_one_zero(one) == two:
                self.has_own_zero = True
                continue
            if words[0] == "XINFO" and compare.equal_stream("xinfo|stream", one, two):
                continue
            if words[0] == "PTTL" and compare.close_numbers(one, two, 3000):
                continue
            difference = self.same("db %d %s" % (database, compare.show_words(words)), one, two)
            if difference:
                return difference
        return None

    def compare_scan(self, database, keys):
        """A full iteration must give every key; which come twice and in what order is the server's."""
        for extra in ([], ["MATCH", "s*"], ["COUNT", 3]):
            found, cursor = set(), b"0"
            for _ in range(10 * len(keys) + 100):
                reply = self.sides.admins[1].command("SCAN", cursor, *extra)
                found |= {key[1] for key in reply[1][1][1]}
                cursor = reply[1][0][1]
                if cursor == b"0":
                    break
            wanted = {key for key in keys if extra[:1] != ["MATCH"] or key[:1] == b"s"}
            if found != wanted or cursor != b"0":
                return Difference("data", "db %d SCAN %s" % (database, extra), repr(sorted(wanted)),
                                  repr(sorted(found)) + (" without an end" if cursor != b"0" else ""))
        for reply in self.sides.both([["RANDOMKEY"]] * 3)[1]:
            if reply[1] not in keys:
                return Difference("data", "db %d RANDOMKEY" % database, "one of the keys", compare.show(reply))
        return None

    def same(self, what, oracle, server):
        if oracle == server:
            return None
        shown = compare.show(oracle), compare.show(server)
        if shown[0] == shown[1]:
            shown = compare.show(oracle, 10**6), compare.show(server, 10**6)
        if self.accepted.allows("data", what, *shown):
            return None
        return Difference("data", what, *shown)

    # -- reporting ----------------------------------------------------------------------------------------------

    def report(self, number, items, resp, difference):
        print("\nFAILED block %d (seed %d, RESP%d): %s differs" % (number, self.options.seed, resp, difference.kind))
        if difference.index is not None:    # what came later has no part in it
            items = items[:difference.index + 1]
        kind = difference.kind
        smallest, last = shrink(items, lambda some: self.still(some, resp, kind), self.options.shrink_seconds)
        difference = last or difference
        print("  needs %d of %d commands%s:" % (len(smallest), len(items), "" if last else " (did not happen again)"))
        for which, words in smallest[:60]:
            print("    %s%s" % ("" if which == 0 else "[connection %d] " % which, compare.show_words(words)))
        print("  at:     %s\n  oracle: %s\n  ours:   %s" % (difference.what, difference.oracle, difference.server))
        if self.options.profile == "scripts":
            for text in (word for _, words in smallest[-3:] for word in words if len(word) > 120):
                print("  script: %s" % compare.show_words([text.replace(scripts.PRELUDE.encode(), b"... ")], 5000))
        if kind == "lost":
            for side, server in enumerate(self.sides.servers):
                if server and not server.alive():
                    print("  %s died:\n%s" % (("oracle", "our server")[side], server.log()))
        sys.stdout.flush()

    def still(self, items, resp, kind):
        difference = self.run(items, resp)
        return difference if difference and difference.kind == kind else None


def segments(items):
    """What may go out in one piece: neighbours on the same connection; a pause stands alone."""
    begin = 0
    for index in range(1, len(items) + 1):
        if index == len(items) or items[index][0] != items[begin][0] or \
                "@sleep" in (items[index][1][0], items[begin][1][0]):
            yield begin, index
            begin = index


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--count", type=int, default=20000, help="commands")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--resp", choices=("2", "3", "both"), default="both")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--profile", default="mixed", help=", ".join(PROFILES))
    parser.add_argument("--block", type=int, default=200, help="commands a block")
    parser.add_argument("--only-block", type=int, help="just the block of this number")
    parser.add_argument("--max-failures", type=int, default=10, help="different ones, then stop")
    parser.add_argument("--shrink-seconds", type=float, default=20)
    parser.add_argument("--small-limits", action="store_true", help="values change their forms early")
    parser.add_argument("--inject", choices=("reply", "data", "journal"))
    parser.add_argument("--events", action="store_true", help="compare keyspace events, too")
    return parser.parse_args()


def main():
    options = arguments()
    tester = Tester(options)
    passed, failed = 0, 0
    seen = set()
    begin = time.monotonic()
    try:
        print("seed %d, %d commands shared, the oracle alone has %d: %s" % (
            options.seed, len(tester.shared), len(tester.only_oracle), " ".join(sorted(tester.only_oracle)[:12])))
        for problem in sorted(tester.sides.missing):
            print("FAILED to set up: %s" % problem)
            failed += 1
        if options.only_block is None and options.profile == "mixed":
            more = protocol.run(tester.sides, options.seed, tester.accepted)
            passed, failed = passed + more[0], failed + more[1]
            for part in (tables, forms):
                more = part.run(*tester.sides.servers)
                passed, failed = passed + more[0], failed + more[1]
        blocks = max(1, (options.count + options.block - 1) // options.block)
        for number in range(blocks):
            if options.only_block not in (None, number):
                continue
            generator = Generator("%d/%d" % (options.seed, number), tester.commands, options.profile)
            items = generator.block(options.block)
            resp = {"2": 2, "3": 3}.get(options.resp, 2 + number % 2)
            difference = tester.run(items, resp)
            if difference is None:
                passed += 1
                continue
            failed += 1
            if difference.signature() in seen:
                print("block %d: again %s" % (number, difference.what[:100]))
                continue
            seen.add(difference.signature())
            tester.report(number, items, resp, difference)
            if len(seen) >= options.max_failures:
                print("too many different failures, the rest is not run")
                break
    finally:
        tester.sides.stop()
    for rule, times in sorted(tester.accepted.used.items()):
        print("accepted.txt:%d was used %d times" % (rule, times))
    print("%.1f s" % (time.monotonic() - begin))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
