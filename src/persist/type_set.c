/* Sets, as files have them. */
#include "persist/types.h"

#include "data/intset.h"
#include "data/set.h"

/* ----------------------------------------------------------------------------------------------------- reading -- */

static bool add_member(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value,
                       struct slice member, uint64_t count)
{
    if (!rdb_check_member(reader, member))
        return false;
    if (value->value.data == NULL)
        value->value = set_create(&limits->set, member, count);
    return set_add(&value->value, &limits->set, member) || rdb_corrupt(reader, "a set has a duplicate member");
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
    if (!rdb_open_packed(reader, PACKED_LISTPACK, &packed))
        return false;
    while (packed.left != 0) {
        if (!add_member(reader, limits, value, packed_next(&packed), packed.count))
            return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------------- writing -- */

static enum rdb_type form_of(struct rdb_writer *writer, const struct entry *entry)
{
    if (entry->encoding == ENCODING_INTSET)
        return RDB_SET_INTSET;
    return entry->encoding == ENCODING_LISTPACK && writer->options.least >= RDB_VERSION_SET_LISTPACK ? RDB_SET_LISTPACK
                                                                                                     : RDB_SET;
}

static void write_member(struct slice member, void *context)
{
    rdb_write_element(context);
    rdb_write_text(context, member);
}

static void write_set(struct rdb_writer *writer, const struct entry *entry)
{
    struct value set = entry_value(entry);

    rdb_write_count(writer, set_count(set));
    set_each(set, write_member, writer);
}

static void write_intset(struct rdb_writer *writer, const struct entry *entry)
{
    rdb_write_text(writer, intset_as_bytes(entry_value(entry).data));
}

/* ----------------------------------------------------------------------------------------- as commands, digest -- */

static void put_member(struct slice member, void *context)
{
    aof_element(context);
    aof_put(context, member);
}

static void put_commands(struct aof_commands *commands, const struct entry *entry)
{
    aof_elements(commands, "SADD", 1, set_count(entry_value(entry)));
    set_each(entry_value(entry), put_member, commands);
}

static void write_element(struct rdb_writer *writer, const struct former_element *element)
{
    write_member(element->first, writer);
}

static void put_element(struct aof_commands *commands, const struct former_element *element)
{
    put_member(element->first, commands);
}

static const struct type_elements elements =
    {.form_is_fixed = true, .form = RDB_SET, .write = write_element, .command = "SADD", .width = 1, .put = put_element};

static void digest_member(struct slice member, void *context)
{
    digest_add(context, member);
}

static void digest_value(struct digest *digest, const struct entry *entry)
{
    set_each(entry_value(entry), digest_member, digest);
}

/* --------------------------------------------------------------------------------------------------------- row -- */

/* clang-format off */
static const struct rdb_form forms[] = {
    {.number = RDB_SET, .name = "set", .head = "", .each = "t", .read = read_set, .write = write_set},
    {.number = RDB_SET_INTSET, .name = "set as intset", .head = "t", .read = read_set_intset, .write = write_intset},
    {.number = RDB_SET_LISTPACK, .name = "set as listpack", .head = "t", .read = read_set_listpack,
     .write = rdb_write_listpack},
    {0},
};
/* clang-format on */

const struct type_row type_set = {.known = {.name = "set",
                                            .ops = &set_ops,
                                            .expired_command = "SREM",
                                            .expired_event = "srem",
                                            .expired_class = EVENT_SET},
                                  .forms = forms,
                                  .form_of = form_of,
                                  .put_commands = put_commands,
                                  .elements = &elements,
                                  .digest_number = 2,
                                  .digest = digest_value};
