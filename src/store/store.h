/* The keyspace: stripes of hash tables that all workers share. Each stripe has one spinlock.
 *
 * A key's stripe is hash & stripe_mask. A stripe holds, for every database, the table of entries and the index of
 * deadlines, and the registries of keys (watchers, waiters). The stripe's lock, or the gate, guards all of that. */
#pragma once

#include "base/compiler.h"
#include "base/gate.h"
#include "base/hash.h"
#include "base/spinlock.h"
#include "base/table.h"
#include "store/counters.h"
#include "store/entry.h"
#include "store/horizon.h"
#include "store/origins.h"

struct expiry;
struct stripe_registries;
struct access;
struct change;
struct key;
struct store;
struct window;
struct live_snapshot;

enum { STORE_STRIPES_DEFAULT = 1024, STORE_STRIPES_MOST = 16384 };

/* One database's keys in one stripe. */
struct stripe_db {
    struct table keys;
    /* NULL: no key with a deadline was ever here; atomic: sums read it without the lock. */
    _Atomic(struct expiry *) deadlines;
};

struct CACHE_ALIGNED stripe {
    struct spinlock lock;                    /* rank LOCK_STRIPE; several are taken in ascending index */
    _Atomic uint64_t wait_mask;              /* atomic: bit i: thread i wants to be woken after a release */
    struct stripe_db first GUARDED_BY(lock); /* database 0 */
    struct stripe_registries *registries GUARDED_BY(lock); /* NULL: no client has ever watched or waited here */
    _Atomic(struct stripe_db *) *databases;                /* const: the store's */
    uint32_t index;                                        /* const */
    uint32_t moves GUARDED_BY(lock); /* how often an entry came or went: slots that were found before may have moved */
};
static_assert(sizeof(struct stripe) == CACHE_LINE_BYTES, "one stripe, one cache line");

/* The classes of keyspace events, as in notify-keyspace-events. */
enum event_class {
    EVENT_GENERIC = 1 << 0,
    EVENT_STRING = 1 << 1,
    EVENT_LIST = 1 << 2,
    EVENT_SET = 1 << 3,
    EVENT_HASH = 1 << 4,
    EVENT_ZSET = 1 << 5,
    EVENT_EXPIRED = 1 << 6,
    EVENT_EVICTED = 1 << 7,
    EVENT_STREAM = 1 << 8,
    EVENT_KEY_MISS = 1 << 9,
    EVENT_MODULE = 1 << 10,
    EVENT_NEW = 1 << 11,
    EVENT_OVERWRITTEN = 1 << 12,
    EVENT_TYPE_CHANGED = 1 << 13,
    /* No classes of events: */
    EVENT_FIELDS = 1 << 14,       /* the fields are wanted that events of hashes are about */
    OBSERVE_CHANGES = 1 << 15,    /* clients track keys */
    OBSERVE_LOCAL_KEYS = 1 << 16, /* clients write on a replica */
    OBSERVE_SLOTS = 1 << 17,      /* a walk marks hash slots whose keys change */
    OBSERVE_STAMPS = 1 << 18,     /* no observer's: changed keys are noted (changed.h), new entries have a version */
    OBSERVE_SNAPSHOT = 1 << 19,   /* no observer's: a snapshot is written (snapshot_live.h) */
    OBSERVE_CLOCKS = 1 << 20,     /* changes set the clocks of keys */
    /* Not observed, but given to change_end with a class: another value has taken the place of the key's, if it had
     * one. */
    EVENT_REPLACES = 1 << 21
};

/* Callbacks that are called for changes while the key's stripe is held. They must be quick and never block. Register an
 * observer before the first worker starts. The struct belongs to the caller and must outlive the store. Any of the
 * functions may be NULL. They are called only while store->observed has the class. */
struct store_observer {
    /* Before the change: the entry is still complete. */
    void (*before)(struct store_observer *observer, const struct change *change);
    void (*after)(struct store_observer *observer, const struct change *change);
    /* An event of a key: after its change, or without a change ("keymiss"). */
    void (*event)(struct store_observer *observer, const struct access *access, unsigned db, const struct key *key,
                  enum event_class event_class, const char *event);
    /* Behind an event of a hash: `count` fields that it is about, every `step`th of these. */
    void (*fields)(struct store_observer *observer, const struct access *access, unsigned db, const struct key *key,
                   const char *event, const struct slice *fields, uint32_t count, uint32_t step);
    struct store_observer *next;
};

/* The reason why a value is freed. Large values are freed by a background thread if `frees_later` has the reason's
 * bit. */
enum free_reason {
    FREE_AT_ONCE = 0,         /* `frees_later` never has it */
    FREE_UNLINK = 1 << 0,     /* `frees_later` always has it */
    FREE_SERVER_DEL = 1 << 1, /* another value replaces it, or a command leaves it empty */
    FREE_USER_DEL = 1 << 2,
    FREE_EXPIRE = 1 << 3
};

/* What the keyspace needs to know of a type. */
struct store_type {
    const char *name;            /* the reply of TYPE */
    const struct value_ops *ops; /* NULL: strings, which are not a struct value */
    /* How members that are past their deadlines are removed: the journal gets this command with their names behind the
     * key, and observers get this event. NULL: members of this type have no deadlines. */
    const char *expired_command, *expired_event;
    enum event_class expired_class;
};

/* Reasons for which expired keys stay until they are told to go. */
enum store_keeps {
    STORE_KEEPS_PAUSED = 1 << 0,    /* nothing changes now */
    STORE_KEEPS_FOLLOWING = 1 << 1, /* the master decides */
    /* Active replication: also writes leave what has expired, unless they change the key. Then it goes as part of their
     * change. Otherwise it goes when every node agrees: the last operation is not above F, the deadline below W. */
    STORE_KEEPS_ACTIVE = 1 << 2,
    STORE_KEEPS_IMPORTING = 1 << 3 /* import-mode: the source of an import decides */
};

struct store {
    struct stripe *stripes;  /* const pointer */
    uint32_t stripe_mask;    /* const: count - 1 */
    unsigned database_count; /* const */
    /* By database, from 1 on: its part of each stripe; NULL: never used; set once. All stripes' parts are made at once.
     * Making them by stripe would make all databases at a time, and the first keys of a database would cost 400 bytes
     * each. */
    _Atomic(struct stripe_db *) *databases;
    _Atomic unsigned database_bound;     /* atomic: relaxed; databases from this number on were never used */
    struct store_observer *observers;    /* const after start */
    _Atomic uint32_t observed;           /* the classes (enum event_class) that observers want; atomic: relaxed */
    struct store_type types[TYPE_COUNT]; /* const after start */
    void (*wake)(uint64_t wait_mask);    /* const after start: wakes the threads of a stripe's wait mask; may be NULL */
    _Atomic bool has_jobs;               /* a job has existed; atomic: relaxed */
    _Atomic bool has_streams;            /* a stream has existed since the last flush of everything; atomic: relaxed */
    /* How often many keys changed at once, of which no observer was told: FLUSHALL, SWAPDB, loading; atomic: relaxed;
     * changed with the gate owned. */
    _Atomic uint64_t upheavals;
    _Atomic bool active_expire;     /* DEBUG SET-ACTIVE-EXPIRE */
    _Atomic unsigned keeps_expired; /* enum store_keeps: reads do not delete expired keys; atomic: relaxed */
    _Atomic bool is_shared;         /* memory is shared with a child: reads do not write to it; atomic: relaxed */
    _Atomic bool counts_changes;    /* maxmemory-policy is an LRM policy: reads leave clocks; atomic: relaxed */
    _Atomic bool counts_uses;       /* maxmemory-policy is an LFU policy: see lru_lfu.h; changed with the gate owned */
    _Atomic uint32_t lfu_log_factor, lfu_decay_minutes; /* changed with the gate owned */
    _Atomic uint32_t frees_later;                       /* bits of enum free_reason; atomic: relaxed */
    /* Number of waiters that change a second key; of keys with waiters; of those with waiters for their loss: see
     * waiters.h. */
    _Atomic uint32_t mover_count, waited_count, loss_count; /* atomic: relaxed */
    struct horizon horizon;                                 /* active replication: what it knows of the past */
    struct origins origins;                                 /* active replication: the origins in versions */
    /* Active replication: window.h. Set with the gate owned, or while data are loaded; NULL: never was on. Any thread
     * may look at its totals. */
    struct window *_Atomic window;
    /* Snapshots of data that goes on changing, ENTRY_MARKS of them, also those that have ended. Set once, with the gate
     * owned; NULL: there was none. */
    struct live_snapshot *_Atomic live;
    /* Values that they need as they were: snapshot_large.h, snapshot_string.h; atomic: relaxed. */
    _Atomic uint32_t large_count, long_string_count;
    /* Const after start; may be NULL. From now on writers should wait for what is written of them, or no longer: any
     * thread, under locks. Behind that they may be woken: under no lock. */
    void (*on_crowd)(bool is_crowded);
    void (*on_room)(void);
    uint64_t (*counted_bytes)(void); /* likewise: memory that counts for maxmemory; NULL: all of it */
};

struct store *store_create(uint32_t stripe_count, unsigned database_count);
/* An empty store with the types, databases and settings of another one, for access_exchange. */
struct store *store_create_like(const struct store *other);
void store_destroy(struct store **store);
static inline void store_keep_expired(struct store *store, enum store_keeps reason, bool keeps)
{
    if (keeps)
        (void)atomic_fetch_or_explicit(&store->keeps_expired, reason, memory_order_relaxed);
    else
        (void)atomic_fetch_and_explicit(&store->keeps_expired, ~(unsigned)reason, memory_order_relaxed);
}
static inline bool store_is_importing(const struct store *store) /* any thread */
{
    return UNLIKELY((atomic_load_explicit(&store->keeps_expired, memory_order_relaxed) & STORE_KEEPS_IMPORTING) != 0);
}
void store_set_type(struct store *store, enum value_type type, const struct store_type *of); /* before start */
/* Memory of an entry with all that it owns, in the allocator's sizes; its stripe is held. `samples`: see value_ops. */
uint64_t store_entry_bytes(const struct store *store, const struct entry *entry, uint64_t samples);
/* Prefetches these keys of database 0 together instead of one after the other, at most STORE_PREFETCH_MOST. Their
 * stripes are held, or the gate is owned. */
enum { STORE_PREFETCH_MOST = 32 };
struct key;
void store_prefetch(const struct store *store, const struct key *keys, uint32_t count);
/* The same for members of one key, if it has so many that they are not in the caches anyway. */
void store_prefetch_members(const struct store *store, const struct key *key, const struct slice *members,
                            uint32_t count);
void store_observe(struct store *store, struct store_observer *observer);
/* From now on changed keys get versions, or do not any more; with the gate owned. */
void store_set_stamping(struct store *store, bool stamps);
/* Sets the bits of `mask` (enum event_class) to those in `classes`. Any thread. */
void store_set_observed(struct store *store, uint32_t mask, uint32_t classes);
static inline uint32_t store_observed(const struct store *store)
{
    return atomic_load_explicit(&store->observed, memory_order_relaxed);
}

static inline void counter_add(_Atomic uint64_t *counter, uint64_t amount)
{
    /* There is one writer: a plain load and store; readers see whole numbers. */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount, memory_order_relaxed);
}

struct database_totals {
    uint64_t keys;
    uint64_t expires;
    int64_t average_deadline_ms; /* wall clock; 0: no key has a deadline */
};

static inline struct stripe_db *stripe_db(const struct stripe *stripe, unsigned db)
{
    struct stripe_db *parts;

    if (LIKELY(db == 0))
        return (struct stripe_db *)(uintptr_t)&stripe->first; /* changes need the stripe's lock */
    parts = atomic_load_explicit(&stripe->databases[db], memory_order_acquire);
    return parts != NULL ? &parts[stripe->index] : NULL;
}

/* Databases with keys are below this number. */
static inline unsigned store_database_bound(const struct store *store)
{
    return atomic_load_explicit(&store->database_bound, memory_order_relaxed);
}
/* Asserts that this thread holds the stripe or is alone, for code without an access. */
static inline void stripe_assert_held(const struct stripe *stripe)
{
    assert(spinlock_is_mine(&stripe->lock) || gate_is_alone());
}
/* Call it after releasing a stripe: returns the threads to wake. The light fence pairs with the heavy one of
 * stripe_wait. */
static inline bool stripe_has_waiters(const struct stripe *stripe)
{
    return atomic_load_explicit(&stripe->wait_mask, memory_order_relaxed) != 0;
}
static inline uint64_t stripe_take_waiters(struct stripe *stripe)
{
    if (LIKELY(atomic_load_explicit(&stripe->wait_mask, memory_order_relaxed) == 0))
        return 0;
    return atomic_exchange_explicit(&stripe->wait_mask, 0, memory_order_acq_rel);
}
/* True if this thread has asked for a wake-up and was not woken yet. */
static inline bool stripe_has_waiter(const struct stripe *stripe, unsigned thread_index)
{
    return (atomic_load_explicit(&stripe->wait_mask, memory_order_relaxed) >> thread_index & 1) != 0;
}
void stripe_release(struct store *store, struct stripe *stripe) NO_THREAD_SAFETY_ANALYSIS;
/* Asks for a wake-up of thread `thread_index` (0 to 63) at the next release. False: the stripe is free already; try
 * again. A thread may ask for several of its commands, one after the other; it is woken once for all. */
must_check bool stripe_wait(struct stripe *stripe, unsigned thread_index);
/* The steps of stripe_wait, for who looks at more than the lock between them: sets the thread's bit, with the heavy
 * fence (true: it was set); removes it again, by who has set it. */
must_check bool stripe_ask(struct stripe *stripe, unsigned thread_index);
void stripe_ask_no_more(struct stripe *stripe, unsigned thread_index);

/* Returns stripe_db, and creates it if needed; the stripe is held. */
struct stripe_db *stripe_db_use(struct store *store, struct stripe *stripe, unsigned db);

/* Sums over the stripes without locking: approximate while other threads write, exact otherwise. */
void store_database_totals(const struct store *store, unsigned db, struct database_totals *totals);
uint64_t store_key_count(const struct store *store, unsigned db);
