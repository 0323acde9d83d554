/* format.h: replies as text. Nested replies are at most RESP_REPLY_DEPTH_MAX deep, so the functions call themselves. */
#pragma once

#include "base/buffer.h"
#include "net/resp.h"

#include <stdbool.h>
#include <stdio.h>

enum format {
    FORMAT_TEXT, /* for people: types, numbers of elements, indented */
    FORMAT_RAW,
    FORMAT_CSV,
    FORMAT_JSON,
    FORMAT_QUOTED_JSON, /* bytes beyond ASCII as they are shown in FORMAT_TEXT */
};

/* Appends the reply, also what ends it: a line break, or `reply_delimiter` after a raw one. */
void format_reply(struct buffer *out, const struct resp_reply *reply, enum format format, const char *bulk_delimiter,
                  const char *reply_delimiter);
/* Appends a message that the server sent unasked. */
void format_push(struct buffer *out, const struct resp_reply *push, enum format format, const char *bulk_delimiter,
                 const char *reply_delimiter);
/* The raw form without a delimiter at its end: of INFO and other texts, whatever the form of other replies. */
void format_raw(struct buffer *out, const struct resp_reply *reply, const char *bulk_delimiter);
void format_quoted(struct buffer *out, struct slice bytes); /* "..." with escapes, all of it ASCII */

bool format_is_error(const struct resp_reply *reply);

static inline void format_write(const struct buffer *text, FILE *file) /* an empty one is fine */
{
    if (text->size > 0)
        fwrite(text->data, 1, text->size, file);
}
