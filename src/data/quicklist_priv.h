/* Internals of quicklists: nodes.
 *
 * Invariants
 *  1. No node is empty. The counts of all nodes add up to the list's count.
 *  2. A node of more than one element is within the list's limits. A plain node has one element.
 *  3. With compression, the first and last `compress` nodes are open. Every other node is compressed, or small, or
 *     marked as not worth compressing (is_stubborn, until its content changes).
 *
 * Code that changes a node opens it first and settles it afterwards (invariant 3). A change of the chain at one place
 * adds at most two nodes, so at most two nodes become inner ones at each end: quicklist_settle_ends checks those. */
#pragma once

#include "base/assert.h"
#include "base/list.h"
#include "data/quicklist.h"
#include "data/undo.h"

enum { QUICKLIST_COUNT_UNLIMITED = UINT16_MAX }; /* larger counts do not fit into any node */

struct quicklist {
    struct list nodes;
    struct quicklist_node *mark; /* the node at which quicklist_relocate continues; NULL: none */
    uint64_t count;
    uint32_t node_count;
    uint32_t compress : 31;
    uint32_t is_long : 1;      /* quicklist_is_long */
    uint32_t plain_from_bytes; /* 0: only texts that no node could hold */
    uint16_t node_kib_most;
    uint16_t node_count_most;
};
static_assert(sizeof(struct quicklist) == 48, "part of the price of every list, and a size that is not rounded up");

struct quicklist_node {
    struct list_node link;
    union {
        void *data;            /* a block (quicklist_node_block): a listpack, a text, or one of these compressed */
        struct listpack *pack; /* for an open node that is not plain */
    };
    size_t raw_bytes; /* of a plain or compressed node: the uncompressed size */
    union {
        uint32_t stored_bytes; /* of a compressed node: the size of the data */
        uint32_t room_bytes;   /* of an open node that is not plain: the block begins so long before the listpack */
    };
    uint32_t count;
    bool is_plain;
    bool is_compressed;
    bool is_stubborn;
    uint32_t sketch; /* the number of one of its content (quicklist_search.c); 0: there is none */
};
static_assert(sizeof(struct quicklist_node) == 48, "part of the price of each node, and no more than before");

static inline uint32_t node_bytes_most(const struct quicklist *list)
{
    return (uint32_t)list->node_kib_most * 1024;
}

static inline struct quicklist_node *node_of(struct list_node *link)
{
    return link == NULL ? NULL : container_of(link, struct quicklist_node, link);
}

static inline struct quicklist_node *end_node(const struct quicklist *list, enum quicklist_end end)
{
    return node_of(end == QUICKLIST_HEAD ? list_first(&list->nodes) : list_last(&list->nodes));
}

/* The neighbour in the direction; NULL: none. */
static inline struct quicklist_node *neighbour(const struct quicklist *list, const struct quicklist_node *node,
                                               enum quicklist_direction direction)
{
    return node_of(direction == QUICKLIST_FORWARD ? list_next(&list->nodes, &node->link)
                                                  : list_previous(&list->nodes, &node->link));
}

/* Steps that take changes back (data/undo.h), besides VALUE_STEP_PUSHED. An index is that of the moment of the
 * change. */
enum quicklist_step {
    QUICKLIST_STEP_DROPPED,  /* first: the element; b: at which end it was */
    QUICKLIST_STEP_INSERTED, /* a: the index of the element */
    QUICKLIST_STEP_DELETED,  /* a: the index of the first one; first: the elements, each behind its size (8 bytes) */
    QUICKLIST_STEP_REPLACED  /* a: the index; first: the element */
};

static inline void quicklist_note_index(struct value_log *log, enum quicklist_step kind, uint64_t index,
                                        struct slice text)
{
    value_log_note(log, &(struct value_step){.a = index, .first = text, .kind = kind});
}

/* Of VALUE_STEP_PUSHED. The elements were put before those that are behind them at that end. */
static inline enum quicklist_end quicklist_step_end(const struct value_step *step)
{
    return (step->b & 1) == 0 ? QUICKLIST_HEAD : QUICKLIST_TAIL;
}
static inline uint64_t quicklist_step_behind(const struct value_step *step)
{
    return step->b >> 1;
}

/* Takes the first one of QUICKLIST_STEP_DELETED's elements. */
static inline struct slice quicklist_step_next_text(struct slice *texts)
{
    struct slice text;
    uint64_t size;

    assert(texts->size >= sizeof(size));
    memcpy(&size, texts->data, sizeof(size));
    text = slice_make(texts->data + sizeof(size), size);
    *texts = slice_make(text.data + size, texts->size - sizeof(size) - size);
    return text;
}

/* quicklist_insert_before, without a step for it. */
void quicklist_iter_insert_unnoted(struct quicklist *list, struct quicklist_iter *iter, struct slice text);

/* --- nodes outside of a list --- */

struct quicklist_node *quicklist_node_create(const struct quicklist *list, struct slice text); /* not yet linked */
/* Takes the listpack over. */
struct quicklist_node *quicklist_node_create_packed(struct listpack *pack, uint32_t count);
struct quicklist_node *quicklist_node_copy(const struct quicklist_node *node);
void quicklist_node_destroy(struct quicklist_node *node);
void *quicklist_node_uncompress(const struct quicklist_node *node);    /* returns a new block */
void quicklist_node_set_open(struct quicklist_node *node, void *data); /* takes over what that has returned */
void *quicklist_node_block(const struct quicklist_node *node);         /* from mem_alloc, with the data in it */
/* Call it before changing a packed node: decompresses the node and returns its listpack, which begins its block. */
struct listpack **quicklist_node_open(struct quicklist_node *node);
/* The same for a change at an end, by the functions that keep room in front of a listpack. */
struct listpack **quicklist_node_open_end(struct quicklist_node *node);

/* --- nodes in a list --- */

/* Elements were removed, so the list may be short again. */
void quicklist_note_shrunk_slow(struct quicklist *list);
static inline void quicklist_note_shrunk(struct quicklist *list)
{
    if (UNLIKELY(list->is_long != 0 && list->node_count == 1))
        quicklist_note_shrunk_slow(list);
}

/* Links a new node beside `place` in the direction (`place` NULL: the list is empty). Adds to the list's counts. */
void quicklist_link(struct quicklist *list, struct quicklist_node *place, enum quicklist_direction direction,
                    struct quicklist_node *node);
void quicklist_unlink(struct quicklist *list, struct quicklist_node *node); /* unlinks and destroys the node */

/* The most bytes that the element takes in a listpack. */
static inline uint64_t quicklist_element_bytes_most(struct slice text)
{
    return text.size + (text.size < 64 ? 2 : text.size < 4096 ? 4 : 10);
}
static inline bool quicklist_is_plain_text(const struct quicklist *list, struct slice text)
{
    if (list->plain_from_bytes != 0)
        return text.size >= list->plain_from_bytes;
    return LISTPACK_HEAD_BYTES + 1 + quicklist_element_bytes_most(text) > node_bytes_most(list);
}
/* True if the node has room for one more element. False for NULL. */
bool quicklist_accepts(const struct quicklist *list, const struct quicklist_node *node, struct slice text);
/* Moves the elements from `at` on into a new node behind this one. */
struct quicklist_node *quicklist_split(struct quicklist *list, struct quicklist_node *node, listpack_at at);
/* Joins `right` into `left` if `right` is the next node and both fit into one. `right` is destroyed then. Both may be
 * NULL. */
bool quicklist_join(struct quicklist *list, struct quicklist_node *left, struct quicklist_node *right);
/* Joins the node with both neighbours if possible. Returns the node that has the elements now. */
struct quicklist_node *quicklist_join_around(struct quicklist *list, struct quicklist_node *node);

void quicklist_settle_ends(struct quicklist *list);
void quicklist_settle_node(struct quicklist *list, struct quicklist_node *node); /* accepts NULL */

/* Returns the node with the element at `index`, which is below the count, and the element's index in the node. */
struct quicklist_node *quicklist_locate(const struct quicklist *list, uint64_t index, uint32_t *inner_index);
