#include "data/test_former_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

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
        cmocka_unit_test(what_is_pending_is_given_as_it_was), cmocka_unit_test(what_is_removed_is_left_to_the_former),
        cmocka_unit_test(only_what_is_left_to_give_is_kept),  cmocka_unit_test(a_taken_value_needs_no_detaching),
        cmocka_unit_test(what_was_not_pending_ends_a_piece),
    };

    mem_thread_start();
    return cmocka_run_group_tests_name("former_groups", tests, NULL, NULL);
}
