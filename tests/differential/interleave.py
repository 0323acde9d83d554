"""Several clients whose transactions overlap: what one watches another changes, in every order.

Each client goes its own way (idle, watching, queueing) and the turns are shuffled, so that WATCH, MULTI, the commands
of others and EXEC meet in all orders, over few keys in two databases. Now and then a key's time runs out while it is
watched, before it is, or between WATCH and EXEC; the servers do not look by themselves, see run.py.
"""
CLIENTS = 3
KEYS = [b"a", b"b", b"c", b"d", b"e"]

# Weight, words. {k} a key, {v} a value, {d} a database.
COMMANDS = [
    (14, "SET {k} {v}"), (10, "GET {k}"), (6, "DEL {k}"), (2, "UNLINK {k} {k}"), (6, "INCR {k}"), (4, "APPEND {k} {v}"),
    (2, "APPEND {k} "), (3, "SETRANGE {k} 0 "), (2, "SETRANGE {k} 1 x"), (3, "SET {k} {v} NX"), (3, "SET {k} {v} XX"),
    (2, "SET {k} {v} GET"), (2, "SETNX {k} {v}"), (3, "MSET {k} {v} {k} {v}"), (2, "MSETNX {k} {v} {k} {v}"),
    (3, "MGET {k} {k} {k}"), (4, "EXPIRE {k} 100000"), (2, "EXPIRE {k} 200000 GT"), (2, "PEXPIRE {k} -1"),
    (3, "PERSIST {k}"), (2, "GETEX {k}"), (2, "GETEX {k} PERSIST"), (2, "GETEX {k} EX 100000"), (3, "GETDEL {k}"),
    (4, "RENAME {k} {k}"), (3, "RENAMENX {k} {k}"), (3, "COPY {k} {k}"), (2, "COPY {k} {k} REPLACE"),
    (2, "COPY {k} {k} DB {d} REPLACE"), (3, "MOVE {k} {d}"), (2, "SWAPDB 0 1"), (1, "SWAPDB 1 1"), (1, "SWAPDB 2 3"),
    (2, "FLUSHDB"), (1, "FLUSHALL"), (1, "FLUSHDB ASYNC"), (1, "FLUSHALL SYNC"), (3, "SELECT {d}"),
    (3, "EXISTS {k} {k}"),
    (2, "TYPE {k}"), (2, "TOUCH {k}"), (2, "KEYS *"), (2, "DBSIZE"), (2, "STRLEN {k}"), (1, "OBJECT ENCODING {k}"),
    (1, "PING"), (1, "ECHO {v}"), (1, "COMMAND GETKEYS GET {k}"),
]
# What spoils a queue, or fails when it runs.
WRONG = [(4, "INCR {k} {k}"), (2, "NOSUCH {k}"), (2, "OBJECT NOSUCH {k}"), (1, "GET"), (3, "SELECT 99"),
         (3, "MOVE {k} 99"), (3, "EXPIRE {k} soon"), (2, "SET {k} {v} NX XX"), (2, "MULTI"), (3, "WATCH {k}"),
         (1, "EXEC now"), (1, "MSET {k}")]
VALUES = [b"1", b"2", b"41", b"x", b"words of some length", b"", b"-7", b"9223372036854775807"]


class Interleaved:
    """Either keys are watched that have expired, or databases are swapped: where an expired key that somebody watches
    comes into another database, redis-server forgets whoever watches it after him."""

    def __init__(self, random):
        self.random = random
        self.swaps = random.random() < 0.5
        self.states = ["idle"] * CLIENTS

    def pick(self, rows):
        rows = [row for row in rows if self.swaps or not row[1].startswith("SWAPDB")]
        row = self.random.choices(rows, [row[0] for row in rows])[0]
        makers = {"{k}": KEYS, "{v}": VALUES, "{d}": (b"0", b"1")}
        return [self.random.choice(makers[word]) if word in makers else word.encode() for word in row[1].split(" ")]

    def keys(self):
        return [self.random.choice(KEYS) for _ in range(self.random.choice((1, 1, 1, 2, 3)))]

    def turn(self, which):
        """One command of a client, by what it is about."""
        draw = self.random.random()
        state = self.states[which]
        if draw < 0.03:
            return self.pick(WRONG)
        if state == "queueing":
            if draw < 0.30:
                self.states[which] = "idle"
                return [b"EXEC"]
            if draw < 0.35:
                self.states[which] = "idle"
                return [self.random.choice((b"DISCARD", b"DISCARD", b"RESET"))]
            return [b"UNWATCH"] if draw < 0.37 else self.pick(COMMANDS)
        if draw < 0.15 or state == "watching" and draw < 0.40:
            self.states[which] = "queueing"
            return [b"MULTI"]
        if draw < 0.45 and state == "idle" or draw < 0.48:
            self.states[which] = "watching"
            return [b"WATCH", *self.keys()]
        if draw < 0.50:
            self.states[which] = "idle"
            return [self.random.choice((b"UNWATCH", b"UNWATCH", b"EXEC", b"DISCARD"))]
        return self.pick(COMMANDS)

    def expiry(self):
        """A key's time runs out; clients that are not queueing may watch it before, after, or both."""
        key = self.random.choice(KEYS)
        free = [which for which in range(CLIENTS) if self.states[which] != "queueing"]
        if not free:
            return []

        def watch():
            which = self.random.choice(free)
            self.states[which] = "watching"
            return (which, [b"WATCH", key])

        items = [(free[0], [b"SET", key, b"short", b"PX", b"60"])]
        items += [watch()] if self.random.random() < 0.6 else []
        items += [(free[0], ("@sleep", 75))]
        items += [watch()] if not self.swaps and self.random.random() < 0.6 else []
        draw = self.random.random()
        if draw < 0.7:
            touch = [[b"GET", key], [b"DEL", key], [b"SET", key, b"new"], [b"EXISTS", key], [b"FLUSHALL"], [b"FLUSHDB"],
                     [b"SWAPDB", b"0", b"1"], [b"PERSIST", key], [b"INCR", key], [b"RENAME", key, b"e"]]
            touch = [words for words in touch if self.swaps or words[0] != b"SWAPDB"]
            items.append((self.random.choice(free), self.random.choice(touch)))
        return items

    def block(self, size):
        items = []
        while len(items) < size:
            if self.random.random() < 0.006:
                items += self.expiry()
            which = self.random.randrange(CLIENTS)
            items.append((which, self.turn(which)))
        for which in range(CLIENTS):
            if self.states[which] == "queueing":
                items.append((which, [b"EXEC"]))
        return items
