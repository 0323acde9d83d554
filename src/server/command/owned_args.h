/* A command's words, kept beyond the input they were parsed from: of a command that is parked, queued or waits. */
#pragma once

#include "net/resp.h"
#include "server/command/command.h"
#include "store/access.h"

struct owned_args {
    struct slice *args;
    uint32_t arg_count;
    struct resp_blob_arg *blobs; /* each with a reference of its own */
    uint32_t blob_count;
    struct key *keys; /* their names are among the words */
    uint32_t key_count;
    char *bytes;         /* of the words that are not in blobs */
    size_t memory_bytes; /* of all this but the blobs */
};

/* key_count 0: there are none, or owned_args_find_keys looks for them. */
void owned_args_make(struct owned_args *kept, const struct slice *args, uint32_t arg_count,
                     const struct resp_blob_arg *blobs, uint32_t blob_count, const struct key *keys,
                     uint32_t key_count);
void owned_args_find_keys(struct owned_args *kept, const struct command *command);
void owned_args_fini(struct owned_args *kept);
