/* Streams, as files have them. */
#include "persist/types.h"

#include "base/assert.h"
#include "base/mem.h"
#include "data/former_groups.h"
#include "data/stream_idmp.h"
#include "data/stream_value.h"

/* ----------------------------------------------------------------------------------------------------- reading -- */

/* In files the pending entries of a group come before the consumers that they belong to. */
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

static bool read_ids(struct rdb_reader *reader, unsigned form, struct stream *stream)
{
    struct stream_id last, first, max_deleted = STREAM_ID_LEAST;
    uint64_t length, added;

    if (!rdb_read_length(reader, &length) || !read_id(reader, &last))
        return false;
    if (length != stream_length(stream))
        return rdb_corrupt(reader, "the length of a stream is wrong");
    added = length;
    if (form != RDB_STREAM_1 &&
        (!read_id(reader, &first) || !read_id(reader, &max_deleted) || !rdb_read_length(reader, &added)))
        return false;
    if (stream_id_compare(last, stream_last_id(stream)) < 0 || stream_id_compare(last, max_deleted) < 0 ||
        added < length)
        return rdb_corrupt(reader, "a stream's last id or its count of entries is too small");
    stream_set_ids(stream, last, max_deleted, added);
    return true;
}

/* ------------------------------------------------------------------------------------------------------ groups -- */

static bool read_waiting(struct rdb_reader *reader, struct waiting_list *list)
{
    uint64_t count;

    if (!rdb_read_count(reader, WAITING_LEAST_BYTES, &count))
        return false;
    if (count == 0)
        return true;
    list->items = mem_try_alloc(count * sizeof(*list->items));
    if (list->items == NULL)
        return rdb_fail(reader, STATUS_NO_MEMORY, "not enough memory for the pending entries of a stream");
    for (; list->count < count; list->count++) {
        struct waiting *item = &list->items[list->count];

        if (!read_raw_id(reader, &item->id) || !rdb_read_i64(reader, &item->delivery_ms) ||
            !rdb_read_length(reader, &item->delivery_count))
            return false;
        item->is_owned = false;
        if (list->count != 0 && stream_id_compare(item[-1].id, item->id) >= 0)
            return rdb_corrupt(reader, "the pending entries of a stream are not in order");
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
        struct waiting *item;
        struct stream_id id;

        if (!read_raw_id(reader, &id))
            return false;
        item = find_waiting(list, id);
        if (item == NULL || item->is_owned)
            return rdb_corrupt(reader, "a pending entry of a consumer is missing or duplicate in its group");
        item->is_owned = true;
        list->owned++;
        stream_pending_assign(group, id, consumer, item->delivery_ms, item->delivery_count);
    }
    return true;
}

static bool read_consumer(struct rdb_reader *reader, unsigned form, struct stream_group *group,
                          struct waiting_list *list)
{
    struct stream_consumer *consumer;
    struct slice name;

    if (!rdb_read_text(reader, &name))
        return false;
    if (stream_consumer_find(group, name) != NULL)
        return rdb_corrupt(reader, "a group has a duplicate consumer");
    consumer = stream_consumer_create(group, name, 0);
    if (!rdb_read_i64(reader, &consumer->seen_ms))
        return false;
    consumer->active_ms = consumer->seen_ms; /* as good as it can be told */
    if (form >= RDB_STREAM_3 && !rdb_read_i64(reader, &consumer->active_ms))
        return false;
    return read_owned(reader, group, consumer, list);
}

static bool read_consumers(struct rdb_reader *reader, unsigned form, struct stream_group *group,
                           struct waiting_list *list)
{
    uint64_t count;

    if (!read_waiting(reader, list) || !rdb_read_count(reader, 1 + 8 + 1, &count))
        return false;
    for (; count != 0; count--) {
        if (!read_consumer(reader, form, group, list))
            return false;
    }
    return list->owned == list->count || rdb_corrupt(reader, "a pending entry has no consumer");
}

static bool read_group(struct rdb_reader *reader, unsigned form, struct stream *stream)
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
        return rdb_corrupt(reader, "a stream has a duplicate group");
    if (!read_id(reader, &last))
        return false;
    if (form == RDB_STREAM_1)
        entries_read = (uint64_t)stream_entries_up_to(stream, last);
    else if (!rdb_read_length(reader, &entries_read))
        return false;
    group->last_id = last;
    group->entries_read = (int64_t)entries_read;
    good = read_consumers(reader, form, group, &list);
    mem_free(list.items);
    return good;
}

/* ------------------------------------------------------------------------------------------------------- pairs -- */

/* Behind the groups: l seconds, l pairs of a producer at most; l producers, of each t its name, l its pairs, of each t
 * its iid, l l its entry's id; l l how many were added and found again. Where XSETID went back, an id may be behind the
 * stream's last one. */
static bool read_producer(struct rdb_reader *reader, struct stream *stream, struct buffer *name)
{
    struct slice text;
    uint64_t count;

    if (!rdb_read_text(reader, &text))
        return false;
    if (text.size == 0)
        return rdb_corrupt(reader, "a producer of a stream has no name");
    name->size = 0;
    buffer_append_slice(name, text);
    if (!rdb_read_count(reader, 1 + 1 + 2, &count))
        return false;
    for (; count != 0; count--) {
        struct buffer *iid = name + 1;
        struct stream_id id;

        if (!rdb_read_text(reader, &text))
            return false;
        if (text.size == 0)
            return rdb_corrupt(reader, "an idempotent id of a stream is empty");
        iid->size = 0;
        buffer_append_slice(iid, text);
        if (!read_id(reader, &id))
            return false;
        if (!stream_idmp_load(stream, buffer_slice(name), buffer_slice(iid), id))
            return rdb_corrupt(reader, "a producer of a stream has a duplicate idempotent id, or too many");
    }
    return true;
}

static bool read_producers(struct rdb_reader *reader, struct stream *stream)
{
    struct buffer texts[2] = {{0}, {0}}; /* of a producer and a pair */
    bool good = true;
    uint64_t count;

    if (!rdb_read_count(reader, 1 + 1, &count))
        return false;
    for (; good && count != 0; count--)
        good = read_producer(reader, stream, texts);
    buffer_fini(&texts[0]);
    buffer_fini(&texts[1]);
    return good;
}

static bool read_idmp(struct rdb_reader *reader, struct stream *stream)
{
    uint64_t duration_s, maxsize, added, duplicates;
    struct stream_idmp_limits limits;

    if (!rdb_read_length(reader, &duration_s) || !rdb_read_length(reader, &maxsize))
        return false;
    limits.duration_s = (uint32_t)MIN(duration_s, (uint64_t)UINT32_MAX);
    limits.maxsize = (uint32_t)MIN(maxsize, (uint64_t)UINT32_MAX);
    if (!stream_idmp_limits_are_valid(limits))
        return rdb_corrupt(reader, "the limits of a stream's idempotent ids are out of range");
    (void)stream_idmp_limit(stream, limits);
    if (!read_producers(reader, stream) || !rdb_read_length(reader, &added) || !rdb_read_length(reader, &duplicates))
        return false;
    stream_idmp_set_counts(stream, added, duplicates);
    return true;
}

static bool read_stream(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    struct stream *stream = stream_create();
    uint64_t count;

    (void)limits;
    value->type = TYPE_STREAM;
    value->value = stream_value(stream);
    if (!read_nodes(reader, stream) || !read_ids(reader, value->form, stream) || !rdb_read_count(reader, 1, &count))
        return false;
    for (; count != 0; count--) {
        if (!read_group(reader, value->form, stream))
            return false;
    }
    return value->form != RDB_STREAM_4 || read_idmp(reader, stream);
}

/* ----------------------------------------------------------------------------------------------------- writing -- */

/* The lowest version that keeps everything that clients can rely on: version 9 has no counts of added and read entries.
 * Of groups that come one by one the rest of the stream has one that needs more, if there is one (former_groups.h).
 * The active-time of consumers is kept from version 11 on, but does not raise the version: only XINFO shows it, and
 * older readers could not load the rest. Below version 13, and in Valkey's, a stream loses the pairs of producers. */
static int version_of(const struct stream *stream)
{
    struct stream_idmp_facts idmp;
    struct radix_iter groups;
    int version = RDB_VERSION_WRITTEN_LEAST;

    if (UNLIKELY(stream_idmp_facts(stream, &idmp)))
        return RDB_VERSION_IDMP;
    if (stream_entries_added(stream) != stream_length(stream) || !stream_id_is_zero(stream_max_deleted_id(stream)))
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

static enum rdb_type form_of(struct rdb_writer *writer, const struct entry *entry)
{
    const int least = version_of(stream_of(entry_value(entry)));

    rdb_writer_need(writer, least);
    if (UNLIKELY(least == RDB_VERSION_IDMP) && writer->version >= RDB_VERSION_IDMP &&
        !rdb_is_for_valkey(&writer->options))
        return RDB_STREAM_4;
    if (writer->version >= RDB_VERSION_SET_LISTPACK)
        return RDB_STREAM_3;
    return writer->version >= RDB_VERSION_LISTPACKS ? RDB_STREAM_2 : RDB_STREAM_1;
}

static void write_id(struct rdb_writer *writer, struct stream_id id)
{
    rdb_write_length(writer, id.ms);
    rdb_write_length(writer, id.seq);
}

static void write_node(struct stream_id id, struct slice bytes, void *context)
{
    char room[STREAM_ID_BYTES];

    rdb_write_element(context);
    rdb_write_text(context, stream_id_encode(id, room));
    rdb_write_text(context, bytes);
}

/* What is pending follows, and then the number of consumers, and they. */
static void write_group_head(struct rdb_writer *writer, enum rdb_type form, struct slice name,
                             const struct stream_part_group *head)
{
    rdb_write_text(writer, name);
    write_id(writer, head->last_id);
    if (form != RDB_STREAM_1)
        rdb_write_length(writer, (uint64_t)head->entries_read);
    rdb_write_count(writer, head->pending_count);
}

static void write_pending(struct rdb_writer *writer, struct slice id, int64_t delivery_ms, uint64_t delivery_count)
{
    rdb_write_element(writer);
    rdb_write_bytes(writer, id);
    rdb_write_u64(writer, (uint64_t)delivery_ms);
    rdb_write_length(writer, delivery_count);
}

/* Ids of what it has follow. */
static void write_consumer_head(struct rdb_writer *writer, enum rdb_type form, struct slice name,
                                const struct stream_part_consumer *head)
{
    rdb_write_text(writer, name);
    rdb_write_u64(writer, (uint64_t)head->seen_ms);
    if (form >= RDB_STREAM_3)
        rdb_write_u64(writer, (uint64_t)head->active_ms);
    rdb_write_count(writer, head->pending_count);
}

static void write_owned(struct rdb_writer *writer, struct slice id)
{
    rdb_write_element(writer);
    rdb_write_bytes(writer, id);
}

static void write_consumer(struct rdb_writer *writer, enum rdb_type form, const struct stream_consumer *consumer)
{
    const struct stream_part_consumer head = {consumer->seen_ms, consumer->active_ms, radix_count(consumer->pending)};
    struct radix_iter iter;

    write_consumer_head(writer, form, stream_consumer_name(consumer), &head);
    radix_iter_init(&iter, consumer->pending);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter))
        write_owned(writer, radix_iter_key(&iter));
    radix_iter_fini(&iter);
}

static void write_group(struct rdb_writer *writer, enum rdb_type form, struct slice name,
                        const struct stream_group *group)
{
    const struct stream_part_group head = {group->last_id, group->entries_read, radix_count(group->pending)};
    struct radix_iter pending, consumers;

    write_group_head(writer, form, name, &head);
    radix_iter_init(&pending, group->pending);
    for (bool more = radix_seek(&pending, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&pending)) {
        const struct stream_pending *one = pending.value;

        write_pending(writer, radix_iter_key(&pending), one->delivery_ms, one->delivery_count);
    }
    radix_iter_fini(&pending);
    rdb_write_length(writer, radix_count(group->consumers));
    radix_iter_init(&consumers, group->consumers);
    for (bool more = radix_seek(&consumers, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&consumers))
        write_consumer(writer, form, consumers.value);
    radix_iter_fini(&consumers);
}

/* What follows the nodes. Groups follow. */
static void write_ids(struct rdb_writer *writer, enum rdb_type form, const struct stream *stream, uint64_t group_count)
{
    rdb_write_length(writer, stream_length(stream));
    write_id(writer, stream_last_id(stream));
    if (form != RDB_STREAM_1) {
        write_id(writer, stream_first_id(stream));
        write_id(writer, stream_max_deleted_id(stream));
        rdb_write_length(writer, stream_entries_added(stream));
    }
    rdb_write_length(writer, group_count);
}

static void write_producer(struct slice name, uint64_t pair_count, void *context)
{
    rdb_write_text(context, name);
    rdb_write_count(context, pair_count);
}

static void write_pair(struct slice iid, struct stream_id id, void *context)
{
    rdb_write_element(context);
    rdb_write_text(context, iid);
    write_id(context, id);
}

/* Behind the groups. */
static void write_idmp(struct rdb_writer *writer, enum rdb_type form, const struct stream *stream)
{
    const struct stream_idmp_visitor visitor = {write_producer, write_pair, writer};
    struct stream_idmp_facts facts;

    if (form != RDB_STREAM_4 || !stream_idmp_facts(stream, &facts))
        return; /* the form is chosen for a stream that has them */
    rdb_write_length(writer, facts.limits.duration_s);
    rdb_write_length(writer, facts.limits.maxsize);
    rdb_write_length(writer, stream_idmp_visit(stream, NULL));
    (void)stream_idmp_visit(stream, &visitor);
    rdb_write_length(writer, facts.added);
    rdb_write_length(writer, facts.duplicates);
}

static void write_stream(struct rdb_writer *writer, enum rdb_type form, const struct entry *entry)
{
    const struct stream *stream = stream_of(entry_value(entry));
    struct radix_iter groups;

    rdb_write_count(writer, stream_node_count(stream));
    stream_each_node(stream, write_node, writer);
    write_ids(writer, form, stream, radix_count(stream_groups(stream)));
    radix_iter_init(&groups, stream_groups(stream));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups))
        write_group(writer, form, radix_iter_key(&groups), groups.value);
    radix_iter_fini(&groups);
    write_idmp(writer, form, stream);
}

static void write_element(struct rdb_writer *writer, const struct former_element *element)
{
    write_node(stream_id_decode(element->first.data), element->second, writer);
}

static void take_numbers(const struct former_element *element, void *numbers, size_t size)
{
    assert(element->second.size == size);
    memcpy(numbers, element->second.data, size);
}

static void write_ids_part(struct rdb_writer *writer, enum rdb_type form, const struct stream *rest,
                           const struct former_element *element)
{
    struct stream_part_ids head;

    take_numbers(element, &head, sizeof(head));
    write_ids(writer, form, rest, head.group_count);
}

static void write_group_part(struct rdb_writer *writer, enum rdb_type form, const struct former_element *element)
{
    struct stream_part_group head;

    take_numbers(element, &head, sizeof(head));
    write_group_head(writer, form, element->first, &head);
}

static void write_pending_part(struct rdb_writer *writer, const struct former_element *element)
{
    struct stream_part_pending one;

    take_numbers(element, &one, sizeof(one));
    write_pending(writer, element->first, one.delivery_ms, one.delivery_count);
}

static void write_consumers_part(struct rdb_writer *writer, const struct former_element *element)
{
    struct stream_part_consumers head;

    take_numbers(element, &head, sizeof(head));
    rdb_write_length(writer, head.count);
}

static void write_consumer_part(struct rdb_writer *writer, enum rdb_type form, const struct former_element *element)
{
    struct stream_part_consumer head;

    take_numbers(element, &head, sizeof(head));
    write_consumer_head(writer, form, element->first, &head);
}

static void write_part(struct rdb_writer *writer, enum rdb_type form, const struct entry *entry,
                       const struct former_element *element)
{
    switch ((enum stream_part)element->part) {
    case STREAM_PART_NODE:
        write_element(writer, element);
        break;
    case STREAM_PART_IDS:
        write_ids_part(writer, form, stream_of(entry_value(entry)), element);
        break;
    case STREAM_PART_GROUP:
        write_group_part(writer, form, element);
        break;
    case STREAM_PART_PENDING:
        write_pending_part(writer, element);
        break;
    case STREAM_PART_CONSUMERS:
        write_consumers_part(writer, element);
        break;
    case STREAM_PART_CONSUMER:
        write_consumer_part(writer, form, element);
        break;
    case STREAM_PART_OWNED:
        for (size_t at = 0; at < element->first.size; at += STREAM_ID_BYTES)
            write_owned(writer, slice_make(element->first.data + at, STREAM_ID_BYTES));
        break;
    }
}

static void write_rest(struct rdb_writer *writer, enum rdb_type form, const struct entry *entry)
{
    write_idmp(writer, form, stream_of(entry_value(entry)));
}

static const struct type_elements elements = {.write = write_element,
                                              .write_part = write_part,
                                              .write_rest = write_rest};

static void write_stream_1(struct rdb_writer *writer, const struct entry *entry)
{
    write_stream(writer, RDB_STREAM_1, entry);
}

static void write_stream_2(struct rdb_writer *writer, const struct entry *entry)
{
    write_stream(writer, RDB_STREAM_2, entry);
}

static void write_stream_3(struct rdb_writer *writer, const struct entry *entry)
{
    write_stream(writer, RDB_STREAM_3, entry);
}

static void write_stream_4(struct rdb_writer *writer, const struct entry *entry)
{
    write_stream(writer, RDB_STREAM_4, entry);
}

/* ------------------------------------------------------------------------------------------------------ digest -- */

static void digest_id(struct digest *digest, struct stream_id id)
{
    digest_mix_u64(digest, id.ms);
    digest_mix_u64(digest, id.seq);
}

static void digest_group(struct digest *digest, const struct stream_group *group)
{
    struct radix_iter iter;

    digest_id(digest, group->last_id);
    digest_mix_u64(digest, (uint64_t)group->entries_read);
    digest_mix_u64(digest, radix_count(group->consumers));
    radix_iter_init(&iter, group->consumers);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter))
        digest_mix(digest, radix_iter_key(&iter));
    radix_iter_fini(&iter);
    digest_mix_u64(digest, radix_count(group->pending));
    radix_iter_init(&iter, group->pending);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        const struct stream_pending *pending = iter.value;

        digest_mix(digest, radix_iter_key(&iter));
        digest_mix(digest, stream_consumer_name(pending->consumer));
        digest_mix_u64(digest, (uint64_t)pending->delivery_ms);
        digest_mix_u64(digest, pending->delivery_count);
    }
    radix_iter_fini(&iter);
}

static void digest_producer(struct slice name, uint64_t pair_count, void *context)
{
    digest_mix(context, name);
    digest_mix_u64(context, pair_count);
}

static void digest_pair(struct slice iid, struct stream_id id, void *context)
{
    digest_mix(context, iid);
    digest_id(context, id);
}

/* Nothing of a stream without: its digest is what it always was. */
static void digest_idmp(struct digest *digest, const struct stream *stream)
{
    const struct stream_idmp_visitor visitor = {digest_producer, digest_pair, digest};
    struct stream_idmp_facts facts;

    if (!stream_idmp_facts(stream, &facts))
        return;
    digest_mix_u64(digest, facts.limits.duration_s);
    digest_mix_u64(digest, facts.limits.maxsize);
    (void)stream_idmp_visit(stream, &visitor);
}

/* All that is the same wherever the commands were run; not when consumers were seen. */
static void digest_beside_entries(struct digest *digest, const struct stream *stream)
{
    struct radix_iter groups;

    digest_mix_u64(digest, stream_length(stream));
    digest_id(digest, stream_last_id(stream));
    digest_id(digest, stream_max_deleted_id(stream));
    digest_mix_u64(digest, stream_entries_added(stream));
    radix_iter_init(&groups, stream_groups(stream));
    for (bool more = radix_seek(&groups, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&groups)) {
        digest_mix(digest, radix_iter_key(&groups));
        digest_group(digest, groups.value);
    }
    radix_iter_fini(&groups);
    digest_idmp(digest, stream);
}

static void digest_value(struct digest *digest, const struct entry *entry)
{
    char text[2 * NUMBER_I64_SPACE];
    struct slice field, value;
    struct stream_iter iter;
    struct stream_id id;
    uint64_t field_count;

    stream_iter_init(&iter, stream_of(entry_value(entry)), STREAM_ID_LEAST, STREAM_ID_MOST);
    while (stream_iter_next(&iter, &id, &field_count)) {
        size_t size = number_format_u64(text, id.ms);

        text[size++] = '.';
        digest_mix(digest, slice_make(text, size + number_format_u64(text + size, id.seq)));
        while (field_count-- > 0) {
            stream_iter_pair(&iter, &field, &value);
            digest_mix(digest, field);
            digest_mix(digest, value);
        }
    }
    stream_iter_fini(&iter);
    if (digest_is_keyed(digest))
        digest_beside_entries(digest, stream_of(entry_value(entry)));
}

/* --------------------------------------------------------------------------------------------------------- row -- */

static const struct rdb_form forms[] = {
    {.number = RDB_STREAM_1, .name = "stream", .read = read_stream, .write = write_stream_1},
    {.number = RDB_STREAM_2, .name = "stream, second form", .read = read_stream, .write = write_stream_2},
    {.number = RDB_STREAM_3, .name = "stream, third form", .read = read_stream, .write = write_stream_3},
    {.number = RDB_STREAM_4, .name = "stream with idempotent ids", .read = read_stream, .write = write_stream_4},
    {0},
};

const struct type_row type_stream = {.known = {.name = "stream", .ops = &stream_ops},
                                     .forms = forms,
                                     .form_of = form_of,
                                     .elements = &elements,
                                     .digest_number = 6,
                                     .digest = digest_value};
