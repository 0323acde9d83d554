/* Loading all data: at start, from the server's files, and later from a source (that of a replica's full sync). The
 * server answers meanwhile: commands that need no data run, others get the LOADING error. A thread of its own owns the
 * gate until everything is loaded. Now and then it opens the gate for commands that wait for it, and while it waits for
 * the source. */
#pragma once

#include "base/compiler.h"
#include "base/slice.h"
#include "server/config/command_block.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle loading_lifecycle;

struct byte_source;
struct rdb_load_result;
struct server;
struct worker;

/* Before the workers start. False: the data cannot be read, the log has the reason; the server must not start. */
must_check bool loading_start(struct server *server);
/* Sets a function that the loading thread calls at its end, to free state of a thread; before loading_start. */
void loading_on_end(void (*leave)(void));
/* Sets a function that is called when the data is loaded, or there is none, or the server stops meanwhile; no other
 * thread is inside the gate then. Before loading_start. */
void loading_on_loaded(void (*loaded)(void));
/* Sets a function that is called in the loader's thread, with the gate owned, after a replacement has replaced all
 * data; `worker` is that of the loader. Before loading_start. */
void loading_on_flush(void (*flushed)(struct worker *worker));
void loading_join(void); /* after the workers have ended: stops the thread if it still runs */

/* --- replacing all data while the server runs --- */

/* What has become of the data that was there before. */
enum loading_end {
    LOADING_REPLACED, /* the new data is there, whole */
    LOADING_KEPT,     /* the old data is there, as it was */
    LOADING_LOST      /* there is no data */
};

/* An RDB file that replaces all data. Its effects are not journaled, and its keys do not expire. All functions are
 * called in the loader's thread. */
struct loading_replacement {
    /* It ends (reads nothing) behind the file: what a sender puts behind that, such as a mark, is for its owner to take
     * away, since the reader reads ahead. If it fails with STATUS_INTERRUPTED nobody calls it a fault. */
    struct byte_source *source;
    /* Whether the next read may wait: then the gate is open during it. NULL: it never waits for long, like a file. */
    bool (*may_wait)(struct byte_source *source);
    /* Back to the source's start. If not NULL, the whole file is read first, while the old data is served: if that is
     * damaged, the old data stays. False: errno has the reason. */
    bool (*rewind)(void *context);
    /* The file was found to be whole; nothing is replaced yet. False: the old data stays, errno has the reason. May be
     * NULL. */
    bool (*found_whole)(void *context);
    /* With the gate owned, right before the old data goes. False: it stays, and the result is STATUS_DENIED. May be
     * NULL; not with keeps_old. */
    bool (*may_replace)(void *context);
    uint64_t total_bytes; /* for INFO; 0: unknown */
    bool frees_later;     /* the old data is freed in the background; otherwise before the first byte is read */
    /* The file has some keys alone: the old data stays, and these keys take the place of those of their names. Called
     * with the gate owned, before the first one is read: what it needs of the old ones has to be taken away then. NULL:
     * all data is replaced. Not with keeps_old. */
    void (*part)(struct worker *worker, void *context);
    /* The old data stays, and is served, until the new one is complete; then they are exchanged at the gate. Only
     * commands with the flag no_async_loading are refused meanwhile. */
    bool keeps_old;
    void (*aux)(struct slice name, struct slice value, void *context); /* facts in the file; may be NULL */
    /* With the gate owned, when the new data is there, and before anybody is told: adds to it. `worker` is the
     * loader's. May be NULL; not with keeps_old. */
    void (*loaded)(struct worker *worker, void *context);
    /* With the gate owned, before any client sees the data. If it was replaced, the append-only file, if it is on,
     * begins anew with it (aof_restart). Otherwise the result has the reason: STATUS_INTERRUPTED after loading_cancel,
     * or since the server stops. The old data is lost at most without keeps_old. */
    void (*done)(const struct rdb_load_result *result, enum loading_end end, void *context);
    void *context;
};
/* Any thread that holds no lock; it may own the gate. Begins soon. False: data is being loaded, or the server stops;
 * nothing is called. Source and context must be valid until `done` is called. */
must_check bool loading_replace(const struct loading_replacement *replacement);
/* Any thread: what is being loaded is not wanted any more. The owner of a source that waits has to end its wait; also
 * when the server stops: in the hook worker_stop at the latest. Does nothing at start, or if nothing is loaded. */
void loading_cancel(void);
bool loading_replaces(void); /* any thread: from loading_replace until `done` has returned */

/* --- any thread --- */

static inline bool loading_runs(void)
{
    return (command_blocks() & COMMAND_BLOCK_LOADING) != 0;
}
static inline bool loading_runs_aside(void)
{
    return (command_blocks() & COMMAND_BLOCK_LOADING_ASIDE) != 0;
}
extern const char loading_denial[]; /* the error for other commands, with its code */

struct loading_stats {
    int64_t start_s;
    uint64_t total_bytes, loaded_bytes, keys, memory_bytes;
    uint64_t expected_bytes; /* where the total is not known: as much as the memory that the file's writer had in use */
    int64_t eta_s;           /* -1: not known yet */
};
void loading_stats(struct loading_stats *stats); /* any thread */
