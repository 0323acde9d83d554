/* A former of a stream beside a copy of the moment, and a stream made from what is given: for tests. */
#pragma once

#include "base/assert.h"
#include "base/mem.h"
#include "base/test_seed.h"
#include "data/former.h"
#include "data/former_groups.h"
#include "data/stream_value.h"
#include "data/undo.h"

#include <string.h>

enum { FORMERS_MOST = 4 };

struct watched {
    struct value_log log;
    struct former *former;             /* NULL: there is none */
    struct stream *copy;               /* of the moment */
    struct stream *given;              /* what was given */
    uint64_t given_parts, given_bytes; /* in the last piece */
    struct stream_group *group;        /* that is being given */
    struct stream_consumer *consumer;
    uint64_t pending_left, consumers_left, owned_left; /* that were announced */
    uint64_t groups_left;                              /* likewise */
    unsigned removals, creations;                      /* as many as there were before */
    bool is_prepared, has_ids, has_ended;
};

static unsigned removals, creations; /* of groups and consumers, in this test */

static inline void begin(struct watched *watched, struct value value)
{
    assert(former_suits(&stream_ops, value));
    watched->former = former_create(&stream_ops, value);
    watched->copy = stream_copy(stream_of(value));
    watched->given = stream_create();
    watched->has_ended = watched->has_ids = watched->is_prepared = false;
    watched->pending_left = watched->consumers_left = watched->owned_left = 0;
    watched->removals = removals;
    watched->creations = creations;
    watched->log.ignored = stream_ops.former->ignored;
    assert(watched->former->count == stream_node_count(watched->copy));
}

static inline void end(struct watched *watched)
{
    if (!watched->former->is_taken)
        former_detach(watched->former);
    former_destroy(&watched->former);
    assert(watched->former == NULL);
    stream_destroy(&watched->copy);
    stream_destroy(&watched->given);
    buffer_fini(&watched->log.steps);
}

static inline void take_numbers(const struct former_element *element, void *numbers, size_t size)
{
    assert(element->second.size == size);
    memcpy(numbers, element->second.data, size);
}

static inline void load_ids(struct watched *watched, const struct former_element *element)
{
    struct stream_part_ids head;

    take_numbers(element, &head, sizeof(head));
    watched->groups_left = head.group_count;
    watched->has_ids = true;
}

static inline void load_group(struct watched *watched, const struct former_element *element)
{
    struct stream_part_group head;

    assert(watched->pending_left + watched->consumers_left + watched->owned_left == 0);
    assert(watched->groups_left != 0);
    watched->groups_left--;
    take_numbers(element, &head, sizeof(head));
    watched->group = stream_group_create(watched->given, element->first, head.last_id, head.entries_read);
    assert(watched->group != NULL);
    watched->consumer = stream_consumer_create(watched->group, SLICE("not known yet"), 0);
    watched->pending_left = head.pending_count;
}

static inline void load_pending(struct watched *watched, const struct former_element *element)
{
    const struct stream_id id = stream_id_decode(element->first.data);
    struct stream_part_pending one;

    assert(watched->pending_left != 0);
    watched->pending_left--;
    take_numbers(element, &one, sizeof(one));
    assert(stream_pending_find(watched->group, id) == NULL);
    stream_pending_assign(watched->group, id, watched->consumer, one.delivery_ms, one.delivery_count);
}

static inline void load_consumers(struct watched *watched, const struct former_element *element)
{
    struct stream_part_consumers head;

    assert(watched->pending_left == 0);
    take_numbers(element, &head, sizeof(head));
    watched->consumers_left = head.count;
}

static inline void load_consumer(struct watched *watched, const struct former_element *element)
{
    struct stream_part_consumer head;

    assert(watched->consumers_left != 0);
    watched->consumers_left--;
    assert(watched->owned_left == 0);
    take_numbers(element, &head, sizeof(head));
    watched->consumer = stream_consumer_create(watched->group, element->first, head.seen_ms);
    watched->consumer->active_ms = head.active_ms;
    watched->owned_left = head.pending_count;
}

static inline void load_owned(struct watched *watched, const struct former_element *element)
{
    for (size_t at = 0; at < element->first.size; at += STREAM_ID_BYTES) {
        const struct stream_id id = stream_id_decode(element->first.data + at);
        const struct stream_pending *pending = stream_pending_find(watched->group, id);

        assert(watched->owned_left != 0);
        watched->owned_left--;
        assert(pending != NULL && slice_equal(stream_consumer_name(pending->consumer), SLICE("not known yet")));
        stream_pending_assign(watched->group, id, watched->consumer, pending->delivery_ms, pending->delivery_count);
    }
}

static inline void load_part(struct watched *watched, const struct former_element *element)
{
    assert(watched->has_ids == (element->part != STREAM_PART_IDS));
    if (element->part == STREAM_PART_IDS)
        load_ids(watched, element);
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

static inline void load(const struct former_element *element, void *context)
{
    struct watched *watched = context;
    bool is_good;

    watched->given_parts++;
    watched->given_bytes += element->first.size + element->second.size;
    if (element->part != STREAM_PART_NODE) {
        load_part(watched, element);
        return;
    }
    assert(element->first.size == STREAM_ID_BYTES);
    is_good = stream_load_node(watched->given, stream_id_decode(element->first.data), element->second);
    assert(is_good);
}

/* The next piece, of what is given or of what is looked at before. */
static inline void give(struct watched *watched, struct value value, uint64_t most)
{
    if (!watched->is_prepared)
        watched->is_prepared = !former_prepare(watched->former, value, most);
    if (watched->has_ended || !watched->is_prepared)
        return;
    watched->given_parts = watched->given_bytes = 0;
    watched->has_ended = !former_give(watched->former, value, most, load, watched);
    assert(watched->given_parts <= most);
    assert(watched->given_bytes <= 2 * FORMER_PIECE_BYTES);
    assert(!watched->has_ended || watched->has_ids);
}

static inline void assert_id(struct stream_id id, struct stream_id expected)
{
    assert(id.ms == expected.ms);
    assert(id.seq == expected.seq);
}

static inline void compare_ids(const struct stream *stream, const struct stream *expected)
{
    assert(stream_length(stream) == stream_length(expected));
    assert(stream_entries_added(stream) == stream_entries_added(expected));
    assert_id(stream_first_id(stream), stream_first_id(expected));
    assert_id(stream_last_id(stream), stream_last_id(expected));
    assert_id(stream_max_deleted_id(stream), stream_max_deleted_id(expected));
}

static inline void compare_pending(const struct radix *pending, const struct radix *expected)
{
    struct radix_iter a, b;
    bool more_a, more_b;

    radix_iter_init(&a, pending);
    radix_iter_init(&b, expected);
    more_a = radix_seek(&a, RADIX_FIRST, SLICE_EMPTY);
    more_b = radix_seek(&b, RADIX_FIRST, SLICE_EMPTY);
    for (; more_a && more_b; more_a = radix_next(&a), more_b = radix_next(&b)) {
        const struct stream_pending *one = a.value, *other = b.value;

        assert(slice_equal(radix_iter_key(&a), radix_iter_key(&b)));
        assert(one->delivery_count == other->delivery_count);
        assert(one->delivery_ms == other->delivery_ms);
        assert(slice_equal(stream_consumer_name(one->consumer), stream_consumer_name(other->consumer)));
    }
    assert(!(more_a || more_b));
    radix_iter_fini(&a);
    radix_iter_fini(&b);
}

static inline void compare_groups(const struct stream *stream, const struct stream *expected)
{
    struct radix_iter groups, consumers;

    assert(radix_count(stream_groups(stream)) == radix_count(stream_groups(expected)));
    radix_iter_init(&groups, stream_groups(expected));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        const struct stream_group *other = groups.value, *one = stream_group_find(stream, radix_iter_key(&groups));

        assert(one != NULL);
        assert_id(one->last_id, other->last_id);
        assert(one->entries_read == other->entries_read);
        assert(radix_count(one->consumers) == radix_count(other->consumers));
        compare_pending(one->pending, other->pending);
        radix_iter_init(&consumers, other->consumers);
        for (bool any = radix_seek(&consumers, RADIX_FIRST, SLICE_EMPTY); any; any = radix_next(&consumers)) {
            const struct stream_consumer *consumer = stream_consumer_find(one, radix_iter_key(&consumers));

            assert(consumer != NULL);
            assert(consumer->seen_ms == ((const struct stream_consumer *)consumers.value)->seen_ms);
            assert(consumer->active_ms == ((const struct stream_consumer *)consumers.value)->active_ms);
            compare_pending(consumer->pending, ((const struct stream_consumer *)consumers.value)->pending);
        }
        radix_iter_fini(&consumers);
    }
    radix_iter_fini(&groups);
}

static inline void compare_entries(const struct stream *stream, const struct stream *expected)
{
    struct stream_id id, other_id;
    struct stream_iter a, b;
    uint64_t count, other_count;
    bool is_there;

    stream_iter_init(&a, stream, STREAM_ID_LEAST, STREAM_ID_MOST);
    stream_iter_init(&b, expected, STREAM_ID_LEAST, STREAM_ID_MOST);
    while (stream_iter_next(&b, &other_id, &other_count)) {
        is_there = stream_iter_next(&a, &id, &count);
        assert(is_there);
        assert_id(id, other_id);
        assert(count == other_count);
        for (; count != 0; count--) {
            struct slice field, value, other_field, other_value;

            stream_iter_pair(&a, &field, &value);
            stream_iter_pair(&b, &other_field, &other_value);
            assert(slice_equal(field, other_field) && slice_equal(value, other_value));
        }
    }
    is_there = stream_iter_next(&a, &id, &count);
    assert(!is_there);
    stream_iter_fini(&a);
    stream_iter_fini(&b);
}

/* In the end it has the rest, and names of what was not there at the moment. */
static inline uint64_t bytes_expected(const struct watched *watched)
{
    return stream_memory_bytes(stream_of(former_rest(watched->former)), 0) + 1024 +
           UINT64_C(512) * (creations - watched->creations);
}

/* Of groups it has one whose count of entries is not what its position tells. */
static inline void compare_rest(const struct stream *rest, const struct stream *expected)
{
    struct radix_iter groups;
    uint64_t found = 0, count = 0;

    compare_ids(rest, expected);
    radix_iter_init(&groups, stream_groups(expected));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        const struct stream_group *other = groups.value, *one = stream_group_find(rest, radix_iter_key(&groups));

        count += other->entries_read != stream_entries_up_to(expected, other->last_id);
        if (one == NULL)
            continue;
        found++;
        assert_id(one->last_id, other->last_id);
        assert(one->entries_read == other->entries_read);
        assert(one->entries_read != stream_entries_up_to(rest, one->last_id));
    }
    radix_iter_fini(&groups);
    assert(found == MIN(count, UINT64_C(1)));
    assert(radix_count(stream_groups(rest)) == found);
}

static inline void drop_unknown(struct stream *given)
{
    struct radix_iter groups;

    radix_iter_init(&groups, stream_groups(given));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        uint64_t pending_count = 1;
        const bool was_there = stream_consumer_destroy(groups.value, SLICE("not known yet"), &pending_count, NULL);

        assert(was_there && pending_count == 0);
    }
    radix_iter_fini(&groups);
}

/* Gives the others, and looks at all. */
static inline void finish(struct watched *watched, struct value value, uint64_t most)
{
    const struct stream *rest = stream_of(former_rest(watched->former));

    while (!watched->has_ended)
        give(watched, value, most);
    assert(stream_node_count(watched->given) == watched->former->count);
    assert(watched->pending_left + watched->consumers_left + watched->owned_left == 0);
    assert(watched->groups_left == 0);
    drop_unknown(watched->given);
    compare_rest(rest, watched->copy);
    compare_groups(watched->given, watched->copy);
    stream_set_ids(watched->given, stream_last_id(rest), stream_max_deleted_id(rest), stream_entries_added(rest));
    stream_validate(watched->given);
    compare_ids(watched->given, watched->copy);
    compare_entries(watched->given, watched->copy);
    assert(watched->removals != removals || watched->former->bytes <= bytes_expected(watched));
    end(watched);
}

static inline void watch(struct watched *watched, struct value value)
{
    value_log_watch(&watched->log, value.data);
}

static inline void keep(struct watched *watched, struct value value)
{
    assert(watched->log.data == value.data);
    former_keep(watched->former, value, buffer_slice(&watched->log.steps));
    buffer_clear(&watched->log.steps);
    value_log_ignore(&watched->log);
}

static inline void watch_all(struct watched formers[FORMERS_MOST], struct value value)
{
    for (unsigned i = 0; i < FORMERS_MOST; i++) {
        if (formers[i].former != NULL)
            watch(&formers[i], value);
    }
}

static inline void keep_all(struct watched formers[FORMERS_MOST], struct value value)
{
    for (unsigned i = 0; i < FORMERS_MOST; i++) {
        if (formers[i].former != NULL)
            keep(&formers[i], value);
    }
}

static inline struct value numbers(uint64_t count, const struct stream_limits *limits)
{
    struct value value = stream_value(stream_create());

    for (uint64_t i = 1; i <= count; i++) {
        const bool fits = stream_append(stream_of(value), (struct stream_id){i, 0},
                                        (const struct slice[]){SLICE("field"), SLICE("value")}, 1, limits);

        assert(fits);
    }
    return value;
}
