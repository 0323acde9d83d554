/* Lists of byte strings and integers in one piece of memory: what small lists, hashes, sets, sorted sets and the nodes
 * of larger ones are kept in. The bytes are those of RDB files, so that they are loaded and saved as they are:
 *
 *     total bytes u32 | element count u16 (65535: walk) | element ... | 0xFF        little-endian
 *     element = encoding and data | size of those, 1 to 5 bytes, readable backwards
 *
 * Text that is a canonical 64-bit integer is kept as a number, in the smallest form; it reads back as the same text.
 * An element is named by its offset from the start (listpack_at), which changes of elements behind it leave alone.
 * A listpack has at most LISTPACK_MOST_BYTES: ask listpack_fits before adding. Not shared: its owner guards it. */
#pragma once

#include "base/compiler.h"
#include "base/number.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LISTPACK_MOST_BYTES (UINT32_C(1) << 30)
#define LISTPACK_NONE 0 /* no element */

struct listpack; /* the bytes themselves */
typedef uint32_t listpack_at;

struct listpack_value {
    struct slice text; /* data NULL: it is a number */
    int64_t number;
};

enum { LISTPACK_HEAD_BYTES = 6, LISTPACK_COUNT_UNKNOWN = 65535 };

struct listpack *listpack_create(void);
struct listpack *listpack_copy(const struct listpack *list);
void listpack_destroy(struct listpack **list); /* NULL is fine; leaves NULL */

static inline uint32_t listpack_bytes(const struct listpack *list) /* in all, with head and end */
{
    uint32_t bytes;

    memcpy(&bytes, list, sizeof(bytes));
    return bytes;
}
uint32_t listpack_count(const struct listpack *list);

/* May elements with so many bytes of text in all, so many of them, be added? */
bool listpack_fits(const struct listpack *list, uint64_t text_bytes, uint64_t element_count);

/* --- walking --- */

listpack_at listpack_first(const struct listpack *list);
listpack_at listpack_last(const struct listpack *list);
listpack_at listpack_next(const struct listpack *list, listpack_at at);
listpack_at listpack_previous(const struct listpack *list, listpack_at at);
listpack_at listpack_seek(const struct listpack *list, int64_t index); /* -1: the last; NONE: out of range */

/* --- reading; slices are valid until the list changes --- */

struct listpack_value listpack_get(const struct listpack *list, listpack_at at);
/* As text; a number is written into `scratch`. */
struct slice listpack_text(const struct listpack *list, listpack_at at, char scratch[NUMBER_I64_SPACE]);
bool listpack_equals(const struct listpack *list, listpack_at at, struct slice text);
/* The first of `at` and every (skip + 1)-th element after it that is this text. */
listpack_at listpack_find(const struct listpack *list, listpack_at at, struct slice text, unsigned skip);
static inline struct slice listpack_value_text(const struct listpack_value *value, char scratch[NUMBER_I64_SPACE])
{
    return value->text.data != NULL ? value->text : slice_make(scratch, number_format_i64(scratch, value->number));
}

/* --- changing; the list may move --- */

/* Before `at` (NONE: at the end). Returns where it stands. The text must not lie in the list. */
listpack_at listpack_insert(struct listpack **list, listpack_at at, struct slice text);
listpack_at listpack_insert_int(struct listpack **list, listpack_at at, int64_t number);
static inline void listpack_append(struct listpack **list, struct slice text)
{
    (void)listpack_insert(list, LISTPACK_NONE, text);
}
static inline void listpack_append_int(struct listpack **list, int64_t number)
{
    (void)listpack_insert_int(list, LISTPACK_NONE, number);
}
void listpack_replace(struct listpack **list, listpack_at at, struct slice text);
void listpack_replace_int(struct listpack **list, listpack_at at, int64_t number);
/* Removes `count` elements from `at` on (fewer if there are not so many); returns where the one behind them stands. */
listpack_at listpack_remove(struct listpack **list, listpack_at at, uint32_t count);
void listpack_clear(struct listpack **list);
/* Adds the elements of `other` from `at` to the end (NONE: none) behind those of the list; `other` is left alone. */
void listpack_append_list(struct listpack **list, const struct listpack *other, listpack_at at);

/* --- from outside --- */

/* Is this a listpack? Looks at every byte that later calls rely on. */
must_check bool listpack_check(struct slice bytes);
struct listpack *listpack_from_bytes(struct slice bytes); /* checked before; copied */
static inline struct slice listpack_as_bytes(const struct listpack *list)
{
    return slice_make((const char *)list, listpack_bytes(list));
}

void listpack_validate(const struct listpack *list); /* asserts that it is one, and its count */
