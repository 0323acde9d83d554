/* Undos of random changes: each key becomes what it was, step by step, back to the beginning. */
#include "store/undo.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/test_seed.h"
#include "data/hash.h"
#include "data/list.h"
#include "data/set.h"
#include "data/zset.h"
#include "store/stamp.h"
#include "store/subkey_ttl.h"
#include "store/window.h"
#include "store/window_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { KEYS = 12, STRIPES = 2, ROUNDS = 400, STEPS = 30, DATABASES = 2, LINES_MOST = 4096 };

static const struct hash_limits hash_limits = {20, 64};
static const struct set_limits set_limits = {10, 20, 64};
static const struct zset_limits zset_limits = {20, 64};
static const struct store_type rows[TYPE_COUNT] = {
    [TYPE_LIST] = {.ops = &list_ops},
    [TYPE_SET] = {.ops = &set_ops, .expired_command = "SREM", .expired_event = "srem", .expired_class = EVENT_SET},
    [TYPE_ZSET] = {.ops = &zset_ops, .expired_command = "ZREM", .expired_event = "zrem", .expired_class = EVENT_ZSET},
    [TYPE_HASH] = {.ops = &hash_ops, .expired_command = "HDEL", .expired_event = "hdel", .expired_class = EVENT_HASH},
};

static struct store *store;
static struct store_counters counters;
static struct access access_;
static struct random random_;
static struct window_copy *copy;

static unsigned below(unsigned bound)
{
    return (unsigned)random_below(&random_, bound);
}

/* --------------------------------------------------------------------------------------------- a key as a text -- */

/* Lines in their order: of what has no order, sorted. */
struct lines {
    char *items[LINES_MOST];
    unsigned count;
};

static void add_line(struct lines *lines, struct slice first, struct slice second)
{
    struct buffer text = {0};
    size_t size;

    buffer_append_u64(&text, first.size);
    buffer_append_char(&text, ':');
    buffer_append_slice(&text, first);
    buffer_append_char(&text, '=');
    buffer_append_slice(&text, second);
    buffer_append_char(&text, '\n');
    assert_true(lines->count < LINES_MOST);
    lines->items[lines->count++] = buffer_take(&text, &size);
}

static void add_pair(struct slice field, struct slice value, void *context)
{
    add_line(context, field, value);
}

static void add_member(struct slice member, void *context)
{
    add_line(context, member, SLICE_EMPTY);
}

static void add_number(struct slice text, int64_t number, void *context)
{
    char room[NUMBER_I64_SPACE];

    add_line(context, text, slice_make(room, number_format_i64(room, number)));
}

static void add_scored(struct lines *lines, struct value zset)
{
    struct slice member;
    struct zset_walk walk;
    char room[64];
    double score;

    zset_walk_begin(&walk, zset, (struct zset_span){0, zset_count(zset)}, false);
    while (zset_walk_next(&walk, &member, &score))
        add_line(lines, member, slice_make(room, (size_t)sprintf(room, "%.17g", score)));
}

static void add_elements(struct lines *lines, struct value list)
{
    struct listpack_value value;
    struct quicklist_iter iter;
    char room[NUMBER_I64_SPACE];

    quicklist_iter_init(&iter, list_of(list), 0, QUICKLIST_FORWARD);
    while (quicklist_iter_next(&iter, &value))
        add_line(lines, value.text.data != NULL ? value.text : slice_make(room, number_format_i64(room, value.number)),
                 SLICE_EMPTY);
    quicklist_iter_fini(&iter);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void flush_lines(struct lines *lines, struct buffer *to, bool sorted)
{
    if (sorted)
        qsort(lines->items, lines->count, sizeof(lines->items[0]), compare_lines);
    for (unsigned i = 0; i < lines->count; i++) {
        buffer_append_text(to, lines->items[i]);
        mem_free(lines->items[i]);
    }
    lines->count = 0;
}

/* its_store: NULL: it is not at hand. */
static struct buffer describe_entry(const struct store *its_store, const struct entry *entry)
{
    struct buffer text = {0};
    char room[ENTRY_INT_TEXT_BYTES];
    struct lines lines;

    lines.count = 0;
    if (entry == NULL)
        return text;
    buffer_printf(&text, "type %d deadline %lld\n", (int)entry->type, (long long)entry_expire_ms(entry));
    if (entry->type == TYPE_STRING) {
        buffer_append_slice(&text, entry_string(entry, room));
        return text;
    }
    rows[entry->type].ops->validate(entry_value(entry));
    if (its_store != NULL)
        subkey_ttl_validate(its_store, entry);
    if (entry->type == TYPE_LIST)
        add_elements(&lines, entry_value(entry));
    else if (entry->type == TYPE_ZSET)
        add_scored(&lines, entry_value(entry));
    else if (entry->type == TYPE_SET)
        set_each(entry_value(entry), add_member, &lines);
    else
        hash_each(entry_value(entry), add_pair, &lines);
    flush_lines(&lines, &text, entry->type == TYPE_SET || entry->type == TYPE_HASH);
    entry_each_member_deadline(entry, add_number, &lines);
    flush_lines(&lines, &text, true);
    return text;
}

static struct buffer describe(unsigned db, const struct key *key)
{
    return describe_entry(store, access_look(&access_, db, key));
}

/* ----------------------------------------------------------------------------------------------------- changes -- */

static struct slice random_text(char *room, size_t most)
{
    const size_t size = below(3) == 0 ? 1 + below(4) : 1 + below((unsigned)most);

    if (below(3) == 0)
        return slice_make(room, (size_t)sprintf(room, "%d", (int)below(100) - 20));
    memset(room, (int)('a' + below(20)), size);
    return slice_make(room, size);
}

static struct slice small_text(char room[200])
{
    return below(10) == 0 ? random_text(room, 150) : slice_make(room, (size_t)sprintf(room, "m%u", below(40)));
}

static int64_t random_deadline(void)
{
    return below(2) == 0 ? EXPIRE_NEVER : INT64_C(5000000) + below(100);
}

static void change_string(struct change *change)
{
    const struct entry *entry = change_entry(change);
    static char room[4000];
    char *bytes;
    size_t size, offset, written;

    if (entry == NULL || entry->type != TYPE_STRING || below(3) == 0) {
        if (below(3) == 0)
            change_put_int(change, below(1000), below(2) == 0 ? EXPIRE_KEEP : random_deadline());
        else
            change_put_string(change, random_text(room, sizeof(room)), below(2) == 0 ? EXPIRE_KEEP : random_deadline());
        return;
    }
    size = below(2) == 0 ? entry_string_size(entry) + below(100) : 1 + below(3000);
    offset = below((unsigned)size + 1);
    written = below((unsigned)(size - offset) + 1);
    bytes = change_edit_part(change, size, offset, written);
    if (written != 0)
        memset(bytes + offset, (int)('A' + below(20)), written);
}

static void store_value(struct change *change, enum value_type type, struct value value, bool is_new)
{
    if (is_new)
        change_put_value(change, type, value, random_deadline());
    else
        change_keep_value(change, value);
}

static void change_hash(struct change *change, struct value *value)
{
    char field[200], text[200];
    struct slice name = small_text(field);

    if (below(3) != 0)
        (void)hash_put(value, &hash_limits, name, random_text(text, 150));
    else
        (void)hash_remove(value, name);
    if (change_entry(change) != NULL)
        change_member_expire(change, name, EXPIRE_NEVER);
}

static void change_set(struct change *change, struct value *value)
{
    char room[200];
    struct slice name = below(2) == 0 ? small_text(room) : slice_make(room, (size_t)sprintf(room, "%u", below(30)));

    if (below(3) != 0) {
        (void)set_add(value, &set_limits, name);
        return;
    }
    if (set_remove(value, name) && change_entry(change) != NULL)
        change_member_expire(change, name, EXPIRE_NEVER);
}

static void forget_span(struct change *change, struct value value, struct zset_span span)
{
    struct slice member;
    struct zset_walk walk;
    double score;

    zset_walk_begin(&walk, value, span, false);
    while (zset_walk_next(&walk, &member, &score))
        change_member_expire(change, member, EXPIRE_NEVER);
}

static void change_zset(struct change *change, struct value *value)
{
    const uint64_t count = zset_count(*value);
    char room[200];
    struct slice name = small_text(room);
    struct zset_span span;

    if (below(8) == 0 && count != 0) {
        span.first = below((unsigned)count);
        span.end = span.first + below((unsigned)(count - span.first) + 1);
        if (change_entry(change) != NULL)
            forget_span(change, *value, span);
        zset_remove_span(value, span);
    } else if (below(3) != 0) {
        (void)zset_put(value, &zset_limits, name, below(2) == 0 ? (double)below(20) : below(100) / 7.0);
    } else if (zset_remove(value, name) && change_entry(change) != NULL) {
        change_member_expire(change, name, EXPIRE_NEVER);
    }
}

static void change_at(struct quicklist *list, unsigned index)
{
    char room[400];
    struct slice text = random_text(room, 300);
    struct listpack_value value;
    struct quicklist_iter iter;
    unsigned left = 1 + below(6);

    quicklist_iter_init(&iter, list, index, below(2) == 0 ? QUICKLIST_FORWARD : QUICKLIST_BACKWARD);
    while (left-- != 0 && quicklist_iter_next(&iter, &value)) {
        switch (below(5)) {
        case 0:
            quicklist_insert_before(list, &iter, text);
            break;
        case 1:
            quicklist_insert_after(list, &iter, text);
            break;
        case 2:
            quicklist_replace(list, &iter, text);
            break;
        case 3:
            quicklist_delete(list, &iter);
            break;
        default:
            break;
        }
    }
    quicklist_iter_fini(&iter);
}

static void change_list(struct value *value)
{
    struct quicklist *list = list_of(*value);
    char room[400];
    struct slice text = random_text(room, 300);
    const enum quicklist_end end = below(2) == 0 ? QUICKLIST_HEAD : QUICKLIST_TAIL;

    if (quicklist_count(list) < 3 || below(3) == 0)
        quicklist_push(list, end, text);
    else if (below(4) == 0)
        quicklist_drop(list, end);
    else if (below(8) == 0)
        (void)quicklist_delete_range(list, (int)below((unsigned)quicklist_count(list)) - (int)below(3), below(20));
    else
        change_at(list, below((unsigned)quicklist_count(list)));
}

static struct value new_value(enum value_type type)
{
    static const struct quicklist_limits limits[] = {{-2, 0, 0}, {4, 1, 0}, {8, 0, 100}, {2, 2, 0}};

    if (type == TYPE_LIST)
        return list_create(&limits[below(countof(limits))]);
    if (type == TYPE_HASH)
        return hash_create();
    return type == TYPE_SET ? set_create(&set_limits, SLICE("1"), 1) : zset_create();
}

static uint64_t count_of(enum value_type type, struct value value)
{
    return rows[type].ops->count(value);
}

static void change_elements(struct change *change, enum value_type type)
{
    const struct entry *entry = change_entry(change);
    const bool is_new = entry == NULL || entry->type != type;
    struct value value = is_new ? new_value(type) : entry_value(entry);
    const bool many = below(8) == 0;
    char room[200];

    if (is_new && entry != NULL)
        change_delete(change);
    for (unsigned left = many ? 60 : 1 + below(4); left != 0; left--) {
        if (type == TYPE_LIST)
            change_list(&value);
        else if (type == TYPE_HASH)
            change_hash(change, &value);
        else if (type == TYPE_SET)
            change_set(change, &value);
        else
            change_zset(change, &value);
    }
    if (is_new && count_of(type, value) == 0) {
        rows[type].ops->destroy(value);
        return;
    }
    store_value(change, type, value, is_new);
    if (count_of(type, value) == 0)
        change_delete(change);
    else if (type != TYPE_LIST && below(2) == 0) {
        const struct slice member = small_text(room);

        if (rows[type].ops->members->has(value, member))
            change_member_expire(change, member, INT64_C(5000000) + below(100));
    }
}

static void expect_same(unsigned db, const struct key *key, struct buffer *before)
{
    struct buffer now = describe(db, key);

    if (!slice_equal(buffer_slice(&now), buffer_slice(before))) {
        print_error("db %u %.*s was:\n%s\nis:\n%s\n", db, (int)key->name.size, key->name.data, buffer_text(before),
                    buffer_text(&now));
        fail();
    }
    buffer_fini(&now);
    buffer_fini(before);
}

static void change_once(unsigned db, const struct key *key, const struct key *other)
{
    static const enum value_type types[] = {TYPE_LIST, TYPE_SET, TYPE_ZSET, TYPE_HASH};
    const struct entry *entry = access_look(&access_, db, key);
    struct buffer value;
    struct change change, to;

    change_begin(&change, &access_, db, key);
    if (entry != NULL && below(12) == 0) {
        change_begin(&to, &access_, db, other);
        value = describe(db, key);
        if (below(2) == 0)
            change_move_value(&to, &change, entry_expire_ms(entry));
        else
            change_copy_value(&to, entry, entry_expire_ms(entry));
        change_end(&to, EVENT_GENERIC, NULL);
        expect_same(db, other, &value);
    } else if (entry != NULL && below(12) == 0) {
        change_delete(&change);
    } else if (entry != NULL && below(6) == 0) {
        change_expire(&change, random_deadline());
    } else if (entry != NULL && entry->type != TYPE_STRING && below(5) != 0) {
        change_elements(&change, entry->type);
    } else if (entry != NULL && entry->type == TYPE_STRING && below(5) != 0) {
        change_string(&change);
    } else if (below(4) == 0) {
        change_string(&change);
    } else {
        change_elements(&change, types[below(countof(types))]);
    }
    change_end(&change, EVENT_GENERIC, NULL);
}

/* ------------------------------------------------------------------------------------------------------- tests -- */

static char names[KEYS][16];
static struct key keys[KEYS];

static void start(void)
{
    store = store_create(STRIPES, DATABASES);
    for (enum value_type type = 0; type < TYPE_COUNT; type++) {
        if (rows[type].ops != NULL)
            store_set_type(store, type, &rows[type]);
    }
    access_init(&access_, store, &counters);
    access_begin(&access_, 1000, true);
    for (unsigned i = 0; i < KEYS; i++)
        keys[i] = key_make(slice_make(names[i], (size_t)sprintf(names[i], "key:%u", i)));
}

static void finish(void)
{
    undo_fini(&access_);
    store_destroy(&store);
}

/* What one operation did to all keys, and the keys before it. */
struct operation {
    struct buffer before[DATABASES][KEYS];
    struct key_undo *undos[DATABASES][KEYS];
};

static void run_one(struct operation *operation)
{
    for (unsigned db = 0; db < DATABASES; db++) {
        for (unsigned i = 0; i < KEYS; i++)
            operation->before[db][i] = describe(db, &keys[i]);
    }
    undo_begin(&access_);
    for (unsigned left = 1 + below(3); left != 0; left--) {
        const unsigned i = below(KEYS);

        change_once(below(DATABASES), &keys[i], &keys[(i + 1 + below(KEYS - 1)) % KEYS]);
    }
    for (unsigned db = 0; db < DATABASES; db++) {
        for (unsigned i = 0; i < KEYS; i++)
            operation->undos[db][i] = undo_take(&access_, db, &keys[i]);
    }
    undo_end(&access_);
}

static void take_back(struct operation *operation)
{
    for (unsigned db = 0; db < DATABASES; db++) {
        for (unsigned i = 0; i < KEYS; i++) {
            struct key_undo *undo = operation->undos[db][i], *second = NULL;

            if (undo != NULL && below(3) == 0)
                second = key_undo_acquire(undo);
            if (undo != NULL) {
                assert_true(key_undo_bytes(undo) != 0);
                undo_apply(&access_, db, &keys[i], undo);
            }
            key_undo_release(&access_, &operation->undos[db][i]);
            expect_same(db, &keys[i], &operation->before[db][i]);
            key_undo_release(&access_, &second);
        }
    }
}

/* All operations of a key are taken back on a copy: that is the key before them, and the key is as it was. */
static void expect_base(const struct operation *operations, unsigned count, unsigned db, unsigned index)
{
    struct merge_step steps[STEPS] = {{0}};
    struct window_key *known = mem_alloc_zero(sizeof(*known) + keys[index].name.size);
    struct buffer now = describe(db, &keys[index]), base;

    for (unsigned i = 0; i < count; i++)
        steps[i].undo = (struct merge_undo *)operations[i].undos[db][index];
    known->record = (struct merge_record){.steps = steps, .count = count};
    known->hash = keys[index].hash;
    known->db = db;
    known->name_size = (uint32_t)keys[index].name.size;
    memcpy(known->name, keys[index].name.data, keys[index].name.size);
    base = describe_entry(NULL, window_copy_base(copy, &access_, known));
    window_copy_release(copy);
    assert_true(slice_equal(buffer_slice(&base), buffer_slice(&operations[0].before[db][index])));
    expect_same(db, &keys[index], &now);
    buffer_fini(&base);
    mem_free(known);
}

static void expect_bases(const struct operation *operations, unsigned count)
{
    for (unsigned db = 0; db < DATABASES; db++) {
        for (unsigned i = 0; i < KEYS; i++)
            expect_base(operations, count, db, i);
    }
}

static void every_change_is_taken_back(void **state)
{
    static struct operation operations[STEPS];

    (void)state;
    random_ = test_random("undo_test");
    start();
    copy = window_copy_create(store);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned count = 1 + below(STEPS), back = below(count + 1);

        for (unsigned i = 0; i < count; i++)
            run_one(&operations[i]);
        expect_bases(operations, count);
        while (count > back)
            take_back(&operations[--count]);
        while (count > 0) {
            for (unsigned db = 0; db < DATABASES; db++) {
                for (unsigned i = 0; i < KEYS; i++) {
                    key_undo_release(&access_, &operations[count - 1].undos[db][i]);
                    buffer_fini(&operations[count - 1].before[db][i]);
                }
            }
            count--;
        }
    }
    window_copy_destroy(&copy);
    finish();
}

enum { LONG_LIST = 1000000, PUSHES = 100, PUSH_BYTES_MOST = 200 };

/* What is pushed to a long list is taken back without a copy of it. */
static void a_long_list_is_not_copied(void **state)
{
    static const struct quicklist_limits limits = {-2, 0, 0};
    struct key_undo *undos[PUSHES];
    struct value list = list_create(&limits);
    struct change change;
    uint64_t bytes = 0;
    uint64_t began_us;

    (void)state;
    start();
    for (unsigned i = 0; i < LONG_LIST; i++)
        quicklist_push(list_of(list), QUICKLIST_TAIL, SLICE("an element"));
    change_begin(&change, &access_, 0, &keys[0]);
    change_put_value(&change, TYPE_LIST, list, EXPIRE_NEVER);
    change_end(&change, EVENT_LIST, NULL);
    for (unsigned i = 0; i < PUSHES; i++) {
        undo_begin(&access_);
        change_begin(&change, &access_, 0, &keys[0]);
        quicklist_push(list_of(list), QUICKLIST_HEAD, SLICE("another"));
        change_keep_value(&change, list);
        change_end(&change, EVENT_LIST, NULL);
        undos[i] = undo_take(&access_, 0, &keys[0]);
        undo_end(&access_);
        bytes += key_undo_bytes(undos[i]);
    }
    began_us = clock_monotonic_us();
    for (unsigned i = PUSHES; i-- > 0;) {
        undo_apply(&access_, 0, &keys[0], undos[i]);
        key_undo_release(&access_, &undos[i]);
    }
    print_message("%d pushes: %llu bytes, taken back in %llu us\n", PUSHES, (unsigned long long)bytes,
                  (unsigned long long)(clock_monotonic_us() - began_us));
    assert_true(bytes <= PUSHES * PUSH_BYTES_MOST);
    assert_int_equal(quicklist_count(list_of(list)), LONG_LIST);
    finish();
}

static unsigned expire_all_stripes(void)
{
    unsigned done = 0;

    for (uint32_t stripe = 0; stripe < STRIPES; stripe++)
        done += access_expire_due(&access_, stripe, 0, 10);
    return done;
}

/* On an active node memory goes when the last operation is not above F and the deadline is below W. */
static void what_has_expired_waits_for_the_frontiers(void **state)
{
    const uint64_t stamp = stamp_at(STAMP_LEAST_MS + 5000);
    struct value value = hash_create();
    struct change change;

    (void)state;
    start();
    store_set_stamping(store, true);
    store_keep_expired(store, STORE_KEEPS_ACTIVE, true);
    for (unsigned i = 0; i < 2; i++) {
        change_begin(&change, &access_, 0, &keys[i]);
        if (i == 0) {
            change_put_int(&change, 5, 500);
        } else {
            (void)hash_put(&value, &hash_limits, SLICE("a"), SLICE("1"));
            (void)hash_put(&value, &hash_limits, SLICE("b"), SLICE("2"));
            change_put_value(&change, TYPE_HASH, value, EXPIRE_NEVER);
            change_member_expire(&change, SLICE("a"), 500);
        }
        change_set_version(&change, version_make(stamp, false, 0));
        change_end(&change, EVENT_GENERIC, NULL);
    }
    assert_null(access_peek(&access_, 0, &keys[0]));
    assert_int_equal(hash_count(entry_value(access_peek(&access_, 0, &keys[1]))), 1);
    assert_int_equal(expire_all_stripes(), 0); /* W is 0 */
    horizon_raise(&store->horizon, stamp, 500);
    assert_int_equal(expire_all_stripes(), 0); /* a deadline of W has not passed for all */
    assert_non_null(access_look(&access_, 0, &keys[0]));
    assert_int_equal(hash_count(entry_value(access_look(&access_, 0, &keys[1]))), 2);
    change_begin(&change, &access_, 0, &keys[1]); /* an operation above F */
    change_set_version(&change, version_make(stamp + 1, false, 0));
    change_abandon(&change);
    horizon_raise(&store->horizon, stamp, 501);
    (void)expire_all_stripes();
    assert_null(access_look(&access_, 0, &keys[0]));
    assert_int_equal(hash_count(entry_value(access_look(&access_, 0, &keys[1]))), 2);
    horizon_raise(&store->horizon, stamp + 1, 501);
    (void)expire_all_stripes();
    assert_int_equal(hash_count(entry_value(access_look(&access_, 0, &keys[1]))), 1);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_is_taken_back),
        cmocka_unit_test(a_long_list_is_not_copied),
        cmocka_unit_test(what_has_expired_waits_for_the_frontiers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
