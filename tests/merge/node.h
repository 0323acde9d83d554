/* A node of the simulation: the state of merge/state.h with keys, their history and its files, all in plain arrays.
 *
 *     own command -> merge_node_run      -> entry -> links
 *     link        -> merge_node_accept   -> records, vector, history -> other links
 *     link        -> merge_node_hear     -> words of members -> merge_node_advance: F and W -> merge_node_settle
 *
 * A node is guarded by its owner. The fields are open for reading. */
#pragma once

#include "base/compiler.h"
#include "merge/record.h"
#include "merge/state.h"

struct merge_key {
    struct slice name; /* own memory */
    struct merge_record record;
};

struct merge_dirty {
    struct slice name;         /* own memory */
    struct merge_place marked; /* an overwriting operation behind this makes the key clean */
};

/* What is in files and snapshots. */
struct merge_data {
    struct {
        struct merge_key *items; /* ascending by name */
        uint32_t count, capacity;
    } keys;
    struct {
        struct merge_dirty *items;
        uint32_t count, capacity;
    } dirty;
    struct {
        struct merge_entry **items; /* in the order of arrival */
        uint32_t count, capacity;
    } history;
    struct merge_horizon horizon; /* its frontiers are the state's */
    struct merge_place recheck;   /* a flush that came late, to be told to all; stamp 0: none */
};

/* A node's state of one moment: a file, or what a sponsor sends. Owns copies. */
struct merge_snapshot {
    struct merge_data data;
    struct merge_account account;
};

struct merge_counts {
    uint64_t appended, placed, flushed, overwritten, late, late_wall, evicted_nothing, repaired, joined, forgotten,
        freed;
};

struct merge_node {
    const struct merge_model *model;
    struct merge_state state;
    struct merge_data data;
    uint64_t last_own;     /* the stamp of this start's last entry */
    int64_t promised_wall; /* no command that runs uses a wall time below */
    struct merge_counts counts;
};

struct merge_node *merge_node_create(const struct merge_model *model, uint64_t name, uint64_t origin);
void merge_node_destroy(struct merge_node **node);

/* --- the data --- */

struct merge_key *merge_node_find(const struct merge_node *node, struct slice name); /* NULL: no record */
bool merge_node_is_dirty(const struct merge_node *node, struct slice name);

/* Runs an own command as resolved: items, or a flush. `wall` is the clock of this moment. Returns the entry, which the
 * node's history holds. */
struct merge_entry *merge_node_run(struct merge_node *node, const struct merge_item *items, uint32_t count, bool flush,
                                   int64_t wall);
int64_t merge_node_wall(struct merge_node *node, int64_t wall); /* the wall time to run a command with: never falls */
/* Takes an entry of another node, from whatever link. MERGE_GAP: something is missing before it, ask anew. */
enum merge_acceptance merge_node_accept(struct merge_node *node, struct merge_entry *entry);

/* --- the group --- */

struct merge_word *merge_node_word(struct merge_node *node, int64_t wall); /* a new heartbeat; release it */
void merge_node_advance(struct merge_node *node, int64_t wall);            /* F and W */
void merge_node_settle(struct merge_node *node, uint64_t which); /* keys whose number modulo 64 has its bit set */
/* Writes dirty keys anew, and tells of a late flush, if it may. */
void merge_node_repair(struct merge_node *node, int64_t wall);

/* --- bounds --- */

uint64_t merge_node_window_bytes(const struct merge_node *node);
uint32_t merge_node_tombstones(const struct merge_node *node);
/* Joins additions until the window is within its bound, or all are. */
void merge_node_join(struct merge_node *node, uint64_t window_bytes);
/* Gives up the lists with the oldest operations, then the oldest tombstones, until both are within their bounds. */
void merge_node_bound(struct merge_node *node, uint64_t window_bytes, uint32_t tombstones);
/* Cuts the history down to what F has passed; with `saved` also only what members have on disk. */
void merge_node_trim(struct merge_node *node, bool saved);

/* --- files, snapshots --- */

struct merge_snapshot *merge_node_snapshot(struct merge_node *node, int64_t wall);
struct merge_snapshot *merge_node_save(struct merge_node *node);
void merge_snapshot_destroy(struct merge_snapshot **snapshot, const struct merge_model *model);
/* A new start from the last save, with a new origin. The identity survived. */
void merge_node_restart(struct merge_node *node, const struct merge_snapshot *saved, uint64_t origin);

/* Takes the state over, and puts on top what only this node has. Returns false if it is refused or not needed. The
 * caller asks all links anew, in both directions, and saves. */
must_check bool merge_node_adopt(struct merge_node *node, const struct merge_snapshot *snapshot);

void merge_node_validate(const struct merge_node *node);
