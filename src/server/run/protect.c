#include "server/run/protect.h"

#include "base/panic.h"
#include "server/command/command.h"
#include "server/config/options.h"
#include "server/core/client.h"

#include <stdatomic.h>
#include <string.h>

bool protect_is_local(const struct client *client)
{
    char ip[64];
    int port;

    client_assert_owned(client);
    if ((client->flags & CLIENT_UNIX) != 0)
        return true;
    return conn_peer_ip(&client->conn, ip, sizeof(ip), &port) &&
           (strncmp(ip, "127.", 4) == 0 || strcmp(ip, "::1") == 0 || strncmp(ip, "::ffff:127.", 11) == 0);
}

static bool is_allowed(int64_t from, const struct client *client)
{
    return from == ALLOWED_YES || (from == ALLOWED_LOCAL && protect_is_local(client));
}

#define NOT_ALLOWED(name, option)                                                                                  \
    "ERR " name " command not allowed. If the " option " option is set to \"local\", you can run it from a local " \
    "connection, otherwise you need to set this option in the configuration file, and then restart the server."

/* By the command of the top level. */
static const struct {
    const char *name;
    _Atomic int64_t *from;
    const char *refusal;
} reserved[] = {
    {"debug", &option_enable_debug_command, NOT_ALLOWED("DEBUG", "enable-debug-command")},
    {"module", &option_enable_module_command, NOT_ALLOWED("MODULE", "enable-module-command")},
};

const char *protect_command_refusal(const struct command *command, const struct client *client)
{
    const char *name;

    if ((command->flags & COMMAND_PROTECTED) == 0)
        return NULL;
    client_assert_owned(client);
    name = command->container != NULL ? command->container->row->name : command->row->name;
    for (size_t i = 0; i < countof(reserved); i++) {
        if (strcmp(name, reserved[i].name) == 0)
            return is_allowed(OPTION_GET(*reserved[i].from), client) ? NULL : reserved[i].refusal;
    }
    panic("no option protects the command %s", name);
}

static _Atomic bool scripts_are_open; /* atomic, relaxed */

void protect_open_scripts(bool open)
{
    atomic_store_explicit(&scripts_are_open, open, memory_order_relaxed);
}

bool protect_scripts_are_open(void)
{
    return atomic_load_explicit(&scripts_are_open, memory_order_relaxed);
}

bool protect_allows_configs(const struct client *client)
{
    client_assert_owned(client);
    return is_allowed(OPTION_GET(option_enable_protected_configs), client);
}
