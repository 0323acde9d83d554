#include "active/beats.h"

#include "active/notice_priv.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/mem.h"

#include <stdio.h>

enum { ID_BYTES = 8, WORD_BYTES_LEAST = ID_BYTES + 1 };

/* -------------------------------------------------------------------------------------------------------- copies -- */

/* References are counted under the membership's lock, which nobody has here: the count is not read. */
static struct merge_word *word_copy(const struct merge_word *word)
{
    struct merge_word *copy = mem_alloc(sizeof(*copy));

    *copy = (struct merge_word){.references = 1,
                                .incarnation = word->incarnation,
                                .sequence = word->sequence,
                                .name = word->name,
                                .origin = word->origin,
                                .wall = word->wall,
                                .frontier = word->frontier};
    merge_vector_copy(&copy->vector, &word->vector);
    merge_vector_copy(&copy->saved, &word->saved);
    merge_vector_copy(&copy->closed, &word->closed);
    merge_members_copy(&copy->members, &word->members);
    return copy;
}

/* All but the words. */
static void copy_rest(struct merge_beat *to, const struct merge_beat *from)
{
    *to = (struct merge_beat){.clock = from->clock};
    merge_vector_copy(&to->vector, &from->vector);
    merge_vector_copy(&to->deeds, &from->deeds);
    merge_vector_copy(&to->offers, &from->offers);
    merge_vector_copy(&to->closed, &from->closed);
    merge_vector_copy(&to->removed, &from->removed);
    merge_members_copy(&to->members, &from->members);
}

static struct merge_word *word_of(const struct merge_beat *beat, uint64_t name)
{
    for (uint32_t i = 0; i < beat->words.count; i++) {
        if (beat->words.items[i]->name == name)
            return beat->words.items[i];
    }
    return NULL;
}

void beats_fini(struct beats *beats)
{
    merge_beat_fini(&beats->last);
}

/* ------------------------------------------------------------------------------------------------------- writing -- */

/* Adds what `now` has that `before` has not, or has with another stamp; and what is gone. Stamps of a set say
 * nothing. */
static void compare(const struct merge_vector *before, const struct merge_vector *now, bool is_set,
                    struct merge_vector *changed, struct merge_vector *gone)
{
    uint32_t old = 0;

    for (uint32_t i = 0; i < now->count; i++) {
        const struct merge_vector_item item = now->items[i];

        for (; old < before->count && before->items[old].id < item.id; old++)
            *ARRAY_PUSH(gone) = before->items[old];
        if (old == before->count || before->items[old].id != item.id) {
            *ARRAY_PUSH(changed) = item;
            continue;
        }
        if (!is_set && before->items[old].stamp != item.stamp)
            *ARRAY_PUSH(changed) = item;
        old++;
    }
    for (; old < before->count; old++)
        *ARRAY_PUSH(gone) = before->items[old];
}

/* Base 0 for a set. */
static void put_changes(struct buffer *body, const struct merge_vector *before, const struct merge_vector *now,
                        bool is_set, uint64_t base)
{
    struct merge_vector changed = {0}, gone = {0};

    compare(before, now, is_set, &changed, &gone);
    if (is_set)
        notice_put_set(body, &changed);
    else
        notice_put_vector(body, &changed, base);
    notice_put_set(body, &gone);
    merge_vector_fini(&changed);
    merge_vector_fini(&gone);
}

static bool members_are_same(const struct merge_members *a, const struct merge_members *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct merge_member *x = &a->items[i], *y = &b->items[i];

        if (x->name != y->name || x->origin != y->origin || x->incarnation != y->incarnation)
            return false;
    }
    return true;
}

static void put_members(struct buffer *body, const struct merge_members *before, const struct merge_members *now)
{
    const bool is_other = !members_are_same(before, now);

    put_byte(body, is_other);
    if (is_other)
        notice_put_members(body, now);
}

/* A word never changes after it was said. */
static bool word_is_same(const struct merge_word *before, const struct merge_word *now)
{
    return before->origin == now->origin && before->incarnation == now->incarnation &&
           before->sequence == now->sequence;
}

/* Returns the word to keep. */
static struct merge_word *put_word(struct buffer *body, struct merge_word *before, const struct merge_word *word,
                                   uint64_t base)
{
    static const struct merge_word none; /* global: const */
    const struct merge_word *old = before != NULL ? before : &none;

    put_fixed(body, word->name);
    if (before != NULL && word_is_same(before, word)) {
        put_byte(body, 0);
        return merge_word_acquire(before);
    }
    put_byte(body, 1);
    put_fixed(body, word->origin);
    put_varint(body, word->incarnation);
    put_varint(body, word->sequence);
    put_varint(body, (uint64_t)word->wall);
    put_difference(body, base, word->frontier);
    put_changes(body, &old->vector, &word->vector, false, base);
    put_changes(body, &old->saved, &word->saved, false, base);
    put_changes(body, &old->closed, &word->closed, true, 0);
    put_members(body, &old->members, &word->members);
    return word_copy(word);
}

/* The word of the least name above; NULL: there is none. Members are few. */
static const struct merge_word *next_word(const struct merge_beat *beat, uint64_t above)
{
    const struct merge_word *next = NULL;

    for (uint32_t i = 0; i < beat->words.count; i++) {
        const struct merge_word *word = beat->words.items[i];

        if (word->name > above && (next == NULL || word->name < next->name))
            next = word;
    }
    return next;
}

void beats_write(struct beats *beats, struct buffer *body, const struct merge_beat *beat)
{
    const struct merge_beat *before = &beats->last;
    struct merge_beat kept;

    copy_rest(&kept, beat);
    put_fixed(body, beat->clock);
    put_changes(body, &before->vector, &beat->vector, false, beat->clock);
    put_changes(body, &before->deeds, &beat->deeds, false, beat->clock);
    put_changes(body, &before->offers, &beat->offers, false, beat->clock);
    put_members(body, &before->members, &beat->members);
    put_changes(body, &before->closed, &beat->closed, true, 0);
    put_changes(body, &before->removed, &beat->removed, true, 0);
    put_varint(body, beat->words.count);
    for (const struct merge_word *word = next_word(beat, 0); word != NULL; word = next_word(beat, word->name))
        *ARRAY_PUSH(&kept.words) = put_word(body, word_of(before, word->name), word, beat->clock);
    assert(kept.words.count == beat->words.count); /* one a name */
    beats_fini(beats);
    beats->last = kept;
}

/* ------------------------------------------------------------------------------------------------------- reading -- */

static bool change_of_nothing(struct cursor *cursor)
{
    return cursor_fail(cursor, "a change of nothing");
}

/* All three are sorted. */
static bool apply(struct cursor *cursor, struct merge_vector *vector, const struct merge_vector *changed,
                  const struct merge_vector *gone)
{
    struct merge_vector next = {0};
    uint32_t from = 0, left = 0;
    bool is_right = true;

    for (uint32_t i = 0; i < vector->count; i++) {
        const struct merge_vector_item old = vector->items[i];
        bool changes, goes;

        for (; from < changed->count && changed->items[from].id < old.id; from++)
            *ARRAY_PUSH(&next) = changed->items[from];
        changes = from < changed->count && changed->items[from].id == old.id;
        goes = left < gone->count && gone->items[left].id == old.id;
        is_right = is_right && !(changes && (goes || changed->items[from].stamp == old.stamp));
        if (changes)
            *ARRAY_PUSH(&next) = changed->items[from++];
        else if (!goes)
            *ARRAY_PUSH(&next) = old;
        left += goes;
    }
    for (; from < changed->count; from++)
        *ARRAY_PUSH(&next) = changed->items[from];
    merge_vector_fini(vector);
    *vector = next;
    return is_right && left == gone->count ? true : change_of_nothing(cursor);
}

static bool get_changes(struct cursor *cursor, struct merge_vector *vector, bool is_set, uint64_t base)
{
    struct merge_vector changed = {0}, gone = {0};
    bool is_right = is_set ? notice_get_set(cursor, &changed) : notice_get_vector(cursor, &changed, base);

    is_right = is_right && notice_get_set(cursor, &gone);
    if (is_right && (changed.count != 0 || gone.count != 0))
        is_right = apply(cursor, vector, &changed, &gone);
    merge_vector_fini(&changed);
    merge_vector_fini(&gone);
    return is_right;
}

/* False: there is no such value. */
static bool get_flag(struct cursor *cursor, bool *flag)
{
    uint8_t byte;

    if (!get_byte(cursor, &byte))
        return false;
    *flag = byte != 0;
    return byte <= 1 ? true : cursor_fail(cursor, "neither the same nor another");
}

static bool get_members(struct cursor *cursor, struct merge_members *members)
{
    struct merge_members before = *members;
    bool is_other, is_right;

    if (!get_flag(cursor, &is_other))
        return false;
    if (!is_other)
        return true;
    *members = (struct merge_members){0};
    is_right = notice_get_members(cursor, members);
    if (is_right && members_are_same(&before, members))
        is_right = change_of_nothing(cursor);
    merge_members_fini(&before);
    return is_right;
}

static bool get_start_of_word(struct cursor *cursor, struct merge_word *word)
{
    const struct merge_word before = {.origin = word->origin,
                                      .incarnation = word->incarnation,
                                      .sequence = word->sequence};

    if (!notice_get_id(cursor, &word->origin) || !notice_get_incarnation(cursor, &word->incarnation) ||
        !get_varint(cursor, &word->sequence))
        return false;
    return word_is_same(&before, word) ? change_of_nothing(cursor) : true;
}

/* Onto the word before. */
static bool get_word(struct cursor *cursor, struct merge_word *word, uint64_t base)
{
    return get_start_of_word(cursor, word) && notice_get_wall(cursor, &word->wall) &&
           notice_get_stamp(cursor, base, &word->frontier) && get_changes(cursor, &word->vector, false, base) &&
           get_changes(cursor, &word->saved, false, base) && get_changes(cursor, &word->closed, true, 0) &&
           get_members(cursor, &word->members);
}

static struct merge_word *word_create(uint64_t name)
{
    struct merge_word *word = mem_alloc_zero(sizeof(*word));

    word->references = 1;
    word->name = name;
    return word;
}

/* A word that is another one than before is made of that one, which nobody else has. */
static bool get_words(struct cursor *cursor, const struct merge_beat *before, struct merge_beat *now)
{
    uint64_t count, name, last = 0;
    bool is_other;

    if (!get_count(cursor, WORD_BYTES_LEAST, &count))
        return false;
    if (count > NOTICE_MEMBERS_MOST)
        return cursor_fail(cursor, "nobody has so many members");
    for (uint64_t i = 0; i < count; i++, last = name) {
        struct merge_word *word;

        if (!notice_get_id(cursor, &name) || !get_flag(cursor, &is_other))
            return false;
        if (name <= last)
            return cursor_fail(cursor, "names do not ascend");
        word = word_of(before, name);
        if (word == NULL && !is_other)
            return cursor_fail(cursor, "there was no such word before");
        word = word != NULL ? merge_word_acquire(word) : word_create(name);
        *ARRAY_PUSH(&now->words) = word;
        if (is_other && !get_word(cursor, word, now->clock))
            return false;
    }
    return true;
}

/* Onto the beat before. */
static bool get_beat(struct cursor *cursor, struct merge_beat *beat)
{
    struct merge_beat before = {.words.items = beat->words.items, .words.count = beat->words.count};
    bool is_right;

    beat->words.items = NULL;
    beat->words.count = beat->words.capacity = 0;
    is_right = notice_get_clock(cursor, &beat->clock) && get_changes(cursor, &beat->vector, false, beat->clock) &&
               get_changes(cursor, &beat->deeds, false, beat->clock) &&
               get_changes(cursor, &beat->offers, false, beat->clock) && get_members(cursor, &beat->members) &&
               get_changes(cursor, &beat->closed, true, 0) && get_changes(cursor, &beat->removed, true, 0) &&
               get_words(cursor, &before, beat);
    merge_beat_fini(&before);
    return is_right;
}

static uint64_t count_items(const struct merge_beat *beat)
{
    uint64_t count = (uint64_t)beat->vector.count + beat->deeds.count + beat->offers.count + beat->closed.count +
                     beat->removed.count;

    for (uint32_t i = 0; i < beat->words.count; i++) {
        const struct merge_word *word = beat->words.items[i];

        count += (uint64_t)word->vector.count + word->saved.count + word->closed.count;
    }
    return count;
}

bool beats_read(struct beats *beats, struct slice body, struct merge_beat *beat, char error[NOTICE_ERROR_BYTES])
{
    struct cursor cursor = cursor_of(body);
    bool is_right = get_beat(&cursor, &beats->last);

    *beat = (struct merge_beat){0};
    if (is_right && count_items(&beats->last) > BEATS_ITEMS_MOST)
        is_right = cursor_fail(&cursor, "it has more starts than a beat may have");
    if (!notice_ends(&cursor, is_right, "beat", error))
        return false;
    copy_rest(beat, &beats->last);
    for (uint32_t i = 0; i < beats->last.words.count; i++)
        *ARRAY_PUSH(&beat->words) = word_copy(beats->last.words.items[i]);
    return true;
}
