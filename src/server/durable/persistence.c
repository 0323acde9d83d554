#include "server/durable/persistence.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/status.h"
#include "base/version.h"
#include "persist/rdb_load.h"
#include "persist/rdb_payload.h"
#include "persist/rdb_save.h"
#include "server/config/command_block.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/config/save_points.h"
#include "server/core/exclusive.h"
#include "server/core/lifecycle.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/durable/child.h"
#include "server/durable/data_history.h"
#include "server/durable/data_order.h"
#include "server/durable/file_options.h"
#include "server/durable/libraries.h"
#include "server/durable/loading.h"
#include "server/process/reaper.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RETRY_S = 5, TEMP_NAME_BYTES = 64, AUX_MOST = 5 + DATA_HISTORY_FACTS + PERSISTENCE_SYNC_FACTS + 1 };

const char persistence_denial[] =
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that "
    "may modify the data set are disabled, because this instance is configured to report errors during writes if RDB "
    "snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB "
    "error.";

static struct {
    struct rdb_limits (*limits)(void);   /* const */
    char own_temp_path[TEMP_NAME_BYTES]; /* const: of files that no child writes */
    _Atomic bool writes_own;             /* atomic: there may be such a file now; read in a signal's handler */
    int64_t wish_seconds, wish_changes;  /* worker 0's: why */
    struct data_history history;         /* of the moment that was noted last; owner: who owns the gate */
    bool has_history;
    struct data_order order; /* likewise, or the forked child; empty: files have none */
    /* atomic, relaxed: each is one number, and they need not fit together */
    _Atomic uint64_t saved_changes; /* changes that the last snapshot has */
    _Atomic uint64_t child_changes; /* changes that the running child's file has */
    _Atomic int64_t last_save_s, last_try_s, started_us, last_duration_s;
    _Atomic bool last_was_good, is_scheduled;
    _Atomic uint64_t saves, failures, last_cow_bytes, loaded, expired_at_load;
} state = {.last_was_good = true, .last_duration_s = -1};

#define GET(field) atomic_load_explicit(&state.field, memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&state.field, (value), memory_order_relaxed)

static uint64_t all_changes(void)
{
    const struct server *server = server_instance();
    uint64_t sum = 0;

    for (unsigned i = 0; server != NULL && i < server->worker_count; i++)
        sum += atomic_load_explicit(&server->workers[i].counters.dirty, memory_order_relaxed);
    return sum;
}

uint64_t persistence_changes(void)
{
    uint64_t changes = all_changes(), saved = GET(saved_changes);

    return changes > saved ? changes - saved : 0;
}

static void update_denial(void)
{
    command_block_set(COMMAND_BLOCK_UNSAVED, !GET(last_was_good) && rdb_stops_writes() && save_points_exist());
}

static const char *apply_denial(const struct option_row *row)
{
    gate_assert_alone();
    (void)row;
    update_denial();
    return NULL;
}

/* ------------------------------------------------------------------------------------------------------ saving -- */

/* What a file has beside the keys. */
struct plan {
    struct rdb_save_request request;
    char bits[NUMBER_I64_SPACE], time[NUMBER_I64_SPACE], memory[NUMBER_I64_SPACE];
    struct data_history history; /* the facts point into it */
    struct data_history_texts texts;
    struct rdb_aux aux[AUX_MOST];
};

/* What a child or thread writes, its moment's options and facts. Owner: who owns the gate while it does not run, then
 * itself. One for the server's own files, one for syncs. */
struct child_plan {
    struct plan plan;
    struct data_order order; /* the plan points into it: SAVE, while it runs, notes another moment */
    struct {
        struct slice *items; /* owned; they stay until the next file begins */
        uint32_t count, capacity;
    } libraries;
};

static struct child_plan file_plan, sync_plan;

/* Of BGSAVE, likewise. */
static struct {
    char path[FILE_PATH_SPACE]; /* in full, as the working directory may change */
    char temp_path[FILE_PATH_SPACE];
} child_file;

static struct slice number_text(char room[NUMBER_I64_SPACE], uint64_t number)
{
    return slice_make(room, number_format_u64(room, number));
}

static void add_aux(struct plan *plan, struct slice name, struct slice value)
{
    assert(plan->request.aux_count < AUX_MOST);
    plan->aux[plan->request.aux_count++] = (struct rdb_aux){name, value};
}

static void make_plan(struct plan *plan)
{
    int64_t policy = OPTION_GET(option_maxmemory_policy);

    gate_assert_alone();
    plan->request = (struct rdb_save_request){
        .options = rdb_file_options(),
        .use = (policy & POLICY_LFU) != 0   ? RDB_USE_FREQUENCY
               : (policy & POLICY_LRU) != 0 ? RDB_USE_IDLE
                                            : RDB_USE_NOTHING,
        .lfu = {(uint32_t)OPTION_GET(option_lfu_log_factor), (uint32_t)OPTION_GET(option_lfu_decay_time)},
        .aux = plan->aux,
        .libraries = libraries_each,
        /* The master's stream says when they go, or that they stay; or an import's source. */
        .with_expired = role_follows() || store_is_importing(server_instance()->store),
        .starts_writeback = rdb_starts_writeback(),
        .key_delay_us = rdb_save_delay_us(),
    };
    add_aux(plan, SLICE("redis-ver"), SLICE(KEYDB_REDIS_VERSION));
    add_aux(plan, SLICE("redis-bits"), number_text(plan->bits, sizeof(void *) * 8));
    add_aux(plan, SLICE("ctime"), number_text(plan->time, (uint64_t)time(NULL)));
    add_aux(plan, SLICE("used-mem"), number_text(plan->memory, mem_used()));
}

static void add_order(struct plan *plan, const struct data_order *order)
{
    assert(plan->request.aux_count < AUX_MOST);
    data_order_fill_save(order, &plan->request, plan->aux + plan->request.aux_count);
}

/* With the point of which history the keys are, as noted when they were fixed. */
static void make_whole_plan(struct plan *plan, const struct data_order *order)
{
    make_plan(plan);
    add_aux(plan, SLICE("aof-base"), SLICE("0"));
    if (state.has_history) {
        plan->history = state.history;
        data_history_write(&plan->history, &plan->texts, plan->aux + plan->request.aux_count);
        plan->request.aux_count += DATA_HISTORY_FACTS;
        /* A server that goes on from this file in the same history has to tell its replicas that they are gone. */
        plan->request.with_expired = true;
    }
    add_order(plan, order);
}

static void keep_library(struct slice source, void *context)
{
    struct child_plan *its = context;

    *ARRAY_PUSH(&its->libraries) = slice_make(mem_copy(source.data, source.size), source.size);
}

static void each_library(const struct child_plan *its, void (*take)(struct slice source, void *context), void *context)
{
    for (uint32_t i = 0; i < its->libraries.count; i++)
        take(its->libraries.items[i], context);
}

void persistence_each_library(void (*take)(struct slice source, void *context), void *context)
{
    each_library(&file_plan, take, context);
}

static void each_library_of_sync(void (*take)(struct slice source, void *context), void *context)
{
    each_library(&sync_plan, take, context);
}

static void forget_libraries(struct child_plan *its)
{
    for (uint32_t i = 0; i < its->libraries.count; i++)
        mem_free((void *)(uintptr_t)its->libraries.items[i].data);
    ARRAY_FINI(&its->libraries);
}

/* What a child cannot ask for later. */
static struct plan *begin_child_plan(struct child_plan *its)
{
    gate_assert_alone();
    forget_libraries(its);
    libraries_each(keep_library, its);
    data_order_copy(&its->order, &state.order);
    return &its->plan;
}

static struct plan *begin_file_plan(void)
{
    assert(!child_runs(CHILD_RDB) && !child_runs(CHILD_AOF));
    return begin_child_plan(&file_plan);
}

static struct plan *begin_sync_plan(void)
{
    assert(!child_runs(CHILD_SYNC) && !child_runs(CHILD_STATE));
    return begin_child_plan(&sync_plan);
}

void persistence_note_moment(void)
{
    gate_assert_alone();
    state.has_history = data_history_now(&state.history);
    data_order_now(&state.order);
}

/* In the folder of the file: of a name that another process can have left only if it had this number. */
static void make_temp_path(char path[TEMP_NAME_BYTES], int64_t pid)
{
    (void)snprintf(path, TEMP_NAME_BYTES, "temp-%" PRId64 ".rdb", pid);
    (void)!file_remove(path);
}

void persistence_give_up_from_signal(void)
{
    if (atomic_load(&state.writes_own))
        (void)unlink(state.own_temp_path);
}

const char *persistence_file(void)
{
    gate_assert_alone();
    return rdb_file_name();
}

/* Who sees the count sees all that the failed one did. */
static void note_failed(void)
{
    SET(last_was_good, false);
    (void)atomic_fetch_add_explicit(&state.failures, 1, memory_order_release);
}

static void note_saved(uint64_t changes)
{
    SET(saved_changes, changes);
    SET(last_save_s, (int64_t)time(NULL));
    SET(last_was_good, true);
    SET(failures, 0);
    (void)atomic_fetch_add_explicit(&state.saves, 1, memory_order_relaxed);
    update_denial();
    data_order_stored();
}

must_check static enum status save_own(struct snapshot *keys, struct rdb_save_result *result)
{
    struct plan plan;

    make_whole_plan(&plan, &state.order);
    plan.request.keys = keys;
    return rdb_save(persistence_file(), state.own_temp_path, &plan.request, result);
}

bool persistence_save(struct access *access)
{
    struct snapshot keys = snapshot_of_access(access);
    struct rdb_save_result result;
    enum status status;

    gate_assert_alone();
    persistence_note_moment();
    make_temp_path(state.own_temp_path, (int64_t)getpid());
    assert(!atomic_load(&state.writes_own));
    atomic_store(&state.writes_own, true);
    status = save_own(&keys, &result);
    atomic_store(&state.writes_own, false);
    if (status != STATUS_OK) { /* the client of SAVE gets the error: no reason to refuse writes */
        log_warning("Error saving the data: %s", result.error);
        return false;
    }
    log_notice("DB saved on disk");
    log_notice("RDB: %" PRIu64 " keys, %" PRIu64 " bytes, version %d", result.keys, result.bytes, result.version);
    note_saved(all_changes() + access->dirty); /* changes of this command are counted when it ends */
    return true;
}

void persistence_prepare_base(const struct persistence_base *base)
{
    struct plan *plan = begin_file_plan();

    gate_assert_alone();
    make_plan(plan);
    add_aux(plan, SLICE("aof-base"), SLICE("1"));
    add_order(plan, &file_plan.order);
    plan->request.starts_writeback = base->starts_writeback;
    plan->request.libraries = persistence_each_library;
}

enum status persistence_save_base(const struct persistence_base *base, struct snapshot *keys, char *error,
                                  size_t error_size)
{
    struct rdb_save_request request = file_plan.plan.request;
    struct rdb_save_result result;
    enum status status;

    request.keys = keys;
    request.progress = base->progress;
    request.context = base->context;
    status = rdb_save(base->path, base->temp_path, &request, &result);
    (void)snprintf(error, error_size, "%s", result.error);
    return status;
}

static unsigned no_databases(const struct snapshot *snapshot)
{
    (void)snapshot;
    return 0;
}

static bool no_keys(struct snapshot *snapshot, const struct snapshot_visitor *visitors, unsigned count)
{
    (void)snapshot;
    (void)visitors;
    (void)count;
    return true;
}

void persistence_prepare_sync(const struct persistence_sync *sync)
{
    struct plan *plan = begin_sync_plan();

    gate_assert_alone();
    make_plan(plan);
    add_aux(plan, SLICE("aof-base"), SLICE("0"));
    assert(sync->aux_count <= PERSISTENCE_SYNC_FACTS);
    for (size_t i = 0; i < sync->aux_count; i++)
        add_aux(plan, sync->aux[i].name, sync->aux[i].value);
    plan->request.options.least = sync->least_version;
    plan->request.options.most = sync->most_version;
    plan->request.libraries = sync->without_libraries ? NULL : each_library_of_sync;
    plan->request.with_mvcc = sync->with_mvcc;
    plan->request.with_expired = true; /* the stream behind it says when they go, or that they stay */
    if (sync->with_order)
        add_order(plan, &sync_plan.order);
}

enum status persistence_save_sync(const struct persistence_sync *sync, struct snapshot *keys,
                                  struct rdb_save_result *result)
{
    static const struct snapshot_kind empty = {.database_bound = no_databases, .each = no_keys};
    struct snapshot none = {.kind = &empty, .access = keys->access};
    struct rdb_save_request request = sync_plan.plan.request;

    request.keys = sync->without_keys ? &none : keys;
    request.progress = sync->progress;
    request.context = sync->context;
    if (sync->sink != NULL)
        return rdb_save_to(sync->sink, &request, result);
    return rdb_save(sync->path, sync->temp_path, &request, result);
}

/* ------------------------------------------------------------------------------------------------------- child -- */

/* The name of the file until it is complete: by its process, as other programs of this kind do it, if it has one. */
static void name_child_file(int64_t pid)
{
    char *name = strrchr(child_file.temp_path, '/') + 1;
    const size_t room = (size_t)(child_file.temp_path + sizeof(child_file.temp_path) - name);

    if (pid != 0)
        (void)snprintf(name, room, "temp-%" PRId64 ".rdb", pid);
    else
        (void)snprintf(name, room, "temp-bg-%d.rdb", (int)getpid());
}

static void prepare_child(void)
{
    make_whole_plan(begin_file_plan(), &file_plan.order);
    file_plan.plan.request.libraries = persistence_each_library;
    file_full_path(child_file.path, persistence_file());
    file_full_path(child_file.temp_path, "temp");
    name_child_file(0);
    (void)!file_remove(child_file.temp_path); /* of another process that had this number */
}

static void run_child(struct snapshot *keys, struct child_report *report, void *context)
{
    struct rdb_save_request request = file_plan.plan.request;
    struct rdb_save_result result;

    (void)context;
    if (child_is_copy()) {
        name_child_file(getpid());
        (void)!file_remove(child_file.temp_path); /* likewise */
    }
    request.keys = keys;
    request.progress = child_tell_keys;
    request.may_commit = child_may_commit;
    request.committed = child_committed;
    request.context = report;
    report->status = rdb_save(child_file.path, child_file.temp_path, &request, &result);
    report->keys = result.keys;
    report->bytes = result.bytes;
    (void)snprintf(report->error, sizeof(report->error), "%s", result.error);
    if (report->status == STATUS_OK)
        log_notice("DB saved on disk");
    else if (report->status != STATUS_INTERRUPTED)
        log_warning("Error saving the data: %s", result.error);
}

static bool is_good(const struct child_report *report)
{
    return report->is_last && report->status == STATUS_OK;
}

static bool was_stopped(const struct child_report *report)
{
    return !report->is_last && strcmp(report->error, "stopped") == 0;
}

static void child_done(const struct child_report *report, void *context)
{
    int64_t duration_us = (int64_t)clock_monotonic_us() - GET(started_us);

    (void)context;
    SET(last_duration_s, duration_us / (1000 * 1000));
    SET(last_cow_bytes, report->cow_bytes);
    if (is_good(report)) {
        note_saved(GET(child_changes));
        log_notice("Background saving terminated with success");
        log_notice("RDB: %" PRIu64 " keys, %" PRIu64 " bytes, %" PRIu64 " MB of memory copied on write", report->keys,
                   report->bytes, report->cow_bytes >> 20);
        return;
    }
    name_child_file(report->pid);
    (void)!file_remove(child_file.temp_path); /* a child has left it */
    if (was_stopped(report)) {
        log_notice("Background saving stopped"); /* we did it: no reason to refuse anything */
        return;
    }
    log_warning("Background saving failed: %s", report->error);
    note_failed();
    update_denial();
}

static void aside_done(const struct child_report *report, void *context)
{
    (void)context;
    if (is_good(report)) {
        note_saved(GET(child_changes));
        log_notice("RDB: %" PRIu64 " keys, %" PRIu64 " bytes", report->keys, report->bytes);
        return;
    }
    (void)!file_remove(child_file.temp_path);
    log_notice("SAVE: no file: %s", report->error);
}

/* Of SAVE: its client gets the error, as with persistence_save, and may save again at once. */
static void aside_told(const struct child_report *report, void *context)
{
    struct persistence_waiter *waiter = context;

    if (is_good(report))
        waiter->done(waiter, NULL);
    else
        waiter->done(waiter, was_stopped(report) ? "ERR The save was stopped" : "ERR");
}

uint64_t persistence_key_count(const struct store *store)
{
    uint64_t count = 0;

    gate_assert_alone();
    for (unsigned db = 0; db < store_database_bound(store); db++)
        count += store_key_count(store, db);
    return count;
}

/* The task says how it ends. False: errno has the reason. */
must_check static bool start_task(struct access *access, struct child_task *task)
{
    gate_assert_alone();
    task->kind = CHILD_RDB;
    task->run = run_child;
    task->access = access;
    task->keys_total = persistence_key_count(access->store);
    task->has_order = true;
    SET(child_changes, all_changes());
    SET(started_us, (int64_t)clock_monotonic_us());
    persistence_note_moment(); /* before the fork: in the child a lock may be held */
    prepare_child();
    return child_start(task);
}

bool persistence_may_start_child(void)
{
    gate_assert_alone();
    return child_may_start(CHILD_RDB);
}

bool persistence_may_save_aside(void)
{
    gate_assert_alone();
    return snapshot_method() == SNAPSHOT_THREADS && persistence_may_start_child();
}

bool persistence_save_aside(struct access *access, struct persistence_waiter *waiter)
{
    struct child_task task = {.done = aside_done, .told = aside_told, .context = waiter};

    assert(persistence_may_save_aside() && waiter->done != NULL);
    if (!start_task(access, &task)) {
        log_warning("Error saving the data: %s", strerror(errno));
        return false;
    }
    log_notice("Saving by %s", child_name(CHILD_RDB));
    return true;
}

enum persistence_start persistence_start_child(struct access *access)
{
    struct child_task task = {.done = child_done};

    gate_assert_alone();
    if (!persistence_may_start_child())
        return PERSISTENCE_BUSY;
    SET(is_scheduled, false);
    SET(last_try_s, (int64_t)time(NULL));
    if (!start_task(access, &task)) {
        log_warning("Can't save in background: fork: %s", strerror(errno));
        note_failed();
        update_denial();
        return PERSISTENCE_FAILED;
    }
    log_notice("Background saving started by %s", child_name(CHILD_RDB));
    return PERSISTENCE_STARTED;
}

void persistence_schedule(void)
{
    gate_assert_alone();
    SET(is_scheduled, true);
}

void persistence_flushed(struct access *access)
{
    gate_assert_alone();
    if (child_is_copy()) /* a script is stepped through: files are the server's */
        return;
    child_stop(CHILD_RDB);
    child_stop(CHILD_SYNC); /* its replicas ask again, and get what there is now */
    if (save_points_exist() && !persistence_save(access))
        log_warning("The RDB file still has the flushed keys.");
}

/* ----------------------------------------------------------------------------------------------- by itself -- */

static bool is_due(void)
{
    int64_t now = (int64_t)time(NULL);

    if (GET(is_scheduled)) {
        state.wish_seconds = 0;
        return true;
    }
    if (!GET(last_was_good) && now - GET(last_try_s) <= RETRY_S)
        return false;
    return save_points_due(now - GET(last_save_s), persistence_changes(), &state.wish_seconds, &state.wish_changes);
}

static void start_child(struct worker *worker)
{
    gate_assert_alone();
    access_begin(&worker->run.access, worker_now_ms(worker), true);
    if (state.wish_seconds != 0)
        log_notice("%" PRId64 " changes in %" PRId64 " seconds. Saving...", state.wish_changes, state.wish_seconds);
    status_ignore(persistence_start_child(&worker->run.access), "the log tells of it, and save points try again");
}

/* Ten times a second: hears of the child, starts one when it is time. */
static void look(struct worker *worker)
{
    worker_assert_zero(worker);
    child_look();
    reaper_look();
    if (!child_may_start(CHILD_RDB) || loading_runs() || !is_due() ||
        atomic_load_explicit(&worker->server->cron_paused, memory_order_relaxed) ||
        atomic_load_explicit(&worker->server->stopping, memory_order_relaxed)) {
        exclusive_drop(worker, GATE_WISH_SAVE); /* somebody else was faster */
        return;
    }
    if (!exclusive_begin(worker, GATE_WISH_SAVE))
        return; /* looks again when it is woken */
    if (!loading_runs())
        start_child(worker);
    exclusive_end(worker);
}

/* Continues if it waits for the gate. */
static void woken(struct worker *worker)
{
    if (worker->index == 0 && UNLIKELY(exclusive_is_wished(worker, GATE_WISH_SAVE) || child_has_ended()))
        look(worker);
}

/* ---------------------------------------------------------------------------------------------------- reading -- */

/* As many as the workers, which wait meanwhile. A server of one thread stays one. */
static unsigned loading_threads(void)
{
    unsigned workers = server_instance()->worker_count;

    return workers > 1 ? workers : 0;
}

void persistence_fill_load(struct rdb_load_request *request, struct access *access)
{
    assert(state.limits != NULL);
    gate_assert_alone();
    *request = (struct rdb_load_request){.access = access,
                                         .limits = state.limits(),
                                         /* the master says when they go, or the frontiers, or an import */
                                         .keeps_expired = role_follows() || data_order_is_wanted() ||
                                                          store_is_importing(access->store),
                                         .library = libraries_load,
                                         .origin = data_order_is_wanted() ? data_order_origin : NULL,
                                         .checks_sum = rdb_file_options().checksums && !rdb_skips_checksums(),
                                         .threads = loading_threads(),
                                         .key_delay_us = rdb_load_delay_us()};
}

static void take_order(struct slice name, struct slice value, void *context)
{
    data_order_take(context, name, value);
}

static bool load_again(struct access *access, bool replaces)
{
    struct data_order_found found = {.state = {0}};
    char error[DATA_ORDER_ERROR_BYTES];
    struct rdb_load_request request;
    struct rdb_load_result result;
    struct data_history history;
    struct file_source source;
    struct file *file = NULL;
    enum status status = file_open(&file, persistence_file(), FILE_READ);
    uint64_t overdue;
    bool good = false;

    if (status == STATUS_OK)
        status = file_source_init(&source, file);
    if (status != STATUS_OK) {
        log_warning("Can't read %s: %s", persistence_file(), strerror(errno));
    } else {
        persistence_fill_load(&request, access);
        request.replaces = replaces;
        request.aux = take_order;
        request.context = &found;
        if (data_history_now(&history))
            request.keeps_expired = true; /* they go as always, and the replicas are told */
        good = rdb_load(&source.source, &request, &result);
        overdue = role_follows() ? 0 : result.overdue;
        if (good)
            persistence_note_loaded(result.keys - overdue, result.expired + overdue);
        else
            log_warning("Can't load %s: at byte %" PRIu64 ": %s", persistence_file(), result.failed_at, result.error);
        if (good && !(good = data_order_restore(access, &found, error)))
            log_warning("Can't load %s: %s", persistence_file(), error);
    }
    file_close(&file);
    data_order_found_fini(&found);
    return good;
}

bool persistence_reload(struct access *access, unsigned flags)
{
    const uint64_t dirty = access->dirty;
    bool good;

    gate_assert_alone();
    assert((flags & ~(unsigned)(RELOAD_NOSAVE | RELOAD_NOFLUSH | RELOAD_MERGE)) == 0);
    if ((flags & RELOAD_NOSAVE) == 0 && !persistence_save(access))
        return false;
    if ((flags & RELOAD_NOFLUSH) == 0) {
        access_flush_all(access, false);
        libraries_flush();
    }
    good = load_again(access, (flags & RELOAD_MERGE) != 0);
    if (good)
        access->dirty = dirty; /* the data is that of the file */
    return good;
}

/* ------------------------------------------------------------------------------------------------------ figures -- */

int64_t persistence_last_save_s(void)
{
    return GET(last_save_s);
}

void persistence_note_loaded(uint64_t loaded, uint64_t expired)
{
    SET(loaded, loaded);
    SET(expired_at_load, expired);
    SET(saved_changes, all_changes());
}

void persistence_stats(struct persistence_stats *stats)
{
    *stats = (struct persistence_stats){
        .last_was_good = GET(last_was_good),
        .last_duration_s = GET(last_duration_s),
        .saves = GET(saves),
        .failures = atomic_load_explicit(&state.failures, memory_order_acquire),
        .last_cow_bytes = GET(last_cow_bytes),
        .loaded = GET(loaded),
        .expired_at_load = GET(expired_at_load),
    };
}

static void persistence_stats_reset(void)
{
    gate_assert_alone();
    SET(saves, 0);
    child_stats_reset();
}

struct rdb_limits persistence_limits(void)
{
    return state.limits();
}

void persistence_setup(struct rdb_limits (*limits)(void))
{
    gate_assert_main_alone();
    assert(limits != NULL && state.limits == NULL);
    state.limits = limits;
    SET(last_save_s, (int64_t)time(NULL));
    SET(last_try_s, GET(last_save_s));
    save_points_setup();
    config_on_reset_stat(persistence_stats_reset);
    config_on_change("save", apply_denial);
    config_on_change("stop-writes-on-bgsave-error", apply_denial);
}

void persistence_teardown(void)
{
    gate_assert_main_alone();
    forget_libraries(&file_plan);
    forget_libraries(&sync_plan);
    data_order_fini(&file_plan.order);
    data_order_fini(&sync_plan.order);
    data_order_fini(&state.order);
    save_points_teardown();
}

static void sample(struct server *server)
{
    look(&server->workers[0]);
}

const struct lifecycle persistence_lifecycle = {
    .server_sample = sample,
    .worker_wake = woken,
};
