#include "data/listpack.h"

#include "base/assert.h"
#include "base/mem.h"

enum {
    END = 0xFF,
    HEAD_MOST = 9, /* bytes of an element before a string's own */
    BACK_MOST = 5,
    SHORT_TEXT_MOST = 63,
    MIDDLE_TEXT_MOST = 4095,
    EMPTY_BYTES = LISTPACK_HEAD_BYTES + 1,
    ROOM_FROM_BYTES = 256, /* a shorter listpack is moved as fast as it gets room in front */
};

/* An element in its stored form: some bytes in front, then the text. */
struct encoded {
    uint8_t head[HEAD_MOST];
    uint32_t head_size;
    struct slice text;
    uint32_t size;      /* of both; the value of the backward size */
    uint32_t back_size; /* of that */
};

/* ------------------------------------------------------------------------------------------------------- bytes -- */

static const uint8_t *bytes_of(const struct listpack *list)
{
    return (const uint8_t *)list;
}

static uint32_t load_u32(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static void store_u32(uint8_t *to, uint32_t number)
{
    for (unsigned i = 0; i < 4; i++)
        to[i] = (uint8_t)(number >> (8 * i));
}

static uint32_t stored_count(const struct listpack *list)
{
    return (uint32_t)(bytes_of(list)[4] | bytes_of(list)[5] << 8);
}

static void set_head(struct listpack *list, uint32_t bytes, uint32_t count)
{
    uint8_t *to = (uint8_t *)list;

    count = MIN(count, (uint32_t)LISTPACK_COUNT_UNKNOWN);
    store_u32(to, bytes);
    to[4] = (uint8_t)count;
    to[5] = (uint8_t)(count >> 8);
}

static uint32_t back_size_of(uint32_t size)
{
    return size <= 127 ? 1 : size < 16383 ? 2 : size < 2097151 ? 3 : size < 268435455 ? 4 : 5;
}

static void put_back_size(uint8_t *to, uint32_t size, uint32_t back_size)
{
    to[0] = (uint8_t)(size >> (7 * (back_size - 1)));
    for (uint32_t i = 1; i < back_size; i++)
        to[i] = (uint8_t)((size >> (7 * (back_size - 1 - i)) & 127) | 128);
}

/* The size that ends before `end`; *back_size tells how many bytes it took. */
static uint32_t read_back_size(const uint8_t *end, uint32_t *back_size)
{
    uint32_t size = 0, bytes = 0;

    do {
        size |= (uint32_t)(*--end & 127) << (7 * bytes);
        bytes++;
    } while ((*end & 128) != 0 && bytes < BACK_MOST);
    *back_size = bytes;
    return size;
}

/* How long encoding and data are, from the encoding's first bytes. */
static inline uint32_t element_size(const uint8_t *at)
{
    static const uint8_t number_sizes[] = {[0xF1 & 15] = 3, [0xF2 & 15] = 4, [0xF3 & 15] = 5, [0xF4 & 15] = 9};
    uint8_t head = at[0];

    if (head < 0x80)
        return 1;
    if (head < 0xC0)
        return 1 + (head & 63u);
    if (head < 0xE0)
        return 2;
    if (head < 0xF0)
        return 2 + ((uint32_t)(head & 15) << 8 | at[1]);
    if (head == 0xF0)
        return 5 + load_u32(at + 1);
    return number_sizes[head & 15];
}

static inline uint32_t element_whole(const uint8_t *at)
{
    uint32_t size = element_size(at);

    return size + back_size_of(size);
}

/* How long the element with this first byte is in all, where that alone tells it: numbers below 128 and texts below 64
 * bytes, so most elements. 0: the next bytes tell, or it is the end. */
#define EIGHT_FROM(n) (n), (n) + 1, (n) + 2, (n) + 3, (n) + 4, (n) + 5, (n) + 6, (n) + 7
#define SIXTEEN_OF_2 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2
static const uint8_t short_wholes[256] = {SIXTEEN_OF_2,   SIXTEEN_OF_2,   SIXTEEN_OF_2,   SIXTEEN_OF_2,
                                          SIXTEEN_OF_2,   SIXTEEN_OF_2,   SIXTEEN_OF_2,   SIXTEEN_OF_2,
                                          EIGHT_FROM(2),  EIGHT_FROM(10), EIGHT_FROM(18), EIGHT_FROM(26),
                                          EIGHT_FROM(34), EIGHT_FROM(42), EIGHT_FROM(50), EIGHT_FROM(58)};

static inline const uint8_t *behind(const uint8_t *at)
{
    const uint32_t whole = short_wholes[*at];

    return at + (LIKELY(whole != 0) ? whole : element_whole(at));
}

/* The same, but the end stays where it is. */
static inline const uint8_t *behind_or_end(const uint8_t *at)
{
    const uint32_t whole = short_wholes[*at];

    if (LIKELY(whole != 0))
        return at + whole;
    return *at == END ? at : at + element_whole(at);
}

static int64_t load_signed(const uint8_t *from, unsigned bytes)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < bytes; i++)
        number |= (uint64_t)from[i] << (8 * i);
    return (int64_t)(number << (64 - 8 * bytes)) >> (64 - 8 * bytes);
}

static inline struct listpack_value decode(const uint8_t *at)
{
    uint8_t head = at[0];

    if (head < 0x80)
        return (struct listpack_value){.number = head};
    if (head < 0xC0)
        return (struct listpack_value){.text = slice_make((const char *)at + 1, head & 63u)};
    if (head < 0xE0)
        return (struct listpack_value){.number = (int64_t)((uint64_t)((head & 31u) << 8 | at[1]) << 51) >> 51};
    if (head < 0xF0)
        return (struct listpack_value){.text = slice_make((const char *)at + 2, (size_t)(head & 15) << 8 | at[1])};
    if (head == 0xF0)
        return (struct listpack_value){.text = slice_make((const char *)at + 5, load_u32(at + 1))};
    return (struct listpack_value){.number = load_signed(at + 1, element_size(at) - 1)};
}

static void encode_number(struct encoded *element, int64_t number)
{
    unsigned bytes = 0;

    if (number >= 0 && number <= 127) {
        element->head[0] = (uint8_t)number;
    } else if (number >= -4096 && number <= 4095) {
        element->head[0] = (uint8_t)(0xC0 | ((uint64_t)number >> 8 & 31));
        element->head[1] = (uint8_t)number;
        bytes = 1;
    } else {
        bytes = number >= INT16_MIN && number <= INT16_MAX   ? 2
                : number >= -(1 << 23) && number < 1 << 23   ? 3
                : number >= INT32_MIN && number <= INT32_MAX ? 4
                                                             : 8;
        element->head[0] = (uint8_t)(bytes == 8 ? 0xF4 : 0xEF + bytes);
        for (unsigned i = 0; i < bytes; i++)
            element->head[1 + i] = (uint8_t)((uint64_t)number >> (8 * i));
    }
    element->head_size = 1 + bytes;
    element->text = slice_make(NULL, 0);
    element->size = element->head_size;
    element->back_size = 1;
}

static void encode_text(struct encoded *element, struct slice text)
{
    int64_t number;

    if (text.size != 0 && text.size < NUMBER_I64_SPACE && text.data[0] <= '9' && number_parse_i64(text, &number)) {
        encode_number(element, number);
        return;
    }
    if (text.size <= SHORT_TEXT_MOST) {
        element->head[0] = (uint8_t)(0x80 | text.size);
        element->head_size = 1;
    } else if (text.size <= MIDDLE_TEXT_MOST) {
        element->head[0] = (uint8_t)(0xE0 | text.size >> 8);
        element->head[1] = (uint8_t)text.size;
        element->head_size = 2;
    } else {
        element->head[0] = 0xF0;
        store_u32(element->head + 1, (uint32_t)text.size);
        element->head_size = 5;
    }
    element->text = text;
    element->size = element->head_size + (uint32_t)text.size;
    element->back_size = back_size_of(element->size);
}

static void put_element(uint8_t *to, const struct encoded *element)
{
    memcpy(to, element->head, element->head_size);
    if (element->text.size != 0)
        memcpy(to + element->head_size, element->text.data, element->text.size);
    put_back_size(to + element->size, element->size, element->back_size);
}

/* ------------------------------------------------------------------------------------------------------- whole -- */

struct listpack *listpack_create(void)
{
    struct listpack *list = mem_alloc(EMPTY_BYTES);

    set_head(list, EMPTY_BYTES, 0);
    ((uint8_t *)list)[EMPTY_BYTES - 1] = END;
    return list;
}

struct listpack *listpack_copy(const struct listpack *list)
{
    return listpack_from_bytes(listpack_as_bytes(list));
}

struct listpack *listpack_from_bytes(struct slice bytes)
{
    struct listpack *list = mem_alloc(bytes.size);

    memcpy(list, bytes.data, bytes.size);
    return list;
}

void listpack_destroy(struct listpack **list)
{
    mem_free(*list);
    *list = NULL;
}

uint32_t listpack_count(const struct listpack *list)
{
    uint32_t count = stored_count(list);

    if (LIKELY(count != LISTPACK_COUNT_UNKNOWN))
        return count;
    count = 0;
    for (listpack_at at = listpack_first(list); at != LISTPACK_NONE; at = listpack_next(list, at))
        count++;
    return count;
}

bool listpack_fits(const struct listpack *list, uint64_t text_bytes, uint64_t element_count)
{
    return listpack_bytes(list) + text_bytes + element_count * (HEAD_MOST + BACK_MOST) <= LISTPACK_MOST_BYTES;
}

/* ----------------------------------------------------------------------------------------------------- walking -- */

listpack_at listpack_first(const struct listpack *list)
{
    return bytes_of(list)[LISTPACK_HEAD_BYTES] != END ? LISTPACK_HEAD_BYTES : LISTPACK_NONE;
}

listpack_at listpack_last(const struct listpack *list)
{
    uint32_t end = listpack_bytes(list) - 1;

    return end != LISTPACK_HEAD_BYTES ? listpack_previous(list, end) : LISTPACK_NONE;
}

listpack_at listpack_next(const struct listpack *list, listpack_at at)
{
    const uint8_t *next = behind(bytes_of(list) + at);

    return *next != END ? (listpack_at)(next - bytes_of(list)) : LISTPACK_NONE;
}

listpack_at listpack_get_next(const struct listpack *list, listpack_at at, struct listpack_value *value)
{
    const uint8_t *next = behind(bytes_of(list) + at);

    if (UNLIKELY(*next == END))
        return LISTPACK_NONE;
    *value = decode(next);
    return (listpack_at)(next - bytes_of(list));
}

/* Also of the end's offset. */
listpack_at listpack_previous(const struct listpack *list, listpack_at at)
{
    uint32_t back_size, size;

    if (at == LISTPACK_HEAD_BYTES)
        return LISTPACK_NONE;
    size = read_back_size(bytes_of(list) + at, &back_size);
    return at - back_size - size;
}

listpack_at listpack_seek(const struct listpack *list, int64_t index)
{
    uint32_t count = stored_count(list);
    listpack_at at;

    if (count != LISTPACK_COUNT_UNKNOWN) {
        if (index >= (int64_t)count || index < -(int64_t)count)
            return LISTPACK_NONE;
        if (index >= 0 && index > count / 2)
            index -= count; /* from the nearer end */
        else if (index < 0 && -index > count / 2)
            index += count;
    }
    at = index < 0 ? listpack_last(list) : listpack_first(list);
    for (; index > 0 && at != LISTPACK_NONE; index--)
        at = listpack_next(list, at);
    for (; index < -1 && at != LISTPACK_NONE; index++)
        at = listpack_previous(list, at);
    return at;
}

/* ----------------------------------------------------------------------------------------------------- reading -- */

struct listpack_value listpack_get(const struct listpack *list, listpack_at at)
{
    return decode(bytes_of(list) + at);
}

struct slice listpack_text(const struct listpack *list, listpack_at at, char scratch[NUMBER_I64_SPACE])
{
    struct listpack_value value = listpack_get(list, at);

    return listpack_value_text(&value, scratch);
}

/* The text to search for: as a number if it would be stored as one. */
struct wanted {
    struct slice text;
    int64_t number;
    bool is_number;
};

static struct wanted wanted_make(struct slice text)
{
    struct wanted wanted = {.text = text};

    wanted.is_number = text.size != 0 && text.size < NUMBER_I64_SPACE && text.data[0] <= '9' &&
                       number_parse_i64(text, &wanted.number);
    return wanted;
}

static inline bool is_wanted(const uint8_t *at, const struct wanted *wanted)
{
    struct listpack_value value = decode(at);

    if (value.text.data == NULL)
        return wanted->is_number && value.number == wanted->number;
    /* Bytes from outside may hold a number as text. */
    return slice_equal(value.text, wanted->text);
}

bool listpack_equals(const struct listpack *list, listpack_at at, struct slice text)
{
    const struct wanted wanted = wanted_make(text);

    return is_wanted(bytes_of(list) + at, &wanted);
}

/* A text of 1 to 63 bytes that is no number: first byte and last one differ in most others. NULL: it is not there. */
static ALWAYS_INLINE const uint8_t *find_short(const uint8_t *here, const struct wanted *wanted, unsigned skip)
{
    const struct slice text = wanted->text;
    const uint8_t head = (uint8_t)(0x80 | text.size), last = (uint8_t)text.data[text.size - 1];

    for (;;) {
        if (*here == head) {
            if (here[text.size] == last && memcmp(here + 1, text.data, text.size) == 0)
                return here;
        } else if (UNLIKELY(*here >= 0xC0)) {
            if (*here == END)
                return NULL;
            if (is_wanted(here, wanted))
                return here;
        }
        here = behind_or_end(here);
        for (unsigned i = 0; i < skip; i++)
            here = behind_or_end(here);
    }
}

static const uint8_t *find_any(const uint8_t *here, const struct wanted *wanted, unsigned skip)
{
    while (*here != END) {
        if (is_wanted(here, wanted))
            return here;
        for (unsigned i = 0; i <= skip && *here != END; i++)
            here = behind(here);
    }
    return NULL;
}

listpack_at listpack_find(const struct listpack *list, listpack_at at, struct slice text, unsigned skip)
{
    const struct wanted wanted = wanted_make(text);
    const uint8_t *start = bytes_of(list), *found;

    if (at == LISTPACK_NONE)
        return LISTPACK_NONE;
    if (!wanted.is_number && text.size != 0 && text.size < 64)
        found = skip == 1 ? find_short(start + at, &wanted, 1) : find_short(start + at, &wanted, skip);
    else
        found = find_any(start + at, &wanted, skip);
    return found != NULL ? (listpack_at)(found - start) : LISTPACK_NONE;
}

/* ---------------------------------------------------------------------------------------------------- changing -- */

/* Gives back most of a block of which less than half is needed. The listpack begins it. */
static void shrink_to(struct listpack **list, uint64_t bytes)
{
    if (mem_usable(*list) > 2 * mem_good_size(bytes))
        *list = mem_realloc(*list, bytes);
}

/* Replaces [at, at + old_size) by room for new_size bytes, and counts. The block is changed only when its size class
 * does. */
static uint8_t *splice(struct listpack **list, uint32_t at, uint32_t old_size, uint32_t new_size, int64_t more)
{
    uint32_t bytes = listpack_bytes(*list), count = stored_count(*list);
    uint64_t wanted = (uint64_t)bytes - old_size + new_size;
    uint8_t *start;

    assert(wanted <= LISTPACK_MOST_BYTES);
    if (new_size > old_size && wanted > mem_usable(*list))
        *list = mem_realloc(*list, wanted);
    start = (uint8_t *)*list;
    memmove(start + at + new_size, start + at + old_size, bytes - at - old_size);
    if (new_size < old_size) {
        shrink_to(list, wanted);
        start = (uint8_t *)*list;
    }
    if (count != LISTPACK_COUNT_UNKNOWN)
        count = (uint32_t)(count + more);
    set_head(*list, (uint32_t)wanted, count);
    return start + at;
}

static listpack_at insert_element(struct listpack **list, listpack_at at, const struct encoded *element)
{
    if (at == LISTPACK_NONE)
        at = listpack_bytes(*list) - 1;
    put_element(splice(list, at, 0, element->size + element->back_size, 1), element);
    return at;
}

listpack_at listpack_insert(struct listpack **list, listpack_at at, struct slice text)
{
    struct encoded element;

    debug_assert((const uint8_t *)text.data >= bytes_of(*list) + listpack_bytes(*list) ||
                 (const uint8_t *)text.data + text.size <= bytes_of(*list));
    encode_text(&element, text);
    return insert_element(list, at, &element);
}

listpack_at listpack_insert_int(struct listpack **list, listpack_at at, int64_t number)
{
    struct encoded element;

    encode_number(&element, number);
    return insert_element(list, at, &element);
}

static void replace_element(struct listpack **list, listpack_at at, const struct encoded *element)
{
    const uint32_t old_size = element_whole(bytes_of(*list) + at), new_size = element->size + element->back_size;
    uint8_t *to = (uint8_t *)*list + at;

    if (new_size != old_size)
        to = splice(list, at, old_size, new_size, 0);
    put_element(to, element);
}

void listpack_replace(struct listpack **list, listpack_at at, struct slice text)
{
    struct encoded element;

    encode_text(&element, text);
    replace_element(list, at, &element);
}

void listpack_replace_int(struct listpack **list, listpack_at at, int64_t number)
{
    struct encoded element;

    encode_number(&element, number);
    replace_element(list, at, &element);
}

listpack_at listpack_remove(struct listpack **list, listpack_at at, uint32_t count)
{
    const uint8_t *start = bytes_of(*list);
    uint32_t end = at, removed = 0;

    for (; removed < count && start[end] != END; removed++)
        end += element_whole(start + end);
    if (removed == 0)
        return LISTPACK_NONE;
    (void)splice(list, at, end - at, 0, -(int64_t)removed);
    return bytes_of(*list)[at] != END ? at : LISTPACK_NONE;
}

void listpack_clear(struct listpack **list)
{
    listpack_destroy(list);
    *list = listpack_create();
}

void listpack_append_list(struct listpack **list, const struct listpack *other, listpack_at at)
{
    uint32_t size, count = 0, other_count = stored_count(other);
    uint8_t *to;

    if (at == LISTPACK_NONE)
        return;
    size = listpack_bytes(other) - 1 - at;
    if (at == LISTPACK_HEAD_BYTES && other_count != LISTPACK_COUNT_UNKNOWN)
        count = other_count;
    else
        for (listpack_at from = at; from != LISTPACK_NONE; from = listpack_next(other, from))
            count++;
    to = splice(list, listpack_bytes(*list) - 1, 0, size, count);
    memcpy(to, bytes_of(other) + at, size);
}

/* ---------------------------------------------------------------------------------------------- room in front -- */

static char *block_of(const struct listpack *list, uint32_t room)
{
    return listpack_block(list, room);
}

void listpack_close_room(struct listpack **list, uint32_t *room)
{
    if (*room == 0)
        return;
    *list = memmove(block_of(*list, *room), *list, listpack_bytes(*list));
    *room = 0;
}

/* Moves the listpack to the end of its block, or of a larger one. So the block is of the size class that it would have
 * without room. False: there is less room, as the listpack is so short that it is better moved each time. */
static NOINLINE bool make_room(struct listpack **list, uint32_t *room, uint32_t least_bytes)
{
    const uint32_t bytes = listpack_bytes(*list);
    char *block = block_of(*list, *room), *larger;
    size_t size = mem_usable(block);

    assert((uint64_t)bytes + least_bytes <= LISTPACK_MOST_BYTES);
    if (bytes < ROOM_FROM_BYTES)
        return false;
    if (size >= (size_t)bytes + least_bytes) {
        *list = memmove(block + size - bytes, *list, bytes);
    } else {
        size = mem_good_size((size_t)bytes + least_bytes);
        larger = mem_alloc(size);
        *list = memcpy(larger + size - bytes, *list, bytes);
        mem_free(block);
    }
    *room = (uint32_t)(size - bytes);
    return true;
}

/* The count with so many more elements, as the head has it. */
static uint32_t count_with(const struct listpack *list, int more)
{
    const uint32_t count = stored_count(list);

    return count == LISTPACK_COUNT_UNKNOWN ? count : (uint32_t)((int)count + more);
}

/* The listpack begins so many bytes later than before, or earlier, and has an element less, or more. */
static void move_start(struct listpack **list, uint32_t *room, int64_t later_bytes, int more)
{
    const uint32_t bytes = (uint32_t)(listpack_bytes(*list) - later_bytes), count = count_with(*list, more);

    *list = (struct listpack *)((uint8_t *)*list + later_bytes);
    *room = (uint32_t)(*room + later_bytes);
    set_head(*list, bytes, count);
}

/* The listpack ends there, and has an element less or more. */
static void set_end(struct listpack *list, uint32_t end, int more)
{
    ((uint8_t *)list)[end] = END;
    set_head(list, end + 1, count_with(list, more));
}

void listpack_push_first(struct listpack **list, uint32_t *room, struct slice text)
{
    struct encoded element;
    uint32_t whole;

    encode_text(&element, text);
    whole = element.size + element.back_size;
    if (UNLIKELY(*room < whole) && !make_room(list, room, whole)) {
        listpack_close_room(list, room);
        (void)insert_element(list, LISTPACK_HEAD_BYTES, &element);
        return;
    }
    move_start(list, room, -(int64_t)whole, 1);
    put_element((uint8_t *)*list + LISTPACK_HEAD_BYTES, &element);
}

void listpack_push_last(struct listpack **list, uint32_t *room, struct slice text)
{
    const uint32_t end = listpack_bytes(*list) - 1;
    struct encoded element;
    uint64_t wanted;

    encode_text(&element, text);
    wanted = (uint64_t)*room + end + element.size + element.back_size + 1;
    if (LIKELY(*room == 0) || wanted > mem_usable(block_of(*list, *room))) {
        listpack_close_room(list, room);
        (void)insert_element(list, LISTPACK_NONE, &element);
        return;
    }
    put_element((uint8_t *)*list + end, &element);
    set_end(*list, end + element.size + element.back_size, 1);
}

void listpack_drop_first(struct listpack **list, uint32_t *room)
{
    const uint32_t bytes = listpack_bytes(*list);

    assert(bytes > EMPTY_BYTES);
    if (*room == 0 && bytes < ROOM_FROM_BYTES) {
        (void)listpack_remove(list, LISTPACK_HEAD_BYTES, 1);
        return;
    }
    move_start(list, room, element_whole(bytes_of(*list) + LISTPACK_HEAD_BYTES), -1);
    if (UNLIKELY(*room > listpack_bytes(*list))) {
        listpack_close_room(list, room);
        shrink_to(list, listpack_bytes(*list));
    }
}

void listpack_drop_last(struct listpack **list, uint32_t *room)
{
    const listpack_at last = listpack_last(*list);

    assert(last != LISTPACK_NONE);
    set_end(*list, last, -1);
    if (mem_usable(block_of(*list, *room)) > 2 * mem_good_size(last + 1)) {
        listpack_close_room(list, room);
        shrink_to(list, listpack_bytes(*list));
    }
}

/* ------------------------------------------------------------------------------------------------ from outside -- */

/* The element at `at` of `size` bytes (without the end): how long it is in all; 0: it is none. */
static uint64_t check_element(const uint8_t *at, uint64_t size)
{
    uint32_t head_size = at[0] < 0xC0 ? 1 : at[0] < 0xF0 ? 2 : at[0] == 0xF0 ? 5 : 1, back_size, back;
    uint64_t whole;

    if (at[0] > 0xF4 || size < head_size)
        return 0;
    if (at[0] == 0xF0)
        whole = 5 + (uint64_t)load_u32(at + 1);
    else
        whole = element_size(at);
    if (whole > LISTPACK_MOST_BYTES || whole + back_size_of((uint32_t)whole) > size)
        return 0;
    back = read_back_size(at + whole + back_size_of((uint32_t)whole), &back_size);
    if (back != whole || back_size != back_size_of((uint32_t)whole))
        return 0;
    return whole + back_size;
}

bool listpack_check(struct slice bytes)
{
    const uint8_t *start = (const uint8_t *)bytes.data;
    uint64_t at = LISTPACK_HEAD_BYTES, count = 0, stored;

    if (bytes.size < EMPTY_BYTES || bytes.size > LISTPACK_MOST_BYTES || load_u32(start) != bytes.size ||
        start[bytes.size - 1] != END)
        return false;
    while (at < bytes.size - 1) {
        uint64_t whole = check_element(start + at, bytes.size - 1 - at);

        if (whole == 0)
            return false;
        at += whole;
        count++;
    }
    stored = (uint64_t)(start[4] | start[5] << 8);
    return stored == LISTPACK_COUNT_UNKNOWN || stored == count;
}

void listpack_validate(const struct listpack *list)
{
    listpack_validate_with_room(list, 0);
}

void listpack_validate_with_room(const struct listpack *list, uint32_t room)
{
    assert(listpack_check(listpack_as_bytes(list)));
    assert((uint64_t)room + listpack_bytes(list) <= mem_usable(listpack_block(list, room)));
}
