"""The ordered union of what all nodes did, and what one server holds that does the same in that order.

Our nodes tell their operations by DEBUG OPERATIONS: those of peers, too, with origin, stamp and wall time. A KeyDB node
is listened to as one of its replicas: its envelopes tell the uuid of the origin and its time stamp, which order them.

Each stamp of an origin is an entry. Every node has to tell the same of it, and no node may tell it twice.

The union is replayed into redis-server, and into ours by DEBUG OPERATE, which runs each operation at its wall time.
Where redis-server cannot do what an operation says, the key is not compared with it (counted): entries of streams that
come in behind younger ones, deadlines of members, and what KeyDB has more.
"""
import socket
import threading
import time
import uuid

import mesh as meshes
import picture as pictures
from group import Wrong
from harness import Incomplete, Lost, encode, parse
from operations import plain

NOT_DATA = {b"MULTI", b"EXEC", b"PUBLISH", b"SPUBLISH", b"PING", b"REPLCONF", b"SCRIPT"}
OVERWRITES = {b"SET", b"DEL", b"UNLINK", b"RESTORE"}
FLUSHES = {b"FLUSHALL", b"FLUSHDB"}
DELIVERIES = {b"XCLAIM", b"KEYDB.OP.DELIVER"}
AHEAD_S = 10    # more than an identity file reserves
MEMBER_DEADLINE = b"keydb-subexpire"    # in a payload
BATCH = 500
FREED_S = 6     # members that have expired are in a digest until they are freed; wall times may be seconds ahead
UNSIGNED = (1 << 64) - 1


def key_of(words):
    """Empty: it is of no key."""
    return b"".join(words[2:3] if words[0].upper() == b"XGROUP" else words[1:2])


class Entry:
    def __init__(self, origin, stamp, wall):
        self.origin, self.stamp, self.wall = origin, stamp, wall
        self.operations = []        # of (database, words)
        self.seen_by = {}           # node -> its start, in which it was told

    def place(self):
        """A flush stands before all others of its stamp: databases remember the stamp only."""
        return (self.stamp, not any(words[0].upper() in FLUSHES for _, words in self.operations), self.origin)

    def __repr__(self):
        return "%d.%x at %d: %s" % (self.stamp, self.origin, self.wall, "; ".join(
            "%d %s" % (database, meshes.show(words)) for database, words in self.operations))


class Union:
    def __init__(self, mesh):
        self.mesh = mesh
        self.entries = {}
        self.problems = []
        self.last = {}              # (node, its start, origin) -> the last stamp told
        self.listeners = {node.index: Listener(node) for node in mesh.nodes if node.kind == "keydb"}

    # ---- reading

    def read(self, nodes=None):
        """What has been done since the last call. A node that is killed takes with it what it has not told anybody."""
        for node in self.mesh.running() if nodes is None else nodes:
            if node.kind == "keydb":
                for origin, stamp, database, words in self.listeners[node.index].take():
                    self.note(node, origin, stamp, 0, [(database, words)])
            elif node.active:
                self.read_ours(node)
        return self

    def read_ours(self, node):
        reply = node.call("DEBUG", "OPERATIONS", "READ")
        if reply[0] != "*":
            raise Wrong("%s: DEBUG OPERATIONS READ: %r" % (node.name, reply))
        place, operations, wall = None, [], 0
        for record in reply[1]:
            database, flags, raw, origin, stamp, at = (each[1] for each in record[1])
            words = [word[1] for word in parse(raw, 0)[0][1]]
            if words[0].upper() in NOT_DATA:
                continue
            here = (int(origin) & UNSIGNED, int(stamp))
            if here[1] == 0:
                self.problems.append("%s: without a stamp: %s" % (node.name, meshes.show(words)))
                continue
            if here != place:
                if place:
                    self.note(node, *place, wall, operations)
                place, operations, wall = here, [], int(at)
            operations.append((int(database), words))
        if place:
            self.note(node, *place, wall, operations)

    def note(self, node, origin, stamp, wall, operations):
        # Those of one key stay in their order; nodes hand them on key by key.
        operations = sorted(operations, key=lambda one: (one[0], key_of(one[1])))
        entry = self.entries.get((origin, stamp))
        if entry is None:
            entry = self.entries[origin, stamp] = Entry(origin, stamp, wall)
            entry.operations = operations
        elif entry.operations != operations or wall and entry.wall != wall:
            self.problems.append("%s tells at %d %r of the entry %r" % (node.name, wall, operations, entry))
        if entry.seen_by.get(node.index) == node.starts:
            self.problems.append("%s has it twice: %r" % (node.name, entry))
        entry.seen_by[node.index] = node.starts
        before = self.last.get((node.index, node.starts, origin), 0)
        if before > stamp:
            self.problems.append("%s tells it behind %d: %r" % (node.name, before, entry))
        self.last[node.index, node.starts, origin] = max(before, stamp)

    def forget_what_died(self):
        """Entries that only a node told which has been started again since, or whose disk is gone: those that were not
        lost came back from it, and others tell them, too. The nodes are at rest. Gives what was forgotten."""
        gone = [entry for entry in self.entries.values() if len(entry.seen_by) == 1 and all(
            self.mesh.nodes[index].starts > start for index, start in entry.seen_by.items())]
        for entry in gone:
            del self.entries[entry.origin, entry.stamp]
        return gone

    def ordered(self):
        return sorted(self.entries.values(), key=Entry.place)

    def count(self):
        return sum(len(entry.operations) for entry in self.entries.values())

    def history(self, key, most=30):
        """For people: what happened to a key."""
        lines = [repr(entry) for entry in self.ordered()
                 if any(key in words or words[0].upper() in FLUSHES for _, words in entry.operations)]
        return lines[-most:]

    # ---- replaying

    def wait_for_deliveries(self):
        """XCLAIM of a time to come takes redis-server's own. A node that has just been started may be some seconds
        ahead, as it begins above all times that the start before may have used."""
        last = max((entry.wall or 0 for entry in self.entries.values()
                    if any(words[0].upper() in DELIVERIES for _, words in entry.operations)), default=0)
        until = min(last / 1000, time.time() + AHEAD_S)
        while time.time() <= until:
            time.sleep(0.05)

    def replay_into_redis(self, node):
        """Gives the places that are not to be compared."""
        self.wait_for_deliveries()
        strange = set()
        batch = []
        selected = 0

        def flush():
            replies = node.calls([words for _, words in batch])
            for (place, words), reply in zip(batch, replies):
                if place is None or reply[0] != "-":
                    continue
                if reply[1].startswith((b"ERR unknown command", b"ERR The ID specified", b"ERR syntax error",
                                        b"ERR Unknown", b"ERR wrong number", b"ERR DUMP payload", b"ERR Bad data")):
                    strange.add(place)
            batch.clear()

        for entry in self.ordered():
            for database, words in entry.operations:
                name = words[0].upper()
                place = (database, key_of(words)) if len(words) > 1 else None
                if name in OVERWRITES or name in FLUSHES:
                    if batch:
                        flush()
                    if name == b"FLUSHALL":
                        strange.clear()
                    elif name == b"FLUSHDB":
                        strange = {each for each in strange if each[0] != database}
                    elif not any(word.upper() == b"KEEPTTL" for word in words[3:]):
                        strange.difference_update((database, key) for key in (
                            words[1:] if name in (b"DEL", b"UNLINK") else words[1:2]))
                    if name == b"RESTORE" and MEMBER_DEADLINE in words[3]:
                        strange.add(place)      # it is read, but the deadline does not count there
                if database != selected:
                    batch.append((None, [b"SELECT", b"%d" % database]))
                    selected = database
                batch += [(place, each) for each in plain(words)]
                if len(batch) >= BATCH:
                    flush()
        flush()
        node.ask("SELECT", 0)
        return strange

    def replay_into_ours(self, node):
        batch = []
        for entry in self.ordered():
            for database, words in entry.operations:
                batch.append([b"DEBUG", b"OPERATE", b"%d" % (entry.wall or 1), b"%d" % database, *words])
                if len(batch) >= BATCH:
                    node.calls(batch)
                    batch = []
        node.calls(batch)
        return set()

    def check(self, kind="redis", soon=False):
        """Wrong, if the nodes do not hold what one server of this kind holds that has done all. The nodes are at rest
        and equal. soon: there are deadlines that have passed, which only ours treats as they were then. Gives how many
        keys were compared and how many were not."""
        self.read()
        if self.problems:
            raise Wrong("%d problems with what nodes tell of their operations, as\n  %s" % (
                len(self.problems), "\n  ".join(each[:600] for each in self.problems[:5])))
        options = ["--proto-max-bulk-len", "512mb"]
        oracle = meshes.Node(self.mesh.kinds, kind, 99, options, active=False)
        try:
            strange = (self.replay_into_redis if kind == "redis" else self.replay_into_ours)(oracle)
            if soon and kind == "redis":
                return 0, 0
            node = next(node for node in self.mesh.running() if node.active)
            counted = kind == "ours"
            until = time.monotonic() + FREED_S
            while True:
                seen = [pictures.take(node, counted), pictures.take(oracle, counted)]
                report = pictures.compare([node, oracle], seen, strange)
                if not report or time.monotonic() > until:
                    break
                time.sleep(0.1)
            if report:
                lines = ["not what one server holds: " + pictures.readable(report)]
                for (database, key), _ in report[:2]:
                    lines.append("  history of db %d %r:" % (database, key))
                    lines += ["    " + line[:300] for line in self.history(key)]
                raise Wrong("\n".join(lines))
            return len(set(seen[0]) - strange), len(set(seen[0]) & strange)
        except (Lost, OSError):
            if oracle.complaint():
                raise Wrong("while it replays: %s" % oracle.complaint()) from None
            raise
        finally:
            oracle.stop()

    def stop(self):
        for listener in self.listeners.values():
            listener.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Listener:
    """A replica of a KeyDB node that keeps nothing but the envelopes. Opened before anything is written."""

    def __init__(self, node):
        self.node = node
        self.found, self.lock = [], threading.Lock()
        self.over = threading.Event()
        self.ready = threading.Event()
        self.uuid = str(uuid.uuid4())
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        if not self.ready.wait(30):
            raise Wrong("%s gives no stream" % node.name)

    def run(self):
        while not self.over.is_set():
            try:
                self.listen()
            except (OSError, Lost):
                time.sleep(0.05)

    def listen(self):
        self.sock = socket.create_connection(("127.0.0.1", self.node.port), 5)
        self.data = bytearray()
        with self.sock:
            for words in (["PING"], ["REPLCONF", "listening-port", "1"],
                          ["REPLCONF", "capa", "psync2", "capa", "activeExpire"], ["REPLCONF", "uuid", self.uuid]):
                self.sock.sendall(encode(words))
                self.line()
            self.sock.sendall(encode(["PSYNC", "?", "-1"]))
            line = self.line()
            while not line.startswith(b"+FULLRESYNC"):
                if line.startswith(b"-"):
                    raise Lost(line.decode())
                line = self.line()
            line = self.line()
            while not line.startswith(b"$"):
                line = self.line()
            self.skip(int(line[1:]))
            self.ready.set()
            self.follow()

    def line(self):
        while b"\n" not in self.data:
            self.receive()
        line, _, rest = bytes(self.data).partition(b"\n")
        self.data = bytearray(rest)
        return line.rstrip(b"\r")

    def skip(self, size):
        while len(self.data) < size:
            self.receive()
        del self.data[:size]

    def receive(self):
        piece = self.sock.recv(1 << 18)
        if not piece:
            raise Lost("closed")
        self.data += piece

    def follow(self):
        self.sock.settimeout(0.2)
        offset, said = 0, 0.0
        while not self.over.is_set():
            at = 0
            try:
                while True:
                    reply, end = parse(self.data, at)
                    offset += end - at
                    at = end
                    self.take_envelope([each[1] for each in reply[1]])
            except Incomplete:
                pass
            del self.data[:at]
            if time.monotonic() - said > 0.5:
                self.sock.sendall(encode(["REPLCONF", "ACK", offset]))
                said = time.monotonic()
            try:
                self.receive()
            except socket.timeout:
                continue

    def take_envelope(self, words):
        if words[0].upper() != b"RREPLAY":
            return
        if len(words) < 5:
            return
        origin, payload, database, stamp = words[1:5]
        inner = [each[1] for each in parse(bytearray(payload), 0)[0][1]]
        if inner[0].upper() == b"RREPLAY":
            return self.take_envelope(inner)
        if inner[0].upper() in NOT_DATA:
            return None
        with self.lock:
            self.found.append((uuid.UUID(origin.decode()).int, int(stamp), int(database), inner))
        return None

    def take(self):
        """What the node itself did and passed on: each once, in the order of its stream."""
        with self.lock:
            found, self.found = self.found, []
        return found

    def stop(self):
        self.over.set()
        self.thread.join(5)
