/* Nested hashes, the values of KEYDB.NHSET. A node is a tree of named nodes, a text, or a list of texts. A path names a
 * node by the names from the root, separated by dots. The depth is limited, so recursion over the tree is safe. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "data/value.h"

#include <stdbool.h>
#include <stdint.h>

enum { NESTED_DEPTH_MOST = 256 }; /* most components of a path */

extern const struct value_ops nested_ops;

enum nested_kind { NESTED_TREE, NESTED_TEXT, NESTED_LIST };

struct nested;

/* The result of checking a path: valid, with an empty component, or with too many. */
enum nested_path { NESTED_PATH_GOOD, NESTED_PATH_EMPTY_COMPONENT, NESTED_PATH_TOO_DEEP };
enum nested_path nested_path_check(struct slice path);
/* Removes the first component and returns it. *path is the rest; its data is NULL after the last component. */
struct slice nested_path_step(struct slice *path);

struct value nested_create(void); /* an empty tree */
/* Stores a text (one value) or a list at the path, replacing everything that was there or on the way to it. An empty
 * path is the root itself. True: the path existed. What was replaced and takes long to free is left in *replaced, as a
 * value that is the caller's; data NULL: there is no such thing. If `replaced` is NULL all is freed here. */
bool nested_put(struct value *value, struct slice path, const struct slice *values, uint32_t value_count,
                struct value *replaced);
const struct nested *nested_find(struct value value, struct slice path); /* NULL: the path does not exist */

enum nested_kind nested_kind(const struct nested *node);
uint64_t nested_count(const struct nested *node); /* number of children of a tree, or of texts of a list */
struct slice nested_text(const struct nested *node, uint64_t index); /* one text of a list; index 0 for a text */
typedef void (*nested_fn)(struct slice name, const struct nested *node, void *context);
/* Visits its children in no particular order. */
void nested_each(const struct nested *tree, nested_fn fn, void *context);

/* Appends {"name" : value, ...}, ["text", ...] or "text". Bytes outside of ASCII are not changed. */
void nested_append_json(const struct nested *node, struct buffer *json);
void nested_append_json_text(struct slice text, struct buffer *json);
