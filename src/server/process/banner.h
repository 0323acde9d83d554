/* What a server writes into its log as it starts, for people and for scripts that look for its pid and port. */
#pragma once

/* A picture with version, mode, port and pid, when the log is a terminal or `always-show-logo` asks for it, else one
 * line. After log_setup, in the main thread. */
void banner_write(void);
