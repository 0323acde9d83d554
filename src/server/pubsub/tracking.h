/* Client tracking: clients that cache what they read are told when it has changed.
 *
 * By default the server remembers who read which key (tracking_table.h) and tells once. In broadcast mode nothing is
 * remembered: the client is told of every change of a key with one of its prefixes (topics of their own). A client may
 * have another one told in its place.
 *
 *     change of a key -> noted by the worker -> deliveries to the clients' workers; both under the stripe: telling.h
 *
 * A reply that a client was given is always before the invalidation of what it read, and behind the invalidations of
 * what had changed when it was read. */
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
    TRACKING_CACHING = 1 << 5 /* CLIENT CACHING YES or NO was given for the next command */
};

/* Owner: the client's worker. */
struct tracking {
    uint32_t mode;               /* enum tracking_mode */
    struct client_ref *redirect; /* NULL: nobody else is told */
    struct table prefixes;       /* of struct subscription: broadcast mode */
    struct list_node node;       /* worker's tracking_clients */
    struct client *client;
};

void tracking_setup(void); /* after config_setup: adds the option */

/* The client's worker. Takes over the reference in `redirect`; prefixes stay, and are added by broadcast_enter. */
void tracking_enable(struct client *client, uint32_t mode, struct client_ref *redirect);
void tracking_disable(struct client *client);
/* The client's prefixes in ascending order; free with mem_free. Its worker; it tracks. */
struct slice *tracking_prefixes(const struct client *client, uint64_t *count);

/* After a command of a tracking client, its stripes are held still: remembers what it has read. Its worker. */
void tracking_note_read(const struct request *request);
/* The same of a command that a script calls. What a client keeps is the script's reply: the keys the script declares
 * count as read, too. Its worker. */
void tracking_note_script_read(const struct request *script, const struct request *request);
/* A command of the client is over, or was refused: CLIENT CACHING was for that one. command NULL: there is no such. Its
 * worker; it tracks. */
void tracking_command_over(struct client *client, const struct command *command);
void tracking_note_flush(struct worker *worker); /* the gate is held: all keys of a database, or of all, have gone */
void tracking_tell_noted(struct worker *worker); /* for telling.c; the stripes of what was noted are held */
