/* Invariants
 *  1. A producer has pairs, and no more than the limit.
 *  2. The same pairs are in by_iid, which owns them, and in by_age.
 *  3. pair_count and bytes are the sums of what producers have. */
#include "data/stream_idmp.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"
#include "data/stream_priv.h"

#include <stdatomic.h>

/* Pairs that are over and go with one that comes, of one producer. Since more go than come, none is left in the end. */
enum { FORGOTTEN_MOST = 4 };

struct pair {
    size_t size;
    char key[]; /* the entry's id, as stream_id_encode has it, then the iid: its key in by_age */
};

struct producer {
    struct list_node node; /* in stream_idmp.producers_by_use */
    struct radix *by_iid;  /* iid -> pair */
    struct radix *by_age;  /* key of the pair -> pair */
    size_t name_size;
    char name[];
};

struct stream_idmp {
    struct stream_idmp_limits limits;
    uint64_t added, duplicates;
    uint64_t pair_count;
    uint64_t bytes;               /* of producers and pairs */
    struct radix *producers;      /* name -> producer */
    struct list producers_by_use; /* the one first that has added nothing for the longest time */
};

static _Atomic bool is_used; /* global: atomic, relaxed; never unset */

bool stream_idmp_is_used(void)
{
    return atomic_load_explicit(&is_used, memory_order_relaxed);
}

/* --- pairs --- */

static struct slice key_of(const struct pair *pair)
{
    return slice_make(pair->key, pair->size);
}

static struct slice iid_of(const struct pair *pair)
{
    return slice_make(pair->key + STREAM_ID_BYTES, pair->size - STREAM_ID_BYTES);
}

static struct stream_id id_of(const struct pair *pair)
{
    return stream_id_decode(pair->key);
}

static struct pair *pair_create(struct stream_id id, struct slice iid)
{
    struct pair *pair = mem_alloc(sizeof(*pair) + STREAM_ID_BYTES + iid.size);

    pair->size = STREAM_ID_BYTES + iid.size;
    (void)stream_id_encode(id, pair->key);
    memcpy(pair->key + STREAM_ID_BYTES, iid.data, iid.size);
    return pair;
}

static bool is_over(const struct stream_idmp *idmp, struct stream_id id, uint64_t now_ms)
{
    return now_ms > id.ms && now_ms - id.ms >= UINT64_C(1000) * idmp->limits.duration_s;
}

/* --- producers --- */

static struct slice name_of(const struct producer *producer)
{
    return slice_make(producer->name, producer->name_size);
}

static uint64_t trees_bytes(const struct producer *producer)
{
    return radix_memory_bytes(producer->by_iid) + radix_memory_bytes(producer->by_age);
}

static struct producer *find_producer(const struct stream_idmp *idmp, struct slice name)
{
    void *producer = NULL;

    return radix_find(idmp->producers, name, &producer) ? producer : NULL;
}

static struct producer *producer_create(struct stream_idmp *idmp, struct slice name)
{
    struct producer *producer = mem_alloc_zero(sizeof(*producer) + name.size);

    producer->by_iid = radix_create();
    producer->by_age = radix_create();
    producer->name_size = name.size;
    memcpy(producer->name, name.data, name.size);
    list_push_back(&idmp->producers_by_use, &producer->node);
    radix_set(idmp->producers, name, producer, NULL);
    idmp->bytes += mem_usable(producer) + trees_bytes(producer);
    return producer;
}

static void free_producer(void *value)
{
    struct producer *producer = value;

    radix_destroy(&producer->by_age, NULL);
    radix_destroy(&producer->by_iid, mem_free);
    mem_free(producer);
}

static void remove_producer(struct stream_idmp *idmp, struct producer *producer)
{
    assert(radix_count(producer->by_iid) == 0);
    idmp->bytes -= mem_usable(producer) + trees_bytes(producer);
    list_remove(&producer->node);
    radix_remove(idmp->producers, name_of(producer), NULL);
    free_producer(producer);
}

static struct pair *find_pair(const struct producer *producer, struct slice iid)
{
    void *pair = NULL;

    return radix_find(producer->by_iid, iid, &pair) ? pair : NULL;
}

static struct pair *pair_at(const struct producer *producer, enum radix_seek end)
{
    struct pair *pair = NULL;
    struct radix_iter iter;

    radix_iter_init(&iter, producer->by_age);
    if (radix_seek(&iter, end, SLICE_EMPTY))
        pair = iter.value;
    radix_iter_fini(&iter);
    return pair;
}

/* --- whole --- */

static struct stream_idmp *idmp_create(struct stream_idmp_limits limits)
{
    struct stream_idmp *idmp = mem_alloc_zero(sizeof(*idmp));

    idmp->limits = limits;
    idmp->producers = radix_create();
    list_init(&idmp->producers_by_use);
    atomic_store_explicit(&is_used, true, memory_order_relaxed);
    return idmp;
}

void stream_idmp_destroy(struct stream_idmp **handle)
{
    struct stream_idmp *idmp = *handle;

    *handle = NULL;
    if (idmp == NULL)
        return;
    radix_destroy(&idmp->producers, free_producer);
    mem_free(idmp);
}

static void add_pair(struct stream_idmp *idmp, struct producer *producer, struct pair *pair)
{
    idmp->bytes -= trees_bytes(producer);
    radix_set(producer->by_iid, iid_of(pair), pair, NULL);
    radix_set(producer->by_age, key_of(pair), pair, NULL);
    idmp->bytes += trees_bytes(producer) + mem_usable(pair);
    idmp->pair_count++;
}

static void remove_pair(struct stream_idmp *idmp, struct producer *producer, struct pair *pair)
{
    idmp->bytes -= trees_bytes(producer) + mem_usable(pair);
    radix_remove(producer->by_age, key_of(pair), NULL);
    radix_remove(producer->by_iid, iid_of(pair), NULL);
    idmp->bytes += trees_bytes(producer);
    idmp->pair_count--;
    mem_free(pair);
}

static void copy_producer(struct stream_idmp *copy, const struct producer *producer)
{
    struct producer *other = producer_create(copy, name_of(producer));
    struct radix_iter iter;

    radix_iter_init(&iter, producer->by_age);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        const struct pair *pair = iter.value;

        add_pair(copy, other, pair_create(id_of(pair), iid_of(pair)));
    }
    radix_iter_fini(&iter);
}

struct stream_idmp *stream_idmp_copy(const struct stream_idmp *idmp)
{
    struct stream_idmp *copy;

    if (LIKELY(idmp == NULL))
        return NULL;
    copy = idmp_create(idmp->limits);
    copy->added = idmp->added;
    copy->duplicates = idmp->duplicates;
    LIST_FOREACH(node, &idmp->producers_by_use)
        copy_producer(copy, container_of(node, struct producer, node));
    return copy;
}

uint64_t stream_idmp_memory_bytes(const struct stream_idmp *idmp)
{
    return idmp == NULL ? 0 : mem_usable(idmp) + radix_memory_bytes(idmp->producers) + idmp->bytes;
}

/* --- changes that are noted --- */

static NOINLINE void note_limits(struct value_log *log, const struct stream_idmp *idmp)
{
    const struct value_step step = {.kind = STREAM_STEP_IDMP,
                                    .a = idmp != NULL ? (uint64_t)idmp->limits.duration_s << 32 | idmp->limits.maxsize
                                                      : 0,
                                    .b = idmp != NULL ? idmp->added : 0};

    if (value_log_wants(log, STREAM_STEP_IDMP))
        value_log_note(log, &step);
}

static NOINLINE void note_pair(struct value_log *log, const struct stream_idmp *idmp, const struct producer *producer,
                               const struct pair *pair, bool is_there)
{
    const struct value_step step = {.kind = STREAM_STEP_IDMP_PAIR,
                                    .first = name_of(producer),
                                    .second = key_of(pair),
                                    .a = is_there,
                                    .b = idmp->added};

    if (value_log_wants(log, STREAM_STEP_IDMP_PAIR))
        value_log_note(log, &step);
}

static void put(struct stream *stream, struct producer *producer, struct pair *pair)
{
    struct value_log *log = value_log_of(stream);

    if (UNLIKELY(log != NULL))
        note_pair(log, stream->idmp, producer, pair, false);
    add_pair(stream->idmp, producer, pair);
}

static void drop(struct stream *stream, struct producer *producer, struct pair *pair)
{
    struct value_log *log = value_log_of(stream);

    if (UNLIKELY(log != NULL))
        note_pair(log, stream->idmp, producer, pair, true);
    remove_pair(stream->idmp, producer, pair);
}

static void set_limits(struct stream *stream, struct stream_idmp_limits limits)
{
    struct value_log *log = value_log_of(stream);

    if (UNLIKELY(log != NULL))
        note_limits(log, stream->idmp);
    if (stream->idmp == NULL)
        stream->idmp = idmp_create(limits);
    stream->idmp->limits = limits;
}

static void drop_all(struct stream *stream)
{
    struct list_node *node;

    while ((node = list_first(&stream->idmp->producers_by_use)) != NULL) {
        struct producer *producer = container_of(node, struct producer, node);

        while (radix_count(producer->by_iid) != 0)
            drop(stream, producer, pair_at(producer, RADIX_FIRST));
        remove_producer(stream->idmp, producer);
    }
}

/* --- what commands do --- */

bool stream_idmp_facts(const struct stream *stream, struct stream_idmp_facts *facts)
{
    const struct stream_idmp *idmp = stream->idmp;

    if (idmp == NULL)
        return false;
    *facts = (struct stream_idmp_facts){.limits = idmp->limits,
                                        .producer_count = radix_count(idmp->producers),
                                        .pair_count = idmp->pair_count,
                                        .added = idmp->added,
                                        .duplicates = idmp->duplicates};
    return true;
}

bool stream_idmp_limit(struct stream *stream, struct stream_idmp_limits limits)
{
    const struct stream_idmp *idmp = stream->idmp;

    assert(stream_idmp_limits_are_valid(limits));
    if (idmp != NULL && idmp->limits.duration_s == limits.duration_s && idmp->limits.maxsize == limits.maxsize)
        return false;
    if (idmp != NULL)
        drop_all(stream);
    set_limits(stream, limits);
    return true;
}

bool stream_idmp_find(const struct stream *stream, struct slice producer_name, struct slice iid, struct stream_id *id)
{
    const struct producer *producer = stream->idmp != NULL ? find_producer(stream->idmp, producer_name) : NULL;
    const struct pair *pair = producer != NULL ? find_pair(producer, iid) : NULL;

    if (pair == NULL)
        return false;
    *id = id_of(pair);
    return true;
}

bool stream_idmp_is_over(const struct stream *stream, struct stream_id id, uint64_t now_ms)
{
    assert(stream->idmp != NULL);
    return is_over(stream->idmp, id, MAX(now_ms, stream->last_id.ms));
}

static void forget_over(struct stream *stream, struct producer *producer)
{
    for (unsigned gone = 0; gone < FORGOTTEN_MOST && radix_count(producer->by_iid) != 0; gone++) {
        struct pair *pair = pair_at(producer, RADIX_FIRST);

        if (!is_over(stream->idmp, id_of(pair), stream->last_id.ms))
            break;
        drop(stream, producer, pair);
    }
    if (radix_count(producer->by_iid) == 0)
        remove_producer(stream->idmp, producer);
}

void stream_idmp_record(struct stream *stream, struct slice producer_name, struct slice iid, struct stream_id id)
{
    struct stream_idmp *idmp = stream->idmp;
    struct producer *producer;
    struct list_node *unused;
    struct pair *pair;

    assert(idmp != NULL && producer_name.size != 0 && iid.size != 0);
    producer = find_producer(idmp, producer_name);
    if (producer == NULL)
        producer = producer_create(idmp, producer_name);
    pair = find_pair(producer, iid);
    if (pair != NULL)
        drop(stream, producer, pair);
    put(stream, producer, pair_create(id, iid));
    idmp->added++;
    while (radix_count(producer->by_iid) > idmp->limits.maxsize)
        drop(stream, producer, pair_at(producer, RADIX_FIRST));
    list_remove(&producer->node);
    list_push_back(&idmp->producers_by_use, &producer->node);
    forget_over(stream, producer);
    unused = list_first(&idmp->producers_by_use);
    if (unused != NULL)
        forget_over(stream, container_of(unused, struct producer, node));
}

void stream_idmp_count_duplicate(struct stream *stream)
{
    assert(stream->idmp != NULL);
    stream->idmp->duplicates++;
}

/* --- files and digests --- */

/* Its newest pair is not over. */
static void visit_producer(const struct stream *stream, const struct producer *producer,
                           const struct stream_idmp_visitor *visitor)
{
    uint64_t count = radix_count(producer->by_age);
    struct radix_iter iter;

    radix_iter_init(&iter, producer->by_age);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY);
         more && is_over(stream->idmp, id_of(iter.value), stream->last_id.ms); more = radix_next(&iter))
        count--;
    visitor->producer(name_of(producer), count, visitor->context);
    for (bool more = true; more; more = radix_next(&iter))
        visitor->pair(iid_of(iter.value), id_of(iter.value), visitor->context);
    radix_iter_fini(&iter);
}

uint64_t stream_idmp_visit(const struct stream *stream, const struct stream_idmp_visitor *visitor)
{
    const struct stream_idmp *idmp = stream->idmp;
    struct radix_iter iter;
    uint64_t count = 0;

    if (idmp == NULL)
        return 0;
    radix_iter_init(&iter, idmp->producers);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        if (is_over(idmp, id_of(pair_at(iter.value, RADIX_LAST)), stream->last_id.ms))
            continue;
        count++;
        if (visitor != NULL)
            visit_producer(stream, iter.value, visitor);
    }
    radix_iter_fini(&iter);
    return count;
}

bool stream_idmp_load(struct stream *stream, struct slice producer_name, struct slice iid, struct stream_id id)
{
    struct stream_idmp *idmp = stream->idmp;
    struct producer *producer;

    assert(idmp != NULL && producer_name.size != 0 && iid.size != 0);
    producer = find_producer(idmp, producer_name);
    if (producer == NULL)
        producer = producer_create(idmp, producer_name);
    else if (find_pair(producer, iid) != NULL || radix_count(producer->by_iid) == idmp->limits.maxsize)
        return false;
    add_pair(idmp, producer, pair_create(id, iid));
    return true;
}

void stream_idmp_set_counts(struct stream *stream, uint64_t added, uint64_t duplicates)
{
    assert(stream->idmp != NULL);
    stream->idmp->added = added;
    stream->idmp->duplicates = duplicates;
}

/* --- taking back --- */

static void restore_pair(struct stream *stream, const struct value_step *step)
{
    const struct slice iid = slice_skip(step->second, STREAM_ID_BYTES);
    struct producer *producer = find_producer(stream->idmp, step->first);

    if (step->a != 0) {
        if (producer == NULL)
            producer = producer_create(stream->idmp, step->first);
        put(stream, producer, pair_create(stream_id_decode(step->second.data), iid));
        return;
    }
    assert(producer != NULL);
    drop(stream, producer, find_pair(producer, iid));
    if (radix_count(producer->by_iid) == 0)
        remove_producer(stream->idmp, producer);
}

void stream_idmp_undo(struct stream *stream, const struct value_step *step)
{
    assert(stream->idmp != NULL || (step->kind == STREAM_STEP_IDMP && step->a != 0));
    if (step->kind == STREAM_STEP_IDMP_PAIR) {
        restore_pair(stream, step);
        stream->idmp->added = step->b;
    } else if (step->a != 0) {
        set_limits(stream, (struct stream_idmp_limits){(uint32_t)(step->a >> 32), (uint32_t)step->a});
        stream->idmp->added = step->b;
    } else { /* whoever watches has been told of all pairs */
        struct value_log *log = value_log_of(stream);

        assert(stream->idmp->pair_count == 0);
        if (UNLIKELY(log != NULL))
            note_limits(log, stream->idmp);
        stream_idmp_destroy(&stream->idmp);
    }
}

/* --- validation --- */

static uint64_t validate_producer(const struct stream_idmp *idmp, const struct producer *producer)
{
    uint64_t bytes = mem_usable(producer) + trees_bytes(producer);
    struct radix_iter iter;

    assert(find_producer(idmp, name_of(producer)) == producer);
    assert(radix_count(producer->by_iid) != 0 && radix_count(producer->by_iid) <= idmp->limits.maxsize);
    assert(radix_count(producer->by_iid) == radix_count(producer->by_age));
    radix_iter_init(&iter, producer->by_age);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter)) {
        assert(slice_equal(radix_iter_key(&iter), key_of(iter.value)));
        assert(find_pair(producer, iid_of(iter.value)) == iter.value);
        bytes += mem_usable(iter.value);
    }
    radix_iter_fini(&iter);
    return bytes;
}

void stream_idmp_validate(const struct stream_idmp *idmp)
{
    uint64_t pair_count = 0, bytes = 0;

    if (idmp == NULL)
        return;
    assert(stream_idmp_limits_are_valid(idmp->limits));
    assert(list_count(&idmp->producers_by_use) == radix_count(idmp->producers));
    LIST_FOREACH(node, &idmp->producers_by_use) {
        const struct producer *producer = container_of(node, struct producer, node);

        bytes += validate_producer(idmp, producer);
        pair_count += radix_count(producer->by_iid);
    }
    assert(pair_count == idmp->pair_count);
    assert(bytes == idmp->bytes);
}
