/* SAVE, BGSAVE, LASTSAVE. */
#include "commands/shared/families.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/tick.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/worker.h"
#include "server/durable/child.h"
#include "server/durable/persistence.h"
#include "server/observe/timing.h"

/* A client that waits for its SAVE. Its worker's, but for what takes it there. */
struct saving {
    struct persistence_waiter waiter;
    struct mail mail;
    const struct command *command; /* const, as all but the error */
    struct worker *worker;
    uint64_t client_id, wait_count, start;
    bool is_silent;
    const char *error; /* NULL: it is saved */
};

static void answer(struct worker *worker, struct mail *mail)
{
    struct saving *saving = container_of(mail, struct saving, mail);
    struct client *client = worker_find_client(worker, saving->client_id);
    const char *error = saving->error;

    if (client != NULL && client_end_wait(client, saving->wait_count)) { /* it may have left */
        timing_note_waited(worker, saving->command, tick_now() - saving->start, error != NULL);
        if (error != NULL)
            worker_count_error(worker, slice_from_text(error));
        if (error != NULL && !saving->is_silent)
            resp_write_error_text(&client->conn.output, error);
        else if (!saving->is_silent)
            resp_write_ok(&client->conn.output);
        client_unblock(client);
    }
    mem_free(saving);
}

static void tell(struct persistence_waiter *waiter, const char *error)
{
    struct saving *saving = container_of(waiter, struct saving, waiter);
    struct mail *mail = &saving->mail;

    saving->error = error;
    worker_post(saving->worker, &mail);
}

/* In a thread. It may have ended before the client waits, but the answer comes to this worker, and so later. */
static void save_aside(struct request *request)
{
    struct client *client = request->client;
    struct saving *saving = mem_alloc_zero(sizeof(*saving));

    saving->waiter.done = tell;
    saving->mail.deliver = answer;
    saving->command = request->command;
    saving->worker = request->worker;
    saving->client_id = client->id;
    saving->wait_count = client->wait_count + 1;
    saving->start = tick_now();
    saving->is_silent = (client->flags & (CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP)) != 0;
    if (!persistence_save_aside(request->access, &saving->waiter)) {
        mem_free(saving);
        reply_error(request, "ERR");
        return;
    }
    request->blocked = true;
    client_block(client, NULL);
    assert(client->wait_count == saving->wait_count);
}

/* All wait only where no thread can save: forked processes are wanted, or one runs, or something else is written. */
static void cmd_save(struct request *request)
{
    if (persistence_may_save_aside())
        save_aside(request);
    else if (child_runs(CHILD_RDB) || child_runs(CHILD_SYNC))
        reply_error(request, "ERR Background save already in progress");
    else if (!persistence_save(request->access))
        reply_error(request, "ERR");
    else
        reply_ok(request);
}

static void start(struct request *request)
{
    switch (persistence_start_child(request->access)) {
    case PERSISTENCE_STARTED:
        reply_status(request, "Background saving started");
        break;
    case PERSISTENCE_BUSY:
        reply_error(request, "ERR Background save already in progress");
        break;
    case PERSISTENCE_FAILED:
        reply_error(request, "ERR");
        break;
    }
}

/* In a transaction it is put off to its end: the file would have half of it, at a point of the history before it. */
static void cmd_bgsave(struct request *request)
{
    const bool is_told_to = request->arg_count == 2 && request_arg_is(request, 1, "schedule");
    const bool schedules = is_told_to || request->in_exec;

    if (request->arg_count > 1 && !is_told_to) {
        reply_syntax_error(request);
    } else if (persistence_may_start_child() && !request->in_exec) {
        start(request);
    } else if (child_runs(CHILD_RDB) || (child_runs(CHILD_SYNC) && !child_runs(CHILD_AOF) && !schedules)) {
        reply_error(request, "ERR Background save already in progress");
    } else if (schedules) {
        persistence_schedule();
        reply_status(request, "Background saving scheduled");
    } else {
        reply_error(request, "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE "
                             "in order to schedule a BGSAVE whenever possible.");
    }
}

static void cmd_lastsave(struct request *request)
{
    reply_int(request, persistence_last_save_s());
}

/* clang-format off */
const struct command_row persist_commands[] = {
    {.name = "save", .run = cmd_save, .arity = 1, .access = ACCESS_EXCLUSIVE,
     .flags = "admin noscript no_async_loading no_multi", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "1.0.0", .summary = "Saves all keys to an RDB file. All clients wait, or where threads save its own.",
     .complexity = "O(N) for N keys", .syntax = "SAVE"},
    {.name = "bgsave", .run = cmd_bgsave, .arity = -1, .access = ACCESS_EXCLUSIVE,
     .flags = "admin noscript no_async_loading", .categories = "@admin @slow @dangerous", .group = "server",
     .since = "1.0.0", .summary = "Saves all keys to an RDB file in the background.",
     .complexity = "O(1) to begin, O(N) for N keys in the background", .syntax = "BGSAVE [SCHEDULE]",
     .arg_since = "SCHEDULE:3.2.2", .history = "3.2.2=The word SCHEDULE."},
    {.name = "lastsave", .run = cmd_lastsave, .arity = 1, .access = ACCESS_FREE, .flags = "loading stale fast",
     .categories = "@admin @fast @dangerous", .group = "server", .since = "1.0.0",
     .summary = "Returns the Unix time of the last save.", .complexity = "O(1)", .syntax = "LASTSAVE",
     .tips = "nondeterministic_output"},
    {.name = NULL},
};
/* clang-format on */
