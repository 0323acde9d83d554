#include "commands/debug/debug.h"

#include "base/assert.h"
#include "base/gate.h"
#include "base/mem.h"
#include "commands/debug/debug_priv.h"
#include "server/core/request.h"

#include <stdlib.h>

enum { ROWS_MOST = 128 };

static const struct debug_row *const tables[] = {debug_data_rows,      debug_slot_rows,   debug_stamp_rows,
                                                 debug_value_rows,     debug_server_rows, debug_protocol_rows,
                                                 debug_operation_rows, debug_replay_rows, debug_undo_rows};

static const struct debug_row *row_of(const struct slice *args, uint32_t arg_count)
{
    for (size_t i = 0; i < countof(tables); i++) {
        for (const struct debug_row *row = tables[i]; row->name != NULL; row++) {
            if (slice_equal_text_nocase(args[1], row->name))
                return arg_count >= row->least && arg_count <= row->most ? row : NULL;
        }
    }
    return NULL;
}

static int compare_rows(const void *a, const void *b)
{
    const struct debug_row *const *first = a, *const *second = b;

    return strcmp((*first)->name, (*second)->name);
}

/* "NAME <words>", then its help, indented. */
static void append_help(struct buffer *text, const struct debug_row *row)
{
    for (const char *at = row->name; *at != '\0'; at++)
        buffer_append_char(text, *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at);
    if (row->words[0] != '\0')
        buffer_append_char(text, ' ');
    buffer_append_text(text, row->words);
    buffer_append_text(text, "\n    ");
    for (const char *at = row->help; *at != '\0'; at++) {
        buffer_append_char(text, *at);
        if (*at == '\n')
            buffer_append_text(text, "    ");
    }
    buffer_append_char(text, '\n');
}

/* The lines of a text, each with a zero byte behind it now. */
static const char **split_lines(struct buffer *text, size_t *count)
{
    const char **lines = mem_alloc(text->size * sizeof(*lines));
    char *line = text->data;

    *count = 0;
    for (size_t i = 0; i < text->size; i++) {
        if (text->data[i] != '\n')
            continue;
        text->data[i] = '\0';
        lines[(*count)++] = line;
        line = &text->data[i + 1];
    }
    return lines;
}

static void debug_help(struct request *request)
{
    const struct debug_row *rows[ROWS_MOST];
    struct buffer text = {0};
    const char **lines;
    size_t count = 0, line_count;

    for (size_t i = 0; i < countof(tables); i++) {
        for (const struct debug_row *row = tables[i]; row->name != NULL; row++) {
            assert(count < ROWS_MOST);
            rows[count++] = row;
        }
    }
    qsort(rows, count, sizeof(rows[0]), compare_rows);
    for (size_t i = 0; i < count; i++)
        append_help(&text, rows[i]);
    lines = split_lines(&text, &line_count);
    reply_help(request, lines, line_count);
    mem_free(lines);
    buffer_fini(&text);
}

enum access_class debug_access_of(const struct slice *args, uint32_t arg_count)
{
    const struct debug_row *row = row_of(args, arg_count);

    return row != NULL ? row->access : ACCESS_FREE;
}

bool debug_find_keys(const struct slice *args, uint32_t arg_count, struct key_positions *positions)
{
    const struct debug_row *row = row_of(args, arg_count);

    if (row == NULL || row->first_key == 0)
        return false;
    for (uint32_t i = row->first_key; i <= MIN(row->last_key, arg_count - 1); i++)
        key_positions_add(positions, i, KEY_RO | KEY_ACCESS);
    return true;
}

void debug_refuse(struct request *request)
{
    struct slice word = request_arg(request, 1);

    reply_errorf(request, "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try DEBUG HELP.",
                 (int)MIN(word.size, (size_t)128), word.data);
}

void cmd_debug(struct request *request)
{
    const struct debug_row *row = row_of(request->args, request->arg_count);

    if (row != NULL)
        row->run(request);
    else if (slice_equal_text_nocase(request_arg(request, 1), "help") && request->arg_count == 2)
        debug_help(request);
    else
        debug_refuse(request);
}

void debug_teardown(void)
{
    gate_assert_main_alone();
    debug_journal_close();
    debug_operations_close();
    debug_replay_close();
    debug_undo_close();
    debug_end_holds();
}
