/* Active replication in RDB files: versions of keys, the state of the node, its window. The part that knows these
 * provides the functions; while it says no, files have nothing of it, and nothing of it is read. The format:
 * docs/active-replication.md, "Files". */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "merge/vector.h"
#include "persist/rdb_save.h"
#include "store/access.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATA_ORDER_ERROR_BYTES = 200 };

struct worker;

/* Of one moment. Zeroed memory is empty. */
struct data_order {
    struct rdb_origins origins;
    struct buffer state; /* the keeper's own bytes */
};

/* What a file has. Zeroed memory has nothing. */
struct data_order_found {
    struct buffer state; /* empty: none */
    struct {
        struct slice *items; /* owned */
        uint32_t count, capacity;
    } records;
    /* What an append-only file has done behind its base: */
    bool is_begun; /* the base was taken over */
    struct merge_vector done;
};

/* What one stamp did, in an append-only file. */
struct data_order_entry {
    uint64_t origin, stamp, previous;
    int64_t wall_ms;
    uint64_t seen; /* of an eviction: the stamp of the key's last operation; 0: it is none */
    const struct data_order_operation {
        const struct slice *words;
        uint32_t word_count;
        unsigned db;
    } * operations;
    uint32_t count;
};

/* All are called with the gate owned, or before the workers start, or by the one thread that loads. */
struct data_order_keeper {
    bool (*is_on)(void);                   /* files that are written have it */
    bool (*is_wanted)(void);               /* it is read from files; also at start, when it is not on yet; any thread */
    void (*now)(struct data_order *order); /* while it is on */
    /* Any thread: the file of the moment that was asked for last has its own name on the disk, a restart loads it. */
    void (*stored)(void);
    /* Gives the records of the window, until `take` returns false; also in a forked child. Of a snapshot that is live:
     * those of data_order_keep. */
    void (*records)(struct snapshot *keys, bool (*take)(struct slice record, void *context), void *context);
    void (*keep)(struct snapshot *keys);
    void (*let_go)(struct snapshot *keys);
    unsigned (*origin)(uint64_t id); /* the local number of one that a file names */
    /* An append-only file: its base is loaded, what it has behind it comes. False: `error` has the reason. */
    bool (*begin)(struct worker *worker, const struct data_order_found *found, char error[DATA_ORDER_ERROR_BYTES]);
    void (*place)(struct worker *worker, const struct data_order_entry *entry); /* in its order */
    void (*end)(void);
    /* The data are those of a file; an empty state: of one that has none. False: `error` has the reason. */
    bool (*restore)(struct access *access, const struct data_order_found *found, char error[DATA_ORDER_ERROR_BYTES]);
};
/* Once, before anything is loaded; the caller keeps the struct valid. */
void data_order_provide(const struct data_order_keeper *provided);

bool data_order_is_wanted(void); /* any thread */
/* Empties `order` first. Leaves it empty if it is off. */
void data_order_now(struct data_order *order);
/* An RDB file with what was asked for last is on the disk. Any thread. */
void data_order_stored(void);
static inline bool data_order_is_empty(const struct data_order *order)
{
    return order->state.size == 0;
}
void data_order_copy(struct data_order *to, const struct data_order *from); /* `to` is one already, or all-zero */
void data_order_fini(struct data_order *order);
/* With the gate owned: a thread will write the window of this moment while it changes, of the keys that this snapshot
 * has. Does nothing if it is off. */
void data_order_keep(struct snapshot *keys);
/* That thread, in the end, whether it has written it or not. */
void data_order_let_go(struct snapshot *keys);
/* Adds what the moment needs to a file of it: `aux` is room for one more fact behind the request's. */
void data_order_fill_save(const struct data_order *order, struct rdb_save_request *request, struct rdb_aux *aux);

/* For rdb_load_request. */
unsigned data_order_origin(uint64_t id, void *context);
void data_order_take(struct data_order_found *found, struct slice name, struct slice value); /* a fact of a file */
/* The commands of an append-only file, in their order. Whoever calls is alone with the data. */
must_check bool data_order_begin(struct data_order_found *found, struct worker *worker,
                                 char error[DATA_ORDER_ERROR_BYTES]); /* once; behind its base */
void data_order_place(struct data_order_found *found, struct worker *worker, const struct data_order_entry *entry);
/* A command without a stamp changes the key next; what is returned goes to data_order_left, when it has. */
uint64_t data_order_leave(struct access *access, unsigned db, const struct key *key);
void data_order_left(struct access *access, unsigned db, const struct key *key, uint64_t last);
void data_order_end(const struct data_order_found *found); /* all was loaded, or nothing more is */
/* All is loaded. Does nothing if it is not wanted. */
must_check bool data_order_restore(struct access *access, const struct data_order_found *found,
                                   char error[DATA_ORDER_ERROR_BYTES]);
void data_order_found_fini(struct data_order_found *found);
