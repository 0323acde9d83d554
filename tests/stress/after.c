#include "after.h"

#include "conn.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRITES = 200, TEXT_MOST = 4096 };

struct killer {
    struct after *after;
    unsigned index, serial; /* serial: of the victim; who waits has a key of his own, as he may go late */
    struct conn conn;
    struct chance chance;
};

static struct raw next(struct conn *conn, const char *who)
{
    struct raw raw;

    if (conn_read(conn, &raw, reply_limit_seconds) != GOT_REPLY)
        die("after: %s got no reply", who);
    return raw;
}

static void send_all(struct conn *conn, const char *who)
{
    if (!conn_send(conn))
        die("after: %s was cut off", who);
}

/* In the middle of many writes, each a command, a transaction or a script. */
static void kill_writer(struct killer *killer, struct conn *victim)
{
    uint32_t kind = chance_below(&killer->chance, 3);
    const char *const script[] = {"EVAL", "for i = 1, 20 do redis.call('incr', KEYS[1]) end", "1"};
    char key[32];
    int64_t before, later;

    snprintf(key, sizeof(key), "after:writes:%u", killer->index);
    for (int i = 0; i < WRITES; i++) {
        if (kind == 0) {
            conn_add(victim, "INCR %s", key);
        } else if (kind == 1) {
            conn_add(victim, "MULTI");
            conn_add(victim, "INCR %s", key);
            conn_add(victim, "EXEC");
        } else {
            const char *args[] = {script[0], script[1], script[2], key};
            size_t sizes[] = {strlen(script[0]), strlen(script[1]), strlen(script[2]), strlen(key)};

            conn_add_args(victim, 4, args, sizes);
        }
    }
    if (!conn_send(victim))
        return;
    if (chance_below(&killer->chance, 2) == 0)
        sleep_ms(0.1 * chance_below(&killer->chance, 10));
    if (raw_number(conn_ask(&killer->conn, "CLIENT KILL ID %lld", (long long)victim->id)) != 1)
        complain("after: a writer was not found");
    before = raw_number(conn_ask(&killer->conn, "GET %s", key));
    sleep_ms(1);
    later = raw_number(conn_ask(&killer->conn, "GET %s", key));
    if (before != later)
        complain("after: KILL: a killed client wrote %lld times more", (long long)(later - before));
}

/* The end of a wait, by KILL or UNBLOCK, and an element in one piece: the element stays. */
static void end_waiter(struct killer *killer, struct conn *victim)
{
    bool kills = chance_below(&killer->chance, 2) == 0;
    int64_t ended, size;

    conn_add(victim, "BLPOP after:waits:%u:%u 0", killer->index, killer->serial);
    if (!conn_send(victim))
        return;
    if (chance_below(&killer->chance, 2) == 0)
        sleep_ms(0.2);
    if (kills)
        conn_add(&killer->conn, "CLIENT KILL ID %lld", (long long)victim->id);
    else
        conn_add(&killer->conn, "CLIENT UNBLOCK %lld", (long long)victim->id);
    conn_add(&killer->conn, "RPUSH after:waits:%u:%u v", killer->index, killer->serial);
    conn_add(&killer->conn, "LLEN after:waits:%u:%u", killer->index, killer->serial);
    conn_add(&killer->conn, "DEL after:waits:%u:%u", killer->index, killer->serial);
    send_all(&killer->conn, "a killer");
    ended = raw_number(next(&killer->conn, "a killer"));
    (void)next(&killer->conn, "a killer");
    size = raw_number(next(&killer->conn, "a killer"));
    (void)next(&killer->conn, "a killer");
    if (ended == 1 && size != 1)
        complain("after: %s: an element was taken all the same", kills ? "KILL" : "UNBLOCK");
}

static void kill_listener(struct killer *killer, struct conn *victim)
{
    int64_t count;

    conn_ask(victim, "SUBSCRIBE after:channel:%u", killer->index);
    conn_add(&killer->conn, "CLIENT KILL ID %lld", (long long)victim->id);
    conn_add(&killer->conn, "PUBLISH after:channel:%u x", killer->index);
    send_all(&killer->conn, "a killer");
    (void)next(&killer->conn, "a killer");
    count = raw_number(next(&killer->conn, "a killer"));
    if (count != 0)
        complain("after: KILL: a killed client is counted by PUBLISH");
}

void after_kill(struct after *after, unsigned index)
{
    struct killer killer = {.after = after, .index = index, .chance = chance_make(after->seed, 1100 + index)};

    conn_start(&killer.conn, after->port, 0);
    while (now_ns() < after->end_ns) {
        struct conn victim;

        killer.serial++;
        conn_start(&victim, after->port, 0);
        switch (chance_below(&killer.chance, 4)) {
        case 0:
        case 1:
            kill_writer(&killer, &victim);
            break;
        case 2:
            end_waiter(&killer, &victim);
            break;
        default:
            kill_listener(&killer, &victim);
            break;
        }
        conn_close(&victim);
        atomic_fetch_add_explicit(&after->kills, 1, memory_order_relaxed);
    }
    conn_close(&killer.conn);
}

static void read_all(struct conn *conn, const char *const *reads, unsigned count, char text[TEXT_MOST])
{
    size_t at = 0;

    for (unsigned i = 0; i < count; i++)
        conn_add(conn, "%s", reads[i]);
    send_all(conn, "a pauser");
    for (unsigned i = 0; i < count; i++) {
        struct raw raw = next(conn, "a pauser");

        if (at + raw.size >= TEXT_MOST)
            die("after: there is much to read");
        memcpy(text + at, raw.data, raw.size);
        at += raw.size;
    }
    text[at] = 0;
}

void after_pause(struct after *after, const char *const *reads, unsigned read_count, unsigned index)
{
    struct chance chance = chance_make(after->seed, 1200 + index);
    char before[TEXT_MOST], later[TEXT_MOST];
    struct conn conn;

    conn_start(&conn, after->port, 0);
    while (now_ns() < after->end_ns) {
        sleep_ms(1 + chance_below(&chance, 30));
        conn_ask(&conn, "CLIENT PAUSE 60000 WRITE");
        read_all(&conn, reads, read_count, before);
        sleep_ms(chance_below(&chance, 3));
        read_all(&conn, reads, read_count, later);
        if (strcmp(before, later) != 0)
            complain("after: PAUSE: a key has changed");
        conn_ask(&conn, "CLIENT UNPAUSE");
        atomic_fetch_add_explicit(&after->pauses, 1, memory_order_relaxed);
    }
    conn_close(&conn);
}
