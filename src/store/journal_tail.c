#include "store/journal_tail.h"

#include "base/file.h"
#include "base/gate.h"
#include "base/random.h"
#include "store/journal_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum {
    HEAD_BYTES = 4096,
    SLOT_BYTES = BLOCK_BYTES,
    SLOTS_FIRST = 16,
    SLOTS_FEW = 3,    /* so few are ready: more are needed */
    SLOTS_MOST = 256, /* 64 MiB: for effects that arrive while a disk syncs */
    BOOT_BYTES = 40
};

#define MAP_BYTES (HEAD_BYTES + (size_t)SLOTS_MOST * SLOT_BYTES)

static const char magic[8] = "jtail 1";
static const char boot_path[] = "/proc/sys/kernel/random/boot_id";

struct place_copy {
    uint64_t serial; /* the higher one counts */
    struct journal_place place;
    uint64_t check; /* of both */
    char padding[16];
};

struct tail_head {
    char magic[8];
    uint64_t nonce;
    uint32_t record_bytes, slot_bytes; /* of the program that wrote it */
    char boot[BOOT_BYTES];
    struct place_copy places[2];
};

static_assert(sizeof(struct place_copy) == 64, "a cache line");
static_assert(sizeof(struct tail_head) <= HEAD_BYTES, "one page");
static_assert(sizeof(struct journal_slot) == 64, "records are aligned");

enum slot_state {
    SLOT_READY, /* in `ready` */
    SLOT_TAKEN, /* a block has it */
    SLOT_LEFT,  /* the block has gone; until the place is behind it */
    SLOT_BEING_MADE_READY
};

/* Guarded by the journal's lock where nothing else is said. */
struct journal_tail {
    char *map;                   /* const */
    uint64_t nonce;              /* const */
    uint64_t serial, place;      /* the writer's: of the place, and its position */
    struct file *file;           /* the writer's */
    bool could_not_grow;         /* the writer's: it has been told */
    _Atomic uint32_t slot_count; /* atomic, relaxed: the writer's, for figures */
    _Atomic uint64_t misses;     /* atomic, relaxed: blocks for which no slot was ready */
    uint32_t ready_count, taken_count, left_count;
    bool is_free;               /* journal_tail_destroy was called: it goes with its last block */
    uint16_t ready[SLOTS_MOST]; /* a stack: the slot used last is in the caches */
    struct {
        enum slot_state state;
        struct journal_block *block; /* NULL: no block that could be moved */
        uint64_t end_position;       /* SLOT_LEFT */
    } slots[SLOTS_MOST];
};

static struct journal_slot *slot_at(char *map, uint32_t index)
{
    return (struct journal_slot *)(void *)(map + HEAD_BYTES + (size_t)index * SLOT_BYTES);
}

static uint32_t slot_index(const struct journal_tail *tail, const struct journal_slot *slot)
{
    return (uint32_t)(((size_t)((const char *)slot - tail->map) - HEAD_BYTES) / SLOT_BYTES);
}

static uint64_t check_of(const struct place_copy *copy, uint64_t nonce)
{
    return check_bytes((const char *)copy, offsetof(struct place_copy, check), nonce);
}

/* Which start of the machine this is; empty: nobody says. */
static void read_boot(char boot[BOOT_BYTES])
{
    char *text = NULL;
    size_t size = 0;

    memset(boot, 0, BOOT_BYTES);
    if (file_load(boot_path, 4096, &text, &size) == STATUS_OK)
        memcpy(boot, text, MIN(size, (size_t)BOOT_BYTES - 1));
    mem_free(text);
}

/* ------------------------------------------------------------------------------------------------------- growing -- */

/* Its pages become writable; false: there is no room for them after all. Older kernels do not know it: EINVAL. */
static bool make_writable(void *start, size_t size)
{
    return madvise(start, size, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
}

static bool add_slots(struct journal_tail *tail, uint32_t from, uint32_t to)
{
    const size_t at = from == 0 ? 0 : HEAD_BYTES + (size_t)from * SLOT_BYTES;
    const size_t end = HEAD_BYTES + (size_t)to * SLOT_BYTES;
    int error = posix_fallocate(file_descriptor(tail->file), (off_t)at, (off_t)(end - at));

    if (error != 0) {
        errno = error;
        return false;
    }
    return make_writable(tail->map + at, end - at);
}

static void push_ready_locked(struct journal_tail *tail, uint32_t index)
{
    assert(tail->ready_count < SLOTS_MOST);
    tail->slots[index].state = SLOT_READY;
    tail->slots[index].block = NULL;
    tail->ready[tail->ready_count++] = (uint16_t)index;
}

static bool grow(struct journal *journal, struct journal_tail *tail)
{
    const uint32_t now = atomic_load_explicit(&tail->slot_count, memory_order_relaxed);
    const uint32_t then = MIN(now * 2, (uint32_t)SLOTS_MOST);

    if (!add_slots(tail, now, then))
        return false;
    spinlock_acquire(&journal->lock);
    for (uint32_t i = now; i < then; i++)
        push_ready_locked(tail, i);
    spinlock_release(&journal->lock);
    atomic_store_explicit(&tail->slot_count, then, memory_order_relaxed);
    return true;
}

static bool map_file(struct journal_tail *tail)
{
    tail->map = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file_descriptor(tail->file), 0);
    if (tail->map == MAP_FAILED) {
        tail->map = NULL;
        return false;
    }
    (void)madvise(tail->map, MAP_BYTES, MADV_DONTFORK); /* a child has nothing to do here */
    return add_slots(tail, 0, SLOTS_FIRST);
}

static void write_head(struct journal_tail *tail)
{
    struct tail_head *head = (struct tail_head *)(void *)tail->map;

    head->nonce = tail->nonce;
    head->record_bytes = sizeof(struct record);
    head->slot_bytes = SLOT_BYTES;
    read_boot(head->boot);
    memcpy(head->magic, magic, sizeof(magic));
}

static void destroy(struct journal_tail *tail)
{
    if (tail->map != NULL)
        (void)munmap(tail->map, MAP_BYTES);
    file_close(&tail->file);
    mem_free(tail);
}

enum status journal_tail_create(struct journal_tail **tail, const char *path)
{
    struct journal_tail *made = mem_alloc_zero(sizeof(*made));
    enum status status = file_remove(path);
    int error;

    *tail = NULL;
    if (status == STATUS_OK || status == STATUS_NOT_FOUND)
        status = file_open(&made->file, path, FILE_REPLACE);
    if (status == STATUS_OK && !map_file(made))
        status = status_from_errno(errno);
    if (status != STATUS_OK) {
        error = errno;
        if (made->file != NULL)
            (void)!file_remove(path);
        destroy(made);
        errno = error;
        return status;
    }
    random_secret(&made->nonce, sizeof(made->nonce));
    made->nonce |= 1;
    write_head(made);
    for (uint32_t i = SLOTS_FIRST; i-- != 0;)
        push_ready_locked(made, i);
    atomic_store_explicit(&made->slot_count, SLOTS_FIRST, memory_order_relaxed);
    *tail = made;
    return STATUS_OK;
}

/* -------------------------------------------------------------------------------------------------------- blocks -- */

struct journal_slot *journal_tail_take_locked(struct journal_tail *tail, struct journal_block *block, uint64_t position,
                                              uint64_t offset)
{
    struct journal_slot *slot;
    uint32_t index;

    if (tail->ready_count == 0) {
        atomic_fetch_add_explicit(&tail->misses, 1, memory_order_relaxed);
        return NULL;
    }
    index = tail->ready[--tail->ready_count];
    tail->slots[index].state = SLOT_TAKEN;
    tail->slots[index].block = block;
    tail->taken_count++;
    slot = slot_at(tail->map, index);
    slot->nonce = 0; /* while it changes it is nobody's */
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&slot->used, 0, memory_order_release);
    slot->begin_position = position;
    slot->begin_offset = offset;
    atomic_thread_fence(memory_order_release);
    slot->nonce = tail->nonce;
    return slot;
}

void journal_tail_forget_locked(struct journal_tail *tail, const struct journal_slot *slot)
{
    tail->slots[slot_index(tail, slot)].block = NULL;
}

static void set_left_locked(struct journal_tail *tail, uint32_t index, uint64_t end_position)
{
    assert(tail->slots[index].state == SLOT_TAKEN || tail->slots[index].state == SLOT_BEING_MADE_READY);
    tail->slots[index].state = SLOT_LEFT;
    tail->slots[index].block = NULL;
    tail->slots[index].end_position = end_position;
    tail->left_count++;
}

/* True: it was the last one of a tail that is to be destroyed. */
static bool give_back_locked(struct journal_tail *tail, const struct journal_slot *slot, uint64_t end_position)
{
    uint32_t index = slot_index(tail, slot);

    assert(tail->slots[index].state == SLOT_TAKEN);
    set_left_locked(tail, index, end_position);
    tail->taken_count--;
    return tail->is_free && tail->taken_count == 0;
}

void journal_tail_give_back(struct journal *journal, struct journal_tail *tail, const struct journal_slot *slot,
                            uint64_t end_position)
{
    bool is_last;

    assert(!spinlock_is_mine(&journal->lock));
    spinlock_acquire(&journal->lock);
    is_last = give_back_locked(tail, slot, end_position);
    spinlock_release(&journal->lock);
    if (is_last)
        destroy(tail);
}

void journal_tail_enter(struct journal *journal, struct journal_tail *tail)
{
    gate_assert_alone();
    spinlock_acquire(&journal->lock);
    assert(journal->tail == NULL);
    journal->tail = tail;
    journal->nonce = tail->nonce;
    if (journal->newest != NULL)
        (void)journal_block_add_locked(journal, 0);
    spinlock_release(&journal->lock);
}

void journal_tail_leave(struct journal *journal)
{
    bool is_in_tail;

    gate_assert_alone();
    spinlock_acquire(&journal->lock);
    is_in_tail = journal->tail != NULL && journal->newest != NULL;
    journal->tail = NULL;
    journal->nonce = 0;
    if (is_in_tail)
        (void)journal_block_add_locked(journal, 0);
    spinlock_release(&journal->lock);
}

void journal_tail_destroy(struct journal *journal, struct journal_tail **tail)
{
    struct journal_tail *taken = *tail;
    bool is_last;

    gate_assert_alone();
    *tail = NULL;
    if (taken == NULL)
        return;
    spinlock_acquire(&journal->lock);
    assert(journal->tail != taken);
    taken->is_free = true;
    is_last = taken->taken_count == 0;
    spinlock_release(&journal->lock);
    if (is_last)
        destroy(taken);
}

/* --------------------------------------------------------------------------------------------- the writer's turn -- */

void journal_tail_set_place(struct journal_tail *tail, const struct journal_place *place)
{
    struct tail_head *head = (struct tail_head *)(void *)tail->map;
    struct place_copy *copy = &head->places[tail->serial % 2], now = {.serial = tail->serial + 1, .place = *place};

    spinlock_assert_none_held();
    assert(place->position >= tail->place);
    now.check = check_of(&now, tail->nonce);
    *copy = now;
    /* The other one is touched only by the next place, so this one is whole by then. */
    atomic_thread_fence(memory_order_release);
    tail->serial++;
    tail->place = place->position;
}

/* A block that is written but stays for others: it moves to memory of the process, so that its slot is free. */
static void move_out(struct journal *journal, struct journal_tail *tail, struct journal_block *block)
{
    const size_t used = atomic_load_explicit(&block->used, memory_order_acquire);
    char *data = mem_alloc(MAX(used, 1));

    memcpy(data, block->data, used);
    spinlock_acquire(&journal->lock);
    if (--block->user_count == 0) {
        const struct journal_slot *slot = block->slot;

        journal->memory_bytes += mem_usable(data);
        block->memory_bytes += mem_usable(data);
        block->data = data;
        block->slot = NULL;
        data = NULL;
        (void)give_back_locked(tail, slot, block->begin_position + used); /* never the last: the tail is in use */
    }
    spinlock_release(&journal->lock);
    mem_free(data); /* somebody has come into the block: another time */
}

/* A slot with a block that is written, and that nobody is in. */
static struct journal_block *find_moveable_locked(const struct journal *journal, const struct journal_tail *tail,
                                                  uint32_t index)
{
    struct journal_block *block = tail->slots[index].block;

    if (block == NULL || block == journal->newest || block->user_count != 0 ||
        block->begin_position + atomic_load_explicit(&block->used, memory_order_relaxed) > tail->place)
        return NULL;
    block->user_count++;
    return block;
}

static void move_all_out(struct journal *journal, struct journal_tail *tail, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct journal_block *block;

        spinlock_acquire(&journal->lock);
        block = find_moveable_locked(journal, tail, i);
        spinlock_release(&journal->lock);
        if (block != NULL)
            move_out(journal, tail, block);
    }
}

/* Takes slots that nobody needs any more, up to `most` of them. */
static uint32_t take_passed(struct journal *journal, struct journal_tail *tail, uint32_t count, uint16_t *passed,
                            uint32_t most)
{
    uint32_t found = 0;

    spinlock_acquire(&journal->lock);
    for (uint32_t i = 0; i < count && found < most && tail->left_count != 0; i++) {
        if (tail->slots[i].state != SLOT_LEFT || tail->slots[i].end_position > tail->place)
            continue;
        tail->slots[i].state = SLOT_BEING_MADE_READY;
        tail->left_count--;
        passed[found++] = (uint16_t)i;
    }
    spinlock_release(&journal->lock);
    return found;
}

static void make_ready(struct journal *journal, struct journal_tail *tail, uint32_t index)
{
    bool is_good = make_writable(slot_at(tail->map, index), SLOT_BYTES);

    spinlock_acquire(&journal->lock);
    if (is_good)
        push_ready_locked(tail, index);
    else
        set_left_locked(tail, index, 0); /* tried again */
    spinlock_release(&journal->lock);
}

bool journal_tail_look(struct journal *journal, struct journal_tail *tail)
{
    const uint32_t count = atomic_load_explicit(&tail->slot_count, memory_order_relaxed);
    uint16_t passed[16];
    uint32_t passed_count = take_passed(journal, tail, count, passed, countof(passed));
    bool are_few, grown;

    spinlock_assert_none_held();
    for (uint32_t i = 0; i < passed_count; i++)
        make_ready(journal, tail, passed[i]);
    spinlock_acquire(&journal->lock);
    are_few = tail->ready_count < SLOTS_FEW;
    spinlock_release(&journal->lock);
    if (LIKELY(!are_few))
        return true;
    grown = count != SLOTS_MOST && grow(journal, tail);
    if (!grown)
        move_all_out(journal, tail, count);
    if (grown || count == SLOTS_MOST || tail->could_not_grow)
        return true;
    tail->could_not_grow = true;
    return false;
}

void journal_tail_stats(const struct journal_tail *tail, struct journal_tail_stats *stats)
{
    stats->bytes = HEAD_BYTES + (uint64_t)atomic_load_explicit(&tail->slot_count, memory_order_relaxed) * SLOT_BYTES;
    stats->unkept = atomic_load_explicit(&tail->misses, memory_order_relaxed);
}

/* ------------------------------------------------------------------------------------------------------- reading -- */

struct journal_tail_reader {
    char *bytes; /* the whole file */
    size_t size;
    bool is_same_boot;
    uint64_t nonce;
    struct journal_place place;
    struct journal_slot *slot; /* NULL: at the end */
    uint64_t position, offset; /* of the next record */
};

static uint32_t slots_of(const struct journal_tail_reader *reader)
{
    return (uint32_t)((reader->size - HEAD_BYTES) / SLOT_BYTES);
}

static uint64_t slot_used(const struct journal_slot *slot)
{
    uint64_t used = atomic_load_explicit(&slot->used, memory_order_relaxed);

    return MIN(used, SLOT_BYTES - sizeof(*slot));
}

/* The slot where the position is; at its end: the next one. NULL: there is none. */
static struct journal_slot *find_slot(const struct journal_tail_reader *reader, uint64_t position)
{
    for (uint32_t i = 0; i < slots_of(reader); i++) {
        struct journal_slot *slot = slot_at(reader->bytes, i);

        if (slot->nonce == reader->nonce && position >= slot->begin_position &&
            position - slot->begin_position < slot_used(slot))
            return slot;
    }
    return NULL;
}

/* Is it one, as far as its head tells? */
static bool is_record(const struct journal_tail_reader *reader, const struct record *record)
{
    const uint64_t at = reader->position - reader->slot->begin_position, room = slot_used(reader->slot) - at;

    return room >= sizeof(*record) && record->offset == reader->offset && record->byte_count <= room &&
           record->blob_count <= room / sizeof(struct effect_blob) && record->memory_size <= room &&
           record->memory_size ==
               record_size(record->byte_count, record->blob_count) + record_stamp_size(record->flags);
}

static enum journal_tail_item look_at(const struct journal_tail_reader *reader, struct record *record)
{
    if (!is_record(reader, record))
        return JOURNAL_TAIL_END;
    if (atomic_load_explicit(&record->ready, memory_order_relaxed) != 1)
        return reader->is_same_boot ? JOURNAL_TAIL_HOLE : JOURNAL_TAIL_END;
    if (record->blob_count != 0 || record->check != record_check(record, reader->nonce))
        return JOURNAL_TAIL_END;
    return JOURNAL_TAIL_RECORD;
}

/* Into the slot where the next record is. */
static bool enter(struct journal_tail_reader *reader)
{
    if (reader->slot != NULL && reader->position - reader->slot->begin_position < slot_used(reader->slot))
        return true;
    reader->slot = find_slot(reader, reader->position);
    return reader->slot != NULL && reader->slot->begin_position == reader->position &&
           reader->slot->begin_offset == reader->offset;
}

enum journal_tail_item journal_tail_next(struct journal_tail_reader *reader, struct journal_view *view)
{
    enum journal_tail_item item;
    struct record *record;

    if (!enter(reader)) {
        reader->slot = NULL;
        return JOURNAL_TAIL_END;
    }
    record = record_at((char *)(reader->slot + 1), (size_t)(reader->position - reader->slot->begin_position));
    item = look_at(reader, record);
    if (item == JOURNAL_TAIL_END)
        return item;
    *view = (struct journal_view){.offset = record->offset,
                                  .size = record->stream_size,
                                  .db = record->db,
                                  .flags = record->flags,
                                  .bytes = {record_bytes(record), record->byte_count},
                                  .stamp = record_stamp(record)};
    reader->position += record->memory_size;
    reader->offset += record->stream_size;
    return item;
}

/* From the begin of the slot to the place; false: the records before it are missing or damaged. */
static bool go_to_place(struct journal_tail_reader *reader)
{
    const uint64_t target = reader->place.position;

    reader->position = target;
    reader->slot = find_slot(reader, target);
    if (reader->slot == NULL)
        return true; /* nothing follows it, or the record follows at the begin of the next slot */
    reader->position = reader->slot->begin_position;
    reader->offset = reader->slot->begin_offset;
    while (reader->position < target) {
        struct record *record = record_at((char *)(reader->slot + 1),
                                          (size_t)(reader->position - reader->slot->begin_position));

        if (!is_record(reader, record))
            return false;
        reader->position += record->memory_size;
        reader->offset += record->stream_size;
    }
    return reader->position == target;
}

static bool read_place(struct journal_tail_reader *reader, const struct tail_head *head)
{
    uint64_t serial = 0;

    for (uint32_t i = 0; i < countof(head->places); i++) {
        const struct place_copy *copy = &head->places[i];

        if (copy->serial > serial && copy->check == check_of(copy, head->nonce)) {
            serial = copy->serial;
            reader->place = copy->place;
        }
    }
    return serial != 0 && reader->place.file_number != 0;
}

static const char *read_head(struct journal_tail_reader *reader)
{
    const struct tail_head *head = (const struct tail_head *)(const void *)reader->bytes;
    char boot[BOOT_BYTES];

    if (reader->size < HEAD_BYTES || memcmp(head->magic, magic, sizeof(magic)) != 0)
        return "it is not whole";
    if (head->record_bytes != sizeof(struct record) || head->slot_bytes != SLOT_BYTES)
        return "another version of the server wrote it";
    read_boot(boot);
    reader->is_same_boot = boot[0] != '\0' && memcmp(boot, head->boot, BOOT_BYTES) == 0;
    reader->nonce = head->nonce;
    if (!read_place(reader, head))
        return "it does not belong to a file";
    return go_to_place(reader) ? NULL : "its head is damaged";
}

enum status journal_tail_open(struct journal_tail_reader **reader, const char *path, const char **error)
{
    struct journal_tail_reader *made = mem_alloc_zero(sizeof(*made));
    enum status status = file_load(path, MAP_BYTES, &made->bytes, &made->size);

    *reader = NULL;
    *error = NULL;
    if (status == STATUS_OK) {
        *error = read_head(made);
        if (*error != NULL)
            status = STATUS_CORRUPT;
    } else if (status != STATUS_NOT_FOUND) {
        *error = strerror(errno);
    }
    if (status != STATUS_OK)
        journal_tail_close(&made);
    *reader = made;
    return status;
}

void journal_tail_close(struct journal_tail_reader **reader)
{
    if (*reader == NULL)
        return;
    mem_free((*reader)->bytes);
    mem_free(*reader);
    *reader = NULL;
}

const struct journal_place *journal_tail_place(const struct journal_tail_reader *reader)
{
    return &reader->place;
}
