#include "data/radix.h"

#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The model: a sorted array of keys. */
enum { MODEL_MOST = 600, KEY_MOST = 80 };

struct model_key {
    char bytes[KEY_MOST];
    size_t size;
    void *value;
};

static struct model_key model[MODEL_MOST];
static unsigned model_count;

static struct slice key_at(unsigned index)
{
    return slice_make(model[index].bytes, model[index].size);
}

static unsigned model_at_least(struct slice key)
{
    unsigned index = 0;

    while (index < model_count && slice_compare(key_at(index), key) < 0)
        index++;
    return index;
}

static bool model_has(unsigned index, struct slice key)
{
    return index < model_count && slice_equal(key_at(index), key);
}

/* Keys that have much in common: few different bytes, or ids of 16 bytes, or one long run. */
static struct slice random_key(struct random *random, char room[KEY_MOST], unsigned kind)
{
    size_t size = 16;

    if (kind == 0) {
        static const char bytes[] = {0, 1, 127, (char)128, (char)255};

        size = random_below(random, 7);
        for (size_t i = 0; i < size; i++)
            room[i] = bytes[random_below(random, sizeof(bytes))];
    } else if (kind == 1) {
        memset(room, 0, 16);
        room[6] = (char)random_below(random, 3);
        room[7] = (char)random_u64(random);
        room[15] = (char)random_below(random, 4);
    } else {
        size = random_below(random, KEY_MOST);
        memset(room, 'a', size);
        if (size != 0 && random_below(random, 2) == 0)
            room[size - 1] = 'b';
    }
    return slice_make(room, size);
}

static void put(struct radix *tree, struct slice key, void *value)
{
    unsigned index = model_at_least(key);
    bool is_new = !model_has(index, key);
    void *old = NULL;

    if (is_new && model_count == MODEL_MOST)
        return;
    assert_int_equal(radix_set(tree, key, value, &old), is_new);
    if (is_new) {
        memmove(&model[index + 1], &model[index], (model_count - index) * sizeof(model[0]));
        model_count++;
        memcpy(model[index].bytes, key.data, key.size);
        model[index].size = key.size;
    } else {
        assert_ptr_equal(old, model[index].value);
    }
    model[index].value = value;
}

static void take(struct radix *tree, struct slice key)
{
    unsigned index = model_at_least(key);
    bool is_there = model_has(index, key);
    void *old = NULL;

    assert_int_equal(radix_remove(tree, key, &old), is_there);
    if (is_there) {
        assert_ptr_equal(old, model[index].value);
        model_count--;
        memmove(&model[index], &model[index + 1], (model_count - index) * sizeof(model[0]));
    }
}

/* The iterator stands where the model says; `index` may be out of range: nowhere. */
static void expect_at(const struct radix_iter *iter, bool found, int64_t index)
{
    bool is_there = index >= 0 && index < model_count;

    assert_int_equal(found, is_there);
    assert_int_equal(iter->valid, is_there);
    if (is_there) {
        assert_true(slice_equal(radix_iter_key(iter), key_at((unsigned)index)));
        assert_ptr_equal(iter->value, model[index].value);
    }
}

static void check_seeks(const struct radix *tree, struct slice key)
{
    unsigned at = model_at_least(key);
    bool has = model_has(at, key);
    struct radix_iter iter;
    void *value = NULL;

    radix_iter_init(&iter, tree);
    assert_false(radix_next(&iter));
    expect_at(&iter, radix_seek(&iter, RADIX_AT_LEAST, key), at);
    expect_at(&iter, radix_seek(&iter, RADIX_ABOVE, key), at + has);
    expect_at(&iter, radix_seek(&iter, RADIX_BELOW, key), (int64_t)at - 1);
    expect_at(&iter, radix_seek(&iter, RADIX_AT_MOST, key), (int64_t)at - !has);
    expect_at(&iter, radix_seek(&iter, RADIX_FIRST, key), 0);
    expect_at(&iter, radix_seek(&iter, RADIX_LAST, key), (int64_t)model_count - 1);
    expect_at(&iter, radix_seek(&iter, RADIX_EQUAL, key), has ? (int64_t)at : -1);
    radix_iter_fini(&iter);
    assert_int_equal(radix_find(tree, key, &value), has);
    if (has)
        assert_ptr_equal(value, model[at].value);
}

static void check_walks(const struct radix *tree)
{
    struct radix_iter iter;
    int64_t index = 0;

    radix_iter_init(&iter, tree);
    for (bool found = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); found; found = radix_next(&iter))
        expect_at(&iter, true, index++);
    assert_int_equal(index, model_count);
    for (bool found = radix_seek(&iter, RADIX_LAST, SLICE_EMPTY); found; found = radix_previous(&iter))
        expect_at(&iter, true, --index);
    assert_int_equal(index, 0);
    radix_iter_fini(&iter);
}

static void random_steps_match_the_model(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (unsigned round = 0; round < 12; round++) {
        struct radix *tree = radix_create();
        uint64_t empty_bytes = radix_memory_bytes(tree);

        model_count = 0;
        for (unsigned i = 0; i < 2000; i++) {
            char room[KEY_MOST], other_room[KEY_MOST];
            struct slice key = random_key(&random, room, round % 3);

            if (random_below(&random, 100) < (i / 500 % 2 != 0 ? 30 : 70))
                put(tree, key, (void *)(uintptr_t)random_u64(&random));
            else
                take(tree, key);
            radix_validate(tree);
            assert_int_equal(radix_count(tree), model_count);
            check_seeks(tree, random_key(&random, other_room, round % 3));
            if (i % 50 == 0)
                check_walks(tree);
        }
        while (round % 2 == 0 && model_count != 0) {
            struct model_key key = model[random_below(&random, model_count)];

            take(tree, slice_make(key.bytes, key.size));
            radix_validate(tree);
        }
        if (model_count == 0)
            assert_int_equal(radix_memory_bytes(tree), empty_bytes);
        radix_destroy(&tree, NULL);
        assert_null(tree);
    }
}

/* Every byte as a child, and what an iterator does when the tree changes under it. */
static void iterators_survive_changes(void **state)
{
    struct radix *tree = radix_create();
    struct radix_iter iter;
    unsigned seen = 0;

    (void)state;
    for (unsigned i = 0; i < 256; i++)
        assert_true(radix_set(tree, slice_make(&(uint8_t){(uint8_t)i}, 1), NULL, NULL));
    radix_validate(tree);
    radix_iter_init(&iter, tree);
    for (bool found = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); found; found = radix_next(&iter)) {
        assert_int_equal((uint8_t)iter.key[0], seen++);
        assert_true(radix_remove(tree, radix_iter_key(&iter), NULL));
    }
    assert_int_equal(seen, 256);
    assert_int_equal(radix_count(tree), 0);
    radix_iter_fini(&iter);
    radix_destroy(&tree, NULL);
}

static unsigned freed;

static void count_free(void *value)
{
    mem_free(value);
    freed++;
}

/* A chain as deep as the key is long: recursion would overflow the stack. */
static void long_keys_need_no_stack(void **state)
{
    enum { DEPTH = 40000 };
    struct radix *tree = radix_create();
    char *key = mem_alloc(DEPTH);
    struct radix_iter iter;
    unsigned seen = 0;

    (void)state;
    memset(key, 'k', DEPTH);
    for (unsigned size = 0; size < DEPTH; size += 20)
        assert_true(radix_set(tree, slice_make(key, size), mem_alloc(1), NULL));
    radix_validate(tree);
    radix_iter_init(&iter, tree);
    for (bool found = radix_seek(&iter, RADIX_LAST, SLICE_EMPTY); found && seen < 10; found = radix_previous(&iter))
        assert_int_equal(iter.key_size, DEPTH - 20 - 20 * seen++);
    radix_iter_fini(&iter);
    freed = 0;
    radix_destroy(&tree, count_free);
    assert_int_equal(freed, DEPTH / 20);
    radix_destroy(&tree, count_free);
    mem_free(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps_match_the_model),
        cmocka_unit_test(iterators_survive_changes),
        cmocka_unit_test(long_keys_need_no_stack),
    };

    return cmocka_run_group_tests_name("radix", tests, NULL, NULL);
}
