#include "server/memory/memory_info.h"

#include "server/config/options.h"
#include "server/core/stats_info.h"
#include "server/memory/memory_limit.h"
#include "server/memory/memory_report.h"
#include "server/observe/info_moment.h"

struct picture {
    struct memory_report report;
    uint64_t since_startup; /* in use, without what was in use then */
    uint64_t maxmemory, system_total;
    int64_t peak_wall_s;
};

static bool take_safe(void *into, const struct info_moment *moment)
{
    struct picture *picture = into;

    (void)moment;
    picture->report.used = mem_used();
    picture->report.peak = mem_peak();
    picture->peak_wall_s = mem_peak_wall_ms() / 1000;
    picture->report.resident = mem_rss();
    picture->maxmemory = OPTION_GET_U64(option_maxmemory);
    return true;
}

static void take(void *into, const struct info_moment *moment)
{
    struct picture *picture = into;
    struct memory_report *report = &picture->report;

    (void)moment;
    memory_report_collect(report, info_moment_picture(&server_stats_source));
    picture->peak_wall_s = mem_peak_wall_ms() / 1000;
    picture->since_startup = report->used > report->startup ? report->used - report->startup : 0;
    picture->maxmemory = OPTION_GET_U64(option_maxmemory);
    picture->system_total = mem_system_total();
}

static const struct info_source source = {sizeof(struct picture), take, take_safe};

static void append_available(struct buffer *buffer, const void *picture)
{
    uint64_t bytes;

    (void)picture;
    if (memory_available(&bytes))
        buffer_append_u64(buffer, bytes);
    else
        buffer_append_text(buffer, "unavailable");
}

#define FIELD(name, member, ...) INFO_FIELD(name, &source, struct picture, member, ##__VA_ARGS__)
#define HUMAN(name, member) INFO_HUMAN(name, &source, struct picture, member)
#define PERCENT(name, part, whole) INFO_PERCENT(name, &source, struct picture, part, whole)
#define RATIO(name, part, whole) INFO_RATIO(name, &source, struct picture, part, whole)
#define DIFFERENCE(name, more, less) INFO_DIFFERENCE(name, &source, struct picture, more, less)

const struct info_row memory_info[] = {
    FIELD("used_memory", report.used, INFO_SAFE),
    HUMAN("used_memory_human", report.used),
    FIELD("used_memory_rss", report.resident, INFO_SAFE),
    HUMAN("used_memory_rss_human", report.resident),
    FIELD("used_memory_peak", report.peak, INFO_SAFE),
    HUMAN("used_memory_peak_human", report.peak),
    FIELD("used_memory_peak_time", peak_wall_s, INFO_SAFE),
    PERCENT("used_memory_peak_perc", report.used, report.peak),
    FIELD("used_memory_overhead", report.overhead),
    FIELD("used_memory_startup", report.startup),
    FIELD("used_memory_dataset", report.dataset),
    PERCENT("used_memory_dataset_perc", report.dataset, since_startup),
    FIELD("allocator_allocated", report.allocator.allocated),
    FIELD("allocator_active", report.allocator.active),
    FIELD("allocator_resident", report.allocator.resident),
    FIELD("allocator_muzzy", report.allocator.muzzy),
    FIELD("total_system_memory", system_total),
    HUMAN("total_system_memory_human", system_total),
    FIELD("maxmemory", maxmemory, INFO_SAFE),
    HUMAN("maxmemory_human", maxmemory),
    RATIO("allocator_frag_ratio", report.allocator.active, report.allocator.allocated),
    DIFFERENCE("allocator_frag_bytes", report.allocator.active, report.allocator.allocated),
    RATIO("allocator_rss_ratio", report.allocator.resident, report.allocator.active),
    DIFFERENCE("allocator_rss_bytes", report.allocator.resident, report.allocator.active),
    RATIO("rss_overhead_ratio", report.resident, report.allocator.resident),
    DIFFERENCE("rss_overhead_bytes", report.resident, report.allocator.resident),
    RATIO("mem_fragmentation_ratio", report.resident, report.used),
    DIFFERENCE("mem_fragmentation_bytes", report.resident, report.used),
    INFO_CALL("mem_not_counted_for_evict", memory_set_aside),
    INFO_CALL_TEXT("mem_allocator", mem_allocator_name, INFO_SAFE),
    INFO_VALUE("available_system_memory", NULL, append_available),
    INFO_CALL("total_eviction_exceeded_time", memory_exceeded_total_ms),
    INFO_CALL("current_eviction_exceeded_time", memory_exceeded_current_ms),
    {0},
};
