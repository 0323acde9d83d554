/* Small values of all families for the simulation of merge/, and operations on them: total functions of the value,
 * their words and their wall time. Limits are small, so that they are met: an integer beyond VALUE_LIMIT is refused as
 * an overflow, a pop looks VALUE_SEARCH elements deep. */
#pragma once

#include "base/random.h"
#include "merge/operation.h"

enum {
    VALUE_LIMIT = 60,
    VALUE_SEARCH = 4,
    VALUE_STRING_MOST = 40,
    VALUE_LIST_MOST = 24,
    VALUE_MEMBERS = 4,
    VALUE_FIELD_MOST = 8,
    VALUE_STREAM_MOST = 12
};

enum value_type {
    VALUE_STRING = 's',
    VALUE_LIST = 'l',
    VALUE_SET = 'S',
    VALUE_HASH = 'h',
    VALUE_ZSET = 'z',
    VALUE_STREAM = 'x'
};

/* Unused bytes are zero, so equal values have equal bytes behind `references`. */
struct merge_value {
    uint32_t references;
    uint8_t type;
    uint8_t count;   /* of a string's bytes, a list's elements, a stream's entries */
    uint8_t members; /* a bit each: of sets, hashes, sorted sets */
    uint8_t pad;
    int64_t deadline; /* 0: none */
    int64_t member_deadline[VALUE_MEMBERS];
    union {
        char string[VALUE_STRING_MOST];
        char list[VALUE_LIST_MOST];
        struct {
            uint8_t size[VALUE_MEMBERS];
            char text[VALUE_MEMBERS][VALUE_FIELD_MOST];
        } hash;
        double score[VALUE_MEMBERS];
        struct {
            uint64_t last;
            uint64_t id[VALUE_STREAM_MOST];
            uint8_t state[VALUE_STREAM_MOST]; /* 0, ENTRY_PENDING, ENTRY_DONE: what the group did with it */
        } stream;
    } of;
};

/* clang-format off */
/*       kind and whether it overwrites */
#define VALUE_KINDS(KIND) \
    KIND(SET, true) KIND(DEL, true) KIND(EVICT, true) KIND(RESTORE, true) KIND(SETKEEP, false) \
    KIND(INCRBY, false) KIND(INCRF, false) KIND(APPEND, false) KIND(SETRANGE, false) \
    KIND(LPUSH, false) KIND(RPUSH, false) KIND(POPV, false) KIND(LREM, false) KIND(LSET, false) KIND(LTRIM, false) \
    KIND(LINSERT, false) KIND(SADD, false) KIND(SREM, false) KIND(HSET, false) KIND(HDEL, false) \
    KIND(HINCRBY, false) KIND(ZADD, false) KIND(ZGT, false) KIND(ZREM, false) KIND(ZINCRBY, false) \
    KIND(XADD, false) KIND(XDEL, false) KIND(XTRIM, false) KIND(XDELIVER, false) KIND(XACK, false) \
    KIND(PEXPIREAT, false) KIND(PERSIST, false) KIND(MEXPIREAT, false)
/* clang-format on */

enum value_kind {
#define KIND(name, overwrites) KIND_##name,
    VALUE_KINDS(KIND)
#undef KIND
        KIND_COUNT
};

struct value_part {
    uint8_t kind;
    uint8_t member; /* index */
    char a, b;      /* elements, ends */
    uint8_t text_size;
    char text[VALUE_FIELD_MOST];
    int64_t n, m;
    double f;
};

enum value_profile { PROFILE_ALL, PROFILE_CRASH, PROFILE_CLOCK, PROFILE_EXPIRY, PROFILE_EVICT, PROFILE_COUNT };

extern const struct merge_model value_model;

bool value_kind_overwrites(uint8_t kind);
struct merge_value *value_apply_part(struct merge_value *value, const struct value_part *part, int64_t wall);
bool value_equal(const struct merge_value *a, const struct merge_value *b);
/* A command as it is resolved where it runs; `value` is what its client sees. Returns false if it changes nothing. */
bool value_random_part(struct random *random, struct merge_value *value, int64_t wall, uint64_t origin,
                       enum value_profile profile, struct value_part *part);
int value_print(char *out, size_t size, const struct merge_value *value);
int value_print_part(char *out, size_t size, const struct value_part *part);
