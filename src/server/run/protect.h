/* Who may use what an operator can reserve: DEBUG (enable-debug-command), what loads and unloads modules
 * (enable-module-command), and options that name files (enable-protected-configs): nobody, clients of this machine, or
 * all. In the client's own thread. */
#pragma once

#include <stdbool.h>

struct client;
struct command;

bool protect_is_local(const struct client *client); /* over a unix socket or a loopback address */

/* Why the client may not use a command whose row says `protected`, as an error reply; NULL: it may. */
const char *protect_command_refusal(const struct command *command, const struct client *client);
/* DEBUG SET-DISABLE-DENY-SCRIPTS: scripts may call what is not for scripts, for tests. Any thread. */
void protect_open_scripts(bool open);
bool protect_scripts_are_open(void);
bool protect_allows_configs(const struct client *client);
