"""Files that are damaged in every way: of a small append only file (an RDB base, increments with transactions, scripts
and notes, a manifest) every byte is changed, and every end is cut off. Nothing crashes or hangs, and what is not loaded
is told in one line. A running server loads most of them (DEBUG LOADAOF); some are tried at its start."""
import os
import shutil

from server import Client, Error, Server, request

OPTIONS = {"appendonly": "yes", "appendfsync": "no", "save": "", "auto-aof-rewrite-percentage": "0",
           "enable-debug-command": "yes"}
FLIPS = (0x01, 0x20, 0x80, 0xff)
LIBRARY = "#!lua name=lib\nredis.register_function('f', function(keys) return redis.call('incr', keys[1]) end)"
BASE = (("SET", "s", "x" * 30), ("SET", "n", 12345), ("RPUSH", "l", "a", "b", 3), ("SADD", "is", 1, 2, 3),
        ("SADD", "ss", "a", "b"), ("HSET", "h", "f", "v", "g", "w"), ("ZADD", "z", 1, "a", 2.5, "b"),
        ("XADD", "x", "1-1", "f", "v"), ("XGROUP", "CREATE", "x", "g", "0"), ("PFADD", "p", "a", "b"),
        ("SET", "e", "v", "PXAT", 9999999999999), ("SELECT", 3), ("SET", "other", "db"))
FIRST = (("SELECT", 0), ("APPEND", "s", "yyy"), ("LPUSH", "l", "z"), ("MULTI",), ("INCR", "n"), ("DEL", "is"),
         ("EXEC",), ("FUNCTION", "LOAD", "REPLACE", LIBRARY), ("FCALL", "f", 1, "n"))
LAST = (("SELECT", 0), ("EVAL", "return redis.call('set', KEYS[1], ARGV[1])", 1, "k", "v"), ("ZADD", "z", 3, "c"),
        ("XADD", "x", "2-1", "f", "w"), ("PEXPIREAT", "s", 9999999999999), ("MULTI",), ("SET", "a", 1), ("EXEC",),
        ("HPEXPIREAT", "h", 9999999999999, "FIELDS", 1, "f"))
TELLING = ("at byte", "MANIFEST FILE ERROR", "Unable to obtain", "Can't load", "has no manifest",
           "Can't open", "Can't read", "There is no append-only file")


class Wrong(Exception):
    """It crashed, hung, or said nothing."""


def written(commands):
    return b"".join(request(*words) for words in commands)


def make_files(binary, folder):
    """Name and content of what a server has written, and of what we have made up."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    server = Server(binary, folder, folder + ".log", OPTIONS)
    client = server.wait_loaded(60)
    for words in BASE:
        client.call(*words)
    client.call("BGREWRITEAOF")
    while client.field("aof_rewrite_in_progress") != "0" or client.field("aof_rewrite_scheduled") != "0":
        pass
    client.close()
    server.stop()
    data = os.path.join(folder, "appendonlydir")
    base = [name for name in os.listdir(data) if name.endswith(".base.rdb")][0]
    with open(os.path.join(data, base), "rb") as file:
        rdb = file.read()
    return {"base.rdb": rdb, "first": written(FIRST), "last": b"#TS:1700000000\r\n" + written(LAST),
            "appendonly.aof.manifest": b"file base.rdb seq 1 type b\n# note\nfile first seq 1 type i\n"
                                       b"file last seq 2 type i\n"}


def damages(files, stride):
    """Names of what is done, and the file that is changed, with its content."""
    number = 0
    for name, content in files.items():
        for at in range(len(content)):
            for flip in FLIPS:
                number += 1
                if number % stride == 0:
                    yield f"{name}, byte {at} xor {flip:#x}", name, \
                        content[:at] + bytes([content[at] ^ flip]) + content[at + 1:]
            number += 1
            if number % stride == 0:
                yield f"{name}, cut at {at}", name, content[:at]


def put(folder, files):
    for name, content in files.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)


class Runner:
    """A server that loads one file after the other."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.data = os.path.join(folder, "appendonlydir")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(self.data)
        self.log = os.path.join(folder, "log")
        self.server = None

    def begin(self):
        self.server = Server(self.binary, self.folder, self.log, OPTIONS)
        self.client = self.server.wait_loaded(60)
        if self.client is None:
            raise Wrong("the server does not start:\n" + self.server.log_tail())

    def told(self, since):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            file.seek(since)
            return [line for line in file.read().split("\n") if any(text in line for text in TELLING)]

    def load(self):
        if self.server is None:
            self.begin()
        since = os.path.getsize(self.log)
        try:
            self.client.send("DEBUG", "LOADAOF")
            reply = self.client.read()
        except OSError as problem:
            self.server.kill()
            text, self.server = self.server.log_tail(60), None
            raise Wrong(f"the server is gone, or hangs: {problem}\n{text}") from problem
        if isinstance(reply, Error) and not self.told(since):
            raise Wrong("nothing is told of why it was not loaded")
        return not isinstance(reply, Error)

    def start(self):
        """A server that begins with it."""
        if os.path.exists(self.log):
            os.unlink(self.log)
        server = Server(self.binary, self.folder, self.log, OPTIONS)
        try:
            client = server.wait_loaded(60)
            if client is not None:
                client.close()
                if server.stop() != 0:
                    raise Wrong("it did not end in order:\n" + server.log_tail(60))
                return True
            refusals = [line for line in self.told(0) if "does not start" in line]
            if server.process.wait() != 1 or len(refusals) != 1:
                raise Wrong(f"it ended with {server.process.returncode}:\n" + server.log_tail(60))
            return False
        finally:
            server.kill()

    def end(self):
        if self.server is not None and self.server.stop() != 0:
            raise Wrong("it did not end in order:\n" + self.server.log_tail(60))


def damage_rounds(binary, folder, stride, report):
    files = make_files(binary, os.path.join(folder, "made"))
    runner = Runner(binary, os.path.join(folder, "damaged"))
    loaded = 0
    runner.begin()
    put(runner.data, files)
    if not runner.load():
        raise Wrong("what is whole is not loaded:\n" + runner.server.log_tail())
    for what, name, content in damages(files, stride):
        put(runner.data, {**files, name: content})
        problem = None
        try:
            loaded += runner.load()
        except Wrong as found:
            problem = found
        report(what, problem)
    put(runner.data, files)
    runner.end()
    runner = Runner(binary, os.path.join(folder, "started"))
    for what, name, content in damages(files, stride * 37):
        put(runner.data, {**files, name: content})
        problem = None
        try:
            loaded += runner.start()
        except (Wrong, TimeoutError) as found:
            problem = found
        report(what + ", at start", problem)
    print(f"{loaded} of the damaged files were loaded all the same")
