#include "persist/rdb_read_stream.h"

#include "base/mem.h"

/* What is pending in a group comes before the consumers that it belongs to. */
struct waiting {
    struct stream_id id;
    int64_t delivery_ms;
    uint64_t delivery_count;
    bool is_owned; /* a consumer has claimed it */
};

struct waiting_list { /* by id, ascending */
    struct waiting *items;
    uint64_t count, owned;
};

enum { NODE_LEAST_BYTES = 1 + STREAM_ID_BYTES + 1, WAITING_LEAST_BYTES = STREAM_ID_BYTES + 8 + 1 };

static bool read_id(struct rdb_reader *reader, struct stream_id *id)
{
    return rdb_read_length(reader, &id->ms) && rdb_read_length(reader, &id->seq);
}

static bool read_raw_id(struct rdb_reader *reader, struct stream_id *id)
{
    struct slice bytes;

    if (!rdb_read_bytes(reader, STREAM_ID_BYTES, &bytes))
        return false;
    *id = stream_id_decode(bytes.data);
    return true;
}

static bool read_nodes(struct rdb_reader *reader, struct stream *stream)
{
    uint64_t count;

    if (!rdb_read_count(reader, NODE_LEAST_BYTES, &count))
        return false;
    for (; count != 0; count--) {
        struct slice bytes;
        struct stream_id id;

        if (!rdb_read_text(reader, &bytes))
            return false;
        if (bytes.size != STREAM_ID_BYTES)
            return rdb_corrupt(reader, "a node of a stream has no id");
        id = stream_id_decode(bytes.data);
        if (!rdb_read_text(reader, &bytes))
            return false;
        if (!stream_load_node(stream, id, bytes))
            return rdb_corrupt(reader, "a node of a stream is damaged");
    }
    return true;
}

static bool read_ids(struct rdb_reader *reader, unsigned type, struct stream *stream)
{
    struct stream_id last, first, max_deleted = STREAM_ID_LEAST;
    uint64_t length, added;

    if (!rdb_read_length(reader, &length) || !read_id(reader, &last))
        return false;
    if (length != stream_length(stream))
        return rdb_corrupt(reader, "a stream has another length than it says");
    added = length;
    if (type != RDB_STREAM_1 &&
        (!read_id(reader, &first) || !read_id(reader, &max_deleted) || !rdb_read_length(reader, &added)))
        return false;
    if (stream_id_compare(last, stream_last_id(stream)) < 0 || stream_id_compare(last, max_deleted) < 0 ||
        added < length)
        return rdb_corrupt(reader, "a stream's last id or its count of entries is too small");
    stream_set_ids(stream, last, max_deleted, added);
    return true;
}

/* ---------------------------------------------------------------------------------------------------- groups -- */

static bool read_waiting(struct rdb_reader *reader, struct waiting_list *list)
{
    uint64_t count;

    if (!rdb_read_count(reader, WAITING_LEAST_BYTES, &count))
        return false;
    if (count == 0)
        return true;
    list->items = mem_try_alloc(count * sizeof(*list->items));
    if (list->items == NULL)
        return rdb_fail(reader, STATUS_NO_MEMORY, "no memory for what is pending in a stream");
    for (; list->count < count; list->count++) {
        struct waiting *item = &list->items[list->count];

        if (!read_raw_id(reader, &item->id) || !rdb_read_i64(reader, &item->delivery_ms) ||
            !rdb_read_length(reader, &item->delivery_count))
            return false;
        item->is_owned = false;
        if (list->count != 0 && stream_id_compare(item[-1].id, item->id) >= 0)
            return rdb_corrupt(reader, "what is pending in a stream is not in order");
    }
    return true;
}

static struct waiting *find_waiting(const struct waiting_list *list, struct stream_id id)
{
    uint64_t low = 0, high = list->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if (stream_id_compare(list->items[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < list->count && stream_id_compare(list->items[low].id, id) == 0 ? &list->items[low] : NULL;
}

static bool read_owned(struct rdb_reader *reader, struct stream_group *group, struct stream_consumer *consumer,
                       struct waiting_list *list)
{
    uint64_t count;

    if (!rdb_read_count(reader, STREAM_ID_BYTES, &count))
        return false;
    for (; count != 0; count--) {
        struct stream_pending *pending;
        struct waiting *item;
        struct stream_id id;

        if (!read_raw_id(reader, &id))
            return false;
        item = find_waiting(list, id);
        if (item == NULL || item->is_owned)
            return rdb_corrupt(reader, "what is pending for a consumer is not, or twice, in its group");
        item->is_owned = true;
        list->owned++;
        pending = stream_pending_assign(group, id, consumer);
        pending->delivery_ms = item->delivery_ms;
        pending->delivery_count = item->delivery_count;
    }
    return true;
}

static bool read_consumer(struct rdb_reader *reader, unsigned type, struct stream_group *group,
                          struct waiting_list *list)
{
    struct stream_consumer *consumer;
    struct slice name;

    if (!rdb_read_text(reader, &name))
        return false;
    if (stream_consumer_find(group, name) != NULL)
        return rdb_corrupt(reader, "a group has two consumers of one name");
    consumer = stream_consumer_create(group, name, 0);
    if (!rdb_read_i64(reader, &consumer->seen_ms))
        return false;
    consumer->active_ms = consumer->seen_ms; /* as good as it can be told */
    if (type == RDB_STREAM_3 && !rdb_read_i64(reader, &consumer->active_ms))
        return false;
    return read_owned(reader, group, consumer, list);
}

static bool read_consumers(struct rdb_reader *reader, unsigned type, struct stream_group *group,
                           struct waiting_list *list)
{
    uint64_t count;

    if (!read_waiting(reader, list) || !rdb_read_count(reader, 1 + 8 + 1, &count))
        return false;
    for (; count != 0; count--) {
        if (!read_consumer(reader, type, group, list))
            return false;
    }
    return list->owned == list->count || rdb_corrupt(reader, "something is pending for no consumer");
}

static bool read_group(struct rdb_reader *reader, unsigned type, struct stream *stream)
{
    struct waiting_list list = {0};
    struct stream_group *group;
    struct stream_id last;
    struct slice name;
    uint64_t entries_read;
    bool good;

    if (!rdb_read_text(reader, &name))
        return false;
    group = stream_group_create(stream, name, STREAM_ID_LEAST, STREAM_READ_UNKNOWN);
    if (group == NULL)
        return rdb_corrupt(reader, "a stream has two groups of one name");
    if (!read_id(reader, &last))
        return false;
    if (type == RDB_STREAM_1)
        entries_read = (uint64_t)stream_entries_up_to(stream, last);
    else if (!rdb_read_length(reader, &entries_read))
        return false;
    group->last_id = last;
    group->entries_read = (int64_t)entries_read;
    good = read_consumers(reader, type, group, &list);
    mem_free(list.items);
    return good;
}

bool rdb_read_stream(struct rdb_reader *reader, unsigned type, struct value *value)
{
    struct stream *stream = stream_create();
    uint64_t count;

    *value = (struct value){stream, ENCODING_STREAM};
    if (!read_nodes(reader, stream) || !read_ids(reader, type, stream) || !rdb_read_count(reader, 1, &count))
        return false;
    for (; count != 0; count--) {
        if (!read_group(reader, type, stream))
            return false;
    }
    return true;
}
