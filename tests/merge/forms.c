#include "forms.h"

#include "plain_record.h"
#include "values.h"

#include <stdio.h>

enum { STEPS = 60, FIRST_WALL = 1000, STAMPS_A_MS = 1024, GATHERED = 6 };

struct pair {
    struct random random;
    struct merge_horizon horizon;
    struct merge_record cheap;
    struct plain_record plain;
    bool exists;
    int64_t now;
    uint32_t made; /* entries; makes stamps differ */
    enum value_profile profile;
    bool counts;  /* most commands add to integers */
    bool is_late; /* joined steps do not tell any more what the plain form knows: the end */
    const char *wrong;
};

static uint64_t below(struct pair *pair, uint64_t limit)
{
    return random_below(&pair->random, limit);
}

/* Mostly some time ago, so that most arrivals come out of order. */
static uint64_t fresh_stamp(struct pair *pair)
{
    uint64_t ms = (uint64_t)pair->now - below(pair, 30);

    return ms * STAMPS_A_MS + pair->made++ % STAMPS_A_MS;
}

static void remove_both(struct pair *pair)
{
    merge_record_fini(&pair->cheap, &value_model);
    plain_record_fini(&pair->plain, &value_model);
    pair->exists = false;
}

static struct merge_entry *make_entry(struct pair *pair, const struct value_part *part, uint64_t seen)
{
    struct merge_item item = {.key = slice_make("k", 1),
                              .words = slice_make(part, sizeof(*part)),
                              .overwrites = value_kind_overwrites(part->kind),
                              .evicts = part->kind == KIND_EVICT,
                              .seen = seen};

    return merge_entry_create(1 + below(pair, 3), fresh_stamp(pair), 0, pair->now - (int64_t)below(pair, 20), false,
                              &item, 1);
}

/* The cheap form gets them together, the plainest one after the other. They are ascending by place. */
static void place_all(struct pair *pair, struct merge_op **ops, uint32_t count)
{
    enum merge_outcome cheap[GATHERED], plain;
    const bool existed = pair->exists, has_joined = existed && pair->cheap.has_joined;

    if (!existed) {
        merge_record_init(&pair->cheap, &pair->horizon);
        plain_record_init(&pair->plain, &pair->horizon);
    }
    if (count == 1)
        cheap[0] = merge_record_place(&pair->cheap, ops[0], existed, &pair->horizon, &value_model);
    else
        merge_record_place_all(&pair->cheap, ops, count, existed, &pair->horizon, &value_model, cheap);
    for (uint32_t i = 0; i < count; i++) {
        plain = plain_record_place(&pair->plain, ops[i], pair->exists, &pair->horizon, &value_model);
        if (has_joined && (cheap[i] == MERGE_LATE || plain == MERGE_LATE))
            pair->is_late = true;
        else if (cheap[i] != plain)
            pair->wrong = "outcomes of an arrival";
        if (plain != MERGE_FLUSHED && plain != MERGE_OVERWRITTEN && plain != MERGE_LATE_NOTHING)
            pair->exists = true;
    }
    if (!pair->exists)
        remove_both(pair);
}

static void place(struct pair *pair, const struct value_part *part, uint64_t seen)
{
    struct merge_entry *entry = make_entry(pair, part, seen);
    struct merge_op *op = &entry->ops[0];

    place_all(pair, &op, 1);
    merge_entry_release(entry);
}

static bool is_of_counts(uint8_t kind)
{
    return kind == KIND_INCRBY || kind == KIND_HINCRBY || kind == KIND_HSET || kind == KIND_HDEL;
}

static bool random_part(struct pair *pair, struct merge_value *seen, uint64_t origin, struct value_part *part)
{
    enum { TRIES = 16 };

    for (unsigned i = 0; i < TRIES; i++) {
        if (!value_random_part(&pair->random, seen, pair->now, origin, pair->profile, part))
            continue;
        if (pair->counts && (part->kind == KIND_INCRBY || part->kind == KIND_HINCRBY))
            part->n = part->n < 0 ? -1 : 1 + part->n % 3; /* far from the limits */
        if (!pair->counts || is_of_counts(part->kind) || below(pair, 20) == 0)
            return true;
    }
    return false;
}

/* Arrivals that were gathered. */
static void place_gathered(struct pair *pair)
{
    struct merge_op *ops[GATHERED];
    uint32_t count = 0;

    for (unsigned i = 0; i < GATHERED; i++) {
        struct merge_value *seen = pair->exists ? pair->plain.value : NULL;
        struct value_part part;
        struct merge_op *op;
        uint32_t at = count;

        if (!random_part(pair, seen, 1, &part))
            continue;
        op = &make_entry(pair, &part, 0)->ops[0];
        for (; at != 0 && merge_place_before(op->place, ops[at - 1]->place); at--)
            ops[at] = ops[at - 1];
        ops[at] = op;
        count++;
    }
    if (count != 0)
        place_all(pair, ops, count);
    for (uint32_t i = 0; i < count; i++)
        merge_entry_release(ops[i]->entry);
}

static void command(struct pair *pair)
{
    struct merge_value *seen = pair->exists ? pair->plain.value : NULL;
    struct value_part part;

    if (below(pair, 3) == 0)
        seen = pair->exists ? pair->plain.base : NULL; /* what another node might have seen */
    if (random_part(pair, seen, 1 + below(pair, 3), &part))
        place(pair, &part, 0);
}

static void flush(struct pair *pair)
{
    struct merge_place at = {fresh_stamp(pair), 1};
    enum merge_outcome cheap, plain;
    const bool has_joined = pair->exists && pair->cheap.has_joined;

    if (merge_place_compare(at, pair->horizon.flush) <= 0)
        return;
    pair->horizon.flush = at;
    if (!pair->exists)
        return;
    cheap = merge_record_flush(&pair->cheap, at, &value_model);
    plain = plain_record_flush(&pair->plain, at, &value_model);
    if (has_joined && (cheap == MERGE_LATE || plain == MERGE_LATE))
        pair->is_late = true;
    else if (cheap != plain)
        pair->wrong = "outcomes of a flush";
    if (cheap == MERGE_APPENDED)
        remove_both(pair);
}

static void settle(struct pair *pair)
{
    uint64_t frontier = ((uint64_t)pair->now - below(pair, 25)) * STAMPS_A_MS;
    int64_t wall = pair->now - (int64_t)below(pair, 25);
    bool keep = below(pair, 4) == 0, cheap, plain;

    if (frontier > pair->horizon.frontier)
        pair->horizon.frontier = frontier;
    if (wall > pair->horizon.wall)
        pair->horizon.wall = wall;
    if (!pair->exists)
        return;
    cheap = merge_record_settle(&pair->cheap, &pair->horizon, keep, &value_model);
    plain = plain_record_settle(&pair->plain, &pair->horizon, keep, &value_model);
    if (cheap != plain)
        pair->wrong = "what can be freed";
    if (cheap) {
        remove_both(pair);
        pair->horizon.floor = pair->horizon.frontier;
    }
}

/* As a snapshot does: the copy goes on, what it was made of goes. */
static void exchange_for_a_copy(struct pair *pair)
{
    struct merge_record copy;

    if (!pair->exists)
        return;
    merge_record_copy(&copy, &pair->cheap, &value_model);
    merge_record_fini(&pair->cheap, &value_model);
    pair->cheap = copy;
}

/* The value does not change, nor does what is younger. */
static void join(struct pair *pair)
{
    if (pair->exists)
        (void)merge_record_join(&pair->cheap, ((uint64_t)pair->now - below(pair, 10)) * STAMPS_A_MS,
                                1 + (uint32_t)below(pair, 50), &value_model);
}

static void compare(struct pair *pair)
{
    if (!pair->exists || pair->is_late)
        return;
    if (!value_equal(pair->cheap.value, pair->plain.value))
        pair->wrong = "values";
    merge_record_validate(&pair->cheap);
    if (merge_place_compare(merge_record_last(&pair->cheap), plain_record_last(&pair->plain)) != 0)
        pair->wrong = "last places";
    if (pair->cheap.has_joined)
        return;
    if (merge_place_compare(pair->cheap.base_place, pair->plain.base_place) != 0 ||
        pair->cheap.base_overwrote != pair->plain.base_overwrote)
        pair->wrong = "bases";
    if (merge_record_base_is_missing(&pair->cheap) != (pair->plain.base == NULL))
        pair->wrong = "whether there is a key at the base";
    if (merge_record_step_count(&pair->cheap) != pair->plain.count)
        pair->wrong = "lists";
}

/* What differs, or NULL. */
static const char *run_sequence(uint64_t seed)
{
    struct pair pair = {.now = FIRST_WALL};

    random_seed(&pair.random, seed);
    pair.profile = (enum value_profile)below(&pair, PROFILE_COUNT);
    pair.counts = below(&pair, 3) == 0;
    if (pair.counts)
        pair.profile = PROFILE_ALL;
    for (unsigned i = 0; i < STEPS && pair.wrong == NULL && !pair.is_late; i++) {
        uint64_t dice = below(&pair, 100);

        pair.now += (int64_t)below(&pair, 4);
        if (dice < 70)
            command(&pair);
        else if (dice < 80)
            place_gathered(&pair);
        else if (dice < 84 && pair.exists)
            place(&pair, &(struct value_part){.kind = KIND_EVICT},
                  merge_record_last(&pair.cheap).stamp - below(&pair, 3) * STAMPS_A_MS);
        else if (dice < 86)
            flush(&pair);
        else if (dice < 93)
            settle(&pair);
        else if (dice < 96)
            join(&pair);
        else if (dice < 97 && pair.exists) {
            merge_record_forget_list(&pair.cheap, &value_model);
            plain_record_forget_list(&pair.plain, &value_model);
        } else {
            exchange_for_a_copy(&pair);
        }
        compare(&pair);
    }
    if (pair.exists)
        remove_both(&pair);
    return pair.wrong;
}

unsigned forms_run(uint64_t first_seed, uint64_t count, unsigned *failed)
{
    unsigned passed = 0;

    for (uint64_t i = 0; i < count && *failed < 10; i++) {
        const char *wrong = run_sequence(first_seed + i);

        if (wrong == NULL) {
            passed++;
        } else {
            printf("forms, seed %llu: %s differ\n", (unsigned long long)(first_seed + i), wrong);
            (*failed)++;
        }
    }
    return passed;
}

uint64_t forms_find(unsigned rule, uint64_t most)
{
    uint64_t count = 0;

    merge_breaks = UINT64_C(1) << rule;
    for (uint64_t seed = 0; seed < most && count == 0; seed++) {
        if (run_sequence(seed) != NULL)
            count = seed + 1;
    }
    merge_breaks = 0;
    return count;
}
