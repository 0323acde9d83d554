#include "server/core/worker.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/panic.h"
#include "server/acl/acl.h"
#include "server/config/options.h"
#include "server/core/admission.h"
#include "server/core/client.h"
#include "server/core/letters.h"
#include "server/core/server.h"
#include "server/durable/aof.h"
#include "server/durable/aof_hold.h"
#include "server/durable/loading.h"
#include "server/durable/persistence.h"
#include "server/memory/client_limit.h"
#include "server/memory/memory_limit.h"
#include "server/observe/latency.h"
#include "server/observe/timing.h"
#include "server/pubsub/tracking.h"
#include "server/run/blocked.h"
#include "server/run/dispatch.h"
#include "server/run/migrate.h"
#include "server/run/parking.h"
#include "server/run/pause.h"
#include "server/run/placement.h"
#include "server/run/rendezvous.h"
#include "server/run/soft_shutdown.h"
#include "server/tls/certificates.h"
#include "server/upkeep/active_expiry.h"
#include "server/upkeep/cron_runner.h"
#include "server/upkeep/defrag_cycle.h"
#include "server/upkeep/journal_limits.h"
#include "store/watch.h"

#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SECOND_US = 1000 * 1000, HANDSHAKE_LIMIT_US = 30 * SECOND_US };

static _Thread_local struct worker *self;

struct worker *worker_self(void)
{
    return self;
}

static void wake_member(void *context)
{
    worker_wake_parked(context, PARKING_GATE);
}

void worker_init(struct worker *worker, struct server *server, unsigned index)
{
    *worker = (struct worker){.index = index, .server = server};
    mpsc_init(&worker->mailbox);
    mpsc_init(&worker->calls);
    list_init(&worker->late_calls);
    atomic_init(&worker->has_requests, false);
    atomic_init(&worker->stop, false);
    spinlock_init(&worker->roster_lock, LOCK_ROSTER);
    list_init(&worker->roster);
    list_init(&worker->clients);
    parking_init(&worker->parking);
    atomic_init(&worker->parking_news, 0);
    list_init(&worker->leaving_watches);
    list_init(&worker->leaving_blocked);
    list_init(&worker->handovers);
    list_init(&worker->monitors);
    list_init(&worker->held);
    list_init(&worker->synced_waits);
    list_init(&worker->held_outputs);
    list_init(&worker->tracking_clients);
    access_init(&worker->access, server->store, &worker->counters);
    defrag_walk_init(&worker->defrag.walk, index, &worker->defrag.counters);
    worker->access.settle = dispatch_settle_access;
    worker->access.wait_bit = index < WORKERS_MOST ? UINT64_C(1) << index : 0;
    worker->stats.times = timing_create();
    worker->stats.failed_calls = mem_alloc_zero(command_count() * sizeof(_Atomic uint64_t));
    worker->stats.rejected_calls = mem_alloc_zero(command_count() * sizeof(_Atomic uint64_t));
    gate_join(&server->gate, &worker->member, wake_member, worker);
}

void worker_fini(struct worker *worker)
{
    atomic_store(&worker->waiting_workers, 0); /* they may have no loop any more */
    worker_read_mail(worker, UINT64_MAX);
    placement_fini(worker);
    rendezvous_leave(worker);
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
    parking_fini(&worker->parking);
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
    if (worker != self) /* else it is awake: no system call */
        spinlock_assert_may_sleep();
    loop_wake(worker->loop);
}

void worker_note_parked(struct worker *worker, enum parking_news news)
{
    atomic_fetch_or_explicit(&worker->parking_news, news, memory_order_release);
}

void worker_wake_parked(struct worker *worker, enum parking_news news)
{
    worker_note_parked(worker, news);
    worker_wake(worker);
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

void worker_read_mail_until(struct worker *worker, const bool *reached)
{
    while (!*reached) {
        struct mpsc_node *node = mpsc_pop(&worker->mailbox);

        if (LIKELY(node != NULL)) {
            struct mail *mail = container_of(node, struct mail, node);

            mail->deliver(worker, mail);
        } else {
            sched_yield(); /* one before it is just being put there */
        }
    }
}

int64_t worker_sample_time(struct worker *worker)
{
    enum { MS_US = 1000 };
    int64_t now_us;

    worker->time_tick = tick_now(); /* first, so that the next millisecond never comes unnoticed */
    now_us = clock_wall_us();
    worker->now_ms = now_us / MS_US;
    /* One less: what the clock left out, and the little by which it and the ticks drift apart. */
    worker->time_span = tick_from_ns((uint64_t)(MS_US - 1 - now_us % MS_US) * 1000);
    return worker->now_ms;
}

/* ---------------------------------------------------------------------------------------------------- each turn -- */

void worker_serve_requests(struct worker *worker)
{
    if (!atomic_load_explicit(&worker->has_requests, memory_order_relaxed))
        return;
    /* Pairs with server_request_clients: what was asked before the flag was set is seen below. */
    (void)atomic_exchange_explicit(&worker->has_requests, false, memory_order_acquire);
    LIST_FOREACH(node, &worker->clients) {
        struct client *client = container_of(node, struct client, node);
        /* The kill bit stays: who is killed is not shown or counted any more, though it goes at the turn's end. */
        uint32_t requests = atomic_fetch_and_explicit(&client->card.requests, CLIENT_REQUEST_KILL,
                                                      memory_order_acquire);

        if ((requests & CLIENT_REQUEST_KILL) != 0)
            client_kill(client);
        else if ((requests & CLIENT_REQUEST_CUT) != 0)
            client_cut(client);
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

    worker_read_mail(worker, LETTERS_TURN_BYTES);
    if (!mpsc_is_empty(&worker->mailbox))
        worker_wake(worker); /* goes on when what was written so far has been sent */
    letters_release_held(worker);
    if (worker->index == 0) {
        log_reopen_if_asked();
        server_serve_signal(worker->server);
        persistence_woken(worker);
        aof_woken(worker);
    }
    worker_serve_requests(worker);
    rendezvous_serve(worker);
    parking_retry(worker);
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

/* How many commands this turn has run, if no turn had so many. */
static void note_turn_commands(struct worker_stats *stats)
{
    const uint64_t commands = atomic_load_explicit(&stats->commands, memory_order_relaxed);
    const uint64_t count = commands - stats->commands_before;
    uint64_t most = atomic_load_explicit(&stats->turn_commands_most, memory_order_relaxed);

    stats->commands_before = commands;
    while (count > most && !atomic_compare_exchange_weak_explicit(&stats->turn_commands_most, &most, count,
                                                                 memory_order_relaxed, memory_order_relaxed)) {
    } /* somebody has reset it meanwhile */
}

static void look_after_aof(struct worker *worker)
{
    const uint64_t from = tick_now();
    uint64_t ticks;

    aof_hold_turn(worker);
    ticks = tick_now() - from;
    counter_add(&worker->stats.aof_ticks, (int64_t)ticks < 0 ? 0 : ticks);
}

/* What it has posted to itself, in the turn in which it did: a wake would cost one more. */
static void read_own_mail(struct worker *worker)
{
    worker->mailed = 0;
    worker_read_mail(worker, LETTERS_TURN_BYTES);
    if (worker->has_lines)
        dispatch_show_lines(worker);
    if (worker->mailed != 0 || !mpsc_is_empty(&worker->mailbox))
        worker_wake(worker); /* goes on when what was written so far has been sent */
    worker->mailed = 0;
}

static void on_turn_end(struct loop *loop)
{
    struct worker *worker = loop_user(loop);

    if (UNLIKELY(worker->has_lines))
        dispatch_show_lines(worker);
    if (UNLIKELY(worker->mailed != 0))
        read_own_mail(worker);
    if (UNLIKELY(worker->has_journaled || worker->awaits_disk || aof_hold_is_on()))
        look_after_aof(worker);
    if (UNLIKELY(!list_is_empty(&worker->leaving_watches) || !list_is_empty(&worker->leaving_blocked)))
        leave_registries(worker);
    if (UNLIKELY(!list_is_empty(&worker->late_calls)))
        rendezvous_turn_end(worker);
    journal_limits_look(&worker->server->journal);
    show_loop_stats(worker);
    note_turn_commands(&worker->stats);
    mem_thread_publish();
}

/* ------------------------------------------------------------------------------------------------------- timers -- */

static void close_idle(struct worker *worker)
{
    int64_t limit_us = OPTION_GET(option_timeout) * SECOND_US;
    int64_t now_us = loop_now_us(worker->loop);

    LIST_FOREACH(node, &worker->clients) {
        struct client *client = container_of(node, struct client, node);
        bool is_late = (client->conn.flags & CONN_HANDSHAKE) != 0 &&
                       (int64_t)clock_monotonic_us() - client->card.created_us > HANDSHAKE_LIMIT_US;
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
        output_pool_shrink(loop_output_pool(loop));
    }
    if (worker->index == 0) {
        log_update_zone();
        log_reopen_if_moved();
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
    struct worker *worker = user;
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
    placement_give(worker, fd, kind);
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
    log_notice("Thread %u alive.", worker->index);
    loading_worker_runs();
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
    gate_rest(&worker->member); /* a loader may wait until all have been inside */
    self = NULL;
}
