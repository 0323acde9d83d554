/* A stream's node as the radix tree stores it: open (the listpack itself) or packed (compressed by LZF). Nodes to which
 * no entries are added any more are packed if it pays. A node that is changed is opened and stays open. The lowest bit
 * of the pointer tells the two forms apart. For stream.c only. */
#pragma once

#include "data/listpack.h"
#include "data/stream.h"

struct stream_kept;

static inline struct stream_kept *stream_keep(struct listpack *node) /* takes an open node over */
{
    return (struct stream_kept *)node;
}
/* Packs the node if it is open and if it pays. Takes it over, and returns the node to use instead. */
struct stream_kept *stream_kept_pack(struct stream_kept *kept, struct stream_id node_id);
struct listpack *stream_kept_open(struct stream_kept *kept); /* likewise; opens the node for a change */
struct stream_kept *stream_kept_copy(const struct stream_kept *kept);
void stream_kept_destroy(struct stream_kept **kept); /* leaves NULL */

struct stream_kept *stream_kept_move(struct stream_kept *kept, struct mem_mover *mover); /* returns its new address */

static inline bool stream_kept_is_packed(const struct stream_kept *kept)
{
    return ((uintptr_t)kept & 1) != 0;
}
uint64_t stream_kept_live(const struct stream_kept *kept); /* number of live entries */
struct stream_id stream_kept_last_live_id(const struct stream_kept *kept, struct stream_id node_id);
uint64_t stream_kept_memory_bytes(const struct stream_kept *kept);

/* Opens a node for reading. *own is NULL for an open node. Otherwise the caller destroys *own after use. */
const struct listpack *stream_kept_read(const struct stream_kept *kept, struct listpack **own);
