/* Ranges of sorted sets: by rank, by score, by member; replied, counted, stored, removed. */
#include "commands/sorted_set/sorted_set.h"

#include "commands/shared/families.h"

enum range_kind { BY_RANK, BY_SCORE, BY_LEX };

struct range {
    enum range_kind kind;
    bool backwards, with_scores, is_limited;
    int64_t offset, limit; /* limit below zero: all */
    int64_t first, last;   /* BY_RANK; below zero: from the end */
    struct zset_scores scores;
    struct zset_members members;
};

/* ----------------------------------------------------------------------------------------------------- parsing -- */

/* The options of a command, and those that its name implies. */
struct form {
    enum range_kind kind;
    bool backwards;
    bool any_kind;   /* BYSCORE, BYLEX, REV */
    bool any_scores; /* WITHSCORES */
    bool any_limit;  /* LIMIT */
    bool stores;     /* the first key is where the range goes */
};

static bool parse_word(struct request *request, const struct form *form, uint32_t *index, struct range *range)
{
    uint32_t at = *index;

    if (form->any_scores && request_arg_is(request, at, "WITHSCORES")) {
        range->with_scores = true;
    } else if (form->any_limit && request_arg_is(request, at, "LIMIT") && at + 2 < request->arg_count) {
        if (!request_arg_i64(request, at + 1, &range->offset) || !request_arg_i64(request, at + 2, &range->limit))
            return false;
        *index += 2;
    } else if (form->any_kind && request_arg_is(request, at, "BYSCORE") && range->kind == BY_RANK) {
        range->kind = BY_SCORE;
    } else if (form->any_kind && request_arg_is(request, at, "BYLEX") && range->kind == BY_RANK) {
        range->kind = BY_LEX;
    } else if (form->any_kind && request_arg_is(request, at, "REV") && !range->backwards) {
        range->backwards = true;
    } else {
        reply_syntax_error(request);
        return false;
    }
    return true;
}

static bool parse_bounds(struct request *request, uint32_t index, struct range *range)
{
    /* Backward ranges name the greater bound first, but ranks stay in order. */
    uint32_t least = range->backwards ? index + 1 : index, most = range->backwards ? index : index + 1;

    if (range->kind == BY_SCORE)
        return zset_parse_scores(request, least, most, &range->scores);
    if (range->kind == BY_LEX)
        return zset_parse_members(request, least, most, &range->members);
    return request_arg_i64(request, index, &range->first) && request_arg_i64(request, index + 1, &range->last);
}

static bool parse(struct request *request, const struct form *form, struct range *range)
{
    uint32_t bounds = form->stores ? 3 : 2;

    *range = (struct range){.kind = form->kind, .backwards = form->backwards, .limit = -1};
    for (uint32_t i = bounds + 2; i < request->arg_count; i++) {
        if (!parse_word(request, form, &i, range))
            return false;
    }
    if (range->limit != -1 && range->kind == BY_RANK) {
        reply_error(request, "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
        return false;
    }
    if (range->with_scores && range->kind == BY_LEX) {
        reply_error(request, "ERR syntax error, WITHSCORES not supported in combination with BYLEX");
        return false;
    }
    return parse_bounds(request, bounds, range);
}

/* ----------------------------------------------------------------------------------------------------- finding -- */

/* Ranks first ... last, those below zero counted from the end, as a span of `count` members. */
static struct zset_span span_of_ranks(int64_t first, int64_t last, uint64_t count)
{
    int64_t all = (int64_t)count;

    first = first < 0 ? MAX(first + all, INT64_C(0)) : MIN(first, all);
    last = last < 0 ? MAX(last + all, INT64_C(-1)) : MIN(last, all - 1);
    return (struct zset_span){(uint64_t)first, (uint64_t)MAX(last + 1, first)};
}

static struct zset_span limited(struct zset_span span, const struct range *range)
{
    uint64_t count = span.end - span.first, skipped, taken;

    if (range->offset < 0 || (uint64_t)range->offset >= count)
        return (struct zset_span){span.first, span.first};
    skipped = (uint64_t)range->offset;
    taken = count - skipped;
    if (range->limit >= 0)
        taken = MIN(taken, (uint64_t)range->limit);
    if (range->backwards)
        return (struct zset_span){span.end - skipped - taken, span.end - skipped};
    return (struct zset_span){span.first + skipped, span.first + skipped + taken};
}

static struct zset_span find(struct value zset, const struct range *range)
{
    uint64_t count = zset_count(zset);

    if (range->kind == BY_SCORE)
        return limited(zset_span_of_scores(zset, &range->scores), range);
    if (range->kind == BY_LEX)
        return limited(zset_span_of_members(zset, &range->members), range);
    if (range->backwards) {
        struct zset_span span = span_of_ranks(range->first, range->last, count);

        return (struct zset_span){count - span.end, count - span.first};
    }
    return span_of_ranks(range->first, range->last, count);
}

/* ---------------------------------------------------------------------------------------------------- commands -- */

static void reply_range(struct request *request, const struct form *form)
{
    struct range range;
    struct value zset;

    if (!parse(request, form, &range) || !zset_read(request, &request->keys[0], &zset))
        return;
    if (zset.data == NULL)
        reply_array(request, 0);
    else
        zset_reply_span(request->out, request->proto, zset, find(zset, &range), range.backwards,
                        zset_form_of(request, range.with_scores));
}

static void cmd_zrange(struct request *request)
{
    reply_range(request, &(struct form){.kind = BY_RANK, .any_kind = true, .any_scores = true, .any_limit = true});
}

static void cmd_zrevrange(struct request *request)
{
    reply_range(request, &(struct form){.kind = BY_RANK, .backwards = true, .any_scores = true, .any_limit = true});
}

static void cmd_zrangebyscore(struct request *request)
{
    reply_range(request, &(struct form){.kind = BY_SCORE, .any_scores = true, .any_limit = true});
}

static void cmd_zrevrangebyscore(struct request *request)
{
    reply_range(request, &(struct form){.kind = BY_SCORE, .backwards = true, .any_scores = true, .any_limit = true});
}

static void cmd_zrangebylex(struct request *request)
{
    reply_range(request, &(struct form){.kind = BY_LEX, .any_scores = true, .any_limit = true});
}

static void cmd_zrevrangebylex(struct request *request)
{
    reply_range(request, &(struct form){.kind = BY_LEX, .backwards = true, .any_scores = true, .any_limit = true});
}

static void cmd_zrangestore(struct request *request)
{
    const struct form form = {.kind = BY_RANK, .any_kind = true, .any_limit = true, .stores = true};
    const struct zset_limits limits = type_zset_limits();
    struct zset_builder builder = {.longest = 0};
    struct zset_walk walk;
    struct slice member;
    struct range range;
    struct value zset;
    double score;

    if (!parse(request, &form, &range) || !zset_read(request, &request->keys[1], &zset))
        return;
    if (zset.data != NULL) {
        zset_walk_begin(&walk, zset, find(zset, &range), false);
        while (zset_walk_next(&walk, &member, &score))
            zset_builder_add(&builder, member, score);
    }
    zset_store(request, &request->keys[0], zset_build(&builder, &limits), "zrangestore");
}

static void count_range(struct request *request, const struct range *range)
{
    struct zset_span span = {0, 0};
    struct value zset;

    if (!zset_read(request, &request->keys[0], &zset))
        return;
    if (zset.data != NULL)
        span = find(zset, range);
    reply_int(request, (int64_t)(span.end - span.first));
}

static void cmd_zcount(struct request *request)
{
    struct range range = {.kind = BY_SCORE, .limit = -1};

    if (parse_bounds(request, 2, &range))
        count_range(request, &range);
}

static void cmd_zlexcount(struct request *request)
{
    struct range range = {.kind = BY_LEX, .limit = -1};

    if (parse_bounds(request, 2, &range))
        count_range(request, &range);
}

static void remove_range(struct request *request, enum range_kind kind, const char *event)
{
    struct range range = {.kind = kind, .limit = -1};
    struct zset_span span;
    struct edit edit;

    if (!parse_bounds(request, 2, &range) || !zset_edit(&edit, request, &request->keys[0]))
        return;
    if (edit.is_new) {
        reply_int(request, 0);
        return;
    }
    span = find(edit.value, &range);
    if (span.first < span.end)
        zset_end_with_removal(&edit, span, event);
    reply_int(request, (int64_t)(span.end - span.first));
}

static void cmd_zremrangebyrank(struct request *request)
{
    remove_range(request, BY_RANK, "zremrangebyrank");
}

static void cmd_zremrangebyscore(struct request *request)
{
    remove_range(request, BY_SCORE, "zremrangebyscore");
}

static void cmd_zremrangebylex(struct request *request)
{
    remove_range(request, BY_LEX, "zremrangebylex");
}

/* -------------------------------------------------------------------------------------------------------- rows -- */

/* clang-format off */
const struct command_row sorted_set_range_commands[] = {
    {.name = "zrange", .run = cmd_zrange, .arity = -4, .access = ACCESS_STRIPED, .flags = "readonly alone",
     .categories = "@read @sortedset @slow", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set",
     .since = "1.2.0", .summary = "Returns the members in a range of ranks, of scores, or in a lexicographical range.",
     .complexity = "O(log(N)+M) for M members out of N",
     .syntax = "ZRANGE key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
     .arg_since = "sortby:6.2.0 REV:6.2.0 LIMIT:6.2.0",
     .history = "6.2.0=The words `REV`, `BYSCORE`, `BYLEX` and `LIMIT`."},
    {.name = "zrangestore", .run = cmd_zrangestore, .arity = -5, .access = ACCESS_STRIPED,
     .flags = "write denyoom alone", .categories = "@write @sortedset @slow",
     .keys = "OW,UPDATE@index:1@range:0,1,0 RO,ACCESS@index:2@range:0,1,0", .group = "sorted-set", .since = "6.2.0",
     .summary = "Stores a range of a sorted set as another one.", .complexity = "O(log(N)+M) for M members out of N",
     .syntax = "ZRANGESTORE dst src min max [BYSCORE|BYLEX] [REV] [LIMIT offset count]"},
    {.name = "zrevrange", .run = cmd_zrevrange, .arity = -4, .access = ACCESS_STRIPED,
     .flags = "readonly deprecated alone", .categories = "@read @sortedset @slow",
     .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set", .since = "1.2.0",
     .summary = "Returns the members in a range of ranks, in order of descending scores.",
     .complexity = "O(log(N)+M) for M members out of N", .syntax = "ZREVRANGE key start stop [WITHSCORES]",
     .deprecated_since = "6.2.0", .replaced_by = "`ZRANGE` with the `REV` argument"},
    {.name = "zrangebyscore", .run = cmd_zrangebyscore, .arity = -4, .access = ACCESS_STRIPED,
     .flags = "readonly deprecated alone", .categories = "@read @sortedset @slow",
     .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set", .since = "1.0.5",
     .summary = "Returns the members with scores in a range.", .complexity = "O(log(N)+M) for M members out of N",
     .syntax = "ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]", .arg_since = "WITHSCORES:2.0.0",
     .deprecated_since = "6.2.0", .replaced_by = "`ZRANGE` with the `BYSCORE` argument",
     .history = "2.0.0=The word `WITHSCORES`."},
    {.name = "zrevrangebyscore", .run = cmd_zrevrangebyscore, .arity = -4, .access = ACCESS_STRIPED,
     .flags = "readonly deprecated alone", .categories = "@read @sortedset @slow",
     .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set", .since = "2.2.0",
     .summary = "Returns the members with scores in a range, in order of descending scores.",
     .complexity = "O(log(N)+M) for M members out of N",
     .syntax = "ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]", .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `REV` and `BYSCORE` arguments",
     .history = "2.1.6=An end of the range may be exclusive."},
    {.name = "zrangebylex", .run = cmd_zrangebylex, .arity = -4, .access = ACCESS_STRIPED,
     .flags = "readonly deprecated alone", .categories = "@read @sortedset @slow",
     .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set", .since = "2.8.9",
     .summary = "Returns the members in a lexicographical range.", .complexity = "O(log(N)+M) for M members out of N",
     .syntax = "ZRANGEBYLEX key min max [LIMIT offset count]", .deprecated_since = "6.2.0",
     .replaced_by = "`ZRANGE` with the `BYLEX` argument"},
    {.name = "zrevrangebylex", .run = cmd_zrevrangebylex, .arity = -4, .access = ACCESS_STRIPED,
     .flags = "readonly deprecated alone", .categories = "@read @sortedset @slow",
     .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set", .since = "2.8.9",
     .summary = "Returns the members in a lexicographical range in reverse order.",
     .complexity = "O(log(N)+M) for M members out of N", .syntax = "ZREVRANGEBYLEX key max min [LIMIT offset count]",
     .deprecated_since = "6.2.0", .replaced_by = "`ZRANGE` with the `REV` and `BYLEX` arguments"},
    {.name = "zcount", .run = cmd_zcount, .arity = 4, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @sortedset @fast", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set",
     .since = "2.0.0", .summary = "Returns the number of members with scores in a range.",
     .complexity = "O(log(N)) for a set of N members", .syntax = "ZCOUNT key min max"},
    {.name = "zlexcount", .run = cmd_zlexcount, .arity = 4, .access = ACCESS_STRIPED, .flags = "readonly fast",
     .categories = "@read @sortedset @fast", .keys = "RO,ACCESS@index:1@range:0,1,0", .group = "sorted-set",
     .since = "2.8.9", .summary = "Returns the number of members in a lexicographical range.",
     .complexity = "O(log(N)) for a set of N members", .syntax = "ZLEXCOUNT key min max"},
    {.name = "zremrangebyrank", .run = cmd_zremrangebyrank, .arity = 4, .access = ACCESS_STRIPED,
     .flags = "write alone", .categories = "@write @sortedset @slow", .keys = "RW,DELETE@index:1@range:0,1,0",
     .group = "sorted-set", .since = "2.0.0", .summary = "Removes the members in a range of ranks.",
     .complexity = "O(log(N)+M) for M members out of N", .syntax = "ZREMRANGEBYRANK key start stop"},
    {.name = "zremrangebyscore", .run = cmd_zremrangebyscore, .arity = 4, .access = ACCESS_STRIPED,
     .flags = "write alone", .categories = "@write @sortedset @slow", .keys = "RW,DELETE@index:1@range:0,1,0",
     .group = "sorted-set", .since = "1.2.0", .summary = "Removes the members with scores in a range.",
     .complexity = "O(log(N)+M) for M members out of N", .syntax = "ZREMRANGEBYSCORE key min max"},
    {.name = "zremrangebylex", .run = cmd_zremrangebylex, .arity = 4, .access = ACCESS_STRIPED, .flags = "write alone",
     .categories = "@write @sortedset @slow", .keys = "RW,DELETE@index:1@range:0,1,0", .group = "sorted-set",
     .since = "2.8.9", .summary = "Removes the members in a lexicographical range.",
     .complexity = "O(log(N)+M) for M members out of N", .syntax = "ZREMRANGEBYLEX key min max"},
    {.name = NULL},
};
/* clang-format on */
