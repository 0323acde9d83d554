/* Pub/sub: clients subscribe to topics (topics.h), whoever publishes reaches all of their workers by mail.
 *
 *     publish -> one encoded payload, one delivery a worker that has subscribers -> each worker to its own clients
 *
 * A subscriber sees the messages of a channel in the order in which they were published, as every other subscriber
 * does; before its next command is served it is shown all that was published before. */
#pragma once

#include "server/core/lifecycle.h"
#include "server/pubsub/topics.h"

extern const struct lifecycle pubsub_lifecycle;

struct client;
struct worker;
struct output;

enum { PUBSUB_KINDS = TOPIC_PREFIX }; /* of topics that are known by SUBSCRIBE and its kin */

/* What a client subscribes to; made with its first subscription. Owner: its worker. */
struct pubsub_session {
    struct table subscriptions[PUBSUB_KINDS]; /* of struct subscription, by name */
    size_t memory_bytes;
};

/* The client's worker. How many channels and patterns, or sharded channels, it has then. */
uint64_t pubsub_subscribe(struct client *client, enum topic_kind kind, struct slice name);
uint64_t pubsub_unsubscribe(struct client *client, enum topic_kind kind, struct slice name);
/* Leaves all of a kind; calls `left` for each with the count that remains. Returns how many there were. */
uint64_t pubsub_unsubscribe_all(struct client *client, enum topic_kind kind,
                                void (*left)(struct slice name, uint64_t count, void *context), void *context);
/* The client's worker in all that follows. Calls `visit` for all it subscribes to of a kind. */
void pubsub_each(const struct client *client, enum topic_kind kind, void (*visit)(struct slice name, void *context),
                 void *context);
uint64_t pubsub_count(const struct client *client, enum topic_kind kind); /* as told in replies */
void pubsub_leave(struct client *client);                                 /* all topics, silently */
/* All that was published so far is in the client's output, as it subscribes and speaks now. For its own commands,
 * outside EXEC, before they change that. */
void pubsub_catch_up(struct client *client);

/* Sends a message to a channel (TOPIC_CHANNEL: also to patterns that fit; TOPIC_SHARD). Returns how many clients get
 * it. The worker's thread; stripes may be held. */
uint64_t pubsub_publish(struct worker *worker, enum topic_kind kind, struct slice channel, struct slice payload);
