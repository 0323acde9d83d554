/* Who was told that it has to give first (MERGE_OFFER_WAIT), and whether that comes. In a mesh it comes by the link in
 * the other direction. In a ring of links in one direction it comes round, and those on the way may wait for each
 * other: then nothing of it comes, however long all wait.
 *
 *     hello -> merge_waits_look -> merge_state_offer -> merge_waits_note
 *
 * Plain data of its owner, who guards them. Times are those of a clock that never goes back. */
#pragma once

#include "merge/state.h"

enum { MERGE_WAITS_MS = 10 * 1000, MERGE_WAITS_LONG_MS = 2 * MERGE_WAITS_MS, MERGE_WAITS_MOST_MS = 4 * MERGE_WAITS_MS };

/* Zeroed memory is none. */
struct merge_waits {
    struct merge_wait {
        uint64_t name, since_ms;
        struct merge_vector lacks; /* what was not here then, and how far it was */
    } * items;
    uint32_t count, capacity;
};

/* In vain is that it has come again and again for MERGE_WAITS_MS, or for MERGE_WAITS_LONG_MS, and of something that was
 * to come nothing has come. Who comes again after MERGE_WAITS_MOST_MS has been away. */
enum merge_waited merge_waits_look(const struct merge_waits *waits, const struct merge_state *state,
                                   const struct merge_hello *hello, uint64_t now_ms);
/* What it was told. */
void merge_waits_note(struct merge_waits *waits, const struct merge_state *state, const struct merge_hello *hello,
                      enum merge_offer offer, uint64_t now_ms);
void merge_waits_fini(struct merge_waits *waits); /* all begin anew */
