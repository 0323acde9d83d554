/* Lists as they were. What is still to be given is a row of segments, in order: texts that were kept, then a run of
 * elements that are still in the live list, then kept texts again.
 *
 *     segments         before  run      behind      before  run         behind
 *     what they were   [a b]   c d e    [f]         []      g h         []
 *     the live list            c d e    x y                 g h
 *                              ^at                          ^at
 *
 * An element of ours that goes is kept: the first one of a run at the end of `before`, the last one at the beginning of
 * `behind`, and at any other one the run is split. So drops at either end cost the same however many there were.
 * Elements that came later belong to no run, and neither do those that were given.
 *
 * A run's place counts from a point that stays where it is while elements come and go at the head; `head` is where the
 * live list begins. So only what happens in the midst of the list moves the segments behind it: such commands walk the
 * list anyway.
 *
 * When what was done earlier at the ends is taken back, elements that had gone stand at either end, apart from the
 * segments; those that had come are dropped from the front of the segments, or left out at their back.
 *
 *     what they were   [apart]  the first `left` elements of the segments  [apart]
 *
 * Invariants
 *  1. A run ends at or before the place at which the next one begins, also an empty one.
 *  2. A run that is not empty is in the live list. */
#include "base/array.h"
#include "base/assert.h"
#include "base/mem.h"
#include "data/former.h"
#include "data/former_texts.h"
#include "data/list.h"
#include "data/quicklist_priv.h"

enum {
    WALK_MOST = 64,     /* new elements between two runs are walked over, more of them are jumped */
    JUMP_WORK = 32,     /* a jump walks the nodes: it counts as this many elements */
    DONE_MOST = 64,     /* segments that were given stay in the array, until they are half of it */
    ENDS_KEPT_MOST = 64 /* places of steps for which the memory stays */
};

struct segment {
    struct former_texts before;
    struct former_texts behind;
    int64_t at;
    uint64_t live; /* the length of the run */
};

/* Texts, each in memory of its own; the last one is the outermost. */
struct apart {
    struct slice *items;
    uint32_t first; /* those before it have gone */
    uint32_t count, capacity;
};

struct list_former {
    struct former former;
    struct apart apart[2]; /* by quicklist_end */
    uint64_t left;         /* elements of the segments that are still to be given */
    struct {
        struct segment *items;
        uint32_t count, capacity;
    } segments;
    uint32_t first; /* those before it were given */
    int64_t head;
    uint64_t length; /* of the live list */
    struct {
        size_t *items;
        uint32_t count, capacity;
    } ends; /* of the steps of former_keep, from the newest one */
};

static struct list_former *list_former_of(const struct former *former)
{
    return container_of((struct former *)(uintptr_t)former, struct list_former, former);
}

/* ---------------------------------------------------------------------------------------------------- segments -- */

/* The first segment whose run ends behind the place. */
static uint32_t find_end(const struct list_former *of, int64_t at)
{
    uint32_t low = of->first, high = of->segments.count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct segment *segment = &of->segments.items[middle];

        if (segment->at + (int64_t)segment->live > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The first segment whose run begins there or later. */
static uint32_t find_begin(const struct list_former *of, int64_t at)
{
    uint32_t low = of->first, high = of->segments.count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (of->segments.items[middle].at >= at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* `live` elements of the run stay in this segment, the others are in a new one behind it. */
static void split(struct list_former *of, uint32_t index, uint64_t live)
{
    const uint32_t capacity = of->segments.capacity;
    struct segment *left, *right;

    ARRAY_RESERVE(&of->segments, 1);
    of->former.bytes += (of->segments.capacity - capacity) * sizeof(*left);
    left = &of->segments.items[index];
    right = left + 1;
    assert(live != 0 && live < left->live);
    memmove(right + 1, right, (of->segments.count - index - 1) * sizeof(*right));
    of->segments.count++;
    *right = (struct segment){.behind = left->behind, .at = left->at + (int64_t)live, .live = left->live - live};
    left->behind = (struct former_texts){NULL};
    left->live = live;
}

/* The element there goes: if it is ours, it is kept. */
static void keep_text(struct list_former *of, int64_t at, struct slice text)
{
    const uint32_t index = find_end(of, at);
    struct segment *segment;
    uint64_t before;

    if (index == of->segments.count || of->segments.items[index].at > at)
        return;
    segment = &of->segments.items[index];
    before = (uint64_t)(at - segment->at);
    if (before == 0) {
        former_texts_add_last(&segment->before, text, &of->former.bytes);
        segment->at++;
        segment->live--;
        return;
    }
    if (before + 1 < segment->live) {
        split(of, index, before + 1);
        segment = &of->segments.items[index];
    }
    former_texts_add_first(&segment->behind, text, &of->former.bytes);
    segment->live--;
}

/* ------------------------------------------------------------------------------------------------------ keeping -- */

/* New elements have come before the one that was at the place. */
static void insert(struct list_former *of, int64_t at, uint64_t count)
{
    assert(at >= of->head && at <= of->head + (int64_t)of->length);
    if (at == of->head) {
        of->head -= (int64_t)count;
    } else if (at < of->head + (int64_t)of->length) {
        const uint32_t index = find_end(of, at);

        if (index < of->segments.count && of->segments.items[index].at < at)
            split(of, index, (uint64_t)(at - of->segments.items[index].at));
        for (uint32_t i = find_begin(of, at); i < of->segments.count; i++)
            of->segments.items[i].at += (int64_t)count;
    }
    of->length += count;
}

/* Elements from the place on have gone, and were kept. */
static void close_gap(struct list_former *of, int64_t at, uint64_t count)
{
    assert(at >= of->head && count <= of->length);
    if (at == of->head) {
        of->head += (int64_t)count;
    } else if (at + (int64_t)count < of->head + (int64_t)of->length) {
        for (uint32_t i = find_begin(of, at); i < of->segments.count; i++) {
            struct segment *segment = &of->segments.items[i];

            segment->at = MAX(at, segment->at - (int64_t)count);
        }
    }
    of->length -= count;
}

static void keep_range(struct list_former *of, int64_t at, struct slice texts)
{
    uint64_t count = 0;

    for (; texts.size != 0; count++)
        keep_text(of, at + (int64_t)count, quicklist_step_next_text(&texts));
    close_gap(of, at, count);
}

static void keep_dropped(struct list_former *of, enum quicklist_end end, struct slice text)
{
    const int64_t at = end == QUICKLIST_HEAD ? of->head : of->head + (int64_t)of->length - 1;

    keep_text(of, at, text);
    close_gap(of, at, 1);
}

static void insert_pushed(struct list_former *of, const struct value_step *step)
{
    const uint64_t behind = quicklist_step_behind(step);

    assert(behind <= of->length);
    insert(of, of->head + (int64_t)(quicklist_step_end(step) == QUICKLIST_HEAD ? behind : of->length - behind),
           step->a);
}

/* The change that this step takes back. */
static void keep_step(struct list_former *of, const struct value_step *step)
{
    if (step->kind == VALUE_STEP_PUSHED) {
        insert_pushed(of, step);
        return;
    }
    switch ((enum quicklist_step)step->kind) {
    case QUICKLIST_STEP_DROPPED:
        keep_dropped(of, (enum quicklist_end)step->b, step->first);
        break;
    case QUICKLIST_STEP_INSERTED:
        insert(of, of->head + (int64_t)step->a, 1);
        break;
    case QUICKLIST_STEP_DELETED:
        keep_range(of, of->head + (int64_t)step->a, step->first);
        break;
    case QUICKLIST_STEP_REPLACED:
        keep_text(of, of->head + (int64_t)step->a, step->first);
        break;
    }
}

/* The newest step comes first, but an index is that of the moment: so they are followed from the oldest one on. */
static void keep(struct former *former, struct value value, struct slice steps)
{
    struct list_former *of = list_former_of(former);
    struct slice rest = steps;
    struct value_step step;

    of->ends.count = 0;
    do
        *ARRAY_PUSH(&of->ends) = rest.size;
    while (value_steps_take(&rest, &step));
    for (uint32_t i = of->ends.count - 1; i-- != 0;) {
        rest = slice_make(steps.data, of->ends.items[i]);
        if (value_steps_take(&rest, &step))
            keep_step(of, &step);
    }
    if (of->ends.capacity > ENDS_KEPT_MOST)
        ARRAY_FINI(&of->ends);
    assert(of->length == quicklist_count(list_of(value)));
}

static void forget(struct list_former *of);
static bool is_done(const struct segment *segment);

/* ------------------------------------------------------------------------------------------------- taking back -- */

static void set_apart(struct list_former *of, enum quicklist_end end, struct slice text)
{
    *ARRAY_PUSH(&of->apart[end]) = slice_make(mem_copy(text.data, text.size), text.size);
    of->former.bytes += sizeof(text) + text.size;
    of->former.count++;
}

static void free_apart(struct list_former *of, struct slice text)
{
    of->former.bytes -= sizeof(text) + text.size;
    mem_free((void *)(uintptr_t)text.data);
}

/* The next ones return how many of them they have. */
static uint64_t drop_outermost(struct list_former *of, struct apart *apart, uint64_t most)
{
    uint64_t count = 0;

    for (; count < most && apart->count != apart->first; count++)
        free_apart(of, apart->items[--apart->count]);
    return count;
}

static uint64_t drop_innermost(struct list_former *of, struct apart *apart, uint64_t most)
{
    uint64_t count = 0;

    for (; count < most && apart->count != apart->first; count++)
        free_apart(of, apart->items[apart->first++]);
    return count;
}

/* Of the front of a segment. */
static uint64_t drop_of_segment(struct list_former *of, struct segment *segment, uint64_t most)
{
    if (!former_texts_is_empty(&segment->before)) {
        former_texts_drop_first(&segment->before, &of->former.bytes);
        return 1;
    }
    if (segment->live == 0) {
        former_texts_drop_first(&segment->behind, &of->former.bytes);
        return 1;
    }
    most = MIN(most, segment->live);
    segment->at += (int64_t)most;
    segment->live -= most;
    return most;
}

static uint64_t drop_of_segments(struct list_former *of, enum quicklist_end end, uint64_t most)
{
    const uint64_t count = MIN(most, of->left);

    of->left -= count;
    for (uint64_t rest = end == QUICKLIST_HEAD ? count : 0; rest != 0;) {
        struct segment *segment = &of->segments.items[of->first];

        if (is_done(segment))
            of->first++;
        else
            rest -= drop_of_segment(of, segment, rest);
    }
    return count;
}

static void drop_at(struct list_former *of, enum quicklist_end end, uint64_t count)
{
    of->former.count -= count;
    count -= drop_outermost(of, &of->apart[end], count);
    count -= drop_of_segments(of, end, count);
    count -= drop_innermost(of, &of->apart[end == QUICKLIST_HEAD ? QUICKLIST_TAIL : QUICKLIST_HEAD], count);
    assert(count == 0);
}

/* At the head the last one comes first. */
static void set_range_apart(struct list_former *of, enum quicklist_end end, struct slice texts)
{
    struct {
        struct slice *items;
        uint32_t count, capacity;
    } all = {.items = NULL};

    while (texts.size != 0)
        *ARRAY_PUSH(&all) = quicklist_step_next_text(&texts);
    for (uint32_t i = 0; i < all.count; i++)
        set_apart(of, end, all.items[end == QUICKLIST_HEAD ? all.count - 1 - i : i]);
    ARRAY_FINI(&all);
}

static void take_back(struct former *former, struct value value, const struct value_step *step)
{
    struct list_former *of = list_former_of(former);

    (void)value;
    if (step->kind == VALUE_STEP_PUSHED)
        drop_at(of, quicklist_step_end(step), step->a);
    else if (step->kind == QUICKLIST_STEP_DROPPED)
        set_apart(of, (enum quicklist_end)step->b, step->first);
    else
        set_range_apart(of, step->a == 0 ? QUICKLIST_HEAD : QUICKLIST_TAIL, step->first);
}

/* How many elements it brings back; UINT64_MAX: not at an end of a list of this length. */
static uint64_t count_deleted(const struct value_step *step, uint64_t length)
{
    struct slice texts = step->first;
    uint64_t count = 0;

    if (step->a != 0 && step->a != length)
        return UINT64_MAX;
    for (; texts.size != 0; count++)
        (void)quicklist_step_next_text(&texts);
    return count;
}

static bool takes_back(struct value value, struct slice steps)
{
    uint64_t length = quicklist_count(list_of(value)), deleted;
    struct value_step step;

    while (value_steps_take(&steps, &step)) {
        if (step.kind == VALUE_STEP_PUSHED) {
            length -= step.a;
        } else if (step.kind == QUICKLIST_STEP_DROPPED) {
            length++;
        } else if (step.kind == QUICKLIST_STEP_DELETED) {
            deleted = count_deleted(&step, length);
            if (deleted == UINT64_MAX)
                return false;
            length += deleted;
        } else if (step.kind < VALUE_STEP_OWNERS) {
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------- giving -- */

struct giving {
    struct list_former *of;
    const struct quicklist *list;
    former_fn fn;
    void *context;
    uint64_t left, bytes_left;
    struct quicklist_iter iter;
    int64_t at; /* the place of the iterator's next element */
    bool is_begun;
};

static void spend(struct giving *giving, uint64_t work, uint64_t bytes)
{
    giving->left -= MIN(giving->left, work);
    giving->bytes_left -= MIN(giving->bytes_left, bytes);
}

static bool has_left(const struct giving *giving)
{
    return giving->left != 0 && giving->bytes_left != 0;
}

static void give_text(struct giving *giving, struct slice text)
{
    giving->fn(&(struct former_element){.first = text}, giving->context);
    spend(giving, 1, text.size);
}

static bool has_segments_left(const struct giving *giving)
{
    return has_left(giving) && giving->of->left != 0;
}

static void give_kept(struct giving *giving, struct former_texts *texts)
{
    while (has_segments_left(giving) && !former_texts_is_empty(texts)) {
        give_text(giving, former_texts_first(texts));
        giving->of->left--;
        former_texts_drop_first(texts, &giving->of->former.bytes);
    }
}

static void next_live(struct giving *giving, struct listpack_value *value)
{
    const bool is_there = quicklist_iter_next(&giving->iter, value);

    assert(is_there); /* invariant 2 */
    giving->at++;
}

static void jump(struct giving *giving, int64_t at)
{
    if (giving->is_begun) {
        quicklist_iter_fini(&giving->iter);
        spend(giving, JUMP_WORK, 0);
    }
    quicklist_iter_init(&giving->iter, giving->list, at - giving->of->head, QUICKLIST_FORWARD);
    giving->is_begun = true;
    giving->at = at;
}

static void seek(struct giving *giving, int64_t at)
{
    struct listpack_value value;

    if (!giving->is_begun || at - giving->at > WALK_MOST)
        jump(giving, at);
    while (giving->at < at) {
        next_live(giving, &value);
        spend(giving, 1, 0);
    }
}

static void give_run(struct giving *giving, struct segment *segment)
{
    char scratch[NUMBER_I64_SPACE];
    struct listpack_value value;

    if (segment->live == 0 || !has_segments_left(giving))
        return;
    seek(giving, segment->at);
    do {
        next_live(giving, &value);
        give_text(giving, listpack_value_text(&value, scratch));
        giving->of->left--;
        segment->at++;
        segment->live--;
    } while (segment->live != 0 && has_segments_left(giving));
}

static bool is_done(const struct segment *segment)
{
    return segment->live == 0 && former_texts_is_empty(&segment->before) && former_texts_is_empty(&segment->behind);
}

/* Segments at the front that are done. Their memory goes when there are many. */
static void forget(struct list_former *of)
{
    const uint32_t capacity = of->segments.capacity, left = of->segments.count - of->first;

    if (left == 0) {
        ARRAY_FINI(&of->segments);
    } else if (of->first > MAX(left, (uint32_t)DONE_MOST)) {
        memmove(of->segments.items, of->segments.items + of->first, left * sizeof(struct segment));
        of->segments.items = mem_realloc(of->segments.items, left * sizeof(struct segment));
        of->segments.count = of->segments.capacity = left;
    } else {
        return;
    }
    of->first = 0;
    of->former.bytes -= (capacity - of->segments.capacity) * sizeof(struct segment);
}

/* What is left of them was left out. */
static void clear_segments(struct list_former *of)
{
    for (; of->first < of->segments.count; of->first++) {
        former_texts_clear(&of->segments.items[of->first].before, &of->former.bytes);
        former_texts_clear(&of->segments.items[of->first].behind, &of->former.bytes);
    }
}

static void give_segments(struct giving *giving)
{
    struct list_former *of = giving->of;

    while (of->first < of->segments.count && has_segments_left(giving)) {
        struct segment *segment = &of->segments.items[of->first];

        give_kept(giving, &segment->before);
        give_run(giving, segment);
        give_kept(giving, &segment->behind); /* if the run was not given whole, the piece is full */
        if (is_done(segment))
            of->first++;
    }
    if (giving->is_begun)
        quicklist_iter_fini(&giving->iter);
    if (of->left == 0)
        clear_segments(of);
    forget(of);
}

static void give_apart(struct giving *giving, enum quicklist_end end)
{
    struct apart *apart = &giving->of->apart[end];

    while (has_left(giving) && apart->count != apart->first) {
        give_text(giving, apart->items[end == QUICKLIST_HEAD ? apart->count - 1 : apart->first]);
        if (end == QUICKLIST_HEAD)
            (void)drop_outermost(giving->of, apart, 1);
        else
            (void)drop_innermost(giving->of, apart, 1);
    }
}

static bool give(struct former *former, struct value value, uint64_t most, former_fn fn, void *context)
{
    struct list_former *of = list_former_of(former);
    struct giving giving = {.of = of,
                            .list = list_of(value),
                            .fn = fn,
                            .context = context,
                            .left = most,
                            .bytes_left = FORMER_PIECE_BYTES};

    give_apart(&giving, QUICKLIST_HEAD);
    give_segments(&giving);
    if (of->left == 0)
        give_apart(&giving, QUICKLIST_TAIL);
    return of->left != 0 || of->apart[QUICKLIST_HEAD].count != of->apart[QUICKLIST_HEAD].first ||
           of->apart[QUICKLIST_TAIL].count != of->apart[QUICKLIST_TAIL].first;
}

/* -------------------------------------------------------------------------------------------------------- whole -- */

static struct former *create(struct value value)
{
    struct list_former *of = mem_alloc_zero(sizeof(*of));

    of->former.ops = &quicklist_former;
    of->former.count = of->length = of->left = quicklist_count(list_of(value));
    of->former.bytes = mem_usable(of);
    if (of->length != 0) {
        *ARRAY_PUSH(&of->segments) = (struct segment){.live = of->length};
        of->former.bytes += of->segments.capacity * sizeof(struct segment);
    }
    return &of->former;
}

static void destroy(struct former *former)
{
    struct list_former *of = list_former_of(former);

    clear_segments(of);
    for (enum quicklist_end end = QUICKLIST_HEAD; end <= QUICKLIST_TAIL; end++) {
        (void)drop_outermost(of, &of->apart[end], UINT64_MAX);
        ARRAY_FINI(&of->apart[end]);
    }
    ARRAY_FINI(&of->segments);
    ARRAY_FINI(&of->ends);
    mem_free(of);
}

const struct former_ops quicklist_former = {.create = create,
                                            .keep = keep,
                                            .takes_back = takes_back,
                                            .take_back = take_back,
                                            .give = give,
                                            .destroy = destroy};
