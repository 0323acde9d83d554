#include "merge/group.h"

#include "base/array.h"
#include "base/assert.h"
#include "merge/broken.h"
#include "merge/place.h"

#include <string.h>

void merge_members_fini(struct merge_members *members)
{
    mem_free(members->items);
    *members = (struct merge_members){0};
}

void merge_members_copy(struct merge_members *to, const struct merge_members *from)
{
    *to = (struct merge_members){0};
    if (from->count == 0)
        return;
    to->items = mem_alloc(from->count * sizeof(*to->items));
    memcpy(to->items, from->items, from->count * sizeof(*to->items));
    to->count = to->capacity = from->count;
}

struct merge_member *merge_members_find(const struct merge_members *members, uint64_t name)
{
    for (uint32_t i = 0; i < members->count; i++) {
        if (members->items[i].name == name)
            return &members->items[i];
    }
    return NULL;
}

bool merge_members_learn(struct merge_members *members, struct merge_member member)
{
    struct merge_member *known = merge_members_find(members, member.name);
    uint32_t at = 0;

    if (known != NULL) {
        if (known->incarnation >= member.incarnation)
            return false;
        *known = member;
        return true;
    }
    while (at < members->count && members->items[at].name < member.name)
        at++;
    ARRAY_RESERVE(members, 1);
    memmove(&members->items[at + 1], &members->items[at], (members->count - at) * sizeof(*members->items));
    members->items[at] = member;
    members->count++;
    return true;
}

void merge_members_remove(struct merge_members *members, uint64_t name)
{
    struct merge_member *member = merge_members_find(members, name);

    if (member == NULL)
        return;
    members->count--;
    memmove(member, member + 1, (size_t)(&members->items[members->count] - member) * sizeof(*member));
}

struct merge_word *merge_word_acquire(struct merge_word *word)
{
    word->references++;
    return word;
}

void merge_word_release(struct merge_word *word)
{
    if (word == NULL)
        return;
    assert(word->references != 0);
    if (--word->references != 0)
        return;
    merge_vector_fini(&word->vector);
    merge_vector_fini(&word->saved);
    merge_vector_fini(&word->closed);
    merge_members_fini(&word->members);
    mem_free(word);
}

void merge_group_fini(struct merge_group *group)
{
    merge_members_fini(&group->members);
    merge_vector_fini(&group->closed);
    merge_vector_fini(&group->removed);
    merge_vector_fini(&group->given_up);
    for (uint32_t i = 0; i < group->words.count; i++)
        merge_word_release(group->words.items[i]);
    mem_free(group->words.items);
    *group = (struct merge_group){0};
}

struct merge_word *merge_group_word(const struct merge_group *group, uint64_t name)
{
    for (uint32_t i = 0; i < group->words.count; i++) {
        if (group->words.items[i]->name == name)
            return group->words.items[i];
    }
    return NULL;
}

static void forget_word(struct merge_group *group, uint64_t name)
{
    for (uint32_t i = 0; i < group->words.count; i++) {
        if (group->words.items[i]->name == name) {
            merge_word_release(group->words.items[i]);
            group->words.items[i] = group->words.items[--group->words.count];
            return;
        }
    }
}

/* Whatever start of a removed member is heard of is closed. */
static void learn_member(struct merge_group *group, const struct merge_member *member)
{
    if (merge_vector_has(&group->removed, member->name))
        merge_vector_raise(&group->closed, member->origin, 1);
    else
        merge_members_learn(&group->members, *member);
}

static void remove_member(struct merge_group *group, uint64_t name)
{
    const struct merge_member *member = merge_members_find(&group->members, name);

    if (member != NULL)
        merge_vector_raise(&group->closed, member->origin, 1);
    merge_members_remove(&group->members, name);
    merge_vector_remove(&group->given_up, name);
    forget_word(group, name);
}

void merge_group_learn(struct merge_group *group, const struct merge_members *members,
                       const struct merge_vector *closed, const struct merge_vector *removed)
{
    for (uint32_t i = 0; removed != NULL && i < removed->count; i++) {
        if (merge_vector_raise(&group->removed, removed->items[i].id, 1))
            remove_member(group, removed->items[i].id);
    }
    for (uint32_t i = 0; i < members->count; i++)
        learn_member(group, &members->items[i]);
    merge_vector_raise_all(&group->closed, closed);
}

void merge_group_hear(struct merge_group *group, struct merge_word *word)
{
    struct merge_word *known = merge_group_word(group, word->name);

    merge_group_learn(group, &word->members, &word->closed, NULL);
    if (word->name == group->self || merge_members_find(&group->members, word->name) == NULL)
        return;
    if (known != NULL && (known->incarnation > word->incarnation ||
                          (known->incarnation == word->incarnation && known->sequence >= word->sequence)))
        return;
    forget_word(group, word->name);
    *ARRAY_PUSH(&group->words) = merge_word_acquire(word);
    merge_vector_remove(&group->given_up, word->name);
}

/* The word of a member that counts, or NULL. */
static const struct merge_word *word_of(const struct merge_group *group, const struct merge_member *member)
{
    const struct merge_word *word = merge_group_word(group, member->name);

    return word != NULL && word->origin == member->origin ? word : NULL;
}

static bool counts(const struct merge_group *group, const struct merge_member *member)
{
    return !merge_vector_has(&group->given_up, member->name);
}

bool merge_group_is_informed(const struct merge_group *group, const struct merge_vector *vector)
{
    for (uint32_t i = 0; i < group->members.count; i++) {
        const struct merge_member *member = &group->members.items[i];
        const struct merge_word *word;

        if (!counts(group, member) || member->name == group->self)
            continue;
        word = word_of(group, member);
        if (word == NULL)
            return false;
        if (merge_vector_get(vector, word->origin) < merge_vector_get(&word->vector, word->origin) &&
            !merge_broken(MERGE_BREAK_WORD_BEFORE_DEEDS))
            return false;
    }
    return true;
}

/* The words of all members that count, among them `own`. They are looked at for one origin after the other, ascending:
 * as each has thousands where nodes were started often, that is one way along them. */
struct words {
    struct counted {
        const struct merge_word *word;
        struct merge_walk vector, closed;
    } * items;
    uint32_t count, capacity;
};

static struct words words_that_count(const struct merge_group *group, const struct merge_word *own)
{
    struct words words = {0};

    for (uint32_t i = 0; i < group->members.count; i++) {
        const struct merge_member *member = &group->members.items[i];
        const struct merge_word *word = member->name == group->self ? own : word_of(group, member);

        if (counts(group, member) && word != NULL)
            *ARRAY_PUSH(&words) = (struct counted){word, {&word->vector, 0}, {&word->closed, 0}};
    }
    return words;
}

/* The next origin may be any. */
static void rewind_words(struct words *words)
{
    for (uint32_t i = 0; i < words->count; i++)
        words->items[i].vector.at = words->items[i].closed.at = 0;
}

/* Nothing of this closed origin can come any more, as everybody knows. */
static bool is_over(struct words *words, uint64_t origin, bool confirmed)
{
    uint64_t stamp = merge_walk_get(&words->items[0].vector, origin);

    for (uint32_t i = 0; i < words->count; i++) {
        if (merge_walk_get(&words->items[i].vector, origin) != stamp)
            return false;
        if (confirmed && merge_walk_find(&words->items[i].closed, origin) == NULL)
            return false;
    }
    return true;
}

static bool is_of_a_member_that_counts(const struct merge_group *group, uint64_t origin)
{
    for (uint32_t i = 0; i < group->members.count; i++) {
        if (group->members.items[i].origin == origin && counts(group, &group->members.items[i]))
            return true;
    }
    return false;
}

bool merge_group_frontiers(const struct merge_group *group, const struct merge_word *own, uint64_t *frontier,
                           int64_t *wall)
{
    struct words words;
    struct merge_vector origins = {0};
    struct merge_walk closed = {&group->closed, 0};
    uint64_t least = UINT64_MAX;
    int64_t least_wall = INT64_MAX;

    if (!merge_group_is_informed(group, &own->vector))
        return false;
    words = words_that_count(group, own);
    if (words.count == 0)
        return false; /* a newcomer that is no member yet */
    for (uint32_t i = 0; i < words.count; i++)
        merge_vector_raise_all(&origins, &words.items[i].word->vector);
    for (uint32_t i = 0; i < group->members.count; i++) {
        if (counts(group, &group->members.items[i]))
            merge_vector_raise(&origins, group->members.items[i].origin, 0);
    }
    for (uint32_t i = 0; i < origins.count; i++) {
        uint64_t origin = origins.items[i].id;

        if (merge_origin_is_foreign(origin))
            continue;
        if (merge_walk_find(&closed, origin) != NULL
                ? is_over(&words, origin, !merge_broken(MERGE_BREAK_CLOSE_UNCONFIRMED))
                : group->given_up.count != 0 && !is_of_a_member_that_counts(group, origin))
            continue;
        for (uint32_t n = 0; n < words.count; n++) {
            uint64_t stamp = merge_walk_get(&words.items[n].vector, origin);

            if (stamp < least)
                least = stamp;
        }
    }
    /* What comes from the dead may have any wall time, and an eviction among it stands at any place it saw: also one
     * that the living have passed, as the dead one's vector does not hold them back any more. */
    rewind_words(&words);
    for (uint32_t i = 0; i < group->closed.count; i++) {
        if (is_over(&words, group->closed.items[i].id, !merge_broken(MERGE_BREAK_CLOSE_UNCONFIRMED)))
            continue;
        if (!merge_broken(MERGE_BREAK_CLOSED_WALL))
            least_wall = INT64_MIN;
        if (!merge_broken(MERGE_BREAK_CLOSED_FRONTIER))
            least = 0;
    }
    for (uint32_t n = 0; n < words.count; n++) {
        if (words.items[n].word->wall < least_wall)
            least_wall = words.items[n].word->wall;
    }
    if (merge_broken(MERGE_BREAK_SETTLE_EARLY))
        least = own->frontier > merge_vector_get(&own->vector, own->origin)
                    ? own->frontier
                    : merge_vector_get(&own->vector, own->origin);
    if (least != UINT64_MAX && least > *frontier)
        *frontier = least;
    if (least_wall > *wall)
        *wall = least_wall;
    merge_vector_fini(&origins);
    ARRAY_FINI(&words);
    return true;
}

bool merge_group_is_over(const struct merge_group *group, const struct merge_vector *vector, uint64_t origin)
{
    const struct merge_word own = {.vector = *vector, .closed = group->closed};
    struct words words;
    bool result;

    if (!merge_vector_has(&group->closed, origin) || !merge_group_is_informed(group, vector))
        return false;
    words = words_that_count(group, &own);
    result = words.count != 0 && is_over(&words, origin, true);
    ARRAY_FINI(&words);
    return result;
}

bool merge_group_covers_frontiers(const struct merge_group *group, const struct merge_vector *vector)
{
    if (!merge_group_is_informed(group, vector))
        return false;
    for (uint32_t i = 0; i < group->members.count; i++) {
        const struct merge_member *member = &group->members.items[i];
        const struct merge_word *word = member->name == group->self ? NULL : word_of(group, member);

        if (word == NULL || !counts(group, member))
            continue;
        for (uint32_t n = 0; n < word->vector.count; n++) {
            uint64_t origin = word->vector.items[n].id;

            if (!merge_vector_has(&group->closed, origin) && !merge_origin_is_foreign(origin) &&
                merge_vector_get(vector, origin) < word->frontier)
                return false;
        }
    }
    return true;
}

static bool knows_all(const struct merge_group *group, const struct merge_word *word)
{
    if (word == NULL || word->members.count != group->members.count)
        return false;
    for (uint32_t i = 0; i < group->members.count; i++) {
        if (merge_members_find(&word->members, group->members.items[i].name) == NULL)
            return false;
    }
    return true;
}

uint32_t merge_group_ignorant(const struct merge_group *group, uint64_t name)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < group->members.count; i++) {
        const struct merge_member *member = &group->members.items[i];

        if (member->name != group->self && member->name != name)
            count += !knows_all(group, word_of(group, member));
    }
    return count;
}

bool merge_group_may_forget(const struct merge_group *group, uint64_t name)
{
    if (name == group->self || merge_members_find(&group->members, name) == NULL)
        return false;
    return merge_group_ignorant(group, name) == 0 || merge_broken(MERGE_BREAK_FORGET_UNKNOWN);
}

void merge_group_held(const struct merge_group *group, const struct merge_vector *vector, struct merge_vector *held)
{
    merge_vector_copy(held, vector);
    for (uint32_t i = 0; i < group->members.count; i++) {
        const struct merge_member *member = &group->members.items[i];
        const struct merge_word *word = word_of(group, member);

        for (uint32_t n = 0; member->name != group->self && n < held->count; n++) {
            struct merge_vector_item *item = &held->items[n];

            item->stamp = word == NULL ? 0 : MIN(item->stamp, merge_vector_get(&word->vector, item->id));
        }
    }
}

uint64_t merge_group_saved(const struct merge_group *group, const struct merge_word *own, uint64_t origin)
{
    uint64_t least = merge_vector_get(&own->saved, origin);

    for (uint32_t i = 0; i < group->members.count; i++) {
        const struct merge_member *member = &group->members.items[i];
        const struct merge_word *word = member->name == group->self ? own : word_of(group, member);
        uint64_t saved = word == NULL ? 0 : merge_vector_get(&word->saved, origin);

        if (counts(group, member) && saved < least)
            least = saved;
    }
    return least;
}
