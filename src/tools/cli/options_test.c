#include "tools/cli/options.h"

#include "base/buffer.h"
#include "base/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PARSE(options, error, ...) parse(options, error, (const char *[]){__VA_ARGS__, NULL})

static bool parse(struct options *options, struct buffer *error, const char **words)
{
    int count = 0;

    while (words[count] != NULL)
        count++;
    buffer_clear(error);
    return options_parse(options, count, (char **)(void *)words, error);
}

static void options_end_where_the_command_begins(void **state)
{
    struct options options;
    struct buffer error = {0};

    (void)state;
    unsetenv("REDISCLI_AUTH");
    assert_true(PARSE(&options, &error, "/x/keydb-cli", "-p", "7", "--csv", "get", "--raw", "-n"));
    assert_string_equal(options.name, "keydb-cli");
    assert_int_equal(options.target.port, 7);
    assert_int_equal(options.format, FORMAT_CSV);
    assert_int_equal(options.word_count, 3);
    assert_string_equal(options.words[1], "--raw");
    assert_null(options.target.password);
    assert_int_equal(options.repeat, 1);
    options_fini(&options);
    assert_true(PARSE(&options, &error, "redis-cli"));
    assert_string_equal(options.name, "redis-cli");
    assert_int_equal(options.word_count, 0);
    assert_string_equal(options.target.host, "127.0.0.1");
    assert_int_equal(options.target.port, 6379);
    options_fini(&options);
    buffer_fini(&error);
}

static void later_options_win(void **state)
{
    struct options options;
    struct buffer error = {0};

    (void)state;
    setenv("REDISCLI_AUTH", "of the environment", 1);
    assert_true(PARSE(&options, &error, "c", "-u", "rediss://me:a%20b@there:1/2", "-p", "3", "-i", "0.25"));
    assert_ptr_equal(options.target.tls, &options.tls);
    assert_string_equal(options.target.host, "there");
    assert_string_equal(options.target.user, "me");
    assert_string_equal(options.target.password, "a b");
    assert_int_equal(options.target.port, 3);
    assert_int_equal(options.target.database, 2);
    assert_int_equal(options.interval_us, 250000);
    assert_true(options.warn_of_password);
    options_fini(&options);
    assert_true(PARSE(&options, &error, "c", "-a", "x", "--no-auth-warning", "--json"));
    assert_string_equal(options.target.password, "x");
    assert_false(options.warn_of_password);
    assert_int_equal(options.target.proto, 3);
    options_fini(&options);
    assert_true(PARSE(&options, &error, "c", "--json", "-2", "--quoted-pattern", "\"a\\x00\""));
    assert_int_equal(options.target.proto, 2);
    assert_string_equal(options.target.password, "of the environment");
    assert_int_equal(options.pattern_size, 2);
    options_fini(&options);
    unsetenv("REDISCLI_AUTH");
    buffer_fini(&error);
}

static void mistakes_are_told(void **state)
{
    static const char *const lines[][5] = {
        {"c", "--nothing", NULL},
        {"c", "-p", NULL},
        {"c", "-2", "-3", NULL},
        {"c", "-x", "-X", "t", NULL},
        {"c", "--ldb", NULL},
        {"c", "-u", "http://x", NULL},
        {"c", "--quoted-pattern", "\"x", NULL},
        {"c", "--quoted-pattern", "x y", NULL},
    };
    struct options options;
    struct buffer error = {0};

    (void)state;
    for (size_t i = 0; i < countof(lines); i++) {
        const char *words[5];

        memcpy(words, lines[i], sizeof(words));
        assert_false(parse(&options, &error, words));
        assert_true(error.size > 0 && error.data[error.size - 1] == '\n');
        options_fini(&options);
    }
    assert_true(PARSE(&options, &error, "c", "--show-pushes", "what"));
    assert_true(error.size > 0);
    options_fini(&options);
    assert_true(PARSE(&options, &error, "c", "-n", "1", "-h"));
    assert_int_equal(options.mode, MODE_HELP);
    options_fini(&options);
    buffer_fini(&error);
}

static void usage_has_the_name_and_every_option(void **state)
{
    static const char *const names[] = {"-h HOST",
                                        "-X TAG",
                                        "--askpass",
                                        "--sni",
                                        "--quoted-input",
                                        "--compare HOST:PORT",
                                        "--rate",
                                        "--mono",
                                        "--memkeys-samples",
                                        "--quoted-pattern",
                                        "--ldb-sync-mode"};
    struct options options;
    struct buffer error = {0}, text = {0};

    (void)state;
    assert_true(PARSE(&options, &error, "redis-cli"));
    options_usage(&options, &text);
    assert_non_null(strstr(buffer_text(&text), "Usage: redis-cli [OPTIONS]"));
    assert_null(strstr(buffer_text(&text), "NAME"));
    assert_null(strstr(buffer_text(&text), "keydb-cli"));
    for (size_t i = 0; i < countof(names); i++)
        assert_non_null(strstr(buffer_text(&text), names[i]));
    options_fini(&options);
    buffer_fini(&text);
    buffer_fini(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_end_where_the_command_begins),
        cmocka_unit_test(later_options_win),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(usage_has_the_name_and_every_option),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
