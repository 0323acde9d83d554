/* Blocking on lists (BLPOP and similar commands): producers push numbers, each once; consumers take them in every
 * possible way, with short timeouts, from several keys, moving them from list to list. Meanwhile CLIENT UNBLOCK ends
 * waits, and some waiting clients disconnect. In the end every number was taken once. Only numbers on their way to a
 * disconnected client may be missing: at most one for each. */
#include "conn.h"

#include <stdatomic.h>
#include <string.h>

enum {
    PRODUCERS = 3,
    CONSUMERS = 12,
    LEAVERS = 2,
    LISTS = 6,
    NUMBERS_MOST = 4 * 1000 * 1000,
    BACKLOG_MOST = 200 /* numbers under way: so that consumers wait */
};

struct waiting {
    int port;
    uint64_t seed, end_ns;
    _Atomic uint32_t pushed, taken, served, ended, left;
    _Atomic uint32_t producers;               /* still at work */
    _Atomic int64_t ids[CONSUMERS];           /* of connections, for CLIENT UNBLOCK */
    _Atomic unsigned char seen[NUMBERS_MOST]; /* by number: how often it was taken */
};

static void take(struct waiting *waiting, struct raw raw)
{
    int64_t number = raw_number(raw);

    if (number < 0 || number >= NUMBERS_MOST) {
        complain("waiting: a number that nobody pushed");
        return;
    }
    if (atomic_fetch_add(&waiting->seen[number], 1) != 0)
        complain("waiting: %lld was taken twice", (long long)number);
    atomic_fetch_add(&waiting->taken, 1);
}

/* --- producers --- */

static uint32_t next_numbers(struct waiting *waiting, uint32_t count)
{
    uint32_t first = atomic_fetch_add(&waiting->pushed, count);

    if (first + count > NUMBERS_MOST)
        die("waiting: out of numbers");
    return first;
}

static bool is_full(struct waiting *waiting)
{
    return atomic_load(&waiting->pushed) - atomic_load(&waiting->taken) > BACKLOG_MOST + atomic_load(&waiting->left);
}

static void push_once(struct waiting *waiting, struct conn *conn, struct chance *chance)
{
    uint32_t kind = chance_below(chance, 10), first, replies = 1;
    struct raw reply;

    if (kind < 6) {
        first = next_numbers(waiting, 1);
        conn_add(conn, "%s q%u %u", kind < 3 ? "RPUSH" : "LPUSH", chance_below(chance, LISTS), first);
    } else if (kind < 8) {
        first = next_numbers(waiting, 3);
        conn_add(conn, "RPUSH q%u %u %u %u", chance_below(chance, LISTS), first, first + 1, first + 2);
    } else {
        first = next_numbers(waiting, 2);
        replies = 5;
        conn_add(conn, "MULTI");
        conn_add(conn, "RPUSH q%u %u", chance_below(chance, LISTS), first);
        conn_add(conn, "INCR transactions");
        conn_add(conn, "LPUSH q%u %u", chance_below(chance, LISTS), first + 1);
        conn_add(conn, "EXEC");
    }
    if (!conn_send(conn))
        die("waiting: a producer was cut off");
    for (uint32_t i = 0; i < replies; i++) {
        if (conn_read(conn, &reply, reply_limit_seconds) != GOT_REPLY || raw_is_error(reply)) {
            complain("waiting: a push got no reply");
            return;
        }
    }
}

static void produce(struct waiting *waiting, unsigned index)
{
    struct chance chance = chance_make(waiting->seed, 100 + index);
    struct conn conn;

    conn_start(&conn, waiting->port, 0);
    while (now_ns() < waiting->end_ns) {
        if (is_full(waiting))
            sleep_ms(0.1);
        else
            push_once(waiting, &conn, &chance);
    }
    conn_close(&conn);
    atomic_fetch_sub(&waiting->producers, 1);
}

/* --- consumers --- */

static void ask(struct conn *conn, struct chance *chance)
{
    unsigned a = chance_below(chance, LISTS), b = chance_below(chance, LISTS), c = chance_below(chance, LISTS);
    double seconds = 0.001 * (1 + chance_below(chance, 30));

    switch (chance_below(chance, 7)) {
    case 0:
    case 1:
        conn_add(conn, "BLPOP q%u q%u q%u nothing %g", a, b, c, seconds);
        break;
    case 2:
        conn_add(conn, "BRPOP q%u %g", a, seconds);
        break;
    case 3:
        conn_add(conn, "BLMPOP %g 3 q%u q%u q%u RIGHT COUNT 4", seconds, a, b, c);
        break;
    case 4:
        conn_add(conn, "BLMOVE q%u q%u LEFT RIGHT %g", a, b, seconds);
        break;
    case 5:
        conn_add(conn, "BRPOPLPUSH q%u q%u %g", a, b, seconds);
        break;
    default:
        conn_add(conn, "LPOP q%u", a);
        break;
    }
}

/* "key value", "key (value ...)", "value" of a move, or nothing. */
static void hear(struct waiting *waiting, struct raw reply, bool is_pop)
{
    if (raw_is_array(reply) && raw_number(reply) == 2) {
        struct raw found = raw_child(reply, 1);

        atomic_fetch_add(&waiting->served, 1);
        if (!raw_is_array(found)) {
            take(waiting, found);
            return;
        }
        for (int64_t i = 0; i < raw_number(found); i++)
            take(waiting, raw_child(found, (size_t)i));
    } else if (is_pop && raw_is_string(reply) && !raw_is_null(reply)) {
        take(waiting, reply);
    } else if (raw_is_error(reply)) {
        atomic_fetch_add(&waiting->ended, 1);
    }
}

static bool is_done(struct waiting *waiting)
{
    return atomic_load(&waiting->producers) == 0 && now_ns() > waiting->end_ns;
}

static void consume(struct waiting *waiting, unsigned index)
{
    struct chance chance = chance_make(waiting->seed, 200 + index);
    struct conn conn;
    struct raw reply;

    conn_start(&conn, waiting->port, 0);
    atomic_store(&waiting->ids[index], conn.id);
    while (!is_done(waiting)) {
        bool is_pop;

        ask(&conn, &chance);
        is_pop = conn.out.size > 12 && memmem(conn.out.data, conn.out.size, "\nLPOP", 5) != NULL;
        if (!conn_send(&conn))
            die("waiting: a consumer was cut off");
        if (conn_read(&conn, &reply, reply_limit_seconds) != GOT_REPLY) {
            complain("waiting: no reply, not even that of a time-out");
            return;
        }
        hear(waiting, reply, is_pop);
    }
    conn_close(&conn);
}

/* --- trouble --- */

static void unblock(struct waiting *waiting)
{
    struct chance chance = chance_make(waiting->seed, 300);
    struct conn conn;

    conn_start(&conn, waiting->port, 0);
    while (!is_done(waiting)) {
        int64_t id = atomic_load(&waiting->ids[chance_below(&chance, CONSUMERS)]);

        (void)conn_ask(&conn, "CLIENT UNBLOCK %lld %s", (long long)id, chance_below(&chance, 2) ? "ERROR" : "TIMEOUT");
    }
    conn_close(&conn);
}

static void leave_again_and_again(struct waiting *waiting, unsigned index)
{
    struct chance chance = chance_make(waiting->seed, 400 + index);
    struct conn conn;

    while (!is_done(waiting)) {
        if (!conn_try_start(&conn, waiting->port, 0))
            die("waiting: no connection");
        atomic_fetch_add(&waiting->left, 1);
        conn_post(&conn, "BLPOP q%u q%u 0", chance_below(&chance, LISTS), chance_below(&chance, LISTS));
        if (chance_below(&chance, 2) == 0)
            sleep_ms(0.2);
        if (chance_below(&chance, 2) == 0)
            conn_reset(&conn);
        else
            conn_close(&conn);
    }
}

static void act(void *context, unsigned index)
{
    struct waiting *waiting = context;

    if (index < PRODUCERS)
        produce(waiting, index);
    else if (index < PRODUCERS + CONSUMERS)
        consume(waiting, index - PRODUCERS);
    else if (index < PRODUCERS + CONSUMERS + LEAVERS)
        leave_again_and_again(waiting, index);
    else
        unblock(waiting);
}

/* --- the end --- */

static bool comes_to_rest(struct conn *conn, const char *field)
{
    uint64_t limit = now_ns() + (uint64_t)(reply_limit_seconds * 1e9);

    while (info_number(conn_ask(conn, "INFO clients"), field) != 0) {
        if (now_ns() > limit)
            return false;
        sleep_ms(1);
    }
    return true;
}

void part_waiting(const struct options *options, double seconds)
{
    static struct waiting waiting;
    struct server server;
    struct conn conn;
    uint32_t missing = 0;

    server_start(&server, options, options->server_threads);
    waiting.port = server.port;
    waiting.seed = options->seed;
    waiting.end_ns = now_ns() + (uint64_t)(seconds * 1e9);
    atomic_store(&waiting.producers, PRODUCERS);
    threads_run(PRODUCERS + CONSUMERS + LEAVERS + 1, act, &waiting);

    conn_start(&conn, server.port, 0);
    check(comes_to_rest(&conn, "blocked_clients"), "waiting: nobody waits in the end");
    check(comes_to_rest(&conn, "total_blocking_keys"), "waiting: no key is left in a registry");
    check(comes_to_rest(&conn, "clients_in_timeout_table"), "waiting: no time-out is left");
    for (unsigned i = 0; i < LISTS; i++) {
        struct raw rest = conn_ask(&conn, "LRANGE q%u 0 -1", i);

        for (int64_t k = 0; k < raw_number(rest); k++)
            take(&waiting, raw_child(rest, (size_t)k));
    }
    conn_close(&conn);
    for (uint32_t i = 0; i < atomic_load(&waiting.pushed); i++)
        missing += atomic_load(&waiting.seen[i]) == 0;
    check(complaints() == 0, "waiting: every number is taken once");
    check(missing <= atomic_load(&waiting.left), "waiting: %u of %u numbers are missing, %u who waited went away",
          missing, atomic_load(&waiting.pushed), atomic_load(&waiting.left));
    check(atomic_load(&waiting.served) != 0, "waiting: %u were served, %u waits ended by CLIENT UNBLOCK",
          atomic_load(&waiting.served), atomic_load(&waiting.ended));
    server_stop(&server, "waiting");
}
