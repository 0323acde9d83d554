/* A row of beats comes back as it was said, whatever changes from one to the next; what does not change costs nothing;
 * damaged, a beat is refused. */
#include "active/beats.h"

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

enum { IDS = 12, NAMES = 5 };

static const int64_t now_ms = INT64_C(1795000000000);

static uint64_t random_stamp(struct random *random)
{
    return random_below(random, 5) == 0 ? 0 : stamp_at(now_ms + (int64_t)random_below(random, 100000)) + 7;
}

/* Some of few ids, so that they come, change and go. */
static void change_vector(struct random *random, struct merge_vector *vector, bool is_set)
{
    for (uint64_t i = random_below(random, 4); i != 0; i--) {
        const uint64_t id = 1 + random_below(random, IDS);

        if (random_below(random, 3) == 0)
            merge_vector_remove(vector, id);
        else
            merge_vector_set(vector, id, is_set ? 1 : random_stamp(random));
    }
}

static void change_members(struct random *random, struct merge_members *members)
{
    const struct merge_member member = {1 + random_below(random, NAMES), 1 + random_below(random, IDS),
                                        (uint32_t)random_below(random, 9)};

    if (random_below(random, 4) == 0)
        merge_members_remove(members, member.name);
    else if (random_below(random, 2) == 0)
        (void)merge_members_learn(members, member);
}

static struct merge_word *make_word(struct random *random, uint64_t name, const struct merge_word *before)
{
    static uint64_t sequence; /* global: of this test */
    struct merge_word *word = mem_alloc_zero(sizeof(*word));

    word->references = 1;
    word->name = name;
    word->sequence = ++sequence;
    word->origin = 1 + random_below(random, IDS);
    word->incarnation = (uint32_t)random_u64(random);
    word->wall = now_ms - (int64_t)random_below(random, 1000);
    word->frontier = random_stamp(random);
    if (before != NULL) {
        merge_vector_copy(&word->vector, &before->vector);
        merge_vector_copy(&word->saved, &before->saved);
        merge_vector_copy(&word->closed, &before->closed);
        merge_members_copy(&word->members, &before->members);
    }
    change_vector(random, &word->vector, false);
    change_vector(random, &word->saved, false);
    change_vector(random, &word->closed, true);
    change_members(random, &word->members);
    return word;
}

/* The words in any order, one a name. */
static void change_words(struct random *random, struct merge_beat *beat)
{
    for (uint64_t name = 1; name <= NAMES; name++) {
        uint32_t at = 0;

        while (at < beat->words.count && beat->words.items[at]->name != name)
            at++;
        if (at == beat->words.count) {
            if (random_below(random, 3) == 0)
                *ARRAY_PUSH(&beat->words) = make_word(random, name, NULL);
        } else if (random_below(random, 2) == 0) {
            struct merge_word *before = beat->words.items[at];

            beat->words.items[at] = make_word(random, name, before);
            merge_word_release(before);
        } else if (random_below(random, 8) == 0) {
            merge_word_release(beat->words.items[at]);
            beat->words.items[at] = beat->words.items[--beat->words.count];
        }
    }
}

static void change_beat(struct random *random, struct merge_beat *beat)
{
    beat->clock = random_stamp(random);
    change_vector(random, &beat->vector, false);
    change_vector(random, &beat->deeds, false);
    change_vector(random, &beat->offers, false);
    change_vector(random, &beat->closed, true);
    change_vector(random, &beat->removed, true);
    change_members(random, &beat->members);
    change_words(random, beat);
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

static void expect_word(const struct merge_word *x, const struct merge_word *y)
{
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

static void expect_beat(const struct merge_beat *said, const struct merge_beat *heard)
{
    assert_int_equal(said->clock, heard->clock);
    expect_vector(&said->vector, &heard->vector);
    expect_vector(&said->deeds, &heard->deeds);
    expect_vector(&said->offers, &heard->offers);
    expect_vector(&said->closed, &heard->closed);
    expect_vector(&said->removed, &heard->removed);
    expect_members(&said->members, &heard->members);
    assert_int_equal(said->words.count, heard->words.count);
    for (uint32_t i = 0; i < said->words.count; i++) {
        uint32_t at = 0;

        while (at < heard->words.count && heard->words.items[at]->name != said->words.items[i]->name)
            at++;
        assert_int_not_equal(at, heard->words.count);
        expect_word(said->words.items[i], heard->words.items[at]);
    }
}

static void a_row_of_beats_comes_back(void **state)
{
    struct random random = test_random("beats");

    (void)state;
    for (unsigned row = 0; row < 50; row++) {
        struct beats writer = {0}, reader = {0};
        struct merge_beat beat = {0};

        for (unsigned i = 0; i < 50; i++) {
            char error[NOTICE_ERROR_BYTES];
            struct buffer body = {0};
            struct merge_beat heard;

            change_beat(&random, &beat);
            beats_write(&writer, &body, &beat);
            assert_true(beats_read(&reader, buffer_slice(&body), &heard, error));
            expect_beat(&beat, &heard);
            merge_beat_fini(&heard);
            buffer_fini(&body);
        }
        beats_fini(&writer);
        beats_fini(&reader);
        merge_beat_fini(&beat);
    }
}

/* A beat that is cut short, or longer, is refused, also behind others. */
static void a_damaged_one_is_refused(void **state)
{
    struct random random = test_random("damaged");
    char error[NOTICE_ERROR_BYTES];
    struct merge_beat beat = {0}, heard;

    (void)state;
    for (unsigned row = 0; row < 10; row++) {
        struct beats writer = {0};
        struct buffer first = {0}, second = {0};

        change_beat(&random, &beat);
        beats_write(&writer, &first, &beat);
        change_beat(&random, &beat);
        beats_write(&writer, &second, &beat);
        buffer_append_char(&second, 0);
        for (size_t size = 0; size <= second.size; size++) {
            struct beats reader = {0};
            const bool is_whole = size == second.size - 1;

            assert_true(beats_read(&reader, buffer_slice(&first), &heard, error));
            merge_beat_fini(&heard);
            assert_int_equal(beats_read(&reader, slice_make(second.data, size), &heard, error), is_whole);
            if (is_whole)
                merge_beat_fini(&heard);
            else
                assert_non_null(strstr(error, "beat, byte "));
            beats_fini(&reader);
        }
        beats_fini(&writer);
        buffer_fini(&first);
        buffer_fini(&second);
    }
    merge_beat_fini(&beat);
}

/* The bytes behind the clock: the changes of the vector, and all else without a change. */
static void refuse(struct beats *reader, const char *vector, size_t size, const char *why)
{
    static const char rest[] = "\0\0\0\0\0\0\0\0\0\0"; /* deeds, offers; members; closed, removed; no words */
    char error[NOTICE_ERROR_BYTES];
    struct merge_beat heard;
    struct buffer body = {0};

    buffer_append(&body, "\0\0\0\0\0\0\0\0", 8);
    buffer_append(&body, vector, size);
    buffer_append(&body, rest, sizeof(rest) - 1);
    if (why == NULL) {
        assert_true(beats_read(reader, buffer_slice(&body), &heard, error));
        merge_beat_fini(&heard);
    } else {
        assert_false(beats_read(reader, buffer_slice(&body), &heard, error));
        if (strstr(error, why) == NULL)
            fail_msg("'%s' instead of '%s'", error, why);
    }
    buffer_fini(&body);
}

#define CHANGES(bytes) bytes, sizeof(bytes) - 1

static void changes_of_nothing(void **state)
{
    struct beats reader = {0};

    (void)state;
    refuse(&reader, CHANGES("\1\5\0\0\0\0\0\0\0\0\0"), NULL);                                  /* 5 has stamp 0 now */
    refuse(&reader, CHANGES("\1\5\0\0\0\0\0\0\0\0\0"), "a change of nothing");                 /* as it has */
    refuse(&reader, CHANGES("\0\1\6\0\0\0\0\0\0\0"), "a change of nothing");                   /* goes, and was not */
    refuse(&reader, CHANGES("\1\7\0\0\0\0\0\0\0\0\1\7\0\0\0\0\0\0\0"), "a change of nothing"); /* comes and goes */
    refuse(&reader, CHANGES("\0\2\5\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0"), "ids do not ascend");
    beats_fini(&reader);
}

/* A thousand starts that have ended cost what they cost once. */
static void what_does_not_change_costs_nothing(void **state)
{
    struct random random = test_random("starts");
    struct beats writer = {0};
    struct merge_beat beat = {.clock = stamp_at(now_ms)};
    struct merge_word *word;
    struct buffer first = {0}, second = {0};

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        merge_vector_set(&beat.vector, 1 + random_u64(&random) / 2, random_stamp(&random));
    merge_vector_copy(&beat.deeds, &beat.vector);
    merge_vector_copy(&beat.offers, &beat.vector);
    merge_vector_copy(&beat.closed, &beat.vector);
    word = make_word(&random, 1, NULL);
    merge_vector_raise_all(&word->vector, &beat.vector);
    merge_vector_raise_all(&word->closed, &beat.vector);
    *ARRAY_PUSH(&beat.words) = word;
    beats_write(&writer, &first, &beat);
    assert_true(first.size > 50 * 1000);
    beat.clock += UINT64_C(100) << STAMP_COUNTER_BITS;
    merge_vector_set(&beat.vector, beat.vector.items[500].id, beat.clock);
    merge_vector_set(&beat.offers, beat.vector.items[500].id, beat.clock);
    word = make_word(&random, 1, beat.words.items[0]);
    merge_word_release(beat.words.items[0]);
    beat.words.items[0] = word;
    beats_write(&writer, &second, &beat);
    assert_true(second.size < 300);
    beats_fini(&writer);
    merge_beat_fini(&beat);
    buffer_fini(&first);
    buffer_fini(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_of_beats_comes_back),
        cmocka_unit_test(a_damaged_one_is_refused),
        cmocka_unit_test(changes_of_nothing),
        cmocka_unit_test(what_does_not_change_costs_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
