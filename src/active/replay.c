#include "active/replay.h"

#include "active/history.h"
#include "active/node.h"
#include "active/place.h"
#include "active/window_cycle.h"
#include "base/array.h"
#include "base/gate.h"
#include "server/command/operation.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/durable/persistence.h"

enum { LOOK_BYTES = 256 << 10 }; /* then the window and the history are held within their limits */

static struct {
    struct place place;
    struct {
        struct frame_op *items;
        uint32_t count, capacity;
    } ops;
    struct effects effects;
    struct {
        struct effect_stamp *items;
        uint32_t count, capacity;
    } stamps; /* of these */
    struct merge_vector deeds;
    /* Of each origin the last entry that the history has. Messages are not in the file: those behind them follow what
     * was before. */
    struct merge_vector told;
    bool has_state, has_begun; /* the history */
    uint64_t bytes;            /* of operations since it was looked at the limits */
} replay;                      /* owner: the thread that loads */

void replay_begin(const struct merge_vector *deeds, bool has_state)
{
    gate_assert_alone();
    merge_vector_copy(&replay.deeds, deeds);
    replay.has_state = has_state;
    replay.has_begun = false;
}

/* As they were described where they ran. */
static void add_op(const struct data_order_operation *operation, uint64_t seen, struct frame_entry *entry)
{
    const struct command *command = operation_find(operation->words, operation->word_count);
    struct frame_op op = {.words = operation->words,
                          .word_count = operation->word_count,
                          .db = operation->db,
                          .evicts = seen != 0,
                          .seen = seen};

    if (command != NULL) {
        op.key_index = operation_key_index(command);
        op.overwrites = operation_overwrites(command, op.words, op.word_count);
        entry->flush = entry->flush || operation_flushes(command);
    }
    for (uint32_t i = 0; i < op.word_count; i++)
        replay.bytes += op.words[i].size;
    replay.bytes += sizeof(op); /* about what is kept beside the words */
    *ARRAY_PUSH(&replay.ops) = op;
}

/* ----------------------------------------------------------------------------------------------------- history -- */

/* Keys of a plain file are in no history: who does not know this origin gets them as a state. */
static void begin_history(struct server *server, const struct frame_entry *entry)
{
    if (!replay.has_state && persistence_key_count(server->store) != 0)
        merge_vector_raise(&replay.deeds, entry->origin, entry->stamp - 1);
    active_history_start(&server->journal, &replay.deeds);
    replay.has_begun = true;
}

static void append(struct journal *journal, const struct frame_entry *entry)
{
    struct effects *effects = &replay.effects;

    for (uint32_t i = 0; i < entry->op_count; i++) {
        const struct frame_op *op = &entry->ops[i];

        effects_add_operation(effects, op->db, op->words, op->word_count);
        operation_describe(effects, op->words, op->word_count);
        if (op->evicts)
            effects_describe(effects, op->key_index, EFFECT_OVERWRITES | EFFECT_EVICTS);
        *ARRAY_PUSH(&replay.stamps) = (struct effect_stamp){.origin = entry->origin,
                                                            .stamp = entry->stamp,
                                                            .previous = entry->prev,
                                                            .wall_ms = entry->wall,
                                                            .key_position = op->evicts ? op->seen : JOURNAL_NOWHERE};
    }
    effects_end_group(effects);
    (void)journal_append_stamped(journal, effects, false, replay.stamps.items);
    effects_clear(effects);
    replay.stamps.count = 0;
}

static void tell(struct server *server, struct frame_entry *entry)
{
    if (merge_vector_has(&replay.told, entry->origin))
        entry->prev = merge_vector_get(&replay.told, entry->origin);
    merge_vector_set(&replay.told, entry->origin, entry->op_count != 0 ? entry->stamp : entry->prev);
    merge_vector_raise(&replay.deeds, entry->origin, entry->stamp);
    if (entry->op_count != 0)
        append(&server->journal, entry);
}

/* ----------------------------------------------------------------------------------------------------- entries -- */

static void look_at_limits(struct worker *worker, uint64_t stamp)
{
    window_cycle_bound(worker, stamp);
    if (!active_is_on())
        (void)active_history_note(journal_end_position(&worker->server->journal), &replay.deeds,
                                  &(struct merge_vector){0});
}

void replay_place(struct worker *worker, const struct data_order_entry *given)
{
    struct frame_entry entry = {.origin = given->origin,
                                .stamp = given->stamp,
                                .prev = given->previous,
                                .wall = given->wall_ms};

    gate_assert_alone();
    replay.ops.count = 0;
    for (uint32_t i = 0; i < given->count; i++)
        add_op(&given->operations[i], given->seen, &entry);
    entry.ops = replay.ops.items;
    entry.op_count = replay.ops.count;
    if (!active_is_on() && !replay.has_begun)
        begin_history(worker->server, &entry);
    place_begin_again(&replay.place, worker);
    place_entry(&replay.place, &entry, NULL);
    replay.place.told = replay.place.counts; /* they were counted when they came */
    place_end(&replay.place);
    if (!active_is_on())
        tell(worker->server, &entry);
    if (replay.bytes < LOOK_BYTES)
        return;
    replay.bytes = 0;
    look_at_limits(worker, entry.stamp);
}

void replay_end(void)
{
    place_fini(&replay.place);
    replay.place = (struct place){.worker = NULL};
    ARRAY_FINI(&replay.ops);
    ARRAY_FINI(&replay.stamps);
    effects_fini(&replay.effects);
    merge_vector_fini(&replay.deeds);
    merge_vector_fini(&replay.told);
}
