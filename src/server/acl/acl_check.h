/* Checks whether a user may run a command with given arguments. Any thread that holds a reference to the user; no
 * lock. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct acl_user;
struct command;

/* In the order of the checks: a later refusal is closer to being allowed. */
enum acl_verdict { ACL_ALLOWED, ACL_DENIED_DATABASE, ACL_DENIED_COMMAND, ACL_DENIED_KEY, ACL_DENIED_CHANNEL };

struct acl_decision {
    enum acl_verdict verdict;
    uint32_t arg_index; /* index of the database, key or channel; 0: the command, or its client's database */
};

/* In database `db`. `args` begin with the command's name. If their number is wrong, only the command is checked. If
 * several selectors refuse, the result is that of the selector that came farthest. */
struct acl_decision acl_check(const struct acl_user *user, unsigned db, const struct command *command,
                              const struct slice *args, uint32_t arg_count);

/* True if one selector gives all of `permissions` (enum acl_permission) for the key, for any command. */
bool acl_may_key(const struct acl_user *user, struct slice key, uint32_t permissions);
/* True if one selector allows the command, and access to all keys: for commands that use keys they do not name. */
bool acl_may_all_keys(const struct acl_user *user, unsigned db, const struct command *command, const struct slice *args,
                      uint32_t arg_count, uint32_t permissions);
/* True if the user may use the channel, or the pattern of channels itself, which then equals one of the user's. */
bool acl_may_channel(const struct acl_user *user, struct slice channel, bool is_pattern);
