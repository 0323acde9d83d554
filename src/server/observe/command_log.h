/* The command log: recent commands of all workers that took long (the slow log), and those whose request or reply was
 * large, each kind in a list of its own. Any thread, where it does not say otherwise. */
#pragma once

#include "base/info_row.h"
#include "base/slice.h"
#include "server/config/options.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request;

enum command_log_kind { COMMAND_LOG_SLOW, COMMAND_LOG_LARGE_REQUEST, COMMAND_LOG_LARGE_REPLY, COMMAND_LOG_KINDS };

/* Bytes from which on a request or a reply is large, whichever is less; UINT64_MAX: never; 0 while somebody wants the
 * sizes of every command. Atomic, relaxed; command_log.c sets it. */
extern _Atomic uint64_t command_log_attention; /* global: see above */

/* Constant once it is in the log. The log and its readers share it. */
struct command_log_entry {
    struct command_log_entry *older;
    _Atomic uint32_t refs;      /* atomic */
    uint64_t id;                /* within its kind */
    int64_t time_s;             /* wall clock at the end of the command */
    uint64_t value;             /* its duration in microseconds, or bytes */
    const char *address, *name; /* of the client */
    uint32_t arg_count;
    struct slice args[]; /* long arguments are cut, secret ones redacted */
};

void command_log_setup(void);    /* main thread, before the workers start; after config_setup: adds the options */
void command_log_begin(void);    /* the configuration is read: the options count from now on. Any thread. */
void command_log_teardown(void); /* main thread, after the workers have ended */

/* The worker's thread, for a command that has run. Adds it, whatever its value. */
void command_log_add(enum command_log_kind kind, const struct request *request, uint64_t value);
/* True if sizes of which these are upper bounds may be large. The bits of both are at least the larger one. */
static inline bool command_log_may_take(uint64_t request_bytes, uint64_t reply_bytes)
{
    return (request_bytes | reply_bytes) >= atomic_load_explicit(&command_log_attention, memory_order_relaxed);
}
/* Adds (1) or removes (-1) a party that wants to see the sizes of every command. Any thread. */
void command_log_want_sizes(int change);
/* Bytes of the request as an array of bulk strings. */
uint64_t command_log_request_bytes(const struct request *request);
/* Adds the command if its request, as an array of bulk strings, or its reply is large. The worker's thread. */
void command_log_tell_request(const struct request *request);
void command_log_tell_reply(const struct request *request, uint64_t bytes);

/* Returns references to at most `most` entries, newest first, in an array of the caller's (mem_free). Release each
 * entry with command_log_release. */
struct command_log_entry **command_log_get(enum command_log_kind kind, size_t most, size_t *count);
void command_log_release(struct command_log_entry *entry);
size_t command_log_size(enum command_log_kind kind);
void command_log_reset(enum command_log_kind kind);

/* How many commands entered the slow log since start or CONFIG RESETSTAT, and their durations. */
extern const struct info_row command_log_info[];
