#include "persist/rdb_read_value.h"

#include "base/mem.h"
#include "data/intset.h"
#include "data/list.h"
#include "data/listpack.h"
#include "data/stream_value.h"
#include "data/zindex_item.h"
#include "persist/distinct.h"
#include "persist/packed.h"
#include "persist/rdb_cron.h"
#include "persist/rdb_nested.h"
#include "persist/rdb_read_stream.h"

#include <math.h>

#define DEADLINE_MOST_MS ((INT64_C(1) << 48) - 1) /* of a field */

/* ---------------------------------------------------------------------------------------------------- strings -- */

static bool read_string(struct rdb_reader *reader, struct rdb_value *value)
{
    value->type = TYPE_STRING;
    return rdb_read_text(reader, &value->text);
}

/* Texts of containers, which our types count in 31 bits. */
static bool check_member(struct rdb_reader *reader, struct slice member)
{
    return member.size <= ZINDEX_MEMBER_BYTES_MOST || rdb_corrupt(reader, "a member is too long");
}

static bool open_packed(struct rdb_reader *reader, enum packed_kind kind, struct packed *packed)
{
    struct slice bytes;

    if (!rdb_read_text(reader, &bytes))
        return false;
    return packed_open(packed, kind, bytes) || rdb_corrupt(reader, "a packed value is damaged");
}

/* ------------------------------------------------------------------------------------------------------ lists -- */

static struct quicklist *begin_list(const struct rdb_limits *limits, struct rdb_value *value)
{
    value->type = TYPE_LIST;
    value->value = list_create(&limits->list);
    return list_of(value->value);
}

static bool read_list(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    struct quicklist *list = begin_list(limits, value);
    struct slice text;
    uint64_t count;

    if (!rdb_read_count(reader, 1, &count))
        return false;
    for (; count != 0; count--) {
        if (!rdb_read_text(reader, &text))
            return false;
        quicklist_push(list, QUICKLIST_TAIL, text);
    }
    return true;
}

static bool read_list_ziplist(struct rdb_reader *reader, struct quicklist *list)
{
    struct packed packed;

    if (!open_packed(reader, PACKED_ZIPLIST, &packed))
        return false;
    while (packed.left != 0)
        quicklist_push(list, QUICKLIST_TAIL, packed_next(&packed));
    return true;
}

static bool read_list_listpack(struct rdb_reader *reader, struct quicklist *list)
{
    struct listpack *pack;
    struct slice bytes;

    if (!rdb_read_text(reader, &bytes))
        return false;
    if (!listpack_check(bytes))
        return rdb_corrupt(reader, "a node of a list is damaged");
    pack = listpack_from_bytes(bytes);
    quicklist_append_listpack(list, &pack);
    return true;
}

static bool read_list_node(struct rdb_reader *reader, struct quicklist *list)
{
    struct slice text;
    uint64_t form;

    if (!rdb_read_length(reader, &form))
        return false;
    if (form == RDB_NODE_LISTPACK)
        return read_list_listpack(reader, list);
    if (form != RDB_NODE_PLAIN)
        return rdb_corrupt(reader, "a node of a list is of an unknown form");
    if (!rdb_read_text(reader, &text))
        return false;
    if (text.size == 0) /* large elements alone have a node of their own */
        return rdb_corrupt(reader, "a node of a list is empty");
    quicklist_push(list, QUICKLIST_TAIL, text);
    return true;
}

static bool read_list_nodes(struct rdb_reader *reader, unsigned type, const struct rdb_limits *limits,
                            struct rdb_value *value)
{
    struct quicklist *list = begin_list(limits, value);
    uint64_t count;

    if (!rdb_read_count(reader, 1, &count))
        return false;
    for (; count != 0; count--) {
        if (!(type == RDB_LIST_NODES ? read_list_node(reader, list) : read_list_ziplist(reader, list)))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------- sets -- */

static bool add_member(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value,
                       struct slice member, uint64_t count)
{
    if (!check_member(reader, member))
        return false;
    if (value->value.data == NULL)
        value->value = set_create(&limits->set, member, count);
    return set_add(&value->value, &limits->set, member) || rdb_corrupt(reader, "a set has a member twice");
}

static bool read_set(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    struct slice member;
    uint64_t count;

    value->type = TYPE_SET;
    if (!rdb_read_count(reader, 1, &count))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if (!rdb_read_text(reader, &member) || !add_member(reader, limits, value, member, count))
            return false;
    }
    return true;
}

static bool read_set_intset(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    struct intset *numbers;
    struct slice bytes;
    char digits[NUMBER_I64_SPACE];
    bool good = true;

    value->type = TYPE_SET;
    if (!rdb_read_text(reader, &bytes))
        return false;
    if (!intset_check(bytes))
        return rdb_corrupt(reader, "a set of integers is damaged");
    numbers = intset_from_bytes(bytes);
    if (intset_count(numbers) <= limits->set.intset_entries) {
        value->value = (struct value){numbers, ENCODING_INTSET};
        return true;
    }
    for (uint32_t i = 0; good && i < intset_count(numbers); i++) {
        struct slice member = slice_make(digits, number_format_i64(digits, intset_at(numbers, i)));

        good = add_member(reader, limits, value, member, intset_count(numbers));
    }
    intset_destroy(&numbers);
    return good;
}

static bool read_set_listpack(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    struct packed packed;

    value->type = TYPE_SET;
    if (!open_packed(reader, PACKED_LISTPACK, &packed))
        return false;
    while (packed.left != 0) {
        if (!add_member(reader, limits, value, packed_next(&packed), packed.count))
            return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------------- hashes -- */

static void begin_hash(struct rdb_value *value)
{
    value->type = TYPE_HASH;
    value->value = hash_create();
}

static bool put_pair(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value,
                     struct slice field, struct slice text)
{
    const struct slice texts[] = {field, text};

    if (!check_member(reader, field) || !check_member(reader, text))
        return false;
    hash_expect(&value->value, &limits->hash, texts, countof(texts));
    return hash_put(&value->value, &limits->hash, field, text) || rdb_corrupt(reader, "a hash has a field twice");
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
static bool read_hash_deadlines(struct rdb_reader *reader, bool relative, const struct rdb_limits *limits,
                                struct rdb_value *value)
{
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
        if (time != 0 && (time > (uint64_t)DEADLINE_MOST_MS ||
                          !put_deadline(reader, value, field, least_ms - 1 + (int64_t)time)))
            return rdb_corrupt(reader, "a field's deadline is out of range");
    }
    return true;
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

static bool read_hash_packed(struct rdb_reader *reader, enum packed_kind kind, const struct rdb_limits *limits,
                             struct rdb_value *value)
{
    struct packed packed;

    return open_packed(reader, kind, &packed) && put_packed_pairs(reader, &packed, limits, value);
}

/* Can the listpack be kept as it is? Its fields must differ, and the limits allow it. */
static bool may_adopt_pairs(struct packed *packed, const struct hash_limits *limits)
{
    struct distinct fields = {NULL, 0};
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

    if (!open_packed(reader, PACKED_LISTPACK, &packed))
        return false;
    if (!may_adopt_pairs(&packed, &limits->hash))
        return put_packed_pairs(reader, &packed, limits, value);
    value->type = TYPE_HASH;
    value->value = (struct value){listpack_from_bytes(packed.bytes), ENCODING_LISTPACK};
    return true;
}

static bool read_hash_listpack_deadlines(struct rdb_reader *reader, bool has_least, const struct rdb_limits *limits,
                                         struct rdb_value *value)
{
    struct packed packed;
    int64_t expire_ms;

    begin_hash(value);
    if ((has_least && !rdb_read_i64(reader, &expire_ms)) || !open_packed(reader, PACKED_LISTPACK, &packed))
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

/* ------------------------------------------------------------------------------------------------ sorted sets -- */

static bool gather(struct rdb_reader *reader, struct zset_builder *builder, struct slice member, double score)
{
    if (isnan(score))
        return rdb_corrupt(reader, "a score is not a number");
    if (!check_member(reader, member))
        return false;
    if (zset_builder_find(builder, member) != NULL)
        return rdb_corrupt(reader, "a sorted set has a member twice");
    zset_builder_add(builder, member, score);
    return true;
}

static bool gather_items(struct rdb_reader *reader, struct zset_builder *builder, unsigned type)
{
    uint64_t count;

    if (!rdb_read_count(reader, 2, &count))
        return false;
    for (; count != 0; count--) {
        struct slice member;
        double score;

        /* A score is read into the window only, but that may move. */
        if (!rdb_read_text(reader, &member))
            return false;
        buffer_clear(&reader->first);
        buffer_append_slice(&reader->first, member);
        if (!(type == RDB_ZSET ? rdb_read_double(reader, &score) : rdb_read_double_text(reader, &score)) ||
            !gather(reader, builder, buffer_slice(&reader->first), score))
            return false;
    }
    return true;
}

static bool gather_packed(struct rdb_reader *reader, struct zset_builder *builder, enum packed_kind kind)
{
    struct packed packed;

    if (!open_packed(reader, kind, &packed))
        return false;
    if (packed.count % 2 != 0)
        return rdb_corrupt(reader, "a member has no score");
    while (packed.left != 0) {
        struct slice member = packed_next(&packed);
        double score;

        if (!number_parse_double(packed_next(&packed), &score))
            return rdb_corrupt(reader, "a score is not a number");
        if (!gather(reader, builder, member, score))
            return false;
    }
    return true;
}

static bool read_zset(struct rdb_reader *reader, unsigned type, const struct rdb_limits *limits,
                      struct rdb_value *value)
{
    struct zset_builder builder = {0};
    bool good;

    if (type == RDB_ZSET_ZIPLIST || type == RDB_ZSET_LISTPACK)
        good = gather_packed(reader, &builder, type == RDB_ZSET_ZIPLIST ? PACKED_ZIPLIST : PACKED_LISTPACK);
    else
        good = gather_items(reader, &builder, type);
    value->type = TYPE_ZSET;
    value->value = zset_build(&builder, &limits->zset);
    return good;
}

/* ---------------------------------------------------------------------------------------- what is not ours -- */

void rdb_module_name(uint64_t id, char name[10])
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for (int i = 0; i < 9; i++)
        name[i] = alphabet[id >> (10 + 6 * (8 - i)) & 63];
    name[9] = '\0';
}

bool rdb_skip_module_items(struct rdb_reader *reader)
{
    for (;;) {
        uint64_t item, number;
        struct slice bytes;
        bool good;

        if (!rdb_read_length(reader, &item))
            return false;
        switch (item) {
        case RDB_MODULE_END:
            return true;
        case RDB_MODULE_SIGNED:
        case RDB_MODULE_UNSIGNED:
            good = rdb_read_length(reader, &number);
            break;
        case RDB_MODULE_FLOAT:
            good = rdb_read_bytes(reader, 4, &bytes);
            break;
        case RDB_MODULE_DOUBLE:
            good = rdb_read_bytes(reader, 8, &bytes);
            break;
        case RDB_MODULE_TEXT:
            good = rdb_read_text(reader, &bytes);
            break;
        default:
            return rdb_corrupt(reader, "a value of a module is damaged");
        }
        if (!good)
            return false;
    }
}

static bool read_module(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    uint64_t id;
    char name[10];

    if (!rdb_read_length(reader, &id))
        return false;
    if (id == rdb_nested_id()) {
        value->type = TYPE_NESTED;
        return rdb_read_nested(reader, &value->value);
    }
    rdb_module_name(id, name);
    value->is_strange = true;
    if (!limits->skips_strange)
        return rdb_fail(reader, STATUS_UNSUPPORTED, "a value of the module type '%s', which this server does not have",
                        name);
    return rdb_skip_module_items(reader);
}

/* -------------------------------------------------------------------------------------------------------- all -- */

static bool read_any(struct rdb_reader *reader, unsigned type, const struct rdb_limits *limits,
                     struct rdb_value *value)
{
    switch (type) {
    case RDB_STRING:
        return read_string(reader, value);
    case RDB_LIST:
        return read_list(reader, limits, value);
    case RDB_LIST_ZIPLIST:
        return read_list_ziplist(reader, begin_list(limits, value));
    case RDB_LIST_ZIPLISTS:
    case RDB_LIST_NODES:
        return read_list_nodes(reader, type, limits, value);
    case RDB_SET:
        return read_set(reader, limits, value);
    case RDB_SET_INTSET:
        return read_set_intset(reader, limits, value);
    case RDB_SET_LISTPACK:
        return read_set_listpack(reader, limits, value);
    case RDB_ZSET_TEXT:
    case RDB_ZSET:
    case RDB_ZSET_ZIPLIST:
    case RDB_ZSET_LISTPACK:
        return read_zset(reader, type, limits, value);
    case RDB_HASH:
        return read_hash(reader, limits, value);
    case RDB_HASH_ZIPMAP:
        return read_hash_packed(reader, PACKED_ZIPMAP, limits, value);
    case RDB_HASH_ZIPLIST:
        return read_hash_packed(reader, PACKED_ZIPLIST, limits, value);
    case RDB_HASH_LISTPACK:
        return read_hash_listpack(reader, limits, value);
    case RDB_HASH_DEADLINES_EARLY:
    case RDB_HASH_DEADLINES:
        return read_hash_deadlines(reader, type == RDB_HASH_DEADLINES, limits, value);
    case RDB_HASH_LISTPACK_DEADLINES_EARLY:
    case RDB_HASH_LISTPACK_DEADLINES:
        return read_hash_listpack_deadlines(reader, type == RDB_HASH_LISTPACK_DEADLINES, limits, value);
    case RDB_STREAM_1:
    case RDB_STREAM_2:
    case RDB_STREAM_3:
        value->type = TYPE_STREAM;
        return rdb_read_stream(reader, type, &value->value);
    case RDB_MODULE:
        return read_module(reader, limits, value);
    case RDB_MODULE_EARLY:
        return rdb_fail(reader, STATUS_UNSUPPORTED, "a value of a module in the form of 4.0 release candidates");
    case RDB_CRON:
        value->type = TYPE_CRON;
        return rdb_read_cron(reader, &value->value);
    default:
        return rdb_fail(reader, STATUS_CORRUPT, "there is no type %u", type);
    }
}

static uint64_t count_of(const struct rdb_value *value)
{
    switch (value->type) {
    case TYPE_LIST:
        return quicklist_count(list_of(value->value));
    case TYPE_SET:
        return value->value.data != NULL ? set_count(value->value) : 0;
    case TYPE_ZSET:
        return zset_count(value->value);
    case TYPE_HASH:
        return hash_count(value->value);
    default:
        return 1;
    }
}

bool rdb_read_value(struct rdb_reader *reader, unsigned type, const struct rdb_limits *limits,
                    struct rdb_value *value)
{
    *value = (struct rdb_value){.type = TYPE_COUNT};
    if (!read_any(reader, type, limits, value)) {
        (void)rdb_corrupt(reader, "a value is damaged");
        rdb_value_destroy(value);
        return false;
    }
    if (!value->is_strange && count_of(value) == 0) {
        rdb_value_destroy(value);
        value->is_empty = true;
    }
    return true;
}

void rdb_value_destroy(struct rdb_value *value)
{
    static const struct value_ops *const ops[TYPE_COUNT] = {
        [TYPE_LIST] = &list_ops, [TYPE_SET] = &set_ops, [TYPE_ZSET] = &zset_ops, [TYPE_HASH] = &hash_ops,
        [TYPE_STREAM] = &stream_ops, [TYPE_NESTED] = &nested_ops, [TYPE_CRON] = &cron_ops,
    };

    deadlines_clear(&value->members);
    if (value->value.data != NULL)
        ops[value->type]->destroy(value->value);
    value->value.data = NULL;
}

static bool has_member(const struct rdb_value *value, struct slice member)
{
    double score;

    switch (value->value.data != NULL ? value->type : TYPE_STRING) {
    case TYPE_SET:
        return set_has(value->value, member);
    case TYPE_HASH:
        return hash_has(value->value, member);
    case TYPE_ZSET:
        return zset_score(value->value, member, &score);
    default:
        return false;
    }
}

/* Of a job's member only the time counts: there is but one, called as the key. */
static bool take_cron_record(struct cron *cron, struct slice name, struct slice text)
{
    int64_t next_ms;

    if (slice_equal(name, RDB_AUX_CRON_SINGLE))
        cron->repeats = false;
    else if (!slice_equal(name, RDB_AUX_MEMBER_MS))
        return slice_equal(name, RDB_AUX_MEMBER);
    else if (number_parse_i64(text, &next_ms) && next_ms >= 0)
        rdb_cron_set_next(cron, next_ms);
    return true;
}

bool rdb_value_take_record(struct rdb_value *value, struct buffer *member, struct slice name, struct slice text)
{
    int64_t expire_ms;

    if (value->type == TYPE_CRON && value->value.data != NULL)
        return take_cron_record(cron_of(value->value), name, text);
    if (slice_equal(name, RDB_AUX_MEMBER)) {
        buffer_clear(member);
        buffer_append_slice(member, text);
        return true;
    }
    if (!slice_equal(name, RDB_AUX_MEMBER_MS))
        return false;
    if (number_parse_i64(text, &expire_ms) && expire_ms >= 0 && has_member(value, buffer_slice(member)))
        (void)deadlines_set(&value->members, buffer_slice(member), expire_ms);
    return true;
}

bool rdb_value_read_members(struct rdb_reader *reader, struct rdb_value *value)
{
    struct buffer member = {0};
    struct slice name, text;
    unsigned opcode;

    while (rdb_peek_byte(reader, &opcode) && opcode == RDB_AUX && rdb_read_byte(reader, &opcode) &&
           rdb_read_texts(reader, &name, &text))
        (void)rdb_value_take_record(value, &member, name, text);
    buffer_fini(&member);
    return reader->status == STATUS_OK;
}

static const char *const type_names[] = {
    [RDB_STRING] = "string",
    [RDB_LIST] = "list",
    [RDB_SET] = "set",
    [RDB_ZSET_TEXT] = "zset with scores as text",
    [RDB_HASH] = "hash",
    [RDB_ZSET] = "zset",
    [RDB_MODULE_EARLY] = "module value of release candidates",
    [RDB_MODULE] = "module value",
    [RDB_HASH_ZIPMAP] = "hash as zipmap",
    [RDB_LIST_ZIPLIST] = "list as ziplist",
    [RDB_SET_INTSET] = "set as intset",
    [RDB_ZSET_ZIPLIST] = "zset as ziplist",
    [RDB_HASH_ZIPLIST] = "hash as ziplist",
    [RDB_LIST_ZIPLISTS] = "list of ziplists",
    [RDB_STREAM_1] = "stream",
    [RDB_HASH_LISTPACK] = "hash as listpack",
    [RDB_ZSET_LISTPACK] = "zset as listpack",
    [RDB_LIST_NODES] = "list of listpacks",
    [RDB_STREAM_2] = "stream, second form",
    [RDB_SET_LISTPACK] = "set as listpack",
    [RDB_STREAM_3] = "stream, third form",
    [RDB_HASH_DEADLINES_EARLY] = "hash with deadlines, of release candidates",
    [RDB_HASH_LISTPACK_DEADLINES_EARLY] = "hash as listpack with deadlines, of release candidates",
    [RDB_HASH_DEADLINES] = "hash with deadlines",
    [RDB_HASH_LISTPACK_DEADLINES] = "hash as listpack with deadlines",
    [RDB_CRON] = "cron job",
};

bool rdb_type_is_known(unsigned type)
{
    return type < countof(type_names) && type_names[type] != NULL;
}

const char *rdb_type_name(unsigned type)
{
    return rdb_type_is_known(type) ? type_names[type] : "unknown type";
}
