/* Strings, as files have them. */
#include "persist/types.h"

#include "data/hyperloglog.h"

static bool read_string(struct rdb_reader *reader, const struct rdb_limits *limits, struct rdb_value *value)
{
    (void)limits;
    value->type = TYPE_STRING;
    return rdb_read_text(reader, &value->text);
}

static void write_string(struct rdb_writer *writer, const struct entry *entry)
{
    char scratch[ENTRY_INT_TEXT_BYTES];

    if (entry_is_int(entry))
        rdb_write_number(writer, entry_int(entry));
    else
        rdb_write_text(writer, entry_string(entry, scratch));
}

static void put_commands(struct aof_commands *commands, const struct entry *entry)
{
    char scratch[ENTRY_INT_TEXT_BYTES];

    aof_command_begin(commands, 3);
    aof_put_text(commands, "SET");
    aof_put(commands, commands->key);
    aof_put(commands, entry_string(entry, scratch));
}

static void write_piece(struct rdb_writer *writer, const struct former_element *element)
{
    rdb_write_text_part(writer, element->first);
}

static void write_end(struct rdb_writer *writer, enum rdb_type form, const struct entry *entry)
{
    (void)form;
    (void)entry;
    rdb_write_text_end(writer);
}

static void put_piece(struct aof_commands *commands, const struct former_element *element)
{
    aof_put_part(commands, element->first);
}

/* HyperLogLogs are equal if their registers are: which of the two encodings they have, and whether they remember their
 * count, depends on settings and on what was read. */
static NOINLINE void digest_registers(struct digest *digest, struct slice value)
{
    struct hll_registers registers = {{0}};

    hll_registers_add(&registers, value);
    digest_mix_u32(digest, HLL_REGISTER_COUNT);
    digest_mix(digest, slice_make(registers.ranks, sizeof(registers.ranks)));
}

static void digest_value(struct digest *digest, const struct entry *entry)
{
    char scratch[ENTRY_INT_TEXT_BYTES];
    struct slice value = entry_string(entry, scratch);

    if (digest_is_keyed(digest) && hll_encoding_of(value) != HLL_NONE && hll_is_whole(value))
        digest_registers(digest, value);
    else
        digest_mix(digest, value);
}

static const struct rdb_form forms[] = {
    {.number = RDB_STRING, .name = "string", .head = "t", .read = read_string, .write = write_string},
    {0},
};

static const struct type_elements elements = {.form_is_fixed = true,
                                              .form = RDB_STRING,
                                              .write = write_piece,
                                              .write_rest = write_end,
                                              .put = put_piece,
                                              .are_bytes = true};

const struct type_row type_string = {.known = {.name = "string"},
                                     .forms = forms,
                                     .put_commands = put_commands,
                                     .elements = &elements,
                                     .digest_number = 0,
                                     .digest = digest_value};
