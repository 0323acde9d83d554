#include "persist/rdb_crew.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "store/disposal.h"
#include "store/members.h"
#include "store/usage.h"

#include <pthread.h>
#include <stdio.h>

enum {
    BATCH_BYTES = 64 * 1024,
    BATCH_KEPT_BYTES = 256 * 1024,        /* a larger one's memory is given back */
    UNDER_WAY_BYTES = 16 * 1024 * 1024,   /* the reader waits for the hands when there is more */
    AHEAD = 16,                           /* keys whose places are fetched together */
    EMPTY_TOLD = 10,
    NAME_TOLD_BYTES = 100,
    ITEM_ALIGN = 8
};

/* A key in a batch; what belongs to it follows. */
struct item {
    uint64_t hash, offset;
    int64_t expire_ms, idle_s;
    struct rdb_value *value; /* NULL: the record follows; else the name */
    size_t size;             /* of what follows */
    uint32_t db;
    int32_t frequency;
};

struct batch {
    struct batch *next;
    struct buffer items;
};

/* A thread, or (hands[0] of a crew without threads) what the reader itself does. */
struct hand {
    struct rdb_crew *crew;        /* const */
    struct thread thread;
    struct access *access;        /* const */
    struct access own;            /* this thread's, as the next ones */
    struct store_counters counters;
    struct rdb_reader reader;     /* of one record after the other */
    struct buffer name;
    struct batch *filling;        /* the reader's */
    pthread_cond_t wanted;        /* const: there is a batch, or the end */
    struct batch *first, *last;   /* under the crew's lock, like what follows */
    uint64_t keys, empty;
};

struct rdb_crew {
    const struct rdb_load_request *request; /* const */
    uint32_t thread_count, hand_count;      /* const */
    pthread_mutex_t lock;                   /* a leaf */
    pthread_cond_t done;                    /* const: less is under way */
    struct batch *spare;                    /* under the lock, like what follows */
    size_t under_way_bytes;
    bool ends;
    struct rdb_crew_totals failure;         /* its status, failed_at and error */
    _Atomic uint64_t failed_at;             /* atomic, relaxed: what stands behind it need not be looked at */
    struct hand *hands;
};

/* ------------------------------------------------------------------------------------------------------ batches -- */

static struct batch *batch_take(struct rdb_crew *crew)
{
    struct batch *batch;

    mutex_lock(&crew->lock);
    batch = crew->spare;
    if (batch != NULL)
        crew->spare = batch->next;
    mutex_unlock(&crew->lock);
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

static void note_failure(struct rdb_crew *crew, enum status status, uint64_t offset, const char *error)
{
    mutex_lock(&crew->lock);
    if (offset < atomic_load_explicit(&crew->failed_at, memory_order_relaxed)) {
        atomic_store_explicit(&crew->failed_at, offset, memory_order_relaxed);
        crew->failure.status = status;
        crew->failure.failed_at = offset;
        (void)snprintf(crew->failure.error, sizeof(crew->failure.error), "%s", error);
    }
    mutex_unlock(&crew->lock);
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
    if (UNLIKELY(deadlines_count(&value->members) != 0))
        deadlines_each_due(&value->members, DEADLINE_NONE, put_deadline, change);
}

/* Old servers saved lists and sets without anything in them. The first ones are told by name. */
static void note_empty(struct hand *hand, struct slice name)
{
    if (++hand->empty <= EMPTY_TOLD)
        log_notice("Loading: skipping empty key: %.*s", (int)MIN(name.size, (size_t)NAME_TOLD_BYTES), name.data);
}

static void put_key(struct hand *hand, const struct item *item, struct slice name, struct rdb_value *value)
{
    const struct key key = {name, item->hash};
    struct change change;

    if (UNLIKELY(value->is_empty)) {
        note_empty(hand, name);
        return;
    }
    change_begin(&change, hand->access, item->db, &key);
    if (UNLIKELY(change_entry(&change) != NULL && !hand->crew->request->replaces)) {
        note_failure(hand->crew, STATUS_EXISTS, item->offset, "the key is there twice");
    } else {
        put_value(hand->access, item, &change, value);
        hand->keys++;
    }
    change_abandon(&change); /* nobody is told of keys that are loaded */
}

static void put_record(struct hand *hand, const struct item *item)
{
    struct rdb_value value;
    struct slice name;

    rdb_reader_reset_memory(&hand->reader, item_rest(item));
    if (rdb_read_record(&hand->reader, &hand->crew->request->limits, &hand->name, &name, &value)) {
        put_key(hand, item, name, &value);
        rdb_value_destroy(&value);
    } else {
        note_failure(hand->crew, hand->reader.status, item->offset + hand->reader.failed_at, hand->reader.error);
    }
}

static void put_item(struct hand *hand, struct item *item)
{
    bool wanted = item->offset < atomic_load_explicit(&hand->crew->failed_at, memory_order_relaxed);

    if (LIKELY(item->value == NULL)) {
        if (LIKELY(wanted))
            put_record(hand, item);
        return;
    }
    if (wanted)
        put_key(hand, item, item_rest(item), item->value);
    rdb_value_destroy(item->value);
    mem_free(item->value);
}

static const struct table *table_of(const struct hand *hand, const struct item *item)
{
    const struct store *store = hand->access->store;
    const struct stripe_db *keys = stripe_db(&store->stripes[item->hash & store->stripe_mask], item->db);

    return keys != NULL ? &keys->keys : NULL;
}

/* Up to AHEAD items from `at` on are put into the store; where the next one is. */
static size_t put_some(struct hand *hand, const struct batch *batch, size_t at)
{
    struct item *items[AHEAD];
    const struct table *tables[AHEAD];
    unsigned count = 0;

    for (; count < AHEAD && at < batch->items.size; count++) {
        items[count] = item_at(batch, at);
        at += item_bytes(items[count]->size);
        tables[count] = table_of(hand, items[count]);
        if (LIKELY(tables[count] != NULL))
            table_prefetch_directory(tables[count], items[count]->hash);
    }
    for (unsigned i = 0; i < count; i++) {
        if (LIKELY(tables[i] != NULL))
            table_prefetch_bucket(tables[i], items[i]->hash);
    }
    for (unsigned i = 0; i < count; i++)
        put_item(hand, items[i]);
    return at;
}

static void put_batch(struct hand *hand, const struct batch *batch)
{
    for (size_t at = 0; at < batch->items.size;)
        at = put_some(hand, batch, at);
}

/* ------------------------------------------------------------------------------------------------------- hands -- */

/* NULL: the end. */
static struct batch *wait_for_batch(struct hand *hand)
{
    struct rdb_crew *crew = hand->crew;
    struct batch *batch;

    while (hand->first == NULL && !crew->ends)
        pthread_cond_wait(&hand->wanted, &crew->lock);
    batch = hand->first;
    if (batch != NULL)
        hand->first = batch->next;
    return batch;
}

static void run_hand(void *argument)
{
    struct hand *hand = argument;
    struct rdb_crew *crew = hand->crew;
    struct batch *batch;

    hand->access = &hand->own;
    access_begin(hand->access, crew->request->access->now_ms, true);
    mutex_lock(&crew->lock);
    while ((batch = wait_for_batch(hand)) != NULL) {
        size_t bytes = batch->items.size;

        mutex_unlock(&crew->lock);
        put_batch(hand, batch);
        disposal_after_release(hand->access);
        batch_clear(batch);
        mutex_lock(&crew->lock);
        batch->next = crew->spare;
        crew->spare = batch;
        crew->under_way_bytes -= bytes;
        pthread_cond_signal(&crew->done);
    }
    mutex_unlock(&crew->lock);
}

/* Waits until at most so much is under way. */
static void wait_for_hands(struct rdb_crew *crew, size_t most_bytes)
{
    while (crew->under_way_bytes > most_bytes)
        pthread_cond_wait(&crew->done, &crew->lock);
}

static void send(struct hand *hand)
{
    struct rdb_crew *crew = hand->crew;
    struct batch *batch = hand->filling;

    if (batch->items.size == 0)
        return;
    if (crew->thread_count == 0) {
        put_batch(hand, batch);
        batch_clear(batch);
        return;
    }
    hand->filling = NULL;
    batch->next = NULL;
    mutex_lock(&crew->lock);
    wait_for_hands(crew, UNDER_WAY_BYTES);
    if (hand->first != NULL)
        hand->last->next = batch;
    else
        hand->first = batch;
    hand->last = batch;
    crew->under_way_bytes += batch->items.size;
    pthread_cond_signal(&hand->wanted);
    mutex_unlock(&crew->lock);
    hand->filling = batch_take(crew);
}

/* -------------------------------------------------------------------------------------------------- the reader -- */

static bool give(struct rdb_crew *crew, const struct rdb_key *from, struct slice rest, struct rdb_value *value)
{
    const struct key key = key_make(from->name);
    struct hand *hand = &crew->hands[access_stripe_of(crew->request->access, &key) % crew->hand_count];
    struct buffer *items = &hand->filling->items;
    struct item item = {.hash = key.hash, .offset = from->offset, .expire_ms = from->expire_ms,
                        .idle_s = from->idle_s, .value = value, .size = rest.size, .db = from->db,
                        .frequency = from->frequency};

    if (!buffer_try_reserve(items, item_bytes(rest.size))) {
        note_failure(crew, STATUS_NO_MEMORY, from->offset, "no memory for a record of this size");
        return false;
    }
    memcpy(items->data + items->size, &item, sizeof(item));
    memcpy(items->data + items->size + sizeof(item), rest.data, rest.size);
    items->size += item_bytes(rest.size);
    if (items->size >= BATCH_BYTES)
        send(hand);
    return LIKELY(atomic_load_explicit(&crew->failed_at, memory_order_relaxed) == UINT64_MAX);
}

bool rdb_crew_give_record(struct rdb_crew *crew, const struct rdb_key *key, struct slice record)
{
    return give(crew, key, record, NULL);
}

bool rdb_crew_give_value(struct rdb_crew *crew, const struct rdb_key *key, struct rdb_value *value)
{
    struct rdb_value *kept = mem_alloc(sizeof(*kept));

    assert(value->type != TYPE_STRING); /* whose bytes are not owned */
    *kept = *value;
    *value = (struct rdb_value){.type = TYPE_COUNT};
    return give(crew, key, key->name, kept);
}

void rdb_crew_rest(struct rdb_crew *crew, struct rdb_crew_totals *totals)
{
    for (uint32_t i = 0; i < crew->hand_count; i++)
        send(&crew->hands[i]);
    mutex_lock(&crew->lock);
    wait_for_hands(crew, 0);
    *totals = crew->failure;
    for (uint32_t i = 0; i < crew->hand_count; i++) {
        totals->keys += crew->hands[i].keys;
        totals->empty += crew->hands[i].empty;
    }
    mutex_unlock(&crew->lock);
}

static void hand_init(struct hand *hand, struct rdb_crew *crew)
{
    hand->crew = crew;
    hand->access = crew->request->access;
    access_init(&hand->own, crew->request->access->store, &hand->counters);
    rdb_reader_init_memory(&hand->reader, SLICE_EMPTY);
    hand->filling = batch_take(crew);
    pthread_cond_init(&hand->wanted, NULL);
}

struct rdb_crew *rdb_crew_create(const struct rdb_load_request *request)
{
    struct rdb_crew *crew = mem_alloc_zero(sizeof(*crew));

    crew->request = request;
    crew->thread_count = MIN(request->threads, (unsigned)RDB_CREW_THREADS_MOST);
    crew->hand_count = MAX(crew->thread_count, 1U);
    crew->failed_at = UINT64_MAX;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->done, NULL);
    crew->hands = mem_alloc_zero(crew->hand_count * sizeof(*crew->hands));
    for (uint32_t i = 0; i < crew->hand_count; i++)
        hand_init(&crew->hands[i], crew);
    for (uint32_t i = 0; i < crew->thread_count; i++)
        thread_start(&crew->hands[i].thread, "loading", run_hand, &crew->hands[i]);
    return crew;
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

static void hand_fini(struct hand *hand)
{
    thread_join(&hand->thread);
    hand->filling->next = NULL;
    batches_free(&hand->filling);
    rdb_reader_fini(&hand->reader);
    buffer_fini(&hand->name);
    pthread_cond_destroy(&hand->wanted);
}

void rdb_crew_destroy(struct rdb_crew **crew)
{
    struct rdb_crew *self = *crew;
    struct rdb_crew_totals totals;

    if (self == NULL)
        return;
    rdb_crew_rest(self, &totals);
    mutex_lock(&self->lock);
    self->ends = true;
    for (uint32_t i = 0; i < self->thread_count; i++)
        pthread_cond_signal(&self->hands[i].wanted);
    mutex_unlock(&self->lock);
    for (uint32_t i = 0; i < self->hand_count; i++)
        hand_fini(&self->hands[i]);
    batches_free(&self->spare);
    pthread_cond_destroy(&self->done);
    pthread_mutex_destroy(&self->lock);
    mem_free(self->hands);
    mem_free(self);
    *crew = NULL;
}
