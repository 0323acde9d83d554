#include "server/worker.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "server/acl.h"
#include "server/active_expiry.h"
#include "server/aof.h"
#include "server/aof_hold.h"
#include "server/admission.h"
#include "server/blocked.h"
#include "server/certificates.h"
#include "server/client.h"
#include "server/client_limit.h"
#include "server/cron_runner.h"
#include "server/journal_limits.h"
#include "server/defrag_cycle.h"
#include "server/dispatch.h"
#include "server/latency.h"
#include "server/letters.h"
#include "server/memory_limit.h"
#include "server/migrate.h"
#include "server/options.h"
#include "server/pause.h"
#include "server/persistence.h"
#include "server/server.h"
#include "server/soft_shutdown.h"
#include "server/timing.h"
#include "server/tracking.h"
#include "store/watch.h"

#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SECOND_US = 1000 * 1000, HANDSHAKE_LIMIT_MS = 30 * 1000 };

static _Thread_local struct worker *self;

struct worker *worker_self(void)
{
    return self;
}

static void wake_member(void *context)
{
    worker_wake(context);
}

void worker_init(struct worker *worker, struct server *server, unsigned index)
{
    *worker = (struct worker){.index = index, .server = server, .turn_us = -1};
    mpsc_init(&worker->mailbox);
    atomic_init(&worker->has_requests, false);
    atomic_init(&worker->stop, false);
    spinlock_init(&worker->roster_lock, LOCK_ROSTER);
    list_init(&worker->roster);
    list_init(&worker->clients);
    list_init(&worker->parked);
    list_init(&worker->leaving_watches);
    list_init(&worker->leaving_blocked);
    list_init(&worker->served);
    list_init(&worker->monitors);
    list_init(&worker->held);
    list_init(&worker->synced_waits);
    list_init(&worker->held_outputs);
    list_init(&worker->tracking_clients);
    access_init(&worker->access, server->store, &worker->counters);
    defrag_walk_init(&worker->defrag.walk, index, &worker->defrag.counters);
    worker->access.settle = dispatch_settle_access;
    worker->stats.times = timing_create();
    worker->stats.failed_calls = mem_alloc_zero(command_count() * sizeof(_Atomic uint64_t));
    worker->stats.rejected_calls = mem_alloc_zero(command_count() * sizeof(_Atomic uint64_t));
    gate_join(&server->gate, &worker->member, wake_member, worker);
}

void worker_fini(struct worker *worker)
{
    atomic_store(&worker->waiting_workers, 0); /* they may have no loop any more */
    tracking_flush(worker);
    worker_read_mail(worker, UINT64_MAX);
    loop_destroy(&worker->loop);
    gate_part(&worker->member);
    LIST_FOREACH_SAFE(link, &worker->leaving_watches) {
        struct watch_set *set = container_of(link, struct watch_set, node);
        bool gone;

        list_remove(link);
        gone = watch_set_try_destroy(&set, worker->server->store);
        assert(gone); /* nobody else is there to hold a stripe */
    }
    if (!blocked_unlink(worker))
        panic("a stripe is held when the last worker leaves");
    cron_runner_fini(worker);
    effects_fini(&worker->effects);
    buffer_fini(&worker->monitor_lines);
    buffer_fini(&worker->audit_lines);
    buffer_fini(&worker->events);
    resp_scratch_fini(&worker->scratch);
    output_clear(&worker->sink);
    key_positions_fini(&worker->positions);
    mem_free(worker->keys);
    mem_free(worker->stripes);
    timing_destroy(&worker->stats.times);
    mem_free(worker->stats.failed_calls);
    mem_free(worker->stats.rejected_calls);
}

static void on_wake(struct loop *loop);
static void on_turn_end(struct loop *loop);

bool worker_open_loop(struct worker *worker)
{
    const struct loop_options options = {.kind = (enum loop_kind)OPTION_GET(option_event_loop),
                                         .on_wake = on_wake,
                                         .on_turn_end = on_turn_end,
                                         .user = worker};

    worker->loop = loop_create(&options);
    return worker->loop != NULL;
}

/* What INFO gives a meaning of its own does not stand in a name. */
static size_t error_code_of(struct slice text, char code[ERROR_CODE_BYTES])
{
    const char *end = text.size != 0 ? memchr(text.data, ' ', text.size) : NULL;
    size_t size = end != NULL ? (size_t)(end - text.data) : ERROR_CODE_BYTES;

    if (size >= ERROR_CODE_BYTES - 1) {
        text = SLICE("ERR");
        size = text.size;
    }
    for (size_t i = 0; i < size; i++)
        code[i] = (unsigned char)text.data[i] < ' ' || text.data[i] == '#' || text.data[i] == ':' ? '_' : text.data[i];
    code[size] = '\0';
    return size;
}

void worker_count_error(struct worker *worker, struct slice text)
{
    struct worker_stats *stats = &worker->stats;
    uint32_t count = atomic_load_explicit(&stats->error_code_count, memory_order_relaxed), i = 0;
    char code[ERROR_CODE_BYTES];
    size_t size = error_code_of(text, code);

    counter_add(&stats->errors, 1);
    while (i < count && strcmp(stats->error_codes[i].code, code) != 0)
        i++;
    if (i >= ERROR_CODES_MOST) {
        i = ERROR_CODES_MOST;
        snprintf(code, sizeof(code), "%s", ERROR_CODE_OVERFLOW);
        size = strlen(code);
    }
    if (i == count) {
        memcpy(stats->error_codes[i].code, code, size + 1);
        atomic_store_explicit(&stats->error_code_count, count + 1, memory_order_release);
    }
    counter_add(&stats->error_codes[i].count, 1);
}

void worker_wake(struct worker *worker)
{
    loop_wake(worker->loop);
}

struct client *worker_find_client(struct worker *worker, uint64_t id)
{
    LIST_FOREACH(node, &worker->clients) {
        struct client *client = container_of(node, struct client, node);

        if (client->id == id && !conn_is_closing(&client->conn))
            return client;
    }
    return NULL;
}

void worker_post(struct worker *worker, struct mail **mail)
{
    mpsc_push(&worker->mailbox, &(*mail)->node);
    *mail = NULL;
    worker_wake(worker);
}

void worker_post_quietly(struct worker *worker, struct mail *mail)
{
    mpsc_push(&worker->mailbox, &mail->node);
}

void worker_read_mail(struct worker *worker, uint64_t most_bytes)
{
    struct mpsc_node *node;

    worker->turn_mail_bytes = 0;
    while (worker->turn_mail_bytes < most_bytes && (node = mpsc_pop(&worker->mailbox)) != NULL) {
        struct mail *mail = container_of(node, struct mail, node);

        mail->deliver(worker, mail);
    }
}

/* A letter counts before it stands in the mailbox, and one that is just being put there hides those behind it. So when
 * nothing is there, somebody is between two instructions: not for long, unless the processor was taken from it. Other
 * mail may run a script meanwhile, from inside of which letters are read, too: then there may be none left. */
void worker_read_letters(struct worker *worker, uint64_t bytes)
{
    worker->turn_mail_bytes = 0;
    while (worker->turn_mail_bytes < bytes && atomic_load(&worker->backlog_bytes) != 0) {
        struct mpsc_node *node = mpsc_pop(&worker->mailbox);

        if (LIKELY(node != NULL)) {
            struct mail *mail = container_of(node, struct mail, node);

            mail->deliver(worker, mail);
        } else {
            sched_yield();
        }
    }
}

int64_t worker_sample_time(struct worker *worker)
{
    worker->turn_us = loop_now_us(worker->loop);
    worker->now_ms = clock_wall_ms();
    return worker->now_ms;
}

/* ---------------------------------------------------------------------------------------------------- each turn -- */

static void serve_requests(struct worker *worker)
{
    if (!atomic_load_explicit(&worker->has_requests, memory_order_relaxed))
        return;
    /* Pairs with server_request_clients: what was asked before the flag was set is seen below. */
    (void)atomic_exchange_explicit(&worker->has_requests, false, memory_order_acquire);
    LIST_FOREACH(node, &worker->clients) {
        struct client *client = container_of(node, struct client, node);
        uint32_t requests = atomic_exchange_explicit(&client->card.requests, 0, memory_order_acquire);

        if ((requests & CLIENT_REQUEST_KILL) != 0)
            conn_close(&client->conn);
        else if ((requests & CLIENT_REQUEST_UNBLOCK) != 0)
            client_serve_unblock(client);
    }
}

/* Inside the gate, as everything that touches a stripe: who owns it walks the registries without locks. */
static void leave_registries(struct worker *worker)
{
    if (!gate_enter(&worker->member))
        return; /* woken when it opens, and then comes here again */
    LIST_FOREACH_SAFE(link, &worker->leaving_watches) {
        struct watch_set *set = container_of(link, struct watch_set, node);

        list_remove(link);
        if (!watch_set_try_destroy(&set, worker->server->store)) {
            list_push_back(&worker->leaving_watches, &set->node);
            break;
        }
    }
    (void)blocked_unlink(worker); /* what is left is tried again at the next turn's end */
    gate_leave(&worker->member);
}

static void on_wake(struct loop *loop)
{
    struct worker *worker = loop_user(loop);

    worker_time_passed(worker);
    worker_read_mail(worker, LETTERS_TURN_BYTES);
    if (!mpsc_is_empty(&worker->mailbox))
        worker_wake(worker); /* goes on when what was written so far has been sent */
    letters_release_held(worker);
    if (worker->index == 0) {
        server_serve_signal(worker->server);
        persistence_woken(worker);
        aof_woken(worker);
    }
    serve_requests(worker);
    dispatch_retry_parked(worker);
    cron_runner_woken(worker);
    migrate_woken(worker);
}

static void show_loop_stats(struct worker *worker)
{
    const struct loop_stats *stats = loop_stats(worker->loop);

    atomic_store_explicit(&worker->stats.net_in, stats->bytes_in, memory_order_relaxed);
    atomic_store_explicit(&worker->stats.net_out, stats->bytes_out, memory_order_relaxed);
    atomic_store_explicit(&worker->stats.reads, stats->reads, memory_order_relaxed);
    atomic_store_explicit(&worker->stats.writes, stats->writes, memory_order_relaxed);
    atomic_store_explicit(&worker->stats.turns, stats->turns, memory_order_relaxed);
}

static void on_turn_end(struct loop *loop)
{
    struct worker *worker = loop_user(loop);

    if (UNLIKELY(worker->has_lines))
        dispatch_show_lines(worker);
    if (UNLIKELY(!list_is_empty(&worker->served)))
        blocked_deliver(worker);
    if (UNLIKELY(worker->has_journaled || worker->awaits_disk || aof_hold_is_on()))
        aof_hold_turn(worker);
    if (UNLIKELY(!list_is_empty(&worker->leaving_watches) || !list_is_empty(&worker->leaving_blocked)))
        leave_registries(worker);
    journal_limits_look(&worker->server->journal);
    show_loop_stats(worker);
    mem_thread_publish();
}

/* ------------------------------------------------------------------------------------------------------- timers -- */

static void close_idle(struct worker *worker)
{
    int64_t limit_us = OPTION_GET(option_timeout) * SECOND_US;
    int64_t now_us = loop_now_us(worker->loop);

    (void)worker_sample_time(worker);
    LIST_FOREACH(node, &worker->clients) {
        struct client *client = container_of(node, struct client, node);
        bool is_late = (client->conn.flags & CONN_HANDSHAKE) != 0 &&
                       worker->now_ms - client->card.created_ms > HANDSHAKE_LIMIT_MS;
        bool waits = client->parked != NULL || (client->flags & CLIENT_BLOCKED) != 0; /* for us, not we for it */

        client_check_output(client);
        client_show_output(client);
        if (client->direct != NULL) /* it arrives without any command's ending */
            client_show_query(client);
        if (client_limit_is_on())
            client_limit_note(client);
        if (is_late) {
            log_verbose("Closing a client that did not complete its TLS handshake addr=%s", client->card.address);
            conn_close(&client->conn);
        } else if (limit_us != 0 && now_us - client->conn.active_us > limit_us && !waits) {
            log_verbose("Closing idle client id=%llu addr=%s", (unsigned long long)client->id,
                        client->card.address);
            conn_close(&client->conn);
        }
    }
}

/* The oldest second of client_recent_max_... makes room for the next. */
static void forget_old_buffers(struct worker_stats *stats)
{
    unsigned next = (stats->recent_index + 1) % RECENT_SECONDS;

    atomic_store_explicit(&stats->recent_input[next], 0, memory_order_relaxed);
    atomic_store_explicit(&stats->recent_output[next], 0, memory_order_relaxed);
    stats->recent_index = next;
}

static void every_second(struct loop *loop, struct loop_timer *timer)
{
    struct worker *worker = loop_user(loop);

    if (!atomic_load_explicit(&worker->server->cron_paused, memory_order_relaxed)) {
        close_idle(worker);
        overload_tick(worker);
        forget_old_buffers(&worker->stats);
    }
    if (worker->index == 0) {
        log_update_zone();
        certificates_look(worker);
    }
    loop_timer_start(loop, timer, SECOND_US, every_second);
}

static void sample_rates(struct loop *loop, struct loop_timer *timer)
{
    struct worker *worker = loop_user(loop);

    server_sample_rates(worker->server);
    memory_limit_sample();
    journal_limits_tell(&worker->server->journal);
    defrag_cycle_sample();
    soft_shutdown_look(worker->server);
    persistence_look(worker);
    aof_look(worker);
    loop_timer_start(loop, timer, SECOND_US / 10, sample_rates);
}

/* ------------------------------------------------------------------------------------------------------- accept -- */

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

const struct slice worker_protected_text = {protected_mode, sizeof(protected_mode) - 1};

bool worker_is_protected(const struct server *server)
{
    (void)server;
    return OPTION_IS(option_protected_mode) && atomic_load_explicit(&acl_default_is_nopass, memory_order_relaxed);
}

static void reject(struct worker *worker, int fd, enum listener_kind kind, const char *text, size_t size)
{
    /* A fresh socket takes these few bytes at once; over TLS there is nobody yet who could read them. */
    if (kind == LISTENER_TLS) {
        close(fd);
    } else {
        if (write(fd, text, size) < 0)
            log_debug("A refused client could not be told");
        loop_linger(worker->loop, fd);
    }
    counter_add(&worker->stats.rejected_connections, 1);
}

/* The first worker that is not filled yet, else the one with the fewest clients. */
static struct worker *choose_worker(struct worker *worker)
{
    const struct server *server = worker->server;
    uint64_t enough = OPTION_GET_U64(option_min_clients_per_thread), fewest = UINT64_MAX;
    struct worker *best = worker;

    if (!OPTION_IS(option_active_client_balancing) || server->worker_count == 1)
        return worker;
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker *other = &server->workers[i];
        uint64_t count = atomic_load_explicit(&other->assigned_count, memory_order_relaxed);

        count -= MIN(count, atomic_load_explicit(&other->closed_count, memory_order_relaxed));
        if (count < enough)
            return other;
        if (count < fewest) {
            fewest = count;
            best = other;
        }
    }
    return best;
}

/* A descriptor on its way to the worker that will own it. */
struct handover {
    struct mail mail;
    int fd;
    enum listener_kind kind;
};

static void handover_deliver(struct worker *worker, struct mail *mail)
{
    struct handover *handover = container_of(mail, struct handover, mail);

    if (!client_open(worker, handover->fd, handover->kind))
        log_warning("A connection could not be taken over");
    mem_free(handover);
}

/* Counts one more connection, unless there are as many as may be: those that are refused take no place meanwhile. */
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

void worker_accept(struct loop *loop, int fd, const struct sockaddr_storage *peer, socklen_t peer_size,
                   enum listener_kind kind, void *user)
{
    struct worker *worker = user, *owner;
    struct server *server = worker->server;
    bool is_local = kind == LISTENER_UNIX || admission_is_local(peer);

    (void)loop;
    (void)peer_size;
    if (soft_shutdown_is_pending()) {
        reject(worker, fd, kind, going_down, sizeof(going_down) - 1);
        return;
    }
    if (!take_place(server, is_local)) {
        reject(worker, fd, kind, too_many_clients, sizeof(too_many_clients) - 1);
        return;
    }
    if (kind != LISTENER_TLS && !is_local && worker_is_protected(server)) { /* TLS: when somebody can read it */
        atomic_fetch_sub_explicit(&server->client_count, 1, memory_order_relaxed);
        reject(worker, fd, kind, worker_protected_text.data, worker_protected_text.size);
        return;
    }
    owner = choose_worker(worker);
    atomic_fetch_add_explicit(&owner->assigned_count, 1, memory_order_relaxed);
    if (owner == worker) {
        if (!client_open(worker, fd, kind))
            atomic_fetch_add_explicit(&owner->closed_count, 1, memory_order_relaxed);
    } else {
        struct handover *handover = mem_alloc(sizeof(*handover));
        struct mail *mail = &handover->mail;

        *handover = (struct handover){.mail = {.deliver = handover_deliver}, .fd = fd, .kind = kind};
        worker_post(owner, &mail);
    }
}

/* ------------------------------------------------------------------------------------------------------- thread -- */

void worker_listen(struct worker *worker)
{
    struct server *server = worker->server;

    for (unsigned i = 0; i < LISTENERS_MOST; i++) {
        if (server->listeners[i] != NULL &&
            !listener_group_attach(server->listeners[i], worker->loop, worker->index, worker_accept, worker))
            log_warning("A listening socket could not be watched");
    }
}

void worker_run(void *argument)
{
    struct worker *worker = argument;
    struct server *server = worker->server;

    self = worker;
    worker->sink.pool = loop_output_pool(worker->loop);
    loop_timer_start(worker->loop, &worker->second_timer, SECOND_US, every_second);
    if (worker->index == 0)
        loop_timer_start(worker->loop, &worker->rate_timer, SECOND_US / 10, sample_rates);
    active_expiry_start(worker);
    while (!atomic_load_explicit(&worker->stop, memory_order_relaxed))
        loop_turn(worker->loop, -1);
    for (unsigned i = 0; i < LISTENERS_MOST; i++) {
        if (server->listeners[i] != NULL)
            listener_group_detach(server->listeners[i], worker->index);
    }
    client_close_all(worker);
    loop_turn(worker->loop, 0);
    self = NULL;
}
