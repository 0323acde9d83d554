#!/usr/bin/env python3
"""Data types beside redis-server: server CPU time a request, and how long others wait while a command works on a big
value. Memory is in bytes.py.

    types.py --server BIN --oracle BIN [-n ROUNDS] [-w REGEX] [--quick] [--only cpu|stall]

One worker, pipeline 32, server and client pinned; the servers take turns, printed are medians. Commands that a server
does not know are skipped, aloud. Figures mean something on an otherwise idle machine only.
"""
import argparse
import hashlib
import os
import re
import shlex
import socket
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "differential"))

from bytes import fill      # noqa: E402
from harness import Server, encode, is_redis      # noqa: E402

MILLION = 1_000_000
CPU_BUDGET = 0.7
SCRIPT_BUDGET = 0.6


def members(name, count, extra=(), size=1):
    """`name key [extra] member ...` that fills one key with `count` members, so many at a time."""
    for begin in range(0, count, 100):
        words = [name, *extra]
        for number in range(begin, min(begin + 100, count)):
            words += [("%d" % number), "member:%012d" % number][-size:]
        yield words


def zset(key, count):
    return members("ZADD", count, [key], 2)


def plain(name, key, count):
    return members(name, count, [key])


def fields(key, count):
    for begin in range(0, count, 100):
        words = ["HSET", key]
        for number in range(begin, min(begin + 100, count)):
            words += ["field:%012d" % number, "value:%012d" % number]
        yield words


def entries(key, count):
    return (["XADD", key, "%d-1" % (number + 1), "field", "value:%012d" % number] for number in range(count))


def places(key, count):
    for number in range(count):
        yield ["GEOADD", key, "%.6f" % (-10 + number * 7 % 2000 / 100), "%.6f" % (40 + number * 13 % 1500 / 100),
               "place:%d" % number]


GET_SCRIPT = "return redis.call('GET', KEYS[1])"
SET_SCRIPT = "return redis.call('SET', KEYS[1], ARGV[1])"
LIBRARY = "#!lua name=bench\nredis.register_function('get', function(keys) return redis.call('GET', keys[1]) end)"


def loaded(script):
    return [["SCRIPT", "LOAD", script], *([["SET", "key:%012d" % number, "value"] for number in range(100000)])]


def sha1(script):
    return hashlib.sha1(script.encode()).hexdigest()


# name, requests, what fills the server before, the command as redis-benchmark takes it, its budget if it is another
WORKLOADS = [
    ("LPUSH", 1000000, lambda: (), "LPUSH list:__rand_int__ element-of-a-list"),
    ("RPOP", 1000000, lambda: plain("LPUSH", "list", 1200000), "RPOP list"),
    ("LRANGE 100", 100000, lambda: plain("RPUSH", "list", 1000), "LRANGE list 0 99"),
    ("SADD", 1000000, lambda: (), "SADD set member:__rand_int__"),
    ("SISMEMBER", 1000000, lambda: plain("SADD", "set", 100000), "SISMEMBER set member:__rand_int__"),
    ("SINTER 1000 x 1000", 3000, lambda: [*plain("SADD", "a", 1000), *plain("SADD", "b", 1000)], "SINTER a b"),
    ("HSET", 1000000, lambda: (), "HSET hash:__rand_int__ field some-value"),
    ("HGET", 1000000, lambda: fields("hash", 100000), "HGET hash field:__rand_int__"),
    ("HGETALL 50", 100000, lambda: fields("hash", 50), "HGETALL hash"),
    ("ZADD", 1000000, lambda: (), "ZADD zset __rand_int__ member:__rand_int__"),
    ("ZRANGE 100 WITHSCORES", 100000, lambda: zset("zset", 10000), "ZRANGE zset 0 99 WITHSCORES"),
    ("ZRANGEBYSCORE 100", 100000, lambda: zset("zset", 100000), "ZRANGEBYSCORE zset __rand_int__ +inf LIMIT 0 100"),
    ("ZRANK in 1 M", 1000000, lambda: zset("zset", MILLION), "ZRANK zset member:__rand_int__"),
    ("XADD", 1000000, lambda: (), "XADD stream * field value"),
    ("XRANGE 100", 50000, lambda: entries("stream", 10000), "XRANGE stream - + COUNT 100"),
    ("PFADD", 1000000, lambda: (), "PFADD hll element:__rand_int__"),
    ("GEOSEARCH", 20000, lambda: places("geo", 10000), "GEOSEARCH geo FROMLONLAT 0 47 BYRADIUS 100 km"),
    ("SETBIT", 1000000, lambda: (), "SETBIT bits:__rand_int__ 77 1"),
    ("SORT of 1000", 3000, lambda: members("RPUSH", 1000, ["list"], 2), "SORT list"),
    ("EVALSHA of GET", 500000, lambda: loaded(GET_SCRIPT), "EVALSHA %s 1 key:__rand_int__" % sha1(GET_SCRIPT),
     SCRIPT_BUDGET),
    ("EVALSHA of SET", 500000, lambda: loaded(SET_SCRIPT), "EVALSHA %s 1 key:__rand_int__ value" % sha1(SET_SCRIPT),
     SCRIPT_BUDGET),
    ("EVAL of GET", 500000, lambda: (), "EVAL \"%s\" 1 key:__rand_int__" % GET_SCRIPT, SCRIPT_BUDGET),
    ("FCALL of GET", 500000, lambda: [["FUNCTION", "LOAD", LIBRARY]], "FCALL get 1 key:__rand_int__", SCRIPT_BUDGET),
]
SORT_NUMBERS = [["RPUSH", "list", *[str(number * 7919 % 100003) for number in range(1000)]]]

# name, what makes the value, the command
STALLS = [
    ("DEL of a hash", lambda: fields("key", MILLION), ["DEL", "key"]),
    ("HGETALL", lambda: fields("key", MILLION), ["HGETALL", "key"]),
    ("SMEMBERS", lambda: plain("SADD", "key", MILLION), ["SMEMBERS", "key"]),
    ("ZUNIONSTORE", lambda: zset("key", MILLION), ["ZUNIONSTORE", "to", "2", "key", "key"]),
]


def knows(server, name):
    connection = server.connect()
    reply = connection.command("COMMAND", "INFO", name)
    connection.close()
    return reply[1][0][1] is not None


def cpu_once(options, binary, workload, requests):
    name, _, make, command = workload[:4]
    server = Server(binary, [], 1, "0")
    try:
        if not knows(server, command.split()[0]):
            return None
        fill(server, SORT_NUMBERS if name.startswith("SORT") else make())
        begin = server.cpu_seconds()
        done = subprocess.run(["taskset", "-c", "1", options.tool, "-p", str(server.port), "-c", "50", "-P", "32", "-n",
                               str(requests), "-r", "100000", "-q", *shlex.split(command)], capture_output=True,
                              text=True, timeout=600)
        if done.returncode or "rror" in done.stdout:
            raise SystemExit("%s: %s" % (name, done.stdout[-300:] + done.stderr[-300:]))
        return (server.cpu_seconds() - begin) / requests * 1e6
    finally:
        server.stop()


def measure_cpu(options):
    missed = []
    print("%-24s %12s %12s %8s" % ("server CPU, us a request", "redis", "ours", "ratio"))
    for workload in WORKLOADS:
        if not re.search(options.workloads, workload[0]):
            continue
        requests = max(500, workload[1] // (10 if options.quick else 1))
        figures = {options.oracle: [], options.server: []}
        for _ in range(options.rounds):
            for binary, found in figures.items():
                found.append(cpu_once(options, binary, workload, requests))
        if None in figures[options.server]:
            print("%-24s skipped: the command is not there" % workload[0])
            continue
        redis, ours = (statistics.median(figures[binary]) for binary in (options.oracle, options.server))
        budget = workload[4] if len(workload) > 4 else CPU_BUDGET
        missed += [workload[0]] if ours / redis > budget else []
        print("%-24s %12.3f %12.3f %8.2f%s" % (workload[0], redis, ours, ours / redis,
                                               "  missed" if ours / redis > budget else ""))
        sys.stdout.flush()
    return missed


# Sends what it is given and reads until the reply of the PING behind it; a process of its own, for it is busy then.
ASK = """
import socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
sock.sendall(sys.stdin.buffer.read())
end = b""
while not end.endswith(b"+PONG\\r\\n"):
    received = sock.recv(1 << 20)
    assert received
    end = (end + received)[-7:]
"""


class Getter(threading.Thread):
    """GETs one after the other on a connection of its own; keeps how long each took."""

    def __init__(self, port):
        super().__init__()
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.times, self.stop = [], False

    def run(self):
        payload = encode(["GET", "small"])
        while not self.stop:
            begin = time.perf_counter()
            self.sock.sendall(payload)
            self.sock.recv(1000)
            self.times.append(time.perf_counter() - begin)


def stall_once(binary, make, words):
    """p99 and maximum of GETs while the command runs once, in ms, and how long that took. Ours has two workers; the
    command comes on a connection of the one, the GETs on one of the other."""
    server = Server(binary, [], 1) if is_redis(binary) else Server(binary, ["--min-clients-per-thread", "0"], 2)
    try:
        if not knows(server, words[0]) or not fill(server, [["SET", "small", "x"], *make()]):
            return None
        getters = [Getter(server.port) for _ in range(2)]
        for getter in getters:
            getter.start()
        time.sleep(0.3)
        for getter in getters:
            getter.times.clear()
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", ASK, str(server.port)], check=True,
                       input=encode(words) + encode(["PING"]))
        took = time.perf_counter() - begin
        for getter in getters:
            getter.stop = True
            getter.join()
        best = min(getters, key=lambda getter: max(getter.times))   # it is on the other worker
        times = sorted(best.times)
        return times[int(len(times) * 0.99)] * 1000, times[-1] * 1000, took * 1000
    finally:
        server.stop()


def measure_stalls(options):
    print("%-24s %28s %28s   (GETs meanwhile: p99, most; the command: ms)" % ("big values", "redis", "ours"))
    for name, make, words in STALLS:
        if not re.search(options.workloads, name):
            continue
        figures = [stall_once(binary, make, words) for binary in (options.oracle, options.server)]
        if None in figures:
            print("%-24s skipped: the command is not there" % name)
            continue
        print("%-24s %s %s" % (name, *("%8.2f %8.2f %10.1f" % figure for figure in figures)))
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("-n", "--rounds", type=int, default=3)
    parser.add_argument("-w", "--workloads", default="", help="regular expression")
    parser.add_argument("--quick", action="store_true", help="a tenth of the requests")
    parser.add_argument("--only", choices=("cpu", "stall"))
    options = parser.parse_args()
    options.tool = os.path.join(os.path.dirname(os.path.abspath(options.oracle)), "redis-benchmark")
    missed = []
    if options.only in (None, "cpu"):
        missed += measure_cpu(options)
    if options.only in (None, "stall"):
        measure_stalls(options)
    print("missed: %s" % (", ".join(missed) or "nothing"))


if __name__ == "__main__":
    main()
