/* What is written is read, however the bytes arrive; what others could send instead is refused. */
#include "active/frame.h"

#include "active/cursor.h"
#include "active/mvcc.h"
#include "base/blob.h"
#include "base/mem.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { DB_COUNT = 16, WORDS_MOST = 6, OPS_MOST = 5 };

static const int64_t now_ms = INT64_C(1795000000000);

static uint64_t stamp_of(int64_t ms, uint64_t counter)
{
    return ((uint64_t)ms << STAMP_COUNTER_BITS) + counter;
}

/* An entry as text, to compare. */
static void note(struct buffer *notes, const struct frame_entry *entry)
{
    buffer_printf(notes, "[%llu %llu<%llu w%lld m%llu f%d", (unsigned long long)entry->origin,
                  (unsigned long long)entry->prev, (unsigned long long)entry->stamp, (long long)entry->wall,
                  (unsigned long long)entry->mvcc, entry->flush);
    assert_int_equal(uuid_id(&entry->uuid), entry->origin);
    for (uint32_t i = 0; i < entry->op_count; i++) {
        const struct frame_op *op = &entry->ops[i];

        buffer_printf(notes, " (%u k%u %d %d s%llu", op->db, op->key_index, op->overwrites, op->evicts,
                      (unsigned long long)op->seen);
        for (uint32_t word = 0; word < op->word_count; word++) {
            buffer_append_char(notes, ' ');
            buffer_append_slice(notes, op->words[word]);
        }
        buffer_append_char(notes, ')');
    }
    buffer_append_char(notes, ']');
}

static void drain(struct output *output, struct buffer *bytes)
{
    output_to_buffer(output, bytes);
    output_clear(output);
}

/* Reads frames of entries in pieces of up to `piece_most` bytes. Returns whether all was read. */
static bool read_all(struct frame_reader *reader, struct slice bytes, size_t piece_most, struct random *random,
                     struct buffer *notes)
{
    struct buffer input = {0};
    size_t at = 0;

    while (at < bytes.size) {
        const size_t wanted = 1 + (size_t)random_below(random, piece_most);
        const size_t piece = MIN(bytes.size - at, wanted);
        enum frame_result result = FRAME_COMPLETE;
        struct frame frame;
        char *room;
        const size_t large = input.size == 0 ? frame_reader_large_room(reader, &room) : 0;

        if (large != 0 && random_below(random, 2) == 0) { /* received where it belongs */
            memcpy(room, bytes.data + at, MIN(large, piece));
            frame_reader_large_received(reader, MIN(large, piece));
            at += MIN(large, piece);
        } else {
            buffer_append(&input, bytes.data + at, piece);
            at += piece;
        }
        while (result == FRAME_COMPLETE) {
            size_t used;

            result = frame_read(reader, input.data, input.size, &used, &frame);
            if (result == FRAME_ERROR)
                fail_msg("%s", frame_reader_error(reader));
            if (result == FRAME_COMPLETE && random_below(random, 3) == 0) { /* the bytes go, the entries stay */
                frame_reader_keep(reader);
                memset(input.data, '!', used);
            }
            for (uint32_t i = 0; result == FRAME_COMPLETE && i < frame.entry_count; i++)
                note(notes, &frame.entries[i]);
            buffer_consume(&input, used);
        }
    }
    at = input.size;
    buffer_fini(&input);
    return at == 0;
}

/* --- a sender with random entries --- */

struct sender {
    struct random *random;
    uint64_t stamps[4];
    int64_t walls[4];
    struct uuid uuids[4];
    struct slice words[OPS_MOST][WORDS_MOST];
    struct resp_blob_arg blobs[OPS_MOST];
    struct frame_op ops[OPS_MOST];
    char *memory;
};

enum { MEMORY_BYTES = 3 << 20 };

static void make_op(struct sender *sender, uint32_t index, uint64_t stamp, bool is_alone)
{
    struct random *random = sender->random;
    struct frame_op *op = &sender->ops[index];

    *op = (struct frame_op){.words = sender->words[index],
                            .blobs = &sender->blobs[index],
                            .word_count = 1 + (uint32_t)random_below(random, WORDS_MOST),
                            .db = (unsigned)random_below(random, 2) * 7,
                            .overwrites = random_below(random, 2) == 0};
    op->key_index = (uint32_t)random_below(random, op->word_count);
    op->evicts = is_alone && op->overwrites && op->key_index != 0 && random_below(random, 5) == 0;
    op->seen = op->evicts ? stamp - 1 - random_below(random, 1000) : 0;
    for (uint32_t i = 0; i < op->word_count; i++) {
        const bool is_large = random_below(random, 40) == 0;
        const uint64_t limit = is_large ? random_below(random, 8) == 0 ? MEMORY_BYTES : FRAME_LARGE_BYTES + 2 : 100;
        size_t size = (size_t)random_below(random, limit);

        size = is_large && limit < MEMORY_BYTES ? FRAME_LARGE_BYTES - 1 + size % 3 : size;
        sender->words[index][i] = slice_make(sender->memory + random_below(random, MEMORY_BYTES - size), size);
        if (size < FRAME_LARGE_BYTES || op->blob_count != 0 || random_below(random, 2) == 0)
            continue;
        sender->blobs[index] = (struct resp_blob_arg){i, blob_create_copy(sender->words[index][i])};
        sender->words[index][i] = blob_slice(sender->blobs[index].blob);
        op->blob_count = 1;
    }
}

static struct frame_entry make_entry(struct sender *sender)
{
    struct random *random = sender->random;
    const uint64_t origin = random_below(random, 4);
    const uint64_t prev = sender->stamps[origin] + (random_below(random, 10) == 0 ? 5 : 0);
    struct frame_entry entry = {.uuid = sender->uuids[origin],
                                .origin = uuid_id(&sender->uuids[origin]),
                                .prev = prev,
                                .stamp = prev + 1 + random_below(random, UINT64_C(1) << random_below(random, 30)),
                                .wall = sender->walls[origin] + (int64_t)random_below(random, 3),
                                .flush = random_below(random, 20) == 0,
                                .ops = sender->ops,
                                .op_count = 1 + (uint32_t)(random_below(random, 3) == 0) * 4};

    if (origin == 3)
        entry.mvcc = mvcc_of_stamp(entry.stamp) + 3;
    for (uint32_t i = 0; i < entry.op_count; i++)
        make_op(sender, i, entry.stamp, entry.op_count == 1);
    sender->stamps[origin] = entry.stamp;
    sender->walls[origin] = entry.wall;
    return entry;
}

static void sender_init(struct sender *sender, struct random *random)
{
    *sender = (struct sender){.random = random, .memory = mem_alloc(MEMORY_BYTES)};
    for (size_t i = 0; i < MEMORY_BYTES; i += 8) {
        const uint64_t number = random_u64(random);

        memcpy(sender->memory + i, &number, sizeof(number));
    }
    for (unsigned i = 0; i < 4; i++) {
        sender->stamps[i] = stamp_of(now_ms, 0);
        sender->walls[i] = now_ms - 100 * (int64_t)i; /* a clock that lags */
        sender->uuids[i] = uuid_of_id(1 + random_u64(random) / 2);
    }
}

static void send_some(struct sender *sender, struct frame_writer *writer, struct output *output, struct buffer *notes)
{
    for (unsigned i = 0; i < 300; i++) {
        const struct frame_entry entry = make_entry(sender);

        note(notes, &entry);
        frame_writer_add(writer, &entry);
        for (uint32_t op = 0; op < entry.op_count; op++) {
            if (entry.ops[op].blob_count != 0)
                blob_release(&sender->blobs[op].blob);
        }
        if (frame_writer_bytes(writer) >= FRAME_FULL_BYTES || random_below(sender->random, 30) == 0)
            frame_writer_flush(writer, output);
    }
    frame_writer_flush(writer, output);
}

static void what_is_written_is_read(void **state)
{
    static const size_t pieces[] = {SIZE_MAX / 2, 70000, 999, 7};
    struct random random = test_random("frames");

    (void)state;
    for (size_t round = 0; round < countof(pieces); round++) {
        struct frame_writer *writer = frame_writer_create();
        struct frame_reader *reader = frame_reader_create(DB_COUNT);
        struct buffer bytes = {0}, expected = {0}, notes = {0};
        struct output output;
        struct sender sender;

        output_init(&output, NULL);
        sender_init(&sender, &random);
        send_some(&sender, writer, &output, &expected);
        drain(&output, &bytes);
        assert_true(read_all(reader, buffer_slice(&bytes), pieces[round], &random, &notes));
        assert_true(slice_equal(buffer_slice(&expected), buffer_slice(&notes)));
        assert_true(frame_reader_bytes(reader) < 8 << 20);
        mem_free(sender.memory);
        buffer_fini(&bytes);
        buffer_fini(&expected);
        buffer_fini(&notes);
        frame_writer_destroy(&writer);
        frame_reader_destroy(&reader);
    }
}

/* --- the cost --- */

static struct frame_entry set_of(const struct uuid *uuid, uint64_t prev, uint64_t stamp, const struct frame_op *op)
{
    return (struct frame_entry){.uuid = *uuid,
                                .origin = uuid_id(uuid),
                                .prev = prev,
                                .stamp = stamp,
                                .wall = stamp_ms(stamp) - 2,
                                .ops = op,
                                .op_count = 1};
}

/* Bytes of a SET of 16 + 64 bytes on a link: `origins` write by turns, `per_ms` SETs a millisecond together, and a
 * frame is sent every `frame_sets` SETs. */
static double bytes_of_a_set(unsigned origins, unsigned per_ms, unsigned frame_sets)
{
    enum { SETS = 100000 };
    const struct slice words[] = {SLICE("SET"), SLICE("key:000000000001"),
                                  SLICE("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")};
    const struct frame_op op = {.words = words, .word_count = 3, .key_index = 1, .overwrites = true};
    struct frame_writer *writer = frame_writer_create();
    struct output output;
    uint64_t stamps[8] = {0};
    size_t bytes;

    output_init(&output, NULL);
    for (unsigned i = 0; i < SETS; i++) {
        const struct uuid uuid = uuid_of_id(1000 + i % origins);
        const uint64_t prev = stamps[i % origins], first = stamp_of(now_ms + i / per_ms, 0);
        struct frame_entry entry = set_of(&uuid, prev, MAX(prev + 1, first), &op);

        stamps[i % origins] = entry.stamp;
        frame_writer_add(writer, &entry);
        if (i % frame_sets == frame_sets - 1)
            frame_writer_flush(writer, &output);
    }
    frame_writer_flush(writer, &output);
    bytes = output_size(&output);
    output_clear(&output);
    frame_writer_destroy(&writer);
    return (double)bytes / SETS;
}

static void a_set_costs_its_payload_and_at_most_24_bytes(void **state)
{
    static const struct {
        unsigned origins, per_ms, frame_sets;
    } rows[] = {{1, 500, 500}, {1, 100, 32}, {1, 1, 32}, {2, 100, 32}, {4, 10, 8}};

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        const double bytes = bytes_of_a_set(rows[i].origins, rows[i].per_ms, rows[i].frame_sets);

        printf("SET of 16 + 64 bytes, %u origins, %u a ms, %u a frame: %.1f bytes\n", rows[i].origins, rows[i].per_ms,
               rows[i].frame_sets, bytes);
        assert_true(bytes <= 16 + 64 + 24);
    }
}

/* --- what others could send --- */

static enum frame_result read_once(struct frame_reader *reader, struct slice bytes, size_t *used)
{
    struct frame frame;

    return frame_read(reader, bytes.data, bytes.size, used, &frame);
}

static void refuse(enum frame_kind kind, const struct buffer *body, const char *why)
{
    struct frame_reader *reader = frame_reader_create(DB_COUNT);
    struct buffer bytes = {0};
    struct output output;
    size_t used;

    output_init(&output, NULL);
    frame_write(&output, kind, buffer_slice(body));
    drain(&output, &bytes);
    assert_int_equal(read_once(reader, buffer_slice(&bytes), &used), FRAME_ERROR);
    if (strstr(frame_reader_error(reader), why) == NULL)
        fail_msg("'%s' instead of '%s'", frame_reader_error(reader), why);
    buffer_fini(&bytes);
    frame_reader_destroy(&reader);
}

/* The head of a first entry, up to where `parts` says. */
static void put_entry(struct buffer *body, uint8_t more, uint64_t prev, uint64_t above)
{
    const struct uuid uuid = uuid_of_id(5);

    put_byte(body, (uint8_t)(FRAME_HAS_ORIGIN | FRAME_HAS_UUID | FRAME_HAS_PREV | FRAME_HAS_WALL | more));
    put_varint(body, 0);
    buffer_append(body, uuid.bytes, UUID_BYTES);
    put_fixed(body, prev);
    put_varint(body, above);
    put_varint(body, 0);
}

static void refuse_entry(uint8_t more, uint64_t prev, uint64_t above, const char *rest, size_t rest_size,
                         const char *why)
{
    struct buffer body = {0};

    put_entry(&body, more, prev, above);
    buffer_append(&body, rest, rest_size);
    refuse(FRAME_ENTRIES, &body, why);
    buffer_fini(&body);
}

#define REFUSE_REST(more, rest, why) refuse_entry(more, stamp_of(now_ms, 0), 1, rest, sizeof(rest) - 1, why)

static void hostile_entries(void **state)
{
    struct buffer body = {0};

    (void)state;
    refuse(FRAME_ENTRIES, &body, "frame 1 (entries), byte 0: it has no entries");
    put_byte(&body, 0);
    refuse(FRAME_ENTRIES, &body, "no origin has this number");
    buffer_clear(&body);
    put_byte(&body, FRAME_HEAD_END);
    refuse(FRAME_ENTRIES, &body, "byte 1: no entry begins so");
    buffer_clear(&body);
    put_byte(&body, FRAME_HAS_UUID);
    refuse(FRAME_ENTRIES, &body, "no entry begins so");
    buffer_fini(&body);
    refuse_entry(0, 5, 1, "", 0, "prev is not possible");
    refuse_entry(0, stamp_of(now_ms, 0), 0, "", 0, "the stamp is not above prev");
    refuse_entry(0, stamp_of(now_ms, 0), UINT64_MAX, "", 0, "the stamp is not above prev");
    refuse_entry(0, 0, 7, "", 0, "the stamp is not above prev, or not possible");
    REFUSE_REST(0, "", "it ends too early");
    REFUSE_REST(FRAME_HAS_MVCC, "\1\0\0\0\0\0\0\0", "no clock gives this mvcc");
    REFUSE_REST(FRAME_HAS_OPS, "\0   ", "an entry without operations");
    REFUSE_REST(FRAME_HAS_OPS, "\xff\xff\xff\xff\x0f   ", "a count is larger than what follows");
    REFUSE_REST(FRAME_HAS_OPS, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02   ", "a number is too long");
    REFUSE_REST(0, "\x40", "no operation begins so");
    REFUSE_REST(0, "\4\20", "there is no such database");
    REFUSE_REST(0, "\2\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", "an eviction saw no such stamp");
    REFUSE_REST(0, "\0\0", "an operation without its key or command");
    REFUSE_REST(0, "\10\1\3GET", "an operation without its key or command");
    REFUSE_REST(0, "\10\2\3GET", "it ends too early");
    REFUSE_REST(0, "\10\2\3GET\2k", "it ends too early");
    REFUSE_REST(0, "\0\x80\0", "a number is too long");
    REFUSE_REST(0, "\0\x7f\0", "a count is larger than what follows");
    REFUSE_REST(0, "\0\2\xff\xff\3\0", "a word is too large");
}

static void hostile_frames(void **state)
{
    static const struct {
        struct slice bytes;
        const char *why;
    } rows[] = {
        {{"\0\0", 2}, "frame 1 (unknown), byte 0: there is no such frame"},
        {{"\15\0", 2}, "there is no such frame"},
        {{"\4\xff\xff\xff\xff\xff\xff\xff\xff\xff\2", 11}, "frame 1 (beat), byte 1: a number is too long"},
        {{"\4\x80\0", 3}, "a number is too long"},
        {{"\4\xff\xff\xff\xff\x7f", 6}, "its body is too long"},
        {{"\4\x81\x80\x80\x40", 5}, "its body is too long"}, /* one above 128 MiB, of a beat */
    };

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        struct frame_reader *reader = frame_reader_create(DB_COUNT);
        size_t used;

        assert_int_equal(read_once(reader, rows[i].bytes, &used), FRAME_ERROR);
        assert_non_null(strstr(frame_reader_error(reader), rows[i].why));
        frame_reader_destroy(&reader);
    }
}

/* A word of 512 GB costs nothing before it comes. */
static void what_is_announced_takes_no_memory(void **state)
{
    struct frame_reader *reader = frame_reader_create(DB_COUNT);
    const size_t before = mem_used();
    struct buffer body = {0}, bytes = {0};
    struct output output;
    size_t used;
    char *room;

    (void)state;
    output_init(&output, NULL);
    put_entry(&body, 0, stamp_of(now_ms, 0), 1);
    buffer_append(&body, "\10\2\3GET", 6);
    put_varint(&body, UINT64_C(1) << 39);
    frame_write(&output, FRAME_LARGES, buffer_slice(&body));
    drain(&output, &bytes);
    assert_int_equal(read_once(reader, buffer_slice(&bytes), &used), FRAME_MORE);
    assert_int_equal(used, bytes.size);
    assert_int_equal(frame_reader_large_room(reader, &room), 1 << 20);
    assert_true(mem_used() - before < 4 << 20);
    buffer_clear(&bytes);
    put_byte(&bytes, FRAME_ENTRIES);
    put_varint(&bytes, FRAME_BODY_BYTES_MOST);
    buffer_fini(&body);
    frame_reader_destroy(&reader);
    reader = frame_reader_create(DB_COUNT);
    assert_int_equal(read_once(reader, buffer_slice(&bytes), &used), FRAME_MORE);
    assert_int_equal(used, 0);
    assert_true(frame_reader_bytes(reader) < 4096);
    buffer_fini(&bytes);
    frame_reader_destroy(&reader);
}

static void more_origins_than_numbers(void **state)
{
    const struct slice words[] = {SLICE("DEL"), SLICE("k")};
    const struct frame_op op = {.words = words, .word_count = 2, .key_index = 1};
    struct random random = test_random("origins of frames");
    struct frame_writer *writer = frame_writer_create();
    struct frame_reader *reader = frame_reader_create(DB_COUNT);
    struct buffer bytes = {0}, expected = {0}, notes = {0};
    struct output output;

    (void)state;
    output_init(&output, NULL);
    for (unsigned i = 0; i < 5 * FRAME_ORIGINS_MOST; i++) {
        const struct uuid uuid = uuid_of_id(1 + random_below(&random, 2 * FRAME_ORIGINS_MOST));
        struct frame_entry entry = set_of(&uuid, stamp_of(now_ms, 2 * i), stamp_of(now_ms, 2 * i + 1), &op);

        note(&expected, &entry);
        frame_writer_add(writer, &entry);
    }
    frame_writer_flush(writer, &output);
    drain(&output, &bytes);
    assert_true(read_all(reader, buffer_slice(&bytes), SIZE_MAX / 2, &random, &notes));
    assert_true(slice_equal(buffer_slice(&expected), buffer_slice(&notes)));
    buffer_fini(&bytes);
    buffer_fini(&expected);
    buffer_fini(&notes);
    frame_writer_destroy(&writer);
    frame_reader_destroy(&reader);
}

/* Damaged at random, nothing but an error or other entries may come of it. */
static void damaged_bytes(void **state)
{
    const struct slice words[] = {SLICE("SADD"), SLICE("k"), SLICE("m")};
    const struct frame_op ops[2] = {{.words = words, .word_count = 3, .key_index = 1, .db = 3},
                                    {.words = words, .word_count = 2, .overwrites = true}};
    const struct frame_op eviction = {.words = words,
                                      .word_count = 2,
                                      .key_index = 1,
                                      .overwrites = true,
                                      .evicts = true,
                                      .seen = stamp_of(now_ms, 0)};
    const struct uuid uuid = uuid_of_id(9);
    struct random random = test_random("damaged frames");
    struct frame_writer *writer = frame_writer_create();
    struct buffer bytes = {0};
    struct output output;

    (void)state;
    output_init(&output, NULL);
    for (unsigned i = 0; i < 3; i++) {
        struct frame_entry entry = set_of(&uuid, stamp_of(now_ms, i), stamp_of(now_ms, i + 1), ops);

        entry.op_count = 1 + i % 2;
        if (i == 2)
            entry.ops = &eviction;
        frame_writer_add(writer, &entry);
    }
    frame_writer_flush(writer, &output);
    drain(&output, &bytes);
    for (unsigned i = 0; i < 20000; i++) {
        struct frame_reader *reader = frame_reader_create(DB_COUNT);
        char *damaged = mem_copy(bytes.data, bytes.size);
        struct slice input = slice_make(damaged, bytes.size - (size_t)random_below(&random, 2) * 3);
        size_t used;

        damaged[random_below(&random, bytes.size)] = (char)random_below(&random, 256);
        if (read_once(reader, input, &used) == FRAME_ERROR)
            assert_int_equal(strncmp(frame_reader_error(reader), "frame 1 (", 9), 0);
        mem_free(damaged);
        frame_reader_destroy(&reader);
    }
    buffer_fini(&bytes);
    frame_writer_destroy(&writer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_set_costs_its_payload_and_at_most_24_bytes),
        cmocka_unit_test(hostile_entries),
        cmocka_unit_test(hostile_frames),
        cmocka_unit_test(what_is_announced_takes_no_memory),
        cmocka_unit_test(more_origins_than_numbers),
        cmocka_unit_test(damaged_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
