/* Deliveries: mail for clients of other workers that is not a reply, such as messages and invalidations. A delivery is
 * put into the mailbox at once, also under locks; deliveries_flush wakes the workers after the last unlock.
 *
 * The deliveries under way are bounded: if a client's commands find a worker far behind with its deliveries, the client
 * waits (deliveries_hold) until that worker has caught up. */
#pragma once

#include "server/core/worker.h"

struct client;

enum {
    /* Backlog of one worker beyond which clients wait, until half of it is delivered. */
    DELIVERIES_BACKLOG_BYTES = 4 << 20,
    /* Backlog beyond which the bytes for each receiving client are counted, since one command sends it all. */
    DELIVERIES_MUCH_BYTES = 8 << 20,
    DELIVERIES_TURN_BYTES = 1 << 20, /* a worker delivers this much before it sends its output */
    DELIVERY_BYTES = 256             /* cost of a delivery in addition to its contents */
};

struct delivery {
    struct mail mail;
    uint64_t cost_bytes;
    void (*deliver)(struct worker *worker, struct delivery *delivery); /* also frees it */
};

/* The worker's thread. Set `deliver` before. contents_bytes: memory of the delivery's contents. */
void delivery_post(struct worker *worker, struct worker *receiver, struct delivery *delivery, uint64_t contents_bytes);
/* The same for mail that is not counted, because it is a reply. */
void deliveries_post_mail(struct worker *worker, struct worker *receiver, struct mail *mail);
void deliveries_wake_later(struct worker *worker, struct worker *receiver); /* as if the receiver had got a delivery */
/* The same, for work that is done only after a wake: also wakes the calling worker itself. */
void deliveries_call_later(struct worker *worker, struct worker *receiver);
/* Wakes other workers that have got deliveries; no lock held. The worker reads its own mail at the end of the turn. */
void deliveries_flush(struct worker *worker);
/* Call it after the client's commands, which may have posted deliveries: lets the client wait if a worker is far
 * behind. */
void deliveries_hold(struct client *client);
void deliveries_release_held(struct worker *worker); /* releases clients that need not wait any longer; after a wake */
void deliveries_leave(struct client *client);        /* the client is closed */
