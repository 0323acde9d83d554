/* Looks up keys in their table, for the files of store/ only. These functions check no lock; the caller does. */
#pragma once

#include "store/access.h"

/* memcmp for keys, which are short: compares whole words; the last word overlaps. */
static ALWAYS_INLINE bool lookup_same_bytes(const char *a, const char *b, size_t size)
{
    uint64_t x, y;

    if (LIKELY(size >= 8)) {
        size_t at = 0;

        if (UNLIKELY(size > 64))
            return memcmp(a, b, size) == 0;
        for (; at + 8 < size; at += 8) {
            memcpy(&x, a + at, 8);
            memcpy(&y, b + at, 8);
            if (x != y)
                return false;
        }
        memcpy(&x, a + size - 8, 8);
        memcpy(&y, b + size - 8, 8);
        return x == y;
    }
    if (size >= 4) {
        uint32_t u, v;

        memcpy(&u, a, 4);
        memcpy(&v, b, 4);
        if (u != v)
            return false;
        memcpy(&u, a + size - 4, 4);
        memcpy(&v, b + size - 4, 4);
        return u == v;
    }
    for (size_t i = 0; i < size; i++) {
        if (a[i] != b[i])
            return false;
    }
    return true;
}

static inline bool lookup_match(const void *item, const void *key)
{
    const struct entry *entry = item;
    const struct key *wanted = key;
    struct slice name = entry_key(entry);

    return name.size == wanted->name.size && lookup_same_bytes(name.data, wanted->name.data, name.size);
}

static inline uint64_t *lookup_slot_in_table(const struct table *table, const struct key *key)
{
    return table_find_slot(table, key->hash, lookup_match, key);
}

static inline struct entry *lookup_in_table(const struct table *table, const struct key *key)
{
    const uint64_t *slot = lookup_slot_in_table(table, key);

    return slot != NULL ? table_slot_item(slot) : NULL;
}

/* Returns the entry, expired or not. */
static inline struct entry *lookup_raw(const struct access *access, unsigned db, const struct key *key)
{
    const struct stripe_db *keys = stripe_db(&access->store->stripes[access_stripe_of(access, key)], db);

    return keys != NULL ? lookup_in_table(&keys->keys, key) : NULL;
}

/* True if the key is past its deadline. */
static inline bool lookup_is_expired(const struct access *access, const struct entry *entry)
{
    int64_t expire_ms = entry_expire_ms(entry);

    return expire_ms != EXPIRE_NEVER && access->due_ms > expire_ms;
}

/* True if the key or one of its members is past its deadline. */
static inline bool lookup_is_due(const struct access *access, const struct entry *entry)
{
    if (LIKELY((entry->flags & ENTRY_EXPIRES) == 0))
        return false;
    if (UNLIKELY((entry->flags & ENTRY_MEMBERS) != 0))
        return access->due_ms > entry_subkey_ttls(entry)->due_ms;
    return access->due_ms > (int64_t)entry_word_at(entry, ENTRY_EXPIRES);
}

uint64_t lookup_entry_hash(const void *item); /* hash of an entry's key: the table_hash_fn of the keyspace */
