/* Who was told that it has to give first (MERGE_OFFER_WAIT), and whether that comes. In a mesh it comes by the link in
 * the other direction. In a ring of links in one direction it comes round, and those on the way may wait for each
 * other: then nothing of it comes, however long all wait.
 *
 *     hello -> merge_waits_look -> merge_state_offer -> merge_waits_note
 *
 * Plain data of its owner, who guards them. Times are those of a clock that never goes back; where threads that have
 * read it overtake each other, one may be a little before the last. */
#pragma once

#include "merge/state.h"

/* STEP: as much counts of the time between two times that it came. Where it was away, or this node stood still, nothing
 * could come; and where it has many others to ask it comes seldom. AWAY: who comes after so long waits anew. */
enum {
    MERGE_WAITS_MS = 10 * 1000,
    MERGE_WAITS_LONG_MS = 2 * MERGE_WAITS_MS,
    MERGE_WAITS_STEP_MS = 2 * 1000,
    MERGE_WAITS_AWAY_MS = 4 * MERGE_WAITS_MS
};

/* Zeroed memory is none. */
struct merge_waits {
    struct merge_wait {
        uint64_t name, last_ms;
        uint64_t waited_ms; /* since something of what it lacks has come */
        struct merge_lacks {
            struct merge_lack {
                uint64_t origin, here, end;
            } * items;
            uint32_t count, capacity;
        } lacks; /* what was not here when the wait began, and how far it was then: what is new later is not waited for,
                  * else where one origin goes on another one would be waited for for ever */
    } * items;
    uint32_t count, capacity;
};

/* In vain is that it has come again and again for MERGE_WAITS_MS, or for MERGE_WAITS_LONG_MS, that something has not
 * come all that time, and nothing else of what it waited for either. */
enum merge_waited merge_waits_look(const struct merge_waits *waits, const struct merge_state *state,
                                   const struct merge_hello *hello, uint64_t now_ms);
/* What it was told. */
void merge_waits_note(struct merge_waits *waits, const struct merge_state *state, const struct merge_hello *hello,
                      enum merge_offer offer, uint64_t now_ms);
void merge_waits_fini(struct merge_waits *waits); /* all begin anew */
