#include "persist/rdb_file.h"

#include "base/mem.h"
#include "base/number.h"
#include "persist/rdb_module.h"
#include "persist/rdb_skim.h"
#include "store/stamp.h"

#include <inttypes.h>
#include <limits.h>

#define NO_DEADLINE_MS INT64_MAX /* in files of KeyDB's active replicas, which have stamps; elsewhere a deadline */

enum { ORIGIN_BYTES = 8, VERSION_BYTES = 8, UNKNOWN = VERSION_ORIGINS - 1 };

struct rdb_walk {
    struct rdb_reader *reader;
    struct rdb_handler *handler;
    struct rdb_key key; /* facts about the next key */
    struct buffer name;
    struct buffer member;  /* whose deadline comes next */
    uint64_t next_version; /* of the key behind this one: it stands behind this one's value */
    uint64_t next_mvcc;    /* of all keys behind this one */
    bool has_begun;
    bool has_mvcc; /* it gives KeyDB's stamps */
    bool has_origins;
    unsigned origin_count;
    uint8_t origins[VERSION_ORIGINS]; /* local numbers by those of the file */
};

static void forget_key(struct rdb_walk *file)
{
    file->key.expire_ms = EXPIRE_NEVER;
    file->key.idle_s = -1;
    file->key.frequency = -1;
    file->key.version = file->next_version;
    file->next_version = 0;
    file->key.mvcc = file->next_mvcc;
}

/* "REDIS" and 4 digits, or "VALKEY" and 3. */
static bool read_header(struct rdb_walk *file)
{
    struct slice bytes;
    uint64_t version;
    bool is_valkey;

    if (!rdb_read_bytes(file->reader, RDB_HEADER_BYTES, &bytes))
        return false;
    is_valkey = slice_starts_with(bytes, SLICE("VALKEY"));
    if (!is_valkey && !slice_starts_with(bytes, SLICE("REDIS")))
        return rdb_corrupt(file->reader, "it is not an RDB file: it begins with neither REDIS nor VALKEY");
    bytes = slice_skip(bytes, is_valkey ? 6 : 5);
    while (bytes.size > 1 && bytes.data[0] == '0')
        bytes = slice_skip(bytes, 1);
    if (!number_parse_u64(bytes, &version) || version < RDB_VERSION_LEAST)
        return rdb_corrupt(file->reader, "the version is not a number");
    if (version != RDB_VERSION_VALKEY && (is_valkey || version > RDB_VERSION_MOST))
        return rdb_fail(file->reader, STATUS_UNSUPPORTED,
                        "it has version %" PRIu64 "%s; versions up to %d are supported, and Valkey's %d", version,
                        is_valkey ? " of Valkey" : "", RDB_VERSION_MOST, RDB_VERSION_VALKEY);
    file->handler->version = (int)version;
    file->reader->version = (int)version;
    return true;
}

/* --------------------------------------------------------------------------------------------------- versions -- */

static uint64_t u64_at(struct slice bytes, size_t at)
{
    uint64_t number = 0;

    assert(bytes.size >= at + sizeof(number));
    for (size_t i = sizeof(number); i-- != 0;)
        number = number << 8 | (unsigned char)bytes.data[at + i];
    return number;
}

static void take_origin(struct rdb_walk *file, uint64_t id)
{
    struct rdb_handler *handler = file->handler;
    const unsigned number = id != 0 && handler->origin != NULL ? handler->origin(handler, id) : UNKNOWN;

    assert(number < VERSION_ORIGINS && file->origin_count < VERSION_ORIGINS);
    file->origins[file->origin_count++] = (uint8_t)number;
}

static bool read_origins(struct rdb_walk *file, struct slice ids)
{
    if (file->has_origins)
        return rdb_corrupt(file->reader, "it has two lists of origins");
    if (ids.size == 0 || ids.size % ORIGIN_BYTES != 0 || ids.size > (size_t)ORIGIN_BYTES * VERSION_ORIGINS)
        return rdb_corrupt(file->reader, "its list of origins has a wrong size");
    file->has_origins = true;
    for (size_t at = 0; at < ids.size; at += ORIGIN_BYTES)
        take_origin(file, u64_at(ids, at));
    return true;
}

static bool is_version(const struct rdb_walk *file, struct slice name)
{
    return file->has_origins && slice_equal(name, RDB_AUX_VERSION);
}

static bool read_version(struct rdb_walk *file, struct slice text, uint64_t *local)
{
    uint64_t version;
    unsigned number;

    if (text.size != VERSION_BYTES)
        return rdb_corrupt(file->reader, "a key's version has a wrong size");
    version = u64_at(text, 0);
    number = version_origin(version) < file->origin_count ? file->origins[version_origin(version)] : UNKNOWN;
    if (!stamp_is_possible(version_stamp(version)))
        return rdb_corrupt(file->reader, "a key's version has a time that stamps do not have");
    if (file->handler->origin != NULL)
        *local = version_make(version_stamp(version), version_overwrote(version), number);
    return true;
}

/* KeyDB says it where it differs from that of the key before. True if it is such a record. */
static bool take_mvcc(struct rdb_walk *file, struct slice name, struct slice text)
{
    uint64_t mvcc;

    if (!slice_equal(name, RDB_AUX_STAMP))
        return false;
    file->has_mvcc = true;
    if (number_parse_u64(text, &mvcc))
        file->next_mvcc = mvcc;
    return true;
}

/* ------------------------------------------------------------------------------------------------------- keys -- */

/* Deadlines of members follow the value; then the version of the next key may stand there. */
static bool read_members(struct rdb_walk *file, struct rdb_value *value)
{
    struct slice name, text;
    unsigned opcode;

    while (rdb_peek_byte(file->reader, &opcode) && opcode == RDB_AUX) {
        if (!rdb_read_byte(file->reader, &opcode) || !rdb_read_texts(file->reader, &name, &text))
            return false;
        if (is_version(file, name)) {
            if (!read_version(file, text, &file->next_version))
                return false;
            continue;
        }
        if (rdb_value_take_record(value, &file->member, name, text))
            continue;
        if (!take_mvcc(file, name, text) && file->handler->aux != NULL)
            file->handler->aux(file->handler, name, text);
    }
    return file->reader->status == STATUS_OK;
}

static bool read_name(struct rdb_walk *file)
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
static bool skim_members(struct rdb_walk *file)
{
    struct slice name, text;
    unsigned opcode;

    while (rdb_peek_byte(file->reader, &opcode) && opcode == RDB_AUX) {
        if (!rdb_read_byte(file->reader, &opcode) || !rdb_read_texts(file->reader, &name, &text))
            return false;
        if (is_version(file, name)) {
            if (!read_version(file, text, &file->next_version))
                return false;
            continue;
        }
        if (!take_mvcc(file, name, text) && file->handler->aux != NULL && !slice_equal(name, RDB_AUX_MEMBER) &&
            !slice_equal(name, RDB_AUX_MEMBER_MS))
            file->handler->aux(file->handler, name, text);
    }
    return file->reader->status == STATUS_OK;
}

/* Of a form that cannot be skimmed the value is made, and forgotten. */
static bool pass_value(struct rdb_walk *file, const struct rdb_form *form)
{
    struct rdb_value value;

    if (rdb_can_skim(form))
        return rdb_skim_value(file->reader, form);
    if (!rdb_read_value(file->reader, file->key.type, &file->handler->limits, &value))
        return false;
    rdb_value_destroy(&value);
    return true;
}

static bool skim_key(struct rdb_walk *file, const struct rdb_form *form)
{
    struct rdb_reader *reader = file->reader;
    struct slice record;
    bool good;

    rdb_reader_mark(reader);
    good = read_name(file);
    file->key.value_at = rdb_reader_offset(reader) - file->key.offset;
    good = good && pass_value(file, form);
    file->key.bytes = rdb_reader_offset(reader) - file->key.offset;
    good = good && (file->key.type == RDB_STRING || skim_members(file));
    good = rdb_reader_marked(reader, &record) && good &&
           file->handler->record(file->handler, reader, &file->key, record);
    forget_key(file);
    return good;
}

/* Of other servers, which are newer. */
static bool refuse_record(struct rdb_reader *reader, unsigned type)
{
    static const struct {
        unsigned type;
        const char *what;
    } known[] = {
        {28, "an array, as in Redis 8.8"},
        {243, "metadata of a key, as in Redis 8.x, or slots that are moved, as in Valkey 9"},
    };

    for (size_t i = 0; i < countof(known); i++) {
        if (known[i].type == type)
            return rdb_fail(reader, STATUS_UNSUPPORTED, "a record of type %u (%s) is not supported", type,
                            known[i].what);
    }
    return rdb_fail(reader, STATUS_CORRUPT, "unknown record type %u", type);
}

static bool read_key(struct rdb_walk *file, unsigned opcode)
{
    struct rdb_reader *reader = file->reader;
    const unsigned type = rdb_type_in(reader->version, opcode);
    const struct rdb_form *form = rdb_form_of(type);
    struct rdb_value value;
    bool good;

    file->key.type = type;
    file->key.offset = rdb_reader_offset(reader) - 1;
    if (file->has_mvcc && file->key.expire_ms == NO_DEADLINE_MS) /* the stamp stands behind the deadline */
        file->key.expire_ms = EXPIRE_NEVER;
    if (form == NULL)
        return refuse_record(reader, type);
    if (file->handler->record != NULL && (file->handler->takes_all_records || rdb_can_skim(form)))
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

static bool read_expire(struct rdb_walk *file, bool in_ms)
{
    uint32_t seconds;

    if (in_ms) {
        if (!rdb_read_i64(file->reader, &file->key.expire_ms))
            return false;
        if (file->key.expire_ms < 0)
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

static bool read_aux(struct rdb_walk *file)
{
    struct slice name, text;

    if (!rdb_read_texts(file->reader, &name, &text))
        return false;
    if (is_version(file, name))
        return read_version(file, text, &file->key.version);
    if (slice_equal(name, RDB_AUX_ORIGINS))
        return read_origins(file, text);
    if (take_mvcc(file, name, text))
        file->key.mvcc = file->next_mvcc;
    else if (file->handler->aux != NULL)
        file->handler->aux(file->handler, name, text);
    return true;
}

static bool read_select(struct rdb_walk *file)
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

static bool read_sizes(struct rdb_walk *file)
{
    uint64_t keys, expires;

    if (!rdb_read_length(file->reader, &keys) || !rdb_read_length(file->reader, &expires))
        return false;
    if (file->handler->sizes != NULL)
        file->handler->sizes(file->handler, file->key.db, keys, expires);
    return true;
}

static bool read_slot_info(struct rdb_walk *file)
{
    uint64_t slot_facts[3]; /* number of the slot, its keys, its keys with a deadline */

    for (size_t i = 0; i < countof(slot_facts); i++)
        if (!rdb_read_length(file->reader, &slot_facts[i]))
            return false;
    return true;
}

static bool read_library(struct rdb_walk *file)
{
    struct slice source;

    if (!rdb_read_text(file->reader, &source))
        return false;
    if (file->handler->library == NULL)
        return rdb_fail(file->reader, STATUS_UNSUPPORTED, "it has functions, which are not supported here");
    return file->handler->library(file->handler, file->reader, source);
}

static bool read_module_aux(struct rdb_walk *file)
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

static bool read_idle(struct rdb_walk *file)
{
    uint64_t seconds;

    if (!rdb_read_length(file->reader, &seconds))
        return false;
    file->key.idle_s = (int64_t)MIN(seconds, (uint64_t)INT64_MAX);
    return true;
}

static bool read_frequency(struct rdb_walk *file)
{
    unsigned byte;

    if (!rdb_read_byte(file->reader, &byte))
        return false;
    file->key.frequency = (int)byte;
    return true;
}

static bool read_record(struct rdb_walk *file, unsigned opcode)
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
static bool check_sum(struct rdb_walk *file)
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

struct rdb_walk *rdb_walk_create(struct rdb_reader *reader, struct rdb_handler *handler)
{
    struct rdb_walk *walk = mem_alloc_zero(sizeof(*walk));

    assert(rdb_reader_offset(reader) == 0 && (handler->key != NULL || handler->takes_all_records));
    walk->reader = reader;
    walk->handler = handler;
    forget_key(walk);
    return walk;
}

void rdb_walk_destroy(struct rdb_walk **handle)
{
    struct rdb_walk *walk = *handle;

    *handle = NULL;
    if (walk == NULL)
        return;
    buffer_fini(&walk->name);
    buffer_fini(&walk->member);
    mem_free(walk);
}

enum rdb_step rdb_walk_next(struct rdb_walk *walk)
{
    unsigned opcode;

    if (!walk->has_begun) {
        walk->has_begun = true;
        return read_header(walk) ? RDB_STEP_MORE : RDB_STEP_FAILED;
    }
    if (!rdb_read_byte(walk->reader, &opcode))
        return RDB_STEP_FAILED;
    if (opcode == RDB_END)
        return check_sum(walk) ? RDB_STEP_END : RDB_STEP_FAILED;
    return read_record(walk, opcode) ? RDB_STEP_MORE : RDB_STEP_FAILED;
}

bool rdb_read_file(struct rdb_reader *reader, struct rdb_handler *handler)
{
    struct rdb_walk *walk = rdb_walk_create(reader, handler);
    enum rdb_step step;

    do {
        step = rdb_walk_next(walk);
    } while (step == RDB_STEP_MORE);
    rdb_walk_destroy(&walk);
    assert((step == RDB_STEP_END) == (reader->status == STATUS_OK));
    return step == RDB_STEP_END;
}
