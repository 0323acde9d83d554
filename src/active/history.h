/* What the journal still has of the operations of all origins, and where a reader of it begins for a peer.
 *
 *     journal   ...gone....|mark--------|mark--------|mark----->  end
 *                          the cut
 *
 * A mark is a position of the journal with the deeds of that moment: the stamp of the last entry of each origin that is
 * here. What is above it stands behind the position:
 *
 *  1. the deeds of marks ascend with their positions;
 *  2. who has, of all origins that are asked for, what a mark's deeds say, lacks nothing that stands before it;
 *  3. what the first mark's deeds cover may be gone: they are the cut.
 *
 * Heartbeats make the marks, as they belong to a position. A reader that only keeps its place stands at the
 * first mark, so what is behind it stays, if need be in the journal's file.
 *
 * What a member lacks is kept up to active-history-limit. What all have is kept as long as there is memory for it: one
 * that loses its last seconds with its machine finds them here. No file is written for that: where nobody is away, the
 * journal stays in memory. Who has lost more gets the keys that it lacks. */
#pragma once

#include "base/compiler.h"
#include "merge/vector.h"
#include "store/journal.h"

#include <stdbool.h>
#include <stdint.h>

/* --- marks: pure; the owner guards them. Zeroed memory is none --- */

struct history_mark {
    uint64_t position, bytes; /* of the journal; with what records refer to */
    struct merge_vector deeds;
};

struct history_marks {
    struct history_mark *items;
    uint32_t count, capacity;
};

enum { HISTORY_MARKS_MOST = 1024 };

void history_marks_fini(struct history_marks *marks);
/* The deeds are copied. Nothing happens if the last mark is less than a part of `limit_bytes` away, so that there are
 * never more than HISTORY_MARKS_MOST within the limit. */
void history_marks_add(struct history_marks *marks, uint64_t position, uint64_t bytes, const struct merge_vector *deeds,
                       uint64_t limit_bytes);
/* Removes the first ones, of which more than limit_bytes of the journal stand before this place. One remains. Of what
 * `held` covers it is held_bytes. */
void history_marks_trim(struct history_marks *marks, uint64_t position, uint64_t bytes, uint64_t limit_bytes,
                        const struct merge_vector *held, uint64_t held_bytes);
/* Of these origins there are entries here up to these stamps that the journal never had. */
void history_marks_skip(struct history_marks *marks, const struct merge_vector *skipped);
/* The last mark behind which stands all that is above these stamps of the origins in `behind`, and of no others. NULL:
 * some of it may be gone. */
const struct history_mark *history_marks_find(const struct history_marks *marks, const struct merge_vector *behind);

/* --- of this server --- */

/* With the gate owned: `deeds` say what is here. All of it counts as gone; the journal keeps what comes from here
 * on. */
void active_history_start(struct journal *journal, const struct merge_vector *deeds);
bool active_history_has_begun(void); /* likewise */
void active_history_stop(void); /* at the end of the server: there is no traffic; does nothing if it was not started */
/* Worker 0, with each heartbeat, or whoever is alone with the data: a mark at this position, which has these deeds.
 * `held`: up to there every member has all. Returns whether the cut is another one now. */
bool active_history_note(uint64_t position, const struct merge_vector *deeds, const struct merge_vector *held);
/* With the gate owned: a state was taken over, with entries of these origins, up to these stamps, that never came. */
void active_history_skip(const struct merge_vector *skipped);
/* Any thread, in the gate. A reader that is given all that stands in the journal above the stamps in `behind`, of these
 * origins, and other records before, between and behind them. Flags as for journal_reader_open_at. False: some of it
 * may be gone. */
must_check bool active_history_open(struct journal_reader *reader, const struct merge_vector *behind, unsigned flags,
                                    void (*on_change)(struct journal_reader *reader));
void active_history_cut(struct merge_vector *cut); /* any thread; `cut` is empty */
uint64_t active_history_bytes(void);               /* any thread: of the journal, behind the first mark */
