#include "active/adoption.h"

#include "active/frame.h"
#include "active/mvcc.h"
#include "active/node.h"
#include "active/place.h"
#include "active/receiver.h"
#include "active/uuid.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "persist/rdb_file.h"
#include "persist/rdb_payload.h"
#include "replication/sync_file.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/file_options.h"
#include "server/durable/loading.h"
#include "server/durable/persistence.h"
#include "server/run/batch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SLICE_KEYS = 256, SLICE_BYTES = 1 << 20, TURN_US = 5000, WORDS = 6 };

enum state { STATE_SCANS, STATE_READS, STATE_LOOKS, STATE_PLACES, STATE_ENDED };

/* A key, or a library (no name). Texts are offsets into the bytes of the slice. */
struct adopted {
    size_t name_at, name_size, payload_at, payload_size, deadline_at, deadline_size;
    uint64_t mvcc;
    unsigned db;
    bool is_passed;
};

struct adoption {
    struct rdb_handler handler; /* first */
    struct worker *worker;
    struct receiver *placer;
    struct adoption_origin *origin;
    struct rdb_reader reader;
    struct rdb_walk *walk;
    struct batch batch; /* for looking */
    enum state state;
    enum rdb_step step; /* the last one */
    int64_t now_ms;
    struct sync_file *file;
    bool is_timed;          /* the file has KeyDB's stamps */
    uint64_t mvcc, scanned; /* STATE_SCANS: the highest one, and the number of keys */
    uint64_t stamp, keys, passed;
    unsigned stream_db;
    struct {
        struct adopted *items;
        uint32_t count, capacity;
    } slice;
    struct buffer bytes;
    struct frame_entry *entries; /* SLICE_KEYS */
    struct frame_op *ops;        /* likewise */
    struct slice *words;         /* WORDS of each */
    char error[RDB_ERROR_BYTES + 40];
};

void adoption_origin_init(struct adoption_origin *origin)
{
    if (origin->id == 0)
        origin->id = uuid_random_foreign_id();
}

void adoption_name(struct adoption_origin *origin, uint64_t at, struct frame_entry *entry)
{
    assert(origin->id != 0);
    origin->last = MAX(origin->last + 1, at);
    entry->uuid = uuid_of_id(origin->id);
    entry->origin = origin->id;
    entry->stamp = origin->last;
    entry->wall = stamp_ms(origin->last);
}

/* ----------------------------------------------------------------------------------------------------- reading -- */

static size_t keep_text(struct adoption *adoption, struct slice text)
{
    buffer_append_slice(&adoption->bytes, text);
    return adoption->bytes.size - text.size;
}

/* The record without its name, as DUMP has it. */
static void keep_payload(struct adoption *adoption, struct adopted *key, struct slice record, size_t value_at)
{
    const struct rdb_write_options options = rdb_payload_options();
    struct rdb_writer writer;

    rdb_writer_init(&writer, &options, NULL);
    writer.version = adoption->handler.version;
    buffer_append(&writer.out, record.data, 1);
    buffer_append_slice(&writer.out, slice_skip(record, value_at));
    rdb_payload_seal(&writer);
    key->payload_size = writer.out.size;
    key->payload_at = keep_text(adoption, buffer_slice(&writer.out));
    rdb_writer_fini(&writer);
}

static bool take_key(struct rdb_handler *handler, struct rdb_reader *reader, const struct rdb_key *found,
                     struct slice record)
{
    struct adoption *adoption = (struct adoption *)handler;
    const int64_t deadline = found->expire_ms == EXPIRE_NEVER ? 0 : found->expire_ms;
    char digits[NUMBER_I64_SPACE];
    struct adopted key = {.name_size = found->name.size, .mvcc = found->mvcc, .db = found->db};

    (void)reader;
    if (adoption->state == STATE_SCANS) {
        if (mvcc_is_possible(found->mvcc))
            adoption->mvcc = MAX(adoption->mvcc, found->mvcc);
        adoption->scanned++;
        return true;
    }
    if (deadline != 0 && deadline < adoption->now_ms) {
        adoption->passed++;
        return true;
    }
    key.name_at = keep_text(adoption, found->name);
    key.deadline_size = number_format_i64(digits, deadline);
    key.deadline_at = keep_text(adoption, slice_make(digits, key.deadline_size));
    keep_payload(adoption, &key, record, found->value_at);
    *ARRAY_PUSH(&adoption->slice) = key;
    return true;
}

static bool take_library(struct rdb_handler *handler, struct rdb_reader *reader, struct slice source)
{
    struct adoption *adoption = (struct adoption *)handler;
    struct adopted library = {.payload_size = source.size};

    (void)reader;
    if (adoption->state == STATE_SCANS)
        return true;
    library.payload_at = keep_text(adoption, source);
    *ARRAY_PUSH(&adoption->slice) = library;
    return true;
}

static bool is_library(const struct adopted *key)
{
    return key->deadline_size == 0;
}

static void take_aux(struct rdb_handler *handler, struct slice name, struct slice value)
{
    struct adoption *adoption = (struct adoption *)handler;
    int64_t db;

    if (slice_equal(name, SLICE("repl-stream-db")) && number_parse_i64(value, &db) && db >= 0 && db < INT32_MAX)
        adoption->stream_db = (unsigned)db;
}

static void read_slice(struct adoption *adoption)
{
    adoption->slice.count = 0;
    buffer_clear(&adoption->bytes);
    adoption->now_ms = clock_wall_ms();
    while (adoption->step == RDB_STEP_MORE && adoption->slice.count < SLICE_KEYS &&
           adoption->bytes.size < (size_t)SLICE_BYTES)
        adoption->step = rdb_walk_next(adoption->walk);
}

static void open_file(struct adoption *adoption)
{
    rdb_reader_init(&adoption->reader, sync_file_source(adoption->file));
    adoption->reader.sums = true;
    adoption->walk = rdb_walk_create(&adoption->reader, &adoption->handler);
    adoption->step = RDB_STEP_MORE;
}

static void close_file(struct adoption *adoption)
{
    rdb_walk_destroy(&adoption->walk);
    rdb_reader_fini(&adoption->reader);
}

/* The stamps of all keys end with that of the last change. */
static void set_stamp(struct adoption *adoption)
{
    struct mvcc_clock clock = {0};
    uint64_t last;

    if (adoption->mvcc != 0 && mvcc_take(&clock, adoption->mvcc, &last))
        adoption->stamp = MIN(adoption->stamp, last) - adoption->scanned;
}

/* A part of the first reading. False: it has failed. */
static bool scan(struct adoption *adoption)
{
    for (unsigned i = 0; adoption->step == RDB_STEP_MORE && i < SLICE_KEYS; i++)
        adoption->step = rdb_walk_next(adoption->walk);
    if (adoption->step != RDB_STEP_END)
        return adoption->step == RDB_STEP_MORE;
    close_file(adoption);
    if (!sync_file_rewind(adoption->file)) {
        (void)snprintf(adoption->error, sizeof(adoption->error), "its data cannot be read again: %s", strerror(errno));
        open_file(adoption);
        return false;
    }
    open_file(adoption);
    set_stamp(adoption);
    adoption->state = STATE_READS;
    return true;
}

/* ----------------------------------------------------------------------------------------------------- looking -- */

static struct slice text_of(const struct adoption *adoption, size_t at, size_t size)
{
    return slice_make(adoption->bytes.data + at, size);
}

/* Which keys are younger here. What is written behind this look has a stamp above those of the file. */
static bool look(struct adoption *adoption)
{
    struct access *access = &adoption->worker->run.access;

    batch_clear(&adoption->batch);
    for (uint32_t i = 0; i < adoption->slice.count; i++) {
        const struct adopted *key = &adoption->slice.items[i];
        const struct key name = key_make(text_of(adoption, key->name_at, key->name_size));

        batch_add_key(&adoption->batch, &name);
    }
    if (loading_runs() || loading_replaces() || batch_take(&adoption->batch, false) == BATCH_WAITS)
        return false;
    access_begin(access, worker_now_ms(adoption->worker), adoption->batch.state == BATCH_ALONE);
    for (uint32_t i = 0; i < adoption->slice.count; i++) {
        struct adopted *key = &adoption->slice.items[i];
        const struct key name = key_make(text_of(adoption, key->name_at, key->name_size));

        const uint64_t last = place_last_stamp(access, key->db, &name);

        /* KeyDB knows no time of what it has loaded from its own file: then it is 0. */
        key->is_passed = !is_library(key) && (adoption->is_timed || key->mvcc != 0) && last != 0 &&
                         mvcc_of_stamp(last) >= key->mvcc;
    }
    batch_release(&adoption->batch);
    return true;
}

/* ----------------------------------------------------------------------------------------------------- placing -- */

static void make_op(const struct adoption *adoption, const struct adopted *key, struct frame_op *op,
                    struct slice *words)
{
    const struct slice payload = text_of(adoption, key->payload_at, key->payload_size);

    *op = (struct frame_op){.words = words, .db = key->db, .overwrites = true};
    if (is_library(key)) {
        words[op->word_count++] = SLICE("FUNCTION");
        words[op->word_count++] = SLICE("LOAD");
        words[op->word_count++] = SLICE("REPLACE");
        words[op->word_count++] = payload;
        return;
    }
    op->key_index = 1;
    words[op->word_count++] = SLICE("RESTORE");
    words[op->word_count++] = text_of(adoption, key->name_at, key->name_size);
    words[op->word_count++] = text_of(adoption, key->deadline_at, key->deadline_size);
    words[op->word_count++] = payload;
    words[op->word_count++] = SLICE("REPLACE");
    words[op->word_count++] = SLICE("ABSTTL");
}

static enum receiver_result place(struct adoption *adoption)
{
    uint64_t prev = node_have(adoption->origin->id);
    uint32_t count = 0;

    for (uint32_t i = 0; i < adoption->slice.count; i++) {
        const struct adopted *key = &adoption->slice.items[i];

        if (key->is_passed) {
            adoption->passed++;
            continue;
        }
        make_op(adoption, key, &adoption->ops[count], &adoption->words[(size_t)count * WORDS]);
        adoption->entries[count] = (struct frame_entry){.prev = prev, .ops = &adoption->ops[count], .op_count = 1};
        adoption_name(adoption->origin, adoption->stamp, &adoption->entries[count]);
        prev = adoption->entries[count].stamp;
        count++;
    }
    adoption->keys += count;
    return count != 0 ? receiver_place(adoption->placer, adoption->entries, count) : RECEIVER_GOES_ON;
}

static enum adoption_result end(struct adoption *adoption, enum adoption_result result)
{
    adoption->state = STATE_ENDED;
    if (result != ADOPTION_DONE && adoption->error[0] == '\0')
        (void)snprintf(adoption->error, sizeof(adoption->error), "byte %" PRIu64 " of its data: %s",
                       adoption->reader.failed_at, adoption->reader.error);
    return result;
}

/* False: it waits, or has ended. */
static bool settle_placing(struct adoption *adoption, enum receiver_result placed, enum adoption_result *result)
{
    if (placed == RECEIVER_WAITS) {
        adoption->state = STATE_PLACES;
        return false;
    }
    if (placed != RECEIVER_GOES_ON) {
        (void)snprintf(adoption->error, sizeof(adoption->error), "%.200s", receiver_error(adoption->placer));
        *result = end(adoption, ADOPTION_FAILED);
        return false;
    }
    adoption->state = STATE_READS;
    return true;
}

static enum adoption_result reading_fault(const struct adoption *adoption)
{
    return adoption->reader.status == STATUS_UNSUPPORTED ? ADOPTION_FOREIGN : ADOPTION_FAILED;
}

/* The next slice; false: the file has ended, or cannot be read. */
static bool begin_slice(struct adoption *adoption, enum adoption_result *result)
{
    if (adoption->step == RDB_STEP_MORE) {
        read_slice(adoption);
        if (adoption->step != RDB_STEP_FAILED) { /* what is before a fault may be damaged, too */
            adoption->state = STATE_LOOKS;
            return true;
        }
        *result = end(adoption, reading_fault(adoption));
        return false;
    }
    *result = end(adoption, ADOPTION_DONE);
    return false;
}

enum adoption_result adoption_go_on(struct adoption *adoption)
{
    const uint64_t begin_us = clock_monotonic_us();
    enum adoption_result result = ADOPTION_WAITS;

    worker_assert_outside(adoption->worker);
    assert(adoption->state != STATE_ENDED);
    if (adoption->state == STATE_PLACES && !settle_placing(adoption, receiver_go_on(adoption->placer), &result))
        return result;
    while (clock_monotonic_us() - begin_us < TURN_US) {
        if (adoption->state == STATE_SCANS) {
            if (!scan(adoption))
                return end(adoption, reading_fault(adoption));
            continue;
        }
        if (adoption->state == STATE_READS && !begin_slice(adoption, &result))
            return result;
        if (!look(adoption))
            return ADOPTION_WAITS;
        if (!settle_placing(adoption, place(adoption), &result))
            return result;
    }
    worker_wake(adoption->worker); /* clients have a turn */
    return ADOPTION_WAITS;
}

/* ----------------------------------------------------------------------------------------------- begin and end -- */

struct adoption *adoption_create(struct worker *worker, struct receiver *placer, struct adoption_origin *origin,
                                 struct sync_file *file, uint64_t stamp, bool is_timed)
{
    struct adoption *adoption = mem_alloc_zero(sizeof(*adoption));

    worker_assert_zero(worker);
    adoption->handler = (struct rdb_handler){.record = take_key,
                                             .takes_all_records = true,
                                             .library = take_library,
                                             .aux = take_aux,
                                             .limits = persistence_limits(),
                                             .database_count = worker->server->store->database_count};
    adoption->worker = worker;
    adoption->placer = placer;
    adoption->origin = origin;
    adoption->stamp = stamp;
    adoption->entries = mem_alloc(SLICE_KEYS * sizeof(*adoption->entries));
    adoption->ops = mem_alloc(SLICE_KEYS * sizeof(*adoption->ops));
    adoption->words = mem_alloc((size_t)SLICE_KEYS * WORDS * sizeof(*adoption->words));
    adoption->file = file;
    adoption->is_timed = is_timed;
    adoption->state = is_timed ? STATE_SCANS : STATE_READS;
    open_file(adoption);
    batch_init(&adoption->batch, worker, GATE_WISH_PLACE);
    return adoption;
}

void adoption_destroy(struct adoption **handle)
{
    struct adoption *adoption = *handle;

    *handle = NULL;
    if (adoption == NULL)
        return;
    batch_fini(&adoption->batch);
    close_file(adoption);
    ARRAY_FINI(&adoption->slice);
    buffer_fini(&adoption->bytes);
    mem_free(adoption->entries);
    mem_free(adoption->ops);
    mem_free(adoption->words);
    mem_free(adoption);
}

uint64_t adoption_keys(const struct adoption *adoption)
{
    return adoption->keys;
}

uint64_t adoption_passed(const struct adoption *adoption)
{
    return adoption->passed;
}

unsigned adoption_stream_db(const struct adoption *adoption)
{
    return adoption->stream_db;
}

const char *adoption_error(const struct adoption *adoption)
{
    return adoption->error;
}
