#include "data/zset.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/mem_move.h"
#include "data/sample.h"
#include "data/former_members.h"
#include "data/undo.h"

#include <math.h>
#include <stdlib.h>

struct zset_index {
    struct table members; /* of the items, by member */
    struct zindex order;  /* of the same items */
};

enum { ITEM_BYTES = offsetof(struct zindex_item, member) };

/* ------------------------------------------------------------------------------------------------------- items -- */

static uint64_t item_hash(const void *item)
{
    struct slice member = zindex_item_member(item);

    return hash_bytes(member.data, member.size);
}

static bool item_matches(const void *item, const void *key)
{
    const struct slice *member = key;

    return slice_equal(zindex_item_member(item), *member);
}

static uint64_t hash_of_member(struct slice member)
{
    return hash_bytes(member.data, member.size);
}

static uint64_t *find_slot(const struct table *members, struct slice member, uint64_t hash)
{
    return table_find_slot(members, hash, item_matches, &member);
}

static struct zindex_item *find_item(const struct table *members, struct slice member)
{
    const uint64_t *slot = find_slot(members, member, hash_of_member(member));

    return slot != NULL ? table_slot_item(slot) : NULL;
}

static void free_item(struct zindex_item *item, void *context)
{
    (void)context;
    zindex_item_destroy(item);
}

/* A listpack has whole scores as integers, which know no -0. The encoding is no part of a value: on active nodes the
 * same one may have come to different encodings. So there is no -0 in an index either. */
static double without_sign_of_zero(double score)
{
    return score == 0 ? 0 : score;
}

static void put_new(struct zset_index *index, uint64_t hash, struct zindex_item *item)
{
    table_insert(&index->members, hash, item, item_hash);
    zindex_insert(&index->order, item);
}

/* ---------------------------------------------------------------------------------------------------- listpack -- */

static double listpack_score(const struct listpack *list, listpack_at at)
{
    struct listpack_value value = listpack_get(list, at);
    double score = 0;
    bool is_number;

    if (value.text.data == NULL)
        return (double)value.number;
    is_number = number_parse_double(value.text, &score);
    debug_assert(is_number);
    (void)is_number;
    return score;
}

static void insert_score(struct listpack **list, listpack_at at, double score)
{
    char text[NUMBER_DOUBLE_SPACE];

    if (zset_score_is_whole(score))
        (void)listpack_insert_int(list, at, (int64_t)score);
    else
        (void)listpack_insert(list, at, slice_make(text, number_format_double(text, score)));
}

/* Where a member with this score belongs: before which one. */
static listpack_at listpack_place(const struct listpack *list, struct slice member, double score)
{
    listpack_at last = listpack_last(list), at;
    char scratch[NUMBER_I64_SPACE];

    if (last == LISTPACK_NONE || listpack_score(list, last) < score)
        return LISTPACK_NONE; /* often they come in order */
    for (at = listpack_first(list); at != LISTPACK_NONE;) {
        listpack_at score_at = listpack_next(list, at);
        double here = listpack_score(list, score_at);

        if (here > score || (here == score && slice_compare(listpack_text(list, at, scratch), member) > 0))
            break;
        at = listpack_next(list, score_at);
    }
    return at;
}

static void listpack_put_new(struct listpack **list, struct slice member, double score)
{
    listpack_at at = listpack_place(*list, member, score);

    at = listpack_insert(list, at, member);
    insert_score(list, listpack_next(*list, at), score);
}

/* True if the score leaves the member at its place between its neighbours. */
static bool listpack_keeps_place(const struct listpack *list, listpack_at at, double score)
{
    listpack_at before = listpack_previous(list, at), after = listpack_next(list, listpack_next(list, at));

    return (before == LISTPACK_NONE || listpack_score(list, before) < score) &&
           (after == LISTPACK_NONE || listpack_score(list, listpack_next(list, after)) > score);
}

static void listpack_set_score(struct listpack **list, listpack_at at, struct slice member, double score)
{
    if (listpack_keeps_place(*list, at, score)) {
        listpack_at score_at = listpack_next(*list, at);

        insert_score(list, listpack_remove(list, score_at, 1), score);
        return;
    }
    (void)listpack_remove(list, at, 2);
    listpack_put_new(list, member, score);
}

/* ------------------------------------------------------------------------------------------------------- whole -- */

struct value zset_create(void)
{
    return (struct value){listpack_create(), ENCODING_LISTPACK};
}

uint64_t zset_count(struct value zset)
{
    if (zset.encoding == ENCODING_LISTPACK)
        return listpack_count(zset.data) / 2;
    return zindex_count(&((const struct zset_index *)zset.data)->order);
}

static void destroy(struct value zset)
{
    struct listpack *list = zset.data;
    struct zset_index *index = zset.data;

    if (zset.encoding == ENCODING_LISTPACK) {
        listpack_destroy(&list);
    } else {
        table_clear(&index->members, NULL, NULL);
        zindex_clear(&index->order, free_item, NULL);
        mem_free(index);
    }
}

static struct value copy_index(const struct zset_index *index)
{
    struct zset_index *to = mem_alloc_zero(sizeof(*to));
    uint64_t count = zindex_count(&index->order);
    struct zindex_item **items = mem_alloc(MAX(count, UINT64_C(1)) * sizeof(*items));
    struct zindex_cursor cursor = zindex_seek_rank(&index->order, 0);

    for (uint64_t i = 0; i < count; i++) {
        const struct zindex_item *item = zindex_next(&cursor);

        items[i] = zindex_item_create(item->score, zindex_item_member(item), zindex_item_deadline(item));
        table_insert(&to->members, item_hash(items[i]), items[i], item_hash);
    }
    zindex_build(&to->order, items, count);
    mem_free(items);
    return (struct value){to, ENCODING_SKIPLIST};
}

static struct value copy(struct value zset)
{
    if (zset.encoding == ENCODING_LISTPACK)
        return (struct value){listpack_copy(zset.data), ENCODING_LISTPACK};
    return copy_index(zset.data);
}

static uint64_t item_memory(const void *item)
{
    return zindex_item_memory_bytes(item);
}

static uint64_t memory_bytes(struct value zset, uint64_t samples)
{
    const struct zset_index *index = zset.data;

    if (zset.encoding == ENCODING_LISTPACK)
        return mem_usable(zset.data);
    return mem_usable(index) + table_memory_bytes(&index->members) + zindex_memory_bytes(&index->order) +
           sample_memory(&index->members, samples, item_memory);
}

static uint64_t free_effort(struct value zset)
{
    return zset.encoding == ENCODING_LISTPACK ? 1 : zset_count(zset);
}

static const struct table *as_table(struct value zset)
{
    return zset.encoding == ENCODING_SKIPLIST ? &((const struct zset_index *)zset.data)->members : NULL;
}

struct relocation {
    struct zset_index *index;
    struct mem_mover *mover;
};

static bool is_item(const void *item, const void *key)
{
    return item == key;
}

/* The table learns of it: it has the old address, of which only the number is looked at. */
static struct zindex_item *relocate_item(struct zindex_item *item, void *context)
{
    const struct relocation *relocation = context;
    struct zindex_item *moved = zindex_item_move(item, relocation->mover);

    if (moved != item) {
        uint64_t *slot = table_find_slot(&relocation->index->members, item_hash(moved), is_item, item);

        assert(slot != NULL);
        table_slot_replace(slot, moved);
    }
    return moved;
}

static void *keep_item(void *item, void *context)
{
    (void)context;
    return item;
}

/* A position is 0, a rank with the first of these, or, when all items are done, one in the table with the other. */
#define IN_ORDER (UINT64_C(1) << 62)
#define IN_TABLE (UINT64_C(1) << 61)

static uint64_t relocate(struct value *zset, uint64_t position, uint64_t most, struct mem_mover *mover)
{
    struct relocation relocation;

    if (position == 0)
        zset->data = mem_move(mover, zset->data, 0);
    if (zset->encoding != ENCODING_SKIPLIST)
        return 0;
    relocation = (struct relocation){zset->data, mover};
    if ((position & IN_TABLE) == 0) {
        position = zindex_relocate(&relocation.index->order, position & ~IN_ORDER, most, mover, relocate_item,
                                   &relocation);
        return position != 0 ? position | IN_ORDER : IN_TABLE;
    }
    position = table_relocate(&relocation.index->members, position & ~IN_TABLE, most, mover, keep_item, NULL);
    return position != 0 ? position | IN_TABLE : 0;
}

static bool has(struct value zset, struct slice member)
{
    return zset_score(zset, member, &(double){0});
}

static void undo(struct value *zset, const struct value_step *step);

static const struct value_member_ops member_ops = {.has = has, .remove = zset_remove};
const struct value_ops zset_ops = {.destroy = destroy,
                                   .copy = copy,
                                   .memory_bytes = memory_bytes,
                                   .free_effort = free_effort,
                                   .relocate = relocate,
                                   .count = zset_count,
                                   .table = as_table,
                                   .undo = undo,
                                   .validate = zset_validate,
                                   .members = &member_ops,
                                   .former = &former_zset_ops};

/* -------------------------------------------------------------------------------------------- reading, changing -- */

bool zset_score(struct value zset, struct slice member, double *score)
{
    if (zset.encoding == ENCODING_LISTPACK) {
        listpack_at at = listpack_find(zset.data, listpack_first(zset.data), member, 1);

        if (at == LISTPACK_NONE)
            return false;
        *score = listpack_score(zset.data, listpack_next(zset.data, at));
    } else {
        const struct zindex_item *item = find_item(&((const struct zset_index *)zset.data)->members, member);

        if (item == NULL)
            return false;
        *score = item->score;
    }
    return true;
}

static bool listpack_rank(const struct listpack *list, struct slice member, uint64_t *rank, double *score)
{
    uint64_t before = 0;

    for (listpack_at at = listpack_first(list); at != LISTPACK_NONE; before++) {
        listpack_at score_at = listpack_next(list, at);

        if (listpack_equals(list, at, member)) {
            *rank = before;
            *score = listpack_score(list, score_at);
            return true;
        }
        at = listpack_next(list, score_at);
    }
    return false;
}

bool zset_rank(struct value zset, struct slice member, uint64_t *rank, double *score)
{
    const struct zset_index *index = zset.data;
    const struct zindex_item *item;

    if (zset.encoding == ENCODING_LISTPACK)
        return listpack_rank(zset.data, member, rank, score);
    item = find_item(&index->members, member);
    if (item == NULL)
        return false;
    *rank = zindex_rank(&index->order, item);
    *score = item->score;
    return true;
}

static void become_index(struct value *zset)
{
    struct listpack *list = zset->data;
    struct zset_index *index = mem_alloc_zero(sizeof(*index));
    uint64_t count = zset_count(*zset), i = 0;
    struct zindex_item **items = mem_alloc(MAX(count, UINT64_C(1)) * sizeof(*items));
    char scratch[NUMBER_I64_SPACE];

    for (listpack_at at = listpack_first(list); at != LISTPACK_NONE; i++) {
        listpack_at score_at = listpack_next(list, at);

        items[i] = zindex_item_create(listpack_score(list, score_at), listpack_text(list, at, scratch),
                                      ZINDEX_NO_DEADLINE);
        table_insert(&index->members, item_hash(items[i]), items[i], item_hash);
        at = listpack_next(list, score_at);
    }
    zindex_build(&index->order, items, count);
    mem_free(items);
    listpack_destroy(&list);
    *zset = (struct value){index, ENCODING_SKIPLIST};
}

static bool fits_listpack(struct value zset, const struct zset_limits *limits, struct slice member)
{
    return zset_count(zset) < limits->listpack_entries && member.size <= limits->listpack_bytes &&
           listpack_fits(zset.data, member.size + NUMBER_DOUBLE_SPACE, 2);
}

static enum zset_outcome update_index(struct zset_index *index, struct slice member, zset_decide_fn decide,
                                      void *context)
{
    uint64_t hash = hash_of_member(member);
    const uint64_t *slot = find_slot(&index->members, member, hash);
    struct zindex_item *item = slot != NULL ? table_slot_item(slot) : NULL;
    double score = item != NULL ? item->score : 0;

    if (decide(item != NULL, &score, context) == ZSET_LEAVE)
        return ZSET_LEFT;
    score = without_sign_of_zero(score);
    if (item == NULL) {
        put_new(index, hash, zindex_item_create(score, member, ZINDEX_NO_DEADLINE));
        return ZSET_ADDED;
    }
    if (score == item->score)
        return ZSET_SAME;
    zindex_set_score(&index->order, item, score);
    return ZSET_CHANGED;
}

static enum zset_outcome update_listpack(struct value *zset, const struct zset_limits *limits, struct slice member,
                                         zset_decide_fn decide, void *context)
{
    struct listpack *list = zset->data;
    listpack_at at = listpack_find(list, listpack_first(list), member, 1);
    double old = at != LISTPACK_NONE ? listpack_score(list, listpack_next(list, at)) : 0, score = old;
    enum zset_outcome outcome = ZSET_CHANGED;

    if (decide(at != LISTPACK_NONE, &score, context) == ZSET_LEAVE)
        return ZSET_LEFT;
    if (at == LISTPACK_NONE) {
        if (!fits_listpack(*zset, limits, member)) {
            become_index(zset);
            score = without_sign_of_zero(score);
            put_new(zset->data, hash_of_member(member), zindex_item_create(score, member, ZINDEX_NO_DEADLINE));
            return ZSET_ADDED;
        }
        listpack_put_new(&list, member, score);
        outcome = ZSET_ADDED;
    } else if (score == old) {
        return ZSET_SAME;
    } else {
        listpack_set_score(&list, at, member, score);
    }
    zset->data = list;
    return outcome;
}

static enum zset_outcome update(struct value *zset, const struct zset_limits *limits, struct slice member,
                                zset_decide_fn decide, void *context)
{
    if (zset->encoding == ENCODING_LISTPACK)
        return update_listpack(zset, limits, member, decide, context);
    return update_index(zset->data, member, decide, context);
}

static void note(struct value_log *log, uint32_t kind, struct slice member, double score)
{
    struct value_step step = {.first = member, .kind = kind};

    memcpy(&step.a, &score, sizeof(step.a));
    value_log_note(log, &step);
}

static NOINLINE enum zset_outcome update_watched(struct value_log *log, struct value *zset,
                                                 const struct zset_limits *limits, struct slice member,
                                                 zset_decide_fn decide, void *context)
{
    enum zset_outcome outcome;
    double score = 0;

    (void)zset_score(*zset, member, &score);
    outcome = update(zset, limits, member, decide, context);
    if (outcome == ZSET_CHANGED || outcome == ZSET_ADDED)
        note(log, outcome == ZSET_ADDED ? VALUE_STEP_NEW : VALUE_STEP_OLD, member, score);
    value_log_moved(log, zset->data);
    return outcome;
}

enum zset_outcome zset_update(struct value *zset, const struct zset_limits *limits, struct slice member,
                              zset_decide_fn decide, void *context)
{
    struct value_log *log = value_log_of(zset->data);

    if (UNLIKELY(log != NULL))
        return update_watched(log, zset, limits, member, decide, context);
    return update(zset, limits, member, decide, context);
}

static enum zset_verdict decide_given(bool is_there, double *score, void *context)
{
    (void)is_there;
    *score = *(const double *)context;
    return ZSET_STORE;
}

bool zset_put(struct value *zset, const struct zset_limits *limits, struct slice member, double score)
{
    return zset_update(zset, limits, member, decide_given, &score) == ZSET_ADDED;
}

static bool remove_member(struct value *zset, struct slice member)
{
    if (zset->encoding == ENCODING_LISTPACK) {
        struct listpack *list = zset->data;
        listpack_at at = listpack_find(list, listpack_first(list), member, 1);

        if (at == LISTPACK_NONE)
            return false;
        (void)listpack_remove(&list, at, 2);
        zset->data = list;
    } else {
        struct zset_index *index = zset->data;
        uint64_t hash = hash_of_member(member), *slot = find_slot(&index->members, member, hash);
        struct zindex_item *item;

        if (slot == NULL)
            return false;
        item = table_remove(&index->members, hash, slot);
        zindex_remove(&index->order, item);
        zindex_item_destroy(item);
    }
    return true;
}

static NOINLINE bool remove_watched(struct value_log *log, struct value *zset, struct slice member)
{
    double score;

    if (!zset_score(*zset, member, &score))
        return false;
    note(log, VALUE_STEP_OLD, member, score);
    (void)remove_member(zset, member);
    value_log_moved(log, zset->data);
    return true;
}

bool zset_remove(struct value *zset, struct slice member)
{
    struct value_log *log = value_log_of(zset->data);

    return UNLIKELY(log != NULL) ? remove_watched(log, zset, member) : remove_member(zset, member);
}

/* What was in a listpack fits into one. A snapshot that watches the sorted set hears of it. */
static void undo(struct value *zset, const struct value_step *step)
{
    static const struct zset_limits unlimited = {UINT64_MAX, UINT64_MAX};
    double score;

    memcpy(&score, &step->a, sizeof(score));
    if (step->kind == VALUE_STEP_OLD)
        (void)zset_put(zset, &unlimited, step->first, score);
    else
        (void)zset_remove(zset, step->first);
}

/* ------------------------------------------------------------------------------------------------------ ranges -- */

static struct zset_span span_make(uint64_t first, uint64_t end)
{
    return (struct zset_span){first, MAX(first, end)};
}

static struct zset_span listpack_span_of_scores(const struct listpack *list, const struct zset_scores *scores)
{
    uint64_t rank = 0, first = 0;

    for (listpack_at at = listpack_first(list); at != LISTPACK_NONE; rank++) {
        listpack_at score_at = listpack_next(list, at);
        double score = listpack_score(list, score_at);

        if (scores->below_most ? score >= scores->most : score > scores->most)
            break;
        if (scores->above_least ? score <= scores->least : score < scores->least)
            first = rank + 1;
        at = listpack_next(list, score_at);
    }
    return span_make(first, rank);
}

struct zset_span zset_span_of_scores(struct value zset, const struct zset_scores *scores)
{
    const struct zset_index *index = zset.data;

    if (zset.encoding == ENCODING_LISTPACK)
        return listpack_span_of_scores(zset.data, scores);
    return span_make(
        zindex_seek_score(&index->order, scores->least, scores->above_least ? ZINDEX_AFTER : ZINDEX_BEFORE).rank,
        zindex_seek_score(&index->order, scores->most, scores->below_most ? ZINDEX_BEFORE : ZINDEX_AFTER).rank);
}

static bool lex_is_above(struct slice member, const struct zset_lex_bound *least)
{
    int order;

    if (least->kind != ZINDEX_LEX_MEMBER)
        return least->kind == ZINDEX_LEX_FIRST;
    order = slice_compare(member, least->member);
    return least->excluded ? order > 0 : order >= 0;
}

static bool lex_is_below(struct slice member, const struct zset_lex_bound *most)
{
    int order;

    if (most->kind != ZINDEX_LEX_MEMBER)
        return most->kind == ZINDEX_LEX_LAST;
    order = slice_compare(member, most->member);
    return most->excluded ? order < 0 : order <= 0;
}

/* From the first member that is not below the least one up to the first that is above the most. */
static struct zset_span listpack_span_of_members(const struct listpack *list, const struct zset_members *members)
{
    uint64_t rank = 0, first = 0;
    char scratch[NUMBER_I64_SPACE];
    bool inside = false;

    for (listpack_at at = listpack_first(list); at != LISTPACK_NONE; rank++) {
        struct slice member = listpack_text(list, at, scratch);

        inside = inside || lex_is_above(member, &members->least);
        if (!inside)
            first = rank + 1;
        else if (!lex_is_below(member, &members->most))
            break;
        at = listpack_next(list, listpack_next(list, at));
    }
    return span_make(first, rank);
}

struct zset_span zset_span_of_members(struct value zset, const struct zset_members *members)
{
    const struct zset_index *index = zset.data;
    const struct zset_lex_bound *least = &members->least, *most = &members->most;

    if (zset.encoding == ENCODING_LISTPACK)
        return listpack_span_of_members(zset.data, members);
    return span_make(
        zindex_seek_lex(&index->order, least->kind, least->member, least->excluded ? ZINDEX_AFTER : ZINDEX_BEFORE).rank,
        zindex_seek_lex(&index->order, most->kind, most->member, most->excluded ? ZINDEX_BEFORE : ZINDEX_AFTER).rank);
}

static void forget_item(struct zindex_item *item, void *context)
{
    struct zset_index *index = context;
    struct slice member = zindex_item_member(item);
    uint64_t hash = hash_of_member(member);

    (void)table_remove(&index->members, hash, find_slot(&index->members, member, hash));
    zindex_item_destroy(item);
}

static NOINLINE void note_span(struct value_log *log, struct value zset, struct zset_span span)
{
    struct zset_walk walk;
    struct slice member;
    double score;

    zset_walk_begin(&walk, zset, span, false);
    while (zset_walk_next(&walk, &member, &score))
        note(log, VALUE_STEP_OLD, member, score);
}

void zset_remove_span(struct value *zset, struct zset_span span)
{
    struct value_log *log = value_log_of(zset->data);

    assert(span.first <= span.end && span.end <= zset_count(*zset));
    if (UNLIKELY(log != NULL))
        note_span(log, *zset, span);
    if (zset->encoding == ENCODING_LISTPACK) {
        struct listpack *list = zset->data;

        if (span.first < span.end)
            (void)listpack_remove(&list, listpack_seek(list, (int64_t)span.first * 2),
                                  (uint32_t)(span.end - span.first) * 2);
        zset->data = list;
    } else {
        struct zset_index *index = zset->data;

        zindex_remove_range(&index->order, span.first, span.end, forget_item, index);
    }
    value_log_moved(log, zset->data);
}

/* ----------------------------------------------------------------------------------------------------- walking -- */

void zset_walk_begin(struct zset_walk *walk, struct value zset, struct zset_span span, bool backwards)
{
    walk->zset = zset;
    walk->left = span.end - span.first;
    walk->backwards = backwards;
    walk->at = LISTPACK_NONE;
    if (zset.encoding != ENCODING_LISTPACK)
        walk->cursor = zindex_seek_rank(&((const struct zset_index *)zset.data)->order,
                                        backwards ? span.end : span.first);
    else if (walk->left != 0)
        walk->at = listpack_seek(zset.data, (int64_t)(backwards ? span.end - 1 : span.first) * 2);
}

void zset_walk_from_score(struct zset_walk *walk, struct value zset, double least)
{
    const struct zset_scores scores = {.least = least, .most = INFINITY};

    if (zset.encoding == ENCODING_LISTPACK) {
        zset_walk_begin(walk, zset, listpack_span_of_scores(zset.data, &scores), false);
        return;
    }
    walk->zset = zset;
    walk->backwards = false;
    walk->cursor = zindex_seek_score(&((const struct zset_index *)zset.data)->order, least, ZINDEX_BEFORE);
    walk->left = zset_count(zset) - walk->cursor.rank;
}

void zset_walk_before(struct zset_walk *walk, struct value zset, const struct zindex_item *mark)
{
    const struct zset_index *index = zset.data;

    assert(zset.encoding != ENCODING_LISTPACK);
    walk->zset = zset;
    walk->backwards = true;
    walk->cursor = mark != NULL ? zindex_seek_item(&index->order, mark, ZINDEX_BEFORE)
                                : zindex_seek_rank(&index->order, zset_count(zset));
    walk->left = walk->cursor.rank;
}

static void step_listpack(struct zset_walk *walk, struct slice *member, double *score)
{
    const struct listpack *list = walk->zset.data;
    listpack_at score_at = listpack_next(list, walk->at);

    *member = listpack_text(list, walk->at, walk->scratch);
    *score = listpack_score(list, score_at);
    if (walk->left == 0)
        return;
    walk->at = walk->backwards ? listpack_previous(list, listpack_previous(list, walk->at))
                               : listpack_next(list, score_at);
}

bool zset_walk_next(struct zset_walk *walk, struct slice *member, double *score)
{
    const struct zindex_item *item;

    if (walk->left == 0)
        return false;
    walk->left--;
    if (walk->zset.encoding == ENCODING_LISTPACK) {
        step_listpack(walk, member, score);
        return true;
    }
    item = walk->backwards ? zindex_previous(&walk->cursor) : zindex_next(&walk->cursor);
    *member = zindex_item_member(item);
    *score = item->score;
    return true;
}

struct visit {
    zset_member_fn fn;
    void *context;
};

static void visit_item(void *item, void *context)
{
    const struct visit *visit = context;

    visit->fn(zindex_item_member(item), ((const struct zindex_item *)item)->score, visit->context);
}

uint64_t zset_scan(struct value zset, uint64_t cursor, uint64_t want, zset_member_fn fn, void *context)
{
    struct visit visit = {fn, context};
    struct zset_walk walk;
    struct slice member;
    double score;

    if (zset.encoding != ENCODING_LISTPACK)
        return table_scan(&((const struct zset_index *)zset.data)->members, cursor, want, visit_item, &visit);
    zset_walk_begin(&walk, zset, span_make(0, zset_count(zset)), false);
    while (zset_walk_next(&walk, &member, &score))
        fn(member, score, context);
    return 0;
}

void zset_random(struct value zset, struct random *random, zset_member_fn fn, void *context)
{
    uint64_t rank = random_below(random, zset_count(zset));
    struct zset_walk walk;
    struct slice member;
    double score;

    zset_walk_begin(&walk, zset, span_make(rank, rank + 1), false);
    if (zset_walk_next(&walk, &member, &score))
        fn(member, score, context);
}

void zset_random_some(struct value zset, struct random *random, uint64_t count, zset_member_fn fn, void *context)
{
    struct sample_picker picker = {.left = zset_count(zset), .wanted = count};
    struct visit visit = {fn, context};
    struct zset_walk walk;
    struct slice member;
    double score;

    if (zset.encoding != ENCODING_LISTPACK) {
        sample_some(&((const struct zset_index *)zset.data)->members, random, count, visit_item, &visit);
        return;
    }
    zset_walk_begin(&walk, zset, span_make(0, zset_count(zset)), false);
    while (zset_walk_next(&walk, &member, &score))
        if (sample_pick(&picker, random))
            fn(member, score, context);
}

/* ---------------------------------------------------------------------------------------------------- building -- */

struct zindex_item *zset_builder_find(const struct zset_builder *builder, struct slice member)
{
    return find_item(&builder->items, member);
}

void zset_builder_add(struct zset_builder *builder, struct slice member, double score)
{
    struct zindex_item *item = zindex_item_create(score, member, ZINDEX_NO_DEADLINE);

    *ARRAY_PUSH(&builder->list) = item;
    table_insert(&builder->items, hash_of_member(member), item, item_hash);
    builder->longest = MAX(builder->longest, (uint64_t)member.size);
    builder->text_bytes += member.size + NUMBER_DOUBLE_SPACE;
}

/* Scores are beside the items while these are sorted: most comparisons need not visit the items. */
struct place {
    double score;
    struct zindex_item *item;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *left = a, *right = b;

    if (left->score != right->score)
        return left->score < right->score ? -1 : 1;
    return zindex_compare(left->item, right->item);
}

static bool is_sorted(struct zindex_item *const *items, uint64_t count)
{
    for (uint64_t i = 1; i < count; i++) {
        if (zindex_compare(items[i - 1], items[i]) > 0)
            return false;
    }
    return true;
}

static void sort_items(struct zindex_item **items, uint64_t count)
{
    struct place *places;

    if (is_sorted(items, count))
        return;
    places = mem_alloc(count * sizeof(*places));
    for (uint64_t i = 0; i < count; i++)
        places[i] = (struct place){items[i]->score, items[i]};
    qsort(places, count, sizeof(*places), compare_places);
    for (uint64_t i = 0; i < count; i++)
        items[i] = places[i].item;
    mem_free(places);
}

static struct listpack *listpack_of(struct zindex_item *const *items, uint64_t count)
{
    struct listpack *list = listpack_create();

    for (uint64_t i = 0; i < count; i++) {
        listpack_append(&list, zindex_item_member(items[i]));
        insert_score(&list, LISTPACK_NONE, items[i]->score);
    }
    return list;
}

static void add_span(struct zset_builder *builder, struct value zset, struct zset_span span)
{
    struct zset_walk walk;
    struct slice member;
    double score;

    zset_walk_begin(&walk, zset, span, false);
    while (zset_walk_next(&walk, &member, &score))
        zset_builder_add(builder, member, score);
}

struct value zset_copy_without(struct value zset, struct zset_span span)
{
    static const struct zset_limits no_listpack = {0, 0};
    struct zset_builder builder = {.longest = 0};

    assert(zset.encoding == ENCODING_SKIPLIST && span.end - span.first < zset_count(zset));
    add_span(&builder, zset, span_make(0, span.first));
    add_span(&builder, zset, span_make(span.end, zset_count(zset)));
    return zset_build(&builder, &no_listpack);
}

struct value zset_build(struct zset_builder *builder, const struct zset_limits *limits)
{
    struct zindex_item **items = builder->list.items;
    uint64_t count = builder->list.count;
    struct value zset;

    for (uint64_t i = 0; limits != NULL && i < count; i++)
        items[i]->score = without_sign_of_zero(items[i]->score);
    sort_items(items, count);
    if (limits != NULL && count <= limits->listpack_entries && builder->longest <= limits->listpack_bytes &&
        builder->text_bytes < LISTPACK_MOST_BYTES / 2) {
        zset = (struct value){listpack_of(items, count), ENCODING_LISTPACK};
        for (uint64_t i = 0; i < count; i++)
            zindex_item_destroy(items[i]);
        table_clear(&builder->items, NULL, NULL);
    } else {
        struct zset_index *index = mem_alloc_zero(sizeof(*index));

        table_move(&index->members, &builder->items);
        zindex_build(&index->order, items, count);
        zset = (struct value){index, ENCODING_SKIPLIST};
    }
    ARRAY_FINI(&builder->list);
    *builder = (struct zset_builder){.longest = 0};
    return zset;
}

/* -------------------------------------------------------------------------------------------------- validation -- */

static void validate_order(struct value zset)
{
    struct zset_walk walk;
    struct slice member;
    double score, last = -INFINITY;

    zset_walk_begin(&walk, zset, span_make(0, zset_count(zset)), false);
    while (zset_walk_next(&walk, &member, &score)) {
        assert(last <= score);
        last = score;
    }
}

void zset_validate(struct value zset)
{
    const struct zset_index *index = zset.data;

    if (zset.encoding == ENCODING_LISTPACK) {
        listpack_validate(zset.data);
        assert(listpack_count(zset.data) % 2 == 0);
    } else {
        assert(zset.encoding == ENCODING_SKIPLIST);
        table_validate(&index->members, item_hash);
        zindex_validate(&index->order);
        assert(table_count(&index->members) == zindex_count(&index->order));
    }
    validate_order(zset);
}
