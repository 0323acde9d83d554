#include "server/durable/aof_writer.h"

#include "base/assert.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spinlock.h"
#include "base/thread.h"
#include "persist/aof_text.h"
#include "server/config/command_block.h"
#include "server/core/server.h"
#include "server/durable/aof_hold.h"
#include "server/durable/child.h"
#include "server/durable/file_options.h"
#include "server/process/process.h"
#include "store/journal_tail.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    BATCH_BYTES = 1024 * 1024, /* a write, about */
    BUFFER_KEPT_BYTES = 4 * BATCH_BYTES,
    NAP_US = 2000, /* between writes that nobody waits for: 500 a second are enough */
    SECOND_US = 1000 * 1000,
    RETRY_US = 100 * 1000, /* after an error */
    SLOW_SYNC_US = 2 * SECOND_US,
    LOG_AGAIN_US = 30 * SECOND_US /* a lasting error is logged at this interval */
};

enum rest { AWAKE, NAPS, SLEEPS };

/* In the journal, twice: as its records are numbered, and as they are placed. */
struct stream_place {
    uint64_t offset, position;
};

enum split { SPLIT_NONE, SPLIT_WANTED, SPLIT_DONE, SPLIT_FAILED };

static struct {
    struct thread thread;
    sem_t woken, settled;
    struct journal *journal; /* const while it runs, like the next */
    struct aof_set *files;
    struct spinlock lock; /* rank LOCK_REGISTRY: orders */
    bool wants_settled GUARDED_BY(lock), wants_commit GUARDED_BY(lock);
    struct stream_place split_at GUARDED_BY(lock), end_at GUARDED_BY(lock);
    struct aof_commit commit GUARDED_BY(lock);
    _Atomic enum split split; /* atomic: the owner of the gate sets WANTED, the writer the others */
    _Atomic bool ends;        /* atomic, seq_cst, set under the lock: it is to end */
    _Atomic bool has_ended;   /* atomic, release, acquire: the thread touches nothing of this any more */
    _Atomic uint64_t drops_wanted, drops_done; /* atomic, seq_cst: how often history was to go, and went */
    /* atomic, relaxed, written with `ends`: what replies rely on comes before; that which is not in the tail */
    _Atomic uint64_t end_position, end_unkept;
    _Atomic bool reads;     /* atomic, seq_cst, with `split` and `ends`: see read_journal */
    _Atomic enum rest rest; /* atomic, seq_cst: see sleep_until */
    _Atomic bool runs;      /* atomic, release, acquire: changed by who owns the gate */
    uint32_t thread_id;     /* spinlock_self_id of its thread; 0: it has not begun */
    /* the writer's */
    struct journal_reader reader;
    struct file *file;
    struct aof_text text; /* read and not yet written; its db is the one that the file selects there */
    uint64_t file_bytes, read_offset, read_position, synced_us, told_us;
    int64_t file_s;             /* the last time written into it */
    struct journal_tail *tail;  /* const while it runs; NULL: there is none */
    struct journal_place whole; /* behind the last whole transaction in `text` or, if it is empty, the file */
    bool position_is_known;     /* else read_position is behind: the journal is read from its file */
    bool is_temporary;          /* the file */
    bool sync_failed;           /* a sync of the file has failed: its contents on the disk are unknown */
    bool split_unsynced;        /* likewise for the files before the split */
    bool heals;                 /* a base was made for that, and no sync has shown yet that it was of use */
    int error;                  /* errno of what failed last */
    /* atomic: relaxed; written by the writer, for INFO; synced: release; everything before it is on the disk */
    _Atomic uint64_t written_position, synced_position;
    _Atomic uint64_t written, synced, acked, size_bytes, rewritten_bytes, buffer_bytes, syncs, slow_syncs;
    _Atomic bool is_syncing, failed, needs_rewrite;
    _Atomic uint32_t vain_rewrites; /* one after the other: see stats */
    _Atomic int64_t sync_failed_s;
    _Atomic bool syncs_fail; /* atomic, relaxed: aof_writer_fail_syncs */
    _Atomic int shown_error;
    _Atomic uint32_t flush_sleep_us; /* atomic, relaxed: aof_writer_sleep */
} writer;

static void assert_is_writer(void)
{
    assert(writer.thread_id == spinlock_self);
}

#define GET(field) atomic_load_explicit(&writer.field, memory_order_relaxed)
#define SET(field, value) atomic_store_explicit(&writer.field, (value), memory_order_relaxed)

/* ------------------------------------------------------------------------------------------------------- errors -- */

static void update_denial(void)
{
    bool is_well = !GET(failed) && !GET(needs_rewrite);

    command_block_set(COMMAND_BLOCK_UNWRITTEN, !is_well);
}

void aof_writer_denial(char *text, size_t size)
{
    (void)snprintf(text, size, "MISCONF Errors writing to the AOF file: %s", strerror(GET(shown_error)));
}

/* With `always` a reply is a promise. Effects that cannot be written are not undone. So the server ends before any
 * client gets a reply, and the disk has all promised effects. */
static void NORETURN give_up(const char *what)
{
    log_warning("Can't recover from AOF %s error when the AOF fsync policy is 'always'. Exiting...", what);
    process_remove_pidfile();
    _exit(EXIT_FAILURE);
}

/* True: it is to be told, which is done now and then only. */
static bool note_failure(void)
{
    uint64_t now_us = clock_monotonic_us();
    bool tell = !GET(failed) || now_us - writer.told_us >= LOG_AGAIN_US;

    assert_is_writer();
    writer.error = errno;
    SET(shown_error, writer.error);
    SET(failed, true);
    if (tell)
        writer.told_us = now_us;
    update_denial();
    return tell;
}

static void note_success(void)
{
    if (LIKELY(!GET(failed)))
        return;
    SET(failed, false);
    update_denial();
    log_warning("AOF write error looks solved. The server can write again.");
}

static bool is_always(void)
{
    return OPTION_GET(option_appendfsync) == AOF_SYNC_ALWAYS && !writer.is_temporary;
}

/* ------------------------------------------------------------------------------------------------------ reading -- */

static void append_time(void)
{
    int64_t now_s = clock_wall_ms() / 1000;

    if (now_s == writer.file_s)
        return;
    writer.file_s = now_s;
    buffer_printf(&writer.text.bytes, "#TS:%" PRId64 "\r\n", now_s);
}

/* Marks `position` as the position up to which the file, with the bytes about to be written, is complete. */
static void note_whole(uint64_t position)
{
    writer.whole.position = position;
    writer.whole.file_bytes = writer.file_bytes + writer.text.bytes.size;
    writer.whole.db = writer.text.db;
}

/* Neither in a transaction nor in an entry. */
static bool is_between(void)
{
    return !writer.text.in_transaction && writer.text.stamp.stamp == 0;
}

static void note_position(void)
{
    writer.position_is_known = journal_reader_position(&writer.reader, &writer.read_position);
    if (writer.position_is_known && is_between())
        note_whole(writer.read_position);
}

static COLD void note_begin(void)
{
    uint64_t position;

    if (is_between() && journal_reader_shown_position(&writer.reader, &position))
        note_whole(position);
}

static void take_record(const struct journal_view *view)
{
    writer.read_offset = view->offset + view->size;
    if (UNLIKELY((view->flags & JOURNAL_MESSAGE) != 0)) { /* for replicas, or peers */
        aof_text_add(&writer.text, view);
        return;
    }
    if (UNLIKELY((view->flags & JOURNAL_BEGINS) != 0))
        note_begin();
    if (!writer.text.in_transaction && UNLIKELY(OPTION_IS(option_aof_timestamps)))
        append_time();
    aof_text_add(&writer.text, view);
}

static bool has_come_to(const struct stream_place *place)
{
    note_position();
    return writer.read_offset >= place->offset &&
           (!writer.position_is_known || writer.read_position >= place->position);
}

/* Finds the position up to which it may read. False: there is no limit. */
static bool find_limit(struct stream_place *limit)
{
    bool splits = atomic_load(&writer.split) == SPLIT_WANTED;

    if (LIKELY(!splits && !atomic_load(&writer.ends)))
        return false;
    spinlock_acquire(&writer.lock);
    *limit = splits ? writer.split_at : writer.end_at;
    spinlock_release(&writer.lock);
    return true;
}

/* Reads up to a batch, but not past a split, nor past the end. A thread that orders a split owns the gate, so nothing
 * is appended, and waits until the writer is not here: either the writer sees the order, or all that it reads comes
 * before it. */
static void read_journal(void)
{
    struct stream_place limit;
    struct journal_view view;
    bool is_limited;

    assert_is_writer();
    atomic_store(&writer.reads, true);
    is_limited = find_limit(&limit);
    while ((LIKELY(!is_limited) || !has_come_to(&limit)) && writer.text.bytes.size < BATCH_BYTES &&
           journal_reader_next(&writer.reader, &view))
        take_record(&view);
    if (UNLIKELY(is_limited) && has_come_to(&limit)) /* entries are whole there */
        aof_text_end(&writer.text);
    note_position();
    atomic_store(&writer.reads, false);
    SET(buffer_bytes, writer.text.bytes.capacity);
}

/* ------------------------------------------------------------------------------------------------------ writing -- */

static void count_written(uint64_t bytes)
{
    writer.file_bytes += bytes;
    SET(size_bytes, GET(size_bytes) + bytes);
}

/* It is unknown how much of the buffer was written. The file is cut back to its old size. If that fails, too, the
 * written part is removed from the buffer, so that the next write continues there. */
static void undo_write(void)
{
    uint64_t size;

    if (file_truncate(writer.file, writer.file_bytes) == STATUS_OK)
        return;
    if (file_size(writer.file, &size) == STATUS_OK && size > writer.file_bytes &&
        size - writer.file_bytes <= writer.text.bytes.size) {
        buffer_consume(&writer.text.bytes, (size_t)(size - writer.file_bytes));
        count_written(size - writer.file_bytes);
    }
}

static void publish_synced(void)
{
    if (writer.is_temporary || writer.sync_failed || writer.split_unsynced)
        return; /* a promise about files that do not count, or cannot be trusted */
    assert(GET(synced_position) <= GET(written_position));
    atomic_store_explicit(&writer.synced, GET(written), memory_order_release);
    atomic_store_explicit(&writer.synced_position, GET(written_position), memory_order_release);
}

/* The tail says from where on it is needed. */
static void tell_place(void)
{
    if (writer.tail != NULL)
        journal_tail_set_place(writer.tail, &writer.whole);
}

/* All that was read is in the file. */
static void note_written(void)
{
    assert(writer.read_offset >= GET(written) && writer.read_position >= GET(written_position));
    SET(written, writer.read_offset);
    SET(written_position, writer.read_position);
    tell_place();
}

/* The bytes that were read had nothing to write. */
static void skip_messages(void)
{
    bool was_synced = GET(written_position) == GET(synced_position);

    if (LIKELY(writer.read_position == GET(written_position)))
        return;
    note_written();
    if (was_synced)
        publish_synced();
}

/* False: it could not be written, and is kept. */
static bool write_out(void)
{
    assert_is_writer();
    if (writer.text.bytes.size == 0) {
        skip_messages();
        return true;
    }
    if (UNLIKELY(GET(flush_sleep_us) != 0))
        (void)usleep(GET(flush_sleep_us));
    if (file_write_all(writer.file, writer.text.bytes.data, writer.text.bytes.size) != STATUS_OK) {
        if (note_failure())
            log_warning("Error writing to the AOF file: %s", strerror(writer.error));
        if (is_always())
            give_up("write");
        undo_write();
        aof_hold_update(); /* no reply waits for effects that may never be written: writes are refused */
        return false;
    }
    count_written(writer.text.bytes.size);
    if (writer.text.bytes.capacity > BUFFER_KEPT_BYTES)
        buffer_fini(&writer.text.bytes);
    else
        buffer_clear(&writer.text.bytes);
    note_written();
    note_success();
    return true;
}

/* ------------------------------------------------------------------------------------------------------ syncing -- */

static void note_vain_rewrite(void)
{
    writer.heals = false;
    SET(vain_rewrites, GET(vain_rewrites) + 1);
}

/* There is a new base. Where it was made because a sync had failed, the next sync will tell whether it was of use. */
static void note_base(void)
{
    const bool was_unwell = GET(needs_rewrite);

    if (was_unwell && writer.sync_failed) /* for the file behind it, too */
        note_vain_rewrite();
    else
        writer.heals = was_unwell;
    SET(needs_rewrite, writer.sync_failed);
}

/* One of a file that began beside a rewrite which is still to come says nothing about that. */
static void note_sync_success(void)
{
    if (GET(needs_rewrite))
        return;
    writer.heals = false;
    SET(vain_rewrites, 0);
}

static must_check enum status sync_of_file(void)
{
    if (LIKELY(!GET(syncs_fail)))
        return file_sync(writer.file);
    errno = EIO;
    return STATUS_IO;
}

/* After a failed sync the contents of the disk are unknown, and another sync would report success. So the file is never
 * trusted again: a new base is written, with new files behind it. */
static void note_sync_failure(void)
{
    int error = errno;

    SET(shown_error, error);
    writer.sync_failed = true;
    SET(sync_failed_s, (int64_t)time(NULL));
    if (writer.heals)
        note_vain_rewrite();
    SET(needs_rewrite, true);
    update_denial();
    log_warning("Fail to fsync the AOF file: %s. The last writes may not be on the disk. Writes are refused until a "
                "rewrite has created new files.",
                strerror(error));
    if (is_always())
        give_up("fsync");
}

static bool sync_file(void)
{
    uint64_t start_us = clock_monotonic_us();
    enum status status;

    assert_is_writer();
    SET(is_syncing, true);
    if (UNLIKELY(OPTION_GET(option_aof_sync_delay) != 0))
        (void)usleep((useconds_t)OPTION_GET(option_aof_sync_delay));
    status = sync_of_file();
    SET(is_syncing, false);
    writer.synced_us = clock_monotonic_us();
    if (writer.synced_us - start_us > SLOW_SYNC_US) {
        SET(slow_syncs, GET(slow_syncs) + 1);
        log_notice("Asynchronous AOF fsync is taking too long (disk is busy?). It took %" PRIu64 " ms.",
                   (writer.synced_us - start_us) / 1000);
    }
    SET(syncs, GET(syncs) + 1);
    if (status == STATUS_OK) {
        note_sync_success();
        return true;
    }
    note_sync_failure();
    return false;
}

/* While a child writes, the disk may have enough to do. */
static bool rests_for_child(void)
{
    return OPTION_IS(option_no_appendfsync_on_rewrite) && child_runs_any();
}

static void publish_acked(void)
{
    bool waits_for_disk = OPTION_GET(option_appendfsync) == AOF_SYNC_ALWAYS && !rests_for_child();
    uint64_t position = waits_for_disk ? GET(synced_position) : GET(written_position);

    if (position > GET(acked))
        atomic_store_explicit(&writer.acked, position, memory_order_release);
}

static bool is_unsynced(void)
{
    return GET(written_position) != GET(synced_position) && !writer.sync_failed;
}

/* When the next sync is due; UINT64_MAX: not by itself. */
static uint64_t sync_due_us(void)
{
    if (!is_unsynced() || rests_for_child())
        return UINT64_MAX;
    switch (OPTION_GET(option_appendfsync)) {
    case AOF_SYNC_ALWAYS:
        return 0;
    case AOF_SYNC_EVERY_SECOND:
        return writer.synced_us + SECOND_US;
    default:
        return aof_hold_is_waited_for() ? 0 : UINT64_MAX; /* a client that asks for the disk gets it */
    }
}

static void sync_if_due(void)
{
    uint64_t due_us = sync_due_us();

    if (due_us == UINT64_MAX || due_us > clock_monotonic_us())
        return;
    if (sync_file())
        publish_synced();
}

/* ------------------------------------------------------------------------------------------------- other files -- */

static void close_in_background(void *argument)
{
    struct file *file = argument;

    file_close(&file);
}

/* The name is free at once, since a new file may soon use it; the contents are freed when the last descriptor is
 * closed. */
static void remove_later(char *path)
{
    const char *slash = strrchr(path, '/');
    struct file *file = NULL;

    log_notice("Removing the history file %s in the background", slash != NULL ? slash + 1 : path);
    if (file_open(&file, path, FILE_READ) != STATUS_OK)
        file = NULL;
    if (file_remove(path) != STATUS_OK)
        log_warning("Can't remove the AOF history file %s: %s", path, strerror(errno));
    if (file != NULL)
        background_submit(BACKGROUND_CLOSE, close_in_background, file);
    mem_free(path);
}

static void drop_history(struct aof_set *files)
{
    if (!OPTION_IS(option_aof_keeps_history) && aof_set_drop_history(files, remove_later) != STATUS_OK)
        log_warning("Can't remove history files from the AOF manifest: %s", strerror(errno));
}

static bool replace_base(struct aof_set *files, const struct aof_commit *commit, enum aof_kept kept)
{
    const char *increment = kept == AOF_KEPT_TEMPORARY ? commit->temp_increment : NULL;

    if (aof_set_replace_base(files, commit->temp_base, commit->is_rdb, kept, increment) != STATUS_OK) {
        log_warning("Can't put the new AOF base file in place: %s", strerror(errno));
        return false;
    }
    log_notice("Successfully renamed the temporary AOF base file %s into %s", commit->temp_base,
               aof_manifest_base(&files->manifest)->name);
    if (increment != NULL)
        log_notice("Successfully renamed the temporary AOF incr file %s into %s", increment,
                   aof_manifest_last_increment(&files->manifest)->name);
    drop_history(files);
    return true;
}

bool aof_commit_alone(struct aof_set *files, const struct aof_commit *commit)
{
    return replace_base(files, commit, AOF_KEPT_NOTHING);
}

static void begin_file(struct file *file, uint64_t bytes)
{
    assert(file != NULL);
    file_close(&writer.file);
    writer.file = file;
    writer.file_bytes = bytes;
    writer.text.db = -1;
    writer.file_s = 0;
    writer.sync_failed = false;
}

/* Later effects belong to the file with that number. Nothing is read but not written. */
static void begin_place(uint64_t number)
{
    writer.whole.file_number = writer.position_is_known ? number : 0;
    note_whole(writer.read_position);
    tell_place();
}

static uint64_t last_number(void)
{
    return aof_manifest_last_increment(&writer.files->manifest)->sequence;
}

/* Everything before the split is written. Later syncs count only if that part is synced, too. */
static void split(void)
{
    struct file *file;

    assert(writer.text.bytes.size == 0); /* what was read belongs to the file before */
    assert_is_writer();
    if (!writer.sync_failed && sync_file())
        publish_synced();
    if (aof_set_add_increment(writer.files, &file) != STATUS_OK) {
        log_warning("Can't create a new AOF incr file: %s", strerror(errno));
        atomic_store_explicit(&writer.split, SPLIT_FAILED, memory_order_release);
        return;
    }
    log_notice("Creating AOF incr file %s on background rewrite",
               aof_manifest_last_increment(&writer.files->manifest)->name);
    writer.split_unsynced |= writer.sync_failed;
    begin_file(file, 0);
    begin_place(last_number());
    atomic_store_explicit(&writer.split, SPLIT_DONE, memory_order_release);
}

static void split_if_wanted(void)
{
    struct stream_place place;

    if (LIKELY(atomic_load_explicit(&writer.split, memory_order_acquire) != SPLIT_WANTED))
        return;
    spinlock_acquire(&writer.lock);
    place = writer.split_at;
    spinlock_release(&writer.lock);
    if (has_come_to(&place) && writer.text.bytes.size == 0)
        split();
}

/* The temporary file has another name now: it is opened anew under that one. */
static bool reopen(void)
{
    struct file *file;
    uint64_t size;
    int db = writer.text.db;
    int64_t seconds = writer.file_s;

    assert(writer.is_temporary);
    if (aof_set_open_last(writer.files, &file, &size) != STATUS_OK) {
        log_warning("Can't open the AOF under its new name: %s", strerror(errno));
        return false;
    }
    begin_file(file, size);
    writer.text.db = db;
    writer.file_s = seconds;
    writer.is_temporary = false;
    writer.whole.file_number = last_number();
    tell_place();
    return true;
}

static bool commit_base(const struct aof_commit *commit)
{
    bool good;

    assert_is_writer();
    if (writer.is_temporary) {
        /* On the disk before it counts. Written or not: what failed to be written is still in the buffer. */
        good = !writer.sync_failed && sync_file() && replace_base(writer.files, commit, AOF_KEPT_TEMPORARY) && reopen();
    } else {
        good = atomic_load_explicit(&writer.split, memory_order_relaxed) == SPLIT_DONE &&
               replace_base(writer.files, commit, AOF_KEPT_LAST);
        if (good)
            writer.split_unsynced = false; /* the base has it */
    }
    atomic_store_explicit(&writer.split, SPLIT_NONE, memory_order_release);
    if (!good)
        return false;
    SET(size_bytes, aof_set_bytes(writer.files));
    SET(rewritten_bytes, GET(size_bytes));
    note_base();
    if (!writer.sync_failed) {
        update_denial();
        if (sync_file())
            publish_synced();
    }
    return true;
}

static void commit_if_wanted(void)
{
    struct aof_commit commit;
    bool wanted;

    spinlock_acquire(&writer.lock);
    wanted = writer.wants_commit;
    commit = writer.commit;
    spinlock_release(&writer.lock);
    if (!wanted || (atomic_load_explicit(&writer.split, memory_order_acquire) == SPLIT_WANTED && !GET(failed)))
        return;
    spinlock_acquire(&writer.lock);
    writer.wants_commit = false;
    spinlock_release(&writer.lock);
    commit.done(commit_base(&commit));
}

/* ------------------------------------------------------------------------------------------------------ waiting -- */

static void wait_on(sem_t *sem, uint64_t until_us)
{
    struct timespec until = {.tv_sec = (time_t)(until_us / SECOND_US), .tv_nsec = (long)(until_us % SECOND_US) * 1000};

    if (until_us == UINT64_MAX)
        (void)sem_wait(sem);
    else
        (void)sem_clockwait(sem, CLOCK_MONOTONIC, &until);
}

static void wake(enum rest rest)
{
    spinlock_assert_may_sleep();
    if (atomic_compare_exchange_strong(&writer.rest, &rest, AWAKE))
        (void)sem_post(&writer.woken);
}

void aof_writer_poke(void)
{
    /* The caller has appended, or given an order: either it sees that the writer sleeps, or the writer sees its
     * change. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&writer.rest, memory_order_relaxed) == SLEEPS)
        wake(SLEEPS);
}

void aof_writer_hurry(void)
{
    aof_writer_poke();
    if (atomic_load_explicit(&writer.rest, memory_order_relaxed) == NAPS)
        wake(NAPS);
}

static bool has_orders(void)
{
    bool any;

    spinlock_acquire(&writer.lock);
    any = writer.wants_settled || writer.wants_commit;
    spinlock_release(&writer.lock);
    return any || atomic_load(&writer.ends) || aof_writer_is_dropping() ||
           atomic_load_explicit(&writer.split, memory_order_acquire) == SPLIT_WANTED;
}

static void get_up(void)
{
    /* A waking thread has posted, or is about to post: at most one turn more. */
    if (atomic_exchange(&writer.rest, AWAKE) == AWAKE)
        while (sem_trywait(&writer.woken) == 0)
            ;
}

static void sleep_until(uint64_t until_us)
{
    assert_is_writer();
    atomic_store(&writer.rest, SLEEPS);
    if (journal_end_position(writer.journal) != writer.read_position)
        (void)sched_yield(); /* somebody is about to fill in what he has reserved */
    else if (!has_orders())
        wait_on(&writer.woken, until_us);
    get_up();
}

/* Only threads that wait for its writes wake it. */
static void nap(void)
{
    atomic_store(&writer.rest, NAPS);
    if (!aof_hold_is_held())
        wait_on(&writer.woken, clock_monotonic_us() + NAP_US);
    get_up();
}

static void rest(bool good, size_t written_bytes)
{
    uint64_t due_us = sync_due_us();

    if (!good)
        (void)usleep(RETRY_US);
    else if (written_bytes == 0 || OPTION_GET(option_appendfsync) == AOF_SYNC_ALWAYS)
        sleep_until(due_us != UINT64_MAX ? due_us : clock_monotonic_us() + SECOND_US);
    else if (written_bytes < BATCH_BYTES)
        nap();
}

/* ------------------------------------------------------------------------------------------------------- thread -- */

/* Everything that was in the journal when it was told to end is in the file. */
static bool is_at_end(void)
{
    struct stream_place end;

    spinlock_acquire(&writer.lock);
    end = writer.end_at;
    spinlock_release(&writer.lock);
    return has_come_to(&end) && writer.text.bytes.size == 0;
}

/* Threads that wait own the gate: the journal does not grow. */
static void answer_settled(void)
{
    bool wanted, settled = GET(failed) || GET(written_position) == journal_end_position(writer.journal);

    assert_is_writer();
    spinlock_acquire(&writer.lock);
    wanted = writer.wants_settled;
    if (settled)
        writer.wants_settled = false;
    spinlock_release(&writer.lock);
    if (wanted && settled)
        (void)sem_post(&writer.settled);
}

static void drop_if_wanted(void)
{
    uint64_t wanted = atomic_load(&writer.drops_wanted);

    assert_is_writer();
    if (LIKELY(wanted == atomic_load(&writer.drops_done)))
        return;
    drop_history(writer.files);
    atomic_store(&writer.drops_done, wanted);
    aof_hold_update();
}

static void answer_writers(void)
{
    publish_acked();
    aof_hold_tell();
}

static void look_at_tail(void)
{
    if (writer.tail != NULL && !journal_tail_look(writer.journal, writer.tail))
        log_warning("Can't grow the AOF tail: %s. Replies wait until their writes are in the AOF.", strerror(errno));
}

static void write_until_end(void)
{
    bool ends, good;
    size_t bytes;

    do {
        ends = atomic_load(&writer.ends);
        read_journal();
        bytes = writer.text.bytes.size;
        good = write_out();
        if (good)
            split_if_wanted();
        commit_if_wanted();
        if (ends && writer.is_temporary)
            return;
        drop_if_wanted();
        answer_writers();
        sync_if_due();
        answer_writers();
        look_at_tail();
        answer_settled();
        if (!ends)
            rest(good, bytes);
    } while (!ends || (good && !is_at_end()));
    if (is_unsynced() && sync_file())
        publish_synced();
    answer_writers();
}

static void run(void *argument)
{
    (void)argument;
    writer.thread_id = spinlock_self_id();
    write_until_end();
    atomic_store_explicit(&writer.has_ended, true, memory_order_release);
    worker_wake(&server_instance()->workers[0]);
}

/* Without a tail, replies wait until their effects are written. */
static void open_tail(void)
{
    char *path = aof_set_tail_path(writer.files);

    assert(writer.tail == NULL);
    writer.whole = (struct journal_place){.db = -1};
    if (journal_tail_create(&writer.tail, path) == STATUS_OK)
        journal_tail_enter(writer.journal, writer.tail);
    else
        log_warning("Can't map the AOF tail %s: %s. Replies wait until their writes are in the AOF.", path,
                    strerror(errno));
    mem_free(path);
}

/* The unwritten part stays in it, for the next start. */
static void close_tail(bool all_is_written)
{
    char *path = aof_set_tail_path(writer.files);

    journal_tail_leave(writer.journal);
    journal_tail_destroy(writer.journal, &writer.tail);
    if (all_is_written)
        (void)!file_remove(path);
    mem_free(path);
}

void aof_writer_start(struct journal *journal, struct aof_set *files, struct file *file, uint64_t size,
                      bool is_temporary)
{
    gate_assert_alone();
    assert(!GET(runs) && file != NULL);
    writer.thread_id = 0;
    writer.journal = journal;
    writer.files = files;
    spinlock_init(&writer.lock, LOCK_REGISTRY);
    (void)sem_init(&writer.woken, 0, 0);
    (void)sem_init(&writer.settled, 0, 0);
    writer.wants_settled = writer.wants_commit = false;
    atomic_store(&writer.ends, false);
    atomic_store(&writer.has_ended, false);
    SET(end_position, UINT64_MAX);
    SET(end_unkept, UINT64_MAX);
    atomic_store(&writer.drops_done, atomic_load(&writer.drops_wanted));
    atomic_store(&writer.split, SPLIT_NONE);
    writer.split_unsynced = false;
    begin_file(file, size);
    writer.text.in_transaction = false;
    writer.text.stamp.stamp = 0;
    writer.is_temporary = is_temporary;
    open_tail();
    journal_reader_open(&writer.reader, journal);
    journal_reader_set_lag_limit(&writer.reader, OPTION_GET_U64(option_aof_lag_limit));
    writer.read_offset = journal_end_offset(journal);
    writer.read_position = journal_end_position(journal);
    writer.position_is_known = true;
    writer.synced_us = clock_monotonic_us();
    SET(written, writer.read_offset);
    SET(synced, is_temporary ? 0 : writer.read_offset);
    SET(written_position, writer.read_position);
    SET(synced_position, is_temporary ? 0 : writer.read_position);
    SET(acked, GET(synced_position));
    begin_place(is_temporary ? 0 : last_number());
    SET(size_bytes, is_temporary ? 0 : aof_set_bytes(files));
    SET(rewritten_bytes, GET(size_bytes));
    SET(failed, false);
    SET(needs_rewrite, false);
    SET(vain_rewrites, 0);
    writer.heals = false;
    update_denial();
    atomic_store_explicit(&writer.runs, true, memory_order_release); /* everything that INFO reads is there */
    thread_start(&writer.thread, "aof-writer", run, NULL);
}

void aof_writer_set_lag_limit(void)
{
    gate_assert_alone();
    if (GET(runs))
        journal_reader_set_lag_limit(&writer.reader, OPTION_GET_U64(option_aof_lag_limit));
}

static struct stream_place journal_end(void)
{
    return (struct stream_place){journal_end_offset(writer.journal), journal_end_position(writer.journal)};
}

static void wait_until_seen(void)
{
    while (atomic_load(&writer.reads)) /* a batch at most */
        (void)sched_yield();
    aof_writer_poke();
}

void aof_writer_end(bool counts)
{
    gate_assert_alone();
    if (!GET(runs) || atomic_load(&writer.ends))
        return;
    spinlock_acquire(&writer.lock);
    writer.end_at = journal_end();
    SET(end_position, counts ? writer.end_at.position : 0);
    SET(end_unkept, counts ? journal_unkept_position(writer.journal) : 0);
    atomic_store(&writer.ends, true);
    spinlock_release(&writer.lock);
    journal_tail_leave(writer.journal); /* later effects may be of other data: the next start must not append them */
    wait_until_seen();
}

bool aof_writer_is_ending(void)
{
    return GET(runs) && atomic_load(&writer.ends) && !atomic_load_explicit(&writer.has_ended, memory_order_acquire);
}

uint64_t aof_writer_end_position(void)
{
    return GET(end_position);
}

uint64_t aof_writer_end_unkept(void)
{
    return GET(end_unkept);
}

bool aof_writer_stop(void)
{
    bool good;

    gate_assert_alone();
    if (!GET(runs))
        return true;
    aof_writer_end(true);
    thread_join(&writer.thread);
    good = !GET(failed) && !GET(needs_rewrite);
    journal_reader_close(&writer.reader);
    close_tail(good || writer.is_temporary);
    file_close(&writer.file);
    buffer_fini(&writer.text.bytes);
    SET(buffer_bytes, 0);
    SET(failed, false);
    SET(needs_rewrite, false);
    update_denial();
    SET(runs, false);
    aof_hold_update(); /* no client waits for an order any more */
    return good;
}

bool aof_writer_runs(void)
{
    return GET(runs);
}

void aof_writer_sleep(uint32_t us)
{
    SET(flush_sleep_us, us);
}

void aof_writer_fail_syncs(bool fail)
{
    SET(syncs_fail, fail);
}

bool aof_writer_settle(void)
{
    gate_assert_alone();
    if (!GET(runs))
        return true;
    spinlock_acquire(&writer.lock);
    writer.wants_settled = true;
    spinlock_release(&writer.lock);
    aof_writer_poke();
    while (sem_wait(&writer.settled) != 0 && errno == EINTR)
        ;
    return !GET(failed);
}

void aof_writer_drop_history(void)
{
    if (!GET(runs))
        return;
    (void)atomic_fetch_add(&writer.drops_wanted, 1);
    aof_writer_hurry();
}

bool aof_writer_is_dropping(void)
{
    return GET(runs) && atomic_load(&writer.drops_wanted) != atomic_load(&writer.drops_done);
}

void aof_writer_split(void)
{
    gate_assert_alone();
    assert(GET(runs));
    spinlock_acquire(&writer.lock);
    writer.split_at = journal_end();
    spinlock_release(&writer.lock);
    atomic_store(&writer.split, SPLIT_WANTED);
    wait_until_seen();
}

bool aof_writer_split_failed(void)
{
    return atomic_load_explicit(&writer.split, memory_order_acquire) == SPLIT_FAILED;
}

void aof_writer_forget_split(void)
{
    enum split split = SPLIT_FAILED;

    if (!atomic_compare_exchange_strong(&writer.split, &split, SPLIT_NONE) && split == SPLIT_DONE)
        (void)atomic_compare_exchange_strong(&writer.split, &split, SPLIT_NONE);
}

bool aof_writer_commit(const struct aof_commit *commit)
{
    bool ends;

    assert(commit->temp_base != NULL && commit->done != NULL);
    spinlock_acquire(&writer.lock);
    ends = atomic_load(&writer.ends); /* from then on, until it is started again */
    if (!ends) {
        writer.commit = *commit;
        writer.wants_commit = true;
    }
    spinlock_release(&writer.lock);
    if (!ends)
        aof_writer_poke();
    return !ends;
}

uint64_t aof_acked_position(void)
{
    return atomic_load_explicit(&writer.acked, memory_order_acquire);
}

uint64_t aof_synced_position(void)
{
    return atomic_load_explicit(&writer.synced_position, memory_order_acquire);
}

bool aof_writer_fails(void)
{
    return GET(failed);
}

uint64_t aof_synced_offset(void)
{
    return atomic_load_explicit(&writer.synced, memory_order_acquire);
}

void aof_writer_stats(struct aof_writer_stats *stats)
{
    bool runs = atomic_load_explicit(&writer.runs, memory_order_acquire);

    *stats = (struct aof_writer_stats){
        .size_bytes = GET(size_bytes),
        .rewritten_bytes = GET(rewritten_bytes),
        .waiting_bytes = runs ? journal_end_offset(writer.journal) - GET(written) : 0,
        .buffer_bytes = GET(buffer_bytes),
        .syncs = GET(syncs),
        .slow_syncs = GET(slow_syncs),
        .is_syncing = GET(is_syncing),
        .is_well = !GET(failed) && !GET(needs_rewrite),
        .needs_rewrite = GET(needs_rewrite),
        .vain_rewrites = GET(vain_rewrites),
        .sync_failed_s = GET(sync_failed_s),
    };
}

void aof_writer_stats_reset(void)
{
    gate_assert_alone();
    SET(syncs, 0);
    SET(slow_syncs, 0);
}

uint64_t aof_writer_memory_bytes(void)
{
    return GET(buffer_bytes);
}
