/* Functions that the commands of sorted sets share: replies, storing, parsing of bounds. */
#include "commands/sorted_set/sorted_set.h"

#include "commands/shared/operations.h"

#include "base/assert.h"
#include "base/number.h"
#include "data/zindex_item.h"

#include <math.h>

/* ----------------------------------------------------------------------------------------------------- replies -- */

static void reply_member(struct output *out, int proto, struct slice member, double score, enum zset_form form)
{
    if (form == ZSET_NESTED_SCORES)
        resp_write_array(out, proto, 2);
    resp_write_bulk(out, member);
    if (form != ZSET_MEMBERS)
        resp_write_double(out, proto, score);
}

void zset_reply_members(struct output *out, int proto, struct value zset, struct zset_span span, bool backwards,
                        enum zset_form form)
{
    struct zset_walk walk;
    struct slice member;
    double score;
    uint64_t left = span.end - span.first;

    assert(span.first <= span.end);
    if (left == 0)
        return;
    zset_walk_begin(&walk, zset, span, backwards);
    for (; zset_walk_next(&walk, &member, &score); left--)
        reply_member(out, proto, member, score, form);
    assert(left == 0); /* the head told how many */
}

void zset_reply_span(struct output *out, int proto, struct value zset, struct zset_span span, bool backwards,
                     enum zset_form form)
{
    uint64_t count = span.end - span.first;

    resp_write_array(out, proto, form == ZSET_FLAT_SCORES ? count * 2 : count);
    zset_reply_members(out, proto, zset, span, backwards, form);
}

/* ----------------------------------------------------------------------------------------------------- storing -- */

void zset_end_removal(struct edit *edit, const char *event)
{
    if (zset_count(edit->value) == 0)
        edit_end_empty(edit, EVENT_ZSET, event);
    else
        edit_end(edit, EVENT_ZSET, event);
}

static void forget_span(struct edit *edit, struct zset_span span)
{
    struct zset_walk walk;
    struct slice member;
    double score;

    zset_walk_begin(&walk, edit->value, span, false);
    while (zset_walk_next(&walk, &member, &score))
        edit_forget(edit, member);
}

void zset_end_with_removal(struct edit *edit, struct zset_span span, const char *event)
{
    const uint64_t removed = span.end - span.first, left = zset_count(edit->value) - removed;

    if (left == 0) { /* all of it goes with the key */
        edit_end_empty(edit, EVENT_ZSET, event);
        return;
    }
    if (UNLIKELY(edit->has_deadlines))
        forget_span(edit, span);
    if (edit->value.encoding == ENCODING_SKIPLIST && edit_leaves_few(edit, left, removed))
        edit_replace(edit, zset_copy_without(edit->value, span));
    else
        zset_remove_span(&edit->value, span);
    edit_end(edit, EVENT_ZSET, event);
}

void zset_store(struct request *request, const struct key *key, struct value zset, const char *event)
{
    uint64_t count = zset_count(zset);
    struct change change;

    if (count == 0) {
        zset_ops.destroy(zset);
        if (access_delete(request->access, request->db, key))
            operation_add_delete(request, request->db, key->name);
    } else {
        (void)access_probe(request->access, request->db, key);
        change_begin(&change, request->access, request->db, key);
        change_put_value(&change, TYPE_ZSET, zset, EXPIRE_NEVER);
        change_end(&change, EVENT_ZSET | EVENT_REPLACES, event);
        operation_add_value(request, request->db, key);
    }
    reply_int(request, (int64_t)count);
}

enum { EFFECT_MEMBERS = 128 };

/* The members from `first` on, with their scores. */
static void effect_members(struct request *request, const struct key *key, const struct zset_builder *result,
                           uint64_t first)
{
    const uint64_t count = MIN(result->list.count - first, (uint64_t)EFFECT_MEMBERS);
    struct slice words[2 + 2 * EFFECT_MEMBERS] = {SLICE("ZADD"), key->name};
    char texts[EFFECT_MEMBERS][NUMBER_DOUBLE_SPACE];

    for (uint64_t i = 0; i < count; i++) {
        const struct zindex_item *item = result->list.items[first + i];

        words[2 + 2 * i] = slice_make(texts[i], number_format_double(texts[i], item->score));
        words[3 + 2 * i] = zindex_item_member(item);
    }
    effect_add(request, words, 2 + 2 * (uint32_t)count);
}

void zset_effect_built(struct request *request, const struct key *key, const struct zset_builder *built)
{
    const bool replaces = access_find(request->access, request->db, key) != NULL;

    effect_none(request);
    if (request->access->effects == NULL || (!replaces && built->list.count == 0))
        return;
    if (replaces)
        effect_set(request, (const struct slice[]){SLICE("DEL"), key->name}, 2);
    for (uint64_t first = 0; first < built->list.count; first += EFFECT_MEMBERS)
        effect_members(request, key, built, first);
}

/* ----------------------------------------------------------------------------------------------------- parsing -- */

bool zset_parse_score(struct request *request, uint32_t index, double *score)
{
    if (number_parse_double(request_arg(request, index), score))
        return true;
    reply_error(request, "ERR value is not a valid float");
    return false;
}

/* A bound is less strict than a score: leading blanks are allowed, the empty text is 0, numbers that overflow or
 * underflow a double are infinite or 0, and a zero byte ends it. */
static bool parse_score_bound(struct slice text, double *score, bool *excluded)
{
    const char *zero = text.size != 0 ? memchr(text.data, '\0', text.size) : NULL;

    if (zero != NULL)
        text.size = (size_t)(zero - text.data);
    *excluded = text.size != 0 && text.data[0] == '(';
    if (*excluded)
        text = slice_skip(text, 1);
    if (text.size == 0) {
        *score = 0;
        return true;
    }
    return number_parse_double_clamped(text, score);
}

bool zset_parse_scores(struct request *request, uint32_t least_index, uint32_t most_index, struct zset_scores *scores)
{
    if (parse_score_bound(request_arg(request, least_index), &scores->least, &scores->above_least) &&
        parse_score_bound(request_arg(request, most_index), &scores->most, &scores->below_most))
        return true;
    reply_error(request, "ERR min or max is not a float");
    return false;
}

static bool parse_lex_bound(struct slice text, struct zset_lex_bound *bound)
{
    char kind = text.size != 0 ? text.data[0] : '\0';

    *bound = (struct zset_lex_bound){.kind = ZINDEX_LEX_MEMBER, .member = SLICE_EMPTY, .excluded = kind == '('};
    if (kind == '[' || kind == '(')
        bound->member = slice_skip(text, 1);
    else if (kind == '-' && text.size == 1)
        bound->kind = ZINDEX_LEX_FIRST;
    else if (kind == '+' && text.size == 1)
        bound->kind = ZINDEX_LEX_LAST;
    else
        return false;
    return true;
}

bool zset_parse_members(struct request *request, uint32_t least_index, uint32_t most_index,
                        struct zset_members *members)
{
    if (parse_lex_bound(request_arg(request, least_index), &members->least) &&
        parse_lex_bound(request_arg(request, most_index), &members->most))
        return true;
    reply_error(request, "ERR min or max not valid string range item");
    return false;
}
