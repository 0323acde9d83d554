/* Which keys of a node another one lacks that has come back behind a cut history: a state has these alone then, instead
 * of all (snapshot.h).
 *
 * A key whose last operation L the other one has may still rest on operations that it lacks. It crosses, unless
 *
 *     L is not younger than the level: the least stamp up to which the other one has everything; or
 *     the other one has L, and L overwrote: what is older makes no difference.
 *
 * A deleted key crosses as a tombstone, by the same rule. So all tombstones above the level have to be there: the floor
 * is not above it. A flush that the other one lacks would concern keys of which nothing is known here, and libraries of
 * functions are no keys of a file. Where one of these is lacking, or the other one has nothing, it gets all (part_make
 * returns false). */
#pragma once

#include "base/compiler.h"
#include "merge/place.h"
#include "merge/vector.h"
#include "store/access.h"
#include "store/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

struct part {
    struct snapshot_choice choice; /* these keys, for a snapshot */
    struct merge_vector have;      /* what the other one has */
    uint64_t level;
};

/* Up to this stamp whoever has `have` has all of `deeds`; UINT64_MAX: it lacks nothing. */
uint64_t part_level(const struct merge_vector *deeds, const struct merge_vector *have);

void part_fini(struct part *part); /* zeroed memory is fine */
/* With the gate owned. `deeds`: of this node. True: a part will do; end it with part_fini. */
must_check bool part_make(struct part *part, const struct merge_vector *deeds, const struct merge_vector *have);

/* `last`: of the key, and whether it overwrote. An origin that is not known any more: the other one is not sure to have
 * it. */
bool part_crosses(const struct part *part, struct merge_place last, bool overwrote);
bool part_entry_crosses(const struct part *part, const struct entry *entry);

/* The part whose keys a snapshot has; NULL: it has all. */
const struct part *part_of_snapshot(const struct snapshot *keys);

/* --- the receiver's: a set of keys --- */

struct part_keys {
    uint64_t *items;
    uint32_t count, capacity;
    bool is_sorted;
};

void part_keys_add(struct part_keys *keys, unsigned db, const struct key *key);
bool part_keys_has(struct part_keys *keys, unsigned db, const struct key *key);
void part_keys_add_all(struct part_keys *keys, const struct part_keys *more);
void part_keys_fini(struct part_keys *keys);
