#include "server/pubsub/broadcast.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/blob.h"
#include "base/mem.h"
#include "net/resp.h"
#include "server/core/client_ref.h"
#include "server/core/deliveries.h"
#include "server/core/lifecycle.h"
#include "server/core/server.h"
#include "server/pubsub/telling.h"
#include "server/pubsub/topics.h"
#include "server/pubsub/tracking_priv.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------------- prefixes -- */

static uint64_t hash_of(const void *item)
{
    return ((const struct subscription *)item)->topic->hash;
}

static bool is_named(const void *item, const void *key)
{
    return slice_equal(topic_name(((const struct subscription *)item)->topic), *(const struct slice *)key);
}

void broadcast_enter(struct tracking *tracking, struct slice prefix)
{
    uint64_t hash = topics_hash(prefix);
    struct subscription *subscription;

    client_assert_owned(tracking->client);
    assert(tracking->client->tracking == tracking);
    if (table_find(&tracking->prefixes, hash, is_named, &prefix) != NULL)
        return;
    subscription = topics_subscribe(TOPIC_PREFIX, prefix, hash, tracking->client);
    table_insert(&tracking->prefixes, hash, subscription, hash_of);
    atomic_fetch_add_explicit(&tracking->client->card.prefix_bytes, topics_memory_bytes(subscription),
                              memory_order_relaxed);
}

static void leave(void *item, void *context)
{
    struct subscription *subscription = item;

    (void)context;
    topics_unsubscribe(&subscription);
}

void broadcast_leave(struct tracking *tracking)
{
    client_assert_owned(tracking->client);
    table_clear(&tracking->prefixes, leave, NULL);
    assert(table_count(&tracking->prefixes) == 0);
    atomic_store_explicit(&tracking->client->card.prefix_bytes, 0, memory_order_relaxed);
}

static int compare_slices(struct slice one, struct slice two)
{
    size_t size = MIN(one.size, two.size);
    int order = size != 0 ? memcmp(one.data, two.data, size) : 0;

    return order != 0 ? order : (one.size > two.size) - (one.size < two.size);
}

static int compare_names(const void *a, const void *b)
{
    return compare_slices(*(const struct slice *)a, *(const struct slice *)b);
}

static void collect(void *item, void *context)
{
    struct slice **next = context;

    *(*next)++ = topic_name(((const struct subscription *)item)->topic);
}

struct slice *tracking_prefixes(const struct client *client, uint64_t *count)
{
    const struct table *prefixes = &client->tracking->prefixes;
    struct slice *names, *next;

    client_assert_owned(client);
    *count = table_count(prefixes);
    names = next = mem_alloc((*count + 1) * sizeof(struct slice));
    table_each(prefixes, collect, &next);
    assert(next == names + *count);
    qsort(names, *count, sizeof(struct slice), compare_names);
    return names;
}

/* ------------------------------------------------------------------------------------------------------- noting -- */

/* A worker's; its own thread's. */
static struct state {
    struct buffer notes; /* keys that changed in this moment: struct noted, then the key's bytes */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

static struct state *of(const struct worker *worker)
{
    assert(worker->index <= WORKERS_MOST);
    return &states[worker->index];
}

/* A note of a worker: this struct, then the key's bytes. */
struct noted {
    size_t size;
    struct client_ref *by; /* a reference to the client that wants no invalidation; NULL: none */
};

void broadcast_note(struct worker *worker, struct slice name, struct client_ref *by)
{
    const struct noted noted = {name.size, by};

    if (topics_count(TOPIC_PREFIX) == 0)
        return;
    worker_assert_inside(worker);
    if (by != NULL)
        (void)client_ref_acquire(by);
    buffer_append(&of(worker)->notes, &noted, sizeof(noted));
    buffer_append_slice(&of(worker)->notes, name);
    telling_note(worker, of(worker)->notes.size);
}

/* ------------------------------------------------------------------------------------------------------ sending -- */

struct changed_key {
    struct slice name;
    size_t order;          /* of the changes */
    struct client_ref *by; /* the client that changed it last */
};

/* In ascending order, each once. */
struct changed_keys {
    struct changed_key *items;
    size_t count, capacity;
};

/* The keys with one prefix on their way to those who want to know, shared by the deliveries to all workers. */
struct broadcast {
    _Atomic uint32_t refs; /* atomic: deliveries */
    struct topic_ticket ticket;
    struct blob *body;
    size_t key_count;         /* 0: no client that changed one of them has NOLOOP */
    struct changed_key *keys; /* names lie in the body; a reference each to `by` */
};

struct copy {
    struct delivery delivery;
    struct broadcast *broadcast;
};

static int compare_keys(const void *a, const void *b)
{
    const struct changed_key *one = a, *two = b;
    int order = compare_slices(one->name, two->name);

    return order != 0 ? order : (one->order > two->order) - (one->order < two->order);
}

static void keys_read(struct changed_keys *keys, const struct buffer *bytes)
{
    size_t kept = 0;

    *keys = (struct changed_keys){0};
    for (size_t at = 0; at < bytes->size;) {
        uint64_t order = keys->count;
        struct noted noted;

        memcpy(&noted, bytes->data + at, sizeof(noted));
        at += sizeof(noted);
        *ARRAY_PUSH(keys) = (struct changed_key){.name = slice_make(bytes->data + at, noted.size),
                                                 .order = order,
                                                 .by = noted.by};
        at += noted.size;
        assert(at <= bytes->size);
    }
    qsort(keys->items, keys->count, sizeof(struct changed_key), compare_keys);
    for (size_t i = 0; i < keys->count; i++) {
        if (i + 1 < keys->count && slice_equal(keys->items[i].name, keys->items[i + 1].name))
            client_ref_release(&keys->items[i].by); /* the later change counts */
        else
            keys->items[kept++] = keys->items[i];
    }
    assert(kept <= keys->count);
    keys->count = kept;
}

static void keys_fini(struct changed_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        client_ref_release(&keys->items[i].by);
    ARRAY_FINI(keys);
}

static bool begins_with(struct slice name, struct slice prefix)
{
    return name.size >= prefix.size && (prefix.size == 0 || memcmp(name.data, prefix.data, prefix.size) == 0);
}

/* The first key that is not below the prefix: the keys that begin with the prefix follow from there. */
static size_t first_of(const struct changed_keys *keys, struct slice prefix)
{
    size_t low = 0, high = keys->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_slices(keys->items[middle].name, prefix) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_wanted(struct slice prefix, const void *context)
{
    const struct changed_keys *keys = context;
    size_t first = first_of(keys, prefix);

    return first < keys->count && begins_with(keys->items[first].name, prefix);
}

/* An array of the keys' names but those changed by `except`. NULL: there are none. With `listed` the keys' names are
 * those in the body from then on. */
static struct blob *body_of(struct changed_key *keys, size_t count, const struct client_ref *except, bool listed)
{
    size_t size = RESP_HEADER_BYTES, used = 0;
    struct blob *body;
    char *at;

    for (size_t i = 0; i < count; i++) {
        if (except != NULL && keys[i].by == except)
            continue;
        size += RESP_HEADER_BYTES + keys[i].name.size + 2;
        used++;
    }
    if (used == 0)
        return NULL;
    body = blob_create(size);
    at = resp_encode_header(body->data, '*', (int64_t)used);
    for (size_t i = 0; i < count; i++) {
        struct slice name = keys[i].name;

        if (except != NULL && keys[i].by == except)
            continue;
        at = resp_encode_header(at, '$', (int64_t)name.size);
        if (name.size != 0)
            memcpy(at, name.data, name.size);
        if (listed)
            keys[i].name.data = at;
        memcpy(at + name.size, "\r\n", 2);
        at += name.size + 2;
    }
    body->size = (size_t)(at - body->data);
    assert(body->size <= size);
    return body;
}

static void broadcast_release(struct broadcast **broadcast)
{
    struct broadcast *gone = *broadcast;
    uint32_t before;

    *broadcast = NULL;
    before = atomic_fetch_sub_explicit(&gone->refs, 1, memory_order_acq_rel);
    assert(before != 0);
    if (before != 1)
        return;
    topic_ticket_release(&gone->ticket);
    for (size_t i = 0; i < gone->key_count; i++)
        client_ref_release(&gone->keys[i].by);
    mem_free(gone->keys);
    blob_release(&gone->body);
    mem_free(gone);
}

static void tell(struct client *client, const struct broadcast *broadcast)
{
    bool is_silent = false;
    struct blob *body;

    client_assert_owned(client);
    for (size_t i = 0; i < broadcast->key_count && !is_silent; i++)
        is_silent = broadcast->keys[i].by == client->card.ref;
    if (LIKELY(!is_silent)) {
        tracking_tell(client, broadcast->body);
        return;
    }
    body = body_of(broadcast->keys, broadcast->key_count, client->card.ref, false);
    if (body != NULL)
        tracking_tell(client, body);
    blob_release(&body);
}

static void deliver(struct worker *worker, struct delivery *delivery)
{
    struct copy *copy = container_of(delivery, struct copy, delivery);
    const struct topic_ticket *ticket = &copy->broadcast->ticket;
    const struct topic_part *part = topic_part_of(ticket->topic, worker->index);

    worker_assert_self(worker);
    for (uint32_t i = 0; part != NULL && i < part->count; i++) {
        if (topic_ticket_reaches(ticket, part->items[i]) && !conn_is_closing(&part->items[i]->client->conn))
            tell(part->items[i]->client, copy->broadcast);
    }
    broadcast_release(&copy->broadcast);
    mem_free(copy);
}

static void tell_workers(struct worker *worker, struct topic_ticket *ticket, const struct changed_keys *keys)
{
    struct slice prefix = topic_name(ticket->topic);
    struct broadcast *broadcast = mem_alloc(sizeof(*broadcast));
    size_t first = first_of(keys, prefix), count = 0, silent = 0;

    while (first + count < keys->count && begins_with(keys->items[first + count].name, prefix))
        silent += keys->items[first + count++].by != NULL;
    assert(count != 0); /* is_wanted has found one */
    *broadcast = (struct broadcast){.ticket = *ticket};
    atomic_init(&broadcast->refs, 1);
    ticket->topic = NULL; /* the reference has moved */
    if (silent != 0) {
        broadcast->key_count = count;
        broadcast->keys = mem_alloc(count * sizeof(struct changed_key));
        memcpy(broadcast->keys, &keys->items[first], count * sizeof(struct changed_key));
        for (size_t i = 0; i < count; i++) {
            if (broadcast->keys[i].by != NULL)
                (void)client_ref_acquire(broadcast->keys[i].by);
        }
        broadcast->body = body_of(broadcast->keys, count, NULL, true);
    } else {
        broadcast->body = body_of(&keys->items[first], count, NULL, false);
    }
    for (uint64_t left = broadcast->ticket.workers; left != 0; left &= left - 1) {
        struct copy *copy = mem_alloc(sizeof(*copy));

        atomic_fetch_add_explicit(&broadcast->refs, 1, memory_order_relaxed);
        *copy = (struct copy){.delivery = {.deliver = deliver}, .broadcast = broadcast};
        delivery_post(worker, &worker->server->workers[__builtin_ctzll(left)], &copy->delivery, broadcast->body->size);
    }
    broadcast_release(&broadcast);
}

static int compare_tickets(const void *a, const void *b)
{
    return compare_slices(topic_name(((const struct topic_ticket *)a)->topic),
                          topic_name(((const struct topic_ticket *)b)->topic));
}

void broadcast_tell_noted(struct worker *worker)
{
    struct buffer bytes = of(worker)->notes;
    struct topic_tickets tickets = {0};
    struct topic_reach reach = {0};
    struct changed_keys keys;

    if (LIKELY(bytes.size == 0))
        return;
    worker_assert_inside(worker);
    buffer_init(&of(worker)->notes);
    keys_read(&keys, &bytes);
    topics_match(TOPIC_PREFIX, is_wanted, &keys, &tickets, &reach);
    if (tickets.count != 0)
        qsort(tickets.items, tickets.count, sizeof(struct topic_ticket), compare_tickets);
    for (uint32_t i = 0; i < tickets.count; i++)
        tell_workers(worker, &tickets.items[i], &keys);
    topic_tickets_fini(&tickets);
    keys_fini(&keys);
    buffer_fini(&bytes);
}

static void fini(struct worker *worker)
{
    buffer_fini(&of(worker)->notes);
}

const struct lifecycle broadcast_lifecycle = {
    .worker_fini = fini,
};
