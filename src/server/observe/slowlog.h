/* The slow log: recent slow commands of all workers. Any thread. */
#pragma once

#include "base/slice.h"
#include "server/config/options.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct request;

extern _Atomic int64_t option_slowlog_max_len; /* global: option storage */

/* Constant once it is in the log. The log and its readers share it. */
struct slowlog_entry {
    struct slowlog_entry *older;
    _Atomic uint32_t refs; /* atomic */
    uint64_t id;
    int64_t time_s; /* wall clock at the end of the command */
    uint64_t duration_us;
    const char *address, *name; /* of the client */
    uint32_t arg_count;
    struct slice args[]; /* long arguments are cut, secret ones redacted */
};

void slowlog_setup(void);                                              /* main thread, before the workers start */
void slowlog_add(const struct request *request, uint64_t duration_us); /* the worker's thread */

/* Returns references to at most `most` entries, newest first, in an array of the caller's (mem_free). Release each
 * entry with slowlog_release. */
struct slowlog_entry **slowlog_get(size_t most, size_t *count);
void slowlog_release(struct slowlog_entry *entry);
size_t slowlog_size(void);
void slowlog_reset(void);
/* The apply function of slowlog-max-len; in an exclusive section. */
const char *slowlog_apply(const struct option_row *row);
