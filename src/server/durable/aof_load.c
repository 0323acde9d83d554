#include "server/durable/aof_load.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "persist/aof_read.h"
#include "persist/rdb_load.h"
#include "server/command/command.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/aof.h"
#include "server/durable/aof_files.h"
#include "server/durable/aof_writer.h"
#include "server/durable/data_order.h"
#include "server/durable/file_options.h"
#include "server/durable/libraries.h"
#include "server/durable/persistence.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    BATCH_MOST = 16, /* commands that are looked at together, so that their keys' memory arrives together */
    ERRORS_SHOWN = 10,
    REASON_BYTES = 512
};

static const struct applier *applier; /* const once something is loaded */

void aof_load_provide(const struct applier *provided)
{
    gate_assert_main_alone();
    assert(applier == NULL);
    applier = provided;
}

/* A command of which the next note says whether it is an operation. */
struct pending {
    struct aof_command command;
    unsigned db;
    enum { PENDING_EFFECT, PENDING_SELECT, PENDING_OPERATION /* in its second word */ } kind;
};

/* A unit is what is read again if the file ends within it: outside of a transaction one entry, or one command. */
struct entry_state {
    bool has_notes;   /* each command at the end of a unit has one behind it */
    bool is_open;     /* a unit has begun */
    bool is_at_end;   /* of the file: there is no more to be read */
    bool is_skipped;  /* the next command is for others */
    uint64_t unit_at; /* its offset */
    uint64_t piece_at;
    unsigned db; /* selected */
    struct {
        struct pending *items;
        uint32_t count, capacity;
    } pending;
    struct {
        struct slice *items;
        uint32_t count, capacity;
    } words; /* of the operations of an entry */
    struct {
        struct data_order_operation *items;
        uint32_t count, capacity;
    } operations;
    struct {
        uint64_t *items;
        uint32_t count, capacity;
    } left; /* of the keys of a command without a stamp: data_order_leave */
    struct key_positions positions;
};

struct loading_file {
    const struct aof_load_request *request;
    struct aof_load_result *result;
    struct apply *apply;
    const char *name;
    const char *path;
    struct file *file;
    struct file_source source;
    struct aof_reader reader;
    bool is_last;
    bool in_transaction;     /* its EXEC is in the window */
    bool begins_transaction; /* the batch ended with MULTI */
    uint64_t transaction_at; /* its offset */
    uint64_t before_bytes;   /* of the files before this one */
    uint64_t next_pause;
    struct aof_command steps[BATCH_MOST];
    struct applied applied[BATCH_MOST]; /* the same */
    uint32_t step_count;
    struct entry_state entries; /* of an active node's file */
    char reason[REASON_BYTES];
};

/* ------------------------------------------------------------------------------------------------------ refusals -- */

static const char *ending(const struct loading_file *file)
{
    return file->request->at_start ? "The server does not start, and leaves the file as it is."
                                   : "The file is left as it is.";
}

/* Logs the error in one line; returns false. */
static bool damaged(const struct loading_file *file, uint64_t offset, const char *reason)
{
    log_warning("Bad file format reading the append only file %s: at byte %" PRIu64 ": %s. %s Make a backup of it, "
                "then use keydb-check-aof --fix <filename.manifest>.",
                file->name, offset, reason, ending(file));
    return false;
}

static bool unreadable(const struct loading_file *file, uint64_t offset, const char *reason)
{
    log_warning("Unrecoverable error reading the append only file %s: at byte %" PRIu64 ": %s. %s Remove the cause and "
                "start again.",
                file->name, offset, reason, ending(file));
    return false;
}

static bool refuse_command(struct loading_file *file, const struct aof_command *words, const char *reason)
{
    struct slice name = file->reader.words.items[words->first];

    (void)snprintf(file->reason, sizeof(file->reason), "the command '%.*s' %s", (int)MIN(name.size, (size_t)100),
                   name.data, reason);
    return damaged(file, words->offset, file->reason);
}

/* A command has replied an error; `text` is the reply. */
static void note_error(const struct applied *step, struct slice text, void *context)
{
    struct loading_file *file = context;
    struct slice name = step->command->full_name;

    assert(step >= file->applied && step < file->applied + BATCH_MOST);
    if (++file->result->errors > ERRORS_SHOWN)
        return;
    while (text.size != 0 && (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r'))
        text.size--;
    log_warning("== CRITICAL == This server is sending an error to its AOF-loading-client: '%.*s' after processing the "
                "command '%.*s' at byte %" PRIu64 " of %s",
                (int)MIN(text.size, (size_t)200), text.data, (int)name.size, name.data,
                file->steps[step - file->applied].offset, file->name);
}

/* ------------------------------------------------------------------------------------------------------- batches -- */

/* Which command it is. False: it cannot be one, which has been told. */
static bool prepare(struct loading_file *file, const struct aof_command *words, struct applied *step)
{
    const struct slice *args = &file->reader.words.items[words->first];

    switch (applier->prepare(file->apply, args, words->count, step)) {
    case APPLY_FINE:
        return true;
    case APPLY_UNKNOWN:
        log_warning("Unknown command '%.*s' reading the append only file %s: at byte %" PRIu64 ". %s Load it with a "
                    "server that knows the command, or remove it.",
                    (int)MIN(args[0].size, (size_t)100), args[0].data, file->name, words->offset, ending(file));
        return false;
    case APPLY_ARITY:
        return refuse_command(file, words, "has a wrong number of arguments");
    case APPLY_FOREIGN:
        return refuse_command(file, words, "does not belong into such a file");
    }
    return false;
}

static bool refuse_database(struct loading_file *file, const struct aof_command *words)
{
    return refuse_command(file, words, "names a database that is not there (see the option `databases`)");
}

static bool run_steps(struct loading_file *file)
{
    uint32_t done;

    for (uint32_t i = 0; i < file->step_count; i++) /* reading has moved them */
        file->applied[i].args = &file->reader.words.items[file->steps[i].first];
    done = applier->run(file->apply, file->applied, file->step_count);
    if (done == file->step_count)
        return true;
    return refuse_database(file, &file->steps[done]);
}

/* Gathers commands until there are enough, or up to MULTI or EXEC. Returns the piece behind them. */
static enum aof_piece gather(struct loading_file *file, bool *good)
{
    enum aof_piece piece = AOF_COMMAND;

    aof_reader_forget(&file->reader);
    file->step_count = 0;
    applier->forget(file->apply);
    *good = true;
    while (file->step_count < BATCH_MOST) {
        struct aof_command *words = &file->steps[file->step_count];
        struct applied *step = &file->applied[file->step_count];

        piece = aof_reader_piece(&file->reader, words);
        if (piece == AOF_NOTE)
            continue;
        if (piece != AOF_COMMAND)
            break;
        *good = prepare(file, words, step);
        if (UNLIKELY(!*good))
            break;
        if (UNLIKELY((step->command->flags & COMMAND_UNQUEUED) != 0)) {
            if (slice_equal_text(step->command->full_name, "multi")) {
                if (file->in_transaction) {
                    note_error(step, SLICE("ERR MULTI calls can not be nested"), file);
                    continue;
                }
                file->begins_transaction = true;
                file->transaction_at = words->offset;
                break;
            }
            if (slice_equal_text(step->command->full_name, "exec") && file->in_transaction) {
                file->in_transaction = false;
                continue;
            }
        }
        file->step_count++;
    }
    return piece;
}

/* ------------------------------------------------------------------------------------------------- transactions -- */

enum found_exec { EXEC_FOUND, EXEC_CUT, EXEC_FAILED };

/* After MULTI: looks for an EXEC. The window keeps everything from here to it; afterwards the reader is here again. */
static enum found_exec find_exec(struct loading_file *file)
{
    struct aof_reader *reader = &file->reader;
    struct aof_command command;
    size_t first = reader->at;
    enum aof_piece piece;

    for (;;) {
        aof_reader_forget(reader);
        piece = aof_reader_piece(reader, &command);
        if (piece == AOF_COMMAND && command.count == 1 &&
            slice_equal_text_nocase(reader->words.items[command.first], "exec"))
            break;
        if (piece == AOF_BAD) {
            (void)damaged(file, aof_reader_offset(reader), reader->error);
            return EXEC_FAILED;
        }
        if (piece == AOF_MORE && !aof_reader_fill(reader, &first)) {
            if (reader->ended)
                return EXEC_CUT;
            (void)unreadable(file, aof_reader_offset(reader), strerror(errno));
            return EXEC_FAILED;
        }
    }
    reader->at = first;
    return EXEC_FOUND;
}

/* ------------------------------------------------------------------------------------------------------- the end -- */

static bool cut(struct loading_file *file, uint64_t size)
{
    struct file *writable = NULL;
    enum status status;

    log_warning("!!! Warning: short read while loading the AOF file %s!!!", file->name);
    log_warning("!!! Truncating the AOF %s at offset %" PRIu64 " !!!", file->name, size);
    status = file_open(&writable, file->path, FILE_APPEND);
    if (status == STATUS_OK)
        status = file_truncate(writable, size);
    if (status == STATUS_OK)
        status = file_sync(writable);
    file_close(&writable);
    if (status != STATUS_OK) {
        log_warning("Error truncating the AOF file %s: %s. The server does not start. Remove the cause and start "
                    "again.",
                    file->name, strerror(errno));
        return false;
    }
    log_warning("AOF %s loaded anyway because aof-load-truncated is enabled", file->name);
    return true;
}

static bool ends_within(struct loading_file *file, uint64_t size)
{
    if (!file->is_last) {
        log_warning("Fatal error: the truncated file is not the last file: %s ends early: at byte %" PRIu64 ". %s "
                    "Make a backup of the files, then use keydb-check-aof --fix <filename.manifest>.",
                    file->name, size, ending(file));
        return false;
    }
    if (!OPTION_IS(option_aof_load_truncated)) {
        log_warning("Unexpected end of file reading the append only file %s: at byte %" PRIu64 ". %s You can: 1) Make "
                    "a backup of your AOF file, then use keydb-check-aof --fix <filename.manifest>. 2) Alternatively "
                    "you can set the 'aof-load-truncated' configuration option to yes and restart the server.",
                    file->name, size, ending(file));
        return false;
    }
    return cut(file, size);
}

/* The file ends within a command, or a transaction; `size` is where that begins. */
static bool ends_early(struct loading_file *file, uint64_t size)
{
    struct aof_reader *reader = &file->reader;
    uint64_t at = aof_reader_offset(reader);

    if (aof_reader_hides_commands(reader))
        return damaged(file, at, "a length is larger than what follows, and whole commands are among that");
    if (reader->status != STATUS_OK)
        return unreadable(file, at, strerror(errno));
    return ends_within(file, size);
}

/* --------------------------------------------------------------------------------------------------------- files -- */

static bool take_a_rest(struct loading_file *file)
{
    const struct aof_load_request *request = file->request;
    uint64_t bytes = file->before_bytes + aof_reader_offset(&file->reader);

    if (LIKELY(bytes < file->next_pause) || request->pause == NULL)
        return true;
    file->next_pause = bytes + request->pause_bytes;
    file->result->interrupted = !request->pause(bytes, file->result->keys + applier->count(file->apply));
    return !file->result->interrupted;
}

static bool load_commands(struct loading_file *file)
{
    struct aof_reader *reader = &file->reader;

    for (;;) {
        bool good;
        enum aof_piece piece = gather(file, &good);

        if (!run_steps(file) || !good || !take_a_rest(file))
            return false;
        if (file->begins_transaction) {
            enum found_exec found = find_exec(file);

            file->begins_transaction = false;
            if (found == EXEC_FAILED)
                return false;
            if (found == EXEC_CUT) {
                log_warning("Revert incomplete MULTI/EXEC transaction in AOF file %s", file->name);
                return ends_early(file, file->transaction_at);
            }
            file->in_transaction = true;
        } else if (piece == AOF_BAD) {
            return damaged(file, aof_reader_offset(reader), reader->error);
        } else if (piece == AOF_MORE && !aof_reader_fill(reader, NULL)) {
            if (!reader->ended)
                return unreadable(file, aof_reader_offset(reader), strerror(errno));
            return aof_reader_is_done(reader) || ends_early(file, aof_reader_offset(reader));
        }
    }
}

/* ------------------------------------------------------------------------------------- files of an active node -- */

static struct slice word_of(const struct loading_file *file, const struct pending *pending, uint32_t index)
{
    return file->reader.words.items[pending->command.first + index];
}

static void close_unit(struct loading_file *file)
{
    struct entry_state *entries = &file->entries;

    assert(entries->pending.count == 0);
    entries->is_open = file->in_transaction;
    entries->is_skipped = false;
    if (!file->in_transaction)
        aof_reader_forget(&file->reader);
}

static void open_unit(struct loading_file *file)
{
    struct entry_state *entries = &file->entries;

    if (!entries->is_open)
        entries->unit_at = entries->piece_at;
    entries->is_open = true;
}

/* An operation of a peer with more databases: it was not run here, and is passed on. */
static bool is_foreign(const struct loading_file *file, const struct pending *pending)
{
    return pending->db >= file->request->worker->server->store->database_count;
}

/* A command without a stamp: what has expired, or of a time when this was no active node. */
static bool run_plain(struct loading_file *file, const struct pending *pending)
{
    struct entry_state *entries = &file->entries;
    struct access *access = &file->request->worker->run.access;
    const struct slice *args = &file->reader.words.items[pending->command.first];
    const struct applied *step = &file->applied[0];

    if (is_foreign(file, pending))
        return pending->kind == PENDING_SELECT || refuse_database(file, &pending->command);
    access->changed = NULL; /* nobody writes it down */
    applier->forget(file->apply);
    file->steps[0] = pending->command;
    if (!prepare(file, &file->steps[0], &file->applied[0]))
        return false;
    file->step_count = 1;
    entries->positions.count = entries->left.count = 0;
    access_begin(access, clock_wall_ms(), true); /* a look at the limits holds single stripes */
    if (step->key_count != 0)
        (void)command_keys(step->command, args, pending->command.count, &entries->positions);
    for (uint32_t i = 0; i < entries->positions.count; i++) {
        const struct key key = key_make(key_position_name(args, entries->positions.items[i]));

        *ARRAY_PUSH(&entries->left) = data_order_leave(access, pending->db, &key);
    }
    if (!run_steps(file))
        return false;
    for (uint32_t i = 0; i < entries->positions.count; i++) {
        const struct key key = key_make(key_position_name(args, entries->positions.items[i]));

        data_order_left(access, pending->db, &key, entries->left.items[i]);
    }
    return true;
}

/* Runs the first ones, of which no note was. */
static bool run_pending(struct loading_file *file, uint32_t count)
{
    struct entry_state *entries = &file->entries;
    bool good = true;

    for (uint32_t i = 0; i < count && good; i++)
        good = entries->pending.items[i].kind == PENDING_OPERATION || run_plain(file, &entries->pending.items[i]);
    entries->pending.count -= count;
    if (entries->pending.count == 0)
        return good;
    memmove(entries->pending.items, entries->pending.items + count,
            entries->pending.count * sizeof(*entries->pending.items));
    return good;
}

/* The words of an operation, which ECHO has as one. */
static bool take_operation(struct loading_file *file, const struct pending *pending)
{
    struct aof_reader inner;
    struct aof_command command;
    bool good;

    aof_reader_init_memory(&inner, word_of(file, pending, 1), 0);
    good = aof_reader_piece(&inner, &command) == AOF_COMMAND && aof_reader_is_done(&inner);
    for (uint32_t i = 0; good && i < command.count; i++)
        *ARRAY_PUSH(&file->entries.words) = inner.words.items[i];
    aof_reader_fini(&inner);
    return good || damaged(file, pending->command.offset, "an operation is not a command");
}

static bool add_operation(struct loading_file *file, const struct pending *pending)
{
    struct entry_state *entries = &file->entries;
    const uint32_t first = entries->words.count;

    if (pending->kind == PENDING_SELECT)
        return run_plain(file, pending);
    if (pending->kind == PENDING_EFFECT && is_foreign(file, pending))
        return refuse_database(file, &pending->command);
    if (pending->kind == PENDING_OPERATION && !take_operation(file, pending))
        return false;
    for (uint32_t i = 0; pending->kind == PENDING_EFFECT && i < pending->command.count; i++)
        *ARRAY_PUSH(&entries->words) = word_of(file, pending, i);
    *ARRAY_PUSH(&entries->operations) = (struct data_order_operation){.word_count = entries->words.count - first,
                                                                      .db = pending->db};
    return true;
}

static bool place_entry(struct loading_file *file, const struct aof_order_note *note)
{
    struct entry_state *entries = &file->entries;
    struct data_order_entry entry = {.origin = note->origin,
                                     .stamp = note->stamp,
                                     .previous = note->previous,
                                     .wall_ms = note->wall_ms,
                                     .seen = note->seen};
    uint32_t at = 0;

    entries->words.count = entries->operations.count = 0;
    for (uint32_t i = 0; i < entries->pending.count; i++) {
        if (!add_operation(file, &entries->pending.items[i]))
            return false;
    }
    for (uint32_t i = 0; i < entries->operations.count; i++) { /* the array moves no more */
        entries->operations.items[i].words = entries->words.items + at;
        at += entries->operations.items[i].word_count;
    }
    entry.operations = entries->operations.items;
    entry.count = entries->operations.count;
    data_order_place(file->request->order, file->request->worker, &entry);
    file->result->commands += entry.count;
    entries->pending.count = 0;
    return true;
}

/* Another effect comes at this offset. An entry has one outside of transactions: those before it are of none. */
static bool run_effects(struct loading_file *file, uint64_t offset)
{
    struct entry_state *entries = &file->entries;
    uint32_t count = file->in_transaction ? 0 : entries->pending.count;

    while (count != 0 && entries->pending.items[count - 1].kind != PENDING_EFFECT)
        count--;
    if (count == 0)
        return true;
    if (!run_pending(file, count))
        return false;
    entries->unit_at = entries->pending.count != 0 ? entries->pending.items[0].command.offset : offset;
    return true;
}

static bool take_note(struct loading_file *file)
{
    struct entry_state *entries = &file->entries;
    struct aof_order_note note;
    uint32_t first = entries->pending.count, left;

    if (aof_note_is_plain(file->reader.note)) {
        if (!run_effects(file, entries->piece_at))
            return false;
        open_unit(file);
        entries->is_skipped = true;
        return true;
    }
    if (!aof_note_order(file->reader.note, &note))
        return true;
    for (left = note.count; left != 0 && first != 0; first--)
        left -= entries->pending.items[first - 1].kind != PENDING_SELECT;
    if (left != 0)
        return damaged(file, aof_reader_offset(&file->reader), "an entry has more operations than there are commands");
    entries->has_notes = true;
    if (!run_pending(file, first) || !place_entry(file, &note))
        return false;
    close_unit(file);
    return true;
}

static bool begin_transaction(struct loading_file *file, uint64_t offset)
{
    if (!run_pending(file, file->entries.pending.count))
        return false;
    close_unit(file);
    switch (find_exec(file)) {
    case EXEC_FOUND:
        file->in_transaction = file->entries.is_open = true;
        return true;
    case EXEC_CUT:
        log_warning("Revert incomplete MULTI/EXEC transaction in AOF file %s", file->name);
        return ends_early(file, offset);
    case EXEC_FAILED:
        break;
    }
    return false;
}

/* *is_done: the end of the file was an incomplete transaction. */
static bool take_command(struct loading_file *file, const struct aof_command *command, bool *is_done)
{
    struct entry_state *entries = &file->entries;
    struct pending pending = {.command = *command, .db = entries->db};
    const struct slice name = word_of(file, &pending, 0);
    const bool is_skipped = entries->is_skipped;
    uint64_t db;

    entries->is_skipped = false;
    open_unit(file);
    if (slice_equal_text_nocase(name, "multi") && !file->in_transaction) {
        const bool good = begin_transaction(file, command->offset);

        *is_done = good && !file->in_transaction;
        return good;
    }
    if (slice_equal_text_nocase(name, "exec") && file->in_transaction) {
        file->in_transaction = false;
        if (!run_pending(file, entries->pending.count))
            return false;
        close_unit(file);
        return true;
    }
    if (slice_equal_text_nocase(name, "select") && command->count == 2) {
        pending.kind = PENDING_SELECT;
        if (number_parse_u64(word_of(file, &pending, 1), &db) && db < INT32_MAX)
            pending.db = entries->db = (unsigned)db;
    } else if (slice_equal_text_nocase(name, "echo") && command->count == 2) {
        pending.kind = PENDING_OPERATION;
    } else if (!run_effects(file, command->offset)) {
        return false;
    }
    if (!is_skipped)
        *ARRAY_PUSH(&entries->pending) = pending;
    return true;
}

/* False: there is no more, or it cannot be read. The unit is read again. */
static bool read_on(struct loading_file *file)
{
    struct entry_state *entries = &file->entries;
    struct aof_reader *reader = &file->reader;

    assert(!file->in_transaction);
    if (entries->is_open)
        reader->at = (size_t)(entries->unit_at - reader->offset);
    entries->pending.count = 0;
    close_unit(file);
    if (aof_reader_fill(reader, NULL))
        return true;
    entries->is_at_end = true;
    return reader->ended;
}

/* What is incomplete may be known to others or not: they give it back, or nobody saw it. */
static bool end_entries(struct loading_file *file)
{
    struct entry_state *entries = &file->entries;
    const bool is_done = aof_reader_is_done(&file->reader);

    if (entries->is_open && entries->has_notes && (file->is_last || !is_done))
        return is_done ? ends_within(file, entries->unit_at) : ends_early(file, entries->unit_at);
    if (!run_pending(file, entries->pending.count))
        return false;
    return is_done || ends_early(file, aof_reader_offset(&file->reader));
}

static bool load_pieces(struct loading_file *file)
{
    struct entry_state *entries = &file->entries;
    struct aof_reader *reader = &file->reader;
    bool good = true, is_done = false;

    while (good && !is_done) {
        struct aof_command command;

        entries->piece_at = aof_reader_offset(reader);
        switch (aof_reader_piece(reader, &command)) {
        case AOF_NOTE:
            good = take_note(file);
            break;
        case AOF_COMMAND:
            good = take_command(file, &command, &is_done);
            break;
        case AOF_BAD:
            return damaged(file, aof_reader_offset(reader), reader->error);
        case AOF_MORE:
            if (entries->is_at_end)
                return end_entries(file);
            if (!read_on(file) && !reader->ended)
                return unreadable(file, aof_reader_offset(reader), strerror(errno));
            break;
        }
        good = good && take_a_rest(file);
    }
    return good;
}

static bool load_entries(struct loading_file *file)
{
    struct access *access = &file->request->worker->run.access;
    struct data_order_found *order = file->request->order;
    struct changed *changed = access->changed;
    char error[DATA_ORDER_ERROR_BYTES];
    bool good;

    if (!order->is_begun && !data_order_begin(order, file->request->worker, error))
        return damaged(file, 0, error);
    good = load_pieces(file);
    access->changed = changed;
    return good;
}

static bool pause_in_rdb(uint64_t bytes, uint64_t keys, void *context)
{
    struct loading_file *file = context;

    file->result->interrupted = !file->request->pause(file->before_bytes + bytes, keys);
    return !file->result->interrupted;
}

static void take_aux(struct slice name, struct slice value, void *context)
{
    const struct loading_file *file = context;

    data_order_take(file->request->order, name, value);
    if (file->request->aux != NULL)
        file->request->aux(name, value, NULL);
}

/* Loads the RDB at the begin of the file, or the whole file. *size: its size. */
static bool load_rdb(struct loading_file *file, uint64_t *size)
{
    struct access *access = &file->request->worker->run.access;
    struct rdb_load_request request;
    struct rdb_load_result result;

    access_begin(access, clock_wall_ms(), true);
    access_follow(access);
    persistence_fill_load(&request, access);
    request.keeps_expired = true; /* the increments say when a key is gone */
    request.pause = file->request->pause != NULL ? pause_in_rdb : NULL;
    request.pause_bytes = file->request->pause_bytes;
    request.aux = take_aux;
    request.context = file;
    if (!rdb_load(&file->source.source, &request, &result)) {
        if (result.status == STATUS_INTERRUPTED)
            return false;
        log_warning("Error reading the RDB preamble of the AOF file %s: at byte %" PRIu64 ": %s. %s %s", file->name,
                    result.failed_at, result.error, ending(file),
                    result.status == STATUS_UNSUPPORTED ? "Load it with a server that supports this."
                                                        : "Restore it from a copy.");
        return false;
    }
    file->result->keys += result.keys;
    *size = result.bytes;
    return true;
}

static bool load_content(struct loading_file *file)
{
    char magic[RDB_MAGIC_BYTES];
    size_t got;
    uint64_t offset = 0;
    enum status status = file_read(file->file, magic, sizeof(magic), &got);

    if (status == STATUS_OK)
        status = file_seek(file->file, 0);
    if (status == STATUS_OK)
        status = file_source_init(&file->source, file->file);
    if (status != STATUS_OK)
        return unreadable(file, 0, strerror(errno));
    if (got == sizeof(magic) && rdb_is_magic(magic)) {
        if (!load_rdb(file, &offset))
            return false;
        status = file_seek(file->file, offset);
        if (status != STATUS_OK)
            return unreadable(file, offset, strerror(errno));
    }
    aof_reader_init(&file->reader, &file->source.source, offset);
    applier->begin(file->apply, note_error, file);
    return data_order_is_wanted() ? load_entries(file) : load_commands(file);
}

static bool load_file(struct loading_file *file)
{
    enum status status = file_open(&file->file, file->path, FILE_READ);
    bool good;

    if (status != STATUS_OK)
        return unreadable(file, 0, strerror(errno));
    good = load_content(file);
    aof_reader_fini(&file->reader);
    file_close(&file->file);
    return good;
}

static double seconds_since(uint64_t start_us)
{
    return (double)(clock_monotonic_us() - start_us) / 1e6;
}

static bool load_part(const struct aof_part *part, bool is_last, uint64_t *bytes, struct apply *apply,
                      const struct aof_load_request *request, struct aof_load_result *result)
{
    uint64_t start_us = clock_monotonic_us(), size = 0;
    char *path = aof_file_path(part->name);
    struct loading_file *file = mem_alloc_zero(sizeof(*file));
    bool good;

    (void)!file_size_of(path, &size); /* opening it will tell */
    file->request = request;
    file->result = result;
    file->apply = apply;
    file->name = part->name;
    file->path = path;
    file->is_last = is_last;
    file->before_bytes = *bytes;
    file->next_pause = *bytes + request->pause_bytes;
    good = load_file(file);
    if (good && size != 0)
        log_notice("DB loaded from %s file %s: %.3f seconds", part->type == AOF_BASE ? "base" : "incr", part->name,
                   seconds_since(start_us));
    *bytes += size;
    ARRAY_FINI(&file->entries.pending);
    ARRAY_FINI(&file->entries.words);
    ARRAY_FINI(&file->entries.operations);
    ARRAY_FINI(&file->entries.left);
    key_positions_fini(&file->entries.positions);
    mem_free(file);
    mem_free(path);
    return good;
}

bool aof_load_run(const struct aof_manifest *manifest, const struct aof_load_request *request,
                  struct aof_load_result *result)
{
    struct access *access = &request->worker->run.access;
    struct effects *effects = access->effects;
    uint64_t start_us = clock_monotonic_us(), bytes = 0;
    struct apply *apply = applier->create(request->worker);
    bool good = true;

    worker_assert_self(request->worker);
    gate_assert_alone();
    *result = (struct aof_load_result){0};
    access->effects = NULL;
    for (uint32_t i = 0; good && i < manifest->count; i++) {
        if (manifest->items[i].type != AOF_HISTORY)
            good = load_part(&manifest->items[i], i + 1 == manifest->count, &bytes, apply, request, result);
    }
    result->commands += applier->count(apply);
    if (data_order_is_wanted())
        data_order_end(request->order);
    applier->destroy(&apply);
    access->effects = effects;
    access_begin(access, clock_wall_ms(), true);
    if (result->errors > ERRORS_SHOWN)
        log_warning("%" PRIu64 " commands of the append-only file replied an error", result->errors);
    if (good)
        log_notice("DB loaded from append only file: %.3f seconds", seconds_since(start_us));
    return good;
}

bool aof_load_again(struct worker *worker)
{
    struct access *access = &worker->run.access;
    struct data_order_found order = {.state = {0}};
    const struct aof_load_request request = {.worker = worker, .order = &order};
    char error[DATA_ORDER_ERROR_BYTES];
    const uint64_t dirty = access->dirty;
    struct aof_load_result result;
    struct aof_manifest manifest = {0};
    struct aof_stats stats;
    uint64_t bytes;
    bool good = false;

    worker_assert_self(worker);
    gate_assert_alone();
    /* Without an append-only file a rewrite also leaves files that can be loaded. The files can also be loaded before
     * the first rewrite has begun. Once it has, its effects must not be of other data than those that follow. */
    aof_stats(&stats);
    if ((aof_state() == AOF_STARTING && stats.is_rewriting) || aof_state() == AOF_STOPPING ||
        aof_state() == AOF_SUSPENDED || (aof_state() == AOF_ON && !aof_writer_settle())) {
        log_warning("Can't load the append-only file: %s", aof_state() == AOF_ON ? "it is incomplete, a write failed"
                                                           : aof_state() == AOF_STOPPING
                                                               ? "it is being switched off"
                                                               : "its first rewrite is not complete");
        return false;
    }
    switch (aof_files_find(false, &manifest, &bytes)) {
    case AOF_FOUND:
        access_flush_all(access, false);
        libraries_flush();
        good = aof_load_run(&manifest, &request, &result);
        if (good && !(good = data_order_restore(access, &order, error)))
            log_warning("Can't load the append-only file: %s", error);
        break;
    case AOF_FOUND_NOTHING:
        log_warning("There is no append-only file to load");
        break;
    case AOF_FOUND_TROUBLE:
        break;
    }
    aof_manifest_fini(&manifest);
    data_order_found_fini(&order);
    access->dirty = dirty; /* the data is that of the files */
    if (good)
        persistence_note_loaded(result.keys, 0);
    return good;
}
