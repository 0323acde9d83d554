/* Is there an order of these operations, one after the other, that explains all replies?
 *
 * A window is a short history of concurrent operations that begins and ends in silence: before it the data are known,
 * and after it they were read. A model with one thread, this file's, replays operations; a search looks for an order
 * that respects time (what returned before another was invoked comes first), the order within each connection, every
 * reply, and the data at the end. Operations of connections that died count as soon as they help, in the connection's
 * order, or never. All keys of two databases are one state, so that commands on several keys, transactions and
 * commands on whole databases are checked for atomicity by the same search. */
#pragma once

#include "conn.h"

enum {
    MODEL_KEYS = 5,
    MODEL_DBS = 2,
    OP_WORDS_MOST = 8,
    OP_STEPS_MOST = 4,   /* commands of a transaction */
    WINDOW_OPS_MOST = 60 /* a set of them is the bits of a word */
};

/* One command: a row of the table of commands, and its words. Keys are indexes, values are texts of the window. */
struct step {
    uint16_t row;
    uint8_t keys[3];
    uint32_t values[3];
};

struct op {
    struct step steps[OP_STEPS_MOST];
    uint8_t step_count; /* 1: alone; more: between MULTI and EXEC */
    bool in_transaction;
    uint8_t db;
    uint8_t conn;
    bool pending; /* no reply came */
    uint64_t invoked_ns, returned_ns;
    uint32_t reply; /* canonical text */
};

/* Texts get numbers; the same text the same number. 0 is "no such key". */
struct texts {
    struct text bytes;
    uint32_t *starts;
    uint32_t *sizes;
    uint32_t count, room;
    uint32_t slots[1 << 13]; /* numbers */
};

uint32_t texts_number(struct texts *texts, const char *data, size_t size);
void texts_clear(struct texts *texts);
const char *texts_get(const struct texts *texts, uint32_t number, size_t *size);

struct state {
    uint32_t values[MODEL_DBS][MODEL_KEYS];
};

struct window {
    struct texts texts;
    struct state begin, end;
    struct op ops[WINDOW_OPS_MOST];
    unsigned op_count;
};

enum verdict { LINEAR_YES, LINEAR_NO, LINEAR_TOO_LONG };

struct verdict_info {
    uint64_t nodes;
    unsigned order[WINDOW_OPS_MOST]; /* the longest that went well */
    unsigned order_count;
};
enum verdict window_verdict(struct window *window, struct verdict_info *info);
void window_show(struct window *window, const struct verdict_info *info);

/* A random command; `unique` makes its values be like nobody else's. */
void op_make(struct op *op, struct texts *texts, struct chance *chance, uint64_t *unique);
/* Adds its commands to the connection; returns how many replies come. */
unsigned op_send(const struct op *op, const struct texts *texts, struct conn *conn);
/* The last of these replies, in the words of the model. */
uint32_t op_reply(const struct op *op, struct texts *texts, struct raw raw);
