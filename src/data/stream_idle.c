/* What is pending in a group by the time of its delivery: the index that XREADGROUP CLAIM asks for.
 *
 * Keys are the delivery time, so that bytes are in the order of numbers, and the id; there are no values. Late entries
 * (STREAM_LATE_CONSUMER) are not in it: nobody was handed them. Nor are those found to be gone from the stream, until
 * they come back. */
#include "base/assert.h"
#include "data/stream_priv.h"

enum { IDLE_KEY_BYTES = 8 + STREAM_ID_BYTES };

static struct slice encode(int64_t delivery_ms, struct slice id, char room[IDLE_KEY_BYTES])
{
    const uint64_t ordered = (uint64_t)delivery_ms ^ UINT64_C(1) << 63;

    for (unsigned i = 0; i < 8; i++)
        room[i] = (char)(unsigned char)(ordered >> (56 - 8 * i));
    memcpy(room + 8, id.data, STREAM_ID_BYTES);
    return slice_make(room, IDLE_KEY_BYTES);
}

static struct stream_idle decode(const char *key)
{
    uint64_t ordered = 0;

    for (unsigned i = 0; i < 8; i++)
        ordered = ordered << 8 | (unsigned char)key[i];
    return (struct stream_idle){.id = stream_id_decode(key + 8), .delivery_ms = (int64_t)(ordered ^ UINT64_C(1) << 63)};
}

/* --- the index --- */

static bool is_indexed(const struct stream_pending *pending)
{
    return !slice_equal(stream_consumer_name(pending->consumer), STREAM_LATE_CONSUMER);
}

void stream_idle_add_slow(struct stream_group *group, struct slice id, const struct stream_pending *pending)
{
    char room[IDLE_KEY_BYTES];

    if (is_indexed(pending))
        radix_set(group->by_time, encode(pending->delivery_ms, id, room), NULL, NULL);
}

void stream_idle_remove_slow(struct stream_group *group, struct slice id, const struct stream_pending *pending)
{
    char room[IDLE_KEY_BYTES];

    radix_remove(group->by_time, encode(pending->delivery_ms, id, room), NULL); /* it may be gone from the stream */
}

static void build(struct stream_group *group)
{
    struct radix_iter iter;

    group->by_time = radix_create();
    radix_iter_init(&iter, group->pending);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter))
        stream_idle_add_slow(group, radix_iter_key(&iter), iter.value);
    radix_iter_fini(&iter);
}

void stream_idle_drop(struct stream_group *group)
{
    radix_destroy(&group->by_time, NULL);
}

void stream_idle_drop_all(struct stream *stream)
{
    struct radix_iter groups;

    radix_iter_init(&groups, stream->groups);
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups))
        stream_idle_drop(groups.value);
    radix_iter_fini(&groups);
}

void stream_idle_is_back(struct stream *stream, struct stream_id id)
{
    char room[STREAM_ID_BYTES];
    const struct slice key = stream_id_encode(id, room);
    struct radix_iter groups;

    radix_iter_init(&groups, stream->groups);
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        struct stream_group *group = groups.value;
        void *pending;

        if (group->by_time != NULL && radix_find(group->pending, key, &pending))
            stream_idle_add_slow(group, key, pending);
    }
    radix_iter_fini(&groups);
}

void stream_idle_validate(const struct stream_group *group)
{
    struct radix_iter iter;

    if (group->by_time == NULL)
        return;
    radix_validate(group->by_time);
    radix_iter_init(&iter, group->by_time);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        const struct stream_idle idle = decode(iter.key);
        const struct stream_pending *pending = stream_pending_find(group, idle.id);

        assert(iter.key_size == IDLE_KEY_BYTES);
        assert(pending != NULL);
        assert(pending->delivery_ms == idle.delivery_ms);
        assert(is_indexed(pending));
    }
    radix_iter_fini(&iter);
}

/* --- asking --- */

void stream_idle_iter_init(struct stream_idle_iter *iter, struct stream_group *group)
{
    if (group->by_time == NULL)
        build(group);
    iter->group = group;
    radix_iter_init(&iter->keys, group->by_time);
    iter->is_begun = false;
}

void stream_idle_iter_fini(struct stream_idle_iter *iter)
{
    radix_iter_fini(&iter->keys);
}

bool stream_idle_iter_next(struct stream_idle_iter *iter, struct stream_idle *idle)
{
    const bool found = iter->is_begun ? radix_next(&iter->keys) : radix_seek(&iter->keys, RADIX_FIRST, SLICE_EMPTY);

    iter->is_begun = true;
    if (found)
        *idle = decode(iter->keys.key);
    return found;
}

void stream_idle_iter_forget(struct stream_idle_iter *iter)
{
    radix_remove(iter->group->by_time, radix_iter_key(&iter->keys), NULL);
}

uint64_t stream_idle_count(const struct stream_group *group)
{
    return group->by_time != NULL ? radix_count(group->by_time) : 0;
}
