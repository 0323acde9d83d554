/* The durations of commands. Each worker counts its own calls of each command in a histogram (in ticks), which other
 * threads read and add up on demand. One number is the duration from which a call is examined (timing_attend): the
 * smaller of slowlog-log-slower-than and latency-monitor-threshold, or 0 while every call is examined (MONITOR,
 * latency-tracking no). */
#pragma once

#include "base/histogram.h"
#include "base/tick.h"
#include "server/core/lifecycle.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle timing_lifecycle;

struct command;
struct request;
struct worker;

/* For one command in one worker. */
struct command_times {
    /* Calls without a duration: while latency-tracking was off, calls that are blocked, and blocked calls that were not
     * served; atomic: relaxed; the owner writes it. A blocked call that another worker served is subtracted there: only
     * the sum over the workers counts. */
    _Atomic uint64_t untracked;
    struct histogram ticks; /* calls while it was on; `sum` covers all calls */
};

/* A worker's times of all commands are in a range of addresses. Only pages that were written take memory, one or two
 * for each command that is used. They are not part of used_memory, so a command's first call does not look like new
 * data. */

/* Atomic, relaxed: durations from this one on, in ticks, are for timing_attend; at most HISTOGRAM_MOST. timing.c sets
 * it. */
extern _Atomic uint64_t timing_attention;

void timing_setup(void);    /* after config_setup: adds the options */
void timing_teardown(void); /* after the workers have ended */
/* For MONITOR: `note` is called for each command that has just run, with its stripes held, while somebody wants
 * commands. Before the workers start. */
void timing_on_command(void (*note)(const struct request *request));
/* Adds (1) or removes (-1) a party that wants to see every command. Any thread. */
void timing_want_commands(int change);

/* Counts a call, and passes it on to the slow log, latency events and MONITOR. A duration a little below zero counts as
 * zero. The worker's thread. */
void timing_attend(const struct request *request, uint64_t span);

/* A blocked call is counted when it is blocked (blocked.h). The worker that answers it adds its duration. The worker's
 * thread. */
void timing_note_waiting(struct worker *worker, const struct command *command);
void timing_note_waited(struct worker *worker, const struct command *command, uint64_t span, bool failed);
/* Passes a command that may be above a threshold on to the slow log and the latency events. The worker's thread. */
void timing_tell(const struct request *request, uint64_t us);

/* Sums over the workers since the last timing_reset; any thread. */
struct command_times *timing_collect(uint32_t command_id); /* the caller frees it (mem_free); NULL: never called */
uint64_t timing_calls(const struct command_times *times);
uint64_t timing_usec(const struct command_times *times);
void timing_reset(void); /* CONFIG RESETSTAT; in an exclusive section */

bool timing_is_tracking(void);
/* The configured percentiles for INFO latencystats. *percents is valid in this thread until its next call. */
size_t timing_percents(const double **percents);
