#include "server/acl/acl_options.h"

#include "base/gate.h"
#include "server/acl/acl_log.h"
#include "server/config/config.h"

struct option_string option_aclfile;          /* global: option storage */
_Atomic int64_t option_acl_pubsub_default;    /* global: option storage */
_Atomic int64_t option_acllog_max_len;        /* global: option storage */
_Atomic int64_t option_tls_auth_clients_user; /* global: option storage */

static const struct option_enum channel_presets[] = {{"allchannels", 1}, {"resetchannels", 0}, {0}};
static const struct option_enum certificate_fields[] = {{"off", TLS_USER_OFF},
                                                        {"CN", TLS_USER_COMMON_NAME},
                                                        {"URI", TLS_USER_URI},
                                                        {0}};

static const struct option_row acl_rows[] = {
    ROW_STRING("aclfile", &option_aclfile, NULL, OPTION_EMPTY_IS_NULL, "File with the users and their rules."),
    ROW_ENUM("acl-pubsub-default", &option_acl_pubsub_default, 0, channel_presets, OPTION_MUTABLE,
             "Whether a new user may use all channels or none."),
    ROW_INT("acllog-max-len", &option_acllog_max_len, 128, 0, INT64_MAX, OPTION_MUTABLE,
            "Largest number of entries in the ACL log."),
    ROW_ENUM("tls-auth-clients-user", &option_tls_auth_clients_user, TLS_USER_OFF, certificate_fields, OPTION_MUTABLE,
             "Which name in a client's certificate is the name of its user."),
};

void acl_options_setup(void)
{
    gate_assert_main_alone();
    config_add_rows(acl_rows, countof(acl_rows));
    config_on_change("acllog-max-len", acl_log_apply);
}
