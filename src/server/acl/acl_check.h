/* Whether a user may run a command with these arguments. Any thread that holds a reference to the user; no lock. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct acl_user;
struct command;

/* In the order in which a selector is asked: what is refused later is closer to being allowed. */
enum acl_verdict { ACL_ALLOWED, ACL_DENIED_COMMAND, ACL_DENIED_KEY, ACL_DENIED_CHANNEL };

struct acl_decision {
    enum acl_verdict verdict;
    uint32_t arg_index; /* of the key or channel; 0: the command */
};

/* `args` begin with the command's name; if there are too few, or too many, it is asked about the command alone. Of
 * several selectors that refuse, the one that came farthest gives the reason. */
struct acl_decision acl_check(const struct acl_user *user, const struct command *command, const struct slice *args,
                              uint32_t arg_count);

/* Access to one key, with all of `permissions` (enum acl_permission) in one selector, whatever the command. */
bool acl_may_key(const struct acl_user *user, struct slice key, uint32_t permissions);
/* A selector allows the command, and access to keys whatever they are called: for those that it finds on its way. */
bool acl_may_all_keys(const struct acl_user *user, const struct command *command, const struct slice *args,
                      uint32_t arg_count, uint32_t permissions);
/* A channel; or the pattern of channels itself, which has to be one of the user's. */
bool acl_may_channel(const struct acl_user *user, struct slice channel, bool is_pattern);
