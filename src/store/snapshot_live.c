#include "store/snapshot_live.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/mpsc.h"
#include "base/thread.h"
#include "store/access_priv.h"
#include "store/entry_copy.h"
#include "store/lazyfree.h"
#include "store/lookup.h"
#include "store/snapshot_live_priv.h"
#include "store/subkey_ttl_priv.h"
#include "store/window.h"

#include <errno.h>
#include <semaphore.h>
#include <time.h>

enum {
    PIECE_KEYS = 64,             /* keys that are visited while a stripe is held */
    SCAN_KEYS = 8,               /* keys between two looks at what they have cost */
    PIECE_EFFORT = LARGE_EFFORT, /* elements, or this many blocks of a value, in such a piece */
    EFFORT_BYTES = 256,
    LARGE_PIECE = 256, /* elements of a large value that are visited while its stripe is held */
    QUEUE_PIECE = 256, /* old states that are visited before the thread rests */
    SLEEP_NS = 50 * 1000
};

#define PLACE_WRITTEN UINT64_MAX /* all of the stripe is written, or no snapshot runs */
#define PLACE_MASK ((UINT64_C(1) << TABLE_SCAN_BITS) - 1)

/* A table that was taken out of the keyspace. */
struct left_table {
    struct table table; /* not owned: `release` frees it */
    _Atomic uint32_t references;
    uint64_t bytes; /* const: an estimate of what its keys take */
    void (*release)(void *argument);
    void *argument;
};

/* What was left for a snapshot: the state of a key, or a table. */
struct left {
    struct mpsc_node node;
    struct left *next;        /* of those that the thread took down itself */
    struct left_table *table; /* NULL: it is a key */
    uint64_t from;            /* of a table: what is below this place is written */
    struct large *large;      /* not NULL: the key's value; the entry's is not its own */
    struct long_use *string;  /* likewise, of a string */
    uint64_t bytes;           /* that it counts for; a large value, or long string, counts for itself */
    unsigned db;              /* as at the moment */
    unsigned use;             /* of the large value */
    struct entry entry;       /* of a key; last */
};

/* One of the snapshot's threads. It has each so many'th stripe, and what changes leave there. */
struct walker {
    struct live_snapshot *live; /* const */
    struct access access;       /* its time is the moment */
    struct store_counters counters;
    struct gate_member member;
    sem_t gate_opens;
    struct mpsc left;    /* popped by walker (index % count), whose stripes these are */
    uint64_t entered_us; /* its own: since when it is in the gate, or holds the stripe */
    /* Of all but the first: */
    struct thread thread;
    const struct snapshot_visitor *visitor; /* const while it runs */
    unsigned number, count;                 /* const while it runs: which of how many */
    bool is_whole;                          /* its own, until it is joined */
};

struct live_snapshot {
    struct snapshot snapshot;     /* const while it runs */
    struct store *store;          /* const */
    unsigned number;              /* const: which of them it is */
    unsigned mark;                /* const: its bit in the flags of entries */
    uint64_t *places;             /* by stripe, which guards it: places below it are written */
    unsigned *db_then, *db_now;   /* by database: where it was at the moment, where it is; changed at the gate */
    struct database_totals *then; /* by database; const while it runs */
    unsigned database_bound;      /* const while it runs */
    unsigned swapped_bound;       /* databases from here on are where they were; changed at the gate */
    uint64_t kept_most;           /* const while it runs */
    struct walker walkers[SNAPSHOT_THREADS_MOST];
    unsigned walker_count;                         /* const while it runs */
    bool is_walked;                                /* the first thread's */
    _Atomic bool runs;                             /* atomic: set with the gate owned, cleared inside of it */
    struct larges larges;                          /* likewise of the first one for all */
    struct long_strings long_strings;              /* likewise */
    struct spinlock crowd_lock;                    /* of the first one for all; rank LOCK_REGISTRY */
    unsigned crowded_count GUARDED_BY(crowd_lock); /* likewise: snapshots that have a crowd */
    uint64_t crowded_since_us;                     /* under that lock */
    _Atomic bool is_crowded;                       /* atomic: written under that lock */
    _Atomic uint64_t table_bytes;                  /* likewise: of tables that are kept; atomic: relaxed */
    uint64_t key_bytes;                            /* likewise: of a key of such a table; changed at the gate */
    _Atomic bool is_cancelled;                     /* atomic: relaxed */
    _Atomic uint64_t kept_bytes, kept_peak_bytes, kept_keys, held_us, waited_us, slowed_us; /* atomic: relaxed */
};

static struct live_snapshot *all_of(const struct store *store)
{
    return atomic_load_explicit(&((struct store *)(uintptr_t)store)->live, memory_order_acquire);
}

struct larges *live_larges(const struct store *store)
{
    return &all_of(store)->larges;
}

struct long_strings *live_long_strings(const struct store *store)
{
    return &all_of(store)->long_strings;
}

static uint64_t load(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

static void raise_to(_Atomic uint64_t *number, uint64_t value)
{
    uint64_t known = load(number);

    while (value > known &&
           !atomic_compare_exchange_weak_explicit(number, &known, value, memory_order_relaxed, memory_order_relaxed))
        ;
}

/* ------------------------------------------------------------------------------------------------- what is left -- */

static uint64_t place_of(unsigned db, uint64_t hash)
{
    return (uint64_t)db << TABLE_SCAN_BITS | table_scan_place(hash);
}

/* Writers wait while there is a crowd for any of the snapshots. */
static void set_crowded(struct live_snapshot *live, bool is_crowded)
{
    struct live_snapshot *first = all_of(live->store);
    bool is_over = false;

    spinlock_acquire(&first->crowd_lock);
    if (atomic_load_explicit(&live->is_crowded, memory_order_relaxed) != is_crowded) {
        const unsigned count = is_crowded ? ++first->crowded_count : --first->crowded_count;

        atomic_store_explicit(&live->is_crowded, is_crowded, memory_order_relaxed);
        is_over = count == 0;
        if (is_crowded)
            live->crowded_since_us = clock_monotonic_us();
        else
            atomic_fetch_add_explicit(&live->slowed_us, clock_monotonic_us() - live->crowded_since_us,
                                      memory_order_relaxed);
        if (count == (is_crowded ? 1 : 0) && live->store->on_crowd != NULL)
            live->store->on_crowd(is_crowded);
    }
    spinlock_release(&first->crowd_lock);
    if (is_over && live->store->on_room != NULL)
        live->store->on_room();
}

/* Any thread, also under a stripe. */
static void note_crowd(struct live_snapshot *live)
{
    if (UNLIKELY(live->kept_most != 0 && load(&live->kept_bytes) > live->kept_most) &&
        !atomic_load_explicit(&live->is_crowded, memory_order_relaxed))
        set_crowded(live, true);
}

/* A thread of the snapshot, under no lock: writers go on when an eighth of the bound is free again. */
static void note_room(struct live_snapshot *live, bool is_over)
{
    if (UNLIKELY(atomic_load_explicit(&live->is_crowded, memory_order_relaxed)) &&
        (is_over || load(&live->kept_bytes) <= live->kept_most / 8 * 7))
        set_crowded(live, false);
}

/* So much more is kept, or less. Any thread, also under a stripe. */
static void count_kept(struct live_snapshot *live, int64_t more)
{
    const uint64_t bytes = atomic_fetch_add_explicit(&live->kept_bytes, (uint64_t)more, memory_order_relaxed) +
                           (uint64_t)more;

    if (more <= 0)
        return;
    raise_to(&live->kept_peak_bytes, bytes);
    note_crowd(live);
}

static void count_large(struct store *store, unsigned use, int64_t more)
{
    count_kept(&all_of(store)[use % LARGE_SNAPSHOTS], more);
}

/* For whoever has the stripe, which is held, or the gate owned. */
static void push(struct live_snapshot *live, const struct stripe *stripe, struct left *left)
{
    atomic_fetch_add_explicit(&live->kept_keys, 1, memory_order_relaxed);
    count_kept(live, (int64_t)left->bytes);
    mpsc_push(&live->walkers[stripe->index % live->walker_count].left, &left->node);
}

/* A copy of the entry without its value. */
static struct left *left_create(const struct entry *entry, unsigned db)
{
    const size_t size = entry_copy_bytes(entry);
    struct left *left = mem_alloc(offsetof(struct left, entry) + size);

    left->table = NULL;
    left->large = NULL;
    left->string = NULL;
    left->bytes = 0;
    left->db = db;
    memcpy(&left->entry, entry, size);
    return left;
}

static void use_large(struct left *left, struct live_snapshot *live, const struct stripe *stripe,
                      const struct entry *entry, unsigned use)
{
    left->use = use;
    left->large = large_use(live->store, stripe, entry, use);
    entry_word_store(&left->entry, ENTRY_WORD, (uint64_t)(uintptr_t)large_rest(left->large, use).data);
    if (UNLIKELY((entry->flags & ENTRY_MEMBERS) != 0))
        entry_copy_key_deadline(entry, &left->entry);
}

static void use_string(struct left *left, struct live_snapshot *live, const struct stripe *stripe,
                       const struct entry *entry)
{
    left->string = long_string_use(live->store, stripe, entry, live->number);
    entry_word_store(&left->entry, ENTRY_WORD, 0);
}

/* The stripe is held. */
static void leave_entry(struct live_snapshot *live, const struct stripe *stripe, unsigned db, const struct entry *entry)
{
    struct left *left = left_create(entry, db);

    left->bytes = mem_usable(left);
    if (UNLIKELY(large_suits(live->store, entry))) {
        use_large(left, live, stripe, entry, live->number);
    } else if (UNLIKELY(long_string_suits(entry))) {
        use_string(left, live, stripe, entry);
    } else {
        entry_copy_value(live->store, entry, &left->entry);
        if (UNLIKELY((entry->flags & ENTRY_WORD) != 0 && !entry_is_int(entry)))
            left->bytes = store_entry_bytes(live->store, entry, 5);
    }
    push(live, stripe, left);
}

static_assert(ENTRY_MARKS == (int)LARGE_SNAPSHOTS, "a former value for each of them");

static void left_table_release(struct store *store, struct left_table **handle)
{
    struct left_table *table = *handle;

    *handle = NULL;
    if (atomic_fetch_sub_explicit(&table->references, 1, memory_order_acq_rel) != 1)
        return;
    table->release(table->argument);
    atomic_fetch_sub_explicit(&all_of(store)->table_bytes, table->bytes, memory_order_relaxed);
    mem_free(table);
}

static void left_free(struct walker *walker, struct left *left)
{
    count_kept(walker->live, -(int64_t)left->bytes);
    if (left->table != NULL)
        left_table_release(walker->live->store, &left->table);
    else if (left->large == NULL)
        lazyfree_of_value(&walker->access, &left->entry, FREE_SERVER_DEL);
    mem_free(left);
    lazyfree_after_release(&walker->access);
    note_room(walker->live, false);
}

/* ---------------------------------------------------------------------------------------------- notes of changes -- */

static bool is_written(const struct live_snapshot *live, const struct stripe *stripe, unsigned db, uint64_t hash)
{
    const uint64_t place = live->places[stripe->index];

    return LIKELY(place == PLACE_WRITTEN) || place_of(live->db_then[db], hash) < place;
}

void live_note_version(struct change *change)
{
    struct live_snapshot *live = all_of(change->access->store);
    struct entry *entry = change_entry(change);

    access_assert_holds(change->access, change->stripe->index);
    window_leave(change->access, change->stripe->index);
    for (unsigned i = 0; entry != NULL && i < ENTRY_MARKS; i++, live++) {
        if ((entry->flags & live->mark) != 0 || is_written(live, change->stripe, change->db, change->key->hash))
            continue;
        if (snapshot_chooses(live->snapshot.choice, entry))
            leave_entry(live, change->stripe, live->db_then[change->db], entry);
        entry->flags |= (uint8_t)live->mark;
    }
}

void live_note_before(struct change *change)
{
    access_assert_holds(change->access, change->stripe->index);
    live_note_version(change);
    large_watch(change);
}

void live_note_after(const struct change *change)
{
    struct live_snapshot *live = all_of(change->access->store);
    struct entry *entry = change_entry(change);

    access_assert_holds(change->access, change->stripe->index);
    large_unwatch(change);
    for (unsigned i = 0; entry != NULL && i < ENTRY_MARKS; i++, live++) {
        if (!is_written(live, change->stripe, change->db, change->key->hash))
            entry->flags |= (uint8_t)live->mark;
    }
}

/* Their share of the memory, by number: what each of them takes is not known, and adding it up would take long. */
void live_note_flush(struct store *store)
{
    struct live_snapshot *all = all_of(store);
    uint64_t bytes, keys = 0;

    gate_assert_alone();
    if ((store_observed(store) & OBSERVE_SNAPSHOT) == 0)
        return;
    bytes = store->counted_bytes != NULL ? store->counted_bytes() : mem_used();
    for (unsigned db = 0; db < store_database_bound(store); db++)
        keys += store_key_count(store, db);
    all->key_bytes = keys != 0 ? bytes / keys : 0;
}

static struct left_table *left_table_create(struct store *store, const struct table *table,
                                            void (*release)(void *argument), void *argument)
{
    struct live_snapshot *all = all_of(store);
    struct left_table *left = mem_alloc_zero(sizeof(*left));

    left->table = *table;
    left->bytes = table_count(table) * all->key_bytes;
    left->release = release;
    left->argument = argument;
    atomic_fetch_add_explicit(&all->table_bytes, left->bytes, memory_order_relaxed);
    return left;
}

bool live_take_table(struct store *store, const struct stripe *stripe, unsigned db, const struct table *table,
                     void (*release)(void *argument), void *argument)
{
    struct live_snapshot *live = all_of(store);
    struct left_table *shared = NULL;

    gate_assert_alone();
    for (unsigned i = 0; live != NULL && i < ENTRY_MARKS; i++, live++) {
        const uint64_t place = live->places[stripe->index];
        struct left *left;

        if (place == PLACE_WRITTEN || place >> TABLE_SCAN_BITS > live->db_then[db])
            continue;
        if (shared == NULL)
            shared = left_table_create(store, table, release, argument);
        (void)atomic_fetch_add_explicit(&shared->references, 1, memory_order_relaxed);
        left = mem_alloc_zero(sizeof(*left));
        left->table = shared;
        left->db = live->db_then[db];
        left->from = place >> TABLE_SCAN_BITS == left->db ? place & PLACE_MASK : 0;
        push(live, stripe, left);
    }
    return shared != NULL;
}

void live_note_swap(struct store *store, unsigned a, unsigned b)
{
    struct live_snapshot *live = all_of(store);

    gate_assert_alone();
    for (unsigned i = 0; live != NULL && i < ENTRY_MARKS; i++, live++) {
        const unsigned then = live->db_then[a];

        live->db_then[a] = live->db_then[b];
        live->db_then[b] = then;
        live->swapped_bound = MAX(live->swapped_bound, MAX(a, b) + 1);
        live->db_now[live->db_then[a]] = a;
        live->db_now[live->db_then[b]] = b;
    }
}

void live_forsake(struct store *store)
{
    struct live_snapshot *live = all_of(store);

    gate_assert_alone();
    for (unsigned i = 0; live != NULL && i < ENTRY_MARKS; i++, live++) {
        live_snapshot_cancel(live);
        for (uint32_t stripe = 0; stripe <= store->stripe_mask; stripe++)
            live->places[stripe] = PLACE_WRITTEN;
    }
}

/* ------------------------------------------------------------------------------------------------------ visiting -- */

struct visit {
    struct live_snapshot *live;
    struct walker *walker;
    const struct stripe *stripe;            /* that is held */
    const struct snapshot_visitor *visitor; /* NULL: nothing is visited, but marks are taken away */
    unsigned db;                            /* as at the moment */
    uint64_t from;                          /* places below it are written: a scan may meet them again */
    uint64_t effort;
    uint32_t keys;
    struct left *taken, **taken_end; /* keys that were taken down under the lock */
    struct buffer elements;          /* of a large value, likewise */
};

static void show(const struct visit *visit, const struct entry *entry)
{
    struct access *access = &visit->walker->access;
    const struct snapshot_visitor *visitor = visit->visitor;

    if (!visitor->sees_expired && UNLIKELY(lookup_is_due(access, entry)))
        entry = access_shown(access, entry);
    if (entry != NULL)
        visitor->visit(access, visit->db, entry, visitor->context);
}

static uint64_t effort_of(const struct store *store, const struct entry *entry)
{
    const struct blob *blob = entry_blob(entry);

    if (blob != NULL)
        return blob->size / EFFORT_BYTES;
    return entry->type != TYPE_STRING ? store->types[entry->type].ops->free_effort(entry_value(entry)) : 0;
}

/* Others wait for the stripe, so the entry is visited when it is released. */
static void take_down(struct visit *visit, const struct entry *entry)
{
    struct left *left = left_create(entry, visit->db);

    entry_copy_value(visit->live->store, entry, &left->entry);
    left->next = NULL;
    *visit->taken_end = left;
    visit->taken_end = &left->next;
}

/* Under the stripe's lock. */
static void meet(void *item, void *context)
{
    struct visit *visit = context;
    struct live_snapshot *live = visit->live;
    struct entry *entry = item;
    uint64_t effort;

    if ((entry->flags & live->mark) != 0) {
        entry->flags &= (uint8_t)~live->mark;
        return;
    }
    if (visit->visitor == NULL || UNLIKELY(table_scan_place(lookup_entry_hash(entry)) < visit->from))
        return;
    visit->keys++;
    if (!snapshot_chooses(live->snapshot.choice, entry))
        return;
    effort = effort_of(live->store, entry);
    visit->effort += effort;
    if (UNLIKELY(effort >= PIECE_EFFORT))
        leave_entry(live, visit->stripe, visit->db, entry);
    else
        take_down(visit, entry);
}

/* Enters the gate, and takes the stripe. Never waits for a stripe inside of the gate: who holds it may wait for the
 * gate. */
static void enter(struct walker *walker, const struct stripe *held)
{
    struct stripe *stripe = (struct stripe *)(uintptr_t)held;
    const struct timespec pause = {.tv_nsec = SLEEP_NS};

    spinlock_assert_may_sleep();
    for (;;) {
        while (!gate_enter(&walker->member)) {
            while (sem_wait(&walker->gate_opens) != 0)
                assert(errno == EINTR);
        }
        if (stripe == NULL || spinlock_acquire_bounded(&stripe->lock, ACCESS_LOCK_SPINS))
            break;
        gate_leave(&walker->member);
        (void)nanosleep(&pause, NULL);
    }
    walker->entered_us = clock_monotonic_us();
}

/* Before it leaves. Commands that found the stripe held have asked to be woken, and who wants the gate has closed it:
 * they have waited for so long at most. */
static void note_hold(struct walker *walker, const struct stripe *held)
{
    struct live_snapshot *live = walker->live;
    const uint64_t took_us = clock_monotonic_us() - walker->entered_us;

    raise_to(&live->held_us, took_us);
    if ((held != NULL && stripe_has_waiters(held)) || gate_is_closed(walker->member.gate))
        raise_to(&live->waited_us, took_us);
}

static void leave(struct walker *walker, const struct stripe *held)
{
    note_hold(walker, held);
    if (held != NULL)
        stripe_release(walker->live->store, (struct stripe *)(uintptr_t)held);
    gate_leave(&walker->member);
    lazyfree_after_release(&walker->access);
}

/* The next keys of the stripe, which is held. */
static void walk_piece(struct visit *visit, struct stripe *stripe)
{
    struct live_snapshot *live = visit->live;
    uint64_t *place = &live->places[stripe->index];

    visit->stripe = stripe;
    visit->keys = 0;
    visit->effort = 0;
    while (*place != PLACE_WRITTEN && visit->keys < PIECE_KEYS && visit->effort < PIECE_EFFORT) {
        const unsigned db = (unsigned)(*place >> TABLE_SCAN_BITS);
        const struct stripe_db *keys;
        uint64_t next = 0;

        if (db >= MAX(store_database_bound(live->store), live->swapped_bound)) {
            *place = PLACE_WRITTEN;
            break;
        }
        keys = stripe_db(stripe, live->db_now[db]);
        visit->db = db;
        visit->from = *place & PLACE_MASK;
        if (keys != NULL && table_count(&keys->keys) != 0)
            next = table_scan(&keys->keys, visit->from, SCAN_KEYS, meet, visit);
        *place = next != 0 ? (uint64_t)db << TABLE_SCAN_BITS | next : (uint64_t)(db + 1) << TABLE_SCAN_BITS;
    }
}

/* False: the rest is not wanted. */
static bool rest(struct visit *visit)
{
    const struct snapshot_visitor *visitor = visit->visitor;

    if (visitor != NULL &&
        ((visitor->rest != NULL && !visitor->rest(visitor->context)) || live_snapshot_is_cancelled(visit->live)))
        visit->visitor = NULL;
    return visit->visitor != NULL;
}

static void meet_left(void *item, void *context)
{
    struct visit *visit = context;
    const struct entry *entry = item;

    if ((entry->flags & visit->live->mark) == 0 && table_scan_place(lookup_entry_hash(entry)) >= visit->from &&
        snapshot_chooses(visit->live->snapshot.choice, entry))
        show(visit, entry);
}

static void visit_table(struct visit *visit, const struct left *left)
{
    uint64_t next;

    visit->db = left->db;
    visit->from = left->from;
    do {
        next = table_scan(&left->table->table, visit->from, PIECE_KEYS, meet_left, visit);
        visit->from = next;
    } while (rest(visit) && next != 0);
}

/* Takes the stripe that guards the value; NULL: nobody changes it any more. */
static const struct stripe *enter_large(struct walker *walker, const struct large *large)
{
    for (;;) {
        const struct stripe *stripe = large_stripe(large);

        if (stripe == NULL)
            return NULL;
        enter(walker, stripe);
        if (large_stripe(large) == stripe)
            return stripe;
        leave(walker, stripe);
    }
}

struct element_head {
    size_t first_size, second_size;
    double score;
    unsigned part;
    int64_t expire_ms;
};

/* Under the stripe's lock. */
static void take_element(const struct former_element *element, int64_t expire_ms, void *context)
{
    struct buffer *elements = context;
    const struct element_head head = {element->first.size, element->second.size, element->score, element->part,
                                      expire_ms};

    buffer_append(elements, &head, sizeof(head));
    buffer_append_slice(elements, element->first);
    buffer_append_slice(elements, element->second);
}

static void take_deadline(struct slice member, int64_t expire_ms, void *context)
{
    take_element(&(struct former_element){.first = member}, expire_ms, context);
}

/* What a piece has. */
enum piece { PIECE_ELEMENTS, PIECE_ELEMENTS_WITH_DEADLINES, PIECE_DEADLINES };

static void visit_piece(const struct visit *visit, enum piece piece)
{
    const struct snapshot_visitor *visitor = visit->visitor;
    const char *at = visit->elements.data, *end = at + visit->elements.size;

    while (at != end) {
        struct element_head head;
        struct former_element element;

        memcpy(&head, at, sizeof(head));
        at += sizeof(head);
        element = (struct former_element){slice_make(at, head.first_size),
                                          slice_make(at + head.first_size, head.second_size), head.score, head.part};
        at += head.first_size + head.second_size;
        if (piece == PIECE_DEADLINES)
            visitor->deadline(element.first, head.expire_ms, visitor->context);
        else
            visitor->element(&element, head.expire_ms, visitor->context);
    }
}

static bool take_piece(struct visit *visit, const struct left *left, enum piece piece)
{
    buffer_clear(&visit->elements);
    if (piece == PIECE_DEADLINES)
        return large_give_deadlines(left->large, left->use, LARGE_PIECE, take_deadline, &visit->elements);
    return large_give(visit->live->store, left->large, left->use, piece == PIECE_ELEMENTS_WITH_DEADLINES, LARGE_PIECE,
                      take_element, &visit->elements);
}

static bool prepare_piece(const struct visit *visit, const struct left *left)
{
    const struct stripe *stripe = enter_large(visit->walker, left->large);
    const bool more = large_prepare(left->large, left->use, LARGE_PIECE);

    if (stripe != NULL)
        leave(visit->walker, stripe);
    return more;
}

/* Then the rest of the value is complete. False: the visitor does not want more. */
static bool prepare_all(struct visit *visit, const struct left *left)
{
    while (prepare_piece(visit, left)) {
        if (!rest(visit))
            return false;
    }
    return true;
}

/* The next piece of the value. False: that was all of it. */
static bool give_piece(struct visit *visit, const struct left *left, enum piece piece)
{
    const struct stripe *stripe = enter_large(visit->walker, left->large);
    const bool more = take_piece(visit, left, piece);

    if (stripe != NULL)
        leave(visit->walker, stripe);
    visit_piece(visit, piece);
    return more;
}

/* False: the visitor does not want more. */
static bool give_all(struct visit *visit, const struct left *left, enum piece piece)
{
    while (rest(visit)) {
        if (!give_piece(visit, left, piece))
            return true;
    }
    return false;
}

/* The next piece of the string. False: that was all of it. */
static bool give_bytes(struct visit *visit, struct long_use *string)
{
    bool more;

    buffer_clear(&visit->elements);
    more = long_string_give(visit->live->store, string, &visit->elements);
    visit->visitor->element(&(struct former_element){.first = buffer_slice(&visit->elements)}, EXPIRE_NEVER,
                            visit->visitor->context);
    return more;
}

static bool give_string(struct visit *visit, struct long_use *string)
{
    while (rest(visit)) {
        if (!give_bytes(visit, string))
            return true;
    }
    return false;
}

static bool give_collection(struct visit *visit, const struct left *left, bool are_together, bool has_deadlines)
{
    return give_all(visit, left, are_together ? PIECE_ELEMENTS_WITH_DEADLINES : PIECE_ELEMENTS) &&
           (!has_deadlines || are_together || give_all(visit, left, PIECE_DEADLINES));
}

static void visit_large(struct visit *visit, const struct left *left)
{
    const struct snapshot_visitor *visitor = visit->visitor;
    const struct entry *entry = &left->entry;
    struct snapshot_value value;
    bool are_together, is_whole;

    if (!visitor->sees_expired && lookup_is_due(&visit->walker->access, entry))
        return;
    if (left->large != NULL && !prepare_all(visit, left))
        return;
    if (left->string != NULL)
        value = (struct snapshot_value){long_string_size(left->string), EXPIRE_NEVER};
    else
        value = (struct snapshot_value){large_count(left->large, left->use), large_first_ms(left->large, left->use)};
    are_together = visitor->begin(&visit->walker->access, left->db, entry, &value, visitor->context);
    if (left->string != NULL)
        is_whole = give_string(visit, left->string);
    else
        is_whole = give_collection(visit, left, are_together, value.first_ms != EXPIRE_NEVER);
    if (is_whole)
        visitor->end(visitor->context);
}

static void leave_large(struct walker *walker, const struct left *left)
{
    const struct stripe *stripe = enter_large(walker, left->large);
    struct large_remains remains = large_leave(walker->live->store, left->large, left->use);

    if (stripe != NULL)
        leave(walker, stripe);
    large_free(&remains);
}

static void leave_value(struct walker *walker, struct left *left)
{
    if (left->large != NULL)
        leave_large(walker, left);
    if (left->string != NULL)
        long_string_leave(walker->live->store, &left->string);
}

/* What was left so far in the stripes of one of the threads. Nobody waits. */
static void visit_left_of(struct visit *visit, struct mpsc *queue)
{
    struct mpsc_node *node;
    uint32_t count = 0;

    while ((node = mpsc_pop(queue)) != NULL) {
        struct left *left = container_of(node, struct left, node);

        visit->db = left->db;
        if (visit->visitor != NULL && left->table != NULL)
            visit_table(visit, left);
        else if (visit->visitor != NULL && (left->large != NULL || left->string != NULL))
            visit_large(visit, left);
        else if (visit->visitor != NULL)
            show(visit, &left->entry);
        leave_value(visit->walker, left);
        left_free(visit->walker, left);
        if (++count % QUEUE_PIECE == 0)
            (void)rest(visit);
    }
}

static void visit_left(struct visit *visit)
{
    const struct walker *walker = visit->walker;

    for (unsigned i = walker->number; i < visit->live->walker_count; i += walker->count)
        visit_left_of(visit, &visit->live->walkers[i].left);
}

static void visit_taken(struct visit *visit)
{
    for (struct left *left = visit->taken, *next; left != NULL; left = next) {
        next = left->next;
        visit->db = left->db;
        show(visit, &left->entry);
        left_free(visit->walker, left);
    }
}

static void walk_stripe(struct visit *visit, struct stripe *stripe)
{
    struct live_snapshot *live = visit->live;
    bool is_written;

    do {
        visit->taken = NULL;
        visit->taken_end = &visit->taken;
        enter(visit->walker, stripe);
        walk_piece(visit, stripe);
        is_written = live->places[stripe->index] == PLACE_WRITTEN;
        leave(visit->walker, stripe);
        visit_taken(visit);
        (void)rest(visit);
        visit_left(visit);
    } while (!is_written);
}

/* The stripes that it has, and what is left there. */
static bool walk(struct walker *walker)
{
    struct live_snapshot *live = walker->live;
    struct visit visit = {.live = live, .walker = walker, .visitor = walker->visitor};
    bool is_whole;

    for (unsigned i = walker->number; i < live->walker_count; i += walker->count) {
        for (uint32_t stripe = i; stripe <= live->store->stripe_mask; stripe += live->walker_count)
            walk_stripe(&visit, &live->store->stripes[stripe]);
    }
    visit_left(&visit); /* of the last stripe; no change leaves anything from here on */
    buffer_fini(&visit.elements);
    is_whole = rest(&visit);
    if (walker->visitor != NULL && walker->visitor->done != NULL)
        walker->visitor->done(walker->visitor->context);
    return is_whole;
}

static void run_walker(void *argument)
{
    struct walker *walker = argument;

    walker->access.lock_id = spinlock_self_id();
    walker->is_whole = walk(walker);
}

static bool live_each(struct snapshot *snapshot, const struct snapshot_visitor *visitors, unsigned count)
{
    struct live_snapshot *live = container_of(snapshot, struct live_snapshot, snapshot);
    bool is_whole;

    assert(!live->is_walked && count != 0 && count <= live->walker_count);
    assert(visitors == NULL || visitors->begin != NULL);
    live->is_walked = true;
    for (unsigned i = 0; i < count; i++) {
        struct walker *walker = &live->walkers[i];

        walker->visitor = visitors != NULL ? &visitors[i] : NULL;
        walker->number = i;
        walker->count = count;
        if (i != 0)
            thread_start(&walker->thread, "snapshot", run_walker, walker);
    }
    is_whole = walk(&live->walkers[0]);
    for (unsigned i = 1; i < count; i++) {
        thread_join(&live->walkers[i].thread);
        is_whole &= live->walkers[i].is_whole;
    }
    assert(load(&live->kept_bytes) == 0);
    return is_whole;
}

static bool live_each_stripe(struct snapshot *snapshot, const struct snapshot_holder *holder)
{
    struct live_snapshot *live = container_of(snapshot, struct live_snapshot, snapshot);
    struct walker *walker = &live->walkers[0];

    for (uint32_t i = 0; i <= live->store->stripe_mask; i++) {
        struct stripe *stripe = &live->store->stripes[i];

        enter(walker, stripe);
        holder->hold(&walker->access, i, holder->context);
        leave(walker, stripe);
        if (!holder->rest(holder->context))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------- values of earlier -- */

/* What leads back from the value at the moment, or from one that it has replaced, to the one that is wanted. */
struct live_earlier {
    struct left *left;
    struct buffer steps;
};

struct live_earlier *live_leave_earlier(struct live_snapshot *live, const struct stripe *stripe, unsigned db,
                                        const struct entry *entry, struct buffer *steps)
{
    struct live_earlier *earlier = mem_alloc(sizeof(*earlier));
    struct left *left = left_create(entry, db);

    stripe_assert_held(stripe);
    *earlier = (struct live_earlier){left, *steps};
    *steps = (struct buffer){0};
    left->bytes = mem_usable(left) + earlier->steps.capacity;
    if (entry->type == TYPE_STRING) {
        assert(earlier->steps.size == 0);
        use_string(left, live, stripe, entry);
    } else {
        assert(large_suits(live->store, entry));
        use_large(left, live, stripe, entry, LARGE_EARLIER + live->number);
    }
    atomic_fetch_add_explicit(&live->kept_keys, 1, memory_order_relaxed);
    count_kept(live, (int64_t)left->bytes);
    return earlier;
}

/* False: the visitor does not want it any more. */
static bool go_back(struct visit *visit, const struct live_earlier *earlier)
{
    struct slice steps = buffer_slice(&earlier->steps);

    while (steps.size != 0) {
        const struct stripe *stripe;

        if (!rest(visit))
            return false;
        stripe = enter_large(visit->walker, earlier->left->large);
        large_take_back(visit->live->store, earlier->left->large, earlier->left->use, &steps, LARGE_PIECE);
        if (stripe != NULL)
            leave(visit->walker, stripe);
    }
    return true;
}

void live_visit_earlier(struct live_snapshot *live, struct live_earlier **handle,
                        const struct snapshot_visitor *visitor)
{
    struct live_earlier *earlier = *handle;
    struct visit visit = {.live = live, .walker = &live->walkers[0], .visitor = visitor};

    *handle = NULL;
    assert(visitor == NULL || visitor->sees_expired);
    if (visitor != NULL && go_back(&visit, earlier))
        visit_large(&visit, earlier->left);
    leave_value(visit.walker, earlier->left);
    left_free(visit.walker, earlier->left);
    buffer_fini(&visit.elements);
    buffer_fini(&earlier->steps);
    mem_free(earlier);
}

struct live_snapshot *live_of_snapshot(struct snapshot *keys)
{
    assert(snapshot_is_live(keys));
    return container_of(keys, struct live_snapshot, snapshot);
}

static unsigned live_database_bound(const struct snapshot *snapshot)
{
    return container_of((struct snapshot *)(uintptr_t)snapshot, struct live_snapshot, snapshot)->database_bound;
}

static unsigned live_threads(const struct snapshot *snapshot)
{
    return container_of((struct snapshot *)(uintptr_t)snapshot, struct live_snapshot, snapshot)->walker_count;
}

static void live_totals(const struct snapshot *snapshot, unsigned db, struct database_totals *totals)
{
    *totals = container_of((struct snapshot *)(uintptr_t)snapshot, struct live_snapshot, snapshot)->then[db];
}

/* ------------------------------------------------------------------------------------------------- begin and end -- */

static void wake(void *context)
{
    (void)sem_post(&((struct walker *)context)->gate_opens);
}

static struct live_snapshot *create_all(struct store *store)
{
    struct live_snapshot *all = mem_alloc_zero(ENTRY_MARKS * sizeof(*all));
    const uint32_t stripe_count = store->stripe_mask + 1;

    for (unsigned i = 0; i < ENTRY_MARKS; i++) {
        struct live_snapshot *live = &all[i];

        live->store = store;
        live->number = i;
        live->mark = (unsigned)ENTRY_MARK << i;
        live->places = mem_alloc(stripe_count * sizeof(*live->places));
        for (uint32_t stripe = 0; stripe < stripe_count; stripe++)
            live->places[stripe] = PLACE_WRITTEN;
        live->db_then = mem_alloc_zero(store->database_count * sizeof(*live->db_then));
        live->db_now = mem_alloc_zero(store->database_count * sizeof(*live->db_now));
        live->then = mem_alloc_zero(store->database_count * sizeof(*live->then));
        for (unsigned n = 0; n < SNAPSHOT_THREADS_MOST; n++) {
            live->walkers[n].live = live;
            (void)sem_init(&live->walkers[n].gate_opens, 0, 0);
            mpsc_init(&live->walkers[n].left);
        }
        spinlock_init(&live->crowd_lock, LOCK_REGISTRY);
        larges_init(&live->larges, count_large);
        long_strings_init(&live->long_strings, count_large);
    }
    atomic_store_explicit(&store->live, all, memory_order_release);
    return all;
}

void live_destroy(struct store *store)
{
    struct live_snapshot *all = all_of(store);

    assert(all == NULL || load(&all->table_bytes) == 0);
    for (unsigned i = 0; all != NULL && i < ENTRY_MARKS; i++) {
        assert(!atomic_load(&all[i].runs));
        larges_fini(&all[i].larges);
        long_strings_fini(&all[i].long_strings);
        mem_free(all[i].places);
        mem_free(all[i].db_then);
        mem_free(all[i].db_now);
        mem_free(all[i].then);
        for (unsigned n = 0; n < SNAPSHOT_THREADS_MOST; n++)
            (void)sem_destroy(&all[i].walkers[n].gate_opens);
    }
    mem_free(all);
    atomic_store(&store->live, NULL);
}

static void note_moment(struct live_snapshot *live)
{
    const struct store *store = live->store;

    live->database_bound = store_database_bound(store);
    live->swapped_bound = 0;
    for (unsigned db = 0; db < store->database_count; db++)
        live->db_then[db] = live->db_now[db] = db;
    for (unsigned db = 0; db < live->database_bound; db++)
        store_database_totals(store, db, &live->then[db]);
    memset(live->places, 0, (store->stripe_mask + 1) * sizeof(*live->places));
}

static void reset_costs(struct live_snapshot *live)
{
    assert(load(&live->kept_bytes) == 0);
    atomic_store_explicit(&live->kept_peak_bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&live->kept_keys, 0, memory_order_relaxed);
    atomic_store_explicit(&live->held_us, 0, memory_order_relaxed);
    atomic_store_explicit(&live->waited_us, 0, memory_order_relaxed);
    atomic_store_explicit(&live->slowed_us, 0, memory_order_relaxed);
}

static void begin_walker(struct walker *walker, int64_t now_ms, struct gate *gate)
{
    access_init(&walker->access, walker->live->store, &walker->counters);
    access_begin(&walker->access, now_ms, true);
    walker->access.exclusive = false;
    gate_join(gate, &walker->member, wake, walker);
}

struct live_snapshot *live_snapshot_begin(struct access *access, const struct live_options *options)
{
    static const struct snapshot_kind kind = {.database_bound = live_database_bound,
                                              .totals = live_totals,
                                              .threads = live_threads,
                                              .each = live_each,
                                              .each_stripe = live_each_stripe,
                                              .is_live = true};
    struct store *store = access->store;
    struct live_snapshot *live = all_of(store);
    unsigned i = 0;

    gate_assert_alone();
    assert(options->threads != 0 && options->threads <= SNAPSHOT_THREADS_MOST);
    if (live == NULL)
        live = create_all(store);
    while (i < ENTRY_MARKS && atomic_load_explicit(&live->runs, memory_order_acquire)) {
        live++;
        i++;
    }
    if (i == ENTRY_MARKS)
        return NULL;
    live->snapshot = (struct snapshot){.kind = &kind, .access = &live->walkers[0].access, .choice = options->choice};
    live->walker_count = options->threads;
    for (unsigned n = 0; n < live->walker_count; n++)
        begin_walker(&live->walkers[n], access->now_ms, options->gate);
    live->kept_most = options->kept_most;
    live->is_walked = false;
    atomic_store_explicit(&live->is_cancelled, false, memory_order_relaxed);
    reset_costs(live);
    note_moment(live);
    atomic_store_explicit(&live->runs, true, memory_order_release);
    store_set_observed(store, OBSERVE_SNAPSHOT, OBSERVE_SNAPSHOT);
    return live;
}

void live_snapshot_adopt(struct live_snapshot *live)
{
    live->walkers[0].access.lock_id = spinlock_self_id();
}

struct snapshot *live_snapshot_keys(struct live_snapshot *live)
{
    return &live->snapshot;
}

/* Inside of the gate, so that no other begins meanwhile. */
static void unobserve(struct live_snapshot *live)
{
    const struct live_snapshot *all = all_of(live->store);
    bool others_run = false;

    enter(&live->walkers[0], NULL);
    for (unsigned i = 0; i < ENTRY_MARKS; i++)
        others_run |= &all[i] != live && atomic_load_explicit(&all[i].runs, memory_order_relaxed);
    if (!others_run)
        store_set_observed(live->store, OBSERVE_SNAPSHOT, 0);
    leave(&live->walkers[0], NULL);
}

void live_snapshot_end(struct live_snapshot **handle)
{
    struct live_snapshot *live = *handle;

    *handle = NULL;
    if (!live->is_walked)
        (void)live_each(&live->snapshot, NULL, 1);
    note_room(live, true);
    unobserve(live);
    for (unsigned i = 0; i < live->walker_count; i++)
        gate_part(&live->walkers[i].member);
    atomic_store_explicit(&live->runs, false, memory_order_release);
}

void live_snapshot_cancel(struct live_snapshot *live)
{
    atomic_store_explicit(&live->is_cancelled, true, memory_order_relaxed);
}

bool live_snapshot_is_cancelled(const struct live_snapshot *live)
{
    return atomic_load_explicit(&live->is_cancelled, memory_order_relaxed);
}

struct live_costs live_snapshot_costs(const struct live_snapshot *live)
{
    return (struct live_costs){.kept_bytes = load(&live->kept_bytes),
                               .kept_peak_bytes = load(&live->kept_peak_bytes),
                               .kept_keys = load(&live->kept_keys),
                               .held_us = load(&live->held_us),
                               .waited_us = load(&live->waited_us),
                               .slowed_us = load(&live->slowed_us)};
}

uint64_t live_kept_bytes(const struct store *store)
{
    const struct live_snapshot *live = all_of(store);
    uint64_t bytes = live != NULL ? load(&live->table_bytes) : 0;

    for (unsigned i = 0; live != NULL && i < ENTRY_MARKS; i++, live++)
        bytes += load(&live->kept_bytes);
    return bytes;
}
