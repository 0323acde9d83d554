/* Growable arrays: any struct (or anonymous struct) with the members `items`, `count` and `capacity`, all zero at
 * first.
 *
 *     struct { struct key *items; uint32_t count, capacity; } keys = {0};
 *
 *     *ARRAY_PUSH(&keys) = key;
 *     ARRAY_FINI(&keys);
 *
 * An array that is full doubles its capacity, and pointers to its items are invalid then. If memory runs out, the
 * program ends: do not use this for sizes that a client chooses. The macros evaluate their argument several times. */
#pragma once

#include "base/mem.h"

#include <stddef.h>

enum { ARRAY_FIRST_CAPACITY = 8 };

/* Makes room for `more` further items. */
#define ARRAY_RESERVE(array, more)                                                                             \
    do {                                                                                                       \
        if (__builtin_expect((size_t)(array)->count + (size_t)(more) > (size_t)(array)->capacity, 0)) {        \
            const size_t needed_ = (size_t)(array)->count + (size_t)(more);                                    \
            const size_t doubled_ = (size_t)(array)->capacity * 2;                                             \
            const size_t wanted_ = doubled_ > ARRAY_FIRST_CAPACITY ? doubled_ : ARRAY_FIRST_CAPACITY;          \
                                                                                                               \
            (array)->capacity = (__typeof__((array)->capacity))(needed_ > wanted_ ? needed_ : wanted_);        \
            (array)->items = mem_realloc((array)->items, (size_t)(array)->capacity * sizeof(*(array)->items)); \
        }                                                                                                      \
    } while (0)

/* Adds one item and returns a pointer to it. The content of the item is undefined. */
#define ARRAY_PUSH(array)                  \
    ({                                     \
        ARRAY_RESERVE(array, 1);           \
        &(array)->items[(array)->count++]; \
    })

/* Frees the items. All members are zero again. */
#define ARRAY_FINI(array)                       \
    do {                                        \
        mem_free((array)->items);               \
        (array)->items = NULL;                  \
        (array)->count = (array)->capacity = 0; \
    } while (0)
