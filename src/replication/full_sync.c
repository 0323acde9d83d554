#include "replication/full_sync.h"

#include "base/assert.h"
#include "base/blob.h"
#include "base/clock.h"
#include "base/fence.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/status.h"
#include "base/thread.h"
#include "data/stream_idmp.h"
#include "replication/backlog.h"
#include "replication/history.h"
#include "replication/options.h"
#include "replication/replica_priv.h"
#include "replication/snapshot_version.h"
#include "server/core/client.h"
#include "server/core/exclusive.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/durable/child.h"
#include "server/durable/data_history.h"
#include "server/durable/data_order.h"
#include "server/durable/file_options.h"
#include "server/durable/libraries.h"
#include "server/durable/loading.h"
#include "server/durable/persistence.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 64 * 1024,
    PIECES = 16, /* in the ring */
    TURN_PIECES = 8,
    PIPE_BYTES = 1024 * 1024,
    MARK_BYTES = 40,
    SECOND_US = 1000 * 1000
};

/* SAVES: the child writes the file. SENDS: pieces are read. ENDS: nobody is left, the child is still running. */
enum phase { SYNC_NONE, SYNC_SAVES, SYNC_SENDS, SYNC_ENDS };
enum outcome { OUTCOME_OPEN, OUTCOME_COMPLETE, OUTCOME_FAILED };

struct fd_sink {
    struct byte_sink sink;
    int fd;
};

static struct {
    /* Worker 0's. */
    enum phase phase;
    bool child_runs, child_was_good, source_ended, is_watching;
    int source; /* the pipe, or the file; -1: none */
    struct loop_watch watch;
    struct journal_reader reader; /* keeps the stream from the snapshot on */
    uint64_t begin_us;
    /* What the child does; const while it runs. */
    struct persistence_sync work;
    struct fd_sink sink;
    int pipe_end; /* until the child has it */
    char path[FILE_PATH_SPACE], temp_path[FILE_PATH_SPACE];
    struct data_history history;
    struct data_history_texts texts;
    struct rdb_aux aux[DATA_HISTORY_FACTS];

    _Atomic uint64_t held_bytes; /* atomic: relaxed; of the ring; written by worker 0 */
    _Atomic bool is_full;        /* atomic: worker 0 waits until links have taken pieces */
    struct spinlock lock;        /* rank LOCK_REGISTRY; guards all below */
    uint64_t number;
    uint64_t journal_offset;
    char reply[80];
    bool is_diskless;
    uint64_t size; /* of the file */
    char mark[MARK_BYTES];
    enum outcome outcome;
    uint64_t first, next; /* numbers of pieces: the oldest one in the ring, and the one behind the newest */
    struct blob *ring[PIECES];
} sync_ = {.source = -1};

#define SYNC (&sync_)

/* -------------------------------------------------------------------------------------------- in the child -- */

static must_check enum status write_fd(struct byte_sink *sink, struct slice bytes)
{
    const struct fd_sink *self = container_of(sink, struct fd_sink, sink);

    while (bytes.size != 0) {
        ssize_t size = write(self->fd, bytes.data, bytes.size);

        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            return STATUS_IO;
        bytes.data += size;
        bytes.size -= (size_t)size;
    }
    return STATUS_OK;
}

static void run_child(struct snapshot *keys, struct child_report *report, void *context)
{
    struct rdb_save_result result;

    (void)context;
    SYNC->work.progress = child_tell_keys;
    SYNC->work.context = report;
    report->status = persistence_save_sync(&SYNC->work, keys, &result);
    report->keys = result.keys;
    report->bytes = result.bytes;
    (void)snprintf(report->error, sizeof(report->error), "%s", result.error);
}

/* ---------------------------------------------------------------------------------------------- who takes part -- */

static bool is_waiting(const struct replica *link)
{
    return atomic_load_explicit(&link->state, memory_order_relaxed) == REPLICA_WAITS &&
           atomic_load_explicit(&link->sync_number, memory_order_relaxed) == 0 && replicas_is_current(link);
}

/* Those that can share one snapshot with the one that waits longest. */
struct group {
    unsigned count;
    unsigned capa; /* of all of them */
    unsigned filter;
    bool is_keydb, is_valkey;
    uint64_t since_us;
};

static bool fits(const struct group *group, const struct replica *link)
{
    if (!is_waiting(link))
        return false;
    return group->count == 0 || (link->filter == group->filter && replica_is_plain_keydb(link) == group->is_keydb &&
                                 replica_is_valkey(link) == group->is_valkey);
}

static void find_group(struct group *group)
{
    *group = (struct group){.capa = ~0U};
    spinlock_acquire(&replicas_lock);
    LIST_FOREACH(node, &replicas_list) {
        const struct replica *link = container_of(node, struct replica, node);

        if (!fits(group, link))
            continue;
        if (group->count++ == 0) {
            group->filter = link->filter;
            group->is_keydb = replica_is_plain_keydb(link);
            group->is_valkey = replica_is_valkey(link);
            group->since_us = atomic_load_explicit(&link->waits_since_us, memory_order_relaxed);
        }
        group->capa &= link->capa;
    }
    spinlock_release(&replicas_lock);
}

static void take_in(const struct group *wanted, uint64_t number)
{
    struct group group = *wanted;

    spinlock_acquire(&replicas_lock);
    LIST_FOREACH(node, &replicas_list) {
        struct replica *link = container_of(node, struct replica, node);

        if (!fits(&group, link))
            continue;
        atomic_store_explicit(&link->sync_next, 0, memory_order_relaxed);
        atomic_store_explicit(&link->sync_number, number, memory_order_release);
    }
    spinlock_release(&replicas_lock);
}

/* The number of links in the sync, and the oldest piece that one of them still needs. */
static unsigned count_links(uint64_t *least)
{
    unsigned count = 0;

    *least = UINT64_MAX;
    spinlock_acquire(&replicas_lock);
    LIST_FOREACH(node, &replicas_list) {
        const struct replica *link = container_of(node, struct replica, node);

        if (atomic_load_explicit(&link->sync_number, memory_order_acquire) != SYNC->number)
            continue;
        *least = MIN(*least, atomic_load_explicit(&link->sync_next, memory_order_acquire));
        count++;
    }
    spinlock_release(&replicas_lock);
    return count;
}

static void wake_all(struct worker *worker)
{
    for (unsigned i = 0; i < worker->server->worker_count; i++)
        worker_wake(&worker->server->workers[i]);
}

/* -------------------------------------------------------------------------------------------------------- pieces -- */

static void note_held(void)
{
    atomic_store_explicit(&SYNC->held_bytes, (SYNC->next - SYNC->first) * PIECE_BYTES, memory_order_relaxed);
}

static void drop_pieces(uint64_t until)
{
    struct blob *gone[PIECES];
    unsigned count = 0;

    spinlock_acquire(&SYNC->lock);
    until = MIN(until, SYNC->next);
    for (; SYNC->first < until; SYNC->first++) {
        gone[count++] = SYNC->ring[SYNC->first % PIECES];
        SYNC->ring[SYNC->first % PIECES] = NULL;
    }
    spinlock_release(&SYNC->lock);
    note_held();
    while (count != 0)
        blob_release(&gone[--count]);
}

static void set_outcome(struct worker *worker, enum outcome outcome)
{
    spinlock_acquire(&SYNC->lock);
    SYNC->outcome = outcome;
    spinlock_release(&SYNC->lock);
    wake_all(worker);
}

static void fail(struct worker *worker, const char *reason)
{
    log_warning("Full sync with replicas failed: %s", reason);
    set_outcome(worker, OUTCOME_FAILED);
}

/* Reads until the piece is full, or nothing more is there. NULL: there is nothing. */
static struct blob *read_piece(struct worker *worker)
{
    struct blob *piece = blob_create(PIECE_BYTES);
    size_t done = 0;

    while (done < PIECE_BYTES && !SYNC->source_ended) {
        ssize_t size = read(SYNC->source, piece->data + done, PIECE_BYTES - done);

        if (size > 0) {
            done += (size_t)size;
        } else if (size == 0) {
            SYNC->source_ended = true;
        } else if (errno != EINTR) {
            if (errno != EAGAIN) {
                SYNC->source_ended = true;
                fail(worker, strerror(errno));
            }
            break;
        }
    }
    piece->size = done;
    if (done == 0)
        blob_release(&piece);
    return piece;
}

static void on_readable(struct loop *loop, struct loop_watch *ready);

static void watch(struct worker *worker, bool is_wanted)
{
    if (is_wanted == SYNC->is_watching || !SYNC->is_diskless)
        return;
    SYNC->is_watching = is_wanted;
    if (!is_wanted)
        loop_watch_stop(worker->loop, &SYNC->watch);
    else if (!loop_watch_start(worker->loop, &SYNC->watch, SYNC->source, on_readable))
        fail(worker, strerror(errno));
}

/* True if the ring is full, also after another look. */
static bool is_full(void)
{
    uint64_t least;

    if (SYNC->next - SYNC->first < PIECES)
        return false;
    atomic_store(&SYNC->is_full, true);
    fence_full(); /* pairs with tell_of_progress */
    (void)count_links(&least);
    drop_pieces(least);
    return SYNC->next - SYNC->first >= PIECES;
}

static void add_piece(struct blob *piece)
{
    spinlock_acquire(&SYNC->lock);
    assert(SYNC->next - SYNC->first < PIECES);
    SYNC->ring[SYNC->next++ % PIECES] = piece;
    spinlock_release(&SYNC->lock);
    note_held();
}

static void log_source_end(void)
{
    uint64_t least;

    if (SYNC->is_diskless)
        log_notice("Diskless rdb transfer, done reading from pipe, %u replicas still up.", count_links(&least));
}

static void look_at_end(struct worker *worker)
{
    if (SYNC->source_ended && !SYNC->child_runs && SYNC->outcome == OUTCOME_OPEN)
        set_outcome(worker, OUTCOME_COMPLETE);
}

static void read_pieces(struct worker *worker)
{
    const bool had_ended = SYNC->source_ended;
    unsigned count = 0;
    struct blob *piece = NULL;

    while (!SYNC->source_ended && count < TURN_PIECES && !is_full() && (piece = read_piece(worker)) != NULL) {
        add_piece(piece);
        count++;
    }
    watch(worker, !SYNC->source_ended && SYNC->next - SYNC->first < PIECES);
    if (count == TURN_PIECES)
        worker_wake(worker); /* others first */
    if (count != 0)
        followers_wake(worker);
    if (SYNC->source_ended && !had_ended)
        log_source_end();
    look_at_end(worker);
}

static void on_readable(struct loop *loop, struct loop_watch *ready)
{
    (void)ready;
    read_pieces(loop_user(loop));
}

/* ------------------------------------------------------------------------------------------------------ the end -- */

/* Nothing is left of it but perhaps the child. */
static void end(struct worker *worker)
{
    watch(worker, false);
    drop_pieces(UINT64_MAX);
    if (SYNC->source >= 0)
        (void)close(SYNC->source);
    SYNC->source = -1;
    journal_reader_close(&SYNC->reader); /* the journal is kept */
    if (SYNC->child_runs) {
        log_notice("%s, last replica dropped, killing fork child.",
                   SYNC->is_diskless ? "Diskless rdb transfer" : "Snapshot for replicas");
        child_stop(CHILD_SYNC);
        SYNC->phase = SYNC_ENDS;
    } else {
        SYNC->phase = SYNC_NONE;
    }
}

static bool open_file(void)
{
    struct stat facts;
    int fd = open(SYNC->path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &facts) != 0) {
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    SYNC->source = fd;
    spinlock_acquire(&SYNC->lock);
    SYNC->size = (uint64_t)facts.st_size;
    spinlock_release(&SYNC->lock);
    return true;
}

static void remove_files(void)
{
    if (SYNC->is_diskless)
        return;
    (void)unlink(SYNC->path);
    (void)unlink(SYNC->temp_path);
}

static void child_done(const struct child_report *report, void *context)
{
    struct worker *worker = context;
    const bool good = report->is_last && report->status == STATUS_OK;

    worker_assert_zero(worker);
    SYNC->child_runs = false;
    SYNC->child_was_good = good;
    if (SYNC->phase == SYNC_ENDS) {
        remove_files();
        SYNC->phase = SYNC_NONE;
        return;
    }
    if (!good) {
        fail(worker, report->error);
    } else {
        log_notice("Snapshot for replicas: %llu keys, %llu bytes, %llu MB of memory copied on write",
                   (unsigned long long)report->keys, (unsigned long long)report->bytes,
                   (unsigned long long)(report->cow_bytes >> 20));
        if (SYNC->phase == SYNC_SAVES && !open_file())
            fail(worker, strerror(errno));
    }
    remove_files();
    SYNC->phase = SYNC_SENDS;
    if (good && SYNC->source >= 0)
        read_pieces(worker);
}

/* -------------------------------------------------------------------------------------------------------- begin -- */

static void count_library(struct slice source, void *context)
{
    (void)source;
    ++*(unsigned *)context;
}

static enum snapshot_readers readers_of(const struct group *group)
{
    if (group->is_keydb)
        return SNAPSHOT_FOR_KEYDB;
    if (group->is_valkey)
        return SNAPSHOT_FOR_VALKEY;
    return (group->capa & REPLICA_CAPA_NEWEST) != 0 ? SNAPSHOT_FOR_NEWEST : SNAPSHOT_FOR_OTHERS;
}

static void choose_version(const struct group *group, const struct access *access)
{
    const struct rdb_write_options options = rdb_file_options();
    const bool has_keys = !SYNC->work.without_keys;
    unsigned libraries = 0;
    struct snapshot_contents contents;
    struct snapshot_version version;

    libraries_each(count_library, &libraries);
    contents = (struct snapshot_contents){
        .has_libraries = libraries != 0 && !SYNC->work.without_libraries,
        .had_streams = has_keys && access_had_streams(access),
        .has_field_deadlines = has_keys && access_has_member_deadlines(access, TYPE_HASH),
        .may_have_idmp = has_keys && access_had_streams(access) && stream_idmp_is_used(),
    };
    version = snapshot_version_choose(&options, readers_of(group), &contents);
    SYNC->work.least_version = version.least;
    SYNC->work.most_version = version.most;
    SYNC->work.without_libraries = SYNC->work.without_libraries || version.without_libraries;
}

static void prepare(const struct group *group, const struct history_facts *facts, bool is_diskless)
{
    char name[64];

    spinlock_acquire(&SYNC->lock);
    assert(SYNC->first == SYNC->next);
    SYNC->number++;
    SYNC->first = SYNC->next = 0;
    SYNC->outcome = OUTCOME_OPEN;
    SYNC->is_diskless = is_diskless;
    SYNC->journal_offset = history_to_journal(facts->offset);
    random_hex(SYNC->mark, MARK_BYTES);
    (void)snprintf(SYNC->reply, sizeof(SYNC->reply), "+FULLRESYNC %s %lld\r\n", facts->id, (long long)facts->offset);
    spinlock_release(&SYNC->lock);
    SYNC->work = (struct persistence_sync){.path = SYNC->path,
                                           .temp_path = SYNC->temp_path,
                                           .without_keys = (group->filter & REPLICA_WITHOUT_KEYS) != 0,
                                           .without_libraries = (group->filter & REPLICA_WITHOUT_LIBRARIES) != 0,
                                           .with_mvcc = group->is_keydb &&
                                                        journal_is_stamping(&server_instance()->journal),
                                           .aux = SYNC->aux,
                                           .aux_count = countof(SYNC->aux)};
    static_assert((int)DATA_HISTORY_ID_SIZE == (int)HISTORY_ID_SIZE, "ids are of one size");
    SYNC->history = (struct data_history){.offset = facts->offset,
                                          .stream_db = journal_stream_db(&server_instance()->journal)};
    memcpy(SYNC->history.id, facts->id, sizeof(SYNC->history.id));
    data_history_write(&SYNC->history, &SYNC->texts, SYNC->aux);
    (void)snprintf(name, sizeof(name), "temp-sync-%d-%llu.rdb", (int)getpid(), (unsigned long long)SYNC->number);
    file_full_path(SYNC->path, name);
    (void)snprintf(name, sizeof(name), "temp-sync-%d-%llu.part", (int)getpid(), (unsigned long long)SYNC->number);
    file_full_path(SYNC->temp_path, name);
    SYNC->source = -1;
    SYNC->pipe_end = 0;
    SYNC->source_ended = SYNC->child_was_good = SYNC->is_watching = false;
    SYNC->begin_us = clock_monotonic_us();
    atomic_store(&SYNC->is_full, false);
}

static bool open_pipe(void)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES); /* less is fine, too */
    SYNC->source = ends[0];
    SYNC->pipe_end = ends[1];
    return true;
}

/* On a replica the stream's bytes are the master's, and the snapshot names the database that is selected there. */
static void open_reader(struct journal *journal)
{
    bool good;

    if (!role_follows()) {
        journal_reader_open(&SYNC->reader, journal);
        journal_reader_set(&SYNC->reader, JOURNAL_READER_SPILLS, 0);
        return;
    }
    good = journal_reader_open_at(&SYNC->reader, journal, journal_end_offset(journal),
                                  JOURNAL_READER_SPILLS | JOURNAL_READER_PLACE, NULL);
    assert(good);
}

static bool start_child(struct worker *worker)
{
    struct access *access = &worker->run.access;
    const struct child_task task = {.kind = CHILD_SYNC,
                                    .run = run_child,
                                    .done = child_done,
                                    .context = worker,
                                    .access = access,
                                    .keys_total = persistence_key_count(worker->server->store),
                                    .kept_fd = SYNC->pipe_end};

    access_begin(access, worker_now_ms(worker), true);
    SYNC->sink = (struct fd_sink){.sink = {.write = write_fd}, .fd = SYNC->pipe_end};
    if (SYNC->pipe_end != 0)
        SYNC->work.sink = &SYNC->sink.sink;
    SYNC->pipe_end = 0; /* it is the child's */
    persistence_prepare_sync(&SYNC->work);
    SYNC->child_runs = child_start(&task);
    return SYNC->child_runs;
}

static void start(struct worker *worker, const struct group *group, bool is_diskless)
{
    struct history_facts facts;
    const char *failed = NULL;
    char reason[128];

    gate_assert_alone();
    backlog_begin(false);
    history_facts(&facts);
    open_reader(&worker->server->journal);
    prepare(group, &facts, is_diskless);
    choose_version(group, &worker->run.access);
    take_in(group, SYNC->number);
    SYNC->phase = is_diskless ? SYNC_SENDS : SYNC_SAVES;
    if (is_diskless && !open_pipe())
        failed = "pipe";
    else if (!start_child(worker))
        failed = "fork";
    if (failed != NULL) {
        (void)snprintf(reason, sizeof(reason), "%s: %s", failed, strerror(errno));
        fail(worker, reason);
    }
    if (failed == NULL)
        log_notice("Background %s started by %s: full sync with %u replicas", is_diskless ? "RDB transfer" : "saving",
                   child_name(CHILD_SYNC), group->count);
}

static bool is_due(struct group *group, bool *is_diskless)
{
    const uint64_t delay_us = (uint64_t)OPTION_GET(option_repl_diskless_sync_delay) * SECOND_US;
    const int64_t most = OPTION_GET(option_repl_diskless_sync_max_replicas);

    find_group(group);
    if (group->count == 0)
        return false;
    *is_diskless = (OPTION_IS(option_repl_diskless_sync) || group->filter != 0) &&
                   (group->capa & REPLICA_CAPA_EOF) != 0;
    return !*is_diskless || (most != 0 && group->count >= most) || clock_monotonic_us() - group->since_us >= delay_us;
}

static void begin_if_due(struct worker *worker)
{
    struct group group;
    bool is_diskless = false;

    if (!child_may_start(CHILD_SYNC) || loading_runs() || server_is_stopping(worker->server) ||
        !is_due(&group, &is_diskless)) {
        exclusive_drop(worker, GATE_WISH_SYNC);
        return;
    }
    if (!exclusive_begin(worker, GATE_WISH_SYNC))
        return; /* looks again when it is woken */
    if (child_may_start(CHILD_SYNC) && is_due(&group, &is_diskless))
        start(worker, &group, is_diskless);
    exclusive_end(worker);
    wake_all(worker);
}

static void look(struct worker *worker)
{
    uint64_t least;

    worker_assert_zero(worker);
    if (UNLIKELY(SYNC->phase != SYNC_NONE)) {
        if (SYNC->phase == SYNC_ENDS)
            return;
        if (count_links(&least) == 0) {
            end(worker);
        } else if (SYNC->phase == SYNC_SENDS && SYNC->source >= 0) {
            drop_pieces(least);
            read_pieces(worker);
        }
    }
    if (SYNC->phase == SYNC_NONE && replicas_count() != 0)
        begin_if_due(worker);
    else
        exclusive_drop(worker, GATE_WISH_SYNC);
}

void full_sync_wish(void)
{
    worker_wake(&server_instance()->workers[0]);
}

bool full_sync_runs(void)
{
    return child_runs(CHILD_SYNC);
}

uint64_t full_sync_held_bytes(void)
{
    return atomic_load_explicit(&SYNC->held_bytes, memory_order_relaxed);
}

/* ------------------------------------------------------------------------------------------- a link in its sync -- */

/* What a link has to know of its sync. */
struct view {
    enum outcome outcome;
    bool is_diskless;
    uint64_t size, journal_offset;
    struct blob *piece; /* a reference; NULL: it is not there yet */
    char reply[80], mark[MARK_BYTES];
};

static void see(struct replica *link, struct view *view)
{
    const uint64_t next = atomic_load_explicit(&link->sync_next, memory_order_relaxed);

    *view = (struct view){.outcome = OUTCOME_FAILED};
    spinlock_acquire(&SYNC->lock);
    if (SYNC->number == atomic_load_explicit(&link->sync_number, memory_order_relaxed)) {
        view->outcome = SYNC->outcome;
        view->is_diskless = SYNC->is_diskless;
        view->size = SYNC->size;
        view->journal_offset = SYNC->journal_offset;
        if (next < SYNC->first)
            view->outcome = OUTCOME_FAILED; /* it has ended, and took its pieces with it */
        else if (next != SYNC->next)
            view->piece = blob_acquire(SYNC->ring[next % PIECES]);
        memcpy(view->reply, SYNC->reply, sizeof(view->reply));
        memcpy(view->mark, SYNC->mark, MARK_BYTES);
    }
    spinlock_release(&SYNC->lock);
}

static void tell_of_progress(struct replica *link)
{
    atomic_fetch_add_explicit(&link->sync_next, 1, memory_order_release);
    fence_full(); /* pairs with is_full */
    if (atomic_load_explicit(&SYNC->is_full, memory_order_relaxed) && atomic_exchange(&SYNC->is_full, false))
        full_sync_wish();
}

static bool join(struct replica *link, const struct view *view)
{
    struct conn *conn = &link->client->conn;

    if (view->outcome == OUTCOME_FAILED || (!link->snapshot_only && !replica_begin_reader(link, view->journal_offset)))
        return false;
    link->has_joined = true;
    if (!link->is_old)
        output_append(&conn->output, view->reply, strlen(view->reply));
    conn_write_pending(conn);
    return true;
}

static void begin_transfer(struct replica *link, const struct view *view)
{
    char line[16 + MARK_BYTES];
    int size;

    if (view->is_diskless)
        size = snprintf(line, sizeof(line), "$EOF:%.*s\r\n", MARK_BYTES, view->mark);
    else
        size = snprintf(line, sizeof(line), "$%llu\r\n", (unsigned long long)view->size);
    output_append(&link->client->conn.output, line, (size_t)size);
    link->has_begun = true;
    link->moved_us = clock_monotonic_us();
    if (!view->is_diskless)
        atomic_store_explicit(&link->state, REPLICA_LOADS, memory_order_relaxed);
}

static void finish(struct replica *link, const struct view *view)
{
    struct conn *conn = &link->client->conn;

    if (view->is_diskless)
        output_append(&conn->output, view->mark, MARK_BYTES);
    conn_write_pending(conn);
    atomic_store_explicit(&link->state, REPLICA_LOADS, memory_order_relaxed);
    replica_snapshot_sent(link, !view->is_diskless);
    atomic_store_explicit(&link->sync_number, 0, memory_order_release);
    full_sync_wish();
}

/* Writes the next piece. False: there is none now, or the sync is over for this link. */
static bool take_piece(struct replica *link, bool *waits)
{
    struct conn *conn = &link->client->conn;
    struct view view;

    see(link, &view);
    *waits = false;
    if (view.outcome == OUTCOME_FAILED || (!link->has_joined && !join(link, &view))) {
        blob_release(&view.piece);
        replica_close(link, "the snapshot could not be made");
        return false;
    }
    if (view.piece == NULL) {
        if (view.outcome == OUTCOME_COMPLETE)
            finish(link, &view);
        else
            *waits = true;
        return false;
    }
    if (!link->has_begun)
        begin_transfer(link, &view);
    output_append_blob(&conn->output, view.piece, 0, view.piece->size);
    replicas_count_output(view.piece->size);
    blob_release(&view.piece);
    tell_of_progress(link);
    return true;
}

bool full_sync_serve(struct replica *link)
{
    struct conn *conn = &link->client->conn;
    bool waits = false;

    worker_assert_inside(link->worker);
    while (conn_output_size(conn) < FOLLOWER_AHEAD_BYTES && take_piece(link, &waits)) {
    }
    if (conn_is_closing(conn))
        return false;
    if (conn_output_size(conn) != 0) {
        conn_write_pending(conn);
        conn_want_drained(conn);
    }
    return waits;
}

/* -------------------------------------------------------------------------------------------------------- hooks -- */

static void sample(struct server *server)
{
    look(&server->workers[0]);
}

static void on_wake(struct worker *worker)
{
    if (worker->index == 0 &&
        UNLIKELY(SYNC->phase != SYNC_NONE || replicas_count() != 0 || exclusive_is_wished(worker, GATE_WISH_SYNC)))
        look(worker);
}

static void on_stop(struct worker *worker)
{
    if (worker->index == 0 && SYNC->phase != SYNC_NONE && SYNC->phase != SYNC_ENDS)
        end(worker);
}

void full_sync_setup(void)
{
    thread_assert_main();
    spinlock_init(&SYNC->lock, LOCK_REGISTRY);
}

const struct lifecycle full_sync_lifecycle = {
    .worker_wake = on_wake,
    .server_sample = sample,
    .worker_stop = on_stop,
};
