#include "server/durable/aof.h"

#include "base/assert.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/status.h"
#include "persist/aof_dump.h"
#include "server/config/config.h"
#include "server/core/exclusive.h"
#include "server/core/lifecycle.h"
#include "server/core/request.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/durable/aof_hold.h"
#include "server/durable/aof_lock.h"
#include "server/durable/aof_writer.h"
#include "server/durable/child.h"
#include "server/durable/data_order.h"
#include "server/durable/file_options.h"
#include "server/durable/libraries.h"
#include "server/durable/loading.h"
#include "server/durable/persistence.h"
#include "server/process/process.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    NAME_BYTES = 300,  /* of temporary files */
    FAILURES_FREE = 3, /* rewrites that may fail before the next waits */
    DELAY_MOST_MINUTES = 60,
    RETRY_S = 1
};

/* A rewrite goes NONE -> CHILD (the gate is owned) -> COMMIT (worker 0) -> NONE (the writer, or its substitute). */
enum phase { PHASE_NONE, PHASE_CHILD, PHASE_COMMIT };

static struct {
    _Atomic enum aof_state state; /* atomic: changed by who owns the gate, from STARTING to ON by the writer (CAS) */
    _Atomic enum phase phase;     /* atomic: release and acquire; hands the next fields over */
    struct aof_set files;         /* the writer's while it runs, else of who owns the gate, or of the COMMIT phase */
    char temp_base[64], child_temp[64], temp_increment[NAME_BYTES];
    bool is_rdb;
    bool has_writer; /* the rewrite: its base is useful only with the effects that the writer writes since the fork */
    /* atomic, relaxed */
    _Atomic bool is_scheduled, last_was_good;
    _Atomic bool is_new;      /* while suspended: the data is new and complete */
    _Atomic bool tells_delay; /* the next delay is logged */
    _Atomic int64_t started_us, last_duration_s, next_try_s, delay_minutes;
    _Atomic uint64_t rewrites, failures, last_cow_bytes;
} aof = {.last_was_good = true, .last_duration_s = -1};

#define GET(field) atomic_load_explicit(&aof.field, memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&aof.field, (value), memory_order_relaxed)

enum aof_state aof_state(void)
{
    return GET(state);
}

bool aof_is_on(void)
{
    enum aof_state now = GET(state);

    return now == AOF_STARTING || now == AOF_ON || now == AOF_SUSPENDED ||
           (now == AOF_STOPPING && OPTION_IS(option_appendonly));
}

bool aof_first_base_failed(void)
{
    return GET(state) == AOF_STARTING && GET(failures) != 0;
}

bool aof_order_pending(void)
{
    return GET(state) == AOF_STOPPING || aof_writer_is_dropping();
}

static enum phase phase_now(void)
{
    return atomic_load_explicit(&aof.phase, memory_order_acquire);
}

static void set_phase(enum phase phase)
{
    atomic_store_explicit(&aof.phase, phase, memory_order_release);
}

/* The rewrite has come to its end, which any thread may bring. */
static void end_phase(void)
{
    assert(phase_now() != PHASE_NONE);
    aof_lock_release();
    set_phase(PHASE_NONE);
}

/* -------------------------------------------------------------------------------------------------------- files -- */

char *aof_folder_path(void)
{
    char path[FILE_PATH_SPACE];

    file_full_path(path, aof_folder_name());
    return mem_copy_text(path);
}

/* Reads the files on the disk. *exist: there is a manifest. */
static bool read_files(bool *exist)
{
    char error[AOF_SET_ERROR_BYTES], *folder = aof_folder_path();
    enum status status;

    gate_assert_alone();
    aof_set_fini(&aof.files);
    aof_set_init(&aof.files, folder, aof_file_name());
    mem_free(folder);
    status = aof_set_read(&aof.files, error);
    *exist = status == STATUS_OK;
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        log_warning("Can't read the AOF manifest in %s: %s", aof.files.folder, error);
        return false;
    }
    if (!*exist && aof_set_make_folder(&aof.files) != STATUS_OK) {
        log_warning("Can't open or create append-only dir %s: %s", aof.files.folder, strerror(errno));
        return false;
    }
    return true;
}

static void remove_file(const char *name)
{
    char *path = aof_set_path(&aof.files, name);

    (void)!file_remove(path);
    mem_free(path);
}

/* Another process of ours can have left such names only if it had our number. */
static void make_names(void)
{
    gate_assert_alone();
    aof.is_rdb = OPTION_IS(option_aof_use_rdb_preamble);
    (void)snprintf(aof.temp_base, sizeof(aof.temp_base), "temp-rewriteaof-bg-%d.aof", (int)getpid());
    (void)snprintf(aof.child_temp, sizeof(aof.child_temp), "temp-rewriteaof-%d.aof", (int)getpid());
    (void)snprintf(aof.temp_increment, sizeof(aof.temp_increment), "temp-%.200s.incr", aof.files.name);
    remove_file(aof.temp_base);
    remove_file(aof.child_temp);
}

/* ------------------------------------------------------------------------------------------------------- a base -- */

static bool tell_progress(uint64_t keys, void *context)
{
    return context == NULL || child_tell_keys(keys, context);
}

static void prepare_base(void)
{
    const struct persistence_base base = {.starts_writeback = OPTION_IS(option_aof_rewrite_writes_back)};

    persistence_note_moment();
    persistence_prepare_base(&base);
}

/* In the child, or at start, behind prepare_base. `report` NULL: nobody wants one. */
static must_check enum status write_base(struct snapshot *keys, struct child_report *report,
                                         char error[CHILD_ERROR_BYTES])
{
    char *path = aof_set_path(&aof.files, aof.temp_base), *temp = aof_set_path(&aof.files, aof.child_temp);
    const struct persistence_base base = {.path = path,
                                          .temp_path = temp,
                                          .starts_writeback = OPTION_IS(option_aof_rewrite_writes_back),
                                          .progress = tell_progress,
                                          .context = report};
    const struct aof_dump_request dump = {.path = path,
                                          .temp_path = temp,
                                          .keys = keys,
                                          .starts_writeback = base.starts_writeback,
                                          .writes_time = OPTION_IS(option_aof_timestamps),
                                          .key_delay_us = rdb_save_delay_us(),
                                          .payload = rdb_payload_options(),
                                          .libraries = persistence_each_library,
                                          .progress = tell_progress,
                                          .context = report};
    enum status status = aof.is_rdb ? persistence_save_base(&base, keys, error, CHILD_ERROR_BYTES)
                                    : aof_dump_save(&dump, error, CHILD_ERROR_BYTES);

    mem_free(path);
    mem_free(temp);
    return status;
}

static void run_child(struct snapshot *keys, struct child_report *report, void *context)
{
    (void)context;
    report->status = write_base(keys, report, report->error);
    if (report->status == STATUS_OK)
        log_notice("Successfully created the temporary AOF base file %s", aof.temp_base);
    else if (report->status != STATUS_INTERRUPTED)
        log_warning("Can't write the AOF base file: %s", report->error);
}

/* ---------------------------------------------------------------------------------------------------- rewriting -- */

static void note_failure(void)
{
    uint64_t failures = atomic_fetch_add_explicit(&aof.failures, 1, memory_order_relaxed) + 1;

    SET(last_was_good, false);
    SET(next_try_s, (int64_t)time(NULL) + RETRY_S);
    if (GET(state) == AOF_STARTING)
        SET(is_scheduled, true);
    if (failures < FAILURES_FREE)
        return;
    SET(delay_minutes, failures == FAILURES_FREE ? 1 : MIN(GET(delay_minutes) * 2, DELAY_MOST_MINUTES));
    SET(next_try_s, (int64_t)time(NULL) + GET(delay_minutes) * 60);
    SET(tells_delay, true);
}

/* Unless it has been told to stop. */
static void note_started(void)
{
    enum aof_state state = AOF_STARTING;

    if (atomic_compare_exchange_strong(&aof.state, &state, AOF_ON))
        aof_hold_update();
}

/* In the writer's thread, or in the background. */
static void committed(bool good)
{
    assert(phase_now() == PHASE_COMMIT);
    if (good) {
        SET(last_was_good, true);
        SET(failures, 0);
        SET(tells_delay, false);
        if (aof.has_writer) /* else it began before, and the next one is the first */
            note_started();
        log_notice("Background AOF rewrite finished successfully");
    } else {
        remove_file(aof.temp_base);
        note_failure();
    }
    end_phase();
}

static struct aof_commit commit_of_now(void)
{
    return (struct aof_commit){.temp_base = aof.temp_base,
                               .temp_increment = aof.temp_increment,
                               .is_rdb = aof.is_rdb,
                               .done = committed};
}

static void commit_alone(void *argument)
{
    const struct aof_commit commit = {.temp_base = aof.temp_base, .is_rdb = aof.is_rdb};

    assert(!aof.has_writer);
    (void)argument;
    committed(aof_commit_alone(&aof.files, &commit));
}

/* False: it has come too late. The child may have ended well while it was about to be stopped. */
static bool commit_base(void)
{
    const struct aof_commit commit = commit_of_now();

    log_notice("Background AOF rewrite terminated with success");
    set_phase(PHASE_COMMIT);
    if (aof.has_writer)
        return aof_writer_commit(&commit);
    background_submit(BACKGROUND_SYNC, commit_alone, NULL); /* behind it the next rewrite may begin at once */
    return true;
}

static void child_done(const struct child_report *report, void *context)
{
    bool is_good = report->is_last && report->status == STATUS_OK;
    bool was_stopped = is_good || (!report->is_last && strcmp(report->error, "stopped") == 0);

    assert(phase_now() == PHASE_CHILD);
    (void)context;
    SET(last_duration_s, ((int64_t)clock_monotonic_us() - GET(started_us)) / (1000 * 1000));
    SET(last_cow_bytes, report->cow_bytes);
    if (is_good && commit_base())
        return;
    remove_file(aof.temp_base);
    remove_file(aof.child_temp);
    if (was_stopped && !aof_writer_split_failed()) {
        log_notice("Background AOF rewrite stopped");
    } else {
        log_warning("Background AOF rewrite terminated with error: %s", report->error);
        note_failure();
    }
    aof_writer_forget_split();
    end_phase();
}

/* While starting: the file for effects since the fork. An earlier attempt has left nothing useful. */
static bool open_temporary(struct file **file)
{
    char *path;
    enum status status;

    path = aof_set_path(&aof.files, aof.temp_increment);
    status = file_remove(path);
    if (status == STATUS_OK)
        log_notice("Removing the temp incr aof file %s", aof.temp_increment);
    if (status == STATUS_OK || status == STATUS_NOT_FOUND)
        status = file_open(file, path, FILE_APPEND);
    mem_free(path);
    if (status != STATUS_OK)
        log_warning("Can't open the append-only file %s: %s", aof.temp_increment, strerror(errno));
    else
        log_notice("Creating AOF incr file %s on background rewrite", aof.temp_increment);
    return status == STATUS_OK;
}

static bool start_rewrite(struct access *access)
{
    const struct child_task task = {.kind = CHILD_AOF,
                                    .run = run_child,
                                    .done = child_done,
                                    .access = access,
                                    .keys_total = persistence_key_count(access->store),
                                    .has_order = OPTION_IS(option_aof_use_rdb_preamble)};
    enum aof_state state = GET(state);
    struct file *temporary = NULL;
    bool exist;

    gate_assert_alone();
    if (state == AOF_STARTING)
        status_ignore(aof_writer_stop(), "what it wrote begins anew, with other files");
    if (state != AOF_ON && !read_files(&exist))
        return false;
    make_names();
    if (state == AOF_STARTING && !open_temporary(&temporary))
        return false;
    aof.has_writer = state != AOF_OFF;
    if (state == AOF_STARTING) /* before the child, which may have ended well before we are done here */
        aof_writer_start(&server_instance()->journal, &aof.files, temporary, 0, true);
    assert(phase_now() == PHASE_NONE);
    prepare_base();
    set_phase(PHASE_CHILD); /* worker 0 may hear of the child's end before we are done here */
    if (!child_start(&task)) {
        set_phase(PHASE_NONE);
        log_warning("Can't rewrite append only file in background: fork: %s", strerror(errno));
        return false;
    }
    if (state == AOF_ON)
        aof_writer_split();
    return true;
}

/* In a transaction the base would have its effects so far, and the increment would have all of them again. */
static bool is_in_transaction(void)
{
    const struct worker *worker = worker_self();

    return worker != NULL && worker->run.running != NULL && worker->run.running->in_exec;
}

/* Nobody waits for it here. One that began with a rewrite which failed is of no use. */
static bool is_writer_in_the_way(void)
{
    if (GET(state) == AOF_STARTING)
        aof_writer_end(false);
    return GET(state) == AOF_STOPPING || aof_writer_is_ending();
}

static bool start_locked(struct access *access)
{
    if (!aof_lock_acquire(0))
        return false;
    if (start_rewrite(access))
        return true;
    aof_lock_release();
    return false;
}

enum aof_rewrite_start aof_rewrite(struct access *access)
{
    bool started;

    gate_assert_alone();
    if (phase_now() != PHASE_NONE)
        return AOF_REWRITE_RUNS;
    if (GET(state) == AOF_SUSPENDED) /* not of data that is not whole, and not without a writer */
        SET(is_new, !loading_runs());
    if (GET(state) == AOF_SUSPENDED || loading_runs() || !child_may_start(CHILD_AOF) || is_in_transaction() ||
        is_writer_in_the_way()) {
        SET(is_scheduled, true);
        log_notice("AOF background was scheduled");
        return AOF_REWRITE_SCHEDULED;
    }
    SET(started_us, (int64_t)clock_monotonic_us());
    (void)atomic_fetch_add_explicit(&aof.rewrites, 1, memory_order_relaxed);
    started = start_locked(access);
    SET(is_scheduled, false); /* not before: a reader sees the rewrite scheduled or begun */
    if (!started) {
        note_failure();
        return AOF_REWRITE_FAILED;
    }
    log_notice("Background append only file rewriting started by %s", child_name(CHILD_AOF));
    return AOF_REWRITE_STARTED;
}

/* --------------------------------------------------------------------------------------------------- by itself -- */

/* Has it grown so much that a rewrite is worth it? *growth: in percent. */
static bool has_grown(const struct aof_writer_stats *now, double *growth)
{
    int64_t percentage = OPTION_GET(option_auto_aof_rewrite_percentage);

    *growth = (double)now->size_bytes * 100 / (double)MAX(now->rewritten_bytes, 1) - 100;
    return GET(state) == AOF_ON && percentage != 0 && *growth >= (double)percentage &&
           now->size_bytes > OPTION_GET_U64(option_auto_aof_rewrite_min_size);
}

/* After failures a rewrite that is wanted waits for its time. */
static bool is_put_off(void)
{
    if (GET(failures) == 0 || (int64_t)time(NULL) >= GET(next_try_s))
        return false;
    if (GET(tells_delay)) {
        SET(tells_delay, false);
        log_warning("Background AOF rewrite has repeatedly failed and triggered the limit, will retry in %" PRId64
                    " minutes",
                    GET(delay_minutes));
    }
    return true;
}

/* How long after a sync that failed a rewrite is to make it well: at once, unless those before it were in vain. */
static int64_t healing_delay_s(uint32_t vain)
{
    if (vain == 0)
        return 0;
    if (vain < FAILURES_FREE)
        return RETRY_S;
    return MIN(INT64_C(60) << MIN(vain - FAILURES_FREE, 6U), INT64_C(60) * DELAY_MOST_MINUTES);
}

/* A disk whose syncs go on failing is not worn out by rewrites, each of which is a success by itself. */
static bool is_healing_put_off(const struct aof_writer_stats *now)
{
    static uint32_t told; /* owner: worker 0; of so many in vain */
    const int64_t delay_s = healing_delay_s(now->vain_rewrites);

    if ((int64_t)time(NULL) >= now->sync_failed_s + delay_s)
        return false;
    if (now->vain_rewrites >= FAILURES_FREE && told != now->vain_rewrites)
        log_warning("AOF syncs failed after each of %u rewrites, will retry in %" PRId64 " minutes",
                    (unsigned)now->vain_rewrites, delay_s / 60);
    told = now->vain_rewrites;
    return true;
}

/* *growth: in percent, where that is the reason; else 0. */
static bool is_due(double *growth)
{
    struct aof_writer_stats now;
    bool grew;

    aof_writer_stats(&now);
    grew = has_grown(&now, growth);
    if (GET(is_scheduled) || now.needs_rewrite)
        *growth = 0;
    else if (!grew)
        return false;
    if (!GET(is_scheduled) && now.needs_rewrite && is_healing_put_off(&now))
        return false;
    return !is_put_off();
}

static void rewrite_at_gate(struct worker *worker, double growth)
{
    if (!exclusive_begin(worker, GATE_WISH_AOF))
        return; /* looks again when it is woken */
    if (growth > 0)
        log_notice("Starting automatic rewriting of AOF on %.0f%% growth", growth);
    access_begin(&worker->run.access, worker_now_ms(worker), true);
    if (!loading_runs())
        status_ignore(aof_rewrite(&worker->run.access), "the log tells of it, and the next look tries again");
    exclusive_end(worker);
}

static bool may_begin(const struct worker *worker)
{
    return GET(state) != AOF_STOPPING && GET(state) != AOF_SUSPENDED && !aof_writer_is_ending() &&
           phase_now() == PHASE_NONE && child_may_start(CHILD_AOF) && !loading_runs() &&
           !atomic_load_explicit(&worker->server->cron_paused, memory_order_relaxed) &&
           !atomic_load_explicit(&worker->server->stopping, memory_order_relaxed);
}

static void rewrite_if_due(struct worker *worker)
{
    double growth;

    if (may_begin(worker) && is_due(&growth))
        rewrite_at_gate(worker, growth);
    else
        exclusive_drop(worker, GATE_WISH_AOF); /* somebody else was faster */
}

/* ---------------------------------------------------------------------------------------------------- on and off -- */

/* There is no manifest: the current data becomes the first base. */
static bool create_files(struct access *access, struct file **file)
{
    struct snapshot keys = snapshot_of_access(access);
    char error[CHILD_ERROR_BYTES] = "";

    make_names();
    prepare_base();
    if (write_base(&keys, NULL, error) != STATUS_OK) {
        log_warning("Can't create the AOF base file in %s: %s", aof.files.folder, error);
        return false;
    }
    if (aof_set_replace_base(&aof.files, aof.temp_base, aof.is_rdb, AOF_KEPT_NOTHING, NULL) != STATUS_OK ||
        aof_set_add_increment(&aof.files, file) != STATUS_OK) {
        log_warning("Can't create the AOF files in %s: %s", aof.files.folder, strerror(errno));
        return false;
    }
    log_notice("Creating AOF base file %s on server start", aof_manifest_base(&aof.files.manifest)->name);
    log_notice("Creating AOF incr file %s on server start", aof_manifest_last_increment(&aof.files.manifest)->name);
    return true;
}

static bool open_files(struct file **file, uint64_t *size)
{
    enum status status;

    *size = 0;
    if (aof_manifest_last_increment(&aof.files.manifest) != NULL)
        status = aof_set_open_last(&aof.files, file, size);
    else
        status = aof_set_add_increment(&aof.files, file);
    if (status != STATUS_OK)
        log_warning("Can't open the append-only file in %s: %s", aof.files.folder, strerror(errno));
    else
        log_notice("Opening AOF incr file %s on server start", aof_manifest_last_increment(&aof.files.manifest)->name);
    return status == STATUS_OK;
}

static bool begin(struct server *server)
{
    struct store_counters counters = {0};
    struct access access;
    struct file *file = NULL;
    uint64_t size = 0;
    bool exist;

    access_init(&access, server->store, &counters);
    access_begin(&access, clock_wall_ms(), true);
    if (!read_files(&exist) || !(exist ? open_files(&file, &size) : create_files(&access, &file)))
        return false;
    aof_writer_start(&server->journal, &aof.files, file, size, false);
    return true;
}

void aof_begin(void)
{
    struct server *server = server_instance();

    gate_assert_alone();
    assert(GET(state) == AOF_OFF);
    /* A server that is asked to stop while it loads has not all of the data. */
    if (!OPTION_IS(option_appendonly) || atomic_load_explicit(&server->stopping, memory_order_relaxed))
        return;
    if (!begin(server)) {
        log_warning("The server does not start because appendonly is yes. Remove the cause and start again.");
        aof_lock_leave();
        process_remove_pidfile();
        _exit(EXIT_FAILURE);
    }
    SET(state, AOF_ON);
    aof_hold_update();
}

/* The gate is owned, or the workers have ended. */
static void begin_to_stop(void)
{
    gate_assert_alone();
    /* In one step, as the writer may just be about to say that the first files are in place. */
    const bool was_on = atomic_exchange(&aof.state, AOF_STOPPING) == AOF_ON;

    child_stop(CHILD_AOF);
    SET(is_scheduled, false);
    SET(failures, 0);
    SET(tells_delay, false);
    aof_writer_end(was_on);
    aof_hold_update();
}

/* Likewise. Waits for the writer, if it has not ended. */
static void finish_stopping(void)
{
    gate_assert_alone();
    if (!aof_writer_stop())
        log_warning("The AOF is not completely on the disk.");
    if (aof.temp_increment[0] != '\0')
        remove_file(aof.temp_increment); /* if it had not become an increment */
    SET(state, AOF_OFF);
    aof_hold_update();
    aof_lock_release();
}

/* ------------------------------------------------------------------------------------------------------ new data -- */

void aof_suspend(void)
{
    enum aof_state before = GET(state);

    gate_assert_alone();
    if (before == AOF_OFF || before == AOF_STOPPING)
        return;
    SET(is_new, false);
    if (before == AOF_SUSPENDED)
        return;
    /* In one step, as the writer may just be about to say that the first files are in place. */
    before = atomic_exchange(&aof.state, AOF_SUSPENDED);
    child_stop(CHILD_AOF);
    SET(is_scheduled, false);
    SET(failures, 0);
    SET(tells_delay, false);
    aof_writer_end(before == AOF_ON);
    aof_hold_update();
}

/* The writer has ended, and of the child that was killed nothing is left: another rewrite may begin at once. */
static bool may_finish_stopping(void)
{
    return !aof_writer_is_ending() && phase_now() == PHASE_NONE;
}

/* The writer and the child of the old data are gone. */
static void begin_anew(struct access *access)
{
    gate_assert_alone();
    assert(GET(state) == AOF_SUSPENDED && may_finish_stopping());
    if (!aof_writer_stop())
        log_warning("The AOF of the data before the sync is not completely on the disk.");
    SET(state, AOF_STARTING);
    aof_hold_update();
    status_ignore(aof_rewrite(access), "the log tells of it, and the next look tries again");
}

void aof_restart(void)
{
    gate_assert_alone();
    aof_suspend();
    SET(is_new, true);
    if (GET(state) == AOF_SUSPENDED)
        SET(is_scheduled, true); /* as the base is not that of this data, until it begins */
    worker_wake(&server_instance()->workers[0]);
}

static bool may_begin_anew(const struct worker *worker)
{
    return GET(state) == AOF_SUSPENDED && (GET(is_new) || !role_follows()) && may_finish_stopping() &&
           !loading_replaces() && !server_is_stopping(worker->server);
}

static void begin_anew_if_due(struct worker *worker)
{
    if (!may_begin_anew(worker)) {
        exclusive_drop(worker, GATE_WISH_AOF);
        return;
    }
    if (!exclusive_begin(worker, GATE_WISH_AOF))
        return; /* looks again when it is woken */
    access_begin(&worker->run.access, worker_now_ms(worker), true);
    if (may_begin_anew(worker))
        begin_anew(&worker->run.access);
    exclusive_end(worker);
}

/* ---------------------------------------------------------------------------------------------------- off and on -- */

/* Replies to clients whose order is done. */
static void reply_when_done(void)
{
    const struct worker *worker = worker_self();

    if (worker != NULL && worker->run.running != NULL)
        aof_hold_until_done(worker->run.running->client);
}

static void turn_off(void)
{
    begin_to_stop();
    if (may_finish_stopping())
        finish_stopping();
    else
        reply_when_done();
}

static const char *turn_on(void)
{
    static const char failed[] = "Unable to turn on AOF. Check server logs.";

    gate_assert_alone();
    if (!aof_lock_acquire(0))
        return failed;
    SET(state, AOF_STARTING);
    if (phase_now() != PHASE_NONE) {
        SET(is_scheduled, true); /* the rewrite that runs began before */
        return NULL;
    }
    if (aof_rewrite(&worker_self()->run.access) != AOF_REWRITE_FAILED)
        return NULL;
    turn_off();
    return failed;
}

static const char *apply_appendonly(const struct option_row *row)
{
    enum aof_state state = GET(state);

    gate_assert_alone();
    (void)row;
    if (!OPTION_IS(option_appendonly)) {
        if (state == AOF_STARTING || state == AOF_ON || state == AOF_SUSPENDED)
            turn_off();
        return NULL;
    }
    return state == AOF_OFF ? turn_on() : NULL;
}

/* Somebody may have said `yes` since: then there is nobody left whom a failure could be told. */
static void finish_at_gate(struct worker *worker)
{
    if (!exclusive_begin(worker, GATE_WISH_AOF))
        return; /* looks again when it is woken */
    finish_stopping();
    if (OPTION_IS(option_appendonly)) {
        access_begin(&worker->run.access, worker_now_ms(worker), true);
        if (turn_on() != NULL)
            log_warning("The append-only file stays off although appendonly is yes.");
    }
    exclusive_end(worker);
}

static void look(struct worker *worker)
{
    worker_assert_zero(worker);
    if (phase_now() == PHASE_CHILD && aof_writer_split_failed())
        child_stop(CHILD_AOF);
    if (GET(state) == AOF_SUSPENDED)
        begin_anew_if_due(worker);
    else if (GET(state) != AOF_STOPPING)
        rewrite_if_due(worker);
    else if (may_finish_stopping())
        finish_at_gate(worker);
}

/* Continues if it waits for the gate. */
static void woken(struct worker *worker)
{
    if (worker->index != 0)
        return;
    if (UNLIKELY(GET(state) == AOF_STOPPING || GET(state) == AOF_SUSPENDED) ||
        UNLIKELY(exclusive_is_wished(worker, GATE_WISH_AOF)))
        look(worker);
}

static const char *apply_appendfsync(const struct option_row *row)
{
    gate_assert_alone();
    (void)row;
    aof_hold_update();
    aof_writer_poke();
    return NULL;
}

static const char *apply_lag_limit(const struct option_row *row)
{
    (void)row;
    aof_writer_set_lag_limit();
    return NULL;
}

static const char *apply_history(const struct option_row *row)
{
    gate_assert_alone();
    (void)row;
    aof_writer_drop_history();
    if (aof_writer_is_dropping())
        reply_when_done();
    return NULL;
}

void aof_stop(void)
{
    gate_assert_main_alone();
    if (GET(state) == AOF_OFF)
        return;
    if (GET(state) == AOF_ON)
        log_notice("Calling fsync() on the AOF file.");
    if (GET(state) != AOF_STOPPING)
        begin_to_stop();
    finish_stopping();
}

/* ------------------------------------------------------------------------------------------------------ figures -- */

void aof_stats(struct aof_stats *stats)
{
    /* While the child is not taken leave of the next rewrite would have to wait. */
    bool runs = phase_now() != PHASE_NONE || child_runs(CHILD_AOF);

    *stats = (struct aof_stats){
        .is_rewriting = runs,
        .is_scheduled = GET(is_scheduled) || (GET(state) == AOF_STOPPING && aof_is_on()),
        .last_was_good = GET(last_was_good),
        .last_duration_s = GET(last_duration_s),
        .running_s = runs ? ((int64_t)clock_monotonic_us() - GET(started_us)) / (1000 * 1000) : -1,
        .rewrites = GET(rewrites),
        .failures = GET(failures),
        .last_cow_bytes = GET(last_cow_bytes),
    };
}

static void aof_stats_reset(void)
{
    gate_assert_alone();
    SET(rewrites, 0);
    aof_writer_stats_reset();
}

void aof_setup(void)
{
    gate_assert_main_alone();
    config_on_change("appendonly", apply_appendonly);
    config_on_change("appendfsync", apply_appendfsync);
    config_on_change("aof-disable-auto-gc", apply_history);
    config_on_change("aof-lag-limit", apply_lag_limit);
    config_on_reset_stat(aof_stats_reset);
}

static void sample(struct server *server)
{
    look(&server->workers[0]);
}

const struct lifecycle aof_lifecycle = {
    .server_sample = sample,
    .worker_wake = woken,
};
