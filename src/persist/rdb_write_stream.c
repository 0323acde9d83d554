#include "persist/rdb_write_stream.h"

int rdb_stream_version(const struct stream *stream)
{
    struct radix_iter groups;
    int version = RDB_VERSION_WRITTEN_LEAST;

    if (stream_entries_added(stream) != stream_length(stream) ||
        !stream_id_is_zero(stream_max_deleted_id(stream)))
        return RDB_VERSION_LISTPACKS;
    radix_iter_init(&groups, stream_groups(stream));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        const struct stream_group *group = groups.value;

        if (group->entries_read != stream_entries_up_to(stream, group->last_id))
            version = RDB_VERSION_LISTPACKS;
    }
    radix_iter_fini(&groups);
    return version;
}

static void write_id(struct rdb_writer *writer, struct stream_id id)
{
    rdb_write_length(writer, id.ms);
    rdb_write_length(writer, id.seq);
}

static void write_node(struct stream_id id, struct slice bytes, void *context)
{
    char room[STREAM_ID_BYTES];

    rdb_write_text(context, stream_id_encode(id, room));
    rdb_write_text(context, bytes);
}

static void write_pending(struct rdb_writer *writer, const struct radix *pending, bool with_deliveries)
{
    struct radix_iter iter;

    rdb_write_length(writer, radix_count(pending));
    radix_iter_init(&iter, pending);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        const struct stream_pending *one = iter.value;

        rdb_write_bytes(writer, radix_iter_key(&iter));
        if (!with_deliveries)
            continue;
        rdb_write_u64(writer, (uint64_t)one->delivery_ms);
        rdb_write_length(writer, one->delivery_count);
    }
    radix_iter_fini(&iter);
}

static void write_consumer(struct rdb_writer *writer, enum rdb_type type, const struct stream_consumer *consumer)
{
    rdb_write_text(writer, stream_consumer_name(consumer));
    rdb_write_u64(writer, (uint64_t)consumer->seen_ms);
    if (type == RDB_STREAM_3)
        rdb_write_u64(writer, (uint64_t)consumer->active_ms);
    write_pending(writer, consumer->pending, false);
}

static void write_group(struct rdb_writer *writer, enum rdb_type type, struct slice name,
                        const struct stream_group *group)
{
    struct radix_iter consumers;

    rdb_write_text(writer, name);
    write_id(writer, group->last_id);
    if (type != RDB_STREAM_1)
        rdb_write_length(writer, (uint64_t)group->entries_read);
    write_pending(writer, group->pending, true);
    rdb_write_length(writer, radix_count(group->consumers));
    radix_iter_init(&consumers, group->consumers);
    for (bool more = radix_seek(&consumers, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&consumers))
        write_consumer(writer, type, consumers.value);
    radix_iter_fini(&consumers);
}

void rdb_write_stream(struct rdb_writer *writer, enum rdb_type type, const struct stream *stream)
{
    struct radix_iter groups;

    rdb_write_length(writer, stream_node_count(stream));
    stream_each_node(stream, write_node, writer);
    rdb_write_length(writer, stream_length(stream));
    write_id(writer, stream_last_id(stream));
    if (type != RDB_STREAM_1) {
        write_id(writer, stream_first_id(stream));
        write_id(writer, stream_max_deleted_id(stream));
        rdb_write_length(writer, stream_entries_added(stream));
    }
    rdb_write_length(writer, radix_count(stream_groups(stream)));
    radix_iter_init(&groups, stream_groups(stream));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups))
        write_group(writer, type, radix_iter_key(&groups), groups.value);
    radix_iter_fini(&groups);
}
