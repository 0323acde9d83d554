/* Saving and loading whole files while the disk fails at every call: the file is the old one or the new one, never
 * something else, and the reason is told. */
#include "persist/rdb_save.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/power_cut.h"
#include "base/test_seed.h"
#include "data/hash.h"
#include "data/list.h"
#include "data/set.h"
#include "persist/digest.h"
#include "persist/rdb_load.h"
#include "persist/test_keyspace.h"
#include "persist/types.h"
#include "store/snapshot_live.h"
#include "store/stamp.h"
#include "store/subkey_ttl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { KEYS = 3000, STRIPES = 8, DATABASES = 2, LARGE_HASHES = 6, LARGE_FIELDS = 5000 };

/* clang-format off */
static const struct rdb_limits limits = {
    .hash = {4, 8}, .set = {4, 4, 8}, .zset = {4, 8}, .list = {.fill = -2},
};
/* clang-format on */
static char folder[] = "/tmp/rdb_save_test.XXXXXX";
static char path[64], temp_path[64];

static void keyspace_init(struct keyspace *keys)
{
    keyspace_create(keys, STRIPES, DATABASES, 1800000000000);
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

static struct gate the_gate;
static unsigned save_threads;                     /* 0: the data do not change */
static const struct snapshot_choice *save_choice; /* NULL: all keys */

static must_check enum status save_snapshot(struct snapshot *all, bool (*progress)(uint64_t keys, void *context),
                                            struct rdb_save_result *result)
{
    const struct rdb_save_request request = {
        .keys = all,
        .options = {RDB_VERSION_WRITTEN_LEAST, RDB_VERSION_MOST, true, true},
        .starts_writeback = true,
        .progress = progress,
    };

    return rdb_save(path, temp_path, &request, result);
}

static must_check enum status save_by_threads(struct keyspace *keys, unsigned threads,
                                              bool (*progress)(uint64_t keys, void *context),
                                              struct rdb_save_result *result)
{
    const struct live_options options = {.gate = &the_gate, .threads = threads, .choice = save_choice};
    struct live_snapshot *live = live_snapshot_begin(&keys->access, &options);
    enum status status;

    assert_non_null(live);
    gate_traffic_begin();
    live_snapshot_adopt(live);
    status = save_snapshot(live_snapshot_keys(live), progress, result);
    live_snapshot_end(&live);
    gate_traffic_end();
    access_begin(&keys->access, 1800000000000, true);
    return status;
}

static must_check enum status save(struct keyspace *keys, struct rdb_save_result *result)
{
    struct snapshot all = snapshot_of_chosen(&keys->access, save_choice);

    return save_threads == 0 ? save_snapshot(&all, NULL, result) : save_by_threads(keys, save_threads, NULL, result);
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
    gate_init(&the_gate);
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

static void fail_at_every_call(void)
{
    struct keyspace before, now;
    struct rdb_save_result result;

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

static void saving_fails_cleanly_at_every_call(void **state)
{
    (void)state;
    for (save_threads = 0; save_threads <= 3; save_threads += 3)
        fail_at_every_call();
    save_threads = 0;
}

static uint64_t told_keys;

static bool note_progress(uint64_t keys, void *context)
{
    (void)context;
    assert_true(keys >= told_keys);
    told_keys = keys;
    return true;
}

static bool stop_soon(uint64_t keys, void *context)
{
    (void)context;
    return keys == 0;
}

static void put_large_hash(struct keyspace *keys, unsigned number)
{
    char name[32], text[64];
    struct key key;
    struct change change;
    struct value hash = hash_create();

    (void)snprintf(name, sizeof(name), "hash:%u", number);
    key = key_make(slice_from_text(name));
    for (unsigned i = 0; i < LARGE_FIELDS; i++) {
        (void)snprintf(text, sizeof(text), "a field of hash %u: %u", number, i);
        (void)hash_put(&hash, &limits.hash, slice_from_text(text), slice_from_text(text));
    }
    change_begin(&change, &keys->access, 0, &key);
    change_put_value(&change, TYPE_HASH, hash, EXPIRE_NEVER);
    change_end(&change, EVENT_GENERIC, NULL);
}

/* It needs a later version than the other keys. */
static void put_deadline(struct keyspace *keys)
{
    const struct key key = key_make(SLICE("volatile"));
    struct value hash = hash_create();
    struct change change;

    (void)hash_put(&hash, &limits.hash, SLICE("field"), SLICE("value"));
    change_begin(&change, &keys->access, 1, &key);
    change_put_value(&change, TYPE_HASH, hash, EXPIRE_NEVER);
    change_member_expire(&change, SLICE("field"), keys->access.now_ms + 100000);
    change_end(&change, EVENT_GENERIC, NULL);
}

/* More threads than stripes, fewer, and one; pieces with large values; and some that stop in the middle. */
static void several_threads_write_one_file(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= SNAPSHOT_THREADS_MOST; threads++) {
        struct keyspace keys, loaded;
        struct rdb_save_result saved;
        struct rdb_load_result result;
        struct digest digests[2] = {{.secret = NULL}};

        keyspace_init(&keys);
        fill(&keys, "k");
        for (unsigned i = 0; i < LARGE_HASHES; i++)
            put_large_hash(&keys, i);
        put_deadline(&keys);
        told_keys = 0;
        assert_int_equal(save_by_threads(&keys, threads, note_progress, &saved), STATUS_OK);
        assert_int_equal(saved.keys, KEYS + LARGE_HASHES + 1);
        assert_int_equal(saved.version, RDB_VERSION_FIELD_DEADLINES);
        assert_true(told_keys != 0 && told_keys <= KEYS + LARGE_HASHES + 1);
        keyspace_init(&loaded);
        if (!load(&loaded, 0, &result))
            fail_msg("%u threads: at byte %llu: %s", threads, (unsigned long long)result.failed_at, result.error);
        assert_int_equal(result.keys, KEYS + LARGE_HASHES + 1);
        digest_all(&digests[0], &keys.access);
        digest_all(&digests[1], &loaded.access);
        assert_memory_equal(digests[0].bytes, digests[1].bytes, DIGEST_BYTES);
        assert_int_equal(save_by_threads(&keys, threads, stop_soon, &saved), STATUS_INTERRUPTED);
        assert_false(file_exists(temp_path));
        store_destroy(&keys.store);
        store_destroy(&loaded.store);
    }
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

/* ---------------------------------------------------------------------------------------------------- versions -- */

enum { VERSIONED = 400, ORIGINS = 5, LOCAL = 200, UNKNOWN = VERSION_ORIGINS - 1, REUSED = 3, REUSED_AT = 150 };

static const struct rdb_origins origins = {
    .ids = {0x1111, 0, 0x2222, 0x3333, UINT64_MAX - 5},
    .since = {[REUSED] = (UINT64_C(1800000000000) + REUSED_AT * 17) << STAMP_COUNTER_BITS},
};

/* Strings and sets, with deadlines and without, so that versions stand behind every kind of record. Every third key has
 * no version. */
static void put_versioned(struct keyspace *keys, unsigned i, uint64_t version)
{
    char name[32];
    struct key key;
    struct change change;

    (void)snprintf(name, sizeof(name), "key:%u", i);
    key = key_make(slice_from_text(name));
    change_begin(&change, &keys->access, i % 2, &key);
    if (i % 4 < 2) {
        change_put_string(&change, slice_from_text(name), i % 8 < 4 ? EXPIRE_NEVER : 1900000000000);
    } else {
        struct value set = set_create(&limits.set, slice_from_text(name), 1);

        (void)set_add(&set, &limits.set, slice_from_text(name));
        change_put_value(&change, TYPE_SET, set, i % 8 < 4 ? EXPIRE_NEVER : 1900000000000);
        if (i % 5 == 0)
            change_member_expire(&change, slice_from_text(name), 1900000000001);
    }
    if (version != 0)
        change_set_version(&change, version);
    change_end(&change, EVENT_GENERIC, NULL);
}

static uint64_t version_of(unsigned i)
{
    static const unsigned numbers[] = {0, 2, REUSED, 4, UNKNOWN};

    return i % 3 == 2 ? 0
                      : version_make(stamp_at(1800000000000 + i * 17) + i, i % 2 == 0, numbers[i % countof(numbers)]);
}

static must_check enum status save_versions(struct keyspace *keys, const struct rdb_origins *of)
{
    struct snapshot all = snapshot_of_access(&keys->access);
    const struct rdb_save_request request = {
        .keys = &all,
        .options = {RDB_VERSION_WRITTEN_LEAST, RDB_VERSION_MOST, true, true},
        .origins = of,
    };
    struct rdb_save_result result;

    return rdb_save(path, temp_path, &request, &result);
}

/* Other numbers than those of the file. */
static unsigned renumber(uint64_t id, void *context)
{
    (void)context;
    for (unsigned i = 0; i < ORIGINS; i++) {
        if (origins.ids[i] == id)
            return LOCAL + i;
    }
    fail_msg("an id that nobody wrote");
    return 0;
}

static bool load_versions(struct keyspace *keys, struct slice bytes, unsigned threads,
                          unsigned (*origin)(uint64_t id, void *context), struct rdb_load_result *result)
{
    const struct rdb_load_request request = {.access = &keys->access,
                                             .limits = limits,
                                             .origin = origin,
                                             .threads = threads,
                                             .pause_bytes = 1 << 20};
    struct memory_source source;

    memory_source_init(&source, bytes);
    return rdb_load(&source.source, &request, result);
}

/* What comes back of it. */
static uint64_t loaded_version_of(unsigned i)
{
    const uint64_t version = version_of(i);
    const unsigned number = version_origin(version);
    const bool is_known = origins.ids[number] != 0 && version_stamp(version) > origins.since[number];

    return version == 0
               ? 0
               : version_make(version_stamp(version), version_overwrote(version), is_known ? LOCAL + number : UNKNOWN);
}

static void expect_version(struct keyspace *keys, unsigned i, bool has)
{
    char name[32];
    struct key key;
    const struct entry *entry;

    (void)snprintf(name, sizeof(name), "key:%u", i);
    key = key_make(slice_from_text(name));
    entry = access_probe(&keys->access, i % 2, &key);
    assert_non_null(entry);
    assert_int_equal(entry_expire_ms(entry), i % 8 < 4 ? EXPIRE_NEVER : 1900000000000);
    assert_int_equal(entry_version(entry), has ? loaded_version_of(i) : 0);
}

static void read_all_of(struct buffer *bytes)
{
    struct file *file = NULL;
    uint64_t size;
    size_t got;

    assert_int_equal(file_open(&file, path, FILE_READ), STATUS_OK);
    assert_int_equal(file_size(file, &size), STATUS_OK);
    assert_int_equal(file_read(file, buffer_reserve(bytes, size), size, &got), STATUS_OK);
    assert_int_equal(got, size);
    bytes->size = size;
    file_close(&file);
}

static void fill_versioned(struct keyspace *keys)
{
    keyspace_init(keys);
    for (unsigned i = 0; i < VERSIONED; i++)
        put_versioned(keys, i, version_of(i));
}

static void versions_come_back_with_the_local_numbers_of_their_origins(void **state)
{
    struct keyspace keys, again;
    struct rdb_load_result result;
    struct buffer bytes = {0};

    (void)state;
    fill_versioned(&keys);
    assert_int_equal(save_versions(&keys, &origins), STATUS_OK);
    store_destroy(&keys.store);
    read_all_of(&bytes);
    for (unsigned round = 0; round < 3; round++) {
        const bool wants = round != 2; /* the last reader knows of no versions */

        keyspace_init(&again);
        if (!load_versions(&again, buffer_slice(&bytes), round == 1 ? 3 : 0, wants ? renumber : NULL, &result))
            fail_msg("at byte %llu: %s", (unsigned long long)result.failed_at, result.error);
        assert_int_equal(result.keys, VERSIONED);
        for (unsigned i = 0; i < VERSIONED; i++)
            expect_version(&again, i, wants);
        store_destroy(&again.store);
    }
    buffer_fini(&bytes);
}

static void a_file_without_origins_has_no_versions(void **state)
{
    struct keyspace keys, again;
    struct rdb_load_result result;
    struct buffer bytes = {0};

    (void)state;
    fill_versioned(&keys);
    assert_int_equal(save_versions(&keys, NULL), STATUS_OK);
    store_destroy(&keys.store);
    read_all_of(&bytes);
    keyspace_init(&again);
    assert_true(load_versions(&again, buffer_slice(&bytes), 0, renumber, &result));
    for (unsigned i = 0; i < VERSIONED; i++)
        expect_version(&again, i, false);
    store_destroy(&again.store);
    buffer_fini(&bytes);
}

/* A file of one key "k" = "v", with these records before it. */
static bool load_with(const char *records, size_t size, unsigned (*origin)(uint64_t id, void *context), char error[512])
{
    static const char head[] = "REDIS0010", tail[] = "\0\1k\1v\377\0\0\0\0\0\0\0";
    struct keyspace keys;
    struct rdb_load_result result;
    struct buffer bytes = {0};
    bool good;

    buffer_append(&bytes, head, sizeof(head) - 1);
    buffer_append(&bytes, records, size);
    buffer_append(&bytes, tail, sizeof(tail));
    keyspace_init(&keys);
    good = load_versions(&keys, buffer_slice(&bytes), 0, origin, &result);
    (void)snprintf(error, 512, "%s", result.error);
    store_destroy(&keys.store);
    buffer_fini(&bytes);
    return good;
}

#define LIST "\372\15order-origins\10\x11\x11\0\0\0\0\0\0"
#define RECORDS(text) text, sizeof(text) - 1

static void damaged_versions_are_refused(void **state)
{
    static const struct {
        const char *records;
        size_t size;
        const char *error; /* "": it is loaded */
    } cases[] = {
        {RECORDS(LIST "\372\1v\10\0\0\0\0\0\0\0\1"), ""},
        {RECORDS("\372\1v\10\1\1\1\1\1\1\1\1"), ""}, /* no list: somebody else's */
        {RECORDS("\372\1v\3abc"), ""},
        {RECORDS(LIST "\372\1v\10\1\0\0\0\0\0\0\1"), ""},
        {RECORDS(LIST "\372\1v\10\377\0\0\0\0\0\0\1"), ""},
        {RECORDS(LIST "\372\1v\10\0\0\0\0\0\0\0\0"), "a key's version has a time that stamps do not have"},
        {RECORDS(LIST "\372\1v\10\0\376\377\377\377\377\377\377"),
         "a key's version has a time that stamps do not have"},
        {RECORDS(LIST "\372\1v\7\0\0\0\0\0\0\1"), "a key's version has a wrong size"},
        {RECORDS(LIST "\372\1v\301\0\1"), "a key's version has a wrong size"},
        {RECORDS(LIST LIST), "it has two lists of origins"},
        {RECORDS("\372\15order-origins\0"), "its list of origins has a wrong size"},
        {RECORDS("\372\15order-origins\7\1\1\1\1\1\1\1"), "its list of origins has a wrong size"},
        {RECORDS("\372\15order-origins\10\0\0\0\0\0\0\0\0\372\1v\10\0\0\0\0\0\0\0\1"), ""},
    };
    char error[512];

    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        for (unsigned reads = 0; reads < 2; reads++) { /* who has no use for versions looks at them, too */
            bool good = load_with(cases[i].records, cases[i].size, reads != 0 ? renumber : NULL, error);

            if (good != (cases[i].error[0] == '\0') || strcmp(error, cases[i].error) != 0)
                fail_msg("case %zu: %s", i, error);
        }
    }
}

/* -------------------------------------------------------------------------------------- records behind all keys -- */

static void give_records(struct snapshot *keys, bool (*take)(struct slice record, void *context), void *context)
{
    (void)keys;
    assert_true(take(SLICE("first"), context));
    assert_true(take(SLICE("second"), context));
}

static void take_record(struct slice name, struct slice value, void *context)
{
    struct buffer *records = context;

    if (!slice_equal(name, RDB_AUX_ORDER_RECORD))
        return;
    buffer_append_slice(records, value);
    buffer_append_char(records, '.');
}

/* The last key is a set, behind which a reader looks for deadlines of its members. */
static void records_stand_behind_all_keys_and_belong_to_none(void **state)
{
    struct keyspace keys, again;
    struct snapshot all;
    struct rdb_save_request request = {.options = {RDB_VERSION_WRITTEN_LEAST, RDB_VERSION_MOST, true, true},
                                       .records = give_records};
    struct buffer records = {0}, bytes = {0};
    struct rdb_load_request load_request = {.limits = limits,
                                            .aux = take_record,
                                            .checks_sum = true,
                                            .context = &records,
                                            .pause_bytes = 1 << 20};
    struct rdb_save_result saved;
    struct rdb_load_result result;
    struct memory_source source;

    (void)state;
    keyspace_init(&keys);
    put_versioned(&keys, 2, 0);
    all = snapshot_of_access(&keys.access);
    request.keys = &all;
    assert_int_equal(rdb_save(path, temp_path, &request, &saved), STATUS_OK);
    store_destroy(&keys.store);
    read_all_of(&bytes);
    keyspace_init(&again);
    load_request.access = &again.access;
    memory_source_init(&source, buffer_slice(&bytes));
    assert_true(rdb_load(&source.source, &load_request, &result));
    assert_int_equal(result.keys, 1);
    expect_version(&again, 2, false);
    assert_int_equal(records.size, strlen("first.second."));
    assert_memory_equal(records.data, "first.second.", records.size);
    store_destroy(&again.store);
    buffer_fini(&bytes);
    buffer_fini(&records);
}

static bool has_even_name(const struct snapshot_choice *choice, const struct entry *entry)
{
    const struct slice name = entry_key(entry);

    (void)choice;
    return (name.data[name.size - 1] - '0') % 2 == 0;
}

struct key_counter {
    struct rdb_handler handler; /* first */
    unsigned keys, even, sizes;
};

static bool count_key(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *key,
                      struct rdb_value *value)
{
    struct key_counter *counter = (struct key_counter *)handler;

    (void)reader;
    (void)value;
    counter->keys++;
    counter->even += (key->name.data[key->name.size - 1] - '0') % 2 == 0;
    return true;
}

static void count_sizes(struct rdb_handler *handler, unsigned db, uint64_t keys, uint64_t expires)
{
    (void)db;
    (void)keys;
    (void)expires;
    ((struct key_counter *)handler)->sizes++;
}

static struct key_counter count_of_file(void)
{
    struct key_counter counter = {
        .handler = {.key = count_key, .sizes = count_sizes, .limits = limits, .database_count = 16}};
    struct memory_source source;
    struct rdb_reader reader;
    struct buffer bytes = {0};

    read_all_of(&bytes);
    memory_source_init(&source, buffer_slice(&bytes));
    rdb_reader_init(&reader, &source.source);
    assert_true(rdb_read_file(&reader, &counter.handler));
    rdb_reader_fini(&reader);
    buffer_fini(&bytes);
    return counter;
}

/* How many keys will be in it is not known, so it does not say. */
static void a_file_of_chosen_keys_has_these_and_no_sizes(void **state)
{
    static const struct snapshot_choice even = {.has = has_even_name};

    struct rdb_save_result result;
    struct key_counter counter;
    struct keyspace keys;

    (void)state;
    keyspace_init(&keys);
    fill(&keys, "c");
    for (save_threads = 0; save_threads <= 3; save_threads += 3) {
        save_choice = NULL;
        assert_int_equal(save(&keys, &result), STATUS_OK);
        counter = count_of_file();
        assert_true(counter.keys == KEYS && counter.sizes == 2);
        save_choice = &even;
        assert_int_equal(save(&keys, &result), STATUS_OK);
        counter = count_of_file();
        assert_int_equal(result.keys, KEYS / 2);
        assert_true(counter.keys == KEYS / 2 && counter.even == KEYS / 2 && counter.sizes == 0);
    }
    save_choice = NULL;
    save_threads = 0;
    store_destroy(&keys.store);
}

static bool cut_each(struct snapshot *snapshot, const struct snapshot_visitor *visitors, unsigned count)
{
    struct snapshot all = snapshot_of_access(snapshot->access);

    return !snapshot_each_by(&all, visitors, count);
}

static unsigned one_database(const struct snapshot *snapshot)
{
    (void)snapshot;
    return 1;
}

static bool refuse(void *context)
{
    (void)context;
    return false;
}

static void a_file_that_is_not_whole_or_not_wanted_gets_no_name(void **state)
{
    static const struct snapshot_kind cut_kind = {one_database, .each = cut_each};
    struct keyspace keys;
    struct snapshot all, cut;
    struct rdb_save_request request = {.options = {RDB_VERSION_WRITTEN_LEAST, RDB_VERSION_MOST, true, true}};
    struct rdb_save_result result;

    (void)state;
    (void)!file_remove(path);
    keyspace_init(&keys);
    all = snapshot_of_access(&keys.access);
    cut = (struct snapshot){.kind = &cut_kind, .access = &keys.access};
    request.keys = &cut;
    assert_int_equal(rdb_save(path, temp_path, &request, &result), STATUS_INTERRUPTED);
    assert_false(file_exists(path) || file_exists(temp_path));
    request.keys = &all;
    request.may_commit = refuse;
    assert_int_equal(rdb_save(path, temp_path, &request, &result), STATUS_INTERRUPTED);
    assert_false(file_exists(path) || file_exists(temp_path));
    request.may_commit = NULL;
    assert_int_equal(rdb_save(path, temp_path, &request, &result), STATUS_OK);
    assert_true(file_exists(path));
    store_destroy(&keys.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saving_fails_cleanly_at_every_call),
        cmocka_unit_test(several_threads_write_one_file),
        cmocka_unit_test(power_fails_after_any_call),
        cmocka_unit_test(power_fails_at_any_point),
        cmocka_unit_test(loading_fails_cleanly_at_every_call),
        cmocka_unit_test(versions_come_back_with_the_local_numbers_of_their_origins),
        cmocka_unit_test(a_file_without_origins_has_no_versions),
        cmocka_unit_test(damaged_versions_are_refused),
        cmocka_unit_test(records_stand_behind_all_keys_and_belong_to_none),
        cmocka_unit_test(a_file_of_chosen_keys_has_these_and_no_sizes),
        cmocka_unit_test(a_file_that_is_not_whole_or_not_wanted_gets_no_name),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
