#include "base/file.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/test_dies.h"
#include "base/thread.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/config/save_points.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARGS_MOST = 32 };

static char folder[] = "/tmp/config_test_XXXXXX";
static char conf_path[sizeof(folder) + 16];

/* --- helpers --- */

static int begin(void **state)
{
    (void)state;
    assert_int_equal(chdir(folder), 0);
    config_setup();
    save_points_setup();
    return 0;
}

static int end(void **state)
{
    (void)state;
    config_teardown();
    return 0;
}

static void write_file(const char *path, const char *text)
{
    assert_int_equal(file_store(path, slice_from_text(text)), STATUS_OK);
}

/* Calls config_load with these words; returns its output to standard error. */
static bool load(char *said, size_t said_size, int *exit_status, const char *const *words)
{
    static char copies[ARGS_MOST][256];
    static char *args[ARGS_MOST + 1];
    int count = 1, kept = dup(STDERR_FILENO), pipe_ends[2];
    ssize_t got;
    bool done;

    strcpy(copies[0], "keydb-server");
    args[0] = copies[0];
    for (; *words != NULL; words++, count++) {
        assert_true(count < ARGS_MOST);
        snprintf(copies[count], sizeof(copies[count]), "%s", *words);
        args[count] = copies[count];
    }
    args[count] = NULL;
    assert_int_equal(pipe(pipe_ends), 0);
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[1]);
    done = config_load(count, args, exit_status);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);
    got = read(pipe_ends[0], said, said_size - 1);
    said[got > 0 ? got : 0] = '\0';
    close(pipe_ends[0]);
    return done;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void load_well(const char *const *words)
{
    char said[4096];
    int exit_status;

    if (!load(said, sizeof(said), &exit_status, words))
        fail_msg("refused: %s", said);
}

/* The message without its first two lines. */
static void load_badly(const char *const *words, const char *expected)
{
    char said[4096];
    const char *text;
    int exit_status = 0;

    assert_false(load(said, sizeof(said), &exit_status, words));
    assert_int_equal(exit_status, 1);
    text = strstr(said, ") ***\n");
    assert_non_null(text);
    assert_string_equal(text + 6, expected);
}

static void check_value(const char *name, const char *expected)
{
    struct buffer text = {0};

    assert_true(config_get_text(name, &text));
    assert_string_equal(buffer_text(&text), expected);
    buffer_fini(&text);
}

static void set_badly(const char *name, const char *value, const char *expected)
{
    char error[OPTION_ERROR_SPACE];

    assert_false(config_set_text(name, slice_from_text(value), error, sizeof(error)));
    assert_string_equal(error, expected);
}

static void set_well(const char *name, const char *value)
{
    char error[OPTION_ERROR_SPACE];

    if (!config_set_text(name, slice_from_text(value), error, sizeof(error)))
        fail_msg("%s %s: %s", name, value, error);
}

/* --- tests --- */

static void command_lines(void **state)
{
    (void)state;
    load_well(WORDS("--port", "7000", "--maxmemory", "1gb", "--save", "--timeout 5", "--requirepass", "--x y\n\"",
                    "--bind", "127.0.0.1", "-::1", "--SERVER-threads", "2", "--save", "60", "1", "--save", "30", "2"));
    assert_int_equal(OPTION_GET(option_port), 7000);
    check_value("maxmemory", "1073741824");
    check_value("timeout", "5");
    check_value("requirepass", "--x y\n\"");
    check_value("bind", "127.0.0.1 -::1");
    check_value("io-threads", "2");
    check_value("save", "60 1 30 2");
}

static void presets(void **state)
{
    (void)state;
    load_well(WORDS("--hz", "9999", "--save", ""));
    check_value("save", "");
    check_value("hz", "500");
    check_value("bind", "* -::*");
    check_value("cluster-enabled", "no");
    check_value("client-output-buffer-limit", "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60");
}

static void mistakes_on_the_command_line(void **state)
{
    (void)state;
    load_badly(WORDS("--port", "abc"), "Reading the configuration file, at line 2\n>>> 'port \"abc\"'\n"
                                       "argument couldn't be parsed into an integer\n");
    load_badly(WORDS("--port", "1", "--hz"),
               "Reading the configuration file, at line 3\n>>> 'hz'\nwrong number of arguments\n");
    load_badly(WORDS("--nosuch", "1"), "Reading the configuration file, at line 2\n>>> 'nosuch \"1\"'\n"
                                       "Bad directive or wrong number of arguments\n");
    load_badly(WORDS("--port", "--hz"), "Reading the configuration file, at line 2\n>>> 'port \"--hz\"'\n"
                                        "argument couldn't be parsed into an integer\n");
    load_badly(WORDS("-x"), "Reading the configuration file, at line 2\n>>> '\"-x\"'\n"
                            "Bad directive or wrong number of arguments\n");
    load_badly(WORDS("--logfile", "/nosuch/x"), "Can't open the log file: No such file or directory\n");
}

static void files(void **state)
{
    char included[128], text[512];

    (void)state;
    snprintf(included, sizeof(included), "%s/more.conf", folder);
    write_file(included, "tcp-keepalive 77\nport 1\n");
    snprintf(text, sizeof(text),
             "# one\r\n\n  port 7001\t\ninclude %s/mor*.conf\ninclude %s/none*.conf\n"
             "timeout 3\r\nsave 10 20\nsave 30 40\ntimeout 4",
             folder, folder);
    write_file(conf_path, text);
    load_well(WORDS(conf_path, "--hz", "20"));
    check_value("port", "1");
    check_value("tcp-keepalive", "77");
    check_value("timeout", "4");
    check_value("save", "10 20 30 40");
    check_value("hz", "20");
    assert_string_equal(config_file_path(), conf_path);
}

static void mistakes_in_files(void **state)
{
    (void)state;
    write_file(conf_path, "port 1\n\nhz \"a\n");
    load_badly(WORDS(conf_path), "Reading the configuration file, at line 3\n>>> 'hz \"a'\n"
                                 "Unbalanced quotes in configuration line\n");
    config_teardown();
    config_setup();
    save_points_setup();
    write_file(conf_path, "port 1\n");
    load_badly(WORDS(conf_path, "--nosuch", "1"), "Reading the configuration file, at line 3\n>>> 'nosuch \"1\"'\n"
                                                  "Bad directive or wrong number of arguments\n");
    config_teardown();
    config_setup();
    save_points_setup();
    write_file(conf_path, "cluster-enabled yes\n");
    load_badly(WORDS(conf_path), "Reading the configuration file, at line 1\n>>> 'cluster-enabled yes'\n"
                                 "cluster mode is not supported\n");
}

/* --- setting: all or nothing --- */

static unsigned called;
static bool refuses;

static const char *count_calls(const struct option_row *row)
{
    (void)row;
    called++;
    return refuses ? "not today" : NULL;
}

static void setting_calls_who_asked(void **state)
{
    (void)state;
    called = 0;
    refuses = false;
    config_on_change("timeout", count_calls);
    set_well("timeout", "5");
    assert_int_equal(called, 1);
    set_well("timeout", "5"); /* the same */
    assert_int_equal(called, 1);
    refuses = true;
    set_badly("timeout", "6", "not today");
    assert_int_equal(called, 3); /* once more with the old value */
    check_value("timeout", "5");
    set_badly("timeout", "x", "argument couldn't be parsed into an integer");
    assert_int_equal(called, 3);
    set_badly("client-output-buffer-limit", "replica 1 2", "Wrong number of arguments in buffer limit configuration.");
    set_badly("client-output-buffer-limit", "master 1 2 3",
              "Invalid client class specified in buffer limit configuration.");
    set_badly("client-output-buffer-limit", "normal 1 2 -3",
              "Error in hard, soft or soft_seconds setting in buffer limit configuration.");
    set_well("client-output-buffer-limit", "replica 1mb 2 3");
    check_value("client-output-buffer-limit", "normal 0 0 0 slave 1048576 2 3 pubsub 33554432 8388608 60");
    set_badly("proc-title-template", "{foo}", "template format is invalid or contains unknown variables");
    set_badly("proc-title-template", "", "template format is invalid or contains unknown variables");
    set_badly("proc-title-template", "{title", "template format is invalid or contains unknown variables");
    set_badly("dir", "/nosuch", "No such file or directory");
    set_badly("bind", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17", "Too many bind addresses specified.");
    check_value("bind", "* -::*");
}

/* --- rewriting --- */

static void check_file(const char *expected)
{
    char *data;
    size_t size;

    assert_int_equal(file_load(conf_path, 65536, &data, &size), STATUS_OK);
    assert_string_equal(data, expected);
    mem_free(data);
}

static void rewriting_keeps_comments_and_order(void **state)
{
    char expected[512];

    (void)state;
    write_file(conf_path, "# hello\nport 7001\n\ntimeout 1\n  # again\nmaxmemory 1024\ntimeout 2\nsave 1 2\n"
                          "save 3 4\nsave 5 6\ninclude /none*.conf\n");
    load_well(WORDS(conf_path));
    set_well("maxmemory", "3gb");
    set_well("save", "7 8");
    set_well("requirepass", "a b\"");
    assert_null(config_rewrite());
    snprintf(expected, sizeof(expected),
             "# hello\nport 7001\n\ntimeout 2\n  # again\nmaxmemory 3gb\nsave 7 8\ninclude /none*.conf\n"
             "# Generated by CONFIG REWRITE\nrequirepass \"a b\\\"\"\ndir %s\n",
             folder);
    check_file(expected);

    /* Again changes nothing; defaults of options that have a line stay. */
    assert_null(config_rewrite());
    check_file(expected);
    set_well("save", "");
    set_well("timeout", "0");
    set_well("maxmemory", "0");
    set_well("requirepass", "");
    assert_null(config_rewrite());
    snprintf(expected, sizeof(expected),
             "# hello\nport 7001\n\ntimeout 0\n  # again\nmaxmemory 0\nsave \"\"\ninclude /none*.conf\n"
             "# Generated by CONFIG REWRITE\nrequirepass \"\"\ndir %s\n",
             folder);
    check_file(expected);
}

static void rewriting_marks_what_nobody_knows(void **state)
{
    char expected[512];

    (void)state;
    write_file(conf_path, "port 7001\n");
    load_well(WORDS(conf_path));
    write_file(conf_path, "nosuch 1\nport \"x\nport 5\n");
    assert_null(config_rewrite());
    snprintf(expected, sizeof(expected),
             "# ??? nosuch 1\n# ??? port \"x\nport 7001\n# Generated by CONFIG REWRITE\ndir %s\n", folder);
    check_file(expected);
    assert_int_equal(unlink(conf_path), 0);
    assert_null(config_rewrite()); /* a new one */
    snprintf(expected, sizeof(expected), "# Generated by CONFIG REWRITE\nport 7001\ndir %s\n", folder);
    check_file(expected);
}

static void rewriting_fails_cleanly_at_every_step(void **state)
{
    static const char old[] = "port 7001\n";
    uint64_t rounds = 0;

    (void)state;
    write_file(conf_path, old);
    load_well(WORDS(conf_path));
    set_well("port", "7002");
    for (; fault_arm(FAULT_FILE, rounds); rounds++) {
        bool failed = config_rewrite() != NULL;
        FILE *file = fopen(conf_path, "re"); /* not through the functions that are made to fail */
        char text[4096];

        assert_non_null(file);
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
        assert_int_equal(fault_fired(), failed);
        assert_true(strcmp(text, old) == 0 || strstr(text, "port 7002\n") == text);
    }
    assert_true(rounds > 3);
}

/* --- directives of other parts --- */

static char directive_words[64];

static const char *run_directive(const struct slice *words, size_t count)
{
    if (count != 2)
        return "two words, please";
    snprintf(directive_words, sizeof(directive_words), "%.*s", (int)words[1].size, words[1].data);
    return NULL;
}

static void rewrite_directive(struct buffer *lines)
{
    buffer_printf(lines, "special again-%s\n", directive_words);
}

static void directives(void **state)
{
    static const struct config_directive directive = {"special", run_directive, rewrite_directive};
    char *data;
    size_t size;

    (void)state;
    config_on_directive(&directive);
    write_file(conf_path, "SPECIAL one\n");
    load_well(WORDS(conf_path));
    assert_string_equal(directive_words, "one");
    assert_null(config_rewrite());
    assert_int_equal(file_load(conf_path, 65536, &data, &size), STATUS_OK);
    assert_true(strstr(data, "special again-one\n") == data);
    mem_free(data);
    load_badly(WORDS("--special"), "Reading the configuration file, at line 2\n>>> 'special'\ntwo words, please\n");
}

static void add_a_row(void)
{
    static _Atomic int64_t number;
    static const struct option_row rows[] = {ROW_INT("late", &number, 1, 0, 10, OPTION_MUTABLE, "Late.")};

    config_add_rows(rows, countof(rows));
}

static void add_a_row_with_traffic(void)
{
    gate_traffic_begin();
    add_a_row();
}

static void set_an_option_with_traffic(void)
{
    char error[OPTION_ERROR_SPACE];

    gate_traffic_begin();
    (void)!config_set_text("hz", SLICE("20"), error, sizeof(error));
}

static void add_it(void *argument)
{
    (void)argument;
    add_a_row();
}

static void add_a_row_elsewhere(void)
{
    struct thread thread = {0};

    thread_start(&thread, "other", add_it, NULL);
    thread_join(&thread);
}

static void promises_are_kept(void **state)
{
    (void)state;
    assert_false(dies(add_a_row));
    assert_true(dies(add_a_row_elsewhere));
    assert_true(dies(add_a_row_with_traffic));
    assert_true(dies(set_an_option_with_traffic));
    load_well(WORDS("--hz", "10"));
    assert_true(dies(add_a_row)); /* there are no more rows */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(command_lines, begin, end),
        cmocka_unit_test_setup_teardown(presets, begin, end),
        cmocka_unit_test_setup_teardown(mistakes_on_the_command_line, begin, end),
        cmocka_unit_test_setup_teardown(files, begin, end),
        cmocka_unit_test_setup_teardown(mistakes_in_files, begin, end),
        cmocka_unit_test_setup_teardown(setting_calls_who_asked, begin, end),
        cmocka_unit_test_setup_teardown(rewriting_keeps_comments_and_order, begin, end),
        cmocka_unit_test_setup_teardown(rewriting_marks_what_nobody_knows, begin, end),
        cmocka_unit_test_setup_teardown(rewriting_fails_cleanly_at_every_step, begin, end),
        cmocka_unit_test_setup_teardown(directives, begin, end),
        cmocka_unit_test_setup_teardown(promises_are_kept, begin, end),
    };
    int failed;

    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(conf_path, sizeof(conf_path), "%s/keydb.conf", folder);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (chdir(folder) == 0) {
        unlink("keydb.conf");
        unlink("more.conf");
        rmdir(folder);
    }
    return failed;
}
