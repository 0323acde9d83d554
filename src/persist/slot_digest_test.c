#include "persist/slot_digest.h"

#include "base/fence.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/test_seed.h"
#include "data/hyperloglog.h"
#include "data/set.h"
#include "persist/types.h"
#include "store/stamp.h"
#include "store/subkey_ttl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const int64_t now_ms = 1800000000000;

static struct store_counters counters; /* global: of the test's only thread */

struct keyspace {
    struct store *store;
    struct access access;
    struct slot_digests digests;
};

static struct keyspace *keyspace_create(uint32_t stripe_count)
{
    struct keyspace *keyspace = mem_alloc_zero(sizeof(*keyspace));

    keyspace->store = store_create(stripe_count, 16);
    types_setup(keyspace->store);
    access_init(&keyspace->access, keyspace->store, &counters);
    access_begin(&keyspace->access, now_ms, true);
    return keyspace;
}

static void keyspace_destroy(struct keyspace *keyspace)
{
    store_destroy(&keyspace->store);
    mem_free(keyspace);
}

static void put(struct keyspace *keyspace, unsigned db, const char *name, struct slice value, int64_t expire_ms)
{
    struct key key = key_make(slice_from_text(name));
    struct change change;

    change_begin(&change, &keyspace->access, db, &key);
    change_put_string(&change, value, expire_ms);
    change_end(&change, EVENT_STRING, NULL);
}

static struct slot_terms terms_of(const char *seed)
{
    return (struct slot_terms){.secret = slot_secret_of(slice_from_text(seed)), .until_ms = now_ms};
}

static void take(struct keyspace *keyspace, const struct slot_terms *terms)
{
    slot_digests_take(&keyspace->digests, &keyspace->access, terms, NULL);
}

static bool are_equal(struct keyspace *a, struct keyspace *b)
{
    struct slot_terms terms = terms_of("equal");

    take(a, &terms);
    take(b, &terms);
    return memcmp(&a->digests, &b->digests, sizeof(a->digests)) == 0;
}

static bool is_empty(const struct keyspace *keyspace, const char *key)
{
    const struct slot_sum *sum = &keyspace->digests.slots[slot_of(slice_from_text(key))];

    return sum->words[0] == 0 && sum->words[1] == 0;
}

static void order_and_stripes_leave_no_trace(void **state)
{
    struct keyspace *a = keyspace_create(1), *b = keyspace_create(64);
    char name[32], value[32];

    (void)state;
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "key:%d", i);
        snprintf(value, sizeof(value), "%d", i * 7);
        put(a, i % 3, name, slice_from_text(value), i % 5 == 0 ? now_ms + i + 1 : EXPIRE_NEVER);
    }
    for (int i = 2999; i >= 0; i--) {
        snprintf(name, sizeof(name), "key:%d", i);
        snprintf(value, sizeof(value), "%d", i * 7);
        put(b, i % 3, name, SLICE("x"), now_ms + 500);
        put(b, i % 3, name, slice_from_text(value), i % 5 == 0 ? now_ms + i + 1 : EXPIRE_NEVER);
    }
    assert_true(are_equal(a, b));
    put(b, 0, "one more", SLICE("v"), EXPIRE_NEVER);
    assert_false(are_equal(a, b));
    assert_true(is_empty(a, "one more"));
    assert_false(is_empty(b, "one more"));
    keyspace_destroy(a);
    keyspace_destroy(b);
}

static void all_that_counts_counts(void **state)
{
    struct keyspace *a = keyspace_create(4), *b = keyspace_create(4);

    (void)state;
    put(a, 0, "k", SLICE("value"), now_ms + 1000);
    put(b, 1, "k", SLICE("value"), now_ms + 1000);
    assert_false(are_equal(a, b)); /* the database */
    access_swap_db(&b->access, 0, 1);
    assert_true(are_equal(a, b));
    put(b, 0, "k", SLICE("value"), now_ms + 1001);
    assert_false(are_equal(a, b)); /* the time of a deadline */
    put(b, 0, "k", SLICE("valuE"), now_ms + 1000);
    assert_false(are_equal(a, b));
    put(b, 0, "k", SLICE("value"), now_ms + 1000);
    assert_true(are_equal(a, b));
    put(a, 0, "{k}1", SLICE("1"), EXPIRE_NEVER); /* values of the same slot change places */
    put(a, 0, "{k}2", SLICE("2"), EXPIRE_NEVER);
    put(b, 0, "{k}1", SLICE("2"), EXPIRE_NEVER);
    put(b, 0, "{k}2", SLICE("1"), EXPIRE_NEVER);
    assert_false(are_equal(a, b));
    keyspace_destroy(a);
    keyspace_destroy(b);
}

static void what_is_due_is_as_absent(void **state)
{
    struct keyspace *a = keyspace_create(4), *b = keyspace_create(4);
    struct slot_terms terms = terms_of("due");

    (void)state;
    put(a, 0, "k", SLICE("value"), now_ms + 1000);
    terms.until_ms = now_ms + 1000;
    take(a, &terms);
    assert_false(is_empty(a, "k")); /* as for reads: at that very time it is still there */
    terms.until_ms = now_ms + 1001;
    take(a, &terms);
    assert_true(is_empty(a, "k"));
    put(b, 0, "k", SLICE("value"), now_ms - 1);
    terms.until_ms = now_ms - 1;
    take(b, &terms);
    assert_false(is_empty(b, "k"));
    keyspace_destroy(a);
    keyspace_destroy(b);
}

/* The number of stripes is also the longest set that is a listpack. */
static void put_set(struct keyspace *keyspace, const char *const *members, const int64_t *deadlines)
{
    const struct set_limits limits = {.listpack_entries = keyspace->store->stripe_mask, .listpack_bytes = 64};
    struct key key = key_make(SLICE("set"));
    struct value set = set_create(&limits, slice_from_text(members[0]), 1);
    struct change change;

    for (unsigned i = 0; members[i] != NULL; i++)
        set_add(&set, &limits, slice_from_text(members[i]));
    change_begin(&change, &keyspace->access, 0, &key);
    change_put_value(&change, TYPE_SET, set, EXPIRE_NEVER);
    for (unsigned i = 0; deadlines != NULL && members[i] != NULL; i++) {
        if (deadlines[i] != EXPIRE_NEVER)
            change_member_expire(&change, slice_from_text(members[i]), deadlines[i]);
    }
    change_end(&change, EVENT_SET, NULL);
}

static void members_that_are_due_are_as_absent(void **state)
{
    struct keyspace *a = keyspace_create(1), *b = keyspace_create(64);
    struct slot_terms terms = terms_of("members");

    (void)state;
    put_set(a, (const char *[]){"a", "b", "c", NULL}, (int64_t[]){now_ms + 10, now_ms + 20, EXPIRE_NEVER});
    put_set(b, (const char *[]){"c", "b", "a", NULL}, (int64_t[]){EXPIRE_NEVER, now_ms + 20, now_ms + 10});
    assert_true(are_equal(a, b));
    put_set(b, (const char *[]){"b", "c", NULL}, (int64_t[]){now_ms + 20, EXPIRE_NEVER});
    assert_false(are_equal(a, b));
    terms.until_ms = now_ms + 11;
    take(a, &terms);
    take(b, &terms);
    assert_memory_equal(&a->digests, &b->digests, sizeof(a->digests));
    put_set(b, (const char *[]){"b", "c", NULL}, (int64_t[]){now_ms + 21, EXPIRE_NEVER});
    take(b, &terms);
    assert_memory_not_equal(&a->digests, &b->digests, sizeof(a->digests));
    put_set(b, (const char *[]){"c", NULL}, NULL);
    terms.until_ms = now_ms + 21;
    take(a, &terms);
    take(b, &terms);
    assert_memory_equal(&a->digests, &b->digests, sizeof(a->digests));
    put_set(b, (const char *[]){"b", "c", NULL}, (int64_t[]){now_ms + 10, now_ms + 20}); /* none is left */
    take(b, &terms);
    assert_true(is_empty(b, "set"));
    keyspace_destroy(a);
    keyspace_destroy(b);
}

static void sketches_compare_by_registers(void **state)
{
    struct keyspace *a = keyspace_create(4), *b = keyspace_create(4);
    struct buffer sketch = {0};

    (void)state;
    hll_init(&sketch);
    hll_raise(&sketch, hll_place_of(SLICE("a")), 3000);
    put(a, 0, "hll", buffer_slice(&sketch), EXPIRE_NEVER);
    hll_make_dense(&sketch);
    hll_remember_count(sketch.data, 1);
    put(b, 0, "hll", buffer_slice(&sketch), EXPIRE_NEVER);
    assert_true(are_equal(a, b));
    hll_raise(&sketch, hll_place_of(SLICE("b")), 3000);
    put(b, 0, "hll", buffer_slice(&sketch), EXPIRE_NEVER);
    assert_false(are_equal(a, b));
    buffer_fini(&sketch);
    keyspace_destroy(a);
    keyspace_destroy(b);
}

/* Servers of different versions and processors compare: the numbers are for ever. */
static void known_data_have_known_digests(void **state)
{
    struct keyspace *a = keyspace_create(4);
    struct slot_terms terms = terms_of("");
    char text[SLOT_SUM_TEXT_BYTES];
    struct slot_terms other = terms_of("other");

    (void)state;
    put(a, 0, "key:000000000042", SLICE("a value of some bytes"), EXPIRE_NEVER);
    take(a, &terms);
    slot_sum_format(&a->digests.slots[7803], text);
    assert_string_equal(text, "c6581b7ac5654e82c971db7d37cd13bd");
    take(a, &other);
    slot_sum_format(&a->digests.slots[7803], text);
    assert_string_not_equal(text, "c6581b7ac5654e82c971db7d37cd13bd");
    keyspace_destroy(a);
}

static void set_version(struct keyspace *keyspace, uint64_t version)
{
    struct key key = key_make(SLICE("k"));
    struct change change;

    change_begin(&change, &keyspace->access, 0, &key);
    change_set_version(&change, version);
    change_abandon(&change);
}

/* Whether they are equal where the origin is number 3 of a, and number 5 of b. */
static bool are_equal_with_stamps(struct keyspace *a, struct keyspace *b)
{
    uint64_t origins_of_a[VERSION_ORIGINS] = {[3] = 77}, origins_of_b[VERSION_ORIGINS] = {[5] = 77};
    struct slot_terms terms_of_a = terms_of("stamps"), terms_of_b = terms_of("stamps");

    terms_of_a.origins = origins_of_a;
    terms_of_b.origins = origins_of_b;
    take(a, &terms_of_a);
    take(b, &terms_of_b);
    return memcmp(&a->digests, &b->digests, sizeof(a->digests)) == 0;
}

static void stamps_count_if_origins_are_named(void **state)
{
    struct keyspace *a = keyspace_create(1), *b = keyspace_create(1);
    const uint64_t stamp = stamp_at(now_ms);

    (void)state;
    put(a, 0, "k", SLICE("v"), EXPIRE_NEVER);
    put(b, 0, "k", SLICE("v"), EXPIRE_NEVER);
    set_version(a, version_make(stamp, false, 3));
    assert_false(are_equal_with_stamps(a, b));
    set_version(b, version_make(stamp, false, 5));
    assert_true(are_equal_with_stamps(a, b));
    set_version(b, version_make(stamp, false, 3)); /* another origin */
    assert_false(are_equal_with_stamps(a, b));
    set_version(b, version_make(stamp + 1, false, 5));
    assert_false(are_equal_with_stamps(a, b));
    set_version(b, version_make(stamp, true, 5));
    assert_false(are_equal_with_stamps(a, b));
    assert_true(are_equal(a, b)); /* they are not named */
    keyspace_destroy(a);
    keyspace_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_and_stripes_leave_no_trace),  cmocka_unit_test(all_that_counts_counts),
        cmocka_unit_test(what_is_due_is_as_absent),          cmocka_unit_test(members_that_are_due_are_as_absent),
        cmocka_unit_test(sketches_compare_by_registers),     cmocka_unit_test(known_data_have_known_digests),
        cmocka_unit_test(stamps_count_if_origins_are_named),
    };

    fence_setup();
    hash_setup();
    return cmocka_run_group_tests_name("slot_digest", tests, NULL, NULL);
}
