/* The result of a call that depends on the world outside of the program. Functions that return a status are marked
 * must_check. A caller that drops a status gives the reason (status_ignore). If a system call failed, errno has its
 * error. */
#pragma once

#include "base/compiler.h"

enum status {
    STATUS_OK = 0,
    STATUS_NO_MEMORY,   /* no memory for a size that a client or a file chose */
    STATUS_IO,          /* a disk or a device failed; see errno */
    STATUS_NOT_FOUND,   /* no such file, key or name */
    STATUS_INVALID,     /* bytes or arguments make no sense */
    STATUS_FULL,        /* a named limit is reached */
    STATUS_AGAIN,       /* nothing to do now; try later */
    STATUS_EXISTS,      /* it exists already */
    STATUS_UNSUPPORTED, /* this build, kernel or peer cannot do it */
    STATUS_CLOSED,      /* the peer has closed the connection */
    STATUS_TIMEOUT,     /* it took longer than allowed */
    STATUS_DENIED,      /* permission refused */
    STATUS_TRUNCATED,   /* valid so far, but the end is missing */
    STATUS_CORRUPT,     /* a checksum or a structure is wrong */
    STATUS_INTERRUPTED, /* a user asked to stop */
    STATUS_COUNT
};

/* Drops a result, a status or the result of a system call. `reason` informs the reader. */
#define status_ignore(call, reason)                                      \
    do {                                                                 \
        __auto_type ignored_ = (call);                                   \
        _Static_assert(sizeof("" reason) > 1, "why may it be dropped?"); \
        (void)ignored_;                                                  \
    } while (0)

const char *status_text(enum status status);         /* lower case, for log messages: "no memory" */
must_check enum status status_from_errno(int error); /* STATUS_IO if no other status fits */
