/* The process around the server: daemon, pid file, supervision, signals, locale, processors, huge pages, proc title.
 * By the main thread, before the workers start or after they have ended, where it does not say otherwise. */
#pragma once

#include "server/config/options_process.h"

#include <stdbool.h>

/* What signal handlers call. */
struct process_signals {
    void (*stop)(int signal_number); /* SIGINT, SIGTERM */
    void (*wake)(void);              /* worker 0 has something to look at */
};
void process_on_signals(const struct process_signals *hooks); /* before process_setup; kept */
/* After the configuration was read, before any other thread: log, daemonize, signals, what the system is to know. */
void process_setup(void);
void process_bio_begin(void);                      /* threads started from here on are for background work... */
void process_use_cpus_of_child(bool rewrites_aof); /* bgsave-cpulist, aof-rewrite-cpulist: by the child */
void process_bio_end(void);                        /* ...and from here on for clients: bio-cpulist, server-cpulist */
void process_ready(void);                          /* listening: pid file, tells the supervisor */
void process_stopping(void);                       /* a clean stop has begun */
void process_teardown(void);                       /* removes the pid file */

void process_remove_pidfile(void); /* any thread, async-signal-safe; nothing if it was not written */
/* What kind of work this process does, for oom-score-adj-values: a background child says so. False: see the log. */
must_check bool process_set_oom_score(enum oom_role role);
