#!/usr/bin/env python3
"""Directed tests of active replication with processes, proxies and cuts.

    directed.py --server BIN --oracle BIN [--keydb BIN] [--nodes ours|keydb] [--only NAME,...] [--threads N]
                [--level short|core|whole] [--part K/N] [--must-fail NAME,...] [--list] [--case TEXT]

Each test starts nodes of its own. With --nodes keydb the nodes are those of KeyDB 6.3.4: it has known defects, and a
test that is named by --must-fail passes if it finds one. --case: only rows with this text in `rows`. --part: every N-th
test, from the K-th on. The last line counts tests.
"""
import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import certificates     # noqa: E402
import mesh as meshes       # noqa: E402
import picture as pictures      # noqa: E402
import rows as tables       # noqa: E402
from group import Wrong, wait_until     # noqa: E402
from harness import Lost, encode, exchange_all      # noqa: E402
from mesh import Kinds, Mesh, Node, show     # noqa: E402
from payloads import crc64      # noqa: E402
from union import Union     # noqa: E402

TESTS = {}
LEVELS = ("short", "core", "whole")
TICK_S = 0.004      # stamps of what comes behind it are later on every node of this machine


def test(level="short", only=None):
    """only: the kind of nodes that it is about."""
    def register(function):
        TESTS[function.__name__.replace("_", " ")] = (function, level, only)
        return function
    return register


class Env:
    def __init__(self, options):
        self.options = options
        self.kinds = Kinds(options.server, options.oracle, options.keydb)
        self.kind = options.nodes

    def mesh(self, count, topology="mesh", options=(), **more):
        return Mesh(self.kinds, [self.kind] * count, topology, options, self.options.threads, **more)

    def redis(self):
        return Node(self.kinds, "redis", 90, active=False)

    def expect(self, mesh, commands, expected):
        """Every node answers so."""
        self.expect_of(mesh.running(), commands, expected)

    def expect_of(self, nodes, commands, expected):
        for node in nodes:
            for words, value in zip(commands, expected):
                found = pictures.plain(node.call(*words))
                if found != value and not (isinstance(value, int) and found == b"%d" % value):
                    raise Wrong("%s: %s is %r, not %r" % (node.name, show(words), found, value))


def in_turn(node, *commands):
    for words in commands:
        node.ask(*words.split())
    time.sleep(TICK_S)


# ------------------------------------------------------------------------------------------- the promises, line by line

@test()
def everything_arrives(env):
    """Writes on any node are on all, once, in every topology."""
    for topology in meshes.TOPOLOGIES:
        with env.mesh(3, topology) as mesh:
            mesh.settle(30)
            for node in mesh.nodes:
                node.ask("INCR", "n")
                node.ask("SADD", "members", node.index)
                node.ask("RPUSH", "list", node.index)
                mesh.wait_for_all()
            mesh.settle()
            env.expect(mesh, [("GET", "n"), ("SCARD", "members"), ("LRANGE", "list", 0, -1)],
                       [b"3", b"3", [b"0", b"1", b"2"]])


@test()
def counter_in_a_cut(env):
    """A counter at 1, cut, INCR three times here and once there: 5. So much else is written that a full sync follows
    where the stream is kept for a while only."""
    backlog = ["--repl-backlog-size", "16384"] if env.kind == "keydb" else []
    with env.mesh(2, options=backlog) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        a.ask("SET", "counter", 1)
        mesh.settle()
        mesh.cut()
        for _ in range(3):
            a.ask("INCR", "counter")
        b.ask("INCR", "counter")
        for node in (a, b):
            node.calls([["SET", "filler:%d:%d" % (node.index, number % 100), b"x" * 1000] for number in range(2000)])
        mesh.heal()
        mesh.settle(20)
        env.expect(mesh, [("GET", "counter")], [b"5"])


@test()
def both_sides_set(env):
    """Cut, SET b on both sides, healed: equal, the later one, in both orders."""
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        mesh.cut()
        in_turn(a, "SET first-a a")
        in_turn(b, "SET first-a b", "SET first-b b")
        in_turn(a, "SET first-b a")
        mesh.heal()
        mesh.settle(20)
        env.expect(mesh, [("GET", "first-a"), ("GET", "first-b")], [b"b", b"a"])


@test("core")
def both_sides_set_frozen(env):
    """The same, where the connections stay and nothing passes."""
    with env.mesh(2) as mesh, Union(mesh) as union:
        a, b = mesh.nodes
        mesh.settle(30)
        mesh.freeze()
        in_turn(a, "SET first-a a", "RPUSH list a")
        in_turn(b, "SET first-a b", "SET first-b b", "RPUSH list b")
        in_turn(a, "SET first-b a")
        mesh.heal()
        mesh.settle(20)
        env.expect(mesh, [("GET", "first-a"), ("GET", "first-b"), ("LRANGE", "list", 0, -1)],
                   [b"b", b"a", [b"a", b"b"]])
        union.check()


def increment(nodes, count, key, acknowledged, during=None):
    """INCRBY on several nodes at once; `acknowledged` gets what each node has acknowledged. during(step) may kill."""
    for step in range(count // 20):
        if during:
            during(step)
        jobs, alive = [], []
        for node in nodes:
            if node.process.poll() is None:
                try:
                    jobs.append((node.connection(), encode(["INCR", key]) * 20, 20))
                    alive.append(node)
                except OSError:
                    pass
        for node, result in zip(alive, exchange_all(jobs)):
            replies = result.replies if isinstance(result, Lost) else result
            acknowledged[node.index] += sum(1 for reply in replies if reply[0] == ":")
            if isinstance(result, Lost):
                node.forget()


@test()
def killed_while_counting(env):
    """kill -9 of one of three with an append-only file, in the middle of 10,000 increments on each: all are equal, and
    hold what was acknowledged."""
    total = 10000
    with env.mesh(3, options=["--appendonly", "yes", "--appendfsync", "everysec"]) as mesh:
        mesh.settle(30)
        acknowledged = {node.index: 0 for node in mesh.nodes}
        victim = mesh.nodes[2]

        def during(step):
            if step == total // 60:
                victim.kill()
                victim.start()

        increment(mesh.nodes, total, "counter", acknowledged, during)
        mesh.settle(30)
        value = int(mesh.nodes[0].ask("GET", "counter"))
        if value != sum(acknowledged.values()):
            raise Wrong("the counter is %d, acknowledged were %s = %d" % (
                value, acknowledged, sum(acknowledged.values())))


@test("whole")
def full_speed_load(env):
    """A load at full speed on one of a pair: the sizes are equal afterwards."""
    program = os.path.join(os.path.dirname(os.path.abspath(env.options.server)), "..", "bench", "load")
    with env.mesh(2, separate=True) as mesh:
        mesh.settle(30)
        subprocess.run([program, "--port", str(mesh.nodes[0].port), "--seconds", "3", "--connections", "8",
                        "--pipeline", "64", "--keys", "200000"], stdout=subprocess.DEVNULL, check=True, timeout=60)
        mesh.settle(30)
        sizes = [node.ask("DBSIZE") for node in mesh.nodes]
        if len(set(sizes)) != 1 or int(sizes[0]) < 1000:
            raise Wrong("sizes: %s" % sizes)


def fill(node, count, size, prefix="key"):
    """Values that differ and do not compress."""
    for at in range(0, count, 500):
        node.calls([["SET", "%s:%d" % (prefix, number), os.urandom(size)]
                    for number in range(at, min(at + 500, count))])


@test("whole")
def only_what_changed_crosses(env):
    """A node with much data is cut off for a while: only what changed crosses the link."""
    with env.mesh(2, separate=True) as mesh:
        a, b = mesh.nodes
        fill(a, 20000, 1000)
        mesh.settle(60)
        mesh.cut()
        before = [mesh.bytes_received(index) for index in (0, 1)]
        fill(a, 1000, 1000)
        fill(b, 500, 1000, "other")
        time.sleep(1)
        mesh.heal()
        mesh.settle(20)
        got = [mesh.bytes_received(index) - start for index, start in zip((0, 1), before)]
        changed = [500 * 1010, 1000 * 1010]
        for index in (0, 1):
            if got[index] > 1.3 * changed[index] + 100000:
                raise Wrong("%s received %d bytes for %d that changed" % (
                    mesh.nodes[index].name, got[index], changed[index]))


@test()
def history_is_for_who_lacks_it(env):
    """What all members have is kept as far as memory goes; what one that is away lacks is kept for it beyond that."""
    with env.mesh(2, options=["--journal-memory-limit", "4mb", "--active-history-limit", "256mb"]) as mesh:
        a, b = mesh.nodes
        for node in mesh.nodes:
            node.ask("DEBUG", "OPERATIONS", "STOP")
        mesh.settle(30)

        def kept():
            return int(a.info("replication")["active_history_bytes"])
        fill(a, 20000, 1000)
        wait_until(lambda: kept() < 2 << 20, 30, "what both have has gone")
        mesh.cut()
        fill(a, 20000, 1000)
        a.ask("INCR", "n")
        if kept() < 20000 * 1000:
            raise Wrong("%d bytes are kept for a node that lacks 20 MB" % kept())
        mesh.heal()
        wait_until(lambda: b.ask("GET", "n") == b"1", 30, "the other node has it")
        wait_until(lambda: kept() < 2 << 20, 30, "what both have has gone again")
        mesh.settle(30)
        if any("state_bytes=0" not in line for line in peer_lines(b)):
            raise Wrong("a state has crossed: %s" % peer_lines(b))


def peer_lines(node):
    return [value for name, value in node.info("replication").items() if name.startswith("active_peer")]


@test("whole")
def one_of_six_restarts(env):
    """It loads its own files, takes what it lacks once, and stays below 1.3 times its data."""
    with env.mesh(6, separate=True, options=["--appendonly", "yes"]) as mesh:
        a, victim = mesh.nodes[0], mesh.nodes[5]
        fill(a, 20000, 1000)
        mesh.settle(60)
        rss = victim.rss()
        before = mesh.bytes_received(5)
        victim.kill()
        fill(a, 1000, 1000)
        for number, node in enumerate(mesh.nodes[:5]):
            node.ask("SET", "while it was away:%d" % number, "v")
        victim.start()
        mesh.settle(60)
        got = mesh.bytes_received(5) - before
        if got > 1.3 * 1000 * 1010 + 400000:
            raise Wrong("%d bytes received for %d that changed" % (got, 1000 * 1010))
        if victim.rss() > 1.3 * rss + (16 << 20):
            raise Wrong("memory rose from %d to %d" % (rss, victim.rss()))


@test()
def join_with_data(env):
    """A node with data joins three with different data: the union."""
    with env.mesh(4, connected=False) as mesh:
        for node in mesh.nodes:
            for number in range(100):
                node.ask("SET", "of %d:%d" % (node.index, number), "v")
            in_turn(node, "SET shared %d" % node.index, "SADD members %d" % node.index)
        for receiver, sender in mesh.pairs:
            if 3 not in (receiver, sender):
                mesh.connect(receiver, sender)
        mesh.settle(40, mesh.nodes[:3])
        for receiver, sender in mesh.pairs:
            if 3 in (receiver, sender):
                mesh.connect(receiver, sender)
        mesh.settle(40)
        for node in mesh.nodes:
            for number in range(100):
                for other in range(4):
                    if node.ask("GET", "of %d:%d" % (other, number)) != b"v":
                        raise Wrong("%s lacks what node %d had" % (node.name, other))
        env.expect(mesh, [("GET", "shared")], [b"3"])


@test("core")
def ready_while_a_master_is_down(env):
    """INFO says up as long as the node serves; reads and writes go on."""
    with env.mesh(3) as mesh:
        mesh.settle(30)
        mesh.nodes[2].kill()
        end = time.monotonic() + 2
        while time.monotonic() < end:
            for node in mesh.nodes[:2]:
                fields = node.info("replication")
                status = [name for name, value in fields.items() if name.endswith("link_status") and value != "up"]
                if status or fields.get("loading", "0") != "0":
                    raise Wrong("%s: %s" % (node.name, status))
                node.ask("INCR", "n")
                node.ask("GET", "n")
            time.sleep(0.1)


@test()
def files_hold_what_peers_wrote(env):
    """Append-only file and several masters: after kill -9 of all, everything is there, whoever wrote it."""
    with env.mesh(3, options=["--appendonly", "yes", "--appendfsync", "always"]) as mesh:
        mesh.settle(30)
        for node in mesh.nodes:
            in_turn(node, "SET of-%d v" % node.index, "INCR n", "RPUSH list %d" % node.index, "HINCRBY h f 2",
                    "ZADD z %d m%d" % (node.index, node.index), "XADD x * f v", "PFADD p %d" % node.index)
        _, before = mesh.settle(20)
        mesh.cut()
        for node in mesh.nodes:
            node.kill()
        for node in mesh.nodes:
            node.start()
            seen = pictures.take(node)
            for place, look in before.items():
                if not pictures.same(look, seen.get(place), pictures.SOON_MS if env.kind == "keydb" else 0):
                    raise Wrong("%s has of %r %r after its start, before it was %r" % (
                        node.name, place, seen.get(place), look))
        mesh.heal()
        mesh.settle(30)


@test("core")
def snapshot_holds_what_peers_wrote(env):
    """The same from an RDB file; then the counters go on."""
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        in_turn(a, "SET a 1", "INCR n", "RPUSH list a")
        in_turn(b, "SET b 1", "INCR n", "RPUSH list b")
        mesh.settle(20)
        b.shut_down("SAVE")
        in_turn(a, "INCR n", "RPUSH list c", "SET a 2")
        b.start()
        in_turn(b, "INCR n")
        mesh.settle(30)
        env.expect(mesh, [("GET", "n"), ("LRANGE", "list", 0, -1), ("GET", "a")],
                   [b"4", [b"a", b"b", b"c"], b"2"])


@test("core")
def windows_exceeded(env):
    """One of three is cut off, and more is changed than the window holds: keys written on one side and blind SETs are
    exact, all nodes equal."""
    small = ["--active-window-size", "1048576"] if env.kind == "ours" else ["--repl-backlog-size", "16384"]
    with env.mesh(3, options=small) as mesh:
        a, b, c = mesh.nodes
        mesh.settle(30)
        a.calls([["SET", "n:%d" % number, 0] for number in range(500)])
        mesh.settle(20)
        mesh.isolate(2)
        for _ in range(40):
            for node in (a, c):
                node.calls([["INCR", "n:%d" % number] for number in range(500)])
                node.calls([["RPUSH", "list:%d" % number, b"x" * 50] for number in range(100)])
        for number in range(200):
            a.ask("SET", "only a:%d" % number, number)
            c.ask("SADD", "only c:%d" % number, number)
        in_turn(a, "SET blind 1")
        in_turn(c, "SET blind 2", "SET blind2 2")
        in_turn(b, "SET blind2 3")
        mesh.heal()
        mesh.settle(60)
        env.expect(mesh, [("GET", "only a:7"), ("SCARD", "only c:7"), ("GET", "blind"), ("GET", "blind2")],
                   [b"7", b"1", b"2", b"3"])


# ---------------------------------------------------------------------------------------------- the table of operations

def dump_of(node):
    node.ask("RPUSH", "dumped", "x", "y")
    dump = node.ask("DUMP", "dumped")
    node.ask("DEL", "dumped")
    return dump


def run_cases(mesh, cases):
    """All in one cut: what comes first on one node, then what comes second on the other."""
    a, b = mesh.nodes
    setups = [words for case in cases for words in case.setup]
    replies = a.calls(setups)
    mesh.settle(40)
    mesh.cut()
    for turn in ("first", "second"):
        for index, node in enumerate((a, b)):
            words = [each for case in cases for which, commands in (getattr(case, turn),) if which == index
                     for each in commands]
            for at in range(0, len(words), 500):
                node.calls(words[at:at + 500])
        time.sleep(TICK_S)
    mesh.heal()
    return replies


@test()
def rows(env):
    """Each write command meets each other change of its key in a cut, in both orders."""
    with env.mesh(2) as mesh, Union(mesh) as union, env.redis() as other:
        filler = tables.Filler(dump_of(mesh.nodes[0]))
        filler.migrate = other.port
        named = dict(tables.all_cases(filler, env.options.case))
        mesh.settle(30)
        run_cases(mesh, list(named.values()))
        mesh.wait_for_all(20)
        try:
            mesh.settle(20)
        except Wrong:
            explain(mesh, named)
            raise
        print("  %d cases" % len(named))
        for kind in ("redis", "ours") if env.kind == "ours" else ("redis",):
            compared, strange = union.check(kind)
            print("  %d keys as one %s holds them, %d not compared" % (compared, kind, strange))


def explain(mesh, named):
    """Which cases differ."""
    report = pictures.compare(mesh.nodes, [pictures.take(node) for node in mesh.nodes])
    told = set()
    for difference in report:
        (_, key), looks = difference
        prefix = key.rpartition(b":")[0]
        if prefix in named and prefix not in told:
            told.add(prefix)
            if len(told) <= 40:
                print("  differs: %s (%s)\n%s" % (named[prefix].name, "; ".join(map(show, named[prefix].setup)),
                                                  "\n".join("      %-16s %s" % (name, text[:200])
                                                            for name, _, text in looks)))
    print("  %d of %d cases differ" % (len(told), len(named)))


@test()
def results_written_by_hand(env):
    """A few of them, with the result that the order asks for; also with the nodes exchanged."""
    with env.mesh(2) as mesh:
        filler = tables.Filler(b"")
        cases, looks = [], []
        for number, (setup, first, second, look, value) in enumerate(tables.EXPECTED):
            for side in (0, 1):
                prefix = b"%d/%d" % (number, side)
                cases.append(tables.Case(look, filler.commands(setup, prefix), (side, filler.commands(first, prefix)),
                                         (1 - side, filler.commands(second, prefix))))
                if value == b"{far}":
                    value = b"%d" % filler.far
                if not (env.kind == "keydb" and "PEXPIRETIME" in look):
                    looks.append((cases[-1], filler.commands(look, prefix)[0], value))
        mesh.settle(30)
        run_cases(mesh, cases)
        mesh.wait_for_all(20)
        wrong = []
        for case, words, value in looks:
            for node in mesh.nodes:
                found = pictures.plain(node.call(*words))
                if found != value:
                    wrong.append("%s: %s is %r, not %r: %s | %d: %s | %d: %s" % (
                        node.name, show(words), found, value, "; ".join(map(show, case.setup)), case.first[0],
                        "; ".join(map(show, case.first[1])), case.second[0], "; ".join(map(show, case.second[1]))))
        if wrong:
            raise Wrong("%d of %d:\n  %s" % (len(wrong), 2 * len(looks), "\n  ".join(wrong[:20])))
        mesh.settle(20)


@test()
def flushes(env):
    """FLUSHDB and FLUSHALL against writes of the other side, in both orders."""
    with env.mesh(2) as mesh, Union(mesh) as union:
        a, b = mesh.nodes
        mesh.settle(30)
        for database in range(4):
            a.calls([["SELECT", database], ["SET", "old", 1], ["SET", "n", 1], ["RPUSH", "l", "a"], ["SELECT", 0]])
        mesh.settle(20)
        mesh.cut()
        # 0: flush, then writes; 1: writes, then flush; 2: both flush; 3: untouched
        a.calls([["SELECT", 0], ["FLUSHDB"], ["SELECT", 2], ["INCR", "n"], ["FLUSHDB"]])
        b.calls([["SELECT", 1], ["INCR", "n"], ["RPUSH", "l", "b"], ["SET", "new", 1], ["SELECT", 0]])
        time.sleep(TICK_S)
        b.calls([["INCR", "n"], ["RPUSH", "l", "b"], ["SET", "new", 1], ["SELECT", 2], ["INCR", "n"], ["FLUSHDB"],
                 ["INCR", "n"], ["SELECT", 3], ["INCR", "n"], ["SELECT", 0]])
        a.calls([["SELECT", 1], ["FLUSHDB"], ["SET", "after", 1], ["SELECT", 0]])
        mesh.heal()
        mesh.settle(20)
        for database, words, value in ((0, ["GET", "n"], b"1"), (0, ["LRANGE", "l", 0, -1], [b"b"]),
                                       (0, ["EXISTS", "old"], b"0"), (0, ["GET", "new"], b"1"),
                                       (1, ["DBSIZE"], b"1"), (1, ["GET", "after"], b"1"),
                                       (2, ["GET", "n"], b"1"), (2, ["DBSIZE"], b"1"), (3, ["GET", "n"], b"2")):
            for node in mesh.nodes:
                node.ask("SELECT", database)
                found = pictures.plain(node.call(*words))
                node.ask("SELECT", 0)
                if found != value:
                    raise Wrong("%s, db %d: %s is %r, not %r" % (node.name, database, show(words), found, value))
        union.check()
        mesh.cut()
        in_turn(b, "FLUSHALL", "SET b 1")
        in_turn(a, "SET a 1", "INCR n", "FLUSHALL", "SET c 1")
        in_turn(b, "SET d 1", "INCR n")
        mesh.heal()
        mesh.settle(20)
        env.expect(mesh, [("MGET", "a", "b", "c", "d", "n")], [[None, None, b"1", b"1", b"1"]])
        union.check()


@test("core", only="ours")
def libraries_of_functions(env):
    """A library is a key: the later one."""
    text = "#!lua name=%s\nredis.register_function('%s', function() return %d end)"
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        a.ask("FUNCTION", "LOAD", text % ("shared", "old", 0))
        mesh.settle(20)
        mesh.cut()
        a.ask("FUNCTION", "LOAD", "REPLACE", text % ("shared", "one", 1))
        a.ask("FUNCTION", "LOAD", text % ("ofa", "fa", 1))
        time.sleep(TICK_S)
        b.ask("FUNCTION", "LOAD", "REPLACE", text % ("shared", "two", 2))
        b.ask("FUNCTION", "LOAD", text % ("ofb", "fb", 2))
        mesh.heal()
        mesh.settle(20)
        env.expect(mesh, [("FCALL", "two", 0), ("FCALL", "fa", 0), ("FCALL", "fb", 0)], [2, 1, 2])
        for node in mesh.nodes:
            if node.call("FCALL", "one", 0)[0] != "-":
                raise Wrong("%s still has the older library" % node.name)


@test()
def transactions_and_scripts(env):
    """Several keys of one stamp; each key has its own order."""
    script = "redis.call('INCR', KEYS[1]) redis.call('RPUSH', KEYS[2], ARGV[1]) redis.call('SET', KEYS[3], ARGV[1])"
    with env.mesh(2) as mesh, Union(mesh) as union:
        a, b = mesh.nodes
        mesh.settle(30)
        a.ask("RPUSH", "l", "0")
        mesh.settle(20)
        mesh.cut()
        for node, name in ((a, "a"), (b, "b")):
            node.calls([["MULTI"], ["INCR", "n"], ["INCR", "n"], ["RPUSH", "l", name], ["SET", "s", name],
                        ["APPEND", "s", "!"], ["EXEC"], ["EVAL", script, 3, "n", "l", "s2", name + "'"]])
            time.sleep(TICK_S)
        mesh.heal()
        mesh.settle(20)
        env.expect(mesh, [("GET", "n"), ("LRANGE", "l", 0, -1), ("GET", "s"), ("GET", "s2")],
                   [b"6", [b"0", b"a", b"a'", b"b", b"b'"], b"b!", b"b'"])
        union.check()


@test()
def blocked_clients_are_served(env):
    """BLPOP here, pushed there: popped everywhere."""
    with env.mesh(3) as mesh, Union(mesh) as union:
        a, b, _ = mesh.nodes
        mesh.settle(30)
        client = a.connect(20)
        client.sock.sendall(encode(["BLPOP", "waiting", "0"]))
        wait_until(lambda: int(a.info("clients")["blocked_clients"]) == 1, 10, "BLPOP waits")
        b.ask("RPUSH", "waiting", "x", "y")
        reply = pictures.plain(client.exchange(b"", 1)[0])
        client.close()
        if reply != [b"waiting", b"x"]:
            raise Wrong("BLPOP gives %r" % reply)
        mesh.settle(20)
        env.expect(mesh, [("LRANGE", "waiting", 0, -1)], [[b"y"]])
        union.check()


@test("core")
def deadlines_pass_in_a_cut(env):
    """Operations behind a deadline find nothing there, those before find the key, on every node alike."""
    with env.mesh(2) as mesh, Union(mesh) as union:
        a, b = mesh.nodes
        mesh.settle(30)
        for number in range(20):
            a.ask("SET", "k:%d" % number, 1, "PX", 300 + number)
            a.ask("RPUSH", "l:%d" % number, "a")
            a.ask("PEXPIRE", "l:%d" % number, 300 + number)
        mesh.settle(20)
        mesh.cut()
        for number in range(20):
            b.ask("INCR", "k:%d" % number)
        time.sleep(0.4)
        for number in range(20):
            a.ask("INCRBY", "k:%d" % number, 10)
            a.ask("RPUSH", "l:%d" % number, "b")
        mesh.heal()
        mesh.settle(20)
        for number in range(20):
            env.expect(mesh, [("GET", "k:%d" % number), ("LRANGE", "l:%d" % number, 0, -1)], [b"10", [b"b"]])
        if env.kind == "ours":
            union.check("ours", soon=True)


@test("core")
def keys_expire_everywhere(env):
    with env.mesh(3) as mesh:
        mesh.settle(30)
        for node in mesh.nodes:
            for number in range(50):
                node.ask("SET", "of %d:%d" % (node.index, number), "v", "PX", 100)
        mesh.settle(20)
        for node in mesh.nodes:
            wait_until(lambda node=node: int(node.ask("DBSIZE")) == len(mesh.nodes), 20,
                       lambda node=node: "%s frees what has expired: %s keys" % (node.name, node.ask("DBSIZE")))
        mesh.settle()


# ------------------------------------------------------------------------------------------------------------ bad cases

@test("core", only="ours")
def itself_as_peer(env):
    """A link to itself is refused by name, and nothing comes twice."""
    with env.mesh(2) as mesh:
        a, _ = mesh.nodes
        mesh.settle(30)
        a.call("REPLICAOF", "127.0.0.1", a.port)
        for _ in range(20):
            a.ask("INCR", "n")
        time.sleep(1.5)
        mesh.settle(20)
        env.expect(mesh, [("GET", "n")], [b"20"])
        if "itself" not in a.log(1 << 20):
            raise Wrong("the log does not tell of a link to itself\n%s" % a.log(1500))


@test("core", only="ours")
def one_node_under_two_names(env):
    """A second link to the same node: nothing comes twice."""
    with env.mesh(2) as mesh, Union(mesh) as union:
        a, b = mesh.nodes
        mesh.settle(30)
        a.ask("REPLICAOF", "localhost", b.port)
        for node in (a, b):
            for number in range(200):
                node.ask("INCR", "n")
        mesh.settle(20)
        mesh.flicker()
        b.ask("INCR", "n")
        mesh.settle(20)
        env.expect(mesh, [("GET", "n")], [b"401"])
        union.check()


def with_bound(folder, stamp):
    """The identity file says that stamps up to this one were given: as if the clock had been there."""
    path = os.path.join(folder, "keydb-identity")
    with open(path) as file:
        lines = [line for line in file.read().splitlines() if not line.startswith("crc64")]
    text = "".join(("stamp-bound %d" % stamp if line.startswith("stamp-bound") else line) + "\n" for line in lines)
    with open(path, "w") as file:
        file.write("%scrc64 %016x\n" % (text, crc64(text.encode())))


@test("core", only="ours")
def a_clock_an_hour_ahead(env):
    """Stamps from the future shadow no later write and end no key early; then that clock jumps back."""
    with env.mesh(3, options=("--appendonly", "yes")) as mesh:
        a, b, _ = mesh.nodes
        mesh.settle(30)
        b.kill()
        with_bound(b.folder, int(time.time() + 3600) * 1000 << 14)
        b.start()
        mesh.settle(30)
        for turn in (1, 2):
            in_turn(b, "SET k of-b", "INCR n", "SET short 1 PX 30000")
            mesh.wait_for_all(10)
            in_turn(a, "SET k of-a-%d" % turn, "INCR n", "SET long 1 PX 600000")
            mesh.wait_for_all(10)
            env.expect(mesh, [("GET", "k"), ("GET", "n"), ("EXISTS", "short", "long")],
                       [b"of-a-%d" % turn, b"%d" % (2 * turn), 2])
            if max(int(node.ask("PTTL", "short")) for node in mesh.nodes) > 60000:
                raise Wrong("the deadline is an hour ahead, too")
            if turn == 1:       # the clock of the machine is an hour behind what b has given
                b.kill()
                b.start()
                mesh.settle(30)
        mesh.settle(20)


@test("core", only="ours")
def a_slow_clock(env):
    """A node whose clock is 20 s slow touches keys that have expired elsewhere. For an operation a key is there if its
    own clock says so: what the slow node does meets the value, on all nodes, unless something was done behind the
    deadline before."""
    with env.mesh(3, clocks=(0, -20, 0)) as mesh, Union(mesh) as union:
        a, b, c = mesh.nodes
        mesh.settle(30)
        for name in ("touched", "renewed", "left"):
            a.ask("SET", name, 10, "PX", 500)
            a.ask("RPUSH", "list " + name, "old")
            a.ask("PEXPIRE", "list " + name, 500)
        mesh.wait_for_all()
        wait_until(lambda: int(a.ask("EXISTS", "touched", "renewed", "left", "list left")) == 0, 20,
                   "they have expired")
        in_turn(c, "INCR renewed")
        c.ask("RPUSH", "list renewed", "new")
        mesh.wait_for_all()
        for name in ("touched", "renewed"):
            b.ask("INCR", name)
            b.ask("RPUSH", "list " + name, "slow")
        mesh.wait_for_all()
        env.expect(mesh, [("GET", "renewed"), ("LRANGE", "list renewed", 0, -1)], [b"2", [b"new", b"slow"]])
        env.expect_of([a, c], [("EXISTS", "touched", "left", "list touched", "list left")], [0])
        env.expect_of([b], [("GET", "touched"), ("LRANGE", "list touched", 0, -1), ("GET", "left")],
                      [b"11", [b"old", b"slow"], b"10"])
        b.set_clock(0)
        mesh.settle(30)
        env.expect(mesh, [("EXISTS", "touched", "left", "list touched", "list left")], [0])
        union.check("ours", soon=True)


@test("core", only="ours")
def a_clock_that_jumps(env):
    """The clock of a node that runs goes an hour back and forth: nothing that was done is lost or late, and what is to
    live for longer than the clock was wrong lives on, also behind a restart."""
    with env.mesh(2, options=("--appendonly", "yes"), clocks=(0, 0)) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        count = 0
        for node in (a, b):
            node.ask("SET", "long of %d" % node.index, "1", "EX", 10000)
        for ahead_s in (-3600, 0, 3600, 0, -3600, 0):
            b.set_clock(ahead_s)
            for turn in range(3):
                in_turn(a, "INCR n", "RPUSH list a", "SET k a")
                mesh.wait_for_all()
                in_turn(b, "INCR n", "RPUSH list b", "SET k b-%d" % turn, "SET own 1 PX 60000")
                count += 2
                mesh.wait_for_all()
                env.expect(mesh, [("GET", "n"), ("LLEN", "list"), ("GET", "k"), ("EXISTS", "long of 0", "long of 1")],
                           [b"%d" % count, count, b"b-%d" % turn, 2])
                env.expect_of([b], [("EXISTS", "own")], [1])
        b.ask("DEL", "own")     # the clocks do not agree when it ends
        b.kill()
        b.start()
        mesh.settle(30)
        env.expect(mesh, [("GET", "n"), ("LLEN", "list"), ("EXISTS", "long of 0", "long of 1")],
                   [b"%d" % count, count, 2])
        in_turn(b, "SET own 1 PX 60000")
        env.expect_of([b], [("EXISTS", "own")], [1])
        late = sum(int(node.info("replication")["active_operations_late"]) for node in mesh.nodes)
        if late:
            raise Wrong("%d operations were late" % late)


@test("core", only="ours")
def writes_while_a_node_loads(env):
    """Peers write, and try to connect, while a node loads its files: all is taken afterwards."""
    with env.mesh(3, options=("--appendonly", "yes")) as mesh:
        a, b, c = mesh.nodes
        mesh.settle(30)
        b.calls([["SET", "key:%d" % number, "x" * 100] for number in range(20000)])
        mesh.settle(30)
        b.options = [*b.options, "--key-load-delay", "150"]
        b.kill()
        marks = {node: len(node.log(1 << 24)) for node in (a, c)}
        b.start(False)
        wait_until(lambda: b.call("PING")[1].startswith(b"LOADING"), 20, "it is loading")
        number = 0
        while (b.call("GET", "n")[1] or b"").startswith(b"LOADING"):
            for node in (a, c):
                in_turn(node, "INCR n", "RPUSH list %d" % number)
            number += 1
        if not number:
            raise Wrong("it has loaded too fast")
        b.wait_ready(30)
        b.read_operations()
        mesh.settle(30)
        env.expect(mesh, [("GET", "n"), ("LLEN", "list")], [b"%d" % (2 * number), 2 * number])
        for node, mark in marks.items():
            told = node.log(1 << 24)[mark:]
            if "refus" in told:
                raise Wrong("%s was refused\n%s" % (node.name, told[-2000:]))


@test("core", only="ours")
def a_node_loads_for_longer_than_it_is_waited_for(env):
    """Its peers give it up as silent, and their links end; behind its data it takes what it has missed."""
    with env.mesh(2, options=("--appendonly", "yes", "--active-peer-timeout", "1", "--repl-timeout", "2")) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        b.calls([["SET", "key:%d" % number, number] for number in range(2000)])
        mesh.settle(30)
        b.ask("BGREWRITEAOF")       # keys of a base are delayed, commands are not
        wait_until(lambda: b.info("persistence")["aof_rewrites"] == "1" and
                   b.info("persistence")["aof_rewrite_in_progress"] == "0", 20, "the file has a base")
        b.options = [*b.options, "--key-load-delay", "2500"]
        b.kill()
        mark = len(a.log(1 << 24))
        b.start(False)
        wait_until(lambda: b.call("PING")[1].startswith(b"LOADING"), 20, "it is loading")
        number = 0
        while (b.call("GET", "n")[1] or b"").startswith(b"LOADING"):
            in_turn(a, "INCR n", "RPUSH list %d" % number)
            number += 1
        if "it is not waited for any more" not in a.log(1 << 24)[mark:]:
            raise Wrong("it was not given up")
        b.wait_ready(30)
        b.read_operations()
        in_turn(b, "INCR n")
        mesh.settle(30)
        env.expect(mesh, [("GET", "n"), ("LLEN", "list"), ("EXISTS", "key:0", "key:1999")],
                   [b"%d" % (number + 1), number, 2])


@test("core", only="ours")
def the_sponsor_crashes_after_a_join(env):
    """A newcomer has its state from one node, which is lost with its disk: what both have written is everywhere."""
    with env.mesh(3, connected=False, options=("--active-history-limit", "1mb")) as mesh:
        a, b, c = mesh.nodes
        for pair in ((0, 1), (1, 0)):
            mesh.connect(*pair)
        fill(a, 3000, 1000)
        a.ask("INCR", "n")
        mesh.settle(30, [a, b])
        mesh.cut((0, 1))
        a.ask("SADD", "s", "only the sponsor and the newcomer have it")
        c.ask("INCR", "early")
        for pair in ((0, 2), (2, 0)):
            mesh.connect(*pair)
        mesh.settle(30, [a, c])
        for node in (b, c):
            node.ask("INCR", "n")
        a.kill()
        a.wipe()
        for pair in ((1, 2), (2, 1)):
            mesh.connect(*pair)
        mesh.settle(30, [b, c])
        a.start()
        mesh.heal()
        mesh.settle(30)
        env.expect(mesh, [("GET", "n"), ("GET", "early"), ("SCARD", "s"), ("EXISTS", "key:0", "key:2999")],
                   [b"3", b"1", 1, 2])


@test("core", only="ours")
def both_histories_are_cut(env):
    """Neither side can give what the other lacks: all keys of both are there, of a shared one the younger value."""
    with env.mesh(2, options=("--active-history-limit", "1mb")) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        in_turn(a, "SADD s first", "SET deleted 1", "SET kept 1")
        mesh.settle(20)
        mesh.cut()
        for node in mesh.nodes:
            in_turn(node, "SADD s %d" % node.index, "SET of:%d 1" % node.index, "SET shared %d" % node.index)
            fill(node, 3000, 1000, "fill %d" % node.index)
        in_turn(b, "DEL deleted")
        mesh.heal()
        for number in range(50):        # while they unite
            a.calls([["SADD", "later", "a %d" % number]])
            b.calls([["SADD", "later", "b %d" % number]])
        mesh.settle(40)
        env.expect(mesh, [("EXISTS", "of:0", "of:1", "kept"), ("GET", "shared"), ("EXISTS", "deleted"),
                          ("EXISTS", "fill 0:0", "fill 0:2999", "fill 1:0", "fill 1:2999")], [3, b"1", 0, 4])


@test("core", only="ours")
def a_one_way_ring_waits_for_itself(env):
    """What a has to give b waits for what only b has, which comes by c; what b has to give c waits for what only c has,
    which comes by a. One of them takes first, and nothing is lost."""
    with env.mesh(3, "one-way ring", options=("--active-history-limit", "1mb")) as mesh:
        a, b, c = mesh.nodes
        mesh.settle(30)
        in_turn(c, "SET n 1", "SAVE")
        mesh.settle(20)
        fill(b, 3000, 1000, "of b")
        mesh.settle(30)
        mesh.cut()
        c.kill()
        c.start()           # without what b has written, which b has in its history no more
        fill(a, 3000, 1000, "of a")
        in_turn(a, "INCRBY n 10")
        in_turn(b, "INCRBY n 100")
        in_turn(c, "INCRBY n 1000")
        mesh.heal()
        mesh.settle(60)
        env.expect(mesh, [("GET", "n"), ("EXISTS", "of a:0", "of a:2999", "of b:0", "of b:2999")], [b"1111", 4])


@test("core", only="ours")
def a_flush_that_the_giver_lacks(env):
    """While b gets a part of a's state it hears of a flush, by c, of which a has not heard. What is older goes from
    what the part brings, too."""
    with env.mesh(3, "chain", options=("--rdb-key-save-delay", "5000")) as mesh:
        a, b, c = mesh.nodes
        mesh.settle(30)
        in_turn(c, "RPUSH l old", "SET old 1")
        mesh.settle(20)
        mesh.cut((0, 1))
        mesh.freeze((1, 2))
        in_turn(c, "FLUSHDB")
        in_turn(a, "RPUSH l new", "APPEND old er")
        fill(a, 1000, 10)
        a.shut_down("SAVE")
        a.start()               # it has no history of what it did
        mesh.heal((0, 1))
        wait_until(lambda: "it makes a file of its state" in b.log(4000), 20, lambda: "the state begins\n" + b.log())
        mesh.heal((1, 2))
        wait_until(lambda: b.call("EXISTS", "l", "old") == (":", b"0"), 20, lambda: "the flush comes\n" + b.log())
        mesh.settle(40)
        env.expect(mesh, [("LRANGE", "l", 0, -1), ("GET", "old")], [[b"new"], b"er"])


@test("core", only="ours")
def counting_while_both_forget(env):
    """Neither side has in its history what the other one lacks, but both still have it in their windows: what adds up
    is exact. Once most of the keys cross, once a few of many."""
    for count, others in ((3000, 0), (40, 3000)):
        with env.mesh(2, options=("--active-history-limit", "0")) as mesh:
            a, b = mesh.nodes
            keys = ["n:%d" % number for number in range(count)]
            mesh.settle(30)
            fill(a, others, 100)
            a.calls([["SET", key, 1000] for key in keys[::2]])      # the others begin in the cut
            in_turn(a, "SET shared 7", "HSET h f 1", "SET gone 1", "SET deleted 1")
            mesh.settle(30)
            mesh.cut()
            for step in range(3):
                for node in mesh.nodes:
                    node.calls([["INCRBY", key, node.index + 1] for key in keys])
                    in_turn(node, "INCR shared", "HINCRBY h f 10", "HINCRBY h new 10", "INCR of:%d" % node.index,
                            "SADD s %d:%d" % (node.index, step), "RPUSH l %d" % step, "ZINCRBY z 2 m")
            in_turn(a, "INCR gone")
            in_turn(b, "DEL gone", "SET shared 100")        # what is older is overwritten
            in_turn(a, "DEL deleted")
            in_turn(b, "INCR deleted")
            for node in mesh.nodes:
                in_turn(node, "INCR shared", "MULTI", "INCR shared", "INCR n:1", "EXEC")
            mesh.heal()
            mesh.settle(40)
            env.expect(mesh, [("MGET", *keys[:3]), ("HMGET", "h", "f", "new"), ("SCARD", "s"), ("ZSCORE", "z", "m"),
                              ("LLEN", "l"), ("MGET", "of:0", "of:1")],
                       [[b"1009", b"11", b"1009"], [b"61", b"60"], 6, b"12", 6, [b"3", b"3"]])
            for node in mesh.nodes:
                wrong = [key for number, key in enumerate(keys) if number != 1 and
                         node.call("GET", key)[1] != (b"9" if number % 2 else b"1009")]
                if wrong:
                    raise Wrong("%s: %d of %d counters are wrong" % (node.name, len(wrong), count))
            states = sum("has the state of this node" in node.log(1 << 20) for node in mesh.nodes)
            if not states:
                raise Wrong("no state was given: the histories were not cut")


def joined(node):
    return int(node.info("replication")["active_window_joined"])


def count_much(nodes, rounds, keys, fields):
    """Counters that are there and new ones, fields likewise, and members. The nodes take turns. Returns what each
    counter and each field is more."""
    for turn in range(max(rounds)):
        for node in nodes:
            if turn >= rounds[node.index]:
                continue
            node.calls([["INCRBY", "n:%d" % key, 1 - 3 * (turn % 2)] for key in range(keys)] +
                       [["HINCRBY", "h:%d" % (key % (keys // 10)), "f:%d" % (key % fields), 2 + node.index]
                        for key in range(keys)] +
                       [["SADD", "s:%d" % (key // 20 % 10), "%d:%d:%d" % (node.index, turn, key)]
                        for key in range(0, keys, 20)])
        time.sleep(TICK_S)
    return (sum(1 - 3 * (turn % 2) for count in rounds for turn in range(count)),
            sum((2 + index) * count for index, count in enumerate(rounds)))


def is_counted(nodes, keys, fields, rounds, number, field):
    """What count_much has added to 1000 is there, and every member."""
    for node in nodes:
        wrong = [key for key in range(keys)
                 if node.call("GET", "n:%d" % key)[1] != b"%d" % (number + 1000 * (key % 2 == 0))]
        wrong += [key for key in range(keys // 10) for at in range(fields)
                  if (got := node.call("HGET", "h:%d" % key, "f:%d" % at)[1]) is not None and
                  int(got) != 1000 * (at == 0) + field * len([1 for each in range(key, keys, keys // 10)
                                                              if each % fields == at])]
        members = sum(int(node.call("SCARD", "s:%d" % key)[1]) for key in range(10))
        if wrong or members != sum(rounds) * keys // 20:
            raise Wrong("%s: wrong are %s, %d members" % (node.name, wrong[:20], members))


def is_exact(node, field="active_operations_late"):
    facts = node.info("replication")
    if int(facts["active_window_given_up"]) or int(facts[field]) or int(facts["active_repaired_keys"]):
        raise Wrong("%s: lists given up %s, late %s, repaired %s" % (
            node.name, facts["active_window_given_up"], facts[field], facts["active_repaired_keys"]))


def begin_counting(mesh, keys):
    mesh.settle(30)
    mesh.nodes[0].calls([["SET", "n:%d" % key, 1000] for key in range(0, keys, 2)] +
                        [["HSET", "h:%d" % key, "f:0", 1000] for key in range(keys // 10)])
    mesh.settle(30)
    mesh.cut()


@test("core", only="ours")
def much_counting_in_a_cut(env):
    """Many more additions than the window has room for: they are joined, and all is exact; also behind a restart from a
    file that was written meanwhile."""
    keys, fields, rounds = 600, 5, (40, 6)
    with env.mesh(2, options=("--active-window-size", "3mb", "--active-history-limit", "100mb")) as mesh:
        a, b = mesh.nodes
        begin_counting(mesh, keys)
        number, field = count_much(mesh.nodes, rounds, keys, fields)
        wait_until(lambda: int(a.info("replication")["active_window_bytes"]) <= 3 << 20, 5, "the bound is kept")
        if not joined(a):
            raise Wrong("nothing was joined")
        mesh.heal()
        mesh.settle(60)
        is_counted(mesh.nodes, keys, fields, rounds, number, field)
        for node in mesh.nodes:
            is_exact(node)


@test("core", only="ours")
def joined_additions_are_in_files(env):
    """A node whose window has joined additions ends in the cut, and starts with its file: what comes then is as exact
    as it was before, and what belongs among them is late."""
    keys, fields, rounds = 400, 5, (30, 6)
    with env.mesh(2, options=("--active-window-size", "2mb", "--active-history-limit", "100mb")) as mesh:
        a, b = mesh.nodes
        begin_counting(mesh, keys)
        in_turn(a, "INCR torn")
        for _ in range(20):
            in_turn(a, *["INCR torn"] * 10)
        in_turn(b, "SET torn 5", "HSET h:0 other 1", "APPEND n:1 x")
        number, field = count_much(mesh.nodes, rounds, keys, fields)
        in_turn(a, *["INCR torn"] * 10)
        wait_until(lambda: joined(a), 5, "some are joined")
        save(a)
        a.shut_down()
        a.start()
        late = int(a.info("replication")["active_operations_late"])
        mesh.heal()
        mesh.settle(60)
        b.call("SET", "n:1", number)
        a.call("DEL", "torn")
        mesh.settle(30)
        is_counted(mesh.nodes, keys, fields, rounds, number, field)
        if int(a.info("replication")["active_operations_late"]) == late:
            raise Wrong("what belongs among joined additions is not late")


@test("core", only="ours")
def much_counting_while_both_forget(env):
    """Neither side has in its history what the other one lacks, and both have joined additions."""
    keys, fields, rounds = 400, 5, (30, 25)
    with env.mesh(2, options=("--active-window-size", "2mb", "--active-history-limit", "0")) as mesh:
        begin_counting(mesh, keys)
        number, field = count_much(mesh.nodes, rounds, keys, fields)
        for node in mesh.nodes:
            wait_until(lambda node=node: joined(node), 5, "some are joined")
        mesh.heal()
        mesh.settle(60)
        is_counted(mesh.nodes, keys, fields, rounds, number, field)


def save(node):
    """An RDB file by a child: it has the lists of the window."""
    last = node.ask("LASTSAVE")
    time.sleep(max(0.0, int(last) + 1.05 - time.time()))
    node.ask("BGSAVE")
    wait_until(lambda: node.ask("LASTSAVE") != last, 30, "the file is written")


@test("core", only="ours")
def a_flush_meets_what_expired_while_dirty(env):
    """Keys that came too late are to be written anew, one a second, and are freed as expired before that, or lose their
    last member: a peer's flush finds them missing."""
    with env.mesh(2, options=("--active-window-size", "1048576", "--active-repair-rate", "1")) as mesh:
        a, b = mesh.nodes
        lists, sets = (["%s:%d" % (kind, number) for number in range(50)] for kind in ("list", "set"))
        mesh.settle(30)
        kept = int(a.ask("DBSIZE"))
        mesh.cut()
        for step in range(40):
            for node in mesh.nodes:
                node.calls([["RPUSH", key, b"x" * 200] for key in lists])
                node.calls([["SADD", key, b"%d" % step + b"x" * 200] for key in sets])
        for node in mesh.nodes:
            node.calls([["PEXPIRE", key, "2000"] for key in lists])
            node.calls([["EXPIREMEMBER", key, b"%d" % step + b"x" * 200, "2"] for key in sets for step in range(40)])
        mesh.heal()
        wait_until(lambda: all(int(node.info("replication")["active_dirty_keys"]) > 50 for node in mesh.nodes), 10,
                   "keys are late")
        wait_until(lambda: all(int(node.ask("DBSIZE")) <= kept for node in mesh.nodes), 20, "all is freed")
        if any(node.info("replication")["active_dirty_keys"] == "0" for node in mesh.nodes):
            raise Wrong("nothing is dirty any more")
        in_turn(a, "FLUSHALL")
        in_turn(b, "FLUSHALL", "SET behind 1")
        mesh.settle(60)


@test("core", only="ours")
def files_keep_what_is_not_settled(env):
    """Both sides of a cut write the same keys, are restarted from a file, one gives its state to a newcomer, and go on:
    the order of all is exact, nothing is late."""
    for how in ("BGSAVE", "BGREWRITEAOF", "SAVE", "SHUTDOWN SAVE", "DEBUG RELOAD"):
        with env.mesh(2, options=("--appendonly", "yes") if how == "BGREWRITEAOF" else ()) as mesh:
            a, b = mesh.nodes
            counters = ["n:%d" % number for number in range(100)]
            mesh.settle(30)
            in_turn(a, "SET text begin", "SET n:0 1000", "RPUSH gone x", "SADD tags old", "SET volatile 1 PX 99999",
                    "HSET h f 1", "ZADD z 1 m", "XADD x 1-1 f v")
            mesh.settle(30)
            wait_until(lambda: all(node.info("replication")["active_frontier_age_ms"] != "-1" for node in mesh.nodes),
                       20, "the frontier has begun")
            mesh.cut()
            for step in range(10):
                for node in mesh.nodes:
                    for _ in range(5):
                        node.calls([["INCRBY", key, 1 + node.index] for key in counters])
                    in_turn(node, "APPEND text %d%d" % (node.index, step), "RPUSH list %d%d" % (node.index, step),
                            "LPUSH gone %d" % step, "RPOP gone", "SADD tags %d" % node.index, "SREM tags old",
                            "HINCRBYFLOAT h f 0.5", "ZINCRBY z 1 m", "XADD x 2-%d%d f v" % (step + 1, node.index),
                            "APPEND volatile 1", "SETRANGE range %d xy" % step, "SET set %d" % node.index,
                            "APPEND set +", "MULTI", "INCR both", "APPEND text !", "EXEC")
                if step == 5:
                    for node in mesh.nodes:
                        if how == "BGREWRITEAOF":
                            node.ask("BGREWRITEAOF")
                            wait_until(lambda: node.info("persistence")["aof_rewrite_in_progress"] == "0", 30,
                                       "it is written")
                        elif how == "BGSAVE":
                            save(node)
                        elif how != "SHUTDOWN SAVE":
                            node.ask(*how.split())
                        if how != "DEBUG RELOAD":
                            node.shut_down("SAVE" if how == "SHUTDOWN SAVE" else "NOSAVE")
                            node.start()
            newcomer = mesh.add(env.kind)
            wait_until(lambda: newcomer.info("replication")["active_beats"] != "0", 20, "it was alone for a beat")
            mesh.connect(2, 0)
            wait_until(lambda: newcomer.call("GET", "n:0")[1] == b"1050", 30, "it has the state")
            for node in mesh.nodes:
                in_turn(node, "APPEND text -%d" % node.index)
            mesh.connect(0, 2)
            mesh.heal()
            mesh.settle(60)
            # A start goes on above the stamps that the start before could have used: so of what follows the restarts
            # only the order of each node is known.
            found = a.ask("GET", "text")
            steps = [b"%d%d!" % (node, step) for step in range(10) for node in range(2)]
            if not found.startswith(b"begin" + b"".join(steps[:12])):
                raise Wrong("not in the order in which it was written: %s" % found)
            words = re.findall(rb"-\d|\d\d", found.replace(b"!", b""))
            for number in range(2):
                own = [b"%d%d" % (number, step) for step in range(10)] + [b"-%d" % number]
                if [word for word in words if word in own] != own:
                    raise Wrong("not in the order of node %d: %s" % (number, found))
            env.expect(mesh, [("STRLEN", "text"), ("LLEN", "list"), ("LRANGE", "list", 0, 11), ("GET", "both"),
                              ("HGET", "h", "f"), ("ZSCORE", "z", "m"), ("XLEN", "x"), ("EXISTS", "volatile")],
                       [5 + 60 + 6, 20, [word[:2] for word in steps[:12]], b"20", b"11", b"21", 21, 1])
            env.expect(mesh, [("GET", key) for key in counters], [b"1150", *[b"150"] * 99])
            late = [int(node.info("replication")["active_operations_late"]) for node in mesh.nodes]
            if any(late):
                raise Wrong("operations were late: %s" % late)


def records_of(path):
    """The records of the window in an RDB file without compression, in any order."""
    with open(path, "rb") as file:
        data = file.read()
    found, mark, at = [], b"\xfa\x0corder-record", 0
    while True:
        at = data.find(mark, at)
        if at < 0:
            return sorted(found)
        at += len(mark)
        first, size = data[at] >> 6, data[at] & 63
        if first == 1:
            size, at = size << 8 | data[at + 1], at + 1
        elif first == 2:
            size, at = int.from_bytes(data[at + 1:at + 5], "big"), at + 4
        at += 1
        found.append(data[at:at + size])
        at += size


def change_all(node, count, step):
    """One operation of each kind, and so that some keys begin with nothing, some are gone in the end."""
    words = []
    for number in range(count):
        words += [["INCRBY", "n:%d" % number, 1 + node.index],
                  ["RPUSH", "list:%d" % number, "%d%d" % (node.index, step)],
                  ["APPEND", "text:%d" % number, "%d%d." % (node.index, step)],
                  ["SADD", "set:%d" % number, "%d%d" % (node.index, step)], ["SREM", "set:%d" % number, "old"],
                  ["HSET", "hash:%d" % number, "f%d%d" % (node.index, step), "x"],
                  ["HINCRBY", "hash:%d" % number, "n", "1"], ["ZINCRBY", "zset:%d" % number, "1", "m"],
                  ["SETRANGE", "long:%d" % number, str(10 * step), "%d%d" % (node.index, step)],
                  ["XADD", "stream:%d" % number, "%d-%d" % (step + 2, node.index + 1), "f", "v"],
                  ["INCR", "new:%d:%d" % (node.index, number)], ["SREM", "only:%d" % number, "x"],
                  ["PEXPIRE", "volatile:%d" % number, "90000"], ["APPEND", "volatile:%d" % number, "+"]]
    node.calls(words)


def change_more(node, count):
    """What ends a list, begins it anew, or takes the key away."""
    words = []
    for number in range(count):
        words += [["SET", "n:%d" % number, "0"], ["LPOP", "list:%d" % number], ["DEL", "text:%d" % number],
                  ["SADD", "only:%d" % number, "y"], ["RENAME", "hash:%d" % number, "zset:%d" % number],
                  ["SET", "text:%d" % number, "x"], ["DEL", "volatile:%d" % number]]
    node.calls(words)


def begin_moment(mesh, count):
    words = []
    for number in range(count):
        words += [["SET", "n:%d" % number, "1000"], ["RPUSH", "list:%d" % number, "begin"],
                  ["SET", "text:%d" % number, "-"], ["SADD", "set:%d" % number, "old", "stays"],
                  ["HSET", "hash:%d" % number, "n", "1", "f", "v" * 100],
                  ["ZADD", "zset:%d" % number, "1", "m"], ["SET", "long:%d" % number, "x" * 2000],
                  ["XADD", "stream:%d" % number, "1-1", "f", "v"], ["SADD", "only:%d" % number, "x"],
                  ["SET", "volatile:%d" % number, "v"]]
    mesh.settle(30)
    mesh.nodes[0].calls(words)
    mesh.settle(30)
    wait_until(lambda: all(node.info("replication")["active_window_keys"] == "0" for node in mesh.nodes), 30,
               "all is settled")
    mesh.cut()


@test("core", only="ours")
def files_by_threads_are_of_their_moment(env):
    """Writers change all keys while a thread writes them and what is not settled: the file has the records that a file
    without writers has, and a node that is killed goes on from it."""
    count = 60
    for how in ("BGSAVE", "SAVE", "BGREWRITEAOF"):
        options = ("--snapshot-method", "threads", "--rdbcompression", "no", "--active-peer-timeout", "3600")
        if how == "BGREWRITEAOF":
            options += ("--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0")
        with env.mesh(2, options=options) as mesh:
            a, b = mesh.nodes
            begin_moment(mesh, count)
            for step in range(3):
                for node in mesh.nodes:
                    change_all(node, count, step)
            a.ask("SAVE")
            expected = records_of(os.path.join(a.folder, "dump.rdb"))
            digest = a.ask("DEBUG", "DIGEST")
            if len(expected) < 11 * count:
                raise Wrong("not many records: %d" % len(expected))
            a.ask("CONFIG", "SET", "rdb-key-save-delay", "300")
            aside = a.connect()
            aside.sock.sendall(encode([how]))
            busy = "aof_rewrite_in_progress" if how == "BGREWRITEAOF" else "rdb_bgsave_in_progress"
            wait_until(lambda: a.info("persistence")[busy] == "1", 30, "it begins")
            for step in range(3, 5):
                change_all(a, count, step)
            change_more(a, count)
            if a.info("persistence")[busy] != "1" or a.info("persistence")["snapshot_method"] != "threads":
                raise Wrong("no thread writes any more")
            a.ask("CONFIG", "SET", "rdb-key-save-delay", "0")
            wait_until(lambda: a.info("persistence")[busy] == "0", 60, "it is written")
            if aside.exchange(b"", 1)[0][0] != "+":
                raise Wrong("%s fails" % how)
            aside.close()
            folder = os.path.join(a.folder, "appendonlydir")
            path = os.path.join(a.folder, "dump.rdb") if how != "BGREWRITEAOF" else os.path.join(
                folder, max(name for name in os.listdir(folder) if "base" in name))
            found = records_of(path)
            if found != expected:
                wrong = [one for one in found if one not in expected] + [one for one in expected if one not in found]
                raise Wrong("%d records, not %d; the first that differ: %s" % (len(found), len(expected), wrong[:4]))
            if how == "BGREWRITEAOF":
                digest = a.ask("DEBUG", "DIGEST")
            a.kill()
            a.start()
            if a.ask("DEBUG", "DIGEST") != digest:
                raise Wrong("the data are of another moment")
            change_all(b, count, 7)
            mesh.heal()
            mesh.settle(60)
            late = [int(node.info("replication")["active_operations_late"]) for node in mesh.nodes]
            if any(late):
                raise Wrong("operations were late: %s" % late)
            if how != "BGREWRITEAOF":
                env.expect(mesh, [("GET", "n:1"), ("LLEN", "list:1"), ("XLEN", "stream:1"), ("GET", "new:0:1"),
                                  ("STRLEN", "text:1"), ("EXISTS", "only:1")],
                           [b"%d" % (1000 + 3 * 1 + 4 * 2), 1 + 7, 1 + 7, b"3", 1 + 7 * 3, 0])


@test("core", only="ours")
def a_file_by_a_thread_that_was_stopped(env):
    """Stopped while it writes what is not settled: the next one has its own moment, and nothing of the one before."""
    count = 30
    options = ("--snapshot-method", "threads", "--rdbcompression", "no", "--active-peer-timeout", "3600")
    with env.mesh(2, options=options) as mesh:
        a = mesh.nodes[0]
        begin_moment(mesh, count)
        path = os.path.join(a.folder, "dump.rdb")
        for again in range(3):
            change_all(a, count, again)
            a.ask("CONFIG", "SET", "rdb-key-save-delay", "2000")
            a.ask("BGSAVE")
            change_all(a, count // 2, again + 5)
            if a.info("persistence")["rdb_bgsave_in_progress"] != "1":
                raise Wrong("no thread writes any more")
            a.ask("FLUSHALL")
            wait_until(lambda: a.info("persistence")["rdb_bgsave_in_progress"] == "0", 10, "it is stopped")
            a.ask("CONFIG", "SET", "rdb-key-save-delay", "0")
            change_all(a, count, again + 9)
            a.ask("SAVE")
            expected, digest = records_of(path), a.ask("DEBUG", "DIGEST")
            a.ask("CONFIG", "SET", "rdb-key-save-delay", "200")
            a.ask("BGSAVE")
            change_all(a, count, again + 12)
            change_more(a, count)
            a.ask("CONFIG", "SET", "rdb-key-save-delay", "0")
            wait_until(lambda: a.info("persistence")["rdb_bgsave_in_progress"] == "0", 30, "it is written")
            if records_of(path) != expected:
                raise Wrong("the records are of another moment")
            if again == 2:
                a.kill()
                a.start()
                if a.ask("DEBUG", "DIGEST") != digest:
                    raise Wrong("the data are of another moment")
        mesh.heal()
        mesh.settle(60)


@test("core", only="ours")
def all_is_given_by_threads_while_all_is_written(env):
    """A newcomer gets the state, and a plain replica the keys, from threads beside writers: the data are equal in the
    end, and nothing was late."""
    count = 60
    options = ("--snapshot-method", "threads", "--active-peer-timeout", "3600", "--rdb-key-save-delay", "100")
    with env.mesh(2, options=options) as mesh:
        a, b = mesh.nodes
        begin_moment(mesh, count)
        for step in range(2):
            for node in mesh.nodes:
                change_all(node, count, step)
        newcomer = mesh.add(env.kind)
        mesh.connect(2, 0)
        replica = Node(env.kinds, "ours", 9, ("--replicaof", "127.0.0.1", str(a.port)), active=False)
        try:
            for step in range(2, 9):
                change_all(a, count, step)
                change_all(b, count, step)
                time.sleep(0.1)
            change_more(a, count // 2)
            wait_until(lambda: newcomer.call("GET", "volatile:59")[1] not in (None, b""), 60, "it has the state")
            mesh.connect(0, 2)
            mesh.heal()
            mesh.settle(60)
            if a.info("persistence")["snapshot_method"] != "threads" or a.info("stats")["total_forks"] != "0":
                raise Wrong("a process was forked")
            late = [int(node.info("replication")["active_operations_late"]) for node in mesh.nodes]
            if any(late):
                raise Wrong("operations were late: %s" % late)
            wait_until(lambda: replica.call("DEBUG", "DIGEST")[1] == a.ask("DEBUG", "DIGEST"), 30,
                       lambda: "the replica is equal\n%s" % replica.log(1500))
        finally:
            replica.stop()


@test("core", only="ours")
def a_part_is_given_while_all_is_written(env):
    """Both come back behind cut histories: each gets the keys alone that it lacks, as of one moment, while these and
    all others are changed. Nothing is lost, and nothing is there twice."""
    count, others, steps = 40, 4000, 7
    for method in ("threads", "fork"):
        options = ("--snapshot-method", method, "--active-history-limit", "0", "--rdb-key-save-delay", "2000",
                   "--active-peer-timeout", "3600")
        with env.mesh(2, options=options) as mesh:
            a, b = mesh.nodes
            mesh.settle(30)
            a.calls([["SET", "other:%d" % number, "o" * 100] for number in range(others)])
            begin_moment(mesh, count)
            forks = [int(node.info("stats")["total_forks"]) for node in mesh.nodes]
            for step in range(2):
                for node in mesh.nodes:
                    change_all(node, count, step)
            a.ask("DEL", "other:0")
            mesh.heal()
            wait_until(lambda: any("the part that is missing there" in node.log(1 << 20) for node in mesh.nodes), 30,
                       lambda: "a part begins\n%s" % a.log(2000))
            giver = next(node for node in mesh.nodes if "the part that is missing there" in node.log(1 << 20))
            kept = 0    # of the last state: the receiver's own may come next
            for step in range(2, steps):
                for node in (giver, *[node for node in mesh.nodes if node is not giver]):
                    change_all(node, count, step)
                    kept = max(kept, int(giver.info("persistence")["snapshot_kept_keys"]))
                    node.calls([["SET", "other:%d" % number, "%d%d" % (node.index, step)]
                                for number in range(1 + node.index, others, 7)])
            mesh.settle(60)
            env.expect(mesh, [("GET", "n:1"), ("LLEN", "list:1"), ("STRLEN", "text:1"), ("XLEN", "stream:1"),
                              ("HGET", "hash:1", "n"), ("ZSCORE", "zset:1", "m"), ("EXISTS", "other:0", "only:1")],
                       [b"%d" % (1000 + 3 * steps), 1 + 2 * steps, 1 + 6 * steps, 1 + 2 * steps,
                        b"%d" % (1 + 2 * steps), b"%d" % (1 + 2 * steps), 0])
            if method == "threads" and kept == 0:
                raise Wrong("nothing was changed meanwhile")
            forked = [int(node.info("stats")["total_forks"]) - was for node, was in zip(mesh.nodes, forks)]
            if any(forked) != (method == "fork"):
                raise Wrong("%s: forks %s" % (method, forked))
            states = [int(re.search("state_bytes=(\d+)", line).group(1))
                      for node in mesh.nodes for line in peer_lines(node)]
            if not any(states) or max(states) > others * 100:
                raise Wrong("states of %s bytes have crossed" % states)


@test("core", only="ours")
def a_part_has_the_marks_of_its_keys(env):
    """A node that comes back behind cut histories gets doubtful values while they wait to be written anew: it knows
    that they are, too, so they are also if the node that gave them is gone for good."""
    for method in ("threads", "fork"):
        options = ("--snapshot-method", method, "--active-window-size", "1048576", "--active-repair-rate", "1",
                   "--active-history-limit", "0", "--active-peer-timeout", "3600")
        with env.mesh(3, options=options) as mesh:
            a, b, c = mesh.nodes
            lists = ["list:%d" % number for number in range(50)]
            mesh.settle(30)
            a.calls([["SET", "other:%d" % number, "x" * 1000] for number in range(3000)])
            mesh.settle(30)
            mesh.cut()
            for step in range(120):     # more than the window of one takes: lists are given up before it heals
                for node in (a, b):
                    node.calls([["RPUSH", key, b"x" * 200] for key in lists])
            mesh.heal((0, 1), (1, 0))
            wait_until(lambda: int(a.info("replication")["active_dirty_keys"]) > 30, 20, "keys are late")
            mesh.heal((2, 0))
            wait_until(lambda: (got := c.call("LLEN", "list:49"))[0] == ":" and int(got[1]) > 0, 30, "it has the part")
            dirty = [int(node.info("replication")["active_dirty_keys"]) for node in (a, c)]
            if "the part that is missing there" not in a.log(1 << 20):
                raise Wrong("no part was given")
            if min(dirty) < 20:
                raise Wrong("%s: dirty keys of who gave and who got: %s" % (method, dirty))
            mesh.disconnect(2, 0)
            for node in mesh.nodes:
                node.ask("CONFIG", "SET", "active-repair-rate", "1000")
            mesh.connect(2, 0)
            mesh.heal()
            mesh.settle(60)


@test("core", only="ours")
def a_file_with_wrong_lists(env):
    """What is not possible in the list of a key is told, and the server does not start."""
    with env.mesh(2, options=("--rdbcompression", "no")) as mesh:
        node = mesh.nodes[0]
        mesh.settle(30)
        in_turn(node, "RPUSH a-key-of-some-length one")
        mesh.settle(30)
        wait_until(lambda: node.info("replication")["active_window_keys"] == "0", 30, "what was written is settled")
        mesh.cut()
        in_turn(node, "RPUSH a-key-of-some-length two")
        save(node)
        node.shut_down()
        path = os.path.join(node.folder, "dump.rdb")
        with open(path, "rb") as file:
            right = file.read()
        name = b"a-key-of-some-length"
        # A thread writes records before the keys, a forked process behind them.
        end = right.rindex(name) if right.index(name) > right.index(b"order-record") else len(right)
        at, value = right.rindex(name, 0, end), right.rindex(b"one", 0, end)
        for wrong, reason in ((right[:at] + b"b" + right[at + 1:], "an operation is not of its key"),
                              (right[:at - 3] + b"9" + right[at - 2:], "an operation is not of its key"),
                              (right[:value] + b"ono" + right[value + 3:], "what it begins with is no value")):
            with open(path, "wb") as file:
                file.write(wrong[:-8] + crc64(wrong[:-8]).to_bytes(8, "little"))
            try:
                node.start()
                raise Wrong("it starts")
            except (Lost, OSError, RuntimeError):
                pass
            if reason not in node.log(3000):
                raise Wrong("%s\n%s" % (reason, node.log(1500)))
        with open(path, "wb") as file:
            file.write(right)
        node.start()
        mesh.heal()
        mesh.settle(30)
        env.expect(mesh, [("LRANGE", "a-key-of-some-length", 0, -1)], [[b"one", b"two"]])


@test("core", only="ours")
def three_strangers_are_joined(env):
    """A node with data joins three with short histories, which know nobody: each has the keys of all, and counts on."""
    with env.mesh(4, "star", connected=False, options=("--active-history-limit", "1mb")) as mesh:
        for node in mesh.nodes:
            fill(node, 2500, 1000, "of %d" % node.index)
            in_turn(node, "SET shared %d" % node.index, "SADD of:%d x" % node.index)
        for pair in mesh.pairs:
            mesh.connect(*pair)
        keys = ["of %d:%d" % (index, number) for index in range(4) for number in range(2500)]
        rows = [(("EXISTS", *["of:%d" % index for index in range(4)]), b"4"), (("GET", "shared"), b"3"),
                (("EXISTS", *keys), b"10000")]
        wait_until(lambda: all(node.call(*words)[1] == value for node in mesh.nodes for words, value in rows), 60,
                   lambda: [[node.call(*words)[1] for words, value in rows] for node in mesh.nodes])
        total = 0
        for _ in range(50):             # states may still be given
            for node in mesh.nodes:
                total += node.calls([["INCR", "n"]])[0][0] != "-"       # LOADING
        mesh.settle(40)
        wait_until(lambda: all(node.call("GET", "n")[1] == b"%d" % total for node in mesh.nodes), 20,
                   lambda: [total, [node.call("GET", "n")[1] for node in mesh.nodes]])


@test("core", only="ours")
def plain_files_are_joined(env):
    """Nodes that begin with files of servers which were not active: the keys of all."""
    with env.mesh(3, connected=False) as mesh:
        for node in mesh.nodes:
            node.shut_down()
            node.wipe()
            plain = Node(mesh.kinds, env.kind, node.index, active=False)
            try:
                fill(plain, 500, 100, "of %d" % node.index)
                in_turn(plain, "SET shared %d" % node.index)
                plain.ask("PEXPIREAT", "of %d:0" % node.index, 99999999999999)
                plain.ask("SAVE")
                shutil.copy(os.path.join(plain.folder, "dump.rdb"), node.folder)
            finally:
                plain.stop()
            node.start()
        for pair in mesh.pairs:
            mesh.connect(*pair)
        mesh.settle(60)
        env.expect(mesh, [("EXISTS", *["of %d:%d" % (index, number) for index in range(3) for number in range(500)])],
                   [1500])


@test("core", only="ours")
def frames_of_the_dead_come_late(env):
    """What a start has sent arrives behind what its successor says, directly and by others: all counts once."""
    with env.mesh(3, options=("--appendonly", "yes", "--appendfsync", "always")) as mesh:
        a, b, c = mesh.nodes
        mesh.settle(30)
        for turn in range(3):
            mesh.freeze((0, 1))
            if turn == 2:
                mesh.freeze((2, 1))
            b.calls([["INCR", "n"], ["RPUSH", "l", turn]] * 50)
            b.kill()
            b.start()
            b.calls([["INCR", "n"], ["RPUSH", "l", "new"]] * 50)
            if turn == 1:
                wait_until(lambda: c.ask("GET", "n") == b"200", 10, "the one that hears it has all")
                a.ask("INCR", "of a")
            mesh.heal()
            mesh.settle(30)
            env.expect(mesh, [("GET", "n"), ("LLEN", "l")], [b"%d" % (100 * (turn + 1)), 100 * (turn + 1)])


@test("whole", only="ours")
def many_starts_of_a_node(env):
    """More starts than there are numbers for them in versions. They cost quiet links nothing."""
    def beats(node):
        info = node.ask("INFO", "replication").decode()
        return [int(re.search(field + r"(\d+)", info).group(1)) for field in ("received_bytes=", "active_beats:")]

    with env.mesh(2, options=("--appendonly", "yes", "--appendfsync", "always")) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        for _ in range(270):
            a.ask("INCR", "n")
            b.ask("INCR", "n")
            b.kill()
            b.start()
        mesh.settle(60)
        env.expect(mesh, [("GET", "n")], [b"540"])
        before = beats(a)
        wait_until(lambda: beats(a)[1] > before[1] + 20, 20, "beats")
        bytes_received, count = (now - then for now, then in zip(beats(a), before))
        if bytes_received > 300 * count:
            raise Wrong("%d beats of a quiet node take %d bytes" % (count, bytes_received))


@test("core", only="ours")
def copied_identity(env):
    """A node that runs with a copy of another one's folder is refused by name."""
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        a.ask("SET", "k", 1)
        mesh.settle(20)
        c = mesh.add(env.kind)
        c.kill()
        c.wipe()
        for name in os.listdir(b.folder):
            path = os.path.join(b.folder, name)
            if os.path.isfile(path) and name != "log":
                shutil.copy(path, os.path.join(c.folder, name))
        c.start()
        for receiver, sender in ((2, 0), (0, 2), (2, 1), (1, 2)):
            mesh.connect(receiver, sender)
        wait_until(lambda: any("copy" in node.log(1 << 20) or "older file" in node.log(1 << 20) for node in mesh.nodes),
                   10, "somebody's log tells of the copy")
        for node in (a, b):
            node.ask("INCR", "n")
        mesh.settle(20, [a, b])
        for node in (a, b):
            if node.ask("GET", "n") != b"2":
                raise Wrong("%s has n = %s" % (node.name, node.ask("GET", "n")))


@test("core", only="ours")
def copied_identity_of_a_slow_node(env):
    """The copy comes while nothing of the original is heard for a moment: it is the copy that is refused."""
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        c = mesh.add(env.kind)
        c.kill()
        c.wipe()
        shutil.copy(os.path.join(b.folder, "keydb-identity"), c.folder)
        c.start()
        mesh.freeze((0, 1))
        time.sleep(1.5)
        mesh.connect(2, 0)
        wait_until(lambda: "copy" in a.log(1 << 20), 10, lambda: "the copy is refused\n" + a.log(2000))
        mesh.heal()
        b.ask("INCR", "n")
        mesh.settle(20, [a, b])
        env.expect_of([a, b], [("GET", "n")], [b"1"])


@test("core", only="ours")
def the_original_starts_again(env):
    """A copy that was refused does not take the original's place while that is away."""
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        c = mesh.add(env.kind)
        c.kill()
        c.wipe()
        shutil.copy(os.path.join(b.folder, "keydb-identity"), c.folder)
        c.start()
        mesh.connect(2, 0)
        wait_until(lambda: a.log(1 << 20).count("a copy of"), 10, lambda: "the copy is refused\n" + a.log(2000))
        time.sleep(5)           # starts begin four seconds ahead of the clock: that has passed
        b.ask("INCR", "n")
        mesh.settle(20, [a, b])
        refused = a.log(1 << 20).count("a copy of")
        b.kill()
        time.sleep(1.5)         # so long after a start ended it is not taken for alive
        c.kill()
        c.start()
        wait_until(lambda: a.log(1 << 20).count("a copy of") > refused, 10, lambda: "it is refused again")
        b.start()
        b.ask("INCR", "n")
        mesh.settle(20, [a, b])
        env.expect_of([a, b], [("GET", "n")], [b"2"])


@test("core")
def two_restarts_without_a_save(env):
    """A node that has no files comes back empty twice, and gets everything."""
    with env.mesh(3) as mesh:
        a, b, victim = mesh.nodes
        mesh.settle(30)
        for number in range(100):
            a.ask("SET", "k:%d" % number, number)
            victim.ask("SET", "of the victim:%d" % number, number)
        mesh.settle(20)
        for turn in (1, 2):
            victim.kill()
            b.ask("INCR", "n")
            victim.start()
            victim.ask("SET", "turn", turn)
            if turn == 2:
                mesh.settle(40)
        env.expect(mesh, [("GET", "n"), ("GET", "turn"), ("GET", "k:99"), ("GET", "of the victim:99")],
                   [b"2", b"2", b"99", b"99"])


@test("core")
def a_wiped_disk(env):
    """What only the wiped node had is gone; the rest comes back."""
    with env.mesh(3, options=["--appendonly", "yes"]) as mesh:
        a, b, victim = mesh.nodes
        mesh.settle(30)
        for number in range(100):
            a.ask("RPUSH", "l:%d" % (number % 10), number)
        victim.ask("SET", "told", 1)
        mesh.settle(20)
        victim.kill()
        victim.wipe()
        b.ask("SET", "meanwhile", 1)
        victim.start()
        mesh.settle(40)
        env.expect(mesh, [("LLEN", "l:0"), ("GET", "told"), ("GET", "meanwhile")], [b"10", b"1", b"1"])


@test("whole")
def two_pop_one_list(env):
    """Two nodes pop the same elements of a long list while they are cut off."""
    size, popped = 100000, 10000
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        for at in range(0, size, 1000):
            a.ask("RPUSH", "l", *range(at, at + 1000))
        mesh.settle(60)
        mesh.cut()
        for node in (a, b):
            for _ in range(popped // 100):
                node.ask("LPOP", "l", 100)
        mesh.heal()
        mesh.settle(60)
        env.expect(mesh, [("LLEN", "l"), ("LINDEX", "l", 0)], [size - popped, b"%d" % popped])


@test("whole")
def pushes_among_many(env):
    """Pushes that come late into a list with many of our own."""
    own, late = 20000, 5000
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        mesh.cut()
        for at in range(0, late, 100):
            a.calls([["RPUSH", "l", "late %d" % number] for number in range(at, at + 100)])
            b.calls([["RPUSH", "l", "own %d" % number] for number in range(at * own // late, (at + 100) * own // late)])
        mesh.heal()
        mesh.settle(60)
        env.expect(mesh, [("LLEN", "l")], [own + late])


@test(only="ours")
def pushes_in_their_places(env):
    """Pushes at both ends on both sides of a cut stand in their order, also at a plain replica, and behind a restart:
    where few are younger, where many are, and where they are large."""
    with env.mesh(2, options=["--appendonly", "yes", "--appendfsync", "always"]) as mesh, env.redis() as replica:
        a, b = mesh.nodes
        mesh.settle(30)
        replica.ask("REPLICAOF", "127.0.0.1", b.port)
        wait_until(lambda: replica.info("replication").get("master_link_status") == "up", 20, "the replica is there")
        wanted = {}
        for turn, (many, size) in enumerate(((1, 1), (20, 1), (400, 1), (20, 4000))):
            key = "l:%d" % turn
            a.ask("RPUSH", key, "first")
            mesh.settle(20)
            mesh.cut()
            wanted[key] = [b"first"]
            for number in range(3):
                for node, count in ((a, 1), (b, many)):
                    for words in [["RPUSH", key, b"r%d" % number, b"x" * size], ["LPUSH", key, number, b"y"]] * count:
                        node.ask(*words)
                        if words[0] == "RPUSH":
                            wanted[key] = wanted[key] + [words[2], words[3]]
                        else:
                            wanted[key] = [words[3], b"%d" % words[2]] + wanted[key]
                    time.sleep(TICK_S)
            mesh.heal()
            mesh.settle(20)
            env.expect(mesh, [("LRANGE", key, 0, -1)], [wanted[key]])

        def lacks():
            return [key for key, value in wanted.items() if pictures.plain(replica.call("LRANGE", key, 0, -1)) != value]

        wait_until(lambda: not lacks(), 10, lambda: "the replica has %s" % lacks())
        b.shut_down()
        b.start()
        mesh.settle(30)
        env.expect_of([b], [("LRANGE", key, 0, -1) for key in wanted], list(wanted.values()))


@test(only="ours")
def a_flush_amid_a_transaction(env):
    """What a transaction does before its flush is gone, and what it does behind it stays; also where others were
    younger, and in another database."""
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        for younger in (False, True):
            for node in mesh.nodes:
                node.calls([["SELECT", 1], ["SET", "other", "stays"], ["SELECT", 0], ["SET", "old %d" % node.index, 1]])
            mesh.settle(20)
            if younger:
                mesh.cut()
            replies = a.calls([["MULTI"], ["INCRBY", "n", 5], ["RPUSH", "l", "before"], ["SET", "s", "before"],
                               ["FLUSHDB"], ["INCR", "n"], ["RPUSH", "l", "a"], ["APPEND", "s", "x"],
                               ["INCRBY", "n", 10], ["EXEC"]])
            if replies[-1][0] == "-":
                raise Wrong("EXEC gives %r" % (replies[-1],))
            if younger:
                time.sleep(TICK_S)
                b.calls([["INCR", "n"], ["RPUSH", "l", "b"], ["SET", "new", 1]])
                mesh.heal()
            mesh.settle(20)
            env.expect(mesh, [("GET", "n"), ("LRANGE", "l", 0, -1), ("GET", "s"), ("EXISTS", "old 0", "old 1"),
                              ("EXISTS", "new")],
                       [b"12" if younger else b"11", [b"a", b"b"] if younger else [b"a"], b"x", 0, int(younger)])
            for node in mesh.nodes:
                replies = node.calls([["SELECT", 1], ["GET", "other"], ["SELECT", 0]])
                if replies[1][1] != b"stays":
                    raise Wrong("%s: the other database has %r" % (node.name, replies[1]))
            a.ask("FLUSHALL")
            mesh.settle(20)


@test("core", only="ours")
def written_anew_amid_writes(env):
    """A key of which too much was given up is written anew, while both go on counting on it: nothing is lost."""
    with env.mesh(2, options=("--active-window-size", "1mb"), delay_s=0.02) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        mesh.cut()
        total = 0
        for node in mesh.nodes:
            node.calls([["INCR", "n"]] * 100)
            node.calls([["APPEND", "fill %d %d" % (node.index, number), "x" * 200] for number in range(6000)])
            total += 100
        wait_until(lambda: all(int(node.info("replication")["active_window_given_up"]) for node in mesh.nodes), 10,
                   lambda: "lists are given up")
        mesh.heal()
        for _ in range(400):
            time.sleep(0.002)
            for node in mesh.nodes:
                node.ask("INCR", "n")
                total += 1
        mesh.settle(40)
        env.expect(mesh, [("GET", "n")], [b"%d" % total])
        if not sum(int(node.info("replication")["active_repaired_keys"]) for node in mesh.nodes):
            raise Wrong("no key was written anew")


def give_each_other_up(nodes):
    wait_until(lambda: all(int(node.info("replication")["active_members_given_up"]) == len(nodes) - 1
                           for node in nodes), 20, lambda: "members are given up")


@test("core", only="ours")
def a_late_flush(env):
    """A key has expired here, and was freed, which a FLUSHALL of a node that was cut off for long would have taken the
    deadline from. So who had the flush in time has a key of which the other one does not know: that writes it anew when
    it is told that the flush was late. Also if either was restarted meanwhile."""
    for restarted in (None, 0, 1):
        with env.mesh(2, options=("--active-peer-timeout", "1", "--appendonly", "yes")) as mesh:
            a, b = mesh.nodes
            mesh.settle(30)
            for db in (0, 3):
                a.calls([["SELECT", db], ["SET", "k", 5, "PX", 2500], ["SET", "stays", 5], ["SET", "untouched", 1],
                         ["SELECT", 0]])
            mesh.settle()
            mesh.cut()
            give_each_other_up(mesh.nodes)
            in_turn(a, "FLUSHALL")
            for db in (0, 3):
                b.calls([["SELECT", db], ["INCRBY", "k", 12], ["INCRBY", "stays", 12], ["SET", "new", 1],
                         ["SELECT", 0]])
            if b.ask("GET", "k") != b"17":
                raise Wrong("this machine is too slow")
            wait_until(lambda: b.info("replication")["active_window_keys"] == "0" and
                       b.info("stats")["expired_keys"] == "2", 20, lambda: "what has expired is freed")
            if restarted is not None:
                mesh.nodes[restarted].shut_down()
                mesh.nodes[restarted].start()
            mesh.heal()
            mesh.settle(30)
            for db in (0, 3):
                for node in mesh.nodes:
                    node.ask("SELECT", db)
                env.expect(mesh, [("GET", "k"), ("GET", "new"), ("EXISTS", "untouched")], [b"12", b"1", 0])
            late = [int(node.info("replication")["active_flushes_late"]) for node in mesh.nodes]
            if restarted is None and late != [0, 16]:
                raise Wrong("the flush of 16 databases was late at the second node alone: %s" % late)


@test("core", only="ours")
def a_state_and_a_sync_and_a_save_at_once(env):
    """A newcomer asks for the state, a plain replica for the keys and a client for a file while another of the three is
    made by a thread: all get theirs, and the data are equal."""
    count = 90
    options = ("--snapshot-method", "threads", "--repl-diskless-sync-delay", "0", "--active-peer-timeout", "3600")
    wanted = {"state": "Background saving of the state", "sync": "Background RDB transfer started",
              "save": "Background saving started"}
    for order in (("state", "sync", "save"), ("sync", "state", "save"), ("save", "state", "sync")):
        with env.mesh(2, options=options) as mesh:
            a, b = mesh.nodes
            begin_moment(mesh, count)
            a.ask("SAVE")
            a.shut_down("NOSAVE")   # its history is gone: who comes gets the state
            a.start()
            a.ask("CONFIG", "SET", "rdb-key-save-delay", "2000")
            newcomer, replica = mesh.add(env.kind), Node(env.kinds, "ours", 9, active=False)
            try:
                for what in order:
                    if what == "state":
                        mesh.connect(2, 0)
                        mesh.connect(0, 2)
                    elif what == "sync":
                        replica.ask("REPLICAOF", "127.0.0.1", str(a.port))
                    else:
                        a.call("BGSAVE", "SCHEDULE")
                    if what == order[0]:
                        wait_until(lambda: wanted[what] in a.log(1 << 20), 30, lambda: "%s begins" % what)
                        started = a.log(1 << 20)
                change_all(a, count // 3, 1)
                change_all(b, count // 3, 1)
                for what in order:
                    wait_until(lambda: wanted[what] in a.log(1 << 20), 60,
                               lambda: "%s begins\n%s" % (what, a.log(2000)))
                if any(wanted[what] in started for what in order[1:]):
                    raise Wrong("nothing was in the way of anything\n%s" % started)
                a.ask("CONFIG", "SET", "rdb-key-save-delay", "0")
                wait_until(lambda: a.info("persistence")["rdb_bgsave_in_progress"] == "0" and
                           a.info("persistence")["rdb_saves"] == "1", 60, lambda: "the file is there\n%s" % a.log(2000))
                if a.info("stats")["total_forks"] != "0":
                    raise Wrong("a process was forked\n%s" % a.log(6000))
                mesh.heal()
                mesh.settle(60)
                wait_until(lambda: replica.call("DEBUG", "DIGEST")[1] == a.ask("DEBUG", "DIGEST"), 60,
                           lambda: "the replica is equal\n%s" % replica.log(1500))
            finally:
                replica.stop()


@test("core", only="ours")
def a_newcomer_finds_nothing_late(env):
    """What was done before a newcomer came has its place there: no key is written anew."""
    with env.mesh(2, connected=False) as mesh:
        a, b = mesh.nodes
        a.calls([["INCR", "n:%d" % number] for number in range(100)])
        wait_until(lambda: int(b.info("replication")["active_beats"]) > 2, 10, lambda: "the newcomer has beats")
        for pair in ((0, 1), (1, 0)):
            mesh.connect(*pair)
        mesh.settle(20)
        for node in mesh.nodes:
            facts = node.info("replication")
            for field in ("active_operations_late", "active_operations_late_wall", "active_repaired_keys"):
                if facts[field] != "0":
                    raise Wrong("%s: %s is %s" % (node.name, field, facts[field]))


@test("core", only="ours")
def a_newcomer_writes_before_it_meets_anybody(env):
    """What it did has its place among what the others did meanwhile: no key is written anew, nothing is lost."""
    with env.mesh(3) as mesh, Union(mesh) as union:
        a, b, newcomer = mesh.nodes
        mesh.settle(30)
        newcomer.kill()
        newcomer.wipe()
        mesh.isolate(2)
        newcomer.start()
        for node in mesh.nodes:
            node.calls([each for number in range(50) for each in (
                ["INCR", "n:%d" % number], ["SADD", "set", "%d.%d" % (node.index, number)],
                ["RPUSH", "list", "%d.%d" % (node.index, number)], ["SET", "s:%d" % number, node.index])])
        wait_until(lambda: int(newcomer.info("replication")["active_beats"]) > 5, 10, lambda: "the newcomer has beats")
        for node in mesh.nodes:
            node.calls([["APPEND", "s:%d" % number, node.index] for number in range(50)])
        mesh.heal()
        mesh.settle(20)
        env.expect(mesh, [("GET", "n:7"), ("SCARD", "set"), ("LLEN", "list")], [b"3", b"150", b"150"])
        for node in mesh.nodes:
            facts = node.info("replication")
            for field in ("active_operations_late", "active_operations_late_wall", "active_repaired_keys"):
                if facts[field] != "0":
                    raise Wrong("%s: %s is %s" % (node.name, field, facts[field]))
        union.check()


@test("core")
def a_snapshot_overtaken(env):
    """Writes go on everywhere while a newcomer takes its first data. The history has less than these, and more than
    what is written meanwhile."""
    with env.mesh(3, options=("--active-history-limit", "4mb") if env.kind == "ours" else (), connected=False,
                  separate=True) as mesh:
        a, b, c = mesh.nodes
        for pair in ((0, 1), (1, 0)):
            mesh.connect(*pair)
        mesh.settle(30, [a, b])
        fill(a, 5000, 1000)
        for pair in ((0, 2), (2, 0), (1, 2), (2, 1)):
            mesh.links[pair].throttle(4 << 20)
        begun = time.monotonic()
        joined = False
        total = pushed = 0
        while time.monotonic() - begun < 3:
            for node in mesh.nodes if joined else (a, b):
                replies = node.calls([["INCR", "n"], ["RPUSH", "l", "x"], ["SET", "key:%d" % (total % 5000), "new"]])
                total += replies[0][0] != "-"       # LOADING
                pushed += replies[1][0] != "-"
            if not joined and time.monotonic() - begun > 0.3:
                joined = True
                for pair in ((0, 2), (2, 0), (1, 2), (2, 1)):
                    mesh.connect(*pair)
        mesh.heal()
        mesh.settle(40)
        env.expect(mesh, [("GET", "n"), ("LLEN", "l")], [b"%d" % total, pushed])


@test("core")
def a_script_of_seconds(env):
    """A script runs for long on one node while the other one writes."""
    script = "local n = 0 for i = 1, %d do n = n + i %% 7 end redis.call('INCR', KEYS[1]) return 1"
    with env.mesh(2) as mesh, Union(mesh) as union:
        a, b = mesh.nodes
        mesh.settle(30)
        client = a.connect(60)
        client.sock.sendall(encode(["EVAL", script % (2 * 10 ** 8), 1, "n"]))
        end = time.monotonic() + 1
        count = 0
        while time.monotonic() < end:
            b.ask("INCR", "n")
            b.ask("SET", "other", count)
            count += 1
        reply = client.exchange(b"", 1)[0]
        client.close()
        if reply[0] != ":":
            raise Wrong("the script gives %r" % (reply,))
        mesh.settle(30)
        env.expect(mesh, [("GET", "n")], [b"%d" % (count + 1)])
        union.check()


@test("core")
def a_plain_master(env):
    """An active node follows redis-server: its stream is this node's operations."""
    with env.mesh(2) as mesh, env.redis() as master:
        a, b = mesh.nodes
        mesh.settle(30)
        master.ask("SET", "before", 1)
        master.ask("RPUSH", "l", "a")
        a.ask("SET", "own", 1)
        a.ask("REPLICAOF", "127.0.0.1", master.port)
        wait_until(lambda: a.ask("GET", "before") == b"1", 20, lambda: "its data come\n" + a.log(1500))
        master.ask("RPUSH", "l", "b")
        master.ask("INCR", "n")
        b.ask("INCR", "n")
        wait_until(lambda: a.ask("LLEN", "l") == b"2", 20, "its stream comes")
        mesh.settle(20)
        env.expect(mesh, [("LRANGE", "l", 0, -1), ("GET", "n"), ("GET", "own")], [[b"a", b"b"], b"2", b"1"])


@test("core", only="ours")
def a_plain_replica(env):
    """redis-server below a node gets what everybody writes, also what is placed before what it has."""
    with env.mesh(2) as mesh, env.redis() as replica, Union(mesh) as union:
        a, b = mesh.nodes
        mesh.settle(30)
        replica.ask("REPLICAOF", "127.0.0.1", a.port)
        wait_until(lambda: replica.info("replication").get("master_link_status") == "up", 20,
                   lambda: "redis-server follows\n" + a.log(1500))
        a.ask("RPUSH", "l", "0")
        mesh.settle(20)
        for _ in range(3):
            mesh.cut()
            for number in range(30):
                for node in (b, a):
                    node.ask("RPUSH", "l", "%d" % node.index)
                    node.ask("INCR", "n")
                    node.ask("SET", "s%d" % number, node.name)
                    node.ask("APPEND", "text", "%d" % node.index)
                    node.ask("SADD", "set", number, node.index)
                    node.ask("LPOP", "l")
            mesh.heal()
            mesh.settle(20)
        seen = pictures.take(a, False)

        def report():
            return pictures.compare([a, replica], [seen, pictures.take(replica, False)])

        wait_until(lambda: not report(), 10, lambda: "the replica is equal: " + pictures.readable(report()))
        union.check()


@test("core", only="ours")
def different_databases(env):
    """A node with fewer databases counts what it cannot take, and passes it on, also behind a restart."""
    def options(index):
        return ["--databases", 4 if index == 1 else 16, "--appendonly", "yes"]

    with env.mesh(3, "chain", options=options) as mesh:
        a, b, c = mesh.nodes
        mesh.settle(30)
        a.calls([["SELECT", 3], ["SET", "k", 1], ["SELECT", 0]])
        mesh.settle(20)
        for turn in (1, 2):
            mesh.cut((1, 2))
            a.calls([["SELECT", 9], ["INCR", "n"], ["SELECT", 0], ["SET", "after", turn]])
            wait_until(has(b, "after", b"%d" % turn), 20, "what comes behind it is there")
            if field_of(b, "operations_unknown") != 1:
                raise Wrong("what it cannot take is counted as %d" % field_of(b, "operations_unknown"))
            b.calls([["SELECT", 3], ["INCR", "k"], ["SELECT", 0], ["SET", "back", turn]])
            b.kill()
            b.start()
            mesh.heal()
            wait_until(has(a, "back", b"%d" % turn), 20, "the other way goes on")
            wait_until(has(c, "back", b"%d" % turn), 20, "the node behind it has it")
            for node, database, key, value in ((a, 3, "k", turn + 1), (b, 3, "k", turn + 1), (c, 9, "n", turn)):
                replies = node.calls([["SELECT", database], ["GET", key], ["SELECT", 0]])
                if replies[1][1] != b"%d" % value:
                    raise Wrong("%s: %s of database %d is %r" % (node.name, key, database, replies[1]))
        mesh.look_for_complaints()


@test("whole")
def a_large_key_in_conflict(env):
    """Both sides write one large key."""
    size = 64 << 20
    with env.mesh(2, separate=True) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        a.ask("SET", "large", b"x" * size)
        mesh.settle(60)
        mesh.cut()
        in_turn(b, "APPEND large b", "SETRANGE large 5 b")
        a.ask("SET", "large", b"y" * size)
        in_turn(b, "APPEND large c")
        in_turn(a, "APPEND large d")
        mesh.heal()
        mesh.settle(60)
        env.expect(mesh, [("STRLEN", "large"), ("GETRANGE", "large", size, -1)], [size + 2, b"cd"])


@test("core")
def conflicts_on_one_key(env):
    """Everybody writes one key as fast as it can, with links up."""
    with env.mesh(3) as mesh, Union(mesh) as union:
        mesh.settle(30)
        for _ in range(20):
            exchange_all([(node.connection(), b"".join(encode(words) for number in range(20) for words in (
                ["INCR", "n"], ["SET", "s", "%d %d" % (node.index, number)], ["RPUSH", "l", node.index],
                ["APPEND", "t", node.index], ["LPOP", "l"], ["HINCRBY", "h", "f", 1], ["ZINCRBY", "z", "0.1", "m"])),
                           140) for node in mesh.nodes])
        mesh.settle(20)
        env.expect(mesh, [("GET", "n"), ("HGET", "h", "f")], [b"1200", b"1200"])
        union.check()


@test("core")
def flushall_on_both_sides_during_a_sync(env):
    with env.mesh(2, connected=False, separate=True) as mesh:
        a, b = mesh.nodes
        fill(a, 5000, 1000)
        fill(b, 2000, 1000, "other")
        for pair in mesh.pairs:
            mesh.links[pair].throttle(4 << 20)
        for pair in mesh.pairs:
            mesh.connect(*pair)
        time.sleep(0.5)
        in_turn(a, "FLUSHALL", "SET a 1")
        in_turn(b, "FLUSHALL", "SET b 1")
        mesh.heal()
        mesh.settle(40)
        if env.kind == "ours":
            env.expect(mesh, [("EXISTS", "key:0", "key:4999", "other:0", "other:1999", "a"), ("EXISTS", "b")], [0, 1])


@test()
def a_cut_inside_a_transaction(env):
    """The link ends at every place of a transaction; it is there whole or not at all."""
    with env.mesh(2) as mesh, Union(mesh) as union:
        a, b = mesh.nodes
        mesh.settle(30)
        link = mesh.links[1, 0]
        for turn in range(30):
            link.at(400 + turn * 37, "cut", "down")
            link.cut()
            for number in range(10):
                a.calls([["MULTI"], ["SET", "x", turn * 100 + number], ["SET", "y", turn * 100 + number],
                         ["RPUSH", "l", "v" * 50], ["EXEC"]])
                x, y = (each[1] for each in b.ask("MGET", "x", "y"))
                if x != y:
                    raise Wrong("half a transaction is seen: %r and %r" % (x, y))
        mesh.heal()
        mesh.settle(30)
        env.expect(mesh, [("LLEN", "l")], [300])
        union.check()


@test("core", only="ours")
def a_link_that_lies(env):
    """Garbage, replays and cut frames close the link; data and node stay."""
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        a.ask("SET", "k", 1)
        mesh.settle(20)
        uuid = "01234567-89ab-4def-8123-456789abcdef"
        for garbage in (b"", b"\x01\x00", b"\x01\x05abcde", b"\xff" * 100, b"\x02\x80\x80\x80\x80\x80\x80\x80\x80\x01",
                        os.urandom(1000), b"*1\r\n$4\r\nPING\r\n"):
            with socket.create_connection(("127.0.0.1", a.port), 5) as sock:
                sock.settimeout(0.3)
                for words in (["REPLCONF", "capa", "eof", "capa", "one-order"], ["REPLCONF", "uuid", uuid],
                              ["REPLCONF", "one-order", uuid]):
                    sock.sendall(encode(words))
                    try:
                        sock.recv(65536)
                    except socket.timeout:
                        pass
                sock.sendall(garbage)
                try:
                    while sock.recv(65536):
                        break
                except OSError:
                    pass
        a.ask("INCR", "k")
        mesh.settle(20)
        env.expect(mesh, [("GET", "k")], [b"2"])


@test("core")
def pause_while_operations_come(env):
    """CLIENT PAUSE WRITE, then ALL, on one node while the other one writes."""
    with env.mesh(2) as mesh, Union(mesh) as union:
        a, b = mesh.nodes
        mesh.settle(30)
        for how in ("WRITE", "ALL"):
            a.call("CLIENT", "PAUSE", 500, how)
            for _ in range(100):
                b.ask("INCR", "n")
            time.sleep(0.6)
        mesh.settle(20)
        env.expect(mesh, [("GET", "n")], [b"200"])
        union.check()


@test("core")
def shutdown_in_the_middle(env):
    """SHUTDOWN SAVE while operations come in, again and again."""
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        acknowledged = 0
        for _ in range(3):
            for _ in range(200):
                b.ask("INCR", "n")
                acknowledged += 1
            a.ask("INCR", "n")
            acknowledged += 1
            a.shut_down("SAVE")
            for _ in range(200):
                b.ask("INCR", "n")
                acknowledged += 1
            a.start()
        mesh.settle(30)
        env.expect(mesh, [("GET", "n")], [b"%d" % acknowledged])


@test("core")
def nodes_come_and_go(env):
    """A member is added while others write, then it leaves."""
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        for _ in range(50):
            a.ask("INCR", "n")
            b.ask("INCR", "n")
        c = mesh.add(env.kind)
        for receiver, sender in ((2, 0), (0, 2), (2, 1), (1, 2)):
            mesh.connect(receiver, sender)
        for _ in range(50):
            a.ask("INCR", "n")
        mesh.settle(30)
        c.ask("INCR", "n")
        mesh.settle(20)
        env.expect(mesh, [("GET", "n")], [b"151"])
        for receiver, sender in ((2, 0), (0, 2), (2, 1), (1, 2)):
            mesh.disconnect(receiver, sender)
        a.ask("INCR", "n")
        mesh.settle(20, [a, b])


@test("whole")
def each_topology_in_trouble(env):
    """Conflicts, cuts and slow links in every topology of four nodes."""
    for topology in meshes.TOPOLOGIES:
        with env.mesh(4, topology, delay_s=0.002) as mesh, Union(mesh) as union:
            mesh.settle(40)
            for turn in range(6):
                pair = mesh.pairs[turn % len(mesh.pairs)]
                mesh.cut(pair)
                for node in mesh.nodes:
                    node.calls([["INCR", "n"], ["SET", "s", "%d %d" % (turn, node.index)], ["RPUSH", "l", node.index],
                                ["SADD", "set", turn * 10 + node.index], ["LPOP", "l"], ["APPEND", "t", node.index]])
                mesh.heal()
            mesh.settle(30)
            env.expect(mesh, [("GET", "n"), ("SCARD", "set")], [b"24", 24])
            union.check()


def has(node, key, value):
    return lambda: node.call("GET", key) == ("$", value)


@test("core", only="ours")
def last_words_of_a_start(env):
    """What a start of a node has said last comes behind what its next start says."""
    with env.mesh(3, options=["--appendonly", "yes", "--appendfsync", "always"]) as mesh:
        a, b, c = mesh.nodes
        mesh.settle(30)
        mesh.freeze((1, 0))
        in_turn(a, "INCR n", "RPUSH list old", "SET text old")
        wait_until(has(c, "text", b"old"), 20, "one node has it")
        a.kill()
        a.start()
        a.ask_when_loaded(20, "INCR", "n")
        in_turn(a, "RPUSH list new", "SET text new")
        wait_until(has(b, "text", b"new"), 20, "what the next start says is there by another link")
        mesh.heal()
        mesh.settle(30)
        env.expect(mesh, [("GET", "n"), ("LRANGE", "list", 0, -1), ("GET", "text")],
                   [b"2", [b"old", b"new"], b"new"])


@test("core", only="ours")
def evicted_here_expired_there(env):
    """A key is evicted on one side of a cut, and on the other one it expires and is written again."""
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(20)
        in_turn(a, "SET k 10 PX 1500", "SET other 1 PX 1500")
        wait_until(lambda: b.ask("DBSIZE") == a.ask("DBSIZE"), 20, "both have all")
        mesh.cut()
        in_turn(b, "CONFIG SET maxmemory-policy allkeys-random", "CONFIG SET maxmemory 1")
        wait_until(lambda: int(b.ask("DBSIZE")) == 0, 20, "all is evicted")
        in_turn(b, "CONFIG SET maxmemory 0")
        wait_until(lambda: int(a.ask("EXISTS", "k")) == 0, 20, "it has expired")
        in_turn(a, "INCR k")
        in_turn(b, "APPEND other x")
        mesh.heal()
        mesh.settle(20)
        env.expect(mesh, [("GET", "k"), ("GET", "other")], [b"1", b"x"])


def peer_of(node, other):
    """What INFO says of another node."""
    lines = node.ask("INFO", "replication").decode().splitlines()
    name = other.info("replication")["active_name"]
    found = [line.partition(":")[2] for line in lines if line.startswith("active_peer") and name in line]
    if len(found) != 1:
        raise Wrong("%s has %d lines of %s" % (node.name, len(found), other.name))
    return dict(field.split("=", 1) for field in found[0].split(","))


def field_of(node, name):
    return int(node.info("replication")["active_" + name])


@test("core", only="ours")
def a_silent_member_is_given_up(env):
    """It holds the window for active-peer-timeout, and not longer; when it is heard again all is there."""
    with env.mesh(3) as mesh:
        a, b, c = mesh.nodes
        mesh.settle(30)
        for node in (a, b):
            wait_until(lambda node=node: field_of(node, "frontier_age_ms") >= 0, 20, "the frontier has begun")
        name = c.identity()
        c.pause()
        for node in (a, b):
            node.calls([["INCR", "n"]] * 50)
        wait_until(lambda: field_of(a, "frontier_age_ms") > 2000, 20, lambda: "the silent member holds the frontier")
        if field_of(a, "window_keys") == 0 or field_of(a, "members_given_up"):
            raise Wrong("it is not waited for")
        for node in (a, b):
            node.ask("CONFIG", "SET", "active-peer-timeout", 1)
        for node in (a, b):
            wait_until(lambda node=node: field_of(node, "members_given_up") == 1, 20, "it is given up")
            wait_until(lambda node=node: field_of(node, "window_keys") == 0, 20, "the window is settled")
            if "Node %s was silent for 1 seconds: it is not waited for any more" % name not in node.log(1 << 20):
                raise Wrong("%s does not tell of it\n%s" % (node.name, node.log(1500)))
        for node in (a, b):
            node.ask("CONFIG", "SET", "active-peer-timeout", 3600)
        c.resume()
        c.calls([["INCR", "n"]] * 50)
        mesh.settle(30)
        env.expect(mesh, [("GET", "n")], [b"150"])
        for node in (a, b):
            wait_until(lambda node=node: field_of(node, "members_given_up") == 0, 20, "it is waited for")
            wait_until(lambda node=node: "Node %s is heard again" % name in node.log(1 << 20), 10,
                       lambda node=node: "it is told\n" + node.log(1500))
            if peer_of(node, c)["given_up"] != "0":
                raise Wrong("%s still has it as given up" % node.name)


@test("core", only="ours")
def forgetting_a_member(env):
    """FORGET is refused while a member does not know all others; FORCE says what that costs. Then nobody waits for the
    member, and if it comes back it is a new one, with data."""
    with env.mesh(3, options=("--appendonly", "yes")) as mesh:
        a, b, c = mesh.nodes
        mesh.settle(30)
        mesh.isolate(2)
        d = mesh.add(env.kind)
        for pair in ((3, 0), (0, 3), (3, 1), (1, 3)):
            mesh.connect(*pair)
        b.ask("SADD", "s", "of b")
        c.ask("SADD", "s", "of c")
        d.ask("SADD", "s", "of d")
        mesh.settle(30, [a, b, d])
        name = b.identity()
        b.kill()
        reply = a.call("KEYDB.ACTIVE", "FORGET", name)
        if reply[0] != "-" or b"does not know all others" not in reply[1]:
            raise Wrong("FORGET gives %r" % (reply,))
        if [field_of(node, "members") for node in (a, d)] != [4, 4]:
            raise Wrong("it is forgotten though that was refused")
        reply = a.call("KEYDB.ACTIVE", "FORGET", name, "FORCE")
        if reply[0] != "+" or b" of the members that remain did not know all others" not in reply[1]:
            raise Wrong("FORGET FORCE gives %r" % (reply,))
        mesh.heal()
        mesh.settle(30, [a, c, d])
        for node in (a, c, d):
            wait_until(lambda node=node: field_of(node, "members") == 3, 20, "all know that it is gone")
            wait_until(lambda node=node: 0 <= field_of(node, "frontier_age_ms") < 1500, 20, "nobody waits for it")
        b.start()
        wait_until(lambda: "comes back as a new node" in b.log(1 << 20), 20, lambda: "it is refused\n" + b.log(1500))
        b.kill()
        os.remove(os.path.join(b.folder, "keydb-identity"))
        b.start()
        mesh.settle(40)
        env.expect(mesh, [("SCARD", "s")], [3])
        b.ask("SADD", "s", "of b again")
        mesh.settle(30)
        env.expect(mesh, [("SCARD", "s")], [4])
        name = b.identity()
        b.kill()
        wait_until(lambda: a.call("KEYDB.ACTIVE", "FORGET", name) == ("+", b"OK"), 20,
                   lambda: "all know each other, so it is done: %r" % (a.call("KEYDB.ACTIVE", "FORGET", name),))
        wait_until(lambda: [field_of(node, "members") for node in (a, c, d)] == [3, 3, 3], 20, "all know it")


@test("core", only="ours")
def a_clock_ahead_is_told(env):
    """skew_ms of a peer, and the log of who hears its stamps."""
    with env.mesh(2, clocks=(0, 90)) as mesh:
        a, b = mesh.nodes
        mesh.settle(30)
        for node, other, sign in ((a, b, 1), (b, a, -1)):
            wait_until(lambda: 80000 < sign * int(peer_of(node, other).get("skew_ms", 0)) < 100000, 20,
                       lambda: "%s tells how far the other clock is away: %r" % (node.name, peer_of(node, other)))
        wait_until(lambda: re.search(r"Stamps are (8\d|9\d) seconds ahead of this machine's clock", a.log(1 << 20)), 10,
                   lambda: "the log tells of it\n" + a.log(1500))
        if "ahead of this machine" in b.log(1 << 20):
            raise Wrong("the one that is ahead hears no such stamps")


@test("core", only="ours")
def nothing_is_forwarded(env):
    """multi-master-no-forward: in a chain each node has what its neighbours wrote, in a full mesh all have all."""
    with env.mesh(3, "chain", options=("--multi-master-no-forward", "yes")) as mesh:
        a, b, c = mesh.nodes
        for pair in ((0, 1), (1, 2)):
            mesh.wait_for_all(30, [mesh.nodes[number] for number in pair])
        a.ask("SET", "of a", 1)
        wait_until(has(b, "of a", b"1"), 20, "the neighbour has it")
        for number in range(20):
            b.ask("SET", "of b", number)
            wait_until(has(c, "of b", b"%d" % number), 20, "the neighbour has it")
        if c.ask("EXISTS", "of a") != b"0":
            raise Wrong("it was forwarded")
        for pair in ((0, 2), (2, 0)):
            mesh.connect(*pair)
        mesh.settle(30)
        before = entries_received(mesh)
        for node in mesh.nodes:
            node.calls([["INCR", "n"]] * 200)
        mesh.settle(30)
        came, old = (now - then for now, then in zip(entries_received(mesh), before))
        env.expect(mesh, [("GET", "of a"), ("GET", "n")], [b"1", b"600"])
        if old or not 1200 <= came <= 1200 + 6 * 5:
            raise Wrong("%d entries were received, and %d twice, of 600 writes for two nodes each" % (came, old))


@test("core", only="ours")
def what_a_lost_disk_left_is_forwarded(env):
    """multi-master-no-forward: what only some have of a node whose disk is lost comes from them: nobody else has it."""
    with env.mesh(4, options=("--multi-master-no-forward", "yes")) as mesh:
        a, b, c, d = mesh.nodes
        mesh.settle(30)
        mesh.cut((1, 3), (2, 3))
        for number in range(20):
            d.ask("INCR", "n")
            d.ask("SADD", "s", number)
        wait_until(has(a, "n", b"20"), 20, "one peer has it")
        name = d.identity()
        d.kill()
        d.wipe()
        d.start()
        mesh.heal()
        for node in (a, b, c):
            node.ask("KEYDB.ACTIVE", "FORGET", name, "FORCE")
        for node in mesh.nodes:
            node.ask_when_loaded(20, "INCR", "n")
        mesh.settle(30)
        env.expect(mesh, [("GET", "n"), ("SCARD", "s")], [b"24", 20])


@test("core", only="ours")
def links_over_tls(env):
    """Cuts, restarts and new certificates; a peer of another authority is told why, and tries again at its pace."""
    durable = ["--appendonly", "yes", "--appendfsync", "always"]
    with env.mesh(3, options=lambda number: certificates.options_of_node(number) + durable) as mesh:
        a, b, c = mesh.nodes
        mesh.settle(30)
        for number in range(5):
            for node in mesh.nodes:
                node.calls([["INCR", "n"], ["RPUSH", "list", number], ["SADD", "s", "%d of %s" % (number, node.name)]])
            mesh.cut(((0, 1), (1, 2), (2, 0))[number % 3])
            if number == 2:
                c.kill()
                c.start()
            for node in mesh.nodes:
                node.ask_when_loaded(20, "INCR", "n")
            mesh.heal()
        mesh.settle(30)
        env.expect(mesh, [("GET", "n"), ("LLEN", "list"), ("SCARD", "s")], [b"30", 15, 15])

        wait_until(lambda: all(node.info("replication")["active_links_up"] == "2" for node in mesh.nodes), 30,
                   "all links are up: one that was refused, as an old one was there still, comes a second later")
        before = a.info("replication")["active_links_up"]
        mark = len(b.log(1 << 24))
        a.ask("CONFIG", "SET", *certificates.words("other", ""))    # links that are up go on
        a.ask("INCR", "n")
        mesh.settle(20)
        if a.info("replication")["active_links_up"] != before:
            raise Wrong("a new certificate ended links")
        mesh.flicker((1, 0), (0, 1))
        told = "certificate verify failed|unknown ca"
        wait_until(lambda: re.search(told, b.log(1 << 24)[mark:]), 20,
                   lambda: "the log says that the authority is another one\n" + b.log(1500))
        b.ask("INCR", "n")                          # by way of c
        mesh.settle(20)
        began, before = time.monotonic(), mesh.links[1, 0].accepted
        wait_until(lambda: mesh.links[1, 0].accepted >= before + 3, 30, "it tries again")
        spent, tries = time.monotonic() - began, mesh.links[1, 0].accepted - before
        if tries > 4 + 4 * spent:
            raise Wrong("it tried %d times in %.1f s" % (tries, spent))
        a.ask("CONFIG", "SET", *certificates.words("main", ""))
        mesh.wait_for_all(30)
        a.ask("INCR", "n")
        mesh.settle(20)
        env.expect(mesh, [("GET", "n")], [b"33"])


@test("core", only="ours")
def links_are_killed(env):
    """CLIENT KILL ends links by which others receive; they come again."""
    with env.mesh(2) as mesh:
        a, b = mesh.nodes
        mesh.settle(20)
        for number in range(3):
            if int(a.ask("CLIENT", "KILL", "TYPE", "replica")) != 1:
                raise Wrong("there is not one link to be killed")
            in_turn(a, "INCR n")
            in_turn(b, "INCR n")
            mesh.settle(20)
        env.expect(mesh, [("GET", "n")], [b"6"])


def entries_received(mesh):
    """By all nodes: those that they took, and those that were there already."""
    lines = b"".join(node.ask("INFO", "replication") for node in mesh.nodes).decode()
    return [sum(map(int, re.findall(r",%s=(\d+)" % name, lines))) for name in ("received", "old")]


@test("core", only="ours")
def deliveries_in_a_mesh(env):
    """Each operation comes to each node once, in any topology."""
    for topology, count in (("pair", 2), ("chain", 4), ("ring", 4), ("star", 4), ("mesh", 4)):
        with env.mesh(count, topology) as mesh:
            mesh.settle(40)
            before = entries_received(mesh)
            for node in mesh.nodes:
                node.calls([["SET", "%s:%d" % (node.name, number), b"x" * 100] for number in range(250)])
            mesh.settle(20)
            came, old = (now - then for now, then in zip(entries_received(mesh), before))
            least, marks = (count - 1) * count * 250, (count - 1) * count
            if old or not least + marks <= came <= least + 5 * marks:
                raise Wrong("%s: %d entries were received, and %d twice, of %d writes" % (
                    topology, came, old, count * 251))


# ----------------------------------------------------------------------------------------------------------------------

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--keydb")
    parser.add_argument("--nodes", choices=("ours", "keydb"), default="ours")
    parser.add_argument("--only", default="")
    parser.add_argument("--level", choices=LEVELS, default="core")
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--must-fail", default="")
    parser.add_argument("--case")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if options.list:
        print("\n".join(TESTS))
        return 0
    env = Env(options)
    why_not = meshes.speaks_active(env.kinds, env.kind)
    if why_not:
        print("skipped: %s" % why_not)
        print("0 passed, 0 failed")
        return 0
    must_fail = [name.strip() for name in options.must_fail.split(",") if name.strip()]
    chosen = [name.strip() for name in options.only.split(",") if name.strip()] or must_fail
    unknown = [name for name in chosen if name not in TESTS]
    if unknown:
        sys.exit("no such test: %s" % ", ".join(unknown))
    part, parts = (int(number) for number in options.part.split("/"))
    passed = failed = 0
    for number, (name, (function, level, only)) in enumerate(TESTS.items()):
        if chosen and name not in chosen or only and only != env.kind or number % parts != part - 1 or \
                not chosen and LEVELS.index(level) > LEVELS.index(options.level):
            continue
        begun = time.monotonic()
        problem = None
        try:
            function(env)
        except (Wrong, Lost, OSError) as found:
            problem = "%s: %s" % (type(found).__name__, found)
        took = time.monotonic() - begun
        if name in must_fail:
            good = problem is not None
            print("%s %-40s %5.1f s  %s" % ("ok    " if good else "FAILED", name, took, "found as it has to be: %s" % (
                problem.split("\n")[0][:100]) if good else "the known defect is not found"), flush=True)
        else:
            good = problem is None
            print("%s %-40s %5.1f s  %s" % ("ok    " if good else "FAILED", name, took, problem or ""), flush=True)
        passed, failed = passed + good, failed + (not good)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
