#!/usr/bin/env python3
"""Bytes a key and an element of each type, beside redis-server; and what stays resident when most keys are gone.

    bytes.py --server BIN --oracle BIN [-w REGEX] [--quick] [--only keys,elements,left]

keys      strings of so many bytes under names of so many, without and with a deadline: the mean at four counts of keys,
          as tables grow in steps and one count alone may be a lucky one
elements  small values (20,000 to 400,000 keys) and one large one: bytes a field, member, element, entry
left      two million keys of 16 + 64 bytes of which nine in ten are deleted, at random: resident memory 20 s later, as
          a multiple of what a fresh server takes for those that are left; without and with active defragmentation
          (from 10 MB of holes on, as there are only 200 MB of data)

Resident memory after, less before, divided: what the allocator keeps for itself is part of the price. Other work on the
machine does not change it. --quick: a tenth of everything.
"""
import argparse
import os
import random
import re
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "differential"))

from harness import Server, encode      # noqa: E402

MILLION = 1_000_000
BATCH = 2000
SETTLE_S, LEFT_S = 1, 20
KEY_COUNTS = (1_000_000, 1_500_000, 2_000_000, 2_500_000)
LEFT_KEYS, LEFT_SHARE, LEFT_LIMIT = 2_000_000, 10, 1.3
ACTIVE = ["--activedefrag", "yes", "--active-defrag-ignore-bytes", "10mb"]  # 100mb is half of the data here

# Bytes of the name, of the value, with a deadline?, the budget in bytes (None: there is none).
KEYS = [(16, 16, False, 56), (16, 16, True, None), (16, 64, False, 106), (16, 64, True, None), (40, 100, False, None),
        (40, 100, True, None), (16, 1000, False, None), (16, 1000, True, None)]


def one_each(words, count):
    """`words` with numbers in place of its marks, so many times."""
    return ([word % number if "%" in word else word for word in words] for number in range(count))


def small(name, words, elements):
    """Values of so many elements each; `words` of each element, with its number in place of its marks."""
    def make(count):
        for number in range(count // elements):
            some = [name, "key:%012d" % number]
            for element in range(elements):
                some += [word % (element if "d" in word else ()) if "%" in word else word for word in words]
            yield some
    return make


def small_hashes(count):
    for number in range(count):
        words = ["HSET", "key:%012d" % number]
        for field in range(5):
            words += ["field%d" % field, "value%d" % (number % 1000)]
        yield words


# Name, what fills it, how many elements or keys that are, the budget as a share of Redis' (None: there is none).
ELEMENTS = [
    ("hash of 5 fields, a key", small_hashes, 400_000, 0.7),
    ("hash of 50, a field", small("HSET", ["field%d", "value%d"], 50), MILLION, None),
    ("hash of a million", lambda n: one_each(["HSET", "h", "field:%010d", "value:%010d"], n), MILLION, 0.5),
    ("set of 10 numbers, a member", small("SADD", ["%d"], 10), MILLION, None),
    ("set of 10 texts", small("SADD", ["member:%d"], 10), MILLION, None),
    ("set of a million numbers", lambda n: one_each(["SADD", "s", "%d"], n), MILLION, 0.5),
    ("set of a million texts", lambda n: one_each(["SADD", "s", "member:%010d"], n), MILLION, 0.5),
    ("zset of 10, a member", small("ZADD", ["%d.5", "member:%d"], 10), MILLION, None),
    ("zset of a million", lambda n: one_each(["ZADD", "z", "%d.5", "member:%010d"], n), MILLION, None),
    ("list of 10, an element", small("RPUSH", ["item:%011d"], 10), MILLION, None),
    ("list of a million", lambda n: one_each(["RPUSH", "l", "item:%011d"], n), MILLION, None),
    ("stream of 10, an entry", lambda n: (["XADD", "x:%d" % (k // 10), "%d-1" % (k + 1), "a", str(k), "b", "value"]
                                          for k in range(n)), 200_000, None),
    ("stream of a million", lambda n: one_each(["XADD", "x", "*", "a", "%d", "b", "value"], n), MILLION, None),
]


def fill(server, commands):
    """Whether all were understood."""
    connection = server.connect(300)
    batch, fine = [], True
    for words in commands:
        batch.append(encode(words))
        if len(batch) == BATCH:
            fine = all(reply[0] != "-" for reply in connection.exchange(b"".join(batch), len(batch))) and fine
            batch = []
    if batch:
        fine = all(reply[0] != "-" for reply in connection.exchange(b"".join(batch), len(batch))) and fine
    connection.close()
    return fine


def must_fill(server, commands):
    if not fill(server, commands):
        raise SystemExit("a command was refused")


def sets(name_size, value_size, expires, numbers):
    for number in numbers:
        words = ["SET", "k%0*d" % (name_size - 1, number), "v%0*d" % (value_size - 1, number)]
        yield words + ["EX", "100000"] if expires else words


def key_bytes(binary, kind, counts):
    """The mean at so many keys: tables grow in steps, one count alone may be a lucky one."""
    server = Server(binary, [], 1)
    try:
        before, have, shares = server.rss(), 0, []
        for count in counts:
            must_fill(server, sets(*kind, range(have, count)))
            have = count
            time.sleep(SETTLE_S)
            shares.append((server.rss() - before) / count)
        return sum(shares) / len(shares)
    finally:
        server.stop()


def element_bytes(binary, make, count):
    server = Server(binary, [], 1)
    try:
        before = server.rss()
        must_fill(server, make(count))
        time.sleep(SETTLE_S)
        return (server.rss() - before) / count
    finally:
        server.stop()


def left_share(binary, count, options):
    """Resident memory beside that of a server that never had the other keys."""
    keys = list(range(count))
    random.Random(1).shuffle(keys)
    stay, go = keys[:count // LEFT_SHARE], keys[count // LEFT_SHARE:]
    resident = []
    for is_fresh in (True, False):
        server = Server(binary, options, 1)
        try:
            must_fill(server, sets(16, 64, False, sorted(stay) if is_fresh else range(count)))
            if not is_fresh:
                must_fill(server, (["DEL", "k%015d" % number] for number in go))
            time.sleep(SETTLE_S if is_fresh else LEFT_S)
            resident.append(server.rss())
        finally:
            server.stop()
    return resident[1] / resident[0]


def show(name, redis, ours, note):
    print("%-36s %10.1f %10.1f %8.2f   %s" % (name, redis, ours, ours / redis, note), flush=True)


def measure_keys(options):
    print("%-36s %10s %10s %8s" % ("bytes a key", "redis", "ours", "ratio"))
    counts = [count // (10 if options.quick else 1) for count in KEY_COUNTS]
    for kind in KEYS:
        name = "%d + %d%s" % (kind[0], kind[1], ", deadline" if kind[2] else "")
        if re.search(options.workloads, name):
            redis, ours = (key_bytes(binary, kind[:3], counts) for binary in (options.oracle, options.server))
            yield name, ours, kind[3]
            show(name, redis, ours, judge(ours, kind[3]))


def measure_elements(options):
    print("%-36s %10s %10s %8s" % ("bytes an element", "redis", "ours", "ratio"))
    for name, make, count, limit in ELEMENTS:
        if re.search(options.workloads, name):
            count //= 10 if options.quick else 1
            redis, ours = (element_bytes(binary, make, count) for binary in (options.oracle, options.server))
            yield name, ours / redis, limit
            show(name, redis, ours, judge(ours / redis, limit))


def measure_left(options):
    print("%-36s %10s %10s %8s" % ("resident, x of a fresh server", "redis", "ours", "ratio"))
    for name, more in (("nine of ten deleted", []), ("the same, activedefrag yes", ACTIVE)):
        if re.search(options.workloads, name):
            count = LEFT_KEYS // (10 if options.quick else 1)
            # Debian's redis-server may be built without active defragmentation: it is measured as it is.
            redis, ours = left_share(options.oracle, count, []), left_share(options.server, count, more)
            yield name, ours, LEFT_LIMIT
            show(name, redis, ours, judge(ours, LEFT_LIMIT))


def judge(figure, limit):
    if limit is None:
        return ""
    return "budget %g%s" % (limit, "" if figure <= limit else ": MISSED")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("-w", "--workloads", default="", help="regular expression")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--only", default="keys,elements,left", help="parts, with commas between")
    options = parser.parse_args()
    parts = {"keys": measure_keys, "elements": measure_elements, "left": measure_left}
    missed = []
    for part in options.only.split(","):
        if part not in parts:
            parser.error("there is no part '%s'" % part)
        missed += [name for name, figure, limit in parts[part](options) if limit is not None and figure > limit]
    print("missed: %s" % (", ".join(missed) or "nothing"))


if __name__ == "__main__":
    main()
