/* The append only file: on and off, its rewriting, and what INFO tells. Who writes it: aof_writer.h; whose replies wait
 * for the disk: aof_hold.h; what it consists of: persist/aof_set.h; who reads it at start: loading.h.
 *
 *     off --CONFIG SET appendonly yes--> starting --first rewrite done--> on --CONFIG SET appendonly no--> stopping
 *      '----------------------------------------- the writer has written and synced everything -----------------'
 *
 * Who says appendonly no gets the reply when it is off; all others go on meanwhile. What is said of appendonly while it
 * stops counts once it is off.
 *
 * A rewrite: at the gate a child is forked, and the writer is told to begin a new increment there; the child writes a
 * base; the writer puts it in the place of the old one and of what came before the new increment. While starting there
 * is nothing on the disk yet that the data could be loaded from: writing goes into a temporary file, which becomes the
 * increment behind the first base. */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle aof_lifecycle;

struct access;
struct worker;

/* After file_options_setup and before the configuration is read. */
void aof_setup(void);

/* The data is loaded, and nobody else is inside the gate: opens the files if appendonly says so, creates them if there
 * are none. Where that cannot be done it says why and ends the program. */
void aof_begin(void);

/* --- the gate is owned --- */

enum aof_rewrite_start { AOF_REWRITE_STARTED, AOF_REWRITE_RUNS, AOF_REWRITE_SCHEDULED, AOF_REWRITE_FAILED };
must_check enum aof_rewrite_start aof_rewrite(struct access *access);

void aof_stop(void); /* the workers have ended: everything goes to the disk */

/* --- any thread --- */

enum aof_state { AOF_OFF, AOF_STARTING, AOF_ON, AOF_STOPPING };
enum aof_state aof_state(void);
bool aof_order_pending(void); /* the file is being switched off, or its history removed */
bool aof_is_on(void); /* what comes now is, or is going to be, in it: starting, on, or on again when it has stopped */
/* The path of the folder with the files, as it is (or would be) used. To be freed. */
char *aof_folder_path(void);

struct aof_stats {
    bool is_rewriting, is_scheduled, last_was_good;
    int64_t last_duration_s, running_s; /* of rewrites; -1: there was none, there is none */
    uint64_t rewrites, failures;        /* in all; one after the other */
    uint64_t last_cow_bytes;
};
void aof_stats(struct aof_stats *stats);
