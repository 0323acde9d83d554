#include "active/foreign.h"

#include "active/adoption.h"
#include "active/keydb_stream.h"
#include "active/uuids.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "net/conn.h"
#include "replication/handshake.h"
#include "replication/sync_file.h"
#include "replication/transfer.h"
#include "server/core/deferred_log.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/loading.h"
#include "server/run/follow.h"
#include "store/stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FILE_NAME_BYTES = 64 };

enum phase { PHASE_RECEIVES, PHASE_WRITES, PHASE_ADOPTS, PHASE_STREAMS };

struct foreign {
    struct worker *worker;
    struct conn *conn;
    struct foreign_position *position;
    struct foreign_position at; /* where its data are of */
    struct receiver_options options;
    enum phase phase;
    struct transfer transfer;
    struct sync_file *file;
    struct receiver *placer;
    struct adoption *adoption;
    struct follow *follow; /* PHASE_STREAMS: one of these */
    struct keydb_stream *keydb;
    char uuid[HANDSHAKE_UUID_BYTES + 1]; /* of an active KeyDB server; empty: it is none */
    int64_t stream_base;                 /* offset at which the stream began */
    uint64_t stamp;                      /* when its data began */
    bool has_left;
    char error[RECEIVER_ERROR_BYTES];
};

static enum receiver_result PRINTF_LIKE(3, 4)
    fail(struct foreign *foreign, enum receiver_result result, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(foreign->error, sizeof(foreign->error), format, arguments);
    va_end(arguments);
    return result;
}

static bool is_loading(void)
{
    return UNLIKELY(loading_runs() || loading_replaces());
}

/* ------------------------------------------------------------------------------------------------------- output -- */

static void append_number(struct buffer *buffer, int64_t number)
{
    char text[NUMBER_I64_SPACE];
    const size_t digits = number_format_i64(text, number);

    buffer_printf(buffer, "$%zu\r\n%.*s\r\n", digits, (int)digits, text);
}

static void send_buffer(struct foreign *foreign, struct buffer *text)
{
    output_append(&foreign->conn->output, text->data, text->size);
    conn_write_pending(foreign->conn);
    buffer_fini(text);
}

static void send_ack(struct foreign *foreign)
{
    struct buffer text = {0};

    buffer_append_text(&text, "*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n");
    append_number(&text, foreign->position->offset);
    send_buffer(foreign, &text);
}

void foreign_say_alive(struct foreign *foreign)
{
    struct buffer text = {0};

    if (foreign->phase == PHASE_STREAMS) {
        send_ack(foreign);
        return;
    }
    buffer_append_text(&text, "\n");
    send_buffer(foreign, &text);
}

/* --------------------------------------------------------------------------------------------------- the stream -- */

/* What comes while data are being loaded waits; a batch that has begun before is given up, and comes again. */
static bool is_current(void *context)
{
    (void)context;
    return !is_loading();
}

static void on_error(struct slice name, struct slice reply, uint64_t offset, void *context)
{
    const struct foreign *foreign = context;
    const int64_t at = foreign->stream_base + (int64_t)offset;
    char command[64], error[256];

    while (reply.size != 0 && reply.data[reply.size - 1] < ' ') /* the end of the line */
        reply.size--;
    handshake_quote(name, command, sizeof(command));
    handshake_quote(reply, error, sizeof(error));
    deferred_log(worker_self(), LOG_LEVEL_WARNING,
                 "Link to the peer %s: its command '%s' at offset %lld is not possible here: %s", foreign->options.peer,
                 command, (long long)at, error);
}

static void begin_stream(struct foreign *foreign)
{
    const struct follow_options options = {.db = foreign->at.db,
                                           .address = foreign->options.peer,
                                           .is_current = is_current,
                                           .on_error = on_error,
                                           .context = foreign,
                                           .is_own = true};

    foreign->at.origin = foreign->position->origin;
    *foreign->position = foreign->at;
    foreign->stream_base = foreign->at.offset;
    if (foreign->uuid[0] != '\0')
        foreign->keydb = keydb_stream_create(foreign->worker, foreign->placer, &foreign->position->origin,
                                             foreign->at.db);
    else
        foreign->follow = follow_create(foreign->worker, &options);
    foreign->phase = PHASE_STREAMS;
    send_ack(foreign);
}

static enum receiver_result settle_stream(struct foreign *foreign, enum follow_result result)
{
    const uint64_t applied = follow_applied_bytes(foreign->follow);

    foreign->position->offset = foreign->stream_base + (int64_t)applied;
    foreign->position->db = follow_db(foreign->follow);
    switch (result) {
    case FOLLOW_DONE:
    case FOLLOW_WAIT:
        break;
    case FOLLOW_BROKEN:
        return fail(foreign, RECEIVER_BROKEN, "its stream ends at offset %lld: %s",
                    (long long)foreign->position->offset, follow_error(foreign->follow));
    case FOLLOW_OVER:
        return fail(foreign, RECEIVER_ANEW, "data are being loaded here");
    }
    if (follow_wants_ack(foreign->follow))
        send_ack(foreign);
    return result == FOLLOW_WAIT ? RECEIVER_WAITS : RECEIVER_GOES_ON;
}

static enum receiver_result settle_keydb(struct foreign *foreign, enum receiver_result result)
{
    foreign->position->offset = foreign->stream_base + (int64_t)keydb_stream_applied_bytes(foreign->keydb);
    foreign->position->db = keydb_stream_db(foreign->keydb);
    if (result != RECEIVER_GOES_ON && result != RECEIVER_WAITS)
        return fail(foreign, result, "its stream ends at offset %lld: %s", (long long)foreign->position->offset,
                    keydb_stream_error(foreign->keydb));
    if (keydb_stream_wants_ack(foreign->keydb))
        send_ack(foreign);
    return result;
}

/* ----------------------------------------------------------------------------------------------------- its data -- */

static void give(struct slice bytes, void *context)
{
    const struct foreign *foreign = context;

    sync_file_add(foreign->file, bytes);
    atomic_fetch_add_explicit(&foreign->options.counts->state_bytes, bytes.size, memory_order_relaxed);
}

static enum receiver_result receive(struct foreign *foreign, const char *data, size_t size, size_t *used)
{
    switch (transfer_take(&foreign->transfer, data, size, used, give, foreign)) {
    case TRANSFER_MORE:
        break;
    case TRANSFER_DONE:
        sync_file_finish(foreign->file);
        foreign->phase = PHASE_WRITES;
        return RECEIVER_WAITS;
    case TRANSFER_FAILED:
        return fail(foreign, RECEIVER_BROKEN, "%s", foreign->transfer.error);
    }
    if (sync_file_state(foreign->file) == SYNC_FILE_FAILED)
        return fail(foreign, RECEIVER_REFUSED, "%s", sync_file_error(foreign->file));
    return sync_file_is_full(foreign->file) ? RECEIVER_WAITS : RECEIVER_GOES_ON;
}

static enum receiver_result look_at_file(struct foreign *foreign)
{
    switch (sync_file_state(foreign->file)) {
    case SYNC_FILE_WRITES:
        return RECEIVER_WAITS;
    case SYNC_FILE_FAILED:
        return fail(foreign, RECEIVER_REFUSED, "%s", sync_file_error(foreign->file));
    case SYNC_FILE_READY:
        break;
    }
    foreign->adoption = adoption_create(foreign->worker, foreign->placer, &foreign->position->origin, foreign->file,
                                        foreign->stamp, foreign->uuid[0] != '\0');
    foreign->phase = PHASE_ADOPTS;
    return RECEIVER_GOES_ON;
}

static enum receiver_result adopt(struct foreign *foreign)
{
    switch (adoption_go_on(foreign->adoption)) {
    case ADOPTION_WAITS:
        return RECEIVER_WAITS;
    case ADOPTION_FAILED:
        return fail(foreign, RECEIVER_BROKEN, "%s", adoption_error(foreign->adoption));
    case ADOPTION_FOREIGN:
        return fail(foreign, RECEIVER_REFUSED, "%s", adoption_error(foreign->adoption));
    case ADOPTION_DONE:
        break;
    }
    log_notice("Link to the peer %s: its data were united with ours: %" PRIu64 " keys came, %" PRIu64
               " are younger here or over",
               foreign->options.peer, adoption_keys(foreign->adoption), adoption_passed(foreign->adoption));
    foreign->at.db = adoption_stream_db(foreign->adoption);
    adoption_destroy(&foreign->adoption);
    sync_file_release(&foreign->file);
    begin_stream(foreign);
    return RECEIVER_GOES_ON;
}

/* ------------------------------------------------------------------------------------------------------ in turn -- */

enum receiver_result foreign_take(struct foreign *foreign, char *data, size_t size, size_t *used)
{
    worker_assert_outside(foreign->worker);
    assert(!foreign->has_left);
    *used = 0;
    switch (foreign->phase) {
    case PHASE_RECEIVES:
        return receive(foreign, data, size, used);
    case PHASE_WRITES:
    case PHASE_ADOPTS:
        return RECEIVER_WAITS;
    case PHASE_STREAMS:
        break;
    }
    if (is_loading())
        return RECEIVER_WAITS;
    if (foreign->follow != NULL)
        return settle_stream(foreign, follow_take(foreign->follow, data, size, used));
    *used = size;
    return settle_keydb(foreign, keydb_stream_take(foreign->keydb, data, size));
}

enum receiver_result foreign_go_on(struct foreign *foreign)
{
    enum receiver_result result = RECEIVER_GOES_ON;

    worker_assert_outside(foreign->worker);
    assert(!foreign->has_left);
    if (foreign->phase == PHASE_RECEIVES)
        return sync_file_is_full(foreign->file) ? RECEIVER_WAITS : RECEIVER_GOES_ON;
    if (foreign->phase == PHASE_WRITES)
        result = look_at_file(foreign);
    if (foreign->phase == PHASE_ADOPTS)
        return adopt(foreign);
    if (foreign->phase != PHASE_STREAMS)
        return result;
    if (is_loading())
        return RECEIVER_WAITS;
    if (foreign->keydb != NULL)
        return settle_keydb(foreign, keydb_stream_go_on(foreign->keydb));
    return follow_waits(foreign->follow) ? settle_stream(foreign, follow_go_on(foreign->follow)) : RECEIVER_GOES_ON;
}

/* ----------------------------------------------------------------------------------------------- begin and end -- */

/* Above what was written here before, and not below the clock. */
static uint64_t stamp_now(const struct foreign *foreign)
{
    return MAX(journal_clock(&foreign->worker->server->journal) + 1, (uint64_t)clock_wall_ms() << STAMP_COUNTER_BITS);
}

static void begin_data(struct foreign *foreign)
{
    char name[FILE_NAME_BYTES];

    (void)snprintf(name, sizeof(name), "temp-foreign-%u.rdb", foreign->options.link);
    transfer_init(&foreign->transfer);
    foreign->file = sync_file_create(name, foreign->options.on_change);
    foreign->stamp = stamp_now(foreign);
    foreign->position->id[0] = '\0';
    keydb_stream_restart(foreign->uuid);
    log_notice("Link to the peer %s: it sends all its data", foreign->options.peer);
}

struct foreign *foreign_create(struct worker *worker, struct conn *conn, const struct handshake *handshake,
                               bool continues, struct foreign_position *position,
                               const struct receiver_options *options)
{
    struct foreign *foreign = mem_alloc_zero(sizeof(*foreign));
    struct uuid uuid;

    worker_assert_zero(worker);
    foreign->worker = worker;
    foreign->conn = conn;
    foreign->position = position;
    foreign->options = *options;
    foreign->placer = receiver_create_bare(worker, options);
    foreign->at = *position;
    adoption_origin_init(&position->origin);
    if (handshake->peer_is_active)
        memcpy(foreign->uuid, handshake->peer_uuid, sizeof(foreign->uuid));
    if (uuid_parse(slice_from_text(foreign->uuid), &uuid))
        uuids_keep_source(position->origin.id, &uuid);
    if (handshake->id[0] != '\0')
        memcpy(foreign->at.id, handshake->id, sizeof(foreign->at.id));
    if (continues) {
        begin_stream(foreign);
        return foreign;
    }
    foreign->at.offset = handshake->offset;
    foreign->at.db = 0;
    begin_data(foreign);
    return foreign;
}

void foreign_leave(struct foreign *foreign)
{
    worker_assert_zero(foreign->worker);
    assert(!foreign->has_left);
    foreign->has_left = true;
    receiver_leave(foreign->placer);
    adoption_destroy(&foreign->adoption);
    sync_file_release(&foreign->file);
    follow_destroy(&foreign->follow);
    keydb_stream_destroy(&foreign->keydb);
}

void foreign_destroy(struct foreign **handle)
{
    struct foreign *foreign = *handle;

    if (foreign == NULL)
        return;
    assert(foreign->has_left);
    *handle = NULL;
    receiver_destroy(&foreign->placer);
    mem_free(foreign);
}

bool foreign_streams(const struct foreign *foreign)
{
    return foreign->phase == PHASE_STREAMS;
}

const char *foreign_error(const struct foreign *foreign)
{
    return foreign->error;
}
