/* What a node reads of itself at its start: the identity file, and the state and the records of keys in an RDB file.
 * The first byte says which. Properties: what is read, written and read again is the same; an error is one printable
 * line, and nothing was taken. */
#include "active/identity.h"
#include "active/moment.h"
#include "fuzz.h"

#include "base/crc64.h"
#include "store/stamp.h"

enum { DB_COUNT = 16 };

static void check_error(const char *error)
{
    assert(error[0] != '\0');
    for (; *error != '\0'; error++)
        assert(*error >= ' ' && *error <= '~');
}

/* The checksum is made right, or nothing behind it would be read. */
static void check_identity(struct slice input)
{
    char error[IDENTITY_ERROR_BYTES];
    struct merge_identity identity, same;
    struct buffer text = {0}, again = {0}, third = {0};

    buffer_append_slice(&text, input);
    buffer_printf(&text, "crc64 %016llx\n", (unsigned long long)crc64_update(0, text.data, text.size));
    if (!identity_parse(buffer_slice(&text), &identity, error)) {
        check_error(error);
        assert(identity.name == 0 && identity.former.count == 0 && identity.members.count == 0);
        goto out;
    }
    assert(stamp_is_possible(identity.promised) && identity.wall >= 0 && identity.wall <= STAMP_MOST_MS);
    identity_format(&identity, &again);
    assert(identity_parse(buffer_slice(&again), &same, error));
    identity_format(&same, &third);
    assert(slice_equal(buffer_slice(&again), buffer_slice(&third)));
    identity_fini(&identity);
    identity_fini(&same);
out:
    buffer_fini(&text);
    buffer_fini(&again);
    buffer_fini(&third);
}

static void check_state(struct slice input)
{
    char error[MOMENT_ERROR_BYTES];
    struct moment moment;
    struct buffer again = {0};

    if (!moment_read(input, DB_COUNT, &moment, error)) {
        check_error(error);
        assert(moment.account.vector.count == 0 && moment.flushes.count == 0);
        return;
    }
    for (uint32_t i = 0; i < moment.flushes.count; i++)
        assert(moment.flushes.items[i].db < DB_COUNT);
    moment_write(&again, &moment);
    assert(slice_equal(buffer_slice(&again), input));
    buffer_fini(&again);
    moment_fini(&moment);
}

static void check_record(struct slice input)
{
    char error[MOMENT_ERROR_BYTES];
    struct moment_record record;
    struct buffer again = {0};

    if (!moment_read_record(input, DB_COUNT, &record, error)) {
        check_error(error);
        return;
    }
    assert(record.db < DB_COUNT);
    moment_write_record(&again, &record);
    assert(slice_equal(buffer_slice(&again), input));
    buffer_fini(&again);
    moment_record_fini(&record);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);

    switch (fuzz_take_byte(&input) % 3) {
    case 0:
        check_identity(input);
        break;
    case 1:
        check_state(input);
        break;
    default:
        check_record(input);
    }
    return 0;
}
