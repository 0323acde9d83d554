#include "server/memory/client_limit.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/gate.h"
#include "base/log.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/core/client.h"
#include "server/core/deliveries.h"
#include "server/core/server.h"
#include "server/core/stats_info.h"

#include <stdlib.h>

static _Atomic int64_t option_maxmemory_clients; /* global: option storage */

/* A worker's; its own thread's. */
static struct state {
    _Atomic uint64_t clients_bytes; /* atomic, relaxed: memory of its clients, while there is a limit */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

static struct state *of(const struct worker *worker)
{
    return &states[worker->index];
}

/* 0: no limit. */
static uint64_t limit_bytes(void)
{
    int64_t value = OPTION_GET(option_maxmemory_clients);

    if (value >= 0)
        return (uint64_t)value;
    return OPTION_GET_U64(option_maxmemory) / 100 * (uint64_t)-value;
}

static void evict(struct worker *worker, uint64_t limit);

static const char *apply(const struct option_row *row)
{
    struct worker *worker = worker_self();

    gate_assert_alone();
    (void)row;
    atomic_store_explicit(&client_sizes_matter, OPTION_GET(option_maxmemory_clients) != 0, memory_order_relaxed);
    if (worker != NULL && limit_bytes() != 0)
        evict(worker, limit_bytes());
    return NULL;
}

static const struct option_row rows[] = {
    ROW_PERCENT_OR_MEMORY("maxmemory-clients", &option_maxmemory_clients, 0, -100, INT64_MAX, OPTION_MUTABLE,
                          "Limit of the memory of all clients, in bytes or percent of maxmemory; 0: none.",
                          .apply = apply),
};

void client_limit_setup(void)
{
    gate_assert_main_alone();
    config_add_rows(rows, countof(rows));
}

static bool start(struct server *server)
{
    gate_assert_main_alone();
    (void)server;
    (void)apply(NULL);
    return true;
}

/* -------------------------------------------------------------------------------------------- clients to disconnect
 * -- */

struct weight {
    uint64_t id, bytes;
};

struct weights {
    struct weight *items;
    size_t count, capacity;
    uint64_t total;
};

static bool may_go(const struct client_card *card)
{
    return (atomic_load_explicit(&card->flags, memory_order_relaxed) & (CLIENT_NO_EVICT | CLIENT_REPLICA)) == 0 &&
           (atomic_load_explicit(&card->requests, memory_order_relaxed) & CLIENT_REQUEST_KILL) == 0;
}

static void weigh(const struct client_card *card, void *context)
{
    struct weights *weights = context;
    struct weight weight = {card->id, client_card_memory_bytes(card)};

    if (!may_go(card))
        return;
    *ARRAY_PUSH(weights) = weight;
    weights->total += weight.bytes;
}

static int heavier_first(const void *a, const void *b)
{
    uint64_t first = ((const struct weight *)a)->bytes, second = ((const struct weight *)b)->bytes;

    return (first < second) - (first > second);
}

struct victim {
    uint64_t id;
    struct buffer line; /* for the log, which is no matter for under a lock */
};

static bool is_victim(struct client_card *card, void *context)
{
    struct victim *victim = context;

    if (card->id != victim->id || !may_go(card))
        return false;
    client_card_print(card, &victim->line);
    return true;
}

static void evict(struct worker *worker, uint64_t limit)
{
    struct weights weights = {0};

    worker_assert_self(worker);
    server_each_client(worker->server, weigh, &weights);
    if (weights.total > limit)
        qsort(weights.items, weights.count, sizeof(struct weight), heavier_first);
    for (size_t i = 0; i < weights.count && weights.total > limit; i++) {
        struct victim victim = {.id = weights.items[i].id};

        assert(weights.total >= weights.items[i].bytes);
        weights.total -= weights.items[i].bytes;
        if (server_request_clients(worker, CLIENT_REQUEST_KILL, is_victim, &victim, NULL) != 0) {
            counter_add(&worker->stats.evicted_clients, 1);
            log_notice("Evicting client: %s", buffer_text(&victim.line));
        }
        buffer_fini(&victim.line);
    }
    deliveries_flush(worker); /* perhaps between two turns */
    ARRAY_FINI(&weights);
}

/* --------------------------------------------------------------------------------------------------- the sums -- */

static void count(struct client *client, uint64_t bytes)
{
    /* It may be less than before: then it wraps. */
    counter_add(&of(client->worker)->clients_bytes, bytes - client->counted_bytes);
    assert((int64_t)atomic_load_explicit(&of(client->worker)->clients_bytes, memory_order_relaxed) >= 0);
    client->counted_bytes = bytes;
}

static void note_size(struct client *client)
{
    const struct server *server = client->worker->server;
    uint64_t limit = limit_bytes(), total = 0;

    client_assert_owned(client);
    count(client, (client->flags & CLIENT_NO_EVICT) == 0 ? client_card_memory_bytes(&client->card) : 0);
    if (limit == 0)
        return;
    for (unsigned i = 0; i < server->worker_count; i++)
        total += atomic_load_explicit(&of(&server->workers[i])->clients_bytes, memory_order_relaxed);
    if (total > limit)
        evict(client->worker, limit);
}

static void leave(struct client *client)
{
    client_assert_owned(client);
    count(client, 0);
}

static void init(struct worker *worker)
{
    atomic_init(&of(worker)->clients_bytes, 0);
}

const struct lifecycle client_limit_lifecycle = {
    .worker_init = init,
    .server_start = start,
    .client_sized = note_size,
    .client_close = leave,
};

const struct info_row client_limit_info[] = {
    INFO_STAT("evicted_clients", evicted_clients, INFO_SAFE),
    {0},
};
