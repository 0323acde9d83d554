#include "server/upkeep/cron_runner.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "server/acl/acl_user.h"
#include "server/command/operation.h"
#include "server/core/client.h"
#include "server/core/lifecycle.h"
#include "server/core/role.h"
#include "server/core/server.h"
#include "server/durable/loading.h"
#include "server/memory/memory_limit.h"
#include "server/pubsub/events.h"
#include "server/run/dispatch.h"
#include "server/run/pause.h"
#include "server/upkeep/active_expiry.h"
#include "store/jobs.h"

enum { SLICE_US = 5000, ERROR_SHOWN = 512, NAME_SHOWN = 128 };

/* A job that was due when it was looked at. */
struct due {
    struct list_node node;
    struct cron *cron; /* a copy, as the job may take itself away */
    struct slice name; /* owned */
    unsigned db;
};

/* A worker's, made for its first job. Its thread's alone. */
struct cron_runner {
    struct client client; /* the client that runs them: without connection, visible to no one */
    bool waits;           /* something was in the way, and we will be woken */
};

static const struct command *eval_command(void)
{
    static const struct command *found; /* global: all threads write the same */
    const struct command *eval = __atomic_load_n(&found, __ATOMIC_RELAXED);

    for (uint32_t i = 0; eval == NULL && i < command_top_count(); i++) {
        const struct command *command = command_top_at(i);

        if (slice_equal_text(command->full_name, "eval"))
            eval = command;
    }
    assert(eval != NULL); /* a name that was taken away is empty, and its row is there */
    __atomic_store_n(&found, eval, __ATOMIC_RELAXED);
    return eval;
}

bool cron_runner_is_allowed(void)
{
    return eval_command()->name.size != 0;
}

static struct cron_runner *runners[WORKERS_MOST + 1]; /* a worker's own thread's; NULL: it has run no job yet */

static struct cron_runner *runner_of(struct worker *worker)
{
    static char address[] = "cron";
    struct cron_runner *runner = runners[worker->index];
    struct acl_user *user;

    worker_assert_self(worker);
    if (LIKELY(runner != NULL))
        return runner;
    runner = mem_alloc_zero(sizeof(*runner));
    user = acl_user_create_default();
    acl_user_seal(user);
    runner->client.worker = worker;
    runner->client.proto = 2;
    runner->client.flags = CLIENT_AUTHENTICATED;
    runner->client.conn.flags = CONN_PAUSED; /* there is no input to be held back */
    output_init(&runner->client.conn.output, loop_output_pool(worker->loop));
    runner->client.card.address = address;
    runner->client.card.local_address = address;
    runner->client.card.user = user;
    runner->client.card.user_name = user->name.data;
    runners[worker->index] = runner;
    return runner;
}

static void fini(struct worker *worker)
{
    struct cron_runner *runner = runners[worker->index];

    if (runner == NULL)
        return;
    output_clear(&runner->client.conn.output);
    acl_user_release(&runner->client.card.user);
    mem_free(runner);
    runners[worker->index] = NULL;
}

/* ------------------------------------------------------------------------------------------------------ one job -- */

struct run {
    const struct due *due;
    struct client *client;
    struct key *keys; /* its own, then those of the script */
    struct buffer reply;
};

static bool is_still_due(struct access *access, const struct run *run, bool after)
{
    const struct entry *entry = access_probe(access, run->due->db, &run->keys[0]);

    return entry != NULL && entry->type == TYPE_CRON && cron_of(entry_value(entry))->id == run->due->cron->id &&
           (after || entry_job_ms(entry) <= access->now_ms);
}

/* As EVAL takes it, from words[2] on. */
static void write_words(struct slice *words, const struct cron *cron, char count[NUMBER_I64_SPACE])
{
    words[0] = cron->words[0];
    words[1] = slice_make(count, number_format_i64(count, cron->key_count));
    for (uint32_t i = 1; i < cron->word_count; i++)
        words[i + 1] = cron->words[i];
}

static void call_script(struct worker *worker, struct run *run)
{
    const struct cron *cron = run->due->cron;
    struct slice *words = mem_alloc((cron->word_count + 2) * sizeof(*words));
    struct request outer;
    char count[NUMBER_I64_SPACE];
    struct output out;

    words[0] = SLICE("EVAL");
    write_words(words + 1, cron, count);
    run->client->db = run->due->db;
    request_init(&outer, worker, run->client, NULL, NULL, 0, NULL);
    output_init(&out, loop_output_pool(worker->loop));
    dispatch_call(&outer, &(struct nested_call){.command = eval_command(),
                                                .args = words,
                                                .arg_count = cron->word_count + 2,
                                                .keys = run->keys + 1,
                                                .key_count = cron->key_count,
                                                .out = &out});
    if (output_size(&out) != 0)
        output_to_buffer(&out, &run->reply);
    output_clear(&out);
    mem_free(words);
}

/* The job with its new start, as it was made. */
static void tell_start(const struct access *access, const struct run *run, int64_t start_ms)
{
    const struct cron *cron = run->due->cron;
    char start[NUMBER_I64_SPACE], interval[NUMBER_I64_SPACE], count[NUMBER_I64_SPACE];
    struct slice *words;

    if (access->effects == NULL)
        return;
    words = mem_alloc((cron->word_count + 6) * sizeof(*words));
    words[0] = SLICE("KEYDB.CRON");
    words[1] = run->due->name;
    words[2] = SLICE("REPEAT");
    words[3] = slice_make(start, number_format_i64(start, start_ms));
    words[4] = slice_make(interval, number_format_i64(interval, cron->interval_ms));
    write_words(words + 5, cron, count);
    effects_add(access->effects, run->due->db, words, cron->word_count + 6);
    operation_describe(access->effects, words, cron->word_count + 6);
    mem_free(words);
}

/* Making a job takes its key's deadline away. */
static void tell_deadline(struct access *access, const struct run *run)
{
    const struct entry *entry = access_probe(access, run->due->db, &run->keys[0]);
    char deadline[NUMBER_I64_SPACE];
    struct slice words[] = {SLICE("PEXPIREAT"), run->due->name, SLICE_EMPTY};

    if (access->effects == NULL || entry == NULL || entry_expire_ms(entry) == EXPIRE_NEVER)
        return;
    words[2] = slice_make(deadline, number_format_i64(deadline, entry_expire_ms(entry)));
    effects_add(access->effects, run->due->db, words, countof(words));
    operation_describe(access->effects, words, countof(words));
}

static void tell_end(const struct access *access, const struct run *run)
{
    const struct slice words[] = {SLICE("DEL"), run->due->name};

    if (access->effects == NULL)
        return;
    effects_add(access->effects, run->due->db, words, countof(words));
    operation_describe(access->effects, words, countof(words));
}

static void move_on(struct access *access, const struct run *run, bool failed)
{
    const struct due *due = run->due;
    struct change change;
    int64_t start_ms;

    if (!due->cron->repeats) {
        (void)access_delete(access, due->db, &run->keys[0]);
        tell_end(access, run);
        return;
    }
    start_ms = cron_start_after(due->cron, access->now_ms);
    change_begin(&change, access, due->db, &run->keys[0]);
    change_move_job(&change, start_ms, failed);
    change_end(&change, EVENT_GENERIC, NULL);
    tell_start(access, run, start_ms);
    tell_deadline(access, run);
}

/* Once for a job that fails again and again. */
static void log_failure(const struct run *run)
{
    const struct due *due = run->due;
    enum log_level level = due->cron->fails ? LOG_LEVEL_VERBOSE : LOG_LEVEL_WARNING;
    size_t size = run->reply.size > 2 ? run->reply.size - 2 : run->reply.size; /* without the line's end */

    if (log_wants(level))
        log_write(level, "Job %.*s of database %u failed: %.*s", (int)MIN(due->name.size, (size_t)NAME_SHOWN),
                  due->name.data, due->db, (int)MIN(size, (size_t)ERROR_SHOWN), run->reply.data);
}

/* Runs with the locks held; its effects are journaled when this returns. */
static void run_held(struct worker *worker, void *context)
{
    struct run *run = context;
    struct access *access = &worker->run.access;
    bool failed;

    worker_assert_inside(worker);
    assert(run->due->cron->key_count < run->due->cron->word_count);
    if (role_follows() || pause_is_on() || !is_still_due(access, run, false))
        return;
    call_script(worker, run);
    failed = run->reply.size != 0 && run->reply.data[0] == '-';
    if (failed)
        log_failure(run);
    if (is_still_due(access, run, true))
        move_on(access, run, failed);
    access->found_key = NULL; /* it points at ours */
    events_note_always(worker, run->due->db, run->due->name, "CRON Executed");
}

/* False: something is in the way; we will be woken. */
static bool run_job(struct worker *worker, const struct due *due)
{
    const uint32_t key_count = due->cron->key_count + 1;
    struct run run = {.due = due, .client = &runner_of(worker)->client};
    bool done;

    run.keys = mem_alloc(key_count * sizeof(*run.keys));
    run.keys[0] = key_make(due->name);
    for (uint32_t i = 1; i < key_count; i++)
        run.keys[i] = key_make(due->cron->words[i]);
    memory_look_for(run.client);
    done = dispatch_run_unasked(worker, run.keys, key_count, run_held, &run);
    mem_free(run.keys);
    buffer_fini(&run.reply);
    return done;
}

/* ------------------------------------------------------------------------------------------------------ finding -- */

static void note_due(unsigned db, const struct entry *entry, void *context)
{
    struct list *found = context;
    struct due *due = mem_alloc_zero(sizeof(*due));
    struct slice name = entry_key(entry);

    due->cron = cron_clone(cron_of(entry_value(entry)));
    due->cron->fails = cron_of(entry_value(entry))->fails;
    due->name = slice_make(mem_copy(name.data, name.size), name.size);
    due->db = db;
    list_push_back(found, &due->node);
}

static void due_destroy(struct due *due)
{
    cron_free(&due->cron);
    mem_free((char *)(uintptr_t)due->name.data);
    mem_free(due);
}

static void find_in_stripe(struct worker *worker, uint32_t stripe, struct list *found)
{
    struct access *access = &worker->run.access;
    uint32_t busy;

    for (unsigned db = 0; db < store_database_bound(worker->server->store); db++) {
        if (!access_has_due_job(access, stripe, db) || !access_lock(access, &stripe, 1, &busy))
            continue; /* another thread uses the stripe: next time */
        access_each_due_job(access, stripe, db, note_due, found);
        access_unlock(access, &stripe, 1);
    }
}

/* In the worker's share of the stripes. */
static void find_due(struct worker *worker, struct list *found)
{
    const struct store *store = worker->server->store;

    if (!gate_enter(&worker->member))
        return;
    access_begin(&worker->run.access, worker_now_ms(worker), false);
    for (uint32_t stripe = worker->index; stripe <= store->stripe_mask; stripe += worker->server->worker_count)
        find_in_stripe(worker, stripe, found);
    gate_leave(&worker->member);
}

bool cron_runner_turn(struct worker *worker)
{
    const struct store *store = worker->server->store;
    uint64_t end_us;
    bool all = true;
    struct list found;

    worker_assert_outside(worker);
    if (LIKELY(!atomic_load_explicit(&store->has_jobs, memory_order_relaxed)) || loading_runs() || worker->reentrant ||
        !cron_runner_is_allowed())
        return true;
    list_init(&found);
    find_due(worker, &found);
    if (list_is_empty(&found))
        return true;
    end_us = clock_monotonic_us() + SLICE_US;
    runner_of(worker)->waits = false;
    LIST_FOREACH_SAFE(node, &found) {
        struct due *due = container_of(node, struct due, node);

        list_remove(node);
        if (all && !runner_of(worker)->waits) {
            runner_of(worker)->waits = !run_job(worker, due);
            all = clock_monotonic_us() < end_us;
        }
        due_destroy(due);
    }
    if (worker->has_deferred)
        worker_run_deferred(worker);
    return all;
}

static void woken(struct worker *worker)
{
    if (LIKELY(runners[worker->index] == NULL) || !runners[worker->index]->waits || !active_expiry_may_run(worker))
        return;
    (void)cron_runner_turn(worker); /* the rest follows with the next timer */
}

const struct lifecycle cron_runner_lifecycle = {
    .worker_fini = fini,
    .worker_wake = woken, /* continues if the stripes or the gate were not free */
};
