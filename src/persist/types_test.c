/* The rows: nothing is missing in them, and no number is that of two. */
#include "persist/types.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void rows_are_whole(void **state)
{
    (void)state;
    for (enum value_type type = TYPE_STRING; type < TYPE_COUNT; type++) {
        const struct type_row *row = type_row_of(type);

        assert_non_null(row);
        assert_non_null(row->known.name);
        assert_int_equal(row->known.ops == NULL, type == TYPE_STRING);
        assert_non_null(row->digest);
        assert_true(row->form_of != NULL || row->forms[0].write != NULL);
        assert_int_equal(row->write_records != NULL, row->take_record != NULL);
        if (row->known.ops == NULL || row->known.ops->members == NULL)
            continue;
        assert_non_null(row->known.ops->count);
        assert_non_null(row->known.expired_command);
        assert_non_null(row->known.expired_event);
        assert_true(row->known.expired_class != 0);
    }
}

static void numbers_are_of_one_form(void **state)
{
    unsigned forms = 0, found = 0;

    (void)state;
    for (enum value_type type = TYPE_STRING; type < TYPE_COUNT; type++) {
        for (const struct rdb_form *form = type_row_of(type)->forms; form->name != NULL; form++, forms++) {
            assert_non_null(form->read);
            assert_true(form->head != NULL || form->each == NULL);
            assert_ptr_equal(rdb_form_of(form->number), form);
            assert_string_equal(rdb_type_name(form->number), form->name);
        }
    }
    for (unsigned number = 0; number < 512; number++)
        found += rdb_form_of(number) != NULL;
    assert_int_equal(found, forms);
    assert_string_equal(rdb_type_name(200), "unknown type");
}

static void digests_differ_by_type(void **state)
{
    (void)state;
    for (enum value_type type = TYPE_STRING; type < TYPE_COUNT; type++) {
        for (enum value_type other = TYPE_STRING; other < type; other++)
            assert_true(type_row_of(type)->digest_number != type_row_of(other)->digest_number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(numbers_are_of_one_form),
        cmocka_unit_test(digests_differ_by_type),
    };

    return cmocka_run_group_tests_name("types", tests, NULL, NULL);
}
