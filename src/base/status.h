/* What became of a call that depends on the world outside the program. Functions that return it are marked must_check;
 * who drops one says why (status_ignore). Where a system call failed, errno still says why. */
#pragma once

#include "base/compiler.h"

enum status {
    STATUS_OK = 0,
    STATUS_NO_MEMORY,   /* memory whose size a stranger chose was not to be had */
    STATUS_IO,          /* a disk or a device failed; errno says how */
    STATUS_NOT_FOUND,   /* no such file, key, name */
    STATUS_INVALID,     /* bytes or arguments that make no sense */
    STATUS_FULL,        /* a named limit is reached */
    STATUS_AGAIN,       /* nothing to do now; try later */
    STATUS_EXISTS,      /* it is there already */
    STATUS_UNSUPPORTED, /* this build, kernel or peer cannot do it */
    STATUS_CLOSED,      /* the other side is gone */
    STATUS_TIMEOUT,     /* it took longer than allowed */
    STATUS_DENIED,      /* permission refused */
    STATUS_TRUNCATED,   /* good so far, but the end is missing */
    STATUS_CORRUPT,     /* a checksum or a structure is wrong */
    STATUS_INTERRUPTED, /* somebody asked to stop */
    STATUS_COUNT
};

/* For a result that is dropped, be it a status or what a system call tells; the reason is for who reads it. */
#define status_ignore(call, reason)                                      \
    do {                                                                 \
        __auto_type ignored_ = (call);                                   \
        _Static_assert(sizeof("" reason) > 1, "why may it be dropped?"); \
        (void)ignored_;                                                  \
    } while (0)

const char *status_text(enum status status);         /* lower case, for log lines: "no memory" */
must_check enum status status_from_errno(int error); /* STATUS_IO for what has no better name */
