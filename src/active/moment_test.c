/* What files say of a node comes back as it was; damaged, it is refused or says something that is possible. */
#include "active/moment.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/test_seed.h"
#include "store/entry.h"
#include "store/stamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { DB_COUNT = 16 };
static const int64_t now_ms = INT64_C(1795000000000);

static uint64_t random_stamp(struct random *random)
{
    return stamp_at(now_ms + (int64_t)random_below(random, 100000)) + random_below(random, 20);
}

static struct merge_place random_place(struct random *random)
{
    return (struct merge_place){random_stamp(random), 1 + random_u64(random) / 2};
}

static void fill_vector(struct random *random, struct merge_vector *vector, bool is_set)
{
    for (uint64_t count = random_below(random, 5); count != 0; count--)
        merge_vector_set(vector, 1 + random_u64(random) / 2, is_set ? 1 : random_stamp(random));
}

static void make_moment(struct random *random, struct moment *moment)
{
    *moment = (struct moment){.name = 4711,
                              .origin = 4712,
                              .account = {.clock = random_stamp(random),
                                          .wall = now_ms,
                                          .frontier = random_stamp(random),
                                          .frontier_wall = now_ms - 5},
                              .floor = random_below(random, 2) == 0 ? 0 : random_stamp(random),
                              .recheck = random_place(random)};
    fill_vector(random, &moment->account.vector, false);
    fill_vector(random, &moment->account.deeds, false);
    fill_vector(random, &moment->account.cut, false);
    fill_vector(random, &moment->account.closed, true);
    fill_vector(random, &moment->account.removed, true);
    for (uint64_t count = random_below(random, 4); count != 0; count--)
        (void)merge_members_learn(&moment->account.members,
                                  (struct merge_member){1 + random_u64(random) / 2, 4713, (uint32_t)count});
    for (unsigned db = 0; db < DB_COUNT; db++) {
        if (random_below(random, 4) == 0)
            *ARRAY_PUSH(&moment->flushes) = (struct moment_flush){db, random_place(random)};
    }
}

static void make_record(struct random *random, struct moment_record *record)
{
    *record = (struct moment_record){.db = (unsigned)random_below(random, DB_COUNT),
                                     .name = SLICE("a key"),
                                     .base = random_place(random),
                                     .base_overwrote = random_below(random, 2) == 0,
                                     .has_value = random_below(random, 2) == 0};
    if (random_below(random, 2) == 0)
        record->dirty = random_place(random);
    if (record->has_value) {
        record->expire_ms = random_below(random, 2) == 0 ? EXPIRE_NEVER : now_ms;
        record->is_in_parts = random_below(random, 2) == 0;
        record->payload = record->is_in_parts ? SLICE_EMPTY : SLICE("some value");
    }
    for (uint64_t i = 0, count = random_below(random, 5); i < count; i++) {
        const uint64_t stamp = stamp_at(now_ms + 200000 + (int64_t)i);

        *ARRAY_PUSH(&record->steps) = (struct moment_step){.place = {stamp, 77 + i},
                                                           .prev = i == 0 ? 0 : stamp - 3,
                                                           .wall = now_ms + (int64_t)i,
                                                           .overwrites = i % 2 == 0,
                                                           .joined = {i % 3 != 0 ? stamp - i : 0, 1000 * i},
                                                           .words = SLICE("*2\r\n$4\r\nINCR\r\n$5\r\na key\r\n")};
    }
}

/* The same bytes again: so nothing was lost. */
static void what_is_written_is_read(void **state)
{
    struct random random = test_random("moments");
    char error[MOMENT_ERROR_BYTES];

    (void)state;
    for (unsigned round = 0; round < 500; round++) {
        struct buffer bytes = {0}, again = {0};
        struct moment moment, read;
        struct moment_record record, read_record;

        make_moment(&random, &moment);
        moment_write(&bytes, &moment);
        if (!moment_read(buffer_slice(&bytes), DB_COUNT, &read, error))
            fail_msg("%s", error);
        moment_write(&again, &read);
        assert_int_equal(bytes.size, again.size);
        assert_memory_equal(bytes.data, again.data, bytes.size);
        assert_int_equal(read.account.frontier, moment.account.frontier);
        assert_int_equal(read.flushes.count, moment.flushes.count);
        moment_fini(&moment);
        moment_fini(&read);
        buffer_clear(&bytes);
        buffer_clear(&again);
        make_record(&random, &record);
        moment_write_record(&bytes, &record);
        if (!moment_read_record(buffer_slice(&bytes), DB_COUNT, &read_record, error))
            fail_msg("%s", error);
        moment_write_record(&again, &read_record);
        assert_int_equal(bytes.size, again.size);
        assert_memory_equal(bytes.data, again.data, bytes.size);
        assert_true(slice_equal(read_record.name, record.name));
        assert_true(slice_equal(read_record.payload, record.payload));
        assert_int_equal(read_record.is_in_parts, record.is_in_parts);
        assert_int_equal(read_record.steps.count, record.steps.count);
        for (uint32_t i = 0; i < record.steps.count; i++)
            assert_int_equal(read_record.steps.items[i].joined.first, record.steps.items[i].joined.first);
        moment_record_fini(&record);
        moment_record_fini(&read_record);
        buffer_fini(&bytes);
        buffer_fini(&again);
    }
}

static void try_both(const char *bytes, size_t size, bool is_right)
{
    char error[MOMENT_ERROR_BYTES] = "", *exact = mem_copy(bytes, size);
    struct moment moment;
    struct moment_record record;

    if (moment_read(slice_make(exact, size), DB_COUNT, &moment, error))
        moment_fini(&moment);
    else
        assert_true(!is_right && error[0] != '\0');
    if (moment_read_record(slice_make(exact, size), DB_COUNT, &record, error))
        moment_record_fini(&record);
    else
        assert_true(!is_right && error[0] != '\0');
    mem_free(exact);
}

static void what_is_damaged_does_no_harm(void **state)
{
    struct random random = test_random("damaged moments");

    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        struct buffer bytes = {0};
        struct moment moment;
        struct moment_record record;

        if (round % 2 == 0) {
            make_moment(&random, &moment);
            moment_write(&bytes, &moment);
            moment_fini(&moment);
        } else {
            make_record(&random, &record);
            moment_write_record(&bytes, &record);
            moment_record_fini(&record);
        }
        for (size_t size = 0; size < bytes.size; size++)
            try_both(bytes.data, size, false);
        for (unsigned i = 0; i < 200; i++) {
            bytes.data[random_below(&random, bytes.size)] = (char)random_u64(&random);
            try_both(bytes.data, bytes.size, false);
        }
        buffer_fini(&bytes);
    }
}

static void what_is_not_possible_is_refused(void **state)
{
    struct random random = test_random("impossible moments");
    struct buffer bytes = {0};
    struct moment_record record, read;
    char error[MOMENT_ERROR_BYTES];

    (void)state;
    make_record(&random, &record);
    while (record.steps.count < 2) {
        moment_record_fini(&record);
        make_record(&random, &record);
    }
    record.steps.items[1].place = record.steps.items[0].place;
    moment_write_record(&bytes, &record);
    assert_false(moment_read_record(buffer_slice(&bytes), DB_COUNT, &read, error));
    assert_non_null(strstr(error, "operations do not ascend"));
    record.steps.items[0].place = record.base;
    buffer_clear(&bytes);
    moment_write_record(&bytes, &record);
    assert_false(moment_read_record(buffer_slice(&bytes), DB_COUNT, &read, error));
    record.steps.count = 0;
    record.db = DB_COUNT;
    buffer_clear(&bytes);
    moment_write_record(&bytes, &record);
    assert_false(moment_read_record(buffer_slice(&bytes), DB_COUNT, &read, error));
    assert_non_null(strstr(error, "no such database"));
    moment_record_fini(&record);
    buffer_fini(&bytes);
}

/* A server that does not know parts refuses them as what they are not. */
static void a_part_is_no_record(void **state)
{
    struct buffer bytes = {0};
    struct moment_record record = {.name = SLICE("a key"), .is_in_parts = true}, read;
    char error[MOMENT_ERROR_BYTES];
    struct slice part;

    (void)state;
    assert_false(moment_is_part(SLICE_EMPTY, &part));
    moment_write_part(&bytes, SLICE("of a value"));
    assert_true(moment_is_part(buffer_slice(&bytes), &part));
    assert_true(slice_equal(part, SLICE("of a value")));
    assert_false(moment_read_record(buffer_slice(&bytes), DB_COUNT, &read, error));
    assert_non_null(strstr(error, "of a version that this server does not know"));
    buffer_clear(&bytes);
    moment_write_record(&bytes, &record);
    assert_false(moment_is_part(buffer_slice(&bytes), &part));
    assert_false(moment_read_record(buffer_slice(&bytes), DB_COUNT, &read, error));
    assert_non_null(strstr(error, "parts of no value"));
    buffer_fini(&bytes);
}

static void words_of_a_step_are_commands_on_its_key(void **state)
{
    static const char *const wrong[] = {
        "",
        "*1\r\n$5\r\na key\r\n",
        "*2\r\n$4\r\nINCR\r\n$5\r\nb key\r\n",
        "*2\r\n$4\r\nINCR\r\n$5\r\na key\r\n*1\r\n$8\r\nFLUSHALL\r\n",
        "*2\r\n$4\r\nINCR\r\n$5\r\na key\r\n*0\r\n",
        "*2\r\n$4\r\nINCR\r\n$6\r\na key\r\n",
        "*2\r\n$4\r\nINCR\r\n$05\r\na key\r\n",
        "*2\r\n$4\r\nINCR\r\n$99999999999999999999\r\na key\r\n",
        "*3\r\n$4\r\nINCR\r\n$5\r\na key\r\n",
        "*2\r\n$4\r\nINCR\r\n$5\r\na key\r",
        "*2\r\n$4\r\nINCR\r\n$5\r\na keyxy",
        "*999999999999999999\r\n$4\r\nINCR\r\n$5\r\na key\r\n",
    };
    struct moment_record record = {.name = SLICE("a key"), .base = {stamp_at(now_ms), 3}}, read;
    char error[MOMENT_ERROR_BYTES];
    struct buffer bytes = {0};

    (void)state;
    *ARRAY_PUSH(&record.steps) = (struct moment_step){.place = {stamp_at(now_ms + 1), 77}, .wall = now_ms};
    for (unsigned i = 0; i <= countof(wrong); i++) {
        const bool is_right = i == countof(wrong);

        record.steps.items[0].words =
            is_right ? SLICE("*2\r\n$4\r\nINCR\r\n$5\r\na key\r\n*3\r\n$3\r\nSET\r\n$5\r\na key\r\n$0\r\n\r\n")
                     : slice_from_text(wrong[i]);
        buffer_clear(&bytes);
        moment_write_record(&bytes, &record);
        assert_int_equal(moment_read_record(buffer_slice(&bytes), DB_COUNT, &read, error), is_right);
        if (is_right)
            moment_record_fini(&read);
        else
            assert_non_null(strstr(error, "an operation is not of its key"));
    }
    moment_record_fini(&record);
    buffer_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_is_damaged_does_no_harm),
        cmocka_unit_test(what_is_not_possible_is_refused),
        cmocka_unit_test(a_part_is_no_record),
        cmocka_unit_test(words_of_a_step_are_commands_on_its_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
