/* Listpacks: byte strings and integers in one piece of memory. Small lists, hashes, sets and sorted sets are listpacks,
 * and so are the nodes of larger lists and of streams. The bytes are those of RDB files, so they are loaded and saved
 * unchanged:
 *
 *     total bytes u32 | element count u16 (65535: walk) | element ... | 0xFF        little-endian
 *     element = encoding and data | size of those, 1 to 5 bytes, readable backwards
 *
 * A text that is a canonical 64-bit integer is stored as a number, in the smallest form; it reads back as the same
 * text. An element's name is its offset from the start (listpack_at). Changes behind an element do not move it. A
 * listpack has at most LISTPACK_MOST_BYTES: call listpack_fits before adding. The owner of a listpack guards it. */
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
    struct slice text; /* data NULL: the element is a number */
    int64_t number;
};

enum { LISTPACK_HEAD_BYTES = 6, LISTPACK_COUNT_UNKNOWN = 65535 };

struct listpack *listpack_create(void);
struct listpack *listpack_copy(const struct listpack *list);
void listpack_destroy(struct listpack **list); /* accepts NULL; leaves NULL */

static inline uint32_t listpack_bytes(const struct listpack *list) /* total size with header and end */
{
    uint32_t bytes;

    memcpy(&bytes, list, sizeof(bytes));
    return bytes;
}
uint32_t listpack_count(const struct listpack *list);

/* True if `element_count` elements with `text_bytes` of text in all can be added. */
bool listpack_fits(const struct listpack *list, uint64_t text_bytes, uint64_t element_count);

/* --- iterating --- */

listpack_at listpack_first(const struct listpack *list);
listpack_at listpack_last(const struct listpack *list);
listpack_at listpack_next(const struct listpack *list, listpack_at at);
listpack_at listpack_previous(const struct listpack *list, listpack_at at);
/* -1: the last element; returns LISTPACK_NONE if out of range. */
listpack_at listpack_seek(const struct listpack *list, int64_t index);

/* --- reading; slices are valid until the listpack changes --- */

struct listpack_value listpack_get(const struct listpack *list, listpack_at at);
/* listpack_next, and the element there; LISTPACK_NONE: *value is left alone. */
listpack_at listpack_get_next(const struct listpack *list, listpack_at at, struct listpack_value *value);
/* Returns the element as text. A number is written into `scratch`. */
struct slice listpack_text(const struct listpack *list, listpack_at at, char scratch[NUMBER_I64_SPACE]);
bool listpack_equals(const struct listpack *list, listpack_at at, struct slice text);
/* Finds this text, starting at `at` and skipping `skip` elements after each comparison. */
listpack_at listpack_find(const struct listpack *list, listpack_at at, struct slice text, unsigned skip);
static inline struct slice listpack_value_text(const struct listpack_value *value, char scratch[NUMBER_I64_SPACE])
{
    return value->text.data != NULL ? value->text : slice_make(scratch, number_format_i64(scratch, value->number));
}

/* --- changing; the listpack may move --- */

/* Inserts before `at` (LISTPACK_NONE: at the end). Returns the new element. The text must not be part of the
 * listpack. */
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
/* Removes `count` elements from `at` on, or fewer at the end. Returns the element behind them. */
listpack_at listpack_remove(struct listpack **list, listpack_at at, uint32_t count);
void listpack_clear(struct listpack **list);
/* Appends the elements of `other` from `at` to its end (LISTPACK_NONE: none). `other` does not change. */
void listpack_append_list(struct listpack **list, const struct listpack *other, listpack_at at);

/* --- both ends of a listpack with room in front ---
 * The first *room bytes of its block are free, and the listpack begins behind them. So what is put or dropped there
 * moves no other element; what is put or dropped at the tail moves none at all. Such a listpack is read like any other,
 * but changed and freed by these functions alone, until listpack_close_room. One without room may be given to them. */

void listpack_push_first(struct listpack **list, uint32_t *room, struct slice text);
void listpack_push_last(struct listpack **list, uint32_t *room, struct slice text);
void listpack_drop_first(struct listpack **list, uint32_t *room); /* there is an element */
void listpack_drop_last(struct listpack **list, uint32_t *room);
void listpack_close_room(struct listpack **list, uint32_t *room); /* the listpack begins its block again: *room is 0 */
static inline void *listpack_block(const struct listpack *list, uint32_t room)
{
    return (char *)(uintptr_t)list - room;
}

/* --- bytes from outside --- */

/* Checks that the bytes are a valid listpack, including every byte that later calls rely on. */
must_check bool listpack_check(struct slice bytes);
struct listpack *listpack_from_bytes(struct slice bytes); /* copies bytes that listpack_check has accepted */
static inline struct slice listpack_as_bytes(const struct listpack *list)
{
    return slice_make((const char *)list, listpack_bytes(list));
}

/* They assert that it is valid, and that its count is right. */
void listpack_validate(const struct listpack *list);
void listpack_validate_with_room(const struct listpack *list, uint32_t room);
