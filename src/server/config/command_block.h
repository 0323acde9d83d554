/* Reasons why commands do not run for a while, as bits of one word, so that dispatch checks all of them at once. */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum command_block {
    COMMAND_BLOCK_LOADING = 1 << 0,   /* data is loading: loading.h */
    COMMAND_BLOCK_UNSAVED = 1 << 1,   /* snapshots fail, and stop-writes-on-bgsave-error is set: persistence.h */
    COMMAND_BLOCK_UNWRITTEN = 1 << 2, /* the append-only file cannot be written: aof_writer.h */
    COMMAND_BLOCK_MOVING = 1 << 3,    /* MIGRATE is moving keys to another server: migrate.h */
    /* As the role and its options say, set by src/replication: */
    COMMAND_BLOCK_READONLY = 1 << 4,     /* clients of a replica may not write */
    COMMAND_BLOCK_NO_REPLICAS = 1 << 5,  /* there are fewer good replicas than min-replicas-to-write */
    COMMAND_BLOCK_STALE = 1 << 6,        /* the master is away, and what may be old is not shown */
    COMMAND_BLOCK_LOADING_ASIDE = 1 << 7 /* data is loading beside that which is served: loading.h */
};

/* These concern writes, and PING, only. */
enum {
    COMMAND_BLOCKS_OF_WRITES = COMMAND_BLOCK_UNSAVED | COMMAND_BLOCK_UNWRITTEN | COMMAND_BLOCK_READONLY |
                               COMMAND_BLOCK_NO_REPLICAS
};

/* global: atomic: relaxed where commands read it, release where it changes. */
extern _Atomic unsigned command_block_bits;

static inline unsigned command_blocks(void)
{
    return atomic_load_explicit(&command_block_bits, memory_order_relaxed);
}

/* Number of changes of what is refused. A command is checked before it is inside of the gate: if the number has changed
 * when it is, it is checked again. So behind a change that was made with the gate owned no command runs that it
 * refuses. */
extern _Atomic uint32_t command_block_change_count; /* global: atomic: acquire, release */

static inline uint32_t command_block_changes(void)
{
    return atomic_load_explicit(&command_block_change_count, memory_order_acquire);
}
/* Something else has changed by which commands are refused: the role of the server. */
static inline void command_block_note_change(void)
{
    (void)atomic_fetch_add_explicit(&command_block_change_count, 1, memory_order_release);
}

static inline void command_block_set(enum command_block block, bool on)
{
    unsigned before;

    assert(block != 0 && (block & (block - 1)) == 0); /* one */
    if (on)
        before = atomic_fetch_or_explicit(&command_block_bits, block, memory_order_release);
    else
        before = atomic_fetch_and_explicit(&command_block_bits, ~(unsigned)block, memory_order_release);
    if (((before & (unsigned)block) != 0) != on)
        command_block_note_change();
}
