/* The keyspace against a model: an array of a few keys with value, deadline, version and watcher. */
#include "store/access_at.h"

#include "base/mem.h"
#include "base/test_seed.h"
#include "store/effects.h"
#include "store/expiry.h"
#include "store/journal_blob.h"
#include "store/key_registry.h"
#include "store/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { KEYS = 400, DATABASES = 3, STRIPES = 8, VALUE_MOST = 3000 };

struct model_key {
    char name[300];
    struct slice slice;
    char *value[DATABASES]; /* NULL: absent */
    size_t size[DATABASES];
    int64_t expire_ms[DATABASES];
    uint64_t version[DATABASES]; /* 0: none */
};

static struct model_key *model;
static struct store *store;
static struct store_counters counters;
static struct access access_;
static struct effects effects;
static int64_t now_ms;

static void model_drop(struct model_key *key, unsigned db)
{
    free(key->value[db]);
    key->value[db] = NULL;
    key->expire_ms[db] = EXPIRE_NEVER;
    key->version[db] = 0;
}

static void model_set(struct model_key *key, unsigned db, const char *value, size_t size, int64_t expire_ms)
{
    char *copy = malloc(size + 1);

    memcpy(copy, value, size);
    free(key->value[db]);
    key->value[db] = copy;
    key->size[db] = size;
    key->expire_ms[db] = expire_ms;
}

/* As time passes keys go. */
static void model_tick(void)
{
    for (unsigned i = 0; i < KEYS; i++) {
        for (unsigned db = 0; db < DATABASES; db++) {
            if (model[i].value[db] != NULL && model[i].expire_ms[db] != EXPIRE_NEVER && now_ms > model[i].expire_ms[db])
                model_drop(&model[i], db);
        }
    }
}

static void setup(struct random *random)
{
    model = calloc(KEYS, sizeof(*model));
    for (unsigned i = 0; i < KEYS; i++) {
        int size = snprintf(model[i].name, sizeof(model[i].name), "key:%u", i);

        if (i % 10 == 0) { /* some longer than a byte can count */
            size_t more = (size_t)size + random_below(random, sizeof(model[i].name) - (size_t)size);

            memset(model[i].name + size, 'x', more - (size_t)size);
            size = (int)more;
        }
        model[i].slice = slice_make(model[i].name, (size_t)size);
        for (unsigned db = 0; db < DATABASES; db++)
            model[i].expire_ms[db] = EXPIRE_NEVER;
    }
    memset(&counters, 0, sizeof(counters));
    store = store_create(STRIPES, DATABASES);
    access_init(&access_, store, &counters);
    now_ms = 1800000000000;
}

static void teardown(void)
{
    store_destroy(&store);
    for (unsigned i = 0; i < KEYS; i++) {
        for (unsigned db = 0; db < DATABASES; db++)
            model_drop(&model[i], db);
    }
    free(model);
    effects_fini(&effects);
}

static void begin(void)
{
    access_begin(&access_, now_ms, true);
    access_.effects = &effects;
}

static size_t random_value(struct random *random, char *value)
{
    size_t size = random_below(random, random_below(random, 10) == 0 ? VALUE_MOST : 100);

    if (random_below(random, 3) == 0)
        return (size_t)sprintf(value, "%lld", (long long)random_u64(random) >> random_below(random, 64));
    for (size_t i = 0; i < size; i++)
        value[i] = (char)random_u64(random);
    return size;
}

static void check_entry(const struct entry *entry, const struct model_key *key, unsigned db)
{
    char scratch[ENTRY_INT_TEXT_BYTES];
    struct slice value;

    assert_true((entry != NULL) == (key->value[db] != NULL));
    if (entry == NULL)
        return;
    value = entry_string(entry, scratch);
    assert_int_equal(value.size, key->size[db]);
    assert_memory_equal(value.data, key->value[db], value.size);
    assert_int_equal(entry_expire_ms(entry), key->expire_ms[db]);
    assert_int_equal(entry_version(entry), key->version[db]);
    assert_true(slice_equal(entry_key(entry), key->slice));
}

static void visit_count(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    (void)access;
    (void)db;
    (void)entry;
    (*(uint64_t *)context)++;
}

static void check_all(void)
{
    for (unsigned db = 0; db < DATABASES; db++) {
        uint64_t live = 0, seen = 0;

        for (unsigned i = 0; i < KEYS; i++) {
            struct key key = key_make(model[i].slice);

            check_entry(access_probe(&access_, db, &key), &model[i], db);
            live += model[i].value[db] != NULL;
        }
        assert_int_equal(store_key_count(store, db), live);
        access_each(&access_, db, &(struct access_visitor){.visit = visit_count, .context = &seen});
        assert_int_equal(seen, live);
        for (unsigned i = 0; i < STRIPES; i++) {
            const struct stripe_db *keys = stripe_db(&store->stripes[i], db);

            if (keys != NULL && atomic_load(&keys->deadlines) != NULL)
                expiry_validate(atomic_load(&keys->deadlines), &keys->keys);
        }
    }
}

static void random_put(struct random *random, struct model_key *model_key, const struct key *key, unsigned db)
{
    char value[VALUE_MOST + 32];
    size_t size = random_value(random, value);
    int64_t expire_ms = random_below(random, 2) ? EXPIRE_NEVER : now_ms + 1 + (int64_t)random_below(random, 500);
    bool keep = random_below(random, 4) == 0, had = model_key->value[db] != NULL;
    struct change change;

    (void)access_find(&access_, db, key);
    change_begin(&change, &access_, db, key);
    if (size > 1500 && random_below(random, 2) == 0) {
        struct blob *blob = blob_create_copy(slice_make(value, size));

        change_put_blob(&change, blob, keep ? EXPIRE_KEEP : expire_ms);
        blob_release(&blob);
    } else {
        change_put_string(&change, slice_make(value, size), keep ? EXPIRE_KEEP : expire_ms);
    }
    change_end(&change, EVENT_STRING, "set");
    if (keep)
        expire_ms = had ? model_key->expire_ms[db] : EXPIRE_NEVER;
    model_set(model_key, db, value, size, expire_ms);
}

static void random_edit(struct random *random, struct model_key *model_key, const struct key *key, unsigned db)
{
    size_t old_size = model_key->value[db] != NULL ? model_key->size[db] : 0;
    size_t size = old_size + random_below(random, random_below(random, 10) == 0 ? 1200 : 50);
    char *value = calloc(1, size + 1), *bytes;
    struct change change;

    if (size > VALUE_MOST * 4)
        size = VALUE_MOST;
    if (model_key->value[db] != NULL)
        memcpy(value, model_key->value[db], MIN(old_size, size));
    (void)access_find(&access_, db, key);
    change_begin(&change, &access_, db, key);
    bytes = change_edit_string(&change, size);
    assert_memory_equal(bytes, value, size);
    if (size != 0)
        bytes[size - 1] = value[size - 1] = 'e';
    change_end(&change, EVENT_STRING, "append");
    model_set(model_key, db, value, size, model_key->value[db] != NULL ? model_key->expire_ms[db] : EXPIRE_NEVER);
    free(value);
}

static void random_move(struct random *random, struct model_key *from_key, unsigned from_db, bool copy)
{
    struct model_key *to_key = &model[random_below(random, KEYS)];
    unsigned to_db = (unsigned)random_below(random, DATABASES);
    struct key from = key_make(from_key->slice), to = key_make(to_key->slice);
    struct change source, target;
    const struct entry *entry = access_find(&access_, from_db, &from);

    if (entry == NULL || (from_key == to_key && from_db == to_db))
        return;
    (void)access_find(&access_, to_db, &to);
    change_begin(&target, &access_, to_db, &to);
    if (copy) {
        entry = access_find(&access_, from_db, &from);
        change_copy_value(&target, entry, from_key->expire_ms[from_db]);
    } else {
        change_begin(&source, &access_, from_db, &from);
        change_move_value(&target, &source, from_key->expire_ms[from_db]);
        change_end(&source, EVENT_GENERIC, "rename_from");
    }
    change_end(&target, EVENT_GENERIC, "rename_to");
    model_set(to_key, to_db, from_key->value[from_db], from_key->size[from_db], from_key->expire_ms[from_db]);
    if (!copy)
        model_drop(from_key, from_db);
}

static void random_expire(struct random *random, struct model_key *model_key, const struct key *key, unsigned db)
{
    int64_t expire_ms = random_below(random, 3) == 0 ? EXPIRE_NEVER : now_ms + 1 + (int64_t)random_below(random, 900);
    struct change change;

    if (access_find(&access_, db, key) == NULL)
        return;
    change_begin(&change, &access_, db, key);
    change_expire(&change, expire_ms);
    change_end(&change, EVENT_GENERIC, "expire");
    model_key->expire_ms[db] = expire_ms;
}

static void random_version(struct random *random, struct model_key *model_key, const struct key *key, unsigned db)
{
    uint64_t version = random_below(random, 4) == 0 ? 0 : random_u64(random);
    struct change change;

    if (access_find(&access_, db, key) == NULL)
        return;
    change_begin(&change, &access_, db, key);
    change_set_version(&change, version);
    change_abandon(&change);
    model_key->version[db] = version;
}

static void random_step(struct random *random)
{
    struct model_key *model_key = &model[random_below(random, KEYS)];
    struct key key = key_make(model_key->slice);
    unsigned db = (unsigned)random_below(random, DATABASES);

    switch (random_below(random, 18)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        random_put(random, model_key, &key, db);
        break;
    case 5:
    case 6:
        random_edit(random, model_key, &key, db);
        break;
    case 7:
        random_move(random, model_key, db, false);
        break;
    case 8:
        random_move(random, model_key, db, true);
        break;
    case 9:
    case 10:
    case 11:
        random_expire(random, model_key, &key, db);
        break;
    case 12:
        assert_true(access_delete(&access_, db, &key) == (model_key->value[db] != NULL));
        model_drop(model_key, db);
        break;
    case 13:
        for (uint32_t i = 0; i < STRIPES; i++)
            (void)access_expire_due(&access_, i, db, 1000);
        break;
    case 14:
    case 15:
        random_version(random, model_key, &key, db);
        break;
    default:
        check_entry(access_read(&access_, db, &key), model_key, db);
    }
}

static void random_changes_match_the_model(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    setup(&random);
    for (unsigned i = 0; i < 60000; i++) {
        begin();
        random_step(&random);
        if (random_below(&random, 5) == 0) {
            now_ms += (int64_t)random_below(&random, 20);
            model_tick();
        }
        if (i % 2000 == 0) {
            begin();
            check_all();
        }
        if (random_below(&random, 20000) == 0) {
            begin();
            access_flush_db(&access_, 1, false);
            for (unsigned k = 0; k < KEYS; k++)
                model_drop(&model[k], 1);
        }
        effects_clear(&effects);
    }
    begin();
    check_all();
    teardown();
}

/* With active expiry alone every key goes, at its time. */
static void due_keys_go_and_only_those(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    setup(&random);
    for (unsigned i = 0; i < KEYS; i++) {
        struct key key = key_make(model[i].slice);
        struct change change;

        begin();
        change_begin(&change, &access_, 0, &key);
        change_put_string(&change, SLICE("v"), now_ms + (int64_t)i);
        change_end(&change, EVENT_STRING, "set");
    }
    for (unsigned i = 0; i < KEYS; i++) {
        now_ms++;
        begin();
        for (uint32_t k = 0; k < STRIPES; k++) {
            bool due = access_has_due(&access_, k, 0);

            assert_true(access_expire_due(&access_, k, 0, 1000) > 0 || !due);
        }
        assert_int_equal(store_key_count(store, 0), KEYS - i - 1);
    }
    assert_int_equal(effects.count, KEYS); /* each deletion is in the journal's stream */
    assert_int_equal(atomic_load(&counters.expired_keys), KEYS);
    teardown();
}

static void watchers_learn_of_changes(void **state)
{
    struct random random = test_random(__func__);
    struct watch_set *set = watch_set_create(), *other = watch_set_create();
    struct key key, absent;

    (void)state;
    setup(&random);
    key = key_make(model[1].slice);
    absent = key_make(model[2].slice);
    begin();
    watch_add(set, &access_, 0, &key);
    watch_add(set, &access_, 0, &key);
    watch_add(other, &access_, 1, &key);
    watch_add(other, &access_, 0, &absent);
    assert_int_equal(watch_set_count(set), 1);
    random_put(&random, &model[1], &key, 0);
    assert_true(watch_set_is_touched(set));
    assert_false(watch_set_is_touched(other));
    access_flush_db(&access_, 1, false); /* nothing there */
    assert_false(watch_set_is_touched(other));
    random_put(&random, &model[2], &absent, 0);
    assert_true(watch_set_is_touched(other));
    assert_true(watch_set_try_destroy(&set, store));
    assert_null(set);
    assert_true(watch_set_try_destroy(&other, store));
    for (uint32_t i = 0; i < STRIPES; i++)
        if (store->stripes[i].registries != NULL)
            assert_int_equal(table_count(&store->stripes[i].registries->watched.keys), 0);
    teardown();
}

static void a_lookup_without_the_stripe_is_caught(void **state)
{
    struct random random = test_random(__func__);
    struct key key;
    uint32_t stripe, busy;

    (void)state;
    setup(&random);
    key = key_make(model[1].slice);
    access_begin(&access_, now_ms, false);
    stripe = access_stripe_of(&access_, &key);
    assert_false(access_holds(&access_, stripe));
    assert_true(access_lock(&access_, &stripe, 1, &busy));
    assert_true(access_holds(&access_, stripe));
    assert_null(access_read(&access_, 0, &key));
    access_unlock(&access_, &stripe, 1);
    assert_false(access_holds(&access_, stripe));
    teardown();
}

static uint64_t version_in(const struct change *change)
{
    const struct entry *entry = change_entry(change);

    assert_non_null(entry);
    return entry != NULL ? entry_version(entry) : 0;
}

/* With all shapes of entries: strings in and outside of the entry, numbers, long names, deadlines. */
static void a_version_takes_one_word_and_gives_it_back(void **state)
{
    static const char *const values[] = {"", "short", "4711", "a value of some length, in the entry"};
    struct random random = test_random(__func__);

    (void)state;
    setup(&random);
    begin();
    for (unsigned i = 0; i < 64; i++) {
        char name[400], text[2000];
        struct key key = key_make(slice_make(name, (i & 1) != 0 ? 300 : 20));
        unsigned shape = i / 2 % 5;
        struct change change;
        uint64_t before;

        memset(name, 'n', sizeof(name));
        memset(text, 't', sizeof(text));
        change_begin(&change, &access_, 0, &key);
        change_put_string(&change, shape < 4 ? slice_from_text(values[shape]) : slice_make(text, sizeof(text)),
                          (i & 32) != 0 ? now_ms + 1000 : EXPIRE_NEVER);
        change_end(&change, EVENT_STRING, "set");
        before = store_entry_bytes(store, change_entry(&change), 0);
        change_set_version(&change, i + 1);
        assert_int_equal(version_in(&change), i + 1);
        assert_in_range(store_entry_bytes(store, change_entry(&change), 0), before, before + before / 4 + 8);
        change_set_version(&change, 0);
        assert_int_equal(version_in(&change), 0);
        assert_int_equal(store_entry_bytes(store, change_entry(&change), 0), before);
        change_abandon(&change);
    }
    teardown();
}

/* Neither freed nor handed over while the stripe is held. */
static void a_large_value_is_given_up_behind_the_release(void **state)
{
    struct key key = key_make(SLICE("large"));
    struct random random = test_random(__func__);

    (void)state;
    setup(&random);
    begin();
    for (int later = 0; later < 2; later++) {
        struct blob *blob = blob_create(1 << 20);
        uint32_t stripe = access_stripe_of(&access_, &key), busy;
        uint64_t pending, done_before, done;
        struct change change;

        atomic_store(&store->frees_later, FREE_UNLINK | (later != 0 ? FREE_SERVER_DEL : 0));
        access_.exclusive = false;
        memset(blob->data, 'x', blob->size);
        assert_true(access_lock(&access_, &stripe, 1, &busy));
        change_begin(&change, &access_, 0, &key);
        change_put_blob(&change, blob, EXPIRE_NEVER);
        change_end(&change, EVENT_STRING, "set");
        access_background_frees(&pending, &done_before);
        assert_true(access_delete(&access_, 0, &key));
        access_background_frees(&pending, &done);
        assert_int_equal(pending, 0);
        assert_int_equal(done, done_before);
        assert_int_equal(blob_is_exclusive(blob), 0);
        access_unlock(&access_, &stripe, 1);
        access_background_frees(&pending, &done);
        assert_int_equal(done, done_before + (uint64_t)later);
        assert_true(blob_is_exclusive(blob));
        blob_release(&blob);
    }
    teardown();
}

static struct blob *stored_blob(const struct key *key)
{
    const struct entry *entry = access_find(&access_, 0, key);

    assert_non_null(entry);
    return entry != NULL ? entry_blob(entry) : NULL;
}

/* Its effect can refer to the blob that the key has got. What the key and the journal share counts for the data, and
 * for the journal when the key has gone. */
static void a_long_string_is_shared_with_the_journal(void **state)
{
    struct key key = key_make(SLICE("long"));
    struct random random = test_random(__func__);
    const uint64_t before = journal_blob_bytes();
    char text[EFFECT_BLOB_BYTES];
    struct change change;
    struct blob *blob = NULL;

    (void)state;
    setup(&random);
    begin();
    memset(text, 'x', sizeof(text));
    for (int notes = 0; notes < 2; notes++) {
        access_.effects = NULL;
        access_.notes_stored = notes != 0;
        for (size_t size = sizeof(text) - 1; size <= sizeof(text); size++) {
            change_begin(&change, &access_, 0, &key);
            change_put_string(&change, slice_make(text, size), EXPIRE_NEVER);
            change_end(&change, EVENT_STRING, "set");
            blob = access_stored_blob(&access_, slice_make(text, size));
            assert_int_equal(blob != NULL, notes != 0 && size == sizeof(text));
            assert_null(access_stored_blob(&access_, slice_make(text, size - 1)));
        }
    }
    assert_ptr_equal(blob, stored_blob(&key));
    assert_ptr_equal(journal_blob_acquire(blob), blob);
    access_forget_stored(&access_);
    assert_null(access_stored_blob(&access_, slice_make(text, sizeof(text))));
    assert_int_equal(journal_blob_bytes(), before);
    change_begin(&change, &access_, 0, &key);
    *change_edit_string(&change, sizeof(text)) = 'y'; /* not in the journal */
    change_end(&change, EVENT_STRING, "setrange");
    assert_int_equal(blob->data[0], 'x');
    assert_int_equal(journal_blob_bytes(), before + blob_footprint(blob));
    journal_blob_release(&blob);
    assert_int_equal(journal_blob_bytes(), before);
    access_.notes_stored = false;
    teardown();
}

/* It becomes the journal's when the last key has gone, and data again when a key gets it. */
static void a_shared_string_is_data_as_long_as_a_key_has_it(void **state)
{
    struct key keys[] = {key_make(SLICE("first")), key_make(SLICE("second")), key_make(SLICE("third"))};
    struct random random = test_random(__func__);
    const uint64_t before = journal_blob_bytes();
    struct blob *blob = blob_create(8192), *record, *other;
    struct change from, to;

    (void)state;
    setup(&random);
    begin();
    record = journal_blob_acquire(blob);
    other = journal_blob_acquire(blob);
    assert_int_equal(journal_blob_bytes(), before + blob_footprint(blob));
    change_begin(&to, &access_, 0, &keys[0]);
    change_put_blob(&to, blob, EXPIRE_NEVER);
    change_end(&to, EVENT_STRING, "set");
    assert_int_equal(journal_blob_bytes(), before);
    change_begin(&from, &access_, 0, &keys[0]);
    change_begin(&to, &access_, 0, &keys[1]);
    change_move_value(&to, &from, EXPIRE_NEVER);
    change_end(&from, EVENT_GENERIC, "rename_from");
    change_end(&to, EVENT_GENERIC, "rename_to");
    assert_int_equal(journal_blob_bytes(), before);
    change_begin(&to, &access_, 0, &keys[2]);
    change_copy_value(&to, access_find(&access_, 0, &keys[1]), EXPIRE_NEVER);
    change_end(&to, EVENT_GENERIC, "copy_to");
    for (unsigned i = 1; i < 3; i++) {
        assert_int_equal(journal_blob_bytes(), before);
        change_begin(&to, &access_, 0, &keys[i]);
        change_delete(&to);
        change_end(&to, EVENT_GENERIC, "del");
    }
    assert_int_equal(journal_blob_bytes(), before + blob_footprint(blob));
    journal_blob_release(&other);
    assert_int_equal(journal_blob_bytes(), before + blob_footprint(blob));
    journal_blob_release(&record);
    assert_int_equal(journal_blob_bytes(), before);
    blob_release(&blob);
    teardown();
}

/* The counts of a blob have limits: then there are copies. */
static void a_blob_that_very_many_records_have_is_copied(void **state)
{
    const uint64_t before = journal_blob_bytes();
    struct blob *blob = blob_create_copy(SLICE("text")), *records[300];
    unsigned copies = 0;

    (void)state;
    for (unsigned i = 0; i < countof(records); i++) {
        records[i] = journal_blob_acquire(blob);
        copies += records[i] != blob;
        assert_memory_equal(records[i]->data, "text", 4);
    }
    assert_in_range(copies, 100, 299);
    assert_int_equal(journal_blob_bytes(), before + (copies + 1) * blob_footprint(blob));
    for (unsigned i = 0; i < countof(records); i++)
        journal_blob_release(&records[i]);
    assert_int_equal(journal_blob_bytes(), before);
    blob_release(&blob);
}

static void put_for(struct store *into, const char *name, unsigned db, int64_t expire_ms)
{
    struct key key = key_make(slice_from_text(name));
    struct access access;
    struct change change;

    access_init(&access, into, &counters);
    access_begin(&access, now_ms, true);
    change_begin(&change, &access, db, &key);
    change_put_string(&change, SLICE("new"), expire_ms);
    change_end(&change, EVENT_STRING, "set");
}

static uint64_t count_expires(const struct store *of, unsigned db)
{
    struct database_totals totals;

    store_database_totals(of, db, &totals);
    return totals.expires;
}

/* A watched key that was loaded is another now; one that is absent still is not. */
static void watchers_learn_of_what_was_loaded(void **state)
{
    struct random random = test_random(__func__);
    struct watch_set *loaded = watch_set_create(), *absent = watch_set_create();
    struct key key, other;
    struct change change;

    (void)state;
    setup(&random);
    key = key_make(model[1].slice);
    other = key_make(model[2].slice);
    begin();
    watch_add(loaded, &access_, 1, &key);
    watch_add(absent, &access_, 1, &other);
    change_begin(&change, &access_, 1, &key); /* as loading does, without its end */
    change_put_string(&change, SLICE("v"), EXPIRE_NEVER);
    assert_false(watch_set_is_touched(loaded));
    access_note_loaded(&access_);
    assert_true(watch_set_is_touched(loaded));
    assert_false(watch_set_is_touched(absent));
    assert_true(watch_set_try_destroy(&loaded, store));
    assert_true(watch_set_try_destroy(&absent, store));
    teardown();
}

/* The other store's keys come, with their deadlines; ours wait in it, whole. */
static void two_stores_exchange_their_keys(void **state)
{
    struct random random = test_random(__func__);
    struct watch_set *gone = watch_set_create(), *come = watch_set_create(), *neither = watch_set_create();
    struct key fresh = key_make(SLICE("fresh")), absent = key_make(SLICE("absent")), old;
    struct store *other;
    uint64_t expires[DATABASES];

    (void)state;
    setup(&random);
    for (unsigned i = 0; i < 5000; i++) {
        begin();
        random_step(&random);
        effects_clear(&effects);
    }
    old = key_make(model[3].slice);
    begin();
    random_put(&random, &model[3], &old, 0);
    watch_add(gone, &access_, 0, &old);
    watch_add(come, &access_, 1, &fresh);
    watch_add(neither, &access_, 0, &absent);
    for (unsigned db = 0; db < DATABASES; db++)
        expires[db] = count_expires(store, db);
    other = store_create_like(store);
    put_for(other, "fresh", 1, now_ms + 1000);
    put_for(other, "eternal", 1, EXPIRE_NEVER);

    access_exchange(&access_, other);
    assert_true(watch_set_is_touched(gone));
    assert_true(watch_set_is_touched(come));
    assert_false(watch_set_is_touched(neither));
    assert_int_equal(store_key_count(store, 0), 0);
    assert_int_equal(store_key_count(store, 1), 2);
    assert_int_equal(count_expires(store, 1), 1);
    assert_int_equal(count_expires(store, 0), 0);
    assert_int_equal(count_expires(other, 0), expires[0]);
    assert_non_null(access_probe(&access_, 1, &fresh));
    now_ms += 1001;
    begin();
    for (uint32_t i = 0; i < STRIPES; i++)
        (void)access_expire_due(&access_, i, 1, 1000);
    assert_int_equal(store_key_count(store, 1), 1);
    effects_clear(&effects);
    now_ms -= 1001;

    begin();
    access_exchange(&access_, other);
    check_all();
    for (unsigned db = 0; db < DATABASES; db++)
        assert_int_equal(count_expires(store, db), expires[db]);
    assert_int_equal(store_key_count(other, 1), 1);
    store_destroy(&other);
    assert_true(watch_set_try_destroy(&gone, store));
    assert_true(watch_set_try_destroy(&come, store));
    assert_true(watch_set_try_destroy(&neither, store));
    teardown();
}

/* What a change has found is where a lookup finds it later, whatever comes, goes and moves. */
static void a_key_is_where_it_was_found(void **state)
{
    struct random random = test_random(__func__);
    struct access_spot *spots = calloc(KEYS, sizeof(*spots));
    struct key *keys = calloc(KEYS, sizeof(*keys));
    unsigned kept = 0;

    (void)state;
    setup(&random);
    store_set_stamping(store, true); /* what is observed is kept */
    begin();
    for (unsigned i = 0; i < KEYS; i++)
        keys[i] = key_make(model[i].slice);
    for (unsigned i = 0; i < 20 * KEYS; i++) {
        const unsigned index = (unsigned)random_below(&random, KEYS), other = (unsigned)random_below(&random, KEYS);
        const uint32_t moves = store->stripes[access_stripe_of(&access_, &keys[other])].moves;
        struct change change;
        uint64_t *slot;

        change_begin(&change, &access_, 0, &keys[index]);
        if (random_below(&random, 20) == 0 && change.slot != NULL)
            change_delete(&change);
        else
            change_put_string(&change, SLICE("some value"), EXPIRE_NEVER);
        spots[index] = change_spot(&change);
        change_end(&change, EVENT_STRING, NULL);
        if (random_below(&random, 2000) == 0)
            access_flush_db(&access_, 0, false);

        kept += spots[other].moves == moves && spots[other].slot != NULL;
        change_find_at(&change, &access_, 0, &keys[other], &spots[other]);
        slot = change.slot;
        access_.recent = (struct access_recent){0};
        change_find(&change, &access_, 0, &keys[other]);
        assert_ptr_equal(slot, change.slot);
        effects_clear(&effects);
    }
    assert_true(kept > KEYS);
    store_set_stamping(store, false);
    teardown();
    free(keys);
    free(spots);
}

/* A key that was looked at is changed, and gets its version, where it was; also if others have come and gone since. */
static void a_key_is_changed_where_it_was_looked_at(void **state)
{
    struct random random = test_random(__func__);
    unsigned kept = 0, due = 0;

    (void)state;
    setup(&random);
    store_set_stamping(store, true);
    begin();
    for (unsigned i = 0; i < 20 * KEYS; i++) {
        const struct key key = key_make(model[random_below(&random, KEYS)].slice);
        const struct key other = key_make(model[random_below(&random, KEYS)].slice);
        const bool is_due = random_below(&random, 4) == 0;
        const struct entry *entry;
        struct access_spot spot;
        struct change change;

        entry = access_look_at(&access_, 0, &key, &spot);
        assert_ptr_equal(entry, access_look(&access_, 0, &key));
        if (random_below(&random, 4) != 0) {
            change_begin(&change, &access_, 0, &other);
            if (random_below(&random, 3) == 0 && change.slot != NULL)
                change_delete(&change);
            else
                change_put_string(&change, SLICE("some value"), is_due ? now_ms - 1 : EXPIRE_NEVER);
            change_end(&change, EVENT_STRING, NULL);
        }
        entry = access_look(&access_, 0, &key);
        if (access_find_at(&access_, 0, &key, &spot)) {
            assert_true(entry == NULL || entry_expire_ms(entry) == EXPIRE_NEVER || entry_expire_ms(entry) >= now_ms);
            assert_ptr_equal(access_probe(&access_, 0, &key), entry);
            kept++;
        } else {
            due += entry != NULL && entry_expire_ms(entry) != EXPIRE_NEVER && entry_expire_ms(entry) < now_ms;
        }
        assert_int_equal(access_set_version(&access_, 0, &key, &spot, i + 1), access_look(&access_, 0, &key) != NULL);
        entry = access_look(&access_, 0, &key);
        if (entry != NULL)
            assert_int_equal(entry_version(entry), i + 1);
        effects_clear(&effects);
    }
    assert_true(kept > KEYS && due > 10);
    store_set_stamping(store, false);
    teardown();
}

/* Loops have their key in one place of memory. */
static void another_key_in_the_same_memory_is_another_key(void **state)
{
    struct random random = test_random(__func__);
    struct key key, keys[2];

    (void)state;
    setup(&random);
    begin();
    for (unsigned i = 0; i < 2; i++) {
        struct change change;

        keys[i] = key_make(i == 0 ? SLICE("one") : SLICE("other"));
        change_begin(&change, &access_, 0, &keys[i]);
        change_put_string(&change, keys[i].name, EXPIRE_NEVER);
        change_end(&change, EVENT_STRING, NULL);
    }
    assert_non_null(access_look(&access_, 0, &keys[0]));
    for (unsigned i = 0; i < 8; i++) {
        const struct entry *entry;

        key = keys[(i + 1) % 2];
        entry = access_probe(&access_, 0, &key);
        assert_non_null(entry);
        assert_true(slice_equal(entry_key(entry), key.name));
    }
    teardown();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_key_in_the_same_memory_is_another_key),
        cmocka_unit_test(a_key_is_where_it_was_found),
        cmocka_unit_test(a_key_is_changed_where_it_was_looked_at),
        cmocka_unit_test(random_changes_match_the_model),
        cmocka_unit_test(due_keys_go_and_only_those),
        cmocka_unit_test(watchers_learn_of_changes),
        cmocka_unit_test(watchers_learn_of_what_was_loaded),
        cmocka_unit_test(two_stores_exchange_their_keys),
        cmocka_unit_test(a_lookup_without_the_stripe_is_caught),
        cmocka_unit_test(a_version_takes_one_word_and_gives_it_back),
        cmocka_unit_test(a_large_value_is_given_up_behind_the_release),
        cmocka_unit_test(a_long_string_is_shared_with_the_journal),
        cmocka_unit_test(a_shared_string_is_data_as_long_as_a_key_has_it),
        cmocka_unit_test(a_blob_that_very_many_records_have_is_copied),
    };

    fence_setup();
    hash_setup();
    return cmocka_run_group_tests_name("access", tests, NULL, NULL);
}
