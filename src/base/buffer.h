/* A buffer: bytes are added at the end and consumed at the front. The struct is open; one thread owns it. {0} is an
 * empty buffer. A full buffer doubles its capacity through mem_alloc, so the caller limits what a client can add.
 * `data` moves when the buffer grows. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct buffer {
    char *data; /* NULL until something is added */
    size_t size;
    size_t capacity;
};

static inline void buffer_init(struct buffer *buffer)
{
    *buffer = (struct buffer){NULL, 0, 0};
}

void buffer_fini(struct buffer *buffer); /* frees the bytes; the buffer is empty and usable afterwards */
void buffer_grow(struct buffer *buffer, size_t more);
must_check bool buffer_try_reserve(struct buffer *buffer, size_t more); /* false: no memory, the buffer is unchanged */

/* Makes room for `more` bytes and returns the address to write to. The caller then adds the written size to `size`. */
static inline char *buffer_reserve(struct buffer *buffer, size_t more)
{
    if (UNLIKELY(buffer->capacity - buffer->size < more || buffer->data == NULL))
        buffer_grow(buffer, more);
    return buffer->data + buffer->size;
}

static inline void buffer_append(struct buffer *buffer, const void *bytes, size_t size)
{
    char *to = buffer_reserve(buffer, size);

    if (size != 0)
        memcpy(to, bytes, size);
    buffer->size += size;
}

static inline void buffer_append_slice(struct buffer *buffer, struct slice slice)
{
    buffer_append(buffer, slice.data, slice.size);
}

static inline void buffer_append_text(struct buffer *buffer, const char *text)
{
    buffer_append(buffer, text, strlen(text));
}

static inline void buffer_append_char(struct buffer *buffer, char c)
{
    *buffer_reserve(buffer, 1) = c;
    buffer->size++;
}

void buffer_append_i64(struct buffer *buffer, int64_t number); /* decimal */
void buffer_append_u64(struct buffer *buffer, uint64_t number);
void buffer_printf(struct buffer *buffer, const char *format, ...) PRINTF_LIKE(2, 3);
void buffer_vprintf(struct buffer *buffer, const char *format, va_list arguments) PRINTF_LIKE(2, 0);

static inline void buffer_clear(struct buffer *buffer) /* keeps the capacity */
{
    buffer->size = 0;
}

void buffer_consume(struct buffer *buffer, size_t count); /* removes bytes from the front; moves the rest down */
void buffer_truncate(struct buffer *buffer, size_t size); /* removes bytes from the end */
void buffer_shrink(struct buffer *buffer);                /* frees the capacity beyond `size` */

/* Hands the bytes over and leaves the buffer empty. A zero byte, not counted, follows the bytes. Never returns NULL.
 * The caller frees the bytes with mem_free. */
char *buffer_take(struct buffer *buffer, size_t *size);

/* The bytes as text: a zero byte, not counted, follows the end. Valid until the next change. */
const char *buffer_text(struct buffer *buffer);

static inline struct slice buffer_slice(const struct buffer *buffer)
{
    return slice_make(buffer->data, buffer->size);
}
