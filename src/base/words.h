/* Splits a line of text into words, for configuration files, inline commands and the command line client. Blanks
 * separate words, and a zero byte ends the line. Within "...", \n \r \t \b \a \xHH are escapes, and \c with any other c
 * is c. Within '...' only \' is an escape. A blank or the end must follow a closing quote. A quoted word may be empty
 * and may contain any byte. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>

struct words {
    struct slice *items; /* they point into `text`; a zero byte follows each */
    size_t count;
    size_t capacity;
    char *text;
};

/* `words` is {0} or an earlier result, whose memory is used again. False: unbalanced quotes; count is 0. */
must_check bool words_split(struct slice line, struct words *words);
void words_fini(struct words *words); /* frees the memory; empty and usable afterwards */

/* Appends "..." with escapes; words_split gives the same bytes back. */
void words_quote(struct buffer *buffer, struct slice word);
bool words_needs_quote(struct slice word); /* the word is empty, or has blanks, quotes or unprintable bytes */
