/* diagnose.h: raises the load step by step and says what holds it back. It only reads keys that nobody has. */
#pragma once

#include "base/compiler.h"
#include "tools/benchmark/options.h"

#include <signal.h>

/* Returns the exit code; what went wrong was told on standard error. */
must_check int diagnose_run(const struct bench_options *options, const volatile sig_atomic_t *stop);
