#include "server/core/worker.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "server/config/options.h"
#include "server/core/admission.h"
#include "server/core/client.h"
#include "server/core/deliveries.h"
#include "server/core/lifecycle.h"
#include "server/core/server.h"
#include "store/undo.h"
#include "store/watch.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SECOND_US = 1000 * 1000, HANDSHAKE_LIMIT_US = 30 * SECOND_US, LAST_TURN_US = 10 * 1000, LAST_TURNS_MOST = 1000 };

static _Thread_local struct worker *self;

struct worker *worker_self(void)
{
    return self;
}

void worker_adopt(struct worker *worker)
{
    worker->thread_id = spinlock_self_id();
    if (worker->loop != NULL)
        loop_adopt(worker->loop);
}

static void wake_member(void *context)
{
    worker_wake_parked(context, PARKING_GATE);
}

void worker_init(struct worker *worker, struct server *server, unsigned index)
{
    *worker = (struct worker){.index = index, .server = server};
    worker_adopt(worker);
    mpsc_init(&worker->mailbox);
    atomic_init(&worker->has_requests, false);
    atomic_init(&worker->stop, false);
    spinlock_init(&worker->roster_lock, LOCK_ROSTER);
    list_init(&worker->roster);
    list_init(&worker->clients);
    atomic_init(&worker->parking_news, 0);
    list_init(&worker->leaving_watches);
    list_init(&worker->held);
    access_init(&worker->run.access, server->store, &worker->counters);
    worker->run.access.changed = &worker->run.changed;
    worker->run.access.wait_bit = index < WORKERS_MOST ? UINT64_C(1) << index : 0;
    worker->stats.failed_calls = mem_alloc_zero(command_count() * sizeof(_Atomic uint64_t));
    worker->stats.rejected_calls = mem_alloc_zero(command_count() * sizeof(_Atomic uint64_t));
    gate_join(&server->gate, &worker->member, wake_member, worker);
    lifecycle_worker_init(worker);
}

void worker_fini(struct worker *worker)
{
    worker_adopt(worker);
    atomic_store(&worker->waiting_workers, 0); /* they may have no loop any more */
    worker_read_mail(worker, UINT64_MAX);
    lifecycle_worker_fini(worker);
    LIST_FOREACH_SAFE(link, &worker->leaving_watches) {
        struct watch_set *set = container_of(link, struct watch_set, node);
        bool gone;

        list_remove(link);
        gone = watch_set_try_destroy(&set, worker->server->store);
        assert(gone); /* nobody else is there to hold a stripe */
    }
    loop_destroy(&worker->loop);
    gate_part(&worker->member);
    effects_fini(&worker->run.effects);
    changed_fini(&worker->run.changed);
    undo_fini(&worker->run.access);
    resp_scratch_fini(&worker->run.scratch);
    output_clear(&worker->sink);
    key_list_fini(&worker->run.keys);
    ARRAY_FINI(&worker->run.stripes);
    mem_free(worker->stats.failed_calls);
    mem_free(worker->stats.rejected_calls);
}

static void on_wake(struct loop *loop);
static void on_turn_end(struct loop *loop);

bool worker_open_loop(struct worker *worker)
{
    const bool has_processor = worker->server->worker_count <= thread_cpu_count();
    const struct loop_options options = {.kind = (enum loop_kind)OPTION_GET(option_event_loop),
                                         .spin_us = has_processor ? (uint32_t)OPTION_GET(option_event_loop_spin_us) : 0,
                                         .on_wake = on_wake,
                                         .on_turn_end = on_turn_end,
                                         .user = worker};

    worker_assert_self(worker);
    worker->loop = loop_create(&options);
    return worker->loop != NULL;
}

/* Characters with a meaning in INFO do not appear in a name. */
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

    worker_assert_self(worker);
    counter_add(&stats->error_replies, 1);
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
    worker_assert_self(worker);
    LIST_FOREACH(node, &worker->clients) {
        struct client *client = container_of(node, struct client, node);

        if (client->id == id && !conn_is_closing(&client->conn))
            return client;
    }
    return NULL;
}

void worker_post(struct worker *worker, struct mail **mail)
{
    assert((*mail)->deliver != NULL);
    mpsc_push(&worker->mailbox, &(*mail)->node);
    *mail = NULL;
    worker_wake(worker);
}

void worker_post_quietly(struct worker *worker, struct mail *mail)
{
    assert(mail->deliver != NULL);
    mpsc_push(&worker->mailbox, &mail->node);
}

static void deliver(struct worker *worker, struct mpsc_node *node)
{
    struct mail *mail = container_of(node, struct mail, node);

    worker_assert_self(worker);
    mail->deliver(worker, mail);
}

void worker_read_mail(struct worker *worker, uint64_t most_bytes)
{
    struct mpsc_node *node;

    worker_assert_outside(worker);
    worker->turn_mail_bytes = 0;
    while (worker->turn_mail_bytes < most_bytes && (node = mpsc_pop(&worker->mailbox)) != NULL)
        deliver(worker, node);
}

void worker_read_mail_until(struct worker *worker, const bool *reached)
{
    worker_assert_outside(worker);
    while (!*reached) {
        struct mpsc_node *node = mpsc_pop(&worker->mailbox);

        if (LIKELY(node != NULL))
            deliver(worker, node);
        else
            sched_yield(); /* one before it is just being put there */
    }
}

/* A delivery counts before it is in the mailbox, and one that is being posted hides those behind it. So if the mailbox
 * looks empty, a thread is between two instructions: not for long, unless it has lost the processor. Other mail may run
 * a script meanwhile, which reads deliveries, too: then there may be none left. */
void worker_read_deliveries(struct worker *worker, uint64_t bytes)
{
    worker_assert_outside(worker);
    worker->turn_mail_bytes = 0;
    while (worker->turn_mail_bytes < bytes && atomic_load(&worker->backlog_bytes) != 0) {
        struct mpsc_node *node = mpsc_pop(&worker->mailbox);

        if (LIKELY(node != NULL))
            deliver(worker, node);
        else
            sched_yield();
    }
}

int64_t worker_sample_time(struct worker *worker)
{
    enum { MS_US = 1000 };
    int64_t now_us;

    worker_assert_self(worker);
    worker->time_tick = tick_now(); /* first, so that the next millisecond never comes unnoticed */
    now_us = clock_wall_us();
    worker->now_ms = now_us / MS_US;
    /* One less: for the part that the clock cuts off, and for the drift between clock and ticks. */
    worker->time_span = tick_from_ns((uint64_t)(MS_US - 1 - now_us % MS_US) * 1000);
    return worker->now_ms;
}

/* ---------------------------------------------------------------------------------------------------- each turn -- */

void worker_serve_requests(struct worker *worker)
{
    worker_assert_self(worker);
    if (!atomic_load_explicit(&worker->has_requests, memory_order_relaxed))
        return;
    /* Pairs with server_request_clients: requests made before the flag was set are seen below. */
    (void)atomic_exchange_explicit(&worker->has_requests, false, memory_order_acquire);
    LIST_FOREACH(node, &worker->clients) {
        struct client *client = container_of(node, struct client, node);
        /* The kill bit stays: the client is not shown or counted any more, though it is closed at the end of the
         * turn. */
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

COLD void worker_run_deferred(struct worker *worker)
{
    bool more;

    worker_assert_outside(worker);
    assert(!worker->run.access.has_noted); /* told before the stripes were released */
    more = lifecycle_worker_deferred(worker);
    deliveries_flush(worker);
    worker->has_deferred = UNLIKELY(more);
}

/* Inside the gate, like everything that touches a stripe: the owner of the gate walks the registries without locks. */
static void leave_watches(struct worker *worker)
{
    worker_assert_outside(worker);
    if (!gate_enter(&worker->member))
        return; /* woken when it opens, and then comes here again */
    LIST_FOREACH_SAFE(link, &worker->leaving_watches) {
        struct watch_set *set = container_of(link, struct watch_set, node);

        list_remove(link);
        if (!watch_set_try_destroy(&set, worker->server->store)) {
            list_push_back(&worker->leaving_watches, &set->node);
            break; /* the rest is tried again at the end of the next turn */
        }
    }
    gate_leave(&worker->member);
}

static void on_wake(struct loop *loop)
{
    struct worker *worker = loop_user(loop);

    worker_read_mail(worker, DELIVERIES_TURN_BYTES);
    if (!mpsc_is_empty(&worker->mailbox))
        worker_wake(worker); /* continues when the output so far was sent */
    deliveries_release_held(worker);
    if (worker->index == 0)
        log_reopen_if_asked();
    worker_serve_requests(worker);
    lifecycle_worker_wake(worker);
}

static void show_loop_stats(struct worker *worker)
{
    const struct loop_stats *stats = loop_stats(worker->loop);

    atomic_store_explicit(&worker->stats.net_input_bytes, stats->bytes_in, memory_order_relaxed);
    atomic_store_explicit(&worker->stats.net_output_bytes, stats->bytes_out, memory_order_relaxed);
    atomic_store_explicit(&worker->stats.reads_processed, stats->reads, memory_order_relaxed);
    atomic_store_explicit(&worker->stats.writes_processed, stats->writes, memory_order_relaxed);
    atomic_store_explicit(&worker->stats.loop_turns, stats->turns, memory_order_relaxed);
}

/* How many commands this turn has run, if no turn had so many. */
static void note_turn_commands(struct worker_stats *stats)
{
    const uint64_t commands = atomic_load_explicit(&stats->commands_processed, memory_order_relaxed);
    const uint64_t count = commands - stats->commands_before;
    uint64_t most = atomic_load_explicit(&stats->turn_commands_most, memory_order_relaxed);

    stats->commands_before = commands;
    while (count > most && !atomic_compare_exchange_weak_explicit(&stats->turn_commands_most, &most, count,
                                                                  memory_order_relaxed, memory_order_relaxed)) {
    } /* somebody has reset it meanwhile */
}

/* Reads mail that the worker has posted to itself, in the same turn: a wake would cost one more turn. */
static void read_own_mail(struct worker *worker)
{
    worker->mailed = 0;
    worker_read_mail(worker, DELIVERIES_TURN_BYTES);
    if (worker->has_deferred)
        worker_run_deferred(worker);
    if (worker->mailed != 0 || !mpsc_is_empty(&worker->mailbox))
        worker_wake(worker); /* continues when the output so far was sent */
    worker->mailed = 0;
}

static bool has_upkeep(const struct worker *worker)
{
    return worker->has_deferred || worker->mailed != 0 || worker->turn_end_due ||
           atomic_load_explicit(&lifecycle_every_turn, memory_order_relaxed) ||
           !list_is_empty(&worker->leaving_watches);
}

static void do_upkeep(struct worker *worker)
{
    if (worker->has_deferred)
        worker_run_deferred(worker);
    if (worker->mailed != 0)
        read_own_mail(worker);
    if (worker->turn_end_due || atomic_load_explicit(&lifecycle_every_turn, memory_order_relaxed)) {
        worker->turn_end_due = false; /* a hook may want the next one, too */
        lifecycle_worker_turn_end(worker);
    }
    if (!list_is_empty(&worker->leaving_watches))
        leave_watches(worker);
}

static void on_turn_end(struct loop *loop)
{
    struct worker *worker = loop_user(loop);

    if (UNLIKELY(has_upkeep(worker))) { /* most turns have none: they need not be timed */
        const uint64_t from = tick_now();

        do_upkeep(worker);
        counter_add(&worker->stats.upkeep_ticks, tick_now() - from);
    }
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
        /* For us, not we for it; replicas have a limit of their own. */
        bool waits = client->parked != NULL || (client->flags & (CLIENT_BLOCKED | CLIENT_REPLICA)) != 0;

        client_check_output(client);
        client_show_output(client);
        if (client->large != NULL) /* it arrives without any command's ending */
            client_show_query(client);
        client_note_size(client);
        if (is_late) {
            log_verbose("Closing client that did not complete its TLS handshake addr=%s", client->card.address);
            conn_close(&client->conn);
        } else if (limit_us != 0 && now_us - client->conn.active_us > limit_us && !waits) {
            log_verbose("Closing idle client id=%llu addr=%s", (unsigned long long)client->id, client->card.address);
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
    }
    lifecycle_worker_second(worker);
    loop_timer_start(loop, timer, SECOND_US, every_second);
}

static void sample_rates(struct loop *loop, struct loop_timer *timer)
{
    struct worker *worker = loop_user(loop);

    server_sample_rates(worker->server);
    lifecycle_server_sample(worker->server);
    loop_timer_start(loop, timer, SECOND_US / 10, sample_rates);
}

/* ------------------------------------------------------------------------------------------------------- thread -- */

void worker_run(void *argument)
{
    struct worker *worker = argument;

    self = worker;
    worker_adopt(worker);
    worker->sink.pool = loop_output_pool(worker->loop);
    log_notice("Thread %u alive.", worker->index);
    lifecycle_worker_start(worker);
    loop_timer_start(worker->loop, &worker->second_timer, SECOND_US, every_second);
    if (worker->index == 0)
        loop_timer_start(worker->loop, &worker->rate_timer, SECOND_US / 10, sample_rates);
    while (!atomic_load_explicit(&worker->stop, memory_order_relaxed))
        loop_turn(worker->loop, -1);
    lifecycle_worker_stop(worker);
    client_close_all(worker);
    loop_turn(worker->loop, 0);
    /* With io_uring a connection stays until its operations, which are cancelled now, have ended. */
    for (unsigned i = 0; i < LAST_TURNS_MOST && !list_is_empty(&worker->clients); i++)
        loop_turn(worker->loop, LAST_TURN_US);
    assert(list_is_empty(&worker->clients));
    gate_rest(&worker->member); /* a loader may wait until all have been inside */
    self = NULL;
}
