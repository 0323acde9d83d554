/* WATCH: keys whose change a connection wants to know of before its EXEC.
 *
 * A connection has one watch set; each watched key is a node in the registry of the key's stripe, guarded by that
 * stripe's lock. Who changes a key marks the sets that watch it; the mark is all that crosses threads. A set that is
 * no longer wanted is unlinked stripe by stripe, as the locks are to be had: marking it meanwhile does no harm. */
#pragma once

#include "base/list.h"
#include "store/access.h"

struct watch_set {
    _Atomic bool touched;  /* atomic: set under the key's stripe, read by the owner under all of them */
    struct list nodes;     /* owner: the connection's thread */
    struct list_node node; /* owner: free for a list of sets that wait to be unlinked */
};

struct watch_set *watch_set_create(void);
bool watch_set_is_touched(const struct watch_set *set);
void watch_set_touch(struct watch_set *set);
uint32_t watch_set_count(const struct watch_set *set); /* keys */
size_t watch_memory_bytes(uint32_t count);             /* what watching that many keys takes, without their names */
/* The key's stripe is held. Watching a key twice is watching it once. */
void watch_add(struct watch_set *set, struct access *access, unsigned db, const struct key *key);
/* Has a watched key, or a member of one, expired since it was watched? All its stripes are held. */
bool watch_set_has_expired(const struct watch_set *set, struct access *access);
/* Calls visit with the stripe of each watched key. */
void watch_set_each_stripe(const struct watch_set *set, void (*visit)(uint32_t stripe, void *context), void *context);
/* Unlinks what can be unlinked without waiting; true: all of it, and the set is freed (*set is NULL then). No stripe is
 * held by the caller. */
must_check bool watch_set_try_destroy(struct watch_set **set, struct store *store);

/* --- for store/: the stripe is held --- */
/* A key has changed, in a stripe that has registries; `exists`: it is there now. */
void watch_touch_key(struct stripe *stripe, unsigned db, const struct key *key, bool exists);
/* The whole database goes (other NULL) or is exchanged with `other`: touches keys that were there or are there then. */
void watch_touch_db(struct access *access, struct stripe *stripe, unsigned db, const struct stripe_db *keys,
                    const struct stripe_db *other);
