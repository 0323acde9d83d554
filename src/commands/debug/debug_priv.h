/* The rows of DEBUG: one a subcommand, each beside its function, in one table a file. */
#pragma once

#include "server/command/command.h"

#include <stdint.h>

struct request;

struct debug_row {
    const char *name;  /* NULL ends the table */
    const char *words; /* behind the name, in HELP */
    const char *help;  /* lines with \n between them */
    void (*run)(struct request *request);
    uint32_t least, most; /* arguments, with DEBUG and the name */
    enum access_class access;
    uint32_t first_key, last_key; /* 0: none; UINT32_MAX: to the end */
};

extern const struct debug_row debug_data_rows[];     /* debug_data.c: a look at the data */
extern const struct debug_row debug_value_rows[];    /* debug_values.c: how values lie in memory */
extern const struct debug_row debug_server_rows[];   /* debug_server.c: the server itself, its end, the journal */
extern const struct debug_row debug_protocol_rows[]; /* debug_protocol.c: replies and texts */

void debug_segfault(struct request *request); /* debug_crash.c; it does not come back */
void debug_refuse(struct request *request);   /* replies: no such subcommand, or not with these arguments */

/* Stops reading the journal if DEBUG JOURNAL START was given. The gate is held, or the workers have ended. */
void debug_journal_close(void);
