/* Vectors: for each origin a stamp; an origin that is not in it has 0. Also used as a set of origins or names (any
 * value above 0). A sorted array, as there are few: members, and former starts that are not forgotten yet.
 *
 * All zero is empty. The owner guards it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct merge_vector_item {
    uint64_t id;
    uint64_t stamp;
};

struct merge_vector {
    struct merge_vector_item *items; /* ascending by id */
    uint32_t count, capacity;
};

void merge_vector_fini(struct merge_vector *vector);
void merge_vector_copy(struct merge_vector *to, const struct merge_vector *from); /* overwrites `to`, which is empty */
void merge_vector_set(struct merge_vector *vector, uint64_t id, uint64_t stamp);
void merge_vector_remove(struct merge_vector *vector, uint64_t id);
uint64_t merge_vector_get(const struct merge_vector *vector, uint64_t id);
bool merge_vector_has(const struct merge_vector *vector, uint64_t id);
/* NULL: it is not there. Valid until an origin comes or goes. */
struct merge_vector_item *merge_vector_find(const struct merge_vector *vector, uint64_t id);
/* Sets the larger of the old and the new. Returns whether it changed anything. */
bool merge_vector_raise(struct merge_vector *vector, uint64_t id, uint64_t stamp);
void merge_vector_raise_all(struct merge_vector *vector, const struct merge_vector *other);
bool merge_vector_covers(const struct merge_vector *vector, const struct merge_vector *other); /* all of it >= other */

/* Reads a vector at ids that ascend from call to call: thousands of them take one way along it. */
struct merge_walk {
    const struct merge_vector *vector; /* does not change meanwhile */
    uint32_t at;
};

/* The item, or NULL. */
const struct merge_vector_item *merge_walk_find(struct merge_walk *walk, uint64_t id);
uint64_t merge_walk_get(struct merge_walk *walk, uint64_t id); /* its stamp; 0: it is not there */
