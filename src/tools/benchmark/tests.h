/* tests.h: the tests by name, and what several commands at once are made of: proportions, mixes, YCSB. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "tools/benchmark/options.h"
#include "tools/benchmark/workload.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_test {
    char *title; /* owned */
    struct workload workload;
    struct distribution keys; /* the workload's, if it has one */
    uint64_t requests;        /* 0: as the options say */
};

struct bench_tests {
    struct bench_test **items; /* owned */
    uint32_t count, capacity;
};

/* What the options ask for. `payload` must outlive them, as must `input`: the last word of a command (-x). False:
 * `error` says what is wrong. Ended with bench_tests_fini in any case. */
must_check bool bench_tests_make(const struct bench_options *options, struct slice payload, struct slice input,
                                 struct bench_tests *tests, struct buffer *error);
void bench_tests_fini(struct bench_tests *tests);

bool bench_test_is_known(struct slice name); /* of -t */
