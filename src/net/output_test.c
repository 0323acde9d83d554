#include "net/output.h"

#include "base/blob.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/uio.h>

#include <cmocka.h>

/* The model is a buffer: whatever was appended and not consumed, in order. */
struct pair {
    struct output output;
    struct buffer model;
};

static void expect_same(struct pair *pair)
{
    struct buffer got = {0};
    struct iovec pieces[4096];
    unsigned count = output_iovec(&pair->output, pieces, countof(pieces));
    size_t described = 0, nodes = 0;

    for (const struct output_node *node = pair->output.head; node != NULL; node = node->next)
        nodes++;
    assert_int_equal(output_more_count(&pair->output), nodes != 0 ? nodes - 1 : 0);
    assert_int_equal(output_size(&pair->output), pair->model.size);
    output_to_buffer(&pair->output, &got);
    assert_int_equal(got.size, pair->model.size);
    if (got.size != 0)
        assert_memory_equal(got.data, pair->model.data, got.size);
    for (unsigned i = 0; i < count; i++) {
        assert_memory_equal(pieces[i].iov_base, pair->model.data + described, pieces[i].iov_len);
        described += pieces[i].iov_len;
    }
    assert_int_equal(described, pair->model.size);
    buffer_fini(&got);
}

static void fill(struct random *random, char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)random_below(random, 256);
}

static void append_some(struct random *random, struct pair *pair, char *scratch)
{
    static const size_t limits[] = {8, 100, 1000, 5000, 40000};
    size_t size = random_below(random, limits[random_below(random, countof(limits))]);

    fill(random, scratch, size);
    if (size <= OUTPUT_RESERVE_MAX_BYTES && random_below(random, 2) == 0) {
        char *at = output_reserve(&pair->output, size + (size < 1000 ? 20 : 0));

        if (size != 0)
            memcpy(at, scratch, size);
        output_commit(&pair->output, at + size);
    } else {
        output_append(&pair->output, scratch, size);
    }
    buffer_append(&pair->model, scratch, size);
}

static void append_blob(struct random *random, struct pair *pair, struct blob *blob)
{
    size_t offset = random_below(random, blob->size);
    size_t size = random_below(random, blob->size - offset + 1);

    output_append_blob(&pair->output, blob, offset, size);
    buffer_append(&pair->model, blob->data + offset, size);
}

static void write_in_gap(struct random *random, struct pair *pair, char *scratch)
{
    size_t room = 1 + random_below(random, 64);
    size_t size = random_below(random, room + 1);
    struct output_gap outer = output_gap_open(&pair->output, room);
    size_t at = pair->model.size;
    char head[64];

    fill(random, head, size);
    buffer_append(&pair->model, head, size);
    for (uint64_t n = random_below(random, 4); n > 0; n--)
        append_some(random, pair, scratch);
    if (random_below(random, 2) == 0) {
        struct output_gap inner = output_gap_open(&pair->output, 24);

        buffer_append(&pair->model, "inner", 5);
        append_some(random, pair, scratch);
        output_gap_close(&pair->output, inner, "inner", 5);
    }
    output_gap_close(&pair->output, outer, head, size);
    assert_true(at <= pair->model.size);
}

static void behaves_as_a_buffer(void **state)
{
    struct output_pool pool = {0};
    struct pair pairs[3] = {0};
    struct blob *blob = blob_create(50000);
    char *scratch = mem_alloc(50000);
    struct random random;
    uint64_t seed = 20250101;

    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    random_seed(&random, seed);
    fill(&random, blob->data, blob->size);
    output_init(&pairs[0].output, &pool);
    output_init(&pairs[1].output, &pool);
    output_init(&pairs[2].output, NULL);
    for (int i = 0; i < 20000; i++) {
        struct pair *pair = &pairs[random_below(&random, 3)];
        struct pair *other = &pairs[random_below(&random, 3)];
        uint64_t dice = random_below(&random, 16);
        size_t size = 0;

        if (dice < 7) {
            append_some(&random, pair, scratch);
        } else if (dice < 9) {
            append_blob(&random, pair, blob);
        } else if (dice < 10) {
            write_in_gap(&random, pair, scratch);
        } else if (dice < 12 && pair != other) {
            output_splice(&pair->output, &other->output);
            buffer_append(&pair->model, other->model.data, other->model.size);
            buffer_clear(&other->model);
            assert_true(output_is_empty(&other->output));
        } else if (dice < 15 || pair->model.size > 300000) {
            size = random_below(&random, 3) == 0 ? pair->model.size : random_below(&random, pair->model.size + 1);
            output_consume(&pair->output, size);
            buffer_consume(&pair->model, size);
        } else if (random_below(&random, 20) == 0) {
            output_clear(&pair->output);
            buffer_clear(&pair->model);
        }
        expect_same(pair);
    }
    for (size_t i = 0; i < countof(pairs); i++) {
        output_clear(&pairs[i].output);
        buffer_fini(&pairs[i].model);
    }
    assert_true(blob_is_exclusive(blob)); /* every reference was given back */
    blob_release(&blob);
    output_pool_fini(&pool);
    mem_free(scratch);
}

static void empty_owns_nothing(void **state)
{
    struct output_pool pool = {0};
    struct output output;

    (void)state;
    output_init(&output, &pool);
    assert_int_equal(output_memory_bytes(&output), 0);
    output_append(&output, "x", 1);
    assert_int_equal(output_memory_bytes(&output), OUTPUT_SMALL_BLOCK_BYTES);
    output_consume(&output, 1);
    assert_true(output_is_empty(&output));
    assert_int_equal(output_memory_bytes(&output), 0);
    assert_int_equal(pool.small_count, 1);
    output_append(&output, "x", 1);
    assert_int_equal(pool.small_count, 0); /* taken again */
    output_clear(&output);
    output_pool_fini(&pool);
}

/* A reservation at the limit, and block sizes that follow the need. */
static void blocks_fit_their_use(void **state)
{
    struct output_pool pool = {0};
    struct output output;
    char *at = NULL;

    (void)state;
    output_init(&output, &pool);
    at = output_reserve(&output, OUTPUT_RESERVE_MAX_BYTES);
    memset(at, 'x', OUTPUT_RESERVE_MAX_BYTES);
    output_commit(&output, at + OUTPUT_RESERVE_MAX_BYTES);
    assert_int_equal(output_memory_bytes(&output), OUTPUT_BLOCK_BYTES);
    output_consume(&output, OUTPUT_RESERVE_MAX_BYTES);

    output.large_first = false;
    for (int i = 0; i < 300; i++)
        output_append(&output, "12345678", 8);
    assert_true(output.large_first);
    assert_ptr_not_equal(output.head, output.tail);
    output_consume(&output, 2400);
    for (int i = 0; i < 300; i++)
        output_append(&output, "12345678", 8);
    assert_ptr_equal(output.head, output.tail); /* one block, one send */
    output_consume(&output, 2400);
    output_append(&output, "x", 1);
    output_consume(&output, 1);
    assert_false(output.large_first);
    output_pool_fini(&pool);
}

static void pool_is_bounded(void **state)
{
    struct output_pool pool = {0};
    struct output output;
    char block[OUTPUT_RESERVE_MAX_BYTES] = {0};

    (void)state;
    output_init(&output, &pool);
    for (int i = 0; i < 1000; i++)
        output_append(&output, block, sizeof(block));
    output_clear(&output);
    assert_true(pool.large_count > 0 && pool.large_count <= 128);
    output_pool_fini(&pool);
    assert_int_equal(pool.large_count, 0);
}

static void what_is_transient(void **state)
{
    struct output_pool pool = {0};
    struct output stays, goes;
    char block[OUTPUT_RESERVE_MAX_BYTES] = {0};

    (void)state;
    output_pool_init(&pool);
    assert_int_equal(output_pool_transient_bytes(&pool), 0); /* these stay */
    output_init(&stays, &pool);
    output_init(&goes, &pool);
    stays.large_first = goes.large_first = true;
    output_append(&stays, block, sizeof(block));
    output_append(&goes, block, sizeof(block));
    output_append(&goes, block, sizeof(block));
    assert_int_equal(output_pool_transient_bytes(&pool), 2 * OUTPUT_BLOCK_BYTES); /* not tried yet */
    output_consume(&goes, 2 * sizeof(block));
    output_pool_tried(&pool);
    assert_int_equal(output_pool_transient_bytes(&pool), OUTPUT_BLOCK_BYTES); /* two are free now, one of them stays */
    output_append(&goes, block, sizeof(block));
    assert_int_equal(output_pool_transient_bytes(&pool), OUTPUT_BLOCK_BYTES); /* it was free, now it is not tried */
    output_pool_add_transient(&pool, 1000);
    assert_int_equal(output_pool_transient_bytes(&pool), OUTPUT_BLOCK_BYTES + 1000);
    output_pool_tried(&pool);
    assert_int_equal(output_pool_transient_bytes(&pool), 0); /* neither could be sent */
    output_clear(&stays);
    output_clear(&goes);
    output_pool_tried(&pool);
    assert_int_equal(output_pool_transient_bytes(&pool), 2 * OUTPUT_BLOCK_BYTES);
    for (int i = 0; i < 2; i++)
        output_pool_shrink(&pool);
    assert_int_equal(output_pool_transient_bytes(&pool), 0);
    output_pool_fini(&pool);
    assert_int_equal(output_pool_transient_bytes(&pool), 0);
}

static void assert_pool_has_one_of_each(const struct output_pool *pool)
{
    assert_int_equal(pool->small_count, 1);
    assert_int_equal(pool->large_count, 1);
    assert_int_equal(output_pool_transient_bytes(pool), 0);
}

static void one_block_of_each_size_stays(void **state)
{
    struct output_pool pool = {0};
    struct output output;
    char block[OUTPUT_RESERVE_MAX_BYTES] = {0};

    (void)state;
    output_pool_init(&pool);
    assert_pool_has_one_of_each(&pool);
    output_pool_shrink(&pool);
    assert_pool_has_one_of_each(&pool);
    output_init(&output, &pool);
    for (int i = 0; i < 10; i++)
        output_append(&output, block, sizeof(block));
    output_give_back(&output);
    assert_true(output_is_empty(&output));
    assert_int_equal(output_size(&output), 0);
    assert_pool_has_one_of_each(&pool);
    for (int i = 0; i < 10; i++)
        output_append(&output, block, sizeof(block));
    output_clear(&output);
    assert_true(pool.large_count > 1);
    output_pool_trim(&pool);
    assert_pool_has_one_of_each(&pool);
    output_pool_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behaves_as_a_buffer),  cmocka_unit_test(empty_owns_nothing),
        cmocka_unit_test(blocks_fit_their_use), cmocka_unit_test(pool_is_bounded),
        cmocka_unit_test(what_is_transient),    cmocka_unit_test(one_block_of_each_size_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
