/* How the server ends, by SHUTDOWN or by a signal: whether data is saved before, and what happens where that fails. */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>

extern const struct lifecycle shutdown_lifecycle;

struct server;

enum shutdown_flag {
    SHUTDOWN_SAVE = 1 << 0, /* save, even if no save point says so; excludes the next */
    SHUTDOWN_NOSAVE = 1 << 1,
    SHUTDOWN_NOW = 1 << 2,  /* wait for nobody */
    SHUTDOWN_FORCE = 1 << 3 /* what fails on the way keeps nobody */
};

void shutdown_setup(void); /* main thread, after config_setup: adds the options */
/* What the options say about this signal (SIGINT or SIGTERM). Any thread. */
unsigned shutdown_flags_of_signal(int signal_number);
/* Is the data saved before, by who has the gate? Any thread. */
bool shutdown_needs_gate(unsigned flags);
/* The server ends soon. False: it cannot do what it should do before, and goes on; the log says why. Any thread; the
 * access is exclusive, or NULL if the gate is not needed. */
struct access;
must_check bool shutdown_begin(struct server *server, unsigned flags, struct access *access);
/* The same by worker 0 itself, in its thread, when nobody else waits for the answer. Where it has to wait for the gate
 * it does nothing and is to be asked again after a wake. */
struct worker;
must_check bool shutdown_by_itself(struct worker *worker, unsigned flags);

/* A signal asks to stop: async-signal-safe. It is served in the next turn that worker 0 has while cron goes on. */
void shutdown_on_signal(int signal_number);
/* Forgets a signal to stop that was not served yet; false: there is none. Any thread. */
bool shutdown_forget_signal(void);
bool shutdown_is_asked(void); /* a signal has come and what it wants is under way; any thread */
