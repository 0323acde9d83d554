/* A quicksort that skips parts outside of the wanted places. No two items are equal (their order of arrival decides in
 * the end), so its result is that of a stable sort, and partitions are even if all weights are equal. Large partitions
 * use a random pivot, so that no client can prepare a list that costs the square of its length while it holds its
 * stripe.
 *
 * Most comparisons are decided by a number of 64 bits that each item carries: the weight itself, or the first bytes of
 * a text. Their results cannot be predicted, so partitioning does not branch on them; that halves the time. */
#include "commands/keys/sort_order.h"

#include "base/assert.h"
#include "base/compiler.h"
#include "base/random.h"

#include <locale.h>

enum {
    SHORT = 16,            /* is sorted by insertion */
    RANGES_MOST = 64,      /* the shorter part is done first, so that so many never wait */
    CHANCE_FROM_COUNT = 64 /* below, the square of the length is no harm */
};

typedef int (*compare_fn)(const struct sort_element *a, const struct sort_element *b);

/* Elements without weight come first. */
static int by_presence(struct slice a, struct slice b)
{
    return (a.data != NULL) - (b.data != NULL);
}

static int by_text(const struct sort_element *a, const struct sort_element *b)
{
    return slice_compare(a->text, b->text);
}

static int by_collation(const struct sort_element *a, const struct sort_element *b)
{
    if (a->weight.data == NULL || b->weight.data == NULL)
        return by_presence(a->weight, b->weight);
    return strcoll(a->weight.data, b->weight.data);
}

static int by_bytes(const struct sort_element *a, const struct sort_element *b)
{
    if (a->weight.data == NULL || b->weight.data == NULL)
        return by_presence(a->weight, b->weight);
    return slice_compare(a->weight, b->weight);
}

/* -------------------------------------------------------------------------------------------------------- keys -- */

/* Maps doubles to unsigned numbers with the same order: the bits of negative numbers are inverted. */
static uint64_t key_of_number(double number)
{
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t bits;

    number += 0.0; /* there is one zero only */
    memcpy(&bits, &number, sizeof(bits));
    return (bits & sign) != 0 ? ~bits : bits | sign;
}

/* The first eight bytes, fewer with zeros behind them, as a number. */
static uint64_t key_of_text(struct slice text)
{
    uint64_t key = 0;

    if (text.size >= sizeof(key)) {
        memcpy(&key, text.data, sizeof(key));
        return __builtin_bswap64(key);
    }
    for (size_t i = 0; i < text.size; i++)
        key |= (uint64_t)(unsigned char)text.data[i] << (56 - 8 * i);
    return key;
}

/* Only the plain locale goes by bytes; in others texts have to be compared as a whole. */
static bool collates_bytes(void)
{
    const char *locale = setlocale(LC_COLLATE, NULL);

    return strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0;
}

static uint64_t key_of(const struct sort_element *element, enum sort_rule rule, bool whole)
{
    struct slice weight = element->weight;

    if (rule == SORT_BY_NUMBER)
        return key_of_number(element->number);
    if (whole || weight.data == NULL)
        return 0;
    if (rule == SORT_BY_COLLATION)
        weight.size = strnlen(weight.data, MIN(weight.size, sizeof(uint64_t)));
    return key_of_text(weight);
}

static void set_keys(struct sort_item *items, size_t count, enum sort_rule rule, bool descending)
{
    const uint64_t turn = descending ? UINT64_MAX : 0;
    bool whole = rule == SORT_BY_COLLATION && !collates_bytes();

    for (size_t i = 0; i < count; i++)
        items[i].key = key_of(items[i].element, rule, whole) ^ turn;
}

/* ----------------------------------------------------------------------------------------------------- sorting -- */

struct order {
    compare_fn compare; /* of two with the same key */
    bool descending;
};

static NOINLINE bool is_before_of_same_key(const struct sort_item *a, const struct sort_item *b, struct order order)
{
    int result = order.compare(a->element, b->element);

    if (result != 0)
        return order.descending ? result > 0 : result < 0;
    return a->element < b->element;
}

static ALWAYS_INLINE bool is_before(const struct sort_item *a, const struct sort_item *b, struct order order)
{
    if (UNLIKELY(a->key == b->key))
        return is_before_of_same_key(a, b, order);
    return a->key < b->key;
}

static void insertion_sort(struct sort_item *items, size_t count, struct order order)
{
    for (size_t i = 1; i < count; i++) {
        struct sort_item item = items[i];
        size_t place = i;

        for (; place > 0 && is_before(&item, &items[place - 1], order); place--)
            items[place] = items[place - 1];
        items[place] = item;
    }
}

static void swap(struct sort_item *a, struct sort_item *b)
{
    struct sort_item kept = *a;

    *a = *b;
    *b = kept;
}

/* Brings the middle one of three to the front. */
static void choose_pivot(struct sort_item *items, size_t count, struct order order)
{
    size_t third = count / 3;
    size_t offset = count < CHANCE_FROM_COUNT ? third / 2 : random_below(random_thread(), third);
    size_t low = offset, middle = third + offset, high = 2 * third + offset;

    if (is_before(&items[middle], &items[low], order)) {
        low = middle;
        middle = offset;
    }
    if (is_before(&items[high], &items[middle], order))
        middle = is_before(&items[high], &items[low], order) ? low : high;
    swap(&items[0], &items[middle]);
}

/* Returns the pivot's place: the items that precede it are on its left. */
static size_t partition(struct sort_item *items, size_t count, struct order order)
{
    struct sort_item pivot;
    size_t smaller = 0;

    choose_pivot(items, count, order);
    pivot = items[0];
    for (size_t i = 1; i < count; i++) {
        struct sort_item item = items[i];
        bool is_smaller = is_before(&item, &pivot, order);

        items[i] = items[smaller + 1];
        items[smaller + 1] = item;
        smaller += is_smaller;
    }
    swap(&items[0], &items[smaller]);
    return smaller;
}

struct range {
    size_t start, end;
};

static void order_range(struct sort_item *items, struct range all, struct range wanted, struct order order)
{
    struct range waiting[RANGES_MOST], range = all;
    unsigned waiting_count = 0;

    for (;;) {
        size_t count = range.end - range.start;

        if (range.start < wanted.end && range.end > wanted.start && count > SHORT) {
            size_t middle = range.start + partition(&items[range.start], count, order);
            struct range left = {range.start, middle}, right = {middle + 1, range.end};
            bool left_first = middle - range.start < range.end - middle;

            assert(waiting_count < RANGES_MOST);
            waiting[waiting_count++] = left_first ? right : left;
            range = left_first ? left : right;
            continue;
        }
        if (range.start < wanted.end && range.end > wanted.start)
            insertion_sort(&items[range.start], count, order);
        if (waiting_count == 0)
            return;
        range = waiting[--waiting_count];
    }
}

void sort_order(struct sort_item *items, size_t count, size_t from, size_t to, enum sort_rule rule, bool descending)
{
    static const compare_fn compare[] =
        {[SORT_BY_NUMBER] = by_text, [SORT_BY_COLLATION] = by_collation, [SORT_BY_BYTES] = by_bytes};
    const struct order order = {compare[rule], descending};

    assert(from <= to && to <= count);
    set_keys(items, count, rule, descending);
    order_range(items, (struct range){0, count}, (struct range){from, to}, order);
}
