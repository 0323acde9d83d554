#include "store/journal.h"

#include "base/mem.h"
#include "base/number.h"

#include <stdio.h>

enum { BLOCK_BYTES = 256 * 1024 };

struct journal_block {
    struct journal_block *_Atomic next; /* atomic: release by who appends, acquire by readers */
    _Atomic size_t used;                /* atomic: bytes reserved; records below are whole, though maybe not ready */
    size_t capacity;
    uint64_t end_offset;                /* of the stream, when the block was closed; guarded by the journal's lock */
    unsigned reader_count;              /* guarded by the journal's lock */
    _Alignas(8) char data[];
};

/* In a block: this, the blob references, the bytes; the next record at a multiple of 8. */
struct record {
    uint64_t offset;
    uint64_t stream_size;
    size_t memory_size; /* of the whole record in the block */
    uint32_t byte_count;
    uint32_t blob_count;
    uint16_t db;
    uint16_t flags;
    _Atomic uint32_t ready; /* atomic: release by the writer, acquire by readers */
};

static struct effect_blob *record_blobs(struct record *record)
{
    return (struct effect_blob *)(void *)(record + 1);
}

static char *record_bytes(struct record *record)
{
    return (char *)(record_blobs(record) + record->blob_count);
}

static struct record *block_record(struct journal_block *block, size_t position)
{
    return (struct record *)(void *)(block->data + position);
}

void journal_init(struct journal *journal)
{
    *journal = (struct journal){.last_db = -1};
    spinlock_init(&journal->lock, LOCK_JOURNAL);
    atomic_init(&journal->on, false);
}

static void block_free(struct journal_block *block)
{
    for (size_t position = 0; position < atomic_load(&block->used);) {
        struct record *record = block_record(block, position);

        for (uint32_t i = 0; i < record->blob_count; i++)
            blob_release(&record_blobs(record)[i].blob);
        position += record->memory_size;
    }
    mem_free(block);
}

void journal_fini(struct journal *journal)
{
    assert(journal->reader_count == 0);
    for (struct journal_block *block = journal->oldest, *next; block != NULL; block = next) {
        next = atomic_load(&block->next);
        block_free(block);
    }
    journal->oldest = journal->newest = NULL;
}

static struct journal_block *block_create(size_t capacity)
{
    struct journal_block *block = mem_alloc(sizeof(*block) + capacity);

    atomic_init(&block->next, NULL);
    atomic_init(&block->used, 0);
    block->capacity = capacity;
    block->end_offset = 0;
    block->reader_count = 0;
    return block;
}

/* Blocks that nobody needs any more, from the oldest on; returned as a chain to be freed without the lock. */
static struct journal_block *take_obsolete_locked(struct journal *journal)
{
    struct journal_block *first = NULL, *last = NULL;

    while (journal->oldest != journal->newest && journal->oldest->reader_count == 0 &&
           journal->end_offset - journal->oldest->end_offset >= journal->retention_bytes) {
        struct journal_block *block = journal->oldest;

        journal->oldest = atomic_load_explicit(&block->next, memory_order_relaxed);
        if (last != NULL)
            atomic_store_explicit(&last->next, block, memory_order_relaxed);
        else
            first = block;
        last = block;
        atomic_store_explicit(&block->next, NULL, memory_order_relaxed);
    }
    return first;
}

static void free_chain(struct journal_block *block)
{
    while (block != NULL) {
        struct journal_block *next = atomic_load_explicit(&block->next, memory_order_relaxed);

        block_free(block);
        block = next;
    }
}

/* Room for a record; its bytes are the caller's to fill in, then to publish. */
static struct record *reserve_locked(struct journal *journal, size_t byte_count, uint32_t blob_count,
                                     uint64_t stream_size, unsigned db, unsigned flags)
{
    size_t size = (sizeof(struct record) + blob_count * sizeof(struct effect_blob) + byte_count + 7) & ~(size_t)7;
    struct journal_block *block = journal->newest;
    size_t used = block != NULL ? atomic_load_explicit(&block->used, memory_order_relaxed) : 0;
    struct record *record;

    if (UNLIKELY((flags & JOURNAL_AOF_ONLY) != 0))
        stream_size = 0;
    if (block == NULL || block->capacity - used < size) {
        struct journal_block *fresh = block_create(MAX(size, (size_t)BLOCK_BYTES));

        if (block != NULL) {
            block->end_offset = journal->end_offset;
            atomic_store_explicit(&block->next, fresh, memory_order_release);
        } else {
            journal->oldest = fresh;
        }
        journal->newest = block = fresh;
        used = 0;
    }
    record = block_record(block, used);
    *record = (struct record){.offset = journal->end_offset,
                              .stream_size = stream_size,
                              .memory_size = size,
                              .byte_count = (uint32_t)byte_count,
                              .blob_count = blob_count,
                              .db = (uint16_t)db,
                              .flags = (uint16_t)flags};
    memset(record_blobs(record), 0, blob_count * sizeof(struct effect_blob));
    atomic_store_explicit(&block->used, used + size, memory_order_release);
    journal->end_offset += stream_size;
    return record;
}

static void publish(struct record *record)
{
    atomic_store_explicit(&record->ready, 1, memory_order_release);
}

/* A short record that is filled in at once. */
static void append_text_locked(struct journal *journal, const char *text, size_t size, unsigned db, unsigned flags)
{
    struct record *record = reserve_locked(journal, size, 0, size, db, flags);

    memcpy(record_bytes(record), text, size);
    publish(record);
}

static void append_select_locked(struct journal *journal, unsigned db)
{
    char text[64], number[NUMBER_I64_SPACE];
    size_t digits = number_format_u64(number, db);
    int size = snprintf(text, sizeof(text), "*2\r\n$6\r\nSELECT\r\n$%zu\r\n%s\r\n", digits, number);

    if (journal->last_db == (int)db)
        return;
    append_text_locked(journal, text, (size_t)size, db, JOURNAL_SELECT);
    journal->last_db = (int)db;
}

static uint64_t stream_size(const struct effects *effects, const struct effect *effect)
{
    uint64_t size = effect->size;

    for (uint32_t i = 0; i < effect->blob_count; i++)
        size += effects->blobs[effect->first_blob + i].blob->size;
    return size;
}

static void fill(struct record *record, const struct effects *effects, const struct effect *effect)
{
    for (uint32_t i = 0; i < effect->blob_count; i++) {
        const struct effect_blob *from = &effects->blobs[effect->first_blob + i];

        record_blobs(record)[i] = (struct effect_blob){from->position, blob_acquire(from->blob)};
    }
    memcpy(record_bytes(record), effects->bytes.data + effect->offset, effect->size);
    publish(record);
}

static unsigned flag_of(unsigned hidden_from)
{
    if (LIKELY(hidden_from == 0))
        return 0;
    return hidden_from == EFFECT_REPLICAS ? JOURNAL_AOF_ONLY : JOURNAL_MESSAGE;
}

/* Who sees nothing of these effects does not see MULTI and EXEC around them; nor do replicas around a single one. */
static unsigned wrapper_flag(const struct effects *effects, bool transaction)
{
    uint32_t in_files = 0, for_replicas = 0;

    for (uint32_t i = 0; i < effects->count; i++) {
        in_files += effects->items[i].hidden_from != EFFECT_AOF;
        for_replicas += effects->items[i].hidden_from != EFFECT_REPLICAS;
    }
    if (for_replicas < (transaction ? 1 : 2))
        return JOURNAL_AOF_ONLY;
    return in_files == 0 ? JOURNAL_MESSAGE : 0;
}

uint64_t journal_append(struct journal *journal, const struct effects *effects, bool transaction)
{
    static const char multi[] = "*1\r\n$5\r\nMULTI\r\n", exec[] = "*1\r\n$4\r\nEXEC\r\n";
    struct record *few[16], **records = few;
    bool wrapped = transaction || effects->count > 1;
    unsigned wrapper = 0;
    struct journal_block *obsolete;
    uint64_t end_offset;

    if (effects->count > countof(few))
        records = mem_alloc(effects->count * sizeof(struct record *));
    spinlock_acquire(&journal->lock);
    if (wrapped) {
        append_select_locked(journal, effects->items[0].db);
        wrapper = wrapper_flag(effects, transaction);
        append_text_locked(journal, multi, sizeof(multi) - 1, effects->items[0].db, JOURNAL_BEGINS | wrapper);
    }
    for (uint32_t i = 0; i < effects->count; i++) {
        const struct effect *effect = &effects->items[i];

        append_select_locked(journal, effect->db);
        records[i] = reserve_locked(journal, effect->size, effect->blob_count, stream_size(effects, effect),
                                    effect->db, flag_of(effect->hidden_from) | (wrapped ? 0 : JOURNAL_ENDS));
    }
    if (wrapped)
        append_text_locked(journal, exec, sizeof(exec) - 1, effects->items[effects->count - 1].db,
                           JOURNAL_ENDS | wrapper);
    end_offset = journal->end_offset;
    obsolete = take_obsolete_locked(journal);
    spinlock_release(&journal->lock);

    for (uint32_t i = 0; i < effects->count; i++)
        fill(records[i], effects, &effects->items[i]);
    if (records != few)
        mem_free(records);
    free_chain(obsolete);
    return end_offset;
}

uint64_t journal_end_offset(struct journal *journal)
{
    uint64_t offset;

    spinlock_acquire(&journal->lock);
    offset = journal->end_offset;
    spinlock_release(&journal->lock);
    return offset;
}

void journal_set_retention(struct journal *journal, uint64_t bytes)
{
    spinlock_acquire(&journal->lock);
    journal->retention_bytes = bytes;
    spinlock_release(&journal->lock);
}

uint64_t journal_memory_bytes(struct journal *journal)
{
    uint64_t bytes = 0;

    spinlock_acquire(&journal->lock);
    for (struct journal_block *block = journal->oldest; block != NULL; block = atomic_load(&block->next))
        bytes += sizeof(*block) + block->capacity;
    spinlock_release(&journal->lock);
    return bytes;
}

void journal_reader_open(struct journal_reader *reader, struct journal *journal)
{
    spinlock_acquire(&journal->lock);
    if (journal->newest == NULL)
        journal->oldest = journal->newest = block_create(BLOCK_BYTES);
    reader->journal = journal;
    reader->block = journal->newest;
    reader->position = atomic_load_explicit(&journal->newest->used, memory_order_relaxed);
    reader->block->reader_count++;
    journal->reader_count++;
    journal->last_db = -1;
    atomic_store_explicit(&journal->on, true, memory_order_relaxed);
    spinlock_release(&journal->lock);
}

void journal_reader_close(struct journal_reader *reader)
{
    struct journal *journal = reader->journal;
    struct journal_block *obsolete;

    spinlock_acquire(&journal->lock);
    reader->block->reader_count--;
    if (--journal->reader_count == 0)
        atomic_store_explicit(&journal->on, false, memory_order_relaxed);
    obsolete = take_obsolete_locked(journal);
    spinlock_release(&journal->lock);
    free_chain(obsolete);
    reader->block = NULL;
}

/* From a block that was read to its end to the next one, if there is one. */
static bool reader_advance(struct journal_reader *reader)
{
    struct journal *journal = reader->journal;
    struct journal_block *next = atomic_load_explicit(&reader->block->next, memory_order_acquire), *obsolete;

    if (next == NULL)
        return false;
    spinlock_acquire(&journal->lock);
    reader->block->reader_count--;
    next->reader_count++;
    reader->block = next;
    reader->position = 0;
    obsolete = take_obsolete_locked(journal);
    spinlock_release(&journal->lock);
    free_chain(obsolete);
    return true;
}

bool journal_reader_next(struct journal_reader *reader, struct journal_view *view)
{
    struct record *record;

    while (reader->position >= atomic_load_explicit(&reader->block->used, memory_order_acquire)) {
        /* `used` may have grown before the next block was linked: look again behind the link. */
        if (atomic_load_explicit(&reader->block->next, memory_order_acquire) == NULL)
            return false;
        if (reader->position >= atomic_load_explicit(&reader->block->used, memory_order_acquire) &&
            !reader_advance(reader))
            return false;
    }
    record = block_record(reader->block, reader->position);
    if (atomic_load_explicit(&record->ready, memory_order_acquire) == 0)
        return false;
    *view = (struct journal_view){.offset = record->offset,
                                  .size = record->stream_size,
                                  .db = record->db,
                                  .flags = record->flags,
                                  .bytes = {record_bytes(record), record->byte_count},
                                  .blobs = record_blobs(record),
                                  .blob_count = record->blob_count};
    reader->position += record->memory_size;
    return true;
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
