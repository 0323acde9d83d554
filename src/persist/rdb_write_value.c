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

static const struct type_elements *type_of(const struct rdb_elements *elements)
{
    return type_row_of((enum value_type)elements->entry->type)->elements;
}

const struct rdb_form *rdb_elements_begin(struct rdb_elements *elements, struct rdb_writer *writer,
                                          const struct entry *entry, int64_t first_ms)
{
    const struct type_elements *type;
    enum rdb_type with_deadlines = RDB_TYPE_NONE;

    *elements = (struct rdb_elements){.entry = entry, .first_ms = first_ms};
    type = type_of(elements);
    if (type->form_is_fixed && first_ms != EXPIRE_NEVER && type->form_with_deadlines != NULL)
        with_deadlines = type->form_with_deadlines(writer);
    if (!type->form_is_fixed)
        elements->form = rdb_write_form_of(writer, entry);
    else
        elements->form = rdb_form_of(with_deadlines != RDB_TYPE_NONE ? with_deadlines : type->form);
    return elements->form;
}

void rdb_write_elements_head(struct rdb_writer *writer, const struct rdb_elements *elements, uint64_t count)
{
    if (elements->form->has_deadlines && !elements->form->deadlines_follow)
        rdb_write_u64(writer, (uint64_t)elements->first_ms);
    if (type_of(elements)->write_head != NULL)
        type_of(elements)->write_head(writer);
    else if (type_of(elements)->are_bytes)
        rdb_write_text_begin(writer, count);
    else
        rdb_write_count(writer, count);
}

void rdb_write_one(struct rdb_writer *writer, const struct rdb_elements *elements, const struct former_element *element,
                   int64_t expire_ms)
{
    if (UNLIKELY(element->part != 0)) {
        type_of(elements)->write_part(writer, elements->form->number, elements->entry, element);
        return;
    }
    if (elements->form->has_deadlines && !elements->form->deadlines_follow)
        rdb_write_deadline(writer, expire_ms, elements->first_ms);
    type_of(elements)->write(writer, element);
    if (elements->form->deadlines_follow)
        rdb_write_whole_deadline(writer, expire_ms);
}

void rdb_write_elements_rest(struct rdb_writer *writer, const struct rdb_elements *elements)
{
    const struct type_elements *type = type_of(elements);

    assert(writer->elements == 0);
    if (type->write_rest != NULL)
        type->write_rest(writer, elements->form->number, elements->entry);
    assert(writer->elements == 0);
}

void rdb_write_member_deadline(struct rdb_writer *writer, struct slice member, int64_t expire_ms)
{
    char text[NUMBER_I64_SPACE];

    rdb_write_aux(writer, RDB_AUX_MEMBER, member);
    rdb_write_aux(writer, RDB_AUX_MEMBER_MS, slice_make(text, number_format_i64(text, expire_ms)));
}

static void write_member_deadline(struct slice member, int64_t expire_ms, void *context)
{
    rdb_write_member_deadline(context, member, expire_ms);
}

void rdb_write_records(struct rdb_writer *writer, const struct rdb_form *form, const struct entry *entry)
{
    const struct type_row *row = type_row_of((enum value_type)entry->type);

    if (UNLIKELY((entry->flags & ENTRY_MEMBERS) != 0) && !form->has_deadlines)
        entry_each_member_deadline(entry, write_member_deadline, writer);
    if (UNLIKELY(row->write_records != NULL))
        row->write_records(writer, entry);
}
