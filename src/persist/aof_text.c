#include "persist/aof_text.h"

#include "base/number.h"

static void append_select(struct aof_text *text, unsigned db)
{
    char number[NUMBER_I64_SPACE];
    size_t digits = number_format_u64(number, db);

    buffer_printf(&text->bytes, "*2\r\n$6\r\nSELECT\r\n$%zu\r\n%.*s\r\n", digits, (int)digits, number);
}

void aof_text_add(struct aof_text *text, const struct journal_view *view)
{
    if (UNLIKELY(text->db != (int)view->db)) {
        if ((view->flags & JOURNAL_SELECT) == 0)
            append_select(text, view->db);
        text->db = (int)view->db;
    }
    journal_view_append(view, &text->bytes);
    if ((view->flags & JOURNAL_SELECT) == 0)
        text->in_transaction = (view->flags & JOURNAL_ENDS) == 0;
}
