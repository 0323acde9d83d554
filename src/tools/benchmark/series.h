/* series.h: runs the tests one after another, and prints what they show. */
#pragma once

#include "base/compiler.h"
#include "tools/benchmark/cluster.h"
#include "tools/benchmark/options.h"
#include "tools/benchmark/tests.h"

#include <signal.h>
#include <stdbool.h>

/* Returns the exit code; what went wrong was told on standard error. */
must_check int series_run(const struct bench_options *options, struct bench_tests *tests,
                          const volatile sig_atomic_t *stop);

/* The nodes that connections are spread over: the target alone, or a cluster's masters. False: it was told. */
must_check bool series_nodes(const struct bench_options *options, struct cluster *cluster, struct run_node *single,
                             struct run_plan *plan);
