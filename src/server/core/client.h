/* A client: one connection with its session. Owned by one worker; all fields are that worker's alone, except the card,
 * which other threads read (and leave requests on) under the worker's roster lock. Functions are for the worker's
 * thread, where they do not say otherwise. */
#pragma once

#include "base/list.h"
#include "net/conn.h"
#include "net/listener.h"
#include "net/resp.h"
#include "server/command/command.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct acl_user;
struct blocked;
struct worker;
struct transaction;
struct watch_set;
struct client_ref;
struct pubsub_session;
struct tracking;
struct parked;
struct blob;

enum client_flag {
    CLIENT_AUTHENTICATED = 1 << 0,
    CLIENT_REPLY_OFF = 1 << 1,       /* CLIENT REPLY OFF */
    CLIENT_REPLY_SKIP_NEXT = 1 << 2, /* CLIENT REPLY SKIP was this command: the next one is silent */
    CLIENT_REPLY_SKIP = 1 << 3,      /* this command is silent */
    CLIENT_NO_EVICT = 1 << 4,
    CLIENT_NO_TOUCH = 1 << 5,
    CLIENT_TLS = 1 << 6,
    CLIENT_UNIX = 1 << 7,
    CLIENT_DEBUG_PROTECTED = 1 << 8,
    CLIENT_BLOCKED = 1 << 9,          /* its command will be answered later: no input is looked at until then */
    CLIENT_MONITOR = 1 << 10,         /* is shown the commands of others */
    CLIENT_PAUSED = 1 << 11,          /* its parked command waits for the end of CLIENT PAUSE */
    CLIENT_PUBSUB = 1 << 12,          /* subscribes to something: with RESP2 it may do little else */
    CLIENT_RESTRICTED = 1 << 13,      /* its user may not do everything: each command is checked */
    CLIENT_TRACKING = 1 << 14,        /* is told of changes of what it has read */
    CLIENT_TRACKING_BROKEN = 1 << 15, /* the client that is told in its place has gone */
    CLIENT_TRACKING_BCAST = 1 << 16,
    CLIENT_OBEYED = 1 << 17,            /* no connection: commands of a file that is loaded; nothing is refused */
    CLIENT_SCRIPT_DEBUG = 1 << 18,      /* its next EVAL is stepped through */
    CLIENT_SCRIPT_DEBUG_SYNC = 1 << 19, /* in place, not in a child */
    CLIENT_MEMORY_SHORT = 1 << 20,      /* before its command there was no room, and nothing to evict: memory_limit.h */
    CLIENT_REPLY_ASIDE = 1 << 21        /* its replies go to client->aside */
};

/* What a client can subscribe to; prefixes are those of client-side caching. */
enum topic_kind { TOPIC_CHANNEL, TOPIC_PATTERN, TOPIC_SHARD, TOPIC_PREFIX, TOPIC_KINDS };

/* What others may ask of a client; served by its worker in its next turn. */
enum client_request_flag {
    CLIENT_REQUEST_KILL = 1 << 0,
    CLIENT_REQUEST_UNBLOCK = 1 << 1,
    CLIENT_REQUEST_CUT = 1 << 2 /* it is sent more than its output limit */
};

/* How it stands with a blocked client's wait. Its end is claimed by a compare-and-swap from CLIENT_WAIT_ON: by the
 * owner (to NONE), by CLIENT UNBLOCK of anybody (to TIMEOUT or ERROR; the owner carries it out), by who fills the key
 * it waits for (to SERVED; the owner gets mail), or by CLIENT KILL (to KILLED: it gets no element from then on). */
enum client_wait {
    CLIENT_WAIT_NONE,
    CLIENT_WAIT_ON,
    CLIENT_WAIT_TIMEOUT,
    CLIENT_WAIT_ERROR,
    CLIENT_WAIT_SERVED,
    CLIENT_WAIT_KILLED
};

/* What others may know about a client. */
struct client_card {
    struct list_node node;                /* guarded by the worker's roster lock */
    uint64_t id;                          /* const */
    int64_t created_us;                   /* const; monotonic */
    int fd;                               /* const */
    char *address;                        /* const: peer "ip:port", then a zero, then our own address */
    char *local_address;                  /* const: points into address */
    char *name;                           /* guarded by the roster lock, replaced by the owner; NULL: none */
    char *library_name, *library_version; /* likewise */
    struct acl_user *user;                /* likewise: a reference, to be replaced by acl_client.h */
    const char *user_name;                /* likewise: that user's */
    struct client_ref *ref;    /* guarded by the roster lock until it is set; NULL: nobody asked for one yet */
    _Atomic uint32_t flags;    /* atomic: enum client_flag as last seen, relaxed */
    _Atomic uint32_t requests; /* atomic: enum client_request_flag */
    _Atomic uint32_t wait;     /* atomic: enum client_wait */
    _Atomic uint32_t db;       /* atomic, relaxed, as all below: a moment's picture */
    _Atomic uint32_t proto;
    _Atomic uint32_t command_id;  /* of the last command; UINT32_MAX: none */
    _Atomic int32_t queued_count; /* MULTI: commands so far; -1: not in MULTI */
    _Atomic uint32_t watched_count;
    _Atomic uint32_t subscription_counts[3]; /* by enum topic_kind, below PUBSUB_KINDS */
    _Atomic bool is_told_for;                /* is told in the place of one that tracks, or was */
    _Atomic int64_t redirect;                /* who gets its invalidations; 0: itself, -1: it does not track */
    _Atomic uint64_t pubsub_bytes;           /* that its subscriptions take */
    _Atomic uint64_t prefix_bytes;           /* that the prefixes take of which it wants to know all changes */
    _Atomic int64_t active_ms;               /* wall clock of the last command */
    _Atomic uint64_t query_bytes, query_capacity, args_bytes;
    _Atomic uint64_t read_bytes; /* of the input, beside query_bytes: what an incomplete command's parser has read */
    _Atomic uint64_t unfinished_bytes; /* memory of the table of an incomplete command's arguments */
    _Atomic uint64_t output_bytes;     /* what waits to be sent, if it has to wait or is much */
    _Atomic uint64_t delivery_bytes;   /* atomic: on their way to it, of what is counted: pubsub.c */
    _Atomic uint64_t output_pieces;    /* of those, behind the first */
    _Atomic uint64_t multi_bytes;      /* of the commands queued */
    _Atomic uint64_t bytes_in, bytes_out;
};

struct client {
    struct conn conn; /* first: the handlers get this */
    struct worker *worker;
    uint64_t id;
    struct resp_parser parser;
    unsigned db;
    uint32_t flags;                  /* enum client_flag */
    uint8_t proto;                   /* 2 or 3 */
    struct transaction *transaction; /* NULL: not in MULTI */
    struct watch_set *watches;       /* NULL: nothing watched */
    uint32_t watched_count;
    struct tracking *tracking;       /* NULL: it does not track */
    struct output *aside;            /* while a command of it runs whose reply waits for mail: telling.h; else NULL */
    struct pubsub_session *pubsub;   /* NULL: it has no subscriptions */
    struct parked *parked;           /* NULL: no command waits */
    struct held_output *held_output; /* NULL: its output does not wait for the disk */
    struct blocked *blocked;         /* NULL: no command waits for a key to be filled */
    uint64_t wait_count;             /* how often it was blocked */
    uint32_t rendezvous_count;       /* those that its reply waits for: it is blocked, and its output held */
    void (*on_unblock)(struct client *client, bool with_error); /* while blocked: see client_block */
    struct blob *large;            /* a large bulk under way: as much of it as has memory yet */
    struct blob *large_before;     /* NULL, or the smaller one whose bytes are being copied: large_bulk.c */
    size_t large_copied;           /* ... so much of it */
    bool large_is_lost;            /* there is no memory for it: its bytes are thrown away as they come */
    size_t large_received;         /* of the bulk, with the piece that is being received */
    size_t large_size;             /* of the whole bulk */
    size_t large_bytes;            /* memory it has, until it is complete */
    uint64_t counted_bytes;        /* its part of its worker's sum: client_limit.c */
    char *audit;                   /* fingerprint under which its commands are logged; NULL: they are not */
    int64_t output_soft_since_ms;  /* when the soft output limit was passed; 0: it is not */
    struct list_node node;         /* worker's clients */
    struct list_node monitor_node; /* worker's monitors, if CLIENT_MONITOR */
    struct list_node held_node;    /* worker's held */
    struct client_card card;
};

/* Takes over an accepted descriptor; false: it was closed again. In the worker's thread. `tls` stays the caller's; NULL
 * if it is no TLS connection. */
struct tls_context;
bool client_open(struct worker *worker, int fd, enum listener_kind kind, struct tls_context *tls);
/* What becomes of its input. Main thread, before the workers start; kept. */
struct client_input {
    size_t (*on_data)(struct client *client, char *data, size_t size); /* returns how many bytes are done with */
    void (*on_direct_done)(struct client *client);                     /* a piece of a large argument has arrived */
};
void client_set_input(const struct client_input *input);
struct client *client_of_conn(struct conn *conn); /* NULL: it is none */
/* Closes it now, for CLIENT_REQUEST_KILL: afterwards it holds nothing that others could come across - no wait, no
 * subscription, no watch; its parked command is not run. One whose script runs just now keeps that until the script's
 * end. The worker's thread, not from a command of this client. */
void client_kill(struct client *client);
void client_close_all(struct worker *worker); /* at the end: no replies are flushed */

void client_assert_owned(const struct client *client); /* this is its worker's thread */

/* Where what it has asked for is written, whatever CLIENT REPLY says. */
static inline struct output *client_output(struct client *client)
{
    return UNLIKELY(client->aside != NULL) ? client->aside : &client->conn.output;
}
static inline bool client_is_authenticated(const struct client *client)
{
    return (client->flags & CLIENT_AUTHENTICATED) != 0;
}
void client_set_authenticated(struct client *client, bool authenticated);
/* A command that replies later blocks its client; whoever answers ends the wait (client_end_wait, true for one caller
 * only), replies, and unblocks it, all in the worker's thread. on_unblock is called there for CLIENT UNBLOCK: it does
 * the same, with the reply of a time-out, or with an error; NULL: CLIENT UNBLOCK does not reach this wait. */
void client_block(struct client *client, void (*on_unblock)(struct client *client, bool with_error));
must_check bool client_end_wait(struct client *client, uint64_t wait_count); /* of the wait with that number */
void client_unblock(struct client *client);       /* sends what was replied, goes on with the input */
void client_serve_unblock(struct client *client); /* the worker, for CLIENT_REQUEST_UNBLOCK */
/* Leaves MULTI, stops watching. */
void client_reset_transaction(struct client *client);
void client_unwatch(struct client *client);
void client_set_name(struct client *client, char **field, struct slice text); /* a field of the card */
/* The card gets what changed: cheap, after each batch. */
void client_update_card(struct client *client);
void client_show_query(struct client *client);  /* only what is received of its requests */
void client_show_output(struct client *client); /* only what it has been sent and what waits */
/* While a command is run its client's card shows it, with the bytes that it takes. */
void client_show_running(struct client *client, const struct command *command, size_t query_bytes, size_t args_bytes);
/* Closes a client that sent more than client-query-buffer-limit without completing a command. */
void client_close_for_query(struct client *client);
/* Tells who wants to know that what it takes may have changed. */
extern _Atomic bool client_sizes_matter; /* global, atomic, relaxed: somebody does */
void client_tell_size(struct client *client);
static inline void client_note_size(struct client *client)
{
    if (UNLIKELY(atomic_load_explicit(&client_sizes_matter, memory_order_relaxed)))
        client_tell_size(client);
}
/* Closes the client if its output has passed a limit. */
void client_check_output(struct client *client);
uint64_t client_output_limit_bytes(const struct client *client); /* the hard limit; UINT64_MAX: there is none */
void client_cut(struct client *client);                          /* for CLIENT_REQUEST_CUT */
/* Closes who has not authenticated and leaves STRANGER_OUTPUT_BYTES of replies unread: what one receive can ask for is
 * less, if its commands have the form of arrays. */
enum { STRANGER_OUTPUT_BYTES = 256 * 1024 };
void client_check_stranger(struct client *client);
/* Something was written to the client that it has not asked for just now: will be sent, counts for its limits. */
void client_sent_unasked(struct client *client);

/* --- cards: any thread --- */

/* Everything the client takes: itself, its buffers, its queue, the keys it watches. */
uint64_t client_card_memory_bytes(const struct client_card *card);
bool client_card_claim(struct client_card *card, enum client_wait how); /* false: it does not wait */
/* "id=3 addr=... " as CLIENT LIST prints it, without newline. The roster is locked, or the card is the caller's. */
struct buffer;
void client_card_print(const struct client_card *card, struct buffer *buffer);
