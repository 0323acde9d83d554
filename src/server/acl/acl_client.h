/* Users of clients. A client holds the version of its user that was current when it looked last (`card.user`), and a
 * flag that says whether that user may do everything. Before running input, a worker compares one number. If it has
 * changed, the worker gives its clients the new versions, and closes clients whose user was deleted. In the client's
 * own thread. */
#pragma once

#include "base/compiler.h"
#include "base/info_row.h"
#include "base/slice.h"
#include "server/acl/acl.h"
#include "server/acl/acl_check.h"
#include "server/acl/acl_log.h"
#include "server/core/lifecycle.h"
#include "server/core/worker.h"

#include <stdbool.h>

extern const struct lifecycle acl_client_lifecycle;
extern const struct info_row acl_client_info[];

struct acl_user;
struct client;
struct request;

void acl_client_enter(struct client *client); /* for a new or reset client: the default user */
/* After authentication; takes the reference over. */
void acl_client_become(struct client *client, struct acl_user **user);
struct slice acl_client_name(const struct client *client); /* the name of its user */

/* Applies changes of users to the clients of this worker. */
void acl_refresh_clients(struct worker *worker);
static inline void acl_refresh(struct worker *worker)
{
    if (UNLIKELY(atomic_load_explicit(&acl_generation, memory_order_acquire) != worker->acl_generation))
        acl_refresh_clients(worker);
}

/* Call it after a change: applies it at once to the clients of this client's worker. Other workers' clients follow with
 * their next input, or when their worker passes a rendezvous. */
void acl_client_apply(struct client *client);

/* If the request's client may not run the command: replies NOPERM, counts and logs it, and returns true. */
bool acl_refuses(struct request *request);
/* The same for a queued command that is about to run in EXEC. */
bool acl_refuses_queued(struct request *exec, const struct command *command, const struct slice *args,
                        uint32_t arg_count);
/* The same for a command that a script calls, which `running` runs. Returns NULL, or the error for the script. */
enum { ACL_REFUSAL_SPACE = 512 };
const char *acl_refusal_in_script(const struct request *running, const struct command *command,
                                  const struct slice *args, uint32_t arg_count, char room[ACL_REFUSAL_SPACE]);
/* The same for a blocked command that is about to be served, inside of the gate, possibly by another worker than its
 * client's. `user` is the client's user when it was blocked. The client's worker records the refusal (acl_note_refusal)
 * when the reply arrives. */
bool acl_refuses_served(struct request *request, const struct acl_user *user, struct acl_decision *decision);
bool acl_client_may(const struct client *client, const struct command *command, const struct slice *args,
                    uint32_t arg_count); /* does not count or log */
/* True if the request's command may read keys that it does not name. */
bool acl_may_read_all_keys(const struct request *request);
/* Counts and logs a refusal. The client is shown to run `running`: the command, or EXEC or the script around it. For a
 * wrong password, `object` is the command and `user` the given name. */
void acl_note_refusal(struct client *client, struct acl_decision decision, enum acl_context context,
                      const struct command *running, const struct command *command, const struct slice *args);
void acl_note_wrong_password(const struct request *request, struct slice user);
