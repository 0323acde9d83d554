#include "data/deadlines.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/mem_move.h"
#include "data/sample.h"

#include <string.h>

static uint64_t deadline_hash(const void *item)
{
    const struct deadline *deadline = item;

    return hash_bytes(deadline->bytes, deadline->size);
}

static bool deadline_matches(const void *item, const void *key)
{
    const struct slice *text = key;

    return slice_equal(deadline_text(item), *text);
}

static uint64_t *find_slot(const struct deadlines *deadlines, struct slice text, uint64_t hash)
{
    return table_find_slot(&deadlines->by_text, hash, deadline_matches, &text);
}

static void deadline_free(void *item, void *context)
{
    (void)context;
    mem_free(item);
}

/* -------------------------------------------------------------------------------------------------------- heap -- */

enum { CAPACITY_LEAST = 4 };

static uint32_t heap_count(const struct deadlines *deadlines)
{
    return (uint32_t)deadlines_count(deadlines);
}

static void heap_put(struct deadlines *deadlines, uint32_t place, struct deadline *deadline)
{
    deadlines->heap[place] = deadline;
    deadline->place = place;
}

/* Restores the heap if the item at `place` may be earlier than its parent. */
static void heap_up(struct deadlines *deadlines, uint32_t place)
{
    struct deadline *deadline = deadlines->heap[place];

    while (place > 0 && deadlines->heap[(place - 1) / 2]->when_ms > deadline->when_ms) {
        heap_put(deadlines, place, deadlines->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    heap_put(deadlines, place, deadline);
}

/* Restores the heap if the item at `place` may be later than its children. */
static void heap_down(struct deadlines *deadlines, uint32_t place, uint32_t count)
{
    struct deadline *deadline = deadlines->heap[place];

    for (;;) {
        uint64_t child = 2 * (uint64_t)place + 1;

        if (child >= count)
            break;
        if (child + 1 < count && deadlines->heap[child + 1]->when_ms < deadlines->heap[child]->when_ms)
            child++;
        if (deadlines->heap[child]->when_ms >= deadline->when_ms)
            break;
        heap_put(deadlines, place, deadlines->heap[child]);
        place = (uint32_t)child;
    }
    heap_put(deadlines, place, deadline);
}

static void heap_resize(struct deadlines *deadlines, uint32_t capacity)
{
    deadlines->capacity = capacity;
    deadlines->heap = mem_realloc(deadlines->heap, capacity * sizeof(deadlines->heap[0]));
}

/* `count`: how many the heap has before the change. */
static void heap_add(struct deadlines *deadlines, uint32_t count, struct deadline *deadline)
{
    assert(count < UINT32_MAX);
    if (count == deadlines->capacity)
        heap_resize(deadlines, MAX((uint32_t)CAPACITY_LEAST, (uint32_t)MIN((uint64_t)count * 3 / 2, UINT32_MAX)));
    heap_put(deadlines, count, deadline);
    heap_up(deadlines, count);
}

static void heap_remove(struct deadlines *deadlines, uint32_t count, uint32_t place)
{
    struct deadline *last = deadlines->heap[count - 1];

    if (place != count - 1) {
        heap_put(deadlines, place, last);
        heap_down(deadlines, place, count - 1);
        heap_up(deadlines, last->place);
    }
    if (deadlines->capacity > CAPACITY_LEAST && count - 1 < deadlines->capacity / 4)
        heap_resize(deadlines, MAX((uint32_t)CAPACITY_LEAST, deadlines->capacity / 2));
}

/* ------------------------------------------------------------------------------------------------------- whole -- */

void deadlines_clear(struct deadlines *deadlines)
{
    table_clear(&deadlines->by_text, deadline_free, NULL);
    mem_free(deadlines->heap);
    *deadlines = (struct deadlines){.capacity = 0};
}

static void copy_one(struct slice text, int64_t when_ms, void *context)
{
    (void)deadlines_set(context, text, when_ms);
}

void deadlines_copy(struct deadlines *to, const struct deadlines *from)
{
    *to = (struct deadlines){.capacity = 0};
    deadlines_each_due(from, DEADLINE_NONE, copy_one, to);
}

static uint64_t deadline_memory(const void *item)
{
    return mem_usable(item);
}

uint64_t deadlines_memory_bytes(const struct deadlines *deadlines, uint64_t samples)
{
    return table_memory_bytes(&deadlines->by_text) + mem_usable(deadlines->heap) +
           sample_memory(&deadlines->by_text, samples, deadline_memory);
}

struct relocation {
    struct deadlines *deadlines;
    struct mem_mover *mover;
};

static void *move_deadline(void *item, void *context)
{
    const struct relocation *relocation = context;
    struct deadline *deadline = mem_move(relocation->mover, item, 0);

    relocation->deadlines->heap[deadline->place] = deadline;
    return deadline;
}

uint64_t deadlines_relocate(struct deadlines *deadlines, uint64_t position, uint64_t most, struct mem_mover *mover)
{
    struct relocation relocation = {deadlines, mover};

    if (position == 0)
        deadlines->heap = mem_move(mover, deadlines->heap, 0);
    return table_relocate(&deadlines->by_text, position, most, mover, move_deadline, &relocation);
}

/* -------------------------------------------------------------------------------------------- reading, changing -- */

int64_t deadlines_find(const struct deadlines *deadlines, struct slice text)
{
    const uint64_t *slot = find_slot(deadlines, text, hash_bytes(text.data, text.size));

    return slot != NULL ? ((const struct deadline *)table_slot_item(slot))->when_ms : DEADLINE_NONE;
}

bool deadlines_set(struct deadlines *deadlines, struct slice text, int64_t when_ms)
{
    uint64_t hash = hash_bytes(text.data, text.size);
    const uint64_t *slot = find_slot(deadlines, text, hash);
    uint32_t count = heap_count(deadlines);
    struct deadline *deadline;

    assert(when_ms != DEADLINE_NONE);
    if (slot != NULL) {
        deadline = table_slot_item(slot);
        deadline->when_ms = when_ms;
        heap_down(deadlines, deadline->place, count);
        heap_up(deadlines, deadline->place);
        return false;
    }
    deadline = mem_alloc(sizeof(*deadline) + text.size);
    deadline->when_ms = when_ms;
    deadline->size = (uint32_t)text.size;
    if (text.size != 0)
        memcpy(deadline->bytes, text.data, text.size);
    heap_add(deadlines, count, deadline);
    table_insert(&deadlines->by_text, hash, deadline, deadline_hash);
    return true;
}

static struct deadline *take(struct deadlines *deadlines, uint64_t hash, uint64_t *slot)
{
    uint32_t count = heap_count(deadlines);
    struct deadline *deadline = table_remove(&deadlines->by_text, hash, slot);

    heap_remove(deadlines, count, deadline->place);
    return deadline;
}

bool deadlines_remove(struct deadlines *deadlines, struct slice text)
{
    uint64_t hash = hash_bytes(text.data, text.size);
    uint64_t *slot = find_slot(deadlines, text, hash);

    if (slot == NULL)
        return false;
    mem_free(take(deadlines, hash, slot));
    return true;
}

struct deadline *deadlines_take_due(struct deadlines *deadlines, int64_t now_ms)
{
    struct slice text;
    uint64_t hash;

    if (deadlines_first_ms(deadlines) >= now_ms)
        return NULL;
    text = deadline_text(deadlines->heap[0]);
    hash = hash_bytes(text.data, text.size);
    return take(deadlines, hash, find_slot(deadlines, text, hash));
}

/* Returns the place after `place` in an order that visits every item before `now_ms` and skips the children of
 * others. */
static uint64_t due_next(const struct deadlines *deadlines, uint64_t place, int64_t now_ms)
{
    uint64_t count = deadlines_count(deadlines);

    if (2 * place + 1 < count && deadlines->heap[place]->when_ms < now_ms)
        return 2 * place + 1;
    while (place != 0 && (place % 2 == 0 || place + 1 == count)) /* a right child, or the last of all: done here */
        place = (place - 1) / 2;
    return place != 0 ? place + 1 : count;
}

void deadlines_each_due(const struct deadlines *deadlines, int64_t now_ms, deadline_fn fn, void *context)
{
    for (uint64_t place = 0; place < deadlines_count(deadlines); place = due_next(deadlines, place, now_ms)) {
        const struct deadline *deadline = deadlines->heap[place];

        if (deadline->when_ms < now_ms)
            fn(deadline_text(deadline), deadline->when_ms, context);
    }
}

static void count_one(struct slice text, int64_t when_ms, void *context)
{
    uint64_t *count = context;

    (void)text;
    (void)when_ms;
    (*count)++;
}

uint64_t deadlines_count_due(const struct deadlines *deadlines, int64_t now_ms)
{
    uint64_t count = 0;

    deadlines_each_due(deadlines, now_ms, count_one, &count);
    return count;
}

struct scan {
    deadline_fn fn;
    void *context;
};

static void scan_one(void *item, void *context)
{
    const struct deadline *deadline = item;
    const struct scan *scan = context;

    scan->fn(deadline_text(deadline), deadline->when_ms, scan->context);
}

uint64_t deadlines_scan(const struct deadlines *deadlines, uint64_t position, uint64_t want, deadline_fn fn,
                        void *context)
{
    struct scan scan = {fn, context};

    return table_scan(&deadlines->by_text, position, want, scan_one, &scan);
}

void deadlines_validate(const struct deadlines *deadlines)
{
    table_validate(&deadlines->by_text, deadline_hash);
    assert(deadlines_count(deadlines) <= deadlines->capacity);
    for (uint32_t i = 0; i < heap_count(deadlines); i++) {
        const struct deadline *deadline = deadlines->heap[i];

        assert(deadline->place == i);
        assert(i == 0 || deadlines->heap[(i - 1) / 2]->when_ms <= deadline->when_ms);
        assert(deadlines_find(deadlines, deadline_text(deadline)) == deadline->when_ms);
    }
}
