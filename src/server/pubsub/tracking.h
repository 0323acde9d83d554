/* Client tracking: clients that cache keys get invalidations when these change.
 *
 * By default the server remembers which client has read which key (tracking_table.h), and sends one invalidation. In
 * broadcast mode it remembers nothing: the client gets an invalidation for every change of a key with one of its
 * prefixes (topics of their own). A client may redirect its invalidations to another client.
 *
 *     change of a key -> noted by the worker -> deliveries to the clients' workers; both with the stripe held
 *
 * A reply comes before the invalidation of the keys it has shown, and after the invalidations of all changes made
 * before it was read. */
#pragma once

#include "base/compiler.h"
#include "base/table.h"
#include "server/core/client.h"
#include "server/core/lifecycle.h"

extern const struct lifecycle tracking_lifecycle;

struct client_ref;
struct option_row;
struct request;
struct store;
struct worker;

enum tracking_mode {
    TRACKING_ON = 1 << 0,
    TRACKING_BCAST = 1 << 1,
    TRACKING_OPTIN = 1 << 2,
    TRACKING_OPTOUT = 1 << 3,
    TRACKING_NOLOOP = 1 << 4,
    TRACKING_CACHING = 1 << 5 /* CLIENT CACHING YES or NO was sent for the next command */
};

/* Owner: the client's worker. */
struct tracking {
    uint32_t mode;               /* enum tracking_mode */
    struct client_ref *redirect; /* NULL: not redirected */
    struct table prefixes;       /* of struct subscription, for broadcast mode */
    struct list_node node;       /* in its worker's list of tracking clients */
    struct client *client;
};

void tracking_setup(void); /* after config_setup: adds the option */

/* The client's worker. Takes over the reference in `redirect`. Prefixes stay; broadcast_enter adds them. */
void tracking_enable(struct client *client, uint32_t mode, struct client_ref *redirect);
void tracking_disable(struct client *client);
/* Returns the client's prefixes in ascending order; free the array with mem_free. Its worker; it tracks. */
struct slice *tracking_prefixes(const struct client *client, uint64_t *count);

/* After a command of a tracking client, its stripes are held still: remembers the keys that it has read. Its worker. */
void tracking_note_read(const struct request *request);
/* The same for a command that a script calls. The client caches the script's reply, so the keys that the script
 * declares count as read, too. Its worker. */
void tracking_note_script_read(const struct request *script, const struct request *request);
/* Call it when a command of the client has ended or was refused: CLIENT CACHING was for that command. command NULL:
 * unknown. Its worker; it tracks. */
void tracking_command_over(struct client *client, const struct command *command);
/* The gate is held: all keys of a database, or of all databases, were deleted. */
void tracking_note_flush(struct worker *worker);
void tracking_tell_noted(struct worker *worker); /* for telling.c; the stripes of what was noted are held */
