/* Takes the operations of a key's list back on a copy: what the key was at its base. The key itself, its list and what
 * takes it back stay as they are.
 *
 *     entry = window_copy_base(copy, access, known);     NULL: the key was missing
 *     ...
 *     window_copy_release(copy, known);
 *
 * Only what the base depends on is copied and taken back: of a key that an operation of the list has made, or whose
 * value it has replaced, not what it is now. So it costs the steps, and mostly no large value; else a long string is
 * shared until a step has changed its bytes, and any other value is copied as a whole.
 *
 * A large collection is not copied for a snapshot of data that go on changing (snapshot_live.h): it is left to the
 * snapshot, with the steps, whose thread visits it as it was at the base, in pieces. Not if it is a stream, or a list
 * that was changed between its ends (former_takes_back).
 *
 * Any thread that holds the key's stripe, in the middle of a change of another key, or of this one that has not begun
 * yet. In between it holds a lock of the copy's. */
#pragma once

#include "store/access.h"

struct window_copy;
struct window_key;

struct window_copy *window_copy_create(const struct store *of); /* as many as are wanted */
void window_copy_destroy(struct window_copy **handle);          /* with the gate owned; accepts NULL */

const struct entry *window_copy_base(struct window_copy *copy, struct access *access, const struct window_key *known);
void window_copy_release(struct window_copy *copy, const struct window_key *known);

struct live_earlier;
struct live_snapshot;
/* Leaves the value at the base to the snapshot's thread (live_visit_earlier); *expire_ms is the key's deadline there.
 * NULL: window_copy_base is as good, or the only way. The gate may be owned. */
struct live_earlier *window_copy_leave(struct window_copy *copy, struct access *access, const struct window_key *known,
                                       struct live_snapshot *live, int64_t *expire_ms);
