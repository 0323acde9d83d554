/* Names of keys, whether such keys exist or not, each with a list of those who are interested in it. Every stripe has
 * its own, one for each kind of interest; a registry is guarded by its stripe's lock, or by the gate. */
#pragma once

#include "base/list.h"
#include "store/access.h"

struct registered_key {
    struct list nodes;                 /* of whoever registers; never empty but for a moment */
    struct registered_key *next_ready; /* for waiters.h */
    bool is_ready;                     /* likewise */
    uint32_t loss_count;               /* likewise */
    unsigned db;
    uint64_t hash; /* of the name */
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
/* Made if it is not there: then something is put into its list. */
struct registered_key *key_registry_use(struct key_registry *registry, unsigned db, const struct key *key);
void key_registry_drop(struct key_registry *registry, struct registered_key *key); /* its list has become empty */
size_t key_registry_key_bytes(void); /* what a key takes, without its name */

/* What is registered in one stripe. Made on first use and kept. */
struct stripe_registries {
    struct key_registry watched; /* nodes: see watch.c */
    struct key_registry waited;  /* nodes: struct wait_node, in the order of their coming */
    struct {
        struct wait_need *items;
        uint32_t count, capacity;
    } needs; /* see waiters.h */
};

struct stripe_registries *stripe_registries_use(struct stripe *stripe);
void stripe_registries_destroy(struct stripe *stripe);
