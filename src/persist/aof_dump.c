#include "persist/aof_dump.h"

#include "base/clock.h"
#include "base/number.h"
#include "data/hash.h"
#include "data/listpack.h"
#include "data/quicklist.h"
#include "data/set.h"
#include "data/zset.h"
#include "persist/byte_io.h"
#include "persist/rdb_payload.h"
#include "persist/rdb_save.h"
#include "store/subkey_ttl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS_MOST = 64, FLUSH_BYTES = 256 * 1024, PROGRESS_KEYS = 1024 };

struct dumper {
    const struct aof_dump_request *request;
    struct byte_sink *sink;
    struct buffer out;
    enum status status;
    int error;          /* errno of it */
    uint64_t keys;
    bool stopped;
    bool has_too_much;  /* libraries, for the version that was wished for */
    /* of the key under way */
    struct slice key;
    const char *command;
    unsigned width;     /* words an item: 1, or 2 for pairs */
    uint64_t left;      /* items to come */
    unsigned room;      /* of the command under way, in items */
    bool as_fields;     /* deadlines of its members are told as those of fields */
};

static void flush(struct dumper *dumper, size_t limit)
{
    if (dumper->out.size < limit || dumper->out.size == 0)
        return;
    if (dumper->status == STATUS_OK) {
        dumper->status = dumper->sink->write(dumper->sink, buffer_slice(&dumper->out));
        dumper->error = errno;
    }
    buffer_clear(&dumper->out);
}

/* ----------------------------------------------------------------------------------------------------- commands -- */

static void put_count(struct dumper *dumper, char sign, uint64_t count)
{
    buffer_append_char(&dumper->out, sign);
    buffer_append_u64(&dumper->out, count);
    buffer_append(&dumper->out, "\r\n", 2);
}

static void put(struct dumper *dumper, struct slice word)
{
    put_count(dumper, '$', word.size);
    buffer_append_slice(&dumper->out, word);
    buffer_append(&dumper->out, "\r\n", 2);
}

static void put_text(struct dumper *dumper, const char *word)
{
    put(dumper, slice_from_text(word));
}

static void put_number(struct dumper *dumper, int64_t number)
{
    char text[NUMBER_I64_SPACE];

    put(dumper, slice_make(text, number_format_i64(text, number)));
}

/* ------------------------------------------------------------------------------------------- values with items -- */

static void begin_items(struct dumper *dumper, const char *command, unsigned width, uint64_t count)
{
    dumper->command = command;
    dumper->width = width;
    dumper->left = count;
    dumper->room = 0;
}

/* Before each item: begins the next command when the one before is full. */
static void next_item(struct dumper *dumper)
{
    if (dumper->room == 0) {
        flush(dumper, FLUSH_BYTES);
        dumper->room = (unsigned)MIN(dumper->left, (uint64_t)ITEMS_MOST);
        put_count(dumper, '*', 2 + (uint64_t)dumper->room * dumper->width);
        put_text(dumper, dumper->command);
        put(dumper, dumper->key);
    }
    dumper->room--;
    dumper->left--;
}

static void put_member(struct slice member, void *context)
{
    next_item(context);
    put(context, member);
}

static void put_pair(struct slice field, struct slice value, void *context)
{
    next_item(context);
    put(context, field);
    put(context, value);
}

static void dump_list(struct dumper *dumper, const struct quicklist *list)
{
    struct quicklist_iter iter;
    struct listpack_value value;

    begin_items(dumper, "RPUSH", 1, quicklist_count(list));
    quicklist_iter_init(&iter, list, 0, QUICKLIST_FORWARD);
    while (quicklist_iter_next(&iter, &value)) {
        next_item(dumper);
        if (value.text.data != NULL)
            put(dumper, value.text);
        else
            put_number(dumper, value.number);
    }
    quicklist_iter_fini(&iter);
}

static void dump_zset(struct dumper *dumper, struct value zset)
{
    struct zset_walk walk;
    struct slice member;
    char text[NUMBER_DOUBLE_SPACE];
    double score;

    begin_items(dumper, "ZADD", 2, zset_count(zset));
    zset_walk_begin(&walk, zset, (struct zset_span){0, zset_count(zset)}, false);
    while (zset_walk_next(&walk, &member, &score)) {
        next_item(dumper);
        put(dumper, slice_make(text, number_format_double(text, score)));
        put(dumper, member);
    }
}

static void dump_string(struct dumper *dumper, const struct entry *entry)
{
    char scratch[ENTRY_INT_TEXT_BYTES];

    put_count(dumper, '*', 3);
    put_text(dumper, "SET");
    put(dumper, dumper->key);
    put(dumper, entry_string(entry, scratch));
}

/* ---------------------------------------------------------------------------------------------------------- keys -- */

static void dump_payload(struct dumper *dumper, const struct entry *entry)
{
    int64_t expire_ms = entry_expire_ms(entry);
    struct rdb_writer writer;

    rdb_writer_init(&writer, &dumper->request->payload, NULL);
    rdb_payload_write(&writer, entry);
    put_count(dumper, '*', 5);
    put_text(dumper, "RESTORE");
    put(dumper, dumper->key);
    put_number(dumper, expire_ms != EXPIRE_NEVER ? expire_ms : 0);
    put(dumper, buffer_slice(&writer.out));
    put_text(dumper, "ABSTTL");
    rdb_writer_fini(&writer);
}

static bool has_commands(const struct entry *entry)
{
    switch ((enum value_type)entry->type) {
    case TYPE_STRING:
    case TYPE_LIST:
    case TYPE_SET:
    case TYPE_HASH:
    case TYPE_ZSET:
        return true;
    default:
        return false;
    }
}

static void dump_by_type(struct dumper *dumper, const struct entry *entry)
{
    switch ((enum value_type)entry->type) {
    case TYPE_STRING:
        dump_string(dumper, entry);
        break;
    case TYPE_LIST:
        dump_list(dumper, entry_value(entry).data);
        break;
    case TYPE_SET:
        begin_items(dumper, "SADD", 1, set_count(entry_value(entry)));
        set_each(entry_value(entry), put_member, dumper);
        break;
    case TYPE_HASH:
        begin_items(dumper, "HSET", 2, hash_count(entry_value(entry)));
        hash_each(entry_value(entry), put_pair, dumper);
        break;
    default:
        dump_zset(dumper, entry_value(entry));
        break;
    }
}

static void dump_deadline(struct dumper *dumper, const struct entry *entry)
{
    int64_t expire_ms = entry_expire_ms(entry);

    if (expire_ms == EXPIRE_NEVER)
        return;
    put_count(dumper, '*', 3);
    put_text(dumper, "PEXPIREAT");
    put(dumper, dumper->key);
    put_number(dumper, expire_ms);
}

static void dump_member_deadline(struct slice member, int64_t expire_ms, void *context)
{
    struct dumper *dumper = context;

    flush(dumper, FLUSH_BYTES);
    put_count(dumper, '*', dumper->as_fields ? 6 : 4);
    put_text(dumper, dumper->as_fields ? "HPEXPIREAT" : "PEXPIREMEMBERAT");
    put(dumper, dumper->key);
    if (!dumper->as_fields)
        put(dumper, member);
    put_number(dumper, expire_ms);
    if (!dumper->as_fields)
        return;
    put_text(dumper, "FIELDS");
    put_number(dumper, 1);
    put(dumper, member);
}

/* For hashes in the words of Redis 7.4, if version 12 is allowed; else in KeyDB's. */
static void dump_member_deadlines(struct dumper *dumper, const struct entry *entry)
{
    if ((entry->flags & ENTRY_MEMBERS) == 0)
        return;
    dumper->as_fields = entry->type == TYPE_HASH && dumper->request->payload.most >= RDB_VERSION_FIELD_DEADLINES;
    entry_each_member_deadline(entry, dump_member_deadline, dumper);
}

static void rest_after_key(struct dumper *dumper)
{
    int64_t delay_us = dumper->request->key_delay_us;

    if (LIKELY(delay_us == 0))
        return;
    flush(dumper, 0);
    if (delay_us > 0)
        (void)usleep((useconds_t)delay_us);
    else if (dumper->keys % (uint64_t)-delay_us == 0)
        (void)usleep(1);
}

static void dump_key(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct dumper *dumper = context;

    (void)access;
    (void)db;
    if (UNLIKELY(dumper->stopped))
        return;
    dumper->key = entry_key(entry);
    if (has_commands(entry)) {
        dump_by_type(dumper, entry);
        dump_member_deadlines(dumper, entry);
        dump_deadline(dumper, entry);
    } else {
        dump_payload(dumper, entry);
    }
    flush(dumper, FLUSH_BYTES);
    dumper->keys++;
    rest_after_key(dumper);
    if (dumper->keys % PROGRESS_KEYS == 0 && dumper->request->progress != NULL)
        dumper->stopped = !dumper->request->progress(dumper->keys, dumper->request->context);
    dumper->stopped |= dumper->status != STATUS_OK;
}

static void dump_library(struct slice source, void *context)
{
    struct dumper *dumper = context;

    if (dumper->request->payload.most < RDB_VERSION_LISTPACKS) {
        dumper->has_too_much = true;
        return;
    }
    put_count(context, '*', 3);
    put_text(context, "FUNCTION");
    put_text(context, "LOAD");
    put(context, source);
}

static void dump_all(struct dumper *dumper)
{
    const struct access_visitor visitor = {.visit = dump_key, .context = dumper};
    struct snapshot *keys = dumper->request->keys;
    struct database_totals totals;

    if (dumper->request->writes_time)
        buffer_printf(&dumper->out, "#TS:%" PRId64 "\r\n", clock_wall_ms() / 1000);
    if (dumper->request->libraries != NULL)
        dumper->request->libraries(dump_library, dumper);
    dumper->stopped = dumper->has_too_much;
    for (unsigned db = 0; db < snapshot_database_bound(keys) && !dumper->stopped; db++) {
        snapshot_totals(keys, db, &totals);
        if (totals.keys == 0)
            continue;
        put_count(dumper, '*', 2);
        put_text(dumper, "SELECT");
        put_number(dumper, db);
        snapshot_each(keys, db, &visitor);
    }
    flush(dumper, 0);
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
    return dumper->status == STATUS_OK && dumper->stopped ? STATUS_INTERRUPTED : dumper->status;
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
    dumper.sink = &sink.sink;
    dump_all(&dumper);
    status = status_of(&dumper);
    if (status == STATUS_UNSUPPORTED) {
        (void)snprintf(error, error_size, "cannot write %s: %s", request->temp_path, rdb_too_old_for_libraries);
    } else if (status != STATUS_OK) {
        errno = status == STATUS_INTERRUPTED ? 0 : dumper.error;
        status = fail("cannot write", request->temp_path, status, error, error_size);
    } else {
        status = file_commit(file, request->path);
        if (status != STATUS_OK)
            status = fail("cannot put in place", request->path, status, error, error_size);
    }
    file_close(&file);
    buffer_fini(&dumper.out);
    return status;
}
