/* The hash table. The keyspace, sets, hashes and all registries use it.
 *
 * A table holds pointers to items. The key is inside the item, and only the caller knows where. The table never locks:
 * its owner (a stripe, a set, a registry) guards it, also for reading. Items stay the caller's.
 *
 *     table -> directory -> group -> bucket -> item
 *
 * A bucket is one cache line of eight slots. A slot is the item's address (48 bits) with 16 bits of its hash, the tag,
 * above it. A group is 1 to 64 buckets; the tag's position in its range of 65,536 gives the item's home bucket. A full
 * home spills into the next bucket, up to TABLE_REACH buckets on, round the end. A group that finds no room within
 * reach becomes the next larger group (each an allocator size class). A group of 64 buckets is split into two groups:
 * each takes the items with one value of the next hash bit. A directory of 2^depth entries finds the group by the
 * leading bits. So the table grows by one small group at a time, no call is slow, and about 85 % of the slots are in
 * use at any size above a few hundred items. Groups of 16 buckets came to 88 %, but changing between five neighbouring
 * size classes left holes in the allocator that cost more: 111 bytes a key of 16 + 64 bytes in all, against 108.7.
 *
 * Splitting does not separate items whose hashes agree in more bits than chance allows. So the directory grows only as
 * far as the table has items for it (TABLE_DIRECTORY_SHARE). Beyond that, items without room within reach are in their
 * group's overflow, unordered, behind the 64 buckets. Such items cost a linear search, and the same memory as other
 * items. With a keyed hash this happens only, and briefly, while a table is filled in the scan order of another table.
 *
 * Invariants
 *  1. In a bucket the used slots come first.
 *  2. An item is in its home bucket, or every bucket from its home up to the one before the item's is full.
 *  3. A group of local depth d is named by 2^(depth - d) neighbouring directory entries, all equal.
 *  4. For an item in the overflow, all buckets within reach of its home are full. An empty overflow is freed.
 * So a lookup stops at the first bucket that is not full, and removal pulls spilled items back (no tombstones).
 *
 * Bits of a hash: 63..48 tag, 41..14 directory (41 first), 13..0 free for the caller (the stripe). A scan's position
 * counts in an order that depends on the items alone: first the upper 6 bits of the tag, then the directory bits. So a
 * scan visits every item that stays in the table, even if the table grows or shrinks meanwhile. */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    TABLE_SLOTS = 8,               /* slots in a bucket: 64 bytes */
    TABLE_GROUP_BUCKETS_MOST = 64, /* 4 KiB: large groups leave the allocator few holes when they change size */
    TABLE_REACH = 14,              /* an item is at most this many buckets after its home */
    TABLE_DIRECTORY_BITS = 28,
    TABLE_DIRECTORY_SHIFT = 14,
    TABLE_TAG_SHIFT = 48,
    TABLE_DIRECTORY_SHARE = 8, /* the directory may have this many entries for each item: 64 bytes */
    TABLE_SCAN_TAG_BITS = 6,   /* bits of the tag that count in a scan position */
    TABLE_SCAN_BITS = TABLE_DIRECTORY_BITS + TABLE_SCAN_TAG_BITS
};

#define TABLE_ADDRESS_MASK ((UINT64_C(1) << TABLE_TAG_SHIFT) - 1)

struct table_bucket {
    uint64_t slots[TABLE_SLOTS];
};
static_assert(sizeof(struct table_bucket) == CACHE_LINE_BYTES, "one bucket, one cache line");

/* An all-zero table is empty and owns nothing. */
struct table {
    /* 0, a group word, or a directory word; atomic (relaxed) because prefetching reads it without the lock. */
    _Atomic uint64_t root;
    uint64_t count; /* written as a whole word: table_count may read it without the lock */
};

/* A group word: address | bucket count - 1 | local depth << 48 | flag. A directory word: address | depth << 48 | flag.
 * The flags differ. */
#define TABLE_WORD_BUCKETS_MASK UINT64_C(63)
#define TABLE_WORD_HAS_OVERFLOW (UINT64_C(1) << 62)
#define TABLE_WORD_IS_DIRECTORY (UINT64_C(1) << 63)
#define TABLE_WORD_ADDRESS_MASK (TABLE_ADDRESS_MASK & ~UINT64_C(63))

/* The memory of the directory: a header of one cache line, then 2^depth group words. */
struct table_directory {
    uint64_t group_count;
    uint64_t pad[7];
    uint64_t groups[];
};

typedef uint64_t (*table_hash_fn)(const void *item);
typedef bool (*table_match_fn)(const void *item, const void *key);
typedef void (*table_item_fn)(void *item, void *context);

static inline void *table_slot_item(const uint64_t *slot)
{
    return (void *)(uintptr_t)(*slot & TABLE_ADDRESS_MASK); /* NOLINT(performance-no-int-to-ptr) */
}

/* Replaces the item in a slot by another with the same key, after the item was reallocated. */
static inline void table_slot_replace(uint64_t *slot, const void *item)
{
    *slot = (*slot & ~TABLE_ADDRESS_MASK) | (uint64_t)(uintptr_t)item;
}

static inline uint64_t table_count(const struct table *table)
{
    return __atomic_load_n(&table->count, __ATOMIC_RELAXED);
}

static inline unsigned table_word_depth(uint64_t word)
{
    return (unsigned)(word >> TABLE_TAG_SHIFT) & 63;
}

static inline void *table_word_address(uint64_t word)
{
    return (void *)(uintptr_t)(word & TABLE_WORD_ADDRESS_MASK); /* NOLINT(performance-no-int-to-ptr) */
}

static inline uint64_t table_directory_index(uint64_t hash, unsigned depth)
{
    return (hash >> (TABLE_DIRECTORY_SHIFT + TABLE_DIRECTORY_BITS - depth)) & ((UINT64_C(1) << depth) - 1);
}

static inline uint64_t table_root(const struct table *table)
{
    return atomic_load_explicit(&table->root, memory_order_relaxed);
}

/* Returns the word of the group for items with this hash. Not for an empty table. */
static inline uint64_t table_group_word(const struct table *table, uint64_t hash)
{
    uint64_t root = table_root(table);

    if (root & TABLE_WORD_IS_DIRECTORY) {
        const struct table_directory *directory = table_word_address(root);

        return directory->groups[table_directory_index(hash, table_word_depth(root))];
    }
    return root;
}

static inline unsigned table_home(uint64_t hash, unsigned bucket_count)
{
    return (unsigned)(((hash >> TABLE_TAG_SHIFT) * bucket_count) >> 16);
}

/* Bit i is set if slot i has this hash's tag. Empty slots may match a tag of 0, so the caller checks the item for
 * NULL. */
static inline unsigned table_bucket_match(const struct table_bucket *bucket, uint64_t hash)
{
#if defined(__SSE2__)
    /* The upper halves of the eight slots, four a register; then their upper halves again are the tags. */
    const __m128i *lines = (const __m128i *)(const void *)bucket->slots;
    __m128 a = _mm_castsi128_ps(_mm_load_si128(lines)), b = _mm_castsi128_ps(_mm_load_si128(lines + 1));
    __m128 c = _mm_castsi128_ps(_mm_load_si128(lines + 2)), d = _mm_castsi128_ps(_mm_load_si128(lines + 3));
    __m128i low = _mm_srai_epi32(_mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1))), 16);
    __m128i high = _mm_srai_epi32(_mm_castps_si128(_mm_shuffle_ps(c, d, _MM_SHUFFLE(3, 1, 3, 1))), 16);
    __m128i tags = _mm_packs_epi32(low, high);
    __m128i wanted = _mm_set1_epi16((short)(hash >> TABLE_TAG_SHIFT));

    return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(tags, wanted), _mm_setzero_si128()));
#else
    unsigned mask = 0;

    for (unsigned i = 0; i < TABLE_SLOTS; i++)
        mask |= (unsigned)((bucket->slots[i] >> TABLE_TAG_SHIFT) == (hash >> TABLE_TAG_SHIFT)) << i;
    return mask;
#endif
}

/* Returns the slot of the item in the group's overflow that `match` accepts, or NULL. */
uint64_t *table_overflow_find(uint64_t word, uint64_t hash, table_match_fn match, const void *key);

/* Returns the slot of the item that `match` accepts, or NULL. Valid until the next insert or remove. It is inline so
 * that the compiler knows `match` and the key's layout at each call. */
static ALWAYS_INLINE uint64_t *table_find_slot(const struct table *table, uint64_t hash, table_match_fn match,
                                               const void *key)
{
    uint64_t word;
    struct table_bucket *buckets;
    unsigned bucket_count, index;

    if (table->count == 0)
        return NULL;
    word = table_group_word(table, hash);
    buckets = table_word_address(word);
    bucket_count = (unsigned)(word & TABLE_WORD_BUCKETS_MASK) + 1;
    index = table_home(hash, bucket_count);
    for (unsigned step = 0;; step++) {
        struct table_bucket *bucket = &buckets[index];

        for (unsigned mask = table_bucket_match(bucket, hash); mask != 0; mask &= mask - 1) {
            uint64_t *slot = &bucket->slots[__builtin_ctz(mask)];
            void *item = table_slot_item(slot);

            if (LIKELY(item != NULL) && LIKELY(match(item, key)))
                return slot;
        }
        if (LIKELY(bucket->slots[TABLE_SLOTS - 1] == 0))
            return NULL;
        if (step == TABLE_REACH || step + 1 == bucket_count)
            return UNLIKELY(word & TABLE_WORD_HAS_OVERFLOW) ? table_overflow_find(word, hash, match, key) : NULL;
        if (++index == bucket_count)
            index = 0;
    }
}

static ALWAYS_INLINE void *table_find(const struct table *table, uint64_t hash, table_match_fn match, const void *key)
{
    const uint64_t *slot = table_find_slot(table, hash, match, key);

    return slot != NULL ? table_slot_item(slot) : NULL;
}

/* Prefetches in steps; leave time for each step before the next. The first step may run without the lock that guards
 * the table. The other steps read guarded data. */
static inline void table_prefetch_directory(const struct table *table, uint64_t hash)
{
    uint64_t root = table_root(table);

    if (root & TABLE_WORD_IS_DIRECTORY) {
        uint64_t index = table_directory_index(hash, table_word_depth(root));
        uintptr_t address = (uintptr_t)(root & TABLE_WORD_ADDRESS_MASK);

        __builtin_prefetch((const void *)(address + sizeof(struct table_directory) + index * sizeof(uint64_t)));
    }
}

static inline void table_prefetch_bucket(const struct table *table, uint64_t hash)
{
    if (table->count != 0) {
        uint64_t word = table_group_word(table, hash);
        const struct table_bucket *buckets = table_word_address(word);

        __builtin_prefetch(&buckets[table_home(hash, (unsigned)(word & TABLE_WORD_BUCKETS_MASK) + 1)]);
    }
}

static inline void table_prefetch_item(const struct table *table, uint64_t hash)
{
    if (table->count != 0) {
        uint64_t word = table_group_word(table, hash);
        const struct table_bucket *buckets = table_word_address(word);
        const struct table_bucket *home = &buckets[table_home(hash, (unsigned)(word & TABLE_WORD_BUCKETS_MASK) + 1)];

        for (unsigned mask = table_bucket_match(home, hash); mask != 0; mask &= mask - 1) {
            const char *item = table_slot_item(&home->slots[__builtin_ctz(mask)]);

            __builtin_prefetch(item);
            __builtin_prefetch(item + CACHE_LINE_BYTES);
        }
    }
}

/* Adds an item whose key is not in the table, and returns its slot. `hash_of` returns the hash of an item in the
 * table. */
uint64_t *table_insert(struct table *table, uint64_t hash, void *item, table_hash_fn hash_of);
/* Removes the item in the slot that table_find_slot returned for the same hash, and returns the item. */
void *table_remove(struct table *table, uint64_t hash, uint64_t *slot);

/* Frees the table's own memory and leaves it empty. Calls `free_item` (may be NULL) for every item. */
void table_clear(struct table *table, table_item_fn free_item, void *context);
/* Moves the contents of a table to another, and leaves the first one empty. Overwrites `to`: it is empty or
 * was moved away. */
void table_move(struct table *to, struct table *from);
/* Visits every item in scan order. `visit` must not change the table. */
void table_each(const struct table *table, table_item_fn visit, void *context);

/* Visits the items at `position` (0 at first; beyond 2^TABLE_SCAN_BITS there are none) and about `want` items in all.
 * Returns the next position, or 0 at the end of the table. A scan ends wherever it began. Items that are in the table
 * all through a scan are visited at least once (twice only if groups merged meanwhile), even if other items are added
 * and removed. The table may change between calls, but not inside a call. */
uint64_t table_scan(const struct table *table, uint64_t position, uint64_t want, table_item_fn visit, void *context);

/* The position at which a scan visits the items with this hash. A scan that is continued at a position, after groups
 * have merged, may visit items before it again. */
static inline uint64_t table_scan_place(uint64_t hash)
{
    return hash >> (64 - TABLE_SCAN_TAG_BITS) << TABLE_DIRECTORY_BITS |
           (hash >> TABLE_DIRECTORY_SHIFT & ((UINT64_C(1) << TABLE_DIRECTORY_BITS) - 1));
}

/* Defragments: moves the table's own memory, and calls `relocate` for each item, which returns the item's new address.
 * Continues at `position` (0 at first) with about `want` items, and returns the next position, 0 at the end. The table
 * may change between calls: the walk still ends, but may miss items or visit some twice. Slots and pointers to items
 * are invalid afterwards. */
struct mem_mover;
typedef void *(*table_relocate_fn)(void *item, void *context);
uint64_t table_relocate(struct table *table, uint64_t position, uint64_t want, struct mem_mover *mover,
                        table_relocate_fn relocate, void *context);

/* Returns a random item, or NULL if the table is empty. Each item has about the same chance, except in a group with an
 * overflow. `random` returns 64 random bits. */
void *table_random(const struct table *table, uint64_t (*random)(void *context), void *context);

/* Finds items by hash alone: calls `visit` for each item whose tag and place fit (a few may be false hits). If `visit`
 * returns true, the search ends and the item's slot is returned. NULL: `visit` never returned true. */
uint64_t *table_find_by_hash(const struct table *table, uint64_t hash, bool (*visit)(const void *item, void *context),
                             void *context);

uint64_t table_memory_bytes(const struct table *table); /* memory of the table itself, without its struct and items */
uint64_t table_slot_count(const struct table *table);   /* capacity */
void table_validate(const struct table *table, table_hash_fn hash_of); /* asserts every invariant */
