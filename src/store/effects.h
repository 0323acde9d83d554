/* The effects of commands, EXEC or scripts, as commands that repeat their changes. One thread collects them while the
 * stripes are held, and appends them to the journal in one piece. Zeroed memory is an empty collection. */
#pragma once

#include "base/assert.h"
#include "base/blob.h"
#include "base/buffer.h"
#include "base/compiler.h"
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

/* What placing an operation among others needs to know beside its words. */
enum effect_flag {
    EFFECT_OVERWRITES = 1 << 0, /* what is older than it makes no difference to its key */
    EFFECT_EVICTS = 1 << 1,     /* the key was evicted, nobody asked for it */
    EFFECT_FLUSH = 1 << 2,      /* of all keys of its database, or of all databases */
    EFFECT_CORRECTS = 1 << 3,   /* not for peers: the value of a key, behind what came out of its order */
    EFFECT_LIBRARY = 1 << 4,    /* of the library of functions that its second word names */
    EFFECT_LIBRARIES = 1 << 5,  /* a flush of all libraries */
    EFFECT_OWN_KEY = 1 << 6     /* its key is the first of the command's own (changed_begin_own) */
};
enum { EFFECT_KEY_MOST = 7 };

struct effect {
    size_t offset; /* of its RESP bytes in effects.bytes */
    size_t size;   /* size of these bytes, without blobs */
    uint32_t first_blob, blob_count;
    unsigned db;
    uint8_t hidden_from;         /* enum effect_reader; never all. Messages are hidden from files: they are not data */
    bool ends_group;             /* the next effect is another command's */
    uint8_t key_index;           /* of its key among the words; 0: it has none, or nobody asks. See effects_describe */
    uint8_t flags;               /* enum effect_flag */
    uint32_t word_at, word_size; /* the second word in its bytes; 0: there is none, or it is in a blob */
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

/* The number of a line of RESP that we have written, such as "$16"; returns what is behind the line. */
static inline const char *effects_number(const char *at, size_t *number)
{
    size_t sum = (size_t)(at[1] - '0');

    *number = sum;
    if (LIKELY(at[2] == '\r')) /* it has one digit, or two */
        return at + 4;
    sum = sum * 10 + (size_t)(at[2] - '0');
    for (at += 3; UNLIKELY(*at != '\r'); at++)
        sum = sum * 10 + (size_t)(*at - '0');
    *number = sum;
    return at + 2;
}

void effects_fini(struct effects *effects);
void effects_clear(struct effects *effects);               /* keeps the memory */
void effects_cut(struct effects *effects, uint32_t count); /* removes all effects except the first `count` */
/* Hides all effects except the first `count` from the files or the replicas (enum effect_reader, not both). What
 * replicas do not get is for this server alone: peers do not get it either. */
void effects_hide(struct effects *effects, uint32_t count, unsigned hidden_from);
/* For a server that follows a master: hides all from replicas, and drops messages and operations. */
void effects_keep_local(struct effects *effects);
/* The effects so far and those to come are not of the same command, EXEC or script. */
static inline void effects_end_group(struct effects *effects)
{
    if (effects->count != 0)
        effects->items[effects->count - 1].ends_group = true;
}
/* The effects behind those of the last call are of a command that has ended. has_operations: peers get only the
 * operations among them. */
void effects_end_command(struct effects *effects, bool has_operations);
void effects_add(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count);
void effects_add_message(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count);
void effects_add_operation(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count);
/* Describes the effect that was added last, for peers (server/command/operation.h). Others are not described. */
static inline void effects_describe(struct effects *effects, unsigned key_index, unsigned flags)
{
    struct effect *effect = &effects->items[effects->count - 1];

    debug_assert(effects->count != 0 && key_index <= EFFECT_KEY_MOST);
    effect->key_index = (uint8_t)key_index;
    effect->flags = (uint8_t)flags;
}
/* A word of an effect; valid until the effects change. `index` is below their number. */
struct slice effects_word(const struct effects *effects, const struct effect *effect, uint32_t index);
void effects_append_bytes(const struct effects *effects, const struct effect *effect, struct buffer *to); /* all RESP */
void effects_append_words(struct buffer *to, const struct slice *words, size_t count); /* as the RESP of an effect */
/* Not for peers: they find out for themselves, such as that a deadline has passed. */
void effects_add_unshared(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count);
/* A key's value as a command that makes it. `value`: the blob in which a word of it is; NULL: none is in one. */
void effects_add_value(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count,
                       struct blob *value, unsigned hidden_from);
/* The same; blob_of returns a blob with exactly the bytes of the argument, or NULL. */
void effects_add_with_blobs(struct effects *effects, unsigned db, const struct slice *args, size_t arg_count,
                            struct blob *(*blob_of)(const void *context, struct slice arg), const void *context);
