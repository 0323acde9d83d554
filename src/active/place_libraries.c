/* Libraries of functions. Each is a key of a database of its own (store/horizon.h), and all of its operations
 * overwrite: so all that is known of one is the place of its last operation. */
#include "active/place_priv.h"

#include "base/array.h"
#include "base/gate.h"
#include "base/mem.h"
#include "server/command/operation.h"
#include "server/core/server.h"
#include "server/durable/libraries.h"

const struct command *place_library_command(const struct frame_op *op)
{
    const struct command *command = operation_find(op->words, op->word_count);

    if (command == NULL || (!operation_is_of_library(command) && !operation_flushes_libraries(command)))
        return NULL;
    return operation_is_of_library(command) && op->word_count < 2 ? NULL : command;
}

static bool is_done_later(const struct frame_entry *entry, uint32_t index)
{
    for (uint32_t i = index + 1; i < entry->op_count; i++) {
        const struct command *command = place_library_command(&entry->ops[i]);

        if (command != NULL &&
            (operation_flushes_libraries(command) || slice_equal(entry->ops[i].words[1], entry->ops[index].words[1])))
            return true;
    }
    return false;
}

/* What is known of a library, whether it is there or not. */
static struct merge_record base_of(const struct target *target, const struct window_key *known)
{
    const struct merge_horizon horizon = horizon_of(&place_access(target->place)->store->horizon, target->db);
    struct merge_record base;

    if (known != NULL)
        return known->record;
    merge_record_init(&base, &horizon);
    return base;
}

static void note_last(const struct target *target, struct window_key *known)
{
    const struct merge_record last = {.base_place = target->at, .base_overwrote = true};
    struct access *access = place_access(target->place);

    if (known == NULL) {
        (void)window_add(access, target->db, &target->key, &last);
        return;
    }
    known->record.base_place = target->at;
    known->record.base_overwrote = true;
    if (known->dirty.stamp != 0 && merge_place_before(known->dirty, target->at))
        window_clean(access, known);
    window_changed(access, &known);
}

static void mark(const struct target *target, struct window_key *known)
{
    const struct merge_record base = base_of(target, known);
    struct access *access = place_access(target->place);

    target->place->counts.late++;
    if (known == NULL)
        known = window_add(access, target->db, &target->key, &base);
    window_mark(access, known, target_mark(target));
}

static bool is_there(const struct target *target)
{
    struct slice source;

    return libraries_find(target->key.name, &source);
}

static void init(struct target *target, struct place *place, const struct frame_entry *entry, struct slice name)
{
    gate_assert_alone();
    *target = (struct target){.place = place,
                              .entry = entry,
                              .key = key_make(name),
                              .db = horizon_libraries_db(&place_access(place)->store->horizon),
                              .overwrites = true,
                              .at = {entry->stamp, entry->origin}};
}

void place_library(struct place *place, const struct frame_entry *entry, uint32_t index)
{
    const struct frame_op *op = &entry->ops[index];
    struct window_key *known;
    struct merge_record base;
    struct target target;

    init(&target, place, entry, op->words[1]);
    known = window_find(place_access(place), target.db, &target.key);
    base = base_of(&target, known);
    if (is_done_later(entry, index)) {
        place_add_operation(place, entry, op, false);
    } else if (merge_place_before(base.base_place, target.at)) {
        place->counts.appended++;
        (void)place_run_told(place, entry, op, NULL);
        note_last(&target, known);
    } else if (base.base_overwrote) {
        place->counts.dropped++;
        place_add_operation(place, entry, op, false);
    } else { /* late: the one that is there may be younger */
        if (is_there(&target))
            place_add_operation(place, entry, op, false);
        else
            (void)place_run_told(place, entry, op, NULL);
        mark(&target, known);
    }
}

/* ----------------------------------------------------------------------------------------------------- flushes -- */

struct names {
    struct slice *items;
    uint32_t count, capacity;
};

static void add_name(struct slice name, void *context)
{
    struct names *names = context;

    *ARRAY_PUSH(names) = slice_make(mem_copy(name.data, name.size), name.size);
}

static void flush_library(struct place *place, const struct frame_entry *entry, struct slice name,
                          struct merge_place at)
{
    const struct slice words[] = {SLICE("KEYDB.OP.LIBRARY"), name};
    const struct place_run run = {.words = words, .word_count = 2, .wall = entry->wall, .is_told = true};
    struct effects *effects = &place->worker->run.effects;
    const uint32_t first = effects->count;
    struct window_key *known;
    struct merge_record base;
    struct target target;

    init(&target, place, entry, name);
    target.at = at;
    known = window_find(place_access(place), target.db, &target.key);
    base = base_of(&target, known);
    if (merge_place_before(base.base_place, at)) {
        (void)place_run_words(place, &run);
        for (uint32_t i = first; i < effects->count; i++) /* they get the flush itself */
            effects->items[i].hidden_from |= EFFECT_PEERS;
    } else if (!base.base_overwrote) {
        mark(&target, known);
    }
}

static void flush_known(struct access *access, struct window_key *known, void *context)
{
    const struct merge_place *at = context;

    if (known->db == horizon_libraries_db(&access->store->horizon) && known->dirty.stamp == 0 &&
        merge_place_before(known->record.base_place, *at))
        window_remove(access, &known);
}

void place_libraries_flush(struct place *place, const struct frame_entry *entry, uint32_t index)
{
    struct access *access = place_access(place);
    struct horizon *horizon = &access->store->horizon;
    const unsigned db = horizon_libraries_db(horizon);
    struct merge_place at = merge_place_behind(entry->stamp - 1);
    struct names names = {0};

    gate_assert_alone();
    place_add_operation(place, entry, &entry->ops[index], false);
    if (merge_place_compare(at, horizon_of(horizon, db).flush) <= 0)
        return;
    place->counts.flushes++;
    libraries_each_name(add_name, &names);
    for (uint32_t i = 0; i < names.count; i++) {
        flush_library(place, entry, names.items[i], at);
        mem_free((void *)(uintptr_t)names.items[i].data);
    }
    ARRAY_FINI(&names);
    for (uint32_t i = 0; i <= access->store->stripe_mask; i++)
        window_each(access, i, flush_known, &at);
    horizon_note_flush(horizon, db, at);
}

/* ------------------------------------------------------------------------------------------------------ values -- */

bool place_library_value(struct place *place, const struct place_value *value)
{
    const struct frame_entry entry = {.wall = place_access(place)->now_ms};
    const struct place_run run = {.words = value->words, .word_count = value->word_count, .wall = entry.wall};
    struct window_key *known;
    struct target target;
    bool stays;

    init(&target, place, &entry, value->key.name);
    target.at = value->last;
    known = window_find(place_access(place), target.db, &target.key);
    stays = (known == NULL && !is_there(&target)) ||
            merge_place_before(base_of(&target, known).base_place, value->last);
    if (stays) {
        (void)place_run_words(place, &run);
        if (value->last.stamp != 0)
            note_last(&target, known);
        known = window_find(place_access(place), target.db, &target.key);
    }
    mark(&target, known);
    return stays;
}
