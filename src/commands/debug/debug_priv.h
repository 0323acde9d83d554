/* The rows of DEBUG: one for each subcommand, beside its function, in one table for each file. */
#pragma once

#include "server/command/command.h"

#include <stdint.h>

struct request;

struct debug_row {
    const char *name;  /* NULL ends the table */
    const char *words; /* the arguments shown in HELP */
    const char *help;  /* lines separated by \n */
    void (*run)(struct request *request);
    uint32_t least, most; /* number of arguments, with DEBUG and the name */
    enum access_class access;
    uint32_t first_key, last_key; /* 0: none; UINT32_MAX: to the end */
};

extern const struct debug_row debug_data_rows[];      /* debug_data.c: inspects data */
extern const struct debug_row debug_slot_rows[];      /* debug_slots.c: digests by hash slot */
extern const struct debug_row debug_stamp_rows[];     /* debug_stamps.c: versions of keys */
extern const struct debug_row debug_value_rows[];     /* debug_values.c: how values are stored in memory */
extern const struct debug_row debug_server_rows[];    /* debug_server.c: the server, its end, the journal */
extern const struct debug_row debug_protocol_rows[];  /* debug_protocol.c: replies */
extern const struct debug_row debug_operation_rows[]; /* debug_operations.c: what peers read */
extern const struct debug_row debug_replay_rows[];    /* debug_replay.c: what KeyDB sends, by a client */
extern const struct debug_row debug_undo_rows[];      /* debug_undo.c: commands that are taken back */

void debug_segfault(struct request *request); /* debug_crash.c; does not return */
void debug_refuse(struct request *request);   /* replies an error: no such subcommand, or wrong arguments */

/* Stops reading the journal if DEBUG JOURNAL START was given. The gate is held, or the workers have ended. */
void debug_journal_close(void);
void debug_operations_close(void); /* likewise, DEBUG OPERATIONS */
void debug_replay_close(void);     /* frees what RREPLAY keeps; likewise */
void debug_undo_close(void);       /* frees what DEBUG UNDO keeps; the workers have ended */
/* Ends all DEBUG HOLD: their threads use the stripes and the loops, which the server's end frees. When the workers have
 * ended. */
void debug_end_holds(void);
