#include "server/process.h"

#include "base/log.h"
#include "server/options.h"
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>
#endif

static enum supervised_mode supervisor = SUPERVISED_NO;
static bool pidfile_written;

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

static void on_stop_signal(int signal_number)
{
    int saved = errno;

    server_stop_from_signal(signal_number);
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
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

static char log_role(void)
{
    return 'M';
}

void process_setup(int argc, char **argv)
{
    const struct log_options options = {.path = option_logfile.data,
                                        .level = (enum log_level)OPTION_GET(option_loglevel),
                                        .syslog_enabled = OPTION_IS(option_syslog_enabled),
                                        .syslog_ident = option_syslog_ident.data,
                                        .syslog_facility = (int)OPTION_GET(option_syslog_facility),
                                        .role = log_role};

    (void)argc;
    (void)argv;
    log_setup(&options);
    find_supervisor();
    if (OPTION_IS(option_daemonize) && supervisor == SUPERVISED_NO)
        daemonize();
    set_signals();
}

static const char *pidfile_path(void)
{
    if (option_pidfile.data != NULL)
        return option_pidfile.data;
    return OPTION_IS(option_daemonize) ? "/var/run/keydb.pid" : NULL;
}

void process_ready(void)
{
    const char *path = pidfile_path();
    FILE *file = path != NULL ? fopen(path, "w") : NULL;

    if (file != NULL) {
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
        pidfile_written = true;
    } else if (path != NULL) {
        log_warning("The pid file %s could not be written: %s", path, strerror(errno));
    }
    tell_supervisor("STATUS=Ready to accept connections\n");
    tell_supervisor("READY=1\n");
}

void process_stopping(void)
{
    tell_supervisor("STOPPING=1\n");
}

void process_teardown(void)
{
    if (pidfile_written) {
        log_notice("Removing the pid file.");
        unlink(pidfile_path());
    }
    log_teardown();
}
