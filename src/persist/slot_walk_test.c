#include "persist/slot_walk.h"

#include "base/fence.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/test_seed.h"
#include "persist/types.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const int64_t now_ms = 1800000000000;

static struct store_counters counters; /* global: of the test's only thread */
static struct store *store;            /* global: the walk's, and so one for all tests */
static struct access access;
static struct slot_digests exact;

static void put(unsigned db, uint64_t number, struct slice value)
{
    char name[32];
    struct key key;
    struct change change;

    snprintf(name, sizeof(name), "key:%llu", (unsigned long long)number);
    key = key_make(slice_from_text(name));
    change_begin(&change, &access, db, &key);
    change_put_string(&change, value, number % 7 == 0 ? now_ms + 5000 : EXPIRE_NEVER);
    change_end(&change, EVENT_STRING, NULL);
}

static uint32_t slot_of_number(uint64_t number)
{
    char name[32];

    snprintf(name, sizeof(name), "key:%llu", (unsigned long long)number);
    return slot_of(slice_from_text(name));
}

static bool remove_key(unsigned db, uint64_t number)
{
    char name[32];
    struct key key;

    snprintf(name, sizeof(name), "key:%llu", (unsigned long long)number);
    key = key_make(slice_from_text(name));
    return access_delete(&access, db, &key);
}

static struct slot_terms terms_now(void)
{
    return (struct slot_terms){.secret = slot_secret_of(SLICE("walk")), .until_ms = now_ms};
}

static void begin(void)
{
    struct slot_terms terms = terms_now();

    access_begin(&access, now_ms, true);
    slot_walk_begin(&terms);
}

static bool step(void)
{
    return slot_walk_step(&access);
}

/* Returns how many slots are clear; these are as they are now. */
static uint32_t check_clear(void)
{
    const struct slot_walk_result *result = slot_walk_result();
    struct slot_terms terms = terms_now();
    uint32_t clear = 0;

    assert_non_null(result);
    slot_digests_take(&exact, &access, &terms, NULL);
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        if (!slot_walk_is_clear(slot))
            continue;
        clear++;
        assert_memory_equal(&result->digests.slots[slot], &exact.slots[slot], sizeof(exact.slots[slot]));
    }
    return clear;
}

static void at_rest_a_walk_is_exact(void **state)
{
    (void)state;
    access_begin(&access, now_ms, true);
    access_flush_all(&access, false);
    for (uint64_t i = 0; i < 20000; i++)
        put(i % 3, i, SLICE("value"));
    begin();
    assert_true(slot_walk_runs());
    assert_null(slot_walk_result());
    while (!step()) {
    }
    assert_false(slot_walk_runs());
    assert_int_equal(check_clear(), SLOT_COUNT);
    assert_int_equal(slot_walk_result()->keys, 20000);
    put(0, 5, SLICE("later")); /* it does not count any more */
    assert_true(slot_walk_is_clear(slot_of_number(5)));
    slot_walk_cancel();
}

/* Tables grow, shrink and merge on the way: what changes is in seven eighths of the slots, the others have to stay
 * right. */
static void slots_that_are_clear_are_exact(void **state)
{
    struct random random;

    (void)state;
    random = test_random("walk");
    for (int round = 0; round < 30; round++) {
        uint64_t count = 100 + random_below(&random, 30000);
        uint64_t next = 0, removed = 0;
        uint32_t clear;

        access_begin(&access, now_ms, true);
        access_flush_all(&access, false);
        for (uint64_t i = 0; i < count; i++)
            put(i % 2, i, SLICE("value"));
        begin();
        while (!step()) {
            for (int i = 0; i < 300; i++) {
                uint64_t number = round % 3 == 0 ? random_below(&random, count * 2) : next++ % (count * 2);

                if (slot_of_number(number) % 8 == 0)
                    continue;
                if (round % 3 == 1)
                    removed += remove_key((unsigned)number % 2, number);
                else
                    put((unsigned)number % 2, number, SLICE("new"));
            }
        }
        clear = check_clear();
        assert_true(clear >= SLOT_COUNT / 8 && (clear < SLOT_COUNT || (round % 3 == 1 && removed == 0)));
    }
    slot_walk_cancel();
}

static void upheavals_leave_nothing_clear(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        access_begin(&access, now_ms, true);
        access_flush_all(&access, false);
        for (uint64_t i = 0; i < 1000; i++)
            put(0, i, SLICE("value"));
        begin();
        assert_false(step());
        assert_true(slot_walk_is_clear(5));
        if (which == 0)
            access_flush_db(&access, 0, false);
        else
            access_swap_db(&access, 0, 1);
        assert_false(slot_walk_is_clear(5));
        while (!step()) {
        }
        assert_int_equal(check_clear(), 0);
    }
    slot_walk_cancel();
}

static void large_values_are_left_out(void **state)
{
    char *text = mem_alloc_zero(SLOT_WALK_BYTES_MOST + 1);

    (void)state;
    access_begin(&access, now_ms, true);
    access_flush_all(&access, false);
    put(0, 1, slice_make(text, SLOT_WALK_BYTES_MOST));
    put(0, 2, slice_make(text, SLOT_WALK_BYTES_MOST + 1));
    begin();
    while (!step()) {
    }
    assert_int_equal(slot_walk_result()->large, 1);
    assert_int_equal(slot_walk_result()->keys, 1);
    assert_true(slot_walk_is_clear(slot_of_number(1)));
    assert_false(slot_walk_is_clear(slot_of_number(2)));
    assert_int_equal(check_clear(), SLOT_COUNT - 1);
    slot_walk_cancel();
    mem_free(text);
}

static void expired_keys_are_left_alone(void **state)
{
    uint64_t count;

    (void)state;
    access_begin(&access, now_ms, true);
    access_flush_all(&access, false);
    for (uint64_t i = 0; i < 700; i++)
        put(0, i, SLICE("value"));
    count = store_key_count(store, 0);
    begin();
    access_begin(&access, now_ms + 10000, true);
    while (!slot_walk_step(&access)) {
    }
    assert_int_equal(store_key_count(store, 0), count);
    access_begin(&access, now_ms, true);
    assert_int_equal(check_clear(), SLOT_COUNT);
    slot_walk_cancel();
}

/* Changes count until it is released. */
static void a_walk_that_is_held_goes_on_marking(void **state)
{
    (void)state;
    access_begin(&access, now_ms, true);
    access_flush_all(&access, false);
    put(0, 1, SLICE("value"));
    begin();
    slot_walk_hold();
    while (!step()) {
    }
    put(0, 2, SLICE("later"));
    assert_false(slot_walk_is_clear(slot_of_number(2)));
    slot_walk_release();
    put(0, 1, SLICE("later still"));
    assert_true(slot_walk_is_clear(slot_of_number(1)));
    begin();
    slot_walk_hold();
    while (!step()) {
    }
    access_flush_db(&access, 0, false);
    assert_false(slot_walk_is_clear(slot_of_number(1)));
    slot_walk_release();
    assert_false(slot_walk_is_clear(slot_of_number(1)));
    slot_walk_cancel();
}

static void a_walk_lists_keys_of_slots(void **state)
{
    const struct slot_walk_result *result;
    uint64_t wanted[SLOT_COUNT / 64] = {0};
    struct slot_digests listed = {0};
    struct slot_terms terms = terms_now();

    (void)state;
    access_begin(&access, now_ms, true);
    access_flush_all(&access, false);
    for (uint64_t i = 0; i < 20000; i++)
        put(i % 3, i, SLICE("value"));
    for (uint64_t i = 0; i < 100; i++)
        wanted[slot_of_number(i) / 64] |= UINT64_C(1) << slot_of_number(i) % 64;
    begin();
    slot_walk_list(wanted);
    while (!step()) {
    }
    result = slot_walk_result();
    slot_digests_take(&exact, &access, &terms, wanted);
    for (uint32_t i = 0; i < result->list.count; i++) {
        const struct slot_walk_key *key = &result->list.items[i];
        struct slot_sum *sum = &listed.slots[slot_of(slice_make(result->names.data + key->name_at, key->name_size))];

        sum->words[0] += key->sum.words[0];
        sum->words[1] += key->sum.words[1];
    }
    assert_memory_equal(&listed, &exact, sizeof(listed));
    assert_int_equal(result->keys, result->list.count);
    slot_walk_cancel();
}

/* A tag has all keys in one slot: it is marked instead. */
static void a_list_is_bounded(void **state)
{
    uint64_t wanted[SLOT_COUNT / 64];
    char name[32];

    (void)state;
    memset(wanted, 0xff, sizeof(wanted));
    access_begin(&access, now_ms, true);
    access_flush_all(&access, false);
    for (int i = 0; i < 100000; i++) {
        struct change change;
        struct key key;

        (void)snprintf(name, sizeof(name), "{tag}%d", i);
        key = key_make(slice_from_text(name));
        change_begin(&change, &access, 0, &key);
        change_put_string(&change, SLICE("value"), EXPIRE_NEVER);
        change_end(&change, EVENT_STRING, NULL);
    }
    begin();
    slot_walk_list(wanted);
    while (!step()) {
    }
    assert_false(slot_walk_is_clear(slot_of(SLICE("tag"))));
    assert_true(slot_walk_result()->list.count < 100000);
    slot_walk_cancel();
    access_flush_all(&access, false);
}

static int setup(void **state)
{
    (void)state;
    store = store_create(16, 16);
    types_setup(store);
    access_init(&access, store, &counters);
    slot_walk_setup(store);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    slot_walk_teardown();
    store_destroy(&store);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_rest_a_walk_is_exact),       cmocka_unit_test(slots_that_are_clear_are_exact),
        cmocka_unit_test(upheavals_leave_nothing_clear), cmocka_unit_test(large_values_are_left_out),
        cmocka_unit_test(expired_keys_are_left_alone),   cmocka_unit_test(a_walk_that_is_held_goes_on_marking),
        cmocka_unit_test(a_walk_lists_keys_of_slots),    cmocka_unit_test(a_list_is_bounded),
    };

    fence_setup();
    hash_setup();
    return cmocka_run_group_tests_name("slot_walk", tests, setup, teardown);
}
