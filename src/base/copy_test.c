#include "base/copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Each in memory of its own, so that a sanitizer sees what is touched beside it. */
static void words_of_all_sizes_are_copied(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 70; size++) {
        char *from = malloc(size), *to = malloc(size + 1);

        for (size_t i = 0; i < size; i++)
            from[i] = (char)(i + 1);
        memset(to, 0, size + 1);
        copy_word(to, from, size);
        assert_memory_equal(to, from, size);
        assert_int_equal(to[size], 0);
        free(from);
        free(to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_all_sizes_are_copied),
    };

    return cmocka_run_group_tests_name("copy", tests, NULL, NULL);
}
