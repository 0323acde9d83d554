/* A radix tree: a map from byte strings to pointers, in the order of the bytes. Common prefixes are stored once, so
 * stream ids, which share most of their bytes, need little memory. There is no recursion: keys may be long (below 4
 * GiB).
 *
 * The tree never locks: its owner guards it, also for reading. Keys are copied. Values stay the caller's, also on
 * replace and on destroy. NULL is a valid value. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mem_mover;
struct radix;

struct radix *radix_create(void);
void radix_destroy(struct radix **tree, void (*free_value)(void *value)); /* accepts NULL for both; leaves NULL */

bool radix_find(const struct radix *tree, struct slice key, void **value); /* `value` may be NULL */
/* Returns true if the key is new. Otherwise replaces its value; *old is the old value (`old` may be NULL). */
bool radix_set(struct radix *tree, struct slice key, void *value, void **old);
bool radix_remove(struct radix *tree, struct slice key, void **old); /* false: no such key */
uint64_t radix_count(const struct radix *tree);
uint64_t radix_node_count(const struct radix *tree);   /* number of nodes */
uint64_t radix_memory_bytes(const struct radix *tree); /* memory of the tree itself, without the values */

/* Defragments the parts of the tree that belong to this key and to no earlier one (mem_move). Calls for all keys cover
 * the whole tree except the handle. */
void radix_relocate(struct radix *tree, struct slice key, struct mem_mover *mover);

enum radix_seek {
    RADIX_FIRST, /* the key is ignored */
    RADIX_LAST,
    RADIX_AT_LEAST,
    RADIX_ABOVE,
    RADIX_AT_MOST,
    RADIX_BELOW,
    RADIX_EQUAL
};

enum { RADIX_ITER_ROOM = 32 };

/* A position in the tree. The iterator stores the key and searches from there, so keys may be added and removed between
 * calls, also the current one. The struct must not be moved or copied. */
struct radix_iter {
    const struct radix *tree;
    char *key; /* `room`, or heap memory for long keys */
    size_t key_size;
    size_t key_capacity;
    void *value; /* the value when the iterator arrived here */
    bool valid;
    char room[RADIX_ITER_ROOM];
};

void radix_iter_init(struct radix_iter *iter, const struct radix *tree); /* at no key */
void radix_iter_fini(struct radix_iter *iter);
/* False: there is no such key, and the iterator is at no key then. The key may be the iterator's own. */
bool radix_seek(struct radix_iter *iter, enum radix_seek how, struct slice key);
bool radix_next(struct radix_iter *iter); /* false at the end, and if the iterator is at no key */
bool radix_previous(struct radix_iter *iter);

static inline struct slice radix_iter_key(const struct radix_iter *iter) /* valid until the iterator moves */
{
    return slice_make(iter->key, iter->key_size);
}

void radix_validate(const struct radix *tree); /* asserts every invariant */
