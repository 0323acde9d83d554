"""A node that is not there: speaks frames (src/active/frame.h, notice.h) as the receiver of a link does.

    link = Link(port)                    # handshake, up to +ONE-ORDER
    hello = link.greet()                 # both say hello
    link.want({hello.origin: 0})
    entry = link.entry()                 # the next one; beats that come before it are in link.beats
"""
import random
import socket
import struct
import time

from sender import uuid_of

HELLO, ENTRIES, LARGES, BEAT, WANT, STOP, STOPPED, STATE = range(1, 9)
MAKES = 12
CHANGES = 4     # the version from which on beats say what has changed
NAMES = {HELLO: "hello", ENTRIES: "entries", LARGES: "larges", BEAT: "beat", WANT: "want", STOP: "stop",
         STOPPED: "stopped", STATE: "state", MAKES: "makes"}
HAS_ORIGIN, HAS_UUID, HAS_PREV, HAS_WALL, HAS_MVCC, HAS_OPS, IS_FLUSH = (1 << i for i in range(7))
OP_OVERWRITES, OP_EVICTS, OP_DB = 1, 2, 4
LARGE_BYTES = 32 << 10
COUNTER_BITS = 14
MASK = (1 << 64) - 1


class Closed(Exception):
    """The server has closed the link."""


def uuid_id(uuid):
    high, low = struct.unpack(">QQ", uuid)
    return high ^ low


def random_uuid():
    """As nodes make them; others are of servers of other kinds, whose ids have their highest bit."""
    return uuid_of(random.randrange(1, 1 << 63))


def uuid_text(uuid):
    text = uuid.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


# --------------------------------------------------------------------------------------------------------- writing --

def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def fixed(number):
    return struct.pack("<Q", number)


def difference(number, base):
    delta = (number - base) & MASK
    return varint((delta << 1 ^ (MASK if delta >> 63 else 0)) & MASK)


def vector_bytes(vector, clock):
    return varint(len(vector)) + b"".join(fixed(one) + difference(clock, vector[one]) for one in sorted(vector))


def set_bytes(items):
    return varint(len(items)) + b"".join(fixed(one) for one in sorted(items))


def frame_bytes(kind, body):
    return bytes([kind]) + varint(len(body)) + body


# --------------------------------------------------------------------------------------------------------- reading --

class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        if self.at + size > len(self.data):
            raise ValueError("a body ends too early")
        self.at += size
        return self.data[self.at - size:self.at]

    def byte(self):
        return self.take(1)[0]

    def fixed(self):
        return struct.unpack("<Q", self.take(8))[0]

    def varint(self):
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return number

    def difference(self, base):
        coded = self.varint()
        return (base + (coded >> 1 ^ (MASK if coded & 1 else 0))) & MASK

    def vector(self, clock):
        found = {}
        for _ in range(self.varint()):
            one = self.fixed()
            coded = self.varint()
            found[one] = (clock - (coded >> 1 ^ (MASK if coded & 1 else 0))) & MASK
        return found

    def set(self):
        return {self.fixed() for _ in range(self.varint())}

    def members(self):
        return [(self.fixed(), self.fixed(), self.varint()) for _ in range(self.varint())]

    def end(self):
        assert self.at == len(self.data), "a body has %d bytes too many" % (len(self.data) - self.at)


class Hello:
    def __init__(self, body):
        cursor = Cursor(body)
        self.versions = cursor.byte(), cursor.byte()
        self.uuid = cursor.take(16)     # of its name
        self.name, self.origin = uuid_id(self.uuid), uuid_id(cursor.take(16))
        self.ready, self.incarnation, self.clock = cursor.byte(), cursor.varint(), cursor.fixed()
        self.members = cursor.members()
        self.vector, self.deeds, self.cut = (cursor.vector(self.clock) for _ in range(3))
        self.closed, self.removed, self.former, self.wanted = (cursor.set() for _ in range(4))
        cursor.end()


class Beat:
    """before: the one before on a link that says only what has changed (src/active/beats.h); without, of any other."""

    def __init__(self, body, before=None):
        self.cursor, self.before = Cursor(body), before
        if before is not None:
            self.changes()
        else:
            self.whole()
        self.cursor.end()
        self.bytes = len(body)

    def whole(self):
        cursor = self.cursor
        self.clock = cursor.fixed()
        self.vector, self.deeds, self.offers = (cursor.vector(self.clock) for _ in range(3))
        self.members, self.closed, self.removed = cursor.members(), cursor.set(), cursor.set()
        self.words = [self.word(cursor) for _ in range(cursor.varint())]

    def changes(self):
        cursor, before = self.cursor, self.before
        self.clock = cursor.fixed()
        self.vector, self.deeds, self.offers = (self.changed(getattr(before, name, {}))
                                                for name in ("vector", "deeds", "offers"))
        self.members = self.changed_members(getattr(before, "members", []))
        self.closed, self.removed = (self.changed_set(getattr(before, name, set())) for name in ("closed", "removed"))
        old, self.words = {word["name"]: word for word in getattr(before, "words", [])}, []
        for _ in range(cursor.varint()):
            name = cursor.fixed()
            self.words.append(self.changed_word(name, old.get(name, {})) if cursor.byte() else old[name])

    def changed(self, old):
        new = {**old, **self.cursor.vector(self.clock)}
        for one in self.cursor.set():
            del new[one]
        return new

    def changed_set(self, old):
        return (old | self.cursor.set()) - self.cursor.set()

    def changed_members(self, old):
        return self.cursor.members() if self.cursor.byte() else old

    def changed_word(self, name, old):
        cursor = self.cursor
        word = {"name": name, "origin": cursor.fixed(), "incarnation": cursor.varint(), "sequence": cursor.varint(),
                "wall": cursor.varint(), "frontier": cursor.difference(self.clock)}
        word["vector"], word["saved"] = self.changed(old.get("vector", {})), self.changed(old.get("saved", {}))
        word["closed"] = self.changed_set(old.get("closed", set()))
        word["members"] = self.changed_members(old.get("members", []))
        return word

    def word(self, cursor):
        word = {"name": cursor.fixed(), "origin": cursor.fixed(), "incarnation": cursor.varint(),
                "sequence": cursor.varint(), "wall": cursor.varint(), "frontier": cursor.difference(self.clock)}
        word["vector"], word["saved"] = cursor.vector(self.clock), cursor.vector(self.clock)
        word["closed"], word["members"] = cursor.set(), cursor.members()
        return word


class Op:
    def __init__(self):
        self.key_index = self.db = 0
        self.overwrites = self.evicts = False
        self.words = []


class Entry:
    def __init__(self):
        self.origin = self.stamp = self.prev = self.wall = self.mvcc = 0
        self.flush = False
        self.ops = []

    def words(self):
        return [op.words for op in self.ops]


# ------------------------------------------------------------------------------------------------------------ link --

class Link:
    def __init__(self, port, uuid=None, timeout=30, begin=True):
        self.uuid = uuid or random_uuid()
        self.name = random_uuid()
        self.origin = uuid_id(self.uuid)
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.settimeout(timeout)
        self.data, self.received = bytearray(), 0
        self.numbers, self.uuids = {}, {}   # of origins: [id, stamp, wall]
        self.entries, self.beats, self.stopped, self.states = [], [], [], []
        self.makes = 0
        self.hello = None
        self.version = 1
        if begin:
            assert self.say("REPLCONF", "capa", "activeExpire", "capa", "one-order") == \
                b"+OK active-replica one-order"
            assert self.say("REPLCONF", "one-order", uuid_text(self.uuid)) == b"+ONE-ORDER"

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def say(self, *words):
        self.sock.sendall(b"*%d\r\n" % len(words) +
                          b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words))
        while b"\r\n" not in self.data:
            self.receive()
        line, _, rest = bytes(self.data).partition(b"\r\n")
        self.data = bytearray(rest)
        return line

    def receive(self):
        try:
            more = self.sock.recv(1 << 20)
        except ConnectionResetError:
            more = b""
        if not more:
            raise Closed()
        self.data += more
        self.received += len(more)

    def send(self, data):
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass    # the next receive tells

    # --- what a receiver says ---

    def hello_body(self, vector=None, deeds=None, wanted=(), name=None, origin=None, versions=(1, 1), ready=1,
                   closed=()):
        clock = int(time.time() * 1000) << COUNTER_BITS
        vector = vector or {}
        return (bytes(versions) + (name or self.name) + (origin or self.uuid) + bytes([ready]) + varint(1) +
                fixed(clock) + varint(0) + vector_bytes(vector, clock) +
                vector_bytes(vector if deeds is None else deeds, clock) + vector_bytes({}, clock) +
                set_bytes(closed) + set_bytes(()) + set_bytes(()) + set_bytes(wanted))

    def greet(self, **said):
        self.version = said.get("versions", (1, 1))[1]
        self.send(frame_bytes(HELLO, self.hello_body(**said)))
        while self.hello is None:
            self.step()
        self.want({})   # alive: with that it is a member, and gets what it wants
        return self.hello

    def want(self, wanted):
        clock = int(time.time() * 1000) << COUNTER_BITS
        self.send(frame_bytes(WANT, fixed(clock) + vector_bytes(wanted, clock)))

    def stop(self, origins):
        self.send(frame_bytes(STOP, set_bytes(origins)))

    # --- what the sender says ---

    def frame(self):
        """The next one: its kind, its body, and its large words."""
        while True:
            found = self.take_frame()
            if found is not None:
                return found
            self.receive()

    def take_frame(self):
        cursor = Cursor(self.data)
        try:
            kind, size = cursor.byte(), cursor.varint()
            body = bytes(cursor.take(size))
        except ValueError:
            return None
        larges = []
        if kind == LARGES:
            for size in self.large_sizes(body):
                try:
                    larges.append(bytes(cursor.take(size)))
                except ValueError:
                    return None
        del self.data[:cursor.at]
        return kind, body, larges

    def large_sizes(self, body):
        sizes = []
        self.read_entries(body, None, sizes)
        return sizes

    def read_entries(self, body, larges, sizes=None):
        cursor, found, number, db = Cursor(body), [], None, 0
        numbers = {one: list(state) for one, state in self.numbers.items()}
        while cursor.at < len(body):
            head, entry = cursor.byte(), Entry()
            assert head < 1 << 7
            if head & HAS_ORIGIN:
                number = cursor.varint()
            if head & HAS_UUID:
                numbers[number] = [uuid_id(cursor.take(16)), 0, 0]
            origin = numbers[number]
            entry.origin = origin[0]
            entry.prev = cursor.fixed() if head & HAS_PREV else origin[1]
            entry.stamp = entry.prev + cursor.varint()
            if head & HAS_PREV:
                entry.wall = cursor.difference(entry.stamp >> COUNTER_BITS)
            else:
                entry.wall = origin[2] + (cursor.varint() if head & HAS_WALL else 0)
            entry.mvcc = cursor.fixed() if head & HAS_MVCC else 0
            entry.flush = bool(head & IS_FLUSH)
            origin[1:] = entry.stamp, entry.wall
            for _ in range(cursor.varint() if head & HAS_OPS else 1):
                op, flags = Op(), cursor.byte()
                if flags & OP_DB:
                    db = cursor.varint()
                op.db, op.key_index = db, flags >> 3
                op.overwrites, op.evicts = bool(flags & OP_OVERWRITES), bool(flags & OP_EVICTS)
                if op.evicts:
                    cursor.varint()
                for _ in range(cursor.varint()):
                    size = cursor.varint()
                    if size < LARGE_BYTES:
                        op.words.append(bytes(cursor.take(size)))
                    elif larges is None:
                        sizes.append(size)
                    else:
                        op.words.append(larges.pop(0))
                entry.ops.append(op)
            found.append(entry)
        if larges is not None:
            self.numbers = numbers
        return found

    def step(self):
        kind, body, larges = self.frame()
        if kind == HELLO:
            assert self.hello is None, "a second hello"
            self.hello = Hello(body)
        elif kind in (ENTRIES, LARGES):
            self.entries += self.read_entries(body, larges)
        elif kind == BEAT:
            beat = Beat(body, (self.beats[-1] if self.beats else object()) if self.version >= CHANGES else None)
            beat.behind = len(self.entries)
            self.beats.append(beat)
        elif kind == STOPPED:
            self.stopped += [origins for origins in [Cursor(body).set()] if origins]    # an empty one: it streams
        elif kind == STATE:
            self.states.append(body)
        elif kind == MAKES:
            assert not body
            self.makes += 1
        else:
            raise AssertionError("a sender does not say %s" % NAMES.get(kind, kind))
        return kind

    def until(self, is_there, seconds=30):
        end = time.monotonic() + seconds
        alive = time.monotonic() + 1
        while not is_there():
            assert time.monotonic() < end, "it did not come"
            if time.monotonic() > alive:
                self.want({})
                alive += 1
            self.step()

    def until_entries(self, count, seconds=30):
        self.until(lambda: len(self.entries) >= count, seconds)

    def until_beat(self, count=1):
        there = len(self.beats)
        self.until(lambda: len(self.beats) >= there + count)

    def until_closed(self):
        """What was said was wrong."""
        try:
            while True:
                self.step()
        except Closed:
            return
