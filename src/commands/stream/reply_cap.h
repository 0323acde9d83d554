/* MAXCOUNT and MAXSIZE of XREAD and XREADGROUP: how much one reply holds at most, over all streams.
 *
 * What counts are entries, and the bytes of their fields and values. The first entry always fits. The reply ends at the
 * first one that does not: also entries of later streams stay out, so what is read keeps its order. */
#pragma once

#include "commands/stream/stream_args.h"

struct reply_cap {
    uint64_t count_left, bytes_left;
    bool has_any;  /* entry */
    bool is_ended; /* there was an entry that did not fit, or none can */
};

static inline void reply_cap_init(struct reply_cap *cap, uint64_t most_count, uint64_t most_bytes)
{
    *cap = (struct reply_cap){.count_left = most_count, .bytes_left = most_bytes};
}

/* The number behind MAXCOUNT or MAXSIZE. NULL: fine; else the error. */
const char *reply_cap_parse(struct slice option, struct slice text, uint64_t *most);

/* Does the iterator's current entry fit? Then it counts. NULL: there is no cap. iter NULL: it has no fields. */
bool reply_cap_takes_slowly(struct reply_cap *cap, const struct stream_iter *iter, uint64_t field_count);
must_check static inline bool reply_cap_takes(struct reply_cap *cap, const struct stream_iter *iter,
                                              uint64_t field_count)
{
    return LIKELY(cap == NULL) || reply_cap_takes_slowly(cap, iter, field_count);
}
static inline bool reply_cap_is_ended(const struct reply_cap *cap)
{
    return cap != NULL && cap->is_ended;
}
