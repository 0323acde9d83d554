#include "active/place.h"

#include "active/place_priv.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "server/command/operation.h"
#include "server/core/server.h"
#include "server/durable/child.h"
#include "server/run/dispatch.h"
#include "server/run/obeyed.h"
#include "store/undo.h"
#include "store/waiters.h"

void place_fini(struct place *place)
{
    assert(place->worker == NULL && place->corrections.count == 0 && place->waiting.count == 0);
    obeyed_client_destroy(&place->client);
    ARRAY_FINI(&place->stamps);
    ARRAY_FINI(&place->args);
    ARRAY_FINI(&place->corrections);
    ARRAY_FINI(&place->waiting);
    buffer_fini(&place->words);
    buffer_fini(&place->undo);
    buffer_fini(&place->step_words);
    key_list_fini(&place->keys);
    place_raw_fini(place);
}

bool place_keys_of_any(const struct frame_entry *entry, struct key_list *keys)
{
    if (UNLIKELY(entry->is_raw))
        return place_raw_keys(entry, keys);
    for (uint32_t i = 0; i < entry->op_count; i++) {
        const struct frame_op *op = &entry->ops[i];
        const struct command *command;

        if (place_has_key(op)) {
            *ARRAY_PUSH(keys) = key_make(op->words[op->key_index]);
            continue;
        }
        command = place_command(op->words, op->word_count);
        if (command != NULL && command_access(command, op->words, op->word_count) == ACCESS_EXCLUSIVE)
            return false;
    }
    return !entry->flush;
}

uint32_t place_key_count_of_any(const struct frame_entry *entry)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < entry->op_count; i++)
        count += place_has_key(&entry->ops[i]);
    return count;
}

/* ----------------------------------------------------------------------------------------------------- placing -- */

/* A key of the entry before this one's, and behind its last flush: what is before that was left out. */
static bool is_done(const struct frame_entry *entry, uint32_t index)
{
    const struct frame_op *op = &entry->ops[index];

    for (uint32_t i = index; i-- != 0;) {
        if (UNLIKELY(place_flushes(entry, &entry->ops[i], op->db)))
            return false;
        if (place_has_key(&entry->ops[i]) && entry->ops[i].db == op->db &&
            slice_equal(entry->ops[i].words[entry->ops[i].key_index], op->words[op->key_index]))
            return true;
    }
    return false;
}

static void forward(const struct target *target)
{
    for (uint32_t i = target->first; i < target->entry->op_count; i++) {
        if (target_has(target, &target->entry->ops[i]))
            place_add_operation(target->place, target->entry, &target->entry->ops[i], false);
    }
}

/* It is younger than everything of this key, and overwrites. */
static void append_overwriting(const struct target *target, struct window_key *known)
{
    struct access *access = place_access(target->place);
    bool exists;

    target_run_told(target);
    exists = target_set_version(target, target->at, true);
    if (known != NULL) {
        struct window_model model;

        window_model_init(&model, access);
        merge_record_ran_over(&known->record, target->at, window_value(exists), &model.model);
        if (known->dirty.stamp != 0 && merge_place_before(known->dirty, target->at))
            window_clean(access, known);
        window_changed(access, &known);
    } else if (!exists) {
        const struct merge_record tombstone = {.base_place = target->at, .base_overwrote = true};

        (void)window_add(access, target->db, &target->key, &tombstone);
    }
}

/* What it met may have been freed here. */
static bool may_be_freed(const struct target *target)
{
    return target->entry->wall < horizon_freed(&place_access(target->place)->store->horizon);
}

/* The same, and does not overwrite; in the list of a record. */
static void append_to_record(const struct target *target, struct window_key *known, struct slice undo)
{
    struct access *access = place_access(target->place);
    struct merge_undo *taken = undo.size != 0 ? (struct merge_undo *)key_undo_of_image(undo.data) : NULL;

    merge_record_ran(&known->record, target_op(target), taken, known->record.value == NULL, target_value(target));
    if (may_be_freed(target)) {
        target->place->counts.late_wall++;
        window_mark(access, known, target_mark(target));
    }
    if (known->record.value != NULL)
        (void)target_set_version(target, target->at, false);
    window_appended(access, known);
}

/* target_words, behind target_run_told: the effect that was told last has them. */
static struct slice told_words(const struct target *target)
{
    const struct effects *effects = &target->place->worker->run.effects;
    const struct effect *last = &effects->items[effects->count - 1];

    assert(effects->count != 0);
    if (UNLIKELY(target->entry->op_count != 1 || last->blob_count != 0))
        return target_words(target);
    return slice_make(effects->bytes.data + last->offset, last->size);
}

static void note_step(const struct target *target, const struct merge_record *base, struct slice undo)
{
    const struct window_step step = {.place = target->at,
                                     .previous = target->entry->prev,
                                     .wall = target->entry->wall,
                                     .words = told_words(target),
                                     .undo = undo,
                                     .exists = target_set_version(target, target->at, false)};

    window_note(place_access(target->place), target->db, &target->key, base, &step);
}

static void append_step(const struct target *target, struct window_key *known, const struct merge_record *base)
{
    struct access *access = place_access(target->place);
    struct buffer *undo = &target->place->undo;

    buffer_clear(undo);
    undo_begin(access);
    target_run_told(target);
    (void)undo_take_image(access, target->db, &target->key, undo);
    undo_end(access);
    if (known == NULL && UNLIKELY(may_be_freed(target))) {
        known = window_find(access, target->db, &target->key);
        if (known == NULL)
            known = window_add(access, target->db, &target->key, base);
    }
    if (known != NULL)
        append_to_record(target, known, buffer_slice(undo));
    else
        note_step(target, base, buffer_slice(undo));
}

/* True if it has run at the end although it is older than the last one. */
static bool run_in_place(const struct target *target, struct window_key *known, const struct merge_horizon *horizon,
                         bool *was_told)
{
    struct merge_op *op;
    struct place_model model;
    const struct merge_step *step;

    if (known == NULL || target->overwrites)
        return false;
    op = target_op(target);
    place_model_init(&model, target);
    step = merge_record_run_in_place(&known->record, op, horizon, &model.window.model);
    merge_entry_release(op->entry);
    *was_told = model.has_told;
    if (step == NULL)
        return false;
    target->place->counts.placed++;
    if (model.pushed.count != 0) {
        target_correct_push(target, model.pushed.is_first, model.pushed.count, model.pushed.behind);
        forward(target);
        target_inform(target);
    } else if (!model.has_told) {
        forward(target);
        target_tell(target);
    }
    if (may_be_freed(target)) {
        target->place->counts.late_wall++;
        window_mark(place_access(target->place), known, target_mark(target));
    }
    window_inserted(place_access(target->place), known, step);
    return true;
}

/* An eviction stands at another place than that of its stamp, which it may share with another one. */
static void gather(const struct target *target)
{
    if (target->evicts)
        place_merge(target->place);
    place_gather(target->place, target);
    if (target->evicts)
        place_merge(target->place);
}

static struct window_key *find_for_end(const struct target *target, uint64_t version)
{
    struct access *access = place_access(target->place);

    if (target->evicts)
        return window_find(access, target->db, &target->key);
    if (target->overwrites) /* it may leave nothing */
        return window_find_for_overwriting(access, target->db, &target->key, version);
    return window_find_for_step(access, target->db, &target->key);
}

static bool is_younger(const struct target *target, const struct window_key *known, const struct merge_record *base,
                       const struct merge_horizon *horizon)
{
    return merge_place_before(horizon->flush, target->at) &&
           merge_place_before(merge_record_last(known != NULL ? &known->record : base), target->at);
}

static void place_key(struct place *place, const struct frame_entry *entry, uint32_t first, const struct key *key)
{
    struct access *access = place_access(place);
    const struct entry *found;
    struct merge_horizon horizon;
    struct merge_record base;
    struct window_key *known;
    struct target target;
    uint64_t version;
    bool was_told = false;

    target_init(&target, place, entry, first, key);
    if (place_waits(place, &target)) {
        forward(&target);
        gather(&target);
        return;
    }
    found = access_look_at(access, target.db, &target.key, &target.spot);
    target.has_spot = true;
    version = found != NULL ? entry_version(found) : 0;
    known = find_for_end(&target, version);
    if (LIKELY(known == NULL && !target.evicts && version_stamp(version) < entry->stamp && version != 0 &&
               merge_place_before(access->store->horizon.flushes[target.db], target.at))) {
        place->counts.appended++;
        if (target.overwrites) { /* that its base is older is all that is to be known of it */
            append_overwriting(&target, NULL);
            return;
        }
        window_base(access, target.db, true, version, &base);
        append_step(&target, NULL, &base);
        return;
    }
    horizon = horizon_of(&access->store->horizon, target.db);
    window_base(access, target.db, found != NULL, version, &base);
    place_doubt_base(&base, target.at.stamp);
    if (UNLIKELY(known == NULL && !is_younger(&target, NULL, &base, &horizon)))
        known = window_find(access, target.db, &target.key);
    if (LIKELY(is_younger(&target, known, &base, &horizon))) {
        place->counts.appended++;
        if (target.overwrites)
            append_overwriting(&target, known);
        else
            append_step(&target, known, &base);
        return;
    }
    if (run_in_place(&target, known, &horizon, &was_told))
        return;
    if (!was_told)
        forward(&target);
    gather(&target);
}

/* ----------------------------------------------------------------------------------------------------- batches -- */

/* What clients of this server get of it changes the data, too: in the journal that is behind what gave it to them. */
static void settle(struct place *place)
{
    place_merge(place);
    place_append_to_journal(place);
    output_clear(&place->worker->sink);
    dispatch_settle_access(place_access(place));
}

void place_begin(struct place *place, struct worker *worker, bool exclusive)
{
    worker_assert_inside(worker);
    assert(place->worker == NULL && worker->run.effects.count == 0);
    assert(place->is_journaled || journal_is_stamping(&worker->server->journal));
    place->worker = worker;
    place->exclusive = exclusive;
    place->plain = PLAIN_UNKNOWN;
    place->begun_us = clock_monotonic_us();
    /* Keys are looked for before the first operation runs at its own time. */
    access_begin(&worker->run.access, worker_now_ms(worker), exclusive);
    if (place->client == NULL)
        place->client = obeyed_client_create(worker, NULL);
}

void place_begin_again(struct place *place, struct worker *worker)
{
    gate_assert_alone();
    place->is_journaled = true;
    place_begin(place, worker, true);
}

/* No version of this server sends such an operation: which stripes it needs was not known. */
static bool lacks_its_key(struct place *place, const struct frame_op *op)
{
    const struct command *command = place_command(op->words, op->word_count);

    place->keys.count = 0;
    return command != NULL && key_list_add(&place->keys, command, op->words, op->word_count) != 0;
}

static void place_without_key(struct place *place, const struct frame_entry *entry, uint32_t index)
{
    const struct command *command = place_library_command(&entry->ops[index]);

    if (place_tells_late_flush(&entry->ops[index]))
        place_late_flush(place, entry, &entry->ops[index]);
    else if (command == NULL)
        (void)place_run_told(place, entry, &entry->ops[index], NULL);
    else if (operation_is_of_library(command))
        place_library(place, entry, index);
    else
        place_libraries_flush(place, entry, index);
}

static void place_op(struct place *place, const struct frame_entry *entry, uint32_t index, const struct key *key)
{
    const struct frame_op *op = &entry->ops[index];

    if (op->db >= place->worker->server->store->database_count) {
        place->counts.unknown++;
        place_add_operation(place, entry, op, false);
    } else if (place_is_flush(entry, op)) {
        place_merge(place);
        place_flush(place, entry, op);
    } else if (entry->flush && place_is_flushed_later(entry, index)) {
        place_add_operation(place, entry, op, false);
    } else if (!place_has_key(op) && UNLIKELY(lacks_its_key(place, op))) {
        place->counts.unknown++;
        place_add_operation(place, entry, op, false);
    } else if (!place_has_key(op)) {
        place_without_key(place, entry, index);
    } else if (!is_done(entry, index)) {
        place_key(place, entry, index, key);
    }
}

static ALWAYS_INLINE void place_operations(struct place *place, const struct frame_entry *entry, const struct key *keys)
{
    struct effects *effects = &place->worker->run.effects;
    uint64_t seen = JOURNAL_NOWHERE;

    if (LIKELY(entry->is_of_one_key && entry->ops->db < place->worker->server->store->database_count)) {
        place_key(place, entry, 0, keys);
    } else {
        for (uint32_t i = 0; i < entry->op_count; i++) {
            const bool has_key = keys != NULL && place_has_key(&entry->ops[i]);

            place_op(place, entry, i, has_key ? keys++ : NULL);
        }
        if (entry->op_count == 1 && entry->ops->evicts)
            seen = entry->ops->seen;
    }
    place_describe_stamps(place, &(struct effect_stamp){.origin = entry->origin,
                                                        .stamp = entry->stamp,
                                                        .previous = entry->prev,
                                                        .wall_ms = entry->wall,
                                                        .mvcc = entry->mvcc,
                                                        .key_position = seen});
    if (LIKELY(effects->count != 0))
        effects->items[effects->count - 1].ends_group = true;
    if (waiters_are_ready(place_access(place)) || place_access(place)->has_noted)
        settle(place);
}

static NOINLINE void place_raw(struct place *place, const struct frame_entry *entry)
{
    struct frame_entry told = *entry;

    place_merge(place);
    place_raw_tell(place, &told);
    place_operations(place, &told, NULL);
}

void place_entry(struct place *place, const struct frame_entry *entry, const struct key *keys)
{
    worker_assert_inside(place->worker);
    if (UNLIKELY(entry->is_raw))
        place_raw(place, entry);
    else
        place_operations(place, entry, keys);
}

bool place_value(struct place *place, const struct place_value *value)
{
    const struct frame_entry entry = {.wall = place_access(place)->now_ms};
    const struct target target = {.place = place,
                                  .entry = &entry,
                                  .key = value->key,
                                  .db = value->db,
                                  .at = value->last};
    const struct place_run run = {.words = value->words,
                                  .word_count = value->word_count,
                                  .db = value->db,
                                  .wall = entry.wall};
    struct access *access = place_access(place);
    struct window_key *known = window_find(access, value->db, &value->key);
    const struct entry *found;
    struct merge_record base;
    bool stays;

    assert(place->is_journaled);
    if (value->db == horizon_libraries_db(&access->store->horizon))
        return place_library_value(place, value);
    found = target_look(&target);
    window_base(access, value->db, found != NULL, found != NULL ? entry_version(found) : 0, &base);
    stays = (known == NULL && found == NULL) ||
            merge_place_before(known != NULL ? merge_record_last(&known->record) : base.base_place, value->last);
    if (stays) {
        if (known != NULL)
            window_remove(access, &known);
        (void)place_run_words(place, &run);
        if (value->last.stamp != 0)
            (void)target_set_version(&target, value->last, value->overwrote);
        found = target_look(&target);
        window_base(access, value->db, found != NULL, found != NULL ? entry_version(found) : 0, &base);
        if (found == NULL)
            base = (struct merge_record){.base_place = value->last, .base_overwrote = value->overwrote};
    }
    if (known == NULL)
        known = window_add(access, value->db, &value->key, &base);
    window_mark(access, known, target_mark(&target));
    return stays;
}

/* A peer may have commands that are unknown here. */
static uint32_t find_key(const struct frame_op *op, const struct command *command, const struct key *key)
{
    const uint32_t index = command != NULL ? operation_key_index(command) : 0;

    if (index < op->word_count && slice_equal(op->words[index], key->name))
        return index;
    for (uint32_t i = 1; i < op->word_count; i++) {
        if (slice_equal(op->words[i], key->name))
            return i;
    }
    return 0;
}

/* The commands of a step, as operations of `entry`; valid until the next one. */
static void read_step(struct place *place, unsigned db, const struct key *key, struct slice words,
                      struct frame_entry *entry)
{
    const char *at = words.data, *end = at + words.size;
    const struct slice *first;

    place->raw.ops.count = place->raw.words.count = 0;
    while (at < end) {
        at = place_read_words(place, at);
        *ARRAY_PUSH(&place->raw.ops) = (struct frame_op){.word_count = place->args.count, .db = db};
        for (uint32_t i = 0; i < place->args.count; i++)
            *ARRAY_PUSH(&place->raw.words) = place->args.items[i];
    }
    first = place->raw.words.items;
    for (uint32_t i = 0; i < place->raw.ops.count; i++) {
        struct frame_op *op = &place->raw.ops.items[i];
        const struct command *command = operation_find(first, op->word_count);

        op->words = first;
        first += op->word_count;
        op->key_index = find_key(op, command, key);
        op->overwrites = command != NULL && operation_overwrites(command, op->words, op->word_count);
    }
    entry->ops = place->raw.ops.items;
    entry->op_count = place->raw.ops.count;
}

/* It stands for more than it says. */
static void note_joined(struct place *place, unsigned db, const struct key *key, const struct window_step *step)
{
    struct window_key *known;

    place_merge(place);
    known = window_find(place_access(place), db, key);
    if (known != NULL) /* else it was flushed, or overwritten */
        (void)merge_record_note_joined(&known->record, step->place, step->joined);
}

void place_step(struct place *place, unsigned db, const struct key *key, const struct window_step *step)
{
    struct frame_entry entry = {.origin = step->place.origin,
                                .stamp = step->place.stamp,
                                .prev = step->previous,
                                .wall = step->wall};

    assert(place->is_journaled && step->words.size != 0);
    read_step(place, db, key, step->words, &entry);
    place_entry(place, &entry, NULL);
    if (UNLIKELY(step->joined.first != 0))
        note_joined(place, db, key, step);
}

void place_doubt(struct place *place, unsigned db, const struct key *key)
{
    struct access *access = place_access(place);
    struct window_key *known = window_find(access, db, key);

    if (known != NULL)
        window_mark(access, known,
                    (struct merge_place){MAX(journal_clock(&place->worker->server->journal),
                                             merge_record_last(&known->record).stamp),
                                         0});
}

/* No deadline has passed at wall time 0. */
static void restore_payload(struct place *place, const struct place_base *base)
{
    char digits[NUMBER_I64_SPACE];
    const int64_t expire_ms = base->expire_ms != EXPIRE_NEVER ? base->expire_ms : 0;
    const struct slice words[] = {
        SLICE("RESTORE"), base->key.name,   slice_make(digits, number_format_i64(digits, expire_ms)),
        base->payload,    SLICE("REPLACE"), SLICE("ABSTTL")};
    const struct place_run run = {.words = words, .word_count = countof(words), .db = base->db};

    (void)place_run_words(place, &run);
}

bool place_base(struct place *place, const struct place_base *base)
{
    const struct frame_entry entry = {.wall = 0};
    const struct target target = {.place = place, .entry = &entry, .key = base->key, .db = base->db, .at = base->place};
    struct access *access = place_access(place);
    struct merge_record record = {.base_place = base->place, .base_overwrote = base->overwrote};
    struct window_key *known = window_find(access, base->db, &base->key);
    struct merge_place last = base->place;
    struct place_model model;
    bool exists;

    assert(place->is_journaled && base->db < access->store->database_count);
    if (known != NULL)
        window_remove(access, &known);
    place_run_begin(place, 0, false);
    exists = target_look(&target) != NULL;
    place_run_end(place);
    place_model_init(&model, &target);
    if (exists)
        place_model_destroy(&model.window.model, WINDOW_THERE);
    if (base->has_value)
        restore_payload(place, base);
    if (last.origin == 0) /* nobody's */
        last.origin = MERGE_ORIGIN_FLOOR;
    exists = target_set_version(&target, last, base->overwrote);
    record.value = window_value(exists);
    known = window_add(access, base->db, &base->key, &record);
    if (base->dirty.stamp != 0)
        window_mark(access, known, base->dirty);
    return exists == base->has_value;
}

enum { COUNTS = sizeof(struct place_counts) / sizeof(uint64_t) };
static _Atomic uint64_t totals[COUNTS]; /* atomic: relaxed; in the order of struct place_counts */

static void tell_counts(struct place *place)
{
    uint64_t now[COUNTS], told[COUNTS];

    static_assert(sizeof(now) == sizeof(place->counts), "it has counts alone");
    memcpy(now, &place->counts, sizeof(now));
    memcpy(told, &place->told, sizeof(told));
    for (unsigned i = 0; i < COUNTS; i++) {
        if (now[i] != told[i])
            atomic_fetch_add_explicit(&totals[i], now[i] - told[i], memory_order_relaxed);
    }
    place->told = place->counts;
}

void place_totals(struct place_counts *counts)
{
    uint64_t now[COUNTS];

    for (unsigned i = 0; i < COUNTS; i++)
        now[i] = atomic_load_explicit(&totals[i], memory_order_relaxed);
    memcpy(counts, now, sizeof(now));
}

static _Atomic uint64_t longest_us; /* atomic: relaxed */

static void note_duration(const struct place *place)
{
    const uint64_t took_us = clock_monotonic_us() - place->begun_us;
    uint64_t longest = atomic_load_explicit(&longest_us, memory_order_relaxed);

    while (took_us > longest && !atomic_compare_exchange_weak_explicit(&longest_us, &longest, took_us,
                                                                       memory_order_relaxed, memory_order_relaxed))
        ;
}

uint64_t place_longest_us(void)
{
    return atomic_exchange_explicit(&longest_us, 0, memory_order_relaxed);
}

void place_end(struct place *place)
{
    struct worker *worker = place->worker;

    worker_assert_inside(worker);
    place_merge(place);
    place_append_to_journal(place);
    output_clear(&worker->sink);
    access_begin(&worker->run.access, worker_now_ms(worker), place->exclusive);
    dispatch_settle_access(&worker->run.access);
    worker->run.access.effects = NULL;
    note_duration(place);
    place->is_journaled = false;
    place->worker = NULL;
    tell_counts(place);
}
