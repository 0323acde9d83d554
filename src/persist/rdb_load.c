#include "persist/rdb_load.h"

#include "store/members.h"
#include "store/usage.h"

#include <stdio.h>
#include <unistd.h>

struct loader {
    struct rdb_handler handler;
    const struct rdb_load_request *request;
    struct rdb_load_result *result;
    uint64_t next_pause; /* offset */
};

static void put_deadline(struct slice member, int64_t when_ms, void *context)
{
    change_member_expire(context, member, when_ms);
}

static void set_use(const struct access *access, struct entry *entry, const struct rdb_key *key)
{
    if (key->idle_s >= 0 && !access->counts_uses)
        entry->clock = (access->clock - (uint32_t)MIN(key->idle_s, (int64_t)0xffffff)) & 0xffffff;
    if (key->frequency >= 0 && access->counts_uses)
        entry->clock = (access->clock & ~(uint32_t)0xff) | (uint32_t)key->frequency;
}

static void put(struct access *access, const struct rdb_key *from, const struct key *key, struct change *change,
                struct rdb_value *value)
{
    (void)key;
    if (value->type == TYPE_STRING)
        change_put_string(change, value->text, from->expire_ms);
    else
        change_put_value(change, value->type, value->value, from->expire_ms);
    value->value.data = NULL;
    if (UNLIKELY(from->idle_s >= 0 || from->frequency >= 0))
        set_use(access, change_entry(change), from);
    if (UNLIKELY(deadlines_count(&value->members) != 0))
        deadlines_each_due(&value->members, DEADLINE_NONE, put_deadline, change);
}

static bool pause_now(struct loader *loader, struct rdb_reader *reader)
{
    const struct rdb_load_request *request = loader->request;
    uint64_t offset = rdb_reader_offset(reader);

    loader->next_pause = offset + request->pause_bytes;
    if (request->pause == NULL || request->pause(offset, loader->result->keys, request->context))
        return true;
    return rdb_fail(reader, STATUS_INTERRUPTED, "interrupted");
}

static bool take_a_rest(struct loader *loader, struct rdb_reader *reader)
{
    int64_t delay_us = loader->request->key_delay_us;

    if (delay_us > 0) {
        (void)usleep((useconds_t)delay_us);
        return pause_now(loader, reader);
    }
    if (loader->result->keys % (uint64_t)-delay_us == 0)
        (void)usleep(1);
    return true;
}

static bool load_key(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *from,
                     struct rdb_value *value)
{
    struct loader *loader = (struct loader *)handler;
    struct access *access = loader->request->access;
    struct change change;
    struct key key;

    if (UNLIKELY(value->is_empty)) {
        loader->result->empty++;
        return true;
    }
    if (from->expire_ms != EXPIRE_NEVER && from->expire_ms < access->now_ms && !loader->request->keeps_expired) {
        loader->result->expired++;
        return true;
    }
    key = key_make(from->name);
    change_begin(&change, access, from->db, &key);
    if (UNLIKELY(change_entry(&change) != NULL && !loader->request->replaces)) {
        change_abandon(&change);
        return rdb_fail(reader, STATUS_EXISTS, "the key is there twice");
    }
    put(access, from, &key, &change, value);
    change_abandon(&change); /* nobody is told of keys that are loaded */
    loader->result->keys++;
    if (UNLIKELY(loader->request->key_delay_us != 0) && !take_a_rest(loader, reader))
        return false;
    return LIKELY(rdb_reader_offset(reader) < loader->next_pause) || pause_now(loader, reader);
}

static bool load_library(struct rdb_handler *handler, struct rdb_reader *reader, struct slice source)
{
    const struct rdb_load_request *request = ((struct loader *)handler)->request;
    char error[160] = "";

    if (request->library(source, request->replaces, error, sizeof(error)))
        return true;
    return rdb_fail(reader, STATUS_INVALID, "a library of functions cannot be loaded: %s", error);
}

static void load_aux(struct rdb_handler *handler, struct slice name, struct slice value)
{
    const struct rdb_load_request *request = ((struct loader *)handler)->request;

    if (request->aux != NULL)
        request->aux(name, value, request->context);
}

bool rdb_load(struct byte_source *source, const struct rdb_load_request *request, struct rdb_load_result *result)
{
    struct loader loader = {
        .handler = {.key = load_key, .library = request->library != NULL ? load_library : NULL, .aux = load_aux,
                    .limits = request->limits, .database_count = request->access->store->database_count},
        .request = request,
        .result = result,
        .next_pause = request->pause_bytes,
    };
    struct rdb_reader reader;
    bool good;

    *result = (struct rdb_load_result){.keys = 0};
    rdb_reader_init(&reader, source);
    reader.sums = request->checks_sum;
    good = rdb_read_file(&reader, &loader.handler);
    result->status = reader.status;
    result->failed_at = reader.failed_at;
    result->bytes = rdb_reader_offset(&reader);
    result->version = loader.handler.version;
    (void)snprintf(result->error, sizeof(result->error), "%s", reader.error);
    rdb_reader_fini(&reader);
    return good;
}
