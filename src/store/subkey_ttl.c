#include "store/subkey_ttl.h"

#include "base/mem.h"
#include "base/mem_move.h"
#include "store/lazyfree.h"
#include "store/access_priv.h"
#include "store/effects.h"
#include "store/expiry.h"
#include "store/lookup.h"
#include "store/snapshot_large.h"
#include "store/subkey_ttl_priv.h"
#include "store/undo_priv.h"

enum { BATCH = 256 };      /* members that go in one change and one effect */
enum { NAMES_MOST = 256 }; /* fields told of in one message, if all of a key expire */

static bool has_subkey_ttls(const struct entry *entry)
{
    return (entry->flags & ENTRY_MEMBERS) != 0;
}

int64_t entry_member_expire_ms(const struct entry *entry, struct slice member)
{
    int64_t when_ms = has_subkey_ttls(entry) ? deadlines_find(&entry_subkey_ttls(entry)->members, member)
                                             : DEADLINE_NONE;

    return when_ms != DEADLINE_NONE ? when_ms : EXPIRE_NEVER;
}

uint64_t entry_member_deadlines(const struct entry *entry)
{
    return has_subkey_ttls(entry) ? deadlines_count(&entry_subkey_ttls(entry)->members) : 0;
}

void entry_each_member_deadline(const struct entry *entry, deadline_fn fn, void *context)
{
    if (has_subkey_ttls(entry))
        deadlines_each_due(&entry_subkey_ttls(entry)->members, DEADLINE_NONE, fn, context);
}

/* --------------------------------------------------------------------------------------------------- lifetimes -- */

static void entry_put_subkey_ttls(struct entry *entry, struct subkey_ttls *lifetimes)
{
    entry_word_store(entry, ENTRY_EXPIRES, (uint64_t)(uintptr_t)lifetimes);
    entry->flags |= ENTRY_MEMBERS;
}

void subkey_ttl_drop_view(struct access *access, struct subkey_ttls *lifetimes, enum free_reason reason)
{
    struct entry *view = lifetimes->view;

    if (LIKELY(view == NULL))
        return;
    lifetimes->view = NULL;
    lazyfree_of_value(access, view, reason);
    entry_free(view);
}

static void view_drop(struct access *access, struct subkey_ttls *lifetimes)
{
    subkey_ttl_drop_view(access, lifetimes, FREE_AT_ONCE);
}

void subkey_ttl_free(struct subkey_ttls *lifetimes)
{
    assert(lifetimes->view == NULL);
    deadlines_clear(&lifetimes->members);
    mem_free(lifetimes);
}

static void due_update(struct subkey_ttls *lifetimes)
{
    lifetimes->due_ms = deadlines_first_ms(&lifetimes->members);
    if (lifetimes->key_ms != EXPIRE_NEVER)
        lifetimes->due_ms = MIN(lifetimes->due_ms, lifetimes->key_ms);
}

struct subkey_ttls *subkey_ttl_take(struct entry *entry)
{
    struct subkey_ttls *lifetimes = entry_subkey_ttls(entry);

    assert(has_subkey_ttls(entry));
    entry_word_store(entry, ENTRY_EXPIRES, (uint64_t)lifetimes->key_ms);
    entry->flags &= (uint8_t)~ENTRY_MEMBERS;
    return lifetimes;
}

static void list(const struct change *change, int64_t before_ms, int64_t after_ms)
{
    if (before_ms != after_ms)
        expiry_changed(expiry_members(deadlines_use(change->keys)), change->key->hash, before_ms, after_ms,
                       &change->keys->keys);
}

void subkey_ttl_unlist(const struct change *change, const struct entry *entry)
{
    list(change, entry_member_due_ms(entry), EXPIRE_NEVER);
}

void subkey_ttl_attach(struct change *change, struct subkey_ttls *lifetimes)
{
    struct entry *entry = change_existing(change);

    assert((entry->flags & ENTRY_MEMBERS) == 0);
    view_drop(change->access, lifetimes);
    lifetimes->key_ms = entry_expire_ms(entry);
    due_update(lifetimes);
    entry_put_subkey_ttls(change_expire_word(change, lifetimes->due_ms), lifetimes);
    large_note_table(change->access->store, change_existing(change), lifetimes);
    list(change, EXPIRE_NEVER, deadlines_first_ms(&lifetimes->members));
}

struct subkey_ttls *subkey_ttl_copy(const struct entry *entry)
{
    struct subkey_ttls *copy;

    if (!has_subkey_ttls(entry))
        return NULL;
    copy = mem_alloc_zero(sizeof(*copy));
    deadlines_copy(&copy->members, &entry_subkey_ttls(entry)->members);
    return copy;
}

void subkey_ttl_key_changed(struct access *access, struct entry *entry, int64_t expire_ms)
{
    struct subkey_ttls *lifetimes = entry_subkey_ttls(entry);

    view_drop(access, lifetimes);
    lifetimes->key_ms = expire_ms;
    due_update(lifetimes);
}

void subkey_ttl_changed_in_place(struct access *access, const struct entry *entry)
{
    view_drop(access, entry_subkey_ttls(entry));
}

/* After deadlines were set or removed: the last one takes the struct along. */
static void settle(struct change *change, int64_t before_ms)
{
    struct entry *entry = change_existing(change);
    struct subkey_ttls *lifetimes = entry_subkey_ttls(entry);

    view_drop(change->access, lifetimes);
    due_update(lifetimes);
    if (deadlines_count(&lifetimes->members) == 0) {
        large_note_table(change->access->store, entry, NULL);
        (void)subkey_ttl_take(entry);
        (void)change_expire_word(change, lifetimes->key_ms);
        list(change, before_ms, EXPIRE_NEVER);
        lazyfree_of_subkey_ttls(change->access, lifetimes, FREE_AT_ONCE);
    } else {
        list(change, before_ms, deadlines_first_ms(&lifetimes->members));
    }
}

static void note_for_snapshots(const struct change *change, struct slice member, int64_t expire_ms)
{
    const struct entry *entry = change_existing(change);
    int64_t before_ms;

    if (!larges_exist(change->access->store))
        return;
    before_ms = entry_member_expire_ms(entry, member);
    if (before_ms != expire_ms)
        large_note_deadline(change->access->store, entry, member, before_ms);
}

void change_member_expire(struct change *change, struct slice member, int64_t expire_ms)
{
    struct entry *entry = change_existing(change);
    int64_t before_ms;

    expire_ms = MIN(expire_ms, DEADLINE_NONE - 1);
    if (!has_subkey_ttls(entry) && expire_ms == EXPIRE_NEVER)
        return;
    if (UNLIKELY(change->undo != NULL))
        undo_note_member_deadline(change, member, entry_member_expire_ms(entry, member));
    note_for_snapshots(change, member, expire_ms);
    if (!has_subkey_ttls(entry)) {
        struct subkey_ttls *lifetimes;

        lifetimes = mem_alloc_zero(sizeof(*lifetimes));
        (void)deadlines_set(&lifetimes->members, member, expire_ms);
        subkey_ttl_attach(change, lifetimes);
        return;
    }
    before_ms = entry_member_due_ms(entry);
    if (expire_ms != EXPIRE_NEVER)
        (void)deadlines_set(&entry_subkey_ttls(entry)->members, member, expire_ms);
    else if (!deadlines_remove(&entry_subkey_ttls(entry)->members, member))
        return;
    settle(change, before_ms);
}

/* ----------------------------------------------------------------------------------------------------- looking -- */

uint64_t subkey_ttl_due(const struct entry *entry, int64_t now_ms)
{
    return has_subkey_ttls(entry) ? deadlines_count_due(&entry_subkey_ttls(entry)->members, now_ms) : 0;
}

bool subkey_ttl_all_due(const struct access *access, const struct entry *entry)
{
    const struct deadlines *members = &entry_subkey_ttls(entry)->members;
    uint64_t count = access->store->types[entry->type].ops->count(entry_value(entry));

    return deadlines_count(members) == count && subkey_ttl_due(entry, access->due_ms) == count;
}

static struct entry *view_create(struct access *access, const struct entry *entry)
{
    const struct value_ops *ops = access->store->types[entry->type].ops;
    struct value value = ops->copy(entry_value(entry));
    struct subkey_ttls *lifetimes = subkey_ttl_copy(entry);
    struct deadline *due;
    struct entry *view;

    while ((due = deadlines_take_due(&lifetimes->members, access->due_ms)) != NULL) {
        (void)ops->members->remove(&value, deadline_text(due));
        mem_free(due);
    }
    lifetimes->key_ms = entry_expire_ms(entry);
    due_update(lifetimes);
    view = entry_create(entry_key(entry), ENTRY_WORD | (entry->flags & ENTRY_VERSIONED), 0,
                        deadlines_count(&lifetimes->members) != 0 ? lifetimes->due_ms : lifetimes->key_ms,
                        entry->clock);
    view->type = entry->type;
    view->encoding = (uint32_t)value.encoding & 15;
    entry_word_store(view, ENTRY_WORD, (uint64_t)(uintptr_t)value.data);
    if ((view->flags & ENTRY_VERSIONED) != 0)
        entry_word_store(view, ENTRY_VERSIONED, entry_version(entry));
    if (deadlines_count(&lifetimes->members) != 0)
        entry_put_subkey_ttls(view, lifetimes);
    else
        lazyfree_of_subkey_ttls(access, lifetimes, FREE_AT_ONCE);
    return view;
}

const struct entry *subkey_ttl_view(struct access *access, const struct entry *entry)
{
    struct subkey_ttls *lifetimes = entry_subkey_ttls(entry);

    if (lifetimes->view != NULL && lookup_is_due(access, lifetimes->view))
        view_drop(access, lifetimes);
    if (lifetimes->view == NULL) {
        if (subkey_ttl_all_due(access, entry))
            return NULL;
        lifetimes->view = view_create(access, entry);
    }
    return lifetimes->view;
}

/* ---------------------------------------------------------------------------------------------------- expiring -- */

/* Members on their way out. */
struct batch {
    struct deadline *items[BATCH];
    unsigned count;
};

static void batch_event(const struct batch *batch, const struct access *access, unsigned db, const struct key *key,
                        const struct store_type *type)
{
    struct slice names[BATCH];

    if (type->expired_class != EVENT_HASH || !access_tells_fields(access))
        return;
    for (unsigned i = 0; i < batch->count; i++)
        names[i] = deadline_text(batch->items[i]);
    access_event_fields(access, db, key, type->expired_event, names, batch->count, 1);
}

static void batch_tell(const struct batch *batch, const struct change *change, struct access *access, unsigned db,
                       const struct key *key, const char *command)
{
    struct slice words[2 + BATCH] = {slice_from_text(command), key->name};

    if (access->effects == NULL)
        return;
    for (unsigned i = 0; i < batch->count; i++)
        words[2 + i] = deadline_text(batch->items[i]);
    if (access->undo.is_held)
        undo_hold_words(change, words, 2 + batch->count);
    else
        effects_add_unshared(access->effects, db, words, 2 + batch->count);
}

static void batch_take(struct batch *batch, struct change *change, unsigned most)
{
    struct access *access = change->access;
    struct entry *entry = change_existing(change);
    const struct value_member_ops *ops = access->store->types[entry->type].ops->members;
    struct deadlines *members = &entry_subkey_ttls(entry)->members;
    int64_t before_ms = entry_member_due_ms(entry);
    struct value value = entry_value(entry);

    for (batch->count = 0; batch->count < MIN(most, (unsigned)BATCH); batch->count++) {
        struct deadline *due = deadlines_take_due(members, access->due_ms);

        if (due == NULL)
            break;
        large_note_deadline(access->store, entry, deadline_text(due), due->when_ms);
        (void)ops->remove(&value, deadline_text(due));
        if (UNLIKELY(change->undo != NULL))
            undo_note_member_deadline(change, deadline_text(due), due->when_ms);
        batch->items[batch->count] = due;
    }
    change_keep_value(change, value);
    settle(change, before_ms);
}

static uint64_t count_left(const struct access *access, const struct change *change)
{
    const struct entry *entry = change_existing(change);

    return access->store->types[entry->type].ops->count(entry_value(entry));
}

unsigned subkey_ttl_expire(struct access *access, unsigned db, const struct key *key, unsigned most)
{
    uint64_t dirty = access->dirty;
    const struct store_type *type;
    struct change change;
    struct batch batch;
    bool is_empty;

    access->unasked = true;
    change_begin(&change, access, db, key);
    type = &access->store->types[change_existing(&change)->type];
    batch_take(&batch, &change, most);
    is_empty = count_left(access, &change) == 0;
    access->undo.is_held = access->undo.is_on && !is_empty && access_keeps_active(access);
    change_end(&change, type->expired_class, type->expired_event);
    batch_event(&batch, access, db, key, type);
    access->unasked = false;
    if (is_empty)
        delete_unasked(access, db, key, EVENT_GENERIC, "del", FREE_EXPIRE);
    else
        batch_tell(&batch, &change, access, db, key, type->expired_command);
    access->undo.is_held = false;
    for (unsigned i = 0; i < batch.count; i++)
        mem_free(batch.items[i]);
    counter_add(&access->counters->expired_members, batch.count);
    access->dirty = dirty; /* not the command's doing: it must not journal its own words for it */
    access->found_key = NULL;
    return batch.count;
}

/* Fields that go at once, told some at a time: they may be millions. */
struct leaving {
    const struct access *access;
    const struct key *key;
    const char *event;
    unsigned db;
    uint32_t count;
    struct slice names[NAMES_MOST];
};

static void leaving_tell(struct leaving *leaving)
{
    access_event_fields(leaving->access, leaving->db, leaving->key, leaving->event, leaving->names, leaving->count, 1);
    leaving->count = 0;
}

static void leaving_add(struct slice member, int64_t when_ms, void *context)
{
    struct leaving *leaving = context;

    (void)when_ms;
    leaving->names[leaving->count++] = member;
    if (leaving->count == NAMES_MOST)
        leaving_tell(leaving);
}

static void event_of_all(struct access *access, unsigned db, const struct key *key, const struct entry *entry,
                         const struct store_type *type)
{
    struct leaving leaving;

    access_event(access, db, key, type->expired_class, type->expired_event);
    if (type->expired_class != EVENT_HASH || !access_tells_fields(access))
        return;
    leaving.access = access;
    leaving.key = key;
    leaving.event = type->expired_event;
    leaving.db = db;
    leaving.count = 0;
    entry_each_member_deadline(entry, leaving_add, &leaving);
    leaving_tell(&leaving);
}

/* Nothing of the key is left: it goes in one piece, however large it is. */
static void expire_all(struct access *access, unsigned db, const struct key *key, const struct entry *entry)
{
    const struct store_type *type = &access->store->types[entry->type];

    counter_add(&access->counters->expired_members, entry_member_deadlines(entry));
    event_of_all(access, db, key, entry, type);
    delete_unasked(access, db, key, EVENT_GENERIC, "del", FREE_EXPIRE);
    access->found_key = NULL;
}

static bool has_due_members(const struct access *access, const struct entry *entry)
{
    return entry != NULL && has_subkey_ttls(entry) && entry_member_due_ms(entry) < access->due_ms;
}

void access_expire_members(struct access *access, unsigned db, const struct key *key)
{
    const struct entry *entry = lookup_raw(access, db, key);

    access_assert_holds(access, access_stripe_of(access, key));
    if (!has_due_members(access, entry))
        return;
    if (subkey_ttl_all_due(access, entry)) {
        expire_all(access, db, key, entry);
        return;
    }
    while (has_due_members(access, entry)) {
        (void)subkey_ttl_expire(access, db, key, BATCH);
        entry = lookup_raw(access, db, key);
    }
}

/* ------------------------------------------------------------------------------------------------------- memory -- */

uint64_t subkey_ttl_memory_bytes(const struct store *store, const struct entry *entry, uint64_t samples)
{
    const struct subkey_ttls *lifetimes = has_subkey_ttls(entry) ? entry_subkey_ttls(entry) : NULL;

    if (lifetimes == NULL)
        return 0;
    return mem_usable(lifetimes) + deadlines_memory_bytes(&lifetimes->members, samples) +
           (lifetimes->view != NULL ? store_entry_bytes(store, lifetimes->view, samples) : 0);
}

uint64_t subkey_ttl_relocate(struct entry *entry, uint64_t position, uint64_t most, struct mem_mover *mover)
{
    struct subkey_ttls *lifetimes;

    if (!has_subkey_ttls(entry))
        return 0;
    lifetimes = entry_subkey_ttls(entry);
    if (position == 0) {
        lifetimes = mem_move(mover, lifetimes, 0);
        entry_put_subkey_ttls(entry, lifetimes);
    }
    return deadlines_relocate(&lifetimes->members, position, most, mover);
}

struct validate {
    const struct value_member_ops *ops;
    struct value value;
};

static void validate_one(struct slice member, int64_t expire_ms, void *context)
{
    const struct validate *validate = context;

    assert(expire_ms != EXPIRE_NEVER);
    assert(validate->ops->has(validate->value, member));
}

void subkey_ttl_validate(const struct store *store, const struct entry *entry)
{
    const struct subkey_ttls *lifetimes;
    struct validate validate;

    if (!has_subkey_ttls(entry))
        return;
    lifetimes = entry_subkey_ttls(entry);
    assert((entry->flags & ENTRY_EXPIRES) != 0 && entry->type != TYPE_STRING);
    assert(deadlines_count(&lifetimes->members) != 0);
    assert(lifetimes->due_ms == MIN(deadlines_first_ms(&lifetimes->members),
                                    lifetimes->key_ms == EXPIRE_NEVER ? INT64_MAX : lifetimes->key_ms));
    deadlines_validate(&lifetimes->members);
    validate = (struct validate){store->types[entry->type].ops->members, entry_value(entry)};
    deadlines_each_due(&lifetimes->members, DEADLINE_NONE, validate_one, &validate);
}
