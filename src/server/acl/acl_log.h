/* The ACL log: recent refusals, one log for all workers. If the same refusal occurs again within a minute, the count of
 * its entry increases. Any thread. */
#pragma once

#include "base/rows.h"
#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

enum acl_reason {
    ACL_REASON_COMMAND,
    ACL_REASON_KEY,
    ACL_REASON_CHANNEL,
    ACL_REASON_DATABASE,
    ACL_REASON_AUTH,
    ACL_REASON_CERTIFICATE
};
enum acl_context { ACL_CONTEXT_TOPLEVEL, ACL_CONTEXT_MULTI, ACL_CONTEXT_LUA };

struct acl_log_entry {
    uint64_t id;
    uint64_t count;
    enum acl_reason reason;
    enum acl_context context;
    int64_t created_ms, updated_ms; /* wall clock */
    char *object, *user, *client;   /* `client` as CLIENT LIST shows it; zero bytes follow */
    size_t object_size, user_size, client_size;
};

void acl_log_setup(void);    /* main thread, before the workers start */
void acl_log_teardown(void); /* main thread, after the workers have ended */
struct client;
/* The client's worker. */
void acl_log_add(enum acl_reason reason, enum acl_context context, struct slice object, struct slice user,
                 const struct client *client, int64_t now_ms);
/* Returns copies of at most `most` entries, latest first, in an array that acl_log_release frees. */
struct acl_log_entry *acl_log_get(size_t most, size_t *count);
void acl_log_release(struct acl_log_entry *entries, size_t count);
void acl_log_reset(void);
const char *acl_log_apply(const struct option_row *row); /* the apply function of acllog-max-len */

const char *acl_reason_name(enum acl_reason reason);
const char *acl_context_name(enum acl_context context);
