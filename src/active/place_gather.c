#include "active/place_priv.h"

#include "base/mem.h"
#include "server/core/server.h"

#include <stdlib.h>
#include <string.h>

enum {
    FULL_STEPS = 2000, /* some 4 ms of going back and forth */
    WORTH_STEPS = 4    /* that one operation may go back, if the others of its batch do as well */
};

/* Owner: its place's thread. */
struct place_waiting {
    uint64_t hash;
    unsigned db;
    uint32_t going_back; /* steps that are younger than the oldest of them */
    struct {
        struct merge_op **items;
        uint32_t count, capacity;
    } ops;
    size_t name_size;
    char name[];
};

static struct key key_of(const struct place_waiting *waiting)
{
    return (struct key){slice_make(waiting->name, waiting->name_size), waiting->hash};
}

struct wanted {
    const struct key *key;
    unsigned db;
};

static bool is_wanted(const void *item, const void *key)
{
    const struct place_waiting *waiting = item;
    const struct wanted *wanted = key;

    return waiting->hash == wanted->key->hash && waiting->db == wanted->db &&
           slice_equal(key_of(waiting).name, wanted->key->name);
}

static uint64_t hash_of(const void *item)
{
    return ((const struct place_waiting *)item)->hash;
}

static struct place_waiting *find(const struct place *place, unsigned db, const struct key *key)
{
    const struct wanted wanted = {key, db};

    if (LIKELY(place->waiting.count == 0))
        return NULL;
    return table_find(&place->by_key, key->hash, is_wanted, &wanted);
}

bool place_waits_among_others(const struct place *place, const struct target *target)
{
    return find(place, target->db, &target->key) != NULL;
}

bool place_is_full(const struct place *place)
{
    return place->going_back + place->waiting_count > FULL_STEPS &&
           place->waiting_count * WORTH_STEPS > place->going_back;
}

bool place_goes_far_back(const struct place *place)
{
    return place->going_back > place->waiting_count;
}

static void note_way(struct place *place, struct place_waiting *waiting, const struct target *target)
{
    const struct window_key *known = window_find(place_access(place), target->db, &target->key);
    const uint32_t younger = known != NULL ? merge_record_younger(&known->record, target->at) : 0;

    if (younger <= waiting->going_back)
        return;
    place->going_back += younger - waiting->going_back;
    waiting->going_back = younger;
}

static struct place_waiting *add(struct place *place, const struct target *target)
{
    const struct slice name = target->key.name;
    struct place_waiting *waiting = mem_alloc(sizeof(*waiting) + name.size);

    *waiting = (struct place_waiting){.hash = target->key.hash, .db = target->db, .name_size = name.size};
    if (name.size != 0)
        memcpy(waiting->name, name.data, name.size);
    *ARRAY_PUSH(&place->waiting) = waiting;
    (void)table_insert(&place->by_key, waiting->hash, waiting, hash_of);
    return waiting;
}

void place_gather(struct place *place, const struct target *target)
{
    struct place_waiting *waiting = find(place, target->db, &target->key);

    if (waiting == NULL)
        waiting = add(place, target);
    *ARRAY_PUSH(&waiting->ops) = target_op(target);
    place->waiting_count++;
    note_way(place, waiting, target);
}

static int compare_places(const void *one, const void *other)
{
    return merge_place_compare((*(struct merge_op *const *)one)->place, (*(struct merge_op *const *)other)->place);
}

static bool is_dropped(enum merge_outcome outcome)
{
    return outcome == MERGE_FLUSHED || outcome == MERGE_OVERWRITTEN || outcome == MERGE_LATE_NOTHING;
}

/* What has come of one of the operations. */
static void note_outcome(const struct target *target, struct window_key *known, const struct merge_op *op,
                         enum merge_outcome outcome)
{
    struct place_counts *counts = &target->place->counts;
    struct access *access = place_access(target->place);

    if (is_dropped(outcome)) {
        counts->dropped++;
    } else if (outcome == MERGE_LATE) {
        counts->late++;
        window_mark(access, known, target_mark(target));
    } else {
        counts->placed++;
        if (op->entry->wall < horizon_freed(&access->store->horizon) && !op->overwrites) {
            counts->late_wall++;
            window_mark(access, known, target_mark(target));
        }
        if (known->dirty.stamp != 0 && op->overwrites && merge_place_before(known->dirty, op->place))
            window_clean(access, known);
    }
}

static void place_together(const struct target *target, struct merge_op **ops, uint32_t count)
{
    struct access *access = place_access(target->place);
    const struct merge_horizon horizon = horizon_of(&access->store->horizon, target->db);
    struct window_key *known = window_find(access, target->db, &target->key);
    enum merge_outcome *outcomes = mem_alloc(count * sizeof(*outcomes));
    struct merge_record fresh = {0};
    struct place_model model;
    bool changes = false;

    if (known == NULL)
        target_base(target, &fresh);
    for (uint32_t i = 0; i < count && known == NULL; i++)
        place_doubt_base(&fresh, ops[i]->place.stamp);
    place_model_init(&model, target);
    merge_record_place_all(known != NULL ? &known->record : &fresh, ops, count,
                           known != NULL || target_look(target) != NULL, &horizon, &model.window.model, outcomes);
    for (uint32_t i = 0; i < count; i++)
        changes = changes || !is_dropped(outcomes[i]);
    if (changes && known == NULL)
        known = window_add(access, target->db, &target->key, &fresh);
    for (uint32_t i = 0; i < count; i++)
        note_outcome(target, known, ops[i], outcomes[i]);
    if (changes) {
        target_tell(target);
        target_write_down(target, known);
    }
    mem_free(outcomes);
}

static void merge(struct place *place, struct place_waiting *waiting)
{
    struct merge_op **ops = waiting->ops.items;
    const uint32_t count = waiting->ops.count;
    const struct merge_op *last;
    struct frame_entry entry = {0};
    struct target target = {.place = place, .entry = &entry, .db = waiting->db};

    qsort(ops, count, sizeof(struct merge_op *), compare_places);
    last = ops[count - 1];
    entry.stamp = last->entry->stamp;
    entry.wall = last->entry->wall;
    target.key = key_of(waiting);
    target.at = last->place;
    place_together(&target, ops, count);
    for (uint32_t i = 0; i < count; i++)
        merge_entry_release(ops[i]->entry);
    ARRAY_FINI(&waiting->ops);
    mem_free(waiting);
}

void place_merge(struct place *place)
{
    if (LIKELY(place->waiting.count == 0))
        return;
    table_clear(&place->by_key, NULL, NULL);
    for (uint32_t i = 0; i < place->waiting.count; i++)
        merge(place, place->waiting.items[i]);
    place->waiting.count = 0;
    place->waiting_count = place->going_back = 0;
}
