/* Letters: mail for other workers' clients that nobody has asked for - messages, invalidations. They are put into
 * mailboxes at once, also under locks; the workers are woken by letters_flush, which comes after the last unlock.
 *
 * Letters not yet delivered are bounded: a client whose commands find a worker far behind with its letters waits
 * (letters_hold) until that worker has caught up. */
#pragma once

#include "server/core/worker.h"

struct client;

enum {
    LETTERS_BACKLOG_BYTES = 4 << 20, /* for one worker, beyond which clients wait until half are delivered */
    LETTERS_MUCH_BYTES = 8 << 20,    /* beyond which what single clients are sent is counted: one command sends it */
    LETTERS_TURN_BYTES = 1 << 20,    /* that a worker delivers before it sends what it has */
    LETTER_BYTES = 256               /* what a letter counts beside its contents */
};

struct letter {
    struct mail mail;
    uint64_t cost_bytes;
    void (*deliver)(struct worker *worker, struct letter *letter); /* frees it, too */
};

/* The worker's thread. `deliver` is set. contents_bytes: what the letter keeps in memory. */
void letter_post(struct worker *worker, struct worker *receiver, struct letter *letter, uint64_t contents_bytes);
/* Mail that is not counted, as it is somebody's reply; likewise. */
void letters_post_mail(struct worker *worker, struct worker *receiver, struct mail *mail);
void letters_wake_later(struct worker *worker, struct worker *receiver); /* as if it had got one */
/* The same for what is looked at after a wake only: the worker itself is woken, too. */
void letters_call_later(struct worker *worker, struct worker *receiver);
/* Wakes others who have got letters; no lock held. The worker reads its own at the turn's end. */
void letters_flush(struct worker *worker);
/* The client's commands have posted something, perhaps: lets it wait if a worker is far behind. */
void letters_hold(struct client *client);
void letters_release_held(struct worker *worker); /* those that need not wait any longer; after a wake */
void letters_leave(struct client *client);        /* it has gone */
