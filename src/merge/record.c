#include "merge/record.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

void merge_record_init(struct merge_record *record, const struct merge_horizon *horizon)
{
    *record = (struct merge_record){0};
    if (horizon->flush.stamp >= horizon->floor) {
        record->base_place = horizon->flush;
        record->base_overwrote = true;
    } else {
        record->base_place = merge_place_floor(horizon->floor);
    }
}

static void drop_ops(struct merge_record *record, uint32_t count)
{
    if (count == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        merge_entry_release(record->ops[i]->entry);
    record->count -= count;
    memmove(record->ops, record->ops + count, record->count * sizeof(*record->ops));
}

void merge_record_fini(struct merge_record *record, const struct merge_model *model)
{
    drop_ops(record, record->count);
    mem_free(record->ops);
    model->destroy(record->base);
    model->destroy(record->value);
    *record = (struct merge_record){0};
}

void merge_record_copy(struct merge_record *to, const struct merge_record *from, const struct merge_model *model)
{
    *to = *from;
    to->base = model->copy(from->base);
    to->value = model->copy(from->value);
    to->capacity = from->count;
    to->ops = NULL;
    if (from->count == 0)
        return;
    to->ops = mem_alloc(from->count * sizeof(struct merge_op *));
    memcpy(to->ops, from->ops, from->count * sizeof(struct merge_op *));
    for (uint32_t i = 0; i < from->count; i++)
        merge_entry_acquire(from->ops[i]->entry);
}

struct merge_place merge_record_last(const struct merge_record *record)
{
    return record->count != 0 ? record->ops[record->count - 1]->place : record->base_place;
}

uint64_t merge_record_window_bytes(const struct merge_record *record)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < record->count; i++)
        bytes += merge_op_bytes(record->ops[i]);
    return bytes;
}

void merge_record_validate(const struct merge_record *record)
{
    struct merge_place last = record->base_place;

    for (uint32_t i = 0; i < record->count; i++) {
        assert(merge_place_before(last, record->ops[i]->place));
        last = record->ops[i]->place;
    }
}

/* Runs the first `count` operations on the base. */
static struct merge_value *run_list(const struct merge_record *record, uint32_t count, const struct merge_model *model)
{
    struct merge_value *value = model->copy(record->base);

    for (uint32_t i = 0; i < count; i++)
        value = merge_op_run(record->ops[i], value, model);
    return value;
}

static void run_again(struct merge_record *record, const struct merge_model *model)
{
    model->destroy(record->value);
    record->value = run_list(record, record->count, model);
}

/* The number of operations in the list that are not younger. */
static uint32_t count_until(const struct merge_record *record, struct merge_place place)
{
    uint32_t count = record->count;

    while (count != 0 && merge_place_before(place, record->ops[count - 1]->place))
        count--;
    return count;
}

static void insert(struct merge_record *record, struct merge_op *op)
{
    uint32_t at = count_until(record, op->place);
    struct {
        struct merge_op **items;
        uint32_t count, capacity;
    } ops = {record->ops, record->count, record->capacity};

    if (merge_broken(MERGE_BREAK_ARRIVAL_ORDER))
        at = record->count;
    ARRAY_RESERVE(&ops, 1);
    record->ops = ops.items;
    record->capacity = ops.capacity;
    memmove(&record->ops[at + 1], &record->ops[at], (record->count - at) * sizeof(*record->ops));
    record->ops[at] = op;
    record->count++;
    merge_entry_acquire(op->entry);
}

/* The base becomes what overwrote, and what was in the list before that goes. */
static void set_base(struct merge_record *record, struct merge_place place, struct merge_value *value,
                     const struct merge_model *model)
{
    drop_ops(record, count_until(record, place));
    model->destroy(record->base);
    record->base = value;
    record->base_place = place;
    record->base_overwrote = true;
    run_again(record, model);
}

#ifdef MERGE_BREAKABLE
static void drop_op(struct merge_record *record, const struct merge_op *op)
{
    uint32_t at = 0;

    while (record->ops[at] != op)
        at++;
    record->count--;
    memmove(&record->ops[at], &record->ops[at + 1], (record->count - at) * sizeof(*record->ops));
    merge_entry_release(op->entry);
}
#endif

/* A refused operation leaves the value as it was, and stays in the list: it may work when something older has come
 * in. */
static void insert_and_run(struct merge_record *record, struct merge_op *op, const struct merge_model *model)
{
#ifdef MERGE_BREAKABLE
    struct merge_value *before = model->copy(record->value);

    insert(record, op);
    run_again(record, model);
    if (merge_broken(MERGE_BREAK_FORGET_REFUSED) && model->equal(before, record->value))
        drop_op(record, op);
    model->destroy(before);
#else
    insert(record, op);
    run_again(record, model);
#endif
}

static enum merge_outcome place_late(struct merge_record *record, struct merge_op *op, bool exists,
                                     const struct merge_horizon *horizon, const struct merge_model *model)
{
    if (record->base_overwrote && !merge_broken(MERGE_BREAK_OLD_OVER_OVERWRITER))
        return MERGE_OVERWRITTEN;
    if (merge_place_compare(op->place, record->base_place) == 0)
        return MERGE_OVERWRITTEN; /* a second eviction that saw the same */
    /* What the evicting node saw was freed here: it had expired, or the same eviction came from another. */
    if (op->evicts && record->base == NULL && op->entry->stamp > horizon->frontier && op->entry->wall >= horizon->wall)
        return MERGE_LATE_NOTHING;
    if (!op->overwrites || !exists) {
        record->base = merge_op_run(op, record->base, model);
        record->base_overwrote = false;
        if (!exists)
            record->base_place = op->place;
        run_again(record, model);
    }
    return MERGE_LATE;
}

enum merge_outcome merge_record_place(struct merge_record *record, struct merge_op *op, bool exists,
                                      const struct merge_horizon *horizon, const struct merge_model *model)
{
    struct merge_place last = merge_record_last(record);
    enum merge_outcome outcome;

    if (merge_place_compare(op->place, horizon->flush) <= 0)
        return MERGE_FLUSHED;
    if (merge_place_compare(op->place, record->base_place) <= 0)
        return place_late(record, op, exists, horizon, model);
    outcome = merge_place_before(last, op->place) ? MERGE_APPENDED : MERGE_PLACED;
    if (op->overwrites && !merge_broken(MERGE_BREAK_OVERWRITE_RUNS_ALL)) {
        set_base(record, op->place, merge_op_run(op, NULL, model), model);
    } else if (op->overwrites) {
        struct merge_value *value = merge_op_run(op, NULL, model);

        model->destroy(record->base);
        record->base = value;
        run_again(record, model);
    } else {
        insert_and_run(record, op, model);
    }
    return outcome;
}

enum merge_outcome merge_record_flush(struct merge_record *record, struct merge_place flush,
                                      const struct merge_model *model)
{
    if (merge_place_compare(merge_record_last(record), flush) <= 0 || merge_broken(MERGE_BREAK_FLUSH_ALL))
        return MERGE_APPENDED;
    if (merge_place_before(record->base_place, flush)) {
        set_base(record, flush, NULL, model);
        return MERGE_PLACED;
    }
    return record->base_overwrote ? MERGE_OVERWRITTEN : MERGE_LATE;
}

bool merge_record_rests_on(const struct merge_record *record, struct merge_place flush)
{
    int order = merge_place_compare(record->base_place, flush);

    return order == 0 || (order > 0 && !record->base_overwrote);
}

bool merge_record_settle(struct merge_record *record, const struct merge_horizon *horizon, bool keep,
                         const struct merge_model *model)
{
    int64_t wall = horizon->wall;
    uint32_t settled = 0;

    while (settled < record->count && record->ops[settled]->place.stamp <= horizon->frontier)
        settled++;
    if (settled != 0) {
        struct merge_value *base = run_list(record, settled, model);

        record->base_place = record->ops[settled - 1]->place;
        record->base_overwrote = false;
        model->destroy(record->base);
        record->base = base;
        drop_ops(record, settled);
    }
    if (record->count != 0 || record->base_place.stamp > horizon->frontier || keep)
        return false;
    if (merge_broken(MERGE_BREAK_EXPIRY_BY_FRONTIER))
        wall = (int64_t)(horizon->frontier >> MERGE_COUNTER_BITS);
    if (record->base != NULL) {
        record->base = model->expire(record->base, wall);
        run_again(record, model);
    }
    return record->base == NULL;
}

void merge_record_forget_list(struct merge_record *record, const struct merge_model *model)
{
    if (record->count == 0)
        return;
    record->base_place = merge_record_last(record);
    record->base_overwrote = merge_broken(MERGE_BREAK_BOUND_KEEPS_OVERWROTE);
    model->destroy(record->base);
    record->base = model->copy(record->value);
    drop_ops(record, record->count);
}
