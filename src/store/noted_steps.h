/* Steps of many keys in the order in which they were made, packed one behind the other: what the window (window.h)
 * keeps of them as long as nobody asks for a key. Most are settled before that, and then go a whole chunk at a time,
 * without a look at any of them.
 *
 * {0} is empty. Whoever owns it guards it: a stripe. It keeps copies of all bytes, and takes over what undos own. */
#pragma once

#include "base/slice.h"
#include "merge/place.h"

#include <stdbool.h>
#include <stdint.h>

struct noted_chunk;

struct noted_steps {
    struct noted_chunk *first, *last;
    uint64_t first_stamp; /* the greatest of the first chunk; 0: there is none */
    uint64_t bytes;
    uint32_t keys;    /* steps that were the first of their key, as far as is known */
    uint32_t missing; /* steps behind which their key is missing */
};

struct noted_step {
    struct merge_place place, base; /* base: of the key's last operation before */
    uint64_t previous;              /* the origin's stamp before */
    int64_t wall;
    uint64_t hash;
    uint32_t db;
    bool base_overwrote;
    bool existed, exists;           /* the key, before it and behind it */
    bool is_first;                  /* it counts in `keys` */
    bool owns;                      /* its undo has to be released */
    struct slice name, words, undo; /* undo: an image (undo.h), of a multiple of 8 bytes; empty: none */
};

void noted_steps_add(struct noted_steps *steps, const struct noted_step *step);
/* Takes all out, into the hands of the caller. */
struct noted_steps noted_steps_take(struct noted_steps *steps);
/* Frees the first chunk; `release` gets the steps in it that own something. NULL: others own that now. */
void noted_steps_drop_first(struct noted_steps *steps, void (*release)(const struct noted_step *step, void *context),
                            void *context);
/* Of the first chunk, in order. */
void noted_steps_each_of_first(const struct noted_steps *steps,
                               void (*visit)(const struct noted_step *step, void *context), void *context);
/* Fetches into the cache where the next one goes: first the one, a moment later the other. */
void noted_steps_prefetch(const struct noted_steps *steps);
void noted_steps_prefetch_room(const struct noted_steps *steps);
