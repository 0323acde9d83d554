/* A copy of a command's arguments that outlives the input: for commands that are parked, queued or blocked. */
#pragma once

#include "net/resp.h"
#include "server/command/command.h"
#include "store/access.h"

struct owned_args {
    struct slice *args;
    uint32_t arg_count;
    struct resp_blob_arg *blobs; /* each with its own reference */
    uint32_t blob_count;
    struct key *keys; /* their names are among the arguments */
    uint32_t key_count;
    char *bytes;         /* the arguments that are not blobs */
    size_t memory_bytes; /* memory of all this except the blobs */
};

/* key_count 0: there are no keys, or owned_args_find_keys finds them. */
void owned_args_make(struct owned_args *kept, const struct slice *args, uint32_t arg_count,
                     const struct resp_blob_arg *blobs, uint32_t blob_count, const struct key *keys,
                     uint32_t key_count);
void owned_args_find_keys(struct owned_args *kept, const struct command *command);
void owned_args_fini(struct owned_args *kept);
