#include "server/core/server.h"

#include "base/background.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/tick.h"
#include "server/acl/acl.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/config/options_process.h"
#include "server/core/client.h"
#include "server/core/letters.h"
#include "server/core/stats.h"
#include "server/durable/persistence.h"
#include "server/memory/client_limit.h"
#include "server/memory/memory_limit.h"
#include "server/observe/timing.h"
#include "server/process/descriptors.h"
#include "server/pubsub/events.h"
#include "server/pubsub/tracking.h"
#include "server/run/dispatch.h"
#include "server/run/soft_shutdown.h"
#include "server/tls/certificates.h"
#include "server/tls/tls_peers.h"
#include "server/upkeep/journal_limits.h"
#include "server/upkeep/shutdown.h"

#include <errno.h>
#include <grp.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CLIENTS_A_TURN = 200 };

static struct server *instance; /* const while workers run */

struct server *server_instance(void)
{
    return instance;
}

/* ---------------------------------------------------------------------------------------------------- listeners -- */

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
        snprintf(error, LISTENER_ERROR_BYTES, "Failed opening Unix socket: there is no group '%.64s'", name);
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
                                       .joins = server->runs,
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
        !listener_group_attach(change->new_group, worker->loop, worker->index, worker_accept, worker))
        log_warning("A new listening socket could not be watched");
    if (atomic_fetch_sub_explicit(&change->left, 1, memory_order_acq_rel) == 1) {
        listener_group_close(&change->old_group);
        mem_free(change);
    }
    mem_free(message);
}

static void listener_replace(struct server *server, enum listener_kind kind, struct listener_group *group)
{
    struct listener_switch *change = mem_alloc(sizeof(*change));

    atomic_init(&change->left, server->worker_count);
    change->old_group = server->listeners[kind];
    change->new_group = group;
    server->listeners[kind] = group;
    if (change->old_group != NULL)
        listener_group_stop(change->old_group); /* who hears OK finds the old port closed */
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct switch_mail *message = mem_alloc(sizeof(*message));
        struct mail *mail = &message->mail;

        *message = (struct switch_mail){.mail = {.deliver = switch_deliver}, .change = change};
        worker_post(&server->workers[i], &mail);
    }
}

/* -------------------------------------------------------------------------------------- what CONFIG SET changes -- */

/* What a listener of this kind is to be, as text; a replaced one is compared by it. */
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

/* port, bind and tls-port, whichever of them one CONFIG SET has changed: opens what differs from now, then closes what
 * was there before; if one cannot be opened, nothing has changed. */
static const char *apply_listeners(const struct option_row *row)
{
    static const enum listener_kind kinds[] = {LISTENER_TCP, LISTENER_TLS};
    struct listener_group *groups[countof(kinds)] = {NULL};
    char *wishes[countof(kinds)] = {NULL}, error[LISTENER_ERROR_BYTES];
    bool open = OPTION_GET(option_port) == 0 || OPTION_GET(option_port) != OPTION_GET(option_tls_port);

    snprintf(error, sizeof(error), "port and tls-port cannot be the same");
    for (size_t i = 0; open && i < countof(kinds); i++) {
        wishes[i] = listener_wish(kinds[i]);
        if (strcmp(wishes[i], instance->listener_wishes[kinds[i]]) != 0)
            open = listener_open(instance, kinds[i], &groups[i], error);
    }
    for (size_t i = 0; open && i < countof(kinds); i++) {
        if (strcmp(wishes[i], instance->listener_wishes[kinds[i]]) == 0)
            continue;
        listener_replace(instance, kinds[i], groups[i]);
        groups[i] = NULL;
        mem_free(instance->listener_wishes[kinds[i]]);
        instance->listener_wishes[kinds[i]] = wishes[i];
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

static const char *apply_usage(const struct option_row *row)
{
    struct store *store = instance->store;

    (void)row;
    atomic_store_explicit(&store->counts_uses, (OPTION_GET(option_maxmemory_policy) & POLICY_LFU) != 0,
                          memory_order_relaxed);
    atomic_store_explicit(&store->lfu_log_factor, (uint32_t)OPTION_GET(option_lfu_log_factor), memory_order_relaxed);
    atomic_store_explicit(&store->lfu_decay_minutes, (uint32_t)OPTION_GET(option_lfu_decay_time),
                          memory_order_relaxed);
    return NULL;
}

static const char *apply_lazy_free(const struct option_row *row)
{
    uint32_t later = FREE_UNLINK;

    (void)row;
    later |= OPTION_IS(option_lazyfree_lazy_server_del) ? FREE_SERVER_DEL : 0;
    later |= OPTION_IS(option_lazyfree_lazy_user_del) ? FREE_USER_DEL : 0;
    later |= OPTION_IS(option_lazyfree_lazy_expire) ? FREE_EXPIRE : 0;
    atomic_store_explicit(&instance->store->frees_later, later, memory_order_relaxed);
    return NULL;
}

static const char *apply_requirepass(const struct option_row *row)
{
    (void)row;
    acl_set_default_password(slice_make(option_requirepass.data, option_requirepass.size));
    return NULL;
}

static void limits_read(struct worker *worker)
{
    uint64_t most = OPTION_GET_U64(option_proto_max_bulk_len);

    worker->limits = (struct resp_limits){.bulk_max_bytes = most, .authenticated = true, .large = true};
    worker->limits_unauthenticated = (struct resp_limits){.bulk_max_bytes = most};
}

static void limits_deliver(struct worker *worker, struct mail *mail)
{
    limits_read(worker);
    mem_free(mail);
}

static const char *apply_limits(const struct option_row *row)
{
    (void)row;
    for (unsigned i = 0; i < instance->worker_count; i++) {
        struct mail *mail = mem_alloc(sizeof(*mail));

        *mail = (struct mail){.deliver = limits_deliver};
        worker_post(&instance->workers[i], &mail);
    }
    return NULL;
}

static const char *apply_maxclients(const struct option_row *row)
{
    static char error[128]; /* guarded by the gate */
    int64_t clients = OPTION_GET(option_maxclients);

    (void)row;
    if (descriptors_make_room(&clients, instance->worker_count))
        return NULL;
    snprintf(error, sizeof(error), "The operating system is not able to handle the specified number of clients, try "
             "with %lld", (long long)clients);
    return error;
}

static void watch_options(void)
{
    config_on_change("maxclients", apply_maxclients);
    config_on_change("tls-port", apply_tls_port);
    config_on_change("port", apply_listeners);
    config_on_change("tls-port", apply_listeners);
    config_on_change("bind", apply_listeners);
    config_on_change("maxmemory-policy", apply_usage);
    config_on_change("lfu-log-factor", apply_usage);
    config_on_change("lfu-decay-time", apply_usage);
    config_on_change("lazyfree-lazy-server-del", apply_lazy_free);
    config_on_change("lazyfree-lazy-user-del", apply_lazy_free);
    config_on_change("lazyfree-lazy-expire", apply_lazy_free);
    config_on_change("requirepass", apply_requirepass);
    config_on_change("proto-max-bulk-len", apply_limits);
}

/* ------------------------------------------------------------------------------------------------ start and end -- */

static void wake_waiters(uint64_t wait_mask)
{
    for (; wait_mask != 0; wait_mask &= wait_mask - 1)
        worker_wake_parked(&instance->workers[__builtin_ctzll(wait_mask)], PARKING_STRIPE);
}

static unsigned thread_count_wanted(void)
{
    int64_t wanted = OPTION_GET(option_server_threads);

    return wanted > 0 ? (unsigned)MIN(wanted, (int64_t)WORKERS_MOST) : MIN(thread_cpu_count(), 8U);
}

/* False: there are too few to serve a single client. */
static bool descriptors_suffice(unsigned worker_count)
{
    int64_t clients = OPTION_GET(option_maxclients);

    if (!descriptors_make_room(&clients, worker_count))
        atomic_store_explicit(&option_maxclients, clients, memory_order_relaxed);
    return clients > 0;
}

static bool open_listeners(struct server *server)
{
    static const char *const names[LISTENERS_MOST] = {"TCP", "TLS", "unix"};
    char error[LISTENER_ERROR_BYTES];
    bool any = false;

    for (unsigned kind = 0; kind < LISTENERS_MOST; kind++) {
        if (!listener_open(server, (enum listener_kind)kind, &server->listeners[kind], error)) {
            log_warning("Warning: %s", error);
            log_warning("Failed listening on port %lld (%s), aborting.",
                        (long long)port_of((enum listener_kind)kind), names[kind]);
            return false;
        }
        server->listener_wishes[kind] = listener_wish((enum listener_kind)kind);
        any = any || server->listeners[kind] != NULL;
    }
    if (!any)
        log_warning("Configured to not listen anywhere, exiting.");
    return any;
}

static bool open_loops(struct server *server)
{
    for (unsigned i = 0; i < server->worker_count; i++) {
        if (!worker_open_loop(&server->workers[i])) {
            log_warning("Can't create the event loop of thread %u", i);
            return false;
        }
        limits_read(&server->workers[i]);
    }
    return true;
}

struct server *server_create(void)
{
    struct server *server = mem_aligned_alloc(CACHE_LINE_BYTES, sizeof(*server));

    memset(server, 0, sizeof(*server));
    instance = server;
    gate_init(&server->gate);
    spinlock_init(&server->script_turn.lock, LOCK_STRIPE);
    journal_init(&server->journal);
    timing_apply();
    memory_limit_start();
    client_limit_start();
    server->store = store_create(STORE_STRIPES_DEFAULT, (unsigned)OPTION_GET(option_databases));
    server->store->wake = wake_waiters;
    events_start(server->store);
    tracking_start(server->store);
    server->started_us = (int64_t)clock_monotonic_us();
    server->worker_count = thread_count_wanted();
    server->workers = mem_aligned_alloc(CACHE_LINE_BYTES, server->worker_count * sizeof(struct worker));
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_init(&server->workers[i], server, i);
    watch_options();
    tls_peers_start();
    journal_limits_start(&server->journal);
    (void)apply_usage(NULL);
    (void)apply_lazy_free(NULL);
    if (!descriptors_suffice(server->worker_count) || !certificates_start() || !open_loops(server) ||
        !open_listeners(server))
        server_destroy(&server);
    return server;
}

void server_destroy(struct server **server)
{
    struct server *gone = *server;

    if (gone == NULL)
        return;
    for (unsigned i = 0; i < gone->worker_count; i++)
        worker_fini(&gone->workers[i]);
    for (unsigned i = 0; i < LISTENERS_MOST; i++)
        listener_group_close(&gone->listeners[i]);
    for (unsigned i = 0; i < LISTENERS_MOST; i++)
        mem_free(gone->listener_wishes[i]);
    background_drain();
    journal_fini(&gone->journal);
    tracking_stop();
    store_destroy(&gone->store);
    gate_fini(&gone->gate);
    mem_free(gone->workers);
    mem_free(gone);
    instance = NULL;
    *server = NULL;
}

/* Pins thread i to processor first + i, when server-thread-affinity says so. */
static void set_affinity(const struct worker *worker)
{
    int64_t first = OPTION_GET(option_server_thread_affinity);

    if (first > 0 && !thread_set_affinity((int)(first - 1) + (int)worker->index))
        log_warning("Thread %u could not be bound to processor %d", worker->index,
                    (int)(first - 1) + (int)worker->index);
}

static void worker_thread(void *argument)
{
    set_affinity(argument);
    worker_run(argument);
}

void server_run(struct server *server)
{
    server->runs = true;
    for (unsigned i = 0; i < server->worker_count; i++)
        worker_listen(&server->workers[i]);
    for (unsigned i = 1; i < server->worker_count; i++) {
        char name[32];

        snprintf(name, sizeof(name), "worker-%u", i);
        thread_start(&server->workers[i].thread, name, worker_thread, &server->workers[i]);
    }
    worker_thread(&server->workers[0]);
    for (unsigned i = 1; i < server->worker_count; i++)
        thread_join(&server->workers[i].thread);
    for (unsigned i = 0; i < server->worker_count; i++) {
        if (gate_is_owner(&server->workers[i].member)) /* it ended with the gate closed */
            gate_open(&server->workers[i].member);
    }
}

int64_t server_hz(const struct server *server)
{
    uint64_t clients = atomic_load_explicit(&server->client_count, memory_order_relaxed);
    int64_t hz = OPTION_GET(option_hz);

    while (OPTION_IS(option_dynamic_hz) && hz < OPTION_HZ_MOST && clients / (uint64_t)hz > CLIENTS_A_TURN)
        hz = MIN(hz * 2, (int64_t)OPTION_HZ_MOST);
    return hz;
}

void server_stop(struct server *server)
{
    atomic_store_explicit(&server->stopping, true, memory_order_relaxed);
    for (unsigned i = 0; i < server->worker_count; i++) {
        atomic_store_explicit(&server->workers[i].stop, true, memory_order_relaxed);
        worker_wake(&server->workers[i]);
    }
}

static _Atomic int signal_received; /* atomic: 0, or the signal that asked to stop */
static _Atomic bool signal_noted;   /* atomic: the log tells of it */

void server_wake_from_signal(void)
{
    struct server *server = instance;

    if (server != NULL)
        loop_wake(server->workers[0].loop); /* whatever the thread holds that the signal has interrupted */
}

void server_stop_from_signal(int signal_number)
{
    if (atomic_exchange(&signal_received, signal_number) != 0 && signal_number == SIGINT) {
        log_from_signal("You insist... exiting now.");
        persistence_give_up_from_signal();
        _exit(1);
    }
    server_wake_from_signal();
}

void server_serve_signal(struct server *server)
{
    int signal_number = atomic_load_explicit(&signal_received, memory_order_relaxed);

    if (signal_number == 0 || atomic_load_explicit(&server->stopping, memory_order_relaxed) ||
        atomic_load_explicit(&server->cron_paused, memory_order_relaxed) || soft_shutdown_is_pending())
        return;
    if (!atomic_exchange(&signal_noted, true))
        log_warning("Received %s scheduling shutdown...", signal_number == SIGINT ? "SIGINT" : "SIGTERM");
    if (soft_shutdown_is_wished())
        soft_shutdown_begin();
    else if (!shutdown_by_itself(&server->workers[0], shutdown_flags_of_signal(signal_number)))
        (void)server_forget_signal(); /* the next one asks anew */
}

bool server_is_asked_to_stop(void)
{
    return atomic_load_explicit(&signal_received, memory_order_relaxed) != 0 && !soft_shutdown_is_wished() &&
           !soft_shutdown_is_pending();
}

bool server_forget_signal(void)
{
    struct server *server = instance;

    return !atomic_load_explicit(&server->stopping, memory_order_relaxed) && !soft_shutdown_is_pending() &&
           atomic_exchange(&signal_received, 0) != 0;
}

void server_pause_cron(struct server *server, bool paused)
{
    atomic_store_explicit(&server->cron_paused, paused, memory_order_relaxed);
    if (!paused)
        worker_wake(&server->workers[0]); /* a signal may have come meanwhile */
}

/* ------------------------------------------------------------------------------------------------------- rates -- */

void server_sample_rates(struct server *server)
{
    struct rate_meter *meter = &server->meter;
    struct rate_sample now = {.at_us = (int64_t)clock_monotonic_us()};
    const struct rate_sample *oldest = &meter->samples[meter->next];
    uint64_t waiting = 0;

    for (unsigned i = 0; i < server->worker_count; i++) {
        const struct worker_stats *stats = &server->workers[i].stats;
        struct loop_times times;

        now.commands += atomic_load_explicit(&stats->commands, memory_order_relaxed);
        now.net_in += atomic_load_explicit(&stats->net_in, memory_order_relaxed);
        now.net_out += atomic_load_explicit(&stats->net_out, memory_order_relaxed);
        now.turns += atomic_load_explicit(&stats->turns, memory_order_relaxed);
        loop_times(server->workers[i].loop, &times);
        now.serving_us += tick_to_ns(times.serving) / 1000;
        now.waiting += atomic_load_explicit(&stats->parked_count, memory_order_relaxed);
    }
    if (oldest->at_us != 0 && now.at_us > oldest->at_us && now.commands >= oldest->commands) {
        uint64_t span_us = (uint64_t)(now.at_us - oldest->at_us);

        atomic_store_explicit(&meter->commands, (now.commands - oldest->commands) * 1000000 / span_us,
                              memory_order_relaxed);
        atomic_store_explicit(&meter->net_in, (now.net_in - oldest->net_in) * 1000000 / span_us, memory_order_relaxed);
        atomic_store_explicit(&meter->net_out, (now.net_out - oldest->net_out) * 1000000 / span_us,
                              memory_order_relaxed);
        atomic_store_explicit(&meter->turns, (now.turns - oldest->turns) * 1000000 / span_us, memory_order_relaxed);
        atomic_store_explicit(&meter->serving_us, (now.serving_us - oldest->serving_us) * 1000000 / span_us,
                              memory_order_relaxed);
    }
    meter->samples[meter->next] = now;
    meter->next = (meter->next + 1) % RATE_SAMPLES;
    for (unsigned i = 0; i < RATE_SAMPLES; i++)
        waiting += meter->samples[i].waiting;
    atomic_store_explicit(&meter->waiting_millis, waiting * 1000 / RATE_SAMPLES, memory_order_relaxed);
}

void server_rates(const struct server *server, struct rates *rates)
{
    rates->operations = (double)atomic_load_explicit(&server->meter.commands, memory_order_relaxed);
    rates->input_bytes = (double)atomic_load_explicit(&server->meter.net_in, memory_order_relaxed);
    rates->turns = (double)atomic_load_explicit(&server->meter.turns, memory_order_relaxed);
    rates->serving_us = (double)atomic_load_explicit(&server->meter.serving_us, memory_order_relaxed);
    rates->waiting_commands = (double)atomic_load_explicit(&server->meter.waiting_millis, memory_order_relaxed) / 1000;
    rates->output_bytes = (double)atomic_load_explicit(&server->meter.net_out, memory_order_relaxed);
}

/* ------------------------------------------------------------------------------------------------- all clients -- */

void server_each_client(struct server *server, void (*visit)(const struct client_card *card, void *context),
                        void *context)
{
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker *worker = &server->workers[i];

        spinlock_acquire(&worker->roster_lock);
        LIST_FOREACH(node, &worker->roster)
            visit(container_of(node, struct client_card, node), context);
        spinlock_release(&worker->roster_lock);
    }
}

unsigned server_request_clients(struct worker *asking, uint32_t request,
                                bool (*wanted)(struct client_card *card, void *context), void *context,
                                uint64_t *workers)
{
    struct server *server = asking->server;
    unsigned count = 0;
    uint64_t mask = 0;

    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker *worker = &server->workers[i];
        unsigned before = count;

        spinlock_acquire(&worker->roster_lock);
        LIST_FOREACH(node, &worker->roster) {
            struct client_card *card = container_of(node, struct client_card, node);

            if (!wanted(card, context))
                continue;
            if ((request & CLIENT_REQUEST_KILL) != 0)
                (void)client_card_claim(card, CLIENT_WAIT_KILLED);
            atomic_fetch_or_explicit(&card->requests, request, memory_order_release);
            count++;
        }
        spinlock_release(&worker->roster_lock);
        if (count != before) {
            atomic_store_explicit(&worker->has_requests, true, memory_order_release);
            mask |= UINT64_C(1) << i;
            letters_call_later(asking, worker);
        }
    }
    if (workers != NULL)
        *workers = mask;
    return count;
}
