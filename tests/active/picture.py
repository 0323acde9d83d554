"""What the data of a server are, key by key, as far as nodes and oracles have to agree on it, and how two differ.

A picture has for each (database, key): type, digest of the value, deadline, and of a stream what XINFO tells of it.
Keys that have expired are not in it, as each server frees them when it can. HyperLogLogs count by their registers, as
there are several forms of the same ones.
"""
import time

from harness import Lost

STREAM_CHANGING = {b"seen-time", b"active-time", b"idle", b"inactive", b"radix-tree-keys", b"radix-tree-nodes",
                   b"nacked-count", b"idmp-duration", b"idmp-maxsize", b"pids-tracked", b"iids-tracked",
                   b"iids-added", b"iids-duplicates"}
RELEASED = b"keydb:released"    # XINFO shows this consumer as nobody; redis-server does not know what it is
# Of a group, what XCLAIM does not tell redis-server. pel-count is the number of rows, of which some are left out.
STREAM_COUNTED = {b"entries-read", b"lag", b"pel-count"}
PAGE = 2000
HLL_REGISTERS = 16384
SOON_MS = 3000      # a deadline of KeyDB is known by what is left; two servers are not asked at the same moment


class Look:
    """Of one key."""

    def __init__(self, kind, digest, deadline, more=None):
        self.kind, self.digest, self.deadline, self.more = kind, digest, deadline, more

    def value(self):
        return (self.kind, self.digest, self.more)

    def __repr__(self):
        text = "%s %s" % (self.kind.decode(), self.digest.decode()[:12])
        if self.deadline >= 0:
            text += " until %d" % self.deadline
        return text


def keys_in(node, database):
    node.ask("SELECT", database)
    found, cursor = set(), b"0"
    while True:
        cursor, page = (each[1] for each in node.ask("SCAN", cursor, "COUNT", PAGE))
        found |= {key[1] for key in page}
        if cursor == b"0":
            return sorted(found)


def without(names, reply):
    """A reply of names and values without some of them."""
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


def without_released(reply):
    kind, value = reply
    if not isinstance(value, list):
        return (kind, b"") if value == RELEASED else reply
    return kind, [without_released(one) for one in value
                  if not isinstance(one[1], list) or len(one[1]) < 2 or
                  [each[1] for each in one[1][:2]] != [b"name", RELEASED]]


def without_dead(reply, ids, is_pending=False):
    """Without what is pending of entries that are gone: redis-server's XCLAIM does not make it."""
    kind, value = reply
    if not isinstance(value, list):
        return reply
    if is_pending:
        return kind, [row for row in value if row[1][0][1] in ids]
    return kind, [without_dead(one, ids, at > 0 and value[at - 1][1] == b"pending") for at, one in enumerate(value)]


def of_stream(node, key, counted):
    reply = without_released(node.call("XINFO", "STREAM", key, "FULL", "COUNT", "0"))
    if counted or reply[0] == "-":
        return repr(without(STREAM_CHANGING, reply))
    names = [each[1] for each in reply[1][::2]]
    entries = reply[1][2 * names.index(b"entries") + 1][1]
    reply = without_dead(reply, {entry[1][0][1] for entry in entries})
    return repr(without(STREAM_CHANGING | STREAM_COUNTED, reply))


def take(node, counted=True):
    """counted: what groups of streams count is in it, too."""
    seen = {}
    absolute = node.kind != "keydb"
    for database in node.databases():
        keys = keys_in(node, database)
        for at in range(0, len(keys), PAGE):
            some = keys[at:at + PAGE]
            words = [each for key in some for each in (
                [b"TYPE", key], [b"DEBUG", b"DIGEST-VALUE", key], [b"PEXPIRETIME" if absolute else b"PTTL", key])]
            replies = node.calls(words)
            now = int(time.time() * 1000)
            for number, key in enumerate(some):
                kind, digest, end = replies[3 * number:3 * number + 3]
                if end[0] == "-":
                    raise Lost("%s: %s" % (node.name, end[1].decode()))     # it has begun to load
                if kind[1] == b"none" or digest[0] == "-":
                    continue
                end = int(end[1])
                if not absolute and end >= 0:
                    end += now
                more = of_stream(node, key, counted) if kind[1] == b"stream" and absolute else None
                seen[database, key] = Look(kind[1], digest[1][0][1], end, more)
    node.ask("SELECT", 0)
    return seen


def registers(value):
    """Of a HyperLogLog in either form; None: it is none."""
    if value is None or len(value) < 16 or value[:4] != b"HYLL":
        return None
    found = []
    if value[4] == 0:
        bits = int.from_bytes(value[16:], "little")
        return [bits >> 6 * index & 63 for index in range(HLL_REGISTERS)] if len(value) == 16 + 12288 else None
    at = 16
    while at < len(value):
        byte = value[at]
        if byte < 0x40:
            found += [0] * ((byte & 0x3f) + 1)
        elif byte < 0x80:
            at += 1
            if at == len(value):
                return None
            found += [0] * (((byte & 0x3f) << 8 | value[at]) + 1)
        else:
            found += [(byte >> 2 & 0x1f) + 1] * ((byte & 3) + 1)
        at += 1
    return found if len(found) == HLL_REGISTERS else None


def same_registers(nodes, place):
    values = []
    for node in nodes:
        node.ask("SELECT", place[0])
        reply = node.call("GET", place[1])
        values.append(registers(reply[1]) if reply[0] == "$" else None)
        node.ask("SELECT", 0)
    return values[0] is not None and all(value == values[0] for value in values)


def compare(nodes, seen, ignored=()):
    """What differs: a list of (place, what each has). nodes: those of whom the pictures are."""
    first = seen[0]
    tolerance = SOON_MS if any(node.kind == "keydb" for node in nodes) else 0
    report = []
    for place in sorted(set().union(*seen)):
        looks = [each.get(place) for each in seen]
        if place in ignored or all(same(first.get(place), look, tolerance) for look in looks):
            continue
        if all(look is not None and look.kind == b"string" and same_deadline(look, looks[0], tolerance)
               for look in looks) and same_registers(nodes, place):
            continue
        report.append((place, [(node.name, look, content(node, place, look)) for node, look in zip(nodes, looks)]))
    return report


def same_deadline(one, other, tolerance):
    if (one.deadline < 0) != (other.deadline < 0):
        return False
    return abs(one.deadline - other.deadline) <= tolerance


def same(one, other, tolerance):
    if one is None or other is None:
        return one is other
    if tolerance:
        return one.kind == other.kind and one.digest == other.digest and same_deadline(one, other, tolerance)
    return one.value() == other.value() and one.deadline == other.deadline


READ = {b"string": ("GET",), b"list": ("LRANGE", 0, 30), b"set": ("SMEMBERS",), b"hash": ("HGETALL",),
        b"zset": ("ZRANGE", 0, 30, "WITHSCORES"), b"stream": ("XRANGE", "-", "+", "COUNT", "12")}


def content(node, place, look):
    """For people."""
    if look is None:
        return "nothing"
    if look.kind not in READ:
        return repr(look)
    name, *rest = READ[look.kind]
    node.ask("SELECT", place[0])
    reply = node.call(name, place[1], *rest)
    node.ask("SELECT", 0)
    value = plain(reply)
    if look.kind == b"set" and isinstance(value, list):
        value = sorted(value)
    text = repr(value)
    if look.more:
        text += " " + look.more[-200:]
    if look.deadline >= 0:
        text += " until %d" % look.deadline
    return "%s %s" % (look.kind.decode(), text if len(text) < 300 else text[:300] + "... (%s)" % look.digest.decode())


def plain(reply):
    kind, value = reply
    return [plain(each) for each in value] if isinstance(value, list) else value


def readable(report, most=6):
    lines = ["%d keys differ" % len(report)]
    for difference in report[:most]:
        if isinstance(difference, str):
            lines.append("  " + difference)
            continue
        (database, key), looks = difference
        lines.append("  db %d %r" % (database, key))
        for name, _, text in looks:
            lines.append("    %-16s %s" % (name, text))
    return "\n".join(lines)
