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
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { WRITE_BYTES = 1024 * 1024 };

struct journal_spill {
    pthread_mutex_t mutex; /* taken only by threads that may wait for a disk; nothing is taken under it */
    struct file *file;     /* NULL: there is none; guarded by the mutex, like the others */
    uint64_t end;          /* blocks are written from here on */
    unsigned block_count;  /* in the file */
    struct buffer buffer;
    size_t buffer_bytes; /* of it, in the journal's passing_bytes */
};

struct journal_spill *journal_spill_create(void)
{
    struct journal_spill *spill = mem_alloc_zero(sizeof(*spill));

    pthread_mutex_init(&spill->mutex, NULL);
    return spill;
}

void journal_spill_destroy(struct journal *journal)
{
    struct journal_spill *gone = journal->spill;

    if (gone == NULL)
        return;
    file_close(&gone->file);
    buffer_fini(&gone->buffer);
    pthread_mutex_destroy(&gone->mutex);
    journal_passed(journal, gone->buffer_bytes);
    mem_free(gone);
    journal->spill = NULL;
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

void journal_note_copy(struct journal *journal, const struct buffer *copy, size_t *noted)
{
    journal_pass(journal, copy->capacity);
    journal_passed(journal, *noted);
    *noted = copy->capacity;
}

static void note_copy(struct journal *journal)
{
    journal_note_copy(journal, &journal->spill->buffer, &journal->spill->buffer_bytes);
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
                            .memory_size = record_size(size, 0) + record_stamp_size(record->flags),
                            .byte_count = size,
                            .db = record->db,
                            .flags = record->flags};
    const struct journal_view view = {.bytes = {record_bytes(record), record->byte_count},
                                      .blobs = record_blobs(record),
                                      .blob_count = record->blob_count};

    atomic_init(&header.ready, 1);
    buffer_append(buffer, &header, sizeof(header));
    journal_view_append(&view, buffer);
    buffer_append(buffer, padding, record_size(size, 0) - sizeof(header) - size);
    if (record_stamp(record) != NULL)
        buffer_append(buffer, record_stamp(record), sizeof(struct journal_stamp));
}

/* Its form in memory is that in the file, as no record has references. */
static bool write_plain_block(struct journal_spill *spill, struct journal_block *block, uint64_t *at)
{
    const size_t used = atomic_load_explicit(&block->used, memory_order_acquire);

    for (size_t position = 0; position < used;) {
        struct record *record = record_at(block->data, position);
        const size_t padding = record_size(record->byte_count, 0) - sizeof(*record) - record->byte_count;

        record_wait_until_ready(record);
        memset(record_bytes(record) + record->byte_count, 0, padding); /* nobody else has written there */
        position += record->memory_size;
    }
    if (file_pwrite_all(spill->file, block->data, used, *at) != STATUS_OK)
        return false;
    *at += used;
    return true;
}

static bool write_referring_block(struct journal *journal, struct journal_block *block, uint64_t *at)
{
    struct journal_spill *spill = journal->spill;

    buffer_clear(&spill->buffer);
    for (size_t position = 0; position < atomic_load_explicit(&block->used, memory_order_acquire);) {
        struct record *record = record_at(block->data, position);

        record_wait_until_ready(record);
        append_record(&spill->buffer, record);
        note_copy(journal);
        position += record->memory_size;
        if (spill->buffer.size >= WRITE_BYTES && !flush(spill, at))
            return false;
    }
    return flush(spill, at);
}

/* The mutex is held. After a failure the next write overwrites the incomplete block. */
static bool write_block(struct journal *journal, struct journal_block *block)
{
    struct journal_spill *spill = journal->spill;
    uint64_t at = spill->end;

    if (!(block->has_references ? write_referring_block(journal, block, &at) : write_plain_block(spill, block, &at)))
        return false;
    block->file_offset = spill->end;
    block->file_bytes = (size_t)(at - spill->end);
    spill->end = at;
    spill->block_count++;
    return true;
}

static bool save_block(struct journal *journal, struct journal_block *block)
{
    struct journal_spill *spill = journal->spill;
    bool good;
    int error;

    mutex_lock(&spill->mutex);
    good = open_file(spill) && write_block(journal, block);
    error = errno;
    if (spill->buffer.capacity > 2 * WRITE_BYTES)
        buffer_fini(&spill->buffer);
    note_copy(journal);
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

/* Without the mutex: the file stays as it is as long as a block is in it. */
bool journal_spill_load_cached(struct journal *journal, const struct journal_block *block, struct buffer *bytes)
{
    assert(block->place == BLOCK_IN_FILE && bytes->size == 0);
    if (!buffer_try_reserve(bytes, block->file_bytes) ||
        !file_pread_cached(journal->spill->file, bytes->data, block->file_bytes, block->file_offset))
        return false;
    bytes->size = block->file_bytes;
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

/* A block that is to leave the memory. */
struct candidate {
    struct journal_block *block; /* NULL: there is none, or memory is within its limit */
    bool is_wanted;              /* a reader will reach it; otherwise a block before it is lost */
};

static bool is_retained_locked(const struct journal *journal, const struct journal_block *block)
{
    spinlock_assert_held(&journal->lock);
    return block == journal->newest || journal_bytes_locked(journal) - block->end_bytes < journal->retention_bytes;
}

/* Who will read a block. */
struct prospect {
    bool is_wanted;    /* a reader that lets blocks spill will */
    bool is_lost;      /* readers would have, but a block before it is lost to them, and nobody else will */
    uint64_t distance; /* from the nearest of its readers, in bytes of the journal */
};

static struct prospect prospect_locked(const struct journal *journal, const struct journal_block *block)
{
    struct prospect found = {.distance = UINT64_MAX};
    bool has_cut = false;

    spinlock_assert_held(&journal->lock);
    LIST_FOREACH(node, &journal->readers) {
        const struct journal_reader *reader = container_of(node, struct journal_reader, node);
        const uint64_t from = reader->block->begin_position;

        if (from > block->begin_position)
            continue;
        if (atomic_load_explicit(&reader->is_cut, memory_order_relaxed)) {
            has_cut = true;
            continue;
        }
        found.is_wanted |= (reader->flags & JOURNAL_READER_SPILLS) != 0;
        found.distance = MIN(found.distance, block->begin_position - from);
    }
    found.is_lost = has_cut && found.distance == UINT64_MAX;
    return found;
}

/* Of the blocks in memory, the one that is read last: a reader that is only somewhat too slow finds most of what comes
 * next in memory, and less is written than with any other choice. What is lost anyhow goes first. */
static struct candidate find_candidate_locked(const struct journal *journal, uint64_t room_bytes)
{
    struct candidate found = {NULL, false};
    uint64_t farthest = 0;

    spinlock_assert_held(&journal->lock);
    if (journal->memory_limit_bytes == 0 || journal_memory_locked(journal) + room_bytes <= journal->memory_limit_bytes)
        return found;
    LIST_FOREACH(node, &journal->in_memory) {
        struct journal_block *block = container_of(node, struct journal_block, in_memory);
        struct prospect prospect;

        if (block == journal->newest || block->slot != NULL || block->user_count != 0)
            continue;
        prospect = prospect_locked(journal, block);
        if (prospect.is_lost && !is_retained_locked(journal, block))
            return (struct candidate){block, false};
        if (prospect.is_wanted && prospect.distance >= farthest) {
            found = (struct candidate){block, true};
            farthest = prospect.distance;
        }
    }
    return found;
}

static struct candidate find_candidate(struct journal *journal, uint64_t room_bytes)
{
    struct candidate found;

    spinlock_acquire(&journal->lock);
    found = find_candidate_locked(journal, room_bytes);
    spinlock_release(&journal->lock);
    return found;
}

/* Being in use keeps the block. */
static struct candidate take_candidate(struct journal *journal, uint64_t room_bytes)
{
    struct candidate found;

    spinlock_acquire(&journal->lock);
    found = find_candidate_locked(journal, room_bytes);
    if (found.block != NULL)
        found.block->user_count++;
    spinlock_release(&journal->lock);
    return found;
}

/* --- beyond the file's limit --- */

struct file_part {
    uint64_t offset, bytes;
};

static void cut_readers_locked(struct journal *journal, const struct journal_block *block)
{
    spinlock_assert_held(&journal->lock);
    LIST_FOREACH(node, &journal->readers) {
        struct journal_reader *reader = container_of(node, struct journal_reader, node);

        if (reader->block == block)
            atomic_store_explicit(&reader->is_cut, true, memory_order_relaxed);
    }
}

static void cut_readers_before_locked(struct journal *journal, const struct journal_block *lost)
{
    spinlock_assert_held(&journal->lock);
    for (const struct journal_block *block = journal->oldest; block != lost;
         block = atomic_load_explicit(&block->next, memory_order_relaxed)) {
        if (block->user_count != 0)
            cut_readers_locked(journal, block);
    }
}

/* Gives up the blocks in the file between the reader furthest behind and the next reader. Returns the number of their
 * parts of the file; 0: there are none, or a reader that does not spill needs them. */
static size_t cut_furthest_locked(struct journal *journal, struct file_part *parts, size_t most)
{
    const struct journal_block *first = NULL;
    size_t count = 0;

    spinlock_assert_held(&journal->lock);
    for (struct journal_block *block = journal->oldest; block != NULL && count < most;
         block = atomic_load_explicit(&block->next, memory_order_relaxed)) {
        if (block->user_count != block->spiller_count || is_retained_locked(journal, block) ||
            (block->user_count != 0 && count != 0))
            break;
        if (block->user_count != 0 || block->place != BLOCK_IN_FILE)
            continue;
        if (first == NULL)
            first = block;
        block->place = BLOCK_LOST;
        journal->spilled_count--;
        journal->spilled_bytes -= block->file_bytes;
        parts[count++] = (struct file_part){block->file_offset, block->file_bytes};
    }
    if (first != NULL)
        cut_readers_before_locked(journal, first);
    return count;
}

/* A cut reader may be one that nobody reads with at the moment, so its owner is told. */
static void tell_cut_readers(struct journal *journal)
{
    struct journal_reader *found;

    do {
        found = NULL;
        spinlock_acquire(&journal->lock);
        LIST_FOREACH(node, &journal->readers) {
            struct journal_reader *reader = container_of(node, struct journal_reader, node);

            if (found == NULL && atomic_load_explicit(&reader->is_cut, memory_order_relaxed) && !reader->told)
                found = reader;
        }
        if (found != NULL) {
            found->told = true;
            journal->calling = found;
        }
        spinlock_release(&journal->lock);
        if (found != NULL)
            journal_call_reader(journal, found);
    } while (found != NULL);
}

static bool is_full(struct journal *journal)
{
    uint64_t limit, spilled, reserve;
    struct statvfs facts;

    spinlock_acquire(&journal->lock);
    limit = journal->spill_limit_bytes;
    spilled = journal->spilled_bytes;
    reserve = journal->spill_reserve_bytes;
    spinlock_release(&journal->lock);
    if (limit != 0 && spilled >= limit)
        return true;
    return reserve != 0 && statvfs(".", &facts) == 0 && (uint64_t)facts.f_bavail * facts.f_frsize < reserve;
}

/* False: the file must not become larger. */
static bool make_room(struct journal *journal)
{
    struct file_part parts[64];
    size_t count;

    while (is_full(journal)) {
        spinlock_acquire(&journal->lock);
        count = cut_furthest_locked(journal, parts, countof(parts));
        spinlock_release(&journal->lock);
        for (size_t i = 0; i < count; i++)
            give_back(journal->spill, parts[i].offset, parts[i].bytes);
        tell_cut_readers(journal);
        if (count == 0)
            return false;
    }
    return true;
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

/* Its memory passes. */
static char *detach_locked(struct journal *journal, struct journal_block *block, enum block_place place)
{
    const size_t own_bytes = mem_usable(block);
    char *data = block->data;

    spinlock_assert_held(&journal->lock);
    assert(block->user_count == 0);
    block->data = NULL;
    block->place = place;
    list_remove(&block->in_memory);
    journal_pass(journal, block->memory_bytes - own_bytes);
    journal->memory_bytes -= block->memory_bytes - own_bytes;
    block->memory_bytes = own_bytes;
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
    if (block->place == BLOCK_LOST)
        cut_readers_before_locked(journal, block);
    in_file = block->place == BLOCK_IN_FILE;
    obsolete = journal_take_obsolete_locked(journal);
    spinlock_release(&journal->lock);
    if (data != NULL) {
        const size_t bytes = mem_usable(data);

        journal_block_free_data(data, used);
        journal_passed(journal, bytes);
    }
    if (saved && !in_file)
        give_back(journal->spill, file_offset, file_bytes);
    journal_free_chain(journal, obsolete);
    tell_cut_readers(journal);
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

static struct journal_fetch *take_fetch(struct journal *journal)
{
    struct list_node *node;

    spinlock_acquire(&journal->lock);
    node = list_pop_front(&journal->fetches);
    spinlock_release(&journal->lock);
    return node != NULL ? container_of(node, struct journal_fetch, node) : NULL;
}

void journal_call_reader(struct journal *journal, struct journal_reader *reader)
{
    spinlock_assert_none_held();
    if (reader->on_change != NULL)
        reader->on_change(reader);
    spinlock_acquire(&journal->lock);
    assert(journal->calling == reader);
    journal->calling = NULL;
    spinlock_release(&journal->lock);
}

/* The reader's thread may free the fetch as soon as it is marked as done. */
static void finish_fetch(struct journal *journal, struct journal_fetch *fetch)
{
    struct journal_block *block = fetch->block, *obsolete;
    struct journal_reader *reader;

    spinlock_acquire(&journal->lock);
    block->user_count--;
    block->spiller_count--;
    journal->calling = reader = fetch->reader;
    if (reader != NULL)
        atomic_store_explicit(&fetch->is_done, true, memory_order_release);
    obsolete = journal_take_obsolete_locked(journal);
    spinlock_release(&journal->lock);
    journal_free_chain(journal, obsolete);
    if (reader != NULL)
        journal_call_reader(journal, reader);
    else
        journal_fetch_free(journal, &fetch);
}

static void fetch_wanted(struct journal *journal)
{
    struct journal_fetch *fetch;

    while ((fetch = take_fetch(journal)) != NULL) {
        if (!journal_spill_load(journal, fetch->block, &fetch->bytes))
            fetch->error = errno;
        journal_note_copy(journal, &fetch->bytes, &fetch->noted_bytes);
        finish_fetch(journal, fetch);
    }
}

/* Memory is to have so much room. False: it has, or cannot get it. */
static bool spill(struct journal *journal, uint64_t room_bytes, int *error)
{
    /* What is wanted only since this look is saved without another one: else it would be lost. */
    const bool has_room = !find_candidate(journal, room_bytes).is_wanted || make_room(journal);
    const struct candidate candidate = take_candidate(journal, room_bytes);
    bool saved = false;

    if (candidate.block == NULL)
        return false;
    errno = ENOSPC;
    if (candidate.is_wanted && has_room)
        saved = save_block(journal, candidate.block);
    if (candidate.is_wanted && !saved && *error == 0)
        *error = errno;
    return settle(journal, candidate.block, saved);
}

static uint64_t room_behind(struct journal *journal)
{
    uint64_t bytes;

    spinlock_acquire(&journal->lock);
    bytes = journal->memory_limit_bytes / 16;
    spinlock_release(&journal->lock);
    return bytes;
}

bool journal_is_crowded(struct journal *journal, uint64_t bytes)
{
    bool is_crowded;

    if (!journal_is_on(journal))
        return false;
    spinlock_acquire(&journal->lock);
    is_crowded = journal->memory_limit_bytes != 0 &&
                 journal_memory_locked(journal) > journal->memory_limit_bytes + bytes &&
                 find_candidate_locked(journal, 0).is_wanted;
    spinlock_release(&journal->lock);
    return is_crowded;
}

bool journal_tend(struct journal *journal)
{
    uint64_t room_bytes;
    int error = 0;

    spinlock_assert_none_held();
    do {
        if (atomic_exchange_explicit(&journal->is_tended, true, memory_order_acquire))
            return true;
        atomic_store_explicit(&journal->wants_tending, false, memory_order_relaxed);
        free_obsolete(journal);
        fetch_wanted(journal);
        for (room_bytes = 0; spill(journal, room_bytes, &error); fetch_wanted(journal))
            room_bytes = room_behind(journal); /* so that not each block wakes this thread */
        atomic_store_explicit(&journal->is_tended, false, memory_order_release);
    } while (error == 0 && journal_wants_tending(journal));
    errno = error;
    return error == 0;
}
