/* Which sockets are listened on, and how CONFIG SET moves them. */
#include "server/run/listeners.h"

#include "base/buffer.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/config/options_process.h"
#include "server/core/lifecycle.h"
#include "server/core/server.h"
#include "server/run/accept.h"
#include "server/tls/certificates.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LISTENERS_MOST = 3, START_PATIENCE_MS = 250 };

/* By enum listener_kind; changed at the gate. */
static struct listener_group *listeners[LISTENERS_MOST];
static char *wishes_in_use[LISTENERS_MOST]; /* port and addresses they were opened for */
static bool workers_run;                    /* const while they do: then listeners replace others */

static int64_t port_of(enum listener_kind kind)
{
    return kind == LISTENER_TLS ? OPTION_GET(option_tls_port) : OPTION_GET(option_port);
}

/* unixsocketgroup: a name or a number. */
static bool set_socket_group(char *error)
{
    const char *name = option_unixsocketgroup.data;
    const struct group *entry = name != NULL ? getgrnam(name) : NULL;
    int64_t number;

    if (name == NULL)
        return true;
    if (entry != NULL) {
        number = entry->gr_gid;
    } else if (!number_parse_i64(slice_from_text(name), &number) || number < 0 || number > UINT32_MAX) {
        snprintf(error, LISTENER_ERROR_BYTES, "Failed opening Unix socket: unknown group '%.64s'", name);
        return false;
    }
    if (chown(option_unixsocket.data, (uid_t)-1, (gid_t)number) == 0)
        return true;
    snprintf(error, LISTENER_ERROR_BYTES, "Failed opening Unix socket: chown: %s", strerror(errno));
    return false;
}

static bool listener_open(struct server *server, enum listener_kind kind, struct listener_group **group, char *error)
{
    struct listener_options options = {.kind = kind,
                                       .loop_count = server->worker_count,
                                       .backlog = (int)OPTION_GET(option_tcp_backlog),
                                       .joins = workers_run,
                                       .patience_ms = workers_run ? 0 : START_PATIENCE_MS,
                                       .socket_mark = (int)OPTION_GET(option_socket_mark_id)};

    *group = NULL;
    if (kind == LISTENER_UNIX) {
        options.path = option_unixsocket.data;
        options.permissions = (unsigned)OPTION_GET(option_unixsocketperm);
        if (options.path == NULL)
            return true;
    } else {
        options.addresses = option_bind_addresses(&options.address_count);
        options.port = (int)port_of(kind);
        if (options.port == 0 || options.address_count == 0)
            return true;
    }
    if (!listener_group_open(group, &options, error))
        return false;
    if (kind != LISTENER_UNIX || set_socket_group(error))
        return true;
    listener_group_close(group);
    return false;
}

/* From the old sockets of a kind to the new ones: each worker does its own share, the last one closes the old. */
struct listener_switch {
    _Atomic unsigned left; /* atomic: workers that have not switched yet */
    struct listener_group *old_group, *new_group;
};

struct switch_mail {
    struct mail mail;
    struct listener_switch *change;
};

static void switch_deliver(struct worker *worker, struct mail *mail)
{
    struct switch_mail *message = container_of(mail, struct switch_mail, mail);
    struct listener_switch *change = message->change;

    if (change->old_group != NULL)
        listener_group_detach(change->old_group, worker->index);
    if (change->new_group != NULL &&
        !listener_group_attach(change->new_group, worker->loop, worker->index, accept_connection, worker))
        log_warning("Can't watch a new listening socket");
    if (atomic_fetch_sub_explicit(&change->left, 1, memory_order_acq_rel) == 1) {
        listener_group_close(&change->old_group);
        mem_free(change);
    }
    mem_free(message);
}

static void listener_replace(struct server *server, enum listener_kind kind, struct listener_group *group)
{
    struct listener_switch *change = mem_alloc(sizeof(*change));

    gate_assert_alone();
    assert(workers_run);
    atomic_init(&change->left, server->worker_count);
    change->old_group = listeners[kind];
    change->new_group = group;
    listeners[kind] = group;
    if (change->old_group != NULL)
        listener_group_stop(change->old_group); /* a client that gets OK finds the old port closed */
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct switch_mail *message = mem_alloc(sizeof(*message));
        struct mail *mail = &message->mail;

        *message = (struct switch_mail){.mail = {.deliver = switch_deliver}, .change = change};
        worker_post(&server->workers[i], &mail);
    }
}

/* -------------------------------------------------------------------------------------- what CONFIG SET changes -- */

/* Describes the listener of this kind as text; comparing it shows whether it has to be replaced. */
static char *listener_wish(enum listener_kind kind)
{
    size_t count;
    const char *const *addresses = option_bind_addresses(&count);
    struct buffer text = {0};

    buffer_printf(&text, "%lld", (long long)port_of(kind));
    for (size_t i = 0; i < count; i++)
        buffer_printf(&text, " %s", addresses[i]);
    return buffer_take(&text, &(size_t){0});
}

/* The apply function of port, bind and tls-port, for all of them that one CONFIG SET has changed: opens new sockets,
 * then closes the old ones. If one cannot be opened, nothing changes. */
static const char *apply_listeners(const struct option_row *row)
{
    static const enum listener_kind kinds[] = {LISTENER_TCP, LISTENER_TLS};
    struct listener_group *groups[countof(kinds)] = {NULL};
    char *wishes[countof(kinds)] = {NULL}, error[LISTENER_ERROR_BYTES];
    bool open = OPTION_GET(option_port) == 0 || OPTION_GET(option_port) != OPTION_GET(option_tls_port);

    snprintf(error, sizeof(error), "port and tls-port cannot be the same");
    for (size_t i = 0; open && i < countof(kinds); i++) {
        wishes[i] = listener_wish(kinds[i]);
        if (strcmp(wishes[i], wishes_in_use[kinds[i]]) != 0)
            open = listener_open(server_instance(), kinds[i], &groups[i], error);
    }
    for (size_t i = 0; open && i < countof(kinds); i++) {
        if (strcmp(wishes[i], wishes_in_use[kinds[i]]) == 0)
            continue;
        listener_replace(server_instance(), kinds[i], groups[i]);
        groups[i] = NULL;
        mem_free(wishes_in_use[kinds[i]]);
        wishes_in_use[kinds[i]] = wishes[i];
        wishes[i] = NULL;
    }
    for (size_t i = 0; i < countof(kinds); i++) {
        listener_group_close(&groups[i]);
        mem_free(wishes[i]);
    }
    if (open)
        return NULL;
    log_warning("%s", error);
    return strcmp(row->name, "bind") == 0 ? "Failed to bind to specified addresses."
                                          : "Unable to listen on this port. Check server logs.";
}

static const char *apply_tls_port(const struct option_row *row)
{
    (void)row;
    return OPTION_GET(option_tls_port) != 0 ? certificates_demand() : NULL;
}

/* ----------------------------------------------------------------------------------------------- start and end -- */

static bool open_all(struct server *server)
{
    static const char *const names[LISTENERS_MOST] = {"TCP", "TLS", "unix"};
    char error[LISTENER_ERROR_BYTES];
    bool any = false;

    for (unsigned kind = 0; kind < LISTENERS_MOST; kind++) {
        if (!listener_open(server, (enum listener_kind)kind, &listeners[kind], error)) {
            log_warning("Warning: %s", error);
            log_warning("Failed listening on port %lld (%s), aborting.", (long long)port_of((enum listener_kind)kind),
                        names[kind]);
            return false;
        }
        wishes_in_use[kind] = listener_wish((enum listener_kind)kind);
        any = any || listeners[kind] != NULL;
    }
    if (!any)
        log_warning("Configured to not listen anywhere, exiting.");
    return any;
}


static bool start(struct server *server)
{
    assert(wishes_in_use[0] == NULL);
    workers_run = false;
    config_on_change("tls-port", apply_tls_port);
    config_on_change("port", apply_listeners);
    config_on_change("tls-port", apply_listeners);
    config_on_change("bind", apply_listeners);
    return open_all(server);
}

/* Before any worker's thread starts: the first to run may replace them (CONFIG SET port). */
static void begin(struct server *server)
{
    gate_assert_no_traffic();
    workers_run = true;
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker *worker = &server->workers[i];

        for (unsigned kind = 0; kind < LISTENERS_MOST; kind++) {
            if (listeners[kind] != NULL &&
                !listener_group_attach(listeners[kind], worker->loop, worker->index, accept_connection, worker))
                log_warning("Can't watch a listening socket");
        }
    }
}

static void stop(struct worker *worker)
{
    for (unsigned kind = 0; kind < LISTENERS_MOST; kind++) {
        if (listeners[kind] == NULL)
            continue;
        /* A client that sees its connection end finds nobody. */
        listener_group_stop(listeners[kind]);
        listener_group_detach(listeners[kind], worker->index);
    }
}

static void end(struct server *server)
{
    (void)server;
    gate_assert_no_traffic();
    for (unsigned kind = 0; kind < LISTENERS_MOST; kind++) {
        listener_group_close(&listeners[kind]);
        mem_free(wishes_in_use[kind]);
        wishes_in_use[kind] = NULL;
    }
}

const struct lifecycle listeners_lifecycle = {
    .server_start = start,
    .server_begin = begin,
    .server_end = end,
    .worker_stop = stop,
};
