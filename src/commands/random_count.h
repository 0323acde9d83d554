/* The count of SRANDMEMBER, HRANDFIELD and ZRANDMEMBER: so many different elements, or, below zero, so many of which
 * some may come again. */
#pragma once

#include "server/request.h"

/* The most that a count below zero asks for: it is no matter of how much there is, so a bound keeps a reply from taking
 * all memory. */
#define RANDOM_REPEATS_MOST (UINT64_C(1) << 24)

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
