/* Saves the keys to a file and loads them: SAVE, BGSAVE, save points, and figures for INFO.
 *
 * Files are written under another name and renamed when they are completely on the disk. So a file under its own name
 * is always complete. */
#pragma once

#include "base/compiler.h"
#include "persist/rdb_read_value.h"
#include "persist/rdb_save.h"
#include "server/core/lifecycle.h"
#include "store/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle persistence_lifecycle;

struct server;
struct worker;
struct persistence_base;
struct persistence_sync;

/* Call it after config_setup: adds the options. `limits` returns the limits of encodings for loaded values. */
void persistence_setup(struct rdb_limits (*limits)(void));
struct rdb_limits persistence_limits(void);
void persistence_teardown(void); /* main thread, after the workers have ended */

/* --- with the gate owned --- */

/* False: it failed; the log has the reason. */
must_check bool persistence_save(struct access *access);
/* Whether BGSAVE may begin: no file is written by a child or thread, and nothing that has to be alone runs. */
bool persistence_may_start_child(void);
/* SAVE in a thread, while the server continues. False: not now, as it takes a process, or something else runs. */
bool persistence_may_save_aside(void);
struct persistence_waiter {
    /* Once, in worker 0, or behind the end of all workers. NULL: the file is there. */
    void (*done)(struct persistence_waiter *waiter, const char *error);
};
must_check bool persistence_save_aside(struct access *access, struct persistence_waiter *waiter); /* false: no `done` */
enum persistence_start { PERSISTENCE_STARTED, PERSISTENCE_BUSY, PERSISTENCE_FAILED };
/* Notes which moment of which history, and of which order, the data are now. Saving does so itself; others call it
 * before they fork a child that writes a base, or a file with the order. */
void persistence_note_moment(void);
must_check enum persistence_start persistence_start_child(struct access *access);
/* BGSAVE SCHEDULE: starts as soon as the running child has ended. */
void persistence_schedule(void);
/* FLUSHALL: makes sure that the data on the disk does not come back. */
void persistence_flushed(struct access *access);
/* DEBUG RELOAD. False: it failed; the log has the reason. */
enum persistence_reload { RELOAD_NOSAVE = 1 << 0, RELOAD_NOFLUSH = 1 << 1, RELOAD_MERGE = 1 << 2 };
must_check bool persistence_reload(struct access *access, unsigned flags);
/* Fills in how values, keys and databases are read in the running server. */
struct rdb_load_request;
void persistence_fill_load(struct rdb_load_request *request, struct access *access);
const char *persistence_file(void);                        /* dbfilename */
uint64_t persistence_key_count(const struct store *store); /* number of keys in all databases */
/* Before a child (child.h) writes one of the files below: reads the options, and takes down what the moment has beside
 * the keys. */
void persistence_prepare_base(const struct persistence_base *base);
void persistence_prepare_sync(const struct persistence_sync *sync);

/* --- files for other parts, by the child: its process or its thread --- */

/* An RDB file that is the base of an append-only file. */
struct persistence_base {
    const char *path, *temp_path; /* see rdb_save.h */
    bool starts_writeback;
    bool (*progress)(uint64_t keys, void *context);
    void *context;
};
must_check enum status persistence_save_base(const struct persistence_base *base, struct snapshot *keys, char *error,
                                             size_t error_size);
/* The libraries of functions of the moment: for rdb_save_request. */
void persistence_each_library(void (*take)(struct slice source, void *context), void *context);
/* For replicas, and peers. */
struct persistence_sync {
    struct byte_sink *sink;          /* NULL: writes the file */
    const char *path, *temp_path;    /* likewise */
    int least_version, most_version; /* with a sink they are equal */
    bool without_keys, without_libraries;
    bool with_order;           /* for a peer of an active node */
    bool with_mvcc;            /* for a KeyDB server that follows one */
    const struct rdb_aux *aux; /* more facts */
    size_t aux_count;          /* at most PERSISTENCE_SYNC_FACTS */
    bool (*progress)(uint64_t keys, void *context);
    void *context;
};
enum { PERSISTENCE_SYNC_FACTS = 8 };
must_check enum status persistence_save_sync(const struct persistence_sync *sync, struct snapshot *keys,
                                             struct rdb_save_result *result);

/* --- any thread --- */

/* The process ends now, in a signal handler: removes the file that SAVE is writing. */
void persistence_give_up_from_signal(void);

/* The error for clients while COMMAND_BLOCK_UNSAVED is set, with its code. */
extern const char persistence_denial[];

uint64_t persistence_changes(void); /* since the begin of the last snapshot */
int64_t persistence_last_save_s(void);
struct persistence_stats {
    bool last_was_good;
    int64_t last_duration_s; /* -1: there was none */
    uint64_t saves;          /* finished since start or CONFIG RESETSTAT */
    uint64_t failures;       /* since the last one that was good */
    uint64_t last_cow_bytes;
    uint64_t loaded, expired_at_load;
};
void persistence_stats(struct persistence_stats *stats);
/* Records what was loaded at start. */
void persistence_note_loaded(uint64_t loaded, uint64_t expired);
