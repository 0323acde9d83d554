/* A chunk of input becomes jobs, up to eight at a time:
 *
 *     parse (independent of the client's state) -> group -> gate, stripes -> prefetch -> run each -> release
 *
 * Neighbouring commands that only need the stripes of their keys run under one set of locks. All other commands run
 * alone, in order. A job that cannot have what it needs is parked (parking.h). */
#include "server/run/dispatch.h"

#include "base/log.h"
#include "base/mem.h"
#include "server/acl/acl_client.h"
#include "server/command/operation.h"
#include "server/config/command_block.h"
#include "server/config/options.h"
#include "server/core/client.h"
#include "server/core/exclusive.h"
#include "server/core/deliveries.h"
#include "server/core/lifecycle.h"
#include "server/core/role.h"
#include "server/core/run_time.h"
#include "server/core/server.h"
#include "server/core/stats_info.h"
#include "server/durable/loading.h"
#include "server/memory/memory_limit.h"
#include "server/observe/command_log.h"
#include "server/observe/hotkeys.h"
#include "server/observe/timing.h"
#include "server/pubsub/monitor.h"
#include "server/pubsub/telling.h"
#include "server/pubsub/tracking.h"
#include "server/run/blocked.h"
#include "server/run/busy.h"
#include "server/run/large_bulk.h"
#include "server/run/dispatch_priv.h"
#include "server/run/migrate.h"
#include "server/run/parking.h"
#include "server/run/pause.h"
#include "server/run/command_check.h"
#include "server/core/transaction.h"
#include "server/tls/tls_peers.h"
#include "store/undo.h"
#include "store/waiters.h"
#include "store/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TURN_SPINS = 2000, /* about 50 us: more than most scripts take */
    PREFETCH_MOST = 16 /* keys of a group */
};

/* ------------------------------------------------------------------------------------------------------ parsing -- */

static inline void prefetch_stripe(const struct worker *worker, const struct key *key)
{
    __builtin_prefetch(&worker->server->store->stripes[access_stripe_of(&worker->run.access, key)], 1);
}

/* Finds the command of a job, checks its name and arity, and determines its access. */
static void job_prepare(struct worker *worker, struct job *job)
{
    const struct command *command = command_find(job->words.args[0]);

    job->command = command;
    job->fault = FAULT_NONE;
    job->access = ACCESS_FREE;
    job->key_count = 0;
    if (UNLIKELY(command == NULL)) {
        job->fault = FAULT_UNKNOWN;
        return;
    }
    if (UNLIKELY(command->subcommand_count != 0) && job->words.arg_count > 1) {
        command = command_find_subcommand(command, job->words.args[1]);
        if (command == NULL) {
            job->fault = FAULT_UNKNOWN_SUBCOMMAND;
            return;
        }
        job->command = command;
    }
    if (UNLIKELY(!command_arity_fits(command, job->words.arg_count))) {
        job->fault = FAULT_ARITY;
        return;
    }
    if (resp_command_lacks(&job->words)) {
        job->fault = FAULT_NO_MEMORY;
        return;
    }
    job->access = command_access(command, job->words.args, job->words.arg_count);
    if (LIKELY(job->access == ACCESS_STRIPED && command->simple_keys && command->first_key == command->last_key)) {
        struct key *key = ARRAY_PUSH(&worker->run.keys);

        *key = key_make(job->words.args[command->first_key]);
        prefetch_stripe(worker, key);
        job->first_key = worker->run.keys.count - 1;
        job->key_count = 1;
    } else {
        job->first_key = worker->run.keys.count;
        job->key_count = key_list_add(&worker->run.keys, command, job->words.args, job->words.arg_count);
    }
}

/* ------------------------------------------------------------------------------------------------ locks to take -- */

static void stripes_add(struct worker *worker, uint32_t stripe)
{
    *ARRAY_PUSH(&worker->run.stripes) = stripe;
}

static int compare_stripes(const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;

    return (first > second) - (first < second);
}

/* Ascending, each once. */
static NOINLINE void stripes_arrange(struct worker *worker)
{
    uint32_t *stripes = worker->run.stripes.items, count = worker->run.stripes.count, kept = 0;

    if (count <= 16) {
        for (uint32_t i = 1; i < count; i++) {
            uint32_t stripe = stripes[i], k = i;

            for (; k > 0 && stripes[k - 1] > stripe; k--)
                stripes[k] = stripes[k - 1];
            stripes[k] = stripe;
        }
    } else {
        qsort(stripes, count, sizeof(uint32_t), compare_stripes);
    }
    for (uint32_t i = 1; i < count; i++) {
        if (stripes[i] != stripes[kept])
            stripes[++kept] = stripes[i];
    }
    worker->run.stripes.count = kept + 1;
}

static ALWAYS_INLINE void stripes_of_keys(struct worker *worker, const struct key *keys, uint32_t key_count)
{
    for (uint32_t i = 0; i < key_count; i++)
        stripes_add(worker, access_stripe_of(&worker->run.access, &keys[i]));
}

static void stripes_of_queued(const struct key *keys, uint32_t key_count, void *context)
{
    stripes_of_keys(context, keys, key_count);
}

static void add_watched_stripe(uint32_t stripe, void *context)
{
    stripes_add(context, stripe);
}

/* RUN_BUSY comes from here alone: parking looks for the stripe by which it is to be woken. As stripe_wait. */
static must_check bool wait_for(struct worker *worker, struct stripe *stripe)
{
    worker->busy_stripe = stripe;
    return stripe_wait(stripe, worker->index);
}

/* Takes the stripes of the execution, inside the gate. False: parked threads will be woken, ask again then. */
static bool stripes_lock(struct worker *worker, bool wait)
{
    uint32_t busy = 0;

    if (worker->run.stripes.count > 1)
        stripes_arrange(worker);
    while (!access_lock(&worker->run.access, worker->run.stripes.items, worker->run.stripes.count, &busy)) {
        if (!wait || wait_for(worker, &worker->server->store->stripes[busy]))
            return false;
    }
    return true;
}

/* One bit for each stripe: those in worker->run.stripes.items. */
struct need_search {
    struct worker *worker;
    uint64_t known[STORE_STRIPES_MOST / 64];
};

static bool note_stripe(struct need_search *search, uint32_t stripe)
{
    const uint64_t bit = UINT64_C(1) << stripe % 64;
    const bool is_new = (search->known[stripe / 64] & bit) == 0;

    search->known[stripe / 64] |= bit;
    return is_new;
}

static void add_need(uint32_t stripe, void *context)
{
    struct need_search *search = context;

    if (note_stripe(search, stripe))
        stripes_add(search->worker, stripe);
}

/* The stripes of the execution are held. If serving a waiting client needs other stripes, they are added, and all are
 * released in order to be taken together. Added stripes stay, so this ends, however long the chain. */
static bool stripes_add_needs(struct worker *worker)
{
    const struct store *store = worker->server->store;
    const uint32_t held_count = worker->run.stripes.count;
    struct need_search search;

    search.worker = worker;
    memset(search.known, 0, (store->stripe_mask / 64 + 1) * sizeof(*search.known));
    for (uint32_t i = 0; i < held_count; i++)
        (void)note_stripe(&search, worker->run.stripes.items[i]);
    for (uint32_t i = 0; i < held_count; i++)
        waiters_each_need(&store->stripes[worker->run.stripes.items[i]], add_need, &search);
    if (worker->run.stripes.count == held_count)
        return false;
    access_unlock(&worker->run.access, worker->run.stripes.items, held_count);
    return true;
}

/* ------------------------------------------------------------------------------------------------------ running -- */

/* Counts a call that began at `start`, and looks at those who want to know of it; returns its end. */
static ALWAYS_INLINE uint64_t measure(const struct request *request, uint64_t start)
{
    struct worker *worker = request->worker;
    const uint32_t id = request->command->id;
    const uint64_t end = tick_now(), span = end - start;

    if (UNLIKELY(span >= atomic_load_explicit(&timing_attention, memory_order_relaxed)))
        timing_attend(request, span);
    else
        histogram_add(&worker->stats.times[id].ticks, span);
    if (UNLIKELY(request->failed))
        counter_add(&worker->stats.failed_calls[id], 1);
    return end;
}

/* Runs a command whose time began at `start`; returns its end. */
static ALWAYS_INLINE uint64_t execute(struct request *request, uint64_t start)
{
    struct access *access = request->access;
    struct worker *worker = request->worker;
    const struct request *outer = worker->run.running;
    uint64_t dirty = access->dirty;

    debug_assert(command_arity_fits(request->command, request->arg_count));
    worker->run.running = request;
    request->command->run(request);
    worker->run.running = outer;
    if (access->dirty != dirty && !request->in_exec) /* EXEC counts for all of its own */
        counter_add(&access->counters->dirty, access->dirty - dirty);
    if (UNLIKELY(access->effects != NULL)) {
        if (access->dirty != dirty && request->effect == EFFECT_OWN_WORDS)
            effect_add_own(request);
        effects_end_command(access->effects, request->has_operations);
        access_forget_stored(access);
    }
    if (UNLIKELY(request->blocked)) {
        if (!request->again)
            timing_note_waiting(worker, request->command);
        return tick_now();
    }
    return measure(request, start);
}

/* It ran from `start` to `end`, and its reply begins behind `before` bytes of output. What CLIENT REPLY drops is no
 * reply. */
static NOINLINE COLD void tell_sizes(const struct request *request, size_t before, uint64_t start, uint64_t end)
{
    const size_t size = output_size(request->out);
    const bool has_reply = !request->blocked && request->out != &request->worker->sink;
    const uint64_t reply_bytes = has_reply && size > before ? size - before : 0;

    if (request->again)
        return;
    command_log_tell_request(request);
    if (has_reply)
        command_log_tell_reply(request, reply_bytes);
    if (hotkeys_is_active())
        hotkeys_note(request, start, end, command_log_request_bytes(request) + reply_bytes);
}

/* The same for a command of a client, not of a script: it is told of if it or its reply is large. request_bytes: at
 * least those of its array of bulk strings. */
static ALWAYS_INLINE uint64_t execute_sized(struct request *request, uint64_t start, size_t request_bytes)
{
    const size_t before = output_size(request->out);
    const uint64_t end = execute(request, start);

    if (UNLIKELY(command_log_may_take(request_bytes, output_size(request->out) - before)))
        tell_sizes(request, before, start, end);
    return end;
}

/* At least what arguments of so many bytes take as an array of bulk strings. */
static inline size_t array_most_bytes(size_t args_bytes, uint32_t arg_count)
{
    static_assert(RESP_HEADER_BYTES + 2 <= 32, "headers and ends of line are more");
    return args_bytes + (((size_t)arg_count + 1) << 5);
}

size_t dispatch_query_bytes(const struct request *request)
{
    const struct job *jobs = request->worker->run.jobs;

    worker_assert_self(request->worker);
    for (unsigned i = 0; i < GROUP_MOST; i++) {
        if (jobs[i].words.args == request->args)
            return jobs[i].words.consumed;
    }
    return 0;
}

/* What a master follows is not stamped here: it has no peers. */
static bool is_stamping(const struct worker *worker)
{
    return UNLIKELY(journal_is_stamping(&worker->server->journal)) && !role_follows();
}

static NOINLINE void end_stamped_group_slow(struct worker *worker)
{
    if (!role_follows()) {
        changed_end_group(&worker->run.changed, &worker->run.access, &worker->run.effects, worker->run.access.now_ms);
        return;
    }
    changed_clear(&worker->run.changed, &worker->run.access);
    if (undo_is_recording(&worker->run.access)) /* it has become a replica just now */
        undo_end(&worker->run.access);
}

/* What clients do from here on can be taken back, until the group ends. */
static NOINLINE void record_undo(struct worker *worker)
{
    if (!role_follows() && !undo_is_recording(&worker->run.access))
        undo_begin(&worker->run.access);
}

/* What overwrites its keys is never taken back. */
static NOINLINE void begin_stamped(const struct request *request)
{
    assert(!undo_is_recording(request->access)); /* other threads have changed keys since */
    changed_begin_own(&request->worker->run.changed, request->keys, request->key_count);
    if ((request->command->flags & COMMAND_READONLY) != 0)
        return;
    if (request->command->operation_kind != 0 &&
        operation_overwrites(request->command, request->args, request->arg_count))
        return;
    record_undo(request->worker);
}

/* The command's keys and effects so far are those of one stamp. */
static ALWAYS_INLINE void end_stamped_group(struct worker *worker)
{
    if (UNLIKELY(journal_is_stamping(&worker->server->journal)))
        end_stamped_group_slow(worker);
}

static NOINLINE uint64_t append_stamped(struct worker *worker)
{
    struct execution *run = &worker->run;

    end_stamped_group(worker);
    return changed_append(&run->changed, &run->access, &worker->server->journal, &run->effects);
}

uint64_t dispatch_journal(struct worker *worker)
{
    uint64_t offset;

    if (LIKELY(worker->run.effects.count == 0))
        return 0;
    worker_assert_inside(worker);   /* a thread that is alone may remove readers */
    if (UNLIKELY(role_follows())) { /* what happens here besides the master's stream is local */
        effects_keep_local(&worker->run.effects);
        if (worker->run.effects.count == 0)
            return 0;
    }
    if (is_stamping(worker))
        offset = append_stamped(worker);
    else
        offset = journal_append(&worker->server->journal, &worker->run.effects, false);
    worker->has_journaled = true;
    worker_at_turn_end(worker);
    effects_clear(&worker->run.effects);
    return offset;
}

static ALWAYS_INLINE void journal_for(struct worker *worker, struct client *client)
{
    const uint64_t offset = dispatch_journal(worker);

    if (UNLIKELY(offset != 0) && LIKELY(client != NULL))
        client->written_offset = offset;
}

/* For one command of the client (NULL: of none); notes are posted once for all commands that hold the same stripes. */
static void settle_command(struct worker *worker, struct client *client)
{
    end_stamped_group(worker);
    journal_for(worker, client);
    if (waiters_are_ready(&worker->run.access)) {
        if (UNLIKELY(journal_is_stamping(&worker->server->journal)))
            record_undo(worker);
        blocked_serve(worker);
        end_stamped_group(worker); /* of a command that was looked at, and found nothing */
    }
}

/* Only clients that wait are urgent: effects are appended for the whole group, which holds its stripes that long. */
static void settle_in_group(struct worker *worker, struct client *client)
{
    if (waiters_are_ready(&worker->run.access)) {
        settle_command(worker, client);
        return;
    }
    end_stamped_group(worker);
    effects_end_group(&worker->run.effects);
}

void dispatch_settle_access(struct access *access)
{
    struct worker *worker = container_of(access, struct worker, run.access);
    const bool records = undo_is_recording(access);

    worker_assert_inside(worker);
    settle_command(worker, worker->run.running != NULL ? worker->run.running->client : NULL);
    telling_noted(worker);
    if (UNLIKELY(records)) /* in the middle of a command */
        record_undo(worker);
}

void dispatch_begin_own(const struct request *request, bool is_alone)
{
    worker_assert_inside(request->worker);
    if (!is_stamping(request->worker))
        return;
    if (is_alone)
        begin_stamped(request);
    else
        record_undo(request->worker);
}

void dispatch_end_own(struct worker *worker)
{
    struct access *access = &worker->run.access;

    worker_assert_inside(worker);
    settle_command(worker, NULL);
    telling_noted(worker);
    if (undo_is_recording(access))
        undo_end(access);
}

static COLD void after_tracked(const struct request *request)
{
    tracking_note_read(request);
    tracking_command_over(request->client, request->command);
}

static ALWAYS_INLINE void begin_request(struct request *request, struct client *client, const struct job *job,
                                        const struct key *keys, bool exclusive, uint64_t start)
{
    struct worker *worker = client->worker;
    struct access *access = &worker->run.access;

    access_begin(access, run_time_at(worker, start), exclusive);
    access->no_touch = (client->flags & CLIENT_NO_TOUCH) != 0;
    if (UNLIKELY((client->flags & CLIENT_IMPORT_SOURCE) != 0) && store_is_importing(access->store) && !role_follows())
        access_follow(access);
    access->effects = NULL;
    dispatch_request_init(request, client, job, keys);
    if (UNLIKELY(journal_is_on(&worker->server->journal))) {
        access->effects = &worker->run.effects;
        if (UNLIKELY(journal_is_stamping(&worker->server->journal)))
            begin_stamped(request);
    }
}

/* Journals its effect and serves clients that waited for it. */
static ALWAYS_INLINE void finish_request(const struct request *request, bool in_group)
{
    struct client *client = request->client;

    if (UNLIKELY((client->flags & CLIENT_TRACKING) != 0))
        after_tracked(request);
    if (UNLIKELY(request->access->effects != NULL) || waiters_are_ready(request->access)) {
        if (in_group)
            settle_in_group(client->worker, client);
        else
            settle_command(client->worker, client);
    }
    dispatch_after_reply(client);
}

/* Runs one command with the locks held. It began at `start`, when it had its locks: that is the time for it and for all
 * commands within it. Returns its end. */
static uint64_t run_command_since(struct client *client, const struct job *job, const struct key *keys, bool exclusive,
                                  uint64_t start, bool in_group)
{
    struct request request;

    begin_request(&request, client, job, keys, exclusive, start);
    start = execute_sized(&request, start, array_most_bytes(job->words.size_bytes, job->words.arg_count));
    finish_request(&request, in_group);
    return start;
}

/* Counts the commands of a group up to the last one, and the nested ones, with their total time in ticks. */
static ALWAYS_INLINE void count_commands(struct client *client, const struct job *last, uint64_t count, uint64_t ticks)
{
    counter_add(&client->worker->stats.commands_processed, count);
    counter_add(&client->worker->stats.command_ticks, ticks);
    counter_add(&client->card.command_count, count);
    atomic_store_explicit(&client->card.command_id, last->command->id, memory_order_relaxed);
}

static void run_command(struct client *client, const struct job *job, const struct key *keys, bool exclusive)
{
    const uint64_t start = tick_now();
    const uint64_t end = run_command_since(client, job, keys, exclusive, start, false);

    telling_noted(client->worker);
    count_commands(client, job, 1, end - start);
}

static size_t bytes_of(const struct slice *args, uint32_t arg_count)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < arg_count; i++)
        bytes += args[i].size;
    return bytes;
}

void dispatch_run_nested(struct request *outer, const struct command *command, const struct slice *args,
                         uint32_t arg_count, const struct key *keys, uint32_t key_count,
                         const struct resp_blob_arg *blobs, uint32_t blob_count)
{
    struct request request;

    worker_assert_inside(outer->worker);
    assert(command_arity_fits(command, arg_count));
    request_init(&request, outer->worker, outer->client, command, args, arg_count,
                 dispatch_output_of(outer->client)); /* a reply of CLIENT REPLY may precede it */
    request_set_keys(&request, keys, key_count);
    request_set_blobs(&request, blobs, blob_count);
    request.in_exec = true;
    (void)execute_sized(&request, tick_now(), array_most_bytes(bytes_of(args, arg_count), arg_count));
    if (UNLIKELY((request.client->flags & CLIENT_TRACKING) != 0))
        tracking_note_read(&request);
    counter_add(&outer->worker->stats.commands_processed, 1);
    counter_add(&outer->client->card.command_count, 1);
}

void dispatch_call(struct request *outer, const struct nested_call *call)
{
    struct request request;

    worker_assert_inside(outer->worker);
    assert(command_arity_fits(call->command, call->arg_count));
    request_init(&request, outer->worker, outer->client, call->command, call->args, call->arg_count, call->out);
    request_set_keys(&request, call->keys, call->key_count);
    request.in_exec = true;
    request.in_script = call->by_script;
    outer->access->found_key = NULL; /* these keys may be in the same memory as those of the last call */
    (void)execute(&request, tick_now());
    counter_add(&outer->worker->stats.commands_processed, 1);
    if (UNLIKELY((request.client->flags & CLIENT_TRACKING) != 0))
        tracking_note_script_read(outer, &request);
}

void dispatch_run_obeyed(struct request *request)
{
    worker_assert_inside(request->worker);
    assert(request->in_exec && command_arity_fits(request->command, request->arg_count));
    (void)execute(request, tick_now());
    counter_add(&request->worker->stats.commands_processed, 1);
}

/* ---------------------------------------------------------------------------------------------- turn of scripts -- */

enum turn { TURN_NONE, TURN_ALONE, TURN_BESIDE };

/* The turn that the command takes. Debugging needs to be alone. */
static enum turn turn_of(const struct client *client, const struct job *job)
{
    const struct command *command = job->command;

    if ((command->flags & COMMAND_SCRIPT) != 0) {
        return (client->flags & CLIENT_SCRIPT_DEBUG) == 0 && command->row->keeps_to_keys != NULL &&
                       command->row->keeps_to_keys(job->words.args, job->words.arg_count)
                   ? TURN_BESIDE
                   : TURN_ALONE;
    }
    return command->row->access == ACCESS_TRANSACTION && client->transaction != NULL &&
                   (transaction_flags(client->transaction) & COMMAND_SCRIPT) != 0
               ? TURN_ALONE
               : TURN_NONE;
}

static bool turn_try(struct worker *worker, enum turn kind)
{
    struct server *server = worker->server;
    const unsigned spins = stripe_has_waiter(&server->script_turn.alone, worker->index) ? 1 : TURN_SPINS;

    if (kind == TURN_BESIDE)
        return script_turn_join(&server->script_turn, server->store, busy_is_on(), spins);
    return script_turn_take(&server->script_turn, server->store, spins);
}

/* False: others have the turn; we will be woken. */
static bool turn_take(struct worker *worker, enum turn kind)
{
    struct script_turn *turn = &worker->server->script_turn;

    while (!turn_try(worker, kind)) {
        worker->busy_stripe = &turn->alone;
        worker->is_outnumbered = kind == TURN_ALONE && script_turn_is_shared(turn);
        if (script_turn_wait(turn, worker->index))
            return false;
    }
    assert(!worker->run.access.is_script && !worker->escalated);
    worker->run.access.is_script = true;
    spinlock_excuse_stripes(true);
    return true;
}

static void turn_give(struct worker *worker, enum turn kind)
{
    struct server *server = worker->server;

    assert(worker->run.access.is_script);
    if (worker->escalated) {
        assert(kind == TURN_ALONE);
        worker->escalated = false;
        gate_descend(&worker->member);
    }
    if (kind == TURN_BESIDE)
        script_turn_leave(&server->script_turn, server->store);
    else
        script_turn_give(&server->script_turn, server->store);
    spinlock_excuse_stripes(false);
    worker->run.access.is_script = false;
}

bool dispatch_may_escalate(const struct worker *worker)
{
    return worker->run.access.exclusive || script_turn_is_mine(&worker->server->script_turn);
}

void dispatch_escalate(struct worker *worker)
{
    worker_assert_inside(worker);
    if (worker->run.access.exclusive)
        return;
    assert(worker->run.access.is_script && !worker->escalated);
    assert(script_turn_is_mine(&worker->server->script_turn)); /* else two would wait for each other */
    gate_escalate(&worker->member);
    worker->escalated = true;
    worker->run.access.exclusive = true;
}

/* ---------------------------------------------------------------------------------------------------- one alone -- */

static enum run_result run_exclusive(struct client *client, const struct job *job, const struct key *keys)
{
    struct worker *worker = client->worker;
    const bool tracks = (client->flags & CLIENT_TRACKING) != 0;
    struct reply_place place;

    if (!exclusive_own_gate(worker))
        return RUN_ASKED;
    if (!dispatch_check_holds(worker)) {
        exclusive_end(worker);
        return RUN_UNCHECKED;
    }
    if (UNLIKELY(tracks))
        reply_place_take(&place, client);
    run_command(client, job, keys, true);
    exclusive_end(worker);
    if (UNLIKELY(tracks))
        reply_place_close(&place);
    return RUN_DONE;
}

/* True if its changes may fill keys that clients wait for. */
static bool may_serve(const struct job *job)
{
    return (job->command->flags & COMMAND_READONLY) == 0;
}

/* Takes the stripes of the execution, and those that serving waiting clients needs. job: NULL for a script without a
 * client. */
static bool stripes_lock_to_run(struct worker *worker, const struct job *job, bool wait)
{
    do {
        if (!stripes_lock(worker, wait))
            return false;
    } while (waiters_have_needs(worker->server->store) && (job == NULL || may_serve(job)) && stripes_add_needs(worker));
    return true;
}

/* With the stripes of the execution. False: they are not free. */
static bool run_body(struct worker *worker, void (*body)(struct worker *worker, void *context), void *context)
{
    struct access *access = &worker->run.access;

    if (!stripes_lock_to_run(worker, NULL, true))
        return false;
    access_begin(access, run_time_now(worker), false);
    access->no_touch = false;
    access->effects = journal_is_on(&worker->server->journal) ? &worker->run.effects : NULL;
    if (is_stamping(worker))
        record_undo(worker);
    body(worker, context);
    counter_add(&access->counters->dirty, access->dirty);
    dispatch_settle_access(access);
    if (undo_is_recording(access)) /* it is over */
        undo_end(access);
    access_unlock(access, worker->run.stripes.items, worker->run.stripes.count);
    return true;
}

/* Inside. False: not now. */
static bool run_body_alone(struct worker *worker, void (*body)(struct worker *worker, void *context), void *context)
{
    bool done;

    if (!turn_take(worker, TURN_ALONE))
        return false;
    done = run_body(worker, body, context);
    turn_give(worker, TURN_ALONE);
    return done;
}

static bool run_unasked(struct worker *worker, const struct key *keys, uint32_t key_count, bool is_script,
                        void (*body)(struct worker *worker, void *context), void *context)
{
    bool done = false;

    assert(!worker->reentrant && worker->run.running == NULL);
    worker->run.stripes.count = 0;
    stripes_of_keys(worker, keys, key_count);
    if (!gate_enter(&worker->member))
        return false;
    if (LIKELY(!loading_runs()))
        done = is_script ? run_body_alone(worker, body, context) : run_body(worker, body, context);
    gate_leave(&worker->member);
    return done;
}

bool dispatch_run_unasked(struct worker *worker, const struct key *keys, uint32_t key_count,
                          void (*body)(struct worker *worker, void *context), void *context)
{
    worker_assert_outside(worker);
    return run_unasked(worker, keys, key_count, true, body, context);
}

bool dispatch_serve_unasked(struct worker *worker, const struct key *keys, uint32_t key_count,
                            void (*body)(struct worker *worker, void *context), void *context)
{
    worker_assert_outside(worker);
    return run_unasked(worker, keys, key_count, false, body, context);
}

/* The stripes needed are in the execution. */
static enum run_result run_striped(struct client *client, const struct job *job, const struct key *keys, bool wait)
{
    struct worker *worker = client->worker;
    const enum turn turn = turn_of(client, job);
    const bool tracks = (client->flags & CLIENT_TRACKING) != 0;
    struct reply_place place;
    bool locked;

    if (!gate_enter(&worker->member))
        return RUN_CLOSED;
    if (!dispatch_check_holds(worker)) {
        gate_leave(&worker->member);
        return RUN_UNCHECKED;
    }
    if (UNLIKELY(turn != TURN_NONE) && !turn_take(worker, turn)) {
        gate_leave(&worker->member);
        return RUN_BUSY;
    }
    locked = stripes_lock_to_run(worker, job, wait);
    if (LIKELY(locked)) {
        if (UNLIKELY(tracks))
            reply_place_take(&place, client);
        run_command(client, job, keys, false);
        access_unlock(&worker->run.access, worker->run.stripes.items, worker->run.stripes.count);
    }
    if (UNLIKELY(turn != TURN_NONE))
        turn_give(worker, turn);
    gate_leave(&worker->member);
    if (UNLIKELY(tracks) && locked)
        reply_place_close(&place);
    return LIKELY(locked) ? RUN_DONE : RUN_BUSY;
}

/* A walk waits only for the stripe it begins with: so each call gets on. */
static enum run_result run_walk_command(struct client *client, const struct job *job, const struct key *keys)
{
    struct worker *worker = client->worker;
    struct request request;

    do {
        uint64_t start = tick_now(), end;

        begin_request(&request, client, job, keys, false, start);
        end = execute_sized(&request, start, array_most_bytes(job->words.size_bytes, job->words.arg_count));
        if (!request.again) {
            finish_request(&request, false);
            telling_noted(worker);
            count_commands(client, job, 1, end - start);
            return RUN_DONE;
        }
    } while (!wait_for(worker, &worker->server->store->stripes[request.busy_stripe]));
    return RUN_BUSY;
}

static enum run_result run_walk(struct client *client, const struct job *job, const struct key *keys)
{
    struct worker *worker = client->worker;
    const bool listens = (client->flags & (CLIENT_TRACKING | CLIENT_PUBSUB)) != 0;
    struct reply_place place;
    enum run_result result;

    if (!gate_enter(&worker->member))
        return RUN_CLOSED;
    if (!dispatch_check_holds(worker)) {
        gate_leave(&worker->member);
        return RUN_UNCHECKED;
    }
    if (UNLIKELY(listens))
        reply_place_open(&place, client);
    result = run_walk_command(client, job, keys);
    if (UNLIKELY(listens))
        reply_place_mark(&place);
    gate_leave(&worker->member);
    if (UNLIKELY(listens))
        reply_place_close(&place);
    return result;
}

static enum run_result run_transaction(struct client *client, const struct job *job)
{
    struct worker *worker = client->worker;

    if (client->transaction == NULL || transaction_is_spoiled(client->transaction)) {
        run_command(client, job, NULL, false); /* an error: needs nothing */
        return RUN_DONE;
    }
    worker->run.stripes.count = 0;
    if (transaction_needs(client->transaction, stripes_of_queued, worker) == ACCESS_EXCLUSIVE)
        return run_exclusive(client, job, NULL);
    if (client->watches != NULL)
        watch_set_each_stripe(client->watches, add_watched_stripe, worker);
    return run_striped(client, job, NULL, true);
}

enum run_result dispatch_run_alone(struct client *client, const struct job *job, const struct key *keys)
{
    struct worker *worker = client->worker;

    worker_assert_self(worker);
    assert(job->fault == FAULT_NONE);
    if (UNLIKELY(job->by_gate))
        return run_exclusive(client, job, keys);
    switch (job->access) {
    case ACCESS_STRIPED:
        worker->run.stripes.count = 0;
        stripes_of_keys(worker, keys, job->key_count);
        return run_striped(client, job, keys, true);
    case ACCESS_EXCLUSIVE:
        return run_exclusive(client, job, keys);
    case ACCESS_WALK:
    case ACCESS_GATED:
        return run_walk(client, job, keys);
    case ACCESS_TRANSACTION:
        return run_transaction(client, job);
    case ACCESS_FREE:
        break;
    }
    run_command(client, job, keys, false);
    return RUN_DONE;
}

/* ------------------------------------------------------------------------------------------------------- groups -- */

/* Others are asked each time whether they may. */
static bool may_group_client(const struct client *client)
{
    const uint32_t asked = CLIENT_AUTHENTICATED | CLIENT_MONITOR | CLIENT_PUBSUB | CLIENT_RESTRICTED | CLIENT_REPLICA;

    return (client->flags & asked) == CLIENT_AUTHENTICATED &&
           (LIKELY((client->flags & CLIENT_CAPA_REDIRECT) == 0) || !role_follows());
}

static bool may_group(const struct job *job, uint32_t alone)
{
    return job->access == ACCESS_STRIPED && job->fault == FAULT_NONE && (job->command->flags & alone) == 0;
}

/* Flags of commands that run one by one now; all: no command may be in a group. */
static uint32_t flags_to_run_alone(void)
{
    const unsigned blocks = command_blocks();
    uint32_t flags = COMMAND_ALONE | COMMAND_SCRIPT;

    if (LIKELY(blocks == 0))
        return flags;
    if ((blocks & ~(unsigned)(COMMAND_BLOCKS_OF_WRITES | COMMAND_BLOCK_LOADING_ASIDE)) != 0)
        return UINT32_MAX;
    flags |= (blocks & COMMAND_BLOCKS_OF_WRITES) != 0 ? COMMAND_WRITE : 0;
    flags |= (blocks & COMMAND_BLOCK_LOADING_ASIDE) != 0 ? COMMAND_NO_ASYNC_LOADING : 0;
    return flags;
}

/* Neighbours that each name a member of the same key. */
static NOINLINE void prefetch_members(struct worker *worker, const struct job *first, const struct job *last)
{
    const struct key *keys = worker->run.keys.items, *key = &keys[first->first_key];
    struct slice members[PREFETCH_MOST];
    uint32_t count = 0;

    for (const struct job *job = first; job <= last && count < PREFETCH_MOST; job++) {
        const uint32_t member = job->command->member;

        if (member == 0 || member >= job->words.arg_count || keys[job->first_key].hash != key->hash)
            return;
        members[count++] = job->words.args[member];
    }
    store_prefetch_members(worker->server->store, key, members, count);
}

/* The stripes are held. */
static void prefetch_group(struct worker *worker, const struct job *first, const struct job *last, unsigned db)
{
    const struct key *keys = &worker->run.keys.items[first->first_key];
    uint32_t count = last->first_key + last->key_count - first->first_key;

    if (db != 0 || count > PREFETCH_MOST || !OPTION_IS(option_prefetch_enabled))
        return;
    counter_add(&worker->stats.prefetches, 1);
    counter_add(&worker->stats.prefetched_keys, count);
    store_prefetch(worker->server->store, keys, count);
    if (first->command->member != 0)
        prefetch_members(worker, first, last);
}

/* Jobs from `first` to before `end` all need stripes only. */
static enum run_result run_group(struct client *client, struct job *first, const struct job *end)
{
    struct worker *worker = client->worker;
    const bool tracks = (client->flags & CLIENT_TRACKING) != 0;
    struct reply_place place;
    uint64_t start, time;

    if (!gate_enter(&worker->member))
        return RUN_CLOSED;
    if (!dispatch_check_holds(worker)) {
        gate_leave(&worker->member);
        return RUN_UNCHECKED;
    }
    worker->run.stripes.count = 0;
    for (const struct job *job = first; job < end; job++)
        stripes_of_keys(worker, &worker->run.keys.items[job->first_key], job->key_count);
    if (!stripes_lock(worker, false) || (waiters_have_needs(worker->server->store) && stripes_add_needs(worker))) {
        gate_leave(&worker->member);
        return RUN_BUSY;
    }
    if (end - first > 1 || first->key_count > 1)
        prefetch_group(worker, first, end - 1, client->db);
    if (UNLIKELY(tracks))
        reply_place_take(&place, client);
    start = time = tick_now();
    for (const struct job *job = first; job < end; job++)
        time = run_command_since(client, job, &worker->run.keys.items[job->first_key], false, time, true);
    journal_for(worker, client);
    telling_noted(worker);
    count_commands(client, end - 1, (uint64_t)(end - first), time - start);
    access_unlock(&worker->run.access, worker->run.stripes.items, worker->run.stripes.count);
    gate_leave(&worker->member);
    if (UNLIKELY(tracks))
        reply_place_close(&place);
    return RUN_DONE;
}

/* Queues or runs a command that has passed all checks. */
enum run_result dispatch_run_now(struct client *client, struct job *job, const struct key *keys)
{
    if (pause_is_on() && pause_holds(client, job->command, job->words.args, job->words.arg_count))
        return RUN_PAUSED;
    if (LIKELY(client->transaction == NULL) || (job->command->flags & COMMAND_UNQUEUED) != 0) {
        if (UNLIKELY(migrate_is_on()) &&
            migrate_holds(client, job->command, job->words.args, job->words.arg_count, keys, job->key_count))
            return RUN_PAUSED;
        return dispatch_run_alone(client, job, keys);
    }
    transaction_queue(client->transaction, job->command, &job->words);
    if (UNLIKELY(transaction_memory_bytes(client->transaction) > OPTION_GET_U64(option_client_query_buffer_limit))) {
        client_close_for_query(client);
        return RUN_DONE;
    }
    atomic_store_explicit(&client->card.command_id, job->command->id, memory_order_relaxed);
    resp_write_status(dispatch_output_of(client), SLICE("QUEUED"));
    dispatch_after_reply(client);
    return RUN_DONE;
}

/* ------------------------------------------------------------------------------------------------------ batches -- */

/* Runs one job that cannot be grouped. False: it was parked. */
static bool run_or_park(struct client *client, struct job *job)
{
    const struct key *keys = job->key_count != 0 ? &client->worker->run.keys.items[job->first_key] : NULL;
    enum run_result result;

    do {
        dispatch_begin_check(client->worker);
        if (command_check_refuses(client, job))
            return true;
        result = dispatch_run_now(client, job, keys);
    } while (UNLIKELY(result == RUN_UNCHECKED));
    if (result == RUN_DONE)
        return true;
    if (UNLIKELY(busy_is_on()) && result != RUN_PAUSED && command_check_refuses_busy(client, job)) {
        exclusive_stop_asking(client->worker);
        return true;
    }
    parking_add(client, job, keys, result);
    return false;
}

/* Nothing more of the client's input is for now. */
static bool must_stop(const struct client *client)
{
    return conn_is_closing(&client->conn) || (client->flags & CLIENT_BLOCKED) != 0 || client->on_input != NULL;
}

/* Runs jobs in order; returns how many are done or parked: fewer than all if the client must stop there. */
static uint32_t run_jobs(struct client *client, uint32_t count)
{
    struct worker *worker = client->worker;
    struct job *jobs = worker->run.jobs;
    uint32_t i = 0;

    while (i < count) {
        uint32_t end = i;

        dispatch_begin_check(worker);
        if (LIKELY(client->transaction == NULL && may_group_client(client) && !memory_limit_is_reached() &&
                   !worker->reentrant && !pause_is_on())) {
            const uint32_t alone = flags_to_run_alone();

            while (end < count && may_group(&jobs[end], alone))
                end++;
        }
        if (LIKELY(end > i) && LIKELY(run_group(client, &jobs[i], &jobs[end]) == RUN_DONE)) {
            i = end;
            continue;
        }
        if (!run_or_park(client, &jobs[i++]) || must_stop(client))
            break;
    }
    return i;
}

void dispatch_protocol_error(struct client *client, struct slice error)
{
    char text[256];

    client_assert_owned(client);
    snprintf(text, sizeof(text), "ERR %.*s", (int)error.size, error.data);
    log_verbose("%.*s from client id=%llu addr=%s", (int)error.size, error.data, (unsigned long long)client->id,
                client->card.address);
    worker_count_error(client->worker, slice_from_text(text));
    if ((client->flags & CLIENT_REPLICA) != 0) { /* its output is the stream */
        conn_close(&client->conn);
        return;
    }
    resp_write_error_text(&client->conn.output, text);
    conn_close_after_flush(&client->conn);
}

/* Gets mail that it has not asked for. */
static bool listens(const struct client *client)
{
    return (client->flags & (CLIENT_PUBSUB | CLIENT_TRACKING)) != 0 ||
           atomic_load_explicit(&client->card.is_told_for, memory_order_relaxed);
}

static size_t on_data(struct client *client, char *data, size_t size)
{
    struct worker *worker = client->worker;
    size_t done = 0;
    enum resp_result result = RESP_COMMAND;

    if (UNLIKELY(atomic_load(&worker->backlog_bytes) != 0) && listens(client))
        worker_read_mail_so_far(worker); /* earlier messages come before its replies */
    while (done < size && (result == RESP_COMMAND || result == RESP_EMPTY) && client->parked == NULL &&
           !must_stop(client)) {
        uint32_t most = LIKELY(client_is_authenticated(client)) ? GROUP_MOST : 1, count = 0, ran;
        size_t start = done;
        struct job *job = &worker->run.jobs[0];

        acl_refresh(worker);
        if (UNLIKELY(must_stop(client))) /* its user is gone */
            break;
        worker->run.keys.count = 0;
        while (count < most && done < size) {
            job = &worker->run.jobs[count];
            result = resp_parse(&client->parser, data + done, size - done, &job->words);
            if (result == RESP_COMMAND) {
                done += job->words.consumed;
                job->end = done;
                job_prepare(worker, job);
                count++;
            } else if (result == RESP_EMPTY) {
                done += job->words.consumed;
            } else {
                break;
            }
        }
        ran = run_jobs(client, count);
        if (LIKELY(ran != 0)) {
            counter_add(&client->card.grouped_count, ran);
            counter_add(&client->card.group_count, 1);
        }
        if (UNLIKELY(most == 1))
            client_check_stranger(client);
        for (uint32_t i = 0; i < count; i++)
            resp_command_fini(&worker->run.jobs[i].words);
        if (ran < count || client->parked != NULL || (client->flags & CLIENT_BLOCKED) != 0) {
            /* The input behind the last one is given again. */
            done = ran != 0 ? worker->run.jobs[ran - 1].end : start;
            resp_parser_fini(&client->parser);
        } else if (result == RESP_LARGE && !conn_is_closing(&client->conn)) {
            large_bulk_begin(client, &job->words, data + done, size - done);
        } else if (result == RESP_ERROR && !conn_is_closing(&client->conn)) {
            dispatch_protocol_error(client, job->words.error);
        }
        resp_scratch_reset(&worker->run.scratch);
    }
    if (UNLIKELY(worker->has_deferred)) {
        worker_run_deferred(worker);
        deliveries_hold(client);
    }
    if (!output_is_empty(&client->conn.output))
        conn_write_pending(&client->conn);
    /* First: a client that is closed for its own output must not cause the eviction of others. */
    client_check_output(client);
    if (!conn_is_closing(&client->conn))
        client_update_card(client);
    return conn_is_closing(&client->conn) ? size : done;
}

/* ------------------------------------------------------------------------------------------------------ hooks -- */

static bool start(struct server *server)
{
    static const struct client_input input = {.on_data = on_data, .on_direct_done = large_bulk_done};

    (void)server;
    client_set_input(&input);
    return true;
}

static void init(struct worker *worker)
{
    worker->run.access.settle = dispatch_settle_access;
}

const struct lifecycle dispatch_lifecycle = {
    .server_start = start,
    .worker_init = init,
};

const struct info_row dispatch_info[] = {
    INFO_STAT("io_threaded_total_prefetch_batches", prefetches),
    INFO_STAT("io_threaded_total_prefetch_entries", prefetched_keys),
    {0},
};
