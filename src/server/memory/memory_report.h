/* The use of memory: consistent figures for INFO memory, MEMORY STATS and MEMORY DOCTOR. Any thread. */
#pragma once

#include "base/mem.h"
#include "server/core/stats.h"

#include <stddef.h>
#include <stdint.h>

struct memory_report {
    struct mem_stats allocator;
    uint64_t used, peak, resident;
    uint64_t startup; /* used when the server had started */
    uint64_t clients; /* buffers, queues and watched keys of normal clients */
    uint64_t client_count;
    uint64_t journal; /* kept for its readers */
    uint64_t window;  /* what active replication knows of keys */
    uint64_t tables;  /* of all databases; estimated from the number of keys and the usual load of tables */
    uint64_t deadlines;
    uint64_t keys;
    uint64_t overhead; /* all of the above except the data */
    uint64_t dataset;
};

/* Memory in use now is used_memory_startup: when everything is set up and there is no data yet. Main thread, before
 * the workers start. */
void memory_report_mark_startup(void);

uint64_t memory_report_startup(void);
void memory_report_collect(struct memory_report *report, const struct server_stats *stats);

uint64_t memory_report_tables_of(uint64_t keys);       /* estimated size of tables with this many keys */
uint64_t memory_report_deadlines_of(uint64_t expires); /* estimated size of this many deadlines */
