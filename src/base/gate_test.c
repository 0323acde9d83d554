#include "base/gate.h"

#include "base/random.h"
#include "base/test_dies.h"
#include "base/test_seed.h"
#include "base/thread.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { THREADS = 4, ROUNDS = 20000 };

static struct gate gate;
static _Atomic uint32_t inside_count; /* members that are inside and not escalated */
static _Atomic uint32_t alone;        /* somebody owns the gate, or has escalated */
static _Atomic uint32_t escalator;    /* the rule of gate_escalate: one at a time */
static uint64_t exclusive_sum;        /* guarded by the gate alone: the thread sanitizer watches it */
static _Atomic uint64_t exclusive_count, escalation_count, withdrawal_count;

struct player {
    struct thread thread;
    struct gate_member member;
    sem_t woken;
    uint64_t seed;
};

/* It asks the system, so nobody may be kept waiting for the gate's lock. */
static void wake(void *context)
{
    assert_false(spinlock_is_mine(&gate.lock));
    sem_post(&((struct player *)context)->woken);
}

static void wait_for_wake(struct player *player)
{
    while (sem_wait(&player->woken) != 0)
        continue;
}

static void check_inside(void)
{
    atomic_fetch_add(&inside_count, 1);
    assert_int_equal(atomic_load(&alone), 0);
    (void)*(volatile uint64_t *)&exclusive_sum; /* reading is allowed inside */
    assert_int_equal(atomic_load(&alone), 0);
    atomic_fetch_sub(&inside_count, 1);
}

static void be_alone(_Atomic uint64_t *count)
{
    assert_int_equal(atomic_exchange(&alone, 1), 0);
    assert_int_equal(atomic_load(&inside_count), 0);
    exclusive_sum++;
    assert_int_equal(atomic_load(&inside_count), 0);
    assert_int_equal(atomic_exchange(&alone, 0), 1);
    atomic_fetch_add(count, 1);
}

static void go_inside(struct player *player, struct random *random)
{
    while (!gate_enter(&player->member))
        wait_for_wake(player);
    check_inside();
    if (random_below(random, 50) == 0 && atomic_exchange(&escalator, 1) == 0) {
        gate_escalate(&player->member);
        be_alone(&escalation_count);
        gate_descend(&player->member);
        atomic_store(&escalator, 0);
    }
    gate_leave(&player->member);
}

/* Asks for the gate; sometimes gives up, as when its client goes. */
static void own(struct player *player, struct random *random)
{
    bool gives_up = random_below(random, 4) == 0;

    while (!gate_try_own(&player->member, (unsigned)random_below(random, 100))) {
        if (gives_up) {
            gate_withdraw(&player->member);
            atomic_fetch_add(&withdrawal_count, 1);
            if (gate_enter(&player->member)) /* as a worker does after each wake */
                gate_leave(&player->member);
            return;
        }
        wait_for_wake(player);
    }
    be_alone(&exclusive_count);
    gate_open(&player->member);
}

static void play(void *argument)
{
    struct player *player = argument;
    struct random random;

    random_seed(&random, player->seed);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (random_below(&random, 20) == 0)
            own(player, &random);
        else
            go_inside(player, &random);
    }
    gate_part(&player->member);
}

/* All threads get through, and no thread inside meets one that is alone. A hang is a failure, too. */
static void owners_escalators_and_others_exclude_each_other(void **state)
{
    struct random random = test_random(__func__);
    static struct player players[THREADS];

    (void)state;
    gate_init(&gate);
    for (unsigned i = 0; i < THREADS; i++) {
        sem_init(&players[i].woken, 0, 0);
        players[i].seed = random_u64(&random);
        gate_join(&gate, &players[i].member, wake, &players[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        thread_start(&players[i].thread, "player", play, &players[i]);
    for (unsigned i = 0; i < THREADS; i++)
        thread_join(&players[i].thread);
    assert_int_equal(exclusive_sum, atomic_load(&exclusive_count) + atomic_load(&escalation_count));
    assert_true(atomic_load(&exclusive_count) > 0 && atomic_load(&escalation_count) > 0);
    print_message("exclusive %llu, escalated %llu, withdrawn %llu\n", (unsigned long long)exclusive_count,
                  (unsigned long long)escalation_count, (unsigned long long)withdrawal_count);
    gate_fini(&gate);
}

static unsigned wake_counts[3];

static void count_wake(void *context)
{
    assert_false(spinlock_is_mine(&gate.lock));
    (*(unsigned *)context)++;
}

/* A member that waited while the gate was closed gets one turn before it closes again. */
static void a_flood_of_owners_starves_nobody(void **state)
{
    struct gate_member owner, next, other;

    (void)state;
    gate_init(&gate);
    gate_join(&gate, &owner, count_wake, &wake_counts[0]);
    gate_join(&gate, &next, count_wake, &wake_counts[1]);
    gate_join(&gate, &other, count_wake, &wake_counts[2]);
    assert_true(gate_try_own(&owner, 0));
    assert_false(gate_try_own(&next, 0));
    assert_false(gate_enter(&other));
    gate_open(&owner);
    assert_int_equal(wake_counts[2], 1);
    assert_false(gate_try_own(&next, 0)); /* not yet: other has not been inside */
    assert_true(gate_enter(&other));
    assert_int_equal(gate_is_inside(&other), true);
    assert_false(gate_try_own(&next, 0)); /* closed now, but other is inside */
    wake_counts[1] = 0;
    gate_leave(&other);
    assert_int_equal(wake_counts[1], 1); /* the last one out wakes the next owner */
    assert_true(gate_try_own(&next, 0));
    gate_open(&next);
    gate_part(&owner);
    gate_part(&next);
    gate_part(&other);
    gate_fini(&gate);
}

static void members_come_and_go(void **state)
{
    struct gate_member member;

    (void)state;
    gate_init(&gate);
    for (unsigned i = 0; i < 2 * GATE_MEMBERS_MOST; i++) {
        gate_join(&gate, &member, count_wake, &wake_counts[0]);
        gate_part(&member);
    }
    gate_fini(&gate);
}

static void a_withdrawn_request_opens_the_gate(void **state)
{
    struct gate_member owner, other;

    (void)state;
    gate_init(&gate);
    gate_join(&gate, &owner, count_wake, &wake_counts[0]);
    gate_join(&gate, &other, count_wake, &wake_counts[1]);
    assert_true(gate_enter(&other));
    assert_false(gate_try_own(&owner, 0));
    gate_leave(&other);
    assert_false(gate_enter(&other)); /* closed for the owner to come */
    gate_withdraw(&owner);
    assert_true(gate_enter(&other));
    gate_leave(&other);
    gate_part(&owner);
    gate_part(&other);
    gate_fini(&gate);
}

/* It found the gate closed, then asked to own it, then gave that up: it is told to try to enter again. */
static void who_withdraws_tries_again_to_enter(void **state)
{
    struct gate_member owner, member;

    (void)state;
    gate_init(&gate);
    gate_join(&gate, &owner, count_wake, &wake_counts[0]);
    gate_join(&gate, &member, count_wake, &wake_counts[1]);
    for (unsigned opens = 0; opens < 2; opens++) { /* for whom else it is closed: an owner; nobody */
        if (opens)
            assert_true(gate_enter(&owner)); /* inside, so that the member's request stays */
        else
            assert_true(gate_try_own(&owner, 0));
        assert_false(gate_try_own(&member, 0));
        assert_false(gate_enter(&member));
        assert_false(gate_try_own(&member, 0));
        wake_counts[1] = 0;
        gate_withdraw(&member);
        assert_true(wake_counts[1] > 0);
        assert_int_equal(gate_enter(&member), opens);
        wake_counts[1] = 0;
        if (opens) {
            gate_leave(&member);
            gate_leave(&owner);
            continue;
        }
        gate_open(&owner);
        assert_int_equal(wake_counts[1], 1); /* it waits like everybody else now */
        assert_true(gate_enter(&member));
        gate_leave(&member);
    }
    gate_part(&owner);
    gate_part(&member);
    gate_fini(&gate);
}

/* A thread that ends may have waited to enter, or stood in the queue: no other waits for it any more. */
static void nobody_waits_for_who_rests(void **state)
{
    struct gate_member owner, entering, asking;

    (void)state;
    gate_init(&gate);
    gate_join(&gate, &owner, count_wake, &wake_counts[0]);
    gate_join(&gate, &entering, count_wake, &wake_counts[1]);
    gate_join(&gate, &asking, count_wake, &wake_counts[2]);
    assert_true(gate_try_own(&owner, 0));
    assert_false(gate_enter(&entering));
    assert_false(gate_try_own(&asking, 0));
    gate_open(&owner);
    assert_false(gate_try_own(&owner, 0)); /* one is to enter first, the other to own it */
    wake_counts[0] = 0;
    gate_rest(&entering);
    gate_rest(&asking);
    assert_true(wake_counts[0] > 0);
    assert_true(gate_try_own(&owner, 0));
    gate_rest(&entering); /* also when it wants nothing */
    gate_open(&owner);
    assert_true(gate_enter(&entering)); /* and it may come back */
    gate_leave(&entering);
    gate_part(&owner);
    gate_part(&entering);
    gate_part(&asking);
    gate_fini(&gate);
}

static struct gate_member one;

static void enter_twice(void)
{
    (void)!gate_enter(&one);
    (void)!gate_enter(&one);
}

static void leave_from_outside(void)
{
    gate_leave(&one);
}

static void own_from_inside(void)
{
    (void)!gate_enter(&one);
    (void)!gate_try_own(&one, 0);
}

static void open_what_is_not_owned(void)
{
    gate_open(&one);
}

static void own_now(struct gate_member *member)
{
    if (!gate_try_own(member, 0))
        _exit(1);
}

static void open_what_was_handed_over(void)
{
    own_now(&one);
    gate_hand_over(&one);
    gate_open(&one);
}

static void open_what_was_taken_over(void)
{
    own_now(&one);
    gate_hand_over(&one);
    gate_take_over(&one);
    gate_assert_owned(&one);
    gate_open(&one);
}

static void take_over_what_somebody_has(void)
{
    own_now(&one);
    gate_take_over(&one);
}

static void open_in_another_thread(void *member)
{
    gate_open(member);
}

static void own_here_open_there(void)
{
    struct thread thread = {0};

    own_now(&one);
    thread_start(&thread, "other", open_in_another_thread, &one);
    thread_join(&thread);
}

static void be_alone_without_owning(void)
{
    gate_traffic_begin();
    gate_assert_alone();
}

static void be_alone_without_traffic(void)
{
    gate_assert_alone();
}

static void be_alone_inside(void)
{
    gate_traffic_begin();
    (void)!gate_enter(&one);
    gate_escalate(&one);
    gate_assert_alone();
    gate_descend(&one);
    gate_leave(&one);
}

static void help(void *member)
{
    gate_help_begin(member);
    gate_assert_alone();
    gate_help_end(member);
}

static void let_another_help(void)
{
    struct thread thread = {0};

    gate_traffic_begin();
    own_now(&one);
    thread_start(&thread, "helper", help, &one);
    thread_join(&thread);
    gate_open(&one);
}

static void be_alone_after_helping(void)
{
    gate_traffic_begin();
    help(&one);
    gate_assert_alone();
}

static void a_member_keeps_to_the_rules(void **state)
{
    (void)state;
    gate_init(&gate);
    gate_join(&gate, &one, count_wake, &wake_counts[0]);
    assert_true(dies(enter_twice));
    assert_true(dies(leave_from_outside));
    assert_true(dies(own_from_inside));
    assert_true(dies(open_what_is_not_owned));
    assert_true(dies(open_what_was_handed_over));
    assert_false(dies(open_what_was_taken_over));
    assert_true(dies(take_over_what_somebody_has));
    assert_true(dies(own_here_open_there));
    assert_true(dies(be_alone_without_owning));
    assert_false(dies(be_alone_without_traffic));
    assert_false(dies(be_alone_inside));
    assert_false(dies(let_another_help));
    assert_true(dies(be_alone_after_helping));
    gate_part(&one);
    gate_fini(&gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_escalators_and_others_exclude_each_other),
        cmocka_unit_test(a_flood_of_owners_starves_nobody),
        cmocka_unit_test(members_come_and_go),
        cmocka_unit_test(a_withdrawn_request_opens_the_gate),
        cmocka_unit_test(who_withdraws_tries_again_to_enter),
        cmocka_unit_test(nobody_waits_for_who_rests),
        cmocka_unit_test(a_member_keeps_to_the_rules),
    };

    fence_setup();
    return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
