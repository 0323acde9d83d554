/* The way to the keys: an access says which stripes its thread holds (or that it holds the gate), and every call here
 * asserts that the key's stripe is among them. One command, EXEC or script has one access and sees one time.
 *
 *     struct entry *entry = access_find(access, db, key);
 *     ...
 *     struct change change;
 *     change_begin(&change, access, db, key);
 *     change_put_string(&change, value, EXPIRE_NEVER);
 *     change_end(&change, EVENT_STRING, "set");
 *
 * Every change goes through begin and end: the single place for observers (tracking, events, snapshots), watchers,
 * version stamps and dirty counts. Pointers to entries are valid until the next change of that key or until the
 * stripes are released. All of it runs in the thread that holds the stripes. */
#pragma once

#include "base/blob.h"
#include "base/buffer.h"
#include "store/entry.h"
#include "store/store.h"

struct access_garbage;
struct effects;
struct registered_key;

/* A key as a command names it, with its hash. */
struct key {
    struct slice name;
    uint64_t hash;
};

static inline struct key key_make(struct slice name)
{
    return (struct key){name, hash_bytes(name.data, name.size)};
}

struct access {
    struct store *store;
    struct store_counters *counters; /* this thread's */
    struct effects *effects;         /* where deletions by expiry and eviction are recorded; NULL: nobody reads */
    /* Journals the effects so far, serves who waits for what changed and tells who listens: before stripes are released
     * midway. */
    void (*settle)(struct access *access);
    int64_t now_ms;                 /* wall clock, one sample */
    int64_t due_ms;                 /* what has a deadline before this is past it: now, or access_follow */
    uint32_t clock;                 /* a new entry's; without counts_uses also that of an entry in use */
    bool counts_uses;               /* the clocks are those of lru_lfu.h, else seconds */
    bool exclusive;                 /* the gate is held: every stripe is ours */
    bool is_script;                 /* stripes may be held for long: what is large is given up at once */
    bool no_touch;                  /* CLIENT NO-TOUCH: reads leave the clock alone */
    bool has_noted;                 /* observers noted what they will tell: settle before stripes are released */
    bool unasked;                   /* just now a key changes as its time is over or it is evicted: nobody asked */
    uint64_t dirty;                 /* changes made so far */
    uint32_t lock_id;               /* spinlock_self_id() of this thread */
    uint64_t wait_bit;              /* const: this thread's in wait masks; 0: it waits for nothing */
    struct access_garbage *garbage; /* large values, to be freed after the stripes are released: lazyfree.h */
    struct registered_key *ready, *ready_last; /* keys changed for which somebody waits, in order: waiters.h */
    /* The last lookup, so that a change after a find does not look twice. */
    const struct key *found_key;
    uint64_t *found_slot;
    unsigned found_db;
};

void access_init(struct access *access, struct store *store, struct store_counters *counters);
/* A new command: time and dirty count begin anew. */
void access_begin(struct access *access, int64_t now_ms, bool exclusive);
/* What is held stays; another command begins with it, at a later time. */
void access_advance(struct access *access, int64_t now_ms);
/* After access_begin, for commands of a file or a master: nothing is past its deadline until they say that it is gone,
 * and deadlines in the past are set like others. */
static inline void access_follow(struct access *access)
{
    access->due_ms = INT64_MIN;
}
static inline bool access_follows(const struct access *access)
{
    return access->due_ms == INT64_MIN;
}

/* --- locking; ascending, all or nothing --- */

static inline uint32_t access_stripe_of(const struct access *access, const struct key *key)
{
    return (uint32_t)key->hash & access->store->stripe_mask;
}
/* Stripe numbers must be ascending and without repeats. False: none is held (a bounded spin was in vain); *busy tells
 * which one was not to be had. */
must_check bool access_lock(struct access *access, const uint32_t *stripes, uint32_t count, uint32_t *busy);
/* Releases, wakes the threads that wait for one of them (stripe_wait), then frees what is left of large values. */
void access_unlock(struct access *access, const uint32_t *stripes, uint32_t count) NO_THREAD_SAFETY_ANALYSIS;
bool access_holds(const struct access *access, uint32_t stripe);
static inline void access_assert_holds(const struct access *access, uint32_t stripe)
{
    assert(access_holds(access, stripe));
}
/* No stripe is held, nor anything else; or all are. */
static inline void access_assert_none_held(const struct access *access)
{
    assert(access->exclusive || spinlock_held_count == 0);
}

/* --- looking; NULL: no such key (an expired one is deleted on the way) --- */

struct entry *access_read(struct access *access, unsigned db, const struct key *key);  /* counts hits, touches */
struct entry *access_peek(struct access *access, unsigned db, const struct key *key);  /* counts, touches nothing */
struct entry *access_find(struct access *access, unsigned db, const struct key *key);  /* to change: touches only */
struct entry *access_probe(struct access *access, unsigned db, const struct key *key); /* neither */
/* As it stands, also one that has expired and was not deleted yet: to look at the store itself (DEBUG). */
const struct entry *access_look(struct access *access, unsigned db, const struct key *key);

/* --- changing --- */

struct change {
    struct access *access;
    const struct key *key;
    struct stripe *stripe;
    struct stripe_db *keys;
    uint64_t *slot; /* NULL: the key is absent */
    unsigned db;
    bool existed; /* the key was there before; only if changes are observed */
};

void change_begin(struct change *change, struct access *access, unsigned db, const struct key *key);
/* Tells everybody and counts. event may be NULL: no keyspace event (e.g. the caller names it itself). */
void change_end(struct change *change, enum event_class event_class, const char *event);
/* Instead of change_end: nothing came of it. What was edited has the bytes it had (its encoding may be another), so
 * nobody is told. */
void change_abandon(struct change *change);
/* One more event for a key that changed (SET with EX: "set", then "expire"). */
void access_event(struct access *access, unsigned db, const struct key *key, enum event_class event_class,
                  const char *event);

static inline struct entry *change_entry(const struct change *change)
{
    return change->slot != NULL ? table_slot_item(change->slot) : NULL;
}

/* The key's new value; what was there is freed. expire_ms: EXPIRE_NEVER, EXPIRE_KEEP or a wall clock time. Strings
 * that are canonical integers are kept as numbers. */
void change_put_string(struct change *change, struct slice value, int64_t expire_ms);
void change_put_blob(struct change *change, struct blob *blob, int64_t expire_ms); /* takes a reference of its own */
void change_put_int(struct change *change, int64_t number, int64_t expire_ms);
void change_put_value(struct change *change, enum value_type type, struct value value,
                      int64_t expire_ms);                          /* of any type but string; owned from now on */
void change_keep_value(struct change *change, struct value value); /* the key's own value was changed in place */
/* The string (absent: empty) with `size` bytes, the old ones kept and new ones zero; returns them for writing. */
char *change_edit_string(struct change *change, size_t size);
/* Moves or copies the value of another entry, which stands in `from` or anywhere. */
void change_move_value(struct change *to, struct change *from, int64_t expire_ms); /* `from`'s key is gone then */
void change_copy_value(struct change *to, const struct entry *from, int64_t expire_ms);
void change_expire(struct change *change, int64_t expire_ms);           /* the key exists; EXPIRE_NEVER removes */
void change_delete(struct change *change);                              /* the key exists */
void change_delete_for(struct change *change, enum free_reason reason); /* likewise; else it is FREE_SERVER_DEL */

/* Deletes a key as DEL does, with its event; false: it was not there. */
bool access_delete(struct access *access, unsigned db, const struct key *key);
bool access_delete_for(struct access *access, unsigned db, const struct key *key, enum free_reason reason);

/* --- several databases at once: the gate is held --- */

void access_flush_db(struct access *access, unsigned db, bool background); /* tells watchers; no event */
void access_swap_db(struct access *access, unsigned a, unsigned b);

/* --- walking --- */

enum access_walk {
    WALK_DONE,
    WALK_NOTHING, /* there is no key */
    WALK_BUSY     /* nothing was done: *busy tells for which stripe to wait */
};

/* A random key of the database, from a stripe that is free just now if a few draws find one. The key's bytes are
 * appended to `name`. Locks by itself: no stripe is held, or all. */
must_check enum access_walk access_random_key(struct access *access, unsigned db, struct buffer *name, uint32_t *busy);
/* Who walks: keys that are wanted are visited, or deleted if they are past their deadline. */
struct access_visitor {
    bool (*wanted)(const struct entry *entry, void *context); /* NULL: every key */
    void (*visit)(struct access *access, unsigned db, const struct entry *entry, void *context);
    void *context;
};
/* Walks about `want` keys from `*cursor` on, stripe by stripe, and sets it to the next one (0: the end). Ends early
 * where a stripe is busy; WALK_BUSY: that was the first, nobody was visited. */
must_check enum access_walk access_scan(struct access *access, unsigned db, uint64_t *cursor, uint64_t want,
                                        const struct access_visitor *visitor, uint32_t *busy);
/* Every key but expired ones, which stay; the gate is held. */
void access_each(struct access *access, unsigned db, const struct access_visitor *visitor);

/* Objects that background threads are to free, and have freed; any thread. */
void access_background_frees(uint64_t *pending, uint64_t *done);

/* --- eviction --- */

/* Deletes a key to make room; its stripe is held, no command runs. Journaled at once, as UNLINK or DEL. */
void access_evict(struct access *access, unsigned db, const struct entry *entry, bool unlink);

/* --- active expiry --- */

/* Is a key of this stripe due? Looks without the lock. */
bool access_has_due(const struct access *access, uint32_t stripe, unsigned db);
/* Deletes up to `most` keys that are due; the stripe is held. Returns how many records it looked at. */
unsigned access_expire_due(struct access *access, uint32_t stripe, unsigned db, unsigned most);
