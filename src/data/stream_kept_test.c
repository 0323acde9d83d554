#include "data/stream_kept.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/test_seed.h"
#include "data/stream_node.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct stream_id node_id = {1000, 0};

/* Entries 1000-0, 1001-0 ... with a value of `size` bytes, alike or random. */
static struct listpack *make_node(unsigned count, size_t size, struct random *random)
{
    char *text = mem_alloc_zero(size + 1);
    struct slice pairs[2] = {SLICE("field"), slice_make(text, size)};
    struct listpack *node = stream_node_create(pairs, 1);

    for (unsigned i = 0; i < count; i++) {
        for (size_t k = 0; k < size; k++)
            text[k] = (char)(random != NULL ? random_below(random, 256) : 'x');
        stream_node_append(&node, node_id, (struct stream_id){node_id.ms + i, 0}, pairs, 1);
    }
    mem_free(text);
    return node;
}

static void mark(struct listpack **node, unsigned index)
{
    listpack_at at = stream_node_first_entry(*node);
    struct stream_entry entry;

    for (unsigned i = 0; i <= index; i++)
        at = stream_node_read(*node, node_id, at, &entry);
    stream_node_mark(node, &entry);
    stream_node_count_deleted(node, 1);
}

static void expect_bytes(const struct stream_kept *kept, struct slice wanted)
{
    struct listpack *own;
    const struct listpack *node = stream_kept_read(kept, &own);

    assert_true(slice_equal(listpack_as_bytes(node), wanted));
    assert_int_equal(own != NULL, stream_kept_is_packed(kept));
    listpack_destroy(&own);
}

static void packs_and_opens(void **state)
{
    (void)state;
    for (unsigned count = 20; count < 200; count += 30) {
        struct listpack *node = make_node(count, count, NULL), *wanted;
        struct stream_kept *kept, *copy;
        uint64_t open_bytes;

        mark(&node, 3);
        mark(&node, count - 1);
        wanted = listpack_copy(node);
        kept = stream_keep(node);
        assert_false(stream_kept_is_packed(kept));
        open_bytes = stream_kept_memory_bytes(kept);
        kept = stream_kept_pack(kept, node_id);
        assert_true(stream_kept_is_packed(kept));
        assert_true(stream_kept_memory_bytes(kept) < open_bytes);
        assert_int_equal(stream_kept_live(kept), count - 2);
        assert_int_equal(stream_kept_last_live_id(kept, node_id).ms, node_id.ms + count - 2);
        expect_bytes(kept, listpack_as_bytes(wanted));
        assert_ptr_equal(stream_kept_pack(kept, node_id), kept);
        copy = stream_kept_copy(kept);
        node = stream_kept_open(kept);
        assert_true(slice_equal(listpack_as_bytes(node), listpack_as_bytes(wanted)));
        mark(&node, 0);
        kept = stream_keep(node);
        assert_int_equal(stream_kept_live(kept), count - 3);
        expect_bytes(copy, listpack_as_bytes(wanted));
        stream_kept_destroy(&kept);
        stream_kept_destroy(&copy);
        assert_null(copy);
        listpack_destroy(&wanted);
    }
}

static void expect_packs(struct listpack *node, bool wanted)
{
    struct stream_kept *kept = stream_kept_pack(stream_keep(node), node_id);

    assert_int_equal(stream_kept_is_packed(kept), wanted);
    stream_kept_destroy(&kept);
}

static void stays_open_where_it_does_not_pay(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    expect_packs(make_node(1, 20, NULL), false); /* small */
    expect_packs(make_node(100, 40, &random), false);
    expect_packs(make_node(100, 40, NULL), true);
    expect_packs(make_node(1, (256 << 10) - 100, NULL), true);
    expect_packs(make_node(1, 256 << 10, NULL), false); /* takes too long */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_and_opens),
        cmocka_unit_test(stays_open_where_it_does_not_pay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
