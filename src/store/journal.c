#include "store/journal.h"

#include "base/copy.h"
#include "base/gate.h"
#include "base/number.h"
#include "base/write_ahead.h"
#include "store/journal_priv.h"

#include <stdio.h>

static_assert(offsetof(struct journal, lag_bound_offset) + sizeof(uint64_t) ==
                  offsetof(struct journal, lock) + CACHE_LINE_BYTES,
              "what an append writes, one cache line");

enum { TAIL_COPY_BYTES = 32768 }; /* of a record in the tail: longer ones refer to their large bulk strings */

void journal_init(struct journal *journal)
{
    *journal = (struct journal){.last_db = -1, .lag_bound_offset = UINT64_MAX, .spill = journal_spill_create()};
    spinlock_init(&journal->lock, LOCK_JOURNAL);
    list_init(&journal->readers);
    list_init(&journal->fetches);
    list_init(&journal->in_memory);
}

/* ------------------------------------------------------------------------------------------------------- blocks -- */

/* Nobody reads the records any more. A thread may still fill in one of them, where no reader had to wait for that. */
static void release_blobs(char *data, size_t used)
{
    for (size_t position = 0; position < used;) {
        struct record *record = record_at(data, position);

        record_wait_until_ready(record);
        for (uint32_t i = 0; i < record->blob_count; i++)
            journal_blob_release(&record_blobs(record)[i].blob);
        position += record->memory_size;
    }
}

void journal_block_free_data(char *data, size_t used)
{
    release_blobs(data, used);
    mem_free(data);
}

/* Most blocks were read and refer to nothing: their records have left the cache long ago, and are not looked at. */
static void free_records(struct journal *journal, struct journal_block *block)
{
    const size_t used = atomic_load_explicit(&block->used, memory_order_acquire);

    if (block->has_references || !block->was_read)
        release_blobs(block->data, used);
    if (block->slot == NULL)
        mem_free(block->data);
    else
        journal_tail_give_back(journal, block->tail, block->slot, block->begin_position + used);
}

void journal_free_chain(struct journal *journal, struct journal_block *block)
{
    assert(!spinlock_is_mine(&journal->lock));
    while (block != NULL) {
        struct journal_block *next = atomic_load_explicit(&block->next, memory_order_relaxed);
        const uint64_t bytes = block->memory_bytes;

        if (block->place == BLOCK_IN_FILE)
            journal_spill_forget(journal, block);
        else if (block->place == BLOCK_IN_MEMORY)
            free_records(journal, block);
        mem_free(block);
        journal_passed(journal, bytes);
        block = next;
    }
}

void journal_fini(struct journal *journal)
{
    gate_assert_no_traffic();
    assert(journal->reader_count == 0 && journal->calling == NULL);
    for (struct list_node *node; (node = list_pop_front(&journal->fetches)) != NULL;) {
        struct journal_fetch *fetch = container_of(node, struct journal_fetch, node);

        journal_fetch_free(journal, &fetch); /* its reader was closed */
    }
    for (const struct journal_block *block = journal->oldest; block != NULL;
         block = atomic_load_explicit(&block->next, memory_order_relaxed))
        journal_pass(journal, block->memory_bytes);
    journal_free_chain(journal, journal->oldest);
    journal->oldest = journal->newest = NULL;
    journal_spill_destroy(journal);
}

static void look_at_memory_locked(struct journal *journal)
{
    spinlock_assert_held(&journal->lock);
    if (journal->memory_limit_bytes != 0 && UNLIKELY(journal_memory_locked(journal) > journal->memory_limit_bytes) &&
        !atomic_load_explicit(&journal->wants_tending, memory_order_relaxed)) /* all read its cache line */
        atomic_store_explicit(&journal->wants_tending, true, memory_order_relaxed);
}

static uint64_t end_position_locked(const struct journal *journal)
{
    const struct journal_block *newest = journal->newest;

    spinlock_assert_held(&journal->lock);
    if (newest == NULL)
        return journal->free_position;
    return newest->begin_position + atomic_load_explicit(&newest->used, memory_order_relaxed);
}

/* Where the records go: into the tail, if there is room. */
static void find_room_locked(struct journal *journal, struct journal_block *block, size_t least_bytes)
{
    const size_t slot_room = BLOCK_BYTES - sizeof(struct journal_slot);

    spinlock_assert_held(&journal->lock);
    block->memory_bytes = mem_usable(block);
    if (journal->tail != NULL && least_bytes <= slot_room)
        block->slot = journal_tail_take_locked(journal->tail, block, block->begin_position, block->begin_offset);
    if (block->slot != NULL) {
        block->tail = journal->tail;
        block->data = (char *)(block->slot + 1);
        block->capacity = slot_room;
        return;
    }
    block->capacity = MAX(least_bytes, (size_t)BLOCK_BYTES);
    block->data = mem_alloc(block->capacity);
    block->memory_bytes += mem_usable(block->data);
}

struct journal_block *journal_block_add_locked(struct journal *journal, size_t least_bytes)
{
    struct journal_block *block = mem_alloc_zero(sizeof(*block)), *last = journal->newest;

    spinlock_assert_held(&journal->lock);
    block->begin_position = end_position_locked(journal);
    block->begin_offset = journal->end_offset;
    block->begin_bytes = journal_bytes_locked(journal);
    find_room_locked(journal, block, least_bytes);
    journal->memory_bytes += block->memory_bytes;
    list_node_init(&block->in_memory);
    list_push_back(&journal->in_memory, &block->in_memory);
    journal->newest = block;
    if (last != NULL) {
        last->end_bytes = block->begin_bytes;
        atomic_store_explicit(&last->next, block, memory_order_release);
    } else {
        journal->oldest = block;
    }
    look_at_memory_locked(journal);
    return block;
}

static bool is_obsolete(const struct journal *journal, const struct journal_block *block)
{
    if (block->user_count != 0)
        return false;
    if (!journal_is_on(journal)) /* later effects are not recorded: no reader can continue from here */
        return true;
    return block != journal->newest && journal_bytes_locked(journal) - block->end_bytes >= journal->retention_bytes;
}

static COLD void take_oldest_locked(struct journal *journal)
{
    struct journal_block *block = journal->oldest;

    spinlock_assert_held(&journal->lock);
    if (block->slot != NULL)
        journal_tail_forget_locked(block->tail, block->slot);
    if (block == journal->newest)
        journal->free_position = end_position_locked(journal);
    journal->oldest = atomic_load_explicit(&block->next, memory_order_relaxed);
    journal_pass(journal, block->memory_bytes);
    journal->memory_bytes -= block->memory_bytes;
    if (block->place == BLOCK_IN_MEMORY)
        list_remove(&block->in_memory);
    if (block->place == BLOCK_IN_FILE) {
        journal->spilled_count--;
        journal->spilled_bytes -= block->file_bytes;
    }
}

/* Another thread is to free blocks that nobody needs any more. */
static void look_for_obsolete_locked(struct journal *journal)
{
    spinlock_assert_held(&journal->lock);
    if (journal->oldest != NULL && UNLIKELY(is_obsolete(journal, journal->oldest)) &&
        !atomic_load_explicit(&journal->wants_tending, memory_order_relaxed))
        atomic_store_explicit(&journal->wants_tending, true, memory_order_relaxed);
}

struct journal_block *journal_take_obsolete_locked(struct journal *journal)
{
    struct journal_block *first = journal->oldest, *last = NULL;

    spinlock_assert_held(&journal->lock);
    while (journal->oldest != NULL && is_obsolete(journal, journal->oldest)) {
        last = journal->oldest;
        take_oldest_locked(journal);
    }
    if (LIKELY(last == NULL))
        return NULL;
    if (journal->oldest == NULL)
        journal->newest = NULL;
    atomic_store_explicit(&last->next, NULL, memory_order_relaxed);
    return first;
}

void journal_switch_locked(struct journal *journal)
{
    const bool on = journal->keepers != 0 || journal->reader_count != 0;

    spinlock_assert_held(&journal->lock);
    if (on == journal_is_on(journal))
        return;
    gate_assert_alone();
    atomic_store_explicit(&journal->on, on, memory_order_relaxed);
}

/* ---------------------------------------------------------------------------------------------------- appending -- */

/* Room for a record; its bytes are the caller's to fill in, then to publish. */
NO_THREAD_SAFETY_ANALYSIS /* its callers hold the lock, which they have from another function */
    static ALWAYS_INLINE struct record *
    reserve_locked(struct journal *journal, size_t byte_count, uint32_t blob_count, uint64_t stream_size, unsigned db,
                   unsigned flags)
{
    const uint64_t referenced = stream_size - byte_count;
    size_t size = record_size(byte_count, blob_count), used = 0;
    struct journal_block *block = journal->newest;
    struct record *record;

    if (UNLIKELY((flags & (JOURNAL_AOF_ONLY | JOURNAL_STAMPED)) != 0)) {
        size += record_stamp_size(flags);
        if ((flags & JOURNAL_AOF_ONLY) != 0) {
            journal->unstreamed_bytes += stream_size;
            stream_size = 0;
        }
    }
    if (block != NULL)
        used = atomic_load_explicit(&block->used, memory_order_relaxed);
    if (block == NULL || block->capacity - used < size ||
        (referenced != 0 && journal_bytes_locked(journal) - block->begin_bytes >= BLOCK_STREAM_BYTES)) {
        block = journal_block_add_locked(journal, size);
        used = 0;
    }
    record = record_at(block->data, used);
    write_ahead(record);
    *record = (struct record){.offset = journal->end_offset,
                              .stream_size = stream_size,
                              .memory_size = size,
                              .byte_count = byte_count,
                              .blob_count = blob_count,
                              .db = (uint16_t)db,
                              .flags = (uint16_t)flags};
    if (UNLIKELY(blob_count != 0)) {
        memset(record_blobs(record), 0, blob_count * sizeof(struct effect_blob));
        block->has_references = true;
    }
    atomic_store_explicit(&block->used, used + size, memory_order_release);
    if (LIKELY(block->slot != NULL))
        atomic_store_explicit(&block->slot->used, used + size, memory_order_release);
    if (UNLIKELY(block->slot == NULL || referenced != 0))
        atomic_store_explicit(&journal->unkept_position, block->begin_position + used + size, memory_order_relaxed);
    journal->end_offset += stream_size;
    return record;
}

bool journal_look_at_lag_locked(struct journal *journal, bool settled)
{
    uint64_t bound = UINT64_MAX;
    unsigned flags = 0;
    bool lags;

    spinlock_assert_held(&journal->lock);
    LIST_FOREACH(node, &journal->readers) {
        const struct journal_reader *reader = container_of(node, struct journal_reader, node);

        const uint64_t limit = settled ? reader->lag_limit_bytes / 2 : reader->lag_limit_bytes;

        if (reader->lag_limit_bytes == 0 || journal_reader_offset(reader) + limit >= bound)
            continue;
        bound = journal_reader_offset(reader) + limit;
        flags = reader->flags;
    }
    lags = journal->end_offset > bound;
    journal->lag_bound_offset = bound;
    if (lags == atomic_load_explicit(&journal->is_lagging, memory_order_relaxed) || (settled && lags))
        return false;
    atomic_store_explicit(&journal->lag_flags, flags, memory_order_relaxed);
    atomic_store_explicit(&journal->is_lagging, lags, memory_order_relaxed);
    if (journal->on_lag != NULL)
        journal->on_lag(lags);
    return !lags;
}

void journal_tell_lag_over(struct journal *journal, bool is_over)
{
    assert(!spinlock_is_mine(&journal->lock));
    if (is_over && journal->on_lag_over != NULL)
        journal->on_lag_over();
}

/* A short record that is filled in at once. */
static NOINLINE void append_text_locked(struct journal *journal, const char *text, size_t size, unsigned db,
                                        unsigned flags)
{
    struct record *record = reserve_locked(journal, size, 0, size, db, flags);

    memcpy(record_bytes(record), text, size);
    record_publish(record, journal->nonce);
}

/* For a record that replicas get; others tell their database themselves, and take nothing of the stream. */
static void append_select_locked(struct journal *journal, unsigned db)
{
    char text[64], number[NUMBER_I64_SPACE];
    size_t digits;
    int size;

    if (LIKELY(journal->last_db == (int)db))
        return;
    digits = number_format_u64(number, db);
    size = snprintf(text, sizeof(text), "*2\r\n$6\r\nSELECT\r\n$%zu\r\n%s\r\n", digits, number);
    append_text_locked(journal, text, (size_t)size, db, JOURNAL_SELECT);
    journal->last_db = (int)db;
    journal->stream_db = db;
}

static uint64_t blobs_size(const struct effect_blob *blobs, uint32_t blob_count)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < blob_count; i++)
        size += blobs[i].blob->size;
    return size;
}

/* The same for one with blobs; size: with their bytes. What is in the tail outlives the process, references do not:
 * clients would have to wait until these are written. So with a tail all but long records have copies of them. */
NO_THREAD_SAFETY_ANALYSIS /* likewise */
    static ALWAYS_INLINE struct record *
    reserve_with_blobs_locked(struct journal *journal, uint64_t size, const struct effect_blob *blobs,
                              uint32_t blob_count, unsigned db, unsigned flags)
{
    uint64_t byte_count = size;

    if (UNLIKELY(blob_count != 0) && (journal->tail == NULL || size > TAIL_COPY_BYTES))
        byte_count -= blobs_size(blobs, blob_count);
    else
        blob_count = 0;
    return reserve_locked(journal, byte_count, blob_count, size, db, flags);
}

static void set_blob(struct record *record, uint32_t index, size_t position, struct blob *blob)
{
    record_blobs(record)[index] = (struct effect_blob){position, journal_blob_acquire(blob)};
}

static ALWAYS_INLINE void fill(struct record *record, uint64_t nonce, const struct effects *effects,
                               const struct effect *effect)
{
    const struct effect_blob *blobs = effect->blob_count != 0 ? &effects->blobs.items[effect->first_blob] : NULL;
    const char *bytes = effects->bytes.data + effect->offset;
    char *to = record_bytes(record);
    size_t done = 0;

    for (uint32_t i = 0; i < record->blob_count; i++)
        set_blob(record, i, blobs[i].position, blobs[i].blob);
    for (uint32_t i = record->blob_count; i < effect->blob_count; i++) {
        memcpy(to, bytes + done, blobs[i].position - done);
        to += blobs[i].position - done;
        memcpy(to, blobs[i].blob->data, blobs[i].blob->size);
        to += blobs[i].blob->size;
        done = blobs[i].position;
    }
    memcpy(to, bytes + done, effect->size - done);
    record_publish(record, nonce);
}

static void fill_received(struct record *record, uint64_t nonce, const struct journal_received *command)
{
    const char *bytes = command->bytes.data, *end = bytes + command->bytes.size;
    char *to = record_bytes(record);
    size_t position = 0, part;

    for (uint32_t i = 0; i < record->blob_count; i++) {
        const struct effect_blob *blob = &command->blobs[i];

        part = blob->position - (size_t)(bytes - command->bytes.data);
        memcpy(to, bytes, part);
        to += part;
        position += part;
        bytes += part + blob->blob->size;
        set_blob(record, i, position, blob->blob);
    }
    memcpy(to, bytes, (size_t)(end - bytes));
    record_publish(record, nonce);
}

static unsigned flags_of(unsigned hidden_from)
{
    if (LIKELY(hidden_from == 0))
        return 0;
    return ((hidden_from & EFFECT_AOF) != 0 ? JOURNAL_MESSAGE : 0) |
           ((hidden_from & EFFECT_REPLICAS) != 0 ? JOURNAL_AOF_ONLY : 0) |
           ((hidden_from & EFFECT_PEERS) != 0 ? JOURNAL_NOT_FOR_PEERS : 0);
}

enum { NOT_WRAPPED = JOURNAL_MESSAGE | JOURNAL_AOF_ONLY | JOURNAL_NOT_FOR_PEERS };

/* A reader that skips these effects skips the MULTI and EXEC around them, too; so do replicas and peers around a single
 * effect, and files where all others are operations. NOT_WRAPPED: all skip them. */
static unsigned wrapper_flags(const struct effect *effects, uint32_t count, bool transaction)
{
    const uint32_t least = transaction ? 1 : 2;
    uint32_t in_files = 0, for_replicas = 0, for_peers = 0, operations = 0;

    for (uint32_t i = 0; i < count; i++) {
        in_files += (effects[i].hidden_from & EFFECT_AOF) == 0;
        for_replicas += (effects[i].hidden_from & EFFECT_REPLICAS) == 0;
        for_peers += (effects[i].hidden_from & EFFECT_PEERS) == 0;
        operations += effects[i].hidden_from == EFFECT_PLAIN;
    }
    return (for_replicas < least ? JOURNAL_AOF_ONLY : 0) |
           (in_files == 0 || (in_files < least && in_files + operations == count) ? JOURNAL_MESSAGE : 0) |
           (for_peers < least ? JOURNAL_NOT_FOR_PEERS : 0);
}

/* Files have no EXEC behind it. */
static bool is_alone(unsigned flags, unsigned wrapper)
{
    return wrapper == NOT_WRAPPED || ((wrapper & JOURNAL_MESSAGE) != 0 && (flags & JOURNAL_MESSAGE) == 0);
}

static bool all_are_local(const struct effect *effects, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if ((effects[i].hidden_from & EFFECT_REPLICAS) == 0)
            return false;
    }
    return true;
}

static bool is_for_peers(const struct effect *effect)
{
    return (effect->hidden_from & EFFECT_PEERS) == 0;
}

static bool has_effect_for_peers(const struct effect *group, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (is_for_peers(&group[i]))
            return true;
    }
    return false;
}

/* The stamp of this origin that is next. Stamps are taken only for what peers get. */
static struct effect_stamp take_stamp_locked(struct journal *journal, const struct effect *group, uint32_t count,
                                             int64_t wall_ms)
{
    struct effect_stamp taken = {.wall_ms = wall_ms, .previous = journal->previous_stamp};

    spinlock_assert_held(&journal->lock);
    if (has_effect_for_peers(group, count))
        taken.stamp = journal->previous_stamp = stamp_clock_take(&journal->clock, wall_ms, 1);
    return taken;
}

/* One stamp for the group: the next of this origin, or that of a peer. */
static void stamp_group_locked(struct journal *journal, const struct effect *group, uint32_t count,
                               struct effect_stamp *stamps)
{
    struct effect_stamp one = stamps[0];

    spinlock_assert_held(&journal->lock);
    if (UNLIKELY((group[0].flags & EFFECT_CORRECTS) != 0)) {
        assert(count == 1 && one.origin != 0 && !is_for_peers(group));
        return;
    }
    if (LIKELY(one.origin == 0)) {
        one = take_stamp_locked(journal, group, count, one.wall_ms);
    } else {
        assert(one.origin != journal->origin && one.previous < one.stamp);
        stamp_clock_raise(&journal->clock, one.stamp);
    }
    for (uint32_t i = 0; i < count; i++) {
        one.key_position = stamps[i].key_position;
        stamps[i] = one;
    }
}

/* The same for a group of one effect, as most are: in place. */
NO_THREAD_SAFETY_ANALYSIS /* its caller holds the lock */
    static ALWAYS_INLINE void
    stamp_one_locked(struct journal *journal, const struct effect *effect, struct effect_stamp *stamp)
{
    if (UNLIKELY((effect->flags & EFFECT_CORRECTS) != 0)) {
        stamp_group_locked(journal, effect, 1, stamp);
    } else if (stamp->origin == 0) {
        stamp->previous = journal->previous_stamp;
        stamp->mvcc = stamp->stamp = 0;
        if (is_for_peers(effect))
            stamp->stamp = journal->previous_stamp = stamp_clock_take(&journal->clock, stamp->wall_ms, 1);
    } else {
        assert(stamp->origin != journal->origin && stamp->previous < stamp->stamp);
        stamp_clock_raise(&journal->clock, stamp->stamp);
    }
}

/* Of a record with a stamp. `ends`: it is the last one with it. */
static unsigned stamped_flags(const struct effect *effect, bool ends)
{
    static_assert(JOURNAL_OVERWRITES == EFFECT_OVERWRITES << 8 && JOURNAL_FLUSH == EFFECT_FLUSH << 8, "one shift");
    static_assert((EFFECT_KEY_MOST + 1) << JOURNAL_KEY_SHIFT == JOURNAL_CORRECTS, "indexes fit");
    return JOURNAL_STAMPED | (ends ? JOURNAL_ENTRY_ENDS : 0) |
           (effect->flags & (unsigned)(EFFECT_OVERWRITES | EFFECT_EVICTS | EFFECT_FLUSH)) << 8 |
           (unsigned)effect->key_index << JOURNAL_KEY_SHIFT |
           ((effect->flags & EFFECT_CORRECTS) != 0 ? JOURNAL_CORRECTS : 0);
}

static uint64_t position_locked(const struct journal *journal, const struct record *newest)
{
    spinlock_assert_held(&journal->lock);
    return journal->newest->begin_position + (uint64_t)((const char *)newest - journal->newest->data);
}

static void fill_stamp(struct record *record, uint64_t own_origin, const struct effect_stamp *stamp)
{
    struct journal_stamp *part = record_stamp(record);

    if (part != NULL)
        *part = (struct journal_stamp){.origin = stamp->origin != 0 ? stamp->origin : own_origin,
                                       .stamp = stamp->stamp,
                                       .previous = stamp->previous,
                                       .wall_ms = stamp->wall_ms,
                                       .key_position = stamp->key_position,
                                       .mvcc = stamp->mvcc};
}

static const char multi[] = "*1\r\n$5\r\nMULTI\r\n", exec[] = "*1\r\n$4\r\nEXEC\r\n";
enum { FOR_FILES_ALONE = JOURNAL_AOF_ONLY | JOURNAL_NOT_FOR_PEERS };

/* Room for the effects of one command; MULTI and EXEC are there at once. `whole`: in files a transaction is open. */
NO_THREAD_SAFETY_ANALYSIS /* likewise */
    static ALWAYS_INLINE void
    reserve_group_locked(struct journal *journal, const struct effects *effects, uint32_t first, uint32_t count,
                         bool transaction, bool whole, struct record **records, struct effect_stamp *stamps)
{
    const struct effect *group = &effects->items[first];
    const unsigned wrapper = (transaction || count > 1 ? wrapper_flags(group, count, transaction) : NOT_WRAPPED) |
                             (whole ? JOURNAL_MESSAGE : 0);
    const bool wrapped = wrapper != NOT_WRAPPED;

    if (wrapped) {
        if (!all_are_local(group, count))
            append_select_locked(journal, group[0].db);
        append_text_locked(journal, multi, sizeof(multi) - 1, group[0].db, JOURNAL_BEGINS | wrapper);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct effect *effect = &group[i];
        const struct effect_blob *blobs = effect->blob_count != 0 ? &effects->blobs.items[effect->first_blob] : NULL;
        unsigned flags = flags_of(effect->hidden_from);

        flags |= !whole && is_alone(flags, wrapper) ? JOURNAL_ENDS : 0;
        if (stamps != NULL && stamps[i].stamp != 0)
            flags |= stamped_flags(effect, is_for_peers(effect) && !has_effect_for_peers(effect + 1, count - i - 1));
        if ((effect->hidden_from & EFFECT_REPLICAS) == 0)
            append_select_locked(journal, effect->db);
        records[i] = reserve_with_blobs_locked(journal, effect->size + blobs_size(blobs, effect->blob_count), blobs,
                                               effect->blob_count, effect->db, flags);
        if (stamps != NULL)
            stamps[i].position = position_locked(journal, records[i]);
    }
    if (wrapped)
        append_text_locked(journal, exec, sizeof(exec) - 1, group[count - 1].db, JOURNAL_ENDS | wrapper);
}

/* What is to be looked at when the journal has become longer. */
static void look_at_length_locked(struct journal *journal)
{
    spinlock_assert_held(&journal->lock);
    look_for_obsolete_locked(journal);
    look_at_memory_locked(journal); /* keys may have gone whose values it has */
    if (UNLIKELY(journal->end_offset > journal->lag_bound_offset) &&
        !atomic_load_explicit(&journal->is_lagging, memory_order_relaxed))
        (void)journal_look_at_lag_locked(journal, false);
}

enum { FETCHED_TOGETHER_BYTES = 2048 };

/* Fetches the cache lines that these effects will take, all at once. What write_ahead has fetched is there if this
 * thread was the last one to append. Else the lines are with the thread that was, and each store would wait for one of
 * them, with the lock held. */
static ALWAYS_INLINE void fetch_room_locked(const struct journal *journal, const struct effects *effects)
{
    const struct journal_block *block = journal->newest;
    const size_t bytes = MIN(effects->bytes.size + effects->count * sizeof(struct record),
                             (size_t)FETCHED_TOGETHER_BYTES);
    const char *at;

    if (UNLIKELY(block == NULL))
        return;
    at = block->data + atomic_load_explicit(&block->used, memory_order_relaxed);
    for (size_t line = 0; line < bytes; line += CACHE_LINE_BYTES)
        __builtin_prefetch(at + line, 1); /* where that is no memory nothing happens */
}

/* `stamps` NULL: without. It is inlined with all that it calls for each effect: as functions these cost 45 instructions
 * an effect where nothing is stamped. */
static ALWAYS_INLINE uint64_t append(struct journal *journal, const struct effects *effects, bool transaction,
                                     bool whole, struct effect_stamp *stamps)
{
    struct record *few[64], **records = few;
    uint64_t end_offset, nonce, origin = 0;

    if (effects->count > countof(few))
        records = mem_alloc(effects->count * sizeof(struct record *));
    spinlock_acquire(&journal->lock);
    fetch_room_locked(journal, effects);
    if (whole)
        append_text_locked(journal, multi, sizeof(multi) - 1, effects->items[0].db, JOURNAL_BEGINS | FOR_FILES_ALONE);
    for (uint32_t first = 0, end; first < effects->count; first = end) {
        for (end = first + 1; end < effects->count && !effects->items[end - 1].ends_group;)
            end++;
        if (stamps != NULL && LIKELY(end == first + 1)) {
            stamp_one_locked(journal, &effects->items[first], &stamps[first]);
            reserve_group_locked(journal, effects, first, 1, transaction, whole, &records[first], &stamps[first]);
            continue;
        }
        if (stamps != NULL)
            stamp_group_locked(journal, &effects->items[first], end - first, &stamps[first]);
        reserve_group_locked(journal, effects, first, end - first, transaction, whole, &records[first],
                             stamps != NULL ? &stamps[first] : NULL);
    }
    if (whole)
        append_text_locked(journal, exec, sizeof(exec) - 1, effects->items[effects->count - 1].db,
                           JOURNAL_ENDS | FOR_FILES_ALONE);
    if (stamps != NULL)
        origin = journal->origin;
    end_offset = journal->end_offset;
    nonce = journal->nonce;
    look_at_length_locked(journal);
    spinlock_release(&journal->lock);

    for (uint32_t i = 0; i < effects->count; i++) {
        if (stamps != NULL) {
            fill_stamp(records[i], origin, &stamps[i]);
            if (!is_for_peers(&effects->items[i]))
                stamps[i].stamp = 0;
        }
        fill(records[i], nonce, effects, &effects->items[i]);
    }
    if (records != few)
        mem_free(records);
    return end_offset;
}

uint64_t journal_append(struct journal *journal, const struct effects *effects, bool transaction)
{
    assert(effects->count != 0);
    return append(journal, effects, transaction, false, NULL);
}

uint64_t journal_append_stamped(struct journal *journal, const struct effects *effects, bool transaction,
                                struct effect_stamp *stamps)
{
    assert(effects->count != 0);
    assert(journal_is_stamping(journal));
    return append(journal, effects, transaction, false, stamps);
}

static ALWAYS_INLINE void fill_single(struct record *record, uint64_t nonce, const struct effects *effects,
                                      const struct effect *effect, const struct journal_stamp *stamp)
{
    struct journal_stamp *its = (struct journal_stamp *)(void *)((char *)record + record->memory_size - sizeof(*its));

    copy_word((char *)record_blobs(record), effects->bytes.data + effect->offset, effect->size);
    its->origin = stamp->origin;
    its->stamp = stamp->stamp;
    its->previous = stamp->previous;
    its->wall_ms = stamp->wall_ms;
    its->mvcc = stamp->mvcc;
    its->key_position = stamp->key_position;
    record_publish(record, nonce);
}

uint64_t journal_append_singles(struct journal *journal, const struct effects *effects, struct journal_single *singles,
                                uint64_t *previous)
{
    struct record *few[64], **records = few;
    uint64_t end_offset, nonce, origin, last;

    assert(effects->count != 0 && journal_is_stamping(journal));
    if (UNLIKELY(effects->count > countof(few)))
        records = mem_alloc(effects->count * sizeof(struct record *));
    spinlock_acquire(&journal->lock);
    fetch_room_locked(journal, effects);
    *previous = last = journal->previous_stamp;
    for (uint32_t i = 0; i < effects->count; i++) {
        const struct effect *effect = &effects->items[i];

        debug_assert(effect->hidden_from == 0 && effect->blob_count == 0 && (effect->flags & EFFECT_EVICTS) == 0);
        append_select_locked(journal, effect->db);
        last = stamp_clock_take(&journal->clock, singles[i].wall_ms, 1);
        singles[i].stamp = last;
        records[i] = reserve_locked(journal, effect->size, 0, effect->size, effect->db,
                                    JOURNAL_ENDS | stamped_flags(effect, true));
    }
    journal->previous_stamp = last;
    origin = journal->origin;
    end_offset = journal->end_offset;
    nonce = journal->nonce;
    look_at_length_locked(journal);
    spinlock_release(&journal->lock);

    last = *previous;
    for (uint32_t i = 0; i < effects->count; i++) {
        const struct journal_stamp stamp = {.origin = origin,
                                            .stamp = singles[i].stamp,
                                            .previous = last,
                                            .wall_ms = singles[i].wall_ms,
                                            .key_position = JOURNAL_NOWHERE};

        last = singles[i].stamp;
        fill_single(records[i], nonce, effects, &effects->items[i], &stamp);
    }
    if (UNLIKELY(records != few))
        mem_free(records);
    return end_offset;
}

uint64_t journal_append_whole(struct journal *journal, const struct effects *effects, struct effect_stamp *stamps)
{
    assert(effects->count != 0);
    assert(journal_is_stamping(journal));
    return append(journal, effects, false, true, stamps);
}

uint64_t journal_append_received(struct journal *journal, const struct journal_received *commands, size_t count)
{
    struct record *few[64], **records = few;
    uint64_t end_offset, nonce;

    assert(count != 0);
    if (count > countof(few))
        records = mem_alloc(count * sizeof(struct record *));
    spinlock_acquire(&journal->lock);
    for (size_t i = 0; i < count; i++) {
        const struct journal_received *command = &commands[i];

        debug_assert((command->flags & JOURNAL_STAMPED) == 0);
        records[i] = reserve_with_blobs_locked(journal, command->bytes.size, command->blobs, command->blob_count,
                                               command->db, command->flags);
    }
    journal->last_db = (int)commands[count - 1].db;
    journal->stream_db = commands[count - 1].db;
    end_offset = journal->end_offset;
    nonce = journal->nonce;
    look_at_length_locked(journal);
    spinlock_release(&journal->lock);

    for (size_t i = 0; i < count; i++)
        fill_received(records[i], nonce, &commands[i]);
    if (records != few)
        mem_free(records);
    return end_offset;
}

void journal_append_message(struct journal *journal, struct slice bytes)
{
    spinlock_acquire(&journal->lock);
    append_text_locked(journal, bytes.data, bytes.size, (unsigned)MAX(journal->last_db, 0),
                       JOURNAL_MESSAGE | JOURNAL_ENDS);
    look_at_length_locked(journal);
    spinlock_release(&journal->lock);
}

/* ----------------------------------------------------------------------------------------------------- settings -- */

bool journal_has_plain(struct journal *journal)
{
    bool has;

    spinlock_acquire(&journal->lock);
    has = (journal->keepers & JOURNAL_KEPT_FOR_REPLICAS) != 0;
    LIST_FOREACH(node, &journal->readers) {
        const struct journal_reader *reader = container_of(node, struct journal_reader, node);

        has = has || ((reader->flags & JOURNAL_READER_PLACE) == 0 && (reader->skips & JOURNAL_NOT_FOR_PEERS) == 0);
    }
    spinlock_release(&journal->lock);
    return has;
}

void journal_set_peers(struct journal *journal, bool has_peers)
{
    gate_assert_alone();
    atomic_store_explicit(&journal->has_peers, has_peers, memory_order_relaxed);
}

unsigned journal_stream_db(struct journal *journal)
{
    unsigned db;

    spinlock_acquire(&journal->lock);
    db = journal->stream_db;
    spinlock_release(&journal->lock);
    return db;
}

void journal_set_stream_db(struct journal *journal, unsigned db)
{
    gate_assert_alone();
    spinlock_acquire(&journal->lock);
    journal->stream_db = db;
    journal->last_db = -1;
    spinlock_release(&journal->lock);
}

uint64_t journal_end_offset(struct journal *journal)
{
    uint64_t offset;

    spinlock_acquire(&journal->lock);
    offset = journal->end_offset;
    spinlock_release(&journal->lock);
    return offset;
}

uint64_t journal_end_bytes(struct journal *journal)
{
    uint64_t bytes;

    spinlock_acquire(&journal->lock);
    bytes = journal_bytes_locked(journal);
    spinlock_release(&journal->lock);
    return bytes;
}

uint64_t journal_end_position(struct journal *journal)
{
    uint64_t position;

    spinlock_acquire(&journal->lock);
    position = end_position_locked(journal);
    spinlock_release(&journal->lock);
    return position;
}

void journal_set_stamping(struct journal *journal, uint64_t origin, uint64_t above)
{
    gate_assert_alone();
    spinlock_acquire(&journal->lock);
    journal->origin = origin;
    journal->previous_stamp = 0;
    if (above != 0)
        stamp_clock_raise(&journal->clock, above);
    atomic_store_explicit(&journal->stamps, origin != 0, memory_order_relaxed);
    spinlock_release(&journal->lock);
}

void journal_hear_stamp(struct journal *journal, uint64_t stamp)
{
    spinlock_acquire(&journal->lock);
    stamp_clock_raise(&journal->clock, stamp);
    spinlock_release(&journal->lock);
}

uint64_t journal_clock(struct journal *journal)
{
    uint64_t clock;

    spinlock_acquire(&journal->lock);
    clock = journal->clock.last;
    spinlock_release(&journal->lock);
    return clock;
}

uint64_t journal_promise_stamp(struct journal *journal, int64_t wall_ms, uint64_t *position, uint64_t *last)
{
    uint64_t promised;

    spinlock_acquire(&journal->lock);
    promised = stamp_clock_promise(&journal->clock, wall_ms);
    *position = end_position_locked(journal);
    *last = journal->previous_stamp;
    spinlock_release(&journal->lock);
    return promised;
}

uint64_t journal_last_stamp(struct journal *journal)
{
    uint64_t stamp;

    spinlock_acquire(&journal->lock);
    stamp = journal->previous_stamp;
    spinlock_release(&journal->lock);
    return stamp;
}

void journal_select_anew(struct journal *journal)
{
    gate_assert_alone();
    spinlock_acquire(&journal->lock);
    journal->last_db = -1;
    spinlock_release(&journal->lock);
}

void journal_keep(struct journal *journal, enum journal_keeper keeper, bool is_kept)
{
    struct journal_block *obsolete;

    gate_assert_alone();
    spinlock_acquire(&journal->lock);
    journal->keepers = is_kept ? journal->keepers | (unsigned)keeper : journal->keepers & ~(unsigned)keeper;
    if (is_kept && journal->newest == NULL)
        (void)journal_block_add_locked(journal, 0);
    journal_switch_locked(journal);
    obsolete = journal_take_obsolete_locked(journal);
    spinlock_release(&journal->lock);
    journal_free_chain(journal, obsolete);
}

void journal_set_retention(struct journal *journal, uint64_t bytes)
{
    spinlock_acquire(&journal->lock);
    journal->retention_bytes = bytes;
    look_for_obsolete_locked(journal);
    spinlock_release(&journal->lock);
}

void journal_set_memory_limit(struct journal *journal, uint64_t bytes)
{
    spinlock_acquire(&journal->lock);
    journal->memory_limit_bytes = bytes;
    look_at_memory_locked(journal);
    spinlock_release(&journal->lock);
}

void journal_set_spill_limit(struct journal *journal, uint64_t bytes, uint64_t reserve_bytes)
{
    spinlock_acquire(&journal->lock);
    journal->spill_limit_bytes = bytes;
    journal->spill_reserve_bytes = reserve_bytes;
    spinlock_release(&journal->lock);
}

void journal_stats(struct journal *journal, struct journal_stats *stats)
{
    spinlock_acquire(&journal->lock);
    *stats = (struct journal_stats){
        .begin_offset = journal->oldest != NULL ? journal->oldest->begin_offset : journal->end_offset,
        .end_offset = journal->end_offset,
        .memory_bytes = journal_memory_locked(journal),
        .spilled_bytes = journal->spilled_bytes,
        .spilled_total_bytes = journal->spilled_total_bytes,
    };
    spinlock_release(&journal->lock);
}

uint64_t journal_memory_bytes(struct journal *journal)
{
    struct journal_stats stats;

    if (!journal_is_on(journal)) /* no need to take turns: there are no blocks, or some that leave just now */
        return journal_blob_bytes();
    journal_stats(journal, &stats);
    return stats.memory_bytes;
}
