/* Streams: entries of field-value pairs under ascending ids, and the consumer groups that read them.
 *
 * Entries are in nodes, listpacks of some hundred entries, in the layout of RDB files, so they are loaded and saved
 * unchanged. A radix tree finds a node by the 16 bytes of its id (stream_node.h has the layout). A deleted entry is
 * only marked; the node is removed with its last live entry. All nodes but the last two are compressed, if it pays,
 * until they are changed (stream_kept.h).
 *
 * The owner (a stripe) guards a stream. Where a comment says so, the caller has checked the client's arguments. */
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

must_check bool stream_id_increment(struct stream_id *id); /* false: the id is the largest one and unchanged */
must_check bool stream_id_decrement(struct stream_id *id); /* false: the id is 0-0 and unchanged */
/* The form of an id in a tree's key and in files: big-endian. */
struct slice stream_id_encode(struct stream_id id, char room[STREAM_ID_BYTES]);
struct stream_id stream_id_decode(const char bytes[STREAM_ID_BYTES]);

/* --- the stream --- */

struct mem_mover;
struct stream;

struct stream_limits { /* limits of a node; 0: none */
    uint64_t node_bytes;
    uint64_t node_entries;
};

struct stream *stream_create(void);
struct stream *stream_copy(const struct stream *stream); /* with groups, consumers and pending entries */
void stream_destroy(struct stream **stream);             /* accepts NULL; leaves NULL */

uint64_t stream_length(const struct stream *stream);
struct stream_id stream_first_id(const struct stream *stream); /* first live entry; 0-0: there is none */
/* The last id that was assigned, even if its entry was deleted. */
struct stream_id stream_last_id(const struct stream *stream);
struct stream_id stream_top_id(const struct stream *stream);   /* last live entry; 0-0: there is none */
struct stream_id stream_front_id(const struct stream *stream); /* first entry in a node, live or deleted */
struct stream_id stream_tail_id(const struct stream *stream);  /* last entry in a node, live or deleted */
struct stream_id stream_max_deleted_id(const struct stream *stream);
uint64_t stream_entries_added(const struct stream *stream);
uint64_t stream_node_count(const struct stream *stream);
uint64_t stream_tree_node_count(const struct stream *stream); /* nodes of the radix tree, with its root */
/* Groups are looked at as value_ops.memory_bytes says; nodes are counted as they change. */
uint64_t stream_memory_bytes(const struct stream *stream, uint64_t samples);

/* Adds an entry; the id must be above the last one. `pairs`: field, value, field, ... False: the entry is too large for
 * a node, and nothing has changed. */
must_check bool stream_append(struct stream *stream, struct stream_id id, const struct slice *pairs, size_t field_count,
                              const struct stream_limits *limits);
/* The same anywhere. False also if the id is there, or is the greatest one that was deleted. */
must_check bool stream_insert(struct stream *stream, struct stream_id id, const struct slice *pairs, size_t field_count,
                              const struct stream_limits *limits);
bool stream_delete(struct stream *stream, struct stream_id id); /* false: there is no such entry */
bool stream_has(const struct stream *stream, struct stream_id id);

struct stream_trim {
    enum { STREAM_TRIM_LENGTH, STREAM_TRIM_ID } by;
    bool whole_nodes;       /* "~": removes whole nodes only */
    uint64_t length;        /* this many entries stay */
    struct stream_id id;    /* entries from this id on stay */
    uint64_t removal_limit; /* most entries to remove; 0: no limit */
};
uint64_t stream_trim(struct stream *stream, const struct stream_trim *trim); /* returns how many entries were removed */
/* The last entry that stream_trim would remove, with all live ones before it. False: it would remove none. */
must_check bool stream_trim_last(const struct stream *stream, const struct stream_trim *trim, struct stream_id *last);

/* The caller has checked that last_id is not below stream_tail_id or max_deleted_id, and entries_added not below the
 * length. */
void stream_set_ids(struct stream *stream, struct stream_id last_id, struct stream_id max_deleted_id,
                    uint64_t entries_added);

/* Like value_ops.relocate. Groups, consumers and pending entries do not move: few of them live long. */
uint64_t stream_relocate(struct stream **stream, uint64_t position, uint64_t most, struct mem_mover *mover);

void stream_validate(const struct stream *stream); /* asserts every invariant */
/* As value_ops.undo. Those who watch the stream (data/undo.h) are told of it as of any change. While it is watched for
 * its groups, stream_group_find writes the group down: whoever looks it up may change all of it. Likewise formers
 * (data/former.h) are told what a group and a consumer is when it is looked up. So each change looks it up anew, behind
 * its beginning. */
struct value_step;
void stream_undo(struct stream *stream, const struct value_step *step);

/* --- reading --- */

/* Entries from start to end, both included. While an iterator is in use, the stream must not change and the struct must
 * not move. The thread that began it ends it (stream_iter_fini): what it has unpacked may be the thread's own. */
struct stream_iter {
    const struct stream *stream;
    struct stream_id start, end;
    bool backwards;
    struct radix_iter nodes;
    const struct listpack *node;  /* NULL: not begun, or at the end */
    struct listpack *opened;      /* the decompressed node, if it was compressed; or */
    struct stream_recent *recent; /* the same, kept for the thread's next reader; NULL: not */
    struct stream_id node_id;
    struct stream_id seen_id; /* forward: no entry of the node before next_entry has a greater id */
    listpack_at next_entry;   /* forward: the flags of the next entry; backwards: its last element */
    listpack_at field;        /* the next field of the current entry */
    listpack_at value;
    bool fields_apart; /* the field names are in the master entry */
    char scratch[2][NUMBER_I64_SPACE];
};

void stream_iter_init(struct stream_iter *iter, const struct stream *stream, struct stream_id start,
                      struct stream_id end);
void stream_iter_init_backwards(struct stream_iter *iter, const struct stream *stream, struct stream_id start,
                                struct stream_id end);                             /* iterates from end to start */
void stream_iter_init_find(struct stream_iter *iter, const struct stream *stream); /* at no entry */
void stream_iter_fini(struct stream_iter *iter);
bool stream_iter_next(struct stream_iter *iter, struct stream_id *id, uint64_t *field_count);
/* Moves to this entry. False: there is no such entry. Fast for ascending ids, since each node is opened and walked
 * once. Only for iterators of stream_iter_init_find, which do not support stream_iter_next. */
bool stream_iter_find(struct stream_iter *iter, struct stream_id id, uint64_t *field_count);
/* Call it up to field_count times after stream_iter_next or stream_iter_find. The texts are valid until the next
 * call. */
void stream_iter_pair(struct stream_iter *iter, struct slice *field, struct slice *value);
/* The bytes of the pairs that are left of the current entry: of all, before the first call of stream_iter_pair. */
uint64_t stream_iter_bytes(const struct stream_iter *iter, uint64_t field_count);

/* --- saving and loading nodes --- */

typedef void (*stream_node_fn)(struct stream_id id, struct slice bytes, void *context);
void stream_each_node(const struct stream *stream, stream_node_fn visit, void *context); /* in the order of ids */
/* Adds a node from a file, in order, to a stream without nodes behind it; stream_set_ids follows. False: the node is
 * damaged, and nothing has changed. */
must_check bool stream_load_node(struct stream *stream, struct stream_id id, struct slice bytes);

/* --- consumer groups --- */

#define STREAM_READ_UNKNOWN (-1)
#define STREAM_DELIVERIES_MOST ((uint64_t)INT64_MAX) /* what clients and files can be told */

struct stream_pending { /* delivered and not acknowledged; in the group's tree and in its consumer's tree */
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
    int64_t entries_read;         /* a count, or STREAM_READ_UNKNOWN */
    struct radix *pending;        /* id -> stream_pending */
    struct radix *consumers;      /* name -> stream_consumer */
    struct radix *by_time;        /* delivery time and id (stream_idle.c); NULL: nobody has asked for it */
    struct group_former *formers; /* who is told before consumers change (former_groups.h); mostly NULL */
};

/* Consumers whose names stand for nobody: so files, replicas and other servers know of what is pending for them, too.
 * Late is an entry that comes in behind what a group was given last, or that peers have passed by: it is handed out
 * next. Released is one that its consumer gave back. Nobody else should use these names; the consumers are made when
 * they are needed, and stay. */
#define STREAM_LATE_CONSUMER SLICE("keydb:late")
#define STREAM_RELEASED_CONSUMER SLICE("keydb:released")

static inline struct slice stream_consumer_name(const struct stream_consumer *consumer)
{
    return slice_make(consumer->name, consumer->name_size);
}

const struct radix *stream_groups(const struct stream *stream); /* name -> stream_group */
struct stream_group *stream_group_find(const struct stream *stream, struct slice name);
/* Returns NULL if the group exists. */
struct stream_group *stream_group_create(struct stream *stream, struct slice name, struct stream_id last_id,
                                         int64_t entries_read);
/* False: no such group. What was in it, which may be much, becomes *garbage: a stream that can only be destroyed, and
 * measured (stream_ops); NULL: nothing is left. garbage NULL: it is freed at once. */
bool stream_group_destroy(struct stream *stream, struct slice name, struct stream **garbage);

/* The number of entries after the group's last id. False: it is unknown, since counted entries were deleted. It may be
 * negative if a client has set entries_read. */
must_check bool stream_group_lag(const struct stream *stream, const struct stream_group *group, int64_t *lag);
/* Records that the group got an entry. An id below the group's last one changes nothing. It never has read more than
 * were added. */
void stream_group_advance(const struct stream *stream, struct stream_group *group, struct stream_id id);
void stream_group_count(const struct stream *stream, struct stream_group *group); /* one not above its last one */
/* The number of entries ever added up to this id, or STREAM_READ_UNKNOWN. */
int64_t stream_entries_up_to(const struct stream *stream, struct stream_id id);

struct stream_consumer *stream_consumer_find(const struct stream_group *group, struct slice name);
struct stream_consumer *stream_consumer_create(struct stream_group *group, struct slice name, int64_t seen_ms);
/* The consumer that released entries are pending for. NULL: none was ever released. Only for looking at it. */
const struct stream_consumer *stream_group_released(const struct stream_group *group);
/* Removes the consumer and its pending entries. False: no such consumer. garbage: see stream_group_destroy. */
bool stream_consumer_destroy(struct stream_group *group, struct slice name, uint64_t *pending_count,
                             struct stream **garbage);

/* Records are changed by stream_pending_assign alone. NULL: the entry is not pending. */
const struct stream_pending *stream_pending_find(const struct stream_group *group, struct stream_id id);
/* Makes the entry pending for this consumer, whether or not it was pending, and for whom. */
const struct stream_pending *stream_pending_assign(struct stream_group *group, struct stream_id id,
                                                   struct stream_consumer *consumer, int64_t delivery_ms,
                                                   uint64_t delivery_count);
/* Acknowledges; false: the entry was not pending. */
bool stream_pending_remove(struct stream_group *group, struct stream_id id);
/* For iterators of group->pending or consumer->pending: moves to the first id >= from. */
bool stream_pending_seek(struct radix_iter *iter, struct stream_id from);
static inline struct stream_id stream_pending_id(const struct radix_iter *iter)
{
    return stream_id_decode(iter->key);
}

/* --- what is pending the longest --- */

struct stream_idle {
    struct stream_id id;
    int64_t delivery_ms;
};

/* What is pending in a group, for whatever consumer, but no late entries: by delivery time, then by id. The first use
 * indexes the group; from then on the index is kept up to date, but never copied or saved. While it is in use, entries
 * may become pending or be removed, also the current one; the struct must not move. */
struct stream_idle_iter {
    struct stream_group *group;
    struct radix_iter keys;
    bool is_begun;
};

void stream_idle_iter_init(struct stream_idle_iter *iter, struct stream_group *group);
void stream_idle_iter_fini(struct stream_idle_iter *iter);
bool stream_idle_iter_next(struct stream_idle_iter *iter, struct stream_idle *idle);
/* The stream has no such entry: it stays pending, but is passed over until it is assigned anew, or comes back. */
void stream_idle_iter_forget(struct stream_idle_iter *iter);
uint64_t stream_idle_count(const struct stream_group *group); /* in the index; 0: there is none */
