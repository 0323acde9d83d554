#include "persist/aof_dump.h"

#include "base/clock.h"
#include "persist/byte_io.h"
#include "persist/key_delay.h"
#include "persist/rdb_payload.h"
#include "persist/rdb_save.h"
#include "persist/types.h"
#include "store/subkey_ttl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PROGRESS_KEYS = 1024 };

struct dumper {
    const struct aof_dump_request *request;
    struct aof_commands commands;
    const struct entry *large;    /* the key whose elements come one by one */
    struct rdb_writer payload;    /* of such a key that no command adds elements to */
    struct rdb_elements elements; /* in there */
    uint64_t keys, rested_keys;
    unsigned db; /* of the last key */
    bool has_selected;
    bool stopped;
    bool has_too_much; /* libraries, for the version that was wished for */
};

/* ---------------------------------------------------------------------------------------------------------- keys -- */

static void dump_restore(struct aof_commands *commands, const struct entry *entry, struct slice payload)
{
    const int64_t expire_ms = entry_expire_ms(entry);

    aof_command_begin(commands, 5);
    aof_put_text(commands, "RESTORE");
    aof_put(commands, commands->key);
    aof_put_number(commands, expire_ms != EXPIRE_NEVER ? expire_ms : 0);
    aof_put(commands, payload);
    aof_put_text(commands, "ABSTTL");
}

static void dump_payload(struct dumper *dumper, const struct entry *entry)
{
    struct rdb_writer writer;

    rdb_writer_init(&writer, &dumper->request->payload, NULL);
    rdb_payload_write(&writer, entry);
    dump_restore(&dumper->commands, entry, buffer_slice(&writer.out));
    rdb_writer_fini(&writer);
}

static void dump_deadline(struct aof_commands *commands, const struct entry *entry)
{
    int64_t expire_ms = entry_expire_ms(entry);

    if (expire_ms == EXPIRE_NEVER)
        return;
    aof_command_begin(commands, 3);
    aof_put_text(commands, "PEXPIREAT");
    aof_put(commands, commands->key);
    aof_put_number(commands, expire_ms);
}

static void dump_member_deadline(struct slice member, int64_t expire_ms, void *context)
{
    struct aof_commands *commands = context;

    aof_command_begin(commands, 4);
    aof_put_text(commands, "PEXPIREMEMBERAT");
    aof_put(commands, commands->key);
    aof_put(commands, member);
    aof_put_number(commands, expire_ms);
}

static void dump_field_deadline(struct slice field, int64_t expire_ms, void *context)
{
    struct aof_commands *commands = context;

    aof_command_begin(commands, 6);
    aof_put_text(commands, "HPEXPIREAT");
    aof_put(commands, commands->key);
    aof_put_number(commands, expire_ms);
    aof_put_text(commands, "FIELDS");
    aof_put_number(commands, 1);
    aof_put(commands, field);
}

/* Of fields in the words of Redis 7.4, if version 12 is allowed; else in KeyDB's. */
static deadline_fn deadline_dumper(const struct dumper *dumper, const struct entry *entry)
{
    const bool has_fields = type_row_of((enum value_type)entry->type)->has_fields;

    return has_fields && dumper->request->payload.most >= RDB_VERSION_FIELD_DEADLINES ? dump_field_deadline
                                                                                      : dump_member_deadline;
}

static void dump_member_deadlines(struct dumper *dumper, const struct entry *entry)
{
    if ((entry->flags & ENTRY_MEMBERS) != 0)
        entry_each_member_deadline(entry, deadline_dumper(dumper, entry), &dumper->commands);
}

/* False: no more. */
static bool tell_progress(void *context)
{
    struct dumper *dumper = context;

    if (dumper->request->progress != NULL && !dumper->request->progress(dumper->keys, dumper->request->context))
        dumper->stopped = true;
    return !dumper->stopped;
}

static bool rest(void *context)
{
    struct dumper *dumper = context;

    if (UNLIKELY(dumper->request->key_delay_us != 0)) {
        aof_commands_flush(&dumper->commands);
        if (key_delay_sleep(dumper->request->key_delay_us, dumper->keys - dumper->rested_keys, tell_progress, dumper))
            dumper->rested_keys = dumper->keys;
    }
    dumper->stopped |= dumper->commands.status != STATUS_OK;
    return !dumper->stopped;
}

static void select_database(struct dumper *dumper, unsigned db)
{
    if (dumper->has_selected && dumper->db == db)
        return;
    aof_command_begin(&dumper->commands, 2);
    aof_put_text(&dumper->commands, "SELECT");
    aof_put_number(&dumper->commands, db);
    dumper->has_selected = true;
    dumper->db = db;
}

static void count_key(struct dumper *dumper)
{
    dumper->keys++;
    if (UNLIKELY(dumper->request->key_delay_us != 0))
        (void)rest(dumper);
    if (dumper->keys % PROGRESS_KEYS == 0)
        (void)tell_progress(dumper);
    dumper->stopped |= dumper->commands.status != STATUS_OK;
}

static void dump_key(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct dumper *dumper = context;
    const struct type_row *row = type_row_of((enum value_type)entry->type);

    (void)access;
    if (UNLIKELY(dumper->stopped))
        return;
    select_database(dumper, db);
    dumper->commands.key = entry_key(entry);
    if (row->put_commands != NULL) {
        row->put_commands(&dumper->commands, entry);
        assert(dumper->commands.left == 0);
        dump_member_deadlines(dumper, entry);
        dump_deadline(&dumper->commands, entry);
    } else {
        dump_payload(dumper, entry);
    }
    count_key(dumper);
}

static const struct type_elements *elements_of(const struct dumper *dumper)
{
    return type_row_of((enum value_type)dumper->large->type)->elements;
}

static bool begin_large(struct access *access, unsigned db, const struct entry *entry,
                        const struct snapshot_value *value, void *context)
{
    struct dumper *dumper = context;

    (void)access;
    if (UNLIKELY(dumper->stopped))
        return false; /* deadlines come behind the elements */
    select_database(dumper, db);
    dumper->commands.key = entry_key(entry);
    dumper->large = entry;
    if (elements_of(dumper)->are_bytes) {
        aof_command_begin(&dumper->commands, 3);
        aof_put_text(&dumper->commands, "SET");
        aof_put(&dumper->commands, dumper->commands.key);
        aof_put_begin(&dumper->commands, value->count);
        return false;
    }
    if (elements_of(dumper)->command != NULL) {
        aof_elements(&dumper->commands, elements_of(dumper)->command, elements_of(dumper)->width, value->count);
        return false;
    }
    rdb_writer_init(&dumper->payload, &dumper->request->payload, NULL);
    assert(value->first_ms == EXPIRE_NEVER); /* whatever has no command for elements has no deadlines of members */
    rdb_write_byte(&dumper->payload,
                   rdb_elements_begin(&dumper->elements, &dumper->payload, entry, EXPIRE_NEVER)->number);
    rdb_write_elements_head(&dumper->payload, &dumper->elements, value->count);
    return false;
}

static void dump_element(const struct former_element *element, int64_t expire_ms, void *context)
{
    struct dumper *dumper = context;

    if (UNLIKELY(dumper->stopped))
        return;
    if (elements_of(dumper)->put != NULL)
        elements_of(dumper)->put(&dumper->commands, element);
    else
        rdb_write_one(&dumper->payload, &dumper->elements, element, expire_ms);
}

static void dump_large_deadline(struct slice member, int64_t expire_ms, void *context)
{
    struct dumper *dumper = context;

    if (LIKELY(!dumper->stopped))
        deadline_dumper(dumper, dumper->large)(member, expire_ms, &dumper->commands);
}

static void end_large(void *context)
{
    struct dumper *dumper = context;

    if (UNLIKELY(dumper->stopped))
        return;
    if (elements_of(dumper)->put != NULL) {
        assert(dumper->commands.left == 0 && dumper->commands.part == 0);
        dump_deadline(&dumper->commands, dumper->large);
    } else {
        rdb_write_elements_rest(&dumper->payload, &dumper->elements);
        rdb_payload_seal(&dumper->payload);
        dump_restore(&dumper->commands, dumper->large, buffer_slice(&dumper->payload.out));
        rdb_writer_fini(&dumper->payload);
        dumper->payload = (struct rdb_writer){.sink = NULL};
    }
    count_key(dumper);
}

static void dump_library(struct slice source, void *context)
{
    struct dumper *dumper = context;

    if (dumper->request->payload.most < RDB_VERSION_LISTPACKS) {
        dumper->has_too_much = true;
        return;
    }
    aof_command_begin(&dumper->commands, 3);
    aof_put_text(&dumper->commands, "FUNCTION");
    aof_put_text(&dumper->commands, "LOAD");
    aof_put(&dumper->commands, source);
}

static void dump_all(struct dumper *dumper)
{
    const struct snapshot_visitor visitor = {.visit = dump_key,
                                             .begin = begin_large,
                                             .element = dump_element,
                                             .deadline = dump_large_deadline,
                                             .end = end_large,
                                             .rest = rest,
                                             .context = dumper};

    if (dumper->request->writes_time)
        buffer_printf(&dumper->commands.out, "#TS:%" PRId64 "\r\n", clock_wall_ms() / 1000);
    if (dumper->request->libraries != NULL)
        dumper->request->libraries(dump_library, dumper);
    dumper->stopped = dumper->has_too_much;
    if (!dumper->stopped && !snapshot_each(dumper->request->keys, &visitor))
        dumper->stopped = true;
    aof_commands_flush(&dumper->commands);
    rdb_writer_fini(&dumper->payload); /* it was stopped in between */
}

/* --------------------------------------------------------------------------------------------------------- file -- */

static must_check enum status fail(const char *what, const char *path, enum status status, char *error,
                                   size_t error_size)
{
    (void)snprintf(error, error_size, "%s %s: %s", what, path, errno != 0 ? strerror(errno) : status_text(status));
    return status;
}

static must_check enum status status_of(const struct dumper *dumper)
{
    if (dumper->has_too_much)
        return STATUS_UNSUPPORTED;
    return dumper->commands.status == STATUS_OK && dumper->stopped ? STATUS_INTERRUPTED : dumper->commands.status;
}

enum status aof_dump_save(const struct aof_dump_request *request, char *error, size_t error_size)
{
    struct dumper dumper = {.request = request};
    struct file *file = NULL;
    struct file_sink sink;
    enum status status;

    error[0] = '\0';
    errno = 0;
    status = file_create_temp_named(&file, request->temp_path);
    if (status != STATUS_OK)
        return fail("cannot create", request->temp_path, status, error, error_size);
    file_sink_init(&sink, file, request->starts_writeback);
    dumper.commands.sink = &sink.sink;
    dump_all(&dumper);
    status = status_of(&dumper);
    if (status == STATUS_UNSUPPORTED) {
        (void)snprintf(error, error_size, "cannot write %s: %s", request->temp_path, rdb_too_old_for_libraries);
    } else if (status != STATUS_OK) {
        errno = status == STATUS_INTERRUPTED ? 0 : dumper.commands.error;
        status = fail("cannot write", request->temp_path, status, error, error_size);
    } else {
        status = file_commit(file, request->path);
        if (status != STATUS_OK)
            status = fail("cannot put in place", request->path, status, error, error_size);
    }
    file_close(&file);
    buffer_fini(&dumper.commands.out);
    return status;
}
