/* history.h: the lines that were typed, oldest first, and the file that keeps them. One thread uses it. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { HISTORY_LINES_MOST = 1000 };

struct history {
    char **items; /* owned; newest last */
    uint32_t count, capacity;
    char *path; /* owned; NULL: nothing is kept */
};

/* `path` may be NULL. Reads what is there; a file that cannot be read is empty. */
void history_init(struct history *history, const char *path);
void history_fini(struct history *history);
/* Adds a line, unless it is empty or equals the last one, and writes the file, which only its owner can read. */
void history_add(struct history *history, const char *line);

/* The path for a file of the user: what the environment's variable says, or `name` in the home folder. The caller frees
 * it. NULL: there is none, or the variable names the null device. */
char *history_path(const char *variable, const char *name);

/* The command has a password in it, so it is not kept. */
bool history_is_secret(const struct slice *words, size_t word_count);
