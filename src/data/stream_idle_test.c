#include "base/test_seed.h"
#include "data/stream_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { IDS = 120, CONSUMERS = 4, STEPS = 4000 };

/* The model: the delivery time of each pending id; -1: not in the order. */
static int64_t delivered[IDS];
static int owners[IDS];

static struct stream_id id_of(uint64_t ms)
{
    return (struct stream_id){ms, 1};
}

static struct slice name_of(unsigned consumer)
{
    static const char *const names[CONSUMERS] = {"alice", "bob", "", "keydb:late"};

    return slice_from_text(names[consumer]);
}

static void add_entry(struct stream *stream, struct stream_id id)
{
    const struct slice pairs[] = {SLICE("field"), SLICE("value")};

    assert_true(stream_insert(stream, id, pairs, 1, &(struct stream_limits){0, 10}));
}

static struct stream *stream_of_all(void)
{
    struct stream *stream = stream_create();

    for (unsigned i = 1; i <= IDS; i++)
        add_entry(stream, id_of(i));
    return stream;
}

/* The least one above (after_ms, after); IDS: there is none. */
static unsigned next_of_model(int64_t after_ms, int after)
{
    unsigned best = IDS;

    for (unsigned i = 0; i < IDS; i++) {
        if (delivered[i] < 0 || delivered[i] < after_ms || (delivered[i] == after_ms && (int)i <= after))
            continue;
        if (best == IDS || delivered[i] < delivered[best])
            best = i;
    }
    return best;
}

static void expect_order(struct stream_group *group)
{
    struct stream_idle_iter iter;
    struct stream_idle idle;
    int64_t after_ms = -1;
    int after = -1;
    unsigned next;

    stream_idle_iter_init(&iter, group);
    while ((next = next_of_model(after_ms, after)) != IDS) {
        assert_true(stream_idle_iter_next(&iter, &idle));
        assert_int_equal(idle.id.ms, next);
        assert_int_equal(idle.delivery_ms, delivered[next]);
        after_ms = delivered[next];
        after = (int)next;
    }
    assert_false(stream_idle_iter_next(&iter, &idle));
    stream_idle_iter_fini(&iter);
}

static void lose_consumer(struct stream_group *group, unsigned who)
{
    uint64_t count;

    (void)stream_consumer_destroy(group, name_of(who), &count, NULL);
    for (unsigned i = 0; i < IDS; i++) {
        if (owners[i] == (int)who) {
            owners[i] = -1;
            delivered[i] = -1;
        }
    }
}

static void give(struct stream_group *group, unsigned who, unsigned id, int64_t ms)
{
    struct stream_consumer *consumer = stream_consumer_find(group, name_of(who));

    if (consumer == NULL)
        consumer = stream_consumer_create(group, name_of(who), 0);
    stream_pending_assign(group, id_of(id), consumer, ms, 1);
    owners[id] = (int)who;
    delivered[id] = slice_equal(name_of(who), STREAM_LATE_CONSUMER) ? -1 : ms;
}

/* The index is dropped from time to time, and so built anew. */
static void the_order_is_that_of_a_model(void **state)
{
    struct random random = test_random(__func__);
    struct stream *stream = stream_create(), *copy;
    struct stream_group *group = stream_group_create(stream, SLICE("g"), STREAM_ID_LEAST, 0);

    (void)state;
    memset(delivered, -1, sizeof(delivered));
    memset(owners, -1, sizeof(owners));
    for (unsigned i = 0; i < STEPS; i++) {
        const unsigned id = (unsigned)random_below(&random, IDS), who = (unsigned)random_below(&random, CONSUMERS);

        if (random_below(&random, 200) == 0) {
            lose_consumer(group, who);
        } else if (random_below(&random, 200) == 0) {
            stream_idle_drop(group);
        } else if (random_below(&random, 3) != 0) {
            give(group, who, id, (int64_t)random_below(&random, 40));
        } else {
            (void)stream_pending_remove(group, id_of(id));
            owners[id] = -1;
            delivered[id] = -1;
        }
        stream_validate(stream);
        if (i % 16 == 0)
            expect_order(group);
    }
    copy = stream_copy(stream);
    group = stream_group_find(copy, SLICE("g"));
    assert_null(group->by_time);
    expect_order(group);
    stream_destroy(&stream);
    stream_validate(copy);
    stream_destroy(&copy);
}

static void times_before_1970_come_first(void **state)
{
    static const int64_t times[] = {INT64_MAX, -1, 0, INT64_MIN, 256, 255, 1};
    struct stream *stream = stream_create();
    struct stream_group *group = stream_group_create(stream, SLICE("g"), STREAM_ID_LEAST, 0);
    struct stream_idle_iter iter;
    struct stream_idle idle;
    int64_t before = INT64_MIN;
    unsigned count = 0;

    (void)state;
    for (unsigned i = 0; i < countof(times); i++)
        give(group, 0, i, times[i]);
    stream_idle_iter_init(&iter, group);
    for (; stream_idle_iter_next(&iter, &idle); before = idle.delivery_ms, count++)
        assert_true(idle.delivery_ms >= before && idle.delivery_ms == times[idle.id.ms]);
    assert_int_equal(count, countof(times));
    assert_int_equal(stream_idle_count(group), count);
    stream_idle_iter_fini(&iter);
    stream_destroy(&stream);
}

static uint64_t forget_all(struct stream_group *group)
{
    struct stream_idle_iter iter;
    struct stream_idle idle;

    stream_idle_iter_init(&iter, group);
    while (stream_idle_iter_next(&iter, &idle))
        stream_idle_iter_forget(&iter);
    stream_idle_iter_fini(&iter);
    return stream_idle_count(group);
}

/* Of an entry that is gone the index knows no more. It is back where the entry is, or is given to somebody. */
static void what_is_gone_comes_back(void **state)
{
    struct stream *stream = stream_of_all();
    struct stream_group *group = stream_group_create(stream, SLICE("g"), STREAM_ID_LEAST, 0);

    (void)state;
    for (unsigned i = 1; i < 20; i++)
        give(group, 0, i, i);
    for (unsigned i = 1; i < 20; i++)
        assert_true(stream_delete(stream, id_of(i)));
    assert_int_equal(stream_idle_count(group), 0);
    assert_int_equal(forget_all(group), 0);
    assert_int_equal(radix_count(group->pending), 19);
    add_entry(stream, id_of(7));
    assert_int_equal(stream_idle_count(group), 1);
    add_entry(stream, (struct stream_id){7, 2}); /* it is not pending */
    assert_int_equal(stream_idle_count(group), 1);
    give(group, 1, 9, 100);
    assert_int_equal(stream_idle_count(group), 2);
    stream_validate(stream);
    assert_true(stream_pending_remove(group, id_of(8)));
    stream_validate(stream);
    stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_that_of_a_model),
        cmocka_unit_test(times_before_1970_come_first),
        cmocka_unit_test(what_is_gone_comes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
