/* The version of a snapshot, for each kind of replica and each content. */
#include "replication/snapshot_version.h"

#include "persist/rdb_format.h"
#include "persist/rdb_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct rdb_write_options any = {.least = RDB_VERSION_WRITTEN_LEAST, .most = RDB_VERSION_MOST};
static const struct snapshot_contents all = {true, true, true, true};

static void expect(const struct rdb_write_options *options, enum snapshot_readers readers,
                   struct snapshot_contents contents, int version, bool without_libraries)
{
    const struct snapshot_version chosen = snapshot_version_choose(options, readers, &contents);

    assert_int_equal(chosen.least, version);
    assert_int_equal(chosen.most, version);
    assert_int_equal(chosen.without_libraries, without_libraries);
}

static void others_get_the_lowest_that_holds_all(void **state)
{
    (void)state;
    expect(&any, SNAPSHOT_FOR_OTHERS, (struct snapshot_contents){0}, 9, false);
    expect(&any, SNAPSHOT_FOR_OTHERS, (struct snapshot_contents){.has_libraries = true}, 10, false);
    expect(&any, SNAPSHOT_FOR_OTHERS, (struct snapshot_contents){.had_streams = true}, 10, false);
    expect(&any, SNAPSHOT_FOR_OTHERS, (struct snapshot_contents){.has_field_deadlines = true}, 12, false);
    expect(&any, SNAPSHOT_FOR_OTHERS, (struct snapshot_contents){.may_have_idmp = true}, 13, false);
    expect(&any, SNAPSHOT_FOR_OTHERS, all, 13, false);
}

static void keydb_and_this_server(void **state)
{
    (void)state;
    expect(&any, SNAPSHOT_FOR_KEYDB, (struct snapshot_contents){0}, 9, true);
    expect(&any, SNAPSHOT_FOR_KEYDB, all, 9, true);
    expect(&any, SNAPSHOT_FOR_NEWEST, (struct snapshot_contents){0}, 12, false);
    expect(&any, SNAPSHOT_FOR_NEWEST, (struct snapshot_contents){true, true, true, false}, 12, false);
    expect(&any, SNAPSHOT_FOR_NEWEST, all, 13, false);
}

static void valkey_gets_its_own(void **state)
{
    (void)state;
    expect(&any, SNAPSHOT_FOR_VALKEY, (struct snapshot_contents){0}, RDB_VERSION_VALKEY, false);
    expect(&any, SNAPSHOT_FOR_VALKEY, all, RDB_VERSION_VALKEY, false);
}

static void a_fixed_version_is_for_everybody(void **state)
{
    (void)state;
    for (int version = RDB_VERSION_WRITTEN_LEAST; version <= RDB_VERSION_MOST; version++) {
        const struct rdb_write_options fixed = {.least = version, .most = version};

        expect(&fixed, SNAPSHOT_FOR_OTHERS, all, version, false);
        expect(&fixed, SNAPSHOT_FOR_KEYDB, all, version, false);
        expect(&fixed, SNAPSHOT_FOR_VALKEY, all, version, false);
        expect(&fixed, SNAPSHOT_FOR_NEWEST, all, version, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_get_the_lowest_that_holds_all),
        cmocka_unit_test(keydb_and_this_server),
        cmocka_unit_test(valkey_gets_its_own),
        cmocka_unit_test(a_fixed_version_is_for_everybody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
