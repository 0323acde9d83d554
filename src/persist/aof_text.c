#include "persist/aof_text.h"

#include "base/blob.h"
#include "base/number.h"
#include "store/stamp.h"

#include <inttypes.h>

static void append_select(struct aof_text *text, unsigned db)
{
    char number[NUMBER_I64_SPACE];
    size_t digits = number_format_u64(number, db);

    buffer_printf(&text->bytes, "*2\r\n$6\r\nSELECT\r\n$%zu\r\n%.*s\r\n", digits, (int)digits, number);
}

static void append_note(struct aof_text *text)
{
    const struct journal_stamp *stamp = &text->stamp;

    buffer_printf(&text->bytes, "#order %016" PRIx64 " %016" PRIx64 " %" PRIx64 " %" PRId64 " %" PRIu32, stamp->origin,
                  stamp->stamp, stamp->stamp - stamp->previous, stamp->wall_ms - stamp_ms(stamp->stamp),
                  text->operation_count);
    if (text->evicts)
        buffer_printf(&text->bytes, " %016" PRIx64, stamp->seen);
    buffer_append_text(&text->bytes, "\r\n");
    text->stamp.stamp = 0;
}

/* A value that is right behind what came out of its order. */
static bool is_correction(const struct journal_view *view)
{
    return view->stamp != NULL && (view->flags & JOURNAL_CORRECTS) != 0;
}

static bool is_of_entry(const struct aof_text *text, const struct journal_stamp *stamp)
{
    return stamp != NULL && text->stamp.stamp == stamp->stamp && text->stamp.origin == stamp->origin;
}

static void take_stamp(struct aof_text *text, const struct journal_view *view)
{
    if (view->stamp == NULL || is_correction(view))
        return;
    if (text->stamp.stamp == 0) {
        text->stamp = *view->stamp;
        text->is_effect = text->is_ended = false;
        text->operation_count = 0;
        text->evicts = (view->flags & JOURNAL_EVICTS) != 0;
    }
    text->is_effect = text->is_effect || (view->flags & JOURNAL_MESSAGE) == 0;
    if ((view->flags & JOURNAL_NOT_FOR_PEERS) == 0)
        text->is_ended = text->is_ended || (view->flags & JOURNAL_ENTRY_ENDS) != 0;
}

static void select_db(struct aof_text *text, unsigned db)
{
    if (UNLIKELY(text->db != (int)db))
        append_select(text, db);
    text->db = (int)db;
}

static void append_effect(struct aof_text *text, const struct journal_view *view)
{
    if ((view->flags & JOURNAL_SELECT) != 0)
        text->db = (int)view->db;
    else
        select_db(text, view->db);
    if (UNLIKELY(view->stamp != NULL)) {
        if ((view->flags & JOURNAL_NOT_FOR_PEERS) != 0)
            buffer_append_text(&text->bytes, "#plain\r\n");
        else
            text->operation_count++;
    }
    journal_view_append(view, &text->bytes);
    if ((view->flags & JOURNAL_SELECT) == 0)
        text->in_transaction = (view->flags & JOURNAL_ENDS) == 0;
}

/* What has no key and overwrites nothing is a message, which nobody hears later. */
static void append_operation(struct aof_text *text, const struct journal_view *view)
{
    size_t size = view->bytes.size;

    if (journal_view_key_index(view) == 0 && (view->flags & JOURNAL_OVERWRITES) == 0)
        return;
    for (uint32_t i = 0; i < view->blob_count; i++)
        size += view->blobs[i].blob->size;
    select_db(text, view->db);
    buffer_printf(&text->bytes, "*2\r\n$4\r\nECHO\r\n$%zu\r\n", size);
    journal_view_append(view, &text->bytes);
    buffer_append_text(&text->bytes, "\r\n");
    text->operation_count++;
}

void aof_text_add(struct aof_text *text, const struct journal_view *view)
{
    const bool is_select = (view->flags & JOURNAL_SELECT) != 0;

    if (UNLIKELY(text->stamp.stamp != 0) && !is_select && (is_correction(view) || !is_of_entry(text, view->stamp)))
        aof_text_end(text);
    take_stamp(text, view);
    if (LIKELY((view->flags & JOURNAL_MESSAGE) == 0))
        append_effect(text, view);
    else if (view->stamp != NULL && (view->flags & JOURNAL_NOT_FOR_PEERS) == 0)
        append_operation(text, view);
    if (UNLIKELY(text->stamp.stamp != 0) && text->is_effect && text->is_ended && !text->in_transaction)
        append_note(text);
}

void aof_text_end(struct aof_text *text)
{
    if (text->stamp.stamp != 0 && text->is_ended)
        append_note(text);
    text->stamp.stamp = 0;
}
