/* Records of the journal as text: each file selects its databases itself, whoever wrote the records. */
#include "persist/aof_text.h"

#include "store/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SELECT(db) "*2\r\n$6\r\nSELECT\r\n$1\r\n" db "\r\n"
#define MULTI "*1\r\n$5\r\nMULTI\r\n"
#define EXEC "*1\r\n$4\r\nEXEC\r\n"

static struct journal journal;
static struct journal_reader reader;
static struct aof_text text;

static int setup(void **state)
{
    (void)state;
    journal_init(&journal);
    journal_reader_open(&reader, &journal);
    text = (struct aof_text){.db = -1};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buffer_fini(&text.bytes);
    journal_reader_close(&reader);
    journal_fini(&journal);
    return 0;
}

static void receive(const char *bytes, unsigned db, unsigned flags)
{
    const struct journal_received command = {.bytes = slice_from_text(bytes), .db = db, .flags = flags};

    journal_append_received(&journal, &command, 1);
}

static void expect(const char *expected)
{
    struct journal_view view;

    while (journal_reader_next(&reader, &view)) {
        if ((view.flags & JOURNAL_MESSAGE) == 0)
            aof_text_add(&text, &view);
    }
    assert_int_equal(text.bytes.size, strlen(expected));
    assert_memory_equal(text.bytes.data, expected, text.bytes.size);
    buffer_clear(&text.bytes);
}

/* A stream selects its database once, perhaps long before the file begins, or in what files leave out. */
static void a_received_stream_selects_for_each_file(void **state)
{
    (void)state;
    receive("one", 3, JOURNAL_ENDS);
    expect(SELECT("3") "one");
    receive("two", 3, JOURNAL_ENDS);
    expect("two");
    text.db = -1; /* the next file */
    receive("three", 3, JOURNAL_ENDS);
    expect(SELECT("3") "three");
    receive(SELECT("0"), 0, JOURNAL_SELECT | JOURNAL_MESSAGE);
    receive("ping", 0, JOURNAL_ENDS | JOURNAL_MESSAGE);
    receive("four", 0, JOURNAL_ENDS);
    expect(SELECT("0") "four");
    receive(SELECT("5"), 5, JOURNAL_SELECT);
    receive("five", 5, JOURNAL_ENDS);
    expect(SELECT("5") "five");
}

/* Between two files nothing of a transaction is torn, and its SELECT may stand inside of it. */
static void a_received_transaction_stays_whole(void **state)
{
    (void)state;
    receive(MULTI, 2, JOURNAL_BEGINS);
    receive("one", 2, 0);
    receive(SELECT("4"), 4, JOURNAL_SELECT);
    receive("two", 4, 0);
    expect(SELECT("2") MULTI "one" SELECT("4") "two");
    assert_true(text.in_transaction);
    receive(EXEC, 4, JOURNAL_ENDS);
    receive("three", 4, JOURNAL_ENDS);
    expect(EXEC "three");
    assert_false(text.in_transaction);
}

/* Effects of this server stand between those that it received: a replica that may be written to. */
static void own_effects_come_between(void **state)
{
    const struct slice words[] = {SLICE("DEL"), SLICE("k")};
    struct effects effects = {0};

    (void)state;
    receive("one", 1, JOURNAL_ENDS);
    effects_add(&effects, 6, words, 2);
    journal_append(&journal, &effects, false);
    effects_fini(&effects);
    receive("two", 1, JOURNAL_ENDS);
    expect(SELECT("1") "one" SELECT("6") "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n" SELECT("1") "two");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_received_stream_selects_for_each_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_received_transaction_stays_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(own_effects_come_between, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
