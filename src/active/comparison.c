#include "active/comparison.h"

#include "active/cursor.h"
#include "active/notice_priv.h"
#include "base/array.h"
#include "base/mem.h"
#include "store/stamp.h"

#include <stdio.h>
#include <string.h>

enum { SUM_BYTES = 16, KEY_BYTES_LEAST = 1 + 1 + SUM_BYTES + 8 + 8 };

void comparison_request_fini(struct comparison_request *request)
{
    merge_vector_fini(&request->deeds);
    *request = (struct comparison_request){.number = 0};
}

void comparison_answer_fini(struct comparison_answer *answer)
{
    merge_vector_fini(&answer->deeds);
    mem_free(answer->digests);
    ARRAY_FINI(&answer->keys);
    *answer = (struct comparison_answer){.number = 0};
}

/* ------------------------------------------------------------------------------------------------------- writing -- */

void comparison_write_request(struct buffer *body, const struct comparison_request *request)
{
    uint32_t next = 0;

    put_fixed(body, request->number);
    put_fixed(body, request->secret.words[0]);
    put_fixed(body, request->secret.words[1]);
    put_fixed(body, (uint64_t)request->until_ms);
    put_fixed(body, request->clock);
    notice_put_vector(body, &request->deeds, request->clock);
    put_varint(body, request->wanted_count);
    for (uint32_t slot = 0; slot < SLOT_COUNT && request->wanted_count != 0; slot++) {
        if (!comparison_has(&request->wanted, slot))
            continue;
        put_varint(body, slot - next);
        next = slot + 1;
    }
}

static void put_sum(struct buffer *body, const struct slot_sum *sum)
{
    put_fixed(body, sum->words[0]);
    put_fixed(body, sum->words[1]);
}

static void put_keys(struct buffer *body, const struct comparison_keys *keys)
{
    put_varint(body, keys->count);
    for (uint32_t i = 0; i < keys->count; i++) {
        const struct comparison_key *key = &keys->items[i];

        put_varint(body, key->db);
        put_varint(body, key->name.size);
        buffer_append_slice(body, key->name);
        put_sum(body, &key->sum);
        put_fixed(body, key->last.stamp);
        put_fixed(body, key->last.origin);
    }
}

void comparison_write_answer(struct buffer *body, const struct comparison_answer *answer)
{
    put_fixed(body, answer->number);
    put_byte(body, (uint8_t)answer->kind);
    if (answer->kind == COMPARISON_BUSY || answer->kind == COMPARISON_FAILED)
        return;
    put_fixed(body, answer->clock);
    notice_put_vector(body, &answer->deeds, answer->clock);
    for (unsigned i = 0; i < COMPARISON_SLOT_WORDS; i++)
        put_fixed(body, answer->clear.words[i]);
    if (answer->kind == COMPARISON_KEYS) {
        put_keys(body, &answer->keys);
        return;
    }
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        if (comparison_has(&answer->clear, slot))
            put_sum(body, &answer->digests->slots[slot]);
    }
}

void comparison_write_repair(struct buffer *body, uint64_t number, const struct comparison_keys *keys)
{
    put_fixed(body, number);
    put_keys(body, keys);
}

/* ------------------------------------------------------------------------------------------------------- reading -- */

static bool get_end(struct cursor *cursor)
{
    return cursor->error == NULL && cursor_left(cursor) == 0 ? true : cursor_fail(cursor, "bytes behind the end");
}

static bool say(const struct cursor *cursor, char error[COMPARISON_ERROR_BYTES])
{
    (void)snprintf(error, COMPARISON_ERROR_BYTES, "byte %zu: %s", (size_t)(cursor->at - cursor->begin), cursor->error);
    return false;
}

static bool get_sum(struct cursor *cursor, struct slot_sum *sum)
{
    return get_fixed(cursor, &sum->words[0]) && get_fixed(cursor, &sum->words[1]);
}

static bool get_deeds(struct cursor *cursor, uint64_t *clock, struct merge_vector *deeds)
{
    return notice_get_clock(cursor, clock) && notice_get_vector(cursor, deeds, *clock);
}

static bool get_until(struct cursor *cursor, int64_t *until_ms)
{
    uint64_t number;

    if (!get_fixed(cursor, &number))
        return false;
    *until_ms = (int64_t)number;
    return number <= INT64_MAX ? true : cursor_fail(cursor, "a time is not possible");
}

static bool get_wanted(struct cursor *cursor, struct comparison_request *request)
{
    uint64_t count, slot = 0, step;

    if (!get_count(cursor, 1, &count))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if (!get_varint(cursor, &step))
            return false;
        if (step >= SLOT_COUNT || slot + step >= SLOT_COUNT)
            return cursor_fail(cursor, "there is no such slot");
        slot += step;
        comparison_set(&request->wanted, (uint32_t)slot++);
        request->wanted_count++;
    }
    return true;
}

bool comparison_read_request(struct slice body, struct comparison_request *request, char error[COMPARISON_ERROR_BYTES])
{
    struct cursor cursor = cursor_of(body);

    *request = (struct comparison_request){.number = 0};
    if (get_fixed(&cursor, &request->number) && get_fixed(&cursor, &request->secret.words[0]) &&
        get_fixed(&cursor, &request->secret.words[1]) && get_until(&cursor, &request->until_ms) &&
        get_deeds(&cursor, &request->clock, &request->deeds) && get_wanted(&cursor, request) && get_end(&cursor))
        return true;
    comparison_request_fini(request);
    return say(&cursor, error);
}

static bool get_last(struct cursor *cursor, struct merge_place *last)
{
    if (!get_fixed(cursor, &last->stamp) || !get_fixed(cursor, &last->origin))
        return false;
    if (last->stamp == 0 ? last->origin == 0 : stamp_is_possible(last->stamp))
        return true;
    return cursor_fail(cursor, "a stamp is not possible");
}

static bool get_key(struct cursor *cursor, unsigned db_count, struct comparison_key *key)
{
    uint64_t db, size;

    if (!get_varint(cursor, &db) || !get_varint(cursor, &size))
        return false;
    if (db >= db_count)
        return cursor_fail(cursor, "there is no such database here");
    key->db = (unsigned)db;
    return get_bytes(cursor, size, &key->name) && get_sum(cursor, &key->sum) && get_last(cursor, &key->last);
}

static bool get_keys(struct cursor *cursor, unsigned db_count, struct comparison_keys *keys)
{
    uint64_t count;

    if (!get_count(cursor, KEY_BYTES_LEAST, &count))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if (!get_key(cursor, db_count, ARRAY_PUSH(keys)))
            return false;
    }
    return true;
}

static bool get_sums(struct cursor *cursor, struct comparison_answer *answer)
{
    answer->digests = mem_alloc_zero(sizeof(*answer->digests));
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        if (comparison_has(&answer->clear, slot) && !get_sum(cursor, &answer->digests->slots[slot]))
            return false;
    }
    return true;
}

static bool are_clear(struct cursor *cursor, const struct comparison_answer *answer)
{
    for (uint32_t i = 0; i < answer->keys.count; i++) {
        if (!comparison_has(&answer->clear, slot_of(answer->keys.items[i].name)))
            return cursor_fail(cursor, "a key is in a slot that is not clear");
    }
    return true;
}

static bool get_answer(struct cursor *cursor, unsigned db_count, struct comparison_answer *answer)
{
    uint8_t kind;

    if (!get_fixed(cursor, &answer->number) || !get_byte(cursor, &kind))
        return false;
    answer->kind = (enum comparison_kind)kind;
    if (kind == COMPARISON_BUSY || kind == COMPARISON_FAILED)
        return true;
    if (kind != COMPARISON_SUMS && kind != COMPARISON_KEYS)
        return cursor_fail(cursor, "it is of no kind that is known");
    if (!get_deeds(cursor, &answer->clock, &answer->deeds))
        return false;
    for (unsigned i = 0; i < COMPARISON_SLOT_WORDS; i++) {
        if (!get_fixed(cursor, &answer->clear.words[i]))
            return false;
    }
    if (kind == COMPARISON_SUMS)
        return get_sums(cursor, answer);
    return get_keys(cursor, db_count, &answer->keys) && are_clear(cursor, answer);
}

bool comparison_read_answer(struct slice body, unsigned db_count, struct comparison_answer *answer,
                            char error[COMPARISON_ERROR_BYTES])
{
    struct cursor cursor = cursor_of(body);

    *answer = (struct comparison_answer){.number = 0};
    if (get_answer(&cursor, db_count, answer) && get_end(&cursor))
        return true;
    comparison_answer_fini(answer);
    return say(&cursor, error);
}

bool comparison_read_repair(struct slice body, unsigned db_count, uint64_t *number, struct comparison_keys *keys,
                            char error[COMPARISON_ERROR_BYTES])
{
    struct cursor cursor = cursor_of(body);

    *keys = (struct comparison_keys){.count = 0};
    if (get_fixed(&cursor, number) && get_keys(&cursor, db_count, keys) && get_end(&cursor))
        return true;
    ARRAY_FINI(keys);
    return say(&cursor, error);
}
