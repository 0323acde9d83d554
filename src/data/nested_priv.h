/* Nodes of nested hashes, for nested.c and former_nested.c.
 *
 * A change replaces the contents of one node, or adds one child to a tree; nothing else. So a node stays where it is in
 * its tree until the contents of one above it are replaced, children are never removed one by one, and what was
 * replaced changes no more: it goes over to whoever needs it as a whole (former_nested.h). The moment at which contents
 * were made tells whether a former needs them: each former has a moment, and all made behind it have later ones. */
#pragma once

#include "base/table.h"
#include "data/former_nested.h"
#include "data/nested.h"

struct nested {
    uint64_t kind : 2;  /* enum nested_kind */
    uint64_t born : 62; /* the moment of its contents, as the tree counts them; new children do not change it */
    uint64_t effort;    /* how many nodes and texts there are, from here on */
    union {
        struct table children; /* struct nested_child */
        struct {
            struct slice *items; /* each an allocation of its own; with the array they belong to the node */
            uint32_t count;      /* 1 for a text */
        } texts;
    };
};

struct nested_child {
    struct nested node;
    size_t name_size;
    char name[];
};

/* The data of a value. Whoever guards the value guards all of it. */
struct nested_tree {
    struct nested root;            /* first: it has the address of the value */
    uint64_t moment;               /* of what is made now */
    struct nested_former *formers; /* who is told of changes; mostly NULL */
};

struct slice nested_child_name(const struct nested *node); /* not of a root */
/* `to` was nothing; `from` becomes an empty tree, born as before. */
void nested_move_contents(struct nested *to, struct nested *from);
void nested_free_contents(struct nested *node); /* nothing is left there */
/* Without the node itself. An estimate from `samples` children or texts, and a few below each; 0: all. */
uint64_t nested_contents_bytes(const struct nested *node, uint64_t samples);
