/* The record of one key: its value at a base, and the operations since, in their order.
 *
 *     base place B  ->  step  ->  step  ->  ... step (the last place, L)  =  value now
 *
 * There is only the value now: each step knows what takes it back. An operation that belongs before others is put there
 * by taking those back and running them again. So an arrival costs as many steps as it comes too late, whatever the
 * size of the value, and one at the end costs nothing but itself.
 *
 * A key without a record stands at the floor or at the flush stamp, whichever is younger: of what is older nothing is
 * known, or nothing is left. All functions are pure: they know this record, the operation and the horizon. */
#pragma once

#include "merge/operation.h"

/* What a node knows of the past. */
struct merge_horizon {
    uint64_t frontier;        /* F: every member has all operations up to this stamp */
    int64_t wall;             /* W: nobody runs a command with a wall time below this any more */
    uint64_t floor;           /* of a missing key nothing older is known */
    struct merge_place flush; /* the youngest flush */
};

struct merge_step {
    struct merge_op *op;     /* holds its entry */
    struct merge_undo *undo; /* NULL: it was refused, or changed nothing */
    bool was_missing;        /* there was no key before it */
};

struct merge_record {
    struct merge_place base_place;
    struct merge_value *value;
    struct merge_step *steps; /* ascending by place, all behind the base */
    uint32_t count, capacity;
    bool base_overwrote; /* what is older than the base does not matter */
};

enum merge_outcome {
    MERGE_APPENDED,    /* ran at the end */
    MERGE_PLACED,      /* older than the last one: the younger ones ran again behind it */
    MERGE_FLUSHED,     /* older than the flush stamp: dropped */
    MERGE_OVERWRITTEN, /* older than what overwrote: dropped */
    MERGE_LATE,        /* its place is gone: the key is dirty */
    MERGE_LATE_NOTHING /* an eviction of what was freed here already */
};

void merge_record_init(struct merge_record *record, const struct merge_horizon *horizon); /* of a missing key */
void merge_record_fini(struct merge_record *record, const struct merge_model *model);
void merge_record_copy(struct merge_record *to, const struct merge_record *from, const struct merge_model *model);

struct merge_place merge_record_last(const struct merge_record *record); /* L */
bool merge_record_base_is_missing(const struct merge_record *record);
uint64_t merge_record_window_bytes(const struct merge_record *record); /* of its list */

/* Takes in an operation of any age. `exists`: the key has a record (a tombstone is one), so `record` is not what
 * merge_record_init made just now. */
enum merge_outcome merge_record_place(struct merge_record *record, struct merge_op *op, bool exists,
                                      const struct merge_horizon *horizon, const struct merge_model *model);

/* As merge_record_place for each of them, which are ascending by place. Costs one way back and forth for all together:
 * for arrivals that were gathered while the key had a long list. */
void merge_record_place_all(struct merge_record *record, struct merge_op *const *ops, uint32_t count, bool exists,
                            const struct merge_horizon *horizon, const struct merge_model *model,
                            enum merge_outcome *outcomes);

/* Runs a flush. Returns MERGE_APPENDED if nothing of the key is left, MERGE_PLACED if something younger is,
 * MERGE_OVERWRITTEN if all of the key is younger, MERGE_LATE if that cannot be known. */
enum merge_outcome merge_record_flush(struct merge_record *record, struct merge_place flush,
                                      const struct merge_model *model);

/* True if the key would be another one, as far as can be known, had this flush not been. */
bool merge_record_rests_on(const struct merge_record *record, struct merge_place flush);

/* Drops what the frontiers have passed. Returns whether the key is nothing but a tombstone that is not needed any more:
 * then the floor rises to F and the record goes. `keep`: it is dirty, and keeps its value and its place. */
bool merge_record_settle(struct merge_record *record, const struct merge_horizon *horizon, bool keep,
                         const struct merge_model *model);

/* Gives up the list, as there is no memory for it: the value now becomes the base. */
void merge_record_forget_list(struct merge_record *record, const struct merge_model *model);
void merge_record_validate(const struct merge_record *record); /* asserts the order */
