/* Functions for deadlines of members that the files of store/ share. */
#pragma once

#include "store/subkey_ttl.h"

struct mem_mover;

/* --- subkey_ttl.c --- */
/* Detaches the struct; the entry has ENTRY_MEMBERS and is freed next. */
struct subkey_ttls *subkey_ttl_take(struct entry *entry);
void subkey_ttl_attach(struct change *change, struct subkey_ttls *lifetimes); /* the entry has no struct yet */
struct subkey_ttls *subkey_ttl_copy(const struct entry *entry);               /* NULL: the entry has no such struct */
/* Its view goes. */
void subkey_ttl_drop_view(struct access *access, struct subkey_ttls *lifetimes, enum free_reason reason);
void subkey_ttl_free(struct subkey_ttls *lifetimes); /* it has no view; any thread */
/* The key's own deadline has changed. */
void subkey_ttl_key_changed(struct access *access, struct entry *entry, int64_t expire_ms);
/* The value has changed, the deadlines have not. */
void subkey_ttl_changed_in_place(struct access *access, const struct entry *entry);
/* Removes the entry's record, before the entry is freed or gets another value. */
void subkey_ttl_unlist(const struct change *change, const struct entry *entry);
uint64_t subkey_ttl_due(const struct entry *entry, int64_t now_ms);              /* number of members that are due */
bool subkey_ttl_all_due(const struct access *access, const struct entry *entry); /* true: all members are due */
/* Returns the key without the members that are due (there are some); NULL: no member would be left. Valid until the key
 * changes. */
const struct entry *subkey_ttl_view(struct access *access, const struct entry *entry);
/* Removes up to `most` members that are due, at least one; this may delete the key. Returns how many were removed. */
unsigned subkey_ttl_expire(struct access *access, unsigned db, const struct key *key, unsigned most);
uint64_t subkey_ttl_memory_bytes(const struct store *store, const struct entry *entry, uint64_t samples);
uint64_t subkey_ttl_relocate(struct entry *entry, uint64_t position, uint64_t most, struct mem_mover *mover);

/* --- access.c --- */
static inline struct entry *change_existing(const struct change *change)
{
    assert(change->slot != NULL);
    return table_slot_item(change->slot);
}

struct entry *entry_create(struct slice key, unsigned flags, size_t inline_size, int64_t expire_ms, uint32_t clock);
struct entry *entry_clone(const struct entry *entry); /* its bytes, with what they refer to */
void entry_free(struct entry *entry);
struct expiry *deadlines_use(struct stripe_db *keys);
/* Reallocates the entry with a word for its deadline that holds expire_ms, or without it for EXPIRE_NEVER. */
struct entry *change_expire_word(struct change *change, int64_t expire_ms);

/* Deletes a key without a command; replicas and the append-only file get the deletion. */
void delete_unasked(struct access *access, unsigned db, const struct key *key, enum event_class event_class,
                    const char *event, enum free_reason reason);

/* --- lazyfree.c --- */
void lazyfree_of_subkey_ttls(struct access *access, struct subkey_ttls *lifetimes, enum free_reason reason);
