/* A client: a connection with its session. One worker owns it. Only this worker's thread uses the fields, except the
 * card: other threads read the card, and leave requests on it, under the worker's roster lock. Functions are for the
 * worker's thread, where they do not say otherwise. */
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
struct replica;
struct blob;

enum client_flag {
    CLIENT_AUTHENTICATED = 1 << 0,
    CLIENT_REPLY_OFF = 1 << 1,       /* CLIENT REPLY OFF */
    CLIENT_REPLY_SKIP_NEXT = 1 << 2, /* this command was CLIENT REPLY SKIP: the next one is not answered */
    CLIENT_REPLY_SKIP = 1 << 3,      /* this command is not answered */
    CLIENT_NO_EVICT = 1 << 4,
    CLIENT_NO_TOUCH = 1 << 5,
    CLIENT_TLS = 1 << 6,
    CLIENT_UNIX = 1 << 7,
    CLIENT_DEBUG_PROTECTED = 1 << 8,
    CLIENT_BLOCKED = 1 << 9,          /* its command is answered later; until then no input is parsed */
    CLIENT_MONITOR = 1 << 10,         /* gets the commands of other clients (MONITOR) */
    CLIENT_PAUSED = 1 << 11,          /* its parked command waits for the end of CLIENT PAUSE */
    CLIENT_PUBSUB = 1 << 12,          /* has subscriptions: with RESP2 only a few commands are allowed */
    CLIENT_RESTRICTED = 1 << 13,      /* its user may not do everything: each command is checked */
    CLIENT_TRACKING = 1 << 14,        /* gets invalidations for keys that it has read */
    CLIENT_TRACKING_BROKEN = 1 << 15, /* the client that its invalidations are redirected to has gone */
    CLIENT_TRACKING_BCAST = 1 << 16,
    CLIENT_OBEYED = 1 << 17, /* has no connection: runs commands of a file that is loading; no command is refused */
    CLIENT_SCRIPT_DEBUG = 1 << 18,      /* its next EVAL runs in the debugger */
    CLIENT_SCRIPT_DEBUG_SYNC = 1 << 19, /* in this process, not in a child */
    /* Before its command, memory was above the limit and no key could be evicted: memory_limit.h. */
    CLIENT_MEMORY_SHORT = 1 << 20,
    CLIENT_REPLY_ASIDE = 1 << 21, /* its replies go to client->aside */
    /* A replica, which has asked for the stream of changes: its connection is for that alone. */
    CLIENT_REPLICA = 1 << 22,
    CLIENT_MASTER = 1 << 23,        /* only on a card: the link to the master, which is no client */
    CLIENT_OF_MASTER = 1 << 24,     /* CLIENT_OBEYED, for the stream of a master */
    CLIENT_AS_MASTER = 1 << 25,     /* may send RREPLAY (DEBUG FORCE-MASTER) */
    CLIENT_CAPA_REDIRECT = 1 << 26, /* CLIENT CAPA redirect: a replica sends it to its master */
    CLIENT_READONLY = 1 << 27,      /* READONLY: then it reads here */
    CLIENT_IMPORT_SOURCE = 1 << 28  /* it copies data from another server (import-mode): for it no key expires */
};

/* Kinds of subscriptions; prefixes are those of client-side caching. */
enum topic_kind { TOPIC_CHANNEL, TOPIC_PATTERN, TOPIC_SHARD, TOPIC_PREFIX, TOPIC_KINDS };

/* Requests that other threads may leave on a client's card. The client's worker serves them in its next turn. */
enum client_request_flag {
    CLIENT_REQUEST_KILL = 1 << 0,
    CLIENT_REQUEST_UNBLOCK = 1 << 1,
    CLIENT_REQUEST_CUT = 1 << 2 /* its output limit is exceeded */
};

/* State of a blocked client's wait. A compare-and-swap from CLIENT_WAIT_ON claims its end: by the owner (to NONE); by
 * CLIENT UNBLOCK of any client (to TIMEOUT or ERROR; the owner carries it out), and likewise by the thread that makes
 * this server a replica (to DEMOTED); by the worker that fills the key (to
 * SERVED; the owner gets mail); by CLIENT KILL (to KILLED: the client gets no element from then on). */
enum client_wait {
    CLIENT_WAIT_NONE,
    CLIENT_WAIT_ON,
    CLIENT_WAIT_TIMEOUT,
    CLIENT_WAIT_ERROR,
    CLIENT_WAIT_DEMOTED,
    CLIENT_WAIT_SERVED,
    CLIENT_WAIT_KILLED
};

/* The facts about a client that other threads may read. */
struct client_card {
    struct list_node node;                /* guarded by the worker's roster lock */
    const struct worker *worker;          /* const; NULL: a copy, which is its maker's alone */
    uint64_t id;                          /* const */
    int64_t created_us;                   /* const; monotonic */
    int fd;                               /* const */
    char *address;                        /* const: peer "ip:port", then a zero byte, then the server's address */
    char *local_address;                  /* const: points into address */
    char *name;                           /* guarded by the roster lock; the owner replaces it; NULL: none */
    char *library_name, *library_version; /* likewise */
    struct acl_user *user;                /* likewise: a reference; acl_client.h replaces it */
    const char *user_name;                /* likewise: name of that user */
    struct client_ref *ref;               /* guarded by the roster lock until it is set; NULL: not used yet */
    _Atomic uint32_t flags;               /* atomic: relaxed; a recent copy of client.flags */
    _Atomic uint32_t requests;            /* atomic: enum client_request_flag */
    _Atomic uint32_t wait;                /* atomic: enum client_wait */
    _Atomic uint32_t db;                  /* atomic: relaxed, as all fields below: recent values */
    _Atomic uint32_t proto;
    _Atomic uint32_t command_id;  /* id of the last command; UINT32_MAX: none */
    _Atomic int32_t queued_count; /* MULTI: number of queued commands; -1: not in MULTI */
    _Atomic uint32_t watched_count;
    _Atomic uint32_t subscription_counts[3]; /* by enum topic_kind, below PUBSUB_KINDS */
    _Atomic bool is_told_for;                /* a tracking client redirects, or has redirected, invalidations to it */
    _Atomic int64_t redirect;      /* id of the client that gets its invalidations; 0: itself, -1: no tracking */
    _Atomic uint64_t pubsub_bytes; /* memory of its subscriptions */
    _Atomic uint64_t prefix_bytes; /* memory of the prefixes that it tracks with BCAST */
    _Atomic int64_t active_ms;     /* wall clock time of the last command */
    _Atomic uint64_t query_bytes, query_capacity, args_bytes;
    /* In addition to query_bytes: bytes that the parser has read of an incomplete command. */
    _Atomic uint64_t read_bytes;
    _Atomic uint64_t unfinished_bytes; /* memory of the table of an incomplete command's arguments */
    _Atomic uint64_t output_bytes;     /* unsent output, if it has to wait or is large */
    _Atomic uint64_t delivery_bytes;   /* atomic: counted deliveries on their way to it: pubsub.c */
    _Atomic uint64_t output_pieces;    /* number of pieces of unsent output after the first one */
    _Atomic uint64_t multi_bytes;      /* memory of the queued commands */
    _Atomic uint64_t bytes_in, bytes_out;
    _Atomic uint64_t command_count; /* commands that have run for it */
    _Atomic uint64_t reads;         /* how often bytes came from it */
    /* Commands that were read together, a group at most, and ran: their number, and that of the groups. */
    _Atomic uint64_t grouped_count, group_count;
};

struct client {
    struct conn conn; /* first member: the handlers get this */
    struct worker *worker;
    uint64_t id;
    struct resp_parser parser;
    unsigned db;
    uint32_t flags;                  /* enum client_flag */
    uint8_t proto;                   /* 2 or 3 */
    struct transaction *transaction; /* NULL: not in MULTI */
    struct watch_set *watches;       /* NULL: no watched keys */
    uint32_t watched_count;
    struct tracking *tracking; /* NULL: no tracking */
    /* Where the reply goes while its command runs, if it has to wait for mail: telling.h; otherwise NULL. */
    struct output *aside;
    struct pubsub_session *pubsub;   /* NULL: no subscriptions */
    struct parked *parked;           /* NULL: no parked command */
    struct held_output *held_output; /* NULL: its output does not wait for the disk */
    struct blocked *blocked;         /* NULL: no command waits for a key */
    struct replica *replica;         /* what it has told of itself as a replica; NULL: nothing */
    struct sender *sender;           /* it is a link to an active node; NULL: it is not */
    /* What it sends is not commands any more; NULL: it is. Returns how many bytes were consumed. */
    size_t (*on_input)(struct client *client, char *data, size_t size);
    uint64_t wait_count;     /* how often it was blocked */
    uint64_t written_offset; /* the journal's offset behind its last write; 0: none while the journal was on */
    /* Number of rendezvous that its reply waits for: it is blocked, and its output is held. */
    uint32_t rendezvous_count;
    void (*on_unblock)(struct client *client, const char *error); /* while blocked: see client_block */
    struct blob *large;            /* large bulk string being received: the part with memory so far */
    struct blob *large_before;     /* NULL, or the smaller blob whose bytes are being copied: large_bulk.c */
    size_t large_copied;           /* bytes copied so far */
    bool large_is_lost;            /* there is no memory for it: its bytes are discarded */
    size_t large_received;         /* bytes of the bulk string received, with the piece being received */
    size_t large_size;             /* size of the whole bulk string */
    size_t large_bytes;            /* memory of the incomplete bulk string */
    uint64_t counted_bytes;        /* its share of its worker's sum: client_limit.c */
    char *audit;                   /* certificate fingerprint with which its commands are logged; NULL: no audit log */
    int64_t output_soft_since_ms;  /* time when the soft output limit was exceeded; 0: it is not */
    struct list_node node;         /* in worker.clients */
    struct list_node monitor_node; /* in the worker's monitors, if CLIENT_MONITOR */
    struct list_node held_node;    /* in worker.held */
    struct client_card card;
};

/* Takes over an accepted descriptor; false: it was closed again. In the worker's thread. The caller keeps its reference
 * to `tls`; NULL: a connection without TLS. */
struct tls_context;
bool client_open(struct worker *worker, int fd, enum listener_kind kind, struct tls_context *tls);
/* Handlers of client input. Main thread, before the workers start; the struct must stay valid. */
struct client_input {
    size_t (*on_data)(struct client *client, char *data, size_t size); /* returns how many bytes were consumed */
    void (*on_direct_done)(struct client *client);                     /* a part of a large argument has arrived */
};
void client_set_input(const struct client_input *input);

struct client *client_of_conn(struct conn *conn); /* NULL: not a client's connection */
/* Closes the client now, for CLIENT_REQUEST_KILL. Afterwards it has no wait, no subscription and no watched key, and
 * its parked command is not run. A client whose script is running keeps all of this until the script ends. The worker's
 * thread, not from a command of this client. */
void client_kill(struct client *client);
void client_close_all(struct worker *worker); /* at shutdown: replies are not sent */

void client_assert_owned(const struct client *client); /* asserts that the caller is its worker's thread */

/* The output for the client's own commands, independent of CLIENT REPLY. */
static inline struct output *client_output(struct client *client)
{
    return UNLIKELY(client->aside != NULL) ? client->aside : &client->conn.output;
}
static inline bool client_is_authenticated(const struct client *client)
{
    return (client->flags & CLIENT_AUTHENTICATED) != 0;
}
void client_set_authenticated(struct client *client, bool authenticated);
/* A command that replies later blocks its client. The code that answers ends the wait (client_end_wait, which returns
 * true for one caller only), replies, and unblocks the client, all in the worker's thread. on_unblock is called there
 * for CLIENT UNBLOCK, and when this server becomes a replica: it does the same, with this error, or (NULL) with the
 * reply of a timeout. on_unblock NULL: neither ends this wait, nor does the end of the client's stream. */
void client_block(struct client *client, void (*on_unblock)(struct client *client, const char *error));
must_check bool client_end_wait(struct client *client, uint64_t wait_count); /* ends the wait with that number */
void client_unblock(struct client *client);       /* sends the reply and continues with the input */
void client_serve_unblock(struct client *client); /* the worker, for CLIENT_REQUEST_UNBLOCK */
/* True if a command with these flags is not for this server, which follows a master, but for that (role_redirect). */
must_check bool client_is_for_master(const struct client *client, uint32_t command_flags);
/* Leaves MULTI and unwatches all keys. */
void client_reset_transaction(struct client *client);
void client_unwatch(struct client *client);
void client_set_name(struct client *client, char **field, struct slice text); /* sets a field of the card */
/* Updates the card: cheap, after each batch. */
void client_update_card(struct client *client);
void client_show_query(struct client *client);  /* updates only the sizes of received requests */
void client_show_output(struct client *client); /* updates only the size of its output */
/* Updates the card while a command runs, with the memory of its arguments. */
void client_show_running(struct client *client, const struct command *command, size_t query_bytes, size_t args_bytes);
/* Closes a client whose incomplete command exceeds client-query-buffer-limit. */
void client_close_for_query(struct client *client);
/* Tells other parts that the client's memory may have changed. */
extern _Atomic bool client_sizes_matter; /* global: atomic, relaxed; a part wants to know */
void client_tell_size(struct client *client);
static inline void client_note_size(struct client *client)
{
    if (UNLIKELY(atomic_load_explicit(&client_sizes_matter, memory_order_relaxed)))
        client_tell_size(client);
}
/* Closes the client if its output exceeds a limit. */
void client_check_output(struct client *client);
uint64_t client_output_limit_bytes(const struct client *client); /* the hard limit; UINT64_MAX: none */
void client_cut(struct client *client);                          /* for CLIENT_REQUEST_CUT */
/* Closes a client that is not authenticated and has more than STRANGER_OUTPUT_BYTES of unread replies. The replies to
 * one receive are smaller, if its commands are arrays. */
enum { STRANGER_OUTPUT_BYTES = 256 * 1024 };
void client_check_stranger(struct client *client);
/* Call it after writing output that is not a reply to the current command: sends it, and checks the output limits. */
void client_sent_unasked(struct client *client);

/* --- cards: any thread --- */

/* Memory of the client: struct, buffers, queued commands and watched keys. */
uint64_t client_card_memory_bytes(const struct client_card *card);
bool client_card_claim(struct client_card *card, enum client_wait how); /* false: the client does not wait */
/* Appends the line of CLIENT LIST, "id=3 addr=... ", without newline. The roster is locked, or the card is the
 * caller's own or a copy. */
struct buffer;
void client_card_print(const struct client_card *card, struct buffer *buffer);
/* Its letters in the field `flags`, with a zero byte behind them. */
#define CLIENT_FLAG_LETTERS "OSMPxbtRBUreTIN"
void client_card_flags(const struct client_card *card, char letters[sizeof(CLIENT_FLAG_LETTERS)]);
/* Its letters in the field `capa`, likewise: what it said with CLIENT CAPA. */
#define CLIENT_CAPA_LETTERS "r"
void client_card_capa(const struct client_card *card, char letters[sizeof(CLIENT_CAPA_LETTERS)]);
