/* The walk over a store in which everything moves: nothing may be lost, and memory that others use must stay. */
#include "store/defrag.h"

#include "base/mem.h"
#include "base/random.h"
#include "base/test_seed.h"
#include "store/expiry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { KEYS = 1500, DATABASES = 3, STRIPES = 8, VALUE_MOST = 3000, DEADLINE_MS = 9000000 };

static struct store *store;
static struct store_counters counters;
static struct access access_;
static struct defrag_counters defrag_counters;

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* A type with elements: a row of blocks. */
struct row {
    uint64_t count;
    unsigned *elements[];
};

enum { ROW_BYTES = 40 };

static uint64_t rows_held; /* elements that were relocated since the last step */

static struct row *row_create(uint64_t count)
{
    struct row *row = mem_alloc(sizeof(*row) + count * sizeof(row->elements[0]));

    row->count = count;
    for (uint64_t i = 0; i < count; i++) {
        row->elements[i] = mem_alloc(ROW_BYTES);
        row->elements[i][0] = (unsigned)i;
    }
    return row;
}

static void row_destroy(struct value value)
{
    struct row *row = value.data;

    for (uint64_t i = 0; i < row->count; i++)
        mem_free(row->elements[i]);
    mem_free(row);
}

static uint64_t row_relocate(struct value *value, uint64_t position, uint64_t most, struct mem_mover *mover)
{
    struct row *row = value->data;
    uint64_t end;

    if (position == 0)
        value->data = row = mem_move(mover, row, 0);
    end = MIN(row->count, position + most);
    rows_held += end - MIN(end, position);
    for (; position < end; position++)
        row->elements[position] = mem_move(mover, row->elements[position], 0);
    return position < row->count ? position : 0;
}

static uint64_t row_bytes(struct value value, uint64_t samples)
{
    (void)value;
    (void)samples;
    return 0;
}

static uint64_t row_effort(struct value value)
{
    (void)value;
    return 1;
}

static struct value row_copy(struct value value)
{
    return (struct value){row_create(((const struct row *)value.data)->count), value.encoding};
}

static void setup(void)
{
    static const struct value_ops ops = {.destroy = row_destroy,
                                         .copy = row_copy,
                                         .memory_bytes = row_bytes,
                                         .free_effort = row_effort,
                                         .relocate = row_relocate};

    store = store_create(STRIPES, DATABASES);
    store_set_type(store, TYPE_LIST, &(const struct store_type){.ops = &ops});
    memset(&counters, 0, sizeof(counters));
    memset(&defrag_counters, 0, sizeof(defrag_counters));
    access_init(&access_, store, &counters);
    access_begin(&access_, 1000, true);
    mem_move_everything(true);
}

static void teardown(void)
{
    mem_move_everything(false);
    store_destroy(&store);
}

static struct key key_of(char name[32], unsigned number)
{
    int size = snprintf(name, 32, "key:%u", number);

    return key_make(slice_make(name, (size_t)size));
}

/* A value that belongs to a number: a short string, an integer, a long string. */
static struct slice value_of(char *value, unsigned number)
{
    size_t size = number % 3 == 0 ? VALUE_MOST - number % 1000 : number % 100;

    if (number % 5 == 0)
        return slice_make(value, (size_t)snprintf(value, VALUE_MOST, "%u", number));
    memset(value, 'a' + (int)(number % 26), size);
    return slice_make(value, size);
}

static void put_string(unsigned number, unsigned db)
{
    char name[32], value[VALUE_MOST];
    struct key key = key_of(name, number);
    struct change change;

    change_begin(&change, &access_, db, &key);
    change_put_string(&change, value_of(value, number), number % 7 == 0 ? DEADLINE_MS + number : EXPIRE_NEVER);
    change_end(&change, EVENT_STRING, "set");
}

static void check_string(unsigned number, unsigned db)
{
    char name[32], value[VALUE_MOST], scratch[ENTRY_INT_TEXT_BYTES];
    struct key key = key_of(name, number);
    const struct entry *entry = access_probe(&access_, db, &key);
    struct slice wanted = value_of(value, number), got;

    assert_non_null(entry);
    got = entry_string(entry, scratch);
    assert_int_equal(got.size, wanted.size);
    assert_memory_equal(got.data, wanted.data, wanted.size);
    assert_int_equal(entry_expire_ms(entry), number % 7 == 0 ? DEADLINE_MS + (int64_t)number : EXPIRE_NEVER);
}

static void validate(void)
{
    for (uint32_t i = 0; i < STRIPES; i++) {
        for (unsigned db = 0; db < DATABASES; db++) {
            const struct stripe_db *keys = stripe_db(&store->stripes[i], db);
            const struct expiry *deadlines = keys != NULL ? atomic_load(&keys->deadlines) : NULL;

            if (deadlines != NULL)
                expiry_validate(deadlines, &keys->keys);
        }
    }
}

/* A whole walk; returns how many steps it took. */
static unsigned walk_all(uint32_t first, uint32_t distance, uint64_t most_fields)
{
    struct defrag_walk walk;
    unsigned steps = 0;

    defrag_walk_init(&walk, first, &defrag_counters);
    walk.most_fields = most_fields;
    access_begin(&access_, 1000, false);
    while (defrag_step(&access_, &walk, first, distance))
        steps++;
    access_begin(&access_, 1000, true);
    return steps;
}

static void everything_moves_and_nothing_is_lost(void **state)
{
    (void)state;
    setup();
    for (unsigned i = 0; i < KEYS; i++)
        put_string(i, i % DATABASES);
    assert_true(walk_all(0, 1, 1000) > KEYS / (DEFRAG_STEP_ITEMS + TABLE_SLOTS));
    for (unsigned i = 0; i < KEYS; i++)
        check_string(i, i % DATABASES);
    validate();
    assert_int_equal(read_counter(&defrag_counters.key_hits), KEYS);
    assert_int_equal(read_counter(&defrag_counters.key_misses), 0);
    assert_true(read_counter(&defrag_counters.hits) > KEYS + KEYS / 4); /* and blobs, and tables */
    assert_int_equal(read_counter(&defrag_counters.misses), 0);
    mem_move_everything(false);
    (void)walk_all(0, 1, 1000);
    for (unsigned i = 0; i < KEYS; i++)
        check_string(i, i % DATABASES);
    teardown();
}

static void the_shares_make_the_whole(void **state)
{
    (void)state;
    setup();
    for (unsigned i = 0; i < KEYS; i++)
        put_string(i, 0);
    for (uint32_t first = 0; first < 3; first++)
        (void)walk_all(first, 3, 1000);
    assert_int_equal(read_counter(&defrag_counters.key_hits), KEYS);
    teardown();
}

static void a_shared_blob_stays(void **state)
{
    struct blob *blob = blob_create_copy(slice_make("shared", 6));
    char name[32];
    struct key key = key_of(name, 1);
    struct change change;
    const struct entry *before, *after;

    (void)state;
    setup();
    change_begin(&change, &access_, 0, &key);
    change_put_blob(&change, blob, EXPIRE_NEVER);
    change_end(&change, EVENT_STRING, "set");
    before = access_probe(&access_, 0, &key);
    (void)walk_all(0, 1, 1000);
    after = access_probe(&access_, 0, &key);
    assert_ptr_not_equal(before, after);
    assert_ptr_equal(entry_blob(after), blob);
    assert_memory_equal(blob->data, "shared", 6);
    blob_release(&blob);
    (void)walk_all(0, 1, 1000);
    assert_int_equal(read_counter(&defrag_counters.key_hits), 2);
    teardown();
}

static void put_row(unsigned number, uint64_t count)
{
    char name[32];
    struct key key = key_of(name, number);
    struct change change;

    change_begin(&change, &access_, 0, &key);
    change_put_value(&change, TYPE_LIST, (struct value){row_create(count), ENCODING_QUICKLIST}, EXPIRE_NEVER);
    change_end(&change, EVENT_LIST, "rpush");
}

static void check_row(unsigned number, uint64_t count)
{
    char name[32];
    struct key key = key_of(name, number);
    const struct entry *entry = access_probe(&access_, 0, &key);
    const struct row *row;

    assert_non_null(entry);
    row = entry_value(entry).data;
    assert_int_equal(row->count, count);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(row->elements[i][0], i);
}

/* Large values are done in pieces, between which the stripe is free. */
static void large_values_take_several_steps(void **state)
{
    struct defrag_walk walk;
    uint64_t elements = 0, rows = 0;

    (void)state;
    setup();
    for (unsigned i = 0; i < 100; i++) {
        uint64_t count = i % 2 == 0 ? i : i * 50;

        put_row(i, count);
        elements += count;
        rows++;
    }
    defrag_walk_init(&walk, 0, &defrag_counters);
    walk.most_fields = 100;
    access_begin(&access_, 1000, false);
    for (bool goes_on = true; goes_on;) {
        rows_held = 0;
        goes_on = defrag_step(&access_, &walk, 0, 1);
        assert_true(rows_held <= DEFRAG_VALUES_MOST * DEFRAG_SMALL_FIELDS);
        assert_true(walk.value_count == 0 || rows_held != 0);
    }
    access_begin(&access_, 1000, true);
    for (unsigned i = 0; i < 100; i++)
        check_row(i, i % 2 == 0 ? i : i * 50);
    assert_true(read_counter(&defrag_counters.hits) >= elements + 2 * rows);
    assert_int_equal(read_counter(&defrag_counters.misses), 0);
    teardown();
}

/* A value may go, or become another, while the walk is in its midst. */
static void values_may_change_in_midwalk(void **state)
{
    struct random random = test_random(__func__);
    struct defrag_walk walk;
    unsigned walks_ended = 0;

    (void)state;
    setup();
    defrag_walk_init(&walk, 0, &defrag_counters);
    walk.most_fields = 10;
    for (unsigned i = 0; i < 40; i++)
        put_row(i, 200);
    for (unsigned step = 0; step < 3000; step++) {
        unsigned number = (unsigned)random_below(&random, 40);
        char name[32];
        struct key key = key_of(name, number);

        access_begin(&access_, 1000, false);
        walks_ended += !defrag_step(&access_, &walk, 0, 1);
        access_begin(&access_, 1000, true);
        switch (random_below(&random, 3)) {
        case 0:
            (void)access_delete(&access_, 0, &key);
            break;
        case 1:
            put_row(number, random_below(&random, 300));
            break;
        default:
            put_string(number, 0);
            break;
        }
    }
    assert_true(walks_ended > 10);
    teardown();
}

/* A stripe that another thread holds is skipped. */
static void a_busy_stripe_is_passed_over(void **state)
{
    struct defrag_walk walk;

    (void)state;
    setup();
    for (unsigned i = 0; i < KEYS; i++)
        put_string(i, 0);
    /* As if another thread held them: this thread's lock word is not zero. */
    for (uint32_t i = 0; i < STRIPES; i += 2)
        atomic_store(&store->stripes[i].lock.holder, UINT32_MAX);
    defrag_walk_init(&walk, 0, &defrag_counters);
    access_begin(&access_, 1000, false);
    while (defrag_step(&access_, &walk, 0, 1))
        ;
    for (uint32_t i = 0; i < STRIPES; i += 2)
        atomic_store(&store->stripes[i].lock.holder, 0);
    assert_in_range(read_counter(&defrag_counters.key_hits), 1, KEYS - 1);
    teardown();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_moves_and_nothing_is_lost),
        cmocka_unit_test(the_shares_make_the_whole),
        cmocka_unit_test(a_shared_blob_stays),
        cmocka_unit_test(large_values_take_several_steps),
        cmocka_unit_test(values_may_change_in_midwalk),
        cmocka_unit_test(a_busy_stripe_is_passed_over),
    };

    fence_setup();
    hash_setup();
    return cmocka_run_group_tests_name("defrag", tests, NULL, NULL);
}
