/* Growable arrays: any struct (or anonymous struct) with `items`, `count` and `capacity`, all zero at first.
 *
 *     struct { struct key *items; uint32_t count, capacity; } keys = {0};
 *
 *     *ARRAY_PUSH(&keys) = key;
 *     ARRAY_FINI(&keys);
 *
 * Growing doubles, so pointers to items are void after it. Not for sizes that a stranger chooses: memory that is short
 * ends the program. The argument is evaluated several times. */
#pragma once

#include "base/mem.h"

#include <stddef.h>

enum { ARRAY_FIRST_CAPACITY = 8 };

/* Room for so many more items. */
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

/* A pointer to one more item, whose content is undefined. */
#define ARRAY_PUSH(array)                  \
    ({                                     \
        ARRAY_RESERVE(array, 1);           \
        &(array)->items[(array)->count++]; \
    })

/* Frees it; all zero again. */
#define ARRAY_FINI(array)                       \
    do {                                        \
        mem_free((array)->items);               \
        (array)->items = NULL;                  \
        (array)->count = (array)->capacity = 0; \
    } while (0)
