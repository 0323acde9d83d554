/* The process around the server: daemon, pid file, supervision, signals, locale, proc title. Main thread only. */
#pragma once

/* After the configuration was read, before any other thread: log, daemonize, signals. */
void process_setup(int argc, char **argv);
void process_ready(void);    /* listening: pid file, tells the supervisor */
void process_stopping(void); /* a clean stop has begun */
void process_teardown(void); /* removes the pid file */
