#include "active/uuid.h"

#include "base/assert.h"
#include "base/random.h"
#include "merge/place.h"

static const uint64_t version_mask = UINT64_C(0xf000), version_four = UINT64_C(0x4000); /* in the upper half */
static const uint64_t variant_mask = UINT64_C(3) << 62, variant = UINT64_C(2) << 62;    /* in the lower half */

static int hex_value(char c)
{
    const char lower = slice_lower(c);

    if (lower >= '0' && lower <= '9')
        return lower - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool is_dash(size_t index)
{
    return index == 8 || index == 13 || index == 18 || index == 23;
}

bool uuid_parse(struct slice text, struct uuid *uuid)
{
    struct uuid read = {{0}};
    size_t digits = 0;

    if (text.size != UUID_TEXT_BYTES)
        return false;
    for (size_t i = 0; i < UUID_TEXT_BYTES; i++) {
        const int value = hex_value(text.data[i]);

        if (is_dash(i) ? text.data[i] != '-' : value < 0)
            return false;
        if (is_dash(i))
            continue;
        read.bytes[digits / 2] = (uint8_t)(read.bytes[digits / 2] << 4 | value);
        digits++;
    }
    if (uuid_is_nil(&read))
        return false;
    *uuid = read;
    return true;
}

void uuid_format(const struct uuid *uuid, char out[UUID_TEXT_BYTES + 1])
{
    static const char hex[] = "0123456789abcdef";
    size_t at = 0;

    for (size_t i = 0; i < UUID_BYTES; i++) {
        if (is_dash(at))
            out[at++] = '-';
        out[at++] = hex[uuid->bytes[i] >> 4];
        out[at++] = hex[uuid->bytes[i] & 15];
    }
    assert(at == UUID_TEXT_BYTES);
    out[at] = '\0';
}

bool uuid_is_nil(const struct uuid *uuid)
{
    static const struct uuid nil = {{0}};

    return uuid_equal(uuid, &nil);
}

static uint64_t half_of(const uint8_t *bytes)
{
    uint64_t half;

    memcpy(&half, bytes, sizeof(half));
    return __builtin_bswap64(half);
}

static void set_half(uint8_t *bytes, uint64_t half)
{
    half = __builtin_bswap64(half);
    memcpy(bytes, &half, sizeof(half));
}

bool uuid_id_is_valid(uint64_t id)
{
    return id != 0 && id < MERGE_ORIGIN_FLOOR;
}

static uint64_t random_id(uint64_t bit)
{
    uint64_t id;

    do {
        random_secret(&id, sizeof(id));
        id = (id & ~MERGE_ORIGIN_FOREIGN) | bit;
    } while (!uuid_id_is_valid(id));
    return id;
}

uint64_t uuid_random_id(void)
{
    return random_id(0);
}

uint64_t uuid_random_foreign_id(void)
{
    return random_id(MERGE_ORIGIN_FOREIGN);
}

/* The halves put together. */
static uint64_t joined(const struct uuid *uuid)
{
    return half_of(uuid->bytes) ^ half_of(uuid->bytes + UUID_BYTES / 2);
}

uint64_t uuid_id(const struct uuid *uuid)
{
    uint64_t id = joined(uuid);

    if (uuid_is_ours(uuid))
        return id;
    id |= MERGE_ORIGIN_FOREIGN;
    return uuid_id_is_valid(id) ? id : id ^ (UINT64_C(1) << 32);
}

/* The upper half is the id, mixed (splitmix64), with the version of random UUIDs; the lower half gives the id with it.
 * The two bits that the variant wants in the lower half come from the upper one. */
struct uuid uuid_of_id(uint64_t id)
{
    struct uuid uuid;
    uint64_t upper = id + UINT64_C(0x9e3779b97f4a7c15);

    assert(uuid_id_is_valid(id));
    upper = (upper ^ upper >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    upper = (upper ^ upper >> 27) * UINT64_C(0x94d049bb133111eb);
    upper ^= upper >> 31;
    upper = (upper & ~version_mask) | version_four;
    upper = (upper & ~variant_mask) | ((id & variant_mask) ^ variant);
    set_half(uuid.bytes, upper);
    set_half(uuid.bytes + UUID_BYTES / 2, upper ^ id);
    return uuid;
}

bool uuid_is_ours(const struct uuid *uuid)
{
    const uint64_t id = joined(uuid);
    struct uuid made;

    if (!uuid_id_is_valid(id))
        return false;
    made = uuid_of_id(id);
    return uuid_equal(uuid, &made);
}
