/* What a node says and hears: the rules of merge/state.h under one lock, with the journal's clock, the horizon that the
 * store reads, and the numbers of origins. The running server has one (node.h); tests have several.
 *
 * Any thread may call it, under stripes, too. Times are arguments. */
#pragma once

#include "active/node.h"
#include "base/spinlock.h"
#include "merge/waits.h"
#include "store/horizon.h"
#include "store/journal.h"
#include "store/origins.h"

struct membership {
    struct spinlock lock; /* rank LOCK_REGISTRY */
    struct merge_state state GUARDED_BY(lock);
    struct merge_asks asks GUARDED_BY(lock);
    struct {
        struct membership_link {
            uint32_t link;
            uint64_t origin;                  /* its sender's */
            struct merge_vector asked_closed; /* origins that have ended, and were asked there */
        } * items;
        uint32_t count, capacity;
    } links GUARDED_BY(lock);
    struct {
        struct membership_heard {
            uint64_t name;
            uint64_t at_ms; /* monotonic; of the last word, or since when it is awaited */
            bool is_heard;
            bool was_given_up; /* and nobody was told that it is heard again */
            int64_t skew_ms;
        } * items;
        uint32_t count, capacity;
    } heard GUARDED_BY(lock);
    struct merge_waits waits GUARDED_BY(lock);
    struct merge_vector copies GUARDED_BY(lock);       /* origins that were refused as copies, and their clocks then */
    struct merge_vector told_removed GUARDED_BY(lock); /* names, and origins, of which the owner was told: */
    struct merge_vector told_ended GUARDED_BY(lock);   /* see membership_removed and membership_ended */
    struct merge_vector noted GUARDED_BY(lock);        /* what a file has that is being written */
    struct merge_vector stored GUARDED_BY(lock);       /* what the last one has that was stored, or loaded */
    bool saved_is_in_file GUARDED_BY(lock);            /* `saved` is what that one has */
    struct node_beat *beat GUARDED_BY(lock);           /* the last one; NULL: there was none */
    uint64_t beats GUARDED_BY(lock);
    int64_t wall GUARDED_BY(lock); /* what was promised last */
    bool waits_for_first GUARDED_BY(lock);
    struct journal *journal; /* const */
    struct horizon *horizon; /* const */
    struct origins *origins; /* const */
};

/* Takes over the identity, that of a start that is on the disk. `clock`, `wall`: the bounds of the start before. */
void membership_init(struct membership *membership, struct merge_identity *identity, uint64_t clock, int64_t wall,
                     struct journal *journal, struct horizon *horizon, struct origins *origins);
void membership_fini(struct membership *membership);
/* This start; its clock raises *clock. */
uint64_t membership_origin(struct membership *membership, uint64_t *clock);
/* Goes on from a file. With the gate owned: the journal stamps from here on. */
void membership_begin(struct membership *membership, const struct merge_account *account);

/* While this node has masters and has met none yet, its frontiers wait: whom it will meet has done things before, and
 * what is done here has its place among these. */
void membership_wait_for_first(struct membership *membership, bool waits);
/* The next beat. `wall`: no command runs or will run with a time below; it never falls. */
void membership_make_beat(struct membership *membership, int64_t now_ms, int64_t wall);
struct node_beat *membership_beat(struct membership *membership);
void membership_release_beat(struct membership *membership, struct node_beat *beat);
/* Members that were not heard for so long are given up; 0: never. Returns the name of one, or 0 at the end. */
uint64_t membership_give_up(struct membership *membership, uint64_t now_ms, uint64_t timeout_ms);
/* The name of one that was given up and is heard again, once; 0: there is none. */
uint64_t membership_came_back(struct membership *membership);
/* The name of one, maybe this node, that does not belong to the group any more, once; 0: there is none. */
uint64_t membership_removed(struct membership *membership);
/* A member, maybe this node, whose start counts as ended though no later one is known, once: somebody has said so, and
 * what it still writes is not taken. False: there is none. */
must_check bool membership_ended(struct membership *membership, struct merge_member *member);
/* Ended origins that nobody waits for any more give their numbers back. */
void membership_end_origins(struct membership *membership);

/* As the functions of node.h. now_ms is monotonic, and wall_ms the clock of the machine. */
void membership_hello(struct membership *membership, struct notice_hello *hello);
enum node_verdict membership_look_at(struct membership *membership, const struct notice_hello *hello, uint64_t now_ms,
                                     char error[NODE_ERROR_BYTES]);
enum node_verdict membership_greet(struct membership *membership, const struct notice_hello *hello, uint64_t now_ms,
                                   char error[NODE_ERROR_BYTES]);
enum merge_offer membership_offer(struct membership *membership, const struct merge_hello *hello, uint64_t now_ms);
void membership_wait_anew(struct membership *membership);
must_check bool membership_sponsor(struct membership *membership, const struct merge_hello *hello);
enum merge_acceptance membership_judge(struct membership *membership, uint64_t origin, uint64_t prev, uint64_t stamp);
bool membership_is_below_promise(struct membership *membership, uint64_t origin, uint64_t stamp);
void membership_count(struct membership *membership, uint64_t origin, uint64_t stamp);
must_check bool membership_hear(struct membership *membership, const struct merge_beat *beat, uint64_t now_ms,
                                int64_t wall_ms);
bool membership_is_closed(struct membership *membership, uint64_t origin);
uint64_t membership_have(struct membership *membership, uint64_t origin);
bool membership_knows(struct membership *membership, uint64_t origin);
void membership_link_up(struct membership *membership, uint32_t link, uint64_t origin);
void membership_link_down(struct membership *membership, uint32_t link);
void membership_offered(struct membership *membership, uint32_t link, const struct merge_vector *offers,
                        struct node_orders *orders);
void membership_stopped(struct membership *membership, uint32_t link, const struct merge_vector *origins,
                        struct node_orders *orders);
bool membership_may_repair(struct membership *membership);
uint64_t membership_heard_up_to(struct membership *membership, uint64_t now_ms); /* as node_heard_up_to */
must_check bool membership_forget(struct membership *membership, uint64_t name);
uint32_t membership_forget_by_force(struct membership *membership, uint64_t name);
void membership_account(struct membership *membership, struct merge_account *account);
/* *least_wall: no command runs with a time below from here on. A newcomer begins above its sponsor's. */
must_check bool membership_adopt(struct membership *membership, const struct merge_account *account,
                                 int64_t *least_wall);
/* Up to where all members have what this node has; `held` is empty. */
void membership_held(struct membership *membership, struct merge_vector *held);
void membership_set_cut(struct membership *membership, struct merge_vector *cut); /* takes it over */
/* What of the vector a restart would find (the `saved` of words): this; what was in the file that was stored last. */
void membership_saved(struct membership *membership, const struct merge_vector *saved);
void membership_saved_in_file(struct membership *membership);
void membership_note_file(struct membership *membership, const struct merge_vector *vector);
void membership_file_was_loaded(struct membership *membership); /* that with which it began */
void membership_file_is_stored(struct membership *membership);
void membership_facts(struct membership *membership, uint64_t now_ms, struct node_facts *facts);

/* --- bounds of the identity file --- */

/* True if more has to be reserved: *copy is what to store (identity_fini). */
must_check bool membership_wants_bounds(struct membership *membership, int64_t now_ms, struct merge_identity *copy);
/* It is on the disk. */
void membership_stored_bounds(struct membership *membership, const struct merge_identity *stored);
/* The last millisecond that bounds on the disk allow, and the clock's. */
int64_t membership_bound_ms(struct membership *membership, int64_t *clock_ms);
/* Less than this is left of what is on the disk: nothing of this node may be written. */
bool membership_is_short(struct membership *membership, int64_t now_ms, int64_t least_ms);
