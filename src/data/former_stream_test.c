#include "data/test_former_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { FIELDS_MOST = 3 };

/* ------------------------------------------------------------------------------------------------------ changes -- */

static size_t random_pairs(struct random *random, struct slice pairs[2 * FIELDS_MOST], char room[FIELDS_MOST][64])
{
    static const char *const names[] = {"a", "17", ""};
    const size_t count = random_below(random, 3) == 0 ? 1 + (size_t)random_below(random, FIELDS_MOST) : 2;

    for (size_t i = 0; i < count; i++) {
        pairs[2 * i] = slice_from_text(names[count == 2 ? i : random_below(random, countof(names))]);
        memset(room[i], 'x', 64);
        pairs[2 * i + 1] = slice_make(room[i], number_format_i64(room[i], (int64_t)random_below(random, 1000)));
        if (random_below(random, 3) == 0)
            pairs[2 * i + 1].size = random_below(random, 64);
    }
    return count;
}

static void add(struct random *random, struct stream *stream, struct stream_id id, const struct stream_limits *limits)
{
    struct slice pairs[2 * FIELDS_MOST];
    char room[FIELDS_MOST][64];
    const size_t count = random_pairs(random, pairs, room);

    assert_true(stream_insert(stream, id, pairs, count, limits) || stream_has(stream, id) ||
                stream_id_compare(id, stream_max_deleted_id(stream)) == 0);
}

static struct stream_id next_id(struct random *random, const struct stream *stream)
{
    struct stream_id id = stream_last_id(stream);

    if (random_below(random, 3) == 0)
        return (struct stream_id){id.ms + 1 + random_below(random, 3), random_below(random, 3)};
    id.seq += 1 + random_below(random, 2);
    return id;
}

static struct stream_id random_id(struct random *random, const struct stream *stream)
{
    const uint64_t most = stream_last_id(stream).ms + 1;

    return (struct stream_id){random_below(random, most), 1 + random_below(random, 6)};
}

static void delete_some(struct random *random, struct stream *stream)
{
    const uint64_t most = random_below(random, 10) == 0 ? 200 : 3;
    struct stream_iter iter;
    struct stream_id id;

    for (uint64_t count = random_below(random, most); count != 0; count--) {
        uint64_t field_count;
        bool is_there;

        stream_iter_init(&iter, stream, random_id(random, stream), STREAM_ID_MOST);
        is_there = stream_iter_next(&iter, &id, &field_count);
        stream_iter_fini(&iter);
        if (is_there)
            (void)stream_delete(stream, id);
    }
}

static void trim(struct random *random, struct stream *stream)
{
    struct stream_trim trim = {.by = random_below(random, 2) ? STREAM_TRIM_LENGTH : STREAM_TRIM_ID,
                               .whole_nodes = random_below(random, 2) != 0};

    if (random_below(random, 20) != 0) { /* or all */
        trim.length = stream_length(stream) - random_below(random, 1 + stream_length(stream) / 4);
        trim.id = random_id(random, stream);
        trim.id.ms /= 4;
    } else {
        trim.id = STREAM_ID_MOST;
    }
    if (random_below(random, 3) == 0)
        trim.removal_limit = 1 + random_below(random, 30);
    (void)stream_trim(stream, &trim);
}

static void change_groups(struct random *random, struct stream *stream)
{
    const struct slice name = random_below(random, 2) ? SLICE("one") : SLICE("other");
    const struct slice who = random_below(random, 2) ? SLICE("me") : SLICE("you");
    struct stream_group *group = stream_group_find(stream, name);
    struct stream_consumer *consumer;
    uint64_t pending_count;

    if (group == NULL)
        group = stream_group_create(stream, name, random_id(random, stream), STREAM_READ_UNKNOWN);
    creations += 2;
    consumer = stream_consumer_find(group, who);
    if (consumer == NULL)
        consumer = stream_consumer_create(group, who, (int64_t)random_below(random, 1000));
    stream_pending_assign(group, random_id(random, stream), consumer, 0, 1);
    stream_pending_assign(group, random_id(random, stream), consumer, 7, random_below(random, 9));
    stream_group_advance(stream, group, random_id(random, stream));
    (void)stream_pending_remove(group, random_id(random, stream));
    if (random_below(random, 10) == 0)
        removals += stream_consumer_destroy(group, who, &pending_count, NULL);
    if (random_below(random, 10) == 0)
        removals += stream_group_destroy(stream, name, NULL);
}

static void change(struct random *random, struct stream *stream, const struct stream_limits *limits, uint64_t wanted)
{
    const uint64_t dice = random_below(random, 100), length = stream_length(stream);

    if (dice < 30) {
        for (uint64_t count = 1 + random_below(random, length < wanted ? 20 : 3); count != 0; count--)
            add(random, stream, next_id(random, stream), limits);
    } else if (dice < 50) {
        add(random, stream, random_id(random, stream), limits);
    } else if (dice < 70) {
        delete_some(random, stream);
    } else if (dice < 80) {
        trim(random, stream);
    } else if (dice < 95) {
        change_groups(random, stream);
    } else if (random_below(random, 20) == 0) {
        struct stream_id last = stream_last_id(stream);

        last.seq += random_below(random, 3);
        stream_set_ids(stream, last, stream_max_deleted_id(stream), stream_entries_added(stream) + 1);
    }
}

/* -------------------------------------------------------------------------------------------------------- tests -- */

static void take_back(struct value value, const struct value_log *taken, const struct stream *before)
{
    struct slice steps = buffer_slice(&taken->steps);
    struct value_step step;

    while (value_steps_take(&steps, &step)) {
        stream_ops.undo(&value, &step);
        removals++; /* a group is made anew */
    }
    stream_validate(stream_of(value));
    compare_ids(stream_of(value), before);
    compare_entries(stream_of(value), before);
}

static void begin_anew(struct watched *watched, struct value value)
{
    if (watched->former != NULL)
        end(watched);
    begin(watched, value);
}

/* Changes that may be taken back, which is a change too. */
static void change_all(struct random *random, struct watched formers[FORMERS_MOST], struct value value,
                       const struct stream_limits *limits, uint64_t wanted)
{
    struct stream *before = random_below(random, 4) == 0 ? stream_copy(stream_of(value)) : NULL;
    struct value_log taken = {0};

    watch_all(formers, value);
    if (before != NULL)
        value_log_watch(&taken, value.data);
    for (uint64_t count = random_below(random, 4); count != 0; count--)
        change(random, stream_of(value), limits, wanted);
    value_log_ignore(&taken);
    keep_all(formers, value);
    if (before != NULL) {
        if (random_below(random, 4) == 0)
            begin_anew(&formers[random_below(random, FORMERS_MOST)], value); /* in between */
        watch_all(formers, value);
        take_back(value, &taken, before);
        keep_all(formers, value);
        compare_groups(stream_of(value), before);
    }
    stream_destroy(&before);
    buffer_fini(&taken.steps);
}

/* Some begin when others are halfway, some end halfway, and the last ones when the stream no longer changes. */
static void random_steps(struct random *random)
{
    const uint64_t wanted = 20 + random_below(random, 300);
    const struct stream_limits limits = {random_below(random, 2) ? 0 : 300, 1 + random_below(random, 20)};
    const uint64_t most = 1 + random_below(random, 10), gives_in = 1 + random_below(random, 10);
    struct value value = stream_value(stream_create());
    struct watched formers[FORMERS_MOST] = {0};

    while (stream_length(stream_of(value)) < wanted)
        add(random, stream_of(value), next_id(random, stream_of(value)), &limits);
    for (unsigned step = 0; step < 200; step++) {
        struct watched *one = &formers[random_below(random, countof(formers))];

        if (one->former == NULL)
            begin(one, value);
        else if (one->has_ended && random_below(random, 4) == 0)
            finish(one, value, 1);
        else if (random_below(random, 50) == 0)
            end(one);
        else if (random_below(random, gives_in) == 0)
            give(one, value, 1 + random_below(random, most));
        change_all(random, formers, value, &limits, wanted);
    }
    stream_validate(stream_of(value));
    for (unsigned i = 0; i < countof(formers); i++) {
        if (formers[i].former != NULL)
            finish(&formers[i], value, most);
    }
    stream_ops.destroy(value);
}

static void a_stream_is_given_as_it_was(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (unsigned i = 0; i < 300; i++)
        random_steps(&random);
}

static void append(struct watched *watched, struct value value, uint64_t ms, const struct stream_limits *limits)
{
    watch(watched, value);
    assert_true(stream_append(stream_of(value), (struct stream_id){ms, 0},
                              (const struct slice[]){SLICE("field"), SLICE("value")}, 1, limits));
    keep(watched, value);
}

/* Only one node was open at the moment: others that come take nothing. */
static void new_entries_take_no_memory(void **state)
{
    static const struct stream_limits limits = {0, 100};
    struct value value = numbers(1050, &limits);
    struct watched watched = {0};
    uint64_t bytes;

    (void)state;
    begin(&watched, value);
    bytes = watched.former->bytes;
    assert_in_range(bytes, 1, 1024);
    append(&watched, value, 2000, &limits);
    assert_in_range(watched.former->bytes, bytes + 100, bytes + 2000);
    bytes = watched.former->bytes;
    for (uint64_t i = 2001; i < 4000; i++)
        append(&watched, value, i, &limits);
    assert_int_equal(watched.former->bytes, bytes);
    finish(&watched, value, 3);
    stream_ops.destroy(value);
}

static void what_was_given_is_not_kept(void **state)
{
    static const struct stream_limits limits = {0, 100};
    struct stream_trim trim = {.by = STREAM_TRIM_LENGTH, .length = 550, .whole_nodes = true};
    struct value value = numbers(1050, &limits);
    struct watched watched = {0};
    uint64_t bytes;

    (void)state;
    begin(&watched, value);
    bytes = watched.former->bytes;
    give(&watched, value, 5);
    watch(&watched, value);
    assert_int_equal(stream_trim(stream_of(value), &trim), 500);
    keep(&watched, value);
    assert_int_equal(watched.former->bytes, bytes);
    trim.length = 0;
    watch(&watched, value);
    assert_int_equal(stream_trim(stream_of(value), &trim), 550);
    keep(&watched, value);
    assert_true(watched.former->bytes > bytes + 2000);
    finish(&watched, value, 1);
    stream_ops.destroy(value);
}

/* Its bytes end a piece, not only the number of nodes. */
static void large_nodes_end_a_piece(void **state)
{
    static const struct stream_limits limits = {0, 1000};
    struct value value = numbers(100 * 1000, &limits);
    struct watched watched = {0};
    uint64_t pieces = 0;

    (void)state;
    begin(&watched, value);
    for (; !watched.has_ended; pieces++)
        give(&watched, value, 1000);
    assert_in_range(pieces, 10, 40);
    finish(&watched, value, 1);
    stream_ops.destroy(value);
}

static void an_empty_stream_has_a_rest_only(void **state)
{
    static const struct stream_limits limits = {0, 100};
    struct value value = numbers(1, &limits);
    struct watched watched = {0};

    (void)state;
    assert_true(stream_delete(stream_of(value), (struct stream_id){1, 0}));
    (void)stream_group_create(stream_of(value), SLICE("group"), STREAM_ID_LEAST, 0);
    begin(&watched, value);
    assert_int_equal(watched.former->count, 0);
    append(&watched, value, 5, &limits);
    assert_true(stream_group_destroy(stream_of(value), SLICE("group"), NULL));
    finish(&watched, value, 1);
    stream_ops.destroy(value);
}

/* What a former does not look at is not written down for it, also beside one that wants all. */
static void groups_are_not_written_down_for_it(void **state)
{
    static const struct stream_limits limits = {0, 100};
    struct value value = numbers(1, &limits);
    struct watched watched = {0};
    struct value_log all = {0};
    uint64_t allocated;
    size_t size;

    (void)state;
    (void)stream_group_create(stream_of(value), SLICE("group"), STREAM_ID_LEAST, 0);
    begin(&watched, value);
    watch(&watched, value);
    assert_non_null(stream_group_find(stream_of(value), SLICE("group"))); /* its head is kept */
    allocated = mem_thread_allocated();
    assert_non_null(stream_group_find(stream_of(value), SLICE("group")));
    stream_set_ids(stream_of(value), (struct stream_id){9, 0}, STREAM_ID_LEAST, 9);
    assert_int_equal(mem_thread_allocated(), allocated);
    assert_int_equal(watched.log.steps.size, 0);
    value_log_watch(&all, value.data);
    assert_non_null(stream_group_find(stream_of(value), SLICE("group")));
    size = all.steps.size;
    assert_int_not_equal(size, 0);
    stream_set_ids(stream_of(value), (struct stream_id){10, 0}, STREAM_ID_LEAST, 9);
    assert_true(all.steps.size > size);
    assert_int_equal(watched.log.steps.size, 0);
    value_log_ignore(&all);
    buffer_fini(&all.steps);
    keep(&watched, value);
    finish(&watched, value, 1);
    stream_ops.destroy(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_given_as_it_was),     cmocka_unit_test(new_entries_take_no_memory),
        cmocka_unit_test(what_was_given_is_not_kept),      cmocka_unit_test(large_nodes_end_a_piece),
        cmocka_unit_test(an_empty_stream_has_a_rest_only), cmocka_unit_test(groups_are_not_written_down_for_it),
    };

    mem_thread_start();
    return cmocka_run_group_tests_name("former_stream", tests, NULL, NULL);
}
