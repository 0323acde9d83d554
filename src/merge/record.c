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

/* -------------------------------------------------------------------------------------------------------- parts -- */

static uint32_t older_count(const struct merge_record *record)
{
    return record->older != NULL ? record->older->count : 0;
}

/* The steps of a part. */
static struct merge_step *part_steps(const struct merge_record *record, uint32_t part, uint32_t *count)
{
    const bool is_last = part == older_count(record);

    *count = is_last ? record->count : record->older->items[part].count;
    return is_last ? record->steps : record->older->items[part].steps;
}

/* Steps of it are about to change. */
static void forget_part(struct merge_record *record, uint32_t part)
{
    if (part < older_count(record))
        record->older->items[part].is_known = false;
}

struct merge_step *merge_record_next(const struct merge_record *record, struct merge_spot *spot)
{
    const uint32_t parts = older_count(record);
    uint32_t count;
    struct merge_step *steps;

    for (; spot->part <= parts; spot->part++, spot->at = 0) {
        steps = part_steps(record, spot->part, &count);
        if (spot->at < count)
            return &steps[spot->at++];
    }
    return NULL;
}

/* The step before the spot, which goes there. There is one. */
static struct merge_step *previous(const struct merge_record *record, struct merge_spot *spot)
{
    uint32_t count;

    while (spot->at == 0) {
        (void)part_steps(record, --spot->part, &count);
        spot->at = count;
    }
    return &part_steps(record, spot->part, &count)[--spot->at];
}

static struct merge_spot end_of(const struct merge_record *record)
{
    return (struct merge_spot){older_count(record), record->count};
}

static uint64_t count_from(const struct merge_record *record, struct merge_spot spot)
{
    uint64_t count = record->count;

    for (uint32_t i = spot.part; i < older_count(record); i++)
        count += record->older->items[i].count;
    return count - spot.at;
}

uint64_t merge_record_step_count(const struct merge_record *record)
{
    return count_from(record, (struct merge_spot){0, 0});
}

uint64_t merge_record_stamp_at(const struct merge_record *record, uint64_t index)
{
    uint32_t part = 0, count;
    const struct merge_step *steps = part_steps(record, part, &count);

    for (; index >= count; steps = part_steps(record, ++part, &count))
        index -= count;
    return steps[index].op->place.stamp;
}

uint64_t merge_record_drop_from(const struct merge_record *record)
{
    const struct merge_part *first = older_count(record) != 0 ? &record->older->items[0] : NULL;

    return first != NULL ? first->steps[first->count - 1].op->place.stamp
                         : record->steps[record->count / 2].op->place.stamp;
}

static struct merge_part *add_part(struct merge_record *record, uint32_t at, struct merge_step *steps, uint32_t count)
{
    struct merge_older *older = record->older;

    if (older == NULL)
        older = record->older = mem_alloc_zero(sizeof(*older));
    ARRAY_RESERVE(older, 1);
    memmove(&older->items[at + 1], &older->items[at], (older->count - at) * sizeof(*older->items));
    older->count++;
    older->items[at] = (struct merge_part){.steps = steps, .count = count};
    return &older->items[at];
}

static struct merge_step *alloc_part(const struct merge_step *steps, uint32_t count)
{
    struct merge_step *room = mem_alloc(MERGE_PART_MOST * sizeof(*room));

    memcpy(room, steps, count * sizeof(*room));
    return room;
}

/* The oldest parts go, of which the steps have gone. */
static void remove_parts(struct merge_record *record, uint32_t first, uint32_t end)
{
    struct merge_older *older = record->older;

    for (uint32_t i = first; i < end; i++)
        mem_free(older->items[i].steps);
    memmove(older->items + first, older->items + end, (older->count - end) * sizeof(*older->items));
    older->count -= end - first;
    if (older->count != 0)
        return;
    mem_free(older->items);
    mem_free(older);
    record->older = NULL;
}

static void free_last(struct merge_record *record)
{
    if (!record->has_lent)
        mem_free(record->steps);
    record->has_lent = false;
    record->steps = NULL;
    record->count = record->capacity = 0;
}

static void reserve_steps(struct merge_record *record, uint32_t more)
{
    struct {
        struct merge_step *items;
        uint32_t count, capacity;
    } steps = {record->steps, record->count, record->capacity};

    if (LIKELY(more <= record->capacity - record->count))
        return;
    if (record->has_lent)
        steps.items = mem_copy(record->steps, record->count * sizeof(*record->steps));
    record->has_lent = false;
    ARRAY_RESERVE(&steps, more);
    record->steps = steps.items;
    record->capacity = steps.capacity;
}

static void sum_up(struct merge_part *part);

/* Room for a step at the end. */
static struct merge_step *add_step(struct merge_record *record)
{
    if (UNLIKELY(record->count >= MERGE_PART_MOST)) {
        sum_up(add_part(record, older_count(record), alloc_part(record->steps, record->count), record->count));
        record->count = 0;
    }
    reserve_steps(record, 1);
    return &record->steps[record->count++];
}

/* The part of the spot gets two, half of it each. */
static void split_part(struct merge_record *record, struct merge_spot *spot)
{
    enum { HALF = MERGE_PART_MOST / 2 };
    const uint32_t part = spot->part;

    if (part == older_count(record)) {
        (void)add_part(record, part, alloc_part(record->steps, HALF), HALF);
        record->count -= HALF;
        memmove(record->steps, record->steps + HALF, record->count * sizeof(*record->steps));
    } else {
        struct merge_part *its = &record->older->items[part];
        const uint32_t rest = its->count - HALF;

        its->count = HALF;
        its->is_known = false;
        (void)add_part(record, part + 1, alloc_part(its->steps + HALF, rest), rest);
    }
    if (spot->at > HALF)
        *spot = (struct merge_spot){part + 1, spot->at - HALF};
}

/* All steps from the spot on go; others own what is in them now. */
static void cut_off(struct merge_record *record, struct merge_spot spot)
{
    struct merge_part *part;

    if (spot.part == older_count(record)) {
        record->count = spot.at;
        if (spot.at != 0 || spot.part == 0)
            return;
    }
    if (spot.at == 0 && spot.part != 0)
        spot = (struct merge_spot){spot.part - 1, record->older->items[spot.part - 1].count};
    part = &record->older->items[spot.part];
    free_last(record);
    record->steps = part->steps;
    record->count = spot.at;
    record->capacity = MERGE_PART_MOST;
    part->steps = NULL;
    remove_parts(record, spot.part, record->older->count);
}

static void release_step(const struct merge_step *step, const struct merge_model *model)
{
    model->undo_release(model, step->undo);
    merge_entry_release(step->op->entry);
}

/* Forgets the oldest steps, which are part of the base from now on. */
static void drop_steps(struct merge_record *record, uint64_t count, const struct merge_model *model)
{
    uint32_t parts = 0, whole = 0;
    uint64_t left = count;
    struct merge_spot spot = {0, 0};
    struct merge_step *steps;

    for (uint64_t i = 0; i < count; i++)
        release_step(merge_record_next(record, &spot), model);
    while (whole < older_count(record) && left >= record->older->items[whole].count)
        left -= record->older->items[whole++].count;
    if (whole != 0)
        remove_parts(record, 0, whole);
    if (left == 0)
        return;
    forget_part(record, 0);
    steps = part_steps(record, 0, &parts);
    memmove(steps, steps + left, (parts - left) * sizeof(*steps));
    if (older_count(record) != 0)
        record->older->items[0].count -= (uint32_t)left;
    else
        record->count -= (uint32_t)left;
    record->has_joined = record->has_joined && record->count != 0;
}

void merge_record_fini(struct merge_record *record, const struct merge_model *model)
{
    drop_steps(record, merge_record_step_count(record), model);
    free_last(record);
    model->destroy(model, record->value);
    *record = (struct merge_record){0};
}

void merge_record_lend(struct merge_record *record, struct merge_step *steps, uint32_t capacity)
{
    assert(record->steps == NULL && record->count == 0);
    record->steps = steps;
    record->capacity = capacity;
    record->has_lent = true;
}

void merge_record_copy(struct merge_record *to, const struct merge_record *from, const struct merge_model *model)
{
    struct merge_spot spot = {0, 0};

    *to = *from;
    to->value = model->copy(model, from->value);
    to->older = NULL;
    to->steps = NULL;
    to->count = to->capacity = 0;
    to->has_lent = false;
    for (const struct merge_step *step; (step = merge_record_next(from, &spot)) != NULL;) {
        *add_step(to) = *step;
        merge_entry_acquire(step->op->entry);
        (void)model->undo_acquire(model, step->undo);
    }
}

struct merge_place merge_record_last(const struct merge_record *record)
{
    return record->count != 0 ? record->steps[record->count - 1].op->place : record->base_place;
}

uint64_t merge_record_window_bytes(const struct merge_record *record)
{
    struct merge_spot spot = {0, 0};
    uint64_t bytes = 0;

    for (const struct merge_step *step; (step = merge_record_next(record, &spot)) != NULL;)
        bytes += merge_op_bytes(step->op);
    return bytes;
}

void merge_record_validate(const struct merge_record *record)
{
    struct merge_place last = record->base_place;
    struct merge_spot spot = {0, 0};

    assert(record->count != 0 || record->older == NULL);
    for (uint32_t i = 0; i < older_count(record); i++)
        assert(record->older->items[i].count != 0 && record->older->items[i].count <= MERGE_PART_MOST);
    for (const struct merge_step *step; (step = merge_record_next(record, &spot)) != NULL;) {
        assert(merge_place_before(last, step->op->place));
        assert(!step->op->overwrites);
        last = step->op->place;
    }
}

bool merge_record_base_is_missing(const struct merge_record *record)
{
    struct merge_spot spot = {0, 0};
    const struct merge_step *first = merge_record_next(record, &spot);

    return first != NULL ? first->was_missing : record->value == NULL;
}

static void take_back_step(struct merge_record *record, struct merge_step *step, const struct merge_model *model)
{
    if (step->undo != NULL)
        record->value = model->undo(model, record->value, step->undo);
    model->undo_release(model, step->undo);
    step->undo = NULL;
}

/* Takes the steps from this spot on back: the value is what it was before them. They stay in the list. */
static void take_back(struct merge_record *record, struct merge_spot from, const struct merge_model *model)
{
    struct merge_spot spot = end_of(record);

    for (uint64_t left = count_from(record, from); left != 0; left--) {
        take_back_step(record, previous(record, &spot), model);
        forget_part(record, spot.part);
    }
}

static struct merge_spot find_spot(const struct merge_record *record, struct merge_place place);

/* How many steps stand among the operations that this one stands for, which is the last one before the spot. */
static uint64_t count_among(const struct merge_record *record, const struct merge_step *step, struct merge_spot behind)
{
    const struct merge_entry *entry = step->op->entry;
    const struct merge_spot first = find_spot(record, (struct merge_place){entry->joined.first, entry->origin});

    return count_from(record, first) - count_from(record, behind) - 1;
}

/* It does here what all that it stands for would do. */
static bool runs_as_known(const struct merge_record *record, const struct merge_step *step, struct merge_spot behind,
                          const struct merge_model *model)
{
    uint64_t among;

    if (LIKELY(!merge_op_is_joined(step->op)) || merge_broken(MERGE_BREAK_JOINED_RUN_ANYWHERE))
        return true;
    among = count_among(record, step, behind);
    return record->value != NULL && among <= MERGE_PASSED_MOST &&
           model->suits_joined(model, record->value, step->op, (uint32_t)among);
}

/* Runs the steps from this spot on, which are taken back. False: a joined one might have done something else one by
 * one. */
static bool run_from(struct merge_record *record, struct merge_spot spot, const struct merge_model *model)
{
    bool is_exact = true;

    for (struct merge_step *step; (step = merge_record_next(record, &spot)) != NULL;) {
        is_exact = runs_as_known(record, step, spot, model) && is_exact;
        step->was_missing = record->value == NULL;
        step->touch.kind = MERGE_TOUCH_UNKNOWN;
        record->value = merge_op_run(step->op, record->value, &step->undo, model);
    }
    return is_exact;
}

/* Among these, the index behind those that are not younger. Most arrivals belong near the end. */
static uint32_t find_among(const struct merge_step *steps, uint32_t count, struct merge_place place)
{
    uint64_t stride = 1, low, high;

    while (stride <= count && merge_place_before(place, steps[count - stride].op->place))
        stride *= 2;
    low = stride <= count ? count - stride + 1 : 0;
    high = count - stride / 2;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;

        if (merge_place_before(place, steps[middle].op->place))
            high = middle;
        else
            low = middle + 1;
    }
    return (uint32_t)low;
}

/* The spot behind those that are not younger. */
static struct merge_spot find_spot(const struct merge_record *record, struct merge_place place)
{
    uint32_t low = 0, high = older_count(record) + 1, count;
    const struct merge_step *steps;

    if (record->count == 0)
        return (struct merge_spot){0, 0};
    while (low < high) { /* parts before `low` do not begin with a younger one */
        const uint32_t middle = low + (high - low) / 2;

        if (merge_place_before(place, part_steps(record, middle, &count)[0].op->place))
            high = middle;
        else
            low = middle + 1;
    }
    low -= low != 0;
    steps = part_steps(record, low, &count);
    return (struct merge_spot){low, find_among(steps, count, place)};
}

uint32_t merge_record_younger(const struct merge_record *record, struct merge_place place)
{
    return (uint32_t)count_from(record, find_spot(record, place));
}

/* ----------------------------------------------------------------------------------------------------- in place -- */

enum { LOOKED_AT_MOST = 8 * 1024 }; /* steps, one by one */

/* Steps remember it, as each may be passed by many. */
static void note_touch(struct merge_step *step, const struct merge_model *model)
{
    step->touch = model->touch(model, step->op);
    step->is_apart = step->undo != NULL &&
                     (model->undo_is_apart(model, step->undo, (enum merge_touch_kind)step->touch.kind) ||
                      merge_broken(MERGE_BREAK_IN_PLACE_ANY_UNDO));
    /* An addition that has made its member: what takes it back takes all of the member. */
    if (step->touch.kind == MERGE_ADDS && step->undo != NULL && !step->is_apart &&
        model->undo_is_apart(model, step->undo, MERGE_WRITES)) {
        step->touch.kind = MERGE_WRITES;
        step->is_apart = true;
    }
}

static bool is_same_member(const struct merge_step *step, const struct merge_touch *touch)
{
    return step->touch.member == touch->member && !merge_broken(MERGE_BREAK_IN_PLACE_SAME_MEMBER);
}

static bool pushes(const struct merge_touch *touch)
{
    return touch->kind == MERGE_PUSHES_FIRST || touch->kind == MERGE_PUSHES_LAST;
}

/* Both may be in any order. An addition that was refused for a limit does not work behind another one either: the value
 * is still so near to the limit that the model lets nothing be added (`suits`). */
static bool go_together(const struct merge_step *step, const struct merge_touch *touch)
{
    return !is_same_member(step, touch) || (step->touch.kind == MERGE_ADDS && touch->kind == MERGE_ADDS);
}

static bool is_known_single(const struct merge_step *step)
{
    return !step->was_missing && step->touch.kind != MERGE_TOUCHES_ALL && !pushes(&step->touch) &&
           (step->undo == NULL || step->is_apart);
}

/* One that was refused may have met another type. */
static bool is_known_push(const struct merge_step *step)
{
    return (!step->was_missing && step->undo != NULL && step->is_apart && pushes(&step->touch)) ||
           merge_broken(MERGE_BREAK_IN_PLACE_PUSH_ANY);
}

/* The place is among those of the operations that it stands for. */
static bool covers(const struct merge_step *step, struct merge_place place)
{
    const struct merge_entry *entry = step->op->entry;

    return UNLIKELY(merge_op_is_joined(step->op)) && !merge_broken(MERGE_BREAK_JOINED_TORN) &&
           merge_place_before((struct merge_place){entry->joined.first, entry->origin}, place) &&
           merge_place_before(place, step->op->place);
}

static void know_touch(struct merge_step *step, const struct merge_model *model)
{
    if (step->touch.kind == MERGE_TOUCH_UNKNOWN)
        note_touch(step, model);
}

static bool is_single(struct merge_step *step, const struct merge_model *model)
{
    know_touch(step, model);
    return is_known_single(step);
}

/* Of a part, if it is known what its steps touch. */
static void sum_up(struct merge_part *part)
{
    part->is_known = part->adds = part->pushes = true;
    part->pushed_first = part->pushed_last = 0;
    for (uint32_t i = 0; i < part->count && (part->adds || part->pushes); i++) {
        const struct merge_step *step = &part->steps[i];

        if (step->touch.kind == MERGE_TOUCH_UNKNOWN) {
            part->is_known = false;
            return;
        }
        part->adds = part->adds && is_known_single(step) && step->touch.kind == MERGE_ADDS;
        part->pushes = part->pushes && is_known_push(step);
        part->pushed_first += step->touch.kind == MERGE_PUSHES_FIRST ? step->touch.member : 0;
        part->pushed_last += step->touch.kind == MERGE_PUSHES_LAST ? step->touch.member : 0;
    }
}

static void look_at_part(struct merge_part *part, const struct merge_model *model)
{
    for (uint32_t i = 0; i < part->count; i++)
        know_touch(&part->steps[i], model);
    sum_up(part);
}

/* All steps of the part may be passed by an addition, as far as is known. */
static bool adds_alone(const struct merge_record *record, uint32_t part)
{
    return part < older_count(record) && record->older->items[part].is_known && record->older->items[part].adds;
}

struct passing {
    struct merge_place place; /* of the one that passes */
    uint64_t looked_at, same; /* steps; of the same member */
    bool together;            /* all go together with it */
};

/* The steps of a part from this one on touch single members. */
static bool may_pass_part(struct merge_record *record, struct merge_spot from, const struct merge_touch *touch,
                          const struct merge_model *model, struct passing *passing)
{
    uint32_t count;
    struct merge_step *steps = part_steps(record, from.part, &count);

    passing->looked_at += count - from.at;
    if (passing->looked_at > LOOKED_AT_MOST)
        return false;
    for (uint32_t i = count; i-- != from.at;) {
        if (!is_single(&steps[i], model))
            return false;
        passing->same += is_same_member(&steps[i], touch);
        if (!go_together(&steps[i], touch)) {
            if (covers(&steps[i], passing->place))
                return false;
            passing->together = false;
        }
    }
    return true;
}

/* The steps from this one on touch single members. Gives the number of those that have to run again behind it. */
static bool may_pass(struct merge_record *record, struct merge_place place, struct merge_spot from,
                     const struct merge_touch *touch, const struct merge_model *model, uint32_t *again)
{
    struct passing passing = {.place = place, .together = true};
    bool looked_at_all = true;

    if (touch->kind == MERGE_TOUCHES_ALL || record->value == NULL)
        return false;
    for (uint32_t part = older_count(record) + 1; part-- != from.part;) {
        if (part < older_count(record) && part != from.part && !record->older->items[part].is_known)
            look_at_part(&record->older->items[part], model);
        if (touch->kind == MERGE_ADDS && adds_alone(record, part))
            looked_at_all = false;
        else if (!may_pass_part(record, (struct merge_spot){part, part == from.part ? from.at : 0}, touch, model,
                                &passing))
            return false;
    }
    *again = passing.together ? 0 : (uint32_t)passing.same;
    return looked_at_all || passing.together;
}

/* The steps from this one on only push. Gives the number of elements that they have pushed at the same end. */
static bool may_pass_pushes(struct merge_record *record, struct merge_spot from, const struct merge_touch *touch,
                            const struct merge_model *model, uint64_t *behind)
{
    const bool is_first = touch->kind == MERGE_PUSHES_FIRST;

    *behind = 0;
    if (record->value == NULL)
        return false;
    for (uint32_t part = older_count(record) + 1; part-- != from.part;) {
        struct merge_part *its = part < older_count(record) ? &record->older->items[part] : NULL;
        struct merge_step *steps;
        uint32_t count;

        if (its != NULL && part != from.part) {
            if (!its->is_known)
                look_at_part(its, model);
            if (!its->pushes)
                return false;
            *behind += is_first ? its->pushed_first : its->pushed_last;
            continue;
        }
        steps = part_steps(record, part, &count);
        for (uint32_t i = part == from.part ? from.at : 0; i < count; i++) {
            know_touch(&steps[i], model);
            if (!is_known_push(&steps[i]))
                return false;
            *behind += steps[i].touch.kind == touch->kind ? steps[i].touch.member : 0;
        }
    }
    return true;
}

/* Makes room for a step. It is behind the spot then. */
static struct merge_step *insert_step(struct merge_record *record, struct merge_spot *spot, struct merge_op *op)
{
    struct merge_step *steps;
    uint32_t count;

    (void)part_steps(record, spot->part, &count);
    if (count >= MERGE_PART_MOST)
        split_part(record, spot);
    if (spot->part == older_count(record)) {
        reserve_steps(record, 1);
        record->count++;
    } else {
        record->older->items[spot->part].count++;
    }
    steps = part_steps(record, spot->part, &count);
    memmove(&steps[spot->at + 1], &steps[spot->at], (count - 1 - spot->at) * sizeof(*steps));
    steps[spot->at] = (struct merge_step){.op = op};
    forget_part(record, spot->part);
    merge_entry_acquire(op->entry);
    return &steps[spot->at];
}

/* Where its step is to be. */
static bool find_place(struct merge_record *record, const struct merge_op *op, const struct merge_horizon *horizon,
                       const struct merge_touch *touch, const struct merge_model *model, struct merge_spot *spot,
                       uint32_t *again, uint64_t *behind)
{
    uint64_t younger;

    *again = 0;
    *behind = 0;
    if (merge_place_compare(op->place, horizon->flush) <= 0 || merge_place_compare(op->place, record->base_place) <= 0)
        return false;
    *spot = find_spot(record, op->place);
    younger = count_from(record, *spot);
    if (pushes(touch))
        return younger != 0 && may_pass_pushes(record, *spot, touch, model, behind) &&
               model->suits(model, record->value, op, 0, *behind != 0);
    return younger != 0 && younger <= MERGE_PASSED_MOST && may_pass(record, op->place, *spot, touch, model, again) &&
           model->suits(model, record->value, op, (uint32_t)younger, *again);
}

static void take_back_member(struct merge_record *record, struct merge_spot from, const struct merge_touch *touch,
                             const struct merge_model *model)
{
    struct merge_spot spot = end_of(record);

    for (uint64_t left = count_from(record, from); left != 0; left--) {
        struct merge_step *step = previous(record, &spot);

        if (is_same_member(step, touch))
            take_back_step(record, step, model);
        forget_part(record, spot.part);
    }
}

/* False: one of them cannot be taken back alone any more. */
static bool run_member(struct merge_record *record, struct merge_spot spot, const struct merge_touch *touch,
                       const struct merge_model *model)
{
    for (struct merge_step *step; (step = merge_record_next(record, &spot)) != NULL;) {
        if (!is_same_member(step, touch))
            continue;
        if (!runs_as_known(record, step, spot, model))
            return false;
        record->value = merge_op_run(step->op, record->value, &step->undo, model);
        note_touch(step, model);
        if (record->value == NULL || (step->undo != NULL && !step->is_apart))
            return false;
    }
    return true;
}

static const struct merge_step *insert_single(struct merge_record *record, struct merge_spot spot, struct merge_op *op,
                                              struct merge_undo *undo, const struct merge_model *model)
{
    struct merge_step *step = insert_step(record, &spot, op);

    step->undo = undo;
    note_touch(step, model);
    return step;
}

const struct merge_step *merge_record_run_in_place(struct merge_record *record, struct merge_op *op,
                                                   const struct merge_horizon *horizon, const struct merge_model *model)
{
    struct merge_undo *undo = NULL;
    struct merge_spot spot;
    struct merge_touch touch;
    uint64_t behind;
    uint32_t again;
    bool is_apart;

    if (op->overwrites || record->count == 0)
        return NULL;
    touch = model->touch(model, op);
    if (!find_place(record, op, horizon, &touch, model, &spot, &again, &behind))
        return NULL;
    if (merge_broken(MERGE_BREAK_IN_PLACE_PUSH_LAST))
        behind = 0;
    if (again != 0)
        take_back_member(record, spot, &touch, model);
    record->value = behind != 0 ? model->apply_behind(model, record->value, op, behind, &undo)
                                : model->apply(model, record->value, op, &undo);
    is_apart = undo == NULL || model->undo_is_apart(model, undo, (enum merge_touch_kind)touch.kind);
    if (is_apart && (again == 0 || run_member(record, spot, &touch, model)))
        return insert_single(record, spot, op, undo, model);
    /* All of it goes back, and comes again without it: first those that ran behind it. */
    if (again != 0)
        take_back_member(record, spot, &touch, model);
    if (undo != NULL) {
        record->value = model->undo(model, record->value, undo);
        model->undo_release(model, undo);
    }
    take_back(record, spot, model);
    (void)run_from(record, spot, model); /* and once more with it */
    return NULL;
}

/* ------------------------------------------------------------------------------------------------ back and forth -- */

/* The step at this place, and the spot behind it; NULL: there is none. */
static struct merge_step *step_at(const struct merge_record *record, struct merge_place place, struct merge_spot *spot)
{
    struct merge_spot before = *spot = find_spot(record, place);
    struct merge_step *step;

    if (before.part == 0 && before.at == 0)
        return NULL;
    step = previous(record, &before);
    return merge_place_compare(step->op->place, place) == 0 ? step : NULL;
}

/* It does here what it would do wherever it stands among the younger ones. */
static bool is_same_anywhere(const struct merge_record *record, struct merge_step *step, uint64_t younger,
                             const struct merge_model *model)
{
    if (!is_single(step, model))
        return false;
    if (step->touch.kind != MERGE_ADDS)
        return true;
    return record->value != NULL && younger <= MERGE_PASSED_MOST &&
           model->suits_joined(model, record->value, step->op, (uint32_t)younger);
}

struct joined_steps {
    struct merge_step **items;
    uint32_t count, capacity;
};

/* The steps from this place on that stand for several operations. */
static void find_joined(const struct merge_record *record, struct merge_place place, struct joined_steps *joined)
{
    struct merge_spot spot;
    struct merge_step *step;

    if (LIKELY(!record->has_joined))
        return;
    spot = find_spot(record, place);
    while ((step = merge_record_next(record, &spot)) != NULL) {
        if (merge_op_is_joined(step->op))
            *ARRAY_PUSH(joined) = step;
    }
}

/* What was put in this place stands among the operations that a younger step stands for, and it matters where. */
static bool is_torn(const struct merge_record *record, struct merge_place place, const struct joined_steps *joined,
                    const struct merge_model *model)
{
    struct merge_spot spot;
    struct merge_step *its;

    if (LIKELY(joined->count == 0))
        return false;
    its = step_at(record, place, &spot);
    for (uint32_t i = 0; i < joined->count; i++) {
        struct merge_step *step = joined->items[i];

        if (!covers(step, place))
            continue;
        if (its == NULL || !is_single(step, model) || !is_same_anywhere(record, its, count_from(record, spot), model) ||
            !go_together(step, &its->touch))
            return true;
    }
    return false;
}

/* Those of the operations, which were put in their places, that are. */
static void note_torn(const struct merge_record *record, struct merge_op *const *ops, uint32_t count,
                      const struct merge_model *model, enum merge_outcome *outcomes)
{
    struct joined_steps joined = {0};

    find_joined(record, ops[0]->place, &joined);
    for (uint32_t i = 0; i < count; i++) {
        if (is_torn(record, ops[i]->place, &joined, model))
            outcomes[i] = MERGE_LATE;
    }
    ARRAY_FINI(&joined);
}

/* Puts operations, which are ascending by place and behind the base, into their places, and runs what they concern.
 * False: as run_from. */
static bool insert_all_and_run(struct merge_record *record, struct merge_op *const *ops, uint32_t count,
                               const struct merge_model *model)
{
    const struct merge_spot from = find_spot(record, ops[0]->place);
    const uint64_t younger = count_from(record, from);
    struct merge_step *again = mem_alloc((younger + 1) * sizeof(*again));
    struct merge_spot spot = from;
    uint64_t done = 0;

    take_back(record, from, model);
    for (uint64_t i = 0; i < younger; i++)
        again[i] = *merge_record_next(record, &spot);
    cut_off(record, from);
    spot = end_of(record);
    for (uint32_t next = 0; next < count || done < younger;) {
        if (next == count || (done < younger && merge_place_before(again[done].op->place, ops[next]->place))) {
            *add_step(record) = again[done++];
        } else {
            merge_entry_acquire(ops[next]->entry);
            *add_step(record) = (struct merge_step){.op = ops[next++]};
        }
    }
    mem_free(again);
    return run_from(record, spot, model);
}

static void forget_if_refused(struct merge_record *record, struct merge_spot spot)
{
    uint32_t count;
    struct merge_step *steps = part_steps(record, spot.part, &count);

    if (steps[spot.at].undo != NULL || (count == 1 && record->older != NULL))
        return;
    merge_entry_release(steps[spot.at].op->entry);
    memmove(&steps[spot.at], &steps[spot.at + 1], (count - 1 - spot.at) * sizeof(*steps));
    forget_part(record, spot.part);
    if (spot.part == older_count(record))
        record->count--;
    else
        record->older->items[spot.part].count--;
}

/* A refused operation leaves the value as it was, and stays in the list: it may work when something older has come
 * in. */
static bool insert_and_run(struct merge_record *record, struct merge_op *op, const struct merge_model *model)
{
    struct merge_spot spot = merge_broken(MERGE_BREAK_ARRIVAL_ORDER) ? end_of(record) : find_spot(record, op->place);
    bool is_exact;

    take_back(record, spot, model);
    (void)insert_step(record, &spot, op);
    is_exact = run_from(record, spot, model);
    if (merge_broken(MERGE_BREAK_FORGET_REFUSED))
        forget_if_refused(record, spot);
    return is_exact;
}

/* The base becomes what overwrote (op NULL: a flush), and what was in the list before that goes. Only the younger run
 * again. False: as run_from. */
static bool set_base(struct merge_record *record, struct merge_place place, struct merge_op *op,
                     const struct merge_model *model)
{
    struct merge_spot spot = {0, 0};

    drop_steps(record, merge_record_step_count(record) - count_from(record, find_spot(record, place)), model);
    for (struct merge_step *step; (step = merge_record_next(record, &spot)) != NULL;) {
        model->undo_release(model, step->undo);
        step->undo = NULL; /* run_from follows */
        forget_part(record, spot.part);
    }
    model->destroy(model, record->value);
    record->value = op != NULL ? merge_op_run(op, NULL, NULL, model) : NULL;
    record->base_place = place;
    record->base_overwrote = true;
    return run_from(record, (struct merge_spot){0, 0}, model);
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
        take_back(record, (struct merge_spot){0, 0}, model);
        record->value = merge_op_run(op, record->value, NULL, model);
        record->base_overwrote = false;
        if (!exists)
            record->base_place = op->place;
        (void)run_from(record, (struct merge_spot){0, 0}, model); /* it is late in any case */
    }
    return MERGE_LATE;
}

enum merge_outcome merge_record_place(struct merge_record *record, struct merge_op *op, bool exists,
                                      const struct merge_horizon *horizon, const struct merge_model *model)
{
    struct merge_place last = merge_record_last(record);
    enum merge_outcome outcome;
    bool is_exact = true;

    if (merge_place_compare(op->place, horizon->flush) <= 0)
        return MERGE_FLUSHED;
    if (merge_place_compare(op->place, record->base_place) <= 0)
        return place_late(record, op, exists, horizon, model);
    outcome = merge_place_before(last, op->place) ? MERGE_APPENDED : MERGE_PLACED;
    if (op->overwrites && !merge_broken(MERGE_BREAK_OVERWRITE_RUNS_ALL)) {
        is_exact = set_base(record, op->place, op, model);
    } else if (op->overwrites) {
        take_back(record, (struct merge_spot){0, 0}, model);
        record->value = merge_op_run(op, record->value, NULL, model);
        (void)run_from(record, (struct merge_spot){0, 0}, model);
    } else if (merge_record_run_in_place(record, op, horizon, model) == NULL) {
        is_exact = insert_and_run(record, op, model);
    } else {
        return outcome;
    }
    if (!is_exact)
        return MERGE_LATE;
    note_torn(record, &op, 1, model, &outcome);
    return outcome;
}

void merge_record_ran(struct merge_record *record, struct merge_op *op, struct merge_undo *undo, bool was_missing,
                      struct merge_value *value)
{
    debug_assert(!op->overwrites && merge_place_before(merge_record_last(record), op->place));
    *add_step(record) = (struct merge_step){.op = op, .undo = undo, .was_missing = was_missing};
    record->value = value;
}

void merge_record_note_last(struct merge_record *record, const struct merge_model *model)
{
    know_touch(&record->steps[record->count - 1], model);
}

void merge_record_ran_over(struct merge_record *record, struct merge_place place, struct merge_value *value,
                           const struct merge_model *model)
{
    assert(merge_place_before(merge_record_last(record), place));
    drop_steps(record, merge_record_step_count(record), model);
    record->value = value;
    record->base_place = place;
    record->base_overwrote = true;
}

/* They are ascending, and behind the base and the flush. What stands before one that overwrites does not run at all. */
static void place_together(struct merge_record *record, struct merge_op *const *ops, uint32_t count,
                           const struct merge_horizon *horizon, const struct merge_model *model,
                           enum merge_outcome *outcomes)
{
    const struct merge_place last = merge_record_last(record);
    uint32_t first = count;

    for (uint32_t i = 0; i < count; i++)
        outcomes[i] = merge_place_before(last, ops[i]->place) ? MERGE_APPENDED : MERGE_PLACED;
    while (first != 0 && !ops[first - 1]->overwrites)
        first--;
    if (first != 0)
        outcomes[first - 1] = merge_record_place(record, ops[first - 1], true, horizon, model);
    if (first == count)
        return;
    if (!insert_all_and_run(record, ops + first, count - first, model))
        outcomes[count - 1] = MERGE_LATE;
    note_torn(record, ops + first, count - first, model, outcomes + first);
}

void merge_record_place_all(struct merge_record *record, struct merge_op *const *ops, uint32_t count, bool exists,
                            const struct merge_horizon *horizon, const struct merge_model *model,
                            enum merge_outcome *outcomes)
{
    uint32_t first = 0;

    for (uint32_t i = 1; i < count; i++)
        assert(merge_place_before(ops[i - 1]->place, ops[i]->place));
    while (first < count && (merge_place_compare(ops[first]->place, record->base_place) <= 0 ||
                             merge_place_compare(ops[first]->place, horizon->flush) <= 0)) {
        outcomes[first] = merge_record_place(record, ops[first], exists, horizon, model);
        exists = exists || outcomes[first] == MERGE_LATE;
        first++;
    }
    if (first != count)
        place_together(record, ops + first, count - first, horizon, model, outcomes + first);
}

enum merge_outcome merge_record_flush(struct merge_record *record, struct merge_place flush,
                                      const struct merge_model *model)
{
    if (merge_place_compare(merge_record_last(record), flush) <= 0 || merge_broken(MERGE_BREAK_FLUSH_ALL))
        return MERGE_APPENDED;
    if (merge_place_before(record->base_place, flush)) {
        struct joined_steps joined = {0};
        bool is_exact = set_base(record, flush, NULL, model);

        find_joined(record, flush, &joined);
        is_exact = is_exact && !is_torn(record, flush, &joined, model);
        ARRAY_FINI(&joined);
        return is_exact ? MERGE_PLACED : MERGE_LATE;
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
    struct merge_spot spot = {0, 0};
    uint64_t settled = 0;

    for (const struct merge_step *step; (step = merge_record_next(record, &spot)) != NULL; settled++) {
        if (step->op->place.stamp > horizon->frontier)
            break;
        record->base_place = step->op->place;
    }
    if (settled != 0) {
        record->base_overwrote = false;
        drop_steps(record, settled, model);
    }
    if (record->count != 0 || record->base_place.stamp > horizon->frontier || keep)
        return false;
    if (merge_broken(MERGE_BREAK_EXPIRY_BY_FRONTIER))
        wall = (int64_t)(horizon->frontier >> MERGE_COUNTER_BITS);
    if (record->value != NULL)
        record->value = model->expire(model, record->value, wall);
    return record->value == NULL;
}

/* ---------------------------------------------------------------------------------------------------- joining -- */

/* The oldest addition to a member so far: that before it is joined to it. */
struct join_slot {
    struct merge_step *step; /* NULL: something else has changed the member before it */
    uint64_t origin;
    uint32_t member;
    uint32_t round;
};

struct joining {
    struct join_slot *slots; /* those of one member in a row; of an earlier round: free */
    uint32_t mask;
    uint32_t round; /* ends where a step cannot be passed */
};

static bool is_free(const struct joining *joining, const struct join_slot *slot)
{
    return slot->round != joining->round;
}

static uint32_t first_slot(const struct joining *joining, uint32_t member)
{
    return member * UINT32_C(0x9E3779B1) & joining->mask;
}

/* The slot of the member and the origin, or the free one where it is to be. */
static struct join_slot *slot_of(const struct joining *joining, uint32_t member, uint64_t origin)
{
    struct join_slot *slot;

    for (uint32_t at = first_slot(joining, member);; at = (at + 1) & joining->mask) {
        slot = &joining->slots[at];
        if (is_free(joining, slot) || (slot->member == member && slot->origin == origin))
            return slot;
    }
}

static void forget_member(const struct joining *joining, uint32_t member)
{
    for (uint32_t at = first_slot(joining, member); !is_free(joining, &joining->slots[at]);
         at = (at + 1) & joining->mask) {
        if (joining->slots[at].member == member)
            joining->slots[at].step = NULL;
    }
}

static bool join_steps(struct merge_step *older, struct merge_step *younger, const struct merge_model *model)
{
    const struct merge_op *first = older->op, *last = younger->op;
    struct merge_item item = {.key = last->key};
    struct merge_entry *entry;
    struct merge_sum sum;

    if (!model->join(model, first, older->undo, last, younger->undo, &sum))
        return false;
    item.words = sum.words;
    entry = merge_entry_create(last->entry->origin, last->entry->stamp, first->entry->prev,
                               MAX(first->entry->wall, last->entry->wall), false, &item, 1);
    entry->joined.first = merge_op_is_joined(first) ? first->entry->joined.first : first->place.stamp;
    entry->joined.weight = sum.weight;
    mem_free((void *)(uintptr_t)sum.words.data);
    release_step(older, model);
    release_step(younger, model);
    older->op = NULL;
    younger->op = &entry->ops[0];
    younger->undo = sum.undo;
    return true;
}

/* Of older and older steps. Whether it was joined, and is gone. */
static bool join_step(struct joining *joining, struct merge_step *step, const struct merge_model *model)
{
    struct join_slot *slot;

    know_touch(step, model);
    if (!is_known_single(step) || step->undo == NULL) {
        joining->round++;
        return false;
    }
    if (step->touch.kind != MERGE_ADDS && !merge_broken(MERGE_BREAK_JOINED_OVER_WRITES)) {
        forget_member(joining, step->touch.member);
        return false;
    }
    if (step->touch.kind != MERGE_ADDS)
        return false;
    slot = slot_of(joining, step->touch.member, step->op->entry->origin);
    if (!is_free(joining, slot) && slot->step != NULL && join_steps(step, slot->step, model))
        return true;
    *slot = (struct join_slot){step, step->op->entry->origin, step->touch.member, joining->round};
    return false;
}

/* Steps without an operation go. */
static void close_ranks(struct merge_record *record, uint32_t part)
{
    uint32_t count, kept = 0;
    struct merge_step *steps = part_steps(record, part, &count);

    for (uint32_t i = 0; i < count; i++) {
        if (steps[i].op != NULL)
            steps[kept++] = steps[i];
    }
    forget_part(record, part);
    if (part == older_count(record))
        record->count = kept;
    else
        record->older->items[part].count = kept;
}

static void append_part(struct merge_part *to, struct merge_part *from)
{
    memcpy(to->steps + to->count, from->steps, from->count * sizeof(*from->steps));
    to->count += from->count;
    to->is_known = false;
    from->count = 0;
}

/* Parts that fit into one become one, and those without steps go. */
static void gather_parts(struct merge_record *record)
{
    struct merge_part *last;

    for (uint32_t i = 0; i + 1 < older_count(record);) {
        struct merge_part *items = record->older->items;

        if (items[i].count + items[i + 1].count > MERGE_PART_MOST) {
            i++;
            continue;
        }
        append_part(&items[i], &items[i + 1]);
        remove_parts(record, i + 1, i + 2);
    }
    if (older_count(record) == 0)
        return;
    last = &record->older->items[older_count(record) - 1];
    if (last->count + record->count > MERGE_PART_MOST)
        return;
    reserve_steps(record, last->count);
    memmove(record->steps + last->count, record->steps, record->count * sizeof(*record->steps));
    memcpy(record->steps, last->steps, last->count * sizeof(*last->steps));
    record->count += last->count;
    remove_parts(record, older_count(record) - 1, older_count(record));
}

/* Gives room back that many steps have taken. */
static void shrink_steps(struct merge_record *record)
{
    struct merge_step *steps = record->steps;

    if (record->has_lent || record->capacity / 4 < record->count)
        return;
    record->steps = mem_copy(steps, record->count * sizeof(*steps));
    record->capacity = record->count;
    mem_free(steps);
}

/* Behind the steps that are not younger than the stamp, of the first ones. */
static struct merge_spot join_end(const struct merge_record *record, uint64_t until, uint32_t most)
{
    const struct merge_spot end = find_spot(record, (struct merge_place){until, UINT64_MAX});
    const struct merge_older *older = record->older;
    uint64_t sum = 0;

    for (uint32_t part = 0; older != NULL && part < end.part; part++) {
        sum += older->items[part].count;
        if (sum >= most)
            return (struct merge_spot){part, older->items[part].count};
    }
    return end;
}

uint64_t merge_record_join(struct merge_record *record, uint64_t until, uint32_t most, const struct merge_model *model)
{
    struct merge_spot spot = join_end(record, until, most);
    const uint64_t count = merge_record_step_count(record) - count_from(record, spot);
    const uint32_t parts = spot.part;
    struct joining joining = {.mask = 7, .round = 1};
    uint64_t joined = 0;

    if (count < 2)
        return 0;
    while (joining.mask < 2 * count)
        joining.mask = 2 * joining.mask + 1;
    joining.slots = mem_alloc_zero(((size_t)joining.mask + 1) * sizeof(*joining.slots));
    for (uint64_t left = count; left != 0; left--)
        joined += join_step(&joining, previous(record, &spot), model);
    mem_free(joining.slots);
    if (joined == 0)
        return 0;
    record->has_joined = true;
    for (uint32_t i = 0; i <= parts; i++)
        close_ranks(record, i);
    gather_parts(record);
    shrink_steps(record);
    return joined;
}

bool merge_record_note_joined(struct merge_record *record, struct merge_place place, struct merge_joined joined)
{
    struct merge_spot spot;
    struct merge_step *step = step_at(record, place, &spot);

    if (step == NULL)
        return false;
    step->op->entry->joined = joined;
    record->has_joined = true;
    return true;
}

void merge_record_forget_list(struct merge_record *record, const struct merge_model *model)
{
    if (record->count == 0)
        return;
    record->base_place = merge_record_last(record);
    record->base_overwrote = merge_broken(MERGE_BREAK_BOUND_KEEPS_OVERWROTE);
    drop_steps(record, merge_record_step_count(record), model);
}
