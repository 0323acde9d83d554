/* The append-only file is switched on and off, its policy changed, it is rewritten, loaded again and saved beside, in
 * any order and from several threads, while others write and wait for the disk. Every command is answered; in the end
 * the file is switched on once more, and its contents are the data. */
#include "conn.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SWITCHERS = 3, WRITERS = 4, WRITERS_CONNS = 4, ALL = SWITCHERS + WRITERS };

/* clang-format off */
static const char *const orders[] = {
    "CONFIG SET appendonly yes", "CONFIG SET appendonly no", "CONFIG SET appendfsync always",
    "CONFIG SET appendfsync everysec", "CONFIG SET appendfsync no", "CONFIG SET appendonly yes appendfsync always",
    "CONFIG SET no-appendfsync-on-rewrite yes", "CONFIG SET no-appendfsync-on-rewrite no",
    "CONFIG SET aof-use-rdb-preamble yes", "CONFIG SET aof-use-rdb-preamble no",
    "CONFIG SET auto-aof-rewrite-percentage 1 auto-aof-rewrite-min-size 1", "CONFIG SET auto-aof-rewrite-percentage 0",
    "CONFIG SET rdb-key-save-delay 50", "CONFIG SET rdb-key-save-delay 0", "BGREWRITEAOF", "BGREWRITEAOF", "BGSAVE",
    "BGSAVE SCHEDULE", "SAVE", "DEBUG LOADAOF", "ACL SETUSER somebody on nopass +@all", "ACL DELUSER somebody",
};
/* clang-format on */

struct switches {
    int port;
    uint64_t seed, until_ns;
    _Atomic uint64_t ordered, written, waited;
};

/* Errors are answers, too: a rewrite runs already, the file is off. */
static void answer(struct conn *conn, const char *what)
{
    struct raw reply;

    if (conn_read(conn, &reply, reply_limit_seconds) != GOT_REPLY)
        die("switches: no reply to %s within %g s", what, reply_limit_seconds);
}

static void give_orders(struct switches *switches, unsigned index)
{
    struct chance chance = chance_make(switches->seed, 900 + index);
    struct conn conn;

    conn_start(&conn, switches->port, 0);
    while (now_ns() < switches->until_ns) {
        const char *order = orders[chance_below(&chance, COUNTOF(orders))];

        conn_post(&conn, "%s", order);
        answer(&conn, order);
        atomic_fetch_add(&switches->ordered, 1);
        if (chance_below(&chance, 4) == 0)
            sleep_ms(chance_below(&chance, 30));
    }
    conn_close(&conn);
}

static void write_keys(struct switches *switches, unsigned index)
{
    struct chance chance = chance_make(switches->seed, 950 + index);
    struct conn conns[WRITERS_CONNS];

    for (unsigned c = 0; c < WRITERS_CONNS; c++)
        conn_start(&conns[c], switches->port, 0);
    while (now_ns() < switches->until_ns) {
        bool waits = chance_below(&chance, 50) == 0;

        for (unsigned c = 0; c < WRITERS_CONNS; c++)
            conn_post(&conns[c], waits ? "WAITAOF 1 0 0" : "INCR counter:%u", chance_below(&chance, 200));
        for (unsigned c = 0; c < WRITERS_CONNS; c++)
            answer(&conns[c], waits ? "WAITAOF" : "INCR");
        atomic_fetch_add(waits ? &switches->waited : &switches->written, WRITERS_CONNS);
    }
    for (unsigned c = 0; c < WRITERS_CONNS; c++)
        conn_close(&conns[c]);
}

static void switches_thread(void *context, unsigned index)
{
    if (index < SWITCHERS)
        give_orders(context, index);
    else
        write_keys(context, index);
}

static void settle(struct conn *conn, const char *field)
{
    for (uint64_t limit = now_ns() + 60ull * 1000000000; info_number(conn_ask(conn, "INFO persistence"), field) != 0;
         sleep_ms(20)) {
        if (now_ns() > limit)
            die("switches: %s stays", field);
    }
}

static void look_at_the_end(int port)
{
    char before[200], after[200];
    struct conn conn;

    conn_start(&conn, port, 0);
    conn_ask(&conn, "CONFIG SET rdb-key-save-delay 0 auto-aof-rewrite-percentage 0 appendonly no");
    settle(&conn, "aof_rewrite_in_progress");
    check(raw_says(conn_ask(&conn, "CONFIG SET appendonly yes appendfsync always"), "OK"),
          "switches: it is switched on in the end");
    settle(&conn, "rdb_bgsave_in_progress");
    settle(&conn, "aof_rewrite_scheduled");
    settle(&conn, "aof_rewrite_in_progress");
    conn_ask(&conn, "INCR counter:0");
    raw_show(conn_ask(&conn, "DEBUG DIGEST"), before, sizeof(before));
    check(raw_says(conn_ask(&conn, "DEBUG LOADAOF"), "OK"), "switches: and can be loaded");
    raw_show(conn_ask(&conn, "DEBUG DIGEST"), after, sizeof(after));
    check(strcmp(before, after) == 0, "switches: what it says is what there was (%s, %s)", before, after);
    conn_close(&conn);
}

void part_switches(const struct options *options, double seconds)
{
    struct switches switches = {.seed = options->seed};
    struct options own = *options;
    char dir[400], command[500];
    struct server server;

    snprintf(dir, sizeof(dir), "%s/switches-%d", options->folder, (int)getpid());
    if (mkdir(dir, 0755) != 0)
        die("switches: %s cannot be made", dir);
    own.dir = dir;
    server_start(&server, &own, options->server_threads);
    switches.port = server.port;
    switches.until_ns = now_ns() + (uint64_t)(seconds * 1e9);
    threads_run(ALL, switches_thread, &switches);
    check(complaints() == 0, "switches: %llu orders, %llu writes, %llu waits for the disk were answered",
          (unsigned long long)switches.ordered, (unsigned long long)switches.written,
          (unsigned long long)switches.waited);
    look_at_the_end(server.port);
    server_stop(&server, "switches");
    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    if (system(command) != 0)
        say("%s stays", dir);
}
