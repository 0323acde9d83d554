/* An entry: a key with its value, in one allocation:
 *
 *     header 8 | expire 8 ? | version 8 ? | word 8 ? | long key size 8 ? | key bytes | inline value bytes ?
 *
 * Short strings follow the key (inline), and integers are in the word. For all other values the word is a pointer: to a
 * blob for longer strings, for other types to the value's data (data/value.h). If members of the value have deadlines,
 * the `expire` word points to struct subkey_ttls, which also has the key's deadline. Entries without such members need
 * no memory for this, and one comparison tells whether anything is due. The version belongs to the key, not to its
 * value: it stays when the key gets another value or deadline, and a value that moves to another key leaves it behind.
 * The lock of the key's stripe guards an entry; only store/access.h changes it. */
#pragma once

#include "base/blob.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "data/deadlines.h"
#include "data/value.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The types of values: number, and the name of the row that tells files of the type (persist/types.h). To add a type,
 * add a line. */
#define EVERY_TYPE(DO)                                             \
    DO(TYPE_STRING, type_string)                                   \
    DO(TYPE_LIST, type_list)                                       \
    DO(TYPE_SET, type_set)                                         \
    DO(TYPE_ZSET, type_zset)                                       \
    DO(TYPE_HASH, type_hash)                                       \
    DO(TYPE_STREAM, type_stream)                                   \
    DO(TYPE_NESTED, type_nested) /* nested hashes (KEYDB.NHSET) */ \
    DO(TYPE_CRON, type_cron)     /* jobs (KEYDB.CRON, store/jobs.h) */

#define TYPE_NUMBER(type, row) type,
enum value_type { EVERY_TYPE(TYPE_NUMBER) TYPE_COUNT };

enum entry_flag {
    ENTRY_EXPIRES = 1 << 0,
    ENTRY_VERSIONED = 1 << 1, /* there is a version */
    ENTRY_WORD = 1 << 2,      /* there is a word: the value, or a pointer to it; otherwise the value is inline */
    ENTRY_LONG_KEY = 1 << 3,  /* the key's size is in a word of its own */
    ENTRY_WORDS_MASK = 15,
    ENTRY_MEMBERS = 1 << 4, /* members have deadlines: the word of ENTRY_EXPIRES points to struct subkey_ttls */
    ENTRY_MARK = 1 << 5     /* and those above it: it is not of the moment of a snapshot (snapshot_live.h) */
};
enum { ENTRY_MARKS = 3, ENTRY_MARKS_MASK = 7 * ENTRY_MARK };

enum {
    ENTRY_EMBSTR_BYTES = 44,   /* largest string that OBJECT ENCODING calls embstr */
    ENTRY_INLINE_BYTES = 1024, /* longer strings are in a blob */
    ENTRY_SHORT_KEY_BYTES = 255
};

#define EXPIRE_NEVER INT64_C(-1)  /* no deadline */
#define EXPIRE_KEEP (INT64_C(-2)) /* keeps the old deadline */

/* The deadlines of a key and of its members; see store/subkey_ttl.h. */
struct subkey_ttls {
    int64_t due_ms;           /* the earliest of all */
    int64_t key_ms;           /* the key's own deadline, or EXPIRE_NEVER */
    struct deadlines members; /* not empty; only for existing members */
    struct entry *view;       /* a copy of the key without the members that are due, or NULL */
};

struct entry {
    uint32_t type : 4;     /* enum value_type */
    uint32_t encoding : 4; /* enum value_encoding */
    uint32_t clock : 24;   /* LRU: seconds; LFU: minutes and a counter */
    uint16_t inline_size;  /* size of an inline value */
    uint8_t flags;         /* enum entry_flag */
    uint8_t key_size;
    char rest[];
};
static_assert(TYPE_COUNT <= 16 && ENCODING_COUNT <= 16, "an entry has four bits for each");
static_assert(sizeof(struct entry) == 8, "the header is part of the price of every key");

/* Size of the words that `flags` name: 8 bytes for each bit. A table, since not all supported processors can count
 * bits. */
static inline size_t entry_words_bytes(unsigned flags)
{
    return (UINT64_C(0x4332322132212110) >> (4 * (flags & ENTRY_WORDS_MASK)) & 15) * 8;
}

static inline size_t entry_key_offset(const struct entry *entry)
{
    return entry_words_bytes(entry->flags);
}

static inline uint64_t entry_word_at(const struct entry *entry, unsigned flag)
{
    uint64_t word;

    memcpy(&word, entry->rest + entry_words_bytes(entry->flags & (flag - 1)), sizeof(word));
    return word;
}

static inline void entry_word_store(struct entry *entry, unsigned flag, uint64_t word)
{
    memcpy(entry->rest + entry_words_bytes(entry->flags & (flag - 1)), &word, sizeof(word));
}

static inline struct slice entry_key(const struct entry *entry)
{
    size_t size = entry->key_size;

    if (UNLIKELY((entry->flags & ENTRY_LONG_KEY) != 0))
        size = entry_word_at(entry, ENTRY_LONG_KEY);
    return (struct slice){entry->rest + entry_key_offset(entry), size};
}

/* For an entry with ENTRY_MEMBERS. */
static inline struct subkey_ttls *entry_subkey_ttls(const struct entry *entry)
{
    return (struct subkey_ttls *)(uintptr_t)entry_word_at(entry, ENTRY_EXPIRES); /* NOLINT(performance-no-int-to-ptr) */
}

/* The key's own deadline. */
static inline int64_t entry_expire_ms(const struct entry *entry)
{
    if ((entry->flags & ENTRY_EXPIRES) == 0)
        return EXPIRE_NEVER;
    if (UNLIKELY((entry->flags & ENTRY_MEMBERS) != 0))
        return entry_subkey_ttls(entry)->key_ms;
    return (int64_t)entry_word_at(entry, ENTRY_EXPIRES);
}

/* What the last operation on the key was (store/stamp.h); 0: unknown. */
static inline uint64_t entry_version(const struct entry *entry)
{
    return (entry->flags & ENTRY_VERSIONED) != 0 ? entry_word_at(entry, ENTRY_VERSIONED) : 0;
}

/* The earliest deadline of its members. */
static inline int64_t entry_member_due_ms(const struct entry *entry)
{
    return (entry->flags & ENTRY_MEMBERS) != 0 ? deadlines_first_ms(&entry_subkey_ttls(entry)->members) : EXPIRE_NEVER;
}

static inline bool entry_is_int(const struct entry *entry)
{
    return entry->type == TYPE_STRING && entry->encoding == ENCODING_INT;
}

static inline int64_t entry_int(const struct entry *entry)
{
    return (int64_t)entry_word_at(entry, ENTRY_WORD);
}

/* The blob with a long string's bytes; NULL: the string is inline or a number. */
static inline struct blob *entry_blob(const struct entry *entry)
{
    if ((entry->flags & ENTRY_WORD) == 0 || entry->type != TYPE_STRING || entry->encoding == ENCODING_INT)
        return NULL;
    return (struct blob *)(uintptr_t)entry_word_at(entry, ENTRY_WORD); /* NOLINT(performance-no-int-to-ptr) */
}

/* The value of a type other than string. */
static inline struct value entry_value(const struct entry *entry)
{
    return (struct value){(void *)(uintptr_t)entry_word_at(entry, ENTRY_WORD), /* NOLINT(performance-no-int-to-ptr) */
                          (enum value_encoding)entry->encoding};
}

#define ENTRY_INT_TEXT_BYTES 21

/* Returns a string's bytes. A number is written into `scratch`. Valid until the entry changes or its stripe is
 * released. */
struct slice entry_string(const struct entry *entry, char scratch[ENTRY_INT_TEXT_BYTES]);
size_t entry_string_size(const struct entry *entry);
const char *entry_encoding_name(const struct entry *entry); /* "embstr" */
