/* Replication ids and offsets: which history the journal of this server is a part of.
 *
 * A history is one sequence of bytes; its id names it. Two servers with the same id and offset have the same data. A
 * server that becomes a master goes on under a new id and remembers the old one as id2, which is valid up to the
 * offset at which it took over: replicas of the old master can continue here.
 *
 *     offset in the history  =  offset in the journal + base
 *
 * The journal's own offsets never go back and know nothing of ids. The base changes when this server takes over the
 * history of a master, in a full sync. Nothing before `begin` belongs to this history: a replica cannot begin there.
 *
 * No id names two histories. While the journal is off, effects are not counted, so a new id is made when it is switched
 * on for replicas; the same holds for a server that restarts as a master.
 *
 * Everything changes with the gate owned. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

enum { HISTORY_ID_SIZE = 40 }; /* hexadecimal digits */

struct journal;

void history_setup(struct journal *journal); /* main thread, once, before the workers start; makes a new id */

struct history_facts {
    char id[HISTORY_ID_SIZE + 1], id2[HISTORY_ID_SIZE + 1]; /* id2: forty zeros if there is none */
    int64_t offset;                                         /* bytes of the history so far */
    int64_t second_offset; /* the first offset, counted from 1, that id2 does not have; -1: there is no id2 */
    int64_t begin;         /* bytes of the history before the first that can be asked for */
};
void history_facts(struct history_facts *facts); /* any thread */

int64_t history_offset(void); /* bytes of the history so far; any thread */
/* An offset of the journal as one of the history, and back. Any thread; links end before the base changes, so a link's
 * offsets stay comparable as long as it lives. */
int64_t history_of_journal(uint64_t offset);
uint64_t history_to_journal(int64_t offset);

/* Any thread. Whether a replica that has `offset` bytes of the history `id` can go on with this journal: the ids fit,
 * and the journal's bytes from there on belong to this history. The bytes may still be gone: journal_reader_open_at
 * tells. */
must_check bool history_continues(const char *id, int64_t offset);

/* --- with the gate owned --- */

/* A history of its own: a new id, no id2. The offset stays. Replicas that ask for the old id get all data. */
void history_begin(void);
/* This server is a master from now on: a new id, and the old one is id2 up to here. */
void history_fork(void);
/* After a full sync: the data is that of `offset` bytes of the master's history. */
void history_adopt(const char *id, int64_t offset);
/* After a partial sync: the master goes on under another id. The old one is id2 up to here. */
void history_rename(const char *id);
/* What a file says of its data, at start: `is_replica` goes on in that history, a master forks from it. */
void history_restore(const char *id, int64_t offset, bool is_replica);
