/* Deadlines of members as they were, while they go on changing: what former.h does for a value, for the table that is
 * beside it.
 *
 *     former = former_deadlines_create(&deadlines);     the moment
 *     ...
 *     former_deadlines_keep(former, text, when);        before each change of a deadline: what the text had
 *     ...
 *     former_deadlines_take_back(former, &deadlines, text, when);    what a text had earlier, as former_take_back
 *     former_deadlines_find(former, &deadlines, text);  what a text had at the moment, until the first piece is given
 *     while (former_deadlines_give(former, &deadlines, 256, fn, context))
 *         ;                                             all of them, piece by piece
 *
 * They are given in the order of the table's scan, which depends on the texts alone. So a text says whether it was
 * given. What was changed before is kept, and given in the end. The table itself may go, or another one take its place,
 * once a change of each of its deadlines was told: NULL is a table without deadlines. The owner of the table guards
 * both. */
#pragma once

#include "base/compiler.h"
#include "data/deadlines.h"

struct former_deadlines;

struct former_deadlines *former_deadlines_create(const struct deadlines *deadlines);
void former_deadlines_destroy(struct former_deadlines **former); /* accepts NULL; leaves NULL */

/* The earliest one at the moment, or DEADLINE_NONE. Behind former_deadlines_take_back: none is earlier. */
int64_t former_deadlines_first_ms(const struct former_deadlines *former);
uint64_t former_deadlines_bytes(const struct former_deadlines *former); /* memory that it takes, about */

/* DEADLINE_NONE: it has none. */
void former_deadlines_keep(struct former_deadlines *former, struct slice text, int64_t when_ms);
void former_deadlines_take_back(struct former_deadlines *former, const struct deadlines *now, struct slice text,
                                int64_t when_ms);
int64_t former_deadlines_find(const struct former_deadlines *former, const struct deadlines *now, struct slice text);
/* False: these were the last ones. */
must_check bool former_deadlines_give(struct former_deadlines *former, const struct deadlines *now, uint64_t most,
                                      deadline_fn fn, void *context);
