#include "data/former_deadlines.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"

#define HAD_NONE INT64_MIN /* in `kept`: the walk passes it by */

struct former_deadlines {
    struct deadlines kept; /* what was changed before it was given, as it was at the moment */
    uint64_t count;        /* at the moment */
    uint64_t given;
    uint64_t cursor; /* of the scan: texts whose place is below it were given; then of the kept ones */
    int64_t first_ms;
    uint64_t bytes;
    bool has_walked; /* all of the table was given: what is left is kept */
    deadline_fn fn;  /* during former_deadlines_give */
    void *context;
};

struct former_deadlines *former_deadlines_create(const struct deadlines *deadlines)
{
    struct former_deadlines *former = mem_alloc_zero(sizeof(*former));

    former->count = deadlines_count(deadlines);
    former->first_ms = deadlines_first_ms(deadlines);
    former->bytes = mem_usable(former);
    return former;
}

void former_deadlines_destroy(struct former_deadlines **former)
{
    struct former_deadlines *gone = *former;

    *former = NULL;
    if (gone == NULL)
        return;
    deadlines_clear(&gone->kept);
    mem_free(gone);
}

int64_t former_deadlines_first_ms(const struct former_deadlines *former)
{
    return former->first_ms;
}

uint64_t former_deadlines_bytes(const struct former_deadlines *former)
{
    return former->bytes;
}

static bool was_given(const struct former_deadlines *former, struct slice text)
{
    return former->has_walked || table_scan_place(hash_bytes(text.data, text.size)) < former->cursor;
}

static void keep(struct former_deadlines *former, struct slice text, int64_t when_ms)
{
    if (deadlines_set(&former->kept, text, when_ms != DEADLINE_NONE ? MAX(when_ms, HAD_NONE + 1) : HAD_NONE))
        former->bytes += mem_good_size(sizeof(struct deadline) + text.size) + 2 * sizeof(uint64_t);
}

void former_deadlines_keep(struct former_deadlines *former, struct slice text, int64_t when_ms)
{
    if (!was_given(former, text) && deadlines_find(&former->kept, text) == DEADLINE_NONE)
        keep(former, text, when_ms);
}

void former_deadlines_take_back(struct former_deadlines *former, const struct deadlines *now, struct slice text,
                                int64_t when_ms)
{
    const bool had_one = former_deadlines_find(former, now, text) != DEADLINE_NONE;

    former->count = former->count - had_one + (when_ms != DEADLINE_NONE);
    former->first_ms = former->count != 0 ? MIN(former->first_ms, when_ms) : DEADLINE_NONE;
    keep(former, text, when_ms);
}

int64_t former_deadlines_find(const struct former_deadlines *former, const struct deadlines *now, struct slice text)
{
    const int64_t when_ms = deadlines_find(&former->kept, text);

    assert(former->cursor == 0 && !former->has_walked);
    if (when_ms != DEADLINE_NONE)
        return when_ms != HAD_NONE ? when_ms : DEADLINE_NONE;
    return now != NULL ? deadlines_find(now, text) : DEADLINE_NONE;
}

static void give_one(struct former_deadlines *former, struct slice text, int64_t when_ms)
{
    former->given++;
    former->fn(text, when_ms, former->context);
}

static void meet(struct slice text, int64_t when_ms, void *context)
{
    struct former_deadlines *former = context;

    if (!was_given(former, text) &&
        (deadlines_count(&former->kept) == 0 || deadlines_find(&former->kept, text) == DEADLINE_NONE))
        give_one(former, text, when_ms);
}

static void meet_kept(struct slice text, int64_t when_ms, void *context)
{
    struct former_deadlines *former = context;

    if (when_ms != HAD_NONE && table_scan_place(hash_bytes(text.data, text.size)) >= former->cursor)
        give_one(former, text, when_ms);
}

bool former_deadlines_give(struct former_deadlines *former, const struct deadlines *now, uint64_t most, deadline_fn fn,
                           void *context)
{
    bool more = true;

    former->fn = fn;
    former->context = context;
    if (!former->has_walked) {
        former->cursor = now != NULL ? deadlines_scan(now, former->cursor, most, meet, former) : 0;
        former->has_walked = former->cursor == 0;
        more = !former->has_walked || deadlines_count(&former->kept) != 0;
    } else {
        former->cursor = deadlines_scan(&former->kept, former->cursor, most, meet_kept, former);
        more = former->cursor != 0;
    }
    assert(more || former->given == former->count);
    return more;
}
