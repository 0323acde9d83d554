#include "active/moment.h"

#include "active/notice_priv.h"
#include "active/uuid.h"
#include "base/array.h"
#include "store/entry.h"
#include "store/stamp.h"
#include "store/window.h"

#include <stdio.h>

enum {
    VERSION = 1,
    VERSION_PART = 2, /* who does not know parts refuses them by their version */
    PLACE_BYTES = 16,
    FLUSH_BYTES_LEAST = 1 + PLACE_BYTES,
    STEP_BYTES_LEAST = 8 + 5,
    RECORD_OVERWROTE = 1 << 0,
    RECORD_HAS_VALUE = 1 << 1,
    RECORD_IS_DIRTY = 1 << 2,
    RECORD_IS_IN_PARTS = 1 << 3,
    RECORD_FLAGS_END = 1 << 4,
    NUMBER_MOST = 18, /* digits */
    STEP_OVERWRITES = 1 << 0,
    STEP_JOINED = 1 << 1, /* its stamp's distance from the first one's, and its weight follow */
    STEP_FLAGS_END = 1 << 2
};

/* ------------------------------------------------------------------------------------------------------- writing -- */

static void put_place(struct buffer *out, struct merge_place place)
{
    put_fixed(out, place.stamp);
    put_fixed(out, place.origin);
}

static void put_bytes(struct buffer *out, struct slice bytes)
{
    put_varint(out, bytes.size);
    buffer_append_slice(out, bytes);
}

void moment_write(struct buffer *out, const struct moment *moment)
{
    put_byte(out, VERSION);
    put_fixed(out, moment->name);
    put_fixed(out, moment->origin);
    put_fixed(out, moment->account.clock);
    put_varint(out, (uint64_t)moment->account.wall);
    notice_put_vector(out, &moment->account.vector, moment->account.clock);
    notice_put_vector(out, &moment->account.deeds, moment->account.clock);
    notice_put_vector(out, &moment->account.cut, moment->account.clock);
    notice_put_set(out, &moment->account.closed);
    notice_put_set(out, &moment->account.removed);
    notice_put_members(out, &moment->account.members);
    put_difference(out, moment->account.clock, moment->account.frontier);
    put_difference(out, moment->account.clock, moment->floor);
    put_varint(out, (uint64_t)moment->account.frontier_wall);
    put_place(out, moment->recheck);
    put_varint(out, moment->flushes.count);
    for (uint32_t i = 0; i < moment->flushes.count; i++) {
        put_varint(out, moment->flushes.items[i].db);
        put_place(out, moment->flushes.items[i].place);
    }
}

static void put_step(struct buffer *out, const struct moment_step *step, uint64_t before)
{
    put_fixed(out, step->place.origin);
    put_difference(out, before, step->place.stamp);
    put_difference(out, step->place.stamp, step->prev);
    put_varint(out, (uint64_t)step->wall);
    put_byte(out, (uint8_t)((step->overwrites ? STEP_OVERWRITES : 0) | (step->joined.first != 0 ? STEP_JOINED : 0)));
    if (step->joined.first != 0) {
        put_difference(out, step->place.stamp, step->joined.first);
        put_varint(out, step->joined.weight);
    }
    put_bytes(out, step->words);
}

void moment_write_record(struct buffer *out, const struct moment_record *record)
{
    uint64_t before = record->base.stamp;

    put_byte(out, VERSION);
    put_byte(out,
             (uint8_t)((record->base_overwrote ? RECORD_OVERWROTE : 0) | (record->has_value ? RECORD_HAS_VALUE : 0) |
                       (record->is_in_parts ? RECORD_IS_IN_PARTS : 0) |
                       (record->dirty.stamp != 0 ? RECORD_IS_DIRTY : 0)));
    put_varint(out, record->db);
    put_bytes(out, record->name);
    put_place(out, record->base);
    if (record->dirty.stamp != 0)
        put_place(out, record->dirty);
    if (record->has_value) {
        put_fixed(out, (uint64_t)record->expire_ms);
        if (!record->is_in_parts)
            put_bytes(out, record->payload);
    }
    put_varint(out, record->steps.count);
    for (uint32_t i = 0; i < record->steps.count; i++) {
        put_step(out, &record->steps.items[i], before);
        before = record->steps.items[i].place.stamp;
    }
}

void moment_write_part(struct buffer *out, struct slice bytes)
{
    put_byte(out, VERSION_PART);
    buffer_append_slice(out, bytes);
}

/* ------------------------------------------------------------------------------------------------------- reading -- */

bool moment_is_part(struct slice bytes, struct slice *part)
{
    if (bytes.size == 0 || bytes.data[0] != VERSION_PART)
        return false;
    *part = slice_make(bytes.data + 1, bytes.size - 1);
    return true;
}

static bool get_version(struct cursor *cursor)
{
    uint8_t version;

    if (!get_byte(cursor, &version))
        return false;
    return version == VERSION || cursor_fail(cursor, "it is of a version that this server does not know");
}

/* An origin of a place may also be the floor's, an eviction's, or unknown. */
static bool get_place(struct cursor *cursor, struct merge_place *place)
{
    if (!get_fixed(cursor, &place->stamp) || !get_fixed(cursor, &place->origin))
        return false;
    return place->stamp == 0 || stamp_is_possible(place->stamp) ? true : cursor_fail(cursor, "a place is not possible");
}

static bool get_sized(struct cursor *cursor, struct slice *bytes)
{
    uint64_t size;

    *bytes = SLICE_EMPTY;
    return get_count(cursor, 1, &size) && get_bytes(cursor, size, bytes);
}

static bool get_db(struct cursor *cursor, unsigned db_count, unsigned *db)
{
    uint64_t number;

    if (!get_varint(cursor, &number))
        return false;
    *db = (unsigned)MIN(number, (uint64_t)UINT32_MAX);
    return number < db_count || number == MOMENT_LIBRARIES ? true
                                                           : cursor_fail(cursor, "there is no such database here");
}

static bool get_flags(struct cursor *cursor, unsigned end, uint8_t *flags)
{
    if (!get_byte(cursor, flags))
        return false;
    return *flags < end ? true : cursor_fail(cursor, "flags of another version");
}

static bool get_flushes(struct cursor *cursor, unsigned db_count, struct moment *moment)
{
    uint64_t count;

    if (!get_count(cursor, FLUSH_BYTES_LEAST, &count))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        struct moment_flush flush;

        if (!get_db(cursor, db_count, &flush.db) || !get_place(cursor, &flush.place))
            return false;
        if (i != 0 && flush.db <= moment->flushes.items[i - 1].db)
            return cursor_fail(cursor, "databases do not ascend");
        *ARRAY_PUSH(&moment->flushes) = flush;
    }
    return true;
}

static bool get_moment(struct cursor *cursor, unsigned db_count, struct moment *moment)
{
    return get_version(cursor) && notice_get_id(cursor, &moment->name) && notice_get_id(cursor, &moment->origin) &&
           notice_get_clock(cursor, &moment->account.clock) && notice_get_wall(cursor, &moment->account.wall) &&
           notice_get_vector(cursor, &moment->account.vector, moment->account.clock) &&
           notice_get_vector(cursor, &moment->account.deeds, moment->account.clock) &&
           notice_get_vector(cursor, &moment->account.cut, moment->account.clock) &&
           notice_get_set(cursor, &moment->account.closed) && notice_get_set(cursor, &moment->account.removed) &&
           notice_get_members(cursor, &moment->account.members) &&
           notice_get_stamp(cursor, moment->account.clock, &moment->account.frontier) &&
           notice_get_stamp(cursor, moment->account.clock, &moment->floor) &&
           notice_get_wall(cursor, &moment->account.frontier_wall) && get_place(cursor, &moment->recheck) &&
           get_flushes(cursor, db_count, moment);
}

void moment_fini(struct moment *moment)
{
    merge_account_fini(&moment->account);
    ARRAY_FINI(&moment->flushes);
}

/* Returns whether all was read; the last thing that was is `is_right`. */
static bool ends(struct cursor *cursor, bool is_right, const char *what, char error[MOMENT_ERROR_BYTES])
{
    if (is_right && cursor_left(cursor) != 0)
        is_right = cursor_fail(cursor, "more follows than belongs to it");
    if (!is_right)
        (void)snprintf(error, MOMENT_ERROR_BYTES, "%s, byte %zu: %s", what, (size_t)(cursor->at - cursor->begin),
                       cursor->error);
    return is_right;
}

bool moment_read(struct slice bytes, unsigned db_count, struct moment *moment, char error[MOMENT_ERROR_BYTES])
{
    struct cursor cursor = cursor_of(bytes);
    bool is_right;

    *moment = (struct moment){.name = 0};
    is_right = get_moment(&cursor, db_count, moment);
    if (ends(&cursor, is_right, "the state of the node", error))
        return true;
    moment_fini(moment);
    *moment = (struct moment){.name = 0};
    return false;
}

/* "*2\r\n": one number, in its one form. */
static bool take_number(struct slice *words, char mark, uint64_t *number)
{
    const char *at = words->data, *end = at + words->size, *digits;

    if (at == end || *at++ != mark)
        return false;
    *number = 0;
    for (digits = at; at < end && *at >= '0' && *at <= '9' && at - digits < NUMBER_MOST; at++)
        *number = *number * 10 + (uint64_t)(*at - '0');
    if (at == digits || (*digits == '0' && at - digits > 1) || end - at < 2 || at[0] != '\r' || at[1] != '\n')
        return false;
    *words = slice_make(at + 2, (size_t)(end - at - 2));
    return true;
}

static bool take_word(struct slice *words, struct slice *word)
{
    uint64_t size;

    if (!take_number(words, '$', &size) || words->size < 2 || size > words->size - 2 || words->data[size] != '\r' ||
        words->data[size + 1] != '\n')
        return false;
    *word = slice_make(words->data, size);
    *words = slice_make(words->data + size + 2, words->size - size - 2);
    return true;
}

/* Commands as RESP, each of which names the key. */
static bool are_words(struct slice words, struct slice name)
{
    if (words.size == 0)
        return false;
    while (words.size != 0) {
        bool has_name = false;
        struct slice word;
        uint64_t count;

        if (!take_number(&words, '*', &count) || count == 0)
            return false;
        for (uint64_t i = 0; i < count; i++) {
            if (!take_word(&words, &word))
                return false;
            has_name = has_name || (i != 0 && slice_equal(word, name));
        }
        if (!has_name)
            return false;
    }
    return true;
}

static bool get_joined(struct cursor *cursor, struct moment_step *step)
{
    if (!get_difference(cursor, 0, &step->joined.first) || !get_varint(cursor, &step->joined.weight))
        return false;
    step->joined.first = step->place.stamp - step->joined.first;
    if (step->joined.weight >= WINDOW_JOINED_MOST)
        return cursor_fail(cursor, "an operation stands for too many");
    return (stamp_is_possible(step->joined.first) && step->joined.first <= step->place.stamp) ||
           cursor_fail(cursor, "an operation begins behind itself");
}

static bool get_step(struct cursor *cursor, struct merge_place before, struct slice name, struct moment_step *step)
{
    uint8_t flags;

    if (!notice_get_id(cursor, &step->place.origin) || !get_difference(cursor, 0, &step->place.stamp) ||
        !get_difference(cursor, 0, &step->prev))
        return false;
    step->place.stamp = before.stamp - step->place.stamp;
    step->prev = step->place.stamp - step->prev;
    if (!stamp_is_possible(step->place.stamp) || !merge_place_before(before, step->place))
        return cursor_fail(cursor, "operations do not ascend");
    if (step->prev >= step->place.stamp)
        return cursor_fail(cursor, "an operation comes before itself");
    if (!notice_get_wall(cursor, &step->wall) || !get_flags(cursor, STEP_FLAGS_END, &flags))
        return false;
    step->overwrites = (flags & STEP_OVERWRITES) != 0;
    step->joined = (struct merge_joined){0};
    if ((flags & STEP_JOINED) != 0 && !get_joined(cursor, step))
        return false;
    if (!get_sized(cursor, &step->words))
        return false;
    return are_words(step->words, name) || cursor_fail(cursor, "an operation is not of its key, or no command");
}

static bool get_value(struct cursor *cursor, struct moment_record *record)
{
    uint64_t expire;

    if (!get_fixed(cursor, &expire))
        return false;
    record->expire_ms = (int64_t)expire;
    if (record->expire_ms < 0 && record->expire_ms != EXPIRE_NEVER)
        return cursor_fail(cursor, "a deadline is not possible");
    return record->is_in_parts || get_sized(cursor, &record->payload);
}

static bool get_steps(struct cursor *cursor, struct moment_record *record)
{
    struct merge_place before = record->base;
    uint64_t count;

    if (!get_count(cursor, STEP_BYTES_LEAST, &count))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        struct moment_step step;

        if (!get_step(cursor, before, record->name, &step))
            return false;
        *ARRAY_PUSH(&record->steps) = step;
        before = step.place;
    }
    return true;
}

static bool get_record(struct cursor *cursor, unsigned db_count, struct moment_record *record)
{
    uint8_t flags;

    if (!get_version(cursor) || !get_flags(cursor, RECORD_FLAGS_END, &flags) ||
        !get_db(cursor, db_count, &record->db) || !get_sized(cursor, &record->name) ||
        !get_place(cursor, &record->base))
        return false;
    record->base_overwrote = (flags & RECORD_OVERWROTE) != 0;
    record->has_value = (flags & RECORD_HAS_VALUE) != 0;
    record->is_in_parts = (flags & RECORD_IS_IN_PARTS) != 0;
    if (record->is_in_parts && !record->has_value)
        return cursor_fail(cursor, "parts of no value");
    if ((flags & RECORD_IS_DIRTY) != 0) {
        if (!get_place(cursor, &record->dirty))
            return false;
        if (record->dirty.stamp == 0)
            return cursor_fail(cursor, "a mark without a stamp");
    }
    return (!record->has_value || get_value(cursor, record)) && get_steps(cursor, record);
}

void moment_record_fini(struct moment_record *record)
{
    ARRAY_FINI(&record->steps);
}

bool moment_read_record(struct slice bytes, unsigned db_count, struct moment_record *record,
                        char error[MOMENT_ERROR_BYTES])
{
    struct cursor cursor = cursor_of(bytes);
    bool is_right;

    *record = (struct moment_record){.db = 0};
    is_right = get_record(&cursor, db_count, record);
    if (ends(&cursor, is_right, "a record of the window", error))
        return true;
    moment_record_fini(record);
    *record = (struct moment_record){.db = 0};
    return false;
}
