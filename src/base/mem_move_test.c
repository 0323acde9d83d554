#include "base/mem_move.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 100000, BLOCK_BYTES = 100 };

static uint32_t *blocks[BLOCKS];

static bool has_jemalloc(void)
{
    return mem_allocator_name()[0] == 'j';
}

static double holes_ratio(void)
{
    struct mem_stats stats;

    mem_purge(); /* with the cache of this thread, whose blocks count as in use */
    mem_stats(&stats);
    return (double)stats.active / (double)stats.allocated;
}

static void fill(size_t alignment)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        blocks[i] = mem_aligned_alloc(alignment, BLOCK_BYTES);
        for (unsigned k = 0; k < BLOCK_BYTES / sizeof(uint32_t); k++)
            blocks[i][k] = i + k;
    }
}

static void drop(uint32_t index)
{
    mem_free(blocks[index]);
    blocks[index] = NULL;
}

static uint64_t move_all(size_t alignment)
{
    struct mem_mover mover = {0, 0};
    uint64_t left = 0;

    for (uint32_t i = 0; i < BLOCKS; i++) {
        left += blocks[i] != NULL;
        blocks[i] = mem_move(&mover, blocks[i], alignment);
        assert_true(alignment == 0 || (uintptr_t)blocks[i] % alignment == 0);
    }
    assert_int_equal(mover.moved + mover.stayed, left);
    return mover.moved;
}

static void check_and_free(void)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        for (unsigned k = 0; blocks[i] != NULL && k < BLOCK_BYTES / sizeof(uint32_t); k++)
            assert_int_equal(blocks[i][k], i + k);
        drop(i);
    }
}

static void nothing_moves_where_nothing_is_won(void **state)
{
    struct mem_mover mover = {0, 0};
    char *large = mem_alloc(1000000);

    (void)state;
    assert_null(mem_move(&mover, NULL, 0));
    assert_int_equal(mover.stayed, 0);
    assert_ptr_equal(mem_move(&mover, large, 0), large);
    assert_int_equal(mover.stayed, 1);
    mem_free(large);
    fill(0);
    (void)move_all(0); /* blocks that other tests left */
    assert_int_equal(move_all(0), 0);
    check_and_free();
}

static void scattered_blocks_come_together(const char *name, bool at_random)
{
    struct random random = test_random(name);
    double before, after;

    if (!has_jemalloc())
        skip();
    assert_true(mem_move_is_possible());
    fill(0);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        if (at_random ? random_below(&random, 10) != 0 : i % 4 != 0)
            drop(i);
    }
    before = holes_ratio();
    assert_true(move_all(0) > BLOCKS / 100);
    after = holes_ratio();
    assert_true(before > 1.5);
    assert_true((after - 1) * 3 < before - 1);
    (void)move_all(0);
    assert_true(move_all(0) < BLOCKS / 1000); /* it comes to rest */
    check_and_free();
}

static void blocks_left_at_random_come_together(void **state)
{
    (void)state;
    scattered_blocks_come_together(__func__, true);
}

/* All slabs are alike then: none is emptier than the others. */
static void blocks_left_regularly_come_together(void **state)
{
    (void)state;
    scattered_blocks_come_together(__func__, false);
}

static void everything_can_be_moved(void **state)
{
    uint32_t *before[2];

    (void)state;
    assert_int_equal(mem_move_is_possible(), has_jemalloc());
    mem_move_everything(true);
    assert_true(mem_move_is_possible());
    fill(64);
    before[0] = blocks[0];
    before[1] = blocks[BLOCKS - 1];
    assert_int_equal(move_all(64), BLOCKS);
    assert_ptr_not_equal(blocks[0], before[0]);
    assert_ptr_not_equal(blocks[BLOCKS - 1], before[1]);
    mem_move_everything(false);
    check_and_free();
}

static void moving_takes_no_memory(void **state)
{
    size_t before;

    (void)state;
    fill(0);
    before = mem_used();
    mem_move_everything(true);
    (void)move_all(0);
    mem_move_everything(false);
    assert_int_equal(mem_used(), before);
    check_and_free();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_moves_where_nothing_is_won),
        cmocka_unit_test(blocks_left_at_random_come_together),
        cmocka_unit_test(blocks_left_regularly_come_together),
        cmocka_unit_test(everything_can_be_moved),
        cmocka_unit_test(moving_takes_no_memory),
    };

    mem_thread_start();
    return cmocka_run_group_tests_name("mem_move", tests, NULL, NULL);
}
