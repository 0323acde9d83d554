#include "base/mpsc.h"

#include "base/mem.h"
#include "base/spinlock.h"
#include "base/thread.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { PRODUCERS = 3, MESSAGES = 50000 };

struct message {
    struct mpsc_node node;
    unsigned producer;
    uint64_t number; /* plain: handed over by the queue alone */
};

static struct mpsc queue;

struct producer {
    struct thread thread;
    unsigned index;
};

static void produce(void *argument)
{
    const struct producer *producer = argument;

    for (uint64_t i = 0; i < MESSAGES; i++) {
        struct message *message = mem_alloc(sizeof(*message));

        message->producer = producer->index;
        message->number = i;
        mpsc_push(&queue, &message->node);
    }
}

/* Each producer's messages arrive all, once, in its order. */
static void messages_arrive_in_order(void **state)
{
    struct producer producers[PRODUCERS] = {0};
    uint64_t next[PRODUCERS] = {0}, total = 0;

    (void)state;
    mpsc_init(&queue);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        producers[i].index = i;
        thread_start(&producers[i].thread, "producer", produce, &producers[i]);
    }
    while (total < (uint64_t)PRODUCERS * MESSAGES) {
        struct mpsc_node *node = mpsc_pop(&queue);
        struct message *message;

        if (node == NULL) {
            sched_yield();
            continue;
        }
        message = container_of(node, struct message, node);
        assert_int_equal(message->number, next[message->producer]++);
        mem_free(message);
        total++;
    }
    for (unsigned i = 0; i < PRODUCERS; i++)
        thread_join(&producers[i].thread);
    assert_null(mpsc_pop(&queue));
    assert_true(mpsc_is_empty(&queue));
}

static struct spinlock lock;
static uint64_t guarded;

static void add_under_lock(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < MESSAGES; i++) {
        spinlock_acquire(&lock);
        spinlock_assert_held(&lock);
        guarded++;
        spinlock_release(&lock);
    }
}

NO_THREAD_SAFETY_ANALYSIS static void a_spinlock_excludes(void **state)
{
    struct thread threads[PRODUCERS] = {0};

    (void)state;
    spinlock_init(&lock, LOCK_NONE);
    for (unsigned i = 0; i < PRODUCERS; i++)
        thread_start(&threads[i], "adder", add_under_lock, NULL);
    for (unsigned i = 0; i < PRODUCERS; i++)
        thread_join(&threads[i]);
    assert_int_equal(guarded, (uint64_t)PRODUCERS * MESSAGES);
    assert_false(spinlock_is_mine(&lock));
    assert_true(spinlock_try(&lock));
    assert_false(spinlock_try(&lock));
    assert_false(spinlock_acquire_bounded(&lock, 10));
    spinlock_release(&lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive_in_order),
        cmocka_unit_test(a_spinlock_excludes),
    };

    fence_setup();
    return cmocka_run_group_tests_name("mpsc and spinlock", tests, NULL, NULL);
}
