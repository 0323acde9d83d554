/* Hashes: fields with values. Small ones are a listpack of field, value, field, value ... in order of arrival; from the
 * limits on they are a table of items, each one allocation with field and value, and stay one. */
#pragma once

#include "base/compiler.h"
#include "base/number.h"
#include "base/random.h"
#include "base/slice.h"
#include "data/value.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct value_ops hash_ops;

struct hash_limits {
    uint64_t listpack_entries; /* pairs a listpack may have */
    uint64_t listpack_bytes;   /* of the longest field or value in it */
};

/* Is called with each pair; the slices are good until it returns. */
typedef void (*hash_pair_fn)(struct slice field, struct slice value, void *context);

struct value hash_create(void);
uint64_t hash_count(struct value hash);

/* *value is good until the hash changes; a number in a listpack is written into `scratch`. */
bool hash_get(struct value hash, struct slice field, char scratch[NUMBER_I64_SPACE], struct slice *value);
bool hash_has(struct value hash, struct slice field);

/* To be asked before pairs with these texts are put: becomes a table if one is too long for a listpack. */
void hash_expect(struct value *hash, const struct hash_limits *limits, const struct slice *texts, uint32_t text_count);
/* True: the field is new. */
bool hash_put(struct value *hash, const struct hash_limits *limits, struct slice field, struct slice value);
bool hash_remove(struct value *hash, struct slice field); /* false: it was not there */

/* --- walking; the hash must not change meanwhile --- */

void hash_each(struct value hash, hash_pair_fn fn, void *context);
/* As SCAN: about `want` pairs from cursor on; returns the next one, 0: the end. A listpack is given whole. */
uint64_t hash_scan(struct value hash, uint64_t cursor, uint64_t want, hash_pair_fn fn, void *context);
void hash_random(struct value hash, struct random *random, hash_pair_fn fn, void *context); /* one pair; not empty */
/* `count` different pairs (at most all), in no order. */
void hash_random_some(struct value hash, struct random *random, uint64_t count, hash_pair_fn fn, void *context);

void hash_validate(struct value hash);
