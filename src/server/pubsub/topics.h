/* Topics (channels, patterns, sharded channels, prefixes of keys) and their subscriptions.
 *
 *     registry -> topic -> part of a worker -> subscriptions of that worker's clients
 *
 * A few locks, one for each shard of the names, guard the registry and the facts about all workers (how many subscribe,
 * in which workers). A part's subscriptions belong to its worker's thread, which changes them under the lock and reads
 * them without. So delivering takes no lock.
 *
 * A publisher gets a ticket: the topic with its age. Each subscription knows the topic's age when it was made and when
 * it was left. So a message reaches exactly the clients that were subscribed when it was published, whenever their
 * worker delivers it. A topic without subscribers is not in the registry; tickets keep its memory. */
#pragma once

#include "base/compiler.h"
#include "base/info_row.h"
#include "base/slice.h"
#include "base/table.h"
#include "server/core/client.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern const struct info_row topics_info[];

struct buffer;
struct client;
struct topic_part;

struct topic {
    _Atomic uint32_t refs; /* atomic: references of the registry, of subscriptions and of tickets */
    enum topic_kind kind;  /* const, as are hash and name */
    uint64_t hash;
    uint64_t age;     /* number of subscriptions ever made or left; guarded by the registry's lock, as the next two */
    uint64_t workers; /* bit i: worker i has subscriptions */
    uint32_t subscriber_count;
    _Atomic(struct topic_part *) parts; /* atomic: a list that only grows, under the lock */
    size_t name_size;
    char name[];
};

/* Owner: the client's worker. */
struct subscription {
    struct client *client;
    struct topic *topic;
    struct topic_part *part;
    uint64_t age;   /* age of the topic when it was made */
    uint64_t end;   /* age of the topic when it was left */
    uint32_t index; /* in the part's array */
};

/* The subscriptions of one worker to one topic. */
struct topic_part {
    struct topic_part *next;  /* const */
    unsigned worker_index;    /* const */
    uint32_t count, capacity; /* changed by the worker, under the registry's lock, as is `items` */
    struct subscription **items;
};

static inline struct slice topic_name(const struct topic *topic)
{
    return slice_make(topic->name, topic->name_size);
}

void topics_setup(void);    /* main thread, before the workers start */
void topics_teardown(void); /* main thread, after the workers have ended */

/* By the client's worker, as the next two. The client is not subscribed to the topic. */
struct subscription *topics_subscribe(enum topic_kind kind, struct slice name, uint64_t hash, struct client *client);
/* By the client's worker. Leaves the topic: later messages neither count nor reach the subscription. Earlier messages
 * reach it as long as it exists, so its worker may read its mail before it frees the subscription (which also leaves,
 * if that was not done before). */
void topics_leave(struct subscription *subscription);
void topics_unsubscribe(struct subscription **subscription);
uint64_t topics_hash(struct slice name); /* any thread */

/* A message's list of subscribers of one topic. */
struct topic_ticket {
    struct topic *topic; /* a reference */
    uint64_t age;
    uint64_t workers; /* bit i: worker i has subscribers */
};
/* The workers and the number of subscribers that tickets reach. */
struct topic_reach {
    uint64_t workers;
    uint64_t subscriber_count;
};

/* A growing array of tickets; the caller owns the references. */
struct topic_tickets {
    struct topic_ticket *items;
    uint32_t count, capacity;
};
/* For patterns or prefixes: tickets to all topics for which `fits` returns true. `fits` is called without a lock. */
void topics_match(enum topic_kind kind, bool (*fits)(struct slice name, const void *context), const void *context,
                  struct topic_tickets *tickets, struct topic_reach *reach);
void topic_ticket_release(struct topic_ticket *ticket);
void topic_tickets_fini(struct topic_tickets *tickets); /* also releases its tickets */

/* True if the channel has subscribers at this moment. */
bool topics_has(enum topic_kind kind, struct slice name, uint64_t hash);
/* Takes a ticket to the channel (without subscribers its topic is NULL), renews the given tickets to patterns, and
 * calls `post` under the channel's lock with all workers that the message has to reach. So all messages of a channel
 * have one order in the mailboxes, and the set of subscribers does not change between counting and posting. */
struct topic_message {
    enum topic_kind kind;
    struct slice channel;
    uint64_t hash;
    struct topic_ticket *ticket;
    struct topic_ticket *patterns; /* `pattern_count` tickets */
    uint32_t pattern_count;
};
void topics_post(const struct topic_message *message, struct topic_reach *reach,
                 void (*post)(const struct topic_reach *reach, void *context), void *context);

/* True if the client was subscribed when the ticket was taken. */
static inline bool topic_ticket_reaches(const struct topic_ticket *ticket, const struct subscription *subscription)
{
    return subscription->age <= ticket->age && ticket->age < subscription->end;
}

/* A worker's part; NULL: none. Any thread; the part's comment says what it may do with it. */
static inline struct topic_part *topic_part_of(const struct topic *topic, unsigned worker_index)
{
    struct topic_part *part = atomic_load_explicit(&topic->parts, memory_order_acquire);

    while (part != NULL && part->worker_index != worker_index)
        part = part->next;
    return part;
}

uint64_t topics_count(enum topic_kind kind); /* topics with at least one subscriber */
uint32_t topics_subscriber_count(enum topic_kind kind, struct slice name);
/* Appends the names that match the pattern, each as its size (a size_t) and its bytes. Returns how many. */
uint64_t topics_list(enum topic_kind kind, struct slice pattern, struct buffer *names);
size_t topics_memory_bytes(const struct subscription *subscription); /* approximate memory of one subscription */
