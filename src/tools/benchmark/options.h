/* options.h: what keydb-benchmark is asked to do. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "tools/benchmark/distribution.h"
#include "tools/link/link.h"
#include "tools/link/uri.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_options {
    const char *name; /* of the program: keydb-benchmark or redis-benchmark */
    enum { BENCH_RUN, BENCH_HELP, BENCH_VERSION, BENCH_IDLE, BENCH_DIAGNOSE } mode;
    struct link_target target; /* its texts are those of the command line, or of `uri` */
    struct link_tls tls;
    struct uri uri;

    int64_t clients, requests, payload_bytes, payload_least, pipeline, threads; /* threads 0: not asked for */
    int64_t keys;                                                               /* -r; 0: numbers are not replaced */
    int64_t key_least, key_most; /* sizes of keys; 0: as the tests have them */
    int64_t precision;           /* significant digits of latencies */
    int64_t duration_s, warm_up_s;
    int64_t keep_alive;
    int64_t seed;
    double rate;
    bool requests_given, payload_given, distribution_given, quiet, csv, table, loop, cluster, tracking, goes_on,
        warn_of_e;
    bool last_word_from_input; /* -x */
    struct distribution distribution;
    const char *tests;      /* -t; NULL: the usual ones */
    const char *mix;        /* --mix; NULL: none */
    const char *ratio;      /* --ratio SETS:GETS */
    const char *ycsb;       /* --ycsb */
    const char *json, *svg; /* files; "-": standard output */

    char **words; /* the command, from argv */
    int word_count;
};

/* False: `error` says what is wrong; the program ends with 1. Ended with bench_options_fini in any case. */
must_check bool bench_options_parse(struct bench_options *options, int argc, char **argv, struct buffer *error);
void bench_options_fini(struct bench_options *options);

void bench_usage(const struct bench_options *options, struct buffer *out);
