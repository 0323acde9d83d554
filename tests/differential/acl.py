#!/usr/bin/env python3
"""What users may do, here and in redis-server: random rules against random commands.

    acl.py --server BIN --oracle BIN [--count N] [--seed N] [--threads N]

A user gets rules at random, several times over. The replies must be the same, and what both tell of it (GETUSER, LIST)
but for the rules on commands: we tell them as they were given, redis-server 7.0 works them out anew. So ours are given
to it once more, as another user's. Then commands at random are tried with DRYRUN: both users must get the same answer
there as ours does here. --count says how many decisions.
"""
import argparse
import os
import random
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import facts                                    # noqa: E402
from generate import Generator                  # noqa: E402
from harness import Server, encode              # noqa: E402

COUNTED = re.compile("(z(union|inter|diff)(store)?|[sz]intercard|b?[lz]mpop|eval(sha)?(_ro)?|fcall(_ro)?)$")
RULES_A_USER = 4        # how often it is changed
TRIES_A_CHANGE = 40
FAILURES_SHOWN = 10
FLAGS = ["on", "off", "nopass", "resetpass", ">a", ">b", "<a", "sanitize-payload", "skip-sanitize-payload", "reset",
         "clearselectors", "OFF", "Reset", "", "bogus", "#" + "0a" * 32, "!" + "0a" * 32, "#0A", "!x"]
PATTERNS = ["*", "a*", "s*", "s0", "[sl]?", "t[0-2]", "z*", "?1", "", "h\\*", "x1", "*1", "g?", "l", "p*"]
CHANNELS = ["*", "c*", "c1", "d?", ""]
KEYWORDS = ["allkeys", "resetkeys", "allchannels", "resetchannels", "allcommands", "nocommands", "AllKeys", "~a b",
            "%R", "%~x", "%X~x", "%RR~x", "%", "+", "-", "+@", "+nosuch", "-nosuch", "+@nosuch", "+config|nosuch",
            "+config|get|x", "+get|x|y", "-select|0", "+set|", "+|", "+client|"]


def named(reply, user):
    """Since Redis 7.2 a refusal says whose it is."""
    if isinstance(reply[1], bytes) and reply[1].startswith(b"This user "):
        return (reply[0], b"User " + user + reply[1][len(b"This user"):])
    return reply


class Rules:
    def __init__(self, seed, commands, categories):
        self.random = random.Random(seed)
        self.commands = sorted(commands)
        self.categories = categories

    def on_commands(self):
        draw = self.random.random()
        sign = self.random.choice("+-")
        if draw < 0.35:
            return sign + "@" + self.random.choice(self.categories + ["all"])
        if draw < 0.9:
            return sign + self.random.choice(self.commands)
        return "+" + self.random.choice(self.commands) + "|" + self.random.choice(["a", "s0", "0", "COUNT", "get"])

    def in_selector(self):
        draw = self.random.random()
        if draw < 0.5:
            return self.on_commands()
        if draw < 0.8:
            sign = self.random.choice(["~", "~", "%R~", "%W~", "%RW~", "%w~", "%WR~"])
            return sign + self.random.choice(PATTERNS)
        if draw < 0.93:
            return "&" + self.random.choice(CHANNELS)
        return self.random.choice(KEYWORDS)

    def one(self):
        """Words: mostly one, several where a selector is spread."""
        draw = self.random.random()
        if draw < 0.06:
            return [self.random.choice(FLAGS)]
        if draw < 0.16:
            inner = [self.in_selector() for _ in range(self.random.randint(0, 4))]
            text = "(" + " ".join(inner) + ")"
            return text.split(" ") if self.random.random() < 0.5 else [text]
        return [self.in_selector()]

    def some(self):
        return [word for _ in range(self.random.randint(1, 5)) for word in self.one()]


class Asker:
    """Commands to be tried."""

    def __init__(self, seed, commands):
        self.random = random.Random(seed)
        self.generator = Generator(seed, commands)
        self.commands = list(commands.values())

    def words(self):
        if self.random.random() < 0.6:
            words = self.generator.plain()
        else:
            command = self.random.choice(self.commands)
            least = abs(command.arity) - len(command.words)
            count = max(0, least + self.random.choice([0, 0, 0, 1, 2, 4, -1]))
            words = list(command.words) + [self.argument() for _ in range(count)]
        # There answers show words up to a zero byte, and * fits no empty key.
        return [(word.replace(b"\0", b"0")[:100] or b"e") if isinstance(word, bytes) else word
                for word in words if isinstance(word, (bytes, str))]

    def argument(self):
        return self.random.choice([b"s0", b"s1", b"l0", b"a", b"ab", b"z1", b"1", b"2", b"0", b"c1", b"d1", b"x",
                                   b"COUNT", b"STREAMS", b"STORE", b"GET", b"KEYS", b"*", b"c*", b"t1", b"h*", b"g1",
                                   b"p2"])


def without_commands(reply):
    """GETUSER under RESP3 without what rules on commands say."""
    if reply[0] != "%":
        return reply
    pairs = []
    for name, value in zip(reply[1][::2], reply[1][1::2]):
        if name[1] in (b"commands", b"databases"):      # there are no rules of databases there
            continue
        if name[1] == b"selectors":
            value = (value[0], [without_commands(each) for each in value[1]])
        if name[1] == b"keys":      # there it is told in a way in which it could not be given
            value = (value[0], value[1].replace(b"%RW~*", b"~*"))
        pairs.append((name, value))
    return pairs


def rules_of(reply, name):
    for line in reply[1]:
        words = line[1].split(b" ")
        if words[1] == name:
            return words[2:]
    return None


class Compared:
    def __init__(self, options):
        self.options = options
        self.servers = [Server(options.oracle, ["--enable-debug-command", "yes"]),
                        Server(options.server, ["--server-threads", options.threads, "--enable-debug-command", "yes"])]
        self.clients = [server.connect() for server in self.servers]
        for client in self.clients:
            client.command("HELLO", "3")
        commands, _, _ = facts.load(*self.servers)
        infos = [facts.command_infos(client) for client in self.clients]
        # Whose categories or numbers of arguments differ on purpose. DEBUG tells us keys, so they are looked at here.
        self.commands = {name: command for name, command in commands.items() if name != "debug" and
                         all(self.facts(infos[0], name, place) == self.facts(infos[1], name, place)
                             for place in (1, 6))}
        self.other = set(commands) - set(self.commands)
        self.categories = [each[1].decode() for each in self.clients[0].command("ACL", "CAT")[1]]
        self.failures = 0
        self.decisions = 0

    @staticmethod
    def facts(infos, name, place):
        kind, payload = infos[name][place]
        return sorted(map(repr, payload)) if isinstance(payload, list) else (kind, payload)

    def both(self, *words):
        return [client.command(*words) for client in self.clients]

    def differ(self, history, what, oracle, ours):
        if repr(oracle) == repr(ours):
            return False
        self.failures += 1
        print("\nFAILED %s" % what)
        for words in history:
            print("    ACL SETUSER u %s" % " ".join(words))
        print("  oracle: %s\n  ours:   %s" % (repr(oracle)[:600], repr(ours)[:600]))
        return True

    def same_user(self, history):
        return not (self.differ(history, "ACL GETUSER", *map(without_commands, self.both("ACL", "GETUSER", "u"))) or
                    self.differ(history, "ACL SETUSER again with our rules", ("+", b"OK"), self.hand_over()))

    def is_compared(self, words):
        """Where words are too few, or keys and ids are not pairs, it finds no keys there, and some here; of a number
        of keys that is none, as 1.0, it takes what it can read, and we find no keys. Such a command fails anyhow."""
        name, *rest = [word.decode("latin1").lower() if isinstance(word, bytes) else word.lower() for word in words]
        if COUNTED.match(name) and any(re.match(r"\s*[+-]?\d", word) and not re.fullmatch(r"-?(0|[1-9]\d{0,8})", word)
                                       for word in rest[:2]):
            return False
        if name in ("xread", "xreadgroup"):
            return rest.count("streams") == 1 and (len(rest) - rest.index("streams")) % 2 == 1
        return not {name, "|".join([name, *rest[:1]])} & self.other and (name != "pfmerge" or len(rest) > 1)

    def hand_over(self):
        ours = rules_of(self.clients[1].command("ACL", "LIST"), b"u")
        return self.clients[0].command("ACL", "SETUSER", "v", "reset", *ours)

    def try_commands(self, history, asker):
        questions = [asker.words() for _ in range(TRIES_A_CHANGE)]
        questions = [words for words in questions if self.is_compared(words)]
        payload = b"".join(encode(["ACL", "DRYRUN", "u", *words]) for words in questions)
        again = b"".join(encode(["ACL", "DRYRUN", "v", *words]) for words in questions)
        answers = [client.exchange(payload, len(questions)) for client in self.clients]
        told = self.clients[0].exchange(again, len(questions))
        for words, oracle, ours, other in zip(questions, *answers, told):
            self.decisions += 1
            oracle, other = named(oracle, b"u"), named(other, b"u")
            if self.differ(history, "DRYRUN %r" % words, oracle, ours) or \
                    self.differ(history, "DRYRUN with our rules, %r" % words, other, ours):
                return False
        return True

    def one_user(self, number):
        seed = "%d/%d" % (self.options.seed, number)
        rules = Rules(seed, self.commands, self.categories)
        asker = Asker(seed, self.commands)
        history = []
        self.both("ACL", "DELUSER", "u")
        for _ in range(RULES_A_USER):
            history.append(rules.some())
            if self.differ(history, "ACL SETUSER", *self.both("ACL", "SETUSER", "u", *history[-1])):
                return False
            if rules_of(self.clients[1].command("ACL", "LIST"), b"u") is None:
                continue    # the first rules were wrong: there is no such user
            if not self.same_user(history) or not self.try_commands(history, asker):
                return False
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", required=True)
    parser.add_argument("--oracle", required=True)
    parser.add_argument("--count", type=int, default=20000, help="decisions")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", type=int, help="just the user of this number")
    options = parser.parse_args()
    compared = Compared(options)
    print("seed %d, %d commands; not compared: %s" % (
        options.seed, len(compared.commands), ", ".join(sorted(compared.other)) or "none"))
    number = options.only or 0
    try:
        while compared.decisions < options.count and compared.failures < FAILURES_SHOWN:
            compared.one_user(number)
            number += 1
            if options.only is not None:
                break
    finally:
        for server in compared.servers:
            server.stop()
    print("%d users" % number)
    print("%d passed, %d failed" % (compared.decisions - compared.failures, compared.failures))
    return 1 if compared.failures or not compared.decisions else 0


if __name__ == "__main__":
    sys.exit(main())
