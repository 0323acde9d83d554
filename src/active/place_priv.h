/* What the rooms of place share: `place` has batches, and which way an operation goes; `place_run` runs operations and
 * tells the journal; `place_model` is a key in the hands of merge/record.h; `place_flush` flushes; `place_raw` makes
 * operations of what a KeyDB server sends. */
#pragma once

#include "active/place.h"
#include "server/core/worker.h"
#include "store/access_at.h"
#include "store/window.h"

struct merge_op;

/* One key of an entry, with all that the entry does to it. */
struct target {
    struct place *place;
    const struct frame_entry *entry;
    struct key key;
    unsigned db;
    uint32_t first; /* its first operation; the others are behind it */
    bool overwrites, evicts;
    bool has_spot; /* where the key was found, or was missing, before the operations ran */
    struct access_spot spot;
    struct merge_place at;
};

static inline struct access *place_access(const struct place *place)
{
    return &place->worker->run.access;
}

static inline bool place_has_key(const struct frame_op *op)
{
    return op->key_index != 0 && op->key_index < op->word_count;
}

static inline const struct entry *target_look(const struct target *target)
{
    return access_look(place_access(target->place), target->db, &target->key);
}

static inline struct merge_value *target_value(const struct target *target)
{
    return window_value(target_look(target) != NULL);
}

/* --- place_run.c --- */

struct place_run {
    const struct slice *words;
    uint32_t word_count;
    const struct resp_blob_arg *blobs;
    uint32_t blob_count;
    unsigned db;
    int64_t wall;
    const struct command *command;  /* place_command of the words; NULL: not known yet */
    const struct key *key;          /* one of their keys, with its hash, or NULL */
    const struct access_spot *spot; /* where that is, or NULL */
    bool is_told; /* to clients and to readers of the plain stream; else it runs once more, or in between */
    struct place_capture *captured; /* gets its effects, as of a client; NULL: nobody */
};

enum place_ran { RAN_NOTHING, RAN_OWN_WORDS /* the last effect is the words themselves */, RAN_OTHER_WORDS };

/* NULL: this server has no such operation. */
const struct command *place_command(const struct slice *words, uint32_t word_count);
/* What happens in between is not this server's own. */
void place_run_begin(const struct place *place, int64_t wall, bool is_told);
void place_run_end(const struct place *place);
enum place_ran place_run_words(struct place *place, const struct place_run *run);
/* Returns false if readers of the plain stream do not know these words. target: it is on this one, or NULL. */
bool place_run_told(struct place *place, const struct frame_entry *entry, const struct frame_op *op,
                    const struct target *target);

void target_run_told(const struct target *target); /* all that its entry does to it */

/* Of the effects that have none yet. */
static ALWAYS_INLINE void place_describe_stamps(struct place *place, const struct effect_stamp *stamp)
{
    while (place->stamps.count < place->worker->run.effects.count)
        *ARRAY_PUSH(&place->stamps) = *stamp;
}
bool place_is_flush(const struct frame_entry *entry, const struct frame_op *op);
/* Other peers get it as it came. */
void place_add_operation(struct place *place, const struct frame_entry *entry, const struct frame_op *op,
                         bool is_there);
/* Readers of the plain stream get the value as it is at the end of the batch. */
void target_correct(const struct target *target);
/* The same, of a push of `count` elements before `behind` others: if they are few, by what comes to the same there. */
void target_correct_push(const struct target *target, bool is_first, uint64_t count, uint64_t behind);
void place_append_to_journal(struct place *place);

/* --- place_model.c --- */

struct place_model {
    struct window_model window; /* first */
    const struct target *target;
    bool tells;    /* what runs next are the target's operations: clients and readers of the plain stream see them */
    bool has_told; /* that was so */
    struct {
        uint64_t count, behind; /* elements; count 0: none */
        bool is_first;
    } pushed; /* before others */
};

void place_model_init(struct place_model *model, const struct target *target);
void place_model_destroy(const struct merge_model *model, struct merge_value *value);

void target_add_operation(struct target *target, const struct frame_op *op);
bool target_has(const struct target *target, const struct frame_op *op);
/* key: perhaps it, with its hash; or NULL. */
static inline void target_init(struct target *target, struct place *place, const struct frame_entry *entry,
                               uint32_t first, const struct key *key)
{
    const struct frame_op *op = &entry->ops[first];
    const bool has_hash = key != NULL && key->name.data == op->words[op->key_index].data;

    target->place = place;
    target->entry = entry;
    target->key = LIKELY(has_hash) ? *key : key_make(op->words[op->key_index]);
    target->db = op->db;
    target->first = first;
    target->at = (struct merge_place){entry->stamp, entry->origin};
    target->overwrites = op->overwrites;
    target->evicts = target->has_spot = false;
    if (UNLIKELY(op->evicts))
        target_add_operation(target, op);
    for (uint32_t i = first + 1; i < entry->op_count; i++) {
        if (target_has(target, &entry->ops[i]))
            target_add_operation(target, &entry->ops[i]);
    }
}
void target_base(const struct target *target, struct merge_record *base); /* of one that the window does not have */
/* Which of two with the same stamp is the younger one cannot be told. */
static inline void place_doubt_base(struct merge_record *base, uint64_t stamp)
{
    if (UNLIKELY(base->base_place.origin == MERGE_ORIGIN_FLOOR && base->base_place.stamp == stamp))
        base->base_overwrote = false;
}
/* All that the entry does to the key; valid until the next call of either. */
struct slice target_words(const struct target *target);
/* The same. The caller releases the operation's entry. */
struct merge_op *target_op(const struct target *target);
/* The other way: the words of one command go into place->args. Returns what is behind them. */
const char *place_read_words(struct place *place, const char *at);
/* If the key is there, which it returns. */
bool target_set_version(const struct target *target, struct merge_place last, bool overwrote);
struct merge_place target_mark(const struct target *target); /* the clock of this node is at least there */
void target_tell(const struct target *target);               /* the key may have come, gone or changed */
void target_inform(const struct target *target);             /* the same, but for readers of the plain stream */
/* What the record says now goes into the key's version and the window. */
void target_write_down(const struct target *target, struct window_key *known);

/* --- place_raw.c --- */

void place_raw_fini(struct place *place);
bool place_raw_keys(const struct frame_entry *entry, struct key_list *keys); /* as place_keys */
/* The entry gets operations instead of commands; they are valid until the next one. */
void place_raw_tell(struct place *place, struct frame_entry *entry);

/* --- place_libraries.c --- */

/* NULL: the operation is not about libraries of functions. */
const struct command *place_library_command(const struct frame_op *op);
/* What the entry does later to this library, or to all of them, stands for it. */
void place_library(struct place *place, const struct frame_entry *entry, uint32_t index);
void place_libraries_flush(struct place *place, const struct frame_entry *entry, uint32_t index);
bool place_library_value(struct place *place, const struct place_value *value); /* as place_value */

/* --- place_gather.c --- */

/* True if operations of the key wait for the end of the batch: then this one does, too. */
bool place_waits_among_others(const struct place *place, const struct target *target);
static inline bool place_waits(const struct place *place, const struct target *target)
{
    return UNLIKELY(place->waiting.count != 0) && place_waits_among_others(place, target);
}
/* It is put in its place at the end of the batch, together with others of its key. */
void place_gather(struct place *place, const struct target *target);
void place_merge(struct place *place); /* all of them, now */

/* --- place_flush.c --- */

/* It stands before everything else of its entry. */
void place_flush(struct place *place, const struct frame_entry *entry, const struct frame_op *op);
/* Another node says that a flush was late there: what rests on it is dirty. The flush itself may not be here yet. */
bool place_tells_late_flush(const struct frame_op *op);
void place_late_flush(struct place *place, const struct frame_entry *entry, const struct frame_op *op);
bool place_flushes(const struct frame_entry *entry, const struct frame_op *op, unsigned db); /* this database */
/* A flush of the same entry comes later. */
bool place_is_flushed_later(const struct frame_entry *entry, uint32_t index);
