/* DEBUG subcommands about operations: what peers of an active server would read, and running one. */
#include "commands/debug/debug_priv.h"

#include "active/history.h"
#include "active/node.h"
#include "active/notice.h"
#include "active/place.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "base/number.h"
#include "server/command/key_list.h"
#include "server/command/operation.h"
#include "server/config/options.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/run/dispatch.h"
#include "server/run/obeyed.h"
#include "store/undo.h"
#include "store/window.h"

/* ------------------------------------------------------------------------------------------------------ reading -- */

/* global, guarded by the gate: the reader of DEBUG OPERATIONS; open while its journal is not NULL. */
static struct journal_reader reader;

/* At the begin of the history. */
static bool open_history(void)
{
    struct notice_hello hello;
    struct merge_vector behind = {0};
    bool is_open;

    if (!active_is_on())
        return false;
    active_history_cut(&behind);
    node_hello(&hello);
    for (uint32_t i = 0; i < hello.hello.deeds.count; i++)
        merge_vector_raise(&behind, hello.hello.deeds.items[i].id, 0);
    is_open = active_history_open(&reader, &behind, 0, NULL);
    notice_hello_fini(&hello);
    merge_vector_fini(&behind);
    return is_open;
}

/* START ALL: not from here on, but all that the history has. */
static void start(struct request *request)
{
    struct journal *journal = &request->worker->server->journal;

    if (reader.journal != NULL) {
        reply_error(request, "ERR operations are already being read");
        return;
    }
    if (request->arg_count <= 3 || !request_arg_is(request, 3, "all") || !open_history())
        journal_reader_open(&reader, journal);
    journal_reader_set(&reader, 0, JOURNAL_SELECT | JOURNAL_NOT_FOR_PEERS);
    journal_set_peers(journal, true);
    reply_ok(request);
}

static struct place place; /* global, guarded by the gate: of DEBUG PLACE */

void debug_operations_close(void)
{
    gate_assert_alone();
    place_fini(&place);
    if (reader.journal == NULL)
        return;
    journal_set_peers(reader.journal, journal_is_stamping(reader.journal));
    journal_reader_close(&reader);
    reader.journal = NULL;
}

static void stop(struct request *request)
{
    debug_operations_close();
    reply_ok(request);
}

/* Six elements each: the database, the flags of the record (enum journal_flag), its bytes; then the origin, the stamp
 * and the wall time of its entry, 0 if it has none. */
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
        reply_array(request, 6);
        reply_int(request, view.db);
        reply_int(request, view.flags);
        reply_bulk(request, buffer_slice(&bytes));
        reply_int(request, view.stamp != NULL ? (int64_t)view.stamp->origin : 0);
        reply_int(request, view.stamp != NULL ? (int64_t)view.stamp->stamp : 0);
        reply_int(request, view.stamp != NULL ? view.stamp->wall_ms : 0);
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
    const struct command *command = operation_find(words, word_count);

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
    request_init(&operation, request->worker, request->client, command, words, word_count, request->out);
    request_set_keys(&operation, keys.items, keys.count);
    operation.db = db;
    run_at(&operation, ms);
    request->failed = operation.failed;
    key_list_fini(&keys);
}

/* ------------------------------------------------------------------------------------------------------ placing -- */

enum { PLACE_ORIGIN = 2, PLACE_PREV, PLACE_STAMP, PLACE_WALL, PLACE_DB, PLACE_WORDS };

/* "|": another operation of the same entry, "|3": in database 3. */
static bool is_between(struct slice word, unsigned *db)
{
    uint64_t number;

    if (word.size == 0 || word.data[0] != '|')
        return false;
    if (word.size == 1)
        return true;
    if (!number_parse_u64(slice_make(word.data + 1, word.size - 1), &number))
        return false;
    *db = (unsigned)number;
    return true;
}

static uint32_t split_operations(const struct request *request, unsigned db, struct frame_op *ops)
{
    uint32_t count = 0, end;

    for (uint32_t i = PLACE_WORDS; i < request->arg_count; i = end + 1) {
        struct frame_op *op = &ops[count];
        const struct command *command;

        *op = (struct frame_op){.words = &request->args[i], .db = db};
        for (end = i; end < request->arg_count && !is_between(request->args[end], &db);)
            end++;
        op->word_count = end - i;
        if (end == i)
            continue;
        count++;
        command = operation_find(op->words, op->word_count);
        if (command == NULL)
            continue;
        op->key_index = operation_key_index(command);
        op->overwrites = operation_overwrites(command, op->words, op->word_count);
    }
    return count;
}

/* One entry as it comes from a peer. */
static void debug_place(struct request *request)
{
    const struct slice *args = request->args;
    struct frame_entry entry = {0};
    struct frame_op *ops;
    unsigned db;

    effect_none(request);
    if (!number_parse_u64(args[PLACE_ORIGIN], &entry.origin) || !number_parse_u64(args[PLACE_PREV], &entry.prev) ||
        !number_parse_u64(args[PLACE_STAMP], &entry.stamp) || !number_parse_i64(args[PLACE_WALL], &entry.wall) ||
        !stamp_is_possible(entry.stamp) || entry.prev >= entry.stamp || entry.origin == 0) {
        reply_error(request, "ERR no such stamp");
        return;
    }
    if (!request_arg_db(request, PLACE_DB, &db, NULL))
        return;
    if (!journal_is_stamping(&request->worker->server->journal)) {
        reply_error(request, "ERR nothing is stamped: call DEBUG STAMPING 1 first");
        return;
    }
    ops = mem_alloc(request->arg_count * sizeof(*ops));
    entry.ops = ops;
    entry.op_count = split_operations(request, db, ops);
    for (uint32_t i = 0; i < entry.op_count; i++)
        entry.flush = entry.flush || operation_flushes_words(ops[i].words, ops[i].word_count);
    if (undo_is_recording(request->access)) /* nothing of this command is to be taken back */
        undo_end(request->access);
    place_begin(&place, request->worker, true);
    place_entry(&place, &entry, NULL);
    place_end(&place);
    mem_free(ops);
    reply_ok(request);
}

static void debug_window(struct request *request)
{
    struct store *store = request->access->store;
    struct window_totals totals;
    int64_t frontier, wall;

    if (request->arg_count == 4) {
        if (!request_arg_i64(request, 2, &frontier) || !request_arg_i64(request, 3, &wall))
            return;
        horizon_raise(&store->horizon, (uint64_t)frontier, wall);
        for (uint32_t i = 0; store->window != NULL && i <= store->stripe_mask; i++)
            (void)window_settle(request->access, i, UINT32_MAX);
        if (store->window != NULL)
            window_settle_noted(request->access);
    }
    window_totals(store, &totals);
    reply_array(request, 8);
    reply_int(request, (int64_t)totals.bytes);
    reply_int(request, (int64_t)totals.keys);
    reply_int(request, (int64_t)totals.tombstones);
    reply_int(request, (int64_t)totals.dirty);
    reply_int(request, (int64_t)place.counts.appended);
    reply_int(request, (int64_t)place.counts.placed);
    reply_int(request, (int64_t)place.counts.dropped);
    reply_int(request, (int64_t)place.counts.late);
}

const struct debug_row debug_operation_rows[] = {
    {"operate", "<milliseconds> <db> <word> [<word> ...]",
     "Run an operation as one that comes from a peer, at this wall time; 0: nothing expires.", debug_operate, 5,
     UINT32_MAX, ACCESS_EXCLUSIVE, 0, 0},
    {"operations", "(START [ALL]|READ|STOP)",
     "Read the operations that peers would get: an array of database, flags, bytes, origin, stamp and wall time. ALL: "
     "also those that the history has.",
     debug_operations, 3, 4, ACCESS_EXCLUSIVE, 0, 0},
    {"place", "<origin> <prev> <stamp> <wall> <db> <word> [<word> ...]",
     "Take in an entry as it comes from a peer, where its stamp belongs. Several operations stand between words | or "
     "|<db>.",
     debug_place, 8, UINT32_MAX, ACCESS_EXCLUSIVE, 0, 0},
    {"window", "[<frontier> <wall>]",
     "Settle up to this frontier. Return bytes, keys, tombstones and dirty keys of the window; operations that DEBUG "
     "PLACE has appended, placed, dropped, taken late.",
     debug_window, 2, 4, ACCESS_EXCLUSIVE, 0, 0},
    {0},
};
