#!/usr/bin/env python3
"""What a node does with what comes by a link, right or wrong: a sender by hand says it (sender.py).

    tests/active/receiving.py --server build/release/bin/keydb-server [--only TEXT] [--threads N]
"""
import argparse
import os
import random
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
for folder in (os.path.join(TOP, "tests", "replication"), os.path.join(TOP, "tests", "differential"), HERE):
    sys.path.insert(0, folder)

from group import wait_until        # noqa: E402
from harness import Connection, Server, encode, exchange_all      # noqa: E402
from sender import COUNTER_BITS, ENTRIES, HELLO, LARGES, MAKES, OVERWRITES, STATE, STOPPED, WANT       # noqa: E402
from sender import Sender, frame, ids, now_stamp, varint, vector       # noqa: E402


class Node:
    """A node that is told to receive from a sender by hand."""

    def __init__(self, options, more=()):
        self.server = Server(options.server, ["--active-replica", "yes", "--enable-debug-command", "yes", *more],
                             threads=options.threads)
        self.connection = Connection(self.server.port, 20)
        self.sender = Sender()
        self.follow(self.sender)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sender.close()
        self.connection.close()
        self.server.stop()

    def follow(self, sender):
        self.sender = sender
        self.ask("REPLICAOF", "127.0.0.1", sender.port)

    def ask(self, *words):
        kind, value = self.connection.command(*words)
        return int(value) if kind == ":" else value

    def has(self, key, value):
        wait_until(lambda: self.ask("GET", key) == value.encode(), 60, "%s is %s" % (key, value[:20]))

    def lines(self, text):
        return [line for line in self.server.log(100000).splitlines() if "Link to the peer" in line and text in line]


def entries_and_beats(options):
    """Entries are placed in their order, beats are heard behind them, large words come whole."""
    with Node(options) as node:
        sender = node.sender
        assert sender.begin() == 0
        sender.send("SET", "a", "1")
        sender.beat()
        sender.send("INCR", "a", overwrites=False)
        node.has("a", "2")
        for size in (32767, 32768, 100000, 5 << 20):
            sender.send("SET", "large", "x" * size)
            sender.send("APPEND", "large", "end", overwrites=False)
            wait_until(lambda: node.ask("STRLEN", "large") == size + 3, 20, "a large word")
        sender.beat()
        body, larges = sender.entry("SET", "slowly", "y" * 70000)
        data = frame(LARGES, body, larges)
        for at in range(0, len(data), 7001):
            sender.say(data[at:at + 7001])
        node.has("slowly", "y" * 70000)


def many_keys(options):
    """An entry with thousands of keys owns the gate, also as the first one."""
    for first in (5000, 3):
        with Node(options) as node:
            sender = node.sender
            sender.begin()
            for count in (first, 5000):
                sender.send_many([("SET", "k%d" % number, "1") for number in range(count)])
                sender.send("SET", "end", str(count))
                node.has("end", str(count))
            assert node.ask("DBSIZE") == 5001


def repeated(options):
    """What is here already is dropped, and the link goes on."""
    with Node(options) as node:
        sender = node.sender
        sender.begin()
        body, _ = sender.entry("INCR", "n", overwrites=False)
        for _ in range(3):
            sender.say(frame(ENTRIES, body))
        sender.send("SET", "end", "1")
        node.has("end", "1")
        assert node.ask("GET", "n") == b"1"


def a_database_that_is_not_here(options):
    """Operations of it are counted and passed by, also those that name it by being behind another one."""
    with Node(options) as node:
        sender = node.sender
        sender.begin()
        for db in (99, (1 << 31) - 2):
            body, _ = sender.entry("SET", "k", "1", db=db)
            for word in (b"k", b"other"):
                body += bytes([0]) + varint(1) + bytes([OVERWRITES | 1 << 3]) + varint(3)
                body += b"".join(varint(len(each)) + each for each in (b"SET", word, b"2"))
                sender.last += 1
            sender.say(frame(ENTRIES, body))
            sender.send("SET", "end", str(db))
            node.has("end", str(db))
        assert node.ask("DBSIZE") == 1
        assert "active_operations_unknown:6" in node.ask("INFO", "replication").decode()


def a_gap(options):
    """Where something is missing nothing is placed; the node asks anew for what is behind the last entry."""
    with Node(options) as node:
        sender = node.sender
        sender.begin()
        sender.send("SET", "k", "1")
        node.has("k", "1")
        here = sender.last
        sender.send("SET", "k", "wrong", prev=here + 5, stamp=here + 9)
        assert sender.is_closed()
        sender.last = here
        assert sender.begin() == here
        sender.send("SET", "end", "1")
        node.has("end", "1")
        assert node.ask("GET", "k") == b"1"


def lies(options):
    """Who breaks the rules is cut off, with a line that says why; the data stay."""
    def out_of_order(sender):
        sender.say(frame(STATE, b"x")[:1] + b"\xff" * 12)

    says = {
        "there is no such frame": lambda sender: sender.say(b"\xff\xff\xff"),
        "operations that are missing here": lambda sender: sender.beat(deeds=sender.last + (5 << 14)),
        "a second hello": lambda sender: sender.hello(),
        "only a receiver says": lambda sender: sender.say(frame(WANT, b"\0" * 8 + vector({}, 0))),
        "a number is too long": out_of_order,
        "no origin has this number": lambda sender: sender.say(frame(ENTRIES, b"\x01\x07\0\0\0\0")),
        "it ends too early": lambda sender: sender.say(frame(ENTRIES, sender.entry("SET", "k", "2")[0][:-1])),
        "there is no such database": lambda sender: sender.send("SET", "k", "2", db=1 << 31),
    }
    with Node(options) as node:
        sender = node.sender
        sender.begin()
        sender.send("SET", "k", "1")
        node.has("k", "1")
        for reason, say in says.items():
            here = sender.last
            say(sender)
            assert sender.is_closed(), reason
            wait_until(lambda: node.lines(reason), 20, "the log says '%s'" % reason)
            sender.last = here
            assert sender.begin() == here, reason
        assert node.ask("GET", "k") == b"1"


def beats_of_changes(options):
    """From the version on that has them beats say what has changed. Who says a change that is none is cut off."""
    def clock(sender):
        return max(now_stamp(), sender.last + 1)

    says = {
        "a change of nothing": lambda sender: sender.beat_of_changes(clock(sender), sender.deeds, gone=(77,)),
        "there was no such word before": lambda sender: sender.beat_of_changes(clock(sender), sender.deeds, again=True),
        "operations that are missing here": lambda sender: sender.beat(deeds=sender.last + (5 << 14)),
    }
    with Node(options) as node:
        sender = node.sender
        here = 0
        for number, (reason, say) in enumerate(says.items()):
            assert sender.begin(versions=(1, 4)) == here
            sender.send("SET", "k", str(number))
            node.has("k", str(number))
            if "before" not in reason:
                for _ in range(3):
                    sender.beat()
                sender.beat_of_changes(clock(sender), sender.deeds, again=True)
                sender.send("SET", "k", "behind %d" % number)
                node.has("k", "behind %d" % number)
            here = sender.last
            say(sender)
            assert sender.is_closed(), reason
            wait_until(lambda: node.lines(reason), 20, "the log says '%s'" % reason)
            sender.last = here


def members_that_are_wrong(options):
    """What a member says wrongly of others cannot be seen; that their writes are lost by it is in the log."""
    def logged(node, text):
        wait_until(lambda: text in node.server.log(100000), 20, "the log says '%s'" % text)

    with Node(options) as node:
        sender = node.sender
        sender.begin()
        here = sender.last
        sender.beat(ahead_ms=3000)
        sender.send("SET", "k", "1", prev=here, stamp=here + (1 << COUNTER_BITS) if here else now_stamp())
        sender.send("SET", "end", "1", stamp=sender.last + 1)
        node.has("end", "1")
        logged(node, "A node of the group is wrong")
        assert node.ask("EXISTS", "k") == 0
    for said, text in (("closed", "has ended, and no later one is known"), ("removed", "This node was removed")):
        with Node(options) as node:
            sender = node.sender
            sender.accept()
            sender.handshake()
            kind, body = sender.read()
            name, origin = (int.from_bytes(body[at:at + 8], "big") ^ int.from_bytes(body[at + 8:at + 16], "big")
                            for at in (2, 18))
            assert kind == HELLO
            sender.hello()
            sender.beat(**{said: (origin if said == "closed" else name,)})
            logged(node, text)


def no_hello(options):
    """Nothing counts before the hello."""
    with Node(options) as node:
        sender = node.sender
        sender.accept()
        sender.handshake()
        sender.send("SET", "k", "1")
        assert sender.is_closed()
        wait_until(lambda: node.lines("before its hello"), 20, "the log says so")
        assert node.ask("EXISTS", "k") == 0


def other_versions(options):
    """A version that is not known here is refused by name."""
    with Node(options) as node:
        sender = node.sender
        sender.accept()
        sender.handshake()
        sender.hello(versions=(7, 9))
        assert sender.is_closed()
        wait_until(lambda: node.lines("versions 7 to 9"), 20, "the log says so")


def other_servers(options):
    """A server of another kind is asked for its data as a replica asks."""
    with Node(options) as node:
        sender = node.sender
        for capa in (b"+OK", b"+OK active-replica", b"-ERR what?"):
            sender.accept()
            assert sender.handshake(capa=capa)[:2] == [b"PSYNC", b"?"]
            sender.close()
            sender = Sender()
            node.ask("REPLICAOF", "NO", "ONE")
            node.follow(sender)


def held(options):
    """What waits for CLIENT PAUSE is kept, small and large, and comes in its order."""
    with Node(options) as node:
        sender = node.sender
        sender.begin()
        sender.beat()
        node.ask("CLIENT", "PAUSE", "100000", "WRITE")
        for number in range(2000):
            sender.send("RPUSH", "list", str(number), overwrites=False)
        sender.send("SET", "large", "z" * (1 << 20))
        sender.beat()
        assert node.ask("EXISTS", "list") == 0
        node.ask("CLIENT", "UNPAUSE")
        wait_until(lambda: node.ask("STRLEN", "large") == 1 << 20, 20, "all of it")
        assert [int(value) for _, value in node.ask("LRANGE", "list", "0", "-1")] == list(range(2000))


def beside_clients(options):
    """Frames of many entries, while clients of all workers write to the same keys: nothing is lost."""
    with Node(options) as node:
        sender = node.sender
        sender.begin()
        clients = [Connection(node.server.port, 20) for _ in range(4)]
        for _ in range(200):
            sender.say(b"".join(frame(ENTRIES, sender.entry("INCR", "n%d" % random.randrange(50), overwrites=False)[0])
                                for _ in range(100)))
            jobs = [(client, encode(("INCR", "n%d" % random.randrange(50))), 1) for client in clients]
            assert all(replies[0][0] == ":" for replies in exchange_all(jobs))
        sender.send("SET", "end", "1")
        node.has("end", "1")
        total = sum(int(node.ask("GET", "n%d" % number) or 0) for number in range(50))
        assert total == 200 * 104, total


def asks_nobody_else(options):
    """While one node makes its state no other one is asked; when it streams after all, or goes, they are."""
    for ending in ("streams", "goes", "lies"):
        with Node(options, ["--multi-master", "yes"]) as node:
            first, second = node.sender, Sender()
            first.begin()
            first.say(frame(MAKES, b""))
            wait_until(lambda: "master_sync_in_progress:1" in node.ask("INFO", "replication").decode(), 20, "it waits")
            node.ask("REPLICAOF", "127.0.0.1", second.port)
            second.accept()
            second.handshake()
            second.hello()
            assert second.read()[0] == 1       # its hello
            second.socket.settimeout(2.5)      # the answer to it comes within a second, else
            try:
                raise AssertionError("it asks: frame of kind %d" % second.read()[0])
            except TimeoutError:
                second.socket.settimeout(20)
            if ending == "streams":
                first.say(frame(STOPPED, ids(())))
            elif ending == "goes":
                first.socket.close()
            else:
                first.say(frame(MAKES, b"x"))
                wait_until(lambda: node.lines("a frame with a body"), 20, "the log says so")
            assert second.read()[0] == WANT
            second.close()


def before_many(options):
    """Entries that belong before thousands of others take long. Clients are served meanwhile."""
    with Node(options) as node:
        sender = node.sender
        sender.begin()
        sender.beat()
        node.ask("RPUSH", "list", "first")
        least = max(now_stamp(), sender.last) + (1 << COUNTER_BITS)
        wait_until(lambda: now_stamp() > least + (2000 << COUNTER_BITS), 20, "the clock goes on")
        many = b"".join(encode(("RPUSH", "list", "x")) for _ in range(12000))
        assert all(kind == ":" for kind, _ in node.connection.exchange(many, 12000))
        sender.say(frame(ENTRIES, b"".join(
            sender.entry("RPUSH", "list", "y", overwrites=False, stamp=least + number)[0] for number in range(500))))
        begin = time.monotonic()
        node.ask("PING")
        assert time.monotonic() - begin < 1, "a client waited for %.1f s" % (time.monotonic() - begin)
        wait_until(lambda: node.ask("LLEN", "list") == 12501, 100, "all of it")
        assert [value for _, value in node.ask("LRANGE", "list", "0", "501")] == [b"first"] + [b"y"] * 500 + [b"x"]


TESTS = [before_many, entries_and_beats, many_keys, repeated, a_database_that_is_not_here, a_gap, lies,
         beats_of_changes, members_that_are_wrong, no_hello, other_versions, other_servers, asks_nobody_else, held,
         beside_clients]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    passed = 0
    for test in TESTS:
        if options.only in test.__name__:
            test(options)
            passed += 1
            print("passed: %s" % test.__doc__.strip(), flush=True)
    print("%d passed, 0 failed" % passed)


if __name__ == "__main__":
    main()
