/* Former values of nested hashes (former.h). They are given from the root on, in the order in which files have them:
 * a node, then all that is below it. Elements say what they are:
 *
 *     NESTED_PART_TREE  a tree: name, count       then its children, so many nodes with all below them
 *     NESTED_PART_LIST  a list: name, count       then its texts
 *     NESTED_PART_TEXT  a text: name, the text
 *     NESTED_PART_ITEM  one text of a list
 *
 * The name is `first`, and empty for the root. `second` is the text, or a struct nested_part_head.
 *
 * nested.c tells of a change before it is made, with the nodes on the way there: from the root to nodes[depth], the one
 * that changes. */
#pragma once

#include "data/former.h"
#include "data/nested.h"

enum nested_part { NESTED_PART_TREE = 1, NESTED_PART_LIST, NESTED_PART_TEXT, NESTED_PART_ITEM };

struct nested_part_head {
    uint64_t count;
};

extern const struct former_ops former_nested_ops;

struct nested_tree;

/* The tree nodes[depth] gets another child. */
void nested_formers_note_child(struct nested_tree *tree, struct nested *const *nodes, unsigned depth);
/* The contents of nodes[depth] are replaced. True: they are the formers' from here on, and it is an empty tree. */
must_check bool nested_formers_take(struct nested_tree *tree, struct nested *const *nodes, unsigned depth);
