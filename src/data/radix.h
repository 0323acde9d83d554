/* A radix tree: byte strings to pointers, in the order of the bytes. What keys have in common is stored once, so that
 * ids, which share most of their bytes, cost little. Nothing here recurses: keys may be as long as they like (below
 * 4 GiB).
 *
 * It never locks: whoever owns a tree guards it, also for reading. Keys are copied in. Values are the caller's, also on
 * replace and on destroy; NULL is a value like any other. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mem_mover;
struct radix;

struct radix *radix_create(void);
void radix_destroy(struct radix **tree, void (*free_value)(void *value)); /* NULL is fine for both; leaves NULL */

bool radix_find(const struct radix *tree, struct slice key, void **value); /* value may be NULL: only asked */
/* True if the key is new. If not, its value is replaced, and the old one handed out (`old` may be NULL). */
bool radix_set(struct radix *tree, struct slice key, void *value, void **old);
bool radix_remove(struct radix *tree, struct slice key, void **old); /* false: no such key */
uint64_t radix_count(const struct radix *tree);
uint64_t radix_node_count(const struct radix *tree);   /* what the tree is made of */
uint64_t radix_memory_bytes(const struct radix *tree); /* of the tree itself, without the values */

/* Moves the pieces of the tree of which this key is the first one to need them (mem_move); after all keys everything
 * but the handle has been asked for. */
void radix_relocate(struct radix *tree, struct slice key, struct mem_mover *mover);

enum radix_seek {
    RADIX_FIRST, /* the key does not matter */
    RADIX_LAST,
    RADIX_AT_LEAST,
    RADIX_ABOVE,
    RADIX_AT_MOST,
    RADIX_BELOW,
    RADIX_EQUAL
};

enum { RADIX_ITER_ROOM = 32 };

/* A place in the tree. It remembers the key and finds its way from there: so anything may be added and removed between
 * two calls, the current key too. The struct must not be moved or copied. */
struct radix_iter {
    const struct radix *tree;
    char *key; /* `room`, or on the heap for long keys */
    size_t key_size;
    size_t key_capacity;
    void *value; /* as it was when the iterator came here */
    bool valid;
    char room[RADIX_ITER_ROOM];
};

void radix_iter_init(struct radix_iter *iter, const struct radix *tree); /* nowhere yet */
void radix_iter_fini(struct radix_iter *iter);
/* False: there is no such key; the iterator is nowhere then. The key may be the iterator's own. */
bool radix_seek(struct radix_iter *iter, enum radix_seek how, struct slice key);
bool radix_next(struct radix_iter *iter); /* false at the end, and from nowhere */
bool radix_previous(struct radix_iter *iter);

static inline struct slice radix_iter_key(const struct radix_iter *iter) /* until the iterator moves */
{
    return slice_make(iter->key, iter->key_size);
}

void radix_validate(const struct radix *tree); /* asserts every invariant */
