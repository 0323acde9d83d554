/* Names of keys, existing or not, each with a list of parties that are interested in the key. Every stripe has its own
 * registries, one for each kind of interest. The stripe's lock or the gate guards a registry. */
#pragma once

#include "base/list.h"
#include "store/access.h"

struct registered_key {
    struct list nodes;                 /* nodes of the interested parties; empty only for a moment */
    struct registered_key *next_ready; /* for waiters.h */
    bool is_ready;                     /* for waiters.h */
    uint32_t loss_count;               /* for waiters.h */
    unsigned db;
    uint64_t hash; /* hash of the name */
    size_t size;
    char name[];
};

struct key_registry {
    struct table keys; /* of struct registered_key */
};

static inline struct key registered_key_key(const struct registered_key *key)
{
    return (struct key){{key->name, key->size}, key->hash};
}

struct registered_key *key_registry_find(const struct key_registry *registry, unsigned db, const struct key *key);
/* Creates the key if it is not registered; the caller then adds a node to its list. */
struct registered_key *key_registry_use(struct key_registry *registry, unsigned db, const struct key *key);
/* Call it when its list has become empty. */
void key_registry_drop(struct key_registry *registry, struct registered_key *key);
size_t key_registry_key_bytes(void); /* memory of a key, without its name */

/* The registries of one stripe. Created on first use and kept. */
struct stripe_registries {
    struct key_registry watched; /* nodes: see watch.c */
    struct key_registry waited;  /* nodes: struct wait_node, in order of arrival */
    struct {
        struct wait_need *items;
        uint32_t count, capacity;
    } needs; /* see waiters.h */
};

struct stripe_registries *stripe_registries_use(struct stripe *stripe);
void stripe_registries_destroy(struct stripe *stripe);
