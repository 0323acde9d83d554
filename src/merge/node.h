/* A node of an active group: the rules put together, for one owner that has the clock, the links and the files.
 *
 *     own command -> merge_node_run      -> entry -> links
 *     link        -> merge_node_accept   -> records, vector, history -> other links
 *     link        -> merge_node_hear     -> words of members -> merge_node_advance: F and W -> merge_node_settle
 *
 * Nothing here waits, reads a clock or does I/O: times come as arguments, what is to be sent or written is returned.
 * A node is guarded by its owner. The fields are open for reading.
 *
 * What a crash loses and what it does not:
 *     identity   name, origin, former origins, bounds of stamp and wall time: on disk before they are used
 *     data       the last merge_node_save
 *     the rest   words of members, who is given up: heard anew
 *
 * Invariants
 *  1. The vector of an origin is the stamp of its last accepted entry, or a later promise of it.
 *  2. history has, for each origin, all entries above `cut` in their order; what is above `deeds` was never here.
 *  3. The clock is not below any stamp accepted, heard or promised. */
#pragma once

#include "base/compiler.h"
#include "merge/group.h"
#include "merge/record.h"

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
    struct merge_horizon horizon;
    struct merge_vector vector;
    struct merge_vector deeds;  /* as the vector, without promises */
    struct merge_vector cut;    /* the last entry of each origin that history has no more */
    struct merge_place recheck; /* a flush that came late, to be told to all; stamp 0: none */
};

/* A node's state of one moment: a file, or what a sponsor sends. Owns copies. */
struct merge_snapshot {
    struct merge_data data;
    struct merge_members members;
    struct merge_vector closed, removed;
    uint64_t clock;
    int64_t wall;
    bool forced; /* neither side can give what the other lacks */
};

struct merge_identity {
    uint64_t name, origin;
    uint32_t incarnation;
    struct merge_vector former; /* origins of starts before */
    uint64_t promised;          /* no stamp above was given or promised */
    int64_t wall;               /* no wall time above was used or promised */
};

struct merge_counts {
    uint64_t appended, placed, flushed, overwritten, late, late_wall, evicted_nothing, repaired, forgotten, freed;
};

struct merge_node {
    const struct merge_model *model;
    struct merge_identity identity;
    struct merge_data data;
    struct merge_group group;
    struct merge_vector saved; /* the vector of the last save */
    uint64_t clock;
    uint64_t last_own;      /* the stamp of this start's last entry */
    uint64_t evict_from;    /* no eviction before F has reached this */
    uint64_t word_sequence; /* of this start */
    bool ready;             /* false: a newcomer that waits for its snapshot */
    struct merge_counts counts;
};

/* A heartbeat, as an item of the streams of a link. */
struct merge_beat {
    uint64_t clock;
    struct merge_vector vector; /* of the origins that go by this link */
    struct merge_vector deeds;  /* of the same: the last operation before this */
    struct {
        struct merge_word **items; /* of members whose origins go by this link */
        uint32_t count, capacity;
    } words;
    struct merge_members members;
    struct merge_vector closed, removed;
};

enum merge_acceptance { MERGE_ACCEPTED, MERGE_OLD, MERGE_GAP };

/* What the receiver of a link says at its begin. Its fields belong to the node that says it. */
struct merge_hello {
    uint64_t name, origin, clock;
    uint32_t incarnation;
    bool ready;
    struct merge_members members; /* together with `removed`: else who hears of a removal could count only itself */
    struct merge_vector vector, deeds, cut, closed, removed;
};

enum merge_offer {
    MERGE_OFFER_NOTHING,  /* one of the two is not of the group any more */
    MERGE_OFFER_STREAM,   /* history has all that the other lacks */
    MERGE_OFFER_SNAPSHOT, /* a snapshot first */
    MERGE_OFFER_FORCED,   /* a snapshot though it lacks something that only the other has */
    MERGE_OFFER_WAIT      /* the other has to give first */
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
bool merge_node_may_evict(const struct merge_node *node);

/* --- the group --- */

void merge_beat_fini(struct merge_beat *beat);
struct merge_word *merge_node_word(struct merge_node *node, int64_t wall); /* a new heartbeat; release it */
/* A heartbeat that came behind all operations it speaks of. Returns false if some of them are missing here: ask
 * anew. */
must_check bool merge_node_hear(struct merge_node *node, const struct merge_beat *beat);
void merge_node_give_up(struct merge_node *node, uint64_t name);
/* Closes a member for good. Returns false if another one does not know all members yet. */
must_check bool merge_node_forget(struct merge_node *node, uint64_t name);

void merge_node_advance(struct merge_node *node, int64_t wall);  /* F and W */
void merge_node_settle(struct merge_node *node, uint64_t which); /* keys whose number modulo 64 has its bit set */
/* Writes dirty keys anew, and tells of a late flush, if it may. */
void merge_node_repair(struct merge_node *node, int64_t wall);

/* --- bounds --- */

uint64_t merge_node_window_bytes(const struct merge_node *node);
uint32_t merge_node_tombstones(const struct merge_node *node);
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

struct merge_hello merge_node_hello(const struct merge_node *node);
enum merge_offer merge_node_offer(const struct merge_node *node, const struct merge_hello *hello, bool may_force);
void merge_node_greet(struct merge_node *node, const struct merge_hello *hello);   /* learns from it */
void merge_node_sponsor(struct merge_node *node, const struct merge_hello *hello); /* save before the snapshot goes */
/* Takes the state over, and puts on top what only this node has. Returns false if it is refused or not needed. The
 * caller asks all links anew, in both directions, and saves. */
must_check bool merge_node_adopt(struct merge_node *node, const struct merge_snapshot *snapshot);

void merge_node_validate(const struct merge_node *node);
