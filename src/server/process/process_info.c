#include "server/process/process_info.h"

#include "base/compiler.h"
#include "server/process/availability_zone.h"
#include "server/process/identity.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { US_PER_SECOND = 1000000, SECONDS_PER_DAY = 86400, LRU_CLOCK_MASK = 0xffffff };

struct clocks {
    int64_t wall_us, lru_clock;
    uint64_t uptime_s, uptime_days;
};

struct usage {
    struct rusage own, children;
    bool knows_main_thread;
    struct timeval main_user, main_system; /* of the main thread */
};

/* -------------------------------------------------------------------------------------------------------- times -- */

static struct timeval time_of_ticks(unsigned long ticks, unsigned long per_second)
{
    struct timeval time = {0};

    time.tv_sec = (time_t)(ticks / per_second);
    time.tv_usec = (long)(ticks % per_second * US_PER_SECOND / per_second);
    return time;
}

/* Times of the main thread, in ticks of the system's clock: the 14th and 15th word of its line in /proc. */
static bool main_thread_times(struct timeval *user, struct timeval *system)
{
    long per_second = sysconf(_SC_CLK_TCK);
    unsigned long user_ticks, system_ticks;
    char path[64], line[1024];
    const char *rest;
    FILE *file;
    size_t size;

    snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", (long)getpid());
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    size = fread(line, 1, sizeof(line) - 1, file);
    fclose(file);
    line[size] = '\0';
    rest = strrchr(line, ')'); /* the name in brackets may hold anything */
    if (rest == NULL || per_second <= 0 ||
        sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user_ticks, &system_ticks) != 2)
        return false;
    *user = time_of_ticks(user_ticks, (unsigned long)per_second);
    *system = time_of_ticks(system_ticks, (unsigned long)per_second);
    return true;
}

static bool knows_main_thread(const void *picture)
{
    return ((const struct usage *)picture)->knows_main_thread;
}

static bool take_clocks_safe(void *into, const struct info_moment *moment)
{
    struct clocks *clocks = into;

    clocks->wall_us = moment->wall_us;
    clocks->lru_clock = moment->wall_us / US_PER_SECOND & LRU_CLOCK_MASK;
    clocks->uptime_s = (moment->monotonic_us - identity_start_us()) / US_PER_SECOND;
    clocks->uptime_days = clocks->uptime_s / SECONDS_PER_DAY;
    return true;
}

static void take_clocks(void *into, const struct info_moment *moment)
{
    (void)take_clocks_safe(into, moment);
}

static void take_usage(void *into, const struct info_moment *moment)
{
    struct usage *usage = into;

    (void)moment;
    getrusage(RUSAGE_SELF, &usage->own);
    getrusage(RUSAGE_CHILDREN, &usage->children);
    usage->knows_main_thread = main_thread_times(&usage->main_user, &usage->main_system);
}

static const struct info_source clocks_source = {sizeof(struct clocks), take_clocks, take_clocks_safe};
static const struct info_source usage_source = {sizeof(struct usage), .take = take_usage};

/* ------------------------------------------------------------------------------------------------------- values -- */

static void append_os(struct buffer *buffer, const void *picture)
{
    struct utsname name;

    (void)picture;
    if (uname(&name) == 0)
        buffer_printf(buffer, "%s %s %s", name.sysname, name.release, name.machine);
}

static uint64_t arch_bits(void)
{
    return 8 * sizeof(void *);
}

static uint64_t process_id(void)
{
    return (uint64_t)getpid();
}

#define TEXT_OF_(word) #word
#define TEXT_OF(word) TEXT_OF_(word)
#ifdef __clang__
#define GCC_VERSION "0.0.0"
#else
#define GCC_VERSION TEXT_OF(__GNUC__) "." TEXT_OF(__GNUC_MINOR__) "." TEXT_OF(__GNUC_PATCHLEVEL__)
#endif

#define CLOCK(name, member, ...) INFO_FIELD(name, &clocks_source, struct clocks, member, ##__VA_ARGS__)
#define USAGE(name, member, ...) INFO_FIELD(name, &usage_source, struct usage, member, ##__VA_ARGS__)

const struct info_row process_info[] = {
    INFO_VALUE("os", NULL, append_os),
    INFO_CALL("arch_bits", arch_bits),
    INFO_TEXT("monotonic_clock", "POSIX clock_gettime"),
    INFO_TEXT("atomicvar_api", "c11-builtin"),
    INFO_TEXT("gcc_version", GCC_VERSION),
    INFO_CALL("process_id", process_id, INFO_SAFE),
    INFO_CALL_TEXT("run_id", identity_run_id, INFO_SAFE),
    CLOCK("server_time_usec", wall_us),
    CLOCK("uptime_in_seconds", uptime_s, INFO_SAFE),
    CLOCK("uptime_in_days", uptime_days),
    CLOCK("lru_clock", lru_clock),
    USAGE("used_cpu_sys", own.ru_stime),
    USAGE("used_cpu_user", own.ru_utime),
    USAGE("used_cpu_sys_children", children.ru_stime),
    USAGE("used_cpu_user_children", children.ru_utime),
    USAGE("used_cpu_sys_main_thread", main_system, .wanted = knows_main_thread),
    USAGE("used_cpu_user_main_thread", main_user, .wanted = knows_main_thread),
    {0},
};
