/* What a node of an active group knows besides its keys: who it is, what it has of whom, who belongs to the group, how
 * far all are. For one owner that has the clock, the journal, the links and the files.
 *
 *     link    -> merge_state_judge -> (placed, kept in the history) -> merge_state_count: the vector
 *     link    -> merge_state_hear  -> words of members -> merge_state_advance: F and W
 *     moment  -> merge_state_promise, merge_state_word -> merge_beat_make -> links
 *     hello   -> merge_state_greet, merge_state_offer  -> a stream, or a state first: merge_state_adopt
 *
 * Nothing here waits, reads a clock or does I/O: times come as arguments, what is to be sent or written is returned.
 * The owner guards it. The fields are open for reading; identity, saved and cut are the owner's to write.
 *
 * What a crash loses and what it does not:
 *     identity   name, origin, former origins, bounds of stamp and wall time: on disk before they are used
 *     account    as in the last file
 *     the rest   words of members, who is given up: heard anew
 *
 * Invariants
 *  1. The vector of an origin is the stamp of its last counted entry, or a later promise of it.
 *  2. The history has, for each origin, all entries above `cut`; what is above `deeds` was never here.
 *  3. The clock is not below any stamp counted, heard or promised. */
#pragma once

#include "base/compiler.h"
#include "merge/group.h"

#include <stdbool.h>
#include <stdint.h>

struct merge_identity {
    uint64_t name, origin;
    uint32_t incarnation;
    struct merge_vector former; /* origins of starts before */
    uint64_t promised;          /* no stamp above was given or promised */
    int64_t wall;               /* no wall time above was used or promised */
    /* Whom it knew when that was stored: a newcomer is a member on the disk before it gets a state. */
    struct merge_members members;
    struct merge_vector removed;
};

struct merge_state {
    struct merge_identity identity;
    struct merge_group group;
    struct merge_vector vector;
    struct merge_vector deeds; /* as the vector, without promises */
    struct merge_vector cut;   /* the last entry of each origin that the history has no more */
    struct merge_vector saved; /* what of the vector is on disk */
    uint64_t frontier;         /* F */
    int64_t frontier_wall;     /* W */
    uint64_t frontier_most;    /* the owner's: while origins speak that promise nothing, F and W stay below; 0: none */
    int64_t frontier_wall_most;
    uint64_t clock;
    uint64_t evict_from;    /* no eviction before F has reached this */
    uint64_t word_sequence; /* of this start */
    bool ready;             /* false: a newcomer that waits for its first state */
};

/* A state of one moment: in a file, or what a sponsor sends. Owns copies. */
struct merge_account {
    struct merge_vector vector, deeds, cut;
    struct merge_members members;
    struct merge_vector closed, removed;
    uint64_t frontier, clock;
    int64_t frontier_wall, wall;
    bool forced; /* neither side can give what the other lacks */
};

void merge_account_fini(struct merge_account *account);

/* Zeroed memory is a state of nobody. */
void merge_state_init(struct merge_state *state, uint64_t name, uint64_t origin);
void merge_state_fini(struct merge_state *state);

/* --- time --- */

void merge_state_raise_clock(struct merge_state *state, uint64_t stamp); /* a stamp was heard or given */
/* From now on no stamp up to this one is given: the vector says so. */
void merge_state_promise(struct merge_state *state, uint64_t stamp);

/* --- entries --- */

/* MERGE_GAP: something is missing before it, ask anew. */
enum merge_acceptance { MERGE_ACCEPTED, MERGE_OLD, MERGE_GAP };
enum merge_acceptance merge_state_judge(const struct merge_state *state, uint64_t origin, uint64_t prev,
                                        uint64_t stamp);
/* An accepted entry, or one of this node's own, is here. */
void merge_state_count(struct merge_state *state, uint64_t origin, uint64_t stamp);

/* --- beats --- */

/* What a sender says of itself and of the group, behind the entries that it speaks of. */
struct merge_beat {
    uint64_t clock;
    struct merge_vector vector; /* of the origins that go by this link */
    struct merge_vector deeds;  /* of the same: the last operation before this */
    struct merge_vector offers; /* of all origins: what the sender has and could send */
    struct {
        struct merge_word **items; /* of members whose origins go by this link */
        uint32_t count, capacity;
    } words;
    struct merge_members members;
    struct merge_vector closed, removed;
};

/* A new word, behind merge_state_promise; release it. `wall`: what is promised. */
struct merge_word *merge_state_word(struct merge_state *state, int64_t wall);
/* As if all origins went by the link. */
void merge_beat_make(struct merge_beat *beat, const struct merge_state *state, struct merge_word *own);
void merge_beat_fini(struct merge_beat *beat);
/* What of it goes by a link that brings these origins. Words and all that is the same for each link stay those of
 * `beat`, which has to outlive it: end it with merge_beat_part_fini. */
void merge_beat_part(struct merge_beat *part, const struct merge_beat *beat, const struct merge_vector *origins);
void merge_beat_part_fini(struct merge_beat *part);

/* A beat that came behind all operations it speaks of. Returns false if some of them are missing here: ask anew. */
must_check bool merge_state_hear(struct merge_state *state, const struct merge_beat *beat);

/* --- the group --- */

void merge_state_advance(struct merge_state *state, const struct merge_word *own); /* F and W; own: just made */
bool merge_state_may_repair(const struct merge_state *state);
bool merge_state_may_evict(const struct merge_state *state);
void merge_state_give_up(struct merge_state *state, uint64_t name);
/* Closes a member for good. Returns false if another one does not know all members yet. */
must_check bool merge_state_forget(struct merge_state *state, uint64_t name);
/* Likewise, whatever others know. Returns how many of them do not know all members: what was done on those may come to
 * them too late for its place. */
uint32_t merge_state_forget_by_force(struct merge_state *state, uint64_t name);

/* --- files, two nodes that meet --- */

void merge_state_account(const struct merge_state *state, struct merge_account *account);
/* A new start goes on from a file; the identity is that of this start, and the clock is above the bounds of the start
 * before. The file is empty (zeroed) where there is none. */
void merge_state_resume(struct merge_state *state, const struct merge_account *saved);

/* What the receiver of a link says at its begin. Its fields belong to the state that says it. */
struct merge_hello {
    uint64_t name, origin, clock;
    uint32_t incarnation;
    bool ready;
    struct merge_members members; /* together with `removed`: else who hears of a removal could count only itself */
    struct merge_vector vector, deeds, cut, closed, removed;
};

enum merge_offer {
    MERGE_OFFER_NOTHING,  /* one of the two is not of the group any more */
    MERGE_OFFER_STREAM,   /* history has all that the other lacks */
    MERGE_OFFER_SNAPSHOT, /* a snapshot first */
    MERGE_OFFER_FORCED,   /* a snapshot though it lacks something that only the other has */
    MERGE_OFFER_WAIT      /* the other has to give first */
};

struct merge_hello merge_state_hello(const struct merge_state *state);
/* MERGE_OFFER_WAIT was the answer for so long that what was waited for does not come. */
enum merge_waited { MERGE_WAITED_NOT, MERGE_WAITED_IN_VAIN, MERGE_WAITED_LONG_IN_VAIN };
enum merge_offer merge_state_offer(const struct merge_state *state, const struct merge_hello *hello, bool may_force,
                                   enum merge_waited waited);
void merge_state_greet(struct merge_state *state, const struct merge_hello *hello);   /* learns from it */
void merge_state_sponsor(struct merge_state *state, const struct merge_hello *hello); /* save before the state goes */
/* Takes over the state of another node. False, and nothing has changed: it is refused, as it lacks what is not in the
 * history here any more, or it is not needed. The caller asks all links anew, in both directions, and saves. */
must_check bool merge_state_adopt(struct merge_state *state, const struct merge_account *account);

void merge_state_validate(const struct merge_state *state);
