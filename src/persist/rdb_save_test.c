/* Saving and loading whole files while the disk fails at every call: the file is the old one or the new one, never
 * something else, and the reason is told. */
#include "persist/rdb_save.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/power_cut.h"
#include "base/test_seed.h"
#include "data/hash.h"
#include "data/list.h"
#include "persist/rdb_load.h"
#include "persist/types.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { KEYS = 3000, STRIPES = 8, DATABASES = 2 };

/* clang-format off */
static const struct rdb_limits limits = {
    .hash = {4, 8}, .set = {4, 4, 8}, .zset = {4, 8}, .list = {.fill = -2},
};
/* clang-format on */
static char folder[] = "/tmp/rdb_save_test.XXXXXX";
static char path[64], temp_path[64];

struct keyspace {
    struct store *store;
    struct store_counters counters;
    struct access access;
};

static void keyspace_init(struct keyspace *keys)
{
    keys->counters = (struct store_counters){0};
    keys->store = store_create(STRIPES, DATABASES);
    types_setup(keys->store);
    access_init(&keys->access, keys->store, &keys->counters);
    access_begin(&keys->access, 1800000000000, true);
}

static void put_text(struct keyspace *keys, unsigned db, const char *name, const char *text)
{
    const struct key key = key_make(slice_from_text(name));
    struct change change;

    change_begin(&change, &keys->access, db, &key);
    change_put_string(&change, slice_from_text(text), EXPIRE_NEVER);
    change_end(&change, EVENT_GENERIC, NULL);
}

/* `mark` is in every value, so that one look tells which of two files this is. */
static void fill(struct keyspace *keys, const char *mark)
{
    char name[32], text[96];

    for (unsigned i = 0; i < KEYS; i++) {
        (void)snprintf(name, sizeof(name), "key:%u", i);
        (void)snprintf(text, sizeof(text), "%s:%u:a value that is long enough to fill some space", mark, i * 7919U);
        put_text(keys, i % 2, name, text);
    }
}

static must_check enum status save(struct keyspace *keys, struct rdb_save_result *result)
{
    struct snapshot all = snapshot_of_access(&keys->access);
    const struct rdb_save_request request = {
        .keys = &all,
        .options = {RDB_VERSION_WRITTEN_LEAST, RDB_VERSION_MOST, true, true},
        .starts_writeback = true,
    };

    return rdb_save(path, temp_path, &request, result);
}

static bool load(struct keyspace *keys, unsigned threads, struct rdb_load_result *result)
{
    const struct rdb_load_request request = {.access = &keys->access,
                                             .limits = limits,
                                             .checks_sum = true,
                                             .threads = threads,
                                             .pause_bytes = 1 << 20};
    struct file_source source;
    struct file *file = NULL;
    bool good = false;
    enum status status = file_open(&file, path, FILE_READ);

    *result = (struct rdb_load_result){.status = status};
    if (status == STATUS_OK)
        status = file_source_init(&source, file);
    if (status == STATUS_OK)
        good = rdb_load(&source.source, &request, result);
    file_close(&file);
    return good;
}

/* The file is whole, and all of it is of one mark, which is returned ('-': there is no file). */
static char mark_of_file(void)
{
    struct keyspace keys;
    struct rdb_load_result result;
    char mark = '-', digits[ENTRY_INT_TEXT_BYTES];

    if (!file_exists(path))
        return mark;
    keyspace_init(&keys);
    if (!load(&keys, 0, &result))
        fail_msg("at byte %llu: %s", (unsigned long long)result.failed_at, result.error);
    assert_int_equal(result.keys, KEYS);
    for (unsigned i = 0; i < KEYS; i++) {
        char name[32];
        struct key key;
        const struct entry *entry;

        (void)snprintf(name, sizeof(name), "key:%u", i);
        key = key_make(slice_from_text(name));
        entry = access_probe(&keys.access, i % 2, &key);
        assert_non_null(entry);
        if (i == 0)
            mark = entry_string(entry, digits).data[0];
        assert_int_equal(mark, entry_string(entry, digits).data[0]);
    }
    store_destroy(&keys.store);
    return mark;
}

static int setup(void **state)
{
    (void)state;
    hash_setup();
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/dump.rdb", folder);
    (void)snprintf(temp_path, sizeof(temp_path), "%s/temp-1.rdb", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)!file_remove(path);
    (void)!file_remove(temp_path);
    return rmdir(folder);
}

static const enum fault_how hows[] = {FAULT_HOW_EIO, FAULT_HOW_ENOSPC, FAULT_HOW_SHORT, FAULT_HOW_TORN,
                                      FAULT_HOW_INTERRUPT};

/* A fault that is survived is not a failure. */
static bool is_survived(enum fault_how how)
{
    return how == FAULT_HOW_SHORT || how == FAULT_HOW_INTERRUPT;
}

static void saving_fails_cleanly_at_every_call(void **state)
{
    struct keyspace before, now;
    struct rdb_save_result result;

    (void)state;
    keyspace_init(&before);
    fill(&before, "b");
    keyspace_init(&now);
    fill(&now, "n");
    for (unsigned i = 0; i < countof(hows); i++) {
        assert_int_equal(save(&before, &result), STATUS_OK);
        for (uint64_t nth = 0; fault_arm_how(FAULT_FILE, nth, hows[i]); nth++) {
            enum status status = save(&now, &result);
            bool fired = fault_fired();

            fault_disarm();
            if (status != STATUS_OK) {
                assert_true(fired);
                assert_true(result.error[0] != '\0' && strstr(result.error, folder) != NULL);
                /* Only the folder's own sync comes after the rename. */
                assert_true(mark_of_file() == 'b' || strstr(result.error, "sync") != NULL);
            } else {
                assert_int_equal(mark_of_file(), 'n');
                assert_true(!fired || is_survived(hows[i]));
            }
            assert_false(file_exists(temp_path));
            assert_int_equal(save(&before, &result), STATUS_OK);
            if (!fired)
                break;
        }
        fault_disarm();
    }
    store_destroy(&before.store);
    store_destroy(&now.store);
}

static void power_fails_after_any_call(void **state)
{
    struct keyspace before, now;
    struct rdb_save_result result;
    struct power_cut_loss loss;

    (void)state;
    keyspace_init(&before);
    fill(&before, "b");
    keyspace_init(&now);
    fill(&now, "n");
    for (uint64_t nth = 0;; nth++) {
        enum status status;
        bool fired;

        assert_int_equal(save(&before, &result), STATUS_OK);
        power_cut_begin(folder);
        assert_true(fault_arm(FAULT_FILE, nth));
        status = save(&now, &result);
        fired = fault_fired();
        fault_disarm();
        power_cut_apply(folder, POWER_CUT_NOW, 0, &loss);
        if (status == STATUS_OK)
            assert_int_equal(mark_of_file(), 'n'); /* it was said to be there */
        else
            assert_int_equal(mark_of_file(), 'b');
        if (!fired)
            break;
    }
    store_destroy(&before.store);
    store_destroy(&now.store);
}

static void power_fails_at_any_point(void **state)
{
    struct keyspace before, now;
    struct rdb_save_result result;
    struct power_cut_loss loss;
    uint64_t points = 1;

    (void)state;
    keyspace_init(&before);
    fill(&before, "b");
    keyspace_init(&now);
    fill(&now, "n");
    for (unsigned seed = 0; seed < 3; seed++) {
        for (uint64_t point = 0; point <= points; point++) {
            assert_int_equal(save(&before, &result), STATUS_OK);
            power_cut_begin(folder);
            assert_int_equal(save(&now, &result), STATUS_OK);
            points = power_cut_point(folder);
            power_cut_apply(folder, point, seed, &loss);
            assert_true(mark_of_file() == (point == points ? 'n' : 'b') || (seed != 0 && mark_of_file() == 'n'));
            (void)!file_remove(temp_path);
        }
    }
    assert_int_equal(points, 1 + 2 * 4); /* the existing file; creation, sync, rename and sync */
    store_destroy(&before.store);
    store_destroy(&now.store);
}

static void loading_fails_cleanly_at_every_call(void **state)
{
    struct keyspace keys;
    struct rdb_save_result saved;

    (void)state;
    keyspace_init(&keys);
    fill(&keys, "n");
    assert_int_equal(save(&keys, &saved), STATUS_OK);
    store_destroy(&keys.store);
    for (unsigned threads = 0; threads <= 3; threads += 3) {
        for (uint64_t nth = 0; fault_arm(FAULT_READ | FAULT_OPEN, nth); nth++) {
            struct rdb_load_result result;
            bool good, fired;

            keyspace_init(&keys);
            good = load(&keys, threads, &result);
            fired = fault_fired();
            fault_disarm();
            assert_int_equal(good, !fired);
            assert_true(good || result.status != STATUS_OK);
            store_destroy(&keys.store);
            if (!fired)
                break;
        }
        fault_disarm();
    }
    assert_int_equal(mark_of_file(), 'n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saving_fails_cleanly_at_every_call),
        cmocka_unit_test(power_fails_after_any_call),
        cmocka_unit_test(power_fails_at_any_point),
        cmocka_unit_test(loading_fails_cleanly_at_every_call),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
