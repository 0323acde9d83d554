#include "persist/slot_walk.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/thread.h"

enum { SLOW_US = 100, SAMPLES = 5 };

static struct {
    struct store *store;                     /* const */
    _Atomic uint64_t marks[SLOT_COUNT / 64]; /* atomic: relaxed; slots that have changed since the begin */
    struct slot_terms terms;                 /* changes with the gate owned, as all that follows but for the walker */
    struct slot_walk_result *result;         /* NULL: there is none */
    bool runs, is_held, lists;
    uint64_t number;
    uint64_t upheavals;               /* of the store, at the begin */
    uint64_t wanted[SLOT_COUNT / 64]; /* lists: of these */
    /* The walker's, or whose the gate is: */
    unsigned db;
    uint64_t cursor;
    uint64_t want;
    unsigned gathered_count;
    const struct entry *gathered[SLOT_WALK_KEYS];
} walk; /* global: see the header */

/* -------------------------------------------------------------------------------------------------------- marks -- */

static void mark(uint32_t slot)
{
    const uint64_t bit = UINT64_C(1) << (slot % 64);

    if ((atomic_load_explicit(&walk.marks[slot / 64], memory_order_relaxed) & bit) == 0)
        (void)atomic_fetch_or_explicit(&walk.marks[slot / 64], bit, memory_order_relaxed);
}

static void before(struct store_observer *observer, const struct change *change)
{
    (void)observer;
    if ((store_observed(walk.store) & OBSERVE_SLOTS) != 0)
        mark(slot_of(change->key->name));
}

static struct store_observer observer = {.before = before};

void slot_walk_setup(struct store *store)
{
    thread_assert_main();
    walk.store = store;
    store_observe(store, &observer);
}

/* --------------------------------------------------------------------------------------------------- begin, end -- */

static void free_result(void)
{
    if (walk.result == NULL)
        return;
    ARRAY_FINI(&walk.result->list);
    buffer_fini(&walk.result->names);
    mem_free(walk.result);
    walk.result = NULL;
}

void slot_walk_cancel(void)
{
    gate_assert_alone();
    store_set_observed(walk.store, OBSERVE_SLOTS, 0);
    walk.runs = walk.is_held = walk.lists = false;
    free_result();
}

void slot_walk_teardown(void)
{
    gate_assert_main_alone();
    free_result();
}

static uint64_t upheavals(void)
{
    return atomic_load_explicit(&walk.store->upheavals, memory_order_relaxed);
}

void slot_walk_begin(const struct slot_terms *terms)
{
    gate_assert_alone();
    slot_walk_cancel();
    walk.terms = *terms;
    walk.result = mem_alloc_zero(sizeof(*walk.result));
    for (unsigned i = 0; i < SLOT_COUNT / 64; i++)
        atomic_store_explicit(&walk.marks[i], 0, memory_order_relaxed);
    walk.upheavals = upheavals();
    walk.db = 0;
    walk.cursor = 0;
    walk.want = SLOT_WALK_KEYS / 4;
    walk.runs = true;
    walk.number++;
    store_set_observed(walk.store, OBSERVE_SLOTS, OBSERVE_SLOTS);
}

void slot_walk_list(const uint64_t *wanted)
{
    gate_assert_alone();
    assert(walk.runs && walk.result->keys == 0);
    walk.lists = true;
    memcpy(walk.wanted, wanted, sizeof(walk.wanted));
}

void slot_walk_hold(void)
{
    gate_assert_alone();
    assert(walk.runs);
    walk.is_held = true;
}

void slot_walk_mark(uint32_t slot)
{
    gate_assert_alone();
    assert(walk.runs && slot < SLOT_COUNT);
    mark(slot);
}

/* Changes that come after this do not count. */
static void stop_marking(void)
{
    store_set_observed(walk.store, OBSERVE_SLOTS, 0);
    if (upheavals() != walk.upheavals) {
        for (unsigned i = 0; i < SLOT_COUNT / 64; i++)
            atomic_store_explicit(&walk.marks[i], UINT64_MAX, memory_order_relaxed);
    }
}

static void end(void)
{
    if (!walk.is_held)
        stop_marking();
    walk.runs = false;
}

void slot_walk_release(void)
{
    gate_assert_alone();
    assert(walk.is_held && !walk.runs);
    stop_marking();
    walk.is_held = false;
}

/* ---------------------------------------------------------------------------------------------------------- step -- */

static bool is_large(const struct access *access, const struct entry *entry)
{
    if (entry->type == TYPE_STRING)
        return entry_string_size(entry) > SLOT_WALK_BYTES_MOST;
    return access->store->types[entry->type].ops->memory_bytes(entry_value(entry), SAMPLES) > SLOT_WALK_BYTES_MOST;
}

static void list_one(const struct entry *entry, uint32_t slot)
{
    struct slot_walk_result *result = walk.result;
    const struct slice name = entry_key(entry);
    struct slot_walk_key key = {.version = entry_version(entry),
                                .name_at = result->names.size,
                                .name_size = (uint32_t)name.size,
                                .db = walk.db};

    if (result->names.size + name.size + result->list.count * sizeof(key) > SLOT_WALK_LIST_MOST) {
        mark(slot);
        return;
    }
    if (!slot_digest_of(&walk.terms, walk.db, entry, &key.sum))
        return;
    buffer_append_slice(&result->names, name);
    *ARRAY_PUSH(&result->list) = key;
}

static void read_one(const struct access *access, const struct entry *entry, uint32_t slot)
{
    if (walk.cursor != 0 && access_scan_place(access, entry) < walk.cursor)
        return; /* it was read before groups of its table merged */
    if (walk.lists && (walk.wanted[slot / 64] >> (slot % 64) & 1) == 0)
        return;
    if (UNLIKELY(is_large(access, entry))) {
        mark(slot);
        walk.result->large++;
        return;
    }
    walk.result->keys++;
    if (walk.lists)
        list_one(entry, slot);
    else
        slot_digests_add(&walk.result->digests, slot, &walk.terms, walk.db, entry);
}

static void leave(void *context)
{
    uint32_t slots[SLOT_WALK_KEYS];

    for (unsigned i = 0; i < walk.gathered_count; i++) {
        slots[i] = slot_of(entry_key(walk.gathered[i]));
        __builtin_prefetch(&walk.result->digests.slots[slots[i]], 1);
    }
    for (unsigned i = 0; i < walk.gathered_count; i++)
        read_one(context, walk.gathered[i], slots[i]);
    walk.gathered_count = 0;
}

/* Keys are gathered and their memory is fetched together, instead of one after the other. */
static void visit(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    (void)db;
    (void)context;
    __builtin_prefetch(entry);
    __builtin_prefetch((const char *)entry + CACHE_LINE_BYTES);
    walk.gathered[walk.gathered_count++] = entry;
    if (walk.gathered_count == SLOT_WALK_KEYS)
        leave(access);
}

bool slot_walk_step(struct access *access)
{
    const struct access_visitor visitor = {.visit = visit, .leave = leave, .context = access, .sees_expired = true};
    uint64_t cursor = walk.cursor, begin_us = clock_monotonic_us();
    uint32_t busy;

    access_assert_none_held(access);
    assert(access->store == walk.store && walk.gathered_count == 0);
    if (!walk.runs)
        return true;
    if (walk.db >= store_database_bound(walk.store)) {
        end();
        return true;
    }
    if (access_scan(access, walk.db, &cursor, walk.want, &visitor, &busy) == WALK_BUSY)
        return false;
    walk.cursor = cursor;
    if (cursor == 0)
        walk.db++;
    if (clock_monotonic_us() - begin_us > SLOW_US)
        walk.want = MAX(walk.want / 4, 1);
    else
        walk.want = MIN(walk.want * 2, SLOT_WALK_KEYS);
    return false;
}

/* ------------------------------------------------------------------------------------------------------- result -- */

uint64_t slot_walk_number(void)
{
    gate_assert_alone();
    return walk.number;
}

const struct slot_walk_result *slot_walk_result(void)
{
    gate_assert_alone();
    return walk.runs ? NULL : walk.result;
}

bool slot_walk_runs(void)
{
    gate_assert_alone();
    return walk.runs;
}

bool slot_walk_is_clear(uint32_t slot)
{
    gate_assert_alone();
    assert(slot < SLOT_COUNT);
    if ((walk.runs || walk.is_held) && upheavals() != walk.upheavals)
        return false;
    return (atomic_load_explicit(&walk.marks[slot / 64], memory_order_relaxed) >> (slot % 64) & 1) == 0;
}
