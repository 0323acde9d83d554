/* Internals that the files of the stream share. */
#pragma once

#include "data/stream.h"

/* Invariants
 *  1. Nodes do not overlap, a node's key is not above its first entry, and each node has a live entry.
 *  2. length is the sum of the nodes' live counts, node_bytes the sum of their memory; first_id is the first live entry
 *     (0-0: none); no entry is above last_id.
 *  3. An entry that is pending in a group is pending for exactly one of its consumers, in the same record. */
struct stream {
    struct radix *nodes;  /* id -> stream_kept */
    struct radix *groups; /* name -> stream_group */
    uint64_t length;
    uint64_t entries_added;
    uint64_t node_bytes;
    struct stream_id first_id;
    struct stream_id last_id;
    struct stream_id max_deleted_id;
};

struct radix *stream_groups_copy(const struct radix *groups);
void stream_groups_destroy(struct radix **groups);
uint64_t stream_groups_memory_bytes(const struct radix *groups);
void stream_groups_validate(const struct radix *groups);
