/* Operations and entries. An operation is what one command did to one key: a total function of the key's state, its own
 * words and its wall time. An entry is what one stamp did: the operations of a command or a transaction, at most one a
 * key, or a flush.
 *
 * The module does not know values. It runs operations through a `merge_model`, which the simulation fills with small
 * values of its own and the server with the real ones. A value may be no more than a sign that the key is there, if the
 * model knows where the value is: there is never more than one value of a record, and a value goes before another one
 * is made in its place.
 *
 * Entries never change. They are counted references without atomics: the owner of a node guards all that is its own. */
#pragma once

#include "base/slice.h"
#include "merge/place.h"

#include <stdbool.h>
#include <stdint.h>

struct merge_value; /* of the model; NULL is a key that does not exist */

struct merge_op {
    struct merge_entry *entry;
    struct merge_place place;
    bool overwrites; /* what is older does not matter to it */
    bool evicts;     /* overwrites, too */
    uint64_t seen;   /* of an eviction: the stamp of the key's last operation then */
    struct slice key, words;
};

/* Of an entry of a record that stands for several additions of its origin (merge_record_join). */
struct merge_joined {
    uint64_t first;  /* the stamp of the first one; 0: it stands for itself */
    uint64_t weight; /* the sum of what they added, all amounts taken as positive */
};

struct merge_entry {
    uint32_t references, op_count;
    uint64_t origin, stamp;
    uint64_t prev; /* the stamp of the origin's operation before */
    int64_t wall;  /* the origin's wall time, as used when the command ran; never falls at an origin */
    bool flush;    /* keys whose last stamp is below go */
    union {
        struct merge_place recheck; /* stamp not 0: that flush was late somewhere; what rests on it is written anew */
        struct merge_joined joined; /* of an entry with operations */
    };
    struct merge_op ops[];
};

static inline bool merge_op_is_joined(const struct merge_op *op)
{
    return op->entry->joined.first != 0;
}

/* What a caller gives to make an operation of. */
struct merge_item {
    struct slice key, words;
    bool overwrites;
    bool evicts;
    uint64_t seen; /* of an eviction: the stamp of the key's last operation */
};

/* What an operation touches of its key, as far as it matters to running out of its place: one member (a number made of
 * its name; 0 of a value that has none), one end of a list, or possibly everything. */
enum merge_touch_kind {
    MERGE_TOUCH_UNKNOWN, /* the model was not asked yet */
    MERGE_TOUCHES_ALL,
    MERGE_WRITES,       /* the member becomes what the words say */
    MERGE_REMOVES,      /* the member goes, if it is there */
    MERGE_ADDS,         /* to the integer that the member is */
    MERGE_PUSHES_FIRST, /* so many elements (in the place of the member) become the first ones of the list */
    MERGE_PUSHES_LAST   /* or the last ones */
};

struct merge_touch {
    uint32_t member;
    uint8_t kind; /* enum merge_touch_kind */
};

struct merge_undo; /* of the model: what an operation touched, as it was; never changes, counted references */

/* Two additions as one. */
struct merge_sum {
    struct slice words;      /* memory that the caller frees (mem_free) */
    struct merge_undo *undo; /* which is apart */
    uint64_t weight;
};

/* Functions get the model itself first: what it knows besides may stand around it. */
struct merge_model {
    /* Runs the operation. It meets nothing whose deadline its wall time has reached, on every node. Takes the value
     * over, may change it in place, and returns what it becomes. `undo` may be NULL; else it gets what takes the
     * operation back, or NULL if it changed nothing. */
    struct merge_value *(*apply)(const struct merge_model *model, struct merge_value *value, const struct merge_op *op,
                                 struct merge_undo **undo);
    /* Takes the last operation back that was run on this value and not taken back yet. Takes the value over. */
    struct merge_value *(*undo)(const struct merge_model *model, struct merge_value *value,
                                const struct merge_undo *undo);
    struct merge_touch (*touch)(const struct merge_model *model, const struct merge_op *op);
    /* The operation is older than `younger` others, each of which touched one member alone. Is it the same on the value
     * as it is now? An integer is so far from the limits that no order of them would meet one, and the key does not
     * get empty by it before any of them, nor while the last `again` of its member are taken back and run again
     * behind it. If so, that and `apply` follow; of one that pushes (no list is full then) `apply_behind`, or
     * `apply` if nothing stands behind it, which `again` tells: 0. */
    bool (*suits)(const struct merge_model *model, const struct merge_value *value, const struct merge_op *op,
                  uint32_t younger, uint32_t again);
    /* Does it take back what such an operation did to its member, and nothing else, whatever others have done to the
     * value since? That of an addition takes off what was added; that of a push as many elements as it has pushed, from
     * the same end. No if the operation made the key or met a deadline. */
    bool (*undo_is_apart)(const struct merge_model *model, const struct merge_undo *undo, enum merge_touch_kind kind);
    /* Two additions with undos that are apart. False: they are to different integers, or together more than `suits`
     * takes for one. */
    bool (*join)(const struct merge_model *model, const struct merge_op *older, const struct merge_undo *older_undo,
                 const struct merge_op *younger, const struct merge_undo *younger_undo, struct merge_sum *sum);
    /* Is an addition the same on this value as all that it stands for, also if these and so many others were in any
     * order? No deadline is near, and no limit. */
    bool (*suits_joined)(const struct merge_model *model, const struct merge_value *value, const struct merge_op *op,
                         uint32_t others);
    /* Runs an operation that pushes, as `apply`, but `behind` elements at its end stay there: younger ones have pushed
     * them. What takes it back is as if these were not there: they are taken back before. */
    struct merge_value *(*apply_behind)(const struct merge_model *model, struct merge_value *value,
                                        const struct merge_op *op, uint64_t behind, struct merge_undo **undo);
    struct merge_undo *(*undo_acquire)(const struct merge_model *model, struct merge_undo *undo); /* accepts NULL */
    void (*undo_release)(const struct merge_model *model, struct merge_undo *undo);               /* accepts NULL */
    /* What has a deadline <= wall goes. Takes the value over. */
    struct merge_value *(*expire)(const struct merge_model *model, struct merge_value *value, int64_t wall);

    struct merge_value *(*copy)(const struct merge_model *model,
                                struct merge_value *value); /* may count a reference; NULL gives NULL */
    void (*destroy)(const struct merge_model *model, struct merge_value *value); /* accepts NULL */
    /* The words of an overwriting operation that makes a key this value. The caller frees the memory (mem_free). */
    struct slice (*restore)(const struct merge_model *model, const struct merge_value *value);
};

struct merge_entry *merge_entry_create(uint64_t origin, uint64_t stamp, uint64_t prev, int64_t wall, bool flush,
                                       const struct merge_item *items, uint32_t item_count);
struct merge_entry *merge_entry_acquire(struct merge_entry *entry);
void merge_entry_release(struct merge_entry *entry);
uint64_t merge_op_bytes(const struct merge_op *op); /* what the window counts for it */

/* Runs the operation; what it overwrites is destroyed before. */
struct merge_value *merge_op_run(const struct merge_op *op, struct merge_value *value, struct merge_undo **undo,
                                 const struct merge_model *model);
