/* Large values that snapshots need as they were (data/former.h), while commands go on changing them. The deadlines of
 * their members, which are beside a value, belong to it (data/former_deadlines.h).
 *
 * A value is listed from the moment that a snapshot leaves it, or meets it, until the last of its snapshots has it:
 *
 *     large_use        it will be needed as it is now
 *     large_take_back  or as it was earlier: the snapshot's thread tells how, step by step
 *     large_watch      a change begins: its steps are noted
 *     large_unwatch    it ends: what it has changed is kept; a change that is just left, as nothing has changed, ends
 *                      when its stripes are released
 *     large_note_...   deadlines of members change, or their table comes or goes
 *     large_prepare    the snapshot's thread looks at the next piece, for the rest
 *     large_give       it takes the next piece; under the stripe's lock, as long as a key has it
 *     large_give_deadlines    the same of deadlines, if they did not come with the elements
 *     large_take       instead of freeing the value: it is nobody's but the snapshots' from here on
 *     large_leave      the snapshot has it
 *
 * Locks. The list is guarded by `lock`. A value and its formers are guarded by the stripe of the key that has it; after
 * large_take nobody changes it. A key that is renamed takes its value to another stripe (both are held). */
#pragma once

#include "base/spinlock.h"
#include "base/table.h"
#include "data/former.h"
#include "data/former_deadlines.h"
#include "store/access.h"

struct large;

struct larges {
    struct spinlock lock; /* rank LOCK_LARGE */
    struct table by_data GUARDED_BY(lock);
    uint64_t last_number GUARDED_BY(lock);
    /* So much more memory is kept for this use; any thread, under a stripe's lock. */
    void (*kept)(struct store *store, unsigned use, int64_t bytes);
};

/* Uses are numbers: that of a snapshot, for the values of its keys; LARGE_EARLIER more, for values as they were earlier
 * (store/window_copy.h). */
enum { LARGE_EFFORT = 512, LARGE_SNAPSHOTS = 3, LARGE_EARLIER = LARGE_SNAPSHOTS, LARGE_USES = 2 * LARGE_SNAPSHOTS };

void larges_init(struct larges *larges, void (*kept)(struct store *store, unsigned use, int64_t bytes));
void larges_fini(struct larges *larges);

static inline bool larges_exist(const struct store *store)
{
    return UNLIKELY(atomic_load_explicit(&store->large_count, memory_order_relaxed) != 0);
}

/* False: a copy of the value is as good, or must do. */
bool large_suits(const struct store *store, const struct entry *entry);
/* The entry's stripe is held. Once for each use and value. */
struct large *large_use(struct store *store, const struct stripe *stripe, const struct entry *entry, unsigned use);

/* --- commands, under the stripe of the key that they change --- */

void large_watch_slow(const struct change *change);
static inline void large_watch(const struct change *change)
{
    if (larges_exist(change->access->store))
        large_watch_slow(change);
}
void large_unwatch(const struct change *change); /* also if it watches nothing */
void large_move_slow(const struct change *from, const struct change *to);
/* The value of a key goes to another key. */
static inline void large_move(const struct change *from, const struct change *to)
{
    if (larges_exist(from->access->store))
        large_move_slow(from, to);
}
void large_note_deadline_slow(struct store *store, struct value value, struct slice member, int64_t before_ms);
/* Before the deadline of a member of the entry's value changes; EXPIRE_NEVER: it has none. */
static inline void large_note_deadline(struct store *store, const struct entry *entry, struct slice member,
                                       int64_t before_ms)
{
    if (larges_exist(store))
        large_note_deadline_slow(store, entry_value(entry), member, before_ms);
}
void large_note_table_slow(struct store *store, struct value value, struct subkey_ttls *lifetimes);
/* Here the deadlines are from now on; NULL: there is none any more. Each of them was told. */
static inline void large_note_table(struct store *store, const struct entry *entry, struct subkey_ttls *lifetimes)
{
    if (larges_exist(store))
        large_note_table_slow(store, entry_value(entry), lifetimes);
}
must_check bool large_take_slow(struct store *store, struct value value);
/* Whoever would free a value: true, it is a snapshot's now, with the table of its deadlines. No key has it any more. */
static inline must_check bool large_take(struct store *store, struct value value)
{
    return larges_exist(store) && large_take_slow(store, value);
}
/* It must stay where it is in memory. */
bool large_is_listed(struct store *store, struct value value);

/* --- the snapshot's thread --- */

/* Before anything is given: takes off up to `most` of the steps (of undos, store/undo_priv.h) that lead back to what is
 * wanted, from the newest one on. Under large_stripe. */
void large_take_back(struct store *store, struct large *large, unsigned use, struct slice *steps, uint64_t most);
uint64_t large_count(const struct large *large, unsigned use); /* of elements */
/* A deadline than which none is earlier; EXPIRE_NEVER: there are none. */
int64_t large_first_ms(const struct large *large, unsigned use);
struct value large_rest(const struct large *large, unsigned use);
const struct stripe *large_stripe(const struct large *large); /* guards it; NULL: nobody changes it */
/* Until it is false, about `most` elements at a time; before that the rest is not complete. Under large_stripe. */
must_check bool large_prepare(struct large *large, unsigned use, uint64_t most);
/* The texts are valid until it returns. */
typedef void (*large_fn)(const struct former_element *element, int64_t expire_ms, void *context);
/* False: these were the last elements. Under large_stripe, likewise the next ones. Deadlines are EXPIRE_NEVER where
 * they do not come along. */
must_check bool large_give(struct store *store, struct large *large, unsigned use, bool with_deadlines, uint64_t most,
                           large_fn fn, void *context);
/* Of a value whose members had deadlines (large_first_ms), if they did not come along. */
must_check bool large_give_deadlines(struct large *large, unsigned use, uint64_t most, deadline_fn fn, void *context);
/* What is to be freed, under no lock. */
struct large_remains {
    struct former *former;
    struct former_deadlines *deadlines;
    struct value value;
    struct subkey_ttls *lifetimes;
    void (*destroy)(struct value value);
};
struct large_remains large_leave(struct store *store, struct large *large, unsigned use);
void large_free(struct large_remains *remains);
