/* DEBUG subcommands about operations: what peers of an active server would read, and running one. */
#include "commands/debug/debug_priv.h"

#include "base/buffer.h"
#include "base/number.h"
#include "server/command/key_list.h"
#include "server/config/options.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/run/dispatch.h"
#include "server/run/obeyed.h"

/* ------------------------------------------------------------------------------------------------------ reading -- */

/* global, guarded by the gate: the reader of DEBUG OPERATIONS; open while its journal is not NULL. */
static struct journal_reader reader;

static void start(struct request *request)
{
    struct journal *journal = &request->worker->server->journal;

    if (reader.journal != NULL) {
        reply_error(request, "ERR operations are already being read");
        return;
    }
    journal_reader_open(&reader, journal);
    journal_reader_set(&reader, 0, JOURNAL_SELECT | JOURNAL_NOT_FOR_PEERS);
    journal_set_peers(journal, true);
    reply_ok(request);
}

void debug_operations_close(void)
{
    gate_assert_alone();
    if (reader.journal == NULL)
        return;
    journal_set_peers(reader.journal, false);
    journal_reader_close(&reader);
    reader.journal = NULL;
}

static void stop(struct request *request)
{
    debug_operations_close();
    reply_ok(request);
}

/* Three elements each: the database, the flags of the record (enum journal_flag), its bytes. */
static void read_all(struct request *request)
{
    struct resp_deferred head;
    struct buffer bytes = {0};
    struct journal_view view;
    uint64_t count = 0;

    if (reader.journal == NULL) {
        reply_error(request, "ERR operations are not being read: call DEBUG OPERATIONS START first");
        return;
    }
    head = resp_begin_deferred(request->out);
    for (; journal_reader_next(&reader, &view); count++) {
        bytes.size = 0;
        journal_view_append(&view, &bytes);
        reply_array(request, 3);
        reply_int(request, view.db);
        reply_int(request, view.flags);
        reply_bulk(request, buffer_slice(&bytes));
    }
    resp_end_deferred(request->out, request->proto, head, RESP_ARRAY, count);
    buffer_fini(&bytes);
}

static void debug_operations(struct request *request)
{
    if (request_arg_is(request, 2, "start"))
        start(request);
    else if (request_arg_is(request, 2, "read"))
        read_all(request);
    else if (request_arg_is(request, 2, "stop"))
        stop(request);
    else
        reply_syntax_error(request);
}

/* ------------------------------------------------------------------------------------------------------ running -- */

enum { ARG_TIME = 2, ARG_DB = 3, ARG_WORDS = 4 };

static const struct command *command_of(struct request *request, const struct slice *words, uint32_t word_count)
{
    const struct command *command = command_find_operation(words[0]);

    if (command != NULL && command->subcommand_count != 0 && word_count > 1)
        command = command_find_subcommand(command, words[1]);
    if (command != NULL && command_arity_fits(command, word_count) && obeyed_belongs(command))
        return command;
    reply_error(request, "ERR no such operation");
    return NULL;
}

/* At the wall time of the server where it ran: what has a deadline at or below it is absent. 0: nothing expires. */
static void run_at(struct request *operation, int64_t ms)
{
    struct access *access = operation->access;

    access_begin(access, ms != 0 ? ms : access->now_ms, true);
    if (ms == 0)
        access_follow(access);
    operation->in_exec = true;
    dispatch_run_obeyed(operation);
}

/* Runs one as it comes from a peer; replies what it replied. */
static void debug_operate(struct request *request)
{
    const struct slice *words = &request->args[ARG_WORDS];
    uint32_t word_count = request->arg_count - ARG_WORDS;
    const struct command *command = command_of(request, words, word_count);
    struct key_list keys = {0};
    struct request operation;
    int64_t ms;
    unsigned db;

    effect_none(request);
    if (command == NULL || !request_arg_i64(request, ARG_TIME, &ms) || !request_arg_db(request, ARG_DB, &db, NULL))
        return;
    key_list_add(&keys, command, words, word_count);
    request_init(&operation, request->worker, NULL, command, words, word_count, request->out);
    request_set_keys(&operation, keys.items, keys.count);
    operation.db = db;
    run_at(&operation, ms);
    request->failed = operation.failed;
    key_list_fini(&keys);
}

const struct debug_row debug_operation_rows[] = {
    {"operate", "<milliseconds> <db> <word> [<word> ...]",
     "Run an operation as one that comes from a peer, at this wall time; 0: nothing expires.", debug_operate, 5,
     UINT32_MAX, ACCESS_EXCLUSIVE, 0, 0},
    {"operations", "(START|READ|STOP)",
     "Read the operations that peers would get: an array of database, flags and bytes.", debug_operations, 3, 3,
     ACCESS_EXCLUSIVE, 0, 0},
    {0},
};
