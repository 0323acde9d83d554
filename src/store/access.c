#include "store/access.h"

#include "base/gate.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/random.h"
#include "store/access_at.h"
#include "store/access_priv.h"
#include "store/changed.h"
#include "store/lazyfree.h"
#include "store/effects.h"
#include "store/entry_copy.h"
#include "store/expiry.h"
#include "store/jobs.h"
#include "store/journal_blob.h"
#include "store/lookup.h"
#include "store/subkey_ttl_priv.h"
#include "store/lru_lfu.h"
#include "store/snapshot_large.h"
#include "store/snapshot_live.h"
#include "store/snapshot_string.h"
#include "store/undo_priv.h"
#include "store/waiters.h"
#include "store/watch.h"

#include <stdlib.h>

void access_init(struct access *access, struct store *store, struct store_counters *counters)
{
    *access = (struct access){.store = store, .counters = counters};
}

void access_begin(struct access *access, int64_t now_ms, bool exclusive)
{
    access->now_ms = now_ms;
    access->due_ms = now_ms;
    access->counts_uses = atomic_load_explicit(&access->store->counts_uses, memory_order_relaxed);
    access->clock = UNLIKELY(access->counts_uses) ? lru_lfu_fresh(now_ms) : (uint32_t)(now_ms / 1000) & 0xFFFFFF;
    access->exclusive = exclusive;
    access->dirty = 0;
    access->lock_id = spinlock_self_id();
    access->found_key = NULL;
    assert(!exclusive || gate_is_alone());
}

void access_advance(struct access *access, int64_t now_ms)
{
    assert(access->lock_id == spinlock_self);
    access->now_ms = now_ms;
    if (!access_follows(access))
        access->due_ms = now_ms;
    access->clock = UNLIKELY(access->counts_uses) ? lru_lfu_fresh(now_ms) : (uint32_t)(now_ms / 1000) & 0xFFFFFF;
}

/* ------------------------------------------------------------------------------------------------------ locking -- */

static NOINLINE bool lock_each(struct access *access, const uint32_t *stripes, uint32_t count, uint32_t *busy)
{
    struct store *store = access->store;

    for (uint32_t i = 0; i < count; i++) {
        struct stripe *stripe = &store->stripes[stripes[i]];

        debug_assert(i == 0 || stripes[i - 1] < stripes[i]);
        if (LIKELY(spinlock_try(&stripe->lock)))
            continue;
        /* A thread that waits for the stripe knows that it takes long. */
        if ((atomic_load_explicit(&stripe->wait_mask, memory_order_relaxed) & access->wait_bit) == 0 &&
            spinlock_acquire_bounded(&stripe->lock, ACCESS_LOCK_SPINS))
            continue;
        *busy = stripes[i];
        access_unlock(access, stripes, i);
        return false;
    }
    return true;
}

bool access_lock(struct access *access, const uint32_t *stripes, uint32_t count, uint32_t *busy)
{
    if (LIKELY(count == 1) && LIKELY(spinlock_try(&access->store->stripes[stripes[0]].lock))) /* most commands */
        return true;
    return lock_each(access, stripes, count, busy);
}

void access_unlock(struct access *access, const uint32_t *stripes, uint32_t count)
{
    struct store *store = access->store;
    uint64_t waiters = 0;

    if (LIKELY(count == 1)) { /* most commands */
        struct stripe *stripe = &store->stripes[stripes[0]];

        spinlock_release(&stripe->lock);
        fence_light();
        if (LIKELY(atomic_load_explicit(&stripe->wait_mask, memory_order_relaxed) == 0 && access->garbage == NULL))
            return;
    } else {
        for (uint32_t i = count; i-- > 0;)
            spinlock_release(&store->stripes[stripes[i]].lock);
        fence_light();
    }
    for (uint32_t i = 0; i < count; i++)
        waiters |= stripe_take_waiters(&store->stripes[stripes[i]]);
    if (UNLIKELY(waiters != 0) && store->wake != NULL)
        store->wake(waiters);
    lazyfree_after_release(access);
}

static inline bool holds(const struct access *access, const struct stripe *stripe)
{
    return access->exclusive || atomic_load_explicit(&stripe->lock.holder, memory_order_relaxed) == access->lock_id;
}

/* ------------------------------------------------------------------------------------------------------ entries -- */

static size_t entry_size(const struct entry *entry)
{
    return sizeof(*entry) + entry_key_offset(entry) + entry_key(entry).size +
           ((entry->flags & ENTRY_WORD) != 0 ? 0 : entry->inline_size);
}

/* An entry with room for the words in `flags` and an inline value; the value is the caller's to fill in. */
struct entry *entry_create(struct slice key, unsigned flags, size_t inline_size, int64_t expire_ms, uint32_t clock)
{
    struct entry *entry;
    size_t offset;

    if (expire_ms != EXPIRE_NEVER)
        flags |= ENTRY_EXPIRES;
    if (key.size > ENTRY_SHORT_KEY_BYTES)
        flags |= ENTRY_LONG_KEY;
    offset = entry_words_bytes(flags);
    entry = mem_alloc(sizeof(*entry) + offset + key.size + inline_size);
    entry->type = TYPE_STRING;
    entry->encoding = ENCODING_RAW;
    entry->clock = clock & 0xFFFFFF;
    entry->inline_size = (uint16_t)inline_size;
    entry->flags = (uint8_t)flags;
    entry->key_size = (uint8_t)MIN(key.size, (size_t)ENTRY_SHORT_KEY_BYTES);
    if ((flags & ENTRY_EXPIRES) != 0)
        entry_word_store(entry, ENTRY_EXPIRES, (uint64_t)expire_ms);
    if ((flags & ENTRY_LONG_KEY) != 0)
        entry_word_store(entry, ENTRY_LONG_KEY, key.size);
    if (key.size != 0)
        memcpy(entry->rest + offset, key.data, key.size);
    return entry;
}

static char *entry_inline(struct entry *entry)
{
    return entry->rest + entry_key_offset(entry) + entry_key(entry).size;
}

size_t entry_copy_bytes(const struct entry *entry)
{
    return entry_size(entry);
}

struct entry *entry_clone(const struct entry *entry)
{
    const size_t size = entry_size(entry);

    return memcpy(mem_alloc(size), entry, size);
}

void entry_free(struct entry *entry)
{
    mem_free_sized(entry, entry_size(entry));
}

uint64_t lookup_entry_hash(const void *item)
{
    struct slice key = entry_key(item);

    return hash_bytes(key.data, key.size);
}

/* ------------------------------------------------------------------------------------------------------- change -- */

struct expiry *deadlines_use(struct stripe_db *keys)
{
    struct expiry *deadlines = atomic_load_explicit(&keys->deadlines, memory_order_relaxed);

    if (deadlines == NULL) {
        deadlines = expiry_create();
        atomic_store_explicit(&keys->deadlines, deadlines, memory_order_release);
    }
    return deadlines;
}

static inline void deadline_changed(const struct change *change, int64_t before_ms, int64_t after_ms)
{
    if (UNLIKELY(before_ms != after_ms))
        expiry_changed(deadlines_use(change->keys), change->key->hash, before_ms, after_ms, &change->keys->keys);
}

static NOINLINE bool recent_is(const struct access *access, const struct stripe *stripe, unsigned db,
                               const struct key *key)
{
    const struct access_recent *recent = &access->recent;

    return recent->hash == key->hash && recent->spot.slot != NULL && recent->spot.moves == stripe->moves &&
           recent->db == db && lookup_match(table_slot_item(recent->spot.slot), key);
}

static uint64_t *find_slot(struct access *access, unsigned db, const struct key *key)
{
    struct stripe *stripe = &access->store->stripes[access_stripe_of(access, key)];
    const struct stripe_db *keys;
    uint64_t *slot;

    assert(holds(access, stripe));
    if (UNLIKELY(access->found_key == key) && access->found_hash == key->hash && access->found_db == db)
        return access->found_slot; /* access_find_at */
    if (UNLIKELY(access->recent.hash == key->hash) && recent_is(access, stripe, db, key)) {
        slot = access->recent.spot.slot;
    } else {
        keys = stripe_db(stripe, db);
        slot = keys != NULL ? table_find_slot(&keys->keys, key->hash, lookup_match, key) : NULL;
    }
    access->found_slot = slot;
    access->found_hash = key->hash;
    access->found_key = key;
    access->found_db = db;
    return slot;
}

/* Of an operation of a peer: whoever places it tells what came of it. */
static inline bool tells_nobody(const struct access *access, uint32_t observed)
{
    return observed == OBSERVE_STAMPS && access->changed == NULL;
}

/* What observers, and those who stamp, ask for later. */
static inline void remember_before(struct change *change)
{
    const struct entry *entry = change->slot != NULL ? table_slot_item(change->slot) : NULL;

    change->existed = entry != NULL;
    change->type = entry != NULL ? (uint8_t)entry->type : 0;
    change->version = entry != NULL ? entry_version(entry) : 0;
}

static COLD void observers_before(struct change *change)
{
    assert(holds(change->access, change->stripe));
    for (struct store_observer *observer = change->access->store->observers; observer != NULL;
         observer = observer->next) {
        if (observer->before != NULL)
            observer->before(observer, change);
    }
}

static NOINLINE COLD void observers_event(const struct access *access, unsigned db, const struct key *key,
                                          enum event_class event_class, const char *event)
{
    if ((store_observed(access->store) & event_class) == 0 || access->is_silent)
        return;
    for (struct store_observer *observer = access->store->observers; observer != NULL; observer = observer->next) {
        if (observer->event != NULL)
            observer->event(observer, access, db, key, event_class, event);
    }
}

static ALWAYS_INLINE struct access_spot spot_of(const struct change *change)
{
    const uint32_t moves = change->stripe->moves;

    assert(holds(change->access, change->stripe));
    return (struct access_spot){change->slot, UNLIKELY(change->is_hidden) ? moves - 1 : moves};
}

struct access_spot change_spot(const struct change *change)
{
    return spot_of(change);
}

/* It goes to the journal. */
static bool is_to_be_stamped(const struct access *access)
{
    return (store_observed(access->store) & OBSERVE_STAMPS) != 0 && access->effects != NULL &&
           access->changed != NULL && !access->undo.is_held;
}

static inline struct access_spot note_recent(const struct change *change)
{
    const struct access_spot spot = spot_of(change);

    change->access->recent = (struct access_recent){change->key->hash, spot, change->db};
    return spot;
}

static ALWAYS_INLINE void remember_after(const struct change *change)
{
    const struct access_spot spot = note_recent(change);

    if (is_to_be_stamped(change->access))
        changed_note(change->access->changed, change, spot);
}

COLD void access_event_fields_slow(const struct access *access, unsigned db, const struct key *key, const char *event,
                                   const struct slice *fields, uint32_t count, uint32_t step)
{
    if (access->is_silent || count == 0)
        return;
    for (struct store_observer *observer = access->store->observers; observer != NULL; observer = observer->next) {
        if (observer->fields != NULL)
            observer->fields(observer, access, db, key, event, fields, count, step);
    }
}

/* Another value is there now, which may be of another type. */
static NOINLINE COLD void events_of_replacement(const struct change *change)
{
    const struct entry *entry = change_entry(change);

    if (!change->existed || entry == NULL)
        return;
    observers_event(change->access, change->db, change->key, EVENT_OVERWRITTEN, "overwritten");
    if (entry->type != change->type)
        observers_event(change->access, change->db, change->key, EVENT_TYPE_CHANGED, "type_changed");
}

static COLD void observers_after(const struct change *change, enum event_class event_class, const char *event)
{
    assert(holds(change->access, change->stripe));
    for (struct store_observer *observer = change->access->store->observers; observer != NULL;
         observer = observer->next) {
        if (observer->after != NULL)
            observer->after(observer, change);
    }
    /* Events are switched with the gate owned: a bit that is set here was set in change_begin. */
    if ((store_observed(change->access->store) & EVENT_NEW) != 0 && !change->existed && change->slot != NULL)
        observers_event(change->access, change->db, change->key, EVENT_NEW, "new");
    if ((event_class & EVENT_REPLACES) != 0)
        events_of_replacement(change);
    if (event != NULL)
        observers_event(change->access, change->db, change->key, event_class & ~EVENT_REPLACES, event);
}

/* The key counts as missing. What looks for expired keys sees them. */
static NOINLINE COLD void hide_expired(struct change *change)
{
    const struct access *access = change->access;
    const struct entry *entry = table_slot_item(change->slot);

    if (!access_keeps_active(access) || access->unasked || !access_is_gone(access, entry))
        return;
    change->is_hidden = true;
    change->slot = NULL;
}

void change_begin(struct change *change, struct access *access, unsigned db, const struct key *key)
{
    uint32_t observed;

    change->access = access;
    change->key = key;
    change->db = db;
    change->stripe = &access->store->stripes[access_stripe_of(access, key)];
    change->is_hidden = false;
    if (access->found_key == key && access->found_hash == key->hash && access->found_db == db) {
        change->slot = access->found_slot;
    } else {
        change->slot = find_slot(access, db, key);
        if (change->slot != NULL && UNLIKELY(lookup_is_due(access, table_slot_item(change->slot))))
            hide_expired(change);
    }
    access->found_key = NULL; /* the slot may move from here on */
    change->keys = stripe_db_use(access->store, change->stripe, db);
    change->undo = NULL;
    if (UNLIKELY(access->undo.is_on))
        undo_note_begin(change);
    observed = store_observed(access->store);
    if (LIKELY(observed == 0))
        return;
    if (UNLIKELY((observed & OBSERVE_SNAPSHOT) != 0)) {
        live_note_before(change);
        observed &= ~(uint32_t)OBSERVE_SNAPSHOT;
    }
    if (observed != 0 && !tells_nobody(access, observed)) {
        remember_before(change);
        if (observed != OBSERVE_STAMPS) /* somebody else */
            observers_before(change);
    }
}

void change_end(struct change *change, enum event_class event_class, const char *event)
{
    struct access *access = change->access;
    uint32_t observed = store_observed(access->store);

    access->dirty++;
    access->found_key = NULL;
    if (UNLIKELY(change->stripe->registries != NULL)) {
        watch_touch_key(change->stripe, change->db, change->key, change->slot != NULL);
        waiters_touch_key(access, change->stripe, change->db, change->key);
    }
    if (UNLIKELY(change->undo != NULL))
        undo_note_end(change, true);
    if (LIKELY(observed == 0))
        return;
    if (UNLIKELY((observed & OBSERVE_SNAPSHOT) != 0)) {
        live_note_after(change);
        observed &= ~(uint32_t)OBSERVE_SNAPSHOT;
        if (observed == 0)
            return;
    }
    if (tells_nobody(access, observed)) {
        (void)note_recent(change);
        return;
    }
    remember_after(change);
    if (observed != OBSERVE_STAMPS)
        observers_after(change, event_class, event);
}

void change_abandon(struct change *change)
{
    change->access->found_key = NULL;
    if (UNLIKELY(change->undo != NULL))
        undo_note_end(change, false);
}

void change_end_untold(struct change *change)
{
    if (UNLIKELY((store_observed(change->access->store) & OBSERVE_SNAPSHOT) != 0))
        live_note_after(change);
    change_abandon(change);
}

void access_event(struct access *access, unsigned db, const struct key *key, enum event_class event_class,
                  const char *event)
{
    if (UNLIKELY(store_observed(access->store) != 0))
        observers_event(access, db, key, event_class, event);
}

/* Puts a new entry in the place of the old one (whose value has been dealt with), or into the table. */
static void change_put_entry(struct change *change, struct entry *entry)
{
    if (change->slot != NULL) {
        entry_free(table_slot_item(change->slot));
        table_slot_replace(change->slot, entry);
    } else {
        if (UNLIKELY(change->is_hidden)) {
            change->is_hidden = false;
            access_let_go(change->access, change->db, change->key, lookup_in_table(&change->keys->keys, change->key));
        }
        change->stripe->moves++;
        change->slot = table_insert(&change->keys->keys, change->key->hash, entry, lookup_entry_hash);
    }
}

static int64_t expire_resolve(const struct change *change, int64_t *before_ms, int64_t expire_ms)
{
    *before_ms = change->slot != NULL ? entry_expire_ms(table_slot_item(change->slot)) : EXPIRE_NEVER;
    return expire_ms == EXPIRE_KEEP ? *before_ms : expire_ms;
}

/* Of the entry in the place of this one, or of a new one: its version will come. */
static inline unsigned version_flag(const struct store *store, const struct entry *entry)
{
    if (UNLIKELY((store_observed(store) & OBSERVE_STAMPS) != 0))
        return ENTRY_VERSIONED;
    return entry != NULL ? entry->flags & ENTRY_VERSIONED : 0;
}

/* For a new entry in the place of `old`, made with its version_flag. */
static inline void copy_version(struct entry *entry, const struct entry *old)
{
    if (UNLIKELY((entry->flags & ENTRY_VERSIONED) != 0))
        entry_word_store(entry, ENTRY_VERSIONED, old != NULL ? entry_version(old) : 0);
}

/* Of the last use; a count of uses is left as it is. */
static inline void note_second(const struct access *access, struct entry *entry)
{
    if (LIKELY(!access->counts_uses))
        entry->clock = access->clock & 0xFFFFFF;
}

/* The old value goes and an entry of the wanted shape takes its place, with the key's version. A rewrite that changes
 * neither the words nor the allocator's size class happens in place: no allocation in the steady state. */
static NOINLINE struct entry *reshape(struct change *change, unsigned flags, size_t inline_size, int64_t expire_ms)
{
    struct entry *old = change_entry(change), *entry;
    int64_t before_ms;

    expire_ms = expire_resolve(change, &before_ms, expire_ms);
    if (expire_ms != EXPIRE_NEVER)
        flags |= ENTRY_EXPIRES;
    if (old != NULL) {
        unsigned old_words = old->flags & (ENTRY_EXPIRES | ENTRY_WORD);

        if (UNLIKELY(change->undo != NULL))
            undo_note_loss(change);
        if (old->type != TYPE_STRING || (old->flags & ENTRY_WORD) != 0) {
            if (UNLIKELY((old->flags & ENTRY_MEMBERS) != 0))
                subkey_ttl_unlist(change, old);
            if (UNLIKELY(old->type == TYPE_CRON))
                jobs_unlist(change, old);
            lazyfree_of_value(change->access, old, FREE_SERVER_DEL);
        }
        if (old_words == flags) {
            size_t size = entry_size(old);

            if (old->inline_size == inline_size || (flags & ENTRY_WORD) != 0 ||
                mem_good_size(size) == mem_good_size(size - old->inline_size + inline_size)) {
                old->inline_size = (uint16_t)inline_size;
                old->type = TYPE_STRING;
                note_second(change->access, old);
                if ((flags & ENTRY_EXPIRES) != 0)
                    entry_word_store(old, ENTRY_EXPIRES, (uint64_t)expire_ms);
                deadline_changed(change, before_ms, expire_ms);
                return old;
            }
        }
    }
    entry = entry_create(change->key->name, flags | version_flag(change->access->store, old), inline_size, expire_ms,
                         old != NULL && change->access->counts_uses ? old->clock : change->access->clock);
    copy_version(entry, old);
    change_put_entry(change, entry);
    deadline_changed(change, before_ms, expire_ms);
    return entry;
}

/* The same, at hand for a short text in the place of one as long, neither of which has a deadline. */
static inline struct entry *change_reshape(struct change *change, unsigned flags, size_t inline_size, int64_t expire_ms)
{
    struct entry *old = change_entry(change);

    if (LIKELY(old != NULL) && old->inline_size == inline_size && flags == 0 && old->type == TYPE_STRING &&
        (old->flags & (ENTRY_EXPIRES | ENTRY_WORD)) == 0 && (expire_ms == EXPIRE_NEVER || expire_ms == EXPIRE_KEEP) &&
        change->undo == NULL) {
        note_second(change->access, old);
        return old;
    }
    return reshape(change, flags, inline_size, expire_ms);
}

void change_put_int(struct change *change, int64_t number, int64_t expire_ms)
{
    struct entry *entry = change_reshape(change, ENTRY_WORD, 0, expire_ms);

    entry->encoding = ENCODING_INT;
    entry_word_store(entry, ENTRY_WORD, (uint64_t)number);
}

void change_add_int(struct change *change, int64_t amount)
{
    struct entry *entry = change_existing(change);

    assert(entry_is_int(entry));
    if (UNLIKELY(change->undo != NULL))
        undo_note_addition(change, amount);
    note_second(change->access, entry);
    entry_word_store(entry, ENTRY_WORD, (uint64_t)entry_int(entry) + (uint64_t)amount);
}

static void put_blob(struct change *change, struct blob *blob, int64_t expire_ms)
{
    struct entry *entry = change_reshape(change, ENTRY_WORD, 0, expire_ms);

    entry->encoding = ENCODING_RAW;
    entry_word_store(entry, ENTRY_WORD, (uint64_t)(uintptr_t)journal_blob_take_value(blob));
}

void change_put_blob(struct change *change, struct blob *blob, int64_t expire_ms)
{
    put_blob(change, blob_acquire(blob), expire_ms);
}

void access_forget_stored_slow(struct access *access)
{
    blob_release(&access->stored.blob);
    access->stored.text = SLICE_EMPTY;
}

static void put_long_text(struct change *change, struct slice value, int64_t expire_ms)
{
    struct access *access = change->access;
    struct blob *blob = blob_create_copy(value);

    put_blob(change, blob, expire_ms);
    if (value.size < EFFECT_BLOB_BYTES || (access->effects == NULL && !access->notes_stored))
        return;
    access_forget_stored(access);
    access->stored = (struct access_stored){value, blob_acquire(blob)};
}

static void put_text(struct change *change, struct slice value, int64_t expire_ms)
{
    struct entry *entry;

    if (value.size > ENTRY_INLINE_BYTES) {
        put_long_text(change, value, expire_ms);
        return;
    }
    entry = change_reshape(change, 0, value.size, expire_ms);
    entry->encoding = value.size <= ENTRY_EMBSTR_BYTES ? ENCODING_EMBSTR : ENCODING_RAW;
    if (value.size != 0)
        memcpy(entry_inline(entry), value.data, value.size);
}

void change_put_string(struct change *change, struct slice value, int64_t expire_ms)
{
    int64_t number;

    /* A number begins with a digit or a minus: most values are settled by their first byte. */
    if (value.size != 0 && value.size < ENTRY_INT_TEXT_BYTES && (value.data[0] <= '9') &&
        number_parse_i64(value, &number)) {
        change_put_int(change, number, expire_ms);
        return;
    }
    put_text(change, value, expire_ms);
}

static void note_stream(struct store *store)
{
    if (!atomic_load_explicit(&store->has_streams, memory_order_relaxed)) /* its cache line is read by all threads */
        atomic_store_explicit(&store->has_streams, true, memory_order_relaxed);
}

void change_put_value(struct change *change, enum value_type type, struct value value, int64_t expire_ms)
{
    struct entry *entry = change_reshape(change, ENTRY_WORD, 0, expire_ms);

    entry->type = (uint32_t)type & 15;
    entry->encoding = (uint32_t)value.encoding & 15;
    entry_word_store(entry, ENTRY_WORD, (uint64_t)(uintptr_t)value.data);
    if (UNLIKELY(type == TYPE_STREAM))
        note_stream(change->access->store);
    if (UNLIKELY(type == TYPE_CRON))
        jobs_list(change, entry);
}

void change_keep_value(struct change *change, struct value value)
{
    struct entry *entry = change_existing(change);

    assert(entry->type != TYPE_STRING);
    if (UNLIKELY(change->undo != NULL))
        undo_check_kept(change, value);
    if (UNLIKELY((entry->flags & ENTRY_MEMBERS) != 0))
        subkey_ttl_changed_in_place(change->access, entry);
    entry->encoding = (uint32_t)value.encoding & 15;
    entry_word_store(entry, ENTRY_WORD, (uint64_t)(uintptr_t)value.data);
}

/* The string's bytes in a blob of at least `size` bytes, where nobody else reads the `written` ones; an old blob keeps
 * its readers. */
static struct blob *edit_blob(struct store *store, struct blob *blob, size_t size, size_t offset, size_t written)
{
    const size_t capacity = size > blob->capacity ? MAX(size, MIN(size * 2, size + (1 << 20))) : blob->capacity;

    if (!blob_is_exclusive(blob) && long_string_edit(store, &blob, capacity, size, offset, written))
        return blob;
    if (blob_is_exclusive(blob)) { /* or a snapshot has left it now */
        if (blob->capacity < size) {
            bool grown = blob_try_grow(&blob, capacity);

            assert(grown); /* the caller has bounded the size */
        }
    } else {
        struct blob *copy = blob_create(MAX(size, blob->size));

        memcpy(copy->data, blob->data, blob->size);
        copy->size = blob->size;
        journal_blob_release_value(&blob);
        blob = journal_blob_take_value(copy);
    }
    return blob;
}

char *change_edit_string(struct change *change, size_t size)
{
    return change_edit_part(change, size, 0, size);
}

char *change_edit_part(struct change *change, size_t size, size_t offset, size_t written)
{
    struct entry *entry = change_entry(change);
    char scratch[ENTRY_INT_TEXT_BYTES];
    struct slice old;
    struct blob *blob;
    char *bytes;

    if (UNLIKELY(change->undo != NULL))
        undo_note_edit(change, offset, written, size);
    old = entry != NULL ? entry_string(entry, scratch) : SLICE_EMPTY;
    blob = entry != NULL ? entry_blob(entry) : NULL;
    if (blob != NULL) {
        blob = edit_blob(change->access->store, blob, size, offset, written);
        if (size > blob->size)
            memset(blob->data + blob->size, 0, size - blob->size);
        blob->size = size;
        entry_word_store(entry, ENTRY_WORD, (uint64_t)(uintptr_t)blob);
        return blob->data;
    }
    if (entry != NULL && (entry->flags & ENTRY_WORD) == 0 && old.size == size) {
        entry->encoding = ENCODING_RAW;
        return entry_inline(entry);
    }
    if (size > ENTRY_INLINE_BYTES) {
        blob = blob_create(size);
        if (old.size != 0)
            memcpy(blob->data, old.data, MIN(old.size, size));
        if (size > old.size)
            memset(blob->data + old.size, 0, size - old.size);
        put_blob(change, blob, EXPIRE_KEEP);
        return blob->data;
    } else {
        char copy[ENTRY_INLINE_BYTES];

        memset(copy, 0, size);
        if (old.size != 0)
            memcpy(copy, old.data, MIN(old.size, size));
        entry = change_reshape(change, 0, size, EXPIRE_KEEP);
        entry->encoding = ENCODING_RAW;
        bytes = entry_inline(entry);
        if (size != 0)
            memcpy(bytes, copy, size);
        return bytes;
    }
}

void change_edit_also(struct change *change, size_t offset, size_t written)
{
    struct blob *blob = entry_blob(change_existing(change));

    if (UNLIKELY(change->undo != NULL))
        undo_note_edit(change, offset, written, entry_string_size(change_existing(change)));
    if (blob != NULL && UNLIKELY(!blob_is_exclusive(blob))) { /* only snapshots have it, too */
        const bool is_edited = long_string_edit(change->access->store, &blob, 0, blob->size, offset, written);

        assert(is_edited || blob_is_exclusive(blob)); /* or they have left it now */
    }
}

/* Takes the entry out of the table without touching its value. */
static void change_unlink(struct change *change)
{
    struct entry *entry = change_existing(change);

    if (UNLIKELY(change->undo != NULL))
        undo_note_loss(change);
    deadline_changed(change, entry_expire_ms(entry), EXPIRE_NEVER);
    if (UNLIKELY((entry->flags & ENTRY_MEMBERS) != 0))
        subkey_ttl_unlist(change, entry);
    if (UNLIKELY(entry->type == TYPE_CRON))
        jobs_unlist(change, entry);
    change->stripe->moves++;
    table_remove(&change->keys->keys, change->key->hash, change->slot);
    change->slot = NULL;
}

void change_copy_value(struct change *to, const struct entry *from, int64_t expire_ms)
{
    const struct store *store = to->access->store;

    if (from->type != TYPE_STRING) {
        struct subkey_ttls *lifetimes = subkey_ttl_copy(from);

        change_put_value(to, from->type, store->types[from->type].ops->copy(entry_value(from)), expire_ms);
        if (UNLIKELY(lifetimes != NULL))
            subkey_ttl_attach(to, lifetimes);
    } else if (entry_is_int(from)) {
        change_put_int(to, entry_int(from), expire_ms);
    } else if (entry_blob(from) != NULL) {
        change_put_blob(to, entry_blob(from), expire_ms);
    } else {
        struct slice key = entry_key(from);
        enum value_encoding encoding = from->encoding;

        put_text(to, (struct slice){key.data + key.size, from->inline_size}, expire_ms);
        change_existing(to)->encoding = (uint32_t)encoding & 15;
    }
}

void change_move_value(struct change *to, struct change *from, int64_t expire_ms)
{
    struct entry *entry = change_existing(from);
    uint32_t clock = entry->clock;

    if (UNLIKELY(from->undo != NULL))
        undo_note_departure(from);
    large_move(from, to);
    /* Both keys may be in one table: take the old entry out first, then no slot of ours is stale. */
    change_unlink(from);
    if (to->slot != NULL)
        to->slot = lookup_slot_in_table(&to->keys->keys, to->key);
    if (entry->type != TYPE_STRING) {
        struct subkey_ttls *lifetimes = (entry->flags & ENTRY_MEMBERS) != 0 ? subkey_ttl_take(entry) : NULL;

        change_put_value(to, entry->type, entry_value(entry), expire_ms);
        if (UNLIKELY(lifetimes != NULL))
            subkey_ttl_attach(to, lifetimes);
    } else {
        change_copy_value(to, entry, expire_ms);
        lazyfree_of_value(to->access, entry, FREE_SERVER_DEL);
    }
    change_existing(to)->clock = clock;
    entry_free(entry);
}

/* The same key and value in an entry with the words that `flags` name; expire_ms is what its deadline's word holds. */
static struct entry *change_words(struct change *change, unsigned flags, int64_t expire_ms)
{
    const size_t inline_size = (flags & ENTRY_WORD) != 0 ? 0 : change_existing(change)->inline_size;
    struct entry *old = change_existing(change), *entry;

    flags |= old->flags & ENTRY_MARKS_MASK;
    entry = entry_create(entry_key(old), flags, inline_size, expire_ms, old->clock);
    entry->type = old->type;
    entry->encoding = old->encoding;
    copy_version(entry, old);
    if ((flags & ENTRY_WORD) != 0)
        entry_word_store(entry, ENTRY_WORD, entry_word_at(old, ENTRY_WORD));
    else if (inline_size != 0)
        memcpy(entry_inline(entry), entry_inline(old), inline_size);
    change_put_entry(change, entry);
    return entry;
}

struct entry *change_expire_word(struct change *change, int64_t expire_ms)
{
    struct entry *old = change_existing(change);

    if ((old->flags & ENTRY_EXPIRES) != 0 && expire_ms != EXPIRE_NEVER) {
        entry_word_store(old, ENTRY_EXPIRES, (uint64_t)expire_ms);
        return old;
    }
    if ((old->flags & ENTRY_EXPIRES) == 0 && expire_ms == EXPIRE_NEVER)
        return old;
    return change_words(change, old->flags & (ENTRY_VERSIONED | ENTRY_WORD), expire_ms);
}

void change_find(struct change *change, struct access *access, unsigned db, const struct key *key)
{
    *change = (struct change){.access = access, .key = key, .db = db};
    change->stripe = &access->store->stripes[access_stripe_of(access, key)];
    assert(holds(access, change->stripe));
    change->keys = stripe_db(change->stripe, db);
    if (recent_is(access, change->stripe, db, key))
        change->slot = access->recent.spot.slot;
    else
        change->slot = change->keys != NULL ? lookup_slot_in_table(&change->keys->keys, key) : NULL;
    access->found_key = NULL; /* the entry may move */
}

void change_find_at(struct change *change, struct access *access, unsigned db, const struct key *key,
                    const struct access_spot *spot)
{
    struct stripe *stripe = &access->store->stripes[access_stripe_of(access, key)];

    assert(holds(access, stripe));
    if (UNLIKELY(spot->moves != stripe->moves)) {
        change_find(change, access, db, key);
        return;
    }
    *change = (struct change){.access = access, .key = key, .db = db, .stripe = stripe, .slot = spot->slot};
    change->keys = stripe_db(stripe, db);
    debug_assert(spot->slot == (change->keys != NULL ? lookup_slot_in_table(&change->keys->keys, key) : NULL));
    access->found_key = NULL; /* the entry may move */
}

void change_set_version(struct change *change, uint64_t version)
{
    struct entry *entry = change_existing(change);
    const unsigned flags = version != 0 ? entry->flags | ENTRY_VERSIONED : entry->flags & ~(unsigned)ENTRY_VERSIONED;

    assert(holds(change->access, change->stripe));
    if (UNLIKELY((store_observed(change->access->store) & OBSERVE_SNAPSHOT) != 0))
        live_note_version(change); /* it may change where the key does not */
    if (UNLIKELY((entry->flags & ENTRY_MEMBERS) != 0))
        subkey_ttl_changed_in_place(change->access, entry);
    if (flags != entry->flags)
        entry = change_words(change, flags,
                             (flags & ENTRY_EXPIRES) != 0 ? (int64_t)entry_word_at(entry, ENTRY_EXPIRES)
                                                          : EXPIRE_NEVER);
    if (version != 0)
        entry_word_store(entry, ENTRY_VERSIONED, version);
}

static NOINLINE bool set_version_slow(struct access *access, unsigned db, const struct key *key, uint64_t version)
{
    struct change change;

    change_find(&change, access, db, key);
    if (change.slot != NULL && version != 0)
        change_set_version(&change, version);
    return change.slot != NULL;
}

bool access_set_version(struct access *access, unsigned db, const struct key *key, const struct access_spot *spot,
                        uint64_t version)
{
    const struct stripe *stripe = &access->store->stripes[access_stripe_of(access, key)];
    struct entry *entry;

    assert(holds(access, stripe));
    if (UNLIKELY(spot == NULL || spot->slot == NULL || spot->moves != stripe->moves ||
                 (store_observed(access->store) & OBSERVE_SNAPSHOT) != 0))
        return set_version_slow(access, db, key, version);
    entry = table_slot_item(spot->slot);
    if (UNLIKELY((entry->flags & (ENTRY_VERSIONED | ENTRY_MEMBERS)) != ENTRY_VERSIONED))
        return set_version_slow(access, db, key, version);
    if (version != 0)
        entry_word_store(entry, ENTRY_VERSIONED, version);
    access->found_key = NULL;
    return true;
}

void change_expire(struct change *change, int64_t expire_ms)
{
    struct entry *entry = change_existing(change);
    int64_t before_ms = entry_expire_ms(entry);

    if (before_ms == expire_ms)
        return;
    if (UNLIKELY(change->undo != NULL))
        undo_note_deadline(change);
    if (UNLIKELY((entry->flags & ENTRY_MEMBERS) != 0))
        subkey_ttl_key_changed(change->access, entry, expire_ms);
    else
        (void)change_expire_word(change, expire_ms);
    deadline_changed(change, before_ms, expire_ms);
}

void change_delete_for(struct change *change, enum free_reason reason)
{
    struct entry *entry = change_existing(change);

    change_unlink(change);
    lazyfree_of_value(change->access, entry, reason);
    entry_free(entry);
}

void change_delete(struct change *change)
{
    change_delete_for(change, FREE_SERVER_DEL);
}

/* ------------------------------------------------------------------------------------------------------ looking -- */

/* Behind what the key's version names; before the frontier is that far, and without a version, it is a DEL. */
static bool evicts_behind(const struct access *access, uint64_t version)
{
    return version != 0 && horizon_may_evict(&access->store->horizon);
}

void delete_unasked(struct access *access, unsigned db, const struct key *key, enum event_class event_class,
                    const char *event, enum free_reason reason)
{
    const struct slice command = reason != 0 &&
                                         (atomic_load_explicit(&access->store->frees_later, memory_order_relaxed) &
                                          reason) != 0
                                     ? SLICE("UNLINK")
                                     : SLICE("DEL");
    struct change change;
    uint64_t dirty = access->dirty;

    access->unasked = true;
    change_begin(&change, access, db, key);
    change_delete_for(&change, reason);
    change_end(&change, event_class, event);
    access->unasked = false;
    access->dirty = dirty; /* not the command's doing: it must not journal its own words for it */
    if (access->effects != NULL) {
        const struct slice words[] = {command, key->name};

        if (event_class == EVENT_EVICTED) {
            effects_add(access->effects, db, words, countof(words));
            effects_describe(access->effects, 1,
                             EFFECT_OVERWRITES | (evicts_behind(access, change.version) ? EFFECT_EVICTS : 0U));
        } else {
            effects_add_unshared(access->effects, db, words, countof(words));
        }
    }
}

void access_expire_now(struct access *access, unsigned db, const struct key *key)
{
    access_assert_holds(access, access_stripe_of(access, key));
    delete_unasked(access, db, key, EVENT_EXPIRED, "expired", FREE_EXPIRE);
    counter_add(&access->counters->expired_keys, 1);
}

void access_settle(struct access *access)
{
    if ((access->effects != NULL || waiters_are_ready(access) || access->has_noted) && access->settle != NULL)
        access->settle(access);
}

void access_evict(struct access *access, unsigned db, const struct entry *entry, bool unlink)
{
    struct slice name = entry_key(entry);
    struct buffer copy = {0}; /* the entry goes, its name is needed to the end */
    struct key key;

    buffer_append_slice(&copy, name);
    key = (struct key){{copy.data, copy.size}, lookup_entry_hash(entry)};
    access_assert_holds(access, access_stripe_of(access, &key));
    delete_unasked(access, db, &key, EVENT_EVICTED, "evicted", unlink ? FREE_UNLINK : FREE_AT_ONCE);
    access->found_key = NULL;
    buffer_fini(&copy);
    counter_add(&access->counters->evicted_keys, 1);
    access_settle(access);
}

const struct entry *access_shown(struct access *access, const struct entry *entry)
{
    return lookup_is_expired(access, entry) ? NULL : subkey_ttl_view(access, entry);
}

bool access_is_gone(const struct access *access, const struct entry *entry)
{
    return lookup_is_expired(access, entry) ||
           ((entry->flags & ENTRY_MEMBERS) != 0 && subkey_ttl_all_due(access, entry));
}

void access_let_go(struct access *access, unsigned db, const struct key *key, const struct entry *entry)
{
    if (lookup_is_expired(access, entry))
        access_expire_now(access, db, key);
    else
        access_expire_members(access, db, key);
}

void access_expire_for_good(struct access *access, unsigned db, const struct key *key)
{
    const struct stripe_db *keys = stripe_db(&access->store->stripes[access_stripe_of(access, key)], db);
    const struct entry *entry;

    access_assert_holds(access, access_stripe_of(access, key));
    if (keys == NULL || atomic_load_explicit(&keys->deadlines, memory_order_relaxed) == NULL)
        return;
    entry = access_look(access, db, key);
    if (LIKELY(entry == NULL || !lookup_is_due(access, entry)))
        return;
    access_let_go(access, db, key, entry);
    if (access->undo.is_on)
        undo_count_expired(access, db, key);
}

/* The key is due, or one of its members. */
static NOINLINE COLD struct entry *find_due(struct access *access, unsigned db, const struct key *key, bool reads)
{
    const struct entry *entry = table_slot_item(access->found_slot);
    const uint64_t *slot;

    if (reads && access_keeps_expired(access)) {
        access->found_key = NULL;
        return (struct entry *)(uintptr_t)access_shown(access, entry); /* a touch does it no harm */
    }
    if (access_keeps_active(access) && access_is_gone(access, entry)) {
        access->found_key = NULL;
        return NULL;
    }
    access_let_go(access, db, key, entry);
    slot = find_slot(access, db, key);
    return slot != NULL ? table_slot_item(slot) : NULL;
}

/* Deletes an expired key; readers may have to leave it. */
static ALWAYS_INLINE struct entry *find_live(struct access *access, unsigned db, const struct key *key, bool reads)
{
    const uint64_t *slot = find_slot(access, db, key);
    struct entry *entry;

    if (slot == NULL)
        return NULL;
    entry = table_slot_item(slot);
    if (UNLIKELY(lookup_is_due(access, entry)))
        return find_due(access, db, key, reads);
    return entry;
}

static NOINLINE void count_use(const struct access *access, struct entry *entry)
{
    const struct store *store = access->store;
    const struct lru_lfu_rule rule = {atomic_load_explicit(&store->lfu_log_factor, memory_order_relaxed),
                                      atomic_load_explicit(&store->lfu_decay_minutes, memory_order_relaxed)};

    if (!access->no_touch && !atomic_load_explicit(&store->is_shared, memory_order_relaxed))
        entry->clock = lru_lfu_add(entry->clock, access->now_ms, rule, random_u64(random_thread())) & 0xFFFFFF;
}

static inline void touch(const struct access *access, struct entry *entry)
{
    if (UNLIKELY(access->counts_uses))
        count_use(access, entry);
    else if (entry->clock != access->clock && !access->no_touch &&
             !atomic_load_explicit(&access->store->is_shared, memory_order_relaxed) &&
             !atomic_load_explicit(&access->store->counts_changes, memory_order_relaxed))
        entry->clock = access->clock & 0xFFFFFF;
}

static ALWAYS_INLINE struct entry *peek(struct access *access, unsigned db, const struct key *key)
{
    struct entry *entry = find_live(access, db, key, true);

    counter_add(entry != NULL ? &access->counters->keyspace_hits : &access->counters->keyspace_misses, 1);
    if (UNLIKELY(entry == NULL))
        access_event(access, db, key, EVENT_KEY_MISS, "keymiss");
    return entry;
}

struct entry *access_read(struct access *access, unsigned db, const struct key *key)
{
    struct entry *entry = peek(access, db, key);

    if (entry != NULL)
        touch(access, entry);
    return entry;
}

struct entry *access_peek(struct access *access, unsigned db, const struct key *key)
{
    return peek(access, db, key);
}

struct entry *access_find(struct access *access, unsigned db, const struct key *key)
{
    struct entry *entry = find_live(access, db, key, false);

    if (entry != NULL)
        touch(access, entry);
    return entry;
}

struct entry *access_probe(struct access *access, unsigned db, const struct key *key)
{
    return find_live(access, db, key, true);
}

const struct entry *access_look_at(struct access *access, unsigned db, const struct key *key, struct access_spot *spot)
{
    struct stripe *stripe = &access->store->stripes[access_stripe_of(access, key)];
    const struct stripe_db *keys = stripe_db(stripe, db);
    uint64_t *slot = keys != NULL ? lookup_slot_in_table(&keys->keys, key) : NULL;

    assert(holds(access, stripe));
    *spot = (struct access_spot){slot, stripe->moves};
    access->recent = (struct access_recent){key->hash, *spot, db};
    access->found_key = NULL; /* a change must not take a dead entry for a live one */
    return slot != NULL ? table_slot_item(slot) : NULL;
}

const struct entry *access_look(struct access *access, unsigned db, const struct key *key)
{
    struct access_spot spot;

    return access_look_at(access, db, key, &spot);
}

bool access_find_at(struct access *access, unsigned db, const struct key *key, const struct access_spot *spot)
{
    const struct stripe *stripe = &access->store->stripes[access_stripe_of(access, key)];

    assert(holds(access, stripe));
    if (UNLIKELY(spot->moves != stripe->moves) ||
        (spot->slot != NULL && UNLIKELY(lookup_is_due(access, table_slot_item(spot->slot)))))
        return false;
    access->found_slot = spot->slot;
    access->found_hash = key->hash;
    access->found_key = key;
    access->found_db = db;
    return true;
}

bool access_delete_for(struct access *access, unsigned db, const struct key *key, enum free_reason reason)
{
    struct change change;

    if (access_probe(access, db, key) == NULL)
        return false;
    change_begin(&change, access, db, key);
    change_delete_for(&change, reason);
    change_end(&change, EVENT_GENERIC, "del");
    return true;
}

bool access_delete(struct access *access, unsigned db, const struct key *key)
{
    return access_delete_for(access, db, key, FREE_SERVER_DEL);
}
