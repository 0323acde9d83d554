#include "base/status.h"

#include <errno.h>

static const char *const texts[STATUS_COUNT] = {
    [STATUS_OK] = "ok",
    [STATUS_NO_MEMORY] = "no memory",
    [STATUS_IO] = "input/output error",
    [STATUS_NOT_FOUND] = "not found",
    [STATUS_INVALID] = "invalid",
    [STATUS_FULL] = "full",
    [STATUS_AGAIN] = "not now",
    [STATUS_EXISTS] = "exists already",
    [STATUS_UNSUPPORTED] = "not supported",
    [STATUS_CLOSED] = "closed",
    [STATUS_TIMEOUT] = "timed out",
    [STATUS_DENIED] = "permission denied",
    [STATUS_TRUNCATED] = "truncated",
    [STATUS_CORRUPT] = "corrupt",
    [STATUS_INTERRUPTED] = "interrupted",
};

const char *status_text(enum status status)
{
    return (unsigned)status < STATUS_COUNT ? texts[status] : "unknown status";
}

enum status status_from_errno(int error)
{
    switch (error) {
    case 0:
        return STATUS_OK;
    case ENOMEM:
        return STATUS_NO_MEMORY;
    case ENOENT:
        return STATUS_NOT_FOUND;
    case EINVAL:
        return STATUS_INVALID;
    case EAGAIN:
        return STATUS_AGAIN;
    case EEXIST:
        return STATUS_EXISTS;
    case ENOSYS:
    case EOPNOTSUPP:
        return STATUS_UNSUPPORTED;
    case EPIPE:
    case ECONNRESET:
        return STATUS_CLOSED;
    case ETIMEDOUT:
        return STATUS_TIMEOUT;
    case EACCES:
    case EPERM:
        return STATUS_DENIED;
    default:
        return STATUS_IO;
    }
}
