/* Conversations with masters of several kinds. */
#include "replication/handshake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ID "0123456789abcdef0123456789abcdef01234567"
#define OTHER "fedcba9876543210fedcba9876543210fedcba98"

static const struct handshake_facts stranger = {.port = 1};
static const struct handshake_facts known =
    {.user = {"joe", 3}, .password = {"pw", 2}, .announced_ip = {"::1", 3}, .port = 1, .id = ID, .offset = 99};

/* What comes of these replies. */
static enum handshake_result talk(const struct handshake_facts *facts, const char *replies, struct handshake *handshake,
                                  struct buffer *requests, size_t *used)
{
    handshake_begin(handshake, facts, requests);
    return handshake_take(handshake, replies, strlen(replies), used, requests);
}

static void each_request_waits_for_the_reply_before_it(void **state)
{
    static const char *const words[] = {"$4\r\nPING\r\n",
                                        "$3\r\njoe\r\n$2\r\npw\r\n",
                                        "$14\r\nlistening-port\r\n$1\r\n1\r\n",
                                        "$10\r\nip-address\r\n$3\r\n::1\r\n",
                                        "$6\r\npsync2\r\n",
                                        "$7\r\nversion\r\n",
                                        "$40\r\n" ID "\r\n$3\r\n100\r\n"};
    struct handshake handshake;
    struct buffer requests = {0};
    size_t used;

    (void)state;
    handshake_begin(&handshake, &known, &requests);
    for (size_t i = 0; i < countof(words); i++) {
        assert_int_equal(requests.data[0], '*');
        assert_non_null(strstr(buffer_text(&requests), words[i]));
        buffer_clear(&requests);
        if (i + 1 < countof(words))
            assert_int_equal(handshake_take(&handshake, "\n+OK\r\n", 6, &used, &requests), HANDSHAKE_MORE);
    }
    assert_int_equal(handshake.step, HANDSHAKE_PSYNC);
    handshake_fini(&handshake);
    buffer_fini(&requests);
}

static void expect(const struct handshake_facts *facts, const char *replies, enum handshake_result result,
                   const char *left, const char *error)
{
    struct handshake handshake;
    struct buffer requests = {0};
    size_t used;

    assert_int_equal(talk(facts, replies, &handshake, &requests, &used), result);
    if (result != HANDSHAKE_FAILED)
        assert_string_equal(replies + used, left);
    else
        assert_non_null(strstr(handshake.error, error));
    if (result == HANDSHAKE_FULL)
        assert_string_equal(handshake.id, OTHER);
    handshake_fini(&handshake);
    buffer_fini(&requests);
}

static void masters_of_all_kinds(void **state)
{
    (void)state;
    expect(&stranger, "+PONG\r\n-ERR x\r\n-ERR x\r\n-ERR x\r\n\n\n+FULLRESYNC " OTHER " 0\r\n$", HANDSHAKE_FULL, "$",
           "");
    expect(&known, "-NOAUTH\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+CONTINUE\r\n*", HANDSHAKE_CONTINUES, "*", "");
    expect(&known, "-NOAUTH\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+CONTINUE " OTHER "\r\n", HANDSHAKE_CONTINUES, "",
           "");
    expect(&known, "-NOAUTH\r\n-WRONGPASS\r\n", HANDSHAKE_FAILED, "", "Unable to AUTH to MASTER: '-WRONGPASS'");
    expect(&known, "-NOAUTH\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+CONTINUE x\r\n", HANDSHAKE_FAILED, "", "damaged");
    expect(&stranger, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+CONTINUE " ID "\r\n", HANDSHAKE_FAILED, "", "not asked for");
    expect(&stranger, "+PONG\r\n+OK\r\n:1\r\n", HANDSHAKE_FAILED, "", "reply to REPLCONF");
    expect(&stranger, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+FULLRESYNC " ID " 1 2\r\n", HANDSHAKE_FAILED, "", "damaged");
    expect(&stranger, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+FULLRESYNC " ID " -1\r\n", HANDSHAKE_FAILED, "", "damaged");
    expect(&stranger, "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n+FULLRESYNCING\r\n", HANDSHAKE_FAILED, "", "refuses PSYNC");
    expect(&stranger, "+PONG\r\n+O", HANDSHAKE_MORE, "+O", "");
}

static void a_line_has_a_limit(void **state)
{
    char line[HANDSHAKE_LINE_MOST_BYTES + 2];

    (void)state;
    memset(line, '+', sizeof(line));
    line[HANDSHAKE_LINE_MOST_BYTES] = '\0';
    expect(&stranger, line, HANDSHAKE_MORE, line, "");
    line[HANDSHAKE_LINE_MOST_BYTES] = '+';
    line[HANDSHAKE_LINE_MOST_BYTES + 1] = '\0';
    expect(&stranger, line, HANDSHAKE_FAILED, "", "too long");
}

static const struct handshake_facts active = {.port = 1, .uuid = "8294aaaa-1111-4a5b-9c7d-0123456789ab"};

/* PING, port, capa; then what the rows say. */
static void what_active_servers_say(void **state)
{
    static const char own[] = "$36\r\n8294aaaa-1111-4a5b-9c7d-0123456789ab\r\n";
    static const char uuid[] = "+9294BBBB-2222-4a5b-8c7d-0123456789ab\r\n";
    static const struct {
        const char *capa, *rest;
        enum handshake_result result;
        bool is_active, has_order, has_uuid;
    } rows[] = {
        {"+OK\r\n", "-ERR Unrecognized\r\n+OK\r\n+FULLRESYNC " ID " 5\r\n", HANDSHAKE_FULL, false, false, false},
        {"+OK active-replica\r\n", "U-ERR version\r\n+FULLRESYNC " ID " 5\r\n", HANDSHAKE_FULL, true, false, true},
        {"+OK active-replica one-order\r\n", "U+OK\r\n+ONE-ORDER\r\n\1\2", HANDSHAKE_FRAMES, true, true, true},
        {"+OK active-replica one-order\r\n", "U+OK\r\n-ERR no\r\n", HANDSHAKE_FAILED, true, true, true},
        {"+OK active one-orders\r\n", "U+OK\r\n+FULLRESYNC " ID " 5\r\n", HANDSHAKE_FULL, false, false, true},
        {"+OKactive-replica\r\n", "U+OK\r\n+FULLRESYNC " ID " 5\r\n", HANDSHAKE_FULL, false, false, true},
        {"+OK one-order\r\n", "U+OK\r\n+FULLRESYNC " ID " 5\r\n", HANDSHAKE_FULL, false, true, true},
        {"+OK active-replica\r\n", "+9294BBBB\r\n", HANDSHAKE_FAILED, true, false, false},
    };

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        struct handshake handshake;
        struct buffer replies = {0}, requests = {0};
        size_t used;

        buffer_printf(&replies, "+PONG\r\n+OK\r\n%s%s", rows[i].capa, rows[i].rest[0] == 'U' ? uuid : "");
        buffer_append_text(&replies, rows[i].rest + (rows[i].rest[0] == 'U'));
        assert_int_equal(talk(&active, buffer_text(&replies), &handshake, &requests, &used), rows[i].result);
        assert_int_equal(handshake.peer_is_active, rows[i].is_active);
        assert_int_equal(handshake.peer_has_order, rows[i].has_order);
        assert_string_equal(handshake.peer_uuid, rows[i].has_uuid ? "9294BBBB-2222-4a5b-8c7d-0123456789ab" : "");
        assert_non_null(strstr(buffer_text(&requests), own));
        assert_non_null(strstr(buffer_text(&requests), "$12\r\nactiveExpire\r\n$4\r\ncapa\r\n$9\r\none-order\r\n"));
        if (rows[i].result == HANDSHAKE_FRAMES) {
            assert_int_equal(used, replies.size - 2); /* frames begin behind it */
            assert_null(strstr(buffer_text(&requests), "PSYNC"));
        }
        handshake_fini(&handshake);
        buffer_fini(&replies);
        buffer_fini(&requests);
    }
}

static void others_hear_nothing_of_it(void **state)
{
    struct handshake handshake;
    struct buffer requests = {0};
    size_t used;

    (void)state;
    assert_int_equal(talk(&stranger, "+PONG\r\n+OK\r\n+OK active-replica one-order\r\n+OK\r\n+FULLRESYNC " ID " 5\r\n",
                          &handshake, &requests, &used),
                     HANDSHAKE_FULL);
    assert_null(strstr(buffer_text(&requests), "uuid"));
    assert_null(strstr(buffer_text(&requests), "one-order"));
    assert_null(strstr(buffer_text(&requests), "activeExpire"));
    handshake_fini(&handshake);
    buffer_fini(&requests);
}

/* KeyDB compares its own words with ours over as many bytes as ours has. */
static void our_word_is_no_beginning_of_theirs(void **state)
{
    (void)state;
    assert_true(sizeof(HANDSHAKE_ORDER_WORD) > 1);
    assert_int_not_equal(strncmp("active-replica", HANDSHAKE_ORDER_WORD, strlen(HANDSHAKE_ORDER_WORD)), 0);
    assert_int_not_equal(strncmp("keydb-fastsync-save", HANDSHAKE_ORDER_WORD, strlen(HANDSHAKE_ORDER_WORD)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_waits_for_the_reply_before_it),
        cmocka_unit_test(masters_of_all_kinds),
        cmocka_unit_test(a_line_has_a_limit),
        cmocka_unit_test(what_active_servers_say),
        cmocka_unit_test(others_hear_nothing_of_it),
        cmocka_unit_test(our_word_is_no_beginning_of_theirs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
