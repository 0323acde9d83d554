/* The options of the ACL: aclfile, acl-pubsub-default, acllog-max-len, tls-auth-clients-user. */
#pragma once

#include "base/rows.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TLS_USER_OFF, TLS_USER_COMMON_NAME, TLS_USER_URI };

extern struct option_string option_aclfile;          /* global: option storage; NULL: none; const after start */
extern _Atomic int64_t option_acl_pubsub_default;    /* global: option storage */
extern _Atomic int64_t option_acllog_max_len;        /* global: option storage */
extern _Atomic int64_t option_tls_auth_clients_user; /* global: option storage; TLS_USER_... */

void acl_options_setup(void); /* after config_setup: adds the rows */

/* True if new users and selectors may use all channels. */
static inline bool acl_channels_are_free(void)
{
    return atomic_load_explicit(&option_acl_pubsub_default, memory_order_relaxed) != 0;
}
