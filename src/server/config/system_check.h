/* What of the system under us is known to cost a database dearly: for --check-system and the warnings at start. */
#pragma once

int system_check_report(void); /* prints each check and its result; the exit code: 0 all fine, 1 there is a warning */
void system_check_log(void);   /* warnings go to the log, but for those named in ignore-warnings; main thread,
                                * before the workers start */
