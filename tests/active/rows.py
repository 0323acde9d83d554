"""Each write command against each other thing that can happen to its key, on two nodes that are cut off.

A row of ROWS: the group, what prepares the key before the cut (commands separated by ;), what the first node does, what
the second one does with the same command. "k" is the key of the case, "k2" and "k3" are further keys of it, {far} is a
deadline that does not come, {dump} a payload. Besides the second node's own command each row meets OTHERS.

All cases use keys of their own, so one cut is enough for all of them, each in both orders.
"""
import time

FAR_MS = 10 ** 8
# What may happen to a key on the other node meanwhile. KEYS_OF: commands that fit the type.
OTHERS = {
    "set": "SET k other", "del": "DEL k", "gone and a list": "DEL k; RPUSH k w", "expire": "PEXPIREAT k {far}",
    "persist": "PERSIST k", "rename away": "RENAME k k3", "nothing": "",
}
ADDS = {"string": "APPEND k x", "number": "INCRBY k 100", "list": "RPUSH k new", "set": "SADD k new",
        "hash": "HSET k f new g 9", "zset": "ZADD k 7 new 8 b", "stream": "XADD k 9-1 f v", "hll": "PFADD k p q r"}

ROWS = """
string | SET k ab | APPEND k cd | APPEND k ef
string | SET k ab | BITFIELD k SET u8 0 70 INCRBY u8 8 5 | BITFIELD k INCRBY u8 8 9
string | SET k2 abc; SET k3 abd | BITOP AND k k2 k3 | BITOP OR k k2 k3
list | RPUSH k a b c | LMOVE k k2 LEFT RIGHT | LMOVE k k2 RIGHT LEFT
list | RPUSH k a b c | BLMOVE k k2 LEFT RIGHT 0 | BRPOPLPUSH k k2 0
list | RPUSH k a b c | RPOPLPUSH k k | RPOPLPUSH k k
list | RPUSH k a b a c | BLMPOP 0 1 k LEFT COUNT 2 | LMPOP 1 k RIGHT COUNT 2
list | RPUSH k a b a c | BLPOP k 0 | BRPOP k 0
list | RPUSH k a b a c | LPOP k 2 | RPOP k 3
zset | ZADD k 1 a 2 b 3 c | BZMPOP 0 1 k MIN COUNT 2 | ZMPOP 1 k MAX COUNT 2
zset | ZADD k 1 a 2 b 3 c | BZPOPMAX k 0 | BZPOPMIN k 0
zset | ZADD k 1 a 2 b 3 c | ZPOPMIN k 2 | ZPOPMAX k 2
string | SET k2 v | COPY k2 k REPLACE | SET k2 w; COPY k2 k REPLACE
number | SET k 5 | DECR k | DECRBY k 7
number | SET k 5 | INCR k | INCRBY k 10
number | | INCR k | INCR k
number | SET k 9223372036854775800 | INCRBY k 7 | INCRBY k 6
number | SET k 1 | DEL k | INCR k
hash | HSET k f 1 g 2 | UNLINK k | HSET k h 3
list | RPUSH k a b | EXPDEL k | RPUSH k c
string | SET k v | EXPIRE k 100000 | EXPIRE k 200000 NX
string | SET k v PX {farms} | EXPIREAT k 4000000000 GT | PEXPIRE k 300000000 LT
string | SET k v | PEXPIREAT k {far} | PEXPIREAT k 1
hash | HSET k f 1 g 2 | EXPIREMEMBER k f 100000 | HSET k f 2
set | SADD k a b | PEXPIREMEMBERAT k a {far} | SREM k a
set | SADD k a b | EXPIREMEMBERAT k a 4000000000 | SADD k c
string | SET k v | GETDEL k | APPEND k w
string | SET k v | GETEX k PXAT {far} | GETEX k PERSIST
string | SET k v PXAT {far} | GETEX k PERSIST | APPEND k w
string | SET k v | GETSET k a | GETSET k b
zset | GEOADD k 13.4 52.5 a | GEOADD k 13.5 52.6 b | GEOADD k 13.6 52.7 a
zset | GEOADD k2 13.4 52.5 a 13.41 52.51 b | GEOSEARCHSTORE k k2 FROMMEMBER a BYRADIUS 100 km | ZADD k 1 z
zset | GEOADD k2 13.4 52.5 a 13.41 52.51 b | GEOSEARCHSTORE k k2 BYPOLYGON 3 13 52 14 52 13 54 | ZADD k 1 z
zset | GEOADD k2 13.4 52.5 a 13.41 52.51 b | GEORADIUS k2 13.4 52.5 100 km STORE k | GEORADIUSBYMEMBER k2 a 1 m STORE k
hash | HSET k f 1 g 2 h 3 | HDEL k f | HDEL k f g
hash | HSET k f 1 | HDEL k f | HSET k f 2
hash | HSET k f 1 g 2 | HEXPIRE k 100000 FIELDS 1 f | HSET k f 3
hash | HSET k f 1 g 2 | HPEXPIREAT k {far} FIELDS 2 f g | HPERSIST k FIELDS 1 f
hash | HSET k f 1 g 2 | HPEXPIRE k 1000000 FIELDS 1 f | HDEL k f
hash | HSET k f 5 | HINCRBY k f 3 | HINCRBY k f 4
hash | HSET k f 5 | HINCRBY k f 3 | HSET k f x
hash | HSET k f 1.5 | HINCRBYFLOAT k f 0.1 | HINCRBYFLOAT k f 0.2
string | SET k 1.5 | INCRBYFLOAT k 0.1 | INCRBYFLOAT k 0.2
string | SET k 1 | INCRBYFLOAT k 1e17 | INCRBYFLOAT k 3
hash | HSET k f 1 | HMSET k a 1 b 2 | HSET k b 3 c 4
hash | HSET k f 1 | HSETNX k n 1 | HSETNX k n 2
hash | HSET k f 1 | KEYDB.HRENAME k f n | HSET k f 2
hash | HSET k f 1 | KEYDB.NHSET k a b c v | KEYDB.NHSET k a b d w
list | RPUSH k a b c | LINSERT k BEFORE b x | LINSERT k AFTER b y
list | RPUSH k a b a c | LREM k 1 a | LREM k -1 a
list | RPUSH k a b c | LSET k 1 x | LPUSH k z
list | RPUSH k a b c d | LTRIM k 1 2 | RPUSH k e f
list | RPUSH k a | LPUSH k b c | LPUSH k d
list | RPUSH k a | RPUSH k b c | RPUSH k d
list | RPUSH k a | LPUSHX k b | RPUSHX k c
list | | RPUSH k a b | LPUSH k c
string | SET k v | MIGRATE | APPEND k w
string | SET k v | MOVE k 1 | APPEND k w
string | SET k v | RENAME k k2 | APPEND k w
list | RPUSH k a b; RPUSH k2 c | RENAME k k2 | RPUSH k2 d
hash | HSET k f v | RENAMENX k k2 | HSET k g w
string | SET k v | MSET k a k2 b | MSET k2 c k3 d
string | | MSETNX k a k2 b | MSETNX k c k2 d
string | SET k v PXAT {far} | PERSIST k | PEXPIREAT k {far2}
hll | PFADD k a b c | PFADD k d e | PFADD k e f g
hll | PFADD k2 a b; PFADD k3 c d | PFMERGE k k2 k3 | PFADD k x y
string | SET k v | PSETEX k 1000000000 a | SETEX k 1000000 b
string | SET k v PXAT {far} | SET k a KEEPTTL | SET k b
string | SET k v | SET k a KEEPTTL | PEXPIREAT k {far}
string | | SET k a NX | SET k b NX
string | SET k v | SET k a XX GET | SET k b XX
string | | SETNX k a | SETNX k b
list | RPUSH k a | RESTORE k 0 {dump} REPLACE | RPUSH k b
list | RPUSH k a | RESTORE k {far} {dump} REPLACE ABSTTL | RPUSH k b
set | SADD k a b | SADD k c | SADD k c d
set | SADD k a b | SREM k a | SADD k a c
set | SADD k a | SREM k a | SADD k b
set | SADD k 1 2 3 | SADD k 4 | SADD k text
set | SADD k2 a b; SADD k3 b c | SINTERSTORE k k2 k3 | SADD k z
set | SADD k2 a b; SADD k3 b c | SDIFFSTORE k k2 k3 | SUNIONSTORE k k2 k3
set | SADD k2 a b; SADD k3 c | SUNIONSTORE k k2 k3 | SREM k a
string | SET k abc | SETBIT k 7 1 | SETBIT k 100 1
string | SET k abc | SETRANGE k 1 XY | SETRANGE k 10 Z
set | SADD k a b | SMOVE k k2 a | SMOVE k k2 b
set | SADD k a b | SMOVE k k2 a | SREM k a
list | RPUSH k2 3 1 2 | SORT k2 STORE k | RPUSH k 9
set | SADD k a b c | SPOP k | SPOP k
set | SADD k a b c | SPOP k 3 | SADD k d
stream | XADD k 1-1 f v; XGROUP CREATE k g 0; XREADGROUP GROUP g u STREAMS k > | XACK k g 1-1 | XADD k 2-1 f w
stream | XADD k 1-1 f v; XADD k 2-1 f w | XDEL k 1-1 | XADD k 3-1 f x
stream | XADD k 1-1 f v | XADD k 5-1 f a | XADD k 5-2 f b
stream | XADD k 1-1 f v | XADD k 5-1 f a | XADD k 5-1 f b
stream | XADD k 1-1 f v | XADD k IDMP p i * f a | XADD k IDMP p i * f b
stream | XADD k IDMP p i * f v | XCFGSET k IDMP-MAXSIZE 5 | XADD k IDMP p j * f b
stream | XADD k 1-1 f v | XIDMPRECORD k p i 1-1 | XCFGSET k IDMP-DURATION 7
stream | XADD k 1-1 f v | XADD k * f a | XADD k * f b
stream | XADD k 1-1 f v; XADD k 2-1 f w | XADD k MAXLEN 2 5-1 f a | XADD k MAXLEN 2 6-1 f b
stream | | XADD k 5-1 f a | XADD k 6-1 f b
stream | XADD k 1-1 f v; XGROUP CREATE k g 0; XREADGROUP GROUP g u STREAMS k > | XCLAIM k g w 0 1-1 | XACK k g 1-1
stream | XADD k 1-1 f v; XGROUP CREATE k g 0; XREADGROUP GROUP g u STREAMS k > | XAUTOCLAIM k g w 0 0 | XADD k 2-1 f w
stream | XADD k 1-1 f v; XGROUP CREATE k g 0; XREADGROUP GROUP g u STREAMS k > | XNACK k g FAIL IDS 1 1-1 | \
XCLAIM k g w 0 1-1
stream | XADD k 1-1 f v; XGROUP CREATE k g 0; XREADGROUP GROUP g u STREAMS k > | \
XREADGROUP GROUP g w CLAIM 0 STREAMS k > | XACK k g 1-1
stream | XADD k 1-1 f v | XGROUP CREATE k g 0 | XGROUP CREATE k g $
stream | XADD k 1-1 f v; XADD k 2-1 f v; XGROUP CREATE k g 0 | XGROUP SETID k g 2-1 | XREADGROUP GROUP g u STREAMS k >
stream | XADD k 1-1 f v; XGROUP CREATE k g 0 | XGROUP CREATECONSUMER k g u | XGROUP DELCONSUMER k g u
stream | XADD k 1-1 f v; XGROUP CREATE k g $ | XREADGROUP GROUP g u STREAMS k > | XCLAIM k g w 0 1-1
stream | XADD k 1-1 f v; XGROUP CREATE k g $ | XAUTOCLAIM k g u 0 0 | XGROUP DESTROY k g
stream | XADD k 1-1 f v; XGROUP CREATE k g 0 | XGROUP SETID k g 1-1 ENTRIESREAD 9 | XADD k 2-1 f w
stream | XADD k 1-1 f v; XGROUP CREATE k g 0 | XGROUP DESTROY k g | XREADGROUP GROUP g u STREAMS k >
stream | XADD k 1-1 f v; XADD k 2-1 f v; XGROUP CREATE k g 0 | {read} u COUNT 1 STREAMS k > | {read} w STREAMS k >
stream | XADD k 1-1 f v; XGROUP CREATE k g 0 | XREADGROUP GROUP g u NOACK STREAMS k > | XADD k 3-1 f x
stream | XADD k 1-1 f v; XGROUP CREATE k g 0 | XADD k 5-1 f w; XREADGROUP GROUP g u STREAMS k > | XADD k 4-1 f x
stream | XADD k 1-1 f v; XGROUP CREATE k g 0 | XADD k 5-1 f w; {read} u COUNT 1 STREAMS k > | XADD k 4-1 f x; \
{read} w STREAMS k >
stream | XADD k 1-1 f v; XGROUP CREATE k g 0; {read} u STREAMS k >; XCLAIM k g w 0 1-1 | \
XGROUP SETID k g 0; {read} v STREAMS k > | XADD k 2-1 f w
stream | XADD k 1-1 f v | XSETID k 9-9 | XADD k 5-1 f a
stream | XADD k 1-1 f v; XADD k 2-1 f w; XADD k 3-1 f x | XTRIM k MAXLEN 1 | XADD k 4-1 f y
stream | XADD k 1-1 f v; XADD k 2-1 f w; XGROUP CREATE k g 0; {read} u STREAMS k > | XDELEX k DELREF IDS 1 1-1 | \
XCLAIM k g w 0 1-1
stream | XADD k 1-1 f v; XGROUP CREATE k g 0; {read} u STREAMS k > | XACKDEL k g ACKED IDS 1 1-1 | XACK k g 1-1
stream | XADD k 2-1 f v; XADD k 3-1 f w; XGROUP CREATE k g 0; {read} u STREAMS k > | XTRIM k MAXLEN 1 DELREF | \
XADD k 1-1 f x
stream | XADD k 2-1 f v; XGROUP CREATE k g $ | XADD k ACKED MAXLEN 1 3-1 f w | XADD k ACKED MAXLEN 1 4-1 f x
zset | ZADD k 1 a 2 b | ZADD k 5 a | ZADD k 6 a 7 c
zset | ZADD k 1 a 2 b | ZADD k GT 5 a | ZADD k LT 0 a
zset | ZADD k 1 a 2 b | ZADD k NX 5 n | ZADD k NX 6 n
zset | ZADD k 1 a 2 b | ZADD k XX 5 a | ZREM k a
zset | ZADD k 1 a | ZADD k INCR 2 a | ZINCRBY k 3 a
zset | ZADD k 0.1 a | ZINCRBY k 0.2 a | ZINCRBY k 0.3 a
zset | ZADD k inf a | ZINCRBY k 1 a | ZADD k -inf a
zset | ZADD k2 1 a 2 b; ZADD k3 5 b 6 c | ZDIFFSTORE k 2 k2 k3 | ZINTERSTORE k 2 k2 k3
zset | ZADD k2 1 a 2 b; ZADD k3 5 b 6 c | ZUNIONSTORE k 2 k2 k3 | ZADD k 9 z
zset | ZADD k2 1 a 2 b 3 c | ZRANGESTORE k k2 0 1 | ZADD k 9 z
zset | ZADD k 1 a 2 b | ZREM k a | ZADD k 3 a
zset | ZADD k 1 a | ZREM k a | ZADD k 3 b
zset | ZADD k 0 a 0 b 0 c 0 d | ZREMRANGEBYLEX k [a [b | ZADD k 0 aa
zset | ZADD k 1 a 2 b 3 c | ZREMRANGEBYRANK k 0 1 | ZADD k 0 z
zset | ZADD k 1 a 2 b 3 c | ZREMRANGEBYSCORE k 1 2 | ZADD k 1.5 z
"""

# What a few cases have to end with, whatever operations say: (setup, first, second, command, its reply).
EXPECTED = [
    ("SET k 1", "INCR k; INCR k; INCR k", "INCR k", "GET k", b"5"),
    ("SET k 1", "INCR k; INCR k; INCR k", "SET k 10", "GET k", b"10"),
    ("SET k 1", "SET k 10", "INCR k; INCR k; INCR k", "GET k", b"13"),
    ("SET k a", "SET k b", "SET k c", "GET k", b"c"),
    ("SET k a", "SET k b", "DEL k", "EXISTS k", b"0"),
    ("SET k a", "DEL k", "SET k c", "GET k", b"c"),
    ("SET k a", "DEL k", "APPEND k c", "GET k", b"c"),
    ("SET k a", "APPEND k b", "APPEND k c", "GET k", b"abc"),
    ("SET k a", "APPEND k b", "DEL k", "EXISTS k", b"0"),
    ("SADD k a", "SADD k b", "SADD k c", "SCARD k", b"3"),
    ("SADD k a", "SREM k a", "SADD k c", "SMEMBERS k", [b"c"]),
    ("SADD k a b", "SREM k a", "SREM k b", "EXISTS k", b"0"),
    ("SADD k a", "DEL k", "SADD k b", "SMEMBERS k", [b"b"]),
    ("HSET k f 1", "HINCRBY k f 2", "HINCRBY k f 3", "HGET k f", b"6"),
    ("HSET k f 1", "HSET k f 2", "HINCRBY k f 3", "HGET k f", b"5"),
    ("HSET k f 1", "HINCRBY k f 3", "HSET k f 2", "HGET k f", b"2"),
    ("RPUSH k a", "RPUSH k b", "RPUSH k c", "LRANGE k 0 -1", [b"a", b"b", b"c"]),
    ("RPUSH k a", "LPUSH k b", "LPUSH k c", "LRANGE k 0 -1", [b"c", b"b", b"a"]),
    ("RPUSH k a b c", "LPOP k", "LPOP k", "LRANGE k 0 -1", [b"b", b"c"]),
    ("RPUSH k a b c", "LPOP k", "RPOP k", "LRANGE k 0 -1", [b"b"]),
    ("RPUSH k a", "SET k v", "RPUSH k b", "GET k", b"v"),
    ("RPUSH k a", "RPUSH k b", "SET k v", "GET k", b"v"),
    ("RPUSH k a b c d", "LTRIM k 1 2", "RPUSH k e", "LRANGE k 0 -1", [b"b", b"c", b"e"]),
    ("ZADD k 1 a", "ZINCRBY k 2 a", "ZINCRBY k 3 a", "ZSCORE k a", b"6"),
    ("ZADD k 1 a", "ZADD k GT 5 a", "ZADD k GT 3 a", "ZSCORE k a", b"5"),
    ("ZADD k 1 a", "ZREM k a", "ZADD k 3 b", "ZRANGE k 0 -1", [b"b"]),
    ("XADD k 1-1 f v", "XADD k 5-1 f a", "XADD k 4-1 f b", "XLEN k", b"3"),
    ("XADD k 1-1 f v", "XADD k 5-1 f a", "XADD k 5-1 f b", "XLEN k", b"2"),
    ("XADD k 1-1 f v; XGROUP CREATE k g 0", "XADD k 5-1 f a; XREADGROUP GROUP g u STREAMS k >", "XADD k 4-1 f b",
     "XPENDING k g", [b"3", b"1-1", b"5-1", [[b"keydb:late", b"1"], [b"u", b"2"]]]),
    ("XADD k 1-1 f v; XGROUP CREATE k g $", "XADD k 2-1 f x", "XADD k ACKED MAXLEN 1 3-1 f w", "XLEN k", b"2"),
    ("SET k v", "SET k w KEEPTTL", "PEXPIREAT k {far}", "PEXPIRETIME k", b"{far}"),
    ("SET k v", "PEXPIREAT k {far}", "SET k w KEEPTTL", "PEXPIRETIME k", b"{far}"),
    ("SET k v", "PEXPIREAT k {far}", "SET k w", "PEXPIRETIME k", b"-1"),
    ("SET k v", "RENAME k k2", "SET k w", "MGET k k2", [b"w", b"v"]),
    ("SET k v", "SET k w", "RENAME k k2", "MGET k k2", [None, b"v"]),
    ("SET k 5", "INCRBYFLOAT k 0.5", "INCRBYFLOAT k 0.25", "GET k", b"5.75"),
    ("SET k a", "SETRANGE k 3 d", "SETRANGE k 1 b", "GET k", b"ab\0d"),
    ("SET k v", "COPY k k2", "SET k w", "MGET k k2", [b"w", b"v"]),
]


class Case:
    def __init__(self, name, setup, first, second):
        """first: (0 or 1: the node, commands); second: those of the other one, behind it."""
        self.name, self.setup, self.first, self.second = name, setup, first, second


class Filler:
    """Turns text into words of a case."""

    def __init__(self, dump):
        self.far = int(time.time() * 1000) + FAR_MS
        self.values = {b"{far}": b"%d" % self.far, b"{far2}": b"%d" % (self.far + 12345), b"{farms}": b"%d" % FAR_MS,
                       b"{dump}": dump}
        self.migrate = None         # words of MIGRATE but for the key

    def fill(self, word, prefix):
        if word in (b"k", b"k2", b"k3"):
            return prefix + b":" + word
        return self.values.get(word, word)

    def commands(self, text, prefix):
        result = []
        for command in text.replace("{read}", "XREADGROUP GROUP g").split(";"):
            words = command.encode().split()
            if words == [b"MIGRATE"]:
                words = [b"MIGRATE", b"127.0.0.1", b"%d" % self.migrate, prefix + b":k", b"0", b"5000", b"REPLACE"]
            if words:
                result.append([self.fill(word, prefix) for word in words])
        return result


def all_cases(filler, wanted=None):
    for number, line in enumerate(ROWS.strip().splitlines()):
        kind, setup, act, own = (part.strip() for part in line.split("|"))
        name = act.split()[0]
        if wanted and wanted.upper() not in line.upper():
            continue
        if name == "MIGRATE" and filler.migrate is None:
            continue
        others = dict(OTHERS, own=own, add=ADDS[kind])
        for what, other in others.items():
            for order in ("first", "last"):
                text = "%d %s, then %s: %s" % (number, act, what, other)
                if order == "last":
                    text = "%d %s: %s, then %s" % (number, what, other, act)
                prefix = (b"%d/%s/%s" % (number, what.encode(), order.encode())).replace(b" ", b"-")
                acts = [(0, filler.commands(act, prefix)), (1, filler.commands(other, prefix))]
                if order == "last":
                    acts.reverse()
                yield prefix, Case(text, filler.commands(setup, prefix), *acts)
