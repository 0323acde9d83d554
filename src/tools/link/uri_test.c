#include "tools/link/uri.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *text, bool tls, const char *user, const char *password, const char *host, int port,
                   int database)
{
    struct uri uri;

    assert_null(uri_parse(text, &uri));
    assert_int_equal(uri.tls, tls);
    assert_int_equal(uri.user != NULL, user != NULL);
    if (user != NULL)
        assert_string_equal(uri.user, user);
    assert_int_equal(uri.password != NULL, password != NULL);
    if (password != NULL)
        assert_string_equal(uri.password, password);
    assert_int_equal(uri.host != NULL, host != NULL);
    if (host != NULL)
        assert_string_equal(uri.host, host);
    assert_int_equal(uri.port, port);
    assert_int_equal(uri.database, database);
    uri_fini(&uri);
    assert_null(uri.host);
}

static void parts_are_told_apart(void **state)
{
    (void)state;
    expect("redis://", false, NULL, NULL, NULL, 0, -1);
    expect("redis://there", false, NULL, NULL, "there", 0, -1);
    expect("redis://there:1", false, NULL, NULL, "there", 1, -1);
    expect("redis://:7/", false, NULL, NULL, NULL, 7, -1);
    expect("REDIS://there/12", false, NULL, NULL, "there", 0, 12);
    expect("rediss://secret@there:1/2", true, NULL, "secret", "there", 1, 2);
    expect("keydb://me:secret@there:1/2", false, "me", "secret", "there", 1, 2);
    expect("keydbs://me:@there", true, "me", "", "there", 0, -1);
    expect("redis://:secret@there", false, NULL, "secret", "there", 0, -1);
    expect("redis://m%41%3a:%40%2F@h", false, "mA:", "@/", "h", 0, -1);
    expect("redis://[::1]:7000/3", false, NULL, NULL, "::1", 7000, 3);
    expect("redis://[::1]", false, NULL, NULL, "::1", 0, -1);
    expect("redis://[::1", false, NULL, NULL, "[::1", 0, -1);
}

static void refused(const char *text, const char *why)
{
    struct uri uri;
    const char *said = uri_parse(text, &uri);

    assert_non_null(said);
    assert_string_equal(said, why);
    assert_null(uri.user);
    assert_null(uri.password);
}

static void what_is_no_uri_is_refused(void **state)
{
    (void)state;
    refused("", "Invalid URI scheme");
    refused("http://there", "Invalid URI scheme");
    refused("redis:/there", "Invalid URI scheme");
    refused("redis://%4@there", "Illegal character in URI encoding");
    refused("redis://%@there", "Illegal character in URI encoding");
    refused("redis://a:%zz@there", "Illegal character in URI encoding");
    refused("redis://%g0:x@there", "Illegal character in URI encoding");
    assert_true(uri_is("rediss://x"));
    assert_false(uri_is("x.example:6379"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_told_apart),
        cmocka_unit_test(what_is_no_uri_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
