/* For dispatch.c, refusal.c and direct.c alone: a job's request, and where its reply goes. */
#pragma once

#include "server/client.h"
#include "server/request.h"
#include "server/worker.h"

/* Where replies go. A silent client's are written all the same, and dropped. */
static inline struct output *dispatch_output_of(struct client *client)
{
    return LIKELY((client->flags & (CLIENT_REPLY_OFF | CLIENT_REPLY_SKIP)) == 0) ? &client->conn.output
                                                                                 : &client->worker->sink;
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
    *request = (struct request){.command = job->command,
                                .args = job->words.args,
                                .arg_count = job->words.arg_count,
                                .key_count = job->key_count,
                                .keys = keys,
                                .access = &client->worker->access,
                                .client = client,
                                .worker = client->worker,
                                .out = dispatch_output_of(client),
                                .proto = client->proto,
                                .db = client->db,
                                .blobs = job->words.blobs,
                                .blob_count = job->words.blob_count};
}

void dispatch_protocol_error(struct client *client, struct slice error); /* tells it, and closes */
