#include "persist/rdb_read.h"

#include "base/assert.h"
#include "base/crc64.h"
#include "base/mem.h"

#include <errno.h>
#include <lzf.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    WINDOW_BYTES = 256 * 1024,
    STEP_BYTES = 1024 * 1024, /* long texts grow by as much as has come */
    SCRATCH_KEPT_BYTES = 1024 * 1024,
    LZF_EXPANSION = 88 /* three bytes become at most 264 */
};

void rdb_reader_init(struct rdb_reader *reader, struct byte_source *source)
{
    *reader = (struct rdb_reader){.source = source, .size = source->size, .sums = true};
    reader->window = mem_alloc(WINDOW_BYTES);
    reader->capacity = WINDOW_BYTES;
}

void rdb_reader_init_memory(struct rdb_reader *reader, struct slice bytes)
{
    *reader = (struct rdb_reader){.size = bytes.size, .end = bytes.size};
    reader->window = (char *)(uintptr_t)bytes.data; /* only read */
}

void rdb_reader_reset_memory(struct rdb_reader *reader, struct slice bytes)
{
    assert(reader->source == NULL);
    reader->window = (char *)(uintptr_t)bytes.data; /* only read */
    reader->at = 0;
    reader->end = bytes.size;
    reader->size = bytes.size;
    reader->status = STATUS_OK;
}

void rdb_reader_fini(struct rdb_reader *reader)
{
    if (reader->source != NULL)
        mem_free(reader->window);
    buffer_fini(&reader->marked);
    buffer_fini(&reader->scratch);
    buffer_fini(&reader->unpacked);
    buffer_fini(&reader->first);
}

uint64_t rdb_reader_left(const struct rdb_reader *reader)
{
    if (reader->size == BYTES_UNKNOWN)
        return BYTES_UNKNOWN;
    return reader->size - MIN(reader->size, rdb_reader_offset(reader));
}

static void sum_up(struct rdb_reader *reader)
{
    assert(reader->summed_at <= reader->at);
    if (reader->sums && reader->summed_at < reader->at)
        reader->crc = crc64_update(reader->crc, reader->window + reader->summed_at, reader->at - reader->summed_at);
    reader->summed_at = reader->at;
}

uint64_t rdb_reader_crc(struct rdb_reader *reader)
{
    sum_up(reader);
    return reader->crc;
}

bool rdb_fail(struct rdb_reader *reader, enum status status, const char *format, ...)
{
    va_list arguments;

    if (reader->status != STATUS_OK)
        return false;
    reader->status = status;
    reader->failed_at = rdb_reader_offset(reader);
    va_start(arguments, format);
    (void)vsnprintf(reader->error, sizeof(reader->error), format, arguments);
    va_end(arguments);
    return false;
}

static bool fail_reading(struct rdb_reader *reader, enum status status)
{
    return rdb_fail(reader, status, "read error: %s", errno != 0 ? strerror(errno) : status_text(status));
}

static bool fail_end(struct rdb_reader *reader)
{
    return rdb_fail(reader, STATUS_TRUNCATED, "unexpected end of file");
}

/* ------------------------------------------------------------------------------------------------------ bytes -- */

/* Gets more into the window, which is not full; *got is 0 at the end. */
static bool fill(struct rdb_reader *reader, size_t *got)
{
    enum status status;

    *got = 0;
    if (reader->source == NULL)
        return true;
    errno = 0;
    status = reader->source->read(reader->source, reader->window + reader->end, reader->capacity - reader->end, got);
    if (status != STATUS_OK)
        return fail_reading(reader, status);
    assert(*got <= reader->capacity - reader->end);
    reader->end += *got;
    return true;
}

/* Into `marked`, up to where the reader is. */
static bool keep_marked(struct rdb_reader *reader)
{
    size_t size = reader->at - reader->marked_at;

    assert(reader->marked_at <= reader->at);
    if (!buffer_try_reserve(&reader->marked, size))
        return rdb_fail(reader, STATUS_NO_MEMORY, "not enough memory for a record of more than %zu bytes",
                        reader->marked.size);
    buffer_append(&reader->marked, reader->window + reader->marked_at, size);
    reader->marked_at = reader->at;
    return true;
}

void rdb_reader_mark(struct rdb_reader *reader)
{
    assert(reader->at != 0 && !reader->marks);
    buffer_clear(&reader->marked);
    if (reader->marked.capacity > SCRATCH_KEPT_BYTES)
        buffer_fini(&reader->marked);
    reader->marks = true;
    reader->marked_at = reader->at - 1;
}

bool rdb_reader_marked(struct rdb_reader *reader, struct slice *bytes)
{
    assert(reader->marks);
    reader->marks = false;
    if (LIKELY(reader->marked.size == 0)) {
        *bytes = slice_make(reader->window + reader->marked_at, reader->at - reader->marked_at);
        return reader->status == STATUS_OK;
    }
    if (!keep_marked(reader))
        return false;
    *bytes = buffer_slice(&reader->marked);
    return reader->status == STATUS_OK;
}

static void compact(struct rdb_reader *reader)
{
    if (reader->source == NULL || reader->at == 0)
        return;
    assert(reader->at <= reader->end);
    sum_up(reader);
    if (reader->marks) {
        (void)keep_marked(reader);
        reader->marked_at = 0;
    }
    memmove(reader->window, reader->window + reader->at, reader->end - reader->at);
    reader->offset += reader->at;
    reader->end -= reader->at;
    reader->at = 0;
    reader->summed_at = 0;
}

/* Has so many bytes in the window, which has room for them. */
static bool need_slow(struct rdb_reader *reader, size_t size)
{
    if (reader->status != STATUS_OK)
        return false;
    compact(reader);
    while (reader->end - reader->at < size) {
        size_t got;

        if (!fill(reader, &got))
            return false;
        if (got == 0)
            return fail_end(reader);
    }
    return true;
}

static inline bool need(struct rdb_reader *reader, size_t size)
{
    return LIKELY(reader->end - reader->at >= size && reader->status == STATUS_OK) || need_slow(reader, size);
}

/* Reads more than the window holds, step by step, so that memory is at most twice the received bytes. */
static bool read_long(struct rdb_reader *reader, size_t size, struct slice *bytes)
{
    struct buffer *scratch = &reader->scratch;

    buffer_clear(scratch);
    if (scratch->capacity > SCRATCH_KEPT_BYTES)
        buffer_fini(scratch);
    for (;;) {
        size_t part = MIN(reader->end - reader->at, size - scratch->size), got;

        if (!buffer_try_reserve(scratch, MIN((size_t)STEP_BYTES, size - scratch->size)))
            return rdb_fail(reader, STATUS_NO_MEMORY, "not enough memory for a string of %zu bytes", size);
        buffer_append(scratch, reader->window + reader->at, part);
        reader->at += part;
        if (scratch->size == size)
            break;
        compact(reader);
        if (!fill(reader, &got))
            return false;
        if (got == 0)
            return fail_end(reader);
    }
    *bytes = buffer_slice(scratch);
    return true;
}

bool rdb_read_bytes(struct rdb_reader *reader, uint64_t size, struct slice *bytes)
{
    if (reader->status != STATUS_OK)
        return false;
    if (size > rdb_reader_left(reader))
        return rdb_fail(reader, STATUS_TRUNCATED, "a string claims %llu bytes, more than the file has",
                        (unsigned long long)size);
    if (UNLIKELY(reader->source != NULL && size > reader->capacity))
        return read_long(reader, size, bytes);
    if (!need(reader, size))
        return false;
    *bytes = slice_make(reader->window + reader->at, size);
    reader->at += size;
    return true;
}

bool rdb_skip_bytes(struct rdb_reader *reader, uint64_t size)
{
    if (size > rdb_reader_left(reader))
        return rdb_fail(reader, STATUS_TRUNCATED, "a string claims %llu bytes, more than the file has",
                        (unsigned long long)size);
    while (size > reader->end - reader->at) {
        size -= reader->end - reader->at;
        reader->at = reader->end;
        if (!need_slow(reader, 1))
            return false;
    }
    reader->at += size;
    return reader->status == STATUS_OK;
}

bool rdb_read_byte(struct rdb_reader *reader, unsigned *byte)
{
    if (!need(reader, 1))
        return false;
    *byte = (unsigned char)reader->window[reader->at++];
    return true;
}

bool rdb_peek_byte(struct rdb_reader *reader, unsigned *byte)
{
    size_t got;

    if (reader->status != STATUS_OK)
        return false;
    if (reader->at == reader->end) {
        compact(reader);
        if (!fill(reader, &got) || got == 0)
            return false;
    }
    *byte = (unsigned char)reader->window[reader->at];
    return true;
}

/* ---------------------------------------------------------------------------------------------------- numbers -- */

static uint64_t get_little(const char *from, unsigned bytes)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < bytes; i++)
        number |= (uint64_t)(unsigned char)from[i] << (8 * i);
    return number;
}

static uint64_t get_big(const char *from, unsigned bytes)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < bytes; i++)
        number = number << 8 | (unsigned char)from[i];
    return number;
}

static bool read_little(struct rdb_reader *reader, unsigned bytes, uint64_t *number)
{
    if (!need(reader, bytes))
        return false;
    *number = get_little(reader->window + reader->at, bytes);
    reader->at += bytes;
    return true;
}

static bool read_big(struct rdb_reader *reader, unsigned bytes, uint64_t *number)
{
    if (!need(reader, bytes))
        return false;
    *number = get_big(reader->window + reader->at, bytes);
    reader->at += bytes;
    return true;
}

bool rdb_read_u16(struct rdb_reader *reader, uint16_t *number)
{
    uint64_t wide = 0;
    bool good = read_little(reader, 2, &wide);

    *number = (uint16_t)wide;
    return good;
}

bool rdb_read_u32(struct rdb_reader *reader, uint32_t *number)
{
    uint64_t wide = 0;
    bool good = read_little(reader, 4, &wide);

    *number = (uint32_t)wide;
    return good;
}

bool rdb_read_u64(struct rdb_reader *reader, uint64_t *number)
{
    return read_little(reader, 8, number);
}

bool rdb_read_i64(struct rdb_reader *reader, int64_t *number)
{
    uint64_t bits = 0;
    bool good = read_little(reader, 8, &bits);

    *number = (int64_t)bits;
    return good;
}

bool rdb_read_double(struct rdb_reader *reader, double *number)
{
    uint64_t bits;

    if (!read_little(reader, 8, &bits))
        return false;
    memcpy(number, &bits, sizeof(*number));
    return true;
}

bool rdb_read_double_text(struct rdb_reader *reader, double *number)
{
    struct slice text;
    unsigned size;

    if (!rdb_read_byte(reader, &size))
        return false;
    if (size >= 253) {
        *number = size == 253 ? NAN : size == 254 ? INFINITY : -INFINITY;
        return true;
    }
    if (!rdb_read_bytes(reader, size, &text))
        return false;
    return number_parse_double(text, number) || rdb_corrupt(reader, "a score is not a number");
}

/* A length, or the form of a special text (*form, else -1). */
static bool read_length_or_form(struct rdb_reader *reader, uint64_t *length, int *form)
{
    unsigned byte;

    *form = -1;
    if (!rdb_read_byte(reader, &byte))
        return false;
    switch (byte >> 6) {
    case 0:
        *length = byte;
        return true;
    case 1:
        *length = (byte & 63) << 8;
        if (!rdb_read_byte(reader, &byte))
            return false;
        *length |= byte;
        return true;
    case 3:
        *form = (int)(byte & 63);
        return true;
    default:
        break;
    }
    if (byte == 0x80)
        return read_big(reader, 4, length);
    if (byte == 0x81)
        return read_big(reader, 8, length);
    return rdb_fail(reader, STATUS_CORRUPT, "invalid length byte 0x%02x", byte);
}

bool rdb_read_length(struct rdb_reader *reader, uint64_t *length)
{
    int form;

    if (!read_length_or_form(reader, length, &form))
        return false;
    return form < 0 || rdb_corrupt(reader, "a string stands where a length is expected");
}

bool rdb_read_count(struct rdb_reader *reader, unsigned least_bytes, uint64_t *count)
{
    assert(least_bytes != 0);
    if (!rdb_read_length(reader, count))
        return false;
    if (*count > rdb_reader_left(reader) / least_bytes)
        return rdb_fail(reader, STATUS_TRUNCATED, "%llu elements are claimed, more than the file can have",
                        (unsigned long long)*count);
    return true;
}

/* ------------------------------------------------------------------------------------------------------ texts -- */

static bool read_number_text(struct rdb_reader *reader, unsigned bytes, struct slice *text)
{
    uint64_t bits;
    int64_t number;

    if (!read_little(reader, bytes, &bits))
        return false;
    number = (int64_t)(bits << (64 - 8 * bytes)) >> (64 - 8 * bytes);
    *text = slice_make(reader->digits, number_format_i64(reader->digits, number));
    return true;
}

static bool read_compressed(struct rdb_reader *reader, struct slice *text)
{
    uint64_t size, original;
    struct slice compressed;
    struct buffer *unpacked = &reader->unpacked;

    if (!rdb_read_length(reader, &size) || !rdb_read_length(reader, &original))
        return false;
    if (size > rdb_reader_left(reader) || original / LZF_EXPANSION > size || original == 0 || original > UINT32_MAX ||
        size > UINT32_MAX)
        return rdb_corrupt(reader, "a compressed string has an impossible size");
    if (!rdb_read_bytes(reader, size, &compressed))
        return false;
    buffer_clear(unpacked);
    if (unpacked->capacity > SCRATCH_KEPT_BYTES && original <= SCRATCH_KEPT_BYTES)
        buffer_fini(unpacked);
    if (!buffer_try_reserve(unpacked, original))
        return rdb_fail(reader, STATUS_NO_MEMORY, "not enough memory for a string of %llu bytes",
                        (unsigned long long)original);
    if (lzf_decompress(compressed.data, (unsigned)size, unpacked->data, (unsigned)original) != original)
        return rdb_corrupt(reader, "a compressed string is damaged");
    unpacked->size = original;
    *text = buffer_slice(unpacked);
    return true;
}

bool rdb_read_text(struct rdb_reader *reader, struct slice *text)
{
    uint64_t length;
    int form;

    if (!read_length_or_form(reader, &length, &form))
        return false;
    switch (form) {
    case -1:
        return rdb_read_bytes(reader, length, text);
    case RDB_TEXT_I8:
        return read_number_text(reader, 1, text);
    case RDB_TEXT_I16:
        return read_number_text(reader, 2, text);
    case RDB_TEXT_I32:
        return read_number_text(reader, 4, text);
    case RDB_TEXT_LZF:
        return read_compressed(reader, text);
    default:
        return rdb_fail(reader, STATUS_CORRUPT, "unknown string encoding %d", form);
    }
}

bool rdb_skip_text(struct rdb_reader *reader)
{
    uint64_t length, original;
    int form;

    if (!read_length_or_form(reader, &length, &form))
        return false;
    switch (form) {
    case -1:
        return rdb_skip_bytes(reader, length);
    case RDB_TEXT_I8:
    case RDB_TEXT_I16:
    case RDB_TEXT_I32:
        return rdb_skip_bytes(reader, UINT64_C(1) << form);
    case RDB_TEXT_LZF:
        return rdb_read_length(reader, &length) && rdb_read_length(reader, &original) && rdb_skip_bytes(reader, length);
    default:
        return rdb_fail(reader, STATUS_CORRUPT, "unknown string encoding %d", form);
    }
}

bool rdb_read_texts(struct rdb_reader *reader, struct slice *first, struct slice *second)
{
    if (!rdb_read_text(reader, first))
        return false;
    buffer_clear(&reader->first);
    buffer_append_slice(&reader->first, *first);
    if (!rdb_read_text(reader, second))
        return false;
    *first = buffer_slice(&reader->first);
    return true;
}
