#include "tools/benchmark/options.h"

#include "base/compiler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define PARSE(options, error, ...) parse(options, error, (const char *[]){"/x/keydb-benchmark", __VA_ARGS__, NULL})

static bool parse(struct bench_options *options, struct buffer *error, const char **words)
{
    int count = 0;

    while (words[count] != NULL)
        count++;
    buffer_clear(error);
    return bench_options_parse(options, count, (char **)(void *)words, error);
}

static void options_end_where_the_command_begins(void **state)
{
    struct bench_options options;
    struct buffer error = {0};

    (void)state;
    assert_true(PARSE(&options, &error, "-p", "7", "-c", "9", "-q", "lpush", "-n", "x"));
    assert_string_equal(options.name, "keydb-benchmark");
    assert_int_equal(options.target.port, 7);
    assert_int_equal(options.clients, 9);
    assert_true(options.quiet);
    assert_int_equal(options.word_count, 3);
    assert_string_equal(options.words[1], "-n");
    bench_options_fini(&options);
    buffer_fini(&error);
}

static void what_is_too_large_is_cut_as_elsewhere(void **state)
{
    struct bench_options options;
    struct buffer error = {0};

    (void)state;
    assert_true(
        PARSE(&options, &error, "-P", "0", "-r", "-5", "--threads", "900", "--precision", "9", "-d", "99999999999"));
    assert_int_equal(options.pipeline, 1);
    assert_int_equal(options.keys, 0);
    assert_int_equal(options.threads, 500);
    assert_int_equal(options.precision, 4);
    assert_int_equal(options.payload_bytes, 1024 * 1024 * 1024);
    bench_options_fini(&options);
    assert_true(PARSE(&options, &error, "-d", "0", "--precision", "-1"));
    assert_int_equal(options.payload_bytes, 1);
    assert_int_equal(options.precision, 3);
    bench_options_fini(&options);
    assert_true(PARSE(&options, &error, "-d", "0-20"));
    assert_int_equal(options.payload_least, 0);
    assert_int_equal(options.payload_bytes, 20);
    bench_options_fini(&options);
    buffer_fini(&error);
}

static void an_error_names_option_and_value(void **state)
{
    static const struct {
        const char *option, *value, *told;
    } rows[] = {
        {"-n", "0", "\"0\" for -n"},
        {"-n", "12x", "\"12x\" for -n"},
        {"-c", "0", "\"0\" for -c"},
        {"-p", "70000", "\"70000\" for -p"},
        {"-d", "5-2", "\"5-2\" for -d"},
        {"-d", "a", "\"a\" for -d"},
        {"--key-size", "0", "\"0\" for --key-size"},
        {"--key-size", "9-3", "for --key-size"},
        {"--key-size", "5-65537", "for --key-size"},
        {"--rate", "-1", "\"-1\" for --rate"},
        {"--duration", "0", "for --duration"},
        {"--dbnum", "-1", "for --dbnum"},
        {"--distribution", "odd", "\"odd\" for --distribution"},
        {"-u", "http://x", ""},
        {"--threads", "x", "--threads"},
    };
    struct bench_options options;
    struct buffer error = {0};

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        assert_false(PARSE(&options, &error, rows[i].option, rows[i].value));
        assert_non_null(strstr(buffer_text(&error), rows[i].told));
        bench_options_fini(&options);
    }
    assert_false(PARSE(&options, &error, "--foo"));
    assert_non_null(strstr(buffer_text(&error), "Invalid option \"--foo\" or option argument missing\n\nUsage: "));
    bench_options_fini(&options);
    assert_false(PARSE(&options, &error, "-n"));
    bench_options_fini(&options);
    buffer_fini(&error);
}

static void what_excludes_each_other_is_refused(void **state)
{
    struct bench_options options;
    struct buffer error = {0};

    (void)state;
    assert_false(PARSE(&options, &error, "--ratio", "1:2", "--ycsb", "A"));
    bench_options_fini(&options);
    assert_false(PARSE(&options, &error, "--mix", "1 PING", "-t", "set"));
    bench_options_fini(&options);
    assert_false(PARSE(&options, &error, "--rate", "5", "-k", "0"));
    bench_options_fini(&options);
    assert_false(PARSE(&options, &error, "--user", "somebody"));
    bench_options_fini(&options);
    assert_false(PARSE(&options, &error, "--key-size", "20"));
    bench_options_fini(&options);
    assert_false(PARSE(&options, &error, "--key-size", "20", "-r", "9", "--ycsb", "A"));
    bench_options_fini(&options);
    assert_false(PARSE(&options, &error, "-x"));
    bench_options_fini(&options);
    assert_true(PARSE(&options, &error, "--key-size", "20-30", "-r", "9"));
    bench_options_fini(&options);
    assert_true(PARSE(&options, &error, "-t", "set", "get", "k"));
    bench_options_fini(&options);
    buffer_fini(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_end_where_the_command_begins),
        cmocka_unit_test(what_is_too_large_is_cut_as_elsewhere),
        cmocka_unit_test(an_error_names_option_and_value),
        cmocka_unit_test(what_excludes_each_other_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
