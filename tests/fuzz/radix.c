/* Steps chosen by the input on a radix tree and on a sorted array of the same keys. Properties: the same answers, the
 * same order both ways from anywhere, every invariant after each step. */
#include "data/radix.h"

#include "fuzz.h"

enum { KEYS_MOST = 64, STEPS_MOST = 200 };

struct model {
    struct slice keys[KEYS_MOST]; /* in order; into the input */
    uintptr_t values[KEYS_MOST];
    size_t count;
};

/* Where the key is or would be. */
static size_t place_of(const struct model *model, struct slice key, bool *found)
{
    size_t place = 0;

    while (place < model->count && slice_compare(model->keys[place], key) < 0)
        place++;
    *found = place < model->count && slice_equal(model->keys[place], key);
    return place;
}

static void put(struct radix *tree, struct model *model, struct slice key, uintptr_t value)
{
    bool found;
    size_t place = place_of(model, key, &found);
    void *old = NULL;

    if (!found && model->count == KEYS_MOST)
        return;
    assert(radix_set(tree, key, (void *)value, &old) == !found);
    assert(!found || (uintptr_t)old == model->values[place]);
    if (!found) {
        for (size_t i = model->count++; i > place; i--) {
            model->keys[i] = model->keys[i - 1];
            model->values[i] = model->values[i - 1];
        }
    }
    model->keys[place] = key;
    model->values[place] = value;
}

static void take(struct radix *tree, struct model *model, struct slice key)
{
    bool found;
    size_t place = place_of(model, key, &found);
    void *old = NULL;

    assert(radix_remove(tree, key, &old) == found);
    if (!found)
        return;
    assert((uintptr_t)old == model->values[place]);
    model->count--;
    for (size_t i = place; i < model->count; i++) {
        model->keys[i] = model->keys[i + 1];
        model->values[i] = model->values[i + 1];
    }
}

static void check_place(const struct radix_iter *iter, const struct model *model, bool found, size_t place)
{
    assert(found == (place < model->count)); /* before the first: the largest number */
    if (found) {
        assert(slice_equal(radix_iter_key(iter), model->keys[place]));
        assert((uintptr_t)iter->value == model->values[place]);
    }
}

static void seek(const struct radix *tree, const struct model *model, struct slice key)
{
    struct radix_iter iter;
    bool found;
    size_t place = place_of(model, key, &found), above = place + (found ? 1 : 0);

    radix_iter_init(&iter, tree);
    check_place(&iter, model, radix_seek(&iter, RADIX_EQUAL, key), found ? place : SIZE_MAX);
    check_place(&iter, model, radix_seek(&iter, RADIX_FIRST, key), 0);
    check_place(&iter, model, radix_seek(&iter, RADIX_LAST, key), model->count - 1);
    check_place(&iter, model, radix_seek(&iter, RADIX_AT_LEAST, key), place);
    check_place(&iter, model, radix_seek(&iter, RADIX_ABOVE, key), above);
    for (size_t i = above + 1; i <= model->count && iter.valid; i++)
        check_place(&iter, model, radix_next(&iter), i);
    check_place(&iter, model, radix_seek(&iter, RADIX_AT_MOST, key), above - 1);
    check_place(&iter, model, radix_seek(&iter, RADIX_BELOW, key), place - 1);
    for (size_t i = place - 2; iter.valid; i--)
        check_place(&iter, model, radix_previous(&iter), i);
    radix_iter_fini(&iter);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    struct radix *tree = radix_create();
    struct model model = {.count = 0};

    for (unsigned step = 1; step <= STEPS_MOST && input.size != 0; step++) {
        unsigned kind = fuzz_take_byte(&input);
        struct slice key = slice_make(input.data, MIN(input.size, (size_t)(kind >> 2)));

        if (input.size != 0)
            input = slice_skip(input, key.size);
        switch (kind & 3) {
        case 0:
            take(tree, &model, key);
            break;
        case 1:
            seek(tree, &model, key);
            break;
        default:
            put(tree, &model, key, step);
            break;
        }
        radix_validate(tree);
        assert(radix_count(tree) == model.count);
    }
    radix_destroy(&tree, NULL);
    return 0;
}
