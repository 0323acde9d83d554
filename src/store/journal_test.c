#include "store/journal.h"

#include "base/fault.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/test_seed.h"
#include "base/thread.h"
#include "store/journal_priv.h"
#include "store/journal_tail.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { WRITERS = 3, APPENDS = 8000 };

static struct journal journal;

/* No copy and no block is forgotten; readers are closed. */
static void finish(void)
{
    assert_int_equal(journal.reader_count, 0);
    journal_fini(&journal);
    assert_int_equal(journal_passing_bytes(&journal), 0);
}

/* As a worker does at its turn's end. */
static void tend_if_wanted(void)
{
    if (journal_wants_tending(&journal))
        assert_true(journal_tend(&journal));
}

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
    finish();
}

/* Returns the flags of the records that can be read now, in order; SELECT is left out. */
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

/* A reader that keeps data skips every record with the flag, and gets whole transactions, none of them empty. */
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
    finish();
}

static struct blob *blob_of(const void *context, struct slice arg)
{
    struct blob *blob = (struct blob *)(uintptr_t)context;

    return arg.data == blob->data ? blob : NULL;
}

/* A record in the tail has all its bytes, unless it is long: what refers to memory does not outlive the process. */
static void blobs_are_copied_into_the_tail(void **state)
{
    const char *path = "journal_test.tail";
    const size_t sizes[] = {EFFECT_BLOB_BYTES, 30000, 40000};
    struct journal_tail *tail = NULL;
    struct journal_reader reader;
    struct journal_view view;
    struct buffer stream = {0};

    (void)state;
    journal_init(&journal);
    assert_int_equal(journal_tail_create(&tail, path), STATUS_OK);
    journal_tail_enter(&journal, tail);
    journal_reader_open(&reader, &journal);
    for (size_t i = 0; i < countof(sizes); i++) {
        struct blob *blob = blob_create(sizes[i]);
        struct slice args[] = {SLICE("SET"), SLICE("key"), {blob->data, blob->size}, SLICE("KEEPTTL")};
        struct effects effects = {0};

        memset(blob->data, 'a' + (int)i, blob->size);
        effects_add_with_blobs(&effects, 0, args, 4, blob_of, blob);
        journal_append(&journal, &effects, false);
        effects_fini(&effects);
        while (journal_reader_next(&reader, &view) && (view.flags & JOURNAL_SELECT) != 0)
            ;
        assert_int_equal(view.blob_count, sizes[i] > 32768);
        assert_int_equal(journal_unkept_position(&journal) == journal_end_position(&journal), sizes[i] > 32768);
        journal_view_append(&view, &stream);
        assert_int_equal(stream.size, view.size);
        assert_memory_equal(stream.data + stream.size - 15, "\r\n$7\r\nKEEPTTL", 13);
        for (size_t k = stream.size - 15 - sizes[i]; k < stream.size - 15; k++)
            assert_int_equal(stream.data[k], 'a' + (int)i);
        buffer_clear(&stream);
        blob_release(&blob);
    }
    journal_reader_close(&reader);
    journal_tail_leave(&journal);
    journal_tail_destroy(&journal, &tail);
    finish();
    assert_int_equal(unlink(path), 0);
    buffer_fini(&stream);
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
    assert_int_equal(stream.size, strlen("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$4096\r\n") + EFFECT_BLOB_BYTES + 2);
    assert_memory_equal(stream.data + stream.size - 2, "\r\n", 2);
    assert_memory_equal(stream.data + stream.size - 5, "xxx", 3);
    assert_false(journal_reader_next(&reader, &view));
    journal_reader_close(&reader);
    finish();
    assert_true(blob_is_exclusive(blob));
    blob_release(&blob);
    buffer_fini(&stream);
}

/* The bytes for replicas, and those for an append-only file. */
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
    finish();
    buffer_fini(&replicas);
    buffer_fini(&aof);
}

/* Bytes of the records without one of these flags. */
static void read_view(struct journal_reader *reader, unsigned skips, struct buffer *bytes, unsigned *flags)
{
    struct journal_view view;

    journal_reader_set(reader, 0, skips);
    bytes->size = 0;
    *flags = 0;
    while (journal_reader_next(reader, &view)) {
        journal_view_append(&view, bytes);
        *flags = view.flags;
    }
}

/* Three readers of the same groups. */
struct readers {
    struct journal_reader files, replicas, peers;
};

static void check_views(struct readers *readers, const char *files, const char *replicas, const char *peers)
{
    struct buffer bytes = {0};
    unsigned flags;

    read_view(&readers->files, JOURNAL_MESSAGE | JOURNAL_SELECT, &bytes, &flags);
    check_stream(&bytes, files);
    assert_true(bytes.size == 0 || (flags & JOURNAL_ENDS) != 0);
    read_view(&readers->replicas, JOURNAL_AOF_ONLY | JOURNAL_SELECT, &bytes, &flags);
    check_stream(&bytes, replicas);
    read_view(&readers->peers, JOURNAL_NOT_FOR_PEERS | JOURNAL_SELECT, &bytes, &flags);
    check_stream(&bytes, peers);
    buffer_fini(&bytes);
}

#define ONE "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n"
#define TWO "*2\r\n$4\r\nINCR\r\n$1\r\nb\r\n"
#define MULTI "*1\r\n$5\r\nMULTI\r\n"
#define EXEC "*1\r\n$4\r\nEXEC\r\n"

static void operations_are_for_peers_alone(void **state)
{
    const struct slice a[] = {SLICE("INCR"), SLICE("a")}, b[] = {SLICE("INCR"), SLICE("b")};
    struct effects effects = {0};
    struct readers readers;

    (void)state;
    journal_init(&journal);
    journal_reader_open(&readers.files, &journal);
    journal_reader_open(&readers.replicas, &journal);
    journal_reader_open(&readers.peers, &journal);
    effects_add(&effects, 0, a, 2); /* says all */
    effects_end_command(&effects, false);
    journal_append(&journal, &effects, false);
    check_views(&readers, ONE, ONE, ONE);
    effects_clear(&effects);
    effects_add(&effects, 0, a, 2);
    effects_add_operation(&effects, 0, b, 2); /* one instead of the other: nobody needs MULTI */
    effects_end_command(&effects, true);
    journal_append(&journal, &effects, false);
    check_views(&readers, ONE, ONE, TWO);
    effects_add(&effects, 0, a, 2); /* and a command behind it in the same transaction */
    effects_end_command(&effects, false);
    journal_append(&journal, &effects, false);
    check_views(&readers, MULTI ONE ONE EXEC, MULTI ONE ONE EXEC, MULTI TWO ONE EXEC);
    effects_clear(&effects);
    effects_add(&effects, 0, a, 2);
    effects_add_operation(&effects, 0, b, 2);
    effects_add_operation(&effects, 0, a, 2);
    effects_end_command(&effects, true);
    journal_append(&journal, &effects, false);
    check_views(&readers, ONE, ONE, MULTI TWO ONE EXEC);
    effects_hide(&effects, 0, EFFECT_AOF);
    journal_append(&journal, &effects, false);
    check_views(&readers, "", ONE, MULTI TWO ONE EXEC);
    effects_clear(&effects);
    effects_add_unshared(&effects, 0, b, 2);
    effects_add(&effects, 0, a, 2);
    effects_end_command(&effects, false);
    journal_append(&journal, &effects, false);
    check_views(&readers, MULTI TWO ONE EXEC, MULTI TWO ONE EXEC, ONE);
    effects_add_operation(&effects, 0, b, 2);
    effects_hide(&effects, 1, EFFECT_REPLICAS); /* this server's own: nobody else hears */
    assert_int_equal(effects.count, 2);
    journal_append(&journal, &effects, false);
    check_views(&readers, MULTI TWO ONE EXEC, TWO, "");
    effects_add_operation(&effects, 0, b, 2);
    effects_keep_local(&effects);
    assert_int_equal(effects.count, 2);
    effects_fini(&effects);
    journal_reader_close(&readers.files);
    journal_reader_close(&readers.replicas);
    journal_reader_close(&readers.peers);
    finish();
}

/* Where a master is followed: the offsets are the master's, also when other databases are used. */
static void local_effects_take_nothing_of_the_stream(void **state)
{
    const struct slice a[] = {SLICE("INCR"), SLICE("a")}, b[] = {SLICE("INCR"), SLICE("b")};
    struct blob *blob = blob_create(EFFECT_BLOB_BYTES);
    const struct slice large[] = {SLICE("PUBLISH"), SLICE("c"), slice_make(blob->data, EFFECT_BLOB_BYTES)};
    struct buffer replicas = {0}, aof = {0};
    struct journal_reader reader;
    struct effects effects = {0};
    uint64_t offset;

    (void)state;
    memset(blob->data, 'x', EFFECT_BLOB_BYTES);
    journal_init(&journal);
    journal_reader_open(&reader, &journal);
    effects_add(&effects, 0, a, 2);
    offset = journal_append(&journal, &effects, false);
    effects_clear(&effects);
    effects_add_with_blobs(&effects, 3, large, 3, blob_of, blob);
    effects_hide(&effects, 0, EFFECT_AOF);
    effects_add(&effects, 5, a, 2);
    effects_add_message(&effects, 4, b, 2);
    effects_end_group(&effects);
    effects_add(&effects, 0, b, 2);
    effects_keep_local(&effects);
    assert_int_equal(effects.count, 2);
    assert_true(effects.items[0].ends_group);
    assert_int_equal(journal_append(&journal, &effects, false), offset);
    effects_clear(&effects);
    assert_true(blob_is_exclusive(blob));
    effects_add_message(&effects, 0, b, 2);
    effects_keep_local(&effects);
    assert_int_equal(effects.count, 0);
    effects_add(&effects, 0, b, 2);
    journal_append(&journal, &effects, false);
    read_split(&reader, &replicas, &aof);
    check_stream(&replicas, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n"
                            "*2\r\n$4\r\nINCR\r\n$1\r\nb\r\n");
    effects_fini(&effects);
    journal_reader_close(&reader);
    finish();
    blob_release(&blob);
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

/* Every writer's records come in its order, complete, and groups are contiguous; offsets have no gaps. */
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
    finish();
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
        tend_if_wanted();
        most = MAX(most, journal_memory_bytes(&journal));
    }
    assert_true(most < 1024 * 1024);
    journal_set_retention(&journal, 4 * 1024 * 1024);
    for (unsigned i = 0; i < 200000; i++) {
        append(0, set, 3);
        while (i % 100 == 0 && journal_reader_next(&reader, &view))
            continue;
        tend_if_wanted();
    }
    assert_true(journal_memory_bytes(&journal) > 4 * 1024 * 1024); /* kept though everybody has read it */
    journal_reader_close(&reader);
    finish();
}

/* ------------------------------------------------------------------------------------ slow readers, and the file -- */

enum { NUMBERED_BYTES = 200, LARGE_EVERY = 50, LARGE_BYTES = 32768 };

/* Record number n: SET n <n, and bytes that follow from it>; some of them with a bulk that is referenced. */
static void append_numbered(unsigned number)
{
    size_t size = number % LARGE_EVERY == 0 ? LARGE_BYTES + number % 1000 : NUMBERED_BYTES;
    struct blob *blob = blob_create(size);
    struct effects effects = {0};
    char text[16];
    struct slice args[] = {SLICE("SET"), {text, (size_t)snprintf(text, sizeof(text), "%08u", number)}, {0}};

    memset(blob->data, 'a' + (int)(number % 26), size);
    blob->size = size;
    args[2] = blob_slice(blob);
    effects_add_with_blobs(&effects, 0, args, 3, blob_of, blob);
    journal_append(&journal, &effects, false);
    effects_fini(&effects);
    blob_release(&blob);
}

/* Reads records up to number `end`; each must be the one after the last. */
static void read_numbered_until(struct journal_reader *reader, unsigned *next, unsigned end)
{
    struct journal_view view;

    while (*next < end && journal_reader_next(reader, &view)) {
        struct buffer bytes = {0};
        size_t size = *next % LARGE_EVERY == 0 ? LARGE_BYTES + *next % 1000 : NUMBERED_BYTES;
        char expected[64];
        int head;

        if ((view.flags & JOURNAL_SELECT) != 0)
            continue;
        journal_view_append(&view, &bytes);
        head = snprintf(expected, sizeof(expected), "*3\r\n$3\r\nSET\r\n$8\r\n%08u\r\n$%zu\r\n", *next, size);
        assert_int_equal(bytes.size, view.size);
        assert_int_equal(bytes.size, (size_t)head + size + 2);
        assert_memory_equal(bytes.data, expected, (size_t)head);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(bytes.data[(size_t)head + i], 'a' + (int)(*next % 26));
        (*next)++;
        buffer_fini(&bytes);
    }
}

static void read_numbered(struct journal_reader *reader, unsigned *next)
{
    read_numbered_until(reader, next, ~0U);
}

static void what_a_slow_reader_needs_goes_to_a_file(void **state)
{
    struct random random = test_random(__func__);
    struct journal_reader slow, fast;
    unsigned slow_next = 0, fast_next = 0, count = 0;
    struct journal_stats stats;
    uint64_t most = 0;

    (void)state;
    journal_init(&journal);
    journal_set_memory_limit(&journal, 2 << 20);
    journal_reader_open(&slow, &journal);
    journal_reader_set(&slow, JOURNAL_READER_SPILLS, 0);
    journal_reader_open(&fast, &journal);
    for (unsigned round = 0; round < 60; round++) {
        for (unsigned i = 0; i < 800; i++)
            append_numbered(count++);
        read_numbered(&fast, &fast_next);
        tend_if_wanted();
        most = MAX(most, journal_memory_bytes(&journal));
        if (random_below(&random, 15) == 0) {
            read_numbered(&slow, &slow_next);
            assert_int_equal(slow_next, count);
        }
    }
    journal_stats(&journal, &stats);
    assert_true(stats.spilled_total_bytes > 10 << 20);
    assert_true(most < 4 << 20); /* the limit, and the bytes since it was checked */
    read_numbered(&slow, &slow_next);
    assert_int_equal(slow_next, count);
    assert_int_equal(fast_next, count);
    journal_stats(&journal, &stats);
    assert_int_equal(stats.spilled_bytes, 0);
    journal_reader_close(&slow);
    journal_reader_close(&fast);
    finish();
}

/* A sixteenth of the memory, so that not each block wakes who writes the file. */
static void blocks_go_to_the_file_several_at_a_time(void **state)
{
    const uint64_t limit = 8 << 20;
    struct journal_reader slow;

    (void)state;
    journal_init(&journal);
    journal_set_memory_limit(&journal, limit);
    journal_reader_open(&slow, &journal);
    journal_reader_set(&slow, JOURNAL_READER_SPILLS, 0);
    while (journal_memory_bytes(&journal) <= limit)
        append_numbered(1); /* a short one */
    tend_if_wanted();
    assert_in_range(journal_memory_bytes(&journal), limit / 2, limit - limit / 16);
    journal_reader_close(&slow);
    finish();
}

/* Threads that append hold stripes: they leave blocks in the file alone, where many threads and a disk could delay
 * them. */
static void who_appends_frees_nothing(void **state)
{
    struct journal_reader slow;
    struct journal_stats before, after;
    unsigned count = 0, next = 0;

    (void)state;
    journal_init(&journal);
    journal_set_memory_limit(&journal, 1 << 20);
    journal_set_retention(&journal, 32 << 20);
    journal_reader_open(&slow, &journal);
    journal_reader_set(&slow, JOURNAL_READER_SPILLS, 0);
    while (count < 8000)
        append_numbered(count++);
    assert_true(journal_tend(&journal));
    read_numbered(&slow, &next);
    journal_stats(&journal, &before);
    assert_true(before.spilled_bytes != 0);
    journal_set_retention(&journal, 1); /* all of it is obsolete now */
    append_numbered(count++);
    journal_stats(&journal, &after);
    assert_int_equal(after.spilled_bytes, before.spilled_bytes);
    assert_true(journal_wants_tending(&journal));
    assert_true(journal_tend(&journal));
    journal_stats(&journal, &after);
    assert_int_equal(after.spilled_bytes, 0);
    journal_reader_close(&slow);
    finish();
}

/* What waits for the file is more than it may be, until the file has it, or nobody wants it. */
static void too_much_may_wait_for_the_file(void **state)
{
    struct journal_reader slow, other;
    unsigned count = 0;

    (void)state;
    journal_init(&journal);
    assert_false(journal_is_crowded(&journal, 0));
    journal_set_memory_limit(&journal, 1 << 20);
    journal_reader_open(&slow, &journal);
    journal_reader_open(&other, &journal);
    while (count < 8000)
        append_numbered(count++);
    assert_false(journal_is_crowded(&journal, 0)); /* none of it is for the file */
    journal_reader_set(&slow, JOURNAL_READER_SPILLS, 0);
    assert_true(journal_is_crowded(&journal, 0));
    assert_true(journal_is_crowded(&journal, 1 << 20));
    assert_false(journal_is_crowded(&journal, 1 << 30));
    journal_set_memory_limit(&journal, 0);
    assert_false(journal_is_crowded(&journal, 0)); /* there is no file */
    journal_set_memory_limit(&journal, 1 << 20);
    assert_true(journal_tend(&journal));
    assert_false(journal_is_crowded(&journal, 0));
    journal_reader_close(&other);
    journal_reader_close(&slow);
    finish();
}

/* Nobody lets go: all stays in memory. */
static void who_keeps_it_keeps_it_in_memory(void **state)
{
    struct journal_reader keeper;
    unsigned next = 0;

    (void)state;
    journal_init(&journal);
    journal_set_memory_limit(&journal, 1 << 20);
    journal_reader_open(&keeper, &journal);
    for (unsigned i = 0; i < 8000; i++)
        append_numbered(i);
    assert_true(journal_wants_tending(&journal));
    assert_true(journal_tend(&journal));
    assert_true(journal_memory_bytes(&journal) > 5 << 20);
    read_numbered(&keeper, &next);
    assert_int_equal(next, 8000);
    journal_reader_close(&keeper);
    finish();
}

/* Whatever fails: the reader is lost, or has read everything; appending is not affected, and other readers continue. */
static void a_broken_disk_is_the_slow_readers_misfortune(void **state)
{
    unsigned lost = 0, rounds = 0;

    (void)state;
    for (int how = FAULT_HOW_EIO; how <= FAULT_HOW_TORN; how++) {
        for (uint64_t nth = 0; fault_arm_how(FAULT_FILE, nth, (enum fault_how)how); nth++) {
            struct journal_reader slow, other;
            unsigned next = 0, other_next = 3000;

            journal_init(&journal);
            journal_set_memory_limit(&journal, 512 << 10);
            journal_reader_open(&slow, &journal);
            journal_reader_set(&slow, JOURNAL_READER_SPILLS, 0);
            for (unsigned i = 0; i < 3000; i++) {
                append_numbered(i);
                if (i % 1000 == 999) {
                    bool good = journal_tend(&journal);

                    assert_true(good || fault_fired());
                    assert_true(journal_memory_bytes(&journal) < 2 << 20); /* two blocks that are in use */
                }
            }
            journal_reader_open(&other, &journal);
            append_numbered(3000);
            read_numbered(&slow, &next);
            assert_true(slow.is_lost ? slow.error != 0 && fault_fired() && next < 3001 : next == 3001);
            read_numbered(&other, &other_next);
            assert_int_equal(other_next, 3001);
            lost += slow.is_lost;
            rounds++;
            journal_reader_close(&slow);
            journal_reader_close(&other);
            finish();
        }
        fault_disarm();
    }
    assert_true(lost > 0 && lost < rounds);
}

/* Blocks that another reader needs, too, are not given up when they cannot be written. */
static void what_others_need_stays_when_the_disk_fails(void **state)
{
    struct journal_reader slow, keeper;
    unsigned slow_next = 0, next = 0;

    (void)state;
    journal_init(&journal);
    journal_set_memory_limit(&journal, 512 << 10);
    journal_reader_open(&slow, &journal);
    journal_reader_set(&slow, JOURNAL_READER_SPILLS, 0);
    journal_reader_open(&keeper, &journal);
    for (unsigned i = 0; i < 3000; i++)
        append_numbered(i);
    assert_true(fault_arm_how(FAULT_OPEN, 0, FAULT_HOW_ENOSPC));
    assert_false(journal_tend(&journal));
    fault_disarm();
    read_numbered(&slow, &slow_next);
    read_numbered(&keeper, &next);
    assert_int_equal(next, 3000);
    assert_int_equal(slow_next, 3000);
    journal_reader_close(&slow);
    journal_reader_close(&keeper);
    finish();
}

/* At every record's begin that is retained, in memory or in the file, and nowhere else. */
static void readers_open_at_an_offset(void **state)
{
    struct random random = test_random(__func__);
    struct journal_reader slow, at;
    struct journal_view view;
    uint64_t offsets[4000], end;
    unsigned count = 0, next;

    (void)state;
    journal_init(&journal);
    assert_false(journal_reader_open_at(&at, &journal, 0, 0, NULL)); /* the journal is off */
    journal_set_memory_limit(&journal, 512 << 10);
    journal_set_retention(&journal, 1 << 20);
    journal_reader_open(&slow, &journal);
    journal_reader_set(&slow, JOURNAL_READER_SPILLS, 0);
    append_numbered(count++);
    offsets[0] = 23; /* behind SELECT */
    for (; count < 4000; count++) {
        offsets[count] = journal_end_offset(&journal);
        append_numbered(count);
        if (count == 3000)
            assert_true(journal_tend(&journal));
    }
    end = journal_end_offset(&journal);
    for (unsigned i = 0; i < 200; i++) {
        next = (unsigned)random_below(&random, count);
        assert_false(journal_reader_open_at(&at, &journal, offsets[next] + 1 + random_below(&random, 100), 0, NULL));
        assert_true(journal_reader_open_at(&at, &journal, offsets[next], 0, NULL));
        if (next > 3500 || i % 20 == 0) {
            read_numbered(&at, &next);
            assert_int_equal(next, count);
        }
        journal_reader_close(&at);
    }
    assert_true(journal_reader_open_at(&at, &journal, end, 0, NULL));
    assert_false(journal_reader_next(&at, &view));
    next = 0;
    read_numbered(&slow, &next);
    append_numbered(count++);
    read_numbered(&at, &next);
    assert_int_equal(next, count);
    journal_reader_close(&at);
    assert_true(journal_reader_open_at(&at, &journal, offsets[3990], 0, NULL)); /* retained, though all have read it */
    journal_reader_close(&at);
    assert_false(journal_reader_open_at(&at, &journal, offsets[10], 0, NULL));
    journal_reader_close(&slow);
    assert_false(journal_reader_open_at(&at, &journal, end, 0, NULL)); /* off: effects were lost since */
    assert_int_equal(journal_memory_bytes(&journal), 0);
    finish();
}

/* After its last reader the journal goes on, and what is retained can be read. */
static void a_kept_journal_lives_without_readers(void **state)
{
    struct journal_reader reader;
    struct journal_stats stats;
    unsigned count = 0, next = 0;
    uint64_t middle;

    (void)state;
    journal_init(&journal);
    journal_set_retention(&journal, 600 * 1000);
    journal_keep(&journal, JOURNAL_KEPT_FOR_REPLICAS, true);
    assert_true(journal_is_on(&journal));
    assert_true(journal_reader_open_at(&reader, &journal, 0, 0, NULL)); /* nothing was appended yet */
    while (count < 1000)
        append_numbered(count++);
    read_numbered(&reader, &next);
    assert_int_equal(next, count);
    journal_reader_close(&reader);
    assert_true(journal_is_on(&journal));
    middle = journal_end_offset(&journal);
    while (count < 2000)
        append_numbered(count++);
    assert_true(journal_reader_open_at(&reader, &journal, middle, 0, NULL));
    next = 1000;
    read_numbered(&reader, &next);
    assert_int_equal(next, count);
    journal_reader_close(&reader);
    while (count < 20000) {
        append_numbered(count++);
        tend_if_wanted();
    }
    journal_stats(&journal, &stats);
    assert_true(stats.end_offset - stats.begin_offset >= 600 * 1000);
    assert_true(stats.end_offset - stats.begin_offset < 10 << 20); /* two blocks */
    assert_false(journal_reader_open_at(&reader, &journal, middle, 0, NULL));
    journal_keep(&journal, JOURNAL_KEPT_FOR_REPLICAS, false);
    assert_false(journal_is_on(&journal));
    assert_int_equal(journal_memory_bytes(&journal), 0);
    finish();
}

/* Of what is before the place where a reader began it does not know whether it is ready. */
static void a_block_was_read_from_its_first_record_on(void **state)
{
    const struct journal_block *block;
    struct journal_reader whole, part;
    unsigned count = 0, next = 0;
    uint64_t middle;

    (void)state;
    journal_init(&journal);
    journal_reader_open(&whole, &journal);
    while (journal.oldest == journal.newest)
        append_numbered(count++);
    block = journal.newest;
    for (unsigned i = 0; i < 100; i++)
        append_numbered(count++);
    middle = journal_end_offset(&journal);
    next = count;
    while (journal.newest == block)
        append_numbered(count++);
    assert_true(journal_reader_open_at(&part, &journal, middle, 0, NULL));
    read_numbered(&part, &next);
    assert_int_equal(next, count);
    assert_ptr_equal(part.block, journal.newest);
    assert_false(block->was_read);
    next = 0;
    read_numbered(&whole, &next);
    assert_int_equal(next, count);
    assert_ptr_equal(journal.oldest, journal.newest); /* others are gone */
    journal_reader_close(&part);
    journal_reader_close(&whole);

    journal_set_retention(&journal, 10 << 20);
    journal_reader_open(&whole, &journal);
    block = journal.newest;
    while (journal.newest == block)
        append_numbered(count++);
    read_numbered(&whole, &next);
    assert_false(block->was_read); /* where a reader opens counts as within the block */
    block = journal.newest;
    while (journal.newest == block)
        append_numbered(count++);
    read_numbered(&whole, &next);
    assert_true(block->was_read);
    journal_reader_close(&whole);
    finish();
}

static _Atomic bool is_closed; /* global: of the test below */

static void close_reader(void *argument)
{
    journal_reader_close(argument);
    atomic_store(&is_closed, true);
}

static uint64_t journal_takes(void)
{
    return journal_memory_bytes(&journal) + journal_passing_bytes(&journal);
}

/* While a long journal is being freed, what is left of it is not the data's: keys would be evicted for it. */
static void what_is_being_freed_is_the_journals(void **state)
{
    struct journal_reader reader;
    struct thread closer = {0};
    uint64_t before, aside, used, most = 0;

    (void)state;
    journal_init(&journal);
    journal_keep(&journal, JOURNAL_KEPT_FOR_REPLICAS, true);
    journal_reader_open(&reader, &journal);
    mem_thread_start();
    before = mem_used() - journal_takes();
    for (unsigned i = 0; i < 300 * 1000; i++)
        append_numbered(i);
    assert_true(journal_takes() > 64 << 20);
    assert_in_range(mem_used() - journal_takes(), before, before + (1 << 20));
    thread_start(&closer, "closer", close_reader, &reader);
    while (!atomic_load(&is_closed)) {
        aside = journal_takes(); /* first: it becomes less */
        used = mem_used();
        most = MAX(most, used - MIN(used, aside));
    }
    thread_join(&closer);
    assert_in_range(most, 0, before + (1 << 20));
    assert_true(journal_takes() < 1 << 20);
    assert_int_equal(journal_passing_bytes(&journal), 0);
    journal_keep(&journal, JOURNAL_KEPT_FOR_REPLICAS, false);
    assert_int_equal(journal_takes(), 0);
    finish();
}

/* Nothing is added to it; what is appended afterwards goes on in the database that it has selected. */
static void a_stream_of_another_server_stays_as_it_is(void **state)
{
    static const char big[] = "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$4\r\nblob\r\n";
    static const char *const set[] = {"SET", "k", "v"};
    struct blob *blob = blob_create_copy(SLICE("blob"));
    const struct effect_blob place = {sizeof(big) - 7, blob};
    const struct journal_received commands[] = {
        {.bytes = SLICE("*2\r\n$6\r\nselect\r\n$1\r\n7\r\n"), .db = 7, .flags = JOURNAL_SELECT},
        {.bytes = SLICE("PING\r\n"), .db = 7, .flags = JOURNAL_MESSAGE},
        {.bytes = SLICE("*1\r\n$5\r\nMULTI\r\n"), .db = 7, .flags = JOURNAL_BEGINS},
        {.bytes = {big, sizeof(big) - 1}, .blobs = &place, .blob_count = 1, .db = 7},
        {.bytes = SLICE("*1\r\n$4\r\nEXEC\r\n"), .db = 7, .flags = JOURNAL_ENDS},
    };
    const char *const expected = "*2\r\n$6\r\nselect\r\n$1\r\n7\r\nPING\r\n*1\r\n$5\r\nMULTI\r\n"
                                 "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$4\r\nblob\r\n*1\r\n$4\r\nEXEC\r\n";
    struct journal_reader reader, from_middle;
    struct buffer stream = {0};

    (void)state;
    journal_init(&journal);
    journal_reader_open(&reader, &journal);
    assert_int_equal(journal_append_received(&journal, commands, countof(commands)), strlen(expected));
    blob_release(&blob);
    assert_true(journal_reader_open_at(&from_middle, &journal, 23, 0, NULL)); /* behind SELECT */
    read_all(&reader, &stream);
    check_stream(&stream, expected);
    read_all(&from_middle, &stream);
    check_stream(&stream, expected + 23);
    append(7, set, 3);
    append(0, set, 3);
    read_all(&reader, &stream);
    check_stream(&stream, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
                          "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n");
    journal_reader_close(&from_middle);
    journal_reader_close(&reader);
    buffer_fini(&stream);
    finish();
}

/* Commands that are appended together are as far from each other as if they were not. */
static void commands_appended_together_stay_apart(void **state)
{
    const struct slice set[] = {SLICE("SET"), SLICE("k"), SLICE("v")}, del[] = {SLICE("DEL"), SLICE("k")};
    struct journal_reader reader;
    struct effects effects = {0};
    struct buffer stream = {0};

    (void)state;
    journal_init(&journal);
    journal_reader_open(&reader, &journal);
    effects_end_group(&effects); /* the first has no effect */
    effects_add(&effects, 0, set, 3);
    effects_end_group(&effects);
    effects_end_group(&effects);
    effects_add(&effects, 0, set, 3);
    effects_add(&effects, 0, del, 2);
    effects_end_group(&effects);
    effects_add(&effects, 0, del, 2);
    journal_append(&journal, &effects, false);
    read_all(&reader, &stream);
    check_stream(&stream, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
                          "*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"
                          "*1\r\n$4\r\nEXEC\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n");
    effects_fini(&effects);
    buffer_fini(&stream);
    journal_reader_close(&reader);
    finish();
}

static _Atomic unsigned changes;

static void count_change(struct journal_reader *reader)
{
    (void)reader;
    atomic_fetch_add(&changes, 1);
}

/* What is in the file, and not in the memory of the kernel, comes when the thread that tends has read it; until then
 * there is nothing. */
static void who_never_waits_is_told(void **state)
{
    struct journal_reader slow, at;
    struct journal_view view;
    uint64_t middle = 0, end;
    unsigned count = 0, next = 0, tends = 0;

    (void)state;
    atomic_store(&changes, 0);
    journal_init(&journal);
    journal_set_memory_limit(&journal, 512 << 10);
    journal_reader_open(&slow, &journal);
    slow.on_change = count_change;
    journal_reader_set(&slow, JOURNAL_READER_SPILLS | JOURNAL_READER_NEVER_WAITS, 0);
    for (; count < 20000; count++) {
        if (count == 12000)
            middle = journal_end_offset(&journal);
        append_numbered(count);
        tend_if_wanted();
    }
    assert_true(fault_arm(FAULT_CACHE, 0));
    read_numbered(&slow, &next);
    assert_true(next < 12000); /* what was never in the file */
    while (next < count) {
        const unsigned before = next, changes_before = atomic_load(&changes);

        assert_false(journal_reader_next(&slow, &view));
        assert_false(slow.is_lost);
        assert_true(journal_tend(&journal));
        assert_int_equal(atomic_load(&changes), changes_before + 1);
        assert_true(fault_arm(FAULT_CACHE, 0));
        read_numbered(&slow, &next);
        assert_true(next > before);
        tends++;
        if (tends == 2) { /* in the midst of another's records */
            end = next;
            assert_true(fault_arm(FAULT_CACHE, 0));
            assert_true(journal_reader_open_at(&at, &journal, middle + 1,
                                               JOURNAL_READER_SPILLS | JOURNAL_READER_NEVER_WAITS, count_change));
            assert_false(journal_reader_next(&at, &view));
            assert_true(journal_tend(&journal));
            assert_false(journal_reader_next(&at, &view));
            assert_true(at.is_lost && at.error == EINVAL);
            journal_reader_close(&at);
            assert_true(fault_arm(FAULT_CACHE, 0));
            assert_true(journal_reader_open_at(&at, &journal, middle,
                                               JOURNAL_READER_SPILLS | JOURNAL_READER_NEVER_WAITS, count_change));
            journal_reader_close(&at); /* before it was fetched */
            assert_true(journal_tend(&journal));
            assert_true(fault_arm(FAULT_CACHE, 0));
            assert_true(journal_reader_open_at(&at, &journal, middle,
                                               JOURNAL_READER_SPILLS | JOURNAL_READER_NEVER_WAITS, count_change));
            assert_true(journal_tend(&journal));
            journal_reader_close(&at); /* when it was there, but not looked at */
            assert_true(fault_arm(FAULT_CACHE, 0));
            assert_true(journal_reader_open_at(&at, &journal, middle,
                                               JOURNAL_READER_SPILLS | JOURNAL_READER_NEVER_WAITS, count_change));
            assert_true(journal_tend(&journal));
            next = 12000;
            read_numbered(&at, &next);
            assert_true(next > 12000);
            journal_reader_close(&at);
            next = (unsigned)end;
            assert_true(fault_arm(FAULT_CACHE, 0));
            read_numbered(&slow, &next);
        }
    }
    assert_true(tends > 2);
    fault_disarm();
    journal_reader_close(&slow);
    finish();
}

/* A reader that is too slow by a third finds most of
 * it in memory: what is read last goes to the file. */
static void what_is_read_last_goes_to_the_file(void **state)
{
    struct journal_reader slow;
    struct journal_stats stats;
    unsigned count = 0, next = 0;

    (void)state;
    journal_init(&journal);
    journal_set_memory_limit(&journal, 8 << 20);
    journal_reader_open(&slow, &journal);
    journal_reader_set(&slow, JOURNAL_READER_SPILLS | JOURNAL_READER_NEVER_WAITS, 0);
    for (; count < 60000; count++) {
        append_numbered(count);
        tend_if_wanted();
        read_numbered_until(&slow, &next, count / 3 * 2);
    }
    journal_stats(&journal, &stats);
    assert_true(stats.spilled_total_bytes < journal_end_offset(&journal) / 2);
    assert_true(stats.spilled_bytes != 0);
    for (read_numbered(&slow, &next); next < count; read_numbered(&slow, &next))
        assert_true(journal_tend(&journal)); /* not every file system tells what is in memory */
    journal_reader_close(&slow);
    finish();
}


/* Beyond the file's limit the reader furthest behind is lost, at once; the next one is not. */
static void the_file_has_a_limit(void **state)
{
    struct journal_reader last, second, place, other;
    struct journal_view view;
    struct journal_stats stats;
    unsigned count = 0, next = 0;

    (void)state;
    atomic_store(&changes, 0);
    journal_init(&journal);
    journal_set_memory_limit(&journal, 512 << 10);
    journal_set_spill_limit(&journal, 12 << 20, 0);
    journal_reader_open(&last, &journal);
    journal_reader_open(&second, &journal);
    last.on_change = count_change;
    journal_reader_set(&last, JOURNAL_READER_SPILLS | JOURNAL_READER_NEVER_WAITS, 0);
    journal_reader_set(&second, JOURNAL_READER_SPILLS, 0);
    while (count < 2000) {
        append_numbered(count++);
        tend_if_wanted();
    }
    read_numbered(&second, &next);
    assert_int_equal(next, count);
    assert_true(journal_reader_open_at(&place, &journal, journal_end_offset(&journal), JOURNAL_READER_SPILLS, NULL));
    for (unsigned i = 0; atomic_load(&changes) == 0; i++) {
        assert_true(i < 60000);
        append_numbered(count++);
        tend_if_wanted();
        journal_stats(&journal, &stats);
        assert_true(stats.spilled_bytes < (12 + 5) << 20); /* a block more */
    }
    assert_false(journal_reader_next(&last, &view));
    assert_true(last.is_lost && last.error == ENOSPC);
    assert_int_equal(atomic_load(&changes), 1);
    assert_false(journal_reader_open_at(&other, &journal, 23, 0, NULL)); /* nobody can go on from there */
    read_numbered(&second, &next);
    assert_int_equal(next, count);
    journal_reader_close(&last);
    journal_reader_move(&place, journal_end_offset(&journal)); /* frees what was kept for it */
    journal_stats(&journal, &stats);
    assert_int_equal(stats.spilled_bytes, 0);
    journal_reader_close(&place);
    journal_reader_close(&second);

    /* Whoever is behind the blocks that are given up is lost, also a reader that is not the very last. */
    atomic_store(&changes, 0);
    journal_reader_open(&last, &journal);
    journal_reader_open(&second, &journal);
    last.on_change = second.on_change = count_change;
    journal_reader_set(&last, JOURNAL_READER_SPILLS, 0);
    for (next = count; journal.newest == last.block;)
        append_numbered(count++);
    while (second.block == last.block)
        assert_true(journal_reader_next(&second, &view));
    journal_reader_set(&second, JOURNAL_READER_SPILLS, 0);
    for (unsigned i = 0; atomic_load(&changes) < 2; i++) {
        assert_true(i < 60000);
        append_numbered(count++);
        tend_if_wanted();
    }
    assert_false(journal_reader_next(&last, &view));
    assert_false(journal_reader_next(&second, &view));
    assert_true(last.is_lost && second.is_lost);
    journal_reader_close(&last);
    journal_reader_close(&second);

    /* A disk that is nearly full is as a file that is too long. */
    journal_set_spill_limit(&journal, 0, UINT64_MAX);
    journal_reader_open(&last, &journal);
    journal_reader_set(&last, JOURNAL_READER_SPILLS, 0);
    for (unsigned i = 0; i < 20000; i++) {
        append_numbered(count++);
        if (journal_wants_tending(&journal))
            (void)journal_tend(&journal);
    }
    assert_false(journal_reader_next(&last, &view));
    assert_true(last.is_lost);
    journal_reader_close(&last);
    finish();
}

static unsigned lag_begins, lag_ends;

static void count_lag(bool lags)
{
    lag_begins += lags;
    lag_ends += !lags;
}

static void writers_hear_of_a_reader_that_holds_them(void **state)
{
    struct journal_reader slow, holder;
    struct journal_view view;
    unsigned next = 0, count = 1;

    (void)state;
    journal_init(&journal);
    journal.on_lag = count_lag;
    journal_reader_open(&slow, &journal); /* holds nobody */
    journal_reader_open(&holder, &journal);
    journal_reader_set(&holder, 0, JOURNAL_SELECT);
    journal_reader_set_lag_limit(&holder, 100 * 1000);
    next = 1;
    while (journal_end_offset(&journal) <= 100 * 1000) {
        assert_int_equal(lag_begins, 0);
        append_numbered(count++);
    }
    assert_int_equal(lag_begins, 1);
    append_numbered(count++);
    assert_int_equal(lag_begins, 1);
    assert_true(journal_reader_next(&holder, &view));
    assert_int_equal(lag_ends, 0);
    next++;
    read_numbered(&holder, &next);
    assert_int_equal(lag_ends, 1);
    while (journal_end_offset(&journal) - journal_reader_offset(&holder) <= 100 * 1000)
        append_numbered(count++);
    assert_int_equal(lag_begins, 2);
    journal_reader_set_lag_limit(&holder, 0);
    assert_int_equal(lag_ends, 2);
    journal_reader_set_lag_limit(&holder, 1000);
    assert_int_equal(lag_begins, 3);
    journal_reader_close(&holder);
    assert_int_equal(lag_ends, 3);
    journal_reader_close(&slow);
    finish();
}

static _Atomic bool appended_all;

static void spill_often(void *argument)
{
    (void)argument;
    while (!atomic_load(&appended_all)) {
        (void)journal_tend(&journal);
        sched_yield();
    }
}

static void append_many(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < 12000; i++)
        append_numbered(i);
    atomic_store(&appended_all, true);
}

/* Appending, spilling and reading at once. */
static void the_file_is_written_while_others_work(void **state)
{
    struct thread spiller = {0}, writer = {0};
    struct journal_reader slow, fast;
    unsigned slow_next = 0, fast_next = 0;

    (void)state;
    atomic_store(&appended_all, false);
    journal_init(&journal);
    journal_set_memory_limit(&journal, 600 << 10);
    journal_reader_open(&slow, &journal);
    journal_reader_set(&slow, JOURNAL_READER_SPILLS, 0);
    journal_reader_open(&fast, &journal);
    journal_reader_set(&fast, JOURNAL_READER_SPILLS, 0);
    thread_start(&writer, "writer", append_many, NULL);
    thread_start(&spiller, "spiller", spill_often, NULL);
    while (fast_next < 12000) {
        read_numbered(&fast, &fast_next);
        assert_false(fast.is_lost);
        if (fast_next > slow_next + 5000)
            read_numbered(&slow, &slow_next);
        sched_yield();
    }
    thread_join(&writer);
    thread_join(&spiller);
    read_numbered(&slow, &slow_next);
    assert_int_equal(slow_next, 12000);
    journal_reader_close(&slow);
    journal_reader_close(&fast);
    finish();
}

/* A message such as PING runs in any database: nothing is selected for it, and the database stays as it was. */
static void a_message_needs_no_database(void **state)
{
    static const char *const set[] = {"SET", "k", "v"};
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    struct journal_reader reader;
    struct journal_view view;
    struct buffer stream = {0};

    (void)state;
    journal_init(&journal);
    journal_reader_open(&reader, &journal);
    assert_int_equal(journal_stream_db(&journal), 0);
    journal_append_message(&journal, slice_make(ping, sizeof(ping) - 1));
    assert_true(journal_reader_next(&reader, &view));
    assert_int_equal(view.flags, JOURNAL_MESSAGE | JOURNAL_ENDS);
    assert_int_equal(view.size, sizeof(ping) - 1);
    append(7, set, 3);
    journal_append_message(&journal, slice_make(ping, sizeof(ping) - 1));
    append(7, set, 3);
    read_all(&reader, &stream);
    check_stream(&stream, "*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"
                          "*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n");
    assert_int_equal(journal_stream_db(&journal), 7);
    journal_reader_close(&reader);
    buffer_fini(&stream);
    finish();
}

/* A place is opened in a block that is in the file, and nothing is read for it. What is behind it stays. When it has
 * writers wait, moving it lets them go. */
static bool is_held;

static void note_hold(bool lags)
{
    is_held = lags;
}

static void let_go(void)
{
    assert_false(is_held);
}

static void a_place_reads_nothing(void **state)
{
    const unsigned flags = JOURNAL_READER_SPILLS | JOURNAL_READER_NEVER_WAITS | JOURNAL_READER_PLACE;
    struct journal_reader keeper, place, reader;
    struct journal_stats stats;
    uint64_t middle = 0;

    (void)state;
    is_held = false;
    journal_init(&journal);
    journal.on_lag = note_hold;
    journal.on_lag_over = let_go;
    journal_set_memory_limit(&journal, 512 << 10);
    journal_reader_open(&keeper, &journal);
    journal_reader_set(&keeper, JOURNAL_READER_SPILLS, 0);
    for (unsigned i = 0; i < 2000; i++) {
        if (i == 100)
            middle = journal_end_offset(&journal);
        append_numbered(i);
        tend_if_wanted();
    }
    journal_stats(&journal, &stats);
    assert_true(stats.spilled_bytes != 0);
    assert_true(journal_reader_open_at(&place, &journal, middle, flags, NULL));
    assert_null(place.fetch);
    assert_int_equal(journal_reader_offset(&place), middle);
    journal_reader_close(&keeper);
    assert_true(journal_reader_open_at(&reader, &journal, middle, JOURNAL_READER_SPILLS, NULL)); /* it is still there */
    journal_reader_close(&reader);
    journal_reader_set_lag_limit(&place, 1 << 20);
    assert_true(is_held);
    journal_reader_move(&place, journal_end_offset(&journal) - (1 << 10));
    assert_int_equal(journal_reader_offset(&place), journal_end_offset(&journal) - (1 << 10));
    assert_false(is_held);
    assert_false(journal_reader_open_at(&reader, &journal, middle, JOURNAL_READER_SPILLS, NULL));
    journal_reader_move(&place, middle); /* never back */
    assert_int_equal(journal_reader_offset(&place), journal_end_offset(&journal) - (1 << 10));
    journal_reader_close(&place);
    finish();
}

/* Records for peers alone take nothing of the stream, so many have one offset, also over the end of a block. A position
 * leads to those behind it nevertheless, in memory and in the file, and a place keeps them. */
static void a_position_leads_to_what_is_behind_it(void **state)
{
    enum { COUNT = 20000 };
    const unsigned place_flags = JOURNAL_READER_SPILLS | JOURNAL_READER_NEVER_WAITS | JOURNAL_READER_PLACE;
    static uint64_t positions[COUNT + 1];
    struct random random = test_random(__func__);
    struct journal_reader place, reader;
    struct journal_view view;
    uint64_t first = 0;

    (void)state;
    journal_init(&journal);
    journal_set_memory_limit(&journal, 700 << 10);
    journal_reader_open(&place, &journal);
    journal_reader_set(&place, place_flags, 0);
    for (unsigned i = 0; i < COUNT; i++) {
        char number[16];
        struct slice words[] = {SLICE("SADD"), SLICE("a rather long name of a key"), SLICE_EMPTY};
        struct effects effects = {0};

        words[2] = slice_make(number, (size_t)snprintf(number, sizeof(number), "%05u", i));
        effects_add_operation(&effects, 0, words, 3);
        positions[i] = journal_end_position(&journal);
        journal_append(&journal, &effects, false);
        effects_fini(&effects);
        tend_if_wanted();
    }
    positions[COUNT] = journal_end_position(&journal);
    assert_int_equal(journal_end_offset(&journal), 0);
    for (unsigned round = 0; round < 40; round++) {
        const unsigned from = (unsigned)first + (unsigned)random_below(&random, COUNT - first);
        unsigned next = COUNT;

        assert_true(journal_reader_open_near(&reader, &journal, positions[from], JOURNAL_READER_SPILLS, NULL));
        for (unsigned at = 0; journal_reader_next(&reader, &view); next = at + 1) {
            at = (unsigned)strtoul(view.bytes.data + view.bytes.size - 7, NULL, 10);
            if (next == COUNT)
                assert_true(at <= from);
            else
                assert_int_equal(at, next);
            if (at + 1 < from)
                assert_false(journal_reader_is_past(&reader, positions[from]));
        }
        assert_int_equal(next, COUNT);
        assert_true(journal_reader_is_past(&reader, positions[COUNT]));
        journal_reader_close(&reader);
        if (round % 10 == 9) {
            first += COUNT / 8;
            journal_reader_move_near(&place, positions[first]);
        }
    }
    assert_false(journal_reader_open_near(&reader, &journal, positions[0], JOURNAL_READER_SPILLS, NULL));
    journal_reader_close(&place);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stream_is_what_replicas_read),
        cmocka_unit_test(messages_are_marked),
        cmocka_unit_test(effects_may_be_hidden),
        cmocka_unit_test(operations_are_for_peers_alone),
        cmocka_unit_test(local_effects_take_nothing_of_the_stream),
        cmocka_unit_test(blobs_are_referenced),
        cmocka_unit_test(blobs_are_copied_into_the_tail),
        cmocka_unit_test(writers_do_not_mix),
        cmocka_unit_test(blocks_that_were_read_are_freed),
        cmocka_unit_test(what_a_slow_reader_needs_goes_to_a_file),
        cmocka_unit_test(blocks_go_to_the_file_several_at_a_time),
        cmocka_unit_test(who_appends_frees_nothing),
        cmocka_unit_test(who_keeps_it_keeps_it_in_memory),
        cmocka_unit_test(a_broken_disk_is_the_slow_readers_misfortune),
        cmocka_unit_test(what_others_need_stays_when_the_disk_fails),
        cmocka_unit_test(readers_open_at_an_offset),
        cmocka_unit_test(a_kept_journal_lives_without_readers),
        cmocka_unit_test(what_is_being_freed_is_the_journals),
        cmocka_unit_test(a_stream_of_another_server_stays_as_it_is),
        cmocka_unit_test(commands_appended_together_stay_apart),
        cmocka_unit_test(who_never_waits_is_told),
        cmocka_unit_test(what_is_read_last_goes_to_the_file),
        cmocka_unit_test(too_much_may_wait_for_the_file),
        cmocka_unit_test(the_file_has_a_limit),
        cmocka_unit_test(writers_hear_of_a_reader_that_holds_them),
        cmocka_unit_test(the_file_is_written_while_others_work),
        cmocka_unit_test(a_message_needs_no_database),
        cmocka_unit_test(a_block_was_read_from_its_first_record_on),
        cmocka_unit_test(a_place_reads_nothing),
        cmocka_unit_test(a_position_leads_to_what_is_behind_it),
    };

    fence_setup();
    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
