#include "server/config/system_check.h"

#include "base/compiler.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/words.h"
#include "server/config/options.h"
#include "server/config/options_process.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum verdict { VERDICT_FINE, VERDICT_SKIPPED, VERDICT_WARNING };
enum { TEXT_BYTES = 768, CLOCK_CALLS = 200000 };

struct check {
    const char *name;
    enum verdict (*run)(char text[TEXT_BYTES]);
};

static bool read_first_line(const char *path, char *line, int space)
{
    FILE *stream = fopen(path, "re");
    bool found = stream != NULL && fgets(line, space, stream) != NULL;

    if (stream != NULL)
        fclose(stream);
    line[found ? strcspn(line, "\n") : 0] = '\0';
    return found;
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* A clock that is read by a system call shows in how much of its time is spent in the kernel. */
static enum verdict check_slow_clock(char text[TEXT_BYTES])
{
    struct rusage before, after;
    struct timespec now;
    double user, system;

    if (getrusage(RUSAGE_SELF, &before) != 0)
        return VERDICT_SKIPPED;
    for (int i = 0; i < CLOCK_CALLS; i++) {
        if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
            return VERDICT_SKIPPED;
    }
    if (getrusage(RUSAGE_SELF, &after) != 0)
        return VERDICT_SKIPPED;
    user = seconds_of(after.ru_utime) - seconds_of(before.ru_utime);
    system = seconds_of(after.ru_stime) - seconds_of(before.ru_stime);
    if (user + system < 0.01 || system * 10 <= user + system)
        return VERDICT_FINE;
    snprintf(text, TEXT_BYTES,
             "Slow system clocksource detected. Reading the time goes through the kernel, which "
             "costs speed. See /sys/devices/system/clocksource/clocksource0/: available_clocksource lists what this "
             "machine has; write a faster one (tsc) into current_clocksource.");
    return VERDICT_WARNING;
}

static enum verdict check_xen_clock(char text[TEXT_BYTES])
{
    char line[64];

    if (!read_first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", line, sizeof(line)))
        return VERDICT_SKIPPED;
    if (strcmp(line, "xen") != 0)
        return VERDICT_FINE;
    snprintf(text, TEXT_BYTES,
             "Your system is configured to use the 'xen' clocksource, which is slow. Run 'echo tsc > "
             "/sys/devices/system/clocksource/clocksource0/current_clocksource' as root, and have it done at boot.");
    return VERDICT_WARNING;
}

static enum verdict check_overcommit(char text[TEXT_BYTES])
{
    char line[16];

    if (!read_first_line("/proc/sys/vm/overcommit_memory", line, sizeof(line)))
        return VERDICT_SKIPPED;
    if (atoi(line) == 1)
        return VERDICT_FINE;
    snprintf(text, TEXT_BYTES,
             "Memory overcommit must be enabled! (vm.overcommit_memory is %s.) Without it a child "
             "process that saves data may be refused memory which it never needs. Put 'vm.overcommit_memory = 1' into "
             "/etc/sysctl.conf, and run 'sysctl vm.overcommit_memory=1' for it to hold at once.",
             line);
    return VERDICT_WARNING;
}

static bool thp_is_always(void)
{
    char line[64];

    return read_first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof(line)) &&
           strstr(line, "[always]") != NULL;
}

static enum verdict check_thp(char text[TEXT_BYTES])
{
    char line[64];

    if (!read_first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof(line)))
        return VERDICT_SKIPPED;
    if (!thp_is_always())
        return VERDICT_FINE;
    snprintf(text, TEXT_BYTES,
             "You have Transparent Huge Pages (THP) support enabled in your kernel for everybody. "
             "They cost latency and memory while a child process saves data. Run 'echo madvise > "
             "/sys/kernel/mm/transparent_hugepage/enabled' as root, and have it done at boot.");
    return VERDICT_WARNING;
}

/* With disable-thp the process has asked for none, so there is nothing to warn of. */
static enum verdict check_thp_here(char text[TEXT_BYTES])
{
    return OPTION_IS(option_disable_thp) ? VERDICT_FINE : check_thp(text);
}

static enum verdict check_backlog(char text[TEXT_BYTES])
{
    char line[32];
    long long wanted = (long long)OPTION_GET(option_tcp_backlog), possible;

    if (!read_first_line("/proc/sys/net/core/somaxconn", line, sizeof(line)))
        return VERDICT_SKIPPED;
    possible = atoll(line);
    if (possible <= 0 || possible >= wanted)
        return VERDICT_FINE;
    snprintf(text, TEXT_BYTES,
             "The TCP backlog setting of %lld cannot be enforced because "
             "/proc/sys/net/core/somaxconn is set to the lower value of %lld.",
             wanted, possible);
    return VERDICT_WARNING;
}

static const struct check reported[] = {
    {"slow-clocksource", check_slow_clock},
    {"xen-clocksource", check_xen_clock},
    {"overcommit", check_overcommit},
    {"THP", check_thp},
};
static const struct check logged[] = {
    {"xen-clocksource", check_xen_clock},
    {"overcommit", check_overcommit},
    {"THP", check_thp_here},
    {"backlog", check_backlog},
};

int system_check_report(void)
{
    int exit_code = EXIT_SUCCESS;

    for (size_t i = 0; i < countof(reported); i++) {
        char text[TEXT_BYTES];
        enum verdict verdict;

        printf("[%s]...", reported[i].name);
        fflush(stdout);
        verdict = reported[i].run(text);
        if (verdict == VERDICT_WARNING) {
            printf("WARNING:\n%s\n", text);
            exit_code = EXIT_FAILURE;
        } else {
            printf(verdict == VERDICT_FINE ? "OK\n" : "skipped\n");
        }
    }
    return exit_code;
}

static bool is_ignored(const char *name)
{
    struct words words = {0};
    bool found = false;

    if (words_split(slice_make(option_ignore_warnings.data, option_ignore_warnings.size), &words)) {
        for (size_t i = 0; i < words.count; i++)
            found = found || slice_equal_text_nocase(words.items[i], name);
    }
    words_fini(&words);
    return found;
}

void system_check_log(void)
{
    gate_assert_main_alone();
    for (size_t i = 0; i < countof(logged); i++) {
        char text[TEXT_BYTES];

        if (!is_ignored(logged[i].name) && logged[i].run(text) == VERDICT_WARNING)
            log_warning("WARNING: %s", text);
    }
}
