#!/usr/bin/env python3
"""Chaos among active nodes: random commands of all types on random nodes, while links are cut, frozen and slowed, nodes
stopped, killed and started again, one disk wiped. Behind each round all links are healed, and within a time all nodes
have to be equal, and hold what one server holds that does all operations in their order (union.py).

    chaos.py --server BIN --oracle BIN [--keydb BIN] [--kinds ours,keydb] [--rounds N] [--seconds N] [--seed N]
             [--first N] [--steps N] [--threads N] [--patience SECONDS] [--shrink SECONDS] [--replay FILE]
             [--form long] [--lasting SECONDS] [--faults N] [--rate N] [--cross NAME,...] [--topology NAME] [--wipes 0]

Rounds differ in the number of nodes, topology, kind of files, delays. A round that fails is run again with ever fewer
steps (--shrink, 0: not); the shortest plan that still fails is kept in a file, for --replay. A round is repeated with
its --seed and --first. The last line counts rounds.

In the long form (long_form.py) five nodes in a mesh, a ring or a chain are written to by a client each, at once, for a
minute, with some 200 faults and one wiped disk; what was acknowledged is counted. --cross adds features.
"""
import argparse
import os
import random
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import mesh as meshes       # noqa: E402 (first: it tells where the others are)
import facts        # noqa: E402
import long_form    # noqa: E402
import plan as plans        # noqa: E402
from group import Wrong     # noqa: E402
from harness import Lost, Server        # noqa: E402
from mesh import Kinds, Mesh, links_of, show     # noqa: E402
from union import Union     # noqa: E402

FILES = {"aof": ["--appendonly", "yes", "--appendfsync", "always"],
         "aof-everysec": ["--appendonly", "yes", "--appendfsync", "everysec"],
         "rdb": [], "none": []}
READ_EACH = 200     # steps, so that the journal does not keep all


class Runner:
    """Runs a plan on a mesh of its own."""

    def __init__(self, options, kinds, plan):
        self.options, self.kinds, self.plan = options, kinds, plan
        self.counted = {"counter": 0, "elements": 0}
        self.unsure = False         # whether what was counted could be lost
        self.wiped = []             # names of nodes that never come back
        self.did = {}

    def run(self):
        plan = self.plan
        node_kinds = [plan["kinds"][index % len(plan["kinds"])] for index in range(plan["nodes"])]
        with Mesh(self.kinds, node_kinds, plan["topology"], FILES[plan["files"]], self.options.threads,
                  delay_s=plan["delay"]) as mesh:
            self.mesh = mesh
            with Union(mesh) as union:
                self.union = union
                mesh.settle(40)
                for number, step in enumerate(plan["steps"]):
                    self.did[step[0]] = self.did.get(step[0], 0) + 1
                    getattr(self, "do_" + step[0])(*step[1:])
                    if number % READ_EACH == READ_EACH - 1:
                        self.read()
                return self.finish(mesh, union)

    def finish(self, mesh, union):
        for node in mesh.nodes:
            node.resume()
            if node.process.poll() is not None:
                node.start()
        mesh.heal()
        self.forget_wiped()
        if self.plan["soon"]:
            time.sleep(plans.SOON_MS / 1000)    # else keys would end between two looks at them
        took, seen = mesh.settle(self.options.patience)
        union.read()
        lost = union.forget_what_died()
        has_aof, was_ended = self.plan["files"].startswith("aof"), bool({"kill", "restart"} & set(self.did))
        # What was before the base is in no history of a node that was started again: it gave it as a state.
        may_cross = was_ended and (not has_aof or lost and "rewrite" in self.did)
        if lost and has_aof and not self.wiped and not may_cross:
            raise Wrong("%d entries are lost, though all nodes have append-only files: %r" % (len(lost), lost[:3]))
        self.check_counted(mesh, lost and not (has_aof and may_cross))
        compared = 0
        if may_cross:
            return "%d keys, equal after %.1f s; a state may have crossed, so nobody tells all operations" % (
                len(seen), took)
        for kind in ("ours",) if self.plan["soon"] else ("redis", "ours"):
            if kind == "ours" and "keydb" in self.plan["kinds"]:
                continue
            compared += union.check(kind)[0]
        return "%d keys, %d operations, equal after %.1f s%s" % (
            len(seen), union.count(), took, ", %d entries lost with their disk" % len(lost) if lost else "")

    def forget_wiped(self):
        """As who has lost a disk does: until then, or active-peer-timeout, the others wait for what it may have had."""
        for name in self.wiped:
            for node in self.mesh.nodes:
                node.call("KEYDB.ACTIVE", "FORGET", name, "FORCE")      # an error where nobody knows it

    def check_counted(self, mesh, lost):
        if lost or self.unsure:
            return
        node = mesh.nodes[0]
        node.ask("SELECT", plans.COUNTERS)
        counter, elements, length = (node.ask(*words) for words in (
            ["GET", "counter"], ["SCARD", "elements"], ["LLEN", "list"]))
        node.ask("SELECT", 0)
        found = [int(counter or 0), int(elements), int(length)]
        if found != [self.counted["counter"], self.counted["elements"], self.counted["counter"]]:
            raise Wrong("counter, elements and list are %s; acknowledged were %s" % (found, self.counted))

    def read(self):
        self.union.read([node for node in self.mesh.running() if not node.stopped and self.answers(node)])

    def answers(self, node):
        try:
            return node.call("PING") == ("+", b"PONG")
        except (Lost, OSError):
            return False

    # ---- steps

    def node(self, index):
        node = self.mesh.nodes[index]
        return node if node.process.poll() is None and not node.stopped else None

    def do_do(self, index, commands):
        node = self.node(index)
        if node is None or not commands:
            return
        try:
            replies = node.calls(commands)
        except (Lost, OSError) as problem:
            if "no reply in time" in str(problem):
                raise Wrong("%s does not answer one of %s" % (node.name, "; ".join(map(show, commands)))) from None
            if node.process.poll() is not None:
                raise Wrong("%s has ended with %s behind one of %s\n%s" % (
                    node.name, node.process.returncode, "; ".join(map(show, commands)), node.log(3000))) from None
            self.unsure = True
            return
        if commands[0] == [b"SELECT", b"%d" % plans.COUNTERS] and len(commands) == 6:
            if replies[1][0] == ":":
                self.counted["counter"] += 1
                self.counted["elements"] += 1

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
        if self.node(index):
            self.mesh.nodes[index].pause()

    def do_resume(self, index):
        self.mesh.nodes[index].resume()

    def do_kill(self, index):
        node = self.mesh.nodes[index]
        if node.process.poll() is None:
            node.kill()
            if not self.plan["files"].startswith("aof"):
                self.unsure = True

    def do_start(self, index):
        node = self.mesh.nodes[index]
        if node.process.poll() is not None:
            node.start()

    def do_wipe(self, index):
        node = self.mesh.nodes[index]
        if node.process.poll() is not None:
            self.wiped.append(node.identity())
            node.wipe()
            self.unsure = True

    def do_restart(self, index):
        node = self.node(index)
        if node is None:
            return
        node.shut_down("NOSAVE" if self.plan["files"] == "none" else "SAVE")
        if self.plan["files"] == "none":
            self.unsure = True
        node.start()

    def do_save(self, index):
        if self.node(index):
            self.mesh.nodes[index].call("BGSAVE")

    def do_rewrite(self, index):
        if self.node(index):
            self.mesh.nodes[index].call("BGREWRITEAOF")

    def do_sleep(self, ms):
        time.sleep(ms / 1000)


def make(options, number):
    seed = "%d/%d" % (options.seed, number)
    choose = random.Random(seed)
    topology = meshes.TOPOLOGIES[number % len(meshes.TOPOLOGIES)]
    nodes = options.nodes or choose.choice((2, 3, 3, 4, 5))
    files = options.files or choose.choice(("aof", "aof-everysec", "rdb", "none"))
    soon = choose.random() < 0.3
    wipes = choose.random() < 0.3
    planner = plans.Planner(seed, options.commands, nodes, links_of(topology, nodes), files, soon, wipes)
    return {"seed": seed, "topology": topology, "nodes": nodes, "kinds": options.kinds.split(","), "files": files,
            "delay": choose.choice((0, 0, 0.001, 0.01)), "soon": soon, "steps": planner.steps(options.steps)}


def about(plan):
    if plan.get("form") == "long":
        return long_form.about(plan)
    return "%s: %d nodes (%s), %s, %s, %d ms%s, %d steps" % (
        plan["seed"], plan["nodes"], ",".join(plan["kinds"]), plan["topology"], plan["files"], 1000 * plan["delay"],
        ", short deadlines" if plan["soon"] else "", len(plan["steps"]))


def attempt(options, kinds, plan):
    """What went wrong, or nothing, and what to tell."""
    if plan.get("form") == "long":
        runner = long_form.LongRunner(options, kinds, plan, FILES[plan["files"]])
    else:
        runner = Runner(options, kinds, plan)
    try:
        return None, runner.run()
    except (Wrong, Lost, OSError) as problem:
        return "%s: %s" % (type(problem).__name__, problem), None


def shrink(options, kinds, plan, problem):
    """Fewer steps, then fewer commands, as long as it fails, within the time."""
    deadline = time.monotonic() + options.shrink
    runs = 0

    def fails(steps):
        nonlocal runs
        runs += 1
        return attempt(options, kinds, dict(plan, steps=steps))[0]

    def fewer(items):
        """Delta debugging."""
        nonlocal problem
        pieces = 2
        while len(items) > 1 and time.monotonic() < deadline:
            size = max(1, len(items) // pieces)
            for begin in range(0, len(items), size):
                left = items[:begin] + items[begin + size:]
                found = fails(left)
                if found:
                    items, problem, pieces = left, found, max(2, pieces - 1)
                    break
                if time.monotonic() > deadline:
                    break
            else:
                if size == 1:
                    break
                pieces = min(len(items), pieces * 2)
        return items

    steps = plan["steps"]
    found = fails(steps)
    if not found:
        print("  it does not fail again, so it is not made shorter")
        return plan, problem
    problem = found
    steps = fewer(steps)
    flat = []
    for step in steps:
        whole = step[0] != "do" or any(words[0] in (b"MULTI", b"SELECT") for words in step[2])
        flat += [step] if whole else [["do", step[1], [words]] for words in step[2]]
    if len(flat) > len(steps) and fails(flat):
        steps = fewer(flat)
    print("  %d runs: %d steps are left" % (runs, len(steps)))
    return dict(plan, steps=steps), problem


def tell(plan, problem):
    path = os.path.join(tempfile.gettempdir(), "chaos-%s-%d.json" % (plan["seed"].replace("/", "-"), os.getpid()))
    plans.dump(plan, path)
    print("FAILED  %s\n  %s\n  plan: %s" % (about(plan), problem[:6000], path))
    for step in plan["steps"][:60] if plan.get("form") != "long" else ():
        print("    %s" % (" ".join(map(str, step)) if step[0] != "do" else "node %d: %s" % (
            step[1], "; ".join(map(show, step[2]))[:300])))
    sys.stdout.flush()


def rounds(options, kinds):
    passed = failed = 0
    until = time.monotonic() + options.seconds if options.seconds else None
    for number in range(options.first, options.first + options.rounds):
        if until and time.monotonic() > until:
            break
        plan = (make if options.form == "short" else long_form.make)(options, number)
        begun = time.monotonic()
        problem, told = attempt(options, kinds, plan)
        if not problem:
            passed += 1
            print("ok      %s: %s (%.1f s)" % (about(plan), told, time.monotonic() - begun), flush=True)
            continue
        failed += 1
        print("failed  %s: %s" % (about(plan), problem.split("\n")[0][:200]), flush=True)
        if options.shrink and options.form == "short":
            plan, problem = shrink(options, kinds, plan, problem)
        tell(plan, problem)
        if failed >= options.most_failures:
            break
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--keydb")
    parser.add_argument("--kinds", default="ours")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--files", choices=list(FILES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--patience", type=float, default=30,
                        help="seconds; a ring of one-way links may wait for ten of them before it goes on")
    parser.add_argument("--shrink", type=float, default=0)
    parser.add_argument("--most-failures", type=int, default=3)
    parser.add_argument("--replay")
    parser.add_argument("--form", choices=("short", "long"), default="short")
    parser.add_argument("--lasting", type=int, default=60)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--rate", type=float, default=30)
    parser.add_argument("--cross", default="")
    parser.add_argument("--topology")
    parser.add_argument("--wipes", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    kinds = Kinds(options.server, options.oracle, options.keydb)
    for kind in set(options.kinds.split(",")):
        why_not = meshes.speaks_active(kinds, kind)
        if why_not:
            print("skipped: %s" % why_not)
            print("0 passed, 0 failed")
            return 0
    with Server(options.oracle) as oracle, Server(options.server) as server:
        options.commands = facts.load(oracle, server)[0]
    if options.replay:
        plan = plans.load(options.replay)
        problem, told = attempt(options, kinds, plan)
        if problem and options.shrink:
            plan, problem = shrink(options, kinds, plan, problem)
        if problem:
            tell(plan, problem)
        print(told or "")
        print("%d passed, %d failed" % (not problem, bool(problem)))
        return bool(problem)
    print("seed %d" % options.seed)
    passed, failed = rounds(options, kinds)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
