/* A list of the keys of commands, found among their arguments and hashed once. */
#pragma once

#include "base/array.h"
#include "server/command/command.h"
#include "store/access.h"

/* All-zero memory is an empty list. The names point into the arguments. */
struct key_list {
    struct key *items;
    uint32_t count, capacity;
    struct key_positions positions; /* used while keys are searched */
};

/* Appends the keys of this command, in the order of its key specifications. Returns their number. */
uint32_t key_list_add(struct key_list *list, const struct command *command, const struct slice *args,
                      uint32_t arg_count);
void key_list_fini(struct key_list *list);
