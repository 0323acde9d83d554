/* A writer that counts: a base holds the number it has reached, an increment the numbers behind it. Whatever fails, and
 * whenever the power fails, the files then hold 1, 2, 3 ... up to at least the last number that was synced. */
#include "persist/aof_set.h"

#include "base/mem.h"
#include "base/number.h"
#include "base/power_cut.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { LINE_BYTES = 8, SECOND_MOST = 4, SEEDS = 1 };
#define FAULTS (FAULT_FILE & ~(unsigned)FAULT_READ)
#define NEVER UINT64_MAX

static char folder[64]; /* in memory where that can be: some ten thousand syncs, and the disk is a model anyway */
static char set_folder[80];

struct counter {
    struct aof_set set;
    struct file *file;
    uint64_t last;   /* number written */
    uint64_t synced; /* the synced ones among these */
    uint64_t second; /* after the first failure this call is the next to fail, and then the power goes */
    unsigned failures;
};

static bool goes_on(struct counter *counter, enum status status)
{
    if (status == STATUS_OK)
        return true;
    if (++counter->failures == 1 && counter->second != 0 && counter->second != NEVER) {
        fault_disarm();
        assert_true(fault_arm(FAULTS, counter->second - 1));
    }
    return false;
}

static bool is_over(const struct counter *counter)
{
    return counter->second != NEVER && counter->failures > (counter->second != 0);
}

static must_check enum status write_number(struct file *file, uint64_t number)
{
    char line[LINE_BYTES + 1];

    (void)snprintf(line, sizeof(line), "%07u\n", (unsigned)number);
    return file_write_all(file, line, LINE_BYTES);
}

/* A file of one number, or an empty one, that is on the disk. */
static must_check enum status put_file(const struct counter *counter, const char *name, uint64_t number)
{
    char *path = aof_set_path(&counter->set, name);
    struct file *file = NULL;
    enum status status = file_open(&file, path, FILE_REPLACE);

    if (status == STATUS_OK)
        status = write_number(file, number);
    if (status == STATUS_OK)
        status = file_sync(file);
    file_close(&file);
    mem_free(path);
    return status;
}

/* A failed write or sync ends the use of the file: its contents are unknown. */
static void count(struct counter *counter, unsigned numbers)
{
    enum status status = STATUS_OK;

    if (is_over(counter) || counter->file == NULL)
        return;
    for (unsigned i = 0; i < numbers && status == STATUS_OK; i++) {
        status = write_number(counter->file, counter->last + 1);
        if (status == STATUS_OK)
            counter->last++;
    }
    if (status == STATUS_OK)
        status = file_sync(counter->file);
    if (goes_on(counter, status))
        counter->synced = counter->last;
    else
        file_close(&counter->file);
}

static void remove_file(char *path)
{
    (void)!file_remove(path);
    mem_free(path);
}

static void drop_history(struct counter *counter)
{
    if (!is_over(counter))
        (void)goes_on(counter, aof_set_drop_history(&counter->set, remove_file));
}

static bool begin(struct counter *counter)
{
    if (!goes_on(counter, aof_set_make_folder(&counter->set)) || !goes_on(counter, put_file(counter, "temp-base", 0)) ||
        !goes_on(counter, aof_set_replace_base(&counter->set, "temp-base", true, AOF_KEPT_NOTHING, NULL)))
        return false;
    return goes_on(counter, aof_set_add_increment(&counter->set, &counter->file));
}

static void rewrite(struct counter *counter)
{
    struct file *file = NULL;
    uint64_t at = counter->last;

    if (is_over(counter) || counter->file == NULL)
        return;
    if (!goes_on(counter, aof_set_add_increment(&counter->set, &file)))
        return;
    file_close(&counter->file);
    counter->file = file;
    count(counter, 2);
    if (is_over(counter) || !goes_on(counter, put_file(counter, "temp-base", at)))
        return;
    if (goes_on(counter, aof_set_replace_base(&counter->set, "temp-base", at % 2 == 0, AOF_KEPT_LAST, NULL)))
        drop_history(counter);
}

/* It was switched off for some numbers, which are in the base alone. */
static void switch_on(struct counter *counter)
{
    char *path = aof_set_path(&counter->set, "temp.incr");
    struct file *file = NULL;
    enum status status;
    uint64_t size;

    if (is_over(counter))
        goto out;
    file_close(&counter->file);
    counter->last += 3;
    status = file_remove(path);
    if (!goes_on(counter, status == STATUS_NOT_FOUND ? STATUS_OK : status))
        goto out;
    if (!goes_on(counter, put_file(counter, "temp-base", counter->last)) || is_over(counter) ||
        !goes_on(counter, file_open(&file, path, FILE_APPEND)) ||
        !goes_on(counter, write_number(file, counter->last + 1)))
        goto out;
    counter->last++;
    if (!goes_on(counter, file_sync(file)) ||
        !goes_on(counter, aof_set_replace_base(&counter->set, "temp-base", true, AOF_KEPT_TEMPORARY, "temp.incr")))
        goto out;
    counter->synced = counter->last;
    drop_history(counter);
    if (goes_on(counter, aof_set_open_last(&counter->set, &counter->file, &size)))
        assert_int_equal(size, LINE_BYTES);
out:
    file_close(&file);
    mem_free(path);
}

static void live(struct counter *counter)
{
    if (!begin(counter))
        return;
    count(counter, 3);
    rewrite(counter);
    count(counter, 2);
    rewrite(counter);
    count(counter, 1);
    switch_on(counter);
    count(counter, 2);
    switch_on(counter);
    count(counter, 1);
    rewrite(counter);
}

/* ------------------------------------------------------------------------------------------------- afterwards -- */

/* The last increment may hold more than was synced, and end in the middle of a line. */
static uint64_t follow(const struct aof_set *set, const struct aof_part *part, bool is_last, uint64_t number)
{
    char *path = aof_set_path(set, part->name), *text = NULL;
    size_t size = 0;

    assert_int_equal(file_load(path, 1 << 20, &text, &size), STATUS_OK);
    assert_true(is_last || size % LINE_BYTES == 0);
    for (size_t at = 0; at + LINE_BYTES <= size; at += LINE_BYTES) {
        uint64_t next = strtoull(text + at, NULL, 10);

        if (part->type == AOF_BASE)
            number = next;
        else
            assert_int_equal(next, ++number);
    }
    assert_true(part->type != AOF_BASE || size == LINE_BYTES);
    mem_free(text);
    mem_free(path);
    return number;
}

static void check_disk(uint64_t synced)
{
    struct aof_set set;
    char error[AOF_SET_ERROR_BYTES];
    enum status status;
    uint64_t number = 0;

    aof_set_init(&set, set_folder, "test");
    status = aof_set_read(&set, error);
    if (status == STATUS_NOT_FOUND) {
        assert_int_equal(synced, 0);
    } else {
        assert_int_equal(status, STATUS_OK);
        for (uint32_t i = 0; i < set.manifest.count; i++) {
            if (set.manifest.items[i].type != AOF_HISTORY)
                number = follow(&set, &set.manifest.items[i], i + 1 == set.manifest.count, number);
        }
        assert_true(number >= synced);
    }
    aof_set_fini(&set);
}

static void empty_folder(void)
{
    char command[100];

    (void)snprintf(command, sizeof(command), "rm -rf %s/*", folder);
    assert_int_equal(system(command), 0);
}

/* The seed is that of power_cut_apply. */
static void check_faults(enum fault_how how, uint64_t second, uint64_t seed)
{
    bool has_fired = true;

    for (uint64_t nth = 0; has_fired; nth++) {
        struct counter counter = {.second = second};
        struct power_cut_loss loss;

        empty_folder();
        power_cut_begin(folder);
        assert_true(fault_arm_how(FAULTS, nth, how));
        aof_set_init(&counter.set, set_folder, "test");
        live(&counter);
        has_fired = fault_fired() || counter.failures != 0;
        fault_disarm();
        assert_true(has_fired || counter.last == counter.synced);
        file_close(&counter.file);
        aof_set_fini(&counter.set);
        power_cut_apply(folder, POWER_CUT_NOW, seed, &loss);
        check_disk(counter.synced);
    }
}

static void nothing_is_lost_when_the_power_goes(void **state)
{
    struct random random;

    (void)state;
    random = test_random("aof_set");
    for (uint64_t second = 0; second <= SECOND_MOST; second++)
        check_faults(FAULT_HOW_EIO, second, 0);
    check_faults(FAULT_HOW_TORN, 0, 0);
    for (unsigned i = 0; i < SEEDS; i++)
        check_faults(FAULT_HOW_EIO, 0, 1 + random_below(&random, UINT32_MAX));
}

static void nothing_is_lost_when_something_fails(void **state)
{
    (void)state;
    check_faults(FAULT_HOW_EIO, NEVER, 0);
    check_faults(FAULT_HOW_ENOSPC, NEVER, 0);
    check_faults(FAULT_HOW_INTERRUPT, NEVER, 0);
}

static void names_are_those_of_redis(void **state)
{
    struct counter counter = {0};
    struct buffer text = {0};

    (void)state;
    empty_folder();
    aof_set_init(&counter.set, set_folder, "test");
    live(&counter);
    assert_int_equal(counter.failures, 0);
    aof_manifest_print(&counter.set.manifest, &text);
    assert_string_equal(buffer_text(&text), "file test.6.base.aof seq 6 type b\nfile test.6.incr.aof seq 6 type i\n");
    assert_int_equal(aof_set_bytes(&counter.set), 3 * LINE_BYTES);
    buffer_fini(&text);
    file_close(&counter.file);
    aof_set_fini(&counter.set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_of_redis),
        cmocka_unit_test(nothing_is_lost_when_the_power_goes),
        cmocka_unit_test(nothing_is_lost_when_something_fails),
    };
    char command[100];
    int result;

    (void)snprintf(folder, sizeof(folder), "%s/aof-set-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(folder) == NULL)
        return 1;
    (void)snprintf(set_folder, sizeof(set_folder), "%s/aof", folder);
    result = cmocka_run_group_tests(tests, NULL, NULL);
    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command) == 0 ? result : 1;
}
