/* Sets of members. A set of integers is an intset, a small set a listpack, any other set a table of items. At its
 * limits a set takes the next form, and never goes back. */
#pragma once

#include "base/compiler.h"
#include "base/number.h"
#include "base/random.h"
#include "base/slice.h"
#include "data/value.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct value_ops set_ops;

struct set_limits {
    uint64_t intset_entries;
    uint64_t listpack_entries;
    uint64_t listpack_bytes; /* longest member in a listpack */
};

/* Called with each member. The slice is valid until it returns. */
typedef void (*set_member_fn)(struct slice member, void *context);

/* Creates an empty set in the form that suits its first member and the expected number of members. */
struct value set_create(const struct set_limits *limits, struct slice first, uint64_t count_hint);
uint64_t set_count(struct value set);
bool set_has(struct value set, struct slice member);
/* False: the member was in the set. */
bool set_add(struct value *set, const struct set_limits *limits, struct slice member);
/* The member is not in the set. */
void set_add_new(struct value *set, const struct set_limits *limits, struct slice member);
bool set_remove(struct value *set, struct slice member); /* false: the member was not in the set */

/* --- iterating; the set must not change meanwhile --- */

void set_each(struct value set, set_member_fn fn, void *context);
/* As SSCAN: visits about `want` members from `cursor` on and returns the next cursor, 0: the end. Visits all of a small
 * set. */
uint64_t set_scan(struct value set, uint64_t cursor, uint64_t want, set_member_fn fn, void *context);
/* Returns one random member of a set that is not empty. An integer or a short text is written into `scratch`. */
struct slice set_random(struct value set, struct random *random, char scratch[NUMBER_I64_SPACE]);
/* Visits `count` different random members (at most all), in no particular order. */
void set_random_some(struct value set, struct random *random, uint64_t count, set_member_fn fn, void *context);

void set_validate(struct value set);
