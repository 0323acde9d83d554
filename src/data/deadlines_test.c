#include "data/deadlines.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/mem_move.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The model: text i goes at times[i], or 0 if it is not there. */
enum { TEXTS = 300, TIMES = 500 };
static int64_t times[TEXTS];

static struct slice text_of(unsigned i, char room[16])
{
    return slice_make(room, (size_t)sprintf(room, i % 2 == 0 ? "%u" : "text:%u", i));
}

static unsigned index_of(struct slice text)
{
    char room[16];

    assert_true(text.size < sizeof(room));
    memcpy(room, text.data, text.size);
    room[text.size] = '\0';
    return (unsigned)strtoul(room[0] == 't' ? room + 5 : room, NULL, 10);
}

static void see(struct slice text, int64_t when_ms, void *context)
{
    unsigned *seen = context;

    assert_int_equal(when_ms, times[index_of(text)]);
    seen[index_of(text)]++;
}

static void same(const struct deadlines *deadlines, int64_t now_ms)
{
    unsigned seen[TEXTS] = {0}, due[TEXTS] = {0}, count = 0, due_count = 0;
    int64_t first = DEADLINE_NONE;

    deadlines_validate(deadlines);
    deadlines_each_due(deadlines, DEADLINE_NONE, see, seen);
    deadlines_each_due(deadlines, now_ms, see, due);
    for (unsigned i = 0; i < TEXTS; i++) {
        char room[16];

        assert_int_equal(deadlines_find(deadlines, text_of(i, room)), times[i] != 0 ? times[i] : DEADLINE_NONE);
        assert_int_equal(seen[i], times[i] != 0);
        assert_int_equal(due[i], times[i] != 0 && times[i] < now_ms);
        count += seen[i];
        due_count += due[i];
        if (times[i] != 0 && times[i] < first)
            first = times[i];
    }
    assert_int_equal(deadlines_count(deadlines), count);
    assert_int_equal(deadlines_count_due(deadlines, now_ms), due_count);
    assert_int_equal(deadlines_first_ms(deadlines), first);
}

static void take_due(struct deadlines *deadlines, int64_t now_ms)
{
    struct deadline *deadline;
    int64_t before_ms = 0;

    while ((deadline = deadlines_take_due(deadlines, now_ms)) != NULL) {
        unsigned i = index_of(deadline_text(deadline));

        assert_int_equal(deadline->when_ms, times[i]);
        assert_true(deadline->when_ms >= before_ms && deadline->when_ms < now_ms);
        before_ms = deadline->when_ms;
        times[i] = 0;
        mem_free(deadline);
    }
    assert_true(deadlines_first_ms(deadlines) >= now_ms);
}

static void move_all(struct deadlines *deadlines, uint64_t most)
{
    struct mem_mover mover = {0, 0};
    uint64_t position = 0;

    mem_move_everything(true);
    do
        position = deadlines_relocate(deadlines, position, most, &mover);
    while (position != 0);
    mem_move_everything(false);
    assert_true(deadlines_count(deadlines) == 0 || mover.moved > deadlines_count(deadlines));
}

static void behaves_like_a_list_of_times(void **state)
{
    struct random random = test_random("deadlines");
    struct deadlines deadlines = {.capacity = 0}, copy;

    (void)state;
    for (int step = 0; step < 30000; step++) {
        unsigned i = (unsigned)random_below(&random, TEXTS);
        int64_t when_ms = 1 + (int64_t)random_below(&random, TIMES);
        char room[16];
        struct slice text = text_of(i, room);
        unsigned what = (unsigned)random_below(&random, 100);

        if (what < (step / 5000 % 2 == 0 ? 70u : 20u)) {
            assert_int_equal(deadlines_set(&deadlines, text, when_ms), times[i] == 0);
            times[i] = when_ms;
        } else if (what < 95) {
            assert_int_equal(deadlines_remove(&deadlines, text), times[i] != 0);
            times[i] = 0;
        } else if (what < 98) {
            take_due(&deadlines, (int64_t)random_below(&random, 50));
        } else {
            move_all(&deadlines, 1 + random_below(&random, 100));
        }
        if (step % 20 == 0)
            same(&deadlines, (int64_t)random_below(&random, TIMES + 2));
    }
    deadlines_copy(&copy, &deadlines);
    assert_int_equal(deadlines_memory_bytes(&copy, 0) > 0, deadlines_count(&copy) > 0);
    deadlines_clear(&deadlines);
    assert_int_equal(deadlines_first_ms(&deadlines), DEADLINE_NONE);
    same(&copy, 250);
    take_due(&copy, DEADLINE_NONE);
    same(&copy, 250);
    deadlines_clear(&copy);
}

static void takes_empty_and_long_texts(void **state)
{
    struct deadlines deadlines = {.capacity = 0};
    char large[5000];

    (void)state;
    memset(large, 'x', sizeof(large));
    assert_true(deadlines_set(&deadlines, SLICE_EMPTY, 5));
    assert_true(deadlines_set(&deadlines, slice_make(large, sizeof(large)), INT64_MAX - 1));
    assert_false(deadlines_set(&deadlines, SLICE(""), -7));
    assert_int_equal(deadlines_first_ms(&deadlines), -7);
    assert_int_equal(deadlines_find(&deadlines, slice_make(large, sizeof(large))), INT64_MAX - 1);
    assert_true(deadlines_remove(&deadlines, SLICE_EMPTY));
    assert_false(deadlines_remove(&deadlines, SLICE_EMPTY));
    deadlines_validate(&deadlines);
    deadlines_clear(&deadlines);
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
        cmocka_unit_test(behaves_like_a_list_of_times),
        cmocka_unit_test(takes_empty_and_long_texts),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
