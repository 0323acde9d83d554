/* What files have of this node beside its keys (docs/active-replication.md, "Files"): written with the gate owned, and
 * read when data are loaded. */
#pragma once

#include "active/moment.h"
#include "base/compiler.h"
#include "server/durable/data_order.h"

#include <stdbool.h>

void node_files_setup(void); /* main thread, before anything is loaded */
void node_files_teardown(void);

/* Reads the state at the front of an RDB file, which has not to be whole. False: `error` has the reason; also if there
 * is none. Any thread; it waits for the disk. */
must_check bool node_files_read_state(const char *path, struct moment *moment, char error[DATA_ORDER_ERROR_BYTES]);

struct worker;

/* Behind the keys of a part, with the gate owned: its records are put into the window; the rest of the window stays.
 * Their keys are those of the part, or gone already. */
must_check bool node_files_add_records(struct worker *worker, const struct data_order_found *found,
                                       char error[DATA_ORDER_ERROR_BYTES]);

/* With the gate owned, behind the keys of such a file, while the node runs: floor, flushes and records of the window.
 * `node_adopt` is the caller's. False: `error` has the reason. worker: the caller's thread's; NULL: it has none. */
must_check bool node_files_restore_window(struct worker *worker, const struct moment *moment,
                                          const struct data_order_found *found, char error[DATA_ORDER_ERROR_BYTES]);
void node_files_begin(void); /* right behind node_begin: the same for what was loaded at start */
