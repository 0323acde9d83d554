/* For a library that shows a program another wall clock: the other calls that read it, by the clock_gettime of the file
 * that includes this. */
#pragma once

#include <sys/time.h>
#include <time.h>

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);

    (void)zone;
    *time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return result;
}

time_t time(time_t *result)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (result != NULL)
        *result = now.tv_sec;
    return now.tv_sec;
}
