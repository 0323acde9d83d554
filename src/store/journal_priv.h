/* Blocks and records of the journal, for the files of store/journal*.c. */
#pragma once

#include "base/mem.h"
#include "store/journal.h"

enum {
    BLOCK_BYTES = 256 * 1024,
    BLOCK_STREAM_BYTES = 4 * 1024 * 1024 /* with what it refers to a block is not much more than this */
};

/* Where a block's records are. What is in a file, or lost, is no longer in memory. */
enum block_place { BLOCK_IN_MEMORY, BLOCK_IN_FILE, BLOCK_LOST };

struct journal_block {
    struct journal_block *_Atomic next; /* atomic: release by who appends, acquire by readers */
    _Atomic size_t used;                /* atomic: bytes reserved; records below are whole, though maybe not ready */
    size_t capacity;                    /* const */
    char *data;                         /* guarded by the journal's lock; stays while somebody is in the block */
    uint64_t begin_offset, end_offset;  /* of the stream; the end when the block was closed; guarded by the lock */
    uint64_t memory_bytes;              /* with what it refers to; guarded by the lock */
    unsigned user_count;                /* readers in it, and who moves it to the file; guarded by the lock */
    unsigned spiller_count;             /* of those readers that let blocks go to the file; likewise */
    enum block_place place;             /* likewise */
    uint64_t file_offset;               /* set before the place is BLOCK_IN_FILE */
    size_t file_bytes;
};

/* In a block: this, the blob references, the bytes; the next record at a multiple of 8. In the file there are no
 * references, all bytes stand there. */
struct record {
    uint64_t offset;
    uint64_t stream_size;
    size_t memory_size; /* of the whole record in the block */
    uint64_t byte_count;
    uint32_t blob_count;
    uint16_t db;
    uint16_t flags;
    _Atomic uint32_t ready; /* atomic: release by the writer, acquire by readers */
    uint32_t unused;
};

static inline struct effect_blob *record_blobs(struct record *record)
{
    return (struct effect_blob *)(void *)(record + 1);
}

static inline char *record_bytes(struct record *record)
{
    return (char *)(record_blobs(record) + record->blob_count);
}

static inline struct record *record_at(char *data, size_t position)
{
    return (struct record *)(void *)(data + position);
}

static inline size_t record_size(size_t byte_count, uint32_t blob_count)
{
    return (sizeof(struct record) + blob_count * sizeof(struct effect_blob) + byte_count + 7) & ~(size_t)7;
}

static inline void record_publish(struct record *record)
{
    atomic_store_explicit(&record->ready, 1, memory_order_release);
}

/* --- blocks; the lock is held --- */

struct journal_block *journal_block_add_locked(struct journal *journal, size_t least_bytes) REQUIRES(journal->lock);
/* Blocks that nobody needs any more, from the oldest on; a chain to be freed without the lock. */
struct journal_block *journal_take_obsolete_locked(struct journal *journal) REQUIRES(journal->lock);
/* Looks whether a reader that holds writers is too far behind, or (`settled`) far enough ahead again. True: that is
 * just over, on_lag_over is to be called. */
bool journal_look_at_lag_locked(struct journal *journal, bool settled) REQUIRES(journal->lock);

/* --- not held --- */

void journal_tell_lag_over(struct journal *journal, bool is_over);
void journal_free_chain(struct journal *journal, struct journal_block *block);
void journal_block_free_data(char *data, size_t used);

/* --- the file --- */

struct journal_spill *journal_spill_create(void);
void journal_spill_destroy(struct journal_spill **spill);

/* A block's records as they are in the file, into `bytes`; false: they cannot be read, errno says why. */
must_check bool journal_spill_load(struct journal *journal, const struct journal_block *block, struct buffer *bytes);
void journal_spill_forget(struct journal *journal, const struct journal_block *block); /* its room in the file */
