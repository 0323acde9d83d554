/* Long runs are processed in words of 8 bytes, or in vectors; the ends bit by bit or byte by byte. Where the order of
 * bits matters a word is loaded big-endian, so that its highest bit is the first. */
#include "data/bits.h"

#include "base/assert.h"

#include <endian.h>

static inline uint64_t load_word(const char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    return word;
}

/* --- counting --- */

/* Whole bytes. The sums of four words are independent, so a processor counts several at once. */
static ALWAYS_INLINE uint64_t sum_bytes(const char *at, size_t left)
{
    uint64_t sums[4] = {0, 0, 0, 0};

    for (; left >= 32; at += 32, left -= 32) {
        for (unsigned i = 0; i < 4; i++)
            sums[i] += (unsigned)__builtin_popcountll(load_word(at + (size_t)8 * i));
    }
    for (; left >= 8; at += 8, left -= 8)
        sums[0] += (unsigned)__builtin_popcountll(load_word(at));
    for (; left != 0; at++, left--)
        sums[1] += (unsigned)__builtin_popcount((unsigned char)*at);
    return sums[0] + sums[1] + sums[2] + sums[3];
}

#if defined(__x86_64__) && !defined(__POPCNT__)
/* Every processor since 2009 has this instruction, but the compiler may not assume it. */
__attribute__((target("popcnt"))) static uint64_t sum_bytes_popcnt(const char *bytes, size_t size)
{
    return sum_bytes(bytes, size);
}
#endif

static uint64_t count_bytes(const char *bytes, size_t size)
{
#if defined(__x86_64__) && !defined(__POPCNT__)
    if (LIKELY(__builtin_cpu_supports("popcnt")))
        return sum_bytes_popcnt(bytes, size);
#endif
    return sum_bytes(bytes, size);
}

static bool in_string(struct slice bytes, uint64_t first, uint64_t count)
{
    return first <= (uint64_t)bytes.size * 8 && count <= (uint64_t)bytes.size * 8 - first;
}

/* Of a byte's bits `first` ... `first + count - 1`. */
static unsigned byte_mask(unsigned first, unsigned count)
{
    return (0xffU >> first) & (0xff00U >> (first + count));
}

uint64_t bits_count(struct slice bytes, uint64_t first, uint64_t count)
{
    unsigned lead = (unsigned)(first % 8), lead_count = (unsigned)MIN(count, 8U - lead);
    const char *at;
    uint64_t sum;

    assert(in_string(bytes, first, count));
    if (count == 0)
        return 0;
    at = bytes.data + first / 8;
    sum = 0;
    if (lead != 0) {
        sum = (unsigned)__builtin_popcount((unsigned char)*at++ & byte_mask(lead, lead_count));
        count -= lead_count;
    }
    sum += count_bytes(at, count / 8);
    if (count % 8 != 0)
        sum += (unsigned)__builtin_popcount((unsigned char)at[count / 8] & byte_mask(0, (unsigned)(count % 8)));
    return sum;
}

/* --- finding --- */

/* How many of the bytes hold nothing but the other bit. */
static size_t skip_bytes(const char *bytes, size_t size, uint64_t nothing)
{
    size_t at = 0;

    for (; size - at >= 32; at += 32) {
        uint64_t any = 0;

        for (unsigned i = 0; i < 4; i++)
            any |= load_word(bytes + at + (size_t)8 * i) ^ nothing;
        if (any != 0)
            break;
    }
    while (size - at >= 8 && load_word(bytes + at) == nothing)
        at += 8;
    while (at < size && (unsigned char)bytes[at] == (unsigned char)nothing)
        at++;
    return at;
}

/* Where in a byte the first wanted bit among those of the mask is; 8: nowhere. */
static unsigned find_in_byte(unsigned char byte, bool value, unsigned mask)
{
    unsigned wanted = (value ? byte : (unsigned char)~byte) & mask;

    return wanted == 0 ? 8 : (unsigned)__builtin_clz(wanted) - 24;
}

int64_t bits_find(struct slice bytes, bool value, uint64_t first, uint64_t count)
{
    unsigned lead = (unsigned)(first % 8), found;
    uint64_t end = first + count;
    size_t at = (size_t)(first / 8);

    assert(in_string(bytes, first, count));
    if (count == 0)
        return -1;
    if (lead != 0) {
        found = find_in_byte((unsigned char)bytes.data[at], value, byte_mask(lead, (unsigned)MIN(count, 8U - lead)));
        if (found < 8)
            return (int64_t)((uint64_t)at * 8 + found);
        at++;
    }
    if (at < end / 8)
        at += skip_bytes(bytes.data + at, (size_t)(end / 8) - at, value ? 0 : UINT64_MAX);
    if ((uint64_t)at * 8 >= end)
        return -1;
    found = find_in_byte((unsigned char)bytes.data[at], value, at < end / 8 ? 0xff : byte_mask(0, (unsigned)(end % 8)));
    return found < 8 ? (int64_t)((uint64_t)at * 8 + found) : -1;
}

/* --- combining --- */

/* 32 bytes at any address; the compiler uses the processor's instructions. */
typedef uint64_t vector __attribute__((vector_size(32), aligned(1), may_alias));

/* This much of the result stays in the first cache while source after source comes. */
enum { COMBINE_BLOCK_BYTES = 8192 };

#define COMBINE(out, in, size, operator)                                    \
    do {                                                                    \
        size_t at_ = 0;                                                     \
                                                                            \
        for (; (size)-at_ >= sizeof(vector); at_ += sizeof(vector))         \
            *(vector *)((out) + at_) operator*(const vector *)((in) + at_); \
        for (; at_ < (size); at_++)                                         \
            (out)[at_] operator(in)[at_];                                   \
    } while (0)

enum step { STEP_AND, STEP_OR, STEP_XOR, STEP_AND_NOT };

static void combine_block(enum step step, char *out, const char *in, size_t size)
{
    switch (step) {
    case STEP_AND:
        COMBINE(out, in, size, &=);
        break;
    case STEP_OR:
        COMBINE(out, in, size, |=);
        break;
    case STEP_XOR:
        COMBINE(out, in, size, ^=);
        break;
    case STEP_AND_NOT:
        COMBINE(out, in, size, &= ~);
        break;
    }
}

/* The part of a source that is in a block; missing bytes count as zeros. */
static struct slice part_of(struct slice source, size_t at, size_t size)
{
    if (source.size <= at)
        return SLICE_EMPTY;
    return slice_make(source.data + at, MIN(size, source.size - at));
}

static void copy_part(char *out, struct slice part, size_t block)
{
    if (part.size != 0)
        memcpy(out, part.data, part.size);
    memset(out + part.size, 0, block - part.size);
}

static void combine_part(enum step step, char *out, struct slice part, size_t block)
{
    combine_block(step, out, part.data, part.size);
    if (step == STEP_AND)
        memset(out + part.size, 0, block - part.size);
}

/* The sources from `first` on, one after the other. */
static void combine_parts(enum step step, char *out, size_t at, size_t block, const struct slice *sources, size_t count,
                          size_t first)
{
    copy_part(out, part_of(sources[first], at, block), block);
    for (size_t i = first + 1; i < count; i++)
        combine_part(step, out, part_of(sources[i], at, block), block);
}

/* Bits of one source: of any, and not of a second one. */
static void combine_ones(char *out, size_t at, size_t block, const struct slice *sources, size_t count)
{
    char again[COMBINE_BLOCK_BYTES], both[COMBINE_BLOCK_BYTES];

    memset(again, 0, block);
    copy_part(out, part_of(sources[0], at, block), block);
    for (size_t i = 1; i < count; i++) {
        const struct slice part = part_of(sources[i], at, block);

        memcpy(both, out, part.size);
        combine_block(STEP_AND, both, part.data, part.size);
        combine_block(STEP_OR, again, both, part.size);
        combine_block(STEP_OR, out, part.data, part.size);
    }
    combine_block(STEP_AND_NOT, out, again, block);
}

void bits_combine(enum bits_operation operation, char *out, size_t size, const struct slice *sources, size_t count)
{
    assert(count != 0);
    assert(count != 1 || (operation != BITS_DIFF1 && operation != BITS_ANDOR));
    for (size_t at = 0; at < size; at += COMBINE_BLOCK_BYTES) {
        const size_t block = MIN((size_t)COMBINE_BLOCK_BYTES, size - at);

        switch (operation) {
        case BITS_AND:
            combine_parts(STEP_AND, out + at, at, block, sources, count, 0);
            break;
        case BITS_OR:
            combine_parts(STEP_OR, out + at, at, block, sources, count, 0);
            break;
        case BITS_XOR:
            combine_parts(STEP_XOR, out + at, at, block, sources, count, 0);
            break;
        case BITS_DIFF:
            combine_parts(STEP_AND_NOT, out + at, at, block, sources, count, 0);
            break;
        case BITS_DIFF1:
        case BITS_ANDOR:
            combine_parts(STEP_OR, out + at, at, block, sources, count, 1);
            combine_part(operation == BITS_DIFF1 ? STEP_AND_NOT : STEP_AND, out + at, part_of(sources[0], at, block),
                         block);
            break;
        case BITS_ONE:
            combine_ones(out + at, at, block, sources, count);
            break;
        }
    }
}

void bits_invert(char *out, struct slice source)
{
    size_t at = 0;

    for (; source.size - at >= sizeof(vector); at += sizeof(vector))
        *(vector *)(out + at) = ~*(const vector *)(source.data + at);
    for (; at < source.size; at++)
        out[at] = (char)~source.data[at];
}

/* --- shifting --- */

size_t bits_shifted_size(size_t size, int64_t places)
{
    uint64_t distance = places < 0 ? -(uint64_t)places : (uint64_t)places;

    if (places >= 0)
        return size + (size_t)(distance / 8) + (distance % 8 != 0);
    return distance / 8 >= size ? 0 : size - (size_t)(distance / 8);
}

static uint64_t load_little(const char *bytes)
{
    return le64toh(load_word(bytes));
}

static void store_little(char *bytes, uint64_t word)
{
    word = htole64(word);
    memcpy(bytes, &word, sizeof(word));
}

static unsigned byte_or_zero(struct slice bytes, size_t at)
{
    return at < bytes.size ? (unsigned char)bytes.data[at] : 0;
}

static void shift_left(char *out, struct slice source, size_t bytes, unsigned bits)
{
    size_t at = 0;

    memset(out, 0, bytes);
    out += bytes;
    if (bits == 0) {
        if (source.size != 0)
            memcpy(out, source.data, source.size);
        return;
    }
    if (source.size != 0)
        out[at++] = (char)((unsigned char)source.data[0] << bits);
    /* A word takes its low bits from the byte before it. */
    for (; at + 8 <= source.size; at += 8)
        store_little(out + at,
                     load_little(source.data + at) << bits | (unsigned char)source.data[at - 1] >> (8 - bits));
    for (; at <= source.size; at++)
        out[at] = (char)(byte_or_zero(source, at) << bits |
                         (at == 0 ? 0 : (unsigned char)source.data[at - 1] >> (8 - bits)));
}

static void shift_right(char *out, struct slice source, unsigned bits)
{
    size_t at = 0;

    if (bits == 0) {
        memcpy(out, source.data, source.size);
        return;
    }
    for (; at + 9 <= source.size; at += 8)
        store_little(out + at, load_little(source.data + at) >> bits | (uint64_t)(unsigned char)source.data[at + 8]
                                                                           << (64 - bits));
    for (; at < source.size; at++)
        out[at] = (char)(byte_or_zero(source, at) >> bits | byte_or_zero(source, at + 1) << (8 - bits));
}

void bits_shift(char *out, struct slice source, int64_t places)
{
    uint64_t distance = places < 0 ? -(uint64_t)places : (uint64_t)places;

    if (places >= 0)
        shift_left(out, source, (size_t)(distance / 8), (unsigned)(distance % 8));
    else if (distance / 8 < source.size)
        shift_right(out, slice_skip(source, (size_t)(distance / 8)), (unsigned)(distance % 8));
}

/* --- fields --- */

/* A field touches up to 9 bytes: 64 bits that begin at the last bit of the first. */
static unsigned __int128 load_around(struct slice bytes, const struct bits_field *field)
{
    size_t first = (size_t)(field->at / 8), count = (size_t)bits_field_end_byte(field) - first + 1;
    unsigned __int128 around = 0;

    for (size_t i = 0; i < count; i++)
        around = around << 8 | byte_or_zero(bytes, first + i);
    return around;
}

/* How far the field's last bit is from the end of its last byte. */
static unsigned field_shift(const struct bits_field *field)
{
    return (unsigned)(7 - (field->at + field->width - 1) % 8);
}

static uint64_t field_mask(const struct bits_field *field)
{
    return UINT64_MAX >> (64 - field->width);
}

/* The low bits of a word as the field's number. */
static int64_t field_number(const struct bits_field *field, uint64_t word)
{
    unsigned unused = 64U - field->width;

    assert(field->width >= 1 && field->width <= (field->is_signed ? 64 : 63));
    return field->is_signed ? (int64_t)(word << unused) >> unused : (int64_t)(word & field_mask(field));
}

int64_t bits_field_read(struct slice bytes, const struct bits_field *field)
{
    if (field->at / 8 >= bytes.size)
        return 0;
    return field_number(field, (uint64_t)(load_around(bytes, field) >> field_shift(field)));
}

void bits_field_write(char *bytes, const struct bits_field *field, int64_t value)
{
    size_t first = (size_t)(field->at / 8), last = (size_t)bits_field_end_byte(field);
    unsigned __int128 mask = (unsigned __int128)field_mask(field) << field_shift(field);
    unsigned __int128 around = load_around(slice_make(bytes, last + 1), field);

    around = (around & ~mask) | ((unsigned __int128)(uint64_t)value << field_shift(field) & mask);
    for (size_t at = last + 1; at-- > first; around >>= 8)
        bytes[at] = (char)around;
}

/* The exact result, which may be far outside, as the field takes it. */
static bool fit_exact(const struct bits_field *field, enum bits_overflow overflow, __int128 exact, int64_t *result)
{
    int64_t most = (int64_t)(field_mask(field) >> (field->is_signed ? 1 : 0));
    int64_t least = field->is_signed ? -most - 1 : 0;

    if (exact >= least && exact <= most)
        *result = (int64_t)exact;
    else if (overflow == BITS_WRAP)
        *result = field_number(field, (uint64_t)exact);
    else if (overflow == BITS_SATURATE)
        *result = exact < least ? least : most;
    else
        return false;
    return true;
}

bool bits_field_fit(const struct bits_field *field, enum bits_overflow overflow, int64_t value, int64_t *result)
{
    __int128 exact = value;

    if (!field->is_signed)
        exact = (uint64_t)value;
    return fit_exact(field, overflow, exact, result);
}

bool bits_field_add(const struct bits_field *field, enum bits_overflow overflow, int64_t old, int64_t increment,
                    int64_t *result)
{
    return fit_exact(field, overflow, (__int128)old + increment, result);
}
