#!/usr/bin/env python3
"""Data between our server and a newer one of Redis or Valkey, in both directions: random commands to one of them, newer
ones too, and the other has the same data after it: from the payloads of DUMP, from the RDB file, from the folder of the
append-only file, and as a replica, which gets a snapshot before or amidst the commands, over a pipe or from a file.

    peers.py --server BIN --peer BIN [--rounds N] [--count N] [--seed N] [--only WAY] [--from ours|peer]
             [--without NAMES]

WAY: payloads, file, aof, replica. --peer: redis-server 8 or valkey-server, as it is installed. Fields that only one of
the two shows are left out, and those of XINFO that --without names. The last line counts what passed.
"""
import argparse
import os
import random
import shutil
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "replication"))

from group import Member, Wrong, wait_caught_up, wait_until       # noqa: E402
from harness import Lost, encode        # noqa: E402

FAR_MS = 4000000000000
DATABASES = (0, 3)
LIBRARY = ("#!lua name=kept\nredis.register_function('add', function(keys, args) "
           "return redis.call('HSET', keys[1], args[1], args[2]) end)")
SCRIPT = ("redis.call('SET', KEYS[1], ARGV[1]) redis.call('HSET', KEYS[2], ARGV[1], ARGV[2]) "
          "return redis.call('HPEXPIRE', KEYS[2], ARGV[3], 'FIELDS', 1, ARGV[1])")
OF_FORMS = {b"radix-tree-keys", b"radix-tree-nodes"}     # each server's own matter
OF_PRODUCERS = {b"idmp-duration", b"idmp-maxsize", b"pids-tracked", b"iids-tracked", b"iids-added",
                b"iids-duplicates"}
OF_CONSUMERS = {b"seen-time", b"active-time"}    # effects do not have them, nor do files in lower versions
OF_REPETITIONS = {b"iids-duplicates"}       # our effects do not have them
OF_IDLE = {b"consumers without entries"}    # their effects do not have those which have never got any
OF_TRIMMED = {b"lag of groups before all entries"}     # Valkey counts it as Redis 7.0 did


class Load:
    """Random commands that both servers know."""

    def __init__(self, seed, knows, persists=True):
        self.random = random.Random(seed)
        self.knows = knows
        self.persists = persists
        self.ids = 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def key(self, kind):
        return "%s:%d" % (kind, self.random.randrange(5))

    def word(self):
        return self.pick("", "7", "-12345678901", "w%d" % self.random.randrange(40), "x" * 70, b"\xff\0\r\n",
                         "w%d" % self.random.randrange(40), str(self.random.randrange(1 << 40)))

    def field(self):
        return "f%d" % self.random.randrange(30) if self.random.random() < 0.9 else str(self.random.randrange(9))

    def fields(self, most=3):
        names = list({self.field() for _ in range(self.random.randrange(1, most + 1))})
        return ["FIELDS", len(names), *names]

    def pairs(self, most=3):
        names = list({self.field() for _ in range(self.random.randrange(1, most + 1))})
        return [word for name in names for word in (name, self.word())]

    def entry(self):
        """Of a stream: one that is likely there."""
        return "%d-%d" % (self.random.randrange(1, self.ids + 2), self.random.randrange(2))

    def deadline(self):
        return self.pick(("PX", 15), ("PXAT", FAR_MS + self.random.randrange(10 ** 6)), ("EXAT", FAR_MS // 1000 + 5),
                         ("PXAT", FAR_MS + 7), ("EX", 10 ** 8), ("PXAT", 1))

    def string(self):
        key, word, other = self.key("s"), self.word(), self.word()
        return self.pick(
            ["SET", key, word], ["SET", key, word, *self.deadline()], ["SET", key, word, "IFEQ", other],
            ["APPEND", key, word], ["INCRBYFLOAT", "n:1", "0.25"], ["INCR", "n:2"], ["SETRANGE", key, 5, word],
            ["DELIFEQ", key, word], ["DELEX", key, "IFEQ", word], ["SET", key, word, "IFNE", other],
            ["MSETEX", 2, key, word, self.key("s"), other, *self.deadline()], ["GETEX", key, *self.deadline()],
            ["SETBIT", key, 77, 1], ["PFADD", "log:1", word, other], ["COPY", key, self.key("s"), "REPLACE"],
            ["PERSIST", key], ["DEL", key], ["MOVE", key, 3], ["RENAME", key, self.key("s")],
            ["EVAL", SCRIPT, 2, key, self.key("h"), self.field(), word, self.pick(15, 10 ** 11)],
            ["FCALL", "add", 1, self.key("h"), self.field(), word])

    def hash(self):
        key = self.key("h")
        return self.pick(
            ["HSET", key, *self.pairs()], ["HSET", key, *self.pairs(40)], ["HDEL", key, self.field(), self.field()],
            ["HINCRBY", key, "count", 3], ["HPEXPIREAT", key, FAR_MS + self.random.randrange(10 ** 9), *self.fields()],
            ["HPEXPIRE", key, self.pick(1, 15, 10 ** 11), *self.fields()], ["HPERSIST", key, *self.fields()],
            ["HEXPIRE", key, 10 ** 8, self.pick("NX", "XX", "GT", "LT"), *self.fields()],
            ["HSETEX", key, *self.deadline(), "FIELDS", 2, "f1", self.word(), "f2", self.word()],
            ["HSETEX", key, self.pick("FNX", "FXX"), "KEEPTTL", "FIELDS", 1, self.field(), self.word()],
            ["HGETEX", key, *self.deadline(), *self.fields()], ["HGETEX", key, "PERSIST", *self.fields()],
            ["HGETDEL", key, *self.fields()], ["HEXPIREAT", key, 1, *self.fields()], ["DEL", key],
            ["COPY", key, self.key("h"), "REPLACE"], ["RENAME", key, self.key("h")])

    def others(self):
        lists, sets, zset = self.key("l"), self.key("set"), self.key("z")
        return self.pick(
            ["RPUSH", lists, *(self.word() for _ in range(self.pick(1, 3, 200)))], ["LPOP", lists, 2],
            ["LMOVE", lists, self.key("l"), "LEFT", "RIGHT"], ["LTRIM", lists, 0, 300], ["LSET", lists, 0, self.word()],
            ["LINSERT", lists, "BEFORE", "7", self.word()], ["LREM", lists, 1, self.word()],
            ["SADD", sets, *(self.word() for _ in range(self.pick(1, 5, 40)))], ["SPOP", sets], ["SREM", sets, "7"],
            ["SADD", "ints:1", *(self.random.randrange(1 << self.pick(8, 20, 40)) for _ in range(self.pick(1, 200)))],
            ["SUNIONSTORE", self.key("set"), sets, "ints:1"], ["SMOVE", sets, self.key("set"), "7"],
            ["ZADD", zset, self.random.uniform(-9, 1e9), self.word(), self.pick("inf", "-inf", 7, 1.5), self.word()],
            ["ZADD", zset, *(word for i in range(self.pick(2, 150)) for word in (i / 3, "m%d" % i))],
            ["ZINCRBY", zset, 1.1, "m1"], ["ZPOPMIN", zset], ["ZUNIONSTORE", self.key("z"), 2, zset, "set:1"],
            ["GEOADD", "geo:1", self.random.uniform(-170, 170), self.random.uniform(-80, 80), self.word()],
            ["PEXPIREAT", self.pick(lists, sets, zset), FAR_MS + 9], ["PEXPIRE", self.pick(lists, sets, zset), 20],
            ["DEL", self.pick(lists, sets, zset)], ["SORT", "ints:1", "STORE", "sorted:1"])

    def added(self, key):
        self.ids += 1
        return ["XADD", key, "%d-%d" % (self.ids, self.random.randrange(1, 3)), *self.pairs(4)]

    def stream(self):
        key, group, consumer = self.key("x"), self.pick("g1", "g2"), self.pick("c1", "c2", "c3")
        last = [self.pick("KEEPREF", "DELREF", "ACKED"), "IDS", 2, self.entry(), self.entry()]
        return self.pick(
            self.added(key), self.added(key), self.added(key), self.added(key), ["XDEL", key, self.entry()],
            ["XGROUP", "CREATE", key, group, self.pick("0", "$", self.entry()), "MKSTREAM"],
            ["XGROUP", "CREATECONSUMER", key, group, consumer], ["XGROUP", "SETID", key, group, self.pick("0", "$")],
            ["XGROUP", "DELCONSUMER", key, group, consumer], ["XGROUP", "DESTROY", key, group],
            *[["XREADGROUP", "GROUP", group, consumer, "COUNT", self.pick(1, 7), "STREAMS", key, ">"]] * 3,
            ["XREADGROUP", "GROUP", group, consumer, "COUNT", 3, "CLAIM", self.pick(0, 1), "STREAMS", key, ">"],
            ["XACK", key, group, self.entry()], ["XDELEX", key, *last], ["XACKDEL", key, group, *last],
            ["XAUTOCLAIM", key, group, consumer, 0, "0", "COUNT", 2], ["XTRIM", key, "MAXLEN", self.pick("~", "="), 60],
            ["XCLAIM", key, group, consumer, 0, self.entry(), "RETRYCOUNT", 3], ["DEL", key],
            ["XTRIM", key, "MINID", "=", self.entry()], ["COPY", key, self.key("x"), "REPLACE"])

    def produced(self):
        """Streams whose ids are the clock's."""
        key, producer = self.key("p"), self.pick("p1", "p2", "producer three")
        if not self.knows("XCFGSET"):
            return ["XADD", key, "*", *self.pairs()]
        return self.pick(
            ["XADD", key, "IDMP", producer, self.word(), "*", *self.pairs()],
            ["XADD", key, "IDMP", producer, "iid%d" % self.random.randrange(50), "*", *self.pairs()],
            ["XADD", key, "IDMP", producer, "iid%d" % self.random.randrange(50), "*", *self.pairs()],
            ["XADD", key, "IDMPAUTO", producer, "*", *self.pairs()], ["XADD", key, "*", *self.pairs()],
            ["XGROUP", "CREATE", key, "g", "0"], ["XTRIM", key, "MAXLEN", "=", 20],
            ["XREADGROUP", "GROUP", "g", "c", "COUNT", 2, "STREAMS", key, ">"],
            ["XCFGSET", key, *self.pick(("IDMP-DURATION", 80000), ("IDMP-MAXSIZE", 30),
                                        ("IDMP-DURATION", 70000, "IDMP-MAXSIZE", 40))])

    def one(self):
        return self.random.choice((self.string, self.hash, self.hash, self.others, self.stream, self.stream,
                                   self.produced))()

    def commands(self, count):
        """With transactions among them."""
        listed, opened = [], False
        for _ in range(count):
            if self.random.random() < 0.05:
                listed.append(["EXEC" if opened else "MULTI"])
                opened = not opened
            words = self.one()
            if not self.persists and (words[0] == "HPERSIST" or words[2:3] == ["PERSIST"]):
                continue
            if self.knows(words[0]) and not ("CLAIM" in words and not self.knows("XACKDEL")):
                listed.append(words)
        return listed + ([["EXEC"]] if opened else [])


def fill(member, commands):
    connection = member.connect()
    for at in range(0, len(commands), 100):
        batch = commands[at:at + 100]
        connection.exchange(b"".join(map(encode, batch)), len(batch))
    connection.close()


def plain(reply):
    return [plain(one) for one in reply[1]] if isinstance(reply[1], list) else reply[1]


def is_soon(time_ms):
    return 0 <= time_ms < 1000 * time.time() + 10 ** 7


def settle(member):
    """Deadlines that come soon are over: keys and fields that have them are gone."""
    for db in DATABASES:
        member.ask("SELECT", db)
        for key in plain(member.call("KEYS", "*")):
            def is_settled(key=key):
                if is_soon(int(member.ask("PEXPIRETIME", key))):
                    return False
                if member.ask("TYPE", key) != b"hash":
                    return True
                fields = plain(member.call("HKEYS", key))
                if not fields:      # it goes, too
                    return False
                times = plain(member.call("HPEXPIRETIME", key, "FIELDS", len(fields), *fields))
                return not any(is_soon(int(time_ms)) or time_ms == b"-2" for time_ms in times)   # -2: over just now
            wait_until(is_settled, 20, lambda key=key: "the deadlines of %r are over" % key)


def mapped(flat):
    return {flat[i]: flat[i + 1] for i in range(0, len(flat), 2)}


def id_of(text):
    return tuple(map(int, text.split(b"-")))


def stream_of(connection, key, without):
    def tidy(value):
        """Maps of their names, without what is left out."""
        if isinstance(value, list) and value and value[0] in (b"name", b"length"):
            return {name: tidy(item) for name, item in mapped(value).items() if name not in without}
        return [tidy(item) for item in value] if isinstance(value, list) else value

    seen = tidy(plain(connection.command("XINFO", "STREAM", key, "FULL", "COUNT", "0")))
    seen[b"groups"] = {group[b"name"]: group for group in seen[b"groups"]}
    for group in seen[b"groups"].values():
        group[b"consumers"] = {consumer[b"name"]: consumer for consumer in group[b"consumers"]
                               if not OF_IDLE & without or consumer[b"pel-count"] != b"0"}
        if OF_TRIMMED & without and (seen[b"length"] == b"0" or id_of(group[b"last-delivered-id"]) <
                                     id_of(seen[b"recorded-first-entry-id"])):
            group.pop(b"lag", None)
    return seen


def value_of(connection, kind, key, without):
    ask = connection.command
    if kind == b"string":
        return plain(ask("GET", key))
    if kind == b"list":
        return plain(ask("LRANGE", key, 0, -1))
    if kind == b"set":
        return sorted(plain(ask("SMEMBERS", key)))
    if kind == b"zset":
        scores = mapped(plain(ask("ZRANGE", key, 0, -1, "WITHSCORES")))
        return {member: float(score) for member, score in scores.items()}
    if kind == b"hash":
        pairs = mapped(plain(ask("HGETALL", key)))
        times = plain(ask("HPEXPIRETIME", key, "FIELDS", len(pairs), *pairs))
        return {field: (value, int(time_ms)) for (field, value), time_ms in zip(pairs.items(), times)}
    return stream_of(connection, key, without) if kind == b"stream" else None


def picture(member, without):
    connection = member.connect()
    seen = {"functions": sorted(map(repr, plain(connection.command("FUNCTION", "LIST", "WITHCODE"))))}
    for db in DATABASES:
        connection.command("SELECT", db)
        for key in plain(connection.command("KEYS", "*")):
            kind = plain(connection.command("TYPE", key))
            seen[db, key] = (kind, int(plain(connection.command("PEXPIRETIME", key))),
                             value_of(connection, kind, key, without))
    connection.close()
    return seen


def parts_that_differ(one, other):
    if isinstance(one, dict) and isinstance(other, dict):
        return ["%r: %s" % (name, "; ".join(parts_that_differ(one.get(name), other.get(name))))
                for name in sorted({**one, **other}, key=repr) if one.get(name) != other.get(name)]
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return [part for pair in zip(one, other) if pair[0] != pair[1] for part in parts_that_differ(*pair)]
    return ["%.300r and %.300r" % (one, other)]


def compare(one, other):
    if one != other:
        raise Wrong("%d keys: %s" % (len(one), "\n  ".join(parts_that_differ(one, other)[:6])))


class Round:
    def __init__(self, options, source, seed):
        self.options = options
        self.source = source        # "ours", "peer": whose data it is
        self.seed = seed
        self.random = random.Random(seed)
        self.members = []
        self.persists = True
        self.without = OF_FORMS | OF_CONSUMERS | options.without | (
            set() if options.knows("XCFGSET") else OF_PRODUCERS) | (OF_TRIMMED if options.is_valkey else set())

    def member(self, which, *settings):
        binary = self.options.server if which == "ours" else self.options.peer
        member = Member(which, binary, settings)
        self.members.append(member)
        return member

    def begin(self, *settings, is_master=False):
        """The server that has the data, and the commands that make them."""
        if self.source == "ours" and self.options.is_valkey and not is_master:
            settings += ("--rdb-version", "80")     # the only one with deadlines of fields that it reads
        source = self.member(self.source, *settings)
        source.ask("FUNCTION", "LOAD", LIBRARY)
        return source, Load(self.seed, self.options.knows, self.persists).commands(self.options.count)

    def by_effects(self):
        # Redis' HPERSIST of a field that is over by then does nothing, in a file that is loading, too: it goes.
        self.persists = self.source == "peer" or self.options.is_valkey
        self.without = self.without | (OF_REPETITIONS if self.source == "ours" else OF_IDLE)

    def target(self):
        return "peer" if self.source == "ours" else "ours"

    def payloads(self):
        source, commands = self.begin()
        fill(source, commands)
        settle(source)
        target = self.member(self.target())
        target.ask("FUNCTION", "RESTORE", source.ask("FUNCTION", "DUMP"))
        for db in DATABASES:
            source.ask("SELECT", db)
            target.ask("SELECT", db)
            for key in plain(source.call("KEYS", "*")):
                time_ms = max(int(source.ask("PEXPIRETIME", key)), 0)
                reply = target.call("RESTORE", key, time_ms, source.ask("DUMP", key), "ABSTTL")
                if reply[0] == "-":
                    raise Wrong("RESTORE of %r: %r" % (key, reply[1]))
        compare(picture(source, self.without), picture(target, self.without))

    def reload(self, source, path, *settings):
        """A server that starts from this file or folder of another one."""
        target = self.member(self.target(), *settings)
        target.kill()
        copied = os.path.join(target.folder, os.path.basename(path))
        if os.path.isdir(path):
            shutil.rmtree(copied, ignore_errors=True)
            shutil.copytree(path, copied)
        else:
            shutil.copy(path, copied)
        target.start()
        wait_until(lambda: target.info("persistence")["loading"] == "0", 30, "the file is loaded")
        compare(picture(source, self.without), picture(target, self.without))

    def file(self):
        source, commands = self.begin()
        fill(source, commands)
        settle(source)
        for version in self.options.versions if self.source == "ours" else (None,):
            if version:
                source.ask("CONFIG", "SET", "rdb-version", version)
            source.ask("SAVE")
            self.reload(source, os.path.join(source.folder, "dump.rdb"))
            self.members.pop().stop()

    def aof(self):
        self.by_effects()
        preamble = self.random.choice(("yes", "no"))
        source, commands = self.begin("--appendonly", "yes", "--aof-use-rdb-preamble", preamble)
        half = len(commands) // 2
        fill(source, commands[:half] + [["DISCARD"]])
        source.call("BGREWRITEAOF")
        wait_until(lambda: source.info("persistence")["aof_rewrite_in_progress"] == "0" and
                   source.info("persistence")["aof_rewrite_scheduled"] == "0", 30, "the rewrite is done")
        fill(source, [["DISCARD"]] + commands[half:])
        settle(source)
        source.kill()
        source.start()
        wait_until(lambda: source.info("persistence")["loading"] == "0", 30, "the file is loaded")
        self.reload(source, os.path.join(source.folder, "appendonlydir"), "--appendonly", "yes")

    def replica(self):
        self.by_effects()
        diskless = self.random.choice(("yes", "no"))
        source, commands = self.begin("--repl-diskless-sync", diskless, is_master=True)
        target = self.member(self.target(), "--repl-diskless-load", self.random.choice(("disabled", "swapdb")))
        before = self.random.choice((0, len(commands) // 2))
        fill(source, commands[:before] + [["DISCARD"]])
        target.follow(source.port)
        wait_until(target.link_is_up, 20, lambda: "the link is up\n%s\n%s" % (target.log(1500), source.log(1500)))
        fill(source, [["DISCARD"]] + commands[before:])
        settle(source)
        wait_caught_up(source, [target])
        compare(picture(source, self.without), picture(target, self.without))

    def end(self):
        for member in reversed(self.members):
            member.stop()


WAYS = ("payloads", "file", "aof", "replica")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--rounds", type=int, default=2, help="of each way and direction")
    parser.add_argument("--count", type=int, default=3000, help="commands a round")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", choices=WAYS)
    parser.add_argument("--from", dest="source", choices=("ours", "peer"))
    parser.add_argument("--without", type=lambda text: set(text.encode().split(b",")), default=set(),
                        help="fields of XINFO, with commas between them")
    options = parser.parse_args()
    with Member("peer", options.peer) as peer, Member("ours", options.server) as ours:
        info = peer.info("server")
        both = {name.upper() for name in set(plain(peer.call("COMMAND", "LIST"))) &
                set(plain(ours.call("COMMAND", "LIST")))} | {b"MULTI", b"EXEC"}
    options.knows = lambda name: name.encode() in both
    options.is_valkey = "valkey_version" in info
    options.versions = ("auto", "13" if options.knows("XCFGSET") else "12")      # a lower one loses pairs
    if options.is_valkey:
        options.versions = ("80",)
    print("seed %d, peer %s" % (options.seed, info.get("valkey_version", info["redis_version"])))
    passed = failed = 0
    for number in range(options.rounds):
        for way in WAYS if options.only is None else (options.only,):
            for source in ("peer", "ours") if options.source is None else (options.source,):
                work = Round(options, source, "%d/%d/%s/%s" % (options.seed, number, way, source))
                try:
                    getattr(work, way)()
                    passed += 1
                except (Lost, OSError, Wrong) as problem:
                    failed += 1
                    print("FAILED %s from %s, round %d: %s" % (way, source, number, problem), flush=True)
                finally:
                    work.end()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
