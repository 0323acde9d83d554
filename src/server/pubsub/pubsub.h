/* Pub/sub: clients subscribe to topics (topics.h), and a published message reaches their workers by mail.
 *
 *     publish -> one encoded payload, one delivery for each worker with subscribers -> each worker to its own clients
 *
 * Each subscriber sees the messages of a channel in the order in which they were published, the same for all. Before
 * its next command runs, a subscriber gets everything that was published before. */
#pragma once

#include "server/core/lifecycle.h"
#include "server/pubsub/topics.h"

extern const struct lifecycle pubsub_lifecycle;

struct client;
struct worker;
struct output;

enum { PUBSUB_KINDS = TOPIC_PREFIX }; /* kinds of topics for SUBSCRIBE, PSUBSCRIBE and SSUBSCRIBE */

/* A client's subscriptions; created with the first one. Owner: its worker. */
struct pubsub_session {
    struct table subscriptions[PUBSUB_KINDS]; /* of struct subscription, by name */
    size_t memory_bytes;
};

/* The client's worker. Returns the client's number of channels and patterns, or of sharded channels, after the
 * change. */
uint64_t pubsub_subscribe(struct client *client, enum topic_kind kind, struct slice name);
uint64_t pubsub_unsubscribe(struct client *client, enum topic_kind kind, struct slice name);
/* The client's worker. Unsubscribes from all topics of a kind; calls `left` for each with the remaining number. Returns
 * how many there were. */
uint64_t pubsub_unsubscribe_all(struct client *client, enum topic_kind kind,
                                void (*left)(struct slice name, uint64_t count, void *context), void *context);
/* The client's worker in all that follows. Visits the client's subscriptions of a kind. */
void pubsub_each(const struct client *client, enum topic_kind kind, void (*visit)(struct slice name, void *context),
                 void *context);
uint64_t pubsub_count(const struct client *client, enum topic_kind kind); /* the number shown in replies */
void pubsub_leave(struct client *client);                                 /* leaves all topics without messages */
/* Delivers everything that was published so far, with the client's current subscriptions and protocol. The client's own
 * commands call it outside EXEC before they change these, in the client's worker's thread. */
void pubsub_catch_up(struct client *client);

/* Sends a message to a channel (TOPIC_CHANNEL: also to matching patterns; TOPIC_SHARD). Returns how many clients get
 * it. The worker's thread; stripes may be held. */
uint64_t pubsub_publish(struct worker *worker, enum topic_kind kind, struct slice channel, struct slice payload);
