/* DEBUG subcommands about the server: the journal, time that passes, ways to end it, the log and the allocator. */
#include "commands/debug/debug_priv.h"

#include "base/background.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mem_control.h"
#include "base/mem_move.h"
#include "base/number.h"
#include "base/panic.h"
#include "base/status.h"
#include "persist/rdb_payload.h"
#include "replication/history.h"
#include "server/config/config.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/aof_load.h"
#include "server/durable/aof_writer.h"
#include "server/durable/file_options.h"
#include "server/durable/persistence.h"
#include "server/memory/client_limit.h"
#include "server/run/protect.h"
#include "server/run/standstill.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { RELEASE_STEP_US = 1000, FLUSH_SLEEP_MOST_US = 60 * 1000 * 1000 };

/* ------------------------------------------------------------------------------------------------- the journal -- */

/* global, guarded by the gate: the reader of DEBUG JOURNAL; open while its journal is not NULL. */
static struct journal_reader journal_reader;

static void journal_start(struct request *request)
{
    if (journal_reader.journal != NULL) {
        reply_error(request, "ERR the journal is already being read");
        return;
    }
    journal_reader_open(&journal_reader, &request->worker->server->journal);
    if (request->arg_count > 3 && request_arg_is(request, 3, "spills"))
        journal_reader_set(&journal_reader, JOURNAL_READER_SPILLS, 0);
    else if (request->arg_count > 3)
        journal_reader_set_lag_limit(&journal_reader, OPTION_GET_U64(option_aof_lag_limit));
    reply_ok(request);
}

static void journal_stop(struct request *request)
{
    debug_journal_close();
    reply_ok(request);
}

static void journal_read(struct request *request)
{
    struct buffer bytes = {0};
    struct journal_view view;

    if (journal_reader.journal == NULL) {
        reply_error(request, "ERR the journal is not being read: call DEBUG JOURNAL START first");
        return;
    }
    while (journal_reader_next(&journal_reader, &view)) {
        if ((view.flags & JOURNAL_AOF_ONLY) == 0) /* replicas' part of it */
            journal_view_append(&view, &bytes);
    }
    if (journal_reader.is_lost)
        reply_errorf(request, "ERR the next part of the journal is lost: %s", strerror(journal_reader.error));
    else
        reply_bulk(request, buffer_slice(&bytes));
    buffer_fini(&bytes);
}

static void journal_facts(struct request *request)
{
    struct journal_stats stats;
    char text[200];

    journal_stats(&request->worker->server->journal, &stats);
    snprintf(text, sizeof(text),
             "begin:%" PRIu64 " end:%" PRIu64 " memory:%" PRIu64 " spilled:%" PRIu64 " spilled_total:%" PRIu64,
             stats.begin_offset, stats.end_offset, stats.memory_bytes, stats.spilled_bytes, stats.spilled_total_bytes);
    reply_text(request, text);
}

static void debug_journal(struct request *request)
{
    bool is_short = request->arg_count == 3;

    if (request_arg_is(request, 2, "start") &&
        (is_short || request_arg_is(request, 3, "spills") || request_arg_is(request, 3, "holds")))
        journal_start(request);
    else if (is_short && request_arg_is(request, 2, "read"))
        journal_read(request);
    else if (is_short && request_arg_is(request, 2, "stop"))
        journal_stop(request);
    else if (is_short && request_arg_is(request, 2, "facts"))
        journal_facts(request);
    else
        reply_syntax_error(request);
}

void debug_journal_close(void)
{
    gate_assert_alone();
    if (journal_reader.journal == NULL)
        return;
    journal_reader_close(&journal_reader);
    journal_reader.journal = NULL;
}

/* For those who read the journal this is a command that changed something here; here it is not run. */
static void debug_replicate(struct request *request)
{
    effect_set(request, &request->args[2], request->arg_count - 2);
    reply_ok(request);
}

/* Replicas that ask for the former id get all data. */
static void debug_change_repl_id(struct request *request)
{
    log_notice("Changing replication IDs after receiving change-repl-id");
    history_begin();
    reply_ok(request);
}

/* ------------------------------------------------------------------------------------------------- time, the end -- */

static void debug_set_skip_checksum_validation(struct request *request)
{
    rdb_skip_checksums(!slice_equal_text(request_arg(request, 2), "0"));
    reply_ok(request);
}

static void debug_set_active_expire(struct request *request)
{
    bool on = !slice_equal_text(request_arg(request, 2), "0");

    atomic_store_explicit(&request->access->store->active_expire, on, memory_order_relaxed);
    reply_ok(request);
}

static void debug_set_disable_deny_scripts(struct request *request)
{
    protect_open_scripts(!slice_equal_text(request_arg(request, 2), "0"));
    reply_ok(request);
}

/* atomic: how often DEBUG RELEASE was called for each */
static _Atomic uint32_t busy_releases, hold_releases;

/* Text that is not a number counts as 0; the maximum is a day. */
static int64_t parse_us(struct slice seconds_text)
{
    double seconds = 0;

    if (!number_parse_double(seconds_text, &seconds) || !(seconds > 0))
        return 0;
    return (int64_t)(MIN(seconds, 86400.0) * 1e6);
}

static void sleep_us(int64_t us)
{
    struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* Until the time is over or somebody calls DEBUG RELEASE. */
static void sleep_until_released(int64_t us, _Atomic uint32_t *releases, uint32_t before)
{
    for (; us > 0 && atomic_load(releases) == before; us -= RELEASE_STEP_US)
        sleep_us(MIN(us, RELEASE_STEP_US));
}

static void debug_release(struct request *request)
{
    if (request_arg_is(request, 2, "busy"))
        atomic_fetch_add(&busy_releases, 1);
    else if (request_arg_is(request, 2, "hold"))
        atomic_fetch_add(&hold_releases, 1);
    else
        return reply_syntax_error(request);
    reply_ok(request);
}

static void debug_sleep(struct request *request)
{
    standstill(request->worker, parse_us(request_arg(request, 2)));
    reply_ok(request);
}

/* A long command on one key: its worker is inside the gate and serves nobody else meanwhile. */
static void debug_busy(struct request *request)
{
    sleep_until_released(parse_us(request_arg(request, 3)), &busy_releases, atomic_load(&busy_releases));
    reply_ok(request);
}

/* A stripe that a background thread holds for a while; no worker is kept from its other clients. */
struct hold {
    struct mail mail; /* tells the client's worker that it is over */
    struct worker *worker;
    uint64_t client_id, wait_count;
    struct stripe *stripe;
    int64_t us;
    uint32_t releases_before;
};

/* CLIENT UNBLOCK: the hold continues without its client. */
static void hold_unblocked(struct client *client, const char *error)
{
    if (error != NULL)
        resp_write_error_text(&client->conn.output, error);
    else
        resp_write_null(&client->conn.output, client->proto);
    client_unblock(client);
}

static void hold_over(struct worker *worker, struct mail *mail)
{
    struct hold *hold = container_of(mail, struct hold, mail);
    struct client *client = worker_find_client(worker, hold->client_id);

    if (client != NULL && client_end_wait(client, hold->wait_count)) { /* it may have left */
        resp_write_ok(&client->conn.output);
        client_unblock(client);
    }
    mem_free(hold);
}

NO_THREAD_SAFETY_ANALYSIS static void hold_run(void *argument)
{
    struct hold *hold = argument;
    struct mail *mail = &hold->mail;

    spinlock_acquire(&hold->stripe->lock);
    sleep_until_released(hold->us, &hold_releases, hold->releases_before);
    stripe_release(hold->worker->server->store, hold->stripe);
    worker_post(hold->worker, &mail);
}

void debug_end_holds(void)
{
    gate_assert_main_alone();
    atomic_fetch_add(&hold_releases, 1);
    background_drain();
}

static void debug_hold(struct request *request)
{
    const struct key key = key_make(request_arg(request, 2));
    struct hold *hold;

    if (request->in_exec) {
        reply_error(request, "ERR DEBUG HOLD is not allowed in transactions");
        return;
    }
    hold = mem_alloc_zero(sizeof(*hold));
    hold->mail.deliver = hold_over;
    hold->worker = request->worker;
    hold->client_id = request->client->id;
    hold->stripe = &request->worker->server->store->stripes[access_stripe_of(request->access, &key)];
    hold->us = parse_us(request_arg(request, 3));
    hold->releases_before = atomic_load(&hold_releases);
    client_block(request->client, hold_unblocked);
    hold->wait_count = request->client->wait_count;
    background_submit(BACKGROUND_OTHER, hold_run, hold);
}

/* --------------------------------------------------------------------------------------------- clients' memory -- */

/* Of clients that take so much: buckets whose bounds double, the last one without an end. */
enum { EVICTION_BUCKETS = 19, EVICTION_FIRST_BITS = 15 };

struct eviction_buckets {
    uint64_t bytes[EVICTION_BUCKETS], clients[EVICTION_BUCKETS];
};

static void count_client(const struct client_card *card, void *context)
{
    struct eviction_buckets *buckets = context;
    uint64_t bytes = client_card_memory_bytes(card);
    unsigned index = 0;

    while (index + 1 < EVICTION_BUCKETS && bytes >> (EVICTION_FIRST_BITS + index) != 0)
        index++;
    buckets->bytes[index] += bytes;
    buckets->clients[index]++;
}

static void debug_client_eviction(struct request *request)
{
    struct eviction_buckets buckets = {{0}, {0}};
    struct buffer text = {0};

    if (!atomic_load_explicit(&client_sizes_matter, memory_order_relaxed)) {
        reply_error(request, "ERR maxmemory-clients is disabled.");
        return;
    }
    server_each_client(request->worker->server, count_client, &buckets);
    for (unsigned i = 0; i < EVICTION_BUCKETS; i++) {
        unsigned long long end = 1ULL << (EVICTION_FIRST_BITS + i), start = i == 0 ? 0 : end / 2;

        if (i + 1 < EVICTION_BUCKETS)
            buffer_printf(&text, "bucket %10llu - %10llu: ", start, end - 1);
        else
            buffer_printf(&text, "bucket %10llu+            : ", start);
        buffer_printf(&text, "tot-mem: %10llu, clients: %llu\n", (unsigned long long)buckets.bytes[i],
                      (unsigned long long)buckets.clients[i]);
    }
    reply_verbatim(request, "txt", buffer_slice(&text));
    buffer_fini(&text);
}

static void debug_panic(struct request *request)
{
    (void)request;
    panic("DEBUG PANIC called");
}

static void debug_assert_failure(struct request *request)
{
    assert(request->arg_count == 0); /* never so: the command asks for a failure */
}

static void debug_oom(struct request *request)
{
    volatile size_t size = SIZE_MAX / 2;

    mem_free(mem_alloc(size));
    reply_ok(request);
}

static void debug_leak(struct request *request)
{
    status_ignore(mem_copy(request_arg(request, 2).data, request_arg(request, 2).size), "to be lost is what it is for");
    reply_ok(request);
}

static void debug_defrag_all(struct request *request)
{
    int64_t on;

    if (!request_arg_i64(request, 2, &on))
        return;
    mem_move_everything(on != 0);
    reply_ok(request);
}

static void debug_pause_cron(struct request *request)
{
    int64_t paused;

    if (!request_arg_i64(request, 2, &paused))
        return;
    server_pause_cron(request->worker->server, paused != 0);
    reply_ok(request);
}

static void debug_reload(struct request *request)
{
    static const struct {
        const char *word;
        unsigned flag;
    } words[] = {{"nosave", RELOAD_NOSAVE}, {"noflush", RELOAD_NOFLUSH}, {"merge", RELOAD_MERGE}};
    unsigned flags = 0;

    for (uint32_t i = 2; i < request->arg_count; i++) {
        size_t k = 0;

        while (k < countof(words) && !request_arg_is(request, i, words[k].word))
            k++;
        if (k == countof(words)) {
            reply_error(request, "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
            return;
        }
        flags |= words[k].flag;
    }
    if (persistence_reload(request->access, flags))
        reply_ok(request);
    else
        reply_error(request, "ERR Error trying to load the RDB dump, check server logs.");
}

static void debug_loadaof(struct request *request)
{
    if (aof_load_again(request->worker))
        reply_ok(request);
    else
        reply_error(request, "ERR Error trying to load the AOF files, check server logs.");
}

static void debug_aof_sync_fail(struct request *request)
{
    int64_t fail;

    if (!request_arg_i64(request, 2, &fail))
        return;
    aof_writer_fail_syncs(fail != 0);
    reply_ok(request);
}

/* A minute is the most. */
static void debug_aof_flush_sleep(struct request *request)
{
    int64_t us;

    if (!request_arg_i64(request, 2, &us))
        return;
    aof_writer_sleep((uint32_t)MIN(MAX(us, 0), FLUSH_SLEEP_MOST_US));
    reply_ok(request);
}

static void debug_config_rewrite_force_all(struct request *request)
{
    const char *reason = config_rewrite_everything();

    if (reason != NULL)
        reply_errorf(request, "ERR CONFIG-REWRITE-FORCE-ALL failed: %s", reason);
    else
        reply_ok(request);
}

/* Memory for replies is allocated on demand and freed when they are sent. There is no buffer that grows and shrinks,
 * and nothing to set. The command replies as in Redis, for tests that use it. */
static void debug_replybuffer(struct request *request)
{
    int64_t number;

    if (request_arg_is(request, 2, "resizing")) {
        if (request_arg_i64(request, 3, &number))
            reply_ok(request);
    } else if (request_arg_is(request, 2, "peak-reset-time")) {
        if (request_arg_is(request, 3, "never") || request_arg_is(request, 3, "reset") ||
            request_arg_i64(request, 3, &number))
            reply_ok(request);
    } else {
        debug_refuse(request);
    }
}

/* ------------------------------------------------------------------------------------------- log and allocator -- */

static void debug_log(struct request *request)
{
    struct slice text = request_arg(request, 2);

    log_warning("DEBUG LOG: %.*s", (int)MIN(text.size, (size_t)LOG_MESSAGE_LIMIT_BYTES), text.data);
    reply_ok(request);
}

static void append_report(void *context, const char *text)
{
    buffer_append_text(context, text);
}

static void debug_jmap(struct request *request)
{
    struct buffer text = {0};

    mem_report(append_report, &text);
    reply_verbatim(request, "txt", buffer_slice(&text));
    buffer_fini(&text);
}

static void reply_control_error(struct request *request, int error)
{
    reply_errorf(request, "ERR %s", strerror(error));
}

static void debug_mallctl(struct request *request)
{
    char *name = mem_copy(request_arg(request, 2).data, request_arg(request, 2).size);
    int64_t wanted = 0;
    uint64_t value = 0;
    int error;

    if (request->arg_count == 4 && !request_arg_i64(request, 3, &wanted)) {
        mem_free(name);
        return;
    }
    error = mem_control_number(name, &value);
    if (error == 0 && request->arg_count == 4)
        error = mem_control_set_number(name, (uint64_t)wanted);
    if (error == 0)
        reply_int(request, (int64_t)value);
    else
        reply_control_error(request, error);
    mem_free(name);
}

/* For names that stand for an action, as thread.tcache.flush. */
static void act(struct request *request, char *name)
{
    int error = mem_control_act(name);

    if (error == 0)
        reply_ok(request);
    else
        reply_control_error(request, error);
    mem_free(name);
}

static void debug_mallctl_str(struct request *request)
{
    char *name = mem_copy(request_arg(request, 2).data, request_arg(request, 2).size);
    const char *value = NULL;
    int error;

    if (request->arg_count == 4 && slice_equal(request_arg(request, 3), SLICE("VOID"))) {
        act(request, name);
        return;
    }
    error = mem_control_text(name, &value);
    if (error == 0 && request->arg_count == 4) {
        char *wanted = mem_copy(request_arg(request, 3).data, request_arg(request, 3).size);

        error = mem_control_set_text(name, wanted);
        mem_free(wanted);
    }
    if (error == 0)
        reply_text(request, value != NULL ? value : "");
    else
        reply_control_error(request, error);
    mem_free(name);
}

const struct debug_row debug_server_rows[] = {
    {"aof-flush-sleep", "<microseconds>",
     "Make the writer of the append-only file sleep before each write, a minute at most.", debug_aof_flush_sleep, 3, 3,
     ACCESS_FREE, 0, 0},
    {"aof-sync-fail", "<0|1>", "With 1, every sync of the append-only file's last increment fails.",
     debug_aof_sync_fail, 3, 3, ACCESS_FREE, 0, 0},
    {"assert", "", "Fail an assertion, which ends the server.", debug_assert_failure, 2, UINT32_MAX, ACCESS_FREE, 0, 0},
    {"busy", "<key> <seconds>", "Keep a worker busy on <key> for so long, or until RELEASE.", debug_busy, 4, 4,
     ACCESS_STRIPED, 2, 2},
    {"change-repl-id", "", "Begin a new replication id: replicas that come back get all data.", debug_change_repl_id, 2,
     2, ACCESS_EXCLUSIVE, 0, 0},
    {"client-eviction", "", "Return how many clients use how much memory, if maxmemory-clients is set.",
     debug_client_eviction, 2, 2, ACCESS_FREE, 0, 0},
    {"defrag-all", "<0|1>",
     "With 1, active defragmentation moves all memory, as fast as active-defrag-cycle-max allows;\n"
     "also with allocators that do not support defragmentation.",
     debug_defrag_all, 3, 3, ACCESS_FREE, 0, 0},
    {"hold", "<key> <seconds>",
     "Hold the lock of <key> for so long, or until RELEASE: commands on it wait, and workers "
     "serve others.",
     debug_hold, 4, 4, ACCESS_FREE, 0, 0},
    {"jmap", "", "Return the statistics of the allocator as text.", debug_jmap, 2, 2, ACCESS_FREE, 0, 0},
    {"journal", "(START [SPILLS|HOLDS]|READ|STOP|FACTS)",
     "Record the effects of commands, and return those since the last call. SPILLS: a slow reader spills to a file.\n"
     "HOLDS: it makes writers wait. FACTS: offsets and sizes.",
     debug_journal, 3, 4, ACCESS_EXCLUSIVE, 0, 0},
    {"leak", "<string>", "Leak the memory of a copy of <string>.", debug_leak, 3, 3, ACCESS_FREE, 0, 0},
    {"log", "<message>", "Write <message> to the server log.", debug_log, 3, 3, ACCESS_FREE, 0, 0},
    {"mallctl", "<name> [<number>]", "Return, and optionally set, a number of the allocator.", debug_mallctl, 3, 4,
     ACCESS_FREE, 0, 0},
    {"mallctl-str", "<name> [<text>|VOID]",
     "Return, and optionally set, a text of the allocator. VOID: run the action of this name.", debug_mallctl_str, 3, 4,
     ACCESS_FREE, 0, 0},
    {"pause-cron", "<0|1>",
     "With 1, periodic work stops: no active expiry, no closing of idle\n"
     "clients; signals wait.",
     debug_pause_cron, 3, 3, ACCESS_FREE, 0, 0},
    {"reload", "[option ...]",
     "Save the data, delete it, and load it again. NOSAVE: load the existing file. NOFLUSH: delete nothing.\n"
     "MERGE: keys of the file replace existing ones, otherwise these are an error.",
     debug_reload, 2, 5, ACCESS_EXCLUSIVE, 0, 0},
    {"loadaof", "", "Delete the data, and load it from the append-only file.", debug_loadaof, 2, 2, ACCESS_EXCLUSIVE, 0,
     0},
    {"config-rewrite-force-all", "", "Like CONFIG REWRITE, but also write options that have their default.",
     debug_config_rewrite_force_all, 2, 2, ACCESS_EXCLUSIVE, 0, 0},
    {"replybuffer", "(PEAK-RESET-TIME <NEVER|RESET|milliseconds>|RESIZING <0|1>)",
     "No effect: this server has no reply buffers of a fixed size.", debug_replybuffer, 4, 4, ACCESS_FREE, 0, 0},
    {"oom", "", "End the server as if there were no memory left.", debug_oom, 2, 2, ACCESS_FREE, 0, 0},
    {"panic", "", "End the server as on a violated invariant.", debug_panic, 2, UINT32_MAX, ACCESS_FREE, 0, 0},
    {"release", "(BUSY|HOLD)", "End all running DEBUG BUSY or DEBUG HOLD commands.", debug_release, 3, 3, ACCESS_FREE,
     0, 0},
    {"replicate", "<word> [<word> ...]", "Journal these words as if they were a command that has changed data.",
     debug_replicate, 3, UINT32_MAX, ACCESS_EXCLUSIVE, 0, 0},
    {"segfault", "[ROSTER|REGISTRY|ALLOCATOR]",
     "End the server by an invalid memory access, with a lock of that kind held.", debug_segfault, 2, UINT32_MAX,
     ACCESS_FREE, 0, 0},
    {"set-active-expire", "<0|1>", "With 0, expired keys stay until they are accessed.", debug_set_active_expire, 3, 3,
     ACCESS_FREE, 0, 0},
    {"set-disable-deny-scripts", "<0|1>", "With 1, scripts may call commands with the noscript flag.",
     debug_set_disable_deny_scripts, 3, 3, ACCESS_FREE, 0, 0},
    {"set-skip-checksum-validation", "<0|1>", "With 1, RESTORE and loading accept any checksum.",
     debug_set_skip_checksum_validation, 3, 3, ACCESS_FREE, 0, 0},
    {"sleep", "<seconds>", "Stop the whole server for a while. Decimals are allowed.", debug_sleep, 3, 3,
     ACCESS_EXCLUSIVE, 0, 0},
    {0},
};
