#include "base/status.h"

#include <errno.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void every_status_has_its_text(void **state)
{
    (void)state;
    for (unsigned a = 0; a < STATUS_COUNT; a++) {
        assert_non_null(status_text((enum status)a));
        for (unsigned b = 0; b < a; b++)
            assert_true(strcmp(status_text((enum status)a), status_text((enum status)b)) != 0);
    }
    assert_string_equal(status_text(STATUS_COUNT), "unknown status");
}

static void errors_have_a_status(void **state)
{
    (void)state;
    assert_int_equal(status_from_errno(0), STATUS_OK);
    assert_int_equal(status_from_errno(ENOENT), STATUS_NOT_FOUND);
    assert_int_equal(status_from_errno(ENOMEM), STATUS_NO_MEMORY);
    for (int error = 1; error < 140; error++)
        assert_int_not_equal(status_from_errno(error), STATUS_OK);
    assert_int_equal(status_from_errno(ENOSPC), STATUS_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_text),
        cmocka_unit_test(errors_have_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
