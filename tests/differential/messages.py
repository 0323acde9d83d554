#!/usr/bin/env python3
"""What clients hear that they have not asked for, here and in redis-server: messages, keyspace events, invalidations.

    messages.py --server BIN --oracle BIN [--count N] [--seed N] [--threads N] [--profile pubsub|tracking|both]

Six clients take turns: one sends a few commands, then all of them say PING, and what each has got until its answer to
that is compared: its replies in order, its messages in order, the keys of which it was told that they are invalid (in
no order: those of one command, and of one round of redis-server's loop, go in the order of its tables). So nothing may
be lost, late or told twice. In the end of a block the data must be equal, and what each server told its replicas.
Failures are shrunk. Blocks take turns with RESP2 and RESP3; HELLO within them mixes the two.
"""
import argparse
import collections
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import compare                                          # noqa: E402
from harness import ELEMENT_TYPES, Incomplete, Lost, encode, parse    # noqa: E402
from run import Difference                              # noqa: E402
from waiting import WaitingTester, report               # noqa: E402

CLIENTS = 6
FIRST_ID = 1000         # of a client under test: no count in a reply is as large
LATE_SECONDS = 2
MESSAGES = {b"message", b"pmessage", b"smessage", b"invalidate", b"tracking-redir-broken"}
LEAVING = {b"unsubscribe", b"punsubscribe", b"sunsubscribe"}

# Weight, words. {k} a key, {v} a value, {c} a channel, {p} a pattern, {d} a database, {i} a client's number, {x} a
# prefix, {n} a number that grows, {s} the seconds of a long time to live.
SHARED = [
    (6, "SET {k} {v}"), (3, "GET {k}"), (3, "DEL {k} {k}"), (2, "APPEND {k} {v}"), (2, "INCR {k}"),
    (2, "RPUSH {k} {v} {v}"), (1, "LPOP {k}"), (1, "LMOVE {k} {k} LEFT RIGHT"), (2, "SADD {k} {v} {v}"),
    (1, "SPOP {k} 9"),
    (1, "SMOVE {k} {k} {v}"), (1, "SUNIONSTORE {k} {k} {k}"), (2, "HSET {k} {v} {v}"), (1, "HDEL {k} {v}"),
    (2, "ZADD {k} 1 {v}"), (1, "ZPOPMIN {k}"), (1, "XADD {k} {n}-0 f {v}"), (1, "XTRIM {k} MAXLEN 1"),
    (1, "SORT {k} ALPHA STORE {k}"),
    (1, "RENAME {k} {k}"), (1, "COPY {k} {k} REPLACE"), (1, "MOVE {k} {d}"), (1, "EXPIRE {k} {s}"),
    (1, "PERSIST {k}"),
    (1, "PEXPIREAT {k} 1"), (1, "GETEX {k} EX {s}"), (1, "GETDEL {k}"), (1, "SETRANGE {k} 2 {v}"),
    (1, "MSET {k} {v} {k} {v}"),
    (1, "SETEX {k} {s} {v}"), (1, "BITOP NOT {k} {k}"), (1, "PFADD {k} {v}"), (1, "GEOADD {k} 1 1 {v}"),
    (1, "FLUSHDB"), (0.5, "FLUSHALL"), (1, "SELECT {d}"), (0.3, "SWAPDB 0 1"),
    (3, "HELLO 3"), (2, "HELLO 2"), (1, "RESET"), (2, "@reconnect"),
]
PUBSUB = SHARED + [
    (14, "SUBSCRIBE {c}"), (5, "SUBSCRIBE {c} {c} {c}"), (5, "UNSUBSCRIBE {c}"), (2, "UNSUBSCRIBE {c} {c}"),
    (2, "UNSUBSCRIBE"),
    (12, "PSUBSCRIBE {p}"), (3, "PSUBSCRIBE {p} {p}"), (5, "PUNSUBSCRIBE {p}"), (2, "PUNSUBSCRIBE"),
    (10, "SSUBSCRIBE {c}"), (3, "SSUBSCRIBE {c} {c}"), (4, "SUNSUBSCRIBE {c}"), (2, "SUNSUBSCRIBE"),
    (40, "PUBLISH {c} {v}"), (20, "SPUBLISH {c} {v}"), (2, "PUBLISH __keyspace@0__:{k} {v}"),
    (2, "PUBSUB CHANNELS"), (2, "PUBSUB CHANNELS {p}"), (2, "PUBSUB NUMSUB {c} {c}"), (2, "PUBSUB NUMPAT"),
    (2, "PUBSUB SHARDCHANNELS"), (1, "PUBSUB SHARDCHANNELS {p}"), (2, "PUBSUB SHARDNUMSUB {c} {c}"),
    (1, "PUBSUB NUMSUB"),
    (2, "EVAL return(redis.call('publish',ARGV[1],ARGV[2])) 0 {c} {v}"),
    (1, "EVAL redis.call('set',KEYS[1],ARGV[1]);return(redis.call('spublish',ARGV[2],ARGV[1])) 1 {k} {v} {c}"),
    (1, "SUBSCRIBE"), (1, "PUBLISH {c}"), (1, "SPUBLISH {c} {v} {v}"), (1, "PING {v}"), (1, "PING"),
    (1, "ECHO {v}"),
]
TRACKING = SHARED + [
    (10, "CLIENT TRACKING ON"), (4, "CLIENT TRACKING ON NOLOOP"), (5, "CLIENT TRACKING ON BCAST"),
    (4, "CLIENT TRACKING ON BCAST NOLOOP"), (6, "CLIENT TRACKING ON BCAST PREFIX {x}"),
    (3, "CLIENT TRACKING ON BCAST PREFIX {x} PREFIX {x}"), (2, "CLIENT TRACKING ON PREFIX {x}"),
    (5, "CLIENT TRACKING ON OPTIN"), (5, "CLIENT TRACKING ON OPTOUT"), (2, "CLIENT TRACKING ON OPTIN OPTOUT"),
    (2, "CLIENT TRACKING ON OPTIN BCAST"), (8, "CLIENT TRACKING ON REDIRECT {i}"),
    (3, "CLIENT TRACKING ON BCAST REDIRECT {i}"), (2, "CLIENT TRACKING ON OPTIN REDIRECT {i} NOLOOP"),
    (1, "CLIENT TRACKING ON REDIRECT 999999"), (8, "CLIENT TRACKING OFF"), (1, "CLIENT TRACKING MAYBE"),
    (6, "CLIENT CACHING YES"), (4, "CLIENT CACHING NO"), (1, "CLIENT CACHING"), (4, "CLIENT TRACKINGINFO"),
    (3, "CLIENT GETREDIR"),
    (8, "SUBSCRIBE __redis__:invalidate"), (2, "UNSUBSCRIBE __redis__:invalidate"), (1, "PSUBSCRIBE __redis__*"),
    (2, "SUBSCRIBE {c}"),
    (1, "UNSUBSCRIBE"), (1, "PUNSUBSCRIBE"), (2, "PUBLISH __redis__:invalidate {v}"), (2, "PUBLISH {c} {v}"),
    (30, "GET {k}"), (10, "MGET {k} {k} {k}"), (4, "EXISTS {k}"), (4, "STRLEN {k}"), (3, "HGETALL {k}"),
    (3, "LRANGE {k} 0 -1"),
    (3, "TYPE {k}"), (2, "TTL {k}"), (2, "SINTER {k} {k}"), (2, "OBJECT ENCODING {k}"), (2, "SCAN 0"),
    (2, "KEYS *"), (2, "DBSIZE"),
    (2, "TOUCH {k}"), (2, "SORT {k} ALPHA"), (2, "XRANGE {k} - +"), (2, "ZRANGE {k} 0 -1"),
    (2, "SORT_RO {k} ALPHA"),
    (3, "EVAL return(redis.call('get',KEYS[1])) 1 {k}"), (2, "EVAL_RO return(redis.call('get',KEYS[1])) 1 {k}"),
    (10, "SET {k} {v}"), (4, "MSET {k} {v} {k} {v}"), (4, "DEL {k}"), (3, "SET {k} {v} GET"),
]
# No EVAL that writes while somebody tracks: for redis-server it is not the client's own change, which NOLOOP is about.
PROFILES = {"pubsub": PUBSUB, "tracking": TRACKING}
KEYS = ["a", "ab", "abc", "b", "bc", "c"]
CHANNELS = ["a", "ab", "abc", "b", "news.1", "news.2", "__keyspace@0__:a", "__keyspace@1__:ab", "__keyevent@0__:set",
            "__keyevent@0__:del"]
PATTERNS = ["*", "a*", "?b", "news.*", "[ab]", "__key*", "__keyspace@0__:*", "__keyevent@*__:*", "x*", "a"]
PREFIXES = ["a", "ab", "b", "c", "x", "bc"]
READS = ["CLIENT", "GET", "MGET", "EXISTS", "STRLEN", "HGETALL", "TYPE", "TTL", "PING", "SINTER", "KEYS"]
CLASSES = "KEg$lshzxetdnm"


def switches(words):
    return words[0].endswith("SUBSCRIBE") or words[0] in ("HELLO", "RESET") or words[:2] == ["CLIENT", "TRACKING"]


class Turns:
    """What the clients do. An item is (client, commands)."""

    def __init__(self, seed, profile, shared):
        self.random = random.Random(seed)
        self.serial, self.tracks = 0, profile == "tracking"
        self.rows = [row for row in PROFILES[profile] if row[1][0] == "@" or row[1].split()[0].lower() in shared]

    def classes(self):
        kind = self.random.random()
        if kind < 0.4:
            return ""
        if kind < 0.6:
            return "AKE"
        return "".join(letter for letter in CLASSES if self.random.random() < 0.6)

    def words(self):
        row = self.random.choices(self.rows, [row[0] for row in self.rows])[0][1]
        pick = self.random.choice
        makers = {"{k}": lambda: pick(KEYS), "{v}": lambda: "v%d" % self.random.randrange(4), "{d}": lambda: pick("01"),
                  "{c}": lambda: pick(CHANNELS), "{p}": lambda: pick(PATTERNS), "{x}": lambda: pick(PREFIXES),
                  "{i}": lambda: "@%d" % self.random.randrange(CLIENTS), "{s}": lambda: "100000",
                  "{n}": lambda: str(self.serial)}
        words = []
        self.serial += 1
        for word in row.split(" "):
            for mark, make in makers.items():
                while mark in word:
                    word = word.replace(mark, make(), 1)
            words.append(word)
        return words

    def piece(self):
        count = self.random.choice((1, 1, 1, 1, 2, 2, 4))
        commands = [self.words() for _ in range(count)]
        if count == 1:
            return commands
        commands = [words for words in commands if words[0] != "@reconnect"] or [["PING"]]
        # Who is told of keys that changed is decided when the options change here; there when the round is over, or, by
        # REDIRECT, when the key changes. So where options change in the midst of commands, these change no keys.
        if self.tracks and any(switches(words) for words in commands):
            commands = [words for words in commands if switches(words) or words[0] in READS]
        if self.random.random() < 0.4:      # a transaction ends in the piece that begins it: PING is to be answered
            # What EXEC publishes is heard after it here, within it there: so what hears must stay as it is.
            commands = [words for words in commands if not words[0].endswith("UNSUBSCRIBE") and words[0] != "HELLO"
                        and words[:2] != ["CLIENT", "TRACKING"]]
            ends = [["EXEC"], ["EXEC"], ["EXEC"], ["DISCARD"], ["RESET"]]
            commands = [["MULTI"], *commands, self.random.choice(ends), ["DISCARD"]]
        return commands

    def block(self, count):
        return [(self.random.randrange(CLIENTS), self.piece()) for _ in range(count)]


# ------------------------------------------------------------------------------------------------------ replies --

def is_message(reply):
    kind, parts = reply
    return kind in "*>" and bool(parts) and parts[0][0] == "$" and parts[0][1] in MESSAGES


def parse_apart(data, at, apart):
    """As parse(); messages that stand within a reply (of EXEC) are put aside."""
    end = data.find(b"\r\n", at)
    if end < 0:
        raise Incomplete
    if data[at] not in ELEMENT_TYPES or data[at + 1:at + 2] == b"-":
        return parse(data, at)
    left = int(data[at + 1:end]) * ELEMENT_TYPES[data[at]]
    kind, elements, after = chr(data[at]), [], end + 2
    while left:
        element, after = parse_apart(data, after, apart)
        if is_message(element):
            apart.append(element)
            continue
        elements.append(element)
        left -= 1
    return (kind, elements), after


def is_leaving(reply):
    return reply[0] in "*>" and bool(reply[1]) and reply[1][0][0] == "$" and reply[1][0][1] in LEAVING


def settle_leaving(replies):
    """UNSUBSCRIBE without names leaves in any order: names are sorted, counts stay where they are."""
    result, begin = [], 0
    while begin < len(replies):
        end = begin
        while end < len(replies) and is_leaving(replies[end]) and replies[end][1][0] == replies[begin][1][0]:
            end += 1
        run = replies[begin:end]
        names = sorted((reply[1][1] for reply in run), key=repr)
        result += [(reply[0], [reply[1][0], name, reply[1][2]]) for reply, name in zip(run, names)]
        if end == begin:
            result.append(replies[begin])
            end += 1
        begin = end
    return result


class Heard:
    """What one client got in one turn."""

    def __init__(self):
        self.replies = []
        self.messages = []

    def shown(self, numbers, loose):
        """loose: several commands; who is told of a key once for all of them, and who twice, is not compared."""
        lines, invalid, run = [], [], []
        for reply in settle_leaving([self.symbolic(reply, numbers) for reply in self.replies]):
            lines.append("reply " + compare.show(reply))
        for kind, parts in self.messages:
            payload = parts[-1]
            if parts[0][1] == b"tracking-redir-broken":
                invalid.append("broken %s" % compare.show(self.symbolic((kind, parts), numbers)))
            elif parts[0][1] == b"invalidate" or payload[0] in "*_" or payload[1] is None:
                keys = [compare.show(key) for key in payload[1]] if payload[0] == "*" and payload[1] else ["everything"]
                invalid += ["%s invalid %s" % (compare.show((kind, parts[:-1])), key) for key in keys]
            else:   # to a channel first, then to the patterns that fit, in any order
                if run and run[-1][1][-2:] != parts[-2:]:
                    lines += sorted("message " + compare.show(each) for each in run)
                    run = []
                run.append((kind, parts))
        lines += sorted("message " + compare.show(each) for each in run)
        return lines + sorted(set(invalid) if loose else invalid)

    def symbolic(self, reply, numbers):
        kind, value = reply
        if kind == ":" and int(value) in numbers:
            return (kind, b"client %d" % numbers[int(value)])
        if isinstance(value, list):
            if value and value[0] == ("$", b"server"):
                return (kind, [element for element in value if element[1] in (b"proto", b"2", b"3")])
            parts = [self.symbolic(element, numbers) for element in value]
            if kind in "*~" and value and all(element[0] == "$" for element in value) and value[0][1] not in LEAVING:
                parts = sorted(parts, key=repr)     # PUBSUB CHANNELS, KEYS have no order
            return (kind, parts)
        return reply


class Side:
    """One server's clients."""

    def __init__(self, server, admin, resp):
        self.server, self.admin, self.resp = server, admin, resp
        self.clients, self.numbers, self.tag = [], {}, 0
        while not self.clients:     # connections that only use up numbers
            client = server.connect()
            if client.command("CLIENT", "ID")[1] and int(client.command("CLIENT", "ID")[1]) >= FIRST_ID:
                self.clients = [None] * CLIENTS
            client.close()
        for which in range(CLIENTS):
            self.connect(which)
        # While nobody tracks ours forgets who has read what; redis-server remembers it for who tracks again.
        self.keeper = server.connect()
        self.keeper.command("HELLO", "3")
        self.keeper.command("CLIENT", "TRACKING", "ON")
        self.heard = None
        self.begin()

    def connect(self, which):
        client = self.server.connect()
        self.numbers[int(client.command("CLIENT", "ID")[1])] = which
        if self.resp == 3:
            client.command("HELLO", "3")
        self.clients[which] = client

    def reconnect(self, which):
        number = max(number for number, of in self.numbers.items() if of == which)
        self.clients[which].close()
        deadline = time.monotonic() + LATE_SECONDS
        while self.admin.command("CLIENT", "LIST", "ID", number)[1] and time.monotonic() < deadline:
            time.sleep(0.0005)
        self.connect(which)

    def close(self):
        for client in [*self.clients, self.keeper]:
            client.close()

    def begin(self):
        self.heard = [Heard() for _ in range(CLIENTS)]

    def number_of(self, word):
        return max(number for number, which in self.numbers.items() if which == int(word[1:]))

    def send(self, which, commands):
        commands = [[self.number_of(word) if word[0] == "@" else word for word in words] for words in commands]
        self.clients[which].sock.sendall(b"".join(encode(words) for words in commands))

    def ping(self, which):
        self.tag += 1
        self.clients[which].sock.sendall(encode(["PING", "tag%d" % self.tag]))
        return which, b"tag%d" % self.tag

    def receive(self, waiting):
        """All that comes until this PING is answered."""
        which, tag = waiting
        client, heard = self.clients[which], self.heard[which]
        while True:
            data, at, apart = bytes(client.data), 0, []
            try:
                while at < len(data):
                    reply, at = parse_apart(data, at, apart)
                    heard.messages += apart
                    apart.clear()
                    if is_message(reply):
                        heard.messages.append(reply)
                    elif reply in (("$", tag), ("*", [("$", b"pong"), ("$", tag)])):
                        del client.data[:at]
                        return
                    else:
                        heard.replies.append(reply)
            except Incomplete:
                apart.clear()
            del client.data[:at]
            received = client.sock.recv(1 << 18)
            if not received:
                raise Lost("connection %d was closed by the server" % which)
            client.data += received


class MessagesTester(WaitingTester):
    classes = ""
    late = 0

    def run(self, items, resp):
        pair = []
        try:
            self.sides.fresh(2)
            self.sides.both([["CONFIG", "SET", "notify-keyspace-events", self.classes]])
            pair = [Side(self.sides.servers[side], self.sides.admins[side], resp) for side in (0, 1)]
            for index, (which, commands) in enumerate(items):
                difference = self.one_turn(pair, which, commands, index)
                if difference:
                    return difference
            return self.compare_journals() or self.compare_data()
        except (Lost, OSError) as problem:
            return Difference("lost", "within the block", "", str(problem))
        finally:
            for side in pair:
                side.close()

    def one_turn(self, pair, which, commands, index):
        if commands == [["@reconnect"]]:
            for side in pair:
                side.reconnect(which)
            return None
        for side in pair:
            side.begin()
            side.send(which, commands)
        for side, waiting in [(side, side.ping(which)) for side in pair]:
            side.receive(waiting)
        deadline = time.monotonic() + min(LATE_SECONDS, self.patience)
        first = True
        while True:
            for side, waiting in [(side, side.ping(each)) for each in range(CLIENTS) for side in pair]:
                side.receive(waiting)
            shown = [self.shown(side, len(commands) > 1) for side in pair]
            if shown[0] == shown[1] or time.monotonic() > deadline:
                break
            first = False
        if shown[0] == shown[1]:
            self.late += not first
            return None
        what = "[connection %d] %s" % (which, "; ".join(" ".join(words) for words in commands))
        lines = [collections.Counter(lines) for lines in shown]
        only = [[line for line in shown[i] if line not in lines[1 - i] or lines[i][line] != lines[1 - i][line]]
                for i in (0, 1)]
        if not only[0] and not only[1]:
            only = shown
        return Difference("reply", what, *("; ".join(each) or "(nothing more)" for each in only), index)

    def shown(self, side, loose):
        return ["%d gets %s" % (which, line) for which, heard in enumerate(side.heard)
                for line in heard.shown(side.numbers, loose)]

    def rest_empty(self):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--count", type=int, default=4000, help="turns")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--profile", choices=[*PROFILES, "both"], default="both")
    parser.add_argument("--block", type=int, default=100, help="turns a block")
    parser.add_argument("--only-block", type=int, help="just the block of this number")
    parser.add_argument("--max-failures", type=int, default=5)
    options = parser.parse_args()
    options.inject, options.shrink_seconds, options.events = None, 20, False
    tester = MessagesTester(options)
    profiles = list(PROFILES) if options.profile == "both" else [options.profile]
    passed = failed = 0
    print("seed %d" % options.seed)
    try:
        for problem in sorted(tester.sides.missing):
            print("FAILED to set up: %s" % problem)
            failed += 1
        for number in range(max(1, options.count // options.block)):
            if options.only_block not in (None, number) or failed >= options.max_failures:
                continue
            profile = profiles[number // 2 % len(profiles)]
            turns = Turns("%s/%d/%d" % (profile, options.seed, number), profile, tester.shared)
            tester.classes = turns.classes() if profile == "pubsub" else ""
            items = turns.block(options.block)
            difference = tester.run(items, 2 + number % 2)
            passed += difference is None
            failed += difference is not None
            if difference:
                print("\n%s, notify-keyspace-events '%s'" % (profile, tester.classes))
                report(tester, number, items, difference)
    finally:
        tester.sides.stop()
    print("%d turns were late" % tester.late)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
