/* A stream's node as the radix tree stores it: open (the listpack itself) or packed (compressed by LZF). Nodes to which
 * no entries are added any more are packed if it pays. A node that is changed is opened and stays open. The lowest bit
 * of the pointer tells the two forms apart. For stream.c only. */
#pragma once

#include "data/listpack.h"
#include "data/stream.h"

struct stream_kept;

enum { STREAM_RECENT_BYTES = 8192 }; /* twice a node of the default size; larger nodes are not kept */

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

/* A node that this thread has unpacked of late, and how far it was read: whoever reads a stream bit by bit, as groups
 * do, finds it as it was left. A packed node never changes, and what is packed anew has another number. There are four
 * a thread, as thread-local memory that no count of memory has; they stay when the stream goes. */
struct stream_recent {
    uint64_t number;       /* of the packed node; 0: none */
    struct stream_id seen; /* no entry before `next` has a greater id */
    listpack_at next;      /* the flags of an entry; LISTPACK_NONE: all was read */
    bool is_taken;
    _Alignas(8) char bytes[STREAM_RECENT_BYTES];
};
/* Takes the node, which it unpacks if need be. NULL: it is open, or too large, or all places are taken. The same thread
 * gives it back with stream_recent_give, having moved `seen` and `next`. */
struct stream_recent *stream_recent_take(const struct stream_kept *kept);
static inline const struct listpack *stream_recent_node(const struct stream_recent *recent)
{
    return (const struct listpack *)(const void *)recent->bytes;
}
void stream_recent_give(struct stream_recent **recent); /* accepts NULL; leaves NULL */
