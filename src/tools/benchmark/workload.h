/* workload.h: what a run sends: one command or several, with weights, and what changes in them from request to request.
 *
 * Words may have these in them:
 *
 *     __rand_int__   a number of twelve digits, drawn from the keys; without keys (-r) it stays as it is
 *     __data__       the payload; of a range of sizes each request has another one
 *     __new_int__    the number of a key that was not there, where keys come in (latest), else as __rand_int__
 *     {tag}          in a cluster: a text in braces whose slot is one of the connection's node
 *
 * Keys may be lengthened: the word behind a command's name, and others that begin with "key", if they have a number in
 * them. A key keeps the size that it has.
 *
 * What does not change is encoded once; a request is copied, and its digits are written into the copy. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/random.h"
#include "base/slice.h"
#include "tools/benchmark/distribution.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WORKLOAD_COMMANDS_MOST = 16, WORKLOAD_DIGITS = 12, WORKLOAD_TAG_BYTES = 3 };

struct workload_patch {
    size_t offset;
    enum { PATCH_KEY, PATCH_NEW_KEY, PATCH_TAG } kind;
};

struct workload_text {
    struct buffer bytes;
    struct {
        struct workload_patch *items; /* owned; by offset */
        uint32_t count, capacity;
    } patches;
};

/* Where a word of changing size is put in. */
struct workload_gap {
    size_t offset;
    struct workload_text key; /* before it is lengthened; empty: a payload */
};

struct workload_command {
    uint32_t weight;
    struct workload_text text; /* encoded; of a word whose size changes only what is before and behind it */
    struct {
        struct workload_gap *items; /* owned */
        uint32_t count, capacity;
    } gaps;
    char name[64]; /* for reports of several commands */
};

struct workload {
    struct workload_command commands[WORKLOAD_COMMANDS_MOST];
    uint32_t count, total_weight;
    struct distribution *keys;  /* NULL: numbers stay as they are */
    struct slice payload;       /* as large as the largest one */
    size_t payload_least;       /* sizes are between this and the payload's */
    size_t key_least, key_most; /* 0: keys are as they are written */
};

/* `payload` and `keys` must outlive it. */
void workload_init(struct workload *workload, struct distribution *keys, struct slice payload, size_t payload_least);
void workload_fini(struct workload *workload);
void workload_set_key_sizes(struct workload *workload, size_t least, size_t most); /* before commands are added */
/* False: there are too many commands. The words may be forgotten afterwards. */
must_check bool workload_add(struct workload *workload, uint32_t weight, const struct slice *words, size_t word_count);
void workload_add_inline(struct workload *workload, const char *line); /* as it is, with its line break */
bool workload_is_constant(const struct workload *workload);            /* all requests are the same bytes */

/* Appends a request; returns which command it is. `tag`: of the connection, NULL: no cluster. Any thread. */
uint32_t workload_next(struct workload *workload, struct random *random, const char *tag, struct buffer *out);
