/* Deadlines of members against a model: a few keys, each a hash or a set of either kind with a few members and their
 * times; and the effects of expired members, applied to a model of their own. */
#include "store/subkey_ttl.h"

#include "base/mem.h"
#include "base/mem_move.h"
#include "base/test_seed.h"
#include "data/hash.h"
#include "data/set.h"
#include "data/zset.h"
#include "store/defrag.h"
#include "store/effects.h"
#include "store/expiry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { KEYS = 12, MEMBERS = 90, STRIPES = 2, STEPS = 60000 };
static const struct hash_limits hash_limits = {20, 64};
static const struct set_limits set_limits = {10, 20, 64};
static const struct zset_limits zset_limits = {20, 64};
static const enum value_type types[] = {TYPE_HASH, TYPE_SET, TYPE_ZSET};
static const struct store_type rows[] = {
    {.ops = &hash_ops, .expired_command = "HDEL", .expired_event = "hexpired", .expired_class = EVENT_HASH},
    {.ops = &set_ops, .expired_command = "SREM", .expired_event = "srem", .expired_class = EVENT_SET},
    {.ops = &zset_ops, .expired_command = "ZREM", .expired_event = "zrem", .expired_class = EVENT_ZSET},
};

struct model_key {
    char name[16];
    enum value_type type;
    bool exists[MEMBERS];
    int64_t when_ms[MEMBERS]; /* EXPIRE_NEVER: no deadline */
    int64_t key_ms;
    uint64_t version;   /* 0: none */
    bool told[MEMBERS]; /* the state by the reported changes */
};

static struct model_key model[KEYS];
static struct store *store;
static struct store_counters counters;
static struct access access_;
static struct effects effects;
static int64_t now_ms;
static struct random random_;

static unsigned below(unsigned bound)
{
    return (unsigned)random_below(&random_, bound);
}

static struct slice member_text(unsigned i, char room[16])
{
    return slice_make(room, (size_t)sprintf(room, i % 3 == 0 ? "%u" : "m%u", i));
}

static unsigned member_index(struct slice text)
{
    char room[16];

    assert_true(text.size < sizeof(room));
    memcpy(room, text.data, text.size);
    room[text.size] = '\0';
    return (unsigned)strtoul(room[0] == 'm' ? room + 1 : room, NULL, 10);
}

static struct model_key *named(struct slice name)
{
    return &model[member_index((struct slice){name.data + 3, name.size - 3})];
}

/* ------------------------------------------------------------------------------------------------------- model -- */

static unsigned model_count(const struct model_key *key)
{
    unsigned count = 0;

    for (unsigned i = 0; i < MEMBERS; i++)
        count += key->exists[i];
    return count;
}

static void model_drop(struct model_key *key)
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        key->exists[i] = false;
        key->when_ms[i] = EXPIRE_NEVER;
    }
    key->key_ms = EXPIRE_NEVER;
    key->version = 0;
}

static void model_tick(void)
{
    for (struct model_key *key = model; key < model + KEYS; key++) {
        if (key->key_ms != EXPIRE_NEVER && now_ms > key->key_ms)
            model_drop(key);
        for (unsigned i = 0; i < MEMBERS; i++) {
            if (key->when_ms[i] != EXPIRE_NEVER && now_ms > key->when_ms[i]) {
                key->exists[i] = false;
                key->when_ms[i] = EXPIRE_NEVER;
            }
        }
        if (model_count(key) == 0)
            model_drop(key);
    }
}

/* Somebody is told: one command, whose words stand in `at` as RESP. */
static const char *apply_effect(const char *at)
{
    unsigned long count = strtoul(at + 1, (char **)(uintptr_t)&at, 10);
    struct slice command = SLICE_EMPTY;
    struct model_key *key = model;

    assert_true(count >= 2);
    for (unsigned long i = 0; i < count; i++) {
        size_t size = strtoul(at + 3, (char **)(uintptr_t)&at, 10);
        struct slice word = slice_make(at + 2, size);

        at += 2 + size;
        if (i == 0)
            command = word;
        else if (i == 1)
            key = named(word);
        else
            key->told[member_index(word)] = false;
    }
    if (slice_equal(command, SLICE("DEL")))
        memset(key->told, 0, sizeof(key->told));
    else
        assert_true(slice_equal(command, key->type == TYPE_HASH  ? SLICE("HDEL")
                                         : key->type == TYPE_SET ? SLICE("SREM")
                                                                 : SLICE("ZREM")));
    return at + 2;
}

static void apply_effects(void)
{
    for (const char *at = effects.bytes.data; at < effects.bytes.data + effects.bytes.size;)
        at = apply_effect(at);
    effects_clear(&effects);
}

/* ---------------------------------------------------------------------------------------------------- the store -- */

static void begin(void)
{
    access_begin(&access_, now_ms, true);
    access_.effects = &effects;
}

static struct key key_of(const struct model_key *key)
{
    return key_make(slice_from_text(key->name));
}

static const struct value_ops *ops_of(const struct model_key *key)
{
    return store->types[key->type].ops;
}

static void check_entry(const struct entry *entry, const struct model_key *key)
{
    assert_int_equal(entry != NULL, model_count(key) != 0);
    if (entry == NULL)
        return;
    assert_int_equal(entry->type, key->type);
    assert_ptr_equal(entry_member_ops(store, entry), ops_of(key)->members);
    assert_int_equal(ops_of(key)->count(entry_value(entry)), model_count(key));
    assert_int_equal(entry_expire_ms(entry), key->key_ms);
    assert_int_equal(entry_version(entry), key->version);
    subkey_ttl_validate(store, entry);
    for (unsigned i = 0; i < MEMBERS; i++) {
        char room[16];
        struct slice member = member_text(i, room);

        assert_int_equal(ops_of(key)->members->has(entry_value(entry), member), key->exists[i]);
        assert_int_equal(entry_member_expire_ms(entry, member), key->when_ms[i]);
    }
}

static void check_key(const struct model_key *key, bool reads)
{
    struct key name = key_of(key);

    begin();
    check_entry(reads ? access_probe(&access_, 0, &name) : access_find(&access_, 0, &name), key);
    apply_effects();
}

static void visit(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    const struct model_key *key = named(entry_key(entry));
    unsigned *seen = context;

    (void)access;
    (void)db;
    check_entry(entry, key);
    seen[key - model]++;
}

static void check_walk(bool each)
{
    unsigned seen[KEYS] = {0};
    struct access_visitor visitor = {.visit = visit, .context = seen};
    uint64_t cursor = 0;
    uint32_t busy;

    begin();
    if (each) {
        access_each(&access_, 0, &visitor);
    } else {
        do
            assert_int_equal(access_scan(&access_, 0, &cursor, 5, &visitor, &busy), WALK_DONE);
        while (cursor != 0);
    }
    apply_effects();
    for (unsigned i = 0; i < KEYS; i++)
        assert_true(seen[i] == (model_count(&model[i]) != 0) || (!each && seen[i] > 1));
}

static void check_random_key(void)
{
    struct buffer name = {0};
    unsigned any = 0;
    uint32_t busy;

    begin();
    for (unsigned i = 0; i < KEYS; i++)
        any += model_count(&model[i]) != 0;
    if (access_random_key(&access_, 0, &name, &busy) == WALK_DONE)
        assert_true(any != 0 && model_count(named(buffer_slice(&name))) != 0);
    buffer_fini(&name);
}

static void check_store(void)
{
    for (unsigned i = 0; i < STRIPES; i++) {
        const struct stripe_db *keys = stripe_db(&store->stripes[i], 0);
        struct expiry *deadlines = atomic_load(&keys->deadlines);

        if (deadlines != NULL)
            expiry_validate(deadlines, &keys->keys);
    }
}

/* ----------------------------------------------------------------------------------------------------- changing -- */

/* The removals of a lookup are reported before anything else is done. */
static struct entry *find(const struct key *name)
{
    struct entry *entry;

    begin();
    entry = access_find(&access_, 0, name);
    apply_effects();
    return entry;
}

/* Replaces any value. */
static void put(struct value *value, enum value_type type, struct slice member)
{
    bool is_new = value->data == NULL;

    if (type == TYPE_HASH) {
        *value = is_new ? hash_create() : *value;
        (void)hash_put(value, &hash_limits, member, SLICE("value"));
    } else if (type == TYPE_SET) {
        *value = is_new ? set_create(&set_limits, member, 1) : *value;
        (void)set_add(value, &set_limits, member);
    } else {
        *value = is_new ? zset_create() : *value;
        (void)zset_put(value, &zset_limits, member, below(10));
    }
}

static void add_members(struct model_key *key)
{
    struct key name = key_of(key);
    struct change change;
    struct entry *entry;
    struct value value = {NULL, ENCODING_RAW};

    entry = find(&name);
    change_begin(&change, &access_, 0, &name);
    if (entry != NULL)
        value = entry_value(entry);
    for (unsigned n = 1 + below(5); n > 0; n--) {
        unsigned i = below(MEMBERS);
        char room[16];
        struct slice member = member_text(i, room);

        put(&value, key->type, member);
        key->exists[i] = key->told[i] = true;
    }
    if (entry == NULL)
        change_put_value(&change, key->type, value, EXPIRE_NEVER);
    else
        change_keep_value(&change, value);
    change_end(&change, EVENT_HASH, "added");
    apply_effects();
}

static void remove_member(struct model_key *key, unsigned i)
{
    struct key name = key_of(key);
    struct change change;
    struct entry *entry;
    struct value value;
    char room[16];

    entry = find(&name);
    assert_int_equal(entry != NULL, model_count(key) != 0);
    if (entry == NULL)
        return;
    value = entry_value(entry);
    change_begin(&change, &access_, 0, &name);
    assert_int_equal(ops_of(key)->members->remove(&value, member_text(i, room)), key->exists[i]);
    change_member_expire(&change, member_text(i, room), EXPIRE_NEVER);
    change_keep_value(&change, value);
    change_end(&change, EVENT_HASH, "removed");
    key->exists[i] = key->told[i] = false;
    key->when_ms[i] = EXPIRE_NEVER;
    if (model_count(key) == 0) {
        assert_true(access_delete(&access_, 0, &name));
        model_drop(key);
    }
    apply_effects();
}

static int64_t some_time(void)
{
    return now_ms + 1 + (below(20) == 0 ? INT64_C(1) << below(62) : below(below(2) == 0 ? 30 : 2000));
}

static void expire_member(struct model_key *key, unsigned i)
{
    struct key name = key_of(key);
    int64_t when_ms = below(6) == 0 ? EXPIRE_NEVER : some_time();
    struct change change;
    char room[16];

    if (!key->exists[i])
        return;
    assert_non_null(find(&name));
    change_begin(&change, &access_, 0, &name);
    change_member_expire(&change, member_text(i, room), when_ms);
    change_end(&change, EVENT_GENERIC, "expire");
    key->when_ms[i] = when_ms;
    apply_effects();
}

static void expire_key(struct model_key *key)
{
    struct key name = key_of(key);
    int64_t when_ms = below(2) == 0 ? EXPIRE_NEVER : some_time();
    struct change change;

    if (find(&name) == NULL)
        return;
    change_begin(&change, &access_, 0, &name);
    change_expire(&change, when_ms);
    change_end(&change, EVENT_GENERIC, "expire");
    key->key_ms = when_ms;
    apply_effects();
}

static void set_version(struct model_key *key)
{
    struct key name = key_of(key);
    struct change change;

    begin();
    if (access_probe(&access_, 0, &name) == NULL)
        return;
    key->version = below(4) == 0 ? 0 : random_u64(&random_);
    change_begin(&change, &access_, 0, &name);
    change_set_version(&change, key->version);
    change_abandon(&change);
    apply_effects();
}

/* RENAME and COPY. */
static void move_or_copy(struct model_key *from, struct model_key *to, bool moves)
{
    struct key from_name = key_of(from), to_name = key_of(to);
    struct change change, source;
    const struct entry *entry;

    (void)find(&to_name);
    entry = find(&from_name);
    if (entry == NULL || from == to)
        return;
    if (moves)
        change_begin(&source, &access_, 0, &from_name);
    change_begin(&change, &access_, 0, &to_name);
    if (moves) {
        change_move_value(&change, &source, from->key_ms);
        change_end(&source, EVENT_GENERIC, "from");
    } else {
        change_copy_value(&change, entry, from->key_ms);
    }
    change_end(&change, EVENT_GENERIC, "to");
    apply_effects();
    to->type = from->type;
    to->key_ms = from->key_ms;
    memcpy(to->exists, from->exists, sizeof(to->exists));
    memcpy(to->told, from->exists, sizeof(to->told));
    memcpy(to->when_ms, from->when_ms, sizeof(to->when_ms));
    if (moves) {
        model_drop(from);
        memset(from->told, 0, sizeof(from->told));
    }
}

static void overwrite_or_delete(struct model_key *key)
{
    struct key name = key_of(key);
    struct change change;

    (void)find(&name);
    if (below(2) == 0) {
        (void)access_delete(&access_, 0, &name);
    } else { /* as SET, then DEL */
        change_begin(&change, &access_, 0, &name);
        change_put_string(&change, SLICE("text"), below(2) == 0 ? some_time() : EXPIRE_KEEP);
        change_end(&change, EVENT_STRING, "set");
        assert_true(access_delete(&access_, 0, &name));
    }
    apply_effects();
    model_drop(key);
    memset(key->told, 0, sizeof(key->told));
    key->type = types[below(countof(types))];
}

static void expire_actively(void)
{
    begin();
    for (uint32_t i = 0; i < STRIPES; i++) {
        while (access_has_due(&access_, i, 0))
            assert_true(access_expire_due(&access_, i, 0, 1 + below(20)) != 0);
    }
    apply_effects();
    for (const struct model_key *key = model; key < model + KEYS; key++) {
        struct key name = key_of(key);

        /* Nothing that is due was left for this look. */
        check_entry(access_look(&access_, 0, &name), key);
        assert_memory_equal(key->told, key->exists, sizeof(key->told));
    }
}

static void defragment(void)
{
    struct defrag_counters moved = {0};
    struct defrag_walk walk;

    mem_move_everything(true);
    defrag_walk_init(&walk, 0, &moved);
    walk.most_fields = 1 + below(40);
    begin();
    while (defrag_step(&access_, &walk, 0, 1))
        continue;
    mem_move_everything(false);
}

/* Reads must change nothing, and must not see dead members. */
static void hide_the_dead(void)
{
    const uint64_t expired = atomic_load(&counters.expired_members) + atomic_load(&counters.expired_keys);

    atomic_store(&store->keeps_expired, STORE_KEEPS_PAUSED);
    for (unsigned n = 0; n < 3; n++) {
        now_ms += below(30);
        model_tick();
        check_walk(true);
        check_walk(false);
        check_random_key();
        set_version(&model[below(KEYS)]);
        for (unsigned i = 0; i < KEYS; i++)
            check_key(&model[i], true);
    }
    assert_int_equal(atomic_load(&counters.expired_members) + atomic_load(&counters.expired_keys), expired);
    atomic_store(&store->keeps_expired, 0);
}

static void change_something(struct model_key *key)
{
    unsigned what = below(1040), i = below(MEMBERS);

    if (what < 350)
        add_members(key);
    else if (what < 450)
        remove_member(key, i);
    else if (what < 850)
        expire_member(key, i);
    else if (what < 900)
        expire_key(key);
    else if (what < 940)
        move_or_copy(key, &model[below(KEYS)], what % 2 == 0);
    else if (what < 950)
        overwrite_or_delete(key);
    else if (what < 970)
        expire_actively();
    else if (what < 980)
        check_walk(what % 2 == 0);
    else if (what < 985)
        hide_the_dead();
    else if (what < 990)
        defragment();
    else if (what >= 1000)
        set_version(key);
    else
        check_random_key();
}

static void start(void)
{
    store = store_create(STRIPES, 1);
    for (unsigned i = 0; i < countof(types); i++)
        store_set_type(store, types[i], &rows[i]);
    memset(&counters, 0, sizeof(counters));
    access_init(&access_, store, &counters);
    now_ms = 1800000000000;
    for (unsigned i = 0; i < KEYS; i++) {
        sprintf(model[i].name, "key%u", i);
        model[i].type = types[i % countof(types)];
        model_drop(&model[i]);
    }
}

static void behaves_like_members_with_times(void **state)
{
    (void)state;
    random_ = test_random("members");
    start();
    for (unsigned step = 0; step < STEPS; step++) {
        if (below(3) == 0) {
            now_ms += below(below(50) == 0 ? 500 : 5);
            model_tick();
        }
        change_something(&model[below(KEYS)]);
        check_key(&model[below(KEYS)], below(2) == 0);
        if (step % 64 == 0)
            check_store();
    }
    printf("%llu members expired\n", (unsigned long long)atomic_load(&counters.expired_members));
    assert_true(atomic_load(&counters.expired_members) > STEPS / 100);
    begin();
    access_flush_db(&access_, 0, false);
    check_store();
    store_destroy(&store);
    effects_fini(&effects);
}

static int setup(void **state)
{
    (void)state;
    hash_setup();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behaves_like_members_with_times),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
