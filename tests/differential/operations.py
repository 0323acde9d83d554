#!/usr/bin/env python3
"""Operations, as peers of an active server get them: random commands of all types run on one server, also in MULTI and
in scripts. Its operations are applied to another server one by one, which must then have the same data: deadlines and
groups of streams, too. The other server is ours or the oracle, for which KEYDB.OP.POP is LREM.

    operations.py --server BIN --oracle BIN [--rounds N] [--seed N] [--threads N] [--commands N]

The last line counts rounds.
"""
import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import facts        # noqa: E402
from compare import show_words      # noqa: E402
from generate import Generator      # noqa: E402
from harness import Lost, Server, encode, parse        # noqa: E402
from roundtrip import LIMITS, NEVER_SENT, OPTIONS      # noqa: E402
from roundtrip import picture as picture_of_all     # noqa: E402

NEVER = NEVER_SENT | {b"DISCARD", b"EVAL", b"EVALSHA", b"FCALL", b"SCRIPT", b"FUNCTION", b"MIGRATE", b"SELECT",
                      b"WAIT", b"WAITAOF"}
TIMED = {b"EXPIRE", b"PEXPIRE", b"EXPIREAT", b"PEXPIREAT", b"SETEX", b"PSETEX", b"GETEX", b"EXPIREMEMBER",
         b"EXPIREMEMBERAT", b"PEXPIREMEMBERAT", b"HEXPIRE", b"HPEXPIRE", b"HEXPIREAT", b"HPEXPIREAT", b"RESTORE"}
LONG_MS = 10 ** 6
SCRIPT = b"local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' and r.err then return r.err end return 'done'"
COUNTED = {b"entries-read", b"lag"}      # of a group: XCLAIM does not tell the oracle
CHANGING = {b"seen-time", b"active-time", b"idle", b"inactive", b"radix-tree-keys", b"radix-tree-nodes",
            b"idmp-duration", b"idmp-maxsize", b"pids-tracked", b"iids-tracked", b"iids-added", b"iids-duplicates"}


# KEYDB.OP.DELIVER. What the group passes by is pending for keydb:late.
DELIVER = b"""
local key, group, consumer, ms, acknowledged = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4] == 'NOACK'
local position, named, last = nil, {}, ARGV[#ARGV]
for _, each in ipairs(redis.call('XINFO', 'GROUPS', key)) do
    if each[2] == group then position = each[8] end
end
if not position then return 0 end
local function owner(id)
    local found = redis.call('XPENDING', key, group, id, id, 1)[1]
    return found and found[2]
end
local passed = redis.call('XRANGE', key, '(' .. position, last)
for i = 5, #ARGV do
    local id = ARGV[i]
    named[id] = true
    if not acknowledged then
        redis.call('XCLAIM', key, group, consumer, 0, id, 'TIME', ms, 'RETRYCOUNT', 1, 'FORCE', 'JUSTID', 'LASTID', id)
    elseif owner(id) == 'keydb:late' then
        redis.call('XACK', key, group, id)
    end
end
for _, each in ipairs(passed) do
    if not named[each[1]] and not owner(each[1]) then
        redis.call('XCLAIM', key, group, 'keydb:late', 0, each[1], 'TIME', 0, 'RETRYCOUNT', 0, 'FORCE', 'JUSTID')
    end
end
if acknowledged and #passed ~= 0 then redis.call('XGROUP', 'SETID', key, group, last) end
return #ARGV - 4
"""


class Mistake(Exception):
    """The two servers do not have the same data."""


def ends_soon(words):
    """True if a deadline could pass while the test runs."""
    upper = [word.upper() for word in words]
    if upper[0] not in TIMED and not {b"EX", b"PX", b"EXAT", b"PXAT"} & set(upper[3:]):
        return False
    for word in words[2:]:
        try:
            if 0 <= int(word) < LONG_MS or LONG_MS * 1000 <= int(word) < 3 * 10 ** 12:
                return True
        except ValueError:
            pass
    return False


def batch(generator, choose):
    """Some commands, as they are sent: some in MULTI, some in scripts."""
    result, in_multi = [], False
    for _, words in generator.block(30):
        if isinstance(words, tuple):
            continue
        words = list(words)
        name = words[0].upper()
        waits = name.startswith(b"B") and not name.startswith(b"BIT") or b"BLOCK" in [word.upper() for word in words]
        if name in NEVER or waits or ends_soon(words):
            continue
        if choose.random() < 0.1:
            result.append([b"EXEC"] if in_multi else [b"MULTI"])
            in_multi = not in_multi
        if choose.random() < 0.2:
            words = [b"EVAL", SCRIPT, b"0", *words]
        result.append(words)
    if in_multi:
        result.append([b"EXEC"])
    return result


def operations(connection):
    reply = connection.command("DEBUG", "OPERATIONS", "READ")
    if reply[0] != "*":
        raise Lost("DEBUG OPERATIONS READ answers %r" % (reply,))
    for record in reply[1]:
        words = [word[1] for word in parse(record[1][2][1], 0)[0][1]]
        if words[0].upper() not in (b"MULTI", b"EXEC", b"PUBLISH", b"SPUBLISH"):
            yield int(record[1][0][1]), words


def plain(words):
    """For a server that knows no operations."""
    name = words[0].upper()
    if name == b"KEYDB.OP.DELIVER":
        return [[b"EVAL", DELIVER, b"1", *words[1:]]]
    if name == b"KEYDB.OP.XADD":
        return [[b"XADD", *words[1:]]]
    if name in (b"KEYDB.OP.XIDMP", b"XCFGSET"):
        return []
    if name == b"XCLAIM":       # of what is not there makes the consumer since Redis 7.2
        return [[b"XGROUP", b"CREATECONSUMER", *words[1:4]], words]
    if name != b"KEYDB.OP.POP":
        return [words]
    count = b"1" if words[2] == b"LEFT" else b"-1"
    return [[b"LREM", words[1], count, element] for element in words[3:]]


def apply(target, batch_of_operations):
    now = int(time.time() * 1000)
    for db, words in batch_of_operations:
        if target.server.redis:
            target.command("SELECT", db)
            replies = [target.command(*each) for each in plain(words)]
        else:
            replies = [target.command("DEBUG", "OPERATE", now, db, *words)]
        for reply in replies:
            if reply[0] == "-":
                raise Mistake("%s is refused: %r" % (show_words(words), reply[1]))


def without(names, reply):
    """XINFO STREAM FULL without these fields."""
    kind, value = reply
    if not isinstance(value, list):
        return reply
    kept, skip = [], False
    for one in value:
        if skip:
            skip = False
        elif isinstance(one[1], bytes) and one[1] in names:
            skip = True
        else:
            kept.append(without(names, one))
    return kind, kept


def picture(server, names):
    seen = {key: value[:3] if len(value) == 5 else value for key, value in picture_of_all(server).items()}
    connection = server.connect()
    for key in [key for key, value in seen.items() if isinstance(key, tuple) and value[0] == b"stream"]:
        connection.command("SELECT", key[0])
        seen[key] += (without(names, connection.command("XINFO", "STREAM", key[1], "FULL", "COUNT", "0")),)
    connection.close()
    return seen


def compare(one, other, sent):
    if one == other:
        return
    differs = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    named = [key for key in differs if isinstance(key, tuple)]
    history = [show_words(words) for words in sent if any(key[1] in words for key in named[:1])][-12:]
    raise Mistake("%d differ, as %s\n  %s" % (len(differs), "; ".join(
        "%r: %r and %r" % (key, one.get(key), other.get(key)) for key in named[:2]), "\n  ".join(history)))


def run_round(options, commands, seed, target_binary):
    limits = LIMITS[seed.split("/")[1]]
    choose = random.Random(seed)
    generator = Generator(seed, commands)
    with Server(options.server, [*OPTIONS, *limits, "--rdb-version", "10"], options.threads) as server, \
            Server(target_binary, [*OPTIONS, *limits], None) as other:
        source, target = server.connect(), other.connect()
        target.server = other
        source.command("DEBUG", "OPERATIONS", "START")
        names = CHANGING | COUNTED if other.redis else CHANGING
        sent, applied = [], []
        while len(sent) < options.commands:
            several = batch(generator, choose)
            source.exchange(b"".join(map(encode, several)), len(several))
            sent += several
            found = list(operations(source))
            applied += found
            apply(target, found)
            if choose.random() < 0.2:
                compare(picture(server, names), picture(other, names), [words for _, words in applied])
        compare(picture(server, names), picture(other, names), [words for _, words in applied])
        return len(applied)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--commands", type=int, default=3000)
    options = parser.parse_args()
    with Server(options.oracle) as oracle, Server(options.server) as server:
        commands = facts.load(oracle, server)[0]
    failed = applied = 0
    for number in range(options.rounds):
        seed = "%d/%s/%d" % (options.seed, list(LIMITS)[number % len(LIMITS)], number)
        try:
            applied += run_round(options, commands, seed, (options.server, options.oracle)[number // 2 % 2])
        except (Mistake, Lost) as problem:
            failed += 1
            print("FAILED  round %s: %s" % (seed, problem), flush=True)
    print("%d operations" % applied)
    print("%d passed, %d failed" % (options.rounds - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
