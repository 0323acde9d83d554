/* Which histories can be continued, against the offsets at which they were left. */
#include "replication/history.h"

#include "store/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char other[] = "0123456789abcdef0123456789abcdef01234567",
                  third[] = "fedcba9876543210fedcba9876543210fedcba98";
static struct journal journal;

static int setup(void **state)
{
    (void)state;
    journal_init(&journal);
    journal_keep(&journal, JOURNAL_KEPT_FOR_REPLICAS, true);
    history_setup(&journal);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    journal_keep(&journal, JOURNAL_KEPT_FOR_REPLICAS, false);
    journal_fini(&journal);
    return 0;
}

/* Bytes of a stream that a master sends. */
static void receive(size_t size)
{
    static char bytes[1000];
    const struct journal_received command = {.bytes = {bytes, size}, .flags = JOURNAL_ENDS};

    journal_append_received(&journal, &command, 1);
}

static void ids_are_new_each_time(void **state)
{
    struct history_facts first, second;

    (void)state;
    history_facts(&first);
    assert_int_equal(strlen(first.id), HISTORY_ID_SIZE);
    assert_int_equal(first.second_offset, -1);
    receive(10);
    history_begin();
    history_facts(&second);
    assert_string_not_equal(first.id, second.id);
    assert_int_equal(second.offset, 10); /* it never goes back */
    assert_int_equal(second.second_offset, -1);
    assert_false(history_continues(first.id, 10));
    assert_true(history_continues(second.id, 10));
    assert_false(history_continues(second.id, 9)); /* those bytes were another history's */
    assert_false(history_continues(second.id, 11));
    assert_false(history_continues(second.id, -5));
}

static void a_replica_takes_over_its_masters_offsets(void **state)
{
    struct history_facts facts;

    (void)state;
    receive(700);
    history_adopt(other, 123);
    history_facts(&facts);
    assert_string_equal(facts.id, other);
    assert_int_equal(facts.offset, 123);
    assert_int_equal(history_of_journal(journal_end_offset(&journal)), 123);
    assert_int_equal(history_to_journal(123), 700);
    receive(50);
    assert_int_equal(history_offset(), 173);
    assert_true(history_continues(other, 123));
    assert_true(history_continues("0123456789ABCDEF0123456789ABCDEF01234567", 150));
    assert_false(history_continues(other, 122));
    assert_false(history_continues(third, 150));
    assert_false(history_continues("0123", 150));
}

static void siblings_continue_with_a_new_master(void **state)
{
    struct history_facts facts;

    (void)state;
    history_adopt(other, 1000);
    receive(100);
    history_fork();
    history_facts(&facts);
    assert_string_equal(facts.id2, other);
    assert_int_equal(facts.second_offset, 1101);
    receive(10);
    assert_true(history_continues(other, 1050));
    assert_true(history_continues(other, 1100));
    assert_false(history_continues(other, 1101)); /* its own bytes there are others than ours */
    assert_true(history_continues(facts.id, 1105));

    /* The master of this server becomes one that forked, too. */
    history_rename(third);
    assert_false(history_continues(other, 1100)); /* only one is remembered */
    assert_true(history_continues(facts.id, 1110));
    assert_true(history_continues(third, 1110));
}

static void files_tell_where_to_continue(void **state)
{
    struct history_facts facts;

    (void)state;
    history_restore(other, 5000, true);
    assert_true(history_continues(other, 5000));
    history_facts(&facts);
    assert_string_equal(facts.id, other);
    history_restore(other, 6000, false); /* a master: what it did after the file nobody knows */
    history_facts(&facts);
    assert_string_not_equal(facts.id, other);
    assert_string_equal(facts.id2, other);
    assert_int_equal(facts.second_offset, 6001);
    receive(10);
    assert_true(history_continues(other, 6000));
    assert_false(history_continues(other, 6001));
    assert_true(history_continues(facts.id, 6010));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ids_are_new_each_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_replica_takes_over_its_masters_offsets, setup, teardown),
        cmocka_unit_test_setup_teardown(siblings_continue_with_a_new_master, setup, teardown),
        cmocka_unit_test_setup_teardown(files_tell_where_to_continue, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
