/* The first lines in the log of a starting server, for people and for scripts that need its pid and port. */
#pragma once

/* Writes a logo with version, mode, port and pid, if the log is a terminal or `always-show-logo` is yes, otherwise one
 * line. After log_setup, in the main thread. */
void banner_write(void);
