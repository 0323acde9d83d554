/* Checks for system settings that are known to slow a database down: for --check-system and the warnings at start. */
#pragma once

int system_check_report(void); /* prints each check and its result; exit code 0: all fine, 1: there is a warning */
/* Logs warnings, except those named in ignore-warnings; main thread, before the workers start. */
void system_check_log(void);
