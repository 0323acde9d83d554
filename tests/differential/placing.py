#!/usr/bin/env python3
"""Placing operations of peers: random operations of all types, of three origins, come to one server out of order, with
commands of its own clients in between. Another server gets the same operations in the order of their places. Both
must then have the same data, and so must a plain replica of the first one; and the first one must have handed on what
came, as it came.

    placing.py --server BIN --oracle BIN [--rounds N] [--seed N] [--commands N]

The last line counts rounds.
"""
import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import facts        # noqa: E402
import operations        # noqa: E402
from compare import show_words      # noqa: E402
from generate import Generator      # noqa: E402
from harness import Lost, Server, encode, parse        # noqa: E402
from operations import CHANGING, Mistake, batch, picture      # noqa: E402
from roundtrip import LIMITS, OPTIONS      # noqa: E402

# An active node keeps to this bound, whatever the directive says; who is compared with it byte by byte has it, too.
OPTIONS = [*OPTIONS, "--hll-sparse-max-bytes", "3000"]
LIMITS = {name: [word for word in words if word not in ("--hll-sparse-max-bytes", "60")]
          for name, words in LIMITS.items()}

operations.NEVER.update({b"SWAPDB", b"PUBLISH", b"SPUBLISH"})
COUNTER_BITS = 14
OVERWRITES = 1 << 8
DAY_MS = 24 * 3600 * 1000
ORIGINS = (3, 5, 2 ** 40)


def key_of(part):
    """Operations of one key stay in their order; those of several may come in any."""
    db, words = part
    return db, words[1] if len(words) > 1 else b""


def without_minus_zero(words):
    """A score of -0 stays -0 in large sorted sets only: which of them are large is a matter of history."""
    return [b"0" if word == b"-0" else word for word in words]


class Entry:
    """What one stamp did."""

    def __init__(self, origin, stamp, wall):
        self.origin = origin
        self.stamp = stamp
        self.prev = 0
        self.wall = wall
        self.parts = []     # database and words

    def place(self):
        return self.stamp, self.origin

    def command(self):
        words = [b"DEBUG", b"PLACE", self.origin, self.prev, self.stamp, self.wall, self.parts[0][0], *self.parts[0][1]]
        for db, more in self.parts[1:]:
            words += [b"|%d" % db, *more]
        return words

    def __str__(self):
        return "%d/%d wall %d: %s" % (self.stamp, self.origin, self.wall, "; ".join(
            "db%d %s" % (db, show_words(words)) for db, words in sorted(self.parts, key=key_of)))


def read_entries(connection):
    """What peers would get, in the order of the journal."""
    found = []
    reply = connection.command("DEBUG", "OPERATIONS", "READ")
    if reply[0] != "*":
        raise Lost("DEBUG OPERATIONS READ answers %r" % (reply,))
    for record in reply[1]:
        db, _, bytes_, origin, stamp, wall = (one[1] for one in record[1])
        words = [word[1] for word in parse(bytes_, 0)[0][1]]
        origin, stamp = int(origin), int(stamp)
        if stamp == 0 or words[0].upper() in (b"MULTI", b"EXEC"):
            continue
        if not found or found[-1].place() != (stamp, origin):
            found.append(Entry(origin, stamp, int(wall)))
        found[-1].parts.append((int(db), words))
    return found


def deadlines(choose, keys, base):
    """Commands that set deadlines which some of the operations meet, and others do not."""
    key, at = choose.choice(keys), base + choose.randrange(0, 20000)
    return choose.choice([[b"PEXPIREAT", key, at], [b"SET", key, b"7", b"PXAT", at], [b"HSET", key, b"f", b"1"],
                          [b"HPEXPIREAT", key, at, b"FIELDS", b"1", b"f"], [b"PERSIST", key],
                          [b"SADD", key, b"m1", b"m2"], [b"PEXPIREMEMBERAT", key, b"m1", at]])


def keys_of(entries):
    return sorted({words[1] for entry in entries for _, words in entry.parts if len(words) > 1}) or [b"k"]


def make_entries(options, commands, seed, choose, base):
    """Operations that a server found out, with places and origins of our own."""
    generator = Generator(seed, commands)
    with Server(options.server, [*OPTIONS, *LIMITS[seed.split("/")[1]]], 1) as server:
        source = server.connect()
        source.command("DEBUG", "STAMPING", "1")
        source.command("DEBUG", "OPERATIONS", "START")
        made = []
        while len(made) < options.commands:
            several = batch(generator, choose)
            if made:
                several += [deadlines(choose, keys_of(made[-60:]), base) for _ in range(4)]
            source.exchange(b"".join(encode(without_minus_zero(words)) for words in several), len(several))
            made += read_entries(source)
    made = [entry for entry in made if not is_flush(entry) or choose.random() < 0.15]
    if choose.random() < 0.5:
        choose.shuffle(made)
    now = int(time.time() * 1000)
    stamp, wall = (now - 2000) << COUNTER_BITS, base
    last = {}
    for entry in made:
        stamp += 1 << choose.choice((0, 1, 14, 15))
        wall += choose.randrange(0, 30)
        entry.origin, entry.stamp = choose.choice(ORIGINS), stamp
        if choose.random() < 0.1:       # several have this stamp
            stamp -= 1
        entry.stamp = max(entry.stamp, last.get(entry.origin, (0, 0))[0] + 1)
        entry.wall = max(wall + choose.randrange(-2000, 2000), last.get(entry.origin, (0, 0))[1])
        entry.prev = last.get(entry.origin, (0, 0))[0]
        last[entry.origin] = entry.stamp, entry.wall
    return made


def is_flush(entry):
    return any(words[0].upper() in (b"FLUSHALL", b"FLUSHDB") for _, words in entry.parts)


def arrivals(entries, choose):
    """Those of each origin in their order, and mixed."""
    queues = [[entry for entry in entries if entry.origin == origin] for origin in ORIGINS]
    while any(queues):
        queue = choose.choice([queue for queue in queues if queue])
        for _ in range(min(choose.choice((1, 1, 3, 20)), len(queue))):
            yield queue.pop(0)


def frontier(entries, arrived_count):
    """What no later arrival is below: stamp and wall time."""
    left = [queue[arrived_count[origin]:] for origin, queue in
            ((origin, [entry for entry in entries if entry.origin == origin]) for origin in ORIGINS)]
    firsts = [queue[0] for queue in left if queue]
    if not firsts:
        return 0, 0
    return min(entry.stamp for entry in firsts) - 1, min(int(time.time() * 1000), *(entry.wall for entry in firsts))


def send(connection, several):
    for words, reply in zip(several, connection.exchange(b"".join(map(encode, several)), len(several))):
        if words[:2] == [b"DEBUG", b"PLACE"] and reply != ("+", b"OK"):
            raise Mistake("%s: %r" % (show_words(list(map(str, words))), reply))


def compare(one, other, entries):
    if one == other:
        return
    differs = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    named = [key for key in differs if isinstance(key, tuple)]
    history = [str(entry) for entry in entries
               if any(key[1] in words for key in named[:1] for _, words in entry.parts) or is_flush(entry)][-30:]
    raise Mistake("%d differ, as %s\n  %s" % (len(differs), "; ".join(
        "%r: %r and %r" % (key, one.get(key), other.get(key)) for key in named[:2]), "\n  ".join(history)))


def run_round(options, commands, seed):
    choose = random.Random(seed)
    base = int(time.time() * 1000) + DAY_MS
    try:
        entries = make_entries(options, commands, seed, choose, base)
    except Lost as problem:
        raise Lost("making: %s" % problem) from None
    limits = LIMITS[seed.split("/")[1]]
    with Server(options.server, [*OPTIONS, *limits], options.threads) as server, \
            Server(options.server, [*OPTIONS, *limits], 1) as other, \
            Server(options.server, [*OPTIONS, *limits, "--replicaof", "127.0.0.1 %d" % server.port], 1) as follower:
        try:
            return run_on(options, choose, entries, Generator(seed + "/local", commands), server, other, follower)
        except Lost as problem:
            raise Lost("%s\n%s\n%s" % (problem, crash_of(server), crash_of(other))) from None


def crash_of(server):
    text = server.log(100000)
    at = text.find("BUG REPORT START")
    return text[max(at - 200, 0):at + 2500] if at >= 0 else ""


def info_of(connection, name):
    found = [line for line in connection.command("INFO", "replication")[1].decode().split("\r\n")
             if line.startswith(name + ":")]
    return found[0].split(":")[1] if found else ""


def wait_until(condition, what):
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            raise Mistake("after 30 s still not: " + what)
        time.sleep(0.01)


def run_on(options, choose, entries, local, server, other, follower):
    mixed, ordered, behind = server.connect(), other.connect(), follower.connect()
    wait_until(lambda: info_of(behind, "master_link_status") == "up", "the replica has a link")
    for connection in (mixed, ordered):
        connection.command("DEBUG", "STAMPING", "1")
    mixed.command("DEBUG", "OPERATIONS", "START")
    arrived, batched, so_far = [], [], dict.fromkeys(ORIGINS, 0)
    for entry in arrivals(entries, choose):
        arrived.append(entry)
        so_far[entry.origin] += 1
        batched.append(entry.command())
        if choose.random() < options.local:
            batched += [words for words in batch(local, choose)[:choose.randrange(1, 12)]
                        if words[0] not in (b"MULTI", b"EXEC", b"FLUSHALL", b"FLUSHDB")]
        if choose.random() < options.settle:
            batched.append([b"DEBUG", b"WINDOW", *frontier(entries, so_far)])
        if len(batched) > 50:
            send(mixed, batched)
            batched = []
    send(mixed, batched)
    journal = read_entries(mixed)
    forwarded = [str(entry) for entry in journal if entry.origin in ORIGINS]
    if forwarded != [str(entry) for entry in arrived]:
        at = next((i for i, pair in enumerate(zip(forwarded, arrived)) if pair[0] != str(pair[1])), -1)
        raise Mistake("handed on: %s\n  and not: %s" % (forwarded[at] if forwarded else "nothing", arrived[at]))
    own = [entry for entry in journal if entry.origin not in ORIGINS]
    for before, entry in zip(own, own[1:]):
        entry.prev = before.stamp
    everything = sorted(entries + own, key=Entry.place)
    send(ordered, [entry.command() for entry in everything])
    one, two = picture(server, CHANGING), picture(other, CHANGING)
    counts = [int(one[1]) for one in mixed.command("DEBUG", "WINDOW")[1]]
    compare(one, two, everything)
    mixed.command("PING")
    wait_until(lambda: int(info_of(behind, "slave_repl_offset")) >= int(info_of(mixed, "master_repl_offset")),
               "the replica has everything")
    try:
        compare(one, picture(follower, CHANGING), everything)
    except Mistake as problem:
        raise Mistake("the replica: %s" % problem) from None
    return len(entries), len(own), counts[5]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--commands", type=int, default=1500)
    parser.add_argument("--local", type=float, default=0.1)
    parser.add_argument("--settle", type=float, default=0.02)
    options = parser.parse_args()
    with Server(options.oracle) as oracle, Server(options.server) as server:
        commands = facts.load(oracle, server)[0]
    failed, totals = 0, [0, 0, 0]
    for number in range(options.first, options.first + options.rounds):
        seed = "%d/%s/%d" % (options.seed, list(LIMITS)[number % len(LIMITS)], number)
        try:
            totals = [one + other for one, other in zip(totals, run_round(options, commands, seed))]
        except (Mistake, Lost) as problem:
            failed += 1
            print("FAILED  round %s: %s" % (seed, problem), flush=True)
    print("%d operations of peers, %d of its own clients, %d placed among others" % tuple(totals))
    print("%d passed, %d failed" % (options.rounds - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
