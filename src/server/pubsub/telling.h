/* Informing listeners: invalidations, keyspace events, lines of MONITOR, messages. All of these are posted to the
 * listeners' workers before the stripes of the change are released. So each worker gets them in the order of the
 * changes of each key.
 *
 *     change -> noted by its worker -> telling_noted, with the stripes held -> deliveries
 *            -> stripes released -> deliveries_flush wakes the receivers
 *
 * A client that tracks never gets a reply that is newer than an invalidation it has not got yet: while mail waits for
 * its worker, its replies take a place in that mailbox. */
#pragma once

#include "server/core/client.h"
#include "server/core/worker.h"

/* Posts what was noted. The worker's thread; the stripes of what changed, or the gate, are held. It makes no system
 * call. */
void telling_noted_slow(struct worker *worker);
static inline void telling_noted(struct worker *worker)
{
    if (UNLIKELY(worker->run.access.has_noted))
        telling_noted_slow(worker);
}
/* Call it after noting something; `size` is the size of all notes of its kind. Many notes are posted at once, so that a
 * long script keeps few. The worker's thread. */
static inline void telling_note(struct worker *worker, size_t size)
{
    enum { NOTES_MOST_BYTES = 64 << 10 };

    worker_assert_self(worker);
    worker->run.access.has_noted = true;
    if (UNLIKELY(size > NOTES_MOST_BYTES))
        telling_noted_slow(worker);
}

/* The replies of a client that wait for the mail before them. Between open and close they are written aside. */
struct reply_place {
    struct mail mail;
    struct client *client; /* NULL: replies go directly to the client */
    struct output reply;
    bool is_marked, is_reached;
};

/* For clients that track. Call it when the stripes are held, before the first command: invalidations of earlier changes
 * come before the replies, those of later changes after them. */
void reply_place_take(struct reply_place *place, struct client *client);
/* The same in two steps, before and after a command that takes stripes by itself, inside of the gate. */
void reply_place_open(struct reply_place *place, struct client *client);
void reply_place_mark(struct reply_place *place);
/* Outside of the gate, no lock held: reads the mail before the place, then sends the replies to the client. */
void reply_place_close(struct reply_place *place);
