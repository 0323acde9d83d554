/* Latency events for LATENCY: durations above latency-monitor-threshold; the worst of each second is kept. Any
 * thread. */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum latency_event {
    LATENCY_COMMAND,
    LATENCY_FAST_COMMAND,
    LATENCY_EXPIRE_CYCLE,
    LATENCY_EVICTION_CYCLE,
    LATENCY_EVICTION_DEL,
    LATENCY_FORK,
    LATENCY_ACTIVE_DEFRAG_CYCLE,
    LATENCY_EVENT_COUNT
};

enum { LATENCY_SAMPLES = 160 };

struct latency_sample {
    int64_t time_s; /* wall clock */
    int64_t ms;
};

/* Oldest first. */
struct latency_history {
    struct latency_sample samples[LATENCY_SAMPLES];
    size_t count; /* 0: no such event */
    int64_t worst_ms;
};

void latency_setup(void);               /* main thread, before the workers start */
void latency_set_threshold(int64_t ms); /* 0: nothing is recorded */
int64_t latency_threshold(void);
void latency_add(enum latency_event event, int64_t ms); /* costs a load if the duration is below the threshold */

const char *latency_event_name(enum latency_event event);
bool latency_find_event(struct slice name, enum latency_event *event);
void latency_read(enum latency_event event, struct latency_history *history);
bool latency_reset(enum latency_event event); /* false: there were no events */
