/* Deliveries: mail for clients of other workers that is no reply: messages, invalidations. A delivery is put into the
 * mailbox at once, also under locks; deliveries_flush wakes the workers after the last unlock.
 *
 * The deliveries under way are bounded: a client whose commands find a worker far behind with its deliveries waits
 * (deliveries_hold) until that worker has caught up. */
#pragma once

#include "server/core/worker.h"

struct client;

enum {
    DELIVERIES_BACKLOG_BYTES = 4 << 20, /* for one worker, beyond which clients wait until half are delivered */
    DELIVERIES_MUCH_BYTES = 8 << 20,    /* beyond which what single clients are sent is counted: one command sends it */
    DELIVERIES_TURN_BYTES = 1 << 20,    /* that a worker delivers before it sends what it has */
    DELIVERY_BYTES = 256                /* what a delivery counts beside its contents */
};

struct delivery {
    struct mail mail;
    uint64_t cost_bytes;
    void (*deliver)(struct worker *worker, struct delivery *delivery); /* frees it, too */
};

/* The worker's thread. `deliver` is set. contents_bytes: what the delivery keeps in memory. */
void delivery_post(struct worker *worker, struct worker *receiver, struct delivery *delivery, uint64_t contents_bytes);
/* Mail that is not counted, as it is somebody's reply; likewise. */
void deliveries_post_mail(struct worker *worker, struct worker *receiver, struct mail *mail);
void deliveries_wake_later(struct worker *worker, struct worker *receiver); /* as if it had got one */
/* The same for what is looked at after a wake only: the worker itself is woken, too. */
void deliveries_call_later(struct worker *worker, struct worker *receiver);
/* Wakes others who have got deliveries; no lock held. The worker reads its own at the turn's end. */
void deliveries_flush(struct worker *worker);
/* The client's commands have posted something, perhaps: lets it wait if a worker is far behind. */
void deliveries_hold(struct client *client);
void deliveries_release_held(struct worker *worker); /* those that need not wait any longer; after a wake */
void deliveries_leave(struct client *client);        /* it has gone */
