/* Random commands from lines of text.
 *
 *     [a|b|]      one of these, maybe nothing
 *     {l} {h} {s} {z} {x} {b} {p} {n}
 *                 a key that mostly holds a list, hash, set, sorted set, stream, string, HyperLogLog, nested hash
 *     {k}         any key; {d} a database
 *     {m} a member, {v} a value, {c} a small count, {i} a small number of either sign, {f} a fraction
 *     {t} a lifetime that is over soon (milliseconds), {T} one that is not (seconds), {e} the empty string
 *     $name       the script of that name
 *
 * Words are what single spaces separate. */
#pragma once

#include "conn.h"

enum { GRAMMAR_DBS = 4, GRAMMAR_KEYS_A_TYPE = 8, GRAMMAR_SOON_MS = 60 };

extern const char grammar_types[]; /* the letters of the keys' types */

/* A command that changes something, as a rule. */
void grammar_add_change(struct conn *conn, struct chance *chance);
/* One that may wait a little. */
void grammar_add_wait(struct conn *conn, struct chance *chance);
