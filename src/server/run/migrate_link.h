/* Connections of MIGRATE to other servers. Calls wait for the network, for at most the given time in each step. So they
 * are for threads that serve no clients. */
#pragma once

#include "base/buffer.h"
#include "base/info_row.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct info_row migrate_link_info[];

struct migrate_links; /* open connections kept for further use; owned by the thread that creates them */

void migrate_links_setup(void);     /* before all other functions here */
void migrate_links_interrupt(void); /* any thread: ends all waiting, now and later */
void migrate_links_teardown(void);
struct migrate_links *migrate_links_create(void);
void migrate_links_destroy(struct migrate_links **links);
void migrate_links_close_idle(struct migrate_links *links); /* those not used for 10 seconds */
unsigned migrate_links_count(void);                         /* number of open connections; any thread */

enum migrate_end {
    MIGRATE_DONE,        /* every command has a reply */
    MIGRATE_NO_ADDRESS,  /* the host name cannot be resolved */
    MIGRATE_NOT_WRITTEN, /* no connection, or it failed before everything was sent */
    MIGRATE_NOT_READ,    /* it failed before everything was answered */
    MIGRATE_REFUSED      /* AUTH or SELECT failed: nothing was sent */
};

/* An order to send commands, and its result. */
struct migrate_order {
    char *host, *port;
    int64_t db;
    int timeout_ms;
    struct slice user, password; /* NULL data: no AUTH, or AUTH without a user */
    struct buffer commands;      /* `count` commands */
    uint32_t count;
    bool *accepted; /* for each command; false: an error, or no reply */
    enum migrate_end end;
    char error[256]; /* the first error of the other server; empty: none */
};

/* In the links' thread. links NULL: opens a connection for this order only. */
void migrate_link_run(struct migrate_links *links, struct migrate_order *order);

/* Appends the words as a command. */
void migrate_append_words(struct buffer *buffer, const struct slice *words, uint32_t count);
