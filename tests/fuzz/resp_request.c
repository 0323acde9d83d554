/* resp_parse over any input of a client. Properties:
 *  1. the meaning of a stream does not depend on the pieces in which it arrives, nor on whether large arguments are
 *     received into blobs (RESP_LARGE);
 *  2. a parsed command, written with resp_write_command and parsed again, is the same;
 *  3. an unfinished command holds memory in proportion to the bytes sent, whatever counts it announces.
 * A byte 0xfe in the input stands for 8 KiB of 'L', so that short inputs reach large arguments. */
#include "base/blob.h"
#include "fuzz.h"
#include "net/resp.h"

#include <stdlib.h>

enum { EXPANDED_BYTES = 8192, STREAM_BYTES_MOST = 1 << 20, ONE_BY_ONE_BYTES_MOST = 600, PARSER_BYTES = 1024 };

static const struct resp_limits known = {.bulk_max_bytes = 1 << 29, .authenticated = true};
static const struct resp_limits known_large = {.bulk_max_bytes = 1 << 29, .authenticated = true, .large = true};
static const struct resp_limits narrow = {.bulk_max_bytes = 100000, .authenticated = true, .large = true};
static const struct resp_limits stranger = {.bulk_max_bytes = 1 << 29};

struct reader {
    struct resp_parser parser;
    struct resp_scratch scratch;
    struct slice stream; /* all of it */
    size_t received;     /* bytes of the stream that have arrived */
    char *input;         /* the input that a connection would keep, in a block of exactly its size */
    size_t input_size;
    struct buffer meaning;
    bool ended;
    bool cut_by_line_limit; /* where a line is too long depends on the pieces, as documented */
};

static void reader_keep(struct reader *reader, struct slice first, struct slice second)
{
    char *fresh = malloc(first.size + second.size);

    assert(first.size + second.size == 0 || fresh != NULL);
    if (first.size != 0)
        memcpy(fresh, first.data, first.size);
    if (second.size != 0)
        memcpy(fresh + first.size, second.data, second.size);
    free(reader->input);
    reader->input = fresh;
    reader->input_size = first.size + second.size;
}

static void check_again(const struct resp_command *command)
{
    struct resp_scratch scratch = {0};
    struct resp_parser parser;
    struct resp_command again;
    struct buffer wire = {0};
    struct output output;

    output_init(&output, NULL);
    resp_write_command(&output, command->args, command->arg_count);
    output_to_buffer(&output, &wire);
    output_clear(&output);
    resp_parser_init(&parser, &known, &scratch);
    assert(resp_parse(&parser, wire.data, wire.size, &again) == RESP_COMMAND);
    assert(again.consumed == wire.size);
    assert(again.arg_count == command->arg_count);
    for (uint32_t i = 0; i < again.arg_count; i++)
        assert(slice_equal(again.args[i], command->args[i]));
    resp_command_fini(&again);
    resp_parser_fini(&parser);
    resp_scratch_fini(&scratch);
    buffer_fini(&wire);
}

/* What is plain stands there as we write it, but for what is behind the arguments. */
static void check_plain(const struct reader *reader, const struct resp_command *command)
{
    struct buffer wire = {0};
    struct output output;
    size_t at = 0;

    if (!command->is_plain)
        return;
    output_init(&output, NULL);
    resp_write_command(&output, command->args, command->arg_count);
    output_to_buffer(&output, &wire);
    output_clear(&output);
    assert(wire.size == command->consumed);
    for (uint32_t i = 0; i < command->arg_count; i++) {
        const size_t end = (size_t)(command->args[i].data - reader->input) + command->args[i].size;

        assert(memcmp(wire.data + at, reader->input + at, end - at) == 0);
        at = end + 2;
    }
    buffer_fini(&wire);
}

static void note_command(struct reader *reader, const struct resp_command *command)
{
    size_t sum = 0;

    check_plain(reader, command);
    assert(command->arg_count > 0);
    buffer_append_char(&reader->meaning, '[');
    for (uint32_t i = 0; i < command->arg_count; i++) {
        buffer_append_u64(&reader->meaning, command->args[i].size);
        buffer_append_char(&reader->meaning, ':');
        buffer_append_slice(&reader->meaning, command->args[i]);
        sum += command->args[i].size;
    }
    buffer_append_char(&reader->meaning, ']');
    assert(sum == command->size_bytes);
    for (uint32_t i = 0; i < command->blob_count; i++)
        assert(command->args[command->blobs[i].arg_index].data == command->blobs[i].blob->data);
    check_again(command);
}

/* All bytes of the argument are received elsewhere and leave the range. False: they will never come. */
static bool receive_large(struct reader *reader, const struct resp_command *command)
{
    size_t there = reader->input_size - command->large_offset, missing;
    struct blob *blob;

    assert(command->large_offset <= reader->input_size);
    assert(command->large_size > there && command->large_size >= RESP_LARGE_BYTES);
    missing = command->large_size - there;
    if (missing > reader->stream.size - reader->received)
        return false;
    blob = blob_create(command->large_size);
    if (there != 0)
        memcpy(blob->data, reader->input + command->large_offset, there);
    memcpy(blob->data + there, reader->stream.data + reader->received, missing);
    reader->received += missing;
    reader_keep(reader, slice_make(reader->input, command->large_offset), SLICE_EMPTY);
    resp_parser_large_done(&reader->parser, blob);
    blob_release(&blob);
    return true;
}

static void note_error(struct reader *reader, struct slice error)
{
    reader->ended = true;
    assert(slice_starts_with(error, SLICE("Protocol error: ")));
    assert(resp_parser_is_idle(&reader->parser));
    reader->cut_by_line_limit = slice_starts_with(error, SLICE("Protocol error: too big"));
    buffer_append_char(&reader->meaning, '!');
    buffer_append_slice(&reader->meaning, error);
}

/* Parses once. False: more is needed. */
static bool reader_step(struct reader *reader)
{
    struct resp_command command;

    if (reader->input_size == 0)
        return false;
    switch (resp_parse(&reader->parser, reader->input, reader->input_size, &command)) {
    case RESP_LARGE:
        return receive_large(reader, &command);
    case RESP_MORE:
        return false;
    case RESP_ERROR:
        note_error(reader, command.error);
        return false;
    case RESP_EMPTY:
        buffer_append_char(&reader->meaning, 'e');
        break;
    case RESP_COMMAND:
        note_command(reader, &command);
        resp_command_fini(&command);
        break;
    }
    assert(command.consumed > 0 && command.consumed <= reader->input_size);
    assert(resp_parser_is_idle(&reader->parser));
    reader_keep(reader, slice_skip(slice_make(reader->input, reader->input_size), command.consumed), SLICE_EMPTY);
    resp_scratch_reset(&reader->scratch);
    return true;
}

/* Reads the stream in pieces of up to `piece_most` bytes (0: at once). The caller releases reader->meaning. */
static void read_stream(struct reader *reader, struct slice stream, const struct resp_limits *limits,
                        struct random *random, size_t piece_most)
{
    *reader = (struct reader){.stream = stream};
    resp_parser_init(&reader->parser, limits, &reader->scratch);
    while (!reader->ended && reader->received < stream.size) {
        size_t left = stream.size - reader->received;
        size_t wanted = piece_most == 0 ? left : 1 + (size_t)random_below(random, piece_most);
        size_t piece = MIN(left, wanted);

        reader_keep(reader, slice_make(reader->input, reader->input_size),
                    slice_make(stream.data + reader->received, piece));
        reader->received += piece;
        while (reader_step(reader))
            continue;
        assert(resp_parser_table_bytes(&reader->parser) + resp_parser_large_bytes(&reader->parser) <=
               PARSER_BYTES + 8 * reader->received);
    }
    if (!reader->ended && reader->input_size != 0)
        buffer_append_text(&reader->meaning, "...");
    resp_parser_fini(&reader->parser);
    resp_scratch_fini(&reader->scratch);
    free(reader->input);
}

static void compare(struct slice stream, const struct resp_limits *limits, const struct resp_limits *other_limits,
                    struct random *random, size_t piece_most)
{
    struct reader whole, pieces;

    read_stream(&whole, stream, limits, random, 0);
    read_stream(&pieces, stream, other_limits, random, piece_most);
    if (!whole.cut_by_line_limit && !pieces.cut_by_line_limit)
        assert(slice_equal(buffer_slice(&whole.meaning), buffer_slice(&pieces.meaning)));
    buffer_fini(&whole.meaning);
    buffer_fini(&pieces.meaning);
}

static void expand(struct slice input, struct buffer *stream)
{
    for (size_t i = 0; i < input.size; i++) {
        if (input.data[i] != (char)0xfe) {
            buffer_append_char(stream, input.data[i]);
        } else if (stream->size < STREAM_BYTES_MOST) {
            memset(buffer_reserve(stream, EXPANDED_BYTES), 'L', EXPANDED_BYTES);
            stream->size += EXPANDED_BYTES;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    uint8_t way = fuzz_take_byte(&input);
    struct buffer stream = {0};
    struct random random;

    random_seed(&random, fuzz_take_byte(&input));
    expand(input, &stream);
    switch (way % 4) {
    case 0:
        compare(buffer_slice(&stream), &known, &known, &random, 1 + stream.size / 3);
        break;
    case 1:
        compare(buffer_slice(&stream), &known, &known_large, &random, 20000);
        break;
    case 2:
        compare(buffer_slice(&stream), &narrow, &narrow, &random, 5000);
        break;
    default:
        compare(buffer_slice(&stream), &stranger, &stranger, &random, 16 + stream.size / 3);
    }
    if (stream.size <= ONE_BY_ONE_BYTES_MOST)
        compare(buffer_slice(&stream), way % 4 == 3 ? &stranger : &known, way % 4 == 3 ? &stranger : &known_large,
                &random, 1);
    buffer_fini(&stream);
    return 0;
}
