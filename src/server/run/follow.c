#include "server/run/follow.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/number.h"
#include "net/resp.h"
#include "server/command/key_list.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/run_time.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/pubsub/monitor.h"
#include "server/run/batch.h"
#include "server/run/command_check.h"
#include "server/run/crew.h"
#include "server/run/dispatch.h"
#include "server/run/obeyed.h"
#include "store/waiters.h"

#include <stdio.h>

enum {
    PREFETCH_COMMANDS = 8, /* commands whose keys are prefetched together */
    SPREAD_LEAST = 256,    /* commands that are worth being run by several workers */
    IDLE_BYTES = 1 << 20,  /* memory that stays while there is nothing to do */
    /* Of an incomplete command, which the caller keeps: connections put so much in front of what they receive. */
    LEFT_MOST = 16 * 1024
};
enum { NO_PART = UINT32_MAX };

/* What is done for a command. SHOWN: SELECT, MULTI, EXEC and PING do nothing here, but monitors see them. */
enum step_kind { STEP_RUN, STEP_SHOWN, STEP_NOTHING, STEP_BAD };

struct step {
    enum step_kind kind;
    size_t begin, end; /* its bytes in follow.data */
    const struct command *command;
    struct slice *args; /* point into follow.data */
    /* The blob of the key that has got a long argument, and where in its bytes that is; NULL: none. Set by the thread
     * that runs it. */
    struct effect_blob blob;
    uint32_t arg_count;
    uint32_t first_key, key_count;
    unsigned db;
    unsigned flags;    /* enum journal_flag */
    uint32_t part;     /* of the crew, in a spread; NO_PART: its keys are in several, or it needs more than its keys */
    bool ends_group;   /* it is no part of a transaction, or its EXEC */
    bool is_simple;    /* it needs nothing but its keys, and is in no transaction */
    bool has_written;  /* when it has run; so is: */
    bool is_cut;       /* the server ends, so it did not run to its end */
    const char *fault; /* STEP_BAD: the reason */
};

/* Owner: the worker's thread. While crew_run lends parts of a batch, other workers read it; nobody changes it then,
 * except for the blobs of steps. */
struct follow {
    struct worker *worker;
    struct follow_options options;
    struct client *client;
    char address[CONN_ADDRESS_TEXT_BYTES]; /* const: the master's, for monitors */
    /* The stream from the first command that is not applied: the caller's bytes, if none are kept from before, so that
     * whole commands are not copied. */
    char *data;
    size_t size;
    struct buffer bytes; /* what is kept; if not empty, `data` points into it */
    size_t parsed;       /* bytes of `data` that are steps */
    uint64_t applied_bytes;
    struct resp_parser parser;
    struct resp_limits limits;
    struct resp_scratch scratch;
    struct {
        struct step *items;
        uint32_t count, capacity;
    } steps; /* of the batch */
    struct key_list keys;
    struct batch batch;
    struct {
        struct journal_received *items;
        uint32_t count, capacity;
    } received;
    struct { /* commands that several workers run: those of part i are items[ends[i - 1]] ... items[ends[i] - 1] */
        uint32_t *items, count, capacity;
        uint32_t ends[CREW_PARTS_MOST];
        int64_t now_ms;
    } spread;
    unsigned db;         /* selected behind the last step */
    unsigned applied_db; /* behind the last that was applied */
    uint32_t whole;      /* steps before an open transaction */
    uint32_t journaled;  /* steps of the batch that the journal has */
    bool in_transaction;
    bool wants_ack;
    bool has_ended; /* a step is STEP_BAD, or the bytes are no commands */
    char error[256];
};

/* ----------------------------------------------------------------------------------------------- begin and end -- */

struct follow *follow_create(struct worker *worker, const struct follow_options *options)
{
    struct follow *follow = mem_alloc_zero(sizeof(*follow));

    worker_assert_outside(worker);
    assert(options->is_current != NULL);
    follow->worker = worker;
    follow->options = *options;
    snprintf(follow->address, sizeof(follow->address), "%s", options->address);
    follow->client = obeyed_client_create(worker, follow->address);
    follow->client->flags |= CLIENT_OF_MASTER;
    follow->limits = (struct resp_limits){.bulk_max_bytes = INT64_MAX / 4, .authenticated = true};
    resp_parser_init(&follow->parser, &follow->limits, &follow->scratch);
    batch_init(&follow->batch, worker, GATE_WISH_APPLY);
    follow->db = follow->applied_db = options->db;
    return follow;
}

void follow_destroy(struct follow **follow)
{
    struct follow *old = *follow;

    if (old == NULL)
        return;
    worker_assert_self(old->worker);
    *follow = NULL;
    batch_fini(&old->batch);
    resp_parser_fini(&old->parser);
    resp_scratch_fini(&old->scratch);
    obeyed_client_destroy(&old->client);
    buffer_fini(&old->bytes);
    key_list_fini(&old->keys);
    ARRAY_FINI(&old->steps);
    ARRAY_FINI(&old->received);
    ARRAY_FINI(&old->spread);
    mem_free(old);
}

bool follow_waits(const struct follow *follow)
{
    return follow->batch.state == BATCH_WAITS;
}

uint64_t follow_applied_bytes(const struct follow *follow)
{
    return follow->applied_bytes;
}

unsigned follow_db(const struct follow *follow)
{
    return follow->applied_db;
}

bool follow_wants_ack(struct follow *follow)
{
    bool wants = follow->wants_ack;

    follow->wants_ack = false;
    return wants;
}

const char *follow_error(const struct follow *follow)
{
    return follow->error;
}

/* ----------------------------------------------------------------------------------------------------- gathering -- */

static bool is_named(const struct command *command, const char *name)
{
    return slice_equal_text(command->full_name, name);
}

static void take_keys(struct follow *follow, struct step *step)
{
    step->first_key = follow->keys.count;
    step->key_count = key_list_add(&follow->keys, step->command, step->args, step->arg_count);
    for (uint32_t i = 0; i < step->key_count; i++)
        batch_add_key(&follow->batch, &follow->keys.items[step->first_key + i]);
}

static void refuse_database(struct follow *follow, struct step *step, uint64_t number)
{
    step->kind = STEP_BAD;
    snprintf(follow->error, sizeof(follow->error),
             "the master uses database %llu: this server needs at least `databases %llu`", (unsigned long long)number,
             (unsigned long long)number + 1);
    step->fault = follow->error;
}

static void take_select(struct follow *follow, struct step *step)
{
    const struct store *store = follow->worker->server->store;
    uint64_t number;

    step->kind = STEP_SHOWN;
    step->flags |= JOURNAL_SELECT;
    if (step->arg_count != 2 || !number_parse_u64(step->args[1], &number)) {
        step->kind = STEP_BAD;
        step->fault = "a SELECT without a number";
    } else if (number >= store->database_count) {
        refuse_database(follow, step, number);
    } else {
        follow->db = step->db = (unsigned)number;
    }
}

static void take_replconf(struct follow *follow, struct step *step)
{
    step->kind = STEP_NOTHING;
    step->flags |= JOURNAL_MESSAGE;
    if (step->arg_count >= 2 && slice_equal_text_nocase(step->args[1], "getack"))
        follow->wants_ack = true;
}

static void take_transaction(struct follow *follow, struct step *step, bool begins)
{
    step->kind = STEP_SHOWN;
    if (begins == follow->in_transaction) {
        step->kind = STEP_BAD;
        step->fault = begins ? "a MULTI inside of a transaction" : "an EXEC without MULTI";
        return;
    }
    step->flags = begins ? JOURNAL_BEGINS : JOURNAL_ENDS;
    step->ends_group = !begins;
    follow->in_transaction = begins;
}

/* A command that does not run: it is in the stream, but nothing happens, as on the master. */
static void take_unknown(struct follow *follow, struct step *step, const char *reason)
{
    char text[128];

    step->kind = STEP_NOTHING;
    snprintf(text, sizeof(text), "ERR %s", reason);
    if (follow->options.on_error != NULL)
        follow->options.on_error(step->args[0], slice_from_text(text), follow->applied_bytes + step->begin,
                                 follow->options.context);
}

static void take_command(struct follow *follow, struct step *step)
{
    const struct command *command = command_find(step->args[0]);

    if (LIKELY(command != NULL) && UNLIKELY(command->subcommand_count != 0) && step->arg_count > 1)
        command = command_find_subcommand(command, step->args[1]);
    step->command = command;
    if (UNLIKELY(command == NULL)) {
        take_unknown(follow, step, "unknown command");
    } else if (UNLIKELY((command->flags & (COMMAND_WRITE | COMMAND_READONLY)) == 0) && is_named(command, "select")) {
        take_select(follow, step);
    } else if (UNLIKELY(command->flags & COMMAND_NO_MULTI) || is_named(command, "multi") || is_named(command, "exec")) {
        if (is_named(command, "multi") || is_named(command, "exec"))
            take_transaction(follow, step, is_named(command, "multi"));
        else
            take_unknown(follow, step, "a command that does not belong into a stream");
    } else if (UNLIKELY(is_named(command, "ping"))) {
        step->kind = STEP_SHOWN;
        step->flags |= JOURNAL_MESSAGE;
    } else if (UNLIKELY(is_named(command, "replconf"))) {
        take_replconf(follow, step);
    } else if (UNLIKELY(!obeyed_belongs(command))) {
        take_unknown(follow, step, "a command that does not belong into a stream");
    } else if (UNLIKELY(!command_arity_fits(command, step->arg_count))) {
        take_unknown(follow, step, "wrong number of arguments");
    } else if (UNLIKELY(step->db >= follow->worker->server->store->database_count)) {
        refuse_database(follow, step, step->db); /* selected before the stream began, says the snapshot */
    } else {
        const enum access_class access = command_access(command, step->args, step->arg_count);

        if (LIKELY((command->flags & (COMMAND_WRITE | COMMAND_SCRIPT)) != 0))
            command_check_master_write();
        if (UNLIKELY(access == ACCESS_GATED))
            step->flags |= JOURNAL_MESSAGE;
        else if (UNLIKELY(access != ACCESS_STRIPED || (command->flags & COMMAND_SCRIPT) != 0))
            batch_need_gate(&follow->batch);
        take_keys(follow, step);
        step->is_simple = access == ACCESS_STRIPED && (command->flags & COMMAND_SCRIPT) == 0 && step->ends_group;
    }
}

static void take_step(struct follow *follow, const struct resp_command *words)
{
    struct step *step = ARRAY_PUSH(&follow->steps);

    *step = (struct step){.begin = follow->parsed,
                          .end = follow->parsed + words->consumed,
                          .args = words->args,
                          .arg_count = words->arg_count,
                          .db = follow->db,
                          .ends_group = !follow->in_transaction};
    follow->parsed = step->end;
    take_command(follow, step);
    if (step->ends_group) {
        if ((step->flags & (JOURNAL_BEGINS | JOURNAL_SELECT)) == 0)
            step->flags |= JOURNAL_ENDS;
        follow->whole = follow->steps.count;
    }
}

/* The steps of an open transaction stay while its bytes move. */
static void move_to(struct follow *follow, char *data)
{
    const ptrdiff_t moved = data - follow->data;

    follow->data = data;
    if (moved == 0)
        return;
    for (uint32_t i = 0; i < follow->steps.count; i++) {
        for (uint32_t k = 0; k < follow->steps.items[i].arg_count; k++)
            follow->steps.items[i].args[k].data += moved;
    }
    for (uint32_t i = 0; i < follow->keys.count; i++)
        follow->keys.items[i].name.data += moved;
}

static void append(struct follow *follow, char *data, size_t size)
{
    if (follow->bytes.size == 0) {
        follow->data = data;
        follow->size = size;
        return;
    }
    buffer_append(&follow->bytes, data, size);
    move_to(follow, follow->bytes.data);
    follow->size = follow->bytes.size;
}

static void forget_bytes(struct follow *follow)
{
    follow->data = NULL;
    follow->size = 0;
    buffer_clear(&follow->bytes);
    if (follow->bytes.capacity > (size_t)IDLE_BYTES)
        buffer_fini(&follow->bytes);
}

/* Keeps what is not applied. */
static void keep(struct follow *follow)
{
    if (follow->size == 0) {
        forget_bytes(follow);
        return;
    }
    if (follow->bytes.size != 0) {
        const size_t done = follow->bytes.size - follow->size;

        assert(follow->data == follow->bytes.data + done);
        buffer_consume(&follow->bytes, done);
    } else {
        buffer_append(&follow->bytes, follow->data, follow->size);
    }
    move_to(follow, follow->bytes.data);
}

static void end(struct follow *follow, const char *reason)
{
    follow->has_ended = true;
    if (reason != follow->error)
        snprintf(follow->error, sizeof(follow->error), "%s", reason);
}

static bool is_full(const struct follow *follow)
{
    return follow->whole >= FOLLOW_BATCH_COMMANDS ||
           (follow->whole != 0 && follow->parsed >= (size_t)FOLLOW_BATCH_BYTES);
}

/* Parses until a batch is full or the bytes end. */
static void gather(struct follow *follow)
{
    while (!follow->has_ended && !is_full(follow) && follow->parsed < follow->size) {
        char *data = follow->data + follow->parsed;
        struct resp_command words;

        if (resp_parser_is_idle(&follow->parser) && *data != '*') {
            end(follow, "something that is no array of bulk strings");
            return;
        }
        switch (resp_parse(&follow->parser, data, follow->size - follow->parsed, &words)) {
        case RESP_COMMAND:
            take_step(follow, &words);
            if (follow->steps.items[follow->steps.count - 1].kind == STEP_BAD) {
                end(follow, follow->steps.items[follow->steps.count - 1].fault);
                follow->whole = MIN(follow->whole, follow->steps.count - 1);
            }
            break;
        case RESP_MORE:
            return;
        case RESP_ERROR:
            snprintf(follow->error, sizeof(follow->error), "%.*s", (int)MIN(words.error.size, (size_t)200),
                     words.error.data);
            follow->has_ended = true;
            return;
        case RESP_EMPTY:
        case RESP_LARGE:
            end(follow, "an empty command");
            return;
        }
    }
}

/* ------------------------------------------------------------------------------------------------------ applying -- */

static COLD void tell_error(const struct follow *follow, const struct step *step, const struct output *reply)
{
    struct buffer text = {0};

    output_to_buffer(reply, &text);
    follow->options.on_error(step->args[0], buffer_slice(&text), follow->applied_bytes + step->begin,
                             follow->options.context);
    buffer_fini(&text);
}

/* If a key has got one of its arguments, the journal refers to the blob instead of copying it. */
static COLD void take_blob(const struct follow *follow, struct step *step, struct access *access)
{
    for (uint32_t i = 0; i < step->arg_count && access->stored.blob != NULL; i++) {
        if (access_stored_blob(access, step->args[i]) == NULL)
            continue;
        step->blob.position = (size_t)(step->args[i].data - (follow->data + step->begin));
        step->blob.blob = access->stored.blob;
        access->stored.blob = NULL;
    }
    access_forget_stored(access);
}

/* In the thread of this worker: the stream's own, or one of the crew. */
static void run_step(const struct follow *follow, struct step *step, struct worker *worker, struct client *client,
                     int64_t now_ms, bool exclusive)
{
    struct access *access = &worker->run.access;
    struct request request;

    access_begin(access, follow->options.is_own ? run_time_now(worker) : now_ms, exclusive);
    if (LIKELY(!follow->options.is_own))
        access_follow(access);
    access->no_touch = false;
    access->effects = follow->options.is_own ? &worker->run.effects : NULL;
    access->notes_stored = access->effects == NULL && journal_is_on(&worker->server->journal);
    client->db = step->db;
    request_init(&request, worker, client, step->command, step->args, step->arg_count, &worker->sink);
    if (step->key_count != 0)
        request_set_keys(&request, &follow->keys.items[step->first_key], step->key_count);
    request.in_exec = true;
    if (UNLIKELY(follow->options.is_own))
        dispatch_begin_own(&request, step->ends_group);
    dispatch_run_obeyed(&request);
    access->notes_stored = false;
    if (UNLIKELY(access->stored.blob != NULL))
        take_blob(follow, step, access);
    if (access->dirty != 0)
        counter_add(&access->counters->dirty, access->dirty);
    step->has_written = access->dirty != 0;
    step->is_cut = request.is_cut;
    if (UNLIKELY(request.failed) && !step->is_cut && follow->options.on_error != NULL)
        tell_error(follow, step, &worker->sink);
    output_clear(&worker->sink);
}

static void show_step(const struct follow *follow, const struct step *step)
{
    struct worker *worker = follow->worker;
    struct request request;

    if (!monitor_is_on())
        return;
    follow->client->db = step->db;
    request_init(&request, worker, follow->client, step->command, step->args, step->arg_count, &worker->sink);
    monitor_note_first(&request);
}

static void prefetch(struct follow *follow, uint32_t from)
{
    const struct store *store = follow->worker->server->store;
    const uint32_t end = MIN(from + PREFETCH_COMMANDS, follow->whole);
    uint32_t first = UINT32_MAX, last = 0;

    for (uint32_t i = from; i < end; i++) {
        const struct step *step = &follow->steps.items[i];

        if (step->key_count == 0 || step->db != 0)
            continue;
        first = MIN(first, step->first_key);
        last = step->first_key + step->key_count;
    }
    if (last > first)
        store_prefetch(store, &follow->keys.items[first], last - first);
}

/* The steps before `end` that it does not have; they have run. */
static void append_to_journal(struct follow *follow, uint32_t end)
{
    struct worker *worker = follow->worker;
    struct journal *journal = &worker->server->journal;
    const uint32_t first = follow->journaled;

    follow->journaled = end;
    if (!journal_is_on(journal) || first == end || follow->options.is_own)
        return;
    follow->received.count = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct step *step = &follow->steps.items[i];

        *ARRAY_PUSH(&follow->received) = (struct journal_received){.bytes = slice_make(follow->data + step->begin,
                                                                                       step->end - step->begin),
                                                                   .blobs = &step->blob,
                                                                   .blob_count = step->blob.blob != NULL,
                                                                   .db = step->db,
                                                                   .flags = step->flags};
    }
    (void)journal_append_received(journal, follow->received.items, follow->received.count);
    for (uint32_t i = first; i < end; i++)
        blob_release(&follow->steps.items[i].blob.blob);
    worker->has_journaled = true;
    worker_at_turn_end(worker);
}

/* The steps before `end` have run, and no transaction is open. What clients of this server get of it changes the data,
 * too: in the journal that is behind what gave it to them. */
static void settle(struct follow *follow, uint32_t end)
{
    struct worker *worker = follow->worker;
    struct access *access = &worker->run.access;

    if (follow->options.is_own) {
        dispatch_end_own(worker);
        access->effects = NULL;
        return;
    }
    if (waiters_are_ready(access) && journal_is_on(&worker->server->journal)) {
        append_to_journal(follow, end);
        access->effects = &worker->run.effects;
    }
    dispatch_settle_access(access);
    access->effects = NULL;
}

/* --- by several workers: the gate is owned --- */

static void prefetch_spread(const struct follow *follow, uint32_t first, uint32_t end)
{
    struct key keys[PREFETCH_COMMANDS];
    uint32_t count = 0;

    for (uint32_t i = first; i < end; i++) {
        const struct step *step = &follow->steps.items[follow->spread.items[i]];

        if (step->db == 0 && step->key_count != 0)
            keys[count++] = follow->keys.items[step->first_key];
    }
    store_prefetch(follow->worker->server->store, keys, count);
}

static void run_part(struct worker *worker, uint32_t part, void *context)
{
    const struct follow *follow = context;
    const uint32_t end = follow->spread.ends[part];
    struct client *client = worker == follow->worker ? follow->client : obeyed_client_create(worker, NULL);

    for (uint32_t i = part == 0 ? 0 : follow->spread.ends[part - 1]; i < end; i++) {
        if (i % PREFETCH_COMMANDS == 0)
            prefetch_spread(follow, i, MIN(i + PREFETCH_COMMANDS, end));
        run_step(follow, &follow->steps.items[follow->spread.items[i]], worker, client, follow->spread.now_ms, true);
    }
    if (worker->run.access.has_noted) /* for those who began to listen meanwhile */
        dispatch_settle_access(&worker->run.access);
    if (client != follow->client)
        obeyed_client_destroy(&client);
}

/* Listeners and waiting clients see events in the order of the stream: with them one worker does it alone. */
static bool may_spread(const struct follow *follow)
{
    const struct store *store = follow->worker->server->store;

    return !follow->options.is_own && follow->worker->server->worker_count > 1 && store_observed(store) == 0 &&
           !monitor_is_on() && atomic_load_explicit(&store->waited_count, memory_order_relaxed) == 0;
}

static uint32_t part_of(const struct follow *follow, const struct step *step, uint32_t part_count)
{
    const struct access *access = &follow->worker->run.access;
    uint32_t part = NO_PART;

    if (!step->is_simple)
        return NO_PART;
    for (uint32_t i = 0; i < step->key_count; i++) {
        uint32_t its = access_stripe_of(access, &follow->keys.items[step->first_key + i]) % part_count;

        if (part != NO_PART && its != part)
            return NO_PART;
        part = its;
    }
    return part;
}

/* Returns the end of the steps from `first` on that can be run in any order between parts. */
static uint32_t find_spread(struct follow *follow, uint32_t first, uint32_t part_count)
{
    uint32_t end = first;

    for (; end < follow->whole; end++) {
        struct step *step = &follow->steps.items[end];

        if (step->kind != STEP_RUN)
            continue;
        step->part = part_of(follow, step, part_count);
        if (step->part == NO_PART)
            break;
    }
    return end;
}

static void run_spread(struct follow *follow, uint32_t first, uint32_t end, uint32_t part_count)
{
    uint32_t *ends = follow->spread.ends, total = 0;

    memset(ends, 0, part_count * sizeof(*ends));
    follow->spread.count = 0;
    ARRAY_RESERVE(&follow->spread, end - first);
    for (uint32_t i = first; i < end; i++) {
        if (follow->steps.items[i].kind == STEP_RUN)
            ends[follow->steps.items[i].part]++;
    }
    for (uint32_t i = 0; i < part_count; i++) { /* where each part begins; filling it moves that to its end */
        uint32_t count = ends[i];

        ends[i] = total;
        total += count;
    }
    for (uint32_t i = first; i < end; i++) {
        if (follow->steps.items[i].kind == STEP_RUN)
            follow->spread.items[ends[follow->steps.items[i].part]++] = i;
    }
    crew_run(follow->worker, part_count, run_part, follow);
}

/* The last step that has run was cut, as the server ends. Nobody continues from here: the data is that of no offset if
 * the steps from `first` on, of one transaction, have written something. */
static COLD void give_up_group(struct follow *follow, uint32_t first, uint32_t end_index)
{
    bool has_written = false;

    gate_assert_alone(); /* it is a script */
    append_to_journal(follow, first);
    for (uint32_t i = first; i < end_index; i++) {
        has_written = has_written || follow->steps.items[i].has_written;
        blob_release(&follow->steps.items[i].blob.blob);
    }
    dispatch_settle_access(&follow->worker->run.access);
    if (has_written && follow->options.on_torn != NULL)
        follow->options.on_torn(follow->options.context);
    follow->whole = first;
    end(follow, "the server ends in the middle of a script");
}

/* What the batch needs is held. */
static void apply(struct follow *follow, bool exclusive)
{
    struct worker *worker = follow->worker;
    struct access *access = &worker->run.access;
    const int64_t now_ms = worker_now_ms(worker);
    const uint32_t part_count = MIN(worker->server->worker_count, (uint32_t)CREW_PARTS_MOST);
    const bool spreads = exclusive && follow->whole >= SPREAD_LEAST && may_spread(follow);
    uint32_t looked = 0; /* steps before it are in no spread that is worth it */
    uint32_t group = 0;  /* where the transaction begins */

    worker_assert_inside(worker);
    follow->spread.now_ms = now_ms;
    follow->journaled = 0;
    for (uint32_t i = 0; i < follow->whole;) {
        struct step *step = &follow->steps.items[i];

        if (spreads && i >= looked) {
            looked = find_spread(follow, i, part_count);
            if (looked - i >= SPREAD_LEAST) {
                run_spread(follow, i, looked, part_count);
                i = group = looked;
                continue;
            }
            looked++;
        }
        if (i % PREFETCH_COMMANDS == 0)
            prefetch(follow, i);
        if (LIKELY(step->kind == STEP_RUN))
            run_step(follow, step, worker, follow->client, now_ms, exclusive);
        else if (step->kind == STEP_SHOWN)
            show_step(follow, step);
        if (UNLIKELY(step->is_cut)) {
            give_up_group(follow, group, i + 1);
            return;
        }
        if (step->ends_group && (waiters_are_ready(access) || access->has_noted || follow->options.is_own))
            settle(follow, i + 1);
        i++;
        group = step->ends_group ? i : group;
    }
    append_to_journal(follow, follow->whole);
}

/* The batch is done: what is behind it, an open transaction or an incomplete command, is the first. */
static void forget_batch(struct follow *follow)
{
    const struct step *last = &follow->steps.items[follow->whole - 1];
    const size_t done = last->end;

    follow->applied_bytes += done;
    follow->applied_db = last->db;
    if (follow->steps.count != follow->whole) {
        /* Parsed again: this happens once for each open transaction. */
        follow->db = follow->applied_db;
        follow->in_transaction = false;
        resp_parser_fini(&follow->parser);
        follow->parsed = done;
    }
    follow->data += done;
    follow->size -= done;
    follow->parsed -= done;
    follow->steps.count = follow->whole = 0;
    follow->keys.count = 0;
    batch_clear(&follow->batch);
    resp_scratch_reset(&follow->scratch);
}

/* With the gate several workers can share it. */
static bool prefers_gate(const struct follow *follow)
{
    return follow->whole >= SPREAD_LEAST && may_spread(follow);
}

static enum follow_result run_batches(struct follow *follow)
{
    struct worker *worker = follow->worker;

    worker_assert_outside(worker);
    for (;;) {
        enum batch_state taken;
        bool is_current;

        gather(follow);
        if (follow->whole == 0)
            return follow->has_ended ? FOLLOW_BROKEN : FOLLOW_DONE;
        taken = batch_take(&follow->batch, prefers_gate(follow));
        if (taken == BATCH_WAITS)
            return FOLLOW_WAIT;
        is_current = follow->options.is_current(follow->options.context);
        if (is_current)
            apply(follow, taken == BATCH_ALONE);
        batch_release(&follow->batch);
        if (!is_current)
            return FOLLOW_OVER;
        if (UNLIKELY(follow->whole == 0)) /* its first step was cut */
            return FOLLOW_BROKEN;
        forget_batch(follow);
        if (worker->has_deferred)
            worker_run_deferred(worker);
    }
}

enum follow_result follow_take(struct follow *follow, char *data, size_t size, size_t *used)
{
    enum follow_result result;

    worker_assert_outside(follow->worker);
    assert(!follow_waits(follow));
    append(follow, data, size);
    result = run_batches(follow);
    *used = size;
    if (result == FOLLOW_DONE && follow->steps.count == 0 && follow->size <= MIN(size, (size_t)LEFT_MOST)) {
        *used -= follow->size; /* the parser knows how far it was */
        forget_bytes(follow);
    } else {
        keep(follow);
    }
    return result;
}

enum follow_result follow_go_on(struct follow *follow)
{
    enum follow_result result;

    worker_assert_outside(follow->worker);
    result = run_batches(follow);
    keep(follow);
    return result;
}
