/* How long commands take. Each worker counts its own calls into a histogram of each command (in ticks), which other
 * threads read and sum on demand; it also counts the calls. One number says from which time on a call is looked at
 * more closely (timing_attend): the smaller of slowlog-log-slower-than and latency-monitor-threshold, or 0 while every
 * call needs a look (MONITOR, latency-tracking no). */
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

/* Of one command in one worker. */
struct command_times {
    /* Calls without a time: while latency-tracking was off, or that wait, or have waited in vain; atomic, relaxed,
     * written by the owner. One that was served by another worker is taken back there: the sum counts. */
    _Atomic uint64_t untracked;
    struct histogram ticks; /* calls while it was on; `sum` has all */
};

/* A worker's, for all commands: a range of addresses of which only pages that were written to take memory, one or two
 * for each command that is used. They are not part of used_memory, so that a command's first call does not look like
 * data that came in. */

/* Atomic, relaxed: spans from here on, in ticks, are for timing_attend; at most HISTOGRAM_MOST. Set by timing.c. */
extern _Atomic uint64_t timing_attention;

void timing_setup(void);    /* after config_setup: adds the options */
void timing_teardown(void); /* after the workers have gone */
/* MONITOR and the like: `note` is called for each command that has just run, under its stripes, while anybody wants
 * commands. Before the workers start. */
void timing_on_command(void (*note)(const struct request *request));
/* One more (1) wants to be told of every command, or one less (-1). Any thread. */
void timing_want_commands(int change);

/* Counts a call; the slow log, latency events and monitors get to know of it. A span a little below zero is none.
 * The worker's thread. */
void timing_attend(const struct request *request, uint64_t span);

/* A call that waits counts from then on (blocked.h); when it is answered it gets a time, by whoever answers. The
 * worker's thread. */
void timing_note_waiting(struct worker *worker, const struct command *command);
void timing_note_waited(struct worker *worker, const struct command *command, uint64_t span, bool failed);
/* The slow log and the latency events get to know of a command that may have taken longer than their thresholds. The
 * worker's thread. */
void timing_tell(const struct request *request, uint64_t us);

/* Sums over the workers since the last timing_reset; any thread. */
struct command_times *timing_collect(uint32_t command_id); /* the caller's: mem_free; NULL: never called */
uint64_t timing_calls(const struct command_times *times);
uint64_t timing_usec(const struct command_times *times);
void timing_reset(void); /* CONFIG RESETSTAT; in an exclusive section */

bool timing_is_tracking(void);
/* Percentiles for INFO latencystats, as configured; *percents is good in this thread until its next call. */
size_t timing_percents(const double **percents);
