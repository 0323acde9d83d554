#include "persist/rdb_file.h"

#include "base/number.h"
#include "persist/rdb_module.h"
#include "persist/rdb_skim.h"

#include <inttypes.h>
#include <limits.h>

#define NO_DEADLINE_MS INT64_MAX /* KeyDB's, between active replicas */

struct file_reader {
    struct rdb_reader *reader;
    struct rdb_handler *handler;
    struct rdb_key key; /* facts about the next key */
    struct buffer name;
    struct buffer member; /* whose deadline comes next */
};

static void forget_key(struct file_reader *file)
{
    file->key.expire_ms = EXPIRE_NEVER;
    file->key.idle_s = -1;
    file->key.frequency = -1;
}

static bool read_header(struct file_reader *file)
{
    struct slice bytes;
    uint64_t version;

    if (!rdb_read_bytes(file->reader, RDB_HEADER_BYTES, &bytes))
        return false;
    if (slice_starts_with(bytes, SLICE("VALKEY")))
        return rdb_fail(file->reader, STATUS_UNSUPPORTED,
                        "it is an RDB file of Valkey 9 or later (%.*s), whose format differs", (int)bytes.size,
                        bytes.data);
    if (!slice_starts_with(bytes, SLICE("REDIS")))
        return rdb_corrupt(file->reader, "it is not an RDB file: it does not begin with REDIS");
    bytes = slice_skip(bytes, 5);
    while (bytes.size > 1 && bytes.data[0] == '0')
        bytes = slice_skip(bytes, 1);
    if (!number_parse_u64(bytes, &version) || version < RDB_VERSION_LEAST)
        return rdb_corrupt(file->reader, "the version is not a number");
    if (version > RDB_VERSION_MOST)
        return rdb_fail(file->reader, STATUS_UNSUPPORTED, "it has version %" PRIu64 "; versions up to %d are supported",
                        version, RDB_VERSION_MOST);
    file->handler->version = (int)version;
    return true;
}

/* ------------------------------------------------------------------------------------------------------- keys -- */

/* Deadlines of members follow the value. */
static bool read_members(struct file_reader *file, struct rdb_value *value)
{
    struct slice name, text;
    unsigned opcode;

    while (rdb_peek_byte(file->reader, &opcode) && opcode == RDB_AUX) {
        if (!rdb_read_byte(file->reader, &opcode) || !rdb_read_texts(file->reader, &name, &text))
            return false;
        if (rdb_value_take_record(value, &file->member, name, text))
            continue;
        if (file->handler->aux != NULL && !slice_equal(name, RDB_AUX_STAMP))
            file->handler->aux(file->handler, name, text);
    }
    return file->reader->status == STATUS_OK;
}

static bool read_name(struct file_reader *file)
{
    struct slice name;

    if (!rdb_read_text(file->reader, &name))
        return false;
    buffer_clear(&file->name);
    buffer_append_slice(&file->name, name);
    file->key.name = buffer_slice(&file->name);
    return true;
}

/* Like read_members, for readers that parse them later: only checks that they are such records. */
static bool skim_members(struct file_reader *file)
{
    struct slice name, text;
    unsigned opcode;

    while (rdb_peek_byte(file->reader, &opcode) && opcode == RDB_AUX) {
        if (!rdb_read_byte(file->reader, &opcode) || !rdb_read_texts(file->reader, &name, &text))
            return false;
        if (file->handler->aux != NULL && !slice_equal(name, RDB_AUX_STAMP) && !slice_equal(name, RDB_AUX_MEMBER) &&
            !slice_equal(name, RDB_AUX_MEMBER_MS))
            file->handler->aux(file->handler, name, text);
    }
    return file->reader->status == STATUS_OK;
}

static bool skim_key(struct file_reader *file, const struct rdb_form *form)
{
    struct rdb_reader *reader = file->reader;
    struct slice record;
    bool good;

    rdb_reader_mark(reader);
    good = read_name(file) && rdb_skim_value(reader, form);
    file->key.bytes = rdb_reader_offset(reader) - file->key.offset;
    good = good && (file->key.type == RDB_STRING || skim_members(file));
    good = rdb_reader_marked(reader, &record) && good &&
           file->handler->record(file->handler, reader, &file->key, record);
    forget_key(file);
    return good;
}

static bool read_key(struct file_reader *file, unsigned type)
{
    struct rdb_reader *reader = file->reader;
    const struct rdb_form *form = rdb_form_of(type);
    struct rdb_value value;
    bool good;

    file->key.type = type;
    file->key.offset = rdb_reader_offset(reader) - 1;
    if (form == NULL)
        return rdb_fail(reader, STATUS_CORRUPT, "unknown record type %u", type);
    if (file->handler->record != NULL && rdb_can_skim(form))
        return skim_key(file, form);
    if (!read_name(file) || !rdb_read_value(reader, type, &file->handler->limits, &value))
        return false;
    file->key.bytes = rdb_reader_offset(reader) - file->key.offset;
    good = (value.type == TYPE_STRING || value.is_strange || read_members(file, &value)) &&
           file->handler->key(file->handler, reader, &file->key, &value);
    rdb_value_destroy(&value);
    forget_key(file);
    return good;
}

/* Bytes of the record itself stay where they are; others are the reader's, and copied. */
static struct slice keep_name(struct slice name, const struct rdb_reader *reader, struct buffer *scratch)
{
    if (name.data >= reader->window && name.data < reader->window + reader->end)
        return name;
    buffer_clear(scratch);
    buffer_append_slice(scratch, name);
    return buffer_slice(scratch);
}

bool rdb_read_record(struct rdb_reader *reader, const struct rdb_limits *limits, struct buffer *scratch,
                     struct slice *name, struct rdb_value *value)
{
    unsigned type;

    assert(reader->source == NULL && reader->at == 0);
    if (!rdb_read_byte(reader, &type) || !rdb_read_text(reader, name))
        return false;
    *name = keep_name(*name, reader, scratch);
    if (!rdb_read_value(reader, type, limits, value))
        return false;
    if (value->type == TYPE_STRING || value->is_empty || rdb_value_read_members(reader, value))
        return true;
    rdb_value_destroy(value);
    return false;
}

/* ---------------------------------------------------------------------------------------------- other records -- */

static bool read_expire(struct file_reader *file, bool in_ms)
{
    uint32_t seconds;

    if (in_ms) {
        if (!rdb_read_i64(file->reader, &file->key.expire_ms))
            return false;
        if (file->key.expire_ms == NO_DEADLINE_MS)
            file->key.expire_ms = EXPIRE_NEVER;
        else if (file->key.expire_ms < 0)
            file->key.expire_ms = 0; /* long ago */
        return true;
    }
    if (!rdb_read_u32(file->reader, &seconds))
        return false;
    file->key.expire_ms = (int64_t)(int32_t)seconds * 1000;
    if (file->key.expire_ms < 0)
        file->key.expire_ms = 0;
    return true;
}

static bool read_aux(struct file_reader *file)
{
    struct slice name, text;

    if (!rdb_read_texts(file->reader, &name, &text))
        return false;
    if (file->handler->aux != NULL && !slice_equal(name, RDB_AUX_STAMP))
        file->handler->aux(file->handler, name, text);
    return true;
}

static bool read_select(struct file_reader *file)
{
    uint64_t db;

    if (!rdb_read_length(file->reader, &db))
        return false;
    if (db >= file->handler->database_count)
        return rdb_fail(file->reader, STATUS_UNSUPPORTED, "it has keys in database %" PRIu64 ", and `databases` is %u",
                        db, file->handler->database_count);
    file->key.db = (unsigned)db;
    return true;
}

static bool read_sizes(struct file_reader *file)
{
    uint64_t keys, expires;

    if (!rdb_read_length(file->reader, &keys) || !rdb_read_length(file->reader, &expires))
        return false;
    if (file->handler->sizes != NULL)
        file->handler->sizes(file->handler, file->key.db, keys, expires);
    return true;
}

static bool read_slot_info(struct file_reader *file)
{
    uint64_t slot_facts[3]; /* number of the slot, its keys, its keys with a deadline */

    for (size_t i = 0; i < countof(slot_facts); i++)
        if (!rdb_read_length(file->reader, &slot_facts[i]))
            return false;
    return true;
}

static bool read_library(struct file_reader *file)
{
    struct slice source;

    if (!rdb_read_text(file->reader, &source))
        return false;
    if (file->handler->library == NULL)
        return rdb_fail(file->reader, STATUS_UNSUPPORTED, "it has functions, which are not supported here");
    return file->handler->library(file->handler, file->reader, source);
}

static bool read_module_aux(struct file_reader *file)
{
    uint64_t id, opcode, when;
    char name[10];

    if (!rdb_read_length(file->reader, &id) || !rdb_read_length(file->reader, &opcode) ||
        !rdb_read_length(file->reader, &when))
        return false;
    if (opcode != RDB_MODULE_UNSIGNED)
        return rdb_corrupt(file->reader, "a record of a module is damaged");
    rdb_module_name(id, name);
    if (!file->handler->limits.skips_strange)
        return rdb_fail(file->reader, STATUS_UNSUPPORTED, "data of the unknown module '%s'", name);
    return rdb_skip_module_items(file->reader);
}

static bool read_idle(struct file_reader *file)
{
    uint64_t seconds;

    if (!rdb_read_length(file->reader, &seconds))
        return false;
    file->key.idle_s = (int64_t)MIN(seconds, (uint64_t)INT64_MAX);
    return true;
}

static bool read_frequency(struct file_reader *file)
{
    unsigned byte;

    if (!rdb_read_byte(file->reader, &byte))
        return false;
    file->key.frequency = (int)byte;
    return true;
}

static bool read_record(struct file_reader *file, unsigned opcode)
{
    switch (opcode) {
    case RDB_EXPIRE_MS:
    case RDB_EXPIRE_S:
        return read_expire(file, opcode == RDB_EXPIRE_MS);
    case RDB_AUX:
        return read_aux(file);
    case RDB_SELECT:
        return read_select(file);
    case RDB_RESIZE:
        return read_sizes(file);
    case RDB_SLOT_INFO:
        return read_slot_info(file);
    case RDB_FUNCTION:
        return read_library(file);
    case RDB_FUNCTION_EARLY:
        return rdb_fail(file->reader, STATUS_UNSUPPORTED, "it has functions in the form of 7.0 release candidates");
    case RDB_MODULE_AUX:
        return read_module_aux(file);
    case RDB_IDLE:
        return read_idle(file);
    case RDB_FREQUENCY:
        return read_frequency(file);
    default:
        return read_key(file, opcode);
    }
}

/* Zero: the file was written without a checksum. */
static bool check_sum(struct file_reader *file)
{
    uint64_t computed = rdb_reader_crc(file->reader), stored;

    if (file->handler->version < RDB_VERSION_WITH_CHECKSUM)
        return true;
    if (!rdb_read_u64(file->reader, &stored))
        return false;
    if (stored != 0 && file->reader->sums && stored != computed)
        return rdb_fail(file->reader, STATUS_CORRUPT,
                        "CRC error: the checksum is %016" PRIx64 ", and %016" PRIx64 " is stored", computed, stored);
    file->handler->has_checksum = stored != 0;
    return true;
}

static bool read_records(struct file_reader *file)
{
    unsigned opcode;

    do {
        if (!rdb_read_byte(file->reader, &opcode) || (opcode != RDB_END && !read_record(file, opcode)))
            return false;
    } while (opcode != RDB_END);
    return true;
}

bool rdb_read_file(struct rdb_reader *reader, struct rdb_handler *handler)
{
    struct file_reader file = {.reader = reader, .handler = handler};
    bool good;

    assert(rdb_reader_offset(reader) == 0 && handler->key != NULL);
    forget_key(&file);
    good = read_header(&file) && read_records(&file) && check_sum(&file);
    buffer_fini(&file.name);
    buffer_fini(&file.member);
    assert(good == (reader->status == STATUS_OK));
    return good;
}
