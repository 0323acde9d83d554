/* What a node has in its data while it takes over the state of another one, and neither could give first what the other
 * lacks (MERGE_OFFER_FORCED): two nodes with data that meet, or members whose histories are both cut.
 *
 *     own_data_begin -> own_data_keep -> the data are replaced -> own_data_put -> own_data_fini
 *
 * Kept is what the state does not cover. Where the window has the operations of a key that the state lacks, and what
 * they began with is there, it is these operations: each is put in its place, so what both have added is there. Of
 * other keys it is the value, or that the key was deleted: the younger value stays, and the key is dirty: it is written
 * anew by an ordinary operation, so all nodes get it. If the other one's stays, the operations that the window has
 * follow it. Everything here is for the loader, with the gate owned. */
#pragma once

#include "base/buffer.h"
#include "merge/vector.h"
#include "store/access.h"

#include <stdint.h>

struct worker;

/* Zeroed memory keeps nothing. */
struct own_data {
    const struct merge_vector *theirs;
    uint64_t level; /* up to this stamp the state has everything */
    struct buffer bytes;
    uint64_t values, steps;
};

/* deeds: of this node. theirs: what the state covers; it has to stay. */
void own_data_begin(struct own_data *own, const struct merge_vector *deeds, const struct merge_vector *theirs);
void own_data_keep(struct own_data *own, struct access *access);
/* The same of one key: any thread that is alone with the data. */
void own_data_keep_key(struct own_data *own, struct access *access, unsigned db, const struct key *key);
/* Behind the other's keys and window. Returns how many values of this node stay. */
uint64_t own_data_put(const struct own_data *own, struct worker *worker);
void own_data_fini(struct own_data *own);
