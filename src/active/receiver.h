/* What this node receives by a link, from the begin of frames to the end of the connection (links.h has what comes
 * before and after).
 *
 *     hello out -> hello in: who is it? -> entries: judged, placed in batches, counted; beats behind them
 *                                       -> a state: into a file, which is loaded
 *
 * Entries are taken in batches of up to RECEIVER_ENTRIES. With the stripes of all their keys held each is judged and
 * placed; then all are journaled, and count. So what another thread sees of the vector is here. What a beat speaks of
 * has been placed when it is heard. Where something is missing the connection ends, and the next one asks anew, with
 * the vector as it is then.
 *
 * Everything here is for worker 0's thread, outside of the gate and with no lock held. Nothing waits: what is not free
 * is tried again after a wake. */
#pragma once

#include "active/frame.h"
#include "base/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conn;
struct frame_entry;
struct receiver;
struct worker;

enum { RECEIVER_ENTRIES = 1024, RECEIVER_ENTRIES_GATHERED = 16384, RECEIVER_ERROR_BYTES = 400 };

/* What INFO shows of all connections of a link. Worker 0 counts; any thread reads. */
struct receiver_counts {
    _Atomic uint64_t entries;     /* atomic: relaxed, as all of these; placed */
    _Atomic uint64_t old;         /* dropped: they were here */
    _Atomic uint64_t gaps;        /* something was missing before them */
    _Atomic uint64_t batches;     /* in which entries were placed */
    _Atomic uint64_t waits;       /* how often a batch was not free */
    _Atomic uint64_t state_bytes; /* of states */
    _Atomic int64_t heard_ms;     /* the other's clock, as its last beat said; 0: none yet */
};

struct receiver_options {
    uint32_t link;    /* its number, for asks */
    const char *peer; /* who it is, for the log; lives as long as the receiver */
    struct receiver_counts *counts;
    void (*on_change)(void); /* any thread: what it waits for may be free */
    /* Whether the other one may be asked for what is missing here: it may send its state, which is wanted once. */
    bool (*may_ask)(uint32_t link);
};

enum receiver_result {
    RECEIVER_GOES_ON,
    RECEIVER_WAITS, /* something is not free: receiver_go_on after a wake, before more is given */
    /* It is over: receiver_error has the reason. */
    RECEIVER_ANEW,   /* something is missing: ask anew, soon */
    RECEIVER_BROKEN, /* what came is no frame, or breaks the rules */
    RECEIVER_REFUSED /* not to be tried again soon: it is this node, a copy of one, an older file; a state has come */
};

/* Says hello. */
struct receiver *receiver_create(struct worker *worker, struct conn *conn, const struct receiver_options *options);
/* One that gets entries instead of frames, from what this node hears of servers of other kinds. It says nothing. */
struct receiver *receiver_create_bare(struct worker *worker, const struct receiver_options *options);
/* Places them. They and what they point to stay until it says RECEIVER_GOES_ON; RECEIVER_WAITS: receiver_go_on. */
must_check enum receiver_result receiver_place(struct receiver *receiver, const struct frame_entry *entries,
                                               uint32_t count);
/* What was not placed is forgotten. From here on only receiver_destroy is called. */
void receiver_leave(struct receiver *receiver);
/* When the connection is gone, since bytes may come into memory of the receiver. Accepts NULL; leaves NULL. */
void receiver_destroy(struct receiver **handle);

/* `*used` bytes are taken; the others are given again, with more behind them. */
must_check enum receiver_result receiver_take(struct receiver *receiver, const char *data, size_t size, size_t *used);
/* conn_handler.on_direct_done: bytes of a large word are here. False: receiver_go_on. */
must_check bool receiver_take_direct(struct receiver *receiver);
must_check enum receiver_result receiver_go_on(struct receiver *receiver);
void receiver_say_alive(struct receiver *receiver);

/* Asks the other for what it has of an origin, behind this stamp; and to send no more of one. It must be up. */
void receiver_want(struct receiver *receiver, uint64_t origin, uint64_t have);
void receiver_stop(struct receiver *receiver, uint64_t origin);

/* Says something else to the other (compare.h), which must be up and compare. */
void receiver_say(struct receiver *receiver, enum frame_kind kind, const struct buffer *body);

bool receiver_compares(const struct receiver *receiver);    /* it is up, and its version has frames for that */
bool receiver_is_up(const struct receiver *receiver);       /* both have said hello */
bool receiver_takes_state(const struct receiver *receiver); /* or waits for it while it is made */
bool receiver_is_answered(const struct receiver *receiver); /* by the stream: no state comes on this connection */
bool receiver_asks(const struct receiver *receiver);        /* a state comes, or may come soon */
uint64_t receiver_name(const struct receiver *receiver);    /* the other's; 0: it has not said hello */
uint64_t receiver_origin(const struct receiver *receiver);  /* likewise */
const char *receiver_error(const struct receiver *receiver);
