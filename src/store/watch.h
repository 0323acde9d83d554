/* WATCH: keys whose change makes the EXEC of a connection fail.
 *
 * A connection has one watch set. Each watched key is a node in the registry of the key's stripe, guarded by that
 * stripe's lock. A thread that changes a key marks the sets that watch it; only this mark crosses threads. A set that
 * is not needed any more is unlinked stripe by stripe, as locks become free. Marking it meanwhile does no harm. */
#pragma once

#include "base/list.h"
#include "store/access.h"

struct watch_set {
    _Atomic bool touched;  /* atomic: set under the key's stripe, read by the owner under all of them */
    struct list nodes;     /* owner: the connection's thread */
    struct list_node node; /* owner: free for a list of sets to be unlinked */
};

struct watch_set *watch_set_create(void);
bool watch_set_is_touched(const struct watch_set *set);
void watch_set_touch(struct watch_set *set);
uint32_t watch_set_count(const struct watch_set *set); /* number of keys */
size_t watch_memory_bytes(uint32_t count);             /* memory for watching this many keys, without their names */
/* The key's stripe is held. Watching a key twice counts once. */
void watch_add(struct watch_set *set, struct access *access, unsigned db, const struct key *key);
/* True if a watched key, or a member of one, has expired since it was watched. All its stripes are held. */
bool watch_set_has_expired(const struct watch_set *set, struct access *access);
/* Calls `visit` with the stripe of each watched key. */
void watch_set_each_stripe(const struct watch_set *set, void (*visit)(uint32_t stripe, void *context), void *context);
/* Unlinks the nodes whose stripes are free. True: all are unlinked, and the set is freed (*set is NULL then). No stripe
 * is held by the caller. */
must_check bool watch_set_try_destroy(struct watch_set **set, struct store *store);

/* --- for store/: the stripe is held --- */
/* The key has changed, in a stripe that has registries. `exists`: the key exists now. */
void watch_touch_key(struct stripe *stripe, unsigned db, const struct key *key, bool exists);
/* The database is flushed (`other` NULL) or swapped with `other`: touches watched keys that existed before or exist
 * after. */
void watch_touch_db(struct access *access, struct stripe *stripe, unsigned db, const struct stripe_db *keys,
                    const struct stripe_db *other);
