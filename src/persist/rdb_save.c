#include "persist/rdb_save.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/crc64.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/status.h"
#include "persist/key_delay.h"
#include "persist/rdb_piece.h"
#include "persist/types.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PROGRESS_KEYS = 1024 };

const char rdb_too_old_for_libraries[] = "functions need version 10, but rdb-version is 9: set it to auto";

/* What savers of several threads share. */
struct savers {
    struct saver *items; /* const; the first one tells of progress */
    unsigned count;      /* const */
    struct rdb_joint joint;
    _Atomic unsigned char *is_sized; /* atomic: relaxed; by database, a bit each: its size was written */
    _Atomic bool stopped;            /* atomic: relaxed; one of them was */
};

/* A thread's. */
struct saver {
    const struct rdb_save_request *request;
    struct rdb_writer writer;
    struct savers *all;     /* while keys are saved */
    struct rdb_piece piece; /* of one of several */
    uint64_t keys, rested_keys, records;
    _Atomic uint64_t told_keys; /* atomic: relaxed; as many as the first one knows of */
    unsigned db;                /* of the last key */
    bool has_selected;
    struct rdb_elements large; /* of the key whose elements come one by one */
    bool is_in_large;          /* there is one */
    bool stopped;
    bool has_too_much; /* libraries, for the version that was wished for */
};

static struct slice header_of(int version, char room[RDB_HEADER_BYTES])
{
    memcpy(room, version == RDB_VERSION_VALKEY ? "VALKEY000" : "REDIS0000", RDB_HEADER_BYTES);
    room[RDB_HEADER_BYTES - 1] = (char)('0' + version % 10);
    room[RDB_HEADER_BYTES - 2] = (char)('0' + version / 10);
    return slice_make(room, RDB_HEADER_BYTES);
}

/* ------------------------------------------------------------------------------------------------------- keys -- */

static void write_use(struct saver *saver, const struct entry *entry)
{
    const struct rdb_save_request *request = saver->request;
    const struct access *access = request->keys->access;

    if (request->use == RDB_USE_IDLE) {
        rdb_write_byte(&saver->writer, RDB_IDLE);
        rdb_write_length(&saver->writer, (access->clock - entry->clock) & 0xffffff);
    } else if (request->use == RDB_USE_FREQUENCY) {
        rdb_write_byte(&saver->writer, RDB_FREQUENCY);
        rdb_write_byte(&saver->writer, lru_lfu_count(entry->clock, access->now_ms, request->lfu));
    }
}

/* 12 bytes a key. */
static void write_version(struct saver *saver, uint64_t version)
{
    static const char head[] = {(char)RDB_AUX, 1, 'v', sizeof(version)};

    if (version_stamp(version) <= saver->request->origins->since[version_origin(version)])
        version |= VERSION_ORIGINS - 1; /* behind the list's end */
    rdb_write_bytes(&saver->writer, slice_make(head, sizeof(head)));
    rdb_write_u64(&saver->writer, version);
}

/* Where it is missing KeyDB takes the key for the youngest. Its counter has 20 bits, ours 14. */
static void write_mvcc(struct saver *saver, uint64_t version)
{
    char digits[NUMBER_I64_SPACE];
    const uint64_t mvcc = version != 0 ? version_stamp(version) << 6 : 0;

    rdb_write_byte(&saver->writer, RDB_AUX);
    rdb_write_text(&saver->writer, RDB_AUX_STAMP);
    rdb_write_text(&saver->writer, slice_make(digits, number_format_u64(digits, mvcc)));
}

static bool is_one_of_several(const struct saver *saver)
{
    return saver->all != NULL && saver->all->count != 1;
}

static uint64_t keys_of_all(const struct savers *all)
{
    uint64_t keys = 0;

    for (unsigned i = 0; i < all->count; i++)
        keys += atomic_load_explicit(&all->items[i].told_keys, memory_order_relaxed);
    return keys;
}

/* When one has to stop the others do. */
static void tell_others(struct saver *saver)
{
    atomic_store_explicit(&saver->told_keys, saver->keys, memory_order_relaxed);
    if (saver->stopped)
        atomic_store_explicit(&saver->all->stopped, true, memory_order_relaxed);
    saver->stopped = atomic_load_explicit(&saver->all->stopped, memory_order_relaxed);
}

/* False: no more. */
static bool tell_progress(void *context)
{
    struct saver *saver = context;
    uint64_t keys = saver->keys;

    if (is_one_of_several(saver)) {
        tell_others(saver);
        if (saver != &saver->all->items[0])
            return !saver->stopped;
        keys = keys_of_all(saver->all);
    }
    if (saver->request->progress != NULL && !saver->request->progress(keys, saver->request->context))
        saver->stopped = true;
    return !saver->stopped;
}

/* The database of the keys that follow. */
static void select_database(struct saver *saver, unsigned db)
{
    const unsigned char bit = (unsigned char)(1U << (db % 8));
    struct database_totals totals;

    if (saver->has_selected && saver->db == db)
        return;
    rdb_write_byte(&saver->writer, RDB_SELECT);
    rdb_write_length(&saver->writer, db);
    saver->has_selected = true;
    saver->db = db;
    if (!snapshot_has_all(saver->request->keys) ||
        (atomic_fetch_or_explicit(&saver->all->is_sized[db / 8], bit, memory_order_relaxed) & bit) != 0)
        return;
    snapshot_totals(saver->request->keys, db, &totals);
    rdb_write_byte(&saver->writer, RDB_RESIZE);
    rdb_write_length(&saver->writer, totals.keys);
    rdb_write_length(&saver->writer, totals.expires);
}

/* Others may give theirs. */
static void end_piece(struct saver *saver)
{
    if (is_one_of_several(saver) && rdb_piece_end(&saver->piece))
        saver->has_selected = false;
}

static bool rest(void *context)
{
    struct saver *saver = context;

    if (UNLIKELY(saver->request->key_delay_us != 0)) {
        status_ignore(rdb_writer_flush(&saver->writer), "it stays in the writer, and is looked at below");
        if (key_delay_sleep(saver->request->key_delay_us, saver->keys - saver->rested_keys, tell_progress, saver))
            saver->rested_keys = saver->keys;
    }
    saver->stopped |= saver->writer.status != STATUS_OK;
    if (is_one_of_several(saver)) {
        (void)tell_progress(saver);
        if (!saver->is_in_large || saver->stopped)
            end_piece(saver);
    }
    return !saver->stopped;
}

/* What comes before the number of the value's form. */
static void save_head(struct saver *saver, unsigned db, const struct entry *entry)
{
    const int64_t expire_ms = entry_expire_ms(entry);

    select_database(saver, db);
    if (expire_ms != EXPIRE_NEVER) {
        rdb_write_byte(&saver->writer, RDB_EXPIRE_MS);
        rdb_write_u64(&saver->writer, (uint64_t)expire_ms);
    }
    if (saver->request->use != RDB_USE_NOTHING)
        write_use(saver, entry);
    if (saver->request->origins != NULL && entry_version(entry) != 0)
        write_version(saver, entry_version(entry));
    if (saver->request->with_mvcc)
        write_mvcc(saver, entry_version(entry));
}

static void count_key(struct saver *saver)
{
    saver->keys++;
    end_piece(saver);
    if (UNLIKELY(saver->request->key_delay_us != 0))
        (void)rest(saver);
    if (saver->keys % PROGRESS_KEYS == 0)
        (void)tell_progress(saver);
    saver->stopped |= saver->writer.status != STATUS_OK;
}

static void save_key(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct saver *saver = context;
    struct rdb_writer *writer = &saver->writer;
    const struct rdb_form *form;

    (void)access;
    if (UNLIKELY(saver->stopped))
        return;
    save_head(saver, db, entry);
    form = rdb_write_form_of(writer, entry);
    rdb_write_byte(writer, rdb_type_byte(form->number));
    rdb_write_text(writer, entry_key(entry));
    rdb_write_value(writer, form, entry);
    rdb_write_records(writer, form, entry);
    count_key(saver);
}

static bool begin_large(struct access *access, unsigned db, const struct entry *entry,
                        const struct snapshot_value *value, void *context)
{
    struct saver *saver = context;
    const struct rdb_form *form;

    (void)access;
    if (UNLIKELY(saver->stopped))
        return false;
    save_head(saver, db, entry);
    saver->is_in_large = true;
    form = rdb_elements_begin(&saver->large, &saver->writer, entry, value->first_ms);
    rdb_write_byte(&saver->writer, rdb_type_byte(form->number));
    rdb_write_text(&saver->writer, entry_key(entry));
    rdb_write_elements_head(&saver->writer, &saver->large, value->count);
    return form->has_deadlines;
}

static void save_element(const struct former_element *element, int64_t expire_ms, void *context)
{
    struct saver *saver = context;

    if (LIKELY(!saver->stopped))
        rdb_write_one(&saver->writer, &saver->large, element, expire_ms);
}

static void save_deadline(struct slice member, int64_t expire_ms, void *context)
{
    struct saver *saver = context;

    if (LIKELY(!saver->stopped))
        rdb_write_member_deadline(&saver->writer, member, expire_ms);
}

static void end_large(void *context)
{
    struct saver *saver = context;

    if (UNLIKELY(saver->stopped))
        return;
    rdb_write_elements_rest(&saver->writer, &saver->large);
    saver->is_in_large = false;
    count_key(saver);
}

/* By the same thread, behind its last key. */
static void end_keys(void *context)
{
    struct saver *saver = context;

    if (is_one_of_several(saver))
        rdb_piece_give(&saver->piece);
}

static struct snapshot_visitor visitor_for(struct saver *saver)
{
    return (struct snapshot_visitor){.visit = save_key,
                                     .begin = begin_large,
                                     .element = save_element,
                                     .deadline = save_deadline,
                                     .end = end_large,
                                     .rest = rest,
                                     .done = end_keys,
                                     .context = saver,
                                     .sees_expired = saver->request->with_expired};
}

/* Another thread's part of the keys. */
static void take_part(struct saver *saver, struct saver *part)
{
    saver->keys += part->keys;
    saver->writer.version = MAX(saver->writer.version, part->writer.version);
    assert(!part->piece.is_begun);
    rdb_writer_fini(&part->writer);
}

static void save_keys_by(struct saver *saver, struct savers *all)
{
    struct snapshot_visitor visitors[SNAPSHOT_THREADS_MOST];

    rdb_joint_init(&all->joint, &saver->writer);
    for (unsigned i = 0; i < all->count; i++) {
        all->items[i] = (struct saver){.request = saver->request, .all = all};
        rdb_piece_init(&all->items[i].piece, &all->joint, &all->items[i].writer);
        visitors[i] = visitor_for(&all->items[i]);
    }
    if (!snapshot_each_by(saver->request->keys, visitors, all->count))
        saver->stopped = true;
    for (unsigned i = 0; i < all->count; i++)
        take_part(saver, &all->items[i]);
    rdb_joint_fini(&all->joint);
}

static void save_keys(struct saver *saver)
{
    const size_t sized_bytes = snapshot_database_bound(saver->request->keys) / 8 + 1;
    struct savers all = {.count = snapshot_threads(saver->request->keys)};
    struct saver several[SNAPSHOT_THREADS_MOST];

    assert(all.count <= SNAPSHOT_THREADS_MOST);
    all.is_sized = mem_alloc_zero(sized_bytes);
    saver->all = &all;
    if (all.count != 1) {
        all.items = several;
        save_keys_by(saver, &all);
    } else {
        const struct snapshot_visitor visitor = visitor_for(saver);

        all.items = saver;
        if (!snapshot_each(saver->request->keys, &visitor))
            saver->stopped = true;
    }
    saver->all = NULL;
    mem_free((void *)(uintptr_t)all.is_sized);
}

/* --------------------------------------------------------------------------------------------------- libraries -- */

static void save_library(struct slice source, void *context)
{
    struct saver *saver = context;

    if (saver->writer.options.most < RDB_VERSION_LISTPACKS) {
        saver->has_too_much = true;
        return;
    }
    saver->writer.version = MAX(saver->writer.version, (int)RDB_VERSION_LISTPACKS);
    assert(saver->keys == 0); /* keys come behind */
    rdb_write_byte(&saver->writer, RDB_FUNCTION);
    rdb_write_text(&saver->writer, source);
}

/* Leaving them out would lose them with the next start: so there is no file then. */
static bool save_libraries(struct saver *saver)
{
    if (saver->request->libraries != NULL)
        saver->request->libraries(save_library, saver);
    return !saver->has_too_much;
}

/* ------------------------------------------------------------------------------------------------------- whole -- */

static void save_origins(struct saver *saver)
{
    const struct rdb_origins *origins = saver->request->origins;
    unsigned count = VERSION_ORIGINS - 1; /* the last number is for those that are not known */

    while (count != 1 && origins->ids[count - 1] == 0)
        count--;
    rdb_write_byte(&saver->writer, RDB_AUX);
    rdb_write_text(&saver->writer, RDB_AUX_ORIGINS);
    rdb_write_length(&saver->writer, count * sizeof(origins->ids[0]));
    for (unsigned i = 0; i < count; i++)
        rdb_write_u64(&saver->writer, origins->ids[i]);
}

static bool save_record(struct slice record, void *context)
{
    struct saver *saver = context;

    rdb_write_aux(&saver->writer, RDB_AUX_ORDER_RECORD, record);
    if (++saver->records % PROGRESS_KEYS == 0)
        (void)tell_progress(saver);
    if (UNLIKELY(saver->request->key_delay_us != 0))
        (void)key_delay_sleep(saver->request->key_delay_us, 1, tell_progress, saver);
    saver->stopped |= saver->writer.status != STATUS_OK;
    return !saver->stopped;
}

/* Behind keys a SELECT keeps the last one from being told that they are its own. */
static void save_records(struct saver *saver)
{
    if (saver->has_selected) {
        rdb_write_byte(&saver->writer, RDB_SELECT);
        rdb_write_length(&saver->writer, 0);
    }
    saver->request->records(saver->request->keys, save_record, saver);
}

static void save_all(struct saver *saver)
{
    const struct rdb_save_request *request = saver->request;
    char header[RDB_HEADER_BYTES];

    rdb_write_bytes(&saver->writer, header_of(saver->writer.version, header));
    for (size_t i = 0; i < request->aux_count; i++)
        rdb_write_aux(&saver->writer, request->aux[i].name, request->aux[i].value);
    if (request->origins != NULL)
        save_origins(saver);
    if (!save_libraries(saver))
        return;
    if (request->records != NULL && snapshot_is_live(request->keys))
        save_records(saver);
    if (!saver->stopped)
        save_keys(saver);
    if (request->records != NULL && !snapshot_is_live(request->keys) && !saver->stopped)
        save_records(saver);
    rdb_write_byte(&saver->writer, RDB_END);
    status_ignore(rdb_writer_flush(&saver->writer), "it stays in the writer: see saver_fini");
}

/* The version is known only now: another one goes into the header, and its part of the checksum is exchanged. */
static void mend_header(struct saver *saver, struct file *file)
{
    struct rdb_writer *writer = &saver->writer;
    char before[RDB_HEADER_BYTES], after[RDB_HEADER_BYTES];
    uint64_t front = crc64_update(0, header_of(writer->options.least, before).data, RDB_HEADER_BYTES) ^
                     crc64_update(0, header_of(writer->version, after).data, RDB_HEADER_BYTES);

    if (writer->version == writer->options.least || writer->status != STATUS_OK)
        return;
    assert(writer->flushed >= RDB_HEADER_BYTES && writer->out.size == 0);
    writer->crc ^= crc64_shift(front, writer->flushed - RDB_HEADER_BYTES);
    writer->status = file_pwrite_all(file, after, RDB_HEADER_BYTES, 0);
}

static void save_checksum(struct saver *saver)
{
    rdb_write_u64(&saver->writer, saver->request->options.checksums ? saver->writer.crc : 0);
    status_ignore(rdb_writer_flush(&saver->writer), "it stays in the writer: see saver_fini");
}

static void saver_init(struct saver *saver, const struct rdb_save_request *request, struct byte_sink *sink)
{
    *saver = (struct saver){.request = request};
    rdb_writer_init(&saver->writer, &request->options, sink);
}

/* Returns the final status. */
static must_check enum status saver_fini(struct saver *saver, struct rdb_save_result *result)
{
    enum status status = saver->writer.status;

    if (status == STATUS_OK && saver->stopped)
        status = STATUS_INTERRUPTED;
    if (status == STATUS_OK && saver->has_too_much)
        status = STATUS_UNSUPPORTED;
    result->keys = saver->keys;
    result->bytes = saver->writer.flushed;
    result->version = saver->writer.version;
    rdb_writer_fini(&saver->writer);
    return status;
}

static void explain(struct rdb_save_result *result, enum status status, int error, const char *what, const char *path)
{
    const char *reason = status == STATUS_INTERRUPTED || error == 0 ? status_text(status) : strerror(error);

    if (status == STATUS_UNSUPPORTED)
        reason = rdb_too_old_for_libraries;
    if (status != STATUS_OK)
        (void)snprintf(result->error, sizeof(result->error), "%s %s: %s", what, path, reason);
}

static must_check enum status commit(struct file *file, const char *path, const struct rdb_save_request *request)
{
    enum status status = file_sync(file);

    if (status != STATUS_OK)
        return status;
    if (request->may_commit != NULL && !request->may_commit(request->context))
        return STATUS_INTERRUPTED;
    status = file_name(file, path);
    if (request->committed != NULL)
        request->committed(request->context);
    return status == STATUS_OK ? file_sync_folder(path) : status;
}

enum status rdb_save(const char *path, const char *temp_path, const struct rdb_save_request *request,
                     struct rdb_save_result *result)
{
    struct file *file = NULL;
    struct file_sink sink;
    struct saver saver;
    enum status status;

    *result = (struct rdb_save_result){.keys = 0};
    errno = 0;
    status = file_create_temp_named(&file, temp_path);
    explain(result, status, errno, "cannot create", temp_path);
    if (status != STATUS_OK)
        goto out;
    file_sink_init(&sink, file, request->starts_writeback);
    saver_init(&saver, request, &sink.sink);
    errno = 0;
    save_all(&saver);
    mend_header(&saver, file);
    save_checksum(&saver);
    status = saver_fini(&saver, result);
    explain(result, status, errno, "cannot write", temp_path);
    if (status != STATUS_OK)
        goto out;
    errno = 0;
    status = commit(file, path, request);
    explain(result, status, errno, "cannot sync and rename to", path);
out:
    file_close(&file);
    return status;
}

enum status rdb_save_to(struct byte_sink *sink, const struct rdb_save_request *request, struct rdb_save_result *result)
{
    struct saver saver;
    enum status status;

    assert(request->options.least == request->options.most);
    *result = (struct rdb_save_result){.keys = 0};
    saver_init(&saver, request, sink);
    save_all(&saver);
    save_checksum(&saver);
    status = saver_fini(&saver, result);
    explain(result, status, errno, "cannot write", "the stream");
    return status;
}
