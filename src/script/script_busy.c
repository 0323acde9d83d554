#include "script/script_busy.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "base/thread.h"
#include "base/tick.h"
#include "script/script_api.h"
#include "script/script_host_priv.h"
#include "server/config/config.h"
#include "server/core/client.h"
#include "server/core/server.h"
#include "server/run/busy.h"
#include "server/run/reentrant.h"
#include "server/upkeep/shutdown.h"

enum { WORDS_SHOWN = 128, SERVE_EVERY_US = 5000, STOP_WAITS_MS = 5000 };

static _Atomic int64_t option_threshold_ms; /* atomic, relaxed */

static struct spinlock lock; /* rank LOCK_REGISTRY */

/* A worker's slow script or function. */
static struct slow {
    bool is_there GUARDED_BY(lock);
    bool is_function GUARDED_BY(lock);
    bool is_of_master GUARDED_BY(lock); /* came with the stream of a master */
    bool has_written GUARDED_BY(lock);
    _Atomic bool is_to_end; /* atomic: relaxed; written with the lock, read by the hook in the script's thread */
    uint64_t started_us GUARDED_BY(lock);
    char *name GUARDED_BY(lock);
    struct slice *words GUARDED_BY(lock); /* of its command; each owned */
    uint32_t word_count GUARDED_BY(lock);
} all[WORKERS_MOST + 1]; /* by index of the worker; the last is of who loads data */

void script_busy_setup_options(void)
{
    static const struct option_row rows[] = {
        ROW_INT("busy-reply-threshold", &option_threshold_ms, 5000, 0, INT64_MAX, OPTION_MUTABLE,
                "Milliseconds after which a script is slow, and other clients get -BUSY instead of waiting; 0: never.",
                .alias = "lua-time-limit"),
    };

    thread_assert_main();
    config_add_rows(rows, countof(rows));
}

void script_busy_setup(void)
{
    thread_assert_main();
    spinlock_init(&lock, LOCK_REGISTRY);
}

static struct slow *slow_of(const struct worker *worker)
{
    assert(worker->index < countof(all));
    return &all[worker->index];
}

static void publish(const struct script_run *run, uint64_t spent_us)
{
    const struct request *request = run->request;
    struct slow *slow = slow_of(request->worker);
    uint32_t count = MIN(request->arg_count, (uint32_t)WORDS_SHOWN);
    struct slice *words = mem_alloc(count * sizeof(*words));
    char *name = mem_copy_text(run->name);

    for (uint32_t i = 0; i < count; i++)
        words[i] = slice_make(mem_copy(request->args[i].data, request->args[i].size), request->args[i].size);
    spinlock_acquire(&lock);
    assert(!slow->is_there && slow->words == NULL);
    slow->is_there = true;
    slow->is_function = run->is_function;
    slow->is_of_master = (request->client->flags & CLIENT_OF_MASTER) != 0;
    slow->has_written = run->wrote;
    slow->started_us = clock_monotonic_us() - spent_us;
    slow->name = name;
    slow->words = words;
    slow->word_count = count;
    spinlock_release(&lock);
}

static enum busy_kind kind_of(const struct script_run *run)
{
    return run->is_function ? BUSY_FUNCTION : BUSY_SCRIPT;
}

static void begin(struct script_run *run, struct worker *worker, uint64_t spent_us)
{
    struct conn *conn = &run->request->client->conn;

    worker_assert_inside(worker);
    assert(!run->is_slow);
    run->is_slow = true;
    run->paused = (run->request->client->flags & CLIENT_OBEYED) == 0 && (conn->flags & CONN_PAUSED) == 0;
    if (run->paused) /* its next commands come after this one */
        conn_pause(conn);
    log_warning("Slow script detected: still in execution after %llu milliseconds. You can try killing the script "
                "using the %s command. Script name is: %s.",
                (unsigned long long)(spent_us / 1000), run->is_function ? "FUNCTION KILL" : "SCRIPT KILL", run->name);
    publish(run, spent_us);
    busy_begin(worker->server, kind_of(run));
}

void script_busy_end(const struct script_run *run)
{
    struct slow *slow, gone;

    if (!run->is_slow)
        return;
    worker_assert_self(run->request->worker);
    busy_end(kind_of(run));
    if (run->paused)
        conn_resume(&run->request->client->conn);
    worker_wake(run->request->worker); /* for events that were not served inside */
    slow = slow_of(run->request->worker);
    spinlock_acquire(&lock);
    assert(slow->is_there);
    gone = *slow;
    *slow = (struct slow){.is_there = false};
    spinlock_release(&lock);
    for (uint32_t i = 0; i < gone.word_count; i++)
        mem_free((char *)(uintptr_t)gone.words[i].data);
    mem_free(gone.words);
    mem_free(gone.name);
}

static bool is_killed(const struct worker *worker)
{
    return atomic_load_explicit(&slow_of(worker)->is_to_end, memory_order_relaxed);
}

static bool server_ends(const struct worker *worker)
{
    return atomic_load_explicit(&worker->server->stopping, memory_order_relaxed) ||
           atomic_load_explicit(&worker->stop, memory_order_relaxed) || shutdown_is_asked();
}

bool script_busy_is_to_end(const struct worker *worker)
{
    return is_killed(worker) || server_ends(worker);
}

uint64_t script_busy_threshold_ms(void)
{
    int64_t threshold_ms = OPTION_GET(option_threshold_ms);

    return threshold_ms != 0 ? (uint64_t)threshold_ms : UINT64_MAX;
}

/* SCRIPT KILL and the first write exclude each other. */
bool script_busy_may_write(const struct script_run *run)
{
    struct slow *slow;
    bool may;

    if (LIKELY(!run->is_slow))
        return true;
    worker_assert_self(run->request->worker);
    slow = slow_of(run->request->worker);
    spinlock_acquire(&lock);
    assert(slow->is_there);
    may = !is_killed(run->request->worker);
    slow->has_written = slow->has_written || may;
    spinlock_release(&lock);
    return may;
}

/* Each instruction from here on raises it again, and so does whatever catches errors (lua_vm_look): no pcall of the
 * script's gets past that. */
static void end_by_error(lua_State *L, struct script_run *run)
{
    run->request->is_cut = !is_killed(run->request->worker);
    script_api_watch_all(L);
    lua_pushliteral(L, "Script killed by user with SCRIPT KILL...");
    lua_error(L);
}

void script_busy_look(lua_State *L, struct script_host *host)
{
    struct script_run *run = host != NULL ? host->run : NULL;
    int64_t threshold_ms = OPTION_GET(option_threshold_ms);
    uint64_t spent_us;

    if (run == NULL)
        return;
    script_host_assert_here(host);
    worker_assert_self(host->worker);
    if (is_killed(host->worker))
        end_by_error(L, run);
    spent_us = tick_to_ns(MAX(tick_now(), run->started_tick) - run->started_tick) / 1000;
    /* A script that is not slow runs to its end: otherwise its writes would be incomplete. */
    if (server_ends(host->worker) && spent_us / 1000 >= (uint64_t)(threshold_ms != 0 ? threshold_ms : STOP_WAITS_MS))
        end_by_error(L, run);
    if ((run->request->client->flags & (CLIENT_OBEYED | CLIENT_OF_MASTER)) == CLIENT_OBEYED)
        return; /* of a file: nobody waits for it, and it takes its time */
    if (!run->is_slow && (threshold_ms == 0 || spent_us / 1000 < (uint64_t)threshold_ms))
        return;
    if (!run->is_slow)
        begin(run, host->worker, spent_us);
    if (clock_monotonic_us() - run->served_us > SERVE_EVERY_US) {
        reentrant_serve(host->worker);
        run->served_us = clock_monotonic_us();
    }
    if (script_busy_is_to_end(host->worker)) /* SHUTDOWN NOSAVE, inside */
        end_by_error(L, run);
}

/* Why it is not to be ended; NULL: it is. */
static const char *refusal_locked(const struct slow *slow, bool function)
{
    spinlock_assert_held(&lock);
    if (slow->is_of_master)
        return "UNKILLABLE The busy script was sent by a master instance in the context of replication and cannot be "
               "killed.";
    if (slow->has_written)
        return "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait "
               "the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.";
    return slow->is_function != function ? busy_error() : NULL;
}

void script_busy_kill(struct request *request, bool function)
{
    const char *error = "NOTBUSY No scripts in execution right now.";
    unsigned killed = 0;

    spinlock_acquire(&lock);
    for (unsigned i = 0; i < countof(all); i++) {
        const char *refusal;

        if (!all[i].is_there)
            continue;
        refusal = refusal_locked(&all[i], function);
        if (refusal == NULL)
            atomic_store_explicit(&all[i].is_to_end, true, memory_order_relaxed);
        else
            error = refusal;
        killed += refusal == NULL;
    }
    spinlock_release(&lock);
    if (killed == 0) {
        reply_error(request, error);
        return;
    }
    log_notice("Lua script killed by user with %s KILL.", function ? "FUNCTION" : "SCRIPT");
    reply_ok(request);
}

static const struct slow *find_function_locked(void)
{
    spinlock_assert_held(&lock);
    for (unsigned i = 0; i < countof(all); i++) {
        if (all[i].is_there && all[i].is_function)
            return &all[i];
    }
    return NULL;
}

void script_busy_reply(struct request *request)
{
    const struct slow *slow;

    spinlock_acquire(&lock);
    slow = find_function_locked();
    if (slow != NULL) {
        reply_map(request, 3);
        reply_text(request, "name");
        reply_text(request, slow->name);
        reply_text(request, "command");
        reply_array(request, slow->word_count);
        for (uint32_t i = 0; i < slow->word_count; i++)
            reply_bulk(request, slow->words[i]);
        reply_text(request, "duration_ms");
        reply_int(request, (int64_t)((clock_monotonic_us() - slow->started_us) / 1000));
    } else {
        reply_null(request);
    }
    spinlock_release(&lock);
}
