/* Nodes.
 *
 * Invariants
 *  1. No node is empty; the counts of all nodes sum up to the list's.
 *  2. A node of more than one element is within the list's limits; a plain node has one element.
 *  3. With compression the first and last `compress` nodes are open. Every other is compressed, or small, or known to
 *     gain nothing (is_stubborn, until its content changes).
 *
 * Whoever changes a node opens it first and settles it afterwards (invariant 3). A change of the chain at one place
 * adds at most two nodes, so at most two nodes become inner ones at each end: quicklist_settle_ends looks at those. */
#pragma once

#include "base/list.h"
#include "data/quicklist.h"

enum { QUICKLIST_COUNT_UNLIMITED = UINT16_MAX }; /* more elements than that fit into no node */

struct quicklist {
    struct list nodes;
    struct quicklist_node *mark; /* where quicklist_relocate goes on; NULL: nowhere */
    uint64_t count;
    uint32_t node_count;
    uint32_t compress;
    uint32_t plain_from_bytes; /* 0: what no node could hold */
    uint16_t node_kib_most;
    uint16_t node_count_most;
};
static_assert(sizeof(struct quicklist) == 48, "part of the price of every list, and a size that is not rounded up");

struct quicklist_node {
    struct list_node link;
    union {
        void *data;            /* from mem_alloc: a listpack, a text, or either compressed */
        struct listpack *pack; /* of an open node that is not plain */
    };
    size_t raw_bytes;      /* of a plain node and of a compressed one, as they are when open */
    uint32_t stored_bytes; /* of a compressed one */
    uint32_t count;
    bool is_plain;
    bool is_compressed;
    bool is_stubborn;
};

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

/* In the direction; NULL: none. */
static inline struct quicklist_node *neighbour(const struct quicklist *list, const struct quicklist_node *node,
                                               enum quicklist_direction direction)
{
    return node_of(direction == QUICKLIST_FORWARD ? list_next(&list->nodes, &node->link)
                                                  : list_previous(&list->nodes, &node->link));
}

/* --- alone --- */

struct quicklist_node *quicklist_node_create(const struct quicklist *list, struct slice text); /* not linked yet */
struct quicklist_node *quicklist_node_create_packed(struct listpack *pack, uint32_t count);    /* takes it over */
struct quicklist_node *quicklist_node_copy(const struct quicklist_node *node);
void quicklist_node_destroy(struct quicklist_node *node);
void *quicklist_node_uncompress(const struct quicklist_node *node); /* into a new block */
/* Before a change of a packed node: its listpack, open. */
struct listpack **quicklist_node_open(struct quicklist_node *node);

/* --- in a list --- */

/* Puts a new node in the direction of `place` (NULL: alone in the list). Counts it and its elements. */
void quicklist_link(struct quicklist *list, struct quicklist_node *place, enum quicklist_direction direction,
                    struct quicklist_node *node);
void quicklist_unlink(struct quicklist *list, struct quicklist_node *node); /* and destroys it */

/* What the element takes at most in a listpack. */
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
/* Is there room for one more? False for NULL. */
bool quicklist_accepts(const struct quicklist *list, const struct quicklist_node *node, struct slice text);
/* The elements from the place on move into a new node behind it. */
struct quicklist_node *quicklist_split(struct quicklist *list, struct quicklist_node *node, listpack_at at);
/* If `right` is the neighbour behind `left` and both fit into one node: `right` is gone. Either may be NULL. */
bool quicklist_join(struct quicklist *list, struct quicklist_node *left, struct quicklist_node *right);
/* With both neighbours. Returns the node that has the elements now. */
struct quicklist_node *quicklist_join_around(struct quicklist *list, struct quicklist_node *node);

void quicklist_settle_ends(struct quicklist *list);
void quicklist_settle_node(struct quicklist *list, struct quicklist_node *node); /* NULL is fine */

/* The node with the element, and the element's index in it. `index` is below the count. */
struct quicklist_node *quicklist_locate(const struct quicklist *list, uint64_t index, uint32_t *inner_index);
