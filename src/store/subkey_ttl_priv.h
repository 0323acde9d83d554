/* What the files of store/ need of one another for deadlines of members. */
#pragma once

#include "store/subkey_ttl.h"

struct mem_mover;

/* --- subkey_ttl.c --- */
struct subkey_ttls *subkey_ttl_take(struct entry *entry); /* the entry has ENTRY_MEMBERS, and is about to go */
void subkey_ttl_attach(struct change *change, struct subkey_ttls *lifetimes); /* to an entry that has none */
struct subkey_ttls *subkey_ttl_copy(const struct entry *entry);               /* NULL: it has none */
void subkey_ttl_key_changed(struct access *access, struct entry *entry, int64_t expire_ms); /* the key's own deadline */
void subkey_ttl_changed_in_place(struct access *access, const struct entry *entry); /* the value, not the deadlines */
/* The entry goes, or another value takes its place: its record is no longer wanted. */
void subkey_ttl_unlist(const struct change *change, const struct entry *entry);
uint64_t subkey_ttl_due(const struct entry *entry, int64_t now_ms);              /* how many are */
bool subkey_ttl_all_due(const struct access *access, const struct entry *entry); /* nothing of the key is left */
/* The key without what is due (something is); NULL: nothing would be left. Good until the key changes. */
const struct entry *subkey_ttl_view(struct access *access, const struct entry *entry);
/* Takes out up to `most` members that are due, at least one; the key may be gone then. Returns how many. */
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
void entry_free(struct entry *entry);
struct expiry *deadlines_use(struct stripe_db *keys);
/* The entry again, with a word for its deadline that holds expire_ms, or without for EXPIRE_NEVER. */
struct entry *change_expire_word(struct change *change, int64_t expire_ms);

/* The key goes without any command's asking; replicas and the AOF are told to delete it. */
void delete_unasked(struct access *access, unsigned db, const struct key *key, enum event_class event_class,
                    const char *event, enum free_reason reason);

/* --- lazyfree.c --- */
void lazyfree_of_subkey_ttls(struct access *access, struct subkey_ttls *lifetimes, enum free_reason reason);
