/* What envelopes of KeyDB servers give (envelopes.h), as entries that can be placed (place.h): those that are not here
 * yet, each with its origin, its stamp and w = its milliseconds.
 *
 *     envelopes_take(known, ..., keydb_entries_take, &entries, ...)    as often as there are envelopes
 *     keydb_entries_finish    the entries can be read, and are placed
 *     keydb_entries_clear
 *
 * The owner guards it. active_is_on. */
#pragma once

#include "active/adoption.h"
#include "active/envelopes.h"
#include "base/buffer.h"

struct frame_entry;
struct frame_op;

struct keydb_op_part {
    uint32_t first_word, word_count;
    unsigned db;
};
struct keydb_word_part {
    size_t at, size; /* in `texts` */
};

/* {.origin = ...} has none. Pointers are set when all are there: until then parts. */
struct keydb_entries {
    struct frame_entry *items;
    uint32_t count, capacity;
    struct adoption_origin *origin; /* of operations that have no stamp of their own */
    bool wants_ack;                 /* it was asked */
    struct buffer texts;
    struct {
        struct keydb_op_part *items;
        uint32_t count, capacity;
    } parts;
    struct {
        struct keydb_word_part *items;
        uint32_t count, capacity;
    } word_parts;
    struct {
        struct frame_op *items;
        uint32_t count, capacity;
    } ops;
    struct {
        struct slice *items;
        uint32_t count, capacity;
    } words;
};

/* PING and REPLCONF, also outside of envelopes. */
bool keydb_entries_is_about_link(const struct envelope_command *command);
void keydb_entries_note_link(struct keydb_entries *entries, const struct envelope_command *command);

/* An envelope_entry_fn: adds it, if it is to be placed. */
void keydb_entries_take(void *context, const struct envelope_entry *from);
void keydb_entries_finish(struct keydb_entries *entries);
void keydb_entries_clear(struct keydb_entries *entries);
void keydb_entries_fini(struct keydb_entries *entries);
