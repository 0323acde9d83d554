/* What access.c and access_walk.c share: letting go of what is due. */
#pragma once

#include "store/access.h"

enum {
    ACCESS_LOCK_SPINS = 400 /* about 10 us: longer than any plain command holds a stripe */
};

static inline bool access_keeps_expired(const struct access *access)
{
    return atomic_load_explicit(&access->store->keeps_expired, memory_order_relaxed);
}

/* A key past its deadline goes the moment somebody looks. */
void access_expire_now(struct access *access, unsigned db, const struct key *key);
/* Lets go what is due of a key, or all of it. */
void access_let_go(struct access *access, unsigned db, const struct key *key, const struct entry *entry);
/* What is shown of a key that is due, or has members that are, to who must leave it as it is. */
const struct entry *access_shown(struct access *access, const struct entry *entry);
/* After a deletion that is no part of a command; each is one by itself, they are no transaction. */
void access_settle(struct access *access);
