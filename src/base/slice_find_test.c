#include "base/slice_find.h"
#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static bool contains_plainly(struct slice bytes, struct slice wanted)
{
    for (size_t at = 0; at + wanted.size <= bytes.size; at++) {
        if (slice_equal(slice_make(bytes.data + at, wanted.size), wanted))
            return true;
    }
    return false;
}

/* In memory of their own, so that a sanitizer sees what is read beside them. */
static void random_bytes_are_found_where_they_are(void **state)
{
    struct random random = test_random(__func__);

    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        const size_t size = random_below(&random, 400), wanted_size = random_below(&random, 12);
        char *bytes = malloc(size + 1), *wanted = malloc(wanted_size + 1);

        assert_true(bytes != NULL && wanted != NULL);
        bytes = realloc(bytes, size != 0 ? size : 1);
        for (size_t i = 0; i < size; i++)
            bytes[i] = (char)('a' + random_below(&random, 3));
        for (size_t i = 0; i < wanted_size; i++)
            wanted[i] = (char)('a' + random_below(&random, 3));
        assert_int_equal(slice_contains(slice_make(bytes, size), slice_make(wanted, wanted_size)),
                         contains_plainly(slice_make(bytes, size), slice_make(wanted, wanted_size)));
        free(bytes);
        free(wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_bytes_are_found_where_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
