/* A node's data and state of one moment, as a file: what a newcomer gets, and a node whose history is cut.
 *
 *     giving    snapshot_begin -> the gate is owned, a child begins (child.h) -> it writes a file -> the link is woken,
 *               and sends its bytes as FRAME_STATE, an empty one at the end -> snapshot_end
 *     taking    the link writes what comes to a file -> snapshot_load -> the loader reads all of it; the state is
 *               judged; it replaces the data; what only this node has is put on top -> on_done -> links ask anew
 *
 * Who has come back behind a cut history gets only the keys that it lacks, where they can be told (part.h), in a file
 * of its own; it keeps its others. Other links that wait when the gate is owned share one file. It is an RDB file
 * (docs/active-replication.md, "Files"), and has no name while it is sent. */
#pragma once

#include "base/compiler.h"
#include "merge/state.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

struct worker;

extern const struct lifecycle snapshot_lifecycle, snapshot_load_lifecycle;

/* --- giving --- */

struct snapshot_gift;

enum snapshot_state {
    SNAPSHOT_WAITS, /* until a child can begin */
    SNAPSHOT_MAKES, /* a child writes it: a thread, or a process */
    SNAPSHOT_READY, /* the file is whole */
    SNAPSHOT_FAILED /* the log has the reason; end it, and let the other ask again */
};

/* Any worker, for whoever said this hello, which is copied. takes_part: it knows files with a part of the keys. This
 * worker is woken when the state has changed. (Whether it is forced is the receiver's to know: snapshot_load.) */
struct snapshot_gift *snapshot_begin(const struct merge_hello *hello, bool takes_part, struct worker *worker);
void snapshot_end(struct snapshot_gift **handle);                     /* any worker; accepts NULL; leaves NULL */
enum snapshot_state snapshot_state(const struct snapshot_gift *gift); /* any worker */
/* SNAPSHOT_READY: others read it, too, so read with pread; it stays open until snapshot_end. */
int snapshot_fd(const struct snapshot_gift *gift, uint64_t *bytes);

/* --- taking --- */

enum snapshot_end {
    SNAPSHOT_LOADED,  /* ask all links anew, in both directions */
    SNAPSHOT_REFUSED, /* the data are as before: it lacks what is not in the history here any more, or the stream will
                         do: ask anew */
    SNAPSHOT_LOST,    /* damaged, or an error of the disk: the data are as before, or gone */
};

/* Worker 0, one at a time: takes over the file, which is gone afterwards. forced: neither side has in its history what
 * the other lacks (MERGE_OFFER_FORCED). on_done is called by worker 0; `error` is the reason where it was not loaded.
 * False: data is being loaded, another state is on its way, or the server stops; the file is left. */
must_check bool snapshot_load(const char *path, bool forced,
                              void (*on_done)(enum snapshot_end end, const char *error, void *context), void *context);
