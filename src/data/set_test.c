#include "data/set.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The model: which of so many texts are members. The first half are integers. */
enum { TEXTS = 600 };
static bool in[TEXTS];
static unsigned count;

static struct slice text_of(unsigned i, char *room)
{
    return slice_make(room, (size_t)sprintf(room, i < TEXTS / 2 ? "%d" : "member:%d", (int)i - 150));
}

static unsigned index_of(struct slice text)
{
    char room[64];

    memcpy(room, text.data, text.size);
    room[text.size] = '\0';
    return (unsigned)(strtol(room[0] == 'm' ? room + 7 : room, NULL, 10) + 150);
}

struct seen {
    unsigned times[TEXTS];
    unsigned sum;
};

static void see(struct slice member, void *context)
{
    struct seen *seen = context;
    unsigned i = index_of(member);

    assert_true(i < TEXTS && in[i]);
    seen->times[i]++;
    seen->sum++;
}

static void same(struct value set, struct random *random)
{
    struct seen seen = {.sum = 0}, some = {.sum = 0}, scanned = {.sum = 0};
    uint64_t want = random_below(random, count + 3u), cursor = 0;
    char scratch[NUMBER_I64_SPACE];

    set_validate(set);
    assert_int_equal(set_count(set), count);
    set_each(set, see, &seen);
    set_random_some(set, random, want, see, &some);
    assert_int_equal(some.sum, MIN(want, (uint64_t)count));
    do
        cursor = set_scan(set, cursor, 9, see, &scanned);
    while (cursor != 0);
    for (unsigned i = 0; i < TEXTS; i++) {
        assert_int_equal(seen.times[i], in[i]);
        assert_int_equal(scanned.times[i], in[i]);
        assert_true(some.times[i] <= 1);
    }
    if (count > 0)
        see(set_random(set, random, scratch), &some);
}

static void behaves_like_a_set(void **state)
{
    static const struct set_limits limits[] = {{512, 128, 64}, {20, 0, 64}, {0, 1000, 64}, {1000, 40, 64}};
    struct random random = test_random("set");

    (void)state;
    for (size_t round = 0; round < countof(limits); round++) {
        char room[32];
        struct value set = set_create(&limits[round], text_of(0, room), 1), copy;

        memset(in, 0, sizeof(in));
        count = 0;
        for (int step = 0; step < 8000; step++) {
            unsigned i = (unsigned)random_below(&random, step < 4000 ? TEXTS / 2 : TEXTS);
            struct slice text = text_of(i, room);

            assert_int_equal(set_has(set, text), in[i]);
            if (random_below(&random, step / 1000 % 2 == 0 ? 4 : 2) == 0) {
                assert_int_equal(set_remove(&set, text), in[i]);
                count -= in[i];
                in[i] = false;
            } else {
                assert_int_equal(set_add(&set, &limits[round], text), !in[i]);
                count += !in[i];
                in[i] = true;
            }
            if (step % 50 == 0)
                same(set, &random);
        }
        copy = set_ops.copy(set);
        assert_int_equal(copy.encoding, set.encoding);
        set_ops.destroy(set);
        same(copy, &random);
        set_ops.destroy(copy);
    }
}

static enum value_encoding form_of(const struct set_limits *limits, const char *const *texts, unsigned text_count)
{
    struct value set = set_create(limits, slice_from_text(texts[0]), 1);
    enum value_encoding encoding;

    for (unsigned i = 0; i < text_count; i++)
        set_add(&set, limits, slice_from_text(texts[i]));
    encoding = set.encoding;
    set_ops.destroy(set);
    return encoding;
}

static void limits_decide_the_form(void **state)
{
    const struct set_limits limits = {3, 3, 4};
    static const char *const texts[] = {"1", "2", "3", "4"}, *const mixed[] = {"1", "2", "a", "b"};
    static const char *const longer[] = {"12345", "a"}, *const worded[] = {"abcde"};

    (void)state;
    assert_int_equal(form_of(&limits, texts, 3), ENCODING_INTSET);
    assert_int_equal(form_of(&limits, texts, 4), ENCODING_HASHTABLE);
    assert_int_equal(form_of(&limits, mixed, 2), ENCODING_INTSET);
    assert_int_equal(form_of(&limits, mixed, 3), ENCODING_LISTPACK);
    assert_int_equal(form_of(&limits, mixed, 4), ENCODING_HASHTABLE);
    assert_int_equal(form_of(&limits, longer, 2), ENCODING_HASHTABLE);
    assert_int_equal(form_of(&limits, worded, 1), ENCODING_HASHTABLE);
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
        cmocka_unit_test(behaves_like_a_set),
        cmocka_unit_test(limits_decide_the_form),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
