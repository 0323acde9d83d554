/* Compares the data of this node with those of other members, in the background and while writes go on
 * (KEYDB.ACTIVE COMPARE; docs/active-replication.md, "Comparing"). One member after the other:
 *
 *     asker     at the gate: what it has, its walk begins -> "compare" by the link that receives from the member
 *     member    at the gate: what it has, its walk begins; it has read all, and has all that the asker had -> "digests"
 *     asker     it has read all, and has all that the member had -> slots that are clear on both are equal, or differ
 *
 * Slots that differ are walked once more in the same way, with the keys instead of their sum. Of each key that differs
 * the node with the younger last operation writes it anew, as a dirty key is; of equal ones, the asker; of a key that
 * one lacks, the other one. The member is told which keys by "repair", with the digests that it said: a key that has
 * changed since is left alone.
 *
 * There is one walk in a process, so a node that compares answers that it is busy, and is asked again.
 *
 * Worker 0 does the work; what links and commands say is handed over under a lock (rank LOCK_REGISTRY). */
#pragma once

#include "active/uuid.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "server/core/lifecycle.h"

#include <stdbool.h>
#include <stdint.h>

struct buffer;
struct worker;

extern const struct lifecycle compare_lifecycle;

/* --- commands: any thread --- */

enum { COMPARE_TARGETS_MOST = 128 };

enum compare_state {
    COMPARE_WAITS,
    COMPARE_RUNS,
    COMPARE_DONE,
    COMPARE_NO_LINK,  /* this node receives nothing from it, or its version does not compare */
    COMPARE_NO_ANSWER /* the link went down, or it was busy or behind for too long */
};
const char *compare_state_name(enum compare_state state);

struct compare_target {
    uint64_t name;
    enum compare_state state;
    uint32_t equal, different, undecided; /* slots */
    uint32_t keys;                        /* that differ; found so far */
};

struct compare_report {
    uint64_t number;
    uint32_t count;
    struct compare_target targets[COMPARE_TARGETS_MOST];
};

/* With this member, or with all (0). False: a comparison runs, whose number it is. */
must_check bool compare_begin(uint64_t name, uint64_t *number);
bool compare_is_done(uint64_t number);
/* The last one's, how far it is. */
void compare_report(struct compare_report *report);

struct compare_totals {
    uint64_t members;   /* compared */
    uint64_t different; /* slots */
    uint64_t keys;      /* found to differ, by this node */
};
void compare_totals(struct compare_totals *totals);

/* --- the links that send: the thread of the link's worker; `link` is its client's id --- */

enum { COMPARE_ERROR_BYTES = 160 };

/* A frame of the receiver; false: the error says what is wrong with it. What it puts into `answer` is sent at once;
 * otherwise the worker is woken when there is one. */
must_check bool compare_asked(uint64_t link, struct worker *worker, struct slice body, struct buffer *answer,
                              char error[COMPARE_ERROR_BYTES]);
must_check bool compare_told_repair(struct slice body, char error[COMPARE_ERROR_BYTES]);
/* True: the body of an answer for this link, which it is to send. */
must_check bool compare_answer(uint64_t link, struct buffer *body);
void compare_link_ends(uint64_t link);

/* --- the links that receive: worker 0 --- */

must_check bool compare_heard(uint64_t name, struct slice body, char error[COMPARE_ERROR_BYTES]);
