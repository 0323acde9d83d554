/* Sorted sets: members with a score, ordered by score, then by member. A small sorted set is a listpack of member,
 * score, member, score ... in that order. Beyond its limits it becomes a table of items by member and an index of their
 * order (zindex.h), and stays so. A score in a listpack is an integer if it is a whole number, otherwise a text. */
#pragma once

#include "base/compiler.h"
#include "base/number.h"
#include "base/random.h"
#include "base/slice.h"
#include "base/table.h"
#include "data/listpack.h"
#include "data/value.h"
#include "data/zindex.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct value_ops zset_ops;

struct zset_limits {
    uint64_t listpack_entries; /* most members in a listpack */
    uint64_t listpack_bytes;   /* longest member in a listpack */
};

/* True if a listpack holds the score as an integer. */
static inline bool zset_score_is_whole(double score)
{
    return score >= -0x1p62 && score <= 0x1p62 && score == (double)(int64_t)score;
}

/* Called with each member. The slice is valid until it returns. */
typedef void (*zset_member_fn)(struct slice member, double score, void *context);

struct value zset_create(void);
uint64_t zset_count(struct value zset);
bool zset_score(struct value zset, struct slice member, double *score); /* false: there is no such member */
/* False: there is no such member. *rank is the number of members before it. */
bool zset_rank(struct value zset, struct slice member, uint64_t *rank, double *score);

bool zset_remove(struct value *zset, struct slice member); /* false: there was no such member */

/* Decides the new score of a member. At first *score is the old score, or 0 if the member does not exist; the function
 * writes the new score. */
enum zset_verdict {
    ZSET_LEAVE, /* no change */
    ZSET_STORE
};
typedef enum zset_verdict (*zset_decide_fn)(bool is_there, double *score, void *context);
enum zset_outcome { ZSET_LEFT, ZSET_SAME, ZSET_CHANGED, ZSET_ADDED }; /* SAME: stored, but equal to the old score */
/* Looks the member up, calls `decide` and applies its decision. Scores are never NaN. */
enum zset_outcome zset_update(struct value *zset, const struct zset_limits *limits, struct slice member,
                              zset_decide_fn decide, void *context);
bool zset_put(struct value *zset, const struct zset_limits *limits, struct slice member,
              double score); /* adds the member or replaces its score; true: the member is new */

/* --- ranges: ranks first ... end - 1; first == end: empty --- */

struct zset_span {
    uint64_t first, end;
};

struct zset_scores {
    double least, most;
    bool above_least, below_most; /* true: the bound is exclusive */
};

struct zset_lex_bound {
    enum zindex_lex kind;
    struct slice member;
    bool excluded; /* true: the bound is exclusive */
};

struct zset_members {
    struct zset_lex_bound least, most;
};

struct zset_span zset_span_of_scores(struct value zset, const struct zset_scores *scores);
/* The result has a meaning only if all scores are equal. */
struct zset_span zset_span_of_members(struct value zset, const struct zset_members *members);
void zset_remove_span(struct value *zset, struct zset_span span);
/* The members outside of the span, of which there are some. Not of a listpack; the copy is none either, so it has the
 * encoding that zset_remove_span would leave. */
struct value zset_copy_without(struct value zset, struct zset_span span);

/* --- iterating; the sorted set must not change meanwhile --- */

struct zset_walk {
    struct value zset;
    uint64_t left;
    bool backwards;
    listpack_at at;              /* listpack: the next member */
    struct zindex_cursor cursor; /* other sorted sets */
    char scratch[NUMBER_I64_SPACE];
};

/* Iterates over the members of a span, in order or backwards. */
void zset_walk_begin(struct zset_walk *walk, struct value zset, struct zset_span span, bool backwards);
/* Iterates over all members with at least this score. */
void zset_walk_from_score(struct zset_walk *walk, struct value zset, double least);
/* Iterates backwards over the members before `mark`, of which it needs no more; NULL: over all. Not for a listpack. */
void zset_walk_before(struct zset_walk *walk, struct value zset, const struct zindex_item *mark);
/* False: the end. The member is valid until the next call. */
bool zset_walk_next(struct zset_walk *walk, struct slice *member, double *score);

/* As ZSCAN: visits about `want` members from `cursor` on and returns the next cursor, 0: the end. Visits all of a
 * listpack. */
uint64_t zset_scan(struct value zset, uint64_t cursor, uint64_t want, zset_member_fn fn, void *context);
/* Visits one random member; the sorted set is not empty. */
void zset_random(struct value zset, struct random *random, zset_member_fn fn, void *context);
/* Visits `count` different random members (at most all), in no particular order. */
void zset_random_some(struct value zset, struct random *random, uint64_t count, zset_member_fn fn, void *context);

/* --- building a sorted set as a whole, from members in any order --- */

/* All-zero memory is an empty builder. */
struct zset_builder {
    struct table items; /* by member */
    struct {
        struct zindex_item **items;
        uint64_t count, capacity;
    } list;           /* the same items in the order of arrival, which often is the order of the sorted set */
    uint64_t longest; /* size of the longest member */
    uint64_t text_bytes;
};

struct zindex_item; /* its score may change until zset_build */
struct zindex_item *zset_builder_find(const struct zset_builder *builder, struct slice member); /* NULL: not found */
/* The member is not in the builder. */
void zset_builder_add(struct zset_builder *builder, struct slice member, double score);
/* Returns the sorted set. The builder is empty again. `limits` NULL: it is only to be replied, in any form; a score of
 * -0 stays one, which else becomes 0. */
struct value zset_build(struct zset_builder *builder, const struct zset_limits *limits);

void zset_validate(struct value zset);
