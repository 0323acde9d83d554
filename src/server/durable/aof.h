/* The append-only file: switching it on and off, rewriting it, and its figures for INFO. aof_writer.h writes it,
 * aof_hold.h holds replies for it, persist/aof_set.h has its files, loading.h reads it at start.
 *
 *     off --CONFIG SET appendonly yes--> starting --first rewrite done--> on --CONFIG SET appendonly no--> stopping
 *      '----------------------------------------- the writer has written and synced everything -----------------'
 *
 * The client of CONFIG SET appendonly no gets its reply when the state is off; all other clients continue meanwhile. A
 * CONFIG SET appendonly that arrives while it is stopping takes effect when it is off.
 *
 *     on or starting --all data is replaced--> suspended --the new data is complete--> starting
 *
 * While suspended, the files are those of the old data, whole: the writer writes what was journaled before, and ends.
 * Then the first rewrite of the new data replaces them as a whole. So a crash loads the old data or the new.
 *
 * A rewrite: at the gate a child is forked, and the writer is told to begin a new increment there. The child writes a
 * base. The writer then replaces the old base, and everything before the new increment, by the new base. While the
 * state is starting, the disk has nothing yet from which the data could be loaded: writing goes to a temporary file,
 * which becomes the increment after the first base. */
#pragma once

#include "base/compiler.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle aof_lifecycle;

struct access;
struct worker;

/* Call it after file_options_setup and before the configuration is read. */
void aof_setup(void);

/* Call it when the data is loaded and no other thread is inside the gate. Opens the files if appendonly is yes, and
 * creates them if there are none. If this fails, it logs the reason and ends the program. */
void aof_begin(void);

/* --- with the gate owned --- */

enum aof_rewrite_start { AOF_REWRITE_STARTED, AOF_REWRITE_RUNS, AOF_REWRITE_SCHEDULED, AOF_REWRITE_FAILED };
must_check enum aof_rewrite_start aof_rewrite(struct access *access);

/* All data is about to be replaced: from here on nothing is written that belongs to other data. */
void aof_suspend(void);
/* The data is new and complete: worker 0 begins the files anew, as soon as a child can be forked. It does so, too, if
 * this server becomes a master while they are suspended, since no other data will come. */
void aof_restart(void);

void aof_stop(void); /* after the workers have ended: writes everything to the disk */

/* --- any thread --- */

enum aof_state { AOF_OFF, AOF_STARTING, AOF_ON, AOF_STOPPING, AOF_SUSPENDED };
enum aof_state aof_state(void);
bool aof_first_base_failed(void); /* starting: the last attempt to write the base failed, the next one has not ended */
bool aof_order_pending(void);     /* the file is being switched off, or its history removed */
/* True if new effects are or will be in it: starting, on, suspended, or to be switched on again after stopping. */
bool aof_is_on(void);
/* The path of the folder for the files, whether it exists or not. The caller frees it. */
char *aof_folder_path(void);

struct aof_stats {
    bool is_rewriting, is_scheduled, last_was_good;
    int64_t last_duration_s, running_s; /* of rewrites; -1: there was none, none is running */
    uint64_t rewrites, failures;        /* total; failures since the last success */
    uint64_t last_cow_bytes;
};
void aof_stats(struct aof_stats *stats);
