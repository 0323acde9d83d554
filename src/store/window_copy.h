/* Takes the operations of a key's list back on a copy: what the key was at its base. The key itself, its list and what
 * takes it back stay as they are.
 *
 *     entry = window_copy_base(copy, access, known);     NULL: the key was missing
 *     ...
 *     window_copy_release(copy);
 *
 * Only what the base depends on is copied and taken back: of a key that an operation of the list has made, or whose
 * value it has replaced, not what it is now. So it costs the steps, and mostly no large value; else a long string is
 * shared until a step has changed its bytes, and any other value is copied as a whole.
 *
 * A large value is not copied for a snapshot of data that go on changing (snapshot_live.h): it is left to the snapshot,
 * with the steps. Of most collections its thread visits the value as it was at the base, in pieces. Of a stream, a long
 * string, or a list that was changed between its ends (former_takes_back) it visits the value that it was left, and
 * takes the steps back on what it has made of that, with a window_copy of its own and under nobody's lock:
 *
 *     entry = window_copy_rebuild(own, fill, context, steps);
 *     ...
 *     window_copy_release(own);
 *
 * Any thread that holds the key's stripe, in the middle of a change of another key, or of this one that has not begun
 * yet. In between it holds a lock of the copy's. To rebuild nothing else is held. */
#pragma once

#include "store/access.h"

struct window_copy;
struct window_key;

struct window_copy *window_copy_create(const struct store *of); /* as many as are wanted */
void window_copy_destroy(struct window_copy **handle);          /* with the gate owned; accepts NULL */

const struct entry *window_copy_base(struct window_copy *copy, struct access *access, const struct window_key *known);
void window_copy_release(struct window_copy *copy);

struct live_earlier;
struct live_snapshot;
/* Leaves the value at the base to the snapshot's thread (live_visit_earlier); *expire_ms is the key's deadline there.
 * `back`, which is empty: gets the steps that window_copy_rebuild is to take back, if there are such; the buffer is the
 * caller's. NULL: window_copy_base is as good. The gate may be owned. */
struct live_earlier *window_copy_leave(struct window_copy *copy, struct access *access, const struct window_key *known,
                                       struct live_snapshot *live, int64_t *expire_ms, struct buffer *back);

/* `fill` puts the value into a key that is missing. Returns what it was before the steps (of undos, the newest one at
 * the end). */
const struct entry *window_copy_rebuild(struct window_copy *copy, void (*fill)(struct change *change, void *context),
                                        void *context, struct slice steps);
