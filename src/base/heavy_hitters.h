/* The names with the largest sums, found in one pass with bounded memory (the space-saving algorithm).
 *
 * There is room for some names. A new name takes the place of the one with the smallest sum, and begins with that sum:
 * so a sum is never too small, and by at most its `error` too large. Any name whose true sum exceeds the total divided
 * by the room is among them. It never locks: its owner guards it, also for reading. */
#pragma once

#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

enum { HEAVY_HITTERS_ROOM_MOST = 1 << 16 };

struct heavy_hitters;

struct heavy_hitter {
    struct slice name; /* valid until the next change */
    uint64_t hash;
    uint64_t sum;
    uint64_t error; /* at most the sum */
};

struct heavy_hitters *heavy_hitters_create(uint32_t room);  /* 1 to HEAVY_HITTERS_ROOM_MOST */
void heavy_hitters_destroy(struct heavy_hitters **hitters); /* NULL is fine; leaves NULL */

/* Adds to the sum of a name, which is copied. `hash`: of the name, the same each time. */
void heavy_hitters_add(struct heavy_hitters *hitters, struct slice name, uint64_t hash, uint64_t amount);

uint32_t heavy_hitters_count(const struct heavy_hitters *hitters);
/* In no order. index < count. */
struct heavy_hitter heavy_hitters_at(const struct heavy_hitters *hitters, uint32_t index);

void heavy_hitters_validate(const struct heavy_hitters *hitters); /* for tests: ends the program if it is broken */
