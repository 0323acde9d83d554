#!/usr/bin/env python3
"""Clients that wait for keys to be filled, here and in redis-server: who is served, in what order, with what.

    waiting.py --server BIN --oracle BIN [--count N] [--seed N] [--threads N]

Eight clients take turns over few keys. After each turn the test waits until both servers have come to rest (who has
no reply yet is a blocked client), and then the same clients must have got the same replies. In the end of a block the
data must be equal, and what each server told its replicas. Failures are shrunk.
"""
import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import compare                                  # noqa: E402
import journal                                  # noqa: E402
from harness import Lost, encode                # noqa: E402
from run import Difference, Sides, Tester       # noqa: E402

CLIENTS = 8
PATIENCE_SECONDS = 5
KEYS = ["a", "b", "c", "d", "e"]

# Weight, words. {k} a key, {v} a value, {n} a small number, {d} a database, {e} LEFT or RIGHT, {z} MIN or MAX, {i} a
# number that grows.
COMMANDS = [
    (8, "BLPOP {k} 0"), (4, "BLPOP {k} {k} {k} 0"), (4, "BRPOP {k} {k} 0"), (4, "BLMPOP 0 1 {k} {e}"),
    (4, "BLMPOP 0 3 {k} {k} {k} {e} COUNT {n}"), (10, "BLMOVE {k} {k} {e} {e} 0"), (6, "BRPOPLPUSH {k} {k} 0"),
    (4, "BZPOPMIN {k} 0"), (4, "BZPOPMAX {k} {k} 0"), (4, "BZMPOP 0 2 {k} {k} {z} COUNT {n}"),
    (3, "XREAD BLOCK 0 STREAMS {k} {k} $ $"), (3, "XREAD COUNT 2 BLOCK 0 STREAMS {k} 5-0"),
    (5, "XREADGROUP GROUP g c{n} BLOCK 0 STREAMS {k} >"),
    (3, "XREADGROUP GROUP g c{n} NOACK BLOCK 0 STREAMS {k} {k} > >"),
    (16, "RPUSH {k} {v}"), (8, "LPUSH {k} {v} {v} {v}"), (2, "RPUSHX {k} {v}"), (3, "LPOP {k}"),
    (2, "LMOVE {k} {k} {e} {e}"),
    (2, "LRANGE {k} 0 -1"), (1, "LREM {k} 0 {v}"), (1, "LTRIM {k} 1 2"),
    (8, "ZADD {k} {n} {v}"), (4, "ZADD {k} {n} {v} {n} {v}"), (1, "ZREM {k} {v}"), (2, "ZPOPMIN {k}"),
    (6, "XADD {k} {i}-0 f {v}"), (3, "XGROUP CREATE {k} g $ MKSTREAM"), (2, "XGROUP DESTROY {k} g"),
    (2, "XGROUP SETID {k} g 0"),
    (1, "XTRIM {k} MAXLEN 1"),
    (5, "DEL {k}"), (2, "SET {k} {v}"), (1, "SADD {k} {v}"), (2, "RENAME {k} {k}"), (2, "COPY {k} {k} REPLACE"),
    (2, "MOVE {k} {d}"),
    (3, "SELECT {d}"), (1, "FLUSHALL"), (1, "FLUSHDB"), (2, "PEXPIRE {k} -1"),
    (1, "GET {k}"), (1, "EXISTS {k} {k}"),
]
# Not SWAPDB: it may fill several keys, and redis-server serves those in the order of its own table. Not ZUNIONSTORE and
# the like: where they take the place of another type redis-server wakes nobody; here they fill the key, and it does.


class Turns:
    """What the clients do. An item is (client, commands): what is sent in one piece."""

    def __init__(self, seed, shared):
        self.random = random.Random(seed)
        self.serial = 0
        self.rows = [row for row in COMMANDS if row[1].split()[0].lower() in shared]

    def words(self):
        row = self.random.choices(self.rows, [row[0] for row in self.rows])[0][1]
        pick = self.random.choice
        makers = {"{k}": lambda: pick(KEYS), "{v}": lambda: "v%d" % self.random.randrange(4), "{d}": lambda: pick("01"),
                  "{n}": lambda: str(self.random.randrange(1, 4)), "{e}": lambda: pick(["LEFT", "RIGHT"]),
                  "{z}": lambda: pick(["MIN", "MAX"])}
        words = []
        self.serial += 1
        row = row.replace("{i}", str(self.serial))
        for word in row.split(" "):
            for mark, make in makers.items():
                while mark in word:
                    word = word.replace(mark, make(), 1)
            words.append(word)
        return words

    def block(self, count):
        items = []
        for _ in range(count):
            commands = [self.words() for _ in range(self.random.choice((1, 1, 1, 1, 2, 4)))]
            if len(commands) > 1 and self.random.random() < 0.6:
                commands = [["MULTI"], *commands, ["EXEC"]]
            items.append((self.random.randrange(CLIENTS), commands))
        return items


class Side:
    """One server's clients."""

    def __init__(self, server, admin, resp):
        self.admin = admin
        self.clients = [server.connect() for _ in range(CLIENTS)]
        self.wanted = [0] * CLIENTS         # replies that are to come
        self.replies = [[] for _ in range(CLIENTS)]
        if resp == 3:
            for client in self.clients:
                client.command("HELLO", "3")

    def close(self):
        for client in self.clients:
            client.close()

    def send(self, which, commands):
        self.wanted[which] += len(commands)
        self.clients[which].sock.sendall(b"".join(encode(words) for words in commands))

    def receive(self):
        for which, client in enumerate(self.clients):
            client.sock.setblocking(False)
            try:
                data = client.sock.recv(1 << 20)
                if not data:
                    raise Lost("connection closed by the server")
                client.data += data
            except BlockingIOError:
                pass
            finally:
                client.sock.settimeout(client.timeout)
            client.take(self.replies[which], self.wanted[which])

    def missing(self):
        return {which for which in range(CLIENTS) if len(self.replies[which]) < self.wanted[which]}

    def blocked(self):
        text = self.admin.command("INFO", "clients")[1].decode()
        return int(text.split("blocked_clients:")[1].split("\r\n")[0])


class WaitingTester(Tester):
    patience = PATIENCE_SECONDS     # how long a turn may take

    def run(self, items, resp):
        try:
            self.sides.fresh(resp)
            self.pair = [Side(self.sides.servers[side], self.sides.admins[side], resp) for side in (0, 1)]
        except (Lost, OSError) as problem:
            return Difference("lost", "before the block", "", str(problem))
        try:
            for index, (which, commands) in enumerate(items):
                if which in self.pair[0].missing():
                    continue        # it waits
                difference = self.turn(which, commands, index)
                if difference:
                    return difference
            return self.compare_journals() or self.compare_data()
        except (Lost, OSError) as problem:
            return Difference("lost", "within the block", "", str(problem))
        finally:
            for side in self.pair:
                side.close()
            self.rest_empty()

    def rest_empty(self):
        deadline = time.monotonic() + PATIENCE_SECONDS
        for side in self.pair:
            while time.monotonic() < deadline and side.blocked():
                time.sleep(0.001)

    def turn(self, which, commands, index):
        before = [[len(replies) for replies in side.replies] for side in self.pair]
        for side in self.pair:
            side.send(which, commands)
        deadline = time.monotonic() + self.patience
        while True:
            for side in self.pair:
                side.receive()
            missing = [side.missing() for side in self.pair]
            at_rest = missing[0] == missing[1] and all(side.blocked() == len(missing[0]) for side in self.pair)
            shown = [self.show(side, begin) for side, begin in zip(self.pair, before)]
            if at_rest and shown[0] == shown[1] or time.monotonic() > deadline:
                break
        if shown[0] == shown[1]:
            return None
        what = "[connection %d] %s" % (which, "; ".join(" ".join(words) for words in commands))
        return Difference("reply", what, *shown, index)

    @staticmethod
    def show(side, begin):
        """What came to whom."""
        lines = []
        for which, replies in enumerate(side.replies):
            lines += ["%d gets %s" % (which, compare.show(reply)) for reply in replies[begin[which]:]]
        return "; ".join(lines) + "; waiting: %s" % sorted(side.missing())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--count", type=int, default=2000, help="turns")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--block", type=int, default=100, help="turns a block")
    parser.add_argument("--only-block", type=int, help="just the block of this number")
    parser.add_argument("--max-failures", type=int, default=5)
    options = parser.parse_args()
    options.inject, options.shrink_seconds, options.events = None, 30, False
    tester = WaitingTester(options)
    passed = failed = 0
    print("seed %d" % options.seed)
    try:
        for problem in sorted(tester.sides.missing):
            print("FAILED to set up: %s" % problem)
            failed += 1
        for number in range(max(1, options.count // options.block)):
            if options.only_block not in (None, number) or failed >= options.max_failures:
                continue
            items = Turns("%d/%d" % (options.seed, number), tester.shared).block(options.block)
            difference = tester.run(items, 2 + number % 2)
            passed += difference is None
            failed += difference is not None
            if difference:
                report(tester, number, items, difference)
    finally:
        tester.sides.stop()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


def report(tester, number, items, difference):
    resp = 2 + number % 2
    print("\nFAILED block %d (seed %d, RESP%d): %s differs" % (number, tester.options.seed, resp, difference.kind))
    smallest, last = shrink_turns(tester, items, resp, difference)
    for which, commands in smallest[:60]:
        print("    [connection %d] %s" % (which, "; ".join(" ".join(words) for words in commands)))
    print("  at:     %s\n  oracle: %s\n  ours:   %s" % (last.what, last.oracle, last.server))
    sys.stdout.flush()


def shrink_turns(tester, items, resp, difference):
    """Whole turns are left out; their words stay."""
    if difference.index is not None:
        items = items[:difference.index + 1]

    def fails(some):
        outcome = tester.run(some, resp)
        return outcome if outcome and outcome.kind == difference.kind else None

    tester.patience = 0.3       # what differs then may be slow as well: then it is not left out
    deadline = time.monotonic() + tester.options.shrink_seconds
    last, size = difference, max(1, len(items) // 2)
    while time.monotonic() < deadline:
        begin = 0
        while begin < len(items) and time.monotonic() < deadline:
            shorter = items[:begin] + items[begin + size:]
            outcome = fails(shorter) if shorter else None
            if outcome:
                items, last = shorter, outcome
            else:
                begin += size
        if size == 1:
            break
        size = max(1, size // 2)
    tester.patience = PATIENCE_SECONDS
    return items, last


if __name__ == "__main__":
    sys.exit(main())
