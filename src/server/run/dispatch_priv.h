/* Internals of dispatch.c, parking.c, command_check.c and large_bulk.c: the request of a job, its output, and its
 * result. */
#pragma once

#include "server/config/command_block.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/worker.h"

/* RUN_BUSY: waits for worker->busy_stripe. RUN_CLOSED: waits for an open gate. RUN_ASKED: stands in the queue for
 * owning the gate. RUN_PAUSED: waits for the end of CLIENT PAUSE. RUN_UNCHECKED: what is refused has changed since it
 * was checked. */
enum run_result { RUN_DONE, RUN_BUSY, RUN_CLOSED, RUN_ASKED, RUN_PAUSED, RUN_UNCHECKED };

/* The output for replies. With CLIENT REPLY OFF they are written, too, and dropped. */
static inline struct output *dispatch_output_of(struct client *client)
{
    const uint32_t silent = CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP;

    if (LIKELY((client->flags & (silent | CLIENT_REPLY_ASIDE)) == 0))
        return &client->conn.output;
    return (client->flags & silent) != 0 ? &client->worker->sink : client->aside;
}

static inline void dispatch_after_reply(struct client *client)
{
    const uint32_t skip = CLIENT_REPLY_SKIP | CLIENT_REPLY_SKIP_NEXT;

    if (LIKELY((client->flags & (skip | CLIENT_REPLY_OFF)) == 0))
        return;
    output_clear(&client->worker->sink);
    if ((client->flags & CLIENT_REPLY_SKIP_NEXT) != 0)
        client->flags = (client->flags & ~skip) | CLIENT_REPLY_SKIP;
    else
        client->flags &= ~(uint32_t)CLIENT_REPLY_SKIP;
}

static inline void dispatch_request_init(struct request *request, struct client *client, const struct job *job,
                                         const struct key *keys)
{
    request_init(request, client->worker, client, job->command, job->words.args, job->words.arg_count,
                 dispatch_output_of(client));
    request_set_keys(request, keys, job->key_count);
    request_set_blobs(request, job->words.blobs, job->words.blob_count);
    request->is_plain = job->words.is_plain;
}

/* The next commands are about to be checked. */
static inline void dispatch_begin_check(struct worker *worker)
{
    worker->checked_changes = command_block_changes();
}
/* Inside of the gate, or with the gate owned: the check of the command still holds. */
static inline bool dispatch_check_holds(const struct worker *worker)
{
    worker_assert_inside(worker);
    return LIKELY(worker->checked_changes == command_block_changes());
}

/* Replies the error and closes the connection. */
void dispatch_protocol_error(struct client *client, struct slice error);
/* Runs or queues a command that has passed all checks. */
enum run_result dispatch_run_now(struct client *client, struct job *job, const struct key *keys);
/* The same for a command that is run, not queued. */
enum run_result dispatch_run_alone(struct client *client, const struct job *job, const struct key *keys);
