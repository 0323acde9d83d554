/* Topics: what clients subscribe to - channels, patterns of them, sharded channels, prefixes of keys - and who does.
 *
 *     registry -> topic -> part of a worker -> subscriptions of that worker's clients
 *
 * The registry and what concerns all workers (how many subscribe, in which workers) is guarded by a few locks, one for
 * each shard of the names. A part's subscriptions belong to its worker's thread, which changes them under the lock
 * and reads them without, so delivering takes none.
 *
 * Who publishes gets a ticket: the topic with its age then. Each subscription knows at what age it was made and at what
 * age it was left, so that a message reaches exactly those who subscribed when it was published, whenever their worker
 * comes to deliver it.
 * A topic without subscribers is out of the registry; tickets keep its memory. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "base/table.h"
#include "server/core/client.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct buffer;
struct client;
struct topic_part;

struct topic {
    _Atomic uint32_t refs; /* atomic: the registry's, the subscriptions', the tickets' */
    enum topic_kind kind;  /* const, as hash and name */
    uint64_t hash;
    uint64_t age;     /* subscriptions ever made or left; guarded by the registry's lock, as the next two */
    uint64_t workers; /* bit i: worker i has subscriptions */
    uint32_t subscriber_count;
    _Atomic(struct topic_part *) parts; /* atomic: a chain that only grows, under the lock */
    size_t name_size;
    char name[];
};

/* Owner: the client's worker. */
struct subscription {
    struct client *client;
    struct topic *topic;
    struct topic_part *part;
    uint64_t age;   /* the topic's when it was made */
    uint64_t end;   /* the topic's when it was left */
    uint32_t index; /* in the part's list */
};

/* The subscriptions of one worker to one topic. */
struct topic_part {
    struct topic_part *next;  /* const */
    unsigned worker_index;    /* const */
    uint32_t count, capacity; /* changed by the worker, under the registry's lock; as `items` */
    struct subscription **items;
};

static inline struct slice topic_name(const struct topic *topic)
{
    return slice_make(topic->name, topic->name_size);
}

void topics_setup(void);    /* main thread, before the workers start */
void topics_teardown(void); /* main thread, after the workers have ended */

/* By the client's worker, as the next two. The client does not subscribe to it yet. */
struct subscription *topics_subscribe(enum topic_kind kind, struct slice name, uint64_t hash, struct client *client);
/* By the client's worker. Leaves: no later message counts it, or reaches it. Those before do as long as it is there, so
 * their worker may read its mail before it frees the subscription (which leaves, if nobody did before). */
void topics_leave(struct subscription *subscription);
void topics_unsubscribe(struct subscription **subscription);
uint64_t topics_hash(struct slice name); /* any thread */

/* A message's way to a topic's subscribers. */
struct topic_ticket {
    struct topic *topic; /* a reference */
    uint64_t age;
    uint64_t workers; /* bit i: worker i has subscribers */
};
/* How many workers and subscribers tickets reach. */
struct topic_reach {
    uint64_t workers;
    uint64_t subscriber_count;
};

/* A growing array of tickets; the references are the caller's. */
struct topic_tickets {
    struct topic_ticket *items;
    uint32_t count, capacity;
};
/* Patterns or prefixes: tickets to all for which `fits` is true; no lock is held while it is asked. */
void topics_match(enum topic_kind kind, bool (*fits)(struct slice name, const void *context), const void *context,
                  struct topic_tickets *tickets, struct topic_reach *reach);
void topic_ticket_release(struct topic_ticket *ticket);
void topic_tickets_fini(struct topic_tickets *tickets); /* also releases what is in it */

/* Has anybody subscribed to this channel? A moment's answer. */
bool topics_has(enum topic_kind kind, struct slice name, uint64_t hash);
/* A ticket to the channel (none: its topic is NULL), new tickets to the patterns for those that there are, and `post`,
 * called under the channel's lock with all workers that the message has to reach: so all messages of a channel take
 * their places in the mailboxes in one order, and nobody comes or goes between being counted and being sent to. */
struct topic_message {
    enum topic_kind kind;
    struct slice channel;
    uint64_t hash;
    struct topic_ticket *ticket;
    struct topic_ticket *patterns; /* `pattern_count` of them */
    uint32_t pattern_count;
};
void topics_post(const struct topic_message *message, struct topic_reach *reach,
                 void (*post)(const struct topic_reach *reach, void *context), void *context);

/* Was it subscribed when the ticket was made? */
static inline bool topic_ticket_reaches(const struct topic_ticket *ticket, const struct subscription *subscription)
{
    return subscription->age <= ticket->age && ticket->age < subscription->end;
}

/* A worker's part; NULL: none. Any thread: what it may do with the part is said above. */
static inline struct topic_part *topic_part_of(const struct topic *topic, unsigned worker_index)
{
    struct topic_part *part = atomic_load_explicit(&topic->parts, memory_order_acquire);

    while (part != NULL && part->worker_index != worker_index)
        part = part->next;
    return part;
}

uint64_t topics_count(enum topic_kind kind); /* with at least one subscriber */
uint32_t topics_subscriber_count(enum topic_kind kind, struct slice name);
/* The names that fit the pattern, each as its size (a size_t) and its bytes. Returns how many. */
uint64_t topics_list(enum topic_kind kind, struct slice pattern, struct buffer *names);
size_t topics_memory_bytes(const struct subscription *subscription); /* what one subscription takes, about */
