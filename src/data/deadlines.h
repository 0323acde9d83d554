/* Texts with a time each: when members of a value are to go. The earliest is known at once, any other is found by its
 * text; setting and removing cost O(log n).
 *
 * A heap of items by time and a table of the same items by text; an item knows its place in the heap, so that there is
 * one item a text and no superfluous one. All-zero memory is an empty collection and owns nothing. No lock: who keeps
 * it guards it. */
#pragma once

#include "base/slice.h"
#include "base/table.h"

#include <stdbool.h>
#include <stdint.h>

#define DEADLINE_NONE INT64_MAX /* no such text, or there is none at all */

struct deadline {
    int64_t when_ms;
    uint32_t place; /* in the heap */
    uint32_t size;
    char bytes[];
};

struct deadlines {
    struct table by_text;
    struct deadline **heap; /* [0] is the earliest */
    uint32_t capacity;      /* of the heap */
};

typedef void (*deadline_fn)(struct slice text, int64_t when_ms, void *context);

static inline uint64_t deadlines_count(const struct deadlines *deadlines)
{
    return table_count(&deadlines->by_text);
}

static inline int64_t deadlines_first_ms(const struct deadlines *deadlines)
{
    return deadlines_count(deadlines) != 0 ? deadlines->heap[0]->when_ms : DEADLINE_NONE;
}

static inline struct slice deadline_text(const struct deadline *deadline)
{
    return (struct slice){deadline->bytes, deadline->size};
}

void deadlines_clear(struct deadlines *deadlines);
void deadlines_copy(struct deadlines *to, const struct deadlines *from); /* what was in `to` is overwritten */

int64_t deadlines_find(const struct deadlines *deadlines, struct slice text);
bool deadlines_set(struct deadlines *deadlines, struct slice text, int64_t when_ms); /* true: the text is new */
bool deadlines_remove(struct deadlines *deadlines, struct slice text);               /* false: it was not there */
/* Takes out the earliest if it is before `now_ms`; NULL: none is. It is the caller's, and he frees it (mem_free). */
struct deadline *deadlines_take_due(struct deadlines *deadlines, int64_t now_ms);

/* How many are before `now_ms`; costs no more than there are. */
uint64_t deadlines_count_due(const struct deadlines *deadlines, int64_t now_ms);
/* Those, or all for DEADLINE_NONE; nothing may change meanwhile. */
void deadlines_each_due(const struct deadlines *deadlines, int64_t now_ms, deadline_fn fn, void *context);

uint64_t deadlines_memory_bytes(const struct deadlines *deadlines, uint64_t samples); /* without the struct */
/* As value_ops.relocate; the struct itself stays. */
struct mem_mover;
uint64_t deadlines_relocate(struct deadlines *deadlines, uint64_t position, uint64_t most, struct mem_mover *mover);
void deadlines_validate(const struct deadlines *deadlines); /* asserts what is said above */
