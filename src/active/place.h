/* Places the operations of peers: each runs where it belongs in the one order of all operations (merge/record.h), on
 * the real keys. Whoever calls has accepted the entry: it is the next one of its origin.
 *
 *     place_keys       which stripes an entry needs
 *     place_begin      these stripes are held, or the gate is owned
 *     place_entry ...
 *     place_end        before they are released: the journal has all of it
 *
 * An operation of which the order makes no difference runs at the end, too. Others wait for the end of the batch: then
 * those of one key are put in place together, with one way back and forth. So a key that all nodes write costs as much
 * as there are operations, however late they come.
 *
 * An operation that is younger than all of its key runs as a command that is obeyed, at its origin's wall time. The
 * younger ones of an older one are taken back and run again behind it, and nobody sees what was in between. Clients
 * that wait, watch, track or listen are told as of changes by clients. The journal gets the operation with its origin
 * and stamp, for other peers; readers of the plain stream get its effect, or the value as it is then.
 *
 * One thread, that of its worker, calls everything here. */
#pragma once

#include "active/frame.h"
#include "base/array.h"
#include "base/table.h"
#include "server/command/key_list.h"
#include "store/changed.h"
#include "store/journal.h"

#include <stdbool.h>
#include <stdint.h>

struct access;
struct client;
struct place_waiting;
struct window_key;
struct window_step;
struct worker;

struct place_correction {
    uint64_t hash;
    size_t name_at, name_size;
    unsigned db;
};

/* What came of the operations. */
struct place_counts {
    uint64_t appended;  /* ran at the end */
    uint64_t placed;    /* younger ones ran again behind them */
    uint64_t dropped;   /* older than what overwrote, than a flush, or than what was evicted */
    uint64_t late;      /* their place was gone: the key is dirty */
    uint64_t late_wall; /* what they met may have been freed here: likewise */
    uint64_t flushes;
    uint64_t late_flushes; /* of these: what is missing here may have been there behind them */
    uint64_t unknown;      /* no such command, or in a database that is not here */
    uint64_t refused;      /* replied an error, as they would on one server */
};

/* Zeroed memory is a place that holds nothing. Owner: the worker's thread. */
struct place {
    struct worker *worker; /* of the batch; NULL: there is none */
    struct client *client; /* in whose name operations run */
    bool exclusive;
    uint64_t begun_us;
    bool is_journaled;                /* the journal has the entries of the batch already */
    struct place_counts counts, told; /* told: what place_totals has of them */
    struct {
        struct effect_stamp *items;
        uint32_t count, capacity;
    } stamps; /* of the effects that the journal does not have yet */
    struct {
        struct slice *items;
        uint32_t count, capacity;
    } args; /* of the operation that runs again */
    struct {
        struct place_correction *items;
        uint32_t count, capacity;
    } corrections;                                          /* keys whose value the plain stream does not give */
    struct buffer words;                                    /* names of corrections */
    enum { PLAIN_UNKNOWN, PLAIN_READ, PLAIN_UNREAD } plain; /* whether anybody reads corrections of this batch */
    uint64_t correcting_us;                                 /* that the last ones have taken */
    struct buffer undo, step_words;                         /* of the operation that runs */
    struct {
        struct place_waiting **items;
        uint32_t count, capacity;
    } waiting;           /* keys with operations that belong before younger ones: put in place together, at the end */
    struct table by_key; /* of these */
    uint64_t waiting_count, going_back; /* such operations; steps that they are to go back, of all keys */
    unsigned flushed_db;
    bool flush_corrects;  /* it meets each key once: none is looked for in `corrections` */
    struct key_list keys; /* of the operation that runs */
    struct {
        struct place_capture {
            struct effects effects;
            struct changed changed;
        } capture;
        struct buffer bytes;
        struct {
            struct frame_op *items;
            uint32_t count, capacity;
        } ops;
        struct {
            struct slice *items;
            uint32_t count, capacity;
        } words;
    } raw; /* the operations of an entry of a KeyDB server */
    struct {
        const struct command *command; /* NULL: none is kept */
        uint64_t name;                 /* as the operation had it, in one word */
        size_t name_size;
    } known;               /* the command of the last operation */
    uint64_t known_origin; /* the last one that was asked for, and its local number */
    unsigned known_number;
};

void place_fini(struct place *place);

/* An entry of a KeyDB server, whose commands may be on several keys, and are no functions of one: notes what else is to
 * be known of it. Where it is placed its commands run once, on what is there; that tells the operations, of which each
 * is on one key. These are taken back then, and placed. Before place_keys. */
void place_describe_raw(struct frame_entry *entry);
must_check bool place_keys_of_any(const struct frame_entry *entry, struct key_list *keys);
uint32_t place_key_count_of_any(const struct frame_entry *entry);
/* Adds the keys of the entry, in the order of its operations. False: it needs the gate (a flush, a library of
 * functions). */
static inline must_check bool place_keys(const struct frame_entry *entry, struct key_list *keys)
{
    if (UNLIKELY(!entry->is_of_one_key))
        return place_keys_of_any(entry, keys);
    *ARRAY_PUSH(keys) = key_make(entry->ops->words[entry->ops->key_index]);
    return true;
}
static inline uint32_t place_key_count(const struct frame_entry *entry) /* how many that are */
{
    return LIKELY(entry->is_of_one_key) ? 1 : place_key_count_of_any(entry);
}
/* Begins a batch: inside of the gate with the stripes of all keys, or (exclusive) with the gate owned. */
void place_begin(struct place *place, struct worker *worker, bool exclusive);
/* With the gate owned: the entries are in the journal, but not in the data any more, as these were replaced. Readers of
 * the plain stream begin anew with the data. */
void place_begin_again(struct place *place, struct worker *worker);
/* keys: those that place_keys has added for it, or NULL. */
void place_entry(struct place *place, const struct frame_entry *entry, const struct key *keys);
/* A key as it was before the data were replaced. */
struct place_value {
    unsigned db;
    struct key key;
    struct merge_place last;   /* its last operation; stamp 0: not known, it is older than all that have one */
    bool overwrote;            /* that did */
    const struct slice *words; /* of the command that makes its value, or DEL */
    uint32_t word_count;
};
/* Between place_begin_again and place_end: it stays if it is younger than what is here now. The key is dirty then, in
 * any case. Returns whether it stays. */
bool place_value(struct place *place, const struct place_value *value);
/* Likewise a step of the window, as it was before that: what one entry did to this key. */
void place_step(struct place *place, unsigned db, const struct key *key, const struct window_step *step);
/* Likewise: keys have come of another node, which does not know the last flush of this database: only what it leaves of
 * them stays. Of the keys that were here it leaves what it has left. */
void place_flush_again(struct place *place, unsigned db);
/* The key is dirty, if anything is known of it. */
void place_doubt(struct place *place, unsigned db, const struct key *key);
/* Likewise: the value at the base, from a payload of DUMP or without one, takes the place of what the key is now; its
 * list is empty. Steps follow. False: it is no value, and the key is gone. */
struct place_base {
    unsigned db;
    struct key key;
    struct merge_place place, dirty; /* dirty: stamp 0: it is clean */
    bool overwrote, has_value;
    int64_t expire_ms;
    struct slice payload;
};
must_check bool place_base(struct place *place, const struct place_base *base);
/* True if what waits costs so much that the batch should end; not before as much has come as makes it worth that. */
bool place_is_full(const struct place *place);
bool place_goes_far_back(const struct place *place); /* what waits goes back farther than is good for so few */
/* Before the stripes are released. */
void place_end(struct place *place);
/* The stamp of the key's last operation, also of one that has deleted it; 0: none is known. Its stripe is held. */
uint64_t place_last_stamp(struct access *access, unsigned db, const struct key *key);
/* Long lists of the window note what their steps touch. With the gate owned, before there is a window. */
void place_teach_window(void);
/* The longest time that a batch has held its stripes, since the last call. Any thread. */
uint64_t place_longest_us(void);
/* Of all places since the start. Any thread. */
void place_totals(struct place_counts *counts);
