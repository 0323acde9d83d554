/* Which point of which history (of replication) the data is: written into RDB files, and read back at start, so that a
 * server that restarts can continue. src/replication knows it, and provides the functions. */
#pragma once

#include "base/compiler.h"
#include "base/number.h"
#include "base/slice.h"
#include "persist/rdb_save.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATA_HISTORY_ID_SIZE = 40, DATA_HISTORY_FACTS = 3 };

struct data_history {
    char id[DATA_HISTORY_ID_SIZE + 1]; /* hexadecimal digits */
    int64_t offset;
    unsigned stream_db; /* the database that is selected there in the stream */
};

/* Both are called with the gate owned, or before the workers start. */
struct data_history_keeper {
    bool (*now)(struct data_history *history);           /* false: the data is no point of a history that others know */
    void (*restore)(const struct data_history *history); /* the data that was loaded at start is this point */
};
/* Once, before anything is loaded; the caller keeps the struct valid. */
void data_history_provide(const struct data_history_keeper *provided);

must_check bool data_history_now(struct data_history *history);
void data_history_restore(const struct data_history *history);

/* As facts in a file. */
struct data_history_texts {
    char db[NUMBER_I64_SPACE], offset[NUMBER_I64_SPACE];
};
void data_history_write(const struct data_history *history, struct data_history_texts *texts,
                        struct rdb_aux facts[DATA_HISTORY_FACTS]);

/* Facts of a file that is being read. Zeroed memory has none. */
struct data_history_found {
    struct data_history history;
    bool has_id, has_offset, has_db;
};
void data_history_take(struct data_history_found *found, struct slice name, struct slice value);
static inline bool data_history_is_whole(const struct data_history_found *found)
{
    return found->has_id && found->has_offset && found->has_db;
}
