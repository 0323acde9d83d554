#include "active/place_priv.h"

#include "base/gate.h"
#include "base/number.h"
#include "server/command/operation.h"
#include "server/core/deferred_log.h"
#include "server/core/server.h"

struct flush {
    struct place *place;
    const struct frame_entry *entry;
    struct merge_place at;
    struct buffer names; /* of keys without a record that go, or that are late: size, hash, bytes each */
    uint64_t survivors;
};

struct flushed_key {
    uint64_t hash, name_size;
    bool is_late;
};

static void flush_target_init(struct target *target, const struct flush *flush, unsigned db, const struct key *key)
{
    *target = (struct target){.place = flush->place, .entry = flush->entry, .key = *key, .db = db, .at = flush->at};
}

static void flush_entry(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct flush *flush = context;
    const struct key key = key_make(entry_key(entry));
    struct merge_record base;
    struct flushed_key item = {.hash = key.hash, .name_size = key.name.size};

    if (window_find(access, db, &key) != NULL)
        return;
    window_base(access, db, true, entry_version(entry), &base);
    switch (merge_record_flush(&base, flush->at, NULL)) {
    case MERGE_LATE:
        item.is_late = true;
        break;
    case MERGE_APPENDED:
        break;
    default:
        flush->survivors++;
        return;
    }
    buffer_append(&flush->names, &item, sizeof(item));
    buffer_append_slice(&flush->names, key.name);
}

static void flush_known(struct access *access, struct window_key *known, void *context)
{
    struct flush *flush = context;
    const struct key key = window_name(known);
    struct place_model model;
    struct target target;

    flush_target_init(&target, flush, known->db, &key);
    if (known->db != flush->place->flushed_db)
        return;
    if (known->dirty.stamp != 0 && merge_place_before(known->dirty, flush->at))
        window_clean(access, known);
    place_model_init(&model, &target);
    switch (merge_record_flush(&known->record, flush->at, &model.window.model)) {
    case MERGE_APPENDED:
        if (known->record.value != NULL) {
            place_model_destroy(&model.window.model, known->record.value);
            target_tell(&target);
        }
        window_remove(access, &known);
        break;
    case MERGE_PLACED:
        target_tell(&target);
        target_write_down(&target, known);
        flush->survivors++;
        break;
    case MERGE_LATE:
        flush->place->counts.late++;
        window_mark(access, known, target_mark(&target));
        target_tell(&target);
        target_write_down(&target, known);
        flush->survivors++;
        break;
    default:
        flush->survivors++;
        break;
    }
}

/* Returns where the one behind it begins. */
static size_t next_named(const struct flush *flush, size_t at, struct flushed_key *item, struct key *key)
{
    memcpy(item, flush->names.data + at, sizeof(*item));
    *key = (struct key){slice_make(flush->names.data + at + sizeof(*item), item->name_size), item->hash};
    return at + sizeof(*item) + item->name_size;
}

static void flush_named(struct flush *flush, unsigned db)
{
    struct access *access = place_access(flush->place);

    for (size_t at = 0; at < flush->names.size;) {
        struct flushed_key item;
        struct target target;
        struct key key;

        at = next_named(flush, at, &item, &key);
        flush_target_init(&target, flush, db, &key);
        if (item.is_late) {
            const struct entry *entry = target_look(&target);
            struct merge_record base;

            window_base(access, db, true, entry_version(entry), &base);
            flush->place->counts.late++;
            flush->survivors++;
            window_mark(access, window_add(access, db, &key, &base), target_mark(&target));
        } else {
            struct place_model model;

            place_model_init(&model, &target);
            place_model_destroy(&model.window.model, WINDOW_THERE);
            target_correct(&target);
        }
    }
}

/* ------------------------------------------------------------------------------------------------- late flushes -- */

static void resting_entry(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct flush *flush = context;
    const struct key key = key_make(entry_key(entry));
    const struct flushed_key item = {.hash = key.hash, .name_size = key.name.size};
    struct merge_record base;

    if (window_find(access, db, &key) != NULL)
        return;
    window_base(access, db, true, entry_version(entry), &base);
    if (!merge_record_rests_on(&base, flush->at))
        return;
    buffer_append(&flush->names, &item, sizeof(item));
    buffer_append_slice(&flush->names, key.name);
}

static void resting_known(struct access *access, struct window_key *known, void *context)
{
    const struct flush *flush = context;
    const struct key key = window_name(known);
    struct target target;

    if (known->db != flush->place->flushed_db || !merge_record_rests_on(&known->record, flush->at))
        return;
    flush_target_init(&target, flush, known->db, &key);
    window_mark(access, known, target_mark(&target));
}

static void mark_named(struct flush *flush, unsigned db)
{
    struct access *access = place_access(flush->place);

    for (size_t at = 0; at < flush->names.size;) {
        struct flushed_key item;
        struct merge_record base;
        struct target target;
        struct key key;

        at = next_named(flush, at, &item, &key);
        flush_target_init(&target, flush, db, &key);
        window_base(access, db, true, entry_version(target_look(&target)), &base);
        window_mark(access, window_add(access, db, &key, &base), target_mark(&target));
    }
}

/* Of a key that is missing here it is not known what it would be had the flush come in time, nor its name. So every
 * node writes anew what would be another value without the flush, as far as it can be known. */
static void mark_what_rests_on(struct flush *flush, unsigned db)
{
    struct access *access = place_access(flush->place);
    const struct access_visitor visitor = {.visit = resting_entry, .context = flush, .sees_expired = true};

    buffer_clear(&flush->names);
    access_each(access, db, &visitor);
    for (uint32_t i = 0; i <= access->store->stripe_mask; i++)
        window_each(access, i, resting_known, flush);
    mark_named(flush, db);
}

/* ----------------------------------------------------------------------------------------------------- flushes -- */

/* What is missing here may have been freed, of which the flush would have left something. */
static bool is_late(const struct horizon *horizon, struct merge_place at, int64_t wall)
{
    return at.stamp < horizon_floor(horizon) || wall < horizon_freed(horizon);
}

static void note_late(struct flush *flush, unsigned db)
{
    flush->place->counts.late_flushes++;
    deferred_log(flush->place->worker, LOG_LEVEL_WARNING,
                 "A flush of database %u came too late for its place: all members write anew what rests on it", db);
    mark_what_rests_on(flush, db);
    horizon_note_late_flush(&place_access(flush->place)->store->horizon, db);
}

static void flush_keys(struct flush *flush, unsigned db)
{
    struct access *access = place_access(flush->place);
    const struct access_visitor visitor = {.visit = flush_entry, .context = flush, .sees_expired = true};

    flush->place->flushed_db = db;
    access_each(access, db, &visitor);
    for (uint32_t i = 0; i <= access->store->stripe_mask; i++)
        window_each(access, i, flush_known, flush);
    flush_named(flush, db);
}

/* Returns the number of keys that are left. */
static uint64_t flush_db(struct place *place, const struct frame_entry *entry, unsigned db, struct merge_place at)
{
    struct horizon *horizon = &place_access(place)->store->horizon;
    struct flush flush = {.place = place, .entry = entry, .at = at};

    if (merge_place_compare(at, horizon_of(horizon, db).flush) <= 0)
        return 1; /* whoever flushed later has said so */
    flush_keys(&flush, db);
    horizon_note_flush(horizon, db, at);
    if (UNLIKELY(is_late(horizon, at, entry->wall)))
        note_late(&flush, db);
    buffer_fini(&flush.names);
    return flush.survivors;
}

/* It stands before everything else of its entry. */
void place_flush(struct place *place, const struct frame_entry *entry, const struct frame_op *op)
{
    const bool all = slice_equal_text_nocase(op->words[0], "flushall");
    const uint32_t corrections_before = place->corrections.count;
    uint64_t survivors = 0;

    gate_assert_alone();
    place->counts.flushes++;
    place_add_operation(place, entry, op, false);
    place_describe_stamps(place, &(struct effect_stamp){.origin = entry->origin,
                                                        .stamp = entry->stamp,
                                                        .previous = entry->prev,
                                                        .wall_ms = entry->wall,
                                                        .mvcc = entry->mvcc,
                                                        .key_position = JOURNAL_NOWHERE});
    place_run_begin(place, entry->wall, false);
    place->flush_corrects = true;
    for (unsigned db = 0; db < place->worker->server->store->database_count; db++) {
        if (all || db == op->db)
            survivors += flush_db(place, entry, db, merge_place_behind(entry->stamp - 1));
    }
    place->flush_corrects = false;
    place_run_end(place);
    if (survivors == 0) { /* the words say it to everybody */
        place->worker->run.effects.items[place->worker->run.effects.count - 1].hidden_from = 0;
        place->corrections.count = corrections_before;
    }
}

/* No deadline has passed at wall time 0. */
void place_flush_again(struct place *place, unsigned db)
{
    const struct merge_place at = horizon_of(&place_access(place)->store->horizon, db).flush;
    const struct frame_entry entry = {.stamp = at.stamp + 1};
    struct flush flush = {.place = place, .entry = &entry, .at = at};

    gate_assert_alone();
    assert(place->is_journaled);
    place_run_begin(place, entry.wall, false);
    flush_keys(&flush, db);
    place_run_end(place);
    buffer_fini(&flush.names);
}

bool place_tells_late_flush(const struct frame_op *op)
{
    const struct command *command = operation_find(op->words, op->word_count);

    return command != NULL && operation_tells_late_flush(command);
}

static bool find_late(const struct frame_entry *entry, const struct frame_op *op, struct merge_place *at)
{
    uint64_t stamp;

    if (op->word_count != 2 || !number_parse_u64(op->words[1], &stamp) || !stamp_is_possible(stamp) ||
        stamp >= entry->stamp)
        return false;
    *at = merge_place_behind(stamp - 1);
    return true;
}

void place_late_flush(struct place *place, const struct frame_entry *entry, const struct frame_op *op)
{
    struct horizon *horizon = &place_access(place)->store->horizon;
    struct flush flush = {.place = place, .entry = entry};

    gate_assert_alone();
    place_add_operation(place, entry, op, false);
    if (!find_late(entry, op, &flush.at)) {
        place->counts.refused++;
        return;
    }
    place_merge(place);
    place_run_begin(place, entry->wall, false);
    place->flush_corrects = true;
    (void)flush_db(place, entry, op->db, flush.at);
    place->flush_corrects = false;
    place->flushed_db = op->db;
    if (merge_place_compare(horizon_of(horizon, op->db).flush, flush.at) == 0) {
        mark_what_rests_on(&flush, op->db);
        horizon_forget_late_flush(horizon, op->db);
    }
    place_run_end(place);
    buffer_fini(&flush.names);
}

bool place_flushes(const struct frame_entry *entry, const struct frame_op *op, unsigned db)
{
    return place_is_flush(entry, op) && (op->db == db || slice_equal_text_nocase(op->words[0], "flushall"));
}

bool place_is_flushed_later(const struct frame_entry *entry, uint32_t index)
{
    for (uint32_t i = index + 1; i < entry->op_count; i++) {
        if (place_flushes(entry, &entry->ops[i], entry->ops[index].db))
            return true;
    }
    return false;
}
