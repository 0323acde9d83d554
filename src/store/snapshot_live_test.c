/* Snapshots of data that four threads change meanwhile, against what the keys were at the moment: each key of the
 * moment is visited once, as it was, and no other one. */
#include "store/snapshot_live.h"

#include "base/background.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/test_seed.h"
#include "base/thread.h"
#include "data/hash.h"
#include "store/access_at.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

enum { WRITERS = 4, STRIPES = 4, DATABASES = 3, UNUSED_DATABASE = 5, KEYS = 4000, LONG_BYTES = 5000 };

static const struct hash_limits limits = {8, 64};
static const struct store_type hash_row = {.ops = &hash_ops};

struct player {
    struct gate_member member;
    sem_t woken;
    struct access access;
    struct store_counters counters;
    struct random random;
    struct thread thread;
};

static struct gate the_gate;
static struct store *store;
static struct player players[1 + WRITERS]; /* the first one owns the gate */
static _Atomic bool is_over;
static _Atomic bool thins_out; /* most changes are deletions, so that tables shrink */

/* What was visited, and what should be: a number of the value of each key; 0: it is not there. */
struct picture {
    uint64_t values[DATABASES][KEYS];
};
static struct picture expected[ENTRY_MARKS], seen[ENTRY_MARKS];

static void wake(void *context)
{
    (void)sem_post(&((struct player *)context)->woken);
}

static unsigned below(struct player *player, unsigned bound)
{
    return (unsigned)random_below(&player->random, bound);
}

static struct key name_key(unsigned number, char room[16])
{
    return key_make(slice_make(room, (size_t)snprintf(room, 16, "key:%u", number)));
}

/* ------------------------------------------------------------------------------------------------- the pictures -- */

static void add_pair(struct slice field, struct slice value, void *context)
{
    *(uint64_t *)context += hash_bytes(field.data, field.size) * 3 + hash_bytes(value.data, value.size);
}

static uint64_t number_of(const struct entry *entry)
{
    char scratch[ENTRY_INT_TEXT_BYTES];
    uint64_t number = (uint64_t)entry_expire_ms(entry) * 31 + entry_version(entry) * 17 + entry->type + 1;

    if (entry->type == TYPE_HASH) {
        hash_each(entry_value(entry), add_pair, &number);
    } else {
        const struct slice text = entry_string(entry, scratch);

        number += hash_bytes(text.data, text.size);
    }
    return number | 1;
}

static unsigned number_of_name(struct slice name)
{
    int64_t number;

    assert_true(number_parse_i64(slice_make(name.data + 4, name.size - 4), &number) && number < KEYS);
    return (unsigned)number;
}

static void note(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct picture *picture = context;
    uint64_t *value = &picture->values[db][number_of_name(entry_key(entry))];

    (void)access;
    assert_true(*value == 0); /* once */
    *value = number_of(entry);
}

static void take_picture(struct player *player, struct picture *picture)
{
    const struct access_visitor visitor = {.visit = note, .context = picture};

    memset(picture, 0, sizeof(*picture));
    for (unsigned db = 0; db < DATABASES; db++)
        access_each(&player->access, db, &visitor);
}

/* ------------------------------------------------------------------------------------------------------- writers -- */

static void put_text(struct player *player, struct change *change)
{
    char text[LONG_BYTES];
    const size_t size = below(player, 20) == 0 ? below(player, LONG_BYTES) + 1 : below(player, 90) + 1;

    memset(text, 'a' + (int)below(player, 26), size);
    change_put_string(change, slice_make(text, size), below(player, 3) == 0 ? (int64_t)1 << 40 : EXPIRE_KEEP);
}

static void edit_text(struct player *player, struct change *change)
{
    const struct entry *entry = change_entry(change);
    const size_t size = entry != NULL ? entry_string_size(entry) : 0;
    char *bytes = change_edit_string(change, size + below(player, 9) + 1);

    bytes[0] = (char)('A' + (int)below(player, 26));
    bytes[size] = '!';
}

static void put_field(struct player *player, struct change *change)
{
    const struct entry *entry = change_entry(change);
    const bool is_hash = entry != NULL && entry->type == TYPE_HASH;
    struct value hash = is_hash ? entry_value(entry) : hash_create();
    char field[16], value[16];

    for (unsigned i = below(player, 4) + 1; i != 0; i--) {
        const struct slice name = slice_make(field, (size_t)snprintf(field, 16, "f%u", below(player, 30)));

        (void)hash_put(&hash, &limits, name, slice_make(value, (size_t)snprintf(value, 16, "v%u", below(player, 99))));
    }
    if (is_hash)
        change_keep_value(change, hash);
    else
        change_put_value(change, TYPE_HASH, hash, EXPIRE_KEEP);
}

static void change_key(struct player *player, struct change *change)
{
    const struct entry *entry = change_entry(change);

    switch (atomic_load(&thins_out) ? MIN(below(player, 30), 1U) : below(player, 8)) {
    case 0:
        change_put_int(change, (int64_t)below(player, 1000), EXPIRE_NEVER);
        break;
    case 1:
        if (entry != NULL)
            change_delete(change);
        break;
    case 2:
        if (entry != NULL)
            change_expire(change, entry_expire_ms(entry) == EXPIRE_NEVER ? (int64_t)1 << 41 : EXPIRE_NEVER);
        break;
    case 3:
        if (entry != NULL && entry_is_int(entry))
            change_add_int(change, 7);
        break;
    case 4:
    case 5:
        put_field(player, change);
        break;
    case 6:
        if (entry == NULL || entry->type == TYPE_STRING)
            edit_text(player, change);
        break;
    default:
        put_text(player, change);
    }
}

static void enter(struct player *player)
{
    while (!gate_enter(&player->member))
        while (sem_wait(&player->woken) != 0)
            ;
}

static void write_once(struct player *player)
{
    char room[16];
    const struct key key = name_key(below(player, KEYS), room);
    const unsigned db = below(player, DATABASES);
    struct access *access = &player->access;
    uint32_t stripe = access_stripe_of(access, &key), busy;
    struct change change;

    enter(player);
    access_begin(access, 1000, false);
    if (access_lock(access, &stripe, 1, &busy)) {
        if (below(player, 10) == 0)
            (void)access_set_version(access, db, &key, NULL, below(player, 5));
        (void)access_find(access, db, &key);
        change_begin(&change, access, db, &key);
        if (below(player, 10) == 0) {
            change_abandon(&change);
        } else {
            change_key(player, &change);
            change_end(&change, EVENT_GENERIC, NULL);
        }
        access_unlock(access, &stripe, 1);
    }
    gate_leave(&player->member);
}

static void writer(void *argument)
{
    struct player *player = argument;

    while (!atomic_load(&is_over))
        write_once(player);
    gate_rest(&player->member);
}

/* ---------------------------------------------------------------------------------------------------- the thread -- */

static void count_hurry(bool hurries, void *context)
{
    (void)context;
    assert_true(hurries || spinlock_held_count == 0);
}

struct saving {
    struct thread thread;
    struct live_snapshot *live;
    struct picture *picture;
    struct random random;
    bool is_cut; /* stops in the middle */
    bool is_whole;
    unsigned rests;
};

static bool rest(void *context)
{
    struct saving *saving = context;

    if (random_below(&saving->random, 8) == 0)
        (void)usleep(200); /* others get on */
    return !saving->is_cut || ++saving->rests < 5;
}

static void note_saved(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    note(access, db, entry, ((struct saving *)context)->picture);
}

static void save(void *argument)
{
    struct saving *saving = argument;
    const struct snapshot_visitor visitor = {.visit = note_saved,
                                             .hurry = count_hurry,
                                             .rest = rest,
                                             .context = saving};

    live_snapshot_adopt(saving->live);
    memset(saving->picture, 0, sizeof(*saving->picture));
    saving->is_whole = snapshot_each(live_snapshot_keys(saving->live), &visitor);
    assert_true(live_snapshot_costs(saving->live).kept_bytes == 0);
    live_snapshot_end(&saving->live);
}

/* --------------------------------------------------------------------------------------------------------- tests -- */

static void own(struct player *owner)
{
    while (!gate_try_own(&owner->member, 100))
        while (sem_wait(&owner->woken) != 0)
            ;
    access_begin(&owner->access, 1000, true);
}

static void shake(struct player *owner)
{
    own(owner);
    if (below(owner, 3) != 0)
        access_swap_db(&owner->access, below(owner, DATABASES), below(owner, DATABASES));
    else
        access_flush_db(&owner->access, below(owner, DATABASES), below(owner, 2) == 0);
    gate_open(&owner->member);
}

static void setup(const char *name)
{
    struct random random = test_random(name);

    store = store_create(STRIPES, UNUSED_DATABASE + 2);
    store_set_type(store, TYPE_HASH, &hash_row);
    gate_init(&the_gate);
    atomic_store(&is_over, false);
    for (unsigned i = 0; i < countof(players); i++) {
        struct player *player = &players[i];

        memset(player, 0, sizeof(*player));
        random_seed(&player->random, random_u64(&random));
        (void)sem_init(&player->woken, 0, 0);
        access_init(&player->access, store, &player->counters);
        gate_join(&the_gate, &player->member, wake, player);
    }
    gate_traffic_begin();
    for (unsigned i = 1; i < countof(players); i++)
        thread_start(&players[i].thread, "writer", writer, &players[i]);
}

static void teardown(void)
{
    atomic_store(&is_over, true);
    for (unsigned i = 1; i < countof(players); i++)
        thread_join(&players[i].thread);
    gate_traffic_end();
    for (unsigned i = 0; i < countof(players); i++)
        gate_part(&players[i].member);
    background_drain();
    store_destroy(&store);
    gate_fini(&the_gate);
}

/* The thread may have ended it when this returns: only live_snapshot_cancel takes the result then. */
static struct live_snapshot *begin(struct player *owner, struct saving *saving, unsigned i)
{
    const struct live_options options = {.gate = &the_gate};
    struct live_snapshot *live;

    own(owner);
    take_picture(owner, &expected[i]);
    saving->picture = &seen[i];
    saving->rests = 0;
    random_seed(&saving->random, random_u64(&owner->random));
    atomic_store(&thins_out, below(owner, 3) == 0);
    saving->live = live_snapshot_begin(&owner->access, &options);
    live = saving->live;
    assert_non_null(live);
    gate_open(&owner->member);
    thread_start(&saving->thread, "snapshot", save, saving);
    return live;
}

static unsigned rounds(unsigned most)
{
    return THREAD_SANITIZER ? most / 10 : most;
}

static void each_key_is_visited_as_it_was(void **state)
{
    struct saving saving = {.live = NULL};

    (void)state;
    setup("each_key_is_visited_as_it_was");
    for (unsigned round = 0; round < rounds(150); round++) {
        (void)begin(&players[0], &saving, 0);
        while (below(&players[0], 3) == 0)
            shake(&players[0]);
        thread_join(&saving.thread);
        assert_memory_equal(&expected[0], &seen[0], sizeof(seen[0]));
    }
    teardown();
}

static void several_may_run_at_once(void **state)
{
    struct saving saving[ENTRY_MARKS] = {{.live = NULL}};
    const struct live_options options = {.gate = &the_gate};

    (void)state;
    setup("several_may_run_at_once");
    for (unsigned round = 0; round < rounds(40); round++) {
        for (unsigned i = 0; i < ENTRY_MARKS; i++) {
            (void)begin(&players[0], &saving[i], i);
            if (below(&players[0], 2) == 0)
                shake(&players[0]);
        }
        for (unsigned i = 0; i < ENTRY_MARKS; i++) {
            thread_join(&saving[i].thread);
            assert_memory_equal(&expected[i], &seen[i], sizeof(seen[i]));
        }
    }
    for (unsigned i = 0; i < ENTRY_MARKS; i++) {
        own(&players[0]);
        saving[i].live = live_snapshot_begin(&players[0].access, &options);
        assert_non_null(saving[i].live);
        gate_open(&players[0].member);
    }
    own(&players[0]);
    assert_null(live_snapshot_begin(&players[0].access, &options));
    gate_open(&players[0].member);
    for (unsigned i = 0; i < ENTRY_MARKS; i++) { /* given up before anything was visited */
        live_snapshot_adopt(saving[i].live);
        live_snapshot_end(&saving[i].live);
    }
    (void)begin(&players[0], &saving[0], 0);
    thread_join(&saving[0].thread);
    assert_memory_equal(&expected[0], &seen[0], sizeof(seen[0]));
    teardown();
}

static void one_that_stops_early_leaves_nothing(void **state)
{
    struct saving saving = {.live = NULL};

    (void)state;
    setup("one_that_stops_early_leaves_nothing");
    for (unsigned round = 0; round < rounds(40); round++) {
        struct live_snapshot *live;

        saving.is_cut = round % 2 == 0;
        live = begin(&players[0], &saving, 0);
        if (saving.is_cut && below(&players[0], 2) == 0)
            live_snapshot_cancel(live);
        thread_join(&saving.thread);
        assert_true(saving.is_whole != saving.is_cut);
        if (saving.is_whole)
            assert_memory_equal(&expected[0], &seen[0], sizeof(seen[0]));
        assert_true(live_kept_bytes(store) == 0);
    }
    teardown();
}

static bool is_marked(const struct entry *entry)
{
    assert_non_null(entry);
    return entry != NULL && (entry->flags & ENTRY_MARKS_MASK) != 0;
}

/* The places of databases that were never used count, too, once they are swapped. */
static void a_mark_in_a_swapped_database_goes(void **state)
{
    struct saving saving = {.live = NULL};
    struct player *owner = &players[0];
    char room[16];
    const struct key key = name_key(1, room);
    struct change change;

    (void)state;
    setup("a_mark_in_a_swapped_database_goes");
    atomic_store(&is_over, true); /* nobody else writes */
    for (unsigned i = 1; i < countof(players); i++)
        thread_join(&players[i].thread);
    own(owner);
    for (unsigned db = 0; db < DATABASES; db++)
        access_flush_db(&owner->access, db, false);
    saving.live = live_snapshot_begin(&owner->access, &(struct live_options){.gate = &the_gate});
    access_swap_db(&owner->access, UNUSED_DATABASE, UNUSED_DATABASE + 1);
    change_begin(&change, &owner->access, UNUSED_DATABASE, &key);
    change_put_int(&change, 7, EXPIRE_NEVER);
    change_end(&change, EVENT_GENERIC, NULL);
    assert_true(is_marked(change_entry(&change)));
    gate_open(&owner->member);
    live_snapshot_adopt(saving.live);
    live_snapshot_end(&saving.live);
    own(owner);
    assert_false(is_marked(access_probe(&owner->access, UNUSED_DATABASE, &key)));
    gate_open(&owner->member);
    teardown();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_is_visited_as_it_was),
        cmocka_unit_test(several_may_run_at_once),
        cmocka_unit_test(one_that_stops_early_leaves_nothing),
        cmocka_unit_test(a_mark_in_a_swapped_database_goes),
    };
    int failed;

    fence_setup();
    hash_setup();
    (void)thread_self_index();
    background_setup(1);
    failed = cmocka_run_group_tests_name("snapshot_live", tests, NULL, NULL);
    background_teardown();
    return failed;
}
