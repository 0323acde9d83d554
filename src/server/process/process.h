/* The process: daemon, pid file, supervision, signals, locale, CPU lists, huge pages, title. By the main thread, before
 * the workers start or after they have ended, where it does not say otherwise. */
#pragma once

#include "server/config/options_process.h"

#include <stdbool.h>

/* Functions that signal handlers call. */
struct process_signals {
    void (*stop)(int signal_number); /* SIGINT, SIGTERM */
    void (*wake)(void);              /* wakes worker 0 after a signal */
};
void process_on_signals(const struct process_signals *hooks); /* before process_setup; the struct must stay valid */
/* After the configuration was read, before any other thread: log, daemonize, signals, settings of the process.
 * log_role: as in struct log_options. */
void process_setup(char (*log_role)(void));
void process_bio_begin(void);                      /* threads started from here on do background work */
void process_use_cpus_of_child(bool rewrites_aof); /* bgsave-cpulist, aof-rewrite-cpulist: called by the child */
void process_bio_end(void);  /* threads started from here on serve clients: bio-cpulist, server-cpulist */
void process_ready(void);    /* the sockets are listening: writes the pid file, notifies the supervisor */
void process_stopping(void); /* a clean stop has begun */
void process_teardown(void); /* removes the pid file */

void process_remove_pidfile(void); /* any thread, async-signal-safe; does nothing if it was not written */
/* Sets the oom score for the kind of this process, from oom-score-adj-values; a child calls it, too. False: see the
 * log. */
must_check bool process_set_oom_score(enum oom_role role);
void process_note_role(bool follows); /* with the gate owned: the oom score is that of the server's role */
