#!/usr/bin/env python3
"""What an active node of ours says to the receiver of a link, and what becomes of receivers that lie.

    tests/active/sending.py --server build/release/bin/keydb-server

The receiver is frames.py: it checks that entries of an origin come in order, each naming the one before, that beats
speak of what came before them, and that nothing comes which was not asked for.
"""
import argparse
import os
import random
import re
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
for folder in (os.path.join(TOP, "tests", "differential"), HERE):
    sys.path.insert(0, folder)

import frames       # noqa: E402
from frames import Link     # noqa: E402
from harness import Server, encode      # noqa: E402

ACTIVE = ["--active-replica", "yes", "--multi-master", "yes", "--enable-debug-command", "yes"]


def check_chain(link, origin, behind=0):
    """Each entry names the one before; each beat is true of what came before it, and of what comes after."""
    last, count = behind, 0
    there = [entry.stamp if entry.origin == origin else 0 for entry in link.entries]
    promised = [0] * (len(link.entries) + 1)
    for beat in link.beats:
        if origin in beat.vector:
            promised[beat.behind] = max(promised[beat.behind], beat.vector[origin])
            assert beat.deeds[origin] <= behind or beat.deeds[origin] in there[:beat.behind], \
                "a beat speaks of what did not come before it"
    floor = 0
    for i, entry in enumerate(link.entries):
        floor = max(floor, promised[i])
        if entry.origin != origin:
            continue
        assert entry.prev <= last < entry.stamp, \
            "entry %d: prev %d, last %d, stamp %d" % (i, entry.prev, last, entry.stamp)
        assert entry.stamp > floor, "an entry breaks the promise of a beat before it"
        last, count = entry.stamp, count + 1
    return count


def hello_and_stream(server):
    for i in range(1000):
        server.ask("SET", "before:%d" % i, i)
    with Link(server.port) as link:
        hello = link.greet()
        assert hello.versions == (1, 4) and hello.ready and hello.origin in hello.vector
        link.want({hello.origin: 0})
        link.want({})
        link.until_entries(1000)
        link.want({})
        assert link.entries[0].words() == [[b"SET", b"before:0", b"0"]]
        assert link.entries[0].ops[0].key_index == 1 and link.entries[0].ops[0].overwrites
        link.until_beat()
        began = time.monotonic()
        server.ask("INCR", "counter")
        link.until_entries(1001)
        assert time.monotonic() - began < 1, "an entry waits until somebody writes more"
        assert link.entries[1000].words() == [[b"INCR", b"counter"]] and not link.entries[1000].ops[0].overwrites
        server.pipe([["MULTI"], ["SET", "a", "1"], ["SELECT", "3"], ["RPUSH", "l", "x"], ["EXEC"], ["SELECT", "0"]])
        link.until_entries(1002)
        assert link.entries[1001].words() == [[b"SET", b"a", b"1"], [b"RPUSH", b"l", b"x"]]
        assert [op.db for op in link.entries[1001].ops] == [0, 3]
        server.ask("FLUSHALL")
        link.until_entries(1003)
        assert link.entries[1002].flush and link.entries[1002].ops[0].key_index == 0
        link.until_beat(2)
        assert check_chain(link, hello.origin) == 1003
        assert link.beats[-1].vector[hello.origin] > link.entries[-1].stamp
        assert [word["origin"] for word in link.beats[-1].words] == [hello.origin]


def large_words(server):
    value = os.urandom(3 << 20)
    with Link(server.port) as link:
        hello = link.greet()
        link.want({hello.origin: hello.vector[hello.origin]})
        server.ask("SET", "large", value)
        server.ask("SET", "middle", value[:20000])
        server.ask("RPUSH", "l", value[:40000], b"x", value[:50000])
        link.until_entries(3)
        assert [entry.words()[0][2:] for entry in link.entries] == \
            [[value], [value[:20000]], [value[:40000], b"x", value[:50000]]]


def nothing_unasked(server):
    with Link(server.port) as link:
        hello = link.greet()
        server.ask("SET", "k", "v")
        link.until_beat(2)
        beat = link.beats[-1]
        assert not link.entries and not beat.vector and not beat.deeds and not beat.words
        assert hello.origin in beat.offers
        link.want({link.origin: 0, hello.origin: 0})
        link.until(lambda: link.stopped)
        assert link.stopped == [{link.origin}], "what is the receiver's own is not sent back"


def stop_and_want_again(server):
    with Link(server.port) as link:
        hello = link.greet()
        have = hello.vector[hello.origin]
        link.want({hello.origin: have})
        server.ask("SET", "k", "1")
        link.until_entries(1)
        link.stop([hello.origin])
        link.until(lambda: link.stopped)
        for i in range(100):
            server.ask("SET", "k", i)
        link.until_beat(2)
        assert len(link.entries) == 1 and not link.beats[-1].vector and hello.origin in link.beats[-1].offers
        link.want({hello.origin: link.entries[-1].stamp})
        link.until_entries(101)
        link.beats = []
        assert check_chain(link, hello.origin, have) == 101


def comes_back(server):
    with Link(server.port) as link:
        hello = link.greet()
        link.want({hello.origin: hello.vector[hello.origin]})
        for i in range(200):
            server.ask("SET", "k", i)
        link.until_entries(100)
        have = link.entries[99].stamp
    for i in range(200, 300):
        server.ask("SET", "k", i)
    with Link(server.port) as link:
        hello = link.greet(vector={hello.origin: have}, wanted=[hello.origin])
        link.until_entries(200)
        assert link.entries[0].prev == have and link.entries[0].words() == [[b"SET", b"k", b"100"]]
        assert check_chain(link, hello.origin, have) == 200


def strangers(server):
    """Who only says hello is no member, which all would wait for."""
    def members():
        fields = server.ask("INFO", "replication")[1].decode()
        return int(fields.split("active_members:")[1].split()[0])

    links = [Link(server.port) for _ in range(20)]
    for link in links:
        link.send(frames.frame_bytes(frames.HELLO, link.hello_body()))
        link.until(lambda link=link: link.hello)
    assert members() == 1, members()
    links[0].want({links[0].hello.origin: 0})
    links[0].until_beat()
    assert members() == 2, members()
    links[1].want({})
    links[1].until_beat()
    names = re.findall("name=([0-9a-f-]+)", server.ask("INFO", "replication")[1].decode())
    assert len(names) == 2, names
    kind, text = server.ask("KEYDB.ACTIVE", "FORGET", names[0])
    assert kind == "-" and b"with FORCE" in text, text
    kind, text = server.ask("KEYDB.ACTIVE", "FORGET", names[0], "FORCE")
    assert kind == "+" and text.startswith(b"OK, but 1 of"), text
    assert server.ask("KEYDB.ACTIVE", "FORGET", names[1], "FORCE") == ("+", b"OK")
    assert members() == 1, members()
    for link in links:
        link.close()


def newcomer(server):
    """It gets a state, a file in parts, and nothing else before it."""
    server.pipe([["SET", "k%d" % i, b"v" * 1000] for i in range(3000)])
    with Link(server.port) as link:
        hello = link.greet(ready=0)
        link.want({hello.origin: 0})
        link.want({})
        link.until(lambda: link.states and not link.states[-1])
        assert not link.entries and link.states[0].startswith(b"REDIS") and sum(map(len, link.states)) > 20000
        link.want({hello.origin: 0})
        link.until_entries(3000)


def history_is_cut(server):
    """Who lacks what is gone gets a state; who wants it nevertheless has to come again."""
    with Link(server.port) as link:
        hello = link.greet()
        link.want({hello.origin: 0})
        for _ in range(8):
            server.pipe([["SET", "k", b"v" * 1000] for i in range(500)])
            link.until_beat(2)
        have = link.entries[-1].stamp
    server.ask("SET", "k", "last")
    with Link(server.port) as link:
        assert link.greet(vector={hello.origin: have}).cut[hello.origin] > 0
        link.want({hello.origin: 0})
        link.until_closed()
    with Link(server.port) as link:
        link.greet(vector={hello.origin: have}, wanted=[hello.origin])
        link.until_entries(1)
        assert link.entries[0].words() == [[b"SET", b"k", b"last"]]
    with Link(server.port) as link:
        link.greet(vector={hello.origin: 0})
        link.until(lambda: link.states and not link.states[-1])


def beats_of_changes(server):
    """A receiver that knows the form gets in each beat what has changed, and knows with it what a whole one says. A
    start that has ended costs its bytes once."""
    with Link(server.port) as whole, Link(server.port) as link:
        hello = whole.greet()
        link.greet(versions=(1, 4), closed=[random.getrandbits(60) + 1 for _ in range(1000)])
        for each in (whole, link):
            each.want({hello.origin: 0})
        link.until_beat(2)
        server.ask("SET", "k", "1")
        for each in (whole, link):
            each.until_entries(1)
            each.until_beat(3)
        there, here = whole.beats[-1], link.beats[-1]
        assert len(here.closed) == len(there.closed) == 1000 and here.closed == there.closed
        assert here.deeds == there.deeds == {hello.origin: link.entries[0].stamp}
        assert here.offers.keys() == there.offers.keys() and here.members == there.members
        assert here.vector.keys() == there.vector.keys() and here.vector[hello.origin] > here.deeds[hello.origin]
        assert [word["name"] for word in here.words] == [word["name"] for word in there.words] == [hello.name]
        assert here.words[0]["vector"][hello.origin] == here.vector[hello.origin]
        assert here.words[0]["closed"] == here.closed
        assert there.bytes > 16000 and here.bytes < 200, (there.bytes, here.bytes)


def own_saved(link):
    link.until_beat(2)
    return next(word for word in link.beats[-1].words if word["name"] == link.hello.name)["saved"]


def saved_of(server, act):
    """Does a change, and gives what the node says is on its disk of itself, until it says so of the change, or the last
    time if it does not within a second."""
    with Link(server.port) as link:
        hello = link.greet()
        link.want({hello.origin: hello.vector[hello.origin]})
        server.ask("SET", "saved", str(time.monotonic()))
        link.until_entries(1)
        act()
        end = time.monotonic() + (1 if act is nothing else 20)
        while own_saved(link).get(hello.origin, 0) < link.entries[0].stamp and time.monotonic() < end:
            pass
        return own_saved(link).get(hello.origin, 0) >= link.entries[0].stamp


def nothing():
    pass


def what_is_saved(server):
    """Without files nothing is on the disk; with RDB files what the last one has."""
    def save():
        server.ask("BGSAVE")

    assert not saved_of(server, nothing)
    assert saved_of(server, save)
    assert not saved_of(server, nothing)
    assert saved_of(server, lambda: server.ask("SAVE"))


def what_is_saved_by_commands(server):
    """With an append-only file what is synced; an RDB file counts again when that is switched off."""
    def on():
        server.ask("CONFIG", "SET", "appendonly", "yes")

    def sync():
        server.ask("CONFIG", "SET", "appendfsync", "always")
        server.ask("SET", "sync", "1")

    server.ask("CONFIG", "SET", "appendfsync", "no")
    assert saved_of(server, on)
    assert not saved_of(server, nothing)
    assert saved_of(server, sync)
    server.ask("CONFIG", "SET", "appendonly", "no")
    assert not saved_of(server, nothing)


history_is_cut.options = ["--active-history-limit", "1mb"]


def state_that_takes_long(server):
    """A receiver that knows the frame is told at once, and again, that a state is made for it; one that does not know
    it hears something, too."""
    for first in range(0, 8000, 500):
        server.pipe([["SET", "k:%d" % i, b"v" * 1000] for i in range(first, first + 500)])
    with Link(server.port) as link:
        hello = link.greet()
        link.until_beat(2)
    server.ask("CONFIG", "SET", "rdb-key-save-delay", "300")       # microseconds: 2.4 s
    began = time.monotonic()
    with Link(server.port) as link:
        link.greet(vector={hello.origin: 0}, versions=(1, 3))
        link.until(lambda: link.makes or link.states)
        assert link.makes and time.monotonic() - began < 1, "it was told after %.1f s" % (time.monotonic() - began)
        link.until(lambda: link.states)
        assert time.monotonic() - began > 2 and link.makes >= 3, "it was told %d times" % link.makes
        link.until(lambda: not link.states[-1])
        link.until_beat()
        assert not link.stopped
    with Link(server.port) as link:
        link.greet(vector={hello.origin: 0}, versions=(1, 2))
        kinds = []
        while not link.states:
            kinds.append(link.step())
        assert not link.makes and kinds.count(frames.STOPPED) >= 2, kinds
    with Link(server.port) as link:     # it had to give first: then it hears something each second, later on, too
        ahead = (int(time.time() * 1000) + 500) << frames.COUNTER_BITS
        link.greet(vector={hello.origin: 0}, deeds={hello.origin: ahead}, versions=(1, 3))
        while not link.makes:
            server.ask("SET", "k", "v")
            link.want({})
            link.step()
        link.until(lambda: link.states and not link.states[-1])
        assert link.makes
        link.until(lambda: link.step() == frames.STOPPED)


state_that_takes_long.options = ["--active-history-limit", "1mb"]


def slow_receiver(server):
    """It reads nothing while 100 MB are written; the node keeps little for it alone."""
    with Link(server.port, timeout=60) as link:
        hello = link.greet()
        link.want({hello.origin: hello.vector[hello.origin]})
        link.until_beat()
        for i in range(1000):
            server.pipe([["SET", "k%d" % (j % 10), b"v" * 1000] for j in range(100)])
        held = [int(line.split(b":")[1]) for line in server.ask("INFO", "clients")[1].split(b"\r\n")
                if line.startswith(b"client_recent_max_output_buffer:")]
        assert max(held + [0]) < 8 << 20, held
        link.until_entries(100000, 60)
        assert check_chain(link, hello.origin, hello.vector[hello.origin]) == 100000
        link.beats = []
        link.until_beat()


def bytes_of_a_set(server):
    with Link(server.port, timeout=60) as link:
        hello = link.greet()
        link.want({hello.origin: hello.vector[hello.origin]})
        link.until_beat()
        before = link.received
        for i in range(200):
            server.pipe([["SET", "key:%012d" % (i * 100 + j), b"v" * 64] for j in range(100)])
        link.until_entries(20000, 60)
        each = (link.received - before) / 20000
    print("    %.1f bytes a SET of 16 + 64" % each)
    assert each <= 80 + 24


def liars(server):
    beat = frames.fixed(1 << 55) + frames.varint(0) * 7

    def at_first(data):
        return lambda link: link.send(data)

    def later(data):
        def run(link):
            link.greet()
            link.send(data)
        return run

    def say_hello(link, body):
        link.send(frames.frame_bytes(frames.HELLO, body))

    def wants_twice(link):
        hello = link.greet()
        link.want({hello.origin: 0})
        link.want({hello.origin: 0})

    def wants_much(link):
        link.greet()
        link.want({one: 0 for one in range(1, 20000)})

    def is_the_server(link):
        hello = link.greet()
        with Link(server.port) as other:
            other.send(frames.frame_bytes(frames.HELLO, other.hello_body(name=hello.uuid)))
            other.until_closed()
        link.send(b"\0")

    rows = [
        ("garbage", at_first(b"\xee" * 100000)),
        ("a command", at_first(b"*1\r\n$4\r\nPING\r\n")),
        ("want before hello", at_first(frames.frame_bytes(frames.WANT, frames.fixed(1 << 55) + b"\0"))),
        ("another origin", lambda link: say_hello(link, link.hello_body(origin=os.urandom(16)))),
        ("unknown versions", lambda link: say_hello(link, link.hello_body(versions=(7, 9)))),
        ("a hello with more behind it", lambda link: say_hello(link, link.hello_body() + b"x")),
        ("a hello that is cut", lambda link: say_hello(link, link.hello_body()[:-3])),
        ("a body of 2 GB", at_first(b"\1\xff\xff\xff\xff\7" + b"x" * (20 << 20))),
        ("a second hello", lambda link: (link.greet(), say_hello(link, link.hello_body()))),
        ("a beat", later(frames.frame_bytes(frames.BEAT, beat))),
        ("a state", later(frames.frame_bytes(frames.STATE, b"x"))),
        ("entries", later(frames.frame_bytes(frames.ENTRIES, b"x"))),
        ("an unknown frame", later(b"\x63\0")),
        ("wants twice", wants_twice),
        ("wants much", wants_much),
        ("the server itself", is_the_server),
    ]
    for name, run in rows:
        lines = server.log().count("active node")
        with Link(server.port) as link:
            run(link)
            link.until_closed()
        assert server.log().count("active node") > lines, "%s: no line in the log" % name
        assert server.ask("PING") == ("+", b"PONG")


def cut_anywhere(server):
    for size in range(0, 90, 7):
        with Link(server.port) as link:
            link.send(frames.frame_bytes(frames.HELLO, link.hello_body())[:size])
    for _ in range(20):
        with Link(server.port) as link:
            link.want({link.greet().origin: 0})
            link.sock.recv(1)
    assert server.ask("PING") == ("+", b"PONG")


def one_byte_at_a_time(server):
    with Link(server.port) as link:
        body = frames.frame_bytes(frames.HELLO, link.hello_body())
        for i in range(len(body)):
            link.send(body[i:i + 1])
        link.until(lambda: link.hello)
        link.want({link.hello.origin: link.hello.vector[link.hello.origin]})
        server.ask("SET", "k", "v")
        link.until_entries(1)


def while_writers_write(server):
    """Links come and go, stop and want, while four connections write; nothing is lost or comes twice."""
    over = threading.Event()

    def write(number):
        own, i = server.connect(), 0
        while not over.is_set():
            own.exchange(encode(["INCR", "n%d" % number]) + encode(["RPUSH", "l%d" % number, str(i)]) +
                         encode(["SET", "k", "v" * (i % 300)]), 3)
            i += 1
        own.close()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    try:
        have = None
        for turn in range(20):
            with Link(server.port) as link:
                hello = link.greet(vector={} if have is None else {have[0]: have[1]})
                if have is None:
                    have = hello.origin, hello.vector[hello.origin]
                link.want({have[0]: have[1]})
                link.until_entries(500 + 50 * turn)
                if turn % 3 == 0:
                    link.stop([have[0]])
                    link.until(lambda: link.stopped)
                    link.until_beat(1)
                    there = len(link.entries)
                    link.want({have[0]: link.entries[-1].stamp})
                    link.until_entries(there + 300)
                check_chain(link, *have)
                have = have[0], link.entries[-1].stamp
    finally:
        over.set()
        for writer in writers:
            writer.join()


class Node(Server):
    """A server, and one connection to it."""

    def __init__(self, binary, threads, options):
        super().__init__(binary, [*ACTIVE, *options], threads)
        self.own = self.connect()

    def ask(self, *words):
        return self.pipe([words])[0]

    def pipe(self, commands):
        return self.own.exchange(b"".join(encode(words) for words in commands), len(commands))


TESTS = [hello_and_stream, beats_of_changes, what_is_saved, what_is_saved_by_commands, large_words, nothing_unasked,
         stop_and_want_again, comes_back, one_byte_at_a_time, strangers, newcomer, history_is_cut,
         state_that_takes_long, slow_receiver, bytes_of_a_set, liars, cut_anywhere, while_writers_write]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--only", help="tests with this in their names")
    options = parser.parse_args()
    passed = failed = 0
    for threads in options.threads:
        for test in TESTS:
            if options.only and options.only not in test.__name__:
                continue
            with Node(options.server, threads, getattr(test, "options", [])) as server:
                began = time.monotonic()
                try:
                    test(server)
                    assert server.ask("PING") == ("+", b"PONG")
                    server.process.terminate()
                    assert server.process.wait(20) == 0, "it did not end well"
                    outcome = "ok"
                    passed += 1
                except Exception as problem:    # whatever it is, the others run
                    outcome = "FAILED: %s: %s" % (type(problem).__name__, problem)
                    failed += 1
                    traceback.print_exc()
                    print(server.log())
                print("%s, %d threads: %s (%.1f s)" % (test.__name__, threads, outcome, time.monotonic() - began),
                      flush=True)
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(failed != 0)


main()
