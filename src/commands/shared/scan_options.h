/* Arguments and replies that SCAN, HSCAN, SSCAN and ZSCAN share. */
#pragma once

#include "server/core/request.h"

enum scan_word { SCAN_TYPE = 1 << 0, SCAN_NOVALUES = 1 << 1, SCAN_NOSCORES = 1 << 2 }; /* not for all of them */

struct scan_options {
    struct slice pattern;   /* data NULL: any */
    struct slice type_name; /* data NULL: any */
    int64_t want;           /* COUNT */
    bool no_values, no_scores;
};

/* Replies an error if it is not a cursor. */
must_check bool scan_parse_cursor(struct request *request, uint32_t index, uint64_t *cursor);
/* "[MATCH pattern] [COUNT count]" and the allowed words, from argument `index` on. False: an error was replied. */
must_check bool scan_parse_options(struct request *request, uint32_t index, unsigned allowed,
                                   struct scan_options *options);
bool scan_wants(const struct scan_options *options, struct slice text); /* true if the text matches the pattern */

/* The reply: the next cursor, which is known only at the end, and an array of the elements. */
struct scan_reply {
    struct output_gap cursor;
    struct resp_deferred elements;
};
struct scan_reply scan_reply_begin(struct request *request);
void scan_reply_end(struct request *request, struct scan_reply reply, uint64_t cursor, uint64_t element_count);
void scan_reply_nothing(struct request *request); /* for a key that does not exist */
