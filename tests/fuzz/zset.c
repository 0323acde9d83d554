/* Steps chosen by the input on a sorted set, with limits so low that it soon becomes a table, and on an array. Members
 * are few and scores repeat. Properties: the same order, ranks, ranges by score, rank and member; every invariant. */
#include "data/zset.h"

#include "fuzz.h"

#include <math.h>

enum { MEMBERS_MOST = 256, STEPS_MOST = 400 };

struct pair {
    double score;
    uint8_t member;
};

struct model {
    struct pair pairs[MEMBERS_MOST]; /* in order */
    size_t count;
};

static const struct zset_limits limits = {.listpack_entries = 12, .listpack_bytes = 8};

/* Members of different lengths, the order of which is that of the numbers. */
static struct slice text_of(uint8_t member, char room[12])
{
    memset(room, 'm', 12);
    room[0] = (char)member;
    return slice_make(room, 1 + member % 12);
}

static double score_of(uint8_t byte)
{
    static const double odd[] = {0.5, -0.25, 1e300, -1e300, INFINITY, -INFINITY, 0x1p62, 0x1p53 + 2};

    return byte < 8 ? odd[byte] : (double)(byte % 16) - 8;
}

static size_t find(const struct model *model, uint8_t member)
{
    size_t place = 0;

    while (place < model->count && model->pairs[place].member != member)
        place++;
    return place;
}

static void drop(struct model *model, size_t first, size_t count)
{
    memmove(&model->pairs[first], &model->pairs[first + count],
            (model->count - first - count) * sizeof(model->pairs[0]));
    model->count -= count;
}

static void put(struct model *model, uint8_t member, double score)
{
    size_t place = find(model, member);

    if (place < model->count)
        drop(model, place, 1);
    for (place = model->count++; place > 0; place--) {
        const struct pair *before = &model->pairs[place - 1];

        if (before->score < score || (before->score == score && before->member < member))
            break;
        model->pairs[place] = *before;
    }
    model->pairs[place] = (struct pair){score, member};
}

static void check_walk(struct value zset, const struct model *model, struct zset_span span, bool backwards)
{
    struct zset_walk walk;
    struct slice member;
    double score;
    char room[12];

    zset_walk_begin(&walk, zset, span, backwards);
    for (uint64_t i = 0; i < span.end - span.first; i++) {
        const struct pair *pair = &model->pairs[backwards ? span.end - 1 - i : span.first + i];

        assert(zset_walk_next(&walk, &member, &score));
        assert(score == pair->score && slice_equal(member, text_of(pair->member, room)));
    }
    assert(!zset_walk_next(&walk, &member, &score));
}

static struct zset_span check_scores(struct value zset, const struct model *model, double a, double b, unsigned open)
{
    struct zset_scores scores = {MIN(a, b), MAX(a, b), (open & 1) != 0, (open & 2) != 0};
    struct zset_span span = zset_span_of_scores(zset, &scores), expected = {0, 0};

    for (size_t i = 0; i < model->count; i++) {
        double score = model->pairs[i].score;

        if (scores.above_least ? score <= scores.least : score < scores.least)
            expected.first++;
        if (scores.below_most ? score < scores.most : score <= scores.most)
            expected.end++;
    }
    if (expected.first >= expected.end)
        assert(span.first == span.end);
    else
        assert(span.first == expected.first && span.end == expected.end);
    return span;
}

static void check_ranks(struct value zset, const struct model *model)
{
    char room[12];

    for (size_t i = 0; i < model->count; i++) {
        uint64_t rank;
        double score;

        assert(zset_rank(zset, text_of(model->pairs[i].member, room), &rank, &score));
        assert(rank == i && score == model->pairs[i].score);
    }
}

static void step(struct value *zset, struct model *model, struct slice *input)
{
    unsigned kind = fuzz_take_byte(input);
    uint8_t a = fuzz_take_byte(input), b = fuzz_take_byte(input);
    struct zset_span span;
    char room[12];

    switch (kind % 8) {
    case 0: {
        size_t place = find(model, a);

        assert(zset_remove(zset, text_of(a, room)) == (place < model->count));
        if (place < model->count)
            drop(model, place, 1);
        break;
    }
    case 1:
        span = check_scores(*zset, model, score_of(a), score_of(b), kind >> 3);
        check_walk(*zset, model, span, (kind & 64) != 0);
        if ((kind & 128) != 0) {
            zset_remove_span(zset, span);
            drop(model, span.first, span.end - span.first);
        }
        break;
    case 2:
        check_ranks(*zset, model);
        break;
    case 3:
        check_walk(*zset, model, (struct zset_span){0, model->count}, (kind & 64) != 0);
        break;
    default:
        assert(zset_put(zset, &limits, text_of(a, room), score_of(b)) == (find(model, a) == model->count));
        put(model, a, score_of(b));
        break;
    }
    zset_validate(*zset);
    assert(zset_count(*zset) == model->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    struct value zset = zset_create();
    struct model model = {.count = 0};

    for (unsigned i = 0; i < STEPS_MOST && input.size != 0; i++)
        step(&zset, &model, &input);
    check_walk(zset, &model, (struct zset_span){0, model.count}, false);
    zset_ops.destroy(zset);
    return 0;
}
