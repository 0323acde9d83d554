/* What listeners are told of: invalidations, keyspace events, lines of MONITOR, messages. All of it stands in the
 * mailboxes of the listeners' workers before the stripes are released whose change it tells of, so that each worker
 * finds it in the order of the changes, key by key.
 *
 *     change -> noted by the worker that makes it -> telling_noted, under the stripes -> deliveries
 *            -> stripes released -> deliveries_flush wakes who got some
 *
 * And a client that keeps copies of keys is never shown something newer than what it is still to be told of: while mail
 * waits for its worker, its replies take their place in that mailbox. */
#pragma once

#include "server/core/client.h"
#include "server/core/worker.h"

/* What was noted goes into mailboxes. The worker's thread; the stripes of what changed, or the gate, are held. It makes
 * no system call. */
void telling_noted_slow(struct worker *worker);
static inline void telling_noted(struct worker *worker)
{
    if (UNLIKELY(worker->run.access.has_noted))
        telling_noted_slow(worker);
}
/* Something was noted; `size` is what the notes of its kind take by now. Much is told at once, so that a long script
 * keeps no more. The worker's thread. */
static inline void telling_note(struct worker *worker, size_t size)
{
    enum { NOTES_MOST_BYTES = 64 << 10 };

    worker_assert_self(worker);
    worker->run.access.has_noted = true;
    if (UNLIKELY(size > NOTES_MOST_BYTES))
        telling_noted_slow(worker);
}

/* A client's replies that wait for the mail before them. Between open and close they are written aside. */
struct reply_place {
    struct mail mail;
    struct client *client; /* NULL: replies go where they always go */
    struct output reply;
    bool is_marked, is_reached;
};

/* For clients that track. Once the stripes are held, before the first command: what was changed by then comes before
 * the replies, what is changed from then on comes behind them. */
void reply_place_take(struct reply_place *place, struct client *client);
/* The same in two steps, for commands that take stripes by themselves: before, and afterwards, inside of the gate. */
void reply_place_open(struct reply_place *place, struct client *client);
void reply_place_mark(struct reply_place *place);
/* Outside of the gate, no lock held: reads the mail before the place, then the replies go to the client. */
void reply_place_close(struct reply_place *place);
