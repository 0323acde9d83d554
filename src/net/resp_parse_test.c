#include "net/resp.h"

#include "base/blob.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* The meaning of a stream of bytes as text: "[SET|key|value]" a command, "e" an empty request, "!text" an error (then
 * it ends), "..." at the end for an unfinished request. It does not depend on the pieces in which the bytes arrive. */

static const struct resp_limits known = {.bulk_max_bytes = 512 << 20, .authenticated = true};
static const struct resp_limits known_large = {.bulk_max_bytes = 512 << 20, .authenticated = true, .large = true};
static const struct resp_limits stranger = {.bulk_max_bytes = 512 << 20, .authenticated = false};

struct reader {
    struct resp_parser parser;
    struct resp_scratch scratch;
    struct buffer input; /* the input that the connection would keep */
    struct buffer meaning;
    bool failed;
    unsigned large_count;
};

static void reader_init(struct reader *reader, const struct resp_limits *limits)
{
    *reader = (struct reader){0};
    resp_parser_init(&reader->parser, limits, &reader->scratch);
}

static void reader_fini(struct reader *reader)
{
    resp_parser_fini(&reader->parser);
    resp_scratch_fini(&reader->scratch);
    buffer_fini(&reader->input);
    buffer_fini(&reader->meaning);
}

static void note_command(struct reader *reader, const struct resp_command *command)
{
    size_t sum = 0;

    buffer_append_char(&reader->meaning, '[');
    for (uint32_t i = 0; i < command->arg_count; i++) {
        if (i > 0)
            buffer_append_char(&reader->meaning, '|');
        buffer_append_slice(&reader->meaning, command->args[i]);
        sum += command->args[i].size;
    }
    buffer_append_char(&reader->meaning, ']');
    assert_int_equal(sum, command->size_bytes);
}

/* The large bulk's bytes leave the range; the rest of it comes from `rest`. Returns how much of it was taken. */
static size_t receive_large(struct reader *reader, const struct resp_command *command, struct slice rest)
{
    struct blob *blob = blob_create(command->large_size);
    size_t there = reader->input.size - command->large_offset;
    size_t missing = command->large_size - there;

    assert_true(there < command->large_size);
    memcpy(blob->data, reader->input.data + command->large_offset, there);
    reader->large_count++;
    if (rest.size < missing) { /* not to be had in this test: go on as before */
        blob_release(&blob);
        return SIZE_MAX;
    }
    memcpy(blob->data + there, rest.data, missing);
    buffer_truncate(&reader->input, command->large_offset);
    resp_parser_large_done(&reader->parser, blob);
    blob_release(&blob);
    return missing;
}

/* The next bytes of the stream arrive; `rest` is what will come later. Returns how much of `rest` was taken early. */
static size_t reader_feed(struct reader *reader, struct slice bytes, struct slice rest)
{
    struct buffer moved = {0};
    size_t early = 0;

    /* At another address each time: progress must not depend on it. */
    buffer_append(&moved, reader->input.data, reader->input.size);
    buffer_append_slice(&moved, bytes);
    buffer_fini(&reader->input);
    reader->input = moved;
    while (!reader->failed && reader->input.size > 0) {
        struct resp_command command;
        enum resp_result result = resp_parse(&reader->parser, reader->input.data, reader->input.size, &command);

        if (result == RESP_LARGE) {
            size_t taken = receive_large(reader, &command, slice_skip(rest, early));

            if (taken == SIZE_MAX)
                break;
            early += taken;
            continue;
        }
        if (result == RESP_MORE)
            break;
        if (result == RESP_ERROR) {
            reader->failed = true;
            buffer_append_char(&reader->meaning, '!');
            buffer_append_slice(&reader->meaning, command.error);
            break;
        }
        if (result == RESP_EMPTY)
            buffer_append_char(&reader->meaning, 'e');
        else
            note_command(reader, &command);
        assert_true(command.consumed > 0 && command.consumed <= reader->input.size);
        assert_true(resp_parser_is_idle(&reader->parser));
        buffer_consume(&reader->input, command.consumed);
        if (result == RESP_COMMAND)
            resp_command_fini(&command);
        resp_scratch_reset(&reader->scratch);
    }
    return early;
}

static void reader_end(struct reader *reader)
{
    if (!reader->failed && reader->input.size > 0)
        buffer_append_text(&reader->meaning, "...");
}

/* The meaning of the stream when it comes in pieces of `piece` bytes. */
static void read_in_pieces(struct buffer *meaning, struct slice stream, size_t piece, const struct resp_limits *limits)
{
    struct reader reader;

    reader_init(&reader, limits);
    for (size_t at = 0; at < stream.size;) {
        size_t part = MIN(piece, stream.size - at);

        at += part + reader_feed(&reader, slice_make(stream.data + at, part), slice_skip(stream, at + part));
    }
    reader_end(&reader);
    buffer_clear(meaning);
    buffer_append_slice(meaning, buffer_slice(&reader.meaning));
    reader_fini(&reader);
}

static void expect_meaning(struct slice stream, const char *wanted, const struct resp_limits *limits)
{
    static const size_t pieces[] = {SIZE_MAX, 1, 2, 3, 7, 64};
    struct buffer meaning = {0};

    for (size_t i = 0; i < countof(pieces); i++) {
        if (stream.size > 2000 && pieces[i] < 64)
            continue;
        read_in_pieces(&meaning, stream, pieces[i], limits);
        assert_string_equal(buffer_text(&meaning), wanted);
    }
    buffer_fini(&meaning);
}

struct example {
    const char *stream;
    const char *meaning;
};

/* As observed with Redis 7.0. */
static const struct example examples[] = {
    {"*1\r\n$4\r\nPING\r\n", "[PING]"},
    {"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n", "[GET|a][PING]"},
    {"*1\r\n$0\r\n\r\n", "[]"},
    {"*3\r\n$3\r\nSET\r\n$10\r\n0123456789\r\n$0\r\n\r\n", "[SET|0123456789|]"},
    {"*2\r\n$3\r\nGET\r\n$1\r\na\r", "..."},
    {"*2\r\n$3\r\nGET\r\n$1", "..."},
    {"*0\r\nPING\r\n", "e[PING]"},
    {"*-1\r\nPING\r\n", "e[PING]"},
    {"*-5\r\nPING\r\n", "e[PING]"},
    {"*+1\r\n", "!Protocol error: invalid multibulk length"},
    {"*01\r\n", "!Protocol error: invalid multibulk length"},
    {"*-0\r\n", "!Protocol error: invalid multibulk length"},
    {"*\r\n", "!Protocol error: invalid multibulk length"},
    {"*abc\r\n", "!Protocol error: invalid multibulk length"},
    {"*1\n$4\r\nPING\r\n", "!Protocol error: invalid multibulk length"},
    {"*2147483647\r\n$4\r\n", "..."},
    {"*2147483648\r\n", "!Protocol error: invalid multibulk length"},
    {"*1\rX$4\r\nPING\r\n", "[PING]"},
    {"*1\r\n$4\rXPINGab", "[PING]"},
    {"*1\r\n$4\nPING\r\n", "!Protocol error: invalid bulk length"},
    {"*1\r\n$-1\r\n", "!Protocol error: invalid bulk length"},
    {"*1\r\n$04\r\n", "!Protocol error: invalid bulk length"},
    {"*1\r\n$+4\r\n", "!Protocol error: invalid bulk length"},
    {"*1\r\n$4 \r\n", "!Protocol error: invalid bulk length"},
    {"*1\r\n$\r\n", "!Protocol error: invalid bulk length"},
    {"*1\r\n$99999999999999999999\r\n", "!Protocol error: invalid bulk length"},
    {"*1\r\n$536870912\r\n", "..."},
    {"*1\r\n$536870913\r\n", "!Protocol error: invalid bulk length"},
    {"*1\r\n:4\r\n", "!Protocol error: expected '$', got ':'"},
    {"*1\r\n\r\n", "!Protocol error: expected '$', got '\r'"},
    {"*1\r\nPING", "..."},
    {"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$-5\r\n", "!Protocol error: invalid bulk length"},
    {"PING\r\n", "[PING]"},
    {"PING\n", "[PING]"},
    {"\r\n", "e"},
    {"\n\nPING\n", "ee[PING]"},
    {" \r\nPING\r\n", "e[PING]"},
    {"   PING   \r\n", "[PING]"},
    {"PING\ta\r\n", "[PING|a]"},
    {"PING a\rb\r\n", "[PING|a|b]"},
    {"PING \"a b\"\r\n", "[PING|a b]"},
    {"PING 'a b'\r\n", "[PING|a b]"},
    {"PING 'a\\'b\\n'\r\n", "[PING|a'b\\n]"},
    {"PING \"\\x41\\n\\r\\t\\b\\a\\\"\\\\\\q\"\r\n", "[PING|A\n\r\t\b\a\"\\q]"},
    {"PING \"\\x4\"\r\n", "[PING|x4]"},
    {"PING \"\\xZZ\"\r\n", "[PING|xZZ]"},
    {"PING \"\"\r\n", "[PING|]"},
    {"PING a\"b\"\r\n", "[PING|ab]"},
    {"PING a'b c'\r\n", "[PING|ab c]"},
    {"PING \"a\"b\r\n", "!Protocol error: unbalanced quotes in request"},
    {"PING \"a\r\n", "!Protocol error: unbalanced quotes in request"},
    {"PING 'a\r\n", "!Protocol error: unbalanced quotes in request"},
    {"PING a b\"\r\n", "!Protocol error: unbalanced quotes in request"},
    {"PIN", "..."},
};

static void means_what_redis_means(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(examples); i++)
        expect_meaning(slice_from_text(examples[i].stream), examples[i].meaning, &known);
}

static void strangers_are_limited(void **state)
{
    (void)state;
    expect_meaning(SLICE("*10\r\n"), "...", &stranger);
    expect_meaning(SLICE("*11\r\n"), "!Protocol error: unauthenticated multibulk length", &stranger);
    expect_meaning(SLICE("*1\r\n$16384\r\n"), "...", &stranger);
    expect_meaning(SLICE("*1\r\n$16385\r\n"), "!Protocol error: unauthenticated bulk length", &stranger);
    expect_meaning(SLICE("*1\r\n$999999999999\r\n"), "!Protocol error: invalid bulk length", &stranger);
    expect_meaning(SLICE("*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n"), "[AUTH|x]", &stranger);
}

static void append_many(struct buffer *stream, char c, size_t count)
{
    memset(buffer_reserve(stream, count), c, count);
    stream->size += count;
}

static void lines_have_limits(void **state)
{
    static const struct {
        const char *head;
        const char *error;
    } kinds[] = {{"", "!Protocol error: too big inline request"},
                 {"*", "!Protocol error: too big mbulk count string"},
                 {"*1\r\n$", "!Protocol error: too big bulk count string"}};

    (void)state;
    for (size_t i = 0; i < countof(kinds); i++) {
        struct buffer stream = {0};
        size_t before = i == 2 ? 4 : 0;

        buffer_append_text(&stream, kinds[i].head);
        append_many(&stream, '1', RESP_INLINE_MAX_BYTES + before - stream.size);
        expect_meaning(buffer_slice(&stream), "...", &known);
        append_many(&stream, '1', 1);
        expect_meaning(buffer_slice(&stream), kinds[i].error, &known);
        buffer_fini(&stream);
    }
}

static void many_arguments(void **state)
{
    static const unsigned counts[] = {1023, 1024, 1025, 5000};

    (void)state;
    for (size_t i = 0; i < countof(counts); i++) {
        struct buffer stream = {0};
        struct buffer wanted = {0};

        buffer_printf(&stream, "*%u\r\n", counts[i]);
        for (unsigned n = 0; n < counts[i]; n++) {
            char text[16];
            int size = snprintf(text, sizeof(text), "%u", n);

            buffer_printf(&stream, "$%d\r\n%s\r\n", size, text);
            buffer_printf(&wanted, "%s%s", n == 0 ? "[" : "|", text);
        }
        buffer_append_text(&wanted, "]");
        expect_meaning(buffer_slice(&stream), buffer_text(&wanted), &known);
        buffer_fini(&stream);
        buffer_fini(&wanted);
    }
}

/* A batch keeps its arguments until the scratch is reset, however many chunks it takes. */
static void batches_keep_their_arguments(void **state)
{
    struct resp_scratch scratch = {0};
    struct resp_parser parser;
    struct buffer stream = {0};
    struct resp_command commands[3000];
    size_t at = 0;

    (void)state;
    resp_parser_init(&parser, &known, &scratch);
    for (size_t i = 0; i < countof(commands); i++)
        buffer_printf(&stream, "*2\r\n$4\r\nECHO\r\n$4\r\n%04zu\r\n", i);
    for (size_t i = 0; i < countof(commands); i++) {
        assert_int_equal(resp_parse(&parser, stream.data + at, stream.size - at, &commands[i]), RESP_COMMAND);
        at += commands[i].consumed;
    }
    assert_int_equal(at, stream.size);
    for (size_t i = 0; i < countof(commands); i++) {
        char text[16];

        snprintf(text, sizeof(text), "%04zu", i);
        assert_int_equal(commands[i].arg_count, 2);
        assert_true(slice_equal_text(commands[i].args[0], "ECHO"));
        assert_true(slice_equal_text(commands[i].args[1], text));
    }
    resp_scratch_reset(&scratch);
    resp_scratch_fini(&scratch);
    buffer_fini(&stream);
}

static void append_bulk(struct buffer *stream, struct buffer *wanted, size_t size, char c, const char *before)
{
    buffer_printf(stream, "$%zu\r\n", size);
    buffer_append_text(wanted, before);
    append_many(stream, c, size);
    append_many(wanted, c, size);
    buffer_append_text(stream, "\r\n");
}

static void large_bulks_in_blobs(void **state)
{
    static const size_t sizes[] = {RESP_LARGE_BYTES - 1, RESP_LARGE_BYTES, RESP_LARGE_BYTES + 1, 300000};

    (void)state;
    for (size_t i = 0; i < countof(sizes); i++) {
        struct buffer stream = {0};
        struct buffer wanted = {0};

        buffer_append_text(&stream, "*5\r\n");
        buffer_append_text(&wanted, "[");
        append_bulk(&stream, &wanted, 3, 'x', "");
        append_bulk(&stream, &wanted, sizes[i], 'a', "|");
        append_bulk(&stream, &wanted, 2, 'y', "|");
        append_bulk(&stream, &wanted, sizes[i], 'b', "|");
        append_bulk(&stream, &wanted, 0, 'y', "|");
        buffer_append_text(&stream, "PING\r\n");
        buffer_append_text(&wanted, "][PING]");
        expect_meaning(buffer_slice(&stream), buffer_text(&wanted), &known_large);
        expect_meaning(buffer_slice(&stream), buffer_text(&wanted), &known);
        buffer_fini(&stream);
        buffer_fini(&wanted);
    }
}

static void large_is_said_at_the_limit(void **state)
{
    struct resp_scratch scratch = {0};
    struct resp_parser parser;
    struct resp_command command;
    char below[] = "*2\r\n$3\r\nSET\r\n$32767\r\nabc";
    char at[] = "*2\r\n$3\r\nSET\r\n$32768\r\nabc";

    (void)state;
    resp_parser_init(&parser, &known_large, &scratch);
    assert_int_equal(resp_parse(&parser, below, sizeof(below) - 1, &command), RESP_MORE);
    resp_parser_fini(&parser);
    assert_int_equal(resp_parse(&parser, at, sizeof(at) - 1, &command), RESP_LARGE);
    assert_int_equal(command.large_index, 1);
    assert_int_equal(command.large_size, 32768);
    assert_int_equal(command.large_offset, sizeof(at) - 1 - 3);
    assert_int_equal(resp_parser_read_size(&parser), sizeof(at) - 1 - 3);
    assert_false(resp_parser_is_idle(&parser));
    resp_parser_fini(&parser);
    assert_true(resp_parser_is_idle(&parser));
    assert_int_equal(resp_parser_table_bytes(&parser) + resp_parser_large_bytes(&parser), 0);
    assert_int_equal(resp_parser_read_size(&parser), 0);
    resp_scratch_fini(&scratch);
}

static void a_command_lacks_what_was_thrown_away(void **state)
{
    static const struct slice thrown = SLICE("*3\r\n$3\r\nSET\r\n$40000\r\n");
    struct resp_scratch scratch = {0};
    struct resp_parser parser;
    struct resp_command command;
    struct buffer input = {0};

    (void)state;
    buffer_append_slice(&input, thrown);
    resp_parser_init(&parser, &known_large, &scratch);
    assert_int_equal(resp_parse(&parser, input.data, input.size, &command), RESP_LARGE);
    resp_parser_large_done(&parser, NULL);
    buffer_append_slice(&input, SLICE("\r\n$1\r\nv\r\n*1\r\n$4\r\nPING\r\n"));
    assert_int_equal(resp_parse(&parser, input.data, input.size, &command), RESP_COMMAND);
    assert_true(resp_command_lacks(&command));
    assert_int_equal(command.arg_count, 3);
    assert_int_equal(command.args[1].size, 0);
    assert_true(slice_equal_text(command.args[2], "v"));
    assert_null(resp_command_take_blob(&command, 1));
    buffer_consume(&input, command.consumed);
    resp_command_fini(&command);
    resp_scratch_reset(&scratch);
    assert_int_equal(resp_parse(&parser, input.data, input.size, &command), RESP_COMMAND);
    assert_false(resp_command_lacks(&command));
    assert_true(slice_equal_text(command.args[0], "PING"));
    resp_command_fini(&command);
    resp_parser_fini(&parser);
    resp_scratch_fini(&scratch);
    buffer_fini(&input);
}

/* As many arguments as the table's pieces hold, one less, one more. */
static void tables_of_all_sizes(void **state)
{
    static const uint32_t counts[] = {1, 8, 9, 4094, 4095, 4096, 8190, 8191, 20000};
    struct resp_scratch scratch = {0};
    struct resp_parser parser;
    struct resp_command command;

    (void)state;
    resp_parser_init(&parser, &known_large, &scratch);
    for (size_t i = 0; i < countof(counts); i++) {
        struct buffer input = {0};

        buffer_printf(&input, "*%u\r\n", counts[i]);
        for (uint32_t k = 0; k < counts[i]; k++)
            buffer_printf(&input, "$5\r\n%05u\r\n", k);
        assert_int_equal(resp_parse(&parser, input.data, input.size - 1, &command), RESP_MORE);
        assert_true(resp_parser_table_bytes(&parser) >= (counts[i] - 1) * 2 * sizeof(size_t));
        assert_true(resp_parser_table_bytes(&parser) <= counts[i] * 4 * sizeof(size_t) + 70000);
        assert_int_equal(resp_parse(&parser, input.data, input.size, &command), RESP_COMMAND);
        assert_int_equal(command.arg_count, counts[i]);
        for (uint32_t k = 0; k < counts[i]; k++) {
            char wanted[16];

            snprintf(wanted, sizeof(wanted), "%05u", k);
            assert_true(slice_equal_text(command.args[k], wanted));
        }
        resp_command_fini(&command);
        resp_scratch_reset(&scratch);
        buffer_fini(&input);
    }
    resp_parser_fini(&parser);
    resp_scratch_fini(&scratch);
}

static void blobs_can_be_taken(void **state)
{
    struct resp_scratch scratch = {0};
    struct resp_parser parser;
    struct resp_command command;
    struct blob *blob = blob_create(40000);
    struct blob *taken = NULL;
    char head[] = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$40000\r\n\r\n";

    (void)state;
    memset(blob->data, 'v', blob->size);
    resp_parser_init(&parser, &known_large, &scratch);
    assert_int_equal(resp_parse(&parser, head, sizeof(head) - 3, &command), RESP_LARGE);
    resp_parser_large_done(&parser, blob);
    assert_int_equal(resp_parse(&parser, head, sizeof(head) - 2, &command), RESP_MORE);
    assert_int_equal(resp_parse(&parser, head, sizeof(head) - 1, &command), RESP_COMMAND);
    assert_int_equal(command.consumed, sizeof(head) - 1);
    assert_ptr_equal(command.args[2].data, blob->data);
    assert_int_equal(command.args[2].size, 40000);
    assert_null(resp_command_take_blob(&command, 1));
    taken = resp_command_take_blob(&command, 2);
    assert_ptr_equal(taken, blob);
    assert_null(resp_command_take_blob(&command, 2));
    resp_command_fini(&command);
    assert_false(blob_is_exclusive(blob));
    blob_release(&taken);
    assert_true(blob_is_exclusive(blob));
    blob_release(&blob);
    resp_scratch_fini(&scratch);
}

/* Random requests, damaged in places, cut into random pieces: always the meaning that the whole range at once has. */
static void append_random_request(struct random *random, struct buffer *stream)
{
    static const char *const lines[] = {"PING\r\n", "GET \"a b\"\r\n", "\r\n", "*0\r\n", "SET a 'b c' d\n"};
    uint64_t count = 1 + random_below(random, 5);

    if (random_below(random, 4) == 0) {
        buffer_append_text(stream, lines[random_below(random, countof(lines))]);
        return;
    }
    buffer_printf(stream, "*%u\r\n", (unsigned)count);
    for (uint64_t i = 0; i < count; i++) {
        static const size_t limits[] = {5, 20, 200, 2000};
        size_t size = random_below(random, limits[random_below(random, countof(limits))]);

        buffer_printf(stream, "$%zu\r\n", size);
        append_many(stream, (char)('a' + random_below(random, 26)), size);
        buffer_append_text(stream, "\r\n");
    }
}

static void pieces_do_not_matter(void **state)
{
    struct random random;
    struct buffer whole = {0};
    uint64_t seed = 4711;

    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    random_seed(&random, seed);
    for (int round = 0; round < 3000; round++) {
        struct buffer stream = {0};
        struct reader reader;

        for (uint64_t n = 1 + random_below(&random, 6); n > 0; n--)
            append_random_request(&random, &stream);
        for (uint64_t n = random_below(&random, 3); n > 0; n--)
            stream.data[random_below(&random, stream.size)] = "*$\r\n0129- \"'x"[random_below(&random, 13)];
        read_in_pieces(&whole, buffer_slice(&stream), SIZE_MAX, &known);
        reader_init(&reader, &known);
        for (size_t at = 0; at < stream.size;) {
            size_t part = 1 + random_below(&random, 40);

            part = MIN(part, stream.size - at);
            reader_feed(&reader, slice_make(stream.data + at, part), SLICE_EMPTY);
            at += part;
        }
        reader_end(&reader);
        assert_int_equal(reader.meaning.size, whole.size);
        if (whole.size != 0)
            assert_memory_equal(reader.meaning.data, whole.data, whole.size);
        reader_fini(&reader);
        buffer_fini(&stream);
    }
    buffer_fini(&whole);
}

/* But for the two bytes behind an argument, which may be any. */
static void plain_is_what_we_would_write(void **state)
{
    static const struct {
        const char *stream;
        bool is_plain;
    } requests[] = {
        {"*1\r\n$4\r\nPING\r\n", true},       {"*2\r\n$3\r\nGET\r\n$10\r\n0123456789\r\n", true},
        {"*1\r\n$0\r\n\r\n", true},           {"*1\r\n$4\r\nPINGab", true},
        {"*1\r.$4\r\nPING\r\n", false},       {"*1\r\n$4\r.PING\r\n", false},
        {"*01\r\n$4\r\nPING\r\n", false},     {"*1\r\n$04\r\nPING\r\n", false},
        {"*1\r\n$010\r.0123456789..", false}, {"*1\r\n$10\r.0123456789\r\n", false},
        {"*1\r\n$+4\r\nPING\r\n", false},     {"PING\r\n", false},
    };

    (void)state;
    for (size_t i = 0; i < countof(requests); i++) {
        struct resp_scratch scratch = {0};
        struct resp_command command = {.is_plain = true}; /* of the request before */
        struct resp_parser parser;
        struct buffer input = {0};
        enum resp_result result;

        buffer_append_text(&input, requests[i].stream);
        resp_parser_init(&parser, &known, &scratch);
        result = resp_parse(&parser, input.data, input.size, &command);
        assert_true(result == RESP_COMMAND || (result == RESP_ERROR && !requests[i].is_plain));
        assert_int_equal(result == RESP_COMMAND && command.is_plain, requests[i].is_plain);
        resp_parser_fini(&parser);
        resp_scratch_fini(&scratch);
        buffer_fini(&input);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_what_redis_means),
        cmocka_unit_test(strangers_are_limited),
        cmocka_unit_test(lines_have_limits),
        cmocka_unit_test(many_arguments),
        cmocka_unit_test(batches_keep_their_arguments),
        cmocka_unit_test(large_bulks_in_blobs),
        cmocka_unit_test(large_is_said_at_the_limit),
        cmocka_unit_test(tables_of_all_sizes),
        cmocka_unit_test(blobs_can_be_taken),
        cmocka_unit_test(a_command_lacks_what_was_thrown_away),
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(plain_is_what_we_would_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
