/* Listpacks from outside become the nodes of a list, which then goes through steps that the input chooses. Properties:
 * the list has as many elements as were put in and not taken out, walks both ways tell the same, and every invariant of
 * its nodes holds after each step. */
#include "data/quicklist.h"

#include "fuzz.h"

enum { STEPS_MOST = 60 };

struct walk {
    uint64_t count;
    uint64_t sum; /* the same in any order */
};

static struct walk walk(const struct quicklist *list, enum quicklist_direction direction)
{
    struct walk result = {0, 0};
    struct listpack_value value;
    struct quicklist_iter iter;
    char scratch[NUMBER_I64_SPACE];

    quicklist_iter_init(&iter, list, direction == QUICKLIST_FORWARD ? 0 : -1, direction);
    while (quicklist_iter_next(&iter, &value)) {
        struct slice text = listpack_value_text(&value, scratch);
        struct quicklist_needle needle = quicklist_needle_make(text);
        uint64_t index = direction == QUICKLIST_FORWARD ? result.count : quicklist_count(list) - 1 - result.count;
        uint64_t hash = index * 31 + text.size;

        assert(quicklist_value_is(&value, &needle));
        for (size_t i = 0; i < text.size; i++)
            hash = (hash ^ (unsigned char)text.data[i]) * UINT64_C(0x100000001B3);
        result.sum += hash;
        result.count++;
    }
    quicklist_iter_fini(&iter);
    return result;
}

static void check(const struct quicklist *list, uint64_t count)
{
    struct walk forward = walk(list, QUICKLIST_FORWARD), backward = walk(list, QUICKLIST_BACKWARD);

    quicklist_validate(list);
    assert(quicklist_count(list) == count);
    assert(forward.count == count && backward.count == count);
    assert(forward.sum == backward.sum);
}

static struct slice take_piece(struct slice *input)
{
    size_t size = fuzz_take_byte(input);
    struct slice piece;

    size = MIN(size, input->size);
    piece = slice_make(input->data, size);
    if (size == 0)
        return SLICE("");
    *input = slice_skip(*input, size);
    return piece;
}

static uint64_t append(struct quicklist *list, struct slice bytes)
{
    struct listpack *pack;
    uint32_t count;

    if (!listpack_check(bytes))
        return 0;
    pack = listpack_from_bytes(bytes);
    count = listpack_count(pack);
    quicklist_append_listpack(list, &pack);
    assert(pack == NULL);
    return count;
}

/* Changes the elements it visits, as the bits of `pattern` say. Returns by how much the count has changed. */
static int64_t change_on_the_way(struct quicklist *list, int64_t index, unsigned pattern, struct slice text)
{
    struct listpack_value value;
    struct quicklist_iter iter;
    int64_t change = 0;

    quicklist_iter_init(&iter, list, index, pattern & 1 ? QUICKLIST_FORWARD : QUICKLIST_BACKWARD);
    for (unsigned i = 0; i < 16 && quicklist_iter_next(&iter, &value); i++) {
        switch ((pattern >> (i / 2 & 7) & 1) * (1 + (i + pattern) % 4)) {
        case 1:
            quicklist_delete(list, &iter), change--;
            break;
        case 2:
            quicklist_replace(list, &iter, text);
            break;
        case 3:
            quicklist_insert_before(list, &iter, text), change++;
            break;
        case 4:
            quicklist_insert_after(list, &iter, text), change++;
            break;
        default:
            break;
        }
    }
    quicklist_iter_fini(&iter);
    return change;
}

static uint64_t step(struct quicklist *list, uint64_t count, struct slice *input)
{
    enum quicklist_end end = fuzz_take_byte(input) % 2 != 0 ? QUICKLIST_HEAD : QUICKLIST_TAIL;
    unsigned kind = fuzz_take_byte(input) % 5;
    int64_t index = (int8_t)fuzz_take_byte(input);
    unsigned number = fuzz_take_byte(input);

    switch (kind) {
    case 0:
        return count + append(list, take_piece(input));
    case 1:
        for (unsigned i = 0; i < number; i++)
            quicklist_push(list, end, slice_make(&number, i % 5)); /* many small ones make nodes */
        return count + number;
    case 2:
        return count - quicklist_delete_range(list, index, number);
    case 3:
        if (count == 0)
            return 0;
        quicklist_drop(list, end);
        return count - 1;
    default:
        return (uint64_t)((int64_t)count + change_on_the_way(list, index, number, take_piece(input)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    struct quicklist_limits limits = {
        .fill = (int8_t)fuzz_take_byte(&input),
        .compress = fuzz_take_byte(&input) % 4,
        .plain_from_bytes = fuzz_take_byte(&input),
    };
    struct quicklist *list = quicklist_create(&limits), *copy;
    uint64_t count = 0;

    for (unsigned i = 0; i < STEPS_MOST && input.size != 0; i++) {
        count = step(list, count, &input);
        check(list, count);
    }
    copy = quicklist_copy(list);
    quicklist_destroy(&list);
    check(copy, count);
    quicklist_destroy(&copy);
    return 0;
}
