#include "active/cursor.h"
#include "active/frame.h"
#include "active/mvcc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/blob.h"

#include <stdio.h>

enum {
    KEPT_BYTES_MOST = 1 << 20, /* larger memory is given back behind the frame */
    LARGE_STEP_BYTES = 1 << 20,
    ENTRY_BYTES_LEAST = 4,
    OP_BYTES_LEAST = 3
};

struct numbered {
    struct uuid uuid;
    uint64_t id;
    uint64_t stamp;
    int64_t wall;
};

/* A large word that the body announces. */
struct large {
    uint64_t size;
    uint32_t word; /* its index in `words` */
};

struct frame_reader {
    unsigned db_count;
    uint64_t frames; /* complete ones */
    struct {
        struct numbered *items;
        uint32_t count, capacity;
    } origins; /* by number */
    struct {
        struct frame_entry *items;
        uint32_t count, capacity;
    } entries;
    struct {
        struct frame_op *items;
        uint32_t count, capacity;
    } ops;
    struct {
        struct slice *items;
        uint32_t count, capacity;
    } words;
    struct {
        struct large *items;
        uint32_t count, capacity;
    } larges;
    struct {
        struct resp_blob_arg *items; /* each stands for the large with its index; references */
        uint32_t count, capacity;
    } blobs;
    struct buffer body;    /* of a frame whose large words are still to come, or that is kept */
    struct slice given;    /* the body of the entries that were read last, if it is the caller's */
    uint32_t large_index;  /* the one that comes now; larges.count: none is missing */
    uint64_t large_filled; /* bytes of it */
    unsigned last_db;      /* of the body that is read */
    uint32_t last_number;  /* likewise; UINT32_MAX: none */
    bool may_be_large;     /* likewise */
    bool awaits_larges;    /* the body is read; large words are missing */
    char error[FRAME_ERROR_BYTES];
};

struct frame_reader *frame_reader_create(unsigned db_count)
{
    struct frame_reader *reader = mem_alloc_zero(sizeof(*reader));

    assert(db_count > 0);
    reader->db_count = db_count;
    return reader;
}

#define GIVE_BACK(array, items_most)          \
    do {                                      \
        (array)->count = 0;                   \
        if ((array)->capacity > (items_most)) \
            ARRAY_FINI(array);                \
    } while (0)

/* Drops what belongs to a frame. Keeps memory up to a size for each array. */
static void end_frame(struct frame_reader *reader, size_t kept_bytes)
{
    for (uint32_t i = 0; i < reader->blobs.count; i++)
        blob_release(&reader->blobs.items[i].blob);
    GIVE_BACK(&reader->entries, kept_bytes / sizeof(struct frame_entry));
    GIVE_BACK(&reader->ops, kept_bytes / sizeof(struct frame_op));
    GIVE_BACK(&reader->words, kept_bytes / sizeof(struct slice));
    GIVE_BACK(&reader->larges, kept_bytes / sizeof(struct large));
    GIVE_BACK(&reader->blobs, kept_bytes / sizeof(struct resp_blob_arg));
    buffer_clear(&reader->body);
    if (reader->body.capacity > kept_bytes)
        buffer_fini(&reader->body);
    reader->large_index = 0;
    reader->large_filled = 0;
    reader->given = SLICE_EMPTY;
}

void frame_reader_destroy(struct frame_reader **reader)
{
    struct frame_reader *gone = *reader;

    *reader = NULL;
    if (gone == NULL)
        return;
    end_frame(gone, 0);
    ARRAY_FINI(&gone->origins);
    mem_free(gone);
}

const char *frame_reader_error(const struct frame_reader *reader)
{
    return reader->error;
}

size_t frame_reader_bytes(const struct frame_reader *reader)
{
    return sizeof(*reader) + reader->origins.capacity * sizeof(struct numbered) +
           reader->entries.capacity * sizeof(struct frame_entry) + reader->ops.capacity * sizeof(struct frame_op) +
           reader->words.capacity * sizeof(struct slice) + reader->larges.capacity * sizeof(struct large) +
           reader->blobs.capacity * sizeof(struct resp_blob_arg) + reader->body.capacity;
}

static const char *kind_name(unsigned kind)
{
    static const char *const names[FRAME_KIND_END] = {
        [FRAME_HELLO] = "hello",     [FRAME_ENTRIES] = "entries", [FRAME_LARGES] = "entries",  [FRAME_BEAT] = "beat",
        [FRAME_WANT] = "want",       [FRAME_STOP] = "stop",       [FRAME_STOPPED] = "stopped", [FRAME_STATE] = "state",
        [FRAME_COMPARE] = "compare", [FRAME_DIGESTS] = "digests", [FRAME_REPAIR] = "repair",   [FRAME_MAKES] = "makes",
    };

    return kind < FRAME_KIND_END && names[kind] != NULL ? names[kind] : "unknown";
}

static enum frame_result fail(struct frame_reader *reader, unsigned kind, size_t at, const char *what)
{
    (void)snprintf(reader->error, sizeof(reader->error), "frame %llu (%s), byte %zu: %s",
                   (unsigned long long)reader->frames + 1, kind_name(kind), at, what);
    return FRAME_ERROR;
}

/* ------------------------------------------------------------------------------------------------------ entries -- */

/* Which origin the entry has. */
static bool read_origin(struct frame_reader *reader, struct cursor *cursor, uint8_t head)
{
    uint64_t number = reader->last_number;
    struct slice bytes;
    struct uuid uuid;

    if ((head & FRAME_HAS_ORIGIN) != 0 && !get_varint(cursor, &number))
        return false;
    if ((head & FRAME_HAS_UUID) != 0) {
        if (!get_bytes(cursor, UUID_BYTES, &bytes))
            return false;
        memcpy(uuid.bytes, bytes.data, UUID_BYTES);
        if (number > reader->origins.count || number >= FRAME_ORIGINS_MOST || uuid_is_nil(&uuid))
            return cursor_fail(cursor, "an origin cannot have this number or name");
        if (number == reader->origins.count)
            (void)ARRAY_PUSH(&reader->origins);
        reader->origins.items[number] = (struct numbered){.uuid = uuid, .id = uuid_id(&uuid)};
    }
    if (number >= reader->origins.count)
        return cursor_fail(cursor, "no origin has this number");
    reader->last_number = (uint32_t)number;
    return true;
}

static bool read_stamp(struct cursor *cursor, const struct numbered *origin, uint8_t head, struct frame_entry *entry)
{
    uint64_t more;

    entry->prev = origin->stamp;
    if ((head & FRAME_HAS_PREV) != 0 && !get_fixed(cursor, &entry->prev))
        return false;
    if (entry->prev != 0 && !stamp_is_possible(entry->prev))
        return cursor_fail(cursor, "prev is not possible");
    if (!get_varint(cursor, &more))
        return false;
    entry->stamp = entry->prev + more;
    if (more == 0 || more >= UINT64_C(1) << 63 || !stamp_is_possible(entry->stamp))
        return cursor_fail(cursor, "the stamp is not above prev, or not possible");
    return true;
}

static bool read_wall(struct cursor *cursor, const struct numbered *origin, uint8_t head, struct frame_entry *entry)
{
    uint64_t wall = (uint64_t)origin->wall, more = 0;

    if ((head & FRAME_HAS_PREV) != 0) {
        if (!get_difference(cursor, entry->stamp >> STAMP_COUNTER_BITS, &wall))
            return false;
    } else if ((head & FRAME_HAS_WALL) != 0) {
        if (!get_varint(cursor, &more))
            return false;
        wall = more <= (uint64_t)STAMP_MOST_MS ? wall + more : UINT64_MAX;
    }
    if (wall > (uint64_t)STAMP_MOST_MS)
        return cursor_fail(cursor, "the wall time is not possible");
    entry->wall = (int64_t)wall;
    return true;
}

static bool read_head(struct frame_reader *reader, struct cursor *cursor, struct frame_entry *entry)
{
    struct numbered *origin;
    uint64_t count;
    uint8_t head;

    if (!get_byte(cursor, &head))
        return false;
    if (head >= FRAME_HEAD_END || (head & (FRAME_HAS_ORIGIN | FRAME_HAS_UUID)) == FRAME_HAS_UUID ||
        (head & (FRAME_HAS_UUID | FRAME_HAS_PREV)) == FRAME_HAS_UUID ||
        (head & (FRAME_HAS_PREV | FRAME_HAS_WALL)) == FRAME_HAS_PREV)
        return cursor_fail(cursor, "no entry begins so");
    if (!read_origin(reader, cursor, head))
        return false;
    origin = &reader->origins.items[reader->last_number];
    entry->uuid = origin->uuid;
    entry->origin = origin->id;
    entry->flush = (head & FRAME_IS_FLUSH) != 0;
    if (!read_stamp(cursor, origin, head, entry) || !read_wall(cursor, origin, head, entry))
        return false;
    if ((head & FRAME_HAS_MVCC) != 0 && (!get_fixed(cursor, &entry->mvcc) || !mvcc_is_possible(entry->mvcc)))
        return cursor_fail(cursor, "no clock gives this mvcc");
    origin->stamp = entry->stamp;
    origin->wall = entry->wall;
    if ((head & FRAME_HAS_OPS) == 0) {
        entry->op_count = 1;
        return true;
    }
    if (!get_count(cursor, OP_BYTES_LEAST, &count))
        return false;
    entry->op_count = (uint32_t)count;
    return count != 0 && count <= UINT32_MAX ? true : cursor_fail(cursor, "an entry without operations");
}

static bool read_word(struct frame_reader *reader, struct cursor *cursor, uint32_t index, struct frame_op *op)
{
    struct slice word;
    uint64_t size;

    if (!get_varint(cursor, &size))
        return false;
    if (size < FRAME_LARGE_BYTES) {
        if (!get_bytes(cursor, (size_t)size, &word))
            return false;
    } else {
        if (!reader->may_be_large || size > FRAME_LARGE_BYTES_MOST)
            return cursor_fail(cursor, "a word is too large");
        *ARRAY_PUSH(&reader->larges) = (struct large){size, reader->words.count};
        *ARRAY_PUSH(&reader->blobs) = (struct resp_blob_arg){index, NULL};
        op->blob_count++;
        word = slice_make(NULL, (size_t)size);
    }
    *ARRAY_PUSH(&reader->words) = word;
    return true;
}

/* Of one key, which is all that its entry does; older than it is what it saw. */
static bool is_eviction(struct cursor *cursor, const struct frame_entry *entry, uint8_t head, uint64_t before)
{
    if (before == 0 || before > entry->stamp || !stamp_is_possible(entry->stamp - before))
        return cursor_fail(cursor, "an eviction saw no such stamp");
    if ((head & FRAME_OP_OVERWRITES) == 0 || head >> FRAME_OP_KEY_SHIFT == 0 || entry->op_count != 1)
        return cursor_fail(cursor, "an eviction of no key, or of more");
    return true;
}

static bool read_op(struct frame_reader *reader, struct cursor *cursor, const struct frame_entry *entry)
{
    struct frame_op op = {0};
    uint64_t db = reader->last_db, before = 0, count;
    uint8_t head;

    if (!get_byte(cursor, &head))
        return false;
    if (head >= FRAME_OP_END)
        return cursor_fail(cursor, "no operation begins so");
    if ((head & FRAME_OP_DB) != 0 && !get_varint(cursor, &db))
        return false;
    if (db >= reader->db_count)
        return cursor_fail(cursor, "there is no such database");
    if ((head & FRAME_OP_EVICTS) != 0 && !get_varint(cursor, &before))
        return false;
    op.overwrites = (head & FRAME_OP_OVERWRITES) != 0;
    op.evicts = (head & FRAME_OP_EVICTS) != 0;
    if (op.evicts && !is_eviction(cursor, entry, head, before))
        return false;
    op.seen = op.evicts ? entry->stamp - before : 0;
    if (!get_count(cursor, 1, &count))
        return false;
    op.key_index = head >> FRAME_OP_KEY_SHIFT;
    if (count <= op.key_index || count > UINT32_MAX)
        return cursor_fail(cursor, "an operation without its key or command");
    op.word_count = (uint32_t)count;
    op.db = reader->last_db = (unsigned)db;
    for (uint32_t i = 0; i < op.word_count; i++) {
        if (!read_word(reader, cursor, i, &op))
            return false;
    }
    *ARRAY_PUSH(&reader->ops) = op;
    return true;
}

/* The arrays have stopped growing: what points into them is set. */
static void point(struct frame_reader *reader)
{
    uint32_t op_index = 0, word_index = 0, blob_index = 0;

    for (uint32_t i = 0; i < reader->entries.count; i++) {
        reader->entries.items[i].ops = &reader->ops.items[op_index];
        op_index += reader->entries.items[i].op_count;
    }
    for (uint32_t i = 0; i < reader->ops.count; i++) {
        struct frame_op *op = &reader->ops.items[i];

        op->words = &reader->words.items[word_index];
        op->blobs = op->blob_count != 0 ? &reader->blobs.items[blob_index] : NULL;
        word_index += op->word_count;
        blob_index += op->blob_count;
    }
    assert(op_index == reader->ops.count && word_index == reader->words.count);
}

/* A number of one or two bytes. NULL: it is longer, or wrong, or not all of it is here. */
static ALWAYS_INLINE const uint8_t *read_short(const uint8_t *at, const uint8_t *end, uint64_t *number)
{
    if (LIKELY(at < end && *at < 0x80)) {
        *number = *at;
        return at + 1;
    }
    if (end - at < 2 || at[1] == 0 || at[1] >= 0x80)
        return NULL;
    *number = (uint64_t)(at[0] & 0x7f) | (uint64_t)at[1] << 7;
    return at + 2;
}

/* Returns where they end; NULL: some of them are large, or not there. They are not counted yet. */
static ALWAYS_INLINE const uint8_t *read_short_words(struct frame_reader *reader, const uint8_t *at, const uint8_t *end,
                                                     uint32_t count)
{
    struct slice *words;

    static_assert(FRAME_LARGE_BYTES >= 1 << 14, "no word is large whose size has two bytes");
    ARRAY_RESERVE(&reader->words, count);
    words = &reader->words.items[reader->words.count];
    for (uint32_t i = 0; i < count; i++) {
        uint64_t size;

        at = read_short(at, end, &size);
        if (UNLIKELY(at == NULL || (uint64_t)(end - at) < size))
            return NULL;
        words[i] = slice_make((const char *)at, (size_t)size);
        at += size;
    }
    return at;
}

/* Most entries are the next one of the same origin, with one operation and short numbers: these are read without the
 * questions of read_head and read_op. False: nothing has changed, it is to be read by these, which also know what is
 * wrong with it. */
static ALWAYS_INLINE bool read_plain(struct frame_reader *reader, struct cursor *cursor)
{
    const uint8_t *at = cursor->at, *end = cursor->end;
    struct numbered *origin;
    const struct slice *words;
    struct frame_entry *entry;
    struct frame_op *op;
    uint64_t stamp, wall = 0, count;
    uint8_t head, op_head;

    if (UNLIKELY(reader->last_number == UINT32_MAX))
        return false;
    origin = &reader->origins.items[reader->last_number];
    head = *at++;
    if (UNLIKELY((head & ~FRAME_HAS_WALL) != 0 || (at = read_short(at, end, &stamp)) == NULL ||
                 (head != 0 && (at = read_short(at, end, &wall)) == NULL) || at == end))
        return false;
    op_head = *at++;
    if (UNLIKELY((op_head & (FRAME_OP_EVICTS | FRAME_OP_DB)) != 0 || op_head >= FRAME_OP_END))
        return false;
    at = read_short(at, end, &count);
    if (UNLIKELY(at == NULL || count <= op_head >> FRAME_OP_KEY_SHIFT || count > (uint64_t)(end - at) || stamp == 0))
        return false;
    stamp += origin->stamp;
    wall += (uint64_t)origin->wall;
    if (UNLIKELY(!stamp_is_possible(stamp) || wall > (uint64_t)STAMP_MOST_MS))
        return false;
    at = read_short_words(reader, at, end, (uint32_t)count);
    if (UNLIKELY(at == NULL))
        return false;
    reader->words.count += (uint32_t)count;
    words = &reader->words.items[reader->words.count - count];
    op = ARRAY_PUSH(&reader->ops);
    *op = (struct frame_op){.words = words,
                            .word_count = (uint32_t)count,
                            .key_index = op_head >> FRAME_OP_KEY_SHIFT,
                            .db = reader->last_db,
                            .overwrites = (op_head & FRAME_OP_OVERWRITES) != 0};
    entry = ARRAY_PUSH(&reader->entries);
    *entry = (struct frame_entry){.uuid = origin->uuid,
                                  .origin = origin->id,
                                  .stamp = stamp,
                                  .prev = origin->stamp,
                                  .wall = (int64_t)wall,
                                  .is_of_one_key = op->key_index != 0,
                                  .ops = op,
                                  .op_count = 1};
    origin->stamp = stamp;
    origin->wall = (int64_t)wall;
    cursor->at = at;
    return true;
}

static bool read_entries(struct frame_reader *reader, struct cursor *cursor)
{
    const struct slice *words = reader->words.items;
    const struct frame_op *ops = reader->ops.items;
    bool is_pointed = true; /* all of them were plain */

    reader->last_number = UINT32_MAX;
    reader->last_db = 0;
    while (cursor->at < cursor->end) {
        struct frame_entry entry;

        if (LIKELY(read_plain(reader, cursor)))
            continue;
        is_pointed = false;
        entry = (struct frame_entry){0};
        if (!read_head(reader, cursor, &entry))
            return false;
        for (uint32_t i = 0; i < entry.op_count; i++) {
            if (!read_op(reader, cursor, &entry))
                return false;
        }
        *ARRAY_PUSH(&reader->entries) = entry;
    }
    if (reader->entries.count == 0)
        return cursor_fail(cursor, "it has no entries");
    if (UNLIKELY(!is_pointed || words != reader->words.items || ops != reader->ops.items))
        point(reader);
    return true;
}

/* ------------------------------------------------------------------------------------------------- large words -- */

size_t frame_reader_large_room(struct frame_reader *reader, char **room)
{
    const struct large *large;
    struct blob **blob;
    size_t wanted;

    if (reader->large_index == reader->larges.count)
        return 0;
    large = &reader->larges.items[reader->large_index];
    blob = &reader->blobs.items[reader->large_index].blob;
    if (*blob != NULL && reader->large_filled < (*blob)->capacity) {
        *room = (*blob)->data + reader->large_filled;
        return (*blob)->capacity - (size_t)reader->large_filled;
    }
    wanted = (size_t)MIN(large->size, MAX(2 * reader->large_filled, (uint64_t)LARGE_STEP_BYTES));
    if (*blob == NULL)
        *blob = blob_try_create(wanted);
    else if (!blob_try_grow(blob, wanted))
        return 0;
    if (*blob == NULL)
        return 0;
    *room = (*blob)->data + reader->large_filled;
    return wanted - (size_t)reader->large_filled;
}

void frame_reader_large_received(struct frame_reader *reader, size_t size)
{
    const struct large *large = &reader->larges.items[reader->large_index];
    struct blob *blob = reader->blobs.items[reader->large_index].blob;

    assert(reader->large_index < reader->larges.count);
    assert(size <= blob->capacity - reader->large_filled);
    reader->large_filled += size;
    if (reader->large_filled < large->size)
        return;
    blob->size = (size_t)large->size;
    reader->words.items[large->word] = blob_slice(blob);
    reader->large_index++;
    reader->large_filled = 0;
}

/* Copies what is here. */
static enum frame_result take_larges(struct frame_reader *reader, const char *data, size_t size, size_t *used)
{
    while (reader->large_index < reader->larges.count && *used < size) {
        char *room;
        const size_t most = frame_reader_large_room(reader, &room);
        const size_t piece = MIN(most, size - *used);

        if (most == 0)
            return fail(reader, FRAME_LARGES, 0, "no memory for a large word");
        memcpy(room, data + *used, piece);
        *used += piece;
        frame_reader_large_received(reader, piece);
    }
    return reader->large_index == reader->larges.count ? FRAME_COMPLETE : FRAME_MORE;
}

/* -------------------------------------------------------------------------------------------------------- frames -- */

static enum frame_result complete(struct frame_reader *reader, enum frame_kind kind, struct frame *frame)
{
    *frame = (struct frame){.kind = kind == FRAME_LARGES ? FRAME_ENTRIES : kind,
                            .entries = reader->entries.items,
                            .entry_count = reader->entries.count};
    reader->frames++;
    return FRAME_COMPLETE;
}

static enum frame_result read_body(struct frame_reader *reader, enum frame_kind kind, struct slice body,
                                   struct frame *frame)
{
    struct cursor cursor;

    if (kind != FRAME_ENTRIES && kind != FRAME_LARGES) {
        (void)complete(reader, kind, frame);
        frame->body = body;
        return FRAME_COMPLETE;
    }
    reader->may_be_large = kind == FRAME_LARGES;
    if (reader->may_be_large) { /* it has to stay until the last large word is here */
        buffer_append_slice(&reader->body, body);
        body = buffer_slice(&reader->body);
    }
    cursor = cursor_of(body);
    if (!read_entries(reader, &cursor))
        return fail(reader, kind, (size_t)(cursor.at - cursor.begin), cursor.error);
    if (kind == FRAME_ENTRIES)
        reader->given = body;
    if (kind == FRAME_LARGES && reader->larges.count == 0)
        return fail(reader, kind, body.size, "no large word");
    return kind == FRAME_LARGES ? FRAME_MORE : complete(reader, kind, frame);
}

/* *used is the size of the head. */
static enum frame_result read_start(struct frame_reader *reader, struct slice input, size_t *used,
                                    enum frame_kind *kind, uint64_t *body_bytes)
{
    struct cursor cursor = cursor_of(input);
    uint8_t byte;

    if (!get_byte(&cursor, &byte))
        return FRAME_MORE;
    if (byte == 0 || byte >= FRAME_KIND_END)
        return fail(reader, byte, 0, "there is no such frame");
    if (!get_varint(&cursor, body_bytes))
        return cursor.is_short ? FRAME_MORE : fail(reader, byte, 1, cursor.error);
    if (*body_bytes > (byte == FRAME_ENTRIES || byte == FRAME_LARGES ? FRAME_BODY_BYTES_MOST : FRAME_NOTICE_BYTES_MOST))
        return fail(reader, byte, 0, "its body is too long");
    *kind = (enum frame_kind)byte;
    *used = (size_t)(cursor.at - cursor.begin);
    return FRAME_COMPLETE;
}

enum frame_result frame_read(struct frame_reader *reader, const char *data, size_t size, size_t *used,
                             struct frame *frame)
{
    enum frame_result result = FRAME_MORE;
    enum frame_kind kind = FRAME_LARGES;
    uint64_t body_bytes = 0;
    size_t head = 0;

    *used = 0;
    if (!reader->awaits_larges) {
        end_frame(reader, KEPT_BYTES_MOST);
        result = read_start(reader, slice_make(data, size), &head, &kind, &body_bytes);
        if (result != FRAME_COMPLETE)
            return result;
        if (size - head < body_bytes)
            return FRAME_MORE;
        *used = head + (size_t)body_bytes;
        result = read_body(reader, kind, slice_make(data + head, (size_t)body_bytes), frame);
        if (result != FRAME_MORE)
            return result;
        reader->awaits_larges = true;
    }
    result = take_larges(reader, data, size, used);
    if (result != FRAME_COMPLETE)
        return result;
    reader->awaits_larges = false;
    return complete(reader, kind, frame);
}

/* Those with large words are kept already. */
void frame_reader_keep(struct frame_reader *reader)
{
    const struct slice given = reader->given;

    if (given.size == 0)
        return;
    assert(reader->body.size == 0);
    buffer_append_slice(&reader->body, given);
    for (uint32_t i = 0; i < reader->words.count; i++) {
        struct slice *word = &reader->words.items[i];

        word->data = reader->body.data + (word->data - given.data);
    }
    reader->given = SLICE_EMPTY;
}
