/* One key with its value, in one allocation:
 *
 *     header 8 | expire 8 ? | version 8 ? | word 8 ? | long key size 8 ? | key bytes | inline value bytes ?
 *
 * Short strings stand behind the key (inline), integers in the word; everything else is a pointer in the word: a blob
 * for longer strings, for other types what data/value.h calls a value's data.
 * When members of the value have deadlines, what stands for `expire` points to struct subkey_ttls, which has the key's,
 * too: entries without such members pay nothing for them, and one look at one time tells whether anything is due.
 * Guarded by the lock of the key's stripe; changed only through store/access.h. */
#pragma once

#include "base/blob.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "data/deadlines.h"
#include "data/value.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum value_type {
    TYPE_STRING,
    TYPE_LIST,
    TYPE_SET,
    TYPE_ZSET,
    TYPE_HASH,
    TYPE_STREAM,
    TYPE_NESTED, /* trees of texts, which KeyDB has no name for */
    TYPE_CRON,   /* jobs (store/jobs.h), nor for these */
    TYPE_COUNT
};

enum entry_flag {
    ENTRY_EXPIRES = 1 << 0,
    ENTRY_VERSIONED = 1 << 1,
    ENTRY_WORD = 1 << 2,     /* there is a word: the value, or a pointer to it; else the value is inline */
    ENTRY_LONG_KEY = 1 << 3, /* key_size is in a word of its own */
    ENTRY_WORDS_MASK = 15,
    ENTRY_MEMBERS = 1 << 4 /* members have deadlines: the word of ENTRY_EXPIRES points to struct subkey_ttls */
};

enum {
    ENTRY_EMBSTR_BYTES = 44,   /* what OBJECT ENCODING calls embstr */
    ENTRY_INLINE_BYTES = 1024, /* longer strings live in a blob */
    ENTRY_SHORT_KEY_BYTES = 255
};

#define EXPIRE_NEVER INT64_C(-1)  /* no deadline */
#define EXPIRE_KEEP (INT64_C(-2)) /* as it was */

/* When a key and its members go; see store/subkey_ttl.h. */
struct subkey_ttls {
    int64_t due_ms;           /* the earliest of all */
    int64_t key_ms;           /* the key's own deadline, or EXPIRE_NEVER */
    struct deadlines members; /* not empty; of members that are there */
    struct entry *view;       /* the key without the members that are due, or NULL */
};

struct entry {
    uint32_t type : 4;     /* enum value_type */
    uint32_t encoding : 4; /* enum value_encoding */
    uint32_t clock : 24;   /* LRU: seconds; LFU: minutes and a counter */
    uint16_t inline_size;  /* bytes of an inline value */
    uint8_t flags;         /* enum entry_flag */
    uint8_t key_size;
    char rest[];
};
static_assert(sizeof(struct entry) == 8, "the header is part of the price of every key");

/* Bytes of the words that `flags` say are there: 8 a set bit. A table, as not every processor we build for counts. */
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

/* Of an entry with ENTRY_MEMBERS. */
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

/* The first of its members' deadlines. */
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

/* The blob that holds a long string's bytes; NULL when they are inline or a number. */
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

/* A string's bytes. A number is written into `scratch`. Valid until the entry changes or its stripe is released. */
struct slice entry_string(const struct entry *entry, char scratch[ENTRY_INT_TEXT_BYTES]);
size_t entry_string_size(const struct entry *entry);
const char *entry_encoding_name(const struct entry *entry); /* "embstr" */
