"""Streams of newer.py: what may be asked of them, and what they promise. Entries have ids N-0; those with a producer
have ids of the server's clock, in keys of their own."""


class Refused(Exception):
    """An error, or the beginning of its text; "": any."""


class Unknown(Exception):
    """The model does not say what comes of it: it is not run."""


class Claimed:
    """A reply with entries in the order of their waiting, which the model does not know; idle times neither."""

    def __init__(self, key, rows, new):
        self.key, self.rows, self.new = key, rows, new

    def matches(self, got):
        if not self.rows and not self.new:
            return got is None
        if got is None or len(got) != 1 or got[0][0] != self.key:
            return False
        entries = [[each[0], each[1], each[3]] for each in got[0][1]]
        return sorted(entries[:len(self.rows)]) == sorted(self.rows) and entries[len(self.rows):] == self.new


class Added:
    """The id of an entry: a new one, which is noted, or that of the entry before."""

    def __init__(self, stream, pair, fields):
        self.stream, self.pair, self.fields = stream, pair, fields

    def matches(self, got):
        known = self.stream.pairs.get(self.pair)
        if known is not None:
            return got == known
        at, _, number = got.partition(b"-")
        position = (int(at), int(number))
        if position <= max(self.stream.entries, default=(0, 0)):
            return False
        self.stream.entries[position] = self.fields
        self.stream.last = position
        self.stream.pairs[self.pair] = got
        return True


class Group:
    def __init__(self, last):
        self.last = last
        self.rows = {}      # id to [consumer, count]


class Stream:
    def __init__(self):
        self.entries = {}       # ids are pairs of numbers; in their order
        self.last = (0, 0)
        self.groups = {}
        self.pairs = {}         # of producers
        self.most = 100

    def is_referenced(self, position):
        return any(position > group.last or position in group.rows for group in self.groups.values())

    def forget(self, position):
        """Rows of it in all groups."""
        for group in self.groups.values():
            group.rows.pop(position, None)

    def trim(self, most, policy):
        gone = 0
        for position in sorted(self.entries):
            if len(self.entries) <= most:
                break
            if policy == b"ACKED" and self.is_referenced(position):
                continue
            if policy == b"DELREF":
                self.forget(position)
            del self.entries[position]
            gone += 1
        return gone

    def picture(self):
        return (entries_of(self.entries, sorted(self.entries)), text(self.last),
                {name: (text(group.last), {text(position): tuple(row) for position, row in group.rows.items()})
                 for name, group in self.groups.items()})


def text(position):
    return b"%d-%d" % position


def entries_of(entries, positions):
    return [[text(position), entries[position]] for position in positions]


def place(word):
    at, _, number = word.partition(b"-")
    return int(at), int(number or 0)


# --------------------------------------------------------------------------------------------------------- choosing

def policy(chooser):
    return chooser.maybe(chooser.one("KEEPREF", "DELREF", "ACKED"), share=0.7)


def ids(chooser, key, known=30):
    newest = chooser.last_id
    stream = chooser.model.keys.get(key)
    if key[0] == "y" and stream is not None and stream.value.entries:
        return [text(position).decode() for position in chooser.random.sample(sorted(stream.value.entries), 1)]
    some = chooser.random.sample(range(max(0, newest - known), newest + 2), chooser.random.randrange(1, 3))
    return ["%d-0" % number for number in some]


def numbered(chooser, key):
    some = ids(chooser, key)
    return ["IDS", len(some), *some]


def choose_old(chooser, may_have_pairs=False):
    """Of what redis-server 7.0 can be told all."""
    key, group = chooser.key("y" if may_have_pairs and chooser.random.random() < 0.2 else "x"), chooser.one("g", "h")
    consumer = chooser.one("c", "d")
    kind = chooser.random.randrange(14)
    if kind < 5:
        chooser.last_id += 1
        trim = chooser.maybe(*policy(chooser), "MAXLEN", chooser.random.randrange(12))
        return ["XADD", key, *trim, "%d-0" % chooser.last_id, "f", chooser.value()]
    if kind == 5:
        return ["XTRIM", key, "MAXLEN", chooser.random.randrange(10), *policy(chooser)]
    if kind == 6:
        return ["XGROUP", "CREATE", key, group, chooser.one("0", "$")]
    if kind < 9:
        count = chooser.maybe("COUNT", chooser.random.randrange(1, 4), share=0.7)
        return ["XREADGROUP", "GROUP", group, consumer, *count,
                *chooser.maybe("MAXCOUNT", 5), *chooser.maybe("NOACK", share=0.2), "STREAMS", key, ">"]
    if kind == 9:
        return ["XREADGROUP", "GROUP", group, consumer, "CLAIM", 0, "STREAMS", key, ">"]
    if kind == 10:
        return ["XACK", key, group, *ids(chooser, key)]
    if kind == 11:
        return ["XDEL", key, *ids(chooser, key)]
    if kind == 12:
        return ["XDELEX", key, *policy(chooser), *numbered(chooser, key)]
    return ["XACKDEL", key, group, *policy(chooser), *numbered(chooser, key)]


def choose(chooser):
    kind = chooser.random.randrange(12)
    if kind < 8:
        return choose_old(chooser, True)
    if kind == 8:
        key = chooser.key(chooser.one("x", "y"))
        return ["XNACK", key, chooser.one("g", "h"), chooser.one("SILENT", "FAIL", "FATAL"),
                *numbered(chooser, key), *chooser.maybe("RETRYCOUNT", chooser.random.randrange(5))]
    if kind == 9:
        name = chooser.one("x", "y")
        return ["COPY", "%s%d" % (name, chooser.random.randrange(4)), "%s%d" % (name, chooser.random.randrange(4)),
                "REPLACE"]
    if kind == 10 and chooser.random.random() < 0.1:
        return ["XCFGSET", chooser.key("y"), "IDMP-MAXSIZE", chooser.random.randrange(90, 110)]
    words = ["f", chooser.one("1", "2"), "g", chooser.one("1", "2")]
    if chooser.random.random() < 0.5:
        words = words[2:] + words[:2]
    producer = chooser.one("p", "q")
    pair = chooser.one(["IDMP", producer, chooser.one(*"ijkl")], ["IDMPAUTO", producer])
    return ["XADD", "y%d" % chooser.random.randrange(4), *pair, "*", *words]


# --------------------------------------------------------------------------------------------------------- promises

def run(keyspace, name, words):
    return globals()[name.lower()](keyspace, words)


def group_of(keyspace, key, name):
    stream = keyspace.value(key, "stream", None)
    if stream is None or name not in stream.groups:
        raise Refused("NOGROUP")
    return stream, stream.groups[name]


def xadd(keyspace, words):
    key, at, kept, most, pair = words[1], 2, b"KEEPREF", None, None
    while words[at] in (b"KEEPREF", b"DELREF", b"ACKED", b"MAXLEN", b"IDMP", b"IDMPAUTO"):
        if words[at] == b"MAXLEN":
            most, at = int(words[at + 1]), at + 2
        elif words[at] == b"IDMP":
            pair, at = (words[at + 1], words[at + 2]), at + 3
        elif words[at] == b"IDMPAUTO":
            pair, at = (words[at + 1], None), at + 2
        else:
            kept, at = words[at], at + 1
    stream = keyspace.grow(key, "stream", Stream())
    fields = list(words[at + 1:])
    if pair is not None:
        if pair[1] is None:
            pair = (pair[0], frozenset(zip(fields[::2], fields[1::2])))
        return Added(stream, pair, fields)
    position = place(words[at])
    if position <= stream.last:
        raise Refused("ERR The ID specified in XADD")
    stream.entries[position] = fields
    stream.last = position
    if most is not None:
        stream.trim(most, kept)
    return words[at]


def xtrim(keyspace, words):
    stream = keyspace.value(words[1], "stream", None)
    return 0 if stream is None else stream.trim(int(words[3]), words[4] if len(words) > 4 else b"KEEPREF")


def xgroup(keyspace, words):
    stream = keyspace.value(words[2], "stream", None)
    if stream is None:
        raise Refused("ERR The XGROUP subcommand")
    if words[3] in stream.groups:
        raise Refused("BUSYGROUP")
    stream.groups[words[3]] = Group(stream.last if words[4] == b"$" else (0, 0))
    return b"OK"


def xreadgroup(keyspace, words):
    key, options = words[-2], words[4:-3]
    stream, group = group_of(keyspace, key, words[2])
    counts = [int(options[options.index(word) + 1]) for word in (b"COUNT", b"MAXCOUNT") if word in options]
    rows = []
    if b"CLAIM" in options:
        if any(position not in stream.entries for position in group.rows):
            raise Unknown
        for position, row in group.rows.items():
            rows.append([text(position), stream.entries[position], row[1]])
            row[:] = [words[3], min(row[1] + 1, 2 ** 63 - 1)]
    new = [position for position in sorted(stream.entries) if position > group.last][:min(counts, default=None)]
    if new:
        group.last = new[-1]
    if b"NOACK" not in options:
        group.rows.update((position, [words[3], 1]) for position in new)
    if b"CLAIM" in options:
        return Claimed(key, rows, [[text(position), stream.entries[position], 0] for position in new])
    return [[key, entries_of(stream.entries, new)]] if new else None


def xack(keyspace, words):
    stream = keyspace.value(words[1], "stream", None)
    if stream is None or words[2] not in stream.groups:
        return 0
    rows = stream.groups[words[2]].rows
    return sum(rows.pop(place(word), None) is not None for word in words[3:])


def xdel(keyspace, words):
    stream = keyspace.value(words[1], "stream", None)
    return 0 if stream is None else sum(stream.entries.pop(place(word), None) is not None for word in words[2:])


def block_of(words, at):
    kept = b"KEEPREF"
    if words[at] != b"IDS":
        kept, at = words[at], at + 1
    return kept, [place(word) for word in words[at + 2:]]


def delete(stream, position, kept):
    """1: gone; 2: kept, for the references to it."""
    if kept == b"ACKED" and position in stream.entries and stream.is_referenced(position):
        return 2
    if kept == b"DELREF":
        stream.forget(position)
    stream.entries.pop(position, None)
    return 1


def xdelex(keyspace, words):
    kept, positions = block_of(words, 2)
    stream = keyspace.value(words[1], "stream", None)
    result = []
    for position in positions:
        if stream is not None and position in stream.entries:
            result.append(delete(stream, position, kept))
            continue
        if stream is not None and kept == b"DELREF":
            stream.forget(position)
        result.append(-1)
    return result


def xackdel(keyspace, words):
    kept, positions = block_of(words, 3)
    stream = keyspace.value(words[1], "stream", None)
    group = None if stream is None else stream.groups.get(words[2])
    result = []
    for position in positions:
        if group is None or group.rows.pop(position, None) is None:
            result.append(-1)
        else:
            result.append(delete(stream, position, kept))
    return result


def xnack(keyspace, words):
    at = words.index(b"IDS")
    count = int(words[at + 1])
    positions = [place(word) for word in words[at + 2:at + 2 + count]]
    rest = words[at + 2 + count:]
    stream, group = group_of(keyspace, words[1], words[2])
    released = 0
    if any(position in group.rows and (group.rows[position][0] == b"" or position not in stream.entries)
           for position in positions):
        raise Unknown
    for position in positions:
        row = group.rows.get(position)
        if row is None:
            continue
        if rest:
            row[1] = int(rest[1])
        elif words[3] == b"SILENT":
            row[1] = max(0, row[1] - 1)
        elif words[3] == b"FATAL":
            row[1] = 2 ** 63 - 1
        row[0] = b""
        released += 1
    return released


def xcfgset(keyspace, words):
    stream = keyspace.value(words[1], "stream", None)
    if stream is None:
        raise Refused("ERR no such key")
    if int(words[3]) != stream.most:
        stream.pairs.clear()
        stream.most = int(words[3])
    return b"OK"


# ---------------------------------------------------------------------------------------------------------- reading

def read(ask, key):
    """As Stream.picture, of a server."""
    facts = ask("XINFO", "STREAM", key)
    facts = dict(zip(facts[::2], facts[1::2]))
    groups = {}
    for each in ask("XINFO", "GROUPS", key):
        group = dict(zip(each[::2], each[1::2]))
        rows = ask("XPENDING", key, group[b"name"], "-", "+", 10000)
        groups[group[b"name"]] = (group[b"last-delivered-id"], {row[0]: (row[1], row[3]) for row in rows})
    return ask("XRANGE", key, "-", "+"), facts[b"last-generated-id"], groups
