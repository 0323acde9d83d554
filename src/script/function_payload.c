#include "script/function_payload.h"

#include "base/array.h"
#include "base/gate.h"
#include "persist/rdb_payload.h"

/* ------------------------------------------------------------------------------------------------------ writing -- */

static void write_source(struct slice source, void *context)
{
    rdb_write_byte(context, RDB_FUNCTION);
    rdb_write_text(context, source);
}

void function_payload_write(struct buffer *out)
{
    /* All servers with functions read this version, and no library needs a later one. */
    const struct rdb_write_options options = {.least = RDB_VERSION_LISTPACKS,
                                              .most = RDB_VERSION_LISTPACKS,
                                              .compresses = true};
    struct rdb_writer writer;

    functions_assert_steady();
    rdb_writer_init(&writer, &options, NULL);
    functions_each_source(write_source, &writer);
    rdb_payload_seal(&writer);
    buffer_append(out, writer.out.data, writer.out.size);
    rdb_writer_fini(&writer);
}

/* ------------------------------------------------------------------------------------------------------ reading -- */

struct restored {
    struct library **items;
    uint32_t count, capacity;
};

static bool has_library(const struct restored *restored, const char *name)
{
    for (uint32_t i = 0; i < restored->count; i++) {
        if (strcmp(restored->items[i]->name, name) == 0)
            return true;
    }
    return false;
}

static bool add_library(struct restored *restored, struct script_host *host, struct slice source, struct buffer *error)
{
    struct library *library = function_host_load(host, source, error);

    if (library == NULL)
        return false;
    if (has_library(restored, library->name)) {
        buffer_printf(error, "ERR Library '%s' already exists", library->name);
        library_release(&library);
        return false;
    }
    *ARRAY_PUSH(restored) = library;
    return true;
}

static bool read_libraries(struct restored *restored, struct script_host *host, struct slice body, struct buffer *error)
{
    struct rdb_reader reader;
    struct slice source;
    unsigned opcode;
    bool fine = true;

    rdb_reader_init_memory(&reader, body);
    while (fine && rdb_peek_byte(&reader, &opcode)) {
        fine = rdb_read_byte(&reader, &opcode) && opcode == RDB_FUNCTION;
        if (!fine) {
            buffer_append_text(error, "ERR given type is not a function");
        } else if (!rdb_read_text(&reader, &source)) {
            buffer_append_text(error, "ERR Failed loading library payload");
            fine = false;
        } else {
            fine = add_library(restored, host, source, error);
        }
    }
    rdb_reader_fini(&reader);
    return fine;
}

bool function_payload_restore(struct script_host *host, struct slice payload, enum functions_policy policy,
                              void (*tell)(const struct library *library, void *context), void *context,
                              struct buffer *error)
{
    struct restored restored = {0};
    struct slice body;
    bool fine = rdb_payload_check(payload, &body);

    gate_assert_alone();
    if (!fine)
        buffer_append_text(error, "ERR DUMP payload version or checksum are wrong");
    fine = fine && read_libraries(&restored, host, body, error) &&
           functions_add(restored.items, restored.count, policy, false, error);
    if (fine)
        tell(NULL, context);
    for (uint32_t i = 0; i < restored.count; i++) {
        if (fine)
            tell(restored.items[i], context);
        library_release(&restored.items[i]);
    }
    ARRAY_FINI(&restored);
    return fine;
}
