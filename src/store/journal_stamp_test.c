/* A journal that stamps: what records carry, and that the stream does not change. */
#include "store/journal.h"

#include "base/mem.h"
#include "base/test_seed.h"
#include "base/thread.h"
#include "store/journal_tail.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW_MS INT64_C(1800000000000)
enum { ORIGIN = 4711, PEER = 99, GROUPS = 4000, GROUP_MOST = 3, THREADS = 3, APPENDS = 6000 };

static struct journal journal;

static void start(void)
{
    journal_init(&journal);
    journal_set_stamping(&journal, ORIGIN, 0);
}

static void finish(void)
{
    assert_int_equal(journal.reader_count, 0);
    journal_fini(&journal);
    assert_int_equal(journal_passing_bytes(&journal), 0);
}

static struct effect_stamp stamp_for(int64_t wall_ms, uint64_t key_position)
{
    return (struct effect_stamp){.wall_ms = wall_ms, .key_position = key_position};
}

static void add_incr(struct effects *effects, const char *key)
{
    const struct slice words[] = {SLICE("INCR"), slice_from_text(key)};

    effects_add(effects, 0, words, 2);
}

/* The next record that is an effect, with its position. */
static struct journal_view next_effect(struct journal_reader *reader, uint64_t *position)
{
    struct journal_view view = {0};

    do
        assert_true(journal_reader_next(reader, &view));
    while ((view.flags & (JOURNAL_SELECT | JOURNAL_BEGINS)) != 0 ||
           slice_equal(view.bytes, SLICE("*1\r\n$4\r\nEXEC\r\n")));
    assert_true(journal_reader_shown_position(reader, position));
    return view;
}

static void check_stamp(const struct journal_view *view, const struct effect_stamp *stamp)
{
    const struct journal_stamp *found = view->stamp;

    if ((view->flags & JOURNAL_NOT_FOR_PEERS) != 0) { /* that of the operations beside it, if there are some */
        assert_int_equal(stamp->stamp, 0);
        return;
    }
    assert_int_equal(found != NULL, stamp->stamp != 0);
    if (found == NULL)
        return;
    assert_int_equal(found->origin, stamp->origin != 0 ? stamp->origin : ORIGIN);
    assert_int_equal(found->mvcc, stamp->mvcc);
    assert_int_equal(found->stamp, stamp->stamp);
    assert_int_equal(found->previous, stamp->previous);
    assert_int_equal(found->wall_ms, stamp->wall_ms);
    assert_int_equal(found->key_position, stamp->key_position);
}

/* Effects of random groups are described by their key_position, so that it tells what to expect. */
static void describe(struct effects *effects, uint64_t key_position)
{
    effects_describe(effects, key_position & EFFECT_KEY_MOST, (unsigned)(key_position >> 8) & 7);
}

static void check_description(const struct journal_view *view)
{
    const uint64_t from = view->stamp != NULL ? view->stamp->key_position : 0;

    assert_int_equal(journal_view_key_index(view), from & EFFECT_KEY_MOST);
    assert_int_equal((view->flags & JOURNAL_OVERWRITES) != 0, from >> 8 & 1);
    assert_int_equal((view->flags & JOURNAL_EVICTS) != 0, from >> 9 & 1);
    assert_int_equal((view->flags & JOURNAL_FLUSH) != 0, from >> 10 & 1);
}

/* One stamp a group; each says the one before it. Peers do not hear of what replicas do not get, so its group has none,
 * and no other one names it. */
static void a_group_has_one_stamp(void **state)
{
    struct effect_stamp stamps[5] = {stamp_for(NOW_MS, JOURNAL_NOWHERE), stamp_for(NOW_MS + 5, 12345),
                                     stamp_for(NOW_MS + 5, JOURNAL_NOWHERE), stamp_for(NOW_MS + 6, JOURNAL_NOWHERE),
                                     stamp_for(NOW_MS - 9, 8)};
    struct journal_reader reader;
    struct effects effects = {0};
    uint64_t position;

    (void)state;
    start();
    journal_reader_open(&reader, &journal);
    add_incr(&effects, "a");
    effects_end_group(&effects);
    add_incr(&effects, "b");
    add_incr(&effects, "c");
    effects_end_group(&effects);
    add_incr(&effects, "d");
    effects_hide(&effects, 3, EFFECT_REPLICAS);
    effects_end_group(&effects);
    add_incr(&effects, "e");
    journal_append_stamped(&journal, &effects, false, stamps);
    assert_int_equal(stamps[0].stamp, stamp_at(NOW_MS));
    assert_int_equal(stamps[1].stamp, stamp_at(NOW_MS + 5));
    assert_int_equal(stamps[2].stamp, stamps[1].stamp);
    assert_int_equal(stamps[3].stamp, 0);
    assert_int_equal(stamps[4].stamp, stamps[1].stamp + 1);
    assert_int_equal(stamps[0].previous, 0);
    assert_int_equal(stamps[1].previous, stamps[0].stamp);
    assert_int_equal(stamps[2].previous, stamps[0].stamp);
    assert_int_equal(stamps[4].previous, stamps[1].stamp);
    for (unsigned i = 0; i < 5; i++) {
        const struct journal_view view = next_effect(&reader, &position);

        check_stamp(&view, &stamps[i]);
        assert_int_equal(position, stamps[i].position);
        assert_int_equal((view.flags & JOURNAL_ENTRY_ENDS) != 0, i == 0 || i == 2 || i == 4);
    }
    journal_reader_close(&reader);
    effects_fini(&effects);
    finish();
}

/* As one effect that is a group, with all that its record carries, also where a block ends. */
static void a_single_is_a_group_of_one(void **state)
{
    enum { TIMES = 3000, FEW = 3 };
    struct journal_reader reader;
    struct effects effects = {0};
    uint64_t last = 0, offset = 0, position;

    (void)state;
    start();
    journal_reader_open(&reader, &journal);
    for (unsigned i = 0; i < TIMES; i++) {
        struct journal_single singles[FEW];
        uint64_t previous;

        for (unsigned k = 0; k < FEW; k++) {
            const struct slice words[] = {SLICE("SET"), SLICE("key"), SLICE("a value of some bytes")};

            effects_add(&effects, i % 2, words, 3);
            effects_describe(&effects, 1, EFFECT_OWN_KEY | (k == 1 ? EFFECT_OVERWRITES : 0));
            effects_end_group(&effects);
            singles[k].wall_ms = NOW_MS + i - k;
        }
        offset = journal_append_singles(&journal, &effects, singles, &previous);
        assert_int_equal(offset, journal_end_offset(&journal));
        assert_int_equal(previous, last);
        for (unsigned k = 0; k < FEW; k++) {
            const struct journal_view view = next_effect(&reader, &position);
            const struct effect_stamp stamp = {.wall_ms = NOW_MS + i - k,
                                               .key_position = JOURNAL_NOWHERE,
                                               .stamp = MAX(last + 1, stamp_at(NOW_MS + i - k)),
                                               .previous = last};

            assert_int_equal(singles[k].stamp, stamp.stamp);
            check_stamp(&view, &stamp);
            assert_int_equal(view.db, i % 2);
            assert_int_equal(view.flags, JOURNAL_ENDS | JOURNAL_STAMPED | JOURNAL_ENTRY_ENDS |
                                             (k == 1 ? JOURNAL_OVERWRITES : 0) | 1 << JOURNAL_KEY_SHIFT);
            assert_true(slice_equal(view.bytes, SLICE("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$21\r\n"
                                                      "a value of some bytes\r\n")));
            last = stamp.stamp;
        }
        effects_clear(&effects);
    }
    assert_int_equal(journal_last_stamp(&journal), last);
    assert_int_equal(journal_reader_offset(&reader), offset);
    journal_reader_close(&reader);
    effects_fini(&effects);
    finish();
}

static uint64_t append_one(int64_t wall_ms)
{
    struct effect_stamp stamp = stamp_for(wall_ms, JOURNAL_NOWHERE);
    struct effects effects = {0};

    add_incr(&effects, "k");
    journal_append_stamped(&journal, &effects, false, &stamp);
    effects_fini(&effects);
    return stamp.stamp;
}

/* What a peer did has the peer's stamp. Ours come behind it, and do not name it. */
static void a_group_may_have_the_stamp_of_a_peer(void **state)
{
    const uint64_t heard = stamp_at(NOW_MS + 100);
    struct effect_stamp stamps[4] = {
        stamp_for(NOW_MS, JOURNAL_NOWHERE),
        {.wall_ms = NOW_MS - 3, .key_position = 7, .origin = PEER, .mvcc = 8, .stamp = heard, .previous = heard - 4},
        {.key_position = 9},
        stamp_for(NOW_MS, JOURNAL_NOWHERE)};
    struct journal_reader reader;
    struct effects effects = {0};
    uint64_t position;

    (void)state;
    start();
    journal_reader_open(&reader, &journal);
    add_incr(&effects, "a");
    effects_end_group(&effects);
    add_incr(&effects, "b");
    add_incr(&effects, "c");
    effects_end_group(&effects);
    add_incr(&effects, "d");
    effects_describe(&effects, 1, EFFECT_OVERWRITES);
    journal_append_stamped(&journal, &effects, false, stamps);
    assert_int_equal(stamps[0].stamp, stamp_at(NOW_MS));
    assert_int_equal(stamps[1].stamp, heard);
    assert_int_equal(stamps[2].stamp, heard);
    assert_int_equal(stamps[2].origin, PEER);
    assert_int_equal(stamps[2].previous, heard - 4);
    assert_int_equal(stamps[2].key_position, 9);
    assert_int_equal(stamps[3].stamp, heard + 1);
    assert_int_equal(stamps[3].previous, stamps[0].stamp);
    for (unsigned i = 0; i < 4; i++) {
        const struct journal_view view = next_effect(&reader, &position);

        check_stamp(&view, &stamps[i]);
        assert_int_equal((view.flags & JOURNAL_ENTRY_ENDS) != 0, i != 1);
        assert_int_equal((view.flags & JOURNAL_OVERWRITES) != 0, i == 3);
        assert_int_equal(journal_view_key_index(&view), i == 3 ? 1 : 0);
    }
    journal_reader_close(&reader);
    effects_fini(&effects);
    finish();
}

/* Ours come behind all that is known, and where stamping begins anew, with an origin of its own. */
static void stamps_are_above_what_was_heard(void **state)
{
    struct journal_reader reader;
    uint64_t heard, promised, position, last;

    (void)state;
    start();
    journal_reader_open(&reader, &journal);
    heard = append_one(NOW_MS) + 100;
    journal_hear_stamp(&journal, heard);
    assert_int_equal(append_one(NOW_MS), heard + 1);
    promised = journal_promise_stamp(&journal, NOW_MS + 50, &position, &last);
    assert_int_equal(promised, stamp_at(NOW_MS + 50) - 1);
    assert_int_equal(position, journal_end_position(&journal));
    assert_int_equal(last, heard + 1);
    assert_int_equal(append_one(NOW_MS), promised + 1);
    journal_set_stamping(&journal, ORIGIN + 1, stamp_at(NOW_MS + 70));
    assert_int_equal(append_one(NOW_MS), stamp_at(NOW_MS + 70) + 1);
    journal_set_stamping(&journal, 0, 0);
    assert_false(journal_is_stamping(&journal));
    journal_reader_close(&reader);
    finish();
}

/* --- against the same journal without stamps --- */

/* The group was done by a peer, behind what it has done before. */
static void give_stamp(struct random *random, struct effect_stamp *stamp)
{
    static uint64_t last;

    stamp->origin = PEER;
    stamp->mvcc = random_u64(random);
    stamp->previous = last;
    stamp->stamp = last = MAX(last, stamp_at(NOW_MS)) + 1 + random_below(random, 1000);
}

/* One group of effects; `stamps` has one for each. */
static void random_group(struct random *random, struct effects *effects, struct effect_stamp *stamps)
{
    const unsigned count = 1 + (unsigned)random_below(random, GROUP_MOST);

    for (unsigned i = 0; i < count; i++) {
        const unsigned db = random_below(random, 10) == 0 ? 3 : 0;
        static char text[6000];
        struct slice words[] = {SLICE("SET"), SLICE("key"), slice_make(text, random_below(random, 800))};

        memset(text, 'v', sizeof(text));
        if (random_below(random, 20) == 0)
            effects_add_message(effects, db, words, 3);
        else
            effects_add(effects, db, words, 3);
        stamps[i] = stamp_for(NOW_MS + (int64_t)random_below(random, 1000), random_u64(random));
        describe(effects, stamps[i].key_position);
    }
    if (random_below(random, 4) == 0)
        give_stamp(random, &stamps[0]);
    if (random_below(random, 6) == 0)
        effects_hide(effects, effects->count - 1, EFFECT_REPLICAS);
}

/* What readers of replicas and of files get is the same to the byte. */
static void read_both(struct journal_reader *reader, struct buffer *stream, struct buffer *files, uint64_t *offset)
{
    struct journal_view view;

    while (journal_reader_next(reader, &view)) {
        *offset = view.offset + view.size;
        if ((view.flags & JOURNAL_AOF_ONLY) == 0)
            journal_view_append(&view, stream);
        if ((view.flags & JOURNAL_MESSAGE) == 0)
            journal_view_append(&view, files);
    }
    assert_false(reader->is_lost);
}

static void the_stream_is_the_same_with_stamps(void **state)
{
    struct random random = test_random(__func__);
    struct journal plain;
    struct journal_reader readers[2];
    struct buffer streams[2] = {{0}, {0}}, files[2] = {{0}, {0}};
    uint64_t offsets[2] = {0, 0};

    (void)state;
    start();
    journal_init(&plain);
    journal_reader_open(&readers[0], &journal);
    journal_reader_open(&readers[1], &plain);
    for (unsigned i = 0; i < GROUPS; i++) {
        struct effect_stamp stamps[GROUP_MOST];
        struct effects effects = {0};

        random_group(&random, &effects, stamps);
        if (effects.count != 0)
            assert_int_equal(journal_append_stamped(&journal, &effects, false, stamps),
                             journal_append(&plain, &effects, false));
        effects_fini(&effects);
    }
    read_both(&readers[0], &streams[0], &files[0], &offsets[0]);
    read_both(&readers[1], &streams[1], &files[1], &offsets[1]);
    assert_int_equal(offsets[0], offsets[1]);
    assert_int_equal(streams[0].size, streams[1].size);
    assert_memory_equal(streams[0].data, streams[1].data, streams[0].size);
    assert_int_equal(files[0].size, files[1].size);
    assert_memory_equal(files[0].data, files[1].data, files[0].size);
    journal_reader_close(&readers[0]);
    journal_reader_close(&readers[1]);
    journal_fini(&plain);
    finish();
    for (unsigned i = 0; i < 2; i++) {
        buffer_fini(&streams[i]);
        buffer_fini(&files[i]);
    }
}

/* --- elsewhere than in memory --- */

/* Appends many groups; returns what their records carry. */
static struct effect_stamp *append_random(struct random *random, unsigned *count, bool tends)
{
    struct effect_stamp *stamps = calloc((size_t)GROUPS * GROUP_MOST, sizeof(*stamps));

    *count = 0;
    for (unsigned i = 0; i < GROUPS; i++) {
        struct effects effects = {0};

        random_group(random, &effects, &stamps[*count]);
        if (effects.count != 0)
            journal_append_stamped(&journal, &effects, false, &stamps[*count]);
        *count += effects.count;
        effects_fini(&effects);
        if (tends && journal_wants_tending(&journal))
            assert_true(journal_tend(&journal));
    }
    return stamps;
}

static bool is_effect(const struct journal_view *view)
{
    return slice_equal(slice_make(view->bytes.data, 4), SLICE("*3\r\n"));
}

static void stamps_go_to_the_file_and_come_back(void **state)
{
    struct random random = test_random(__func__);
    struct effect_stamp *stamps;
    struct journal_reader reader;
    struct journal_stats stats;
    struct journal_view view;
    unsigned count, found = 0;

    (void)state;
    start();
    journal_set_memory_limit(&journal, 600 << 10);
    journal_reader_open(&reader, &journal);
    journal_reader_set(&reader, JOURNAL_READER_SPILLS, 0);
    stamps = append_random(&random, &count, true);
    journal_stats(&journal, &stats);
    assert_true(stats.spilled_bytes > 1 << 20);
    while (journal_reader_next(&reader, &view)) {
        if (is_effect(&view)) {
            assert_true(found < count);
            check_stamp(&view, &stamps[found++]);
            check_description(&view);
        } else {
            assert_null(view.stamp);
        }
    }
    assert_int_equal(found, count);
    journal_reader_close(&reader);
    free(stamps);
    finish();
}

/* The next process finds them, too. */
static void stamps_outlive_the_process(void **state)
{
    const char *path = "journal_stamp_test.tail", *error;
    struct random random = test_random(__func__);
    struct journal_tail *tail = NULL;
    struct journal_tail_reader *left = NULL;
    struct effect_stamp *stamps;
    struct journal_reader reader;
    struct journal_view view;
    unsigned count, found = 0;

    (void)state;
    start();
    assert_int_equal(journal_tail_create(&tail, path), STATUS_OK);
    journal_tail_enter(&journal, tail);
    journal_reader_open(&reader, &journal);
    journal_tail_set_place(tail, &(struct journal_place){.position = 0, .file_number = 1, .db = -1});
    stamps = append_random(&random, &count, false);
    assert_int_equal(journal_tail_open(&left, path, &error), STATUS_OK);
    while (journal_tail_next(left, &view) == JOURNAL_TAIL_RECORD) {
        if (is_effect(&view)) {
            check_stamp(&view, &stamps[found++]);
            check_description(&view);
        }
    }
    assert_in_range(found, 1000, count);
    journal_tail_close(&left);
    journal_reader_close(&reader);
    journal_tail_leave(&journal);
    journal_tail_destroy(&journal, &tail);
    free(stamps);
    finish();
    assert_int_equal(unlink(path), 0);
}

/* What a master sent has the master's bytes and no stamp, and is nothing before the next one. */
static void what_was_received_has_no_stamp(void **state)
{
    const struct journal_received command = {.bytes = SLICE("*1\r\n$4\r\nPING\r\n"), .flags = JOURNAL_ENDS};
    struct journal_reader reader;
    uint64_t first, position;
    struct journal_view view;

    (void)state;
    start();
    journal_reader_open(&reader, &journal);
    first = append_one(NOW_MS);
    (void)next_effect(&reader, &position);
    journal_append_received(&journal, &command, 1);
    assert_true(journal_reader_next(&reader, &view));
    assert_null(view.stamp);
    assert_true(slice_equal(view.bytes, command.bytes));
    append_one(NOW_MS);
    view = next_effect(&reader, &position);
    assert_non_null(view.stamp);
    assert_int_equal(view.stamp->previous, first);
    journal_reader_close(&reader);
    finish();
}

/* --- by several threads --- */

static _Atomic unsigned writing;

static void append_often(void *argument)
{
    const int64_t behind_ms = (intptr_t)argument; /* clocks differ, and one goes back */

    for (unsigned i = 0; i < APPENDS; i++)
        (void)append_one(NOW_MS - behind_ms + (i < APPENDS / 2 ? i : APPENDS - i) / 10);
    atomic_fetch_sub(&writing, 1);
}

/* Stamps have the order of the journal, none is left out, and promises are kept. */
static void stamps_ascend_with_the_journal(void **state)
{
    struct thread threads[THREADS] = {{0}};
    struct journal_reader reader;
    struct journal_view view;
    uint64_t last = 0, promised = 0, position = 0, before = 0, count = 0;

    (void)state;
    start();
    journal_reader_open(&reader, &journal);
    atomic_store(&writing, THREADS);
    for (intptr_t i = 0; i < THREADS; i++)
        thread_start(&threads[i], "writer", append_often, (void *)(i * 100)); /* NOLINT(performance-no-int-to-ptr) */
    for (bool is_over = false; !is_over;) {
        is_over = atomic_load(&writing) == 0;
        while (journal_reader_next(&reader, &view)) {
            uint64_t at;

            if (view.stamp == NULL)
                continue;
            assert_true(journal_reader_shown_position(&reader, &at));
            assert_true(view.stamp->stamp > last);
            assert_int_equal(view.stamp->previous, last);
            assert_int_equal(view.stamp->stamp > promised, at >= position);
            assert_int_equal(view.stamp->stamp > before, at >= position);
            last = view.stamp->stamp;
            count++;
        }
        promised = journal_promise_stamp(&journal, NOW_MS, &position, &before);
        if (journal_wants_tending(&journal))
            assert_true(journal_tend(&journal));
        sched_yield();
    }
    for (unsigned i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    assert_int_equal(count, THREADS * APPENDS);
    journal_reader_close(&reader);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_has_one_stamp),
        cmocka_unit_test(a_single_is_a_group_of_one),
        cmocka_unit_test(a_group_may_have_the_stamp_of_a_peer),
        cmocka_unit_test(stamps_are_above_what_was_heard),
        cmocka_unit_test(the_stream_is_the_same_with_stamps),
        cmocka_unit_test(stamps_go_to_the_file_and_come_back),
        cmocka_unit_test(stamps_outlive_the_process),
        cmocka_unit_test(what_was_received_has_no_stamp),
        cmocka_unit_test(stamps_ascend_with_the_journal),
    };

    return cmocka_run_group_tests_name("journal_stamp", tests, NULL, NULL);
}
