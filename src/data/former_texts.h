/* Texts that a former keeps (data/former_list.c): a sequence that grows at both ends and is read from the front, one by
 * one. They are in blocks of up to some ten KiB, so no addition moves what is there, and what was read is freed soon.
 *
 * The struct is open, {NULL} is empty; its owner guards it. Functions that allocate or free add to and take from the
 * owner's sum of bytes. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct former_texts {
    struct former_block *last; /* its next one is the first */
};

void former_texts_add_first(struct former_texts *texts, struct slice text, uint64_t *bytes);
void former_texts_add_last(struct former_texts *texts, struct slice text, uint64_t *bytes);
static inline bool former_texts_is_empty(const struct former_texts *texts)
{
    return texts->last == NULL;
}
struct slice former_texts_first(const struct former_texts *texts); /* not of an empty one; valid until it is dropped */
void former_texts_drop_first(struct former_texts *texts, uint64_t *bytes);
void former_texts_clear(struct former_texts *texts, uint64_t *bytes);
