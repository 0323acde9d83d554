"""What a round of chaos does: a list of steps that a seed makes, and that can be run again in part.

    ["do", node, [command, ...]]        in one pipeline; a node that does not run is passed by
    ["cut" | "heal" | "freeze" | "flicker", [receiver, sender]]
    ["slow", pair, bytes a second]
    ["trouble", pair, seed, most]       each connection is cut, stalled or slowed again and again
    ["pause" | "resume" | "kill" | "start" | "save" | "rewrite" | "wipe", node]
    ["restart", node]                   SHUTDOWN as its options say, and start
    ["sleep", ms]

Words are bytes; in a file they are latin-1 text, so a plan is kept as JSON.
"""
import json
import random

from generate import PROFILES, Generator
from operations import batch

COUNTERS = 5        # the database of what is counted: nothing else is there
PROFILES_USED = ["mixed", "mixed", "mixed", "string", "list", "set", "hash", "zset", "geo", "stream", "bits", "keys",
                 "dump"]
SOON_MS = 400
FIELDS = (b"f", b"g", b"h")


def group_commands(choose, field, number):
    """Of a stream whose ids are few, so that entries are met again."""
    entry = b"%d-1" % choose.randrange(1, 50)
    consumer = choose.choice((b"u", b"v"))
    policy = choose.choice((b"KEEPREF", b"DELREF", b"ACKED"))
    read = [b"XREADGROUP", b"GROUP", b"g", consumer, b"COUNT", b"2"]
    return [[b"XADD", b"x3", entry, field, number], [b"DEL", b"x3"],
            [b"XGROUP", b"CREATE", b"x3", b"g", b"0", b"MKSTREAM"], [*read, b"STREAMS", b"x3", b">"],
            [*read, b"CLAIM", b"0", b"STREAMS", b"x3", b">"],
            [b"XNACK", b"x3", b"g", choose.choice((b"SILENT", b"FAIL", b"FATAL")), b"IDS", b"1", entry],
            [b"XDELEX", b"x3", policy, b"IDS", b"1", entry], [b"XACKDEL", b"x3", b"g", policy, b"IDS", b"1", entry]]


def newer_commands(choose, key, field, number, far):
    """What redis-server 7.0 lacks; nodes of KeyDB refuse it."""
    policy = choose.choice((b"KEEPREF", b"DELREF", b"ACKED"))
    return [[b"SET", key, number, b"IFNE", number], [b"DELEX", key, b"IFEQ", number],
            [b"MSETEX", b"2", b"s1", number, b"s2", number, b"PX", far],
            [b"INCREX", b"bounded", b"BYINT", b"3", b"UBOUND", b"50", b"SATURATE"],
            [b"HSETEX", b"h1", b"FXX", b"PX", far, b"FIELDS", b"1", field, number],
            [b"HGETEX", b"h1", b"PERSIST", b"FIELDS", b"1", field], [b"HGETDEL", b"h2", b"FIELDS", b"1", field],
            [b"LMOVEM", b"l1", b"l2", b"LEFT", b"RIGHT", b"COUNT", b"2", b"BULK"],
            [b"XADD", b"x2", b"IDMP", b"p", field, b"*", field, number],
            [b"XADD", b"x1", policy, b"MAXLEN", b"20", b"*", field, number],
            [b"XTRIM", b"x1", b"MAXLEN", b"15", policy],
            [b"XCFGSET", b"x2", b"IDMP-MAXSIZE", b"%d" % choose.randrange(90, 110)]]


def more_commands(choose, soon):
    """What the generator does not know."""
    key = b"%s%d" % (choose.choice((b"s", b"l", b"h", b"t", b"z")), choose.randrange(5))
    field = choose.choice(FIELDS)
    number = b"%d" % choose.randrange(100)
    far = b"%d" % (10 ** 6 + choose.randrange(10 ** 6))
    rows = [[b"EXPIREMEMBER", key, field, far], [b"HEXPIRE", key, far, b"FIELDS", b"1", field],
            [b"HPERSIST", key, b"FIELDS", b"1", field], [b"HSET", b"h1", field, number],
            [b"KEYDB.HRENAME", b"h1", field, choose.choice(FIELDS)], [b"EXPDEL", key], [b"SPOP", key],
            [b"BLPOP", key, b"0.001"], [b"BLMOVE", b"l1", b"l2", b"LEFT", b"RIGHT", b"0.001"],
            [b"LMPOP", b"1", key, b"LEFT"], [b"RPUSH", b"l1", number, number], [b"LREM", b"l1", b"1", number],
            [b"INCRBYFLOAT", b"float", b"0." + number], [b"ZINCRBY", b"z1", b"0." + number, field],
            [b"ZPOPMIN", b"z1"], [b"XADD", b"x1", b"*", field, number], [b"PFADD", b"p1", number],
            [b"SET", key, number], [b"DEL", key], [b"RENAME", key, key + b"'"], [b"LPUSH", b"long", number, number],
            [b"LTRIM", b"long", b"0", b"50"]]
    rows += newer_commands(choose, key, field, number, far) + group_commands(choose, field, number)
    if soon:
        ms = b"%d" % choose.randrange(1, SOON_MS)
        rows += [[b"SET", key, number, b"PX", ms], [b"PEXPIRE", key, ms], [b"INCR", key], [b"RPUSH", key, number],
                 [b"PERSIST", key], [b"HPEXPIRE", b"h1", ms, b"FIELDS", b"1", field], [b"SADD", key, number]] * 2
    return choose.choice(rows)


class Planner:
    def __init__(self, seed, commands, nodes, pairs, files, soon=False, wipes=False):
        """files: nodes come back with what they had ("aof", "rdb") or "none"."""
        self.choose = random.Random(seed)
        self.seed, self.commands = seed, commands
        self.count, self.pairs, self.files, self.soon, self.wipes = nodes, pairs, files, soon, wipes
        self.down, self.paused, self.bad = set(), set(), set()
        self.made = 0
        self.generator = self.next_generator()

    def next_generator(self):
        self.made += 1
        profile = self.choose.choice(PROFILES_USED)
        assert profile in PROFILES
        return Generator("%s/%d" % (self.seed, self.made), self.commands, profile)

    def some_commands(self, node):
        if self.choose.random() < 0.1:
            self.generator = self.next_generator()
        found = batch(self.generator, self.choose)
        begin = self.choose.randrange(max(len(found) - 8, 1))
        # A piece of it, without a half transaction.
        found = found[begin:begin + self.choose.randint(1, 8)]
        found = [words for words in found if words[0] not in (b"MULTI", b"EXEC")]
        found += [more_commands(self.choose, self.soon) for _ in range(self.choose.randint(0, 4))]
        self.choose.shuffle(found)
        if self.choose.random() < 0.15:
            found = [[b"MULTI"], *found, [b"EXEC"]]
        if self.choose.random() < 0.1:
            found = [[b"SELECT", b"1"], *found, [b"SELECT", b"0"]]
        if self.choose.random() < 0.004:
            found.append([b"FLUSHDB"])
        return found

    def counted(self, node, number):
        return [[b"SELECT", b"%d" % COUNTERS], [b"INCRBY", b"counter", b"1"], [b"SADD", b"elements", b"%d" % number],
                [b"RPUSH", b"list", b"%d" % number], [b"HINCRBY", b"hash", b"%d" % node, b"1"], [b"SELECT", b"0"]]

    def fault(self):
        choose = self.choose
        pair = choose.choice(self.pairs) if self.pairs else (0, 0)
        node = choose.randrange(self.count)
        draw = choose.random()
        if draw < 0.45 and self.bad:
            pair = choose.choice(sorted(self.bad))
            self.bad.discard(pair)
            return [["heal", list(pair)]]
        if draw < 0.6:
            self.bad.add(tuple(pair))
            return [[choose.choice(("cut", "cut", "freeze")), list(pair)]]
        if draw < 0.68:
            return [["flicker", list(pair)]]
        if draw < 0.73:
            self.bad.add(tuple(pair))
            return [["trouble", list(pair), choose.randint(1, 1 << 30), int(10 ** choose.uniform(3, 5))]]
        if draw < 0.76:
            self.bad.add(tuple(pair))
            return [["slow", list(pair), choose.choice((20000, 200000))]]
        if draw < 0.82:     # all of a node's links
            links = [each for each in self.pairs if node in each]
            self.bad.update(links)
            return [["cut", list(each)] for each in links]
        if draw < 0.88:
            if self.paused:
                return [["resume", self.paused.pop()]]
            self.paused.add(node)
            return [["pause", node]]
        if draw < 0.91:
            return [[choose.choice(("save", "rewrite")), node]]
        if self.down:
            return [["start", self.down.pop()]]
        if draw < 0.96:
            self.down.add(node)
            steps = [["kill", node]]
            if self.wipes and choose.random() < 0.3:
                self.wipes = False
                steps.append(["wipe", node])
            return steps
        return [["restart", node]]

    def steps(self, count):
        result = []
        for number in range(count):
            node = self.choose.randrange(self.count)
            result.append(["do", node, self.some_commands(node)])
            if self.choose.random() < 0.5:
                result.append(["do", node, self.counted(node, number)])
            if self.choose.random() < 0.08:
                result += self.fault()
            if self.choose.random() < 0.02:
                result.append(["sleep", self.choose.choice((1, 5, 20, 100))])
        return result


def as_text(value):
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return [as_text(each) for each in value] if isinstance(value, list) else value


def dump(plan, path):
    """plan: what it is run with, and its steps."""
    with open(path, "w") as out:
        json.dump(dict(plan, steps=as_text(plan["steps"])), out, indent=0)


def load(path):
    with open(path) as source:
        plan = json.load(source)
    for step in plan["steps"]:
        if step[0] == "do":
            step[2] = [[word.encode("latin-1") for word in words] for words in step[2]]
    return plan
