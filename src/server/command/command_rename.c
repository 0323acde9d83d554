#include "server/command/command_rename.h"

#include "server/command/command.h"

static const char *run(const struct slice *words, size_t count)
{
    return count == 3 ? command_rename(words[1], words[2]) : "Bad directive or wrong number of arguments";
}

/* CONFIG REWRITE keeps its lines as they are: a name cannot change while the server runs. */
const struct config_directive command_rename_directive = {.name = "rename-command", .run = run};
