/* Messages, events and invalidations, and their order. Writers change keys by commands, transactions, scripts and
 * expiry while others listen, and each listener compares its messages with those of a server with one thread:
 *
 *  1. Keyspace events of a key come in the order of its changes: "set" and "del" or "expired" take turns, a list is
 *     never popped while it is empty, and there are as many "incrby" as the key counts.
 *  2. A client that caches keys is coherent at every read: two keys that only change together are equal. So a reply
 *     that is newer than the cached value of the other key comes after the invalidation; with REDIRECT the invalidation
 *     is there for every command sent after the reply. In every mode of CLIENT TRACKING, and also for replies of BLPOP.
 *  3. Messages that scripts send with a counter come in the counter's order, without gaps.
 *  4. MONITOR shows the commands on a key in the order in which they ran.
 *  5. Meanwhile clients are killed and writes paused: nothing comes after that (after.h). */
#include "after.h"
#include "conn.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAIRS = 3,    /* p0a and p0b ... change together */
    FLIPS = 3,    /* f0 ... are set and deleted */
    LISTS = 2,    /* l0 ... */
    COUNTERS = 2, /* n0 ...: the last message published to the channel of that name */
    CHAINS = 2,   /* g0 ...: each GETSET replies the previous value */
    SINGLES = 2 * PAIRS,
    BATCH_MOST = 4,
    SERIALS_MOST = 1 << 20 /* of one writer's values in chains */
};

enum mode { MODE_DEFAULT, MODE_NOLOOP, MODE_BCAST, MODE_OPTIN, MODE_OPTOUT, MODE_REDIRECT, MODES };

/* Threads, each with a client or two. */
enum { HEARERS = 3, WRITERS = 4, POPPERS = 1, KILLERS = 2 };
enum { LISTENERS = HEARERS + 1 + MODES, THREADS = LISTENERS + WRITERS + POPPERS + KILLERS + 1 };

enum { NOTHING = -1 };

static const char *const add_to_pair = "redis.call('incr',KEYS[1]);return_redis.call('incr',KEYS[2])";
static const char *const add_undeclared = "redis.call('incr',ARGV[1]);return_redis.call('incr',ARGV[2])";
static const char *const add_and_push =
    "redis.call('incr',KEYS[1]);local_v=redis.call('incr',KEYS[2]);return_redis.call('rpush',KEYS[3],v)";
static const char *const add_and_publish = "local_n=redis.call('incr',KEYS[1]);return_redis.call('publish',KEYS[1],n)";
static const char *const read_one = "return_redis.call('get',KEYS[1])";

struct told {
    int port;
    uint64_t seed, end_ns;
    int64_t *before[WRITERS]; /* by writer and serial: what its GETSET found */
    _Atomic uint32_t serials[WRITERS];
    _Atomic unsigned listeners; /* ready ones */
    _Atomic unsigned writers;   /* working ones */
    struct after after;
    _Atomic uint64_t changes, reads, hits, events, messages, lines;
};

/* Scripts stand in commands, whose words are separated by spaces: an underline is one. */
static void add_script(struct conn *conn, const char *script, const char *rest)
{
    char text[200], copy[200], *next;
    const char *args[16];
    size_t sizes[16];
    int count = 2;

    snprintf(text, sizeof(text), "%s", script);
    for (char *at = text; *at != 0; at++)
        *at = *at == '_' ? ' ' : *at;
    snprintf(copy, sizeof(copy), "%s", rest);
    args[0] = "EVAL";
    args[1] = text;
    for (char *word = strtok_r(copy, " ", &next); word != NULL; word = strtok_r(NULL, " ", &next))
        args[count++] = word;
    for (int i = 0; i < count; i++)
        sizes[i] = strlen(args[i]);
    conn_add_args(conn, count, args, sizes);
}

static void start_resp3(struct conn *conn, struct told *told)
{
    conn_start(conn, told->port, 0);
    conn_ask(conn, "HELLO 3");
}

static struct raw must_read(struct conn *conn, const char *who)
{
    struct raw raw;

    if (conn_read(conn, &raw, reply_limit_seconds) != GOT_REPLY)
        die("told: %s got no reply", who);
    return raw;
}

static void send_all(struct conn *conn, const char *who)
{
    if (!conn_send(conn))
        die("told: %s was cut off", who);
}

static void wait_for_listeners(struct told *told)
{
    while (atomic_load(&told->listeners) < LISTENERS)
        sleep_ms(1);
}

static bool writers_are_done(struct told *told)
{
    return now_ns() >= told->end_ns && atomic_load(&told->writers) == 0;
}

/* ------------------------------------------------------------------------------------------------------- writers -- */

struct writer {
    struct told *told;
    unsigned index;
    struct conn conn;
    struct chance chance;
    unsigned replies;                /* expected */
    int64_t serials[BATCH_MOST * 8]; /* by reply: of a GETSET; else NOTHING */
};

static void expect_replies(struct writer *writer, unsigned count)
{
    while (count-- != 0)
        writer->serials[writer->replies++] = NOTHING;
}

static void write_pair(struct writer *writer)
{
    uint32_t pair = chance_below(&writer->chance, PAIRS), first = chance_below(&writer->chance, 2);
    char rest[80];

    switch (chance_below(&writer->chance, 4)) {
    case 0:
        conn_add(&writer->conn, "MULTI");
        conn_add(&writer->conn, "INCR p%u%c", pair, 'a' + (int)first);
        conn_add(&writer->conn, "INCR p%u%c", pair, 'b' - (int)first);
        conn_add(&writer->conn, "EXEC");
        expect_replies(writer, 4);
        return;
    case 1:
        snprintf(rest, sizeof(rest), "2 p%ua p%ub", pair, pair);
        add_script(&writer->conn, add_to_pair, rest);
        break;
    case 2:
        snprintf(rest, sizeof(rest), "0 p%ua p%ub", pair, pair);
        add_script(&writer->conn, add_undeclared, rest);
        break;
    default:
        snprintf(rest, sizeof(rest), "3 p%ua p%ub w%u", pair, pair, pair);
        add_script(&writer->conn, add_and_push, rest);
        break;
    }
    expect_replies(writer, 1);
}

static void write_flip(struct writer *writer)
{
    uint32_t flip = chance_below(&writer->chance, FLIPS);

    switch (chance_below(&writer->chance, 8)) {
    case 0:
        conn_add(&writer->conn, "SET f%u v NX PX %u", flip, 1 + chance_below(&writer->chance, 3));
        expect_replies(writer, 1);
        break;
    case 1:
        conn_add(&writer->conn, "MULTI");
        conn_add(&writer->conn, "DEL f%u", flip);
        conn_add(&writer->conn, "SET f%u v NX", flip);
        conn_add(&writer->conn, "EXEC");
        expect_replies(writer, 4);
        break;
    case 2:
    case 3:
    case 4:
        conn_add(&writer->conn, "SET f%u v NX", flip);
        expect_replies(writer, 1);
        break;
    default:
        conn_add(&writer->conn, "DEL f%u", flip);
        expect_replies(writer, 1);
        break;
    }
}

static void write_something(struct writer *writer)
{
    struct told *told = writer->told;
    uint32_t kind = chance_below(&writer->chance, 16), serial;
    char rest[40];

    if (kind < 4) {
        write_pair(writer);
    } else if (kind < 10) {
        write_flip(writer);
    } else if (kind < 12) {
        conn_add(&writer->conn, "%s l%u v", kind == 10 ? "LPUSH" : "RPUSH", chance_below(&writer->chance, LISTS));
        expect_replies(writer, 1);
    } else if (kind < 14) {
        snprintf(rest, sizeof(rest), "1 n%u", chance_below(&writer->chance, COUNTERS));
        add_script(&writer->conn, add_and_publish, rest);
        expect_replies(writer, 1);
    } else {
        serial = atomic_fetch_add(&told->serials[writer->index], 1);
        if (serial >= SERIALS_MOST)
            die("told: out of serials");
        conn_add(&writer->conn, "GETSET g%u %u", chance_below(&writer->chance, CHAINS),
                 writer->index * SERIALS_MOST + serial + 1);
        writer->serials[writer->replies++] = serial;
    }
}

static void act_writer(struct told *told, unsigned index)
{
    struct writer writer = {.told = told, .index = index, .chance = chance_make(told->seed, 900 + index)};

    conn_start(&writer.conn, told->port, 0);
    while (now_ns() < told->end_ns) {
        uint32_t count = 1 + chance_below(&writer.chance, BATCH_MOST);

        writer.replies = 0;
        atomic_fetch_add_explicit(&told->changes, count, memory_order_relaxed);
        while (count-- != 0)
            write_something(&writer);
        send_all(&writer.conn, "a writer");
        for (unsigned i = 0; i < writer.replies; i++) {
            struct raw raw = must_read(&writer.conn, "a writer");

            if (raw_is_error(raw))
                complain("told: %.*s", (int)raw.size - 2, raw.data);
            if (writer.serials[i] != NOTHING)
                told->before[index][writer.serials[i]] = raw_is_null(raw) ? 0 : raw_number(raw);
        }
    }
    conn_close(&writer.conn);
    atomic_fetch_sub(&told->writers, 1);
}

static void act_popper(struct told *told, unsigned index)
{
    struct conn conn;
    struct chance chance = chance_make(told->seed, 950 + index);

    conn_start(&conn, told->port, 0);
    while (now_ns() < told->end_ns) {
        if (chance_below(&chance, 4) == 0)
            conn_ask(&conn, "LPOP l%u", chance_below(&chance, LISTS));
        else
            conn_ask(&conn, "BLPOP l0 l1 0.05");
    }
    conn_close(&conn);
    atomic_fetch_sub(&told->writers, 1);
}

/* -------------------------------------------------------------------------------------------------------- caches -- */

static const char *const mode_names[MODES] = {"default", "NOLOOP", "BCAST", "OPTIN", "OPTOUT", "REDIRECT"};
static const char *const mode_words[MODES] = {"", "NOLOOP", "BCAST PREFIX p NOLOOP", "OPTIN", "OPTOUT", "REDIRECT"};

struct cache {
    struct told *told;
    enum mode mode;
    struct conn conn;
    struct conn ear; /* MODE_REDIRECT: the connection that gets the invalidations */
    struct chance chance;
    int64_t values[SINGLES]; /* p0a, p0b, p1a ...; NOTHING: not cached */
    bool dropped[SINGLES];   /* since the batch was sent */
    struct asked {
        enum { ASKED_OTHER, ASKED_ONE, ASKED_BOTH, ASKED_EXEC, ASKED_CHANGE, ASKED_POP } kind;
        unsigned key; /* of ASKED_BOTH and ASKED_CHANGE: the first of the pair */
        bool kept;
    } asked[BATCH_MOST * 5];
    unsigned asked_count;
    /* A value read in this batch; MODE_REDIRECT examines it only when its ear has received everything. */
    struct asked_value {
        unsigned key;
        int64_t value;
        bool kept;
    } got[BATCH_MOST * 2];
    unsigned got_count;
};

static unsigned key_of_name(struct raw name)
{
    struct raw text = raw_string(name);

    if (text.size != 3 || text.data[0] != 'p')
        return SINGLES;
    return (unsigned)(text.data[1] - '0') * 2 + (unsigned)(text.data[2] - 'a');
}

static void drop(struct cache *cache, unsigned key)
{
    if (key >= SINGLES)
        return;
    cache->values[key] = NOTHING;
    cache->dropped[key] = true;
}

static void hear_invalidation(struct cache *cache, struct raw push)
{
    struct raw keys = raw_child(push, 1);

    if (!raw_says(raw_child(push, 0), "invalidate"))
        die("told: a push that nobody expects");
    if (!raw_is_array(keys)) {
        for (unsigned key = 0; key < SINGLES; key++)
            drop(cache, key);
        return;
    }
    for (int64_t i = 0; i < raw_number(keys); i++)
        drop(cache, key_of_name(raw_child(keys, (size_t)i)));
}

/* The next reply; the invalidations before it are heard. */
static struct raw next_reply(struct cache *cache, struct conn *conn)
{
    struct raw raw = must_read(conn, "a cache");

    while (raw.data[0] == '>') {
        hear_invalidation(cache, raw);
        raw = must_read(conn, "a cache");
    }
    return raw;
}

static void look_at(struct cache *cache, unsigned key, int64_t value)
{
    unsigned other = key ^ 1;

    atomic_fetch_add_explicit(&cache->told->reads, 1, memory_order_relaxed);
    if (cache->values[key] != NOTHING || cache->values[other] != NOTHING)
        atomic_fetch_add_explicit(&cache->told->hits, 1, memory_order_relaxed);
    if (cache->values[key] != NOTHING && cache->values[key] != value)
        complain("told: %s: p%u%c is cached as %lld and read as %lld", mode_names[cache->mode], key / 2,
                 'a' + (int)(key & 1), (long long)cache->values[key], (long long)value);
    if (cache->values[other] != NOTHING && cache->values[other] != value)
        complain("told: %s: p%u%c is read as %lld while the other is cached as %lld", mode_names[cache->mode], key / 2,
                 'a' + (int)(key & 1), (long long)value, (long long)cache->values[other]);
}

static void keep(struct cache *cache, unsigned key, int64_t value)
{
    if (cache->mode != MODE_REDIRECT || !cache->dropped[key])
        cache->values[key] = value;
}

static void got(struct cache *cache, unsigned key, int64_t value, bool kept)
{
    if (value < 0)
        die("told: no number was read");
    if (cache->mode == MODE_REDIRECT) {
        cache->got[cache->got_count++] = (struct asked_value){key, value, kept};
        return;
    }
    look_at(cache, key, value);
    if (kept)
        keep(cache, key, value);
}

static void take_reply(struct cache *cache, const struct asked *asked)
{
    struct raw raw = next_reply(cache, &cache->conn);

    if (raw_is_error(raw))
        die("told: a cache got %.*s", (int)raw.size - 2, raw.data);
    switch (asked->kind) {
    case ASKED_ONE:
        got(cache, asked->key, raw_number(raw), asked->kept);
        break;
    case ASKED_BOTH:
    case ASKED_EXEC:
        got(cache, asked->key, raw_number(raw_child(raw, 0)), asked->kept);
        got(cache, asked->key + 1, raw_number(raw_child(raw, 1)), asked->kept);
        break;
    case ASKED_CHANGE: /* ours: its value is newer than the cached one, by one */
        for (unsigned i = 0; i < 2; i++) {
            if (cache->mode != MODE_REDIRECT && cache->values[asked->key + i] != NOTHING)
                look_at(cache, asked->key + i, raw_number(raw_child(raw, i)) - 1);
        }
        drop(cache, asked->key);
        drop(cache, asked->key + 1);
        break;
    case ASKED_POP: { /* an element says how far its pair was when it was pushed */
        int64_t value = raw.data[0] == '*' && !raw_is_null(raw) ? raw_number(raw_child(raw, 1)) : NOTHING;

        for (unsigned key = asked->key; key < asked->key + 2; key++) {
            if (cache->mode != MODE_REDIRECT && cache->values[key] != NOTHING && cache->values[key] < value)
                complain("told: %s: BLPOP brought %lld while p%u is cached as %lld", mode_names[cache->mode],
                         (long long)value, key / 2, (long long)cache->values[key]);
        }
        break;
    }
    case ASKED_OTHER:
        break;
    }
}

static void ask(struct cache *cache, int kind, unsigned key, bool kept)
{
    cache->asked[cache->asked_count++] = (struct asked){kind, key, kept};
}

/* Sends CLIENT CACHING before the command, as the mode demands, and returns whether its reads will be cached. */
static bool choose_caching(struct cache *cache)
{
    bool said = chance_below(&cache->chance, 2) == 0;

    if (cache->mode != MODE_OPTIN && cache->mode != MODE_OPTOUT)
        return true;
    if (said) {
        conn_add(&cache->conn, "CLIENT CACHING %s", cache->mode == MODE_OPTIN ? "YES" : "NO");
        ask(cache, ASKED_OTHER, 0, false);
    }
    return said == (cache->mode == MODE_OPTIN);
}

static void ask_something(struct cache *cache)
{
    unsigned pair = chance_below(&cache->chance, PAIRS), key = pair * 2 + chance_below(&cache->chance, 2);
    uint32_t kind = chance_below(&cache->chance, 24);
    char rest[40];
    bool kept;

    if (kind == 0) {
        conn_add(&cache->conn, "MULTI");
        conn_add(&cache->conn, "INCR p%ua", pair);
        conn_add(&cache->conn, "INCR p%ub", pair);
        conn_add(&cache->conn, "EXEC");
        for (int i = 0; i < 3; i++)
            ask(cache, ASKED_OTHER, 0, false);
        ask(cache, ASKED_CHANGE, pair * 2, false);
        return;
    }
    if (kind == 1) {
        conn_add(&cache->conn, "BLPOP w%u 0.02", pair);
        ask(cache, ASKED_POP, pair * 2, false);
        return;
    }
    kept = choose_caching(cache);
    if (kind < 16) {
        conn_add(&cache->conn, "GET p%u%c", key / 2, 'a' + (int)(key & 1));
        ask(cache, ASKED_ONE, key, kept);
    } else if (kind < 19) {
        conn_add(&cache->conn, "MGET p%ua p%ub", pair, pair);
        ask(cache, ASKED_BOTH, pair * 2, kept);
    } else if (kind < 22) {
        conn_add(&cache->conn, "MULTI");
        conn_add(&cache->conn, "GET p%ua", pair);
        conn_add(&cache->conn, "GET p%ub", pair);
        conn_add(&cache->conn, "EXEC");
        for (int i = 0; i < 3; i++)
            ask(cache, ASKED_OTHER, 0, false);
        ask(cache, ASKED_EXEC, pair * 2, kept);
    } else {
        snprintf(rest, sizeof(rest), "1 p%u%c", key / 2, 'a' + (int)(key & 1));
        add_script(&cache->conn, read_one, rest);
        ask(cache, ASKED_ONE, key, kept);
    }
}

/* The invalidations before the ear's reply are all that were queued for it before. */
static void listen_by_ear(struct cache *cache)
{
    conn_add(&cache->ear, "PING");
    send_all(&cache->ear, "an ear");
    (void)next_reply(cache, &cache->ear);
    for (unsigned i = 0; i < cache->got_count; i++)
        look_at(cache, cache->got[i].key, cache->got[i].value);
    for (unsigned i = 0; i < cache->got_count; i++)
        keep(cache, cache->got[i].key, cache->got[i].value);
}

static void run_cache(struct cache *cache)
{
    while (now_ns() < cache->told->end_ns) {
        uint32_t count = 1 + chance_below(&cache->chance, cache->mode == MODE_REDIRECT ? 1 : BATCH_MOST);

        cache->asked_count = cache->got_count = 0;
        memset(cache->dropped, 0, sizeof(cache->dropped));
        while (count-- != 0)
            ask_something(cache);
        send_all(&cache->conn, "a cache");
        for (unsigned i = 0; i < cache->asked_count; i++)
            take_reply(cache, &cache->asked[i]);
        if (cache->mode == MODE_REDIRECT)
            listen_by_ear(cache);
    }
}

static void act_cache(struct told *told, enum mode mode, unsigned index)
{
    struct cache cache = {.told = told, .mode = mode, .chance = chance_make(told->seed, 1000 + index)};
    char words[60];

    for (unsigned key = 0; key < SINGLES; key++)
        cache.values[key] = NOTHING;
    snprintf(words, sizeof(words), "%s", mode_words[mode]);
    if (mode == MODE_REDIRECT) {
        start_resp3(&cache.ear, told);
        snprintf(words, sizeof(words), "REDIRECT %lld", (long long)cache.ear.id);
    }
    start_resp3(&cache.conn, told);
    if (!raw_says(conn_ask(&cache.conn, words[0] != 0 ? "CLIENT TRACKING ON %s" : "CLIENT TRACKING ON", words), "OK"))
        die("told: no tracking with %s", words);
    atomic_fetch_add(&told->listeners, 1);
    wait_for_listeners(told);
    run_cache(&cache);
    conn_close(&cache.conn);
    if (mode == MODE_REDIRECT)
        conn_close(&cache.ear);
    atomic_fetch_sub(&told->writers, 1);
}

/* -------------------------------------------------------------------------------------------------------- events -- */

struct hearer {
    struct told *told;
    const char *who;
    struct conn conn;
    bool flip_is_set[FLIPS];
    int64_t list_sizes[LISTS], increments[SINGLES], counts[COUNTERS];
};

static bool is_name(struct raw text, char letter)
{
    return text.size >= 2 && text.data[0] == letter && text.data[1] >= '0' && text.data[1] <= '9';
}

static bool is_word(struct raw text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

static void hear_flip(struct hearer *hearer, unsigned flip, struct raw event)
{
    bool set = is_word(event, "set");

    if (!set && !is_word(event, "del") && !is_word(event, "expired"))
        return;
    if (set == hearer->flip_is_set[flip])
        complain("told: %s: f%u: twice in a row %s", hearer->who, flip, set ? "set" : "deleted");
    hearer->flip_is_set[flip] = set;
}

static void hear_list(struct hearer *hearer, unsigned list, struct raw event)
{
    if (is_word(event, "lpush") || is_word(event, "rpush"))
        hearer->list_sizes[list]++;
    else if (is_word(event, "lpop") && --hearer->list_sizes[list] < 0)
        complain("told: %s: l%u: popped while it is empty", hearer->who, list);
    else if (is_word(event, "del") && hearer->list_sizes[list] != 0)
        complain("told: %s: l%u: gone with %lld elements", hearer->who, list, (long long)hearer->list_sizes[list]);
}

static void hear_event(struct hearer *hearer, struct raw key, struct raw event)
{
    atomic_fetch_add_explicit(&hearer->told->events, 1, memory_order_relaxed);
    if (is_name(key, 'f'))
        hear_flip(hearer, (unsigned)(key.data[1] - '0'), event);
    else if (is_name(key, 'l'))
        hear_list(hearer, (unsigned)(key.data[1] - '0'), event);
    else if (is_name(key, 'p') && is_word(event, "incrby"))
        hearer->increments[(unsigned)(key.data[1] - '0') * 2 + (unsigned)(key.data[2] - 'a')]++;
}

static void hear_message(struct hearer *hearer, unsigned counter, int64_t number)
{
    atomic_fetch_add_explicit(&hearer->told->messages, 1, memory_order_relaxed);
    if (number != ++hearer->counts[counter]) {
        complain("told: %s: n%u: %lld comes where %lld should", hearer->who, counter, (long long)number,
                 (long long)hearer->counts[counter]);
        hearer->counts[counter] = number;
    }
}

static struct raw behind(struct raw text, const char *head)
{
    size_t size = strlen(head);

    if (text.size <= size || memcmp(text.data, head, size) != 0)
        return (struct raw){"", 0};
    return (struct raw){text.data + size, text.size - size};
}

static void hear(struct hearer *hearer, struct raw push)
{
    size_t at = raw_says(raw_child(push, 0), "pmessage") ? 2 : 1;
    struct raw channel = raw_string(raw_child(push, at)), body = raw_string(raw_child(push, at + 1));
    struct raw key = behind(channel, "__keyspace@0__:"), event = behind(channel, "__keyevent@0__:");

    if (!raw_says(raw_child(push, 0), "pmessage") && !raw_says(raw_child(push, 0), "message"))
        return;
    if (key.size != 0)
        hear_event(hearer, key, body);
    else if (event.size != 0)
        hear_event(hearer, body, event);
    else if (is_name(channel, 'n'))
        hear_message(hearer, (unsigned)(channel.data[1] - '0'), raw_number(raw_child(push, at + 1)));
}

static void check_counts(struct hearer *hearer)
{
    struct conn conn;

    conn_start(&conn, hearer->told->port, 0);
    for (unsigned key = 0; key < SINGLES; key++) {
        int64_t count = raw_number(conn_ask(&conn, "GET p%u%c", key / 2, 'a' + (int)(key & 1)));

        if (count != hearer->increments[key])
            complain("told: %s: p%u%c: %lld changes, %lld events", hearer->who, key / 2, 'a' + (int)(key & 1),
                     (long long)count, (long long)hearer->increments[key]);
    }
    for (unsigned counter = 0; counter < COUNTERS; counter++) {
        struct raw raw = conn_ask(&conn, "GET n%u", counter);

        if (!raw_is_null(raw) && raw_number(raw) != hearer->counts[counter])
            complain("told: %s: n%u: %lld messages of %lld", hearer->who, counter, (long long)hearer->counts[counter],
                     (long long)raw_number(raw));
    }
    conn_close(&conn);
}

static void subscribe(struct hearer *hearer, unsigned kind)
{
    struct conn *conn = &hearer->conn;

    if (kind == 0) {
        conn_add(conn, "PSUBSCRIBE __keyspace@0__:*");
    } else if (kind == 1) {
        conn_add(conn, "PSUBSCRIBE __keyevent@0__:*");
    } else {
        for (unsigned i = 0; i < FLIPS; i++)
            conn_add(conn, "SUBSCRIBE __keyspace@0__:f%u", i);
        for (unsigned i = 0; i < LISTS; i++)
            conn_add(conn, "SUBSCRIBE __keyspace@0__:l%u", i);
        for (unsigned i = 0; i < SINGLES; i++)
            conn_add(conn, "SUBSCRIBE __keyspace@0__:p%u%c", i / 2, 'a' + (int)(i & 1));
    }
    for (unsigned i = 0; i < COUNTERS; i++)
        conn_add(conn, "SUBSCRIBE n%u", i);
    conn_add(conn, "PING");
    send_all(conn, hearer->who);
    while (must_read(conn, hearer->who).data[0] == '>')
        ;
}

static void act_hearer(struct told *told, unsigned kind)
{
    static const char *const names[] = {"keyspace pattern", "keyevent pattern", "keyspace channels"};
    struct hearer hearer = {.told = told, .who = names[kind]};
    bool asked = false;
    struct raw raw;

    start_resp3(&hearer.conn, told);
    subscribe(&hearer, kind);
    atomic_fetch_add(&told->listeners, 1);
    for (;;) {
        enum got got = conn_read(&hearer.conn, &raw, 0.02);

        if (got == GOT_CLOSED)
            die("told: %s was cut off", hearer.who);
        if (got == GOT_REPLY && raw.data[0] == '+')
            break;
        if (got == GOT_REPLY)
            hear(&hearer, raw);
        if (!asked && writers_are_done(told)) {
            conn_add(&hearer.conn, "PING");
            send_all(&hearer.conn, hearer.who);
            asked = true;
        }
    }
    check_counts(&hearer);
    conn_close(&hearer.conn);
}

/* ------------------------------------------------------------------------------------------------------- monitor -- */

/* "GETSET" "g0" "123": the value, and the chain's number; else NOTHING. */
static int64_t chained(struct raw line, unsigned *chain)
{
    static const char head[] = "\"GETSET\" \"g";
    const char *at = memmem(line.data, line.size, head, sizeof(head) - 1);

    if (at == NULL)
        return NOTHING;
    at += sizeof(head) - 1;
    *chain = (unsigned)(*at - '0');
    return strtoll(at + 4, NULL, 10);
}

struct shown {
    int64_t *values; /* in the order in which they were shown */
    size_t count, room;
};

static void note_shown(struct shown *shown, int64_t value)
{
    if (shown->count == shown->room) {
        shown->room = shown->room * 2 + 1024;
        shown->values = realloc(shown->values, shown->room * sizeof(int64_t));
    }
    shown->values[shown->count++] = value;
}

/* When all is over: only then all writers have got their replies. */

static void check_shown(struct told *told, const struct shown *shown, unsigned chain)
{
    int64_t last = 0;

    for (size_t i = 0; i < shown->count; i++) {
        int64_t value = shown->values[i], number = value - 1;
        int64_t before = told->before[number / SERIALS_MOST][number % SERIALS_MOST];

        if (before != last)
            complain("told: MONITOR: g%u: %lld is shown behind %lld, it came behind %lld", chain, (long long)value,
                     (long long)last, (long long)before);
        last = value;
    }
}

static void act_monitor(struct told *told)
{
    struct conn conn, other;
    struct shown shown[CHAINS] = {0};
    bool asked = false;
    struct raw raw;

    conn_start(&conn, told->port, 0);
    conn_start(&other, told->port, 0);
    conn_ask(&conn, "MONITOR");
    atomic_fetch_add(&told->listeners, 1);
    for (;;) {
        enum got got = conn_read(&conn, &raw, 0.02);
        unsigned chain = 0;

        if (got == GOT_CLOSED)
            die("told: the monitor was cut off");
        if (got == GOT_REPLY) {
            int64_t value = chained(raw, &chain);

            atomic_fetch_add_explicit(&told->lines, 1, memory_order_relaxed);
            if (value != NOTHING && chain < CHAINS)
                note_shown(&shown[chain], value);
            if (memmem(raw.data, raw.size, "the-end", 7) != NULL)
                break;
        }
        if (!asked && writers_are_done(told)) {
            conn_ask(&other, "ECHO the-end");
            asked = true;
        }
    }
    for (unsigned chain = 0; chain < CHAINS; chain++) {
        check_shown(told, &shown[chain], chain);
        free(shown[chain].values);
    }
    conn_close(&other);
    conn_close(&conn);
}

/* --------------------------------------------------------------------------------------------------------- parts -- */

static void act_killer(struct told *told, unsigned index)
{
    after_kill(&told->after, index);
    atomic_fetch_sub(&told->writers, 1);
}

static void act_pauser(struct told *told, unsigned index)
{
    static const char *const reads[] = {"MGET p0a p0b p1a p1b p2a p2b n0 n1 g0 g1", "LLEN l0", "LLEN l1", "LLEN w0"};

    after_pause(&told->after, reads, COUNTOF(reads), index);
    atomic_fetch_sub(&told->writers, 1);
}

static void act(void *context, unsigned index)
{
    struct told *told = context;

    if (index < HEARERS) {
        act_hearer(told, index);
    } else if (index == HEARERS) {
        act_monitor(told);
    } else if (index < LISTENERS) {
        act_cache(told, (enum mode)(index - HEARERS - 1), index);
    } else {
        wait_for_listeners(told);
        if (index < LISTENERS + WRITERS)
            act_writer(told, index - LISTENERS);
        else if (index < LISTENERS + WRITERS + POPPERS)
            act_popper(told, index);
        else if (index + 1 < THREADS)
            act_killer(told, index);
        else
            act_pauser(told, index);
    }
}

/* Listeners on a busy machine may be late; the test is about order, not about limits of memory. */
static void allow_all_output(struct conn *conn)
{
    const char *const args[] = {"CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 0 0"};
    size_t sizes[COUNTOF(args)];

    for (unsigned i = 0; i < COUNTOF(args); i++)
        sizes[i] = strlen(args[i]);
    conn_add_args(conn, COUNTOF(args), args, sizes);
    send_all(conn, "the first client");
    if (!raw_says(must_read(conn, "the first client"), "OK"))
        die("told: an option was refused");
}

void part_told(const struct options *options, double seconds)
{
    struct told told = {.seed = options->seed};
    struct server server;
    struct conn conn;

    server_start(&server, options, options->server_threads);
    told.port = server.port;
    conn_start(&conn, server.port, 0);
    conn_ask(&conn, "CONFIG SET notify-keyspace-events KEA");
    allow_all_output(&conn);
    for (unsigned key = 0; key < SINGLES; key++)
        conn_ask(&conn, "SET p%u%c 0", key / 2, 'a' + (int)(key & 1));
    told.end_ns = now_ns() + (uint64_t)(seconds * 1e9);
    atomic_store(&told.writers, THREADS - HEARERS - 1);
    told.after = (struct after){.port = server.port, .seed = options->seed, .end_ns = told.end_ns};
    for (unsigned i = 0; i < WRITERS; i++)
        told.before[i] = calloc(SERIALS_MOST, sizeof(int64_t));
    threads_run(THREADS, act, &told);
    check(complaints() == 0, "told: everything in the order of change");
    say("%llu changes, %llu reads, %llu of them beside something cached; %llu events, %llu messages, %llu lines",
        (unsigned long long)atomic_load(&told.changes), (unsigned long long)atomic_load(&told.reads),
        (unsigned long long)atomic_load(&told.hits), (unsigned long long)atomic_load(&told.events),
        (unsigned long long)atomic_load(&told.messages), (unsigned long long)atomic_load(&told.lines));
    say("%llu kills, %llu pauses", (unsigned long long)atomic_load(&told.after.kills),
        (unsigned long long)atomic_load(&told.after.pauses));
    check(atomic_load(&told.hits) != 0 && atomic_load(&told.events) != 0 && atomic_load(&told.messages) != 0 &&
              atomic_load(&told.lines) != 0,
          "told: there was something to be told");
    conn_close(&conn);
    for (unsigned i = 0; i < WRITERS; i++)
        free(told.before[i]);
    server_stop(&server, "told");
}
