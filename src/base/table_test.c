#include "base/table.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/mem_move.h"
#include "base/random.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The model: one flag a number of a small universe; items are the numbers' structs. */
struct item {
    uint64_t number;
    unsigned visited;
};

enum { UNIVERSE = 20000 };

static struct item items[UNIVERSE];
static bool present[UNIVERSE];
static uint64_t kept_bits = UINT64_MAX; /* of every hash: with few of them everything piles up */

static uint64_t hash_of_number(uint64_t number)
{
    return hash_bytes(&number, sizeof(number)) & kept_bits;
}

static uint64_t hash_of_item(const void *item)
{
    return hash_of_number(((const struct item *)item)->number);
}

static bool match(const void *item, const void *key)
{
    return ((const struct item *)item)->number == *(const uint64_t *)key;
}

static uint64_t *find(const struct table *table, uint64_t number)
{
    return table_find_slot(table, hash_of_number(number), match, &number);
}

static void put(struct table *table, uint64_t number)
{
    uint64_t *slot = find(table, number);

    assert_true((slot != NULL) == present[number]);
    if (slot == NULL) {
        items[number].number = number;
        slot = table_insert(table, hash_of_number(number), &items[number], hash_of_item);
        assert_ptr_equal(table_slot_item(slot), &items[number]);
        present[number] = true;
    }
}

static void take(struct table *table, uint64_t number)
{
    uint64_t *slot = find(table, number);

    assert_true((slot != NULL) == present[number]);
    if (slot != NULL) {
        assert_ptr_equal(table_remove(table, hash_of_number(number), slot), &items[number]);
        present[number] = false;
    }
}

static void check_all(const struct table *table)
{
    uint64_t count = 0;

    table_validate(table, hash_of_item);
    for (uint64_t i = 0; i < UNIVERSE; i++) {
        assert_true((find(table, i) != NULL) == present[i]);
        count += present[i];
    }
    assert_int_equal(table_count(table), count);
}

static void reset(struct table *table)
{
    table_clear(table, NULL, NULL);
    memset(present, 0, sizeof(present));
    assert_int_equal(table_memory_bytes(table), 0);
}

/* Random steps over a universe that grows and shrinks, against the model. */
static void random_steps(struct random *random, uint64_t step_count)
{
    struct table table = {0};
    uint64_t universe = 1;

    for (uint64_t i = 0; i < step_count; i++) {
        uint64_t number = random_below(random, universe), dice = random_below(random, 100);

        if (i % 5000 == 0)
            universe = 1 + random_below(random, UNIVERSE);
        if (dice < (i / 20000 % 2 != 0 ? 30 : 70))
            put(&table, number);
        else
            take(&table, number);
        if (i % 997 == 0)
            table_validate(&table, hash_of_item);
        if (i % 50000 == 0)
            check_all(&table);
    }
    check_all(&table);
    reset(&table);
}

static void random_steps_match_the_model(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    random_steps(&random, 300000);
}

/* Which bits of all hashes are kept. */
static const uint64_t collisions[] = {
    UINT64_C(0xF0000FFFFFFFFFFF), /* few tags */
    UINT64_C(0x0000FFFFFFFFFFFF), /* one tag */
    UINT64_C(0xFFFF000000000000), /* one entry of any directory */
    UINT64_C(0xFFFF0000000FFFFF), /* the last directory bits differ, far beyond the depth of a table */
    UINT64_C(0x1000000000004000), /* four hashes */
    UINT64_C(0x0000020000003FFF), /* two, of which one split tells */
    0,
};

static void random_steps_match_the_model_when_hashes_collide(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (size_t i = 0; i < countof(collisions); i++) {
        kept_bits = collisions[i];
        random_steps(&random, 25000);
    }
    kept_bits = UINT64_MAX;
}

/* A table takes memory by the number of its items, whatever their hashes, and gives it back. */
static void memory_is_linear_when_hashes_collide(void **state)
{
    (void)state;
    for (size_t round = 0; round < countof(collisions); round++) {
        struct table table = {0};

        kept_bits = collisions[round];
        for (uint64_t i = 0; i < 10000; i++) {
            put(&table, i);
            assert_true(table_memory_bytes(&table) <= 4096 + 2 * sizeof(struct table_directory) + 100 * (i + 1));
        }
        check_all(&table);
        for (uint64_t i = 0; i < 10000; i++) {
            take(&table, i);
            if (i % 500 == 0)
                table_validate(&table, hash_of_item);
        }
        assert_int_equal(table_memory_bytes(&table), 0);
    }
    kept_bits = UINT64_MAX;
}

static void load_stays_high_at_any_size(void **state)
{
    struct table table = {0};
    double worst = 1;

    (void)state;
    for (uint64_t i = 0; i < UNIVERSE; i++) {
        put(&table, i);
        if (i > 1000 && i % 100 == 0)
            worst = MIN(worst, (double)table_count(&table) / (double)table_slot_count(&table));
    }
    assert_true(worst > 0.77); /* on average 0.87; with few keys the draw of one hash secret can be that unlucky */
    for (uint64_t i = 0; i < UNIVERSE; i++)
        take(&table, i);
    assert_int_equal(table_memory_bytes(&table), 0); /* all given back */
}

/* Groups join their neighbours in an order that chance decides, and one in thirty of these tables used to keep an empty
 * bucket: so there are many. */
static void an_emptied_table_owns_nothing(void **state)
{
    struct table table = {0};

    (void)state;
    for (uint64_t first = 0; first < UNIVERSE / 2; first += 101) {
        for (uint64_t i = first; i < first + UNIVERSE / 2; i++)
            put(&table, i);
        for (uint64_t i = first; i < first + UNIVERSE / 2; i++)
            take(&table, i);
        assert_int_equal(table_memory_bytes(&table), 0);
    }
}

static void visit_item(void *item, void *context)
{
    ((struct item *)item)->visited++;
    (*(uint64_t *)context)++;
}

static void each_visits_all_once(void **state)
{
    struct table table = {0};
    uint64_t count = 0;

    (void)state;
    for (uint64_t i = 0; i < 5000; i++) {
        put(&table, i);
        items[i].visited = 0;
    }
    table_each(&table, visit_item, &count);
    assert_int_equal(count, 5000);
    for (uint64_t i = 0; i < 5000; i++)
        assert_int_equal(items[i].visited, 1);
    reset(&table);
}

/* Items that stay during a scan are visited, while many other items are added and removed between the calls. */
static void scan_sees_what_stays(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (unsigned round = 0; round < 60 + countof(collisions); round++) {
        struct table table = {0};
        uint64_t stay = 1 + random_below(&random, 3000), position = 0, visited = 0, calls = 0;
        bool growing = random_below(&random, 2) != 0;

        kept_bits = round < 60 ? UINT64_MAX : collisions[round - 60];
        for (uint64_t i = 0; i < stay; i++) {
            put(&table, i);
            items[i].visited = 0;
        }
        for (uint64_t i = stay; !growing && i < UNIVERSE; i++)
            put(&table, i);
        do {
            uint64_t churn = random_below(&random, 2000);

            position = table_scan(&table, position, 1 + random_below(&random, 100), visit_item, &visited);
            for (uint64_t k = 0; k < churn; k++) {
                uint64_t number = stay + random_below(&random, UNIVERSE - stay);

                if (growing)
                    put(&table, number);
                else
                    take(&table, number);
            }
            assert_true(calls++ < UINT64_C(1000000));
        } while (position != 0);
        for (uint64_t i = 0; i < stay; i++)
            assert_true(items[i].visited >= 1);
        reset(&table);
    }
    kept_bits = UINT64_MAX;
}

/* A scan ends wherever it is told to go on and whatever it is asked for, in calls bounded by the table's size. */
static void scan_ends_from_any_position(void **state)
{
    static const uint64_t odd[] = {UINT64_C(1) << TABLE_SCAN_BITS, UINT64_C(1) << 48, UINT64_MAX, UINT64_C(1) << 63,
                                   (UINT64_C(1) << TABLE_SCAN_BITS) - 1};
    static const uint64_t wants[] = {1, 10, UINT64_C(1844674407370955160), UINT64_MAX};
    struct random random = test_random(__func__);
    struct table table = {0};

    (void)state;
    for (uint64_t count = 1; count <= 10000; count *= 10) {
        for (uint64_t i = 0; i < count; i++)
            put(&table, i);
        for (unsigned round = 0; round < 100; round++) {
            uint64_t position = round < countof(odd) ? odd[round] : random_u64(&random) >> random_below(&random, 64);
            uint64_t want = wants[random_below(&random, countof(wants))], calls = 0, visited = 0;

            do {
                position = table_scan(&table, position, want, visit_item, &visited);
                assert_true(position >> TABLE_SCAN_BITS == 0);
                assert_true(calls++ < 100 + count);
            } while (position != 0);
        }
    }
    reset(&table);
}

static void scan_of_a_table_at_rest_visits_once(void **state)
{
    struct table table = {0};
    uint64_t position = 0, visited = 0, most = 0;

    (void)state;
    for (uint64_t i = 0; i < 4000; i++)
        put(&table, i);
    do {
        uint64_t before = visited;

        position = table_scan(&table, position, 10, visit_item, &visited);
        most = MAX(most, visited - before);
    } while (position != 0);
    assert_int_equal(visited, 4000);
    assert_true(most < 50); /* about as many as asked for */
    reset(&table);
}

static uint64_t draw(void *context)
{
    return random_u64(context);
}

static void insert_in_order(void *item, void *context)
{
    table_insert(context, hash_of_item(item), item, hash_of_item);
}

/* Copying a table meets its items in scan order: neighbours in the order of hashes follow each other. */
static void items_may_come_in_scan_order(void **state)
{
    static const uint64_t counts[] = {130, 600, 2000, 5000, UNIVERSE};
    struct table table = {0}, copy = {0}, again = {0};

    (void)state;
    for (size_t round = 0; round < countof(counts) + countof(collisions); round++) {
        uint64_t count = round < countof(counts) ? counts[round] : 3000;

        kept_bits = round < countof(counts) ? UINT64_MAX : collisions[round - countof(counts)];
        for (uint64_t i = 0; i < count; i++)
            put(&table, i);
        table_each(&table, insert_in_order, &copy);
        check_all(&copy);
        assert_true(table_memory_bytes(&copy) < 3 * table_memory_bytes(&table));
        table_each(&copy, insert_in_order, &again);
        check_all(&again);
        table_clear(&again, NULL, NULL);
        table_clear(&copy, NULL, NULL);
        reset(&table);
    }
    kept_bits = UINT64_MAX;
}

static void random_item_is_fair(void **state)
{
    struct random random = test_random(__func__);
    struct table table = {0};
    enum { COUNT = 300, DRAWS = 300 * COUNT };
    double chi = 0;

    (void)state;
    assert_null(table_random(&table, draw, &random));
    for (uint64_t i = 0; i < COUNT; i++) {
        put(&table, i);
        items[i].visited = 0;
    }
    for (unsigned i = 0; i < DRAWS; i++)
        ((struct item *)table_random(&table, draw, &random))->visited++;
    for (uint64_t i = 0; i < COUNT; i++) {
        double off = (double)items[i].visited - (double)DRAWS / COUNT;

        chi += off * off / ((double)DRAWS / COUNT);
    }
    assert_true(chi < COUNT + 6 * 25); /* degrees of freedom + 6 sigma */
    reset(&table);
}

/* Nobody is left out, wherever it stands. */
static void random_item_is_any(void **state)
{
    struct random random = test_random(__func__);
    enum { COUNT = 300 };

    (void)state;
    for (size_t round = 0; round < countof(collisions); round++) {
        struct table table = {0};
        uint64_t left = COUNT;

        kept_bits = collisions[round];
        for (uint64_t i = 0; i < COUNT; i++) {
            put(&table, i);
            items[i].visited = 0;
        }
        for (uint64_t draws = 0; left != 0; draws++) {
            assert_true(draws < 1000 * COUNT);
            left -= ((struct item *)table_random(&table, draw, &random))->visited++ == 0;
        }
        reset(&table);
    }
    kept_bits = UINT64_MAX;
}

static bool is_number(const void *item, void *context)
{
    return ((const struct item *)item)->number == *(uint64_t *)context;
}

static void items_are_found_by_hash_alone(void **state)
{
    struct table table = {0};

    (void)state;
    for (size_t round = 0; round <= countof(collisions); round++) {
        kept_bits = round < countof(collisions) ? collisions[round] : UINT64_MAX;
        for (uint64_t i = 0; i < 3000; i++)
            put(&table, i);
        for (uint64_t i = 0; i < 6000; i++) {
            uint64_t number = i;
            uint64_t *slot = table_find_by_hash(&table, hash_of_number(i), is_number, &number);

            assert_true((slot != NULL) == present[i]);
        }
        reset(&table);
    }
}

/* Items that move: a copy stands for each number that is present. */
static struct item *copies[UNIVERSE];

static void *relocate_item(void *item, void *context)
{
    const struct item *old = item;
    struct item *moved = mem_alloc(sizeof(*moved));
    uint64_t *count = context;

    assert_true(old == copies[old->number]);
    *moved = *old;
    moved->visited++;
    mem_free(item);
    copies[moved->number] = moved;
    ++*count;
    return moved;
}

static void put_copy(struct table *table, uint64_t number)
{
    struct item *item = mem_alloc(sizeof(*item));

    *item = (struct item){.number = number};
    copies[number] = item;
    table_insert(table, hash_of_number(number), item, hash_of_item);
}

static void take_copy(struct table *table, uint64_t number)
{
    table_remove(table, hash_of_number(number), find(table, number));
    mem_free(copies[number]);
    copies[number] = NULL;
}

static void check_copies(const struct table *table)
{
    table_validate(table, hash_of_item);
    for (uint64_t i = 0; i < UNIVERSE; i++) {
        const uint64_t *slot = find(table, i);

        assert_ptr_equal(slot != NULL ? table_slot_item(slot) : NULL, copies[i]);
    }
}

/* Of a table at rest each item is offered once, in pieces of about the size that was asked for. */
static void relocation_meets_each_item_once(void **state)
{
    const uint64_t sizes[] = {0, 1, 7, 100, 600, UNIVERSE};

    (void)state;
    mem_move_everything(true);
    for (unsigned k = 0; k < countof(sizes); k++) {
        struct table table = {0};
        struct mem_mover mover = {0, 0};
        uint64_t position = 0, met = 0;

        for (uint64_t i = 0; i < sizes[k]; i++)
            put_copy(&table, i);
        do {
            uint64_t before = met;

            position = table_relocate(&table, position, 20, &mover, relocate_item, &met);
            assert_true(met - before < 20 + TABLE_SLOTS);
        } while (position != 0);
        assert_int_equal(met, sizes[k]);
        assert_true(mover.moved * TABLE_SLOTS * TABLE_GROUP_BUCKETS_MOST >= sizes[k]);
        assert_int_equal(mover.stayed, 0);
        for (uint64_t i = 0; i < sizes[k]; i++)
            assert_int_equal(copies[i]->visited, 1);
        check_copies(&table);
        for (uint64_t i = 0; i < sizes[k]; i++)
            take_copy(&table, i);
        table_clear(&table, NULL, NULL);
    }
    mem_move_everything(false);
}

/* Between the pieces the table grows and shrinks: the walk ends, and the table is whole. */
static void relocation_ends_while_the_table_changes(void **state)
{
    struct random random = test_random(__func__);
    struct table table = {0};
    struct mem_mover mover = {0, 0};

    (void)state;
    mem_move_everything(true);
    for (unsigned round = 0; round < 30; round++) {
        uint64_t position = 0, met = 0;
        unsigned odds = (unsigned)random_below(&random, 10) + 1;

        do {
            for (unsigned i = 0; i < 200; i++) {
                uint64_t number = random_below(&random, UNIVERSE);

                if (copies[number] == NULL && random_below(&random, 11) < odds)
                    put_copy(&table, number);
                else if (copies[number] != NULL && random_below(&random, 11) >= odds)
                    take_copy(&table, number);
            }
            position = table_relocate(&table, position, 50, &mover, relocate_item, &met);
            assert_true(met < (uint64_t)UNIVERSE * 10);
        } while (position != 0);
        check_copies(&table);
    }
    mem_move_everything(false);
    for (uint64_t i = 0; i < UNIVERSE; i++) {
        if (copies[i] != NULL)
            take_copy(&table, i);
    }
    table_clear(&table, NULL, NULL);
}

/* An overflow is relocated with its group. */
static void relocation_meets_what_collides(void **state)
{
    (void)state;
    mem_move_everything(true);
    for (size_t round = 0; round < countof(collisions); round++) {
        struct table table = {0};
        struct mem_mover mover = {0, 0};
        uint64_t position = 0, met = 0;

        kept_bits = collisions[round];
        for (uint64_t i = 0; i < 3000; i++)
            put_copy(&table, i);
        do
            position = table_relocate(&table, position, 20, &mover, relocate_item, &met);
        while (position != 0);
        assert_int_equal(met, 3000);
        check_copies(&table);
        for (uint64_t i = 0; i < 3000; i++)
            take_copy(&table, i);
        assert_int_equal(table_memory_bytes(&table), 0);
    }
    kept_bits = UINT64_MAX;
    mem_move_everything(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_steps_match_the_model),
        cmocka_unit_test(random_steps_match_the_model_when_hashes_collide),
        cmocka_unit_test(memory_is_linear_when_hashes_collide),
        cmocka_unit_test(load_stays_high_at_any_size),
        cmocka_unit_test(an_emptied_table_owns_nothing),
        cmocka_unit_test(each_visits_all_once),
        cmocka_unit_test(scan_sees_what_stays),
        cmocka_unit_test(scan_ends_from_any_position),
        cmocka_unit_test(scan_of_a_table_at_rest_visits_once),
        cmocka_unit_test(items_may_come_in_scan_order),
        cmocka_unit_test(random_item_is_fair),
        cmocka_unit_test(random_item_is_any),
        cmocka_unit_test(items_are_found_by_hash_alone),
        cmocka_unit_test(relocation_meets_each_item_once),
        cmocka_unit_test(relocation_ends_while_the_table_changes),
        cmocka_unit_test(relocation_meets_what_collides),
    };

    hash_setup();
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
