/* Records of the journal as text: each file selects its databases itself, whoever wrote the records. */
#include "persist/aof_text.h"

#include "store/journal.h"
#include "store/stamp.h"

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

enum { NOW_MS = 1700000000 };
#define STAMP ((uint64_t)(STAMP_EPOCH_MS + NOW_MS) << STAMP_COUNTER_BITS)

static struct effects entry;
static struct effect_stamp stamps[8];

static void add(const char *word, uint8_t hidden_from, unsigned flags)
{
    const struct slice words[] = {slice_from_text(word), SLICE("k")};

    effects_add(&entry, 0, words, 2);
    effects_describe(&entry, 1, flags);
    entry.items[entry.count - 1].hidden_from = hidden_from;
    stamps[entry.count - 1] = (struct effect_stamp){.origin = (flags & EFFECT_CORRECTS) != 0 ? MERGE_ORIGIN_FLOOR
                                                                                             : 0x77,
                                                    .stamp = STAMP,
                                                    .previous = STAMP - 0x10,
                                                    .wall_ms = STAMP_EPOCH_MS + NOW_MS - 5,
                                                    .key_position = JOURNAL_NOWHERE};
}

static void expect_entry(bool whole, const char *expected)
{
    struct journal_view view;

    effects_end_group(&entry);
    if (whole)
        journal_append_whole(&journal, &entry, stamps);
    else
        journal_append_stamped(&journal, &entry, false, stamps);
    effects_clear(&entry);
    while (journal_reader_next(&reader, &view))
        aof_text_add(&text, &view);
    aof_text_end(&text);
    assert_string_equal(buffer_text(&text.bytes), expected);
    buffer_clear(&text.bytes);
}

#define WORDS(word) "*2\r\n$3\r\n" word "\r\n$1\r\nk\r\n"
#define ECHO(word) "*2\r\n$4\r\nECHO\r\n$20\r\n" WORDS(word) "\r\n"
#define PLAIN(word) "#plain\r\n" WORDS(word)
#define ORDER(count) "#order 0000000000000077 005bf0eeb6400000 10 -5 " count "\r\n"

/* Operations for active nodes, effects for others. */
static void entries_have_their_operations(void **state)
{
    (void)state;
    journal_set_stamping(&journal, 0x55, 0);
    journal_set_peers(&journal, true);
    text.db = 0;
    add("one", 0, 0);
    expect_entry(false, SELECT("0") WORDS("one") ORDER("1"));
    add("one", EFFECT_PEERS, 0);
    add("two", EFFECT_PLAIN, 0);
    expect_entry(false, PLAIN("one") ECHO("two") ORDER("1"));
    add("one", EFFECT_PLAIN, 0);
    add("two", EFFECT_PLAIN, 0);
    expect_entry(false, ECHO("one") ECHO("two") ORDER("2"));
    add("one", EFFECT_PLAIN, 0);
    add("two", EFFECT_PEERS, 0);
    add("six", 0, 0);
    expect_entry(false, MULTI ECHO("one") PLAIN("two") WORDS("six") ORDER("2") EXEC);
    add("one", EFFECT_PLAIN, 0);
    effects_end_group(&entry);
    add("two", EFFECT_PEERS, EFFECT_CORRECTS);
    expect_entry(true, MULTI ECHO("one") ORDER("1") PLAIN("two") EXEC);
    add("one", 0, EFFECT_OVERWRITES | EFFECT_EVICTS);
    stamps[0].key_position = STAMP - 0x20;
    expect_entry(false, WORDS("one") "#order 0000000000000077 005bf0eeb6400000 10 -5 1 005bf0eeb63fffe0\r\n");
    effects_fini(&entry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_received_stream_selects_for_each_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_received_transaction_stays_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(own_effects_come_between, setup, teardown),
        cmocka_unit_test_setup_teardown(entries_have_their_operations, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
