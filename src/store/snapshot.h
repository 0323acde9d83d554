/* A snapshot: all keys as they were at one moment, for code that writes them out: RDB files, the base of an append-only
 * file, full syncs. Writers see keys through these functions only, and need not know how the snapshot is kept.
 *
 * There are two kinds. In the first the data does not change, because the caller owns the gate or is a child forked by
 * such a thread. In the second it goes on changing: snapshot_live.h. */
#pragma once

#include "base/assert.h"
#include "data/former.h"
#include "store/access.h"

enum { SNAPSHOT_THREADS_MOST = 8 }; /* that write one snapshot */

struct snapshot;

/* What is known of a large value before its elements. */
struct snapshot_value {
    uint64_t count;   /* of elements */
    int64_t first_ms; /* the earliest deadline of a member; EXPIRE_NEVER: no member has one */
};

/* What a writer does with the keys. Nobody waits for it: it may write, and sleep. */
struct snapshot_visitor {
    /* Each key once, in any order of keys and databases, except expired keys that the visitor does not see. The entry
     * is valid until the function returns. */
    void (*visit)(struct access *access, unsigned db, const struct entry *entry, void *context);
    /* Or, where a large value goes on changing: begin, each element once, each deadline of a member once, end; `rest`
     * between them. If begin returns true deadlines come with the elements instead. Members past their deadlines are
     * there, too, whatever sees_expired says: nobody could say how many they are without a look at all of them. The
     * entry's value is former_rest of it, and only valid if that is; of its members the entry has no deadlines. All
     * four, or none if there are no such values. Elements of a long string are its bytes, piece by piece, each the
     * `first` of one; the count is that of bytes. */
    bool (*begin)(struct access *access, unsigned db, const struct entry *entry, const struct snapshot_value *value,
                  void *context);
    void (*element)(const struct former_element *element, int64_t expire_ms, void *context);
    deadline_fn deadline;
    void (*end)(void *context);
    /* Now and then. False: the rest is not visited. May be NULL. */
    bool (*rest)(void *context);
    /* Behind its last key, in the thread of its visits, also if it did not get all. May be NULL. */
    void (*done)(void *context);
    void *context;
    bool sees_expired; /* visits expired keys, too, and all keys with their expired members */
};

/* For what is kept by stripe beside the keys, and has not changed since the moment (window_leave). */
struct snapshot_holder {
    /* The stripe is held, or the gate owned. */
    void (*hold)(struct access *access, uint32_t stripe, void *context);
    /* Behind each one: it may write, and sleep. False: no more of them. */
    bool (*rest)(void *context);
    void *context;
};

/* Which keys a snapshot has. */
struct snapshot_choice {
    /* By what the entry is at the moment of the snapshot; its stripe is held, or nobody changes it. Any thread, in the
     * middle of a command: be quick. */
    bool (*has)(const struct snapshot_choice *choice, const struct entry *entry);
};

static inline bool snapshot_chooses(const struct snapshot_choice *choice, const struct entry *entry)
{
    return LIKELY(choice == NULL) || choice->has(choice, entry);
}

struct snapshot_kind {
    unsigned (*database_bound)(const struct snapshot *snapshot);
    void (*totals)(const struct snapshot *snapshot, unsigned db, struct database_totals *totals);
    unsigned (*threads)(const struct snapshot *snapshot); /* NULL: one */
    bool (*each)(struct snapshot *snapshot, const struct snapshot_visitor *visitors, unsigned count);
    bool (*each_stripe)(struct snapshot *snapshot, const struct snapshot_holder *holder); /* NULL: nobody asks */
    bool is_live; /* the data goes on changing */
};

struct snapshot {
    const struct snapshot_kind *kind;
    struct access *access;                /* its time, and how it counts uses */
    const struct snapshot_choice *choice; /* NULL: it has all keys */
};

/* A snapshot through an access that is alone with the data while the snapshot is in use. */
struct snapshot snapshot_of_access(struct access *access);
/* The same, with the keys that are chosen. */
struct snapshot snapshot_of_chosen(struct access *access, const struct snapshot_choice *choice);

static inline bool snapshot_has_all(const struct snapshot *snapshot)
{
    return snapshot->choice == NULL;
}

/* Databases with keys are below this number. */
static inline unsigned snapshot_database_bound(const struct snapshot *snapshot)
{
    return snapshot->kind->database_bound(snapshot);
}
/* Exact for the moment of the snapshot, which has all keys: how many are chosen is known when each was visited. */
static inline void snapshot_totals(const struct snapshot *snapshot, unsigned db, struct database_totals *totals)
{
    assert(snapshot_has_all(snapshot));
    snapshot->kind->totals(snapshot, db, totals);
}
/* How many visitors there may be. */
static inline unsigned snapshot_threads(const struct snapshot *snapshot)
{
    return snapshot->kind->threads != NULL ? snapshot->kind->threads(snapshot) : 1;
}
/* A snapshot is visited once. Each visitor has a thread, the first one the caller's, and gets keys that the others do
 * not get; it returns when all have ended. False: not to the end, as a visitor did not want more or the snapshot was
 * cancelled: what was written is not whole. */
static inline must_check bool snapshot_each_by(struct snapshot *snapshot, const struct snapshot_visitor *visitors,
                                               unsigned count)
{
    return snapshot->kind->each(snapshot, visitors, count);
}
static inline must_check bool snapshot_each(struct snapshot *snapshot, const struct snapshot_visitor *visitor)
{
    return snapshot_each_by(snapshot, visitor, 1);
}
static inline bool snapshot_is_live(const struct snapshot *snapshot)
{
    return snapshot->kind->is_live;
}
/* Each stripe in turn, before or behind snapshot_each. False: not to the end. */
static inline must_check bool snapshot_each_stripe(struct snapshot *snapshot, const struct snapshot_holder *holder)
{
    return snapshot->kind->each_stripe(snapshot, holder);
}
