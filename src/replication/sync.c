#include "replication/sync.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/thread.h"
#include "persist/rdb_load.h"
#include "replication/backlog.h"
#include "replication/history.h"
#include "replication/master.h"
#include "replication/options.h"
#include "replication/replicas.h"
#include "replication/sync_file.h"
#include "replication/sync_pipe.h"
#include "replication/transfer.h"
#include "server/config/config.h"
#include "server/core/exclusive.h"
#include "server/core/server.h"
#include "server/durable/loading.h"
#include "server/durable/persistence.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum phase {
    PHASE_HEADER,
    PHASE_CHOOSES,
    PHASE_RECEIVES,
    PHASE_WRITES,
    PHASE_BEGINS,
    PHASE_LOADS,
    PHASE_DONE,
    PHASE_FAILED
};

struct sync {
    struct list_node node; /* released while the loader had it */
    struct worker *worker;
    uint64_t generation;
    void (*on_change)(void);
    char id[HISTORY_ID_SIZE + 1];
    int64_t offset;
    enum phase phase;
    bool is_complete; /* all bytes were received */
    struct transfer transfer;
    struct buffer early;    /* bytes that came with the header */
    struct sync_file *file; /* one of the two, from PHASE_RECEIVES on */
    struct sync_pipe *pipe;
    bool keeps_old, with_loader; /* the loader has it, until `loaded` */
    bool is_foreign;
    char error[700];
    /* the loader's, until `loaded` */
    bool good, load_is_foreign;
    char load_error[700];
    int64_t db;
    _Atomic bool loaded; /* atomic: release */
};

static struct list left; /* worker 0's: released, and still with the loader */

static enum sync_state fail(struct sync *sync, const char *reason)
{
    if (sync->phase != PHASE_FAILED)
        (void)snprintf(sync->error, sizeof(sync->error), "%s", reason);
    sync->phase = PHASE_FAILED;
    return SYNC_FAILED;
}

/* -------------------------------------------------------------------------------------------------- the loader -- */

static void take_aux(struct slice name, struct slice value, void *context)
{
    struct sync *sync = context;
    int64_t db;

    if (slice_equal(name, SLICE("repl-stream-db")) && number_parse_i64(value, &db) && db >= 0 && db < INT32_MAX)
        sync->db = db;
}

/* In the loader's thread, with the gate owned. */
static void end_load(const struct rdb_load_result *result, enum loading_end end, void *context)
{
    struct sync *sync = context;
    void (*on_change)(void) = sync->on_change;

    gate_assert_alone();
    sync->good = end == LOADING_REPLACED && master_generation() == sync->generation;
    if (sync->good) {
        backlog_begin(true);
        history_adopt(sync->id, sync->offset);
        journal_set_stream_db(&sync->worker->server->journal, (unsigned)sync->db);
        replicas_disconnect(true);
    } else {
        sync->load_is_foreign = result->status == STATUS_UNSUPPORTED;
        if (end != LOADING_KEPT) { /* the data is another now */
            history_begin();
            replicas_disconnect(true);
        }
        if (result->status == STATUS_INTERRUPTED)
            (void)snprintf(sync->load_error, sizeof(sync->load_error), "loading the master's data was interrupted");
        else
            (void)snprintf(sync->load_error, sizeof(sync->load_error),
                           "can't load the master's data: at byte %" PRIu64 ": %s", result->failed_at, result->error);
    }
    atomic_store_explicit(&sync->loaded, true, memory_order_release); /* worker 0 may free it now */
    on_change();
}

static bool rewind_file(void *context)
{
    return sync_file_rewind(((struct sync *)context)->file);
}

static bool put_in_place(void *context)
{
    return sync_file_put_in_place(((struct sync *)context)->file);
}

static bool may_wait(struct byte_source *source)
{
    return sync_pipe_would_wait(source);
}

/* With the gate owned. */
static bool start_load(struct sync *sync)
{
    const struct loading_replacement replacement = {
        .source = sync->pipe != NULL ? sync_pipe_source(sync->pipe) : sync_file_source(sync->file),
        .may_wait = sync->pipe != NULL ? may_wait : NULL,
        .rewind = sync->file != NULL ? rewind_file : NULL,
        .found_whole = sync->file != NULL ? put_in_place : NULL,
        .total_bytes = sync->transfer.total_bytes,
        .frees_later = OPTION_IS(option_replica_lazy_flush),
        .keeps_old = sync->keeps_old,
        .aux = take_aux,
        .done = end_load,
        .context = sync,
    };

    gate_assert_alone();
    sync->with_loader = loading_replace(&replacement);
    if (sync->with_loader)
        log_notice("MASTER <-> REPLICA sync: Loading DB in memory");
    return sync->with_loader;
}

/* -------------------------------------------------------------------------------------------------- at the gate -- */

static void give(struct slice bytes, void *context)
{
    struct sync *sync = context;

    if (sync->pipe != NULL)
        sync_pipe_add(sync->pipe, bytes);
    else if (sync->file != NULL)
        sync_file_add(sync->file, bytes);
    else
        buffer_append_slice(&sync->early, bytes);
}

static void give_early(struct sync *sync)
{
    struct buffer early = sync->early;

    buffer_init(&sync->early);
    give(buffer_slice(&early), sync);
    buffer_fini(&early);
}

static void all_received(struct sync *sync)
{
    sync->is_complete = true;
    if (sync->pipe != NULL) {
        sync_pipe_end(sync->pipe, STATUS_OK);
        sync->phase = PHASE_LOADS;
    } else {
        sync_file_finish(sync->file);
        sync->phase = PHASE_WRITES;
    }
}

static void log_receiving(const struct sync *sync, const char *where)
{
    if (sync->transfer.total_bytes != 0)
        log_notice("MASTER <-> REPLICA sync: receiving %llu bytes from master to %s",
                   (unsigned long long)sync->transfer.total_bytes, where);
    else
        log_notice("MASTER <-> REPLICA sync: receiving streamed RDB from master with EOF to %s", where);
}

static void receive_to_file(struct sync *sync)
{
    struct buffer name = {0};

    (void)config_get_text("dbfilename", &name);
    sync->file = sync_file_create(buffer_text(&name), sync->on_change);
    buffer_fini(&name);
    log_receiving(sync, "disk");
}

/* With the gate owned. False: nothing can be loaded now. */
static bool receive_to_loader(struct sync *sync)
{
    sync->keeps_old = OPTION_GET(option_repl_diskless_load) == DISKLESS_LOAD_SWAPDB;
    sync->pipe = sync_pipe_create(sync->on_change);
    log_receiving(sync, "parser");
    return start_load(sync);
}

static bool is_for_loader(const struct sync *sync)
{
    switch (OPTION_GET(option_repl_diskless_load)) {
    case DISKLESS_LOAD_SWAPDB:
    case DISKLESS_LOAD_FLUSHDB:
        return true;
    case DISKLESS_LOAD_ON_EMPTY_DB:
        return persistence_key_count(sync->worker->server->store) == 0;
    default:
        return false;
    }
}

static void choose(struct sync *sync)
{
    if (OPTION_GET(option_repl_diskless_load) == DISKLESS_LOAD_DISABLED) {
        receive_to_file(sync);
    } else {
        if (!exclusive_begin(sync->worker, GATE_WISH_MASTER))
            return;
        if (master_generation() != sync->generation)
            (void)fail(sync, "this master is not followed any more");
        else if (!is_for_loader(sync))
            receive_to_file(sync);
        else if (!receive_to_loader(sync))
            (void)fail(sync, "other data is being loaded");
        exclusive_end(sync->worker);
    }
    if (sync->phase == PHASE_FAILED)
        return;
    sync->phase = PHASE_RECEIVES;
    give_early(sync);
    if (sync->transfer.state == TRANSFER_ENDED)
        all_received(sync);
}

static void begin_load(struct sync *sync)
{
    if (!exclusive_begin(sync->worker, GATE_WISH_MASTER))
        return;
    if (master_generation() != sync->generation)
        (void)fail(sync, "this master is not followed any more");
    else if (!start_load(sync))
        (void)fail(sync, "other data is being loaded");
    else
        sync->phase = PHASE_LOADS;
    exclusive_end(sync->worker);
}

/* ------------------------------------------------------------------------------------------------------- a sync -- */

struct sync *sync_create(struct worker *worker, const struct sync_order *order)
{
    struct sync *sync = mem_alloc_zero(sizeof(*sync));

    worker_assert_zero(worker);
    assert(strlen(order->id) == HISTORY_ID_SIZE);
    list_node_init(&sync->node);
    sync->worker = worker;
    sync->generation = order->generation;
    sync->on_change = order->on_change;
    memcpy(sync->id, order->id, sizeof(sync->id));
    sync->offset = order->offset;
    transfer_init(&sync->transfer);
    return sync;
}

static void destroy(struct sync *sync)
{
    sync_file_release(&sync->file);
    sync_pipe_destroy(&sync->pipe);
    buffer_fini(&sync->early);
    mem_free(sync);
}

static bool is_with_loader(const struct sync *sync)
{
    return sync->with_loader && !atomic_load_explicit(&sync->loaded, memory_order_acquire);
}

static void free_returned(void)
{
    if (left.head.next == NULL)
        return;
    LIST_FOREACH_SAFE(node, &left) {
        struct sync *sync = container_of(node, struct sync, node);

        if (is_with_loader(sync))
            continue;
        list_remove(node);
        destroy(sync);
    }
}

void sync_release(struct sync **handle)
{
    struct sync *sync = *handle;

    free_returned();
    if (sync == NULL)
        return;
    worker_assert_zero(sync->worker);
    *handle = NULL;
    exclusive_drop(sync->worker, GATE_WISH_MASTER);
    if (sync->pipe != NULL)
        sync_pipe_end(sync->pipe, STATUS_INTERRUPTED);
    if (!is_with_loader(sync)) {
        destroy(sync);
        return;
    }
    loading_cancel();
    if (left.head.next == NULL)
        list_init(&left);
    list_push_back(&left, &sync->node);
}

void sync_free_left(void)
{
    thread_assert_main();
    free_returned();
    assert(left.head.next == NULL || list_is_empty(&left));
}

enum sync_state sync_take(struct sync *sync, const char *data, size_t size, size_t *used)
{
    worker_assert_zero(sync->worker);
    assert(sync_state(sync) == SYNC_TAKES);
    switch (transfer_take(&sync->transfer, data, size, used, give, sync)) {
    case TRANSFER_MORE:
        break;
    case TRANSFER_DONE:
        if (sync->phase == PHASE_RECEIVES)
            all_received(sync);
        break;
    case TRANSFER_FAILED:
        return fail(sync, sync->transfer.error);
    }
    if (sync->phase == PHASE_HEADER && sync->transfer.state != TRANSFER_HEADER)
        sync->phase = PHASE_CHOOSES;
    return sync_go_on(sync);
}

void sync_cut(struct sync *sync)
{
    if (sync->pipe != NULL)
        sync_pipe_end(sync->pipe, STATUS_INTERRUPTED);
    if (!sync->is_complete)
        (void)fail(sync, "the connection ended before the snapshot did");
}

static void look_at_file(struct sync *sync)
{
    if (sync->file == NULL || sync->phase >= PHASE_BEGINS)
        return;
    if (sync_file_state(sync->file) == SYNC_FILE_FAILED)
        (void)fail(sync, sync_file_error(sync->file));
    else if (sync_file_state(sync->file) == SYNC_FILE_READY)
        sync->phase = PHASE_BEGINS;
}

static void look_at_loader(struct sync *sync)
{
    if (!sync->with_loader || sync->phase >= PHASE_DONE || is_with_loader(sync))
        return;
    if (sync->good) {
        sync->phase = PHASE_DONE;
    } else {
        (void)fail(sync, sync->load_error);
        sync->is_foreign = sync->load_is_foreign;
    }
}

enum sync_state sync_go_on(struct sync *sync)
{
    worker_assert_zero(sync->worker);
    free_returned();
    if (sync->phase == PHASE_CHOOSES)
        choose(sync);
    look_at_file(sync);
    if (sync->phase == PHASE_BEGINS)
        begin_load(sync);
    look_at_loader(sync);
    return sync_state(sync);
}

enum sync_state sync_state(const struct sync *sync)
{
    switch (sync->phase) {
    case PHASE_HEADER:
        return SYNC_TAKES;
    case PHASE_CHOOSES:
        return SYNC_WAITS;
    case PHASE_RECEIVES:
        if (sync->pipe != NULL ? sync_pipe_is_full(sync->pipe) : sync_file_is_full(sync->file))
            return SYNC_WAITS;
        return SYNC_TAKES;
    case PHASE_WRITES:
    case PHASE_BEGINS:
    case PHASE_LOADS:
        return SYNC_LOADS;
    case PHASE_DONE:
        return SYNC_DONE;
    case PHASE_FAILED:
        break;
    }
    return sync->is_foreign ? SYNC_FOREIGN : SYNC_FAILED;
}

const char *sync_error(const struct sync *sync)
{
    assert(sync->phase == PHASE_FAILED);
    return sync->error;
}

unsigned sync_db(const struct sync *sync)
{
    assert(sync->phase == PHASE_DONE);
    return (unsigned)sync->db;
}

int64_t sync_read_bytes(const struct sync *sync)
{
    return (int64_t)sync->transfer.given_bytes;
}

int64_t sync_total_bytes(const struct sync *sync)
{
    return sync->transfer.state == TRANSFER_MARKED || sync->transfer.total_bytes == 0
               ? -1
               : (int64_t)sync->transfer.total_bytes;
}
