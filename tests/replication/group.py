"""What the Python tests of replication share: servers that follow each other, are killed and come back.

A Member is a Server of tests/differential/harness.py with DEBUG, without a delay before a diskless sync, and with a
connection for our own questions that is opened again when it was lost.
"""
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
for folder in (HERE, os.path.join(TOP, "tests", "differential")):
    if folder not in sys.path:
        sys.path.insert(0, folder)

from harness import Lost, Server, is_redis      # noqa: E402
from proxy import Proxy     # noqa: E402,F401 (for those who import us)

OPTIONS = ["--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0", "--appendonly", "no"]


class Wrong(Exception):
    """What a test has found."""


def wait_until(condition, seconds, what):
    """Waits for a condition, which may be lost in between, and gives its value."""
    deadline = time.monotonic() + seconds
    step = 0.002
    while True:
        problem = None
        try:
            value = condition()
            if value:
                return value
        except (Lost, OSError) as lost:
            problem = lost
        if time.monotonic() > deadline:
            raise Wrong("not within %g s: %s%s" % (seconds, what() if callable(what) else what,
                                                  " (%s)" % problem if problem else ""))
        time.sleep(step)
        step = min(step * 2, 0.05)


class Member(Server):
    def __init__(self, name, binary, options=(), threads=None, cpus=None):
        self.name = name
        self.own = None
        self.stopped = False
        super().__init__(binary, [*OPTIONS, *map(str, options)], None if is_redis(binary) else threads, cpus)

    # ---- questions

    def call(self, *words):
        """The reply, an error too. A connection that was lost since the last call is opened anew, and a server that is
        stopped goes on."""
        self.resume()
        for attempt in (0, 1):
            if self.own is None:
                self.own = self.connect(30)
            try:
                return self.own.command(*words)
            except (Lost, OSError):
                self.own.close()
                self.own = None
                if attempt:
                    raise
        return None

    def ask(self, *words):
        """As call, for what must not be an error; gives the payload."""
        reply = self.call(*words)
        if reply[0] == "-":
            raise Lost("%s: %s answers %s" % (self.name, b" ".join(str(w).encode() for w in words)[:200], reply[1]))
        return reply[1]

    def info(self, section):
        fields = {}
        for line in self.ask("INFO", section).decode(errors="replace").split("\r\n"):
            name, colon, value = line.partition(":")
            if colon:
                fields[name] = value
        return fields

    def offset(self):
        """Of a master: what it has written; of a replica: what it has applied."""
        fields = self.info("replication")
        return int(fields["slave_repl_offset" if fields["role"] == "slave" else "master_repl_offset"])

    def link_is_up(self):
        return self.info("replication").get("master_link_status") == "up"

    def sync_counts(self):
        fields = self.info("stats")
        return {name: int(fields["sync_" + name]) for name in ("full", "partial_ok", "partial_err")}

    def dataset(self):
        """Comparable between servers of any kind."""
        sizes = {}
        for name, value in self.info("keyspace").items():
            if name.startswith("db"):
                sizes[name] = value.split(",")[0]
        return sizes, self.ask("DEBUG", "DIGEST").decode()

    # ---- orders

    def follow(self, port):
        """port: of the master or of a proxy before it; None: nobody."""
        words = ("NO", "ONE") if port is None else ("127.0.0.1", port)
        return self.ask("REPLICAOF", *words)

    def config(self, **values):
        for name, value in values.items():
            self.ask("CONFIG", "SET", name.replace("_", "-"), value)

    def forget(self):
        if self.own:
            self.own.close()
            self.own = None

    def kill(self, how=signal.SIGKILL):
        """Its folder stays, so that start() continues with it."""
        self.forget()
        self.resume()
        self.process.send_signal(how)
        self.process.wait(60)
        if how != signal.SIGKILL and self.process.returncode != 0:
            raise Wrong("%s ended with %d\n%s" % (self.name, self.process.returncode, self.log()))

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        self.stopped = True

    def resume(self):
        if self.stopped:
            self.process.send_signal(signal.SIGCONT)
            self.stopped = False

    def stop(self, keep=False):
        self.forget()
        if self.process and self.process.poll() is None:
            self.resume()
            try:    # nobody wants to wait for replicas that are gone
                self.call("CONFIG", "SET", "shutdown-timeout", "0")
            except (Lost, OSError):
                pass
            self.forget()
        super().stop(keep)

    def complaint(self):
        """What sanitizers and crashes have left in the log, or nothing."""
        log = self.log(1 << 24)
        for sign in ("ERROR: AddressSanitizer", "WARNING: ThreadSanitizer", "runtime error:", "LeakSanitizer",
                     "BUG REPORT START", "Assertion"):
            at = log.find(sign)
            if at >= 0:
                return "%s: %s" % (self.name, log[max(0, at - 300):at + 2500])
        return None


def wait_linked(replicas, seconds=30):
    for replica in replicas:
        wait_until(replica.link_is_up, seconds,
                   lambda replica=replica: "the link of %s is up\n%s" % (replica.name, replica.log(2500)))


def wait_caught_up(master, replicas, seconds=60):
    """All have applied what the master has written, and it has written nothing more meanwhile."""
    wait_linked(replicas, seconds)

    def have_all():
        before = master.offset()
        return all(replica.offset() == before for replica in replicas) and master.offset() == before

    wait_until(have_all, seconds, lambda: "%s is at %d, %s" % (
        master.name, master.offset(), ", ".join("%s at %d" % (each.name, each.offset()) for each in replicas)))


def wait_same(master, replicas, seconds=60):
    wait_caught_up(master, replicas, seconds)
    expected = master.dataset()
    for replica in replicas:
        actual = replica.dataset()
        if actual != expected:
            raise Wrong("%s has %s, %s has %s%s" % (master.name, expected, replica.name, actual,
                                                   differing_keys(master, replica)))


def keys_of(member, database):
    member.ask("SELECT", database)
    found, cursor = set(), b"0"
    while True:
        cursor, page = (each[1] for each in member.ask("SCAN", cursor, "COUNT", 5000))
        found |= {key[1] for key in page}
        if cursor == b"0":
            return found


def differing_keys(one, other, most=5):
    """For messages: keys that differ between two servers at rest."""
    lines = []
    for database in range(16):
        keys = keys_of(one, database), keys_of(other, database)
        for key in sorted(keys[0] | keys[1]):
            if len(lines) >= most:
                break
            seen = []
            for member in (one, other):
                seen.append((member.ask("TYPE", key), member.ask("DEBUG", "DIGEST-VALUE", key)[0][1],
                             member.ask("PEXPIRETIME", key)))
            if seen[0] != seen[1]:
                lines.append("\n  db %d %r: %s has %s, %s has %s" % (database, key, one.name, seen[0], other.name,
                                                                    seen[1]))
    for member in (one, other):
        member.ask("SELECT", 0)
    return "".join(lines)
