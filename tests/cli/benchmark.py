#!/usr/bin/env python3
"""keydb-benchmark beside redis-benchmark, and alone.

    benchmark.py --server BIN --oracle BIN [--tool BIN] [--only REGEX]

redis-benchmark stands beside the oracle. Both programs send their tests to one server, whose MONITOR tells what came:
it has to be the same but for random digits and letters. What they print has to have the same lines but for numbers.
Python's standard library only."""
import argparse
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.dom.minidom

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "differential"))

from harness import Server, free_port, is_redis     # noqa: E402

TOP = os.path.dirname(os.path.dirname(HERE))
SECONDS = 60
TESTS = ("ping_inline ping_mbulk ping set get incr lpush rpush lpop rpop sadd hset spop zadd zpopmin lrange lrange_100 "
         "lrange_300 lrange_500 lrange_600 mset").split()


class World:
    def __init__(self, options):
        self.options = options
        self.ours = os.path.abspath(options.tool)
        self.theirs = os.path.join(os.path.dirname(os.path.abspath(options.oracle)), "redis-benchmark")
        self.server = Server(options.server, ["--enable-debug-command", "yes"], 2)
        self.admin = self.server.connect()
        self.port = ["-p", str(self.server.port)]
        self.passed = self.failed = 0

    def wants(self, name):
        return self.options.only is None or re.search(self.options.only, name) is not None

    def check(self, name, good, *details):
        self.passed += bool(good)
        self.failed += not good
        if not good:
            print("FAILED %s" % name)
            for detail in details:
                print("    %s" % (detail if isinstance(detail, str) else repr(detail))[:2000])

    def run(self, program, *words, given=b""):
        done = subprocess.run([program, *map(str, words)], input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=SECONDS, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def ask(self, *words):
        return self.admin.command(*words)[1]

    def one(self, *words):
        """The only test of a run, as JSON tells it."""
        code, output, errors = self.run(self.ours, *self.port, "-q", "--json", "-", *words)
        if code != 0:
            return {"code": code, "told": errors}
        return json.loads(output[output.index("{"):])["tests"][0]


def masked(text):
    """Numbers, and what stands for random letters, are all alike."""
    text = re.sub(r'"[A-Z]{3}"', '"DATA"', text)
    return re.sub(r"\d{12}", "DIGITS", text)


def monitored(world, program, *words):
    monitor = world.server.connect()
    monitor.command("MONITOR")
    world.run(program, *world.port, "-n", 2, "-c", 1, "-q", *words)
    world.ask("ECHO", "the end")
    lines = []
    while not lines or "the end" not in lines[-1]:
        lines.append(monitor.exchange(b"", 1)[0][1].decode())
    monitor.close()
    lines = [masked(re.sub(r"^.*?\] ", "", line)) for line in lines[:-1]]
    # What a new connection says is left out: redis-benchmark has one more or less of them.
    return [line for line in lines if not line.startswith(('"CONFIG"', '"HELLO"', '"SELECT"'))]


def same_commands(world):
    for words in [*[["-t", name] for name in TESTS], ["-t", "set,get"], [], ["-r", 1000], ["-n", 6, "-P", 3, "-r", 50],
                  ["-t", "set", "-3", "--dbnum", 3], ["-t", "set", "-k", 0],
                  ["-r", 9, "set", "a__rand_int__b__rand_int__", "x"], ["eval", "return 1", 0]]:
        ours, theirs = monitored(world, world.ours, *words), monitored(world, world.theirs, *words)
        if "-k" in words:       # theirs opens them in another order
            ours, theirs = sorted(set(ours)), sorted(set(theirs))
        world.check("commands of %s" % words, ours == theirs and ours, ours[:30], theirs[:30])


def shape(text):
    """The lines, with numbers masked and without the line that shows progress."""
    lines = [re.sub(r"-?\d+\.\d+|(?<=count )\d+", "N", line).rstrip() for line in re.split(r"[\r\n]+", text)]
    return [re.sub(r" +N", " N", line) for line in lines if line and "rps=" not in line]


def wrong_of(report, digits=3):
    """What a report's two distributions have that redis-benchmark's have not: it holds for both programs."""
    rows = [(float(percent), float(ms), int(count)) for percent, ms, count in re.findall(
        r"^([\d.]+)% <= (\d+\.\d{3}) milliseconds \(cumulative count (\d+)\)$", report, re.M)]
    blocks = [len(re.findall("% <= ", block)) for block in report.split("Cumulative distribution")]
    halves, steps = rows[:blocks[0]], rows[blocks[0]:]
    total, wrong, targets, names = halves[-1][2], [], [0.0], []
    while len(targets) < 40:
        targets.append(targets[-1] + (100 - targets[-1]) / 2)
    for us in [*range(100, 2101, 100), *range(3100, 1000001, 1000)]:
        bits = max(3, us.bit_length() - (2 * 10 ** digits - 1).bit_length())
        names.append(us | (1 << bits) - 1)
    if halves[-1] != (100.0, halves[-2][1], total) or halves[-2][2] != total:
        wrong.append("the last percentile")
    for i, (percent, ms, count) in enumerate(halves[:-1]):
        before = halves[i - 1][2] if i > 0 else -1
        at = next(target for target in targets if before < 0 or target > 100 * before / total + 1e-9)
        if percent != float("%.3f" % at) or count <= before or 100 * count / total < at - 1e-9:
            wrong.append("%s%% <= %s (%s)" % (percent, ms, count))
    if [round(ms * 1000) for _, ms, _ in steps] != sorted(set(names) & {round(ms * 1000) for _, ms, _ in steps}):
        wrong.append("the names of steps: %s" % [ms for _, ms, _ in steps])
    if steps[0][1] != names[0] / 1000 or len({count for _, _, count in steps}) != len(steps) or steps[-1][2] != total:
        wrong.append("the steps")
    return wrong


def same_reports(world):
    """By a rule for what a report has, which redis-benchmark's own reports keep."""
    for words in (["-n", 3000], ["-n", 2000, "-c", 1, "-P", 20], ["-n", 1000, "-d", 100000], ["-n", 1, "-c", 1],
                  ["-n", 4000, "--precision", 1], ["-n", 4000, "--precision", 2], ["-n", 4000, "--precision", 9]):
        digits = min(words[-1], 4) if "--precision" in words else 3
        for program in (world.ours, world.theirs):
            output = world.run(program, *world.port, "-t", "set", *words)[1]
            wrong = wrong_of(re.split(r"\r", output)[-1], digits)
            world.check("the distributions of %s of %s" % (os.path.basename(program), words), not wrong, wrong, output)


def same_output(world):
    for words in (["-q"], ["-q", "-t", "ping,mset"], ["--csv"], ["--csv", "-t", "lrange_100", "-P", 4],
                  ["-q", "-n", 100, "lpush", "mylist", "a b"],
                  ["-q", "-n", 100, "lpush", "mylist", "x" * 400]):
        (code, ours, _), (_, theirs, _) = (world.run(program, *world.port, "-n", 2000, *words)
                                           for program in (world.ours, world.theirs))
        if "--csv" in words:
            ours, theirs = ([row[:1] + [len(row)] for row in csv.reader(text.splitlines()) if row]
                            for text in (ours, theirs))
        else:
            ours, theirs = (re.findall(r"([^\r\n:]+): \S+ requests per second, p50=\S+ msec", text)
                            for text in (ours, theirs))
            ours, theirs = ([name.strip() for name in names] for names in (ours, theirs))
        world.check("output of %s" % words, code == 0 and ours == theirs, ours, theirs)
    for words in ([], ["--threads", 2], ["-d", 100, "-k", 1], ["-r", 10, "set", "k__rand_int__", "v"]):
        (code, ours, _), (_, theirs, _) = (world.run(program, *world.port, "-n", 3000, "-t", "set", *words)
                                           for program in (world.ours, world.theirs))
        ours, theirs = ([re.sub(r"^100.000%", "N%", line) for line in shape(text)] for text in (ours, theirs))
        world.check("report of %s" % words, code == 0 and [line for line in ours if "% <=" not in line] ==
                    [line for line in theirs if "% <=" not in line] and set(ours) == set(theirs), ours, theirs)


def same_errors(world):
    for words in (["--foo"], ["-n"], ["-h"], ["-t"], ["nosuch"], ["get"], ["-a", "wrong", "-t", "set"]):
        (code, ours, told), (theirs_code, theirs, theirs_told) = (
            world.run(program, *world.port, "-n", 10, "-q", *words) for program in (world.ours, world.theirs))
        told, theirs_told = ([line for line in text.splitlines() if line.startswith("Error from server")]
                             for text in (told, theirs_told))
        if words[0].startswith("-") and len(words) == 1:
            ours, theirs = ours.splitlines()[:1], theirs.splitlines()[:1]
            world.check("error of %s" % words, code == theirs_code == 1 and ours == theirs, ours, theirs)
        elif "-a" not in words:
            world.check("error of %s" % words, code == theirs_code == 1 and told == theirs_told, told, theirs_told)
        else:
            world.check("error of %s" % words, code == 1 and "AUTH" in told[0], told)
    code, output, told = world.run(world.ours, "-p", free_port(), "-q")
    world.check("nobody is there", code == 1 and output == "" and told.startswith("Could not connect to Redis at "),
                output, told)
    code, output, told = world.run(world.ours, *world.port, "-t", "set,sett")
    world.check("an unknown test", code == 1 and '"sett" for -t' in told, output, told)


def counts(world):
    """Exactly as many as were asked for, in whatever way they are spread."""
    for words in (["-n", 1000], ["-n", 7, "-c", 50], ["-n", 1001, "-P", 16, "-c", 3], ["-n", 5000, "--threads", 3],
                  ["-n", 500, "-k", 0, "-c", 5], ["-n", 300, "--rate", 3000], ["-n", 999, "--rate", 50000, "-P", 4,
                                                                               "--threads", 2], ["-n", 400, "-3"]):
        world.ask("DEL", "counter:__rand_int__")
        facts = world.one("-t", "incr", *words)
        found = int(world.ask("GET", "counter:__rand_int__"))
        world.check("counts of %s" % words, facts.get("requests") == found == words[1] and
                    facts["latency_ms"]["count"] == found, facts, found)
    facts = world.one("--ratio", "1:4", "-r", 1000, "-n", 20000)
    sets, gets = (command["latency_ms"]["count"] for command in facts["commands"])
    code, output, told = world.run(world.ours, *world.port, "--ratio", "1:4", "-n", 2000, "--csv")
    world.check("a proportion's rows", [row[0] for row in csv.reader(output.splitlines())][1:] ==
                ["SET and GET", "SET and GET / SET", "SET and GET / GET"], output)
    code, output, told = world.run(world.ours, *world.port, "--ratio", "1:4", "-n", 2000, "-q")
    world.check("a proportion's lines", re.findall("^(.*): [\\d.]+ requests per second", output, re.M) ==
                ["SET and GET", "SET and GET / SET", "SET and GET / GET"], output)
    code, output, told = world.run(world.ours, *world.port, "--mix", "1 SET k v; 1 GET k", "-n", 2000, "--table")
    rows = [re.split(r"  +", line.strip()) for line in output.splitlines()]
    world.check("a table", [row[0] for row in rows] == ["latencies in milliseconds", "mix", "SET", "GET"] and
                {len(row) for row in rows} == {8} and all(float(cell) >= 0 for row in rows[1:] for cell in row[1:]),
                output)
    world.check("a proportion", 3600 < sets < 4400 and sets + gets == 20000, sets, gets)
    facts = world.one("--mix", "3 HSET 'a hash' f __data__; 1 HGET 'a hash' f", "-n", 4000, "-d", "2-9")
    world.check("a mix", [command["name"] for command in facts["commands"]] == ["HSET", "HGET"] and
                2 <= int(world.ask("HSTRLEN", "a hash", "f")) <= 9, facts)
    facts = world.one("-t", "set", "--duration", 1, "-c", 2)
    world.check("for a second", facts["requests"] > 10 and facts["seconds"] >= 1, facts)
    facts = world.one("--go-on", "-n", 50, "incr", "a hash")
    world.check("errors are counted", facts.get("errors") == facts["requests"] == 50, facts)
    world.ask("FLUSHALL")
    world.ask("CONFIG", "RESETSTAT")
    for test in ("set", "mset", "get"):
        facts = world.one("-t", test, "--key-size", "20-40", "-r", 100, "--distribution", "sequential", "-n", 200)
    sizes = [len(name) for _, name in world.ask("KEYS", "key:*")]
    world.check("sizes of keys", len(sizes) == 100 and min(sizes) >= 20 and max(sizes) <= 40 and
                len(set(sizes)) > 10 and b"keyspace_misses:0\r" in world.ask("INFO", "stats"), facts, sizes)


def open_loop(world):
    """Who waits for a server that stalls is counted from when it was due, not from when it could be sent."""
    late = {}
    for rate in (["--rate", 2000], []):
        run = subprocess.Popen([world.ours, *world.port, "-q", "-t", "set", "-c", "2", "--duration", "2", "--json", "-",
                                *map(str, rate)], stdout=subprocess.PIPE)
        before = world.ask("INFO", "commandstats")
        while world.ask("INFO", "commandstats") == before:
            time.sleep(0.01)
        world.ask("CLIENT", "PAUSE", 600, "WRITE")
        output = run.communicate(timeout=SECONDS)[0].decode()
        facts = json.loads(output[output.index("{"):])["tests"][0]
        late[bool(rate)] = facts["latency_ms"]["p90"] >= 100
    world.check("a stall", late == {True: True, False: False}, late)


def workloads(world):
    for name in ("load", *"ABCDEF"):
        facts = world.one("--ycsb", name, "-r", 300, "-n", 2000)
        wanted = 300 if name == "load" else 2000
        world.check("YCSB %s" % name, facts.get("errors") == 0 and facts["requests"] == wanted, facts)
        if name == "load":
            world.check("YCSB's records", world.ask("ZCARD", "users") == b"300" and
                        world.ask("HLEN", "user000000000299") == b"10" and
                        world.ask("HSTRLEN", "user000000000000", "field9") == b"100")
    world.check("YCSB D and E make records", int(world.ask("ZCARD", "users")) >= 300 and
                world.ask("EXISTS", "user000000000300") == b"1")
    for name in ("uniform", "sequential", "gaussian", "zipf:1.2", "latest"):
        world.ask("DEL", "spread")
        facts = world.one("-n", 3000, "-r", 100, "--distribution", name, "hincrby", "spread", "__rand_int__", 1)
        hits = sorted(map(int, (value for _, value in world.ask("HVALS", "spread"))), reverse=True)
        good = {"uniform": hits[0] < 60, "sequential": hits == [30] * 100, "gaussian": len(hits) > 80 and hits[0] > 50,
                "zipf:1.2": hits[0] > 600, "latest": hits[0] > 400}
        world.check("distribution %s" % name, sum(hits) == 3000 and good[name], facts, hits)


def connections(world):
    folder = world.server.folder
    certs = os.path.join(folder, "certs")
    subprocess.run(["sh", os.path.join(TOP, "utils", "gen-test-certs.sh"), certs], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    port, path = free_port(), os.path.join(folder, "socket")
    with Server(world.options.server, [
            "--tls-port", port, "--tls-cert-file", certs + "/server.crt", "--tls-key-file", certs + "/server.key",
            "--tls-ca-cert-file", certs + "/ca.crt", "--unixsocket", path], 2) as server:
        admin = server.connect()
        admin.command("ACL", "SETUSER", "somebody", "on", ">word", "~*", "+@all")
        admin.command("CONFIG", "SET", "requirepass", "secret")
        secure = ["-p", port, "--tls", "--cacert", certs + "/ca.crt", "--cert", certs + "/client.crt", "--key",
                  certs + "/client.key"]
        ways = {"TLS": secure, "TLS, pipelined": [*secure, "-P", 20, "-d", 5000], "TLS, two threads": [
            *secure, "--threads", 2, "-3", "--enable-tracking"], "a unix socket": ["-s", path], "a URI": [
                "-u", "redis://somebody:word@127.0.0.1:%d/2" % server.port], "a user": [
                    "-p", server.port, "--user", "somebody", "-a", "word"]}
        for name, words in ways.items():
            words = words if "-u" in words or "--user" in words else [*words, "-a", "secret"]
            code, output, told = world.run(world.ours, *words, "-q", "-n", 2000, "-t", "set,get", "-r", 100)
            world.check(name, code == 0 and output.count("requests per second") == 2, code, output, told)
        admin.command("ACL", "SETUSER", "somebody", "-client")
        code, output, told = world.run(world.ours, *map(str, ways["a user"]), "--enable-tracking", "-q", "-n", 10)
        world.check("tracking is refused", code == 1 and "NOPERM" in told, output, told)
        code, output, told = world.run(world.ours, "-p", port, "--tls", "-a", "secret", "-q", "-n", 10)
        world.check("a certificate of strangers", code == 1 and "certificate" in told, output, told)
        code, output, told = world.run(world.ours, "-p", server.port, "-q", "-n", 10, "-t", "set")
        world.check("without a password", code == 1 and "NOAUTH" in told, output, told)
    code, output, told = world.run("bash", "-c", 'ulimit -Sn 100; exec "$@"', "bash", world.ours, *world.port, "-q",
                                   "-n", 2000, "-c", 400, "-t", "set")
    world.check("more connections than a shell begins with", code == 0 and "SET: " in output, output, told)
    run = subprocess.Popen([world.ours, *world.port, "-I", "-c", "7"], stdout=subprocess.PIPE)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and b"connected_clients:8\r" not in world.ask("INFO", "clients"):
        time.sleep(0.02)
    world.check("idle connections", b"connected_clients:8\r" in world.ask("INFO", "clients"))
    run.send_signal(signal.SIGINT)
    world.check("and their end", run.wait(20) == 0)
    run.stdout.close()
    code, output, told = world.run(world.ours, *world.port, "-q", "-n", 3, "-x", "set", "from input", given=b"a\r\n\0b")
    world.check("standard input", code == 0 and world.ask("GET", "from input") == b"a\r\n\0b", output, told)


def cluster(world):
    nodes = [Server(world.options.oracle, ["--cluster-enabled", "yes", "--cluster-port", free_port()])
             for _ in range(2)]
    try:
        admins = [node.connect() for node in nodes]
        admins[0].command("CLUSTER", "ADDSLOTSRANGE", 0, 5000)
        admins[1].command("CLUSTER", "ADDSLOTSRANGE", 5001, 16383)
        bus = int(re.search(r"@(\d+)", admins[1].command("CLUSTER", "NODES")[1].decode()).group(1))
        admins[0].command("CLUSTER", "MEET", "127.0.0.1", nodes[1].port, bus)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not all(b"cluster_state:ok" in admin.command("CLUSTER", "INFO")[1]
                                                      for admin in admins):
            time.sleep(0.05)
        code, output, told = world.run(world.ours, "-p", nodes[0].port, "--cluster", "-q", "-n", 3000, "-r", 1000,
                                       "-t", "set,get,mset,lpush", "--threads", 2)
        sizes = [int(admin.command("DBSIZE")[1]) for admin in admins]
        world.check("a cluster", code == 0 and "Cluster has 2 master nodes:" in output and min(sizes) > 300, output,
                    told, sizes)
        ours, theirs = (sorted(line for line in shape(world.run(
            program, "-p", nodes[0].port, "--cluster", "-n", 500, "-t", "set")[1]) if "% <=" not in line and
            not line.startswith("Master ")) for program in (world.ours, world.theirs))
        world.check("a cluster's report", ours == theirs and "  threads: 2" in ours, ours, theirs)
        ours, theirs = (world.run(program, "-p", nodes[0].port, "--cluster", "-n", 500, "-q", "set", "no-tag", 1)
                        for program in (world.ours, world.theirs))
        told = [re.search(r"Error from server 127.0.0.1:\d+: MOVED \d+ 127.0.0.1:\d+$", errors, re.M)
                for _, _, errors in (ours, theirs)]
        world.check("a key without a tag", ours[0] == theirs[0] == 1 and all(told) and
                    told[0].group() == told[1].group(), ours, theirs)
        code, output, told = world.run(world.ours, *world.port, "--cluster", "-q", "-n", 10)
        world.check("no cluster", code == 1 and "The cluster cannot be asked" in told, output, told)
    finally:
        for node in nodes:
            node.stop()


def results(world):
    folder = world.server.folder
    files = [os.path.join(folder, name) for name in ("out.json", "out.svg")]
    code, output, told = world.run(world.ours, *world.port, "-n", 2000, "-t", "set,get", "--json", files[0], "--svg",
                                   files[1], "--precision", 1)
    with open(files[0]) as file:
        tests = json.load(file)["tests"]
    world.check("JSON", code == 0 and [test["test"] for test in tests] == ["SET", "GET"] and all(
        test["latency_ms"]["min"] <= test["latency_ms"]["p50"] <= test["latency_ms"]["p99"] <= test["latency_ms"]["max"]
        for test in tests), tests, told)
    picture = xml.dom.minidom.parse(files[1])
    world.check("SVG", [node.firstChild.data for node in picture.getElementsByTagName("text")][-2:] == ["SET", "GET"])
    code, output, told = world.run(world.ours, *world.port, "-q", "-n", 9, "-t", "set", "--json", folder + "/none/x")
    world.check("a file that cannot be", code == 1 and "/none/x: No such file" in told, told)
    code, output, told = world.run(world.ours, *world.port, "--diagnose", "--duration", 1, "-q")
    world.check("a diagnosis", code == 0 and re.search(r"is the bottleneck|wait for what is between", output), output,
                told)
    world.check("that reads alone", not world.ask("KEYS", "keydb-benchmark*"))


def words_of_options(world):
    """The manual, --help and the completion know the same options."""
    usage = set(re.findall(r"(?<![\w-])--?\w[\w-]*", "\n".join(re.findall(
        r"^  (-.*?)(?:  |$)", world.run(world.ours, "--help")[1], re.M))))
    with open(os.path.join(TOP, "docs", "man", "keydb-benchmark.1")) as file:
        manual = set(re.findall(r"(?<![\w-])--?\w[\w-]*", "\n".join(re.findall(
            r"^\\fB(-.*)\\fR$", file.read().replace("\\-", "-").replace("\nkeydb", ""), re.M))))
    with open(os.path.join(TOP, "utils", "completion", "keydb-benchmark.bash")) as file:
        completed = file.read().split("[[ $current != -* ]]")[1].split('"')[1]
    completed = set(re.findall(r"(?<![\w-])--?\w[\w-]*", completed))
    world.check("options of the manual", usage == manual, sorted(usage ^ manual))
    world.check("options of the completion", usage | {"-v"} == completed, sorted((usage | {"-v"}) ^ completed))


PARTS = (same_commands, same_output, same_reports, same_errors, counts, open_loop, workloads, connections, cluster,
         results, words_of_options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--tool")
    parser.add_argument("--only")
    options = parser.parse_args()
    options.tool = options.tool or os.path.join(os.path.dirname(options.server), "keydb-benchmark")
    assert is_redis(options.oracle)
    world = World(options)
    try:
        for part in PARTS:
            if world.wants(part.__name__):
                part(world)
    finally:
        world.server.stop()
    print("%d passed, %d failed" % (world.passed, world.failed))
    return 1 if world.failed else 0


if __name__ == "__main__":
    sys.exit(main())
