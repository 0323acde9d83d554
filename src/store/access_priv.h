/* Internals that access.c and access_walk.c share: removing expired keys and members. */
#pragma once

#include "store/access.h"

enum {
    ACCESS_LOCK_SPINS = 400 /* about 10 us: no plain command holds a stripe for longer */
};

static inline bool access_keeps_expired(const struct access *access)
{
    return atomic_load_explicit(&access->store->keeps_expired, memory_order_relaxed) != 0;
}

static inline bool access_keeps_active(const struct access *access)
{
    return (atomic_load_explicit(&access->store->keeps_expired, memory_order_relaxed) & STORE_KEEPS_ACTIVE) != 0;
}

/* Deletes a key that is past its deadline, when it is looked up. */
void access_expire_now(struct access *access, unsigned db, const struct key *key);
/* The key has expired, or all of its members have. */
bool access_is_gone(const struct access *access, const struct entry *entry);
/* Removes the members of a key that are due, or the whole key. */
void access_let_go(struct access *access, unsigned db, const struct key *key, const struct entry *entry);
/* Returns the entry to show where due keys and members cannot be removed. */
const struct entry *access_shown(struct access *access, const struct entry *entry);
/* Journals a deletion that is not part of a command. Each is recorded alone, not as a transaction. */
void access_settle(struct access *access);
