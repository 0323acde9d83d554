/* For tests of code that several threads run at once: runs the steps of the threads in every possible order.
 *
 * Actors stand for threads; they are coroutines of one thread. Before each access to shared data an actor calls
 * steps_point(), where the exploration may switch to another actor. steps_explore() runs the actors again and again,
 * each time in another order, until it has tried all orders with at most the given number of preemptions. Where an
 * actor must wait, every other actor is tried next. It is a search, not a race: it finds a window of one instruction as
 * reliably as a wide one.
 *
 * All actors see memory in one order, so missing fences are not found. To put points into a module, a test includes
 * base/test_steps_atomic.h first, then the module's own source file.
 *
 * It does not work under the thread sanitizer, which does not know coroutines, nor under the address sanitizer, which
 * knows them in part (STEPS_WORK is 0). There is only one thread. */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define STEPS_WORK 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define STEPS_WORK 0
#endif
#endif
#ifndef STEPS_WORK
#define STEPS_WORK 1
#endif

enum { STEPS_ACTORS_MOST = 4, STEPS_STACK_BYTES = 64 * 1024, STEPS_CHOICES_MOST = 4096 };

struct steps_actor {
    ucontext_t context;
    bool (*may_go)(void *argument); /* NULL: the actor can continue */
    void *argument;
};

static struct steps {
    struct steps_actor actors[STEPS_ACTORS_MOST];
    unsigned actor_count, current;
    ucontext_t explorer;
    struct steps_choice {
        uint8_t chosen, count;
    } choices[STEPS_CHOICES_MOST];
    unsigned choice_count, choice_next;
    unsigned preemptions_left;
    uint64_t order_count, switch_count;
} steps;

static char steps_stacks[STEPS_ACTORS_MOST][STEPS_STACK_BYTES];

/* Returns one of `count` alternatives: the one that this run has to try, or the first if no run has come here yet. */
static inline unsigned steps_choose(unsigned count)
{
    if (count == 1)
        return 0;
    assert(steps.choice_next < STEPS_CHOICES_MOST);
    if (steps.choice_next == steps.choice_count)
        steps.choices[steps.choice_count++] = (struct steps_choice){0, (uint8_t)count};
    assert(steps.choices[steps.choice_next].count == count); /* otherwise the actors differ between runs */
    return steps.choices[steps.choice_next++].chosen;
}

static inline bool steps_can_go(unsigned index)
{
    const struct steps_actor *actor = &steps.actors[index];

    return actor->may_go == NULL || actor->may_go(actor->argument);
}

/* Switches to the actor that runs next, and returns when this actor runs again. */
static inline void steps_switch(void)
{
    struct steps_actor *from = &steps.actors[steps.current];
    unsigned candidates[STEPS_ACTORS_MOST], count = 0;
    bool forced = !steps_can_go(steps.current);

    if (!forced)
        candidates[count++] = steps.current;
    for (unsigned i = 0; i < steps.actor_count; i++) {
        if (i != steps.current && steps_can_go(i))
            candidates[count++] = i;
    }
    if (count == 0) {
        swapcontext(&from->context, &steps.explorer); /* all actors wait: the run is over */
        return;
    }
    candidates[0] = candidates[steps_choose(count)];
    if (candidates[0] == steps.current)
        return;
    steps.preemptions_left -= !forced;
    steps.switch_count++;
    steps.current = candidates[0];
    swapcontext(&from->context, &steps.actors[steps.current].context);
}

/* Call it before each access to shared data. */
static inline void steps_point(void)
{
    if (steps.preemptions_left != 0)
        steps_switch();
}

/* Waits until `may_go` returns true. */
static inline void steps_wait(bool (*may_go)(void *argument), void *argument)
{
    struct steps_actor *actor = &steps.actors[steps.current];

    actor->may_go = may_go;
    actor->argument = argument;
    if (!may_go(argument) || steps.preemptions_left != 0)
        steps_switch();
    actor->may_go = NULL;
}

static inline bool steps_others_went(void *switch_count)
{
    return steps.switch_count != *(const uint64_t *)switch_count;
}

/* Call it in a polling loop: nothing can change before another actor has run. */
static inline void steps_pause(void)
{
    uint64_t switch_count = steps.switch_count;

    steps_wait(steps_others_went, &switch_count);
}

/* Selects the next order: the last choice that has an untried alternative takes it. False: all orders were tried. */
static inline bool steps_advance(void)
{
    for (; steps.choice_count != 0; steps.choice_count--) {
        struct steps_choice *last = &steps.choices[steps.choice_count - 1];

        if (last->chosen + 1 < last->count) {
            last->chosen++;
            return true;
        }
    }
    return false;
}

/* A function of its own, since the compiler assumes that getcontext returns twice. */
static NOINLINE __attribute__((unused)) void steps_prepare(struct steps_actor *actor, char *stack, void (*run)(void))
{
    getcontext(&actor->context);
    actor->context.uc_stack.ss_sp = stack;
    actor->context.uc_stack.ss_size = STEPS_STACK_BYTES;
    actor->context.uc_link = NULL;
    makecontext(&actor->context, run, 0);
    actor->may_go = NULL;
}

/* Runs `actor_count` actors in all orders with at most `preemptions` preemptions. An actor never returns: it waits at
 * its end, and a run is over when all actors wait. `setup` runs before each run; `is_right` checks the result after
 * each run. Returns the number of orders, or 0 if a check failed. */
static inline uint64_t steps_explore(void (*actor)(void), unsigned actor_count, unsigned preemptions,
                                     void (*setup)(void), bool (*is_right)(void))
{
    assert(actor_count <= STEPS_ACTORS_MOST);
    steps.actor_count = actor_count;
    steps.choice_count = 0;
    steps.order_count = 0;
    do {
        steps.preemptions_left = 0; /* no points outside of actors */
        setup();
        steps.choice_next = 0;
        steps.preemptions_left = preemptions;
        for (unsigned i = 0; i < actor_count; i++)
            steps_prepare(&steps.actors[i], steps_stacks[i], actor);
        steps.current = steps_choose(actor_count);
        swapcontext(&steps.explorer, &steps.actors[steps.current].context);
        steps.preemptions_left = 0;
        steps.order_count++;
        if (!is_right()) {
            printf("order %llu, actors chosen:", (unsigned long long)steps.order_count);
            for (unsigned i = 0; i < steps.choice_count; i++)
                printf(" %u/%u", steps.choices[i].chosen, steps.choices[i].count);
            printf("\n");
            return 0;
        }
    } while (steps_advance());
    return steps.order_count;
}
