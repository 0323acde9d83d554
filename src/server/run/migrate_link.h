/* Connections to other servers, to which MIGRATE moves keys. Calls wait for the network, at most so long as told for
 * each step: for threads that serve nobody meanwhile. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct migrate_links; /* open connections that are kept for the next time; owned by the thread that makes them */

void migrate_links_setup(void);     /* before anything else here */
void migrate_links_interrupt(void); /* any thread: nothing is waited for any more, from now on */
void migrate_links_teardown(void);
struct migrate_links *migrate_links_create(void);
void migrate_links_destroy(struct migrate_links **links);
void migrate_links_close_idle(struct migrate_links *links); /* those that have not been used for 10 seconds */
unsigned migrate_links_count(void);                         /* open ones that are kept; any thread */

enum migrate_end {
    MIGRATE_DONE,        /* each command has been answered */
    MIGRATE_NO_ADDRESS,  /* the name says nothing to the resolver */
    MIGRATE_NOT_WRITTEN, /* no connection, or it broke before all was sent */
    MIGRATE_NOT_READ,    /* it broke before all was answered */
    MIGRATE_REFUSED      /* AUTH or SELECT was answered by an error: nothing was sent */
};

/* What is to be sent, and what comes of it. */
struct migrate_order {
    char *host, *port;
    int64_t db;
    int timeout_ms;
    struct slice user, password; /* without data: no AUTH, or AUTH without a user */
    struct buffer commands;      /* `count` of them */
    uint32_t count;
    bool *accepted; /* of each; false: an error, or not answered */
    enum migrate_end end;
    char error[256]; /* the first that the other server answered; empty: none */
};

/* In the links' thread. They may be NULL: then the connection is opened for this alone. */
void migrate_link_run(struct migrate_links *links, struct migrate_order *order);

/* One word after the other, as a command. */
void migrate_append_words(struct buffer *buffer, const struct slice *words, uint32_t count);
