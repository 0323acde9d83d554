#include "server/observe/slowlog.h"

#include "base/mem.h"
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

static int begin(void **state)
{
    (void)state;
    client = mem_alloc_zero(sizeof(*client));
    client->card.address = address;
    worker = mem_alloc_zero(sizeof(*worker));
    worker_adopt(worker);
    slowlog_setup();
    atomic_store(&option_slowlog_max_len, 3);
    slowlog_reset();
    return 0;
}

static int end(void **state)
{
    (void)state;
    slowlog_reset();
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
    slowlog_add(&request, duration_us);
}

/* Newest first: are these the durations? */
static void check(size_t most, const uint64_t *durations, size_t expected_count)
{
    size_t count;
    struct slowlog_entry **entries = slowlog_get(most, &count);

    assert_int_equal(count, expected_count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(entries[i]->duration_us, durations[i]);
        assert_true(i == 0 || entries[i]->id + 1 == entries[i - 1]->id);
        slowlog_release(entries[i]);
    }
    mem_free(entries);
}

static void the_newest_stay_in_order(void **state)
{
    (void)state;
    check(9, NULL, 0);
    for (uint64_t i = 1; i <= 5; i++) {
        add(2, SLICE("x"), 0, i);
        assert_int_equal(slowlog_size(), MIN(i, 3U));
    }
    check(9, (const uint64_t[]){5, 4, 3}, 3);
    check(2, (const uint64_t[]){5, 4}, 2);
    check(0, NULL, 0);
    slowlog_reset();
    assert_int_equal(slowlog_size(), 0);
    check(9, NULL, 0);
}

static void the_limit_may_change(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 3; i++)
        add(1, SLICE("x"), 0, i);
    atomic_store(&option_slowlog_max_len, 1);
    assert_null(slowlog_apply(NULL));
    check(9, (const uint64_t[]){3}, 1);
    atomic_store(&option_slowlog_max_len, 2);
    assert_null(slowlog_apply(NULL));
    add(1, SLICE("x"), 0, 4);
    add(1, SLICE("x"), 0, 5);
    check(9, (const uint64_t[]){5, 4}, 2);
    atomic_store(&option_slowlog_max_len, 0);
    add(1, SLICE("x"), 0, 6);
    check(9, NULL, 0);
}

/* A reader keeps its entries, even if the log drops them. */
static void readers_keep_what_they_read(void **state)
{
    struct slowlog_entry **entries;
    size_t count;

    (void)state;
    add(1, SLICE("kept"), 0, 7);
    entries = slowlog_get(9, &count);
    assert_int_equal(count, 1);
    slowlog_reset();
    assert_true(slice_equal_text(entries[0]->args[0], "kept"));
    assert_string_equal(entries[0]->address, "1.2.3.4:5");
    slowlog_release(entries[0]);
    mem_free(entries);
}

static void check_last_word(uint32_t expected_count, const char *expected)
{
    size_t count;
    struct slowlog_entry **entries = slowlog_get(1, &count);

    assert_int_equal(entries[0]->arg_count, expected_count);
    assert_true(slice_equal_text(entries[0]->args[expected_count - 1], expected));
    slowlog_release(entries[0]);
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

#define SLOWLOG_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SLOWLOG_TEST(the_newest_stay_in_order),
        SLOWLOG_TEST(the_limit_may_change),
        SLOWLOG_TEST(readers_keep_what_they_read),
        SLOWLOG_TEST(words_have_limits),
    };

    return cmocka_run_group_tests_name("slowlog", tests, NULL, NULL);
}
