/* A stream: entries of field-value pairs under ascending ids, and the consumer groups that read them.
 *
 * Entries lie in nodes, listpacks of some hundred entries, in the layout of RDB files, so that they are saved and
 * loaded as they are; a radix tree finds a node by the 16 bytes of its id (stream_node.h has the layout). A deleted
 * entry is only marked; its node goes with its last live entry. Nodes behind the last two are packed, if it pays, until
 * they are changed (stream_kept.h).
 *
 * Not shared: its owner (a stripe) guards it. What a client sends is checked by the caller where a comment says so. */
#pragma once

#include "base/compiler.h"
#include "base/number.h"
#include "base/slice.h"
#include "data/listpack.h"
#include "data/radix.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- ids --- */

enum { STREAM_ID_BYTES = 16 };

struct stream_id {
    uint64_t ms;
    uint64_t seq;
};

#define STREAM_ID_LEAST ((struct stream_id){0, 0})
#define STREAM_ID_MOST ((struct stream_id){UINT64_MAX, UINT64_MAX})

static inline int stream_id_compare(struct stream_id a, struct stream_id b)
{
    if (a.ms != b.ms)
        return a.ms < b.ms ? -1 : 1;
    return (a.seq > b.seq) - (a.seq < b.seq);
}

static inline bool stream_id_is_zero(struct stream_id id)
{
    return id.ms == 0 && id.seq == 0;
}

must_check bool stream_id_increment(struct stream_id *id); /* false, and unchanged: it is the largest */
must_check bool stream_id_decrement(struct stream_id *id); /* false, and unchanged: it is 0-0 */
/* As a key of a tree, and in files: big-endian. */
struct slice stream_id_encode(struct stream_id id, char room[STREAM_ID_BYTES]);
struct stream_id stream_id_decode(const char bytes[STREAM_ID_BYTES]);

/* --- the stream --- */

struct mem_mover;
struct stream;

struct stream_limits { /* of a node; 0: none */
    uint64_t node_bytes;
    uint64_t node_entries;
};

struct stream *stream_create(void);
struct stream *stream_copy(const struct stream *stream); /* with groups, consumers and what is pending */
void stream_destroy(struct stream **stream);             /* NULL is fine; leaves NULL */

uint64_t stream_length(const struct stream *stream);
struct stream_id stream_first_id(const struct stream *stream); /* of the live entries; 0-0: there are none */
struct stream_id stream_last_id(const struct stream *stream);  /* the last one given out, deleted or not */
struct stream_id stream_top_id(const struct stream *stream);   /* of the last live entry; 0-0: there is none */
struct stream_id stream_front_id(const struct stream *stream); /* of the first one in a node, live or deleted */
struct stream_id stream_tail_id(const struct stream *stream);  /* of the last one in a node */
struct stream_id stream_max_deleted_id(const struct stream *stream);
uint64_t stream_entries_added(const struct stream *stream);
uint64_t stream_node_count(const struct stream *stream);
uint64_t stream_tree_node_count(const struct stream *stream); /* of the tree that finds them, with its root */
uint64_t stream_memory_bytes(const struct stream *stream);

/* Adds an entry; the id must be above the last one. `pairs`: field, value, field, ... False, and nothing happened: it
 * is too large for a node. */
must_check bool stream_append(struct stream *stream, struct stream_id id, const struct slice *pairs, size_t field_count,
                              const struct stream_limits *limits);
bool stream_delete(struct stream *stream, struct stream_id id); /* false: no such entry */
bool stream_has(const struct stream *stream, struct stream_id id);

struct stream_trim {
    enum { STREAM_TRIM_LENGTH, STREAM_TRIM_ID } by;
    bool whole_nodes;       /* "~": only what costs nothing to remove */
    uint64_t length;        /* so many entries stay */
    struct stream_id id;    /* entries from here on stay */
    uint64_t removal_limit; /* 0: none */
};
uint64_t stream_trim(struct stream *stream, const struct stream_trim *trim); /* returns how many entries went */

/* The caller has seen to it that last_id is not below the tail's or max_deleted_id, nor entries_added below the
 * length. */
void stream_set_ids(struct stream *stream, struct stream_id last_id, struct stream_id max_deleted_id,
                    uint64_t entries_added);

/* As value_ops relocate says. What groups hold stays where it is: little of it lives for long. */
uint64_t stream_relocate(struct stream **stream, uint64_t position, uint64_t most, struct mem_mover *mover);

void stream_validate(const struct stream *stream); /* asserts every invariant */

/* --- reading --- */

/* Entries from start to end, both included; do not change the stream, nor move the struct, meanwhile. */
struct stream_iter {
    const struct stream *stream;
    struct stream_id start, end;
    bool backwards;
    struct radix_iter nodes;
    const struct listpack *node; /* NULL: not begun, or done */
    struct listpack *opened;     /* the node, if it was packed */
    struct stream_id node_id;
    struct stream_id seen_id; /* stream_iter_find: it has come so far in the node */
    listpack_at next_entry;   /* forward: its flags; backwards: what stands last in it */
    listpack_at field;        /* the next one of the current entry */
    listpack_at value;
    bool fields_apart; /* the names stand in the master entry */
    char scratch[2][NUMBER_I64_SPACE];
};

void stream_iter_init(struct stream_iter *iter, const struct stream *stream, struct stream_id start,
                      struct stream_id end);
void stream_iter_init_backwards(struct stream_iter *iter, const struct stream *stream, struct stream_id start,
                                struct stream_id end);                             /* from end to start */
void stream_iter_init_find(struct stream_iter *iter, const struct stream *stream); /* nowhere yet */
void stream_iter_fini(struct stream_iter *iter);
bool stream_iter_next(struct stream_iter *iter, struct stream_id *id, uint64_t *field_count);
/* Goes to this entry; false: it is not there. Cheap where ids ascend, as a node is opened and walked once. The
 * iterator was made for it, and stream_iter_next is not for such ones. */
bool stream_iter_find(struct stream_iter *iter, struct stream_id id, uint64_t *field_count);
/* Up to field_count times after stream_iter_next or stream_iter_find; the texts are valid until the next call. */
void stream_iter_pair(struct stream_iter *iter, struct slice *field, struct slice *value);

/* --- saving and loading nodes --- */

typedef void (*stream_node_fn)(struct stream_id id, struct slice bytes, void *context);
void stream_each_node(const struct stream *stream, stream_node_fn visit, void *context); /* in order */
/* From outside, in order, into a stream without tail; stream_set_ids follows. False: damaged, nothing happened. */
must_check bool stream_load_node(struct stream *stream, struct stream_id id, struct slice bytes);

/* --- consumer groups --- */

#define STREAM_READ_UNKNOWN (-1)

struct stream_pending { /* delivered and not acknowledged; in the group's tree and in its consumer's */
    struct stream_consumer *consumer;
    int64_t delivery_ms;
    uint64_t delivery_count;
};

struct stream_consumer {
    int64_t seen_ms;
    int64_t active_ms;     /* -1: never */
    struct radix *pending; /* id -> stream_pending */
    size_t name_size;
    char name[];
};

struct stream_group {
    struct stream_id last_id;
    int64_t entries_read;    /* or STREAM_READ_UNKNOWN */
    struct radix *pending;   /* id -> stream_pending */
    struct radix *consumers; /* name -> stream_consumer */
};

static inline struct slice stream_consumer_name(const struct stream_consumer *consumer)
{
    return slice_make(consumer->name, consumer->name_size);
}

const struct radix *stream_groups(const struct stream *stream); /* name -> stream_group */
struct stream_group *stream_group_find(const struct stream *stream, struct slice name);
/* NULL: there is one already. */
struct stream_group *stream_group_create(struct stream *stream, struct slice name, struct stream_id last_id,
                                         int64_t entries_read);
bool stream_group_destroy(struct stream *stream, struct slice name); /* false: no such group */

/* Entries behind the group. False: nobody can tell, because some of those it counts were deleted. It may be negative
 * when a client has set entries_read to anything. */
must_check bool stream_group_lag(const struct stream *stream, const struct stream_group *group, int64_t *lag);
/* The group got an entry; ids below its last one change nothing. */
void stream_group_advance(const struct stream *stream, struct stream_group *group, struct stream_id id);
/* How many entries were ever added up to this id, or STREAM_READ_UNKNOWN. */
int64_t stream_entries_up_to(const struct stream *stream, struct stream_id id);

struct stream_consumer *stream_consumer_find(const struct stream_group *group, struct slice name);
struct stream_consumer *stream_consumer_create(struct stream_group *group, struct slice name, int64_t seen_ms);
/* With all that is pending for it. False: no such consumer. */
bool stream_consumer_destroy(struct stream_group *group, struct slice name, uint64_t *pending_count);

struct stream_pending *stream_pending_find(const struct stream_group *group, struct stream_id id);
/* Pending for this consumer from now on, whoever had it before; a new one has delivery count 0 and time 0. */
struct stream_pending *stream_pending_assign(struct stream_group *group, struct stream_id id,
                                             struct stream_consumer *consumer);
bool stream_pending_remove(struct stream_group *group, struct stream_id id); /* acknowledged; false: was not pending */
/* Walks group->pending or consumer->pending: sets an iterator made for it to the first id from here on. */
bool stream_pending_seek(struct radix_iter *iter, struct stream_id from);
static inline struct stream_id stream_pending_id(const struct radix_iter *iter)
{
    return stream_id_decode(iter->key);
}
