/* Files, snapshots, and what two nodes whose histories are cut give each other. */
#include "merge/node_priv.h"

#include "base/array.h"
#include "base/assert.h"

#include <string.h>

struct merge_snapshot *merge_node_snapshot(struct merge_node *node, int64_t wall)
{
    struct merge_snapshot *snapshot = mem_alloc_zero(sizeof(*snapshot));
    uint64_t now = (uint64_t)merge_node_wall(node, wall) << MERGE_COUNTER_BITS;

    /* The newcomer starts above, so this is a promise like any other. */
    if (now > node->clock)
        node->clock = now;
    if (node->clock > node->identity.promised)
        node->identity.promised = node->clock;
    merge_data_copy(&snapshot->data, &node->data, node->model);
    merge_members_copy(&snapshot->members, &node->group.members);
    merge_vector_copy(&snapshot->closed, &node->group.closed);
    merge_vector_copy(&snapshot->removed, &node->group.removed);
    snapshot->clock = node->clock;
    snapshot->wall = node->identity.wall;
    return snapshot;
}

struct merge_snapshot *merge_node_save(struct merge_node *node)
{
    merge_vector_fini(&node->saved);
    merge_vector_copy(&node->saved, &node->data.vector);
    return merge_node_snapshot(node, node->identity.wall);
}

void merge_snapshot_destroy(struct merge_snapshot **snapshot, const struct merge_model *model)
{
    if (*snapshot == NULL)
        return;
    merge_data_fini(&(*snapshot)->data, model);
    merge_members_fini(&(*snapshot)->members);
    merge_vector_fini(&(*snapshot)->closed);
    merge_vector_fini(&(*snapshot)->removed);
    mem_free(*snapshot);
    *snapshot = NULL;
}

static uint64_t last_in_history(const struct merge_data *data, uint64_t origin)
{
    for (uint32_t i = data->history.count; i-- != 0;) {
        if (data->history.items[i]->origin == origin)
            return data->history.items[i]->stamp;
    }
    return merge_vector_get(&data->cut, origin);
}

void merge_node_restart(struct merge_node *node, const struct merge_snapshot *saved, uint64_t origin)
{
    struct merge_identity *identity = &node->identity;

    merge_data_fini(&node->data, node->model);
    merge_data_copy(&node->data, &saved->data, node->model);
    merge_group_fini(&node->group);
    node->group.self = identity->name;
    merge_members_copy(&node->group.members, &saved->members);
    merge_vector_copy(&node->group.closed, &saved->closed);
    merge_vector_copy(&node->group.removed, &saved->removed);
    merge_vector_fini(&node->saved);
    merge_vector_copy(&node->saved, &saved->data.vector);
    node->clock = merge_broken(MERGE_BREAK_STAMP_BACK) ? saved->clock : identity->promised + 1;
    if (merge_broken(MERGE_BREAK_WALL_BACK))
        identity->wall = 0;
    node->evict_from = node->clock;
    node->word_sequence = 0;
    identity->incarnation++;
    if (merge_broken(MERGE_BREAK_REUSE_ORIGIN)) {
        node->last_own = last_in_history(&node->data, identity->origin);
    } else {
        merge_vector_set(&identity->former, identity->origin, 1);
        merge_vector_raise_all(&node->group.closed, &identity->former);
        identity->origin = origin;
        node->last_own = 0;
        merge_vector_set(&node->data.vector, origin, 0);
    }
    if (identity->promised < node->clock)
        identity->promised = node->clock;
    merge_members_learn(&node->group.members,
                        (struct merge_member){identity->name, identity->origin, identity->incarnation});
}

struct merge_hello merge_node_hello(const struct merge_node *node)
{
    return (struct merge_hello){.name = node->identity.name,
                                .origin = node->identity.origin,
                                .clock = node->clock,
                                .incarnation = node->identity.incarnation,
                                .ready = node->ready,
                                .members = node->group.members,
                                .vector = node->data.vector,
                                .deeds = node->data.deeds,
                                .cut = node->data.cut,
                                .closed = node->group.closed,
                                .removed = node->group.removed};
}

enum merge_offer merge_node_offer(const struct merge_node *node, const struct merge_hello *hello, bool may_force)
{
    const struct merge_data *data = &node->data;

    if (!node->ready || merge_vector_has(&hello->closed, node->identity.origin) ||
        merge_vector_has(&hello->removed, node->identity.name) || merge_vector_has(&node->group.removed, hello->name))
        return MERGE_OFFER_NOTHING;
    if (!hello->ready)
        return MERGE_OFFER_SNAPSHOT;
    if (merge_vector_covers(&hello->vector, &data->cut))
        return MERGE_OFFER_STREAM;
    if (merge_vector_covers(&data->vector, &hello->deeds) || merge_broken(MERGE_BREAK_TAKE_FIRST))
        return MERGE_OFFER_SNAPSHOT;
    /* The other has what is not here. If its history has all of it, it comes by the link in the other direction. If
     * not, neither can give, and one of the two has to take: the one with the smaller name. */
    if (merge_vector_covers(&data->vector, &hello->cut) || hello->name > node->identity.name || !may_force)
        return MERGE_OFFER_WAIT;
    return MERGE_OFFER_FORCED;
}

void merge_node_sponsor(struct merge_node *node, const struct merge_hello *hello)
{
    assert(node->ready && !hello->ready);
    merge_members_learn(&node->group.members, (struct merge_member){hello->name, hello->origin, hello->incarnation});
}

/* What is here must be in the snapshot, or in the history here. */
static bool may_adopt(const struct merge_node *node, const struct merge_snapshot *snapshot)
{
    if (!node->ready)
        return true;
    if (!snapshot->forced && !merge_vector_covers(&snapshot->data.vector, &node->data.cut) &&
        !merge_broken(MERGE_BREAK_SNAPSHOT_UNCHECKED))
        return false;
    return !merge_vector_covers(&node->data.vector, &snapshot->data.cut); /* else the stream will do */
}

/* Does the record have something that the snapshot's vector does not cover? */
static bool record_has_more(const struct merge_record *record, const struct merge_vector *vector)
{
    struct merge_place last = merge_record_last(record);

    if (last.stamp > merge_vector_get(vector, last.origin))
        return true;
    for (uint32_t i = 0; i < record->count; i++) {
        const struct merge_entry *entry = record->steps[i].op->entry;

        if (entry->stamp > merge_vector_get(vector, entry->origin))
            return true;
    }
    return false;
}

/* Neither side could give what the other lacks: for each key the younger state, and all keys dirty. */
static void force_together(struct merge_node *node, const struct merge_data *old, const struct merge_vector *vector)
{
    struct merge_data *data = &node->data;
    struct merge_place now = {node->clock, 0};

    for (uint32_t i = 0; i < old->keys.count; i++) {
        const struct merge_key *mine = &old->keys.items[i];
        uint32_t at;
        struct merge_key *theirs = merge_data_find(data, mine->name, &at);

        merge_data_mark(data, mine->name, now);
        if (!record_has_more(&mine->record, vector))
            continue;
        if (theirs != NULL && !merge_place_before(merge_record_last(&theirs->record), merge_record_last(&mine->record)))
            continue;
        if (theirs == NULL)
            theirs = merge_data_add(data, at, mine->name);
        else
            merge_record_fini(&theirs->record, node->model);
        merge_record_copy(&theirs->record, &mine->record, node->model);
    }
    for (uint32_t i = 0; i < data->keys.count; i++)
        merge_data_mark(data, data->keys.items[i].name, now);
}

bool merge_node_adopt(struct merge_node *node, const struct merge_snapshot *snapshot)
{
    struct merge_data old = node->data;
    struct merge_data *data = &node->data;
    struct merge_identity *identity = &node->identity;
    bool joins = !node->ready;

    if (!may_adopt(node, snapshot))
        return false;
    node->ready = true;
    if (!merge_broken(MERGE_BREAK_JOIN_CLOCK)) {
        if (snapshot->clock > node->clock)
            node->clock = snapshot->clock;
        if (joins && snapshot->wall > identity->wall)
            identity->wall = snapshot->wall;
    }
    if (joins)
        node->evict_from = node->clock;

    merge_data_copy(data, &snapshot->data, node->model);
    merge_vector_raise_all(&data->vector, &old.vector);
    merge_vector_raise_all(&data->deeds, &old.deeds);
    if (old.horizon.frontier > data->horizon.frontier)
        data->horizon.frontier = old.horizon.frontier;
    if (old.horizon.wall > data->horizon.wall)
        data->horizon.wall = old.horizon.wall;
    merge_group_learn(&node->group, &snapshot->members, &snapshot->closed, &snapshot->removed);
    merge_members_learn(&node->group.members,
                        (struct merge_member){identity->name, identity->origin, identity->incarnation});
    if (snapshot->forced) {
        for (uint32_t i = 0; i < data->history.count; i++)
            merge_entry_release(data->history.items[i]);
        data->history.count = 0;
        merge_vector_raise_all(&data->cut, &old.cut);
        merge_vector_raise_all(&data->cut, &snapshot->data.vector);
        force_together(node, &old, &snapshot->data.vector);
    }
    for (uint32_t i = 0; i < old.history.count; i++) {
        struct merge_entry *entry = old.history.items[i];

        if (entry->stamp <= merge_vector_get(&snapshot->data.vector, entry->origin))
            continue;
        if (!snapshot->forced && !merge_broken(MERGE_BREAK_SNAPSHOT_NO_EXTRA))
            merge_node_place_entry(node, entry);
        merge_data_keep(data, entry);
    }
    merge_data_fini(&old, node->model);
    return true;
}
