/* The part of the journal that is in a file: whole blocks, each contiguous, in their form in memory but without
 * references. The file is unlinked at once, so nothing is left of it in any case. Blocks that were read are freed on
 * the disk, and the file is closed with the last block. */
#include "store/journal_priv.h"

#include "base/file.h"
#include "base/mutex.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

enum { WRITE_BYTES = 1024 * 1024 };

struct journal_spill {
    pthread_mutex_t mutex; /* taken only by threads that may wait for a disk; nothing is taken under it */
    struct file *file;     /* NULL: there is none; guarded by the mutex, like the others */
    uint64_t end;          /* blocks are written from here on */
    unsigned block_count;  /* in the file */
    struct buffer buffer;
};

struct journal_spill *journal_spill_create(void)
{
    struct journal_spill *spill = mem_alloc_zero(sizeof(*spill));

    pthread_mutex_init(&spill->mutex, NULL);
    return spill;
}

void journal_spill_destroy(struct journal_spill **spill)
{
    struct journal_spill *gone = *spill;

    if (gone == NULL)
        return;
    file_close(&gone->file);
    buffer_fini(&gone->buffer);
    pthread_mutex_destroy(&gone->mutex);
    mem_free(gone);
    *spill = NULL;
}

/* ------------------------------------------------------------------------------------------------------ writing -- */

static bool open_file(struct journal_spill *spill)
{
    char path[64];

    if (spill->file != NULL)
        return true;
    snprintf(path, sizeof(path), "temp-journal-%ld", (long)getpid());
    if (file_open(&spill->file, path, FILE_REPLACE) != STATUS_OK)
        return false;
    spill->end = 0;
    if (file_remove(path) == STATUS_OK)
        return true;
    file_close(&spill->file);
    return false;
}

static bool flush(struct journal_spill *spill, uint64_t *at)
{
    if (file_pwrite_all(spill->file, spill->buffer.data, spill->buffer.size, *at) != STATUS_OK)
        return false;
    *at += spill->buffer.size;
    buffer_clear(&spill->buffer);
    return true;
}

/* The thread that appended it is about to publish it: it copies, and waits for nothing. */
static void wait_until_ready(struct record *record)
{
    while (atomic_load_explicit(&record->ready, memory_order_acquire) == 0)
        sched_yield();
}

/* Of its bytes, also where they are no part of what replicas read. */
static uint64_t whole_size(struct record *record)
{
    uint64_t size = record->byte_count;

    for (uint32_t i = 0; i < record->blob_count; i++)
        size += record_blobs(record)[i].blob->size;
    return size;
}

static void append_record(struct buffer *buffer, struct record *record)
{
    static const char padding[8];
    const uint64_t size = whole_size(record);
    struct record header = {.offset = record->offset,
                            .stream_size = record->stream_size,
                            .memory_size = record_size(size, 0),
                            .byte_count = size,
                            .db = record->db,
                            .flags = record->flags};
    const struct journal_view view = {.bytes = {record_bytes(record), record->byte_count},
                                      .blobs = record_blobs(record),
                                      .blob_count = record->blob_count};

    atomic_init(&header.ready, 1);
    buffer_append(buffer, &header, sizeof(header));
    journal_view_append(&view, buffer);
    buffer_append(buffer, padding, header.memory_size - sizeof(header) - size);
}

/* The mutex is held. After a failure the next write overwrites the incomplete block. */
static bool write_block(struct journal_spill *spill, struct journal_block *block)
{
    uint64_t at = spill->end;

    buffer_clear(&spill->buffer);
    for (size_t position = 0; position < atomic_load_explicit(&block->used, memory_order_acquire);) {
        struct record *record = record_at(block->data, position);

        wait_until_ready(record);
        append_record(&spill->buffer, record);
        position += record->memory_size;
        if (spill->buffer.size >= WRITE_BYTES && !flush(spill, &at))
            return false;
    }
    if (!flush(spill, &at))
        return false;
    block->file_offset = spill->end;
    block->file_bytes = (size_t)(at - spill->end);
    spill->end = at;
    spill->block_count++;
    return true;
}

static bool save_block(struct journal_spill *spill, struct journal_block *block)
{
    bool good;
    int error;

    mutex_lock(&spill->mutex);
    good = open_file(spill) && write_block(spill, block);
    error = errno;
    if (spill->buffer.capacity > 2 * WRITE_BYTES)
        buffer_fini(&spill->buffer);
    mutex_unlock(&spill->mutex);
    errno = error;
    return good;
}

/* ------------------------------------------------------------------------------------------------------ reading -- */

bool journal_spill_load(struct journal *journal, const struct journal_block *block, struct buffer *bytes)
{
    struct journal_spill *spill = journal->spill;
    enum status status;
    size_t got = 0;

    if (!buffer_try_reserve(bytes, block->file_bytes)) {
        errno = ENOMEM;
        return false;
    }
    mutex_lock(&spill->mutex);
    status = file_pread(spill->file, bytes->data, block->file_bytes, block->file_offset, &got);
    if (status == STATUS_OK && got < block->file_bytes)
        errno = EIO;
    mutex_unlock(&spill->mutex);
    if (status != STATUS_OK || got < block->file_bytes)
        return false;
    bytes->size = got;
    return true;
}

static void give_back(struct journal_spill *spill, uint64_t offset, uint64_t size)
{
    mutex_lock(&spill->mutex);
    if (--spill->block_count == 0) {
        file_close(&spill->file);
    } else {
        status_ignore(fallocate(file_descriptor(spill->file), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                                (off_t)size),
                      "not every file system can: then the room is free with the last block");
    }
    mutex_unlock(&spill->mutex);
}

void journal_spill_forget(struct journal *journal, const struct journal_block *block)
{
    give_back(journal->spill, block->file_offset, block->file_bytes);
}

/* ------------------------------------------------------------------------------------------------------- blocks -- */

/* The oldest block in memory that a spilling reader has not reached yet; being in use keeps it. NULL: there is none, or
 * memory is within its limit. */
static struct journal_block *take_candidate(struct journal *journal)
{
    struct journal_block *found = NULL;
    bool wanted = false;

    spinlock_acquire(&journal->lock);
    if (journal->memory_limit_bytes != 0 && journal->memory_bytes > journal->memory_limit_bytes) {
        for (struct journal_block *block = journal->oldest; block != journal->newest && found == NULL;
             block = atomic_load_explicit(&block->next, memory_order_relaxed)) {
            wanted = wanted || block->spiller_count != 0;
            if (wanted && block->place == BLOCK_IN_MEMORY && block->slot == NULL && block->user_count == 0)
                found = block;
        }
    }
    if (found != NULL)
        found->user_count++;
    spinlock_release(&journal->lock);
    return found;
}

/* A reader that does not let go needs it, or one before it. */
static bool is_kept_locked(const struct journal *journal, const struct journal_block *block)
{
    const struct journal_block *at = journal->oldest;

    spinlock_assert_held(&journal->lock);
    while (at != block && at->user_count == at->spiller_count)
        at = atomic_load_explicit(&at->next, memory_order_relaxed);
    return at->user_count != at->spiller_count;
}

static char *detach_locked(struct journal *journal, struct journal_block *block, enum block_place place)
{
    char *data = block->data;

    spinlock_assert_held(&journal->lock);
    assert(block->user_count == 0);
    block->data = NULL;
    block->place = place;
    journal->memory_bytes -= block->memory_bytes - sizeof(*block);
    block->memory_bytes = sizeof(*block);
    if (place == BLOCK_IN_FILE) {
        journal->spilled_count++;
        journal->spilled_bytes += block->file_bytes;
        journal->spilled_total_bytes += block->file_bytes;
    }
    return data;
}

/* The end of take_candidate. False: neither saved nor given up. */
static bool settle(struct journal *journal, struct journal_block *block, bool saved)
{
    const uint64_t file_offset = block->file_offset, file_bytes = block->file_bytes;
    const size_t used = atomic_load_explicit(&block->used, memory_order_acquire);
    struct journal_block *obsolete;
    char *data = NULL;
    bool in_file;

    spinlock_acquire(&journal->lock);
    block->user_count--;
    /* A reader that has entered the block meanwhile reads it in memory. */
    if (block->user_count == 0 && (saved || !is_kept_locked(journal, block)))
        data = detach_locked(journal, block, saved ? BLOCK_IN_FILE : BLOCK_LOST);
    in_file = block->place == BLOCK_IN_FILE;
    obsolete = journal_take_obsolete_locked(journal);
    spinlock_release(&journal->lock);
    if (data != NULL)
        journal_block_free_data(data, used);
    if (saved && !in_file)
        give_back(journal->spill, file_offset, file_bytes);
    journal_free_chain(journal, obsolete);
    return data != NULL || saved;
}

static void free_obsolete(struct journal *journal)
{
    struct journal_block *obsolete;

    spinlock_acquire(&journal->lock);
    obsolete = journal_take_obsolete_locked(journal);
    spinlock_release(&journal->lock);
    journal_free_chain(journal, obsolete);
}

bool journal_tend(struct journal *journal)
{
    struct journal_block *block;
    int error = 0;

    spinlock_assert_none_held();
    if (atomic_exchange_explicit(&journal->is_tended, true, memory_order_acquire))
        return true;
    atomic_store_explicit(&journal->wants_tending, false, memory_order_relaxed);
    free_obsolete(journal);
    while ((block = take_candidate(journal)) != NULL) {
        bool saved = save_block(journal->spill, block);

        if (!saved && error == 0)
            error = errno;
        if (!settle(journal, block, saved))
            break;
    }
    atomic_store_explicit(&journal->is_tended, false, memory_order_release);
    errno = error;
    return error == 0;
}
