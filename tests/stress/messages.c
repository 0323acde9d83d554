/* Messages: clients on all workers subscribe and unsubscribe at random - channels, patterns, sharded channels - and
 * publish numbered messages meanwhile. Every client records its messages, and in the end, when all have arrived:
 *
 *  1. Nothing was lost and nothing came twice: a message arrived as often as PUBLISH replied.
 *  2. One order for each channel: pairs of subsequent messages at all clients are edges of a graph without cycles.
 *  3. Each client gets the messages of one publisher in their order, whatever the channels.
 *
 * Integration tests cover subscribers that do not read. */
#include "conn.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLIENTS = 8,
    CHANNELS = 4,
    SHARDS = 2,
    NAMES = CHANNELS + SHARDS, /* c0 ... c3, and sharded s0, s1 */
    PATTERNS = 3,
    BATCH_MOST = 8,
    SENT_MOST = 1 << 20 /* messages of one client */
};

static const char *const patterns[PATTERNS] = {"c*", "c[01]", "?3"};

struct message {
    uint32_t said;          /* the reply of PUBLISH */
    _Atomic uint32_t heard; /* how often */
    unsigned char name;     /* of its channel */
};

/* The messages of one client, in order. */
struct heard {
    uint32_t *messages;
    size_t count, room;
};

struct messages {
    int port;
    uint64_t seed, end_ns;
    struct message *sent[CLIENTS];
    uint32_t sent_count[CLIENTS];
    struct heard heard[CLIENTS];
    _Atomic unsigned busy; /* clients that publish still */
    _Atomic uint64_t changes;
};

static uint32_t message_make(unsigned client, uint32_t serial)
{
    return client * SENT_MOST + serial;
}

static struct message *message_of(struct messages *messages, uint32_t number)
{
    return &messages->sent[number / SENT_MOST][number % SENT_MOST];
}

/* --- a client --- */

struct client {
    struct messages *all;
    unsigned index;
    struct conn conn;
    struct chance chance;
    uint32_t asked[BATCH_MOST];       /* the messages of this batch, in order */
    unsigned asked_count, told_count; /* told: numbers of receivers that have come */
    unsigned answers_left;            /* to SUBSCRIBE and similar commands */
};

static void hear(struct client *client, struct raw push)
{
    struct heard *heard = &client->all->heard[client->index];
    size_t last = raw_says(raw_child(push, 0), "pmessage") ? 3 : 2;
    int64_t number = raw_number(raw_child(push, last));

    if (number < 0 || number >= (int64_t)CLIENTS * SENT_MOST) {
        complain("messages: one that nobody sent");
        return;
    }
    if (heard->count == heard->room) {
        heard->room = heard->room * 2 + 1024;
        heard->messages = realloc(heard->messages, heard->room * sizeof(uint32_t));
    }
    heard->messages[heard->count++] = (uint32_t)number;
    atomic_fetch_add(&message_of(client->all, (uint32_t)number)->heard, 1);
}

/* A reply or a push. True: the PING of the end was answered. */
static bool take(struct client *client, struct raw raw)
{
    struct raw kind;

    if (raw.data[0] == '+')
        return true;
    if (raw.data[0] == ':') {
        if (client->told_count == client->asked_count)
            die("messages: a reply too many");
        message_of(client->all, client->asked[client->told_count++])->said = (uint32_t)raw_number(raw);
        return false;
    }
    if (raw.data[0] != '>')
        die("messages: an unexpected reply");
    kind = raw_child(raw, 0);
    if (raw_says(kind, "message") || raw_says(kind, "pmessage") || raw_says(kind, "smessage"))
        hear(client, raw);
    else
        client->answers_left--;
    return false;
}

static void publish(struct client *client)
{
    struct messages *all = client->all;
    uint32_t serial = all->sent_count[client->index]++;
    uint32_t number = message_make(client->index, serial);
    unsigned name = chance_below(&client->chance, NAMES);

    if (serial >= SENT_MOST)
        die("messages: out of numbers");
    all->sent[client->index][serial].name = (unsigned char)name;
    client->asked[client->asked_count++] = number;
    if (name < CHANNELS)
        conn_add(&client->conn, "PUBLISH c%u %u", name, number);
    else
        conn_add(&client->conn, "SPUBLISH s%u %u", name - CHANNELS, number);
}

static void change(struct client *client)
{
    const char *prefix = chance_below(&client->chance, 2) == 0 ? "" : "UN";
    uint32_t kind = chance_below(&client->chance, 4);

    client->answers_left++;
    atomic_fetch_add_explicit(&client->all->changes, 1, memory_order_relaxed);
    if (kind < 2)
        conn_add(&client->conn, "%sSUBSCRIBE c%u", prefix, chance_below(&client->chance, CHANNELS));
    else if (kind == 2)
        conn_add(&client->conn, "P%sSUBSCRIBE %s", prefix, patterns[chance_below(&client->chance, PATTERNS)]);
    else
        conn_add(&client->conn, "S%sSUBSCRIBE s%u", prefix, chance_below(&client->chance, SHARDS));
}

static void read_until_done(struct client *client, bool also_ping)
{
    bool is_over = !also_ping;
    struct raw raw;

    while (client->told_count < client->asked_count || client->answers_left != 0 || !is_over) {
        if (conn_read(&client->conn, &raw, reply_limit_seconds) != GOT_REPLY)
            die("messages: a client got no reply");
        is_over = take(client, raw) || is_over;
    }
}

static void act(void *context, unsigned index)
{
    struct messages *all = context;
    struct client client = {.all = all, .index = index, .chance = chance_make(all->seed, 700 + index)};

    conn_start(&client.conn, all->port, 0);
    conn_ask(&client.conn, "HELLO 3");
    while (now_ns() < all->end_ns && all->sent_count[index] < SENT_MOST - BATCH_MOST) {
        uint32_t count = 1 + chance_below(&client.chance, BATCH_MOST);

        client.asked_count = client.told_count = 0;
        while (count-- != 0) {
            if (chance_below(&client.chance, 3) == 0)
                change(&client);
            else
                publish(&client);
        }
        if (!conn_send(&client.conn))
            die("messages: a client was cut off");
        read_until_done(&client, false);
    }
    atomic_fetch_sub(&all->busy, 1);
    while (atomic_load(&all->busy) != 0)
        sleep_ms(1);
    /* All that was ever sent is on its way to us: it comes before the answer to this. */
    conn_add(&client.conn, "PING");
    if (!conn_send(&client.conn))
        die("messages: a client was cut off");
    read_until_done(&client, true);
    conn_close(&client.conn);
}

/* --- the end --- */

static uint64_t count_wrong(struct messages *all, uint64_t *sent, uint64_t *heard)
{
    uint64_t wrong = 0;

    for (unsigned client = 0; client < CLIENTS; client++) {
        for (uint32_t serial = 0; serial < all->sent_count[client]; serial++) {
            struct message *message = &all->sent[client][serial];
            uint32_t times = atomic_load(&message->heard);

            *sent += 1;
            *heard += times;
            if (times == message->said)
                continue;
            if (wrong++ < 5)
                complain("messages: number %u of client %u was heard by %u, not by %u", serial, client, times,
                         message->said);
        }
    }
    return wrong;
}

static bool is_in_order_of_senders(const struct heard *heard)
{
    uint32_t last[CLIENTS] = {0};

    for (size_t i = 0; i < heard->count; i++) {
        uint32_t sender = heard->messages[i] / SENT_MOST, serial = heard->messages[i] % SENT_MOST;

        if (serial < last[sender])
            return false;
        last[sender] = serial;
    }
    return true;
}

struct edge {
    uint32_t from, to;
};

static int by_from(const void *a, const void *b)
{
    const struct edge *one = a, *two = b;

    return one->from != two->from ? (one->from < two->from ? -1 : 1) : (one->to > two->to) - (one->to < two->to);
}

/* The edges of one channel, all clients'. A message that came through several subscriptions stands there once. */
static size_t collect(struct messages *all, unsigned name, struct edge *edges)
{
    size_t count = 0;

    for (unsigned client = 0; client < CLIENTS; client++) {
        uint32_t before = UINT32_MAX;

        for (size_t i = 0; i < all->heard[client].count; i++) {
            uint32_t number = all->heard[client].messages[i];

            if (message_of(all, number)->name != name || number == before)
                continue;
            if (before != UINT32_MAX)
                edges[count++] = (struct edge){before, number};
            before = number;
        }
    }
    qsort(edges, count, sizeof(*edges), by_from);
    return count;
}

/* Removes messages without a predecessor, again and again: the remaining ones are in a cycle, or behind one. */
static bool has_one_order(const struct edge *edges, size_t count, uint32_t *before, uint32_t *ready)
{
    size_t ready_count = 0, left = count;

    memset(before, 0, (size_t)CLIENTS * SENT_MOST * sizeof(*before));
    for (size_t i = 0; i < count; i++)
        before[edges[i].to]++;
    for (size_t i = 0; i < count; i++) {
        if (before[edges[i].from] == 0 && (i == 0 || edges[i - 1].from != edges[i].from))
            ready[ready_count++] = edges[i].from;
    }
    while (ready_count != 0) {
        struct edge key = {ready[--ready_count], 0};
        size_t low = 0, high = count;

        while (low < high) {
            size_t middle = (low + high) / 2;

            if (by_from(&edges[middle], &key) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        for (; low < count && edges[low].from == key.from; low++) {
            left--;
            if (--before[edges[low].to] == 0)
                ready[ready_count++] = edges[low].to;
        }
    }
    return left == 0;
}

static unsigned count_orderly(struct messages *all)
{
    size_t most = 1;
    unsigned orderly = 0;
    struct edge *edges;
    uint32_t *before = malloc((size_t)CLIENTS * SENT_MOST * sizeof(*before));
    uint32_t *ready = malloc((size_t)CLIENTS * SENT_MOST * sizeof(*ready));

    for (unsigned client = 0; client < CLIENTS; client++)
        most += all->heard[client].count;
    edges = malloc(most * sizeof(*edges));
    for (unsigned name = 0; name < NAMES; name++)
        orderly += has_one_order(edges, collect(all, name, edges), before, ready);
    free(edges);
    free(before);
    free(ready);
    return orderly;
}

void part_messages(const struct options *options, double seconds)
{
    struct messages all = {.seed = options->seed};
    struct server server;
    struct conn conn;
    uint64_t sent = 0, heard = 0, wrong;
    unsigned in_order = 0;

    server_start(&server, options, options->server_threads);
    all.port = server.port;
    all.end_ns = now_ns() + (uint64_t)(seconds * 1e9);
    atomic_store(&all.busy, CLIENTS);
    for (unsigned i = 0; i < CLIENTS; i++)
        all.sent[i] = calloc(SENT_MOST, sizeof(struct message));
    threads_run(CLIENTS, act, &all);
    wrong = count_wrong(&all, &sent, &heard);
    for (unsigned i = 0; i < CLIENTS; i++)
        in_order += is_in_order_of_senders(&all.heard[i]);
    check(complaints() == 0 && wrong == 0, "messages: %llu sent, heard %llu times as PUBLISH said, %llu changes",
          (unsigned long long)sent, (unsigned long long)heard, (unsigned long long)atomic_load(&all.changes));
    check(heard > sent / 2, "messages: most were heard by somebody");
    check(in_order == CLIENTS, "messages: each hears what one sends in its order");
    check(count_orderly(&all) == NAMES, "messages: all hear each channel in one order");
    conn_start(&conn, server.port, 0);
    check(raw_number(conn_ask(&conn, "PUBSUB NUMPAT")) == 0 && raw_number(conn_ask(&conn, "PUBSUB CHANNELS")) == 0,
          "messages: nobody is left in a registry");
    conn_close(&conn);
    for (unsigned i = 0; i < CLIENTS; i++) {
        free(all.sent[i]);
        free(all.heard[i].messages);
    }
    server_stop(&server, "messages");
}
