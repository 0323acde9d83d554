/* Files, snapshots, and what two nodes whose histories are cut give each other. */
#include "node_priv.h"

#include "base/array.h"
#include "base/assert.h"

#include <string.h>

struct merge_snapshot *merge_node_snapshot(struct merge_node *node, int64_t wall)
{
    struct merge_snapshot *snapshot = mem_alloc_zero(sizeof(*snapshot));
    uint64_t now = (uint64_t)merge_node_wall(node, wall) << MERGE_COUNTER_BITS;

    /* The newcomer starts above, so this is a promise like any other. */
    if (now > node->state.clock)
        node->state.clock = now;
    if (node->state.clock > node->state.identity.promised)
        node->state.identity.promised = node->state.clock;
    merge_data_copy(&snapshot->data, &node->data, node->model);
    merge_state_account(&node->state, &snapshot->account);
    return snapshot;
}

struct merge_snapshot *merge_node_save(struct merge_node *node)
{
    merge_vector_fini(&node->state.saved);
    merge_vector_copy(&node->state.saved, &node->state.vector);
    return merge_node_snapshot(node, node->state.identity.wall);
}

void merge_snapshot_destroy(struct merge_snapshot **snapshot, const struct merge_model *model)
{
    if (*snapshot == NULL)
        return;
    merge_data_fini(&(*snapshot)->data, model);
    merge_account_fini(&(*snapshot)->account);
    mem_free(*snapshot);
    *snapshot = NULL;
}

static uint64_t last_in_history(const struct merge_node *node, uint64_t origin)
{
    const struct merge_data *data = &node->data;

    for (uint32_t i = data->history.count; i-- != 0;) {
        if (data->history.items[i]->origin == origin)
            return data->history.items[i]->stamp;
    }
    return merge_vector_get(&node->state.cut, origin);
}

void merge_node_restart(struct merge_node *node, const struct merge_snapshot *saved, uint64_t origin)
{
    struct merge_identity *identity = &node->state.identity;

    merge_data_fini(&node->data, node->model);
    merge_data_copy(&node->data, &saved->data, node->model);
    node->state.clock = merge_broken(MERGE_BREAK_STAMP_BACK) ? saved->account.clock : identity->promised + 1;
    if (merge_broken(MERGE_BREAK_WALL_BACK))
        identity->wall = 0;
    identity->incarnation++;
    if (!merge_broken(MERGE_BREAK_REUSE_ORIGIN)) {
        merge_vector_set(&identity->former, identity->origin, 1);
        identity->origin = origin;
    }
    merge_state_resume(&node->state, &saved->account);
    node->promised_wall = identity->wall;
    node->last_own = merge_broken(MERGE_BREAK_REUSE_ORIGIN) ? last_in_history(node, identity->origin) : 0;
    if (identity->promised < node->state.clock)
        identity->promised = node->state.clock;
}

/* Does the record have something that the snapshot's vector does not cover? */
static bool record_has_more(const struct merge_record *record, const struct merge_vector *vector)
{
    struct merge_place last = merge_record_last(record);
    struct merge_spot spot = {0, 0};

    if (last.stamp > merge_vector_get(vector, last.origin))
        return true;
    for (const struct merge_step *step; (step = merge_record_next(record, &spot)) != NULL;) {
        const struct merge_entry *entry = step->op->entry;

        if (entry->stamp > merge_vector_get(vector, entry->origin))
            return true;
    }
    return false;
}

/* Neither side could give what the other lacks: for each key the younger state, and all keys dirty. */
static void force_together(struct merge_node *node, const struct merge_data *old, const struct merge_vector *vector)
{
    struct merge_data *data = &node->data;
    struct merge_place now = {node->state.clock, 0};

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
    const struct merge_account *account = &snapshot->account;
    struct merge_data old = node->data;
    struct merge_data *data = &node->data;

    if (!merge_state_adopt(&node->state, account))
        return false;
    node->promised_wall = node->state.identity.wall; /* a newcomer begins there */
    merge_data_copy(data, &snapshot->data, node->model);
    merge_node_note_frontiers(node);
    if (account->forced) {
        for (uint32_t i = 0; i < data->history.count; i++)
            merge_entry_release(data->history.items[i]);
        data->history.count = 0;
        force_together(node, &old, &account->vector);
    }
    for (uint32_t i = 0; i < old.history.count; i++) {
        struct merge_entry *entry = old.history.items[i];

        if (entry->stamp <= merge_vector_get(&account->vector, entry->origin))
            continue;
        if (!account->forced && !merge_broken(MERGE_BREAK_SNAPSHOT_NO_EXTRA))
            merge_node_place_entry(node, entry);
        merge_data_keep(data, entry);
    }
    merge_data_fini(&old, node->model);
    return true;
}
