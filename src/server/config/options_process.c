#include "server/config/options_process.h"

#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/thread.h"
#include "server/config/options.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

_Atomic int64_t option_crash_log_enabled;                /* global: option storage */
_Atomic int64_t option_crash_memcheck_enabled;           /* global: option storage */
_Atomic int64_t option_use_exit_on_panic;                /* global: option storage */
_Atomic int64_t option_hide_user_data_from_log;          /* global: option storage */
_Atomic int64_t option_watchdog_period;                  /* global: option storage */
_Atomic int64_t option_disable_thp;                      /* global: option storage */
_Atomic int64_t option_jemalloc_bg_thread;               /* global: option storage */
struct option_string option_ignore_warnings;             /* global: option storage */
struct option_string option_locale_collate;              /* global: option storage */
struct option_string option_server_cpulist;              /* global: option storage */
struct option_string option_bio_cpulist;                 /* global: option storage */
struct option_string option_bgsave_cpulist;              /* global: option storage */
struct option_string option_aof_rewrite_cpulist;         /* global: option storage */
struct option_string option_unixsocketgroup;             /* global: option storage */
struct option_string option_version_override;            /* global: option storage */
_Atomic int64_t option_log_format;                       /* global: option storage */
_Atomic int64_t option_log_timestamp_format;             /* global: option storage */
_Atomic int64_t option_oom_score_adj;                    /* global: option storage */
_Atomic int option_oom_score_adj_values[OOM_ROLE_COUNT]; /* global: option storage */

enum { WATCHDOG_LEAST_MS = 200, OOM_SCORE_MOST = 2000 };

static bool refuse(char *error, size_t error_size, const char *reason)
{
    snprintf(error, error_size, "%s", reason);
    return false;
}

static bool set_oom_values(const struct option_row *row, const struct slice *words, size_t count, char *error,
                           size_t error_size)
{
    int64_t values[OOM_ROLE_COUNT];

    gate_assert_alone();
    (void)row;
    if (count != OOM_ROLE_COUNT)
        return refuse(error, error_size, "wrong number of arguments");
    for (size_t i = 0; i < count; i++) {
        if (!number_parse_i64(words[i], &values[i]) || values[i] < -OOM_SCORE_MOST || values[i] > OOM_SCORE_MOST)
            return refuse(error, error_size, "Invalid oom-score-adj-values, elements must be between -2000 and 2000.");
    }
    for (size_t i = 0; i < count; i++)
        atomic_store_explicit(&option_oom_score_adj_values[i], (int)values[i], memory_order_relaxed);
    return true;
}

static void get_oom_values(const struct option_row *row, struct buffer *buffer)
{
    (void)row;
    for (size_t i = 0; i < OOM_ROLE_COUNT; i++)
        buffer_printf(buffer, "%s%d", i == 0 ? "" : " ",
                      atomic_load_explicit(&option_oom_score_adj_values[i], memory_order_relaxed));
}

void process_options_clamp(void)
{
    int64_t period = OPTION_GET(option_watchdog_period);

    gate_assert_alone();
    if (period > 0 && period < WATCHDOG_LEAST_MS)
        atomic_store_explicit(&option_watchdog_period, WATCHDOG_LEAST_MS, memory_order_relaxed);
}

static const char *apply_watchdog(const struct option_row *row)
{
    (void)row;
    process_options_clamp();
    return NULL;
}

static const char *check_cpus(const struct option_row *row, int64_t number, struct slice text)
{
    (void)row;
    (void)number;
    return text.size == 0 || thread_cpus_are_valid(text.data)
               ? NULL
               : "Invalid list of processors: numbers and ranges, as 0,2-5,8-14:2";
}

/* A locale that this machine lacks is refused at once, and the current one stays in use. */
static const char *check_collate(const struct option_row *row, int64_t number, struct slice text)
{
    char *name = mem_copy(text.data, text.size);
    locale_t locale = newlocale(LC_COLLATE_MASK, name, (locale_t)0);

    (void)row;
    (void)number;
    mem_free(name);
    if (locale == (locale_t)0)
        return text.size == 0 ? NULL : "Invalid locale name";
    freelocale(locale);
    return NULL;
}

static const char *apply_log_format(const struct option_row *row)
{
    (void)row;
    log_set_format((enum log_format)OPTION_GET(option_log_format),
                   (enum log_time)OPTION_GET(option_log_timestamp_format));
    return NULL;
}

static const struct option_enum log_formats[] = {{"legacy", LOG_FORMAT_LINES},
                                                 {"logfmt", LOG_FORMAT_PAIRS},
                                                 {"json", LOG_FORMAT_JSON},
                                                 {NULL, 0}};
static const struct option_enum log_times[] = {{"legacy", LOG_TIME_DATE},
                                               {"iso8601", LOG_TIME_ISO_8601},
                                               {"milliseconds", LOG_TIME_MILLISECONDS},
                                               {NULL, 0}};
static const struct option_enum oom_modes[] = {
    {"no", OOM_SCORE_NO},
    {"yes", OOM_SCORE_RELATIVE},
    {"relative", OOM_SCORE_RELATIVE},
    {"absolute", OOM_SCORE_ABSOLUTE},
    {NULL, 0},
};

#define TEXT_OR_NONE OPTION_EMPTY_IS_NULL

const struct option_row process_options[] = {
    ROW_BOOL("crash-log-enabled", &option_crash_log_enabled, 1, OPTION_MUTABLE,
             "A crash writes a report to the log: stacks, registers, the running command, INFO."),
    ROW_BOOL("crash-memcheck-enabled", &option_crash_memcheck_enabled, 1, OPTION_MUTABLE,
             "The crash report includes a check of the memory."),
    ROW_BOOL("use-exit-on-panic", &option_use_exit_on_panic, 0, OPTION_MUTABLE | OPTION_HIDDEN,
             "A failed assertion ends the process with exit code 1, without a core file."),
    ROW_BOOL("hide-user-data-from-log", &option_hide_user_data_from_log, 0, OPTION_MUTABLE,
             "Hide the arguments of commands in the crash report."),
    ROW_INT("watchdog-period", &option_watchdog_period, 0, 0, INT32_MAX, OPTION_MUTABLE | OPTION_HIDDEN,
            "Milliseconds after which the stack of a stuck worker is logged; 0: never.", .apply = apply_watchdog),
    ROW_BOOL("disable-thp", &option_disable_thp, 1, OPTION_IMMUTABLE,
             "Disable transparent huge pages for the process."),
    ROW_BOOL("jemalloc-bg-thread", &option_jemalloc_bg_thread, 1, OPTION_MUTABLE,
             "A thread of the allocator releases unused pages."),
    ROW_STRING("ignore-warnings", &option_ignore_warnings, NULL, OPTION_MUTABLE | TEXT_OR_NONE,
               "Names of checks (see --check-system) that do not warn at start."),
    ROW_STRING("locale-collate", &option_locale_collate, "", OPTION_MUTABLE,
               "Locale that orders strings; empty: that of the environment.", .check = check_collate),
    ROW_STRING("server-cpulist", &option_server_cpulist, NULL, TEXT_OR_NONE, "Processors for the worker threads.",
               .alias = "server_cpulist", .check = check_cpus),
    ROW_STRING("bio-cpulist", &option_bio_cpulist, NULL, TEXT_OR_NONE, "Processors for background threads.",
               .alias = "bio_cpulist", .check = check_cpus),
    ROW_STRING("bgsave-cpulist", &option_bgsave_cpulist, NULL, TEXT_OR_NONE,
               "Processors for the child process of BGSAVE.", .alias = "bgsave_cpulist", .check = check_cpus),
    ROW_STRING("aof-rewrite-cpulist", &option_aof_rewrite_cpulist, NULL, TEXT_OR_NONE,
               "Processors for the child process that rewrites the AOF.", .alias = "aof_rewrite_cpulist",
               .check = check_cpus),
    ROW_STRING("unixsocketgroup", &option_unixsocketgroup, NULL, TEXT_OR_NONE, "Group of the unix socket's file."),
    ROW_STRING("version-override", &option_version_override, NULL, TEXT_OR_NONE,
               "Version that INFO reports as keydb_version."),
    ROW_ENUM("log-format", &option_log_format, LOG_FORMAT_LINES, log_formats, OPTION_MUTABLE,
             "Form of lines in the log: legacy, logfmt (name=value pairs) or json (an object a line).",
             .apply = apply_log_format),
    ROW_ENUM("log-timestamp-format", &option_log_timestamp_format, LOG_TIME_DATE, log_times, OPTION_MUTABLE,
             "Form of times in the log: legacy, iso8601, milliseconds (since 1970).", .apply = apply_log_format),
    ROW_ENUM("oom-score-adj", &option_oom_score_adj, OOM_SCORE_NO, oom_modes, OPTION_MUTABLE,
             "Whether the process sets its OOM score: no, relative (yes), absolute."),
    ROW_SPECIAL("oom-score-adj-values", set_oom_values, get_oom_values, "0 200 800", OPTION_MUTABLE | OPTION_MULTI_ARG,
                "OOM scores of a master, a replica and a child process."),
};
const size_t process_option_count = countof(process_options);
