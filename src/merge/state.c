#include "merge/state.h"

#include "base/array.h"
#include "base/assert.h"
#include "merge/broken.h"
#include "merge/place.h"

#ifdef MERGE_BREAKABLE
uint64_t merge_breaks; /* global: test switches, see broken.h */
#endif

void merge_account_fini(struct merge_account *account)
{
    merge_vector_fini(&account->vector);
    merge_vector_fini(&account->deeds);
    merge_vector_fini(&account->cut);
    merge_members_fini(&account->members);
    merge_vector_fini(&account->closed);
    merge_vector_fini(&account->removed);
    *account = (struct merge_account){0};
}

void merge_state_init(struct merge_state *state, uint64_t name, uint64_t origin)
{
    assert(origin < MERGE_ORIGIN_FLOOR);
    *state = (struct merge_state){.identity = {.name = name, .origin = origin}, .group = {.self = name}};
    merge_vector_set(&state->vector, origin, 0);
}

static void fini_progress(struct merge_state *state)
{
    merge_vector_fini(&state->vector);
    merge_vector_fini(&state->deeds);
    merge_vector_fini(&state->cut);
}

void merge_state_fini(struct merge_state *state)
{
    fini_progress(state);
    merge_vector_fini(&state->saved);
    merge_group_fini(&state->group);
    merge_vector_fini(&state->identity.former);
    merge_members_fini(&state->identity.members);
    merge_vector_fini(&state->identity.removed);
    *state = (struct merge_state){0};
}

/* --- time --- */

void merge_state_raise_clock(struct merge_state *state, uint64_t stamp)
{
    if (stamp > state->clock && !merge_broken(MERGE_BREAK_CLOCK_NOT_RAISED))
        state->clock = stamp;
}

void merge_state_promise(struct merge_state *state, uint64_t stamp)
{
    assert(stamp >= merge_vector_get(&state->vector, state->identity.origin));
    if (stamp > state->clock)
        state->clock = stamp;
    merge_vector_set(&state->vector, state->identity.origin, stamp);
}

/* --- entries --- */

enum merge_acceptance merge_state_judge(const struct merge_state *state, uint64_t origin, uint64_t prev, uint64_t stamp)
{
    const uint64_t here = merge_vector_get(&state->vector, origin);

    if (stamp <= here)
        return MERGE_OLD;
    return prev > here && !merge_broken(MERGE_BREAK_ACCEPT_ANY) ? MERGE_GAP : MERGE_ACCEPTED;
}

void merge_state_count(struct merge_state *state, uint64_t origin, uint64_t stamp)
{
    merge_state_raise_clock(state, stamp);
    merge_vector_set(&state->vector, origin, stamp);
    merge_vector_set(&state->deeds, origin, stamp);
}

/* --- beats --- */

struct merge_word *merge_state_word(struct merge_state *state, int64_t wall)
{
    struct merge_word *word = mem_alloc_zero(sizeof(*word));

    word->references = 1;
    word->name = state->identity.name;
    word->origin = state->identity.origin;
    word->incarnation = state->identity.incarnation;
    word->sequence = ++state->word_sequence;
    word->wall = wall;
    word->frontier = state->frontier;
    merge_vector_copy(&word->vector, &state->vector);
    merge_vector_copy(&word->saved, &state->saved);
    merge_vector_copy(&word->closed, &state->group.closed);
    merge_members_copy(&word->members, &state->group.members);
    return word;
}

void merge_beat_make(struct merge_beat *beat, const struct merge_state *state, struct merge_word *own)
{
    *beat = (struct merge_beat){.clock = state->clock};
    merge_vector_copy(&beat->vector, &state->vector);
    merge_vector_copy(&beat->deeds, &state->deeds);
    merge_vector_copy(&beat->offers, &state->vector);
    for (uint32_t i = 0; i < state->group.words.count; i++)
        *ARRAY_PUSH(&beat->words) = merge_word_acquire(state->group.words.items[i]);
    *ARRAY_PUSH(&beat->words) = merge_word_acquire(own);
    merge_members_copy(&beat->members, &state->group.members);
    merge_vector_copy(&beat->closed, &state->group.closed);
    merge_vector_copy(&beat->removed, &state->group.removed);
}

void merge_beat_fini(struct merge_beat *beat)
{
    merge_vector_fini(&beat->vector);
    merge_vector_fini(&beat->deeds);
    merge_vector_fini(&beat->offers);
    merge_vector_fini(&beat->closed);
    merge_vector_fini(&beat->removed);
    merge_members_fini(&beat->members);
    for (uint32_t i = 0; i < beat->words.count; i++)
        merge_word_release(beat->words.items[i]);
    mem_free(beat->words.items);
    *beat = (struct merge_beat){0};
}

/* Words travel in the streams of their origins, so only those of origins that go by the link. */
void merge_beat_part(struct merge_beat *part, const struct merge_beat *beat, const struct merge_vector *origins)
{
    const bool all = merge_broken(MERGE_BREAK_WORD_BEFORE_DEEDS);

    *part = (struct merge_beat){.clock = beat->clock,
                                .offers = beat->offers,
                                .members = beat->members,
                                .closed = beat->closed,
                                .removed = beat->removed};
    for (uint32_t i = 0; i < beat->vector.count; i++) {
        const struct merge_vector_item item = beat->vector.items[i];

        if (!merge_vector_has(origins, item.id))
            continue;
        merge_vector_set(&part->vector, item.id, item.stamp);
        merge_vector_set(&part->deeds, item.id, merge_vector_get(&beat->deeds, item.id));
    }
    for (uint32_t i = 0; i < beat->words.count; i++) {
        if (all || merge_vector_has(origins, beat->words.items[i]->origin))
            *ARRAY_PUSH(&part->words) = beat->words.items[i];
    }
}

void merge_beat_part_fini(struct merge_beat *part)
{
    merge_vector_fini(&part->vector);
    merge_vector_fini(&part->deeds);
    mem_free(part->words.items);
    *part = (struct merge_beat){0};
}

bool merge_state_hear(struct merge_state *state, const struct merge_beat *beat)
{
    if (!merge_vector_covers(&state->vector, &beat->deeds) && !merge_broken(MERGE_BREAK_ACCEPT_ANY))
        return false;
    merge_state_raise_clock(state, beat->clock);
    for (uint32_t i = 0; i < beat->vector.count; i++) {
        if (beat->vector.items[i].id != state->identity.origin)
            merge_vector_raise(&state->vector, beat->vector.items[i].id, beat->vector.items[i].stamp);
    }
    merge_group_learn(&state->group, &beat->members, &beat->closed, &beat->removed);
    for (uint32_t i = 0; i < beat->words.count; i++)
        merge_group_hear(&state->group, beat->words.items[i]);
    return true;
}

/* --- the group --- */

void merge_state_advance(struct merge_state *state, const struct merge_word *own)
{
    uint64_t frontier = state->frontier;
    int64_t wall = state->frontier_wall;

    /* Before the first operation there is nothing to be settled. A frontier that rises meanwhile would only make late
     * what the first one has done whom this node meets. */
    if (state->deeds.count == 0)
        return;
    if (!merge_group_frontiers(&state->group, own, &frontier, &wall))
        return;
    if (state->frontier_most != 0) {
        frontier = frontier < state->frontier_most ? frontier : state->frontier_most;
        wall = wall < state->frontier_wall_most ? wall : state->frontier_wall_most;
    }
    if (frontier > state->frontier)
        state->frontier = frontier;
    if (wall > state->frontier_wall)
        state->frontier_wall = wall;
}

bool merge_state_may_repair(const struct merge_state *state)
{
    return state->ready &&
           (merge_group_covers_frontiers(&state->group, &state->vector) || merge_broken(MERGE_BREAK_REPAIR_EARLY));
}

bool merge_state_may_evict(const struct merge_state *state)
{
    return state->frontier >= state->evict_from || merge_broken(MERGE_BREAK_EVICT_EARLY);
}

void merge_state_give_up(struct merge_state *state, uint64_t name)
{
    if (name != state->identity.name && merge_members_find(&state->group.members, name) != NULL)
        merge_vector_set(&state->group.given_up, name, 1);
}

uint32_t merge_state_forget_by_force(struct merge_state *state, uint64_t name)
{
    const uint32_t ignorant = merge_group_ignorant(&state->group, name);
    struct merge_vector removed = {0};

    assert(name != state->identity.name);
    merge_vector_set(&removed, name, 1);
    merge_group_learn(&state->group, &(struct merge_members){0}, &(struct merge_vector){0}, &removed);
    merge_vector_fini(&removed);
    return ignorant;
}

bool merge_state_forget(struct merge_state *state, uint64_t name)
{
    if (!merge_group_may_forget(&state->group, name))
        return false;
    (void)merge_state_forget_by_force(state, name);
    return true;
}

/* --- files, two nodes that meet --- */

void merge_state_account(const struct merge_state *state, struct merge_account *account)
{
    *account = (struct merge_account){.frontier = state->frontier,
                                      .frontier_wall = state->frontier_wall,
                                      .clock = state->clock,
                                      .wall = state->identity.wall};
    merge_vector_copy(&account->vector, &state->vector);
    merge_vector_copy(&account->deeds, &state->deeds);
    merge_vector_copy(&account->cut, &state->cut);
    merge_members_copy(&account->members, &state->group.members);
    merge_vector_copy(&account->closed, &state->group.closed);
    merge_vector_copy(&account->removed, &state->group.removed);
}

static void take_progress(struct merge_state *state, const struct merge_account *account)
{
    fini_progress(state);
    merge_vector_copy(&state->vector, &account->vector);
    merge_vector_copy(&state->deeds, &account->deeds);
    merge_vector_copy(&state->cut, &account->cut);
}

static void learn_self(struct merge_state *state)
{
    const struct merge_identity *identity = &state->identity;

    merge_members_learn(&state->group.members,
                        (struct merge_member){identity->name, identity->origin, identity->incarnation});
}

void merge_state_resume(struct merge_state *state, const struct merge_account *saved)
{
    struct merge_identity *identity = &state->identity;

    take_progress(state, saved);
    merge_group_fini(&state->group);
    state->group.self = identity->name;
    merge_group_learn(&state->group, &saved->members, &saved->closed, &saved->removed);
    merge_group_learn(&state->group, &identity->members, &identity->former, &identity->removed);
    merge_vector_fini(&state->saved);
    merge_vector_copy(&state->saved, &saved->vector);
    state->frontier = saved->frontier;
    state->frontier_wall = saved->frontier_wall;
    merge_state_raise_clock(state, saved->clock);
    state->evict_from = state->clock;
    state->word_sequence = 0;
    merge_vector_raise(&state->vector, identity->origin, 0);
    learn_self(state);
}

struct merge_hello merge_state_hello(const struct merge_state *state)
{
    return (struct merge_hello){.name = state->identity.name,
                                .origin = state->identity.origin,
                                .clock = state->clock,
                                .incarnation = state->identity.incarnation,
                                .ready = state->ready,
                                .members = state->group.members,
                                .vector = state->vector,
                                .deeds = state->deeds,
                                .cut = state->cut,
                                .closed = state->group.closed,
                                .removed = state->group.removed};
}

static uint32_t open_origins(const struct merge_vector *deeds, const struct merge_vector *closed)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < deeds->count; i++)
        count += !merge_vector_has(closed, deeds->items[i].id);
    return count;
}

/* Of two that both cannot give, the one that knows more gives, and the newcomer takes: first by nodes that have written
 * and still run, then by all starts of such; by names if these are equal. Both have greeted, so they decide alike. */
static bool knows_more(const struct merge_state *state, const struct merge_hello *hello)
{
    const uint32_t own = open_origins(&state->deeds, &state->group.closed);
    const uint32_t others = open_origins(&hello->deeds, &state->group.closed);

    if (own != others)
        return own > others;
    if (state->deeds.count != hello->deeds.count)
        return state->deeds.count > hello->deeds.count;
    return state->identity.name > hello->name;
}

enum merge_offer merge_state_offer(const struct merge_state *state, const struct merge_hello *hello, bool may_force,
                                   enum merge_waited waited)
{
    if (!state->ready || merge_vector_has(&hello->closed, state->identity.origin) ||
        merge_vector_has(&hello->removed, state->identity.name) || merge_vector_has(&state->group.removed, hello->name))
        return MERGE_OFFER_NOTHING;
    if (!hello->ready)
        return MERGE_OFFER_SNAPSHOT;
    if (merge_vector_covers(&hello->vector, &state->cut))
        return MERGE_OFFER_STREAM;
    if (merge_vector_covers(&state->vector, &hello->deeds) || merge_broken(MERGE_BREAK_TAKE_FIRST))
        return MERGE_OFFER_SNAPSHOT;
    /* The other has what is not here. If its history has all of it, it comes by the link in the other direction; where
     * there is none, it may put it on top of a state. If not, neither can give, and one of the two has to take. In a
     * ring of links in one direction what it has comes round, and those on the way may wait for each other. Then those
     * take first who lose nothing by it. */
    if (merge_broken(MERGE_BREAK_WAIT_FOR_EVER))
        waited = MERGE_WAITED_NOT;
    if (merge_vector_covers(&state->vector, &hello->cut))
        return waited != MERGE_WAITED_NOT ? MERGE_OFFER_SNAPSHOT : MERGE_OFFER_WAIT;
    if (may_force && (waited == MERGE_WAITED_LONG_IN_VAIN || knows_more(state, hello)))
        return MERGE_OFFER_FORCED;
    return MERGE_OFFER_WAIT;
}

void merge_state_greet(struct merge_state *state, const struct merge_hello *hello)
{
    if (hello->ready)
        merge_state_raise_clock(state, hello->clock);
    merge_group_learn(&state->group,
                      merge_broken(MERGE_BREAK_HELLO_ALONE) ? &(struct merge_members){0} : &hello->members,
                      &hello->closed, &hello->removed);
}

void merge_state_sponsor(struct merge_state *state, const struct merge_hello *hello)
{
    assert(state->ready && !hello->ready);
    merge_members_learn(&state->group.members, (struct merge_member){hello->name, hello->origin, hello->incarnation});
}

/* What is here must be in that state, or in the history here. */
static bool may_adopt(const struct merge_state *state, const struct merge_account *account)
{
    if (!state->ready)
        return true;
    if (!account->forced && !merge_vector_covers(&account->vector, &state->cut) &&
        !merge_broken(MERGE_BREAK_SNAPSHOT_UNCHECKED))
        return false;
    return !merge_vector_covers(&state->vector, &account->cut); /* else the stream will do */
}

/* What is here counts as well: the caller puts it on top. */
bool merge_state_adopt(struct merge_state *state, const struct merge_account *account)
{
    const bool joins = !state->ready;
    struct merge_state old = *state;

    if (!may_adopt(state, account))
        return false;
    state->ready = true;
    if (!merge_broken(MERGE_BREAK_JOIN_CLOCK)) {
        if (account->clock > state->clock)
            state->clock = account->clock;
        if (joins && account->wall > state->identity.wall)
            state->identity.wall = account->wall;
    }
    if (joins)
        state->evict_from = state->clock;
    state->vector = state->deeds = state->cut = (struct merge_vector){0};
    take_progress(state, account);
    if (account->forced) {
        merge_vector_raise_all(&state->cut, &old.cut);
        merge_vector_raise_all(&state->cut, &account->vector);
    }
    merge_vector_raise_all(&state->vector, &old.vector);
    merge_vector_raise_all(&state->deeds, &old.deeds);
    fini_progress(&old);
    if (account->frontier > state->frontier)
        state->frontier = account->frontier;
    if (account->frontier_wall > state->frontier_wall)
        state->frontier_wall = account->frontier_wall;
    merge_group_learn(&state->group, &account->members, &account->closed, &account->removed);
    learn_self(state);
    return true;
}

void merge_state_validate(const struct merge_state *state)
{
    assert(merge_vector_covers(&state->vector, &state->deeds));
    for (uint32_t i = 0; i < state->vector.count; i++)
        assert(state->vector.items[i].stamp <= state->clock);
}
