#include "store/expiry.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/mem_move.h"
#include "store/entry.h"
#include "store/jobs.h"

#define FAR_MS (INT64_C(1) << 42) /* 139 years after EXPIRY_EPOCH_MS: from there on */
#define FAR_UNIT_MS (INT64_C(1) << 20)

static void next_update(struct expiry *expiry)
{
    int64_t next_ms = expiry->count != 0 ? expiry->records[0].when_ms : INT64_MAX;

    atomic_store_explicit(&expiry->next_ms, next_ms, memory_order_relaxed);
}

struct expiry *expiry_create(void)
{
    struct expiry *expiry = mem_alloc_zero(sizeof(*expiry));

    next_update(expiry);
    return expiry;
}

static void records_clear(struct expiry *expiry)
{
    mem_free(expiry->records);
    expiry->records = NULL;
    expiry->count = expiry->capacity = 0;
    atomic_store_explicit(&expiry->live, 0, memory_order_relaxed);
    atomic_store_explicit(&expiry->near_sum_ms, 0, memory_order_relaxed);
    atomic_store_explicit(&expiry->far_sum, 0, memory_order_relaxed);
    next_update(expiry);
}

static struct expiry *members_of(const struct expiry *expiry)
{
    return atomic_load_explicit(&expiry->members, memory_order_relaxed);
}

static struct expiry *jobs_of(const struct expiry *expiry)
{
    return atomic_load_explicit(&expiry->jobs, memory_order_relaxed);
}

static struct expiry *use(_Atomic(struct expiry *) *place, enum expiry_kind kind)
{
    struct expiry *expiry = atomic_load_explicit(place, memory_order_relaxed);

    if (expiry == NULL) {
        expiry = expiry_create();
        expiry->kind = kind;
        atomic_store_explicit(place, expiry, memory_order_release);
    }
    return expiry;
}

struct expiry *expiry_members(struct expiry *expiry)
{
    return use(&expiry->members, EXPIRY_OF_MEMBERS);
}

struct expiry *expiry_jobs(struct expiry *expiry)
{
    return use(&expiry->jobs, EXPIRY_OF_JOBS);
}

void expiry_clear(struct expiry *expiry)
{
    records_clear(expiry);
    if (members_of(expiry) != NULL)
        records_clear(members_of(expiry));
    if (jobs_of(expiry) != NULL)
        records_clear(jobs_of(expiry));
}

#define EXCHANGE(a, b)                     \
    do {                                   \
        __typeof__(*(a)) exchanged = *(a); \
        *(a) = *(b);                       \
        *(b) = exchanged;                  \
    } while (0)

static void sum_exchange(_Atomic int64_t *sum, _Atomic int64_t *other)
{
    int64_t before = atomic_load_explicit(sum, memory_order_relaxed);

    atomic_store_explicit(sum, atomic_load_explicit(other, memory_order_relaxed), memory_order_relaxed);
    atomic_store_explicit(other, before, memory_order_relaxed);
}

static void records_exchange(struct expiry *expiry, struct expiry *other)
{
    uint64_t live = atomic_load_explicit(&expiry->live, memory_order_relaxed);

    EXCHANGE(&expiry->records, &other->records);
    EXCHANGE(&expiry->count, &other->count);
    EXCHANGE(&expiry->capacity, &other->capacity);
    atomic_store_explicit(&expiry->live, atomic_load_explicit(&other->live, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&other->live, live, memory_order_relaxed);
    sum_exchange(&expiry->near_sum_ms, &other->near_sum_ms);
    sum_exchange(&expiry->far_sum, &other->far_sum);
    next_update(expiry);
    next_update(other);
}

void expiry_exchange(struct expiry *expiry, struct expiry *other)
{
    records_exchange(expiry, other);
    if (members_of(expiry) != NULL || members_of(other) != NULL)
        records_exchange(expiry_members(expiry), expiry_members(other));
    if (jobs_of(expiry) != NULL || jobs_of(other) != NULL)
        records_exchange(expiry_jobs(expiry), expiry_jobs(other));
}

void expiry_destroy(struct expiry **expiry)
{
    if (*expiry == NULL)
        return;
    expiry_clear(*expiry);
    mem_free(members_of(*expiry));
    mem_free(jobs_of(*expiry));
    mem_free(*expiry);
    *expiry = NULL;
}

enum { RECORDS_LEAST = 4 };

static void heap_up(struct expiry *expiry, uint32_t index)
{
    struct expiry_record record = expiry->records[index];

    while (index > 0 && expiry->records[(index - 1) / 2].when_ms > record.when_ms) {
        expiry->records[index] = expiry->records[(index - 1) / 2];
        index = (index - 1) / 2;
    }
    expiry->records[index] = record;
}

static void heap_down(struct expiry *expiry, uint32_t index)
{
    struct expiry_record record = expiry->records[index];

    for (;;) {
        uint32_t child = 2 * index + 1;

        if (child >= expiry->count)
            break;
        if (child + 1 < expiry->count && expiry->records[child + 1].when_ms < expiry->records[child].when_ms)
            child++;
        if (expiry->records[child].when_ms >= record.when_ms)
            break;
        expiry->records[index] = expiry->records[child];
        index = child;
    }
    expiry->records[index] = record;
}

static void record_append(struct expiry *expiry, uint64_t hash, int64_t when_ms)
{
    if (expiry->count == expiry->capacity) {
        expiry->capacity = MAX((uint32_t)RECORDS_LEAST, expiry->capacity + expiry->capacity / 2);
        expiry->records = mem_realloc(expiry->records, expiry->capacity * sizeof(expiry->records[0]));
    }
    expiry->records[expiry->count++] = (struct expiry_record){when_ms, hash};
}

void expiry_put_back(struct expiry *expiry, uint64_t hash, int64_t when_ms)
{
    record_append(expiry, hash, when_ms);
    heap_up(expiry, expiry->count - 1);
    next_update(expiry);
}

static int64_t entry_ms(const struct expiry *expiry, const struct entry *entry)
{
    switch (expiry->kind) {
    case EXPIRY_OF_MEMBERS:
        return entry_member_due_ms(entry);
    case EXPIRY_OF_JOBS:
        return entry_job_ms(entry);
    case EXPIRY_OF_KEYS:
        break;
    }
    return entry_expire_ms(entry);
}

static void rebuild_visit(void *item, void *context)
{
    const struct entry *entry = item;
    struct expiry *expiry = context;
    struct slice key = entry_key(entry);

    if (entry_ms(expiry, entry) != EXPIRE_NEVER)
        record_append(expiry, hash_bytes(key.data, key.size), entry_ms(expiry, entry));
}

/* One record a key, from the table. */
static void rebuild(struct expiry *expiry, const struct table *keys)
{
    expiry->count = 0;
    table_each(keys, rebuild_visit, expiry);
    for (uint32_t i = expiry->count / 2; i-- > 0;)
        heap_down(expiry, i);
    next_update(expiry);
    if (expiry->capacity > RECORDS_LEAST && expiry->count < expiry->capacity / 4) {
        expiry->capacity = MAX((uint32_t)RECORDS_LEAST, expiry->count * 2);
        expiry->records = mem_realloc(expiry->records, expiry->capacity * sizeof(expiry->records[0]));
    }
}

/* A deadline's place in the sums: *units of the sum that is returned. */
static _Atomic int64_t *sum_of(struct expiry *expiry, int64_t when_ms, int64_t *units)
{
    const int64_t ms = when_ms - EXPIRY_EPOCH_MS;

    *units = ms < FAR_MS ? ms : ms / FAR_UNIT_MS;
    return ms < FAR_MS ? &expiry->near_sum_ms : &expiry->far_sum;
}

/* Two million deadlines fit, near or far, in this stripe alone; more would wrap, without harm but to INFO's average. */
static void sum_add(struct expiry *expiry, int64_t when_ms, int sign)
{
    int64_t units;
    _Atomic int64_t *sum = sum_of(expiry, when_ms, &units);
    const uint64_t before = (uint64_t)atomic_load_explicit(sum, memory_order_relaxed);

    atomic_store_explicit(sum, (int64_t)(sign > 0 ? before + (uint64_t)units : before - (uint64_t)units),
                          memory_order_relaxed);
}

double expiry_sum_ms(const struct expiry *expiry)
{
    return (double)atomic_load_explicit(&expiry->near_sum_ms, memory_order_relaxed) +
           (double)atomic_load_explicit(&expiry->far_sum, memory_order_relaxed) * FAR_UNIT_MS;
}

void expiry_changed(struct expiry *expiry, uint64_t hash, int64_t before_ms, int64_t after_ms, const struct table *keys)
{
    uint64_t live = atomic_load_explicit(&expiry->live, memory_order_relaxed);

    assert(before_ms == EXPIRE_NEVER || live != 0);
    if (before_ms != EXPIRE_NEVER) {
        live--;
        sum_add(expiry, before_ms, -1);
    }
    if (after_ms != EXPIRE_NEVER) {
        live++;
        sum_add(expiry, after_ms, 1);
    }
    atomic_store_explicit(&expiry->live, live, memory_order_relaxed);
    if (after_ms != EXPIRE_NEVER && (before_ms == EXPIRE_NEVER || before_ms > after_ms))
        expiry_put_back(expiry, hash, after_ms);
    /* Rebuilding walks the table, so it waits until a share of the keys could be superfluous: constant cost a call. */
    if (live == 0)
        records_clear(expiry);
    else if (expiry->count > 2 * live + 8 + table_count(keys) / 8)
        rebuild(expiry, keys);
}

bool expiry_take_due(struct expiry *expiry, int64_t now_ms, struct expiry_record *record)
{
    if (expiry->count == 0 || expiry->records[0].when_ms >= now_ms)
        return false;
    *record = expiry->records[0];
    expiry->records[0] = expiry->records[--expiry->count];
    if (expiry->count != 0)
        heap_down(expiry, 0);
    next_update(expiry);
    return true;
}

void expiry_relocate(struct expiry *expiry, struct mem_mover *mover)
{
    expiry->records = mem_move(mover, expiry->records, 0);
    if (members_of(expiry) != NULL)
        expiry_relocate(members_of(expiry), mover);
    if (jobs_of(expiry) != NULL)
        expiry_relocate(jobs_of(expiry), mover);
}

struct validate_context {
    const struct expiry *expiry;
    struct expiry sums; /* of the existing keys */
    uint64_t live;
};

static void validate_visit(void *item, void *context)
{
    const struct entry *entry = item;
    struct validate_context *validate = context;
    struct slice key = entry_key(entry);
    uint64_t hash = hash_bytes(key.data, key.size);
    int64_t when_ms = entry_ms(validate->expiry, entry);
    bool covered = false;

    if (when_ms == EXPIRE_NEVER)
        return;
    validate->live++;
    sum_add(&validate->sums, when_ms, 1);
    for (uint32_t i = 0; i < validate->expiry->count && !covered; i++) {
        const struct expiry_record *record = &validate->expiry->records[i];

        covered = record->hash == hash && record->when_ms <= when_ms;
    }
    assert(covered);
}

void expiry_validate(const struct expiry *expiry, const struct table *keys)
{
    struct validate_context validate = {.expiry = expiry};

    for (uint32_t i = 1; i < expiry->count; i++)
        assert(expiry->records[(i - 1) / 2].when_ms <= expiry->records[i].when_ms);
    table_each(keys, validate_visit, &validate);
    assert(validate.live == atomic_load_explicit(&expiry->live, memory_order_relaxed));
    assert(validate.sums.near_sum_ms == atomic_load_explicit(&expiry->near_sum_ms, memory_order_relaxed));
    assert(validate.sums.far_sum == atomic_load_explicit(&expiry->far_sum, memory_order_relaxed));
    if (members_of(expiry) != NULL)
        expiry_validate(members_of(expiry), keys);
    if (jobs_of(expiry) != NULL)
        expiry_validate(jobs_of(expiry), keys);
}
