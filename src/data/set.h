/* Sets: members. Integers alone are an intset, small sets a listpack, others a table of items; a set takes the next
 * form at its limits and never goes back. */
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
    uint64_t listpack_bytes; /* of the longest member in one */
};

/* Is called with each member; the slice is good until it returns. */
typedef void (*set_member_fn)(struct slice member, void *context);

/* An empty set in the form that suits its first member, of about so many to come. */
struct value set_create(const struct set_limits *limits, struct slice first, uint64_t count_hint);
uint64_t set_count(struct value set);
bool set_has(struct value set, struct slice member);
bool set_add(struct value *set, const struct set_limits *limits, struct slice member);     /* false: it was there */
void set_add_new(struct value *set, const struct set_limits *limits, struct slice member); /* it is not there */
bool set_remove(struct value *set, struct slice member);                                   /* false: it was not there */

/* --- walking; the set must not change meanwhile --- */

void set_each(struct value set, set_member_fn fn, void *context);
/* As SCAN: about `want` members from cursor on; returns the next one, 0: the end. Small sets are given whole. */
uint64_t set_scan(struct value set, uint64_t cursor, uint64_t want, set_member_fn fn, void *context);
/* One member; not empty. An integer is written into `scratch`. */
struct slice set_random(struct value set, struct random *random, char scratch[NUMBER_I64_SPACE]);
/* `count` different members (at most all), in no order. */
void set_random_some(struct value set, struct random *random, uint64_t count, set_member_fn fn, void *context);

void set_validate(struct value set);
