#include "persist/rdb_payload.h"

#include "base/assert.h"
#include "base/crc64.h"
#include "persist/types.h"

#include <stdatomic.h>

static _Atomic bool skips_checksums; /* global: atomic, relaxed; for tests */

void rdb_skip_checksums(bool on)
{
    atomic_store_explicit(&skips_checksums, on, memory_order_relaxed);
}

bool rdb_skips_checksums(void)
{
    return atomic_load_explicit(&skips_checksums, memory_order_relaxed);
}

void rdb_payload_write(struct rdb_writer *writer, const struct entry *entry)
{
    const struct rdb_form *form = rdb_write_form_of(writer, entry);

    assert(writer->sink == NULL && writer->out.size == 0);
    rdb_write_byte(writer, rdb_type_byte(form->number));
    rdb_write_value(writer, form, entry);
    rdb_write_records(writer, form, entry); /* readers that do not know these records skip them */
    rdb_payload_seal(writer);
}

void rdb_payload_seal(struct rdb_writer *writer)
{
    assert(writer->sink == NULL || writer->options.checksums);
    rdb_write_byte(writer, (unsigned)writer->version & 0xff);
    rdb_write_byte(writer, (unsigned)writer->version >> 8);
    rdb_write_u64(writer, crc64_update(writer->crc, writer->out.data, writer->out.size));
}

bool rdb_payload_begin(struct rdb_writer *writer, struct rdb_elements *elements, const struct entry *entry,
                       int64_t first_ms, uint64_t count)
{
    const struct rdb_form *form = rdb_elements_begin(elements, writer, entry, first_ms);

    assert(rdb_writer_offset(writer) == 0);
    rdb_write_byte(writer, rdb_type_byte(form->number));
    rdb_write_elements_head(writer, elements, count);
    return form->has_deadlines;
}

void rdb_payload_end(struct rdb_writer *writer, const struct rdb_elements *elements)
{
    rdb_write_elements_rest(writer, elements);
    rdb_payload_seal(writer);
}

int rdb_payload_version(struct slice payload)
{
    const uint8_t *tail;

    assert(payload.size >= RDB_PAYLOAD_TAIL_BYTES);
    tail = (const uint8_t *)payload.data + payload.size - RDB_PAYLOAD_TAIL_BYTES;
    return tail[0] | tail[1] << 8;
}

bool rdb_payload_check(struct slice payload, struct slice *body)
{
    const uint8_t *tail;
    uint64_t crc = 0;
    int version;

    if (payload.size < RDB_PAYLOAD_TAIL_BYTES)
        return false;
    tail = (const uint8_t *)payload.data + payload.size - RDB_PAYLOAD_TAIL_BYTES;
    version = rdb_payload_version(payload);
    if (version > RDB_VERSION_MOST && version != RDB_VERSION_VALKEY)
        return false;
    for (unsigned i = 0; i < 8; i++)
        crc |= (uint64_t)tail[2 + i] << (8 * i);
    *body = slice_make(payload.data, payload.size - RDB_PAYLOAD_TAIL_BYTES);
    return UNLIKELY(rdb_skips_checksums()) || crc == crc64_update(0, payload.data, payload.size - 8);
}

/* Reads deadlines of members. Other records are unknown and ignored. */
static void read_records(struct rdb_reader *reader, struct rdb_value *value)
{
    if (value->type != TYPE_STRING && !value->is_empty && !rdb_value_read_members(reader, value))
        return;
}

bool rdb_payload_read(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    unsigned type;

    assert(reader->source == NULL && reader->at == 0);
    if (!rdb_read_byte(reader, &type) || !rdb_read_value(reader, type, limits, value))
        return false;
    read_records(reader, value);
    return true;
}
