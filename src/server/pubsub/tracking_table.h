/* The tracking table: which clients may have which keys in their caches. Keys are by name, for all databases.
 *
 * Each stripe has a table of its own, guarded by the stripe's lock (or the gate). A key is in the table from the moment
 * a tracking client reads it until it changes. Then it is taken out, and the code that took it sends the
 * invalidations. */
#pragma once

#include "base/info_row.h"
#include "server/core/client_ref.h"
#include "store/access.h"

extern const struct info_row tracking_table_info[];

struct tracked_key {
    uint64_t hash;
    uint32_t count, capacity;
    struct client_ref **readers; /* ascending addresses; a reference each */
    size_t size;
    char name[];
};

void tracking_table_setup(const struct store *of); /* main thread, before the workers start */
void tracking_table_teardown(void);                /* main thread, after the workers have ended */

/* The key's stripe is held. */
void tracking_table_add(const struct access *access, const struct key *key, struct client_ref *reader);
/* The key's stripe is held. NULL: no client has read it. */
struct tracked_key *tracking_table_take(const struct access *access, const struct key *key);
struct tracked_key *tracking_table_take_random(uint32_t stripe); /* the stripe is held; NULL: its table is empty */
/* True if the stripe has keys at this moment; without the lock. */
bool tracking_table_has_some(uint32_t stripe);
void tracking_table_clear(void); /* the gate is held */
void tracked_key_destroy(struct tracked_key **tracked);

uint64_t tracking_table_key_count(void);  /* any thread */
uint64_t tracking_table_item_count(void); /* readers of all keys together */
