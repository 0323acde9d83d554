/* What nodes tell each other comes back as it was said; damaged, it is refused. */
#include "active/notice.h"

#include "active/frame.h"
#include "base/array.h"
#include "base/mem.h"
#include "base/test_seed.h"
#include "store/stamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const int64_t now_ms = INT64_C(1795000000000);

static uint64_t random_stamp(struct random *random)
{
    return random_below(random, 5) == 0 ? 0 : stamp_at(now_ms + (int64_t)random_below(random, 100000)) + 7;
}

static void fill_vector(struct random *random, struct merge_vector *vector, bool is_set)
{
    const uint64_t count = random_below(random, 6);

    for (uint64_t i = 0; i < count; i++)
        merge_vector_set(vector, 1 + random_u64(random) / 2, is_set ? 1 : random_stamp(random));
}

static void fill_members(struct random *random, struct merge_members *members)
{
    for (uint64_t count = random_below(random, 4); count != 0; count--)
        (void)merge_members_learn(members, (struct merge_member){.name = 1 + random_u64(random) / 2,
                                                                 .origin = 1 + random_u64(random) / 2,
                                                                 .incarnation = (uint32_t)random_u64(random)});
}

static void expect_vector(const struct merge_vector *a, const struct merge_vector *b)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_int_equal(a->items[i].id, b->items[i].id);
        assert_int_equal(a->items[i].stamp, b->items[i].stamp);
    }
}

static void expect_members(const struct merge_members *a, const struct merge_members *b)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t i = 0; i < a->count; i++) {
        assert_int_equal(a->items[i].name, b->items[i].name);
        assert_int_equal(a->items[i].origin, b->items[i].origin);
        assert_int_equal(a->items[i].incarnation, b->items[i].incarnation);
    }
}

static void make_hello(struct random *random, struct notice_hello *hello)
{
    *hello = (struct notice_hello){.version_least = FRAME_VERSION_LEAST,
                                   .version_most = FRAME_VERSION_MOST,
                                   .name = uuid_of_id(4711),
                                   .origin = uuid_of_id(4712),
                                   .hello = {.name = 4711,
                                             .origin = 4712,
                                             .clock = random_stamp(random),
                                             .incarnation = (uint32_t)random_u64(random),
                                             .ready = random_below(random, 2) == 0}};
    fill_members(random, &hello->hello.members);
    fill_vector(random, &hello->hello.vector, false);
    fill_vector(random, &hello->hello.deeds, false);
    fill_vector(random, &hello->hello.cut, false);
    fill_vector(random, &hello->hello.closed, true);
    fill_vector(random, &hello->hello.removed, true);
    fill_vector(random, &hello->former, true);
    fill_vector(random, &hello->wanted, true);
}

static void expect_hello(const struct notice_hello *a, const struct notice_hello *b)
{
    assert_int_equal(a->hello.name, b->hello.name);
    assert_int_equal(a->hello.origin, b->hello.origin);
    assert_int_equal(a->hello.clock, b->hello.clock);
    assert_int_equal(a->hello.incarnation, b->hello.incarnation);
    assert_int_equal(a->hello.ready, b->hello.ready);
    expect_members(&a->hello.members, &b->hello.members);
    expect_vector(&a->hello.vector, &b->hello.vector);
    expect_vector(&a->hello.deeds, &b->hello.deeds);
    expect_vector(&a->hello.cut, &b->hello.cut);
    expect_vector(&a->hello.closed, &b->hello.closed);
    expect_vector(&a->hello.removed, &b->hello.removed);
    expect_vector(&a->former, &b->former);
    expect_vector(&a->wanted, &b->wanted);
}

/* Every shorter body is refused, as is a longer one. */
static void hello_comes_back(void **state)
{
    struct random random = test_random("hello");
    char error[NOTICE_ERROR_BYTES];

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        struct notice_hello hello, read;
        struct buffer body = {0};

        make_hello(&random, &hello);
        notice_write_hello(&body, &hello);
        assert_true(notice_read_hello(buffer_slice(&body), &read, error));
        expect_hello(&hello, &read);
        assert_int_equal(notice_choose_version(&read), FRAME_VERSION_MOST);
        notice_hello_fini(&read);
        for (size_t size = 0; size < body.size; size++) {
            assert_false(notice_read_hello(slice_make(body.data, size), &read, error));
            assert_non_null(strstr(error, "hello, byte "));
        }
        buffer_append_char(&body, 0);
        assert_false(notice_read_hello(buffer_slice(&body), &read, error));
        assert_non_null(strstr(error, "more follows than belongs to it"));
        notice_hello_fini(&hello);
        buffer_fini(&body);
    }
}

static struct merge_word *make_word(struct random *random)
{
    struct merge_word *word = mem_alloc_zero(sizeof(*word));

    word->references = 1;
    word->incarnation = (uint32_t)random_u64(random);
    word->sequence = random_u64(random);
    word->name = 1 + random_u64(random) / 2;
    word->origin = 1 + random_u64(random) / 2;
    word->wall = now_ms - (int64_t)random_below(random, 1000);
    word->frontier = random_stamp(random);
    fill_vector(random, &word->vector, false);
    fill_vector(random, &word->saved, false);
    fill_vector(random, &word->closed, true);
    fill_members(random, &word->members);
    return word;
}

static void make_beat(struct random *random, struct merge_beat *beat)
{
    *beat = (struct merge_beat){.clock = random_stamp(random)};
    fill_vector(random, &beat->vector, false);
    fill_vector(random, &beat->deeds, false);
    fill_vector(random, &beat->offers, false);
    fill_vector(random, &beat->closed, true);
    fill_vector(random, &beat->removed, true);
    fill_members(random, &beat->members);
    for (uint64_t count = random_below(random, 4); count != 0; count--)
        *ARRAY_PUSH(&beat->words) = make_word(random);
}

static void expect_beat(const struct merge_beat *a, const struct merge_beat *b)
{
    assert_int_equal(a->clock, b->clock);
    expect_vector(&a->vector, &b->vector);
    expect_vector(&a->deeds, &b->deeds);
    expect_vector(&a->offers, &b->offers);
    expect_vector(&a->closed, &b->closed);
    expect_vector(&a->removed, &b->removed);
    expect_members(&a->members, &b->members);
    assert_int_equal(a->words.count, b->words.count);
    for (uint32_t i = 0; i < a->words.count; i++) {
        const struct merge_word *x = a->words.items[i], *y = b->words.items[i];

        assert_int_equal(x->name, y->name);
        assert_int_equal(x->origin, y->origin);
        assert_int_equal(x->incarnation, y->incarnation);
        assert_int_equal(x->sequence, y->sequence);
        assert_int_equal(x->wall, y->wall);
        assert_int_equal(x->frontier, y->frontier);
        expect_vector(&x->vector, &y->vector);
        expect_vector(&x->saved, &y->saved);
        expect_vector(&x->closed, &y->closed);
        expect_members(&x->members, &y->members);
    }
}

static void beats_come_back(void **state)
{
    struct random random = test_random("beats");
    char error[NOTICE_ERROR_BYTES];

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        struct merge_beat beat, read;
        struct buffer body = {0};

        make_beat(&random, &beat);
        notice_write_beat(&body, &beat);
        assert_true(notice_read_beat(buffer_slice(&body), &read, error));
        expect_beat(&beat, &read);
        merge_beat_fini(&read);
        for (size_t size = 0; size < body.size; size++)
            assert_false(notice_read_beat(slice_make(body.data, size), &read, error));
        merge_beat_fini(&beat);
        buffer_fini(&body);
    }
}

static void wants_and_sets_come_back(void **state)
{
    struct random random = test_random("wants");
    char error[NOTICE_ERROR_BYTES];

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        struct merge_vector wanted = {0}, set = {0}, read;
        struct buffer body = {0};
        const uint64_t said = stamp_at(now_ms);
        uint64_t clock;

        fill_vector(&random, &wanted, false);
        fill_vector(&random, &set, true);
        notice_write_want(&body, said, &wanted);
        assert_true(notice_read_want(buffer_slice(&body), &clock, &read, error));
        assert_int_equal(clock, said);
        expect_vector(&wanted, &read);
        merge_vector_fini(&read);
        buffer_clear(&body);
        notice_write_set(&body, &set);
        assert_true(notice_read_set(buffer_slice(&body), &read, error));
        expect_vector(&set, &read);
        merge_vector_fini(&read);
        merge_vector_fini(&wanted);
        merge_vector_fini(&set);
        buffer_fini(&body);
    }
}

static void refuse_set(const char *bytes, size_t size, const char *why)
{
    char error[NOTICE_ERROR_BYTES];
    struct merge_vector read;

    assert_false(notice_read_set(slice_make(bytes, size), &read, error));
    assert_null(read.items);
    if (strstr(error, why) == NULL)
        fail_msg("'%s' instead of '%s'", error, why);
}

static void what_nobody_says(void **state)
{
    struct merge_vector wrong = {0}, read;
    struct buffer body = {0};
    char error[NOTICE_ERROR_BYTES];
    uint64_t clock;

    (void)state;
    refuse_set("\1\0\0\0\0\0\0\0\0", 9, "set of origins, byte 9: nobody has this id");
    refuse_set("\1\xff\xff\xff\xff\xff\xff\xff\xff", 9, "nobody has this id");
    refuse_set("\2\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 17, "ids do not ascend");
    refuse_set("\2\2\0\0\0\0\0\0\0", 9, "a count is larger than what follows");
    refuse_set("\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 10, "a count is larger than what follows");
    refuse_set("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11, "a number is too long");
    merge_vector_set(&wrong, 5, 99); /* before 2020 */
    notice_write_want(&body, stamp_at(now_ms), &wrong);
    assert_false(notice_read_want(buffer_slice(&body), &clock, &read, error));
    assert_non_null(strstr(error, "a stamp is not possible"));
    buffer_clear(&body);
    notice_write_want(&body, 99, &wrong);
    assert_false(notice_read_want(buffer_slice(&body), &clock, &read, error));
    assert_non_null(strstr(error, "the clock is not possible"));
    merge_vector_fini(&wrong);
    buffer_fini(&body);
}

static void versions(void **state)
{
    static const struct {
        uint8_t least, most;
        unsigned chosen;
    } rows[] = {{1, 1, 1}, {1, 9, FRAME_VERSION_MOST}, {FRAME_VERSION_MOST + 1, 9, 0}};

    (void)state;
    for (size_t i = 0; i < countof(rows); i++) {
        const struct notice_hello hello = {.version_least = rows[i].least, .version_most = rows[i].most};

        assert_int_equal(notice_choose_version(&hello), rows[i].chosen);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_comes_back),
        cmocka_unit_test(beats_come_back),
        cmocka_unit_test(wants_and_sets_come_back),
        cmocka_unit_test(what_nobody_says),
        cmocka_unit_test(versions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
