#!/usr/bin/env python3
"""What clients see on a replica is a prefix of the master's history: never a later write without an earlier one, never
half a transaction.

    prefix.py --server BIN [--oracle BIN] [--seconds N] [--seed N] [--threads N] [--noise RATE]
              [--master ours|oracle] [--replica ours|oracle] [--chained ours|oracle]

One writer numbers its writes: number n goes to key n modulo KEYS, by SET, LPUSH, MSET, MULTI, a script, or by pushing
to a list on which a BLMOVE waits. The value is "n:e", where e is the last number of the same command or transaction.
So who has seen n:e knows that at least e writes have been applied, and which number each key must have by now. Readers
remember the largest e that they have seen, on several connections (which are on several workers), and check every value
against it: of single GETs, pipelines, EXEC and scripts. The replica's link is cut now and then, and another replica
follows the first one. --noise: beside it the load generator sends that many SETs a second.

--inject order|half shows that this can fail: instead of the replica, readers are shown a server to which two clients
write at once (order), or one that writes transactions piece by piece (half). The last line counts readers.
"""
import argparse
import multiprocessing
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from group import Lost, Member, Proxy, Wrong, wait_caught_up, wait_linked, wait_same, wait_until      # noqa: E402
from harness import Connection, encode, exchange_all      # noqa: E402

KEYS = 64
LISTS = 4           # the last ones of KEYS are lists
NAMES = [(b"l:%d" if index >= KEYS - LISTS else b"s:%d") % index for index in range(KEYS)]
SCRIPT = b"""for i, key in ipairs(KEYS) do
  if key:sub(1, 1) == 'l' then redis.call('LPUSH', key, ARGV[i]) else redis.call('SET', key, ARGV[i]) end
end return 1"""
READ_ALL = b"""local all = {}
for i, key in ipairs(KEYS) do
  all[i] = (key:sub(1, 1) == 'l' and redis.call('LINDEX', key, 0) or redis.call('GET', key)) or ''
end return all"""
BATCH = 64          # acts in a pipeline


def is_list(index):
    return index >= KEYS - LISTS


def write_words(index, value):
    return [b"LPUSH" if is_list(index) else b"SET", NAMES[index], value]


def read_words(index):
    return [b"LINDEX", NAMES[index], b"0"] if is_list(index) else [b"GET", NAMES[index]]


class Writer:
    def __init__(self, port, seed):
        self.random = random.Random(seed)
        self.main, self.blocked, self.watch = (Connection(port) for _ in range(3))
        self.number = 0
        self.acts = 0
        self.kinds = {}

    def values(self, count):
        """The next numbers: [(index of the key, value)]."""
        first, last = self.number + 1, self.number + count
        self.number = last
        return [(number % KEYS, b"%d:%d" % (number, last)) for number in range(first, last + 1)]

    def act(self):
        """One command or transaction, as a list of commands."""
        draw = self.random.random()
        if draw < 0.55:
            kind, commands = "single", [write_words(*self.values(1)[0])]
        else:
            pairs = self.values(self.random.randint(2, 8))
            kind = "script" if draw < 0.65 else "multi"
            if draw > 0.8 and not any(is_list(index) for index, _ in pairs):
                kind = "mset"
            if kind == "multi":
                commands = [[b"MULTI"], *(write_words(*pair) for pair in pairs), [b"EXEC"]]
            elif kind == "mset":
                commands = [[b"MSET", *(word for index, value in pairs for word in (NAMES[index], value))]]
            else:
                commands = [[b"EVAL", SCRIPT, len(pairs), *(NAMES[index] for index, _ in pairs),
                             *(value for _, value in pairs)]]
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        return commands

    def send(self, commands):
        for reply in self.main.exchange(b"".join(map(encode, commands)), len(commands)):
            if reply[0] == "-":
                raise Wrong("the master answers %s" % reply[1].decode(errors="replace"))

    def batch(self):
        self.send([words for _ in range(BATCH) for words in self.act()])
        if self.random.random() < 0.3:
            self.send([[b"LTRIM", NAMES[KEYS - 1 - index], b"0", b"3"] for index in range(LISTS)])
        if self.random.random() < 0.05:
            self.by_blocked()

    def by_blocked(self):
        """Numbers up to the next list, which gets its one from a list on which somebody waits."""
        while not is_list((self.number + 1) % KEYS):
            self.send([write_words(*self.values(1)[0])])
        index, value = self.values(1)[0]
        self.blocked.sock.sendall(encode([b"BLMOVE", b"waiting", NAMES[index], b"LEFT", b"LEFT", b"0"]))
        wait_until(lambda: b"blocked_clients:1" in self.watch.command("INFO", "clients")[1], 20, "BLMOVE waits")
        self.send([[b"RPUSH", b"waiting", value]])
        if self.blocked.exchange(b"", 1)[0] != ("$", value):
            raise Wrong("BLMOVE gives something else")
        self.kinds["blocked"] = self.kinds.get("blocked", 0) + 1


class WrongServer(Writer):
    """Shows readers what must not be, on a server of its own."""

    def __init__(self, port, seed, how):
        super().__init__(port, seed)
        self.how = how
        self.other = Connection(port)

    def batch(self):
        commands = [words for _ in range(BATCH) for words in self.act() if words[0] not in (b"MULTI", b"EXEC")]
        if self.how == "half":
            return self.send(commands)
        halves = [[], []]
        for words in commands:
            halves[0 if words[0] == b"MSET" else int(words[1][2:]) % 2 if words[0] != b"EVAL" else 1].append(words)
        exchange_all([(connection, b"".join(map(encode, half)), len(half))
                      for connection, half in zip((self.main, self.other), halves)])
        return None


class Reader:
    def __init__(self, port, seed, until):
        self.random = random.Random(seed)
        self.connections = [Connection(port) for _ in range(4)]
        self.until = until
        self.applied = 0        # so many writes have been seen to be applied
        self.checked = 0
        self.loading = 0

    def must_have(self, index):
        """The last number up to `applied` of this key."""
        return self.applied - (self.applied - index) % KEYS

    def check(self, index, reply, how):
        self.checked += 1
        number, end = (int(part) for part in reply[1].split(b":")) if reply[1] else (0, 0)
        wanted = self.must_have(index)
        if number < wanted:
            raise Wrong("%s: %s has number %d, but write %d was seen before, so it must have at least %d" % (
                how, NAMES[index].decode(), number, self.applied, wanted))
        self.applied = max(self.applied, end)

    def check_all(self, replies, how):
        """All keys at one moment: the latest of them counts for all others."""
        for reply in replies:
            if reply[1]:
                self.applied = max(self.applied, int(reply[1].split(b":")[1]))
        for index, reply in enumerate(replies):
            self.check(index, reply, how)

    def once(self):
        how = self.random.choice(("single", "pipeline", "exec", "mget", "script"))
        connection = self.random.choice(self.connections)
        if how in ("single", "pipeline"):
            indexes = [self.random.randrange(KEYS) for _ in range(1 if how == "single" else 16)]
            replies = connection.exchange(b"".join(encode(read_words(index)) for index in indexes), len(indexes))
            for index, reply in zip(indexes, replies):
                if not self.is_refusal(reply):
                    self.check(index, reply, how)
        elif how == "mget":
            indexes = self.random.sample(range(KEYS - LISTS), 20)
            reply = connection.command(b"MGET", *(NAMES[index] for index in indexes))
            if not self.is_refusal(reply):
                for each in reply[1]:
                    if each[1]:
                        self.applied = max(self.applied, int(each[1].split(b":")[1]))
                for index, each in zip(indexes, reply[1]):
                    self.check(index, each, how)
        else:
            if how == "exec":
                words = [[b"MULTI"], *map(read_words, range(KEYS)), [b"EXEC"]]
                reply = connection.exchange(b"".join(map(encode, words)), len(words))[-1]
            else:
                reply = connection.command(b"EVAL_RO", READ_ALL, KEYS, *NAMES)
            if not self.is_refusal(reply):
                self.check_all(reply[1], how)

    def is_refusal(self, reply):
        """Errors that a replica may give while it takes a snapshot over."""
        if reply[0] != "-":
            return False
        if reply[1].split(b" ")[0] not in (b"LOADING", b"EXECABORT", b"MASTERDOWN", b"BUSY"):
            raise Wrong("a reader gets %s" % reply[1].decode(errors="replace"))
        self.loading += 1
        return True

    def run(self):
        while time.monotonic() < self.until:
            self.once()


def read_in_process(name, port, seed, until, results):
    reader = None
    try:
        reader = Reader(port, seed, until)
        reader.run()
        results.put((name, None, reader.checked, reader.applied))
    except (Wrong, Lost, OSError) as problem:
        results.put((name, "%s: %s" % (type(problem).__name__, problem), reader.checked if reader else 0, 0))


def noise(options, port):
    if not options.noise:
        return None
    program = os.path.join(os.path.dirname(os.path.abspath(options.server)), "..", "bench", "load")
    return subprocess.Popen([program, "--port", str(port), "--rate", str(options.noise), "--seconds",
                             str(options.seconds), "--connections", "8", "--pipeline", "64", "--keys", "20000"],
                            stdout=subprocess.DEVNULL)


def run(options, members, proxies):
    seed = options.seed
    choose = random.Random("cuts %d" % seed)
    replica_binary = options.oracle if options.replica == "oracle" else options.server
    # Ours keeps what a replica that was cut off needs without being told so.
    more = ["--repl-backlog-size", "100mb"] if options.master == "oracle" else []
    master = Member("master", options.oracle if options.master == "oracle" else options.server, more, options.threads)
    members.append(master)
    chained_binary = options.oracle if options.chained == "oracle" else options.server
    watched = []
    if options.inject:
        writer = WrongServer(master.port, seed, options.inject)
        watched = [master]
    else:
        writer = Writer(master.port, seed)
        writer.batch()
        proxy = Proxy(master.port)
        proxies.append(proxy)
        watched = [Member("replica", replica_binary, [], options.threads),
                   Member("its replica", chained_binary, [], options.threads)]
        members += watched
        watched[0].follow(proxy.port)
        watched[1].follow(watched[0].port)
        wait_linked(watched)
    until = time.monotonic() + options.seconds
    results = multiprocessing.Queue()
    readers = []
    for member in watched:
        for number in range(options.readers):
            readers.append(multiprocessing.Process(target=read_in_process, args=(
                "reader %d of the %s" % (number, member.name), member.port, "%d/%d" % (seed, number), until, results)))
            readers[-1].start()
    load = noise(options, master.port)
    next_cut = time.monotonic() + 1
    while time.monotonic() < until:
        writer.batch()
        if not options.inject and time.monotonic() > next_cut:
            next_cut = time.monotonic() + choose.uniform(0.3, 2)
            proxies[0].cut()
    failed = 0
    for _ in readers:
        name, problem, checked, applied = results.get(timeout=60)
        print("%s %s: %d values checked, %d writes seen%s" % ("FAILED" if problem else "ok    ", name, checked, applied,
                                                             ": " + problem if problem else ""))
        failed += problem is not None or (not options.inject and applied < writer.number // 4)
    for reader in readers:
        reader.join()
    if load:
        load.wait(60)
    if not options.inject:
        wait_caught_up(master, watched)
        wait_same(master, watched)
        print("%d writes, as %s; %s" % (writer.number, writer.kinds, master.sync_counts()))
    for member in members:
        if member.complaint():
            raise Wrong(member.complaint())
    return len(readers) - failed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle")
    parser.add_argument("--master", choices=("ours", "oracle"), default="ours")
    parser.add_argument("--replica", choices=("ours", "oracle"), default="ours")
    parser.add_argument("--chained", choices=("ours", "oracle"), default="ours", help="the replica of the replica")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--readers", type=int, default=2, help="for each replica")
    parser.add_argument("--noise", type=int, default=20000)
    parser.add_argument("--inject", choices=("order", "half"))
    options = parser.parse_args()
    print("seed %d" % options.seed)
    members, proxies = [], []
    try:
        passed, failed = run(options, members, proxies)
    except (Wrong, Lost, OSError) as problem:
        print("FAILED: %s" % problem)
        passed, failed = 0, 1
    finally:
        for proxy in proxies:
            proxy.close()
        for member in reversed(members):
            member.stop()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
