/* Leaks: rounds of everything that takes memory; after each one all connections are closed and all keys flushed, and
 * the server must be back where it was. The first rounds are not counted: tables grow once and stay. A sanitizer's
 * build looks for leaks at the end by itself, which shows in the exit code. */
#include "conn.h"

#include <stdlib.h>
#include <string.h>

enum {
    WARM_UP_ROUNDS = 2,
    CONNS = 60,
    BIG_BYTES = 300000,
    REPEATS = 100, /* so that a few bytes lost in each show in a short run */
    /* Each worker publishes allocations in steps of 64 KiB; tables and the allocator's pools keep a little. */
    SLACK_BYTES = 1 << 20
};

struct usage {
    int64_t memory, clients, blocked, watching, watched, keys;
};

static char *big_value(void)
{
    char *value = malloc(BIG_BYTES);

    if (value == NULL)
        die("out of memory");
    memset(value, 'x', BIG_BYTES);
    return value;
}

static void add_set(struct conn *conn, const char *key, const char *value, size_t size)
{
    const char *args[] = {"SET", key, value};
    size_t sizes[] = {3, strlen(key), size};

    conn_add_args(conn, 3, args, sizes);
}

static void drain(struct conn *conn, unsigned replies)
{
    struct raw reply;

    for (unsigned i = 0; i < replies; i++) {
        if (conn_read(conn, &reply, reply_limit_seconds) == GOT_NOTHING)
            die("leaks: no reply");
    }
}

/* One connection's part of a round; how it ends is different for each. */
static void misbehave(struct conn *conn, unsigned way, struct chance *chance, const char *big)
{
    switch (way % 12) {
    case 0: /* many keys, some with a lifetime */
        for (unsigned i = 0; i < 400; i++)
            conn_add(conn, i % 3 == 0 ? "SET key%u value%u EX 1000" : "SET key%u value%u", chance_below(chance, 100000),
                     i);
        conn_send(conn);
        drain(conn, 400);
        break;
    case 1: /* big values, replaced and deleted */
        for (unsigned i = 0; i < 6; i++)
            add_set(conn, i % 2 == 0 ? "big1" : "big2", big, BIG_BYTES - i);
        conn_add(conn, "APPEND big1 more");
        conn_add(conn, "COPY big1 big3 REPLACE");
        conn_add(conn, "DEL big2");
        conn_send(conn);
        drain(conn, 9);
        break;
    case 2: /* replies that nobody reads */
        add_set(conn, "big4", big, BIG_BYTES);
        for (unsigned i = 0; i < 30; i++)
            conn_add(conn, "GET big4");
        conn_send(conn);
        break;
    case 3: /* half a big value */
        add_set(conn, "big5", big, BIG_BYTES);
        conn->out.size -= 1000;
        conn_send(conn);
        break;
    case 4: /* half a transaction, with watched keys */
        conn_add(conn, "WATCH key1 key2 key3");
        conn_add(conn, "MULTI");
        add_set(conn, "big6", big, BIG_BYTES);
        conn_add(conn, "SET a b");
        conn_send(conn);
        drain(conn, 4);
        break;
    case 5: /* transactions: done, discarded, refused */
        for (unsigned i = 0; i < REPEATS; i++) {
            conn_add(conn, "WATCH w");
            conn_add(conn, "MULTI");
            conn_add(conn, "SET w 1");
            conn_add(conn, "EXEC");
            conn_add(conn, "MULTI");
            conn_add(conn, "SET w 2");
            conn_add(conn, "DISCARD");
            conn_add(conn, "MULTI");
            conn_add(conn, "NOSUCHCOMMAND");
            conn_add(conn, "EXEC");
        }
        conn_send(conn);
        drain(conn, 10 * REPEATS);
        break;
    case 6: /* keys whose time is over at once */
        for (unsigned i = 0; i < 200; i++)
            conn_add(conn, "SET short%u x PX 1", i);
        conn_send(conn);
        drain(conn, 200);
        break;
    case 7: /* watched, flushed, swapped */
        for (unsigned i = 0; i < REPEATS; i++) {
            conn_add(conn, "WATCH key%u", i);
            conn_add(conn, "UNWATCH");
        }
        conn_add(conn, "WATCH key1");
        conn_add(conn, "SWAPDB 0 1");
        conn_add(conn, "FLUSHDB");
        conn_add(conn, "SWAPDB 0 1");
        conn_send(conn);
        drain(conn, 2 * REPEATS + 4);
        break;
    case 8: /* names, and lists of clients */
        conn_add(conn, "CLIENT SETNAME a-name-of-some-length");
        conn_add(conn, "CLIENT LIST");
        conn_add(conn, "CLIENT KILL ID %lld", (long long)conn->id + 1);
        conn_send(conn);
        drain(conn, 3);
        break;
    case 9: /* a command that is cut in its first line */
        text_append(&conn->out, "*3\r\n$3\r\nSE", 10);
        conn_send(conn);
        break;
    case 10: /* an invalid command: the server disconnects */
        text_append(&conn->out, "*1\r\n$-5\r\n", 9);
        conn_send(conn);
        break;
    default: /* parked, gate and a pipeline behind, and nobody waits */
        conn_add(conn, "DEBUG SLEEP 0.001");
        for (unsigned i = 0; i < 50; i++)
            conn_add(conn, i % 10 == 0 ? "KEYS nothing*" : "APPEND long 0123456789");
        conn_send(conn);
    }
}

static void run_round(const struct server *server, struct chance *chance, const char *big)
{
    struct conn conns[CONNS];

    for (unsigned i = 0; i < CONNS; i++)
        conn_start(&conns[i], server->port, (int)chance_below(chance, 2));
    for (unsigned i = 0; i < CONNS; i++)
        misbehave(&conns[i], i + chance_below(chance, 3), chance, big);
    for (unsigned i = 0; i < CONNS; i++) {
        if (chance_below(chance, 2) == 0)
            conn_reset(&conns[i]);
        else
            conn_close(&conns[i]);
    }
}

static struct usage lru_lfu_now(struct conn *conn)
{
    struct usage usage = {0};
    struct raw info = conn_ask(conn, "INFO clients");

    usage.clients = info_number(info, "connected_clients");
    usage.blocked = info_number(info, "blocked_clients");
    usage.watching = info_number(info, "watching_clients");
    usage.watched = info_number(info, "total_watched_keys");
    usage.memory = info_number(conn_ask(conn, "INFO memory"), "used_memory");
    usage.keys = raw_number(conn_ask(conn, "DBSIZE"));
    return usage;
}

static bool is_quiet(const struct usage *usage)
{
    return usage->clients == 1 && usage->blocked == 0 && usage->watching == 0 && usage->watched == 0 &&
           usage->keys == 0;
}

/* Closed connections and flushed keys go in their own time; what does not go within some seconds stays for ever. */
static struct usage settle(struct conn *conn, int64_t memory_limit)
{
    struct usage usage;
    uint64_t limit = now_ns() + 10ull * 1000000000;

    do {
        conn_ask(conn, "FLUSHALL"); /* a closed connection's last commands may come after the flush before */
        sleep_ms(20);
        usage = lru_lfu_now(conn);
    } while (now_ns() < limit && (!is_quiet(&usage) || usage.memory > memory_limit));
    return usage;
}

void part_leaks(const struct options *options, double seconds)
{
    struct chance chance = chance_make(options->seed, 500);
    struct usage start, warm, end;
    struct server server;
    struct conn conn;
    char *big = big_value();
    uint64_t until_ns;
    unsigned rounds = 0;

    server_start(&server, options, options->server_threads);
    conn_start(&conn, server.port, 0);
    start = settle(&conn, INT64_MAX);
    for (unsigned i = 0; i < WARM_UP_ROUNDS; i++)
        run_round(&server, &chance, big);
    warm = settle(&conn, start.memory + SLACK_BYTES);
    until_ns = now_ns() + (uint64_t)(seconds * 1e9);
    while (now_ns() < until_ns || rounds < 3) {
        run_round(&server, &chance, big);
        rounds++;
    }
    end = settle(&conn, warm.memory + SLACK_BYTES / 2);
    say("leaks: %u rounds of %d connections; used_memory %lld at first, %lld after %d rounds, %lld at the end", rounds,
        CONNS, (long long)start.memory, (long long)warm.memory, WARM_UP_ROUNDS, (long long)end.memory);
    check(is_quiet(&end), "leaks: at the end %lld client, %lld blocked, %lld watching %lld keys, %lld keys",
          (long long)end.clients, (long long)end.blocked, (long long)end.watching, (long long)end.watched,
          (long long)end.keys);
    check(start.memory > 0 && end.memory <= start.memory + 2 * SLACK_BYTES,
          "leaks: used_memory is back to the start but for %lld KiB (2048 may be)",
          (long long)(end.memory - start.memory) / 1024);
    check(end.memory <= warm.memory + SLACK_BYTES / 2, "leaks: it has grown by %lld KiB in %u rounds (512 may be)",
          (long long)(end.memory - warm.memory) / 1024, rounds);
    for (unsigned i = 0; i < 9; i++) { /* memory that stays must show */
        char key[] = "kept0";

        key[4] = (char)('0' + i);
        add_set(&conn, key, big, BIG_BYTES);
    }
    conn_send(&conn);
    drain(&conn, 9);
    start = lru_lfu_now(&conn);
    check(start.memory > warm.memory + SLACK_BYTES / 2 && !is_quiet(&start),
          "leaks: values that stay are noticed: %lld KiB", (long long)(start.memory - warm.memory) / 1024);
    conn_close(&conn);
    free(big);
    server_stop(&server, "leaks");
}
