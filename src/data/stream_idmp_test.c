#include "data/stream_idmp.h"

#include "base/mem.h"
#include "base/test_seed.h"
#include "data/stream_value.h"
#include "data/undo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* The model: all pairs that were ever recorded, unless another one came under the same name, or they were too many. */
enum { MODEL_MOST = 20000, PRODUCERS = 5, IIDS = 40, SECOND = 1000 };

static struct known {
    unsigned producer, iid;
    struct stream_id id;
} model[MODEL_MOST];
static unsigned model_count;
static struct stream_idmp_limits model_limits;

static struct slice name_of(unsigned number, char room[32])
{
    return slice_make(room, (size_t)snprintf(room, 32, "%u%s", number, number % 2 == 0 ? "" : "-long-name"));
}

static void model_remove(unsigned index)
{
    model[index] = model[--model_count];
}

static void model_record(unsigned producer, unsigned iid, struct stream_id id)
{
    unsigned count = 0, oldest = 0;

    for (unsigned i = 0; i < model_count; i++) {
        if (model[i].producer == producer && model[i].iid == iid) {
            model_remove(i);
            break;
        }
    }
    model[model_count++] = (struct known){producer, iid, id};
    for (unsigned i = 0; i < model_count; i++) {
        if (model[i].producer != producer)
            continue;
        if (count++ == 0 || stream_id_compare(model[i].id, model[oldest].id) < 0)
            oldest = i;
    }
    if (count > model_limits.maxsize)
        model_remove(oldest);
}

struct seen {
    unsigned producers, pairs, announced;
    struct slice producer;
    struct stream_id before;
    const struct stream *stream;
};

static void see_producer(struct slice name, uint64_t pair_count, void *context)
{
    struct seen *seen = context;

    seen->producers++;
    seen->announced += (unsigned)pair_count;
    seen->producer = name;
    seen->before = STREAM_ID_LEAST;
}

static void see_pair(struct slice iid, struct stream_id id, void *context)
{
    struct seen *seen = context;
    struct stream_id found;

    assert_true(stream_idmp_find(seen->stream, seen->producer, iid, &found));
    assert_int_equal(stream_id_compare(id, found), 0);
    assert_true(stream_id_compare(id, seen->before) >= 0);
    seen->before = id;
    seen->pairs++;
}

static void compare(const struct stream *stream)
{
    struct seen seen = {.stream = stream};
    const struct stream_idmp_visitor visitor = {see_producer, see_pair, &seen};
    const uint64_t now_ms = stream_last_id(stream).ms;
    uint64_t producers;
    unsigned live = 0;

    for (unsigned i = 0; i < model_count; i++) {
        char rooms[2][32];
        struct stream_id id;

        if (model[i].id.ms + UINT64_C(1000) * model_limits.duration_s <= now_ms)
            continue;
        live++;
        assert_true(
            stream_idmp_find(stream, name_of(model[i].producer, rooms[0]), name_of(model[i].iid, rooms[1]), &id));
        assert_int_equal(stream_id_compare(id, model[i].id), 0);
        assert_false(stream_idmp_is_over(stream, id, now_ms));
    }
    producers = stream_idmp_visit(stream, &visitor);
    assert_int_equal(seen.producers, producers);
    assert_int_equal(seen.pairs, live);
    assert_int_equal(seen.announced, live);
}

static void record_random(struct random *random, struct stream *stream, uint64_t *now_ms)
{
    const unsigned producer = (unsigned)random_below(random, PRODUCERS), iid = (unsigned)random_below(random, IIDS);
    char rooms[2][32];
    struct stream_id id;

    *now_ms += random_below(random, 20) == 0 ? random_below(random, 5 * SECOND) : random_below(random, SECOND / 10);
    id = (struct stream_id){*now_ms - (random_below(random, 5) == 0 ? random_below(random, 2 * SECOND) : 0),
                            random_u64(random)};
    stream_set_ids(stream, (struct stream_id){*now_ms, UINT64_MAX}, STREAM_ID_LEAST, 0);
    model_record(producer, iid, id);
    stream_idmp_record(stream, name_of(producer, rooms[0]), name_of(iid, rooms[1]), id);
}

static void set_random_limits(struct random *random, struct stream *stream)
{
    const struct stream_idmp_limits limits = {1 + (uint32_t)random_below(random, 6),
                                              1 + (uint32_t)random_below(random, 30)};

    if (stream_idmp_limit(stream, limits))
        model_count = 0;
    model_limits = limits;
}

static void pairs_match_a_model(void **state)
{
    struct random random = test_random("pairs_match_a_model");
    struct stream *stream = stream_create();
    uint64_t now_ms = 100 * SECOND;

    (void)state;
    assert_int_equal(stream_idmp_visit(stream, NULL), 0);
    set_random_limits(&random, stream);
    assert_true(stream_idmp_is_used());
    for (unsigned step = 0; step < 4000; step++) {
        if (random_below(&random, 400) == 0)
            set_random_limits(&random, stream);
        record_random(&random, stream, &now_ms);
        if (step % 16 == 0) {
            stream_validate(stream);
            compare(stream);
        }
    }
    stream_destroy(&stream);
}

/* What has counted, in text. */
static void append_producer(struct slice name, uint64_t pair_count, void *context)
{
    buffer_append_slice(context, name);
    buffer_append_char(context, (char)('A' + pair_count % 26));
}

static void append_pair(struct slice iid, struct stream_id id, void *context)
{
    char room[STREAM_ID_BYTES];

    buffer_append_slice(context, iid);
    buffer_append_slice(context, stream_id_encode(id, room));
}

static void append_facts(const struct stream *stream, struct buffer *text)
{
    const struct stream_idmp_visitor visitor = {append_producer, append_pair, text};
    struct stream_idmp_facts facts;

    if (!stream_idmp_facts(stream, &facts))
        return;
    buffer_append(text, &facts.limits, sizeof(facts.limits));
    buffer_append(text, &facts.pair_count, sizeof(facts.pair_count));
    buffer_append(text, &facts.added, sizeof(facts.added));
    (void)stream_idmp_visit(stream, &visitor);
}

static void take_back(struct value value, const struct value_log *log)
{
    struct slice steps = buffer_slice(&log->steps);
    struct value_step step;

    while (value_steps_take(&steps, &step))
        stream_ops.undo(&value, &step);
}

/* Takes changes back, and takes that back, too. */
static void changes_are_taken_back(void **state)
{
    struct random random = test_random("changes_are_taken_back");
    struct stream *stream = stream_create();
    uint64_t now_ms = 100 * SECOND;

    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        struct buffer before = {0}, between = {0}, after = {0};
        struct value_log log = {0}, again = {0};

        append_facts(stream, &before);
        value_log_watch(&log, stream);
        for (uint64_t count = random_below(&random, 30); count != 0; count--) {
            struct stream_idmp_facts facts;

            if (random_below(&random, 20) == 0 || !stream_idmp_facts(stream, &facts))
                set_random_limits(&random, stream);
            record_random(&random, stream, &now_ms);
        }
        value_log_ignore(&log);
        append_facts(stream, &after);
        value_log_watch(&again, stream);
        take_back(stream_value(stream), &log);
        value_log_ignore(&again);
        stream_validate(stream);
        append_facts(stream, &between);
        assert_true(slice_equal(buffer_slice(&before), buffer_slice(&between)));
        between.size = 0;
        take_back(stream_value(stream), &again);
        append_facts(stream, &between);
        assert_true(slice_equal(buffer_slice(&after), buffer_slice(&between)));
        model_count = 0;
        buffer_fini(&before);
        buffer_fini(&between);
        buffer_fini(&after);
        buffer_fini(&log.steps);
        buffer_fini(&again.steps);
    }
    stream_destroy(&stream);
}

static void a_copy_has_the_same_pairs(void **state)
{
    struct random random = test_random("a_copy_has_the_same_pairs");
    struct stream *stream = stream_create(), *copy;
    struct buffer texts[2] = {{0}, {0}};
    uint64_t now_ms = 100 * SECOND;

    (void)state;
    model_count = 0;
    set_random_limits(&random, stream);
    for (unsigned i = 0; i < 200; i++)
        record_random(&random, stream, &now_ms);
    copy = stream_copy(stream);
    append_facts(stream, &texts[0]);
    append_facts(copy, &texts[1]);
    assert_true(slice_equal(buffer_slice(&texts[0]), buffer_slice(&texts[1])));
    stream_validate(copy);
    stream_destroy(&stream);
    stream_validate(copy);
    stream_destroy(&copy);
    buffer_fini(&texts[0]);
    buffer_fini(&texts[1]);
}

/* With each pair that comes, some that are over go, also of producers that add nothing. */
static void nothing_stays_that_is_over(void **state)
{
    struct stream *stream = stream_create();
    const struct stream_idmp_limits limits = {1, 10000};
    struct stream_idmp_facts facts;
    char rooms[2][32];

    (void)state;
    assert_true(stream_idmp_limit(stream, limits));
    stream_set_ids(stream, (struct stream_id){999, 9999}, STREAM_ID_LEAST, 0);
    for (unsigned i = 0; i < 3000; i++)
        stream_idmp_record(stream, name_of(i / 3, rooms[0]), name_of(i, rooms[1]), (struct stream_id){i / 3, i});
    assert_true(stream_idmp_facts(stream, &facts));
    assert_int_equal(facts.producer_count, 1000);
    stream_set_ids(stream, (struct stream_id){5000, 1200}, STREAM_ID_LEAST, 0);
    for (unsigned i = 0; i < 1200; i++)
        stream_idmp_record(stream, SLICE("last"), name_of(i, rooms[1]), (struct stream_id){5000, i});
    assert_true(stream_idmp_facts(stream, &facts));
    assert_int_equal(facts.producer_count, 1);
    assert_int_equal(facts.pair_count, 1200);
    stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_match_a_model),
        cmocka_unit_test(changes_are_taken_back),
        cmocka_unit_test(a_copy_has_the_same_pairs),
        cmocka_unit_test(nothing_stays_that_is_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
