"""The Tcl suite of Redis 7.0: fetched as Debian's source package, unpacked, and run one unit at a time.

Only tests/ and utils/gen-test-certs.sh are taken out of the package. Everything lies in build/conformance; package
lists and sources of lists are our own there, so that nothing of the machine's configuration changes.
"""
import fcntl
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import threading
import time

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
CODENAME = "bookworm"
VERSION = "7.0."
WANTED = re.compile(r"^[^/]+/(tests/.*|utils/gen-test-certs\.sh)$")
# The programs that the suite starts as src/NAME; ours stand under their own names in the server's folder.
TOOLS = {"redis-cli": "keydb-cli", "redis-benchmark": "keydb-benchmark", "redis-check-aof": "keydb-check-aof",
         "redis-check-rdb": "keydb-check-rdb"}
# What cannot be changed in this server while it runs, and can, or is not there, in the suite's.
OUR_FIXED_OPTIONS = [
    "active-replica", "aof-rewrite-cpulist", "bgsave-cpulist", "bio-cpulist", "cluster-databases", "enable-motd",
    "event-loop", "event-loop-spin-us", "mptcp", "multi-master", "repl-backlog-disk-reserve", "repl-mptcp",
    "server-cpulist", "server-thread-affinity", "server-threads", "storage-cache-mode", "storage-provider-options",
    "time-thread-priority", "tls-auditlog-blocklist", "unixsocketgroup", "use-fork", "version-override",
]
# Below the range from which the kernel takes ports for outgoing connections.
PORT_FIRST, PORT_LAST, PORT_COUNT = 20100, 32000, 200


class Trouble(Exception):
    """The suite could not be fetched or run."""


def _call(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode:
        raise Trouble("%s\n%s" % (" ".join(command), done.stdout[-2000:]))


def _sources():
    """Where this machine has its packages from is where their sources are."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)",
                           "Created-By: Packages"], stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    lines = [line.split() for line in done.stdout.splitlines()]
    found = sorted({" ".join(line) for line in lines if len(line) == 3 and line[1].startswith(CODENAME)})
    if not found:
        raise Trouble("needs Debian 12's package lists: apt-get knows of no %s" % CODENAME)
    return "".join("deb-src [signed-by=%s] %s\n" % (KEYRING, line) for line in found)


def _fetch(folder):
    """Downloads the source package into the folder, with package lists that live and die in there."""
    if not shutil.which("apt-get"):
        raise Trouble("needs apt-get and Debian 12's source packages")
    lists, archives = os.path.join(folder, "lists"), os.path.join(folder, "cache")
    os.makedirs(os.path.join(lists, "partial"))
    os.makedirs(os.path.join(archives, "archives", "partial"))
    sources = os.path.join(folder, "sources.list")
    with open(sources, "w", encoding="ascii") as file:
        file.write(_sources())
    apt = ["apt-get", "-qq", "-o", "Dir::Etc::sourcelist=" + sources, "-o", "Dir::Etc::sourceparts=/dev/null",
           "-o", "Dir::State::lists=" + lists, "-o", "Dir::Cache=" + archives, "-o", "APT::Sandbox::User=root"]
    _call([*apt, "update"], cwd=folder, timeout=300)
    _call([*apt, "--download-only", "--only-source", "source", "redis"], cwd=folder, timeout=300)
    for name in sorted(os.listdir(folder)):
        if name.endswith(".orig.tar.gz"):
            return os.path.join(folder, name)
    raise Trouble("the source package has no original sources")


def prepare(folder):
    """FOLDER/suite with tests/ and certificates; the first who asks fetches it, the others wait."""
    folder = os.path.abspath(folder)
    suite = os.path.join(folder, "suite")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, ".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(suite):
            print("conformance: fetching the suite (source package of redis, only its tests are unpacked)", flush=True)
            with tempfile.TemporaryDirectory(dir=folder) as work:
                _unpack(_fetch(work), os.path.join(work, "suite"))
                os.rename(os.path.join(work, "suite"), suite)
        _skip_our_fixed_options(os.path.join(suite, "tests", "unit", "introspection.tcl"))
        _name_tests_of_aof_race(os.path.join(suite, "tests", "integration", "aof-race.tcl"))
        _know_newer_encodings(os.path.join(suite, "tests", "support", "test.tcl"))
        for unit in ("acl", "acl-v2"):
            _know_newer_refusals(os.path.join(suite, "tests", "unit", unit + ".tcl"))
        _force_full_syncs(os.path.join(suite, "tests", "integration", "replication.tcl"))
        _await_full_sync(os.path.join(suite, "tests", "integration", "replication.tcl"))
        _await_blocked(os.path.join(suite, "tests", "unit", "type", "stream-cgroups.tcl"))
    return suite


def units(suite):
    """What the suite runs when nobody says what."""
    with open(os.path.join(suite, "tests", "test_helper.tcl"), encoding="utf-8") as file:
        found = re.search(r"^set ::all_tests \{([^{}]*)\}", file.read(), re.M)
    if not found:
        raise Trouble("test_helper.tcl is not what it was")
    return found.group(1).split()


def _unpack(archive, suite):
    with tarfile.open(archive) as package:
        for member in package:
            if not WANTED.match(member.name):
                continue
            top, _, member.name = member.name.partition("/")
            if VERSION not in top:
                raise Trouble("expected version %s, the package has %s" % (VERSION, top))
            if member.isfile():
                package.extract(member, suite)
    _wait_no_longer(os.path.join(suite, "tests", "support", "server.tcl"))
    # The script takes what is there: a group of RFC 7919 takes no minutes to find.
    os.makedirs(os.path.join(suite, "tests", "tls"))
    _call(["openssl", "genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe2048", "-out",
           "tests/tls/redis.dh"], cwd=suite, timeout=120)
    _call(["bash", "utils/gen-test-certs.sh"], cwd=suite, timeout=120)


def _wait_no_longer(path):
    """Two minutes is how long the suite waits for a server that has refused its configuration; now it looks."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    patient = "        incr maxiter -1\n"
    if text.count(patient) != 1:
        raise Trouble("%s is not what it was" % path)
    text = text.replace(patient, patient + "        if {![is_alive [dict create pid $pid]]} {set maxiter 0}\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _skip_our_fixed_options(path):
    """CONFIG sanity sets every option but those it knows to be fixed; here more of them are."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    known = "        set skip_configs {\n"
    if text.count(known) != 1:
        raise Trouble("%s is not what it was" % path)
    lines = [" " * 12 + name + "\n" for name in OUR_FIXED_OPTIONS]
    ours = "".join(line for line in lines if line not in text)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(known, known + ours))


def _name_tests_of_aof_race(path):
    """The unit has no test with a name, so nobody would hear of its failures; and what it loads after the restart has
    been removed by the suite, unless that is told to keep it. (Redis fails there, too.)"""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    start, check = "start_server [list overrides $config] $code", "assert_equal 20000 [$client get foo]"
    kept = start.replace("$config]", "$config keep_persistence true]")
    if kept in text:
        return
    if text.count(start) != 1 or text.count(check) != 2:
        raise Trouble("%s is not what it was" % path)
    named = 'test "AOF rewrite under load: all is there%s" {wait_done_loading $client; ' + check + "}"
    begin, middle, end = text.replace(start, kept).split(check)
    with open(path, "w", encoding="utf-8") as file:
        file.write(begin + named % "" + middle + named % " after a restart" + end)


def _know_newer_encodings(path):
    """Small lists, and small sets with members that are no integers, are listpacks since Redis 7.2. Most tests make
    their data by way of this check, so that without it they would not get any further."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    asks = "    set val [r object encoding $key]\n    assert_match $enc $val\n"
    newer = ("    set val [r object encoding $key]\n"
             "    if {$val eq {listpack}} {catch {set val [dict get {list quicklist set hashtable} [r type $key]]}}\n"
             "    assert_match $enc $val\n")
    if newer in text:
        return
    if text.count(asks) != 1:
        raise Trouble("%s is not what it was" % path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(asks, newer))


def _know_newer_refusals(path):
    """Since Redis 7.2 a refusal names the user, and one key or channel."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    newer = re.sub(r"This user has no permissions(.*DRYRUN (\S+))", r"User \2 has no permissions\1", text)
    newer = re.sub(r"\*NOPERM\*(key|channel)s\*", r"*NOPERM*\1*", newer)
    if newer != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(newer)


def _force_full_syncs(path):
    """Where the unit forces a full sync by a small backlog: here what a replica misses is kept for it. Under a new id
    it gets all data from any server."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    kill, change = "$master multi\n%s$master client kill type replica\n", "%s$master debug change-repl-id\n"
    for indent in (" " * 12, " " * 20):
        before = kill % indent
        if before + change % indent in text:
            return
        if text.count(before) != 1:
            raise Trouble("%s is not what it was" % path)
        text = text.replace(before, before + change % indent)
    # Each attempt waits for a link that is tried once a second.
    text = text.replace("set attempts 100\n", "set attempts 25\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _await_full_sync(path):
    """What follows a full sync looks at the replica's link at once: it may still be up, as the replica
    has not read yet that the master ended it. The master counts the sync when the replica has come back."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    before = '                "Successful" {\n                    # Let replica finish sync with master\n'
    wait = "                    wait_for_condition 100 100 {[s sync_full] == 2} else {fail {no second sync}}\n"
    if before + wait in text:
        return
    if text.count(before) != 1:
        raise Trouble("%s is not what it was" % path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(before, before + wait))


BLOCKS = re.compile(r'^( +)\$rd XREAD(?:GROUP)? .*BLOCK 0 STREAMS mystream "[>$]"\n'
                    r'(?=\1r (?:DEL|SET|MULTI|FLUSHALL|SWAPDB))', re.M)


def _await_blocked(path):
    """What a blocked client gets when its stream goes: two connections may be those of two threads, so it has to be
    blocked before the other one is asked."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    newer = BLOCKS.sub(lambda found: found.group(0) + found.group(1) + "wait_for_blocked_clients_count 1\n", text)
    if newer.count("wait_for_blocked_clients_count") < 10:
        raise Trouble("%s is not what it was" % path)
    if newer != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(newer)


def _link_program(target, link):
    """A symbolic link; but a script that looks beside itself for what it starts must see its own folder."""
    with open(target, "rb") as file:
        is_script = file.read(2) == b"#!"
    if not is_script:
        os.symlink(target, link)
        return
    with open(link, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\nexec "%s" "$@"\n' % target)
    os.chmod(link, 0o755)


def _workplace(folder, suite, server, oracle):
    """A fresh folder that looks to the suite as if Redis had been built in it."""
    place = tempfile.mkdtemp(prefix="run-", dir=folder)
    for name in os.listdir(os.path.join(suite, "tests")):
        if name != "tmp":
            os.makedirs(os.path.join(place, "tests"), exist_ok=True)
            os.symlink(os.path.join(suite, "tests", name), os.path.join(place, "tests", name))
    os.makedirs(os.path.join(place, "tests", "tmp"))
    os.makedirs(os.path.join(place, "src"))
    _link_program(os.path.abspath(server), os.path.join(place, "src", "redis-server"))
    for name, ours in TOOLS.items():
        for candidate in (os.path.join(os.path.dirname(server), ours), os.path.join(os.path.dirname(oracle), name)):
            if os.path.exists(candidate):
                _link_program(os.path.abspath(candidate), os.path.join(place, "src", name))
                break
    return place


def _end_processes(place):
    """Ends what still runs in the folder: servers that the suite left behind. Nobody else works in there."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            where = os.readlink("/proc/%s/cwd" % pid)
            if where == place or where.startswith(place + "/"):
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass


MARK = re.compile(r"^\[([a-zA-Z/0-9 ]+)\]: ?(.*)$")
OK = re.compile(r"^(.*) \(\d+ ms\)$")
BUSY = re.compile(r"^\S+ => \(IN PROGRESS\) (.*)$", re.M)
# Tests of psync2 and psync2-reg that are repeated for a while with random numbers in their names: all are one.
REPEATED = re.compile(r"^PSYNC2")
RANDOM = re.compile(r"(?<=Set #)\d+|(?<=from #)\d+|(?<=CYCLE )\d+|(?<=x = )\d+")
TESTED_IN = re.compile(r"^(.*) in tests/\S+\.tcl$")


def _is_free(port):
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
        return True
    except OSError:
        return False


class Verdicts:
    """What one run said: for each test pass, fail or ignore, and why; and what went wrong outside of tests."""

    def __init__(self):
        self.tests = {}         # name -> (result, why); the second test of a name is "NAME ~2", but see REPEATED
        self.outside = []       # failures of no test in particular: a block of tests ended early
        self.stuck = None       # the test that made no progress

    def add(self, name, result, why=""):
        if REPEATED.match(name):
            name = RANDOM.sub("N", name)
            if self.tests.get(name, ("pass",))[0] == "pass":
                self.tests[name] = (result, why)
            return
        key, count = name, 1
        while key in self.tests:
            count += 1
            key = "%s ~%d" % (name, count)
        self.tests[key] = (result, why)

    def read(self, output):
        records = []
        for line in re.sub(r"\x1b\[[0-9;]*m", "", output).splitlines():
            found = MARK.match(line)
            if found:
                records.append([found.group(1), found.group(2)])
            elif records:
                records[-1][1] += "\n" + line
        for kind, text in records:
            self._read_record(kind, text)

    def _read_record(self, kind, text):
        first, _, rest = text.partition("\n")
        if kind == "ok" and OK.match(first):
            self.add(OK.match(first).group(1), "pass")
        elif kind == "err":
            tested = TESTED_IN.match(first)
            if tested:
                self.add(tested.group(1), "fail", rest.strip())
            else:
                self.outside.append(text.strip())
        elif kind == "ignore":
            name, separator, why = first.rpartition(": Tag: ")
            if not separator:
                name, separator, why = first.rpartition(": Not supported ")
            if not separator:
                name, separator, why = first.rpartition(": large memory ")
            if name:
                self.add(name, "ignore", why)
        elif kind == "exception":
            self.outside.append(text.strip())
        elif kind == "TIMEOUT":
            busy = BUSY.search(text)
            self.stuck = busy.group(1) if busy else None
            if self.stuck:
                self.add(self.stuck, "fail", "no progress")
            else:
                self.outside.append("no progress outside of a test")


class Runner:
    """Runs units with one server program; folder is where their workplaces are."""

    def __init__(self, folder, suite, server, oracle, threads=None, keep=False):
        self.folder = os.path.join(os.path.abspath(folder), "work")
        self.suite = suite
        self.server = server
        self.oracle = oracle
        self.threads = threads
        self.keep = keep
        self.places = set()
        self.ports = set()      # the first ones of the ranges in use
        self.lock = threading.Lock()
        self.ended = False
        os.makedirs(self.folder, exist_ok=True)

    def end(self):
        """Ends everything that runs in our workplaces, and lets nothing more begin."""
        self.ended = True
        for place in list(self.places):
            _end_processes(place)

    def _take_ports(self):
        """The first of a range; the suite listens itself a little before it."""
        with self.lock:
            while True:
                port = random.randrange(PORT_FIRST, PORT_LAST - PORT_COUNT, PORT_COUNT + 40)
                if port not in self.ports and all(map(_is_free, (port - 32, port - 31, port, port + 1))):
                    self.ports.add(port)
                    return port

    def run(self, unit, mode, seconds, arguments=(), threads=None, forks=False):
        """Verdicts and the output of one run of the unit; mode is plain or tls. Threads of the server, if nobody has
        chosen others for all runs. With `forks` it saves by forked processes."""
        place = _workplace(self.folder, self.suite, self.server, self.oracle)
        self.places.add(place)
        port = self._take_ports()
        command = ["tclsh", "tests/test_helper.tcl", "--single", unit, "--clients", "1", "--durable",
                   "--baseport", str(port), "--portcount", str(PORT_COUNT), "--timeout", str(seconds // 5),
                   *arguments]
        if self.keep:
            command.append("--dont-clean")
        if mode == "tls":
            command.append("--tls")
        if self.threads or threads:
            command += ["--config", "server-threads", str(self.threads or threads)]
        if forks:
            command += ["--config", "snapshot-method", "fork"]
        verdicts = Verdicts()
        begin = time.monotonic()
        if self.ended:
            raise Trouble("ended")
        process = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            output = process.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            _end_processes(place)
            output = process.communicate()[0]
            verdicts.outside.append("out of time after %d s" % seconds)
        finally:
            _end_processes(place)
            self.places.discard(place)
            self.ports.discard(port)
        text = output.decode("utf-8", "replace")
        verdicts.read(text)
        if not self.keep:
            shutil.rmtree(place, ignore_errors=True)
        return verdicts, text, time.monotonic() - begin
