#include "server/pubsub/monitor.h"

#include "base/assert.h"
#include "base/blob.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/words.h"
#include "server/core/client.h"
#include "server/core/deliveries.h"
#include "server/core/lifecycle.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/observe/timing.h"
#include "server/pubsub/telling.h"

#include <string.h>

_Atomic uint32_t monitor_count; /* global: see monitor.h */

struct lines_delivery {
    struct delivery delivery;
    struct blob *lines;
};

/* A worker's; its own thread's. */
static struct state {
    struct list clients;           /* monitors */
    _Atomic uint32_t client_count; /* atomic: relaxed; number of its monitors; others read it */
    struct buffer lines;           /* lines of the current commands for monitors */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

static struct state *of(const struct worker *worker)
{
    assert(worker->index <= WORKERS_MOST);
    return &states[worker->index];
}

static void note(const struct request *request)
{
    const struct client *client = request->client;
    struct buffer *lines = &of(request->worker)->lines;
    const uint64_t now_us = (uint64_t)clock_wall_us();

    worker_assert_self(request->worker);
    buffer_printf(lines, "+%llu.%06u [%u %s]", (unsigned long long)(now_us / 1000000), (unsigned)(now_us % 1000000),
                  client->db, request->in_script ? "lua" : client->card.address);
    for (uint32_t i = 0; i < request->arg_count; i++) {
        buffer_append_char(lines, ' ');
        words_quote(lines, request_is_redacted(request, i) ? SLICE("(redacted)") : request->args[i]);
    }
    buffer_append_text(lines, "\r\n");
    telling_note(request->worker, lines->size);
}

static void note_command(const struct request *request)
{
    if (monitor_is_on() && (request->command->flags & (COMMAND_SKIP_MONITOR | COMMAND_ADMIN)) == 0)
        note(request);
}

void monitor_note_first(const struct request *request)
{
    worker_assert_self(request->worker);
    if (monitor_is_on())
        note(request);
}

static void show_lines(struct worker *worker, struct blob *lines)
{
    worker_assert_self(worker);
    LIST_FOREACH_SAFE(node, &of(worker)->clients) {
        struct client *client = container_of(node, struct client, monitor_node);

        assert((client->flags & CLIENT_MONITOR) != 0);
        if (conn_is_closing(&client->conn))
            continue;
        output_append_blob(&client->conn.output, lines, 0, lines->size);
        conn_write_pending(&client->conn);
        client_check_output(client);
        if (!conn_is_closing(&client->conn))
            client_update_card(client);
    }
}

static void deliver_lines(struct worker *worker, struct delivery *delivery)
{
    struct lines_delivery *mine = container_of(delivery, struct lines_delivery, delivery);

    show_lines(worker, mine->lines);
    blob_release(&mine->lines);
    mem_free(mine);
}

void monitor_tell_noted(struct worker *worker)
{
    struct server *server = worker->server;
    struct blob *lines;

    worker_assert_self(worker);
    if (LIKELY(of(worker)->lines.size == 0))
        return;
    lines = blob_create_copy(buffer_slice(&of(worker)->lines));
    buffer_fini(&of(worker)->lines);
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker *other = &server->workers[i];
        struct lines_delivery *mine;

        if (atomic_load_explicit(&of(other)->client_count, memory_order_relaxed) == 0)
            continue;
        mine = mem_alloc(sizeof(*mine));
        *mine = (struct lines_delivery){.delivery = {.deliver = deliver_lines}, .lines = blob_acquire(lines)};
        delivery_post(worker, other, &mine->delivery, lines->size);
    }
    blob_release(&lines);
}

void monitor_start(struct client *client)
{
    client_assert_owned(client);
    if ((client->flags & CLIENT_MONITOR) != 0)
        return;
    client->flags |= CLIENT_MONITOR;
    list_push_back(&of(client->worker)->clients, &client->monitor_node);
    atomic_fetch_add_explicit(&of(client->worker)->client_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&monitor_count, 1, memory_order_relaxed);
    timing_want_commands(1);
}

void monitor_stop(struct client *client)
{
    uint32_t before;

    client_assert_owned(client);
    if ((client->flags & CLIENT_MONITOR) == 0)
        return;
    client->flags &= ~(uint32_t)CLIENT_MONITOR;
    list_remove(&client->monitor_node);
    before = atomic_fetch_sub_explicit(&of(client->worker)->client_count, 1, memory_order_relaxed);
    assert(before != 0);
    before = atomic_fetch_sub_explicit(&monitor_count, 1, memory_order_relaxed);
    assert(before != 0);
    timing_want_commands(-1);
}

static bool start(struct server *server)
{
    gate_assert_main_alone();
    (void)server;
    timing_on_command(note_command);
    return true;
}

static void init(struct worker *worker)
{
    list_init(&of(worker)->clients);
    atomic_init(&of(worker)->client_count, 0);
}

static void fini(struct worker *worker)
{
    assert(list_is_empty(&of(worker)->clients));
    buffer_fini(&of(worker)->lines);
}

const struct lifecycle monitor_lifecycle = {
    .worker_init = init,
    .worker_fini = fini,
    .server_start = start,
    .client_withdraw = monitor_stop,
};
