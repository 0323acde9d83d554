/* A worker that has to wait for a stripe or the gate is woken: workers without their connections, in all orders of
 * their steps with a few preemptions. */
#include "base/test_steps_atomic.h"

#include "base/gate.c"
#include "store/access.c"
#include "store/store.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { WORKERS = 3, REQUESTS_MOST = 3, STRIPES = 4 };

enum need {
    NEED_NOTHING, /* the end of a worker's requests */
    NEED_FIRST,   /* a stripe */
    NEED_SECOND,
    NEED_BOTH,
    NEED_ESCALATION, /* a stripe, and then to be alone; one at a time */
    NEED_GATE,
    NEED_GATE_GOES /* its client goes while it waits */
};

struct scene {
    const char *name;
    unsigned preemptions;
    enum need needs[WORKERS][REQUESTS_MOST];
};

struct player {
    struct gate_member member;
    struct access access;
    struct store_counters counters;
    bool is_woken;
    struct asked_for {
        enum need need;
        bool parked, asked;
    } requests[REQUESTS_MOST];
};

static const struct scene *scene;
static bool in_one_turn; /* all of a worker's requests arrive before it looks whether it was woken */
static struct gate the_gate;
static struct store *store;
static struct player players[WORKERS];
static unsigned inside[STRIPES], alone;
static bool is_wrong;

static void wake_player(void *context)
{
    steps_point();
    ((struct player *)context)->is_woken = true;
}

static void wake_players(uint64_t wait_mask)
{
    for (; wait_mask != 0; wait_mask &= wait_mask - 1)
        wake_player(&players[__builtin_ctzll(wait_mask)]);
}

static bool is_woken(void *player)
{
    return ((const struct player *)player)->is_woken;
}

/* --- a worker --- */

static bool has(const struct player *player, bool asked)
{
    for (unsigned i = 0; i < REQUESTS_MOST; i++) {
        if (player->requests[i].parked && (!asked || player->requests[i].asked))
            return true;
    }
    return false;
}

static void be_alone(void)
{
    is_wrong |= alone++ != 0;
    for (unsigned i = 0; i < STRIPES; i++)
        is_wrong |= inside[i] != 0;
    steps_point();
    alone--;
}

static bool try_alone(struct player *player)
{
    if (!gate_try_own(&player->member, 1))
        return false;
    be_alone();
    gate_open(&player->member);
    return true;
}

static bool try_striped(struct player *player, const uint32_t *stripes, uint32_t count, bool escalates)
{
    uint32_t busy;

    if (!gate_enter(&player->member))
        return false;
    while (!access_lock(&player->access, stripes, count, &busy)) {
        if (stripe_wait(&store->stripes[busy], (unsigned)(player - players))) {
            gate_leave(&player->member);
            return false;
        }
    }
    for (unsigned i = 0; i < count; i++)
        is_wrong |= inside[stripes[i]]++ != 0 || alone != 0;
    steps_point();
    for (unsigned i = 0; i < count; i++)
        inside[stripes[i]]--;
    if (escalates) {
        gate_escalate(&player->member);
        be_alone();
        gate_descend(&player->member);
    }
    access_unlock(&player->access, stripes, count);
    gate_leave(&player->member);
    return true;
}

static void try_request(struct player *player, struct asked_for *request)
{
    static const uint32_t stripes[] = {1, 2};
    bool done;

    switch (request->need) {
    case NEED_FIRST:
    case NEED_BOTH:
    case NEED_ESCALATION:
        done = try_striped(player, &stripes[0], request->need == NEED_BOTH ? 2 : 1, request->need == NEED_ESCALATION);
        break;
    case NEED_SECOND:
        done = try_striped(player, &stripes[1], 1, false);
        break;
    default:
        done = try_alone(player);
        request->asked = !done;
        break;
    }
    request->parked = !done;
    if (done && request->need >= NEED_GATE && has(player, false))
        wake_player(player);
}

static void serve_wake(struct player *player)
{
    steps_point();
    player->is_woken = false;
    if (gate_enter(&player->member))
        gate_leave(&player->member);
    for (unsigned i = 0; i < REQUESTS_MOST; i++) {
        if (player->requests[i].parked)
            try_request(player, &player->requests[i]);
    }
}

static void forget(struct player *player, struct asked_for *request)
{
    if (!request->parked)
        return;
    request->parked = false;
    if (!has(player, true))
        gate_withdraw(&player->member);
}

static void play(void)
{
    struct player *player = &players[steps.current];

    for (unsigned i = 0; i < REQUESTS_MOST && player->requests[i].need != NEED_NOTHING; i++) {
        try_request(player, &player->requests[i]);
        if (!in_one_turn && player->is_woken)
            serve_wake(player);
    }
    for (unsigned i = 0; i < REQUESTS_MOST; i++) {
        if (player->requests[i].need == NEED_GATE_GOES)
            forget(player, &player->requests[i]);
    }
    for (;;) {
        steps_wait(is_woken, player);
        serve_wake(player);
    }
}

/* --- a run --- */

static void setup(void)
{
    gate_init(&the_gate);
    for (uint32_t i = 0; i < STRIPES; i++)
        atomic_store(&store->stripes[i].wait_mask, 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        struct player *player = &players[i];

        memset(player, 0, sizeof(*player));
        access_init(&player->access, store, &player->counters);
        gate_join(&the_gate, &player->member, wake_player, player);
        for (unsigned k = 0; k < REQUESTS_MOST; k++)
            player->requests[k].need = scene->needs[i][k];
    }
}

/* Everybody sleeps: then nobody has anything left to do, and all is open. */
static bool nobody_was_forgotten(void)
{
    bool is_right = !is_wrong && the_gate.state == GATE_OPEN && list_is_empty(&the_gate.queue);

    for (unsigned i = 0; i < WORKERS; i++)
        is_right = is_right && !has(&players[i], false);
    return is_right;
}

static void who_waits_is_woken(void **state)
{
    enum { SCENES = 13 };
    static const struct scene scenes[SCENES] = {
        {"two of one worker for a stripe", 3, {{NEED_FIRST, NEED_FIRST}, {NEED_FIRST}}},
        {"two of each worker for a stripe", 2, {{NEED_FIRST, NEED_FIRST}, {NEED_FIRST, NEED_FIRST}}},
        {"three workers for a stripe", 2, {{NEED_FIRST, NEED_FIRST}, {NEED_FIRST}, {NEED_FIRST}}},
        {"several stripes", 2, {{NEED_BOTH, NEED_FIRST}, {NEED_SECOND}, {NEED_BOTH}}},
        {"the gate", 3, {{NEED_FIRST, NEED_GATE}, {NEED_FIRST}}},
        {"two want the gate", 2, {{NEED_GATE, NEED_FIRST}, {NEED_FIRST, NEED_GATE}}},
        {"three want the gate", 2, {{NEED_GATE, NEED_GATE}, {NEED_GATE}, {NEED_GATE}}},
        {"the gate, a stripe", 2, {{NEED_FIRST, NEED_FIRST}, {NEED_FIRST}, {NEED_GATE}}},
        {"who wants the gate goes", 2, {{NEED_FIRST, NEED_GATE_GOES}, {NEED_GATE}, {NEED_FIRST}}},
        {"one of two who want the gate goes", 2, {{NEED_FIRST, NEED_GATE_GOES, NEED_GATE}, {NEED_GATE}}},
        {"who is inside escalates", 2, {{NEED_ESCALATION, NEED_SECOND}, {NEED_FIRST, NEED_GATE}, {NEED_SECOND}}},
        {"two escalate, one goes", 2, {{NEED_ESCALATION, NEED_ESCALATION}, {NEED_GATE_GOES, NEED_SECOND}, {NEED_GATE}}},
        {"all who want the gate go", 2, {{NEED_FIRST, NEED_GATE_GOES}, {NEED_GATE_GOES}, {NEED_SECOND}}},
    };

    (void)state;
    if (!STEPS_WORK) {
        print_message("skipped: sanitizers do not know the coroutines it is made of\n");
        skip();
    }
    store = store_create(STRIPES, 1);
    store->wake = wake_players;
    for (unsigned i = 0; i < 2 * SCENES; i++) {
        uint64_t order_count;

        scene = &scenes[i / 2];
        in_one_turn = i % 2 != 0;
        order_count = steps_explore(play, WORKERS, scene->preemptions, setup, nobody_was_forgotten);
        print_message("%s%s: %llu orders\n", scene->name, in_one_turn ? ", in one turn" : "",
                      (unsigned long long)order_count);
        assert_true(order_count != 0);
    }
    store_destroy(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_is_woken),
    };

    return cmocka_run_group_tests_name("waking", tests, NULL, NULL);
}
