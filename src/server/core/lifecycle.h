/* Hooks for the start and the end of the server, its workers and its clients. Core calls the hooks and knows no part of
 * the server.
 *
 * A part describes itself as one struct lifecycle. main.c adds all parts in one list, before server_create. Hooks are
 * called in the order of that list; hooks that end something (`_fini`, `_close`, `_end`) in the reverse order. Each
 * hook is optional. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

struct client;
struct server;
struct worker;

struct lifecycle {
    /* Main thread. The store and the workers exist, no worker's thread runs. False: the server cannot start; the reason
     * is in the log. */
    bool (*server_start)(struct server *server);
    /* Main thread. Everything is set up, the workers' threads start next. */
    void (*server_begin)(struct server *server);
    /* Main thread. The workers are gone, the store still exists. Also called after a failed server_start. */
    void (*server_end)(struct server *server);
    /* Worker 0's thread, ten times a second. */
    void (*server_sample)(struct server *server);

    /* The thread that creates the worker, which may be another than the worker's. The part creates its state for this
     * worker. */
    void (*worker_init)(struct worker *worker);
    /* The thread that created the worker. The worker's thread has ended, its mail is read, its loop still exists. */
    void (*worker_fini)(struct worker *worker);
    /* The worker's thread in all hooks below. Before its first turn. */
    void (*worker_start)(struct worker *worker);
    /* After its last turn but one: the worker starts nothing new. Its clients are closed next. */
    void (*worker_stop)(struct worker *worker);
    /* In each turn in which the worker was woken, after its mail. */
    void (*worker_wake)(struct worker *worker);
    /* Does work that was deferred while locks were held (worker->has_deferred). Returns whether work is left. No lock
     * is held. */
    bool (*worker_deferred)(struct worker *worker);
    /* At the end of a turn, if worker_at_turn_end was called in it, or in every turn while lifecycle_every_turn. */
    void (*worker_turn_end)(struct worker *worker);
    /* From inside of a script, when other clients' events were served there. Connections that have ended meanwhile are
     * closing; client_close comes only after the script. The worker is in the gate and has locks. */
    void (*worker_inner_turn)(struct worker *worker);
    void (*worker_inner_begin)(struct worker *worker); /* likewise, before these events */
    /* Once a second, also with DEBUG PAUSE-CRON. */
    void (*worker_second)(struct worker *worker);

    /* The thread of the client's worker in all hooks below. The client is in no list yet. */
    void (*client_open)(struct client *client);
    /* The TLS handshake is done. False: the client is closed. */
    bool (*client_admit)(struct client *client);
    /* The client's memory has changed; called only while client_sizes_matter. */
    void (*client_sized)(struct client *client);
    /* All output of a client with CLIENT_REPLICA was sent, after conn_want_drained or after it had to wait. */
    void (*client_drained)(struct client *client);
    /* The client is killed, not by its own command; it is withdrawn and closed next. */
    void (*client_kill)(struct client *client);
    /* The client gives up its wait, subscriptions and watches. May be called more than once. */
    void (*client_withdraw)(struct client *client);
    /* The client was withdrawn, and its memory is freed next. */
    void (*client_close)(struct client *client);
};

/* Main thread, before the first worker is created. `part` must stay valid. */
void lifecycle_add(const struct lifecycle *part);

extern _Atomic bool lifecycle_every_turn; /* global: atomic, relaxed; worker_turn_end is called in every turn */

/* For core only. */
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
void lifecycle_worker_inner_turn(struct worker *worker);
void lifecycle_worker_inner_begin(struct worker *worker);
void lifecycle_worker_second(struct worker *worker);
void lifecycle_client_open(struct client *client);
bool lifecycle_client_admit(struct client *client);
void lifecycle_client_sized(struct client *client);
void lifecycle_client_drained(struct client *client);
void lifecycle_client_kill(struct client *client);
void lifecycle_client_withdraw(struct client *client);
void lifecycle_client_close(struct client *client);
