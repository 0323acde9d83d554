/* Access to keys. An access says which stripes its thread holds, or that it owns the gate. Every function here asserts
 * that the key's stripe is among them. One command, EXEC or script has one access and sees one time.
 *
 *     struct entry *entry = access_find(access, db, key);
 *     ...
 *     struct change change;
 *     change_begin(&change, access, db, key);
 *     change_put_string(&change, value, EXPIRE_NEVER);
 *     change_end(&change, EVENT_STRING, "set");
 *
 * Every change passes change_begin and change_end. They are the single place for observers (tracking, events,
 * snapshots), watchers, version stamps and dirty counts. Pointers to entries are valid until the next change of that
 * key or until the stripes are released. All of it runs in the thread that holds the stripes. */
#pragma once

#include "base/blob.h"
#include "base/buffer.h"
#include "store/entry.h"
#include "store/store.h"

struct access_garbage;
struct changed;
struct effects;
struct registered_key;
struct undo_log;

/* A key of a command, with its hash. */
struct key {
    struct slice name;
    uint64_t hash;
};

static inline struct key key_make(struct slice name)
{
    return (struct key){name, hash_bytes(name.data, name.size)};
}

/* Where a key was found. It is still there while its stripe's `moves` is the same, also in another entry. */
struct access_spot {
    uint64_t *slot; /* NULL: it was missing */
    uint32_t moves;
};

struct access {
    struct store *store;
    struct store_counters *counters; /* the counters of this thread */
    struct effects *effects;         /* records deletions by expiry and eviction; NULL: the journal is off */
    struct changed *changed;         /* const; NULL: what changes here gets no version. Used only with `effects` */
    /* Call it before stripes are released in the middle of a command: journals the effects so far, serves clients that
     * wait for changed keys, and informs listeners. */
    void (*settle)(struct access *access);
    int64_t now_ms;    /* wall clock, read once */
    int64_t due_ms;    /* keys with an earlier deadline are expired: now_ms, or the least time after access_follow */
    uint32_t clock;    /* the clock of a new entry; without counts_uses also that of an entry that is read */
    bool counts_uses;  /* clocks are those of lru_lfu.h, otherwise seconds */
    bool exclusive;    /* the gate is owned: all stripes count as held */
    bool is_script;    /* stripes may be held for long: large values are freed at once */
    bool no_touch;     /* CLIENT NO-TOUCH: reads do not change the clock */
    bool has_noted;    /* observers have noted something for listeners: call settle before stripes are released */
    bool is_silent;    /* no keyspace events: what runs again was told of when it ran first */
    bool unasked;      /* the current change is an expiry or eviction, not the work of a command */
    uint64_t dirty;    /* number of changes so far */
    uint32_t lock_id;  /* spinlock_self_id() of this thread */
    uint64_t wait_bit; /* const: this thread's bit in wait masks; 0: it never waits */
    struct access_garbage *garbage; /* large values, to be freed after the stripes are released: lazyfree.h */
    struct registered_key *ready, *ready_last; /* changed keys for which clients wait, in order: waiters.h */
    /* The long string that the command has put last: its effect refers to the blob. Only with `effects` or with
     * `notes_stored`, until access_forget_stored. */
    struct access_stored {
        struct slice text; /* as it was given */
        struct blob *blob; /* with a reference of its own; NULL: none */
    } stored;
    bool notes_stored;
    /* What takes the changes back, key by key, the last one first: undo.h. */
    struct access_undo {
        struct undo_log *newest;
        struct undo_log *spare; /* for the next recording */
        struct table by_key;    /* of many */
        uint32_t count, spare_count;
        bool is_on;
        bool is_held; /* the current change removes what has expired, and counts only if the key is changed, too */
    } undo;
    /* The last lookup, so that a change after a find does not look the key up again. */
    const struct key *found_key;
    uint64_t *found_slot;
    uint64_t found_hash; /* of the key, as another one may stand in the same memory by now */
    unsigned found_db;
    /* The key that was looked at or changed last, also by a command before; kept by access_look, and by changes that
     * are observed. */
    struct access_recent {
        uint64_t hash;
        struct access_spot spot;
        unsigned db;
    } recent;
};

void access_init(struct access *access, struct store *store, struct store_counters *counters);
/* Begins a command: sets the time and the dirty count anew. */
void access_begin(struct access *access, int64_t now_ms, bool exclusive);
/* After each command; before that its effects may use the blob of a string that it has put, see effects.h. */
void access_forget_stored_slow(struct access *access);
static inline void access_forget_stored(struct access *access)
{
    if (UNLIKELY(access->stored.blob != NULL))
        access_forget_stored_slow(access);
}
/* The blob in which the command has put this text; NULL: none. Not acquired. */
static inline struct blob *access_stored_blob(const struct access *access, struct slice text)
{
    const struct access_stored *stored = &access->stored;

    return stored->blob != NULL && stored->text.data == text.data && stored->text.size == text.size ? stored->blob
                                                                                                    : NULL;
}
/* Keeps the held stripes for a further command, at a later time. */
void access_advance(struct access *access, int64_t now_ms);
/* Call it after access_begin, for commands from a file or a master: no key expires until such a command deletes it, and
 * deadlines in the past are set like others. */
static inline void access_follow(struct access *access)
{
    assert(access->due_ms == access->now_ms);
    access->due_ms = INT64_MIN;
}
static inline bool access_follows(const struct access *access)
{
    return access->due_ms == INT64_MIN;
}

/* --- locking; in ascending order, all or none --- */

static inline uint32_t access_stripe_of(const struct access *access, const struct key *key)
{
    return (uint32_t)key->hash & access->store->stripe_mask;
}
/* The stripe numbers must be ascending and unique. False: none is held, since a bounded spin failed; *busy is the
 * stripe that was held by another thread. */
must_check bool access_lock(struct access *access, const uint32_t *stripes, uint32_t count, uint32_t *busy);
/* Releases the stripes, wakes the threads that wait for one of them (stripe_wait), then frees large values. */
void access_unlock(struct access *access, const uint32_t *stripes, uint32_t count) NO_THREAD_SAFETY_ANALYSIS;
static inline bool access_holds(const struct access *access, uint32_t stripe)
{
    return access->exclusive ||
           atomic_load_explicit(&access->store->stripes[stripe].lock.holder, memory_order_relaxed) == access->lock_id;
}
static inline void access_assert_holds(const struct access *access, uint32_t stripe)
{
    assert(access_holds(access, stripe));
}
/* Asserts that no stripe and no other lock is held, or that the gate is owned. */
static inline void access_assert_none_held(const struct access *access)
{
    assert(access->exclusive || spinlock_held_count == 0);
}

/* --- lookups; NULL: no such key (an expired key is deleted first) --- */

/* For reading: counts hits and misses, touches the clock. */
struct entry *access_read(struct access *access, unsigned db, const struct key *key);
/* Counts hits and misses, does not touch the clock. */
struct entry *access_peek(struct access *access, unsigned db, const struct key *key);
/* For changing: touches the clock only. */
struct entry *access_find(struct access *access, unsigned db, const struct key *key);
struct entry *access_probe(struct access *access, unsigned db, const struct key *key); /* neither counts nor touches */
/* What has expired of the key goes, and is recorded: for operations of peers, which find it gone on every node, also
 * where they change nothing else. */
void access_expire_for_good(struct access *access, unsigned db, const struct key *key);
/* Returns the entry even if it has expired and was not deleted yet: for DEBUG. */
const struct entry *access_look(struct access *access, unsigned db, const struct key *key);

/* --- changes --- */

struct change {
    struct access *access;
    const struct key *key;
    struct stripe *stripe;
    struct stripe_db *keys;
    uint64_t *slot;        /* NULL: the key does not exist */
    struct undo_log *undo; /* NULL: it is not recorded (undo.h) */
    unsigned db;
    bool is_hidden;   /* there is an entry, but it has expired: it goes when another one takes its place */
    bool existed;     /* the key existed before; set only if changes are observed */
    uint8_t type;     /* enum value_type: its type before; likewise, and only if it existed */
    uint64_t version; /* its version before; likewise */
};

void change_begin(struct change *change, struct access *access, unsigned db, const struct key *key);
/* Informs watchers, waiters and observers, and counts. event NULL: no keyspace event, for example if the caller sends
 * it. With EVENT_REPLACES in the class, a value that was there was overwritten, which has events of its own. */
void change_end(struct change *change, enum event_class event_class, const char *event);
/* Instead of change_end, if nothing was changed: the value has its old bytes (its encoding may differ), and nobody is
 * informed. */
void change_abandon(struct change *change);
/* Instead of change_end, where data is loaded or taken back: snapshots that run have to know what is new, and nobody
 * else is informed. */
void change_end_untold(struct change *change);
/* Sends a further event for a changed key (SET with EX: "set", then "expire"). */
void access_event(struct access *access, unsigned db, const struct key *key, enum event_class event_class,
                  const char *event);
/* The fields that an event of EVENT_HASH just sent is about: `count` of them, every `step`th of these. */
void access_event_fields_slow(const struct access *access, unsigned db, const struct key *key, const char *event,
                              const struct slice *fields, uint32_t count, uint32_t step);
static inline bool access_tells_fields(const struct access *access)
{
    return UNLIKELY((store_observed(access->store) & EVENT_FIELDS) != 0);
}
static inline void access_event_fields(const struct access *access, unsigned db, const struct key *key,
                                       const char *event, const struct slice *fields, uint32_t count, uint32_t step)
{
    if (access_tells_fields(access))
        access_event_fields_slow(access, db, key, event, fields, count, step);
}

static inline struct entry *change_entry(const struct change *change)
{
    return change->slot != NULL ? table_slot_item(change->slot) : NULL;
}

/* Sets the key's new value and frees the old one. expire_ms: EXPIRE_NEVER, EXPIRE_KEEP or a wall clock time. Strings
 * that are canonical integers are stored as numbers. */
void change_put_string(struct change *change, struct slice value, int64_t expire_ms);
void change_put_blob(struct change *change, struct blob *blob, int64_t expire_ms); /* acquires a reference of its own */
void change_put_int(struct change *change, int64_t number, int64_t expire_ms);
void change_add_int(struct change *change, int64_t amount); /* the key is a number, and stays one: see entry_is_int */
void change_put_value(struct change *change, enum value_type type, struct value value,
                      int64_t expire_ms);                          /* any type but string; takes the value over */
void change_keep_value(struct change *change, struct value value); /* after the key's value was changed in place */
/* Returns the bytes of the string (absent: empty) for writing, resized to `size`: old bytes are kept, new bytes are
 * zero. */
char *change_edit_string(struct change *change, size_t size);
/* The same, if only the `written` bytes from `offset` on will be written. */
char *change_edit_part(struct change *change, size_t size, size_t offset, size_t written);
void change_edit_also(struct change *change, size_t offset, size_t written); /* these bytes will be written, too */
/* Moves or copies the value of another entry, that of `from` or any other one. */
void change_move_value(struct change *to, struct change *from, int64_t expire_ms); /* deletes the key of `from` */
void change_copy_value(struct change *to, const struct entry *from, int64_t expire_ms);
void change_expire(struct change *change, int64_t expire_ms); /* the key exists; EXPIRE_NEVER removes its deadline */
/* The key exists. 0: it has no version any more, and needs no memory for it. No change of data: end with change_abandon
 * if it is the only one. */
void change_set_version(struct change *change, uint64_t version);
void change_find(struct change *change, struct access *access, unsigned db, const struct key *key); /* for that alone */
/* As change_find, for a key that was there when it was changed. The stripe was held since then. */
void change_find_at(struct change *change, struct access *access, unsigned db, const struct key *key,
                    const struct access_spot *spot);
/* The entry that change_find_at finds; NULL: there is none. */
static inline struct entry *access_entry_at(struct access *access, unsigned db, const struct key *key,
                                            const struct access_spot *spot)
{
    struct change change;

    access_assert_holds(access, access_stripe_of(access, key));
    if (LIKELY(spot->moves == access->store->stripes[access_stripe_of(access, key)].moves))
        return spot->slot != NULL ? table_slot_item(spot->slot) : NULL;
    change_find(&change, access, db, key);
    return change_entry(&change);
}
struct access_spot change_spot(const struct change *change); /* before or behind change_end */
void change_delete(struct change *change);                   /* the key exists */
/* The key exists; change_delete uses FREE_SERVER_DEL. */
void change_delete_for(struct change *change, enum free_reason reason);

/* Deletes a key as DEL does, with its event. False: the key did not exist. */
bool access_delete(struct access *access, unsigned db, const struct key *key);
bool access_delete_for(struct access *access, unsigned db, const struct key *key, enum free_reason reason);

/* --- whole databases, with the gate owned --- */

void access_flush_db(struct access *access, unsigned db, bool background); /* informs watchers; sends no event */
void access_flush_all(struct access *access, bool background);             /* the same for all databases */
void access_swap_db(struct access *access, unsigned a, unsigned b);
/* Exchanges all keys with those of another store of the same kind (store_create_like), which nobody else uses. Informs
 * watchers, and clients that wait for keys; sends no event. */
void access_exchange(struct access *access, struct store *other);

/* Keys were loaded (rdb_load.h), of which nobody was told: informs watchers of keys that exist now, and all clients
 * that wait for keys. */
void access_note_loaded(struct access *access);

/* --- iterating --- */

enum access_walk {
    WALK_DONE,
    WALK_NOTHING, /* there are no keys */
    WALK_BUSY     /* nothing was done: wait for stripe *busy */
};

/* Appends a random key of the database to `name`. Prefers stripes that are free, and tries a few. It locks by itself:
 * no stripe is held, or all. */
must_check enum access_walk access_random_key(struct access *access, unsigned db, struct buffer *name, uint32_t *busy);
/* Callbacks of an iteration: keys that are wanted are visited, or deleted if they have expired. */
struct access_visitor {
    bool (*wanted)(const struct entry *entry, void *context); /* NULL: every key */
    void (*visit)(struct access *access, unsigned db, const struct entry *entry, void *context);
    /* Before the stripe is released (of access_each: before the next one), so that `visit` may keep entries until then;
     * may be NULL. */
    void (*leave)(void *context);
    void *context;
    bool sees_expired; /* visits expired keys, too, and all keys with their expired members; deletes nothing */
};
/* Visits about `want` keys from `*cursor` on, stripe by stripe, and sets the cursor to the next position (0: the end).
 * Ends early at a busy stripe; WALK_BUSY: the first stripe was busy, and no key was visited. */
must_check enum access_walk access_scan(struct access *access, unsigned db, uint64_t *cursor, uint64_t want,
                                        const struct access_visitor *visitor, uint32_t *busy);
/* Where a scan meets the entry: its cursor was not above this before, and will be above it after. A scan that is
 * continued may meet entries again; those are below its cursor. */
uint64_t access_scan_place(const struct access *access, const struct entry *entry);
/* Visits every key except expired ones (unless the visitor sees them), which stay; the gate is owned. */
void access_each(struct access *access, unsigned db, const struct access_visitor *visitor);

/* Numbers of objects that background threads have to free, and have freed; any thread. */
void access_background_frees(uint64_t *pending, uint64_t *done);

/* --- eviction --- */

/* Deletes a key to free memory; its stripe is held, and no command runs. Journals it at once, as UNLINK or DEL. */
void access_evict(struct access *access, unsigned db, const struct entry *entry, bool unlink);

/* True if a key of this type has members with deadlines. Visits only keys that have or had such. Whoever calls is alone
 * with the data. */
bool access_has_member_deadlines(const struct access *access, enum value_type type);
/* True if there is a stream, or was one since the last access_flush_all. Whoever calls is alone with the data. */
bool access_had_streams(const struct access *access);

/* --- active expiry --- */

/* True if a key of this stripe is due. Reads without the lock. */
bool access_has_due(const struct access *access, uint32_t stripe, unsigned db);
/* Deletes up to `most` keys that are due; the stripe is held. Returns how many records it looked at. */
unsigned access_expire_due(struct access *access, uint32_t stripe, unsigned db, unsigned most);
