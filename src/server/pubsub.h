/* Pub/sub: clients subscribe to topics (topics.h), whoever publishes reaches all of their workers by mail.
 *
 *     publish -> one encoded payload, one letter a worker that has subscribers -> each worker to its own clients
 *
 * Letters are put into mailboxes at once, also under stripes; workers are woken by pubsub_flush, which comes after
 * them. A subscriber sees the messages of a channel in the order in which they were published, as every other
 * subscriber does; before its next command is served it is shown all that was published before.
 *
 * Letters not yet delivered are bounded: a client whose messages find a worker far behind waits (pubsub_hold) until
 * that worker has caught up. */
#pragma once

#include "server/topics.h"

struct client;
struct worker;
struct output;

enum {
    PUBSUB_BACKLOG_BYTES = 4 << 20, /* letters for one worker, beyond which publishers wait until half are delivered */
    PUBSUB_TURN_BYTES = 1 << 20     /* of letters a worker delivers before it sends what it has */
};

/* What a client subscribes to; made with its first subscription. Owner: its worker. */
struct pubsub_session {
    struct table subscriptions[TOPIC_KINDS]; /* of struct subscription, by name */
    size_t memory_bytes;
};

/* The client's worker. How many channels and patterns, or sharded channels, it has then. */
uint64_t pubsub_subscribe(struct client *client, enum topic_kind kind, struct slice name);
uint64_t pubsub_unsubscribe(struct client *client, enum topic_kind kind, struct slice name);
/* Leaves all of a kind; calls `left` for each with the count that remains. Returns how many there were. */
uint64_t pubsub_unsubscribe_all(struct client *client, enum topic_kind kind,
                                void (*left)(struct slice name, uint64_t count, void *context), void *context);
/* Calls `visit` for all it subscribes to of a kind. */
void pubsub_each(const struct client *client, enum topic_kind kind, void (*visit)(struct slice name, void *context),
                 void *context);
uint64_t pubsub_count(const struct client *client, enum topic_kind kind); /* as told in replies */
void pubsub_leave(struct client *client); /* all topics, silently; also what it waits for */

/* Sends a message to a channel (TOPIC_CHANNEL: also to patterns that fit; TOPIC_SHARD). Returns how many clients get
 * it. The worker's thread; stripes may be held. */
uint64_t pubsub_publish(struct worker *worker, enum topic_kind kind, struct slice channel, struct slice payload);
void pubsub_flush(struct worker *worker); /* wakes who has got letters; no lock held */
/* The client has published, or changed keys whose events are wanted: lets it wait if a worker is far behind. */
void pubsub_hold(struct client *client);
void pubsub_release_held(struct worker *worker); /* those that need not wait any longer; after a wake */
