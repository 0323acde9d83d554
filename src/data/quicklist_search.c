#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/slice_find.h"
#include "data/quicklist.h"
#include "data/quicklist_priv.h"

#include <stdatomic.h>

/* A thread that searches one end of a list again and again keeps a sketch of each node there: a Bloom filter of its
 * elements. The node has the number of its sketch until its content changes (quicklist_node_open), so a sketch of
 * another content is never taken for it. */
enum {
    SKETCHES = 64, /* of a thread: 64 KiB, once it searches */
    SKETCH_BITS = 8192,
    BITS_EACH = 4,
    SKETCHED_MOST = 1024, /* elements of a node, or the sketch tells too little */
    HEADED_MOST = 63      /* bytes of a text that stands in a listpack behind one byte, which says its size */
};

struct sketch {
    uint32_t number; /* 0: there is none */
    uint64_t bits[SKETCH_BITS / 64];
};

static _Thread_local struct sketch sketches[SKETCHES]; /* global: by their numbers */
static _Atomic uint32_t sketch_count;                  /* atomic: relaxed; the last number. global: of all threads */

/* The place of one of the bits that stand for an element. */
static uint32_t bit_of(uint64_t hash, unsigned index)
{
    return (uint32_t)(hash >> (16 * index)) % SKETCH_BITS;
}

static bool has_bits(const struct sketch *sketch, uint64_t hash)
{
    for (unsigned i = 0; i < BITS_EACH; i++) {
        if ((sketch->bits[bit_of(hash, i) / 64] >> (bit_of(hash, i) % 64) & 1) == 0)
            return false;
    }
    return true;
}

static void set_bits(struct sketch *sketch, uint64_t hash)
{
    for (unsigned i = 0; i < BITS_EACH; i++)
        sketch->bits[bit_of(hash, i) / 64] |= UINT64_C(1) << (bit_of(hash, i) % 64);
}

static uint64_t hash_of_number(int64_t number)
{
    return hash_bytes(&number, sizeof(number));
}

static void fill(struct sketch *sketch, const struct listpack *pack)
{
    memset(sketch->bits, 0, sizeof(sketch->bits));
    for (listpack_at at = listpack_first(pack); at != LISTPACK_NONE; at = listpack_next(pack, at)) {
        const struct listpack_value value = listpack_get(pack, at);

        set_bits(sketch,
                 value.text.data != NULL ? hash_bytes(value.text.data, value.text.size) : hash_of_number(value.number));
    }
}

static const struct sketch *sketch_of(struct quicklist_node *node)
{
    struct sketch *sketch = &sketches[node->sketch % SKETCHES];
    void *opened;

    if (LIKELY(node->sketch != 0 && sketch->number == node->sketch))
        return sketch;
    do
        node->sketch = atomic_fetch_add_explicit(&sketch_count, 1, memory_order_relaxed) + 1;
    while (node->sketch == 0);
    sketch = &sketches[node->sketch % SKETCHES];
    sketch->number = node->sketch;
    if (!node->is_compressed) {
        fill(sketch, node->pack);
        return sketch;
    }
    opened = quicklist_node_uncompress(node);
    fill(sketch, opened);
    mem_free(opened);
    return sketch;
}

/* What is to be searched for in listpacks: not a longer text that begins with this one. */
static struct slice with_head(struct slice text, char room[HEADED_MOST + 1])
{
    if (text.size == 0 || text.size > HEADED_MOST)
        return text;
    room[0] = (char)(0x80 | text.size);
    memcpy(room + 1, text.data, text.size);
    return slice_make(room, text.size + 1);
}

/* In a node without a sketch. A text stands in a listpack as it is, unless it may be stored as a number. */
static bool has_bytes(const struct quicklist_node *node, const struct quicklist_needle *needle)
{
    char room[HEADED_MOST + 1];

    if (needle->is_number || node->is_compressed)
        return true;
    return slice_contains(slice_make(node->data, quicklist_node_size_bytes(node)),
                          node->is_plain ? needle->text : with_head(needle->text, room));
}

bool quicklist_may_have(struct quicklist *list, enum quicklist_end end, uint64_t most, struct slice text)
{
    const enum quicklist_direction inward = end == QUICKLIST_HEAD ? QUICKLIST_FORWARD : QUICKLIST_BACKWARD;
    const struct quicklist_needle needle = quicklist_needle_make(text);
    const uint64_t hash = hash_bytes(text.data, text.size), number_hash = hash_of_number(needle.number);
    uint64_t seen = 0;
    unsigned nodes = 0;

    for (struct quicklist_node *node = end_node(list, end); node != NULL && seen < most;
         node = neighbour(list, node, inward)) {
        if (UNLIKELY(node->is_plain || node->count > SKETCHED_MOST || nodes++ >= SKETCHES)) {
            if (has_bytes(node, &needle))
                return true;
        } else {
            const struct sketch *sketch = sketch_of(node);

            if (has_bits(sketch, hash) || (needle.is_number && has_bits(sketch, number_hash)))
                return true;
        }
        seen += node->count;
    }
    return false;
}
