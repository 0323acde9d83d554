/* A long string as it was, while bytes are overwritten and appended: former.h for bytes in place of elements.
 *
 *     former_string_init(&former, size)             the moment: the string as it will be given
 *     former_string_keep(&former, bytes, at, size)  before these bytes are written to: what is not given yet is kept
 *     former_string_give(&former, bytes, to)        the next piece
 *
 * Bytes are given from the front. What is kept are pages, so that a byte that changes costs one page, and one that
 * changes again nothing. An append keeps nothing: the size is known.
 *
 * `bytes` are those of the string now, with at least the size of the moment: one that was cut must still have the bytes
 * behind its end, until they are overwritten, which is a change as any other. Between calls the bytes may move. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

enum { FORMER_PAGE_BYTES = 64 << 10, FORMER_STRING_PIECE_BYTES = 4 * FORMER_PAGE_BYTES };

struct former_string {
    size_t size;       /* of the string at the moment */
    size_t given;      /* bytes that were given: whole pages */
    size_t kept_bytes; /* memory that it takes beside the string, about */
    char **pages;      /* by number, each NULL or the page as it was; NULL: none was kept yet */
};

void former_string_init(struct former_string *former, size_t size);
/* Behind it nothing is kept any more, as of an empty string. */
void former_string_fini(struct former_string *former);
void former_string_keep(struct former_string *former, const char *bytes, size_t offset, size_t size);
/* Appends about FORMER_STRING_PIECE_BYTES. False: these were the last ones. */
must_check bool former_string_give(struct former_string *former, const char *bytes, struct buffer *to);
