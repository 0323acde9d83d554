/* The groups of a stream as they were, while they go on changing; a part of the stream's former (former_stream.c).
 *
 * Groups are given in the order of their names, of each what is pending in the order of ids, then its consumers in the
 * order of their names; all from the live stream, piece by piece. At the moment only the groups are counted. Whoever is
 * about to change a group or a consumer (stream_group.c) tells first what it is: a former keeps that if it was not
 * given yet. What is pending for a consumer or in a group that is removed is not looked at, but left to the formers
 * that may need it.
 *
 * In files ids of consumers come behind all that is pending in their group. So the ids are gathered as they go by, 16
 * bytes each.
 *
 * The owner of the stream guards all of it, but who removes a group or consumer that several formers need shares it
 * with them. A stream that was taken out of the keyspace (former.is_taken) is only read, by several threads at once. */
#pragma once

#include "data/former.h"
#include "data/stream.h"

/* What a stream has behind its nodes, in this order (former_element.part). Its numbers are in `second`. */
enum stream_part {
    STREAM_PART_NODE,
    STREAM_PART_IDS,     /* once, with the number of groups that follow; the ids are those of former_rest */
    STREAM_PART_GROUP,   /* first: its name */
    STREAM_PART_PENDING, /* first: an id, as bytes */
    STREAM_PART_CONSUMERS,
    STREAM_PART_CONSUMER, /* first: its name */
    STREAM_PART_OWNED     /* first: some ids that are pending for that consumer, in order */
};

struct stream_part_ids {
    uint64_t group_count;
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

/* A part of this former of the stream. */
struct former_groups *former_groups_create(struct stream *stream, const struct former *former);
/* Looks at `most` groups, before any part is given. False: it has seen all, or one whose entries_read is not what
 * stream_entries_up_to says of the stream's rest. That group is then in `rest`, without consumers. */
must_check bool former_groups_survey(struct former_groups *groups, struct stream *rest, uint64_t most);
/* Changes of the groups are not told any more. Unless nobody can change them: then it need not be called. */
void former_groups_detach(struct former_groups *groups);
void former_groups_destroy(struct former_groups **handle); /* detached; needs no lock; leaves NULL */
uint64_t former_groups_bytes(const struct former_groups *groups);
/* Gives parts until there were `*most`, or *bytes of texts, from which it takes them off. False: these were the last
 * ones. */
must_check bool former_groups_give(struct former_groups *groups, uint64_t *most, uint64_t *bytes, former_fn fn,
                                   void *context);

/* --- stream_group.c tells, before a change; lists of formers, NULL: nobody needs to know --- */

/* The group is as it is now. NULL: there is no group of that name. */
void former_groups_keep(struct former_groups *formers, struct slice name, struct stream_group *group);

struct group_former; /* of one group that there was at the moment */

/* The consumer is as it is now. NULL: there is no consumer of that name. */
void group_formers_keep_consumer(struct group_former *formers, struct slice name,
                                 const struct stream_consumer *consumer);
/* The entry was not pending (NULL), or was as this record says. */
void group_formers_keep(struct group_former *formers, struct slice id, const struct stream_pending *pending);
/* The consumer is removed; it was kept before. True: it is theirs from here on, with its tree and the records in
 * there. */
must_check bool group_formers_take_consumer(struct group_former *formers, struct stream_consumer *consumer);
must_check bool group_formers_take_group(struct group_former *formers, struct stream_group *group);
