#include "persist/rdb_write.h"

#include "base/number.h"
#include "base/panic.h"
#include "data/hash.h"
#include "data/intset.h"
#include "data/listpack.h"
#include "data/quicklist.h"
#include "data/set.h"
#include "data/zset.h"
#include "persist/rdb_cron.h"
#include "persist/rdb_nested.h"
#include "persist/rdb_write_stream.h"
#include "store/subkey_ttl.h"

/* The least of a version's forms that holds everything, or the form of the version that was wished for. */
static void need_version(struct rdb_writer *writer, int version)
{
    if (version > writer->version && version <= writer->options.most)
        writer->version = version;
}

static enum rdb_type type_of_stream(struct rdb_writer *writer, const struct stream *stream)
{
    need_version(writer, rdb_stream_version(stream));
    if (writer->version >= RDB_VERSION_SET_LISTPACK)
        return RDB_STREAM_3;
    return writer->version >= RDB_VERSION_LISTPACKS ? RDB_STREAM_2 : RDB_STREAM_1;
}

static enum rdb_type type_of_hash(struct rdb_writer *writer, const struct entry *entry)
{
    if (entry_member_deadlines(entry) != 0) {
        need_version(writer, RDB_VERSION_FIELD_DEADLINES);
        if (writer->version >= RDB_VERSION_FIELD_DEADLINES)
            return RDB_HASH_DEADLINES;
    }
    return entry->encoding == ENCODING_LISTPACK && writer->options.least >= RDB_VERSION_LISTPACKS ? RDB_HASH_LISTPACK
                                                                                                : RDB_HASH;
}

enum rdb_type rdb_write_type_of(struct rdb_writer *writer, const struct entry *entry)
{
    int least = writer->options.least;
    bool is_packed = entry->encoding == ENCODING_LISTPACK;

    switch ((enum value_type)entry->type) {
    case TYPE_STRING:
        return RDB_STRING;
    case TYPE_LIST:
        return least >= RDB_VERSION_LISTPACKS ? RDB_LIST_NODES : RDB_LIST;
    case TYPE_SET:
        if (entry->encoding == ENCODING_INTSET)
            return RDB_SET_INTSET;
        return is_packed && least >= RDB_VERSION_SET_LISTPACK ? RDB_SET_LISTPACK : RDB_SET;
    case TYPE_ZSET:
        return is_packed && least >= RDB_VERSION_LISTPACKS ? RDB_ZSET_LISTPACK : RDB_ZSET;
    case TYPE_HASH:
        return type_of_hash(writer, entry);
    case TYPE_STREAM:
        return type_of_stream(writer, entry_value(entry).data);
    case TYPE_NESTED:
        return RDB_MODULE;
    case TYPE_CRON:
        return RDB_CRON;
    default:
        break;
    }
    panic("a key of type %u cannot be saved", (unsigned)entry->type);
}

/* ---------------------------------------------------------------------------------------------------- by type -- */

static void write_string(struct rdb_writer *writer, const struct entry *entry)
{
    char scratch[ENTRY_INT_TEXT_BYTES];

    if (entry_is_int(entry))
        rdb_write_number(writer, entry_int(entry));
    else
        rdb_write_text(writer, entry_string(entry, scratch));
}

static void write_packed_value(struct rdb_writer *writer, const struct listpack_value *value)
{
    if (value->text.data != NULL)
        rdb_write_text(writer, value->text);
    else
        rdb_write_number(writer, value->number);
}

static void write_list(struct rdb_writer *writer, const struct quicklist *list)
{
    struct quicklist_iter iter;
    struct listpack_value value;

    rdb_write_length(writer, quicklist_count(list));
    quicklist_iter_init(&iter, list, 0, QUICKLIST_FORWARD);
    while (quicklist_iter_next(&iter, &value))
        write_packed_value(writer, &value);
    quicklist_iter_fini(&iter);
}

static void write_list_nodes(struct rdb_writer *writer, const struct quicklist *list)
{
    struct buffer scratch = {0};

    rdb_write_length(writer, quicklist_node_count(list));
    for (const struct quicklist_node *node = quicklist_first_node(list); node != NULL;
         node = quicklist_next_node(list, node)) {
        struct slice compressed;

        rdb_write_length(writer, quicklist_node_is_plain(node) ? RDB_NODE_PLAIN : RDB_NODE_LISTPACK);
        if (writer->options.compresses && quicklist_node_compressed(node, &compressed))
            rdb_write_compressed(writer, compressed, quicklist_node_size_bytes(node));
        else
            rdb_write_text(writer, quicklist_node_bytes(node, &scratch));
    }
    buffer_fini(&scratch);
}

static void write_member(struct slice member, void *context)
{
    rdb_write_text(context, member);
}

static void write_set(struct rdb_writer *writer, struct value set)
{
    rdb_write_length(writer, set_count(set));
    set_each(set, write_member, writer);
}

/* The highest score first: who builds a skip list inserts at its front. */
static void write_zset(struct rdb_writer *writer, struct value zset)
{
    struct zset_walk walk;
    struct slice member;
    double score;

    rdb_write_length(writer, zset_count(zset));
    zset_walk_begin(&walk, zset, (struct zset_span){0, zset_count(zset)}, true);
    while (zset_walk_next(&walk, &member, &score)) {
        rdb_write_text(writer, member);
        rdb_write_double(writer, score);
    }
}

static void write_pair(struct slice field, struct slice value, void *context)
{
    rdb_write_text(context, field);
    rdb_write_text(context, value);
}

static void write_hash(struct rdb_writer *writer, struct value hash)
{
    rdb_write_length(writer, hash_count(hash));
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
    int64_t expire_ms = entry_member_expire_ms(fields->entry, field);

    rdb_write_length(fields->writer, expire_ms == EXPIRE_NEVER ? 0 : (uint64_t)(expire_ms - fields->least_ms) + 1);
    write_pair(field, value, fields->writer);
}

/* Times count from the earliest one, plus one; 0: none. */
static void write_hash_with_deadlines(struct rdb_writer *writer, const struct entry *entry)
{
    struct field_writer fields = {writer, entry, entry_member_due_ms(entry)};
    struct value hash = entry_value(entry);

    rdb_write_u64(writer, (uint64_t)fields.least_ms);
    rdb_write_length(writer, hash_count(hash));
    hash_each(hash, write_field_with_deadline, &fields);
}

void rdb_write_value(struct rdb_writer *writer, enum rdb_type type, const struct entry *entry)
{
    switch (type) {
    case RDB_STRING:
        write_string(writer, entry);
        break;
    case RDB_LIST:
        write_list(writer, entry_value(entry).data);
        break;
    case RDB_LIST_NODES:
        write_list_nodes(writer, entry_value(entry).data);
        break;
    case RDB_SET:
        write_set(writer, entry_value(entry));
        break;
    case RDB_SET_INTSET:
        rdb_write_text(writer, intset_as_bytes(entry_value(entry).data));
        break;
    case RDB_ZSET:
        write_zset(writer, entry_value(entry));
        break;
    case RDB_HASH:
        write_hash(writer, entry_value(entry));
        break;
    case RDB_HASH_DEADLINES:
        write_hash_with_deadlines(writer, entry);
        break;
    case RDB_SET_LISTPACK:
    case RDB_ZSET_LISTPACK:
    case RDB_HASH_LISTPACK:
        rdb_write_text(writer, listpack_as_bytes(entry_value(entry).data));
        break;
    case RDB_STREAM_1:
    case RDB_STREAM_2:
    case RDB_STREAM_3:
        rdb_write_stream(writer, type, entry_value(entry).data);
        break;
    case RDB_MODULE:
        rdb_write_nested(writer, entry_value(entry));
        break;
    case RDB_CRON:
        rdb_write_cron(writer, cron_of(entry_value(entry)));
        break;
    default:
        panic("type %d is not written", (int)type);
    }
}

static void write_member_deadline(struct slice member, int64_t when_ms, void *context)
{
    char text[NUMBER_I64_SPACE];

    rdb_write_aux(context, RDB_AUX_MEMBER, member);
    rdb_write_aux(context, RDB_AUX_MEMBER_MS, slice_make(text, number_format_i64(text, when_ms)));
}

void rdb_write_member_deadlines(struct rdb_writer *writer, enum rdb_type type, const struct entry *entry)
{
    if (type != RDB_HASH_DEADLINES && UNLIKELY((entry->flags & ENTRY_MEMBERS) != 0))
        entry_each_member_deadline(entry, write_member_deadline, writer);
    if (UNLIKELY(type == RDB_CRON))
        rdb_write_cron_records(writer, entry_key(entry), cron_of(entry_value(entry)));
}
