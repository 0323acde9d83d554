/* Functions that the commands of sorted sets share. */
#pragma once

#include "commands/shared/type_options.h"
#include "commands/shared/typed.h"
#include "data/zset.h"

/* The form of members in a reply: alone, each followed by its score, or each with its score in an array of two. */
enum zset_form { ZSET_MEMBERS, ZSET_FLAT_SCORES, ZSET_NESTED_SCORES };

static inline enum zset_form zset_form_of(const struct request *request, bool with_scores)
{
    return !with_scores ? ZSET_MEMBERS : request->proto == 3 ? ZSET_NESTED_SCORES : ZSET_FLAT_SCORES;
}

static inline bool zset_read(struct request *request, const struct key *key, struct value *zset)
{
    return typed_read(request, key, TYPE_ZSET, zset);
}

static inline bool zset_edit(struct edit *edit, struct request *request, const struct key *key)
{
    return edit_begin(edit, request, key, TYPE_ZSET);
}

/* Removes a span from the sorted set being edited, and ends the edit with this event. An empty sorted set is
 * deleted. */
void zset_end_with_removal(struct edit *edit, struct zset_span span, const char *event);
/* The same if members and their deadlines were removed already. */
void zset_end_removal(struct edit *edit, const char *event);

/* Replies the members of a span as an array. */
void zset_reply_span(struct output *out, int proto, struct value zset, struct zset_span span, bool backwards,
                     enum zset_form form);
void zset_reply_members(struct output *out, int proto, struct value zset, struct zset_span span, bool backwards,
                        enum zset_form form); /* the same without the array's header */
/* Stores the sorted set (takes it over) in the key, or deletes the key if there are no members. Replies the number of
 * members. */
void zset_store(struct request *request, const struct key *key, struct value zset, const char *event);

/* For a command whose words redis-server 7.0 does not know: files and replicas get the members that come into the key,
 * before zset_build. DEL and ZADD; nothing if nothing changes. */
void zset_effect_built(struct request *request, const struct key *key, const struct zset_builder *built);

/* Checks that reply an error and return false. */
must_check bool zset_parse_score(struct request *request, uint32_t index, double *score);
must_check bool zset_parse_scores(struct request *request, uint32_t least_index, uint32_t most_index,
                                  struct zset_scores *scores);
must_check bool zset_parse_members(struct request *request, uint32_t least_index, uint32_t most_index,
                                   struct zset_members *members);
must_check bool zset_check_member(struct request *request, struct slice member); /* its size */

/* --- adding --- */

struct zset_adding {
    bool only_new, only_there;      /* NX, XX */
    bool only_greater, only_less;   /* GT, LT: existing scores change only in this direction */
    bool counts_changes, increases; /* CH, INCR */
    double score;                   /* score of the current member, or the increment */
    bool is_nan;                    /* the sum is not a number */
};

struct zset_scored {
    struct slice member;
    double score;
};

enum { ZSET_SCORED_ROOM = 16 }; /* this many need no allocation */

/* Adds to the first key, and replies. Returns whether something has changed. */
bool zset_add(struct request *request, struct zset_adding *adding, const struct zset_scored *members, uint32_t count);
