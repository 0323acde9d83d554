#include "base/mem.h"
#include "base/compiler.h"
#include "base/fault.h"
#include "base/test_seed.h"
#include "base/thread.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void blocks_hold_what_was_asked(void **state)
{
    struct random random = test_random("blocks_hold_what_was_asked");
    enum { BLOCK_COUNT = 200 };
    static struct {
        unsigned char *bytes;
        size_t size;
        unsigned char fill;
    } blocks[BLOCK_COUNT];

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        unsigned i = (unsigned)random_below(&random, BLOCK_COUNT);
        size_t size = random_u64(&random) >> (50 + random_below(&random, 14));

        for (size_t j = 0; j < blocks[i].size; j++)
            assert_int_equal(blocks[i].bytes[j], blocks[i].fill);
        if (blocks[i].bytes != NULL && random_below(&random, 2) == 0) {
            size_t kept = MIN(size, blocks[i].size);

            blocks[i].bytes = round % 2 == 0 ? mem_realloc(blocks[i].bytes, size)
                                             : mem_try_realloc(blocks[i].bytes, size);
            for (size_t j = 0; j < kept; j++)
                assert_int_equal(blocks[i].bytes[j], blocks[i].fill);
        } else {
            if (round % 2 == 0)
                mem_free(blocks[i].bytes);
            else
                mem_free_sized(blocks[i].bytes, blocks[i].size);
            blocks[i].bytes = round % 4 < 2 ? mem_alloc(size) : mem_try_alloc_zero(size);
            for (size_t j = 0; round % 4 >= 2 && j < size; j++)
                assert_int_equal(blocks[i].bytes[j], 0);
        }
        assert_true(mem_usable(blocks[i].bytes) >= size);
        assert_true(mem_good_size(size) >= size);
        blocks[i].size = size;
        blocks[i].fill = (unsigned char)round;
        memset(blocks[i].bytes, blocks[i].fill, size);
    }
    for (unsigned i = 0; i < BLOCK_COUNT; i++)
        mem_free(blocks[i].bytes);
}

static void use_is_counted(void **state)
{
    size_t before = mem_used();
    size_t size = 10 * 1000 * 1000;
    char *block = mem_alloc(size);

    (void)state;
    assert_true(mem_used() >= before + size);
    assert_true(mem_used() <= before + size + size / 4);
    block = mem_realloc(block, size * 2);
    assert_true(mem_used() >= before + size * 2);
    mem_thread_publish();
    assert_true(mem_used() >= before + size * 2);
    mem_free(block);
    assert_true(mem_used() <= before + 1000);
    assert_true(mem_peak() >= before + size * 2);
    mem_reset_peak();
    assert_true(mem_peak() < before + size * 2);
    assert_int_equal(mem_usable(NULL), 0);
    mem_free(NULL);
    mem_free_sized(NULL, 10);
}

enum { HANDED_COUNT = 1000, HANDED_BYTES = 5000 };
static char *handed[HANDED_COUNT];

static void allocate_for_another(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < HANDED_COUNT; i++) {
        handed[i] = mem_alloc(HANDED_BYTES);
        mem_thread_publish();
    }
}

static void freeing_what_another_thread_allocated(void **state)
{
    size_t before = mem_used();
    struct thread thread = {0};
    size_t bytes = (size_t)HANDED_COUNT * HANDED_BYTES;

    (void)state;
    thread_start(&thread, "allocates", allocate_for_another, NULL);
    thread_join(&thread);
    assert_true(mem_used() >= before + bytes);
    for (unsigned i = 0; i < HANDED_COUNT; i++)
        mem_free(handed[i]);
    assert_true(mem_used() <= before + 100 * 1000); /* memory that the thread itself left behind */
}

static _Atomic int stage;

static void hold_little(void *argument)
{
    char *block = mem_alloc(MEM_PUBLISH_BYTES * 2);
    char *little;

    (void)argument;
    mem_thread_publish();
    little = mem_alloc(MEM_PUBLISH_BYTES / 2);
    mem_thread_publish(); /* too little: stays with the thread */
    atomic_store(&stage, 1);
    while (atomic_load(&stage) < 2)
        ;
    mem_free(block);
    mem_thread_publish(); /* that is a difference, too */
    atomic_store(&stage, 3);
    while (atomic_load(&stage) < 4)
        ;
    mem_free(little);
}

static void the_error_is_bounded(void **state)
{
    size_t before;
    struct thread thread = {0};

    (void)state;
    mem_thread_stop(); /* publishes our own */
    before = mem_used();
    thread_start(&thread, "holds", hold_little, NULL);
    while (atomic_load(&stage) < 1)
        ;
    assert_true(mem_used() >= before + MEM_PUBLISH_BYTES * 2);
    assert_true(mem_used() < before + MEM_PUBLISH_BYTES * 2 + MEM_PUBLISH_BYTES / 2);
    atomic_store(&stage, 2);
    while (atomic_load(&stage) < 3)
        ;
    assert_true(mem_used() < before + MEM_PUBLISH_BYTES);
    atomic_store(&stage, 4);
    thread_join(&thread);
    assert_true(mem_used() < before + MEM_PUBLISH_BYTES); /* all is published at the end */
}

/* A thread that frees memory of other threads, and whose code does no accounting. */
static void free_and_stay(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < HANDED_COUNT; i++)
        mem_free(handed[i]);
    atomic_store(&stage, 1);
    while (atomic_load(&stage) < 2)
        ;
    for (unsigned i = 0; i < HANDED_COUNT; i++)
        handed[i] = mem_realloc(mem_alloc(HANDED_BYTES / 2), HANDED_BYTES);
    atomic_store(&stage, 3);
    while (atomic_load(&stage) < 4)
        ;
}

static void a_thread_that_never_publishes_is_counted(void **state)
{
    struct thread thread = {0};
    const size_t bytes = (size_t)HANDED_COUNT * HANDED_BYTES;
    size_t before;

    (void)state;
    atomic_store(&stage, 0);
    before = mem_used();
    for (unsigned i = 0; i < HANDED_COUNT; i++)
        handed[i] = mem_alloc(HANDED_BYTES);
    thread_start(&thread, "stays", free_and_stay, NULL);
    while (atomic_load(&stage) < 1)
        ;
    assert_true(mem_used() < before + MEM_DRIFT_BYTES + 4096);
    atomic_store(&stage, 2);
    while (atomic_load(&stage) < 3)
        ;
    assert_true(mem_used() > before + bytes - MEM_DRIFT_BYTES);
    atomic_store(&stage, 4);
    thread_join(&thread);
    assert_true(mem_used() >= before + bytes);
    for (unsigned i = 0; i < HANDED_COUNT; i++)
        mem_free(handed[i]);
    assert_true(mem_used() < before + 4096); /* memory that the thread itself left behind */
}

static void trying_can_fail(void **state)
{
    char *block = mem_copy_text("abc");

    (void)state;
    assert_true(fault_arm(FAULT_MEMORY, 1));
    char *first = mem_try_alloc(10);
    assert_non_null(first);
    assert_null(mem_try_realloc(block, 100));
    assert_true(fault_fired());
    assert_string_equal(block, "abc");
    assert_int_equal(fault_hits(), 2);
    fault_disarm();
    mem_free(first);
    mem_free(block);
#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
    volatile size_t too_much = SIZE_MAX / 4;
    assert_null(mem_try_alloc(too_much));
#endif
#endif
}

static void aligned_blocks(void **state)
{
    (void)state;
    for (size_t alignment = 1; alignment <= 65536; alignment *= 2) {
        void *block = mem_aligned_alloc(alignment, 100);

        assert_int_equal((uintptr_t)block % alignment, 0);
        mem_free(block);
    }
}

static size_t report_size;

static void count_report(void *context, const char *text)
{
    (void)context;
    report_size += strlen(text);
}

static void statistics_are_plausible(void **state)
{
    struct mem_stats stats;
    char *block = mem_alloc(5000000);

    (void)state;
    memset(block, 1, 5000000);
    mem_stats(&stats);
    assert_true(mem_rss() > 1000000);
    assert_true(mem_system_total() > mem_rss());
    assert_true(strncmp(mem_allocator_name(), "jemalloc-", 9) == 0 || strcmp(mem_allocator_name(), "libc") == 0);
    if (mem_allocator_name()[0] == 'j') {
        assert_true(stats.allocated >= 5000000);
        assert_true(stats.active >= stats.allocated);
        assert_true(stats.resident >= stats.active);
        assert_true(stats.metadata > 0);
    }
    mem_free(block);
    mem_purge();
    mem_report(count_report, NULL);
    assert_true(report_size > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_hold_what_was_asked),
        cmocka_unit_test(use_is_counted),
        cmocka_unit_test(freeing_what_another_thread_allocated),
        cmocka_unit_test(the_error_is_bounded),
        cmocka_unit_test(a_thread_that_never_publishes_is_counted),
        cmocka_unit_test(trying_can_fail),
        cmocka_unit_test(aligned_blocks),
        cmocka_unit_test(statistics_are_plausible),
    };
    mem_thread_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
