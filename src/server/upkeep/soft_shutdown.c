#include "server/upkeep/soft_shutdown.h"

#include "base/log.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/core/client.h"
#include "server/core/server.h"
#include "server/upkeep/shutdown.h"
#include "server/upkeep/shutdown_wait.h"

static _Atomic int64_t option_soft_shutdown; /* global: option storage */

static const struct option_row rows[] = {
    ROW_BOOL("soft-shutdown", &option_soft_shutdown, 0, OPTION_MUTABLE,
             "A signal stops the server when all clients have left; new clients are refused."),
};

void soft_shutdown_setup(void)
{
    thread_assert_main();
    config_add_rows(rows, countof(rows));
}

bool soft_shutdown_is_wished(void)
{
    return OPTION_IS(option_soft_shutdown);
}

void soft_shutdown_begin(void)
{
    if (!atomic_exchange(&server_instance()->refuses_clients, true))
        log_warning("Soft shutdown: refusing new clients, waiting for connected clients to leave");
}

/* Monitors and clients inside a command do not delay it. */
static void count_staying(const struct client_card *card, void *context)
{
    uint32_t flags = atomic_load_explicit(&card->flags, memory_order_relaxed);

    *(unsigned *)context += (flags & (CLIENT_MONITOR | CLIENT_BLOCKED)) == 0;
}

static void look(struct server *server)
{
    unsigned staying = 0;

    if (!soft_shutdown_is_pending() || shutdown_waits() ||
        atomic_load_explicit(&server->stopping, memory_order_relaxed))
        return;
    server_each_client(server, count_staying, &staying);
    if (staying == 0 && !shutdown_is_put_off(0)) {
        log_warning("Soft shutdown: all clients have left");
        if (!shutdown_by_itself(&server->workers[0], 0))
            log_warning("Soft shutdown: trying again");
    }
}

const struct lifecycle soft_shutdown_lifecycle = {.server_sample = look};
