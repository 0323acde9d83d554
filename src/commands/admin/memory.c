/* MEMORY: where the memory is. */
#include "active/node.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "base/mem_move.h"
#include "commands/shared/families.h"
#include "replication/replicas.h"
#include "server/core/request.h"
#include "server/core/server.h"
#include "server/durable/libraries.h"
#include "server/memory/memory_report.h"
#include "server/core/stats_since.h"
#include "server/upkeep/defrag_cycle.h"

#include <stdio.h>

enum { STATS_PAIRS = 33, ACTIVE_PAIRS = 2, SMALL_BYTES = 5 << 20, MANY_CLIENT_BYTES = 200 << 10 };

/* --------------------------------------------------------------------------------------------------------- USAGE -- */

enum { SAMPLES_DEFAULT = 5 };

static bool parse_samples(struct request *request, int64_t *samples)
{
    for (uint32_t i = 3; i < request->arg_count; i += 2) {
        if (!request_arg_is(request, i, "samples") || i + 1 == request->arg_count) {
            reply_syntax_error(request);
            return false;
        }
        if (!request_arg_i64(request, i + 1, samples))
            return false;
        if (*samples < 0) {
            reply_syntax_error(request);
            return false;
        }
    }
    return true;
}

static void cmd_memory_usage(struct request *request)
{
    const struct entry *entry;
    int64_t samples = SAMPLES_DEFAULT;

    if (!parse_samples(request, &samples))
        return;
    entry = access_probe(request->access, request->db, &request->keys[0]);
    if (entry == NULL)
        reply_null(request);
    else
        reply_int(request, (int64_t)(store_entry_bytes(request->access->store, entry, (uint64_t)samples) +
                                     memory_report_tables_of(1)));
}

/* --------------------------------------------------------------------------------------------------------- STATS -- */

static void collect(struct memory_report *report)
{
    struct server_stats *stats = mem_alloc_zero(sizeof(*stats));

    stats_since_collect(stats);
    memory_report_collect(report, stats);
    mem_free(stats);
}

static void put_number(struct request *request, const char *name, uint64_t number)
{
    reply_text(request, name);
    reply_int(request, (int64_t)number);
}

static void put_ratio(struct request *request, const char *name, double part, double whole)
{
    reply_text(request, name);
    resp_write_double(request->out, request->proto, whole == 0 ? 0 : part / whole);
}

static void put_difference(struct request *request, const char *name, uint64_t more, uint64_t less)
{
    reply_text(request, name);
    reply_int(request, (int64_t)(more - less));
}

static unsigned used_databases(void)
{
    unsigned count = 0;

    for (unsigned db = 0; db < server_database_count(); db++) {
        struct keyspace_stats keyspace;

        server_keyspace_stats(db, &keyspace);
        count += keyspace.keys != 0;
    }
    return count;
}

/* Keys may appear and disappear meanwhile: never more databases than announced, and empty entries for missing ones. */
static void put_databases(struct request *request, unsigned count)
{
    for (unsigned db = 0; db < server_database_count() && count != 0; db++) {
        struct keyspace_stats keyspace;
        char name[16];

        server_keyspace_stats(db, &keyspace);
        if (keyspace.keys == 0 && server_database_count() - db > count)
            continue;
        count--;
        snprintf(name, sizeof(name), "db.%u", db);
        reply_text(request, name);
        reply_map(request, 3);
        put_number(request, "overhead.hashtable.main", memory_report_tables_of(keyspace.keys));
        put_number(request, "overhead.hashtable.expires", memory_report_deadlines_of(keyspace.expires));
        put_number(request, "overhead.hashtable.slot-to-keys", 0);
    }
}

static void cmd_memory_stats(struct request *request)
{
    struct memory_report report;
    struct replicas_stats replicas;
    const bool is_active = active_is_on();
    const struct script_facts scripts = script_facts();
    unsigned databases = used_databases();
    uint64_t above_start;

    collect(&report);
    replicas_stats(&replicas);
    above_start = report.used > report.startup ? report.used - report.startup : 0;
    reply_map(request, STATS_PAIRS + databases + (is_active ? ACTIVE_PAIRS : 0));
    put_number(request, "peak.allocated", report.peak);
    put_number(request, "total.allocated", report.used);
    put_number(request, "startup.allocated", report.startup);
    put_number(request, "replication.backlog", report.journal);
    put_number(request, "replica.fullsync.buffer", 0); /* what a full sync is behind with waits in the journal */
    put_number(request, "clients.slaves", replicas.held_bytes);
    put_number(request, "clients.normal", report.clients);
    put_number(request, "cluster.links", 0);
    put_number(request, "aof.buffer", 0);
    put_number(request, "lua.caches", (int64_t)scripts.cached_scripts_bytes);
    put_number(request, "functions.caches", (int64_t)scripts.functions_bytes);
    put_number(request, "script.VMs", (int64_t)scripts.vm_bytes);
    if (is_active) {
        put_number(request, "active.history", report.journal);
        put_number(request, "active.window", report.window);
    }
    put_databases(request, databases);
    /* A table grows within itself: there is never a second one to move its keys to. */
    put_number(request, "overhead.db.hashtable.lut", report.tables);
    put_number(request, "overhead.db.hashtable.rehashing", 0);
    put_number(request, "overhead.total", report.overhead);
    put_number(request, "db.dict.rehashing.count", 0);
    put_number(request, "keys.count", report.keys);
    put_number(request, "keys.bytes-per-key", report.keys != 0 ? above_start / report.keys : 0);
    put_number(request, "dataset.bytes", report.dataset);
    put_ratio(request, "dataset.percentage", 100.0 * (double)report.dataset, (double)above_start);
    put_ratio(request, "peak.percentage", 100.0 * (double)report.used, (double)report.peak);
    put_number(request, "allocator.allocated", report.allocator.allocated);
    put_number(request, "allocator.active", report.allocator.active);
    put_number(request, "allocator.resident", report.allocator.resident);
    put_number(request, "allocator.muzzy", report.allocator.muzzy);
    put_ratio(request, "allocator-fragmentation.ratio", (double)report.allocator.active,
              (double)report.allocator.allocated);
    put_difference(request, "allocator-fragmentation.bytes", report.allocator.active, report.allocator.allocated);
    put_ratio(request, "allocator-rss.ratio", (double)report.allocator.resident, (double)report.allocator.active);
    put_difference(request, "allocator-rss.bytes", report.allocator.resident, report.allocator.active);
    put_ratio(request, "rss-overhead.ratio", (double)report.resident, (double)report.allocator.resident);
    put_difference(request, "rss-overhead.bytes", report.resident, report.allocator.resident);
    put_ratio(request, "fragmentation", (double)report.resident, (double)report.used);
    put_difference(request, "fragmentation.bytes", report.resident, report.used);
}

/* -------------------------------------------------------------------------------------------------------- DOCTOR -- */

static const char *fragmentation_advice(void)
{
    if (defrag_cycle_percent() != 0)
        return "Active defragmentation is at work on it.";
    if (mem_move_is_possible())
        return "CONFIG SET activedefrag yes puts the blocks together, if the holes are larger than "
               "active-defrag-ignore-bytes.";
    return "It passes as new data fills the holes; a restart ends it at once.";
}

static void cmd_memory_doctor(struct request *request)
{
    struct memory_report report;
    struct buffer text = {0};
    const struct mem_stats *allocator = &report.allocator;

    collect(&report);
    if (report.used < SMALL_BYTES) {
        buffer_append_text(&text, "So little memory is in use that there is nothing to say about it.\n");
    } else {
        if (report.used * 3 < report.peak * 2)
            buffer_printf(&text,
                          "* Peak: %llu bytes were in use once, now it is %llu. The allocator may still hold "
                          "pages of that time; MEMORY PURGE gives back what is free.\n",
                          (unsigned long long)report.peak, (unsigned long long)report.used);
        if (allocator->active * 10 > allocator->allocated * 14)
            buffer_printf(&text,
                          "* Fragmentation: the allocator keeps %llu bytes of pages for %llu bytes of blocks. "
                          "%s\n",
                          (unsigned long long)allocator->active, (unsigned long long)allocator->allocated,
                          fragmentation_advice());
        if (allocator->resident * 10 > allocator->active * 11 && allocator->active != 0)
            buffer_printf(&text,
                          "* Pages kept: the allocator holds %llu bytes more than it uses. MEMORY PURGE gives "
                          "them back.\n",
                          (unsigned long long)(allocator->resident - allocator->active));
        if (report.resident * 10 > allocator->resident * 11 && allocator->resident != 0)
            buffer_printf(&text,
                          "* Outside: %llu bytes of the process are not the allocator's, for instance of "
                          "libraries and threads.\n",
                          (unsigned long long)(report.resident - allocator->resident));
        if (report.client_count != 0 && report.clients / report.client_count > MANY_CLIENT_BYTES)
            buffer_printf(&text,
                          "* Clients: their buffers take %llu bytes each on average. CLIENT LIST shows which; "
                          "maxmemory-clients and client-output-buffer-limit bound them.\n",
                          (unsigned long long)(report.clients / report.client_count));
        if (report.journal * 2 > report.used)
            buffer_printf(&text,
                          "* Journal: %llu bytes are kept for replicas and peers that are slow or away. "
                          "repl-backlog-size, active-history-limit and journal-memory-limit bound it.\n",
                          (unsigned long long)report.journal);
        if (report.window * 2 > report.used)
            buffer_printf(&text,
                          "* Window: %llu bytes are operations and deleted keys that not all members of the active "
                          "group are known to have. KEYDB.ACTIVE PEERS shows who is silent; active-window-size, "
                          "active-tombstones-limit and active-peer-timeout bound it.\n",
                          (unsigned long long)report.window);
        if (text.size == 0)
            buffer_append_text(&text, "Nothing about the memory of this server is out of the ordinary.\n");
    }
    reply_verbatim(request, "txt", buffer_slice(&text));
    buffer_fini(&text);
}

/* ------------------------------------------------------------------------------------------------- the allocator -- */

static void cmd_memory_purge(struct request *request)
{
    mem_purge();
    reply_ok(request);
}

static void append_report(void *context, const char *text)
{
    buffer_append_text(context, text);
}

static void cmd_memory_malloc_stats(struct request *request)
{
    struct buffer text = {0};

    mem_report(append_report, &text);
    reply_verbatim(request, "txt", buffer_slice(&text));
    buffer_fini(&text);
}

static void cmd_memory_help(struct request *request)
{
    static const char *const lines[] = {
        "DOCTOR",
        "    Report unusual use of memory, and what may help.",
        "MALLOC-STATS",
        "    Return the statistics of the allocator as text.",
        "PURGE",
        "    Return free pages to the system.",
        "STATS",
        "    Return how memory is used.",
        "USAGE <key> [SAMPLES <count>]",
        "    Return the memory of <key> and its value in bytes. Large values are estimated from",
        "    <count> elements (default: 5, 0: all).",
    };

    reply_help(request, lines, countof(lines));
}

static void cmd_memory(struct request *request)
{
    reply_subcommand_error(request);
}

#define MEMORY_ROW .access = ACCESS_FREE, .categories = "@slow", .group = "server", .since = "4.0.0"
#define MEMORY_TIPS "nondeterministic_output request_policy:all_shards response_policy:special"

/* clang-format off */
static const struct command_row memory_subcommands[] = {
    {.name = "doctor", .run = cmd_memory_doctor, .arity = 2, MEMORY_ROW,
     .summary = "Returns a report about problems with memory.", .complexity = "O(1)",
     .syntax = "MEMORY DOCTOR", .tips = MEMORY_TIPS},
    {.name = "help", .run = cmd_memory_help, .arity = 2, MEMORY_ROW, .flags = "loading stale",
     .summary = "Explains the subcommands.", .complexity = "O(1)", .syntax = "MEMORY HELP"},
    {.name = "malloc-stats", .run = cmd_memory_malloc_stats, .arity = 2, MEMORY_ROW,
     .summary = "Returns the statistics of the allocator.",
     .complexity = "Depends on how much memory is allocated, could be slow", .syntax = "MEMORY MALLOC-STATS",
     .tips = MEMORY_TIPS},
    {.name = "purge", .run = cmd_memory_purge, .arity = 2, MEMORY_ROW,
     .summary = "Asks the allocator to release free pages.",
     .complexity = "Depends on how much memory is allocated, could be slow", .syntax = "MEMORY PURGE",
     .tips = "request_policy:all_shards response_policy:all_succeeded"},
    {.name = "stats", .run = cmd_memory_stats, .arity = 2, MEMORY_ROW,
     .summary = "Returns how memory is used.", .complexity = "O(1)", .syntax = "MEMORY STATS",
     .tips = MEMORY_TIPS},
    {.name = "usage", .run = cmd_memory_usage, .arity = -3, .access = ACCESS_STRIPED, .flags = "readonly",
     .categories = "@read @slow", .group = "server", .since = "4.0.0", .keys = "RO@index:2@range:0,1,0",
     .summary = "Returns the memory of a key with its value, in bytes.",
     .complexity = "O(N) where N is the number of samples.", .syntax = "MEMORY USAGE key [SAMPLES count]"},
    {0},
};
/* clang-format on */

/* clang-format off */
const struct command_row memory_commands[] = {
    {.name = "memory", .run = cmd_memory, .arity = -2, MEMORY_ROW,
     .summary = "Container for commands about memory.", .complexity = "Depends on the subcommand.", .syntax = "MEMORY",
     .subcommands = memory_subcommands},
    {0},
};
/* clang-format on */
