/* docs.h: what the server's COMMAND DOCS says of its commands, for hints, completion and help. One thread uses it. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "net/resp.h"

#include <stdbool.h>
#include <stdint.h>

struct doc {
    char *name; /* "CONFIG GET" */
    char *summary, *since, *group;
    char *arguments; /* "key [key ...]" */
};

struct docs {
    struct doc *items; /* in the order of names */
    uint32_t count, capacity;
};

/* From the reply to COMMAND DOCS, in RESP2 or RESP3. What makes no sense in it is left out. `docs` is {0} or loaded. */
void docs_load(struct docs *docs, const struct resp_reply *reply);
void docs_fini(struct docs *docs);

/* The command that the words begin with: the longest name; NULL: none. */
const struct doc *docs_find(const struct docs *docs, const struct slice *words, size_t word_count);

/* Appends what may follow the line: the arguments that were not typed yet. */
void docs_hint(const struct docs *docs, struct slice line, struct buffer *out);

/* The nth completion of the line, whatever its case; NULL: there is none. The caller frees it. */
char *docs_complete(const struct docs *docs, const char *line, uint32_t index);

/* Appends the help for "help ..." with these words after it. False: there is none. */
bool docs_help(const struct docs *docs, const struct slice *words, size_t word_count, struct buffer *out);
