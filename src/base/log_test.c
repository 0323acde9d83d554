#include "base/log.h"
#include "base/file.h"
#include "base/log_priv.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static char path[] = "/tmp/keydb-log-XXXXXX";

static char moved[sizeof(path) + 16]; /* the name of the file after it was moved */

static char *load_file(const char *name)
{
    char *text;
    size_t size;

    assert_int_equal(file_load(name, 10000000, &text, &size), STATUS_OK);
    return text;
}

static char *load(void)
{
    return load_file(path);
}

static void check_file(const char *name, const char *pattern)
{
    regex_t regex;
    char *text = load_file(name);

    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED), 0);
    if (regexec(&regex, text, 0, NULL, 0) != 0)
        fail_msg("%s is not like %s", text, pattern);
    regfree(&regex);
    mem_free(text);
}

static void check_log(const char *pattern)
{
    check_file(path, pattern);
}

static char role(void)
{
    return 'S';
}

static int begin(void **state)
{
    (void)state;
    assert_int_equal(truncate(path, 0), 0);
    log_setup(&(struct log_options){.path = path, .level = LOG_LEVEL_NOTICE, .role = role});
    return 0;
}

static int end(void **state)
{
    (void)state;
    log_teardown();
    return 0;
}

static void lines_have_the_form(void **state)
{
    char expected[200];

    (void)state;
    assert_false(log_is_to_stdout());
    log_notice("hello %d", 5);
    snprintf(expected, sizeof(expected),
             "^%d:0:S [0-3][0-9] [A-Z][a-z]{2} 20[0-9]{2} [0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3} \\* hello 5\n$",
             (int)getpid());
    check_log(expected);
}

static unsigned side_effects;

static unsigned side_effect(void)
{
    return ++side_effects;
}

static void levels_decide(void **state)
{
    (void)state;
    log_verbose("no %u", side_effect());
    assert_int_equal(side_effects, 0);
    log_warning("w %u", side_effect());
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("d");
    log_verbose("v");
    log_set_level(LOG_LEVEL_NOTHING);
    log_warning("never");
    log_raw(LOG_LEVEL_WARNING, "never", 5);
    log_set_level(LOG_LEVEL_NOTICE);
    assert_int_equal(log_get_level(), LOG_LEVEL_NOTICE);
    log_raw(LOG_LEVEL_NOTICE, "raw", 3);
    check_log("^[^\n]* # w 1\n[^\n]* \\. d\n[^\n]* - v\nraw$");
}

static void errno_survives(void **state)
{
    (void)state;
    errno = ENOSPC;
    log_notice("%s", strerror(errno));
    assert_int_equal(errno, ENOSPC);
    log_setup(&(struct log_options){.path = "/no/such/folder", .level = LOG_LEVEL_NOTICE});
    errno = ENOSPC;
    log_notice("lost");
    assert_int_equal(errno, ENOSPC);
    assert_false(log_can_open("/no/such/folder"));
    assert_true(log_can_open(path));
}

static void long_messages_are_cut(void **state)
{
    static char message[3000];
    char *logged;

    (void)state;
    memset(message, 'x', sizeof(message) - 1);
    log_notice("%s", message);
    logged = load();
    assert_int_equal(strlen(logged) - strcspn(logged, "*"), 2 + LOG_MESSAGE_LIMIT_BYTES - 1 + 1);
    assert_int_equal(logged[strlen(logged) - 1], '\n');
    mem_free(logged);
}

static void time_is_local_time(void **state)
{
    static const char *const zones[] = {"UTC", "ABC-5:30", "ABC+11"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

    (void)state;
    for (size_t i = 0; i < countof(zones); i++) {
        char expected[100];
        struct tm local;
        time_t now;
        char *logged;

        assert_int_equal(truncate(path, 0), 0);
        setenv("TZ", zones[i], 1);
        log_update_zone();
        do {
            assert_int_equal(truncate(path, 0), 0);
            now = time(NULL);
            log_notice("x");
        } while (time(NULL) != now);
        localtime_r(&now, &local);
        snprintf(expected, sizeof(expected), " %02d %s %d %02d:%02d:%02d.", local.tm_mday, months[local.tm_mon],
                 local.tm_year + 1900, local.tm_hour, local.tm_min, local.tm_sec);
        logged = load();
        assert_non_null(strstr(logged, expected));
        mem_free(logged);
    }
    unsetenv("TZ");
    log_update_zone();
}

static void check_format(const char *pattern, enum log_format format, enum log_time time, const char *message)
{
    assert_int_equal(truncate(path, 0), 0);
    log_set_format(format, time);
    log_warning("%s", message);
    log_set_format(LOG_FORMAT_LINES, LOG_TIME_DATE);
    check_log(pattern);
}

static void formats_can_be_chosen(void **state)
{
    (void)state;
    check_format("^[0-9]+:0:S 20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3}"
                 "[+-][01][0-9]:[0-5][0-9] # hello\n$",
                 LOG_FORMAT_LINES, LOG_TIME_ISO_8601, "hello");
    check_format("^[0-9]+:0:S [0-9]{13} # hello\n$", LOG_FORMAT_LINES, LOG_TIME_MILLISECONDS, "hello");
    check_format("^pid=[0-9]+ tid=0 role=replica timestamp=\"[0-9]{13}\" level=warning message=\"hello\"\n$",
                 LOG_FORMAT_PAIRS, LOG_TIME_MILLISECONDS, "hello");
    check_format("timestamp=\"[0-3][0-9] [A-Z][a-z]{2} 20[0-9]{2} [0-9:.]{12}\" level", LOG_FORMAT_PAIRS, LOG_TIME_DATE,
                 "hello");
    check_format("message=\"a\\\\\"b\\\\\\\\c\\\\n\\?\\?=\xC3\xA9\"\n$", LOG_FORMAT_PAIRS, LOG_TIME_DATE,
                 "a\"b\\c\n\t\x7F=\xC3\xA9");
    check_format("^\\{\"pid\":[0-9]+,\"tid\":0,\"role\":\"replica\",\"timestamp\":\"[0-9]{13}\",\"level\":\"warning\","
                 "\"message\":\"hello\"\\}\n$",
                 LOG_FORMAT_JSON, LOG_TIME_MILLISECONDS, "hello");
    check_format("\"message\":\"a\\\\\"b\\\\\\\\c\\\\n\\?=\"\\}\n$", LOG_FORMAT_JSON, LOG_TIME_DATE, "a\"b\\c\n\t=");
    /* What is UTF-8 stays; what is none, or no character, does not: alone, cut, too long, a surrogate, too large. */
    check_format(
        "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 \\? \\?x \\?\\? \\?\\?\\? \\?\\?\\? \\?\\?\\?\\? \\?\\?\"\\}\n$",
        LOG_FORMAT_JSON, LOG_TIME_DATE,
        "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 \xA9 \xC3"
        "x \xC0\xA9 \xE0\x82\xAC \xED\xA0\x80 \xF4\x90\x80\x80 \xE2\x82");
}

/* The text of a moment, east and west of Greenwich. */
static void iso_8601_tells_the_zone(void **state)
{
    static const struct {
        long zone_s;
        const char *expected;
    } cases[] = {
        {0, "7:3:M 2024-02-29T23:30:05.678+00:00 . x\n"},
        {19800, "7:3:M 2024-03-01T05:00:05.678+05:30 . x\n"},
        {-12600, "7:3:M 2024-02-29T20:00:05.678-03:30 . x\n"},
    };
    char line[LOG_LINE_SPACE];

    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct log_line about = {.level = LOG_LEVEL_DEBUG,
                                 .role = 'M',
                                 .pid = 7,
                                 .thread_index = 3,
                                 .time_ms = INT64_C(1709249405678),
                                 .zone_s = cases[i].zone_s};
        size_t size = log_format_line(line, LOG_FORMAT_LINES, LOG_TIME_ISO_8601, &about, "x", 1);

        line[size] = '\0';
        assert_string_equal(line, cases[i].expected);
    }
}

/* The largest line there can be. */
static void every_byte_may_need_two(void **state)
{
    struct log_line about = {.level = LOG_LEVEL_WARNING,
                             .role = 'X',
                             .pid = INT32_MAX,
                             .thread_index = UINT32_MAX,
                             .time_ms = INT64_C(253402300799999),
                             .zone_s = -86399};
    char message[LOG_MESSAGE_LIMIT_BYTES], *line = mem_alloc(LOG_LINE_SPACE);
    size_t size;

    (void)state;
    memset(message, '"', sizeof(message));
    size = log_format_line(line, LOG_FORMAT_PAIRS, LOG_TIME_ISO_8601, &about, message, sizeof(message));
    assert_true(size > 2 * sizeof(message) && size <= LOG_LINE_SPACE);
    assert_int_equal(line[size - 1], '\n');
    mem_free(line);
}

static void dates_agree_with_the_library(void **state)
{
    (void)state;
    for (int64_t day = -200000; day < 400000; day++) {
        time_t seconds = (time_t)day * 86400;
        struct log_date date = log_date_from_days(day);
        struct tm expected;

        gmtime_r(&seconds, &expected);
        assert_int_equal(date.year, expected.tm_year + 1900);
        assert_int_equal(date.month, expected.tm_mon);
        assert_int_equal(date.day, expected.tm_mday);
    }
}

enum { LINE_COUNT = 300 };

static void write_lines(void *argument)
{
    for (unsigned i = 0; i < LINE_COUNT; i++)
        log_notice("%s", (const char *)argument);
}

static void lines_of_threads_do_not_mix(void **state)
{
    struct thread threads[3] = {{0}};
    char texts[3][200];
    unsigned line_count = 0;
    char *logged;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        memset(texts[i], (int)('a' + i), sizeof(texts[i]) - 1);
        texts[i][sizeof(texts[i]) - 1] = '\0';
        thread_start(&threads[i], "logs", write_lines, texts[i]);
    }
    for (unsigned i = 0; i < 3; i++)
        thread_join(&threads[i]);
    logged = load();
    for (char *line = logged, *next; *line != '\0'; line = next, line_count++) {
        size_t size = strcspn(line, "\n");

        next = line + size + 1;
        assert_true(size > 200);
        assert_int_equal(strspn(line + size - 199, (char[]){line[size - 1], '\0'}), 199);
    }
    assert_int_equal(line_count, 3 * LINE_COUNT);
    mem_free(logged);
}

static void from_a_signal(void **state)
{
    char expected[100];

    (void)state;
    log_from_signal("it happened");
    log_from_signal_raw("raw\n", 4);
    snprintf(expected, sizeof(expected), "^%d:signal-handler \\([0-9]+\\) it happened\nraw\n$", (int)getpid());
    check_log(expected);
}

static int in_child(void (*run)(void))
{
    int status;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL)
            _exit(99);
        run();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void as_child(void)
{
    log_mark_child();
    log_notice("child");
}

static void children_are_marked(void **state)
{
    (void)state;
    assert_int_equal(in_child(as_child), 0);
    check_log("^[0-9]+:0:C .* child\n$");
}

static void fail_assertion(void)
{
    signal(SIGABRT, SIG_DFL);
    assert(side_effects == 12345);
}

/* ------------------------------------------------------------------------------------------ a file that is moved -- */

static void move_to(const char *name)
{
    assert_int_equal(rename(path, name), 0);
}

static bool exists(const char *name)
{
    return access(name, F_OK) == 0;
}

static void a_moved_file_is_opened_again(void **state)
{
    (void)state;
    log_notice("one");
    move_to(moved);
    log_notice("two");
    assert_false(exists(path)); /* it was kept open */
    log_reopen_if_moved();
    log_notice("three");
    check_file(moved, "^[^\n]* one\n[^\n]* two\n$");
    check_log("^[^\n]* three\n$");
    unlink(moved);
}

static void a_removed_file_is_made_again(void **state)
{
    (void)state;
    log_notice("one");
    unlink(path);
    log_reopen_if_moved();
    log_notice("two");
    check_log("^[^\n]* two\n$");
    log_reopen_if_moved();
    log_notice("three");
    check_log("^[^\n]* two\n[^\n]* three\n$");
}

static void a_file_in_its_place_is_taken(void **state)
{
    (void)state;
    log_notice("one");
    move_to(moved);
    assert_int_equal(close(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600)), 0);
    log_reopen_if_moved();
    log_notice("two");
    check_file(moved, "^[^\n]* one\n$");
    check_log("^[^\n]* two\n$");
    unlink(moved);
}

static void a_signal_asks_for_it(void **state)
{
    (void)state;
    move_to(moved);
    log_reopen_if_asked();
    assert_false(exists(path));
    log_reopen_from_signal();
    assert_false(exists(path));
    log_reopen_if_asked();
    assert_true(exists(path));
    unlink(path);
    log_reopen_if_asked(); /* once is enough */
    assert_false(exists(path));
    log_reopen_if_moved();
    unlink(moved);
}

/* The folder is gone: lines go where they went, and come back with it. */
static void what_cannot_be_opened_leaves_the_old_one(void **state)
{
    char folder[] = "/tmp/keydb-log-XXXXXX", elsewhere[64], file[64], file_elsewhere[80];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/log", folder);
    snprintf(elsewhere, sizeof(elsewhere), "%s-elsewhere", folder);
    snprintf(file_elsewhere, sizeof(file_elsewhere), "%s/log", elsewhere);
    log_setup(&(struct log_options){.path = file, .level = LOG_LEVEL_NOTICE});
    log_notice("one");
    assert_int_equal(rename(folder, elsewhere), 0);
    log_reopen_if_moved();
    log_notice("two");
    check_file(file_elsewhere, "^[^\n]* one\n[^\n]* two\n$");
    assert_int_equal(mkdir(folder, 0700), 0);
    log_reopen_if_moved();
    log_notice("three");
    check_file(file, "^[^\n]* three\n$");
    unlink(file);
    unlink(file_elsewhere);
    rmdir(folder);
    rmdir(elsewhere);
}

static void a_file_may_be_possible_later(void **state)
{
    char folder[] = "/tmp/keydb-log-XXXXXX", file[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/log", folder);
    rmdir(folder);
    log_setup(&(struct log_options){.path = file, .level = LOG_LEVEL_NOTICE});
    log_notice("one");
    assert_int_equal(mkdir(folder, 0700), 0);
    log_reopen_if_moved();
    log_notice("two");
    check_file(file, "^[^\n]* two\n$");
    unlink(file);
    rmdir(folder);
}

static void no_descriptor_is_needed_for_a_line(void **state)
{
    struct rlimit before, none;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    log_notice("one");
    log_from_signal("two");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    check_log("^[^\n]* one\n[^\n]* two\n$");
}

static void as_child_behind_a_move(void)
{
    log_mark_child();
    log_notice("child");
}

static void children_log_into_the_file_of_that_name(void **state)
{
    (void)state;
    move_to(moved);
    assert_int_equal(in_child(as_child_behind_a_move), 0);
    check_file(moved, "^$");
    check_log("^[0-9]+:0:C .* child\n$");
    unlink(moved);
}

static void write_lines_and_say_so(void *argument)
{
    write_lines((char[]){"x"});
    atomic_fetch_add((_Atomic unsigned *)argument, 1);
}

static unsigned count_lines(const char *name)
{
    char *text = load_file(name);
    unsigned count = 0;

    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    mem_free(text);
    return count;
}

static void no_line_is_lost_when_it_moves(void **state)
{
    enum { MOVES_MOST = 200 };
    struct thread threads[3] = {{0}};
    _Atomic unsigned done = 0;
    unsigned moves = 0, line_count;

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        thread_start(&threads[i], "logs", write_lines_and_say_so, &done);
    while (moves < MOVES_MOST && atomic_load(&done) < 3) {
        snprintf(moved, sizeof(moved), "%s.%u", path, moves++);
        move_to(moved);
        log_reopen_if_moved();
    }
    for (unsigned i = 0; i < 3; i++)
        thread_join(&threads[i]);
    line_count = count_lines(path);
    while (moves > 0) {
        snprintf(moved, sizeof(moved), "%s.%u", path, --moves);
        line_count += count_lines(moved);
        unlink(moved);
    }
    snprintf(moved, sizeof(moved), "%s.moved", path);
    assert_int_equal(line_count, 3 * LINE_COUNT);
}

static void broken_programs_stop(void **state)
{
    int status = in_child(fail_assertion);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    check_log("assertion failed: side_effects == 12345 at .*log_test.c:[0-9]+ in fail_assertion\n(.*\n)+");
}

static void report(const char *message)
{
    (void)message;
    log_from_signal("report");
    assert(side_effects == 12346); /* a panic in a panic ends at once */
}

static void panic_twice(void)
{
    signal(SIGABRT, SIG_DFL);
    panic_setup();
    panic_set_report(report);
    panic("number %d", 6);
}

static void panic_inside_a_panic(void **state)
{
    int status = in_child(panic_twice);

    (void)state;
    assert_true(WIFSIGNALED(status));
    check_log("number 6\n[^\n]*report\n");
}

static void panic_and_exit(void)
{
    panic_set_exit(true);
    panic("bye");
}

static void panic_can_exit(void **state)
{
    int status = in_child(panic_and_exit);

    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
}

#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(lines_have_the_form),
        LOG_TEST(levels_decide),
        LOG_TEST(errno_survives),
        LOG_TEST(long_messages_are_cut),
        LOG_TEST(time_is_local_time),
        LOG_TEST(lines_of_threads_do_not_mix),
        LOG_TEST(from_a_signal),
        LOG_TEST(children_are_marked),
        LOG_TEST(broken_programs_stop),
        LOG_TEST(dates_agree_with_the_library),
        LOG_TEST(formats_can_be_chosen),
        cmocka_unit_test(iso_8601_tells_the_zone),
        cmocka_unit_test(every_byte_may_need_two),
        LOG_TEST(panic_inside_a_panic),
        LOG_TEST(panic_can_exit),
        LOG_TEST(a_moved_file_is_opened_again),
        LOG_TEST(a_removed_file_is_made_again),
        LOG_TEST(a_file_in_its_place_is_taken),
        LOG_TEST(a_signal_asks_for_it),
        LOG_TEST(what_cannot_be_opened_leaves_the_old_one),
        LOG_TEST(a_file_may_be_possible_later),
        LOG_TEST(no_descriptor_is_needed_for_a_line),
        LOG_TEST(children_log_into_the_file_of_that_name),
        LOG_TEST(no_line_is_lost_when_it_moves),
    };
    int fd = mkstemp(path);
    int result;

    (void)thread_self_index();
    close(fd);
    snprintf(moved, sizeof(moved), "%s.moved", path);
    result = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return result;
}
