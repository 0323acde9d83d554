#include "base/assert.h"
#include "base/mem.h"
#include "data/former_groups.h"
#include "data/stream_priv.h"

/* For an estimate of memory: to look at a group takes little time, and they differ more than consumers do. */
enum { GROUPS_LOOKED_AT = 256 };

/* A tree that loses so many records, and keeps at most half as many, is made anew: that is quicker. */
enum { REPLACED_LEAST = 1024, LEFT_SHARE = 2 };

/* --- consumers --- */

static void consumer_free(void *value)
{
    struct stream_consumer *consumer = value;

    radix_destroy(&consumer->pending, NULL); /* the records are freed with the group's tree */
    mem_free(consumer);
}

struct stream_consumer *stream_consumer_find(const struct stream_group *group, struct slice name)
{
    void *consumer = NULL;

    if (!radix_find(group->consumers, name, &consumer))
        return NULL;
    if (UNLIKELY(group->formers != NULL))
        group_formers_keep_consumer(group->formers, name, consumer);
    return consumer;
}

struct stream_consumer *stream_consumer_create(struct stream_group *group, struct slice name, int64_t seen_ms)
{
    struct stream_consumer *consumer;

    if (radix_find(group->consumers, name, NULL))
        return NULL;
    if (UNLIKELY(group->formers != NULL))
        group_formers_keep_consumer(group->formers, name, NULL);
    consumer = mem_alloc(sizeof(*consumer) + name.size);
    consumer->seen_ms = seen_ms;
    consumer->active_ms = -1;
    consumer->pending = radix_create();
    consumer->name_size = name.size;
    if (name.size != 0)
        memcpy(consumer->name, name.data, name.size);
    radix_set(group->consumers, name, consumer, NULL);
    return consumer;
}

const struct stream_consumer *stream_group_released(const struct stream_group *group)
{
    void *consumer = NULL;

    return radix_find(group->consumers, STREAM_RELEASED_CONSUMER, &consumer) ? consumer : NULL;
}

/* --- pending entries --- */

static struct stream_pending *find(const struct stream_group *group, struct slice key)
{
    void *pending = NULL;

    return radix_find(group->pending, key, &pending) ? pending : NULL;
}

const struct stream_pending *stream_pending_find(const struct stream_group *group, struct stream_id id)
{
    char room[STREAM_ID_BYTES];

    return find(group, stream_id_encode(id, room));
}

static void give_to(struct stream_pending *pending, struct slice key, struct stream_consumer *consumer)
{
    if (pending->consumer == consumer)
        return;
    if (pending->consumer != NULL)
        radix_remove(pending->consumer->pending, key, NULL);
    pending->consumer = consumer;
    radix_set(consumer->pending, key, pending, NULL);
}

const struct stream_pending *stream_pending_assign(struct stream_group *group, struct stream_id id,
                                                   struct stream_consumer *consumer, int64_t delivery_ms,
                                                   uint64_t delivery_count)
{
    char room[STREAM_ID_BYTES];
    struct slice key = stream_id_encode(id, room);
    struct stream_pending *pending = find(group, key);

    if (UNLIKELY(group->formers != NULL)) {
        group_formers_keep(group->formers, key, pending);
        group_formers_keep_consumer(group->formers, stream_consumer_name(consumer), consumer);
    }
    if (pending == NULL) {
        pending = mem_alloc(sizeof(*pending));
        pending->consumer = NULL;
        radix_set(group->pending, key, pending, NULL);
    } else {
        stream_idle_remove(group, key, pending);
    }
    pending->delivery_ms = delivery_ms;
    pending->delivery_count = delivery_count;
    give_to(pending, key, consumer);
    stream_idle_add(group, key, pending);
    return pending;
}

bool stream_pending_remove(struct stream_group *group, struct stream_id id)
{
    char room[STREAM_ID_BYTES];
    struct slice key = stream_id_encode(id, room);
    struct stream_pending *pending;
    void *value = NULL;

    if (!radix_remove(group->pending, key, &value))
        return false;
    pending = value;
    group_formers_keep(group->formers, key, pending);
    stream_idle_remove(group, key, pending);
    radix_remove(pending->consumer->pending, key, NULL);
    mem_free(pending);
    return true;
}

bool stream_pending_seek(struct radix_iter *iter, struct stream_id from)
{
    char room[STREAM_ID_BYTES];

    return radix_seek(iter, RADIX_AT_LEAST, stream_id_encode(from, room));
}

/* --- groups --- */

static struct stream_group *group_create(struct stream_id last_id, int64_t entries_read)
{
    struct stream_group *group = mem_alloc(sizeof(*group));

    group->last_id = last_id;
    group->entries_read = entries_read;
    group->pending = radix_create();
    group->consumers = radix_create();
    group->by_time = NULL;
    group->formers = NULL;
    return group;
}

void stream_group_free(void *value)
{
    struct stream_group *group = value;

    stream_idle_drop(group);
    radix_destroy(&group->consumers, consumer_free);
    radix_destroy(&group->pending, mem_free);
    mem_free(group);
}

/* The group is in no stream any more. See stream_group_destroy. */
static void discard(struct stream_group *group, struct stream **garbage)
{
    assert(group->formers == NULL);
    if (garbage == NULL) {
        stream_group_free(group);
    } else {
        *garbage = stream_create();
        radix_set((*garbage)->groups, SLICE_EMPTY, group, NULL);
    }
}

const struct radix *stream_groups(const struct stream *stream)
{
    return stream->groups;
}

struct stream_group *stream_group_find(const struct stream *stream, struct slice name)
{
    struct value_log *log = value_log_of(stream);
    void *group = NULL;

    if (!radix_find(stream->groups, name, &group))
        return NULL;
    if (UNLIKELY(log != NULL))
        stream_note_group(log, name, group);
    if (UNLIKELY(stream->formers != NULL))
        former_groups_keep(stream->formers, name, group);
    return group;
}

struct stream_group *stream_group_create(struct stream *stream, struct slice name, struct stream_id last_id,
                                         int64_t entries_read)
{
    struct value_log *log = value_log_of(stream);
    struct stream_group *group;

    if (radix_find(stream->groups, name, NULL))
        return NULL;
    if (UNLIKELY(log != NULL))
        stream_note_group(log, name, NULL);
    if (UNLIKELY(stream->formers != NULL))
        former_groups_keep(stream->formers, name, NULL);
    group = group_create(last_id, entries_read);
    radix_set(stream->groups, name, group, NULL);
    return group;
}

bool stream_group_destroy(struct stream *stream, struct slice name, struct stream **garbage)
{
    struct stream_group *group = stream_group_find(stream, name);

    if (garbage != NULL)
        *garbage = NULL;
    if (group == NULL)
        return false;
    (void)radix_remove(stream->groups, name, NULL);
    if (!group_formers_take_group(group->formers, group))
        discard(group, garbage);
    return true;
}

/* What is pending for consumers, in a tree of its own. */
static struct radix *pending_of_all(const struct stream_group *group)
{
    struct radix *tree = radix_create();
    struct radix_iter consumers, pending;

    radix_iter_init(&consumers, group->consumers);
    for (bool more = radix_seek(&consumers, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&consumers)) {
        radix_iter_init(&pending, ((const struct stream_consumer *)consumers.value)->pending);
        for (bool any = radix_seek(&pending, RADIX_FIRST, SLICE_EMPTY); any; any = radix_next(&pending))
            radix_set(tree, radix_iter_key(&pending), pending.value, NULL);
        radix_iter_fini(&pending);
    }
    radix_iter_fini(&consumers);
    return tree;
}

/* The group's tree loses what is pending for a consumer that is no longer among its consumers. If little is left the
 * tree is made anew: then the old one is returned, whose records are not its own. */
static struct radix *forget_pending(struct stream_group *group, const struct radix *gone)
{
    const uint64_t count = radix_count(gone), left = radix_count(group->pending) - count;
    struct radix *old = group->pending;
    struct radix_iter iter;

    if (count >= REPLACED_LEAST && left <= count / LEFT_SHARE) {
        group->pending = pending_of_all(group);
        assert(radix_count(group->pending) == left);
        stream_idle_drop(group);
        return old;
    }
    radix_iter_init(&iter, gone);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        stream_idle_remove(group, radix_iter_key(&iter), iter.value);
        radix_remove(old, radix_iter_key(&iter), NULL);
    }
    radix_iter_fini(&iter);
    return NULL;
}

/* A consumer with its records, and such a tree (or NULL), as a group: in the group's tree are all records, in the
 * consumer's there may be any. */
static struct stream_group *group_of_garbage(struct stream_consumer *consumer, struct radix *tree)
{
    struct stream_group *group = group_create(STREAM_ID_LEAST, 0);
    struct radix *none = group->pending;

    group->pending = consumer->pending;
    consumer->pending = tree != NULL ? tree : none;
    if (tree != NULL)
        radix_destroy(&none, NULL);
    radix_set(group->consumers, SLICE_EMPTY, consumer, NULL);
    return group;
}

bool stream_consumer_destroy(struct stream_group *group, struct slice name, uint64_t *pending_count,
                             struct stream **garbage)
{
    struct stream_consumer *consumer = stream_consumer_find(group, name);
    struct radix *tree;
    bool is_taken;

    if (garbage != NULL)
        *garbage = NULL;
    if (consumer == NULL)
        return false;
    is_taken = group_formers_take_consumer(group->formers, consumer);
    *pending_count = radix_count(consumer->pending);
    radix_remove(group->consumers, name, NULL);
    tree = forget_pending(group, consumer->pending);
    if (!is_taken)
        discard(group_of_garbage(consumer, tree), garbage);
    else if (tree != NULL)
        radix_destroy(&tree, NULL);
    return true;
}

/* --- how far a group has read --- */

/* True if an entry between `from` (included) and the end was deleted that the count of live entries does not show.
 * Entries deleted before the first live one do not matter: no group can stop there. */
static bool has_gap(const struct stream *stream, struct stream_id from)
{
    return stream->length != 0 && !stream_id_is_zero(stream->max_deleted_id) &&
           stream_id_compare(stream->max_deleted_id, stream->first_id) >= 0 &&
           stream_id_compare(stream->max_deleted_id, from) >= 0;
}

int64_t stream_entries_up_to(const struct stream *stream, struct stream_id id)
{
    int to_last = stream_id_compare(id, stream->last_id), to_first = stream_id_compare(id, stream->first_id);

    if (stream->entries_added == 0)
        return 0;
    if (to_last == 0 || (to_last < 0 && stream->length == 0))
        return (int64_t)stream->entries_added;
    if (to_last > 0 || to_first > 0 || has_gap(stream, STREAM_ID_LEAST))
        return STREAM_READ_UNKNOWN;
    return (int64_t)(stream->entries_added - stream->length + (to_first == 0 ? 1 : 0));
}

/* All live entries are behind the group's position: whatever was counted, the length is what is left to read. */
static bool is_before_all(const struct stream *stream, const struct stream_group *group)
{
    return stream_id_compare(group->last_id, stream->first_id) < 0;
}

bool stream_group_lag(const struct stream *stream, const struct stream_group *group, int64_t *lag)
{
    int64_t read = group->entries_read;

    if (stream->length == 0) {
        *lag = 0;
        return true;
    }
    if (read == STREAM_READ_UNKNOWN || has_gap(stream, group->last_id) || is_before_all(stream, group))
        read = stream_entries_up_to(stream, group->last_id);
    if (read == STREAM_READ_UNKNOWN)
        return false;
    *lag = (int64_t)(stream->entries_added - (uint64_t)read);
    return true;
}

/* More than there ever was, which a client may have said, is not counted on. */
static int64_t one_more(const struct stream *stream, int64_t read)
{
    return (uint64_t)read < stream->entries_added ? read + 1 : (int64_t)MIN(stream->entries_added, (uint64_t)INT64_MAX);
}

void stream_group_advance(const struct stream *stream, struct stream_group *group, struct stream_id id)
{
    if (stream_id_compare(id, group->last_id) <= 0)
        return;
    if (group->entries_read != STREAM_READ_UNKNOWN && !has_gap(stream, group->last_id) && !is_before_all(stream, group))
        group->entries_read = one_more(stream, group->entries_read);
    else
        group->entries_read = stream_entries_up_to(stream, id);
    group->last_id = id;
}

void stream_group_count(const struct stream *stream, struct stream_group *group)
{
    if (group->entries_read != STREAM_READ_UNKNOWN)
        group->entries_read = one_more(stream, group->entries_read);
}

/* --- all groups of a stream --- */

static struct stream_group *group_copy(const struct stream_group *group)
{
    struct stream_group *copy = group_create(group->last_id, group->entries_read);
    struct radix_iter consumers, pending;

    radix_iter_init(&consumers, group->consumers);
    for (bool more = radix_seek(&consumers, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&consumers)) {
        const struct stream_consumer *from = consumers.value;
        struct stream_consumer *to = stream_consumer_create(copy, radix_iter_key(&consumers), from->seen_ms);

        to->active_ms = from->active_ms;
        radix_iter_init(&pending, from->pending);
        for (bool any = radix_seek(&pending, RADIX_FIRST, SLICE_EMPTY); any; any = radix_next(&pending)) {
            const struct stream_pending *one = pending.value;

            stream_pending_assign(copy, stream_pending_id(&pending), to, one->delivery_ms, one->delivery_count);
        }
        radix_iter_fini(&pending);
    }
    radix_iter_fini(&consumers);
    return copy;
}

struct radix *stream_groups_copy(const struct radix *groups)
{
    struct radix *copy = radix_create();
    struct radix_iter iter;

    radix_iter_init(&iter, groups);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter))
        radix_set(copy, radix_iter_key(&iter), group_copy(iter.value), NULL);
    radix_iter_fini(&iter);
    return copy;
}

void stream_groups_destroy(struct radix **groups)
{
    radix_destroy(groups, stream_group_free);
}

/* Of all that are in the tree, from those that were looked at. */
static uint64_t estimate(const struct radix *tree, uint64_t bytes, uint64_t looked_at)
{
    return looked_at == radix_count(tree) ? bytes : bytes / looked_at * radix_count(tree);
}

static uint64_t consumers_memory_bytes(const struct radix *consumers, uint64_t samples)
{
    uint64_t bytes = 0, count = 0;
    struct radix_iter iter;

    radix_iter_init(&iter, consumers);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more && (samples == 0 || count < samples);
         more = radix_next(&iter), count++)
        bytes += mem_usable(iter.value) + radix_memory_bytes(((const struct stream_consumer *)iter.value)->pending);
    radix_iter_fini(&iter);
    return radix_memory_bytes(consumers) + estimate(consumers, bytes, count);
}

uint64_t stream_group_memory_bytes(const struct stream_group *group, uint64_t samples)
{
    return mem_usable(group) + radix_memory_bytes(group->pending) +
           (group->by_time != NULL ? radix_memory_bytes(group->by_time) : 0) +
           radix_count(group->pending) * mem_good_size(sizeof(struct stream_pending)) +
           consumers_memory_bytes(group->consumers, samples);
}

uint64_t stream_groups_memory_bytes(const struct radix *groups, uint64_t samples)
{
    uint64_t bytes = 0, count = 0;
    struct radix_iter iter;

    radix_iter_init(&iter, groups);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more && (samples == 0 || count < GROUPS_LOOKED_AT);
         more = radix_next(&iter), count++)
        bytes += stream_group_memory_bytes(iter.value, samples);
    radix_iter_fini(&iter);
    return radix_memory_bytes(groups) + estimate(groups, bytes, count);
}

static uint64_t consumer_validate(const struct stream_group *group, const struct stream_consumer *consumer,
                                  struct slice name)
{
    struct radix_iter iter;

    assert(slice_equal(stream_consumer_name(consumer), name));
    radix_validate(consumer->pending);
    radix_iter_init(&iter, consumer->pending);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        const struct stream_pending *pending = iter.value;

        assert(pending->consumer == consumer);
        assert(stream_pending_find(group, stream_pending_id(&iter)) == pending);
    }
    radix_iter_fini(&iter);
    return radix_count(consumer->pending);
}

void stream_groups_validate(const struct radix *groups)
{
    struct radix_iter iter, consumers;

    radix_validate(groups);
    radix_iter_init(&iter, groups);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        const struct stream_group *group = iter.value;
        uint64_t pending_count = 0;

        radix_validate(group->pending);
        radix_validate(group->consumers);
        radix_iter_init(&consumers, group->consumers);
        for (bool any = radix_seek(&consumers, RADIX_FIRST, SLICE_EMPTY); any; any = radix_next(&consumers))
            pending_count += consumer_validate(group, consumers.value, radix_iter_key(&consumers));
        radix_iter_fini(&consumers);
        assert(pending_count == radix_count(group->pending));
        stream_idle_validate(group);
    }
    radix_iter_fini(&iter);
}
