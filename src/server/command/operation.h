/* What an operation (docs/active-replication.md) is, as far as placing it among others depends on it: which word is its
 * key, and whether what is older makes a difference. Any thread; the registry is there. */
#pragma once

#include "server/command/command.h"
#include "store/access.h"
#include "store/effects.h"

#include <stdbool.h>
#include <stdint.h>

/* The command of these words, or its subcommand; NULL: there is none. Also operations that clients cannot call. */
const struct command *operation_find(const struct slice *words, uint32_t word_count);
/* Of a command from operation_find. True: whatever is older makes no difference to its key. */
bool operation_overwrites(const struct command *command, const struct slice *words, uint32_t word_count);
/* Its key among its words; 0: it has none. */
static inline unsigned operation_key_index(const struct command *command)
{
    return command->operation_key;
}

/* What it does to its key, as far as running out of its place goes (the column "in place" of the table). Words that
 * could do more than that touch all. */
enum operation_touch_kind {
    OPERATION_TOUCHES_ALL,
    OPERATION_WRITES,  /* the member */
    OPERATION_REMOVES, /* the member */
    OPERATION_ADDS,    /* less than OPERATION_ADDS_MOST to an integer */
    OPERATION_PUSHES_FIRST,
    OPERATION_PUSHES_LAST /* so many elements */
};
#define OPERATION_ADDS_MOST (INT64_C(1) << 40)

struct operation_touch {
    enum operation_touch_kind kind;
    uint32_t count;
    struct slice member; /* among the words; empty data: the value itself */
};
struct operation_touch operation_touch(const struct slice *words, uint32_t word_count);
/* The same of words as effects_append_words makes them; several commands touch all. */
struct operation_touch operation_touch_of(struct slice stored);
/* The next word; the bytes are our own. */
struct slice operation_next_word(const char **at);
uint64_t operation_next_count(const char **at); /* of the words of the next command */

bool operation_flushes(const struct command *command); /* it is one on all keys of a database, or of all */
bool operation_flushes_words(const struct slice *words, uint32_t word_count);
bool operation_is_of_library(const struct command *command); /* its first argument names it */
bool operation_flushes_libraries(const struct command *command);
bool operation_tells_late_flush(const struct command *command); /* of the database; its argument is the flush's stamp */

uint8_t operation_kind(struct slice full_name); /* for the registry: its command.operation_kind */

/* Describes the effect with these words that was added last (effects_describe). */
void operation_describe(struct effects *effects, const struct slice *words, uint32_t word_count);
/* Likewise; the words are those with which this command was called, with these keys. */
void operation_describe_own(struct effects *effects, const struct command *command, const struct slice *words,
                            uint32_t word_count, const struct key *keys, uint32_t key_count);
