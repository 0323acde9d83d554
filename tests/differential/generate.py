"""Makes commands: valid ones, nearly valid ones and nonsense.

Two sources. The generic one walks the argument tree of COMMAND DOCS, so that it covers every command there is. The
tuned one fills in templates (the rows of TEMPLATES) that reach deeper into a family. What comes out of either may then
be damaged. In the end `defuse` takes out what two servers cannot do alike: deadlines in the near future, and counts
that would cost gigabytes.

A command is an item (connection, words). Item words may also be ("@sleep", milliseconds), obeyed by the runner.
"""
import random
import time

import interleave
import scripts
from facts import suitable, TAKES_NAMES
from payloads import payload

FAMILY_OF_GROUP = {"string": "s", "bitmap": "s", "list": "l", "set": "t", "hash": "h", "sorted_set": "z",
                   "sorted-set": "z", "geo": "g", "stream": "x", "hyperloglog": "p"}
KEYS = {family: [(family + str(number)).encode() for number in range(5)] for family in "slthzgxp"}
ZSET_KEYS = KEYS["z"] + [b"zlex", b"ylex", b"nz", b"wz"]
LIBRARIES = [b"#!lua name=one\nredis.register_function('put', function(k, a) return redis.call('SET', k[1], a[1]) end)",
             b"#!lua name=one\nredis.register_function('both', function(k, a) redis.call('SET', k[1], a[1]) "
             b"redis.call('PUBLISH', 'a', a[1]) return redis.call('APPEND', k[1], 'x') end)",
             b"#!lua name=two\nredis.register_function('add', function(k) return redis.call('INCR', k[1]) end)\n"
             b"redis.register_function{function_name='look', flags={'no-writes'}, callback=function(k) "
             b"return redis.call('GET', k[1]) end}",
             b"#!lua name=two\nredis.register_function('put', function() return 2 end)", b"#!lua name=one\nnonsense(",
             b"no library"]
ON_PLACES = {b"ZREM", b"ZRANK", b"ZRANGE", b"ZMSCORE", b"DEL", b"TYPE", b"EXISTS"}
ODD_KEYS = [b"", b"a b", b"\x00\xff\r\n", b"{tag}1", b"{tag}2", b"key:" + b"k" * 300, b"*", b"[s]0", b"missing"]
INTEGERS = [0, 1, -1, 2, 3, -2, 5, 7, 10, 16, 63, 64, 100, 255, 1000, 32767, 32768, 65536, -32769, 2**31 - 1, 2**31,
            -2**31, -2**31 - 1, 2**32, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63 - 2, 2**63, -2**63, -2**63 + 1,
            -2**63 - 1, 2**64 - 1, 2**64, 10**20, 9999, 10000, 1048575, 1048576, 1048577, 8388607, 8388608]
NOT_INTEGERS = [b"", b" 1", b"1 ", b"+1", b"01", b"-0", b"0x10", b"1e3", b"1.0", b"abc", b"1\x00", b"--1", b"-",
                b"9223372036854775808", b"\xff"]
# Elements to be sorted. None of them makes strtod of the oracle overflow: it takes the next number for wrong, too.
NUMBERS = [b"1.5", b"-2.25", b"1e3", b"0x10", b" 7", b"+5", b"01", b"1.0", b"inf", b"-inf", b"-0", b"", b"9" * 20,
           b"123456789012345678", b"-9223372036854775808", b"0.1", b".5", b"5."]
NAMES = [b"a", b"b", b"c", b"d", b"A", b"ab", b"a b", b"\xff", b"*", b"->", b"a->f", b"nan", b"1x", b"x" * 70]
FLOATS = [b"0", b"1", b"-1", b"1.5", b"-2.25", b"0.1", b"3.0e3", b"1e-7", b"1e17", b"1e21", b"123456789.123456789",
          b"5.0", b"inf", b"-inf", b"+inf", b"Infinity", b"nan", b"-nan", b"1e308", b"1e309", b"1e4932", b"1e5000",
          b"1e-400", b"0x1p3", b".5", b"5.", b"1 ", b" 1", b"", b"abc", b"1e", b"--1", b"1.1.1", b"00001.5", b"-0",
          b"-0.0", b"3.141592653589793238462643383279", b"9223372036854775807", b"1\x00"]
STRINGS = [b"", b"a", b"ab", b"abc", b"hello world", b"0", b"1", b"-1", b"10", b"12345", b"9223372036854775807",
           b"9223372036854775808", b"-9223372036854775808", b"3.5", b"1e3", b"01", b"+5", b" 7", b"\x00", b"\r\n",
           b"\xff\xfe\x00\x01", b"x" * 44, b"x" * 45, b"y" * 64, b"z" * 20, b"z" * 21, b"w" * 128, b"q" * 1000,
           "gr\u00fc\u00df".encode(), b"nan", b"inf", b"OK", b"$-1", b"*3"]
PATTERNS = [b"*", b"?", b"s*", b"*1", b"[sl]?", b"[^s]*", b"[a-z]?", b"[z-a]?", b"\\*", b"\\", b"[", b"[a", b"[\\]]*",
            b"*" * 8 + b"x", b"s[0-2]", b"", b"??", b"{tag}*", b"S*", b"[s]0", b"\\[s\\]0", b"s\\0", b"*\x00*", b"[]x"]
TYPES = [b"string", b"list", b"set", b"hash", b"zset", b"stream", b"STRING", b"nosuch", b""]
TOKENS = [b"EX", b"PX", b"EXAT", b"PXAT", b"NX", b"XX", b"GT", b"LT", b"KEEPTTL", b"GET", b"PERSIST", b"MATCH",
          b"COUNT", b"TYPE", b"REPLACE", b"DB", b"LEN", b"IDX", b"MINMATCHLEN", b"WITHMATCHLEN", b"ASYNC", b"SYNC",
          b"LIMIT", b"BY", b"STORE", b"WITHSCORES", b"BIT", b"BYTE", b"nx", b"Ex", b"pX", b"get", b"\xff"]
RADII = [b"0", b"1", b"50", b"150.5", b"200", b"1000", b"5000", b"20000", b"1e6", b"-1", b"x", b"3e7"]
UNITS = [b"m", b"km", b"km", b"km", b"KM", b"ft", b"mi", b"MI", b"yd"]
TTL_ARGUMENTS = {"seconds", "milliseconds", "unix-time-seconds", "unix-time-milliseconds", "ttl"}
FAR_FUTURE_S = 100000
UNTIMELY = {b"SELECT", b"RESET", b"SWAPDB", b"MULTI", b"MOVE", b"COPY"}

# Rows: weight, profile (also the letter of its keys), words. {k} key of the family, {K} any key, {v} string,
# {i} integer, {n} small integer, {f} float, {p} pattern, {d} database, {s} seconds from now, {ms}, {at}, {atms},
# {c} count 0..5, {m} member out of a few, {e} element out of many, {id} stream id, {xid} a new one, {oid} one that
# may be there, {g} group, {u} consumer, {type}, {cmd} any whole command, {name} a command's name, {num} and {el}
# elements to be sorted, {wk} and {hk} keys of their weights, {point} longitude and
# latitude, {r} radius, {un} unit, {pay} what DUMP gives.
# A trailing * repeats the word before it zero to three times; [a|b] is one of them, [a|] may be left out.
TEMPLATES = """
9 string  SET {k} {v}
4 string  SET {k} {i}
6 string  SET {K} {v} [NX|XX|GET|KEEPTTL|] [GET|NX|XX|KEEPTTL|]
5 string  SET {k} {v} [EX|ex] {s} [NX|XX|GET|]
4 string  SET {k} {v} PX {ms} [NX|XX|GET|]
3 string  SET {k} {v} [NX|XX|] [EXAT|exat] {at} [GET|]
3 string  SET {k} {v} PXAT {atms} [XX|KEEPTTL|]
6 string  GET {K}
3 string  GETSET {K} {v}
3 string  GETDEL {K}
2 string  GETEX {K}
4 string  GETEX {k} [EX|PX|EXAT|PXAT] {s}
2 string  GETEX {k} [PERSIST|EXAT|PXAT] [{at}|]
3 string  SETEX {k} {s} {v}
3 string  PSETEX {k} {ms} {v}
3 string  SETNX {K} {v}
4 string  MSET {k} {v} {K} {v}
2 string  MSET {k} {v} {k}
3 string  MSETNX {K} {v} {k} {v}
5 string  MGET {K} {K} {k}
8 string  INCR {k}
3 string  DECR {k}
5 string  [INCRBY|DECRBY] {k} {i}
6 string  INCRBYFLOAT {k} {f}
6 string  APPEND {k} {v}
5 string  SETRANGE {k} {n} {v}
2 string  SETRANGE {k} {i} {v}
5 string  [GETRANGE|SUBSTR] {k} {i} {i}
3 string  GETRANGE {k} {n} {n}
3 string  STRLEN {K}
4 string  LCS {k} {k} [LEN|IDX|] [MINMATCHLEN|] [{n}|] [WITHMATCHLEN|]
2 string  LCS {k} {k} IDX MINMATCHLEN {i} WITHMATCHLEN
3 bitmap  SETBIT {k} {n} [0|1|2]
2 bitmap  SETBIT {k} {i} [0|1]
3 bitmap  GETBIT {k} {i}
3 bitmap  BITCOUNT {k} {n} {n} [BIT|BYTE|]
3 bitmap  BITPOS {k} [0|1] {n} {n} [BIT|BYTE|]
3 bitmap  BITOP [AND|OR|XOR|NOT] {k} {k} [{k}|]
3 bitmap  BITFIELD {k} [SET|INCRBY] [u8|i16|u63|i64|u64|i5] [#1|{n}] {i} OVERFLOW [WRAP|SAT|FAIL] INCRBY u8 {n} {i}
3 bitmap  BITFIELD {k} OVERFLOW [WRAP|SAT|FAIL] [SET|INCRBY] [u2|i3|u8|i64|u63|i33] [#0|#3|{n}] {i} GET i8 {n}
2 bitmap  BITFIELD {K} [GET|get] [u1|i1|u7|i64|u63] [#2|{n}] [GET|] [u9|] [{n}|]
2 bitmap  BITFIELD_RO {K} [GET|SET] [u8|i5|u64|i64] [#3|{n}] [{i}|]
2 bitmap  BITCOUNT {K} {i} {i} [BIT|BYTE|bit|]
2 bitmap  BITPOS {K} [0|1] {i} {i} [BIT|BYTE|]
3 bitmap  BITPOS {k} [0|1] [{n}|]
3 bitmap  BITOP [AND|OR|XOR|and] {k} {k} {K} {k}
6 keys    DEL {K} {K}
4 keys    UNLINK {K} {K} {K}
5 keys    EXISTS {K} {K} {K}
3 keys    TOUCH {K} {K}
4 keys    TYPE {K}
7 keys    EXPIRE {K} {s} [NX|XX|GT|LT|]
5 keys    PEXPIRE {K} {ms} [NX|XX|GT|LT|]
5 keys    EXPIREAT {K} {at} [NX|XX|GT|LT|]
5 keys    PEXPIREAT {K} {atms} [NX|XX|GT|LT|]
2 keys    EXPIRE {K} {s} [NX|XX|GT|LT] [NX|XX|GT|LT]
4 keys    [EXPIRE|PEXPIRE|EXPIREAT|PEXPIREAT] {K} {i}
6 keys    [TTL|PTTL|EXPIRETIME|PEXPIRETIME] {K}
4 keys    PERSIST {K}
5 keys    RENAME {K} {K}
4 keys    RENAMENX {K} {K}
6 keys    COPY {K} {K} [REPLACE|]
5 keys    COPY {K} {K} DB {d} [REPLACE|]
5 keys    MOVE {K} {d}
5 keys    OBJECT [ENCODING|REFCOUNT|encoding] {K}
1 keys    OBJECT [IDLETIME|FREQ|NOSUCH] {K}
4 keys    KEYS {p}
2 keys    SCAN 0 MATCH {p} COUNT 1000
2 keys    SCAN 0 COUNT 1000 TYPE {type}
1 keys    SCAN {i} COUNT {i}
3 keys    DBSIZE
4 keys    DEBUG OBJECT {K}
5 db      SELECT {d}
2 db      SELECT {i}
3 db      SWAPDB {d} {d}
1 db      SWAPDB {i} {d}
1 db      FLUSHDB [ASYNC|SYNC|NOSUCH|]
1 db      FLUSHALL [ASYNC|SYNC|]
3 db      DBSIZE
2 conn    PING [{v}|]
2 conn    ECHO {v}
1 conn    RESET
1 conn    HELLO [2|3|4|1|abc|]
1 conn    HELLO [2|3] SETNAME {m}
1 conn    HELLO 3 [AUTH|SETNAME|NOSUCH] {m}
1 conn    HELLO 2 AUTH default {m}
1 conn    AUTH {v}
1 conn    AUTH default {v}
1 conn    CLIENT GETNAME
1 conn    CLIENT SETNAME {v}
1 conn    TIME
4 command COMMAND GETKEYS {cmd}
4 command COMMAND GETKEYSANDFLAGS {cmd}
3 command COMMAND INFO {name} [{name}|]
1 command COMMAND LIST
1 command COMMAND LIST FILTERBY [ACLCAT|PATTERN] [read|write|string|keyspace|s*|*et|nosuch]
1 command COMMAND LIST FILTERBY MODULE {m}
1 command COMMAND [COUNT|NOSUCH]
5 list    [RPUSH|LPUSH|RPUSHX|LPUSHX] {k} {v} [{v}|] [{i}|]
4 list    [LPOP|RPOP] {k} [{c}|]
4 list    LRANGE {k} {n} {n}
2 list    LINDEX {k} {n}
2 list    LSET {k} {n} {v}
2 list    LINSERT {k} [BEFORE|AFTER] {v} {v}
2 list    LREM {k} {n} {v}
2 list    LTRIM {k} {n} {n}
2 list    LMOVE {k} {k} [LEFT|RIGHT] [LEFT|RIGHT]
2 list    LPOS {k} {v} [RANK|] [{n}|] COUNT {c}
2 list    LMPOP {c} {k} {k} [LEFT|RIGHT] [COUNT|] [{c}|]
2 list    LLEN {k}
3 list    [RPUSH|LPUSH] {k} {m} {m} {m} {v} {i}
2 list    LINSERT {k} [BEFORE|AFTER] {m} {v}
2 list    LREM {k} {n} {m}
2 list    LPOS {k} {m} [RANK|] [{n}|] COUNT {c} [MAXLEN|] [{c}|]
2 list    RPOPLPUSH {k} {K}
2 list    [LRANGE|LTRIM] {k} {i} {i}
6 set     SADD {k} {m} [{m}|] [{i}|]
3 set     SREM {k} {m} [{m}|]
3 set     [SISMEMBER|SMISMEMBER] {k} {m} [{m}|]
2 set     SMOVE {k} {k} {m}
3 set     [SINTER|SUNION|SDIFF] {k} {k}
3 set     [SINTERSTORE|SUNIONSTORE|SDIFFSTORE] {k} {k} {k}
2 set     SINTERCARD {c} {k} {k} LIMIT {c}
2 set     SMEMBERS {k}
2 set     SPOP {k} [{c}|]
2 set     SRANDMEMBER {k} [{n}|]
2 set     [SCARD|SMEMBERS] {K}
2 set     SSCAN {k} 0 [MATCH|COUNT|NOSUCH] [{p}|{c}]
3 set     SADD {k} {e} {e} {e} {i}
6 hash    HSET {k} {m} {v} [{m}|] [{v}|]
3 hash    [HGET|HEXISTS|HSTRLEN|HDEL|HMGET] {k} {m}
3 hash    HINCRBY {k} {m} {i}
3 hash    HINCRBYFLOAT {k} {m} {f}
3 hash    [HGETALL|HKEYS|HVALS|HLEN] {k}
2 hash    HSETNX {k} {m} {v}
2 hash    HRANDFIELD {k} [{n}|] [WITHVALUES|]
2 hash    HSCAN {k} 0 [MATCH|COUNT|NOSUCH] [{p}|{c}]
2 hash    [HMGET|HDEL] {K} {m} {m} {v}
2 hash    HMSET {k} {m} {i} {m} {f}
6 zset    ZADD {k} [NX|XX|GT|LT|] [CH|INCR|] {f} {m} [{f}|] [{m}|]
4 zset    ZADD {k} {n} {m} {n} {m}
3 zset    ZINCRBY {k} {f} {m}
3 zset    [ZRANK|ZREVRANK|ZSCORE|ZREM] {k} {m}
4 zset    [ZRANGE|ZREVRANGE] {k} {n} {n} [WITHSCORES|]
4 zset    [ZRANGEBYSCORE|ZCOUNT|ZREMRANGEBYSCORE] {k} [-inf|(1|{f}] [+inf|(5|{f}]
5 zset    ZADD [zlex|ylex] 0 {m} 0 {m} 0 {v} 0 {e}
4 zset    [ZRANGEBYLEX|ZLEXCOUNT|ZREMRANGEBYLEX] [zlex|ylex] [-|[a|(m1|[{v}|({m}] [+|[m3|(z|[{v}|-]
3 zset    [ZRANGEBYLEX|ZREVRANGEBYLEX] [zlex|ylex] [-|(m1|+|[m4] [+|(m5|[{e}|-|[m2] LIMIT {n} {n}
2 zset    ZRANGE [zlex|ylex] [-|(m1|+|[m4] [+|[m5|-] BYLEX [REV|] LIMIT {c} {n}
2 zset    ZREVRANGEBYLEX [zlex|ylex] [+|[m5|(m4|m] [-|[m1|(m2|[]
1 zset    ZRANGESTORE [zlex|ylex] [zlex|ylex] [-|(m1|+|[m4] [+|[m5|-] BYLEX [REV|]
4 zset    [ZUNION|ZINTER|ZDIFF] {c} {k} {k} [WITHSCORES|]
3 zset    [ZUNIONSTORE|ZINTERSTORE|ZDIFFSTORE] {k} 2 {k} {k} [WEIGHTS|] [{n}|] [{n}|]
3 zset    [ZPOPMIN|ZPOPMAX] {k} [{c}|]
2 zset    ZMPOP 2 {k} {k} [MIN|MAX] COUNT {c}
6 zset    ZADD {k} 0 {m} 0 {m} 0 {m} 0 {m}
3 zset    ZADD {k} [NX|XX|GT|LT|CH|gt] [NX|XX|GT|LT|CH|INCR|] {n} {m} [{n}|] [{m}|]
3 zset    ZADD {k} {n} {v} {f} {m} {i} {m}
2 zset    ZADD {k} {f} {e} {n} {e} {n} {e} {n} {e} {n} {e} {n} {e} {n} {e} {n} {e} {n} {e} {n} {e}
2 zset    ZADD {k} {n} {e} {f} {v}
3 zset    ZRANGE {k} {n} {n} [WITHSCORES|REV|LIMIT|] [WITHSCORES|REV|]
5 zset    ZRANGE {k} [-inf|({n}|{f}|{n}] [+inf|({n}|{f}|{n}] BYSCORE [REV|] [WITHSCORES|] [LIMIT|] [{n}|] [{n}|]
3 zset    ZRANGE {k} [+inf|({n}|{f}|{n}] [-inf|({n}|{f}|{n}] BYSCORE REV WITHSCORES LIMIT {c} [{n}|{i}]
3 zset    [ZRANGEBYSCORE|ZREVRANGEBYSCORE] {k} [-inf|({n}|{f}|{n}] [+inf|({n}|{f}|{n}] WITHSCORES LIMIT {c} {n}
3 zset    ZREVRANGEBYSCORE {k} [+inf|({n}|{f}|{n}] [-inf|({n}|{f}|{n}] [WITHSCORES|LIMIT|]
3 zset    [ZCOUNT|ZREMRANGEBYSCORE] {k} [-inf|({n}|{f}|({f}] [+inf|({n}|{f}|({f}]
3 zset    ZREMRANGEBYRANK {k} {n} {n}
3 zset    ZRANGESTORE {K} {k} {n} {n} [REV|]
3 zset    ZRANGESTORE {k} {k} [-inf|({n}|{n}] [+inf|({n}|{n}] BYSCORE [LIMIT|] [{c}|] [{n}|]
3 zset    ZMSCORE {k} {m} {m} {v}
3 zset    [ZRANK|ZREVRANK|ZSCORE|ZREM] {k} {v}
3 zset    [ZREM|ZMSCORE] {k} {m} {m} {m}
4 zset    [ZUNION|ZINTER] 3 {k} {K} {k} [WITHSCORES|] WEIGHTS {f} {n} {f} AGGREGATE [SUM|MIN|MAX] [WITHSCORES|]
4 zset    [ZUNIONSTORE|ZINTERSTORE] {K} 3 {k} {k} {k} [AGGREGATE|] [SUM|MIN|max]
3 zset    [ZUNIONSTORE|ZINTERSTORE] {k} 2 {k} {k} WEIGHTS {f} {f} AGGREGATE [SUM|MIN|MAX]
3 zset    [ZDIFF|ZUNION|ZINTER] 2 {k} {k} WITHSCORES
3 zset    ZINTERCARD 2 {k} {k} [LIMIT|] [{c}|]
1 zset    ZINTERCARD {c} {k} {K} {k} [LIMIT|] [{n}|]
2 zset    ZSCAN {k} 0 [MATCH|COUNT|] [{p}|{c}]
2 zset    [ZPOPMIN|ZPOPMAX] {K} {n}
2 zset    ZMPOP {c} {K} {k} [MIN|MAX|min|X] [COUNT|] [{n}|]
2 zset    ZRANDMEMBER {k} [0|{v}] [WITHSCORES|]
2 zset    SADD {k} {m} {m} {e}
1 zset    OBJECT ENCODING {k}
1 zset    COPY {k} {k} REPLACE
1 zset    DEL {k}
4 functions FUNCTION LOAD [REPLACE|REPLACE|] {lib}
2 functions FUNCTION DELETE [one|two|none]
1 functions FUNCTION FLUSH [ASYNC|SYNC|]
6 functions [FCALL|FCALL_RO] [put|add|both|look|none] [1|2] {k} {k} {v} {c}
4 functions [PUBLISH|SPUBLISH] [a|b] {v}
4 functions SET {k} {v}
3 functions [INCR|DEL] {k}
1 functions [MULTI|EXEC|EXEC|DISCARD]
6 geo     GEOADD {k} [NX|XX|CH|] {point} {m} [{m}|]
4 geo     GEOADD {k} {point} {e} {point} {e} {point} {e} {point} {m}
2 geo     [GEOPOS|GEOHASH|ZMSCORE] {k} {m} [{m}|] [{v}|]
2 geo     [GEOPOS|GEOHASH] {K} {m} {m} {m} {m} {m} {m}
4 geo     GEODIST {k} {m} {m} [{un}|]
6 geo     GEOSEARCH {k} FROMLONLAT {point} BYRADIUS {r} {un} [ASC|DESC|] [WITHDIST|WITHHASH|COUNT|] [{c}|ANY|]
6 geo     GEOSEARCH {k} FROMLONLAT {point} BYBOX {r} {r} {un} [ASC|DESC|] [WITHDIST|WITHHASH|WITHCOORD|]
4 geo     GEOSEARCH {k} FROMMEMBER {m} [BYRADIUS|BYBOX] {r} {un} [ASC|DESC|COUNT|WITHDIST|] [{c}|WITHDIST|]
4 geo     GEOSEARCH {K} [BYBOX|BYRADIUS|ASC|] {r} {r} {un} FROMMEMBER {m} [ASC|DESC|] WITHCOORD WITHDIST WITHHASH
3 geo     GEOSEARCH {k} COUNT {c} [ANY|] [FROMMEMBER|FROMLONLAT|] [{m}|{point}] BYRADIUS {r} {un} [BYBOX|]
5 geo     GEOSEARCHSTORE {K} {k} FROMLONLAT {point} BYBOX {r} {r} {un} [STOREDIST|ASC|] [COUNT|] [{c}|]
4 geo     GEOSEARCHSTORE {k} {K} FROMMEMBER {m} BYRADIUS {r} {un} [STOREDIST|DESC|]
4 geo     [GEORADIUS|GEORADIUS_RO] {k} {point} {r} {un} [WITHDIST|WITHCOORD|WITHHASH|] [ASC|DESC|] [COUNT|] [{c}|]
3 geo     GEORADIUS {k} {point} {r} {un} [STORE|STOREDIST] {k} [ASC|DESC|WITHDIST|] [COUNT|] [{c}|]
4 geo     [GEORADIUSBYMEMBER|GEORADIUSBYMEMBER_RO] {K} {m} {r} {un} [WITHDIST|WITHCOORD|ASC|] [COUNT|ASC|] [{c}|]
2 geo     GEORADIUSBYMEMBER {k} {m} {r} {un} [STORE|STOREDIST|WITHDIST] [{k}|] [COUNT|ASC|] [{c}|]
2 geo     [ZREM|ZRANK] {k} {m}
1 geo     ZRANGE {k} 0 -1 WITHSCORES
1 geo     [DEL|TYPE] {k}
9 stream  XADD {k} {xid} {m} {v} [{m}|] [{v}|]
9 stream  XADD {k} {xid} m1 {n} m2 {v}
4 stream  XADD {K} [NOMKSTREAM|] {xid} {v} {v}
3 stream  XADD {k} [MAXLEN|MINID|maxlen] [=|~|] {c} [LIMIT|] [{c}|] {xid} {m} {v}
3 stream  XADD {k} MINID [=|~|] {oid} {xid} {m} {v}
2 stream  XADD {k} MAXLEN ~ {c} [LIMIT|] [{c}|] {xid} {m} {v}
3 stream  XTRIM {k} [MAXLEN|MINID] [=|~|] {c} [LIMIT|] [{c}|]
3 stream  XTRIM {k} [MINID|minid] [=|~|] {oid}
1 stream  XTRIM {k} MAXLEN ~ {c}
5 stream  [XRANGE|XREVRANGE] {k} [-|+|{oid}] [+|-|{oid}] [COUNT|] [{c}|]
4 stream  [XRANGE|XREVRANGE] {K} [-|({oid}|{oid}] [+|({oid}|{oid}]
5 stream  XDEL {k} {oid} [{oid}|]
2 stream  XLEN {K}
4 stream  XREAD [COUNT|count] {c} STREAMS {k} [$|{oid}]
3 stream  XREAD STREAMS {k} {K} [0|{oid}] [{oid}|$|>]
6 stream  XGROUP CREATE {k} {g} [0|$|{oid}] [MKSTREAM|] [ENTRIESREAD|] [{n}|]
3 stream  XGROUP SETID {k} {g} [0|$|{oid}] [ENTRIESREAD|] [{n}|]
1 stream  XGROUP [DESTROY|destroy] {k} {g}
2 stream  XGROUP [CREATECONSUMER|DELCONSUMER] {k} {g} {u}
9 stream  XREADGROUP GROUP {g} {u} [COUNT|count] {c} [NOACK|] STREAMS {k} >
3 stream  XREADGROUP GROUP {g} {u} STREAMS {k} [0|{oid}|$]
3 stream  XREADGROUP GROUP {g} {u} STREAMS {k} {k} > [>|0]
5 stream  XACK {k} {g} {oid} {oid} [{oid}|]
3 stream  XPENDING {k} {g}
4 stream  XPENDING {k} {g} [IDLE|] [0|1000000|] [-|({oid}|{oid}] [+|{oid}] {c} [{u}|]
6 stream  XCLAIM {k} {g} {u} [0|1000000] {oid} {oid} [FORCE|IDLE|] [{n}|] [JUSTID|RETRYCOUNT|LASTID|TIME|] [{n}|]
2 stream  XCLAIM {k} {g} {u} 0 {oid} {oid} {oid} {oid} {oid} [FORCE|JUSTID|]
5 stream  XAUTOCLAIM {k} {g} {u} [0|1000000] [0|({oid}|{oid}] [COUNT|] [{c}|] [JUSTID|]
1 stream  XSETID {k} {oid} [ENTRIESADDED|] [{n}|] [MAXDELETEDID|] [{oid}|]
3 stream  XINFO STREAM {k} [FULL|] [COUNT|] [{c}|]
2 stream  XINFO GROUPS {k}
2 stream  XINFO CONSUMERS {k} {g}
1 stream  CONFIG SET stream-node-max-entries [1|3|100]
1 stream  COPY {k} {k} REPLACE
6 pf      PFADD {k} {e} [{e}|] [{e}|] [{v}|]
2 pf      PFADD {k} {e} {e} {e} {e} {e} {e} {e} {e} {e} {e} {e} {e} {e} {e} {e} {e} {e} {e} {e} {e}
1 pf      PFADD {k}
3 pf      PFCOUNT {k} [{k}|] [{K}|]
2 pf      PFMERGE {k} {k} [{K}|]
1 pf      PFMERGE {k}
1 pf      PFDEBUG [ENCODING|DECODE|decode|TODENSE|GETREG|NOSUCH] {k}
3 pf      [GET|STRLEN] {k}
1 pf      SET {K} HYLL
1 pf      COPY {k} {k}
8 sort    [RPUSH|LPUSH] nl {num} {num} {num}
8 sort    RPUSH wl {el} {el} {v}
6 sort    SADD ns {num} {num}
6 sort    SADD ws {el} {el}
6 sort    ZADD nz {n} {num} {n} {num}
6 sort    ZADD wz {n} {el} {n} {el}
2 sort    LTRIM [nl|wl|nl2] 0 30
2 sort    [LPOP|RPOP] [nl|wl|nl2] {c}
2 sort    SREM [ns|ws] {el} {num} {num}
1 sort    DEL [nl|wl|ns|ws|nz|wz|dl]
6 sort    SET {wk} [{num}|{el}]
6 sort    HSET {hk} [f|g] [{num}|{el}]
3 sort    DEL {wk} {hk}
3 sort    LRANGE [dl|nl2] 0 -1
8 sort    [SORT|SORT_RO|sort] [nl|ns|nz] [ASC|DESC|desc|]
8 sort    [SORT|SORT_RO] [nl|ns|nz] LIMIT {n} {n} [ASC|DESC|]
8 sort    [SORT|SORT_RO] [wl|ws|wz|nl|dl] ALPHA [ASC|DESC|]
8 sort    [SORT|SORT_RO] [wl|ws|wz|dl] LIMIT {n} {n} ALPHA [ASC|DESC|]
6 sort    SORT [nl|ns|nz] STORE [dl|nl2] [ASC|DESC|]
6 sort    SORT [wl|ws|wz|nl] [ASC|DESC|] ALPHA STORE [dl|nl2|wl] LIMIT {n} {n}
6 sort    SORT [ws|ns|wz|wl|nl|dl] BY [nosort|x|] [ASC|DESC|] STORE dl [LIMIT|] [{n}|] [{n}|]
6 sort    [SORT|SORT_RO] [nl|wl|nz|wz|dl] BY [nosort|nosort|x|w_] [ASC|DESC|] LIMIT {n} {n}
8 sort    [SORT|SORT_RO] [nl|wl|ns|ws|nz|wz] BY [w_*|h_*->f|h_*->g|*|h_*->|x_*] [ASC|DESC|] [LIMIT|] [{n}|] [{n}|]
6 sort    SORT [nl|wl|ns|ws|nz|wz] BY [w_*|h_*->f] [ASC|DESC|] [GET|] [#|w_*|h_*->g] [GET|] [#|w_*|h_*->f|x] STORE dl
8 sort    [SORT|SORT_RO] [nl|wl|dl] BY [w_*|h_*->f|h_*->g] ALPHA [ASC|DESC|] [GET|get|] [#|w_*|h_*->f|x]
8 sort    [SORT|SORT_RO] [nl|ns|nz] GET [#|w_*|h_*->f] [GET|] [#|w_*|h_*->g|nothing] [LIMIT|] [{n}|] [{n}|]
4 sort    [SORT|SORT_RO] [wl|ws|wz] ALPHA GET [#|w_*|h_*->f] [GET|] [#|w_*|h_*->g|nothing] [STORE|] [dl|]
2 sort    SORT {K} [ALPHA|] [DESC|] [STORE|] [dl|]
9 dump    RESTORE {K} 0 {pay} [REPLACE|replace|]
6 dump    RESTORE {K} {ms} {pay} [REPLACE|]
6 dump    RESTORE {K} {atms} {pay} ABSTTL [REPLACE|]
3 dump    RESTORE {K} [0|{ms}] {pay} [REPLACE|ABSTTL|IDLETIME|FREQ|foo] [REPLACE|ABSTTL|{n}|] [FREQ|IDLETIME|] [{n}|]
1 dump    DUMP missing
"""
PROFILE_FAMILY = {"string": "s", "bitmap": "s", "list": "l", "set": "t", "hash": "h", "zset": "z", "geo": "g",
                  "stream": "x",
                  "pf": "p"}
PROFILES = {"mixed": None, "string": {"string", "bitmap"}, "keys": {"keys", "string", "db"},
            "transactions": {"string", "keys", "db"}, "command": {"command"}, "bits": {"bitmap", "pf", "string"},
            "sort": {"sort"}, "hash": {"hash", "keys"}, "set": {"set", "keys"}, "list": {"list", "keys"},
            "stream": {"stream", "keys"},
            "zset": {"zset", "keys"}, "geo": {"geo"}, "functions": {"functions"},
            "dump": {"dump", "keys", "string", "list", "set", "hash"},
            "clients": set(),      # several clients with transactions that overlap: interleave.py
            "scripts": None}       # random Lua: scripts.py


def read_templates():
    rows = []
    for line in TEMPLATES.strip().splitlines():
        weight, profile, rest = line.split(None, 2)
        rows.append((int(weight), profile, split_words(rest)))
    return rows


def split_words(text):
    """Words, where [a|b] is one word; a bracket that opens nothing with | in it is just a character."""
    words = text.split()
    return [word[1:-1].split("|") if word[0] == "[" and word[-1] == "]" and "|" in word else [word] for word in words]


class Generator:
    def __init__(self, seed, commands, profile="mixed"):
        self.random = random.Random(seed)
        self.commands = commands
        self.profile = profile
        names = {command.words[0] for command in commands.values()}
        containers = {command.words[0] for command in commands.values() if len(command.words) > 1}
        wanted = PROFILES.get(profile, {profile})
        self.templates = [row for row in read_templates()
                          if (wanted is None or row[1] in wanted) and self.known(row[2], names)]
        self.weights = [row[0] for row in self.templates]
        self.generic = [command for command in commands.values()
                        if suitable(command) and not command.name.endswith("|help") and
                        command.name not in containers]
        if wanted is not None:
            families = {PROFILE_FAMILY.get(each) for each in wanted} - {None}
            self.generic = [command for command in self.generic
                            if FAMILY_OF_GROUP.get(command.group) in families or
                            "keys" in wanted and command.group == "generic" or
                            "command" in wanted and command.words[0] == "command"]
        self.stream_ms = 1     # of the newest ids
        self.control = {"multi", "exec", "discard", "watch", "unwatch", "select", "reset", "hello"}

    @staticmethod
    def known(words, names):
        return any(choice.lower() in names for choice in words[0])

    # -- values -------------------------------------------------------------------------------------------------

    def key(self, family=None):
        draw = self.random.random()
        if family and draw < 0.8:
            return self.random.choice(KEYS[family])
        if draw < 0.95:
            families = "sssslthzgxp" if self.profile == "mixed" else "s"
            return self.random.choice(KEYS[self.random.choice(families)])
        return self.random.choice(ODD_KEYS)

    def integer(self):
        draw = self.random.random()
        if draw < 0.45:
            return b"%d" % self.random.randint(-6, 12)
        if draw < 0.9:
            return b"%d" % self.random.choice(INTEGERS)
        return self.random.choice(NOT_INTEGERS)

    def small(self):
        if self.random.random() < 0.93:
            return b"%d" % self.random.randint(-12, 40)
        return self.integer()

    def string(self):
        draw = self.random.random()
        if draw < 0.75:
            return self.random.choice(STRINGS)
        if draw < 0.9:
            return b"%d" % self.random.randint(-300, 12000)
        if draw < 0.97:
            return bytes(self.random.choices(b"abcdefgh\x00\xff 01", k=self.random.randint(0, 90)))
        if draw < 0.995:
            return bytes([self.random.randrange(256)]) * self.random.choice((5000, 16384, 32768))
        return b"L" * self.random.choice((65535, 300000, 1048575, 1048576))

    def far(self, unit):
        """A relative deadline that no other one resembles: GT and LT between two equal ones depend on the time that
        passed between the commands."""
        return b"%d" % (unit * self.random.randint(10**5, 10**self.random.choice((7, 9, 12, 15))))

    def seconds_from_now(self, unit):
        draw = self.random.random()
        if draw < 0.7:
            return self.far(unit)
        if draw < 0.85:
            return self.random.choice((b"0", b"-1", b"-1000", b"-9223372036854775808"))
        return self.integer()

    def moment(self, unit):
        draw = self.random.random()
        if draw < 0.7:
            now = int(time.time()) // 100 * 100
            return b"%d" % (unit * (now + self.random.choice((FAR_FUTURE_S, 2 * FAR_FUTURE_S))))
        if draw < 0.85:
            return self.random.choice((b"0", b"-1", b"1", b"1000000000", b"9223372036854775807"))
        return self.integer()

    def number(self):
        if self.random.random() < 0.75:
            return b"%d" % self.random.randint(-6, 30)
        return self.random.choice(NUMBERS)

    def element(self):
        return self.number() if self.random.random() < 0.4 else self.random.choice(NAMES)

    def stream_id(self):
        return self.random.choice((b"1-1", b"2-2", b"3-3", b"0-0", b"5-%d" % self.random.randint(0, 99), b"7", b"0",
                                   b"abc", b"-", b"+", b"$", b"18446744073709551615-1",
                                   b"%d-1" % self.random.randint(1, 10**6)))

    def new_id(self):
        if self.random.random() < 0.03:
            return self.stream_id()
        self.stream_ms += self.random.random() < 0.3
        return b"%d%s" % (self.stream_ms, self.random.choice((b"-*", b"-*", b"-*", b"", b"-1", b"-5")))

    def old_id(self):
        if self.random.random() < 0.04:
            return self.stream_id()
        return b"%d-%d" % (max(0, self.stream_ms - self.random.randint(-1, 6)), self.random.choice((0, 0, 1, 1, 2, 5)))

    # -- tuned --------------------------------------------------------------------------------------------------

    def fill(self, word, family):
        one = self.random.random
        if word == "{k}":
            return [self.key(family)]
        if word == "{K}":
            return [self.key(family if one() < 0.4 else None)]
        makers = {"{v}": self.string, "{i}": self.integer, "{n}": self.small, "{id}": self.stream_id,
                  "{f}": lambda: self.random.choice(FLOATS), "{p}": lambda: self.random.choice(PATTERNS),
                  "{d}": lambda: b"%d" % self.random.choice((0, 0, 1, 2, 9, 15, 16, -1)),
                  "{s}": lambda: self.seconds_from_now(1), "{ms}": lambda: self.seconds_from_now(1000),
                  "{at}": lambda: self.moment(1), "{atms}": lambda: self.moment(1000),
                  "{c}": lambda: b"%d" % self.random.randint(0, 5),
                  "{m}": lambda: b"m%d" % self.random.randint(0, 6),
                  "{xid}": self.new_id, "{oid}": self.old_id, "({oid}": lambda: b"(" + self.old_id(),
                  "{g}": lambda: b"g%d" % self.random.randint(0, 1), "{u}": lambda: b"u%d" % self.random.randint(0, 3),
                  "{e}": lambda: b"%d" % self.random.randint(0, 20000), "{type}": lambda: self.random.choice(TYPES),
                  "{pay}": lambda: payload(self.random), "{lib}": lambda: self.random.choice(LIBRARIES),
                  "{num}": self.number, "{el}": self.element, "{wk}": lambda: b"w_" + self.element(),
                  "{hk}": lambda: b"h_" + self.element(),
                  "{r}": lambda: self.random.choice(RADII), "{un}": lambda: self.random.choice(UNITS),
                  "{name}": lambda: self.random.choice(list(self.commands)).encode()}
        if word in makers:
            return [makers[word]()]
        if word == "{cmd}":
            return self.plain()
        if word == "{point}":
            return [self.degrees(180, (b"-180", b"179.999999", b"0", b"180.1")),
                    self.degrees(85.05112878, (b"-85.05112878", b"85.05", b"0", b"86"))]
        if word[:1] in ("(", "[") and word[1:] in makers:
            return [word[:1].encode() + makers[word[1:]]()]
        return [word.encode()]

    def degrees(self, most, odd):
        draw = self.random.random()
        if draw < 0.5:
            return b"%.6f" % self.random.uniform(13, 16)
        if draw < 0.9:
            return b"%.15g" % self.random.uniform(-most, most)
        return self.random.choice(odd) if draw < 0.97 else self.random.choice(FLOATS)

    def tuned(self):
        _, profile, words = self.random.choices(self.templates, self.weights)[0]
        family = PROFILE_FAMILY.get(profile)
        result = []
        for choices in words:
            choice = self.random.choice(choices)
            if choice:
                result += self.fill(choice, family)
        return result

    # -- from the argument tree ---------------------------------------------------------------------------------

    def walk(self, arguments, state):
        words = []
        for argument in arguments:
            flags = argument.get("flags", ())
            if "optional" in flags and self.random.random() < 0.55:
                continue
            times = 1
            if "multiple" in flags:
                times = self.random.choice((1, 1, 2, 3))
                if state.get("numkeys") and argument["type"] == "key":
                    times = state["numkeys"]
            token = argument.get("token")
            for turn in range(times):
                if token is not None and argument["type"] != "pure-token" and (turn == 0 or "multiple_token" in flags):
                    words.append(token.encode())
                words += self.one_argument(argument, state)
        return words

    def one_argument(self, argument, state):
        kind, name = argument["type"], argument["name"]
        if kind == "pure-token":
            token = argument.get("token", "").encode()
            return [token if self.random.random() < 0.8 else token.lower()]
        if kind == "oneof":
            return self.walk([self.random.choice(argument["arguments"])], state)
        if kind == "block":
            return self.walk(argument["arguments"], state)
        if kind == "key":
            return [self.key(state["family"])]
        if kind == "pattern":
            return [self.random.choice(PATTERNS)]
        if kind == "double":
            return [self.random.choice(FLOATS)]
        if kind == "unix-time" or name in TTL_ARGUMENTS:
            unit = 1000 if "milli" in name else 1
            return [self.moment(unit) if kind == "unix-time" else self.seconds_from_now(unit)]
        if kind == "integer":
            if name == "numkeys":
                state["numkeys"] = self.random.randint(1, 3)
                return [b"%d" % state["numkeys"] if self.random.random() < 0.9 else self.integer()]
            if name == "cursor":
                return [b"0" if self.random.random() < 0.9 else self.integer()]
            if name in ("index", "db", "destination-db", "index1", "index2"):
                return self.fill("{d}", None) if self.random.random() < 0.85 else [self.integer()]
            return [self.integer()]
        if name in ("group", "consumer") and self.random.random() < 0.8:
            return self.fill("{g}" if name == "group" else "{u}", None)
        if name in ("member", "field", "element", "member1", "member2", "group", "consumer"):
            return self.fill("{m}", None) if self.random.random() < 0.7 else [self.string()]
        if name == "encoding" and self.random.random() < 0.8:
            return [self.random.choice((b"u8", b"i8", b"u1", b"i64", b"u63", b"i13", b"u32", b"i1", b"u0", b"i65"))]
        if name == "operation" and self.random.random() < 0.8:
            return [self.random.choice((b"AND", b"or", b"XOR", b"NOT"))]
        if name in ("id", "last-id"):
            return [self.old_id()]
        if name == "type":
            return [self.random.choice(TYPES)]
        return [self.string()]

    def from_tree(self):
        command = self.random.choice(self.generic)
        if command.words[0] in self.control and self.random.random() < 0.9:
            return self.from_tree()     # control flow has its own shapes; a few at random places is enough
        if command.name in ("flushall", "flushdb") and self.random.random() < 0.8:
            return self.from_tree()     # so that there is something to work on
        words = [word.upper().encode() for word in command.words]
        if command.name in TAKES_NAMES:
            return words + self.fill("{cmd}" if "keys" in command.name else "{name}", None)
        return words + self.walk(command.arguments, {"family": FAMILY_OF_GROUP.get(command.group)})

    # -- damage -------------------------------------------------------------------------------------------------

    def damage(self, words):
        words = list(words)
        kept = 2 if words[0].upper() in (b"DEBUG", b"CLIENT", b"COMMAND") else 1     # never becomes another command
        draw = self.random.randrange(8)
        place = self.random.randint(kept, max(kept, len(words) - 1))
        if place >= len(words) or draw == 0:
            words.append(self.random.choice(TOKENS + STRINGS[:8]))
        elif draw == 1:
            del words[place]
        elif draw == 2:
            words.insert(place, words[place])
        elif draw == 3:
            words.insert(place, self.random.choice(TOKENS))
        elif draw == 4:
            words[place] = self.random.choice(NOT_INTEGERS + TOKENS)
        elif draw == 5:
            words[place] = self.integer()
        elif draw == 6:
            del words[place:]
        else:
            other = self.random.randint(kept, len(words) - 1)
            words[place], words[other] = words[other], words[place]
        return words

    def plain(self):
        if self.generic and (not self.templates or self.random.random() < 0.4):
            words = self.from_tree()
        else:
            words = self.tuned()
        draw = self.random.random()
        if draw < 0.12 and not (words[0] == b"ZADD" and words[1].endswith(b"lex")):   # those keep one score
            words = self.damage(words)
            if self.random.random() < 0.25:
                words = self.damage(words)
        elif draw < 0.125:
            words[0] = self.random.choice((b"NOSUCH", b"", b"GETT", b"\xff\x00", b"s" * 200, b"se t", b"ge\r\nt"))
        if self.random.random() < 0.15 and words[0].isascii():
            words[0] = words[0].lower() if self.random.random() < 0.6 else words[0].swapcase()
        return self.defuse(words)

    def defuse(self, words):
        """Deadlines of the next days become far ones; what would take gigabytes becomes small."""
        name = words[0].upper()
        words = list(words)
        now = int(time.time())

        def postpone(place, unit, absolute):
            value = as_integer(words[place])
            if value is None:
                return
            if absolute and abs(value - now * unit) < 1000 * unit:
                words[place] = b"%d" % ((now // 100 * 100 + FAR_FUTURE_S) * unit)
            elif not absolute and value > 0 and value * (1000 // unit) < 2**63 - 10**13:
                words[place] = self.far(unit)

        # Scores that were never places are not found alike, so the two kinds of sorted sets stay apart.
        if name.startswith(b"GEO"):
            words = [b"g" + word[1:] if word in ZSET_KEYS else word for word in words]
            for token in (b"STORE", b"STOREDIST"):      # ours take each word once
                places = [place for place, word in enumerate(words) if word.upper() == token]
                if len(places) > 1:
                    words = words[:places[1]]
        elif name not in ON_PLACES:
            words = [b"z" + word[1:] if word in KEYS["g"] else word for word in words]

        # Ours takes one argument more, or fewer, there: the name of a member, or WITHSCORE; a name alone.
        if name in (b"TTL", b"PTTL", b"PERSIST"):
            words = words[:2]
        elif name in (b"ZRANK", b"ZREVRANK"):
            words = words[:3]
        elif name == b"COMMAND" and len(words) > 2 and words[1].upper().startswith(b"GETKEYS"):
            words = words[:2] + self.defuse(words[2:]) + [b"s0"] * (len(words) == 3)

        places = {b"EXPIRE": (2, 1, False), b"PEXPIRE": (2, 1000, False), b"EXPIREAT": (2, 1, True),
                  b"PEXPIREAT": (2, 1000, True), b"SETEX": (2, 1, False), b"PSETEX": (2, 1000, False)}
        tokens = {b"EX": (1, False), b"PX": (1000, False), b"EXAT": (1, True), b"PXAT": (1000, True)}
        places[b"RESTORE"] = (2, 1000, any(word.upper() == b"ABSTTL" for word in words))
        if name in places and len(words) > 2:
            postpone(*places[name])
        for place in range(1, len(words) - 1):
            if words[place].upper() in tokens:
                postpone(place + 1, *tokens[words[place].upper()])
        # Expired keys that nobody looked at yet are removed by who meets them: all of them or none, not some.
        if name == b"RANDOMKEY" and len(words) == 1:
            words = [b"DBSIZE"]
        if name == b"SCAN" and len(words) > 1:
            cursor = as_integer(words[1])
            if cursor is not None and 0 < cursor < 2**64:
                words[1] = b"0"
            if words[1].partition(b"\0")[0].isdigit() and b"\0" in words[1]:
                words[1] = b"0\0"   # a cursor ends there
            words += [b"COUNT", b"1000000"]
            if cursor is not None and cursor < 0:   # in the middle of somewhere: it must not meet any
                words += [b"MATCH", b"no key is called so"]
        if name == b"BITFIELD":     # the oracle saturates the largest negative numbers at the wrong end
            for place in range(2, len(words) - 3):
                value = as_integer(words[place + 3])
                if words[place].upper() == b"SET" and value is not None and -2**63 <= value < -2**62:
                    words[place + 3] = b"%d" % (value // 2**20)
        if name in (b"SORT", b"SORT_RO"):
            words = self.defuse_sort(words)
        if name in (b"SADD", b"ZADD") and self.profile == "sort":   # texts end there for ALPHA: equal ones of a set
            words = [word.replace(b"\0", b"0") for word in words]
        if name == b"ZADD" and self.profile == "sort":      # a large sorted set keeps the sign, a small one doesn't
            words = [b"0" if word == b"-0" else word for word in words]
        if name == b"SPOP" and len(words) in (2, 3) and (len(words) == 2 or (as_integer(words[2]) or 0) > 0):
            words = words[:2] + [b"1000000"]    # all of them, as nobody knows which one it would be
        if name in (b"XCLAIM", b"XAUTOCLAIM", b"XPENDING", b"XADD", b"XSETID"):
            words = self.defuse_stream(name, words)
        if name in (b"SRANDMEMBER", b"HRANDFIELD", b"ZRANDMEMBER") and len(words) > 2:
            value = as_integer(words[2])
            if value is not None and value < -1000:
                words[2] = b"-10"
        return words

    def defuse_sort(self, words):
        """What has no order is in another one on every server: members of sets that nobody sorts or whose weights are
        texts and equal. With LIMIT and BY the oracle leaves the order of equal ones in lists to chance, too. And where
        numbers may have overflown, the oracle refuses others that come later."""
        upper = [word.upper() for word in words]
        if self.profile != "sort":
            words[1:2] = [b"l0" if key.startswith(b"z") else key for key in words[1:2]]   # see accepted.txt
            words = [b"GET" if word == b"BY" else given for word, given in zip(upper, words)]
            return words + [b"ALPHA"] + ([b"STORE", b"sorted"] if upper[0] == b"SORT" else [])
        taken = {b"LIMIT": 3, b"BY": 2, b"GET": 2, b"STORE": 2}
        options, place = [], 2
        while place < len(words):
            options.append((upper[place], words[place + 1:place + 2]))
            place += taken.get(upper[place], 1)
        by = [pattern for name, given in options if name == b"BY" for pattern in given]
        stores = any(name == b"STORE" for name, _ in options)
        is_list = words[1:2] in ([b"nl"], [b"wl"], [b"dl"], [b"nl2"])
        if by and b"ALPHA" in upper and (not is_list or b"LIMIT" in upper):
            words = [given for word, given in zip(upper, words) if word != b"ALPHA"]
        if any(b"*" not in pattern for pattern in by) and words[1:2] in ([b"ns"], [b"ws"]) and not stores:
            words = [b"SORT"] + words[1:] + [b"STORE", b"dl"]
        return words

    def defuse_stream(self, name, words):
        """Nothing may depend on when it runs; XSETID goes forward, as ours refuses to go behind deleted entries."""
        def settle_idle(place):
            value = as_integer(words[place])
            if value is not None and -2**63 <= value < 2**63:
                words[place] = b"0" if value < 1000 else b"%d" % 10**9

        upper = [word.upper() for word in words]
        if name == b"XADD":
            words = words[:2] + [b"9-*" if word == b"*" else word for word in words[2:]]
        elif name == b"XPENDING" and len(words) > 4 and upper[3] == b"IDLE":
            settle_idle(4)
        elif name in (b"XCLAIM", b"XAUTOCLAIM") and len(words) > 4:
            settle_idle(4)
            if b"LASTID" in upper and b"FORCE" in upper:    # in this form it is what replicas are told
                words = [word for word in words if word.upper() != b"FORCE"]
        elif name == b"XSETID" and len(words) > 2 and words[2][:1].isdigit():
            self.stream_ms += 8
            words[2] = b"%d-%d" % (self.stream_ms, self.random.randint(0, 3))
        return words

    # -- shapes over several commands ---------------------------------------------------------------------------

    def before_exec(self):
        """A command between WATCH and EXEC. A BITFIELD that makes a string longer and then fails to write has changed
        it for ours alone: the oracle does not tell who watches the key."""
        words = self.plain()
        if words[0].upper() == b"BITFIELD":
            words = [b"WRAP" if word.upper() == b"FAIL" else word for word in words]
        return words

    def transaction(self):
        items = []
        watched = self.random.random() < 0.4
        key = self.key("s")
        if watched:
            items.append((0, [b"WATCH", key] + ([self.key()] if self.random.random() < 0.5 else [])))
            draw = self.random.random()
            if draw < 0.45:     # another connection comes between, or touches something else
                items += [(1, self.before_exec()) for _ in range(self.random.randint(1, 3))]
                items.append((1, self.defuse([b"SET", key, self.string()]) if draw < 0.3 else [b"GET", key]))
            elif draw < 0.6:
                items.append((0, self.before_exec()))
        if self.random.random() < 0.05:
            items.append((0, [b"UNWATCH"]))
        items.append((0, [b"MULTI"]))
        for _ in range(self.random.randint(0, 6)):
            items.append((0, self.plain()))
            if self.random.random() < 0.1:
                items.append((1, self.defuse([b"APPEND", key, b"!"])))
        if self.random.random() < 0.06:
            items.append((0, [self.random.choice((b"MULTI", b"WATCH", b"UNWATCH", b"RESET")), b"s0"][:1]))
        items.append((0, [b"EXEC" if self.random.random() < 0.88 else b"DISCARD"]))
        return items

    def expiry(self):
        """Keys that are over when they are next looked at (the servers do not look by themselves, see run.py). SCAN in
        the end finds and removes the rest."""
        keys = self.random.sample(KEYS["s"], self.random.randint(1, 3))
        items = [(0, [b"DISCARD"])]
        items += [(0, [b"SET", key, self.string(), b"PX", b"30"]) for key in keys]
        if self.random.random() < 0.3:
            items += [(0, [b"SET", keys[0], b"5"]), (0, [b"PEXPIRE", keys[0], b"30"])]
        items.append((0, ("@sleep", 45)))
        while self.random.random() < 0.75:
            words = self.plain()
            if words[0].upper() not in UNTIMELY:
                items.append((0, words))
        if self.random.random() < 0.5:
            items.append((0, [self.random.choice((b"GET", b"INCR", b"TTL", b"TYPE", b"PERSIST", b"DEL")), keys[0]]))
        items.append((0, [b"SCAN", b"0", b"COUNT", b"1000000"]))
        return items

    def block(self, size):
        items = []
        if self.profile == "clients" or self.profile == "mixed" and self.random.random() < 0.1:
            return interleave.Interleaved(self.random).block(size)
        if self.profile == "scripts":
            return scripts.Scripted(self).block(size)
        while len(items) < size:
            draw = self.random.random()
            if draw < (0.5 if self.profile == "transactions" else 0.02):
                items += self.transaction()
            elif draw < 0.021 and self.profile in ("mixed", "string", "keys"):
                items += self.expiry()
            elif draw < 0.04 and self.profile == "mixed":
                name = self.random.choice((b"EXEC", b"DISCARD", b"MULTI", b"WATCH", b"UNWATCH", b"SELECT", b"MULTI"))
                items.append((0, [name] + [self.key()] * self.random.randint(0, 1)))
                if name == b"MULTI":
                    items.append((0, self.plain()))
                    items.append((0, [b"EXEC"]))
            else:
                items.append((0, self.plain()))
        return items


def as_integer(word):
    text = word.decode("latin-1")
    digits = text[1:] if text.startswith("-") else text
    if digits.isdigit() and digits.isascii() and len(digits) < 100:   # longer ones are out of every range
        return int(text)
    return None
