/* The keys of commands: found among their arguments, hashed once. */
#pragma once

#include "base/array.h"
#include "server/command/command.h"
#include "store/access.h"

/* All zero: empty. The names belong to whoever has the arguments. */
struct key_list {
    struct key *items;
    uint32_t count, capacity;
    struct key_positions positions; /* while keys are looked for */
};

/* Appends the keys of this command, in the order of its key specifications; returns how many. */
uint32_t key_list_add(struct key_list *list, const struct command *command, const struct slice *args,
                      uint32_t arg_count);
void key_list_fini(struct key_list *list);
