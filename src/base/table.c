#include "base/table.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mem_move.h"

#include <string.h>

/* In buckets of 64 bytes: jemalloc's size classes. */
static const uint8_t group_sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64};

static uint64_t group_word(const struct table_bucket *buckets, unsigned bucket_count, unsigned local_depth)
{
    return (uint64_t)(uintptr_t)buckets | (bucket_count - 1) | (uint64_t)local_depth << TABLE_TAG_SHIFT;
}

static unsigned group_bucket_count(uint64_t word)
{
    return (unsigned)(word & TABLE_WORD_BUCKETS_MASK) + 1;
}

static struct table_bucket *group_buckets(uint64_t word)
{
    return table_word_address(word);
}

static struct table_bucket *buckets_create(unsigned bucket_count)
{
    size_t size = bucket_count * sizeof(struct table_bucket);
    struct table_bucket *buckets = mem_aligned_alloc(CACHE_LINE_BYTES, size);

    memset(buckets, 0, size);
    return buckets;
}

static unsigned bucket_used(const struct table_bucket *bucket)
{
    unsigned used = 0;

    while (used < TABLE_SLOTS && bucket->slots[used] != 0)
        used++;
    return used;
}

/* Behind the buckets of a group of the largest size, if its word says so. */
struct overflow {
    uint64_t used;
    uint64_t capacity;
    uint64_t pad[6];
    uint64_t slots[]; /* the used ones first */
};
static_assert(sizeof(struct overflow) == CACHE_LINE_BYTES, "slots begin at a cache line");

/* Of a group that has one. */
static struct overflow *overflow_of(uint64_t word)
{
    return (void *)(group_buckets(word) + TABLE_GROUP_BUCKETS_MOST);
}

static struct overflow *group_overflow(uint64_t word)
{
    return (word & TABLE_WORD_HAS_OVERFLOW) != 0 ? overflow_of(word) : NULL;
}

/* Of the buckets; the overflow is not counted. */
static unsigned group_used(uint64_t word)
{
    unsigned used = 0;

    for (unsigned i = 0; i < group_bucket_count(word); i++)
        used += bucket_used(&group_buckets(word)[i]);
    return used;
}

static void root_set(struct table *table, uint64_t word)
{
    atomic_store_explicit(&table->root, word, memory_order_relaxed);
}

static void count_set(struct table *table, uint64_t count)
{
    __atomic_store_n(&table->count, count, __ATOMIC_RELAXED);
}

static struct table_directory *directory_of(const struct table *table)
{
    uint64_t root = table_root(table);

    return (root & TABLE_WORD_IS_DIRECTORY) != 0 ? table_word_address(root) : NULL;
}

static unsigned directory_depth(const struct table *table)
{
    uint64_t root = table_root(table);

    return (root & TABLE_WORD_IS_DIRECTORY) != 0 ? table_word_depth(root) : 0;
}

static void directory_set(struct table *table, const struct table_directory *directory, unsigned depth)
{
    root_set(table, (uint64_t)(uintptr_t)directory | TABLE_WORD_IS_DIRECTORY | (uint64_t)depth << TABLE_TAG_SHIFT);
}

/* Counts groups; the table has a directory. Returns how many there are. */
static uint64_t directory_add_groups(struct table *table, int64_t change)
{
    struct table_directory *directory = directory_of(table);

    assert(directory != NULL);
    directory->group_count += (uint64_t)change;
    return directory->group_count;
}

static struct table_directory *directory_create(unsigned depth, uint64_t group_count)
{
    size_t size = sizeof(struct table_directory) + (sizeof(uint64_t) << depth);
    struct table_directory *directory = mem_aligned_alloc(CACHE_LINE_BYTES, size);

    directory->group_count = group_count;
    return directory;
}

/* The slot a value goes to in a group, or NULL if there is none within reach of its home. */
static uint64_t *group_place(struct table_bucket *buckets, unsigned bucket_count, uint64_t value)
{
    unsigned index = table_home(value, bucket_count);

    for (unsigned step = 0; step <= TABLE_REACH && step < bucket_count; step++) {
        struct table_bucket *bucket = &buckets[index];

        if (bucket->slots[TABLE_SLOTS - 1] == 0)
            return &bucket->slots[bucket_used(bucket)];
        if (++index == bucket_count)
            index = 0;
    }
    return NULL;
}

/* The bucket into which nothing spills when all values are at home or behind it; else that with the least. */
static unsigned group_calm_bucket(const unsigned *home_counts, unsigned bucket_count)
{
    unsigned spill = 0, least = UINT32_MAX, calm = 0;

    for (unsigned i = 0; i < 2 * bucket_count; i++) { /* the second lap places the items that the first one left over */
        unsigned index = i % bucket_count, there = spill + home_counts[index];

        if (i >= bucket_count && spill < least) {
            least = spill;
            calm = index;
        }
        spill = there > TABLE_SLOTS ? there - TABLE_SLOTS : 0;
    }
    return calm;
}

/* Sorts values by home, from the calm bucket on. In this order they find room within reach if they do in any order:
 * those whose reach ends first come first. */
static void group_sort(uint64_t *sorted, const uint64_t *values, unsigned value_count, unsigned bucket_count)
{
    unsigned counts[TABLE_GROUP_BUCKETS_MOST] = {0}, places[TABLE_GROUP_BUCKETS_MOST], calm, at = 0;

    for (unsigned i = 0; i < value_count; i++)
        counts[table_home(values[i], bucket_count)]++;
    calm = group_calm_bucket(counts, bucket_count);
    for (unsigned i = 0; i < bucket_count; i++) {
        unsigned index = (calm + i) % bucket_count;

        places[index] = at;
        at += counts[index];
    }
    for (unsigned i = 0; i < value_count; i++)
        sorted[places[table_home(values[i], bucket_count)]++] = values[i];
}

static bool group_fill(struct table_bucket *buckets, unsigned bucket_count, const uint64_t *values,
                       unsigned value_count)
{
    for (unsigned i = 0; i < value_count; i++) {
        uint64_t *slot = group_place(buckets, bucket_count, values[i]);

        if (slot == NULL)
            return false;
        *slot = values[i];
    }
    return true;
}

/* A copy of a group's buckets with room for an overflow of `capacity`, none if that is 0. */
static uint64_t group_resize_overflow(uint64_t word, uint64_t capacity)
{
    const size_t group_size = TABLE_GROUP_BUCKETS_MOST * sizeof(struct table_bucket);
    const struct overflow *from = group_overflow(word);
    struct table_bucket *buckets = mem_aligned_alloc(
        CACHE_LINE_BYTES, group_size + (capacity != 0 ? sizeof(*from) + capacity * sizeof(uint64_t) : 0));
    uint64_t resized = group_word(buckets, TABLE_GROUP_BUCKETS_MOST, table_word_depth(word));
    struct overflow *to;

    assert(group_bucket_count(word) == TABLE_GROUP_BUCKETS_MOST);
    memcpy(buckets, group_buckets(word), group_size);
    if (capacity == 0)
        return resized;
    resized |= TABLE_WORD_HAS_OVERFLOW;
    to = overflow_of(resized);
    *to = (struct overflow){.used = from != NULL ? from->used : 0, .capacity = capacity};
    assert(to->used <= capacity);
    if (from != NULL)
        memcpy(to->slots, from->slots, from->used * sizeof(uint64_t));
    return resized;
}

/* Copies values into a new group of the given size; NULL if they do not find room. */
static struct table_bucket *group_build(const uint64_t *values, uint64_t value_count, unsigned bucket_count)
{
    uint64_t sorted[TABLE_GROUP_BUCKETS_MOST * TABLE_SLOTS];
    struct table_bucket *buckets;

    if (value_count > bucket_count * TABLE_SLOTS)
        return NULL;
    buckets = buckets_create(bucket_count);
    if (LIKELY(group_fill(buckets, bucket_count, values, (unsigned)value_count)))
        return buckets;
    if (bucket_count == TABLE_GROUP_BUCKETS_MOST) { /* of smaller ones the next size is tried */
        group_sort(sorted, values, (unsigned)value_count, bucket_count);
        memset(buckets, 0, bucket_count * sizeof(*buckets));
        if (group_fill(buckets, bucket_count, sorted, (unsigned)value_count))
            return buckets;
    }
    mem_free(buckets);
    return NULL;
}

/* The smallest group of at least `least` buckets that holds the values; 0 if even the largest does not. */
static uint64_t group_build_fitting(const uint64_t *values, uint64_t value_count, unsigned least, unsigned local_depth)
{
    for (unsigned i = 0; i < countof(group_sizes); i++) {
        struct table_bucket *buckets;

        if (group_sizes[i] < least)
            continue;
        buckets = group_build(values, value_count, group_sizes[i]);
        if (buckets != NULL)
            return group_word(buckets, group_sizes[i], local_depth);
    }
    return 0;
}

/* A group of the largest size, and what finds no room in it in an overflow. */
static uint64_t group_build_with_overflow(const uint64_t *values, uint64_t value_count, unsigned local_depth)
{
    uint64_t word = group_word(buckets_create(TABLE_GROUP_BUCKETS_MOST), TABLE_GROUP_BUCKETS_MOST, local_depth);

    for (uint64_t i = 0; i < value_count; i++) {
        uint64_t *slot = group_place(group_buckets(word), TABLE_GROUP_BUCKETS_MOST, values[i]);

        if (slot == NULL) {
            if (group_overflow(word) == NULL) {
                struct table_bucket *old = group_buckets(word);

                word = group_resize_overflow(word, value_count - i);
                mem_free(old);
            }
            slot = &overflow_of(word)->slots[overflow_of(word)->used++];
        }
        *slot = values[i];
    }
    return word;
}

/* Of the buckets, as group_used. */
static unsigned group_values(uint64_t word, uint64_t *values)
{
    unsigned count = 0;

    for (unsigned i = 0; i < group_bucket_count(word); i++) {
        const struct table_bucket *bucket = &group_buckets(word)[i];

        for (unsigned k = 0; k < TABLE_SLOTS && bucket->slots[k] != 0; k++)
            values[count++] = bucket->slots[k];
    }
    return count;
}

/* Makes every directory entry of the group that `hash` belongs to name `word` instead. */
static void group_replace(struct table *table, uint64_t hash, uint64_t word)
{
    struct table_directory *directory = directory_of(table);
    unsigned depth = directory_depth(table), spread = depth - table_word_depth(word);
    uint64_t first;

    if (directory == NULL) {
        root_set(table, word);
        return;
    }
    first = table_directory_index(hash, depth) >> spread << spread;
    for (uint64_t i = 0; i < UINT64_C(1) << spread; i++)
        directory->groups[first + i] = word;
}

static void directory_double(struct table *table)
{
    struct table_directory *old = directory_of(table);
    unsigned depth = directory_depth(table);
    struct table_directory *directory = directory_create(depth + 1, old != NULL ? old->group_count : 1);

    assert(depth < TABLE_DIRECTORY_BITS);
    for (uint64_t i = 0; i < UINT64_C(1) << depth; i++)
        directory->groups[2 * i] = directory->groups[2 * i + 1] = old != NULL ? old->groups[i] : table_root(table);
    directory_set(table, directory, depth + 1);
    mem_free(old);
}

/* The inverse, as long as no group needs the last bit. */
static void directory_halve(struct table *table)
{
    for (;;) {
        struct table_directory *old = directory_of(table), *directory;
        unsigned depth = directory_depth(table);

        if (old == NULL)
            return;
        for (uint64_t i = 0; i < UINT64_C(1) << depth; i += 2) {
            if (table_word_depth(old->groups[i]) == depth)
                return;
        }
        if (depth == 1) {
            root_set(table, old->groups[0]);
            mem_free(old);
            return;
        }
        directory = directory_create(depth - 1, old->group_count);
        for (uint64_t i = 0; i < UINT64_C(1) << (depth - 1); i++)
            directory->groups[i] = old->groups[2 * i];
        directory_set(table, directory, depth - 1);
        mem_free(old);
    }
}

static unsigned directory_bit(uint64_t hash, unsigned depth)
{
    return (unsigned)(hash >> (TABLE_DIRECTORY_SHIFT + TABLE_DIRECTORY_BITS - 1 - depth)) & 1;
}

/* The values of a group and of its overflow by the next bit of their hashes. Touches every item once. */
static void group_part(uint64_t word, table_hash_fn hash_of, uint64_t *halves[2], uint64_t counts[2])
{
    const struct overflow *overflow = group_overflow(word);
    unsigned depth = table_word_depth(word), half;

    for (unsigned i = 0; i < group_bucket_count(word); i++) {
        const struct table_bucket *bucket = &group_buckets(word)[i];

        if (i + 1 < group_bucket_count(word)) { /* the items are cold: let a bucket of them arrive together */
            for (unsigned k = 0; k < TABLE_SLOTS; k++)
                __builtin_prefetch(table_slot_item(&bucket[1].slots[k]));
        }
        for (unsigned k = 0; k < TABLE_SLOTS && bucket->slots[k] != 0; k++) {
            half = directory_bit(hash_of(table_slot_item(&bucket->slots[k])), depth);
            halves[half][counts[half]++] = bucket->slots[k];
        }
    }
    for (uint64_t i = 0; overflow != NULL && i < overflow->used; i++) {
        half = directory_bit(hash_of(table_slot_item(&overflow->slots[i])), depth);
        halves[half][counts[half]++] = overflow->slots[i];
    }
}

/* Without limit a few items with equal hashes would double the directory until all bits are used up. */
static bool group_may_split(const struct table *table, uint64_t word)
{
    unsigned depth = directory_depth(table);

    return table_word_depth(word) < depth ||
           (depth < TABLE_DIRECTORY_BITS && UINT64_C(2) << depth <= table->count * TABLE_DIRECTORY_SHARE);
}

/* Two groups for one: each takes the items with one value of the next hash bit. */
static void group_split(struct table *table, uint64_t hash, table_hash_fn hash_of)
{
    uint64_t old = table_group_word(table, hash), counts[2] = {0, 0}, words[2], bit;
    const struct overflow *overflow = group_overflow(old);
    uint64_t most = group_used(old) + (overflow != NULL ? overflow->used : 0);
    uint64_t *values = mem_alloc(2 * most * sizeof(*values)), *halves[2] = {values, values + most};
    unsigned depth = table_word_depth(old);

    group_part(old, hash_of, halves, counts);
    if (depth == directory_depth(table))
        directory_double(table);
    bit = UINT64_C(1) << (TABLE_DIRECTORY_SHIFT + TABLE_DIRECTORY_BITS - 1 - depth);
    for (unsigned half = 0; half < 2; half++) {
        words[half] = group_build_fitting(halves[half], counts[half], 1, depth + 1);
        if (words[half] == 0) { /* as many items without overflow fit the same number of buckets, if sorted */
            assert(overflow != NULL);
            words[half] = group_build_with_overflow(halves[half], counts[half], depth + 1);
        }
        group_replace(table, half == 0 ? hash & ~bit : hash | bit, words[half]);
    }
    directory_add_groups(table, 1);
    mem_free(values);
    mem_free(group_buckets(old));
    for (unsigned half = 0; half < 2; half++) { /* at most TABLE_DIRECTORY_BITS deep */
        if (group_overflow(words[half]) != NULL && group_may_split(table, words[half]))
            group_split(table, half == 0 ? hash & ~bit : hash | bit, hash_of);
    }
}

/* A slot at the end of the overflow of the group. */
static uint64_t *group_overflow_slot(struct table *table, uint64_t hash)
{
    uint64_t old = table_group_word(table, hash), word = old;
    const struct overflow *overflow = group_overflow(old);

    if (overflow == NULL)
        word = group_resize_overflow(old, TABLE_SLOTS);
    else if (overflow->used == overflow->capacity)
        word = group_resize_overflow(old, overflow->capacity + overflow->capacity / 2 + TABLE_SLOTS);
    if (word != old) {
        group_replace(table, hash, word);
        mem_free(group_buckets(old));
    }
    return &overflow_of(word)->slots[overflow_of(word)->used++];
}

/* Gives the group of the hash more room, or says that there is none but in its overflow. */
static bool group_grow(struct table *table, uint64_t hash, table_hash_fn hash_of)
{
    uint64_t values[TABLE_GROUP_BUCKETS_MOST * TABLE_SLOTS], old = table_group_word(table, hash), word = 0;

    if (group_bucket_count(old) < TABLE_GROUP_BUCKETS_MOST)
        word = group_build_fitting(values, group_values(old, values), group_bucket_count(old) + 1,
                                   table_word_depth(old));
    if (word != 0) {
        group_replace(table, hash, word);
        mem_free(group_buckets(old));
        return true;
    }
    if (!group_may_split(table, old))
        return false;
    group_split(table, hash, hash_of);
    return true;
}

uint64_t *table_insert(struct table *table, uint64_t hash, void *item, table_hash_fn hash_of)
{
    uint64_t value = (hash & ~TABLE_ADDRESS_MASK) | (uint64_t)(uintptr_t)item;

    debug_assert(((uintptr_t)item & ~TABLE_ADDRESS_MASK) == 0 && item != NULL);
    if (table_root(table) == 0)
        root_set(table, group_word(buckets_create(1), 1, 0));
    for (;;) {
        uint64_t word = table_group_word(table, hash);
        uint64_t *slot = group_place(group_buckets(word), group_bucket_count(word), value);

        if (slot == NULL && !group_grow(table, hash, hash_of))
            slot = group_overflow_slot(table, hash);
        if (slot != NULL) {
            *slot = value;
            count_set(table, table->count + 1);
            return slot;
        }
    }
}

/* Fills the hole that a removal left in a bucket that was full, from the buckets behind it (invariant 2). Returns the
 * bucket that has the hole in the end. */
static unsigned group_pull_back(struct table_bucket *buckets, unsigned bucket_count, unsigned hole)
{
    unsigned from = hole;

    for (unsigned step = 1; step <= TABLE_REACH && step < bucket_count; step++) {
        struct table_bucket *source;
        unsigned used, i;

        if (++from == bucket_count)
            from = 0;
        source = &buckets[from];
        used = bucket_used(source);
        for (i = 0; i < used; i++) {
            unsigned home = table_home(source->slots[i], bucket_count);
            unsigned strayed = (from + bucket_count - home) % bucket_count;

            if (strayed >= step) /* its way from home passes the hole */
                break;
        }
        if (i < used) {
            buckets[hole].slots[TABLE_SLOTS - 1] = source->slots[i];
            source->slots[i] = source->slots[used - 1];
            source->slots[used - 1] = 0;
            hole = from;
            if (used < TABLE_SLOTS)
                break;
            step = 0;
        } else if (used < TABLE_SLOTS) {
            break;
        }
    }
    return hole;
}

/* Takes a slot out of the overflow of the group, and the overflow away with its last. */
static void overflow_take_out(struct table *table, uint64_t hash, uint64_t *slot)
{
    uint64_t old = table_group_word(table, hash), word = 0;
    struct overflow *overflow = overflow_of(old);

    *slot = overflow->slots[--overflow->used];
    if (overflow->used == 0)
        word = group_resize_overflow(old, 0);
    else if (overflow->used < overflow->capacity / 4)
        word = group_resize_overflow(old, overflow->capacity / 2);
    if (word != 0) {
        group_replace(table, hash, word);
        mem_free(group_buckets(old));
    }
}

/* Fills the hole in a bucket that was full with an item of the overflow that has it within reach (invariant 4). */
static void overflow_pull_back(struct table *table, uint64_t hash, unsigned hole)
{
    uint64_t word = table_group_word(table, hash);
    struct overflow *overflow = overflow_of(word);

    for (uint64_t i = 0; i < overflow->used; i++) {
        unsigned home = table_home(overflow->slots[i], TABLE_GROUP_BUCKETS_MOST);

        if ((hole + TABLE_GROUP_BUCKETS_MOST - home) % TABLE_GROUP_BUCKETS_MOST <= TABLE_REACH) {
            group_buckets(word)[hole].slots[TABLE_SLOTS - 1] = overflow->slots[i];
            overflow_take_out(table, hash, &overflow->slots[i]);
            return;
        }
    }
}

static bool overflow_has(const struct overflow *overflow, const uint64_t *slot)
{
    return overflow != NULL && slot >= overflow->slots && slot < overflow->slots + overflow->used;
}

/* Joins a group with its neighbour, if both fit comfortably into one. */
static bool group_merge(struct table *table, uint64_t hash)
{
    uint64_t values[TABLE_GROUP_BUCKETS_MOST * TABLE_SLOTS], own = table_group_word(table, hash), other, bit, word;
    unsigned depth = table_word_depth(own), count;

    if (depth == 0)
        return false;
    bit = UINT64_C(1) << (TABLE_DIRECTORY_SHIFT + TABLE_DIRECTORY_BITS - depth);
    other = table_group_word(table, hash ^ bit);
    if (table_word_depth(other) != depth || group_overflow(other) != NULL ||
        group_used(own) + group_used(other) > countof(values) / 2)
        return false;
    count = group_values(own, values);
    count += group_values(other, values + count);
    word = group_build_fitting(values, count, count / 6 + 1, depth - 1);
    if (word == 0)
        return false;
    group_replace(table, hash, word);
    mem_free(group_buckets(own));
    mem_free(group_buckets(other));
    if (directory_add_groups(table, -1) * 2 <= UINT64_C(1) << directory_depth(table))
        directory_halve(table);
    return true;
}

/* After a removal that emptied a bucket: give memory back when less than half of the group is in use. */
static void group_shrink(struct table *table, uint64_t hash)
{
    uint64_t values[TABLE_GROUP_BUCKETS_MOST * TABLE_SLOTS], old = table_group_word(table, hash), word;
    unsigned bucket_count = group_bucket_count(old), used = group_used(old);

    if (used * 2 > bucket_count * TABLE_SLOTS || group_overflow(old) != NULL)
        return;
    if (group_merge(table, hash)) {
        group_shrink(table, hash); /* its new neighbour may have waited for it, and it may be the empty last one */
        return;
    }
    if (used == 0 && directory_of(table) == NULL) {
        root_set(table, 0);
        mem_free(group_buckets(old));
        return;
    }
    group_values(old, values);
    word = group_build_fitting(values, used, used / 6 + 1, table_word_depth(old));
    if (group_bucket_count(word) >= bucket_count) {
        mem_free(group_buckets(word));
        return;
    }
    group_replace(table, hash, word);
    mem_free(group_buckets(old));
}

/* Takes a slot out of its bucket. */
static void bucket_take_out(struct table *table, uint64_t hash, uint64_t *slot)
{
    uint64_t word = table_group_word(table, hash);
    struct table_bucket *buckets = group_buckets(word);
    unsigned index = (unsigned)(((uintptr_t)slot - (uintptr_t)buckets) / sizeof(struct table_bucket));
    struct table_bucket *bucket = &buckets[index];
    unsigned used = bucket_used(bucket);

    debug_assert(index < group_bucket_count(word) && *slot != 0);
    *slot = bucket->slots[used - 1];
    bucket->slots[used - 1] = 0;
    if (used == TABLE_SLOTS) {
        index = group_pull_back(buckets, group_bucket_count(word), index);
        if (UNLIKELY(word & TABLE_WORD_HAS_OVERFLOW))
            overflow_pull_back(table, hash, index);
    } else if (used == 1) {
        group_shrink(table, hash);
    }
}

void *table_remove(struct table *table, uint64_t hash, uint64_t *slot)
{
    void *item = table_slot_item(slot);

    count_set(table, table->count - 1);
    if (UNLIKELY(overflow_has(group_overflow(table_group_word(table, hash)), slot)))
        overflow_take_out(table, hash, slot);
    else
        bucket_take_out(table, hash, slot);
    return item;
}

/* The next group in scan order, from directory entry *index on, which moves behind it; 0 at the end. */
static uint64_t next_group(const struct table *table, uint64_t *index)
{
    const struct table_directory *directory = directory_of(table);
    unsigned depth = directory_depth(table), spread;
    uint64_t word;

    if (table_root(table) == 0 || *index >= UINT64_C(1) << depth)
        return 0;
    word = directory != NULL ? directory->groups[*index] : table_root(table);
    spread = depth - table_word_depth(word);
    *index = ((*index >> spread) + 1) << spread;
    return word;
}

static void overflow_each(const struct overflow *overflow, table_item_fn visit, void *context)
{
    for (uint64_t i = 0; overflow != NULL && i < overflow->used; i++)
        visit(table_slot_item(&overflow->slots[i]), context);
}

void table_clear(struct table *table, table_item_fn free_item, void *context)
{
    uint64_t index = 0;

    for (uint64_t word; (word = next_group(table, &index)) != 0; mem_free(group_buckets(word))) {
        for (unsigned i = 0; free_item != NULL && i < group_bucket_count(word); i++) {
            const struct table_bucket *bucket = &group_buckets(word)[i];

            for (unsigned k = 0; k < TABLE_SLOTS && bucket->slots[k] != 0; k++)
                free_item(table_slot_item(&bucket->slots[k]), context);
        }
        if (free_item != NULL)
            overflow_each(group_overflow(word), free_item, context);
    }
    mem_free(directory_of(table));
    root_set(table, 0);
    count_set(table, 0);
}

void table_move(struct table *to, struct table *from)
{
    root_set(to, table_root(from));
    count_set(to, from->count);
    root_set(from, 0);
    count_set(from, 0);
}

/* Inline: a function that does nothing else has no effect for the compiler, which drops its calls. */
static ALWAYS_INLINE void bucket_prefetch_items(const struct table_bucket *bucket)
{
    for (unsigned k = 0; k < TABLE_SLOTS && bucket->slots[k] != 0; k++) {
        const char *item = table_slot_item(&bucket->slots[k]);

        __builtin_prefetch(item);
        __builtin_prefetch(item + CACHE_LINE_BYTES);
    }
}

/* Items are anywhere in memory: while those of one bucket are visited, the next bucket's are prefetched. (Saving 5
 * million keys spent 39 % of its time waiting for them.) */
static void group_each(uint64_t word, table_item_fn visit, void *context)
{
    const struct table_bucket *end = group_buckets(word) + group_bucket_count(word);

    bucket_prefetch_items(group_buckets(word));
    for (const struct table_bucket *bucket = group_buckets(word); bucket < end; bucket++) {
        if (bucket + 1 < end)
            bucket_prefetch_items(bucket + 1);
        for (unsigned k = 0; k < TABLE_SLOTS && bucket->slots[k] != 0; k++)
            visit(table_slot_item(&bucket->slots[k]), context);
    }
    overflow_each(group_overflow(word), visit, context);
}

void table_each(const struct table *table, table_item_fn visit, void *context)
{
    uint64_t index = 0;

    for (uint64_t word; (word = next_group(table, &index)) != 0;)
        group_each(word, visit, context);
}

/* Visits the items of a group whose tag begins with `slice`: they are in a few home buckets, or spilled behind
 * these. */
static uint64_t group_scan(uint64_t word, unsigned slice, table_item_fn visit, void *context)
{
    const unsigned slice_shift = 64 - TABLE_SCAN_TAG_BITS;
    unsigned bucket_count = group_bucket_count(word);
    unsigned first = table_home((uint64_t)slice << slice_shift, bucket_count);
    uint64_t last_tag = ((uint64_t)slice + 1) * (UINT64_C(1) << slice_shift) - 1;
    unsigned home_count = table_home(last_tag, bucket_count) - first + 1;
    const struct overflow *overflow = group_overflow(word);
    uint64_t visited = 0;

    for (unsigned step = 0; step < bucket_count && step < home_count + TABLE_REACH; step++) {
        const struct table_bucket *bucket = &group_buckets(word)[(first + step) % bucket_count];

        for (unsigned k = 0; k < TABLE_SLOTS && bucket->slots[k] != 0; k++) {
            if (bucket->slots[k] >> slice_shift == slice) {
                visit(table_slot_item(&bucket->slots[k]), context);
                visited++;
            }
        }
        if (step + 1 >= home_count && bucket->slots[TABLE_SLOTS - 1] == 0)
            break;
    }
    for (uint64_t i = 0; overflow != NULL && i < overflow->used; i++) {
        if (overflow->slots[i] >> slice_shift == slice) {
            visit(table_slot_item(&overflow->slots[i]), context);
            visited++;
        }
    }
    return visited;
}

uint64_t table_scan(const struct table *table, uint64_t position, uint64_t want, table_item_fn visit, void *context)
{
    unsigned depth = directory_depth(table), slice = (unsigned)(position >> TABLE_DIRECTORY_BITS);
    uint64_t prefix = position & ((UINT64_C(1) << TABLE_DIRECTORY_BITS) - 1);
    uint64_t index = prefix >> (TABLE_DIRECTORY_BITS - depth), visited = 0, step_count = 0;
    uint64_t most_steps = 16 + MIN(want, UINT32_MAX) * 10; /* also over a table that is nearly empty */

    if (table->count == 0 || position >> TABLE_SCAN_BITS != 0)
        return 0;
    while (visited < want && step_count++ < most_steps) {
        visited += group_scan(next_group(table, &index), slice, visit, context);
        if (index < UINT64_C(1) << depth)
            continue;
        index = 0;
        if (++slice == 1U << TABLE_SCAN_TAG_BITS)
            return 0;
    }
    return (uint64_t)slice << TABLE_DIRECTORY_BITS | index << (TABLE_DIRECTORY_BITS - depth);
}

/* A relocation's position: the first directory bits of the group, and the bucket in it. */
enum { RELOCATE_BUCKET_BITS = 6 };
static_assert(TABLE_GROUP_BUCKETS_MOST == 1 << RELOCATE_BUCKET_BITS, "a bucket's number in a position");

static void relocate_directory(struct table *table, struct mem_mover *mover)
{
    struct table_directory *directory = directory_of(table);

    if (directory != NULL)
        directory_set(table, mem_move(mover, directory, CACHE_LINE_BYTES), directory_depth(table));
}

/* Moves the group of entries `first` up to `end`; returns its word from now on. */
static uint64_t relocate_group(struct table *table, uint64_t first, uint64_t end, uint64_t word,
                               struct mem_mover *mover)
{
    struct table_directory *directory = directory_of(table);
    const struct table_bucket *buckets = mem_move(mover, group_buckets(word), CACHE_LINE_BYTES);

    if (buckets == group_buckets(word))
        return word;
    word = (word & ~TABLE_WORD_ADDRESS_MASK) | (word & TABLE_WORD_BUCKETS_MASK) | (uint64_t)(uintptr_t)buckets;
    if (directory == NULL)
        root_set(table, word);
    for (uint64_t i = first; directory != NULL && i < end; i++)
        directory->groups[i] = word;
    return word;
}

/* Relocates items from `bucket` on, with the last bucket also the overflow. Returns the next bucket, 0 at the end of
 * the group. Subtracts the number of items from `want`. */
static unsigned relocate_items(uint64_t word, unsigned bucket, uint64_t *want, table_relocate_fn relocate,
                               void *context)
{
    struct overflow *overflow = group_overflow(word);

    for (; bucket < group_bucket_count(word); bucket++) {
        uint64_t *slots = group_buckets(word)[bucket].slots;

        if (*want == 0)
            return bucket;
        for (unsigned k = 0; k < TABLE_SLOTS; k++) /* cold, most of them: let them arrive together */
            __builtin_prefetch(table_slot_item(&slots[k]));
        for (unsigned k = 0; k < TABLE_SLOTS && slots[k] != 0; k++) {
            table_slot_replace(&slots[k], relocate(table_slot_item(&slots[k]), context));
            *want -= MIN(*want, 1);
        }
    }
    for (uint64_t i = 0; overflow != NULL && i < overflow->used; i++) {
        table_slot_replace(&overflow->slots[i], relocate(table_slot_item(&overflow->slots[i]), context));
        *want -= MIN(*want, 1);
    }
    return 0;
}

uint64_t table_relocate(struct table *table, uint64_t position, uint64_t want, struct mem_mover *mover,
                        table_relocate_fn relocate, void *context)
{
    unsigned depth = directory_depth(table), bucket = (unsigned)position & (TABLE_GROUP_BUCKETS_MOST - 1);
    uint64_t first = position >> RELOCATE_BUCKET_BITS >> (TABLE_DIRECTORY_BITS - depth), index = first, word;

    if (position == 0)
        relocate_directory(table, mover);
    while ((word = next_group(table, &index)) != 0) {
        if (bucket == 0) {
            uint64_t spread = depth - table_word_depth(word);

            word = relocate_group(table, first >> spread << spread, index, word, mover);
        }
        bucket = relocate_items(word, bucket, &want, relocate, context);
        if (bucket != 0)
            return first << (TABLE_DIRECTORY_BITS - depth) << RELOCATE_BUCKET_BITS | bucket;
        first = index;
        want -= MIN(want, 1); /* groups without items count, too */
        if (want == 0 && index < UINT64_C(1) << depth)
            return first << (TABLE_DIRECTORY_BITS - depth) << RELOCATE_BUCKET_BITS;
    }
    return 0;
}

void *table_random(const struct table *table, uint64_t (*random)(void *context), void *context)
{
    unsigned depth = directory_depth(table);

    if (table->count == 0)
        return NULL;
    for (;;) {
        uint64_t bits = random(context), index = (bits >> 16) & ((UINT64_C(1) << depth) - 1), group_index = index;
        uint64_t word = next_group(table, &group_index);
        unsigned spread = depth - table_word_depth(word), most = group_bucket_count(word), place;
        const struct overflow *overflow = group_overflow(word);
        const struct table_bucket *bucket;

        /* A group is drawn through the first of its entries only, and as one of 64 buckets: all items weigh alike. */
        if (index >> spread << spread != index)
            continue;
        if (UNLIKELY(overflow != NULL)) {
            uint64_t slot = random(context) % (TABLE_GROUP_BUCKETS_MOST * TABLE_SLOTS + overflow->used);

            if (slot >= TABLE_GROUP_BUCKETS_MOST * TABLE_SLOTS)
                return table_slot_item(&overflow->slots[slot - TABLE_GROUP_BUCKETS_MOST * TABLE_SLOTS]);
        }
        place = (unsigned)(bits & 0xFFFF) % ((depth == 0 ? most : TABLE_GROUP_BUCKETS_MOST) * TABLE_SLOTS);
        if (place >= most * TABLE_SLOTS)
            continue;
        bucket = &group_buckets(word)[place / TABLE_SLOTS];
        if (bucket->slots[place % TABLE_SLOTS] != 0)
            return table_slot_item(&bucket->slots[place % TABLE_SLOTS]);
    }
}

uint64_t *table_overflow_find(uint64_t word, uint64_t hash, table_match_fn match, const void *key)
{
    struct overflow *overflow = overflow_of(word);

    for (uint64_t i = 0; i < overflow->used; i++) {
        if (overflow->slots[i] >> TABLE_TAG_SHIFT == hash >> TABLE_TAG_SHIFT &&
            match(table_slot_item(&overflow->slots[i]), key))
            return &overflow->slots[i];
    }
    return NULL;
}

struct hash_visit {
    bool (*visit)(const void *item, void *context);
    void *context;
};

static bool hash_visit_match(const void *item, const void *key)
{
    const struct hash_visit *hash_visit = key;

    return hash_visit->visit(item, hash_visit->context);
}

uint64_t *table_find_by_hash(const struct table *table, uint64_t hash, bool (*visit)(const void *item, void *context),
                             void *context)
{
    const struct hash_visit hash_visit = {visit, context};

    return table_find_slot(table, hash, hash_visit_match, &hash_visit);
}

static uint64_t group_slot_count(uint64_t word)
{
    const struct overflow *overflow = group_overflow(word);

    return group_bucket_count(word) * TABLE_SLOTS + (overflow != NULL ? overflow->capacity : 0);
}

static uint64_t group_memory_bytes(uint64_t word)
{
    return group_slot_count(word) * sizeof(uint64_t) + (group_overflow(word) != NULL ? sizeof(struct overflow) : 0);
}

uint64_t table_slot_count(const struct table *table)
{
    uint64_t index = 0, count = 0;

    for (uint64_t word; (word = next_group(table, &index)) != 0;)
        count += group_slot_count(word);
    return count;
}

uint64_t table_memory_bytes(const struct table *table)
{
    uint64_t index = 0, bytes = 0;

    for (uint64_t word; (word = next_group(table, &index)) != 0;)
        bytes += group_memory_bytes(word);
    if (directory_of(table) != NULL)
        bytes += sizeof(struct table_directory) + (sizeof(uint64_t) << directory_depth(table));
    return bytes;
}

/* Invariants 1 and 2; the count of used slots. */
static uint64_t validate_buckets(uint64_t word, uint64_t prefix, table_hash_fn hash_of)
{
    unsigned bucket_count = group_bucket_count(word);
    uint64_t count = 0;

    for (unsigned i = 0; i < bucket_count; i++) {
        const struct table_bucket *bucket = &group_buckets(word)[i];
        unsigned used = bucket_used(bucket);

        count += used;
        for (unsigned k = 0; k < TABLE_SLOTS; k++) {
            uint64_t value = bucket->slots[k], hash;
            unsigned home;

            assert((value != 0) == (k < used)); /* invariant 1 */
            if (value == 0)
                continue;
            hash = hash_of(table_slot_item(&bucket->slots[k]));
            assert(hash >> TABLE_TAG_SHIFT == value >> TABLE_TAG_SHIFT);
            assert(table_directory_index(hash, table_word_depth(word)) == prefix);
            home = table_home(hash, bucket_count);
            assert((i + bucket_count - home) % bucket_count <= TABLE_REACH);
            for (unsigned b = home; b != i; b = (b + 1) % bucket_count)
                assert(group_buckets(word)[b].slots[TABLE_SLOTS - 1] != 0); /* invariant 2 */
        }
    }
    return count;
}

/* Invariant 4; the count of used slots. */
static uint64_t validate_overflow(uint64_t word, uint64_t prefix, table_hash_fn hash_of)
{
    const struct overflow *overflow = group_overflow(word);

    if (overflow == NULL)
        return 0;
    assert(group_bucket_count(word) == TABLE_GROUP_BUCKETS_MOST);
    assert(overflow->used != 0);
    assert(overflow->used <= overflow->capacity);
    for (uint64_t i = 0; i < overflow->used; i++) {
        uint64_t value = overflow->slots[i], hash = hash_of(table_slot_item(&overflow->slots[i]));
        unsigned home = table_home(hash, TABLE_GROUP_BUCKETS_MOST);

        assert(hash >> TABLE_TAG_SHIFT == value >> TABLE_TAG_SHIFT);
        assert(table_directory_index(hash, table_word_depth(word)) == prefix);
        for (unsigned step = 0; step <= TABLE_REACH; step++)
            assert(group_buckets(word)[(home + step) % TABLE_GROUP_BUCKETS_MOST].slots[TABLE_SLOTS - 1] != 0);
    }
    return overflow->used;
}

void table_validate(const struct table *table, table_hash_fn hash_of)
{
    const struct table_directory *directory = directory_of(table);
    unsigned depth = directory_depth(table);
    uint64_t index = 0, count = 0, group_count = 0;

    for (uint64_t word, first = 0; (word = next_group(table, &index)) != 0; first = index, group_count++) {
        uint64_t prefix = first >> (depth - table_word_depth(word));

        assert(table_word_depth(word) <= depth);
        for (uint64_t i = first; directory != NULL && i < index; i++)
            assert(directory->groups[i] == word); /* invariant 3 */
        count += validate_buckets(word, prefix, hash_of) + validate_overflow(word, prefix, hash_of);
    }
    assert(count == table->count);
    assert(directory == NULL || directory->group_count == group_count);
}
