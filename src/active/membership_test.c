/* Nodes without a server: each has a journal of its own, and what they say to each other goes as bytes of frames. */
#include "active/membership.h"

#include "active/identity.h"
#include "base/array.h"
#include "base/gate.h"
#include "base/thread.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define NOW_MS INT64_C(1800000000000)
enum { LINK = 1, TIMEOUT_MS = 5000, RACE_BEATS = 3000 };

struct world {
    struct membership membership;
    struct journal journal;
    struct horizon horizon;
    struct origins origins;
    uint64_t last; /* own stamp */
    struct merge_vector wanted;
};

static void begin(struct world *world, struct merge_identity identity, const struct merge_account *account)
{
    memset(world, 0, sizeof(*world));
    journal_init(&world->journal);
    horizon_init(&world->horizon, 1);
    origins_init(&world->origins);
    membership_init(&world->membership, &identity, stamp_at(NOW_MS), NOW_MS, &world->journal, &world->horizon,
                    &world->origins);
    membership_begin(&world->membership, account);
    journal_keep(&world->journal, JOURNAL_KEPT_FOR_PEERS, true);
}

static void start(struct world *world, uint64_t name)
{
    begin(world, (struct merge_identity){.name = name, .origin = 10 * name + 1, .incarnation = 1},
          &(struct merge_account){0});
}

static void finish(struct world *world)
{
    membership_fini(&world->membership);
    journal_keep(&world->journal, JOURNAL_KEPT_FOR_PEERS, false);
    journal_fini(&world->journal);
    horizon_fini(&world->horizon);
    merge_vector_fini(&world->wanted);
}

static uint64_t name_of(const struct world *world)
{
    return world->membership.state.identity.name;
}

static uint64_t origin_of(const struct world *world)
{
    return world->membership.state.identity.origin;
}

/* One own operation. Returns its stamp. */
static uint64_t write_one(struct world *world, int64_t wall_ms)
{
    struct effect_stamp stamp = {.wall_ms = wall_ms, .key_position = JOURNAL_NOWHERE};
    const struct slice words[] = {SLICE("INCR"), SLICE("k")};
    struct effects effects = {0};

    effects_add(&effects, 0, words, 2);
    journal_append_stamped(&world->journal, &effects, false, &stamp);
    effects_fini(&effects);
    assert_int_equal(stamp.previous, world->last);
    world->last = stamp.stamp;
    return stamp.stamp;
}

/* --- as bytes --- */

static enum node_verdict greet(struct world *to, struct world *from, uint64_t now_ms, char error[NODE_ERROR_BYTES])
{
    struct notice_hello said, heard;
    struct buffer body = {0};
    char damage[NOTICE_ERROR_BYTES];
    enum node_verdict verdict;

    membership_hello(&from->membership, &said);
    notice_write_hello(&body, &said);
    assert_true(notice_read_hello(buffer_slice(&body), &heard, damage));
    verdict = membership_greet(&to->membership, &heard, now_ms, error);
    notice_hello_fini(&said);
    notice_hello_fini(&heard);
    buffer_fini(&body);
    return verdict;
}

static void expect_welcome(struct world *a, struct world *b)
{
    char error[NODE_ERROR_BYTES];

    assert_int_equal(greet(a, b, 0, error), NODE_WELCOME);
    assert_int_equal(greet(b, a, 0, error), NODE_WELCOME);
}

/* What `from` has made last, as much of it as `to` has asked for. */
static bool hear(struct world *to, struct world *from, uint64_t now_ms)
{
    struct node_beat *beat = membership_beat(&from->membership);
    struct merge_beat part, heard;
    struct buffer body = {0};
    char damage[NOTICE_ERROR_BYTES];
    bool is_right;

    merge_beat_part(&part, &beat->beat, &to->wanted);
    notice_write_beat(&body, &part);
    merge_beat_part_fini(&part);
    assert_true(notice_read_beat(buffer_slice(&body), &heard, damage));
    is_right = membership_hear(&to->membership, &heard, now_ms, NOW_MS);
    merge_beat_fini(&heard);
    membership_release_beat(&from->membership, beat);
    buffer_fini(&body);
    return is_right;
}

/* Takes what the other has written, up to its last operation. */
static void take(struct world *to, const struct world *from, uint64_t prev)
{
    assert_int_equal(membership_judge(&to->membership, origin_of(from), prev, from->last), MERGE_ACCEPTED);
    membership_count(&to->membership, origin_of(from), from->last);
}

/* Each hears the other often enough for frontiers to follow. */
static void talk(struct world *a, struct world *b, int64_t wall_ms)
{
    merge_vector_set(&a->wanted, origin_of(b), 1);
    merge_vector_set(&b->wanted, origin_of(a), 1);
    for (int i = 0; i < 3; i++) {
        membership_make_beat(&a->membership, wall_ms + i, wall_ms + i);
        membership_make_beat(&b->membership, wall_ms + i, wall_ms + i);
        assert_true(hear(a, b, 0));
        assert_true(hear(b, a, 0));
    }
}

/* --- tests --- */

static void alone_it_is_as_far_as_it_has_promised(void **state)
{
    struct world a;

    (void)state;
    start(&a, 1);
    membership_make_beat(&a.membership, NOW_MS + 5, NOW_MS + 5);
    assert_int_equal(horizon_frontier(&a.horizon), 0); /* nothing was done yet */
    assert_true(horizon_wall(&a.horizon) < NOW_MS + 5);
    (void)write_one(&a, NOW_MS + 5);
    membership_make_beat(&a.membership, NOW_MS + 10, NOW_MS + 10);
    assert_int_equal(horizon_frontier(&a.horizon), stamp_at(NOW_MS + 10) - 1);
    assert_int_equal(horizon_wall(&a.horizon), NOW_MS + 10);
    assert_true(write_one(&a, NOW_MS) > horizon_frontier(&a.horizon));
    assert_true(membership_may_repair(&a.membership));
    finish(&a);
}

static void who_has_met_nobody_yet_settles_nothing(void **state)
{
    struct world a;

    (void)state;
    start(&a, 1);
    (void)write_one(&a, NOW_MS + 1);
    membership_wait_for_first(&a.membership, true);
    membership_make_beat(&a.membership, NOW_MS + 10, NOW_MS + 10);
    assert_int_equal(horizon_frontier(&a.horizon), 0);
    assert_true(horizon_wall(&a.horizon) < NOW_MS + 10);
    membership_wait_for_first(&a.membership, false);
    membership_make_beat(&a.membership, NOW_MS + 20, NOW_MS + 20);
    assert_int_equal(horizon_frontier(&a.horizon), stamp_at(NOW_MS + 20) - 1);
    finish(&a);
}

static void all_is_here_of_those_who_are_heard(void **state)
{
    struct world a, b;

    (void)state;
    start(&a, 1);
    start(&b, 2);
    expect_welcome(&a, &b);
    talk(&a, &b, NOW_MS + 20);
    membership_make_beat(&a.membership, NOW_MS + 5000, NOW_MS + 5000);
    assert_true(membership_heard_up_to(&a.membership, 1000) < stamp_at(NOW_MS + 30));
    assert_int_equal(membership_heard_up_to(&a.membership, 100000), stamp_at(NOW_MS + 5000) - 1); /* b is silent */
    finish(&a);
    finish(&b);
}

static void two_nodes_meet_and_their_frontiers_follow(void **state)
{
    struct world a, b;
    uint64_t before, first;

    (void)state;
    start(&a, 1);
    start(&b, 2);
    before = write_one(&a, NOW_MS + 5);
    expect_welcome(&a, &b);
    membership_make_beat(&a.membership, NOW_MS + 10, NOW_MS + 10);
    assert_int_equal(horizon_frontier(&a.horizon), 0); /* the other has not said a word yet */

    take(&b, &a, 0);
    talk(&a, &b, NOW_MS + 20);
    assert_true(horizon_frontier(&a.horizon) >= stamp_at(NOW_MS + 20) - 1);
    assert_true(horizon_wall(&a.horizon) >= NOW_MS + 20);

    /* An operation stops F where the others do not have it. */
    first = write_one(&a, NOW_MS + 100);
    membership_make_beat(&a.membership, NOW_MS + 200, NOW_MS + 200);
    assert_false(hear(&b, &a, 0)); /* a beat behind something that is missing */
    assert_true(horizon_frontier(&a.horizon) < first);
    take(&b, &a, before);
    talk(&a, &b, NOW_MS + 210);
    assert_true(horizon_frontier(&a.horizon) >= first);
    assert_true(horizon_frontier(&b.horizon) >= first);
    assert_true(write_one(&b, NOW_MS) > first); /* what was heard is below */
    finish(&a);
    finish(&b);
}

static void entries_are_judged(void **state)
{
    struct world a, b;
    uint64_t first;

    (void)state;
    start(&a, 1);
    start(&b, 2);
    expect_welcome(&a, &b);
    first = write_one(&a, NOW_MS + 1);
    write_one(&a, NOW_MS + 2);
    assert_int_equal(membership_judge(&b.membership, origin_of(&a), first, a.last), MERGE_GAP);
    assert_int_equal(membership_judge(&b.membership, origin_of(&a), 0, first), MERGE_ACCEPTED);
    membership_count(&b.membership, origin_of(&a), first);
    assert_int_equal(membership_judge(&b.membership, origin_of(&a), 0, first), MERGE_OLD);
    assert_int_equal(membership_judge(&b.membership, origin_of(&a), first, a.last), MERGE_ACCEPTED);
    /* Ours that come back by another node, also before they were promised. */
    assert_int_equal(membership_judge(&a.membership, origin_of(&a), first, a.last), MERGE_OLD);
    finish(&a);
    finish(&b);
}

static void a_beat_stands_at_a_position_of_the_journal(void **state)
{
    struct world a;
    struct node_beat *beat;
    uint64_t first;

    (void)state;
    start(&a, 1);
    first = write_one(&a, NOW_MS + 1);
    membership_make_beat(&a.membership, NOW_MS + 50, NOW_MS + 50);
    beat = membership_beat(&a.membership);
    assert_int_equal(beat->position, journal_end_position(&a.journal));
    assert_int_equal(merge_vector_get(&beat->beat.deeds, origin_of(&a)), first);
    assert_int_equal(merge_vector_get(&beat->beat.vector, origin_of(&a)), stamp_at(NOW_MS + 50) - 1);
    assert_int_equal(merge_vector_get(&beat->beat.offers, origin_of(&a)), stamp_at(NOW_MS + 50) - 1);
    assert_true(write_one(&a, NOW_MS + 2) > stamp_at(NOW_MS + 50) - 1);
    membership_make_beat(&a.membership, NOW_MS + 40, NOW_MS + 50); /* the clock has jumped back */
    membership_release_beat(&a.membership, beat);
    finish(&a);
}

/* A later start of a node: above all stamps that the one before may have given. */
static void begin_above(struct world *world, struct merge_identity identity)
{
    begin(world, identity, &(struct merge_account){0});
    merge_state_raise_clock(&world->membership.state, stamp_at(NOW_MS + IDENTITY_AHEAD_MS));
}

/* No beat has told the vector of them. */
static void a_hello_has_the_operations_of_now(void **state)
{
    struct notice_hello hello;
    struct world world;

    (void)state;
    start(&world, 1);
    membership_make_beat(&world.membership, NOW_MS, NOW_MS);
    write_one(&world, NOW_MS + 50);
    write_one(&world, NOW_MS + 60);
    membership_hello(&world.membership, &hello);
    assert_int_equal(merge_vector_get(&hello.hello.deeds, origin_of(&world)), world.last);
    assert_int_equal(merge_vector_get(&hello.hello.vector, origin_of(&world)), world.last);
    assert_true(hello.hello.clock >= world.last);
    notice_hello_fini(&hello);
    finish(&world);
}

static void it_says_who_is_refused(void **state)
{
    struct world a, b, copy;
    char error[NODE_ERROR_BYTES], name[UUID_TEXT_BYTES + 1];
    struct merge_identity later = {.name = 2, .origin = 29, .incarnation = 2};
    const struct uuid uuid = uuid_of_id(2);

    (void)state;
    uuid_format(&uuid, name);
    start(&a, 1);
    start(&b, 2);
    assert_int_equal(greet(&a, &a, 0, error), NODE_ITSELF);
    assert_non_null(strstr(error, "itself"));
    expect_welcome(&a, &b);
    talk(&a, &b, NOW_MS + 1);

    /* A copy that begins a start of its own while the first one is heard; and one that has our name. */
    merge_vector_set(&later.former, origin_of(&b), 1);
    begin_above(&copy, later);
    assert_int_equal(greet(&a, &copy, 100, error), NODE_COPY);
    assert_non_null(strstr(error, name));
    assert_int_equal(greet(&b, &copy, 100, error), NODE_COPY);

    /* While a link leads to the first one, it may be slow to be heard. */
    membership_link_up(&a.membership, 1, origin_of(&b));
    assert_int_equal(greet(&a, &copy, 2000, error), NODE_COPY);
    membership_link_down(&a.membership, 1);

    /* When the first one is silent, it is its next start; then the first one is an old one. */
    assert_int_equal(membership_look_at(&a.membership, &(struct notice_hello){0}, 2000, error), NODE_UNKNOWN_VERSION);
    assert_int_equal(greet(&a, &copy, 2000, error), NODE_WELCOME);
    assert_int_equal(greet(&a, &b, 9000, error), NODE_OLD);
    assert_non_null(strstr(error, name));
    assert_true(membership_is_closed(&a.membership, origin_of(&b)));
    finish(&copy);
    finish(&a);
    finish(&b);
}

/* The original has gone on behind the start of its copy: so that is one, also when the original is away. */
static void a_copy_is_one_for_good(void **state)
{
    struct world a, b, copy, copy_again, again;
    struct merge_identity of_copy = {.name = 2, .origin = 29, .incarnation = 2}, later = of_copy, of_b = of_copy;
    char error[NODE_ERROR_BYTES];

    (void)state;
    start(&a, 1);
    start(&b, 2);
    expect_welcome(&a, &b);
    talk(&a, &b, NOW_MS + 1);
    merge_vector_set(&of_copy.former, origin_of(&b), 1);
    begin_above(&copy, of_copy);
    assert_int_equal(greet(&a, &copy, 100, error), NODE_COPY);
    talk(&a, &b, NOW_MS + IDENTITY_AHEAD_MS + 1);
    assert_int_equal(greet(&a, &copy, 9000, error), NODE_COPY);

    later.origin = 39;
    later.incarnation = 3;
    merge_vector_set(&later.former, origin_of(&b), 1);
    merge_vector_set(&later.former, 29, 1);
    begin_above(&copy_again, later);
    assert_int_equal(greet(&a, &copy_again, 9000, error), NODE_COPY);

    of_b.origin = 49;
    merge_vector_set(&of_b.former, origin_of(&b), 1);
    begin_above(&again, of_b);
    assert_int_equal(greet(&a, &again, 9000, error), NODE_WELCOME);
    finish(&again);
    finish(&copy_again);
    finish(&copy);
    finish(&b);
    finish(&a);
}

/* It was refused while the start before it was not silent yet. That is no reason to refuse the starts behind it. */
static void a_quick_start_is_no_copy(void **state)
{
    struct world a, b, quick, next, last;
    struct merge_identity identity = {.name = 2, .origin = 29, .incarnation = 2}, of_next = identity,
                          of_last = identity;
    char error[NODE_ERROR_BYTES];

    (void)state;
    start(&a, 1);
    start(&b, 2);
    expect_welcome(&a, &b);
    talk(&a, &b, NOW_MS + 1);
    merge_vector_set(&identity.former, origin_of(&b), 1);
    begin_above(&quick, identity);
    assert_int_equal(greet(&a, &quick, 100, error), NODE_COPY);
    assert_int_equal(greet(&a, &quick, 9000, error), NODE_WELCOME);
    talk(&a, &quick, NOW_MS + 2 * IDENTITY_AHEAD_MS);

    of_next.origin = 39;
    of_next.incarnation = 3;
    merge_vector_set(&of_next.former, origin_of(&b), 1);
    merge_vector_set(&of_next.former, 29, 1);
    begin_above(&next, of_next);
    assert_int_equal(greet(&a, &next, 30000, error), NODE_WELCOME);
    talk(&a, &next, NOW_MS + 4 * IDENTITY_AHEAD_MS);

    of_last.origin = 49;
    of_last.incarnation = 4;
    merge_vector_set(&of_last.former, origin_of(&b), 1);
    merge_vector_set(&of_last.former, 29, 1);
    merge_vector_set(&of_last.former, 39, 1);
    begin_above(&last, of_last);
    assert_int_equal(greet(&a, &last, 60000, error), NODE_WELCOME);
    finish(&last);
    finish(&next);
    finish(&quick);
    finish(&b);
    finish(&a);
}

static void a_removed_node_is_refused(void **state)
{
    struct world a, b;
    char error[NODE_ERROR_BYTES];

    (void)state;
    start(&a, 1);
    start(&b, 2);
    expect_welcome(&a, &b);
    talk(&a, &b, NOW_MS + 1);
    assert_true(membership_forget(&a.membership, name_of(&b)));
    assert_int_equal(greet(&a, &b, 0, error), NODE_REMOVED);
    assert_int_equal(greet(&b, &a, 0, error), NODE_REMOVED);
    finish(&a);
    finish(&b);
}

static void a_silent_member_is_given_up_until_it_is_heard(void **state)
{
    struct world a, b;
    uint64_t before;

    (void)state;
    start(&a, 1);
    start(&b, 2);
    (void)write_one(&a, NOW_MS);
    expect_welcome(&a, &b);
    take(&b, &a, 0);
    talk(&a, &b, NOW_MS + 1);
    assert_int_equal(membership_give_up(&a.membership, TIMEOUT_MS - 1, TIMEOUT_MS), 0);
    assert_int_equal(membership_give_up(&a.membership, TIMEOUT_MS, 0), 0);
    before = horizon_frontier(&a.horizon);
    membership_make_beat(&a.membership, NOW_MS + 500, NOW_MS + 500);
    assert_true(horizon_frontier(&a.horizon) < stamp_at(NOW_MS + 499));
    assert_int_equal(membership_give_up(&a.membership, TIMEOUT_MS, TIMEOUT_MS), name_of(&b));
    assert_int_equal(membership_give_up(&a.membership, TIMEOUT_MS, TIMEOUT_MS), 0);
    membership_make_beat(&a.membership, NOW_MS + 600, NOW_MS + 600);
    assert_true(horizon_frontier(&a.horizon) > before && horizon_frontier(&a.horizon) >= stamp_at(NOW_MS + 599));

    membership_make_beat(&b.membership, NOW_MS + 600, NOW_MS + 600);
    assert_int_equal(membership_came_back(&a.membership), 0);
    assert_true(hear(&a, &b, TIMEOUT_MS + 10));
    assert_int_equal(membership_came_back(&a.membership), name_of(&b));
    assert_int_equal(membership_came_back(&a.membership), 0);
    before = horizon_frontier(&a.horizon);
    membership_make_beat(&a.membership, NOW_MS + 900, NOW_MS + 900);
    assert_int_equal(horizon_frontier(&a.horizon), before); /* it counts again, and is behind */
    finish(&a);
    finish(&b);
}

static void each_origin_is_asked_of_one_link(void **state)
{
    struct world a;
    struct merge_vector offers = {0}, stopped = {0};
    struct node_orders orders = {0};

    (void)state;
    start(&a, 1);
    merge_vector_set(&offers, 21, stamp_at(NOW_MS));
    merge_vector_set(&offers, 31, stamp_at(NOW_MS));
    merge_vector_set(&offers, origin_of(&a), stamp_at(NOW_MS));
    merge_vector_set(&stopped, 31, 1);
    membership_link_up(&a.membership, LINK, 21);
    membership_offered(&a.membership, LINK, &offers, &orders);
    assert_int_equal(orders.count, 2);
    assert_true(orders.items[0].wants && orders.items[0].origin == 21 && orders.items[0].link == LINK);
    assert_true(orders.items[1].wants && orders.items[1].origin == 31 && orders.items[1].have == 0);
    membership_offered(&a.membership, LINK, &offers, &orders);
    assert_int_equal(orders.count, 2);

    /* Its own link is better. The first one has to stop before. */
    membership_link_up(&a.membership, LINK + 1, 31);
    membership_offered(&a.membership, LINK + 1, &offers, &orders);
    assert_int_equal(orders.count, 3);
    assert_true(!orders.items[2].wants && orders.items[2].origin == 31 && orders.items[2].link == LINK);
    membership_count(&a.membership, 31, stamp_at(NOW_MS) + 1);
    membership_stopped(&a.membership, LINK, &stopped, &orders);
    assert_int_equal(orders.count, 4);
    assert_true(orders.items[3].wants && orders.items[3].origin == 31 && orders.items[3].link == LINK + 1);
    assert_int_equal(orders.items[3].have, stamp_at(NOW_MS) + 1);

    /* What came by a link that is gone is asked of the next one that offers it. */
    membership_link_down(&a.membership, LINK);
    membership_offered(&a.membership, LINK + 1, &offers, &orders);
    assert_int_equal(orders.count, 5);
    assert_true(orders.items[4].wants && orders.items[4].origin == 21 && orders.items[4].link == LINK + 1);
    membership_offered(&a.membership, LINK, &offers, &orders);
    assert_int_equal(orders.count, 5);
    /* Of one that has ended only what is not here yet. */
    merge_group_learn(&a.membership.state.group, &(struct merge_members){0}, &stopped, NULL);
    membership_link_up(&a.membership, LINK + 2, 41);
    merge_vector_fini(&offers);
    merge_vector_set(&offers, 31, stamp_at(NOW_MS) + 1);
    membership_offered(&a.membership, LINK + 2, &offers, &orders);
    assert_int_equal(orders.count, 5);
    merge_vector_set(&offers, 31, stamp_at(NOW_MS) + 2);
    membership_offered(&a.membership, LINK + 2, &offers, &orders);
    assert_int_equal(orders.count, 6);
    assert_true(orders.items[5].wants && orders.items[5].origin == 31 && orders.items[5].link == LINK + 2);
    mem_free(orders.items);
    merge_vector_fini(&offers);
    merge_vector_fini(&stopped);
    finish(&a);
}

/* B starts again. When both know and have the same of its first start, the number of that is free. */
static void an_ended_origin_gives_its_number_back(void **state)
{
    struct world a, b, again;
    struct merge_identity later = {.name = 2, .origin = 29, .incarnation = 2};
    struct merge_account saved;
    struct origins_facts facts;
    char error[NODE_ERROR_BYTES];
    uint64_t first;

    (void)state;
    start(&a, 1);
    start(&b, 2);
    expect_welcome(&a, &b);
    talk(&a, &b, NOW_MS + 1);
    write_one(&b, NOW_MS + 100);
    take(&a, &b, 0);
    first = origin_of(&b);
    assert_int_equal(origins_number(&a.origins, first), 1);
    membership_account(&b.membership, &saved);
    merge_vector_set(&later.former, first, 1);
    begin(&again, later, &saved);
    merge_account_fini(&saved);
    finish(&b);

    assert_int_equal(greet(&a, &again, 9000, error), NODE_WELCOME);
    assert_int_equal(greet(&again, &a, 9000, error), NODE_WELCOME);
    membership_end_origins(&a.membership);
    origins_facts(&a.origins, &facts);
    assert_int_equal(facts.free, ORIGINS_UNKNOWN - 2);
    merge_vector_set(&a.wanted, first, 1);
    merge_vector_set(&again.wanted, first, 1);
    talk(&a, &again, NOW_MS + 500);
    membership_make_beat(&a.membership, NOW_MS + 600, NOW_MS + 600);
    membership_make_beat(&again.membership, NOW_MS + 600, NOW_MS + 600);
    talk(&a, &again, NOW_MS + 700);
    membership_end_origins(&a.membership);
    origins_facts(&a.origins, &facts);
    assert_int_equal(facts.free, ORIGINS_UNKNOWN - 1);
    finish(&again);
    finish(&a);
}

static void bounds_are_reserved_ahead(void **state)
{
    struct world a;
    struct merge_identity identity = {.name = 1, .origin = 11, .incarnation = 1}, copy;

    (void)state;
    identity_reserve(&identity, stamp_at(NOW_MS), NOW_MS);
    merge_members_learn(&identity.members, (struct merge_member){1, 11, 1});
    begin(&a, identity, &(struct merge_account){0});
    assert_false(membership_wants_bounds(&a.membership, NOW_MS + IDENTITY_AHEAD_MS / 2, &copy));
    assert_false(membership_is_short(&a.membership, NOW_MS + IDENTITY_AHEAD_MS / 2, 1000));
    membership_make_beat(&a.membership, NOW_MS + IDENTITY_AHEAD_MS / 2 + 2, NOW_MS);
    assert_true(membership_wants_bounds(&a.membership, NOW_MS + IDENTITY_AHEAD_MS / 2 + 2, &copy));
    assert_true(membership_is_short(&a.membership, NOW_MS + IDENTITY_AHEAD_MS - 999, 1000));
    membership_stored_bounds(&a.membership, &copy);
    assert_false(membership_wants_bounds(&a.membership, NOW_MS, &(struct merge_identity){0}));
    assert_false(membership_is_short(&a.membership, NOW_MS + IDENTITY_AHEAD_MS - 999, 1000));
    identity_fini(&copy);
    finish(&a);
}

/* A sponsor that has forgotten a newcomer would let F pass what that one has not got. */
static void a_newcomer_is_a_member_on_the_disk_first(void **state)
{
    struct world a, again;
    struct merge_hello hello = {.name = 2, .origin = 21, .incarnation = 1};
    struct merge_identity copy, read;
    struct buffer text = {0};
    char error[IDENTITY_ERROR_BYTES];

    (void)state;
    start(&a, 1);
    assert_false(membership_sponsor(&a.membership, &hello));
    assert_true(membership_wants_bounds(&a.membership, NOW_MS, &copy));
    assert_false(membership_sponsor(&a.membership, &hello));
    membership_stored_bounds(&a.membership, &copy);
    assert_true(membership_sponsor(&a.membership, &hello));
    hello.incarnation = 2;
    hello.origin = 29;
    assert_false(membership_sponsor(&a.membership, &hello));
    finish(&a);

    identity_format(&copy, &text);
    assert_true(identity_parse(buffer_slice(&text), &read, error));
    read.incarnation++;
    begin(&again, read, &(struct merge_account){0});
    membership_make_beat(&again.membership, NOW_MS + 10, NOW_MS + 10);
    assert_int_equal(horizon_frontier(&again.horizon), 0); /* it waits for the other's word */
    buffer_fini(&text);
    identity_fini(&copy);
    finish(&again);
}

/* --- threads --- */

struct race {
    struct world a, b;
    _Atomic bool is_over;
};

/* What senders do: they hold a beat while worker 0 goes on. */
static void use_beats(void *argument)
{
    struct race *race = argument;
    uint64_t position = 0;

    while (!atomic_load(&race->is_over)) {
        struct node_beat *beat = membership_beat(&race->a.membership);
        struct merge_beat part;
        struct buffer body = {0};
        struct notice_hello hello;

        if (beat == NULL)
            continue;
        assert(beat->position >= position);
        position = beat->position;
        merge_beat_part(&part, &beat->beat, &race->b.wanted);
        notice_write_beat(&body, &part);
        merge_beat_part_fini(&part);
        sched_yield();
        membership_release_beat(&race->a.membership, beat);
        membership_hello(&race->a.membership, &hello);
        notice_hello_fini(&hello);
        buffer_fini(&body);
    }
}

static void beats_are_used_by_other_threads(void **state)
{
    static struct race race;
    struct thread threads[2] = {0};

    (void)state;
    start(&race.a, 1);
    start(&race.b, 2);
    expect_welcome(&race.a, &race.b);
    talk(&race.a, &race.b, NOW_MS);
    for (unsigned i = 0; i < 2; i++)
        thread_start(&threads[i], "sender", use_beats, &race);
    for (int i = 0; i < RACE_BEATS; i++) {
        const uint64_t prev = race.a.last;

        write_one(&race.a, NOW_MS + 10 + i);
        take(&race.b, &race.a, prev);
        membership_make_beat(&race.a.membership, NOW_MS + 10 + i, NOW_MS + 10 + i);
        membership_make_beat(&race.b.membership, NOW_MS + 10 + i, NOW_MS + 10 + i);
        assert_true(hear(&race.b, &race.a, 0));
        assert_true(hear(&race.a, &race.b, 0));
    }
    atomic_store(&race.is_over, true);
    for (unsigned i = 0; i < 2; i++)
        thread_join(&threads[i]);
    finish(&race.a);
    finish(&race.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_it_is_as_far_as_it_has_promised),
        cmocka_unit_test(who_has_met_nobody_yet_settles_nothing),
        cmocka_unit_test(all_is_here_of_those_who_are_heard),
        cmocka_unit_test(two_nodes_meet_and_their_frontiers_follow),
        cmocka_unit_test(entries_are_judged),
        cmocka_unit_test(a_beat_stands_at_a_position_of_the_journal),
        cmocka_unit_test(a_hello_has_the_operations_of_now),
        cmocka_unit_test(it_says_who_is_refused),
        cmocka_unit_test(a_copy_is_one_for_good),
        cmocka_unit_test(a_quick_start_is_no_copy),
        cmocka_unit_test(a_removed_node_is_refused),
        cmocka_unit_test(a_silent_member_is_given_up_until_it_is_heard),
        cmocka_unit_test(each_origin_is_asked_of_one_link),
        cmocka_unit_test(an_ended_origin_gives_its_number_back),
        cmocka_unit_test(bounds_are_reserved_ahead),
        cmocka_unit_test(a_newcomer_is_a_member_on_the_disk_first),
        cmocka_unit_test(beats_are_used_by_other_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
