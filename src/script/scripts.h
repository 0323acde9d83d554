/* Scripts and functions: setup by main.c, and the tables of commands. */
#pragma once

#include "server/command/command.h"

extern const struct command_row script_commands[];   /* script_commands.c */
extern const struct command_row function_commands[]; /* function_commands.c */

/* All by the main thread. */
void scripts_setup_options(void); /* after config_setup */
void scripts_setup(void);         /* before the workers start */
void scripts_teardown(void);      /* after the workers have ended */
