#!/usr/bin/env python3
"""RDB files back and forth: random data of all types is made in one server, saved, and loaded by the other, which must
then have the same data; then the other way, in every version the other one reads.

    roundtrip.py --server BIN --oracle BIN [--rounds N] [--seed N] [--threads N] [--reader COMMAND]

--reader: a program that reads a file of version 9 and lists its keys as JSON (rdbtools: "rdb -c json"); it must find as
many keys as there are, of types it knows. The last line counts rounds.
"""
import argparse
import json
import os
import random
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import facts        # noqa: E402
from generate import Generator      # noqa: E402
from harness import Lost, Server, encode        # noqa: E402

COMMANDS = 3000
DATABASES = 16
NEVER_SENT = {b"FLUSHALL", b"FLUSHDB", b"SWAPDB", b"SHUTDOWN", b"MULTI", b"EXEC", b"DEBUG", b"CONFIG", b"CLIENT",
              b"RESET", b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE", b"MONITOR", b"HELLO", b"QUIT", b"SAVE", b"BGSAVE"}
OPTIONS = ["--enable-debug-command", "yes"]
LIBRARY = "#!lua name=kept\nredis.register_function('answer', function() return 42 end)"
LIMITS = {
    "small": ["--hash-max-listpack-entries", "3", "--hash-max-listpack-value", "6", "--set-max-intset-entries", "3",
              "--zset-max-listpack-entries", "3", "--zset-max-listpack-value", "6", "--list-max-listpack-size", "3",
              "--list-compress-depth", "1", "--stream-node-max-entries", "3", "--hll-sparse-max-bytes", "60"],
    "usual": [],
}


class Mistake(Exception):
    """The two servers do not have the same data."""


def fill(server, commands, seed):
    """Random commands; what one server makes of them is all that matters here."""
    generator = Generator(seed, commands)
    connection = server.connect()
    sent = 0
    while sent < COMMANDS:
        batch = []
        for _, words in generator.block(200):
            if isinstance(words, tuple) or words[0].upper() in NEVER_SENT or words[0].upper().startswith(b"B"):
                continue
            batch.append(words)
        connection.exchange(b"".join(map(encode, batch)), len(batch))
        sent += len(batch)
    choose = random.Random(seed)
    for number in range(40):
        key = b"more:%d" % number
        kind = choose.randrange(5)
        many = choose.choice((1, 5, 200))
        if kind == 0:
            connection.command("SET", key, bytes(choose.randrange(256) for _ in range(choose.choice((3, 60, 5000)))))
        elif kind == 1:
            connection.command("RPUSH", key, *(b"e%d" % choose.randrange(10 ** choose.randrange(1, 18))
                                               for _ in range(many)))
        elif kind == 2:
            connection.command("HSET", key, *(b"%d" % each for each in range(2 * many)))
        elif kind == 3:
            connection.command("ZADD", key, *(word for each in range(many)
                                              for word in (repr(choose.uniform(-1e9, 1e9)), b"m%d" % each)))
        else:
            connection.command("SADD", key, *(b"%d" % (each * 7) for each in range(many)))
        if choose.random() < 0.3:
            connection.command("PEXPIREAT", key, 4000000000000 + number)
    connection.close()
    settle(server)


def settle(server):
    """Keys that end soon would be gone in one of two pictures. And KeyDB's nodes write the last of all times for keys
    without a deadline, so it is read as that."""
    connection = server.connect()
    for db in range(DATABASES):
        connection.command("SELECT", db)
        connection.command("SCAN", "0", "COUNT", "1000000")
        for _, key in connection.command("KEYS", "*")[1]:
            end_ms = int(connection.command("PEXPIRETIME", key)[1])
            if end_ms == 2 ** 63 - 1:
                connection.command("PERSIST", key)
            elif 0 <= end_ms < 3 * 10 ** 12:
                connection.command("DEL", key)
    connection.close()


def without_order(reply):
    return sorted(map(repr, map(without_order, reply[1]))) if isinstance(reply[1], list) else reply


def picture(server):
    """What there is: the digest of all, the deadlines and how streams stand, which are not in it, and functions."""
    connection = server.connect()
    connection.command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    seen = {"digest": connection.command("DEBUG", "DIGEST"),
            "functions": without_order(connection.command("FUNCTION", "LIST", "WITHCODE"))}
    for db in range(DATABASES):
        connection.command("SELECT", db)
        for _, key in sorted(connection.command("KEYS", "*")[1]):
            kind = connection.command("TYPE", key)[1]
            seen[db, key] = (kind, connection.command("PEXPIRETIME", key),
                             repr(connection.command("DEBUG", "DIGEST-VALUE", key)[1]))
            if kind == b"stream":
                about = connection.command("XINFO", "STREAM", key)[1]
                seen[db, key] += (tuple(map(repr, about[:2] + about[6:])),
                                  repr([one[1] for one in connection.command("XINFO", "GROUPS", key)[1]]))
    connection.close()
    return seen


def without_forms(seen):
    """XINFO STREAM tells also of nodes, which are each server's own matter."""
    return {key: value[:3] if len(value) == 5 else value for key, value in seen.items()}


def compare(one, other, what):
    if one == other:
        return
    differs = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    raise Mistake("%s: %d differ, as %s" % (what, len(differs), "; ".join(
        "%r: %r and %r" % (key, one.get(key), other.get(key)) for key in differs[:3])))


def save(server, *settings):
    connection = server.connect()
    for name, value in settings:
        connection.command("CONFIG", "SET", name, value)
    reply = connection.command("SAVE")
    connection.close()
    if reply != ("+", b"OK"):
        raise Mistake("SAVE: %r\n%s" % (reply, server.log()))
    return os.path.join(server.folder, "dump.rdb")


def load(binary, path, threads, limits):
    """A server that has started from this file."""
    server = Server(binary, [*OPTIONS, *limits], threads, ready=False, port=None)
    server.stop(keep=True)
    shutil.copy(path, os.path.join(server.folder, "dump.rdb"))
    server.start()
    connection = server.connect()
    while b"\nloading:1" in connection.command("INFO", "persistence")[1]:
        pass
    connection.close()
    return server


def version_of(path):
    with open(path, "rb") as file:
        return int(file.read(9)[5:])


def check_reader(reader, path, keys):
    done = subprocess.run([*shlex.split(reader), path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise Mistake("the reader fails: %s" % done.stderr.decode()[-600:])
    found = sum(map(len, json.loads(done.stdout.decode("utf-8", "replace"))))
    if found != keys:
        raise Mistake("the reader finds %d keys of %d" % (found, keys))


def run_round(options, commands, seed):
    limits = [LIMITS[seed.split("/")[1]], LIMITS[random.Random(seed).choice(list(LIMITS))]]
    with Server(options.oracle, [*OPTIONS, *limits[0]]) as oracle:
        fill(oracle, commands, seed)
        oracle.connect().command("FUNCTION", "LOAD", LIBRARY)
        before = picture(oracle)
        with load(options.server, save(oracle), options.threads, limits[1]) as server:
            compare(without_forms(before), without_forms(picture(server)), "their file here")
    with Server(options.server, [*OPTIONS, *limits[0]], options.threads) as server:
        fill(server, commands, seed)
        before = picture(server)
        for version in ("auto", "10", "9"):
            if version == "9":      # has no place for functions
                server.connect().command("FUNCTION", "FLUSH")
                before = picture(server)
            path = save(server, ("rdb-version", version))
            if version != "auto" and version_of(path) != int(version):
                raise Mistake("version %d instead of %s" % (version_of(path), version))
            with load(options.oracle, path, None, limits[1]) as oracle:
                theirs = picture(oracle)
            compare(without_forms(before), without_forms(theirs), "our file (%s) there" % version)
            if version == "9" and options.reader:
                check_reader(options.reader, path, len(before) - 2)
        for version in ("11", "12"):
            path = save(server, ("rdb-version", version))
            with load(options.server, path, options.threads, limits[1]) as again:
                compare(without_forms(before), without_forms(picture(again)), "our file of version %s here" % version)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--reader")
    options = parser.parse_args()
    with Server(options.oracle) as oracle, Server(options.server) as server:
        commands = facts.load(oracle, server)[0]
    failed = 0
    for number in range(options.rounds):
        seed = "%d/%s/%d" % (options.seed, list(LIMITS)[number % len(LIMITS)], number)
        try:
            run_round(options, commands, seed)
        except (Mistake, Lost) as problem:
            failed += 1
            print("FAILED  round %s: %s" % (seed, problem), flush=True)
    print("%d passed, %d failed" % (options.rounds - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
