"""What keydb-cli does by itself, or otherwise than redis-cli on purpose."""
import json
import os
import re
import select
import subprocess
import sys
import threading
import time

from harness import Server, free_port
from speaker import Speaker
from terminal import Terminal

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# None of these is a reply, or none that ends. The program says so and ends with 1.
HOSTILE = [
    b"@\r\n", b"\r\n", b"\n", b"$99999999999999\r\n", b"$-2\r\n", b"*-7\r\n", b"*2147483648\r\n", b"%9999999999\r\n",
    b":\r\n", b":1x\r\n", b"#x\r\n", b",x\r\n", b"(1x\r\n", b"_x\r\n", b"=2\r\nab\r\n", b"$1\r\nabc\r\n",
    b"+no line break",
    b"*2147483647\r\n:1\r\n", b"$500000000\r\nabc", b"*3\r\n:1\r\n", b"*1\r\n" * 500, b"%1\r\n" * 500, b"|1\r\n" * 500,
    b"~1\r\n+a\r", b"-", b"*" + b"1" * 100000 + b"\r\n", b"\x00\x00\x00", b"", b"|1\r\n+a\r\n+b\r\n", b"!3\r\nab",
]

# Replies that redis-cli refuses, or prints as what is no JSON.
OWN_FORMS = [
    (["--no-raw"], b"|1\r\n+a\r\n*1\r\n:1\r\n+text\r\n", b"text\n"),
    (["--no-raw"], b"!5\r\nERR x\r\n", b"(error) ERR x\n"),
    (["--no-raw"], b"(12345678901234567890123\r\n", b"(big number) 12345678901234567890123\n"),
    (["--json"], b"(12345678901234567890123\r\n", b"12345678901234567890123\n"),
    (["--json"], b"%1\r\n%1\r\n+a\r\n:1\r\n:2\r\n", b'{"{\\"a\\":1}":2}\n'),
    (["--quoted-json"], b'$3\r\n"\0\\\r\n', b'"\\\\\\"\\\\x00\\\\\\\\"\n'),
]


def port_of(world):
    return ["-p", str(world.server.port)]


def hostile(world):
    speaker = Speaker()
    for reply in HOSTILE:
        for form in ("--no-raw", "--json"):
            speaker.say(reply, closes=True)
            code, output, errors = world.run(world.ours, ["-p", str(speaker.port), form, "x"], seconds=10)
            world.check("hostile %r %s" % (reply[:40], form),
                        code == 1 and errors.startswith(b"Error: ") and output == b"", (code, output, errors))
    for words in (["--scan"], ["--bigkeys"], ["--stat"], ["--rdb", "-"], ["--replica"], ["--latency"], ["--hotkeys"],
                  ["--compare", "127.0.0.1:1"], ["--pipe"]):
        for reply in (b"+x\r\n", b"*2\r\n*0\r\n*0\r\n", b"*2\r\n:0\r\n:0\r\n", b":-1\r\n", b"$-1\r\n", b"-ERR x\r\n",
                      b"*1\r\n$-1\r\n",
                      b"$2\r\nab\r\n", b"@"):
            speaker.say(reply, reply, reply, closes=True)
            code, output, errors = world.run(world.ours, ["-p", str(speaker.port), "-i", "0.01",
                                                          "--pipe-timeout", "1",
                                                         *words], seconds=10)
            world.check("hostile %s %r" % (words[0], reply), code in (0, 1, 2), (code, output, errors))


def own_forms(world):
    for words, reply, wanted in OWN_FORMS:
        world.speaker.say(reply)
        code, output, errors = world.run(world.ours, ["-p", str(world.speaker.port), *words, "x"])
        world.check("form %s of %r" % (words[0], reply), (code, output) == (0, wanted), output, errors)
        if "json" in words[0]:
            json.loads(output)
    world.speaker.say(b">2\r\n+unsubscribe\r\n:0\r\n")
    code, output, _ = world.run(world.ours, ["-p", str(world.speaker.port), "-3", "unsubscribe"], seconds=5)
    world.check("UNSUBSCRIBE in RESP3", (code, output) == (0, b"unsubscribe\n0\n"), output)
    code, output, errors = world.run(world.ours, port_of(world), b"client reply off\nset s y\nclient reply on\nget s\n"
                                     b"client reply skip\nset s z\nget s\n", seconds=5)
    world.check("CLIENT REPLY", (code, output) == (0, b"OK\ny\nz\n"), output, errors)
    world.admin.command("set", b"zero\0byte", "x")
    _, output, _ = world.run(world.ours, [*port_of(world), "--scan", "--pattern", "zero*"])
    world.check("--scan has zero bytes", output == b"zero\0byte\n", output)


def redirections(world):
    world.admin.command("set", "there", "yes")
    moved = b"-MOVED 5 127.0.0.1:%d\r\n" % world.server.port
    world.speaker.say(moved, moved)
    code, output, _ = world.run(world.ours, ["-p", str(world.speaker.port), "-c", "get", "there"])
    world.check("-c follows MOVED", (code, output) == (0, b"yes\n"), output)
    world.speaker.say(moved)
    code, output, _ = world.run(world.ours, ["-p", str(world.speaker.port), "-c", "--no-raw"],
                                b"get there\nget there\n")
    world.check("-c tells", output == b"-> Redirected to slot [5] located at 127.0.0.1:%d\n\"yes\"\n\"yes\"\n" %
                world.server.port, output)
    world.speaker.say(moved)
    code, output, _ = world.run(world.ours, ["-p", str(world.speaker.port), "get", "there"])
    world.check("without -c", output.startswith(b"MOVED 5"), output)


def reconnection(world):
    world.speaker.say(b"+a\r\n")
    code, output, errors = world.run(world.ours, ["-p", str(world.speaker.port)], b"one\ntwo\nthree\n")
    world.check("a connection that ends is opened again",
                (code, output, errors) == (0, b"a\na\n", b"Error: Server closed the connection\n"), output, errors)


class Watch:
    """A program that goes on; its output is waited for."""

    def __init__(self, world, words):
        self.process = subprocess.Popen([world.ours, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env=world.environment(), cwd=world.folder)
        self.seen = b""

    def wait_for(self, text, seconds=15):
        end = time.monotonic() + seconds
        while text not in self.seen and time.monotonic() < end:
            if select.select([self.process.stdout], [], [], 0.1)[0]:
                piece = os.read(self.process.stdout.fileno(), 65536)
                if not piece:
                    break
                self.seen += piece
        return text in self.seen

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def watches(world):
    port = port_of(world)
    for words, act, wanted in (
            (["monitor"], ["set", "watched", "1"], b'"set" "watched" "1"'),
            (["subscribe", "c"], ["publish", "c", "m"], b"message\nc\nm\n"),
            (["--csv", "psubscribe", "c*"], ["publish", "c", "m"], b'"pmessage","c*","c","m"\n'),
            (["-3", "--no-raw", "subscribe", "c"], ["publish", "c", "m"], b'1) "message"\n2) "c"\n3) "m"\n'),
            (["--replica"], ["set", "replicated", "1"], b'"set","replicated","1"')):
        watch = Watch(world, [*port, *words])
        ready = {"monitor": b"OK\n", "--replica": b"Logging commands"}.get(words[0], b"1\n")
        good = watch.wait_for(ready)
        end = time.monotonic() + 15
        while good and wanted not in watch.seen and time.monotonic() < end:
            world.admin.command(*act)
            watch.wait_for(wanted, 0.3)
        world.check(" ".join(words), wanted in watch.seen, watch.seen)
        watch.end()
    for words, pattern in (
            (["--latency"], rb"\d+ \d+ \d+\.\d\d \d+\n"), (["--latency", "--csv", "-i", "0.1"],
                                                           rb"\d+,\d+,\d+\.\d\d,\d+\n"),
            (["--latency", "--json", "-i", "0.1"], rb'{"min": \d+, "max": \d+, "avg": \d+\.\d\d, "count": \d+}\n'),
            (["--intrinsic-latency", "1"],
             rb"(Max latency so far: \d+ microseconds\.\n)+\n\d+ total runs \(avg latency: "
             rb"[\d.]+ microseconds / [\d.]+ nanoseconds per run\)\.\nWorst run took \d+x longer than "
             rb"the average latency\.\n")):
        code, output, errors = world.run(world.ours, [*port, *words])
        world.check(" ".join(words), code == 0 and re.fullmatch(pattern, output), output, errors)
    for words, wanted in ((["--stat", "-i", "0.05"], b" (+1) "), (["--latency-history", "-i", "0.05"],
                                                                  b" seconds range\n"),
                          (["--latency-dist", "-i", "0.05"], b"\x1b[0m\n\x1b[38;5;0m"),
                          (["--lru-test", "100"], b" Gets/sec | Hits: ")):
        watch = Watch(world, [*port, *words])
        world.check(" ".join(words), watch.wait_for(wanted), watch.seen)
        watch.end()


def sizes(world):
    for command in (["flushall"], ["set", "s", "12345"], ["rpush", "l", *"abc"], ["sadd", "set", *"ab"], ["zadd", "z",
                                                                                                          1, "a"],
                    ["hset", "h", "a", "b", "c", "d"], ["xadd", "x", "*", "a", "b"], ["set", b"long\0er", "1234567"]):
        world.admin.command(*command)
    code, output, _ = world.run(world.ours, [*port_of(world), "--bigkeys"])
    for line in (b"Sampled 7 keys in the keyspace!", b"Biggest string found '\"long\\x00er\"' has 7 bytes",
                 b"Biggest   list found '\"l\"' has 3 items", b"Biggest stream found '\"x\"' has 1 entries",
                 b"2 strings with 12 bytes (28.57% of keys, avg size 6.00)",
                 b"1 hashs with 2 fields (14.29% of keys, avg size 2.00)"):
        world.check("--bigkeys: %s" % line.decode(), code == 0 and line + b"\n" in output, output)
    code, output, _ = world.run(world.ours, [*port_of(world), "--memkeys-samples", "2"])
    world.check("--memkeys", re.search(rb"^Biggest string found '.*' has \d\d+ bytes$", output, re.M), output)
    world.admin.command("config", "set", "maxmemory-policy", "allkeys-lfu")
    for _ in range(200):
        world.admin.command("get", "s")
    code, output, errors = world.run(world.ours, [*port_of(world), "--hotkeys"])
    world.check("--hotkeys", re.search(rb'^hot key found with counter: \d+\tkeyname: "s"$', output, re.M), output,
                errors)
    world.admin.command("config", "set", "maxmemory-policy", "noeviction")


def snapshots(world):
    world.admin.command("set", "saved", "value-of-it")
    world.admin.command("function", "load", "#!lua name=lib\nredis.register_function('f', function() return 1 end)")
    checker = os.path.join(os.path.dirname(world.options.server), "keydb-check-rdb")
    path = os.path.join(world.folder, "dump")
    for words in (["--rdb", path], ["--rdb", "-"], ["--functions-rdb", path]):
        code, output, errors = world.run(world.ours, [*port_of(world), *words])
        if words[1] == "-":
            with open(path, "wb") as file:
                file.write(output)
        with open(path, "rb") as file:
            data = file.read()
        checked = subprocess.run([checker, path], capture_output=True, check=False)
        good = code == 0 and checked.returncode == 0 and (b"value-of-it" in data) == (words[0] == "--rdb")
        world.check(" ".join(words[:1]), good and b"version" not in errors, errors, checked.stdout)
        os.remove(path)
    # Valkey has to be told which version of it can be read.
    world.speaker.say(b"$39\r\nredis_version:7.2.4\r\nvalkey_version:9\r\n\r\n", *[b"+OK\r\n"] * 3, b"$9\r\nVALKEY080")
    code, output, errors = world.run(world.ours, ["-p", str(world.speaker.port), "--rdb", "-"])
    world.check("--rdb of Valkey", code == 0 and output == b"VALKEY080" and b"REPLCONF version 9.0.0" in errors, errors)


def odds(world):
    reader, writer = os.pipe()
    process = subprocess.Popen([world.ours, *port_of(world), "-r", "-1", "ping"], stdout=writer,
                               env=world.environment())
    os.close(writer)
    os.read(reader, 10)
    os.close(reader)
    try:
        process.wait(10)
        ended = True
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        ended = False
    world.check("it ends when nobody reads its output", ended)
    code, output, _ = world.run(world.options.cli, ["--version"])
    world.check("--version", code == 0 and re.fullmatch(rb"keydb-cli \d+\.\d+\.\d+\n", output), output)
    code, output, _ = world.run(world.options.cli, ["-h"])
    world.check("-h alone is help", code == 0 and b"Usage: keydb-cli " in output and b"NAME" not in output,
                output[:300])
    code, output, errors = world.run(world.ours, ["--cluster", "info"])
    world.check("--cluster", (code, errors.count(b"\n")) == (1, 1), errors)
    code, output, errors = world.run(world.ours, port_of(world), b"help get\n")
    world.check("help", b"\x1b[1mGET\x1b[0m \x1b[90mkey\x1b[0m\r\n" in output, output, errors)
    code, output, _ = world.run(world.ours, [*port_of(world), "-u", "keydb://127.0.0.1:%d/3" % world.server.port,
                                             "client",
                                             "info"])
    world.check("keydb://", b" db=3 " in output, output)
    many = b"".join(b"SET k%d v\r\n" % number for number in range(100000))
    code, output, errors = world.run(world.ours, [*port_of(world), "--pipe"], many)
    world.check("--pipe, many", (code, output[-31:]) == (0, b"server.\nerrors: 0, replies: 100000\n"[-31:]), output,
                errors)
    world.speaker.say(b"+a\r\n", b"")
    begin = time.monotonic()
    code, output, errors = world.run(world.ours, ["-p", str(world.speaker.port), "--pipe", "--pipe-timeout", "1"],
                                     b"X\r\nY\r\n")
    world.check("--pipe-timeout", code == 1 and time.monotonic() - begin < 10, output, errors)


def terminals(world):
    history = os.path.join(world.home, ".rediscli_history")
    prompt = "127.0.0.1:%d" % world.server.port
    with Terminal(world, port_of(world)) as terminal:
        terminal.expect(prompt + "> ")
        terminal.enter("select 3", prompt + "[3]").enter("multi", prompt + "[3](TX)").enter("incr x", "QUEUED")
        terminal.enter("exec", "1) (integer) 1")
        terminal.type("set a").expect("\x1b[0;90;49m value ")
        terminal.type(" \x15conf\t").expect("CONFIG")
        terminal.type("\t").expect("CONFIG GET\x1b[0;90;49m parameter [parameter ...]")
        terminal.type("\x1b").expect("> conf\r")
        terminal.type("\x15").expect("> \r")
        terminal.enter("auth nobody nothing", "(error) WRONGPASS")
        terminal.enter("acl whoami\x1b[D\x1b[D\x7f\x01\x06\x05\x15ping\x1b[H\x1b[3~p", "PONG")
        terminal.type("\x1b[A\x1b[A").expect("> exec")
        terminal.enter("\x1b[B", "PONG")
        terminal.enter("\x12inc", "(integer) 2")
        terminal.enter("select 0", prompt)
        terminal.type("subscribe c\r").expect("3) (integer) 1").type("\x03").expect(prompt + "> ")
        terminal.type("monitor\r").expect("OK\r\n").type("\x03").expect(prompt + "> ")
        terminal.enter(":set nohints").type("get").expect("> get\r")
        terminal.enter("\x15echo 'h\u00e9llo'\x1b[D\x7f", '"h\\xc3\\xa9ll"')
        terminal.enter("x" * 200 + "\x15debug sleep 0.6", "s)")
        terminal.type("quit\r")
        world.check("a terminal", terminal.ends() == 0 and not terminal.missed, terminal.missed, terminal.seen)
    with open(history, encoding="utf-8") as file:
        kept = file.read().split("\n")
    world.check("the history", "exec" in kept and "incr x" in kept and not any("auth" in line for line in kept), kept)
    world.check("is only for its owner", os.stat(history).st_mode & 0o777 == 0o600)
    with Terminal(world, ["-p", "1"]) as terminal:
        terminal.expect("Connection refused").expect("not connected> ")
        terminal.enter("ping", "Connection refused", "not connected")
        terminal.enter("connect 127.0.0.1 %d" % world.server.port, prompt)
        terminal.type("\x04")
        world.check("a terminal without a server", terminal.ends() == 0 and not terminal.missed, terminal.missed)
    with Terminal(world, [*port_of(world), "--askpass"]) as terminal:
        terminal.expect("Please input password: ").type("secret\r").expect("******").expect("AUTH failed")
        terminal.expect(prompt)
        terminal.type("\x03")
        world.check("--askpass", terminal.ends() == 0 and not terminal.missed and "secret" not in terminal.seen,
                    terminal.missed, terminal.seen)
    with open(os.path.join(world.home, "rc"), "w", encoding="ascii") as file:
        file.write(":set nohints\n:set nothing\n")
    with Terminal(world, ["-s", os.path.join(world.folder, "socket"), "-n", "2"],
                  {"REDISCLI_RCFILE": os.path.join(world.home, "rc"), "REDISCLI_HISTFILE": "/dev/null"}) as terminal:
        terminal.expect(".redisclirc: unknown redis-cli preference 'nothing'")
        terminal.expect("redis %s/socket[2]> " % world.folder).type("get").expect("> get\r")
        terminal.enter("\x15hello 3", "proto", "[2]").enter("client tracking on bcast", "OK\r\n")
        terminal.enter("set pushed 1", "OK\r\n").enter("ping", "-> invalidate: 'pushed'", "PONG")
        terminal.type("\x04")
        world.check("preferences and messages at a terminal", terminal.ends() == 0 and not terminal.missed,
                    terminal.missed,
                    terminal.seen[-500:])


def tls(world):
    certs = os.path.join(world.folder, "certs")
    subprocess.run([os.path.join(TOP, "utils", "gen-test-certs.sh"), certs], check=True)
    port = free_port()
    ca, crt, key = (os.path.join(certs, name) for name in ("ca.crt", "client.crt", "client.key"))
    with Server(world.options.server, ["--tls-port", port, "--tls-cert-file", certs + "/server.crt", "--tls-key-file",
                                       certs + "/server.key", "--tls-ca-cert-file", ca], 2):
        base = ["-p", str(port), "--tls"]
        client = ["--cert", crt, "--key", key]
        for words, good in ((["--cacert", ca, *client], True), (["--insecure", *client], True), (client, False),
                            (["--cacert", certs + "/other-ca.crt", *client], False), (["--cacert", ca], False),
                            (["--cacert", ca, "--cert", crt], False), (["--cacert", "/nonexistent", *client], False),
                            (["--cacert", ca, *client, "--sni", "localhost", "--tls-ciphersuites",
                              "TLS_AES_128_GCM_SHA256"],
                             True), (["--cacert", ca, *client, "--tls-ciphersuites", "NONSENSE"], False)):
            code, output, errors = world.run(world.ours, [*base, *words, "ping"])
            world.check("TLS with %s" % " ".join(words).replace(world.folder, ""),
                        (code, output) == ((0, b"PONG\n") if good else (1, b"")), code, output, errors)
        code, output, errors = world.run(world.ours, ["-u", "rediss://127.0.0.1:%d" % port, "--cacert", ca, *client,
                                                      "ping"])
        world.check("rediss://", output == b"PONG\n", errors)
        many = b"".join(b"SET k%d %s\r\n" % (number, b"v" * 100) for number in range(20000))
        code, output, errors = world.run(world.ours, [*base, "--cacert", ca, *client, "--pipe"], many)
        world.check("--pipe over TLS", code == 0 and output.endswith(b"replies: 20000\n"), output, errors)
        code, output, errors = world.run(world.ours, [*base, "--cacert", ca, *client, "--rdb", "-"])
        world.check("--rdb over TLS", code == 0 and output.startswith(b"REDIS"), errors)


FILL = [["flushall"], ["set", "s", "1"], ["rpush", "l", "a", "b"], ["hset", "h", "a", "1", "b", "2"],
        ["sadd", "set", *"abc"], ["zadd", "z", 1, "a"], ["xadd", "x", "1-1", "a", "b"],
        ["set", "due", "1", "pxat", "4000000000000"], ["select", 2], ["set", "in-2", "x"], ["select", 0]]
CHANGES = [(["set", "s", "2"], b'"s" value'), (["set", "due", "1"], b'"due" '), (["del", "l"], b'"l" only on '),
           (["sadd", "set", "d"], b'"set" value'), (["hset", "h", "a", "2"], b'"h" value'),
           (["set", "new", "1"], b'"new" only on'), (["zadd", "z", "2", "a"], b'"z" value'),
           (["xadd", "x", "2-1", "a", "b"], b'"x" value')]


def comparing(world):
    with Server(world.options.server, ["--enable-debug-command", "yes"], 2) as first:
        compare_with(world, first, "with digests", world.options.server)
        compare_with(world, first, "by reading", world.options.oracle)
    for words in ([*port_of(world), "--compare", "127.0.0.1:1"],
                  ["-p", "1", "--compare", "127.0.0.1:%d" % world.server.port],
                  [*port_of(world), "--compare", "nothing"], [*port_of(world), "--compare", "redis://%zz@a"]):
        code, output, errors = world.run(world.ours, words)
        world.check("--compare that cannot: %s" % words[-1],
                    (code, output) == (2, b"") and errors.startswith(b"compare: "), code, errors)


def compare_with(world, first, kind, binary):
    with Server(binary, ["--enable-debug-command", "yes"]) as second:
        mine, other = first.connect(), second.connect()
        for target in (mine, other):
            for command in FILL:
                target.command(*command)
        words = ["-p", str(first.port), "--compare", "127.0.0.1:%d" % second.port]
        code, output, errors = world.run(world.ours, words)
        world.check("--compare %s, equal" % kind, (code, output) == (0, b"the data are equal\n"), output, errors)
        for command, _ in CHANGES:
            other.command(*command)
        code, output, errors = world.run(world.ours, words)
        good = all(wanted in output for _, wanted in CHANGES) and output.endswith(b"\n%d keys differ\n" % len(CHANGES))
        world.check("--compare %s, different" % kind, code == 1 and good, code, output, errors)
        # What is written meanwhile is no difference.
        for command, _ in CHANGES[1:]:
            mine.command(*command)
        late = threading.Timer(0.8, lambda: first.connect().command("set", "s", "2"))
        late.start()
        code, output, errors = world.run(world.ours, words)
        late.join()
        world.check("--compare %s, written meanwhile" % kind, (code, output) == (0, b"the data are equal\n"), output,
                    errors)
        if kind == "with digests":
            return
        for number in range(300):
            mine.command("set", "k%d" % number, "v")
            other.command("set", "k%d" % number, "v")
        begin = time.monotonic()
        code, output, errors = world.run(world.ours, [*words, "--rate", "600"])
        took = time.monotonic() - begin
        world.check("--compare --rate", code == 0 and 0.8 < took < 10, output, errors, took)


# These have servers of their own, and wait a lot: they run beside the others.
BESIDE = (hostile, tls, comparing)
PARTS = (own_forms, redirections, reconnection, watches, sizes, snapshots, odds, terminals)


def timed(world, part):
    begin = time.monotonic()
    try:
        part(world)
    except Exception as error:     # a thread's failure has to count, too
        world.check(part.__name__, False, repr(error))
    print("%-14s %5.1f s" % (part.__name__, time.monotonic() - begin), file=sys.stderr)


def start(world):
    """Starts what runs beside the other tests."""
    threads = [threading.Thread(target=timed, args=(world, part)) for part in BESIDE
               if world.wants("alone " + part.__name__)]
    for thread in threads:
        thread.start()
    return threads


def run(world):
    for part in PARTS:
        if world.wants("alone " + part.__name__):
            timed(world, part)
