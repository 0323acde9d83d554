#include "node.h"

#include "base/array.h"
#include "base/assert.h"
#include "node_priv.h"

struct merge_node *merge_node_create(const struct merge_model *model, uint64_t name, uint64_t origin)
{
    struct merge_node *node = mem_alloc_zero(sizeof(*node));

    node->model = model;
    merge_state_init(&node->state, name, origin);
    return node;
}

void merge_node_destroy(struct merge_node **node)
{
    if (*node == NULL)
        return;
    merge_data_fini(&(*node)->data, (*node)->model);
    merge_state_fini(&(*node)->state);
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

static void promise(struct merge_node *node)
{
    if (node->state.clock > node->state.identity.promised)
        node->state.identity.promised = node->state.clock;
}

int64_t merge_node_wall(struct merge_node *node, int64_t wall)
{
    if (wall > node->state.identity.wall)
        node->state.identity.wall = wall;
    return node->state.identity.wall;
}

/* At least this moment. */
static void raise_clock_to_wall(struct merge_node *node, int64_t wall)
{
    uint64_t stamp = (uint64_t)merge_node_wall(node, wall) << MERGE_COUNTER_BITS;

    if (stamp > node->state.clock)
        node->state.clock = stamp;
}

static uint64_t next_stamp(struct merge_node *node, int64_t wall)
{
    node->state.clock++;
    raise_clock_to_wall(node, wall);
    promise(node);
    return node->state.clock;
}

/* --- an operation arrives --- */

static void mark_dirty(struct merge_node *node, struct slice name)
{
    if (!merge_broken(MERGE_BREAK_LATE_NOT_DIRTY))
        merge_data_mark(&node->data, name, (struct merge_place){node->state.clock, 0});
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

static void mark_what_rests_on(struct merge_node *node, struct merge_place flush)
{
    const struct merge_data *data = &node->data;

    for (uint32_t i = 0; i < data->keys.count; i++) {
        if (merge_record_rests_on(&data->keys.items[i].record, flush))
            mark_dirty(node, data->keys.items[i].name);
    }
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
    if (data->recheck.stamp != 0)
        mark_what_rests_on(node, flush);
}

/* This flush was late at some node, which may lack keys that rest on it. The flush itself may not be here yet. */
static void place_recheck(struct merge_node *node, struct merge_place flush)
{
    place_flush(node, flush);
    if (merge_place_compare(node->data.horizon.flush, flush) != 0)
        return;
    mark_what_rests_on(node, flush);
    node->data.recheck = (struct merge_place){0}; /* it was told */
}

void merge_node_place_entry(struct merge_node *node, struct merge_entry *entry)
{
    if (entry->flush)
        place_flush(node, (struct merge_place){entry->stamp, entry->origin});
    if (entry->recheck.stamp != 0 && entry->origin != node->state.identity.origin)
        place_recheck(node, entry->recheck);
    for (uint32_t i = 0; i < entry->op_count; i++)
        place_op(node, &entry->ops[i]);
}

enum merge_acceptance merge_node_accept(struct merge_node *node, struct merge_entry *entry)
{
    enum merge_acceptance acceptance = merge_state_judge(&node->state, entry->origin, entry->prev, entry->stamp);

    if (acceptance != MERGE_ACCEPTED)
        return acceptance;
    merge_state_raise_clock(&node->state, entry->stamp);
    merge_node_place_entry(node, entry);
    merge_state_count(&node->state, entry->origin, entry->stamp);
    merge_data_keep(&node->data, entry);
    return MERGE_ACCEPTED;
}

/* Threads run commands with times that are a little apart, so wall times are not quite in the order of stamps. */
static int64_t running_wall(const struct merge_node *node, uint64_t stamp)
{
    const int64_t wall = node->state.identity.wall - (int64_t)(stamp * 7 % 50);

    return wall > node->promised_wall ? wall : node->promised_wall;
}

static struct merge_entry *run(struct merge_node *node, const struct merge_item *items, uint32_t count, bool flush,
                               struct merge_place recheck, int64_t wall)
{
    uint64_t stamp = next_stamp(node, wall);
    struct merge_entry *entry = merge_entry_create(node->state.identity.origin, stamp, node->last_own,
                                                   running_wall(node, stamp), flush, items, count);
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

/* --- the group --- */

struct merge_word *merge_node_word(struct merge_node *node, int64_t wall)
{
    raise_clock_to_wall(node, wall);
    promise(node);
    merge_state_promise(&node->state, node->state.clock);
    node->promised_wall = node->state.identity.wall;
    return merge_state_word(&node->state, node->state.identity.wall);
}

void merge_node_advance(struct merge_node *node, int64_t wall)
{
    struct merge_word *own = merge_node_word(node, wall);

    merge_state_advance(&node->state, own);
    if (merge_broken(MERGE_BREAK_EXPIRY_BY_CLOCK) && wall > node->state.frontier_wall)
        node->state.frontier_wall = wall;
    merge_node_note_frontiers(node);
    merge_word_release(own);
}

void merge_node_note_frontiers(struct merge_node *node)
{
    node->data.horizon.frontier = node->state.frontier;
    node->data.horizon.wall = node->state.frontier_wall;
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

void merge_node_repair(struct merge_node *node, int64_t wall)
{
    if (node->data.recheck.stamp != 0 && merge_state_may_repair(&node->state)) {
        struct merge_place late = node->data.recheck;

        node->data.recheck = (struct merge_place){0};
        (void)run(node, NULL, 0, false, late, wall);
    }
    while (node->data.dirty.count != 0 && merge_state_may_repair(&node->state)) {
        struct merge_dirty *dirty = &node->data.dirty.items[0];
        struct slice name = slice_make(mem_copy(dirty->name.data, dirty->name.size), dirty->name.size);
        const struct merge_key *key = merge_node_find(node, name);
        struct slice words = node->model->restore(node->model, key != NULL ? key->record.value : NULL);
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

static struct merge_place first_place(const struct merge_record *record)
{
    struct merge_spot spot = {0, 0};

    return merge_record_next(record, &spot)->op->place;
}

static uint32_t oldest_list(const struct merge_data *data)
{
    uint32_t oldest = UINT32_MAX;

    for (uint32_t i = 0; i < data->keys.count; i++) {
        const struct merge_record *record = &data->keys.items[i].record;

        if (record->count != 0 &&
            (oldest == UINT32_MAX ||
             merge_place_before(first_place(record), first_place(&data->keys.items[oldest].record))))
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

void merge_node_join(struct merge_node *node, uint64_t window_bytes)
{
    struct merge_data *data = &node->data;

    for (uint32_t i = 0; i < data->keys.count && merge_node_window_bytes(node) > window_bytes; i++)
        node->counts.joined += merge_record_join(&data->keys.items[i].record, UINT64_MAX, UINT32_MAX, node->model);
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
    struct merge_word own = {.saved = node->state.saved};
    uint32_t count = 0;

    for (; count < data->history.count; count++) {
        struct merge_entry *entry = data->history.items[count];

        if (entry->stamp > data->horizon.frontier ||
            (saved && entry->stamp > merge_group_saved(&node->state.group, &own, entry->origin)))
            break;
        merge_vector_set(&node->state.cut, entry->origin, entry->stamp);
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
    merge_state_validate(&node->state);
    assert(node->state.identity.promised >= merge_vector_get(&node->state.vector, node->state.identity.origin));
}
