/* Writers of several threads whose keys go into one file or stream.
 *
 * Each thread writes into a writer of its own. When that is full it takes the joint's lock and gives what it has, and
 * what it writes until the key ends; then others may give theirs. So pieces are of whole keys, and a large value goes
 * out as it comes, while the other threads collect. A database has to be selected anew at the front of each piece.
 *
 * The lock stays with a thread from its first bytes until rdb_piece_end or rdb_piece_give: meanwhile it waits for the
 * sink (a disk, a slow replica), and for the gate and stripes, from which it takes the rest of a large value. So nobody
 * may wait for the lock inside of the gate or with a stripe, and a thread that stops has to give its piece, for the
 * others wait for it. */
#pragma once

#include "persist/rdb_write.h"

#include <pthread.h>

struct rdb_joint {
    pthread_mutex_t lock;
    struct rdb_writer *whole; /* guarded by the lock while there are pieces */
};

/* Its thread's. */
struct rdb_piece {
    struct byte_sink sink; /* of the thread's writer */
    struct rdb_joint *joint;
    struct rdb_writer *writer;
    bool is_begun; /* this thread has the joint's lock, across calls */
};

void rdb_joint_init(struct rdb_joint *joint, struct rdb_writer *whole);
void rdb_joint_fini(struct rdb_joint *joint);
/* Sets up `writer`, with the options of the whole. */
void rdb_piece_init(struct rdb_piece *piece, struct rdb_joint *joint, struct rdb_writer *writer);
/* Behind a key. True: a piece has ended here, and others may follow. */
bool rdb_piece_end(struct rdb_piece *piece);
/* What was written is given; the piece ends. */
void rdb_piece_give(struct rdb_piece *piece);
