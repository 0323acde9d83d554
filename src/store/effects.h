/* The effects of commands, EXEC or scripts, as commands that repeat their changes. One thread collects them while the
 * stripes are held, and appends them to the journal in one piece. Zeroed memory is an empty collection. */
#pragma once

#include "base/blob.h"
#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* A bulk string that is referenced, not copied. Its place is behind the first `position` bytes. */
struct effect_blob {
    size_t position;
    struct blob *blob; /* a reference of its own */
};

/* Who reads an effect. Ordinary replicas and files read commands that repeat what happened. Peers of an active server
 * read operations: what a command did to one key, as a total function of that key (docs/active-replication.md). Most
 * effects are operations as they are. Others are hidden from peers, and stand beside operations that only they read. */
enum effect_reader {
    EFFECT_AOF = 1 << 0,
    EFFECT_REPLICAS = 1 << 1,
    EFFECT_PEERS = 1 << 2,
    EFFECT_PLAIN = EFFECT_AOF | EFFECT_REPLICAS, /* an operation is hidden from both */
    EFFECT_ALL = EFFECT_PLAIN | EFFECT_PEERS
};

struct effect {
    size_t offset; /* of its RESP bytes in effects.bytes */
    size_t size;   /* size of these bytes, without blobs */
    uint32_t first_blob, blob_count;
    unsigned db;
    uint8_t hidden_from; /* enum effect_reader; never all. Messages are hidden from files: they are not data */
    bool ends_group;     /* the next effect is another command's */
};

struct effects {
    struct buffer bytes;
    struct effect *items;
    uint32_t count, capacity;
    uint32_t ended_count; /* the first effects: of commands that have ended (effects_end_command) */
    struct {
        struct effect_blob *items;
        uint32_t count, capacity;
    } blobs;
};

#define EFFECT_BLOB_BYTES 4096 /* larger bulk strings are referenced if they are in a blob */

void effects_fini(struct effects *effects);
void effects_clear(struct effects *effects);               /* keeps the memory */
void effects_cut(struct effects *effects, uint32_t count); /* removes all effects except the first `count` */
/* Hides all effects except the first `count` from the files or the replicas (enum effect_reader, not both). What
 * replicas do not get is for this server alone: peers do not get it either. */
void effects_hide(struct effects *effects, uint32_t count, unsigned hidden_from);
/* For a server that follows a master: hides all from replicas, and drops messages and operations. */
void effects_keep_local(struct effects *effects);
/* The effects so far and those to come are not of the same command, EXEC or script. */
void effects_end_group(struct effects *effects);
/* The effects behind those of the last call are of a command that has ended. has_operations: peers get only the
 * operations among them. */
void effects_end_command(struct effects *effects, bool has_operations);
void effects_add(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count);
void effects_add_message(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count);
void effects_add_operation(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count);
/* Not for peers: they find out for themselves, such as that a deadline has passed. */
void effects_add_unshared(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count);
/* The same; blob_of returns a blob with exactly the bytes of the argument, or NULL. */
void effects_add_with_blobs(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count,
                            struct blob *(*blob_of)(const void *context, struct slice arg), const void *context);
