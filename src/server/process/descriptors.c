#include "server/process/descriptors.h"

#include "base/assert.h"
#include "base/gate.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

/* Descriptors that the server itself needs: standard streams, listeners, the log, the append-only file and RDB files
 * with their temporary files, pipes to a child, a few connections of MIGRATE; and for each worker its loop and its wake
 * descriptor. */
enum { RESERVED = 32, RESERVED_PER_WORKER = 2 };

bool descriptors_make_room(int64_t *clients, unsigned worker_count)
{
    const int64_t reserved = RESERVED + RESERVED_PER_WORKER * (int64_t)worker_count;
    const rlim_t wanted = (rlim_t)(*clients + reserved);
    struct rlimit limit, higher = {wanted, wanted};
    rlim_t before;
    int error;

    gate_assert_alone();
    assert(worker_count > 0 && *clients > 0);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        log_warning("Unable to obtain the current NOFILE limit (%s), assuming 1024 and setting the max clients "
                    "configuration accordingly.",
                    strerror(errno));
        *clients = 1024 - reserved;
        return false;
    }
    before = limit.rlim_cur;
    if (before >= wanted)
        return true;
    if (wanted <= limit.rlim_max)
        higher.rlim_max = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &higher) == 0) {
        log_notice("Increased maximum number of open files to %llu (it was originally set to %llu).",
                   (unsigned long long)wanted, (unsigned long long)before);
        return true;
    }
    error = errno;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        limit.rlim_cur = before;
    log_warning("You requested maxclients of %lld requiring at least %llu max file descriptors.", (long long)*clients,
                (unsigned long long)wanted);
    log_warning("Server can't set maximum open files to %llu because of OS error: %s.", (unsigned long long)wanted,
                strerror(error));
    *clients = (int64_t)limit.rlim_cur - reserved;
    if (*clients < 1)
        log_warning("Your current 'ulimit -n' of %llu is not enough for the server to start. Please increase your open "
                    "file limit to at least %llu. Exiting.",
                    (unsigned long long)limit.rlim_cur, (unsigned long long)wanted);
    else
        log_warning("Current maximum open files is %llu. maxclients has been reduced to %lld to compensate for low "
                    "ulimit. If you need higher maxclients increase 'ulimit -n'.",
                    (unsigned long long)limit.rlim_cur, (long long)*clients);
    return false;
}
