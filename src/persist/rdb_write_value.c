#include "persist/rdb_write.h"

#include "base/assert.h"
#include "base/number.h"
#include "persist/types.h"
#include "store/subkey_ttl.h"

const struct rdb_form *rdb_write_form_of(struct rdb_writer *writer, const struct entry *entry)
{
    const struct type_row *row = type_row_of((enum value_type)entry->type);
    const struct rdb_form *form = row->form_of != NULL ? rdb_form_of(row->form_of(writer, entry)) : &row->forms[0];

    assert(form->write != NULL);
    return form;
}

void rdb_write_value(struct rdb_writer *writer, const struct rdb_form *form, const struct entry *entry)
{
    form->write(writer, entry);
    assert(writer->elements == 0);
}

const struct rdb_form *rdb_write_form_of_elements(struct rdb_writer *writer, const struct entry *entry)
{
    const struct type_elements *elements = type_row_of((enum value_type)entry->type)->elements;

    return elements->form_is_fixed ? rdb_form_of(elements->form) : rdb_write_form_of(writer, entry);
}

void rdb_write_rest(struct rdb_writer *writer, const struct rdb_form *form, const struct entry *entry)
{
    const struct type_elements *elements = type_row_of((enum value_type)entry->type)->elements;

    assert(writer->elements == 0);
    if (elements->write_rest != NULL)
        elements->write_rest(writer, form->number, entry);
    assert(writer->elements == 0);
}

static void write_member_deadline(struct slice member, int64_t when_ms, void *context)
{
    char text[NUMBER_I64_SPACE];

    rdb_write_aux(context, RDB_AUX_MEMBER, member);
    rdb_write_aux(context, RDB_AUX_MEMBER_MS, slice_make(text, number_format_i64(text, when_ms)));
}

void rdb_write_records(struct rdb_writer *writer, const struct rdb_form *form, const struct entry *entry)
{
    const struct type_row *row = type_row_of((enum value_type)entry->type);

    if (UNLIKELY((entry->flags & ENTRY_MEMBERS) != 0) && !form->has_deadlines)
        entry_each_member_deadline(entry, write_member_deadline, writer);
    if (UNLIKELY(row->write_records != NULL))
        row->write_records(writer, entry);
}
