#include "tools/cli/history.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static bool is_secret(const char *line)
{
    struct words words = {0};
    bool secret;

    assert_true(words_split(slice_from_text(line), &words));
    secret = history_is_secret(words.items, words.count);
    words_fini(&words);
    return secret;
}

static void passwords_are_not_kept(void **state)
{
    (void)state;
    assert_true(is_secret("AUTH x"));
    assert_true(is_secret("auth user x"));
    assert_true(is_secret("acl setuser a >x"));
    assert_true(is_secret("config set requirepass x"));
    assert_true(is_secret("CONFIG SET hz 10 MasterAuth x"));
    assert_true(is_secret("hello 3 auth a b"));
    assert_true(is_secret("migrate h 1 k 0 1 AUTH2 a b"));
    assert_true(is_secret("migrate h 1 k 0 1 auth b"));
    assert_false(is_secret("acl getuser a"));
    assert_false(is_secret("config get requirepass"));
    assert_false(is_secret("config set hz 10"));
    assert_false(is_secret("hello 3"));
    assert_false(is_secret("get auth"));
    assert_false(is_secret("migrate h 1 k 0 1"));
    assert_false(history_is_secret(NULL, 0));
}

static void lines_are_read_again(void **state)
{
    char path[] = "/tmp/history-test-XXXXXX";
    struct history history;
    struct stat facts;
    int descriptor = mkstemp(path);

    (void)state;
    assert_true(descriptor >= 0);
    close(descriptor);
    assert_int_equal(chmod(path, 0644), 0);
    history_init(&history, path);
    history_add(&history, "a");
    history_add(&history, "a");
    history_add(&history, "");
    history_add(&history, "b 'c'");
    assert_int_equal(history.count, 2);
    history_fini(&history);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0600);
    history_init(&history, path);
    assert_int_equal(history.count, 2);
    assert_string_equal(history.items[1], "b 'c'");
    history_fini(&history);
    unlink(path);
}

static void the_oldest_lines_go(void **state)
{
    struct history history;
    char line[32];

    (void)state;
    history_init(&history, NULL);
    for (int i = 0; i <= HISTORY_LINES_MOST; i++) {
        snprintf(line, sizeof(line), "%d", i);
        history_add(&history, line);
    }
    assert_int_equal(history.count, HISTORY_LINES_MOST);
    assert_string_equal(history.items[0], "1");
    history_fini(&history);
}

static void the_environment_chooses_the_file(void **state)
{
    char *path;

    (void)state;
    setenv("HOME", "/home/of/me", 1);
    unsetenv("HISTORY_TEST");
    path = history_path("HISTORY_TEST", ".name");
    assert_string_equal(path, "/home/of/me/.name");
    mem_free(path);
    setenv("HISTORY_TEST", "/x/y", 1);
    path = history_path("HISTORY_TEST", ".name");
    assert_string_equal(path, "/x/y");
    mem_free(path);
    setenv("HISTORY_TEST", "/dev/null", 1);
    assert_null(history_path("HISTORY_TEST", ".name"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_are_not_kept),
        cmocka_unit_test(lines_are_read_again),
        cmocka_unit_test(the_oldest_lines_go),
        cmocka_unit_test(the_environment_chooses_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
