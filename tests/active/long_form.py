"""The long form of chaos: clients write to all nodes at once, for a minute, while faults go on.

A plan has, besides what it is run with, a list of (second, step); steps are those of plan.py. Each node has a client of
its own, in a thread, that sends random commands, and counts: by transactions and by single commands. What it counts:

    counter, elements, list      in one EXEC: so these agree with each other, whatever is lost
    single, members, pushed      one command each

An element that was acknowledged is there once, one that was not at most once. What was acknowledged by a node before
its disk was wiped may be missing.

CROSSES are features that a plan may add: options of nodes, what happens beside the faults, how much may be compared.
"""
import os
import random
import shutil
import tempfile
import threading
import time

import certificates
import mesh as meshes
import picture as pictures
import plan as plans
from group import Wrong, wait_until
from harness import Lost
from mesh import Mesh, Node
from union import Union

READ_EACH_S = 2
FREED_S = 10
UNLIMITED = ["--auto-aof-rewrite-percentage", "0"]      # else operations would be in the base, which tells none
WATCHED = (b"s", b"l", b"h", b"t", b"z", b"x")
SMALL = ["--active-window-size", "1048576", "--active-tombstones-limit", "1048576", "--active-history-limit", "1mb"]
POLICIES = ("allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-ttl", "volatile-lru", "noeviction")


class Cross:
    """options: for node number. steps: what may happen beside the faults. exact: the union is what nodes must hold.
    counts: what was counted has to be exact."""

    def __init__(self, options=None, steps=(), exact=True, counts=True):
        self.options = options or (lambda number, choose: [])
        self.steps, self.exact, self.counts = steps, exact, counts


CROSSES = {
    "small": Cross(lambda number, choose: SMALL, exact=False, counts=False),
    "small-window": Cross(lambda number, choose: SMALL[:4], exact=False),
    "small-history": Cross(lambda number, choose: SMALL[4:], exact=False, counts=False),
    "evict": Cross(lambda number, choose: ["--maxmemory-policy", choose.choice(POLICIES)],
                   [lambda choose: ["evict", choose.choice((200000, 0, 0, -1))]], exact=False, counts=False),
    "rewrite": Cross(steps=[lambda choose: ["rewrite"]] * 2 + [lambda choose: ["save"]], exact=False),
    "replicas": Cross(),
    "masters": Cross(steps=[lambda choose: ["disconnect"], lambda choose: ["reconnect"]]),
    "no-forward": Cross(lambda number, choose: ["--multi-master-no-forward", "yes"]),
    "directives": Cross(steps=[lambda choose: ["config", *choose.choice((
        ("active-window-size", "1048576"), ("active-window-size", "268435456"), ("active-history-limit", "1000000"),
        ("active-history-limit", "1000000000"), ("active-tombstones-limit", "1048576"), ("active-peer-timeout", "1"),
        ("active-peer-timeout", "3600"), ("appendfsync", "everysec"), ("appendfsync", "always"), ("hz", "100"),
        ("hz", "1"), ("repl-timeout", "2"), ("repl-timeout", "60"), ("appendonly", "no"), ("appendonly", "yes"),
        ("multi-master-no-forward", "yes"), ("multi-master-no-forward", "no"), ("rdbcompression", "no"),
        ("hash-max-listpack-entries", "1"), ("hash-max-listpack-entries", "128"), ("activedefrag", "yes"),
        ("journal-memory-limit", "1mb"), ("replica-serve-stale-data", "yes")))]] * 3, exact=False, counts=False),
    "watch": Cross(),
    "tls": Cross(certificates.options_of_node),
}


def make(options, number):
    seed = "%d/%d" % (options.seed, number)
    choose = random.Random(seed)
    topology = options.topology or ("mesh", "ring", "chain")[number % 3]
    nodes = options.nodes or 5
    crosses = [name for name in options.cross.split(",") if name]
    soon = choose.random() < 0.3
    pairs = meshes.links_of(topology, nodes)
    planner = plans.Planner(seed, options.commands, nodes, pairs, "aof", soon, False)
    seconds = options.lasting
    faults, when = [], 1.0
    until = seconds - 1.0
    while when < until:
        faults += [(when, step) for step in planner.fault()]
        when += choose.expovariate(options.faults / seconds)
    for name in crosses:
        for step in CROSSES[name].steps:
            for _ in range(max(4, seconds // 3)):
                node = choose.randrange(nodes)
                what, *more = step(choose)
                at = choose.uniform(1, until)
                if what in ("disconnect", "reconnect"):
                    faults.append((at, [what, list(choose.choice(pairs))]))
                else:
                    faults.append((at, [what, node, *more]))
    if options.wipes:
        at = choose.uniform(0.2 * seconds, 0.8 * seconds)
        node = choose.randrange(nodes)
        faults += [(at, ["kill", node]), (at + 0.001, ["wipe", node]), (at + choose.uniform(0.2, 3), ["start", node])]
    faults.sort(key=lambda one: one[0])
    return {"form": "long", "seed": seed, "topology": topology, "nodes": nodes, "kinds": options.kinds.split(","),
            "files": options.files or "aof", "delay": choose.choice((0, 0.001)), "soon": soon, "seconds": seconds,
            "rate": options.rate, "cross": crosses, "steps": faults}


def about(plan):
    return "%s: %d nodes, %s, %s%s%s, %d faults in %g s" % (
        plan["seed"], plan["nodes"], plan["topology"], plan["files"], ", short deadlines" if plan["soon"] else "",
        "".join(", " + name for name in plan["cross"]), len(plan["steps"]), plan["seconds"])


class Client(threading.Thread):
    """Writes to one node, and knows what was acknowledged."""

    def __init__(self, node, plan, commands, over):
        super().__init__(daemon=True)
        self.node, self.over, self.plan = node, over, plan
        seed = "%s:%d" % (plan["seed"], node.index)
        self.planner = plans.Planner(seed, commands, plan["nodes"], [], "aof", plan["soon"])
        self.choose = random.Random("%s:%d:client" % (plan["seed"], node.index))
        self.connection = None
        self.number = 0
        self.issued, self.acknowledged = set(), set()           # elements, members
        self.may_be_lost = set()
        self.sent = 0
        self.problem = None

    def run(self):
        due = time.monotonic()
        try:
            while not self.over.is_set():
                try:
                    self.turn()
                except (Lost, OSError) as lost:
                    if "no reply in time" in str(lost):
                        self.problem = "%s does not answer" % self.node.name
                        return
                    self.close()
                    self.over.wait(0.02)
                due = max(due + 1 / self.plan["rate"], time.monotonic() - 1)
                self.over.wait(max(due - time.monotonic(), 0))
        except Exception as problem:        # a mistake of the test is to be seen
            self.problem = repr(problem)
        finally:
            self.close()

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def turn(self):
        if self.connection is None:
            self.connection = self.node.connect(90)
        draw = self.choose.random()
        if draw < 0.25:
            self.count(b"e", self.in_one())
        elif draw < 0.4:
            self.count(b"m", self.single())
        else:
            self.send(self.planner.some_commands(self.node.index))

    def send(self, commands):
        if not commands:
            return []
        self.sent += len(commands)
        return self.connection.exchange(b"".join(map(meshes.encode, commands)), len(commands))

    def element(self):
        self.number += 1
        return b"%d.%d" % (self.node.index, self.number)

    def in_one(self):
        element = self.element()
        return element, [[b"SELECT", b"%d" % plans.COUNTERS], [b"MULTI"], [b"INCRBY", b"counter", b"1"],
                         [b"SADD", b"elements", element], [b"RPUSH", b"list", element], [b"EXEC"], [b"SELECT", b"0"]]

    def single(self):
        element = self.element()
        return element, [[b"SELECT", b"%d" % plans.COUNTERS], [b"INCRBY", b"single", b"1"],
                         [b"SADD", b"members", element], [b"LPUSH", b"pushed", element], [b"SELECT", b"0"]]

    def count(self, what, element_and_commands):
        element, commands = element_and_commands
        self.issued.add(what + element)
        replies = self.send(commands)
        done = replies[5] if what == b"e" else replies[1:4]
        if what == b"e":
            done = done[1] if done[0] == "*" and done[1] is not None else []
        if done and all(reply[0] == ":" for reply in done):
            self.acknowledged.add(what + element)
        elif not any(reply[0] == ":" for reply in done):
            self.issued.discard(what + element)     # refused


class Cache(threading.Thread):
    """A client of one node that keeps values and is told when they change (CLIENT TRACKING), and one that watches."""

    def __init__(self, node, seed, over, broadcast):
        super().__init__(daemon=True)
        self.node, self.over, self.choose = node, over, random.Random(seed)
        self.broadcast = broadcast
        self.connection, self.values, self.problem = None, {}, None
        self.watched = self.kept = 0
        self.read_at = {}

    def run(self):
        while not self.over.is_set() and self.problem is None:
            try:
                self.look(b"%s%d" % (self.choose.choice(WATCHED), self.choose.randrange(5)))
            except (Lost, OSError):
                self.close()
                self.over.wait(0.02)
            except Exception as problem:        # a mistake of the test is to be seen
                self.problem = repr(problem)

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None
        self.values.clear()

    def command(self, *words):
        """The reply; pushes before it count."""
        self.connection.sock.sendall(meshes.encode(words))
        while True:
            reply = self.connection.exchange(b"", 1)[0]
            if reply[0] != ">":
                return reply
            kind, keys = reply[1][1]
            for key in list(self.values) if kind == "_" else [each[1] for each in keys]:
                self.values.pop(key, None)

    def look(self, key):
        if self.connection is None:
            self.connection = self.node.connect(90)
            self.command("HELLO", 3)
            self.command("CLIENT", "TRACKING", "ON", *(("BCAST",) if self.broadcast else ()))
        if self.choose.random() < 0.5:
            reply = self.command("DUMP", key)
            if reply[0] in "$_":
                self.values[key] = reply[1]
                self.read_at[key] = time.time()
            return
        self.command("WATCH", key)
        before = self.command("DUMP", key)
        self.over.wait(self.choose.choice((0, 0.001, 0.02)))
        self.command("MULTI")
        self.command("DUMP", key)
        after = self.command("EXEC")
        if after[0] != "*" or before[0] == "-":
            return
        self.watched += 1
        if after[1][0] != before:
            self.problem = "%s: EXEC was done though %r had changed: %r, now %r" % (
                self.node.name, key, before, after[1][0])

    def check(self, history):
        """The node is at rest."""
        self.join(30)
        if self.problem is None and self.connection is not None:
            self.command("PING")
            kept = dict(self.values)
            for key, value in sorted(kept.items()):
                now = self.command("DUMP", key)
                until = time.monotonic() + FREED_S      # what has expired is told of when it is freed
                while now[1] != value and key in self.values and time.monotonic() < until:
                    time.sleep(0.05)
                    self.command("PING")
                if now[1] != value and key in self.values:
                    self.problem = "%s%s: the cache was not told that %r has changed since %.3f: %r, now %r\n%s" % (
                        self.node.name, " (broadcast)" if self.broadcast else "", key, self.read_at[key], value,
                        now[1], "\n".join(line[:300] for line in history(key)))
            self.kept = len(kept)
        if self.problem:
            raise Wrong(self.problem)


class LongRunner:
    def __init__(self, options, kinds, plan, files):
        self.options, self.kinds, self.plan, self.commands = options, kinds, plan, options.commands
        self.files = files + UNLIMITED
        self.crosses = [CROSSES[name] for name in plan["cross"]]
        self.exact = all(cross.exact for cross in self.crosses) and plan["files"] == "aof"
        self.wiped, self.apart = [], set()
        self.replicas = []
        self.done = []

    def run(self):
        plan = self.plan
        choose = random.Random(plan["seed"])
        options = [self.files + [word for cross in self.crosses for word in cross.options(number, choose)]
                   for number in range(plan["nodes"])]
        with Mesh(self.kinds, ["ours"] * plan["nodes"], plan["topology"], lambda index: options[index],
                  self.options.threads, delay_s=plan["delay"]) as mesh, Union(mesh) as union:
            self.mesh, self.union = mesh, union
            mesh.settle(60)
            if "replicas" in plan["cross"]:
                self.replicas = [Node(self.kinds, kind, 50 + number, active=False)
                                 for number, kind in enumerate(("ours", "redis"))]
                for number, replica in enumerate(self.replicas):
                    replica.ask("REPLICAOF", "127.0.0.1", mesh.nodes[number].port)
            self.over = threading.Event()
            self.clients = [Client(node, plan, self.commands, self.over) for node in mesh.nodes]
            try:
                self.caches = [Cache(node, "%s:%d" % (plan["seed"], node.index), self.over, node.index % 2)
                               for node in mesh.nodes if "watch" in plan["cross"]]
                for client in self.clients + self.caches:
                    client.start()
                self.go()
                return self.finish()
            except (Wrong, Lost, OSError):
                self.keep_logs()
                raise
            finally:
                self.over.set()
                for node in mesh.nodes:
                    node.resume()
                for replica in self.replicas:
                    replica.stop()

    def go(self):
        begun = time.monotonic()
        read_at = begun
        for when, step in self.plan["steps"]:
            while time.monotonic() < begun + when:
                time.sleep(max(0, min(0.05, begun + when - time.monotonic())))
                self.look()
                if time.monotonic() > read_at:
                    self.read()
                    read_at = time.monotonic() + READ_EACH_S
            self.done.append((time.time(), step))
            getattr(self, "do_" + step[0])(*step[1:])
        while time.monotonic() < begun + self.plan["seconds"]:
            time.sleep(0.05)
            self.look()
        self.ran = time.monotonic() - begun

    def keep_logs(self):
        folder = tempfile.mkdtemp(prefix="chaos-logs-")
        for node in self.mesh.nodes:
            shutil.copy(node.log_path(), os.path.join(folder, "node%d" % node.index))
        with open(os.path.join(folder, "steps"), "w") as out:
            out.writelines("%.3f %s\n" % line for line in self.done)
        print("  logs: %s" % folder)

    def look(self):
        for client in self.clients:
            if client.problem:
                raise Wrong("%s\n%s" % (client.problem, client.node.log(2000)))
        for node in self.mesh.nodes:
            if node.process.poll() not in (None, 0, -9):
                raise Wrong("%s has ended with %s\n%s" % (node.name, node.process.returncode, node.log(4000)))

    def read(self):
        if not self.exact:
            return
        for node in self.mesh.nodes:
            if node.process.poll() is None and not node.stopped:
                try:
                    self.union.read([node])
                except Wrong as problem:
                    if "LOADING" not in str(problem):
                        raise

    def finish(self):
        mesh = self.mesh
        self.over.set()
        for node in mesh.nodes:
            node.resume()
            if node.process.poll() is not None:
                node.start()
        for client in self.clients:
            client.join(30)
        self.look()
        for pair in sorted(self.apart):
            mesh.connect(*pair)
        if "evict" in self.plan["cross"]:
            for node in mesh.nodes:
                node.ask_when_loaded(60, "CONFIG", "SET", "maxmemory", 0)
        mesh.heal()
        for name in self.wiped:
            for node in mesh.nodes:
                node.call("KEYDB.ACTIVE", "FORGET", name, "FORCE")
        if self.plan["soon"]:
            time.sleep(plans.SOON_MS / 1000)
        took, seen = mesh.settle(self.options.patience)
        sent = sum(client.sent for client in self.clients)
        told = "%d keys, %d commands in %.0f s, %d counted, equal after %.1f s" % (
            len(seen), sent, self.ran, sum(len(client.acknowledged) for client in self.clients), took)
        self.check_counted()
        self.check_replicas()
        for cache in self.caches:
            cache.check(self.union.read().history)
        if self.caches:
            told += ", %d watched and %d kept" % (
                sum(cache.watched for cache in self.caches), sum(cache.kept for cache in self.caches))
        if not self.exact:
            return told
        self.union.read()
        lost = self.union.forget_what_died()
        if lost and not self.wiped:
            raise Wrong("%d entries are lost, though all nodes have append-only files: %r" % (len(lost), lost[:3]))
        for kind in ("ours",) if self.plan["soon"] else ("redis", "ours"):
            self.union.check(kind)
        return "%s; %d operations%s" % (told, self.union.count(),
                                        ", %d entries lost with a disk" % len(lost) if lost else "")

    def check_counted(self):
        if not all(cross.counts for cross in self.crosses) or self.plan["files"] != "aof":
            return
        node = self.mesh.nodes[0]
        node.ask("SELECT", plans.COUNTERS)
        found = {name: node.ask(*words) for name, words in {
            "counter": ("GET", "counter"), "elements": ("SMEMBERS", "elements"), "list": ("LRANGE", "list", 0, -1),
            "single": ("GET", "single"), "members": ("SMEMBERS", "members"),
            "pushed": ("LRANGE", "pushed", 0, -1)}.items()}
        node.ask("SELECT", 0)
        for what, counter, members, pushed in (
                (b"e", "counter", "elements", "list"), (b"m", "single", "members", "pushed")):
            acknowledged = set().union(*(client.acknowledged for client in self.clients))
            issued = set().union(*(client.issued for client in self.clients))
            may_be_lost = set().union(*(client.may_be_lost for client in self.clients))
            there = {what + each[1] for each in found[members]}
            in_list = [what + each[1] for each in found[pushed]]
            must = {each for each in acknowledged - may_be_lost if each[:1] == what}
            problems = []
            for name, have in ((members, there), (pushed, set(in_list))):
                if must - have:
                    problems.append("%s lacks %d that were acknowledged, as %s" % (
                        name, len(must - have), sorted(must - have)[:3]))
                if have - issued:
                    problems.append("%s has what nobody sent: %s" % (name, sorted(have - issued)[:3]))
            if len(set(in_list)) != len(in_list):
                problems.append("%s has some twice" % pushed)
            value = int(found[counter] or 0)
            if what == b"e" and not value == len(there) == len(in_list):
                problems.append("%s, %s and %s are %d, %d, %d" % (
                    counter, members, pushed, value, len(there), len(in_list)))
            most = len([each for each in issued if each[:1] == what])
            if not len(must) <= value <= most:
                problems.append("%s is %d; %d ... %d were sent" % (counter, value, len(must), most))
            if problems:
                raise Wrong("; ".join(problems) + self.about_missing(sorted(must - there)))

    def about_missing(self, elements):
        """For people: what is known of the first ones."""
        self.union.read()
        lines = []
        for element in elements[:3]:
            for entry in self.union.ordered():
                if any(words[-1] == element[1:] for _, words in entry.operations):
                    lines.append("\n  %r\n    seen by %r, which are at %r" % (
                        entry, entry.seen_by, [node.starts for node in self.mesh.nodes]))
        return "".join(lines)

    def check_replicas(self):
        for number, replica in enumerate(self.replicas):
            node = self.mesh.nodes[number]
            seen = []

            def report():
                seen[:] = [pictures.take(each, replica.kind == "ours") for each in (node, replica)]
                return [each for each in pictures.compare([node, replica], seen) if not is_unknown(each)]

            def is_unknown(difference):
                """redis-server knows no deadlines of members."""
                return replica.kind == "redis" and len({text for _, _, text in difference[1]}) == 1

            wait_until(lambda: not report(), 20, lambda: "the replica of %s is equal: %s\n%s" % (
                node.name, pictures.readable(pictures.compare([node, replica], seen)), replica.log(800)))

    # ---- steps

    def running(self, index):
        node = self.mesh.nodes[index]
        return node if node.process.poll() is None and not node.stopped else None

    def link(self, pair):
        return self.mesh.links[tuple(pair)]

    def do_cut(self, pair):
        self.link(pair).take_down()

    def do_freeze(self, pair):
        self.link(pair).stall()

    def do_flicker(self, pair):
        self.link(pair).cut()

    def do_slow(self, pair, rate):
        self.link(pair).throttle(rate)

    def do_trouble(self, pair, seed, most):
        self.link(pair).seed(seed, 100, most)

    def do_heal(self, pair):
        link = self.link(pair)
        link.put_up()
        link.resume()
        link.throttle(0)
        link.seed(0)

    def do_pause(self, index):
        if self.running(index):
            self.mesh.nodes[index].pause()

    def do_resume(self, index):
        self.mesh.nodes[index].resume()

    def do_kill(self, index):
        node = self.mesh.nodes[index]
        if node.process.poll() is None:
            node.kill()

    def do_start(self, index):
        node = self.mesh.nodes[index]
        if node.process.poll() is not None:
            node.start()

    def do_wipe(self, index):
        node = self.mesh.nodes[index]
        if node.process.poll() is not None:
            client = self.clients[index]
            client.may_be_lost |= client.acknowledged
            self.wiped.append(node.identity())
            node.wipe()

    def do_restart(self, index):
        node = self.running(index)
        if node:
            node.shut_down("SAVE" if self.plan["files"] != "none" else "NOSAVE")
            node.start()

    def do_save(self, index):
        if self.running(index):
            self.mesh.nodes[index].call("BGSAVE")

    def do_rewrite(self, index):
        if self.running(index) and "rewrite" in self.plan["cross"]:
            self.mesh.nodes[index].call("BGREWRITEAOF")

    def do_evict(self, index, room):
        node = self.running(index)
        if node:
            room = int(node.info("memory")["used_memory"]) + room if room >= 0 else 0
            node.call("CONFIG", "SET", "maxmemory", room)

    def do_config(self, index, name, value):
        if self.running(index):
            self.mesh.nodes[index].call("CONFIG", "SET", name, value)

    def do_disconnect(self, pair):
        pair = tuple(pair)
        if self.running(pair[0]) and pair not in self.apart:
            self.mesh.disconnect(*pair)
            self.apart.add(pair)

    def do_reconnect(self, pair):
        pair = tuple(pair)
        if self.running(pair[0]) and pair in self.apart:
            self.mesh.connect(*pair)
            self.apart.discard(pair)
