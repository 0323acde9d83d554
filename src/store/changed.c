#include "store/changed.h"

#include "base/array.h"
#include "base/panic.h"
#include "store/lookup.h"
#include "store/undo_priv.h"
#include "store/window.h"

#include <stdlib.h>
#include <string.h>

enum { SEARCH_MOST = 16 }; /* items that are searched one by one */

void changed_fini(struct changed *changed)
{
    assert(changed->count == 0);
    buffer_fini(&changed->names);
    buffer_fini(&changed->undos);
    buffer_fini(&changed->words);
    ARRAY_FINI(&changed->groups);
    ARRAY_FINI(&changed->singles);
    ARRAY_FINI(&changed->stamps);
    ARRAY_FINI(&changed->operations);
    ARRAY_FINI(&changed->by_hash);
    ARRAY_FINI(changed);
}

/* ---------------------------------------------------------------------------------------------------- gathering -- */

static struct slice undo_of(const struct changed *changed, const struct changed_item *item)
{
    return item != NULL ? slice_make(changed->undos.data + item->undo_at, item->undo_size) : SLICE_EMPTY;
}

static void drop_undo(const struct changed *changed, struct access *access, struct changed_item *item)
{
    if (item->undo_size != 0)
        key_undo_drop_image(access, undo_of(changed, item).data);
    item->undo_size = 0;
}

/* Those of the group that is open; they have no undos yet. */
static void cut_open(struct changed *changed)
{
    if (changed->count == changed->first_open)
        return;
    changed->names.size = changed->items[changed->first_open].name_at;
    changed->count = changed->first_open;
}

struct key changed_key(const struct changed *changed, const struct changed_item *item)
{
    const char *name = item->name != NULL ? item->name : changed->names.data + item->name_at;

    return (struct key){slice_make(name, item->name_size), item->hash};
}

static bool is_of(const struct changed *changed, const struct changed_item *item, unsigned db, const struct key *key)
{
    return item->hash == key->hash && item->db == db && slice_equal(changed_key(changed, item).name, key->name);
}

bool changed_was_noted(const struct changed *changed, const struct change *change)
{
    return is_of(changed, &changed->items[changed->count - 1], change->db, change->key);
}

static ALWAYS_INLINE void take_undo(struct changed *changed, struct access *access, struct changed_item *item)
{
    item->undo_at = changed->undos.size;
    if (LIKELY(item->undo != NULL))
        item->undo_size = undo_take_image_inline(access, item->undo, &changed->undos);
}

/* All groups are singles. What has changed since is one key, and one effect without blobs, for all readers, on it. */
static ALWAYS_INLINE bool is_single(const struct changed *changed, const struct effects *effects)
{
    const uint32_t index = changed->first_open;
    const struct changed_item *item = &changed->items[index];
    const struct effect *effect = &effects->items[index];

    return changed->groups.count == 0 && changed->count == index + 1 && effects->count == index + 1 && item->is_first &&
           item->db == effect->db && effect->hidden_from == 0 && effect->blob_count == 0 &&
           (effect->flags & ~(unsigned)EFFECT_OVERWRITES) == EFFECT_OWN_KEY;
}

/* From here on they are groups as all others. */
static NOINLINE void end_singles(struct changed *changed)
{
    for (uint32_t i = 0; i < changed->singles.count; i++)
        *ARRAY_PUSH(&changed->groups) = (struct changed_group){i + 1, i + 1, changed->singles.items[i].wall_ms,
                                                               changed->items[i].was_recorded};
    changed->singles.count = 0;
}

static NOINLINE void end_group(struct changed *changed, struct access *access, const struct effects *effects,
                               int64_t wall_ms)
{
    const bool was_recorded = undo_is_recording(access);
    uint32_t groups = changed->groups.count, effect_begin = changed->singles.count;

    if (groups != 0)
        effect_begin = changed->groups.items[groups - 1].effect_end;
    assert(effects->count >= effect_begin);
    if (effects->count == effect_begin) {
        cut_open(changed);
        return;
    }
    if (groups == 0)
        end_singles(changed);
    for (uint32_t i = changed->first_open; was_recorded && i < changed->count; i++)
        take_undo(changed, access, &changed->items[i]);
    *ARRAY_PUSH(&changed->groups) = (struct changed_group){changed->count, effects->count, wall_ms, was_recorded};
    changed->first_open = changed->count;
}

void changed_end_group(struct changed *changed, struct access *access, const struct effects *effects, int64_t wall_ms)
{
    const bool was_recorded = undo_is_recording(access);

    if (LIKELY(is_single(changed, effects))) {
        struct changed_item *item = &changed->items[changed->first_open++];

        item->was_recorded = was_recorded;
        if (was_recorded)
            take_undo(changed, access, item);
        ARRAY_PUSH(&changed->singles)->wall_ms = wall_ms;
    } else {
        end_group(changed, access, effects, wall_ms);
    }
    changed->own = NULL;
    if (was_recorded)
        undo_end_inline(access);
}

void changed_clear(struct changed *changed, struct access *access)
{
    for (uint32_t i = 0; UNLIKELY(changed->undos.size != 0) && i < changed->count; i++)
        drop_undo(changed, access, &changed->items[i]);
    changed->own = NULL;
    changed->count = changed->first_open = 0;
    changed->groups.count = changed->singles.count = 0;
    buffer_clear(&changed->names);
    buffer_clear(&changed->undos);
}

/* ------------------------------------------------------------------------------------------------- writing down -- */

/* What is written of a group. */
struct writer {
    struct changed *changed;
    struct access *access;
    const struct effects *effects;
    const struct changed_group *group; /* NULL: of singles */
    struct merge_place place;
    uint64_t previous;
    int64_t wall_ms;     /* of the group */
    bool was_recorded;   /* it */
    uint32_t first_item; /* its */
};

/* Nobody asked what was done to which key. */
static void write_versions(struct writer *writer, uint64_t version)
{
    for (uint32_t i = writer->first_item; i < writer->group->key_end; i++) {
        const struct changed_item *item = &writer->changed->items[i];
        const struct key key = changed_key(writer->changed, item);
        struct change change;

        change_find_at(&change, writer->access, item->db, &key, &item->spot);
        if (change.slot != NULL)
            change_set_version(&change, version);
    }
}

/* What was its last operation before this one: what an earlier group has written counts. */
static uint64_t last_version(const struct changed_item *item, const struct entry *entry)
{
    return MAX(entry != NULL ? entry_version(entry) : 0, item != NULL ? item->version : 0);
}

static void write_overwritten(struct writer *writer, unsigned db, const struct key *key,
                              const struct changed_item *item, const struct entry *entry)
{
    const bool exists = entry != NULL;
    struct window_key *known;
    struct window_model model;

    if (UNLIKELY(item == NULL && !exists)) /* evicted: nobody has noted its version */
        known = window_find(writer->access, db, key);
    else
        known = window_find_for_overwriting(writer->access, db, key, last_version(item, entry));

    if (known != NULL) {
        window_model_init(&model, writer->access);
        merge_record_ran_over(&known->record, writer->place, window_value(exists), &model.model);
        if (known->dirty.stamp != 0 && merge_place_before(known->dirty, writer->place))
            window_clean(writer->access, known);
        window_changed(writer->access, &known);
    } else if (!exists) {
        const struct merge_record tombstone = {.base_place = writer->place, .base_overwrote = true};

        (void)window_add(writer->access, db, key, &tombstone);
    }
}

static struct slice words_of(struct writer *writer, const struct changed_operation *operations, uint32_t count)
{
    struct buffer *words = &writer->changed->words;
    const struct effect *effect = &writer->effects->items[operations[0].effect];

    if (LIKELY(count == 1 && effect->blob_count == 0))
        return slice_make(writer->effects->bytes.data + effect->offset, effect->size);
    buffer_clear(words);
    for (uint32_t i = 0; i < count; i++)
        effects_append_bytes(writer->effects, &writer->effects->items[operations[i].effect], words);
    return buffer_slice(words);
}

static void append_to_record(struct writer *writer, struct window_key *known, const struct window_step *step,
                             bool existed)
{
    const struct merge_item item = {.words = step->words};
    struct merge_entry *entry = merge_entry_create(step->place.origin, step->place.stamp, step->previous, step->wall,
                                                   false, &item, 1);
    struct key_undo *undo = step->undo.size != 0 ? key_undo_of_image(step->undo.data) : NULL;

    merge_record_ran(&known->record, &entry->ops[0], (struct merge_undo *)undo, !existed, window_value(step->exists));
    window_appended(writer->access, known);
}

/* It cannot be taken back. */
static void end_list(struct writer *writer, struct window_key *known, bool exists)
{
    struct window_model model;

    window_model_init(&model, writer->access);
    merge_record_ran_over(&known->record, writer->place, window_value(exists), &model.model);
    known->record.base_overwrote = false;
    window_changed(writer->access, &known);
}

static NOINLINE void end_list_of(struct writer *writer, unsigned db, const struct key *key, bool existed, bool exists,
                                 uint64_t version)
{
    struct window_key *known = window_find(writer->access, db, key);
    struct merge_record base;

    if (known == NULL) {
        window_base(writer->access, db, existed, version, &base);
        known = window_add(writer->access, db, key, &base);
    }
    end_list(writer, known, exists);
}

/* item NULL: it changed nothing here, but others may not find it so. */
static ALWAYS_INLINE void write_step(struct writer *writer, unsigned db, struct slice words, struct changed_item *item,
                                     const struct key *key, const struct entry *entry)
{
    const uint64_t version = last_version(item, entry);
    const bool existed = item != NULL ? item->existed : entry != NULL;
    struct window_key *known;

    if (UNLIKELY(!writer->was_recorded)) {
        end_list_of(writer, db, key, existed, entry != NULL, version);
    } else {
        const struct window_step step = {.place = writer->place,
                                         .previous = writer->previous,
                                         .wall = writer->wall_ms,
                                         .words = words,
                                         .undo = undo_of(writer->changed, item),
                                         .exists = entry != NULL};

        known = window_note_own(writer->access, db, key, version, existed, &step);
        if (known != NULL)
            append_to_record(writer, known, &step, existed);
        if (item != NULL)
            item->undo_size = 0;
    }
}

/* The operations of one key, in their order. */
static ALWAYS_INLINE void write_key(struct writer *writer, const struct changed_operation *operations, uint32_t count,
                                    struct changed_item *item)
{
    struct access *access = writer->access;
    const struct key key = {operations[0].name, operations[0].hash};
    const struct merge_place place = writer->place;
    bool overwrote = false;
    struct change change;

    if (LIKELY(item != NULL))
        change_find_at(&change, access, item->db, &key, &item->spot);
    else
        change_find(&change, access, operations[0].db, &key);
    for (uint32_t i = 0; i < count; i++) {
        const unsigned flags = writer->effects->items[operations[i].effect].flags;

        overwrote = overwrote || (flags & EFFECT_OVERWRITES) != 0;
        if (UNLIKELY((flags & EFFECT_EVICTS) != 0))
            writer->place = merge_place_behind(writer->changed->stamps.items[operations[i].effect].key_position);
    }
    if (overwrote)
        write_overwritten(writer, operations[0].db, &key, item, change_entry(&change));
    else
        write_step(writer, operations[0].db, words_of(writer, operations, count), item, &key, change_entry(&change));
    if (change.slot != NULL)
        change_set_version(&change, version_make(writer->place.stamp, overwrote, VERSION_OWN_ORIGIN));
    writer->place = place;
}

/* The item that says what the key was before the group. */
static struct changed_item *find_item(const struct writer *writer, unsigned db, const struct key *key)
{
    const struct changed *changed = writer->changed;
    uint32_t low = 0, high = changed->by_hash.count;

    if (high == 0) {
        for (uint32_t i = writer->first_item; i < changed->count; i++) {
            if (is_of(changed, &changed->items[i], db, key))
                return &changed->items[i];
        }
        return NULL;
    }
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (changed->items[changed->by_hash.items[middle]].hash < key->hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < changed->by_hash.count; low++) {
        const uint32_t index = changed->by_hash.items[low];

        if (changed->items[index].hash != key->hash)
            break;
        if (index >= writer->first_item && is_of(changed, &changed->items[index], db, key))
            return &changed->items[index];
    }
    return NULL;
}

static int compare_items(const void *a, const void *b, void *context)
{
    const struct changed_item *items = context;
    const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

    if (items[one].hash != items[other].hash)
        return items[one].hash < items[other].hash ? -1 : 1;
    return (one > other) - (one < other);
}

static void arrange_items(struct changed *changed)
{
    changed->by_hash.count = 0;
    if (LIKELY(changed->count <= SEARCH_MOST))
        return;
    for (uint32_t i = 0; i < changed->count; i++)
        *ARRAY_PUSH(&changed->by_hash) = i;
    qsort_r(changed->by_hash.items, changed->count, sizeof(uint32_t), compare_items, changed->items);
}

static int compare_operations(const void *a, const void *b)
{
    const struct changed_operation *one = a, *other = b;
    int order;

    if (one->hash != other->hash)
        return one->hash < other->hash ? -1 : 1;
    if (one->db != other->db)
        return one->db < other->db ? -1 : 1;
    order = slice_compare(one->name, other->name);
    return order != 0 ? order : (one->effect > other->effect) - (one->effect < other->effect);
}

static bool same_key(const struct changed_operation *one, const struct changed_operation *other)
{
    return one->hash == other->hash && one->db == other->db && slice_equal(one->name, other->name);
}

static void write_keys(struct writer *writer)
{
    struct changed_operation *operations = writer->changed->operations.items;
    const uint32_t count = writer->changed->operations.count;

    if (count > 1)
        qsort(operations, count, sizeof(*operations), compare_operations);
    for (uint32_t i = 0, end; i < count; i = end) {
        const struct key key = {operations[i].name, operations[i].hash};

        for (end = i + 1; end < count && same_key(&operations[i], &operations[end]);)
            end++;
        write_key(writer, &operations[i], end - i,
                  operations[i].is_first ? &writer->changed->items[writer->first_item]
                                         : find_item(writer, operations[i].db, &key));
    }
}

/* What was before it in this group is gone. A flush stands behind all that is older than its group. */
static void write_flush(struct writer *writer, const struct effect *effect)
{
    struct store *store = writer->access->store;
    const struct slice word = effects_word(writer->effects, effect, 0);
    const bool all = slice_equal_text_nocase(word, "flushall");
    uint32_t kept = 0;

    gate_assert_alone();
    for (uint32_t i = 0; i < writer->changed->operations.count; i++) {
        if (!all && writer->changed->operations.items[i].db != effect->db)
            writer->changed->operations.items[kept++] = writer->changed->operations.items[i];
    }
    writer->changed->operations.count = kept;
    for (unsigned db = 0; db < store->database_count; db++) {
        if (!all && db != effect->db)
            continue;
        window_forget_db(writer->access, db);
        horizon_note_flush(&store->horizon, db, merge_place_behind(writer->place.stamp - 1));
    }
}

static void write_library(struct writer *writer, const struct effect *effect)
{
    const struct key key = key_make(effects_word(writer->effects, effect, 1));

    write_overwritten(writer, horizon_libraries_db(&writer->access->store->horizon), &key, NULL, NULL);
}

static void write_library_flush(struct writer *writer)
{
    struct horizon *horizon = &writer->access->store->horizon;

    window_forget_db(writer->access, horizon_libraries_db(horizon));
    horizon_note_flush(horizon, horizon_libraries_db(horizon), merge_place_behind(writer->place.stamp - 1));
}

static void gather_operation(struct writer *writer, uint32_t index)
{
    const struct effect *effect = &writer->effects->items[index];
    struct changed *changed = writer->changed;
    const struct slice name = effects_word(writer->effects, effect, effect->key_index);
    const uint32_t item = writer->first_item;
    struct changed_operation *operation = ARRAY_PUSH(&changed->operations);

    *operation = (struct changed_operation){.name = name, .db = effect->db, .effect = index};
    if (LIKELY(item < changed->count && slice_equal(changed_key(changed, &changed->items[item]).name, name))) {
        operation->hash = changed->items[item].hash;
        operation->is_first = changed->items[item].db == effect->db;
    } else {
        operation->hash = hash_bytes(name.data, name.size);
    }
}

static void write_group(struct writer *writer, uint32_t first_effect)
{
    struct changed *changed = writer->changed;
    bool is_described = false;

    changed->operations.count = 0;
    for (uint32_t i = first_effect; i < writer->group->effect_end; i++) {
        const struct effect *effect = &writer->effects->items[i];

        if ((effect->hidden_from & EFFECT_PEERS) != 0)
            continue;
        is_described = is_described || effect->key_index != 0 || effect->flags != 0;
        if (UNLIKELY((effect->flags & EFFECT_FLUSH) != 0))
            write_flush(writer, effect);
        else if (UNLIKELY((effect->flags & EFFECT_LIBRARY) != 0))
            write_library(writer, effect);
        else if (UNLIKELY((effect->flags & EFFECT_LIBRARIES) != 0))
            write_library_flush(writer);
        else if (effect->key_index != 0)
            gather_operation(writer, i);
    }
    if (LIKELY(is_described))
        write_keys(writer);
    else
        write_versions(writer, version_make(writer->place.stamp, false, VERSION_OWN_ORIGIN));
}

/* Of a group whose effects begin there. NULL: none of them is for peers. */
static const struct effect_stamp *stamp_of(const struct changed *changed, uint32_t effect, uint32_t end)
{
    for (; effect < end; effect++) {
        if (changed->stamps.items[effect].stamp != 0)
            return &changed->stamps.items[effect];
    }
    return NULL;
}

/* The stamp of the evicted key's last operation. */
static uint64_t seen_of(const struct changed *changed, struct access *access, uint32_t first_item,
                        const struct changed_group *group, const struct effect *effect, const struct effects *effects)
{
    const struct slice name = effects_word(effects, effect, effect->key_index);

    for (uint32_t i = first_item; i < group->key_end; i++) {
        const struct changed_item *item = &changed->items[i];

        const struct key key = changed_key(changed, item);
        const struct window_key *known;

        if (item->db != effect->db || !slice_equal(key.name, name))
            continue;
        known = window_find(access, item->db, &key);
        return MAX(version_stamp(item->version), known != NULL ? merge_record_last(&known->record).stamp : 0);
    }
    panic("A key was evicted, and did not change");
}

static void prepare_stamps(struct changed *changed, struct access *access, const struct effects *effects)
{
    uint32_t effect = 0, first_item = 0;

    changed->stamps.count = 0;
    for (uint32_t i = 0; i < changed->groups.count; i++) {
        const struct changed_group *group = &changed->groups.items[i];

        for (; effect < group->effect_end; effect++) {
            struct effect_stamp *stamp = ARRAY_PUSH(&changed->stamps);

            *stamp = (struct effect_stamp){.wall_ms = group->wall_ms, .key_position = JOURNAL_NOWHERE};
            if (UNLIKELY((effects->items[effect].flags & EFFECT_EVICTS) != 0))
                stamp->key_position = seen_of(changed, access, first_item, group, &effects->items[effect], effects);
        }
        first_item = group->key_end;
    }
}

/* The first ones; of few keys nothing is won. True: the window knows nothing in the stripes of all items. */
static bool fetch_items(const struct changed *changed, const struct access *access)
{
    uint64_t hashes[WINDOW_FETCH_MOST];
    const uint32_t count = MIN(changed->count, (uint32_t)WINDOW_FETCH_MOST);

    if (count < 2)
        return false;
    for (uint32_t i = 0; i < count; i++)
        hashes[i] = changed->items[i].hash;
    return window_fetch(access, hashes, count) && count == changed->count;
}

/* Later groups find what earlier ones have written. */
static void write_groups(struct changed *changed, struct access *access, const struct effects *effects)
{
    struct writer writer = {.changed = changed, .access = access, .effects = effects};
    const uint64_t own = origins_id(&access->store->origins, VERSION_OWN_ORIGIN);
    uint32_t effect = 0;

    access->found_key = NULL; /* entries may move */
    (void)fetch_items(changed, access);
    arrange_items(changed);
    for (uint32_t i = 0; i < changed->groups.count; i++) {
        const struct effect_stamp *stamp;

        writer.group = &changed->groups.items[i];
        writer.wall_ms = writer.group->wall_ms;
        writer.was_recorded = writer.group->was_recorded;
        stamp = stamp_of(changed, effect, writer.group->effect_end);
        if (stamp != NULL) {
            writer.place = (struct merge_place){stamp->stamp, own};
            writer.previous = stamp->previous;
            write_group(&writer, effect);
        }
        writer.first_item = writer.group->key_end;
        effect = writer.group->effect_end;
    }
}

/* ------------------------------------------------------------------------------------------------------ singles -- */

static void set_version(const struct writer *writer, const struct changed_item *item, const struct key *key,
                        struct entry *entry, bool overwrote)
{
    const uint64_t version = version_make(writer->place.stamp, overwrote, VERSION_OWN_ORIGIN);
    struct change change;

    if (LIKELY((entry->flags & (ENTRY_VERSIONED | ENTRY_MEMBERS)) == ENTRY_VERSIONED)) {
        entry_word_store(entry, ENTRY_VERSIONED, version);
        return;
    }
    change_find(&change, writer->access, item->db, key);
    change_set_version(&change, version);
}

/* As write_key. is_blank: the window knows nothing of the key. */
static ALWAYS_INLINE void write_single(struct writer *writer, struct changed_item *item, const struct effect *effect,
                                       bool overwrote, bool is_blank)
{
    const struct key key = changed_key(writer->changed, item);
    struct entry *entry = access_entry_at(writer->access, item->db, &key, &item->spot);

    if (!overwrote)
        write_step(writer, item->db, slice_make(writer->effects->bytes.data + effect->offset, effect->size), item, &key,
                   entry);
    else if (UNLIKELY(entry == NULL || !is_blank))
        write_overwritten(writer, item->db, &key, item, entry);
    if (LIKELY(entry != NULL))
        set_version(writer, item, &key, entry, overwrote);
}

/* What most commands do: effects and items are one for one, and the journal has appended them so. */
static void write_singles(struct changed *changed, struct access *access, const struct effects *effects,
                          uint64_t previous, bool is_blank)
{
    struct writer writer = {.changed = changed,
                            .access = access,
                            .effects = effects,
                            .place.origin = origins_id(&access->store->origins, VERSION_OWN_ORIGIN),
                            .previous = previous};

    access->found_key = NULL; /* entries may move */
    for (uint32_t i = 0; i < changed->singles.count; i++) {
        const struct journal_single *single = &changed->singles.items[i];
        const struct effect *effect = &effects->items[i];
        const bool overwrote = (effect->flags & EFFECT_OVERWRITES) != 0;

        writer.wall_ms = single->wall_ms;
        writer.place.stamp = single->stamp;
        writer.was_recorded = changed->items[i].was_recorded;
        write_single(&writer, &changed->items[i], effect, overwrote, is_blank);
        is_blank = is_blank && overwrote;
        writer.previous = single->stamp;
    }
}

static uint64_t append_singles(struct changed *changed, struct access *access, struct journal *journal,
                               const struct effects *effects)
{
    const bool is_blank = fetch_items(changed, access);
    uint64_t previous;
    const uint64_t offset = journal_append_singles(journal, effects, changed->singles.items, &previous);

    write_singles(changed, access, effects, previous, is_blank);
    changed_clear(changed, access);
    return offset;
}

uint64_t changed_append(struct changed *changed, struct access *access, struct journal *journal,
                        const struct effects *effects)
{
    uint64_t offset;

    if (LIKELY(changed->groups.count == 0)) {
        assert(effects->count == changed->singles.count);
        return append_singles(changed, access, journal, effects);
    }
    assert(effects->count == changed->groups.items[changed->groups.count - 1].effect_end);
    prepare_stamps(changed, access, effects);
    assert(changed->stamps.count == effects->count);
    offset = journal_append_stamped(journal, effects, false, changed->stamps.items);
    write_groups(changed, access, effects);
    changed_clear(changed, access);
    return offset;
}
