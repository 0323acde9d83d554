#include "server/core/admission.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/random.h"
#include "server/config/options.h"
#include "server/core/client.h"
#include "server/core/server.h"
#include "server/core/worker.h"

#include <netinet/in.h>
#include <sys/resource.h>

bool admission_is_local(const struct sockaddr_storage *peer)
{
    if (peer->ss_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)(const void *)peer)->sin_addr.s_addr) >> 24) == 127;
    if (peer->ss_family == AF_INET6) {
        const struct in6_addr *address = &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;

        return IN6_IS_ADDR_LOOPBACK(address) || (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
    }
    return true;
}

uint64_t admission_limit(uint64_t most, uint64_t reserved, bool is_local)
{
    return is_local ? most : most - MIN(most, reserved);
}

/* ----------------------------------------------------------------------------------------------------- overload -- */

static bool is_too_much(uint64_t cpu_us, int64_t span_us, uint64_t percent, unsigned threads)
{
    return cpu_us * 100 > (uint64_t)span_us * percent * threads;
}

bool overload_look(struct overload *overload, uint64_t percent, unsigned threads, int64_t now_us, uint64_t cpu_us)
{
    bool was_over = overload->is_over, has_begun = false, is_closing;

    if (percent == 0 || overload->span_began_us == 0) {
        overload->span_began_us = overload->looked_us = percent == 0 ? 0 : now_us;
        overload->span_cpu_us = overload->looked_cpu_us = cpu_us;
        overload->is_over = false;
        atomic_store_explicit(&overload->is_closing, false, memory_order_relaxed);
        return false;
    }
    if (now_us - overload->span_began_us >= OVERLOAD_SPAN_US) {
        overload->is_over = is_too_much(cpu_us - overload->span_cpu_us, now_us - overload->span_began_us, percent,
                                        threads);
        has_begun = overload->is_over && !was_over;
        overload->span_began_us = now_us;
        overload->span_cpu_us = cpu_us;
    }
    is_closing = overload->is_over &&
                 is_too_much(cpu_us - overload->looked_cpu_us, now_us - overload->looked_us, percent, threads);
    overload->looked_us = now_us;
    overload->looked_cpu_us = cpu_us;
    atomic_store_explicit(&overload->is_closing, is_closing, memory_order_relaxed);
    return has_begun;
}

static uint64_t process_cpu_us(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return 0;
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static bool is_ordinary(const struct client *client)
{
    return (client->flags & (CLIENT_BLOCKED | CLIENT_MONITOR | CLIENT_NO_EVICT)) == 0 && client->parked == NULL &&
           conn_output_size(&client->conn) == 0 && !conn_is_closing(&client->conn);
}

static void close_share(struct worker *worker)
{
    uint64_t count = atomic_load_explicit(&worker->stats.client_count, memory_order_relaxed);
    uint64_t most = MAX(OVERLOAD_CLOSES / worker->server->worker_count, 1U), closed = 0;
    uint64_t one_in = MAX(10U, count / most);

    LIST_FOREACH(node, &worker->clients) {
        struct client *client = container_of(node, struct client, node);

        if (closed == most)
            break;
        if (!is_ordinary(client) || random_below(random_thread(), one_in) != 0)
            continue;
        log_verbose("Closing client id=%llu addr=%s: overload", (unsigned long long)client->id, client->card.address);
        conn_close(&client->conn);
        closed++;
    }
    atomic_fetch_add_explicit(&worker->server->overload.closed, closed, memory_order_relaxed);
}

static void look(struct server *server)
{
    struct overload *overload = &server->overload;
    uint64_t percent = OPTION_GET_U64(option_overload_protect_percent), closed;
    bool was_over = overload->is_over;

    worker_assert_zero(&server->workers[0]);
    if (percent == 0 && overload->span_began_us == 0)
        return;
    if (overload_look(overload, percent, server->worker_count, (int64_t)clock_monotonic_us(), process_cpu_us()))
        log_warning("Overload: the threads used more than overload-protect-percent (%llu %%) of their processors in "
                    "the last 10 seconds. Disconnecting clients.",
                    (unsigned long long)percent);
    if (was_over && !overload->is_over) {
        closed = atomic_exchange_explicit(&overload->closed, 0, memory_order_relaxed);
        log_notice("Overload ended: %llu clients were disconnected.", (unsigned long long)closed);
    }
}

void overload_tick(struct worker *worker)
{
    worker_assert_self(worker);
    if (worker->index == 0)
        look(worker->server);
    if (UNLIKELY(atomic_load_explicit(&worker->server->overload.is_closing, memory_order_relaxed)))
        close_share(worker);
}
