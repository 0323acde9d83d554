/* The groups of a stream as they were, while they go on changing; a part of the stream's former (former_stream.c).
 *
 * Where a group has read, and its consumers, are taken down at the beginning. What is pending is given in the order of
 * ids, from the live group. Whoever changes a record tells first what it was (stream_group.c); those of a consumer or a
 * group that is removed are not looked at, but left to the formers that may need them.
 *
 * In files ids of consumers come behind all that is pending in their group. So the ids are gathered as they go by, 16
 * bytes each.
 *
 * The owner of the stream guards all of it, but who removes a group or consumer that several formers need shares it
 * with them. */
#pragma once

#include "data/former.h"
#include "data/stream.h"

/* What a stream has behind its nodes, in this order (former_element.part). Its numbers are in `second`. */
enum stream_part {
    STREAM_PART_NODE,
    STREAM_PART_IDS,     /* once: as many groups follow as the rest of the stream has (former_rest) */
    STREAM_PART_GROUP,   /* first: its name */
    STREAM_PART_PENDING, /* first: an id, as bytes */
    STREAM_PART_CONSUMERS,
    STREAM_PART_CONSUMER, /* first: its name */
    STREAM_PART_OWNED     /* first: some ids that are pending for that consumer, in order */
};

struct stream_part_group {
    struct stream_id last_id;
    int64_t entries_read;
    uint64_t pending_count; /* so many follow */
};

struct stream_part_pending {
    int64_t delivery_ms;
    uint64_t delivery_count;
};

struct stream_part_consumers {
    uint64_t count;
};

struct stream_part_consumer {
    int64_t seen_ms, active_ms;
    uint64_t pending_count; /* ids */
};

struct former_groups;

/* The rest of the stream gets groups that have names and positions alone. */
struct former_groups *former_groups_create(const struct stream *stream, struct stream *rest);
/* Changes of the groups are not told any more. Unless nobody can change them: then it need not be called. */
void former_groups_detach(struct former_groups *groups);
void former_groups_destroy(struct former_groups **handle); /* detached; needs no lock; leaves NULL */
uint64_t former_groups_bytes(const struct former_groups *groups);
/* Gives parts until there were `*most`, or *bytes of texts, from which it takes them off. False: these were the last
 * ones. */
must_check bool former_groups_give(struct former_groups *groups, uint64_t *most, uint64_t *bytes, former_fn fn,
                                   void *context);

/* --- stream_group.c tells, before a group changes --- */

struct group_former; /* of one group that there was at the moment */

/* The entry was not pending (NULL), or was as this record says. */
void group_formers_keep(struct group_former *formers, struct slice id, const struct stream_pending *pending);
/* The consumer is removed. True: it is theirs from here on, with its tree and the records in there. */
must_check bool group_formers_take_consumer(struct group_former *formers, struct stream_consumer *consumer);
must_check bool group_formers_take_group(struct group_former *formers, struct stream_group *group);
