#include "persist/rdb_loaders.h"

#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "store/lazyfree.h"
#include "store/subkey_ttl.h"
#include "store/lru_lfu.h"

#include <pthread.h>
#include <stdio.h>

enum {
    BATCH_BYTES = 64 * 1024,
    BATCH_KEPT_BYTES = 256 * 1024,      /* a larger one's memory is given back */
    UNDER_WAY_BYTES = 16 * 1024 * 1024, /* the reader waits for the loaders when there is more */
    AHEAD = 16,                         /* keys whose places are fetched together */
    EMPTY_TOLD = 10,
    NAME_TOLD_BYTES = 100,
    ITEM_ALIGN = 8
};

/* A key in a batch; its data follows. */
struct item {
    uint64_t hash, offset, version;
    int64_t expire_ms, idle_s;
    struct rdb_value *value; /* NULL: the record follows; else the name */
    size_t size;             /* of the data */
    uint32_t db;
    int32_t frequency;
};

struct batch {
    struct batch *next;
    struct buffer items;
};

/* A thread, or (the first one, without threads) the reader itself. */
struct loader {
    struct rdb_loaders *loaders; /* const */
    struct thread thread;
    struct access *access; /* const */
    struct access own;     /* this thread's, as the next ones */
    struct store_counters counters;
    struct rdb_reader reader; /* of one record after the other */
    struct buffer name;
    struct batch *filling;      /* the reader's */
    pthread_cond_t wanted;      /* const: there is a batch, or the end */
    struct batch *first, *last; /* under their lock, as are the next fields */
    uint64_t keys, empty;
};

struct rdb_loaders {
    const struct rdb_load_request *request; /* const */
    const struct gate_member *alone;        /* const: by which the reader is */
    uint32_t reader_id;                     /* const: its spinlock_self_id */
    uint32_t thread_count, loader_count;    /* const */
    pthread_mutex_t lock;                   /* a leaf */
    pthread_cond_t done;                    /* const: less is under way */
    struct batch *spare;                    /* under the lock, as are the next fields */
    size_t under_way_bytes;
    bool ends;
    struct rdb_loaders_totals failure; /* its status, failed_at and error */
    _Atomic uint64_t failed_at;        /* atomic: relaxed; later records need not be processed */
    struct loader *all;
};

/* ------------------------------------------------------------------------------------------------------ batches -- */

static struct batch *batch_take(struct rdb_loaders *loaders)
{
    struct batch *batch;

    mutex_lock(&loaders->lock);
    batch = loaders->spare;
    if (batch != NULL)
        loaders->spare = batch->next;
    mutex_unlock(&loaders->lock);
    if (batch == NULL)
        batch = mem_alloc_zero(sizeof(*batch));
    return batch;
}

static void batch_clear(struct batch *batch)
{
    buffer_clear(&batch->items);
    if (batch->items.capacity > BATCH_KEPT_BYTES)
        buffer_fini(&batch->items);
}

static struct item *item_at(const struct batch *batch, size_t at)
{
    return (struct item *)(void *)(batch->items.data + at);
}

static size_t item_bytes(size_t size)
{
    return sizeof(struct item) + (size + ITEM_ALIGN - 1) / ITEM_ALIGN * ITEM_ALIGN;
}

static struct slice item_rest(const struct item *item)
{
    return slice_make((const char *)(item + 1), item->size);
}

/* ------------------------------------------------------------------------------------------- keys into the store -- */

static void note_failure(struct rdb_loaders *loaders, enum status status, uint64_t offset, const char *error)
{
    mutex_lock(&loaders->lock);
    if (offset < atomic_load_explicit(&loaders->failed_at, memory_order_relaxed)) {
        atomic_store_explicit(&loaders->failed_at, offset, memory_order_relaxed);
        loaders->failure.status = status;
        loaders->failure.failed_at = offset;
        (void)snprintf(loaders->failure.error, sizeof(loaders->failure.error), "%s", error);
    }
    mutex_unlock(&loaders->lock);
}

static void put_deadline(struct slice member, int64_t when_ms, void *context)
{
    change_member_expire(context, member, when_ms);
}

static void set_use(const struct access *access, struct entry *entry, const struct item *item)
{
    if (item->idle_s >= 0 && !access->counts_uses)
        entry->clock = (access->clock - (uint32_t)MIN(item->idle_s, (int64_t)0xffffff)) & 0xffffff;
    if (item->frequency >= 0 && access->counts_uses)
        entry->clock = (access->clock & ~(uint32_t)0xff) | (uint32_t)item->frequency;
}

static void put_value(const struct access *access, const struct item *item, struct change *change,
                      struct rdb_value *value)
{
    if (value->type == TYPE_STRING)
        change_put_string(change, value->text, item->expire_ms);
    else
        change_put_value(change, value->type, value->value, item->expire_ms);
    value->value.data = NULL;
    if (UNLIKELY(item->idle_s >= 0 || item->frequency >= 0))
        set_use(access, change_entry(change), item);
    if (item->version != 0)
        change_set_version(change, item->version);
    if (UNLIKELY(deadlines_count(&value->members) != 0))
        deadlines_each_due(&value->members, DEADLINE_NONE, put_deadline, change);
}

/* Old servers saved lists and sets without anything in them. The first ones are told by name. */
static void note_empty(struct loader *loader, struct slice name)
{
    if (++loader->empty <= EMPTY_TOLD)
        log_notice("Loading: skipping empty key: %.*s", (int)MIN(name.size, (size_t)NAME_TOLD_BYTES), name.data);
}

static void put_key(struct loader *loader, const struct item *item, struct slice name, struct rdb_value *value)
{
    const struct key key = {name, item->hash};
    struct change change;

    if (UNLIKELY(value->is_empty)) {
        note_empty(loader, name);
        return;
    }
    debug_assert(&loader->loaders->all[access_stripe_of(loader->access, &key) % loader->loaders->loader_count] ==
                 loader);
    change_begin(&change, loader->access, item->db, &key);
    if (UNLIKELY(change_entry(&change) != NULL && !loader->loaders->request->replaces)) {
        note_failure(loader->loaders, STATUS_EXISTS, item->offset, "duplicate key");
    } else {
        put_value(loader->access, item, &change, value);
        loader->keys++;
    }
    change_end_untold(&change);
}

static void put_record(struct loader *loader, const struct item *item)
{
    struct rdb_value value;
    struct slice name;

    rdb_reader_reset_memory(&loader->reader, item_rest(item));
    if (rdb_read_record(&loader->reader, &loader->loaders->request->limits, &loader->name, &name, &value)) {
        put_key(loader, item, name, &value);
        rdb_value_destroy(&value);
    } else {
        note_failure(loader->loaders, loader->reader.status, item->offset + loader->reader.failed_at,
                     loader->reader.error);
    }
}

static void put_item(struct loader *loader, struct item *item)
{
    bool wanted = item->offset < atomic_load_explicit(&loader->loaders->failed_at, memory_order_relaxed);

    if (LIKELY(item->value == NULL)) {
        if (LIKELY(wanted))
            put_record(loader, item);
        return;
    }
    if (wanted)
        put_key(loader, item, item_rest(item), item->value);
    rdb_value_destroy(item->value);
    mem_free(item->value);
}

static const struct table *table_of(const struct loader *loader, const struct item *item)
{
    const struct store *store = loader->access->store;
    const struct stripe_db *keys = stripe_db(&store->stripes[item->hash & store->stripe_mask], item->db);

    return keys != NULL ? &keys->keys : NULL;
}

/* Up to AHEAD items from `at` on are put into the store; where the next one is. */
static size_t put_some(struct loader *loader, const struct batch *batch, size_t at)
{
    struct item *items[AHEAD];
    const struct table *tables[AHEAD];
    unsigned count = 0;

    for (; count < AHEAD && at < batch->items.size; count++) {
        items[count] = item_at(batch, at);
        at += item_bytes(items[count]->size);
        tables[count] = table_of(loader, items[count]);
        if (LIKELY(tables[count] != NULL))
            table_prefetch_directory(tables[count], items[count]->hash);
    }
    for (unsigned i = 0; i < count; i++) {
        if (LIKELY(tables[i] != NULL))
            table_prefetch_bucket(tables[i], items[i]->hash);
    }
    for (unsigned i = 0; i < count; i++)
        put_item(loader, items[i]);
    return at;
}

static void put_batch(struct loader *loader, const struct batch *batch)
{
    for (size_t at = 0; at < batch->items.size;)
        at = put_some(loader, batch, at);
}

/* ------------------------------------------------------------------------------------------------------- loaders -- */

/* NULL: the end. */
static struct batch *wait_for_batch(struct loader *loader)
{
    struct rdb_loaders *loaders = loader->loaders;
    struct batch *batch;

    while (loader->first == NULL && !loaders->ends)
        pthread_cond_wait(&loader->wanted, &loaders->lock);
    batch = loader->first;
    if (batch != NULL)
        loader->first = batch->next;
    return batch;
}

static void run_loader(void *argument)
{
    struct loader *loader = argument;
    struct rdb_loaders *loaders = loader->loaders;
    struct batch *batch;

    loader->access = &loader->own;
    gate_help_begin(loaders->alone);
    access_begin(loader->access, loaders->request->access->now_ms, true);
    gate_help_end(loaders->alone);
    mutex_lock(&loaders->lock);
    while ((batch = wait_for_batch(loader)) != NULL) {
        size_t bytes = batch->items.size;

        mutex_unlock(&loaders->lock);
        gate_help_begin(loaders->alone);
        put_batch(loader, batch);
        lazyfree_after_release(loader->access);
        gate_help_end(loaders->alone);
        batch_clear(batch);
        mutex_lock(&loaders->lock);
        batch->next = loaders->spare;
        loaders->spare = batch;
        assert(loaders->under_way_bytes >= bytes);
        loaders->under_way_bytes -= bytes;
        pthread_cond_signal(&loaders->done);
    }
    mutex_unlock(&loaders->lock);
}

/* Waits until at most so much is under way. */
static void wait_for_loaders(struct rdb_loaders *loaders, size_t most_bytes)
{
    while (loaders->under_way_bytes > most_bytes)
        pthread_cond_wait(&loaders->done, &loaders->lock);
}

static void send(struct loader *loader)
{
    struct rdb_loaders *loaders = loader->loaders;
    struct batch *batch = loader->filling;

    if (batch->items.size == 0)
        return;
    if (loaders->thread_count == 0) {
        put_batch(loader, batch);
        batch_clear(batch);
        return;
    }
    loader->filling = NULL;
    batch->next = NULL;
    mutex_lock(&loaders->lock);
    wait_for_loaders(loaders, UNDER_WAY_BYTES);
    if (loader->first != NULL)
        loader->last->next = batch;
    else
        loader->first = batch;
    loader->last = batch;
    loaders->under_way_bytes += batch->items.size;
    pthread_cond_signal(&loader->wanted);
    mutex_unlock(&loaders->lock);
    loader->filling = batch_take(loaders);
}

/* -------------------------------------------------------------------------------------------------- the reader -- */

static bool give(struct rdb_loaders *loaders, const struct rdb_key *from, struct slice rest, struct rdb_value *value)
{
    const struct key key = key_make(from->name);
    struct loader *loader = &loaders->all[access_stripe_of(loaders->request->access, &key) % loaders->loader_count];
    struct buffer *items = &loader->filling->items;
    struct item item = {.hash = key.hash,
                        .offset = from->offset,
                        .version = from->version,
                        .expire_ms = from->expire_ms,
                        .idle_s = from->idle_s,
                        .value = value,
                        .size = rest.size,
                        .db = from->db,
                        .frequency = from->frequency};

    if (!buffer_try_reserve(items, item_bytes(rest.size))) {
        note_failure(loaders, STATUS_NO_MEMORY, from->offset, "not enough memory for a record of this size");
        return false;
    }
    memcpy(items->data + items->size, &item, sizeof(item));
    memcpy(items->data + items->size + sizeof(item), rest.data, rest.size);
    items->size += item_bytes(rest.size);
    if (items->size >= BATCH_BYTES)
        send(loader);
    return LIKELY(atomic_load_explicit(&loaders->failed_at, memory_order_relaxed) == UINT64_MAX);
}

static void loaders_assert_reader(const struct rdb_loaders *loaders)
{
    assert(loaders->reader_id == spinlock_self_id() && loaders->alone == gate_alone_here);
}

bool rdb_loaders_give_record(struct rdb_loaders *loaders, const struct rdb_key *key, struct slice record)
{
    loaders_assert_reader(loaders);
    return give(loaders, key, record, NULL);
}

bool rdb_loaders_give_value(struct rdb_loaders *loaders, const struct rdb_key *key, struct rdb_value *value)
{
    struct rdb_value *kept = mem_alloc(sizeof(*kept));

    loaders_assert_reader(loaders);
    assert(value->type != TYPE_STRING); /* whose bytes are not owned */
    *kept = *value;
    *value = (struct rdb_value){.type = TYPE_COUNT};
    return give(loaders, key, key->name, kept);
}

void rdb_loaders_rest(struct rdb_loaders *loaders, struct rdb_loaders_totals *totals)
{
    loaders_assert_reader(loaders);
    for (uint32_t i = 0; i < loaders->loader_count; i++)
        send(&loaders->all[i]);
    mutex_lock(&loaders->lock);
    wait_for_loaders(loaders, 0);
    assert(loaders->under_way_bytes == 0);
    *totals = loaders->failure;
    for (uint32_t i = 0; i < loaders->loader_count; i++) {
        totals->keys += loaders->all[i].keys;
        totals->empty += loaders->all[i].empty;
    }
    mutex_unlock(&loaders->lock);
}

static void loader_init(struct loader *loader, struct rdb_loaders *loaders)
{
    loader->loaders = loaders;
    loader->access = loaders->request->access;
    access_init(&loader->own, loaders->request->access->store, &loader->counters);
    rdb_reader_init_memory(&loader->reader, SLICE_EMPTY);
    loader->filling = batch_take(loaders);
    pthread_cond_init(&loader->wanted, NULL);
}

struct rdb_loaders *rdb_loaders_create(const struct rdb_load_request *request)
{
    struct rdb_loaders *loaders = mem_alloc_zero(sizeof(*loaders));

    gate_assert_alone();
    loaders->request = request;
    loaders->alone = gate_alone_here;
    loaders->reader_id = spinlock_self_id();
    loaders->thread_count = MIN(request->threads, (unsigned)RDB_LOADERS_MOST);
    loaders->loader_count = MAX(loaders->thread_count, 1U);
    loaders->failed_at = UINT64_MAX;
    pthread_mutex_init(&loaders->lock, NULL);
    pthread_cond_init(&loaders->done, NULL);
    loaders->all = mem_alloc_zero(loaders->loader_count * sizeof(*loaders->all));
    for (uint32_t i = 0; i < loaders->loader_count; i++)
        loader_init(&loaders->all[i], loaders);
    for (uint32_t i = 0; i < loaders->thread_count; i++)
        thread_start(&loaders->all[i].thread, "loading", run_loader, &loaders->all[i]);
    return loaders;
}

static void batches_free(struct batch **first)
{
    while (*first != NULL) {
        struct batch *batch = *first;

        *first = batch->next;
        buffer_fini(&batch->items);
        mem_free(batch);
    }
}

static void loader_fini(struct loader *loader)
{
    thread_join(&loader->thread);
    assert(loader->first == NULL && loader->filling->items.size == 0);
    loader->filling->next = NULL;
    batches_free(&loader->filling);
    rdb_reader_fini(&loader->reader);
    buffer_fini(&loader->name);
    pthread_cond_destroy(&loader->wanted);
}

void rdb_loaders_destroy(struct rdb_loaders **loaders)
{
    struct rdb_loaders *self = *loaders;
    struct rdb_loaders_totals totals;

    if (self == NULL)
        return;
    loaders_assert_reader(self);
    rdb_loaders_rest(self, &totals);
    mutex_lock(&self->lock);
    self->ends = true;
    for (uint32_t i = 0; i < self->thread_count; i++)
        pthread_cond_signal(&self->all[i].wanted);
    mutex_unlock(&self->lock);
    for (uint32_t i = 0; i < self->loader_count; i++)
        loader_fini(&self->all[i]);
    batches_free(&self->spare);
    pthread_cond_destroy(&self->done);
    pthread_mutex_destroy(&self->lock);
    mem_free(self->all);
    mem_free(self);
    *loaders = NULL;
}
