/* Sorted sets: members with a score, in order of score, then of member. Small ones are a listpack of member, score,
 * member, score ... in that order; from the limits on they are a table of items by member and an index of their order
 * (zindex.h), and stay so. A score in a listpack is an integer if it is a whole number, else its text. */
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
    uint64_t listpack_entries; /* members a listpack may have */
    uint64_t listpack_bytes;   /* of the longest member in it */
};

/* Is the score one that a listpack holds as an integer? */
static inline bool zset_score_is_whole(double score)
{
    return score >= -0x1p62 && score <= 0x1p62 && score == (double)(int64_t)score;
}

/* Is called with each member; the slice is good until it returns. */
typedef void (*zset_member_fn)(struct slice member, double score, void *context);

struct value zset_create(void);
uint64_t zset_count(struct value zset);
bool zset_score(struct value zset, struct slice member, double *score); /* false: there is no such member */
/* False: there is no such member; else the number of members before it. */
bool zset_rank(struct value zset, struct slice member, uint64_t *rank, double *score);

bool zset_remove(struct value *zset, struct slice member); /* false: it was not there */

/* What a member's score becomes; *score holds the old one if there is one, else 0, and gets the new. */
enum zset_verdict {
    ZSET_LEAVE, /* nothing changes */
    ZSET_STORE
};
typedef enum zset_verdict (*zset_decide_fn)(bool is_there, double *score, void *context);
enum zset_outcome { ZSET_LEFT, ZSET_SAME, ZSET_CHANGED, ZSET_ADDED }; /* SAME: stored, and it was that already */
/* Looks for the member, asks what to do and does it. Scores are never NaN. */
enum zset_outcome zset_update(struct value *zset, const struct zset_limits *limits, struct slice member,
                              zset_decide_fn decide, void *context);
bool zset_put(struct value *zset, const struct zset_limits *limits, struct slice member,
              double score); /* whatever was there; true: the member is new */

/* --- ranges: ranks first ... end - 1; first == end: none --- */

struct zset_span {
    uint64_t first, end;
};

struct zset_scores {
    double least, most;
    bool above_least, below_most; /* without the bound itself */
};

struct zset_lex_bound {
    enum zindex_lex kind;
    struct slice member;
    bool excluded; /* the bound itself is out */
};

struct zset_members {
    struct zset_lex_bound least, most;
};

struct zset_span zset_span_of_scores(struct value zset, const struct zset_scores *scores);
/* Means something where all scores are the same, and is some span otherwise. */
struct zset_span zset_span_of_members(struct value zset, const struct zset_members *members);
void zset_remove_span(struct value *zset, struct zset_span span);

/* --- walking; the set must not change meanwhile --- */

struct zset_walk {
    struct value zset;
    uint64_t left;
    bool backwards;
    listpack_at at;              /* listpack: of the next member */
    struct zindex_cursor cursor; /* else */
    char scratch[NUMBER_I64_SPACE];
};

/* The members of a span, in order or backwards. */
void zset_walk_begin(struct zset_walk *walk, struct value zset, struct zset_span span, bool backwards);
/* All members from the first with at least this score on. */
void zset_walk_from_score(struct zset_walk *walk, struct value zset, double least);
/* The member is good until the next call; false: the end. */
bool zset_walk_next(struct zset_walk *walk, struct slice *member, double *score);

/* As SCAN: about `want` members from cursor on; returns the next one, 0: the end. A listpack is given whole. */
uint64_t zset_scan(struct value zset, uint64_t cursor, uint64_t want, zset_member_fn fn, void *context);
void zset_random(struct value zset, struct random *random, zset_member_fn fn, void *context); /* one; not empty */
/* `count` different members (at most all), in no order. */
void zset_random_some(struct value zset, struct random *random, uint64_t count, zset_member_fn fn, void *context);

/* --- gathering members that come in any order, for sets that are made as a whole --- */

/* All zero is a valid empty one. */
struct zset_builder {
    struct table items; /* by member */
    struct {
        struct zindex_item **items;
        uint64_t count, capacity;
    } list;           /* the same in the order in which they came, which often is that of the set */
    uint64_t longest; /* bytes of a member */
    uint64_t text_bytes;
};

struct zindex_item; /* its score may be changed until zset_build */
struct zindex_item *zset_builder_find(const struct zset_builder *builder, struct slice member); /* NULL: not yet */
void zset_builder_add(struct zset_builder *builder, struct slice member, double score);         /* not there yet */
/* The set of what was gathered; the builder is empty again. */
struct value zset_build(struct zset_builder *builder, const struct zset_limits *limits);

void zset_validate(struct value zset);
