/* The count of SRANDMEMBER, HRANDFIELD and ZRANDMEMBER: so many different elements, or, below zero, so many of which
 * some may come again. */
#pragma once

#include "server/core/request.h"

/* The most that the elements asked for by a count below zero may take: how many these are is no matter of how much
 * there is. */
#define RANDOM_REPEATS_BYTES (UINT64_C(512) << 20)

struct random_count {
    int64_t given;
    uint64_t count;
    bool repeats;
};

void random_count_setup(void); /* after config_setup: adds max-rand-count */

must_check bool random_count_parse(struct request *request, uint32_t index, struct random_count *wanted);
/* Within max-rand-count (its largest value is no limit)? Replies if not. Of members of sets, whichever they are. */
must_check bool random_count_check(struct request *request, const struct random_count *wanted);
/* The same where each element is two of the reply, so that there is always a limit. */
must_check bool random_count_check_pairs(struct request *request, const struct random_count *wanted);

/* Replies an array of that length, in wanted->count calls of `reply_one`: nothing but an error if it takes more than
 * RANDOM_REPEATS_BYTES, and no more than the client's output limit lets through, for which it is closed then. */
typedef void random_count_reply_fn(struct request *request, void *context);
void random_count_reply_repeats(struct request *request, const struct random_count *wanted, uint64_t length,
                                random_count_reply_fn *reply_one, void *context);
