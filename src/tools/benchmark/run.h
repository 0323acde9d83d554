/* run.h: sends what a workload says over many connections and measures how long each request takes.
 *
 * Closed loop: a connection sends a pipeline of requests when the last ones are all answered; a request's time begins
 * when its pipeline is sent. Open loop (a rate): request number i is due at the start + i / rate, whatever happened to
 * those before; its time begins when it is due, also where no connection was free to send it, so a server that stalls
 * for a second shows it in all requests of that second. */
#pragma once

#include "base/compiler.h"
#include "tools/benchmark/latencies.h"
#include "tools/benchmark/workload.h"
#include "tools/link/link.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { RUN_ERROR_BYTES = 400, RUN_THREADS_MOST = 500 };

struct run_node { /* of a cluster */
    struct link_target target;
    const char *const *tags; /* texts of WORKLOAD_TAG_BYTES, each for another slot of it */
    uint32_t tag_count;      /* 0: no cluster */
};

struct run_progress {
    double seconds;    /* since the start */
    uint64_t finished; /* requests */
    double sum_ns;     /* of their times */
};

struct run_plan {
    struct workload *workload;
    const struct run_node *nodes; /* connections are spread over them */
    uint32_t node_count;
    uint32_t clients, pipeline, threads;
    uint64_t requests;    /* 0: no bound */
    uint64_t duration_ms; /* 0: no bound */
    uint64_t warm_up_ms;  /* what begins within it is not counted */
    double rate;          /* requests a second, of all connections; 0: as fast as it goes */
    bool reconnects;      /* a new connection for each pipeline */
    bool tracks;          /* CLIENT TRACKING on */
    bool goes_on;         /* error replies are counted, and do not end the run */
    uint64_t seed;
    void (*look)(const struct run_progress *progress, void *context); /* a few times a second; may be NULL */
    void *context;
};

struct run_result {
    struct latencies *all;                          /* owned */
    struct latencies *each[WORKLOAD_COMMANDS_MOST]; /* owned; of each command, if there are several; else NULL */
    uint64_t finished, errors;                      /* requests */
    double seconds, cpu_seconds;                    /* of all threads of this program */
    char error[RUN_ERROR_BYTES];                    /* why it has failed, or the first error reply */
};

/* False: it has failed, result->error says why. The result is ended with run_result_fini in any case. `stop`: set by
 * a signal, ends it early. */
must_check bool run_it(const struct run_plan *plan, const volatile sig_atomic_t *stop, struct run_result *result);
void run_result_fini(struct run_result *result);

/* Opens connections and waits until `stop`. */
must_check bool run_idle(const struct run_plan *plan, const volatile sig_atomic_t *stop, char error[RUN_ERROR_BYTES]);
