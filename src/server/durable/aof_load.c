#include "server/durable/aof_load.h"

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

static bool run_steps(struct loading_file *file)
{
    uint32_t done;

    for (uint32_t i = 0; i < file->step_count; i++) /* reading has moved them */
        file->applied[i].args = &file->reader.words.items[file->steps[i].first];
    done = applier->run(file->apply, file->applied, file->step_count);
    if (done == file->step_count)
        return true;
    return refuse_command(file, &file->steps[done], "names a database that is not there (see the option `databases`)");
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
            if (slice_equal_text(step->command->full_name, "multi") && !file->in_transaction) {
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

/* The file ends within a command, or a transaction; `size` is where that begins. */
static bool ends_early(struct loading_file *file, uint64_t size)
{
    struct aof_reader *reader = &file->reader;
    uint64_t at = aof_reader_offset(reader);

    if (aof_reader_hides_commands(reader))
        return damaged(file, at, "a length is larger than what follows, and whole commands are among that");
    if (reader->status != STATUS_OK)
        return unreadable(file, at, strerror(errno));
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

static bool pause_in_rdb(uint64_t bytes, uint64_t keys, void *context)
{
    struct loading_file *file = context;

    file->result->interrupted = !file->request->pause(file->before_bytes + bytes, keys);
    return !file->result->interrupted;
}

static void no_aux(struct slice name, struct slice value, void *context)
{
    (void)name;
    (void)value;
    (void)context;
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
    request.aux = file->request->aux != NULL ? file->request->aux : no_aux;
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
    char magic[5];
    size_t got;
    uint64_t offset = 0;
    enum status status = file_read(file->file, magic, sizeof(magic), &got);

    if (status == STATUS_OK)
        status = file_seek(file->file, 0);
    if (status == STATUS_OK)
        status = file_source_init(&file->source, file->file);
    if (status != STATUS_OK)
        return unreadable(file, 0, strerror(errno));
    if (got == sizeof(magic) && memcmp(magic, "REDIS", sizeof(magic)) == 0) {
        if (!load_rdb(file, &offset))
            return false;
        status = file_seek(file->file, offset);
        if (status != STATUS_OK)
            return unreadable(file, offset, strerror(errno));
    }
    aof_reader_init(&file->reader, &file->source.source, offset);
    applier->begin(file->apply, note_error, file);
    return load_commands(file);
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
    result->commands = applier->count(apply);
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
    const struct aof_load_request request = {.worker = worker};
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
        break;
    case AOF_FOUND_NOTHING:
        log_warning("There is no append-only file to load");
        break;
    case AOF_FOUND_TROUBLE:
        break;
    }
    aof_manifest_fini(&manifest);
    access->dirty = dirty; /* the data is that of the files */
    if (good)
        persistence_note_loaded(result.keys, 0);
    return good;
}
