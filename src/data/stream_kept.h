/* A node of a stream as its tree keeps it: open, which is the listpack itself, or packed (LZF). Nodes in which nobody
 * writes any more are packed if it pays; one that is changed is opened, and stays so. The lowest bit of the pointer
 * tells them apart. For stream.c. */
#pragma once

#include "data/listpack.h"
#include "data/stream.h"

struct stream_kept;

static inline struct stream_kept *stream_keep(struct listpack *node) /* takes it; open */
{
    return (struct stream_kept *)node;
}
/* Packs it, if it is not and if it pays. Takes it, and returns what there is instead. */
struct stream_kept *stream_kept_pack(struct stream_kept *kept, struct stream_id node_id);
struct listpack *stream_kept_open(struct stream_kept *kept); /* likewise; to change it */
struct stream_kept *stream_kept_copy(const struct stream_kept *kept);
void stream_kept_destroy(struct stream_kept **kept); /* leaves NULL */

struct stream_kept *stream_kept_move(struct stream_kept *kept, struct mem_mover *mover); /* where it is now */

static inline bool stream_kept_is_packed(const struct stream_kept *kept)
{
    return ((uintptr_t)kept & 1) != 0;
}
uint64_t stream_kept_live(const struct stream_kept *kept); /* entries */
struct stream_id stream_kept_last_live_id(const struct stream_kept *kept, struct stream_id node_id);
uint64_t stream_kept_memory_bytes(const struct stream_kept *kept);

/* To read a node. `own` is the caller's then, NULL while the node is open: to be destroyed after the last look. */
const struct listpack *stream_kept_read(const struct stream_kept *kept, struct listpack **own);
