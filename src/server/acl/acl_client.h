/* Users of clients: a client holds the version of its user that was published last when it looked (`card.user`), and a
 * flag that says whether that user may do everything. Workers look at one number before they run what came in; when it
 * has changed they give their clients the new versions, and close those whose user is gone. In the client's own
 * thread. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "server/acl/acl.h"
#include "server/acl/acl_check.h"
#include "server/acl/acl_log.h"
#include "server/core/lifecycle.h"
#include "server/core/worker.h"

#include <stdbool.h>

extern const struct lifecycle acl_client_lifecycle;

struct acl_user;
struct client;
struct request;

void acl_client_enter(struct client *client);                          /* it is new, or starts anew: the default user */
void acl_client_become(struct client *client, struct acl_user **user); /* authenticated; the reference is handed over */
struct slice acl_client_name(const struct client *client);             /* its user's */

/* Changes of users reach the clients of this worker. */
void acl_refresh_clients(struct worker *worker);
static inline void acl_refresh(struct worker *worker)
{
    if (UNLIKELY(atomic_load_explicit(&acl_generation, memory_order_acquire) != worker->acl_generation))
        acl_refresh_clients(worker);
}

/* After a change: the users of the asking client and of its worker's other clients are the new ones at once. Clients
 * of other workers follow when they send something, or when their worker passes a rendezvous. */
void acl_client_apply(struct client *client);

/* Replies NOPERM, counts and logs it, if the request's client may not run it; true: it has done so. */
bool acl_refuses(struct request *request);
/* The same for a command that was queued before, and is about to run in EXEC. */
bool acl_refuses_queued(struct request *exec, const struct command *command, const struct slice *args,
                        uint32_t arg_count);
/* The same for one that a script calls: NULL, or the error it is to get. */
const char *acl_refusal_in_script(struct client *client, const struct command *command, const struct slice *args,
                                  uint32_t arg_count);
/* The same for one that waited, and is about to be served by a worker that need not be its client's; `user` is its
 * client's when it began to wait. Its owner notes the refusal (acl_note_refusal) when the reply arrives. */
bool acl_refuses_served(struct request *request, const struct acl_user *user, struct acl_decision *decision);
bool acl_client_may(const struct client *client, const struct command *command, const struct slice *args,
                    uint32_t arg_count); /* neither counted nor logged */
/* Of the request's command: may it read keys that it does not name? */
bool acl_may_read_all_keys(const struct request *request);
/* Counts and logs what was refused. For a password that was wrong: `object` is the command, `user` the name given. */
void acl_note_refusal(struct client *client, struct acl_decision decision, enum acl_context context,
                      const struct command *command, const struct slice *args);
void acl_note_wrong_password(const struct request *request, struct slice user);
