/* MULTI, EXEC, DISCARD, WATCH, UNWATCH. What EXEC needs (its queue's stripes or the gate) dispatch has taken. */
#include "commands/shared/families.h"

#include "base/assert.h"
#include "server/acl/acl_client.h"
#include "server/command/owned_args.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/transaction.h"
#include "server/run/dispatch.h"
#include "store/watch.h"

static void cmd_multi(struct request *request)
{
    struct client *client = request->client;

    if (client->transaction != NULL) {
        reply_error(request, "ERR MULTI calls can not be nested");
        return;
    }
    client->transaction = transaction_create(client->db);
    reply_ok(request);
}

static void cmd_discard(struct request *request)
{
    if (request->client->transaction == NULL) {
        reply_error(request, "ERR DISCARD without MULTI");
        return;
    }
    client_reset_transaction(request->client);
    reply_ok(request);
}

/* Runs the queued commands with the locks of EXEC. */
static void run_queue(const struct transaction *transaction, struct request *request)
{
    reply_array(request, transaction_count(transaction));
    for (uint32_t i = 0; i < transaction_count(transaction); i++) {
        const struct owned_args *words;
        const struct command *command = transaction_at(transaction, i, &words);

        if (UNLIKELY((request->client->flags & CLIENT_RESTRICTED) != 0) &&
            acl_refuses_queued(request, command, words->args, words->arg_count))
            continue;
        dispatch_run_nested(request, command, words->args, words->arg_count, words->keys, words->key_count,
                            words->blobs, words->blob_count);
    }
}

/* Everything the queue needs is held. Nested commands may close the client or change its database and protocol. */
static void cmd_exec(struct request *request)
{
    struct client *client = request->client;
    struct transaction *transaction = client->transaction;

    if (transaction == NULL) {
        reply_error(request, "ERR EXEC without MULTI");
        return;
    }
    effect_none(request);
    if (transaction_is_spoiled(transaction)) {
        reply_error(request, "EXECABORT Transaction discarded because of previous errors.");
    } else if (client->watches != NULL &&
               (watch_set_is_touched(client->watches) || watch_set_has_expired(client->watches, request->access))) {
        reply_null_array(request);
    } else {
        run_queue(transaction, request);
        assert(client->transaction == transaction);
    }
    client_reset_transaction(client);
}

static void cmd_watch(struct request *request)
{
    struct client *client = request->client;

    if (client->transaction != NULL) {
        reply_error(request, "ERR WATCH inside MULTI is not allowed");
        return;
    }
    if (client->watches == NULL)
        client->watches = watch_set_create();
    for (uint32_t i = 0; i < request->key_count; i++)
        watch_add(client->watches, request->access, request->db, &request->keys[i]);
    client->watched_count = watch_set_count(client->watches);
    reply_ok(request);
}

static void cmd_unwatch(struct request *request)
{
    client_unwatch(request->client);
    reply_ok(request);
}

/* clang-format off */
const struct command_row transaction_commands[] = {
    {
        .name = "multi", .run = cmd_multi, .arity = 1, .access = ACCESS_FREE,
        .flags = "noscript loading stale fast allow_busy unqueued", .categories = "@fast @transaction",
        .group = "transactions", .since = "1.2.0",
        .summary = "Begins a transaction: the commands that follow are queued.", .complexity = "O(1)",
        .syntax = "MULTI",
    },
    {
        .name = "exec", .run = cmd_exec, .arity = 1, .access = ACCESS_TRANSACTION,
        .flags = "noscript loading stale skip_slowlog unqueued ends_multi", .categories = "@slow @transaction",
        .group = "transactions", .since = "1.2.0",
        .summary = "Runs the queued commands as a transaction, or none of them if a watched key has changed.",
        .complexity = "Depends on the commands in the transaction", .syntax = "EXEC",
    },
    {
        .name = "discard", .run = cmd_discard, .arity = 1, .access = ACCESS_FREE,
        .flags = "noscript loading stale fast allow_busy unqueued ends_multi", .categories = "@fast @transaction",
        .group = "transactions", .since = "2.0.0",
        .summary = "Discards the queued commands and forgets the watched keys.",
        .complexity = "O(N), where N is the number of queued commands", .syntax = "DISCARD",
    },
    {
        .name = "watch", .run = cmd_watch, .arity = -2, .access = ACCESS_STRIPED,
        .flags = "noscript loading stale fast allow_busy unqueued", .categories = "@fast @transaction",
        .keys = "RO@index:1@range:-1,1,0", .group = "transactions", .since = "2.2.0",
        .summary = "Watches keys: the next EXEC runs nothing if one of them changes.",
        .complexity = "O(1) for every key", .syntax = "WATCH key [key ...]",
    },
    {
        .name = "unwatch", .run = cmd_unwatch, .arity = 1, .access = ACCESS_FREE,
        .flags = "noscript loading stale fast allow_busy", .categories = "@fast @transaction",
        .group = "transactions", .since = "2.2.0", .summary = "Forgets the watched keys.", .complexity = "O(1)",
        .syntax = "UNWATCH",
    },
    {0},
};
/* clang-format on */
