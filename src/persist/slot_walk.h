/* Digests of all hash slots (slot_digest.h), made in steps while commands run. A step holds one stripe at a time.
 *
 * A walk reads every key that stays exactly once, at some moment between its begin and its end. So a slot's digest is
 * that of one moment only if no key of the slot has changed in between. Those slots are told apart: every change marks
 * the slot of its key; FLUSHALL, SWAPDB and loading mark all. A slot that is not marked is *clear*: its digest is that
 * of its keys during the whole walk.
 *
 * What follows for two servers that take writes meanwhile, and have walked with the same terms: a slot that is clear on
 * both has equal digests if each server had, at the end of its walk, all operations that the other one had at its
 * begin. For the slot's operations did not change during either walk, so each server knew all that the other one knew.
 * Only then a difference is a defect.
 *
 * A value of more than SLOT_WALK_BYTES_MOST would hold its stripe for longer than a step should: it is left out, and
 * its slot is marked. The marks cost a change one look at its key's name, and only while a walk runs.
 *
 * A walk may be told to list the keys of some slots, with the digest of each, instead of adding them up: then these
 * slots alone are read. And it may be held: then changes mark slots until it is released, also behind the last step.
 *
 * There is one walk in the process. A thread steps it, always the same one. Changes mark slots under the stripe's
 * lock, or with the gate owned. */
#pragma once

#include "base/buffer.h"
#include "persist/slot_digest.h"

enum {
    SLOT_WALK_KEYS = 64, /* a step reads about as many keys under one stripe, fewer after slow ones */
    SLOT_WALK_BYTES_MOST = 256 * 1024,
    SLOT_WALK_LIST_MOST = 4 << 20 /* bytes of a list; slots that do not fit any more are marked */
};

/* A key, as it was read. */
struct slot_walk_key {
    struct slot_sum sum;
    uint64_t version;
    size_t name_at; /* in `names` */
    uint32_t name_size;
    uint32_t db;
};

struct slot_walk_result {
    struct slot_digests digests;
    uint64_t keys;  /* which were read */
    uint64_t large; /* which were left out */
    struct {
        struct slot_walk_key *items;
        uint32_t count, capacity;
    } list;
    struct buffer names;
};

void slot_walk_setup(struct store *store); /* main thread, before the first worker starts */
void slot_walk_teardown(void);             /* main thread, when the workers have ended; also without setup */

/* With the gate owned, so that all threads mark slots from here on; a walk that runs is given up. */
void slot_walk_begin(const struct slot_terms *terms);
/* With the gate owned, right behind slot_walk_begin: the keys of these slots (SLOT_COUNT bits) are listed. */
void slot_walk_list(const uint64_t *wanted);
/* Likewise: the walk is held. */
void slot_walk_hold(void);
/* With the gate owned, when a walk that is held has ended. */
void slot_walk_release(void);
/* With the gate owned, while a walk runs: nothing is said of this slot. */
void slot_walk_mark(uint32_t slot);
void slot_walk_cancel(void); /* with the gate owned; frees the result */
/* Inside the gate, with no stripe held. True: the walk has ended. It may do nothing, if a stripe is busy. */
bool slot_walk_step(struct access *access);

/* With the gate owned. */
uint64_t slot_walk_number(void);                       /* of the walk that was begun last */
const struct slot_walk_result *slot_walk_result(void); /* of the walk that has ended; NULL: none has */
bool slot_walk_runs(void);
bool slot_walk_is_clear(uint32_t slot); /* of the walk that runs or has ended */
