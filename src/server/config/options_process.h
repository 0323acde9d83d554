/* Options about the process: how the system and its tools see it, and how it ends. As in options.h: numbers any thread,
 * strings and lists at start or in an exclusive section. */
#pragma once

#include "base/rows.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

extern _Atomic int64_t option_crash_log_enabled;        /* global: option storage; bool */
extern _Atomic int64_t option_crash_memcheck_enabled;   /* global: option storage; bool */
extern _Atomic int64_t option_use_exit_on_panic;        /* global: option storage; bool */
extern _Atomic int64_t option_hide_user_data_from_log;  /* global: option storage; bool */
extern _Atomic int64_t option_watchdog_period;          /* global: option storage; ms, 0: off, else at least 200 */
extern _Atomic int64_t option_disable_thp;              /* global: option storage; bool */
extern _Atomic int64_t option_jemalloc_bg_thread;       /* global: option storage; bool */
extern struct option_string option_ignore_warnings;     /* global: option storage; NULL: none */
extern struct option_string option_locale_collate;      /* global: option storage; "": from the environment */
extern struct option_string option_server_cpulist;      /* global: option storage; NULL: none */
extern struct option_string option_bio_cpulist;         /* global: option storage; NULL: none */
extern struct option_string option_bgsave_cpulist;      /* global: option storage; NULL: none */
extern struct option_string option_aof_rewrite_cpulist; /* global: option storage; NULL: none */
extern struct option_string option_unixsocketgroup;     /* global: option storage; NULL: none */
extern struct option_string option_version_override;    /* global: option storage; NULL: our own */

extern _Atomic int64_t option_log_format;           /* global: option storage; enum log_format of base/log.h */
extern _Atomic int64_t option_log_timestamp_format; /* global: option storage; enum log_time */

enum oom_score_mode { OOM_SCORE_NO, OOM_SCORE_RELATIVE, OOM_SCORE_ABSOLUTE };
extern _Atomic int64_t option_oom_score_adj; /* global: option storage; enum oom_score_mode */
enum oom_role { OOM_MASTER, OOM_REPLICA, OOM_CHILD, OOM_ROLE_COUNT };
extern _Atomic int option_oom_score_adj_values[OOM_ROLE_COUNT]; /* global: option storage */

void process_options_clamp(void); /* like options_clamp of options.h, which calls it */

extern const struct option_row process_options[];
extern const size_t process_option_count;
