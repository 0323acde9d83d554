#define _GNU_SOURCE
#include "base/symbols.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void agrees_with_the_loader(void **state)
{
    const char *names[] = {"symbols_find", "symbols_setup", "qsort", "strtol", "_cmocka_run_group_tests"};

    (void)state;
    symbols_setup();
    for (size_t i = 0; i < countof(names); i++) {
        const char *begin = dlsym(RTLD_DEFAULT, names[i]);
        struct symbol_place place;
        Dl_info known;

        assert_non_null(begin);
        for (size_t inside = 0; inside < 2; inside++) {
            assert_int_not_equal(dladdr(begin + inside, &known), 0);
            assert_true(symbols_find(begin + inside, &place));
            assert_non_null(place.function);
            assert_int_equal(place.base, (uintptr_t)known.dli_saddr);
            if (place.file[0] != '\0')
                assert_string_equal(place.file, known.dli_fname);
        }
    }
}

static void what_is_in_no_file_is_not_found(void **state)
{
    char *memory = malloc(1);
    struct symbol_place place;
    int local = 0;

    (void)state;
    symbols_setup();
    assert_false(symbols_find(memory, &place));
    assert_false(symbols_find(&local, &place));
    assert_false(symbols_find(NULL, &place));
    free(memory);
}

static void a_function_without_a_symbol_has_its_file(void **state)
{
    struct symbol_place place;

    (void)state;
    symbols_setup();
    assert_true(symbols_find((const void *)(uintptr_t)agrees_with_the_loader, &place));
    assert_null(place.function);
    assert_true((uintptr_t)agrees_with_the_loader > place.base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_loader),
        cmocka_unit_test(what_is_in_no_file_is_not_found),
        cmocka_unit_test(a_function_without_a_symbol_has_its_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
