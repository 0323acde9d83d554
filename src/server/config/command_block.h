/* What keeps commands from running for a while, in one word: the way of a request looks at it once. */
#pragma once

#include "base/assert.h"
#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>

enum command_block {
    COMMAND_BLOCK_LOADING = 1 << 0,   /* the data is not there yet: loading.h */
    COMMAND_BLOCK_UNSAVED = 1 << 1,   /* snapshots fail, and clients shall hear of it: persistence.h */
    COMMAND_BLOCK_UNWRITTEN = 1 << 2, /* likewise the append only file: aof_writer.h */
    COMMAND_BLOCK_MOVING = 1 << 3     /* keys are on their way to another server: migrate.h */
};

extern _Atomic unsigned command_block_bits; /* global, atomic: relaxed where commands look, release where it changes */

static inline unsigned command_blocks(void)
{
    return atomic_load_explicit(&command_block_bits, memory_order_relaxed);
}

static inline void command_block_set(enum command_block block, bool on)
{
    assert(block != 0 && (block & (block - 1)) == 0); /* one */
    if (on)
        (void)atomic_fetch_or_explicit(&command_block_bits, block, memory_order_release);
    else
        (void)atomic_fetch_and_explicit(&command_block_bits, ~(unsigned)block, memory_order_release);
}
