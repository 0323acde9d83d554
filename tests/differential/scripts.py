"""Random scripts: Lua that calls random commands, looks at their replies, makes values of every kind, and returns them.

A script is a few statements that put what they found into a table, which is returned in the end. `show` makes one text
of any value, the same whatever order a table has, so that replies without an order can be compared. Statements that
could tell the two compilers apart (texts of errors in the standard libraries, order in tables) are not made, or are
told as "failed".
"""
import hashlib
import re

PRELUDE = (
    "local function show(v, u, d) d = d or 0 if d > 9 then return '...' end local t = type(v) "
    "if t == 'number' then if v ~= v then return 'nan' end return string.format('%.17g', v) end "
    "if t == 'string' then return '<' .. v .. '>' end "
    "if t ~= 'table' then return t .. (t == 'boolean' and tostring(v) or '') end "
    "local n = {} for k, x in pairs(v) do "
    "n[#n + 1] = (u and type(k) == 'number' and '#' or show(k, u, d + 1)) .. '=' .. show(x, u, d + 1) end "
    "table.sort(n) return '{' .. table.concat(n, ',') .. '}' end "
    "local function try(f) local ok, x = pcall(f) if ok then return show(x) end return 'failed' end "
    "local function told(f) local ok, x = pcall(f) return show(ok) .. show(x) end "
    "local r = {} ")

# Commands whose replies depend on times, on chance, or on who asks.
UNSTEADY = {b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME", b"TIME", b"RANDOMKEY", b"SCAN", b"SSCAN", b"HSCAN",
            b"ZSCAN", b"OBJECT", b"DEBUG", b"COMMAND", b"INFO", b"CLIENT", b"HELLO", b"RESET", b"AUTH", b"SRANDMEMBER",
            b"HRANDFIELD", b"ZRANDMEMBER", b"XPENDING", b"XINFO", b"XCLAIM", b"XAUTOCLAIM", b"MEMORY", b"CONFIG",
            b"PFDEBUG", b"SUBSTR", b"SORT", b"SORT_RO", b"DUMP", b"RESTORE", b"SELECT", b"SWAPDB", b"FLUSHALL",
            b"FLUSHDB", b"LOLWUT", b"LASTSAVE", b"WAIT", b"MOVE", b"KEYS", b"GETEX", b"TOUCH", b"XADD", b"XSETID"}
UNORDERED = {b"LCS", b"SMEMBERS", b"SINTER", b"SUNION", b"SDIFF", b"HGETALL", b"HKEYS", b"HVALS", b"SPOP"}
MAKERS = {b"SET", b"HSET", b"RPUSH", b"SADD", b"ZADD", b"APPEND", b"INCR"}
# What no script may call, or answers alike everywhere.
STEADY = [[b"PING"], [b"PING", b"x"], [b"ECHO", b"x"], [b"NOSUCH"], [b"GET"], [b"GET", b"a", b"b"], [b"MULTI"],
          [b"EXEC"], [b"WATCH", b"k"], [b"SUBSCRIBE", b"c"], [b"SCRIPT", b"FLUSH"], [b"EVAL", b"return 1", b"0"],
          [b"FCALL", b"f", b"0"], [b"FUNCTION", b"LIST"], [b"SCRIPT", b"NOSUCH"], [b"AUTH", b"x"], [b"MONITOR"],
          [b"DBSIZE"], [b"SELECT", b"99"], [b"SELECT", b"1"], [b"SELECT", b"0"], [b"SHUTDOWN"],
          [b"DEBUG", b"SLEEP", b"0"], [b"CLIENT", b"ID"],
          [b"PUBLISH", b"c", b"m"], [b"SPUBLISH", b"c", b"m"], [b"KEYS", b"*"], [b"FLUSHDB"],
          [b"LOLWUT", b"VERSION", b"x"], [b"COMMAND", b"COUNT", b"x"],
          [b"OBJECT", b"ENCODING", b"missing"], [b"HELLO", b"3"], [b"RESET"], [b"QUIT"], [b"EVALSHA", b"x", b"0"],
          [b"CONFIG", b"GET", b"x"], [b"TTL", b"missing"], [b"GEOADD", b"g9", b"200", b"1", b"a"],
          [b"INCRBYFLOAT", b"s0", b"0.5"], [b"ZINCRBY", b"z0", b"0.1", b"m"], [b"HINCRBYFLOAT", b"h0", b"f", b"1.1"],
          [b"DEBUG", b"PROTOCOL", b"attrib"], [b"DEBUG", b"PROTOCOL", b"bignum"], [b"DEBUG", b"PROTOCOL", b"verbatim"],
          [b"DEBUG", b"PROTOCOL", b"true"], [b"DEBUG", b"PROTOCOL", b"map"], [b"DEBUG", b"PROTOCOL", b"set"],
          [b"DEBUG", b"PROTOCOL", b"double"], [b"DEBUG", b"PROTOCOL", b"null"], [b"DEBUG", b"PROTOCOL", b"array"]]
# With as many arguments as the commands take: of others ours says so, as Redis 8.6.
ASKED = ["", "{}", "'GET', 's0'", "'get', KEYS[1] or 's1'", "'SET', 's0', 5, 'GET'", "'NOSUCH', 1",
         "'XGROUP', 'NOSUCH'", "'xgroup', 'destroy', 'x0', 'g'", "'CONFIG', 'GET', '*'", "'PING'",
         "'EVAL', 'return 1', '0'", "'SHUTDOWN'"]
SORTS = [b"SORT {k} BY nosort", b"SORT {k} BY nosort GET #", b"SORT {k} ALPHA", b"SORT {k} BY x DESC LIMIT 0 3",
         b"SORT_RO {k} BY nosort", b"SORT {k} BY nosort STORE l9"]
NUMBERS = ["0", "1", "-1", "3", "7", "10", "255", "256", "-128", "65536", "2147483647", "2147483648", "-2147483649",
           "4294967295", "4294967296", "9007199254740992", "1e15", "1e17", "1e20", "-1e20", "1e308", "0.1", "1.5",
           "-2.5", "3.0000000001", "1/3", "1/0", "-1/0", "0/0", "123456789.987654321", "1e-7", "0x10", "5e-324"]
FINITE = [number for number in NUMBERS if number != "0/0"]     # its sign is a matter of the compiler
TEXTS = ["''", "'a'", "'abc'", "'hello world'", "'1'", "'10'", "'1e3'", "' 7 '", "'0x1F'", "'\\0'", "'\\255\\254'",
         "'\\r\\n'", "'{\"a\":1}'", "'[1,2]'", "'ERR x'", "'-ERR y'", "'-x'", "'OK'", "('x'):rep(70)",
         "('ab'):rep(300)", "'gr\\195\\188n'", "'%d'", "'a b c'", "'\\t'", "'\\\\'", "'\"'"]
JSON = ["'[]'", "'{}'", "'null'", "'true'", "'1'", "'-1.5e3'", "'\"x\"'", "'[1,[2,[3]]]'",
        "'{\"a\":{\"b\":[1,null]}}'", "'[1,'", "'{\"a\"}'", "'tru'", "'[1 2]'", "'\"\\\\u00fc\\\\n\"'",
        "'\"\\\\ud83d\\\\ude00\"'", "'\"\\\\ud83d\"'", "'\"\\\\x\"'", "'nan'", "'Infinity'", "'0x10'", "'01'",
        "'1e400'", "' [1] '", "'[1]x'", "''", "'\"a'", "'{\"1\":2}'", "'[null]'", "'-'", "'1.'", "('['):rep(1001)",
        "('['):rep(999) .. (']'):rep(999)", "'{\"a\":1,\"a\":2}'", "'[\"\\\\u0000\"]'", "'\"\\1\"'"]
FORMATS = ["'b'", "'B'", "'h'", "'H'", "'i'", "'I'", "'l'", "'L'", "'T'", "'f'", "'d'", "'s'", "'c3'", "'c0'", "'x'",
           "'i3'", "'I8'", "'>i'", "'<i'", "'!4bi'", "'=h'", "'bhi'", "'>Hc0'", "'!8bd'", "'i33'", "'c'", "'q'",
           "'!3b'", "'bb'", "''", "'I9'", "'>I4s'", "' b b'", "'xx'", "'i16'", "'I2I2'", "'fd'"]
PACKED = ["'\\128'", "'\\144'", "'\\192'", "'\\193'", "'\\194'", "'\\195'", "'\\202\\63\\128\\0\\0'",
          "'\\203\\63\\240\\0\\0\\0\\0\\0\\0'", "'\\204\\200'", "'\\205\\1\\2'", "'\\206\\1\\2\\3\\4'",
          "'\\207\\0\\0\\0\\1\\0\\0\\0\\0'", "'\\208\\200'", "'\\211\\255\\255\\255\\255\\255\\255\\255\\254'",
          "'\\161a'", "'\\163ab'", "'\\147\\1\\2\\3'", "'\\147\\1'", "'\\129\\161a\\1'", "'\\220\\0\\2\\1\\2'",
          "'\\221\\255\\255\\255\\255'", "'\\219\\0\\0\\0\\2ab'", "'\\222\\0\\1\\1\\2'", "'\\217\\3abc'",
          "'\\196\\2ab'", "'\\212\\1\\2'", "''", "'\\1\\2\\3'", "'\\255'", "'\\224'"]
BITS = ["tobit", "bnot", "band", "bor", "bxor", "lshift", "rshift", "arshift", "rol", "ror", "bswap", "tohex"]
GLOBALS = ["nosuch", "KEYS", "ARGV", "_G and 1", "type(redis)", "type(cjson)", "io", "require", "dofile", "loadfile",
           "print", "debug", "package", "newproxy", "getfenv", "setfenv", "jit and 1 or 2", "ffi", "math.random and 1",
           "coroutine.create and 1", "collectgarbage and 1", "_VERSION", "redis.nosuch", "redis.REPL_ALL",
           "redis.REPL_SLAVE", "redis.REPL_REPLICA", "redis.REPL_AOF", "redis.REPL_NONE", "redis.LOG_DEBUG",
           "redis.LOG_VERBOSE", "redis.LOG_NOTICE", "redis.LOG_WARNING", "module", "bit32", "utf8", "struct.nosuch",
           "cjson.null", "cmsgpack._VERSION", "cjson._VERSION", "_G._G == _G"]
CHANGES = ["x = 1", "_G.x = 1", "redis.call = 1", "redis.x = 1", "string.x = 1", "rawset(_G, 'x', 1)",
           "rawset(redis, 'x', 1)", "setmetatable(_G, {})", "setmetatable(redis, {})", "getmetatable(_G).__index = 1",
           "getmetatable('').__index = 1", "_G = nil", "KEYS = {}", "ARGV[1] = 'x'", "KEYS[1] = 'x'",
           "table.insert(redis, 1)", "cjson.x = 1", "bit.x = 1", "table.sort(redis)", "function f() end",
           "local x = 1", "math.pi = 3", "redis = nil", "struct.pack = nil"]
FLAGS = ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys", "nosuch", ""]


PRINTED = [text for text in TEXTS if text != "'\\0'"]      # LuaJIT prints what is behind a NUL, too
SETTINGS = ["encode_sparse_array", "encode_max_depth", "decode_max_depth", "encode_number_precision",
            "encode_keep_buffer", "encode_invalid_numbers", "decode_invalid_numbers", "nosuch"]
SETTING_VALUES = ["", "1", "true", "false", "'on'", "'null'", "5, 2", "true, 2, 10", "0", "15", "'x'", "-1"]
PRINTS = ["%d", "%5.2f", "%s", "%x", "%g", "%-5d|", "%05d", "%i", "%e", "%%", "%z", "%.3s", "%u", "%10.4s|"]
STRING_CALLS = ["find('hello world', 'o w')", "find('a.b', '.', 1, true)", "gsub('hello', 'l', 'L')", "rep('ab', 3)",
                "byte('abc', 1, -1)", "match('k=v', '(%w+)=(%w+)')", "sub('hello', -3)", "upper('aB')",
                "find('x', '[')",
                "gsub('abc', '%w', '%0%0')", "match('  x ', '^%s*(.-)%s*$')", "reverse('abc')", "len('\\0\\0')",
                "char(65, 66)", "gsub('abc', '', '-')", "find('', '')", "format('%5s', 'a')", "rep('x', -1)"]
MATH = ["floor", "ceil", "abs", "sqrt", "modf", "max", "min", "frexp", "huge", "fmod"]
TABLE_CALLS = ["table.sort(t)", "table.insert(t, 9)", "table.remove(t)", "table.insert(t, 1, 9)", "t[#t + 1] = 5",
               "table.remove(t, 1)", "t = {table.concat(t, ',')}", "t = {unpack(t)}", "t = {select('#', unpack(t))}"]
# Groups of calls, all groups alike often; what stands in <> is filled in by Scripted.marked.
LIBRARY_CALLS = [
    ["told(function() local x = cjson.decode(<json>) return x end)",
     "told(function() local x = cjson.encode(<plain>) return x end)",
     "try(function() return cjson.decode(cjson.encode(<value>)) end)",
     "told(function() local x = cjson.<setting>(<set>) return x end)"],
    ["told(function() return {cmsgpack.unpack(<packed>)} end)",
     "told(function() local x = cmsgpack.pack(<plain>) return x end)",
     "try(function() return {cmsgpack.unpack(cmsgpack.pack(<value>, <value>))} end)",
     "told(function() return {cmsgpack.unpack_one(<packed>, <at>)} end)",
     "told(function() return {cmsgpack.unpack_limit(<packed>, <at>)} end)",
     "told(function() local x = cmsgpack.pack() return x end)"],
    ["told(function() return {struct.pack(<form>, <scalar>, <scalar>)} end)",
     "told(function() return {struct.unpack(<form>, <text>)} end)",
     "told(function() return {struct.unpack(<form>, ('\\1\\2\\3\\4'):rep(9), <at>)} end)",
     "told(function() return {struct.size(<form>)} end)"],
    ["try(function() return {bit.<bits>(<number>, <number>)} end)",
     "try(function() return {bit.<bits>(<number>)} end)"],
    ["show(tostring(<printed>))", "show(tonumber(<text>))",
     "try(function() return string.format('<print>', <printed>) end)",
     "try(function() return {string.<string>} end)", "try(function() return {math.<math>(<number>)} end)",
     "try(function() local t = {<items>} <change> return t end)", "told(function() return redis.sha1hex(<text>) end)",
     "told(function() return {next({a = 1})} end)", "told(function() return {next({})} end)",
     "try(function() return load(function() return nil end)() end)", "try(function() return load('return 1')() end)",
     "try(function() return loadstring('return KEYS')() end)", "try(function() return loadstring('x = 1')() end)",
     "try(function() return loadstring('\\27Lua')() end)"]]


def quote(word):
    """A text of Lua for these bytes."""
    return "'" + "".join(chr(byte) if 32 <= byte < 127 and chr(byte) not in "\\'" else "\\%03d" % byte
                         for byte in word) + "'"


def is_told_apart(words):
    """Ours refuses it in other words, or before it looks at the key, as newer servers do. Outside of scripts compare.py
    and accepted.txt know these cases."""
    name, rest = words[0].upper(), words[2:]
    if name in (b"XREAD", b"XREADGROUP"):
        upper = [word.upper() for word in words]
        return b"STREAMS" in upper and (len(words) - upper.index(b"STREAMS")) % 2 == 0
    if rest and rest[-1].upper() in (b"BIT", b"BYTE"):
        rest = rest[:-1]
    return name in (b"BITCOUNT", b"BITPOS") and (
        len(rest) == 1 or not all(re.fullmatch(rb"-?(0|[1-9]\d{,17})", word) for word in rest))


class Scripted:
    def __init__(self, generator):
        self.generator = generator
        self.random = generator.random
        self.loaded = []        # texts whose SHA-1 may be known
        self.steady = [words for words in STEADY
                       if words[0] == b"NOSUCH" or words[0].decode().lower() in generator.commands]
        self.functions = ["f0", "f1", "f2", "F0", "nosuch"]

    def pick(self, *choices):
        return self.random.choice(choices)

    # -- commands -----------------------------------------------------------------------------------------------

    def command(self):
        """Words, and whether the reply has an order."""
        draw = self.random.random()
        if draw < 0.15:
            words = self.random.choice(self.steady)
            return words, words[0] != b"KEYS"
        if draw < 0.2:
            key = b"%c%d" % (self.random.choice(b"tlz"), self.random.randint(0, 4))
            words = self.random.choice(SORTS).replace(b"{k}", key).split(b" ")
            return words, True
        if draw < 0.35:
            # One kind of script reads and writes the same few keys with words that fit.
            key = b"s%d" % self.random.randint(0, 4)
            return self.random.choice(([b"SET", key, b"v"], [b"GET", key], [b"INCR", key], [b"DEL", key],
                                       [b"APPEND", key, b"x"], [b"SET", key, b"5", b"GET"],
                                       [b"HSET", b"h0", b"f", b"v"], [b"HGET", b"h0", b"f"],
                                       [b"RPUSH", b"l0", b"a", b"b"], [b"LRANGE", b"l0", b"0", b"-1"],
                                       [b"SADD", b"t0", b"a", b"b", b"c"], [b"ZADD", b"z0", b"1.5", b"m"],
                                       [b"ZSCORE", b"z0", b"m"], [b"MGET", key, b"missing"],
                                       [b"ZRANGE", b"z0", b"0", b"-1", b"WITHSCORES"],
                                       [b"SISMEMBER", b"t0", b"a"])), True
        for _ in range(50):
            words = self.generator.plain()
            name = words[0].upper()
            if name not in UNSTEADY and sum(map(len, words)) < 2000 and not is_told_apart(words):
                return words, name not in UNORDERED
        return [b"PING"], True

    def call(self, how):
        words, ordered = self.command()
        return "redis.%s(%s)" % (how, ", ".join(self.word(word) for word in words)), ordered

    def ordered_call(self):
        call, ordered = self.call("call")
        return call if ordered else "1"

    def word(self, word):
        if word.isdigit() and len(word) < 15 and (word == b"0" or word[:1] != b"0") and self.random.random() < 0.4:
            return word.decode()
        return quote(word)

    # -- values -------------------------------------------------------------------------------------------------

    def value(self, depth=0):
        draw = self.random.random()
        if draw < 0.25:
            return self.random.choice(NUMBERS)
        if draw < 0.5:
            return self.random.choice(TEXTS)
        if draw < 0.6:
            return self.pick("true", "false", "nil", "cjson.null")
        if depth > 3:
            return "{}"
        if draw < 0.8:
            return "{%s}" % ", ".join(self.value(depth + 1) for _ in range(self.random.randint(0, 4)))
        if draw < 0.95:
            return "{[%s] = %s}" % (self.pick("1", "2", "3", "-1", "1.5", "'a'", "'b c'", "10", "0", "true", "'1'"),
                                    self.value(depth + 1))
        return "{a = %s, b = %s, [1] = %s}" % tuple(self.value(depth + 1) for _ in range(3))

    def reply_value(self, depth=0):
        """What scripts return in place of replies."""
        draw = self.random.random()
        inner = lambda: self.reply_value(depth + 1)      # noqa: E731
        if depth > 3 or draw < 0.3:
            return self.pick(self.random.choice(NUMBERS), self.random.choice(TEXTS), "true", "false", "nil",
                             "cjson.null")
        text = self.random.choice(TEXTS)
        if draw < 0.45:
            return "{%s}" % ", ".join(inner() for _ in range(self.random.randint(0, 4)))
        return self.pick("{ok = %s}" % text, "{err = %s}" % text,
                         "{double = %s}" % self.random.choice(FINITE),
                         "{map = {a = %s}}" % inner(), "{map = {[1] = %s}}" % inner(), "{map = {}}",
                         "{set = {[%s] = true}}" % text, "{set = {a = %s}}" % inner(), "{set = {}}",
                         "{big_number = '12345678901234567890'}", "{big_number = %s}" % text,
                         "{verbatim_string = {format = 'txt', string = %s}}" % text,
                         "{verbatim_string = {format = %s}}" % text, "{verbatim_string = %s}" % text,
                         "{map = %s}" % text, "{ok = {}}", "{err = 1}", "{double = 'x'}", "{1, nil, 3}",
                         "{1, 2, a = 3}", "{err = %s, ok = 'x'}" % text, "redis.error_reply(%s)" % text,
                         "redis.status_reply(%s)" % text, "redis.error_reply()", "redis.status_reply(1)",
                         "redis.error_reply(%s, 2)" % text, "function() end", "redis.call",
                         "setmetatable({1}, {__index = function() return 2 end, __len = function() return 3 end})",
                         "{set = {[{}] = 1}}", "coroutine.create(function() end)", "{ok = %s, err = 'y'}" % text,
                         "{err = %s, ignore_error_stats_update = true}" % text, "{double = %s}" % text)

    # -- statements ---------------------------------------------------------------------------------------------

    def marked(self, template):
        """The template with values in place of its marks."""
        makers = {"json": lambda: self.random.choice(JSON), "plain": self.plain_value, "value": self.value,
                  "packed": lambda: self.random.choice(PACKED), "form": lambda: self.random.choice(FORMATS),
                  "scalar": self.scalar, "text": lambda: self.random.choice(TEXTS), "bits": lambda: self.pick(*BITS),
                  "number": lambda: self.random.choice(NUMBERS),
                  "at": lambda: self.pick("0", "1", "2", "5", "-1", "36"),
                  "setting": lambda: self.random.choice(SETTINGS), "set": lambda: self.random.choice(SETTING_VALUES),
                  "print": lambda: self.random.choice(PRINTS), "string": lambda: self.random.choice(STRING_CALLS),
                  "printed": lambda: self.pick(*NUMBERS[:9], *PRINTED), "math": lambda: self.pick(*MATH),
                  "items": lambda: self.pick("3, 1, 2", "'b', 'a'", "1", ""), "change": lambda: self.pick(*TABLE_CALLS)}
        return re.sub(r"<(\w+)>", lambda mark: makers[mark.group(1)](), template)

    def library(self):
        return self.marked(self.random.choice(self.random.choice(LIBRARY_CALLS)))

    def plain_value(self):
        """A value whose text does not depend on the order in tables."""
        return self.pick(self.scalar(), "{%s}" % self.scalar(), "{%s, %s}" % (self.scalar(), self.scalar()),
                         "{a = %s}" % self.scalar(), "{a = {%s}}" % self.scalar(), "{}", "{{}, {}}", "{[3] = 1}",
                         "{[1000] = 1}", "{[1.5] = 1}", "{[-1] = %s}" % self.scalar(), "{1, 2, nil, 4}",
                         "function() end", "{[true] = 1}")

    def scalar(self):
        return self.pick(self.random.choice(FINITE), self.random.choice(TEXTS), "true", "false", "nil")

    def statement(self):
        draw = self.random.random()
        if draw < 0.34:
            call, ordered = self.call("pcall")
            return ("r[#r + 1] = %s" % call if ordered and self.random.random() < 0.6 else
                "r[#r + 1] = show(%s%s)" % (call, "" if ordered else ", true"))
        if draw < 0.42:
            call, ordered = self.call("call")
            return ("r[#r + 1] = told(function() local x = %s return x end)" % call if ordered else
                "r[#r + 1] = show(%s, true)" % call)
        if draw < 0.50:
            call, ordered = self.call("call")
            return "r[#r + 1] = %s" % (call if ordered else "show(%s, true)" % call)
        if draw < 0.55:
            return ("redis.setresp(%s)" % self.pick("3", "2", "3", "3") if self.random.random() < 0.9 else
                "r[#r + 1] = told(function() redis.setresp(%s) end)" % self.pick("", "4", "'3'", "nil", "1, 2"))
        if draw < 0.57:
            if self.random.random() < 0.2:
                return "r[#r + 1] = told(function() redis.set_repl(%s) end)" % self.pick("", "4", "-1", "'x'", "1, 2")
            return "redis.set_repl(%s)" % self.pick("redis.REPL_ALL", "redis.REPL_NONE", "redis.REPL_REPLICA",
                                                    "redis.REPL_SLAVE", "redis.REPL_AOF", "3", "0")
        if draw < 0.80:
            return "r[#r + 1] = %s" % self.library()
        if draw < 0.86:
            return "r[#r + 1] = %s" % self.reply_value()
        if draw < 0.90:
            return "r[#r + 1] = told(function() return %s end)" % self.random.choice(GLOBALS)
        if draw < 0.93:
            return "r[#r + 1] = try(function() %s end)" % self.random.choice(CHANGES)
        if draw < 0.96:
            said = self.pick("", "redis.LOG_DEBUG, 'x'", "'x', 'y'", "9, 'x'", "1", "redis.LOG_DEBUG, 'a', 1, {}")
            return self.pick("r[#r + 1] = told(function() return redis.acl_check_cmd(%s) end)" % self.pick(*ASKED),
                             "r[#r + 1] = told(function() redis.log(%s) end)" % said,
                             "r[#r + 1] = show(redis.replicate_commands())", "r[#r + 1] = show(redis.breakpoint())",
                             "r[#r + 1] = show(redis.debug('x'))", "redis.call()", "redis.pcall(%s)" % self.value(),
                             "r[#r + 1] = redis.pcall('SET', 's1', %s)" % self.random.choice(NUMBERS),
                             "r[#r + 1] = redis.pcall(KEYS[1] or 'GET', ARGV[1] or 's0')",
                             "r[#r + 1] = {#KEYS, #ARGV, KEYS[1], ARGV[1]}")
        return self.pick("error('x')", "error({err = 'MY error'})", "error()", "error('ERR y', 0)",
                         "assert(false, 'no')", "return %s" % self.reply_value() + " r = r", "nosuch()",
                         "local x = nil + 1", "local x = {} .. 'a'", "error(redis.error_reply('CODE text'))",
                         "for i = 1, 3 do r[#r + 1] = i end", "if #r > 2 then return r end",
                         "do return redis.pcall('GET', 's0') end", "return redis.call('INCR', 's0')", "r = {r}",
                         "error(5)", "error(true)", "error({err = 5})", "repeat local x = 1 until true", "))",
                         "return return")

    def body(self):
        lines = [self.statement() for _ in range(self.random.choice((1, 1, 2, 3, 4, 6)))]
        # A return in the middle of a block is no Lua: such scripts show that both refuse them.
        last = self.pick("return r", "return r", "return r", "return r[1]", "return #r", "return unpack(r)",
                         "return %s" % self.reply_value(), "return %s" % self.ordered_call(), "return r")
        if last == "return r" and self.random.random() < 0.85:     # an array ends at its first nil
            last = "for i = 1, 20 do if r[i] == nil then r[i] = 'nil' end end return r"
        return self.separator().join(lines + [last])

    def separator(self):
        return "\n" if self.random.random() < 0.3 else " ; "

    def head(self):
        draw = self.random.random()
        if draw < 0.75:
            return ""
        if draw < 0.78:
            return self.pick("#!lua\n", "#!nosuch\n", "#!lua name=x\n", "#!lua flags=\n", "#!\n", "#!lua", "# x\n",
                             "#!lua flags=no-writes\r\n", " #!lua\n", "#!LUA\n",
                             "#!lua flags=no-writes flags=allow-oom\n")
        return "#!lua flags=%s\n" % ",".join(self.random.choice(FLAGS[:5] if self.random.random() < 0.9 else FLAGS)
                                             for _ in range(self.random.randint(1, 2)))

    def script(self):
        return (self.head() + PRELUDE + self.body()).encode("latin-1")

    # -- requests -----------------------------------------------------------------------------------------------

    def tail(self):
        keys = [b"%c%d" % (self.random.choice(b"sltzh"),
                           self.random.randint(0, 4)) for _ in range(self.random.randint(0, 3))]
        args = [self.generator.string()[:100] for _ in range(self.random.randint(0, 2))]
        count = b"%d" % len(keys) if self.random.random() < 0.96 else self.pick(b"-1", b"x", b"99", b"0", b"1", b"")
        return [count, *keys, *args]

    def evaluation(self):
        text = self.script()
        return [self.pick(b"EVAL", b"EVAL", b"EVAL", b"EVAL_RO"), text, *self.tail()]

    def by_sha(self):
        text = self.random.choice(self.loaded) if self.loaded else b"return 1"
        sha = hashlib.sha1(text).hexdigest().encode()
        if self.random.random() < 0.1:
            sha = self.pick(sha.upper(), sha[:-1], b"", sha[:-1] + b"0", b"x" * 40)
        return [self.pick(b"EVALSHA", b"EVALSHA", b"EVALSHA_RO"), sha, *self.tail()]

    def about_scripts(self):
        text = self.random.choice(self.loaded) if self.loaded else b"return 1"
        sha = hashlib.sha1(text).hexdigest().encode()
        return self.random.choice(([b"SCRIPT", b"EXISTS", sha, b"x"], [b"SCRIPT", b"FLUSH"],
                                   [b"SCRIPT", b"FLUSH", b"ASYNC"], [b"SCRIPT", b"FLUSH", b"x"], [b"SCRIPT", b"KILL"],
                                   [b"SCRIPT", b"NOSUCH"], [b"SCRIPT"], [b"SCRIPT", b"LOAD"], [b"SCRIPT", b"EXISTS"],
                                   [b"SCRIPT", b"LOAD", b"return ("]))

    def load(self):
        text = self.script()
        self.loaded.append(text)
        return [b"SCRIPT", b"LOAD", text]

    def function_load(self):
        name = self.pick("a", "b", "c", "a-b", "")
        parts = ["#!%s name=%s\n" % (self.pick("lua", "lua", "lua", "LUA", "js"), name)]
        if self.random.random() < 0.03:
            parts = [self.pick("", "#!lua\n", "#!lua name=a name=b\n", "#!lua foo=a\n", "#!lua name=a")]
        for _ in range(self.random.randint(1, 2)):
            function = "function(KEYS, ARGV) %s %s end" % (PRELUDE, self.body().replace("\n", " "))
            flags = "{%s}" % ", ".join("'%s'" % self.random.choice(FLAGS[:5] if self.random.random() < 0.95 else FLAGS)
                                       for _ in range(self.random.randint(0, 2)))
            called = self.random.choice(self.functions[:3])
            table = "function_name = '%s', callback = %s, flags = %s" % (called, function, flags)
            parts.append(self.pick("redis.register_function('%s', %s)\n" % (called, function),
                                   "redis.register_function{%s}\n" % table,
                                   "redis.register_function{%s, description = 'd'}\n" % table))
        if self.random.random() < 0.05:
            parts.append(self.pick("redis.call('GET', 'x')\n", "x = 1\n", "redis.register_function()\n",
                                   "redis.register_function(1, 2)\n", "redis.register_function('x', 1)\n",
                                   "redis.register_function{}\n", "))\n", "local x = nosuch\n",
                                   "redis.register_function('a b', function() end)\n",
                                   "redis.log(redis.LOG_DEBUG, 'x')\n",
                                   "redis.register_function{callback = function() end, more = 1}\n"))
        words = [b"FUNCTION", b"LOAD"] + ([b"REPLACE"] if self.random.random() < 0.7 else [])
        return words + ["".join(parts).encode("latin-1")]

    def about_functions(self):
        return self.random.choice(([b"FUNCTION", b"LIST"], [b"FUNCTION", b"LIST", b"LIBRARYNAME", b"?"],
                                   [b"FUNCTION", b"DELETE", b"a"], [b"FUNCTION", b"LIST", b"WITHCODE"],
                                   [b"FUNCTION", b"DELETE", b"nosuch"], [b"FUNCTION", b"FLUSH"],
                                   [b"FUNCTION", b"FLUSH", b"ASYNC"], [b"FUNCTION", b"FLUSH", b"x"],
                                   [b"FUNCTION", b"STATS"], [b"FUNCTION", b"KILL"], [b"FUNCTION", b"LOAD"],
                                   [b"FUNCTION", b"LIST", b"x"], [b"FUNCTION", b"NOSUCH"],
                                   [b"FUNCTION", b"RESTORE", b"x"],
                                   [b"FUNCTION", b"RESTORE", b"\x0a\x00\x5d\x9b\x5c\x40\x0f\x7f\xa2\xda",
                                    self.pick(b"FLUSH", b"REPLACE")]))

    def function_call(self):
        return [self.pick(b"FCALL", b"FCALL", b"FCALL_RO"), self.random.choice(self.functions).encode(), *self.tail()]

    def setting(self):
        """Something for the scripts to work on."""
        words, _ = self.command()
        return words if words[0] in MAKERS else [b"SET", b"s%d" % self.random.randint(0, 4), b"7"]

    def request(self):
        draw = self.random.random()
        if draw < 0.50:
            return self.evaluation()
        if draw < 0.58:
            return self.load()
        if draw < 0.68:
            return self.by_sha()
        if draw < 0.71:
            return self.about_scripts()
        if draw < 0.78:
            return self.function_load()
        if draw < 0.90:
            return self.function_call()
        if draw < 0.92:
            return self.about_functions()
        return self.setting()

    def block(self, size):
        items = []
        while len(items) < size:
            if self.random.random() < 0.03:
                items.append((0, [b"MULTI"]))
                queued = [self.request() for _ in range(self.random.randint(1, 3))]
                items += [(0, words) for words in queued if words[:2] != [b"FUNCTION", b"LOAD"]]   # see accepted.txt
                items.append((0, [b"EXEC"]))
            else:
                items.append((0, self.request()))
        return items
