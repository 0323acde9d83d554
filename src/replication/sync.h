/* A full sync with the master: a snapshot arrives, goes into a file or straight to the loader, and replaces all data;
 * then this server has the master's history. Everything here is for worker 0's thread, outside of the gate.
 *
 *     header -> chooses -> receives -> [writes: the file] -> begins -> loads -> done
 *
 * Whether the master is still wanted is asked with the gate owned, before the data changes and before the history is
 * adopted. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sync;
struct worker;

enum sync_state {
    SYNC_TAKES,  /* wants bytes */
    SYNC_WAITS,  /* bytes have to wait until it takes them again: for the disk, for the gate, for the loader */
    SYNC_LOADS,  /* all bytes were received; what follows them is not for the sync */
    SYNC_DONE,   /* the data is there, and the history adopted */
    SYNC_FAILED, /* the old data is there, or none: sync_error has the reason */
    SYNC_FOREIGN /* the same: this server cannot read what the master sends */
};

struct sync_order {
    uint64_t generation; /* of the master: master_generation */
    const char *id;      /* the history of the snapshot, and its offset; copied */
    int64_t offset;
    void (*on_change)(void); /* any thread, no lock held: call sync_go_on soon, in worker 0 */
};

struct sync *sync_create(struct worker *worker, const struct sync_order *order);
/* Ends it if it is not done. A loader at work is told, and the memory is freed when it has noticed. */
void sync_release(struct sync **handle);
void sync_free_left(void); /* main thread, after the loader has ended */
/* While its state is SYNC_TAKES; *used bytes were taken. */
enum sync_state sync_take(struct sync *sync, const char *data, size_t size, size_t *used);
/* No byte will follow: the connection has ended. A snapshot that is complete is still loaded. */
void sync_cut(struct sync *sync);
enum sync_state sync_go_on(struct sync *sync); /* after on_change, and after each wake of the worker */
enum sync_state sync_state(const struct sync *sync);
const char *sync_error(const struct sync *sync);
unsigned sync_db(const struct sync *sync); /* SYNC_DONE: the database in which the stream begins */

/* Bytes of the snapshot so far, and of all of it; -1: not known. */
int64_t sync_read_bytes(const struct sync *sync);
int64_t sync_total_bytes(const struct sync *sync);
