/* A forked child that works on the data as they were at the fork, while the server goes on: at most one at a time. It
 * tells through a pipe how far it is, and how it ended. */
#pragma once

#include "base/compiler.h"
#include "base/status.h"
#include "store/snapshot.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum child_kind { CHILD_NONE, CHILD_RDB, CHILD_AOF };

enum { CHILD_ERROR_BYTES = 256 };

struct child_report {
    enum status status; /* how it ended: not asked for before */
    bool is_last;
    int64_t pid;        /* of the child: for `done` */
    uint64_t keys;      /* done */
    uint64_t cow_bytes; /* pages of its own: copied since the fork */
    uint64_t bytes;     /* written */
    char error[CHILD_ERROR_BYTES];
};

struct child_task {
    enum child_kind kind;
    /* In the child: does the work with the keys of the moment of child_start, calls child_tell now and then, fills in
     * the report's end. */
    void (*run)(struct snapshot *keys, struct child_report *report, void *context);
    /* In the server's main thread, after the end: `error` says what went wrong, "" if nothing. */
    void (*done)(const struct child_report *report, void *context);
    void *context;         /* both processes' */
    struct access *access; /* whose keys */
    uint64_t keys_total;   /* for INFO */
};

/* Whoever calls owns the gate. False: there is one already (EEXIST), or the system's reason in errno. */
must_check bool child_start(const struct child_task *task);
/* Worker 0, ten times a second: hears what it says, and whether it has ended. */
void child_look(void);
/* Any thread: ends it at once, without waiting; `done` tells STATUS_INTERRUPTED. */
void child_stop(enum child_kind kind);
void child_teardown(void); /* main thread, the workers have ended: ends it and waits */

/* In the child, as often as one likes: tells the server once a second. */
void child_tell(struct child_report *report);

/* A forked process that is no such child: shuts everything but one descriptor, and dies with the server's thread. */
void child_become(int kept_fd);
bool child_is_copy(void); /* this process is a forked one */

pid_t child_pid(void); /* any thread. 0: there is none */

/* Any thread. */
enum child_kind child_running(void);
struct child_stats {
    uint64_t fork_count;
    int64_t last_fork_us;
    int64_t running_s;                                    /* -1: there is none */
    uint64_t keys, keys_total, cow_bytes, cow_peak_bytes; /* of the running one */
    int64_t cow_age_s;                                    /* since it told */
};
void child_stats(struct child_stats *stats);
void child_stats_reset(void); /* CONFIG RESETSTAT: counts of forks */
