/* A library for LD_PRELOAD: the wall clock of a program stands where another one says, as milliseconds, in the file
 * that HELD_CLOCK names. Monotonic time does not change. It stands at the end of that millisecond: so our server, which
 * reads it once in a millisecond, reads it each time. */
#include "clock_calls.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic int64_t *held_ms; /* NULL: the clock goes */

__attribute__((constructor)) static void map_clock(void)
{
    const char *path = getenv("HELD_CLOCK");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped;

    if (fd < 0)
        abort();
    mapped = mmap(NULL, sizeof(*held_ms), PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        abort();
    close(fd);
    held_ms = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int64_t ms;

    if (held_ms == NULL || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return (int)syscall(SYS_clock_gettime, clock, time);
    ms = atomic_load(held_ms);
    *time = (struct timespec){ms / 1000, ms % 1000 * 1000000 + 999000};
    return 0;
}
