/* Internals of the journal: blocks and records, for the files of store/journal*.c. */
#pragma once

#include "base/mem.h"
#include "store/journal.h"
#include "store/journal_blob.h"

#include <sched.h>
#include <string.h>

enum {
    BLOCK_BYTES = 256 * 1024,
    BLOCK_STREAM_BYTES = 2 * 1024 * 1024 /* a block with the blobs it references is not much larger than this */
};

/* Where a block's records are. Records in the file, or lost, are not in memory any more. */
enum block_place { BLOCK_IN_MEMORY, BLOCK_IN_FILE, BLOCK_LOST };

/* The header before the records of a block in the tail (journal_tail.h). The next process reads it. */
struct journal_slot {
    uint64_t nonce; /* nonce of the file; with another nonce the slot's contents do not count */
    uint64_t begin_position, begin_offset;
    _Atomic uint64_t used; /* atomic: release after the record's header is written; like journal_block.used */
    char padding[32];
};

struct journal_block {
    struct journal_block *_Atomic next; /* atomic: release by the thread that appends, acquire by readers */
    /* atomic: bytes reserved; headers of the records below are complete, but the records may not be ready. */
    _Atomic size_t used;
    size_t capacity;           /* const */
    char *data;                /* guarded by the journal's lock; stays while the block has users */
    struct journal_slot *slot; /* the slot with `data`, or NULL; guarded likewise; `tail` is the slot's tail */
    struct journal_tail *tail;
    uint64_t begin_position;         /* const */
    uint64_t begin_offset;           /* in the stream; const */
    uint64_t begin_bytes, end_bytes; /* journal_bytes_locked; the end when it is closed; guarded by the lock */
    uint64_t memory_bytes;           /* without the blobs it references; guarded by the lock */
    struct list_node in_memory;      /* in journal->in_memory while its records are; guarded by the lock */
    unsigned user_count;             /* readers in it, and a thread that moves it to the file; guarded by the lock */
    unsigned spiller_count;          /* number of these readers that let blocks spill; guarded by the lock */
    enum block_place place;          /* guarded by the lock */
    bool has_references;             /* to blobs; guarded by the lock until it is not the newest block any more */
    /* By one reader from its first record to its last: all are ready. Guarded by the lock while the block is in the
     * chain; then it belongs to the thread that frees it. */
    bool was_read;
    uint64_t file_offset; /* set before the place is BLOCK_IN_FILE */
    size_t file_bytes;
};

/* A block that journal_tend reads from the file for a reader whose thread must not wait. That thread makes it, and
 * frees it when it is done. If the reader is closed earlier, the thread that tends frees it. */
struct journal_fetch {
    struct list_node node;         /* in journal->fetches; guarded by the lock */
    struct journal_reader *reader; /* guarded by the lock; NULL: closed */
    struct journal_block *block;   /* one of its users until it is done */
    struct buffer bytes;           /* the thread's that tends, until it is done */
    size_t noted_bytes;            /* likewise; in the journal's passing_bytes */
    int error;                     /* likewise; 0: good */
    _Atomic bool is_done;          /* atomic: release behind the bytes */
};

/* The parts of a record in a block: this struct, the blob references, the bytes, and from a multiple of 8 on the stamp,
 * if it has one. The next record begins at a multiple of 8. In the file there are no references, but all bytes. */
struct record {
    uint64_t offset;
    uint64_t stream_size;
    size_t memory_size; /* size of the whole record in the block */
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

static inline size_t record_stamp_size(unsigned flags)
{
    return (flags & JOURNAL_STAMPED) != 0 ? sizeof(struct journal_stamp) : 0;
}

/* Its last part. NULL: it has none. */
static inline struct journal_stamp *record_stamp(struct record *record)
{
    if (LIKELY((record->flags & JOURNAL_STAMPED) == 0))
        return NULL;
    return (struct journal_stamp *)(void *)((char *)record + record->memory_size - sizeof(struct journal_stamp));
}

static inline uint64_t check_mix(uint64_t a, uint64_t b)
{
    __extension__ const unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The checksum detects missing or outdated pages; it does not protect against attackers. The products of different
 * words do not depend on each other. */
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

/* The checksum of the whole record. `nonce` is that of its file, so old contents of the file do not match. */
static inline uint32_t record_check(struct record *record, uint64_t nonce)
{
    uint64_t sum = check_bytes(record_bytes(record), record->byte_count, nonce);

    sum += check_mix(record->offset ^ nonce, record->stream_size + 0xff51afd7ed558ccd);
    sum += check_mix(record->memory_size ^ 0xc4ceb9fe1a85ec53,
                     (record->blob_count ^ (uint64_t)record->db << 32 ^ (uint64_t)record->flags << 48) + nonce);
    if (UNLIKELY((record->flags & JOURNAL_STAMPED) != 0))
        sum += check_bytes((const char *)record_stamp(record), sizeof(struct journal_stamp), nonce + 1);
    return (uint32_t)(sum ^ sum >> 32);
}

/* `nonce` 0: there is no tail. */
static ALWAYS_INLINE void record_publish(struct record *record, uint64_t nonce)
{
    if (LIKELY(nonce != 0))
        record->check = record_check(record, nonce);
    atomic_store_explicit(&record->ready, 1, memory_order_release);
}

/* The thread that appended it is about to publish it: it copies, and waits for nothing. */
static inline void record_wait_until_ready(const struct record *record)
{
    while (atomic_load_explicit(&record->ready, memory_order_acquire) == 0)
        sched_yield();
}

/* Memory begins or ends to be passing; it is added before it leaves another sum, and taken off when it is freed. */
static inline void journal_pass(struct journal *journal, uint64_t bytes)
{
    atomic_fetch_add_explicit(&journal->passing_bytes, bytes, memory_order_relaxed);
}

static inline void journal_passed(struct journal *journal, uint64_t bytes)
{
    const uint64_t before = atomic_fetch_sub_explicit(&journal->passing_bytes, bytes, memory_order_relaxed);

    assert(before >= bytes);
}

/* --- blocks; the lock is held --- */

static inline uint64_t journal_memory_locked(const struct journal *journal) REQUIRES(journal->lock)
{
    spinlock_assert_held(&journal->lock);
    return journal->memory_bytes + journal_blob_bytes();
}

/* Of all records so far, also of those that take nothing of the stream, with what they refer to. */
static inline uint64_t journal_bytes_locked(const struct journal *journal) REQUIRES(journal->lock)
{
    spinlock_assert_held(&journal->lock);
    return journal->end_offset + journal->unstreamed_bytes;
}

struct journal_block *journal_block_add_locked(struct journal *journal, size_t least_bytes) REQUIRES(journal->lock);
/* Switches the journal on or off, as its readers and journal_keep say; with the gate owned if this changes it. */
void journal_switch_locked(struct journal *journal) REQUIRES(journal->lock);
/* Removes blocks that nobody needs any more, from the oldest on. Returns a chain; free it without the lock. */
struct journal_block *journal_take_obsolete_locked(struct journal *journal) REQUIRES(journal->lock);
/* Checks whether a reader that holds writers is too far behind or, with `settled`, has caught up. True: it has just
 * caught up; call on_lag_over. */
bool journal_look_at_lag_locked(struct journal *journal, bool settled) REQUIRES(journal->lock);

/* --- the lock is not held --- */

void journal_tell_lag_over(struct journal *journal, bool is_over);
void journal_free_chain(struct journal *journal, struct journal_block *block);
void journal_block_free_data(char *data, size_t used); /* for a block without a slot */

/* --- the tail --- */

/* Returns a slot for a new block that begins there; NULL: none is ready. */
struct journal_slot *journal_tail_take_locked(struct journal_tail *tail, struct journal_block *block, uint64_t position,
                                              uint64_t offset);
/* Call it before the block is freed: it cannot move any more. */
void journal_tail_forget_locked(struct journal_tail *tail, const struct journal_slot *slot);
/* Returns the slot after the block was freed; the lock is not held. */
void journal_tail_give_back(struct journal *journal, struct journal_tail *tail, const struct journal_slot *slot,
                            uint64_t end_position);

/* --- the file --- */

struct journal_spill *journal_spill_create(void);
void journal_spill_destroy(struct journal *journal);

/* Reads a block's records from the file into `bytes`. False: they cannot be read; errno has the reason. */
must_check bool journal_spill_load(struct journal *journal, const struct journal_block *block, struct buffer *bytes);
/* Likewise, but never waits for a disk. Any thread with a reader in the block. False: perhaps it would have to. */
must_check bool journal_spill_load_cached(struct journal *journal, const struct journal_block *block,
                                          struct buffer *bytes);
/* Calls its on_change; journal->calling is the reader, set under the lock. */
void journal_call_reader(struct journal *journal, struct journal_reader *reader);
void journal_fetch_free(struct journal *journal, struct journal_fetch **fetch);
/* The copy's memory passes; `noted`: as much as was noted before, 0 at first. Before it is freed, or behind that. */
void journal_note_copy(struct journal *journal, const struct buffer *copy, size_t *noted);
void journal_spill_forget(struct journal *journal, const struct journal_block *block); /* frees its place in the file */
