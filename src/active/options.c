#include "active/options.h"

#include "base/thread.h"
#include "server/config/config.h"

_Atomic int64_t option_active_replica;          /* global: option storage */
_Atomic int64_t option_multi_master;            /* global: option storage */
_Atomic int64_t option_multi_master_no_forward; /* global: option storage */
_Atomic int64_t option_active_window_size;      /* global: option storage */
_Atomic int64_t option_active_tombstones_limit; /* global: option storage */
_Atomic int64_t option_active_history_limit;    /* global: option storage */
_Atomic int64_t option_active_peer_timeout;     /* global: option storage */
_Atomic int64_t option_active_repair_rate;      /* global: option storage */
_Atomic int64_t option_replica_quorum;          /* global: option storage */

#define MIB (INT64_C(1) << 20)

static const struct option_row rows[] = {
    ROW_BOOL("active-replica", &option_active_replica, 0, OPTION_IMMUTABLE,
             "Take writes although there are masters, and give them to each other."),
    ROW_BOOL("multi-master", &option_multi_master, 0, OPTION_IMMUTABLE, "An active replica may have several masters."),
    ROW_BOOL("multi-master-no-forward", &option_multi_master_no_forward, 0, OPTION_MUTABLE,
             "Do not pass on what other nodes wrote."),
    ROW_MEMORY("active-window-size", &option_active_window_size, 256 * MIB, MIB, INT64_MAX, OPTION_MUTABLE,
               "Memory for operations that not all members are known to have."),
    ROW_MEMORY("active-tombstones-limit", &option_active_tombstones_limit, 64 * MIB, MIB, INT64_MAX, OPTION_MUTABLE,
               "Memory for what is known of deleted keys."),
    ROW_MEMORY("active-history-limit", &option_active_history_limit, 1024 * MIB, 0, INT64_MAX, OPTION_MUTABLE,
               "Bytes of operations that are kept for members that are away; 0: none."),
    ROW_INT("active-peer-timeout", &option_active_peer_timeout, 3600, 0, INT32_MAX, OPTION_MUTABLE,
            "Seconds of silence after which a member is not waited for any more; 0: never."),
    ROW_INT("active-repair-rate", &option_active_repair_rate, 0, 0, INT32_MAX, OPTION_MUTABLE,
            "Keys a second that are written anew because operations came too late; 0: as many as there is time for."),
    ROW_INT("replica-quorum", &option_replica_quorum, -1, -1, INT32_MAX, OPTION_MUTABLE,
            "Links to masters that must be up where replica-serve-stale-data is no; -1: all."),
};

void active_options_setup(void)
{
    thread_assert_main();
    config_add_rows(rows, countof(rows));
}
