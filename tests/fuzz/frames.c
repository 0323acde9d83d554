/* What another node of ours says on a link. Properties:
 *  1. the meaning does not depend on the pieces in which the bytes arrive;
 *  2. an entry has possible stamps above its prev, a key among its words, and a database that is there;
 *  3. what was read, written and read again, is the same;
 *  4. an error is one printable line. */
#include "active/beats.h"
#include "active/comparison.h"
#include "active/frame.h"
#include "active/notice.h"
#include "base/array.h"
#include "base/blob.h"
#include "fuzz.h"
#include "store/stamp.h"

#include <stdlib.h>
#include <string.h>

enum { DB_COUNT = 16 };

static void check_error(const char *error)
{
    assert(error[0] != '\0');
    for (; *error != '\0'; error++)
        assert(*error >= ' ' && *error <= '~');
}

static void note(struct buffer *meaning, const struct frame_entry *entry)
{
    assert(stamp_is_possible(entry->stamp) && entry->prev < entry->stamp);
    assert(entry->op_count != 0 && entry->wall >= 0);
    buffer_printf(meaning, "[%llu %llu %llu %lld %llu %d", (unsigned long long)entry->origin,
                  (unsigned long long)entry->prev, (unsigned long long)entry->stamp, (long long)entry->wall,
                  (unsigned long long)entry->mvcc, entry->flush);
    for (uint32_t i = 0; i < entry->op_count; i++) {
        const struct frame_op *op = &entry->ops[i];

        assert(op->db < DB_COUNT && op->key_index < op->word_count && op->seen <= entry->stamp);
        buffer_printf(meaning, "(%u %u %d %d %llu", op->db, op->key_index, op->overwrites, op->evicts,
                      (unsigned long long)op->seen);
        for (uint32_t word = 0; word < op->word_count; word++) {
            buffer_printf(meaning, " %zu:", op->words[word].size);
            buffer_append_slice(meaning, op->words[word]);
        }
    }
}

/* 0: complete; 1: more is wanted; 2: an error. */
static void read_all(struct slice input, size_t step, struct buffer *meaning, struct frame_writer *writer,
                     struct output *out)
{
    struct frame_reader *reader = frame_reader_create(DB_COUNT);
    enum frame_result result = FRAME_MORE;
    size_t at = 0, given = 0;

    while (result != FRAME_ERROR && (result == FRAME_COMPLETE || given < input.size)) {
        struct frame frame;
        size_t used;
        char *block;

        if (result == FRAME_MORE)
            given = MIN(given + step, input.size);
        block = malloc(given - at);
        assert(block != NULL || given == at);
        if (given != at)
            memcpy(block, input.data + at, given - at);
        result = frame_read(reader, block, given - at, &used, &frame);
        assert(used <= given - at);
        at += used;
        if (result == FRAME_COMPLETE) {
            buffer_printf(meaning, "{%d:", (int)frame.kind);
            buffer_append_slice(meaning, frame.body);
            for (uint32_t i = 0; i < frame.entry_count; i++) {
                note(meaning, &frame.entries[i]);
                if (writer != NULL)
                    frame_writer_add(writer, &frame.entries[i]);
            }
            if (writer != NULL && frame.entry_count != 0)
                frame_writer_flush(writer, out);
            else if (writer != NULL)
                frame_write(out, frame.kind, frame.body);
        }
        free(block);
    }
    if (result == FRAME_ERROR)
        check_error(frame_reader_error(reader));
    buffer_append_text(meaning, result == FRAME_ERROR ? frame_reader_error(reader) : "");
    frame_reader_destroy(&reader);
}

static void check_frames(struct slice input, size_t step)
{
    struct frame_writer *writer = frame_writer_create();
    struct buffer whole = {0}, cut = {0}, written = {0}, again = {0};
    struct output out;

    output_init(&out, NULL);
    read_all(input, MAX(input.size, 1), &whole, writer, &out);
    read_all(input, step, &cut, NULL, NULL);
    assert(slice_equal(buffer_slice(&whole), buffer_slice(&cut)));
    output_to_buffer(&out, &written);
    output_clear(&out);
    read_all(buffer_slice(&written), MAX(written.size, 1), &again, NULL, NULL);
    assert(slice_starts_with(buffer_slice(&whole), buffer_slice(&again)));
    buffer_fini(&whole);
    buffer_fini(&cut);
    buffer_fini(&written);
    buffer_fini(&again);
    frame_writer_destroy(&writer);
}

/* Numbers have one form only, so what is right is written as it came. */
static void check_hello(struct slice body)
{
    char error[NOTICE_ERROR_BYTES];
    struct notice_hello hello;
    struct buffer again = {0};

    if (!notice_read_hello(body, &hello, error)) {
        check_error(error);
        return;
    }
    notice_write_hello(&again, &hello);
    assert(slice_equal(buffer_slice(&again), body));
    (void)notice_choose_version(&hello);
    notice_hello_fini(&hello);
    buffer_fini(&again);
}

static void check_beat(struct slice body)
{
    char error[NOTICE_ERROR_BYTES];
    struct merge_beat beat;
    struct buffer again = {0};

    if (!notice_read_beat(body, &beat, error)) {
        check_error(error);
        return;
    }
    notice_write_beat(&again, &beat);
    assert(slice_equal(buffer_slice(&again), body));
    merge_beat_fini(&beat);
    buffer_fini(&again);
}

/* A row of bodies, each behind its size in two bytes: beats of one link. */
static void check_beats(struct slice input)
{
    struct beats reader = {0}, writer = {0};
    char error[NOTICE_ERROR_BYTES];
    bool is_right = true;

    while (is_right && input.size >= 2) {
        const size_t size = (uint8_t)input.data[0] | (size_t)(uint8_t)input.data[1] << 8;
        const struct slice body = slice_make(input.data + 2, MIN(size, input.size - 2));
        struct buffer again = {0};
        struct merge_beat beat;

        is_right = beats_read(&reader, body, &beat, error);
        input = slice_skip(input, 2 + body.size);
        if (!is_right) {
            check_error(error);
            break;
        }
        beats_write(&writer, &again, &beat);
        assert(slice_equal(buffer_slice(&again), body));
        merge_beat_fini(&beat);
        buffer_fini(&again);
    }
    beats_fini(&reader);
    beats_fini(&writer);
}

static void check_want(struct slice body)
{
    char error[NOTICE_ERROR_BYTES];
    struct merge_vector wanted;
    struct buffer again = {0};
    uint64_t clock;

    if (!notice_read_want(body, &clock, &wanted, error)) {
        check_error(error);
        return;
    }
    notice_write_want(&again, clock, &wanted);
    assert(slice_equal(buffer_slice(&again), body));
    merge_vector_fini(&wanted);
    buffer_fini(&again);
}

static void check_comparison(struct slice body, unsigned way)
{
    char error[COMPARISON_ERROR_BYTES];
    struct comparison_request request;
    struct comparison_answer answer;
    struct comparison_keys keys;
    struct buffer again = {0};
    uint64_t number;

    assert(way <= 2);
    if (way == 0 && comparison_read_request(body, &request, error)) {
        comparison_write_request(&again, &request);
        comparison_request_fini(&request);
    } else if (way == 1 && comparison_read_answer(body, DB_COUNT, &answer, error)) {
        comparison_write_answer(&again, &answer);
        comparison_answer_fini(&answer);
    } else if (way == 2 && comparison_read_repair(body, DB_COUNT, &number, &keys, error)) {
        comparison_write_repair(&again, number, &keys);
        ARRAY_FINI(&keys);
    } else {
        check_error(error);
        return;
    }
    assert(slice_equal(buffer_slice(&again), body));
    buffer_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    const uint8_t way = fuzz_take_byte(&input);

    if (way >= 253) {
        check_comparison(input, way - 253U);
        return 0;
    }
    if (way == 252) {
        check_beats(input);
        return 0;
    }
    switch (way % 4) {
    case 0:
        check_hello(input);
        break;
    case 1:
        check_beat(input);
        break;
    case 2:
        check_want(input);
        break;
    default:
        check_frames(input, 1 + way / 4);
    }
    return 0;
}
