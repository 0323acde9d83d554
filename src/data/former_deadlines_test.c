#include "data/former_deadlines.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXTS = 3000, ROUNDS = 60, CHANGES = 4000 };

struct model {
    struct deadlines now;
    int64_t then[TEXTS]; /* DEADLINE_NONE: it had none */
    bool has[TEXTS];     /* it was given */
    uint64_t count, piece;
};

static struct slice text_of(unsigned i, char room[16])
{
    return slice_make(room, (size_t)snprintf(room, 16, "text:%u", i));
}

static void see(struct slice text, int64_t when_ms, void *context)
{
    struct model *model = context;
    char room[16] = {0};
    unsigned i;

    memcpy(room, text.data, text.size);
    i = (unsigned)strtoul(room + 5, NULL, 10);
    assert_true(i < TEXTS && !model->has[i]);
    assert_true(when_ms != DEADLINE_NONE && when_ms == model->then[i]);
    model->has[i] = true;
    model->count++;
    model->piece++;
}

static void set(struct model *model, struct former_deadlines *former, unsigned i, int64_t when_ms)
{
    char room[16];
    const struct slice text = text_of(i, room);
    const int64_t before_ms = deadlines_find(&model->now, text);

    if (former != NULL)
        former_deadlines_keep(former, text, before_ms);
    if (when_ms != DEADLINE_NONE)
        (void)deadlines_set(&model->now, text, when_ms);
    else
        (void)deadlines_remove(&model->now, text);
}

static void change(struct model *model, struct former_deadlines *former, struct random *random, unsigned count)
{
    while (count-- != 0) {
        const unsigned i = (unsigned)random_below(random, TEXTS);
        struct deadline *due;

        switch (random_below(random, 8)) {
        case 0:
        case 1:
            set(model, former, i, DEADLINE_NONE);
            break;
        case 2: /* what is due goes */
            due = deadlines_take_due(&model->now, DEADLINE_NONE);
            if (due == NULL)
                break;
            if (former != NULL)
                former_deadlines_keep(former, deadline_text(due), due->when_ms);
            mem_free(due);
            break;
        default:
            set(model, former, i, (int64_t)random_below(random, 100000) - 1000);
        }
    }
}

static void check_finds(const struct model *model, const struct former_deadlines *former)
{
    for (unsigned i = 0; i < TEXTS; i++) {
        char room[16];

        assert_true(former_deadlines_find(former, &model->now, text_of(i, room)) == model->then[i]);
    }
}

static bool give_some(struct former_deadlines *former, struct model *model, struct random *random)
{
    const uint64_t most = 1 + random_below(random, 200);
    const bool is_empty = deadlines_count(&model->now) == 0 && random_below(random, 2) == 0;

    model->piece = 0;
    if (!former_deadlines_give(former, is_empty ? NULL : &model->now, most, see, model))
        return false;
    assert_true(model->piece <= most + 64); /* a place of a table more */
    return true;
}

static void run(struct random *random)
{
    struct model model = {.now = {.capacity = 0}};
    struct former_deadlines *former;
    uint64_t count;
    bool more = true;

    change(&model, NULL, random, 1 + (unsigned)random_below(random, 3 * TEXTS));
    for (unsigned i = 0; i < TEXTS; i++) {
        char room[16];

        model.then[i] = deadlines_find(&model.now, text_of(i, room));
    }
    count = deadlines_count(&model.now);
    former = former_deadlines_create(&model.now);
    assert_true(former_deadlines_first_ms(former) == deadlines_first_ms(&model.now));
    change(&model, former, random, (unsigned)random_below(random, CHANGES));
    check_finds(&model, former);
    if (random_below(random, 3) == 0) {
        for (unsigned i = 0; i < TEXTS; i++) /* the table is gone */
            set(&model, former, i, DEADLINE_NONE);
        check_finds(&model, former);
    }
    while (more) {
        if (random_below(random, 2) == 0)
            change(&model, former, random, (unsigned)random_below(random, CHANGES / 20));
        more = give_some(former, &model, random);
    }
    assert_int_equal(model.count, count);
    former_deadlines_destroy(&former);
    assert_null(former);
    deadlines_clear(&model.now);
}

enum { EARLIER = 300 };

/* Taken back, from the newest one on, what was done before the former was there; also behind changes that it was told
 * of. */
static void run_back(struct random *random)
{
    struct model model = {.now = {.capacity = 0}};
    struct former_deadlines *former;
    unsigned texts[EARLIER];
    int64_t had_ms[EARLIER];
    uint64_t count = 0;
    bool more = true;
    char room[16];

    change(&model, NULL, random, (unsigned)random_below(random, 2) * (unsigned)random_below(random, TEXTS));
    for (unsigned i = 0; i < TEXTS; i++) {
        model.then[i] = deadlines_find(&model.now, text_of(i, room));
        count += model.then[i] != DEADLINE_NONE;
    }
    for (unsigned i = 0; i < EARLIER; i++) {
        texts[i] = (unsigned)random_below(random, EARLIER);
        had_ms[i] = deadlines_find(&model.now, text_of(texts[i], room));
        set(&model, NULL, texts[i], random_below(random, 2) == 0 ? DEADLINE_NONE : (int64_t)random_below(random, 1000));
    }
    former = former_deadlines_create(&model.now);
    change(&model, former, random, (unsigned)random_below(random, CHANGES));
    for (unsigned i = EARLIER; i-- != 0;)
        former_deadlines_take_back(former, &model.now, text_of(texts[i], room), had_ms[i]);
    check_finds(&model, former);
    for (unsigned i = 0; i < TEXTS; i++)
        assert_true(former_deadlines_first_ms(former) <= model.then[i]);
    assert_int_equal(former_deadlines_first_ms(former) == DEADLINE_NONE, count == 0);
    while (more && count != 0) {
        change(&model, former, random, (unsigned)random_below(random, CHANGES / 20));
        more = give_some(former, &model, random);
    }
    assert_int_equal(model.count, count);
    former_deadlines_destroy(&former);
    deadlines_clear(&model.now);
}

static void as_they_were_before_the_moment(void **state)
{
    struct random random = test_random("as_they_were_before_the_moment");

    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++)
        run_back(&random);
}

static void as_they_were_whatever_changes(void **state)
{
    struct random random = test_random("as_they_were_whatever_changes");

    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++)
        run(&random);
}

/* Memory is that of what was changed, once for each text, and nothing is kept of what was given. */
static void memory_is_that_of_changes(void **state)
{
    struct random random = test_random("memory_is_that_of_changes");
    struct model model = {.now = {.capacity = 0}};
    struct former_deadlines *former;
    uint64_t bytes;

    (void)state;
    for (unsigned i = 0; i < TEXTS; i++) {
        set(&model, NULL, i, i);
        model.then[i] = i;
    }
    former = former_deadlines_create(&model.now);
    bytes = former_deadlines_bytes(former);
    for (unsigned i = 0; i < TEXTS; i++)
        set(&model, former, 7, i);
    assert_in_range(former_deadlines_bytes(former), bytes + 32, bytes + 80);
    bytes = former_deadlines_bytes(former);
    while (give_some(former, &model, &random))
        ;
    for (unsigned i = 0; i < TEXTS; i++)
        set(&model, former, i, DEADLINE_NONE);
    assert_int_equal(former_deadlines_bytes(former), bytes);
    former_deadlines_destroy(&former);
    deadlines_clear(&model.now);
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
        cmocka_unit_test(as_they_were_whatever_changes),
        cmocka_unit_test(as_they_were_before_the_moment),
        cmocka_unit_test(memory_is_that_of_changes),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
