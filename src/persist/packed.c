#include "persist/packed.h"

#include "base/assert.h"
#include "data/listpack.h"

/* Ziplist: total bytes u32 | offset of the last entry u32 | count u16 (65535: walk) | entries | 255
 *     entry = size of the entry before (1 byte, or 254 and u32) | encoding | data
 * Zipmap:  count u8 (254 and more: walk) | pairs | 255
 *     pair = field size | field | value size | unused u8 | value | unused bytes; a size is 1 byte, or 254 and u32 */
enum { END = 255, WIDE = 254, ZIPLIST_HEAD_BYTES = 10, COUNT_UNKNOWN = 65535, ZIPMAP_COUNT_UNKNOWN = 254 };

struct item {          /* a text, and its place */
    struct slice text; /* data NULL: a number */
    int64_t number;
    size_t whole; /* bytes up to the next one */
};

static uint64_t little(const uint8_t *from, unsigned bytes)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < bytes; i++)
        number |= (uint64_t)from[i] << (8 * i);
    return number;
}

/* The size in front of an item: 1 byte, or 254 and four; returns how many it takes, 0: damaged. */
static size_t read_size(const uint8_t *from, size_t room, uint64_t *size)
{
    if (room >= 1 && from[0] < WIDE) {
        *size = from[0];
        return 1;
    }
    if (room < 5 || from[0] != WIDE)
        return 0;
    *size = little(from + 1, 4);
    return 5;
}

/* ---------------------------------------------------------------------------------------------------- ziplist -- */

static bool ziplist_number(const uint8_t *from, size_t room, unsigned bytes, size_t head, struct item *item)
{
    uint64_t bits;

    if (room < 1 + bytes)
        return false;
    bits = little(from + 1, bytes);
    item->text = SLICE_EMPTY;
    item->number = (int64_t)(bits << (64 - 8 * bytes)) >> (64 - 8 * bytes);
    item->whole = head + 1 + bytes;
    return true;
}

static bool ziplist_text(const uint8_t *from, size_t room, size_t encoding, uint64_t size, size_t head,
                         struct item *item)
{
    if (room < encoding || size > room - encoding)
        return false;
    item->text = slice_make(from + encoding, size);
    item->whole = head + encoding + size;
    return true;
}

static uint64_t big(const uint8_t *from, unsigned bytes)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < bytes; i++)
        number = number << 8 | from[i];
    return number;
}

/* The entry at `from`, with `room` bytes; *before: the stored size of the previous entry. */
static bool ziplist_item(const uint8_t *from, size_t room, struct item *item, uint64_t *before)
{
    size_t head = read_size(from, room, before);

    if (head == 0 || room == head)
        return false;
    from += head;
    room -= head;
    switch (from[0] >> 6) {
    case 0:
        return ziplist_text(from, room, 1, from[0] & 63, head, item);
    case 1:
        return room >= 2 && ziplist_text(from, room, 2, (uint64_t)(from[0] & 63) << 8 | from[1], head, item);
    case 2:
        return from[0] == 0x80 && room >= 5 && ziplist_text(from, room, 5, big(from + 1, 4), head, item);
    default:
        break;
    }
    switch (from[0]) {
    case 0xc0:
        return ziplist_number(from, room, 2, head, item);
    case 0xd0:
        return ziplist_number(from, room, 4, head, item);
    case 0xe0:
        return ziplist_number(from, room, 8, head, item);
    case 0xf0:
        return ziplist_number(from, room, 3, head, item);
    case 0xfe:
        return ziplist_number(from, room, 1, head, item);
    default:
        break;
    }
    if (from[0] < 0xf1 || from[0] > 0xfd)
        return false;
    *item = (struct item){SLICE_EMPTY, (from[0] & 15) - 1, head + 1};
    return true;
}

static bool ziplist_check(struct packed *packed)
{
    const uint8_t *bytes = (const uint8_t *)packed->bytes.data;
    size_t size = packed->bytes.size, at = ZIPLIST_HEAD_BYTES, last = ZIPLIST_HEAD_BYTES;
    uint64_t whole = 0, before, count;
    struct item item;

    if (size < ZIPLIST_HEAD_BYTES + 1 || little(bytes, 4) != size || bytes[size - 1] != END)
        return false;
    while (at < size - 1) {
        if (!ziplist_item(bytes + at, size - 1 - at, &item, &before) || before != whole)
            return false;
        whole = item.whole;
        last = at;
        at += whole;
        packed->count++;
    }
    count = little(bytes + 8, 2);
    return little(bytes + 4, 4) == last && (count == COUNT_UNKNOWN || count == packed->count);
}

/* ----------------------------------------------------------------------------------------------------- zipmap -- */

/* A field, or a value followed by unused bytes. */
static bool zipmap_item(const uint8_t *from, size_t room, bool is_value, struct item *item)
{
    uint64_t size, unused = 0;
    size_t head = read_size(from, room, &size);

    if (head == 0)
        return false;
    if (is_value) {
        if (room == head)
            return false;
        unused = from[head];
        head++;
    }
    if (size > room - head || unused > room - head - size)
        return false;
    item->text = slice_make(from + head, size);
    item->whole = head + size + unused;
    return true;
}

static bool zipmap_check(struct packed *packed)
{
    const uint8_t *bytes = (const uint8_t *)packed->bytes.data;
    size_t size = packed->bytes.size, at = 1;
    struct item item;

    if (size < 2 || bytes[size - 1] != END)
        return false;
    while (at < size - 1) {
        if (!zipmap_item(bytes + at, size - 1 - at, packed->count % 2 != 0, &item))
            return false;
        at += item.whole;
        packed->count++;
    }
    return packed->count % 2 == 0 && (bytes[0] >= ZIPMAP_COUNT_UNKNOWN || bytes[0] == packed->count / 2);
}

/* -------------------------------------------------------------------------------------------------------- all -- */

static const struct listpack *as_listpack(const struct packed *packed)
{
    return (const struct listpack *)packed->bytes.data; /* only bytes: nothing is aligned in there */
}

bool packed_open(struct packed *packed, enum packed_kind kind, struct slice bytes)
{
    *packed = (struct packed){.kind = kind, .bytes = bytes};
    switch (kind) {
    case PACKED_LISTPACK:
        if (!listpack_check(bytes))
            return false;
        packed->count = listpack_count(as_listpack(packed));
        break;
    case PACKED_ZIPLIST:
        if (!ziplist_check(packed))
            return false;
        break;
    case PACKED_ZIPMAP:
        if (!zipmap_check(packed))
            return false;
        break;
    }
    packed_rewind(packed);
    return true;
}

void packed_rewind(struct packed *packed)
{
    assert(packed->bytes.data != NULL);
    packed->left = packed->count;
    packed->at = packed->kind == PACKED_ZIPLIST ? ZIPLIST_HEAD_BYTES : 1;
    if (packed->kind == PACKED_LISTPACK)
        packed->at = listpack_first(as_listpack(packed));
}

static struct item item_at(const struct packed *packed)
{
    const uint8_t *from = (const uint8_t *)packed->bytes.data + packed->at;
    size_t room = packed->bytes.size - 1 - packed->at;
    struct item item = {SLICE_EMPTY, 0, 0};
    uint64_t before;
    bool good;

    if (packed->kind == PACKED_ZIPLIST)
        good = ziplist_item(from, room, &item, &before);
    else
        good = zipmap_item(from, room, packed->left % 2 != 0, &item);
    assert(good); /* packed_open has seen it */
    return item;
}

struct slice packed_next(struct packed *packed)
{
    char *digits = packed->digits[packed->left % 2];
    struct item item;

    assert(packed->left != 0);
    if (packed->kind == PACKED_LISTPACK) {
        struct slice text = listpack_text(as_listpack(packed), (listpack_at)packed->at, digits);

        packed->at = listpack_next(as_listpack(packed), (listpack_at)packed->at);
        packed->left--;
        return text;
    }
    item = item_at(packed);
    packed->at += item.whole;
    packed->left--;
    if (item.text.data != NULL)
        return item.text;
    return slice_make(digits, number_format_i64(digits, item.number));
}
