/* Versions of changed keys against a model, and by several threads. */
#include "store/changed.h"

#include "base/gate.h"
#include "base/mem.h"
#include "base/test_seed.h"
#include "base/thread.h"
#include "store/effects.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { KEYS = 40, DATABASES = 2, STRIPES = 8, APPENDS = 20000, THREADS = 3, CHANGES = 4000, NAME_BYTES = 24 };

static struct store *store;
static struct journal journal;
static struct journal_reader reader;
static _Atomic int64_t now_ms;

/* What one thread has. */
struct worker {
    struct store_counters counters;
    struct access access;
    struct effects effects;
    struct changed changed;
    struct random random;
};

static void start(void)
{
    store = store_create(STRIPES, DATABASES);
    store_set_stamping(store, true);
    journal_init(&journal);
    journal_reader_open(&reader, &journal);
    journal_set_stamping(&journal, 7, 0);
    atomic_store(&now_ms, 1800000000000);
}

static void finish(void)
{
    journal_reader_close(&reader);
    journal_fini(&journal);
    store_destroy(&store);
}

static void worker_begin(struct worker *worker)
{
    access_init(&worker->access, store, &worker->counters);
    worker->access.effects = &worker->effects;
    worker->access.changed = &worker->changed;
}

static void worker_end(struct worker *worker)
{
    effects_fini(&worker->effects);
    changed_fini(&worker->changed);
}

static struct key key_of(unsigned index, char name[NAME_BYTES])
{
    return key_make(slice_make(name, (size_t)snprintf(name, NAME_BYTES, "key:%u", index)));
}

/* Sets, edits, changes the deadline or deletes. */
static void change_key(struct worker *worker, unsigned db, const struct key *key, unsigned what)
{
    struct change change;

    if (access_find(&worker->access, db, key) == NULL)
        what = 0;
    change_begin(&change, &worker->access, db, key);
    if (what == 1)
        change_expire(&change, change_entry(&change) != NULL ? 2000000000000 : EXPIRE_NEVER);
    else if (what == 2)
        (void)change_edit_string(&change, 1 + random_below(&worker->random, 1500));
    else if (what == 3)
        change_delete(&change);
    else
        change_put_string(&change, SLICE("some value"), EXPIRE_NEVER);
    change_end(&change, EVENT_GENERIC, "changed");
}

static void add_effect(struct worker *worker, unsigned db, const struct key *key)
{
    const struct slice words[] = {SLICE("TOUCHED"), key->name};

    effects_add(&worker->effects, db, words, 2);
}

static uint64_t version_of(struct worker *worker, unsigned db, const struct key *key)
{
    const struct entry *entry = access_look(&worker->access, db, key);

    return entry != NULL ? entry_version(entry) : 0;
}

/* --- against a model --- */

static struct {
    bool exists;
    uint64_t group; /* the number of the last group with effects that changed it; 0: none has */
    uint64_t version;
} model[KEYS][DATABASES];

/* A command, EXEC or script. Some have no effects: the keys they changed keep what they have. */
static void random_group(struct worker *worker, uint64_t number)
{
    struct random *random = &worker->random;
    const unsigned count = 1 + (unsigned)random_below(random, 4);
    const bool is_hidden = random_below(random, 6) == 0;

    access_begin(&worker->access, atomic_load(&now_ms), true);
    for (unsigned i = 0; i < count; i++) {
        const unsigned index = (unsigned)random_below(random, KEYS), db = (unsigned)random_below(random, DATABASES);
        const unsigned what = (unsigned)random_below(random, 5);
        char name[NAME_BYTES];
        struct key key = key_of(index, name);
        const bool goes = what == 3 && model[index][db].exists;

        change_key(worker, db, &key, what);
        if (!is_hidden)
            add_effect(worker, db, &key);
        if (!model[index][db].exists || goes)
            model[index][db].version = 0;
        model[index][db].exists = !goes;
        if (!is_hidden)
            model[index][db].group = number;
    }
    changed_end_group(&worker->changed, &worker->access, &worker->effects, atomic_load(&now_ms));
    effects_end_group(&worker->effects);
}

static void check_model(struct worker *worker, uint64_t first_group, uint64_t *stamps)
{
    for (unsigned i = 0; i < KEYS; i++) {
        for (unsigned db = 0; db < DATABASES; db++) {
            char name[NAME_BYTES];
            struct key key = key_of(i, name);
            uint64_t version = version_of(worker, db, &key);

            if (model[i][db].exists && model[i][db].group >= first_group) {
                uint64_t *stamp = &stamps[model[i][db].group - first_group];

                assert_int_not_equal(version, 0);
                assert_true(*stamp == 0 || *stamp == version_stamp(version)); /* one for the group */
                *stamp = version_stamp(version);
                model[i][db].version = version;
            }
            assert_int_equal(version, model[i][db].version);
        }
    }
}

static void keys_have_the_stamps_of_their_last_groups(void **state)
{
    static struct worker worker;
    uint64_t number = 0, last = 0;

    (void)state;
    worker.random = test_random(__func__);
    start();
    worker_begin(&worker);
    for (unsigned i = 0; i < APPENDS; i++) {
        const unsigned count = 1 + (unsigned)random_below(&worker.random, 5);
        const uint64_t first = number + 1;
        uint64_t stamps[5] = {0};

        for (unsigned k = 0; k < count; k++)
            random_group(&worker, ++number);
        if (worker.effects.count != 0)
            (void)changed_append(&worker.changed, &worker.access, &journal, &worker.effects);
        effects_clear(&worker.effects);
        assert_int_equal(worker.changed.count, 0);
        check_model(&worker, first, stamps);
        for (unsigned k = 0; k < count; k++) {
            assert_true(stamps[k] == 0 || stamps[k] > last);
            last = MAX(last, stamps[k]);
        }
        atomic_fetch_add(&now_ms, (int64_t)random_below(&worker.random, 3) - 1);
        if (journal_wants_tending(&journal))
            assert_true(journal_tend(&journal));
        journal_reader_move(&reader, journal_end_offset(&journal));
    }
    worker_end(&worker);
    finish();
}

/* --- by several threads --- */

static void change_often(void *argument)
{
    struct worker *worker = argument;
    uint32_t busy;

    worker_begin(worker);
    for (unsigned i = 0; i < CHANGES; i++) {
        char name[NAME_BYTES];
        struct key key = key_of((unsigned)random_below(&worker->random, 5), name);
        const uint32_t stripe = access_stripe_of(&worker->access, &key);
        uint64_t before, after;

        access_begin(&worker->access, atomic_fetch_add(&now_ms, 1) - 5, false);
        while (!access_lock(&worker->access, &stripe, 1, &busy))
            sched_yield();
        before = version_of(worker, 0, &key);
        if (i % 2 == 0) /* as most commands: one effect on the one key */
            changed_begin_own(&worker->changed, &key, 1);
        change_key(worker, 0, &key, (unsigned)random_below(&worker->random, 3));
        add_effect(worker, 0, &key);
        if (i % 2 == 0)
            effects_describe(&worker->effects, 1, EFFECT_OWN_KEY | (i % 4 == 0 ? EFFECT_OVERWRITES : 0));
        changed_end_group(&worker->changed, &worker->access, &worker->effects, worker->access.now_ms);
        (void)changed_append(&worker->changed, &worker->access, &journal, &worker->effects);
        after = version_of(worker, 0, &key);
        access_unlock(&worker->access, &stripe, 1);
        effects_clear(&worker->effects);
        assert_true(after > before);
    }
    worker_end(worker);
}

/* At the end each key has the stamp of its last record, and every one was above those before. */
static void the_last_record_of_a_key_is_its_version(void **state)
{
    static struct worker workers[THREADS], checker;
    struct random random = test_random(__func__);
    struct thread threads[THREADS] = {{0}};
    uint64_t stamps[5] = {0};
    struct journal_view view;

    (void)state;
    start();
    for (unsigned i = 0; i < THREADS; i++) {
        random_seed(&workers[i].random, random_u64(&random));
        thread_start(&threads[i], "changer", change_often, &workers[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    while (journal_reader_next(&reader, &view)) {
        if (view.stamp == NULL)
            continue;
        assert_true(view.stamp->stamp > view.stamp->previous);
        stamps[view.bytes.data[view.bytes.size - 3] - '0'] = view.stamp->stamp; /* "key:3\r\n" */
    }
    worker_begin(&checker);
    access_begin(&checker.access, atomic_load(&now_ms), true);
    for (unsigned i = 0; i < 5; i++) {
        char name[NAME_BYTES];
        struct key key = key_of(i, name);

        assert_int_equal(version_stamp(version_of(&checker, 0, &key)), stamps[i]);
    }
    worker_end(&checker);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_have_the_stamps_of_their_last_groups),
        cmocka_unit_test(the_last_record_of_a_key_is_its_version),
    };

    fence_setup();
    hash_setup();
    return cmocka_run_group_tests_name("changed", tests, NULL, NULL);
}
