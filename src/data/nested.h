/* Trees of texts: what KEYDB.NHSET makes. A node is a tree of named nodes, a text, or a list of texts; a path names the
 * way from the root, its components separated by dots. Depth is limited, so that walks may recurse. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "data/value.h"

#include <stdbool.h>
#include <stdint.h>

enum { NESTED_DEPTH_MOST = 256 }; /* components of a path */

extern const struct value_ops nested_ops; /* a value's data is its root */

enum nested_kind { NESTED_TREE, NESTED_TEXT, NESTED_LIST };

struct nested;

/* A path that has been looked at: no component is empty, there are not too many. */
enum nested_path { NESTED_PATH_GOOD, NESTED_PATH_EMPTY_COMPONENT, NESTED_PATH_TOO_DEEP };
enum nested_path nested_path_check(struct slice path);
/* Takes the first component off; *path is what is left, without data behind the last one. */
struct slice nested_path_step(struct slice *path);

struct value nested_create(void); /* an empty tree */
/* Puts a text (one value) or a list there; whatever was there or in the way goes. path: empty for the root itself.
 * True: something was there. */
bool nested_put(struct value *root, struct slice path, const struct slice *values, uint32_t value_count);
const struct nested *nested_find(struct value root, struct slice path); /* NULL: nothing is there */

enum nested_kind nested_kind(const struct nested *node);
uint64_t nested_count(const struct nested *node);                    /* of a tree's children, of a list's texts */
struct slice nested_text(const struct nested *node, uint64_t index); /* of a list; of a text with 0 */
typedef void (*nested_fn)(struct slice name, const struct nested *node, void *context);
void nested_each(const struct nested *tree, nested_fn fn, void *context); /* its children, in no order */

/* {"name" : value, ...}, ["text", ...], "text"; bytes that are no ASCII stay as they are. */
void nested_append_json(const struct nested *node, struct buffer *json);
void nested_append_json_text(struct slice text, struct buffer *json);
