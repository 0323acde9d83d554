/* One line of text into words: configuration files, inline commands, the command line client.
 * Words are separated by blanks; a zero byte ends the line. "..." knows \n \r \t \b \a \xHH, any other \c is c; '...'
 * knows only \'. The closing quote is followed by a blank or the end. A quoted word may be empty and hold any byte. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

struct words {
    struct slice *items; /* point into `text`; a zero byte follows each */
    size_t count;
    size_t capacity;
    char *text;
};

/* {0} or an earlier result, which is replaced and its room used again. False: unbalanced quotes; count is 0. */
must_check bool words_split(struct slice line, struct words *words);
void words_fini(struct words *words); /* frees; empty and usable afterwards */

/* Appends "..." with escapes, so that words_split gives the same bytes back. */
void words_quote(struct buffer *buffer, struct slice word);
bool words_needs_quote(struct slice word); /* empty, or with blanks, quotes, or unprintable bytes */
