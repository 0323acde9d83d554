"""What commands newer than redis-server 7.0 promise: a keyspace in a dictionary. Words are bytes; see newer.py."""
import copy
import re
from fractions import Fraction

import newer_streams
from newer_streams import Refused, Unknown

FAR_MS = 4 * 10 ** 12
NONE = -1       # no deadline, as PEXPIRETIME tells it
WRONG = "WRONGTYPE"
INT64 = (-2 ** 63, 2 ** 63 - 1)
CONDITIONS = (b"NX", b"XX", b"IFEQ", b"IFNE", b"IFDEQ", b"IFDNE")


class Key:
    def __init__(self, kind, value, deadline=NONE):
        self.kind, self.value, self.deadline = kind, value, deadline


def integer_of(text):
    """Of the text that an integer has; nothing else is one."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if str(number).encode() == text and INT64[0] <= number <= INT64[1] else None


def float_of(text):
    if not re.fullmatch(rb"-?\d+(\.\d+)?", text):
        raise Refused("ERR value is not a valid float")
    number = Fraction(text.decode())
    if abs(number) > 2 ** 50:
        raise Unknown
    return number


def text_of(number):
    """Halves, as they are written."""
    return str(int(number)).encode() if number == int(number) else str(float(number)).encode()


class Options:
    """Those behind the fixed words, of SET and kin and of HSETEX."""

    def __init__(self, words):
        self.condition = self.wanted = self.lifetime = self.amount = None
        self.flags, self.numbers, self.pairs = set(), {}, []
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word in CONDITIONS:
                self.condition = word
                if word not in (b"NX", b"XX"):
                    self.wanted, at = words[at], at + 1
            elif word in (b"PXAT", b"EXAT"):
                self.lifetime, at = int(words[at]) * (1000 if word == b"EXAT" else 1), at + 1
            elif word in (b"BYINT", b"BYFLOAT", b"LBOUND", b"UBOUND"):
                self.numbers[word], at = words[at], at + 1
            elif word == b"FIELDS":
                count = int(words[at])
                self.pairs = words[at + 1:at + 1 + 2 * count]
                at += 1 + 2 * count
            else:
                self.flags.add(word)

    def deadline(self, old=NONE):
        """What a key or field gets."""
        if self.lifetime is not None:
            return self.lifetime
        return old if b"KEEPTTL" in self.flags else NONE


class Keyspace:
    def __init__(self, digests):
        self.keys = {}
        self.digests = digests

    def run(self, words):
        name = words[0].decode()
        if name[0] == "X":
            return newer_streams.run(self, name, words)
        return getattr(self, name.lower())(*words[1:])

    def settle(self):
        """Keys without elements, and those whose deadline has passed, are gone."""
        for name, key in list(self.keys.items()):
            if 0 <= key.deadline < FAR_MS or (key.kind != "stream" and key.kind != "string" and not key.value):
                del self.keys[name]

    def find(self, name, kind):
        key = self.keys.get(name.decode())
        if key is not None and key.kind != kind:
            raise Refused(WRONG)
        return key

    def value(self, name, kind, missing):
        key = self.find(name, kind)
        return missing if key is None else key.value

    def put(self, name, kind, value, deadline=NONE):
        self.keys[name.decode()] = Key(kind, value, deadline)

    def grow(self, name, kind, empty):
        """The key's value, made if it is missing."""
        key = self.find(name, kind)
        if key is None:
            key = self.keys[name.decode()] = Key(kind, empty)
        return key.value

    def picture(self, name):
        key = self.keys[name]
        if key.kind == "hash":
            value = {field: tuple(both) for field, both in key.value.items()}
        elif key.kind == "stream":
            value = key.value.picture()
        else:
            value = key.value
        return key.kind, key.deadline, value

    # ------------------------------------------------------------------------------------------------- any type --

    def copy(self, source, target, *_):
        if source == target:
            raise Refused("ERR source and destination")
        if source.decode() not in self.keys:
            return 0
        self.keys[target.decode()] = copy.deepcopy(self.keys[source.decode()])
        return 1

    # -------------------------------------------------------------------------------------------------- strings --

    def holds(self, options, key):
        kind = options.condition
        if kind is None:
            return True
        if kind in (b"NX", b"XX"):
            return (key is None) == (kind == b"NX")
        if key is None:
            return kind in (b"IFNE", b"IFDNE")
        if kind in (b"IFEQ", b"IFNE"):
            return (key.value == options.wanted) == (kind == b"IFEQ")
        same = options.wanted == self.digests.get(key.value.decode("latin1"))
        return same == (kind == b"IFDEQ")

    def set(self, name, value, *words):
        options = Options(words)
        key = self.keys.get(name.decode())
        if b"GET" in options.flags or options.wanted is not None:
            key = self.find(name, "string")
        old = key.value if b"GET" in options.flags and key is not None else None
        holds = self.holds(options, key)
        if holds:
            self.put(name, "string", value, options.deadline(NONE if key is None else key.deadline))
        return old if b"GET" in options.flags else b"OK" if holds else None

    def delex(self, name, *words):
        key = self.keys.get(name.decode())
        if key is None:
            return 0
        if words and key.kind != "string":
            raise Refused("ERR Key should be of string type")
        if not self.holds(Options(words), key):
            return 0
        del self.keys[name.decode()]
        return 1

    def delifeq(self, name, value):
        key = self.find(name, "string")
        return 0 if key is None or key.value != value else self.delex(name)

    def msetex(self, count, *words):
        pairs = words[:2 * int(count)]
        options = Options(words[len(pairs):])
        names = pairs[::2]
        there = [name.decode() in self.keys for name in names]
        if options.condition == b"NX" and any(there) or options.condition == b"XX" and not all(there):
            return 0
        for name, value in zip(names, pairs[1::2]):
            key = self.keys.get(name.decode())
            self.put(name, "string", value, options.deadline(NONE if key is None else key.deadline))
        return 1

    def increx(self, name, *words):
        options = Options(words)
        is_float = b"BYFLOAT" in options.numbers
        bounds = [int(options.numbers[word]) if word in options.numbers else None for word in (b"LBOUND", b"UBOUND")]
        key = self.find(name, "string")
        text = b"0" if key is None else key.value
        if is_float:
            old, amount = float_of(text), Fraction(options.numbers[b"BYFLOAT"].decode())
            limits = (-2 ** 60, 2 ** 60)
        else:
            old, amount, limits = integer_of(text), int(options.numbers.get(b"BYINT", b"1")), INT64
            if old is None:
                raise Refused("ERR value is not an integer")
        least = limits[0] if bounds[0] is None else bounds[0]
        most = limits[1] if bounds[1] is None else bounds[1]
        total = min(max(old + amount, least), most)
        applied = total - old
        show = text_of if is_float else int
        if applied != amount and b"SATURATE" not in options.flags:
            return [show(old), show(0)]
        if not is_float and not INT64[0] <= applied <= INT64[1]:
            raise Refused("ERR applied increment would overflow")
        deadline = NONE if key is None else key.deadline
        if options.lifetime is not None and (b"ENX" not in options.flags or deadline == NONE):
            deadline = options.lifetime
        if b"PERSIST" in options.flags:
            deadline = NONE
        self.put(name, "string", text_of(total), deadline)
        return [show(total), show(applied)]

    def bitop(self, name, target, *sources):
        if len(sources) < 2 and name != b"ONE":
            raise Refused("ERR BITOP %s must be called with at least two" % name.decode())
        values = [self.value(source, "string", b"") for source in sources]
        size = max(map(len, values))
        first, *others = [int.from_bytes(value.ljust(size, b"\0"), "big") for value in values]
        any_other = 0
        for other in others:
            any_other |= other
        if name == b"DIFF":
            result = first & ~any_other
        elif name == b"DIFF1":
            result = ~first & any_other
        elif name == b"ANDOR":
            result = first & any_other
        else:
            once, more = first, 0
            for other in others:
                once, more = once ^ other, more | once & other
            result = once & ~more
        self.keys.pop(target.decode(), None)
        if size != 0:
            self.put(target, "string", (result & (256 ** size - 1)).to_bytes(size, "big"))
        return size

    # --------------------------------------------------------------------------------------------------- hashes --

    def hset(self, name, field, value):
        fields = self.grow(name, "hash", {})
        added = field not in fields
        fields[field] = [value, NONE]
        return int(added)

    def hsetex(self, name, *words):
        options = Options(words)
        fields = self.value(name, "hash", {})
        names = options.pairs[::2]
        there = [field in fields for field in names]
        if b"FNX" in options.flags and any(there) or b"FXX" in options.flags and not all(there):
            return 0
        fields = self.grow(name, "hash", {})
        for field, value in zip(names, options.pairs[1::2]):
            deadline = options.deadline(fields[field][1] if field in fields else NONE)
            if 0 <= deadline < FAR_MS:
                fields.pop(field, None)
            else:
                fields[field] = [value, deadline]
        return 1

    def hgetex(self, name, *words):
        fields = self.value(name, "hash", {})
        options = Options(words[:words.index(b"FIELDS")])
        names = words[words.index(b"FIELDS") + 2:]
        values = [fields[field][0] if field in fields else None for field in names]
        for field in names:
            if field not in fields:
                continue
            if options.lifetime is not None:
                fields[field][1] = options.lifetime
            elif b"PERSIST" in options.flags:
                fields[field][1] = NONE
            if 0 <= fields[field][1] < FAR_MS:
                del fields[field]
        return values

    def hgetdel(self, name, _, _count, *names):
        fields = self.value(name, "hash", {})
        return [fields.pop(field)[0] if field in fields else None for field in names]

    # ---------------------------------------------------------------------------------------------------- lists --

    def rpush(self, name, *values):
        elements = self.grow(name, "list", [])
        elements.extend(values)
        return len(elements)

    def lmovem(self, source, target, side, to, mode=b"COUNT", count=b"1", order=b"OBO"):
        elements = self.value(source, "list", [])
        count = int(count)
        if not elements or (mode == b"EXACTLY" and len(elements) < count):
            if target.decode() in self.keys and self.keys[target.decode()].kind != "list":
                raise Unknown
            return None
        self.find(target, "list")
        count = min(count, len(elements))
        block = elements[:count] if side == b"LEFT" else elements[-count:]
        elements[:] = elements[count:] if side == b"LEFT" else elements[:-count]
        if order == b"OBO" and side == to:
            block = block[::-1]
        others = self.grow(target, "list", [])
        others[0 if to == b"LEFT" else len(others):0 if to == b"LEFT" else len(others)] = block
        return block

    # ----------------------------------------------------------------------------------------------------- sets --

    def sadd(self, name, *values):
        members = self.grow(name, "set", set())
        added = len(set(values) - members)
        members.update(values)
        return added

    def sdiffcard(self, count, *words):
        return self.card(int(count), words, lambda first, others: first.difference(*others))

    def sunioncard(self, count, *words):
        return self.card(int(count), words, lambda first, others: first.union(*others))

    def card(self, count, words, combine):
        sets = [self.value(name, "set", set()) for name in words[:count]]
        limit = int(words[count + 1]) if len(words) > count else 0
        size = len(combine(sets[0], sets[1:]))
        return min(size, limit) if limit else size

    def zadd(self, name, score, member):
        members = self.grow(name, "zset", {})
        added = member not in members
        members[member] = float(score)
        return int(added)

    def counted(self, count, words, needs_all):
        names, rest = words[:count], words[count:]
        weights = [1] * count
        if b"WEIGHTS" in rest:
            at = rest.index(b"WEIGHTS") + 1
            weights = [float(word) for word in rest[at:at + count]]
        inputs = []
        for name in names:
            key = self.keys.get(name.decode())
            if key is not None and key.kind not in ("set", "zset"):
                raise Refused(WRONG)
            inputs.append(set() if key is None else set(key.value))
        members = set.intersection(*inputs) if needs_all else set.union(*inputs)
        return {member: float(sum(weight for weight, each in zip(weights, inputs) if member in each))
                for member in members}

    @staticmethod
    def flat(scores):
        ordered = sorted(scores.items(), key=lambda both: (both[1], both[0]))
        return [word for member, score in ordered for word in (member, text_of(Fraction(score)))]

    def zunion(self, count, *words):
        return self.flat(self.counted(int(count), words, False))

    def zinter(self, count, *words):
        return self.flat(self.counted(int(count), words, True))

    def zunionstore(self, target, count, *words):
        return self.store(target, self.counted(int(count), words, False))

    def zinterstore(self, target, count, *words):
        return self.store(target, self.counted(int(count), words, True))

    def store(self, target, scores):
        self.keys.pop(target.decode(), None)
        if scores:
            self.put(target, "zset", scores)
        return len(scores)
