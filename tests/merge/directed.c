#include "directed.h"

#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { A, B, C }; /* nodes */

/* --- pieces --- */

static void in_step(struct sim *sim)
{
    sim_exchange(sim, 6);
}

static void over(struct sim *sim, uint32_t from, uint32_t to)
{
    struct sim_link *link = sim_link(sim, from, to);

    if (link == NULL)
        return;
    sim_send(sim, link, true);
    sim_receive(sim, link, UINT32_MAX);
}

static void settle_all(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        if (sim->nodes[i].node != NULL)
            sim_settle(sim, i);
    }
}

/* As sim_exchange, but for one link. */
static void in_step_without(struct sim *sim, uint32_t from, uint32_t to)
{
    for (uint32_t round = 0; round < 4; round++) {
        sim->now += 60;
        for (uint32_t i = 0; i < sim->link_count; i++) {
            if (sim->links[i].from != from || sim->links[i].to != to)
                over(sim, sim->links[i].from, sim->links[i].to);
        }
        settle_all(sim);
    }
}

static void give_up(struct sim *sim, uint32_t node, uint32_t other)
{
    merge_state_give_up(&sim->nodes[node].node->state, sim->nodes[other].node->state.identity.name);
}

static void text_command(struct sim *sim, uint32_t node, uint32_t key, uint8_t kind, const char *text, int64_t n)
{
    struct value_part part = {.kind = kind, .text_size = (uint8_t)strlen(text), .n = n};

    memcpy(part.text, text, part.text_size);
    sim_command(sim, node, key, part);
}

static void set(struct sim *sim, uint32_t node, uint32_t key, const char *text)
{
    text_command(sim, node, key, KIND_SET, text, 0);
}

static void append(struct sim *sim, uint32_t node, uint32_t key, const char *text)
{
    text_command(sim, node, key, KIND_APPEND, text, 0);
}

static void increase(struct sim *sim, uint32_t node, uint32_t key, int64_t by)
{
    text_command(sim, node, key, KIND_INCRBY, "", by);
}

static void push(struct sim *sim, uint32_t node, uint32_t key, char element)
{
    sim_command(sim, node, key, (struct value_part){.kind = KIND_RPUSH, .a = element});
}

static void pop(struct sim *sim, uint32_t node, uint32_t key, char element)
{
    sim_command(sim, node, key, (struct value_part){.kind = KIND_POPV, .a = element, .b = 'L'});
}

/* --- what users were promised --- */

static void counter(struct sim *sim)
{
    set(sim, A, 0, "1");
    in_step(sim);
    sim_cut(sim, A, B, true);
    for (uint32_t i = 0; i < 3; i++)
        increase(sim, A, 0, 1);
    increase(sim, B, 0, 1);
    sim_cut(sim, A, B, false);
}

static void set_on_both_sides(struct sim *sim)
{
    in_step(sim);
    sim_cut(sim, A, B, true);
    set(sim, B, 0, "1");
    sim->now += 5;
    set(sim, A, 0, "2");
    sim_cut(sim, A, B, false);
}

static void set_on_both_sides_turned(struct sim *sim)
{
    in_step(sim);
    sim_cut(sim, A, B, true);
    set(sim, A, 0, "1");
    sim->now += 5;
    set(sim, B, 0, "2");
    sim_cut(sim, A, B, false);
}

/* Both push at both ends meanwhile: what is older comes before what was pushed since, and behind what was there. */
static void pushes_on_both_sides(struct sim *sim)
{
    push(sim, A, 0, 'm');
    in_step(sim);
    sim_cut(sim, A, B, true);
    for (uint32_t i = 0; i < 3; i++) {
        push(sim, A, 0, (char)('1' + i));
        sim->now += 5;
        sim_command(sim, B, 0, (struct value_part){.kind = KIND_LPUSH, .a = (char)('a' + i)});
        push(sim, B, 0, (char)('p' + i));
        sim->now += 5;
        sim_command(sim, A, 0, (struct value_part){.kind = KIND_LPUSH, .a = (char)('x' + i)});
    }
    sim_cut(sim, A, B, false);
}

/* What was trimmed in between, and what was popped, is not what older pushes stand before. */
static void pushes_and_a_trim(struct sim *sim)
{
    for (uint32_t i = 0; i < 6; i++)
        push(sim, A, 0, (char)('0' + i));
    in_step(sim);
    sim_cut(sim, A, B, true);
    push(sim, A, 0, 'p');
    sim->now += 5;
    push(sim, B, 0, 'q');
    sim_command(sim, B, 0, (struct value_part){.kind = KIND_LTRIM, .n = 1, .m = 3});
    push(sim, B, 0, 'r');
    sim_cut(sim, A, B, false);
}

/* A crash loses nothing that a peer has. */
static void crash_amid_increments(struct sim *sim)
{
    set(sim, A, 0, "0");
    in_step(sim);
    for (uint32_t i = 0; i < 10; i++) {
        increase(sim, A, 0, 1);
        increase(sim, B, 0, 1);
        increase(sim, C, 0, 1);
        if (i == 5) {
            over(sim, C, A);
            sim_crash(sim, C, false);
            sim_back(sim, C);
        }
        sim->now++;
    }
}

static void pops_of_the_same(struct sim *sim)
{
    push(sim, A, 0, 'p');
    push(sim, A, 0, 'q');
    push(sim, A, 0, 'r');
    in_step(sim);
    sim_cut(sim, A, B, true);
    pop(sim, A, 0, 'p');
    pop(sim, B, 0, 'p');
    push(sim, B, 0, 's');
    sim_cut(sim, A, B, false);
}

/* LPUSH behind a SET of that key does nothing, and works when a DEL comes in between. */
static void refusal_that_works_later(struct sim *sim)
{
    in_step(sim);
    sim_cut(sim, A, B, true);
    sim_cut(sim, A, C, true);
    sim_cut(sim, B, C, true);
    set(sim, A, 0, "1");
    sim->now += 5;
    sim_command(sim, B, 0, (struct value_part){.kind = KIND_DEL});
    sim->now += 5;
    push(sim, C, 0, 'p');
    sim_cut(sim, A, C, false);
    over(sim, C, A);
    over(sim, C, A);
    sim_cut(sim, A, B, false);
    sim_cut(sim, B, C, false);
}

/* --- what random histories seldom reach --- */

/* An eviction of what it saw; what came since survives it. */
static void eviction_behind_what_it_saw(struct sim *sim)
{
    set(sim, A, 0, "5");
    in_step(sim);
    sim_cut(sim, A, B, true);
    sim->now += 5;
    increase(sim, B, 0, 1);
    sim->now += 5;
    sim_evict(sim, A, 0);
    sim_cut(sim, A, B, false);
}

/* C evicts, seeing less than A and B have settled by the time the eviction comes to B: C's vector does not hold F back
 * any more, as C is closed. */
static void eviction_of_the_dead(struct sim *sim)
{
    set(sim, A, 0, "5");
    in_step(sim);
    sim_cut(sim, B, C, true);
    sim->now += 5;
    increase(sim, B, 0, 1);
    sim->now += 5;
    for (uint32_t round = 0; round < 6; round++) {
        sim->now++;
        over(sim, C, A);
        over(sim, A, B);
        over(sim, B, A);
        settle_all(sim);
    }
    sim_evict(sim, C, 0);
    over(sim, C, A);
    sim_crash(sim, C, false);
    (void)sim_forget(sim, B, C);
    sim_settle(sim, B);
    over(sim, A, B);
}

/* The dead one's last operations are on the wire to one node only, and all others think that nothing is missing. */
static void wire_of_the_dead(struct sim *sim)
{
    in_step(sim);
    increase(sim, C, 0, 3);
    for (uint32_t i = 0; i < 3; i++)
        sim_save(sim, i);
    set(sim, A, 0, "7");
    append(sim, A, 0, "1");
    sim_send(sim, sim_link(sim, A, B), false);
    sim_crash(sim, A, true);
    sim_back(sim, A);
    in_step_without(sim, A, B);
    append(sim, C, 0, "9");
    in_step_without(sim, A, B);
    sim_receive(sim, sim_link(sim, A, B), UINT32_MAX);
}

/* A restart with a slower clock must not touch what has expired for all. */
static void restart_with_a_slower_clock(struct sim *sim)
{
    int64_t deadline;

    in_step(sim);
    deadline = sim->now + 30;
    text_command(sim, A, 0, KIND_SET, "5", deadline);
    in_step(sim);
    sim_save(sim, A);
    sim->now = deadline + 5;
    in_step(sim);
    sim_crash(sim, A, false);
    sim->nodes[A].clock_offset = -50;
    sim_back(sim, A);
    increase(sim, A, 0, 1);
}

/* A has a state that B lacks, and no operations to show for it; while it is on its way, B writes. */
static void state_on_its_way(struct sim *sim)
{
    in_step(sim);
    sim_cut(sim, A, B, true);
    give_up(sim, A, B);
    give_up(sim, B, A);
    set(sim, A, 0, "5");
    sim->now += 5;
    sim_settle(sim, A);
    sim_trim(sim, A);
    sim_cut(sim, A, B, false);
    sim_send(sim, sim_link(sim, A, B), true);
    set(sim, B, 1, "7");
}

static void state_and_operations(struct sim *sim)
{
    state_on_its_way(sim);
    sim_receive(sim, sim_link(sim, A, B), UINT32_MAX);
}

static void state_that_lacks_something(struct sim *sim)
{
    state_on_its_way(sim);
    sim->now += 5;
    sim_settle(sim, B);
    sim_trim(sim, B);
    sim_receive(sim, sim_link(sim, A, B), UINT32_MAX);
}

/* A and C have given B up and freed what had expired for them; B, whose clock is slow, still has it. */
static void slow_clock_of_one_given_up(struct sim *sim)
{
    sim->nodes[A].clock_offset = sim->nodes[C].clock_offset = 1000;
    in_step(sim);
    text_command(sim, A, 0, KIND_SET, "5", sim_wall(sim, A) + 5);
    in_step(sim);
    give_up(sim, A, B);
    give_up(sim, C, B);
    for (uint32_t round = 0; round < 3; round++) {
        sim->now += 20;
        over(sim, A, C);
        over(sim, C, A);
        sim_settle(sim, A);
        sim_settle(sim, C);
    }
    over(sim, A, B);
    over(sim, C, B);
    increase(sim, B, 0, 1);
}

/* C has a dirty key, and knows that the others have settled something that it lacks: a SET of that key. */
static void repair_waits(struct sim *sim)
{
    set(sim, A, 0, "1");
    in_step(sim);
    give_up(sim, A, C);
    give_up(sim, B, C);
    increase(sim, B, 0, 1);
    sim->now += 2;
    increase(sim, C, 0, 10);
    merge_node_bound(sim->nodes[C].node, 0, 9);
    sim->now += 2;
    set(sim, A, 0, "7");
    for (uint32_t round = 0; round < 4; round++) {
        sim->now += 2;
        over(sim, A, B);
        over(sim, B, A);
        sim_settle(sim, A);
        sim_settle(sim, B);
    }
    over(sim, B, C);
    sim_repair(sim, C);
}

/* B is back from a file in which C is no member yet, and hears that A, the only one it knows, was removed. */
static void removal_heard_of_first(struct sim *sim)
{
    increase(sim, A, 1, 1); /* before the first operation no frontier rises */
    in_step(sim);
    sim_save(sim, B);
    (void)sim_join(sim);
    in_step(sim);
    (void)sim_forget(sim, C, A);
    sim_crash(sim, B, false);
    sim_back(sim, B);
    sim->nodes[B].clock_offset = 500;
    sim_send(sim, sim_link(sim, B, C), false);
    sim_settle(sim, B);
    increase(sim, C, 0, 1);
}

/* The sponsor crashes before anybody else has heard of the newcomer, and does not hear of it for a while. */
static void crash_of_the_sponsor(struct sim *sim)
{
    uint32_t newcomer;

    in_step(sim);
    newcomer = sim_join(sim);
    sim_cut(sim, B, newcomer, true);
    over(sim, A, newcomer);
    over(sim, A, newcomer);
    sim_cut(sim, A, newcomer, true);
    sim_crash(sim, A, false);
    sim_back(sim, A);
    increase(sim, newcomer, 0, 1);
    sim->now += 5;
    increase(sim, A, 0, 10);
    in_step(sim);
    sim_cut(sim, A, newcomer, false);
}

/* B has freed a key as expired that a FLUSHALL of A would have kept from getting its deadline. */
static void late_flush(struct sim *sim)
{
    set(sim, A, 0, "5");
    in_step(sim);
    sim_cut(sim, A, B, true);
    give_up(sim, A, B);
    give_up(sim, B, A);
    sim_flush(sim, A);
    sim->now += 5;
    text_command(sim, B, 0, KIND_PEXPIREAT, "", sim->now + 20);
    sim->now += 5;
    increase(sim, B, 0, 12);
    sim->now += 20;
    sim_settle(sim, B);
    sim_cut(sim, A, B, false);
    for (uint32_t i = 0; i < 3; i++)
        over(sim, B, A);
}

/* A ring of links in one direction. A has what B lacks, but not in its history, B has what C and A lack, neither: A
 * waits for what B has, which comes by C, which waits for what C has, which comes by A. */
static void ring_in_one_direction(struct sim *sim)
{
    sim_drop_link(sim, B, A);
    sim_drop_link(sim, C, B);
    sim_drop_link(sim, A, C);
    in_step(sim);
    sim_cut(sim, A, B, true);
    sim_cut(sim, B, C, true);
    increase(sim, C, 0, 17);
    increase(sim, B, 0, 1);
    in_step(sim);
    sim_cut(sim, C, A, true);
    for (uint32_t i = 0; i < 9; i++)
        give_up(sim, i / 3, i % 3);
    in_step(sim);
    sim_trim(sim, A);
    sim_trim(sim, B);
}

/* --- running --- */

enum { NO_RULE = -1 };

struct directed {
    const char *name;
    void (*play)(struct sim *sim);
    uint32_t node_count;
    bool bounded;
    int rule;           /* the history fails if it is broken */
    const char *wanted; /* key 0 in the end, or NULL: equal everywhere, and to the oracle where that counts */
};

static const struct directed histories[] = {
    {"a counter", counter, 2, false, NO_RULE, "s \"5\""},
    {"SET on both sides", set_on_both_sides, 2, false, NO_RULE, "s \"2\""},
    {"SET on both sides, turned", set_on_both_sides_turned, 2, false, NO_RULE, "s \"2\""},
    {"a crash amid increments", crash_amid_increments, 3, false, NO_RULE, "s \"30\""},
    {"pops of the same element", pops_of_the_same, 2, false, NO_RULE, "l [qrs]"},
    {"a refusal that works later", refusal_that_works_later, 3, false, MERGE_BREAK_FORGET_REFUSED, "l [p]"},
    {"an eviction behind what it saw", eviction_behind_what_it_saw, 2, false, MERGE_BREAK_EVICT_LAST, "s \"1\""},
    {"an eviction of the dead", eviction_of_the_dead, 3, false, MERGE_BREAK_CLOSED_FRONTIER, "s \"1\""},
    {"the wire of the dead", wire_of_the_dead, 3, false, MERGE_BREAK_KEEP_OLD_CONNECTIONS, NULL},
    {"the wire of the dead, again", wire_of_the_dead, 3, false, MERGE_BREAK_CLOSE_UNCONFIRMED, NULL},
    {"a restart with a slower clock", restart_with_a_slower_clock, 3, false, MERGE_BREAK_WALL_BACK, "s \"1\""},
    {"a state and operations", state_and_operations, 2, true, MERGE_BREAK_SNAPSHOT_NO_EXTRA, "s \"5\""},
    {"a state that lacks something", state_that_lacks_something, 2, true, MERGE_BREAK_SNAPSHOT_UNCHECKED, "s \"5\""},
    {"a slow clock of one given up", slow_clock_of_one_given_up, 3, true, MERGE_BREAK_LATE_WALL_IGNORED, NULL},
    {"a repair waits", repair_waits, 3, true, MERGE_BREAK_REPAIR_EARLY, "s \"7\""},
    {"a removal heard of first", removal_heard_of_first, 2, false, MERGE_BREAK_HELLO_ALONE, "s \"1\""},
    {"a late flush", late_flush, 2, true, MERGE_BREAK_FLUSH_LATE, "s \"12\""},
    {"pushes on both sides", pushes_on_both_sides, 2, false, MERGE_BREAK_IN_PLACE_PUSH_LAST, "l [zcybxam1p2q3r]"},
    {"pushes and a trim", pushes_and_a_trim, 2, false, MERGE_BREAK_IN_PLACE_PUSH_ANY, "l [12r]"},
    {"a ring in one direction", ring_in_one_direction, 3, true, MERGE_BREAK_WAIT_FOR_EVER, "s \"18\""},
    {"a crash of the sponsor", crash_of_the_sponsor, 2, false, MERGE_BREAK_JOIN_UNSYNCED, "s \"11\""},
};

enum { HISTORY_COUNT = sizeof(histories) / sizeof(histories[0]) };

static bool play(const struct directed *history, bool print, char *why, size_t size)
{
    struct sim_totals totals = {0};
    struct sim *sim = malloc(sizeof(*sim));
    bool right;

    sim_init_mesh(sim, history->node_count, history->bounded, &totals);
    sim->print = print;
    history->play(sim);
    right = sim_finish(sim);
    snprintf(why, size, "%s", sim->wrong);
    for (uint32_t i = 0; i < sim->node_count && right && history->wanted != NULL; i++) {
        const struct merge_key *key = sim->nodes[i].node == NULL
                                          ? NULL
                                          : merge_node_find(sim->nodes[i].node, slice_make("k0", 2));
        char text[400];

        if (sim->nodes[i].node == NULL)
            continue;
        value_print(text, sizeof(text), key != NULL ? key->record.value : NULL);
        right = strcmp(text, history->wanted) == 0;
        if (!right)
            snprintf(why, size, "%s instead of %s", text, history->wanted);
    }
    sim_fini(sim);
    free(sim);
    return right;
}

unsigned directed_run(unsigned *failed)
{
    unsigned passed = 0;
    char why[512];

    for (unsigned i = 0; i < HISTORY_COUNT; i++) {
        if (play(&histories[i], false, why, sizeof(why))) {
            passed++;
        } else {
            (*failed)++;
            printf("directed, %s: %s\n", histories[i].name, why);
            (void)play(&histories[i], true, why, sizeof(why));
        }
    }
    return passed;
}

enum directed_answer directed_find(enum merge_break rule)
{
    enum directed_answer answer = DIRECTED_NONE;
    char why[512];

    for (unsigned i = 0; i < HISTORY_COUNT && answer != DIRECTED_MISSED; i++) {
        if (histories[i].rule != (int)rule)
            continue;
        merge_breaks = UINT64_C(1) << rule;
        answer = play(&histories[i], false, why, sizeof(why)) ? DIRECTED_MISSED : DIRECTED_FOUND;
        merge_breaks = 0;
    }
    return answer;
}
