#include "data/former_members.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/test_seed.h"
#include "data/hash.h"
#include "data/set.h"
#include "data/undo.h"
#include "data/zset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Each type's changes, by the number of a member, and what a member had at the moment. */
enum { MEMBERS = 3000, ROUNDS = 60, CHANGES = 400 };

struct type {
    const struct value_ops *ops;
    struct value (*create)(void);
    void (*put)(struct value *value, struct slice member, int64_t number);
    bool (*remove)(struct value *value, struct slice member);
    void (*change)(struct value *value, struct slice member, struct random *random); /* in a way of its own */
    int64_t (*number)(const struct former_element *element);
    int64_t (*find)(struct value value, struct slice member); /* -1: it is not there */
};

static const struct set_limits set_limits = {0, 0, 0};
static const struct hash_limits hash_limits = {0, 0};
static const struct zset_limits zset_limits = {0, 0};

static struct slice member_of(unsigned i, char *room)
{
    return slice_make(room, (size_t)sprintf(room, "member:%u", i));
}

static unsigned index_of(struct slice member)
{
    char room[32];

    memcpy(room, member.data, member.size);
    room[member.size] = '\0';
    return (unsigned)strtoul(room + 7, NULL, 10);
}

/* ---------------------------------------------------------------------------------------------------------- sets -- */

static struct value create_set(void)
{
    return set_create(&set_limits, SLICE("member:0"), MEMBERS);
}

static void put_in_set(struct value *value, struct slice member, int64_t number)
{
    (void)number;
    (void)set_add(value, &set_limits, member);
}

static void change_set(struct value *value, struct slice member, struct random *random)
{
    (void)random;
    if (set_remove(value, member))
        set_add_new(value, &set_limits, member);
}

static int64_t one(const struct former_element *element)
{
    (void)element;
    return 1;
}

static int64_t find_in_set(struct value value, struct slice member)
{
    return set_has(value, member) ? 1 : -1;
}

/* -------------------------------------------------------------------------------------------------------- hashes -- */

static void put_in_hash(struct value *value, struct slice member, int64_t number)
{
    char digits[NUMBER_I64_SPACE];

    (void)hash_put(value, &hash_limits, member, slice_make(digits, number_format_i64(digits, number)));
}

static int64_t find_in_hash(struct value value, struct slice member)
{
    char scratch[NUMBER_I64_SPACE];
    struct slice text;
    int64_t number = -1;

    if (hash_get(value, member, scratch, &text))
        assert_true(number_parse_i64(text, &number));
    return number;
}

static void change_hash(struct value *value, struct slice member, struct random *random)
{
    const int64_t now = find_in_hash(*value, member), more = (int64_t)random_below(random, 100);

    if (now >= 0)
        hash_add(value, &hash_limits, member, more, now + more);
}

static int64_t number_of_pair(const struct former_element *element)
{
    int64_t number;

    assert_true(number_parse_i64(element->second, &number));
    return number;
}

/* --------------------------------------------------------------------------------------------------- sorted sets -- */

/* Few different scores, so that members decide, too. */
static void put_in_zset(struct value *value, struct slice member, int64_t number)
{
    (void)zset_put(value, &zset_limits, member, (double)(number % 50));
}

static void change_zset(struct value *value, struct slice member, struct random *random)
{
    const uint64_t count = zset_count(*value), from = random_below(random, count + 1);

    (void)member;
    zset_remove_span(value, (struct zset_span){from, MIN(count, from + random_below(random, 6))});
}

static int64_t score_of(const struct former_element *element)
{
    return (int64_t)element->score;
}

static int64_t find_in_zset(struct value value, struct slice member)
{
    double score = -1;

    return zset_score(value, member, &score) ? (int64_t)score : -1;
}

static const struct type types[] = {
    {&set_ops, create_set, put_in_set, set_remove, change_set, one, find_in_set},
    {&hash_ops, hash_create, put_in_hash, hash_remove, change_hash, number_of_pair, find_in_hash},
    {&zset_ops, zset_create, put_in_zset, zset_remove, change_zset, score_of, find_in_zset},
};

/* --------------------------------------------------------------------------------------------------------- tests -- */

struct given {
    const struct type *type;
    struct value then; /* a copy */
    bool has[MEMBERS];
    uint64_t count, piece;
    double last; /* a sorted set's score */
};

static void see(const struct former_element *element, void *context)
{
    struct given *given = context;
    const unsigned i = index_of(element->first);

    assert_true(i < MEMBERS && !given->has[i]);
    given->has[i] = true;
    given->count++;
    given->piece++;
    assert_int_equal(given->type->number(element), given->type->find(given->then, element->first));
}

static void change_some(const struct type *type, struct value *value, struct random *random, unsigned count)
{
    char room[32];

    for (unsigned i = 0; i < count; i++) {
        const struct slice member = member_of((unsigned)random_below(random, MEMBERS), room);

        switch (random_below(random, 4)) {
        case 0:
            type->change(value, member, random);
            break;
        case 1:
            (void)type->remove(value, member);
            break;
        default:
            type->put(value, member, (int64_t)random_below(random, 1000));
        }
    }
}

static void end_change(struct former *former, struct value value, struct value_log *log)
{
    assert_ptr_equal(log->data, value.data);
    value_log_ignore(log);
    if (log->steps.size != 0)
        former_keep(former, value, buffer_slice(&log->steps));
    buffer_clear(&log->steps);
}

/* One change as the keyspace makes it; it may be several steps. */
static void change_watched(const struct type *type, struct former *former, struct value *value, struct random *random,
                           struct value_log *log)
{
    value_log_watch(log, value->data);
    change_some(type, value, random, 1 + (unsigned)random_below(random, 4));
    end_change(former, *value, log);
}

/* What was done before the moment. */
static void take_back(const struct type *type, struct former *former, struct value *value, struct slice steps,
                      struct value_log *log)
{
    struct value_step step;

    value_log_watch(log, value->data);
    while (value_steps_take(&steps, &step))
        type->ops->undo(value, &step);
    end_change(former, *value, log);
}

static bool give_some(struct former *former, struct value value, struct given *given, struct random *random)
{
    const uint64_t most = 1 + random_below(random, 200);

    given->piece = 0;
    if (!former_give(former, value, most, see, given))
        return false;
    assert_true(given->piece <= most + 64); /* a place of a table more */
    return true;
}

static void run(const struct type *type, struct random *random)
{
    struct given given = {.type = type};
    struct value_log log = {.data = NULL}, undo = {.data = NULL};
    struct value value = type->create();
    struct former *former;
    bool more = true;

    change_some(type, &value, random, 1 + (unsigned)random_below(random, 3 * MEMBERS));
    value_log_watch(&undo, value.data);
    change_some(type, &value, random, (unsigned)random_below(random, 100));
    value_log_ignore(&undo);
    given.then = type->ops->copy(value);
    assert_true(former_suits(type->ops, value) || type->ops->count(value) == 0);
    if (!former_suits(type->ops, value)) {
        type->ops->destroy(value);
        type->ops->destroy(given.then);
        buffer_fini(&undo.steps);
        return;
    }
    former = former_create(type->ops, value);
    assert_int_equal(former->count, type->ops->count(given.then));
    if (random_below(random, 2) == 0)
        more = give_some(former, value, &given, random);
    take_back(type, former, &value, buffer_slice(&undo.steps), &log);
    for (unsigned i = 0; more && i < CHANGES; i++) {
        change_watched(type, former, &value, random, &log);
        if (random_below(random, 8) == 0)
            more = give_some(former, value, &given, random);
    }
    while (more)
        more = give_some(former, value, &given, random);
    assert_int_equal(given.count, former->count);
    former_destroy(&former);
    assert_null(former);
    buffer_fini(&log.steps);
    buffer_fini(&undo.steps);
    type->ops->destroy(value);
    type->ops->destroy(given.then);
}

/* Taken back, from the newest step on, what was done before the former was there; also late, behind changes that it
 * was told of. */
static void run_back(const struct type *type, struct random *random)
{
    struct given given = {.type = type};
    struct value_log log = {.data = NULL}, before = {.data = NULL};
    struct value value = type->create();
    struct value_step step;
    struct former *former;
    struct slice steps;
    bool more = true;

    change_some(type, &value, random, 1 + (unsigned)random_below(random, 3 * MEMBERS));
    while (!former_suits(type->ops, value)) /* a set of few integers */
        type->put(&value, SLICE("member:0"), 1);
    given.then = type->ops->copy(value);
    value_log_watch(&before, value.data);
    change_some(type, &value, random, (unsigned)random_below(random, 4 * CHANGES));
    value_log_ignore(&before);
    former = former_create(type->ops, value);
    assert_true(former_takes_back(type->ops, value, buffer_slice(&before.steps)));
    for (steps = buffer_slice(&before.steps); value_steps_take(&steps, &step);) {
        if (random_below(random, 4) == 0)
            change_watched(type, former, &value, random, &log);
        former_take_back(former, value, &step);
    }
    assert_int_equal(former->count, type->ops->count(given.then));
    while (more) {
        change_watched(type, former, &value, random, &log);
        more = give_some(former, value, &given, random);
    }
    assert_int_equal(given.count, type->ops->count(given.then));
    former_destroy(&former);
    buffer_fini(&log.steps);
    buffer_fini(&before.steps);
    type->ops->destroy(value);
    type->ops->destroy(given.then);
}

static void as_it_was_before_the_moment(void **state)
{
    struct random random = test_random("as_it_was_before_the_moment");

    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++)
        run_back(&types[round % countof(types)], &random);
}

static void as_it_was_whatever_changes(void **state)
{
    struct random random = test_random("as_it_was_whatever_changes");

    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++)
        run(&types[round % countof(types)], &random);
}

/* All is removed before anything is given; then nothing is left of the value but what was kept. */
static void what_was_emptied_is_given_whole(void **state)
{
    struct random random = test_random("what_was_emptied_is_given_whole");
    char room[32];

    (void)state;
    for (unsigned t = 0; t < countof(types); t++) {
        struct given given = {.type = &types[t]};
        struct value value = types[t].create();
        struct value_log log = {.data = NULL};
        struct former *former;
        uint64_t empty_bytes;

        for (unsigned i = 0; i < MEMBERS; i++)
            types[t].put(&value, member_of(i, room), i);
        given.then = types[t].ops->copy(value);
        former = former_create(types[t].ops, value);
        empty_bytes = former->bytes;
        value_log_watch(&log, value.data);
        for (unsigned i = 0; i < MEMBERS; i++)
            assert_true(types[t].remove(&value, member_of(i, room)));
        former_keep(former, value, buffer_slice(&log.steps));
        value_log_ignore(&log);
        assert_true(former->bytes > empty_bytes + MEMBERS * sizeof("member:0"));
        while (give_some(former, value, &given, &random))
            ;
        assert_int_equal(given.count, MEMBERS);
        former_destroy(&former);
        buffer_fini(&log.steps);
        types[t].ops->destroy(value);
        types[t].ops->destroy(given.then);
    }
}

static void see_falling(const struct former_element *element, void *context)
{
    struct given *given = context;

    assert_true(element->score <= given->last);
    given->last = element->score;
    see(element, context);
}

/* A reader that builds a list of members from its front is quickest so. */
static void sorted_sets_are_given_from_the_last_member(void **state)
{
    struct given given = {.type = &types[2], .last = 1e9};
    struct value value = zset_create();
    struct former *former;
    char room[32];

    (void)state;
    for (unsigned i = 0; i < MEMBERS; i++)
        put_in_zset(&value, member_of(i, room), i);
    given.then = zset_ops.copy(value);
    former = former_create(&zset_ops, value);
    while (former_give(former, value, 7, see_falling, &given))
        ;
    assert_int_equal(given.count, MEMBERS);
    former_destroy(&former);
    zset_ops.destroy(value);
    zset_ops.destroy(given.then);
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
        cmocka_unit_test(as_it_was_whatever_changes),
        cmocka_unit_test(as_it_was_before_the_moment),
        cmocka_unit_test(what_was_emptied_is_given_whole),
        cmocka_unit_test(sorted_sets_are_given_from_the_last_member),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
