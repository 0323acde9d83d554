/* The running node: who it is, what it has, who belongs to the group, how far all are. The rules are merge/state.h;
 * here they get their clock, their journal, their disk and their lock.
 *
 *     start     identity file in `dir`; data are loaded; the journal stamps and is kept; beats
 *     a link    node_hello -> the other's hello -> node_greet; the sender's side: node_offer
 *     entries   node_judge -> placed, appended to our journal -> node_count
 *     beats     every 100 ms worker 0 makes one at a position of the journal: links send it behind the records before
 *     heard     node_hear -> frontiers -> store->horizon
 *     asks      node_offered, node_stopped -> node_orders: what to say by which link
 *
 * One lock (rank LOCK_REGISTRY) guards the state; stripes may be held when it is taken. Nothing here waits for a disk
 * but the start: later the background thread writes the identity file. Functions may be called by any thread, unless a
 * thread is named. While active replication is off, and before node_begin, only active_is_on, node_resume and
 * node_facts may be called. */
#pragma once

#include "active/notice.h"
#include "base/compiler.h"
#include "merge/asks.h"
#include "merge/state.h"
#include "server/core/lifecycle.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern const struct lifecycle node_lifecycle;
extern _Atomic bool active_is_on_; /* global: atomic, relaxed; use active_is_on */

static inline bool active_is_on(void)
{
    return atomic_load_explicit(&active_is_on_, memory_order_relaxed);
}

enum { NODE_BEAT_MS = 100, NODE_ERROR_BYTES = 512 };

/* The data are loaded, or there are none: from here on it is a node, if active-replica says so. No other thread is
 * inside the gate. (node_lifecycle has read the identity file before; the server does not start without it.) */
void node_begin(void);
/* Before that, where operations are placed while data are loaded: the store and the journal stamp. The same. */
void node_prepare(void);

/* --- links --- */

/* What a link says first. A copy, which the caller ends; `wanted` is empty: the receiving side fills it in. */
void node_hello(struct notice_hello *hello);

enum node_verdict {
    NODE_WELCOME,
    NODE_ITSELF,  /* close: the link leads to this node */
    NODE_COPY,    /* close: another node has a copy of that one's identity file, or of ours */
    NODE_OLD,     /* close: an earlier start, or one from an older file */
    NODE_REMOVED, /* close: one of the two does not belong to the group any more */
    NODE_UNKNOWN_VERSION
};
/* What the other side has said first, on both sides of a link. Learns from it if it is welcome. Otherwise `error` has a
 * line that names the node and the reason, and nothing was learned. */
enum node_verdict node_greet(const struct notice_hello *hello, char error[NODE_ERROR_BYTES]);
/* What node_greet would say; learns nothing. */
enum node_verdict node_look_at(const struct notice_hello *hello, char error[NODE_ERROR_BYTES]);
/* The sender's side, behind node_greet. Whom it tells to wait it gives a state after all when nothing of what
 * is waited for has come for ten seconds (merge/waits.h). */
enum merge_offer node_offer(const struct merge_hello *hello);
/* A state comes: whoever was to give first may be about to. */
void node_wait_anew(void);
/* Before a snapshot goes to a node: it becomes a member, if it is none. False: that is not on the disk yet; ask
 * again behind the next beat. */
must_check bool node_sponsor(const struct merge_hello *hello);

/* --- what comes by links: worker 0 --- */

/* Whether this entry is the next one of its origin here. */
enum merge_acceptance node_judge(uint64_t origin, uint64_t prev, uint64_t stamp);
/* Of one that is old: it was never here. So its origin, or who spoke for it, has promised what was not so. */
bool node_is_below_promise(uint64_t origin, uint64_t stamp);
/* It is here and in the journal. In the order in which they were judged. */
void node_count(uint64_t origin, uint64_t stamp);
/* Any thread, with the gate owned: likewise, of what came by no link. */
void node_count_alone(uint64_t origin, uint64_t stamp);
/* Worker 0, with no lock held: behind node_count, the bounds on the disk are kept above what was counted. */
void node_look_ahead(void);
/* A beat, behind all entries that came before it. False: some of what it speaks of is missing; ask anew. */
must_check bool node_hear(const struct merge_beat *beat);

/* --- what to ask of which link --- */

struct node_order {
    uint32_t link;
    bool wants; /* false: this link is to stop sending the origin */
    uint64_t origin;
    uint64_t have; /* with `wants`: behind this stamp */
};

struct node_orders {
    struct node_order *items;
    uint32_t count, capacity;
};

void node_orders_fini(struct node_orders *orders);

/* Worker 0: a receiving link, with a number of its own below MERGE_LINK_NONE, has greeted; `origin`: its sender's. */
void node_link_up(uint32_t link, uint64_t origin);
void node_link_down(uint32_t link);
/* A hello's vector, or a beat's offers, heard by this link. Adds what is to be said now, by whatever links. */
void node_offered(uint32_t link, const struct merge_vector *offers, struct node_orders *orders);
/* The link has stopped sending these. */
void node_stopped(uint32_t link, const struct merge_vector *origins, struct node_orders *orders);

/* --- beats of this node --- */

/* Never changes. It has all origins: of vector, deeds and words a link sends those that go by it (node_beat_for). */
struct node_beat {
    _Atomic uint32_t references;
    uint64_t position; /* of the journal: what it speaks of is before that */
    struct merge_beat beat;
};

struct node_beat *node_beat_acquire(void); /* the last one; NULL: there is none yet */
void node_beat_release(struct node_beat *beat);
/* What of it a link sends that brings these origins. The words stay the beat's; end it with node_beat_end. */
void node_beat_for(const struct node_beat *beat, const struct merge_vector *origins, struct merge_beat *part);
void node_beat_end(struct merge_beat *part);
/* Sets a function that worker 0 calls when there is a new one, with no lock held. Main thread, before the start. */
void node_on_beat(void (*told)(void));

/* --- questions --- */

/* Any thread: that start has ended. What its own connection still holds is dropped. */
bool node_is_closed(uint64_t origin);
uint64_t node_have(uint64_t origin); /* up to which stamp all of it is here; 0: nothing */
bool node_knows(uint64_t origin);    /* it is a start of a member, or was one */
bool node_may_repair(void);
/* Up to which stamp all is here of those members of whom there was something lately, or to whom a link leads. */
uint64_t node_heard_up_to(void);
uint64_t node_origin(void);

/* With the gate owned: all that this start did has later stamps; 0: it began with data that have none. */
uint64_t node_begun_at(void);

/* True if it is done. False: a member that remains does not know all others yet. */
must_check bool node_forget(uint64_t name);
/* Likewise, whatever others know; not this node itself. Returns how many of them do not know all members. */
uint32_t node_forget_by_force(uint64_t name);

/* The state as files and snapshots have it (merge_account): a copy, to be ended with merge_account_fini. With the gate
 * owned: it is exactly that of the keys. */
void node_account(struct merge_account *account);
/* With the gate owned. A state that a peer has sent, or a file: false if it is refused or not needed. */
must_check bool node_adopt(const struct merge_account *account);
/* With the gate owned, before node_begin: what the loaded file says. Takes it over: *account is empty afterwards. */
void node_resume(struct merge_account *account);
/* With the gate owned: a file gets what there is now. */
void node_note_file(const struct merge_vector *vector);
/* Any thread: the file that was noted last is on the disk, and a restart without an append-only file loads it. */
void node_file_is_stored(void);

struct node_member {
    uint64_t name, origin;
    uint32_t incarnation;
    bool is_self, is_given_up;
    int64_t silent_ms; /* since it was heard; -1: never */
    uint64_t here;     /* what is here of it */
    uint64_t there;    /* what it has of this node, as it has said */
    uint64_t frontier; /* its F */
    int64_t wall;      /* that it has promised */
    int64_t skew_ms;   /* its clock minus ours, when it was heard */
};

struct node_facts {
    struct uuid name, origin;
    uint32_t incarnation;
    uint64_t clock, frontier;    /* F */
    int64_t wall, wall_frontier; /* promised; W */
    uint64_t stamp_bound;        /* on the disk: no stamp above it is given */
    int64_t wall_bound;          /* likewise */
    uint32_t open_origins, closed_origins;
    uint64_t beats;
    struct node_member *members;
    uint32_t member_count;
};

/* All zero while active replication is off. */
void node_facts(struct node_facts *facts);
void node_facts_fini(struct node_facts *facts);
