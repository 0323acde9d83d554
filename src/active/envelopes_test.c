/* Envelopes as KeyDB 6.3.4 writes them, nested, known, damaged; transactions over several of them. */
#include "active/envelopes.h"

#include "base/mem.h"
#include "base/test_seed.h"
#include "net/resp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { DB_COUNT = 16, TRANSACTION_BYTES_MOST = 64 << 10 };

static struct uuid own, keydb_a, keydb_b;
static const uint64_t some_mvcc = UINT64_C(1882424794287177729);
/* The mvccs of the tests count from here; 0 stays 0. */
static const uint64_t first_mvcc = UINT64_C(1795000000000) << MVCC_COUNTER_BITS;

static struct uuid uuid_from(const char *text)
{
    struct uuid uuid;

    assert_true(uuid_parse(slice_from_text(text), &uuid));
    return uuid;
}

static int set_up(void **state)
{
    (void)state;
    own = uuid_of_id(77);
    keydb_a = uuid_from("8294aaaa-1111-4a5b-9c7d-0123456789ab");
    keydb_b = uuid_from("9294bbbb-2222-4a5b-8c7d-0123456789ab");
    return 0;
}

/* What was given, as text: "[mvcc db word word, db word ...]". */
static void note(void *context, const struct envelope_entry *entry)
{
    struct buffer *notes = context;

    buffer_printf(notes, "[%s%llu", entry->is_transaction ? "t" : "",
                  (unsigned long long)(entry->mvcc != 0 ? entry->mvcc - first_mvcc : 0));
    for (uint32_t i = 0; i < entry->command_count; i++) {
        buffer_printf(notes, "%s%u", i == 0 ? " " : ", ", entry->commands[i].db);
        for (uint32_t word = 0; word < entry->commands[i].word_count; word++) {
            buffer_append_char(notes, ' ');
            buffer_append_slice(notes, entry->commands[i].words[word]);
        }
    }
    buffer_append_char(notes, ']');
}

static void add(struct buffer *payload, const char *text)
{
    struct slice words[8];
    uint32_t count = 0;

    while (*text != '\0') {
        const size_t size = strcspn(text, " ");

        words[count++] = slice_make(text, size);
        text += size + (text[size] != '\0');
    }
    envelope_add_command(payload, words, count);
}

static void wrap(struct buffer *bytes, const struct uuid *uuid, unsigned db, uint64_t mvcc)
{
    struct buffer wrapped = {0};

    mvcc += first_mvcc;
    envelope_write(&wrapped, &(struct envelope){.uuid = *uuid, .payload = buffer_slice(bytes), .db = db, .mvcc = mvcc});
    buffer_fini(bytes);
    *bytes = wrapped;
}

/* Reads the command in `bytes` and takes it. */
static enum envelope_result take(struct envelopes *envelopes, const struct buffer *bytes, unsigned *db,
                                 struct buffer *notes, char *error)
{
    static const struct resp_limits limits = {.bulk_max_bytes = 1 << 29, .authenticated = true};
    struct resp_scratch scratch = {0};
    struct resp_parser parser;
    struct resp_command command;
    enum envelope_result result;

    resp_parser_init(&parser, &limits, &scratch);
    assert_int_equal(resp_parse(&parser, bytes->data, bytes->size, &command), RESP_COMMAND);
    assert_int_equal(command.consumed, bytes->size);
    result = envelopes_take(envelopes, command.args, command.arg_count, db, note, notes, error);
    resp_command_fini(&command);
    resp_parser_fini(&parser);
    resp_scratch_fini(&scratch);
    return result;
}

/* One command of `uuid` in an envelope of its own. */
static enum envelope_result take_one(struct envelopes *envelopes, const struct uuid *uuid, uint64_t mvcc,
                                     const char *text, struct buffer *notes)
{
    struct buffer bytes = {0};
    char error[ENVELOPE_ERROR_BYTES];
    unsigned db = 0;
    enum envelope_result result;

    add(&bytes, text);
    wrap(&bytes, uuid, 3, mvcc);
    result = take(envelopes, &bytes, &db, notes, error);
    buffer_fini(&bytes);
    return result;
}

static void expect_notes(struct buffer *notes, const char *text)
{
    assert_string_equal(buffer_text(notes), text);
    buffer_clear(notes);
}

static struct envelopes *create(void)
{
    return envelopes_create(&own, DB_COUNT, TRANSACTION_BYTES_MOST);
}

static void written_as_keydb_writes(void **state)
{
    static const char expected[] = "*5\r\n$7\r\nRREPLAY\r\n$36\r\n8294aaaa-1111-4a5b-9c7d-0123456789ab\r\n$29\r\n"
                                   "*3\r\n$3\r\nset\r\n$2\r\nk1\r\n$2\r\nv1\r\n\r\n$1\r\n3\r\n"
                                   "$19\r\n1882424794287177729\r\n";
    struct buffer bytes = {0};

    (void)state;
    add(&bytes, "set k1 v1");
    wrap(&bytes, &keydb_a, 3, some_mvcc - first_mvcc);
    assert_string_equal(buffer_text(&bytes), expected);
    buffer_fini(&bytes);
}

static void known_ones_are_dropped(void **state)
{
    struct envelopes *envelopes = create();
    struct buffer notes = {0};

    (void)state;
    assert_int_equal(take_one(envelopes, &keydb_a, 50, "set k v", &notes), ENVELOPE_NEW);
    expect_notes(&notes, "[50 3 set k v]");
    assert_int_equal(take_one(envelopes, &keydb_a, 50, "set k v", &notes), ENVELOPE_DROPPED);
    assert_int_equal(take_one(envelopes, &keydb_a, 50 - 1, "set k v", &notes), ENVELOPE_DROPPED);
    assert_int_equal(take_one(envelopes, &own, 50 + 9, "set k v", &notes), ENVELOPE_DROPPED);
    expect_notes(&notes, "");
    assert_int_equal(envelopes_mark(envelopes, &keydb_a), first_mvcc + 50);
    assert_int_equal(envelopes_mark(envelopes, &keydb_b), 0);
    assert_int_equal(take_one(envelopes, &keydb_b, 5, "set k v", &notes), ENVELOPE_NEW); /* a mark of its own */
    envelopes_learn(envelopes, &keydb_b, first_mvcc + 10, mvcc_to_stamp(first_mvcc));
    assert_int_equal(take_one(envelopes, &keydb_b, 10, "set k v", &notes), ENVELOPE_DROPPED);
    assert_int_equal(envelopes_counts(envelopes)->known, 3);
    assert_int_equal(envelopes_counts(envelopes)->own, 1);
    buffer_fini(&notes);
    envelopes_destroy(&envelopes);
}

static void nested_ones(void **state)
{
    struct envelopes *envelopes = create();
    struct buffer notes = {0}, bytes = {0}, again = {0};
    char error[ENVELOPE_ERROR_BYTES];
    unsigned db = 0;

    (void)state;
    add(&bytes, "set x 1");
    wrap(&bytes, &keydb_a, 2, 100);
    buffer_append_slice(&again, buffer_slice(&bytes));
    wrap(&bytes, &keydb_b, 7, 200);
    assert_int_equal(take(envelopes, &bytes, &db, &notes, error), ENVELOPE_NEW);
    expect_notes(&notes, "[100 2 set x 1]");
    assert_int_equal(db, 2);
    assert_int_equal(envelopes_mark(envelopes, &keydb_a), first_mvcc + 100);
    assert_int_equal(envelopes_mark(envelopes, &keydb_b), first_mvcc + 200);
    wrap(&again, &keydb_b, 7, 201); /* the same by another way: not to be forwarded, but the way's mark rises */
    assert_int_equal(take(envelopes, &again, &db, &notes, error), ENVELOPE_DROPPED);
    expect_notes(&notes, "");
    assert_int_equal(envelopes_mark(envelopes, &keydb_b), first_mvcc + 201);
    buffer_fini(&bytes);
    buffer_fini(&again);
    buffer_fini(&notes);
    envelopes_destroy(&envelopes);
}

static void take_at_depth(unsigned depth, enum envelope_result expected)
{
    struct envelopes *envelopes = create();
    struct buffer notes = {0}, bytes = {0};
    char error[ENVELOPE_ERROR_BYTES];
    unsigned db = 0;

    add(&bytes, "set x 1");
    for (unsigned i = 0; i < depth; i++) {
        const struct uuid uuid = uuid_of_id(1000 + i);

        wrap(&bytes, &uuid, 1, 64);
    }
    assert_int_equal(take(envelopes, &bytes, &db, &notes, error), expected);
    expect_notes(&notes, expected == ENVELOPE_NEW ? "[64 1 set x 1]" : "");
    assert_int_equal(envelopes_counts(envelopes)->too_deep, expected == ENVELOPE_NEW ? 0 : 1);
    buffer_fini(&bytes);
    buffer_fini(&notes);
    envelopes_destroy(&envelopes);
}

static void the_depth_has_a_limit(void **state)
{
    (void)state;
    take_at_depth(ENVELOPE_DEPTH_MOST - 1, ENVELOPE_NEW);
    take_at_depth(ENVELOPE_DEPTH_MOST, ENVELOPE_NEW);
    take_at_depth(ENVELOPE_DEPTH_MOST + 1, ENVELOPE_DROPPED);
    take_at_depth(3 * ENVELOPE_DEPTH_MOST, ENVELOPE_DROPPED);
}

static void three_and_four_words(void **state)
{
    struct envelopes *envelopes = create();
    struct buffer notes = {0}, payload = {0};
    char error[ENVELOPE_ERROR_BYTES];
    unsigned db = 9;

    (void)state;
    add(&payload, "incr x");
    for (unsigned i = 0; i < 2; i++) { /* without an mvcc nobody can tell that it is here already */
        const struct slice words[] = {SLICE("rreplay"), SLICE("8294AAAA-1111-4a5b-9c7d-0123456789ab"),
                                      buffer_slice(&payload), SLICE("4")};

        assert_int_equal(envelopes_take(envelopes, words, 3, &db, note, &notes, error), ENVELOPE_NEW);
        expect_notes(&notes, i == 0 ? "[0 9 incr x]" : "[0 4 incr x]");
        assert_int_equal(envelopes_take(envelopes, words, 4, &db, note, &notes, error), ENVELOPE_NEW);
        expect_notes(&notes, "[0 4 incr x]");
    }
    buffer_fini(&payload);
    buffer_fini(&notes);
    envelopes_destroy(&envelopes);
}

static void several_commands_and_select_in_a_payload(void **state)
{
    struct envelopes *envelopes = create();
    struct buffer notes = {0}, bytes = {0};
    char error[ENVELOPE_ERROR_BYTES];
    unsigned db = 0;

    (void)state;
    add(&bytes, "set a 1");
    add(&bytes, "SELECT 5");
    buffer_append(&bytes, "*0\r\n", 4);
    add(&bytes, "set b 2");
    wrap(&bytes, &keydb_a, 3, 100);
    assert_int_equal(take(envelopes, &bytes, &db, &notes, error), ENVELOPE_NEW);
    expect_notes(&notes, "[100 3 set a 1, 5 set b 2]");
    assert_int_equal(db, 5);
    buffer_fini(&bytes);
    buffer_fini(&notes);
    envelopes_destroy(&envelopes);
}

static void a_transaction_waits_for_exec(void **state)
{
    struct envelopes *envelopes = create();
    struct buffer notes = {0};

    (void)state;
    assert_int_equal(take_one(envelopes, &keydb_a, 101, "MULTI", &notes), ENVELOPE_NEW);
    assert_int_equal(take_one(envelopes, &keydb_a, 102, "incr x", &notes), ENVELOPE_NEW);
    assert_int_equal(take_one(envelopes, &keydb_b, 50, "set other 1", &notes), ENVELOPE_NEW);
    assert_int_equal(take_one(envelopes, &keydb_a, 103, "PING", &notes), ENVELOPE_NEW);
    expect_notes(&notes, "[50 3 set other 1][103 3 PING]");
    assert_int_equal(take_one(envelopes, &keydb_a, 102, "incr x", &notes), ENVELOPE_DROPPED); /* by another way */
    assert_int_equal(take_one(envelopes, &keydb_a, 104, "incr y", &notes), ENVELOPE_NEW);
    expect_notes(&notes, "");
    assert_int_equal(take_one(envelopes, &keydb_a, 105, "EXEC", &notes), ENVELOPE_NEW);
    expect_notes(&notes, "[t105 3 incr x, 3 incr y]");
    assert_int_equal(take_one(envelopes, &keydb_a, 106, "EXEC", &notes), ENVELOPE_NEW); /* of nothing */
    expect_notes(&notes, "");
    buffer_fini(&notes);
    envelopes_destroy(&envelopes);
}

static void a_transaction_whose_server_has_gone(void **state)
{
    struct envelopes *envelopes = create();
    struct buffer notes = {0};

    (void)state;
    assert_int_equal(take_one(envelopes, &keydb_a, 101, "MULTI", &notes), ENVELOPE_NEW);
    assert_int_equal(take_one(envelopes, &keydb_a, 102, "incr x", &notes), ENVELOPE_NEW);
    envelopes_end_transaction(envelopes, &keydb_a);
    assert_int_equal(envelopes_counts(envelopes)->transactions_lost, 1);
    assert_int_equal(take_one(envelopes, &keydb_a, 103, "incr y", &notes), ENVELOPE_NEW);
    expect_notes(&notes, "[103 3 incr y]");
    assert_int_equal(take_one(envelopes, &keydb_a, 104, "MULTI", &notes), ENVELOPE_NEW);
    assert_int_equal(take_one(envelopes, &keydb_a, 105, "incr z", &notes), ENVELOPE_NEW);
    envelopes_forget(envelopes, &keydb_a);
    assert_int_equal(envelopes_counts(envelopes)->transactions_lost, 2);
    assert_int_equal(take_one(envelopes, &keydb_a, 101, "incr y", &notes), ENVELOPE_NEW);
    expect_notes(&notes, "[101 3 incr y]");
    envelopes_end_transaction(envelopes, &keydb_b); /* unknown */
    envelopes_forget(envelopes, &keydb_b);
    buffer_fini(&notes);
    envelopes_destroy(&envelopes);
}

static void the_bytes_of_a_transaction_have_a_limit(void **state)
{
    struct envelopes *envelopes = create();
    struct buffer notes = {0};
    char text[1024 + 8] = "append x ";
    unsigned count = 0;

    (void)state;
    memset(text + 9, 'v', 1000);
    assert_int_equal(take_one(envelopes, &keydb_a, 1, "MULTI", &notes), ENVELOPE_NEW);
    while (take_one(envelopes, &keydb_a, 2 + count, text, &notes) == ENVELOPE_NEW)
        count++;
    assert_in_range(count, 60, TRANSACTION_BYTES_MOST / 1000);
    assert_true(envelopes_bytes(envelopes) < 4 * TRANSACTION_BYTES_MOST);
    assert_int_equal(envelopes_mark(envelopes, &keydb_a), first_mvcc + 1 + count);
    expect_notes(&notes, "");
    buffer_fini(&notes);
    envelopes_destroy(&envelopes);
}

static void the_uuids_have_a_limit(void **state)
{
    struct envelopes *envelopes = create();
    struct buffer notes = {0};

    (void)state;
    for (unsigned i = 0; i < 3 * ENVELOPES_UUIDS_MOST; i++) {
        const struct uuid uuid = uuid_of_id(1000 + i);

        assert_int_equal(take_one(envelopes, &uuid, 64, "MULTI", &notes), ENVELOPE_NEW);
        assert_int_equal(take_one(envelopes, &keydb_a, 1 + i, "PING", &notes), ENVELOPE_NEW);
    }
    assert_int_equal(envelopes_mark(envelopes, &keydb_a),
                     first_mvcc + 3 * ENVELOPES_UUIDS_MOST); /* never the most silent */
    assert_int_equal(envelopes_counts(envelopes)->uuids_forgotten, 2 * ENVELOPES_UUIDS_MOST + 1);
    assert_int_equal(envelopes_counts(envelopes)->transactions_lost, 2 * ENVELOPES_UUIDS_MOST + 1);
    assert_true(envelopes_bytes(envelopes) < 512 << 10);
    buffer_fini(&notes);
    envelopes_destroy(&envelopes);
}

/* The payload of an envelope of A at mvcc 100 is wrong; nothing of it may count. */
static void refuse(const char *payload, const char *why)
{
    struct envelopes *envelopes = create();
    struct buffer notes = {0};
    char error[ENVELOPE_ERROR_BYTES];
    const struct slice words[] = {SLICE("RREPLAY"), SLICE("8294aaaa-1111-4a5b-9c7d-0123456789ab"),
                                  slice_from_text(payload), SLICE("0"), SLICE("1882424794287177729")};
    unsigned db = 6;

    assert_int_equal(envelopes_take(envelopes, words, countof(words), &db, note, &notes, error), ENVELOPE_FAILED);
    if (strstr(error, why) == NULL)
        fail_msg("'%s' instead of '%s'", error, why);
    assert_int_equal(db, 6);
    assert_int_equal(envelopes_mark(envelopes, &keydb_a), 0);
    assert_int_equal(envelopes_counts(envelopes)->failed, 1);
    expect_notes(&notes, "");
    buffer_fini(&notes);
    envelopes_destroy(&envelopes);
}

#define PING "*1\r\n$4\r\nPING\r\n"
#define EXEC "*1\r\n$4\r\nEXEC\r\n"

static void damaged_payloads(void **state)
{
    (void)state;
    refuse("PING\r\n",
           "8294aaaa-1111-4a5b-9c7d-0123456789ab at depth 1, byte 0 of its payload: no command begins here");
    refuse(PING "x", "byte 14 of its payload: no command begins here");
    refuse(PING "*1\r\n$4\r\nPIN", "byte 14 of its payload: the end of a command is missing");
    refuse(PING "*1\r\n+4\r\n", "byte 14 of its payload: this is no command");
    refuse("*2\r\n$6\r\nSELECT\r\n$2\r\n16\r\n", "SELECT of no database");
    refuse("*2\r\n$6\r\nSELECT\r\n$2\r\n-1\r\n", "SELECT of no database");
    refuse(EXEC PING, "byte 14 of its payload: a command behind EXEC");
    refuse(PING "*1\r\n$5\r\nMULTI\r\n", "byte 14 of its payload: MULTI behind a command");
    refuse(PING "*1\r\n$7\r\nRREPLAY\r\n", "byte 14 of its payload: an envelope beside a command");
    refuse("*1\r\n$7\r\nRREPLAY\r\n", "the uuid or the payload is missing");
    refuse("*3\r\n$7\r\nRREPLAY\r\n$1\r\nx\r\n$0\r\n\r\n", "the first argument is not a uuid: 'x'");
    refuse("*3\r\n$7\r\nRREPLAY\r\n$36\r\n9294bbbb-2222-4a5b-8c7d-0123456789ab\r\n$3\r\nSET\r\n",
           "9294bbbb-2222-4a5b-8c7d-0123456789ab at depth 2, byte 0");
}

static void damaged_words(void **state)
{
    static const struct slice uuid = {"8294aaaa-1111-4a5b-9c7d-0123456789ab", 36};
    static const struct {
        const char *db, *mvcc, *why;
    } rows[] = {
        {"16", "1", "there is no such database: '16'"},
        {"-1", "1", "there is no such database: '-1'"},
        {"x\n", "1", "there is no such database: 'x?'"},
        {"0", "-1", "no clock gives this mvcc: '-1'"},
        {"0", "1", "no clock gives this mvcc"},
        {"0", "9223372036854775808", "no clock gives this mvcc"},
        {"0", "18446744073709551615", "no clock gives this mvcc"}, /* KeyDB's word for unknown */
    };
    struct envelope envelope;
    char error[ENVELOPE_ERROR_BYTES];

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        const struct slice words[] = {SLICE("RREPLAY"), uuid, SLICE(""), slice_from_text(rows[i].db),
                                      slice_from_text(rows[i].mvcc)};

        assert_false(envelope_read(words, countof(words), DB_COUNT, &envelope, error));
        assert_non_null(strstr(error, rows[i].why));
    }
}

/* --- what is written is read --- */

static void add_random(struct random *random, struct buffer *payload, unsigned db, struct buffer *expected,
                       bool is_first)
{
    char large[3000];
    const struct slice words[] = {SLICE("set"), SLICE("k"),
                                  slice_make(large, (size_t)random_below(random, sizeof(large)))};

    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)random_below(random, 256);
    envelope_add_command(payload, words, countof(words));
    buffer_printf(expected, "%s%u set k ", is_first ? " " : ", ", db);
    buffer_append_slice(expected, words[2]);
}

static void what_is_written_is_read(void **state)
{
    struct random random = test_random("envelopes");
    struct envelopes *envelopes = create();
    struct buffer notes = {0}, expected = {0};
    char error[ENVELOPE_ERROR_BYTES];
    unsigned link_db = 0;

    (void)state;
    for (uint64_t mvcc = 1; mvcc < 2000; mvcc++) {
        const unsigned db = (unsigned)random_below(&random, DB_COUNT);
        const uint64_t commands = 1 + random_below(&random, 4), depth = random_below(&random, 6);
        const bool is_transaction = random_below(&random, 3) == 0;
        struct buffer bytes = {0};

        buffer_clear(&notes);
        buffer_clear(&expected);
        buffer_printf(&expected, "[%s%llu", is_transaction ? "t" : "", (unsigned long long)mvcc);
        if (is_transaction)
            add(&bytes, "multi");
        for (uint64_t i = 0; i < commands; i++)
            add_random(&random, &bytes, db, &expected, i == 0);
        if (is_transaction)
            add(&bytes, "exec");
        buffer_append_char(&expected, ']');
        wrap(&bytes, &keydb_a, db, mvcc);
        for (uint64_t i = 0; i < depth; i++) {
            const struct uuid uuid = uuid_of_id(500 + i);

            wrap(&bytes, &uuid, (unsigned)random_below(&random, DB_COUNT), mvcc);
        }
        assert_int_equal(take(envelopes, &bytes, &link_db, &notes, error), ENVELOPE_NEW);
        assert_true(slice_equal(buffer_slice(&notes), buffer_slice(&expected)));
        assert_int_equal(link_db, db);
        buffer_fini(&bytes);
    }
    buffer_fini(&notes);
    buffer_fini(&expected);
    envelopes_destroy(&envelopes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_as_keydb_writes),
        cmocka_unit_test(known_ones_are_dropped),
        cmocka_unit_test(nested_ones),
        cmocka_unit_test(the_depth_has_a_limit),
        cmocka_unit_test(three_and_four_words),
        cmocka_unit_test(several_commands_and_select_in_a_payload),
        cmocka_unit_test(a_transaction_waits_for_exec),
        cmocka_unit_test(a_transaction_whose_server_has_gone),
        cmocka_unit_test(the_bytes_of_a_transaction_have_a_limit),
        cmocka_unit_test(the_uuids_have_a_limit),
        cmocka_unit_test(damaged_payloads),
        cmocka_unit_test(damaged_words),
        cmocka_unit_test(what_is_written_is_read),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
