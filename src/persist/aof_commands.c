#include "persist/aof_commands.h"

#include "base/assert.h"
#include "base/number.h"

#include <errno.h>

enum { ELEMENTS_MOST = 64, FLUSH_BYTES = 256 * 1024 };

void aof_commands_flush(struct aof_commands *commands)
{
    if (commands->out.size == 0)
        return;
    if (commands->status == STATUS_OK) {
        commands->status = commands->sink->write(commands->sink, buffer_slice(&commands->out));
        commands->error = errno;
    }
    buffer_clear(&commands->out);
}

static void put_count(struct aof_commands *commands, char sign, uint64_t count)
{
    buffer_append_char(&commands->out, sign);
    buffer_append_u64(&commands->out, count);
    buffer_append(&commands->out, "\r\n", 2);
}

void aof_command_begin(struct aof_commands *commands, uint64_t words)
{
    assert(commands->words == 0 && words != 0);
    if (UNLIKELY(commands->out.size >= FLUSH_BYTES))
        aof_commands_flush(commands);
    put_count(commands, '*', words);
    commands->words = words;
}

void aof_put(struct aof_commands *commands, struct slice word)
{
    assert(commands->words != 0);
    commands->words--;
    put_count(commands, '$', word.size);
    buffer_append_slice(&commands->out, word);
    buffer_append(&commands->out, "\r\n", 2);
}

void aof_put_text(struct aof_commands *commands, const char *word)
{
    aof_put(commands, slice_from_text(word));
}

void aof_put_begin(struct aof_commands *commands, uint64_t size)
{
    assert(commands->words != 0 && commands->part == 0 && size != 0);
    commands->words--;
    commands->part = size;
    put_count(commands, '$', size);
}

void aof_put_part(struct aof_commands *commands, struct slice part)
{
    assert(part.size <= commands->part);
    if (part.size == 0)
        return;
    commands->part -= part.size;
    buffer_append_slice(&commands->out, part);
    if (commands->part == 0)
        buffer_append(&commands->out, "\r\n", 2);
    if (UNLIKELY(commands->out.size >= FLUSH_BYTES))
        aof_commands_flush(commands);
}

void aof_put_number(struct aof_commands *commands, int64_t number)
{
    char text[NUMBER_I64_SPACE];

    aof_put(commands, slice_make(text, number_format_i64(text, number)));
}

void aof_elements(struct aof_commands *commands, const char *command, unsigned width, uint64_t count)
{
    assert(commands->left == 0 && commands->room == 0);
    commands->command = command;
    commands->width = width;
    commands->left = count;
    commands->room = 0;
}

void aof_element(struct aof_commands *commands)
{
    assert(commands->left != 0);
    if (commands->room == 0) {
        commands->room = (unsigned)MIN(commands->left, (uint64_t)ELEMENTS_MOST);
        aof_command_begin(commands, 2 + (uint64_t)commands->room * commands->width);
        aof_put_text(commands, commands->command);
        aof_put(commands, commands->key);
    }
    commands->room--;
    commands->left--;
}
