/* Hashes, as files have them. */
#include "persist/types.h"

#include "data/hash.h"
#include "data/listpack.h"
#include "persist/distinct.h"
#include "store/subkey_ttl.h"

#define DEADLINE_MOST_MS ((INT64_C(1) << 48) - 1) /* of a field */

/* ----------------------------------------------------------------------------------------------------- reading -- */

static void begin_hash(struct rdb_value *value)
{
    value->type = TYPE_HASH;
    value->value = hash_create();
}

static bool put_pair(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value,
                     struct slice field, struct slice text)
{
    const struct slice texts[] = {field, text};

    if (!rdb_check_member(reader, field) || !rdb_check_member(reader, text))
        return false;
    hash_expect(&value->value, &limits->hash, texts, countof(texts));
    return hash_put(&value->value, &limits->hash, field, text) || rdb_corrupt(reader, "a hash has a duplicate field");
}

static bool put_deadline(struct rdb_reader *reader, struct rdb_value *value, struct slice field, int64_t expire_ms)
{
    if (expire_ms < 0 || expire_ms > DEADLINE_MOST_MS)
        return rdb_corrupt(reader, "a field's deadline is out of range");
    (void)deadlines_set(&value->members, field, expire_ms);
    return true;
}

static bool read_hash(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    struct slice field, text;
    uint64_t count;

    begin_hash(value);
    if (!rdb_read_count(reader, 2, &count))
        return false;
    for (; count != 0; count--) {
        if (!rdb_read_texts(reader, &field, &text) || !put_pair(reader, limits, value, field, text))
            return false;
    }
    return true;
}

/* Times are absolute, or count from the least one, plus one; 0: none. */
static bool read_hash_deadlines(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    bool relative = value->form == RDB_HASH_DEADLINES;
    int64_t least_ms = 1;
    uint64_t count, time;
    struct slice field, text;

    begin_hash(value);
    if ((relative && !rdb_read_i64(reader, &least_ms)) || !rdb_read_count(reader, 3, &count))
        return false;
    if (least_ms < 0 || least_ms > DEADLINE_MOST_MS)
        return rdb_corrupt(reader, "a field's deadline is out of range");
    for (; count != 0; count--) {
        if (!rdb_read_length(reader, &time) || !rdb_read_texts(reader, &field, &text) ||
            !put_pair(reader, limits, value, field, text))
            return false;
        if (time != 0 &&
            (time > (uint64_t)DEADLINE_MOST_MS || !put_deadline(reader, value, field, least_ms - 1 + (int64_t)time)))
            return rdb_corrupt(reader, "a field's deadline is out of range");
    }
    return true;
}

/* The deadline stands behind the value, by itself; -1: none. Only the field outlives it. */
static bool read_hash_valkey(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    struct buffer name = {0};
    bool good = true;
    uint64_t count;

    begin_hash(value);
    if (!rdb_read_count(reader, 1 + 1 + 8, &count))
        return false;
    for (; good && count != 0; count--) {
        struct slice field, text;
        int64_t expire_ms = -1;

        good = rdb_read_texts(reader, &field, &text) && put_pair(reader, limits, value, field, text);
        name.size = 0;
        if (good)
            buffer_append_slice(&name, field);
        good = good && rdb_read_i64(reader, &expire_ms);
        if (good && expire_ms != -1)
            good = put_deadline(reader, value, buffer_slice(&name), expire_ms);
    }
    buffer_fini(&name);
    return good;
}

static bool put_packed_pairs(struct rdb_reader *reader, struct packed *packed, const struct rdb_limits *limits,
                             struct rdb_value *value)
{
    begin_hash(value);
    if (packed->count % 2 != 0)
        return rdb_corrupt(reader, "a field has no value");
    while (packed->left != 0) {
        struct slice field = packed_next(packed);

        if (!put_pair(reader, limits, value, field, packed_next(packed)))
            return false;
    }
    return true;
}

static bool read_hash_packed(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    enum packed_kind kind = value->form == RDB_HASH_ZIPMAP ? PACKED_ZIPMAP : PACKED_ZIPLIST;
    struct packed packed;

    return rdb_open_packed(reader, kind, &packed) && put_packed_pairs(reader, &packed, limits, value);
}

/* True if the listpack can be used unchanged: its fields differ, and the limits allow it. */
static bool may_adopt_pairs(struct packed *packed, const struct hash_limits *limits)
{
    struct distinct fields = {0};
    struct buffer digits = {0}; /* of fields that are numbers: in place while `fields` is in use */
    bool may = packed->count % 2 == 0 && packed->count / 2 <= limits->listpack_entries;

    if (!may)
        return false;
    distinct_begin(&fields, packed->count / 2);
    (void)buffer_reserve(&digits, packed->count / 2 * NUMBER_I64_SPACE);
    while (may && packed->left != 0) {
        struct slice field = packed_next(packed), text = packed_next(packed);

        may = field.size <= limits->listpack_bytes && text.size <= limits->listpack_bytes;
        if (field.data == packed->digits[0] || field.data == packed->digits[1]) {
            size_t at = digits.size;

            buffer_append_slice(&digits, field);
            field.data = digits.data + at;
        }
        may = may && distinct_add(&fields, field);
    }
    packed_rewind(packed);
    distinct_fini(&fields);
    buffer_fini(&digits);
    return may;
}

static bool read_hash_listpack(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    struct packed packed;

    if (!rdb_open_packed(reader, PACKED_LISTPACK, &packed))
        return false;
    if (!may_adopt_pairs(&packed, &limits->hash))
        return put_packed_pairs(reader, &packed, limits, value);
    value->type = TYPE_HASH;
    value->value = (struct value){listpack_from_bytes(packed.bytes), ENCODING_LISTPACK};
    return true;
}

static bool read_hash_listpack_deadlines(struct rdb_reader *reader, const struct rdb_limits *limits,
                                         struct rdb_value *value)
{
    bool has_least = value->form == RDB_HASH_LISTPACK_DEADLINES;
    struct packed packed;
    int64_t expire_ms;

    begin_hash(value);
    if ((has_least && !rdb_read_i64(reader, &expire_ms)) || !rdb_open_packed(reader, PACKED_LISTPACK, &packed))
        return false;
    if (packed.count % 3 != 0)
        return rdb_corrupt(reader, "a field has no value or no deadline");
    while (packed.left != 0) {
        char digits[NUMBER_I64_SPACE];
        struct slice field = packed_next(&packed), text = packed_next(&packed);

        if (field.data == packed.digits[0] || field.data == packed.digits[1]) { /* the deadline takes its place */
            memcpy(digits, field.data, field.size);
            field.data = digits;
        }
        if (!put_pair(reader, limits, value, field, text))
            return false;
        if (!number_parse_i64(packed_next(&packed), &expire_ms))
            return rdb_corrupt(reader, "a field's deadline is not a number");
        if (expire_ms != 0 && !put_deadline(reader, value, field, expire_ms))
            return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------------- writing -- */

/* RDB_TYPE_NONE: this version has none. */
static enum rdb_type form_with_deadlines(struct rdb_writer *writer)
{
    if (!rdb_may_have_deadlines(writer))
        return RDB_TYPE_NONE;
    return rdb_is_for_valkey(&writer->options) ? RDB_HASH_VALKEY : RDB_HASH_DEADLINES;
}

static enum rdb_type form_of(struct rdb_writer *writer, const struct entry *entry)
{
    const enum rdb_type form = entry_member_deadlines(entry) != 0 ? form_with_deadlines(writer) : RDB_TYPE_NONE;

    if (form != RDB_TYPE_NONE)
        return form;
    return entry->encoding == ENCODING_LISTPACK && writer->options.least >= RDB_VERSION_LISTPACKS ? RDB_HASH_LISTPACK
                                                                                                  : RDB_HASH;
}

static void write_pair(struct slice field, struct slice value, void *context)
{
    rdb_write_element(context);
    rdb_write_text(context, field);
    rdb_write_text(context, value);
}

static void write_hash(struct rdb_writer *writer, const struct entry *entry)
{
    struct value hash = entry_value(entry);

    rdb_write_count(writer, hash_count(hash));
    hash_each(hash, write_pair, writer);
}

struct field_writer {
    struct rdb_writer *writer;
    const struct entry *entry;
    int64_t least_ms;
};

static void write_field_with_deadline(struct slice field, struct slice value, void *context)
{
    const struct field_writer *fields = context;

    rdb_write_deadline(fields->writer, entry_member_expire_ms(fields->entry, field), fields->least_ms);
    write_pair(field, value, fields->writer);
}

static void write_hash_with_deadlines(struct rdb_writer *writer, const struct entry *entry)
{
    struct field_writer fields = {writer, entry, entry_member_due_ms(entry)};
    struct value hash = entry_value(entry);

    rdb_write_u64(writer, (uint64_t)fields.least_ms);
    rdb_write_count(writer, hash_count(hash));
    hash_each(hash, write_field_with_deadline, &fields);
}

static void write_field_of_valkey(struct slice field, struct slice value, void *context)
{
    const struct field_writer *fields = context;

    write_pair(field, value, fields->writer);
    rdb_write_whole_deadline(fields->writer, entry_member_expire_ms(fields->entry, field));
}

static void write_hash_valkey(struct rdb_writer *writer, const struct entry *entry)
{
    struct field_writer fields = {writer, entry, EXPIRE_NEVER};
    struct value hash = entry_value(entry);

    rdb_write_count(writer, hash_count(hash));
    hash_each(hash, write_field_of_valkey, &fields);
}

/* ----------------------------------------------------------------------------------------- as commands, digest -- */

static void put_pair_words(struct slice field, struct slice value, void *context)
{
    aof_element(context);
    aof_put(context, field);
    aof_put(context, value);
}

static void put_commands(struct aof_commands *commands, const struct entry *entry)
{
    aof_elements(commands, "HSET", 2, hash_count(entry_value(entry)));
    hash_each(entry_value(entry), put_pair_words, commands);
}

static void write_element(struct rdb_writer *writer, const struct former_element *element)
{
    write_pair(element->first, element->second, writer);
}

static void put_element(struct aof_commands *commands, const struct former_element *element)
{
    put_pair_words(element->first, element->second, commands);
}

static const struct type_elements elements = {.form_is_fixed = true,
                                              .form = RDB_HASH,
                                              .form_with_deadlines = form_with_deadlines,
                                              .write = write_element,
                                              .command = "HSET",
                                              .width = 2,
                                              .put = put_element};

static void digest_pair(struct slice field, struct slice value, void *context)
{
    digest_add_pair(context, field, value);
}

static void digest_value(struct digest *digest, const struct entry *entry)
{
    hash_each(entry_value(entry), digest_pair, digest);
}

/* --------------------------------------------------------------------------------------------------------- row -- */

/* clang-format off */
static const struct rdb_form forms[] = {
    {.number = RDB_HASH, .name = "hash", .head = "", .each = "tt", .read = read_hash, .write = write_hash},
    {.number = RDB_HASH_ZIPMAP, .name = "hash as zipmap", .head = "t", .read = read_hash_packed},
    {.number = RDB_HASH_ZIPLIST, .name = "hash as ziplist", .head = "t", .read = read_hash_packed},
    {.number = RDB_HASH_LISTPACK, .name = "hash as listpack", .head = "t", .read = read_hash_listpack,
     .write = rdb_write_listpack},
    {.number = RDB_HASH_DEADLINES_EARLY, .name = "hash with deadlines, of release candidates", .head = "",
     .each = "ltt", .read = read_hash_deadlines},
    {.number = RDB_HASH_LISTPACK_DEADLINES_EARLY,
     .name = "hash as listpack with deadlines, of release candidates", .head = "t",
     .read = read_hash_listpack_deadlines},
    {.number = RDB_HASH_DEADLINES, .name = "hash with deadlines", .head = "8", .each = "ltt",
     .read = read_hash_deadlines, .write = write_hash_with_deadlines, .has_deadlines = true},
    {.number = RDB_HASH_LISTPACK_DEADLINES, .name = "hash as listpack with deadlines", .head = "8t",
     .read = read_hash_listpack_deadlines},
    /* no head: it is told by the version of the file, so others must not get its bytes alone */
    {.number = RDB_HASH_VALKEY, .name = "hash with deadlines, of Valkey", .read = read_hash_valkey,
     .write = write_hash_valkey, .has_deadlines = true, .deadlines_follow = true},
    {0},
};
/* clang-format on */

const struct type_row type_hash = {.known = {.name = "hash",
                                             .ops = &hash_ops,
                                             .expired_command = "HDEL",
                                             .expired_event = "hexpired",
                                             .expired_class = EVENT_HASH},
                                   .forms = forms,
                                   .form_of = form_of,
                                   .put_commands = put_commands,
                                   .elements = &elements,
                                   .has_fields = true,
                                   .digest_number = 4,
                                   .digest = digest_value};
