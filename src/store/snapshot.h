/* All keys as they were at one moment, for who writes them out: RDB files, the base of an append only file, later full
 * syncs. Writers see keys through these calls alone, so they need not know how the moment is kept.
 *
 * There is one way so far: nothing changes, as the caller owns the gate, or is a child forked by who did. Another way
 * is a row of functions more (struct snapshot_kind); docs/architecture.md tells of one without a fork. */
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
    struct access *access; /* of who walks: its time, and how it counts uses */
};

/* Of an access that is alone with the data for as long as the snapshot is used. */
struct snapshot snapshot_of_access(struct access *access);

/* Databases that may have keys are below this. */
static inline unsigned snapshot_database_bound(const struct snapshot *snapshot)
{
    return snapshot->kind->database_bound(snapshot);
}
/* Exact for the moment. */
static inline void snapshot_totals(const struct snapshot *snapshot, unsigned db, struct database_totals *totals)
{
    snapshot->kind->totals(snapshot, db, totals);
}
/* Every key of the database once, but for expired ones, in any order. The entry is good until `visit` returns. */
static inline void snapshot_each(struct snapshot *snapshot, unsigned db, const struct access_visitor *visitor)
{
    snapshot->kind->each(snapshot, db, visitor);
}
