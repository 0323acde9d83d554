/* A store with all types of values, and an access to it: for tests. */
#pragma once

#include "persist/types.h"
#include "store/access.h"

struct keyspace {
    struct store *store; /* owned: store_destroy */
    struct store_counters counters;
    struct access access; /* alone */
};

static inline void keyspace_create(struct keyspace *keys, uint32_t stripes, unsigned databases, int64_t now_ms)
{
    keys->counters = (struct store_counters){0};
    keys->store = store_create(stripes, databases);
    types_setup(keys->store);
    access_init(&keys->access, keys->store, &keys->counters);
    access_begin(&keys->access, now_ms, true);
}
