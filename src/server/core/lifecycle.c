#include "server/core/lifecycle.h"

#include "base/assert.h"
#include "base/thread.h"
#include "server/core/client.h"
#include "server/core/server.h"
#include "server/core/worker.h"

#include <stddef.h>

enum { PARTS_MOST = 64 };

_Atomic bool lifecycle_every_turn; /* global: see lifecycle.h */

/* The hooks of one event, from the parts that have one: many events are frequent, and most parts have few hooks. */
struct server_hooks {
    void (*items[PARTS_MOST])(struct server *server);
    size_t count;
};
struct worker_hooks {
    void (*items[PARTS_MOST])(struct worker *worker);
    size_t count;
};
struct client_hooks {
    void (*items[PARTS_MOST])(struct client *client);
    size_t count;
};

/* const while there are workers */
static struct {
    const struct lifecycle *parts[PARTS_MOST];
    size_t part_count;
    struct server_hooks server_begin, server_end, server_sample;
    struct worker_hooks worker_init, worker_fini, worker_start, worker_stop, worker_wake, worker_turn_end,
        worker_inner_turn, worker_inner_begin, worker_second;
    struct client_hooks client_open, client_sized, client_drained, client_kill, client_withdraw, client_close;
} all;

#define ADD(event)                                            \
    do {                                                      \
        if (part->event != NULL)                              \
            all.event.items[all.event.count++] = part->event; \
    } while (0)

void lifecycle_add(const struct lifecycle *part)
{
    thread_assert_main();
    assert(all.part_count < PARTS_MOST);
    for (size_t i = 0; i < all.part_count; i++)
        assert(all.parts[i] != part);
    all.parts[all.part_count++] = part;
    ADD(server_begin);
    ADD(server_end);
    ADD(server_sample);
    ADD(worker_init);
    ADD(worker_fini);
    ADD(worker_start);
    ADD(worker_stop);
    ADD(worker_wake);
    ADD(worker_turn_end);
    ADD(worker_inner_turn);
    ADD(worker_inner_begin);
    ADD(worker_second);
    ADD(client_open);
    ADD(client_sized);
    ADD(client_drained);
    ADD(client_kill);
    ADD(client_withdraw);
    ADD(client_close);
}

bool lifecycle_server_start(struct server *server)
{
    thread_assert_main();
    for (size_t i = 0; i < all.part_count; i++) {
        if (all.parts[i]->server_start != NULL && !all.parts[i]->server_start(server))
            return false;
    }
    return true;
}

bool lifecycle_worker_deferred(struct worker *worker)
{
    bool more = false;

    worker_assert_outside(worker);
    for (size_t i = 0; i < all.part_count; i++) {
        if (all.parts[i]->worker_deferred != NULL && all.parts[i]->worker_deferred(worker))
            more = true;
    }
    return more;
}

bool lifecycle_client_admit(struct client *client)
{
    client_assert_owned(client);
    for (size_t i = 0; i < all.part_count; i++) {
        if (all.parts[i]->client_admit != NULL && !all.parts[i]->client_admit(client))
            return false;
    }
    return true;
}

#define CALL_IN_ORDER(subject, event, assert_door)   \
    void lifecycle_##event(struct subject *subject)  \
    {                                                \
        assert_door(subject);                        \
        for (size_t i = 0; i < all.event.count; i++) \
            all.event.items[i](subject);             \
    }
#define CALL_IN_REVERSE(subject, event, assert_door) \
    void lifecycle_##event(struct subject *subject)  \
    {                                                \
        assert_door(subject);                        \
        for (size_t i = all.event.count; i-- > 0;)   \
            all.event.items[i](subject);             \
    }

/* The threads that lifecycle.h names: asserted here for the hooks of all parts. */
static void server_assert_main(const struct server *server)
{
    (void)server;
    thread_assert_main();
}

static void server_assert_zero(const struct server *server)
{
    worker_assert_zero(&server->workers[0]);
}

static void worker_assert_reentrant(const struct worker *worker)
{
    worker_assert_self(worker);
    assert(worker->reentrant);
}

CALL_IN_ORDER(server, server_begin, server_assert_main)
CALL_IN_REVERSE(server, server_end, server_assert_main)
CALL_IN_ORDER(server, server_sample, server_assert_zero)
CALL_IN_ORDER(worker, worker_init, worker_assert_self)
CALL_IN_REVERSE(worker, worker_fini, worker_assert_self)
CALL_IN_ORDER(worker, worker_start, worker_assert_self)
CALL_IN_ORDER(worker, worker_stop, worker_assert_self)
CALL_IN_ORDER(worker, worker_wake, worker_assert_outside)
CALL_IN_ORDER(worker, worker_turn_end, worker_assert_outside)
CALL_IN_ORDER(worker, worker_inner_turn, worker_assert_reentrant)
CALL_IN_ORDER(worker, worker_inner_begin, worker_assert_reentrant)
CALL_IN_ORDER(worker, worker_second, worker_assert_self)
CALL_IN_ORDER(client, client_open, client_assert_owned)
CALL_IN_ORDER(client, client_sized, client_assert_owned)
CALL_IN_ORDER(client, client_drained, client_assert_owned)
CALL_IN_ORDER(client, client_kill, client_assert_owned)
CALL_IN_ORDER(client, client_withdraw, client_assert_owned)
CALL_IN_REVERSE(client, client_close, client_assert_owned)
