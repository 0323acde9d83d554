/* Sorted sets, as files have them. */
#include "persist/types.h"

#include "data/zset.h"

#include <math.h>

/* ----------------------------------------------------------------------------------------------------- reading -- */

static bool gather(struct rdb_reader *reader, struct zset_builder *builder, struct slice member, double score)
{
    if (isnan(score))
        return rdb_corrupt(reader, "a score is not a number");
    if (!rdb_check_member(reader, member))
        return false;
    if (zset_builder_find(builder, member) != NULL)
        return rdb_corrupt(reader, "a sorted set has a duplicate member");
    zset_builder_add(builder, member, score);
    return true;
}

static bool gather_items(struct rdb_reader *reader, struct zset_builder *builder, bool as_text)
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
        if (!(as_text ? rdb_read_double_text(reader, &score) : rdb_read_double(reader, &score)) ||
            !gather(reader, builder, buffer_slice(&reader->first), score))
            return false;
    }
    return true;
}

static bool gather_packed(struct rdb_reader *reader, struct zset_builder *builder, enum packed_kind kind)
{
    struct packed packed;

    if (!rdb_open_packed(reader, kind, &packed))
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

static bool read_zset(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    struct zset_builder builder = {0};
    bool good;

    if (value->form == RDB_ZSET_ZIPLIST || value->form == RDB_ZSET_LISTPACK)
        good = gather_packed(reader, &builder, value->form == RDB_ZSET_ZIPLIST ? PACKED_ZIPLIST : PACKED_LISTPACK);
    else
        good = gather_items(reader, &builder, value->form == RDB_ZSET_TEXT);
    value->type = TYPE_ZSET;
    value->value = zset_build(&builder, &limits->zset);
    return good;
}

/* ----------------------------------------------------------------------------------------------------- writing -- */

static enum rdb_type form_of(struct rdb_writer *writer, const struct entry *entry)
{
    return entry->encoding == ENCODING_LISTPACK && writer->options.least >= RDB_VERSION_LISTPACKS ? RDB_ZSET_LISTPACK
                                                                                                  : RDB_ZSET;
}

static void write_member(struct rdb_writer *writer, struct slice member, double score)
{
    rdb_write_element(writer);
    rdb_write_text(writer, member);
    rdb_write_double(writer, score);
}

/* The highest score first: a reader that builds a skiplist inserts at its front. */
static void write_zset(struct rdb_writer *writer, const struct entry *entry)
{
    struct value zset = entry_value(entry);
    struct zset_walk walk;
    struct slice member;
    double score;

    rdb_write_count(writer, zset_count(zset));
    zset_walk_begin(&walk, zset, (struct zset_span){0, zset_count(zset)}, true);
    while (zset_walk_next(&walk, &member, &score))
        write_member(writer, member, score);
}

static void write_element(struct rdb_writer *writer, const struct former_element *element)
{
    write_member(writer, element->first, element->score);
}

/* ----------------------------------------------------------------------------------------- as commands, digest -- */

static void put_member(struct aof_commands *commands, struct slice member, double score)
{
    char text[NUMBER_DOUBLE_SPACE];

    aof_element(commands);
    aof_put(commands, slice_make(text, number_format_double(text, score)));
    aof_put(commands, member);
}

static void put_commands(struct aof_commands *commands, const struct entry *entry)
{
    struct value zset = entry_value(entry);
    struct zset_walk walk;
    struct slice member;
    double score;

    aof_elements(commands, "ZADD", 2, zset_count(zset));
    zset_walk_begin(&walk, zset, (struct zset_span){0, zset_count(zset)}, false);
    while (zset_walk_next(&walk, &member, &score))
        put_member(commands, member, score);
}

static void put_element(struct aof_commands *commands, const struct former_element *element)
{
    put_member(commands, element->first, element->score);
}

static const struct type_elements elements = {.form_is_fixed = true,
                                              .form = RDB_ZSET,
                                              .write = write_element,
                                              .command = "ZADD",
                                              .width = 2,
                                              .put = put_element};

static void digest_value(struct digest *digest, const struct entry *entry)
{
    struct value zset = entry_value(entry);
    char text[NUMBER_DOUBLE_SPACE];
    struct zset_walk walk;
    struct slice member;
    double score;

    zset_walk_begin(&walk, zset, (struct zset_span){0, zset_count(zset)}, false);
    while (zset_walk_next(&walk, &member, &score))
        digest_add_pair(digest, member, slice_make(text, number_format_double(text, score)));
}

/* --------------------------------------------------------------------------------------------------------- row -- */

/* clang-format off */
static const struct rdb_form forms[] = {
    {.number = RDB_ZSET, .name = "zset", .head = "", .each = "t8", .read = read_zset, .write = write_zset},
    {.number = RDB_ZSET_TEXT, .name = "zset with scores as text", .head = "", .each = "td", .read = read_zset},
    {.number = RDB_ZSET_ZIPLIST, .name = "zset as ziplist", .head = "t", .read = read_zset},
    {.number = RDB_ZSET_LISTPACK, .name = "zset as listpack", .head = "t", .read = read_zset,
     .write = rdb_write_listpack},
    {0},
};
/* clang-format on */

const struct type_row type_zset = {.known = {.name = "zset",
                                             .ops = &zset_ops,
                                             .expired_command = "ZREM",
                                             .expired_event = "zrem",
                                             .expired_class = EVENT_ZSET},
                                   .forms = forms,
                                   .form_of = form_of,
                                   .put_commands = put_commands,
                                   .elements = &elements,
                                   .digest_number = 3,
                                   .digest = digest_value};
