/* Deadlines of members: fields of hashes, members of sets and sorted sets.
 *
 * A key with such members has struct subkey_ttls beside its value (entry.h). The value does not know of deadlines, and
 * other keys need no memory for them. A lookup of a key first removes the members that are past their deadlines
 * (access.c), as it deletes an expired key. So commands never see a dead member and need no code for it. Lookups that
 * must not change data (reads while the store keeps expired keys, walks with the gate owned) get the key's view: a copy
 * without the dead members, made on demand and kept until it is outdated. The active expire cycle finds keys that are
 * not looked up, through the heap of store/expiry.h.
 *
 * Removed members are journaled as HDEL, SREM or ZREM, keys that become empty as DEL. Observers see a change with the
 * event of the type, then "del".
 *
 * A member's deadline is removed with the member. Code that removes a member (HDEL), or gives it a new life (HSET),
 * calls change_member_expire(..., EXPIRE_NEVER); commands do it by `edit_forget` (commands/shared/typed.h). Other
 * changes of a key keep the deadlines. They are copied and moved with the value, and dropped when another value
 * replaces it. */
#pragma once

#include "store/access.h"

/* Returns EXPIRE_NEVER if the member has no deadline or does not exist. */
int64_t entry_member_expire_ms(const struct entry *entry, struct slice member);
uint64_t entry_member_deadlines(const struct entry *entry); /* number of members with a deadline */
/* The key must not change meanwhile. */
void entry_each_member_deadline(const struct entry *entry, deadline_fn fn, void *context);

/* The functions for members, if members of this type can have deadlines; otherwise NULL. */
static inline const struct value_member_ops *entry_member_ops(const struct store *store, const struct entry *entry)
{
    return entry->type != TYPE_STRING ? store->types[entry->type].ops->members : NULL;
}

/* Within a change; the key exists and has that member (for EXPIRE_NEVER: or had it). Pointers to the entry are invalid
 * afterwards. */
void change_member_expire(struct change *change, struct slice member, int64_t expire_ms);

/* Removes at once the members that are past their deadline by the access's time, as the next lookup would: for commands
 * that have just set a deadline in the past. */
void access_expire_members(struct access *access, unsigned db, const struct key *key);

/* For tests: asserts the statements above. */
void subkey_ttl_validate(const struct store *store, const struct entry *entry);
