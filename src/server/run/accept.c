#include "server/run/accept.h"

#include "base/log.h"
#include "server/acl/acl.h"
#include "server/config/options.h"
#include "server/core/admission.h"
#include "server/core/client.h"
#include "server/core/server.h"
#include "server/run/placement.h"

#include <unistd.h>

static const char going_down[] = "-SHUTDOWN"; /* nothing behind it, not even the end of the line: as KeyDB */
static const char too_many_clients[] = "-ERR max number of clients reached\r\n";
static const char protected_mode[] =
    "-DENIED KeyDB is running in protected mode because protected mode is enabled and no password is set for the "
    "default user. In this mode connections are only accepted from the loopback interface. If you want to connect from "
    "external computers to KeyDB you may adopt one of the following solutions: 1) Just disable protected mode sending "
    "the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to KeyDB from the same host "
    "the server is running, however MAKE SURE KeyDB is not publicly accessible from internet if you do so. Use CONFIG "
    "REWRITE to make this change permanent. 2) Alternatively you can just disable the protected mode by editing the "
    "KeyDB configuration file, and setting the protected mode option to 'no', and then restarting the server. 3) If "
    "you started the server manually just for testing, restart it with the '--protected-mode no' option. 4) Set up an "
    "authentication password for the default user. NOTE: You only need to do one of the above things in order for the "
    "server to start accepting connections from the outside.\r\n";

static const struct slice protected_text = {protected_mode, sizeof(protected_mode) - 1};

/* Protected mode: clients from elsewhere are sent the text and closed, until there is a password. */
static bool is_protected(void)
{
    return OPTION_IS(option_protected_mode) && atomic_load_explicit(&acl_default_is_nopass, memory_order_relaxed);
}

static void reject(struct worker *worker, int fd, enum listener_kind kind, const char *text, size_t size)
{
    /* A fresh socket takes these few bytes at once; over TLS there is nobody yet who could read them. */
    if (kind == LISTENER_TLS) {
        close(fd);
    } else {
        if (write(fd, text, size) < 0)
            log_debug("Can't reply to a refused client");
        loop_linger(worker->loop, fd);
    }
    counter_add(&worker->stats.rejected_connections, 1);
}

/* Counts one more connection, unless the maximum is reached: refused connections do not count. */
static bool take_place(struct server *server, bool is_local)
{
    uint64_t limit = admission_limit(OPTION_GET_U64(option_maxclients), OPTION_GET_U64(option_maxclients_reserved),
                                     is_local);
    uint64_t count = atomic_load_explicit(&server->client_count, memory_order_relaxed);

    do {
        if (count >= limit)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&server->client_count, &count, count + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

void accept_connection(struct loop *loop, int fd, const struct sockaddr_storage *peer, socklen_t peer_size,
                       enum listener_kind kind, void *user)
{
    struct worker *worker = user;
    struct server *server = worker->server;
    bool is_local = kind == LISTENER_UNIX || admission_is_local(peer);

    (void)peer_size;
    worker_assert_self(worker);
    assert(loop == worker->loop);
    if (atomic_load_explicit(&server->refuses_clients, memory_order_relaxed)) {
        reject(worker, fd, kind, going_down, sizeof(going_down) - 1);
        return;
    }
    if (!take_place(server, is_local)) {
        reject(worker, fd, kind, too_many_clients, sizeof(too_many_clients) - 1);
        return;
    }
    if (kind != LISTENER_TLS && !is_local && is_protected()) { /* TLS: when somebody can read it */
        atomic_fetch_sub_explicit(&server->client_count, 1, memory_order_relaxed);
        reject(worker, fd, kind, protected_text.data, protected_text.size);
        return;
    }
    placement_give(worker, fd, kind);
}

/* ---------------------------------------------------------------------------------------------- TLS connections -- */

static bool is_from_here(const struct client *client)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof(peer);

    return getpeername(client->conn.fd, (struct sockaddr *)&peer, &size) == 0 && admission_is_local(&peer);
}

/* Now it can read why it is refused. */
static bool admit(struct client *client)
{
    if (!is_protected() || is_from_here(client))
        return true;
    counter_add(&client->worker->stats.rejected_connections, 1);
    output_append(&client->conn.output, protected_text.data, protected_text.size);
    conn_close_after_flush(&client->conn);
    return false;
}

const struct lifecycle accept_lifecycle = {.client_admit = admit};
