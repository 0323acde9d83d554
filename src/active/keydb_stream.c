#include "active/keydb_stream.h"

#include "active/keydb_entries.h"
#include "active/node.h"
#include "base/assert.h"
#include "base/mem.h"
#include "net/resp.h"
#include "server/core/server.h"
#include "server/core/worker.h"

#include <inttypes.h>
#include <stdio.h>

enum { BATCH_ENTRIES = 256, BATCH_BYTES = 1 << 20, IDLE_BYTES = 1 << 20, TRANSACTION_MOST_BYTES = 256 << 20 };

struct keydb_stream {
    struct worker *worker;
    struct receiver *placer;
    struct buffer bytes; /* from the first command that is not applied */
    size_t parsed;       /* of these */
    struct resp_parser parser;
    struct resp_limits limits;
    struct resp_scratch scratch;
    uint64_t applied_bytes;
    unsigned db, applied_db;
    bool is_placing, has_failed;
    struct keydb_entries entries;
    char error[RECEIVER_ERROR_BYTES];
};

static struct envelopes *known; /* global: worker 0's; of all links, since servers forward; NULL: none came yet */

static struct envelopes *known_envelopes(const struct worker *worker)
{
    const struct uuid own = uuid_of_id(node_origin());

    worker_assert_zero(worker);
    if (known == NULL)
        known = envelopes_create(&own, worker->server->store->database_count, TRANSACTION_MOST_BYTES);
    return known;
}

void keydb_stream_end(void)
{
    thread_assert_main();
    envelopes_destroy(&known);
}

void keydb_stream_restart(const char *uuid)
{
    struct uuid parsed;

    if (known != NULL && uuid_parse(slice_from_text(uuid), &parsed))
        envelopes_end_transaction(known, &parsed);
}

static enum receiver_result PRINTF_LIKE(2, 3) fail(struct keydb_stream *stream, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(stream->error, sizeof(stream->error), format, arguments);
    va_end(arguments);
    stream->has_failed = true;
    return RECEIVER_BROKEN;
}

/* ----------------------------------------------------------------------------------------------------- parsing -- */

static void take_command(struct keydb_stream *stream, const struct resp_command *words)
{
    const struct envelope_command plain = {words->args, words->arg_count, 0};
    char error[ENVELOPE_ERROR_BYTES];

    if (keydb_entries_is_about_link(&plain)) {
        keydb_entries_note_link(&stream->entries, &plain);
    } else if (!envelope_is(words->args, words->arg_count)) {
        (void)fail(stream, "a command that is in no envelope, at byte %" PRIu64 " of its stream",
                   stream->applied_bytes + stream->parsed);
    } else if (envelopes_take(known_envelopes(stream->worker), words->args, words->arg_count, &stream->db,
                              keydb_entries_take, &stream->entries, error) == ENVELOPE_FAILED) {
        (void)fail(stream, "%s", error);
    }
}

static bool is_full(const struct keydb_stream *stream)
{
    return stream->entries.count >= BATCH_ENTRIES || stream->entries.texts.size >= (size_t)BATCH_BYTES;
}

static void gather(struct keydb_stream *stream)
{
    while (!stream->has_failed && !is_full(stream) && stream->parsed < stream->bytes.size) {
        char *data = stream->bytes.data + stream->parsed;
        struct resp_command words;

        if (resp_parser_is_idle(&stream->parser) && *data != '*' && *data != '\n' && *data != '\r') {
            (void)fail(stream, "something that is no array of bulk strings");
            return;
        }
        switch (resp_parse(&stream->parser, data, stream->bytes.size - stream->parsed, &words)) {
        case RESP_COMMAND:
            take_command(stream, &words);
            stream->parsed += stream->has_failed ? 0 : words.consumed;
            resp_command_fini(&words);
            resp_scratch_reset(&stream->scratch);
            break;
        case RESP_EMPTY:
            stream->parsed += words.consumed;
            break;
        case RESP_MORE:
            return;
        case RESP_ERROR:
        case RESP_LARGE:
            (void)fail(stream, "%.*s", (int)MIN(words.error.size, (size_t)200), words.error.data);
            return;
        }
    }
}

static void applied(struct keydb_stream *stream)
{
    stream->applied_bytes += stream->parsed;
    stream->applied_db = stream->db;
    buffer_consume(&stream->bytes, stream->parsed);
    stream->parsed = 0;
    if (stream->bytes.size == 0 && stream->bytes.capacity > (size_t)IDLE_BYTES)
        buffer_fini(&stream->bytes);
    keydb_entries_clear(&stream->entries);
}

/* What stands before a fault was whole, and is placed. */
static enum receiver_result run_batches(struct keydb_stream *stream)
{
    enum receiver_result result = RECEIVER_GOES_ON;

    while (result == RECEIVER_GOES_ON) {
        if (stream->is_placing) {
            stream->is_placing = false;
            result = receiver_go_on(stream->placer);
        } else {
            gather(stream);
            if (stream->parsed == 0)
                return stream->has_failed ? RECEIVER_BROKEN : RECEIVER_GOES_ON;
            keydb_entries_finish(&stream->entries);
            if (stream->entries.count != 0)
                result = receiver_place(stream->placer, stream->entries.items, stream->entries.count);
        }
        if (result == RECEIVER_GOES_ON)
            applied(stream);
    }
    stream->is_placing = result == RECEIVER_WAITS;
    if (result != RECEIVER_WAITS)
        (void)snprintf(stream->error, sizeof(stream->error), "%s", receiver_error(stream->placer));
    return result;
}

enum receiver_result keydb_stream_take(struct keydb_stream *stream, const char *data, size_t size)
{
    worker_assert_outside(stream->worker);
    assert(!stream->is_placing);
    buffer_append(&stream->bytes, data, size);
    return run_batches(stream);
}

enum receiver_result keydb_stream_go_on(struct keydb_stream *stream)
{
    return run_batches(stream);
}

/* ----------------------------------------------------------------------------------------------- begin and end -- */

struct keydb_stream *keydb_stream_create(struct worker *worker, struct receiver *placer, struct adoption_origin *origin,
                                         unsigned db)
{
    struct keydb_stream *stream = mem_alloc_zero(sizeof(*stream));

    stream->worker = worker;
    stream->placer = placer;
    stream->entries.origin = origin;
    stream->db = stream->applied_db = db;
    stream->limits = (struct resp_limits){.bulk_max_bytes = INT64_MAX / 4, .authenticated = true};
    resp_parser_init(&stream->parser, &stream->limits, &stream->scratch);
    return stream;
}

/* Marks of what was not placed go: it comes again, and what did come is known by its stamp. */
void keydb_stream_destroy(struct keydb_stream **handle)
{
    struct keydb_stream *stream = *handle;

    *handle = NULL;
    if (stream == NULL)
        return;
    for (uint32_t i = 0; known != NULL && i < stream->entries.count; i++)
        envelopes_forget(known, &stream->entries.items[i].uuid);
    resp_parser_fini(&stream->parser);
    resp_scratch_fini(&stream->scratch);
    buffer_fini(&stream->bytes);
    keydb_entries_fini(&stream->entries);
    mem_free(stream);
}

uint64_t keydb_stream_applied_bytes(const struct keydb_stream *stream)
{
    return stream->applied_bytes;
}

unsigned keydb_stream_db(const struct keydb_stream *stream)
{
    return stream->applied_db;
}

bool keydb_stream_wants_ack(struct keydb_stream *stream)
{
    const bool wants = stream->entries.wants_ack;

    stream->entries.wants_ack = false;
    return wants;
}

const char *keydb_stream_error(const struct keydb_stream *stream)
{
    return stream->error;
}
