/* Internals that the files of the stream share. */
#pragma once

#include "data/stream.h"
#include "data/undo.h"

struct stream_kept;

/* Invariants
 *  1. Nodes do not overlap, a node's key is not above its first entry, and each node has a live entry.
 *  2. length is the sum of the nodes' live counts, node_bytes the sum of their memory; first_id is the first live entry
 *     (0-0: none); no entry is above last_id.
 *  3. An entry that is pending in a group is pending for exactly one of its consumers, in the same record. */
struct stream {
    struct radix *nodes;           /* id -> stream_kept */
    struct radix *groups;          /* name -> stream_group */
    struct former_groups *formers; /* who is told before groups change (former_groups.h); mostly NULL */
    uint64_t length;
    uint64_t entries_added;
    uint64_t node_bytes;
    struct stream_id first_id;
    struct stream_id last_id;
    struct stream_id max_deleted_id;
    struct stream_idmp *idmp; /* stream_idmp.h; NULL: nobody uses it, as for most streams */
};

struct radix *stream_groups_copy(const struct radix *groups);
void stream_groups_destroy(struct radix **groups);
void stream_group_free(void *value); /* with all that it has */
/* An estimate from some groups and from `samples` consumers of each; 0: from all of them. */
uint64_t stream_group_memory_bytes(const struct stream_group *group, uint64_t samples);
uint64_t stream_groups_memory_bytes(const struct radix *groups, uint64_t samples);
void stream_groups_validate(const struct radix *groups);

/* --- stream_idle.c: the index by delivery time follows; id: its bytes in the group's tree --- */
void stream_idle_add_slow(struct stream_group *group, struct slice id, const struct stream_pending *pending);
void stream_idle_remove_slow(struct stream_group *group, struct slice id, const struct stream_pending *pending);
static inline void stream_idle_add(struct stream_group *group, struct slice id, const struct stream_pending *pending)
{
    if (UNLIKELY(group->by_time != NULL))
        stream_idle_add_slow(group, id, pending);
}
/* Before its delivery time or its consumer changes. */
static inline void stream_idle_remove(struct stream_group *group, struct slice id, const struct stream_pending *pending)
{
    if (UNLIKELY(group->by_time != NULL))
        stream_idle_remove_slow(group, id, pending);
}
void stream_idle_drop(struct stream_group *group); /* it is built anew when somebody asks */
void stream_idle_drop_all(struct stream *stream);  /* likewise, in all groups: entries may have come back */
void stream_idle_is_back(struct stream *stream, struct stream_id id); /* an entry came in that may have been there */
void stream_idle_validate(const struct stream_group *group);

/* The node under this key is this one, which it takes over; NULL: there is none any more. The length follows. */
void stream_put_kept(struct stream *stream, struct slice key, struct stream_kept *kept);

/* Steps that take changes back (data/undo.h). */
enum stream_step {
    STREAM_STEP_IDS,      /* first: struct ids of stream_undo.c */
    STREAM_STEP_NODE,     /* first: the key; second: its bytes; a: 0: there was no such node, 2: it was packed */
    STREAM_STEP_APPENDED, /* first: the key of the node whose last entry goes */
    STREAM_STEP_GROUP,    /* first: its name; second: its bytes; a: 0: there was no such group */
    STREAM_STEP_IDMP,     /* a: duration << 32 | maxsize; 0: it had no limits; b: pairs added */
    STREAM_STEP_IDMP_PAIR /* first: the producer; second: the entry's id and the iid; a: 0: there was no such pair; b */
};

/* --- stream_idmp.c; all accept NULL --- */
struct stream_idmp *stream_idmp_copy(const struct stream_idmp *idmp);
void stream_idmp_destroy(struct stream_idmp **handle); /* leaves NULL */
uint64_t stream_idmp_memory_bytes(const struct stream_idmp *idmp);
void stream_idmp_validate(const struct stream_idmp *idmp);
void stream_idmp_undo(struct stream *stream, const struct value_step *step); /* the two steps of its own */

/* --- stream_undo.c: before a watched stream changes --- */
void stream_note_ids(struct value_log *log, const struct stream *stream);
void stream_note_node(struct value_log *log, struct slice key, const struct stream_kept *kept); /* NULL: it is new */
void stream_note_append(struct value_log *log, struct slice key); /* to the last node, which has this key */
/* NULL: there is no such group. */
void stream_note_group(struct value_log *log, struct slice name, const struct stream_group *group);
