#include "persist/rdb_piece.h"

#include "base/mutex.h"

void rdb_joint_init(struct rdb_joint *joint, struct rdb_writer *whole)
{
    pthread_mutex_init(&joint->lock, NULL);
    joint->whole = whole;
}

void rdb_joint_fini(struct rdb_joint *joint)
{
    pthread_mutex_destroy(&joint->lock);
}

must_check static enum status give(struct byte_sink *sink, struct slice bytes)
{
    struct rdb_piece *piece = container_of(sink, struct rdb_piece, sink);

    if (!piece->is_begun) {
        mutex_lock(&piece->joint->lock);
        piece->is_begun = true;
    }
    rdb_write_bytes(piece->joint->whole, bytes);
    return piece->joint->whole->status;
}

void rdb_piece_init(struct rdb_piece *piece, struct rdb_joint *joint, struct rdb_writer *writer)
{
    struct rdb_write_options options = joint->whole->options;

    options.checksums = false; /* the whole has one */
    *piece = (struct rdb_piece){.sink = {.write = give}, .joint = joint, .writer = writer};
    rdb_writer_init(writer, &options, &piece->sink);
}

bool rdb_piece_end(struct rdb_piece *piece)
{
    if (LIKELY(!piece->is_begun))
        return false;
    rdb_piece_give(piece);
    return true;
}

void rdb_piece_give(struct rdb_piece *piece)
{
    status_ignore(rdb_writer_flush(piece->writer), "it stays in both writers");
    if (!piece->is_begun)
        return;
    piece->is_begun = false;
    mutex_unlock(&piece->joint->lock);
}
