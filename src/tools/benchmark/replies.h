/* replies.h: finds where replies end in the bytes of a connection, RESP2 and RESP3, without making anything of them.
 * It remembers where it is between two pieces of input. Messages that the server pushes are passed over. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { REPLIES_ERROR_BYTES = 200 };

struct replies {
    uint64_t values; /* that are missing for the reply; 0: between replies */
    uint64_t skip;   /* bytes of a text that are still to come, with its line break */
    uint64_t number; /* of the line so far */
    bool in_line, is_negative, is_push, is_error, has_attributes;
    char type; /* of the line */
    unsigned error_size;
    char error[REPLIES_ERROR_BYTES]; /* of the last reply that is an error, ended by a zero byte */
};

enum replies_result { REPLIES_MORE, REPLIES_GOOD, REPLIES_ERROR, REPLIES_BROKEN };

/* Takes bytes off `input` up to the end of the next reply. REPLIES_MORE: they do not hold its end, and all are taken.
 * REPLIES_ERROR: the reply is an error, see `error`. REPLIES_BROKEN: this is no reply of a server. */
must_check enum replies_result replies_next(struct replies *replies, struct slice *input);
