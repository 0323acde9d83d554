#include "active/notice.h"

#include "active/cursor.h"
#include "active/frame.h"
#include "active/notice_priv.h"
#include "base/array.h"
#include "base/assert.h"
#include "store/stamp.h"

#include <stdio.h>

enum {
    ID_BYTES = 8,
    VECTOR_ITEM_BYTES_LEAST = ID_BYTES + 1,
    MEMBER_BYTES_LEAST = 2 * ID_BYTES + 1,
    WORD_BYTES_LEAST = 2 * ID_BYTES + 8,
    HELLO_IS_READY = 1
};

/* ------------------------------------------------------------------------------------------------------- writing -- */

static void put_vector(struct buffer *body, const struct merge_vector *vector, uint64_t base)
{
    put_varint(body, vector->count);
    for (uint32_t i = 0; i < vector->count; i++) {
        put_fixed(body, vector->items[i].id);
        put_difference(body, base, vector->items[i].stamp);
    }
}

static void put_set(struct buffer *body, const struct merge_vector *set)
{
    put_varint(body, set->count);
    for (uint32_t i = 0; i < set->count; i++)
        put_fixed(body, set->items[i].id);
}

static void put_members(struct buffer *body, const struct merge_members *members)
{
    put_varint(body, members->count);
    for (uint32_t i = 0; i < members->count; i++) {
        put_fixed(body, members->items[i].name);
        put_fixed(body, members->items[i].origin);
        put_varint(body, members->items[i].incarnation);
    }
}

static void put_word(struct buffer *body, const struct merge_word *word, uint64_t base)
{
    assert(word->wall >= 0);
    put_fixed(body, word->name);
    put_fixed(body, word->origin);
    put_varint(body, word->incarnation);
    put_varint(body, word->sequence);
    put_varint(body, (uint64_t)word->wall);
    put_difference(body, base, word->frontier);
    put_vector(body, &word->vector, base);
    put_vector(body, &word->saved, base);
    put_set(body, &word->closed);
    put_members(body, &word->members);
}

void notice_write_hello(struct buffer *body, const struct notice_hello *hello)
{
    const struct merge_hello *said = &hello->hello;

    put_byte(body, hello->version_least);
    put_byte(body, hello->version_most);
    buffer_append(body, hello->name.bytes, UUID_BYTES);
    buffer_append(body, hello->origin.bytes, UUID_BYTES);
    put_byte(body, said->ready ? HELLO_IS_READY : 0);
    put_varint(body, said->incarnation);
    put_fixed(body, said->clock);
    put_members(body, &said->members);
    put_vector(body, &said->vector, said->clock);
    put_vector(body, &said->deeds, said->clock);
    put_vector(body, &said->cut, said->clock);
    put_set(body, &said->closed);
    put_set(body, &said->removed);
    put_set(body, &hello->former);
    put_set(body, &hello->wanted);
}

void notice_write_beat(struct buffer *body, const struct merge_beat *beat)
{
    put_fixed(body, beat->clock);
    put_vector(body, &beat->vector, beat->clock);
    put_vector(body, &beat->deeds, beat->clock);
    put_vector(body, &beat->offers, beat->clock);
    put_members(body, &beat->members);
    put_set(body, &beat->closed);
    put_set(body, &beat->removed);
    put_varint(body, beat->words.count);
    for (uint32_t i = 0; i < beat->words.count; i++)
        put_word(body, beat->words.items[i], beat->clock);
}

void notice_write_want(struct buffer *body, uint64_t clock, const struct merge_vector *wanted)
{
    put_fixed(body, clock);
    put_vector(body, wanted, clock);
}

void notice_write_set(struct buffer *body, const struct merge_vector *set)
{
    put_set(body, set);
}

/* ------------------------------------------------------------------------------------------------------- reading -- */

static bool get_id(struct cursor *cursor, uint64_t *id)
{
    if (!get_fixed(cursor, id))
        return false;
    return uuid_id_is_valid(*id) ? true : cursor_fail(cursor, "nobody has this id");
}

/* `last`: the id before it in a row that ascends. */
static bool get_next_id(struct cursor *cursor, uint64_t last, uint64_t *id)
{
    if (!get_id(cursor, id))
        return false;
    return *id > last ? true : cursor_fail(cursor, "ids do not ascend");
}

static bool get_stamp(struct cursor *cursor, uint64_t base, uint64_t *stamp)
{
    uint64_t before;

    if (!get_difference(cursor, 0, &before))
        return false;
    *stamp = base - before;
    return *stamp == 0 || stamp_is_possible(*stamp) ? true : cursor_fail(cursor, "a stamp is not possible");
}

static bool get_clock(struct cursor *cursor, uint64_t *clock)
{
    if (!get_fixed(cursor, clock))
        return false;
    return *clock == 0 || stamp_is_possible(*clock) ? true : cursor_fail(cursor, "the clock is not possible");
}

static bool get_vector(struct cursor *cursor, struct merge_vector *vector, uint64_t base)
{
    uint64_t count, last = 0, id, stamp;

    if (!get_count(cursor, VECTOR_ITEM_BYTES_LEAST, &count))
        return false;
    for (uint64_t i = 0; i < count; i++, last = id) {
        if (!get_next_id(cursor, last, &id) || !get_stamp(cursor, base, &stamp))
            return false;
        *ARRAY_PUSH(vector) = (struct merge_vector_item){id, stamp};
    }
    return true;
}

static bool get_set(struct cursor *cursor, struct merge_vector *set)
{
    uint64_t count, last = 0, id;

    if (!get_count(cursor, ID_BYTES, &count))
        return false;
    for (uint64_t i = 0; i < count; i++, last = id) {
        if (!get_next_id(cursor, last, &id))
            return false;
        *ARRAY_PUSH(set) = (struct merge_vector_item){id, 1};
    }
    return true;
}

static bool get_incarnation(struct cursor *cursor, uint32_t *incarnation)
{
    uint64_t number;

    if (!get_varint(cursor, &number))
        return false;
    *incarnation = (uint32_t)number;
    return number <= UINT32_MAX ? true : cursor_fail(cursor, "nobody started so often");
}

static bool get_members(struct cursor *cursor, struct merge_members *members)
{
    uint64_t count, last = 0;

    if (!get_count(cursor, MEMBER_BYTES_LEAST, &count))
        return false;
    if (count > NOTICE_MEMBERS_MOST)
        return cursor_fail(cursor, "nobody has so many members");
    for (uint64_t i = 0; i < count; i++) {
        struct merge_member member;

        if (!get_next_id(cursor, last, &member.name) || !get_id(cursor, &member.origin) ||
            !get_incarnation(cursor, &member.incarnation))
            return false;
        *ARRAY_PUSH(members) = member;
        last = member.name;
    }
    return true;
}

static bool get_wall(struct cursor *cursor, int64_t *wall)
{
    uint64_t number;

    if (!get_varint(cursor, &number))
        return false;
    *wall = (int64_t)number;
    return number <= (uint64_t)STAMP_MOST_MS ? true : cursor_fail(cursor, "the wall time is not possible");
}

static bool get_word(struct cursor *cursor, struct merge_word *word, uint64_t base)
{
    return get_id(cursor, &word->name) && get_id(cursor, &word->origin) &&
           get_incarnation(cursor, &word->incarnation) && get_varint(cursor, &word->sequence) &&
           get_wall(cursor, &word->wall) && get_stamp(cursor, base, &word->frontier) &&
           get_vector(cursor, &word->vector, base) && get_vector(cursor, &word->saved, base) &&
           get_set(cursor, &word->closed) && get_members(cursor, &word->members);
}

static bool get_words(struct cursor *cursor, struct merge_beat *beat)
{
    uint64_t count;

    if (!get_count(cursor, WORD_BYTES_LEAST, &count))
        return false;
    if (count > NOTICE_MEMBERS_MOST)
        return cursor_fail(cursor, "nobody has so many members");
    for (uint64_t i = 0; i < count; i++) {
        struct merge_word *word = mem_alloc_zero(sizeof(*word));

        word->references = 1;
        *ARRAY_PUSH(&beat->words) = word;
        if (!get_word(cursor, word, beat->clock))
            return false;
    }
    return true;
}

static bool get_uuid(struct cursor *cursor, struct uuid *uuid)
{
    struct slice bytes;

    if (!get_bytes(cursor, UUID_BYTES, &bytes))
        return false;
    memcpy(uuid->bytes, bytes.data, UUID_BYTES);
    return uuid_is_nil(uuid) ? cursor_fail(cursor, "nobody has this uuid") : true;
}

/* Returns whether all of the body was read; the last thing that was is `is_right`. */
static bool ends(struct cursor *cursor, bool is_right, const char *what, char error[NOTICE_ERROR_BYTES])
{
    if (is_right && cursor_left(cursor) != 0)
        is_right = cursor_fail(cursor, "more follows than belongs to it");
    if (!is_right)
        (void)snprintf(error, NOTICE_ERROR_BYTES, "%s, byte %zu: %s", what, (size_t)(cursor->at - cursor->begin),
                       cursor->error);
    return is_right;
}

static bool get_versions(struct cursor *cursor, struct notice_hello *hello)
{
    if (!get_byte(cursor, &hello->version_least) || !get_byte(cursor, &hello->version_most))
        return false;
    return hello->version_least != 0 && hello->version_least <= hello->version_most
               ? true
               : cursor_fail(cursor, "versions of nothing");
}

static bool get_hello(struct cursor *cursor, struct notice_hello *hello)
{
    struct merge_hello *said = &hello->hello;
    uint8_t flags;

    if (!get_versions(cursor, hello) || !get_uuid(cursor, &hello->name) || !get_uuid(cursor, &hello->origin) ||
        !get_byte(cursor, &flags))
        return false;
    if ((flags & ~HELLO_IS_READY) != 0)
        return cursor_fail(cursor, "flags of another version");
    said->ready = flags != 0;
    said->name = uuid_id(&hello->name);
    said->origin = uuid_id(&hello->origin);
    return get_incarnation(cursor, &said->incarnation) && get_clock(cursor, &said->clock) &&
           get_members(cursor, &said->members) && get_vector(cursor, &said->vector, said->clock) &&
           get_vector(cursor, &said->deeds, said->clock) && get_vector(cursor, &said->cut, said->clock) &&
           get_set(cursor, &said->closed) && get_set(cursor, &said->removed) && get_set(cursor, &hello->former) &&
           get_set(cursor, &hello->wanted);
}

void notice_hello_fini(struct notice_hello *hello)
{
    merge_members_fini(&hello->hello.members);
    merge_vector_fini(&hello->hello.vector);
    merge_vector_fini(&hello->hello.deeds);
    merge_vector_fini(&hello->hello.cut);
    merge_vector_fini(&hello->hello.closed);
    merge_vector_fini(&hello->hello.removed);
    merge_vector_fini(&hello->former);
    merge_vector_fini(&hello->wanted);
}

bool notice_read_hello(struct slice body, struct notice_hello *hello, char error[NOTICE_ERROR_BYTES])
{
    struct cursor cursor = cursor_of(body);
    bool is_right;

    *hello = (struct notice_hello){0};
    is_right = get_hello(&cursor, hello);
    if (ends(&cursor, is_right, "hello", error))
        return true;
    notice_hello_fini(hello);
    return false;
}

unsigned notice_choose_version(const struct notice_hello *hello)
{
    const unsigned most = MIN((unsigned)hello->version_most, (unsigned)FRAME_VERSION_MOST);

    return most >= hello->version_least && most >= FRAME_VERSION_LEAST ? most : 0;
}

bool notice_read_beat(struct slice body, struct merge_beat *beat, char error[NOTICE_ERROR_BYTES])
{
    struct cursor cursor = cursor_of(body);
    bool is_right;

    *beat = (struct merge_beat){0};
    is_right = get_clock(&cursor, &beat->clock) && get_vector(&cursor, &beat->vector, beat->clock) &&
               get_vector(&cursor, &beat->deeds, beat->clock) && get_vector(&cursor, &beat->offers, beat->clock) &&
               get_members(&cursor, &beat->members) && get_set(&cursor, &beat->closed) &&
               get_set(&cursor, &beat->removed) && get_words(&cursor, beat);
    if (ends(&cursor, is_right, "beat", error))
        return true;
    merge_beat_fini(beat);
    *beat = (struct merge_beat){0};
    return false;
}

bool notice_read_want(struct slice body, uint64_t *clock, struct merge_vector *wanted, char error[NOTICE_ERROR_BYTES])
{
    struct cursor cursor = cursor_of(body);
    bool is_right;

    *wanted = (struct merge_vector){0};
    is_right = get_clock(&cursor, clock) && get_vector(&cursor, wanted, *clock);
    if (ends(&cursor, is_right, "want", error))
        return true;
    merge_vector_fini(wanted);
    return false;
}

bool notice_read_set(struct slice body, struct merge_vector *set, char error[NOTICE_ERROR_BYTES])
{
    struct cursor cursor = cursor_of(body);
    bool is_right;

    *set = (struct merge_vector){0};
    is_right = get_set(&cursor, set);
    if (ends(&cursor, is_right, "set of origins", error))
        return true;
    merge_vector_fini(set);
    return false;
}

/* --------------------------------------------------------------------------------------------- for other formats -- */

void notice_put_vector(struct buffer *body, const struct merge_vector *vector, uint64_t base)
{
    put_vector(body, vector, base);
}

void notice_put_set(struct buffer *body, const struct merge_vector *set)
{
    put_set(body, set);
}

void notice_put_members(struct buffer *body, const struct merge_members *members)
{
    put_members(body, members);
}

bool notice_get_id(struct cursor *cursor, uint64_t *id)
{
    return get_id(cursor, id);
}

bool notice_get_stamp(struct cursor *cursor, uint64_t base, uint64_t *stamp)
{
    return get_stamp(cursor, base, stamp);
}

bool notice_get_clock(struct cursor *cursor, uint64_t *clock)
{
    return get_clock(cursor, clock);
}

bool notice_get_incarnation(struct cursor *cursor, uint32_t *incarnation)
{
    return get_incarnation(cursor, incarnation);
}

bool notice_get_wall(struct cursor *cursor, int64_t *wall)
{
    return get_wall(cursor, wall);
}

bool notice_get_vector(struct cursor *cursor, struct merge_vector *vector, uint64_t base)
{
    return get_vector(cursor, vector, base);
}

bool notice_get_set(struct cursor *cursor, struct merge_vector *set)
{
    return get_set(cursor, set);
}

bool notice_get_members(struct cursor *cursor, struct merge_members *members)
{
    return get_members(cursor, members);
}

bool notice_ends(struct cursor *cursor, bool is_right, const char *what, char error[NOTICE_ERROR_BYTES])
{
    return ends(cursor, is_right, what, error);
}
