#include "server/run/command_check.h"

#include "base/clock.h"
#include "base/log.h"
#include "server/acl/acl_client.h"
#include "server/config/command_block.h"
#include "server/core/deferred_log.h"
#include "server/core/role.h"
#include "server/core/worker.h"
#include "server/durable/aof_writer.h"
#include "server/durable/file_options.h"
#include "server/durable/loading.h"
#include "server/durable/persistence.h"
#include "server/memory/memory_limit.h"
#include "server/process/process.h"
#include "server/pubsub/tracking.h"
#include "server/run/busy.h"
#include "server/run/dispatch.h"
#include "server/run/dispatch_priv.h"
#include "server/run/protect.h"
#include "server/core/transaction.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS_OF_DISK = COMMAND_BLOCK_UNSAVED | COMMAND_BLOCK_UNWRITTEN, LOG_AGAIN_US = 10 * 1000 * 1000 };

const char command_check_stale_denial[] =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";

static void append_args(char *text, size_t size, const struct slice *args, uint32_t arg_count)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 1; i < arg_count && used < 128; i++) {
        int cut = (int)MIN(args[i].size, 128 - used);

        used += (size_t)snprintf(text + used, size - used, "'%.*s' ", cut, args[i].data);
    }
}

static void refuse_unknown(struct request *request)
{
    char args[512];

    append_args(args, sizeof(args), request->args, request->arg_count);
    reply_errorf(request, "ERR unknown command '%.*s', with args beginning with: %s",
                 (int)MIN(request->args[0].size, (size_t)128), request->args[0].data, args);
}

/* EXEC that cannot run ends the transaction and says why. */
static void refuse_exec(struct request *request, const char *reason)
{
    reply_errorf(request, REFUSED_EXEC "%s", reason);
    client_reset_transaction(request->client);
}

static void refuse_for(struct request *request, const char *reason)
{
    if (request->command->row->access == ACCESS_TRANSACTION)
        refuse_exec(request, reason);
    else
        reply_error(request, reason);
}

static void refuse(struct request *request, const struct job *job)
{
    switch (job->fault) {
    case FAULT_UNKNOWN:
        refuse_unknown(request);
        break;
    case FAULT_UNKNOWN_SUBCOMMAND:
        reply_subcommand_error(request);
        break;
    case FAULT_ARITY:
        if (job->command->row->access == ACCESS_TRANSACTION) {
            refuse_exec(request, "wrong number of arguments for 'exec' command");
            break;
        }
        reply_errorf(request, "ERR wrong number of arguments for '%.*s' command", (int)job->command->full_name.size,
                     job->command->full_name.data);
        break;
    case FAULT_NO_MEMORY:
        refuse_for(request, "OOM not enough memory for an argument of this command");
        break;
    case FAULT_NONE:
        break;
    }
}

static uint32_t flags_of(const struct job *job)
{
    return command_flags(job->command, job->words.args, job->words.arg_count);
}

/* What is queued takes memory, too, but that has its own limit (client-query-buffer-limit). */
static bool needs_memory(const struct client *client, const struct job *job)
{
    const bool is_exec = client->transaction != NULL && job->command->row->access == ACCESS_TRANSACTION;

    return ((is_exec ? transaction_flags(client->transaction) : flags_of(job)) & COMMAND_DENYOOM) != 0;
}

/* Evicts keys. Clients that cache them get invalidations before the reply. */
static COLD bool lacks_memory(struct client *client, const struct job *job)
{
    memory_look_for(client);
    if ((client->flags & CLIENT_TRACKING) != 0)
        worker_read_mail_so_far(client->worker);
    return (client->flags & CLIENT_MEMORY_SHORT) != 0 && needs_memory(client, job);
}

static bool is_write(const struct client *client, const struct job *job)
{
    return (flags_of(job) & COMMAND_WRITE) != 0 ||
           (job->command->row->access == ACCESS_TRANSACTION && client->transaction != NULL &&
            (transaction_flags(client->transaction) & COMMAND_WRITE) != 0);
}

/* Whether the command lacks this flag, or EXEC, which has it, would run one that does. */
static bool lacks_flag(const struct client *client, const struct job *job, enum command_flag flag)
{
    return (flags_of(job) & (uint32_t)flag) == 0 ||
           (job->command->row->access == ACCESS_TRANSACTION && client->transaction != NULL &&
            (transaction_lacking_flags(client->transaction) & (uint32_t)flag) != 0);
}

static const char *disk_denial(unsigned blocks, char room[FAULT_DENIAL_SPACE])
{
    if ((blocks & COMMAND_BLOCK_UNSAVED) != 0)
        return persistence_denial;
    if ((blocks & COMMAND_BLOCK_UNWRITTEN) == 0)
        return NULL;
    aof_writer_denial(room, FAULT_DENIAL_SPACE);
    return room;
}

void command_check_master_write(void)
{
    static uint64_t told_us; /* global: worker 0's */
    const unsigned blocks = command_blocks();
    const char *what = (blocks & COMMAND_BLOCK_UNSAVED) != 0 ? "snapshots fail"
                                                             : "the append-only file can't be written";
    uint64_t now_us;

    worker_assert_zero(worker_self());
    if (LIKELY((blocks & BLOCKS_OF_DISK) == 0))
        return;
    if (!disk_errors_are_ignored()) {
        log_warning("This replica can't keep a write of its master: %s. Exiting... (With "
                    "replica-ignore-disk-write-errors yes it would go on.)",
                    what);
        process_remove_pidfile();
        _exit(EXIT_FAILURE);
    }
    now_us = clock_monotonic_us();
    if (told_us != 0 && now_us - told_us < LOG_AGAIN_US)
        return;
    told_us = now_us;
    deferred_log(worker_self(), LOG_LEVEL_WARNING, "This replica applies writes of its master that it can't keep: %s.",
                 what);
}

const char *command_check_write_denial(const struct client *client, char room[FAULT_DENIAL_SPACE])
{
    const unsigned blocks = command_blocks();

    if (LIKELY((blocks & COMMAND_BLOCKS_OF_WRITES) == 0) || (client->flags & CLIENT_OBEYED) != 0)
        return NULL;
    if ((blocks & BLOCKS_OF_DISK) != 0)
        return disk_denial(blocks, room);
    return (blocks & COMMAND_BLOCK_READONLY) != 0 ? "READONLY You can't write against a read only replica."
                                                  : "NOREPLICAS Not enough good replicas to write.";
}

bool command_check_is_stale(const struct client *client)
{
    return UNLIKELY((command_blocks() & COMMAND_BLOCK_STALE) != 0) && (client->flags & CLIENT_OBEYED) == 0;
}

/* Writes are refused. If files cannot be written, so is PING, which asks whether the server works. */
static bool refused_as_write(struct request *request, const struct client *client, const struct job *job)
{
    char room[FAULT_DENIAL_SPACE];
    const char *denial = NULL;

    if (is_write(client, job))
        denial = command_check_write_denial(client, room);
    else if (slice_equal_text(job->command->full_name, "ping"))
        denial = disk_denial(command_blocks(), room);
    if (denial == NULL)
        return false;
    refuse_for(request, denial);
    return true;
}

/* The master is away, or data is loading. */
static bool refused_without_data(struct request *request, const struct client *client, const struct job *job)
{
    if (command_check_is_stale(client) && lacks_flag(client, job, COMMAND_STALE))
        refuse_for(request, command_check_stale_denial);
    else if ((command_blocks() & COMMAND_BLOCK_LOADING) != 0 && lacks_flag(client, job, COMMAND_LOADING))
        refuse_for(request, loading_denial);
    else if (loading_runs_aside() && (request->command->flags & COMMAND_NO_ASYNC_LOADING) != 0)
        refuse_for(request, loading_denial);
    else
        return false;
    return true;
}

/* A client that knows to go to the master gets its address. Before the link's state, and before READONLY. */
static COLD bool refused_for_master(struct request *request, const struct client *client, const struct job *job)
{
    const bool is_exec = job->command->row->access == ACCESS_TRANSACTION && client->transaction != NULL;
    char error[ROLE_REDIRECT_SPACE];

    if (!client_is_for_master(client, is_exec ? transaction_flags(client->transaction) : flags_of(job)) ||
        !role_redirect(error))
        return false;
    reply_error(request, error);
    return true;
}

/* A script keeps its locks: only commands that need none may run. */
static bool may_run_inside(const struct job *job)
{
    return (job->command->flags & COMMAND_ALLOW_BUSY) != 0 && job->access == ACCESS_FREE;
}

/* Over RESP2 replies and messages could not be told apart. */
static bool refused_as_subscriber(struct request *request, const struct client *client)
{
    const struct command *command = request->command;
    const bool is_exec = command->row->access == ACCESS_TRANSACTION;

    if ((client->flags & CLIENT_PUBSUB) == 0 || client->proto != 2 || (command->flags & COMMAND_SUBSCRIBED) != 0)
        return false;
    reply_errorf(request,
                 "%sCan't execute '%.*s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
                 "allowed in this context",
                 is_exec ? REFUSED_EXEC : "ERR ", (int)command->full_name.size, command->full_name.data);
    return true;
}

/* The output of its connection is the stream, so commands that reply have no place there. */
static void log_as_replica(const struct request *request, struct slice name)
{
    const struct client *client = request->client;
    const int size = (int)MIN(name.size, (size_t)128);

    if (request->command != NULL &&
        (request->command->flags & (COMMAND_READONLY | COMMAND_WRITE | COMMAND_MAY_REPLICATE)) != 0)
        log_warning(
            "== CRITICAL == This master is sending an error to its replica: 'ERR Replica can't interact with the "
            "keyspace' after processing the command '%.*s'",
            size, name.data);
    log_warning("Replica generated a reply to command '%.*s', disconnecting it: id=%llu addr=%s", size, name.data,
                (unsigned long long)client->id, client->card.address);
}

static bool refused_as_replica(struct request *request, const struct job *job)
{
    const struct command *command = job->command;

    if (job->fault == FAULT_NONE &&
        (slice_equal_text(command->full_name, "replconf") || slice_equal_text(command->full_name, "psync") ||
         slice_equal_text(command->full_name, "sync")))
        return false;
    reply_error(request, "ERR no commands of replicas");
    return true;
}

bool command_check_refuses(struct client *client, const struct job *job)
{
    struct request request;
    const struct command *command = job->command;
    const char *reason;

    worker_assert_self(client->worker);
    dispatch_request_init(&request, client, job, NULL);
    client->flags &= ~(uint32_t)CLIENT_MEMORY_SHORT;
    if (UNLIKELY((client->flags & CLIENT_REPLICA) != 0) && refused_as_replica(&request, job))
        ; /* its connection is closed below */
    else if (UNLIKELY(job->fault != FAULT_NONE))
        refuse(&request, job);
    else if (UNLIKELY((reason = protect_command_refusal(command, client)) != NULL))
        reply_error(&request, reason);
    else if (UNLIKELY(!client_is_authenticated(client)) && (command->flags & COMMAND_NO_AUTH) == 0)
        refuse_for(&request, "NOAUTH Authentication required.");
    else if (UNLIKELY(client->transaction != NULL) && (command->flags & COMMAND_NO_MULTI) != 0)
        reply_error(&request, "ERR Command not allowed inside a transaction");
    else if (UNLIKELY((client->flags & CLIENT_RESTRICTED) != 0) && acl_refuses(&request))
        ; /* it has replied */
    else if (UNLIKELY((client->flags & CLIENT_MONITOR) != 0) &&
             (command->flags & (COMMAND_READONLY | COMMAND_WRITE | COMMAND_MAY_REPLICATE)) != 0)
        reply_error(&request, "ERR Replica can't interact with the keyspace");
    else if (UNLIKELY((client->flags & CLIENT_CAPA_REDIRECT) != 0) && refused_for_master(&request, client, job))
        ; /* likewise */
    else if (UNLIKELY(client->worker->reentrant) && !may_run_inside(job))
        refuse_for(&request, busy_error());
    else if (UNLIKELY(memory_limit_is_reached()) && !client->worker->reentrant && lacks_memory(client, job))
        refuse_for(&request, "OOM command not allowed when used memory > 'maxmemory'.");
    else if (UNLIKELY(command_blocks() != 0) && refused_as_write(&request, client, job))
        ; /* it has replied */
    else if (UNLIKELY((client->flags & CLIENT_PUBSUB) != 0) && refused_as_subscriber(&request, client))
        ; /* likewise */
    else if (UNLIKELY(command_blocks() != 0) && refused_without_data(&request, client, job))
        ; /* likewise */
    else
        return false;
    if (command != NULL && command->row->access == ACCESS_TRANSACTION)
        client_reset_transaction(client);
    else if (client->transaction != NULL)
        transaction_spoil(client->transaction);
    if (command != NULL && job->fault != FAULT_UNKNOWN_SUBCOMMAND)
        counter_add(&client->worker->stats.rejected_calls[command->id], 1);
    counter_add(&client->worker->stats.commands_processed, 1);
    if (UNLIKELY((client->flags & CLIENT_TRACKING) != 0))
        tracking_command_over(client, command);
    dispatch_after_reply(client);
    if (UNLIKELY((client->flags & CLIENT_REPLICA) != 0)) {
        log_as_replica(&request, command != NULL ? command->full_name : job->words.args[0]);
        conn_close(&client->conn); /* an error must not get into the stream */
    }
    return true;
}

bool command_check_refuses_meanwhile(struct client *client, const struct job *job)
{
    struct request request;

    worker_assert_self(client->worker);
    if (LIKELY((client->flags & CLIENT_RESTRICTED) == 0))
        return false;
    dispatch_request_init(&request, client, job, NULL);
    if (!acl_refuses(&request))
        return false;
    if (client->transaction != NULL)
        transaction_spoil(client->transaction);
    counter_add(&client->worker->stats.rejected_calls[job->command->id], 1);
    dispatch_after_reply(client);
    return true;
}

bool command_check_refuses_busy(struct client *client, const struct job *job)
{
    struct request request;

    if (LIKELY(!busy_is_on()) || (job->command->flags & COMMAND_ALLOW_BUSY) != 0)
        return false;
    worker_assert_self(client->worker);
    dispatch_request_init(&request, client, job, NULL);
    refuse_for(&request, busy_error());
    counter_add(&client->worker->stats.rejected_calls[job->command->id], 1);
    counter_add(&client->worker->stats.commands_processed, 1);
    dispatch_after_reply(client);
    return true;
}
