#include "server/memory/memory_report.h"

#include "base/gate.h"
#include "server/memory/memory_limit.h"
#include "store/expiry.h"

#include <stdatomic.h>
#include <string.h>

enum { TABLE_LOAD_PERCENT = 87 }; /* tables grow in steps that keep them between 85 and 90 % */

static _Atomic uint64_t startup; /* atomic: set once */

void memory_report_mark_startup(void)
{
    gate_assert_main_alone();
    atomic_store(&startup, mem_used());
}

uint64_t memory_report_startup(void)
{
    return atomic_load(&startup);
}

uint64_t memory_report_tables_of(uint64_t keys)
{
    return keys * sizeof(uint64_t) * 100 / TABLE_LOAD_PERCENT;
}

uint64_t memory_report_deadlines_of(uint64_t expires)
{
    return expires * sizeof(struct expiry_record);
}

void memory_report_collect(struct memory_report *report, const struct server_stats *stats)
{
    memset(report, 0, sizeof(*report));
    mem_stats(&report->allocator);
    report->used = mem_used();
    report->peak = mem_peak();
    report->resident = mem_rss();
    report->startup = memory_report_startup();
    report->clients = stats->client_memory_bytes;
    report->client_count = stats->connected_clients;
    report->journal = memory_of_journal();
    report->window = memory_of_window();
    for (unsigned db = 0; db < server_database_count(); db++) {
        struct keyspace_stats keyspace;

        server_keyspace_stats(db, &keyspace);
        report->keys += keyspace.keys;
        report->tables += memory_report_tables_of(keyspace.keys);
        report->deadlines += memory_report_deadlines_of(keyspace.expires);
    }
    report->overhead = report->startup + report->clients + report->journal + report->window + report->tables +
                       report->deadlines;
    report->dataset = report->used > report->overhead ? report->used - report->overhead : 0;
}
