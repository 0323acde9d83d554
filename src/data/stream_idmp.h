/* What producers have added to a stream, so that an entry which is sent again is not added again: a producer's name and
 * an idempotent id (iid) of its choice lead to the id of the entry. A stream that nobody uses so has none of this.
 *
 * A pair is forgotten when it is older than the stream's duration, or when its producer has more than so many younger
 * ones. Its age is that of its entry, by the milliseconds of its id and of the stream's last id: so replicas and files,
 * which get the ids, forget the same. What is over goes when pairs are added, a few at a time: first those of the same
 * producer, then those of the producer that has added nothing for the longest time. Until then it is there, but does
 * not count: whoever looks up a pair asks stream_idmp_is_over, and files and digests leave it out.
 *
 * The owner of the stream guards all of it. What changes is noted for those who watch the stream (data/undo.h). */
#pragma once

#include "data/stream.h"

enum {
    STREAM_IDMP_DURATION_MOST_S = 86400,
    STREAM_IDMP_MAXSIZE_MOST = 10000,
    STREAM_IDMP_DURATION_S = 100, /* unless somebody chooses another one */
    STREAM_IDMP_MAXSIZE = 100
};

struct stream_idmp_limits {
    uint32_t duration_s; /* 1 ... STREAM_IDMP_DURATION_MOST_S */
    uint32_t maxsize;    /* pairs of a producer: 1 ... STREAM_IDMP_MAXSIZE_MOST */
};

struct stream_idmp_facts {
    struct stream_idmp_limits limits;
    uint64_t producer_count, pair_count; /* with those that are over */
    uint64_t added, duplicates;          /* so far */
};

/* Some stream of this process has, or had, pairs or limits of its own: files may need their version. Any thread. */
bool stream_idmp_is_used(void);

static inline bool stream_idmp_limits_are_valid(struct stream_idmp_limits limits)
{
    return limits.duration_s >= 1 && limits.duration_s <= STREAM_IDMP_DURATION_MOST_S && limits.maxsize >= 1 &&
           limits.maxsize <= STREAM_IDMP_MAXSIZE_MOST;
}

bool stream_idmp_facts(const struct stream *stream, struct stream_idmp_facts *facts); /* false: the stream has none */
/* From here on the stream has limits, these. If it had others, all pairs are forgotten. False: it had these. */
bool stream_idmp_limit(struct stream *stream, struct stream_idmp_limits limits);

/* The pair's entry, which may be deleted. False: there is no such pair. */
must_check bool stream_idmp_find(const struct stream *stream, struct slice producer, struct slice iid,
                                 struct stream_id *id);
/* The pair of this entry is too old to count, at this time or by the stream's last id, if that is later. */
bool stream_idmp_is_over(const struct stream *stream, struct stream_id id, uint64_t now_ms);
/* The pair leads to this entry, whatever it led to before. The stream has limits, and the entry's id is not above its
 * last one. Neither text is empty. */
void stream_idmp_record(struct stream *stream, struct slice producer, struct slice iid, struct stream_id id);
void stream_idmp_count_duplicate(struct stream *stream); /* a statistic, which nobody watches */

/* --- files and digests --- */

/* Producers in the order of their names, with pairs that are not over by the stream's last id; of each these, from the
 * oldest on. */
struct stream_idmp_visitor {
    void (*producer)(struct slice name, uint64_t pair_count, void *context);
    void (*pair)(struct slice iid, struct stream_id id, void *context);
    void *context;
};
/* Returns how many producers these are. visitor NULL: they are only counted. */
uint64_t stream_idmp_visit(const struct stream *stream, const struct stream_idmp_visitor *visitor);
/* A pair from a file, which has the limits already. False: there is one, or the producer has too many. */
must_check bool stream_idmp_load(struct stream *stream, struct slice producer, struct slice iid, struct stream_id id);
void stream_idmp_set_counts(struct stream *stream, uint64_t added, uint64_t duplicates);
