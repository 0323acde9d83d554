#include "persist/digest.h"

#include "base/fence.h"
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The digest of the same data in Redis. */
static const char digest_of_number[] = "e1cf90774e995ae03de66e8109dc5cb9d9c2dc83"; /* 12345 */
static const char digest_of_text[] = "36b23a1456b2dce2c3ed252c456761301dba8060";   /* hello */
static const char digest_of_later[] = "5ffcb0c56149f0ca78652854ec9bb30201bf2804";  /* bye, with a deadline */
static const char digest_of_data[] = "4d502853d15e591894b959f76fd46d7f32db0465";   /* these, and hello in 3 */
static const char digest_of_nothing[] = "0000000000000000000000000000000000000000";

static const int64_t now_ms = 1800000000000;

static struct store_counters counters; /* global: of the test's only thread */

static void begin(struct access *access, struct store **store)
{
    *store = store_create(64, 16);
    access_init(access, *store, &counters);
    access_begin(access, now_ms, true);
}

static void put(struct access *access, unsigned db, const char *name, const char *value, int64_t expire_ms)
{
    struct key key = key_make(slice_from_text(name));
    struct change change;

    change_begin(&change, access, db, &key);
    change_put_string(&change, slice_from_text(value), expire_ms);
    change_end(&change, EVENT_STRING, NULL);
}

static void assert_value(struct access *access, const char *name, const char *expected)
{
    struct key key = key_make(slice_from_text(name));
    struct digest digest = {0};
    char text[DIGEST_TEXT_BYTES];

    digest_mix_value(&digest, access_probe(access, 0, &key));
    digest_format(&digest, text);
    assert_string_equal(text, expected);
}

static void assert_all(struct access *access, const char *expected)
{
    struct digest digest;
    char text[DIGEST_TEXT_BYTES];

    digest_all(&digest, access);
    digest_format(&digest, text);
    assert_string_equal(text, expected);
}

static void known_data_have_known_digests(void **state)
{
    struct store *store;
    struct access access;

    (void)state;
    begin(&access, &store);
    assert_all(&access, digest_of_nothing);
    put(&access, 3, "text", "hello", EXPIRE_NEVER);
    put(&access, 0, "number", "12345", EXPIRE_NEVER);
    put(&access, 0, "later", "bye", now_ms + 1000);
    put(&access, 0, "text", "hello", EXPIRE_NEVER);
    assert_value(&access, "number", digest_of_number);
    assert_value(&access, "text", digest_of_text);
    assert_value(&access, "later", digest_of_later);
    assert_all(&access, digest_of_data);
    store_destroy(&store);
}

static void the_way_there_leaves_no_trace(void **state)
{
    struct store *store;
    struct access access;
    struct key key = key_make(SLICE("text"));

    (void)state;
    begin(&access, &store);
    put(&access, 0, "text", "hello", now_ms + 1000);
    put(&access, 7, "text", "hello", EXPIRE_NEVER);
    assert_true(access_delete(&access, 7, &key));
    put(&access, 0, "later", "bye", now_ms + 5000);
    put(&access, 0, "text", "hello", EXPIRE_NEVER);
    put(&access, 0, "number", "12344", EXPIRE_NEVER);
    put(&access, 3, "text", "hello", EXPIRE_NEVER);
    put(&access, 0, "number", "12345", EXPIRE_NEVER);
    assert_all(&access, digest_of_data);
    store_destroy(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_data_have_known_digests),
        cmocka_unit_test(the_way_there_leaves_no_trace),
    };

    fence_setup();
    hash_setup();
    return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
