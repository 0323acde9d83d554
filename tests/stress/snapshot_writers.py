"""What the clients of snapshot_model.py write: commands on all types, with deadlines of keys and of members, scripts,
transactions, whole keys that move, databases that are swapped and flushed. The seed decides them; replies do not."""
import random

DATABASES = 4
KEYS = 30               # of a type
MEMBERS = 40            # of a small value
LARGE_MOST = 100000     # members of a large one
LARGE_BYTES = 5 << 20   # of a large string
LARGE_PENDING = 30000   # entries of a stream, of which most are pending
LARGE_DB = 1
NESTED_BREADTH = 20     # names on each of the upper two levels of a large nested hash
CHUNK = 500             # members that a large value grows by at once

AT_A_TIME = (b"XREADGROUP", b"XAUTOCLAIM")  # their effects are replayed at their time, so they stand alone

SCRIPT = b"""for i, key in ipairs(KEYS) do
  redis.call('DEL', key)
  redis.call('RPUSH', key, ARGV[1], ARGV[2], i)
  redis.call('SET', key .. ':s', ARGV[1] .. i, 'PX', ARGV[3])
end
redis.call('HINCRBY', 'h:script', ARGV[1], 1)
return redis.call('SPOP', 'S:script')"""
STREAM_SCRIPT = b"""local all = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 3)
for _, each in ipairs(all) do redis.call('XACK', KEYS[1], ARGV[1], each[1]) end
if all[2] then redis.call('XDEL', KEYS[1], all[2][1]) end"""
ENTRIES_SCRIPT = b"""for i = 1, ARGV[1] do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'f', i)
end"""
PENDING_SCRIPT = b"""local key, group, consumer, share, count, act = KEYS[1], unpack(ARGV)
local ends = redis.pcall('XPENDING', key, group)
if not ends[2] then return 0 end
local first, last = tonumber(ends[2]:match('%d+')), tonumber(ends[3]:match('%d+'))
local from = string.format('%.0f', first + math.floor((last - first) * share / 1000))
for _, each in ipairs(redis.call('XPENDING', key, group, from, '+', count)) do
  local id = each[1]
  if act == 'XACK' then redis.call('XACK', key, group, id)
  elseif act == 'XDEL' then redis.call('XDEL', key, id)
  elseif act == 'XDELEX' then redis.call('XDELEX', key, 'DELREF', 'IDS', 1, id)
  elseif act == 'XACKDEL' then redis.call('XACKDEL', key, group, 'ACKED', 'IDS', 1, id)
  elseif act == 'XCLAIM' then redis.call('XCLAIM', key, group, consumer, 0, id)
  elseif act == 'XCLAIM JUSTID' then redis.call('XCLAIM', key, group, consumer, 0, id, 'JUSTID')
  else redis.call('XCLAIM', key, group, consumer, 0, id, 'RETRYCOUNT', 9, 'IDLE', 5) end
end
return count"""
LIBRARY = b"""#!lua name=lib%d
redis.register_function('f%d', function(keys, args)
  redis.call('APPEND', keys[1], args[1])
  return redis.call('ZINCRBY', keys[2], 1, args[1])
end)"""


class Mix:
    """Makes batches of commands; words are bytes or numbers."""

    def __init__(self, seed, large, flush_every):
        self.random = random.Random(seed)
        self.large = large
        self.flush_every = flush_every      # about so many batches between two of FLUSHDB or FLUSHALL; 0: none
        self.acts = [(act, weight) for act, weight in ACTS]
        if large:
            self.acts += LARGE_ACTS
        self.functions, weights = zip(*self.acts)
        self.sums, total = [], 0
        for weight in weights:
            total += weight
            self.sums.append(total)

    # ---- parts of commands

    def number(self, most):
        return int(self.random.random() * most)

    def key(self, kind):
        return b"%s:%d" % (kind, self.number(KEYS))

    def member(self):
        return b"m%d" % self.number(MEMBERS)

    def members(self, most=8):
        return [self.member() for _ in range(1 + self.number(most))]

    def bytes(self):
        return self.random.randbytes(self.random.choice((1, 3, 9, 20, 60, 60, 200, 3000)))

    def delay(self):
        """Milliseconds: some soon over, some while a snapshot is made, some hardly ever."""
        return self.random.choice((1, 5, 20, 100, 300, 1000, 3000, 10000000))

    def score(self):
        return self.random.choice((self.number(10), -self.number(1000), "%.3f" % self.random.uniform(-5, 5)))

    def any_kind(self):
        return self.random.choice((b"s", b"i", b"b", b"l", b"S", b"z", b"h", b"x", b"n", b"p"))

    # ---- acts: each gives a list of commands

    def strings(self):
        key, draw = self.key(b"s"), self.number(10)
        return [[b"SET", key, self.bytes()], [b"SET", key, self.bytes(), b"PX", self.delay()],
                [b"APPEND", key, self.bytes()], [b"SETRANGE", key, self.number(500), self.bytes()],
                [b"GETSET", key, self.bytes()], [b"SETNX", key, self.bytes()], [b"GETDEL", key],
                [b"GETEX", key, b"PX", self.delay()], [b"MSET", key, self.bytes(), self.key(b"s"), self.bytes()],
                [b"SET", key, self.bytes(), b"KEEPTTL"]][draw:draw + 1]

    def numbers(self):
        key = self.key(b"i")
        return [self.random.choice(([b"INCR", key], [b"DECRBY", key, self.number(100)], [b"INCR", key],
                                    [b"SET", key, self.number(100000)], [b"INCRBYFLOAT", b"f", b"0.5"]))]

    def bits(self):
        key = self.key(b"b")
        return [self.random.choice((
            [b"SETBIT", key, self.number(4000), self.number(2)],
            [b"BITFIELD", key, b"INCRBY", b"u8", self.number(3000), 7],
            [b"BITOP", b"XOR", key, self.key(b"b"), self.key(b"b")], [b"SETBIT", key, self.number(100), 1]))]

    def lists(self):
        key, other = self.key(b"l"), self.key(b"l")
        return [self.random.choice((
            [b"RPUSH", key, *self.members()], [b"LPUSH", key, self.bytes()], [b"LPOP", key], [b"RPOP", key, 3],
            [b"LSET", key, 0, self.bytes()], [b"LINSERT", key, b"BEFORE", self.member(), self.bytes()],
            [b"LREM", key, 1, self.member()], [b"LTRIM", key, 0, 200], [b"LMOVE", key, other, b"LEFT", b"RIGHT"],
            [b"LMOVEM", key, other, b"LEFT", b"LEFT", b"COUNT", 3, b"OBO"],
            [b"LMOVEM", key, other, b"RIGHT", b"LEFT", b"EXACTLY", 2, b"BULK"],
            [b"BLMOVE", key, other, b"RIGHT", b"LEFT", b"0.001"], [b"BLPOP", key, b"0.001"]))]

    def sets(self):
        key, other = self.key(b"S"), self.key(b"S")
        return [self.random.choice((
            [b"SADD", key, *self.members()], [b"SADD", key, self.number(1000)], [b"SREM", key, *self.members(3)],
            [b"SPOP", key], [b"SPOP", key, 3], [b"SMOVE", key, other, self.member()],
            [b"SUNIONSTORE", key, other, self.key(b"S")], [b"SADD", b"S:script", *self.members()],
            [b"EXPIREMEMBER", key, self.member(), self.delay(), b"ms"], [b"PERSIST", key, self.member()]))]

    def sorted_sets(self):
        key, other = self.key(b"z"), self.key(b"z")
        return [self.random.choice((
            [b"ZADD", key, *(word for member in self.members() for word in (self.score(), member))],
            [b"ZINCRBY", key, self.score(), self.member()], [b"ZREM", key, *self.members(3)], [b"ZPOPMIN", key],
            [b"ZADD", key, b"XX", b"GT", self.score(), self.member()], [b"ZREMRANGEBYRANK", key, 50, 60],
            [b"ZUNIONSTORE", key, 2, other, self.key(b"z")], [b"ZRANGESTORE", key, other, 0, 20],
            [b"GEOADD", key, self.number(90), self.number(80), self.member()],
            [b"EXPIREMEMBER", key, self.member(), self.delay(), b"ms"]))]

    def hashes(self):
        key = self.key(b"h")
        return [self.random.choice((
            [b"HSET", key, *(word for member in self.members() for word in (member, self.bytes()))],
            [b"HDEL", key, *self.members(3)], [b"HINCRBY", key, b"n%d" % self.number(5), 3],
            [b"HSETNX", key, self.member(), self.bytes()], [b"HINCRBYFLOAT", key, b"f", b"1.5"],
            [b"HPEXPIRE", key, self.delay(), b"FIELDS", 2, self.member(), self.member()],
            [b"HPERSIST", key, b"FIELDS", 1, self.member()],
            [b"EXPIREMEMBER", key, self.member(), self.delay(), b"ms"]))]

    def streams(self):
        key, group = self.key(b"x"), b"g%d" % self.number(2)
        consumer = b"c%d" % self.number(3)
        if self.number(60) == 0:
            return [self.random.choice(([b"DEL", key], [b"XGROUP", b"DESTROY", key, group],
                                        [b"XSETID", key, b"9999999999999-%d" % self.number(10)]))]
        make = [b"XGROUP", b"CREATE", key, group, 0, b"MKSTREAM"]
        return self.random.choice((
            [[b"XADD", key, b"*", b"f", self.bytes()]] * 2, [[b"XADD", key, b"MAXLEN", 50, b"*", b"a", 1, b"b", 2]],
            [make, [b"XADD", key, b"*", b"f", b"v"]],
            [make, [b"XREADGROUP", b"GROUP", group, consumer, b"COUNT", 3, b"STREAMS", key, b">"]],
            [[b"XREADGROUP", b"GROUP", group, consumer, b"NOACK", b"COUNT", 1, b"STREAMS", key, b">"]],
            [[b"XREADGROUP", b"GROUP", group, consumer, b"COUNT", 2, b"CLAIM", 5, b"STREAMS", key, b">"]],
            [[b"XAUTOCLAIM", key, group, consumer, 0, b"0-0", b"COUNT", 2]], [[b"XTRIM", key, b"MAXLEN", 20]],
            [[b"XTRIM", key, b"MAXLEN", 10, self.random.choice((b"DELREF", b"ACKED"))]],
            [[b"XGROUP", b"DELCONSUMER", key, group, consumer]], [[b"XGROUP", b"SETID", key, group, b"$"]],
            [[b"EVAL", STREAM_SCRIPT, 1, key, group]]))

    def nested(self):
        path = b"n:%d" % self.number(KEYS)
        for _ in range(self.number(3)):
            path += b".%s" % self.random.choice((b"a", b"b", b"c"))
        return [[b"KEYDB.NHSET", path, *self.members(3)]]

    def loglogs(self):
        return [self.random.choice(([b"PFADD", self.key(b"p"), *self.members()],
                                    [b"PFMERGE", self.key(b"p"), self.key(b"p"), self.key(b"p")]))]

    def deadlines(self):
        key = self.key(self.any_kind())
        return [self.random.choice((
            [b"PEXPIRE", key, self.delay()], [b"PEXPIRE", key, self.delay()], [b"PERSIST", key],
            [b"PEXPIRE", key, self.delay(), b"GT"], [b"EXPIRE", key, self.number(3)]))]

    def whole_keys(self):
        kind = self.any_kind()
        key, other = self.key(kind), self.key(kind)
        return [self.random.choice((
            [b"DEL", key], [b"UNLINK", key, other], [b"RENAME", key, other], [b"RENAMENX", key, other],
            [b"COPY", key, other, b"REPLACE"], [b"COPY", key, key, b"DB", self.number(DATABASES)],
            [b"MOVE", key, self.number(DATABASES)]))]

    def stores(self):
        return [self.random.choice((
            [b"SORT", self.key(b"S"), b"ALPHA", b"STORE", self.key(b"l")],
            [b"SORT", self.key(b"l"), b"ALPHA", b"LIMIT", 0, 10, b"STORE", self.key(b"l")],
            [b"ZUNIONSTORE", self.key(b"z"), 2, self.key(b"S"), self.key(b"z")],
            [b"SINTERSTORE", self.key(b"S"), self.key(b"S"), self.key(b"S")]))]

    def scripts(self):
        keys = [self.key(b"l") for _ in range(3)]
        return [[b"EVAL", SCRIPT, 3, *keys, self.number(100), self.bytes(), self.delay()]]

    def libraries(self):
        number = self.number(3)
        return [self.random.choice((
            [b"FUNCTION", b"LOAD", b"REPLACE", LIBRARY % (number, number)],
            [b"FUNCTION", b"DELETE", b"lib%d" % number], [b"FCALL", b"f%d" % number, 2, self.key(b"s"), self.key(b"z"),
                                                         self.member()],
            [b"FCALL", b"f%d" % number, 2, self.key(b"s"), self.key(b"z"), self.member()]))]

    def jobs(self):
        """Due in some years."""
        name = b"cron:%d" % self.number(5)
        return [self.random.choice(([b"KEYDB.CRON", name, b"SINGLE", 100000000000, b"return 1", 0], [b"DEL", name]))]

    def transaction(self):
        commands = []
        for _ in range(1 + self.number(6)):
            commands += [words for words in self.simple() if words[0] not in AT_A_TIME]
        if self.number(4) == 0:
            commands[len(commands) // 2:0] = [[b"SELECT", self.number(DATABASES)]]
        return [[b"MULTI"], *commands, [b"EXEC"]]

    def simple(self):
        return self.random.choice((Mix.strings, Mix.numbers, Mix.lists, Mix.sets, Mix.sorted_sets, Mix.hashes,
                                   Mix.streams, Mix.nested, Mix.deadlines, Mix.whole_keys))(self)

    def databases(self):
        return [[b"SWAPDB", self.number(DATABASES), self.number(DATABASES)]]

    # ---- large values

    def grow(self):
        """Of this size they are when nobody has deleted them."""
        kind, first = self.number(8), self.number(LARGE_MOST - CHUNK)
        numbers = range(first, first + CHUNK)
        if kind == 6:
            return [[b"SELECT", LARGE_DB], *self.grow_pending()]
        if kind == 7:
            return [[b"SELECT", LARGE_DB], *self.grow_nested(numbers)]
        return [[b"SELECT", LARGE_DB], [
            [b"HSET", b"L:h", *(word for number in numbers for word in (b"f%d" % number, number))],
            [b"ZADD", b"L:z", *(word for number in numbers for word in (number % 1000, b"m%d" % number))],
            [b"RPUSH", b"L:l", *numbers],
            [b"SADD", b"L:S", *(b"m%d" % number for number in numbers)],
            [b"SETRANGE", self.random.choice((b"L:s", b"L:t")), LARGE_BYTES - 1, b"x"],
            [b"XADD", b"L:x", b"*", *(word for number in numbers for word in (b"f", number))]][kind]]

    def grow_nested(self, numbers):
        """Some names have many children below them, and some a long list."""
        path = b"L:n.%s" % self.branch()
        return [[b"KEYDB.NHSET", path + b".list", *numbers],
                *([b"KEYDB.NHSET", path + b".%d" % number, number] for number in numbers)]

    def branch(self):
        return b"b%d.c%d" % (self.number(NESTED_BREADTH), self.number(NESTED_BREADTH))

    def change_nested(self):
        """A branch that is replaced comes back with the next one."""
        act, path = self.number(1000), b"L:n.%s" % self.branch()
        leaf = path + b".%d" % self.number(LARGE_MOST)
        if act < 700:
            return [b"KEYDB.NHSET", leaf, *self.members(3)]
        if act < 900:
            return [b"KEYDB.NHSET", leaf + b".deeper" * (1 + self.number(20)), self.bytes()]
        if act < 960:
            return [b"KEYDB.NHSET", path + b".list", *range(self.number(CHUNK) + 1)]
        if act < 999:
            return [b"KEYDB.NHSET", path if act < 995 else path[:path.rindex(b".")], self.member()]
        return [b"KEYDB.NHSET", b"L:n", 1, 2]

    def grow_pending(self):
        """Many small entries, and most of them are pending."""
        group, consumer = self.group(), self.consumer()
        return [[b"XGROUP", b"CREATE", b"L:g", group, 0, b"MKSTREAM"],
                [b"EVAL", ENTRIES_SCRIPT, 1, b"L:g", CHUNK, LARGE_PENDING],
                [b"XREADGROUP", b"GROUP", group, consumer, b"COUNT", CHUNK, b"STREAMS", b"L:g", b">"]]

    def group(self):
        return self.random.choice((b"g", b"g", b"g", b"h", b"i"))

    def consumer(self):
        return b"c%d" % self.number(4)

    def change_pending(self):
        """Ids are not known here: so scripts take some from among those that are pending."""
        key, group, consumer = b"L:g", self.group(), self.consumer()
        share, count = self.number(1000), self.random.choice((1, 5, 50, 200))
        act = self.number(1000)
        if act < 200:
            claim = self.random.choice(([], [b"CLAIM", 20]))
            return [[b"SELECT", LARGE_DB],
                    [b"XREADGROUP", b"GROUP", group, consumer, b"COUNT", count, *claim, b"STREAMS", key, b">"]]
        if act < 600:
            return [[b"SELECT", LARGE_DB],
                    [b"EVAL", PENDING_SCRIPT, 1, key, group, consumer, share, count,
                     self.random.choice((b"XACK", b"XCLAIM", b"XCLAIM JUSTID", b"XCLAIM RETRYCOUNT", b"XDEL",
                                         b"XDELEX", b"XACKDEL"))]]
        if act < 750:
            return [[b"SELECT", LARGE_DB], [b"XAUTOCLAIM", key, group, consumer, 0, self.random.choice((b"-", b"1-0")),
                                            b"COUNT", count]]
        if act < 995:
            return [[b"SELECT", LARGE_DB], self.random.choice((
                [b"XGROUP", b"CREATE", key, group, self.random.choice((b"0", b"$"))],
                [b"XGROUP", b"SETID", key, group, b"$"], [b"XGROUP", b"CREATECONSUMER", key, group, consumer],
                [b"XADD", key, b"*", b"f", b"v"]))]
        return [[b"SELECT", LARGE_DB], self.random.choice((
            [b"XGROUP", b"DELCONSUMER", key, group, consumer], [b"XGROUP", b"DESTROY", key, group],
            [b"XGROUP", b"SETID", key, group, b"0"]))]

    def change_large(self):
        number = self.number(LARGE_MOST)
        member, field = b"m%d" % number, b"f%d" % number
        fields = [b"f%d" % (number + i) for i in range(50)]
        return [[b"SELECT", LARGE_DB], self.random.choice((
            [b"HSET", b"L:h", field, self.bytes()], [b"HDEL", b"L:h", field], [b"HINCRBY", b"L:h", b"n", 1],
            [b"HPEXPIRE", b"L:h", self.delay(), b"FIELDS", 1, field],
            [b"HPEXPIRE", b"L:h", self.number(10 ** 8), b"FIELDS", len(fields), *fields],
            [b"HPERSIST", b"L:h", b"FIELDS", len(fields), *fields],
            [b"ZADD", b"L:z", self.number(1000), member], [b"ZREM", b"L:z", member], [b"ZPOPMAX", b"L:z", 2],
            [b"ZINCRBY", b"L:z", 1, member], [b"EXPIREMEMBER", b"L:z", member, self.delay(), b"ms"],
            [b"LSET", b"L:l", self.number(1000), self.bytes()], [b"LPOP", b"L:l"], [b"LPUSH", b"L:l", self.bytes()],
            [b"LINSERT", b"L:l", b"AFTER", b"%d" % number, b"new"], [b"LTRIM", b"L:l", 1, -2],
            [b"SADD", b"L:S", member], [b"SREM", b"L:S", member], [b"SPOP", b"L:S", 2],
            [b"EXPIREMEMBER", b"L:S", member, self.delay(), b"ms"], [b"PERSIST", b"L:S", member],
            [b"SETRANGE", b"L:s", self.number(LARGE_BYTES), self.bytes()],
            [b"SETBIT", b"L:s", self.number(8 * LARGE_BYTES), 1], [b"APPEND", b"L:s", b"y"],
            [b"BITFIELD", b"L:t", b"SET", b"u8", self.number(8 * LARGE_BYTES), self.number(256), b"INCRBY", b"u32",
             self.number(8 * LARGE_BYTES), 1], [b"SETRANGE", b"L:t", self.number(LARGE_BYTES), self.bytes()],
            [b"XADD", b"L:x", b"*", b"f", self.bytes()], [b"XTRIM", b"L:x", b"MAXLEN", 2000],
            *[self.change_nested() for _ in range(4)]))]

    def whole_large(self):
        key = self.random.choice((b"L:h", b"L:z", b"L:l", b"L:S", b"L:s", b"L:t", b"L:x", b"L:g", b"L:n"))
        return [[b"SELECT", LARGE_DB], self.random.choice((
            [b"DEL", key], [b"RENAME", key, key + b"2"], [b"RENAME", key + b"2", key],
            [b"COPY", key, key + b"2", b"REPLACE"], [b"MOVE", key, self.number(DATABASES)],
            [b"COPY", key, key, b"DB", self.number(DATABASES)], [b"PEXPIRE", key, self.delay()], [b"PERSIST", key],
            [b"ZUNIONSTORE", b"L:z2", 2, b"L:z", b"L:S"], [b"SUNIONSTORE", b"L:S2", 2, b"L:S"],
            [b"ZREMRANGEBYRANK", b"L:z2", 20, -21], [b"SPOP", b"L:S2", 5000]))]

    def fill_large(self):
        """At first, so that large values are there."""
        if not self.large:
            return []
        return [command for _ in range(400) for command in self.grow()]

    # ---- batches

    def batch(self):
        commands = [[b"SELECT", self.number(DATABASES)]]
        for _ in range(5 + self.number(25)):
            act = self.random.choices(self.functions, cum_weights=self.sums)[0]
            commands += act(self)
        if self.flush_every and self.number(self.flush_every) == 0:
            commands.append(self.random.choice(([b"FLUSHDB"], [b"FLUSHDB", b"ASYNC"], [b"FLUSHALL"],
                                                [b"FLUSHALL", b"ASYNC"])))
        return commands


ACTS = [(Mix.strings, 20), (Mix.numbers, 8), (Mix.bits, 5), (Mix.lists, 12), (Mix.sets, 12), (Mix.sorted_sets, 12),
        (Mix.hashes, 14), (Mix.streams, 14), (Mix.nested, 4), (Mix.loglogs, 2), (Mix.deadlines, 10),
        (Mix.whole_keys, 10), (Mix.stores, 3), (Mix.scripts, 2), (Mix.libraries, 1), (Mix.jobs, 0.5),
        (Mix.transaction, 4), (Mix.databases, 0.3)]
LARGE_ACTS = [(Mix.grow, 3), (Mix.change_large, 40), (Mix.change_pending, 40), (Mix.whole_large, 0.3)]
