#include "active/uuid.h"

#include "base/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void text_of_any_case_and_back(void **state)
{
    static const char text[] = "8294ABCD-00ef-4a5b-9c7d-0123456789ab";
    struct uuid uuid;
    char out[UUID_TEXT_BYTES + 1];

    (void)state;
    assert_true(uuid_parse(slice_from_text(text), &uuid));
    uuid_format(&uuid, out);
    assert_string_equal(out, "8294abcd-00ef-4a5b-9c7d-0123456789ab");
    assert_int_equal(uuid.bytes[0], 0x82);
    assert_int_equal(uuid.bytes[15], 0xab);
}

static void what_is_no_uuid(void **state)
{
    static const char *const texts[] = {"",
                                        "8294abcd-00ef-4a5b-9c7d-0123456789a",
                                        "8294abcd-00ef-4a5b-9c7d-0123456789abc",
                                        "8294abcd-00ef-4a5b-9c7d-0123456789ag",
                                        "8294abcd000ef-4a5b-9c7d-0123456789ab",
                                        "8294abcd-00ef-4a5b-9c7d--123456789ab",
                                        "00000000-0000-0000-0000-000000000000"};
    struct uuid uuid = {{1}};

    (void)state;
    for (size_t i = 0; i < countof(texts); i++)
        assert_false(uuid_parse(slice_from_text(texts[i]), &uuid));
    assert_int_equal(uuid.bytes[0], 1);
}

static void ids_of_ours_come_back(void **state)
{
    struct random random = test_random("uuid");

    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        const uint64_t id = i < 100 ? 1 + i : i < 200 ? UINT64_MAX - i : random_u64(&random);
        const struct uuid uuid = uuid_of_id(id);
        struct uuid read;
        char text[UUID_TEXT_BYTES + 1];

        assert_int_equal(uuid_id(&uuid), id);
        assert_true(uuid_is_ours(&uuid));
        uuid_format(&uuid, text);
        assert_int_equal(text[14], '4'); /* a random UUID, as others check it */
        assert_non_null(strchr("89ab", text[19]));
        assert_true(uuid_parse(slice_make(text, UUID_TEXT_BYTES), &read));
        assert_true(uuid_equal(&uuid, &read));
    }
    assert_true(uuid_id_is_valid(uuid_random_id()));
}

static void uuids_of_others_are_known_as_such(void **state)
{
    struct random random = test_random("uuid of others");
    struct uuid uuid;

    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        const uint64_t halves[2] = {random_u64(&random), random_u64(&random)};

        memcpy(uuid.bytes, halves, sizeof(halves));
        assert_false(uuid_is_ours(&uuid));
        assert_true(uuid_id_is_valid(uuid_id(&uuid)));
    }
    memset(uuid.bytes, 7, sizeof(uuid.bytes)); /* equal halves */
    assert_true(uuid_id_is_valid(uuid_id(&uuid)));
    memset(uuid.bytes, 0xff, UUID_BYTES / 2); /* all bits differ */
    memset(uuid.bytes + UUID_BYTES / 2, 0, UUID_BYTES / 2);
    assert_true(uuid_id_is_valid(uuid_id(&uuid)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_any_case_and_back),
        cmocka_unit_test(what_is_no_uuid),
        cmocka_unit_test(ids_of_ours_come_back),
        cmocka_unit_test(uuids_of_others_are_known_as_such),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
