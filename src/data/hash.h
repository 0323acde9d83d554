/* Hashes: fields with values. A small hash is a listpack of field, value, field, value ... in order of insertion.
 * Beyond its limits a hash becomes a table of items, each one allocation with field and value, and stays a table. */
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
    uint64_t listpack_entries; /* most pairs in a listpack */
    uint64_t listpack_bytes;   /* longest field or value in a listpack */
};

/* Called with each pair. The slices are valid until it returns. */
typedef void (*hash_pair_fn)(struct slice field, struct slice value, void *context);

struct value hash_create(void);
uint64_t hash_count(struct value hash);

/* *value is valid until the hash changes. A number in a listpack is written into `scratch`. */
bool hash_get(struct value hash, struct slice field, char scratch[NUMBER_I64_SPACE], struct slice *value);
bool hash_has(struct value hash, struct slice field);

/* Call it before putting pairs with these texts: the hash becomes a table if a text is too long for a listpack. */
void hash_expect(struct value *hash, const struct hash_limits *limits, const struct slice *texts, uint32_t text_count);
/* Returns true if the field is new. */
bool hash_put(struct value *hash, const struct hash_limits *limits, struct slice field, struct slice value);
/* To the integer of a field that is there; `sum` is what it becomes. */
void hash_add(struct value *hash, const struct hash_limits *limits, struct slice field, int64_t amount, int64_t sum);
bool hash_remove(struct value *hash, struct slice field); /* false: there was no such field */

/* --- iterating; the hash must not change meanwhile --- */

void hash_each(struct value hash, hash_pair_fn fn, void *context);
/* As HSCAN: visits about `want` pairs from `cursor` on and returns the next cursor, 0: the end. Visits all of a
 * listpack. */
uint64_t hash_scan(struct value hash, uint64_t cursor, uint64_t want, hash_pair_fn fn, void *context);
/* Visits one random pair; the hash is not empty. */
void hash_random(struct value hash, struct random *random, hash_pair_fn fn, void *context);
/* Visits `count` different random pairs (at most all), in no particular order. */
void hash_random_some(struct value hash, struct random *random, uint64_t count, hash_pair_fn fn, void *context);

void hash_validate(struct value hash);
