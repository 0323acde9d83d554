"""The same command lines through both programs."""
import os
import re

# Options and words of the command line; standard input, if there is one. {P} is the port of the server, {C} one where
# nobody listens, {S} the server's socket, {F} a folder. Before each of the two runs the data are made anew.
COMMANDS = """
ping | get s | get none | mget s n none | -3 hgetall h | --csv hgetall h | --json hgetall h | -2 --json hgetall h
--no-raw get s | --no-raw mget s n none | --no-raw -3 hgetall h | --no-raw lrange l 0 -1 | --no-raw smembers one
--no-raw get binary | --csv get binary | --json get control | --raw get binary | --no-raw foo | foo | --csv foo
--json foo | -e foo | -e --json foo | -e get s | -e -r 3 foo | --no-raw -3 zrange z 0 -1 withscores
--no-raw zrange z 0 -1 withscores | --json -3 zrange z 0 -1 withscores | --csv zscore z a | -3 --no-raw zscore z a
--no-raw command info get | --no-raw -3 command info get | -3 command info get | --json command info get
--no-raw xrange x - + | --csv xrange x - + | -d X mget s n | -D X mget s n | -d X -D Y lrange l 0 -1
--no-raw client no-evict | --no-raw cluster info | --no-raw latency doctor | --no-raw memory doctor x
--no-raw latency graph x | --no-raw object help | object help | -r 3 incr n | -r 3 --csv incr n | -r 0 incr n
-r abc incr n | -i 0.01 -r 2 incr n | -r 2 --json mget s n | -r 2 -D X mget s n | -n 3 dbsize | -n 99 dbsize
-n abc dbsize | -n 3 set k v | -n 3 -r 2 incr n | -3 ping | -2 ping | -2 -3 --no-raw hgetall h | -s {S} ping
-s {S} -n 2 dbsize | -h localhost ping | -p {C} ping | -h nowhere.invalid ping | -s /nonexistent ping | -p abc ping
-u redis://127.0.0.1:{P}/3 dbsize | -u redis://127.0.0.1:{P} get s | -u redis://pw@127.0.0.1:{P}/3 dbsize
-u redis://u:pw@127.0.0.1:{P} ping | -u http://127.0.0.1 ping | -u redis://%zz@127.0.0.1 ping
-u redis://a%41:b@127.0.0.1:{P} ping | -u redis://127.0.0.1:{P}/3 -n 0 get s | -a pw ping
-a pw --no-auth-warning ping
--pass pw ping | --user u ping | --user u -a pw ping | --user u --pass pw --no-auth-warning ping | -a foobared -n 3 ping
--foo ping | -r | -p | --foo | --show-pushes maybe ping | --quoted-pattern "x --scan | -x -X t get s
--ldb ping | --quoted-input get "s" | --quoted-input set "a\\x00b" "\\n" | --quoted-input get "s
--quoted-input get s"x
--quoted-input get 's' | --scan --pattern one | --scan --pattern nothing* | --scan --pattern [ --no-raw
--no-raw --scan --pattern contr* | --scan --quoted-pattern "bin*" --no-raw | --raw --csv get s | --csv --raw get s
--json --raw get s | --csv --no-raw get s | --eval {F}/args.lua | --eval {F}/args.lua a b , c d
--eval {F}/args.lua a b, c | --eval {F}/args.lua a ,c d | --no-raw --eval {F}/args.lua a ,
-r 2 --eval {F}/args.lua a , b
--eval {F}/bad.lua a | -e --eval {F}/bad.lua a | --eval /nonexistent | --no-raw --eval {F}/error.lua
--json --eval {F}/args.lua a , b | unsubscribe | --no-raw unsubscribe c | --no-raw config get maxmemory-p*
-3 --no-raw config get maxmemory-p* | -3 config get maxmemory-p* | -c get s | --verbose get s | shutdown nothing x
--show-pushes no get s | --rdb /nonexistent/x | --bigkeys --pattern one | --memkeys --pattern one
--bigkeys --pattern nothing | --hotkeys | --no-raw multi | --no-raw reset | --no-raw echo \xe9 | echo x --raw
--no-raw debug protocol double | -3 --no-raw debug protocol double | -3 --no-raw debug protocol map
-3 --no-raw debug protocol set | -3 --json debug protocol map | -3 debug protocol map | -3 --no-raw debug protocol null
-3 --no-raw debug protocol true | -3 --json debug protocol false | -3 --no-raw debug protocol verbatim
-3 --csv debug protocol verbatim | -3 --no-raw debug protocol push | -3 --show-pushes yes --no-raw debug protocol push
-3 --show-pushes yes --csv debug protocol push | -3 --show-pushes yes debug protocol push
-X tag get s | -X tag set tag v
"""

INPUTS = [
    ([], "set a 1\nget a\n\nfoo\nget a"),
    (["--no-raw"], "set a 1\nget a\n\nfoo\nget a\n"),
    ([], 'set "a\nget s\n'),
    (["-e"], "foo\nget s\n"),
    (["-e"], "get s\nfoo"),
    ([], "multi\nget s\nexec\nselect 3\nmulti\nfoo\nexec\nget s\ndiscard\n"),
    (["--no-raw"], "multi\nselect 2\nset a b\nexec\nget a\nselect 0\nget a\n"),
    ([], "quit\nget s\n"),
    ([], "EXIT\nget s\n"),
    ([], "3 get s\n-1 get s\n0 get s\n3\n"),
    ([], "clear\nget s\n"),
    ([], ":set x\n:set hints\n:set nohints\n:foo\n:\nget s\n"),
    ([], "# no comment\nget s\n"),
    ([], "set b 'x y'\nget b\nset c \"a\\nb\"\nget c\n  get \t b  \n"),
    (["--no-raw"], "set b '\\x41'\nget b\nset b \"\\x41\\x00\"\nget b\n"),
    (["-x", "set", "x1"], "abc\n"),
    (["-x", "set", "x1"], ""),
    (["-x"], "get s"),
    (["-X", "T", "set", "T", "x2"], "abc\n"),
    (["-X", "T", "mset", "k", "T", "l", "T"], "v"),
    (["-X", "T", "get", "s"], "abc"),
    (["--pipe"], "*1\r\n$4\r\nPING\r\nGET s\r\nFOO\r\n"),
    (["--pipe"], "PING"),
    (["--pipe"], ""),
    (["--pipe"], "SET a b\nSET c d\nINCR s\nINCR s\n"),
    (["-n", "3", "--pipe"], "SET a b\nDBSIZE\n"),
    (["--pipe", "--pipe-timeout", "1"], "PING\n"),
    ([], "connect 127.0.0.1 {C}\nping\nconnect 127.0.0.1 {P}\nping\nconnect x\n"),
    ([], "restart\nget s\n"),
    ([], "help nothing\n? @nothing\n"),
    ([], "select 99\nget s\nselect 3\nget s\n"),
    (["--no-raw"], "hello 3\nhgetall h\nhello 2\nhgetall h\nhello 4\n"),
    (["--no-raw"], "subscribe\nget s\nunsubscribe c\n"),
    (["-3", "--no-raw", "--show-pushes", "yes"], "client tracking on\nget s\nset s x\nget s\nflushdb\nping\n"),
    (["-3", "--show-pushes", "yes"], "client tracking on bcast\nmset s x n y\nget s\n"),
    (["-p", "{C}"], "get s\nping\nquit\n"),
    (["--csv"], "lrange l 0 -1\nfoo\n"),
    (["--json"], "lrange l 0 -1\nhgetall h\nfoo\n"),
    (["--no-raw"], "debug sleep 0.6\nget s\n"),
    (["--ldb", "--eval", "{F}/args.lua", "k", ",", "v"], "s\nc\nget s\n"),
    (["--ldb", "--eval", "{F}/bad.lua"], "c\nget s\n"),
    (["--ldb-sync-mode", "--eval", "{F}/error.lua"], "c\nget s\n"),
]

DATA = [
    ["flushall"], ["set", "s", "some \"text\""], ["set", "n", "5"], ["set", "binary", b"a\0\xc3\xa9\xff"],
    ["set", "control", b"\x01\b\f\n\r\t\x1b/\\\""], ["hset", "h", "a", "1", "b c", "\n", "d", ""],
    ["rpush", "l", *["e%d" % i for i in range(11)]], ["sadd", "one", "m"], ["zadd", "z", "1.5", "a", "2", "b"],
    ["xadd", "x", "1-1", "f", "v", "g", "w"], ["xadd", "x", "2-1", "f", "v"],
]

SCRIPTS = {"args.lua": "return {KEYS, ARGV}\n", "bad.lua": "return {\n", "error.lua": "return redis.call('incr')\n"}

# What is of the moment.
MASKS = [
    (re.compile(rb"\((\d+\.\d\d)s\)"), b"(TIMEs)"),
    (re.compile(rb"\"id\"(?: => |\n *\d+\) )\(integer\) \d+"), b"ID"),
    (re.compile(rb"^id=\d+ .*$", re.M), b"CLIENT"),
    (re.compile(rb"Try \S+redis-cli --help"), b"Try redis-cli --help"),
]

FORMATS = [["--no-raw"], ["--raw"], ["--csv"], ["--json"], ["--quoted-json"], ["--raw", "-d", "|", "-D", "#"],
           ["--no-raw", "-3", "--show-pushes", "yes"], ["--csv", "-3", "--show-pushes", "yes"]]

# Any reply of any server. Texts with quotes are not in --quoted-json, where redis-cli's are not JSON.
REPLIES = [
    b"$5\r\nhello\r\n", b":42\r\n", b":-9223372036854775808\r\n", b",3.5\r\n", b",inf\r\n", b",3.14159265358979\r\n",
    b"*-1\r\n", b"$-1\r\n", b"_\r\n", b"*0\r\n", b"~0\r\n", b"%0\r\n", b"*3\r\n:0\r\n:1\r\n$1\r\nx\r\n",
    b"*2\r\n*2\r\n:1\r\n:2\r\n*1\r\n*0\r\n", b"~3\r\n:0\r\n:1\r\n:2\r\n", b"%2\r\n:0\r\n#t\r\n+k\r\n*2\r\n:1\r\n:2\r\n",
    b"#t\r\n", b"#f\r\n", b"$4\r\na\x00\xc3\xa9\r\n", b"+OK\r\n", b"-ERR a b\r\n", b"*2\r\n-ERR in\r\n+OK\r\n",
    b"%1\r\n$1\r\na\r\n%1\r\n:1\r\n:2\r\n",
    b"*11\r\n" + b":1\r\n" * 10 + b"*11\r\n" + b":2\r\n" * 11,
    b"%2\r\n:1\r\n%2\r\n+a\r\n:1\r\n+b\r\n*2\r\n:1\r\n:2\r\n:2\r\n~2\r\n:5\r\n:6\r\n", b"*1\r\n=7\r\nmkd:abc\r\n",
    b"=8\r\ntxt:ab\n\n\r\n", b">2\r\n+message\r\n+x\r\n+OK\r\n",
    b">2\r\n+invalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n+OK\r\n",
    b">2\r\n+invalidate\r\n_\r\n+OK\r\n",
    b"*2\r\n%2\r\n:1\r\n:2\r\n:3\r\n:4\r\n%1\r\n:1\r\n*3\r\n:1\r\n:2\r\n*2\r\n:3\r\n:4\r\n",
    b"%1\r\n_\r\n#f\r\n", b"*3\r\n#t\r\n#f\r\n_\r\n", b"-\r\n", b"+\r\n", b"$0\r\n\r\n",
    b"*1\r\n" * 6 + b":1\r\n", b"%1\r\n:1\r\n" * 5 + b"*2\r\n:1\r\n:2\r\n",
    b"~1\r\n%1\r\n+k\r\n~2\r\n:1\r\n*1\r\n:2\r\n",
]
QUOTED = [b"$1\r\n\"\r\n", b"=5\r\ntxt:\"\r\n", b"-ERR \"x\"\r\n", b"%1\r\n$1\r\n\"\r\n$1\r\n\"\r\n",
          b"$9\r\na\"\\\n\t\r\a\b\x7f\r\n"]


TYPE_LINE = re.compile(rb"^\d+ \w+s with \d+ .* of keys, avg size .*$", re.M)


def masked(text):
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    lines = iter(sorted(TYPE_LINE.findall(text)))      # redis-cli has the types in the order of a hash table
    return TYPE_LINE.sub(lambda _: next(lines), text)


def outcome(world, program, words, given, more=()):
    for command in DATA:
        world.admin.command(*command)
    code, output, errors = world.run(program, words, given, more)
    return code, masked(output), masked(errors)


def compare(world, words, given=b"", more=()):
    name = " ".join(words) + (" < %r" % given if given else "")
    if not world.wants(name):
        return
    theirs = outcome(world, world.theirs, words, given, more)
    ours = outcome(world, world.ours, words, given, more)
    world.check(name, theirs == ours, "redis-cli: %r" % (theirs,), "keydb-cli: %r" % (ours,))


def filled(world, text):
    return (text.replace("{P}", str(world.server.port)).replace("{C}", "1").replace("{F}", world.folder)
            .replace("{S}", os.path.join(world.folder, "socket")))


def with_port(world, words):
    words = [filled(world, word) for word in words]
    return words if {"-p", "-u", "-s"} & set(words) else ["-p", str(world.server.port), *words]


def compare_forms(world):
    for form in FORMATS:
        replies = REPLIES + ([] if form == ["--quoted-json"] else QUOTED)
        given = b"x\n" * len(replies)
        results = []
        for program in (world.theirs, world.ours):
            world.speaker.say(*replies)
            results.append(world.run(program, ["-p", str(world.speaker.port), *form], given))
        world.check("forms of replies: %s" % " ".join(form), results[0] == results[1], results[0], results[1])


def run(world):
    for name, text in SCRIPTS.items():
        with open(os.path.join(world.folder, name), "w", encoding="ascii") as file:
            file.write(text)
    for line in COMMANDS.replace("\n", "|").split("|"):
        if line.strip():
            compare(world, with_port(world, line.split()))
    for words, given in INPUTS:
        compare(world, with_port(world, words), filled(world, given).encode())
    port = ["-p", str(world.server.port)]
    compare(world, [*port, "ping"], more={"REDISCLI_AUTH": "pw"})
    compare(world, [*port, "-a", "other", "ping"], more={"REDISCLI_AUTH": "pw"})
    compare(world, [*port, "--askpass", "ping"], b"pw\n")
    compare(world, [*port, "get", "s"], more={"FAKETTY": "1"})
    compare(world, [*port, "-3", "debug", "protocol", "push"], more={"FAKETTY": "1"})
    if world.wants("forms of replies"):
        compare_forms(world)
