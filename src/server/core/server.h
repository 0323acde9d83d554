/* The server: workers, store, journal and gate; start, stop, and functions that span workers. */
#pragma once

#include "base/gate.h"
#include "server/core/admission.h"
#include "server/core/script_turn.h"
#include "server/core/worker.h"
#include "store/journal.h"
#include "store/store.h"

enum { RATE_SAMPLES = 16 };

struct server {
    struct store *store; /* const */
    struct journal journal;
    struct gate gate;
    struct script_turn script_turn;
    struct worker *workers;          /* const */
    unsigned worker_count;           /* const */
    _Atomic uint64_t client_count;   /* atomic: number of connections of all workers */
    _Atomic uint64_t next_client_id; /* atomic */
    _Atomic bool stopping;           /* atomic */
    _Atomic bool cron_paused;        /* atomic: relaxed; periodic work is paused (DEBUG PAUSE-CRON) */
    _Atomic bool refuses_clients;    /* atomic: no new clients are accepted, since the server is about to end */
    int64_t started_us;              /* const */
    struct overload overload;        /* see admission.h */
    struct rate_meter {              /* owner: worker 0's thread, except the last line */
        struct rate_sample {
            int64_t at_us;
            uint64_t commands, net_in, net_out, turns, serving_us, waiting;
        } samples[RATE_SAMPLES];
        unsigned next;
        /* atomic: rates per second over the last 1.6 s */
        _Atomic uint64_t commands, net_in, net_out, turns, serving_us, waiting_millis;
    } meter;
};

struct rates {
    double operations, input_bytes, output_bytes, turns, serving_us; /* per second */
    double waiting_commands;                                         /* mean number */
};
void server_rates(const struct server *server, struct rates *rates); /* any thread */
void server_sample_rates(struct server *server);                     /* worker 0, ten times a second */

/* NULL: the setup failed; the reason is in the log. */
struct server *server_create(void);
void server_destroy(struct server **server);
void server_run(struct server *server); /* returns after a clean stop */

struct server *server_instance(void); /* the running server; for INFO and signals */

/* Background turns per second: hz. With dynamic-hz it is doubled (up to 500) until no turn has more than 200 clients to
 * check. Any thread. */
int64_t server_hz(const struct server *server);

static inline bool server_is_stopping(const struct server *server)
{
    return UNLIKELY(atomic_load_explicit(&server->stopping, memory_order_relaxed));
}
/* Any thread: stops cleanly. If the caller owns the gate, the gate stays closed, and no data changes any more. Work to
 * be done before is in upkeep/shutdown.h. */
void server_stop(struct server *server);
/* Any thread: worker 0 checks which signals have arrived. Async-signal-safe. */
void server_wake_from_signal(void);

void server_pause_cron(struct server *server, bool paused); /* any thread */
/* Leaves a request (enum client_request_flag) on the cards for which `wanted` is true, and returns how many. A client
 * to be killed gets no more elements that it waits for. Bit i of *workers (may be NULL): worker i has such clients. By
 * a worker, which wakes the others by deliveries_flush, since in a transaction it holds stripes. */
struct client_card;
unsigned server_request_clients(struct worker *asking, uint32_t request,
                                bool (*wanted)(struct client_card *card, void *context), void *context,
                                uint64_t *workers);
/* Calls `visit` for every client's card, with the roster lock of its worker held. */
void server_each_client(struct server *server, void (*visit)(const struct client_card *card, void *context),
                        void *context);
