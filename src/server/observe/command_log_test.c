#include "server/observe/command_log.h"

#include "base/mem.h"
#include "server/config/config.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS_MOST = 40 };

static struct client *client;
static struct worker *worker;
static char long_word[200], address[] = "1.2.3.4:5";

static void set(const char *option, const char *value)
{
    char error[OPTION_ERROR_SPACE];

    assert_true(config_set_text(option, slice_from_text(value), error, sizeof(error)));
}

static int begin(void **state)
{
    (void)state;
    client = mem_alloc_zero(sizeof(*client));
    client->card.address = address;
    worker = mem_alloc_zero(sizeof(*worker));
    worker_adopt(worker);
    config_setup();
    command_log_setup();
    set("slowlog-max-len", "3");
    return 0;
}

static int end(void **state)
{
    (void)state;
    command_log_teardown();
    config_teardown();
    mem_free(client);
    mem_free(worker);
    return 0;
}

static void add(uint32_t word_count, struct slice last, uint64_t redacted, uint64_t duration_us)
{
    struct slice words[WORDS_MOST];
    struct request request = {.worker = worker,
                              .client = client,
                              .args = words,
                              .arg_count = word_count,
                              .redacted = redacted};

    for (uint32_t i = 0; i < word_count; i++)
        words[i] = i + 1 == word_count ? last : SLICE("word");
    command_log_add(COMMAND_LOG_SLOW, &request, duration_us);
}

/* Newest first: are these the durations? */
static void check(size_t most, const uint64_t *durations, size_t expected_count)
{
    size_t count;
    struct command_log_entry **entries = command_log_get(COMMAND_LOG_SLOW, most, &count);

    assert_int_equal(count, expected_count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(entries[i]->value, durations[i]);
        assert_true(i == 0 || entries[i]->id + 1 == entries[i - 1]->id);
        command_log_release(entries[i]);
    }
    mem_free(entries);
}

static void the_newest_stay_in_order(void **state)
{
    (void)state;
    check(9, NULL, 0);
    for (uint64_t i = 1; i <= 5; i++) {
        add(2, SLICE("x"), 0, i);
        assert_int_equal(command_log_size(COMMAND_LOG_SLOW), MIN(i, 3U));
    }
    check(9, (const uint64_t[]){5, 4, 3}, 3);
    check(2, (const uint64_t[]){5, 4}, 2);
    check(0, NULL, 0);
    command_log_reset(COMMAND_LOG_SLOW);
    assert_int_equal(command_log_size(COMMAND_LOG_SLOW), 0);
    check(9, NULL, 0);
}

static void the_limit_may_change(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 3; i++)
        add(1, SLICE("x"), 0, i);
    set("slowlog-max-len", "1");
    check(9, (const uint64_t[]){3}, 1);
    set("slowlog-max-len", "2");
    add(1, SLICE("x"), 0, 4);
    add(1, SLICE("x"), 0, 5);
    check(9, (const uint64_t[]){5, 4}, 2);
    set("slowlog-max-len", "0");
    add(1, SLICE("x"), 0, 6);
    check(9, NULL, 0);
}

/* A reader keeps its entries, even if the log drops them. */
static void readers_keep_what_they_read(void **state)
{
    struct command_log_entry **entries;
    size_t count;

    (void)state;
    add(1, SLICE("kept"), 0, 7);
    entries = command_log_get(COMMAND_LOG_SLOW, 9, &count);
    assert_int_equal(count, 1);
    command_log_reset(COMMAND_LOG_SLOW);
    assert_true(slice_equal_text(entries[0]->args[0], "kept"));
    assert_string_equal(entries[0]->address, "1.2.3.4:5");
    command_log_release(entries[0]);
    mem_free(entries);
}

static void check_last_word(uint32_t expected_count, const char *expected)
{
    size_t count;
    struct command_log_entry **entries = command_log_get(COMMAND_LOG_SLOW, 1, &count);

    assert_int_equal(entries[0]->arg_count, expected_count);
    assert_true(slice_equal_text(entries[0]->args[expected_count - 1], expected));
    command_log_release(entries[0]);
    mem_free(entries);
}

static void words_have_limits(void **state)
{
    char expected[200];

    (void)state;
    memset(long_word, 'x', sizeof(long_word));
    memset(expected, 'x', 128);
    expected[128] = '\0';
    add(2, slice_make(long_word, 128), 0, 1);
    check_last_word(2, expected);
    add(2, slice_make(long_word, 129), 0, 1);
    strcpy(expected + 128, "... (1 more bytes)");
    check_last_word(2, expected);
    add(32, SLICE("last"), 0, 1);
    check_last_word(32, "last");
    add(33, SLICE("last"), 0, 1);
    check_last_word(32, "... (2 more arguments)");
    add(2, SLICE("secret"), 2, 1);
    check_last_word(2, "(redacted)");
}

static void the_limits_of_words_may_change(void **state)
{
    (void)state;
    set("slowlog-entry-max-string-len", "3");
    add(2, SLICE("abc"), 0, 1);
    check_last_word(2, "abc");
    add(2, SLICE("abcd"), 0, 1);
    check_last_word(2, "abc... (1 more bytes)");
    set("slowlog-entry-max-string-len", "0");
    add(1, SLICE("abcd"), 0, 1);
    check_last_word(1, "... (4 more bytes)");
    set("slowlog-entry-max-argc", "2");
    add(2, SLICE(""), 0, 1);
    check_last_word(2, "");
    add(3, SLICE("secret"), 2, 1);
    check_last_word(2, "... (2 more arguments)");
    set("slowlog-entry-max-argc", "1");
    add(3, SLICE("x"), 0, 1);
    check_last_word(1, "... (3 more arguments)");
}

static size_t large(enum command_log_kind kind)
{
    const size_t size = command_log_size(kind);

    command_log_reset(kind);
    return size;
}

/* "*2 $3 GET $5 abcde" with its line ends is 24 bytes. */
static void sizes_are_those_of_the_protocol(void **state)
{
    const struct slice words[] = {SLICE("GET"), SLICE("abcde")};
    struct command command = {0};
    struct request request = {.worker = worker, .client = client, .command = &command, .args = words, .arg_count = 2};

    (void)state;
    command_log_begin();
    assert_false(command_log_may_take(1048575, 1048575));
    assert_true(command_log_may_take(1048576, 0));
    assert_true(command_log_may_take(0, 1048576));
    set("commandlog-request-larger-than", "25");
    command_log_tell_request(&request);
    assert_int_equal(large(COMMAND_LOG_LARGE_REQUEST), 0);
    set("commandlog-request-larger-than", "24");
    command_log_tell_request(&request);
    assert_int_equal(large(COMMAND_LOG_LARGE_REQUEST), 1);
    set("commandlog-request-larger-than", "-1");
    set("commandlog-reply-larger-than", "7");
    command_log_begin();
    assert_false(command_log_may_take(6, 6));
    assert_true(command_log_may_take(0, 7));
    command_log_want_sizes(1);
    command_log_want_sizes(1);
    command_log_want_sizes(-1);
    assert_true(command_log_may_take(0, 0));
    command_log_want_sizes(-1);
    assert_false(command_log_may_take(6, 6));
    assert_true(command_log_may_take(0, 7));
    command_log_tell_request(&request);
    command_log_tell_reply(&request, 6);
    assert_int_equal(large(COMMAND_LOG_LARGE_REPLY), 0);
    command_log_tell_reply(&request, 7);
    assert_int_equal(large(COMMAND_LOG_LARGE_REPLY), 1);
    command.flags = COMMAND_SKIP_SLOWLOG;
    command_log_tell_reply(&request, 7);
    assert_int_equal(large(COMMAND_LOG_LARGE_REPLY), 0);
    assert_int_equal(large(COMMAND_LOG_LARGE_REQUEST), 0);
    assert_int_equal(large(COMMAND_LOG_SLOW), 0);
}

#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(the_newest_stay_in_order),       LOG_TEST(the_limit_may_change),
        LOG_TEST(readers_keep_what_they_read),    LOG_TEST(words_have_limits),
        LOG_TEST(the_limits_of_words_may_change), LOG_TEST(sizes_are_those_of_the_protocol),
    };

    return cmocka_run_group_tests_name("command_log", tests, NULL, NULL);
}
