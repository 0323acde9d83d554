/* SUBSCRIBE and similar commands, PUBLISH, SPUBLISH, PUBSUB. Free of stripes and gate: subscriptions are in a registry
 * of their own (server/pubsub/topics.h).
 *
 * Clients expect one answer for each name, in the form of the messages that will follow. They get it independent of
 * CLIENT REPLY. */
#include "base/buffer.h"
#include "commands/shared/families.h"
#include "server/core/client.h"
#include "server/core/request.h"
#include "server/core/worker.h"
#include "server/pubsub/pubsub.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------- subscribing -- */

/* name NULL: there was nothing to leave. */
static void tell(struct client *client, const char *what, const struct slice *name, uint64_t count)
{
    struct output *out = client_output(client);

    resp_write_push(out, client->proto, 3);
    resp_write_bulk(out, slice_from_text(what));
    if (name != NULL)
        resp_write_bulk(out, *name);
    else
        resp_write_null(out, client->proto);
    resp_write_int(out, (int64_t)count);
}

static void subscribe(struct request *request, enum topic_kind kind)
{
    for (uint32_t i = 1; i < request->arg_count; i++) {
        struct slice name = request_arg(request, i);

        tell(request->client, request->command->row->name, &name, pubsub_subscribe(request->client, kind, name));
    }
}

static void tell_left(struct slice name, uint64_t count, void *context)
{
    const struct request *request = context;

    tell(request->client, request->command->row->name, &name, count);
}

static void unsubscribe(struct request *request, enum topic_kind kind)
{
    struct client *client = request->client;

    if (!request->in_exec)
        pubsub_catch_up(client);
    for (uint32_t i = 1; i < request->arg_count; i++) {
        struct slice name = request_arg(request, i);

        tell(client, request->command->row->name, &name, pubsub_unsubscribe(client, kind, name));
    }
    if (request->arg_count == 1 && pubsub_unsubscribe_all(client, kind, tell_left, request) == 0)
        tell(client, request->command->row->name, NULL, pubsub_count(client, kind));
}

static void cmd_subscribe(struct request *request)
{
    subscribe(request, TOPIC_CHANNEL);
}

static void cmd_psubscribe(struct request *request)
{
    subscribe(request, TOPIC_PATTERN);
}

/* In a transaction only the others may be used; redis-server has it so. */
static void cmd_ssubscribe(struct request *request)
{
    if (request->in_exec)
        reply_error(request, "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client");
    else
        subscribe(request, TOPIC_SHARD);
}

static void cmd_unsubscribe(struct request *request)
{
    unsubscribe(request, TOPIC_CHANNEL);
}

static void cmd_punsubscribe(struct request *request)
{
    unsubscribe(request, TOPIC_PATTERN);
}

static void cmd_sunsubscribe(struct request *request)
{
    unsubscribe(request, TOPIC_SHARD);
}

/* --------------------------------------------------------------------------------------------------- publishing -- */

/* Replicas have subscribers of their own: they publish it, too. */
static void publish(struct request *request, enum topic_kind kind)
{
    uint64_t count = pubsub_publish(request->worker, kind, request_arg(request, 1), request_arg(request, 2));

    effect_message(request, request->args, request->arg_count);
    reply_int(request, (int64_t)count);
}

static void cmd_publish(struct request *request)
{
    publish(request, TOPIC_CHANNEL);
}

static void cmd_spublish(struct request *request)
{
    publish(request, TOPIC_SHARD);
}

/* ------------------------------------------------------------------------------------------------------- PUBSUB -- */

static void reply_names(struct request *request, enum topic_kind kind)
{
    struct slice pattern = request->arg_count == 3 ? request_arg(request, 2) : SLICE("*");
    struct buffer names = {0};

    if (request->arg_count > 3) {
        reply_subcommand_syntax_error(request);
        return;
    }
    reply_array(request, topics_list(kind, pattern, &names));
    for (size_t at = 0; at < names.size;) {
        size_t size;

        memcpy(&size, names.data + at, sizeof(size));
        reply_bulk(request, slice_make(names.data + at + sizeof(size), size));
        at += sizeof(size) + size;
    }
    buffer_fini(&names);
}

static void reply_subscriber_counts(struct request *request, enum topic_kind kind)
{
    reply_array(request, (uint64_t)(request->arg_count - 2) * 2);
    for (uint32_t i = 2; i < request->arg_count; i++) {
        reply_bulk(request, request_arg(request, i));
        reply_int(request, topics_subscriber_count(kind, request_arg(request, i)));
    }
}

static void cmd_pubsub_channels(struct request *request)
{
    reply_names(request, TOPIC_CHANNEL);
}

static void cmd_pubsub_shardchannels(struct request *request)
{
    reply_names(request, TOPIC_SHARD);
}

static void cmd_pubsub_numsub(struct request *request)
{
    reply_subscriber_counts(request, TOPIC_CHANNEL);
}

static void cmd_pubsub_shardnumsub(struct request *request)
{
    reply_subscriber_counts(request, TOPIC_SHARD);
}

static void cmd_pubsub_numpat(struct request *request)
{
    reply_int(request, (int64_t)topics_count(TOPIC_PATTERN));
}

static void cmd_pubsub_help(struct request *request)
{
    static const char *const lines[] = {
        "CHANNELS [<pattern>]",
        "    Return the channels with subscribers, or those that match the pattern.",
        "NUMPAT",
        "    Return the number of different patterns with subscribers.",
        "NUMSUB [<channel> ...]",
        "    Return the number of subscribers of each channel, without subscribers by pattern.",
        "SHARDCHANNELS [<pattern>]",
        "    Return the sharded channels with subscribers, or those that match the pattern.",
        "SHARDNUMSUB [<shardchannel> ...]",
        "    Return the number of subscribers of each sharded channel.",
    };

    reply_help(request, lines, countof(lines));
}

/* --------------------------------------------------------------------------------------------------------- rows -- */

#define PUBSUB_ROW \
    .access = ACCESS_FREE, .flags = "pubsub loading stale", .categories = "@pubsub @slow", .group = "pubsub"
#define PUBSUB_CLIENT_ROW(more_)                                                               \
    .access = ACCESS_FREE, .flags = "pubsub noscript loading stale sentinel subscribed" more_, \
    .categories = "@pubsub @slow", .group = "pubsub"
#define SUBSCRIBE_ROW PUBSUB_CLIENT_ROW(" denyoom")
#define UNSUBSCRIBE_ROW PUBSUB_CLIENT_ROW("")

/* clang-format off */
static const struct command_row pubsub_subcommands[] = {
    {.name = "channels", .run = cmd_pubsub_channels, .arity = -2, PUBSUB_ROW, .since = "2.8.0",
     .summary = "Returns the channels that have subscribers.",
     .complexity = "O(N) where N is the number of channels with subscribers", .syntax = "PUBSUB CHANNELS [pattern]"},
    {.name = "help", .run = cmd_pubsub_help, .arity = 2, .access = ACCESS_FREE, .flags = "loading stale",
     .categories = "@slow", .group = "pubsub", .since = "6.2.0", .summary = "Explains the subcommands.",
     .complexity = "O(1)", .syntax = "PUBSUB HELP"},
    {.name = "numpat", .run = cmd_pubsub_numpat, .arity = 2, PUBSUB_ROW, .since = "2.8.0",
     .summary = "Returns the number of different patterns with subscribers.", .complexity = "O(1)",
     .syntax = "PUBSUB NUMPAT"},
    {.name = "numsub", .run = cmd_pubsub_numsub, .arity = -2, PUBSUB_ROW, .since = "2.8.0",
     .summary = "Returns the number of subscribers of each channel.",
     .complexity = "O(N) where N is the number of channels asked for", .syntax = "PUBSUB NUMSUB [channel ...]"},
    {.name = "shardchannels", .run = cmd_pubsub_shardchannels, .arity = -2, PUBSUB_ROW, .since = "7.0.0",
     .summary = "Returns the sharded channels that have subscribers.",
     .complexity = "O(N) where N is the number of sharded channels with subscribers",
     .syntax = "PUBSUB SHARDCHANNELS [pattern]"},
    {.name = "shardnumsub", .run = cmd_pubsub_shardnumsub, .arity = -2, PUBSUB_ROW, .since = "7.0.0",
     .summary = "Returns the number of subscribers of each sharded channel.",
     .complexity = "O(N) where N is the number of sharded channels asked for",
     .syntax = "PUBSUB SHARDNUMSUB [shardchannel ...]"},
    {0},
};
/* clang-format on */

/* clang-format off */
const struct command_row pubsub_commands[] = {
    {
        .name = "psubscribe", .run = cmd_psubscribe, .arity = -2, SUBSCRIBE_ROW,
        .channels = CHANNELS_PATTERNS, .since = "2.0.0",
        .summary = "Subscribes to the channels that match patterns.",
        .complexity = "O(N) where N is the number of patterns", .syntax = "PSUBSCRIBE pattern [pattern ...]",
    },
    {
        .name = "publish", .run = cmd_publish, .arity = 3, .access = ACCESS_GATED, .channels = CHANNELS_FIRST,
        .flags = "pubsub loading stale fast may_replicate sentinel", .categories = "@pubsub @fast",
        .group = "pubsub", .since = "2.0.0", .summary = "Publishes a message to a channel.",
        .complexity = "O(N+M) where N is the number of subscribers and M the number of patterns anybody listens to",
        .syntax = "PUBLISH channel message",
    },
    {
        .name = "pubsub", .arity = -2, .access = ACCESS_FREE, .flags = "", .categories = "@slow", .group = "pubsub",
        .since = "2.8.0", .summary = "Container for commands about subscriptions.",
        .complexity = "Depends on the subcommand.", .syntax = "PUBSUB subcommand [arg ...]",
        .subcommands = pubsub_subcommands,
    },
    {
        .name = "punsubscribe", .run = cmd_punsubscribe, .arity = -1, UNSUBSCRIBE_ROW, .since = "2.0.0",
        .summary = "Unsubscribes from patterns, or from all of them.",
        .complexity = "O(N) where N is the number of patterns", .syntax = "PUNSUBSCRIBE [pattern ...]",
    },
    {
        .name = "spublish", .run = cmd_spublish, .arity = 3, .access = ACCESS_GATED, .channels = CHANNELS_FIRST,
        .flags = "pubsub loading stale fast may_replicate", .categories = "@pubsub @fast",
        .keys = "NOT_KEY@index:1@range:0,1,0", .group = "pubsub", .since = "7.0.0",
        .summary = "Publishes a message to a sharded channel.",
        .complexity = "O(N) where N is the number of subscribers", .syntax = "SPUBLISH shardchannel message",
    },
    {
        .name = "ssubscribe", .run = cmd_ssubscribe, .arity = -2, SUBSCRIBE_ROW, .channels = CHANNELS_ALL,
        .keys = "NOT_KEY@index:1@range:-1,1,0", .since = "7.0.0", .summary = "Subscribes to sharded channels.",
        .complexity = "O(N) where N is the number of channels",
        .syntax = "SSUBSCRIBE shardchannel [shardchannel ...]",
    },
    {
        .name = "subscribe", .run = cmd_subscribe, .arity = -2, SUBSCRIBE_ROW, .channels = CHANNELS_ALL,
        .since = "2.0.0",
        .summary = "Subscribes to channels.", .complexity = "O(N) where N is the number of channels",
        .syntax = "SUBSCRIBE channel [channel ...]",
    },
    {
        .name = "sunsubscribe", .run = cmd_sunsubscribe, .arity = -1, UNSUBSCRIBE_ROW,
        .keys = "NOT_KEY@index:1@range:-1,1,0", .since = "7.0.0",
        .summary = "Unsubscribes from sharded channels, or from all of them.",
        .complexity = "O(N) where N is the number of channels", .syntax = "SUNSUBSCRIBE [shardchannel ...]",
    },
    {
        .name = "unsubscribe", .run = cmd_unsubscribe, .arity = -1, UNSUBSCRIBE_ROW, .since = "2.0.0",
        .summary = "Unsubscribes from channels, or from all of them.",
        .complexity = "O(N) where N is the number of channels", .syntax = "UNSUBSCRIBE [channel ...]",
    },
    {0},
};
/* clang-format on */
