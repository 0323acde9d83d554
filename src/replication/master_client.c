#include "replication/master_client.h"

#include "base/clock.h"
#include "base/spinlock.h"
#include "base/thread.h"
#include "net/conn.h"
#include "server/core/client.h"
#include "server/core/server.h"
#include "server/core/stats.h"

#include <stdatomic.h>
#include <string.h>

static struct {
    struct spinlock lock;         /* rank LOCK_REGISTRY */
    uint64_t id GUARDED_BY(lock); /* 0: the link is not up */
    int64_t created_us GUARDED_BY(lock);
    int fd GUARDED_BY(lock);
    char address[CONN_ADDRESS_TEXT_BYTES] GUARDED_BY(lock), local_address[CONN_ADDRESS_TEXT_BYTES] GUARDED_BY(lock);
    _Atomic uint64_t bytes_in, bytes_out; /* atomic: relaxed, as all fields below */
    _Atomic uint64_t query_bytes;
    _Atomic int64_t active_ms;
    _Atomic uint32_t db;
} shown = {.lock = {.rank = LOCK_REGISTRY}};

#define SHOW(field, value) atomic_store_explicit(&shown.field, (value), memory_order_relaxed)
#define SHOWN(field) atomic_load_explicit(&shown.field, memory_order_relaxed)

void master_client_begin(struct worker *worker, const struct conn *conn)
{
    char address[CONN_ADDRESS_TEXT_BYTES], local_address[CONN_ADDRESS_TEXT_BYTES];

    worker_assert_zero(worker);
    (void)conn_peer_text(conn, address);
    (void)conn_local_text(conn, local_address);
    master_client_note(conn, 0);
    spinlock_acquire(&shown.lock);
    shown.id = atomic_fetch_add_explicit(&worker->server->next_client_id, 1, memory_order_relaxed) + 1;
    shown.created_us = (int64_t)clock_monotonic_us();
    shown.fd = conn->fd;
    memcpy(shown.address, address, sizeof(address));
    memcpy(shown.local_address, local_address, sizeof(local_address));
    spinlock_release(&shown.lock);
}

void master_client_note(const struct conn *conn, unsigned db)
{
    SHOW(bytes_in, conn->bytes_in);
    SHOW(bytes_out, conn->bytes_out);
    SHOW(query_bytes, conn_kept_size(conn));
    SHOW(active_ms, clock_wall_ms());
    SHOW(db, db);
}

void master_client_end(void)
{
    spinlock_acquire(&shown.lock);
    shown.id = 0;
    spinlock_release(&shown.lock);
}

void master_client_visit(void (*visit)(const struct client_card *card, void *context), void *context)
{
    char address[CONN_ADDRESS_TEXT_BYTES], local_address[CONN_ADDRESS_TEXT_BYTES];
    struct client_card card = {.address = address, .local_address = local_address, .user_name = "(superuser)"};

    spinlock_acquire(&shown.lock);
    card.id = shown.id;
    card.created_us = shown.created_us;
    card.fd = shown.fd;
    memcpy(address, shown.address, sizeof(address));
    memcpy(local_address, shown.local_address, sizeof(local_address));
    spinlock_release(&shown.lock);
    if (card.id == 0)
        return;
    atomic_init(&card.flags, CLIENT_MASTER);
    atomic_init(&card.proto, 2);
    atomic_init(&card.command_id, UINT32_MAX);
    atomic_init(&card.queued_count, -1);
    atomic_init(&card.redirect, -1);
    atomic_init(&card.db, SHOWN(db));
    atomic_init(&card.active_ms, SHOWN(active_ms));
    atomic_init(&card.query_bytes, SHOWN(query_bytes));
    atomic_init(&card.query_capacity, SHOWN(query_bytes));
    atomic_init(&card.bytes_in, SHOWN(bytes_in));
    atomic_init(&card.bytes_out, SHOWN(bytes_out));
    visit(&card, context);
}

static void count(const struct client_card *card, void *context)
{
    struct server_stats *stats = context;

    (void)card;
    stats->connected_clients++;
}

static void fill(struct server_stats *stats)
{
    master_client_visit(count, stats);
}

void master_client_setup(void)
{
    thread_assert_main();
    server_stats_add_source(fill);
}
