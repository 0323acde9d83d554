#include "server/process/process.h"

#include "base/assert.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/thread.h"
#include "server/config/config.h"
#include "server/config/options.h"
#include "server/config/options_process.h"
#include "server/config/system_check.h"
#include "server/process/process_title.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifdef HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>
#endif

static enum supervised_mode supervisor = SUPERVISED_NO;
static bool pidfile_written;
static char pidfile_name[PATH_MAX]; /* absolute: `dir` may change */
static cpu_set_t given_cpus;        /* the processors at the start of the process */
static bool knows_given_cpus;
static bool oom_is_adjusted;                  /* the score is ours at the moment */
static enum oom_role oom_server = OOM_MASTER; /* owner: the thread that owns the gate */
static int oom_base; /* the score before the first change; owner: the thread that owns the gate */

static void tell_supervisor(const char *message)
{
#ifdef HAVE_LIBSYSTEMD
    if (supervisor == SUPERVISED_SYSTEMD)
        sd_notify(0, message);
#else
    (void)message;
#endif
}

static void find_supervisor(void)
{
    enum supervised_mode wanted = (enum supervised_mode)OPTION_GET(option_supervised);
    bool has_upstart = getenv("UPSTART_JOB") != NULL, has_systemd = getenv("NOTIFY_SOCKET") != NULL;

    if (wanted == SUPERVISED_AUTO)
        wanted = has_upstart ? SUPERVISED_UPSTART : has_systemd ? SUPERVISED_SYSTEMD : SUPERVISED_NO;
    if (wanted == SUPERVISED_UPSTART && !has_upstart) {
        log_warning("Upstart supervision requested, but UPSTART_JOB not found!");
        wanted = SUPERVISED_NO;
    }
    if (wanted == SUPERVISED_SYSTEMD && !has_systemd) {
        log_warning("Systemd supervision requested or auto-detected, but NOTIFY_SOCKET not found!");
        wanted = SUPERVISED_NO;
    }
    supervisor = wanted;
    if (supervisor == SUPERVISED_UPSTART) {
        log_notice("Supervised by upstart, will stop to signal readiness.");
        raise(SIGSTOP);
        unsetenv("UPSTART_JOB");
    }
    tell_supervisor("STATUS=KeyDB is loading...\n");
}

static void daemonize(void)
{
    int null;

    thread_assert_only(); /* a child gets the thread that forks, and no other */
    if (fork() != 0)
        _exit(0);
    setsid();
    null = open("/dev/null", O_RDWR);
    if (null < 0)
        return;
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    if (null > STDERR_FILENO)
        close(null);
}

static const struct process_signals *signals; /* const once they are set */

void process_on_signals(const struct process_signals *hooks)
{
    assert(hooks->stop != NULL && hooks->wake != NULL);
    assert(signals == NULL);
    gate_assert_main_alone();
    signals = hooks;
}

static void on_stop_signal(int signal_number)
{
    int saved = errno;

    if (signals != NULL)
        signals->stop(signal_number);
    errno = saved;
}

static void on_hangup(int signal_number)
{
    int saved = errno;

    (void)signal_number;
    log_reopen_from_signal();
    if (signals != NULL)
        signals->wake();
    errno = saved;
}

static void set_signals(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_stop_signal;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = on_hangup;
    action.sa_flags = SA_RESTART;
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow fails to be written, as on a full disk */
}

/* --- settings of the process in the kernel --- */

static bool write_score(int score)
{
    char text[16];
    int size = snprintf(text, sizeof(text), "%d", score);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, (size_t)size) == size;

    assert(size > 0 && (size_t)size < sizeof(text));
    if (!done)
        log_warning("Unable to write oom_score_adj %d: %s", score, strerror(errno));
    if (fd >= 0)
        close(fd);
    return done;
}

static bool read_score(int *score)
{
    FILE *file = fopen("/proc/self/oom_score_adj", "re");
    bool done = file != NULL && fscanf(file, "%d", score) == 1;

    if (!done)
        log_warning("Unable to read oom_score_adj: %s", strerror(errno));
    if (file != NULL)
        fclose(file);
    return done;
}

/* Relative scores count from the score before the first change; "no" restores it. */
bool process_set_oom_score(enum oom_role role)
{
    enum oom_score_mode mode = (enum oom_score_mode)OPTION_GET(option_oom_score_adj);
    int score = atomic_load_explicit(&option_oom_score_adj_values[role], memory_order_relaxed);

    assert(role < OOM_ROLE_COUNT);
    if (mode == OOM_SCORE_NO) {
        if (!oom_is_adjusted)
            return true;
        oom_is_adjusted = false;
        return write_score(oom_base);
    }
    if (!oom_is_adjusted && !read_score(&oom_base))
        return false;
    oom_is_adjusted = true;
    score = mode == OOM_SCORE_RELATIVE ? oom_base + score : score;
    return write_score(MIN(MAX(score, -1000), 1000));
}

void process_note_role(bool follows)
{
    gate_assert_alone();
    oom_server = follows ? OOM_REPLICA : OOM_MASTER;
    status_ignore(process_set_oom_score(oom_server), "the log says so; the server works without");
}

static const char *apply_oom(const struct option_row *row)
{
    gate_assert_alone();
    (void)row;
    return process_set_oom_score(oom_server) ? NULL
                                             : "Failed to apply new oom_score_adj configuration, check server logs.";
}

static const char *apply_title(const struct option_row *row)
{
    (void)row;
    (void)process_title_update();
    return NULL;
}

static const char *apply_locale(const struct option_row *row)
{
    gate_assert_alone();
    (void)row;
    return setlocale(LC_COLLATE, option_locale_collate.data) != NULL ? NULL : "Failed to set locale";
}

static const char *apply_allocator(const struct option_row *row)
{
    (void)row;
    mem_background_threads(OPTION_IS(option_jemalloc_bg_thread));
    return NULL;
}

static void set_locale(void)
{
    if (setlocale(LC_COLLATE, option_locale_collate.data) == NULL)
        log_warning("Unknown locale for collation: '%s'", option_locale_collate.data);
}

static void set_huge_pages(void)
{
    if (OPTION_IS(option_disable_thp) && prctl(PR_SET_THP_DISABLE, 1UL, 0UL, 0UL, 0UL) != 0)
        log_verbose("Can't disable huge pages for this process: %s", strerror(errno));
}

static void watch_options(void)
{
    config_on_change("oom-score-adj", apply_oom);
    config_on_change("oom-score-adj-values", apply_oom);
    config_on_change("proc-title-template", apply_title);
    config_on_change("port", apply_title);
    config_on_change("tls-port", apply_title);
    config_on_change("bind", apply_title);
    config_on_change("locale-collate", apply_locale);
    config_on_change("jemalloc-bg-thread", apply_allocator);
}

void process_setup(char (*log_role)(void))
{
    const struct log_options options = {.path = option_logfile.data,
                                        .level = (enum log_level)OPTION_GET(option_loglevel),
                                        .syslog_enabled = OPTION_IS(option_syslog_enabled),
                                        .syslog_ident = option_syslog_ident.data,
                                        .syslog_facility = (int)OPTION_GET(option_syslog_facility),
                                        .role = log_role};

    gate_assert_main_alone();
    log_setup(&options);
    log_set_format((enum log_format)OPTION_GET(option_log_format),
                   (enum log_time)OPTION_GET(option_log_timestamp_format));
    find_supervisor();
    if (OPTION_IS(option_daemonize) && supervisor == SUPERVISED_NO)
        daemonize();
    set_signals();
    set_locale();
    set_huge_pages();
    (void)apply_allocator(NULL);
    status_ignore(process_set_oom_score(oom_server), "the log says so; the server works without");
    watch_options();
}

/* --- processors: threads inherit the set of the thread that starts them --- */

static void use_cpus(const struct option_string *list, const char *whose)
{
    if (list->data != NULL && !thread_set_cpus(list->data))
        log_warning("%s can't use the processors %s: %s", whose, list->data, strerror(errno));
}

void process_bio_begin(void)
{
    gate_assert_main_alone();
    knows_given_cpus = sched_getaffinity(0, sizeof(given_cpus), &given_cpus) == 0;
    use_cpus(&option_bio_cpulist, "Background threads");
}

void process_use_cpus_of_child(bool rewrites_aof)
{
    use_cpus(rewrites_aof ? &option_aof_rewrite_cpulist : &option_bgsave_cpulist, "The child process that saves");
}

void process_bio_end(void)
{
    gate_assert_main_alone();
    if (option_bio_cpulist.data != NULL && knows_given_cpus)
        status_ignore(sched_setaffinity(0, sizeof(given_cpus), &given_cpus), "it was so before");
    use_cpus(&option_server_cpulist, "Worker threads");
}

/* --- pid file, start, end --- */

static void find_pidfile(void)
{
    const char *path = option_pidfile.data != NULL   ? option_pidfile.data
                       : OPTION_IS(option_daemonize) ? "/var/run/keydb.pid"
                                                     : "";
    char here[PATH_MAX / 2];

    if (path[0] == '/' || path[0] == '\0' || getcwd(here, sizeof(here)) == NULL)
        snprintf(pidfile_name, sizeof(pidfile_name), "%s", path);
    else
        snprintf(pidfile_name, sizeof(pidfile_name), "%s/%s", here, path);
}

static void write_pidfile(void)
{
    FILE *file;

    assert(!pidfile_written);
    find_pidfile();
    if (pidfile_name[0] == '\0')
        return;
    file = fopen(pidfile_name, "we");
    if (file != NULL) {
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
        pidfile_written = true;
    } else {
        log_warning("Can't write the pid file %s: %s", pidfile_name, strerror(errno));
    }
}

void process_remove_pidfile(void)
{
    if (pidfile_written)
        unlink(pidfile_name);
    pidfile_written = false;
}

void process_ready(void)
{
    gate_assert_main_alone();
    write_pidfile();
    (void)process_title_update();
    system_check_log();
    tell_supervisor("STATUS=Ready to accept connections\n");
    tell_supervisor("READY=1\n");
}

void process_stopping(void)
{
    gate_assert_main_alone();
    tell_supervisor("STOPPING=1\n");
}

void process_teardown(void)
{
    gate_assert_main_alone();
    if (pidfile_written)
        log_notice("Removing the pid file.");
    process_remove_pidfile();
    log_teardown();
}
