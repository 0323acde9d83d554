/* Sets of integers in one sorted array, in which all numbers have the width of the widest. The bytes are those of RDB
 * files: width in bytes u32 (2, 4, 8), count u32, then the numbers, little-endian. The owner of an intset guards it. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct intset; /* the bytes themselves */

struct intset *intset_create(void);
struct intset *intset_copy(const struct intset *set);
void intset_destroy(struct intset **set); /* accepts NULL; leaves NULL */

static inline uint32_t intset_count(const struct intset *set)
{
    uint32_t count;

    memcpy(&count, (const char *)set + 4, sizeof(count));
    return count;
}
int64_t intset_at(const struct intset *set, uint32_t index); /* ascending; index < count */
bool intset_has(const struct intset *set, int64_t number);
/* False: the number was in the set; the set may move. */
must_check bool intset_add(struct intset **set, int64_t number);
/* False: the number was not in the set; the set may move. */
must_check bool intset_remove(struct intset **set, int64_t number);

struct slice intset_as_bytes(const struct intset *set);
must_check bool intset_check(struct slice bytes);     /* true if the bytes are a valid intset and not empty */
struct intset *intset_from_bytes(struct slice bytes); /* copies bytes that intset_check has accepted */
void intset_validate(const struct intset *set);
