/* For dispatch.c, parking.c, command_check.c and large_bulk.c alone: a job's request, where its reply goes, and the
 * result. */
#pragma once

#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/worker.h"

/* RUN_BUSY: will be woken for worker->busy_stripe. RUN_CLOSED: for an open gate. RUN_ASKED: stands in the queue of
 * those who want the gate. RUN_PAUSED: will be woken at the end of CLIENT PAUSE. */
enum run_result { RUN_DONE, RUN_BUSY, RUN_CLOSED, RUN_ASKED, RUN_PAUSED };

/* Where replies go. A silent client's are written all the same, and dropped. */
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
}

void dispatch_protocol_error(struct client *client, struct slice error); /* tells it, and closes */
/* One command that nothing stands against: queued, or run. */
enum run_result dispatch_run_now(struct client *client, struct job *job, const struct key *keys);
/* The same, of one that is to be run. */
enum run_result dispatch_run_alone(struct client *client, const struct job *job, const struct key *keys);
