/* The registry of users by name. Any thread. A user found here is a version that never changes (acl_user.h). A change
 * of a user publishes a new version and increments `acl_generation`; workers compare it to notice that their clients'
 * users are outdated (acl_client.h). */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct acl_user;

extern _Atomic uint32_t acl_generation;    /* global: atomic: release after a change, acquire by readers */
extern _Atomic bool acl_default_is_nopass; /* global: atomic: relaxed; the default user needs no password */

void acl_setup(void);    /* main thread, after config_setup and command_registry_setup: creates the default user */
void acl_teardown(void); /* main thread, after the workers have ended */

/* The caller releases the reference with acl_user_release. */
struct acl_user *acl_find(struct slice name); /* NULL: none */
struct acl_user *acl_default(void);
/* Returns all users by name, in an array that acl_list_release frees. */
struct acl_user **acl_list(size_t *count);
void acl_list_release(struct acl_user **users, size_t count);

/* Returns a reference to the user of that name, if it is on and has this password; otherwise NULL. */
struct acl_user *acl_authenticate(struct slice name, struct slice password);

/* Creates a new version of a user, or a new user. `edit` changes a copy; it is called again if another thread was
 * faster. False: `edit` returned false, and nothing has changed. */
typedef bool (*acl_edit_fn)(struct acl_user *draft, void *context);
must_check bool acl_edit(struct slice name, acl_edit_fn edit, void *context);
bool acl_delete(struct slice name); /* false: there is no such user. Not for the default user. */
/* Replaces all users by these, which are sealed and have different names. Takes over the users, not the array. Users
 * that are not among them are deleted. There must be a default user. */
void acl_replace_all(struct acl_user **users, size_t count);

/* requirepass: sets the only password of the default user; empty: no password needed. */
void acl_set_default_password(struct slice password);
