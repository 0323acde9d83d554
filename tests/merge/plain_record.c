#include "plain_record.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

void plain_record_init(struct plain_record *record, const struct merge_horizon *horizon)
{
    *record = (struct plain_record){0};
    if (horizon->flush.stamp >= horizon->floor) {
        record->base_place = horizon->flush;
        record->base_overwrote = true;
    } else {
        record->base_place = merge_place_floor(horizon->floor);
    }
}

static void drop_ops(struct plain_record *record, uint32_t count)
{
    if (count == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        merge_entry_release(record->ops[i]->entry);
    record->count -= count;
    memmove(record->ops, record->ops + count, record->count * sizeof(*record->ops));
}

void plain_record_fini(struct plain_record *record, const struct merge_model *model)
{
    drop_ops(record, record->count);
    mem_free(record->ops);
    model->destroy(model, record->base);
    model->destroy(model, record->value);
    *record = (struct plain_record){0};
}

struct merge_place plain_record_last(const struct plain_record *record)
{
    return record->count != 0 ? record->ops[record->count - 1]->place : record->base_place;
}

/* Runs the first `count` operations on the base. */
static struct merge_value *run_list(const struct plain_record *record, uint32_t count, const struct merge_model *model)
{
    struct merge_value *value = model->copy(model, record->base);

    for (uint32_t i = 0; i < count; i++)
        value = merge_op_run(record->ops[i], value, NULL, model);
    return value;
}

static void run_again(struct plain_record *record, const struct merge_model *model)
{
    model->destroy(model, record->value);
    record->value = run_list(record, record->count, model);
}

/* The number of operations in the list that are not younger. */
static uint32_t count_until(const struct plain_record *record, struct merge_place place)
{
    uint32_t count = record->count;

    while (count != 0 && merge_place_before(place, record->ops[count - 1]->place))
        count--;
    return count;
}

static void insert(struct plain_record *record, struct merge_op *op)
{
    uint32_t at = count_until(record, op->place);
    struct {
        struct merge_op **items;
        uint32_t count, capacity;
    } ops = {record->ops, record->count, record->capacity};

    ARRAY_RESERVE(&ops, 1);
    record->ops = ops.items;
    record->capacity = ops.capacity;
    memmove(&record->ops[at + 1], &record->ops[at], (record->count - at) * sizeof(*record->ops));
    record->ops[at] = op;
    record->count++;
    merge_entry_acquire(op->entry);
}

/* The base becomes what overwrote, and what was in the list before that goes. */
static void set_base(struct plain_record *record, struct merge_place place, struct merge_value *value,
                     const struct merge_model *model)
{
    drop_ops(record, count_until(record, place));
    model->destroy(model, record->base);
    record->base = value;
    record->base_place = place;
    record->base_overwrote = true;
    run_again(record, model);
}

static enum merge_outcome place_late(struct plain_record *record, struct merge_op *op, bool exists,
                                     const struct merge_horizon *horizon, const struct merge_model *model)
{
    if (record->base_overwrote)
        return MERGE_OVERWRITTEN;
    if (merge_place_compare(op->place, record->base_place) == 0)
        return MERGE_OVERWRITTEN; /* a second eviction that saw the same */
    /* What the evicting node saw was freed here: it had expired, or the same eviction came from another. */
    if (op->evicts && record->base == NULL && op->entry->stamp > horizon->frontier && op->entry->wall >= horizon->wall)
        return MERGE_LATE_NOTHING;
    if (!op->overwrites || !exists) {
        record->base = merge_op_run(op, record->base, NULL, model);
        record->base_overwrote = false;
        if (!exists)
            record->base_place = op->place;
        run_again(record, model);
    }
    return MERGE_LATE;
}

enum merge_outcome plain_record_place(struct plain_record *record, struct merge_op *op, bool exists,
                                      const struct merge_horizon *horizon, const struct merge_model *model)
{
    struct merge_place last = plain_record_last(record);
    enum merge_outcome outcome;

    if (merge_place_compare(op->place, horizon->flush) <= 0)
        return MERGE_FLUSHED;
    if (merge_place_compare(op->place, record->base_place) <= 0)
        return place_late(record, op, exists, horizon, model);
    outcome = merge_place_before(last, op->place) ? MERGE_APPENDED : MERGE_PLACED;
    if (op->overwrites) {
        set_base(record, op->place, merge_op_run(op, NULL, NULL, model), model);
    } else {
        insert(record, op);
        run_again(record, model);
    }
    return outcome;
}

enum merge_outcome plain_record_flush(struct plain_record *record, struct merge_place flush,
                                      const struct merge_model *model)
{
    if (merge_place_compare(plain_record_last(record), flush) <= 0)
        return MERGE_APPENDED;
    if (merge_place_before(record->base_place, flush)) {
        set_base(record, flush, NULL, model);
        return MERGE_PLACED;
    }
    return record->base_overwrote ? MERGE_OVERWRITTEN : MERGE_LATE;
}

bool plain_record_settle(struct plain_record *record, const struct merge_horizon *horizon, bool keep,
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
        model->destroy(model, record->base);
        record->base = base;
        drop_ops(record, settled);
    }
    if (record->count != 0 || record->base_place.stamp > horizon->frontier || keep)
        return false;
    if (record->base != NULL) {
        record->base = model->expire(model, record->base, wall);
        run_again(record, model);
    }
    return record->base == NULL;
}

void plain_record_forget_list(struct plain_record *record, const struct merge_model *model)
{
    if (record->count == 0)
        return;
    record->base_place = plain_record_last(record);
    record->base_overwrote = false;
    model->destroy(model, record->base);
    record->base = model->copy(model, record->value);
    drop_ops(record, record->count);
}
