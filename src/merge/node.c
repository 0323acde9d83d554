#include "merge/node.h"

#include "base/array.h"
#include "base/assert.h"
#include "merge/node_priv.h"

#ifdef MERGE_BREAKABLE
uint64_t merge_breaks; /* global: test switches, see broken.h */
#endif

struct merge_node *merge_node_create(const struct merge_model *model, uint64_t name, uint64_t origin)
{
    struct merge_node *node = mem_alloc_zero(sizeof(*node));

    assert(origin < MERGE_ORIGIN_FLOOR);
    node->model = model;
    node->identity.name = name;
    node->identity.origin = origin;
    node->group.self = name;
    merge_vector_set(&node->data.vector, origin, 0);
    return node;
}

void merge_node_destroy(struct merge_node **node)
{
    if (*node == NULL)
        return;
    merge_data_fini(&(*node)->data, (*node)->model);
    merge_group_fini(&(*node)->group);
    merge_vector_fini(&(*node)->saved);
    merge_vector_fini(&(*node)->identity.former);
    mem_free(*node);
    *node = NULL;
}

struct merge_key *merge_node_find(const struct merge_node *node, struct slice name)
{
    return merge_data_find(&node->data, name, NULL);
}

bool merge_node_is_dirty(const struct merge_node *node, struct slice name)
{
    return merge_data_find_dirty(&node->data, name) != NULL;
}

/* --- time --- */

static void raise_clock(struct merge_node *node, uint64_t stamp)
{
    if (stamp > node->clock && !merge_broken(MERGE_BREAK_CLOCK_NOT_RAISED))
        node->clock = stamp;
}

static void promise(struct merge_node *node)
{
    if (node->clock > node->identity.promised)
        node->identity.promised = node->clock;
}

int64_t merge_node_wall(struct merge_node *node, int64_t wall)
{
    if (wall > node->identity.wall)
        node->identity.wall = wall;
    return node->identity.wall;
}

/* At least this moment. */
static void raise_clock_to_wall(struct merge_node *node, int64_t wall)
{
    uint64_t stamp = (uint64_t)merge_node_wall(node, wall) << MERGE_COUNTER_BITS;

    if (stamp > node->clock)
        node->clock = stamp;
}

static uint64_t next_stamp(struct merge_node *node, int64_t wall)
{
    node->clock++;
    raise_clock_to_wall(node, wall);
    promise(node);
    return node->clock;
}

/* --- an operation arrives --- */

static void mark_dirty(struct merge_node *node, struct slice name)
{
    if (!merge_broken(MERGE_BREAK_LATE_NOT_DIRTY))
        merge_data_mark(&node->data, name, (struct merge_place){node->clock, 0});
}

/* The first design's eviction. */
static void evict_if_unchanged(struct merge_node *node, struct merge_op *op)
{
    struct merge_key *key = merge_node_find(node, op->key);

    if (key != NULL && merge_record_last(&key->record).stamp == op->seen)
        (void)merge_record_place(&key->record, op, true, &node->data.horizon, node->model);
}

static void place_op(struct merge_node *node, struct merge_op *op)
{
    struct merge_data *data = &node->data;
    const struct merge_dirty *dirty;
    uint32_t at;
    struct merge_key *key = merge_data_find(data, op->key, &at);
    bool existed = key != NULL;
    enum merge_outcome outcome;

    if (op->evicts && merge_broken(MERGE_BREAK_EVICT_CONDITIONAL)) {
        evict_if_unchanged(node, op);
        return;
    }
    if (!existed) {
        key = merge_data_add(data, at, op->key);
        merge_record_init(&key->record, &data->horizon);
    }
    outcome = merge_record_place(&key->record, op, existed, &data->horizon, node->model);
    switch (outcome) {
    case MERGE_FLUSHED:
    case MERGE_OVERWRITTEN:
    case MERGE_LATE_NOTHING:
        if (outcome == MERGE_FLUSHED)
            node->counts.flushed++;
        else if (outcome == MERGE_OVERWRITTEN)
            node->counts.overwritten++;
        else
            node->counts.evicted_nothing++;
        if (!existed)
            merge_data_remove(data, at, node->model);
        return;
    case MERGE_LATE:
        node->counts.late++;
        mark_dirty(node, op->key);
        return;
    case MERGE_APPENDED:
        node->counts.appended++;
        break;
    case MERGE_PLACED:
        node->counts.placed++;
        break;
    }
    /* The member was given up and its clock is slow: what this operation met may have been freed here. */
    if (op->entry->wall < data->horizon.wall && !op->overwrites && !merge_broken(MERGE_BREAK_LATE_WALL_IGNORED)) {
        node->counts.late_wall++;
        mark_dirty(node, op->key);
    }
    dirty = merge_data_find_dirty(data, op->key);
    if (dirty != NULL && op->overwrites && merge_place_before(dirty->marked, op->place))
        merge_data_clean(data, op->key);
}

static void place_flush(struct merge_node *node, struct merge_place flush)
{
    struct merge_data *data = &node->data;

    if (merge_place_compare(flush, data->horizon.flush) <= 0)
        return;
    data->horizon.flush = flush;
    /* Of a missing key it is not known here what it would be had the flush come in time, nor its name. */
    data->recheck = flush.stamp <= data->horizon.floor && !merge_broken(MERGE_BREAK_FLUSH_LATE)
                        ? flush
                        : (struct merge_place){0};
    for (uint32_t i = data->dirty.count; i-- != 0;) {
        if (merge_place_before(data->dirty.items[i].marked, flush))
            merge_data_clean(data, data->dirty.items[i].name);
    }
    for (uint32_t i = data->keys.count; i-- != 0;) {
        struct merge_key *key = &data->keys.items[i];

        switch (merge_record_flush(&key->record, flush, node->model)) {
        case MERGE_APPENDED:
            merge_data_remove(data, i, node->model);
            break;
        case MERGE_LATE:
            node->counts.late++;
            mark_dirty(node, key->name);
            break;
        default:
            break;
        }
    }
}

/* This flush was late at some node, which may lack keys that rest on it. The flush itself may not be here yet. */
static void place_recheck(struct merge_node *node, struct merge_place flush)
{
    const struct merge_data *data = &node->data;

    place_flush(node, flush);
    if (merge_place_compare(data->horizon.flush, flush) != 0)
        return;
    for (uint32_t i = 0; i < data->keys.count; i++) {
        if (merge_record_rests_on(&data->keys.items[i].record, flush))
            mark_dirty(node, data->keys.items[i].name);
    }
}

void merge_node_place_entry(struct merge_node *node, struct merge_entry *entry)
{
    if (entry->flush)
        place_flush(node, (struct merge_place){entry->stamp, entry->origin});
    if (entry->recheck.stamp != 0)
        place_recheck(node, entry->recheck);
    for (uint32_t i = 0; i < entry->op_count; i++)
        place_op(node, &entry->ops[i]);
}

enum merge_acceptance merge_node_accept(struct merge_node *node, struct merge_entry *entry)
{
    struct merge_data *data = &node->data;
    uint64_t here = merge_vector_get(&data->vector, entry->origin);

    if (entry->stamp <= here)
        return MERGE_OLD;
    if (entry->prev > here && !merge_broken(MERGE_BREAK_ACCEPT_ANY))
        return MERGE_GAP;
    raise_clock(node, entry->stamp);
    merge_node_place_entry(node, entry);
    merge_vector_set(&data->vector, entry->origin, entry->stamp);
    merge_vector_set(&data->deeds, entry->origin, entry->stamp);
    merge_data_keep(data, entry);
    return MERGE_ACCEPTED;
}

static struct merge_entry *run(struct merge_node *node, const struct merge_item *items, uint32_t count, bool flush,
                               struct merge_place recheck, int64_t wall)
{
    uint64_t stamp = next_stamp(node, wall);
    struct merge_entry *entry = merge_entry_create(node->identity.origin, stamp, node->last_own, node->identity.wall,
                                                   flush, items, count);
    enum merge_acceptance acceptance;

    entry->recheck = recheck;
    acceptance = merge_node_accept(node, entry);
    assert(acceptance == MERGE_ACCEPTED);
    node->last_own = stamp;
    merge_entry_release(entry); /* the history has it */
    return entry;
}

struct merge_entry *merge_node_run(struct merge_node *node, const struct merge_item *items, uint32_t count, bool flush,
                                   int64_t wall)
{
    return run(node, items, count, flush, (struct merge_place){0}, wall);
}

bool merge_node_may_evict(const struct merge_node *node)
{
    return node->data.horizon.frontier >= node->evict_from || merge_broken(MERGE_BREAK_EVICT_EARLY);
}

/* --- the group --- */

struct merge_word *merge_node_word(struct merge_node *node, int64_t wall)
{
    struct merge_word *word = mem_alloc_zero(sizeof(*word));

    /* From now on no stamp up to the clock is given: the vector says so of this origin. */
    raise_clock_to_wall(node, wall);
    promise(node);
    merge_vector_set(&node->data.vector, node->identity.origin, node->clock);
    word->references = 1;
    word->name = node->identity.name;
    word->origin = node->identity.origin;
    word->incarnation = node->identity.incarnation;
    word->sequence = ++node->word_sequence;
    word->wall = node->identity.wall;
    word->frontier = node->data.horizon.frontier;
    merge_vector_copy(&word->vector, &node->data.vector);
    merge_vector_copy(&word->saved, &node->saved);
    merge_vector_copy(&word->closed, &node->group.closed);
    merge_members_copy(&word->members, &node->group.members);
    return word;
}

void merge_beat_fini(struct merge_beat *beat)
{
    merge_vector_fini(&beat->vector);
    merge_vector_fini(&beat->deeds);
    merge_vector_fini(&beat->closed);
    merge_vector_fini(&beat->removed);
    merge_members_fini(&beat->members);
    for (uint32_t i = 0; i < beat->words.count; i++)
        merge_word_release(beat->words.items[i]);
    mem_free(beat->words.items);
}

bool merge_node_hear(struct merge_node *node, const struct merge_beat *beat)
{
    if (!merge_vector_covers(&node->data.vector, &beat->deeds) && !merge_broken(MERGE_BREAK_ACCEPT_ANY))
        return false;
    raise_clock(node, beat->clock);
    for (uint32_t i = 0; i < beat->vector.count; i++) {
        if (beat->vector.items[i].id != node->identity.origin)
            merge_vector_raise(&node->data.vector, beat->vector.items[i].id, beat->vector.items[i].stamp);
    }
    merge_group_learn(&node->group, &beat->members, &beat->closed, &beat->removed);
    for (uint32_t i = 0; i < beat->words.count; i++)
        merge_group_hear(&node->group, beat->words.items[i]);
    return true;
}

void merge_node_greet(struct merge_node *node, const struct merge_hello *hello)
{
    if (hello->ready)
        raise_clock(node, hello->clock);
    merge_group_learn(&node->group,
                      merge_broken(MERGE_BREAK_HELLO_ALONE) ? &(struct merge_members){0} : &hello->members,
                      &hello->closed, &hello->removed);
}

void merge_node_give_up(struct merge_node *node, uint64_t name)
{
    if (name != node->identity.name && merge_members_find(&node->group.members, name) != NULL)
        merge_vector_set(&node->group.given_up, name, 1);
}

bool merge_node_forget(struct merge_node *node, uint64_t name)
{
    struct merge_vector removed = {0};

    if (!merge_group_may_forget(&node->group, name))
        return false;
    merge_vector_set(&removed, name, 1);
    merge_group_learn(&node->group, &(struct merge_members){0}, &(struct merge_vector){0}, &removed);
    merge_vector_fini(&removed);
    return true;
}

void merge_node_advance(struct merge_node *node, int64_t wall)
{
    struct merge_word *own = merge_node_word(node, wall);
    struct merge_horizon *horizon = &node->data.horizon;

    (void)merge_group_frontiers(&node->group, own, &horizon->frontier, &horizon->wall);
    if (merge_broken(MERGE_BREAK_EXPIRY_BY_CLOCK) && wall > horizon->wall)
        horizon->wall = wall;
    merge_word_release(own);
}

void merge_node_settle(struct merge_node *node, uint64_t which)
{
    struct merge_data *data = &node->data;
    bool freed = false;

    for (uint32_t i = data->keys.count; i-- != 0;) {
        struct merge_key *key = &data->keys.items[i];

        if ((which >> (i % 64) & 1) != 0 &&
            merge_record_settle(&key->record, &data->horizon, merge_node_is_dirty(node, key->name), node->model)) {
            merge_data_remove(data, i, node->model);
            freed = true;
            node->counts.freed++;
        }
    }
    if (freed && data->horizon.frontier > data->horizon.floor && !merge_broken(MERGE_BREAK_NO_TOMBSTONE_FLOOR))
        data->horizon.floor = data->horizon.frontier;
}

static bool may_repair(const struct merge_node *node)
{
    return node->ready &&
           (merge_group_covers_frontiers(&node->group, &node->data.vector) || merge_broken(MERGE_BREAK_REPAIR_EARLY));
}

void merge_node_repair(struct merge_node *node, int64_t wall)
{
    if (node->data.recheck.stamp != 0 && may_repair(node)) {
        struct merge_place late = node->data.recheck;

        node->data.recheck = (struct merge_place){0};
        (void)run(node, NULL, 0, false, late, wall);
    }
    while (node->data.dirty.count != 0 && may_repair(node)) {
        struct merge_dirty *dirty = &node->data.dirty.items[0];
        struct slice name = slice_make(mem_copy(dirty->name.data, dirty->name.size), dirty->name.size);
        const struct merge_key *key = merge_node_find(node, name);
        struct slice words = node->model->restore(key != NULL ? key->record.value : NULL);
        struct merge_item item = {.key = name, .words = words, .overwrites = true};

        merge_data_clean(&node->data, name);
        (void)merge_node_run(node, &item, 1, false, wall);
        node->counts.repaired++;
        merge_free_bytes(name);
        merge_free_bytes(words);
    }
}

/* --- bounds --- */

uint64_t merge_node_window_bytes(const struct merge_node *node)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < node->data.keys.count; i++)
        bytes += merge_record_window_bytes(&node->data.keys.items[i].record);
    return bytes;
}

static bool is_tombstone(const struct merge_record *record)
{
    return record->count == 0 && record->value == NULL;
}

uint32_t merge_node_tombstones(const struct merge_node *node)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < node->data.keys.count; i++)
        count += is_tombstone(&node->data.keys.items[i].record);
    return count;
}

static uint32_t oldest_list(const struct merge_data *data)
{
    uint32_t oldest = UINT32_MAX;

    for (uint32_t i = 0; i < data->keys.count; i++) {
        const struct merge_record *record = &data->keys.items[i].record;

        if (record->count != 0 &&
            (oldest == UINT32_MAX ||
             merge_place_before(record->steps[0].op->place, data->keys.items[oldest].record.steps[0].op->place)))
            oldest = i;
    }
    return oldest;
}

static uint32_t oldest_tombstone(const struct merge_data *data)
{
    uint32_t oldest = UINT32_MAX;

    for (uint32_t i = 0; i < data->keys.count; i++) {
        const struct merge_record *record = &data->keys.items[i].record;

        if (is_tombstone(record) &&
            (oldest == UINT32_MAX ||
             merge_place_before(record->base_place, data->keys.items[oldest].record.base_place)))
            oldest = i;
    }
    return oldest;
}

void merge_node_bound(struct merge_node *node, uint64_t window_bytes, uint32_t tombstones)
{
    struct merge_data *data = &node->data;

    while (merge_node_window_bytes(node) > window_bytes) {
        merge_record_forget_list(&data->keys.items[oldest_list(data)].record, node->model);
        node->counts.forgotten++;
    }
    while (merge_node_tombstones(node) > tombstones) {
        uint32_t at = oldest_tombstone(data);
        uint64_t stamp = data->keys.items[at].record.base_place.stamp;

        if (stamp > data->horizon.floor)
            data->horizon.floor = stamp;
        merge_data_remove(data, at, node->model); /* a mark stands without a record, too */
        node->counts.forgotten++;
    }
}

void merge_node_trim(struct merge_node *node, bool saved)
{
    struct merge_data *data = &node->data;
    struct merge_word own = {.saved = node->saved};
    uint32_t count = 0;

    for (; count < data->history.count; count++) {
        struct merge_entry *entry = data->history.items[count];

        if (entry->stamp > data->horizon.frontier ||
            (saved && entry->stamp > merge_group_saved(&node->group, &own, entry->origin)))
            break;
        merge_vector_set(&data->cut, entry->origin, entry->stamp);
        merge_entry_release(entry);
    }
    if (count == 0)
        return;
    data->history.count -= count;
    memmove(data->history.items, data->history.items + count, data->history.count * sizeof(struct merge_entry *));
}

void merge_node_validate(const struct merge_node *node)
{
    const struct merge_data *data = &node->data;

    for (uint32_t i = 0; i < data->keys.count; i++)
        merge_record_validate(&data->keys.items[i].record);
    assert(merge_vector_covers(&data->vector, &data->deeds));
    for (uint32_t i = 0; i < data->vector.count; i++)
        assert(data->vector.items[i].stamp <= node->clock);
    assert(node->identity.promised >= merge_vector_get(&data->vector, node->identity.origin));
}
