/* Which clients may have which keys in their own caches: keys by name, whatever the database.
 *
 * Each stripe has a table of its own, guarded by the stripe's lock (or the gate). A key stands there from the moment a
 * tracking client reads it until it changes: then it is taken out, and whoever took it tells the clients. */
#pragma once

#include "server/core/client_ref.h"
#include "store/access.h"

struct tracked_key {
    uint64_t hash;
    uint32_t count, capacity;
    struct client_ref **readers; /* ascending addresses, a reference each */
    size_t size;
    char name[];
};

void tracking_table_setup(const struct store *store); /* main thread, before the workers start */
void tracking_table_teardown(void);                   /* main thread, after the workers have ended */

/* The key's stripe is held. */
void tracking_table_add(const struct access *access, const struct key *key, struct client_ref *reader);
struct tracked_key *tracking_table_take(const struct access *access, const struct key *key); /* NULL: nobody read it */
struct tracked_key *tracking_table_take_random(uint32_t stripe); /* the stripe is held; NULL: it has none */
/* A moment's answer, without the lock. */
bool tracking_table_has_some(uint32_t stripe);
void tracking_table_clear(void); /* the gate is held */
void tracked_key_destroy(struct tracked_key **tracked);

uint64_t tracking_table_key_count(void);  /* any thread */
uint64_t tracking_table_item_count(void); /* readers of all keys */
