/* Hooks into the lives of the server, its workers and its clients: how a part of the server is told of them without
 * core knowing the part.
 *
 * A part describes itself as one struct lifecycle, and main.c adds all of them in one list, before server_create. Hooks
 * are called in the order of that list, those that end something (`_fini`, `_close`, `_end`) in the reverse order. Each
 * function is optional. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

struct client;
struct server;
struct worker;

struct lifecycle {
    /* Main thread. The store and the workers exist, no worker's thread runs. False: the server cannot start; the log
     * says why. */
    bool (*server_start)(struct server *server);
    /* Main thread. Everything is set up, the workers' threads start next. */
    void (*server_begin)(struct server *server);
    /* Main thread. The workers are gone, the store is still there. Also after a failed server_start. */
    void (*server_end)(struct server *server);
    /* Worker 0's thread, ten times a second. */
    void (*server_sample)(struct server *server);

    /* The thread that makes it, which need not be its own. The part's state for this worker is made anew. */
    void (*worker_init)(struct worker *worker);
    /* The thread that made it; its own has ended, its mail is read, its loop still exists. */
    void (*worker_fini)(struct worker *worker);
    /* The worker's thread in all of the following. Before its first turn. */
    void (*worker_start)(struct worker *worker);
    /* Behind its last turn but one: it takes nothing new. Its clients are closed next. */
    void (*worker_stop)(struct worker *worker);
    /* In each turn in which it was woken, after its mail. */
    void (*worker_wake)(struct worker *worker);
    /* Carries out what was deferred while locks were held (worker->has_deferred). Returns whether something is left. No
     * lock is held. */
    bool (*worker_deferred)(struct worker *worker);
    /* At the end of a turn, if worker_at_turn_end was called in it, or while lifecycle_every_turn. */
    void (*worker_turn_end)(struct worker *worker);
    /* Once a second, also while DEBUG PAUSE-CRON. */
    void (*worker_second)(struct worker *worker);

    /* The client's worker's thread in all of the following. It is in no list yet. */
    void (*client_open)(struct client *client);
    /* Its TLS handshake is done. False: it is closed. */
    bool (*client_admit)(struct client *client);
    /* What it takes has changed; only while client_sizes_matter. */
    void (*client_sized)(struct client *client);
    /* It is killed, from outside of its own commands; it will be withdrawn and closed. */
    void (*client_kill)(struct client *client);
    /* It takes part in nothing any more: no wait, no subscription, no watch. May be called more than once. */
    void (*client_withdraw)(struct client *client);
    /* It has been withdrawn, and its memory goes. */
    void (*client_close)(struct client *client);
};

/* Main thread, before the first worker is made. `part` is kept. */
void lifecycle_add(const struct lifecycle *part);

extern _Atomic bool lifecycle_every_turn; /* global, atomic, relaxed: worker_turn_end is called in every turn */

/* For core alone. */
bool lifecycle_server_start(struct server *server);
void lifecycle_server_begin(struct server *server);
void lifecycle_server_end(struct server *server);
void lifecycle_server_sample(struct server *server);
void lifecycle_worker_init(struct worker *worker);
void lifecycle_worker_fini(struct worker *worker);
void lifecycle_worker_start(struct worker *worker);
void lifecycle_worker_stop(struct worker *worker);
void lifecycle_worker_wake(struct worker *worker);
bool lifecycle_worker_deferred(struct worker *worker);
void lifecycle_worker_turn_end(struct worker *worker);
void lifecycle_worker_second(struct worker *worker);
void lifecycle_client_open(struct client *client);
bool lifecycle_client_admit(struct client *client);
void lifecycle_client_sized(struct client *client);
void lifecycle_client_kill(struct client *client);
void lifecycle_client_withdraw(struct client *client);
void lifecycle_client_close(struct client *client);
