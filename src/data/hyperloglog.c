/* Sparse values are edited in place: the run with the register is replaced by up to three runs, then neighbours are
 * joined. How far joining goes is visible to clients in the string, so it is fixed: from the run before the change on,
 * JOIN_STEPS times either two runs are joined or the next two are compared. */
#include "data/hyperloglog.h"

#include "base/assert.h"

#include <endian.h>
#include <math.h>

enum {
    COUNT_OFFSET = 8,
    STALE_OFFSET = 15, /* the count's highest byte */
    STALE_BIT = 0x80,
    SHORT_ZEROS_MOST = 64,
    SPARSE_RUN_MOST = 4,
    JOIN_STEPS = 5
};

#define HASH_SEED UINT64_C(0xadc83b19)

/* --- header --- */

enum hll_encoding hll_encoding_of(struct slice value)
{
    if (value.size < HLL_HEADER_BYTES || memcmp(value.data, "HYLL", 4) != 0)
        return HLL_NONE;
    if (value.data[4] == 1)
        return HLL_SPARSE;
    return value.data[4] == 0 && value.size == HLL_DENSE_BYTES ? HLL_DENSE : HLL_NONE;
}

static bool is_dense(const char *value)
{
    return value[4] == 0;
}

bool hll_remembered_count(struct slice value, uint64_t *count)
{
    uint64_t stored;

    if (((unsigned char)value.data[STALE_OFFSET] & STALE_BIT) != 0)
        return false;
    memcpy(&stored, value.data + COUNT_OFFSET, sizeof(stored));
    *count = le64toh(stored);
    return true;
}

void hll_remember_count(char *value, uint64_t count)
{
    uint64_t stored = htole64(count);

    memcpy(value + COUNT_OFFSET, &stored, sizeof(stored));
}

void hll_forget_count(char *value)
{
    value[STALE_OFFSET] = (char)((unsigned char)value[STALE_OFFSET] | STALE_BIT);
}

/* --- where an element belongs: the hash known as MurmurHash64A --- */

static uint64_t hash_element(struct slice element)
{
    const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
    uint64_t hash = HASH_SEED ^ (uint64_t)element.size * factor, word;
    size_t at = 0;

    for (; element.size - at >= sizeof(word); at += sizeof(word)) {
        memcpy(&word, element.data + at, sizeof(word));
        word = le64toh(word) * factor;
        word = (word ^ word >> 47) * factor;
        hash = (hash ^ word) * factor;
    }
    if (at != element.size) {
        word = 0;
        memcpy(&word, element.data + at, element.size - at);
        hash = (hash ^ le64toh(word)) * factor;
    }
    hash = (hash ^ hash >> 47) * factor;
    return hash ^ hash >> 47;
}

struct hll_place hll_place_of(struct slice element)
{
    uint64_t hash = hash_element(element), rest = hash / HLL_REGISTER_COUNT;

    rest |= UINT64_C(1) << (HLL_RANK_MOST - 1); /* so that there is an end */
    return (struct hll_place){(uint32_t)(hash % HLL_REGISTER_COUNT), (uint32_t)__builtin_ctzll(rest) + 1};
}

/* --- dense --- */

uint32_t hll_dense_rank(const char *value, uint32_t index)
{
    const unsigned char *byte = (const unsigned char *)value + HLL_HEADER_BYTES + index * 6 / 8;
    unsigned shift = index * 6 % 8, rank = byte[0] >> shift;

    assert(index < HLL_REGISTER_COUNT);
    if (shift > 2) /* it continues in the next byte */
        rank |= (unsigned)byte[1] << (8 - shift);
    return rank & 63;
}

static void dense_store(char *value, uint32_t index, uint32_t rank)
{
    unsigned char *byte = (unsigned char *)value + HLL_HEADER_BYTES + index * 6 / 8;
    unsigned shift = index * 6 % 8;

    byte[0] = (unsigned char)((byte[0] & ~(63U << shift)) | rank << shift);
    if (shift > 2)
        byte[1] = (unsigned char)((byte[1] & ~(63U >> (8 - shift))) | rank >> (8 - shift));
}

bool hll_dense_raise(char *value, struct hll_place place)
{
    if (hll_dense_rank(value, place.index) >= place.rank)
        return false;
    dense_store(value, place.index, place.rank);
    hll_forget_count(value);
    return true;
}

/* Eight registers are six bytes. */
static inline uint64_t dense_load_8(const char *value, uint32_t index)
{
    uint64_t word = 0;

    memcpy(&word, value + HLL_HEADER_BYTES + index / 8 * 6, 6);
    return le64toh(word);
}

/* --- sparse: runs --- */

struct run {
    uint32_t bytes;
    uint32_t rank; /* 0: zeros */
    uint32_t count;
};

/* False: the second byte is missing. */
static inline bool run_read(struct slice value, size_t at, struct run *run)
{
    unsigned byte = (unsigned char)value.data[at];

    if ((byte & 0x80) != 0) {
        *run = (struct run){1, (byte >> 2 & 31) + 1, (byte & 3) + 1};
    } else if ((byte & 0x40) == 0) {
        *run = (struct run){1, 0, byte + 1};
    } else {
        if (at + 1 == value.size)
            return false;
        *run = (struct run){2, 0, ((byte & 63) << 8 | (unsigned char)value.data[at + 1]) + 1};
    }
    return true;
}

/* Up to eight runs of one byte each and, where there is one, a run of two bytes behind them. */
struct stretch {
    uint32_t bytes;
    uint32_t count; /* of registers */
};

/* Reads eight bytes at once, which makes going through many runs several times faster. `at` is not the end. False: the
 * second byte of a run is missing. */
static inline bool stretch_read(struct slice value, size_t at, struct stretch *stretch)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), low_bytes = UINT64_C(0x00FF00FF00FF00FF);
    uint64_t word, of_two, with_rank, counts;
    unsigned singles = 8;
    struct run run;

    if (value.size - at < sizeof(word)) {
        if (!run_read(value, at, &run))
            return false;
        *stretch = (struct stretch){run.bytes, run.count};
        return true;
    }
    memcpy(&word, value.data + at, sizeof(word));
    word = le64toh(word);
    of_two = ~word & (word << 1) & (0x80 * ones);
    with_rank = ((word >> 7) & ones) * 0xFF;
    counts = word & ((0x3 * ones & with_rank) | (0x3F * ones & ~with_rank));
    if (of_two != 0) {
        singles = (unsigned)__builtin_ctzll(of_two) / 8;
        counts &= (UINT64_C(1) << 8 * singles) - 1;
    }
    counts = (counts & low_bytes) + ((counts >> 8) & low_bytes);
    *stretch = (struct stretch){singles, (uint32_t)(counts * (low_bytes & ones) >> 48) + singles};
    if (of_two != 0) {
        if (!run_read(value, at + singles, &run))
            return false;
        stretch->bytes += run.bytes;
        stretch->count += run.count;
    }
    return true;
}

/* Returns its bytes; none for a run of nothing. */
static unsigned run_write(unsigned char *out, uint32_t rank, uint32_t count)
{
    if (count == 0)
        return 0;
    if (rank != 0) {
        out[0] = (unsigned char)(0x80 | (rank - 1) << 2 | (count - 1));
        return 1;
    }
    if (count <= SHORT_ZEROS_MOST) {
        out[0] = (unsigned char)(count - 1);
        return 1;
    }
    out[0] = (unsigned char)(0x40 | (count - 1) >> 8);
    out[1] = (unsigned char)(count - 1);
    return 2;
}

bool hll_is_whole(struct slice value)
{
    struct stretch stretch;
    uint32_t index = 0;

    if (is_dense(value.data))
        return true;
    for (size_t at = HLL_HEADER_BYTES; at < value.size; at += stretch.bytes) {
        if (!stretch_read(value, at, &stretch) || stretch.count > HLL_REGISTER_COUNT - index)
            return false;
        index += stretch.count;
    }
    return index == HLL_REGISTER_COUNT;
}

void hll_init(struct buffer *value)
{
    unsigned char zeros[2];
    unsigned size = run_write(zeros, 0, HLL_REGISTER_COUNT);
    char header[HLL_HEADER_BYTES] = "HYLL\1";

    hll_forget_count(header);
    buffer_append(value, header, sizeof(header));
    buffer_append(value, zeros, size);
}

void hll_make_dense(struct buffer *value)
{
    struct buffer dense;
    struct run run;
    uint32_t index = 0;

    if (is_dense(value->data))
        return;
    buffer_init(&dense);
    buffer_append(&dense, value->data, HLL_HEADER_BYTES);
    memset(buffer_reserve(&dense, HLL_DENSE_BYTES - HLL_HEADER_BYTES), 0, HLL_DENSE_BYTES - HLL_HEADER_BYTES);
    dense.size = HLL_DENSE_BYTES;
    dense.data[4] = 0;
    for (size_t at = HLL_HEADER_BYTES; at < value->size && run_read(buffer_slice(value), at, &run); at += run.bytes) {
        for (uint32_t end = index + run.count; index < end; index++) {
            if (run.rank != 0)
                dense_store(dense.data, index, run.rank);
        }
    }
    assert(index == HLL_REGISTER_COUNT);
    buffer_fini(value);
    *value = dense;
}

/* --- sparse: one register --- */

/* Where a walk over the runs is, and the two runs that it saw last; at the beginning all three are the first. */
struct place_in_runs {
    size_t at;
    uint32_t index; /* of the run's first register */
};
struct walk {
    struct place_in_runs here, before, earlier;
};

static void walk_begin(struct walk *walk, struct place_in_runs first)
{
    *walk = (struct walk){first, first, first};
}

/* By whole stretches, and then two of them back: those are two runs at least, so that the walk will know them. */
static void walk_far(struct walk *walk, struct slice value, uint32_t index)
{
    struct place_in_runs here = walk->here, before = here, earlier = here;
    struct stretch stretch;

    while (here.at < value.size && stretch_read(value, here.at, &stretch) && index >= here.index + stretch.count) {
        earlier = before;
        before = here;
        here.at += stretch.bytes;
        here.index += stretch.count;
    }
    if (earlier.at != walk->here.at)
        walk_begin(walk, earlier);
}

static struct run walk_to(struct walk *walk, struct slice value, uint32_t index)
{
    struct run run;

    walk_far(walk, value, index);
    for (;;) {
        bool there = walk->here.at < value.size && run_read(value, walk->here.at, &run);

        assert(there);
        if (index < walk->here.index + run.count)
            return run;
        walk->earlier = walk->before;
        walk->before = walk->here;
        walk->here.at += run.bytes;
        walk->here.index += run.count;
    }
}

/* The run's bytes make room for others. */
static void splice(struct buffer *value, size_t at, size_t old_size, const unsigned char *bytes, size_t size)
{
    size_t rest = value->size - at - old_size;

    if (size > old_size)
        (void)buffer_reserve(value, size - old_size);
    memmove(value->data + at + size, value->data + at + old_size, rest);
    memcpy(value->data + at, bytes, size);
    value->size = at + size + rest;
}

static void join_neighbours(struct buffer *value, size_t at)
{
    struct run run, next;

    for (int step = 0; step < JOIN_STEPS && at < value->size; step++) {
        if (!run_read(buffer_slice(value), at, &run) || at + run.bytes == value->size ||
            !run_read(buffer_slice(value), at + run.bytes, &next))
            return;
        if (run.rank != 0 && run.rank == next.rank && run.count + next.count <= SPARSE_RUN_MOST) {
            unsigned char joined[2];

            splice(value, at, 2, joined, run_write(joined, run.rank, run.count + next.count));
        } else {
            at += run.bytes;
        }
    }
}

/* `from` is a run where the search for this register may begin. It advances to the run for later registers: the last
 * but one that does not change, because the next change needs the run before its own. */
static bool sparse_raise(struct buffer *value, struct place_in_runs *from, struct hll_place place, size_t limit)
{
    unsigned char pieces[5];
    struct walk walk;
    struct run run;
    uint32_t left;
    size_t size;

    walk_begin(&walk, *from);
    run = walk_to(&walk, buffer_slice(value), place.index);
    *from = walk.earlier;
    if (run.rank >= place.rank)
        return false;
    left = place.index - walk.here.index;
    size = run_write(pieces, run.rank, left);
    size += run_write(pieces + size, MIN(place.rank, (uint32_t)HLL_SPARSE_RANK_MOST), 1);
    size += run_write(pieces + size, run.rank, run.count - left - 1);
    if (place.rank > HLL_SPARSE_RANK_MOST || (size > run.bytes && value->size + (size - run.bytes) > limit)) {
        hll_make_dense(value);
        return hll_dense_raise(value->data, place);
    }
    splice(value, walk.here.at, run.bytes, pieces, size);
    join_neighbours(value, walk.before.at);
    hll_forget_count(value->data);
    return true;
}

static const struct place_in_runs first_run = {HLL_HEADER_BYTES, 0};

bool hll_raise(struct buffer *value, struct hll_place place, size_t sparse_limit_bytes)
{
    struct place_in_runs from = first_run;

    return is_dense(value->data) ? hll_dense_raise(value->data, place)
                                 : sparse_raise(value, &from, place, sparse_limit_bytes);
}

/* --- many registers --- */

static void add_dense(struct hll_registers *registers, const char *value)
{
    for (uint32_t index = 0; index < HLL_REGISTER_COUNT; index += 8) {
        uint64_t word = dense_load_8(value, index);
        uint8_t *ranks = registers->ranks + index;

        for (unsigned i = 0; i < 8; i++) {
            uint8_t rank = word >> 6 * i & 63;

            ranks[i] = MAX(ranks[i], rank);
        }
    }
}

void hll_registers_add(struct hll_registers *registers, struct slice value)
{
    uint32_t index = 0;
    struct run run;

    if (is_dense(value.data)) {
        add_dense(registers, value.data);
        return;
    }
    for (size_t at = HLL_HEADER_BYTES; at < value.size && run_read(value, at, &run); at += run.bytes) {
        assert(run.count <= HLL_REGISTER_COUNT - index);
        for (uint32_t i = 0; i < run.count && run.rank != 0; i++)
            registers->ranks[index + i] = MAX(registers->ranks[index + i], (uint8_t)run.rank);
        index += run.count;
    }
}

void hll_raise_all(struct buffer *value, const struct hll_registers *registers, size_t sparse_limit_bytes)
{
    struct place_in_runs from = first_run;

    for (uint32_t index = 0; index < HLL_REGISTER_COUNT; index++) {
        struct hll_place place = {index, registers->ranks[index]};

        if (place.rank == 0)
            continue;
        if (is_dense(value->data))
            (void)hll_dense_raise(value->data, place);
        else
            (void)sparse_raise(value, &from, place, sparse_limit_bytes);
    }
}

/* --- the estimate --- */

/* Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017): the improved raw estimator,
 * which needs no table of corrections. How many registers have which rank is all it looks at. */
struct rank_counts {
    uint32_t of[64];
};

/* x + the sum of x^(2^k) * 2^(k-1) for k = 1, 2, ... */
static double series_of_empty(double x)
{
    double weight = 1, sum = x, before;

    if (x == 1)
        return INFINITY;
    do {
        before = sum;
        x *= x;
        sum += x * weight;
        weight += weight;
    } while (sum != before);
    return sum;
}

/* (1 - x - the sum of (1 - x^(2^-k))^2 * 2^-k for k = 1, 2, ...) / 3 */
static double series_of_full(double x)
{
    double weight = 1, sum = 1 - x, before;

    if (x == 0 || x == 1)
        return 0;
    do {
        before = sum;
        x = sqrt(x);
        weight *= 0.5;
        sum -= (1 - x) * (1 - x) * weight;
    } while (sum != before);
    return sum / 3;
}

static uint64_t estimate(const struct rank_counts *counts)
{
    const double registers = HLL_REGISTER_COUNT, half_by_log_2 = 0.721347520444481703680;
    double sum = registers * series_of_full((registers - counts->of[HLL_RANK_MOST]) / registers), result;

    for (unsigned rank = HLL_RANK_MOST - 1; rank >= 1; rank--)
        sum = 0.5 * (sum + counts->of[rank]);
    sum += registers * series_of_empty(counts->of[0] / registers);
    result = half_by_log_2 * registers * registers / sum;
    /* Ranks that no hash has (a stranger's) may leave nothing to divide by. */
    return result < 0x1p63 ? (uint64_t)llround(result) : INT64_MAX;
}

uint64_t hll_registers_estimate(const struct hll_registers *registers)
{
    struct rank_counts counts = {{0}};
    uint32_t other[64] = {0}; /* as in count_dense */

    for (uint32_t index = 0; index < HLL_REGISTER_COUNT; index += 8) {
        const uint8_t *ranks = registers->ranks + index;
        uint64_t word;

        memcpy(&word, ranks, sizeof(word));
        if (word == 0) {
            counts.of[0] += 8;
            continue;
        }
        for (unsigned i = 0; i < 8; i += 2) {
            counts.of[ranks[i] & 63]++;
            other[ranks[i + 1] & 63]++;
        }
    }
    for (unsigned rank = 0; rank < countof(other); rank++)
        counts.of[rank] += other[rank];
    return estimate(&counts);
}

static void count_dense(struct rank_counts *counts, const char *value)
{
    uint32_t other[64] = {0}; /* equal neighbours would wait for each other's sum */

    for (uint32_t index = 0; index < HLL_REGISTER_COUNT; index += 8) {
        uint64_t word = dense_load_8(value, index);

        for (unsigned i = 0; i < 8; i += 2) {
            counts->of[word >> 6 * i & 63]++;
            other[word >> 6 * (i + 1) & 63]++;
        }
    }
    for (unsigned rank = 0; rank < countof(other); rank++)
        counts->of[rank] += other[rank];
}

uint64_t hll_estimate(struct slice value)
{
    struct rank_counts counts = {{0}};
    struct run run;

    if (is_dense(value.data)) {
        count_dense(&counts, value.data);
    } else {
        for (size_t at = HLL_HEADER_BYTES; at < value.size && run_read(value, at, &run); at += run.bytes)
            counts.of[run.rank] += run.count;
    }
    return estimate(&counts);
}

void hll_describe_runs(struct slice value, struct buffer *text)
{
    struct run run;

    for (size_t at = HLL_HEADER_BYTES; at < value.size && run_read(value, at, &run); at += run.bytes) {
        if (at != HLL_HEADER_BYTES)
            buffer_append_char(text, ' ');
        if (run.rank != 0)
            buffer_printf(text, "v:%u,%u", run.rank, run.count);
        else
            buffer_printf(text, "%c:%u", run.bytes == 2 ? 'Z' : 'z', run.count);
    }
}
