/* XADD with IDMP or IDMPAUTO: what a producer sends again is not added again (data/stream_idmp.h). Callers hold the
 * key's stripe and, for changes, have an open edit. */
#pragma once

#include "commands/stream/stream_args.h"

enum { PRODUCER_DIGEST_BYTES = 16 };

/* "IDMP producer iid" or "IDMPAUTO producer" among the words of XADD. */
struct producer_args {
    uint32_t word_arg; /* of the first one of these words; 0: there are none */
    uint32_t word_count;
    struct slice producer;
    struct slice iid; /* IDMPAUTO: the digest, from producer_digest on */
    char digest[PRODUCER_DIGEST_BYTES];
};

/* The word may be one of the two: for a quick look beside other words. */
static inline bool producer_may_begin(struct slice word)
{
    return word.size >= 4 && (word.data[0] | 0x20) == 'i';
}
/* `args` is zeroed at first. *index becomes that of the last word; it stays, and *found is false, if there is something
 * else. False: an error was replied. */
must_check bool producer_parse(struct request *request, struct producer_args *args, uint32_t *index, bool *found);
/* IDMPAUTO: the iid is made of the pairs from this argument on, whatever their order. */
void producer_digest(const struct request *request, struct producer_args *args, uint32_t first_pair);
/* This was added before, and counts still: *id is its entry's. Counts the duplicate. */
must_check bool producer_repeats(const struct request *request, const struct producer_args *args, struct stream *stream,
                                 struct stream_id *id);
/* What a master has refused as a repetition: it counts. stream NULL: there is none. */
void producer_count_repetition(struct stream *stream);
/* The entry is that of the pair from here on. True: the stream has had no pairs so far, and has limits now. */
bool producer_record(const struct producer_args *args, struct stream *stream, struct stream_id id);

/* Each adds one effect: of producer_record, where it is not in that of XADD. */
void effect_producer_limits(struct request *request, const struct stream *stream);
void effect_producer_pair(struct request *request, const struct producer_args *args, struct stream_id id);
/* For peers: the pair, and the stream's limits for one that has none. */
void operation_producer_pair(struct request *request, const struct producer_args *args, const struct stream *stream,
                             struct stream_id id);
