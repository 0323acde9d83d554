"""Rounds of kill -9 in the middle of a snapshot of large values, while clients change them; every other one with the
loss of power.

One client goes on in steps. Each step is one transaction that leaves its number in every large value, so that what is
found tells of which moment it is: all values have to be of the same one. With an append-only file that is at least the
last step that was acknowledged. Without, it is the moment of a whole file: the one from before the round, or one of a
SAVE or BGSAVE that began in the round."""
import os
import shutil
import threading
import time

from disk import Disk
from rounds import Lost, Writer
from server import Client, Error, Server, request

MEMBERS = 100000
STRING_BYTES = 20 << 20
SMALL_KEYS = 3000
NUMBER_AT = STRING_BYTES // 2
WAYS = ("BGSAVE", "BGREWRITEAOF", "SAVE")

# What each value is after step `last`: step n has left n in the members (n % count), the string and the key.
CHECK = """
local last, count = tonumber(ARGV[1]), tonumber(ARGV[2])
local function number_of(member)
    local number = last - (last - member) % count
    return number > 0 and number or 0
end
local fields = redis.call('HGETALL', 'hash')
if #fields ~= 2 * count then return 'hash: ' .. #fields / 2 .. ' fields' end
for i = 1, #fields, 2 do
    if tonumber(fields[i + 1]) ~= number_of(tonumber(fields[i])) then
        return 'hash: ' .. fields[i] .. ' is ' .. fields[i + 1]
    end
end
local members = redis.call('ZRANGE', 'zset', 0, -1, 'WITHSCORES')
if #members ~= 2 * count then return 'zset: ' .. #members / 2 .. ' members' end
for i = 1, #members, 2 do
    if tonumber(members[i + 1]) ~= number_of(tonumber(members[i])) then
        return 'zset: ' .. members[i] .. ' is ' .. members[i + 1]
    end
end
local elements = redis.call('LRANGE', 'list', 0, -1)
if #elements ~= count then return 'list: ' .. #elements .. ' elements' end
for i = 1, #elements do
    if tonumber(elements[i]) ~= last + i then return 'list: ' .. i .. ' is ' .. elements[i] end
end
return 'same'
"""


class Stepper(threading.Thread):
    """The client of the steps, until the server is gone."""

    def __init__(self, port, last):
        super().__init__(daemon=True)
        self.client = Client(port)
        self.sent = self.acked = last
        self.problem = None
        self.start()

    def run(self):
        try:
            while True:
                number = self.sent + 1
                words = (("MULTI",), ("HSET", "hash", number % MEMBERS, number),
                         ("ZADD", "zset", number, number % MEMBERS), ("RPUSH", "list", number + MEMBERS),
                         ("LPOP", "list"), ("SETRANGE", "string", NUMBER_AT, f"{number:010d}"), ("SET", "step", number),
                         ("EXEC",))
                self.sent = number
                self.client.socket.sendall(b"".join(request(*each) for each in words))
                for reply in [self.client.read() for _ in words]:
                    if isinstance(reply, Error):
                        raise Lost(f"step {number}: {reply}")
                self.acked = number
        except OSError:
            pass  # the server was killed
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem


def fill(client, random):
    for first in range(0, MEMBERS, 5000):
        numbers = range(first, first + 5000)
        client.call("HSET", "hash", *[word for number in numbers for word in (number, 0)])
        client.call("ZADD", "zset", *[word for number in numbers for word in (0, number)])
        client.call("RPUSH", "list", *[number + 1 for number in numbers])
    client.call("SET", "string", random.randbytes(STRING_BYTES).replace(b"\r", b"."))
    client.call("SETRANGE", "string", NUMBER_AT, f"{0:010d}")
    client.call("SET", "step", 0)
    client.call("MSET", *[word for number in range(SMALL_KEYS) for word in (f"small:{number}", number)])


class Series:
    """Rounds in one folder, with an append-only file or without."""

    def __init__(self, binary, folder, has_aof, random):
        self.binary = binary
        self.has_aof = has_aof
        self.random = random
        self.data = os.path.join(folder, "data")
        self.log = os.path.join(folder, "log")
        self.writers = [Writer(index) for index in range(2)] if has_aof else []
        self.step = 0
        self.file_bytes = 0
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(self.data)

    def start(self, environment=None, **more):
        options = {"appendonly": "yes" if self.has_aof else "no", "appendfsync": "always", "save": "",
                   "auto-aof-rewrite-percentage": "0", "rdbcompression": "no", "min-clients-per-thread": "1", **more}
        server = Server(self.binary, self.data, self.log, options, environment)
        client = server.wait_loaded()
        if client is None:
            raise Lost("the server does not start:\n" + server.log_tail())
        return server, client

    def begin(self):
        server, client = self.start()
        try:
            fill(client, self.random)
            client.call("SAVE")
            self.file_bytes = os.path.getsize(os.path.join(self.data, "dump.rdb"))
            if self.has_aof:
                client.call("BGREWRITEAOF")
                while client.field("aof_rewrite_in_progress") != "0":
                    time.sleep(0.01)
        finally:
            server.kill()

    def left_files(self):
        return {os.path.join(where, name) for where, _, names in os.walk(self.data) for name in names
                if name.startswith("temp-")}

    def written(self, before):
        """So many bytes of the file that is being written."""
        sizes = [0]
        for path in self.left_files() - before:
            try:
                sizes.append(os.path.getsize(path))
            except FileNotFoundError:
                pass  # it has got its name
        return max(sizes)

    def whole_files(self):
        """Files that are snapshots; a new one has another number."""
        files = set()
        for where, _, names in os.walk(self.data):
            for name in names:
                if name != "dump.rdb" and ".base." not in name:
                    continue
                try:
                    files.add((name, os.stat(os.path.join(where, name)).st_ino))
                except FileNotFoundError:
                    pass  # there is another base
        return files

    def round(self, way, power_loss):
        """Did it hit the file half-written?"""
        disk = Disk(self.binary, self.data) if power_loss else None
        server, _ = self.start(disk.environment if disk else None,
                               **{"server-threads": self.random.choice(("1", "4")),
                                  "snapshot-threads": self.random.choice(("1", "4")), "snapshot-method": "threads",
                                  "rdb-key-save-delay": self.random.choice(("0", "100"))})
        before, is_done = self.left_files(), False
        wanted = self.file_bytes * self.random.uniform(0, 1.3)
        try:
            stepper = Stepper(server.port, self.step)
            for writer in self.writers:
                writer.begin(server.port, self.random.__class__(self.random.random()))
            while stepper.acked < self.step + 20 and stepper.is_alive():
                time.sleep(0.001)
            least = stepper.acked
            whole = self.whole_files()
            saver = Client(server.port)
            saver.send(way)
            end = time.monotonic() + 30
            while self.written(before) < wanted and self.whole_files() == whole:
                if time.monotonic() > end:
                    raise Lost(f"{way} does not end:\n" + server.log_tail())
                time.sleep(0.0005)
            is_done = way == "SAVE" and self.whole_files() != whole and saver.read() == "OK"
        finally:
            killed = time.monotonic()
            server.kill()
        for thread in (stepper, *self.writers):
            thread.join()
            if thread.problem is not None:
                raise thread.problem
        left = self.left_files() - before
        if power_loss:
            disk.cut_power(self.random, self.random.random() < 0.5)
        self.verify(stepper, least, is_done, killed)
        for path in left:
            if os.path.exists(path):
                os.remove(path)
        return len(left) != 0

    def verify(self, stepper, least, is_done, killed):
        server, client = self.start()
        try:
            found = int(client.call("GET", "step") or -1)
            in_string = client.call("GETRANGE", "string", NUMBER_AT, NUMBER_AT + 9)
            if self.has_aof:
                least = stepper.acked
            elif found == self.step and not is_done:
                least = found  # the file from before
            if not least <= found <= stepper.sent:
                raise Lost(f"step {found} is there, {least} had to be, {stepper.sent} was sent")
            same = client.call("EVAL", CHECK, 0, found, MEMBERS)
            if same != "same" or in_string != f"{found:010d}":
                raise Lost(f"not all values are of step {found}: {same}, string: {in_string}")
            if client.call("STRLEN", "string") != STRING_BYTES:
                raise Lost("the string has another size")
            for writer in self.writers:
                writer.check(client, killed)
            self.step = found
        finally:
            server.kill()


def snapshot_rounds(binary, folder, count, random, report):
    """`count` rounds, half of them with an append-only file. Calls report(name, problem)."""
    hits = total = 0
    for has_aof in (False, True):
        series = Series(binary, os.path.join(folder, "snapshots"), has_aof, random)
        series.begin()
        for number in range(count // 2):
            way, problem = random.choice(WAYS if has_aof else ("BGSAVE", "SAVE")), None
            try:
                hits += series.round(way, number % 2 == 1)
            except (Lost, Error, TimeoutError, OSError, ValueError) as found:
                problem = found
            total += 1
            report(f"{way}{', append-only file' if has_aof else ''}{', power lost' if number % 2 == 1 else ''}, round "
                   f"{number}", problem)
            if problem is not None:
                return
        shutil.rmtree(os.path.join(folder, "snapshots"))
    report("snapshots are hit half-written", None if hits * 3 >= total else f"only {hits} of {total}")
