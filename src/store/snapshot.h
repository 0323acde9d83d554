/* A snapshot: all keys as they were at one moment, for code that writes them out: RDB files, the base of an append-only
 * file, later full syncs. Writers see keys through these functions only, and need not know how the snapshot is kept.
 *
 * Today there is one kind: the data does not change, because the caller owns the gate or is a child forked by such a
 * thread. Another kind would be a further row of functions (struct snapshot_kind); docs/architecture.md describes one
 * without a fork. */
#pragma once

#include "store/access.h"

struct snapshot;

struct snapshot_kind {
    unsigned (*database_bound)(const struct snapshot *snapshot);
    void (*totals)(const struct snapshot *snapshot, unsigned db, struct database_totals *totals);
    void (*each)(struct snapshot *snapshot, unsigned db, const struct access_visitor *visitor);
};

struct snapshot {
    const struct snapshot_kind *kind;
    struct access *access; /* the caller's: its time, and how it counts uses */
};

/* A snapshot through an access that is alone with the data while the snapshot is in use. */
struct snapshot snapshot_of_access(struct access *access);

/* Databases with keys are below this number. */
static inline unsigned snapshot_database_bound(const struct snapshot *snapshot)
{
    return snapshot->kind->database_bound(snapshot);
}
/* Exact for the moment of the snapshot. */
static inline void snapshot_totals(const struct snapshot *snapshot, unsigned db, struct database_totals *totals)
{
    snapshot->kind->totals(snapshot, db, totals);
}
/* Visits every key of the database once, except expired keys that the visitor does not see, in any order. The entry is
 * valid until `visit` returns. */
static inline void snapshot_each(struct snapshot *snapshot, unsigned db, const struct access_visitor *visitor)
{
    snapshot->kind->each(snapshot, db, visitor);
}
