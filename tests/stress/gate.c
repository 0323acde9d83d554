/* The gate: many connections flood the server with commands that each need it alone, while others run commands on
 * keys and commands that need nothing; clients are killed while they wait, connections hang up, and the whole server
 * is stopped and continued as a busy machine might do. Each kind must get on while others do, and at the end the gate
 * is open. */
#include "conn.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { PLAYERS = 4, CONNS_A_PLAYER = 6, SECONDS_MOST = 600, PIPELINE = 4, JUDGED_LEAST = 1000 };

enum flood {
    FLOOD_KEYS,
    FLOOD_FLUSHDB,
    FLOOD_CONFIG,
    FLOOD_EXEC,
    FLOOD_SWAPDB,
    FLOOD_SLEEP,
    FLOOD_GET,
    FLOOD_SET,
    FLOOD_MSET,
    FLOOD_STRIPED_EXEC,
    FLOOD_PING,
    FLOOD_COUNT
};

/* Each a few commands; sent in one piece. The databases 8 and 9 are flushed and swapped, others keep their keys. */
static const struct {
    const char *name;
    const char *commands[8];
} floods[FLOOD_COUNT] = {
    [FLOOD_KEYS] = {"KEYS", {"KEYS k*"}},
    [FLOOD_FLUSHDB] = {"FLUSHDB", {"SELECT 9", "SET gone 1", "FLUSHDB", "SELECT 0"}},
    [FLOOD_CONFIG] = {"CONFIG SET", {"CONFIG SET hz 12"}},
    [FLOOD_EXEC] = {"EXEC with FLUSHDB", {"SELECT 8", "MULTI", "SET gone 2", "FLUSHDB", "DBSIZE", "EXEC", "SELECT 0"}},
    [FLOOD_SWAPDB] = {"SWAPDB", {"SWAPDB 8 9"}},
    [FLOOD_SLEEP] = {"DEBUG SLEEP", {"DEBUG SLEEP 0.0005"}},
    [FLOOD_GET] = {"GET", {"GET k1"}},
    [FLOOD_SET] = {"SET", {"SET k2 value"}},
    [FLOOD_MSET] = {"MSET", {"MSET k3 a k4 b k5 c", "MGET k3 k4 k5"}},
    [FLOOD_STRIPED_EXEC] = {"EXEC", {"MULTI", "INCR counter", "INCR counter", "EXEC"}},
    [FLOOD_PING] = {"PING", {"PING"}},
};

struct gate {
    int port;
    pid_t pid;
    uint64_t seed, begin_ns, until_ns;
    _Atomic uint32_t done[SECONDS_MOST][FLOOD_COUNT];
    _Atomic int64_t ids[PLAYERS * CONNS_A_PLAYER];
    _Atomic uint64_t kills, hang_ups, stops, reconnects;
};

/* --- those who flood --- */

static void reopen(struct gate *gate, struct conn *conn, unsigned slot)
{
    conn_close(conn);
    while (!conn_try_start(conn, gate->port, 0))
        conn_close(conn);
    atomic_store(&gate->ids[slot], conn->id);
    atomic_fetch_add(&gate->reconnects, 1);
}

/* A connection sends only one kind; which kind it is goes around, so that all kinds wait at once. */
static void flood(struct gate *gate, unsigned index)
{
    struct chance chance = chance_make(gate->seed, 400 + index);
    struct conn conns[CONNS_A_PLAYER];
    unsigned replies[FLOOD_COUNT] = {0};
    char room[300];

    for (unsigned kind = 0; kind < FLOOD_COUNT; kind++) {
        while (replies[kind] < COUNTOF(floods[0].commands) && floods[kind].commands[replies[kind]] != NULL)
            replies[kind]++;
    }
    for (unsigned c = 0; c < CONNS_A_PLAYER; c++) {
        conn_start(&conns[c], gate->port, 0);
        atomic_store(&gate->ids[index * CONNS_A_PLAYER + c], conns[c].id);
    }
    while (now_ns() < gate->until_ns) {
        for (unsigned c = 0; c < CONNS_A_PLAYER; c++) {
            unsigned kind = (index * CONNS_A_PLAYER + c) % FLOOD_COUNT;

            for (unsigned i = 0; i < PIPELINE * replies[kind]; i++)
                conn_add(&conns[c], "%s", floods[kind].commands[i % replies[kind]]);
            conn_send(&conns[c]);
        }
        for (unsigned c = 0; c < CONNS_A_PLAYER; c++) {
            unsigned kind = (index * CONNS_A_PLAYER + c) % FLOOD_COUNT;
            bool hangs_up = chance_below(&chance, 500) == 0;
            enum got got = GOT_REPLY;
            struct raw reply;

            for (unsigned i = 0; i < PIPELINE * replies[kind] && got == GOT_REPLY; i++) {
                got = hangs_up ? GOT_CLOSED : conn_read(&conns[c], &reply, reply_limit_seconds);
                if (got == GOT_REPLY && raw_is_error(reply))
                    complain("gate: %s: %s", floods[kind].name, raw_show(reply, room, sizeof(room)));
                if (got == GOT_REPLY && (i + 1) % replies[kind] == 0) {
                    uint64_t second = (now_ns() - gate->begin_ns) / 1000000000;

                    atomic_fetch_add(&gate->done[second < SECONDS_MOST ? second : SECONDS_MOST - 1][kind], 1);
                }
            }
            if (got == GOT_NOTHING)
                die("gate: %s got no reply within %g s", floods[kind].name, reply_limit_seconds);
            if (got == GOT_CLOSED) {
                atomic_fetch_add(&gate->hang_ups, hangs_up);
                if (hangs_up && chance_below(&chance, 2) == 0)
                    conn_reset(&conns[c]);
                reopen(gate, &conns[c], index * CONNS_A_PLAYER + c);
            }
        }
    }
    for (unsigned c = 0; c < CONNS_A_PLAYER; c++)
        conn_close(&conns[c]);
}

/* --- those who disturb --- */

static void kill_waiting(struct gate *gate)
{
    struct chance chance = chance_make(gate->seed, 498);
    struct conn conn;

    conn_start(&conn, gate->port, 0);
    while (now_ns() < gate->until_ns) {
        int64_t id = atomic_load(&gate->ids[chance_below(&chance, PLAYERS * CONNS_A_PLAYER)]);

        atomic_fetch_add(&gate->kills, (uint64_t)raw_number(conn_ask(&conn, "CLIENT KILL ID %lld", (long long)id)));
        sleep_ms(5 + chance_below(&chance, 20));
    }
    conn_close(&conn);
}

static void stop_server(struct gate *gate)
{
    struct chance chance = chance_make(gate->seed, 499);

    while (now_ns() < gate->until_ns) {
        sleep_ms(50 + chance_below(&chance, 100));
        kill(gate->pid, SIGSTOP);
        sleep_ms(1 + chance_below(&chance, 20));
        kill(gate->pid, SIGCONT);
        atomic_fetch_add(&gate->stops, 1);
    }
}

static void gate_thread(void *context, unsigned index)
{
    struct gate *gate = context;

    if (index < PLAYERS)
        flood(gate, index);
    else if (index == PLAYERS)
        kill_waiting(gate);
    else
        stop_server(gate);
}

/* --- who starves? --- */

/* False if a kind had nothing done while the others had much: seconds are put together until they have, so that a slow
 * machine is not taken for a starved client. */
static bool nobody_starves(_Atomic uint32_t (*done)[FLOOD_COUNT], unsigned seconds, bool show)
{
    uint32_t sums[FLOOD_COUNT] = {0}, all = 0;
    bool fine = true;

    for (unsigned second = 0; second < seconds && second < SECONDS_MOST; second++) {
        for (unsigned kind = 0; kind < FLOOD_COUNT; kind++) {
            sums[kind] += atomic_load(&done[second][kind]);
            all += atomic_load(&done[second][kind]);
        }
        if (all < JUDGED_LEAST)
            continue;
        for (unsigned kind = 0; kind < FLOOD_COUNT; kind++) {
            fine = fine && sums[kind] != 0;
            if (sums[kind] == 0 && show)
                complain("gate: until second %u nothing was done of %s, %u of others", second, floods[kind].name, all);
        }
        memset(sums, 0, sizeof(sums));
        all = 0;
    }
    return fine;
}

static void show_progress(struct gate *gate, unsigned seconds)
{
    char line[1000];
    size_t at = 0;

    for (unsigned kind = 0; kind < FLOOD_COUNT; kind++) {
        uint64_t sum = 0, least = UINT64_MAX;

        for (unsigned second = 0; second < seconds; second++) {
            uint32_t count = atomic_load(&gate->done[second][kind]);

            sum += count;
            least = count < least ? count : least;
        }
        at += (size_t)snprintf(line + at, sizeof(line) - at, "%s %s %llu (least %llu)", kind == 0 ? "" : ",",
                               floods[kind].name, (unsigned long long)sum, (unsigned long long)least);
    }
    say("gate: %u s:%s", seconds, line);
    say("gate: %llu kills, %llu hang-ups, %llu reconnects, %llu stops of the process", (unsigned long long)gate->kills,
        (unsigned long long)gate->hang_ups, (unsigned long long)gate->reconnects, (unsigned long long)gate->stops);
}

static void check_open(struct gate *gate)
{
    struct conn conn;

    conn_start(&conn, gate->port, 9);
    conn_ask(&conn, "SET last 1");
    check(raw_number(conn_ask(&conn, "KEYS *")) >= 1 && raw_says(conn_ask(&conn, "FLUSHDB"), "OK") &&
              raw_number(conn_ask(&conn, "DBSIZE")) == 0 && raw_says(conn_ask(&conn, "SET last 1"), "OK"),
          "gate: it is open when all is over");
    conn_close(&conn);
}

/* Sends a command and waits until it is parked; false: it was answered. */
static bool is_parked(struct conn *conn, struct conn *director, const char *command)
{
    int64_t before = conn_lock_waits(director);

    conn_post(conn, "%s", command);
    while (conn_lock_waits(director) == before) {
        if (!conn_is_silent(conn))
            return false;
    }
    return true;
}

/* The only client that wants the gate disconnects while it waits for a worker inside. If it was killed, others must be
 * served again before that worker has finished; if it just closes, its command may run first. The worker inside holds a
 * key; the other key could have the same lock, hence its name differs in each attempt. */
static bool opens_again(struct gate *gate, unsigned attempt, bool killed)
{
    enum { POOL = 16 };
    struct conn pool[POOL], *holder = &pool[0];
    struct conn *witness = NULL, *waiter = NULL, *asker = NULL, *killer = NULL;
    struct raw reply;
    char get[40];
    bool closed, opened = false;

    for (unsigned i = 0; i < POOL; i++) {
        conn_start(&pool[i], gate->port, 0);
        pool[i].worker = conn_worker(&pool[i]);
    }
    for (unsigned i = 1; i < POOL; i++) {
        if (pool[i].worker == holder->worker)
            continue;
        if (waiter == NULL)
            waiter = &pool[i];
        else if (asker == NULL && pool[i].worker != waiter->worker)
            asker = &pool[i];
        else if (witness == NULL)
            witness = &pool[i];
        else
            killer = &pool[i];
    }
    if (waiter == NULL || asker == NULL || killer == NULL)
        die("gate: too few workers have connections");
    conn_post(holder, "DEBUG BUSY inside %g", reply_limit_seconds / 2);
    while (!is_parked(witness, killer, "EXISTS inside") && conn_is_silent(holder))
        ;
    snprintf(get, sizeof(get), "GET outside%u", attempt);
    closed = is_parked(waiter, killer, "FLUSHDB") && is_parked(asker, killer, get);
    if (killed)
        conn_ask(killer, "CLIENT KILL ID %lld", (long long)waiter->id);
    else
        conn_reset(waiter);
    if (closed && killed)
        opened = conn_read(asker, &reply, reply_limit_seconds / 4) == GOT_REPLY && conn_is_silent(holder);
    conn_ask(killer, "DEBUG RELEASE BUSY");
    if (closed && !killed)
        opened = conn_read(asker, &reply, reply_limit_seconds) == GOT_REPLY;
    conn_read(holder, &reply, reply_limit_seconds);
    for (unsigned i = 0; i < POOL; i++)
        conn_close(&pool[i]);
    return closed && opened;
}

static void check_withdrawal(struct gate *gate, bool killed)
{
    bool opened = false;

    for (unsigned attempt = 0; attempt < 4 && !opened; attempt++)
        opened = opens_again(gate, attempt, killed);
    check(opened, "gate: it opens again when the only client that waits for it %s", killed ? "is killed" : "hangs up");
}

void part_gate(const struct options *options, double seconds)
{
    static struct gate gate;
    static _Atomic uint32_t starved[2][FLOOD_COUNT];
    unsigned whole_seconds;
    struct server server;

    /* At least two seconds: one that is whole would say little. */
    seconds = seconds < 2.2 ? 2.2 : seconds;
    server_start(&server, options, options->server_threads);
    gate.port = server.port;
    gate.pid = server.pid;
    gate.seed = options->seed;
    gate.begin_ns = now_ns();
    gate.until_ns = gate.begin_ns + (uint64_t)(seconds * 1e9);
    threads_run(PLAYERS + 2, gate_thread, &gate);
    whole_seconds = (unsigned)seconds;
    show_progress(&gate, whole_seconds);
    check(server_is_alive(&server), "gate: the server lives");
    check(nobody_starves(gate.done, whole_seconds, true) && complaints() == 0,
          "gate: each of %d kinds got on in %u seconds", FLOOD_COUNT, whole_seconds);
    for (unsigned kind = 0; kind < FLOOD_COUNT; kind++)
        atomic_store(&starved[1][kind], JUDGED_LEAST);
    check(nobody_starves(starved, 2, false), "gate: who gets on does not starve");
    atomic_store(&starved[1][FLOOD_SWAPDB], 0);
    check(!nobody_starves(starved, 2, false), "gate: a kind that starves is noticed");
    check(gate.kills > 0, "gate: %llu clients were killed", (unsigned long long)gate.kills);
    check_open(&gate);
    check_withdrawal(&gate, true);
    check_withdrawal(&gate, false);
    server_stop(&server, "gate");
}
