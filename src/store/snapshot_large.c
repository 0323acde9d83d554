#include "store/snapshot_large.h"

#include "base/assert.h"
#include "base/mem.h"
#include "data/undo.h"
#include "store/lazyfree.h"
#include "store/snapshot_live_priv.h"
#include "store/subkey_ttl_priv.h"
#include "store/undo_priv.h"

enum { WATCHES = VALUE_LOGS_MOST + 1, MEMORY_SAMPLES = 5 };

struct large {
    const struct value_ops *ops;                    /* const */
    uint64_t number;                                /* const: no other one has or had it */
    struct value value;                             /* const but for what is in it */
    const struct stripe *_Atomic stripe;            /* atomic: written under it and `lock`; NULL: see large_take */
    struct former *formers[LARGE_USES];             /* the rest: guarded by the stripe */
    struct subkey_ttls *lifetimes;                  /* of the value, now; NULL: no member has a deadline */
    struct former_deadlines *deadlines[LARGE_USES]; /* NULL: no member had one */
    uint64_t noted_bytes[LARGE_USES];               /* of memory, of which was told */
    uint64_t taken_bytes;                           /* of the value, once it is the snapshots' */
    unsigned users;                                 /* guarded by `lock`: how many formers there are */
};

/* A change of this thread that watches a value. A command that changes nothing just leaves its change: then it watches
 * until the command's stripes are released. */
struct watch {
    struct value_log log; /* data NULL: it watches nothing */
    const struct change *change;
    const struct access *access;
    uint64_t number; /* of the large value */
};
static _Thread_local struct watch watches[WATCHES]; /* global: a value does not know who changes it */

static uint64_t hash_of_data(const void *data)
{
    return (uint64_t)(uintptr_t)data * UINT64_C(0x9E3779B97F4A7C15);
}

static uint64_t hash_of(const void *item)
{
    return hash_of_data(((const struct large *)item)->value.data);
}

static bool matches(const void *item, const void *data)
{
    return ((const struct large *)item)->value.data == data;
}

static uint64_t *slot_of(struct larges *larges, const void *data)
{
    spinlock_assert_held(&larges->lock);
    return table_find_slot(&larges->by_data, hash_of_data(data), matches, data);
}

static struct large *find(struct larges *larges, const void *data)
{
    struct large *large = NULL;
    const uint64_t *slot;

    spinlock_acquire(&larges->lock);
    slot = slot_of(larges, data);
    if (slot != NULL)
        large = table_slot_item(slot);
    spinlock_release(&larges->lock);
    return large;
}

void larges_init(struct larges *larges, void (*kept)(struct store *store, unsigned use, int64_t bytes))
{
    spinlock_init(&larges->lock, LOCK_LARGE);
    larges->kept = kept;
}

void larges_fini(struct larges *larges)
{
    spinlock_acquire(&larges->lock);
    assert(table_count(&larges->by_data) == 0);
    table_clear(&larges->by_data, NULL, NULL);
    spinlock_release(&larges->lock);
}

bool large_suits(const struct store *store, const struct entry *entry)
{
    const struct value_ops *ops = store->types[entry->type].ops;

    return entry->type != TYPE_STRING && former_suits(ops, entry_value(entry)) &&
           ops->free_effort(entry_value(entry)) >= LARGE_EFFORT;
}

/* What it takes for the use has become more, or less. */
static void note_bytes(struct store *store, struct large *large, unsigned use, uint64_t bytes)
{
    const int64_t more = (int64_t)(bytes - large->noted_bytes[use]);

    large->noted_bytes[use] = bytes;
    if (more != 0)
        live_larges(store)->kept(store, use, more);
}

static void note_former_bytes(struct store *store, struct large *large, unsigned use)
{
    uint64_t bytes = large->formers[use]->bytes + large->taken_bytes;

    if (large->deadlines[use] != NULL)
        bytes += former_deadlines_bytes(large->deadlines[use]);
    note_bytes(store, large, use, bytes);
}

static const struct deadlines *deadlines_of(const struct large *large)
{
    return large->lifetimes != NULL ? &large->lifetimes->members : NULL;
}

struct large *large_use(struct store *store, const struct stripe *stripe, const struct entry *entry, unsigned use)
{
    static const struct deadlines no_deadlines;
    struct larges *larges = live_larges(store);
    const struct value value = entry_value(entry);
    struct large *large;
    uint64_t *slot;

    stripe_assert_held(stripe);
    spinlock_acquire(&larges->lock);
    slot = slot_of(larges, value.data);
    if (slot != NULL) {
        large = table_slot_item(slot);
        large->users++;
    } else {
        large = mem_alloc_zero(sizeof(*large));
        large->ops = store->types[entry->type].ops;
        large->value = value;
        large->users = 1;
        large->number = ++larges->last_number;
        large->lifetimes = (entry->flags & ENTRY_MEMBERS) != 0 ? entry_subkey_ttls(entry) : NULL;
        atomic_store_explicit(&large->stripe, stripe, memory_order_relaxed);
        table_insert(&larges->by_data, hash_of_data(value.data), large, hash_of);
        atomic_fetch_add_explicit(&store->large_count, 1, memory_order_relaxed);
    }
    spinlock_release(&larges->lock);
    assert(large->formers[use] == NULL && large_stripe(large) == stripe);
    assert(large->lifetimes == ((entry->flags & ENTRY_MEMBERS) != 0 ? entry_subkey_ttls(entry) : NULL));
    large->formers[use] = former_create(large->ops, value);
    if (large->lifetimes != NULL)
        large->deadlines[use] = former_deadlines_create(&large->lifetimes->members);
    else if (use >= LARGE_EARLIER) /* earlier there may have been some */
        large->deadlines[use] = former_deadlines_create(&no_deadlines);
    note_former_bytes(store, large, use);
    return large;
}

/* ------------------------------------------------------------------------------------------------------ commands -- */

/* What was changed is kept. */
static void keep(struct store *store, struct large *large, struct slice steps)
{
    for (unsigned i = 0; i < LARGE_USES; i++) {
        if (large->formers[i] == NULL)
            continue;
        former_keep(large->formers[i], large->value, steps);
        note_former_bytes(store, large, i);
    }
}

static void end_watch(struct store *store, struct watch *watch)
{
    struct large *large = find(live_larges(store), watch->log.data);

    value_log_ignore(&watch->log);
    if (large != NULL)
        keep(store, large, buffer_slice(&watch->log.steps));
    buffer_fini(&watch->log.steps);
}

/* After the release of stripes: changes that were left did not change anything. */
static void drop_watches(struct access *access)
{
    for (unsigned i = 0; i < WATCHES; i++) {
        if (watches[i].access != access)
            continue;
        value_log_ignore(&watches[i].log);
        buffer_fini(&watches[i].log.steps); /* a value that no snapshot needs any more may have changed */
        watches[i].access = NULL;
    }
}

/* The one that watches the value already, or a free one: the thread's list of watched values is shorter. */
static struct watch *watch_for(const void *data)
{
    struct watch *free_one = NULL;

    for (unsigned i = 0; i < WATCHES; i++) {
        if (watches[i].log.data == data)
            return &watches[i];
        if (watches[i].log.data == NULL)
            free_one = &watches[i];
    }
    assert(free_one != NULL);
    return free_one;
}

static bool watches_by(const struct access *access)
{
    for (unsigned i = 0; i < WATCHES; i++) {
        if (watches[i].access == access)
            return true;
    }
    return false;
}

void large_watch_slow(const struct change *change)
{
    const struct entry *entry = change_entry(change);
    struct watch *watch;
    struct large *large;

    stripe_assert_held(change->stripe);
    if (entry == NULL || entry->type == TYPE_STRING)
        return;
    large = find(live_larges(change->access->store), entry_value(entry).data);
    if (large == NULL)
        return;
    assert(large_stripe(large) == change->stripe);
    if (!watches_by(change->access))
        lazyfree_call(change->access, drop_watches);
    watch = watch_for(large->value.data);
    if (watch->number != large->number)
        buffer_clear(&watch->log.steps); /* of a time when it was not listed */
    watch->number = large->number;
    watch->change = change;
    watch->access = change->access;
    watch->log.ignored = large->ops->former->ignored;
    value_log_watch(&watch->log, large->value.data);
}

void large_unwatch(const struct change *change)
{
    for (unsigned i = 0; i < WATCHES; i++) {
        if (watches[i].log.data != NULL && watches[i].change == change)
            end_watch(change->access->store, &watches[i]);
    }
}

void large_move_slow(const struct change *from, const struct change *to)
{
    const struct entry *entry = table_slot_item(from->slot);
    struct larges *larges = live_larges(from->access->store);
    const uint64_t *slot;

    stripe_assert_held(from->stripe);
    stripe_assert_held(to->stripe);
    if (entry->type == TYPE_STRING)
        return;
    spinlock_acquire(&larges->lock);
    slot = slot_of(larges, entry_value(entry).data);
    if (slot != NULL)
        atomic_store_explicit(&((struct large *)table_slot_item(slot))->stripe, to->stripe, memory_order_release);
    spinlock_release(&larges->lock);
}

void large_note_deadline_slow(struct store *store, struct value value, struct slice member, int64_t before_ms)
{
    struct large *large = find(live_larges(store), value.data);

    if (large == NULL)
        return;
    stripe_assert_held(large_stripe(large));
    for (unsigned i = 0; i < LARGE_USES; i++) {
        if (large->deadlines[i] == NULL)
            continue;
        former_deadlines_keep(large->deadlines[i], member, before_ms != EXPIRE_NEVER ? before_ms : DEADLINE_NONE);
        note_former_bytes(store, large, i);
    }
}

void large_note_table_slow(struct store *store, struct value value, struct subkey_ttls *lifetimes)
{
    struct large *large = find(live_larges(store), value.data);

    if (large != NULL) {
        stripe_assert_held(large_stripe(large));
        large->lifetimes = lifetimes;
    }
}

bool large_take_slow(struct store *store, struct value value)
{
    struct larges *larges = live_larges(store);
    uint64_t *slot;

    for (unsigned i = 0; i < WATCHES; i++) { /* of its last change */
        if (watches[i].log.data == value.data)
            end_watch(store, &watches[i]);
    }
    spinlock_acquire(&larges->lock);
    slot = slot_of(larges, value.data);
    if (slot != NULL) {
        struct large *large = table_remove(&larges->by_data, hash_of_data(value.data), slot);

        large->taken_bytes = large->ops->memory_bytes(value, MEMORY_SAMPLES);
        if (large->lifetimes != NULL)
            large->taken_bytes += deadlines_memory_bytes(&large->lifetimes->members, MEMORY_SAMPLES);
        for (unsigned i = 0; i < LARGE_USES; i++) {
            if (large->formers[i] == NULL)
                continue;
            large->formers[i]->is_taken = true;
            note_former_bytes(store, large, i);
        }
        atomic_fetch_sub_explicit(&store->large_count, 1, memory_order_relaxed);
        atomic_store_explicit(&large->stripe, NULL, memory_order_release);
    }
    spinlock_release(&larges->lock);
    return slot != NULL;
}

bool large_is_listed(struct store *store, struct value value)
{
    return larges_exist(store) && find(live_larges(store), value.data) != NULL;
}

/* --------------------------------------------------------------------------------------------------- the thread -- */

const struct stripe *large_stripe(const struct large *large)
{
    return atomic_load_explicit(&((struct large *)(uintptr_t)large)->stripe, memory_order_acquire);
}

static void assert_owned(const struct large *large)
{
    const struct stripe *stripe = large_stripe(large);

    if (stripe != NULL)
        stripe_assert_held(stripe);
}

static void take_back(struct large *large, unsigned use, const struct value_step *step)
{
    const int64_t expire_ms = (int64_t)step->a;

    if (step->kind < VALUE_STEP_OWNERS)
        former_take_back(large->formers[use], large->value, step);
    else if (step->kind == UNDO_STEP_MEMBER_DEADLINE)
        former_deadlines_take_back(large->deadlines[use], deadlines_of(large), step->first,
                                   expire_ms != EXPIRE_NEVER ? expire_ms : DEADLINE_NONE);
    else
        assert(step->kind == UNDO_STEP_DEADLINE); /* the key's */
}

void large_take_back(struct store *store, struct large *large, unsigned use, struct slice *steps, uint64_t most)
{
    struct value_step step;

    assert(use >= LARGE_EARLIER);
    assert_owned(large);
    while (most-- != 0 && value_steps_take(steps, &step))
        take_back(large, use, &step);
    note_former_bytes(store, large, use);
}

uint64_t large_count(const struct large *large, unsigned use)
{
    return large->formers[use]->count;
}

int64_t large_first_ms(const struct large *large, unsigned use)
{
    const struct former_deadlines *deadlines = large->deadlines[use];

    const int64_t first_ms = deadlines != NULL ? former_deadlines_first_ms(deadlines) : DEADLINE_NONE;

    return first_ms != DEADLINE_NONE ? first_ms : EXPIRE_NEVER;
}

struct value large_rest(const struct large *large, unsigned use)
{
    return former_rest(large->formers[use]);
}

struct giving {
    const struct former_deadlines *former; /* NULL: no deadlines */
    const struct deadlines *now;
    large_fn fn;
    void *context;
};

static void give_element(const struct former_element *element, void *context)
{
    const struct giving *giving = context;
    int64_t expire_ms = DEADLINE_NONE;

    if (giving->former != NULL)
        expire_ms = former_deadlines_find(giving->former, giving->now, element->first);
    giving->fn(element, expire_ms != DEADLINE_NONE ? expire_ms : EXPIRE_NEVER, giving->context);
}

bool large_prepare(struct large *large, unsigned use, uint64_t most)
{
    assert_owned(large);
    return former_prepare(large->formers[use], large->value, most);
}

bool large_give(struct store *store, struct large *large, unsigned use, bool with_deadlines, uint64_t most, large_fn fn,
                void *context)
{
    struct giving giving = {with_deadlines ? large->deadlines[use] : NULL, deadlines_of(large), fn, context};
    bool more;

    assert_owned(large);
    more = former_give(large->formers[use], large->value, most, give_element, &giving);
    note_former_bytes(store, large, use);
    return more;
}

bool large_give_deadlines(struct large *large, unsigned use, uint64_t most, deadline_fn fn, void *context)
{
    assert_owned(large);
    return former_deadlines_give(large->deadlines[use], deadlines_of(large), most, fn, context);
}

struct large_remains large_leave(struct store *store, struct large *large, unsigned use)
{
    struct larges *larges = live_larges(store);
    struct large_remains remains = {.former = large->formers[use], .deadlines = large->deadlines[use]};
    bool is_last;

    assert_owned(large);
    if (large_stripe(large) != NULL)
        former_detach(remains.former);
    spinlock_acquire(&larges->lock);
    note_bytes(store, large, use, 0);
    large->formers[use] = NULL;
    large->deadlines[use] = NULL;
    is_last = --large->users == 0;
    if (is_last && large_stripe(large) != NULL) {
        (void)table_remove(&larges->by_data, hash_of(large), slot_of(larges, large->value.data));
        atomic_fetch_sub_explicit(&store->large_count, 1, memory_order_relaxed);
    } else if (is_last) {
        remains.value = large->value;
        remains.lifetimes = large->lifetimes;
        remains.destroy = large->ops->destroy;
    }
    spinlock_release(&larges->lock);
    if (is_last)
        mem_free(large);
    return remains;
}

void large_free(struct large_remains *remains)
{
    former_destroy(&remains->former);
    former_deadlines_destroy(&remains->deadlines);
    if (remains->value.data != NULL)
        remains->destroy(remains->value);
    if (remains->lifetimes != NULL)
        subkey_ttl_free(remains->lifetimes);
    *remains = (struct large_remains){.lifetimes = NULL};
}
