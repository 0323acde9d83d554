#include "data/test_former_stream.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

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
    READ_MUCH, /* as many consumers as there are names, most of them with nothing pending */
    REMOVE_SMALL_CONSUMER,
    REMOVE_LARGE_CONSUMER,
    CREATE_GROUP,
    REMOVE_GROUP,
    REPLACE_GROUP,
    MOVE_GROUP,
    SEE_CONSUMER,
    UNDO,
    ACTS
};

/* A consumer with so much is left to the formers when it is removed. */
enum { LARGE_CONSUMER = 1024 };

struct scene {
    struct random *random;
    unsigned group_names, consumer_names; /* how many of `names` are drawn */
    bool counts_reads;                    /* what groups have read is seldom what their positions tell */
    struct stream *stream;
    struct stream_group *group; /* NULL: there is none of the name that was drawn */
    struct slice group_name, consumer_name;
    struct stream_consumer *consumer; /* likewise */
    unsigned counts[ACTS];
};

/* In no order, of which some begin as others do. */
static const char *const names[] = {"me", "you", "",    "me too",   "\xff",     "a",  "\x01",  "aa",
                                    "he", "she", "her", "\x01\x01", "\xff\xff", "ab", "a\xff", "zz"};

static void draw_consumer(struct scene *scene)
{
    scene->consumer_name = slice_from_text(names[random_below(scene->random, scene->consumer_names)]);
    scene->consumer = scene->group != NULL ? stream_consumer_find(scene->group, scene->consumer_name) : NULL;
}

static void draw(struct scene *scene)
{
    scene->group_name = slice_from_text(names[random_below(scene->random, scene->group_names)]);
    scene->group = stream_group_find(scene->stream, scene->group_name);
    draw_consumer(scene);
}

static int64_t draw_read(struct scene *scene)
{
    return scene->counts_reads ? (int64_t)random_below(scene->random, 4) : 0; /* the stream has no entries */
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
    assert_true(stream_consumer_destroy(scene->group, scene->consumer_name, &count, NULL));
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

static bool create_consumer(struct scene *scene)
{
    creations++;
    return stream_consumer_create(scene->group, scene->consumer_name, (int64_t)random_below(scene->random, 99)) != NULL;
}

static bool create_group(struct scene *scene)
{
    creations++;
    return stream_group_create(scene->stream, scene->group_name, draw_id(scene), draw_read(scene)) != NULL;
}

static bool remove_group(struct scene *scene)
{
    removals++;
    return stream_group_destroy(scene->stream, scene->group_name, NULL);
}

static void read_much(struct scene *scene)
{
    for (unsigned i = 0; i < scene->consumer_names; i++) {
        draw_consumer(scene);
        if (scene->consumer == NULL)
            (void)create_consumer(scene);
        else
            scene->consumer->seen_ms += 2;
    }
}

/* False: it could not be done. */
static bool do_act(struct scene *scene, enum act act)
{
    draw(scene);
    if (act == CREATE_GROUP)
        return create_group(scene);
    if (scene->group == NULL)
        return false;
    if (act == REMOVE_GROUP)
        return remove_group(scene);
    if (act == REPLACE_GROUP)
        return remove_group(scene) && create_group(scene);
    if (act == MOVE_GROUP) {
        scene->group->last_id = draw_id(scene);
        scene->group->entries_read = draw_read(scene);
        return true;
    }
    if (act == CREATE_CONSUMER)
        return create_consumer(scene);
    if (act == READ_MUCH) {
        read_much(scene);
        return true;
    }
    return scene->consumer != NULL && act_on_consumer(scene, act);
}

/* What removes much is rare. */
static enum act draw_act(struct scene *scene)
{
    const enum act act = (enum act)random_below(scene->random, ACTS);
    const bool is_rare = act == REMOVE_GROUP || act == REPLACE_GROUP || act == ACKNOWLEDGE_MANY;

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
    scene->group_names = random_below(random, 2) ? 3 : countof(names);
    scene->consumer_names = random_below(random, 2) ? 4 : countof(names);
    scene->counts_reads = random_below(random, 4) == 0;
    for (unsigned i = 0; i < 60; i++) {
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
    for (unsigned i = 0; i < countof(formers) && random_below(random, 2); i++) {
        if (formers[i].former != NULL)
            finish(&formers[i], value, most);
    }
    for (unsigned i = 0; i < countof(formers); i++) { /* those that are left when it is taken out of the keyspace */
        if (formers[i].former != NULL)
            formers[i].former->is_taken = true;
    }
    for (unsigned i = 0; i < countof(formers); i++) {
        if (formers[i].former != NULL)
            finish(&formers[i], value, most);
    }
    stream_ops.destroy(value);
}

static void groups_are_given_as_they_were(void **state)
{
    struct random random = test_random(__func__);
    struct scene scene = {0};

    (void)state;
    for (unsigned i = 0; i < 30; i++)
        play_scene(&scene, &random);
    for (unsigned act = 0; act < ACTS; act++)
        assert_true(scene.counts[act] >= 2);
}

/* Of the next change: it looks the group up. */
static struct stream_group *group_of(struct value value)
{
    struct stream_group *group = stream_group_find(stream_of(value), SLICE("group"));

    assert_non_null(group);
    return group;
}

static struct stream_consumer *consumer_of(struct value value, struct slice name)
{
    struct stream_consumer *consumer = stream_consumer_find(group_of(value), name);

    return consumer != NULL ? consumer : stream_consumer_create(group_of(value), name, 0);
}

static void assign_all(struct value value, struct slice consumer, uint64_t first, uint64_t last)
{
    for (uint64_t i = first; i <= last; i++)
        stream_pending_assign(group_of(value), (struct stream_id){i, 0}, consumer_of(value, consumer), 5, 1);
}

/* One entry, and one group in which so many others are pending for one consumer. */
static struct value pending(uint64_t count)
{
    static const struct stream_limits limits = {0, 100};
    struct value value = numbers(1, &limits);

    (void)stream_group_create(stream_of(value), SLICE("group"), STREAM_ID_LEAST, 0);
    assign_all(value, SLICE("consumer"), 1, count);
    return value;
}

/* Names that are in order: of groups, or of consumers of the group. */
static void create_all(struct value value, bool are_groups, const char *prefix, unsigned count)
{
    char room[32];

    for (unsigned i = 0; i < count; i++) {
        const struct slice name = slice_make(room, (size_t)snprintf(room, sizeof(room), "%s%08u", prefix, i));

        if (are_groups)
            (void)stream_group_create(stream_of(value), name, STREAM_ID_LEAST, 0);
        else
            (void)stream_consumer_create(group_of(value), name, 5);
    }
    creations += count;
}

/* What a consumer or a group has is not copied when it is removed: all of it, also what was given, counts. */
static void what_is_removed_is_left_to_the_former(void **state)
{
    enum { PENDING = 100 * 1000 };
    struct value value = pending(PENDING);
    struct watched watched = {0};
    uint64_t bytes, added, count;

    (void)state;
    begin(&watched, value);
    assert_in_range(watched.former->bytes, 1, 4096);
    give(&watched, value, 10000);
    bytes = watched.former->bytes;
    added = radix_memory_bytes(group_of(value)->pending) + PENDING * mem_good_size(sizeof(struct stream_pending));
    watch(&watched, value);
    assert_true(stream_consumer_destroy(group_of(value), SLICE("consumer"), &count, NULL));
    keep(&watched, value);
    assert_int_equal(count, PENDING);
    assert_in_range(watched.former->bytes, bytes + added, bytes + added + 1024);
    watch(&watched, value);
    assign_all(value, SLICE("new"), 1, UINT64_C(2) * PENDING);
    keep(&watched, value);
    assert_in_range(watched.former->bytes, bytes + added, bytes + added + 1024); /* it is known, or of no concern */
    bytes = watched.former->bytes;
    watch(&watched, value);
    assert_true(stream_group_destroy(stream_of(value), SLICE("group"), NULL));
    keep(&watched, value);
    assert_true(watched.former->bytes >= bytes + 2 * added);
    removals++;
    finish(&watched, value, 256);
    stream_ops.destroy(value);
}

/* What is delivered behind the last one that was pending takes nothing, and what was given neither. */
static void only_what_is_left_to_give_is_kept(void **state)
{
    struct value value = pending(3000);
    struct watched watched = {0};
    uint64_t bytes;

    (void)state;
    begin(&watched, value);
    give(&watched, value, 1003); /* with a node, the ids and the head of the group */
    bytes = watched.former->bytes;
    watch(&watched, value);
    assign_all(value, SLICE("consumer"), 3001, 6000);
    for (uint64_t i = 1; i <= 1000; i++)
        assert_true(stream_pending_remove(group_of(value), (struct stream_id){i, 0}));
    keep(&watched, value);
    assert_int_equal(watched.former->bytes, bytes);
    watch(&watched, value);
    assert_true(stream_pending_remove(group_of(value), (struct stream_id){1001, 0}));
    assert_true(stream_pending_remove(group_of(value), (struct stream_id){3000, 0}));
    keep(&watched, value);
    assert_in_range(watched.former->bytes, bytes + 48, bytes + 1024);
    finish(&watched, value, 7);
    stream_ops.destroy(value);
}

static unsigned give_all(struct watched *watched, struct value value, uint64_t most)
{
    unsigned pieces = 0;

    for (; !watched->has_ended; pieces++)
        give(watched, value, most);
    return pieces;
}

/* Entries that were not pending then take time, too: they end a piece. */
static void what_was_not_pending_ends_a_piece(void **state)
{
    struct value value = pending(1);
    struct watched watched = {0};

    (void)state;
    assign_all(value, SLICE("consumer"), 10000, 10000);
    begin(&watched, value);
    watch(&watched, value);
    assign_all(value, SLICE("consumer"), 2, 9999);
    keep(&watched, value);
    assert_in_range(give_all(&watched, value, 100), 100, 110);
    finish(&watched, value, 1);
    stream_ops.destroy(value);
}

/* Likewise groups and consumers that were not there. */
static void what_was_not_there_ends_a_piece(void **state)
{
    (void)state;
    for (unsigned are_groups = 0; are_groups <= 1; are_groups++) {
        struct value value = pending(1);
        struct watched watched = {0};

        create_all(value, are_groups != 0, "z", 1);
        begin(&watched, value);
        while (!watched.is_prepared) /* all that are there have been looked at */
            give(&watched, value, 1);
        watch(&watched, value);
        create_all(value, are_groups != 0, "new", 10000);
        keep(&watched, value);
        assert_in_range(give_all(&watched, value, 100), 100, 110);
        finish(&watched, value, 1);
        stream_ops.destroy(value);
    }
}

/* How many there are does not matter at the moment. */
static void nothing_is_looked_at_at_the_moment(void **state)
{
    uint64_t allocated[2], bytes[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct value value = pending(3000);
        struct watched watched = {0};

        create_all(value, true, "group", i == 0 ? 3 : 10000);
        create_all(value, false, "consumer", i == 0 ? 3 : 10000);
        allocated[i] = mem_thread_allocated();
        watched.former = former_create(&stream_ops, value);
        allocated[i] = mem_thread_allocated() - allocated[i];
        bytes[i] = watched.former->bytes;
        former_detach(watched.former);
        former_destroy(&watched.former);
        begin(&watched, value);
        (void)give_all(&watched, value, 256);
        assert_int_equal(watched.former->bytes, bytes[i]); /* what went by is gone, too */
        finish(&watched, value, 1);
        stream_ops.destroy(value);
    }
    assert_int_equal(allocated[0], allocated[1]);
    assert_int_equal(bytes[0], bytes[1]);
}

/* Before it gives, it looks for a group whose count of entries has to be in a file: piece by piece, as they were. */
static void groups_are_looked_at_for_the_rest(void **state)
{
    struct value value = pending(1);
    struct watched watched = {0};
    unsigned pieces = 1;

    (void)state;
    create_all(value, true, "group", 1000);
    (void)stream_group_create(stream_of(value), SLICE("z"), (struct stream_id){1, 0}, 77);
    begin(&watched, value);
    for (; former_prepare(watched.former, value, 100); pieces++) {
        watch(&watched, value);
        stream_group_find(stream_of(value), SLICE("z"))->entries_read = 1;
        stream_group_find(stream_of(value), SLICE("group00000999"))->entries_read = 7;
        keep(&watched, value);
    }
    watched.is_prepared = true;
    assert_int_equal(pieces, 11);
    assert_non_null(stream_group_find(stream_of(former_rest(watched.former)), SLICE("z")));
    finish(&watched, value, 10);
    stream_ops.destroy(value);
}

/* Nor is it told any more when all was given. */
static void nothing_is_kept_in_the_end(void **state)
{
    struct value value = pending(10);
    struct watched watched = {0};
    uint64_t bytes, count;

    (void)state;
    begin(&watched, value);
    (void)give_all(&watched, value, 100);
    bytes = watched.former->bytes;
    watch(&watched, value);
    create_all(value, true, "z", 100);
    create_all(value, false, "z", 100);
    assert_true(stream_consumer_destroy(group_of(value), SLICE("consumer"), &count, NULL));
    assert_null(group_of(value)->formers);
    assert_true(stream_group_destroy(stream_of(value), SLICE("group"), NULL));
    keep(&watched, value);
    assert_int_equal(watched.former->bytes, bytes);
    finish(&watched, value, 1);
    stream_ops.destroy(value);
}

/* A value that was taken out of the keyspace is nobody's but the formers': they do not look at each other. */
static void a_taken_value_needs_no_detaching(void **state)
{
    struct value value = pending(3000);
    struct watched two[2] = {0};
    struct stream *copy;

    (void)state;
    begin(&two[0], value);
    begin(&two[1], value);
    watch(&two[0], value);
    assert_true(stream_pending_remove(group_of(value), (struct stream_id){7, 0}));
    keep(&two[0], value);
    copy = stream_copy(stream_of(value)); /* of its own, nobody's concern */
    assert_true(stream_group_destroy(copy, SLICE("group"), NULL));
    stream_destroy(&copy);
    for (unsigned i = 0; i < 2; i++)
        two[i].former->is_taken = true;
    for (unsigned i = 0; i < 2; i++) {
        give(&two[i], value, 100);
        former_destroy(&two[i].former);
        stream_destroy(&two[i].copy);
        stream_destroy(&two[i].given);
        buffer_fini(&two[i].log.steps);
    }
    stream_ops.destroy(value);
}

struct giver {
    struct watched watched;
    struct value value;
    pthread_t thread;
};

static void *give_in_thread(void *context)
{
    struct giver *giver = context;

    mem_thread_start();
    (void)give_all(&giver->watched, giver->value, 50);
    former_destroy(&giver->watched.former);
    mem_thread_stop();
    return NULL;
}

/* Then they are given by several threads at once, under no lock; some have begun, and groups have changed. */
static void a_taken_value_is_given_by_several_threads(void **state)
{
    struct value value = pending(3000);
    struct giver givers[3] = {0};

    (void)state;
    create_all(value, true, "a", 300);
    create_all(value, false, "a", 300);
    for (unsigned i = 0; i < countof(givers); i++) {
        givers[i].value = value;
        begin(&givers[i].watched, value);
        give(&givers[i].watched, value, 1 + 1000 * i);
    }
    assign_all(value, SLICE("a00000001"), 2000, 5000);
    (void)stream_group_find(stream_of(value), SLICE("a00000299"));
    assert_true(stream_group_destroy(stream_of(value), SLICE("a00000298"), NULL));
    for (unsigned i = 0; i < countof(givers); i++)
        givers[i].watched.former->is_taken = true;
    for (unsigned i = 0; i < countof(givers); i++)
        assert_int_equal(pthread_create(&givers[i].thread, NULL, give_in_thread, &givers[i]), 0);
    for (unsigned i = 0; i < countof(givers); i++) {
        assert_int_equal(pthread_join(givers[i].thread, NULL), 0);
        drop_unknown(givers[i].watched.given);
        compare_groups(givers[i].watched.given, givers[i].watched.copy);
        stream_destroy(&givers[i].watched.copy);
        stream_destroy(&givers[i].watched.given);
        buffer_fini(&givers[i].watched.log.steps);
    }
    stream_ops.destroy(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_given_as_they_were),
        cmocka_unit_test(what_is_removed_is_left_to_the_former),
        cmocka_unit_test(only_what_is_left_to_give_is_kept),
        cmocka_unit_test(what_was_not_pending_ends_a_piece),
        cmocka_unit_test(what_was_not_there_ends_a_piece),
        cmocka_unit_test(nothing_is_looked_at_at_the_moment),
        cmocka_unit_test(groups_are_looked_at_for_the_rest),
        cmocka_unit_test(nothing_is_kept_in_the_end),
        cmocka_unit_test(a_taken_value_needs_no_detaching),
        cmocka_unit_test(a_taken_value_is_given_by_several_threads),
    };

    mem_thread_start();
    return cmocka_run_group_tests_name("former_groups", tests, NULL, NULL);
}
