/* Payloads of FUNCTION RESTORE are outside bytes, and their libraries are run to see what they register. Properties:
 * all libraries are loaded or none; loaded libraries are dumped as bytes that restore the same. */
#include "base/mem.h"
#include "base/tick.h"
#include "fuzz.h"
#include "persist/rdb_payload.h"
#include "script/function_payload.h"
#include "script/script_host_priv.h"

static struct script_host *host;

static void tell(const struct library *library, void *context)
{
    (void)library;
    (void)context;
}

static void restore(struct slice payload, bool must_succeed)
{
    struct functions_facts before, after;
    struct buffer error = {0};

    functions_facts(&before);
    if (!function_payload_restore(host, payload, FUNCTIONS_FLUSH, tell, NULL, &error)) {
        functions_facts(&after);
        assert(!must_succeed && error.size > 4);
        assert(before.libraries == after.libraries && before.functions == after.functions);
    }
    buffer_fini(&error);
}

/* Unchanged, or sealed, so that the contents are examined. */
static void seal(struct slice body, struct buffer *payload)
{
    const struct rdb_write_options options = {.least = RDB_VERSION_LISTPACKS, .most = RDB_VERSION_LISTPACKS};
    struct rdb_writer writer;

    rdb_writer_init(&writer, &options, NULL);
    rdb_write_bytes(&writer, body);
    rdb_payload_seal(&writer);
    buffer_append(payload, writer.out.data, writer.out.size);
    rdb_writer_fini(&writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    struct buffer payload = {0}, dump = {0}, again = {0};
    uint8_t how = fuzz_take_byte(&input);

    if (host == NULL) {
        tick_setup();
        functions_setup();
        host = script_host_open_alone();
        host->vm->bytes_most = 64 << 20;
    }
    if (how == 0)
        buffer_append(&payload, input.data != NULL ? input.data : "", input.size);
    else
        seal(input, &payload);
    restore(buffer_slice(&payload), false);
    function_payload_write(&dump);
    restore(buffer_slice(&dump), true);
    function_payload_write(&again);
    assert(slice_equal(buffer_slice(&dump), buffer_slice(&again)));
    functions_flush();
    buffer_fini(&payload);
    buffer_fini(&dump);
    buffer_fini(&again);
    return 0;
}
