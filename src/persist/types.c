#include "persist/types.h"

#include "base/assert.h"
#include "base/gate.h"
#include "data/listpack.h"

#define LIST_TYPE_ROW(type, row) [type] = &row,
static const struct type_row *const rows[TYPE_COUNT] = {EVERY_TYPE(LIST_TYPE_ROW)};

const struct type_row *type_row_of(enum value_type type)
{
    assert(type < TYPE_COUNT);
    return rows[type];
}

static const struct rdb_form *find_form(unsigned number)
{
    for (enum value_type type = TYPE_STRING; type < TYPE_COUNT; type++) {
        for (const struct rdb_form *form = rows[type]->forms; form->name != NULL; form++) {
            if ((unsigned)form->number == number)
                return form;
        }
    }
    return NULL;
}

/* Each key that is loaded asks. */
const struct rdb_form *rdb_form_of(unsigned number)
{
    static _Atomic(const struct rdb_form *)
        found[RDB_TYPE_NUMBERS]; /* global: atomic, relaxed: what find_form said once */
    const struct rdb_form *form;

    if (UNLIKELY(number >= RDB_TYPE_NUMBERS))
        return NULL;
    form = atomic_load_explicit(&found[number], memory_order_relaxed);
    if (LIKELY(form != NULL))
        return form;
    form = find_form(number);
    atomic_store_explicit(&found[number], form, memory_order_relaxed);
    return form;
}

void types_setup(struct store *store)
{
    gate_assert_main_alone();
    for (enum value_type type = TYPE_STRING; type < TYPE_COUNT; type++) {
        for (const struct rdb_form *form = rows[type]->forms; form->name != NULL; form++)
            assert(rdb_form_of(form->number) == form); /* no two have one number */
        store_set_type(store, type, &rows[type]->known);
    }
}

/* -------------------------------------------------------------------------------------------- what types share -- */

bool rdb_open_packed(struct rdb_reader *reader, enum packed_kind kind, struct packed *packed)
{
    struct slice bytes;

    if (!rdb_read_text(reader, &bytes))
        return false;
    return packed_open(packed, kind, bytes) || rdb_corrupt(reader, "a packed value is damaged");
}

void rdb_write_listpack(struct rdb_writer *writer, const struct entry *entry)
{
    rdb_write_text(writer, listpack_as_bytes(entry_value(entry).data));
}
