#include "active/membership.h"

#include "active/frame.h"
#include "active/identity.h"
#include "base/array.h"
#include "base/gate.h"
#include "merge/place.h"

#include <inttypes.h>
#include <stdio.h>

/* A start that was heard so recently is alive; the second one: while a link leads to it. */
enum { HEARD_NOW_MS = 10 * NODE_BEAT_MS, HEARD_BY_LINK_MS = 10 * HEARD_NOW_MS, HEARD_LATELY_MS = 3 * HEARD_NOW_MS };

enum { COPIES_MOST = 64 /* that are remembered */ };

/* ---------------------------------------------------------------------------------------------- start and end -- */

void membership_init(struct membership *membership, struct merge_identity *identity, uint64_t clock, int64_t wall,
                     struct journal *journal, struct horizon *horizon, struct origins *origins)
{
    *membership = (struct membership){.journal = journal, .horizon = horizon, .origins = origins, .wall = wall};
    spinlock_init(&membership->lock, LOCK_REGISTRY);
    merge_state_init(&membership->state, identity->name, identity->origin);
    membership->state.identity = *identity;
    *identity = (struct merge_identity){0};
    merge_state_raise_clock(&membership->state, clock);
}

static void beat_destroy(struct node_beat *beat)
{
    merge_beat_fini(&beat->beat);
    mem_free(beat);
}

/* Words are counted without atomics, and are the group's, too: so the last reference goes under the lock. */
static void release_beat_locked(const struct membership *membership, struct node_beat *beat) REQUIRES(membership->lock)
{
    spinlock_assert_held(&membership->lock);
    if (beat != NULL && atomic_fetch_sub(&beat->references, 1) == 1)
        beat_destroy(beat);
}

void membership_fini(struct membership *membership)
{
    spinlock_acquire(&membership->lock);
    release_beat_locked(membership, membership->beat);
    spinlock_release(&membership->lock);
    for (uint32_t i = 0; i < membership->links.count; i++)
        merge_vector_fini(&membership->links.items[i].asked_closed);
    ARRAY_FINI(&membership->links);
    ARRAY_FINI(&membership->heard);
    merge_waits_fini(&membership->waits);
    merge_vector_fini(&membership->copies);
    merge_vector_fini(&membership->told_removed);
    merge_vector_fini(&membership->told_ended);
    merge_vector_fini(&membership->noted);
    merge_vector_fini(&membership->stored);
    merge_asks_fini(&membership->asks);
    merge_state_fini(&membership->state);
}

uint64_t membership_origin(struct membership *membership, uint64_t *clock)
{
    uint64_t origin;

    spinlock_acquire(&membership->lock);
    origin = membership->state.identity.origin;
    *clock = MAX(*clock, membership->state.clock);
    spinlock_release(&membership->lock);
    return origin;
}

static void replace_vector(struct merge_vector *to, const struct merge_vector *from)
{
    merge_vector_fini(to);
    merge_vector_copy(to, from);
}

/* For the store. */
static void publish_locked(struct membership *membership) REQUIRES(membership->lock)
{
    const struct merge_state *state = &membership->state;

    spinlock_assert_held(&membership->lock);
    horizon_raise(membership->horizon, state->frontier, state->frontier_wall);
    horizon_allow_evictions(membership->horizon, merge_state_may_evict(state));
}

void membership_begin(struct membership *membership, const struct merge_account *account)
{
    struct merge_state *state = &membership->state;

    gate_assert_alone();
    spinlock_acquire(&membership->lock);
    merge_state_resume(state, account);
    state->ready = true;
    if (account->wall > membership->wall)
        membership->wall = account->wall;
    journal_set_stamping(membership->journal, state->identity.origin, state->clock);
    origins_set_own(membership->origins, state->identity.origin);
    publish_locked(membership);
    horizon_raise_freed(membership->horizon, state->frontier_wall);
    merge_vector_remove(&state->saved,
                        state->identity.origin); /* no file has this start: data without a node count as it */
    merge_vector_copy(&membership->told_removed, &state->group.removed);
    spinlock_release(&membership->lock);
}

/* ------------------------------------------------------------------------------------------------------ beats -- */

/* Servers of other kinds promise nothing: what they send is given so much time. One that was silent for long counts no
 * more. */
enum { FOREIGN_SLACK_MS = 1000, FOREIGN_SILENT_MS = 60 * 1000 };

static void hold_for_foreign_locked(struct membership *membership, int64_t now_ms) REQUIRES(membership->lock)
{
    struct merge_state *state = &membership->state;
    const uint64_t silent = (uint64_t)(now_ms - FOREIGN_SILENT_MS) << STAMP_COUNTER_BITS;
    bool speaks = false;

    spinlock_assert_held(&membership->lock);
    for (uint32_t i = 0; i < state->vector.count && !speaks; i++)
        speaks = merge_origin_is_foreign(state->vector.items[i].id) && state->vector.items[i].stamp > silent;
    state->frontier_most = speaks ? (uint64_t)(now_ms - FOREIGN_SLACK_MS) << STAMP_COUNTER_BITS : 0;
    state->frontier_wall_most = now_ms - FOREIGN_SLACK_MS;
}

void membership_wait_for_first(struct membership *membership, bool waits)
{
    spinlock_acquire(&membership->lock);
    membership->waits_for_first = waits;
    spinlock_release(&membership->lock);
}

/* The promise is the journal's, made at a position of it. The last stamp before that is what the beat stands behind. */
void membership_make_beat(struct membership *membership, int64_t now_ms, int64_t wall)
{
    struct merge_state *state = &membership->state;
    struct node_beat *beat = mem_alloc_zero(sizeof(*beat)), *before;
    struct merge_word *own;
    uint64_t promised, last;

    atomic_init(&beat->references, 1);
    spinlock_acquire(&membership->lock);
    assert(wall >= membership->wall);
    membership->wall = wall;
    promised = journal_promise_stamp(membership->journal, now_ms, &beat->position, &last);
    merge_state_promise(state, promised);
    if (last != 0)
        merge_vector_raise(&state->deeds, state->identity.origin, last);
    own = merge_state_word(state, wall);
    hold_for_foreign_locked(membership, now_ms);
    if (LIKELY(!membership->waits_for_first))
        merge_state_advance(state, own);
    publish_locked(membership);
    merge_beat_make(&beat->beat, state, own);
    merge_word_release(own);
    before = membership->beat;
    membership->beat = beat;
    membership->beats++;
    release_beat_locked(membership, before);
    spinlock_release(&membership->lock);
}

struct node_beat *membership_beat(struct membership *membership)
{
    struct node_beat *beat;

    spinlock_acquire(&membership->lock);
    beat = membership->beat;
    if (beat != NULL)
        atomic_fetch_add(&beat->references, 1);
    spinlock_release(&membership->lock);
    return beat;
}

void membership_release_beat(struct membership *membership, struct node_beat *beat)
{
    spinlock_acquire(&membership->lock);
    release_beat_locked(membership, beat);
    spinlock_release(&membership->lock);
}

/* ------------------------------------------------------------------------------------------------------ heard -- */

static struct membership_heard *heard_of_locked(struct membership *membership, uint64_t name, uint64_t now_ms)
    REQUIRES(membership->lock)
{
    spinlock_assert_held(&membership->lock);
    for (uint32_t i = 0; i < membership->heard.count; i++) {
        if (membership->heard.items[i].name == name)
            return &membership->heard.items[i];
    }
    *ARRAY_PUSH(&membership->heard) = (struct membership_heard){.name = name, .at_ms = now_ms};
    return &membership->heard.items[membership->heard.count - 1];
}

bool membership_hear(struct membership *membership, const struct merge_beat *beat, uint64_t now_ms, int64_t wall_ms)
{
    struct merge_state *state = &membership->state;
    bool is_right;

    spinlock_acquire(&membership->lock);
    is_right = merge_state_hear(state, beat);
    for (uint32_t i = 0; is_right && i < beat->words.count; i++) {
        const struct merge_word *word = beat->words.items[i];
        struct membership_heard *heard;

        if (merge_group_word(&state->group, word->name) != word)
            continue; /* no news */
        heard = heard_of_locked(membership, word->name, now_ms);
        heard->at_ms = now_ms;
        heard->is_heard = true;
        heard->skew_ms = word->wall - wall_ms; /* stamps follow the clock that is ahead, wherever that is */
    }
    if (is_right && stamp_is_possible(state->clock))
        journal_hear_stamp(membership->journal, state->clock);
    spinlock_release(&membership->lock);
    return is_right;
}

uint64_t membership_give_up(struct membership *membership, uint64_t now_ms, uint64_t timeout_ms)
{
    struct merge_state *state = &membership->state;
    uint64_t silent = 0;

    spinlock_acquire(&membership->lock);
    for (uint32_t i = 0; timeout_ms != 0 && i < state->group.members.count && silent == 0; i++) {
        const uint64_t name = state->group.members.items[i].name;

        if (name != state->identity.name && !merge_vector_has(&state->group.given_up, name) &&
            now_ms - heard_of_locked(membership, name, now_ms)->at_ms >= timeout_ms)
            silent = name;
    }
    if (silent != 0) {
        merge_state_give_up(state, silent);
        heard_of_locked(membership, silent, now_ms)->was_given_up = true;
    }
    spinlock_release(&membership->lock);
    return silent;
}

uint64_t membership_came_back(struct membership *membership)
{
    uint64_t name = 0;

    spinlock_acquire(&membership->lock);
    for (uint32_t i = 0; i < membership->heard.count && name == 0; i++) {
        struct membership_heard *heard = &membership->heard.items[i];

        if (!heard->was_given_up || merge_vector_has(&membership->state.group.given_up, heard->name))
            continue;
        heard->was_given_up = false;
        name = heard->name;
    }
    spinlock_release(&membership->lock);
    return name;
}

uint64_t membership_removed(struct membership *membership)
{
    const struct merge_vector *removed = &membership->state.group.removed;
    uint64_t name = 0;

    spinlock_acquire(&membership->lock);
    for (uint32_t i = 0; i < removed->count && name == 0; i++) {
        if (merge_vector_raise(&membership->told_removed, removed->items[i].id, 1))
            name = removed->items[i].id;
    }
    spinlock_release(&membership->lock);
    return name;
}

bool membership_ended(struct membership *membership, struct merge_member *member)
{
    const struct merge_group *group = &membership->state.group;
    bool is_found = false;

    spinlock_acquire(&membership->lock);
    for (uint32_t i = 0; i < group->members.count && !is_found; i++) {
        *member = group->members.items[i];
        is_found = merge_vector_has(&group->closed, member->origin) &&
                   merge_vector_raise(&membership->told_ended, member->origin, 1);
    }
    spinlock_release(&membership->lock);
    return is_found;
}

void membership_end_origins(struct membership *membership)
{
    struct merge_state *state = &membership->state;

    spinlock_acquire(&membership->lock);
    for (uint32_t i = 0; i < state->group.closed.count; i++) {
        const uint64_t origin = state->group.closed.items[i].id;
        const uint64_t last = merge_vector_get(&state->vector, origin);

        if (last != 0 && last <= state->frontier && origin != state->identity.origin &&
            merge_group_is_over(&state->group, &state->vector, origin))
            origins_end(membership->origins, origin, last);
    }
    spinlock_release(&membership->lock);
}

/* ------------------------------------------------------------------------------------------------------ links -- */

static void copy_hello_locked(const struct membership *membership, struct notice_hello *hello)
    REQUIRES(membership->lock)
{
    const struct merge_state *state = &membership->state;
    struct merge_hello *said = &hello->hello;

    spinlock_assert_held(&membership->lock);
    *said = merge_state_hello(state);
    merge_members_copy(&said->members, &state->group.members);
    merge_vector_copy(&said->vector, &state->vector);
    merge_vector_copy(&said->deeds, &state->deeds);
    merge_vector_copy(&said->cut, &state->cut);
    merge_vector_copy(&said->closed, &state->group.closed);
    merge_vector_copy(&said->removed, &state->group.removed);
    merge_vector_copy(&hello->former, &state->identity.former);
}

/* The vector learns of our own operations with each beat. Whoever offers us its state has to know of those since, too:
 * a state without them is refused if the history has lost them meanwhile. */
static void raise_own(struct merge_hello *said, uint64_t last)
{
    if (last == 0)
        return;
    merge_vector_raise(&said->vector, said->origin, last);
    merge_vector_raise(&said->deeds, said->origin, last);
    said->clock = MAX(said->clock, last);
}

void membership_hello(struct membership *membership, struct notice_hello *hello)
{
    *hello = (struct notice_hello){.version_least = FRAME_VERSION_LEAST, .version_most = FRAME_VERSION_MOST};
    spinlock_acquire(&membership->lock);
    copy_hello_locked(membership, hello);
    raise_own(&hello->hello, journal_last_stamp(membership->journal));
    spinlock_release(&membership->lock);
    hello->name = uuid_of_id(hello->hello.name);
    hello->origin = uuid_of_id(hello->hello.origin);
}

/* What ends with its process is its connections, before anything of its next start is heard. One that is slow, or cut
 * off without a word, is not taken for dead: a copy would have its name. */
static bool is_alive_locked(struct membership *membership, const struct merge_member *member, uint64_t now_ms)
    REQUIRES(membership->lock)
{
    const struct membership_heard *heard = heard_of_locked(membership, member->name, now_ms);
    uint64_t limit_ms = heard->is_heard ? HEARD_NOW_MS : 0;

    spinlock_assert_held(&membership->lock);
    for (uint32_t i = 0; i < membership->links.count; i++) {
        if (membership->links.items[i].origin == member->origin)
            limit_ms = HEARD_BY_LINK_MS;
    }
    return now_ms - heard->at_ms < limit_ms; /* its hello counts, too */
}

static void note_copy_locked(struct membership *membership, const struct merge_hello *said) REQUIRES(membership->lock)
{
    spinlock_assert_held(&membership->lock);
    if (merge_vector_has(&membership->copies, said->origin))
        return;
    if (membership->copies.count == COPIES_MOST)
        merge_vector_fini(&membership->copies);
    merge_vector_set(&membership->copies, said->origin, MAX(said->clock, 1));
}

/* A start begins above all stamps of the start before. Who was refused, or goes on from such a start, is no later start
 * of this member if that has gone on behind the refused one's clock, and so was alive: also when it is silent now. One
 * that was refused because the start before it had just been heard, and belongs to the group since, is none of them. */
static bool was_copy_locked(const struct membership *membership, const struct merge_member *known,
                            const struct notice_hello *hello) REQUIRES(membership->lock)
{
    const uint64_t last = merge_vector_get(&membership->state.vector, known->origin);

    spinlock_assert_held(&membership->lock);
    for (uint32_t i = 0; i < membership->copies.count; i++) {
        const struct merge_vector_item copy = membership->copies.items[i];

        if (copy.id == known->origin || merge_vector_has(&membership->state.group.closed, copy.id))
            continue;
        if ((copy.id == hello->hello.origin || merge_vector_has(&hello->former, copy.id)) && copy.stamp < last)
            return true;
    }
    return false;
}

/* A node that has our name. */
static enum node_verdict judge_namesake(const struct merge_identity *own, const struct merge_hello *said)
{
    return said->origin == own->origin ? NODE_ITSELF : NODE_COPY;
}

static enum node_verdict verdict_locked(struct membership *membership, const struct notice_hello *hello,
                                        uint64_t now_ms) REQUIRES(membership->lock)
{
    const struct merge_state *state = &membership->state;
    const struct merge_hello *said = &hello->hello;
    const struct merge_member member = {said->name, said->origin, said->incarnation};
    const struct merge_member *known = merge_members_find(&state->group.members, said->name);

    spinlock_assert_held(&membership->lock);
    if (notice_choose_version(hello) == 0)
        return NODE_UNKNOWN_VERSION;
    if (said->name == state->identity.name)
        return judge_namesake(&state->identity, said);
    if (merge_vector_has(&state->group.removed, said->name) || merge_vector_has(&said->removed, state->identity.name))
        return NODE_REMOVED;
    if (merge_vector_has(&state->group.closed, said->origin))
        return NODE_OLD;
    if (known == NULL)
        return NODE_WELCOME;
    switch (identity_judge(known, is_alive_locked(membership, known, now_ms), &member, &hello->former)) {
    case IDENTITY_OLD:
        return NODE_OLD;
    case IDENTITY_COPY:
        note_copy_locked(membership, said);
        return NODE_COPY;
    case IDENTITY_LATER:
        return was_copy_locked(membership, known, hello) ? NODE_COPY : NODE_WELCOME;
    default:
        return NODE_WELCOME;
    }
}

static void explain(enum node_verdict verdict, const struct notice_hello *hello, char error[NODE_ERROR_BYTES])
{
    static const char *const reasons[] = {
        [NODE_ITSELF] = "it is this node itself",
        [NODE_COPY] = "another node says the same name: one of them has a copy of the other's identity file",
        [NODE_OLD] = "this start of it has ended, or its identity file is an old one",
        [NODE_REMOVED] = "one of the two was removed from the group (KEYDB.ACTIVE FORGET): without its identity file "
                         "it comes back as a new node, with its data",
        [NODE_UNKNOWN_VERSION] = "both know no version of frames in common",
    };
    char name[UUID_TEXT_BYTES + 1], origin[UUID_TEXT_BYTES + 1];

    uuid_format(&hello->name, name);
    uuid_format(&hello->origin, origin);
    (void)snprintf(error, NODE_ERROR_BYTES, "node %s, origin %s, start %" PRIu32 ": %s", name, origin,
                   hello->hello.incarnation, reasons[verdict]);
}

enum node_verdict membership_look_at(struct membership *membership, const struct notice_hello *hello, uint64_t now_ms,
                                     char error[NODE_ERROR_BYTES])
{
    enum node_verdict verdict;

    spinlock_acquire(&membership->lock);
    verdict = verdict_locked(membership, hello, now_ms);
    spinlock_release(&membership->lock);
    if (verdict != NODE_WELCOME)
        explain(verdict, hello, error);
    return verdict;
}

enum node_verdict membership_greet(struct membership *membership, const struct notice_hello *hello, uint64_t now_ms,
                                   char error[NODE_ERROR_BYTES])
{
    struct merge_state *state = &membership->state;
    const struct merge_hello *said = &hello->hello;
    enum node_verdict verdict;

    spinlock_acquire(&membership->lock);
    verdict = verdict_locked(membership, hello, now_ms);
    if (verdict == NODE_WELCOME) {
        merge_state_greet(state, said);
        merge_vector_raise_all(&state->group.closed, &hello->former);
        if (said->ready)
            merge_group_learn(&state->group,
                              &(struct merge_members){.items = &(struct merge_member){said->name, said->origin,
                                                                                      said->incarnation},
                                                      .count = 1},
                              &(struct merge_vector){0}, NULL);
        (void)heard_of_locked(membership, said->name, now_ms);
        if (stamp_is_possible(state->clock))
            journal_hear_stamp(membership->journal, state->clock);
    }
    spinlock_release(&membership->lock);
    if (verdict != NODE_WELCOME)
        explain(verdict, hello, error);
    return verdict;
}

enum merge_offer membership_offer(struct membership *membership, const struct merge_hello *hello, uint64_t now_ms)
{
    const struct merge_state *state = &membership->state;
    enum merge_offer offer;

    spinlock_acquire(&membership->lock);
    offer = merge_state_offer(state, hello, true, merge_waits_look(&membership->waits, state, hello, now_ms));
    merge_waits_note(&membership->waits, state, hello, offer, now_ms);
    spinlock_release(&membership->lock);
    return offer;
}

void membership_wait_anew(struct membership *membership)
{
    spinlock_acquire(&membership->lock);
    merge_waits_fini(&membership->waits);
    spinlock_release(&membership->lock);
}

bool membership_sponsor(struct membership *membership, const struct merge_hello *hello)
{
    const struct merge_member *stored;
    bool is_stored;

    spinlock_acquire(&membership->lock);
    merge_members_learn(&membership->state.group.members,
                        (struct merge_member){hello->name, hello->origin, hello->incarnation});
    stored = merge_members_find(&membership->state.identity.members, hello->name);
    is_stored = stored != NULL && stored->incarnation >= hello->incarnation;
    spinlock_release(&membership->lock);
    return is_stored;
}

/* ---------------------------------------------------------------------------------------------------- entries -- */

/* Own entries come back by other nodes; the vector has only those that were promised. */
enum merge_acceptance membership_judge(struct membership *membership, uint64_t origin, uint64_t prev, uint64_t stamp)
{
    enum merge_acceptance acceptance = MERGE_OLD;

    spinlock_acquire(&membership->lock);
    if (origin != membership->state.identity.origin)
        acceptance = merge_state_judge(&membership->state, origin, prev, stamp);
    spinlock_release(&membership->lock);
    return acceptance;
}

bool membership_is_below_promise(struct membership *membership, uint64_t origin, uint64_t stamp)
{
    const struct merge_state *state = &membership->state;
    bool is_below;

    spinlock_acquire(&membership->lock);
    is_below = origin != state->identity.origin && !merge_origin_is_foreign(origin) &&
               stamp > merge_vector_get(&state->deeds, origin) && stamp <= merge_vector_get(&state->vector, origin);
    spinlock_release(&membership->lock);
    return is_below;
}

void membership_count(struct membership *membership, uint64_t origin, uint64_t stamp)
{
    spinlock_acquire(&membership->lock);
    assert(origin != membership->state.identity.origin);
    assert(stamp > merge_vector_get(&membership->state.vector, origin));
    merge_state_count(&membership->state, origin, stamp);
    spinlock_release(&membership->lock);
}

bool membership_is_closed(struct membership *membership, uint64_t origin)
{
    bool is_closed;

    spinlock_acquire(&membership->lock);
    is_closed = merge_vector_has(&membership->state.group.closed, origin);
    spinlock_release(&membership->lock);
    return is_closed;
}

uint64_t membership_have(struct membership *membership, uint64_t origin)
{
    uint64_t here;

    spinlock_acquire(&membership->lock);
    here = merge_vector_get(&membership->state.vector, origin);
    spinlock_release(&membership->lock);
    return here;
}

bool membership_knows(struct membership *membership, uint64_t origin)
{
    const struct merge_group *group = &membership->state.group;
    bool is_known;

    spinlock_acquire(&membership->lock);
    is_known = merge_vector_has(&group->closed, origin);
    for (uint32_t i = 0; i < group->members.count && !is_known; i++)
        is_known = group->members.items[i].origin == origin;
    spinlock_release(&membership->lock);
    return is_known;
}

/* ------------------------------------------------------------------------------------------------------- asks -- */

static struct membership_link *link_of_locked(const struct membership *membership, uint32_t link)
    REQUIRES(membership->lock)
{
    spinlock_assert_held(&membership->lock);
    for (uint32_t i = 0; i < membership->links.count; i++) {
        if (membership->links.items[i].link == link)
            return &membership->links.items[i];
    }
    return NULL;
}

void membership_link_up(struct membership *membership, uint32_t link, uint64_t origin)
{
    spinlock_acquire(&membership->lock);
    assert(link != MERGE_LINK_NONE && link_of_locked(membership, link) == NULL);
    *ARRAY_PUSH(&membership->links) = (struct membership_link){.link = link, .origin = origin};
    spinlock_release(&membership->lock);
}

void membership_link_down(struct membership *membership, uint32_t link)
{
    struct membership_link *gone;

    spinlock_acquire(&membership->lock);
    gone = link_of_locked(membership, link);
    if (gone != NULL) {
        merge_vector_fini(&gone->asked_closed);
        *gone = membership->links.items[--membership->links.count];
        merge_asks_down(&membership->asks, link);
    }
    spinlock_release(&membership->lock);
}

static void order_locked(const struct membership *membership, uint32_t link, bool wants, uint64_t origin,
                         struct node_orders *orders) REQUIRES(membership->lock)
{
    spinlock_assert_held(&membership->lock);
    *ARRAY_PUSH(orders) = (struct node_order){
        .link = link,
        .wants = wants,
        .origin = origin,
        .have = wants ? merge_vector_get(&membership->state.vector, origin) : 0,
    };
}

/* What an origin that has ended left is asked of everyone who has more of it, as each may have another part. Not of
 * the others: ended origins are many where nodes were started often, and whoever gets more of one offers that. */
static void offered_locked(struct membership *membership, struct membership_link *link, struct merge_vector_item offer,
                           struct node_orders *orders) REQUIRES(membership->lock)
{
    const struct merge_state *state = &membership->state;
    uint32_t other = MERGE_LINK_NONE;

    spinlock_assert_held(&membership->lock);
    if (offer.id == state->identity.origin || merge_asks_has(&membership->asks, link->link, offer.id))
        return;
    if (merge_vector_has(&state->group.closed, offer.id)) {
        if (offer.stamp > merge_vector_get(&state->vector, offer.id) &&
            merge_vector_raise(&link->asked_closed, offer.id, 1))
            order_locked(membership, link->link, true, offer.id, orders);
        return;
    }
    switch (merge_asks_offered(&membership->asks, link->link, offer, offer.id == link->origin,
                               merge_vector_get(&state->vector, offer.id), &other)) {
    case MERGE_ASK_WANT:
        order_locked(membership, link->link, true, offer.id, orders);
        break;
    case MERGE_ASK_STOP:
        order_locked(membership, other, false, offer.id, orders);
        break;
    case MERGE_ASK_NOTHING:
        break;
    }
}

void membership_offered(struct membership *membership, uint32_t link, const struct merge_vector *offers,
                        struct node_orders *orders)
{
    struct membership_link *up;

    spinlock_acquire(&membership->lock);
    up = link_of_locked(membership, link);
    for (uint32_t i = 0; up != NULL && i < offers->count; i++)
        offered_locked(membership, up, offers->items[i], orders);
    spinlock_release(&membership->lock);
}

void membership_stopped(struct membership *membership, uint32_t link, const struct merge_vector *origins,
                        struct node_orders *orders)
{
    spinlock_acquire(&membership->lock);
    for (uint32_t i = 0; i < origins->count; i++) {
        const uint64_t origin = origins->items[i].id;
        const uint32_t next = merge_asks_stopped(&membership->asks, link, origin);

        if (next != MERGE_LINK_NONE)
            order_locked(membership, next, true, origin, orders);
    }
    spinlock_release(&membership->lock);
}

/* -------------------------------------------------------------------------------------------------- questions -- */

bool membership_may_repair(struct membership *membership)
{
    bool may;

    spinlock_acquire(&membership->lock);
    may = merge_state_may_repair(&membership->state);
    spinlock_release(&membership->lock);
    return may;
}

uint32_t membership_forget_by_force(struct membership *membership, uint64_t name)
{
    uint32_t ignorant;

    spinlock_acquire(&membership->lock);
    ignorant = merge_state_forget_by_force(&membership->state, name);
    spinlock_release(&membership->lock);
    return ignorant;
}

static bool is_there_locked(struct membership *membership, const struct merge_member *member, uint64_t now_ms)
    REQUIRES(membership->lock)
{
    spinlock_assert_held(&membership->lock);
    if (member->name == membership->state.identity.name)
        return true;
    if (merge_vector_has(&membership->state.group.given_up, member->name))
        return false;
    for (uint32_t i = 0; i < membership->links.count; i++) {
        if (membership->links.items[i].origin == member->origin)
            return true;
    }
    return now_ms - heard_of_locked(membership, member->name, now_ms)->at_ms < HEARD_LATELY_MS;
}

uint64_t membership_heard_up_to(struct membership *membership, uint64_t now_ms)
{
    const struct merge_state *state = &membership->state;
    const struct merge_members *members = &state->group.members;
    uint64_t least = UINT64_MAX;

    spinlock_acquire(&membership->lock);
    for (uint32_t i = 0; i < members->count; i++) {
        if (is_there_locked(membership, &members->items[i], now_ms))
            least = MIN(least, merge_vector_get(&state->vector, members->items[i].origin));
    }
    spinlock_release(&membership->lock);
    return least;
}

bool membership_forget(struct membership *membership, uint64_t name)
{
    bool is_done;

    spinlock_acquire(&membership->lock);
    is_done = merge_state_forget(&membership->state, name);
    spinlock_release(&membership->lock);
    return is_done;
}

/* What this start has done since its last beat is in the data, too. */
void membership_account(struct membership *membership, struct merge_account *account)
{
    struct merge_state *state = &membership->state;
    uint64_t position, last, promised;

    gate_assert_alone();
    spinlock_acquire(&membership->lock);
    promised = journal_promise_stamp(membership->journal, membership->wall, &position, &last);
    merge_state_promise(state, promised);
    if (last != 0)
        merge_vector_raise(&state->deeds, state->identity.origin, last);
    merge_state_account(state, account);
    account->wall = membership->wall;
    spinlock_release(&membership->lock);
}

/* Nothing of others is here yet. */
static bool is_new_locked(const struct membership *membership) REQUIRES(membership->lock)
{
    const struct merge_state *state = &membership->state;

    spinlock_assert_held(&membership->lock);
    for (uint32_t i = 0; i < state->deeds.count; i++) {
        const uint64_t origin = state->deeds.items[i].id;

        if (origin != state->identity.origin && !merge_vector_has(&state->identity.former, origin))
            return false;
    }
    return true;
}

bool membership_adopt(struct membership *membership, const struct merge_account *account, int64_t *least_wall)
{
    struct merge_state *state = &membership->state;
    bool is_adopted;

    gate_assert_alone();
    spinlock_acquire(&membership->lock);
    *least_wall = is_new_locked(membership) ? account->wall : membership->wall;
    is_adopted = merge_state_adopt(state, account);
    if (is_adopted) {
        if (stamp_is_possible(state->clock))
            journal_hear_stamp(membership->journal, state->clock);
        publish_locked(membership);
        horizon_raise_freed(membership->horizon, account->frontier_wall);
    }
    spinlock_release(&membership->lock);
    return is_adopted;
}

void membership_set_cut(struct membership *membership, struct merge_vector *cut)
{
    struct merge_vector before;

    spinlock_acquire(&membership->lock);
    before = membership->state.cut;
    membership->state.cut = *cut;
    spinlock_release(&membership->lock);
    *cut = (struct merge_vector){0};
    merge_vector_fini(&before);
}

void membership_held(struct membership *membership, struct merge_vector *held)
{
    spinlock_acquire(&membership->lock);
    merge_group_held(&membership->state.group, &membership->state.vector, held);
    spinlock_release(&membership->lock);
}

void membership_saved(struct membership *membership, const struct merge_vector *saved)
{
    spinlock_acquire(&membership->lock);
    replace_vector(&membership->state.saved, saved);
    membership->saved_is_in_file = false;
    spinlock_release(&membership->lock);
}

void membership_saved_in_file(struct membership *membership)
{
    spinlock_acquire(&membership->lock);
    if (!membership->saved_is_in_file)
        replace_vector(&membership->state.saved, &membership->stored);
    membership->saved_is_in_file = true;
    spinlock_release(&membership->lock);
}

void membership_note_file(struct membership *membership, const struct merge_vector *vector)
{
    spinlock_acquire(&membership->lock);
    replace_vector(&membership->noted, vector);
    spinlock_release(&membership->lock);
}

void membership_file_was_loaded(struct membership *membership)
{
    spinlock_acquire(&membership->lock);
    replace_vector(&membership->stored, &membership->state.saved);
    spinlock_release(&membership->lock);
}

void membership_file_is_stored(struct membership *membership)
{
    spinlock_acquire(&membership->lock);
    replace_vector(&membership->stored, &membership->noted);
    membership->saved_is_in_file = false;
    spinlock_release(&membership->lock);
}

static void member_facts_locked(struct membership *membership, const struct merge_member *member, uint64_t now_ms,
                                struct node_member *facts) REQUIRES(membership->lock)
{
    const struct merge_state *state = &membership->state;
    const struct merge_word *word = merge_group_word(&state->group, member->name);

    spinlock_assert_held(&membership->lock);
    *facts = (struct node_member){.name = member->name,
                                  .origin = member->origin,
                                  .incarnation = member->incarnation,
                                  .is_self = member->name == state->identity.name,
                                  .is_given_up = merge_vector_has(&state->group.given_up, member->name),
                                  .silent_ms = -1,
                                  .here = merge_vector_get(&state->vector, member->origin)};
    if (facts->is_self)
        facts->silent_ms = 0;
    if (facts->is_self || word == NULL)
        return;
    facts->there = merge_vector_get(&word->vector, state->identity.origin);
    facts->frontier = word->frontier;
    facts->wall = word->wall;
    for (uint32_t i = 0; i < membership->heard.count; i++) {
        const struct membership_heard *heard = &membership->heard.items[i];

        if (heard->name != member->name || !heard->is_heard)
            continue;
        facts->silent_ms = (int64_t)(now_ms - heard->at_ms);
        facts->skew_ms = heard->skew_ms;
    }
}

void membership_facts(struct membership *membership, uint64_t now_ms, struct node_facts *facts)
{
    const struct merge_state *state = &membership->state;

    *facts = (struct node_facts){0};
    spinlock_acquire(&membership->lock);
    facts->name = uuid_of_id(state->identity.name);
    facts->origin = uuid_of_id(state->identity.origin);
    facts->incarnation = state->identity.incarnation;
    facts->stamp_bound = state->identity.promised;
    facts->wall_bound = state->identity.wall;
    facts->clock = state->clock;
    facts->frontier = state->frontier;
    facts->wall = membership->wall;
    facts->wall_frontier = state->frontier_wall;
    facts->closed_origins = state->group.closed.count;
    for (uint32_t i = 0; i < state->vector.count; i++)
        facts->open_origins += !merge_vector_has(&state->group.closed, state->vector.items[i].id);
    facts->beats = membership->beats;
    facts->member_count = state->group.members.count;
    facts->members = mem_alloc_zero(MAX(facts->member_count, 1U) * sizeof(*facts->members));
    for (uint32_t i = 0; i < facts->member_count; i++)
        member_facts_locked(membership, &state->group.members.items[i], now_ms, &facts->members[i]);
    spinlock_release(&membership->lock);
}

/* ----------------------------------------------------------------------------------------------------- bounds -- */

/* Does the disk have whom this node knows? */
static bool group_is_stored_locked(const struct membership *membership) REQUIRES(membership->lock)
{
    const struct merge_group *group = &membership->state.group;
    const struct merge_identity *identity = &membership->state.identity;

    spinlock_assert_held(&membership->lock);
    if (group->members.count != identity->members.count || group->removed.count != identity->removed.count)
        return false;
    for (uint32_t i = 0; i < group->members.count; i++) {
        if (group->members.items[i].name != identity->members.items[i].name ||
            group->members.items[i].origin != identity->members.items[i].origin)
            return false;
    }
    return merge_vector_covers(&identity->removed, &group->removed);
}

bool membership_wants_bounds(struct membership *membership, int64_t now_ms, struct merge_identity *copy)
{
    const struct merge_identity *identity = &membership->state.identity;
    bool wants;

    spinlock_acquire(&membership->lock);
    wants = identity_wants_more(identity, membership->state.clock, MAX(now_ms, membership->wall)) ||
            !group_is_stored_locked(membership);
    if (wants) {
        *copy = *identity;
        merge_vector_copy(&copy->former, &identity->former);
        merge_members_copy(&copy->members, &membership->state.group.members);
        merge_vector_copy(&copy->removed, &membership->state.group.removed);
        identity_reserve(copy, MAX(stamp_at(now_ms), membership->state.clock), MAX(now_ms, membership->wall));
    }
    spinlock_release(&membership->lock);
    return wants;
}

void membership_stored_bounds(struct membership *membership, const struct merge_identity *stored)
{
    struct merge_identity *identity = &membership->state.identity;

    spinlock_acquire(&membership->lock);
    identity->promised = stored->promised;
    identity->wall = stored->wall;
    merge_members_fini(&identity->members);
    merge_vector_fini(&identity->removed);
    merge_members_copy(&identity->members, &stored->members);
    merge_vector_copy(&identity->removed, &stored->removed);
    spinlock_release(&membership->lock);
}

int64_t membership_bound_ms(struct membership *membership, int64_t *clock_ms)
{
    const struct merge_identity *identity = &membership->state.identity;
    int64_t bound_ms;

    spinlock_acquire(&membership->lock);
    bound_ms = MIN(stamp_ms(identity->promised), identity->wall);
    *clock_ms = stamp_ms(membership->state.clock);
    spinlock_release(&membership->lock);
    return bound_ms;
}

bool membership_is_short(struct membership *membership, int64_t now_ms, int64_t least_ms)
{
    const struct merge_identity *identity = &membership->state.identity;
    bool is_short;

    spinlock_acquire(&membership->lock);
    is_short = stamp_ms(membership->state.clock) > stamp_ms(identity->promised) - least_ms ||
               MAX(now_ms, membership->wall) > identity->wall - least_ms;
    spinlock_release(&membership->lock);
    return is_short;
}
