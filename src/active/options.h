/* The values of the options of active replication: any thread, OPTION_GET(option_active_window_size). */
#pragma once

#include "base/rows.h"

extern _Atomic int64_t option_active_replica;          /* global: option storage; bool; const after the start */
extern _Atomic int64_t option_multi_master;            /* global: option storage; bool; const after the start */
extern _Atomic int64_t option_multi_master_no_forward; /* global: option storage; bool */
extern _Atomic int64_t option_active_window_size;      /* global: option storage; bytes */
extern _Atomic int64_t option_active_tombstones_limit; /* global: option storage; bytes */
extern _Atomic int64_t option_active_history_limit;    /* global: option storage; bytes; 0: none is kept */
extern _Atomic int64_t option_active_peer_timeout;     /* global: option storage; seconds; 0: never */
extern _Atomic int64_t option_active_repair_rate;      /* global: option storage; keys a second; 0: no limit */
extern _Atomic int64_t option_replica_quorum;          /* global: option storage; -1: all */

void active_options_setup(void); /* main thread, after config_setup: adds the options */
