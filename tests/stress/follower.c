/* A second server follows the first: commands of all types, transactions, scripts, blocking commands, lifetimes of keys
 * and members, and eviction change the data of the first from four threads. The second server gets the journal of the
 * first, byte by byte. It must refuse nothing, and whenever the load pauses both must hold the same: digests, and key
 * by key values, deadlines, members' deadlines, and groups of streams.
 *
 * The second server lives a day behind (preload/late.c): like a replica it keeps expired keys until it gets their
 * deletion. */
#include "grammar.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WRITERS = 4,
    CONNS_A_WRITER = 4,
    ROUND_OPS = 8,
    SHOWN_COMMANDS = 12,
    KEYS_SHOWN = 4,
    DESCRIBED_MOST_BYTES = 1500
};

static const double round_seconds = 4;
static const int64_t time_least = 1000000000000, known_ms = 90000000000000;

struct following {
    int port;
    uint64_t seed, until_ns;
    struct conn source, copy;
    struct text stream; /* effects since both were equal */
    uint64_t commands, sent[WRITERS];
    unsigned rounds, evictions;
    atomic_uint writing;
};

/* --- the load --- */

static void add_work(struct conn *conn, struct chance *chance)
{
    unsigned roll = chance_below(chance, 24), count = 1 + chance_below(chance, 6);

    if (roll == 0) {
        grammar_add_wait(conn, chance);
        return;
    }
    if (roll > 2) {
        grammar_add_change(conn, chance);
        return;
    }
    if (chance_below(chance, 3) == 0)
        conn_add(conn, "WATCH b1 l2 h3");
    conn_add(conn, "MULTI");
    for (unsigned i = 0; i < count; i++) {
        if (chance_below(chance, 10) == 0)
            grammar_add_wait(conn, chance);
        else
            grammar_add_change(conn, chance);
    }
    conn_add(conn, chance_below(chance, 20) == 0 ? "DISCARD" : "EXEC");
}

static void write_load(struct following *following, unsigned index)
{
    struct chance chance = chance_make(following->seed, 700 + following->rounds * WRITERS + index);
    struct conn conns[CONNS_A_WRITER];

    for (unsigned c = 0; c < CONNS_A_WRITER; c++)
        conn_start(&conns[c], following->port, (int)chance_below(&chance, GRAMMAR_DBS));
    while (now_ns() < following->until_ns) {
        for (unsigned c = 0; c < CONNS_A_WRITER; c++) {
            for (unsigned i = 0; i < ROUND_OPS; i++)
                add_work(&conns[c], &chance);
            conn_add(&conns[c], "ECHO end");
            conn_send(&conns[c]);
        }
        for (unsigned c = 0; c < CONNS_A_WRITER; c++) {
            struct raw reply;

            do {
                if (conn_read(&conns[c], &reply, reply_limit_seconds) != GOT_REPLY)
                    die("follower: a writer got no reply");
            } while (!raw_says(reply, "end"));
            following->sent[index] += ROUND_OPS;
        }
    }
    for (unsigned c = 0; c < CONNS_A_WRITER; c++)
        conn_close(&conns[c]);
    atomic_fetch_sub(&following->writing, 1);
}

/* --- following --- */

/* The stream's command with that number, counted from its begin; of EXEC the whole transaction. */
static struct raw stream_command(struct raw stream, uint64_t number)
{
    static const char multi[] = "*1\r\n$5\r\nMULTI";
    size_t at = 0, begin = 0, size = 0;

    for (uint64_t i = 0; i <= number; i++) {
        at += size;
        size = raw_size(stream.data + at, stream.size - at);
        if (size > sizeof(multi) && memcmp(stream.data + at, multi, sizeof(multi) - 1) == 0)
            begin = at;
    }
    if (size == sizeof("*1\r\n$4\r\nEXEC\r\n") - 1)
        return (struct raw){stream.data + begin, at + size - begin};
    return (struct raw){stream.data + at, size};
}

/* An error, or an array that has one (EXEC). */
static bool has_error(struct raw reply)
{
    if (raw_is_error(reply))
        return true;
    for (int64_t i = 0; raw_is_array(reply) && reply.size > 20 && i < raw_number(reply); i++) {
        if (raw_is_error(raw_child(reply, (size_t)i)))
            return true;
    }
    return false;
}

/* Gives the journal to the copy; nothing of it may fail. */
static bool follow(struct following *following)
{
    struct raw reply = conn_ask(&following->source, "DEBUG JOURNAL READ"), stream, answer;
    char command[1000], error[300];
    uint64_t count = 0, at = 0;

    if (!raw_is_string(reply))
        die("follower: DEBUG JOURNAL READ: %s", raw_show(reply, command, sizeof(command)));
    stream = raw_string(reply);
    if (stream.size == 0)
        return false;
    text_append(&following->stream, stream.data, stream.size);
    text_append(&following->copy.out, stream.data, stream.size);
    if (!conn_send(&following->copy))
        die("follower: the second server has closed the connection");
    for (size_t done = 0; done < stream.size; count++)
        done += raw_size(stream.data + done, stream.size - done);
    for (; at < count; at++) {
        if (conn_read(&following->copy, &answer, reply_limit_seconds) != GOT_REPLY)
            die("follower: the second server does not answer: %s",
                raw_show(stream_command(stream, at), command, sizeof(command)));
        if (has_error(answer))
            complain("follower: refused: %s: %s", raw_show(stream_command(stream, at), command, sizeof(command)),
                     raw_show(answer, error, sizeof(error)));
    }
    following->commands += count;
    return true;
}

/* Now and then for a moment there is less memory than is used. */
static void squeeze(struct following *following, struct chance *chance, unsigned *left)
{
    static const char *const policies[] = {"allkeys-random", "allkeys-lru", "volatile-ttl", "allkeys-lfu"};

    if (*left != 0 && --*left == 0) {
        conn_ask(&following->source, "CONFIG SET maxmemory 0");
    } else if (*left == 0 && chance_below(chance, 200) == 0) {
        int64_t used = info_number(conn_ask(&following->source, "INFO memory"), "used_memory");

        conn_ask(&following->source, "CONFIG SET maxmemory-policy %s maxmemory-clients 0 maxmemory %lld",
                 policies[chance_below(chance, COUNTOF(policies))], (long long)(used - 20000));
        *left = 3;
        following->evictions++;
    }
}

static void follower_thread(void *context, unsigned index)
{
    struct following *following = context;
    struct chance chance = chance_make(following->seed, 900 + following->rounds);
    unsigned left = 0;

    if (index < WRITERS) {
        write_load(following, index);
        return;
    }
    while (atomic_load(&following->writing) != 0) {
        follow(following);
        squeeze(following, &chance, &left);
        sleep_ms(5);
    }
    conn_ask(&following->source, "CONFIG SET maxmemory 0");
}

/* --- contents of a server --- */

static int compare_raws(const void *a, const void *b)
{
    const struct raw *one = a, *other = b;
    size_t size = one->size < other->size ? one->size : other->size;
    int order = memcmp(one->data, other->data, size);

    return order != 0 ? order : (one->size > other->size) - (one->size < other->size);
}

static void add_raw(struct text *text, struct raw raw)
{
    text_append(text, raw.data, raw.size);
    text_append(text, " ", 1);
}

/* An array's children in order of their bytes, `group` of them each; `text` keeps the order for members. */
static void add_sorted(struct text *text, struct raw array, unsigned group)
{
    size_t count = (size_t)raw_number(array) / group, at = strcspn(array.data, "\n") + 1;
    struct raw *raws = malloc((count + 1) * sizeof(*raws));

    if (raws == NULL)
        die("out of memory");
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;

        for (unsigned g = 0; g < group; g++)
            size += raw_size(array.data + at + size, array.size - at - size);
        raws[i] = (struct raw){array.data + at, size};
        at += size;
    }
    qsort(raws, count, sizeof(*raws), compare_raws);
    for (size_t i = 0; i < count; i++)
        add_raw(text, raws[i]);
    free(raws);
}

/* Everything but what depends on when and where it is asked, and times of delivery: nothing was delivered in the
 * future, so a server that lives a day behind does not take them as they are. */
static void add_stream_facts(struct text *text, struct raw raw)
{
    static const char *const own[] = {"radix-tree-keys", "radix-tree-nodes", "seen-time", "active-time"};
    bool skip = false;
    size_t at;

    if (!raw_is_array(raw)) {
        add_raw(text, raw_is_int(raw) && raw_number(raw) > time_least ? (struct raw){"time", 4} : raw_string(raw));
        return;
    }
    at = strcspn(raw.data, "\n") + 1;
    text_append(text, "(", 1);
    for (int64_t i = 0; i < raw_number(raw); i++) {
        struct raw child = {raw.data + at, raw_size(raw.data + at, raw.size - at)};

        at += child.size;
        if (skip) {
            skip = false;
            continue;
        }
        for (size_t k = 0; k < COUNTOF(own) && !raw_is_array(child); k++)
            skip = skip || raw_says(child, own[k]);
        if (!skip)
            add_stream_facts(text, child);
    }
    text_append(text, ")", 1);
}

/* Deadlines of members, in the order of their names. PTTL says how long it is until then; so does it of a key whose
 * deadline is known, at the same time. */
static void add_member_deadlines(struct text *text, struct conn *conn, const char *key, struct raw members,
                                 unsigned group)
{
    size_t count = (size_t)raw_number(members) / group, at = strcspn(members.data, "\n") + 1;
    struct text copy = {0}, words = {0}, sorted = {0};
    struct raw reply;
    int64_t known_left_ms;

    text_append(&copy, members.data, members.size);
    conn_add(conn, "MULTI");
    conn_add(conn, "SET known 1 PXAT %lld", (long long)known_ms);
    conn_add(conn, "PTTL known");
    for (size_t i = 0; i < count; i++) {
        struct raw member = {copy.data + at, raw_size(copy.data + at, copy.size - at)}, name = raw_string(member);
        const char *args[] = {"PTTL", key, name.data};
        const size_t sizes[] = {4, strlen(key), name.size};

        conn_add_args(conn, 3, args, sizes);
        for (unsigned g = 0; g < group; g++)
            at += raw_size(copy.data + at, copy.size - at);
    }
    conn_add(conn, "DEL known");
    conn_add(conn, "EXEC");
    conn_send(conn);
    for (size_t i = 0; i < count + 5; i++) {
        if (conn_read(conn, &reply, reply_limit_seconds) != GOT_REPLY)
            die("follower: no reply to MULTI ... PTTL");
    }
    known_left_ms = raw_number(raw_child(reply, 1));
    at = strcspn(copy.data, "\n") + 1;
    for (size_t i = 0; i < count; i++) {
        int64_t left = raw_number(raw_child(reply, i + 2));
        struct raw member = {copy.data + at, raw_size(copy.data + at, copy.size - at)};

        if (left >= 0) {
            text_append(&words, "*2\r\n", 4);
            text_append(&words, member.data, member.size);
            text_printf(&words, ":%lld\r\n", (long long)(known_ms - known_left_ms + left));
            sorted.size++; /* counts */
        }
        for (unsigned g = 0; g < group; g++)
            at += raw_size(copy.data + at, copy.size - at);
    }
    count = sorted.size;
    sorted.size = 0;
    if (count != 0) {
        text_printf(&sorted, "*%zu\r\n", count);
        text_append(&sorted, words.data, words.size);
        text_append(text, "ends ", 5);
        add_sorted(text, (struct raw){sorted.data, sorted.size}, 1);
    }
    text_fini(&copy);
    text_fini(&words);
    text_fini(&sorted);
}

static void describe_members(struct text *text, struct conn *conn, const char *key, const char *read, unsigned group,
                             bool in_order)
{
    struct raw members = conn_ask(conn, "%s", read);

    if (in_order)
        add_raw(text, members);
    else
        add_sorted(text, members, group);
    add_member_deadlines(text, conn, key, members, group);
}

/* All that can be seen of a key; nothing of one that is not there. */
static void describe(struct text *text, struct conn *conn, const char *key)
{
    char command[64], type[32];

    text->size = 0;
    raw_show(raw_string(conn_ask(conn, "TYPE %s", key)), type, sizeof(type));
    if (strcmp(type, "none") == 0)
        return;
    text_printf(text, "%s until %lld: ", type, (long long)raw_number(conn_ask(conn, "PEXPIRETIME %s", key)));
    if (strcmp(type, "string") == 0) {
        add_raw(text, conn_ask(conn, "GET %s", key));
    } else if (strcmp(type, "list") == 0) {
        add_raw(text, conn_ask(conn, "LRANGE %s 0 -1", key));
    } else if (strcmp(type, "hash") == 0) {
        snprintf(command, sizeof(command), "HGETALL %s", key);
        describe_members(text, conn, key, command, 2, false);
    } else if (strcmp(type, "set") == 0) {
        snprintf(command, sizeof(command), "SMEMBERS %s", key);
        describe_members(text, conn, key, command, 1, false);
    } else if (strcmp(type, "zset") == 0) {
        snprintf(command, sizeof(command), "ZRANGE %s 0 -1 WITHSCORES", key);
        describe_members(text, conn, key, command, 2, true);
    } else if (strcmp(type, "stream") == 0) {
        add_stream_facts(text, conn_ask(conn, "XINFO STREAM %s FULL COUNT 0", key));
    }
}

/* --- both must be equal --- */

static bool mentions(struct raw command, const char *key)
{
    size_t size = strlen(key);

    for (size_t i = 0; i + size < command.size; i++) {
        if (command.data[i] == '\n' && memcmp(command.data + i + 1, key, size) == 0 &&
            (command.data[i + 1 + size] == '\r' || command.data[i + 1 + size] == '.'))
            return true;
    }
    return false;
}

/* The last commands of the stream that name the key, or could concern it. */
static void show_history(const struct following *following, const char *key)
{
    struct raw found[SHOWN_COMMANDS] = {{0}};
    const struct text *stream = &following->stream;
    unsigned count = 0;
    char room[200];

    for (size_t at = 0; at < stream->size;) {
        struct raw command = {stream->data + at, raw_size(stream->data + at, stream->size - at)};
        struct raw name = raw_string(raw_child(command, 0));

        at += command.size;
        if (mentions(command, key) || memcmp(name.data, "SELECT", 6) == 0 || memcmp(name.data, "FLUSH", 5) == 0 ||
            memcmp(name.data, "SWAPDB", 6) == 0) {
            if (memcmp(name.data, "SELECT", 6) == 0 && count > 0 &&
                memcmp(raw_string(raw_child(found[(count - 1) % SHOWN_COMMANDS], 0)).data, "SELECT", 6) == 0)
                count--;
            found[count++ % SHOWN_COMMANDS] = command;
        }
    }
    for (unsigned i = count > SHOWN_COMMANDS ? count - SHOWN_COMMANDS : 0; i < count; i++)
        say("    %s", raw_show(found[i % SHOWN_COMMANDS], room, sizeof(room)));
}

static void compare_key(struct following *following, int db, const char *key, unsigned *different)
{
    struct text first = {0}, second = {0};
    char one[DESCRIBED_MOST_BYTES], other[DESCRIBED_MOST_BYTES];

    describe(&first, &following->source, key);
    describe(&second, &following->copy, key);
    if (first.size != second.size || (first.size != 0 && memcmp(first.data, second.data, first.size) != 0)) {
        complain("follower: db %d %s: the first has '%s', the second '%s'", db, key,
                 raw_show((struct raw){first.data, first.size}, one, sizeof(one)),
                 raw_show((struct raw){second.data, second.size}, other, sizeof(other)));
        if (++*different <= KEYS_SHOWN)
            show_history(following, key);
    }
    text_fini(&first);
    text_fini(&second);
}

static void compare_names(struct following *following, int db)
{
    struct text first = {0}, second = {0};
    char one[DESCRIBED_MOST_BYTES], other[DESCRIBED_MOST_BYTES];

    add_sorted(&first, conn_ask(&following->source, "KEYS *"), 1);
    add_sorted(&second, conn_ask(&following->copy, "KEYS *"), 1);
    if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0)
        complain("follower: db %d: the first has the keys '%s', the second '%s'", db,
                 raw_show((struct raw){first.data, first.size}, one, sizeof(one)),
                 raw_show((struct raw){second.data, second.size}, other, sizeof(other)));
    text_fini(&first);
    text_fini(&second);
}

static void compare_fingerprints(struct following *following)
{
    static const char *const questions[] = {"DEBUG DIGEST", "FUNCTION LIST WITHCODE"};
    char first[1000], second[1000];

    for (unsigned i = 0; i < COUNTOF(questions); i++) {
        raw_show(conn_ask(&following->source, "%s", questions[i]), first, sizeof(first));
        raw_show(conn_ask(&following->copy, "%s", questions[i]), second, sizeof(second));
        if (strcmp(first, second) != 0)
            complain("follower: %s: %s, %s", questions[i], first, second);
    }
}

/* The load pauses: keys that are due soon expire, the copy gets this, and both are compared. Returns the number of
 * keys. */
static int64_t compare_servers(struct following *following)
{
    unsigned different = 0;
    int64_t keys = 0;

    sleep_ms(2 * GRAMMAR_SOON_MS);
    for (int db = 0; db < GRAMMAR_DBS; db++) {
        conn_ask(&following->source, "SELECT %d", db);
        for (const char *type = grammar_types; *type != 0; type++) {
            for (int i = 0; i < GRAMMAR_KEYS_A_TYPE; i++)
                conn_ask(&following->source, "EXISTS %c%d", *type, i); /* by looking at it */
        }
    }
    while (follow(following))
        ;
    compare_fingerprints(following);
    for (int db = 0; db < GRAMMAR_DBS; db++) {
        conn_ask(&following->source, "SELECT %d", db);
        conn_ask(&following->copy, "SELECT %d", db);
        keys += raw_number(conn_ask(&following->source, "DBSIZE"));
        for (const char *type = grammar_types; *type != 0; type++) {
            for (int i = 0; i < GRAMMAR_KEYS_A_TYPE; i++) {
                char key[8];

                snprintf(key, sizeof(key), "%c%d", *type, i);
                compare_key(following, db, key, &different);
            }
        }
        compare_names(following, db);
    }
    following->stream.size = 0;
    return keys;
}

void part_follower(const struct options *options, double seconds)
{
    static struct following following;
    struct options late = *options;
    struct server server, second;
    uint64_t end = now_ns() + (uint64_t)(seconds * 1e9), sent = 0;
    int64_t keys = 0;
    char preload[600];

    snprintf(preload, sizeof(preload), "%s/late.so", options->folder);
    late.preload = realpath(preload, NULL);
    if (late.preload == NULL)
        die("follower: there is no %s", preload);
    server_start(&server, options, options->server_threads);
    server_start(&second, &late, 1);
    following.port = server.port;
    following.seed = options->seed;
    conn_start(&following.source, server.port, 0);
    conn_start(&following.copy, second.port, 0);
    /* So the entries of producers may have their ids. */
    check(raw_says(conn_ask(&following.copy, "CONFIG SET import-mode yes"), "OK") &&
              raw_says(conn_ask(&following.copy, "CLIENT IMPORT-SOURCE ON"), "OK"),
          "follower: the second server takes what a master says");
    check(raw_number(raw_child(conn_ask(&following.source, "TIME"), 0)) -
                  raw_number(raw_child(conn_ask(&following.copy, "TIME"), 0)) >
              23 * 3600,
          "follower: the second server lives a day behind");
    while (now_ns() < end) {
        /* Each reader begins with SELECT: so the copy's connection may be used for questions in between. */
        if (!raw_says(conn_ask(&following.source, "DEBUG JOURNAL START"), "OK"))
            die("follower: DEBUG JOURNAL START is refused");
        following.until_ns = now_ns() + (uint64_t)(round_seconds * 1e9);
        if (following.until_ns > end)
            following.until_ns = end;
        atomic_store(&following.writing, WRITERS);
        threads_run(WRITERS + 1, follower_thread, &following);
        keys += compare_servers(&following);
        conn_ask(&following.source, "DEBUG JOURNAL STOP");
        following.rounds++;
    }
    for (unsigned i = 0; i < WRITERS; i++)
        sent += following.sent[i];
    say("follower: %llu commands and transactions sent, %llu commands in the stream, %u comparisons of %lld keys on "
        "average, %u times too little memory",
        (unsigned long long)sent, (unsigned long long)following.commands, following.rounds,
        (long long)(keys / (following.rounds != 0 ? following.rounds : 1)), following.evictions);
    check(complaints() == 0 && keys > 0, "follower: both servers hold the same whenever the load rests");
    conn_close(&following.source);
    conn_close(&following.copy);
    text_fini(&following.stream);
    free((void *)(uintptr_t)late.preload);
    server_stop(&second, "follower, the second server");
    server_stop(&server, "follower");
}
