/* measure.h: modes that measure a server, or this machine. Each returns the exit code; most run until Ctrl-C. */
#pragma once

#include "tools/cli/session.h"

int measure_latency(struct session *session); /* --latency and --latency-history */
int measure_latency_spectrum(struct session *session);
int measure_stat(struct session *session);
int measure_cache(struct session *session); /* --lru-test */
int measure_intrinsic(struct session *session);
