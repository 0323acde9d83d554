/* Steps that take changes of a stream back: ids, nodes as they were, the entry that was appended last, groups as they
 * were, and pairs of producers (stream_idmp.c). A node has some hundred entries at most; a group is written down with
 * all that is pending in it. */
#include "base/assert.h"
#include "base/mem.h"
#include "data/stream_kept.h"
#include "data/stream_node.h"
#include "data/stream_priv.h"

struct ids {
    struct stream_id first_id, last_id, max_deleted_id;
    uint64_t entries_added;
};

void stream_note_ids(struct value_log *log, const struct stream *stream)
{
    const struct ids ids = {stream->first_id, stream->last_id, stream->max_deleted_id, stream->entries_added};

    if (value_log_wants(log, STREAM_STEP_IDS))
        value_log_note(log, &(struct value_step){.first = slice_make((const char *)&ids, sizeof(ids)),
                                                 .kind = STREAM_STEP_IDS});
}

void stream_note_node(struct value_log *log, struct slice key, const struct stream_kept *kept)
{
    struct value_step step = {.first = key, .kind = STREAM_STEP_NODE};
    struct listpack *own = NULL;

    if (kept != NULL) {
        step.a = stream_kept_is_packed(kept) ? 2 : 1;
        step.second = listpack_as_bytes(stream_kept_read(kept, &own));
    }
    value_log_note(log, &step);
    listpack_destroy(&own);
}

void stream_note_append(struct value_log *log, struct slice key)
{
    value_log_note(log, &(struct value_step){.first = key, .kind = STREAM_STEP_APPENDED});
}

/* ------------------------------------------------------------------------------------------------------ groups -- */

struct written_consumer {
    int64_t seen_ms, active_ms;
    uint64_t name_size, pending_count;
};

struct written_pending {
    struct stream_id id;
    int64_t delivery_ms;
    uint64_t delivery_count;
};

struct written_group {
    struct stream_id last_id;
    int64_t entries_read;
    uint64_t consumer_count;
};

static void write_consumer(struct buffer *bytes, const struct stream_consumer *consumer)
{
    const struct written_consumer head = {consumer->seen_ms, consumer->active_ms, consumer->name_size,
                                          radix_count(consumer->pending)};
    struct radix_iter iter;

    buffer_append(bytes, &head, sizeof(head));
    buffer_append_slice(bytes, stream_consumer_name(consumer));
    radix_iter_init(&iter, consumer->pending);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        const struct stream_pending *pending = iter.value;
        const struct written_pending written = {stream_pending_id(&iter), pending->delivery_ms,
                                                pending->delivery_count};

        buffer_append(bytes, &written, sizeof(written));
    }
    radix_iter_fini(&iter);
}

void stream_note_group(struct value_log *log, struct slice name, const struct stream_group *group)
{
    struct value_step step = {.first = name, .kind = STREAM_STEP_GROUP};
    struct buffer bytes = {0};
    struct radix_iter iter;

    if (!value_log_wants(log, STREAM_STEP_GROUP))
        return; /* all that is pending would be written down for nothing */
    if (group != NULL) {
        const struct written_group head = {group->last_id, group->entries_read, radix_count(group->consumers)};

        buffer_append(&bytes, &head, sizeof(head));
        radix_iter_init(&iter, group->consumers);
        for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter))
            write_consumer(&bytes, iter.value);
        radix_iter_fini(&iter);
        step.a = 1;
        step.second = buffer_slice(&bytes);
    }
    value_log_note(log, &step);
    buffer_fini(&bytes);
}

static void take_bytes(struct slice *bytes, void *to, size_t size)
{
    assert(bytes->size >= size);
    memcpy(to, bytes->data, size);
    *bytes = slice_make(bytes->data + size, bytes->size - size);
}

static void read_consumer(struct stream_group *group, struct slice *bytes)
{
    struct stream_consumer *consumer;
    struct written_consumer head;

    take_bytes(bytes, &head, sizeof(head));
    assert(bytes->size >= head.name_size);
    consumer = stream_consumer_create(group, slice_make(bytes->data, head.name_size), head.seen_ms);
    consumer->active_ms = head.active_ms;
    *bytes = slice_make(bytes->data + head.name_size, bytes->size - head.name_size);
    for (uint64_t i = 0; i < head.pending_count; i++) {
        struct written_pending written;

        take_bytes(bytes, &written, sizeof(written));
        stream_pending_assign(group, written.id, consumer, written.delivery_ms, written.delivery_count);
    }
}

static void restore_group(struct stream *stream, const struct value_step *step)
{
    struct slice bytes = step->second;
    struct written_group head;
    struct stream_group *group;

    (void)stream_group_destroy(stream, step->first, NULL);
    if (step->a == 0)
        return;
    take_bytes(&bytes, &head, sizeof(head));
    group = stream_group_create(stream, step->first, head.last_id, head.entries_read);
    for (uint64_t i = 0; i < head.consumer_count; i++)
        read_consumer(group, &bytes);
}

/* ------------------------------------------------------------------------------------------------------ taking back */

static void restore_node(struct stream *stream, const struct value_step *step)
{
    struct value_log *log = value_log_of(stream);
    struct stream_kept *kept = NULL;
    void *before = NULL;

    if (UNLIKELY(log != NULL)) {
        (void)radix_find(stream->nodes, step->first, &before);
        stream_note_node(log, step->first, before);
    }
    stream_idle_drop_all(stream);
    if (step->a != 0)
        kept = stream_keep(listpack_from_bytes(step->second));
    if (step->a == 2)
        kept = stream_kept_pack(kept, stream_id_decode(step->first.data));
    stream_put_kept(stream, step->first, kept);
}

static void cut_last(struct stream *stream, struct slice key)
{
    struct value_log *log = value_log_of(stream);
    struct listpack *own, *node;
    void *kept = NULL;
    bool is_there = radix_find(stream->nodes, key, &kept);

    assert(is_there);
    if (UNLIKELY(log != NULL))
        stream_note_node(log, key, kept);
    node = listpack_copy(stream_kept_read(kept, &own));
    listpack_destroy(&own);
    stream_node_cut_last(&node);
    stream_put_kept(stream, key, stream_keep(node));
}

void stream_undo(struct stream *stream, const struct value_step *step)
{
    struct value_log *log = value_log_of(stream);
    struct ids ids;

    switch ((enum stream_step)step->kind) {
    case STREAM_STEP_IDS:
        assert(step->first.size == sizeof(ids));
        memcpy(&ids, step->first.data, sizeof(ids));
        if (UNLIKELY(log != NULL))
            stream_note_ids(log, stream);
        stream->first_id = ids.first_id;
        stream->last_id = ids.last_id;
        stream->max_deleted_id = ids.max_deleted_id;
        stream->entries_added = ids.entries_added;
        break;
    case STREAM_STEP_NODE:
        restore_node(stream, step);
        break;
    case STREAM_STEP_APPENDED:
        cut_last(stream, step->first);
        break;
    case STREAM_STEP_GROUP:
        restore_group(stream, step);
        break;
    case STREAM_STEP_IDMP:
    case STREAM_STEP_IDMP_PAIR:
        stream_idmp_undo(stream, step);
        break;
    }
}
