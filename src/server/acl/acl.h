/* The users of the server, by name. Any thread. What is found is a version that never changes (acl_user.h): a change
 * puts another one into its place, and raises `acl_generation`, by which workers notice that their clients' users are
 * outdated (acl_client.h). */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct acl_user;

extern _Atomic uint32_t acl_generation;    /* atomic: release after a change, acquire by who looks for one */
extern _Atomic bool acl_default_is_nopass; /* atomic, relaxed: the default user needs no password */

void acl_setup(void); /* after config_setup and command_registry_setup: there is the default user */
void acl_teardown(void);

/* References: acl_user_release. */
struct acl_user *acl_find(struct slice name); /* NULL: none */
struct acl_user *acl_default(void);
/* All, by name: an array of the caller's (acl_list_release). */
struct acl_user **acl_list(size_t *count);
void acl_list_release(struct acl_user **users, size_t count);

/* The user of that name who is on and whose password it is; NULL: none. A reference. */
struct acl_user *acl_authenticate(struct slice name, struct slice password);

/* Makes a new version of a user, or a new user. `edit` gets a copy to change; it is called again if somebody else was
 * faster. False: it returned false, and nothing happened. */
typedef bool (*acl_edit_fn)(struct acl_user *draft, void *context);
must_check bool acl_edit(struct slice name, acl_edit_fn edit, void *context);
bool acl_delete(struct slice name); /* false: there is none. Not the default user. */
/* Takes over these users, sealed and with different names, instead of all there are; the array stays the caller's. Who
 * is not among them is deleted. There must be a default user. */
void acl_replace_all(struct acl_user **users, size_t count);

/* requirepass: the only password of the default user; empty: it needs none. */
void acl_set_default_password(struct slice password);
