#include "server/pubsub/topics.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/gate.h"
#include "base/glob.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "server/core/client.h"
#include "server/core/worker.h"

enum { REGISTRY_SHARDS = 64 };

/* The patterns (or prefixes) at one time, so that matching needs no lock. */
struct topic_list {
    _Atomic uint32_t refs; /* atomic: references of the registry and of matching threads */
    uint32_t count;
    struct topic *items[]; /* a reference each */
};

/* A part of the registry, chosen by the hash of the name; nothing to do with shard channels. */
struct CACHE_ALIGNED registry_shard {
    struct spinlock lock; /* rank LOCK_REGISTRY, that of patterns LOCK_PATTERNS */
    struct table topics[TOPIC_KINDS] GUARDED_BY(lock);
    struct topic_list *list GUARDED_BY(lock); /* of patterns, prefixes; NULL: made anew when it is wanted next */
};

/* All patterns are in one shard, and all prefixes: a name is compared with all of them. */
static struct registry_shard registry_shards[REGISTRY_SHARDS + 2]; /* global: each guarded by its lock */
static _Atomic uint64_t counts[TOPIC_KINDS];                       /* global: atomic, relaxed */

void topics_setup(void)
{
    gate_assert_main_alone();
    for (size_t i = 0; i < countof(registry_shards); i++)
        spinlock_init(&registry_shards[i].lock, i == REGISTRY_SHARDS ? LOCK_PATTERNS : LOCK_REGISTRY);
}

uint64_t topics_hash(struct slice name)
{
    return hash_bytes(name.data, name.size);
}

static struct registry_shard *shard_of(enum topic_kind kind, uint64_t hash)
{
    assert(kind < TOPIC_KINDS);
    switch (kind) {
    case TOPIC_PATTERN:
        return &registry_shards[REGISTRY_SHARDS];
    case TOPIC_PREFIX:
        return &registry_shards[REGISTRY_SHARDS + 1];
    default:
        return &registry_shards[hash % REGISTRY_SHARDS];
    }
}

/* ------------------------------------------------------------------------------------------------------- topics -- */

static uint64_t hash_of(const void *item)
{
    return ((const struct topic *)item)->hash;
}

static bool is_named(const void *item, const void *key)
{
    return slice_equal(topic_name(item), *(const struct slice *)key);
}

static struct topic *topic_acquire(struct topic *topic)
{
    atomic_fetch_add_explicit(&topic->refs, 1, memory_order_relaxed);
    return topic;
}

static void topic_release(struct topic **topic)
{
    struct topic *gone = *topic;
    struct topic_part *part, *next;
    uint32_t before;

    *topic = NULL;
    before = atomic_fetch_sub_explicit(&gone->refs, 1, memory_order_acq_rel);
    assert(before != 0);
    if (before != 1)
        return;
    for (part = atomic_load_explicit(&gone->parts, memory_order_relaxed); part != NULL; part = next) {
        next = part->next;
        assert(part->count == 0); /* a subscription has a reference */
        mem_free(part->items);
        mem_free(part);
    }
    mem_free(gone);
}

static struct topic *find_locked(struct registry_shard *shard, enum topic_kind kind, struct slice name, uint64_t hash)
    REQUIRES(shard->lock)
{
    spinlock_assert_held(&shard->lock);
    return table_find(&shard->topics[kind], hash, is_named, &name);
}

static void forget_list_locked(struct registry_shard *shard, struct topic_list **stale) REQUIRES(shard->lock)
{
    spinlock_assert_held(&shard->lock);
    *stale = shard->list;
    shard->list = NULL;
}

static void list_release(struct topic_list **list)
{
    struct topic_list *gone = *list;

    *list = NULL;
    if (gone == NULL || atomic_fetch_sub_explicit(&gone->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < gone->count; i++)
        topic_release(&gone->items[i]);
    mem_free(gone);
}

static struct topic *create_locked(struct registry_shard *shard, enum topic_kind kind, struct slice name, uint64_t hash)
    REQUIRES(shard->lock)
{
    struct topic *topic = mem_alloc(sizeof(*topic) + name.size);

    spinlock_assert_held(&shard->lock);
    *topic = (struct topic){.kind = kind, .hash = hash, .name_size = name.size};
    atomic_init(&topic->refs, 1);
    if (name.size != 0)
        memcpy(topic->name, name.data, name.size);
    table_insert(&shard->topics[kind], hash, topic, hash_of);
    atomic_fetch_add_explicit(&counts[kind], 1, memory_order_relaxed);
    return topic;
}

static struct topic_part *part_locked(struct topic *topic, unsigned worker_index)
{
    struct topic_part *part = topic_part_of(topic, worker_index);

    assert(worker_index < WORKERS_MOST); /* a bit of topic->workers */
    if (part == NULL) {
        part = mem_alloc(sizeof(*part));
        *part = (struct topic_part){.worker_index = worker_index,
                                    .next = atomic_load_explicit(&topic->parts, memory_order_relaxed)};
        atomic_store_explicit(&topic->parts, part, memory_order_release);
    }
    return part;
}

struct subscription *topics_subscribe(enum topic_kind kind, struct slice name, uint64_t hash, struct client *client)
{
    struct subscription *subscription = mem_alloc(sizeof(*subscription));
    struct registry_shard *shard = shard_of(kind, hash);
    const unsigned worker_index = client->worker->index;
    struct topic_list *stale = NULL;
    struct topic_part *part;
    struct topic *topic;

    client_assert_owned(client);
    spinlock_acquire(&shard->lock);
    topic = find_locked(shard, kind, name, hash);
    if (topic == NULL) {
        topic = create_locked(shard, kind, name, hash);
        forget_list_locked(shard, &stale);
    }
    part = part_locked(topic, worker_index);
    topic->subscriber_count++;
    topic->workers |= UINT64_C(1) << worker_index;
    *subscription = (struct subscription){.client = client,
                                          .topic = topic_acquire(topic),
                                          .part = part,
                                          .age = ++topic->age,
                                          .end = UINT64_MAX,
                                          .index = part->count};
    if (part->count == part->capacity) {
        part->capacity = part->capacity != 0 ? part->capacity * 2 : 1;
        part->items = mem_realloc(part->items, part->capacity * sizeof(struct subscription *));
    }
    part->items[part->count++] = subscription;
    spinlock_release(&shard->lock);
    list_release(&stale);
    return subscription;
}

static void part_remove(struct topic_part *part, uint32_t index)
{
    assert(index < part->count);
    part->items[index] = part->items[--part->count];
    part->items[index]->index = index;
    if (part->count == 0) {
        mem_free(part->items);
        part->items = NULL;
        part->capacity = 0;
    } else if (part->capacity >= 16 && part->count < part->capacity / 4) {
        part->capacity /= 2;
        part->items = mem_realloc(part->items, part->capacity * sizeof(struct subscription *));
    }
}

void topics_leave(struct subscription *subscription)
{
    struct topic *topic = subscription->topic;
    const struct topic_part *part = subscription->part;
    struct registry_shard *shard = shard_of(topic->kind, topic->hash);
    struct topic_list *stale = NULL;
    bool last;

    client_assert_owned(subscription->client);
    spinlock_acquire(&shard->lock);
    assert(subscription->end == UINT64_MAX && topic->subscriber_count != 0 && part->count != 0);
    subscription->end = ++topic->age;
    if (part->count == 1) /* subscriptions that were left earlier are freed */
        topic->workers &= ~(UINT64_C(1) << part->worker_index);
    last = --topic->subscriber_count == 0;
    if (last) {
        struct slice name = topic_name(topic);
        uint64_t *slot = table_find_slot(&shard->topics[topic->kind], topic->hash, is_named, &name);

        assert(slot != NULL && atomic_load_explicit(&counts[topic->kind], memory_order_relaxed) != 0);
        table_remove(&shard->topics[topic->kind], topic->hash, slot);
        atomic_fetch_sub_explicit(&counts[topic->kind], 1, memory_order_relaxed);
        forget_list_locked(shard, &stale);
    }
    spinlock_release(&shard->lock);
    list_release(&stale);
    if (last)
        topic_release(&topic);
}

void topics_unsubscribe(struct subscription **subscription)
{
    struct topic *topic = (*subscription)->topic;
    struct registry_shard *shard = shard_of(topic->kind, topic->hash);

    client_assert_owned((*subscription)->client);
    if ((*subscription)->end == UINT64_MAX)
        topics_leave(*subscription);
    spinlock_acquire(&shard->lock);
    part_remove((*subscription)->part, (*subscription)->index);
    spinlock_release(&shard->lock);
    mem_free(*subscription);
    *subscription = NULL;
    topic_release(&topic);
}

/* --------------------------------------------------------------------------------------------------- publishing -- */

static struct topic_ticket ticket_locked(struct topic *topic, struct topic_reach *reach)
{
    reach->workers |= topic->workers;
    reach->subscriber_count += topic->subscriber_count;
    return (struct topic_ticket){topic_acquire(topic), topic->age, topic->workers};
}

/* The reference stays. A topic that nobody is left with reaches nobody. */
static void renew_locked(struct topic_ticket *ticket, struct topic_reach *reach)
{
    assert(ticket->age <= ticket->topic->age);
    ticket->age = ticket->topic->age;
    ticket->workers = ticket->topic->workers;
    reach->workers |= ticket->workers;
    reach->subscriber_count += ticket->topic->subscriber_count;
}

void topic_ticket_release(struct topic_ticket *ticket)
{
    if (ticket->topic != NULL)
        topic_release(&ticket->topic);
}

void topic_tickets_fini(struct topic_tickets *tickets)
{
    for (uint32_t i = 0; i < tickets->count; i++)
        topic_ticket_release(&tickets->items[i]);
    ARRAY_FINI(tickets);
}

static void list_add(void *item, void *context)
{
    struct topic_list *list = context;

    list->items[list->count++] = topic_acquire(item);
}

/* A new list costs no more than matching all patterns does, and is made only for that. */
static struct topic_list *list_acquire(struct registry_shard *shard, enum topic_kind kind)
{
    struct topic_list *list;

    assert(kind == TOPIC_PATTERN || kind == TOPIC_PREFIX);
    spinlock_acquire(&shard->lock);
    list = shard->list;
    if (list == NULL) {
        const struct table *topics = &shard->topics[kind];

        list = mem_alloc(sizeof(*list) + table_count(topics) * sizeof(struct topic *));
        list->count = 0;
        atomic_init(&list->refs, 1);
        table_each(topics, list_add, list);
        assert(list->count == table_count(topics));
        shard->list = list;
    }
    atomic_fetch_add_explicit(&list->refs, 1, memory_order_relaxed);
    spinlock_release(&shard->lock);
    return list;
}

void topics_match(enum topic_kind kind, bool (*fits)(struct slice name, const void *context), const void *context,
                  struct topic_tickets *tickets, struct topic_reach *reach)
{
    struct registry_shard *shard = shard_of(kind, 0);
    struct topic_list *list;
    uint32_t kept = 0;

    assert(tickets->count == 0);
    if (LIKELY(topics_count(kind) == 0))
        return;
    list = list_acquire(shard, kind);
    for (uint32_t i = 0; i < list->count; i++) {
        if (fits(topic_name(list->items[i]), context))
            ARRAY_PUSH(tickets)->topic = list->items[i];
    }
    spinlock_acquire(&shard->lock);
    for (uint32_t i = 0; i < tickets->count; i++) {
        if (tickets->items[i].topic->subscriber_count != 0) /* may have been left meanwhile */
            tickets->items[kept++] = ticket_locked(tickets->items[i].topic, reach);
    }
    spinlock_release(&shard->lock);
    tickets->count = kept;
    list_release(&list);
}

bool topics_has(enum topic_kind kind, struct slice name, uint64_t hash)
{
    struct registry_shard *shard = shard_of(kind, hash);
    bool found;

    if (topics_count(kind) == 0)
        return false;
    spinlock_acquire(&shard->lock);
    found = find_locked(shard, kind, name, hash) != NULL;
    spinlock_release(&shard->lock);
    return found;
}

/* The patterns' lock is taken in one case and given back in the same. */
NO_THREAD_SAFETY_ANALYSIS static void post_locked(const struct topic_message *message, struct topic_reach *reach,
                                                  void (*post)(const struct topic_reach *reach, void *context),
                                                  void *context)
{
    struct registry_shard *patterns = shard_of(TOPIC_PATTERN, 0);

    assert(spinlock_held_count != 0);
    if (message->pattern_count != 0) {
        spinlock_acquire(&patterns->lock);
        for (uint32_t i = 0; i < message->pattern_count; i++)
            renew_locked(&message->patterns[i], reach);
    }
    if (reach->workers != 0)
        post(reach, context);
    if (message->pattern_count != 0)
        spinlock_release(&patterns->lock);
}

void topics_post(const struct topic_message *message, struct topic_reach *reach,
                 void (*post)(const struct topic_reach *reach, void *context), void *context)
{
    struct registry_shard *shard = shard_of(message->kind, message->hash);
    struct topic *topic;

    *reach = (struct topic_reach){0};
    spinlock_acquire(&shard->lock);
    topic = find_locked(shard, message->kind, message->channel, message->hash);
    if (topic != NULL)
        *message->ticket = ticket_locked(topic, reach);
    post_locked(message, reach, post, context);
    spinlock_release(&shard->lock);
}

/* ------------------------------------------------------------------------------------------------------ looking -- */

uint64_t topics_count(enum topic_kind kind)
{
    return atomic_load_explicit(&counts[kind], memory_order_relaxed);
}

uint32_t topics_subscriber_count(enum topic_kind kind, struct slice name)
{
    uint64_t hash = topics_hash(name);
    struct registry_shard *shard = shard_of(kind, hash);
    const struct topic *topic;
    uint32_t count;

    spinlock_acquire(&shard->lock);
    topic = find_locked(shard, kind, name, hash);
    count = topic != NULL ? topic->subscriber_count : 0;
    spinlock_release(&shard->lock);
    return count;
}

static void add_name(void *item, void *context)
{
    const struct topic *topic = item;
    struct buffer *names = context;

    buffer_append(names, &topic->name_size, sizeof(topic->name_size));
    buffer_append(names, topic->name, topic->name_size);
}

/* Keeps the matching names of one shard. They were gathered under the lock, which matching would hold for too long. */
static uint64_t keep_matching(struct buffer *names, size_t from, struct slice pattern)
{
    uint64_t count = 0;
    size_t to = from;

    while (from < names->size) {
        size_t size, whole;

        memcpy(&size, names->data + from, sizeof(size));
        whole = sizeof(size) + size;
        if (glob_match(pattern, slice_make(names->data + from + sizeof(size), size), false)) {
            memmove(names->data + to, names->data + from, whole);
            to += whole;
            count++;
        }
        from += whole;
        assert(to <= from && from <= names->size);
    }
    buffer_truncate(names, to);
    return count;
}

uint64_t topics_list(enum topic_kind kind, struct slice pattern, struct buffer *names)
{
    uint64_t count = 0;

    for (size_t i = 0; i < countof(registry_shards); i++) {
        struct registry_shard *shard = &registry_shards[i];
        size_t from = names->size;

        spinlock_acquire(&shard->lock);
        table_each(&shard->topics[kind], add_name, names);
        spinlock_release(&shard->lock);
        if (names->size != from)
            count += keep_matching(names, from, pattern);
    }
    return count;
}

size_t topics_memory_bytes(const struct subscription *subscription)
{
    /* With its place in the part's list, and in the client's table. The name is shared, but usually with few. */
    return sizeof(*subscription) + 4 * sizeof(void *) + sizeof(struct topic) + subscription->topic->name_size;
}

void topics_teardown(void)
{
    gate_assert_main_alone();
    for (size_t i = 0; i < countof(registry_shards); i++) {
        list_release(&registry_shards[i].list);
        for (size_t kind = 0; kind < TOPIC_KINDS; kind++) {
            assert(table_count(&registry_shards[i].topics[kind]) == 0); /* all clients have gone */
            table_clear(&registry_shards[i].topics[kind], NULL, NULL);
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------- info -- */

struct counts {
    uint64_t of[TOPIC_KINDS];
};

static void take_counts(void *picture, const struct info_moment *moment)
{
    struct counts *into = picture;

    (void)moment;
    for (unsigned kind = 0; kind < TOPIC_KINDS; kind++)
        into->of[kind] = topics_count((enum topic_kind)kind);
}

static const struct info_source counts_source = {sizeof(struct counts), .take = take_counts};

#define COUNT(name, kind) INFO_FIELD(name, &counts_source, struct counts, of[kind])

const struct info_row topics_info[] = {
    COUNT("pubsub_channels", TOPIC_CHANNEL),
    COUNT("pubsub_patterns", TOPIC_PATTERN),
    COUNT("pubsubshard_channels", TOPIC_SHARD),
    COUNT("tracking_total_prefixes", TOPIC_PREFIX),
    {0},
};
