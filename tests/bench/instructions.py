#!/usr/bin/env python3
"""Counts the user instructions of a request, for 24 requests, and compares them with those of instructions.txt.

    instructions.py --server BIN [--only NAME,..] [--repeat N] [--verbose] [--write]

A fresh server under callgrind for each: one worker, whose thread alone is counted, epoll (io_uring is not everywhere),
and steady.c, with which hashes have the same secret in each run and the worker's clock almost stands still: repeats
differ by less than 0.1 %, and what LuaJIT's collector does by 0.4 %. One client sends as many requests as the pipeline
has, and reads all replies before it sends the next ones: so each turn of the event loop has as much to do as the one
before. LASTSAVE, which no request here is, marks the end of a phase: callgrind writes down its counts there, and begins
anew at zero. So start-up, the fill and the first requests drop out, and what the mark itself takes is known from a
phase without requests.

A count that is more than LIMIT above its reference fails, and one that is as far below it, too: later losses would hide
there, so the reference has to be written anew. Counts depend on compiler, libraries and valgrind. Where these are not
those of the reference nothing is compared, and the reason is said. --write writes the reference: medians of REPEATS.
"""
import argparse
import concurrent.futures
import glob
import hashlib
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "differential"))

from harness import Lost, Server, encode      # noqa: E402

REFERENCE = os.path.join(HERE, "instructions.txt")
LIMIT = 0.03
SPREAD = 0.005      # of repeats; more would eat up the limit
REPEATS = 3         # for a reference, and for a count that seems wrong
MARK, MARK_FUNCTION = "LASTSAVE", "cmd_lastsave*"
WARM, COUNTED = 1024, 8192      # requests
KEYS = 10000        # more than both, so that SET with a deadline changes one each time
VALUE = "v" * 64
SCRIPT = "return redis.call('GET', KEYS[1])"
OPTIONS = ["--server-threads", "1", "--hz", "1", "--event-loop", "epoll", "--event-loop-spin-us", "0",
           "--auto-aof-rewrite-percentage", "0"]


def key(number):
    return "key:%012d" % (number * 7919 % KEYS)


def strings(value=VALUE):
    return (["SET", key(number), value] for number in range(KEYS))


def get(number):
    return ["GET", key(number)]


def set_value(number):
    return ["SET", key(number), VALUE]


def push_pop(number):
    name = "list:%d" % (number // 2 % 10)
    return ["RPOP", name] if number % 2 else ["LPUSH", name, "element-of-a-list"]


def add_remove(number):
    return ["SREM" if number % 2 else "SADD", "set", "new:%012d" % (number // 2)]


def lists():
    return (["LPUSH", "list:%d" % (number % 10), "element-of-a-list"] for number in range(1000))


def hashes():
    return (["HSET", "hash:%d" % (number % 100), "field:%d" % (number // 100), "some-value"]
            for number in range(1000))


def of_hash(number):
    return "hash:%d" % (number % 100), "field:%d" % (number * 7919 % 10)


def hash_of_deadlines():
    return [*hashes(), *(["HEXPIRE", "hash:%d" % number, "500", "FIELDS", "10",
                          *("field:%d" % field for field in range(10))] for number in range(100))]


def read_or_ack(number):
    """What is read is acknowledged one turn later."""
    if number % 2:
        return ["XACK", "stream", "group", "%d-1" % (number // 2 + 1)]
    return ["XREADGROUP", "GROUP", "group", "consumer", "COUNT", "1", "STREAMS", "stream", ">"]


class Request:
    """words: those of the request of a number, counted from 0. fill: the commands before."""

    def __init__(self, name, what, words, fill=strings, pipeline=32, options=()):
        self.name, self.what, self.words, self.fill, self.pipeline = name, what, words, fill, pipeline
        self.options = [*OPTIONS, *options]


REQUESTS = [
    Request("get", "GET of 64 bytes, no pipeline", get, pipeline=1),
    Request("set", "SET of 64 bytes over as many, no pipeline", set_value, pipeline=1),
    Request("get_p32", "GET of 64 bytes; pipeline 32, as all that do not say another one", get),
    Request("set_p32", "SET of 64 bytes over as many", set_value),
    Request("set_ex", "SET with a deadline over one with another deadline",
            lambda number: ["SET", key(number), VALUE, "EX", "1000"],
            lambda: (["SET", key(number), VALUE, "EX", "500"] for number in range(KEYS))),
    Request("incr", "INCR of numbers of seven digits", lambda number: ["INCR", key(number)],
            lambda: strings("1000000")),
    Request("mget_10", "MGET of 10 keys, pipeline 8",
            lambda number: ["MGET", *(key(10 * number + step) for step in range(10))], pipeline=8),
    Request("push_pop", "LPUSH and RPOP in turn, lists of 100", push_pop, lists),
    Request("lrange_100", "LRANGE of 100 elements, no pipeline",
            lambda number: ["LRANGE", "list:%d" % (number % 10), "0", "99"], lists, pipeline=1),
    Request("hset", "HSET of a field that is there, hashes of 10 fields",
            lambda number: ["HSET", *of_hash(number), "some-value"], hashes),
    Request("sadd_srem", "SADD of a new member and SREM of it in turn, a set of 10,000", add_remove,
            lambda: (["SADD", "set", "member:%012d" % number] for number in range(10000))),
    Request("zadd", "ZADD of another score of a member, a sorted set of 10,000",
            lambda number: ["ZADD", "zset", str(number * 7919 % 10007), "member:%012d" % (number * 31 % 10000)],
            lambda: (["ZADD", "zset", str(number), "member:%012d" % number] for number in range(10000))),
    Request("xadd", "XADD, after which about 1,000 entries stay",
            lambda number: ["XADD", "stream", "MAXLEN", "~", "1000", "*", "field", "some-value"],
            lambda: (["XADD", "stream", "*", "field", "some-value"] for _ in range(1000))),
    Request("evalsha", "EVALSHA of a script that calls GET",
            lambda number: ["EVALSHA", hashlib.sha1(SCRIPT.encode()).hexdigest(), "1", key(number)],
            lambda: [["SCRIPT", "LOAD", SCRIPT], *strings()]),
    Request("xreadgroup", "XREADGROUP of one entry and XACK of it in turn, of 10,000 entries", read_or_ack,
            lambda: [["XGROUP", "CREATE", "stream", "group", "0", "MKSTREAM"],
                     *(["XADD", "stream", "%d-1" % (number + 1), "field", "some-value"] for number in range(10000))]),
    Request("set_ifeq", "SET IFEQ of 64 bytes that are there", lambda number: [*set_value(number), "IFEQ", VALUE]),
    Request("increx", "INCREX of numbers of seven digits, with a bound",
            lambda number: ["INCREX", key(number), "UBOUND", "9000000"], lambda: strings("1000000")),
    Request("hget", "HGET, hashes of 10 fields", lambda number: ["HGET", *of_hash(number)], hashes),
    Request("hgetex", "HGETEX without a change, of these",
            lambda number: ["HGETEX", of_hash(number)[0], "FIELDS", "1", of_hash(number)[1]], hashes),
    Request("hgetex_ex", "HGETEX that sets other deadlines, of fields that have one",
            lambda number: ["HGETEX", of_hash(number)[0], "EX", "1000", "FIELDS", "1", of_hash(number)[1]],
            hash_of_deadlines),
    Request("hsetex", "HSETEX of fields that are there",
            lambda number: ["HSETEX", of_hash(number)[0], "FIELDS", "1", of_hash(number)[1], "some-value"], hashes),
    Request("hsetex_ex", "HSETEX with a deadline, of fields that have another one",
            lambda number: ["HSETEX", of_hash(number)[0], "EX", "1000", "FIELDS", "1", of_hash(number)[1],
                            "some-value"], hash_of_deadlines),
    Request("set_aof", "SET of 64 bytes over as many, append-only file, everysec", set_value,
            options=["--appendonly", "yes", "--appendfsync", "everysec"]),
    Request("set_active", "SET of 64 bytes over as many, an active node without peers", set_value,
            options=["--active-replica", "yes"]),
]


class CountedServer(Server):
    """A server under callgrind, which starts it in a shell's place."""

    def __init__(self, binary, options, library):
        self.counts = tempfile.mkdtemp(prefix="keydb-instructions-")
        self.environment = {"LD_PRELOAD": library}
        wrapper = os.path.join(self.counts, "server")
        with open(wrapper, "w", encoding="utf-8") as script:
            script.write("#!/bin/sh\nexec %s \"$@\"\n" % shlex.join(
                ["valgrind", "-q", "--tool=callgrind", "--separate-threads=yes", "--dump-line=no",
                 "--callgrind-out-file=%s/out" % self.counts, "--dump-before=" + MARK_FUNCTION,
                 os.path.abspath(binary)]))
        os.chmod(wrapper, 0o755)
        super().__init__(wrapper, options)

    def phases(self):
        """What the thread that ran each mark had done since the one before, or since its start."""
        found = []
        while True:
            parts = glob.glob("%s/out.%d-*" % (self.counts, len(found) + 1))
            if not parts:
                return found
            with open(parts[0], encoding="utf-8", errors="replace") as part:
                found.append(int(re.search(r"^totals: (\d+)", part.read(), re.M).group(1)))

    def stop(self, keep=False):
        super().stop(keep)
        shutil.rmtree(self.counts, ignore_errors=True)


def send(connection, commands, pipeline):
    commands = list(commands)
    for begin in range(0, len(commands), pipeline):
        batch = commands[begin:begin + pipeline]
        for words, reply in zip(batch, connection.exchange(b"".join(map(encode, batch)), len(batch))):
            if reply[0] == "-" or reply[1] is None:
                raise Lost("%s: %s" % (shlex.join(words), reply))


def count(binary, request, library):
    """User instructions a request."""
    with CountedServer(binary, request.options, library) as server:
        connection = server.connect()
        send(connection, request.fill(), 32)
        first = 0
        for requests in (WARM, 0, COUNTED):
            send(connection, map(request.words, range(first, first + requests)), request.pipeline)
            connection.command(MARK)
            first += requests
        phases = server.phases()
    if len(phases) != 3:
        raise Lost("callgrind saw %d marks of 3: is there a function %s?" % (len(phases), MARK_FUNCTION))
    return (phases[2] - phases[1]) / COUNTED


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def made_with(binary):
    """What the counts depend on beside our code, as instructions.txt has it. Empty: it cannot be found out."""
    valgrind = output_of("valgrind", "--version").strip().replace("-", " ")
    compilers = set(re.findall(r"((?:GCC|clang)\b.*)", output_of("readelf", "-p", ".comment", binary)))
    named = sorted({re.sub(r"GCC: \(.*\) ", "gcc ", name) for name in compilers})
    if not valgrind or not named:
        return ""
    return ", ".join([platform.machine(), *named, os.confstr("CS_GNU_LIBC_VERSION") or "another libc", valgrind])


def build_steady(folder):
    library = os.path.join(folder, "steady.so")
    subprocess.run([*shlex.split(os.environ.get("CC", "gcc")), "-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall",
                    "-Wextra", "-Werror", "-D_GNU_SOURCE=", os.path.join(HERE, "steady.c"), "-ldl", "-o", library],
                   check=True)
    return library


def read_reference():
    """What it was made with, and the counts by name."""
    with open(REFERENCE, encoding="utf-8") as file:
        lines = file.read().splitlines()
    made = next((line[len("# made with "):] for line in lines if line.startswith("# made with ")), "")
    return made, {line.split()[0]: int(line.split()[1]) for line in lines if line and line[0] != "#"}


def write_reference(made, counts):
    with open(REFERENCE, "w", encoding="utf-8") as file:
        file.write("# User instructions of the worker a request: instructions.py compares with them, and --write "
                   "writes them.\n# made with %s\n" % made)
        for request in REQUESTS:
            file.write("%-12s %6.0f  %s\n" % (request.name, counts[request.name], request.what))


def judge(value, reference):
    """What is wrong; empty: nothing."""
    if reference is None:
        return "has no reference: write one with --write"
    if value > reference * (1 + LIMIT):
        return "more than %.0f %% above the reference" % (100 * LIMIT)
    if value < reference * (1 - LIMIT):
        return "better: write the new reference with --write"
    return ""


def measure(options, request, library, reference):
    """The counts. One that seems wrong is counted again."""
    counts = [count(options.server, request, library) for _ in range(options.repeat)]
    if not options.write and judge(statistics.median(counts), reference):
        counts += [count(options.server, request, library) for _ in range(REPEATS - len(counts))]
    return counts


def report(options, request, counts, reference):
    """Prints the line of a request. Gives its count and what is wrong."""
    value = statistics.median(counts)
    spread = (max(counts) - min(counts)) / value
    wrong = "" if options.write else judge(value, reference)
    if not wrong and spread > SPREAD:
        wrong = "repeats differ by more than %.1f %%" % (100 * SPREAD)
    figures = "%6.0f instructions" % value
    if reference:
        figures += ", reference %d, %+.2f %%" % (reference, 100 * (value / reference - 1))
    if len(counts) > 1:
        figures += ", spread %.2f %%" % (100 * spread)
    if options.verbose:
        figures += " (%s)" % " ".join("%.1f" % single for single in counts)
    print("%-8s%-12s %s  %s" % ("FAILED" if wrong else "ok", request.name, figures, wrong or request.what), flush=True)
    return value, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--only", default="", metavar="NAME,..")
    parser.add_argument("--repeat", type=int, metavar="N", help="counts each so often, and compares the medians")
    parser.add_argument("--verbose", action="store_true", help="prints each single count")
    parser.add_argument("--write", action="store_true", help="writes instructions.txt anew")
    options = parser.parse_args()
    options.repeat = options.repeat or (REPEATS if options.write else 1)
    wanted = [request for request in REQUESTS if not options.only or request.name in options.only.split(",")]
    if not wanted or (options.write and len(wanted) != len(REQUESTS)):
        parser.error("--only names none of the requests, or stands beside --write, which writes all")
    made = made_with(options.server)
    if not made:
        print("skipped: valgrind, or readelf, which tells the server's compiler, is not here")
        return 0
    before, references = read_reference() if os.path.exists(REFERENCE) else ("", {})
    if not options.write and made != before:
        print("skipped: the reference was made with %s; here are %s" % (before, made))
        return 0

    passed, failed, medians = 0, 0, {}
    with tempfile.TemporaryDirectory(prefix="keydb-steady-") as folder, \
            concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        library = build_steady(folder)
        jobs = [(request, pool.submit(measure, options, request, library, references.get(request.name)))
                for request in wanted]
        for request, job in jobs:
            try:
                medians[request.name], wrong = report(options, request, job.result(), references.get(request.name))
            except Lost as problem:
                wrong = str(problem)
                print("FAILED  %-12s %s" % (request.name, wrong), flush=True)
            passed, failed = passed + (not wrong), failed + bool(wrong)
    if options.write and not failed:
        write_reference(made, medians)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
