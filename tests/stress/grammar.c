#include "grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MOST_BYTES = 1 << 17, WORDS_MOST = 64, LARGE_VALUE_BYTES = 40000 };

const char grammar_types[] = "lhszxbpn";

static const struct script {
    const char *name, *text;
} scripts[] = {
    {"any", "return redis.call(unpack(ARGV))"},
    {"safe", "return redis.pcall(unpack(ARGV))"},
    {"both", "redis.call('RPUSH', KEYS[1], ARGV[1]); return redis.call('SADD', KEYS[2], ARGV[1])"},
    {"undeclared", "redis.call('SET', 'b1', ARGV[1]); return redis.call('HSET', 'h2', ARGV[1], 1)"},
    {"restore", "local payload = redis.call('DUMP', KEYS[1])\n"
                "if payload then return redis.call('RESTORE', KEYS[2], ARGV[1], payload, 'REPLACE') end"},
    {"time", "local now = redis.call('TIME')\n"
             "return redis.call('RESTORE', KEYS[2], (now[1] + ARGV[1]) * 1000, redis.call('DUMP', KEYS[1]), 'REPLACE', "
             "'ABSTTL', 'IDLETIME', 7)"},
    {"fails", "redis.call('APPEND', KEYS[1], 'x'); redis.call('LPUSH', KEYS[2], 1); redis.call('SADD', KEYS[2], 1)"},
    {"mixed", "redis.call('SPOP', KEYS[1], 2); redis.call('PEXPIRE', KEYS[2], ARGV[1])\n"
              "redis.call('XADD', KEYS[3], '*', 'f', ARGV[1]); return redis.call('HINCRBYFLOAT', KEYS[2], 'm1', 0.3)"},
    {"databases", "redis.call('SELECT', ARGV[1]); redis.call('SET', KEYS[1], 1); redis.call('SELECT', ARGV[2])\n"
                  "return redis.call('INCR', KEYS[1])"},
    {"library", "#!lua name=stress\nredis.register_function('stress_push', function(keys, args)\n"
                "redis.call('SET', keys[1], args[1], 'PX', 40); return redis.call('LPUSH', keys[2], args[1]) end)"},
};

static const char *const changes[] = {
    /* strings and bits */
    "SET {b} {v}",
    "SET {b} {i} [PX {t}|EX {T}|KEEPTTL|NX|XX|GET|XX KEEPTTL|NX PX {t}|PXAT 5|EXAT 99999999999|]",
    "SET {b} {v} [PX {t}|EX {T}|KEEPTTL|NX GET|XX|GET PX {t}]",
    "[SETEX {b} {T}|PSETEX {b} {t}|SETNX {b}|GETSET {b}|APPEND {b}|SETRANGE {b} {c}] {v}",
    "GETEX {b} [PX {t}|EX {T}|PERSIST|PXAT 1|EXAT 99999999999|]",
    "[GETDEL|INCR|DECR|GET|STRLEN] {b}",
    "[INCRBY|DECRBY] {b} {i}",
    "INCRBYFLOAT {b} {f}",
    "[MSET|MSETNX] {b} {v} {b} {i}",
    "SETBIT {b} {c}7 [0|1]",
    "BITOP [AND|OR|XOR] {b} {b} {b}",
    "BITOP [NOT {b} {b}|LSHIFT {b} {b} {c}|RSHIFT {b} {b} {c}]",
    "BITFIELD {b} SET u8 {c} {c} OVERFLOW [SAT|FAIL|WRAP] INCRBY i5 {c} {i} GET u3 1",
    "PFADD {p} {m} {v} {i}",
    "PFADD {p}",
    "PFMERGE {p} {p} {p}",
    "PFCOUNT {p} [{p}|]",
    /* lists */
    "[LPUSH|RPUSH|LPUSHX|RPUSHX] {l} {m} {v} {i}",
    "[LPUSH|RPUSH] {l} {m} {m} {m} {m} {m} {m}",
    "[LPOP|RPOP] {l} [{c}|]",
    "LINSERT {l} [BEFORE|AFTER] {m} {v}",
    "LSET {l} {i} {v}",
    "LREM {l} {i} {m}",
    "LTRIM {l} {i} {i}",
    "[LMOVE {l} {l} LEFT RIGHT|LMOVE {l} {l} RIGHT LEFT|RPOPLPUSH {l} {l}]",
    "LMPOP 2 {l} {l} [LEFT|RIGHT] [COUNT {c}|]",
    "SORT {l} [ALPHA|BY nosort|BY nosort GET #|DESC ALPHA LIMIT 0 4] STORE {l}",
    "SORT {s} [BY h*->m1 GET h*->m2 ALPHA|BY b* ALPHA|ALPHA] STORE {k}",
    /* hashes */
    "[HSET|HMSET] {h} {m} {v} {m} {i}",
    "HSET {h} {m} {m} {m} {m} {m} {m} {m} {m}",
    "HSETNX {h} {m} {v}",
    "HDEL {h} {m} {m}",
    "HINCRBY {h} {m} {i}",
    "HINCRBYFLOAT {h} {m} {f}",
    "KEYDB.HRENAME {h} {m} {m}",
    "[HEXPIRE {h} {T}|HPEXPIRE {h} {t}|HEXPIREAT {h} 99999999999|HPEXPIREAT {h} 7] [NX|XX|GT|LT|] FIELDS 2 {m} {m}",
    "HPEXPIRE {h} {t} FIELDS 1 {m}",
    "HPERSIST {h} FIELDS 2 {m} {m}",
    "[HGETALL|HLEN|HVALS] {h}",
    /* sets */
    "SADD {s} {m} {m} [{v}|{i}]",
    "SADD {s} {i} {i} {i} {i}",
    "SREM {s} {m} {m} {i}",
    "SPOP {s} [{c}|]",
    "SMOVE {s} {s} {m}",
    "[SINTERSTORE|SUNIONSTORE|SDIFFSTORE] {s} {s} {s}",
    "EXPIREMEMBER [{s}|{h}|{z}] {m} [{t} ms|{T} s|{T}]",
    "EXPIREMEMBER [{s}|{h}|{z}] {m} {t} ms",
    "[EXPIREMEMBERAT {s} {m} 99999999999|PEXPIREMEMBERAT {z} {m} 8|PEXPIREMEMBERAT {h} {m} 99999999999999]",
    "PERSIST [{s}|{h}|{z}] [{m}|]",
    "[SMEMBERS|SCARD] {s}",
    /* sorted sets and places */
    "ZADD {z} [NX|XX|GT|LT CH|CH|] {i} {m} {f} {m}",
    "ZADD {z} {i} {m} {i} {m} {f} {v}",
    "ZADD {z} [XX|NX|GT|] INCR {f} {m}",
    "ZINCRBY {z} {f} {m}",
    "ZREM {z} {m} {m}",
    "[ZPOPMIN|ZPOPMAX] {z} [{c}|]",
    "ZMPOP 2 {z} {z} [MIN|MAX] [COUNT {c}|]",
    "[ZREMRANGEBYRANK {z} {i} {i}|ZREMRANGEBYSCORE {z} ({i} {i}|ZREMRANGEBYLEX {z} (m1 (m4]",
    "[ZUNIONSTORE|ZINTERSTORE] {z} 2 {z} [{z}|{s}] [WEIGHTS 2 {f}|AGGREGATE MAX|]",
    "ZDIFFSTORE {z} 2 {z} {z}",
    "ZRANGESTORE {z} {z} [0 {i}|{i} 5 BYSCORE|-inf +inf BYSCORE LIMIT 1 3|0 -2 REV]",
    "GEOADD {z} {c}.5 {c}.25 {m} {i}.1 {c}.3 {m}",
    "GEOSEARCHSTORE {z} {z} FROMLONLAT 3 3 BYRADIUS 500 km [STOREDIST|COUNT 2|]",
    "GEOSEARCHSTORE {z} {z} BYPOLYGON 3 0 0 {c} 0 {c} {c} [STOREDIST|COUNT 2|]",
    "[GEORADIUS {z} 3 3|GEORADIUSBYMEMBER {z} {m}] 400 km [STORE|STOREDIST] {z}",
    /* streams */
    "XADD {x} * {m} {v}",
    "XADD {x} [MAXLEN 5|MAXLEN ~ 6|MAXLEN ~ 5 LIMIT 3|MINID 9|NOMKSTREAM|] * {m} {v} {m} {i}",
    "XADD {x} [{c}-*|{c}-{c}|99999999999999-{c}{c}] {m} {v}",
    "XADD {x} [IDMP p{c} i{c}|IDMPAUTO p{c}|MAXLEN 7 IDMP p1 {i}] * {m} {c}",
    "XCFGSET {x} [IDMP-MAXSIZE {c}|IDMP-DURATION {c}|IDMP-MAXSIZE 3 IDMP-DURATION 2]",
    "XIDMPRECORD {x} p{c} i{c} {c}-{c}",
    "XTRIM {x} [MAXLEN {c}|MAXLEN ~ 5|MINID ~ 5-1|MAXLEN = 3]",
    "XADD {x} [KEEPREF|DELREF|ACKED] [MAXLEN 5|MAXLEN ~ 5|MINID 9|] * {m} {v}",
    "XTRIM {x} [MAXLEN {c}|MAXLEN ~ 5|MAXLEN ~ 5 LIMIT 3|MINID ~ 5-1] [KEEPREF|DELREF|ACKED]",
    "XDEL {x} {c}-{c} {c}-1",
    "XDELEX {x} [KEEPREF|DELREF|ACKED|] IDS 3 {c}-{c} {c}-1 {c}-0",
    "XACKDEL {x} g{c} [KEEPREF|DELREF|ACKED|] IDS 3 {c}-{c} {c}-1 {c}-0",
    "XSETID {x} [99999999999999-99 ENTRIESADDED 200 MAXDELETEDID 2-1|5-5]",
    "XGROUP CREATE {x} g{c} [0|$|2-1] [MKSTREAM|] [ENTRIESREAD {c}|]",
    "XGROUP [CREATECONSUMER {x} g{c} w{c}|DELCONSUMER {x} g{c} w{c}|DESTROY {x} g{c}|SETID {x} g{c} 0]",
    "XREADGROUP GROUP g{c} w{c} COUNT {c} STREAMS {x} >",
    "XREADGROUP GROUP g{c} w{c} [MAXCOUNT 3|MAXSIZE 9|MAXCOUNT 5 MAXSIZE 40] [NOACK|] STREAMS {x} {x} > [>|0]",
    "XREADGROUP GROUP g{c} w{c} [COUNT {c}|] [NOACK|] STREAMS {x} {x} > [>|0]",
    "XREADGROUP GROUP g{c} w{c} COUNT {c} CLAIM {c} STREAMS {x} >",
    "XACK {x} g{c} {c}-{c} {c}-1 {c}-0",
    "XCLAIM {x} g{c} w{c} 0 {c}-{c} {c}-1 [FORCE|JUSTID|IDLE 5|RETRYCOUNT 3 FORCE|LASTID 3-3|]",
    "XAUTOCLAIM {x} g{c} w{c} 0 0 COUNT {c} [JUSTID|]",
    "XNACK {x} g{c} [SILENT|FAIL|FATAL] IDS 2 {c}-{c} {c}-1 [FORCE|RETRYCOUNT 3|RETRYCOUNT {c} FORCE|]",
    /* nested hashes */
    "KEYDB.NHSET {n}.{m} {v} [{i}|]",
    "KEYDB.NHSET {n}.{m}.{m} {m}",
    "KEYDB.NHSET [{n}|{k}] {v}",
    "KEYDB.NHSET {k}.{m} {v}",
    /* keys of any type */
    "[DEL|UNLINK|EXPDEL] {k} {k}",
    "[RENAME|RENAMENX] {k} {k}",
    "[RENAME|COPY] [{l} {l}|{h} {h}|{s} {s}|{z} {z}|{x} {x}]",
    "COPY {k} {k} [DB {d}|REPLACE|DB {d} REPLACE|]",
    "COPY [{h} {h}|{s} {s}|{z} {z}|{x} {x}|{n} {n}] REPLACE",
    "MOVE {k} {d}",
    "[EXPIRE {k} {T}|PEXPIRE {k} {t}|EXPIREAT {k} 99999999999|PEXPIREAT {k} 9] [NX|XX|GT|LT|]",
    "PEXPIRE {k} {t}",
    "SELECT {d}",
    "[TYPE|EXISTS|TOUCH|DUMP|OBJECT ENCODING] {k}",
    /* scripts */
    "EVAL $any 1 {h} HSET {h} {m} {v}",
    "EVAL $any 0 [RPUSH {l} {v}|SPOP {s}|XADD {x} * a {v}|DEL {k}|PEXPIRE {k} {t}|ZADD {z} {f} {m}|SET {b} {v} PX {t}]",
    "EVAL $safe 1 {k} [INCR|SPOP|ZPOPMIN|LPOP|GETDEL|PERSIST|HVALS] {k}",
    "EVAL $both 2 {l} {s} {v}",
    "EVAL $undeclared 0 {m}",
    "EVAL $restore 2 [{l} {l}|{h} {h}|{s} {s}|{z} {z}|{x} {x}|{n} {n}|{k} {k}] [0|{t}|{T}000]",
    "EVAL $time 2 {k} {k} {T}",
    "EVAL $fails 2 {b} {l}",
    "EVAL $mixed 3 {s} {h} {x} {t}",
    "EVAL $databases 1 {b} {d} {d}",
    "FCALL stress_push 2 {b} {l} {v}",
    "[FUNCTION LOAD REPLACE $library|FCALL stress_push 2 {b} {l} {v}|EVAL $both 2 {l} {s} {m}]",
};

static const char *const rare[] = {
    "FLUSHDB [ASYNC|SYNC|]",
    "FLUSHDB",
    "FLUSHALL",
    "SWAPDB {d} {d}",
    "SWAPDB {d} {d}",
    "SWAPDB {d} {d}",
    "FUNCTION [FLUSH|DELETE stress]",
    "PUBLISH news {v}",
    "SCRIPT FLUSH",
};

static const char *const waits[] = {
    "[BLPOP|BRPOP] {l} {l} 0.0{c}",
    "[BLMOVE {l} {l} LEFT RIGHT|BRPOPLPUSH {l} {l}] 0.0{c}",
    "BLMPOP 0.0{c} 2 {l} {l} [LEFT|RIGHT] [COUNT {c}|]",
    "[BZPOPMIN|BZPOPMAX] {z} {z} 0.0{c}",
    "BZMPOP 0.0{c} 2 {z} {z} [MIN|MAX] [COUNT {c}|]",
    "XREADGROUP GROUP g{c} w{c} [COUNT {c}|] BLOCK {c}0 STREAMS {x} >",
    "XREAD BLOCK {c}0 STREAMS {x} $",
};

/* --- from a line to words --- */

struct line {
    char *text; /* LINE_MOST_BYTES */
    size_t size;
    struct chance *chance;
};

static void line_add(struct line *line, const char *text, size_t size)
{
    if (line->size + size >= LINE_MOST_BYTES)
        die("a line is too long");
    memcpy(line->text + line->size, text, size);
    line->size += size;
    line->text[line->size] = 0;
}

static void line_add_number(struct line *line, const char *head, int number)
{
    char room[32];

    line_add(line, room, (size_t)snprintf(room, sizeof(room), "%s%d", head, number));
}

static void line_add_key(struct line *line, char type)
{
    char name[2] = {type, 0};

    if (type == 'k' || chance_below(line->chance, 40) == 0)
        name[0] = grammar_types[chance_below(line->chance, (uint32_t)strlen(grammar_types))];
    line_add_number(line, name, (int)chance_below(line->chance, GRAMMAR_KEYS_A_TYPE));
}

static void line_add_value(struct line *line)
{
    unsigned roll = chance_below(line->chance, 400);
    char room[120];

    memset(room, 'a' + (int)roll % 26, sizeof(room));
    if (roll == 0) {
        for (size_t size = 0; size < LARGE_VALUE_BYTES; size += sizeof(room))
            line_add(line, room, sizeof(room));
    } else if (roll < 30) {
        line_add(line, room, 60 + roll);
    } else {
        line_add_number(line, "v", (int)chance_below(line->chance, 1000));
    }
}

static void line_add_place(struct line *line, char place)
{
    struct chance *chance = line->chance;

    switch (place) {
    case 'm':
        line_add_number(line, "m", (int)chance_below(chance, 10));
        break;
    case 'v':
        line_add_value(line);
        break;
    case 'c':
        line_add_number(line, "", 1 + (int)chance_below(chance, 4));
        break;
    case 'i':
        line_add_number(line, "", (int)chance_below(chance, 24) - 6);
        break;
    case 'f':
        line_add_number(line, chance_below(chance, 2) == 0 ? "0." : "-1.", (int)chance_below(chance, 100));
        break;
    case 't':
        line_add_number(line, "", 1 + (int)chance_below(chance, GRAMMAR_SOON_MS));
        break;
    case 'T':
        line_add_number(line, "", 10000 + (int)chance_below(chance, 1000));
        break;
    case 'd':
        line_add_number(line, "", (int)chance_below(chance, GRAMMAR_DBS));
        break;
    case 'e':
        line_add(line, "\1", 1);
        break;
    default:
        line_add_key(line, place);
    }
}

/* Of "[a|b|c]", which `text` begins with, the chosen one; *after is set behind it. */
static const char *choose(struct line *line, const char *text, size_t *size, const char **after)
{
    const char *starts[16], *at = text + 1, *end = strchr(at, ']');
    size_t sizes[16];
    unsigned count = 0, chosen;

    if (end == NULL)
        die("no end: %s", text);
    for (;;) {
        const char *bar = memchr(at, '|', (size_t)(end - at));

        if (count == COUNTOF(starts))
            die("too many choices: %s", text);
        starts[count] = at;
        sizes[count++] = (size_t)((bar != NULL ? bar : end) - at);
        if (bar == NULL)
            break;
        at = bar + 1;
    }
    chosen = chance_below(line->chance, count);
    *size = sizes[chosen];
    *after = end + 1;
    return starts[chosen];
}

static void line_expand(struct line *line, const char *text, const char *end)
{
    while (text < end) {
        if (text[0] == '{' && text[2] == '}') {
            line_add_place(line, text[1]);
            text += 3;
        } else if (text[0] == '[') {
            size_t size;
            const char *after, *chosen = choose(line, text, &size, &after);

            line_expand(line, chosen, chosen + size);
            text = after;
        } else {
            line_add(line, text++, 1);
        }
    }
}

static struct raw word_of(char *word, size_t size)
{
    if (size == 1 && word[0] == '\1')
        return (struct raw){word, 0};
    for (size_t i = 0; word[0] == '$' && i < COUNTOF(scripts); i++) {
        if (size == strlen(scripts[i].name) + 1 && memcmp(word + 1, scripts[i].name, size - 1) == 0)
            return (struct raw){scripts[i].text, strlen(scripts[i].text)};
    }
    return (struct raw){word, size};
}

static void add_line(struct conn *conn, struct chance *chance, const char *text)
{
    struct line line = {malloc(LINE_MOST_BYTES), 0, chance};
    const char *args[WORDS_MOST];
    size_t sizes[WORDS_MOST];
    int count = 0;

    if (line.text == NULL)
        die("out of memory");
    line_expand(&line, text, text + strlen(text));
    for (char *word = line.text; *word != 0;) {
        size_t size = strcspn(word, " ");
        struct raw raw = word_of(word, size);

        if (count == WORDS_MOST)
            die("too many words: %s", text);
        if (size != 0) {
            args[count] = raw.data;
            sizes[count++] = raw.size;
        }
        word += size + (word[size] == ' ');
    }
    conn_add_args(conn, count, args, sizes);
    free(line.text);
}

void grammar_add_change(struct conn *conn, struct chance *chance)
{
    if (chance_below(chance, 300) == 0)
        add_line(conn, chance, rare[chance_below(chance, COUNTOF(rare))]);
    else
        add_line(conn, chance, changes[chance_below(chance, COUNTOF(changes))]);
}

void grammar_add_wait(struct conn *conn, struct chance *chance)
{
    add_line(conn, chance, waits[chance_below(chance, COUNTOF(waits))]);
}
