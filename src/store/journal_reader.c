#include "base/gate.h"
#include "store/journal_priv.h"

#include <errno.h>
#include <sched.h>

/* The lock is held: the reader's block may be freed from here on. */
static void leave_locked(struct journal_reader *reader)
{
    spinlock_assert_held(&reader->journal->lock);
    assert(reader->block->user_count != 0);
    reader->block->user_count--;
    if ((reader->flags & JOURNAL_READER_SPILLS) != 0)
        reader->block->spiller_count--;
}

static void enter_locked(struct journal_reader *reader, struct journal_block *block)
{
    spinlock_assert_held(&reader->journal->lock);
    block->user_count++;
    if ((reader->flags & JOURNAL_READER_SPILLS) != 0)
        block->spiller_count++;
    reader->block = block;
    reader->data = block->data; /* NULL: not in memory */
    reader->position = 0;
    reader->began_with_block = false;
}

static void reader_init(struct journal_reader *reader, struct journal *journal, uint64_t offset)
{
    *reader = (struct journal_reader){.journal = journal};
    list_node_init(&reader->node);
    atomic_init(&reader->offset, offset);
}

static void add_locked(struct journal_reader *reader)
{
    spinlock_assert_held(&reader->journal->lock);
    list_push_back(&reader->journal->readers, &reader->node);
    reader->journal->reader_count++;
    journal_switch_locked(reader->journal);
}

static void lose(struct journal_reader *reader, int error)
{
    reader->is_lost = true;
    reader->error = error;
}

/* The block stays, as the fetch is in it, too. */
static void fetch_copy(struct journal_reader *reader)
{
    struct journal *journal = reader->journal;
    struct journal_fetch *fetch = mem_alloc_zero(sizeof(*fetch));

    assert(reader->fetch == NULL);
    list_node_init(&fetch->node);
    fetch->reader = reader;
    fetch->block = reader->block;
    reader->fetch = fetch;
    spinlock_acquire(&journal->lock);
    fetch->block->user_count++;
    fetch->block->spiller_count++;
    list_push_back(&journal->fetches, &fetch->node);
    atomic_store_explicit(&journal->wants_tending, true, memory_order_relaxed);
    spinlock_release(&journal->lock);
}

static void note_copy(struct journal_reader *reader)
{
    journal_note_copy(reader->journal, &reader->copy, &reader->copy_bytes);
}

static void free_copy(struct journal_reader *reader)
{
    buffer_fini(&reader->copy);
    note_copy(reader);
}

/* The block is not in memory: its copy is read, now or by the thread that tends. The block stays, as the reader is in
 * it. */
static void load_copy(struct journal_reader *reader)
{
    buffer_clear(&reader->copy);
    if (reader->block->place == BLOCK_LOST) {
        lose(reader, ENOSPC);
        return;
    }
    if (journal_spill_load_cached(reader->journal, reader->block, &reader->copy)) {
        note_copy(reader);
        reader->data = reader->copy.data;
        return;
    }
    if ((reader->flags & JOURNAL_READER_NEVER_WAITS) != 0) {
        fetch_copy(reader);
        return;
    }
    spinlock_assert_may_sleep();
    if (!journal_spill_load(reader->journal, reader->block, &reader->copy))
        lose(reader, errno);
    note_copy(reader);
    reader->data = reader->copy.data;
}

void journal_fetch_free(struct journal *journal, struct journal_fetch **fetch)
{
    buffer_fini(&(*fetch)->bytes);
    journal_note_copy(journal, &(*fetch)->bytes, &(*fetch)->noted_bytes);
    mem_free(*fetch);
    *fetch = NULL;
}

static size_t readable(const struct journal_reader *reader)
{
    if (reader->copy.size != 0)
        return reader->copy.size;
    return atomic_load_explicit(&reader->block->used, memory_order_acquire);
}

void journal_reader_open(struct journal_reader *reader, struct journal *journal)
{
    gate_assert_alone();
    spinlock_acquire(&journal->lock);
    reader_init(reader, journal, journal->end_offset);
    if (journal->newest == NULL)
        (void)journal_block_add_locked(journal, 0);
    enter_locked(reader, journal->newest);
    reader->position = atomic_load_explicit(&journal->newest->used, memory_order_relaxed);
    add_locked(reader);
    journal->last_db = -1;
    spinlock_release(&journal->lock);
}

/* The block that holds the offset, or ends with it if that is the end of all. */
static struct journal_block *find_block_locked(const struct journal *journal, uint64_t offset)
{
    struct journal_block *found = NULL;

    spinlock_assert_held(&journal->lock);
    for (struct journal_block *block = journal->oldest; block != NULL;) {
        struct journal_block *next = atomic_load_explicit(&block->next, memory_order_relaxed);
        uint64_t end = next != NULL ? next->begin_offset : journal->end_offset;

        if (offset >= block->begin_offset && (offset < end || (next == NULL && offset == end)))
            found = block;
        if (block->place == BLOCK_LOST) /* nobody can go on from there */
            found = NULL;
        block = next;
    }
    return found;
}

/* In a block that is there. False: no record begins at the offset. */
static bool seek(struct journal_reader *reader, uint64_t offset, uint64_t end_offset)
{
    while (reader->position < readable(reader)) {
        const struct record *record = record_at(reader->data, reader->position);

        if (record->offset >= offset)
            return record->offset == offset;
        reader->position += record->memory_size;
    }
    return offset == end_offset;
}

bool journal_reader_open_at(struct journal_reader *reader, struct journal *journal, uint64_t offset, unsigned flags,
                            void (*on_change)(struct journal_reader *reader))
{
    struct journal_block *block = NULL;
    uint64_t end_offset;

    spinlock_acquire(&journal->lock);
    reader_init(reader, journal, offset);
    reader->flags = flags;
    reader->on_change = on_change;
    if (journal_is_on(journal))
        block = find_block_locked(journal, offset);
    if (block != NULL) {
        enter_locked(reader, block);
        add_locked(reader);
    }
    end_offset = journal->end_offset;
    spinlock_release(&journal->lock);
    if (block == NULL)
        return false;
    if ((flags & JOURNAL_READER_PLACE) != 0)
        return true;
    if (reader->data == NULL)
        load_copy(reader);
    reader->seeks = reader->fetch != NULL;
    if (!reader->is_lost && (reader->seeks || seek(reader, offset, end_offset)))
        return true;
    journal_reader_close(reader);
    return false;
}

static struct journal_block *find_block_near_locked(const struct journal *journal, uint64_t position)
{
    struct journal_block *found = NULL;

    spinlock_assert_held(&journal->lock);
    for (struct journal_block *block = journal->oldest; block != NULL;
         block = atomic_load_explicit(&block->next, memory_order_relaxed)) {
        if (block->begin_position <= position)
            found = block;
        if (block->place == BLOCK_LOST)
            found = NULL;
    }
    return found;
}

bool journal_reader_open_near(struct journal_reader *reader, struct journal *journal, uint64_t position, unsigned flags,
                              void (*on_change)(struct journal_reader *reader))
{
    struct journal_block *block = NULL;

    spinlock_acquire(&journal->lock);
    if (journal_is_on(journal))
        block = find_block_near_locked(journal, position);
    reader_init(reader, journal, block != NULL ? block->begin_offset : 0);
    reader->flags = flags;
    reader->on_change = on_change;
    if (block != NULL) {
        enter_locked(reader, block);
        add_locked(reader);
    }
    spinlock_release(&journal->lock);
    if (block == NULL)
        return false;
    if (reader->data == NULL && (flags & JOURNAL_READER_PLACE) == 0)
        load_copy(reader);
    if (!reader->is_lost)
        return true;
    journal_reader_close(reader);
    return false;
}

void journal_reader_set(struct journal_reader *reader, unsigned flags, unsigned skips)
{
    struct journal *journal = reader->journal;
    bool is_over;

    spinlock_acquire(&journal->lock);
    reader->block->spiller_count += (flags & JOURNAL_READER_SPILLS) != 0;
    reader->block->spiller_count -= (reader->flags & JOURNAL_READER_SPILLS) != 0;
    reader->flags = flags;
    reader->skips = skips;
    is_over = journal_look_at_lag_locked(journal, false);
    spinlock_release(&journal->lock);
    journal_tell_lag_over(journal, is_over);
}

/* One that is not done goes when it is. */
static void leave_fetch_locked(struct journal_reader *reader)
{
    struct journal_fetch *fetch = reader->fetch;

    spinlock_assert_held(&reader->journal->lock);
    if (fetch == NULL || atomic_load_explicit(&fetch->is_done, memory_order_acquire))
        return;
    fetch->reader = NULL;
    reader->fetch = NULL;
}

void journal_reader_close(struct journal_reader *reader)
{
    struct journal *journal = reader->journal;
    struct journal_block *obsolete;
    bool is_over;

    spinlock_acquire(&journal->lock);
    while (UNLIKELY(journal->calling == reader)) {
        spinlock_release(&journal->lock);
        sched_yield();
        spinlock_acquire(&journal->lock);
    }
    leave_fetch_locked(reader);
    leave_locked(reader);
    list_remove(&reader->node);
    assert(journal->reader_count != 0);
    journal->reader_count--;
    journal_switch_locked(journal);
    obsolete = journal_take_obsolete_locked(journal);
    is_over = journal_look_at_lag_locked(journal, true);
    spinlock_release(&journal->lock);
    journal_tell_lag_over(journal, is_over);
    journal_free_chain(journal, obsolete);
    if (reader->fetch != NULL)
        journal_fetch_free(journal, &reader->fetch);
    free_copy(reader);
    reader->block = NULL;
    reader->data = NULL;
}

void journal_reader_set_lag_limit(struct journal_reader *reader, uint64_t bytes)
{
    struct journal *journal = reader->journal;
    bool is_over;

    spinlock_acquire(&journal->lock);
    reader->lag_limit_bytes = bytes;
    is_over = journal_look_at_lag_locked(journal, false);
    spinlock_release(&journal->lock);
    journal_tell_lag_over(journal, is_over);
}

/* It has gone on by a good deal: writers may be waiting for that. */
static void tell_of_progress(struct journal_reader *reader)
{
    struct journal *journal = reader->journal;
    bool is_over;

    if (LIKELY(!atomic_load_explicit(&journal->is_lagging, memory_order_relaxed)))
        return;
    spinlock_acquire(&journal->lock);
    is_over = journal_look_at_lag_locked(journal, true);
    spinlock_release(&journal->lock);
    journal_tell_lag_over(journal, is_over);
}

void journal_reader_move(struct journal_reader *reader, uint64_t offset)
{
    struct journal *journal = reader->journal;
    struct journal_block *obsolete = NULL, *next;

    assert(reader->fetch == NULL);
    spinlock_acquire(&journal->lock);
    if (offset > journal_reader_offset(reader) && offset <= journal->end_offset) {
        while ((next = atomic_load_explicit(&reader->block->next, memory_order_relaxed)) != NULL &&
               next->begin_offset <= offset) {
            leave_locked(reader);
            enter_locked(reader, next);
        }
        atomic_store_explicit(&reader->offset, offset, memory_order_relaxed);
        obsolete = journal_take_obsolete_locked(journal);
    }
    spinlock_release(&journal->lock);
    journal_free_chain(journal, obsolete);
    tell_of_progress(reader);
}

void journal_reader_move_near(struct journal_reader *reader, uint64_t position)
{
    struct journal *journal = reader->journal;
    struct journal_block *obsolete, *next;

    assert(reader->fetch == NULL);
    spinlock_acquire(&journal->lock);
    while ((next = atomic_load_explicit(&reader->block->next, memory_order_relaxed)) != NULL &&
           next->begin_position <= position) {
        leave_locked(reader);
        enter_locked(reader, next);
        atomic_store_explicit(&reader->offset, next->begin_offset, memory_order_relaxed);
    }
    obsolete = journal_take_obsolete_locked(journal);
    spinlock_release(&journal->lock);
    journal_free_chain(journal, obsolete);
    tell_of_progress(reader);
}

/* From a block that was read to its end to the next one. */
static void advance(struct journal_reader *reader, struct journal_block *next)
{
    struct journal *journal = reader->journal;
    struct journal_block *obsolete;

    buffer_clear(&reader->copy);
    spinlock_acquire(&journal->lock);
    reader->block->was_read |= reader->began_with_block;
    leave_locked(reader);
    enter_locked(reader, next);
    reader->began_with_block = true;
    obsolete = journal_take_obsolete_locked(journal);
    spinlock_release(&journal->lock);
    journal_free_chain(journal, obsolete);
    if (reader->data == NULL)
        load_copy(reader);
    else if (reader->copy.capacity != 0)
        free_copy(reader);
    tell_of_progress(reader);
}

static bool show(struct journal_reader *reader, struct journal_view *view)
{
    struct record *record = record_at(reader->data, reader->position);

    if (atomic_load_explicit(&record->ready, memory_order_acquire) == 0)
        return false;
    assert(reader->copy.size != 0 || record->offset == journal_reader_offset(reader));
    *view = (struct journal_view){.offset = record->offset,
                                  .size = record->stream_size,
                                  .db = record->db,
                                  .flags = record->flags,
                                  .bytes = {record_bytes(record), record->byte_count},
                                  .blobs = record_blobs(record),
                                  .blob_count = record->blob_count,
                                  .stamp = record_stamp(record)};
    reader->shown = reader->position;
    reader->position += record->memory_size;
    atomic_store_explicit(&reader->offset, record->offset + record->stream_size, memory_order_relaxed);
    return true;
}

/* False: not yet. */
static bool take_fetched(struct journal_reader *reader)
{
    struct journal_fetch *fetch = reader->fetch;

    if (!atomic_load_explicit(&fetch->is_done, memory_order_acquire))
        return false;
    buffer_fini(&reader->copy);
    reader->copy = fetch->bytes;
    reader->data = reader->copy.data;
    fetch->bytes = (struct buffer){0};
    note_copy(reader);
    if (fetch->error != 0)
        lose(reader, fetch->error);
    else if (reader->seeks && !seek(reader, journal_reader_offset(reader), UINT64_MAX))
        lose(reader, EINVAL);
    reader->seeks = false;
    journal_fetch_free(reader->journal, &reader->fetch);
    return true;
}

bool journal_reader_next(struct journal_reader *reader, struct journal_view *view)
{
    if (UNLIKELY(atomic_load_explicit(&reader->is_cut, memory_order_relaxed)) && !reader->is_lost)
        lose(reader, ENOSPC);
    do {
        if (UNLIKELY(reader->fetch != NULL) && !take_fetched(reader))
            return false;
        while (!reader->is_lost && reader->fetch == NULL && reader->position >= readable(reader)) {
            /* `used` may have grown before the next block was linked: look again behind the link. */
            struct journal_block *next = atomic_load_explicit(&reader->block->next, memory_order_acquire);

            if (next == NULL) {
                tell_of_progress(reader);
                return false;
            }
            if (reader->position >= readable(reader))
                advance(reader, next);
        }
        if (UNLIKELY(reader->is_lost) || UNLIKELY(reader->fetch != NULL) || !show(reader, view))
            return false;
    } while (UNLIKELY((view->flags & reader->skips) != 0));
    return true;
}

bool journal_reader_position(const struct journal_reader *reader, uint64_t *position)
{
    const struct journal_block *block = reader->block;

    if (reader->copy.size == 0)
        *position = block->begin_position + reader->position;
    else if (reader->position == reader->copy.size)
        *position = block->begin_position + atomic_load_explicit(&block->used, memory_order_relaxed);
    else
        return false;
    return true;
}

bool journal_reader_is_past(const struct journal_reader *reader, uint64_t position)
{
    uint64_t at;

    return reader->block->begin_position >= position || (journal_reader_position(reader, &at) && at >= position);
}

bool journal_reader_shown_position(const struct journal_reader *reader, uint64_t *position)
{
    *position = reader->block->begin_position + reader->shown;
    return reader->copy.size == 0;
}

void journal_view_append(const struct journal_view *view, struct buffer *buffer)
{
    size_t done = 0;

    for (uint32_t i = 0; i < view->blob_count; i++) {
        buffer_append(buffer, view->bytes.data + done, view->blobs[i].position - done);
        buffer_append_slice(buffer, blob_slice(view->blobs[i].blob));
        done = view->blobs[i].position;
    }
    buffer_append(buffer, view->bytes.data + done, view->bytes.size - done);
}
