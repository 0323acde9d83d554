/* Blocks and records of the journal, for the files of store/journal*.c. */
#pragma once

#include "base/mem.h"
#include "store/journal.h"

#include <string.h>

enum {
    BLOCK_BYTES = 256 * 1024,
    BLOCK_STREAM_BYTES = 4 * 1024 * 1024 /* with what it refers to a block is not much more than this */
};

/* Where a block's records are. What is in a file, or lost, is no longer in memory. */
enum block_place { BLOCK_IN_MEMORY, BLOCK_IN_FILE, BLOCK_LOST };

/* What stands before the records of a block that lies in the tail (journal_tail.h); the next process reads it. */
struct journal_slot {
    uint64_t nonce; /* of the file; else nothing of what stands here counts */
    uint64_t begin_position, begin_offset;
    _Atomic uint64_t used; /* atomic: release after the record's head is written; as of the block */
    char padding[32];
};

struct journal_block {
    struct journal_block *_Atomic next; /* atomic: release by who appends, acquire by readers */
    _Atomic size_t used;                /* atomic: bytes reserved; records below are whole, though maybe not ready */
    size_t capacity;                    /* const */
    char *data;                         /* guarded by the journal's lock; stays while somebody is in the block */
    struct journal_slot *slot;          /* what `data` lies in, else NULL; likewise, and `tail` is where that is */
    struct journal_tail *tail;
    uint64_t begin_position;           /* const */
    uint64_t begin_offset, end_offset; /* of the stream; the end when the block was closed; guarded by the lock */
    uint64_t memory_bytes;             /* with what it refers to; guarded by the lock */
    unsigned user_count;               /* readers in it, and who moves it to the file; guarded by the lock */
    unsigned spiller_count;            /* of those readers that let blocks go to the file; likewise */
    enum block_place place;            /* likewise */
    uint64_t file_offset;              /* set before the place is BLOCK_IN_FILE */
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
    uint32_t check;         /* in the tail: see record_check */
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

static inline uint64_t check_mix(uint64_t a, uint64_t b)
{
    __extension__ const unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Against pages that are missing or of another time, not against people. The products of different words do not wait
 * for each other. */
static inline uint64_t check_bytes(const char *data, size_t size, uint64_t seed)
{
    const uint64_t step = 0x9e3779b97f4a7c15, other = 0xc2b2ae3d27d4eb4f;
    uint64_t sum = size * other, words[2];
    size_t at = 0;

    for (; at + sizeof(words) <= size; at += sizeof(words)) {
        memcpy(words, data + at, sizeof(words));
        seed += step;
        sum += check_mix(words[0] ^ seed, words[1] + other);
    }
    if (at != size) {
        words[0] = words[1] = 0;
        memcpy(words, data + at, size - at);
        sum += check_mix(words[0] ^ (seed + step), words[1] + other);
    }
    return sum;
}

/* Of the whole record. `nonce`: of the file that it is in, so that nothing counts that was left there before. */
static inline uint32_t record_check(struct record *record, uint64_t nonce)
{
    uint64_t sum = check_bytes(record_bytes(record), record->byte_count, nonce);

    sum += check_mix(record->offset ^ nonce, record->stream_size + 0xff51afd7ed558ccd);
    sum += check_mix(record->memory_size ^ 0xc4ceb9fe1a85ec53,
                     (record->blob_count ^ (uint64_t)record->db << 32 ^ (uint64_t)record->flags << 48) + nonce);
    return (uint32_t)(sum ^ sum >> 32);
}

/* `nonce` 0: there is no tail. */
static inline void record_publish(struct record *record, uint64_t nonce)
{
    if (LIKELY(nonce != 0))
        record->check = record_check(record, nonce);
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
void journal_block_free_data(char *data, size_t used); /* of a block that has no slot */

/* --- the tail --- */

/* A slot for a new block that begins there; NULL: none is ready. */
struct journal_slot *journal_tail_take_locked(struct journal_tail *tail, struct journal_block *block, uint64_t position,
                                              uint64_t offset);
/* The block is about to go: it is not moved any more. */
void journal_tail_forget_locked(struct journal_tail *tail, const struct journal_slot *slot);
/* The block has gone, the lock is not held. */
void journal_tail_give_back(struct journal *journal, struct journal_tail *tail, const struct journal_slot *slot,
                            uint64_t end_position);

/* --- the file --- */

struct journal_spill *journal_spill_create(void);
void journal_spill_destroy(struct journal_spill **spill);

/* A block's records as they are in the file, into `bytes`; false: they cannot be read, errno says why. */
must_check bool journal_spill_load(struct journal *journal, const struct journal_block *block, struct buffer *bytes);
void journal_spill_forget(struct journal *journal, const struct journal_block *block); /* its room in the file */
