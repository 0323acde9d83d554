#include "active/gather.h"

#include "active/uuids.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/blob.h"
#include "base/mem.h"
#include "merge/place.h"
#include "store/effects.h"

enum { KEPT_BYTES_MOST = 1 << 20 }; /* larger buffers are given back behind the entry */

/* A record. Its bytes are those of the view, or of `gather->bytes` if more records of the entry follow. */
struct part {
    size_t bytes_at, byte_count;
    uint32_t first_blob, blob_count; /* in `gather->blobs` */
    unsigned db, flags;              /* enum journal_flag */
};

struct gather {
    struct buffer bytes; /* of the records before the last one */
    struct {
        struct effect_blob *items; /* references */
        uint32_t count, capacity;
    } blobs;
    struct {
        struct part *items;
        uint32_t count, capacity;
    } parts;
    struct journal_stamp stamp; /* of the last record */
    bool is_given;              /* that record was the last one of its entry */
    struct uuid uuid;           /* of stamp.origin, or of the one before */
    uint64_t uuid_origin;

    struct frame_entry entry;
    struct {
        struct frame_op *items;
        uint32_t count, capacity;
    } ops;
    struct {
        struct slice *items;
        uint32_t count, capacity;
    } words;
    struct {
        struct resp_blob_arg *items;
        uint32_t count, capacity;
    } word_blobs;
};

struct gather *gather_create(void)
{
    return mem_alloc_zero(sizeof(struct gather));
}

void gather_clear(struct gather *gather)
{
    for (uint32_t i = 0; i < gather->blobs.count; i++)
        blob_release(&gather->blobs.items[i].blob);
    gather->blobs.count = 0;
    gather->parts.count = 0;
    buffer_clear(&gather->bytes);
    if (gather->bytes.capacity > KEPT_BYTES_MOST)
        buffer_fini(&gather->bytes);
}

void gather_destroy(struct gather **gather)
{
    struct gather *gone = *gather;

    *gather = NULL;
    if (gone == NULL)
        return;
    gather_clear(gone);
    buffer_fini(&gone->bytes);
    ARRAY_FINI(&gone->blobs);
    ARRAY_FINI(&gone->parts);
    ARRAY_FINI(&gone->ops);
    ARRAY_FINI(&gone->words);
    ARRAY_FINI(&gone->word_blobs);
    mem_free(gone);
}

/* Appends the words of a record, and those of them that are in blobs. */
static uint32_t add_words(struct gather *gather, const char *bytes, const struct effect_blob *blobs,
                          uint32_t blob_count)
{
    const char *at = bytes;
    struct slice *word;
    size_t count, size;
    uint32_t next = 0;

    at = effects_number(at, &count);
    ARRAY_RESERVE(&gather->words, count);
    word = &gather->words.items[gather->words.count];
    for (size_t i = 0; i < count; i++) {
        at = effects_number(at, &size);
        if (UNLIKELY(next < blob_count && blobs[next].position == (size_t)(at - bytes))) {
            struct blob *blob = blobs[next++].blob;

            assert(blob->size == size);
            *ARRAY_PUSH(&gather->word_blobs) = (struct resp_blob_arg){(uint32_t)i, blob};
            *word++ = blob_slice(blob);
            at += 2;
        } else {
            *word++ = slice_make(at, size);
            at += size + 2;
        }
    }
    gather->words.count += (uint32_t)count;
    return (uint32_t)count;
}

static void add_op(struct gather *gather, const char *bytes, const struct effect_blob *blobs, uint32_t blob_count,
                   unsigned db, unsigned flags)
{
    const bool evicts = (flags & JOURNAL_EVICTS) != 0;
    const uint32_t blobs_before = gather->word_blobs.count, key_index = flags >> JOURNAL_KEY_SHIFT;
    const uint32_t word_count = add_words(gather, bytes, blobs, blob_count);

    *ARRAY_PUSH(&gather->ops) = (struct frame_op){.word_count = word_count,
                                                  .blob_count = gather->word_blobs.count - blobs_before,
                                                  .key_index = key_index < word_count ? key_index : 0,
                                                  .db = db,
                                                  .overwrites = (flags & JOURNAL_OVERWRITES) != 0,
                                                  .evicts = evicts,
                                                  .seen = evicts ? gather->stamp.seen : 0};
    gather->entry.flush |= (flags & JOURNAL_FLUSH) != 0;
}

/* All words are there and move no more. */
static void set_pointers(struct gather *gather)
{
    const struct slice *words = gather->words.items;
    const struct resp_blob_arg *blobs = gather->word_blobs.items;

    for (uint32_t i = 0; i < gather->ops.count; i++) {
        struct frame_op *op = &gather->ops.items[i];

        op->words = words;
        op->blobs = blobs;
        words += op->word_count;
        blobs += op->blob_count;
    }
    gather->entry.ops = gather->ops.items;
    gather->entry.op_count = gather->ops.count;
}

static void begin_entry(struct gather *gather, const struct journal_stamp *stamp)
{
    if (gather->uuid_origin != stamp->origin) {
        gather->uuid_origin = stamp->origin;
        gather->uuid = merge_origin_is_foreign(stamp->origin) ? uuids_find(stamp->origin) : uuid_of_id(stamp->origin);
    }
    gather->entry = (struct frame_entry){.uuid = gather->uuid,
                                         .origin = stamp->origin,
                                         .stamp = stamp->stamp,
                                         .prev = stamp->previous,
                                         .mvcc = stamp->mvcc,
                                         .wall = stamp->wall_ms};
    gather->ops.count = gather->words.count = gather->word_blobs.count = 0;
}

static void keep(struct gather *gather, const struct journal_view *view)
{
    *ARRAY_PUSH(&gather->parts) = (struct part){gather->bytes.size, view->bytes.size, gather->blobs.count,
                                                view->blob_count,   view->db,         view->flags};
    buffer_append_slice(&gather->bytes, view->bytes);
    for (uint32_t i = 0; i < view->blob_count; i++)
        *ARRAY_PUSH(&gather->blobs) = (struct effect_blob){view->blobs[i].position, blob_acquire(view->blobs[i].blob)};
}

static bool is_other(const struct gather *gather, const struct journal_stamp *stamp)
{
    return gather->stamp.stamp != stamp->stamp || gather->stamp.origin != stamp->origin;
}

const struct frame_entry *gather_take(struct gather *gather, const struct journal_view *view)
{
    if (gather->parts.count != 0 && (gather->is_given || is_other(gather, view->stamp)))
        gather_clear(gather);
    gather->stamp = *view->stamp;
    gather->is_given = (view->flags & JOURNAL_ENTRY_ENDS) != 0;
    if (!gather->is_given) {
        keep(gather, view);
        return NULL;
    }
    begin_entry(gather, view->stamp);
    for (uint32_t i = 0; i < gather->parts.count; i++) {
        const struct part *part = &gather->parts.items[i];

        add_op(gather, gather->bytes.data + part->bytes_at, gather->blobs.items + part->first_blob, part->blob_count,
               part->db, part->flags);
    }
    add_op(gather, view->bytes.data, view->blobs, view->blob_count, view->db, view->flags);
    set_pointers(gather);
    return &gather->entry;
}

bool gather_write(struct gather *gather, const struct journal_view *view, struct frame_writer *writer)
{
    const struct frame_entry *entry;

    if (LIKELY(gather->parts.count == 0) && LIKELY(frame_writer_add_record(writer, view)))
        return true;
    entry = gather_take(gather, view);
    if (entry != NULL)
        frame_writer_add(writer, entry);
    return entry != NULL;
}
