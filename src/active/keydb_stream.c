#include "active/keydb_stream.h"

#include "active/envelopes.h"
#include "active/frame.h"
#include "active/node.h"
#include "active/place.h"
#include "active/uuids.h"
#include "base/array.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "merge/place.h"
#include "net/resp.h"
#include "server/core/server.h"
#include "server/core/worker.h"

#include <inttypes.h>
#include <stdio.h>

enum { BATCH_ENTRIES = 256, BATCH_BYTES = 1 << 20, IDLE_BYTES = 1 << 20, TRANSACTION_MOST_BYTES = 256 << 20 };

/* Pointers are set when all are there: until then first_op, first_word, and positions in `texts`. */
struct op_parts {
    uint32_t first_word, word_count;
    unsigned db;
};
struct word_part {
    size_t at, size;
};

struct keydb_stream {
    struct worker *worker;
    struct receiver *placer;
    struct adoption_origin *origin;
    struct buffer bytes; /* from the first command that is not applied */
    size_t parsed;       /* of these */
    struct resp_parser parser;
    struct resp_limits limits;
    struct resp_scratch scratch;
    uint64_t applied_bytes;
    unsigned db, applied_db;
    bool is_placing, wants_ack, has_failed;
    struct {
        struct frame_entry *items;
        uint32_t count, capacity;
    } entries;
    struct {
        struct op_parts *items;
        uint32_t count, capacity;
    } parts;
    struct {
        struct word_part *items;
        uint32_t count, capacity;
    } word_parts;
    struct {
        struct frame_op *items;
        uint32_t count, capacity;
    } ops;
    struct {
        struct slice *items;
        uint32_t count, capacity;
    } words;
    struct buffer texts;
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

/* ----------------------------------------------------------------------------------------------------- entries -- */

static bool is_about_link(const struct envelope_command *command)
{
    return slice_equal_text_nocase(command->words[0], "ping") || slice_equal_text_nocase(command->words[0], "replconf");
}

static void note_link_word(struct keydb_stream *stream, const struct envelope_command *command)
{
    if (command->word_count >= 2 && slice_equal_text_nocase(command->words[1], "getack"))
        stream->wants_ack = true;
}

static bool is_state(const struct envelope_entry *entry)
{
    return entry->command_count == 1 && slice_equal_text_nocase(entry->commands[0].words[0], "keydb.mvccrestore");
}

/* What is here of the origin, behind the entries that wait. */
static uint64_t here_of(const struct keydb_stream *stream, uint64_t origin)
{
    for (uint32_t i = stream->entries.count; i-- != 0;) {
        if (stream->entries.items[i].origin == origin)
            return stream->entries.items[i].stamp;
    }
    return node_have(origin);
}

/* A key that a server has got with all data of another one, and passes on with the time of its last change, and what
 * has no time at all, become operations of this node's: others decide for themselves. False: it is not for us. */
static bool name_entry(struct keydb_stream *stream, const struct envelope_entry *from, struct frame_entry *entry)
{
    if (is_state(from) || from->stamp == 0) {
        adoption_name(stream->origin, from->stamp != 0 ? from->stamp : stamp_at(clock_wall_ms()), entry);
        return true;
    }
    entry->uuid = from->uuid;
    entry->origin = uuid_id(&from->uuid);
    entry->stamp = from->stamp;
    entry->mvcc = from->mvcc;
    entry->wall = mvcc_wall_ms(from->mvcc);
    if (uuid_is_ours(&from->uuid)) {
        if (node_knows(entry->origin))
            return false;
        entry->origin |= MERGE_ORIGIN_FOREIGN; /* it is not of our group: nobody says its beats */
        entry->uuid = uuid_of_id(entry->origin);
    }
    uuids_keep(&entry->uuid);
    return true;
}

static void keep_command(struct keydb_stream *stream, const struct envelope_command *command)
{
    *ARRAY_PUSH(&stream->parts) = (struct op_parts){stream->word_parts.count, command->word_count, command->db};
    for (uint32_t i = 0; i < command->word_count; i++) {
        *ARRAY_PUSH(&stream->word_parts) = (struct word_part){stream->texts.size, command->words[i].size};
        buffer_append_slice(&stream->texts, command->words[i]);
    }
}

static void take_entry(void *context, const struct envelope_entry *from)
{
    struct keydb_stream *stream = context;
    struct frame_entry entry = {.is_raw = true};
    const uint32_t first = stream->parts.count;

    for (uint32_t i = 0; i < from->command_count; i++) {
        if (is_about_link(&from->commands[i]))
            note_link_word(stream, &from->commands[i]);
    }
    if (from->command_count == 1 && is_about_link(&from->commands[0]))
        return;
    if (!name_entry(stream, from, &entry))
        return;
    entry.prev = here_of(stream, entry.origin);
    if (entry.stamp <= entry.prev)
        return; /* it came by another way */
    for (uint32_t i = 0; i < from->command_count; i++) {
        if (!is_about_link(&from->commands[i]))
            keep_command(stream, &from->commands[i]);
    }
    entry.op_count = stream->parts.count - first;
    *ARRAY_PUSH(&stream->entries) = entry;
}

/* All is there and moves no more. */
static void set_pointers(struct keydb_stream *stream)
{
    const struct slice *words;
    const struct frame_op *ops;

    stream->words.count = stream->ops.count = 0;
    for (uint32_t i = 0; i < stream->word_parts.count; i++)
        *ARRAY_PUSH(&stream->words) = slice_make(stream->texts.data + stream->word_parts.items[i].at,
                                                 stream->word_parts.items[i].size);
    words = stream->words.items;
    for (uint32_t i = 0; i < stream->parts.count; i++) {
        const struct op_parts *part = &stream->parts.items[i];

        *ARRAY_PUSH(&stream->ops) = (struct frame_op){.words = words + part->first_word,
                                                      .word_count = part->word_count,
                                                      .db = part->db};
    }
    ops = stream->ops.items;
    for (uint32_t i = 0; i < stream->entries.count; i++) {
        stream->entries.items[i].ops = ops;
        ops += stream->entries.items[i].op_count;
        place_describe_raw(&stream->entries.items[i]);
    }
}

static void forget_entries(struct keydb_stream *stream)
{
    stream->entries.count = stream->parts.count = stream->word_parts.count = 0;
    buffer_clear(&stream->texts);
    if (stream->texts.capacity > (size_t)IDLE_BYTES)
        buffer_fini(&stream->texts);
}

/* ----------------------------------------------------------------------------------------------------- parsing -- */

static void take_command(struct keydb_stream *stream, const struct resp_command *words)
{
    const struct envelope_command plain = {words->args, words->arg_count, 0};
    char error[ENVELOPE_ERROR_BYTES];

    if (is_about_link(&plain)) {
        note_link_word(stream, &plain);
    } else if (!envelope_is(words->args, words->arg_count)) {
        (void)fail(stream, "a command that is in no envelope, at byte %" PRIu64 " of its stream",
                   stream->applied_bytes + stream->parsed);
    } else if (envelopes_take(known_envelopes(stream->worker), words->args, words->arg_count, &stream->db, take_entry,
                              stream, error) == ENVELOPE_FAILED) {
        (void)fail(stream, "%s", error);
    }
}

static bool is_full(const struct keydb_stream *stream)
{
    return stream->entries.count >= BATCH_ENTRIES || stream->texts.size >= (size_t)BATCH_BYTES;
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
    forget_entries(stream);
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
            set_pointers(stream);
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
    stream->origin = origin;
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
    buffer_fini(&stream->texts);
    ARRAY_FINI(&stream->entries);
    ARRAY_FINI(&stream->parts);
    ARRAY_FINI(&stream->word_parts);
    ARRAY_FINI(&stream->ops);
    ARRAY_FINI(&stream->words);
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
    const bool wants = stream->wants_ack;

    stream->wants_ack = false;
    return wants;
}

const char *keydb_stream_error(const struct keydb_stream *stream)
{
    return stream->error;
}
