/* What a node has in its data while it takes over the state of another one, and neither could give first what the other
 * lacks (MERGE_OFFER_FORCED): two nodes with data that meet, or members whose histories are both cut.
 *
 *     own_data_keep -> the data are replaced -> own_data_put
 *
 * Kept are keys whose last operation the state does not cover, with their values, and what is known of deleted ones.
 * Of each key the younger value stays, and it is dirty: it is written anew by an ordinary operation, so all nodes get
 * it. Everything here is for the loader, with the gate owned. */
#pragma once

#include "base/buffer.h"
#include "merge/vector.h"
#include "store/access.h"

#include <stdint.h>

struct worker;

/* Zeroed memory keeps nothing. */
struct own_data {
    struct buffer bytes;
    uint64_t keys;
};

void own_data_keep(struct own_data *own, struct access *access, const struct merge_vector *theirs);
/* The same of one key: any thread that is alone with the data. */
void own_data_keep_key(struct own_data *own, struct access *access, const struct merge_vector *theirs, unsigned db,
                       const struct key *key);
/* Behind the other's keys and window. Returns how many values of this node stay. */
uint64_t own_data_put(const struct own_data *own, struct worker *worker);
void own_data_fini(struct own_data *own);
