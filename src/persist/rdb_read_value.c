#include "persist/rdb_read_value.h"

#include "base/assert.h"
#include "persist/types.h"

static bool is_empty(const struct rdb_value *value)
{
    const struct value_ops *ops;

    if (value->type == TYPE_STRING || value->is_strange)
        return false;
    ops = type_row_of(value->type)->known.ops;
    return value->value.data == NULL || (ops->count != NULL && ops->count(value->value) == 0);
}

bool rdb_read_value(struct rdb_reader *reader, unsigned type, const struct rdb_limits *limits, struct rdb_value *value)
{
    const struct rdb_form *form;

    type = rdb_type_in(reader->version, type);
    form = rdb_form_of(type);
    *value = (struct rdb_value){.type = TYPE_COUNT, .form = type};
    if (form == NULL)
        return rdb_fail(reader, STATUS_CORRUPT, "unknown value type %u", type);
    if (!form->read(reader, limits, value)) {
        (void)rdb_corrupt(reader, "a value is damaged");
        rdb_value_destroy(value);
        return false;
    }
    assert(value->is_strange || value->type < TYPE_COUNT);
    if (is_empty(value)) {
        rdb_value_destroy(value);
        value->is_empty = true;
    }
    return true;
}

void rdb_value_destroy(struct rdb_value *value)
{
    deadlines_clear(&value->members);
    if (value->value.data != NULL)
        type_row_of(value->type)->known.ops->destroy(value->value);
    value->value.data = NULL;
}

static bool has_member(const struct rdb_value *value, struct slice member)
{
    const struct value_member_ops *ops;

    if (value->value.data == NULL)
        return false;
    ops = type_row_of(value->type)->known.ops->members;
    return ops != NULL && ops->has(value->value, member);
}

bool rdb_value_take_record(struct rdb_value *value, struct buffer *member, struct slice name, struct slice text)
{
    int64_t expire_ms;

    if (value->value.data != NULL && type_row_of(value->type)->take_record != NULL)
        return type_row_of(value->type)->take_record(&value->value, name, text);
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

const char *rdb_type_name(unsigned type)
{
    const struct rdb_form *form = rdb_form_of(type);

    return form != NULL ? form->name : "unknown type";
}
