#include "server/pubsub/pubsub.h"

#include "base/assert.h"
#include "base/blob.h"
#include "base/glob.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "server/config/options.h"
#include "server/core/client.h"
#include "server/core/deliveries.h"
#include "server/core/lifecycle.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/pubsub/telling.h"

#include <string.h>

enum { COPY_MOST_BYTES = 4096 }; /* longer messages are referenced by the outputs of their receivers */

/* A message on its way, shared by the deliveries to all workers. */
struct publication {
    _Atomic uint32_t refs; /* atomic: deliveries */
    uint32_t ticket_count;
    struct topic_ticket channel;   /* its topic is NULL: only patterns are reached */
    struct blob *body;             /* the common part of all forms: channel and payload as bulk strings */
    struct topic_ticket tickets[]; /* to patterns */
};

struct copy {
    struct delivery delivery;
    bool is_counted; /* in the cards of its receivers */
    struct publication *publication;
};

/* ------------------------------------------------------------------------------------------------ subscriptions -- */

static uint64_t hash_of(const void *item)
{
    return ((const struct subscription *)item)->topic->hash;
}

static bool is_named(const void *item, const void *key)
{
    return slice_equal(topic_name(((const struct subscription *)item)->topic), *(const struct slice *)key);
}

uint64_t pubsub_count(const struct client *client, enum topic_kind kind)
{
    const struct table *tables = client->pubsub != NULL ? client->pubsub->subscriptions : NULL;

    client_assert_owned(client);
    if (tables == NULL)
        return 0;
    return kind == TOPIC_SHARD ? table_count(&tables[TOPIC_SHARD])
                               : table_count(&tables[TOPIC_CHANNEL]) + table_count(&tables[TOPIC_PATTERN]);
}

struct visitor {
    void (*visit)(struct slice name, void *context);
    void *context;
};

static void visit_name(void *item, void *context)
{
    const struct visitor *visitor = context;

    visitor->visit(topic_name(((const struct subscription *)item)->topic), visitor->context);
}

void pubsub_each(const struct client *client, enum topic_kind kind, void (*visit)(struct slice name, void *context),
                 void *context)
{
    client_assert_owned(client);
    assert((int)kind < PUBSUB_KINDS);
    if (client->pubsub != NULL)
        table_each(&client->pubsub->subscriptions[kind], visit_name, &(struct visitor){visit, context});
}

/* Updates the card; a client without subscriptions is as it was before the first one. */
static void show(struct client *client)
{
    struct pubsub_session *session = client->pubsub;
    bool subscribes = false;

    for (size_t kind = 0; kind < PUBSUB_KINDS; kind++) {
        uint64_t count = table_count(&session->subscriptions[kind]);

        atomic_store_explicit(&client->card.subscription_counts[kind], (uint32_t)count, memory_order_relaxed);
        subscribes = subscribes || count != 0;
    }
    atomic_store_explicit(&client->card.pubsub_bytes, subscribes ? session->memory_bytes : 0, memory_order_relaxed);
    if (subscribes) {
        client->flags |= CLIENT_PUBSUB;
    } else {
        client->flags &= ~(uint32_t)CLIENT_PUBSUB;
        atomic_store_explicit(&client->card.delivery_bytes, 0, memory_order_relaxed); /* they will not reach it */
        mem_free(session);
        client->pubsub = NULL;
    }
}

uint64_t pubsub_subscribe(struct client *client, enum topic_kind kind, struct slice name)
{
    uint64_t hash = topics_hash(name);
    struct subscription *subscription;
    struct table *table;

    assert((int)kind < PUBSUB_KINDS);
    client_assert_owned(client);
    telling_noted(client->worker); /* the earlier messages */
    if (client->pubsub == NULL) {
        client->pubsub = mem_alloc_zero(sizeof(*client->pubsub));
        client->pubsub->memory_bytes = sizeof(*client->pubsub);
    }
    table = &client->pubsub->subscriptions[kind];
    if (table_find(table, hash, is_named, &name) == NULL) {
        subscription = topics_subscribe(kind, name, hash, client);
        table_insert(table, hash, subscription, hash_of);
        client->pubsub->memory_bytes += topics_memory_bytes(subscription);
    }
    show(client);
    return pubsub_count(client, kind);
}

/* Messages published before the client unsubscribes are delivered before the reply. Not within EXEC, where they would
 * be part of the reply, and not for a client that is closed. */
static void hear_out(struct client *client, struct subscription *subscription)
{
    struct worker *worker = client->worker;

    assert(client->pubsub->memory_bytes >= topics_memory_bytes(subscription));
    client->pubsub->memory_bytes -= topics_memory_bytes(subscription);
    topics_leave(subscription);
    if (!conn_is_closing(&client->conn) && (worker->run.running == NULL || !worker->run.running->in_exec))
        worker_read_mail_so_far(worker);
}

static void leave(struct client *client, struct table *table, uint64_t *slot)
{
    struct subscription *subscription = table_slot_item(slot);

    table_remove(table, hash_of(subscription), slot);
    hear_out(client, subscription);
    topics_unsubscribe(&subscription);
}

uint64_t pubsub_unsubscribe(struct client *client, enum topic_kind kind, struct slice name)
{
    struct table *table = client->pubsub != NULL ? &client->pubsub->subscriptions[kind] : NULL;
    uint64_t *slot = table != NULL ? table_find_slot(table, topics_hash(name), is_named, &name) : NULL;

    client_assert_owned(client);
    if (slot != NULL) {
        leave(client, table, slot);
        show(client);
    }
    return pubsub_count(client, kind);
}

static void collect(void *item, void *context)
{
    struct subscription ***next = context;

    *(*next)++ = item;
}

uint64_t pubsub_unsubscribe_all(struct client *client, enum topic_kind kind,
                                void (*left)(struct slice name, uint64_t count, void *context), void *context)
{
    struct table *table = client->pubsub != NULL ? &client->pubsub->subscriptions[kind] : NULL;
    uint64_t total = table != NULL ? table_count(table) : 0, before = pubsub_count(client, kind);
    struct subscription **all, **next;

    assert((int)kind < PUBSUB_KINDS);
    client_assert_owned(client);
    if (total == 0)
        return 0;
    all = next = mem_alloc(total * sizeof(*all));
    table_each(table, collect, &next);
    assert(next == all + total);
    table_clear(table, NULL, NULL);
    for (uint64_t i = 0; i < total; i++) {
        hear_out(client, all[i]);
        if (left != NULL)
            left(topic_name(all[i]->topic), before - i - 1, context);
        topics_unsubscribe(&all[i]);
    }
    mem_free(all);
    show(client);
    return total;
}

void pubsub_leave(struct client *client)
{
    client_assert_owned(client);
    for (int kind = 0; kind < PUBSUB_KINDS; kind++)
        (void)pubsub_unsubscribe_all(client, (enum topic_kind)kind, NULL, NULL);
}

void pubsub_catch_up(struct client *client)
{
    client_assert_owned(client);
    telling_noted(client->worker);
    if (client->pubsub != NULL)
        worker_read_mail_so_far(client->worker);
}

/* --------------------------------------------------------------------------------------------------- publishing -- */

static char *put_bulk(char *at, struct slice bytes)
{
    at = resp_encode_header(at, '$', (int64_t)bytes.size);
    if (bytes.size != 0)
        memcpy(at, bytes.data, bytes.size);
    at += bytes.size;
    at[0] = '\r';
    at[1] = '\n';
    return at + 2;
}

static struct publication *publication_create(struct slice channel, struct slice payload, struct topic_tickets *tickets)
{
    struct publication *publication = mem_alloc(sizeof(*publication) + tickets->count * sizeof(struct topic_ticket));
    struct blob *body = blob_create(2 * RESP_HEADER_BYTES + channel.size + payload.size + 4);

    body->size = (size_t)(put_bulk(put_bulk(body->data, channel), payload) - body->data);
    assert(body->size <= 2 * RESP_HEADER_BYTES + channel.size + payload.size + 4);
    *publication = (struct publication){.ticket_count = tickets->count, .body = body};
    atomic_init(&publication->refs, 1);
    if (tickets->count != 0)
        memcpy(publication->tickets, tickets->items, tickets->count * sizeof(struct topic_ticket));
    tickets->count = 0; /* the references have moved */
    return publication;
}

static void publication_release(struct publication **publication)
{
    struct publication *gone = *publication;
    uint32_t before;

    *publication = NULL;
    before = atomic_fetch_sub_explicit(&gone->refs, 1, memory_order_acq_rel);
    assert(before != 0);
    if (before != 1)
        return;
    topic_ticket_release(&gone->channel);
    for (uint32_t i = 0; i < gone->ticket_count; i++)
        topic_ticket_release(&gone->tickets[i]);
    blob_release(&gone->body);
    mem_free(gone);
}

struct posting {
    struct worker *worker;
    struct publication *publication;
};

static void deliver(struct worker *worker, struct delivery *delivery);

static size_t counted_bytes(const struct publication *publication)
{
    return publication->body->size + sizeof("*3\r\n$7\r\nmessage");
}

/* Counts a message for a topic's subscribers in one worker, under the topic's lock. A subscriber beyond its output
 * limit is closed, as if it had got everything already. False: all are beyond. */
static bool count_for_topic(const struct topic_ticket *ticket, struct worker *receiver, uint64_t bytes, uint64_t most)
{
    const struct topic_part *part = topic_part_of(ticket->topic, receiver->index);
    bool some = false;

    for (uint32_t i = 0; part != NULL && i < part->count; i++) {
        struct client_card *card = &part->items[i]->client->card;
        uint64_t pending;

        if (!topic_ticket_reaches(ticket, part->items[i]))
            continue;
        pending = atomic_fetch_add_explicit(&card->delivery_bytes, bytes, memory_order_relaxed) + bytes +
                  atomic_load_explicit(&card->output_bytes, memory_order_relaxed);
        if (pending < most) {
            some = true;
        } else if ((atomic_fetch_or_explicit(&card->requests, CLIENT_REQUEST_CUT, memory_order_release) &
                    CLIENT_REQUEST_CUT) == 0) {
            atomic_store_explicit(&receiver->has_requests, true, memory_order_release);
        }
    }
    return some;
}

/* One command may send more than there is memory, and nobody reads before it has ended, or not fast enough. False:
 * nobody in this worker is to get it any more. */
static bool count_delivery(const struct publication *publication, struct worker *receiver)
{
    const uint64_t most = atomic_load_explicit(&option_output_limits[OUTPUT_CLASS_PUBSUB].hard_bytes,
                                               memory_order_relaxed);
    const uint64_t bytes = counted_bytes(publication);
    bool some = false;

    if (publication->channel.topic != NULL)
        some = count_for_topic(&publication->channel, receiver, bytes, most != 0 ? most : UINT64_MAX);
    for (uint32_t i = 0; i < publication->ticket_count; i++)
        some = count_for_topic(&publication->tickets[i], receiver, bytes, most != 0 ? most : UINT64_MAX) || some;
    return some;
}

/* Under the lock of the channel, and of the patterns if some fit: only puts deliveries into mailboxes. */
static void post(const struct topic_reach *reach, void *context)
{
    const struct posting *posting = context;
    struct worker *worker = posting->worker;
    struct publication *publication = posting->publication;

    assert(spinlock_held_count != 0);
    for (uint64_t left = reach->workers; left != 0; left &= left - 1) {
        struct worker *receiver = &worker->server->workers[__builtin_ctzll(left)];
        bool much = atomic_load_explicit(&receiver->backlog_bytes, memory_order_relaxed) > DELIVERIES_MUCH_BYTES;
        struct copy *copy;

        if (UNLIKELY(much) && !count_delivery(publication, receiver)) {
            deliveries_wake_later(worker, receiver); /* to cut them */
            continue;
        }
        copy = mem_alloc(sizeof(*copy));
        copy->delivery.deliver = deliver;
        copy->is_counted = much;
        copy->publication = publication;
        atomic_fetch_add_explicit(&publication->refs, 1, memory_order_relaxed);
        delivery_post(worker, receiver, &copy->delivery, publication->body->size);
    }
}

static bool fits_pattern(struct slice pattern, const void *context)
{
    return glob_match(pattern, *(const struct slice *)context, false);
}

uint64_t pubsub_publish(struct worker *worker, enum topic_kind kind, struct slice channel, struct slice payload)
{
    struct topic_message message = {.kind = kind, .channel = channel, .hash = topics_hash(channel)};
    struct topic_tickets tickets = {0};
    struct topic_reach reach = {0};
    struct posting posting = {.worker = worker};

    worker_assert_self(worker);
    assert(kind == TOPIC_CHANNEL || kind == TOPIC_SHARD);
    telling_noted(worker); /* the earlier messages */
    if (kind == TOPIC_CHANNEL)
        topics_match(TOPIC_PATTERN, fits_pattern, &channel, &tickets, &reach);
    if (tickets.count != 0 || topics_has(kind, channel, message.hash)) {
        posting.publication = publication_create(channel, payload, &tickets);
        message.ticket = &posting.publication->channel;
        message.patterns = posting.publication->tickets;
        message.pattern_count = posting.publication->ticket_count;
        topics_post(&message, &reach, post, &posting);
        publication_release(&posting.publication);
    }
    topic_tickets_fini(&tickets);
    return reach.subscriber_count;
}

/* --------------------------------------------------------------------------------------------------- delivering -- */

/* A message as the subscribers of one topic see it, except for its first byte, which depends on the protocol. */
struct form {
    char *head; /* "*3 message" or "*4 pmessage <pattern>" */
    size_t head_size;
    char *whole; /* with the body, if that is short */
    size_t whole_size;
    struct blob *body;
};

static void form_init(struct form *form, const struct topic *topic, struct blob *body)
{
    static const struct slice heads[PUBSUB_KINDS] = {
        [TOPIC_CHANNEL] = {"*3\r\n$7\r\nmessage\r\n", 17},
        [TOPIC_PATTERN] = {"*4\r\n$8\r\npmessage\r\n", 18},
        [TOPIC_SHARD] = {"*3\r\n$8\r\nsmessage\r\n", 18},
    };
    struct slice head = heads[topic->kind];
    size_t most = head.size + RESP_HEADER_BYTES + topic->name_size + 2 +
                  (body->size <= COPY_MOST_BYTES ? body->size : 0);
    char *at;

    *form = (struct form){.head = mem_alloc(most), .body = body};
    memcpy(form->head, head.data, head.size);
    at = form->head + head.size;
    if (topic->kind == TOPIC_PATTERN)
        at = put_bulk(at, topic_name(topic));
    form->head_size = (size_t)(at - form->head);
    assert(form->head_size + (body->size <= COPY_MOST_BYTES ? body->size : 0) <= most);
    if (body->size > COPY_MOST_BYTES || form->head_size > COPY_MOST_BYTES)
        return;
    memcpy(at, body->data, body->size);
    form->whole = form->head;
    form->whole_size = form->head_size + body->size;
}

static void form_write(const struct form *form, struct output *output, int proto)
{
    char *at;

    if (form->whole != NULL) {
        at = output_reserve(output, form->whole_size);
        memcpy(at, form->whole, form->whole_size);
        at[0] = proto == 2 ? '*' : '>';
        output_commit(output, at + form->whole_size);
        return;
    }
    output_append(output, proto == 2 ? "*" : ">", 1);
    output_append(output, form->head + 1, form->head_size - 1);
    output_append_blob(output, form->body, 0, form->body->size);
}

/* `counted`: the bytes that are not on their way any more. */
static void deliver_to_topic(const struct worker *worker, const struct topic_ticket *ticket, struct blob *body,
                             uint64_t counted)
{
    const struct topic_part *part = topic_part_of(ticket->topic, worker->index);
    struct form form;

    if (part == NULL || part->count == 0)
        return;
    form_init(&form, ticket->topic, body);
    for (uint32_t i = 0; i < part->count; i++) {
        struct client *client = part->items[i]->client;

        if (!topic_ticket_reaches(ticket, part->items[i]))
            continue;
        if (UNLIKELY(counted != 0))
            atomic_fetch_sub_explicit(&client->card.delivery_bytes, counted, memory_order_relaxed);
        if (conn_is_closing(&client->conn))
            continue;
        form_write(&form, &client->conn.output, client->proto);
        client_sent_unasked(client);
    }
    mem_free(form.head);
}

static void deliver(struct worker *worker, struct delivery *delivery)
{
    struct copy *copy = container_of(delivery, struct copy, delivery);
    struct publication *publication = copy->publication;
    const uint64_t counted = UNLIKELY(copy->is_counted) ? counted_bytes(publication) : 0;

    worker_assert_self(worker);
    if (publication->channel.topic != NULL)
        deliver_to_topic(worker, &publication->channel, publication->body, counted);
    for (uint32_t i = 0; i < publication->ticket_count; i++)
        deliver_to_topic(worker, &publication->tickets[i], publication->body, counted);
    publication_release(&copy->publication);
    mem_free(copy);
}

const struct lifecycle pubsub_lifecycle = {
    .client_withdraw = pubsub_leave,
};
