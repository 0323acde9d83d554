#include "data/hash.h"

#include "base/buffer.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The model: field i has values[i], or none. */
enum { FIELDS = 400 };
static char *values[FIELDS];
static size_t sizes[FIELDS];
static unsigned count;

static struct slice field_name(unsigned i, char *room)
{
    return slice_make(room, (size_t)sprintf(room, i % 3 == 0 ? "%u" : "field:%u", i));
}

static unsigned field_index(struct slice field)
{
    char room[32];

    memcpy(room, field.data, field.size);
    room[field.size] = '\0';
    return (unsigned)strtoul(room[0] == 'f' ? room + 6 : room, NULL, 10);
}

static void model_set(unsigned i, struct slice value)
{
    count += values[i] == NULL;
    mem_free(values[i]);
    values[i] = mem_copy(value.data, value.size);
    sizes[i] = value.size;
}

static void model_remove(unsigned i)
{
    count -= values[i] != NULL;
    mem_free(values[i]);
    values[i] = NULL;
}

struct seen {
    unsigned times[FIELDS];
    unsigned sum;
};

static void see(struct slice field, struct slice value, void *context)
{
    struct seen *seen = context;
    unsigned i = field_index(field);

    assert_true(i < FIELDS && values[i] != NULL);
    assert_true(slice_equal(value, slice_make(values[i], sizes[i])));
    seen->times[i]++;
    seen->sum++;
}

static void same(struct value hash, struct random *random)
{
    struct seen seen = {.sum = 0}, some = {.sum = 0}, scanned = {.sum = 0};
    uint64_t want = random_below(random, count + 3u), cursor = 0;

    hash_validate(hash);
    assert_int_equal(hash_count(hash), count);
    hash_each(hash, see, &seen);
    assert_int_equal(seen.sum, count);
    hash_random_some(hash, random, want, see, &some);
    assert_int_equal(some.sum, MIN(want, (uint64_t)count));
    do
        cursor = hash_scan(hash, cursor, 7, see, &scanned);
    while (cursor != 0);
    for (unsigned i = 0; i < FIELDS; i++) {
        assert_int_equal(seen.times[i], values[i] != NULL);
        assert_int_equal(scanned.times[i], values[i] != NULL);
        assert_true(some.times[i] <= 1);
    }
    if (count > 0)
        hash_random(hash, random, see, &some);
}

static void behaves_like_a_map(void **state)
{
    static const struct hash_limits limits[] = {{128, 64}, {0, 64}, {10, 8}, {100000, 100000}};
    struct random random = test_random("hash");

    (void)state;
    for (size_t round = 0; round < countof(limits); round++) {
        struct value hash = hash_create(), copy;

        for (int step = 0; step < 8000; step++) {
            unsigned i = (unsigned)random_below(&random, FIELDS);
            char room[32], value[100], scratch[NUMBER_I64_SPACE];
            struct slice field = field_name(i, room), got;
            size_t size = random_below(&random, random_below(&random, 50) == 0 ? sizeof(value) : 9);

            assert_int_equal(hash_has(hash, field), values[i] != NULL);
            assert_int_equal(hash_get(hash, field, scratch, &got), values[i] != NULL);
            if (values[i] != NULL)
                assert_true(slice_equal(got, slice_make(values[i], sizes[i])));
            memset(value, '0' + step % 20, size);
            if (random_below(&random, step / 2000 % 2 == 0 ? 4 : 2) == 0) {
                assert_int_equal(hash_remove(&hash, field), values[i] != NULL);
                model_remove(i);
            } else {
                assert_int_equal(hash_put(&hash, &limits[round], field, slice_make(value, size)), values[i] == NULL);
                model_set(i, slice_make(value, size));
            }
            if (step % 50 == 0)
                same(hash, &random);
        }
        copy = hash_ops.copy(hash);
        assert_int_equal(copy.encoding, hash.encoding);
        assert_int_equal(copy.encoding, round == 3 ? ENCODING_LISTPACK : ENCODING_HASHTABLE);
        assert_true(hash_ops.memory_bytes(copy, 0) > 0);
        hash_ops.destroy(hash);
        same(copy, &random);
        hash_ops.destroy(copy);
        for (unsigned i = 0; i < FIELDS; i++)
            model_remove(i);
    }
}

static void limits_decide_the_form(void **state)
{
    const struct hash_limits limits = {3, 5};
    struct value hash = hash_create();

    (void)state;
    hash_put(&hash, &limits, SLICE("a"), SLICE("12345"));
    hash_put(&hash, &limits, SLICE("b"), SLICE(""));
    hash_put(&hash, &limits, SLICE("c"), SLICE("1"));
    hash_put(&hash, &limits, SLICE("c"), SLICE("2"));
    assert_int_equal(hash.encoding, ENCODING_LISTPACK);
    hash_put(&hash, &limits, SLICE("d"), SLICE("1"));
    assert_int_equal(hash.encoding, ENCODING_HASHTABLE);
    for (const char *field = "abcd"; *field != '\0'; field++)
        assert_true(hash_remove(&hash, slice_make(field, 1)));
    assert_int_equal(hash.encoding, ENCODING_HASHTABLE);
    hash_ops.destroy(hash);
    hash = hash_create();
    hash_put(&hash, &limits, SLICE("123456"), SLICE("1"));
    assert_int_equal(hash.encoding, ENCODING_HASHTABLE);
    hash_ops.destroy(hash);
}

static int setup(void **state)
{
    (void)state;
    hash_setup();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behaves_like_a_map),
        cmocka_unit_test(limits_decide_the_form),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
