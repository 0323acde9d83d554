"""The sending side of a link between nodes, by hand: what a test wants to say, be it right or wrong.

The bytes are those of docs/active-replication.md (The wire), src/active/frame.h and notice.h. A Sender listens; a node
that is told to receive from its port connects, and then the test speaks.
"""
import random
import socket
import time

HELLO, ENTRIES, LARGES, BEAT, WANT, STOP, STOPPED, STATE = range(1, 9)
MAKES = 12
CHANGES = 4         # the version from which on beats say what has changed (src/active/beats.h)
HAS_ORIGIN, HAS_UUID, HAS_PREV, HAS_WALL, HAS_MVCC, HAS_OPS, IS_FLUSH = (1 << bit for bit in range(7))
OVERWRITES, EVICTS, HAS_DB = 1, 2, 4
LARGE_BYTES = 32 << 10
COUNTER_BITS = 14
MASK = (1 << 64) - 1


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def fixed(number):
    return number.to_bytes(8, "little")


def difference(number):
    number &= MASK
    return varint((number << 1 & MASK) ^ (MASK if number >> 63 else 0))


def read_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def uuid_of(number):
    """As uuid_of_id in src/active/uuid.c."""
    upper = (number + 0x9e3779b97f4a7c15) & MASK
    upper = ((upper ^ upper >> 30) * 0xbf58476d1ce4e5b9) & MASK
    upper = ((upper ^ upper >> 27) * 0x94d049bb133111eb) & MASK
    upper ^= upper >> 31
    upper = upper & ~0xf000 | 0x4000
    variant = 3 << 62
    upper = upper & ~variant & MASK | ((number & variant) ^ 2 << 62)
    return upper.to_bytes(8, "big") + (upper ^ number).to_bytes(8, "big")


def uuid_text(uuid):
    digits = uuid.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def vector(stamps, clock):
    return varint(len(stamps)) + b"".join(fixed(origin) + difference(clock - stamp)
                                          for origin, stamp in sorted(stamps.items()))


def ids(numbers):
    return varint(len(numbers)) + b"".join(map(fixed, sorted(numbers)))


def members(rows):
    return varint(len(rows)) + b"".join(fixed(name) + fixed(origin) + varint(starts) for name, origin, starts in rows)


def frame(kind, body, larges=b""):
    return bytes([kind]) + varint(len(body)) + body + larges


def now_stamp():
    return int(time.time() * 1000) << COUNTER_BITS


class Sender:
    def __init__(self, name=None, origin=None):
        self.name = name or random.getrandbits(60) + 1
        self.origin = origin or random.getrandbits(60) + 1
        self.last = 0       # the stamp of its last entry, or what it has promised
        self.sequence = 0
        self.changes = None     # on links whose beats say what has changed: how many this one had
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.socket = None
        self.inbox = b""

    def close(self):
        for each in (self.socket, self.listener):
            if each is not None:
                each.close()

    # ---- the begin of a link

    def accept(self, seconds=30):
        if self.socket is not None:
            self.socket.close()
        self.listener.settimeout(seconds)
        self.socket, _ = self.listener.accept()
        self.socket.settimeout(seconds)
        self.inbox = b""

    def more(self):
        got = self.socket.recv(65536)
        if not got:
            raise EOFError
        self.inbox += got

    def line(self):
        while b"\r\n" not in self.inbox:
            self.more()
        line, self.inbox = self.inbox.split(b"\r\n", 1)
        return line

    def command(self):
        words = []
        for _ in range(int(self.line()[1:])):
            size = int(self.line()[1:])
            while len(self.inbox) < size + 2:
                self.more()
            words.append(self.inbox[:size])
            self.inbox = self.inbox[size + 2:]
        return words

    def handshake(self, capa=b"+OK active-replica one-order"):
        """Answers up to REPLCONF one-order, or PSYNC, which is returned."""
        answers = {b"capa": capa, b"uuid": b"+" + uuid_text(uuid_of(self.origin)).encode(), b"one-order": b"+ONE-ORDER"}
        while True:
            words = self.command()
            if words[0] == b"PING":
                self.say(b"+PONG\r\n")
                continue
            if words[0] == b"PSYNC":
                return words
            self.say(answers.get(words[1], b"+OK") + b"\r\n")
            if words[1] == b"one-order":
                return words

    def begin(self, **said):
        """A link from its begin to the moment when the node asks for this sender's origin. Gives the stamp behind which
        the node wants it."""
        self.accept()
        self.handshake()
        self.hello(**said)
        while True:
            kind, body = self.read()
            wanted = self.wanted(body) if kind == WANT else {}
            if self.origin in wanted:
                return wanted[self.origin]

    def read(self):
        while True:
            if len(self.inbox) > 1 and (self.inbox[1] < 0x80 or len(self.inbox) > 10):
                size, at = read_varint(self.inbox, 1)
                if len(self.inbox) >= at + size:
                    kind, body = self.inbox[0], self.inbox[at:at + size]
                    self.inbox = self.inbox[at + size:]
                    return kind, body
            self.more()

    @staticmethod
    def wanted(body):
        clock = int.from_bytes(body[:8], "little")
        count, at = read_varint(body, 8)
        stamps = {}
        for _ in range(count):
            origin = int.from_bytes(body[at:at + 8], "little")
            coded, at = read_varint(body, at + 8)
            stamps[origin] = (clock - ((coded >> 1) ^ (MASK if coded & 1 else 0))) & MASK
        return stamps

    # ---- what it says

    def say(self, data):
        self.socket.sendall(data)

    def hello(self, versions=(1, 1), name=None, origin=None, closed=()):
        name, origin, clock = name or self.name, origin or self.origin, now_stamp()
        self.deeds = None
        self.changes = 0 if versions[1] >= CHANGES else None
        stamps = vector({origin: self.last}, clock)
        self.say(frame(HELLO, bytes(versions) + uuid_of(name) + uuid_of(origin) + bytes([1]) + varint(0) +
                       fixed(clock) + members([(name, origin, 0)]) + stamps + stamps + vector({}, clock) +
                       ids(closed) + 3 * ids(())))

    def entry(self, *words, prev=None, stamp=None, overwrites=True, db=0, key=1):
        """The bytes of an entry of one operation, which says all itself, and its large words."""
        stamp = stamp or max(self.last + 1, now_stamp())
        prev = self.last if prev is None else prev
        words = [word if isinstance(word, bytes) else word.encode() for word in words]
        body = bytes([HAS_ORIGIN | HAS_UUID | HAS_PREV | HAS_WALL]) + varint(0) + uuid_of(self.origin) + fixed(prev)
        body += varint(stamp - prev) + difference(0)
        body += bytes([(OVERWRITES if overwrites else 0) | HAS_DB | key << 3]) + varint(db) + varint(len(words))
        for word in words:
            body += varint(len(word)) + (word if len(word) < LARGE_BYTES else b"")
        self.last = max(self.last, stamp)
        return body, b"".join(word for word in words if len(word) >= LARGE_BYTES)

    def send(self, *words, **how):
        body, larges = self.entry(*words, **how)
        self.say(frame(LARGES if larges else ENTRIES, body, larges))

    def send_many(self, rows):
        """Many operations, whose keys are their first arguments, as one entry; no word is large."""
        stamp = max(self.last + 1, now_stamp())
        body = bytes([HAS_ORIGIN | HAS_UUID | HAS_PREV | HAS_WALL | HAS_OPS]) + varint(0) + uuid_of(self.origin)
        body += fixed(self.last) + varint(stamp - self.last) + difference(0) + varint(len(rows))
        for row in rows:
            body += bytes([OVERWRITES | 1 << 3]) + varint(len(row))
            body += b"".join(varint(len(word)) + word.encode() for word in row)
        self.last = stamp
        self.say(frame(ENTRIES, body))

    def beat(self, deeds=None, ahead_ms=0, closed=(), removed=()):
        clock = max(now_stamp(), self.last) + (ahead_ms << COUNTER_BITS)
        if self.changes is not None:
            self.beat_of_changes(max(clock, self.last + 1), deeds or self.last)
            return
        mine = vector({self.origin: clock}, clock)
        self.sequence += 1
        known = members([(self.name, self.origin, 0)])
        word = (fixed(self.name) + fixed(self.origin) + varint(0) + varint(self.sequence) +
                varint(clock >> COUNTER_BITS) + difference(clock) + mine + vector({}, clock) + ids(()) + known)
        self.say(frame(BEAT, fixed(clock) + mine + vector({self.origin: deeds or self.last}, clock) + mine + known +
                       ids(closed) + ids(removed) + varint(1) + word))
        self.last = clock

    def beat_of_changes(self, clock, deeds, gone=(), again=False):
        """gone: what is not in the vector any more. again: its word is that of the beat before."""
        self.sequence += not again
        known = bytes([1]) + members([(self.name, self.origin, 0)]) if self.changes == 0 else bytes([0])
        mine, nothing = vector({self.origin: clock}, clock) + ids(()), ids(()) + ids(())
        self.changes += 1
        word = fixed(self.name) + bytes([not again])
        if not again:
            word += (fixed(self.origin) + varint(0) + varint(self.sequence) + varint(clock >> COUNTER_BITS) +
                     difference(clock) + mine + nothing + nothing + known)
        self.say(frame(BEAT, fixed(clock) + vector({self.origin: clock}, clock) + ids(gone) +
                       vector({self.origin: deeds} if deeds != self.deeds else {}, clock) + ids(()) + mine + known +
                       nothing + nothing + varint(1) + word))
        self.last, self.deeds = clock, deeds

    def is_closed(self, seconds=30):
        """Reads until the node has closed the connection; False: it has not."""
        self.socket.settimeout(seconds)
        try:
            while self.socket.recv(65536):
                pass
            return True
        except socket.timeout:
            return False
        except OSError:
            return True
