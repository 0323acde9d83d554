#include "data/stream_node.h"

#include "base/assert.h"

static int64_t number_at(const struct listpack *node, listpack_at at)
{
    return listpack_get(node, at).number;
}

static listpack_at skip(const struct listpack *node, listpack_at at, uint64_t count)
{
    for (; count != 0; count--)
        at = listpack_next(node, at);
    return at;
}

struct listpack *stream_node_create(const struct slice *pairs, size_t field_count)
{
    struct listpack *node = listpack_create();

    listpack_append_int(&node, 0);
    listpack_append_int(&node, 0);
    listpack_append_int(&node, (int64_t)field_count);
    for (size_t i = 0; i < field_count; i++)
        listpack_append(&node, pairs[2 * i]);
    listpack_append_int(&node, 0);
    return node;
}

static bool has_fields(const struct listpack *node, const struct slice *pairs, size_t field_count)
{
    listpack_at at = listpack_seek(node, 2);

    if (number_at(node, at) != (int64_t)field_count)
        return false;
    for (size_t i = 0; i < field_count; i++) {
        at = listpack_next(node, at);
        if (!listpack_equals(node, at, pairs[2 * i]))
            return false;
    }
    return true;
}

void stream_node_append(struct listpack **node, struct stream_id node_id, struct stream_id id,
                        const struct slice *pairs, size_t field_count)
{
    bool same = has_fields(*node, pairs, field_count);
    uint64_t live = stream_node_live(*node);

    listpack_append_int(node, same ? STREAM_ENTRY_SAME_FIELDS : 0);
    listpack_append_int(node, (int64_t)(id.ms - node_id.ms));
    listpack_append_int(node, (int64_t)(id.seq - node_id.seq));
    if (!same)
        listpack_append_int(node, (int64_t)field_count);
    for (size_t i = 0; i < field_count; i++) {
        if (!same)
            listpack_append(node, pairs[2 * i]);
        listpack_append(node, pairs[2 * i + 1]);
    }
    listpack_append_int(node, (int64_t)(same ? field_count + 3 : 2 * field_count + 4));
    listpack_replace_int(node, listpack_first(*node), (int64_t)(live + 1));
}

void stream_node_cut_last(struct listpack **node)
{
    const uint64_t live = stream_node_live(*node);
    const listpack_at at = stream_node_entry_before(*node, listpack_last(*node));

    assert(live > 1 && at != LISTPACK_NONE);
    (void)listpack_remove(node, at, (uint32_t)number_at(*node, listpack_last(*node)) + 1);
    listpack_replace_int(node, listpack_first(*node), (int64_t)(live - 1));
}

uint64_t stream_node_live(const struct listpack *node)
{
    return (uint64_t)number_at(node, listpack_first(node));
}

uint64_t stream_node_deleted(const struct listpack *node)
{
    return (uint64_t)number_at(node, listpack_next(node, listpack_first(node)));
}

void stream_node_count_deleted(struct listpack **node, uint64_t more)
{
    uint64_t live = stream_node_live(*node), deleted = stream_node_deleted(*node);

    assert(more <= live);
    listpack_replace_int(node, listpack_first(*node), (int64_t)(live - more));
    listpack_replace_int(node, listpack_next(*node, listpack_first(*node)), (int64_t)(deleted + more));
}

void stream_node_mark(struct listpack **node, const struct stream_entry *entry)
{
    listpack_replace_int(node, entry->flags_at, entry->flags | STREAM_ENTRY_DELETED); /* takes the same room */
}

listpack_at stream_node_first_field(const struct listpack *node)
{
    return listpack_seek(node, 3);
}

listpack_at stream_node_first_entry(const struct listpack *node)
{
    listpack_at at = listpack_seek(node, 2);

    return skip(node, at, (uint64_t)number_at(node, at) + 2);
}

listpack_at stream_node_read(const struct listpack *node, struct stream_id node_id, listpack_at at,
                             struct stream_entry *entry)
{
    bool same;

    entry->flags_at = at;
    entry->flags = number_at(node, at);
    same = (entry->flags & STREAM_ENTRY_SAME_FIELDS) != 0;
    at = listpack_next(node, at);
    entry->id.ms = node_id.ms + (uint64_t)number_at(node, at);
    at = listpack_next(node, at);
    entry->id.seq = node_id.seq + (uint64_t)number_at(node, at);
    at = listpack_next(node, at);
    if (same) {
        entry->field_count = (uint64_t)number_at(node, listpack_seek(node, 2));
    } else {
        entry->field_count = (uint64_t)number_at(node, at);
        at = listpack_next(node, at);
    }
    entry->field_at = at;
    at = skip(node, at, same ? entry->field_count : 2 * entry->field_count);
    return listpack_next(node, at);
}

listpack_at stream_node_entry_before(const struct listpack *node, listpack_at end)
{
    int64_t count = number_at(node, end);

    if (count == 0)
        return LISTPACK_NONE;
    for (; count != 0; count--)
        end = listpack_previous(node, end);
    return end;
}

/* --- from outside --- */

/* Takes one number; false: there is none. */
static bool take_number(const struct listpack *node, listpack_at *at, int64_t *number)
{
    struct listpack_value value;

    if (*at == LISTPACK_NONE)
        return false;
    value = listpack_get(node, *at);
    *number = value.number;
    *at = listpack_next(node, *at);
    return value.text.data == NULL;
}

static bool take_any(const struct listpack *node, listpack_at *at, int64_t count)
{
    if (count < 0)
        return false;
    for (; count != 0 && *at != LISTPACK_NONE; count--)
        *at = listpack_next(node, *at);
    return count == 0;
}

static bool take_entry(const struct listpack *node, listpack_at *at, int64_t master_count, struct stream_id *id,
                       int64_t *flags)
{
    int64_t ms, seq, count = master_count, back;
    bool same;

    if (!take_number(node, at, flags) || *flags < 0 || *flags > 3)
        return false;
    same = (*flags & STREAM_ENTRY_SAME_FIELDS) != 0;
    if (!take_number(node, at, &ms) || !take_number(node, at, &seq))
        return false;
    id->ms += (uint64_t)ms;
    id->seq += (uint64_t)seq;
    if (!same && (!take_number(node, at, &count) || count < 0 || count > UINT32_MAX))
        return false;
    if (!take_any(node, at, same ? count : 2 * count))
        return false;
    return take_number(node, at, &back) && back == (same ? count + 3 : 2 * count + 4);
}

static bool check_entries(const struct listpack *node, listpack_at at, int64_t master_count, struct stream_id node_id,
                          struct stream_node_info *info, uint64_t *deleted)
{
    uint64_t count = 0;

    for (; at != LISTPACK_NONE; count++) {
        struct stream_id id = node_id;
        int64_t flags;

        if (!take_entry(node, &at, master_count, &id, &flags))
            return false;
        if (stream_id_compare(id, count == 0 ? node_id : info->last) < (count == 0 ? 0 : 1))
            return false;
        if (count == 0)
            info->first = id;
        info->last = id;
        if (flags & STREAM_ENTRY_DELETED) {
            ++*deleted;
        } else {
            if (info->live++ == 0)
                info->first_live = id;
            info->last_live = id;
        }
    }
    return true;
}

bool stream_node_check(struct stream_id node_id, struct slice bytes, struct stream_node_info *info)
{
    const struct listpack *node = (const struct listpack *)(const void *)bytes.data;
    int64_t live, deleted, field_count, end;
    uint64_t seen_deleted = 0;
    listpack_at at;

    *info = (struct stream_node_info){0};
    if (!listpack_check(bytes))
        return false;
    at = listpack_first(node);
    if (!take_number(node, &at, &live) || !take_number(node, &at, &deleted) || !take_number(node, &at, &field_count) ||
        !take_any(node, &at, field_count) || !take_number(node, &at, &end) || end != 0)
        return false;
    return check_entries(node, at, field_count, node_id, info, &seen_deleted) && live > 0 &&
           info->live == (uint64_t)live && deleted >= 0 && seen_deleted == (uint64_t)deleted;
}
