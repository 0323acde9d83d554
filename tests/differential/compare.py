"""When two replies, two sets of data or two journals count as equal."""
import fnmatch
import functools
import os
import re

TTL_TOLERANCE = {"ttl": 3, "expiretime": 3, "pttl": 3000, "pexpiretime": 3000}
# Fields of HELLO that name the server itself.
HELLO_OWN = {b"version", b"id", b"server"}
SET_FIELDS_OF_INFO = {2, 6, 7, 8, 9}    # of COMMAND INFO: flags, ACL categories, tips, key specs, subcommands
# What tables.py judges: field by field, and each difference with its reason.
JUDGED_FIELDS_OF_INFO = {1: "arity", 2: "flags", 6: "categories", 7: "tips", 8: "key specs"}
RULES_OF_TABLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tables_accepted.txt")
ABSOLUTE_TIME_TOLERANCE_MS = 5000


def canonical(reply):
    """The same for replies that differ in the order of elements only."""
    kind, payload = reply
    if isinstance(payload, list):
        return (kind, sorted((canonical(element) for element in payload), key=repr))
    return reply


def as_number(word):
    text = word.decode("latin-1")
    return int(text) if text.isdigit() and text.isascii() else None


def name_of(words, commands):
    first = words[0].decode("latin-1").lower()
    if len(words) > 1:
        both = first + "|" + words[1].decode("latin-1").lower()
        if both in commands:
            return both
    return first


def close_numbers(one, two, tolerance):
    if one[0] != two[0] or one[0] != ":":
        return one == two
    first, second = int(one[1]), int(two[1])
    return first == second or first > 0 and second > 0 and abs(first - second) <= tolerance


# Of consumers and of what streams know of producers: the oracle is older.
NEWER_FIELDS = (b"inactive", b"active-time", b"idmp-duration", b"idmp-maxsize", b"pids-tracked", b"iids-tracked",
                b"iids-added", b"iids-duplicates")


def without_newer(elements):
    kept = []
    for element in elements:
        if kept and kept[-1][1] in NEWER_FIELDS:
            kept.pop()
        else:
            kept.append(element)
    return kept


COUNTED_OTHERWISE = (b"lag", b"entries-read", b"consumers")    # of a group; the last one as a number


def is_idle_consumer(element):
    """One that has nothing pending: ours makes it when it asks in vain, as since Redis 7.2."""
    fields = [each[1] for each in element[1]] if isinstance(element[1], list) else []
    if b"name" not in fields[:1] or b"last-delivered-id" in fields:
        return False
    return any(fields[i] in (b"pending", b"pel-count") and element[1][i + 1] == (":", b"0")
               for i in range(0, len(fields) - 1, 2))


def without_asking(reply):
    """XINFO without what differs since Redis 7.2 and 8: who has asked in vain, and how entries are counted."""
    if not isinstance(reply[1], list):
        return reply
    kept = []
    for element in reply[1]:
        if kept and kept[-1][1] in COUNTED_OTHERWISE and not isinstance(element[1], list):
            kept.pop()
        elif not is_idle_consumer(element):
            kept.append(without_asking(element))
    return (reply[0], kept)


def equal_stream(name, oracle, server, loose=False):
    """Equal but for times. How many nodes find the nodes of a stream is everybody's own."""
    if name.startswith("xinfo") and loose is False:
        oracle, server = without_asking(oracle), without_asking(server)
    if isinstance(server[1], list) and name.startswith("xinfo"):
        server = (server[0], without_newer(server[1]))
    if oracle == server or oracle[0] != server[0]:
        return oracle == server
    one, two = oracle[1], server[1]
    if oracle[0] == ":":
        first, second = int(one), int(two)
        return loose is None or abs(first - second) <= 5000 and (loose or min(first, second) >= 10**12)
    if not isinstance(one, list) or not isinstance(two, list) or len(one) != len(two):
        return False
    for index, (left, right) in enumerate(zip(one, two)):
        before = one[index - 1][1] if index else None
        is_idle = before == b"idle" or name == "xpending" and len(one) == 4 and index == 2
        if not equal_stream(name, left, right, None if before == b"radix-tree-nodes" else is_idle):
            return False
    return True


def equal_scan(words, oracle, server):
    if oracle[0] != "*" or server[0] != "*":
        return oracle == server
    if len(server[1]) != 2 or server[1][0][0] != "$" or not server[1][0][1].isdigit() or server[1][1][0] != "*":
        return False
    if any(element[0] != "$" for element in server[1][1][1]):
        return False
    begins = b"0" in words[1:3]
    if begins and oracle[1][0][1] == b"0" and server[1][0][1] == b"0":
        return canonical(oracle) == canonical(server)
    return True


def without_notes(specs):
    """The notes of key specifications are prose, and everybody writes their own."""
    result = []
    for kind, fields in specs[1]:
        pairs = zip(fields[::2], fields[1::2])
        result.append((kind, [each for pair in pairs if pair[0][1] != b"notes" for each in pair]))
    return (specs[0], result)


@functools.lru_cache(maxsize=None)
def is_accepted(name, field):
    with open(RULES_OF_TABLES, encoding="utf-8") as rules:
        places = [line.split(" | ", 1)[0].strip() for line in rules if line.strip() and line[0] != "#"]
    return any(fnmatch.fnmatchcase("%s: %s" % (name, field), place) for place in places)


def equal_fields(one, two, shared):
    """Of one command in COMMAND INFO."""
    for index, (left, right) in enumerate(zip(one, two)):
        if index == 9:      # subcommands: of those both have
            left, right = (sorted((sub[1] for sub in field[1] if sub[1][0][1].decode() in shared),
                                  key=lambda fields: fields[0][1]) for field in (left, right))
            if len(left) != len(right) or not all(equal_fields(*pair, shared) for pair in zip(left, right)):
                return False
            continue
        if index in JUDGED_FIELDS_OF_INFO and is_accepted(one[0][1].decode(), JUDGED_FIELDS_OF_INFO[index]):
            continue
        if index == 8:
            left, right = without_notes(left), without_notes(right)
        if (canonical(left) != canonical(right)) if index in SET_FIELDS_OF_INFO else left != right:
            return False
    return len(one) == len(two)


def by_name(reply, shared):
    infos = [info for info in reply[1] if info[1] and info[1][0][1].decode() in shared]
    return (reply[0], sorted(infos, key=lambda info: info[1][0][1]))


def equal_info(words, oracle, server, shared):
    if oracle[0] != server[0] or oracle[0] not in "*~":
        return oracle == server
    if len(words) == 1 or words[1].upper() == b"INFO" and len(words) == 2:     # the whole table has no order
        oracle, server = (by_name(reply, shared) for reply in (oracle, server))
    if len(oracle[1]) != len(server[1]):
        return False
    for one, two in zip(oracle[1], server[1]):
        if not isinstance(one[1], list) or not isinstance(two[1], list):
            if one != two and not (isinstance(one[1], list) and one[1][0][1].decode() not in shared):
                return False
            continue
        if one[1][0][1].decode() not in shared:
            continue
        if not equal_fields(one[1], two[1], shared):
            return False
    return True


def equal_list(oracle, server, shared):
    if oracle[0] != server[0] or oracle[0] not in "*~":
        return oracle == server
    left, right = (sorted(element[1] for element in reply[1] if element[1].decode() in shared)
                   for reply in (oracle, server))
    return left == right


def without_own_fields(reply):
    elements = reply[1]
    return [(elements[i], elements[i + 1]) for i in range(0, len(elements) - 1, 2) if elements[i][1] not in HELLO_OWN]


def equal_queued(words, oracle, server):
    """Of a command in EXEC, besides equal_reply. The oracle counts the queue as a user of the values in it."""
    return [word.upper() for word in words[:2]] == [b"OBJECT", b"REFCOUNT"] and oracle[0] == server[0] == ":"


def knows(words, shared):
    """Is it a command, or a subcommand of one, that both have?"""
    name = words[0].decode("latin-1").lower() if words else ""
    if len(words) > 1 and any(other.startswith(name + "|") for other in shared):
        name += "|" + words[1].decode("latin-1").lower()
    return name in shared


def debug_object_fields(reply):
    text = (reply[1] or b"").decode("latin-1")
    return re.sub(r"(at|lru|lru_seconds_idle|serializedlength|refcount|ql_uncompressed_size|encoding):\S+", "", text)


def newer_encoding(kind, oracle, server):
    """Small lists and sets are listpacks, and have been called so since Redis 7.2. kind: the type, None: any."""
    return server[1] == b"listpack" and oracle[1] in {b"list": (b"quicklist",), b"set": (b"hashtable",)}.get(
        kind, (b"quicklist", b"hashtable") if kind is None else ())


def with_one_zero(reply):
    """Scores of -0 are 0 with ours, in sorted sets of any size; the oracle keeps them in large ones."""
    kind, payload = reply
    if isinstance(payload, list):
        return (kind, [with_one_zero(element) for element in payload])
    return (kind, payload[1:]) if payload in (b"-0", "-0") else reply


def newer_check(name, oracle, server):
    """Since Redis 7.4 the arguments are looked at before the key."""
    return name in ("bitcount", "bitpos") and (oracle[0] == ":" or (oracle[1] or b"").startswith(b"WRONGTYPE")) and \
        server[0] == "-" and server[1].startswith((b"ERR value is not an integer", b"ERR syntax error"))


def equal_reply(words, oracle, server, commands, shared):
    """Of one command outside of EXEC."""
    if oracle == server:
        return True
    name = name_of(words, commands)
    if newer_check(name, oracle, server):
        return True
    if name in ("command|getkeys", "command|getkeysandflags") and not knows(words[2:], shared):
        return server[0] == "-"
    if oracle[0] == "-" or server[0] == "-":
        return False
    if name in TTL_TOLERANCE:
        return close_numbers(oracle, server, TTL_TOLERANCE[name])
    if name in ("scan", "sscan", "hscan", "zscan"):
        return equal_scan(words, oracle, server)
    if name in ("command|info", "command"):
        return equal_info(words, oracle, server, shared)
    if name == "command|list":
        return equal_list(oracle, server, shared)
    if name == "command|count":
        return oracle[0] == server[0]
    if name == "debug":
        return oracle[0] == server[0] and debug_object_fields(oracle) == debug_object_fields(server)
    if name == "hello":
        return oracle[0] == server[0] and without_own_fields(oracle) == without_own_fields(server)
    if name == "object|idletime":
        return oracle[0] == server[0] == ":" and abs(int(oracle[1]) - int(server[1])) <= 3
    if name == "object|encoding":
        return newer_encoding(None, oracle, server)
    if name == "object|refcount":
        return False
    if name in commands and commands[name].group == "stream":
        return equal_stream(name, oracle, server)
    if name in commands and commands[name].group == "sorted-set":
        oracle, server = with_one_zero(oracle), with_one_zero(server)
        if oracle == server:
            return True
    tips = commands[name].tips if name in commands else ()
    if "nondeterministic_output_order" in tips:
        return canonical(oracle) == canonical(server)
    if "nondeterministic_output" in tips:
        return oracle[0] == server[0] and (oracle[1] is None) == (server[1] is None)
    return False


class Conversation:
    """Follows one connection's MULTI, so that each element of EXEC is compared by the rule of its own command."""

    def __init__(self, commands, shared):
        self.commands = commands
        self.shared = shared
        self.queue = None

    def equal(self, words, oracle, server):
        name = words[0].decode("latin-1").lower()
        queue = self.queue
        if oracle == ("+", b"QUEUED"):
            if queue is not None:
                queue.append(words)
        elif name == "multi" and oracle == ("+", b"OK"):
            self.queue = []
        elif name in ("exec", "discard", "reset") and oracle[0] != "-" or oracle[1] and oracle[1][:9] == b"EXECABORT":
            self.queue = None
        if name == "exec" and queue and oracle[0] == server[0] == "*" and oracle[1] and server[1]:
            return len(oracle[1]) == len(server[1]) == len(queue) and all(
                equal_reply(queued, one, two, self.commands, self.shared) or equal_queued(queued, one, two)
                for queued, one, two in zip(queue, oracle[1], server[1]))
        return equal_reply(words, oracle, server, self.commands, self.shared)


def show(reply, limit=300):
    """A reply as text for people, and for the rules in accepted.txt."""
    if reply is None:
        return "(nothing)"
    kind, payload = reply
    if isinstance(payload, list):
        text = "%s[%s]" % (kind, ", ".join(show(element, limit) for element in payload[:50]))
    elif payload is None:
        text = kind + "nil"
    else:
        text = kind + payload.decode("latin-1").encode("unicode_escape").decode()
    return text if len(text) <= limit else text[:limit] + "...(%d)" % len(text)


def show_words(words, limit=120):
    shown = []
    for word in words:
        if not isinstance(word, bytes):
            word = str(word).encode()
        text = word.decode("latin-1").encode("unicode_escape").decode().replace('"', '\\"')
        if len(text) > limit:
            text = text[:20] + "...(%d bytes)" % len(word)
        shown.append('"%s"' % text if not text or re.search(r"[\s\\\"']", text) else text)
    return " ".join(shown)


class Accepted:
    """Rules of accepted.txt: KIND | COMMAND | ORACLE | OURS | REASON. KIND is reply, data or journal; the next three
    are regular expressions that have to match all of the text."""

    def __init__(self, path):
        self.rules = []
        with open(path) as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip() or line.startswith("#"):
                    continue
                fields = [field.strip() for field in re.split(r"\s\|\s", line.strip())]
                if len(fields) != 5 or not fields[4]:
                    raise SystemExit("%s:%d: want KIND | COMMAND | ORACLE | OURS | REASON" % (path, number))
                self.rules.append((fields[0], *[re.compile(field, re.S) for field in fields[1:4]], number))
        self.used = {}

    def allows(self, kind, command, oracle, server):
        for rule_kind, command_rule, oracle_rule, server_rule, number in self.rules:
            if rule_kind == kind and command_rule.fullmatch(command) and oracle_rule.fullmatch(oracle) and \
                    server_rule.fullmatch(server):
                self.used[number] = self.used.get(number, 0) + 1
                return True
        return False
