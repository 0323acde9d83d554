/* The record of one key: its value at a base, and the operations since, in their order.
 *
 *     base place B  ->  step  ->  step  ->  ... step (the last place, L)  =  value now
 *
 * There is only the value now: each step knows what takes it back. An operation that belongs before others is put there
 * by taking those back and running them again. So an arrival costs as many steps as it comes too late, whatever the
 * size of the value, and one at the end costs nothing but itself.
 *
 * In place: additions of integers, and changes of different members, may come in any order. Such an operation runs at
 * the end also if it is older, and gets its place in the list, if the younger ones are such as well and did what they
 * should: the key was there with this type all along, no deadline was over, nobody was refused or near a limit. Then
 * their undos may be applied in any order, too, and the list is taken back as ever. Of younger changes of the same
 * member these alone are taken back and run again. A push on a list that younger ones have but pushed on puts its
 * elements before theirs: so many of them stand at its end. Who takes the list back meets each push at its end again.
 *
 * Joined: additions of one origin to the same integer may become one step, which has the place of the last one. What
 * arrives later and may be in any order with them does not care. What belongs among them and is no such is put before
 * it and counts as late; so does what makes them run again where one by one they might do something else.
 *
 * A key without a record stands at the floor or at the flush stamp, whichever is younger: of what is older nothing is
 * known, or nothing is left. All functions are pure: they know this record, the operation and the horizon. */
#pragma once

#include "merge/operation.h"

#ifdef MERGE_BREAKABLE
enum { MERGE_PART_MOST = 4 }; /* steps; few, as histories of simulations are short */
#else
enum { MERGE_PART_MOST = 1024 };
#endif

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
    struct merge_touch touch;
    bool was_missing; /* there was no key before it */
    bool is_apart;    /* if touch is known: its undo is */
};

/* Steps of a long list that stand together: so one can be put among a million others. */
struct merge_part {
    struct merge_step *steps; /* room for MERGE_PART_MOST */
    uint32_t count;
    bool is_known;                      /* what follows is up to date */
    bool adds;                          /* all of them are additions that others may pass */
    bool pushes;                        /* all of them are pushes that others may pass */
    uint64_t pushed_first, pushed_last; /* elements, by these */
};
struct merge_older {
    struct merge_part *items; /* none is empty */
    uint32_t count, capacity;
};

struct merge_record {
    struct merge_place base_place;
    struct merge_value *value;
    struct merge_older *older; /* the steps before `steps`; NULL: there are none */
    struct merge_step *steps;  /* the last ones; ascending by place, all behind the base */
    uint32_t count, capacity;  /* of these; 0: there are no steps at all */
    bool base_overwrote;       /* what is older than the base does not matter */
    bool has_lent;             /* `steps` is memory of the record's owner (merge_record_lend) */
    bool has_joined;           /* there may be steps that stand for several operations (merge_record_join) */
};

enum merge_outcome {
    MERGE_APPENDED,    /* ran at the end */
    MERGE_PLACED,      /* older than the last one: the younger ones ran again behind it */
    MERGE_FLUSHED,     /* older than the flush stamp: dropped */
    MERGE_OVERWRITTEN, /* older than what overwrote: dropped */
    MERGE_LATE,        /* its place is gone, or what joined steps did: the key is dirty */
    MERGE_LATE_NOTHING /* an eviction of what was freed here already */
};

/* Where a step is, or would be: index `at` of a part; part older->count is the last one. */
struct merge_spot {
    uint32_t part, at;
};
/* Returns the step there, and goes to the next one; {0} is the first. NULL: there is no more. */
struct merge_step *merge_record_next(const struct merge_record *record, struct merge_spot *spot);
uint64_t merge_record_step_count(const struct merge_record *record);
uint64_t merge_record_stamp_at(const struct merge_record *record, uint64_t index); /* of the step; it is there */
/* The stamp of a step; when it is settled, enough others are to make dropping them worthwhile. There are steps. */
uint64_t merge_record_drop_from(const struct merge_record *record);

void merge_record_init(struct merge_record *record, const struct merge_horizon *horizon); /* of a missing key */
void merge_record_fini(struct merge_record *record, const struct merge_model *model);
/* Room for `capacity` steps, until it needs more: of a record without any, as long as it stays where it is. */
void merge_record_lend(struct merge_record *record, struct merge_step *steps, uint32_t capacity);
void merge_record_copy(struct merge_record *to, const struct merge_record *from, const struct merge_model *model);

struct merge_place merge_record_last(const struct merge_record *record); /* L */
bool merge_record_base_is_missing(const struct merge_record *record);
uint64_t merge_record_window_bytes(const struct merge_record *record); /* of its list */

/* Takes in an operation of any age. `exists`: the key has a record (a tombstone is one), so `record` is not what
 * merge_record_init made just now. */
enum merge_outcome merge_record_place(struct merge_record *record, struct merge_op *op, bool exists,
                                      const struct merge_horizon *horizon, const struct merge_model *model);

/* Runs an operation at the end that is older than the last one, if that is the same. Returns its step, valid until the
 * next call; or NULL: nothing was done. */
enum { MERGE_PASSED_MOST = 1 << 20 }; /* steps that are younger */
const struct merge_step *merge_record_run_in_place(struct merge_record *record, struct merge_op *op,
                                                   const struct merge_horizon *horizon,
                                                   const struct merge_model *model);
/* How many steps are younger, which are to be taken back and run again. */
uint32_t merge_record_younger(const struct merge_record *record, struct merge_place place);

/* An operation has run here, at the end, by other means than the model. The record takes over a reference to the
 * operation's entry, and the undo. `value`: what the key is now. */
void merge_record_ran(struct merge_record *record, struct merge_op *op, struct merge_undo *undo, bool was_missing,
                      struct merge_value *value);
/* Notes what the last step touches, which whoever passes it would ask for. It ran just now, so that is cheaper here. */
void merge_record_note_last(struct merge_record *record, const struct merge_model *model);
void merge_record_ran_over(struct merge_record *record, struct merge_place place, struct merge_value *value,
                           const struct merge_model *model); /* the same for one that overwrote */

/* As merge_record_place for each of them, which are ascending by place. Costs one way back and forth for all together,
 * and one more if one of them overwrites: for arrivals that were gathered. */
void merge_record_place_all(struct merge_record *record, struct merge_op *const *ops, uint32_t count, bool exists,
                            const struct merge_horizon *horizon, const struct merge_model *model,
                            enum merge_outcome *outcomes);

/* Runs a flush. Returns MERGE_APPENDED if nothing of the key is left, MERGE_PLACED if something younger is,
 * MERGE_OVERWRITTEN if all of the key is younger, MERGE_LATE if that cannot be known; the key may have changed, too. */
enum merge_outcome merge_record_flush(struct merge_record *record, struct merge_place flush,
                                      const struct merge_model *model);

/* True if the key would be another one, as far as can be known, had this flush not been. */
bool merge_record_rests_on(const struct merge_record *record, struct merge_place flush);

/* Drops what the frontiers have passed. Returns whether the key is nothing but a tombstone that is not needed any more:
 * then the floor rises to F and the record goes. `keep`: it is dirty, and keeps its value and its place. */
bool merge_record_settle(struct merge_record *record, const struct merge_horizon *horizon, bool keep,
                         const struct merge_model *model);

/* Joins additions up to this stamp; looks at no more than about so many steps, the oldest. Returns how many steps there
 * are less. */
uint64_t merge_record_join(struct merge_record *record, uint64_t until, uint32_t most, const struct merge_model *model);
/* The step at this place, which somebody has put in, was joined elsewhere. False: there is none. */
bool merge_record_note_joined(struct merge_record *record, struct merge_place place, struct merge_joined joined);

/* Gives up the list, as there is no memory for it: the value now becomes the base. */
void merge_record_forget_list(struct merge_record *record, const struct merge_model *model);
void merge_record_validate(const struct merge_record *record); /* asserts the order */
