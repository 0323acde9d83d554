/* Quicklists: lists as a chain of nodes, each a listpack of some KiB. So both ends cost the same at any length, and an
 * element has little overhead. Finding an index walks the nodes from the nearer end, then one node.
 *
 * An element that is too long for a shared node is in a plain node of its own, without listpack. If `compress` is not
 * zero, this many nodes at each end stay open. Inner nodes are compressed (LZF), unless they are small or compression
 * gains nothing, and they are opened while something in them changes. Reading never changes a list: an iterator
 * decompresses into memory of its own. After deletions and splits, neighbours that fit into one node are joined.
 *
 * The owner of a list guards it. Texts given to these functions must not be part of the list. Returned values are valid
 * until the list changes or the iterator moves on. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/mem_move.h"
#include "base/number.h"
#include "base/slice.h"
#include "data/listpack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUICKLIST_SAFE_NODE_BYTES 8192 /* for a node that is limited by its number of elements */
#define QUICKLIST_FILL_MOST 32767
#define QUICKLIST_COMPRESS_LEAST_BYTES 48
#define QUICKLIST_COMPRESS_LEAST_GAIN_BYTES 8

/* A list keeps the limits that it was created with. */
struct quicklist_limits {
    int fill;                /* -1 ... -5: nodes of 4, 8, 16, 32, 64 KiB; above 0: elements per node; 0 means 1 */
    uint32_t compress;       /* nodes at each end that are not compressed; 0: all */
    size_t plain_from_bytes; /* longer texts are plain nodes; 0: only texts that no node could hold */
};

struct quicklist;
struct quicklist_node;

struct quicklist *quicklist_create(const struct quicklist_limits *limits);
struct quicklist *quicklist_copy(const struct quicklist *list);
void quicklist_destroy(struct quicklist **list); /* accepts NULL; leaves NULL */

struct quicklist_limits quicklist_limits(const struct quicklist *list); /* the limits at its creation */
uint64_t quicklist_count(const struct quicklist *list);
/* It has outgrown one node, or its only node is beyond the limits, and it was not cut to half of a node since. Clients
 * see any other list as a listpack. */
bool quicklist_is_long(const struct quicklist *list);
size_t quicklist_memory_bytes(const struct quicklist *list); /* visits all nodes */
/* Defragments about `most` elements' worth of the list's memory. Position 0 begins (*list may have moved afterwards),
 * another position continues where the last call ended. Returns the next position, 0 at the end. */
uint64_t quicklist_relocate(struct quicklist **list, uint64_t position, uint64_t most, struct mem_mover *mover);
void quicklist_validate(const struct quicklist *list); /* asserts every invariant */
/* As value_ops.undo. Those who watch the list are told of it as of any change. */
struct value_step;
void quicklist_undo(struct quicklist *list, const struct value_step *step);

/* --- both ends; a pop is a peek and a drop --- */

enum quicklist_end { QUICKLIST_HEAD, QUICKLIST_TAIL };

void quicklist_push(struct quicklist *list, enum quicklist_end end, struct slice text);
/* As if the last `behind` elements at that end were not there: they are behind it then. What takes it back, too. */
void quicklist_push_behind(struct quicklist *list, enum quicklist_end end, uint64_t behind, struct slice text);
must_check bool quicklist_peek(const struct quicklist *list, enum quicklist_end end, struct listpack_value *value);
void quicklist_drop(struct quicklist *list, enum quicklist_end end); /* the list is not empty */

/* Deletes at most `count` elements from `start` on; a negative start counts from the tail. Returns how many were
 * deleted. */
uint64_t quicklist_delete_range(struct quicklist *list, int64_t start, uint64_t count);

/* --- iterators --- */

enum quicklist_direction { QUICKLIST_FORWARD, QUICKLIST_BACKWARD };

/* The current element is the one that next() returned last. If it was deleted, it is the one that next() returns now.
 * While the iterator is in use, only its own functions may change the list. After a change, the list is complete again
 * only after quicklist_iter_fini. */
struct quicklist_iter {
    const struct quicklist *list;
    struct quicklist *changed;   /* the list, if the node needs settling before the iterator leaves it */
    struct quicklist_node *node; /* NULL: after the end */
    void *opened;                /* the decompressed content of a compressed node; owned */
    listpack_at at;
    uint64_t index;
    enum quicklist_direction direction;
    bool is_fresh; /* the current element was not returned yet */
};

/* The first element is the one at `index` (negative: from the tail). An index out of range gives no element. */
void quicklist_iter_init(struct quicklist_iter *iter, const struct quicklist *list, int64_t index,
                         enum quicklist_direction direction);
must_check bool quicklist_iter_next(struct quicklist_iter *iter, struct listpack_value *value);
void quicklist_iter_fini(struct quicklist_iter *iter); /* always call it, also after next() returned false */

/* These functions change the element that next() returned last, or insert beside it. `list` is the iterator's list.
 * Afterwards the iterator continues behind the element. It returns an inserted element that lies ahead. */
void quicklist_insert_before(struct quicklist *list, struct quicklist_iter *iter, struct slice text);
void quicklist_insert_after(struct quicklist *list, struct quicklist_iter *iter, struct slice text);
void quicklist_replace(struct quicklist *list, struct quicklist_iter *iter, struct slice text);
void quicklist_delete(struct quicklist *list, struct quicklist_iter *iter);

/* --- searching: the text is parsed once --- */

struct quicklist_needle {
    struct slice text;
    int64_t number;
    bool is_number;
};

static inline struct quicklist_needle quicklist_needle_make(struct slice text)
{
    struct quicklist_needle needle = {.text = text};

    needle.is_number = number_parse_i64(text, &needle.number);
    return needle;
}

static inline bool quicklist_value_is(const struct listpack_value *value, const struct quicklist_needle *needle)
{
    return value->text.data == NULL ? needle->is_number && value->number == needle->number
                                    : slice_equal(value->text, needle->text);
}

/* False: the text is not among the `most` elements at that end. Far cheaper than a look at each of them, where the list
 * is searched at that end again before much of it has changed. */
bool quicklist_may_have(struct quicklist *list, enum quicklist_end end, uint64_t most, struct slice text);

/* --- nodes, for saving, loading and describing a list --- */

uint32_t quicklist_node_count(const struct quicklist *list);
struct quicklist_node *quicklist_first_node(const struct quicklist *list); /* NULL: the list is empty */
struct quicklist_node *quicklist_next_node(const struct quicklist *list, const struct quicklist_node *node);

bool quicklist_node_is_plain(const struct quicklist_node *node); /* its bytes are the element itself */
uint32_t quicklist_node_elements(const struct quicklist_node *node);
size_t quicklist_node_size_bytes(const struct quicklist_node *node); /* the uncompressed size */
/* Returns the uncompressed bytes. Uses `scratch` if the node is compressed. */
struct slice quicklist_node_bytes(const struct quicklist_node *node, struct buffer *scratch);
/* Returns the compressed bytes of a compressed node; they can be saved unchanged. False: the node is not compressed. */
must_check bool quicklist_node_compressed(const struct quicklist_node *node, struct slice *bytes);

/* Appends the elements of a listpack at the tail, takes the listpack over and leaves NULL. The listpack may be empty. A
 * plain node of a saved list is pushed like any other text. */
void quicklist_append_listpack(struct quicklist *list, struct listpack **pack);
