/* The layout of a stream's node, for stream.c and for code that parses nodes of files. The elements of the listpack:
 *
 *     master: live count | deleted count | F | field 1 ... F | 0
 *     entry:  flags | ms delta | seq delta | [n | field 1 | value 1 ...] or [value 1 ... F] | P
 *
 * Deltas are relative to the node's id and added modulo 2^64. P is the number of elements of the entry before P, for
 * walking backwards; the 0 after the master ends that walk. */
#pragma once

#include "data/listpack.h"
#include "data/stream.h"

enum { STREAM_ENTRY_DELETED = 1, STREAM_ENTRY_SAME_FIELDS = 2 };

struct stream_entry { /* positions in an entry */
    struct stream_id id;
    int64_t flags;
    uint64_t field_count;
    listpack_at flags_at;
    listpack_at field_at; /* the first field, or the first value if the fields are the master's */
};

struct listpack *stream_node_create(const struct slice *pairs, size_t field_count);
/* `node_id` is the id of the node: that of its first entry. */
void stream_node_append(struct listpack **node, struct stream_id node_id, struct stream_id id,
                        const struct slice *pairs, size_t field_count);

void stream_node_cut_last(struct listpack **node); /* takes the last append back; a live entry is left */

uint64_t stream_node_live(const struct listpack *node);
uint64_t stream_node_deleted(const struct listpack *node);
void stream_node_count_deleted(struct listpack **node, uint64_t more); /* adds to the count of deleted entries */
void stream_node_mark(struct listpack **node, const struct stream_entry *entry);

listpack_at stream_node_first_field(const struct listpack *node);
/* Position of its flags; LISTPACK_NONE: there is no entry. */
listpack_at stream_node_first_entry(const struct listpack *node);
/* Reads the entry whose flags are at `at`. Returns the position of the next entry's flags, or LISTPACK_NONE. */
listpack_at stream_node_read(const struct listpack *node, struct stream_id node_id, listpack_at at,
                             struct stream_entry *entry);
/* Returns the position of the flags of the entry that ends at `end`; LISTPACK_NONE: the master ends there. */
listpack_at stream_node_entry_before(const struct listpack *node, listpack_at end);

struct stream_node_info {
    uint64_t live;
    struct stream_id first, last; /* among all entries, live or deleted */
    struct stream_id first_live, last_live;
};
/* Checks bytes from outside: true if they are a node with at least one live entry and ids that ascend from node_id
 * on. */
must_check bool stream_node_check(struct stream_id node_id, struct slice bytes, struct stream_node_info *info);
