/* The count of SRANDMEMBER, HRANDFIELD and ZRANDMEMBER: the number of different elements, or, if negative, the number
 * of elements that may repeat. */
#pragma once

#include "server/core/request.h"

/* The limit for the reply to a negative count, whose size does not depend on the size of the key. */
#define RANDOM_REPEATS_BYTES (UINT64_C(512) << 20)

struct random_count {
    int64_t given;
    uint64_t count;
    bool repeats;
};

void random_count_setup(void); /* after config_setup: adds max-rand-count */

must_check bool random_count_parse(struct request *request, uint32_t index, struct random_count *wanted);
/* Checks max-rand-count (its largest value is no limit), and replies an error if it is exceeded. For members of
 * sets. */
must_check bool random_count_check(struct request *request, const struct random_count *wanted);
/* The same if each element is two elements of the reply, so there always is a limit. */
must_check bool random_count_check_pairs(struct request *request, const struct random_count *wanted);

/* Replies an array of `length` elements by wanted->count calls of `reply_one`. Replies only an error if the array
 * exceeds RANDOM_REPEATS_BYTES. Stops at the client's output limit, at which the client is closed. */
typedef void random_count_reply_fn(struct request *request, void *context);
void random_count_reply_repeats(struct request *request, const struct random_count *wanted, uint64_t length,
                                random_count_reply_fn *reply_one, void *context);
