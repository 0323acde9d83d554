#include "base/mem.h"
#include "base/test_seed.h"
#include "data/former.h"
#include "data/former_groups.h"
#include "data/stream_value.h"
#include "data/undo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { FORMERS_MOST = 4, FIELDS_MOST = 3, ID_MOST = 1000 };

/* ------------------------------------------------------------------------------------------ a former, and a copy -- */

struct watched {
    struct value_log log;
    struct former *former;             /* NULL: there is none */
    struct stream *copy;               /* of the moment */
    struct stream *given;              /* what was given */
    uint64_t given_parts, given_bytes; /* in the last piece */
    struct stream_group *group;        /* that is being given */
    struct stream_consumer *consumer;
    uint64_t pending_left, consumers_left, owned_left; /* that were announced */
    unsigned removals;                                 /* as many as there were before */
    bool has_ids, has_ended;
};

static unsigned removals; /* of groups and consumers */

static void begin(struct watched *watched, struct value value)
{
    assert_true(former_suits(&stream_ops, value));
    watched->former = former_create(&stream_ops, value);
    watched->copy = stream_copy(stream_of(value));
    watched->given = stream_create();
    watched->has_ended = watched->has_ids = false;
    watched->pending_left = watched->consumers_left = watched->owned_left = 0;
    watched->removals = removals;
    watched->log.ignored = stream_ops.former->ignored;
    assert_int_equal(watched->former->count, stream_node_count(watched->copy));
}

static void end(struct watched *watched)
{
    former_detach(watched->former);
    former_destroy(&watched->former);
    assert_null(watched->former);
    stream_destroy(&watched->copy);
    stream_destroy(&watched->given);
    buffer_fini(&watched->log.steps);
}

static void take_numbers(const struct former_element *element, void *numbers, size_t size)
{
    assert_int_equal(element->second.size, size);
    memcpy(numbers, element->second.data, size);
}

static void load_group(struct watched *watched, const struct former_element *element)
{
    struct stream_part_group head;

    assert_int_equal(watched->pending_left + watched->consumers_left + watched->owned_left, 0);
    take_numbers(element, &head, sizeof(head));
    watched->group = stream_group_create(watched->given, element->first, head.last_id, head.entries_read);
    assert_non_null(watched->group);
    watched->consumer = stream_consumer_create(watched->group, SLICE("not known yet"), 0);
    watched->pending_left = head.pending_count;
}

static void load_pending(struct watched *watched, const struct former_element *element)
{
    const struct stream_id id = stream_id_decode(element->first.data);
    struct stream_part_pending one;

    assert_int_not_equal(watched->pending_left--, 0);
    take_numbers(element, &one, sizeof(one));
    assert_null(stream_pending_find(watched->group, id));
    stream_pending_assign(watched->group, id, watched->consumer, one.delivery_ms, one.delivery_count);
}

static void load_consumers(struct watched *watched, const struct former_element *element)
{
    struct stream_part_consumers head;

    assert_int_equal(watched->pending_left, 0);
    take_numbers(element, &head, sizeof(head));
    watched->consumers_left = head.count;
}

static void load_consumer(struct watched *watched, const struct former_element *element)
{
    struct stream_part_consumer head;

    assert_int_not_equal(watched->consumers_left--, 0);
    assert_int_equal(watched->owned_left, 0);
    take_numbers(element, &head, sizeof(head));
    watched->consumer = stream_consumer_create(watched->group, element->first, head.seen_ms);
    watched->consumer->active_ms = head.active_ms;
    watched->owned_left = head.pending_count;
}

static void load_owned(struct watched *watched, const struct former_element *element)
{
    for (size_t at = 0; at < element->first.size; at += STREAM_ID_BYTES) {
        const struct stream_id id = stream_id_decode(element->first.data + at);
        const struct stream_pending *pending = stream_pending_find(watched->group, id);

        assert_int_not_equal(watched->owned_left--, 0);
        assert_true(pending != NULL && slice_equal(stream_consumer_name(pending->consumer), SLICE("not known yet")));
        stream_pending_assign(watched->group, id, watched->consumer, pending->delivery_ms, pending->delivery_count);
    }
}

static void load_part(struct watched *watched, const struct former_element *element)
{
    assert_int_equal(watched->has_ids, element->part != STREAM_PART_IDS);
    if (element->part == STREAM_PART_IDS)
        watched->has_ids = true;
    else if (element->part == STREAM_PART_GROUP)
        load_group(watched, element);
    else if (element->part == STREAM_PART_PENDING)
        load_pending(watched, element);
    else if (element->part == STREAM_PART_CONSUMERS)
        load_consumers(watched, element);
    else if (element->part == STREAM_PART_CONSUMER)
        load_consumer(watched, element);
    else
        load_owned(watched, element);
}

static void load(const struct former_element *element, void *context)
{
    struct watched *watched = context;

    watched->given_parts++;
    watched->given_bytes += element->first.size + element->second.size;
    if (element->part != STREAM_PART_NODE) {
        load_part(watched, element);
        return;
    }
    assert_int_equal(element->first.size, STREAM_ID_BYTES);
    assert_true(stream_load_node(watched->given, stream_id_decode(element->first.data), element->second));
}

static void give(struct watched *watched, struct value value, uint64_t most)
{
    if (watched->has_ended)
        return;
    watched->given_parts = watched->given_bytes = 0;
    watched->has_ended = !former_give(watched->former, value, most, load, watched);
    assert_true(watched->given_parts <= most);
    assert_true(watched->given_bytes <= 2 * FORMER_PIECE_BYTES);
    assert_true(!watched->has_ended || watched->has_ids);
}

static void assert_id(struct stream_id id, struct stream_id expected)
{
    assert_int_equal(id.ms, expected.ms);
    assert_int_equal(id.seq, expected.seq);
}

static void compare_ids(const struct stream *stream, const struct stream *expected)
{
    assert_int_equal(stream_length(stream), stream_length(expected));
    assert_int_equal(stream_entries_added(stream), stream_entries_added(expected));
    assert_id(stream_first_id(stream), stream_first_id(expected));
    assert_id(stream_last_id(stream), stream_last_id(expected));
    assert_id(stream_max_deleted_id(stream), stream_max_deleted_id(expected));
}

static void compare_pending(const struct radix *pending, const struct radix *expected)
{
    struct radix_iter a, b;
    bool more_a, more_b;

    radix_iter_init(&a, pending);
    radix_iter_init(&b, expected);
    more_a = radix_seek(&a, RADIX_FIRST, SLICE_EMPTY);
    more_b = radix_seek(&b, RADIX_FIRST, SLICE_EMPTY);
    for (; more_a && more_b; more_a = radix_next(&a), more_b = radix_next(&b)) {
        const struct stream_pending *one = a.value, *other = b.value;

        assert_true(slice_equal(radix_iter_key(&a), radix_iter_key(&b)));
        assert_int_equal(one->delivery_count, other->delivery_count);
        assert_int_equal(one->delivery_ms, other->delivery_ms);
        assert_true(slice_equal(stream_consumer_name(one->consumer), stream_consumer_name(other->consumer)));
    }
    assert_false(more_a || more_b);
    radix_iter_fini(&a);
    radix_iter_fini(&b);
}

static void compare_groups(const struct stream *stream, const struct stream *expected)
{
    struct radix_iter groups, consumers;

    assert_int_equal(radix_count(stream_groups(stream)), radix_count(stream_groups(expected)));
    radix_iter_init(&groups, stream_groups(expected));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        const struct stream_group *other = groups.value, *one = stream_group_find(stream, radix_iter_key(&groups));

        assert_non_null(one);
        assert_id(one->last_id, other->last_id);
        assert_int_equal(one->entries_read, other->entries_read);
        assert_int_equal(radix_count(one->consumers), radix_count(other->consumers));
        compare_pending(one->pending, other->pending);
        radix_iter_init(&consumers, other->consumers);
        for (bool any = radix_seek(&consumers, RADIX_FIRST, SLICE_EMPTY); any; any = radix_next(&consumers)) {
            const struct stream_consumer *consumer = stream_consumer_find(one, radix_iter_key(&consumers));

            assert_non_null(consumer);
            assert_int_equal(consumer->seen_ms, ((const struct stream_consumer *)consumers.value)->seen_ms);
            assert_int_equal(consumer->active_ms, ((const struct stream_consumer *)consumers.value)->active_ms);
            compare_pending(consumer->pending, ((const struct stream_consumer *)consumers.value)->pending);
        }
        radix_iter_fini(&consumers);
    }
    radix_iter_fini(&groups);
}

static void compare_entries(const struct stream *stream, const struct stream *expected)
{
    struct stream_id id, other_id;
    struct stream_iter a, b;
    uint64_t count, other_count;

    stream_iter_init(&a, stream, STREAM_ID_LEAST, STREAM_ID_MOST);
    stream_iter_init(&b, expected, STREAM_ID_LEAST, STREAM_ID_MOST);
    while (stream_iter_next(&b, &other_id, &other_count)) {
        assert_true(stream_iter_next(&a, &id, &count));
        assert_id(id, other_id);
        assert_int_equal(count, other_count);
        for (; count != 0; count--) {
            struct slice field, value, other_field, other_value;

            stream_iter_pair(&a, &field, &value);
            stream_iter_pair(&b, &other_field, &other_value);
            assert_true(slice_equal(field, other_field) && slice_equal(value, other_value));
        }
    }
    assert_false(stream_iter_next(&a, &id, &count));
    stream_iter_fini(&a);
    stream_iter_fini(&b);
}

/* Beside the rest it has what went by in groups, until its end. */
static uint64_t bytes_expected(const struct watched *watched)
{
    uint64_t bytes = stream_memory_bytes(stream_of(former_rest(watched->former))) + 1024;
    struct radix_iter groups;

    radix_iter_init(&groups, stream_groups(watched->copy));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        const struct stream_group *group = groups.value;

        bytes += 1024 + 128 * radix_count(group->consumers) + 20 * radix_count(group->pending);
    }
    radix_iter_fini(&groups);
    return bytes;
}

static void compare_rest(const struct stream *rest, const struct stream *expected)
{
    struct radix_iter groups;

    compare_ids(rest, expected);
    assert_int_equal(radix_count(stream_groups(rest)), radix_count(stream_groups(expected)));
    radix_iter_init(&groups, stream_groups(expected));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        const struct stream_group *other = groups.value, *one = stream_group_find(rest, radix_iter_key(&groups));

        assert_id(one->last_id, other->last_id);
        assert_int_equal(one->entries_read, other->entries_read);
    }
    radix_iter_fini(&groups);
}

static void drop_unknown(struct stream *given)
{
    struct radix_iter groups;

    radix_iter_init(&groups, stream_groups(given));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        uint64_t pending_count;

        assert_true(stream_consumer_destroy(groups.value, SLICE("not known yet"), &pending_count));
        assert_int_equal(pending_count, 0);
    }
    radix_iter_fini(&groups);
}

/* Gives the others, and looks at all. */
static void finish(struct watched *watched, struct value value, uint64_t most)
{
    const struct stream *rest = stream_of(former_rest(watched->former));

    while (!watched->has_ended)
        give(watched, value, most);
    assert_int_equal(stream_node_count(watched->given), watched->former->count);
    assert_int_equal(watched->pending_left + watched->consumers_left + watched->owned_left, 0);
    drop_unknown(watched->given);
    compare_rest(rest, watched->copy);
    compare_groups(watched->given, watched->copy);
    stream_set_ids(watched->given, stream_last_id(rest), stream_max_deleted_id(rest), stream_entries_added(rest));
    stream_validate(watched->given);
    compare_ids(watched->given, watched->copy);
    compare_entries(watched->given, watched->copy);
    assert_true(watched->removals != removals || watched->former->bytes <= bytes_expected(watched));
    end(watched);
}

static void watch(struct watched *watched, struct value value)
{
    value_log_watch(&watched->log, value.data);
}

static void keep(struct watched *watched, struct value value)
{
    assert_ptr_equal(watched->log.data, value.data);
    former_keep(watched->former, value, buffer_slice(&watched->log.steps));
    buffer_clear(&watched->log.steps);
    value_log_ignore(&watched->log);
}

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
    consumer = stream_consumer_find(group, who);
    if (consumer == NULL)
        consumer = stream_consumer_create(group, who, (int64_t)random_below(random, 1000));
    stream_pending_assign(group, random_id(random, stream), consumer, 0, 1);
    stream_pending_assign(group, random_id(random, stream), consumer, 7, random_below(random, 9));
    stream_group_advance(stream, group, random_id(random, stream));
    (void)stream_pending_remove(group, random_id(random, stream));
    if (random_below(random, 10) == 0)
        removals += stream_consumer_destroy(group, who, &pending_count);
    if (random_below(random, 10) == 0)
        removals += stream_group_destroy(stream, name);
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

static void watch_all(struct watched formers[FORMERS_MOST], struct value value)
{
    for (unsigned i = 0; i < FORMERS_MOST; i++) {
        if (formers[i].former != NULL)
            watch(&formers[i], value);
    }
}

static void keep_all(struct watched formers[FORMERS_MOST], struct value value)
{
    for (unsigned i = 0; i < FORMERS_MOST; i++) {
        if (formers[i].former != NULL)
            keep(&formers[i], value);
    }
}

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

static struct value numbers(uint64_t count, const struct stream_limits *limits)
{
    struct value value = stream_value(stream_create());

    for (uint64_t i = 1; i <= count; i++)
        assert_true(stream_append(stream_of(value), (struct stream_id){i, 0},
                                  (const struct slice[]){SLICE("field"), SLICE("value")}, 1, limits));
    return value;
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
    assert_true(stream_group_destroy(stream_of(value), SLICE("group")));
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

/* ------------------------------------------------------------------------------------------- what is pending -- */

enum { PENDING_IDS = 3000, STEPS = 100 };

/* Each of these has to occur. */
enum act {
    DELIVER,
    DELIVER_AGAIN,
    CLAIM,
    CLAIM_MANY, /* which makes consumers with much */
    ACKNOWLEDGE,
    ACKNOWLEDGE_MANY,
    ACKNOWLEDGE_AND_DELIVER,
    CREATE_CONSUMER,
    REMOVE_SMALL_CONSUMER,
    REMOVE_LARGE_CONSUMER,
    CREATE_GROUP,
    REMOVE_GROUP,
    MOVE_GROUP,
    SEE_CONSUMER,
    UNDO,
    ACTS
};

/* A consumer with so much is left to the formers when it is removed. */
enum { LARGE_CONSUMER = 1024 };

struct scene {
    struct random *random;
    struct stream *stream;
    struct stream_group *group; /* NULL: there is none of the name that was drawn */
    struct slice group_name, consumer_name;
    struct stream_consumer *consumer; /* likewise */
    unsigned counts[ACTS];
};

static void draw(struct scene *scene)
{
    static const char *const groups[] = {"one", "", "other"}, *const consumers[] = {"", "me", "me too", "you"};

    scene->group_name = slice_from_text(groups[random_below(scene->random, 8) % 5 % countof(groups)]);
    scene->consumer_name = slice_from_text(consumers[random_below(scene->random, countof(consumers))]);
    scene->group = stream_group_find(scene->stream, scene->group_name);
    scene->consumer = scene->group != NULL ? stream_consumer_find(scene->group, scene->consumer_name) : NULL;
}

static struct stream_id draw_id(struct scene *scene)
{
    return (struct stream_id){1 + random_below(scene->random, PENDING_IDS), 7};
}

static void assign(struct scene *scene, struct stream_id id)
{
    stream_pending_assign(scene->group, id, scene->consumer, (int64_t)random_below(scene->random, 1000),
                          random_below(scene->random, 5));
}

/* The next one that is pending, from anywhere. */
static const struct stream_pending *draw_pending(struct scene *scene, struct stream_id *id)
{
    const struct stream_pending *found = NULL;
    struct radix_iter iter;

    radix_iter_init(&iter, scene->group->pending);
    if (stream_pending_seek(&iter, draw_id(scene))) {
        *id = stream_pending_id(&iter);
        found = iter.value;
    }
    radix_iter_fini(&iter);
    return found;
}

static void act_on_many(struct scene *scene, bool acknowledges)
{
    const uint64_t first = random_below(scene->random, PENDING_IDS), share = 1 + random_below(scene->random, 3);
    uint64_t left = random_below(scene->random, 2) ? 1500 : 30;

    for (uint64_t ms = first; left != 0; ms++, left--) {
        const struct stream_id id = {1 + ms % PENDING_IDS, 7};

        if (random_below(scene->random, share) != 0)
            continue;
        if (acknowledges)
            (void)stream_pending_remove(scene->group, id);
        else
            assign(scene, id);
    }
}

static bool remove_consumer(struct scene *scene, bool is_large)
{
    const uint64_t expected = radix_count(scene->consumer->pending);
    uint64_t count;

    if ((expected >= LARGE_CONSUMER) != is_large)
        return false;
    assert_true(stream_consumer_destroy(scene->group, scene->consumer_name, &count));
    assert_int_equal(count, expected);
    removals++;
    return true;
}

static bool deliver_again(struct scene *scene)
{
    const struct stream_pending *pending;
    struct stream_id id;

    pending = draw_pending(scene, &id);
    if (pending == NULL)
        return false;
    stream_pending_assign(scene->group, id, pending->consumer, 1000 + pending->delivery_ms,
                          pending->delivery_count + 1);
    return true;
}

static bool claim(struct scene *scene)
{
    const struct stream_pending *pending;
    struct stream_id id;

    pending = draw_pending(scene, &id);
    if (pending == NULL || pending->consumer == scene->consumer)
        return false;
    assign(scene, id);
    return true;
}

static bool acknowledge(struct scene *scene, bool delivers)
{
    struct stream_id id;

    if (draw_pending(scene, &id) == NULL)
        return false;
    assert_true(stream_pending_remove(scene->group, id));
    if (delivers)
        assign(scene, id);
    return true;
}

static bool act_on_consumer(struct scene *scene, enum act act)
{
    const struct stream_id id = draw_id(scene);

    switch (act) {
    case DELIVER:
        if (stream_pending_find(scene->group, id) != NULL)
            return false;
        assign(scene, id);
        return true;
    case DELIVER_AGAIN:
        return deliver_again(scene);
    case CLAIM:
        return claim(scene);
    case CLAIM_MANY:
    case ACKNOWLEDGE_MANY:
        act_on_many(scene, act == ACKNOWLEDGE_MANY);
        return true;
    case ACKNOWLEDGE:
    case ACKNOWLEDGE_AND_DELIVER:
        return acknowledge(scene, act == ACKNOWLEDGE_AND_DELIVER);
    case REMOVE_SMALL_CONSUMER:
    case REMOVE_LARGE_CONSUMER:
        return remove_consumer(scene, act == REMOVE_LARGE_CONSUMER);
    case SEE_CONSUMER:
        scene->consumer->seen_ms++;
        scene->consumer->active_ms = (int64_t)random_below(scene->random, 1000);
        return true;
    default:
        return false;
    }
}

/* False: it could not be done. */
static bool do_act(struct scene *scene, enum act act)
{
    draw(scene);
    if (act == CREATE_GROUP)
        return stream_group_create(scene->stream, scene->group_name, draw_id(scene),
                                   (int64_t)random_below(scene->random, 9)) != NULL;
    if (scene->group == NULL)
        return false;
    if (act == REMOVE_GROUP) {
        removals++;
        return stream_group_destroy(scene->stream, scene->group_name);
    }
    if (act == MOVE_GROUP) {
        scene->group->last_id = draw_id(scene);
        scene->group->entries_read++;
        return true;
    }
    if (act == CREATE_CONSUMER)
        return stream_consumer_create(scene->group, scene->consumer_name, (int64_t)random_below(scene->random, 99)) !=
               NULL;
    return scene->consumer != NULL && act_on_consumer(scene, act);
}

/* What removes much is rare. */
static enum act draw_act(struct scene *scene)
{
    const enum act act = (enum act)random_below(scene->random, ACTS);
    const bool is_rare = act == REMOVE_GROUP || act == ACKNOWLEDGE_MANY;

    return is_rare && random_below(scene->random, 6) != 0 ? CREATE_CONSUMER : act;
}

static void change_scene(struct scene *scene, struct watched formers[FORMERS_MOST], struct value value)
{
    enum act act = draw_act(scene);
    struct value_log taken = {0};

    watch_all(formers, value);
    if (act == UNDO && random_below(scene->random, 4) == 0)
        value_log_watch(&taken, value.data);
    for (uint64_t count = 1 + random_below(scene->random, 4); count != 0; count--) {
        if (act != UNDO)
            scene->counts[act] += do_act(scene, act);
        act = draw_act(scene);
    }
    value_log_ignore(&taken);
    keep_all(formers, value);
    if (taken.steps.size != 0) {
        struct slice steps = buffer_slice(&taken.steps);
        struct value_step step;

        watch_all(formers, value);
        while (value_steps_take(&steps, &step))
            stream_ops.undo(&value, &step);
        keep_all(formers, value);
        removals++;
        scene->counts[UNDO]++;
    }
    buffer_fini(&taken.steps);
}

static void scene_init(struct scene *scene, struct random *random, struct stream *stream)
{
    scene->random = random;
    scene->stream = stream;
    for (unsigned i = 0; i < 30; i++) {
        (void)do_act(scene, CREATE_GROUP);
        (void)do_act(scene, CREATE_CONSUMER);
    }
    for (unsigned i = 0; i < 6; i++)
        (void)do_act(scene, CLAIM_MANY);
}

static void play_scene(struct scene *scene, struct random *random)
{
    const uint64_t most = 1 + random_below(random, 600), gives_in = 1 + random_below(random, 4);
    struct value value = stream_value(stream_create());
    struct watched formers[FORMERS_MOST] = {0};

    scene_init(scene, random, stream_of(value));
    for (unsigned step = 0; step < STEPS; step++) {
        struct watched *one = &formers[random_below(random, countof(formers))];

        if (one->former == NULL && random_below(random, 4) == 0)
            begin(one, value);
        else if (one->former != NULL && random_below(random, 60) == 0)
            end(one);
        else if (one->former != NULL && one->has_ended)
            finish(one, value, 1);
        else if (one->former != NULL && random_below(random, gives_in) == 0)
            give(one, value, 1 + random_below(random, most));
        change_scene(scene, formers, value);
    }
    stream_validate(stream_of(value));
    for (unsigned i = 0; i < countof(formers); i++) {
        if (formers[i].former != NULL)
            finish(&formers[i], value, most);
    }
    stream_ops.destroy(value);
}

static void what_is_pending_is_given_as_it_was(void **state)
{
    struct random random = test_random(__func__);
    struct scene scene = {0};

    (void)state;
    for (unsigned i = 0; i < 30; i++)
        play_scene(&scene, &random);
    for (unsigned act = 0; act < ACTS; act++)
        assert_true(scene.counts[act] >= 2);
}

static struct stream_group *group_of(struct value value, uint64_t pending_count)
{
    struct stream_group *group = stream_group_create(stream_of(value), SLICE("group"), STREAM_ID_LEAST, 0);
    struct stream_consumer *consumer = stream_consumer_create(group, SLICE("consumer"), 0);

    for (uint64_t i = 1; i <= pending_count; i++)
        stream_pending_assign(group, (struct stream_id){i, 0}, consumer, 5, 1);
    return group;
}

static struct stream_consumer *new_consumer(struct stream_group *group)
{
    struct stream_consumer *consumer = stream_consumer_find(group, SLICE("new"));

    return consumer != NULL ? consumer : stream_consumer_create(group, SLICE("new"), 0);
}

/* What a consumer or a group has is not copied when it is removed: all of it, also what was given, counts. */
static void what_is_removed_is_left_to_the_former(void **state)
{
    enum { PENDING = 100 * 1000 };
    static const struct stream_limits limits = {0, 100};
    struct value value = numbers(1, &limits);
    struct stream_group *group = group_of(value, PENDING);
    struct watched watched = {0};
    uint64_t bytes, added, count;

    (void)state;
    begin(&watched, value);
    assert_in_range(watched.former->bytes, 1, 4096);
    give(&watched, value, 10000);
    bytes = watched.former->bytes;
    added = radix_memory_bytes(group->pending) + PENDING * mem_good_size(sizeof(struct stream_pending));
    watch(&watched, value);
    assert_true(stream_consumer_destroy(group, SLICE("consumer"), &count));
    keep(&watched, value);
    assert_int_equal(count, PENDING);
    assert_in_range(watched.former->bytes, bytes + added, bytes + added + 1024);
    watch(&watched, value);
    for (uint64_t i = 1; i <= 2 * PENDING; i++)
        stream_pending_assign(group, (struct stream_id){i, 0}, new_consumer(group), 5, 1);
    keep(&watched, value);
    assert_in_range(watched.former->bytes, bytes + added, bytes + added + 1024); /* it is known, or of no concern */
    bytes = watched.former->bytes;
    watch(&watched, value);
    assert_true(stream_group_destroy(stream_of(value), SLICE("group")));
    keep(&watched, value);
    assert_true(watched.former->bytes >= bytes + 2 * added);
    removals++;
    finish(&watched, value, 256);
    stream_ops.destroy(value);
}

/* What is delivered behind the last one that was pending takes nothing, and what was given neither. */
static void only_what_is_left_to_give_is_kept(void **state)
{
    static const struct stream_limits limits = {0, 100};
    struct value value = numbers(1, &limits);
    struct stream_group *group = group_of(value, 3000);
    struct stream_consumer *consumer = stream_consumer_find(group, SLICE("consumer"));
    struct watched watched = {0};
    uint64_t bytes;

    (void)state;
    begin(&watched, value);
    give(&watched, value, 1003); /* with a node, the ids and the head of the group */
    bytes = watched.former->bytes;
    watch(&watched, value);
    for (uint64_t i = 3001; i <= 6000; i++)
        stream_pending_assign(group, (struct stream_id){i, 0}, consumer, 9, 9);
    for (uint64_t i = 1; i <= 1000; i++)
        assert_true(stream_pending_remove(group, (struct stream_id){i, 0}));
    keep(&watched, value);
    assert_int_equal(watched.former->bytes, bytes);
    watch(&watched, value);
    assert_true(stream_pending_remove(group, (struct stream_id){1001, 0}));
    assert_true(stream_pending_remove(group, (struct stream_id){3000, 0}));
    keep(&watched, value);
    assert_in_range(watched.former->bytes, bytes + 48, bytes + 1024);
    finish(&watched, value, 7);
    stream_ops.destroy(value);
}

/* Entries that were not pending then take time, too: they end a piece. */
static void what_was_not_pending_ends_a_piece(void **state)
{
    static const struct stream_limits limits = {0, 100};
    struct value value = numbers(1, &limits);
    struct stream_group *group = group_of(value, 1);
    struct stream_consumer *consumer = stream_consumer_find(group, SLICE("consumer"));
    struct watched watched = {0};
    unsigned pieces = 0;

    (void)state;
    stream_pending_assign(group, (struct stream_id){10000, 0}, consumer, 1, 1);
    begin(&watched, value);
    watch(&watched, value);
    for (uint64_t i = 2; i < 10000; i++)
        stream_pending_assign(group, (struct stream_id){i, 0}, consumer, 9, 9);
    keep(&watched, value);
    for (; !watched.has_ended; pieces++)
        give(&watched, value, 100);
    assert_in_range(pieces, 100, 110);
    finish(&watched, value, 1);
    stream_ops.destroy(value);
}

/* A value that was taken out of the keyspace is nobody's but the formers': they do not look at each other. */
static void a_taken_value_needs_no_detaching(void **state)
{
    static const struct stream_limits limits = {0, 100};
    struct value value = numbers(1, &limits);
    struct stream_group *group = group_of(value, 3000);
    struct watched two[2] = {0};
    struct stream *copy;

    (void)state;
    begin(&two[0], value);
    begin(&two[1], value);
    watch(&two[0], value);
    assert_true(stream_pending_remove(group, (struct stream_id){7, 0}));
    keep(&two[0], value);
    copy = stream_copy(stream_of(value)); /* of its own, nobody's concern */
    assert_true(stream_group_destroy(copy, SLICE("group")));
    stream_destroy(&copy);
    for (unsigned i = 0; i < 2; i++) {
        give(&two[i], value, 100);
        former_destroy(&two[i].former);
        stream_destroy(&two[i].copy);
        stream_destroy(&two[i].given);
        buffer_fini(&two[i].log.steps);
    }
    stream_ops.destroy(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_given_as_it_was),        cmocka_unit_test(new_entries_take_no_memory),
        cmocka_unit_test(what_was_given_is_not_kept),         cmocka_unit_test(large_nodes_end_a_piece),
        cmocka_unit_test(an_empty_stream_has_a_rest_only),    cmocka_unit_test(groups_are_not_written_down_for_it),
        cmocka_unit_test(what_is_pending_is_given_as_it_was), cmocka_unit_test(what_is_removed_is_left_to_the_former),
        cmocka_unit_test(only_what_is_left_to_give_is_kept),  cmocka_unit_test(a_taken_value_needs_no_detaching),
        cmocka_unit_test(what_was_not_pending_ends_a_piece),
    };

    mem_thread_start();
    return cmocka_run_group_tests_name("former_stream", tests, NULL, NULL);
}
