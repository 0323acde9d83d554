#include "store/undo.h"

#include "base/copy.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/panic.h"
#include "store/effects.h"
#include "store/entry_copy.h"
#include "store/jobs.h"
#include "store/lookup.h"
#include "store/snapshot_large.h"
#include "store/snapshot_live.h"
#include "store/subkey_ttl_priv.h"
#include "store/undo_priv.h"

#include <string.h>

enum { LISTED_MOST = 8 }; /* keys of one recording that are searched one by one */

/* ----------------------------------------------------------------------------------------------------- the logs -- */

struct wanted {
    const struct key *key;
    unsigned db;
};

static bool is_log_of(const struct undo_log *log, const struct key *key, unsigned db)
{
    return log->hash == key->hash && log->db == db && slice_equal(slice_make(log->name, log->name_size), key->name);
}

static bool matches(const void *item, const void *key)
{
    const struct wanted *wanted = key;

    return is_log_of(item, wanted->key, wanted->db);
}

static uint64_t hash_of(const void *item)
{
    return ((const struct undo_log *)item)->hash;
}

static NOINLINE struct undo_log *find_among(const struct access *access, unsigned db, const struct key *key)
{
    const struct wanted wanted = {key, db};
    const uint64_t *slot;

    if (LIKELY(access->undo.count <= LISTED_MOST)) {
        struct undo_log *log = access->undo.newest;

        while (log != NULL && !is_log_of(log, key, db))
            log = log->older;
        return log;
    }
    slot = table_find_slot(&access->undo.by_key, key->hash, matches, &wanted);
    return slot != NULL ? table_slot_item(slot) : NULL;
}

/* Most commands change one key, once. */
static inline struct undo_log *find(const struct access *access, unsigned db, const struct key *key)
{
    return UNLIKELY(access->undo.newest != NULL) ? find_among(access, db, key) : NULL;
}

static struct undo_log *log_create(struct access *access, struct slice name)
{
    struct undo_log *log = access->undo.spare;
    size_t capacity;

    if (LIKELY(log != NULL && log->name_capacity >= name.size)) { /* it is clear */
        access->undo.spare = log->older;
        access->undo.spare_count--;
        return log; /* log_clear has left it as a new one, but with memory */
    }
    capacity = MAX(name.size, (size_t)UNDO_SPARE_NAME_BYTES);
    log = mem_alloc(sizeof(*log) + capacity);
    *log = (struct undo_log){.name_capacity = capacity};
    return log;
}

/* Nothing is in it. */
static void log_free(struct access *access, struct undo_log *log)
{
    if (LIKELY(access->undo.spare_count < UNDO_SPARE_MOST && log->name_capacity == UNDO_SPARE_NAME_BYTES &&
               log->values.steps.capacity + log->held.capacity <= UNDO_SPARE_BYTES)) {
        log->older = access->undo.spare;
        access->undo.spare = log;
        access->undo.spare_count++;
        return;
    }
    buffer_fini(&log->held);
    buffer_fini(&log->values.steps);
    mem_free_sized(log, sizeof(*log) + log->name_capacity);
}

void undo_fini(struct access *access)
{
    assert(!access->undo.is_on && access->undo.newest == NULL);
    for (struct undo_log *log; (log = access->undo.spare) != NULL;) {
        access->undo.spare = log->older;
        buffer_fini(&log->held);
        buffer_fini(&log->values.steps);
        mem_free_sized(log, sizeof(*log) + log->name_capacity);
    }
    access->undo.spare_count = 0;
}

static struct undo_log *add(struct access *access, unsigned db, const struct key *key)
{
    struct undo_log *log = log_create(access, key->name);

    log->older = access->undo.newest;
    log->hash = key->hash;
    log->db = db;
    log->name_size = key->name.size;
    copy_word(log->name, key->name.data, key->name.size);
    access->undo.newest = log;
    access->undo.count++;
    if (access->undo.count == LISTED_MOST + 1) {
        for (struct undo_log *each = log; each != NULL; each = each->older)
            (void)table_insert(&access->undo.by_key, each->hash, each, hash_of);
    } else if (access->undo.count > LISTED_MOST) {
        (void)table_insert(&access->undo.by_key, log->hash, log, hash_of);
    }
    return log;
}

static void restore_expired(struct access *access, struct undo_log *log);

static void log_clear(struct access *access, struct undo_log *log)
{
    entry_copy_free(access, log->whole);
    undo_log_reset(log);
}

void undo_forget(struct access *access, unsigned db)
{
    for (struct undo_log *log = access->undo.newest; log != NULL; log = log->older) {
        if (log->db == db)
            log_clear(access, log);
    }
}

void undo_begin(struct access *access)
{
    assert(!access->undo.is_on && access->undo.newest == NULL);
    access->undo.is_on = true;
}

void undo_end(struct access *access)
{
    assert(access->undo.is_on);
    for (struct undo_log *log = access->undo.newest, *older; log != NULL; log = older) {
        older = log->older;
        if (UNLIKELY(log->is_begun)) { /* it was not taken */
            restore_expired(access, log);
            log_clear(access, log);
        }
        log_free(access, log);
    }
    if (access->undo.count > LISTED_MOST)
        table_clear(&access->undo.by_key, NULL, NULL);
    access->undo.newest = NULL;
    access->undo.count = 0;
    access->undo.is_on = false;
}

/* ------------------------------------------------------------------------------------------------------ noting -- */

static void seal(struct undo_log *log, struct entry *whole)
{
    assert(!log->is_sealed);
    log->is_sealed = true;
    log->whole = whole;
    value_log_ignore(&log->values);
}

/* A string whose value is in the entry itself. */
static void seal_small(struct undo_log *log, const struct entry *entry)
{
    if (!entry_is_int(entry)) {
        seal(log, entry_clone(entry));
        return;
    }
    seal(log, NULL);
    log->is_number = true;
    log->number = (int64_t)((uint64_t)entry_int(entry) - (uint64_t)log->number);
    log->expire_ms = entry_expire_ms(entry);
}

static bool is_in_place(const struct store *store, const struct entry *entry)
{
    return store->types[entry->type].ops->undo != NULL;
}

void undo_note_value(struct change *change)
{
    const struct entry *entry = change_existing(change);
    struct undo_log *log = change->undo;

    if (is_in_place(change->access->store, entry))
        value_log_watch(&log->values, entry_value(entry).data);
    else
        seal(log, entry_copy_create(change->access->store, entry));
}

void undo_note_begin_slow(struct change *change)
{
    struct access *access = change->access;
    const struct entry *entry = change_entry(change);
    struct undo_log *log = find(access, change->db, change->key);
    const bool is_missing = entry == NULL && !change->is_hidden;

    access_assert_holds(access, access_stripe_of(access, change->key));
    if (log == NULL)
        log = add(access, change->db, change->key);
    if (!log->is_begun) {
        log->is_begun = true;
        log->was_missing = log->is_sealed = is_missing;
    }
    change->undo = log;
    if (!log->is_sealed && entry != NULL && entry->type != TYPE_STRING)
        undo_note_value(change);
}

void undo_hold_words(const struct change *change, const struct slice *words, size_t count)
{
    struct buffer *held = &change->undo->held;

    buffer_append(held, &count, sizeof(count));
    for (size_t i = 0; i < count; i++) {
        buffer_append(held, &words[i].size, sizeof(words[i].size));
        buffer_append_slice(held, words[i]);
    }
}

static size_t take_size(const struct buffer *held, size_t *at)
{
    size_t size;

    memcpy(&size, held->data + *at, sizeof(size));
    *at += sizeof(size);
    return size;
}

/* The key is changed: so the plain stream has what expired before. */
static void tell_held(struct access *access, struct undo_log *log)
{
    for (size_t at = 0; at < log->held.size;) {
        const size_t count = take_size(&log->held, &at);
        struct slice *words = mem_alloc(count * sizeof(*words));

        for (size_t i = 0; i < count; i++) {
            const size_t size = take_size(&log->held, &at);

            words[i] = slice_make(log->held.data + at, size);
            at += size;
        }
        if (access->effects != NULL)
            effects_add_unshared(access->effects, log->db, words, count);
        mem_free(words);
    }
    buffer_clear(&log->held);
}

void undo_count_expired(struct access *access, unsigned db, const struct key *key)
{
    struct undo_log *log = find(access, db, key);

    if (log == NULL || !log->has_expired)
        return;
    log->has_changed = true;
    tell_held(access, log);
}

void undo_note_end_slow(struct change *change)
{
    struct undo_log *log = change->undo;

    if (change->access->undo.is_held) {
        log->has_expired = true;
        return;
    }
    log->has_changed = true;
    if (log->held.size != 0)
        tell_held(change->access, log);
}

void undo_note_loss(struct change *change)
{
    struct entry *entry = change_existing(change), *whole;

    if (change->undo->is_sealed)
        return;
    if (entry_is_int(entry) || (entry->flags & ENTRY_WORD) == 0) {
        seal_small(change->undo, entry);
        return;
    }
    if ((entry->flags & ENTRY_MEMBERS) != 0)
        subkey_ttl_unlist(change, entry);
    if (entry->type == TYPE_CRON)
        jobs_unlist(change, entry);
    whole = entry_clone(entry);
    if ((entry->flags & ENTRY_MEMBERS) != 0)
        (void)subkey_ttl_take(entry);
    entry->type = TYPE_STRING;
    entry->encoding = ENCODING_INT;
    entry_word_store(entry, ENTRY_WORD, 0);
    seal(change->undo, whole);
}

void undo_note_departure(struct change *change)
{
    const struct entry *entry = change_existing(change);

    if (change->undo->is_sealed)
        return;
    if (entry_is_int(entry))
        seal_small(change->undo, entry);
    else
        seal(change->undo, entry_copy_create(change->access->store, entry));
}

void undo_note_addition(struct change *change, int64_t amount)
{
    struct undo_log *log = change->undo;

    if (!log->is_sealed)
        log->number = (int64_t)((uint64_t)log->number + (uint64_t)amount);
}

void undo_note_edit(struct change *change, size_t offset, size_t size, size_t new_size)
{
    const struct entry *entry = change_entry(change);
    struct undo_log *log = change->undo;
    struct slice old;

    if (log->is_sealed || entry == NULL) /* one that is hidden is kept when it goes */
        return;
    if (entry_blob(entry) == NULL) {
        seal_small(log, entry);
        return;
    }
    assert(offset <= new_size && size <= new_size - offset);
    old = blob_slice(entry_blob(entry));
    offset = MIN(offset, old.size);
    size = MIN(size, old.size - offset);
    if (new_size < old.size) {
        const struct slice cut = slice_make(old.data + new_size, old.size - new_size);

        value_log_note(&log->values, &(struct value_step){old.size, new_size, cut, SLICE_EMPTY, UNDO_STEP_STRING});
    }
    value_log_note(&log->values, &(struct value_step){old.size, offset, slice_make(old.data + offset, size),
                                                      SLICE_EMPTY, UNDO_STEP_STRING});
}

void undo_check_kept(const struct change *change, struct value value)
{
    assert(change->undo->is_sealed || change->undo->values.data == value.data);
}

void undo_note_deadline(struct change *change)
{
    const int64_t before_ms = entry_expire_ms(change_existing(change));

    if (!change->undo->is_sealed)
        value_log_note(&change->undo->values,
                       &(struct value_step){.a = (uint64_t)before_ms, .kind = UNDO_STEP_DEADLINE});
}

void undo_note_member_deadline(struct change *change, struct slice member, int64_t before_ms)
{
    if (!change->undo->is_sealed)
        value_log_note(&change->undo->values, &(struct value_step){.a = (uint64_t)before_ms,
                                                                   .first = member,
                                                                   .kind = UNDO_STEP_MEMBER_DEADLINE});
}

/* ------------------------------------------------------------------------------------------------------ taking -- */

static void take_into(struct access *access, struct undo_log *log, struct key_undo *undo)
{
    const struct slice steps = buffer_slice(&log->values.steps);

    *undo = (struct key_undo){.references = 1,
                              .was_missing = log->was_missing,
                              .is_number = log->is_number,
                              .number = log->number,
                              .expire_ms = log->expire_ms,
                              .whole = log->whole,
                              .steps_size = steps.size};
    if (undo->whole != NULL)
        undo->whole_bytes = store_entry_bytes(access->store, undo->whole, 5);
    if (steps.size != 0)
        memcpy(undo->steps, steps.data, steps.size);
    log->whole = NULL;
}

static struct key_undo *take(struct access *access, struct undo_log *log)
{
    struct key_undo *undo = mem_alloc(sizeof(*undo) + log->values.steps.size);

    take_into(access, log, undo);
    return undo;
}

struct key_undo *undo_take(struct access *access, unsigned db, const struct key *key)
{
    struct undo_log *log = find(access, db, key);
    struct key_undo *undo = NULL;

    access_assert_holds(access, access_stripe_of(access, key));
    if (log == NULL)
        return NULL;
    if (log->has_changed)
        undo = take(access, log);
    else
        restore_expired(access, log);
    log_clear(access, log);
    return undo;
}

size_t undo_take_image_slow(struct access *access, struct undo_log *log, struct buffer *to)
{
    size_t bytes = 0;

    if (log->has_changed) {
        bytes = undo_image_bytes(log);
        take_into(access, log, (struct key_undo *)buffer_reserve(to, bytes));
        to->size += bytes;
        undo_log_reset(log);
    } else {
        restore_expired(access, log);
        log_clear(access, log);
    }
    return bytes;
}

size_t undo_take_image_of(struct access *access, struct undo_log *log, struct buffer *to)
{
    assert(access->undo.is_on && to->size % 8 == 0);
    return undo_take_image_inline(access, log, to);
}

size_t undo_take_image(struct access *access, unsigned db, const struct key *key, struct buffer *to)
{
    struct undo_log *log = find(access, db, key);

    access_assert_holds(access, access_stripe_of(access, key));
    return log != NULL ? undo_take_image_of(access, log, to) : 0;
}

struct key_undo *key_undo_of_image(const void *image)
{
    const struct key_undo *from = image;
    struct key_undo *undo = mem_alloc(sizeof(*undo) + from->steps_size);

    memcpy(undo, from, sizeof(*undo) + from->steps_size);
    return undo;
}

bool key_undo_image_owns(const void *image)
{
    return ((const struct key_undo *)image)->whole != NULL;
}

void key_undo_drop_image(struct access *access, const void *image)
{
    entry_copy_free(access, ((const struct key_undo *)image)->whole);
}

struct key_undo *key_undo_acquire(struct key_undo *undo)
{
    assert(undo->references != 0 && undo->references != UINT32_MAX);
    undo->references++;
    return undo;
}

void key_undo_release(struct access *access, struct key_undo **undo)
{
    struct key_undo *gone = *undo;

    *undo = NULL;
    if (gone == NULL || --gone->references != 0)
        return;
    entry_copy_free(access, gone->whole);
    mem_free_sized(gone, sizeof(*gone) + gone->steps_size);
}

bool key_undo_is_apart(const struct key_undo *undo, bool is_addition)
{
    struct slice steps = slice_make(undo->steps, undo->steps_size);
    struct value_step step;

    if (undo->was_missing || undo->is_number || undo->whole != NULL ||
        (undo->number != 0 || undo->is_sum) != (steps.size == 0))
        return false;
    if (steps.size == 0)
        return is_addition;
    while (value_steps_take(&steps, &step)) {
        if (step.kind >= VALUE_STEP_OWNERS || is_addition != (step.kind == VALUE_STEP_ADDITION))
            return false;
    }
    return true;
}

bool key_undo_is_whole(const struct key_undo *undo)
{
    return undo->was_missing || undo->is_number || undo->whole != NULL;
}

int64_t key_undo_amount(const struct key_undo *undo, struct slice *member)
{
    struct slice steps = slice_make(undo->steps, undo->steps_size);
    struct value_step step;

    *member = SLICE_EMPTY;
    if (!value_steps_take(&steps, &step))
        return undo->number;
    assert(step.kind == VALUE_STEP_ADDITION && steps.size == 0);
    *member = step.first;
    return (int64_t)step.a;
}

struct key_undo *key_undo_join(const struct key_undo *older, const struct key_undo *younger)
{
    struct value_log log = {.data = NULL};
    struct slice member;
    const int64_t sum = (int64_t)((uint64_t)key_undo_amount(older, &member) +
                                  (uint64_t)key_undo_amount(younger, &member));
    struct key_undo *undo;

    if (member.data != NULL)
        value_log_note(&log, &(struct value_step){.a = (uint64_t)sum, .first = member, .kind = VALUE_STEP_ADDITION});
    undo = mem_alloc(sizeof(*undo) + log.steps.size);
    *undo = (struct key_undo){.references = 1, .steps_size = log.steps.size};
    undo->is_sum = member.data == NULL;
    undo->number = undo->is_sum ? sum : 0;
    if (log.steps.size != 0)
        memcpy(undo->steps, log.steps.data, log.steps.size);
    buffer_fini(&log.steps);
    return undo;
}

bool key_undo_is_push(const struct key_undo *undo)
{
    struct slice steps = slice_make(undo->steps, undo->steps_size);
    struct value_step step;

    return !undo->was_missing && !undo->is_number && undo->whole == NULL && undo->number == 0 && !undo->is_sum &&
           value_steps_take(&steps, &step) && step.kind == VALUE_STEP_PUSHED && steps.size == 0;
}

uint64_t key_undo_bytes(const struct key_undo *undo)
{
    return mem_usable(undo) + undo->whole_bytes;
}

/* ---------------------------------------------------------------------------------------------------- applying -- */

/* Nobody is told of the change. */
static void open_quietly(struct change *change, struct access *access, unsigned db, const struct key *key)
{
    *change = (struct change){.access = access, .key = key, .db = db};
    change->stripe = &access->store->stripes[access_stripe_of(access, key)];
    stripe_assert_held(change->stripe);
    change->keys = stripe_db_use(access->store, change->stripe, db);
    change->slot = lookup_slot_in_table(&change->keys->keys, key);
    access->found_key = NULL;
    if (UNLIKELY((store_observed(access->store) & OBSERVE_SNAPSHOT) != 0))
        live_note_before(change);
}

/* The entry's value and deadlines become the key's; nothing but the entry itself is left. */
static void put_back(struct change *change, struct entry *whole)
{
    struct subkey_ttls *lifetimes = (whole->flags & ENTRY_MEMBERS) != 0 ? subkey_ttl_take(whole) : NULL;

    if (whole->type == TYPE_STRING) {
        change_copy_value(change, whole, entry_expire_ms(whole));
        return;
    }
    change_put_value(change, whole->type, entry_value(whole), entry_expire_ms(whole));
    if (lifetimes != NULL)
        subkey_ttl_attach(change, lifetimes);
    whole->type = TYPE_STRING;
    whole->encoding = ENCODING_INT;
}

static void restore_whole(struct change *change, struct key_undo *undo)
{
    if (undo->references == 1) {
        undo->is_spent = true;
        put_back(change, undo->whole);
    } else {
        change_copy_value(change, undo->whole, entry_expire_ms(undo->whole));
    }
}

static void restore_string(struct change *change, const struct value_step *step)
{
    char *bytes = change_edit_part(change, step->a, step->b, step->first.size);

    if (step->first.size != 0)
        memcpy(bytes + step->b, step->first.data, step->first.size);
}

static void take_back(struct change *change, const struct value_step *step)
{
    struct value value;

    switch (step->kind) {
    case UNDO_STEP_DEADLINE:
        change_expire(change, (int64_t)step->a);
        return;
    case UNDO_STEP_MEMBER_DEADLINE:
        change_member_expire(change, step->first, (int64_t)step->a);
        return;
    case UNDO_STEP_STRING:
        restore_string(change, step);
        return;
    default:
        value = entry_value(change_existing(change));
        change->access->store->types[change_existing(change)->type].ops->undo(&value, step);
        change_keep_value(change, value);
    }
}

/* A number whose bytes were changed in place, and put back, is a text of its digits now. */
static void take_back_addition(struct change *change, int64_t amount)
{
    const struct entry *entry = change_existing(change);
    char scratch[ENTRY_INT_TEXT_BYTES];
    int64_t number;

    if (LIKELY(entry_is_int(entry))) {
        change_add_int(change, (int64_t)(0 - (uint64_t)amount));
        return;
    }
    if (entry->type != TYPE_STRING || !number_parse_i64(entry_string(entry, scratch), &number))
        panic("What was added to is no number");
    change_put_int(change, (int64_t)((uint64_t)number - (uint64_t)amount), EXPIRE_KEEP);
}

void undo_apply(struct access *access, unsigned db, const struct key *key, struct key_undo *undo)
{
    struct value_log *watched = value_logs;
    struct slice steps = slice_make(undo->steps, undo->steps_size);
    struct value_step step;
    struct change change;

    assert(undo->references != 0 && !undo->is_spent);
    value_logs = NULL; /* what is done here is not recorded */
    open_quietly(&change, access, db, key);
    if (undo->was_missing) {
        if (change.slot != NULL)
            change_delete(&change);
    } else if (undo->is_number) {
        change_put_int(&change, undo->number, undo->expire_ms);
    } else if (undo->whole != NULL) {
        restore_whole(&change, undo);
        large_watch(&change); /* a snapshot may need it, and the steps change it */
    } else if (undo->number != 0) {
        take_back_addition(&change, undo->number);
    }
    while (value_steps_take(&steps, &step))
        take_back(&change, &step);
    change_end_untold(&change);
    value_logs = watched;
}

/* Nothing but what has expired was removed: it comes back. */
static void restore_expired(struct access *access, struct undo_log *log)
{
    const struct key key = {slice_make(log->name, log->name_size), log->hash};
    struct key_undo *undo;

    if (!log->has_expired || log->has_changed)
        return;
    undo = take(access, log);
    undo_apply(access, log->db, &key, undo);
    key_undo_release(access, &undo);
}
