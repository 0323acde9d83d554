#include "data/intset.h"

#include "base/assert.h"
#include "base/mem.h"

enum { HEAD_BYTES = 8 };

static uint32_t width_of(const struct intset *set)
{
    uint32_t width;

    memcpy(&width, set, sizeof(width));
    return width;
}

static void set_head(struct intset *set, uint32_t width, uint32_t count)
{
    memcpy(set, &width, sizeof(width));
    memcpy((char *)set + 4, &count, sizeof(count));
}

static uint32_t width_for(int64_t number)
{
    return number >= INT16_MIN && number <= INT16_MAX ? 2 : number >= INT32_MIN && number <= INT32_MAX ? 4 : 8;
}

static size_t bytes_for(uint32_t width, uint32_t count)
{
    return HEAD_BYTES + (size_t)width * count;
}

static int64_t load(const struct intset *set, uint32_t width, uint32_t index)
{
    const char *from = (const char *)set + HEAD_BYTES + (size_t)index * width;
    int64_t wide;
    int32_t middle;
    int16_t narrow;

    switch (width) {
    case 2:
        memcpy(&narrow, from, sizeof(narrow));
        return narrow;
    case 4:
        memcpy(&middle, from, sizeof(middle));
        return middle;
    default:
        memcpy(&wide, from, sizeof(wide));
        return wide;
    }
}

static void store(struct intset *set, uint32_t width, uint32_t index, int64_t number)
{
    /* Little-endian: the low bytes come first. */
    memcpy((char *)set + HEAD_BYTES + (size_t)index * width, &number, width);
}

struct intset *intset_create(void)
{
    struct intset *set = mem_alloc(HEAD_BYTES);

    set_head(set, 2, 0);
    return set;
}

struct intset *intset_copy(const struct intset *set)
{
    return intset_from_bytes(intset_as_bytes(set));
}

void intset_destroy(struct intset **set)
{
    mem_free(*set);
    *set = NULL;
}

int64_t intset_at(const struct intset *set, uint32_t index)
{
    assert(index < intset_count(set));
    return load(set, width_of(set), index);
}

/* Where the number is, or would be. */
static bool find(const struct intset *set, int64_t number, uint32_t *index)
{
    uint32_t width = width_of(set), low = 0, high = intset_count(set);

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int64_t here = load(set, width, middle);

        if (here == number) {
            *index = middle;
            return true;
        }
        if (here < number)
            low = middle + 1;
        else
            high = middle;
    }
    *index = low;
    return false;
}

bool intset_has(const struct intset *set, int64_t number)
{
    uint32_t index;

    return find(set, number, &index);
}

/* The new number is beyond all that are there: it goes to one end. */
static void add_wider(struct intset **set, int64_t number, uint32_t width)
{
    uint32_t old_width = width_of(*set), count = intset_count(*set), shift = number < 0;

    *set = mem_realloc(*set, bytes_for(width, count + 1));
    for (uint32_t i = count; i-- > 0;)
        store(*set, width, i + shift, load(*set, old_width, i));
    store(*set, width, shift ? 0 : count, number);
    set_head(*set, width, count + 1);
}

bool intset_add(struct intset **set, int64_t number)
{
    uint32_t width = width_of(*set), count = intset_count(*set), index;
    char *numbers;

    if (width_for(number) > width) {
        add_wider(set, number, width_for(number));
        return true;
    }
    if (find(*set, number, &index))
        return false;
    if (bytes_for(width, count + 1) > mem_usable(*set))
        *set = mem_realloc(*set, bytes_for(width, count + 1));
    numbers = (char *)*set + HEAD_BYTES;
    memmove(numbers + (size_t)(index + 1) * width, numbers + (size_t)index * width, (size_t)(count - index) * width);
    store(*set, width, index, number);
    set_head(*set, width, count + 1);
    return true;
}

bool intset_remove(struct intset **set, int64_t number)
{
    uint32_t width = width_of(*set), count = intset_count(*set), index;
    char *numbers = (char *)*set + HEAD_BYTES;

    if (!find(*set, number, &index))
        return false;
    memmove(numbers + (size_t)index * width, numbers + (size_t)(index + 1) * width,
            (size_t)(count - index - 1) * width);
    set_head(*set, width, count - 1);
    if (mem_usable(*set) > 2 * mem_good_size(bytes_for(width, count - 1)))
        *set = mem_realloc(*set, bytes_for(width, count - 1));
    return true;
}

struct slice intset_as_bytes(const struct intset *set)
{
    return slice_make((const char *)set, bytes_for(width_of(set), intset_count(set)));
}

struct intset *intset_from_bytes(struct slice bytes)
{
    struct intset *set = mem_alloc(bytes.size);

    memcpy(set, bytes.data, bytes.size);
    return set;
}

bool intset_check(struct slice bytes)
{
    const struct intset *set = (const struct intset *)(const void *)bytes.data;
    uint32_t width, count;

    if (bytes.size < HEAD_BYTES)
        return false;
    width = width_of(set);
    count = intset_count(set);
    if ((width != 2 && width != 4 && width != 8) || count == 0 || bytes.size != bytes_for(width, count))
        return false;
    for (uint32_t i = 1; i < count; i++) {
        if (load(set, width, i - 1) >= load(set, width, i))
            return false;
    }
    return true;
}

void intset_validate(const struct intset *set)
{
    assert(intset_count(set) == 0 || intset_check(intset_as_bytes(set)));
    assert(intset_as_bytes(set).size <= mem_usable(set));
}
