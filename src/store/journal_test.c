#include "store/journal.h"

#include "base/mem.h"
#include "base/number.h"
#include "base/test_seed.h"
#include "base/thread.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WRITERS = 3, APPENDS = 8000 };

static struct journal journal;

static void append(unsigned db, const char *const *words, size_t count)
{
    struct effects effects = {0};
    struct slice args[8];

    for (size_t i = 0; i < count; i++)
        args[i] = slice_from_text(words[i]);
    effects_add(&effects, db, args, count);
    journal_append(&journal, &effects, false);
    effects_fini(&effects);
}

static void read_all(struct journal_reader *reader, struct buffer *stream)
{
    struct journal_view view;

    while (journal_reader_next(reader, &view)) {
        size_t before = stream->size;

        journal_view_append(&view, stream);
        assert_int_equal(stream->size - before, view.size);
        buffer_append_text(stream, "");
    }
}

static void check_stream(struct buffer *stream, const char *expected)
{
    assert_int_equal(stream->size, strlen(expected));
    assert_memory_equal(stream->data, expected, stream->size);
    buffer_clear(stream);
}

static void the_stream_is_what_replicas_read(void **state)
{
    static const char *const set[] = {"SET", "k", "v"}, *const del[] = {"DEL", "k"};
    struct journal_reader reader;
    struct buffer stream = {0};
    struct effects effects = {0};
    const struct slice first[] = {SLICE("SET"), SLICE("a"), SLICE("1")}, second[] = {SLICE("DEL"), SLICE("b")};

    (void)state;
    journal_init(&journal);
    assert_false(journal_is_on(&journal));
    journal_reader_open(&reader, &journal);
    assert_true(journal_is_on(&journal));
    append(0, set, 3);
    append(0, del, 2);
    read_all(&reader, &stream);
    check_stream(&stream, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
                          "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n");
    effects_add(&effects, 0, first, 3);
    effects_add(&effects, 11, second, 2);
    journal_append(&journal, &effects, false);
    read_all(&reader, &stream);
    check_stream(&stream, "*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
                          "*2\r\n$6\r\nSELECT\r\n$2\r\n11\r\n*2\r\n$3\r\nDEL\r\n$1\r\nb\r\n*1\r\n$4\r\nEXEC\r\n");
    append(11, del, 2); /* the same database as the record before */
    read_all(&reader, &stream);
    check_stream(&stream, "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n");
    journal_reader_close(&reader);
    assert_false(journal_is_on(&journal));
    effects_fini(&effects);
    buffer_fini(&stream);
    journal_fini(&journal);
}

/* The flags of what can be read now, in order; SELECT is left out. */
static unsigned read_flags(struct journal_reader *reader, unsigned *flags)
{
    struct journal_view view;
    unsigned count = 0;

    while (journal_reader_next(reader, &view)) {
        if ((view.flags & JOURNAL_SELECT) == 0)
            flags[count++] = view.flags;
    }
    return count;
}

/* Who keeps data leaves out every record with the flag, and is left with whole transactions, none of them empty. */
static void messages_are_marked(void **state)
{
    const struct slice message[] = {SLICE("PUBLISH"), SLICE("c"), SLICE("m")};
    const struct slice set[] = {SLICE("SET"), SLICE("a"), SLICE("1")};
    struct journal_reader reader;
    struct effects effects = {0};
    unsigned flags[8];

    (void)state;
    journal_init(&journal);
    journal_reader_open(&reader, &journal);
    effects_add_message(&effects, 0, message, 3);
    journal_append(&journal, &effects, false);
    assert_int_equal(read_flags(&reader, flags), 1);
    assert_int_equal(flags[0], JOURNAL_ENDS | JOURNAL_MESSAGE);
    effects_add_message(&effects, 3, message, 3);
    journal_append(&journal, &effects, false);
    assert_int_equal(read_flags(&reader, flags), 4);
    assert_int_equal(flags[0], JOURNAL_BEGINS | JOURNAL_MESSAGE);
    assert_int_equal(flags[1], JOURNAL_MESSAGE);
    assert_int_equal(flags[3], JOURNAL_ENDS | JOURNAL_MESSAGE);
    effects_cut(&effects, 1);
    effects_add(&effects, 0, set, 3);
    journal_append(&journal, &effects, false);
    assert_int_equal(read_flags(&reader, flags), 4);
    assert_int_equal(flags[0], JOURNAL_BEGINS);
    assert_int_equal(flags[1], JOURNAL_MESSAGE);
    assert_int_equal(flags[2], 0);
    assert_int_equal(flags[3], JOURNAL_ENDS);
    journal_reader_close(&reader);
    effects_fini(&effects);
    journal_fini(&journal);
}

static struct blob *blob_of(const void *context, uint32_t arg_index)
{
    return arg_index == 2 ? (struct blob *)(uintptr_t)context : NULL;
}

/* Large bulks are shared, not copied, and freed with the last block that needs them. */
static void blobs_are_referenced(void **state)
{
    struct blob *blob = blob_create(EFFECT_BLOB_BYTES);
    struct slice args[] = {SLICE("SET"), SLICE("key"), {blob->data, blob->size}};
    struct journal_reader reader;
    struct journal_view view;
    struct effects effects = {0};
    struct buffer stream = {0};

    (void)state;
    memset(blob->data, 'x', blob->size);
    journal_init(&journal);
    journal_reader_open(&reader, &journal);
    effects_add_with_blobs(&effects, 0, args, 3, blob_of, blob);
    journal_append(&journal, &effects, false);
    effects_fini(&effects);
    assert_false(blob_is_exclusive(blob));
    assert_true(journal_reader_next(&reader, &view)); /* SELECT */
    assert_true(journal_reader_next(&reader, &view));
    assert_int_equal(view.blob_count, 1);
    journal_view_append(&view, &stream);
    assert_int_equal(stream.size, view.size);
    assert_int_equal(stream.size, strlen("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$32768\r\n") + EFFECT_BLOB_BYTES + 2);
    assert_memory_equal(stream.data + stream.size - 2, "\r\n", 2);
    assert_memory_equal(stream.data + stream.size - 5, "xxx", 3);
    assert_false(journal_reader_next(&reader, &view));
    journal_reader_close(&reader);
    journal_fini(&journal);
    assert_true(blob_is_exclusive(blob));
    blob_release(&blob);
    buffer_fini(&stream);
}

/* What replicas see, and what an append only file gets. */
static void read_split(struct journal_reader *reader, struct buffer *replicas, struct buffer *aof)
{
    struct journal_view view;
    uint64_t offset = UINT64_MAX;

    while (journal_reader_next(reader, &view)) {
        assert_true(offset == UINT64_MAX || view.offset == offset);
        offset = view.offset + view.size;
        assert_int_equal(view.size == 0, (view.flags & JOURNAL_AOF_ONLY) != 0);
        if ((view.flags & JOURNAL_AOF_ONLY) == 0)
            journal_view_append(&view, replicas);
        if ((view.flags & JOURNAL_MESSAGE) == 0)
            journal_view_append(&view, aof);
    }
    assert_int_equal(offset, journal_end_offset(reader->journal));
}

static void effects_may_be_hidden(void **state)
{
    static const char select[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n", one[] = "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n",
                      two[] = "*2\r\n$4\r\nINCR\r\n$1\r\nb\r\n", multi[] = "*1\r\n$5\r\nMULTI\r\n",
                      exec[] = "*1\r\n$4\r\nEXEC\r\n";
    const struct slice a[] = {SLICE("INCR"), SLICE("a")}, b[] = {SLICE("INCR"), SLICE("b")};
    struct buffer replicas = {0}, aof = {0};
    struct journal_reader reader;
    struct effects effects = {0};
    char expected[300];

    (void)state;
    journal_init(&journal);
    journal_reader_open(&reader, &journal);
    effects_add(&effects, 0, a, 2);
    effects_add(&effects, 0, b, 2);
    effects_hide(&effects, 1, EFFECT_REPLICAS);
    journal_append(&journal, &effects, false);
    read_split(&reader, &replicas, &aof);
    snprintf(expected, sizeof(expected), "%s%s", select, one);
    check_stream(&replicas, expected);
    snprintf(expected, sizeof(expected), "%s%s%s%s%s", select, multi, one, two, exec);
    check_stream(&aof, expected);
    effects_clear(&effects);
    effects_add(&effects, 0, a, 2);
    effects_add(&effects, 0, b, 2);
    effects_hide(&effects, 0, EFFECT_AOF);
    journal_append(&journal, &effects, false);
    read_split(&reader, &replicas, &aof);
    snprintf(expected, sizeof(expected), "%s%s%s%s", multi, one, two, exec);
    check_stream(&replicas, expected);
    check_stream(&aof, "");
    effects_clear(&effects);
    effects_add(&effects, 0, a, 2);
    effects_add_message(&effects, 0, b, 2);
    effects_hide(&effects, 0, EFFECT_REPLICAS); /* the message is for nobody then */
    assert_int_equal(effects.count, 1);
    journal_append(&journal, &effects, true);
    read_split(&reader, &replicas, &aof);
    snprintf(expected, sizeof(expected), "%s%s%s", multi, one, exec);
    check_stream(&aof, expected);
    check_stream(&replicas, "");
    effects_fini(&effects);
    journal_reader_close(&reader);
    journal_fini(&journal);
    buffer_fini(&replicas);
    buffer_fini(&aof);
}

struct writer {
    struct thread thread;
    unsigned index;
    uint64_t seed;
};

static void write_records(void *argument)
{
    const struct writer *writer = argument;
    struct effects effects = {0};
    struct random random;

    random_seed(&random, writer->seed);
    for (unsigned i = 0; i < APPENDS; i++) {
        unsigned count = 1 + (unsigned)random_below(&random, 3);

        for (unsigned k = 0; k < count; k++) {
            char text[64];
            char number[256];
            int key_size = snprintf(text, sizeof(text), "%u", writer->index);
            struct slice args[] = {SLICE("SET"), {text, (size_t)key_size}, {0}};

            args[2] = slice_make(number, (size_t)snprintf(number, sizeof(number), "%u.%u.%0*d", i, k,
                                                          (int)random_below(&random, 150), 0));
            effects_add(&effects, writer->index, args, 3);
        }
        journal_append(&journal, &effects, false);
        effects_clear(&effects);
    }
    effects_fini(&effects);
}

/* Every writer's records come in its order, whole, and what belongs together is contiguous; offsets have no gaps. */
static void writers_do_not_mix(void **state)
{
    struct random random = test_random(__func__);
    struct writer writers[WRITERS] = {0};
    struct journal_reader reader;
    unsigned next[WRITERS] = {0}, finished = 0;
    uint64_t offset = 0;
    int owner = -1, db = -1;

    (void)state;
    journal_init(&journal);
    journal_reader_open(&reader, &journal);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i].index = i;
        writers[i].seed = random_u64(&random);
        thread_start(&writers[i].thread, "writer", write_records, &writers[i]);
    }
    while (finished < WRITERS) {
        struct journal_view view;
        struct buffer bytes = {0};
        unsigned writer, number, part;

        if (!journal_reader_next(&reader, &view)) {
            sched_yield();
            continue;
        }
        assert_int_equal(view.offset, offset);
        offset += view.size;
        if ((view.flags & JOURNAL_SELECT) != 0) {
            db = (int)view.db;
            continue;
        }
        journal_view_append(&view, &bytes);
        buffer_append(&bytes, "", 1);
        if ((view.flags & JOURNAL_BEGINS) != 0) {
            assert_int_equal(owner, -1);
            owner = (int)view.db;
        } else if (strstr(bytes.data, "EXEC") != NULL) {
            owner = -1;
            assert_true((view.flags & JOURNAL_ENDS) != 0);
        } else {
            const char *at = strstr(bytes.data, "SET\r\n$1\r\n");

            assert_non_null(at);
            writer = (unsigned)(at[9] - '0');
            assert_int_equal(sscanf(strchr(at + 12, '\n') + 1, "%u.%u.", &number, &part), 2);
            assert_int_equal(writer, view.db);
            assert_int_equal(writer, db);
            assert_true(owner == -1 || owner == (int)writer);
            assert_true(number == next[writer] || (part == 0 && number == next[writer] + 1));
            next[writer] = number;
            if (number == APPENDS - 1 && part == 0)
                finished++;
        }
        buffer_fini(&bytes);
        assert_true(journal_memory_bytes(&journal) < 256 * 1024 * 1024);
    }
    for (unsigned i = 0; i < WRITERS; i++)
        thread_join(&writers[i].thread);
    journal_reader_close(&reader);
    journal_fini(&journal);
}

static void blocks_that_were_read_are_freed(void **state)
{
    static const char *const set[] = {"SET", "some key", "some value of some length"};
    struct journal_reader reader;
    struct journal_view view;
    uint64_t most = 0;

    (void)state;
    journal_init(&journal);
    journal_reader_open(&reader, &journal);
    for (unsigned i = 0; i < 200000; i++) {
        append(0, set, 3);
        while (i % 100 == 0 && journal_reader_next(&reader, &view))
            continue;
        most = MAX(most, journal_memory_bytes(&journal));
    }
    assert_true(most < 1024 * 1024);
    journal_set_retention(&journal, 4 * 1024 * 1024);
    for (unsigned i = 0; i < 200000; i++) {
        append(0, set, 3);
        while (i % 100 == 0 && journal_reader_next(&reader, &view))
            continue;
    }
    assert_true(journal_memory_bytes(&journal) > 4 * 1024 * 1024); /* kept though everybody has read it */
    journal_reader_close(&reader);
    journal_fini(&journal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stream_is_what_replicas_read),
        cmocka_unit_test(messages_are_marked),
        cmocka_unit_test(effects_may_be_hidden),
        cmocka_unit_test(blobs_are_referenced),
        cmocka_unit_test(writers_do_not_mix),
        cmocka_unit_test(blocks_that_were_read_are_freed),
    };

    fence_setup();
    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
