#!/usr/bin/env python3
"""Chaos: a master, two replicas and a replica of one of these, with a proxy in front of each link. Random commands of
every type are written while links are cut, stalled and slowed, servers killed and started again, roles and options
changed. At the end of each round everything is healed and all must be equal: keys, digests, deadlines.

    chaos.py --server BIN --oracle BIN [--rounds N] [--seconds N] [--seed N] [--threads N] [--kinds ours,oracle,...]

In a round without a fault that loses somebody's place in the history nobody may have needed a full sync, as ours keep
what a replica that went has to get: the model of that is one bit a fault, see FAULTS. --kinds: of the master, the two
replicas and the replica of the first. Groups live for --group rounds (10); a failure is repeated with the same --seed
and --first set to the first round of its group, which is printed. The last line counts rounds.
"""
import argparse
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from group import (Lost, Member, Proxy, Wrong, differing_keys, keys_of, wait_caught_up, wait_linked,     # noqa: E402
                   wait_until)
import facts        # noqa: E402
import roundtrip    # noqa: E402
from generate import PROFILES, Generator      # noqa: E402
from harness import Server, encode, exchange_all, is_redis      # noqa: E402
from interleave import CLIENTS      # noqa: E402
from run import segments       # noqa: E402

NOT_SENT = {b"DEBUG", b"SHUTDOWN", b"SAVE", b"BGSAVE", b"CONFIG"}
NAMES = ("one", "two", "three", "chained")
# What is written down there is what a replica of redis-server does not get, and would differ on it.
MASTER_ONLY = {b"XREADGROUP": lambda words: words[-1] != b">", b"PFCOUNT": lambda words: True,
               b"BITFIELD": lambda words: b"FAIL" in [word.upper() for word in words]}
CHANGES = {     # values for CONFIG SET on anybody
    "repl-backlog-size": ("16kb", "1mb", "10mb"), "repl-backlog-ttl": ("0", "600", "3600"),
    "repl-diskless-sync": ("yes", "no"), "repl-diskless-load": ("disabled", "on-empty-db", "swapdb"),
    "repl-diskless-sync-delay": ("0", "1"), "repl-diskless-sync-max-replicas": ("0", "1", "2"),
    "repl-ping-replica-period": ("1", "10"), "repl-timeout": ("10", "60"),
    "repl-disable-tcp-nodelay": ("yes", "no"), "replica-serve-stale-data": ("yes", "no"),
    "replica-lazy-flush": ("yes", "no"), "replica-priority": ("0", "100"), "min-replicas-max-lag": ("10", "1"),
    "client-output-buffer-limit": ("replica 256mb 64mb 60", "replica 1mb 1mb 1"), "replica-ignore-maxmemory": ("yes",),
    "repl-backpressure-limit": ("0", "1mb"), "journal-spill-limit": ("10gb", "0"), "appendonly": ("yes", "no"),
    "replica-announced": ("yes", "no"), "rdb-version": ("auto", "10")}


class Group:
    def __init__(self, options, seed):
        self.options = options
        self.random = random.Random("group " + seed)
        self.members = []
        self.proxies = {}
        try:
            self.begin(options)
        except BaseException:
            self.stop()
            raise

    def begin(self, options):
        for name, kind in zip(NAMES, options.kinds.split(",")):
            binary = options.oracle if kind == "oracle" else options.server
            # Only ours keep more than the backlog for those that went.
            more = ["--repl-backlog-size", "200mb"] if is_redis(binary) else []
            self.members.append(Member("%s (%s)" % (name, kind), binary, more, options.threads))
        self.master = self.members[0]
        self.parent = {self.members[1]: self.master, self.members[2]: self.master, self.members[3]: self.members[1]}
        for member in self.members:
            member.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            self.proxies[member] = Proxy(member.port)
        for member, parent in self.parent.items():
            self.join(member, parent)
        wait_linked(list(self.parent))

    def join(self, member, parent):
        """Follows by its own proxy, always at the same address."""
        self.parent[member] = parent
        self.proxies[member].set_target(parent.port)
        self.proxies[member].cut()
        member.follow(self.proxies[member].port)

    def replicas(self):
        return [member for member in self.members if member is not self.master]

    def depth(self, member):
        steps = 0
        while member is not self.master:
            member = self.parent[member]
            steps += 1
        return steps

    def stop(self):
        for proxy in self.proxies.values():
            proxy.close()
        for member in reversed(self.members):
            member.stop()


class Round:
    def __init__(self, group, options, commands, seed):
        self.group, self.options = group, options
        self.random = random.Random(seed)
        self.commands, self.seed = commands, seed
        self.full_is_allowed = False
        self.told = []          # what was done, for messages
        self.later = []         # (time, what undoes a fault)
        self.before = self.counts()
        self.clients, self.clients_of = [], None

    def counts(self):
        total = {"full": 0, "partial_ok": 0, "partial_err": 0}
        for member in self.group.members:
            for name, count in member.sync_counts().items():
                total[name] += count
        return total

    # ---- faults: each gives True if somebody may need a full sync after it

    def any_replica(self):
        return self.random.choice(self.group.replicas())

    def say(self, *words):
        self.told.append(" ".join(word.name if isinstance(word, Member) else str(word) for word in words))

    def undo(self, seconds, action):
        self.later.append((time.monotonic() + seconds, action))

    def fault_cut(self):
        member = self.any_replica()
        self.say("cut", member)
        self.group.proxies[member].cut()

    def fault_down(self):
        member, seconds = self.any_replica(), self.random.uniform(0.02, 0.6)
        self.say("down", member)
        self.group.proxies[member].take_down()
        self.undo(seconds, self.group.proxies[member].put_up)

    def fault_stall(self):
        member = self.any_replica()
        self.say("stall", member)
        self.group.proxies[member].stall(*self.random.choice([["down"], ["up"], []]))
        self.undo(self.random.uniform(0.05, 0.5), self.group.proxies[member].resume)

    def fault_slow(self):
        member = self.any_replica()
        self.say("slow", member)
        self.group.proxies[member].throttle(self.random.choice((20000, 200000)))
        self.undo(self.random.uniform(0.1, 0.5), lambda: self.group.proxies[member].throttle(0))

    def fault_cut_at(self):
        """The next connection ends somewhere in the handshake or the stream."""
        member, place = self.any_replica(), int(10 ** self.random.uniform(0, 4))
        self.say("cut", member, "at byte", place)
        self.group.proxies[member].at(place, "cut", self.random.choice(("down", "up")))
        self.group.proxies[member].cut()

    def fault_trouble(self):
        """Each connection is cut, stalled or slowed again and again, wherever it is."""
        member = self.any_replica()
        proxy = self.group.proxies[member]
        self.say("trouble", member)
        proxy.seed(self.random.randint(1, 1 << 30), 100, int(10 ** self.random.uniform(3, 6)))
        self.undo(self.random.uniform(0.1, 1), lambda: proxy.seed(0))

    def fault_pause(self):
        member = self.any_replica()
        self.say("SIGSTOP", member)
        member.pause()
        self.undo(self.random.uniform(0.05, 0.7), member.resume)

    def fault_kill_link(self):
        member = self.random.choice(self.group.members)
        kind = self.random.choice(("replica", "master", "normal"))
        self.say("CLIENT KILL TYPE", kind, member)
        member.call("CLIENT", "KILL", "TYPE", kind)

    def fault_kill_replica(self):
        member = self.any_replica()
        self.say("kill -9", member)
        member.kill()
        self.start(member)
        return True

    def fault_restart_replica(self):
        """In order and with a file, from which it continues. Its own replicas have no place in the new process, but the
        backlog; with writes at full speed that may be too short until they are back."""
        member = self.any_replica()
        self.heal()
        wait_linked([member])
        self.say("restart", member)
        try:
            member.call("CONFIG", "SET", "appendonly", "no")
            member.call("SHUTDOWN", "SAVE")
        except (Lost, OSError):
            pass
        member.forget()
        member.process.wait(30)
        if member.process.returncode != 0:
            raise Wrong("%s ended with %d after SHUTDOWN\n%s" % (member.name, member.process.returncode, member.log()))
        self.start(member)
        return self.options.load and member in self.group.parent.values()

    def fault_kill_master(self):
        self.say("kill -9", self.group.master)
        self.group.master.kill()
        self.start(self.group.master)
        return True

    def start(self, member):
        follows = ["--replicaof", "127.0.0.1", str(self.group.proxies[member].port)]
        options = member.options
        member.options = options if member is self.group.master else options + follows
        member.start()
        member.options = options
        member.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")

    def fault_option(self):
        member = self.random.choice(self.group.members)
        name = self.random.choice(sorted(CHANGES))
        value = self.random.choice(CHANGES[name])
        if member.redis and name == "repl-backlog-size":
            return False
        self.say("CONFIG SET", name, value, member)
        reply = member.call("CONFIG", "SET", name, value)
        if reply[0] == "-" and not member.redis:
            raise Wrong("CONFIG SET %s %s: %s" % (name, value, reply[1]))
        # Without a file, what is beyond the memory for it is given up.
        return name == "journal-spill-limit"

    def fault_again(self):
        member = self.any_replica()
        self.say("REPLICAOF again", member)
        member.follow(self.group.proxies[member].port)

    def fault_save(self):
        member = self.random.choice(self.group.members)
        words = self.random.choice(("BGSAVE", "BGREWRITEAOF"))
        self.say(words, member)
        member.call(words)

    def fault_move(self):
        """A replica goes to another master of the same history."""
        group = self.group
        member = self.any_replica()
        others = [each for each in group.members if each is not member and not self.leads_to(each, member)]
        parent = self.random.choice(others)
        self.say("REPLICAOF", member, "->", parent)
        group.join(member, parent)
        # Who is ahead of its new master cannot continue there.
        return True

    def leads_to(self, member, wanted):
        while member is not self.group.master:
            if member is wanted:
                return True
            member = self.group.parent[member]
        return False

    def promote(self, heir):
        group, former = self.group, self.group.master
        heir.follow(None)
        group.master = heir
        del group.parent[heir]
        group.join(former, heir)
        for member in group.replicas():
            if member is not former:
                group.join(member, group.parent[member] if group.parent[member] is not former else heir)

    def fault_planned(self):
        """Roles change at rest: everybody continues."""
        self.heal()
        heir = self.random.choice(self.group.replicas())
        self.say("planned switch to", heir)
        self.at_rest()
        self.promote(heir)
        wait_linked(self.group.replicas())

    def fault_unplanned(self):
        heir = self.any_replica()
        self.say("switch to", heir)
        self.promote(heir)
        return True

    FAULTS = ((6, fault_cut), (4, fault_down), (4, fault_stall), (3, fault_slow), (4, fault_cut_at), (3, fault_trouble),
              (3, fault_pause), (2, fault_kill_link), (2, fault_kill_replica), (2, fault_restart_replica),
              (1, fault_kill_master), (8, fault_option), (1, fault_again), (2, fault_save), (1, fault_move),
              (2, fault_planned), (1, fault_unplanned))

    def one_fault(self):
        weights = [weight for weight, _ in self.FAULTS]
        fault = self.random.choices([fault for _, fault in self.FAULTS], weights)[0]
        if self.options.gentle and fault.__name__[6:] in ("kill_replica", "kill_master", "move", "unplanned"):
            return
        if fault(self):
            self.full_is_allowed = True

    # ---- writing

    def send(self, begin, end, items):
        if self.clients_of is not self.group.master:
            self.clients = [self.group.master.connect(40) for _ in range(CLIENTS)]
            self.clients_of = self.group.master
        payload = b"".join(encode(words) for _, words in items[begin:end])
        which = items[begin][0]
        result = exchange_all([(self.clients[which], payload, end - begin)])[0]
        if isinstance(result, Lost):
            if "no reply in time" in str(result):
                raise Wrong("no reply within 40 s to one of %s" % [words for _, words in items[begin:end]])
            self.clients_of = None      # killed, most likely

    def write(self):
        profile = self.random.choice(sorted(PROFILES)) if self.random.random() < 0.5 else "mixed"
        items = Generator(self.seed, self.commands, profile).block(self.random.randint(200, 1500))
        kept = []
        for which, words in items:
            if words[0] != "@sleep":
                name = words[0].upper()
                if name in NOT_SENT or name in MASTER_ONLY and MASTER_ONLY[name](words) or \
                        any(b"set_repl" in word for word in words):
                    continue
            kept.append((which, words))
        faults = self.random.randint(1, 4)
        pieces = list(segments(kept))
        places = sorted(self.random.randrange(len(pieces)) for _ in range(faults))
        for number, (begin, end) in enumerate(pieces):
            while places and places[0] == number:
                places.pop(0)
                self.one_fault()
            self.undo_due()
            if kept[begin][1][0] == "@sleep":
                time.sleep(kept[begin][1][1] / 1000)
                continue
            self.send(begin, end, kept)
            if self.options.load and number % 50 == 0:
                self.load()

    def load(self):
        """Some megabytes, so that links have something to be cut in."""
        value = bytes(self.random.getrandbits(8) for _ in range(64)) * 64
        words = [[b"SET", b"load:%d" % self.random.randrange(500), value] for _ in range(250)]
        result = exchange_all([(self.group.master.own, b"".join(map(encode, words)), len(words))])[0] \
            if self.group.master.own else None
        if isinstance(result, Lost):
            self.group.master.forget()

    def undo_due(self):
        now = time.monotonic()
        for entry in [entry for entry in self.later if entry[0] <= now]:
            self.later.remove(entry)
            entry[1]()

    def heal(self):
        for _, action in self.later:
            action()
        self.later = []
        for proxy in self.group.proxies.values():
            proxy.put_up()
            proxy.resume()
            proxy.throttle(0)

    # ---- the end of a round

    def at_rest(self):
        """Everybody has everything; the chain from the top."""
        group = self.group
        for member in sorted(group.replicas(), key=group.depth):
            wait_until(member.link_is_up, self.options.patience, lambda member=member: "the link of %s is up\n%s" % (
                member.name, member.log(3000)))
        wait_caught_up(group.master, group.replicas(), self.options.patience)

    def deadlines(self, member):
        found = {}
        for database in range(16):
            keys = sorted(keys_of(member, database))
            if keys:
                member.ask("SELECT", database)
                replies = member.own.exchange(b"".join(encode(["PEXPIRETIME", key]) for key in keys), len(keys))
                found.update({(database, key): reply[1] for key, reply in zip(keys, replies)})
        member.ask("SELECT", 0)
        return found

    def compare(self):
        group = self.group
        master = group.master
        for client in self.clients:
            client.close()
        master.call("CONFIG", "SET", "min-replicas-to-write", "0")
        roundtrip.settle(master)
        self.at_rest()
        expected, deadlines = master.dataset(), self.deadlines(master)
        for replica in group.replicas():
            if replica.dataset() != expected:
                raise Wrong("%s and %s differ: %s and %s%s" % (
                    master.name, replica.name, expected, replica.dataset(), differing_keys(master, replica)))
            others = self.deadlines(replica)
            if others != deadlines:
                raise Wrong("deadlines differ on %s: %s" % (replica.name, [
                    (key, deadlines.get(key), others.get(key)) for key in {**deadlines, **others}
                    if deadlines.get(key) != others.get(key)][:3]))
        after = self.counts()
        full = after["full"] - self.before["full"]
        if full > 0 and not self.full_is_allowed:
            raise Wrong("%d full syncs, though nobody has lost its place: before %s, after %s\n%s" % (
                full, self.before, after, "\n".join(each.name + "\n" + each.log(1500) for each in group.members)))
        for member in group.members:
            complaint = member.complaint()
            if complaint:
                raise Wrong(complaint)

    def go(self):
        self.write()
        self.heal()
        self.compare()


def rounds(options, commands):
    passed, failed = 0, 0
    until = time.monotonic() + options.seconds if options.seconds else None
    group = None
    full = partial = 0
    try:
        for number in range(options.first, options.first + options.rounds):
            if until and time.monotonic() > until:
                print("time is over after %d rounds" % (number - options.first))
                break
            one = None
            try:
                if group is None or number % options.group == 0:
                    if group:
                        group.stop()
                    first, group = number, None
                    group = Group(options, "%d/%d" % (options.seed, number))
                one = Round(group, options, commands, "%d/%d" % (options.seed, number))
                one.go()
                passed += 1
                after = one.counts()
                full += max(0, after["full"] - one.before["full"])
                partial += max(0, after["partial_ok"] - one.before["partial_ok"])
                if options.verbose:
                    print("ok round %d: %s" % (number, "; ".join(one.told)), flush=True)
            except (Wrong, Lost, OSError, ValueError) as problem:
                failed += 1
                print("FAILED round %d (repeat: --seed %d --first %d --rounds %d): %s\n  it was: %s" % (
                    number, options.seed, first, number - first + 1, problem, "; ".join(one.told if one else [])),
                    flush=True)
                for member in group.members if group else []:
                    if not member.alive():
                        print("  %s has ended with %s\n%s" % (member.name, member.process.returncode, member.log(2500)))
                if group:
                    group.stop()
                group = None
                if failed >= options.most_failures:
                    print("too many failures, the rest is not run")
                    break
    finally:
        if group:
            group.stop()
    print("%d full and %d partial syncs" % (full, partial))
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    parser.add_argument("--group", type=int, default=10, help="rounds with the same servers")
    parser.add_argument("--seconds", type=int, default=0, help="no new round begins after these")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--kinds", default="ours,ours,ours,ours")
    parser.add_argument("--gentle", action="store_true", help="only faults after which everybody continues")
    parser.add_argument("--load", action="store_true", help="beside the commands, megabytes of SETs")
    parser.add_argument("--patience", type=int, default=60)
    parser.add_argument("--most-failures", type=int, default=5)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with Server(options.oracle) as oracle, Server(options.server) as server:
        commands = facts.load(oracle, server)[0]
    print("seed %d" % options.seed)
    passed, failed = rounds(options, commands)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
