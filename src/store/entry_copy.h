/* Copies of entries that are no keys: what an undo keeps of a key, and what a change leaves for a snapshot. */
#pragma once

#include "store/access.h"

/* So many bytes are the entry itself, with what is inline. */
size_t entry_copy_bytes(const struct entry *entry);
/* `copy` has the bytes of the entry. Afterwards its value and the deadlines of its members are its own; a long string
 * is shared. Whoever calls may read the entry. */
void entry_copy_value(const struct store *store, const struct entry *entry, struct entry *copy);
/* Instead of that, for an entry with ENTRY_MEMBERS: the copy has the key's own deadline alone. */
void entry_copy_key_deadline(const struct entry *entry, struct entry *copy);
/* A copy in memory of its own, for entry_copy_free. */
struct entry *entry_copy_create(const struct store *store, const struct entry *entry);
/* Accepts NULL. Large values are freed after the stripes are released. */
void entry_copy_free(struct access *access, struct entry *copy);
