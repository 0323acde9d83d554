#include "active/cursor.h"
#include "active/frame.h"
#include "active/mvcc.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/blob.h"
#include "base/copy.h"
#include "store/effects.h"

enum {
    KEPT_BYTES_MOST = 1 << 20, /* a larger buffer is given back after the frame */
    HEAD_BYTES_MOST = 1 + UUID_BYTES + 2 * 8 + 4 * VARINT_BYTES_MOST,
    OP_BYTES_MOST = 1 + 3 * VARINT_BYTES_MOST
};

struct numbered {
    uint64_t id; /* of the origin */
    uint64_t stamp;
    int64_t wall;
    uint64_t used; /* the entry that used it last */
};

struct frame_writer {
    struct {
        struct numbered *items;
        uint32_t count, capacity;
    } origins;            /* by number */
    uint32_t last_number; /* of the entry before in this frame; UINT32_MAX: none */
    unsigned last_db;
    uint64_t entries; /* written so far */
    struct buffer body;
    struct {
        struct blob **items;
        uint32_t count, capacity;
    } larges; /* of this frame, in order; references */
    uint64_t large_bytes;
};

static void begin_frame(struct frame_writer *writer)
{
    buffer_clear(&writer->body);
    if (writer->body.capacity > KEPT_BYTES_MOST)
        buffer_fini(&writer->body);
    writer->larges.count = 0;
    writer->large_bytes = 0;
    writer->last_number = UINT32_MAX;
    writer->last_db = 0;
}

struct frame_writer *frame_writer_create(void)
{
    struct frame_writer *writer = mem_alloc_zero(sizeof(*writer));

    begin_frame(writer);
    return writer;
}

void frame_writer_destroy(struct frame_writer **writer)
{
    struct frame_writer *gone = *writer;

    *writer = NULL;
    if (gone == NULL)
        return;
    for (uint32_t i = 0; i < gone->larges.count; i++)
        blob_release(&gone->larges.items[i]);
    ARRAY_FINI(&gone->larges);
    ARRAY_FINI(&gone->origins);
    buffer_fini(&gone->body);
    mem_free(gone);
}

/* Returns the number of the origin, or one for it to be introduced with. */
static uint32_t number_of(struct frame_writer *writer, uint64_t id, bool *is_new)
{
    uint32_t longest_ago = 0;

    *is_new = false;
    if (writer->last_number != UINT32_MAX && writer->origins.items[writer->last_number].id == id)
        return writer->last_number;
    for (uint32_t i = 0; i < writer->origins.count; i++) {
        if (writer->origins.items[i].id == id)
            return i;
        if (writer->origins.items[i].used < writer->origins.items[longest_ago].used)
            longest_ago = i;
    }
    *is_new = true;
    if (writer->origins.count == FRAME_ORIGINS_MOST)
        return longest_ago;
    *ARRAY_PUSH(&writer->origins) = (struct numbered){0};
    return writer->origins.count - 1;
}

static ALWAYS_INLINE void add_head(struct frame_writer *writer, const struct frame_entry *entry)
{
    struct buffer *body = &writer->body;
    bool is_new;
    char *at;
    const uint32_t number = number_of(writer, entry->origin, &is_new);
    struct numbered *origin = &writer->origins.items[number];
    const bool has_prev = is_new || entry->prev != origin->stamp || entry->wall < origin->wall;
    const bool has_origin = is_new || number != writer->last_number;
    const bool has_wall = has_prev || entry->wall != origin->wall;

    assert(!is_new || uuid_id(&entry->uuid) == entry->origin);
    at = buffer_reserve(body, HEAD_BYTES_MOST);
    *at++ = (char)((has_origin ? FRAME_HAS_ORIGIN : 0) | (is_new ? FRAME_HAS_UUID : 0) |
                   (has_prev ? FRAME_HAS_PREV : 0) | (has_wall ? FRAME_HAS_WALL : 0) |
                   (entry->mvcc != 0 ? FRAME_HAS_MVCC : 0) | (entry->op_count != 1 ? FRAME_HAS_OPS : 0) |
                   (entry->flush ? FRAME_IS_FLUSH : 0));
    if (has_origin)
        at = write_varint(at, number);
    if (is_new) {
        memcpy(at, entry->uuid.bytes, UUID_BYTES);
        at += UUID_BYTES;
    }
    if (has_prev)
        at = write_fixed(at, entry->prev);
    at = write_varint(at, entry->stamp - entry->prev);
    if (has_prev)
        at = write_difference(at, (uint64_t)entry->wall, entry->stamp >> STAMP_COUNTER_BITS);
    else if (has_wall)
        at = write_varint(at, (uint64_t)(entry->wall - origin->wall));
    if (entry->mvcc != 0)
        at = write_fixed(at, entry->mvcc);
    if (entry->op_count != 1)
        at = write_varint(at, entry->op_count);
    body->size = (size_t)(at - body->data);
    *origin = (struct numbered){entry->origin, entry->stamp, entry->wall, ++writer->entries};
    writer->last_number = number;
}

/* `next` is the first blob that was not used yet. */
static void add_large(struct frame_writer *writer, const struct frame_op *op, uint32_t index, uint32_t *next)
{
    const struct slice word = op->words[index];
    struct blob *blob = NULL;

    if (*next < op->blob_count && op->blobs[*next].arg_index == index)
        blob = op->blobs[(*next)++].blob;
    assert(blob == NULL || blob->size == word.size);
    *ARRAY_PUSH(&writer->larges) = blob != NULL ? blob_acquire(blob) : blob_create_copy(word);
    writer->large_bytes += word.size;
}

static ALWAYS_INLINE void add_op(struct frame_writer *writer, const struct frame_entry *entry,
                                 const struct frame_op *op)
{
    struct buffer *body = &writer->body;
    const bool has_db = op->db != writer->last_db;
    char *at = buffer_reserve(body, OP_BYTES_MOST);
    uint32_t next = 0;

    assert(op->word_count > op->key_index && op->key_index <= FRAME_OP_KEY_MOST);
    *at++ = (char)((op->overwrites ? FRAME_OP_OVERWRITES : 0) | (op->evicts ? FRAME_OP_EVICTS : 0) |
                   (has_db ? FRAME_OP_DB : 0) | op->key_index << FRAME_OP_KEY_SHIFT);
    if (has_db)
        at = write_varint(at, op->db);
    if (op->evicts) {
        assert(op->seen <= entry->stamp);
        at = write_varint(at, entry->stamp - op->seen);
    }
    at = write_varint(at, op->word_count);
    body->size = (size_t)(at - body->data);
    for (uint32_t i = 0; i < op->word_count; i++) {
        const struct slice word = op->words[i];
        const bool is_large = word.size >= FRAME_LARGE_BYTES;

        at = write_varint(buffer_reserve(body, VARINT_BYTES_MOST + (is_large ? 0 : word.size)), word.size);
        if (UNLIKELY(is_large)) {
            add_large(writer, op, i, &next);
        } else if (word.size != 0) {
            memcpy(at, word.data, word.size);
            at += word.size;
        }
        body->size = (size_t)(at - body->data);
    }
    writer->last_db = op->db;
}

void frame_writer_add(struct frame_writer *writer, const struct frame_entry *entry)
{
    assert(entry->prev < entry->stamp && stamp_is_possible(entry->stamp));
    assert(entry->op_count != 0);
    add_head(writer, entry);
    for (uint32_t i = 0; i < entry->op_count; i++)
        add_op(writer, entry, &entry->ops[i]);
}

/* What is behind the head of the operation. The bytes are no shorter in RESP. */
static ALWAYS_INLINE char *copy_words(char *at, const char *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t size;

        from = effects_number(from, &size);
        at = write_varint(at, size);
        copy_word(at, from, size);
        at += size;
        from += size + 2;
    }
    return at;
}

/* One operation, that is an entry, without blobs: as most are. */
static bool is_plain(const struct journal_view *view)
{
    return view->blob_count == 0 && view->stamp->mvcc == 0 && view->bytes.size < FRAME_LARGE_BYTES &&
           (view->flags & (JOURNAL_ENTRY_ENDS | JOURNAL_EVICTS | JOURNAL_FLUSH)) == JOURNAL_ENTRY_ENDS;
}

bool frame_writer_add_record(struct frame_writer *writer, const struct journal_view *view)
{
    const struct journal_stamp *stamp = view->stamp;
    struct buffer *body = &writer->body;
    const uint32_t key_index = journal_view_key_index(view);
    struct numbered *origin;
    const char *words;
    bool has_wall, has_db;
    size_t count;
    char *at;

    if (UNLIKELY(writer->last_number == UINT32_MAX || !is_plain(view)))
        return false;
    origin = &writer->origins.items[writer->last_number];
    if (UNLIKELY(stamp->origin != origin->id || stamp->previous != origin->stamp || stamp->wall_ms < origin->wall))
        return false;
    assert(stamp->previous < stamp->stamp && stamp_is_possible(stamp->stamp));
    has_wall = stamp->wall_ms != origin->wall;
    has_db = view->db != writer->last_db;
    words = effects_number(view->bytes.data, &count);
    at = buffer_reserve(body, HEAD_BYTES_MOST + OP_BYTES_MOST + view->bytes.size);
    *at++ = (char)(has_wall ? FRAME_HAS_WALL : 0);
    at = write_varint(at, stamp->stamp - stamp->previous);
    if (UNLIKELY(has_wall))
        at = write_varint(at, (uint64_t)(stamp->wall_ms - origin->wall));
    *at++ = (char)(((view->flags & JOURNAL_OVERWRITES) != 0 ? FRAME_OP_OVERWRITES : 0) | (has_db ? FRAME_OP_DB : 0) |
                   (LIKELY(key_index < count) ? key_index : 0) << FRAME_OP_KEY_SHIFT);
    if (UNLIKELY(has_db))
        at = write_varint(at, view->db);
    at = copy_words(write_varint(at, count), words, count);
    body->size = (size_t)(at - body->data);
    origin->stamp = stamp->stamp;
    origin->wall = stamp->wall_ms;
    origin->used = ++writer->entries;
    writer->last_db = view->db;
    return true;
}

size_t frame_writer_bytes(const struct frame_writer *writer)
{
    return writer->body.size + writer->large_bytes;
}

void frame_writer_flush(struct frame_writer *writer, struct output *out)
{
    if (writer->body.size == 0)
        return;
    frame_write(out, writer->larges.count != 0 ? FRAME_LARGES : FRAME_ENTRIES, buffer_slice(&writer->body));
    for (uint32_t i = 0; i < writer->larges.count; i++) {
        output_append_blob(out, writer->larges.items[i], 0, writer->larges.items[i]->size);
        blob_release(&writer->larges.items[i]);
    }
    begin_frame(writer);
}

void frame_write(struct output *out, enum frame_kind kind, struct slice body)
{
    char bytes[1 + VARINT_BYTES_MOST];
    size_t size = 0;
    uint64_t left = body.size;

    assert(body.size <= FRAME_BODY_BYTES_MOST);
    bytes[size++] = (char)kind;
    for (; left >= 0x80; left >>= 7)
        bytes[size++] = (char)(left | 0x80);
    bytes[size++] = (char)left;
    output_append(out, bytes, size);
    output_append(out, body.data, body.size);
}
