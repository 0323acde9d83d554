#include "sim.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_MS = 1000, EVENTS_MOST = 400, END_ROUNDS = 120, NO_FORCE_ROUNDS = 40, WAIT_ROUNDS = 60 };

#define NAME_OF(index) ((uint64_t)(index) + 1)

static const char *const event_names[] = {"client", "link",  "links",  "cut",  "advance", "save",  "crash", "back",
                                          "join",   "clock", "forget", "wipe", "give up", "bound", "repair"};

/* --- helpers --- */

static void __attribute__((format(printf, 2, 3))) say(const struct sim *sim, const char *format, ...)
{
    va_list arguments;

    if (!sim->print)
        return;
    va_start(arguments, format);
    printf("%6lld  ", (long long)sim->now);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

static void __attribute__((format(printf, 2, 3))) wrong(struct sim *sim, const char *format, ...)
{
    va_list arguments;

    if (sim->wrong[0] != '\0')
        return;
    va_start(arguments, format);
    vsnprintf(sim->wrong, sizeof(sim->wrong), format, arguments);
    va_end(arguments);
}

static uint64_t below(struct sim *sim, uint64_t limit)
{
    return random_below(&sim->random, limit);
}

static bool chance(struct sim *sim, uint64_t percent)
{
    return below(sim, 100) < percent;
}

static struct slice key_name(uint32_t key)
{
    static const char names[][3] = {"k0", "k1", "k2", "k3", "k4", "k5"};

    return slice_make(names[key], 2);
}

int64_t sim_wall(const struct sim *sim, uint32_t node)
{
    const struct sim_node *its = &sim->nodes[node];
    int64_t wall = FIRST_MS + its->clock_offset + (sim->now - FIRST_MS) * its->clock_rate / 8;

    return wall < 1 ? 1 : wall;
}

static uint64_t fresh_origin(struct sim *sim)
{
    /* Not ascending, so that ties are broken either way. */
    uint64_t origin = ++sim->next_origin * 0x9e3779b1u % 1000003;

    return origin + 1;
}

static bool is_serving(const struct sim_node *its)
{
    return its->node != NULL && its->alive && its->node->state.ready;
}

/* A random node for which `fits` holds, or SIM_NODES_MOST. */
static uint32_t some_node(struct sim *sim, bool (*fits)(const struct sim_node *its))
{
    uint32_t found[SIM_NODES_MOST], count = 0;

    for (uint32_t i = 0; i < sim->node_count; i++) {
        if (fits(&sim->nodes[i]))
            found[count++] = i;
    }
    return count == 0 ? SIM_NODES_MOST : found[below(sim, count)];
}

/* --- messages --- */

static void beat_release(struct sim_beat *beat)
{
    if (beat == NULL || --beat->references != 0)
        return;
    merge_beat_part_fini(&beat->part);
    merge_beat_fini(&beat->whole);
    mem_free(beat);
}

static struct merge_hello *hello_copy(const struct merge_hello *hello)
{
    struct merge_hello *copy = mem_copy(hello, sizeof(*hello));

    merge_members_copy(&copy->members, &hello->members);
    merge_vector_copy(&copy->vector, &hello->vector);
    merge_vector_copy(&copy->deeds, &hello->deeds);
    merge_vector_copy(&copy->cut, &hello->cut);
    merge_vector_copy(&copy->closed, &hello->closed);
    merge_vector_copy(&copy->removed, &hello->removed);
    return copy;
}

static void message_fini(struct sim_message *message)
{
    merge_entry_release(message->entry);
    beat_release(message->beat);
    merge_snapshot_destroy(&message->snapshot, &value_model);
    if (message->hello != NULL) {
        merge_members_fini(&message->hello->members);
        merge_vector_fini(&message->hello->vector);
        merge_vector_fini(&message->hello->deeds);
        merge_vector_fini(&message->hello->cut);
        merge_vector_fini(&message->hello->closed);
        merge_vector_fini(&message->hello->removed);
        mem_free(message->hello);
    }
    *message = (struct sim_message){0};
}

static bool queue_is_empty(const struct sim_queue *queue)
{
    return queue->first == queue->count;
}

static void queue_push(struct sim_queue *queue, struct sim_message message)
{
    *ARRAY_PUSH(queue) = message;
}

static struct sim_message queue_pop(struct sim_queue *queue)
{
    struct sim_message message = queue->items[queue->first++];

    if (queue->first == queue->count)
        queue->first = queue->count = 0;
    return message;
}

static void queue_clear(struct sim_queue *queue)
{
    while (!queue_is_empty(queue)) {
        struct sim_message message = queue_pop(queue);

        message_fini(&message);
    }
}

/* --- links --- */

struct sim_link *sim_link(struct sim *sim, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < sim->link_count; i++) {
        if (sim->links[i].from == from && sim->links[i].to == to)
            return &sim->links[i];
    }
    return NULL;
}

static uint32_t link_number(const struct sim *sim, const struct sim_link *link)
{
    return (uint32_t)(link - sim->links);
}

static void add_link(struct sim *sim, uint32_t from, uint32_t to)
{
    assert(sim->link_count < SIM_LINKS_MOST);
    sim->links[sim->link_count++] = (struct sim_link){.from = from, .to = to, .up = true};
}

static void link_reset(struct sim *sim, struct sim_link *link)
{
    link->state = LINK_OFF;
    link->exempt = false;
    queue_clear(&link->forward);
    queue_clear(&link->backward);
    merge_vector_fini(&link->sent);
    merge_vector_fini(&link->asked_closed);
    merge_asks_down(&sim->nodes[link->to].asks, link_number(sim, link));
}

static void reset_links_from(struct sim *sim, uint32_t node)
{
    for (uint32_t i = 0; i < sim->link_count; i++) {
        if (sim->links[i].from == node)
            link_reset(sim, &sim->links[i]);
    }
}

static void reset_links_to(struct sim *sim, uint32_t node)
{
    for (uint32_t i = 0; i < sim->link_count; i++) {
        if (sim->links[i].to == node)
            link_reset(sim, &sim->links[i]);
    }
}

static void link_connect(struct sim *sim, struct sim_link *link)
{
    struct sim_node *to = &sim->nodes[link->to];
    struct merge_hello hello;

    if (link->state != LINK_OFF || !link->up || to->node == NULL || !to->alive || sim->nodes[link->from].node == NULL ||
        !sim->nodes[link->from].alive)
        return;
    hello = merge_state_hello(&to->node->state);
    link->state = LINK_CONNECTING;
    queue_push(&link->backward, (struct sim_message){.kind = MESSAGE_HELLO, .hello = hello_copy(&hello)});
}

static void want(struct sim *sim, struct sim_link *link, uint64_t origin)
{
    uint64_t stamp = merge_vector_get(&sim->nodes[link->to].node->state.vector, origin);

    queue_push(&link->backward, (struct sim_message){.kind = MESSAGE_WANT, .origin = origin, .stamp = stamp});
}

static void sender_hello(struct sim *sim, struct sim_link *link, const struct merge_hello *hello)
{
    struct merge_node *node = sim->nodes[link->from].node;
    enum merge_offer offer = merge_state_offer(&node->state, hello, sim->may_force, sim->waited);

    merge_state_greet(&node->state, hello);
    if (offer == MERGE_OFFER_WAIT)
        sim->totals->given_first++;
    if (offer == MERGE_OFFER_WAIT || offer == MERGE_OFFER_NOTHING) {
        link_reset(sim, link);
        return;
    }
    link->state = LINK_ON;
    link->cursor = 0;
    link->sender_origin = node->state.identity.origin;
    if (offer == MERGE_OFFER_STREAM)
        return;
    if (!hello->ready) {
        merge_state_sponsor(&node->state, hello);
        if (!merge_broken(MERGE_BREAK_JOIN_UNSYNCED))
            sim_save(sim, link->from);
    }
    queue_push(&link->forward, (struct sim_message){.kind = MESSAGE_SNAPSHOT,
                                                    .snapshot = merge_node_snapshot(node, sim_wall(sim, link->from))});
    link->forward.items[link->forward.count - 1].snapshot->account.forced = offer == MERGE_OFFER_FORCED;
    sim->totals->snapshots++;
    sim->totals->forced += offer == MERGE_OFFER_FORCED;
    say(sim, "n%u sends n%u a snapshot%s", link->from, link->to, offer == MERGE_OFFER_FORCED ? " by force" : "");
}

/* What the receiver has sent back. */
static void sender_listen(struct sim *sim, struct sim_link *link)
{
    struct merge_node *node = sim->nodes[link->from].node;

    while (!queue_is_empty(&link->backward)) {
        struct sim_message message = queue_pop(&link->backward);

        switch (message.kind) {
        case MESSAGE_HELLO:
            sender_hello(sim, link, message.hello);
            break;
        case MESSAGE_WANT:
            merge_vector_set(&link->sent, message.origin, message.stamp);
            link->cursor = 0;
            if (merge_vector_get(&node->state.cut, message.origin) > message.stamp)
                link_reset(sim, link); /* the next hello tells */
            break;
        case MESSAGE_STOP:
            merge_vector_remove(&link->sent, message.origin);
            queue_push(&link->forward, (struct sim_message){.kind = MESSAGE_STOPPED, .origin = message.origin});
            break;
        default:
            assert(false);
        }
        message_fini(&message);
    }
}

static void send_entries(struct sim *sim, struct sim_link *link)
{
    const struct merge_data *data = &sim->nodes[link->from].node->data;

    for (; link->cursor < data->history.count; link->cursor++) {
        struct merge_entry *entry = data->history.items[link->cursor];

        if (!merge_vector_has(&link->sent, entry->origin) ||
            entry->stamp <= merge_vector_get(&link->sent, entry->origin))
            continue;
        merge_vector_set(&link->sent, entry->origin, entry->stamp);
        queue_push(&link->forward, (struct sim_message){.kind = MESSAGE_ENTRY, .entry = merge_entry_acquire(entry)});
    }
}

static void send_beat(struct sim *sim, struct sim_link *link)
{
    struct merge_node *node = sim->nodes[link->from].node;
    struct merge_word *own = merge_node_word(node, sim_wall(sim, link->from));
    struct sim_beat *beat = mem_alloc_zero(sizeof(*beat));

    beat->references = 1;
    merge_beat_make(&beat->whole, &node->state, own);
    merge_beat_part(&beat->part, &beat->whole, &link->sent);
    merge_word_release(own);
    queue_push(&link->forward, (struct sim_message){.kind = MESSAGE_BEAT, .beat = beat});
}

void sim_send(struct sim *sim, struct sim_link *link, bool beat)
{
    const struct sim_node *from = &sim->nodes[link->from];

    if (!link->up)
        return;
    if (link->state == LINK_GHOST && queue_is_empty(&link->forward))
        link_reset(sim, link);
    link_connect(sim, link);
    if (link->state == LINK_GHOST || link->state == LINK_OFF || from->node == NULL || !from->alive)
        return;
    sender_listen(sim, link);
    if (link->state != LINK_ON)
        return;
    send_entries(sim, link);
    if (beat)
        send_beat(sim, link);
}

/* Asks for what is offered, by the rules of merge/asks.h. */
static void receive_offers(struct sim *sim, struct sim_link *link, const struct merge_vector *offers)
{
    struct sim_node *to = &sim->nodes[link->to];
    uint32_t number = link_number(sim, link);

    for (uint32_t i = 0; i < offers->count; i++) {
        uint64_t origin = offers->items[i].id;
        uint32_t other;

        if (origin == to->node->state.identity.origin || merge_asks_has(&to->asks, number, origin))
            continue;
        if (merge_vector_has(&to->node->state.group.closed, origin)) {
            if (!merge_vector_has(&link->asked_closed, origin)) {
                merge_vector_set(&link->asked_closed, origin, 1);
                want(sim, link, origin);
            }
            continue;
        }
        switch (merge_asks_offered(&to->asks, number, offers->items[i], origin == link->sender_origin,
                                   merge_vector_get(&to->node->state.vector, origin), &other)) {
        case MERGE_ASK_NOTHING:
            break;
        case MERGE_ASK_WANT:
            want(sim, link, origin);
            break;
        case MERGE_ASK_STOP:
            if (sim->links[other].state == LINK_ON)
                queue_push(&sim->links[other].backward, (struct sim_message){.kind = MESSAGE_STOP, .origin = origin});
            else
                link_reset(sim, &sim->links[other]); /* a wire without an end: nobody there stops */
            break;
        }
    }
}

static void receive_entry(struct sim *sim, struct sim_link *link, struct sim_message *message)
{
    struct sim_node *to = &sim->nodes[link->to];
    uint64_t origin = message->entry->origin;

    sim->totals->deliveries++;
    switch (merge_node_accept(to->node, message->entry)) {
    case MERGE_ACCEPTED:
        break;
    case MERGE_OLD:
        if (message->entry->stamp > merge_vector_get(&to->node->state.deeds, origin) && merge_breaks == 0)
            wrong(sim, "n%u was promised that nothing like %llu of %llu follows, and it was never there", link->to,
                  (unsigned long long)message->entry->stamp, (unsigned long long)origin);
        if (!message->repeated && !link->exempt && !merge_vector_has(&to->node->state.group.closed, origin) &&
            !merge_vector_has(&link->asked_closed, origin) && merge_breaks == 0)
            wrong(sim, "n%u got %llu of %llu twice, the second by the link from n%u", link->to,
                  (unsigned long long)message->entry->stamp, (unsigned long long)origin, link->from);
        break;
    case MERGE_GAP:
        if (!message->repeated && !link->exempt && merge_breaks == 0)
            wrong(sim, "n%u got %llu of %llu with something missing before it, by the link from n%u", link->to,
                  (unsigned long long)message->entry->stamp, (unsigned long long)origin, link->from);
        link_reset(sim, link);
        break;
    }
}

static void receive_snapshot(struct sim *sim, struct sim_link *link, const struct merge_snapshot *snapshot)
{
    struct sim_node *to = &sim->nodes[link->to];

    if (!merge_node_adopt(to->node, snapshot)) {
        sim->totals->refused++;
        link_reset(sim, link);
        return;
    }
    say(sim, "n%u takes the state of n%u", link->to, link->from);
    reset_links_from(sim, link->to);
    for (uint32_t i = 0; i < sim->link_count; i++) {
        if (sim->links[i].to == link->to)
            sim->links[i].exempt = true;
    }
    if (to->file == NULL)
        sim_save(sim, link->to);
}

static void receive(struct sim *sim, struct sim_link *link)
{
    struct sim_node *to = &sim->nodes[link->to];
    struct sim_message message;
    uint32_t next;

    if (merge_vector_has(&to->node->state.group.closed, link->sender_origin) &&
        !merge_broken(MERGE_BREAK_KEEP_OLD_CONNECTIONS) && !merge_broken(MERGE_BREAK_CLOSE_UNCONFIRMED)) {
        link_reset(sim, link);
        return;
    }
    message = queue_pop(&link->forward);
    if (message.kind == MESSAGE_ENTRY && !sim->gentle &&
        chance(sim, 1)) { /* the wire, or who holds its other end, loses it */
        link->exempt = true;
    } else if (message.kind == MESSAGE_SNAPSHOT) {
        receive_snapshot(sim, link, message.snapshot);
    } else if (to->node->state.ready) {
        switch (message.kind) {
        case MESSAGE_ENTRY:
            receive_entry(sim, link, &message);
            if (link->state != LINK_OFF && !sim->gentle && chance(sim, 3)) { /* the wire doubles it */
                message.repeated = true;
                receive_entry(sim, link, &message);
            }
            break;
        case MESSAGE_BEAT:
            if (!merge_state_hear(&to->node->state, &message.beat->part))
                link_reset(sim, link);
            else if (link->state == LINK_ON)
                receive_offers(sim, link, &message.beat->part.offers);
            break;
        default: /* STOPPED */
            next = merge_asks_stopped(&to->asks, link_number(sim, link), message.origin);
            if (next != MERGE_LINK_NONE && sim->links[next].state == LINK_ON)
                want(sim, &sim->links[next], message.origin);
            else if (next != MERGE_LINK_NONE)
                merge_asks_release(&to->asks, next, message.origin);
            break;
        }
    }
    message_fini(&message);
}

void sim_receive(struct sim *sim, struct sim_link *link, uint32_t most)
{
    const struct sim_node *to = &sim->nodes[link->to];

    while (most-- != 0 && (link->state == LINK_ON || link->state == LINK_GHOST) && !queue_is_empty(&link->forward) &&
           to->node != NULL && to->alive)
        receive(sim, link);
}

/* --- what a node does by itself --- */

static void note(struct sim *sim, uint32_t node, struct merge_entry *entry)
{
    *ARRAY_PUSH(&sim->all) = merge_entry_acquire(entry);
    sim->totals->operations += entry->op_count + entry->flush;
    if (sim->print) {
        char text[600] = "";
        int at = 0;

        for (uint32_t i = 0; i < entry->op_count; i++) {
            const struct merge_op *op = &entry->ops[i];
            const struct value_part *part = (const void *)op->words.data;
            size_t parts = part->kind == KIND_RESTORE ? 1 : op->words.size / sizeof(*part);

            at += snprintf(text + at, sizeof(text) - (size_t)at, "  %.*s:", (int)op->key.size, op->key.data);
            for (size_t n = 0; n < parts && at < 400; n++) {
                at += snprintf(text + at, sizeof(text) - (size_t)at, " ");
                at += value_print_part(text + at, sizeof(text) - (size_t)at, &part[n]);
            }
        }
        say(sim, "n%u (%llu) at %llu+%llu w %lld%s%s", node, (unsigned long long)entry->origin,
            (unsigned long long)(entry->stamp >> MERGE_COUNTER_BITS),
            (unsigned long long)(entry->stamp & ((1u << MERGE_COUNTER_BITS) - 1)), (long long)entry->wall,
            entry->flush                ? " FLUSHALL"
            : entry->recheck.stamp != 0 ? " recheck"
                                        : "",
            text);
    }
}

static void run_items(struct sim *sim, uint32_t node, const struct merge_item *items, uint32_t count, bool flush)
{
    note(sim, node, merge_node_run(sim->nodes[node].node, items, count, flush, sim_wall(sim, node)));
}

void sim_command(struct sim *sim, uint32_t node, uint32_t key, struct value_part part)
{
    struct merge_item item = {.key = key_name(key),
                              .words = slice_make(&part, sizeof(part)),
                              .overwrites = value_kind_overwrites(part.kind)};

    run_items(sim, node, &item, 1, false);
}

void sim_flush(struct sim *sim, uint32_t node)
{
    sim->totals->flushes++;
    run_items(sim, node, NULL, 0, true);
}

void sim_evict(struct sim *sim, uint32_t node, uint32_t key)
{
    const struct merge_key *found = merge_node_find(sim->nodes[node].node, key_name(key));
    struct value_part part = {.kind = KIND_EVICT};
    struct merge_item item = {.key = key_name(key),
                              .words = slice_make(&part, sizeof(part)),
                              .overwrites = true,
                              .evicts = true};

    if (found == NULL || found->record.value == NULL || !merge_state_may_evict(&sim->nodes[node].node->state))
        return;
    item.seen = merge_record_last(&found->record).stamp;
    sim->totals->evictions++;
    run_items(sim, node, &item, 1, false);
}

/* A command of a client, or a transaction of up to four. */
static void client(struct sim *sim, uint32_t node)
{
    struct merge_node *its = sim->nodes[node].node;
    int64_t wall = merge_node_wall(its, sim_wall(sim, node));
    uint64_t dice = below(sim, 100);
    uint32_t count = 1, item_count = 0;
    struct value_part parts[6][4];
    uint32_t part_counts[6] = {0};
    struct merge_value *seen[6] = {NULL};
    bool looked[6] = {false};
    struct merge_item items[6];

    if (dice < 2) {
        sim_flush(sim, node);
        return;
    }
    if (dice < (sim->profile == PROFILE_EVICT ? 25u : 10u)) {
        sim_evict(sim, node, (uint32_t)below(sim, sim->key_count));
        return;
    }
    if (dice > 88)
        count = 2 + (uint32_t)below(sim, 3);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t key = (uint32_t)below(sim, sim->key_count);
        const struct merge_key *found = merge_node_find(its, key_name(key));
        struct value_part *part = &parts[key][part_counts[key]];

        if (!looked[key]) {
            looked[key] = true;
            seen[key] = found == NULL ? NULL
                                      : value_model.expire(&value_model,
                                                           value_model.copy(&value_model, found->record.value), wall);
        }
        if (!value_random_part(&sim->random, seen[key], wall, its->state.identity.origin, sim->profile, part))
            continue;
        part_counts[key]++;
        seen[key] = value_apply_part(seen[key], part, wall);
    }
    for (uint32_t key = 0; key < sim->key_count; key++) {
        bool overwrites = false;

        value_model.destroy(&value_model, seen[key]);
        for (uint32_t i = 0; i < part_counts[key]; i++)
            overwrites |= value_kind_overwrites(parts[key][i].kind);
        if (part_counts[key] != 0)
            items[item_count++] = (struct merge_item){.key = key_name(key),
                                                      .words = slice_make(parts[key],
                                                                          part_counts[key] * sizeof(parts[key][0])),
                                                      .overwrites = overwrites};
    }
    if (item_count != 0)
        run_items(sim, node, items, item_count, false);
}

void sim_settle(struct sim *sim, uint32_t node)
{
    merge_node_advance(sim->nodes[node].node, sim_wall(sim, node));
    merge_node_settle(sim->nodes[node].node, sim->gentle ? UINT64_MAX : random_u64(&sim->random));
}

void sim_trim(struct sim *sim, uint32_t node)
{
    struct merge_node *its = sim->nodes[node].node;
    uint32_t before = its->data.history.count, gone;

    merge_node_trim(its, sim->saved_history);
    gone = before - its->data.history.count;
    for (uint32_t i = 0; i < sim->link_count && gone != 0; i++) {
        struct sim_link *link = &sim->links[i];
        bool lacks = false;

        if (link->from != node || link->state != LINK_ON)
            continue;
        for (uint32_t n = 0; n < link->sent.count; n++)
            lacks |= link->sent.items[n].stamp < merge_vector_get(&its->state.cut, link->sent.items[n].id);
        link->cursor = link->cursor > gone ? link->cursor - gone : 0;
        if (lacks)
            link_reset(sim, link);
    }
}

void sim_repair(struct sim *sim, uint32_t node)
{
    struct merge_node *its = sim->nodes[node].node;
    uint32_t before = its->data.history.count;

    merge_node_repair(its, sim_wall(sim, node));
    for (uint32_t i = before; i < its->data.history.count; i++)
        note(sim, node, its->data.history.items[i]);
}

static void bound(struct sim *sim, uint32_t node)
{
    struct sim_node *its = &sim->nodes[node];

    if (its->limit_window % 2 == 0) /* others give up lists that could be joined: what is late then has to be mended */
        merge_node_join(its->node, its->limit_window);
    merge_node_bound(its->node, its->limit_window, its->limit_tombstones);
    if (merge_node_window_bytes(its->node) > its->limit_window ||
        merge_node_tombstones(its->node) > its->limit_tombstones)
        wrong(sim, "n%u is above its bounds", node);
}

/* --- what happens to nodes --- */

void sim_save(struct sim *sim, uint32_t node)
{
    struct sim_node *its = &sim->nodes[node];

    merge_snapshot_destroy(&its->file, &value_model);
    its->file = merge_node_save(its->node);
}

void sim_crash(struct sim *sim, uint32_t node, bool wire_stays)
{
    sim->nodes[node].alive = false;
    sim->totals->crashes++;
    say(sim, "n%u crashes", node);
    reset_links_to(sim, node);
    for (uint32_t i = 0; i < sim->link_count; i++) {
        struct sim_link *link = &sim->links[i];

        if (link->from != node)
            continue;
        if (wire_stays && link->state == LINK_ON)
            link->state = LINK_GHOST;
        else
            link_reset(sim, link);
    }
}

void sim_back(struct sim *sim, uint32_t node)
{
    struct sim_node *its = &sim->nodes[node];

    merge_node_restart(its->node, its->file, fresh_origin(sim));
    its->alive = true;
    say(sim, "n%u is back as %llu, clock %llu", node, (unsigned long long)its->node->state.identity.origin,
        (unsigned long long)(its->node->state.clock >> MERGE_COUNTER_BITS));
}

static uint32_t add_node(struct sim *sim)
{
    static const int64_t rates[] = {8, 8, 8, 4, 16};
    uint32_t index = sim->node_count++;
    struct sim_node *its = &sim->nodes[index];

    *its = (struct sim_node){.alive = true, .clock_rate = rates[below(sim, 5)]};
    if (chance(sim, 25))
        its->clock_offset = (int64_t)below(sim, 121) - 60;
    else if (chance(sim, 33))
        its->clock_offset = (int64_t)below(sim, 601) - 300;
    its->limit_window = 200 + below(sim, 1500);
    its->limit_tombstones = (uint32_t)below(sim, 3);
    its->node = merge_node_create(&value_model, NAME_OF(index), fresh_origin(sim));
    return index;
}

static uint32_t nodes_there(const struct sim *sim)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sim->node_count; i++)
        count += sim->nodes[i].node != NULL;
    return count;
}

/* A newcomer with links to some, at least one. */
static void join(struct sim *sim, uint64_t percent)
{
    uint32_t index, linked = 0;

    if (sim->node_count == SIM_NODES_MOST || nodes_there(sim) >= 5)
        return;
    index = add_node(sim);
    sim->totals->joins++;
    say(sim, "n%u joins as %llu", index, (unsigned long long)sim->nodes[index].node->state.identity.origin);
    for (uint32_t turn = 0; turn < 2 && linked == 0; turn++) {
        for (uint32_t i = 0; i < index; i++) {
            if (sim->nodes[i].node == NULL || (turn == 0 ? !chance(sim, percent) : linked != 0))
                continue;
            add_link(sim, i, index);
            add_link(sim, index, i);
            linked++;
        }
    }
}

uint32_t sim_join(struct sim *sim)
{
    join(sim, 100);
    sim->nodes[sim->node_count - 1].clock_offset = 0;
    sim->nodes[sim->node_count - 1].clock_rate = 8;
    return sim->node_count - 1;
}

static void drop_link(struct sim *sim, uint32_t number)
{
    struct sim_link *link = &sim->links[number];

    link_reset(sim, link);
    link->up = false;
    link->from = link->to = SIM_NODES_MOST - 1;
}

/* Does the first of the others reach all of them by its links; backwards: do all of them reach it? */
static bool is_joined(const struct sim *sim, uint32_t without, bool backwards)
{
    bool seen[SIM_NODES_MOST] = {false};
    uint32_t reached = 0;

    for (uint32_t i = 0; i < sim->node_count && reached == 0; i++) {
        if (i != without && sim->nodes[i].node != NULL) {
            seen[i] = true;
            reached = 1;
        }
    }
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < sim->link_count; i++) {
            const struct sim_link *link = &sim->links[i];
            const uint32_t near = backwards ? link->to : link->from, far = backwards ? link->from : link->to;

            if (near == far || near == without || far == without || !seen[near] || seen[far])
                continue;
            seen[far] = again = true;
            reached++;
        }
    }
    return reached + 1 == nodes_there(sim);
}

static bool stays_connected(const struct sim *sim, uint32_t without)
{
    return is_joined(sim, without, false) && is_joined(sim, without, true);
}

/* Outside the rules, as no node can see it: a newcomer that only the one who goes knows of. */
static bool all_know_all(const struct sim *sim, uint32_t without)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        const struct sim_node *its = &sim->nodes[i];

        if (its->node == NULL)
            continue;
        if (!its->node->state.ready || its->node->state.group.members.count != nodes_there(sim))
            return false;
        for (uint32_t n = 0; n < sim->node_count && i != without; n++) {
            if (sim->nodes[n].node != NULL &&
                merge_members_find(&its->node->state.group.members, sim->nodes[n].node->state.identity.name) == NULL)
                return false;
        }
    }
    return true;
}

bool sim_forget(struct sim *sim, uint32_t by, uint32_t gone)
{
    struct sim_node *its = &sim->nodes[gone];

    if (!merge_state_forget(&sim->nodes[by].node->state, its->node->state.identity.name))
        return false;
    say(sim, "n%u forgets n%u, which is gone", by, gone);
    sim->totals->forgotten++;
    sim_save(sim, by);
    for (uint32_t i = 0; i < sim->link_count; i++) {
        if (sim->links[i].from == gone || sim->links[i].to == gone)
            drop_link(sim, i);
    }
    merge_node_destroy(&its->node);
    merge_snapshot_destroy(&its->file, &value_model);
    return true;
}

/* A node dies for ever, or is thrown out; somebody who lives says so. */
static bool forget(struct sim *sim)
{
    uint32_t gone = (uint32_t)below(sim, sim->node_count), by = some_node(sim, is_serving);
    const struct sim_node *its = &sim->nodes[gone];

    if (its->node == NULL || by == SIM_NODES_MOST || by == gone || nodes_there(sim) < 3 || !its->node->state.ready ||
        !stays_connected(sim, gone))
        return false;
    if (!all_know_all(sim, gone) && !merge_broken(MERGE_BREAK_FORGET_UNKNOWN))
        return false;
    return sim_forget(sim, by, gone);
}

static void cut(struct sim *sim)
{
    struct sim_link *link = &sim->links[below(sim, sim->link_count)];
    struct sim_link *other = sim_link(sim, link->to, link->from);
    bool up = chance(sim, 60) ? !link->up : true;

    if (link->from == link->to)
        return;
    link->up = up;
    if (other != NULL && chance(sim, 70))
        other->up = up;
    if (!link->up)
        link_reset(sim, link);
    if (other != NULL && !other->up)
        link_reset(sim, other);
    say(sim, "n%u -> n%u %s", link->from, link->to, link->up ? "up" : "cut");
}

void sim_cut(struct sim *sim, uint32_t a, uint32_t b, bool is_cut)
{
    struct sim_link *both[] = {sim_link(sim, a, b), sim_link(sim, b, a)};

    for (uint32_t i = 0; i < 2; i++) {
        if (both[i] == NULL)
            continue;
        both[i]->up = !is_cut;
        if (is_cut)
            link_reset(sim, both[i]);
    }
}

static bool is_dead(const struct sim_node *its)
{
    return its->node != NULL && !its->alive;
}

static bool is_there(const struct sim_node *its)
{
    return its->node != NULL;
}

static void use_link(struct sim *sim)
{
    struct sim_link *link = &sim->links[below(sim, sim->link_count)];

    if (!link->up)
        return;
    if (link->state != LINK_ON && chance(sim, 80)) {
        for (uint32_t i = 0; i < 3; i++) { /* so far that things flow */
            sim_send(sim, link, true);
            sim_receive(sim, link, 2);
        }
    }
    if (!queue_is_empty(&link->forward) && chance(sim, 60))
        sim_receive(sim, link, 1 + (uint32_t)below(sim, 6));
    else
        sim_send(sim, link, chance(sim, 70));
    if (chance(sim, 40))
        sim_receive(sim, link, 1 + (uint32_t)below(sim, 6));
}

/* Nearly all is well for a while. */
static void use_links(struct sim *sim)
{
    for (uint32_t round = 1 + (uint32_t)below(sim, 3); round-- != 0;) {
        sim->now += (int64_t)below(sim, 3);
        for (uint32_t i = 0; i < sim->link_count; i++) {
            if (chance(sim, 90)) {
                sim_send(sim, &sim->links[i], true);
                sim_receive(sim, &sim->links[i], chance(sim, 80) ? UINT32_MAX : 2);
            }
        }
    }
}

/* A partition: some lose sight of each other for so long that they give each other up. */
static void give_up(struct sim *sim, uint32_t node)
{
    bool is_cut = chance(sim, 50);

    for (uint32_t i = 0; i < sim->node_count; i++) {
        if (i == node || sim->nodes[i].node == NULL || chance(sim, 50))
            continue;
        merge_state_give_up(&sim->nodes[node].node->state, NAME_OF(i));
        if (chance(sim, 50))
            merge_state_give_up(&sim->nodes[i].node->state, NAME_OF(node));
        if (is_cut)
            sim_cut(sim, node, i, true);
    }
}

static void run_event(struct sim *sim, const struct sim_event *event)
{
    uint32_t node;

    random_seed(&sim->random, event->seed);
    sim->now += event->later_ms;
    sim->may_force = sim->bounded && chance(sim, 2);
    sim->waited = !chance(sim, 2)                   ? MERGE_WAITED_NOT
                  : sim->bounded && chance(sim, 30) ? MERGE_WAITED_LONG_IN_VAIN
                                                    : MERGE_WAITED_IN_VAIN;
    node = some_node(sim, event->kind == EVENT_BACK ? is_dead : event->kind == EVENT_CLOCK ? is_there : is_serving);
    if (node == SIM_NODES_MOST && event->kind != EVENT_LINK && event->kind != EVENT_LINKS && event->kind != EVENT_CUT &&
        event->kind != EVENT_JOIN)
        return;
    switch ((enum sim_event_kind)event->kind) {
    case EVENT_CLIENT:
        client(sim, node);
        break;
    case EVENT_LINK:
        use_link(sim);
        break;
    case EVENT_LINKS:
        use_links(sim);
        break;
    case EVENT_CUT:
        cut(sim);
        break;
    case EVENT_ADVANCE:
        sim_settle(sim, node);
        if (chance(sim, 30))
            sim_trim(sim, node);
        break;
    case EVENT_SAVE:
        sim_save(sim, node);
        break;
    case EVENT_CRASH:
        sim_crash(sim, node, chance(sim, 50));
        break;
    case EVENT_BACK:
        sim_back(sim, node);
        break;
    case EVENT_JOIN:
        join(sim, 60);
        break;
    case EVENT_CLOCK: {
        static const int64_t jumps[] = {-50, -5, 5, 50};

        sim->nodes[node].clock_offset += jumps[below(sim, 4)];
        break;
    }
    case EVENT_FORGET:
        (void)forget(sim);
        break;
    case EVENT_WIPE:
        if (forget(sim)) {
            sim->totals->wiped++;
            join(sim, 60);
        }
        break;
    case EVENT_GIVE_UP:
        give_up(sim, node);
        break;
    case EVENT_BOUND:
        bound(sim, node);
        break;
    default:
        sim_repair(sim, node);
        break;
    }
}

/* --- the end --- */

void sim_exchange(struct sim *sim, uint32_t rounds)
{
    while (rounds-- != 0) {
        sim->now += 1;
        for (uint32_t i = 0; i < sim->link_count; i++) {
            sim_send(sim, &sim->links[i], true);
            sim_receive(sim, &sim->links[i], UINT32_MAX);
        }
        for (uint32_t i = 0; i < sim->node_count; i++) {
            if (is_serving(&sim->nodes[i]))
                sim_settle(sim, i);
        }
    }
}

static int compare_ops(const void *a, const void *b)
{
    const struct merge_op *const *one = a, *const *other = b;

    if ((*one)->place.stamp != (*other)->place.stamp)
        return (*one)->place.stamp < (*other)->place.stamp ? -1 : 1;
    return ((*one)->place.origin > (*other)->place.origin) - ((*one)->place.origin < (*other)->place.origin);
}

/* All operations that the nodes have, in their order, on one plain value. */
static struct merge_value *oracle(const struct sim *sim, const struct merge_vector *deeds, struct slice name)
{
    struct {
        struct merge_op **items;
        uint32_t count, capacity;
    } ops = {0};
    struct merge_place flush = {0};
    struct merge_value *value = NULL;

    for (uint32_t i = 0; i < sim->all.count; i++) {
        struct merge_entry *entry = sim->all.items[i];
        struct merge_place place = {entry->stamp, entry->origin};

        if (entry->stamp > merge_vector_get(deeds, entry->origin))
            continue; /* was lost in a crash or with a wiped disk */
        if (entry->flush && (place.stamp > flush.stamp || (place.stamp == flush.stamp && place.origin > flush.origin)))
            flush = place;
        for (uint32_t n = 0; n < entry->op_count; n++) {
            if (slice_equal(entry->ops[n].key, name))
                *ARRAY_PUSH(&ops) = &entry->ops[n];
        }
    }
    if (ops.count != 0)
        qsort(ops.items, ops.count, sizeof(ops.items[0]), compare_ops);
    for (uint32_t i = 0; i < ops.count; i++) {
        struct merge_op *op = ops.items[i];

        if (op->place.stamp > flush.stamp || (op->place.stamp == flush.stamp && op->place.origin > flush.origin))
            value = merge_op_run(op, value, NULL, &value_model);
    }
    mem_free(ops.items);
    return value;
}

static struct merge_value *view(const struct sim_node *its, struct slice name, int64_t wall)
{
    const struct merge_key *key = merge_node_find(its->node, name);

    return key == NULL ? NULL
                       : value_model.expire(&value_model, value_model.copy(&value_model, key->record.value), wall);
}

static bool same_vectors(const struct merge_vector *a, const struct merge_vector *b)
{
    return merge_vector_covers(a, b) && merge_vector_covers(b, a);
}

static void compare(struct sim *sim)
{
    const struct sim_node *first = NULL;
    uint32_t first_number = 0;
    bool by_frontier = chance(sim, 50); /* what has expired: for somebody, or for all */
    int64_t wall = 0;

    for (uint32_t i = 0; i < sim->node_count; i++) {
        const struct sim_node *its = &sim->nodes[i];

        if (its->node == NULL)
            continue;
        if (!its->node->state.ready) {
            wrong(sim, "n%u never joined", i);
            return;
        }
        if (first == NULL) {
            first = its;
            first_number = i;
        }
        if (by_frontier && its->node->data.horizon.wall > wall)
            wall = its->node->data.horizon.wall;
        else if (!by_frontier && its->node->state.identity.wall > wall)
            wall = its->node->state.identity.wall;
        if (merge_breaks == 0)
            merge_node_validate(its->node);
        if (!sim->bounded && its->node->counts.late + its->node->counts.late_wall != 0)
            wrong(sim, "late at n%u: %llu operations, %llu by wall time", i, (unsigned long long)its->node->counts.late,
                  (unsigned long long)its->node->counts.late_wall);
        if (its->node->data.dirty.count != 0)
            wrong(sim, "n%u is still dirty", i);
        if (!same_vectors(&its->node->state.deeds, &first->node->state.deeds))
            wrong(sim, "n%u and n%u do not have the same operations", first_number, i);
    }
    for (uint32_t k = 0; k < sim->key_count && first != NULL; k++) {
        struct merge_value *want_value = view(first, key_name(k), wall), *ideal;
        char a[400], b[400];

        for (uint32_t i = 0; i < sim->node_count; i++) {
            struct merge_value *value;

            if (sim->nodes[i].node == NULL)
                continue;
            value = view(&sim->nodes[i], key_name(k), wall);
            if (!value_equal(value, want_value)) {
                value_print(a, sizeof(a), want_value);
                value_print(b, sizeof(b), value);
                wrong(sim, "k%u differs: %s at n%u, %s at n%u", k, a, first_number, b, i);
            }
            value_model.destroy(&value_model, value);
        }
        if (!sim->bounded) {
            ideal = value_model.expire(&value_model, oracle(sim, &first->node->state.deeds, key_name(k)), wall);
            sim->totals->compared_with_oracle++;
            if (!value_equal(ideal, want_value)) {
                value_print(a, sizeof(a), want_value);
                value_print(b, sizeof(b), ideal);
                wrong(sim, "k%u is %s at all nodes, %s in order", k, a, b);
            }
            value_model.destroy(&value_model, ideal);
        }
        value_model.destroy(&value_model, want_value);
    }
    for (uint32_t i = 0; i < sim->node_count && !sim->bounded; i++) {
        const struct merge_node *node = sim->nodes[i].node;

        for (uint32_t n = 0; node != NULL && n < node->state.deeds.count; n++) {
            if (node->state.deeds.items[n].stamp > node->data.horizon.frontier)
                wrong(sim, "the frontier of n%u stalls", i);
        }
    }
}

/* Everybody has everything and nothing is left to do. */
static bool is_quiet(const struct sim *sim)
{
    const struct merge_node *first = NULL;

    for (uint32_t i = 0; i < sim->node_count; i++) {
        const struct merge_node *node = sim->nodes[i].node;

        if (node == NULL)
            continue;
        if (first == NULL)
            first = node;
        if (!node->state.ready || node->data.dirty.count != 0 || node->data.recheck.stamp != 0 ||
            !same_vectors(&node->state.deeds, &first->state.deeds))
            return false;
        for (uint32_t n = 0; n < node->state.deeds.count && !sim->bounded; n++) {
            if (node->state.deeds.items[n].stamp > node->data.horizon.frontier)
                return false;
        }
    }
    return true;
}

static void print_nodes(const struct sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        const struct merge_node *node = sim->nodes[i].node;

        if (node == NULL)
            continue;
        printf("        n%u origin %llu F %llu W %lld floor %llu, has", i,
               (unsigned long long)node->state.identity.origin, (unsigned long long)node->data.horizon.frontier,
               (long long)node->data.horizon.wall, (unsigned long long)node->data.horizon.floor);
        for (uint32_t n = 0; n < node->state.vector.count; n++) {
            const struct merge_vector_item *item = &node->state.vector.items[n];

            printf(" %llu:%llu%s", (unsigned long long)item->id, (unsigned long long)item->stamp,
                   merge_vector_has(&node->state.group.closed, item->id) ? " (closed)" : "");
        }
        printf(", members");
        for (uint32_t n = 0; n < node->state.group.members.count; n++)
            printf(" n%llu:%llu", (unsigned long long)node->state.group.members.items[n].name - 1,
                   (unsigned long long)node->state.group.members.items[n].origin);
        printf(", heard of");
        for (uint32_t n = 0; n < node->state.group.words.count; n++)
            printf(" n%llu", (unsigned long long)node->state.group.words.items[n]->name - 1);
        printf("\n");
    }
}

void sim_drop_link(struct sim *sim, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < sim->link_count; i++) {
        if (sim->links[i].from == from && sim->links[i].to == to)
            drop_link(sim, i);
    }
}

bool sim_finish(struct sim *sim)
{
    uint32_t quiet = 0;

    random_seed(&sim->random, (uint64_t)sim->now);
    say(sim, "everything comes up again");
    for (uint32_t i = 0; i < sim->node_count; i++) {
        if (is_dead(&sim->nodes[i]))
            sim_back(sim, i);
    }
    for (uint32_t i = 0; i < sim->link_count; i++)
        sim->links[i].up = sim->links[i].from != sim->links[i].to;
    for (uint32_t round = 0; round < END_ROUNDS && quiet < 3; round++) {
        sim->now += 4;
        sim->may_force = sim->bounded && round > NO_FORCE_ROUNDS;
        sim->waited = round > WAIT_ROUNDS + NO_FORCE_ROUNDS / 2 ? MERGE_WAITED_LONG_IN_VAIN
                      : round > WAIT_ROUNDS                     ? MERGE_WAITED_IN_VAIN
                                                                : MERGE_WAITED_NOT;
        sim_exchange(sim, 1);
        for (uint32_t i = 0; i < sim->node_count && sim->bounded && round > 6; i++) {
            if (is_serving(&sim->nodes[i]))
                sim_repair(sim, i);
        }
        quiet = round > 8 && is_quiet(sim) ? quiet + 1 : 0;
    }
    compare(sim);
    if (sim->print)
        print_nodes(sim);
    return sim->wrong[0] == '\0';
}

/* --- worlds and histories --- */

static void found_group(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct merge_node *node = sim->nodes[i].node;

        node->state.ready = true;
        for (uint32_t n = 0; n < sim->node_count; n++) {
            const struct merge_identity *identity = &sim->nodes[n].node->state.identity;

            merge_members_learn(&node->state.group.members, (struct merge_member){identity->name, identity->origin, 0});
            merge_vector_set(&node->state.vector, identity->origin, 0);
        }
        sim_save(sim, i);
    }
}

void sim_init(struct sim *sim, uint64_t seed, bool bounded, struct sim_totals *totals)
{
    enum { MESH, CHAIN, RING, STAR } topology;
    uint32_t count;
    bool one_way;

    memset(sim, 0, sizeof(*sim));
    random_seed(&sim->random, seed);
    sim->now = FIRST_MS;
    sim->bounded = bounded;
    sim->totals = totals;
    sim->next_origin = seed % 100000;
    count = 2 + (uint32_t)below(sim, chance(sim, 25) ? 4 : 2);
    for (uint32_t i = 0; i < count; i++)
        add_node(sim);
    topology = chance(sim, 40) ? MESH : CHAIN + (uint32_t)below(sim, 3);
    one_way = topology == RING && count > 2 && chance(sim, 50);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t n = 0; n < count; n++) {
            bool neighbours = n == i + 1 || i == n + 1;
            bool round_the_end = (i == 0 && n == count - 1) || (n == 0 && i == count - 1);

            if (i != n && (!one_way || n == (i + 1) % count) &&
                (topology == MESH || (topology == CHAIN && neighbours) ||
                 (topology == RING && (neighbours || round_the_end)) || (topology == STAR && (i == 0 || n == 0))))
                add_link(sim, i, n);
        }
    }
    sim->key_count = 1 + (uint32_t)below(sim, 4);
    sim->saved_history = chance(sim, 50);
    found_group(sim);
}

void sim_init_mesh(struct sim *sim, uint32_t node_count, bool bounded, struct sim_totals *totals)
{
    memset(sim, 0, sizeof(*sim));
    sim->now = FIRST_MS;
    sim->bounded = bounded;
    sim->totals = totals;
    sim->key_count = 2;
    sim->gentle = true;
    random_seed(&sim->random, 1);
    for (uint32_t i = 0; i < node_count; i++) {
        add_node(sim);
        sim->nodes[i].clock_offset = 0;
        sim->nodes[i].clock_rate = 8;
    }
    for (uint32_t i = 0; i < node_count; i++) {
        for (uint32_t n = 0; n < node_count; n++) {
            if (i != n)
                add_link(sim, i, n);
        }
    }
    found_group(sim);
}

void sim_fini(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->link_count; i++) {
        link_reset(sim, &sim->links[i]);
        mem_free(sim->links[i].forward.items);
        mem_free(sim->links[i].backward.items);
    }
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *its = &sim->nodes[i];

        if (its->node != NULL) {
            const uint64_t *from = (const void *)&its->node->counts;
            uint64_t *to = (void *)&sim->totals->counts;

            for (size_t n = 0; n < sizeof(struct merge_counts) / sizeof(uint64_t); n++)
                to[n] += from[n];
        }
        merge_node_destroy(&its->node);
        merge_snapshot_destroy(&its->file, &value_model);
        merge_asks_fini(&its->asks);
    }
    for (uint32_t i = 0; i < sim->all.count; i++)
        merge_entry_release(sim->all.items[i]);
    mem_free(sim->all.items);
}

void sim_history_make(struct sim_history *history, uint64_t seed, bool bounded)
{
    static const uint32_t lengths[] = {40, 100, 200, EVENTS_MOST};
    struct random random;
    uint32_t length;

    random_seed(&random, seed * 2 + bounded);
    *history = (struct sim_history){.seed = seed, .bounded = bounded};
    history->profile = (enum value_profile)random_below(&random, PROFILE_COUNT);
    length = lengths[random_below(&random, 4)];
    for (uint32_t i = 0; i < length; i++) {
        /* of 1000 */
        static const uint32_t weights[EVENT_KINDS] = {
            [EVENT_CLIENT] = 360, [EVENT_LINK] = 360, [EVENT_LINKS] = 35,   [EVENT_CUT] = 35,   [EVENT_ADVANCE] = 105,
            [EVENT_SAVE] = 30,    [EVENT_CRASH] = 8,  [EVENT_BACK] = 12,    [EVENT_JOIN] = 3,   [EVENT_CLOCK] = 5,
            [EVENT_FORGET] = 2,   [EVENT_WIPE] = 1,   [EVENT_GIVE_UP] = 14, [EVENT_BOUND] = 20, [EVENT_REPAIR] = 10};
        static const uint8_t steps[] = {0, 0, 1, 1, 3, 0, 0, 1, 1, 10};
        uint32_t dice = (uint32_t)random_below(&random, 1000), kind = 0;
        struct sim_event *event = ARRAY_PUSH(history);

        while (dice >= weights[kind])
            dice -= weights[kind++];
        if ((history->profile == PROFILE_CRASH || history->profile == PROFILE_EVICT) && random_below(&random, 100) < 3)
            kind = random_below(&random, 2) == 0 ? EVENT_CRASH : EVENT_BACK;
        if (history->profile == PROFILE_CLOCK && random_below(&random, 100) < 6)
            kind = EVENT_CLOCK;
        if (!bounded && (kind == EVENT_GIVE_UP || kind == EVENT_BOUND || kind == EVENT_REPAIR))
            kind = EVENT_ADVANCE;
        *event = (struct sim_event){(uint8_t)kind, steps[random_below(&random, sizeof(steps))], random_u64(&random)};
    }
}

bool sim_run(const struct sim_history *history, bool print, struct sim_totals *totals, char *wrong_text)
{
    struct sim *sim = mem_alloc(sizeof(*sim));
    bool right;

    sim_init(sim, history->seed, history->bounded, totals);
    sim->print = print;
    sim->profile = history->profile;
    if (sim->profile == PROFILE_EXPIRY || sim->profile == PROFILE_EVICT)
        sim->key_count = 1;
    for (uint32_t i = 0; i < history->count && sim->wrong[0] == '\0'; i++) {
        if (print && history->items[i].kind != EVENT_CLIENT)
            say(sim, "%s", event_names[history->items[i].kind]);
        run_event(sim, &history->items[i]);
    }
    right = sim_finish(sim);
    totals->histories++;
    totals->events += history->count;
    strcpy(wrong_text, sim->wrong);
    sim_fini(sim);
    mem_free(sim);
    return right;
}
