#include "base/file.h"
#include "base/mem.h"
#include "base/power_cut.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static char folder[] = "/tmp/keydb-file-XXXXXX";
static char path[100], other[100];

/* How many names there are in the folder, and none that only a mistake leaves behind. */
static unsigned count_names(void)
{
    DIR *dir = opendir(folder);
    unsigned count = 0;

    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static int empty_folder(void **state)
{
    char command[200];

    (void)state;
    fault_disarm();
    snprintf(command, sizeof(command), "rm -rf %s && mkdir %s", folder, folder);
    return system(command);
}

static void expect_content(const char *name, struct slice expected)
{
    char *data;
    size_t size;

    assert_int_equal(file_load(name, 1000000, &data, &size), STATUS_OK);
    assert_true(slice_equal(slice_make(data, size), expected));
    assert_int_equal(data[size], '\0');
    mem_free(data);
}

static void writing_and_reading(void **state)
{
    struct file *file;
    struct iovec parts[] = {{(char[]){'a', 'b'}, 2}, {NULL, 0}, {(char[]){'c'}, 1}};
    char bytes[10];
    size_t got;
    uint64_t size;

    (void)state;
    assert_int_equal(file_open(&file, path, FILE_READ), STATUS_NOT_FOUND);
    assert_null(file);
    assert_int_equal(file_open(&file, path, FILE_APPEND), STATUS_OK);
    assert_int_equal(file_write_all(file, "12345", 5), STATUS_OK);
    assert_int_equal(file_writev_all(file, parts, 3), STATUS_OK);
    assert_int_equal(file_sync(file), STATUS_OK);
    assert_int_equal(file_size(file, &size), STATUS_OK);
    assert_int_equal(size, 8);
    assert_string_equal(file_path(file), path);
    file_close(&file);
    assert_null(file);
    file_close(&file);
    expect_content(path, SLICE("12345abc"));
    assert_int_equal(file_open(&file, path, FILE_READ), STATUS_OK);
    assert_int_equal(file_pread(file, bytes, 3, 4, &got), STATUS_OK);
    assert_true(got == 3 && memcmp(bytes, "5ab", 3) == 0);
    assert_int_equal(file_seek(file, 6), STATUS_OK);
    assert_int_equal(file_read(file, bytes, 10, &got), STATUS_OK);
    assert_true(got == 2 && memcmp(bytes, "bc", 2) == 0);
    assert_int_equal(file_read(file, bytes, 10, &got), STATUS_OK);
    assert_int_equal(got, 0);
    file_start_writeback(file, 0, 8);
    file_drop_cache(file, 0, 8);
    file_close(&file);
    assert_int_equal(file_open(&file, path, FILE_APPEND), STATUS_OK);
    assert_int_equal(file_truncate(file, 2), STATUS_OK);
    assert_int_equal(file_write_all(file, "x", 1), STATUS_OK);
    file_close(&file);
    expect_content(path, SLICE("12x"));
    assert_int_equal(file_open(&file, path, FILE_REPLACE), STATUS_OK);
    assert_int_equal(file_pwrite_all(file, "zz", 2, 1), STATUS_OK);
    file_close(&file);
    expect_content(path, SLICE("\0zz"));
}

static void names(void **state)
{
    char *data;
    size_t size;
    uint64_t length;
    struct file *file;

    (void)state;
    assert_false(file_exists(path));
    assert_int_equal(file_remove(path), STATUS_NOT_FOUND);
    assert_int_equal(file_store(path, SLICE("hello")), STATUS_OK);
    assert_true(file_exists(path));
    assert_int_equal(file_size_of(path, &length), STATUS_OK);
    assert_int_equal(length, 5);
    assert_int_equal(file_load(path, 4, &data, &size), STATUS_FULL);
    assert_null(data);
    assert_int_equal(file_load(path, 5, &data, &size), STATUS_OK);
    mem_free(data);
    assert_int_equal(file_rename(path, other), STATUS_OK);
    assert_false(file_exists(path));
    assert_int_equal(file_make_folder(path), STATUS_OK);
    assert_int_equal(file_make_folder(path), STATUS_OK);
    assert_int_equal(file_make_folder(other), STATUS_EXISTS);
    assert_int_equal(file_create_temp_named(&file, other), STATUS_EXISTS);
    assert_int_equal(file_remove(other), STATUS_OK);
    assert_int_equal(file_size_of(other, &length), STATUS_NOT_FOUND);
}

static void temp_files_remove_themselves(void **state)
{
    struct file *file;

    (void)state;
    assert_int_equal(file_create_temp(&file, path), STATUS_OK);
    assert_int_equal(count_names(), 1);
    file_close(&file);
    assert_int_equal(count_names(), 0);
}

static bool content_is(const char *name, struct slice expected)
{
    char *data;
    size_t size;
    bool is_same;

    if (file_load(name, 1000000, &data, &size) != STATUS_OK)
        return false;
    is_same = slice_equal(slice_make(data, size), expected);
    mem_free(data);
    return is_same;
}

/* Whichever call fails: the file has the old or the new contents, nothing is left behind, and the failure is
 * reported. */
static void store_fails_cleanly(enum fault_how how)
{
    uint64_t nth = 0;

    for (bool fired = true; fired; nth++) {
        enum status status;

        assert_int_equal(file_store(path, SLICE("old")), STATUS_OK);
        assert_true(fault_arm_how(FAULT_FILE, nth, how));
        errno = 0;
        status = file_store(path, SLICE("the new content"));
        fired = fault_fired();
        fault_disarm();
        assert_int_equal(fired, status != STATUS_OK);
        if (fired)
            assert_true(errno == EIO || errno == ENOSPC);
        assert_int_equal(count_names(), 1);
        assert_true(content_is(path, SLICE("the new content")) || (fired && content_is(path, SLICE("old"))));
    }
    assert_int_equal(nth - 1, 6); /* open, write, sync, rename, open the folder, sync it */
}

static mode_t mode_of(const char *name)
{
    struct stat info;

    assert_int_equal(stat(name, &info), 0);
    return info.st_mode & 07777;
}

static void rights_stay(void **state)
{
    static const mode_t modes[] = {0600, 0640, 0400, 0666, 0644};
    mode_t mask = umask(022);

    (void)state;
    for (size_t i = 0; i < countof(modes); i++) {
        assert_int_equal(file_store(path, SLICE("old")), STATUS_OK);
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(file_store(path, SLICE("new")), STATUS_OK);
        assert_int_equal(mode_of(path), modes[i]);
    }
    assert_int_equal(file_remove(path), STATUS_OK);
    assert_int_equal(file_store(path, SLICE("fresh")), STATUS_OK);
    assert_int_equal(mode_of(path), 0644);
    if (geteuid() == 0) {
        struct stat info;

        assert_int_equal(chown(path, 1234, 2345), 0);
        assert_int_equal(file_store(path, SLICE("new")), STATUS_OK);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_uid, 1234);
        assert_int_equal(info.st_gid, 2345);
    }
    umask(mask);
    assert_int_equal(file_remove(path), STATUS_OK);
}

static void every_fault_is_told(void **state)
{
    (void)state;
    store_fails_cleanly(FAULT_HOW_EIO);
    store_fails_cleanly(FAULT_HOW_ENOSPC);
    store_fails_cleanly(FAULT_HOW_TORN);
}

/* Interrupted calls and half writes are not failures. */
static void small_troubles_are_survived(void **state)
{
    static const enum fault_how hows[] = {FAULT_HOW_INTERRUPT, FAULT_HOW_SHORT};

    (void)state;
    for (size_t i = 0; i < countof(hows); i++) {
        unsigned kinds = hows[i] == FAULT_HOW_SHORT ? FAULT_WRITE | FAULT_READ : FAULT_FILE;
        uint64_t nth = 0;

        for (; fault_arm_how(kinds, nth, hows[i]); nth++) {
            assert_int_equal(file_store(path, SLICE("the new content")), STATUS_OK);
            assert_true(content_is(path, SLICE("the new content")));
        }
        assert_true(nth > 2);
    }
}

static void vectors_survive_them_too(void **state)
{
    uint64_t nth = 0;

    (void)state;
    for (; fault_arm_how(FAULT_WRITE, nth, nth % 2 == 0 ? FAULT_HOW_SHORT : FAULT_HOW_INTERRUPT); nth++) {
        struct iovec parts[] = {{(char[]){"abcd"}, 4}, {(char[]){"ef"}, 2}, {(char[]){"ghi"}, 3}};
        struct file *file;

        assert_int_equal(file_open(&file, path, FILE_REPLACE), STATUS_OK);
        assert_int_equal(file_writev_all(file, parts, 3), STATUS_OK);
        file_close(&file);
        expect_content(path, SLICE("abcdefghi"));
    }
    assert_true(nth >= 1);
}

static void the_hook_counts(void **state)
{
    enum fault_how how;

    (void)state;
    assert_false(fault_hit(FAULT_WRITE, &how));
    assert_true(fault_arm(FAULT_WRITE, 1));
    assert_false(fault_hit(FAULT_READ, &how));
    assert_false(fault_hit(FAULT_WRITE, &how));
    assert_false(fault_fired());
    assert_true(fault_hit(FAULT_WRITE, &how));
    assert_int_equal(how, FAULT_HOW_EIO);
    assert_true(fault_fired());
    assert_false(fault_hit(FAULT_WRITE, &how));
    assert_int_equal(fault_hits(), 3);
    assert_true(fault_arm(FAULT_WRITE, 2));
    assert_false(fault_arm(FAULT_WRITE, 3)); /* nothing fired: the loop is over */
    assert_false(fault_is_armed);
}

/* --- the power fails --- */

static void store_survives_a_power_cut_at_every_point(void **state)
{
    uint64_t points = 1;

    (void)state;
    for (uint64_t point = 0; point <= points; point++) {
        struct power_cut_loss loss;

        assert_int_equal(file_store(path, SLICE("old")), STATUS_OK);
        power_cut_begin(folder);
        assert_int_equal(file_store(path, SLICE("new")), STATUS_OK);
        points = power_cut_point(folder);
        power_cut_apply(folder, point, 0, &loss);
        expect_content(path, point == points ? SLICE("new") : SLICE("old"));
        assert_int_equal(count_names(), 1);
    }
}

static void store_tells_the_truth_when_a_call_fails(void **state)
{
    bool is_stored = false;

    (void)state;
    for (uint64_t nth = 0; !is_stored; nth++) {
        struct power_cut_loss loss;

        assert_int_equal(file_store(path, SLICE("old")), STATUS_OK);
        power_cut_begin(folder);
        assert_true(fault_arm(FAULT_FILE, nth));
        is_stored = file_store(path, SLICE("new")) == STATUS_OK;
        fault_disarm();
        power_cut_apply(folder, POWER_CUT_NOW, 0, &loss);
        expect_content(path, is_stored ? SLICE("new") : SLICE("old"));
    }
}

#define FILE_TEST(name) cmocka_unit_test_setup(name, empty_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(writing_and_reading),
        FILE_TEST(names),
        FILE_TEST(temp_files_remove_themselves),
        FILE_TEST(rights_stay),
        FILE_TEST(every_fault_is_told),
        FILE_TEST(small_troubles_are_survived),
        FILE_TEST(vectors_survive_them_too),
        FILE_TEST(the_hook_counts),
        FILE_TEST(store_survives_a_power_cut_at_every_point),
        FILE_TEST(store_tells_the_truth_when_a_call_fails),
    };
    char command[200];
    int result;

    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof(path), "%s/data", folder);
    snprintf(other, sizeof(other), "%s/other", folder);
    result = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command) == 0 ? result : 1;
}
