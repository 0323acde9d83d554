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

/* Forgets the oldest steps, which are part of the base from now on. */
static void drop_steps(struct merge_record *record, uint32_t count, const struct merge_model *model)
{
    if (count == 0)
        return;
    for (uint32_t i = 0; i < count; i++) {
        model->undo_release(record->steps[i].undo);
        merge_entry_release(record->steps[i].op->entry);
    }
    record->count -= count;
    memmove(record->steps, record->steps + count, record->count * sizeof(*record->steps));
}

void merge_record_fini(struct merge_record *record, const struct merge_model *model)
{
    drop_steps(record, record->count, model);
    mem_free(record->steps);
    model->destroy(record->value);
    *record = (struct merge_record){0};
}

void merge_record_copy(struct merge_record *to, const struct merge_record *from, const struct merge_model *model)
{
    *to = *from;
    to->value = model->copy(from->value);
    to->capacity = from->count;
    to->steps = NULL;
    if (from->count == 0)
        return;
    to->steps = mem_alloc(from->count * sizeof(*to->steps));
    memcpy(to->steps, from->steps, from->count * sizeof(*to->steps));
    for (uint32_t i = 0; i < from->count; i++) {
        merge_entry_acquire(from->steps[i].op->entry);
        model->undo_acquire(from->steps[i].undo);
    }
}

struct merge_place merge_record_last(const struct merge_record *record)
{
    return record->count != 0 ? record->steps[record->count - 1].op->place : record->base_place;
}

uint64_t merge_record_window_bytes(const struct merge_record *record)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < record->count; i++)
        bytes += merge_op_bytes(record->steps[i].op);
    return bytes;
}

void merge_record_validate(const struct merge_record *record)
{
    struct merge_place last = record->base_place;

    for (uint32_t i = 0; i < record->count; i++) {
        assert(merge_place_before(last, record->steps[i].op->place));
        assert(!record->steps[i].op->overwrites);
        last = record->steps[i].op->place;
    }
}

bool merge_record_base_is_missing(const struct merge_record *record)
{
    return record->count != 0 ? record->steps[0].was_missing : record->value == NULL;
}

/* Takes the steps from this one on back: the value is what it was before them. They stay in the list. */
static void take_back(struct merge_record *record, uint32_t from, const struct merge_model *model)
{
    for (uint32_t i = record->count; i-- != from;) {
        struct merge_step *step = &record->steps[i];

        if (step->undo != NULL)
            record->value = model->undo(record->value, step->undo);
        model->undo_release(step->undo);
        step->undo = NULL;
    }
}

/* Runs the steps from this one on, which are taken back. */
static void run_from(struct merge_record *record, uint32_t from, const struct merge_model *model)
{
    for (uint32_t i = from; i < record->count; i++) {
        struct merge_step *step = &record->steps[i];

        step->was_missing = record->value == NULL;
        record->value = merge_op_run(step->op, record->value, &step->undo, model);
    }
}

/* The number of steps that are not younger. */
static uint32_t count_until(const struct merge_record *record, struct merge_place place)
{
    uint32_t count = record->count;

    while (count != 0 && merge_place_before(place, record->steps[count - 1].op->place))
        count--;
    return count;
}

static void reserve_steps(struct merge_record *record, uint32_t more)
{
    struct {
        struct merge_step *items;
        uint32_t count, capacity;
    } steps = {record->steps, record->count, record->capacity};

    ARRAY_RESERVE(&steps, more);
    record->steps = steps.items;
    record->capacity = steps.capacity;
}

/* Puts operations, which are ascending by place and behind the base, into their places, and runs what they concern. */
static void insert_all_and_run(struct merge_record *record, struct merge_op *const *ops, uint32_t count,
                               const struct merge_model *model)
{
    uint32_t at = count_until(record, ops[0]->place), old = record->count, to = record->count + count;

    take_back(record, at, model);
    reserve_steps(record, count);
    for (uint32_t next = count; next != 0;) {
        if (old != at && merge_place_before(ops[next - 1]->place, record->steps[old - 1].op->place)) {
            record->steps[--to] = record->steps[--old];
        } else {
            merge_entry_acquire(ops[--next]->entry);
            record->steps[--to] = (struct merge_step){.op = ops[next]};
        }
    }
    record->count += count;
    run_from(record, at, model);
}

/* A refused operation leaves the value as it was, and stays in the list: it may work when something older has come
 * in. */
static void insert_and_run(struct merge_record *record, struct merge_op *op, const struct merge_model *model)
{
    uint32_t at = merge_broken(MERGE_BREAK_ARRIVAL_ORDER) ? record->count : count_until(record, op->place);

    take_back(record, at, model);
    reserve_steps(record, 1);
    memmove(&record->steps[at + 1], &record->steps[at], (record->count - at) * sizeof(*record->steps));
    record->steps[at] = (struct merge_step){.op = op};
    record->count++;
    merge_entry_acquire(op->entry);
    run_from(record, at, model);
    if (merge_broken(MERGE_BREAK_FORGET_REFUSED) && record->steps[at].undo == NULL) {
        record->count--;
        memmove(&record->steps[at], &record->steps[at + 1], (record->count - at) * sizeof(*record->steps));
        merge_entry_release(op->entry);
    }
}

/* The base becomes what overwrote, and what was in the list before that goes. Only the younger run again. */
static void set_base(struct merge_record *record, struct merge_place place, struct merge_value *value,
                     const struct merge_model *model)
{
    drop_steps(record, count_until(record, place), model);
    for (uint32_t i = 0; i < record->count; i++) {
        model->undo_release(record->steps[i].undo);
        record->steps[i].undo = NULL;
    }
    model->destroy(record->value);
    record->value = value;
    record->base_place = place;
    record->base_overwrote = true;
    run_from(record, 0, model);
}

static enum merge_outcome place_late(struct merge_record *record, struct merge_op *op, bool exists,
                                     const struct merge_horizon *horizon, const struct merge_model *model)
{
    if (record->base_overwrote && !merge_broken(MERGE_BREAK_OLD_OVER_OVERWRITER))
        return MERGE_OVERWRITTEN;
    if (merge_place_compare(op->place, record->base_place) == 0)
        return MERGE_OVERWRITTEN; /* a second eviction that saw the same */
    /* What the evicting node saw was freed here: it had expired, or the same eviction came from another. */
    if (op->evicts && merge_record_base_is_missing(record) && op->entry->stamp > horizon->frontier &&
        op->entry->wall >= horizon->wall)
        return MERGE_LATE_NOTHING;
    if (!op->overwrites || !exists) {
        take_back(record, 0, model);
        record->value = merge_op_run(op, record->value, NULL, model);
        record->base_overwrote = false;
        if (!exists)
            record->base_place = op->place;
        run_from(record, 0, model);
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
        set_base(record, op->place, merge_op_run(op, NULL, NULL, model), model);
    } else if (op->overwrites) {
        take_back(record, 0, model);
        record->value = merge_op_run(op, record->value, NULL, model);
        run_from(record, 0, model);
    } else {
        insert_and_run(record, op, model);
    }
    return outcome;
}

void merge_record_place_all(struct merge_record *record, struct merge_op *const *ops, uint32_t count, bool exists,
                            const struct merge_horizon *horizon, const struct merge_model *model,
                            enum merge_outcome *outcomes)
{
    struct merge_place last = merge_record_last(record);
    bool together = count != 0 && merge_place_before(record->base_place, ops[0]->place) &&
                    merge_place_before(horizon->flush, ops[0]->place);

    for (uint32_t i = 0; i < count; i++) {
        assert(i == 0 || merge_place_before(ops[i - 1]->place, ops[i]->place));
        together = together && !ops[i]->overwrites;
        outcomes[i] = merge_place_before(last, ops[i]->place) ? MERGE_APPENDED : MERGE_PLACED;
    }
    if (together) {
        insert_all_and_run(record, ops, count, model);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        outcomes[i] = merge_record_place(record, ops[i], exists, horizon, model);
        exists |= outcomes[i] == MERGE_APPENDED || outcomes[i] == MERGE_PLACED || outcomes[i] == MERGE_LATE;
    }
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

    while (settled < record->count && record->steps[settled].op->place.stamp <= horizon->frontier)
        settled++;
    if (settled != 0) {
        record->base_place = record->steps[settled - 1].op->place;
        record->base_overwrote = false;
        drop_steps(record, settled, model);
    }
    if (record->count != 0 || record->base_place.stamp > horizon->frontier || keep)
        return false;
    if (merge_broken(MERGE_BREAK_EXPIRY_BY_FRONTIER))
        wall = (int64_t)(horizon->frontier >> MERGE_COUNTER_BITS);
    if (record->value != NULL)
        record->value = model->expire(record->value, wall);
    return record->value == NULL;
}

void merge_record_forget_list(struct merge_record *record, const struct merge_model *model)
{
    if (record->count == 0)
        return;
    record->base_place = merge_record_last(record);
    record->base_overwrote = merge_broken(MERGE_BREAK_BOUND_KEEPS_OVERWROTE);
    drop_steps(record, record->count, model);
}
