#include "data/zset.h"

#include "base/hash.h"
#include "base/mem_move.h"
#include "base/test_seed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The model: member i is there or not, with a score. Its ranks are found by comparing all with all. */
enum { MEMBERS = 300 };
static bool there[MEMBERS];
static double scores[MEMBERS];
static unsigned count;

static struct slice name_of(unsigned i, char *room)
{
    return slice_make(room, (size_t)sprintf(room, i % 3 == 0 ? "%u" : i % 7 == 0 ? "m:%020u" : "m:%u", i));
}

static unsigned index_of(struct slice member)
{
    char room[64];

    memcpy(room, member.data, member.size);
    room[member.size] = '\0';
    return (unsigned)strtoul(room[0] == 'm' ? room + 2 : room, NULL, 10);
}

static double any_score(struct random *random)
{
    switch (random_below(random, 12)) {
    case 0:
        return INFINITY;
    case 1:
        return -INFINITY;
    case 2:
        return 0.1 * (double)random_below(random, 50);
    case 3:
        return 1e18 + 1e3 * (double)random_below(random, 9);
    case 4:
        return -1e300;
    default:
        return (double)random_below(random, 40) - 15;
    }
}

static bool precedes(unsigned a, unsigned b)
{
    char a_room[64], b_room[64];

    if (scores[a] != scores[b])
        return scores[a] < scores[b];
    return slice_compare(name_of(a, a_room), name_of(b, b_room)) < 0;
}

static uint64_t model_rank(unsigned i)
{
    uint64_t rank = 0;

    for (unsigned k = 0; k < MEMBERS; k++)
        rank += there[k] && precedes(k, i);
    return rank;
}

static void set_model(unsigned i, bool is_there, double score)
{
    count += is_there - there[i];
    there[i] = is_there;
    scores[i] = score;
}

struct seen {
    unsigned times[MEMBERS];
    unsigned sum;
};

static void see(struct slice member, double score, void *context)
{
    struct seen *seen = context;
    unsigned i = index_of(member);

    assert_true(i < MEMBERS && there[i]);
    assert_true(scores[i] == score);
    seen->times[i]++;
    seen->sum++;
}

static void walks_agree(struct value zset, struct zset_span span, bool backwards)
{
    struct zset_walk walk;
    struct slice member;
    double score;
    uint64_t step = 0;

    zset_walk_begin(&walk, zset, span, backwards);
    while (zset_walk_next(&walk, &member, &score)) {
        unsigned i = index_of(member);

        assert_true(there[i] && scores[i] == score);
        assert_int_equal(model_rank(i), backwards ? span.end - 1 - step : span.first + step);
        step++;
    }
    assert_int_equal(step, span.end - span.first);
}

static void spans_agree(struct value zset, struct random *random)
{
    struct zset_scores range = {any_score(random), any_score(random), random_below(random, 2) != 0,
                                random_below(random, 2) != 0};
    struct zset_span span = zset_span_of_scores(zset, &range);
    uint64_t inside = 0;

    assert_true(span.first <= span.end && span.end <= count);
    for (unsigned i = 0; i < MEMBERS; i++) {
        if (there[i] && (range.above_least ? scores[i] > range.least : scores[i] >= range.least) &&
            (range.below_most ? scores[i] < range.most : scores[i] <= range.most)) {
            inside++;
            assert_true(model_rank(i) >= span.first && model_rank(i) < span.end);
        }
    }
    assert_int_equal(span.end - span.first, inside);
    walks_agree(zset, span, random_below(random, 2) != 0);
}

static void same(struct value zset, struct random *random)
{
    struct seen some = {.sum = 0}, scanned = {.sum = 0};
    uint64_t want = random_below(random, count + 3u), cursor = 0;

    zset_validate(zset);
    assert_int_equal(zset_count(zset), count);
    walks_agree(zset, (struct zset_span){0, count}, random_below(random, 2) != 0);
    spans_agree(zset, random);
    zset_random_some(zset, random, want, see, &some);
    assert_int_equal(some.sum, MIN(want, (uint64_t)count));
    do
        cursor = zset_scan(zset, cursor, 7, see, &scanned);
    while (cursor != 0);
    for (unsigned i = 0; i < MEMBERS; i++) {
        assert_int_equal(scanned.times[i], there[i]);
        assert_true(some.times[i] <= 1);
    }
    if (count > 0)
        zset_random(zset, random, see, &some);
}

static void change_one(struct value *zset, const struct zset_limits *limits, struct random *random, unsigned odds)
{
    unsigned i = (unsigned)random_below(random, MEMBERS);
    double score = any_score(random), got;
    char room[64];
    struct slice member = name_of(i, room);
    uint64_t rank;

    assert_int_equal(zset_score(*zset, member, &got), there[i]);
    if (there[i])
        assert_true(got == scores[i]);
    assert_int_equal(zset_rank(*zset, member, &rank, &got), there[i]);
    if (there[i])
        assert_int_equal(rank, model_rank(i));
    if (random_below(random, odds) == 0) {
        assert_int_equal(zset_remove(zset, member), there[i]);
        set_model(i, false, 0);
    } else {
        assert_int_equal(zset_put(zset, limits, member, score), !there[i]);
        set_model(i, true, score);
    }
}

static void remove_some(struct value *zset, struct random *random)
{
    uint64_t first = random_below(random, count + 1u), end = first + random_below(random, 9);
    bool gone[MEMBERS] = {false};

    end = MIN(end, (uint64_t)count);
    for (unsigned i = 0; i < MEMBERS; i++) {
        if (there[i]) {
            uint64_t rank = model_rank(i);

            gone[i] = rank >= first && rank < end;
        }
    }
    zset_remove_span(zset, (struct zset_span){first, end});
    for (unsigned i = 0; i < MEMBERS; i++) {
        if (gone[i])
            set_model(i, false, 0);
    }
}

static void relocate_all(struct value *zset)
{
    struct mem_mover mover = {0};
    uint64_t position = 0;

    mem_move_everything(true);
    do
        position = zset_ops.relocate(zset, position, 5, &mover);
    while (position != 0);
    mem_move_everything(false);
    assert_true(mover.moved >= count * (zset->encoding == ENCODING_SKIPLIST));
}

static void assert_same_members(struct value one, struct value other)
{
    struct zset_walk walk, walk_of_other;
    struct slice member, member_of_other;
    double score, score_of_other;

    assert_int_equal(zset_count(one), zset_count(other));
    zset_walk_begin(&walk, one, (struct zset_span){0, zset_count(one)}, false);
    zset_walk_begin(&walk_of_other, other, (struct zset_span){0, zset_count(other)}, false);
    while (zset_walk_next(&walk, &member, &score)) {
        assert_true(zset_walk_next(&walk_of_other, &member_of_other, &score_of_other));
        assert_true(slice_equal(member, member_of_other));
        assert_true(score == score_of_other);
        assert_true(zset_score(one, member_of_other, &score_of_other));
    }
}

static void a_copy_without_a_span_is_what_removing_it_leaves(void **state)
{
    static const struct zset_limits no_listpack = {0, 0};
    enum { COUNT = 40 };
    struct value zset = zset_create();
    char room[64];

    (void)state;
    for (unsigned i = 0; i < COUNT; i++)
        (void)zset_put(&zset, &no_listpack, name_of(i, room), i / 3);
    for (uint64_t first = 0; first <= COUNT; first++) {
        for (uint64_t end = first; end <= COUNT; end++) {
            const struct zset_span span = {first, end};
            struct value left, rest;

            if (end - first == COUNT)
                continue;
            rest = zset_copy_without(zset, span);
            left = zset_ops.copy(zset);
            zset_remove_span(&left, span);
            zset_validate(rest);
            assert_int_equal(rest.encoding, left.encoding);
            assert_same_members(rest, left);
            zset_ops.destroy(left);
            zset_ops.destroy(rest);
        }
    }
    assert_int_equal(zset_count(zset), COUNT);
    zset_ops.destroy(zset);
}

static void behaves_like_a_sorted_list(void **state)
{
    static const struct zset_limits limits[] = {{128, 64}, {0, 64}, {20, 8}, {100000, 100000}};
    struct random random = test_random("zset");

    (void)state;
    for (size_t round = 0; round < countof(limits); round++) {
        struct value zset = zset_create(), copy;
        struct mem_mover mover = {0};
        uint64_t position = 0;

        for (int step = 0; step < 4000; step++) {
            mem_move_everything(true); /* in small steps, while the set changes */
            position = zset_ops.relocate(&zset, position, 3, &mover);
            mem_move_everything(false);
            change_one(&zset, &limits[round], &random, step / 1000 % 2 == 0 ? 5 : 2);
            if (step % 150 == 0)
                remove_some(&zset, &random);
            if (step % 500 == 0)
                relocate_all(&zset);
            if (step % 50 == 0)
                same(zset, &random);
        }
        copy = zset_ops.copy(zset);
        assert_int_equal(copy.encoding, zset.encoding);
        assert_int_equal(copy.encoding, round == 3 ? ENCODING_LISTPACK : ENCODING_SKIPLIST);
        assert_true(zset_ops.memory_bytes(copy, 0) > 0);
        zset_ops.destroy(zset);
        same(copy, &random);
        zset_ops.destroy(copy);
        for (unsigned i = 0; i < MEMBERS; i++)
            set_model(i, false, 0);
    }
}

static void is_built_in_any_order(void **state)
{
    static const struct zset_limits limits[] = {{400, 64}, {299, 64}, {400, 21}};
    struct random random = test_random("zset building");

    (void)state;
    for (size_t round = 0; round < countof(limits); round++) {
        struct zset_builder builder = {.longest = 0};
        struct value zset;
        char room[64];

        for (unsigned i = 0; i < MEMBERS; i++) {
            set_model(i, true, any_score(&random));
            assert_null(zset_builder_find(&builder, name_of(i, room)));
            zset_builder_add(&builder, name_of(i, room), i % 2 == 0 ? scores[i] : 5);
        }
        for (unsigned i = 1; i < MEMBERS; i += 2)
            zset_builder_find(&builder, name_of(i, room))->score = scores[i];
        zset = zset_build(&builder, &limits[round]);
        assert_int_equal(zset.encoding, round == 0 ? ENCODING_LISTPACK : ENCODING_SKIPLIST);
        same(zset, &random);
        zset_ops.destroy(zset);
        for (unsigned i = 0; i < MEMBERS; i++)
            set_model(i, false, 0);
    }
}

static void lex_ranges(void **state)
{
    const struct zset_limits limits[] = {{128, 64}, {0, 64}};

    (void)state;
    for (size_t round = 0; round < countof(limits); round++) {
        const struct zset_lex_bound first = {.kind = ZINDEX_LEX_FIRST}, last = {.kind = ZINDEX_LEX_LAST};
        const struct zset_lex_bound b = {.kind = ZINDEX_LEX_MEMBER, .member = SLICE("b")};
        const struct zset_lex_bound not_b = {.kind = ZINDEX_LEX_MEMBER, .member = SLICE("b"), .excluded = true};
        const struct zset_lex_bound cc = {.kind = ZINDEX_LEX_MEMBER, .member = SLICE("cc")};
        const struct {
            struct zset_members members;
            struct zset_span span;
        } cases[] = {
            {{first, last}, {0, 4}}, {{last, first}, {0, 0}},  {{b, last}, {1, 4}}, {{not_b, last}, {2, 4}},
            {{first, b}, {0, 2}},    {{first, not_b}, {0, 1}}, {{b, b}, {1, 2}},    {{not_b, not_b}, {0, 0}},
            {{b, cc}, {1, 3}},       {{cc, last}, {3, 4}},     {{cc, b}, {0, 0}},
        };
        struct value zset = zset_create();

        for (const char *member = "dcba"; *member != '\0'; member++)
            (void)zset_put(&zset, &limits[round], slice_make(member, 1), 7);
        for (size_t i = 0; i < countof(cases); i++) {
            struct zset_span span = zset_span_of_members(zset, &cases[i].members);

            assert_int_equal(span.end - span.first, cases[i].span.end - cases[i].span.first);
            if (span.first != span.end)
                assert_int_equal(span.first, cases[i].span.first);
        }
        zset_ops.destroy(zset);
    }
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
        cmocka_unit_test(behaves_like_a_sorted_list),
        cmocka_unit_test(a_copy_without_a_span_is_what_removing_it_leaves),
        cmocka_unit_test(is_built_in_any_order),
        cmocka_unit_test(lex_ranges),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
