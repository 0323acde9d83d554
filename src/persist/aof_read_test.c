#include "persist/aof_read.h"
#include "base/test_seed.h"

#include "base/buffer.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Gives a few bytes at a time, from memory that ends where the bytes do. */
struct slow_source {
    struct byte_source source;
    struct slice left;
    size_t most;
};

static must_check enum status read_slowly(struct byte_source *source, void *data, size_t size, size_t *got)
{
    struct slow_source *slow = (struct slow_source *)source;

    *got = MIN(MIN(size, slow->most), slow->left.size);
    memcpy(data, slow->left.data, *got);
    slow->left = slice_skip(slow->left, *got);
    return STATUS_OK;
}

static void show(struct aof_reader *reader, const struct aof_command *command, struct buffer *out)
{
    for (uint32_t i = 0; i < command->count; i++) {
        buffer_append_slice(out, reader->words.items[command->first + i]);
        buffer_append_char(out, i + 1 < command->count ? ' ' : ';');
    }
}

/* Reads everything to text: commands, each followed by ;, notes with ;, then how it ended. */
static void read_all(struct slice bytes, size_t most, struct buffer *out)
{
    char *exact = mem_copy(bytes.data, bytes.size);
    struct slow_source slow = {{read_slowly, bytes.size}, slice_make(exact, bytes.size), most};
    struct aof_reader reader;
    struct aof_command command;
    enum aof_piece piece;

    aof_reader_init(&reader, &slow.source, 1000);
    for (;;) {
        piece = aof_reader_piece(&reader, &command);
        if (piece == AOF_COMMAND) {
            show(&reader, &command, out);
        } else if (piece == AOF_NOTE) {
            buffer_append_slice(out, reader.note);
            buffer_append_char(out, ';');
        } else if (piece == AOF_BAD || !aof_reader_fill(&reader, NULL)) {
            break;
        }
    }
    if (piece == AOF_BAD)
        buffer_printf(out, "BAD %llu %s", (unsigned long long)aof_reader_offset(&reader), reader.error);
    else if (aof_reader_is_done(&reader))
        buffer_append_text(out, "END");
    else
        buffer_printf(out, "CUT %llu%s", (unsigned long long)aof_reader_offset(&reader),
                      aof_reader_hides_commands(&reader) ? " HIDES" : "");
    aof_reader_fini(&reader);
    mem_free(exact);
}

static void check(struct slice bytes, const char *expected)
{
    struct buffer out = {0};

    for (size_t most = 1; most <= bytes.size + 1; most++) {
        buffer_clear(&out);
        read_all(bytes, most, &out);
        assert_string_equal(buffer_text(&out), expected);
    }
    buffer_fini(&out);
}

static void what_is_read(void **state)
{
    (void)state;
    check(SLICE(""), "END");
    check(SLICE("*1\r\n$4\r\nPING\r\n"), "PING;END");
    check(SLICE("*2\r\n$1\r\na\r\n$0\r\n\r\n*1\r\n$2\r\n\r\n\r\n"), "a ;\r\n;END");
    check(SLICE("#TS:12\r\n*1\r\n$1\r\na\r\n# x\n#\n"), "#TS:12;a;# x;#;END");
    check(SLICE("*01\r\n$01\r\na\r\n"), "a;END");
}

static void what_ends_early(void **state)
{
    static const char whole[] = "*2\r\n$1\r\na\r\n$10\r\n0123456789\r\n";
    struct buffer out = {0};

    (void)state;
    for (size_t size = 1; size < sizeof(whole) - 1; size++) {
        buffer_clear(&out);
        read_all(slice_make(whole, size), 7, &out);
        assert_string_equal(buffer_text(&out), "CUT 1000");
    }
    buffer_fini(&out);
    check(SLICE("*1\r\n$1\r\na\r\n#TS"), "a;CUT 1011");
    check(SLICE("*1\r\n$50\r\na\r\n*1\r\n$1\r\nb\r\n"), "CUT 1000 HIDES");
    check(SLICE("*1\r\n$50\r\na\r\n*1\r\n$1\r\nb\r"), "CUT 1000");
    check(SLICE("*9\r\n$1\r\na\r\n"), "CUT 1000");
}

static void what_is_damaged(void **state)
{
    (void)state;
    check(SLICE("x"), "BAD 1000 expected '*' at the beginning of a command");
    check(SLICE("*1\r\n$1\r\na\r\n\0\0"), "a;BAD 1011 expected '*' at the beginning of a command");
    check(SLICE("*0\r\n"), "BAD 1000 a command has no arguments");
    check(SLICE("*-1\r\n"), "BAD 1000 a length is not a number");
    check(SLICE("*\r\n"), "BAD 1000 a length is not a number");
    check(SLICE("*1\n"), "BAD 1000 a length is not a number");
    check(SLICE("*1\r\r"), "BAD 1000 a length is not a number");
    check(SLICE("*1\r\n:1\r\n"), "BAD 1000 expected '$' at the beginning of an argument");
    check(SLICE("*1\r\n$1\r\nabc"), "BAD 1000 an argument is longer than its length says");
    check(SLICE("*1\r\n$1\r\na\r\r"), "BAD 1000 an argument is longer than its length says");
    check(SLICE("*1000000000000000000\r\n"), "BAD 1000 a length is too large");
    check(SLICE("*1\r\n$9999999999999999999999\r\n"), "BAD 1000 a length is too large");
}

/* Longer than the window; and notes have a limit. */
static void what_is_long(void **state)
{
    struct buffer text = {0}, out = {0};

    (void)state;
    buffer_append_text(&text, "*2\r\n$1\r\na\r\n$3000000\r\n");
    memset(buffer_reserve(&text, 3000000), 'x', 3000000);
    text.size += 3000000;
    buffer_append_text(&text, "\r\n*1\r\n$1\r\nb\r\n");
    read_all(buffer_slice(&text), 100000, &out);
    assert_int_equal(out.size, 2 + 3000000 + 1 + 2 + 3);
    assert_memory_equal(out.data + out.size - 6, ";b;END", 6);
    for (unsigned size = 1023; size <= 1024; size++) {
        buffer_clear(&text);
        buffer_clear(&out);
        for (unsigned i = 0; i < size; i++)
            buffer_append_char(&text, '#');
        buffer_append_char(&text, '\n');
        read_all(buffer_slice(&text), 100, &out);
        assert_true((strstr(buffer_text(&out), "END") != NULL) == (size == 1023));
        assert_true((strstr(buffer_text(&out), "a note is too long") != NULL) == (size == 1024));
    }
    buffer_fini(&text);
    buffer_fini(&out);
}

/* Bytes before `keep` go, bytes behind it stay, and words are returned again. */
static void going_back(void **state)
{
    static const char text[] = "*1\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n*1\r\n$1\r\nc\r\n";
    struct slow_source slow = {{read_slowly, sizeof(text) - 1}, {text, sizeof(text) - 1}, 5};
    struct aof_reader reader;
    struct aof_command command;
    struct buffer out = {0};
    size_t keep = 0;

    (void)state;
    aof_reader_init(&reader, &slow.source, 0);
    while (aof_reader_piece(&reader, &command) == AOF_MORE)
        assert_true(aof_reader_fill(&reader, NULL));
    keep = reader.at;
    for (unsigned i = 0; i < 2; i++) {
        while (aof_reader_piece(&reader, &command) == AOF_MORE)
            assert_true(aof_reader_fill(&reader, &keep));
    }
    assert_int_equal(aof_reader_offset(&reader), sizeof(text) - 1);
    reader.at = keep;
    aof_reader_forget(&reader);
    assert_int_equal(aof_reader_offset(&reader), 11);
    while (aof_reader_piece(&reader, &command) == AOF_COMMAND)
        show(&reader, &command, &out);
    assert_string_equal(buffer_text(&out), "b;c;");
    buffer_fini(&out);
    aof_reader_fini(&reader);
}

static void times(void **state)
{
    int64_t seconds = 7;

    (void)state;
    assert_true(aof_note_time(SLICE("#TS:1700000000"), &seconds));
    assert_int_equal(seconds, 1700000000);
    assert_false(aof_note_time(SLICE("#TS:"), &seconds));
    assert_false(aof_note_time(SLICE("#TS:-1"), &seconds));
    assert_false(aof_note_time(SLICE("#TS:1x"), &seconds));
    assert_false(aof_note_time(SLICE("#"), &seconds));
}

static void damaged(void **state)
{
    static const char whole[] = "#TS:1\r\n*2\r\n$3\r\nDEL\r\n$1\r\na\r\n"
                                "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$12\r\n0123456789ab\r\n";
    struct random random = test_random("damaged");
    char text[sizeof(whole)];
    struct buffer once = {0}, again = {0};

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        size_t size = sizeof(whole) - 1 - (round % 3 == 0 ? (size_t)random_below(&random, sizeof(whole) - 1) : 0);

        memcpy(text, whole, sizeof(whole));
        for (unsigned i = 0; i < round % 3; i++)
            text[random_below(&random, sizeof(whole) - 1)] = (char)random_below(&random, 256);
        buffer_clear(&once);
        buffer_clear(&again);
        read_all(slice_make(text, size), size + 1, &once);
        read_all(slice_make(text, size), 1 + (size_t)random_below(&random, 9), &again);
        assert_string_equal(buffer_text(&once), buffer_text(&again)); /* however the bytes come */
    }
    buffer_fini(&once);
    buffer_fini(&again);
}

static void notes_say_where_entries_end(void **state)
{
#define ORIGIN "00000000000012ab"
#define STAMP "0068000000000000"
    static const char *const wrong[] = {
        "#order",
        "#order ",
        "#order " ORIGIN " " STAMP,
        "#order " ORIGIN " " STAMP " 1 0",
        "#order " ORIGIN " " STAMP " 1 0 1 ",
        "#order " ORIGIN " " STAMP " 1 0 1 1",
        "#order " ORIGIN " " STAMP " 1 0 1 0000000000000001",
        "#order " ORIGIN " " STAMP " 1 0 2 0067ffffffffffff",
        "#order " ORIGIN " " STAMP " 1 0 1 0067ffffffffffff ",
        "#order " ORIGIN " " STAMP " 1 0 x",
        "#order " ORIGIN " " STAMP " 1 x 1",
        "#order " ORIGIN " " STAMP " x 0 1",
        "#order " ORIGIN " " STAMP " 0 0 1",
        "#order " ORIGIN " " STAMP " 0068000000000001 0 1",
        "#order " ORIGIN " " STAMP " 1 9223372036854775807 1",
        "#order " ORIGIN " " STAMP " 1 0 4294967296",
        "#order " ORIGIN "_" STAMP " 1 0 1",
        "#order " ORIGIN " 006800000000000 1 0 1",
        "#order " ORIGIN " 006800000000000G 1 0 1",
        "#order 0000000000000000 " STAMP " 1 0 1",
        "#order ffffffffffffffff " STAMP " 1 0 1",
        "#order " ORIGIN " 0000000000000001 1 0 1",
        "#TS:1700000000",
        "#plain",
    };
    struct aof_order_note note;

    (void)state;
    assert_true(aof_note_order(SLICE("#order " ORIGIN " " STAMP " 1f -3 2"), &note));
    assert_int_equal(note.origin, 0x12ab);
    assert_int_equal(note.stamp, 0x68000000000000);
    assert_int_equal(note.previous, 0x68000000000000 - 0x1f);
    assert_int_equal(note.wall_ms, (0x68000000000000 >> 14) - 3);
    assert_int_equal(note.count, 2);
    assert_int_equal(note.seen, 0);
    assert_true(aof_note_order(SLICE("#order " ORIGIN " " STAMP " 1f -3 1 0067ffffffffffff"), &note));
    assert_int_equal(note.seen, 0x67ffffffffffff);
    assert_true(aof_note_order(SLICE("#order " ORIGIN " " STAMP " 68000000000000 0 0"), &note));
    assert_int_equal(note.previous, 0);
    assert_int_equal(note.count, 0);
    for (size_t i = 0; i < countof(wrong); i++)
        assert_false(aof_note_order(slice_from_text(wrong[i]), &note));
    assert_true(aof_note_is_plain(SLICE("#plain")));
    assert_false(aof_note_is_plain(SLICE("#plain ")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_say_where_entries_end),
        cmocka_unit_test(what_is_read),
        cmocka_unit_test(what_ends_early),
        cmocka_unit_test(what_is_damaged),
        cmocka_unit_test(what_is_long),
        cmocka_unit_test(going_back),
        cmocka_unit_test(times),
        cmocka_unit_test(damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
