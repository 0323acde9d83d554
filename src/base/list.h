/* An intrusive doubly linked list: the node is part of the element. An element needs one node for each list that it can
 * be in at a time. Every call takes O(1). The list owns nothing and locks nothing. A node must be zeroed memory or
 * initialised before it is linked for the first time. Removed nodes are marked, so an assertion notices a node that is
 * linked twice. */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct list_node {
    struct list_node *next; /* NULL: in no list */
    struct list_node *before;
};

struct list {
    struct list_node head; /* a ring: head.next is the first, head.before the last */
};

static inline void list_init(struct list *list)
{
    list->head.next = list->head.before = &list->head;
}

static inline void list_node_init(struct list_node *node)
{
    node->next = node->before = NULL;
}

static inline bool list_node_is_linked(const struct list_node *node)
{
    return node->next != NULL;
}

static inline bool list_is_empty(const struct list *list)
{
    return list->head.next == &list->head;
}

static inline struct list_node *list_first(const struct list *list) /* NULL: empty */
{
    return list_is_empty(list) ? NULL : list->head.next;
}

static inline struct list_node *list_last(const struct list *list) /* NULL: empty */
{
    return list_is_empty(list) ? NULL : list->head.before;
}

static inline struct list_node *list_next(const struct list *list, const struct list_node *node) /* NULL: last */
{
    return node->next == &list->head ? NULL : node->next;
}

static inline struct list_node *list_previous(const struct list *list, const struct list_node *node)
{
    return node->before == &list->head ? NULL : node->before;
}

static inline void list_insert_after(struct list_node *place, struct list_node *node)
{
    assert(node->next == NULL);
    assert(place->next != NULL);
    debug_assert(place->next->before == place);
    node->before = place;
    node->next = place->next;
    place->next->before = node;
    place->next = node;
}

static inline void list_insert_before(struct list_node *place, struct list_node *node)
{
    list_insert_after(place->before, node);
}

static inline void list_push_back(struct list *list, struct list_node *node)
{
    list_insert_after(list->head.before, node);
}

static inline void list_push_front(struct list *list, struct list_node *node)
{
    list_insert_after(&list->head, node);
}

static inline void list_remove(struct list_node *node)
{
    assert(node->next != NULL);
    debug_assert(node->next->before == node && node->before->next == node);
    node->before->next = node->next;
    node->next->before = node->before;
    node->next = node->before = NULL;
}

/* Call it after a linked node (or the head of a list that is not empty) was moved in memory: it corrects the
 * neighbours. */
static inline void list_node_moved(struct list_node *node)
{
    assert(node->next != NULL);
    node->next->before = node;
    node->before->next = node;
}

static inline struct list_node *list_pop_front(struct list *list) /* NULL: empty */
{
    struct list_node *node = list_first(list);

    if (node != NULL)
        list_remove(node);
    return node;
}

/* Moves all nodes of `from` behind the last node of `to`. `from` is empty afterwards. */
static inline void list_splice_back(struct list *to, struct list *from)
{
    if (list_is_empty(from))
        return;
    from->head.next->before = to->head.before;
    to->head.before->next = from->head.next;
    from->head.before->next = &to->head;
    to->head.before = from->head.before;
    list_init(from);
}

size_t list_count(const struct list *list);  /* walks the list: for tests and reports */
void list_validate(const struct list *list); /* asserts that every link has its counterpart */

/* The macro declares `node`. In the body, the list must not change, except that nodes may be inserted later in it. */
#define LIST_FOREACH(node, list) \
    for (struct list_node *node = (list)->head.next; node != &(list)->head; node = node->next)

/* The body may remove or free `node`, but no other node. */
#define LIST_FOREACH_SAFE(node, list)                                                                  \
    for (struct list_node *node = (list)->head.next, *node##_next = node->next; node != &(list)->head; \
         node = node##_next, node##_next = node->next)
