#include "persist/rdb_load.h"

#include "base/gate.h"
#include "persist/rdb_loaders.h"

#include <stdio.h>
#include <unistd.h>

/* The source, as the reader sees it. */
struct patient_source {
    struct byte_source source;
    struct byte_source *from;
    struct loader *loader;
};

struct loader {
    struct rdb_handler handler;
    struct patient_source patient;
    const struct rdb_load_request *request;
    struct rdb_load_result *result;
    struct rdb_loaders *loaders;
    uint64_t given;      /* keys */
    uint64_t next_pause; /* offset */
};

static must_check enum status read_patiently(struct byte_source *source, void *data, size_t size, size_t *got)
{
    struct patient_source *patient = (struct patient_source *)source;
    const struct rdb_load_request *request = patient->loader->request;
    struct rdb_loaders_totals totals;
    enum status status;

    if (!request->may_wait(patient->from))
        return patient->from->read(patient->from, data, size, got);
    rdb_loaders_rest(patient->loader->loaders, &totals);
    request->rest(true, request->context);
    status = patient->from->read(patient->from, data, size, got);
    request->rest(false, request->context);
    return status;
}

static bool pause_now(struct loader *loader, struct rdb_reader *reader)
{
    const struct rdb_load_request *request = loader->request;
    uint64_t offset = rdb_reader_offset(reader);
    struct rdb_loaders_totals totals;

    loader->next_pause = offset + request->pause_bytes;
    if (request->pause == NULL)
        return true;
    rdb_loaders_rest(loader->loaders, &totals);
    if (totals.status != STATUS_OK)
        return rdb_corrupt(reader, "a key cannot be loaded");
    if (request->pause(offset, totals.keys, request->context))
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
    if (loader->given % (uint64_t)-delay_us == 0)
        (void)usleep(1);
    return true;
}

/* Its time is over, and it is nobody else's to say so. */
static bool is_gone(struct loader *loader, const struct rdb_key *key)
{
    if (LIKELY(key->expire_ms == EXPIRE_NEVER) || key->expire_ms >= loader->request->access->now_ms)
        return false;
    if (loader->request->keeps_expired) {
        loader->result->overdue++;
        return false;
    }
    loader->result->expired++;
    return true;
}

/* `given`: the loaders have it, and have found no fault so far; a fault is reported at the end. */
static bool after_key(struct loader *loader, struct rdb_reader *reader, bool given)
{
    if (UNLIKELY(!given))
        return rdb_corrupt(reader, "a key cannot be loaded");
    loader->given++;
    if (UNLIKELY(loader->request->key_delay_us != 0) && !take_a_rest(loader, reader))
        return false;
    return LIKELY(rdb_reader_offset(reader) < loader->next_pause) || pause_now(loader, reader);
}

static bool load_record(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *key,
                        struct slice record)
{
    struct loader *loader = (struct loader *)handler;

    return is_gone(loader, key) || after_key(loader, reader, rdb_loaders_give_record(loader->loaders, key, record));
}

static bool load_key(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *key,
                     struct rdb_value *value)
{
    struct loader *loader = (struct loader *)handler;

    return is_gone(loader, key) || after_key(loader, reader, rdb_loaders_give_value(loader->loaders, key, value));
}

static bool load_library(struct rdb_handler *handler, struct rdb_reader *reader, struct slice source)
{
    const struct rdb_load_request *request = ((struct loader *)handler)->request;
    char error[160] = "";

    if (request->library(source, request->replaces, error, sizeof(error)))
        return true;
    return rdb_fail(reader, STATUS_INVALID, "a library of functions cannot be loaded: %s", error);
}

static unsigned number_of(struct rdb_handler *handler, uint64_t id)
{
    const struct rdb_load_request *request = ((struct loader *)handler)->request;

    return request->origin(id, request->context);
}

static void load_aux(struct rdb_handler *handler, struct slice name, struct slice value)
{
    const struct rdb_load_request *request = ((struct loader *)handler)->request;

    if (request->aux != NULL)
        request->aux(name, value, request->context);
}

static void tell(struct rdb_load_result *result, enum status status, uint64_t failed_at, const char *error)
{
    result->status = status;
    result->failed_at = failed_at;
    (void)snprintf(result->error, sizeof(result->error), "%s", error);
}

bool rdb_load(struct byte_source *source, const struct rdb_load_request *request, struct rdb_load_result *result)
{
    struct loader loader = {
        .handler = {.key = load_key,
                    .record = load_record,
                    .aux = load_aux,
                    .origin = request->origin != NULL ? number_of : NULL,
                    .library = request->library != NULL ? load_library : NULL,
                    .limits = request->limits,
                    .database_count = request->access->store->database_count},
        .request = request,
        .result = result,
        .next_pause = request->pause_bytes,
    };
    struct rdb_loaders_totals totals;
    struct rdb_reader reader;
    bool good;

    gate_assert_alone();
    assert(request->access->exclusive);
    *result = (struct rdb_load_result){.keys = 0};
    loader.loaders = rdb_loaders_create(request);
    loader.patient = (struct patient_source){.source = {.read = read_patiently, .size = source->size},
                                             .from = source,
                                             .loader = &loader};
    rdb_reader_init(&reader, request->may_wait != NULL ? &loader.patient.source : source);
    reader.sums = request->checks_sum;
    good = rdb_read_file(&reader, &loader.handler);
    rdb_loaders_rest(loader.loaders, &totals);
    rdb_loaders_destroy(&loader.loaders);
    result->keys = totals.keys;
    result->empty = totals.empty;
    result->bytes = rdb_reader_offset(&reader);
    result->version = loader.handler.version;
    if (totals.status != STATUS_OK) /* this fault comes before the one that ended the reading */
        tell(result, totals.status, totals.failed_at, totals.error);
    else
        tell(result, reader.status, reader.failed_at, reader.error);
    rdb_reader_fini(&reader);
    return good && totals.status == STATUS_OK;
}
