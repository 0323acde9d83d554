/* report.h: what a run has shown, for people and for programs. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "tools/benchmark/run.h"

#include <stdbool.h>
#include <stdint.h>

enum { REPORT_CONFIG_BYTES = 200 };

struct report_node { /* of its configuration */
    bool is_known;
    char save[REPORT_CONFIG_BYTES], appendonly[REPORT_CONFIG_BYTES];
};

struct report_facts {
    const char *title;                   /* of the test */
    uint32_t clients, pipeline, threads; /* threads 0: not asked for */
    size_t payload_bytes;
    size_t command_bytes;            /* of a user's own command, which redis-benchmark calls its payload; 0: none */
    int keep_alive, precision;       /* significant digits, 1 to 4 */
    double rate;                     /* asked for; 0: as fast as it goes */
    const struct report_node *nodes; /* one, or the masters of a cluster */
    uint32_t node_count;
    bool is_cluster;
    const struct workload *workload;
    const struct run_result *result;
};

double report_rate(const struct run_result *result); /* requests a second */

void report_text(const struct report_facts *facts, struct buffer *out);
void report_quiet(const struct report_facts *facts, struct buffer *out);
void report_table_head(struct buffer *out);
void report_table(const struct report_facts *facts, struct buffer *out);
void report_csv_head(struct buffer *out);
void report_csv(const struct report_facts *facts, struct buffer *out);
void report_json(const struct report_facts *facts, struct buffer *out); /* one object */

/* A picture of the latencies by percentile: a curve for each of the runs. */
void report_svg(const struct report_facts *facts, uint32_t count, struct buffer *out);
