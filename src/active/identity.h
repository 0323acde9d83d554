/* The identity file: who this node is, for as long as its data live.
 *
 *     keydb-identity 1
 *     name UUID               for life
 *     origin UUID             of this start; each start has a new one
 *     starts 3
 *     stamp-bound 29409280...  no stamp above it was given or promised
 *     wall-bound 17950000...   no wall time above it was used or promised
 *     former UUID             one line for each earlier start
 *     member UUID UUID 3      one line for each node that belongs to the group: its name, origin, number of starts
 *     removed UUID            one line for each node that does not any more
 *     crc64 16 hex digits     of all lines before
 *
 * It is written beside the old one, synced, renamed, and its folder synced: a power cut leaves the old file or the new
 * one. A start is on the disk before anything of it may be sent: an origin that was heard of is never used again.
 * Bounds are reserved ahead, and written in the background long before they are reached.
 *
 * A file that is damaged, or that something else wrote, is refused. A copy looks like the original, so it is for peers
 * to notice: a hello says name, origin, number of starts and all former origins, and identity_judge compares them with
 * what is known of that name.
 *
 * The pure functions may be called by any thread that owns the struct; those that take a path wait for the disk. */
#pragma once

#include "base/buffer.h"
#include "base/compiler.h"
#include "base/slice.h"
#include "base/status.h"
#include "merge/state.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    IDENTITY_AHEAD_MS = 4000, /* how far ahead bounds are reserved; a start begins behind them */
    IDENTITY_ERROR_BYTES = 512,
    IDENTITY_FILE_BYTES_MOST = 4 << 20 /* some 90,000 starts that nobody has forgotten yet */
};

void identity_fini(struct merge_identity *identity);

/* Loads the file, or makes a new name if there is none; begins a start; returns when that is on the disk. *clock and
 * *wall are the bounds of the start before: this one begins above them. Otherwise `error` has a line with the path, and
 * the identity is empty. */
must_check enum status identity_start(const char *path, int64_t wall_ms, struct merge_identity *identity,
                                      uint64_t *clock, int64_t *wall, char error[IDENTITY_ERROR_BYTES]);
must_check enum status identity_store(const char *path, const struct merge_identity *identity);

/* --- bounds --- */

/* True if half of what was reserved is used: reserve and store again. Stamps and wall times above the bounds that are
 * on the disk may not be given. */
bool identity_wants_more(const struct merge_identity *identity, uint64_t stamp, int64_t wall_ms);
void identity_reserve(struct merge_identity *identity, uint64_t stamp, int64_t wall_ms);

/* --- text --- */

void identity_format(const struct merge_identity *identity, struct buffer *text);
must_check bool identity_parse(struct slice text, struct merge_identity *identity, char error[IDENTITY_ERROR_BYTES]);

/* --- who says so --- */

enum identity_verdict {
    IDENTITY_SAME,  /* the start that is known */
    IDENTITY_LATER, /* a later start of it */
    IDENTITY_OLD,   /* an earlier start, or one from an older file: refuse */
    IDENTITY_COPY   /* another node with a copy of the file: refuse */
};

/* A node says that it has a name that is known. `is_heard`: the start that is known is heard just now by another link.
 * `former` is what it says of its earlier starts. */
enum identity_verdict identity_judge(const struct merge_member *known, bool is_heard, const struct merge_member *said,
                                     const struct merge_vector *former);
