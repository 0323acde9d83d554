/* Restricted commands and options: DEBUG (enable-debug-command), loading and unloading modules (enable-module-command),
 * and options with file names (enable-protected-configs) are for no client, for local clients, or for all. In the
 * client's own thread. */
#pragma once

#include <stdbool.h>

struct client;
struct command;

bool protect_is_local(const struct client *client); /* connected over a unix socket or a loopback address */

/* Returns the error if the client may not use a command whose row has `protected`; NULL: it may. */
const char *protect_command_refusal(const struct command *command, const struct client *client);
/* DEBUG SET-DISABLE-DENY-SCRIPTS, for tests: scripts may call commands with the noscript flag. Any thread. */
void protect_open_scripts(bool open);
bool protect_scripts_are_open(void);
bool protect_allows_configs(const struct client *client);
