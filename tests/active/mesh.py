"""Nodes that replicate each other, in any topology, with a proxy in each link.

A Mesh starts nodes of our server or of KeyDB, and connects them: the link (i, j) is the one by which node i gets what
node j has. All connections go over loopback. What is started here is ended here, by its own process id.

    with Mesh(Kinds(options), ["ours", "ours"]) as mesh:
        a, b = mesh.nodes
        a.ask("SET", "key", "1")
        mesh.settle()           # all nodes have everything and are equal, or Wrong tells what differs
        mesh.cut()
        ...
        mesh.heal()
        mesh.settle()

Markers say when everything has arrived: each node writes a key of its own, and everybody has to see all of them.
"""
import os
import shutil
import signal
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
for folder in (os.path.join(TOP, "tests", "fault"), os.path.join(TOP, "tests", "replication"),
               os.path.join(TOP, "tests", "differential"), HERE):
    if folder in sys.path:      # ours come first: there is a chaos.py in both
        sys.path.remove(folder)
    sys.path.insert(0, folder)

import disk      # noqa: E402
import picture as pictures      # noqa: E402
from group import Wrong, wait_until     # noqa: E402
from harness import Lost, Server, encode        # noqa: E402
from proxy import Forwarder, Proxy      # noqa: E402

MARK = b"mark of node %d"
# What every kind of server is started with.
OPTIONS = {"ours": ["--enable-debug-command", "yes", "--rdb-version", "10", "--repl-diskless-sync-delay", "0"],
           "keydb": ["--repl-diskless-sync-delay", "0", "--server-threads", "2", "--hz", "500"],
           "redis": ["--enable-debug-command", "yes"]}
ACTIVE = ["--active-replica", "yes", "--multi-master", "yes"]


class Kinds:
    """Which programs there are: ours, keydb (6.3.4), redis (the oracle)."""

    def __init__(self, server, oracle, keydb=None):
        keydb = keydb or os.environ.get("KEYDB_ORACLE", "")
        self.binaries = {"ours": server, "redis": oracle, "keydb": keydb if os.path.exists(keydb) else None}

    def binary(self, kind):
        return self.binaries[kind]

    def has(self, kind):
        return self.binaries.get(kind) is not None


def speaks_active(kinds, kind):
    """None, or why nodes of this kind cannot be active."""
    if not kinds.has(kind):
        return "there is no server of KeyDB (KEYDB_ORACLE)"
    return None


class Node(Server):
    """ahead_s: how far its clock is ahead of the machine's, which set_clock changes; None: it is the machine's."""

    def __init__(self, kinds, kind, index, options=(), threads=None, active=True, ahead_s=None):
        self.kind, self.index, self.kinds, self.ahead_s = kind, index, kinds, ahead_s
        self.name = "node %d (%s)" % (index, kind)
        self.active = active
        self.own = None
        self.database = 0       # of `own`
        self.stopped = False
        self.starts = 0         # how often it was started: readers of its operations are new each time
        self.masters = []       # ports
        words = [*OPTIONS[kind], *(ACTIVE if active else []), *self.method(), *map(str, options)]
        if threads is not None and kind == "ours":
            words += ["--server-threads", str(threads)]
        super().__init__(kinds.binary(kind), words)

    def method(self):
        """Both ways to write files and states, in every mesh."""
        return ["--snapshot-method", ("threads", "fork")[self.index % 2]] if self.kind == "ours" else []

    # ---- life

    def start(self, ready=True):
        options = self.options
        if self.ahead_s is not None and not self.environment:
            self.set_clock(self.ahead_s)
            self.environment = disk.environment_of(self.binary, KEYDB_CLOCK=os.path.join(self.folder, "clock"))
        # "save" is empty as harness.py starts it; masters come last, as active-replica has to stand before them.
        self.options = options + [word for port in self.masters for word in ("--replicaof", "127.0.0.1", str(port))]
        try:
            super().start(False)
        finally:
            self.options = options
        self.starts += 1
        if ready:
            self.wait_ready(60)
            if self.kind == "ours" and self.active:
                self.read_operations()

    def link_port(self):
        """Where others receive from it: over TLS, if it is given a port for that."""
        words = self.options
        return int(words[words.index("--tls-port") + 1]) if "--tls-port" in words else self.port

    def read_operations(self):
        """From here on, and those that the append-only file brought."""
        reply = self.call("DEBUG", "OPERATIONS", "START", "ALL")
        if reply[0] == "-" and b"already" not in reply[1]:
            raise Wrong("%s: DEBUG OPERATIONS START: %s" % (self.name, reply[1]))

    def kill(self, how=signal.SIGKILL):
        """Its folder stays, so that start() continues with it."""
        self.forget()
        self.resume()
        self.process.send_signal(how)
        self.process.wait(60)
        if how != signal.SIGKILL and self.process.returncode != 0:
            raise Wrong("%s ended with %d\n%s" % (self.name, self.process.returncode, self.log()))

    def shut_down(self, how="NOSAVE"):
        try:
            self.call("SHUTDOWN", how)
        except (Lost, OSError):
            pass
        self.forget()
        self.process.wait(60)
        if self.process.returncode != 0:
            raise Wrong("%s ended with %d after SHUTDOWN\n%s" % (self.name, self.process.returncode, self.log()))

    def identity(self):
        """The name of a node, which may have ended."""
        with open(os.path.join(self.folder, "keydb-identity")) as file:
            return next(line.split()[1] for line in file if line.startswith("name "))

    def wipe(self):
        """A new disk, for a node that does not run."""
        for name in os.listdir(self.folder):
            if name not in ("log", "clock"):
                path = os.path.join(self.folder, name)
                (shutil.rmtree if os.path.isdir(path) else os.remove)(path)

    def set_clock(self, ahead_s):
        """Its wall clock is ahead of the machine's from here on. Of nodes of a mesh with clocks."""
        with open(os.path.join(self.folder, "clock"), "r+b" if self.environment else "wb") as file:
            file.write(struct.pack("=q", int(ahead_s * 1000)))

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
            self.process.kill()     # nothing of it is of interest any more
            self.process.wait(20)
        super().stop(keep)

    # ---- questions

    def forget(self):
        if self.own:
            self.own.close()
            self.own = None

    def connection(self):
        if self.own is None:
            self.own = self.connect(60)
            self.database = 0
        return self.own

    def again(self, act):
        """A connection that was lost since the last call is opened anew."""
        for attempt in (0, 1):
            try:
                return act(self.connection())
            except (Lost, OSError):
                self.forget()
                if attempt:
                    raise
        return None

    def call(self, *words):
        """The reply, an error too."""
        return self.again(lambda connection: connection.command(*words))

    def ask(self, *words):
        """As call, for what must not be an error; gives the payload."""
        reply = self.call(*words)
        if reply[0] == "-":
            raise Wrong("%s: %s answers %s" % (self.name, show(words), reply[1].decode(errors="replace")))
        return reply[1]

    def ask_when_loaded(self, seconds, *words):
        """As ask, when the state of another node is not being loaded any more."""
        reply = [None]

        def has_replied():
            reply[0] = self.call(*words)
            return reply[0][0] != "-" or not reply[0][1].startswith(b"LOADING")

        wait_until(has_replied, seconds, lambda: "%s has loaded\n%s" % (self.name, self.log(1500)))
        if reply[0][0] == "-":
            raise Wrong("%s: %s answers %s" % (self.name, show(words), reply[0][1].decode(errors="replace")))
        return reply[0][1]

    def calls(self, commands):
        """Many commands in a pipeline; the replies, errors too. Not repeated when the connection is lost."""
        if not commands:
            return []
        try:
            return self.connection().exchange(b"".join(map(encode, commands)), len(commands))
        except (Lost, OSError):
            self.forget()
            raise

    def info(self, section):
        fields = {}
        for line in self.ask("INFO", section).decode(errors="replace").split("\r\n"):
            name, colon, value = line.partition(":")
            if colon:
                fields[name] = value
        return fields

    def debug_active(self, field):
        lines = self.ask("DEBUG", "ACTIVE").decode().splitlines()
        return next(int(line.split(":", 1)[1]) for line in lines if line.startswith(field + ":"))

    def databases(self):
        return sorted(int(name[2:]) for name in self.info("keyspace") if name.startswith("db"))

    def complaint(self):
        """What sanitizers and crashes have left in the log, or nothing."""
        log = self.log(1 << 24)
        for sign in ("ERROR: AddressSanitizer", "WARNING: ThreadSanitizer", "runtime error:", "LeakSanitizer",
                     "BUG REPORT START", "Assertion", "assertion"):
            at = log.find(sign)
            if at >= 0:
                return "%s: %s" % (self.name, log[max(0, at - 300):at + 2500])
        if self.process.poll() not in (None, 0, -signal.SIGKILL):
            return "%s ended with %s\n%s" % (self.name, self.process.returncode, log[-2500:])
        return None


def show(words):
    return b" ".join(word if isinstance(word, bytes) else str(word).encode() for word in words)[:200].decode(
        errors="backslashreplace")


def links_of(topology, count):
    """Pairs (receiver, sender)."""
    if topology in ("mesh", "pair"):
        return [(i, j) for i in range(count) for j in range(count) if i != j]
    if topology == "chain":
        return [(i, j) for i in range(count) for j in range(count) if abs(i - j) == 1]
    if topology == "ring":
        return sorted({(i, (i + step) % count) for i in range(count) for step in (1, -1)} -
                      {(i, i) for i in range(count)})
    if topology == "one-way ring":
        return [((i + 1) % count, i) for i in range(count)]
    if topology == "star":
        return [pair for i in range(1, count) for pair in ((0, i), (i, 0))]
    if topology == "none":
        return []
    raise ValueError(topology)


TOPOLOGIES = ("mesh", "ring", "chain", "star", "one-way ring")


class Mesh:
    """separate: proxies are processes of their own, for tests with much traffic. clocks: how far each node's clock is
    ahead, in seconds."""

    def __init__(self, kinds, node_kinds, topology="mesh", options=(), threads=None, separate=False, delay_s=0,
                 connected=True, clocks=()):
        self.kinds, self.topology, self.separate = kinds, topology, separate
        self.threads, self.options, self.delay_s, self.clocks = threads, options, delay_s, clocks
        self.nodes, self.links, self.marks = [], {}, 0
        self.pairs = links_of(topology, len(node_kinds))
        self.began = time.monotonic()
        try:
            for kind in node_kinds:
                self.add(kind)
            for pair in self.pairs:
                self.make_link(*pair)
            if connected:
                for pair in self.pairs:
                    self.connect(*pair)
        except BaseException:
            self.stop()
            raise

    def add(self, kind, options=None):
        options = self.options if options is None else options
        options = options(len(self.nodes)) if callable(options) else options
        ahead_s = self.clocks[len(self.nodes)] if self.clocks else None
        self.nodes.append(Node(self.kinds, kind, len(self.nodes), options, self.threads, ahead_s=ahead_s))
        return self.nodes[-1]

    def make_link(self, receiver, sender):
        link = (Proxy if self.separate else Forwarder)(self.nodes[sender].link_port())
        if self.delay_s:
            link.delay(self.delay_s)
        self.links[receiver, sender] = link
        return link

    def connect(self, receiver, sender):
        """The receiver gets from the sender from here on, also when it is started again."""
        if (receiver, sender) not in self.links:
            self.make_link(receiver, sender)
            self.pairs.append((receiver, sender))
        port = self.links[receiver, sender].port
        node = self.nodes[receiver]
        if port not in node.masters:
            node.masters.append(port)
            node.ask("REPLICAOF", "127.0.0.1", port)

    def disconnect(self, receiver, sender):
        port = self.links[receiver, sender].port
        self.nodes[receiver].masters.remove(port)
        self.nodes[receiver].ask("REPLICAOF", "REMOVE", "127.0.0.1", port)

    # ---- links

    def chosen(self, pairs):
        """All links, or those between some nodes (in both directions)."""
        return [self.links[pair] for pair in self.links if not pairs or pair in pairs or pair[::-1] in pairs]

    def cut(self, *pairs):
        """Connections are reset, and new ones, too."""
        for link in self.chosen(pairs):
            link.take_down()

    def flicker(self, *pairs):
        """Connections are reset once."""
        for link in self.chosen(pairs):
            link.cut()

    def freeze(self, *pairs):
        """Connections stay, nothing passes."""
        for link in self.chosen(pairs):
            link.stall()

    def isolate(self, index):
        self.cut(*[(index, other) for other in range(len(self.nodes)) if other != index])

    def heal(self, *pairs):
        for link in self.chosen(pairs):
            link.put_up()
            link.resume()
            link.throttle(0)
            link.seed(0)
        if not pairs:
            for node in self.nodes:
                node.resume()

    def bytes_received(self, index):
        return sum(link.stats()["down_bytes"] for (receiver, _), link in self.links.items() if receiver == index)

    # ---- the end

    def running(self):
        return [node for node in self.nodes if node.process and node.process.poll() is None]

    def wait_for_all(self, seconds=30, nodes=None):
        """Everybody has what everybody has written before."""
        nodes = nodes or self.running()
        self.marks += 1
        keys = [MARK % node.index for node in nodes]
        for node, key in zip(nodes, keys):
            node.ask_when_loaded(seconds, "SET", key, self.marks)
        mark = str(self.marks).encode()
        begun = time.monotonic()

        def missing():
            for node, key in zip(nodes, keys): # a flush by a clock that is ahead is behind it
                if node.ask_when_loaded(seconds, "GET", key) != mark:
                    node.ask_when_loaded(seconds, "SET", key, self.marks)
            return ["%s lacks that of %s" % (node.name, nodes[number].name) for node in nodes
                    for number, (_, value) in enumerate(node.ask_when_loaded(seconds, "MGET", *keys))
                    if value != mark]

        wait_until(lambda: not missing(), seconds, lambda: "everybody has everything: %s\n%s" % (
            "; ".join(missing()), "\n".join("-- " + node.name + "\n" + node.log(1500) for node in nodes)))
        return time.monotonic() - begun

    def settle(self, seconds=30, nodes=None, versions=True):
        """Waits until all have everything and are equal. Gives how long that took, and the picture of the data."""
        nodes = nodes or self.running()
        begun = time.monotonic()
        try:
            self.wait_for_all(seconds, nodes)
        except (Lost, Wrong):
            self.look_for_complaints()
            raise
        report, seen = None, None
        while True:
            try:
                seen = [pictures.take(node) for node in nodes]
                report = pictures.compare(nodes, seen)
            except (Lost, OSError) as lost:
                self.look_for_complaints()
                report = ["lost: %s" % lost]
            took = time.monotonic() - begun
            if not report:
                break
            if took > seconds:
                raise Wrong("not equal within %g s: %s" % (seconds, pictures.readable(report)))
            time.sleep(0.05)
        self.look_for_complaints()
        return took, seen[0]

    def look_for_complaints(self):
        for node in self.nodes:
            complaint = node.complaint()
            if complaint:
                raise Wrong(complaint)

    def stop(self):
        for link in self.links.values():
            link.close()
        for node in reversed(self.nodes):
            node.stop()

    def __enter__(self):
        return self

    def __exit__(self, kind, problem, _):
        """Where a node has ended by itself, that is the problem."""
        try:
            if isinstance(problem, (Lost, OSError)):
                self.look_for_complaints()
        finally:
            self.stop()
