/* Deadlines of the members of a value: a map from texts to times. The earliest deadline is known at once; any other is
 * found by its text. Setting and removing cost O(log n).
 *
 * The items are in a heap by time and in a table by text. An item knows its index in the heap, so there is exactly one
 * item for each text. All-zero memory is an empty collection and owns nothing. There is no lock: the owner guards
 * it. */
#pragma once

#include "base/slice.h"
#include "base/table.h"

#include <stdbool.h>
#include <stdint.h>

#define DEADLINE_NONE INT64_MAX /* there is no such text, or no deadline at all */

struct deadline {
    int64_t when_ms;
    uint32_t place; /* index in the heap */
    uint32_t size;
    char bytes[];
};

struct deadlines {
    struct table by_text;
    struct deadline **heap; /* heap[0] is the earliest */
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
void deadlines_copy(struct deadlines *to, const struct deadlines *from); /* overwrites the contents of `to` */

int64_t deadlines_find(const struct deadlines *deadlines, struct slice text);
bool deadlines_set(struct deadlines *deadlines, struct slice text, int64_t when_ms); /* true: the text is new */
bool deadlines_remove(struct deadlines *deadlines, struct slice text);               /* false: there is no such text */
/* Removes the earliest deadline if it is before `now_ms`, and returns it; NULL: there is none. The caller frees it
 * (mem_free). */
struct deadline *deadlines_take_due(struct deadlines *deadlines, int64_t now_ms);

/* Returns how many deadlines are before `now_ms`; takes time in proportion to the result. */
uint64_t deadlines_count_due(const struct deadlines *deadlines, int64_t now_ms);
/* Visits these deadlines, or all with DEADLINE_NONE. Nothing may change meanwhile. */
void deadlines_each_due(const struct deadlines *deadlines, int64_t now_ms, deadline_fn fn, void *context);
/* Visits about `want` of all from a position on, like table_scan. */
uint64_t deadlines_scan(const struct deadlines *deadlines, uint64_t position, uint64_t want, deadline_fn fn,
                        void *context);

uint64_t deadlines_memory_bytes(const struct deadlines *deadlines, uint64_t samples); /* without the struct */
/* Like value_ops.relocate. The struct itself does not move. */
struct mem_mover;
uint64_t deadlines_relocate(struct deadlines *deadlines, uint64_t position, uint64_t most, struct mem_mover *mover);
void deadlines_validate(const struct deadlines *deadlines); /* asserts the invariants above */
