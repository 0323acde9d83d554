"""Rounds of kill -9 at a random moment, while eight clients write: what was acknowledged has to be there afterwards.

Under every policy what was acknowledged survives kill -9. What the policy is about is the loss of power.
Each client has its own keys and writes rising numbers into them, so that what is found tells how much of what was sent
has survived: for each key a number between the last one that had to survive and the last one that was sent."""
import os
import shutil
import threading
import time

from disk import Disk
from server import Client, Error, Server

CLIENTS = 8
GRACE_S = 2.0  # everysec, power lost: what was acknowledged that long before may not be lost
KINDS = ("string", "counter", "list", "pair", "hash", "set", "zset", "stream", "big", "script")
STATES = {
    "always": {"appendonly": "yes", "appendfsync": "always", "save": ""},
    "everysec": {"appendonly": "yes", "appendfsync": "everysec", "save": ""},
    "no": {"appendonly": "yes", "appendfsync": "no", "save": ""},
    "rdb": {"appendonly": "no", "save": ""},
}


SCRIPT = "redis.call('RPUSH', KEYS[2], 'x') return redis.call('INCR', KEYS[1])"


class Lost(Exception):
    """Data is not what it has to be."""


class Writer(threading.Thread):
    """One client: what it has sent, and when what was acknowledged."""

    def __init__(self, index):
        super().__init__(daemon=True)
        self.index = index
        self.sent = dict.fromkeys(KINDS, 0)
        self.acked = {kind: [(0.0, 0)] for kind in KINDS}  # (time, number)
        self.problem = None

    def key(self, kind):
        return f"{kind}:{self.index}"

    def begin(self, port, random):
        super().__init__(daemon=True)
        self.port = port
        self.random = random
        self.start()

    def words(self, kind, number):
        key = self.key(kind)
        padding = "x" * self.random.choice((0, 10, 200))
        return {
            "string": [("SET", key, f"{number}:{padding}")],
            "counter": [("INCR", key)],
            "list": [("RPUSH", key, number)],
            "pair": [("MULTI",), ("SET", key + ":a", number), ("SET", key + ":b", number), ("EXEC",)],
            "hash": [("HSET", key, f"f{number % 50}", number)],
            "set": [("SADD", key, number)],
            "zset": [("ZADD", key, number, f"m{number}")],
            "stream": [("XADD", key, f"{number}-1", "f", number)],
            "big": [("SET", key, f"{number}:" + "x" * self.random.choice((20000, 40000, 300000)))],
            "script": [("EVAL", SCRIPT, 2, key, key + ":list")],
        }[kind]

    def run(self):
        try:
            client = Client(self.port)
            while True:
                batch = [self.random.choice(KINDS) for _ in range(self.random.choice((1, 1, 1, 4, 16, 100)))]
                expected = []
                for kind in batch:
                    self.sent[kind] += 1
                    for words in self.words(kind, self.sent[kind]):
                        client.send(*words)
                        expected.append(None)
                    expected[-1] = (kind, self.sent[kind])
                for what in expected:
                    reply = client.read()
                    if isinstance(reply, Error):
                        raise Lost(f"client {self.index}: {what}: {reply}")
                    if what is not None:
                        self.acked[what[0]].append((time.monotonic(), what[1]))
        except OSError:
            pass  # the server was killed
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem

    def must(self, kind, until):
        """The number that has to be there of what was acknowledged by then."""
        return max(number for when, number in self.acked[kind] if when <= until)

    def found(self, client, kind):
        """The number that is there."""
        key = self.key(kind)
        if kind in ("string", "big"):
            return int((client.call("GET", key) or "0:").split(":")[0])
        if kind == "counter":
            return int(client.call("GET", key) or 0)
        if kind == "script":
            both = [int(client.call("GET", key) or 0), client.call("LLEN", key + ":list")]
            if both[0] != both[1]:
                raise Lost(f"{key}: half a script: {both}")
            return both[0]
        if kind == "pair":
            both = client.call("MGET", key + ":a", key + ":b")
            if both[0] != both[1]:
                raise Lost(f"{key}: half a transaction: {both}")
            return int(both[0] or 0)
        if kind == "hash":
            fields = client.call("HGETALL", key)
            number = max((int(value) for value in fields[1::2]), default=0)
            wanted = {f"f{i % 50}": str(i) for i in range(max(1, number - 49), number + 1)}
            if dict(zip(fields[::2], fields[1::2])) != wanted:
                raise Lost(f"{key}: fields are missing")
            return number
        if kind == "stream":
            number = client.call("XLEN", key)
            last = client.call("XREVRANGE", key, "+", "-", "COUNT", "1")
            if number != 0 and last[0][0] != f"{number}-1":
                raise Lost(f"{key}: {number} entries, and the last one is {last}")
            return number
        members = client.call(*{"list": ("LRANGE", key, 0, -1), "set": ("SMEMBERS", key),
                                "zset": ("ZRANGE", key, 0, -1)}[kind])
        numbers = [int(member.lstrip("m")) for member in members]
        if (sorted(numbers) if kind == "set" else numbers) != list(range(1, len(numbers) + 1)):
            raise Lost(f"{key}: elements are missing")
        return len(numbers)

    def check(self, client, until):
        for kind in KINDS:
            number, least = self.found(client, kind), self.must(kind, until)
            if not least <= number <= self.sent[kind]:
                raise Lost(f"{self.key(kind)}: {number} is there, {least} had to be, {self.sent[kind]} was sent")
            self.sent[kind] = number
            self.acked[kind] = [(0.0, number)]


class Series:
    """Some rounds in one folder, with one kind of persistence."""

    def __init__(self, binary, folder, name, random):
        self.binary = binary
        self.folder = folder
        self.name = name
        self.random = random
        self.writers = [Writer(index) for index in range(CLIENTS)]
        self.data = os.path.join(folder, "data")
        self.log = os.path.join(folder, "log")
        self.saved_until = 0.0  # rdb: what was acknowledged before is in a snapshot that was reported as done
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(self.data)

    def start(self, environment):
        options = dict(STATES[self.name], **{"server-threads": self.random.choice(("1", "4")),
                                             "min-clients-per-thread": "1",
                                             "snapshot-method": self.random.choice(("threads", "threads", "fork")),
                                             "snapshot-threads": self.random.choice(("1", "4")),
                                             "auto-aof-rewrite-min-size": "64kb",
                                             "auto-aof-rewrite-percentage": self.random.choice(("0", "10", "100"))})
        if self.name == "rdb":
            del options["auto-aof-rewrite-min-size"], options["auto-aof-rewrite-percentage"]
        return Server(self.binary, self.data, self.log, options, environment)

    def disturb(self, client, until):
        """Rewrites and snapshots while the clients write."""
        command = "BGSAVE" if self.name == "rdb" else "BGREWRITEAOF"
        busy = "rdb_bgsave_in_progress" if self.name == "rdb" else "aof_rewrite_in_progress"
        began = 0.0
        while time.monotonic() < until:
            time.sleep(min(0.02, max(0.0, until - time.monotonic())))
            if client.field(busy) != "0":
                continue
            if self.name == "rdb":
                if began and client.field("rdb_last_bgsave_status") == "ok":
                    self.saved_until = began
                began = time.monotonic()
            elif self.random.random() < 0.7:
                continue
            try:
                client.call(command)
            except Error:
                began = 0.0

    def round(self, power_loss):
        disk = Disk(self.binary, self.data) if power_loss else None
        server = self.start(disk.environment if disk else {})
        try:
            client = server.wait_loaded()
            if client is None:
                raise Lost("the server does not start:\n" + server.log_tail())
            self.saved_until = -1.0 if self.name == "rdb" and self.saved_until < 0 else self.saved_until
            for writer in self.writers:
                writer.begin(server.port, self.random.__class__(self.random.random()))
            span = self.random.uniform(0.02, 1.0) if self.name != "everysec" else self.random.uniform(0.02, 3.5)
            self.disturb(client, time.monotonic() + span)
        finally:
            killed = time.monotonic()
            server.kill()
        for writer in self.writers:
            writer.join()
            if writer.problem is not None:
                raise writer.problem
        if power_loss:
            disk.cut_power(self.random, self.random.random() < 0.5)
        grace = GRACE_S if power_loss and self.name == "everysec" else 0
        self.verify(self.saved_until if self.name == "rdb" else killed - grace)

    def verify(self, until):
        server = self.start({})
        try:
            client = server.wait_loaded()
            if client is None:
                raise Lost("the server does not start:\n" + server.log_tail())
            for writer in self.writers:
                writer.check(client, until)
            client.close()
        finally:
            server.kill()
        self.saved_until = 0.0


def crash_rounds(binary, folder, count, random, report):
    """`count` rounds in series of five, or of two if they are few; every other series with the loss of power. Calls
    report(name, problem)."""
    length = 5 if count >= 100 else 2
    names = ("everysec", "always", "rdb", "everysec", "no", "always", "always")
    done = 0
    serial = 0
    while done < count:
        name, power_loss = names[serial % len(names)], serial // len(names) % 2 == 1 or serial % 2 == 1
        power_loss = power_loss and name != "no"
        series = Series(binary, os.path.join(folder, f"series{serial}"), name, random)
        problem = None
        for step in range(min(length, count - done)):
            try:
                series.round(power_loss)
            except (Lost, TimeoutError, OSError, ValueError) as found:
                problem = found
            done += 1
            report(f"{name}{', power lost' if power_loss else ''}, series {serial}, round {step}", problem)
            if problem is not None:
                break
        if problem is None:
            shutil.rmtree(series.folder)
        serial += 1
