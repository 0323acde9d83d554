/* Starts of a node: whatever fails, and whenever the power goes, no origin that was begun is ever forgotten. */
#include "active/identity.h"

#include "active/uuid.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/power_cut.h"
#include "base/test_seed.h"
#include "store/stamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { STARTS = 4, SEEDS = 5 };

static const int64_t now_ms = INT64_C(1795000000000);

static char folder[64], path[96];

static void empty_folder(void)
{
    char command[256];

    (void)snprintf(command, sizeof(command), "rm -rf %s %s.power_cut && mkdir %s", folder, folder, folder);
    assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "%s/identity_test.%d", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
                   (int)getpid());
    (void)snprintf(path, sizeof(path), "%s/identity", folder);
    empty_folder();
    return 0;
}

static int tear_down(void **state)
{
    char command[256];

    (void)state;
    (void)snprintf(command, sizeof(command), "rm -rf %s %s.power_cut", folder, folder);
    return system(command);
}

static void begin(int64_t wall_ms, struct merge_identity *identity, uint64_t *clock, int64_t *wall)
{
    char error[IDENTITY_ERROR_BYTES];

    if (identity_start(path, wall_ms, identity, clock, wall, error) != STATUS_OK)
        fail_msg("%s", error);
}

static void each_start_has_a_new_origin(void **state)
{
    struct merge_identity first, second;
    uint64_t clock;
    int64_t wall;

    (void)state;
    empty_folder();
    begin(now_ms, &first, &clock, &wall);
    assert_true(uuid_id_is_valid(first.name));
    assert_int_equal(first.incarnation, 1);
    assert_int_equal(first.former.count, 0);
    assert_true(first.promised >= stamp_at(now_ms + IDENTITY_AHEAD_MS));
    begin(now_ms - 60000, &second, &clock, &wall); /* its clock went back meanwhile */
    assert_int_equal(second.name, first.name);
    assert_int_not_equal(second.origin, first.origin);
    assert_int_equal(second.incarnation, 2);
    assert_int_equal(second.former.count, 1);
    assert_true(merge_vector_has(&second.former, first.origin));
    assert_int_equal(clock, first.promised); /* nothing below was given for sure */
    assert_int_equal(wall, first.wall);
    assert_true(second.promised > clock && second.wall > wall);
    identity_fini(&first);
    identity_fini(&second);
}

static void bounds_are_reserved_ahead(void **state)
{
    struct merge_identity identity = {.name = 5, .origin = 6, .incarnation = 1};
    const uint64_t late = stamp_at(now_ms + IDENTITY_AHEAD_MS);

    (void)state;
    assert_true(identity_wants_more(&identity, stamp_at(now_ms), now_ms));
    identity_reserve(&identity, stamp_at(now_ms), now_ms);
    assert_int_equal(identity.promised, late);
    assert_int_equal(identity.wall, now_ms + IDENTITY_AHEAD_MS);
    assert_false(identity_wants_more(&identity, stamp_at(now_ms + IDENTITY_AHEAD_MS / 2), now_ms));
    assert_true(identity_wants_more(&identity, stamp_at(now_ms + IDENTITY_AHEAD_MS / 2 + 1), now_ms));
    assert_true(identity_wants_more(&identity, stamp_at(now_ms), now_ms + IDENTITY_AHEAD_MS / 2 + 1));
    identity_reserve(&identity, stamp_at(now_ms - 5000), now_ms - 5000); /* they never fall */
    assert_int_equal(identity.promised, late);
    assert_int_equal(identity.wall, now_ms + IDENTITY_AHEAD_MS);
}

static void text_comes_back(void **state)
{
    struct random random = test_random("identity");
    char error[IDENTITY_ERROR_BYTES];

    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        struct merge_identity identity = {.name = uuid_random_id(), .origin = uuid_random_id(), .wall = now_ms}, read;
        struct buffer text = {0};

        identity.promised = stamp_at(now_ms) + random_below(&random, 1 << 20);
        for (unsigned k = 0; k < i; k++)
            merge_vector_set(&identity.former, uuid_random_id(), 1);
        for (uint32_t n = 0; n < i % 4; n++) {
            merge_members_learn(&identity.members, (struct merge_member){uuid_random_id(), uuid_random_id(), n + 1});
            merge_vector_set(&identity.removed, uuid_random_id(), 1);
        }
        identity.incarnation = i + 1;
        identity_format(&identity, &text);
        assert_true(identity_parse(buffer_slice(&text), &read, error));
        assert_int_equal(read.name, identity.name);
        assert_int_equal(read.origin, identity.origin);
        assert_int_equal(read.incarnation, identity.incarnation);
        assert_int_equal(read.promised, identity.promised);
        assert_int_equal(read.wall, identity.wall);
        assert_int_equal(read.former.count, i);
        assert_true(merge_vector_covers(&read.former, &identity.former));
        assert_int_equal(read.members.count, i % 4);
        for (uint32_t n = 0; n < read.members.count; n++) {
            assert_int_equal(read.members.items[n].name, identity.members.items[n].name);
            assert_int_equal(read.members.items[n].origin, identity.members.items[n].origin);
            assert_int_equal(read.members.items[n].incarnation, identity.members.items[n].incarnation);
        }
        assert_int_equal(read.removed.count, i % 4);
        assert_true(merge_vector_covers(&read.removed, &identity.removed));
        identity_fini(&read);
        for (size_t at = 0; at < text.size; at++) { /* cut short; one byte changed */
            text.data[at] ^= 1;
            assert_false(identity_parse(buffer_slice(&text), &read, error));
            text.data[at] ^= 1;
            assert_false(identity_parse(slice_make(text.data, at), &read, error));
        }
        identity_fini(&identity);
        buffer_fini(&text);
    }
}

static void refuse(const char *text, const char *why)
{
    char error[IDENTITY_ERROR_BYTES];
    struct merge_identity identity;
    uint64_t clock;
    int64_t wall;
    char *left;
    size_t size;

    empty_folder();
    assert_int_equal(file_store(path, slice_from_text(text)), STATUS_OK);
    assert_int_equal(identity_start(path, now_ms, &identity, &clock, &wall, error), STATUS_CORRUPT);
    assert_non_null(strstr(error, path));
    if (strstr(error, why) == NULL)
        fail_msg("'%s' instead of '%s'", error, why);
    assert_int_equal(identity.name, 0);
    assert_int_equal(file_load(path, 1 << 20, &left, &size), STATUS_OK); /* it stays as it is */
    assert_string_equal(left, text);
    mem_free(left);
}

static void files_that_are_no_identity(void **state)
{
    (void)state;
    refuse("", "this is no identity file");
    refuse("REDIS0009", "this is no identity file");
    refuse("keydb-identity 2\n", "a later version has written it");
    refuse("keydb-identity 1\n", "its end is missing");
    refuse("keydb-identity 1\nname x\ncrc64 0000000000000000\n", "its checksum is wrong");
}

/* Starts one after the other until something fails. Returns the number of those that may have been heard of. */
static unsigned live(uint64_t *origins, uint64_t *promised)
{
    unsigned count = 0;

    for (unsigned i = 0; i < STARTS; i++) {
        char error[IDENTITY_ERROR_BYTES];
        struct merge_identity identity;
        uint64_t clock;
        int64_t wall;

        if (identity_start(path, now_ms + i, &identity, &clock, &wall, error) != STATUS_OK) {
            assert_non_null(strstr(error, path));
            continue;
        }
        origins[count++] = identity.origin;
        *promised = identity.promised;
        identity_fini(&identity);
    }
    return count;
}

/* All of them are in the file, as the last or a former one, and the next start begins above what they promised. */
static void check_disk(const uint64_t *origins, unsigned count, uint64_t promised)
{
    struct merge_identity identity;
    uint64_t clock;
    int64_t wall;

    begin(now_ms, &identity, &clock, &wall);
    assert_true(count == 0 || clock >= promised);
    for (unsigned i = 0; i < count; i++)
        assert_true(merge_vector_has(&identity.former, origins[i]));
    identity_fini(&identity);
}

static void no_start_is_forgotten(void **state)
{
    static const enum fault_how hows[] = {FAULT_HOW_EIO, FAULT_HOW_ENOSPC, FAULT_HOW_SHORT, FAULT_HOW_TORN};
    struct random random = test_random("identity and power");

    (void)state;
    for (size_t how = 0; how < countof(hows); how++) {
        bool has_fired = true;

        for (uint64_t nth = 0; has_fired; nth++) {
            const uint64_t seed = nth % 2 == 0 ? 0 : 1 + random_below(&random, UINT32_MAX);
            uint64_t origins[STARTS], promised = 0;
            struct power_cut_loss loss;
            unsigned count;

            empty_folder();
            power_cut_begin(folder);
            assert_true(fault_arm_how(FAULT_FILE, nth, hows[how]));
            count = live(origins, &promised);
            has_fired = fault_fired();
            fault_disarm();
            assert_true(has_fired || count == STARTS);
            power_cut_apply(folder, POWER_CUT_NOW, seed, &loss);
            check_disk(origins, count, promised);
        }
    }
}

/* The power goes at any point of the last start: what the starts before had is there. */
static void power_cuts_at_any_point(void **state)
{
    uint64_t points = 1;

    (void)state;
    for (uint64_t cut = 0; cut <= points; cut++) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            uint64_t origins[STARTS], promised = 0;
            struct power_cut_loss loss;
            struct merge_identity identity;
            uint64_t clock, before;
            int64_t wall;
            unsigned count;

            empty_folder();
            power_cut_begin(folder);
            count = live(origins, &promised);
            assert_int_equal(count, STARTS);
            before = power_cut_point(folder);
            begin(now_ms, &identity, &clock, &wall);
            identity_fini(&identity);
            points = power_cut_point(folder) - before;
            power_cut_apply(folder, before + cut, seed, &loss);
            check_disk(origins, count, promised);
        }
    }
    assert_true(points > 3);
}

static void copies_are_noticed(void **state)
{
    const struct merge_member known = {.name = 5, .origin = 60, .incarnation = 3};
    struct merge_vector former = {0}, copied = {0};

    (void)state;
    merge_vector_set(&former, 58, 1);
    merge_vector_set(&former, 59, 1);
    merge_vector_copy(&copied, &former);
    assert_int_equal(identity_judge(&known, true, &known, &former), IDENTITY_SAME);
    /* Copied before the third start, and started: it does not know that one. */
    assert_int_equal(identity_judge(&known, false, &(struct merge_member){5, 61, 3}, &copied), IDENTITY_COPY);
    assert_int_equal(identity_judge(&known, true, &(struct merge_member){5, 61, 3}, &copied), IDENTITY_COPY);
    assert_int_equal(identity_judge(&known, false, &(struct merge_member){5, 61, 9}, &copied), IDENTITY_COPY);
    merge_vector_set(&former, 60, 1);
    assert_int_equal(identity_judge(&known, false, &(struct merge_member){5, 61, 4}, &former), IDENTITY_LATER);
    /* Copied while the third start runs: that one is still heard. */
    assert_int_equal(identity_judge(&known, true, &(struct merge_member){5, 61, 4}, &former), IDENTITY_COPY);
    /* From a file of before. */
    assert_int_equal(identity_judge(&known, false, &(struct merge_member){5, 61, 2}, &copied), IDENTITY_OLD);
    assert_int_equal(identity_judge(&known, true, &(struct merge_member){5, 61, 2}, &copied), IDENTITY_COPY);
    merge_vector_fini(&former);
    merge_vector_fini(&copied);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_start_has_a_new_origin),
        cmocka_unit_test(bounds_are_reserved_ahead),
        cmocka_unit_test(text_comes_back),
        cmocka_unit_test(files_that_are_no_identity),
        cmocka_unit_test(no_start_is_forgotten),
        cmocka_unit_test(power_cuts_at_any_point),
        cmocka_unit_test(copies_are_noticed),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
