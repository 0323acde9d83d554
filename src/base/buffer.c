#include "base/buffer.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/number.h"

#include <stdio.h>

#define BUFFER_LEAST_BYTES 64

void buffer_fini(struct buffer *buffer)
{
    mem_free(buffer->data);
    buffer_init(buffer);
}

static size_t next_capacity(const struct buffer *buffer, size_t more)
{
    size_t needed = buffer->size + more;

    return mem_good_size(MAX(MAX(needed, buffer->capacity * 2), BUFFER_LEAST_BYTES));
}

void buffer_grow(struct buffer *buffer, size_t more)
{
    size_t capacity;

    assert(more <= SIZE_MAX / 4);
    assert(buffer->size <= SIZE_MAX / 4);
    capacity = next_capacity(buffer, more);
    buffer->data = mem_realloc(buffer->data, capacity);
    buffer->capacity = capacity;
}

bool buffer_try_reserve(struct buffer *buffer, size_t more)
{
    size_t capacity;
    char *data;

    if (buffer->data != NULL && buffer->capacity - buffer->size >= more)
        return true;
    if (more > SIZE_MAX / 4)
        return false;
    capacity = next_capacity(buffer, more);
    data = mem_try_realloc(buffer->data, capacity);
    if (data == NULL)
        return false;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void buffer_append_i64(struct buffer *buffer, int64_t number)
{
    buffer->size += number_format_i64(buffer_reserve(buffer, NUMBER_I64_SPACE), number);
}

void buffer_append_u64(struct buffer *buffer, uint64_t number)
{
    buffer->size += number_format_u64(buffer_reserve(buffer, NUMBER_I64_SPACE), number);
}

void buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    buffer_vprintf(buffer, format, arguments);
    va_end(arguments);
}

void buffer_vprintf(struct buffer *buffer, const char *format, va_list arguments)
{
    va_list again;
    char *to = buffer_reserve(buffer, 128);
    size_t room = buffer->capacity - buffer->size;
    int size;

    va_copy(again, arguments);
    size = vsnprintf(to, room, format, arguments);
    assert(size >= 0);
    if ((size_t)size >= room)
        size = vsnprintf(buffer_reserve(buffer, (size_t)size + 1), (size_t)size + 1, format, again);
    va_end(again);
    buffer->size += (size_t)size;
}

void buffer_consume(struct buffer *buffer, size_t count)
{
    assert(count <= buffer->size);
    buffer->size -= count;
    if (buffer->size != 0 && count != 0)
        memmove(buffer->data, buffer->data + count, buffer->size);
}

void buffer_truncate(struct buffer *buffer, size_t size)
{
    assert(size <= buffer->size);
    buffer->size = size;
}

void buffer_shrink(struct buffer *buffer)
{
    if (buffer->size == 0) {
        buffer_fini(buffer);
    } else if (mem_good_size(buffer->size) < buffer->capacity) {
        buffer->capacity = mem_good_size(buffer->size);
        buffer->data = mem_realloc(buffer->data, buffer->capacity);
    }
}

char *buffer_take(struct buffer *buffer, size_t *size)
{
    char *data;

    *buffer_reserve(buffer, 1) = '\0';
    data = buffer->data;
    *size = buffer->size;
    buffer_init(buffer);
    return data;
}

const char *buffer_text(struct buffer *buffer)
{
    *buffer_reserve(buffer, 1) = '\0';
    return buffer->data;
}
