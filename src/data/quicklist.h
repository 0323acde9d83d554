/* Long lists: a chain of nodes, each a listpack of some KiB, so that both ends cost the same at any length and an
 * element costs a few bytes. Finding an index walks the nodes from the nearer end, then one node.
 *
 * An element too long to share a node stands in a plain node of its own, as it is. Where `compress` is not zero that
 * many nodes at each end are kept open; the inner ones are compressed (LZF), unless they are small or nothing is
 * gained, and opened while something in them changes. Reading never changes a list: an iterator opens into memory of
 * its own. Neighbours that have become small enough for one node are joined after deletions and splits.
 *
 * Not shared: its owner guards it. Texts handed in must not lie in the list; values handed out are valid until the list
 * changes or the iterator moves on. */
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

#define QUICKLIST_SAFE_NODE_BYTES 8192 /* of a node that is limited in elements */
#define QUICKLIST_FILL_MOST 32767
#define QUICKLIST_COMPRESS_LEAST_BYTES 48
#define QUICKLIST_COMPRESS_LEAST_GAIN_BYTES 8

/* A list keeps those it was created with. */
struct quicklist_limits {
    int fill;                /* -1 ... -5: nodes of 4, 8, 16, 32, 64 KiB; above 0: elements a node; 0 is 1 */
    uint32_t compress;       /* nodes at each end that stay open; 0: all */
    size_t plain_from_bytes; /* texts of this size and more are plain; 0: those that no node could hold */
};

struct quicklist;
struct quicklist_node;

struct quicklist *quicklist_create(const struct quicklist_limits *limits);
struct quicklist *quicklist_copy(const struct quicklist *list);
void quicklist_destroy(struct quicklist **list); /* NULL is fine; leaves NULL */

struct quicklist_limits quicklist_limits(const struct quicklist *list); /* those it was created with */
uint64_t quicklist_count(const struct quicklist *list);
size_t quicklist_memory_bytes(const struct quicklist *list); /* visits all nodes */
/* Moves the list's memory together, about `most` elements' worth of it: from the beginning for position 0 (*list may be
 * elsewhere afterwards), else from where the last call ended. Returns the position to go on with, 0 at the end. */
uint64_t quicklist_relocate(struct quicklist **list, uint64_t position, uint64_t most, struct mem_mover *mover);
void quicklist_validate(const struct quicklist *list); /* asserts every invariant */

/* --- the ends; reading one and dropping it is a pop --- */

enum quicklist_end { QUICKLIST_HEAD, QUICKLIST_TAIL };

void quicklist_push(struct quicklist *list, enum quicklist_end end, struct slice text);
must_check bool quicklist_peek(const struct quicklist *list, enum quicklist_end end, struct listpack_value *value);
void quicklist_drop(struct quicklist *list, enum quicklist_end end); /* it is not empty */

/* At most `count` elements from `start` on; below zero counts from the tail. Returns how many are gone. */
uint64_t quicklist_delete_range(struct quicklist *list, int64_t start, uint64_t count);

/* --- iterators --- */

enum quicklist_direction { QUICKLIST_FORWARD, QUICKLIST_BACKWARD };

/* Stands on an element: the one that next() gave last or, when that was deleted, the one that next() gives now. Only
 * its own changes may happen to the list; once one has, the list is whole again only after quicklist_iter_fini. */
struct quicklist_iter {
    const struct quicklist *list;
    struct quicklist *changed;   /* the list, when the node has to be settled before it is left */
    struct quicklist_node *node; /* NULL: beyond the end */
    void *opened;                /* a copy of the node's content, if that is compressed; owned */
    listpack_at at;
    uint64_t index;
    enum quicklist_direction direction;
    bool is_fresh; /* the element has not been given yet */
};

/* The first element given is that at `index` (below zero from the tail); none if there is no such index. */
void quicklist_iter_init(struct quicklist_iter *iter, const struct quicklist *list, int64_t index,
                         enum quicklist_direction direction);
must_check bool quicklist_iter_next(struct quicklist_iter *iter, struct listpack_value *value);
void quicklist_iter_fini(struct quicklist_iter *iter); /* always, also after next() was false */

/* The element that next() gave last. `list` is the iterator's. Afterwards the iterator goes on as if nothing had been:
 * behind the element, and an inserted one is given if it lies ahead. */
void quicklist_insert_before(struct quicklist *list, struct quicklist_iter *iter, struct slice text);
void quicklist_insert_after(struct quicklist *list, struct quicklist_iter *iter, struct slice text);
void quicklist_replace(struct quicklist *list, struct quicklist_iter *iter, struct slice text);
void quicklist_delete(struct quicklist *list, struct quicklist_iter *iter);

/* --- searching: what is looked for is parsed once --- */

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

/* --- nodes, for who saves, loads or describes a list --- */

uint32_t quicklist_node_count(const struct quicklist *list);
struct quicklist_node *quicklist_first_node(const struct quicklist *list); /* NULL: there is none */
struct quicklist_node *quicklist_next_node(const struct quicklist *list, const struct quicklist_node *node);

bool quicklist_node_is_plain(const struct quicklist_node *node); /* its bytes are the element, not a listpack */
uint32_t quicklist_node_elements(const struct quicklist_node *node);
size_t quicklist_node_size_bytes(const struct quicklist_node *node); /* uncompressed */
/* The bytes, uncompressed; `scratch` is overwritten if it is needed for that. */
struct slice quicklist_node_bytes(const struct quicklist_node *node, struct buffer *scratch);
/* The compressed bytes, if the node is: they can be saved as they are. */
must_check bool quicklist_node_compressed(const struct quicklist_node *node, struct slice *bytes);

/* Adds the elements of a listpack behind the tail and takes it over; NULL is left. It may be empty. A plain node of a
 * saved list is pushed like any other text. */
void quicklist_append_listpack(struct quicklist *list, struct listpack **pack);
