#include "base/mem.h"
#include "base/test_dies.h"
#include "base/thread.h"
#include "server/core/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct worker *worker;

static int setup(void **state)
{
    (void)state;
    worker = mem_alloc_zero(sizeof(*worker));
    worker_adopt(worker);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mem_free(worker);
    return 0;
}

static uint64_t count_of(const char *code)
{
    const struct worker_stats *stats = &worker->stats;

    for (uint32_t i = 0; i < atomic_load(&stats->error_code_count); i++) {
        if (strcmp(stats->error_codes[i].code, code) == 0)
            return atomic_load(&stats->error_codes[i].count);
    }
    return 0;
}

static void count(const char *text)
{
    worker_count_error(worker, slice_from_text(text));
}

static void codes_are_the_first_of_several_words(void **state)
{
    (void)state;
    count("WRONGTYPE Operation against a key");
    count("WRONGTYPE once more");
    count("alone");
    count("");
    count(" begins with a blank");
    count("a:b#c\td e");
    assert_int_equal(count_of("WRONGTYPE"), 2);
    assert_int_equal(count_of("ERR"), 2);
    assert_int_equal(count_of(""), 1);
    assert_int_equal(count_of("a_b_c_d"), 1);
    assert_int_equal(atomic_load(&worker->stats.error_replies), 6);
}

static void a_long_code_is_none(void **state)
{
    const char *code = "abcdefghijklmnopqrstuvwxyz01234"; /* 31 */

    (void)state;
    for (int size = 29; size <= 31; size++) {
        char text[64];

        snprintf(text, sizeof(text), "%.*s text", size, code);
        count(text);
    }
    assert_int_equal(count_of("abcdefghijklmnopqrstuvwxyz012"), 1);
    assert_int_equal(count_of("abcdefghijklmnopqrstuvwxyz0123"), 1);
    assert_int_equal(count_of("ERR"), 1);
}

static void codes_beyond_the_limit_count_together(void **state)
{
    char text[64];

    (void)state;
    for (int i = 0; i < ERROR_CODES_MOST; i++) {
        snprintf(text, sizeof(text), "E%d text", i);
        count(text);
    }
    assert_int_equal(atomic_load(&worker->stats.error_code_count), ERROR_CODES_MOST);
    assert_int_equal(count_of("E127"), 1);
    assert_int_equal(count_of(ERROR_CODE_OVERFLOW), 0);
    count("ONE too many");
    assert_int_equal(count_of(ERROR_CODE_OVERFLOW), 1);
    count("ANOTHER too many");
    count("ONE too many");
    count("E0 is known");
    assert_int_equal(count_of(ERROR_CODE_OVERFLOW), 3);
    assert_int_equal(count_of("E0"), 2);
    assert_int_equal(atomic_load(&worker->stats.error_code_count), ERROR_CODES_MOST + 1);
}

static void use_it(void *argument)
{
    worker_at_turn_end(argument);
}

static void adopt_and_use_it(void *argument)
{
    worker_adopt(argument);
    use_it(argument);
}

static void run(void (*function)(void *argument))
{
    struct thread thread = {0};

    thread_start(&thread, "other", function, worker);
    thread_join(&thread);
}

static void use_here(void)
{
    use_it(worker);
}

static void use_elsewhere(void)
{
    run(use_it);
}

static void use_where_it_is_adopted(void)
{
    run(adopt_and_use_it);
}

static void use_here_what_is_adopted_elsewhere(void)
{
    run(adopt_and_use_it);
    use_it(worker);
}

static void post_what_cannot_be_delivered(void)
{
    struct mail mail = {.deliver = NULL};

    worker_post_quietly(worker, &mail);
}

static void be_outside_with_a_lock(void)
{
    struct spinlock lock;

    spinlock_init(&lock, LOCK_REGISTRY);
    spinlock_acquire(&lock);
    worker_assert_outside(worker);
}

static void promises_are_kept(void **state)
{
    (void)state;
    assert_false(dies(use_here));
    assert_true(dies(use_elsewhere));
    assert_false(dies(use_where_it_is_adopted));
    assert_true(dies(use_here_what_is_adopted_elsewhere));
    assert_true(dies(post_what_cannot_be_delivered));
    assert_true(dies(be_outside_with_a_lock));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(codes_are_the_first_of_several_words, setup, teardown),
        cmocka_unit_test_setup_teardown(a_long_code_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(codes_beyond_the_limit_count_together, setup, teardown),
        cmocka_unit_test_setup_teardown(promises_are_kept, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
