/* How the server ends, by SHUTDOWN or by a signal: whether data is saved first, and what happens if that fails. */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>

extern const struct lifecycle shutdown_lifecycle;

struct client;
struct server;

enum shutdown_flag {
    SHUTDOWN_SAVE = 1 << 0, /* saves even without save points; excludes SHUTDOWN_NOSAVE */
    SHUTDOWN_NOSAVE = 1 << 1,
    SHUTDOWN_NOW = 1 << 2,  /* does not wait for replicas */
    SHUTDOWN_FORCE = 1 << 3 /* ignores errors */
};

void shutdown_setup(void); /* main thread, after config_setup: adds the options */
/* Returns the flags that the options give for this signal (SIGINT or SIGTERM). Any thread. */
unsigned shutdown_flags_of_signal(int signal_number);
/* True if the data is saved first, which needs the gate. Any thread. */
bool shutdown_needs_gate(unsigned flags);
/* Begins the end of the server. False: saving has failed, and the server continues; the reason is in the log. Any
 * thread; the access is exclusive, or NULL if the gate is not needed. */
struct access;
must_check bool shutdown_begin(struct server *server, unsigned flags, struct access *access);
/* For a client whose SHUTDOWN gets no other answer than the end of its connection; in its worker's thread. Its socket
 * stays open until the process ends: then all files are as they remain, and nobody holds their lock. With TLS the
 * notice of the end comes before. Returns the descriptor, for whoever calls the end off, or -1. */
int shutdown_keep_open(struct client *client);
/* shutdown_begin by worker 0 itself, in its thread, if no client waits for the answer. If it has to wait for the gate
 * it does nothing; call it again after a wake. */
struct worker;
must_check bool shutdown_by_itself(struct worker *worker, unsigned flags);

/* Requests a stop from a signal handler: async-signal-safe. It is served in the next turn of worker 0 in
 * which cron is not paused. */
void shutdown_on_signal(int signal_number);
/* Forgets a requested stop that was not served yet; false: there is none. Any thread. */
bool shutdown_forget_signal(void);
/* What it asked for was refused: the next one asks anew. It is kept if only the append-only file's first base is in the
 * way: then the server stops when that is complete. Any thread. */
void shutdown_forget_refused(void);
bool shutdown_is_asked(void); /* true while a stop that a signal requested is in progress; any thread */
/* Worker 0. Whether a stop for which no client waits has to wait for the first base of the append-only file: until then
 * the files are those of other data, or there are none. Logs that once. */
bool shutdown_is_put_off(unsigned flags);
