#!/usr/bin/env python3
"""Latencies of GET and SET at a fixed rate while something happens to the server: ours, Redis, and a responder that
does nothing.

    tails.py --server BIN [--oracle BIN] [--keys N] [--shares 20,50,80] [--seconds N] [--threads N] [--rounds N]
             [EVENT ...]

    calm         nothing happens: what the machine, the kernel and the load itself add; also measured with floor.c
    growth       the keys are written, from none to N, within the time
    expiry       N / 10 more keys are due in one second
    eviction     new keys come while memory is at its limit
    del, unlink  a sorted set of 0.3 N members is deleted
    zremrange    all of them but 20 are removed (ZREMRANGEBYRANK)
    spop         as many members of a set are popped but 20 (the answer is read)
    xgroup       a group of a stream with 0.3 N pending entries is destroyed (XGROUP DESTROY)
    delconsumer  its only consumer is (XGROUP DELCONSUMER)
    rewrite      the append-only file is rewritten
    connections  1,000 to 10,000 clients (N / 1,000) connect and ask once
    script       a script of 100 ms on a key of its own

The load is open: each request is due at its time, and waits of those behind a stalled one count (load.c). It is half
GET, half SET, on all N keys, at shares of what is answered at full speed by the slowest of those compared, so that
all have the same rate. Each event begins a second after measuring began. Printed are milliseconds, medians over the
rounds; how long the event took; and, as cpu, how long the server's first thread and the load were ready to run and
waited for a processor, of all the time that was measured: that is the neighbours' (0: the event outlasted the load).
"ours" marks a longest wait of more than 2 ms above the responder's and above Redis'.
"""
import argparse
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "differential"))

from harness import Lost, Server, encode, free_port, is_redis      # noqa: E402

LATENCIES = ("p50", "p99", "p99.9", "max")
CONNECTIONS, PIPELINE, VALUE_BYTES = 50, 100, 64
BATCH, CHUNK, KEYS_A_MS = 500, 10000, 20
LEAST_NEWCOMERS, MOST_NEWCOMERS = 1000, 10000
QUEUED_MARGIN_S = 0.2
WARM_UP_S, BEGIN_S = 1, 2       # after the load has started: when measuring begins, and the event
OURS_MS = 2
FILL_ZSET = """for i = ARGV[1], ARGV[2] do redis.call('ZADD', KEYS[1], i, 'member:' .. i) end"""
FILL_SET = """for i = ARGV[1], ARGV[2] do redis.call('SADD', KEYS[1], 'member:' .. i) end"""
FILL_STREAM = """for i = ARGV[1], ARGV[2] do redis.call('XADD', KEYS[1], i + 1 .. '-0', 'field', 'value') end"""
LEFT = 20       # members
SLOW = """local function now() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end
local start = now() while now() < start + 100000 do end return 1"""


def ask(connection, *words):
    kind, value = connection.command(*words)
    if kind == "-":
        raise Lost("%s: %s" % (words[0], value.decode(errors="replace")))
    return value


def info(connection, field):
    return int(ask(connection, "INFO").decode().split("\r\n%s:" % field)[1].split("\r\n")[0])


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Lost("%d s were not enough" % seconds)
        time.sleep(0.05)


# --- load ---

def load_command(options, port, *words):
    return [options.load, "--port", str(port), "--keys", str(options.keys), "--value-size", str(VALUE_BYTES), "--json",
            *map(str, words)]


def figures_of(process):
    out, problem = process.communicate(timeout=300)
    if process.returncode:
        raise Lost("load: %s%s" % (out[-300:], problem[-300:]))
    return json.loads(out.splitlines()[-1])


def start_load(options, port, *words):
    return subprocess.Popen(load_command(options, port, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def write_keys(options, port):
    figures_of(start_load(options, port, "--sequential", "--count", options.keys, "--connections", 4, "--pipeline",
                          PIPELINE))


def capacity(options, port):
    return figures_of(start_load(options, port, "--seconds", 2, "--gets", 50, "--connections", CONNECTIONS))["rate"]


# --- events: `prepare` before the load starts, `happen` while it runs; both get the case ---

class Case:
    """A server with the keys, and what an event needs to know."""

    def __init__(self, options, server):
        self.options, self.port, self.control = options, server.port, server.connect(300)

    @property
    def members(self):
        return self.options.keys * 3 // 10

    def fill(self, script, key):
        ask(self.control, "DEL", key)
        for first in range(0, self.members, CHUNK):
            ask(self.control, "EVAL", script, "1", key, str(first), str(min(first + CHUNK, self.members) - 1))

    def make_zset(self):
        self.fill(FILL_ZSET, "zset")

    def make_set(self):
        self.fill(FILL_SET, "set")

    def make_group(self):
        self.fill(FILL_STREAM, "stream")
        ask(self.control, "XGROUP", "CREATE", "stream", "group", "0")
        for _ in range(0, self.members, CHUNK):
            ask(self.control, "XREADGROUP", "GROUP", "group", "consumer", "COUNT", str(CHUNK), "STREAMS", "stream", ">")

    def pipeline(self, commands):
        for begin in range(0, len(commands), BATCH):
            part = commands[begin:begin + BATCH]
            self.control.exchange(b"".join(encode(words) for words in part), len(part))


def nothing(case):
    pass


def empty(case):
    ask(case.control, "FLUSHALL", "SYNC")


def grow(case):
    options, seconds = case.options, case.options.seconds - 1
    figures_of(start_load(options, case.port, "--sequential", "--count", options.keys, "--seconds", seconds, "--rate",
                          max(1, options.keys // seconds), "--connections", 1, "--pipeline", PIPELINE))


def make_due(case):
    """Due within the second in which the event begins; returns when it is time to start the load."""
    count = case.options.keys // 10
    due_ms = int(time.time() * 1000) + count // KEYS_A_MS + 5000
    for first in range(0, count, CHUNK):
        case.pipeline([["SET", "due:%d" % number, "x" * VALUE_BYTES, "PXAT", str(due_ms + number * 1000 // count)]
                       for number in range(first, min(first + CHUNK, count))])
    left = due_ms / 1000 - BEGIN_S - time.time()
    if left < 0:
        raise Lost("the keys came too slowly: some are due before the load starts")
    time.sleep(left)


def fall_due(case):
    wait_for(lambda: int(ask(case.control, "DBSIZE")) <= case.options.keys)


def at_limit(case):
    ask(case.control, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    ask(case.control, "CONFIG", "SET", "maxmemory", str(info(case.control, "used_memory")))


def evict(case):
    """Keys with longer names are new ones."""
    options = case.options
    figures_of(start_load(options, case.port, "--key-size", 24, "--count", max(1000, options.keys // 10), "--seconds",
                          options.seconds - 1, "--rate", max(1, options.keys // 10 // (options.seconds - 1)),
                          "--connections", 1, "--pipeline", PIPELINE))


def no_limit(case):
    ask(case.control, "CONFIG", "SET", "maxmemory", "0")


def delete(case):
    ask(case.control, "DEL", "zset")


def unlink(case):
    ask(case.control, "UNLINK", "zset")


def remove_range(case):
    ask(case.control, "ZREMRANGEBYRANK", "zset", "0", str(-LEFT - 1))


def pop_members(case):
    ask(case.control, "SPOP", "set", str(case.members - LEFT))


def destroy_group(case):
    ask(case.control, "XGROUP", "DESTROY", "stream", "group")


def delete_consumer(case):
    ask(case.control, "XGROUP", "DELCONSUMER", "stream", "group", "consumer")


def is_rewriting(case):
    return info(case.control, "aof_rewrite_in_progress") or info(case.control, "aof_rewrite_scheduled")


def append(case):
    ask(case.control, "CONFIG", "SET", "appendonly", "yes")
    wait_for(lambda: not is_rewriting(case))


def rewrite(case):
    ask(case.control, "BGREWRITEAOF")
    wait_for(lambda: not is_rewriting(case))


def connect_many(case):
    count = min(max(case.options.keys // 1000, LEAST_NEWCOMERS), MOST_NEWCOMERS)
    newcomers = [socket.create_connection(("127.0.0.1", case.port), 30) for _ in range(count)]
    for newcomer in newcomers:
        newcomer.sendall(b"PING\r\n")
    for newcomer in newcomers:
        newcomer.recv(64)
        newcomer.close()


def run_script(case):
    ask(case.control, "EVAL", SLOW, "1", "of-its-own")


EVENTS = {      # what is done before the load starts, while it runs, and when it is over
    "calm": (nothing, nothing, nothing),
    "growth": (empty, grow, nothing),
    "expiry": (make_due, fall_due, nothing),
    "eviction": (at_limit, evict, no_limit),
    "del": (Case.make_zset, delete, nothing),
    "unlink": (Case.make_zset, unlink, nothing),
    "zremrange": (Case.make_zset, remove_range, nothing),
    "spop": (Case.make_set, pop_members, nothing),
    "xgroup": (Case.make_group, destroy_group, nothing),
    "delconsumer": (Case.make_group, delete_consumer, nothing),
    "rewrite": (append, rewrite, nothing),
    "connections": (nothing, connect_many, nothing),
    "script": (nothing, run_script, nothing),
}


# --- the run ---

class Responder:
    """floor.c, as a server to measure."""

    def __init__(self):
        program = os.path.join(TOP, "build", "bench", "floor")
        os.makedirs(os.path.dirname(program), exist_ok=True)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", program, os.path.join(HERE, "floor.c")], check=True)
        self.port = free_port()
        self.process = subprocess.Popen([program, str(self.port), "get", str(VALUE_BYTES)])
        wait_for(self.listens, 10)

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def stop(self):
        self.process.kill()
        self.process.wait()


def queued_ms(pid):
    """How long the process' first thread has waited for a processor so far."""
    with open("/proc/%d/schedstat" % pid, encoding="ascii") as stat:
        return int(stat.read().split()[1]) / 1e6


def run_under_load(options, server, rate, happen):
    """The load's figures, how many milliseconds the event took, and how many both waited for a processor."""
    load = start_load(options, server.port, "--rate", rate, "--seconds", options.seconds + BEGIN_S, "--warm-up",
                      WARM_UP_S, "--gets", 50, "--connections", CONNECTIONS, "--pipeline", PIPELINE)
    pids = server.process.pid, load.pid
    try:
        time.sleep(WARM_UP_S)
        queued = sum(map(queued_ms, pids))
        time.sleep(BEGIN_S - WARM_UP_S)
        begun = time.monotonic()
        happen()
        took = time.monotonic() - begun
        time.sleep(max(0, options.seconds - took - QUEUED_MARGIN_S))    # the load must still be there to be asked
        queued = sum(map(queued_ms, pids)) - queued if load.poll() is None else 0
        return {**figures_of(load), "event": took * 1000, "cpu": queued}
    finally:
        if load.poll() is None:
            load.kill()
            load.wait()


def start(options, binary):
    return Server(binary, ["--maxclients", MOST_NEWCOMERS + 1000, "--tcp-backlog", 4096],
                  None if is_redis(binary) else options.threads)


def run_event(options, binary, event, rates):
    """share -> figures, each a median over the rounds."""
    prepare, happen, tidy = EVENTS[event]
    server = start(options, binary)
    try:
        if event != "growth":
            write_keys(options, server.port)
        found = {}
        for share, rate in rates.items():
            runs = []
            for _ in range(options.rounds):
                case = Case(options, server)
                prepare(case)
                runs.append(run_under_load(options, server, rate, lambda: happen(case)))
                tidy(case)
                case.control.close()
            found[share] = medians(runs)
        return found
    finally:
        server.stop()


def medians(runs):
    return {name: statistics.median(run[name] for run in runs) for name in (*LATENCIES, "rate", "event", "cpu")}


def measure_capacity(options, binaries):
    """What each answers at full speed; the responder's figures at the rates are the first rows."""
    found = {}
    for name, binary in binaries.items():
        server = start(options, binary)
        try:
            write_keys(options, server.port)
            found[name] = capacity(options, server.port)
        finally:
            server.stop()
    return found


def show(event, name, share, figures, note=""):
    print("%-12s %-6s %3d %%  %8.0f/s  %s   event %8.1f  cpu %6.1f %s" % (
        event, name, share, figures["rate"], "  ".join("%s %8.3f" % (each, figures[each]) for each in LATENCIES),
        figures["event"], figures["cpu"], note), flush=True)


def measure_responder(options, binaries):
    """The rates, by share of the slowest one's capacity, and the responder's figures at them."""
    responder = Responder()
    try:
        capacities = {**measure_capacity(options, binaries), "floor": capacity(options, responder.port)}
        print("at full speed: " + ", ".join("%s %.0f/s" % item for item in capacities.items()), flush=True)
        rates = {share: max(1, int(min(capacities.values()) * share / 100)) for share in options.shares}
        floor = {share: medians([run_under_load(options, responder, rate, lambda: None)
                                 for _ in range(options.rounds)]) for share, rate in rates.items()}
    finally:
        responder.stop()
    for share, figures in floor.items():
        show("calm", "floor", share, figures)
    return rates, floor


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", help="redis-server")
    parser.add_argument("--load", help="the load generator; without it that of the server's build")
    parser.add_argument("--keys", type=int, default=1000000)
    parser.add_argument("--shares", default="20,50,80", type=lambda text: [int(share) for share in text.split(",")])
    parser.add_argument("--seconds", type=int, default=6, help="of each run, once the event has begun")
    parser.add_argument("--threads", type=int, default=1, help="of our server; Redis has one")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("events", nargs="*", metavar="EVENT", help="%s; without any all" % ", ".join(EVENTS))
    options = parser.parse_args()
    unknown = set(options.events) - set(EVENTS)
    if unknown:
        parser.error("there is no event %s" % ", ".join(sorted(unknown)))
    if options.seconds < 2 or options.keys < 10:
        parser.error("less than 2 seconds or 10 keys tell nothing")
    if options.load is None:
        options.load = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(options.server))), "bench", "load")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    binaries = {**({"redis": options.oracle} if options.oracle else {}), "keydb": options.server}
    rates, floor = measure_responder(options, binaries)
    for event in options.events or EVENTS:
        found = {name: run_event(options, binary, event, rates) for name, binary in binaries.items()}
        for share in rates:
            for name, figures in found.items():
                others = max(floor[share]["max"], found["redis"][share]["max"] if "redis" in found else 0)
                is_ours = name == "keydb" and figures[share]["max"] > others + OURS_MS
                show(event, name, share, figures[share], "ours" if is_ours else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
