#include "data/stream_kept.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mem_move.h"
#include "data/stream_node.h"

#include <lzf.h>
#include <stdatomic.h>

/* Below, there is little to win; above, packing takes too long for one command. */
enum { PACK_LEAST_BYTES = 256, PACK_MOST_BYTES = 256 << 10, PACK_LEAST_GAIN = 8 /* an eighth */ };

enum { RECENT_COUNT = 4 };

static _Atomic uint64_t last_number;                             /* atomic: relaxed; of the packed nodes */
static _Thread_local struct stream_recent recents[RECENT_COUNT]; /* owner: the thread */
static _Thread_local unsigned recent_turn;                       /* likewise: the place to be used next */

struct packed_node {
    uint64_t number; /* of these contents; copies have the same */
    struct stream_id last_live_id;
    uint32_t live;
    uint32_t raw_bytes;
    uint32_t packed_bytes;
    char data[];
};

static struct packed_node *packed_of(const struct stream_kept *kept)
{
    assert(stream_kept_is_packed(kept));
    return (struct packed_node *)(void *)((char *)(uintptr_t)kept - 1);
}

static struct stream_kept *keep_packed(struct packed_node *packed)
{
    return (struct stream_kept *)(void *)((char *)packed + 1);
}

static const struct listpack *open_of(const struct stream_kept *kept)
{
    assert(!stream_kept_is_packed(kept));
    return (const struct listpack *)kept;
}

static void unpack_to(const struct packed_node *packed, void *to)
{
    unsigned bytes = lzf_decompress(packed->data, packed->packed_bytes, to, packed->raw_bytes);

    assert(bytes == packed->raw_bytes); /* we packed it ourselves */
}

static struct listpack *unpack(const struct packed_node *packed)
{
    struct listpack *node = mem_alloc(packed->raw_bytes);

    unpack_to(packed, node);
    return node;
}

static struct stream_id last_live_id(const struct listpack *node, struct stream_id node_id)
{
    listpack_at at = listpack_last(node);
    struct stream_entry entry;

    do {
        at = stream_node_entry_before(node, at);
        (void)stream_node_read(node, node_id, at, &entry);
        at = listpack_previous(node, at);
    } while ((entry.flags & STREAM_ENTRY_DELETED) != 0); /* one is live: it is a node */
    return entry.id;
}

struct stream_kept *stream_kept_pack(struct stream_kept *kept, struct stream_id node_id)
{
    struct listpack *node = (struct listpack *)kept;
    struct packed_node *packed;
    uint32_t raw, most, bytes;

    if (stream_kept_is_packed(kept))
        return kept;
    raw = listpack_bytes(node);
    if (raw < PACK_LEAST_BYTES || raw > PACK_MOST_BYTES)
        return kept;
    most = raw - raw / PACK_LEAST_GAIN - (uint32_t)sizeof(*packed);
    packed = mem_alloc(sizeof(*packed) + most);
    bytes = lzf_compress(node, raw, packed->data, most);
    if (bytes == 0) {
        mem_free(packed);
        return kept;
    }
    packed->number = atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
    packed->last_live_id = last_live_id(node, node_id);
    packed->live = (uint32_t)stream_node_live(node);
    packed->raw_bytes = raw;
    packed->packed_bytes = bytes;
    listpack_destroy(&node);
    return keep_packed(mem_realloc(packed, sizeof(*packed) + bytes));
}

struct listpack *stream_kept_open(struct stream_kept *kept)
{
    struct listpack *node;

    if (!stream_kept_is_packed(kept))
        return (struct listpack *)kept;
    node = unpack(packed_of(kept));
    mem_free(packed_of(kept));
    return node;
}

struct stream_kept *stream_kept_copy(const struct stream_kept *kept)
{
    const struct packed_node *packed;

    if (!stream_kept_is_packed(kept))
        return stream_keep(listpack_copy(open_of(kept)));
    packed = packed_of(kept);
    return keep_packed(mem_copy(packed, sizeof(*packed) + packed->packed_bytes));
}

void stream_kept_destroy(struct stream_kept **kept)
{
    struct listpack *node = (struct listpack *)*kept;

    if (stream_kept_is_packed(*kept))
        mem_free(packed_of(*kept));
    else
        listpack_destroy(&node);
    *kept = NULL;
}

struct stream_kept *stream_kept_move(struct stream_kept *kept, struct mem_mover *mover)
{
    if (stream_kept_is_packed(kept))
        return keep_packed(mem_move(mover, packed_of(kept), 0));
    return mem_move(mover, kept, 0);
}

uint64_t stream_kept_live(const struct stream_kept *kept)
{
    return stream_kept_is_packed(kept) ? packed_of(kept)->live : stream_node_live(open_of(kept));
}

struct stream_id stream_kept_last_live_id(const struct stream_kept *kept, struct stream_id node_id)
{
    return stream_kept_is_packed(kept) ? packed_of(kept)->last_live_id : last_live_id(open_of(kept), node_id);
}

uint64_t stream_kept_memory_bytes(const struct stream_kept *kept)
{
    return mem_usable(stream_kept_is_packed(kept) ? (const void *)packed_of(kept) : open_of(kept));
}

const struct listpack *stream_kept_read(const struct stream_kept *kept, struct listpack **own)
{
    *own = stream_kept_is_packed(kept) ? unpack(packed_of(kept)) : NULL;
    return *own != NULL ? *own : open_of(kept);
}

static struct stream_recent *find_recent(uint64_t number)
{
    for (unsigned i = 0; i < RECENT_COUNT; i++) {
        if (recents[i].number == number && !recents[i].is_taken)
            return &recents[i];
    }
    return NULL;
}

/* NULL: all are taken. */
static struct stream_recent *find_place(void)
{
    for (unsigned i = 0; i < RECENT_COUNT; i++) {
        struct stream_recent *recent = &recents[recent_turn++ % RECENT_COUNT];

        if (!recent->is_taken)
            return recent;
    }
    return NULL;
}

struct stream_recent *stream_recent_take(const struct stream_kept *kept)
{
    const struct packed_node *packed;
    struct stream_recent *recent;

    if (!stream_kept_is_packed(kept))
        return NULL;
    packed = packed_of(kept);
    if (packed->raw_bytes > STREAM_RECENT_BYTES)
        return NULL;
    recent = find_recent(packed->number);
    if (recent == NULL) {
        recent = find_place();
        if (recent == NULL)
            return NULL;
        unpack_to(packed, recent->bytes);
        recent->number = packed->number;
        recent->seen = STREAM_ID_LEAST;
        recent->next = stream_node_first_entry(stream_recent_node(recent));
    }
    recent->is_taken = true;
    return recent;
}

void stream_recent_give(struct stream_recent **recent)
{
    if (*recent == NULL)
        return;
    assert((*recent)->is_taken);
    (*recent)->is_taken = false;
    *recent = NULL;
}
