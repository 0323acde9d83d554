/* Work on the data as of one moment, while the server continues. By snapshot-method it is done in a thread, which sees
 * a snapshot of data that go on changing (store/snapshot_live.h), or in a forked child, which has a copy of all memory.
 * A child reports its progress and its result through a pipe.
 *
 * A child is alone, and so is a state for peers. Of other threads there may be two: one for replicas (SYNC), one for
 * files (RDB, AOF). So the order of an active node's moment (data_order.h) is wanted by one at a time. */
#pragma once

#include "base/compiler.h"
#include "base/status.h"
#include "store/snapshot_live.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* SYNC: for replicas. STATE: for peers of an active node. */
enum child_kind { CHILD_NONE, CHILD_RDB, CHILD_AOF, CHILD_SYNC, CHILD_STATE };

enum { CHILD_ERROR_BYTES = 256 };

struct child_report {
    enum status status; /* its result: only in the last report */
    bool is_last;
    int64_t pid;        /* of the child: for `done`; 0: it was a thread */
    uint64_t keys;      /* keys processed */
    uint64_t cow_bytes; /* memory copied since the fork (copy-on-write), or kept for the thread; at most */
    uint64_t bytes;     /* bytes written */
    int version;        /* of an RDB file */
    char error[CHILD_ERROR_BYTES];
};

struct child_task {
    enum child_kind kind;
    /* In the child, or the thread: does the work with the keys as of child_start, calls child_tell now and then, and
     * fills in the result. Options, and what else only the owner of the gate may read, were read before. */
    void (*run)(struct snapshot *keys, struct child_report *report, void *context);
    /* In the server's main thread, after the end: for all others the task still runs, so that none uses its files or
     * sees half of its results. `error` has the reason of a failure, or is "". */
    void (*done)(const struct child_report *report, void *context);
    /* Right behind it, when the next one may begin: what makes others ask for that. NULL: nothing. */
    void (*told)(const struct child_report *report, void *context);
    void *context;                        /* the pointer exists in both processes */
    int kept_fd;                          /* the child's, such as a pipe for its work: here it is closed; 0: none */
    struct access *access;                /* gives the keys */
    uint64_t keys_total;                  /* for INFO */
    const struct snapshot_choice *choice; /* the keys that it gets; stays until `done`; NULL: all */
    bool has_order;                       /* it writes what data_order.h has of the moment */
};

/* Whether what runs leaves room; any thread, but only the owner of the gate knows that it stays so. */
bool child_may_start(enum child_kind kind);
/* Whoever calls owns the gate. False: there is no room (EEXIST), or errno has the system's reason. */
must_check bool child_start(const struct child_task *task);
/* Worker 0, ten times a second, and when it is woken: reads the reports, and checks which have ended. */
void child_look(void);
bool child_has_ended(void); /* any thread: child_look has something to do */
/* Any thread: ends it without waiting; `done` gets STATUS_INTERRUPTED. A file that has not got its name yet
 * (child_may_commit) does not get it any more. */
void child_stop(enum child_kind kind);
/* There, with its report, just before a file gets its name. False: it was stopped. True: child_committed follows. */
must_check bool child_may_commit(void *report);
void child_committed(void *report);
void child_teardown(void); /* main thread, after the workers have ended: ends all and waits */

/* In the child, or the thread, at any frequency: reports to the server once a second. */
void child_tell(struct child_report *report);
/* The same, as the progress of a save (persistence.h), whose context is the report. False: it was stopped. */
bool child_tell_keys(uint64_t keys, void *report);

/* In a forked process that is not such a child: closes all descriptors but one, or two (0: one), makes it die with the
 * server's thread, and with SPINLOCK_FORSAKEN where it would wait for a lock that another thread held. */
void child_become(int kept_fd, int other_fd);
bool child_is_copy(void); /* true in a forked process */

/* For the log: "pid 123", or "a thread"; until this thread asks again. */
const char *child_name(enum child_kind kind);

/* Any thread. */
bool child_runs(enum child_kind kind);
bool child_runs_any(void);
int64_t child_running_s(enum child_kind kind); /* -1: it does not run */
/* Where two run, numbers are sums, also that of the peaks; times are the longer one. */
struct child_stats {
    uint64_t fork_count;
    int64_t last_fork_us;
    uint64_t keys, keys_total, cow_bytes, cow_peak_bytes; /* of what runs */
    int64_t cow_age_s;                                    /* age of the last report */
    const char *method;                                   /* of the last one: "threads", "fork", "none" */
    struct live_costs live; /* of threads that run, else of the last one if it was a thread */
    int64_t gate_us;        /* for so long all waited for the last one to begin */
};
void child_stats(struct child_stats *stats);
void child_stats_reset(void); /* CONFIG RESETSTAT: resets counts of forks; in an exclusive section */
