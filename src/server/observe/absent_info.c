#include "server/observe/absent_info.h"

#include <stddef.h>

const struct info_row absent_info[] = {
    INFO_TEXT("features", ""),
    INFO_TEXT("io_threads_active", "0"),
    INFO_TEXT("io_threaded_reads_processed", "0"),
    INFO_TEXT("io_threaded_writes_processed", "0"),
    INFO_TEXT("used_memory_vm_functions", "0"), /* used_memory_vm_eval has them */
    INFO_TEXT("mem_overhead_db_hashtable_rehashing", "0"),
    INFO_TEXT("storage_provider", "none"),
    INFO_TEXT("storage_provider_read_hits", "0"),
    INFO_TEXT("storage_provider_read_misses", "0"),
    INFO_TEXT("module_fork_in_progress", "0"),
    INFO_TEXT("module_fork_last_cow_size", "0"),
    INFO_TEXT("expired_stale_perc", "0.00"),
    INFO_TEXT("unexpected_error_replies", "0"),
    INFO_TEXT("dump_payload_sanitizations", "0"),
    INFO_TEXT("reply_buffer_shrinks", "0"),
    INFO_TEXT("reply_buffer_expands", "0"),
    INFO_TEXT("mvcc_depth", "0"),
    {0},
};
