/* Records of a journal become the entries that were done: in memory and from its file, with blobs and without. */
#include "active/gather.h"

#include "base/blob.h"
#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define NOW_MS INT64_C(1800000000000)
enum { OWN = 4711, PEER = 99, ENTRIES = 3000, OPS_MOST = 4, WORDS_MOST = 5 };

static struct blob *large; /* a value that is referenced */

struct done_op {
    struct slice words[WORDS_MOST];
    char texts[WORDS_MOST][24];
    uint32_t word_count, key_index;
    unsigned db;
    bool overwrites;
};

struct done {
    uint64_t origin, stamp, previous, mvcc;
    int64_t wall;
    bool flush;
    struct done_op ops[OPS_MOST];
    uint32_t op_count;
};

static struct done done[ENTRIES];

static struct blob *blob_of(const void *context, struct slice word)
{
    (void)context;
    return word.data == large->data ? large : NULL;
}

static void random_op(struct random *random, struct done_op *op)
{
    op->word_count = 1 + (uint32_t)random_below(random, WORDS_MOST);
    op->key_index = (uint32_t)random_below(random, op->word_count);
    op->db = random_below(random, 4) == 0 ? (unsigned)random_below(random, 16) : 0;
    op->overwrites = random_below(random, 2) == 0;
    for (uint32_t i = 0; i < op->word_count; i++) {
        const int size = snprintf(op->texts[i], sizeof(op->texts[i]), "%llx",
                                  (unsigned long long)(random_u64(random) >> random_below(random, 64)));

        op->words[i] = random_below(random, 60) == 0 ? blob_slice(large) : slice_make(op->texts[i], (size_t)size);
    }
}

/* Adds the effects of one group, some with effects beside them that peers do not get. */
static void do_one(struct random *random, struct journal *journal, struct done *one, uint64_t *last_of_peer)
{
    const struct slice hidden[] = {SLICE("HIDDEN")};
    struct effect_stamp stamps[2 * OPS_MOST + 1] = {{.wall_ms = NOW_MS + (int64_t)random_below(random, 9)}};
    struct effects effects = {0};
    uint32_t shown = 0;

    one->op_count = 1 + (uint32_t)random_below(random, OPS_MOST) * (random_below(random, 2) == 0);
    one->flush = random_below(random, 20) == 0;
    for (uint32_t i = 0; i < one->op_count; i++) {
        struct done_op *op = &one->ops[i];

        random_op(random, op);
        if (random_below(random, 5) == 0)
            effects_add_unshared(&effects, 0, hidden, 1);
        shown = effects.count;
        effects_add_with_blobs(&effects, op->db, op->words, op->word_count, blob_of, NULL);
        effects_describe(&effects, op->key_index,
                         (op->overwrites ? EFFECT_OVERWRITES : 0) | (one->flush && i == 0 ? EFFECT_FLUSH : 0));
    }
    if (random_below(random, 5) == 0)
        effects_add_unshared(&effects, 0, hidden, 1);
    if (random_below(random, 2) == 0) {
        stamps[0].origin = PEER;
        stamps[0].previous = *last_of_peer;
        stamps[0].mvcc = random_below(random, 3);
        *last_of_peer = stamps[0].stamp = MAX(*last_of_peer, stamp_at(NOW_MS)) + 1 + random_below(random, 9);
    }
    journal_append_stamped(journal, &effects, false, stamps);
    one->origin = stamps[0].origin != 0 ? stamps[0].origin : OWN;
    one->stamp = stamps[shown].stamp;
    one->previous = stamps[shown].previous;
    one->mvcc = stamps[0].mvcc;
    one->wall = stamps[0].wall_ms;
    effects_fini(&effects);
}

static void check_op(const struct frame_op *found, const struct done_op *op)
{
    uint32_t blob = 0;

    assert_int_equal(found->word_count, op->word_count);
    assert_int_equal(found->key_index, op->key_index);
    assert_int_equal(found->db, op->db);
    assert_int_equal(found->overwrites, op->overwrites);
    assert_false(found->evicts);
    for (uint32_t i = 0; i < op->word_count; i++) {
        assert_true(slice_equal(found->words[i], op->words[i]));
        if (blob < found->blob_count && found->blobs[blob].arg_index == i)
            assert_true(slice_equal(blob_slice(found->blobs[blob++].blob), op->words[i]));
    }
    assert_int_equal(blob, found->blob_count);
}

static void check(const struct frame_entry *found, const struct done *one)
{
    assert_int_equal(found->origin, one->origin);
    assert_int_equal(uuid_id(&found->uuid), one->origin);
    assert_int_equal(found->stamp, one->stamp);
    assert_int_equal(found->prev, one->previous);
    assert_int_equal(found->mvcc, one->mvcc);
    assert_int_equal(found->wall, one->wall);
    assert_int_equal(found->flush, one->flush);
    assert_int_equal(found->op_count, one->op_count);
    for (uint32_t i = 0; i < one->op_count; i++)
        check_op(&found->ops[i], &one->ops[i]);
}

/* gather_write, and gather_take with frame_writer_add, which write the same. */
struct both {
    struct gather *gathers[2];
    struct frame_writer *writers[2];
    unsigned frames;
};

static struct both begin_both(void)
{
    return (struct both){{gather_create(), gather_create()}, {frame_writer_create(), frame_writer_create()}, 0};
}

static void compare_frames(struct both *both)
{
    struct output outputs[2];
    struct buffer bytes[2] = {{0}};

    for (unsigned i = 0; i < 2; i++) {
        output_init(&outputs[i], NULL);
        frame_writer_flush(both->writers[i], &outputs[i]);
        output_to_buffer(&outputs[i], &bytes[i]);
        output_clear(&outputs[i]);
    }
    assert_true(slice_equal(buffer_slice(&bytes[0]), buffer_slice(&bytes[1])));
    buffer_fini(&bytes[0]);
    buffer_fini(&bytes[1]);
    both->frames++;
}

static void write_both(struct both *both, const struct journal_view *view)
{
    const struct frame_entry *entry = gather_take(both->gathers[0], view);

    if (entry != NULL)
        frame_writer_add(both->writers[0], entry);
    assert_int_equal(gather_write(both->gathers[1], view, both->writers[1]), entry != NULL);
    assert_int_equal(frame_writer_bytes(both->writers[0]), frame_writer_bytes(both->writers[1]));
    if (frame_writer_bytes(both->writers[0]) > 2000)
        compare_frames(both);
}

static void end_both(struct both *both)
{
    compare_frames(both);
    assert_true(both->frames > 10);
    for (unsigned i = 0; i < 2; i++) {
        gather_destroy(&both->gathers[i]);
        frame_writer_destroy(&both->writers[i]);
    }
}

static void gather_all(uint64_t memory_limit_bytes)
{
    struct random random = test_random(__func__);
    struct gather *gather = gather_create();
    struct both both = begin_both();
    uint64_t last_of_peer = 0;
    struct journal journal;
    struct journal_reader reader;
    struct journal_stats stats;
    struct journal_view view;
    unsigned count = 0;

    journal_init(&journal);
    journal_set_stamping(&journal, OWN, 0);
    journal_set_memory_limit(&journal, memory_limit_bytes);
    journal_reader_open(&reader, &journal);
    journal_reader_set(&reader, JOURNAL_READER_SPILLS, JOURNAL_SELECT | JOURNAL_BEGINS | JOURNAL_NOT_FOR_PEERS);
    for (unsigned i = 0; i < ENTRIES; i++) {
        do_one(&random, &journal, &done[i], &last_of_peer);
        if (journal_wants_tending(&journal))
            assert_true(journal_tend(&journal));
    }
    journal_stats(&journal, &stats);
    assert_int_equal(stats.spilled_bytes != 0, memory_limit_bytes != 0);
    while (journal_reader_next(&reader, &view)) {
        const struct frame_entry *entry;

        if (view.stamp == NULL)
            continue;
        write_both(&both, &view);
        entry = gather_take(gather, &view);
        assert_int_equal(entry != NULL, (view.flags & JOURNAL_ENTRY_ENDS) != 0);
        if (entry != NULL)
            check(entry, &done[count++]);
    }
    assert_int_equal(count, ENTRIES);
    end_both(&both);
    gather_destroy(&gather);
    journal_reader_close(&reader);
    journal_fini(&journal);
}

static void from_memory(void **state)
{
    (void)state;
    gather_all(0);
}

static void from_the_file(void **state)
{
    (void)state;
    gather_all(300 << 10);
}

static int setup(void **state)
{
    (void)state;
    large = blob_create(5000);
    memset(large->data, 'x', large->size);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    blob_release(&large);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_memory),
        cmocka_unit_test(from_the_file),
    };

    return cmocka_run_group_tests_name("gather", tests, setup, teardown);
}
