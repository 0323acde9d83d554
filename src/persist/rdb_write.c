#include "persist/rdb_write.h"

#include "base/crc64.h"
#include "base/number.h"
#include "data/stream_idmp.h"

#include <lzf.h>

enum {
    FLUSH_BYTES = 64 * 1024,
    INTEGER_TEXT_BYTES = 11, /* "-2147483648" */
    COMPRESSED_LEAST_BYTES = 21,
    COMPRESSED_LEAST_GAIN_BYTES = 4
};
#define COMPRESSED_MOST_BYTES ((size_t)1 << 30) /* the library counts in 32 bits */

void rdb_writer_init(struct rdb_writer *writer, const struct rdb_write_options *options, struct byte_sink *sink)
{
    assert(options->least >= RDB_VERSION_WRITTEN_LEAST && options->least <= options->most);
    assert(options->most <= (rdb_is_for_valkey(options) ? RDB_VERSION_VALKEY : RDB_VERSION_MOST));
    *writer = (struct rdb_writer){.options = *options, .sink = sink, .version = options->least};
}

void rdb_writer_fini(struct rdb_writer *writer)
{
    buffer_fini(&writer->out);
    buffer_fini(&writer->scratch);
    buffer_fini(&writer->text.packed);
    buffer_fini(&writer->text.sizes);
}

static void give(struct rdb_writer *writer, struct slice bytes)
{
    if (writer->status != STATUS_OK || bytes.size == 0)
        return;
    if (writer->options.checksums)
        writer->crc = crc64_update(writer->crc, bytes.data, bytes.size);
    writer->status = writer->sink->write(writer->sink, bytes);
    writer->flushed += bytes.size;
}

static void flush(struct rdb_writer *writer)
{
    if (writer->sink != NULL) {
        give(writer, buffer_slice(&writer->out));
        buffer_clear(&writer->out);
    }
}

enum status rdb_writer_flush(struct rdb_writer *writer)
{
    flush(writer);
    return writer->status;
}

static inline void flush_if_full(struct rdb_writer *writer)
{
    if (UNLIKELY(writer->out.size >= FLUSH_BYTES) && writer->sink != NULL)
        flush(writer);
}

void rdb_write_byte(struct rdb_writer *writer, unsigned byte)
{
    flush_if_full(writer);
    buffer_append_char(&writer->out, (char)byte);
}

void rdb_write_bytes(struct rdb_writer *writer, struct slice bytes)
{
    flush_if_full(writer);
    if (bytes.size >= FLUSH_BYTES && writer->sink != NULL) {
        flush(writer);
        give(writer, bytes);
        return;
    }
    buffer_append_slice(&writer->out, bytes);
}

static void put_little(char *to, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (char)(number >> (8 * i));
}

static void put_big(char *to, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (char)(number >> (8 * (bytes - 1 - i)));
}

/* Into `to`, which has room for 9 bytes; how many it took. */
static unsigned put_length(char *to, uint64_t length)
{
    if (length < 64) {
        to[0] = (char)length;
        return 1;
    }
    if (length < 16384) {
        put_big(to, 0x4000 | length, 2);
        return 2;
    }
    if (length <= UINT32_MAX) {
        to[0] = (char)0x80;
        put_big(to + 1, length, 4);
        return 5;
    }
    to[0] = (char)0x81;
    put_big(to + 1, length, 8);
    return 9;
}

void rdb_write_length(struct rdb_writer *writer, uint64_t length)
{
    flush_if_full(writer);
    writer->out.size += put_length(buffer_reserve(&writer->out, 9), length);
}

void rdb_write_count(struct rdb_writer *writer, uint64_t count)
{
    assert(writer->elements == 0);
    writer->elements = count;
    rdb_write_length(writer, count);
}

/* The integer form; false: it has none. */
static bool write_small_number(struct rdb_writer *writer, int64_t number)
{
    char *to;

    if (number < INT32_MIN || number > INT32_MAX)
        return false;
    to = buffer_reserve(&writer->out, 5);
    if (number >= INT8_MIN && number <= INT8_MAX) {
        to[0] = (char)(0xc0 | RDB_TEXT_I8);
        put_little(to + 1, (uint64_t)number, 1);
        writer->out.size += 2;
    } else if (number >= INT16_MIN && number <= INT16_MAX) {
        to[0] = (char)(0xc0 | RDB_TEXT_I16);
        put_little(to + 1, (uint64_t)number, 2);
        writer->out.size += 3;
    } else {
        to[0] = (char)(0xc0 | RDB_TEXT_I32);
        put_little(to + 1, (uint64_t)number, 4);
        writer->out.size += 5;
    }
    return true;
}

void rdb_write_compressed(struct rdb_writer *writer, struct slice compressed, size_t original)
{
    assert(compressed.size != 0 && compressed.size < original);
    rdb_write_byte(writer, 0xc0 | RDB_TEXT_LZF);
    rdb_write_length(writer, compressed.size);
    rdb_write_length(writer, original);
    rdb_write_bytes(writer, compressed);
}

/* False: nothing is gained. */
static bool compress_text(struct rdb_writer *writer, struct slice text)
{
    size_t most = text.size - COMPRESSED_LEAST_GAIN_BYTES;
    unsigned size;

    buffer_clear(&writer->scratch);
    size = lzf_compress(text.data, (unsigned)text.size, buffer_reserve(&writer->scratch, most), (unsigned)most);
    if (size == 0)
        return false;
    rdb_write_compressed(writer, slice_make(writer->scratch.data, size), text.size);
    return true;
}

void rdb_write_text(struct rdb_writer *writer, struct slice text)
{
    int64_t number;

    flush_if_full(writer);
    if (text.size <= INTEGER_TEXT_BYTES && text.size != 0 && text.data[0] <= '9' && number_parse_i64(text, &number) &&
        write_small_number(writer, number))
        return;
    if (text.size >= COMPRESSED_LEAST_BYTES && writer->options.compresses && text.size <= COMPRESSED_MOST_BYTES &&
        compress_text(writer, text))
        return;
    rdb_write_length(writer, text.size);
    rdb_write_bytes(writer, text);
}

struct packed_part {
    uint32_t packed, original; /* bytes */
};

void rdb_write_text_begin(struct rdb_writer *writer, uint64_t size)
{
    struct rdb_text *text = &writer->text;

    assert(text->left == 0);
    text->size = text->left = size;
    text->is_plain = !writer->options.compresses || size < COMPRESSED_LEAST_BYTES || size > COMPRESSED_MOST_BYTES;
    buffer_clear(&text->packed);
    buffer_clear(&text->sizes);
    if (text->is_plain)
        rdb_write_length(writer, size);
}

/* It is not worth it, or takes too much memory. */
static void write_plainly(struct rdb_writer *writer)
{
    struct rdb_text *text = &writer->text;
    const struct packed_part *parts = (const struct packed_part *)(const void *)text->sizes.data;
    const char *at = text->packed.data;

    text->is_plain = true;
    rdb_write_length(writer, text->size);
    for (size_t i = 0; i < text->sizes.size / sizeof(*parts); i++) {
        const struct packed_part part = parts[i];
        unsigned size;

        buffer_clear(&writer->scratch);
        size = lzf_decompress(at, part.packed, buffer_reserve(&writer->scratch, part.original), part.original);
        assert(size == part.original);
        rdb_write_bytes(writer, slice_make(writer->scratch.data, size));
        at += part.packed;
    }
    buffer_fini(&text->packed);
    buffer_fini(&text->sizes);
}

/* Compressed parts are a compressed text together: what they refer back to are distances, and within themselves. A part
 * that does not get smaller becomes some longer: it is compressed, too, as others may outweigh it. */
static bool pack_part(struct rdb_writer *writer, struct slice part)
{
    struct rdb_text *text = &writer->text;
    const size_t most = part.size + part.size / 16 + 64;
    const unsigned size = lzf_compress(part.data, (unsigned)part.size, buffer_reserve(&text->packed, most),
                                       (unsigned)most);
    const struct packed_part sizes = {size, (uint32_t)part.size};

    if (size == 0 || text->packed.size + size > RDB_PACKED_MOST_BYTES)
        return false;
    text->packed.size += size;
    buffer_append(&text->sizes, &sizes, sizeof(sizes));
    return true;
}

void rdb_write_text_part(struct rdb_writer *writer, struct slice part)
{
    struct rdb_text *text = &writer->text;

    assert(part.size <= text->left && part.size <= UINT32_MAX / 2);
    if (part.size == 0)
        return;
    text->left -= part.size;
    if (!text->is_plain && pack_part(writer, part))
        return;
    if (!text->is_plain)
        write_plainly(writer);
    rdb_write_bytes(writer, part);
}

void rdb_write_text_end(struct rdb_writer *writer)
{
    struct rdb_text *text = &writer->text;

    assert(text->left == 0);
    if (text->is_plain)
        return;
    if (text->packed.size > text->size - COMPRESSED_LEAST_GAIN_BYTES)
        write_plainly(writer);
    else
        rdb_write_compressed(writer, buffer_slice(&text->packed), text->size);
    buffer_fini(&text->packed);
    buffer_fini(&text->sizes);
}

void rdb_write_number(struct rdb_writer *writer, int64_t number)
{
    char text[NUMBER_I64_SPACE];
    size_t size;

    flush_if_full(writer);
    if (write_small_number(writer, number))
        return;
    size = number_format_i64(text, number);
    rdb_write_length(writer, size);
    rdb_write_bytes(writer, slice_make(text, size));
}

void rdb_write_u64(struct rdb_writer *writer, uint64_t number)
{
    char bytes[8];

    put_little(bytes, number, 8);
    rdb_write_bytes(writer, slice_make(bytes, sizeof(bytes)));
}

void rdb_write_double(struct rdb_writer *writer, double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof(bits));
    rdb_write_u64(writer, bits);
}

int rdb_version_for_all(void)
{
    return stream_idmp_is_used() ? RDB_VERSION_IDMP : RDB_VERSION_FIELD_DEADLINES;
}

void rdb_writer_need(struct rdb_writer *writer, int version)
{
    if (version > writer->version && version <= writer->options.most)
        writer->version = version;
}

bool rdb_may_have_deadlines(struct rdb_writer *writer)
{
    rdb_writer_need(writer, RDB_VERSION_FIELD_DEADLINES);
    return writer->version >= RDB_VERSION_FIELD_DEADLINES;
}

void rdb_write_deadline(struct rdb_writer *writer, int64_t expire_ms, int64_t least_ms)
{
    assert(expire_ms == EXPIRE_NEVER || expire_ms >= least_ms);
    rdb_write_length(writer, expire_ms == EXPIRE_NEVER ? 0 : (uint64_t)(expire_ms - least_ms) + 1);
}

void rdb_write_whole_deadline(struct rdb_writer *writer, int64_t expire_ms)
{
    rdb_write_u64(writer, expire_ms == EXPIRE_NEVER ? UINT64_MAX : (uint64_t)expire_ms);
}

void rdb_write_aux(struct rdb_writer *writer, struct slice name, struct slice value)
{
    rdb_write_byte(writer, RDB_AUX);
    rdb_write_text(writer, name);
    rdb_write_text(writer, value);
}
