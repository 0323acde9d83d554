/* The window: what is known of keys beside the version in their entry (active replication, merge/record.h). A key has a
 * record here while operations of it are younger than the frontier and did not overwrite it; as a deleted one (a
 * tombstone); and while it is dirty. All other keys are what their version says: their base is their last operation.
 *
 * A record's `value` is only a sign that the key is there. The value is in the keyspace.
 *
 * Most keys with a list are written once or twice and then settle, without anybody asking for them. So a step at the
 * end of a key without a record is only noted (store/noted_steps.h): packed behind what the thread noted before,
 * wherever that was. Who looks for a record, or at all of them, finds all noted steps of the stripe as records. A key
 * never has both.
 *
 * Each stripe has its own table, in the order of last changes; the stripe's lock guards it, so a stripe is held in
 * every function here but those that say otherwise. There is no window until the store stamps (store_set_stamping). */
#pragma once

#include "base/list.h"
#include "merge/record.h"
#include "store/access.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { WINDOW_FETCH_MOST = 16 };

struct window_key {
    struct list_node node; /* in the stripe's order; a list that gets longer keeps its place there until that is met */
    uint64_t linked;       /* its last stamp when it took its place in that order */
    uint64_t hash;
    struct merge_record record;
    struct merge_step first;  /* the room of its first step: most keys have no other one */
    struct merge_place dirty; /* stamp 0: it is clean. Else it is to be written anew, by something younger than this */
    uint64_t bytes;           /* that the window counts for it */
    uint32_t db;
    uint32_t name_size : 31;
    uint32_t counts_as_tombstone : 1;
    char name[];
};

struct window_step {
    struct merge_place place;
    uint64_t previous; /* the stamp of its origin before */
    int64_t wall;
    struct slice words, undo;
    bool exists;                /* the key, behind it */
    struct merge_joined joined; /* of one that comes from another window */
};

/* The models of merge/, for records of the window: they can only release what takes back, and tell what a step
 * touches. */
struct window_model {
    struct merge_model model; /* first */
    struct access *access;
    struct slice name; /* of the key whose steps are joined */
};
void window_model_init(struct window_model *model, struct access *access);

/* What an operation of these words touches: rooms above know. Before the window is there; NULL: nobody asks. */
void window_set_touch(struct merge_touch (*its)(struct slice words));

/* For the store; with the gate owned. */
void window_create(struct store *store);
void window_destroy(struct access *access);

#define WINDOW_THERE ((struct merge_value *)(uintptr_t)&window_there)
extern const char window_there;
static inline struct merge_value *window_value(bool exists)
{
    return exists ? WINDOW_THERE : NULL;
}

struct key window_name(const struct window_key *known);
/* Fetches into the cache what is touched first of up to WINDOW_FETCH_MOST keys. True: nothing is known of any key in
 * their stripes. */
bool window_fetch(const struct access *access, const uint64_t *hashes, uint32_t count);

struct window_key *window_find(struct access *access, unsigned db, const struct key *key); /* NULL: no record */
/* For whoever adds an operation at the end of a key: as window_find, but steps that are only noted stay so, and are no
 * record. What the last one was says the key's version, as for window_base. */
struct window_key *window_find_for_step(struct access *access, unsigned db, const struct key *key);
/* For one that overwrites: as above, but the steps that it makes pointless are not noted any more. */
struct window_key *window_find_for_overwriting(struct access *access, unsigned db, const struct key *key,
                                               uint64_t version);
/* What a key without a record is. Version 0: it was not stamped, or is missing. One that is missing has a version only
 * if what has deleted it is not written down yet. */
void window_base(const struct access *access, unsigned db, bool exists, uint64_t version, struct merge_record *record);
/* The key has no record. Takes the record over. */
struct window_key *window_add(struct access *access, unsigned db, const struct key *key,
                              const struct merge_record *record);
/* A step at the end of a key of which window_find_for_step has no record: it becomes one when somebody asks for it. The
 * base as window_base says. `undo` is an image (undo.h) and taken over; empty: the operation changed nothing. */
void window_note(struct access *access, unsigned db, const struct key *key, const struct merge_record *base,
                 const struct window_step *step);
/* window_find_for_step, window_base and window_note in one. Returns the key's record; then the step is not noted, and
 * belongs behind it. NULL: there was none. */
struct window_key *window_note_own(struct access *access, unsigned db, const struct key *key, uint64_t version,
                                   bool existed, const struct window_step *step);
/* The record has changed; *known is NULL if there is nothing left to be known of it. */
void window_changed(struct access *access, struct window_key **known);
void window_appended(struct access *access, struct window_key *known); /* its list has got one step more, at its end */
void window_inserted(struct access *access, struct window_key *known, const struct merge_step *step); /* this one */
void window_mark(struct access *access, struct window_key *known, struct merge_place mark);
void window_clean(struct access *access, struct window_key *known); /* call window_changed then */
void window_remove(struct access *access, struct window_key **known);
/* The memory of a key was freed that had expired, and was settled: a record that is left, as of a dirty one, is that of
 * one that is missing. */
void window_freed(struct access *access, unsigned db, const struct key *key);

/* --- everything, or a part --- */

/* With the gate owned: what was known of this database goes, as all of its keys do. */
void window_forget_db(struct access *access, unsigned db);
/* The stamp of the last operation on a library of functions, of those whose record is there; may also be that of one
 * whose record has gone since: then the floor, or the libraries' flush, is not below it. 0: none. Any thread. */
uint64_t window_newest_library(const struct store *store);
/* Visits the records of a stripe; `visit` may change or remove the one it is given. */
void window_each(struct access *access, uint32_t stripe,
                 void (*visit)(struct access *access, struct window_key *known, void *context), void *context);
/* Only those that tell more than a list and what the key's version says: of dirty keys and those that are missing. */
void window_each_lasting(struct access *access, uint32_t stripe,
                         void (*visit)(struct access *access, struct window_key *known, void *context), void *context);
/* Drops noted steps that F has passed, of all stripes; none has to be held. */
void window_settle_noted(struct access *access);
/* A quarter of the memory that noted steps hold is that of steps which are records by now. */
bool window_is_wasteful(const struct store *store);
bool window_has_noted(const struct store *store, uint32_t stripe); /* it may; without the lock */
void window_put_noted(struct access *access, uint32_t stripe);     /* makes records of them */
/* True if the stripe has a record whose list, or tombstone, F has passed. Without the lock. */
bool window_has_settled(const struct store *store, uint32_t stripe);
bool window_has_dirty(const struct store *store, uint32_t stripe); /* likewise */
/* Drops what F has passed, of at most so many records; returns whether more is left. */
bool window_settle(struct access *access, uint32_t stripe, uint32_t most);
/* Joins additions up to this stamp, of all keys of the stripe: lists take less memory then, and are as exact for all
 * but what comes late and does not add (merge_record_join). Costs a look at all steps, so ask before whether the stripe
 * has grown by a quarter since then; that without the lock. */
#define WINDOW_JOINED_MOST (INT64_C(1) << 40) /* the weight of joined steps is below */
bool window_has_grown(const struct store *store, uint32_t stripe);
/* Has changed at all since then, or steps were left: worth the look before lists are given up. Without the lock. */
bool window_may_join(const struct store *store, uint32_t stripe);
void window_join(struct access *access, uint32_t stripe, uint64_t until);
/* Gives up lists, or tombstones, of which the last change is not younger. Tombstones raise the floor. Returns how many
 * keys. */
uint64_t window_give_up_lists(struct access *access, uint32_t stripe, uint64_t stamp);
uint64_t window_give_up_tombstones(struct access *access, uint32_t stripe, uint64_t stamp);
uint64_t window_give_up_noted(struct access *access, uint64_t stamp); /* of all stripes; none has to be held */
/* A stamp that no record of the stripe was changed before; 0: there is none. Without the lock. */
uint64_t window_oldest(const struct store *store, uint32_t stripe);
uint64_t window_oldest_noted(const struct store *store); /* up to which something is to be given up; 0: nothing is */

/* --- one moment of it, while it changes (snapshot_live.h) --- */

/* Whoever writes the window of a moment down. Each stripe is left once: in its turn, or by whoever is about to look at
 * its window, or to change it or a key, if that is earlier. So it is left as it was at the moment.
 *
 * But for noted steps that F passes meanwhile, which go without a look at their stripe. They make no difference: what
 * F covers is here; so of this stripe, which nothing has changed since the moment, it was here at the moment, and
 * nothing that comes later belongs before such a step. Steps that are given up for memory are given up here, too. */
struct window_keeper {
    /* The stripe is held, or the gate owned. Any thread, in the middle of a command; be quick. */
    void (*leave)(struct window_keeper *keeper, struct access *access, uint32_t stripe);
};
/* With the gate owned: the moment is now. One at a time. */
void window_keep(struct store *store, struct window_keeper *keeper);
void window_keep_end(struct store *store); /* every stripe was left. Any thread */
/* The stripe is held: it is left, if that was not done, and somebody wants it. */
void window_leave(struct access *access, uint32_t stripe);

struct window_totals {
    uint64_t bytes, keys, tombstones, dirty;
    uint64_t tombstone_bytes; /* of `bytes` */
    uint64_t given_up;        /* keys, since the start */
    uint64_t joined;          /* steps, since the start, that are part of others */
};
void window_totals(const struct store *store, struct window_totals *totals); /* any thread */
