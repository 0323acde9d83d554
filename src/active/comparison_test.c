/* What nodes say to compare their data comes back as it was said; damaged, it is refused. */
#include "active/comparison.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/test_seed.h"
#include "store/stamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const int64_t now_ms = INT64_C(1795000000000);
enum { DB_COUNT = 16, ROUNDS = 200 };

static char names[64][16];

static void fill_slots(struct random *random, struct comparison_slots *slots, uint64_t one_in)
{
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        if (random_below(random, one_in) == 0)
            comparison_set(slots, slot);
    }
}

static void fill_deeds(struct random *random, uint64_t *clock, struct merge_vector *deeds)
{
    *clock = stamp_at(now_ms);
    for (uint64_t count = random_below(random, 4); count != 0; count--)
        merge_vector_set(deeds, 1 + random_u64(random) / 2, stamp_at(now_ms - (int64_t)random_below(random, 1000)));
}

static void fill_keys(struct random *random, struct comparison_keys *keys, const struct comparison_slots *clear)
{
    for (unsigned i = 0; i < countof(names); i++) {
        const struct slice name = slice_from_text(names[i]);

        if (clear != NULL && !comparison_has(clear, slot_of(name)))
            continue;
        *ARRAY_PUSH(keys) = (struct comparison_key){
            .db = (unsigned)random_below(random, DB_COUNT),
            .name = name,
            .sum = {{random_u64(random), random_u64(random)}},
        };
        if (i % 3 != 0)
            keys->items[keys->count - 1].last = (struct merge_place){stamp_at(now_ms) + i, 1 + random_u64(random) / 2};
    }
}

static void make_answer(struct random *random, struct comparison_answer *answer)
{
    *answer = (struct comparison_answer){.number = random_u64(random), .kind = 1 + random_below(random, 4)};
    if (answer->kind == COMPARISON_BUSY || answer->kind == COMPARISON_FAILED)
        return;
    fill_deeds(random, &answer->clock, &answer->deeds);
    fill_slots(random, &answer->clear, 1 + random_below(random, 3));
    if (answer->kind == COMPARISON_KEYS) {
        fill_keys(random, &answer->keys, &answer->clear);
        return;
    }
    answer->digests = mem_alloc_zero(sizeof(*answer->digests));
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        if (comparison_has(&answer->clear, slot))
            answer->digests->slots[slot] = (struct slot_sum){{random_u64(random), slot}};
    }
}

/* What is read is written as it came; cut short anywhere, or with one byte more, it is refused. */
static bool reads(unsigned kind, struct slice body, struct buffer *again)
{
    char error[COMPARISON_ERROR_BYTES] = "";
    struct comparison_request request;
    struct comparison_answer answer;
    struct comparison_keys keys;
    uint64_t number;
    bool good = false;

    buffer_clear(again);
    if (kind == 0 && (good = comparison_read_request(body, &request, error))) {
        comparison_write_request(again, &request);
        comparison_request_fini(&request);
    } else if (kind == 1 && (good = comparison_read_answer(body, DB_COUNT, &answer, error))) {
        comparison_write_answer(again, &answer);
        comparison_answer_fini(&answer);
    } else if (kind == 2 && (good = comparison_read_repair(body, DB_COUNT, &number, &keys, error))) {
        comparison_write_repair(again, number, &keys);
        ARRAY_FINI(&keys);
    }
    assert_int_equal(good, error[0] == '\0');
    return good;
}

static void check(struct random *random, unsigned kind, struct buffer *body)
{
    struct buffer again = {0};
    const size_t size = body->size;

    assert_true(reads(kind, buffer_slice(body), &again));
    assert_int_equal(again.size, size);
    assert_memory_equal(again.data, body->data, size);
    for (int i = 0; i < 20; i++)
        assert_false(reads(kind, slice_make(body->data, random_below(random, size)), &again));
    buffer_append_char(body, 0);
    assert_false(reads(kind, buffer_slice(body), &again));
    for (int i = 0; i < 20; i++) { /* damaged: refused, or something else that is right */
        const size_t at = random_below(random, size);
        const char before = body->data[at];

        body->data[at] = (char)(before ^ (1 << random_below(random, 8)));
        if (reads(kind, slice_make(body->data, size), &again))
            assert_memory_equal(again.data, body->data, size);
        body->data[at] = before;
    }
    buffer_fini(&again);
    buffer_clear(body);
}

static void comes_back_as_it_was_said(void **state)
{
    struct random random = test_random("comparison");
    struct buffer body = {0};

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct comparison_request request = {.number = random_u64(&random), .until_ms = now_ms};
        struct comparison_answer answer;
        struct comparison_keys keys = {0};

        fill_deeds(&random, &request.clock, &request.deeds);
        if (round % 2 == 0)
            fill_slots(&random, &request.wanted, 1 + random_below(&random, 500));
        for (uint32_t slot = 0; slot < SLOT_COUNT; slot++)
            request.wanted_count += comparison_has(&request.wanted, slot);
        comparison_write_request(&body, &request);
        comparison_request_fini(&request);
        check(&random, 0, &body);
        make_answer(&random, &answer);
        comparison_write_answer(&body, &answer);
        comparison_answer_fini(&answer);
        check(&random, 1, &body);
        fill_keys(&random, &keys, NULL);
        comparison_write_repair(&body, random_u64(&random), &keys);
        ARRAY_FINI(&keys);
        check(&random, 2, &body);
    }
    buffer_fini(&body);
}

/* All slots, and two nodes: at most 512 KiB together with the question. */
static void digests_of_all_slots_are_small(void **state)
{
    struct comparison_answer answer = {.kind = COMPARISON_SUMS, .digests = mem_alloc_zero(sizeof(struct slot_digests))};
    struct buffer body = {0};

    (void)state;
    memset(&answer.clear, 0xff, sizeof(answer.clear));
    comparison_write_answer(&body, &answer);
    assert_in_range(body.size, 256 * 1024, 260 * 1024);
    comparison_answer_fini(&answer);
    buffer_fini(&body);
}

static int setup(void **state)
{
    (void)state;
    for (unsigned i = 0; i < countof(names); i++)
        (void)snprintf(names[i], sizeof(names[i]), "key:%u", i);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back_as_it_was_said),
        cmocka_unit_test(digests_of_all_slots_are_small),
    };

    return cmocka_run_group_tests_name("comparison", tests, setup, NULL);
}
