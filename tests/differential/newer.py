#!/usr/bin/env python3
"""Commands that redis-server 7.0 lacks, against a model: random ones, of which each reply is compared; then all data,
on the server, behind DEBUG RELOAD, behind a restart from the append-only file, and on what follows it: a replica, or an
active peer, or redis-server 7.0 (with --oracle), which gets them in the words of older commands.

    newer.py --server BIN [--oracle BIN] [--rounds N] [--seed N] [--threads N] [--commands N]

The model is written from what the commands promise. It has no clock: deadlines are far away or over. The last line
counts rounds.
"""
import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from compare import show_words      # noqa: E402
from harness import Lost, Server        # noqa: E402
import newer_streams        # noqa: E402
from newer_model import Keyspace, FAR_MS        # noqa: E402
from newer_streams import Refused, Unknown        # noqa: E402

OPTIONS = ["--appendonly", "yes", "--enable-debug-command", "yes", "--min-clients-per-thread", "1",
           "--repl-diskless-sync-delay", "0"]
WAIT_S = 30
FOLLOWERS = ("replica", "redis-server", "peer")


class Mistake(Exception):
    """The server does not do what the model does."""


# --------------------------------------------------------------------------------------------------------- choosing

class Chooser:
    """Random commands with few keys, fields and members, so that they meet each other."""

    def __init__(self, seed, has_field_deadlines, model):
        self.random = random.Random(seed)
        self.model = model
        self.has_field_deadlines = has_field_deadlines
        self.last_id = 0
        self.makers = [self.set, self.set, self.delex, self.msetex, self.increx, self.increx, self.hash_set,
                       self.hash_get, self.list, self.set_type, self.sorted_set, self.bits]
        self.makers += [self.stream] * 8

    def one(self, *values):
        return self.random.choice(values)

    def maybe(self, *words, share=0.3):
        return list(words) if self.random.random() < share else []

    def key(self, kind):
        return "%s%d" % (kind if self.random.random() < 0.96 else self.one(*"shlezx"), self.random.randrange(4))

    def value(self):
        return self.one("a", "b", "10", "-3", "x" * 70, "", "9223372036854775807", "1.5")

    def deadline(self):
        return self.one(["PXAT", FAR_MS + self.random.randrange(1000)], ["EXAT", FAR_MS // 1000], ["PXAT", 1])

    def set(self):
        condition = self.one([], ["NX"], ["XX"], ["IFEQ", self.value()], ["IFNE", self.value()],
                             ["IFDEQ", ("digest", self.value())], ["IFDNE", ("digest", self.value())])
        words = [condition, self.maybe("GET"), self.maybe(*self.one(self.deadline(), ["KEEPTTL"]))]
        self.random.shuffle(words)
        return ["SET", self.key("s"), self.value(), *sum(words, [])]

    def delex(self):
        if self.random.random() < 0.3:
            return ["DELIFEQ", self.key("s"), self.value()]
        return ["DELEX", self.key("s"), *self.one([], ["IFEQ", self.value()], ["IFNE", self.value()],
                                                  ["IFDEQ", ("digest", self.value())],
                                                  ["IFDNE", ("digest", self.value())])]

    def msetex(self):
        count = self.random.randrange(1, 4)
        pairs = sum(([self.key("s"), self.value()] for _ in range(count)), [])
        words = [self.one([], ["NX"], ["XX"]), self.maybe(*self.one(["PXAT", FAR_MS], ["KEEPTTL"]))]
        self.random.shuffle(words)
        return ["MSETEX", count, *pairs, *sum(words, [])]

    def increx(self):
        number = self.random.randrange(-9, 9)
        words = [self.one([], ["BYINT", number], ["BYFLOAT", number / 2], ["BYINT", 2 ** 63 - 1]),
                 self.maybe("LBOUND", self.random.randrange(-20, 5)),
                 self.maybe("UBOUND", self.random.randrange(5, 20)),
                 self.maybe("SATURATE"), self.maybe(*self.one(self.deadline(), ["PERSIST"], [*self.deadline(), "ENX"]))]
        self.random.shuffle(words)
        return ["INCREX", self.key("s"), *sum(words, [])]

    def fields(self, width):
        names = self.random.sample("abcdef", self.random.randrange(1, 4))
        return ["FIELDS", len(names), *sum(([name, self.value()][:width] for name in names), [])]

    def hash_set(self):
        if self.random.random() < 0.2:
            return ["HSET", self.key("h"), self.one(*"abcdef"), self.value()]
        times = [self.deadline(), ["KEEPTTL"]] if self.has_field_deadlines else [["PXAT", 1], ["KEEPTTL"]]
        words = [self.one([], ["FNX"], ["FXX"]), self.maybe(*self.one(*times)), self.fields(2)]
        self.random.shuffle(words)
        return ["HSETEX", self.key("h"), *sum(words, [])]

    def hash_get(self):
        if self.random.random() < 0.4:
            return ["HGETDEL", self.key("h"), *self.fields(1)]
        times = [self.deadline(), ["PERSIST"]] if self.has_field_deadlines else [["PXAT", 1], ["PERSIST"]]
        return ["HGETEX", self.key("h"), *self.maybe(*self.one(*times)), *self.fields(1)]

    def list(self):
        if self.random.random() < 0.3:
            return ["RPUSH", self.key("l"), *(self.value() for _ in range(self.random.randrange(1, 5)))]
        return ["LMOVEM", self.key("l"), self.key("l"), self.one("LEFT", "RIGHT"), self.one("LEFT", "RIGHT"),
                *self.maybe(self.one("COUNT", "EXACTLY"), self.random.randrange(1, 6), self.one("OBO", "BULK"),
                            share=0.8)]

    def set_type(self):
        if self.random.random() < 0.3:
            return ["SADD", self.key("e"), *(self.random.randrange(30) for _ in range(5))]
        keys = [self.key("e") for _ in range(self.random.randrange(1, 4))]
        return [self.one("SDIFFCARD", "SUNIONCARD"), len(keys), *keys, *self.maybe("LIMIT", self.random.randrange(9))]

    def sorted_set(self):
        if self.random.random() < 0.4:
            return ["ZADD", self.key("z"), self.random.randrange(100), self.one(*"abcdef")]
        keys = [self.key(self.one("z", "z", "e")) for _ in range(self.random.randrange(1, 4))]
        words = [self.maybe("WEIGHTS", *(self.random.randrange(1, 9) for _ in keys)), ["AGGREGATE", "COUNT"]]
        self.random.shuffle(words)
        if self.random.random() < 0.5:
            return [self.one("ZUNIONSTORE", "ZINTERSTORE"), self.key("z"), len(keys), *keys, *sum(words, [])]
        return [self.one("ZUNION", "ZINTER"), len(keys), *keys, *sum(words, []), "WITHSCORES"]

    def bits(self):
        keys = [self.key("s") for _ in range(self.random.randrange(1, 4))]
        return ["BITOP", self.one("DIFF", "DIFF1", "ANDOR", "ONE"), self.key("s"), *keys]

    def stream(self):
        return newer_streams.choose(self)


# -------------------------------------------------------------------------------------------------------- comparing

def plain(reply):
    """A reply of RESP2 as the model has it."""
    kind, value = reply
    if kind == "-":
        raise Refused(value.decode())
    if kind == ":":
        return int(value)
    if kind == "*" and value is not None:
        return [plain(each) for each in value]
    return value


def reply_of(connection, words):
    try:
        return plain(connection.command(*words))
    except Refused as problem:
        return problem


def model_reply(model, words):
    try:
        return model.run(words)
    except Refused as problem:
        return problem


def same(got, wanted):
    if hasattr(wanted, "matches"):
        return not isinstance(got, Refused) and wanted.matches(got)
    if isinstance(got, Refused) or isinstance(wanted, Refused):
        return isinstance(got, Refused) and isinstance(wanted, Refused) and \
            (str(wanted) == "" or str(got).startswith(str(wanted)))
    return got == wanted


def same_data(connection, model, where):
    """Every key, its deadline and its value; of streams their groups, too."""
    keys = sorted(connection_keys(connection))
    if keys != sorted(model.keys):
        raise Mistake("%s: keys %s instead of %s" % (where, keys, sorted(model.keys)))
    for key in keys:
        got = read_key(connection, key, model.keys[key].kind, where == "redis-server")
        wanted = model.picture(key)
        if where == "redis-server" and len(wanted) == 3:
            wanted = wanted[:2] + ({name: value[:1] for name, value in wanted[2].items()}
                                   if wanted[0] == "hash" else wanted[2],)
        if got != wanted:
            raise Mistake("%s: %s is\n    %s instead of\n    %s" % (where, key, got, wanted))


def connection_keys(connection):
    return [key.decode() for key in plain(connection.command("KEYS", "*"))]


def read_key(connection, key, kind, is_old):
    def ask(*words):
        return plain(connection.command(*words))

    deadline = ask("PEXPIRETIME", key)
    if kind == "string":
        value = ask("GET", key)
    elif kind == "hash":
        flat = ask("HGETALL", key)
        names = flat[::2]
        value = dict(zip(names, zip(flat[1::2])))
        if not is_old:
            times = ask("HPEXPIRETIME", key, "FIELDS", len(names), *names)
            value = {name: (value[name][0], when) for name, when in zip(names, times)}
    elif kind == "list":
        value = ask("LRANGE", key, 0, -1)
    elif kind == "set":
        value = set(ask("SMEMBERS", key))
    elif kind == "zset":
        flat = ask("ZRANGE", key, 0, -1, "WITHSCORES")
        value = {name: float(score) for name, score in zip(flat[::2], flat[1::2])}
    else:
        value = newer_streams.read(ask, key)
    return kind, deadline, value


def with_digests(connection, words, digests):
    """("digest", value) stands for the server's digest of the value."""
    ready = []
    for word in words:
        if isinstance(word, tuple):
            if word[1] not in digests:
                connection.command("SET", "scratch", word[1])
                digests[word[1]] = plain(connection.command("DIGEST", "scratch"))
                connection.command("DEL", "scratch")
            word = digests[word[1]]
        ready.append(word if isinstance(word, bytes) else str(word).encode())
    return ready


def run_commands(connection, chooser, model, count, digests):
    for _ in range(count):
        words = with_digests(connection, chooser.random.choice(chooser.makers)(), digests)
        try:
            wanted = model_reply(model, words)
        except Unknown:
            continue
        got = reply_of(connection, words)
        if not same(got, wanted):
            raise Mistake("%s: %r instead of %r" % (show_words(words), got, wanted))
        model.settle()


def wait_for_data(connection, model, where):
    end = time.monotonic() + WAIT_S
    while True:
        try:
            same_data(connection, model, where)
            return
        except (Mistake, Refused):
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def restart(server):
    """As after kill -9: from the append-only file."""
    server.process.kill()
    server.process.wait()
    server.start()


def round_of(options, seed):
    where = FOLLOWERS[seed % len(FOLLOWERS)]
    if where == "redis-server" and not options.oracle:
        where = "replica"
    digests = {}
    model = Keyspace(digests)
    chooser = Chooser(seed, where != "redis-server", model)
    if where == "redis-server":
        chooser.makers = [maker for maker in chooser.makers if maker != chooser.stream]
        chooser.makers += [lambda: newer_streams.choose_old(chooser)] * 8
    ours = [*OPTIONS, *(["--active-replica", "yes"] if where == "peer" else [])]
    with Server(options.server, ours, options.threads) as server, \
            Server(options.oracle if where == "redis-server" else options.server,
                   [] if where == "redis-server" else ours) as follower:
        connection = server.connect()
        follower.connect().command("REPLICAOF", "127.0.0.1", server.port)
        for _ in range(options.commands // 100):
            run_commands(connection, chooser, model, 100, digests)
            same_data(connection, model, "the server")
        wait_for_data(follower.connect(), model, where)
        plain(connection.command("DEBUG", "RELOAD"))
        same_data(connection, model, "behind DEBUG RELOAD")
        run_commands(connection, chooser, model, 100, digests)
        restart(server)
        connection = server.connect()
        wait_for_data(connection, model, "behind a restart")
        run_commands(connection, chooser, model, 100, digests)
        same_data(connection, model, "in the end")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--commands", type=int, default=2000)
    options = parser.parse_args()
    passed = failed = 0
    for seed in range(options.seed, options.seed + options.rounds):
        try:
            round_of(options, seed)
            print("ok      seed %d" % seed, flush=True)
            passed += 1
        except (Mistake, Lost, Refused) as problem:
            print("FAILED  seed %d: %s" % (seed, problem), flush=True)
            failed += 1
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
