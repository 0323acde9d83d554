#include "server/durable/loading.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/thread.h"
#include "persist/rdb_check.h"
#include "persist/rdb_load.h"
#include "server/config/command_block.h"
#include "server/core/lifecycle.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/aof.h"
#include "server/durable/aof_files.h"
#include "server/durable/aof_load.h"
#include "server/durable/aof_lock.h"
#include "server/durable/aof_tail.h"
#include "server/durable/child.h"
#include "server/durable/data_history.h"
#include "server/durable/data_order.h"
#include "server/durable/file_options.h"
#include "server/durable/libraries.h"
#include "server/durable/persistence.h"
#include "server/process/process.h"
#include "store/lazyfree.h"

#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    PAUSE_BYTES = 2 * 1024 * 1024,
    PROGRESS_US = 5 * 1000 * 1000,
    GATE_SPINS = 1000,
    LOCK_WAIT_MS = 2000 /* for a server that is just about to end */
};

const char loading_denial[] = "LOADING Redis is loading the dataset in memory";

static struct {
    struct server *server; /* const while it runs */
    struct thread thread;
    struct gate_member member;
    sem_t woken;                            /* by the gate */
    bool has_woken;                         /* the semaphore was made */
    sem_t begun;                            /* by each worker, if data is loaded at start */
    bool loads_at_start;                    /* const since before the workers start */
    void (*leave)(void);                    /* const; NULL: nothing to do in the end */
    void (*loaded)(void);                   /* const; NULL: nobody wants to know */
    void (*flushed)(struct worker *);       /* likewise */
    _Atomic bool is_used;                   /* atomic: release, acquire; hands the fields below over */
    _Atomic bool replaces, is_cancelled;    /* atomic: relaxed */
    struct loading_replacement replacement; /* the loader's, as are the next fields */
    struct file *file;                      /* NULL: the data comes from the append-only file, or is replaced */
    struct aof_manifest manifest;
    struct worker *worker; /* for the AOF's commands, and a replacement's listeners; NULL: there are none */
    struct access access;
    struct store_counters counters;
    struct sources {
        struct slice *items; /* owned */
        uint32_t count, capacity;
    } libraries; /* of the file, if the old data stays while it is read */
    uint64_t next_progress_us;
    /* atomic, relaxed: for INFO */
    _Atomic int64_t start_s, start_us;
    _Atomic uint64_t total_bytes, loaded_bytes, keys, memory_bytes;
} loader;

#define GET(field) atomic_load_explicit(&loader.field, memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&loader.field, (value), memory_order_relaxed)

void loading_stats(struct loading_stats *stats)
{
    int64_t spent_us = (int64_t)clock_monotonic_us() - GET(start_us);

    *stats = (struct loading_stats){.start_s = GET(start_s),
                                    .total_bytes = GET(total_bytes),
                                    .loaded_bytes = GET(loaded_bytes),
                                    .keys = GET(keys),
                                    .memory_bytes = GET(memory_bytes),
                                    .eta_s = -1};
    stats->expected_bytes = stats->total_bytes != 0 ? stats->total_bytes : stats->memory_bytes;
    if (stats->loaded_bytes != 0 && stats->expected_bytes >= stats->loaded_bytes)
        stats->eta_s = (int64_t)((double)spent_us / (double)stats->loaded_bytes *
                                 (double)(stats->expected_bytes - stats->loaded_bytes) / 1e6);
}

static void begin_progress(uint64_t total_bytes)
{
    SET(total_bytes, total_bytes);
    SET(loaded_bytes, 0);
    SET(keys, 0);
    SET(memory_bytes, 0);
    SET(start_s, (int64_t)time(NULL));
    SET(start_us, (int64_t)clock_monotonic_us());
    loader.next_progress_us = clock_monotonic_us() + PROGRESS_US;
}

/* -------------------------------------------------------------------------------------------------- the gate -- */

static void wake(void *context)
{
    (void)context;
    spinlock_assert_may_sleep();
    (void)sem_post(&loader.woken);
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR)
        ;
}

static void own_gate(void)
{
    while (!gate_try_own(&loader.member, GATE_SPINS))
        wait_for(&loader.woken);
    gate_assert_owned(&loader.member);
}

static void join_gate(void)
{
    if (!loader.has_woken)
        (void)sem_init(&loader.woken, 0, 0);
    loader.has_woken = true; /* a last wake may come after the end: it stays */
    gate_join(&loader.server->gate, &loader.member, wake, NULL);
}

static void tell_progress(uint64_t bytes, uint64_t keys)
{
    uint64_t now = clock_monotonic_us(), total = GET(total_bytes);

    SET(loaded_bytes, bytes);
    SET(keys, keys);
    if (now < loader.next_progress_us || total == 0)
        return;
    loader.next_progress_us = now + PROGRESS_US;
    log_notice("Loading: %.1f %%, %" PRIu64 " keys", (double)bytes * 100 / (double)total, keys);
}

static bool is_wanted(void)
{
    return !server_is_stopping(loader.server) && !GET(is_cancelled);
}

/* Exclusive commands that do not need the data (CONFIG) get their turn. */
static bool pause_loading(uint64_t bytes, uint64_t keys, void *context)
{
    gate_assert_owned(&loader.member);
    (void)context;
    tell_progress(bytes, keys);
    gate_open(&loader.member);
    own_gate();
    return is_wanted();
}

/* ------------------------------------------------------------------------------------------------------ loading -- */

static void take_aux(struct slice name, struct slice value, void *context)
{
    uint64_t bytes;

    (void)context;
    if (slice_equal(name, SLICE("used-mem")) && number_parse_u64(value, &bytes))
        SET(memory_bytes, bytes);
    log_debug("AUX field of the file: %.*s: %.*s", (int)MIN(name.size, (size_t)100), name.data,
              (int)MIN(value.size, (size_t)100), value.data);
}

static const char *remedy(enum status status)
{
    switch (status) {
    case STATUS_UNSUPPORTED:
        return "Load it with a server that supports this, or move it away to start without data.";
    case STATUS_IO:
    case STATUS_NO_MEMORY:
    case STATUS_DENIED:
        return "Remove the cause and start again.";
    default:
        return "Restore it from a copy, or move it away to start without data.";
    }
}

static void refuse(const char *what, const char *reason, enum status status)
{
    char path[FILE_PATH_SPACE];

    file_full_path(path, persistence_file());
    log_warning("Can't %s %s: %s. The server does not start, and does not change the file. %s", what, path, reason,
                remedy(status));
}

static void NORETURN end_process(void)
{
    process_remove_pidfile();
    aof_lock_leave();
    _exit(EXIT_FAILURE);
}

static void NORETURN refuse_to_start(const struct rdb_load_result *result)
{
    char reason[sizeof(result->error) + 64];

    (void)snprintf(reason, sizeof(reason), "at byte %" PRIu64 ": %s", result->failed_at, result->error);
    refuse("load", reason, result->status);
    end_process();
}

static void finish(const struct rdb_load_result *result, const char *from)
{
    double seconds = (double)((int64_t)clock_monotonic_us() - GET(start_us)) / 1e6;

    if (result->empty != 0)
        log_notice("Done loading RDB, keys loaded: %" PRIu64 ", keys expired: %" PRIu64 ", empty keys skipped: %" PRIu64
                   ".",
                   result->keys, result->expired, result->empty);
    else
        log_notice("Done loading RDB, keys loaded: %" PRIu64 ", keys expired: %" PRIu64 ".", result->keys,
                   result->expired);
    log_notice("DB loaded from %s: %.3f seconds", from, seconds);
    persistence_note_loaded(result->keys, result->expired);
}

/* What a server that goes on in the file's history must not drop silently: its replicas have the keys, and hear of
 * their end when they are found to be past their deadlines. */
struct start_load {
    struct rdb_load_request request;
    struct data_history_found found;
    struct data_order_found order;
};

static void take_aux_at_start(struct slice name, struct slice value, void *context)
{
    struct start_load *load = context;

    take_aux(name, value, NULL);
    data_history_take(&load->found, name, value);
    data_order_take(&load->order, name, value);
    if (data_history_is_whole(&load->found))
        load->request.keeps_expired = true;
}

/* What was loaded is nothing without it: a node that had forgotten what it has would shadow what is younger. */
static void restore_order(struct access *access, const struct data_order_found *order)
{
    struct rdb_load_result result = {.status = STATUS_CORRUPT};
    char error[DATA_ORDER_ERROR_BYTES];

    if (data_order_restore(access, order, error))
        return;
    (void)snprintf(result.error, sizeof(result.error), "%s", error);
    refuse_to_start(&result);
}

static void load_rdb(void)
{
    struct start_load load = {.found = {.has_id = false}};
    struct rdb_load_result result;
    struct file_source source;
    enum status status;
    bool good = false;

    assert(loader.file != NULL);
    access_init(&loader.access, loader.server->store, &loader.counters);
    access_begin(&loader.access, clock_wall_ms(), true);
    if (role_follows())
        access_follow(&loader.access);
    persistence_fill_load(&load.request, &loader.access);
    load.request.pause = pause_loading;
    load.request.pause_bytes = PAUSE_BYTES;
    load.request.aux = take_aux_at_start;
    load.request.context = &load;
    errno = 0;
    status = file_source_init(&source, loader.file);
    if (status == STATUS_OK) {
        good = rdb_load(&source.source, &load.request, &result);
    } else {
        result = (struct rdb_load_result){.status = status};
        (void)snprintf(result.error, sizeof(result.error), "its size is unknown: %s", strerror(errno));
    }
    if (!good && result.status != STATUS_INTERRUPTED)
        refuse_to_start(&result);
    if (good && !role_follows()) { /* those that were kept for replicas go as soon as it serves */
        result.keys -= result.overdue;
        result.expired += result.overdue;
    }
    if (good)
        finish(&result, "disk");
    if (good)
        restore_order(&loader.access, &load.order);
    data_order_found_fini(&load.order);
    if (good && data_history_is_whole(&load.found))
        data_history_restore(&load.found.history);
    file_close(&loader.file);
}

static bool pause_aof(uint64_t bytes, uint64_t keys)
{
    return pause_loading(bytes, keys, NULL);
}

static void load_aof(void)
{
    struct data_order_found order = {.state = {0}};
    const struct aof_load_request request = {.worker = loader.worker,
                                             .pause = pause_aof,
                                             .aux = take_aux,
                                             .order = &order,
                                             .pause_bytes = PAUSE_BYTES,
                                             .at_start = true};
    struct aof_load_result result;

    if (aof_load_run(&loader.manifest, &request, &result)) {
        persistence_note_loaded(result.keys, 0);
        restore_order(&loader.worker->run.access, &order);
    } else if (!result.interrupted)
        end_process();
    data_order_found_fini(&order);
    aof_manifest_fini(&loader.manifest);
}

/* What the thread made for loading. */
static void end(void)
{
    if (loader.leave != NULL)
        loader.leave();
    if (loader.worker != NULL)
        worker_fini(loader.worker);
    mem_free(loader.worker);
    loader.worker = NULL;
}

static void run(void *argument)
{
    (void)argument;
    gate_take_over(&loader.member);
    gate_assert_owned(&loader.member);
    if (loader.worker != NULL)
        worker_adopt(loader.worker);
    for (unsigned i = 0; i < loader.server->worker_count; i++)
        wait_for(&loader.begun);
    if (loader.worker != NULL)
        load_aof();
    else
        load_rdb();
    end();
    if (loader.loaded != NULL)
        loader.loaded();
    assert(loading_runs());
    command_block_set(COMMAND_BLOCK_LOADING, false);
    gate_open(&loader.member);
    gate_part(&loader.member);
    atomic_store_explicit(&loader.is_used, false, memory_order_release);
}

/* ---------------------------------------------------------------------------------------------------- replacing -- */

static void rest_for_source(bool begins, void *context)
{
    (void)context;
    if (begins)
        gate_open(&loader.member);
    else
        own_gate();
}

/* A store that is filled while the other one is served. */
struct aside {
    struct gate gate;
    struct gate_member member;
    struct store *store;
};

static void take_aux_of_other(struct slice name, struct slice value, void *context)
{
    take_aux(name, value, context);
    if (loader.replacement.aux != NULL)
        loader.replacement.aux(name, value, loader.replacement.context);
}

/* As FLUSHALL, but without journaling it: what follows belongs to another history. */
static void flush(bool in_background)
{
    struct access *access = &loader.worker->run.access;

    gate_assert_owned(&loader.member);
    access_flush_all(access, in_background);
    libraries_flush();
}

/* Into the store of the access. */
static bool load_replacement(struct rdb_load_request *request, struct rdb_load_result *result)
{
    request->keeps_expired = true; /* the stream behind the file says when a key is gone */
    request->pause_bytes = PAUSE_BYTES;
    request->aux = take_aux_of_other;
    if (rdb_load(loader.replacement.source, request, result) && is_wanted())
        return true;
    if (!is_wanted())
        result->status = STATUS_INTERRUPTED;
    return false;
}

static bool fail_with_errno(struct rdb_load_result *result, const char *what)
{
    result->status = STATUS_IO;
    (void)snprintf(result->error, sizeof(result->error), "%s: %s", what, strerror(errno));
    return false;
}

static bool open_worker(struct rdb_load_result *result)
{
    loader.worker = mem_alloc(sizeof(*loader.worker));
    worker_init(loader.worker, loader.server, WORKER_OF_LOADER);
    if (worker_open_loop(loader.worker))
        return true;
    *result = (struct rdb_load_result){.status = STATUS_IO};
    return fail_with_errno(result, "no event loop");
}

static void begin_access(struct access *access)
{
    access_begin(access, clock_wall_ms(), true);
    access_follow(access);
}

/* Those who listen, and clients that wait for keys, before any client can see the new data. */
static void tell_listeners(void)
{
    struct access *access = &loader.worker->run.access;

    gate_assert_owned(&loader.member);
    if (loader.flushed != NULL)
        loader.flushed(loader.worker);
    access->settle(access);
    lazyfree_after_release(access);
}

/* The data is what it will be. Clients are let in first, as far as the gate lets them: who is told the end, and says so
 * (a link that is up), must not be contradicted by an error that data is being loaded. */
static void conclude(enum command_block block, const struct rdb_load_result *result, enum loading_end end)
{
    gate_assert_owned(&loader.member);
    command_block_set(block, false);
    if (end == LOADING_REPLACED)
        finish(result, "the master");
    loader.replacement.done(result, end, loader.replacement.context);
    if (end == LOADING_REPLACED)
        aof_restart();
}

/* Parked commands are checked again. */
static void wake_workers(void)
{
    for (unsigned i = 0; i < loader.server->worker_count; i++)
        worker_wake_parked(&loader.server->workers[i], PARKING_GATE);
}

/* --- libraries of functions --- */

static void sources_add(struct slice source, void *context)
{
    struct sources *sources = context;

    *ARRAY_PUSH(sources) = slice_make(mem_copy(source.data, source.size), source.size);
}

static void sources_fini(struct sources *sources)
{
    for (uint32_t i = 0; i < sources->count; i++)
        mem_free((void *)(uintptr_t)sources->items[i].data);
    ARRAY_FINI(sources);
}

static bool load_libraries(const struct sources *sources, char *error, size_t error_size)
{
    libraries_flush();
    for (uint32_t i = 0; i < sources->count; i++) {
        if (!libraries_load(sources->items[i], false, error, error_size))
            return false;
    }
    return true;
}

/* False: they cannot be loaded. Those before are back then, and also if the others were only to be tried. */
static bool exchange_libraries(bool only_tries, struct rdb_load_result *result)
{
    struct sources before = {0};
    char error[160] = "";
    bool good;

    gate_assert_owned(&loader.member);
    libraries_each(sources_add, &before);
    good = load_libraries(&loader.libraries, error, sizeof(error));
    if (!good) {
        result->status = STATUS_INVALID;
        (void)snprintf(result->error, sizeof(result->error), "a library of functions cannot be loaded: %s", error);
    }
    if ((!good || only_tries) && !load_libraries(&before, error, sizeof(error)))
        log_warning("A library of functions is lost: %s", error);
    sources_fini(&before);
    return good;
}

/* --- in place --- */

static bool rewind_source(struct rdb_load_result *result)
{
    return loader.replacement.rewind(loader.replacement.context) ||
           fail_with_errno(result, "the file cannot be read again");
}

/* The limits of values are those of the present: options, which the gate keeps as they are. */
static void fill_check(struct rdb_check *check)
{
    struct rdb_load_request request;

    own_gate();
    persistence_fill_load(&request, &loader.worker->run.access);
    gate_open(&loader.member);
    *check = (struct rdb_check){.limits = request.limits,
                                .database_count = loader.server->store->database_count,
                                .checks_sum = request.checks_sum,
                                .pause_bytes = PAUSE_BYTES,
                                .pause = is_wanted,
                                .library = sources_add,
                                .context = &loader.libraries};
}

static bool try_libraries(struct rdb_load_result *result)
{
    bool good;

    if (loader.libraries.count == 0)
        return true;
    own_gate();
    good = exchange_libraries(true, result);
    gate_open(&loader.member);
    return good;
}

/* Reads the whole file while the gate is open and the old data is served. A file without a checksum is read once more,
 * and its values are made. The source is at its start then. */
static bool check_source(struct rdb_load_result *result)
{
    struct rdb_check check;
    bool is_summed, good;

    fill_check(&check);
    good = rdb_check(loader.replacement.source, &check, result, &is_summed) && rewind_source(result);
    if (good && !is_summed) {
        check.checks_sum = false;
        check.makes_values = true;
        check.library = NULL;
        good = rdb_check(loader.replacement.source, &check, result, &is_summed) && rewind_source(result);
    }
    good = good && try_libraries(result);
    if (good && loader.replacement.found_whole != NULL && !loader.replacement.found_whole(loader.replacement.context))
        return fail_with_errno(result, "the file cannot be put in its place");
    return good;
}

static void begin_part(void)
{
    gate_assert_owned(&loader.member);
    loader.replacement.part(loader.worker, loader.replacement.context);
}

/* The old data is gone from here on. */
static bool load_in_place(bool is_checked, struct rdb_load_result *result)
{
    struct rdb_load_request request;
    bool good;

    begin_access(&loader.worker->run.access);
    child_stop(CHILD_RDB); /* its file would be older than this data */
    aof_suspend();
    if (loader.replacement.part == NULL)
        flush(loader.replacement.frees_later);
    else
        begin_part();
    tell_listeners(); /* what was listed for them must not stay while the gate is open */
    persistence_fill_load(&request, &loader.worker->run.access);
    request.checks_sum = request.checks_sum && !is_checked;
    request.replaces = loader.replacement.part != NULL;
    request.pause = pause_loading;
    request.may_wait = loader.replacement.may_wait;
    request.rest = rest_for_source;
    good = load_replacement(&request, result);
    if (good)
        access_note_loaded(&loader.worker->run.access);
    else
        flush(loader.replacement.frees_later);
    if (good && loader.replacement.loaded != NULL)
        loader.replacement.loaded(loader.worker, loader.replacement.context);
    tell_listeners();
    return good;
}

static void replace_in_place(void)
{
    struct rdb_load_result result = {.status = STATUS_INTERRUPTED};
    const bool checks = loader.replacement.rewind != NULL;
    enum loading_end end = LOADING_KEPT;
    bool good = open_worker(&result) && is_wanted() && (!checks || check_source(&result));

    own_gate();
    command_block_set(COMMAND_BLOCK_LOADING, true);
    wake_workers(); /* commands that wait for the gate get the error at once */
    if (good && !is_wanted())
        result.status = STATUS_INTERRUPTED;
    else if (good && loader.replacement.may_replace != NULL &&
             !loader.replacement.may_replace(loader.replacement.context))
        result.status = STATUS_DENIED;
    else if (good)
        end = load_in_place(checks, &result) ? LOADING_REPLACED : LOADING_LOST;
    conclude(COMMAND_BLOCK_LOADING, &result, end);
    gate_open(&loader.member);
    sources_fini(&loader.libraries);
}

/* --- beside the old data --- */

static bool keep_library(struct slice source, bool replaces, char *error, size_t error_size)
{
    (void)replaces;
    (void)error;
    (void)error_size;
    sources_add(source, &loader.libraries);
    return true;
}

static bool pause_aside(uint64_t bytes, uint64_t keys, void *context)
{
    (void)context;
    tell_progress(bytes, keys);
    return is_wanted();
}

/* A store of our own has a gate of its own, which only this thread passes. */
static void own_aside_gate(struct aside *aside)
{
    while (!gate_try_own(&aside->member, 0)) {
    }
}

static bool load_aside(struct aside *aside, struct rdb_load_result *result)
{
    struct rdb_load_request request;
    bool good;

    own_aside_gate(aside);
    access_init(&loader.access, aside->store, &loader.counters);
    begin_access(&loader.access);
    persistence_fill_load(&request, &loader.access);
    request.library = keep_library;
    request.pause = pause_aside;
    good = load_replacement(&request, result);
    gate_open(&aside->member);
    return good;
}

static void exchange(struct aside *aside)
{
    gate_assert_owned(&loader.member);
    child_stop(CHILD_RDB);
    aof_suspend();
    begin_access(&loader.worker->run.access);
    access_exchange(&loader.worker->run.access, aside->store);
    tell_listeners();
}

static void end_aside(struct aside *aside)
{
    own_aside_gate(aside);
    store_destroy(&aside->store);
    gate_open(&aside->member);
    gate_part(&aside->member);
    gate_fini(&aside->gate);
    sources_fini(&loader.libraries);
}

static void no_wake(void *context)
{
    (void)context;
}

static void replace_aside(void)
{
    struct rdb_load_result result = {.status = STATUS_INTERRUPTED};
    struct aside aside = {.store = store_create_like(loader.server->store)};
    bool good;

    gate_init(&aside.gate);
    gate_join(&aside.gate, &aside.member, no_wake, NULL);
    command_block_set(COMMAND_BLOCK_LOADING_ASIDE, true);
    good = open_worker(&result) && is_wanted() && load_aside(&aside, &result);
    own_gate();
    good = good && is_wanted() && exchange_libraries(false, &result);
    if (good)
        exchange(&aside);
    conclude(COMMAND_BLOCK_LOADING_ASIDE, &result, good ? LOADING_REPLACED : LOADING_KEPT);
    gate_open(&loader.member);
    end_aside(&aside);
}

/* --- the thread --- */

static void replace(void *argument)
{
    (void)argument;
    if (loader.replacement.keeps_old)
        replace_aside();
    else
        replace_in_place();
    gate_part(&loader.member);
    worker_run_deferred(loader.worker);
    end();
    SET(replaces, false);
    atomic_store_explicit(&loader.is_used, false, memory_order_release);
    wake_workers(); /* for background work that found data being loaded, as the append-only file that begins anew */
}

bool loading_replace(const struct loading_replacement *replacement)
{
    struct server *server = server_instance();
    bool is_used = false;

    spinlock_assert_may_sleep();
    assert(replacement->source != NULL && replacement->done != NULL);
    if (server_is_stopping(server) ||
        !atomic_compare_exchange_strong_explicit(&loader.is_used, &is_used, true, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    thread_join(&loader.thread); /* the last one has nothing left to do */
    loader.server = server;
    loader.replacement = *replacement;
    SET(is_cancelled, false);
    SET(replaces, true);
    begin_progress(replacement->total_bytes);
    join_gate();
    thread_start(&loader.thread, "loader", replace, NULL);
    return true;
}

void loading_cancel(void)
{
    if (GET(replaces))
        SET(is_cancelled, true);
}

bool loading_replaces(void)
{
    return GET(replaces);
}

/* ------------------------------------------------------------------------------------------------------ at start -- */

/* Each worker has said that it runs. Loading begins behind the last one: so what keeps the server from starting is the
 * last that its log tells. */
static void worker_starts(struct worker *worker)
{
    worker_assert_self(worker);
    if (loader.loads_at_start)
        (void)sem_post(&loader.begun);
}

void loading_on_end(void (*leave)(void))
{
    gate_assert_main_alone();
    assert(loader.server == NULL);
    loader.leave = leave;
}

void loading_on_loaded(void (*loaded)(void))
{
    gate_assert_main_alone();
    assert(loader.server == NULL);
    loader.loaded = loaded;
}

void loading_on_flush(void (*flushed)(struct worker *worker))
{
    gate_assert_main_alone();
    assert(loader.server == NULL);
    loader.flushed = flushed;
}

enum found { FOUND_NOTHING, FOUND_DATA, FOUND_TROUBLE };

static enum found find_rdb(uint64_t *size)
{
    enum status status = file_open(&loader.file, persistence_file(), FILE_READ);

    if (status == STATUS_NOT_FOUND)
        return FOUND_NOTHING;
    if (status == STATUS_OK)
        status = file_size(loader.file, size);
    if (status == STATUS_OK)
        return FOUND_DATA;
    refuse("open", strerror(errno), STATUS_IO);
    file_close(&loader.file);
    return FOUND_TROUBLE;
}

static enum found find_aof(struct server *server, uint64_t *size)
{
    if (!aof_lock_acquire(LOCK_WAIT_MS)) {
        log_warning("The server does not start, and does not change the files.");
        return FOUND_TROUBLE;
    }
    switch (aof_files_find(true, &loader.manifest, size)) {
    case AOF_FOUND_NOTHING:
        return FOUND_NOTHING;
    case AOF_FOUND_TROUBLE:
        return FOUND_TROUBLE;
    case AOF_FOUND:
        if (!aof_tail_recover(&loader.manifest))
            return FOUND_TROUBLE;
        break;
    }
    loader.worker = mem_alloc(sizeof(*loader.worker));
    worker_init(loader.worker, server, WORKER_OF_LOADER);
    if (worker_open_loop(loader.worker))
        return FOUND_DATA;
    log_warning("Can't load the append-only file: %s", strerror(errno));
    return FOUND_TROUBLE;
}

/* If there is no append-only file yet, though the option is on, there may be a snapshot: switching the option on must
 * not lose its data. */
static enum found find_data(struct server *server, uint64_t *size)
{
    enum found found = OPTION_IS(option_appendonly) ? find_aof(server, size) : FOUND_NOTHING;

    if (found != FOUND_NOTHING)
        return found;
    found = find_rdb(size);
    if (found == FOUND_DATA && OPTION_IS(option_appendonly))
        log_notice("No append-only file yet: loading the data from %s", persistence_file());
    return found;
}

bool loading_start(struct server *server)
{
    uint64_t size = 0;
    enum found found = find_data(server, &size);

    gate_assert_main_alone();
    assert(loader.server == NULL);
    if (found == FOUND_NOTHING && loader.loaded != NULL)
        loader.loaded();
    if (found != FOUND_DATA)
        return found == FOUND_NOTHING;
    loader.server = server;
    loader.loads_at_start = true;
    begin_progress(size);
    (void)sem_init(&loader.begun, 0, 0);
    loader.is_used = true;
    join_gate();
    own_gate(); /* nobody is inside yet */
    command_block_set(COMMAND_BLOCK_LOADING, true);
    gate_hand_over(&loader.member);
    thread_start(&loader.thread, "loader", run, NULL);
    return true;
}

void loading_join(void)
{
    gate_assert_main_alone();
    thread_join(&loader.thread);
}

const struct lifecycle loading_lifecycle = {
    .worker_start = worker_starts,
};
