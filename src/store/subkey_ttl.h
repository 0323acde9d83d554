/* Deadlines of members: fields of hashes, members of sets and sorted sets.
 *
 * A key with such members has struct subkey_ttls beside its value (entry.h); the value knows nothing of it, and other
 * keys pay nothing. Whoever looks a key up first takes out the members that are past their deadlines (access.c), as it
 * deletes an expired key: so no command ever meets a dead member, and none needs to know of them. Who must leave the
 * data as it is (reads while the store keeps what has expired, walks at the gate) is shown the key's view: a copy
 * without the dead ones, made when it is asked for and kept until it no longer holds. What nobody touches is found by
 * the active cycle through the heap of store/expiry.h.
 *
 * Members that go are journaled as HDEL, SREM or ZREM, keys that become empty as DEL; observers see a change with the
 * event of the type, then "del".
 *
 * A member's deadline goes with the member: who removes one (HDEL), or gives it a new life (HSET), says so with
 * change_member_expire(..., EXPIRE_NEVER); commands do it by `edit_forget` (commands/shared/typed.h). A key's other
 * changes leave deadlines alone; these are copied and moved with its value, and go when another takes its place. */
#pragma once

#include "store/access.h"

/* EXPIRE_NEVER: it has none, or is not there. */
int64_t entry_member_expire_ms(const struct entry *entry, struct slice member);
uint64_t entry_member_deadlines(const struct entry *entry); /* how many members have one */
void entry_each_member_deadline(const struct entry *entry, deadline_fn fn, void *context); /* nothing may change */

/* Members of this type can have deadlines; the functions to look at its values. */
static inline const struct value_member_ops *entry_member_ops(const struct store *store, const struct entry *entry)
{
    return entry->type != TYPE_STRING ? store->types[entry->type].ops->members : NULL;
}

/* Within a change; the key exists and has that member (or had it, for EXPIRE_NEVER). Pointers to the entry are void. */
void change_member_expire(struct change *change, struct slice member, int64_t expire_ms);

/* Takes out at once what is past its deadline by the access's time, as the next look at the key would; for a command
 * that has just set a deadline in the past. */
void access_expire_members(struct access *access, unsigned db, const struct key *key);

/* For tests: asserts what is said above. */
void subkey_ttl_validate(const struct store *store, const struct entry *entry);
