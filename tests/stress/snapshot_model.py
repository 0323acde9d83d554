#!/usr/bin/env python3
"""A snapshot is the state at its moment: its contents are compared with a replay of the journal up to its offset.

    snapshot_model.py --server BIN [--snapshots N] [--seconds N] [--seed N] [--workers N]
                      [--method default|threads|fork] [--large] [--evict [POLICY]] [--preamble yes|no]
                      [--kinds save,sync,rewrite] [--memory-limit BYTES] [--inject later] [--keep FOLDER] [--go-on]

Clients write to a server as snapshot_writers.py says. One connection of ours is a replica: it gets a snapshot and the
stream of all writes behind it. Meanwhile the server makes snapshots, one behind the other:

save     BGSAVE. The file says at which offset of the stream the data is, as a replica is attached
sync     a full sync with another replica of ours, diskless or from a file, which is told the offset
rewrite  BGREWRITEAOF. Its base has no offset: clients rest when it has ended, and what base and journal together give
         is compared with the state at that time

Two more servers hold what is compared. One of them replays the stream, from offset to offset. The other one loads each
snapshot. Their clocks stand (preload/held.c), a day ago: nothing expires there by itself, so only what the stream and
the snapshot say counts. But for XCLAIM, which takes no time in the future, the clock of the replay is put to the time
of the command: that expires nothing that the master had not expired. Compared are the digests of all hash slots (DEBUG
DIGEST-SLOT), which have all values, deadlines of keys and of members, groups of streams and jobs; and the libraries of
functions.

In the end the last snapshot is compared with the state a few writes later, which has to differ. --inject later does so
with each one, so that the test is seen to fail. Of a difference keys, values and offsets are printed, and the snapshot,
the one before it and the stream between both are kept in --keep. The last line counts snapshots.
"""
import argparse
import mmap
import multiprocessing
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(TOP, "tests", "replication"))

from group import Lost, Member, Wrong, wait_until       # noqa: E402
from harness import Connection, encode      # noqa: E402
from snapshot_writers import DATABASES, Mix     # noqa: E402

WRITERS = 4
SLOTS = "0-16383"
SILENT = encode(["CLIENT", "REPLY", "OFF"])
STREAM_MOST = 512 << 20     # bytes that are kept of the stream, not replayed yet
STREAM_MUCH = 8 << 20       # beyond this, writers stop for a while
CHUNK = 1 << 18
EVICT_TO = 0.85     # so much of the data is left by eviction, while every other snapshot is made
SHOWN_KEYS = 5
SHOWN_BYTES = 400
DELAYS_US = (0, 0, 20, 100, 300)    # rdb-key-save-delay: so that small snapshots take a while, too
READ_VALUE = {b"string": ["GET"], b"list": ["LRANGE", 0, -1], b"set": ["SMEMBERS"],
              b"zset": ["ZRANGE", 0, -1, "WITHSCORES"], b"hash": ["HGETALL"], b"stream": ["XINFO", "STREAM", "FULL"]}


# ------------------------------------------------------------------------------------------------------------ clients


def write(port, number, options, shared):
    """A process of its own, until it is told to end."""
    pause, brake, end, rests, sent, errors = shared
    mix = Mix("%d/%d" % (options.seed, number), options.large, options.flush_every)
    connection = Connection(port)
    batches = [mix.fill_large()] if number == 0 else []
    due = time.monotonic()
    while not end.is_set():
        if pause.is_set():
            rests[number] = 1
            while pause.is_set() and not end.is_set():
                time.sleep(0.002)
            rests[number] = 0
        if brake.is_set():
            time.sleep(0.002)
            continue
        commands = batches.pop() if batches else mix.batch()
        due = max(due + len(commands) * WRITERS / options.rate, time.monotonic() - 0.1)
        time.sleep(max(0, due - time.monotonic()))
        if commands:
            replies = connection.exchange(b"".join(map(encode, commands)), len(commands))
            sent[number] += len(commands)
            errors[number] += sum(reply[0] == "-" for reply in replies)
    connection.close()


class Writers:
    def __init__(self, port, options):
        self.pause_event, self.brake, self.end_event = (multiprocessing.Event() for _ in range(3))
        self.rests, self.sent, self.errors = (multiprocessing.Array("q", WRITERS, lock=False) for _ in range(3))
        shared = (self.pause_event, self.brake, self.end_event, self.rests, self.sent, self.errors)
        self.processes = [multiprocessing.Process(target=write, args=(port, number, options, shared), daemon=True)
                          for number in range(WRITERS)]
        for process in self.processes:
            process.start()

    def look(self):
        if any(process.exitcode is not None for process in self.processes):
            raise Wrong("a writer has ended")

    def pause(self):
        self.pause_event.set()
        wait_until(lambda: self.look() or sum(self.rests) == WRITERS, 60, "the writers rest")

    def resume(self):
        self.pause_event.clear()

    def end(self):
        self.end_event.set()
        for process in self.processes:
            process.join(30)
            if process.exitcode is None:
                process.kill()


# ------------------------------------------------------------------------------------------------------- replica links


class Link:
    """The connection of a replica that wants everything; the snapshot goes into a file."""

    def __init__(self, port, timeout=60):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout)
        self.data = b""
        for words in (["PING"], ["REPLCONF", "listening-port", 1], ["REPLCONF", "capa", "eof", "capa", "psync2", "capa",
                                                                   "rdb-newest"]):
            self.sock.sendall(encode(words))
            line = self.line()
            if not line.startswith(b"+"):
                raise Lost("%s: %s" % (words, line))
        self.sock.sendall(encode(["PSYNC", "?", -1]))
        words = self.line().split()
        if words[0] != b"+FULLRESYNC":
            raise Lost("PSYNC: %s" % words)
        self.id, self.offset = words[1].decode(), int(words[2])

    def more(self):
        data = self.sock.recv(CHUNK)
        if not data:
            raise Lost("the master has closed the link")
        self.data += data

    def line(self):
        while True:
            while b"\n" not in self.data:
                self.more()
            line, _, self.data = self.data.partition(b"\n")
            if line.strip():    # empty ones keep the link alive
                return line.strip()

    def take(self, path):
        """The snapshot; what follows it stays in self.data."""
        head = self.line()
        with open(path, "wb") as file:
            if head.startswith(b"$EOF:"):
                mark = head[5:]
                while mark not in self.data:
                    if len(self.data) > len(mark):
                        file.write(self.data[:-len(mark)])
                        self.data = self.data[-len(mark):]
                    self.more()
                rest, _, self.data = self.data.partition(mark)
                file.write(rest)
                return
            left = int(head[1:])
            while left:
                if not self.data:
                    self.more()
                file.write(self.data[:left])
                taken = min(left, len(self.data))
                self.data, left = self.data[taken:], left - taken

    def close(self):
        self.sock.close()


class Stream:
    """All writes of the master behind the snapshot of its first sync; read by a thread."""

    def __init__(self, port, path, brake):
        self.link = Link(port)
        try:
            self.link.take(path)
        except Lost:
            self.link.close()
            raise
        self.brake = brake
        self.id = self.link.id
        self.begin = self.link.offset       # the offset of data[0] is the one behind this
        self.data = bytearray(self.link.data)
        self.lock = threading.Lock()
        self.problem, self.over = None, False
        self.link.sock.settimeout(0.2)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        told = 0
        while not self.over:
            if (len(self.data) > STREAM_MUCH) != self.brake.is_set():
                (self.brake.clear if self.brake.is_set() else self.brake.set)()
            try:
                if len(self.data) > STREAM_MOST:
                    time.sleep(0.05)
                else:
                    data = self.link.sock.recv(CHUNK)
                    if not data:
                        raise Lost("the master has closed the link")
                    with self.lock:
                        self.data += data
            except socket.timeout:
                pass
            except (Lost, OSError) as problem:
                self.problem = problem
                return
            if time.monotonic() - told > 0.5:
                told = time.monotonic()
                self.link.sock.sendall(encode(["REPLCONF", "ACK", self.end()]))

    def end(self):
        return self.begin + len(self.data)

    def wait(self, offset):
        def is_there():
            if self.problem:
                raise Wrong("the stream is lost: %s" % self.problem)
            return self.end() >= offset

        wait_until(is_there, 60, lambda: "the stream is at %d, not at %d" % (self.end(), offset))

    def take(self, offset):
        """The bytes up to this offset."""
        self.wait(offset)
        with self.lock:
            size = offset - self.begin
            taken = bytes(self.data[:size])
            del self.data[:size]
            self.begin = offset
        return taken

    def peek(self):
        with self.lock:
            return bytes(self.data[:1 << 20])

    def close(self):
        self.over = True
        self.thread.join()
        self.link.close()


def commands_of(data):
    """(begin, end, words) of each whole command."""
    at, size = 0, len(data)
    while at < size:
        begin = at
        line = data.find(b"\r\n", at)
        if line < 0:
            return
        words = []
        at, count = line + 2, int(data[at + 1:line])
        for _ in range(count):
            line = data.find(b"\r\n", at)
            if line < 0:
                return
            length = int(data[at + 1:line])
            words.append(data[line + 2:line + 2 + length])
            at = line + 4 + length
            if at > size:
                return
        yield begin, at, words


def units_of(data):
    """(begin, end, commands) of each single command and each transaction. All of it has to be whole."""
    first, unit, whole = 0, [], 0
    for begin, end, words in commands_of(data):
        if not unit:
            first = begin
        unit.append(words)
        if unit[0][0].upper() != b"MULTI" or words[0].upper() == b"EXEC":
            yield first, end, unit
            unit, whole = [], end
    if whole != len(data):
        raise Wrong("the offset is not at the end of a write: %r" % data[whole:][:400])


def first_write(data):
    """How many bytes the first write, or transaction, has, with what stands before it; None: it is not whole."""
    inside = False
    for _, end, words in commands_of(data):
        name = words[0].upper()
        if name == b"MULTI":
            inside = True
        elif name == b"EXEC" or not inside and name not in (b"PING", b"REPLCONF", b"SELECT"):
            return end
    return None


# ------------------------------------------------------------------------------------------------------------- servers


class Held(Member):
    """Its clock stands, see above. It has no limits of its own."""

    def __init__(self, name, options, library, files=None):
        """files: a folder of append-only files, from which it starts. Its clock stands now, then, as files may have
        XCLAIM, too."""
        self.files = files
        self.clock_path = "%s-%s" % (library, name)
        with open(self.clock_path, "wb") as file:
            file.write(bytes(8))
        with open(self.clock_path, "r+b") as file:
            self.clock = mmap.mmap(file.fileno(), 8)
        self.base_ms = int((time.time() - (0 if files else 24 * 3600)) * 1000)
        self.put_clock(self.base_ms)
        given = os.environ.get("ASAN_OPTIONS", "")
        self.environment = {"LD_PRELOAD": library, "HELD_CLOCK": self.clock_path,
                            "ASAN_OPTIONS": "verify_asan_link_order=0:" + given}
        self.feed = None
        super().__init__(name, options.server, ["--proto-max-bulk-len", "1gb"], 1)
        self.ask("DEBUG", "SET-ACTIVE-EXPIRE", 0)

    def start(self, ready=True):
        if self.files:
            shutil.copytree(self.files, os.path.join(self.folder, "appendonlydir"))
            self.options += ["--appendonly", "yes"]
        super().start(ready)

    def put_clock(self, ms):
        struct.pack_into("=q", self.clock, 0, ms)

    def load(self, path):
        target = os.path.join(self.folder, "dump.rdb")
        if os.path.exists(target):
            os.unlink(target)
        os.link(path, target)
        reply = self.call("DEBUG", "RELOAD", "NOSAVE")
        if reply[0] == "-":
            raise Wrong("%s does not load: %s\n%s" % (path, reply[1].decode(), self.log(3000)))

    def errors(self):
        return self.info("errorstats")

    def replay(self, data):
        """Writes as they came; gives them as lists of words."""
        if self.feed is None:
            self.feed = self.connect()
        before, writes, at = self.errors(), [], 0
        self.feed.sock.sendall(SILENT)
        for begin, end, commands in units_of(data):
            name = commands[0][0].upper()
            if name in (b"PING", b"REPLCONF"):
                self.feed.sock.sendall(data[at:begin])
                at = end
                continue
            writes += [(end, words) for words in commands]
            times = [words[words.index(b"TIME") + 1] for words in commands if words[0].upper() == b"XCLAIM"]
            if times:
                self.feed.sock.sendall(data[at:begin])
                self.replay_at(max(map(int, times)), data[begin:end], len(commands))
                at = end
        self.feed.sock.sendall(data[at:])
        self.end_silence()
        after = self.errors()
        if before != after:
            raise Wrong("errors in the replay: %s, before %s" % (after, before))
        return writes

    def replay_at(self, ms, payload, count):
        self.end_silence()
        self.put_clock(ms)
        self.feed.exchange(payload, count)
        self.put_clock(self.base_ms)
        self.feed.sock.sendall(SILENT)

    def end_silence(self):
        if self.feed.command("CLIENT", "REPLY", "ON") != ("+", b"OK"):
            raise Wrong("the replay is out of step")

    def state(self):
        libraries = sorted(map(repr, self.ask("FUNCTION", "LIST", "WITHCODE")))
        return self.ask("DEBUG", "DIGEST-SLOT", SLOTS), libraries

    def digests(self):
        """{(database, key): digest}"""
        found = {}
        for database in range(16):
            self.ask("SELECT", database)
            keys = sorted(key[1] for key in self.ask("KEYS", "*"))
            if keys:
                found.update(zip(((database, key) for key in keys),
                                 (each[1] for each in self.ask("DEBUG", "DIGEST-KEY", *keys))))
        self.ask("SELECT", 0)
        return found

    def value(self, database, key):
        self.ask("SELECT", database)
        kind = self.ask("TYPE", key)
        name, *more = READ_VALUE.get(kind, ["DUMP"])
        words = [name, *more[:1], key, *more[1:]] if name == "XINFO" else [name, key, *more]
        value = self.call(*words)
        if kind in (b"set", b"hash"):
            step = 1 if kind == b"set" else 2
            value = sorted(tuple(each[1] for each in value[1][at:at + step]) for at in range(0, len(value[1]), step))
        text = [kind.decode(), "PEXPIRETIME %s" % self.ask("PEXPIRETIME", key).decode(), repr(value)]
        if kind in (b"hash", b"set", b"zset"):
            names = self.ask(*{b"hash": ["HKEYS", key], b"set": ["SMEMBERS", key],
                               b"zset": ["ZRANGE", key, 0, -1]}[kind])
            ends = [(name[1], self.call("PTTL", key, name[1])[1]) for name in names[:2000]]
            text.append("deadlines of members %s" % sorted(each for each in ends if each[1] not in (b"-1", b"-2")))
        self.ask("SELECT", 0)
        return text


def difference(snapshot, replay, writes):
    """Of two servers whose states differ, in words."""
    one, other = snapshot.digests(), replay.digests()
    differs = sorted(place for place in {**one, **other} if one.get(place) != other.get(place))
    lines = ["%d keys differ, of %d" % (len(differs), len(other))]
    if not differs:
        lines.append("libraries: %s and %s" % (snapshot.state()[1], replay.state()[1]))
    for database, key in differs[:SHOWN_KEYS]:
        lines.append("db %d %r" % (database, key))
        for texts in zip(*(member.value(database, key) for member in (snapshot, replay))):
            same = len(os.path.commonprefix(texts))
            begin = max(0, same - SHOWN_BYTES // 2)
            for member, text in zip((snapshot, replay), texts):
                lines.append("    %s: %s%s" % (member.name, "... " if begin else "", text[begin:begin + SHOWN_BYTES]))
        named = [(end, words) for end, words in writes
                 if key in words[1:] or b"".join(words[1:2]).startswith(key + b".")]
        for end, words in named[-4:]:
            lines.append("    written up to %d: %s" % (end, repr(words)[:SHOWN_BYTES]))
    return "\n  ".join(lines)


# --------------------------------------------------------------------------------------------------------------- a run


class Difference(Wrong):
    """It has been printed."""


class Snapshot:
    def __init__(self, kind, path):
        self.kind, self.path = kind, path
        self.id = self.offset = self.over_at = self.link = self.made = self.reply = None
        self.is_given_up = False


def facts_of(path):
    """The strings in front of the file: {name: value}."""
    with open(path, "rb") as file:
        data = file.read(4096)
    found = {}
    for name in (b"repl-id", b"repl-offset"):
        at = data.find(b"\xfa" + bytes([len(name)]) + name)
        if at >= 0:
            found[name.decode()] = string_at(data, at + 2 + len(name))
    return found


def string_at(data, at):
    """A short string, or a number that is stored as one."""
    first = data[at]
    if first < 0x40:
        return data[at + 1:at + 1 + first].decode()
    size = {0xc0: 1, 0xc1: 2, 0xc2: 4}[first]
    return str(int.from_bytes(data[at + 1:at + 1 + size], "little", signed=True))


class Run:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.random = random.Random("snapshots %d" % options.seed)
        self.members = []
        self.writers = self.stream = None
        self.during = 0         # bytes written while snapshots were made
        self.writes = []        # of the stream, between the last two offsets
        self.passed = self.failed = self.replayed = self.given_up = self.timed = 0
        self.last_good, self.gone = None, "-"
        self.chunk = b""
        self.count = {}

    def begin(self):
        options = self.options
        library = os.path.join(self.folder, "held.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", os.path.join(HERE, "preload", "held.c"), "-o", library],
                       check=True)
        more = ["--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", options.preamble,
                "--min-clients-per-thread", "1", "--client-output-buffer-limit", "replica 0 0 0",
                "--auto-aof-rewrite-percentage", "0"]
        if options.evict:
            more += ["--maxmemory-policy", options.evict]
        self.master = self.add(Member("master", options.server, more, options.workers))
        self.empty_bytes = self.counted_bytes()
        self.choose_method()
        self.writers = Writers(self.master.port, options)
        time.sleep(0.3)
        first = os.path.join(self.folder, "first.rdb")
        self.stream = wait_until(lambda: self.begin_stream(first), 30, "a first sync")
        self.replay = self.add(Held("replay", options, library))
        self.loader = self.add(Held("snapshot", options, library))
        self.library = library
        self.replay.load(first)
        self.last_good = first
        if options.large:   # the writer that fills them is at it
            wait_until(lambda: self.writers.look() or self.writers.sent[0] > 800, 120, "large values are there")

    def begin_stream(self, path):
        """A FLUSHALL may come between, so it is tried again when it was lost."""
        return Stream(self.master.port, path, self.writers.brake)

    def add(self, member):
        self.members.append(member)
        return member

    def choose_method(self):
        """Of a server that knows no methods yet, a child makes all snapshots."""
        method = self.options.method
        reply = self.master.call("CONFIG", "SET", "snapshot-method", "auto" if method == "default" else method)
        self.has_methods = reply[0] != "-"
        if not self.has_methods:
            print("the server has no snapshot-method: %s" % reply[1].decode())
        if not self.has_methods and method == "threads":
            raise Wrong("it cannot make snapshots with threads")
        if self.options.memory_limit and self.has_methods:
            self.master.config(snapshot_memory_limit=self.options.memory_limit)

    def vary(self):
        self.master.call("CONFIG", "SET", "rdb-key-save-delay", self.random.choice(DELAYS_US))
        self.master.call("CONFIG", "SET", "repl-diskless-sync", self.random.choice(("yes", "no")))
        if self.has_methods and self.options.method != "fork":
            self.master.call("CONFIG", "SET", "snapshot-threads", self.random.choice((1, 2, 4)))
        if self.options.evict:
            data = self.counted_bytes() - self.empty_bytes
            limit = self.empty_bytes + int(data * EVICT_TO)
            self.master.config(maxmemory=self.random.choice((0, max(limit, 1 << 20))))

    def counted_bytes(self):
        fields = self.master.info("memory")
        return int(fields["used_memory"]) - int(fields["mem_not_counted_for_evict"])

    # ---- making

    def make(self, kind, number):
        self.vary()
        snapshot = Snapshot(kind, os.path.join(self.folder, "snapshot-%s.rdb" % number))
        if kind == "sync":
            snapshot.link = self.begin_sync()
        else:
            snapshot.made = self.made(kind)
            snapshot.reply = self.master.ask({"save": "BGSAVE", "rewrite": "BGREWRITEAOF"}[kind])
        return snapshot

    def begin_sync(self):
        try:
            return Link(self.master.port)
        except Lost:
            return None

    def made(self, kind):
        """How many have ended well."""
        fields = self.master.info("persistence")
        return int(fields["rdb_saves" if kind == "save" else "aof_rewrites"])

    def has_ended(self, snapshot):
        """Well, or it was given up, as FLUSHALL does. What is scheduled begins when the child of a sync has ended."""
        self.writers.look()
        self.has_failed()
        fields = self.master.info("persistence")
        if self.made(snapshot.kind) != snapshot.made:
            return True
        runs = fields["rdb_bgsave_in_progress" if snapshot.kind == "save" else "aof_rewrite_in_progress"] == "1"
        snapshot.is_given_up = not runs and b"scheduled" not in snapshot.reply and \
            self.made(snapshot.kind) == snapshot.made
        return snapshot.is_given_up

    def finish(self, snapshot):
        """Waits for its end, and gives it its offset."""
        if snapshot.kind == "sync":
            self.finish_sync(snapshot)
        else:
            wait_until(lambda: self.has_ended(snapshot), 120, lambda: "a snapshot (%s) has ended: %s, %s" % (
                snapshot.kind, snapshot.reply, self.master.info("persistence")))
        if snapshot.is_given_up:
            self.given_up += 1
            return
        snapshot.over_at = self.master.offset()
        self.check_fields(snapshot)
        if snapshot.kind == "save":
            os.link(os.path.join(self.master.folder, "dump.rdb"), snapshot.path)
            facts = facts_of(snapshot.path)
            if "repl-offset" not in facts:
                raise Wrong("the file has no offset")
            snapshot.id, snapshot.offset = facts["repl-id"], int(facts["repl-offset"])
        if snapshot.kind != "rewrite":
            if snapshot.id != self.stream.id:
                raise Wrong("the snapshot is of another history: %s, not %s" % (snapshot.id, self.stream.id))
            self.during += snapshot.over_at - snapshot.offset
            self.timed += 1

    def finish_sync(self, snapshot):
        try:
            if snapshot.link is None:
                raise Lost("it did not begin")
            snapshot.link.take(snapshot.path)
            snapshot.id, snapshot.offset = snapshot.link.id, snapshot.link.offset
        except Lost:
            snapshot.is_given_up = True
        finally:
            if snapshot.link:
                snapshot.link.close()
        wait_until(self.no_sync_runs, 30, "the sync has ended")

    def no_sync_runs(self):
        """Or another one could not begin: a child that sends ends a little after its replica has everything."""
        return self.master.info("persistence").get("rdb_bgsave_in_progress", "0") == "0" and \
            self.master.info("replication")["connected_slaves"] == "1"

    def has_failed(self):
        fields = self.master.info("persistence")
        for name in ("rdb_last_bgsave_status", "aof_last_bgrewrite_status", "aof_last_write_status"):
            if fields[name] != "ok":
                raise Wrong("%s is %s\n%s" % (name, fields[name], self.master.log(3000)))
        return False

    def check_fields(self, snapshot):
        self.has_failed()
        fields = self.master.info("persistence")
        if "snapshot_method" not in fields:
            return
        if self.options.method != "default" and fields["snapshot_method"] != self.options.method:
            raise Wrong("snapshot_method is %s behind a %s" % (fields["snapshot_method"], snapshot.kind))
        if "1" in (fields["rdb_bgsave_in_progress"], fields["aof_rewrite_in_progress"]):
            return  # the next one has begun
        for name in ("snapshot_keys_left", "snapshot_kept_bytes"):
            if int(fields.get(name, 0)) != 0:
                raise Wrong("%s is %s though no snapshot runs" % (name, fields[name]))

    # ---- comparing

    def advance(self, offset):
        self.chunk = self.stream.take(offset)
        base = offset - len(self.chunk)
        self.writes = [(base + end, words) for end, words in self.replay.replay(self.chunk)]
        self.replayed += len(self.writes)

    def later(self):
        """The replay goes on by one write."""
        size = wait_until(lambda: first_write(self.stream.peek()), 30, "another write")
        self.advance(self.stream.begin + size)

    def check(self, snapshot):
        self.count[snapshot.kind] = self.count.get(snapshot.kind, 0) + 1
        if snapshot.kind == "rewrite":
            problem = self.check_rewrite()
        else:
            self.advance(snapshot.offset)
            self.loader.load(snapshot.path)
            if self.options.inject:
                self.later()
            problem = None
            if self.loader.state() != self.replay.state():
                problem = difference(self.loader, self.replay, self.writes)
        if problem is None:
            self.passed += 1
            if snapshot.kind != "rewrite":
                os.unlink(self.last_good)
                self.last_good = snapshot.path
            return
        self.failed += 1
        print("FAILED %s at offset %s: %s" % (os.path.basename(snapshot.path), snapshot.offset, problem), flush=True)
        self.keep(snapshot)
        if not self.options.go_on:
            raise Difference("a difference")

    def check_rewrite(self):
        """Both are looked at as of one moment at which nothing is left that has to expire: the base has no key that had
        expired when it was made, the replay has it until the stream says that it is gone."""
        self.writers.pause()
        try:
            wait_until(self.is_at_rest, 30, "the server rests")
            copy = os.path.join(self.folder, "appendonlydir")
            wait_until(lambda: self.copy_files(copy), 30, "the files are copied")
            self.advance(self.master.offset())
        finally:
            self.writers.resume()
        member = Held("files", self.options, self.library, files=copy)
        try:
            self.replay.put_clock(member.base_ms)
            is_equal = member.state() == self.replay.state()
            self.replay.put_clock(self.replay.base_ms)
            return None if is_equal else difference(member, self.replay, self.writes)
        finally:
            member.stop()

    def copy_files(self, copy):
        """Files of before the rewrite are removed behind it, and a file may go while they are copied."""
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(os.path.join(self.master.folder, "appendonlydir"), copy)
        return True

    def is_at_rest(self):
        before = self.master.offset()
        time.sleep(0.15)
        return self.master.offset() == before and self.master.info("persistence")["aof_buffer_length"] == "0"

    def keep(self, snapshot):
        if not self.options.keep:
            self.options.keep = tempfile.mkdtemp(prefix="snapshot-model-")
        os.makedirs(self.options.keep, exist_ok=True)
        names = {self.last_good: "before.rdb", snapshot.path: "snapshot.rdb"}
        for path, name in names.items():
            if os.path.exists(path):
                shutil.copy(path, os.path.join(self.options.keep, name))
        if snapshot.kind == "rewrite":
            shutil.copytree(os.path.join(self.folder, "appendonlydir"),
                            os.path.join(self.options.keep, "appendonlydir"), dirs_exist_ok=True)
        with open(os.path.join(self.options.keep, "stream"), "wb") as file:
            file.write(self.chunk)
        print("kept in %s: the snapshot before, this one, and the stream from %d to %d" % (
            self.options.keep, self.stream.begin - len(self.chunk), self.stream.begin))

    # ---- all

    def go(self):
        options = self.options
        self.begin()
        end = time.monotonic() + options.seconds
        kinds = options.kinds.split(",")
        before = None
        for number in range(options.snapshots):
            if time.monotonic() > end:
                break
            kind = kinds[0] if number < 2 else self.random.choices(kinds, [8, 2, 0.5][:len(kinds)])[0]
            snapshot = self.make(kind, number)
            if before:      # compared while the next one is made
                self.check(before)
                before = None
            self.finish(snapshot)
            if options.verbose:
                print("%d %s at %s until %s" % (number, kind, snapshot.offset, snapshot.over_at), flush=True)
            if snapshot.is_given_up:
                continue
            if kind == "rewrite":
                self.check(snapshot)
            else:
                before = snapshot
        if before:
            self.check(before)
        self.see_it_fail()
        fields = self.master.info("stats")
        self.gone = "%s keys expired, %s evicted" % (fields["expired_keys"], fields["evicted_keys"])
        self.writers.end()
        for member in self.members:
            if member.complaint():
                raise Wrong(member.complaint())

    def see_it_fail(self):
        """One more, which is compared with the state some writes later."""
        for _ in range(10):
            snapshot = self.make("save", "last")
            self.finish(snapshot)
            if not snapshot.is_given_up:
                break
        if snapshot.is_given_up:
            raise Wrong("no last snapshot")
        self.advance(snapshot.offset)
        self.loader.load(snapshot.path)
        if self.loader.state() != self.replay.state():
            raise Wrong("the last snapshot differs")
        for number in range(1, 101):
            self.later()
            if self.loader.state() != self.replay.state():
                print("%d writes later the state differs from the last snapshot, as it has to" % number)
                return
        raise Wrong("100 writes later the state is still the same")

    def end(self):
        if self.writers:
            self.writers.end()
        if self.stream:
            self.stream.close()
        for member in reversed(self.members):
            member.stop()

    def tell(self, seconds):
        if not self.writers:
            return
        sent, errors = sum(self.writers.sent), sum(self.writers.errors)
        print("%.1f s; %s, %d given up" % (seconds, ", ".join(
            "%d %s" % (number, kind) for kind, number in sorted(self.count.items())), self.given_up))
        print("%d commands sent, %d of them errors; %d writes replayed; %s; %.1f KB written while a snapshot was made, "
              "on average" % (sent, errors, self.replayed, self.gone,
                              self.during / 1000 / max(1, self.timed)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--snapshots", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3600, help="none begins later")
    parser.add_argument("--rate", type=int, default=10000, help="commands a second of all writers, at most")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--method", choices=("default", "threads", "fork"), default="default")
    parser.add_argument("--large", action="store_true", help="values of 10,000 to 100,000 members, a string of 5 MiB")
    parser.add_argument("--evict", nargs="?", const="allkeys-random", metavar="POLICY", help="with a limit of memory")
    parser.add_argument("--flush-every", type=int, default=2000,
                        help="batches of a client between two flushes; 0: none")
    parser.add_argument("--preamble", choices=("yes", "no"), default="yes", help="aof-use-rdb-preamble")
    parser.add_argument("--kinds", default="save,sync,rewrite", help="in this order the first ones are made more often")
    parser.add_argument("--memory-limit", help="snapshot-memory-limit")
    parser.add_argument("--inject", choices=("later",))
    parser.add_argument("--keep", help="folder for the files of a difference")
    parser.add_argument("--go-on", action="store_true", help="after a difference")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    print("seed %d" % options.seed)
    folder = tempfile.mkdtemp(prefix="snapshot-model-")
    run = Run(options, folder)
    begin = time.monotonic()
    try:
        run.go()
    except (Wrong, Lost, OSError) as problem:
        print("FAILED: %s" % problem)
        run.failed = max(run.failed, 1)
        if not isinstance(problem, Difference):
            print("\n".join("%s: %s" % (member.name, member.log(30000)) for member in run.members))
    finally:
        run.tell(time.monotonic() - begin)
        run.end()
        shutil.rmtree(folder, ignore_errors=True)
    print("%d passed, %d failed" % (run.passed, run.failed))
    return 1 if run.failed or not run.passed else 0


if __name__ == "__main__":
    sys.exit(main())
