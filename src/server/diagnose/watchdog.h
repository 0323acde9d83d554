/* The watchdog: while `watchdog-period` is not 0, a thread sends each worker an empty letter and, if that is not opened
 * within the period, writes the worker's stack to the log: it shows what keeps the worker from its clients. Once for
 * each time it stalls. Off it costs nothing: there is not even a thread until it is used first. */
#pragma once

struct server;

/* All by the main thread. */
void watchdog_setup(struct server *server); /* before the workers run */
void watchdog_stop(void);                   /* after they have ended */
void watchdog_teardown(void);               /* after server_destroy: letters may have lain in mailboxes */
