/* Which keys cross, and the set of their names. */
#include "active/part.h"

#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { OURS = 5, THEIRS = 7, UNKNOWN = 9 };

static void what_the_other_one_lacks_crosses(void **state)
{
    struct part part = {.level = 100};

    (void)state;
    merge_vector_set(&part.have, OURS, 100);
    merge_vector_set(&part.have, THEIRS, 200);
    assert_false(part_crosses(&part, (struct merge_place){100, OURS}, false)); /* it has all up to the level */
    assert_false(part_crosses(&part, (struct merge_place){100, UNKNOWN}, false));
    assert_true(part_crosses(&part, (struct merge_place){101, OURS}, true));
    assert_true(part_crosses(&part, (struct merge_place){101, OURS}, false));
    assert_false(part_crosses(&part, (struct merge_place){150, THEIRS}, true));
    assert_true(part_crosses(&part, (struct merge_place){150, THEIRS}, false)); /* something of ours may be below */
    assert_true(part_crosses(&part, (struct merge_place){201, THEIRS}, true));
    assert_true(part_crosses(&part, (struct merge_place){150, UNKNOWN}, true));
    part_fini(&part);
}

static void a_set_has_what_was_added(void **state)
{
    struct part_keys keys = {.count = 0};
    char name[32];

    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        struct key key;

        (void)snprintf(name, sizeof(name), "key:%u", i);
        key = key_make(slice_from_text(name));
        assert_false(part_keys_has(&keys, i % 3, &key));
        part_keys_add(&keys, i % 3, &key);
        assert_true(part_keys_has(&keys, i % 3, &key));
        assert_false(part_keys_has(&keys, i % 3 + 1, &key));
    }
    assert_int_equal(keys.count, 2000);
    part_keys_fini(&keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_other_one_lacks_crosses),
        cmocka_unit_test(a_set_has_what_was_added),
    };

    hash_setup();
    return cmocka_run_group_tests_name("part", tests, NULL, NULL);
}
