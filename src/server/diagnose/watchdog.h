/* The watchdog: while `watchdog-period` is not 0, a thread posts an empty mail to each worker. If a worker does not
 * read it within the period, the worker's stack is written to the log, to show what keeps the worker busy; once for
 * each stall. While it is off it costs nothing, and before its first use there is no thread. */
#pragma once

struct server;

/* All by the main thread. */
void watchdog_setup(struct server *server); /* before the workers run */
void watchdog_stop(void);                   /* after they have ended */
void watchdog_teardown(void);               /* after server_destroy, since its mail may still have been in mailboxes */
