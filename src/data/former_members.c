/* Sets and hashes are given in the order of their tables' scan, which depends on the members alone: so a member says
 * whether it was given. Sorted sets are given from the last member to the first, as files have them: the score that a
 * member had says whether it was given. */
#include "data/former_members.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/panic.h"
#include "base/table.h"
#include "data/hash.h"
#include "data/set.h"
#include "data/undo.h"
#include "data/zset.h"

#include <string.h>

/* What a member had, that was changed before it was given. */
struct kept {
    uint64_t round; /* of former_keep */
    double score;
    uint32_t first_size, second_size;
    bool is_absent; /* there was no such member, or it was given: the walk passes it by */
    char text[];
};

struct members {
    struct former former;
    const struct kind *kind;
    struct table kept;
    uint64_t round;
    uint64_t cursor;          /* of the scan: members whose place is below it were given; then of the kept ones */
    struct zindex_item *mark; /* sorted set: this member, and those behind it, were given; NULL: none were */
    bool has_walked;          /* all of the value was given: what is left is kept */
    former_fn fn;             /* during former_give */
    void *context;
    uint64_t given;
};

struct kind {
    uint64_t (*count)(struct value value);
    bool (*find)(struct value value, struct slice member, char *scratch, struct former_element *element);
    void (*walk)(struct members *members, struct value value, uint64_t most);
    bool (*was_given)(const struct members *members, const struct former_element *element);
};

static struct members *members_of(const struct former *former)
{
    return container_of((struct former *)(uintptr_t)former, struct members, former);
}

/* -------------------------------------------------------------------------------------------------- what is kept -- */

static struct slice kept_member(const struct kept *kept)
{
    return slice_make(kept->text, kept->first_size);
}

static uint64_t kept_hash(const void *item)
{
    const struct kept *kept = item;

    return hash_bytes(kept->text, kept->first_size);
}

static bool kept_matches(const void *item, const void *key)
{
    return slice_equal(kept_member(item), *(const struct slice *)key);
}

static uint64_t *find_kept(const struct members *members, struct slice member)
{
    return table_find_slot(&members->kept, hash_bytes(member.data, member.size), kept_matches, &member);
}

static struct kept *kept_create(struct members *members, const struct former_element *element, bool is_absent)
{
    struct kept *kept = mem_alloc(sizeof(*kept) + element->first.size + element->second.size);

    *kept = (struct kept){.round = members->round,
                          .score = element->score,
                          .first_size = (uint32_t)element->first.size,
                          .second_size = (uint32_t)element->second.size,
                          .is_absent = is_absent};
    memcpy(kept->text, element->first.data, element->first.size);
    if (element->second.size != 0)
        memcpy(kept->text + element->first.size, element->second.data, element->second.size);
    members->former.bytes += mem_usable(kept) + sizeof(uint64_t);
    return kept;
}

static void kept_free(struct members *members, struct kept *kept)
{
    members->former.bytes -= mem_usable(kept) + sizeof(uint64_t);
    mem_free(kept);
}

/* The member had this at the moment, whatever was kept of it so far; slot: of that. */
static void keep_element(struct members *members, struct value value, uint64_t *slot,
                         const struct former_element *element, bool is_absent)
{
    char scratch[NUMBER_I64_SPACE];
    struct former_element now;

    is_absent = is_absent || members->kind->was_given(members, element);
    if (slot != NULL) {
        struct kept *kept = table_slot_item(slot);

        table_slot_replace(slot, kept_create(members, element, is_absent));
        kept_free(members, kept);
        return;
    }
    if (is_absent &&
        (!members->kind->find(value, element->first, scratch, &now) || members->kind->was_given(members, &now)))
        return; /* the walk does not meet it */
    table_insert(&members->kept, hash_bytes(element->first.data, element->first.size),
                 kept_create(members, element, is_absent), kept_hash);
}

/* What it had before: as it is behind the change, which was kept already or is in the value. */
static void keep_addition(struct members *members, struct value value, uint64_t *slot, const struct value_step *step)
{
    char scratch[NUMBER_I64_SPACE], digits[NUMBER_I64_SPACE];
    struct former_element element = {.first = step->first};
    int64_t sum;

    if (members->kind->was_given(members, &element)) /* a field's place says so, whatever its value */
        return;
    if (slot != NULL) {
        const struct kept *kept = table_slot_item(slot);

        element.second = slice_make(kept->text + kept->first_size, kept->second_size);
    } else if (!members->kind->find(value, step->first, scratch, &element)) {
        panic("What was added to is not there any more");
    }
    if (!number_parse_i64(element.second, &sum))
        panic("What was added to is no integer any more");
    element = (struct former_element){.first = step->first,
                                      .second = slice_make(digits, number_format_i64(digits, (int64_t)((uint64_t)sum -
                                                                                                       step->a)))};
    keep_element(members, value, slot, &element, false);
}

static void keep_step(struct members *members, struct value value, uint64_t *slot, const struct value_step *step)
{
    struct former_element element = {.first = step->first, .second = step->second};

    memcpy(&element.score, &step->a, sizeof(element.score));
    if (step->kind == VALUE_STEP_ADDITION)
        keep_addition(members, value, slot, step);
    else
        keep_element(members, value, slot, &element, step->kind == VALUE_STEP_NEW);
}

/* What came later in this round gives way; what was kept in an earlier one is older. */
static void keep(struct former *former, struct value value, struct slice steps)
{
    struct members *members = members_of(former);
    struct value_step step;

    members->round++;
    while (!members->has_walked && value_steps_take(&steps, &step)) {
        uint64_t *slot = find_kept(members, step.first);

        if (slot == NULL || ((const struct kept *)table_slot_item(slot))->round == members->round)
            keep_step(members, value, slot, &step);
    }
}

/* It is older than all that was kept, and what is kept from here on is of a later round. */
static void take_back(struct former *former, struct value value, const struct value_step *step)
{
    struct members *members = members_of(former);
    uint64_t *slot = find_kept(members, step->first);
    char scratch[NUMBER_I64_SPACE];
    struct former_element element;
    bool was_there;

    assert(members->cursor == 0 && members->mark == NULL && !members->has_walked);
    was_there = slot != NULL ? !((const struct kept *)table_slot_item(slot))->is_absent
                             : members->kind->find(value, step->first, scratch, &element);
    members->former.count = members->former.count - was_there + (step->kind != VALUE_STEP_NEW);
    keep_step(members, value, slot, step);
}

/* -------------------------------------------------------------------------------------------------------- giving -- */

static void give_element(struct members *members, const struct former_element *element)
{
    members->given++;
    members->fn(element, members->context);
}

/* The walk meets it in the value. */
static void meet(struct members *members, const struct former_element *element)
{
    if (table_count(&members->kept) == 0 || find_kept(members, element->first) == NULL)
        give_element(members, element);
}

static void meet_kept(void *item, void *context)
{
    const struct kept *kept = item;
    struct members *members = context;

    if (!kept->is_absent && table_scan_place(kept_hash(kept)) >= members->cursor)
        give_element(members,
                     &(struct former_element){.first = kept_member(kept),
                                              .second = slice_make(kept->text + kept->first_size, kept->second_size),
                                              .score = kept->score});
}

static bool give(struct former *former, struct value value, uint64_t most, former_fn fn, void *context)
{
    struct members *members = members_of(former);
    bool more = true;

    members->fn = fn;
    members->context = context;
    if (!members->has_walked) {
        members->kind->walk(members, value, most);
    } else {
        members->cursor = table_scan(&members->kept, members->cursor, most, meet_kept, members);
        more = members->cursor != 0;
    }
    if (members->has_walked && table_count(&members->kept) == 0)
        more = false;
    assert(more || members->given == former->count);
    return more;
}

static void scan_ended(struct members *members, uint64_t next)
{
    members->cursor = next;
    members->has_walked = next == 0;
}

/* ----------------------------------------------------------------------------------------------- sets and hashes -- */

static bool has_place_behind(const struct members *members, const struct former_element *element)
{
    return table_scan_place(hash_bytes(element->first.data, element->first.size)) < members->cursor;
}

static void meet_member(struct slice member, void *context)
{
    const struct former_element element = {.first = member};

    if (!has_place_behind(context, &element))
        meet(context, &element);
}

static bool set_find(struct value value, struct slice member, char *scratch, struct former_element *element)
{
    (void)scratch;
    *element = (struct former_element){.first = member};
    return set_has(value, member);
}

static void set_walk(struct members *members, struct value value, uint64_t most)
{
    scan_ended(members, set_scan(value, members->cursor, most, meet_member, members));
}

static void meet_pair(struct slice field, struct slice value, void *context)
{
    const struct former_element element = {.first = field, .second = value};

    if (!has_place_behind(context, &element))
        meet(context, &element);
}

static bool hash_find(struct value value, struct slice member, char *scratch, struct former_element *element)
{
    *element = (struct former_element){.first = member};
    return hash_get(value, member, scratch, &element->second);
}

static void hash_walk(struct members *members, struct value value, uint64_t most)
{
    scan_ended(members, hash_scan(value, members->cursor, most, meet_pair, members));
}

/* --------------------------------------------------------------------------------------------------- sorted sets -- */

static bool is_behind_mark(const struct members *members, const struct former_element *element)
{
    const struct zindex_item *mark = members->mark;

    if (mark == NULL)
        return false;
    return element->score != mark->score ? element->score > mark->score
                                         : slice_compare(element->first, zindex_item_member(mark)) >= 0;
}

static bool zset_find(struct value value, struct slice member, char *scratch, struct former_element *element)
{
    (void)scratch;
    *element = (struct former_element){.first = member};
    return zset_score(value, member, &element->score);
}

static void zset_walk(struct members *members, struct value value, uint64_t most)
{
    struct former_element element = {.score = 0};
    struct zset_walk walk;

    zset_walk_before(&walk, value, members->mark);
    for (members->has_walked = true; zset_walk_next(&walk, &element.first, &element.score);) {
        meet(members, &element);
        if (--most == 0) {
            members->has_walked = false;
            break;
        }
    }
    zindex_item_destroy(members->mark);
    members->mark = members->has_walked ? NULL : zindex_item_create(element.score, element.first, ZINDEX_NO_DEADLINE);
}

/* --------------------------------------------------------------------------------------------------------- types -- */

static struct former *create(const struct former_ops *ops, const struct kind *kind, struct value value)
{
    struct members *members = mem_alloc_zero(sizeof(*members));

    members->former = (struct former){.ops = ops, .count = kind->count(value), .bytes = mem_usable(members)};
    members->kind = kind;
    return &members->former;
}

static void free_kept(void *item, void *context)
{
    (void)context;
    mem_free(item);
}

static void destroy(struct former *former)
{
    struct members *members = members_of(former);

    table_clear(&members->kept, free_kept, NULL);
    zindex_item_destroy(members->mark);
    mem_free(members);
}

static struct former *create_of_set(struct value value)
{
    static const struct kind kind = {set_count, set_find, set_walk, has_place_behind};

    return create(&former_set_ops, &kind, value);
}

static struct former *create_of_hash(struct value value)
{
    static const struct kind kind = {hash_count, hash_find, hash_walk, has_place_behind};

    return create(&former_hash_ops, &kind, value);
}

static struct former *create_of_zset(struct value value)
{
    static const struct kind kind = {zset_count, zset_find, zset_walk, is_behind_mark};

    return create(&former_zset_ops, &kind, value);
}

const struct former_ops former_set_ops = {.create = create_of_set,
                                          .keep = keep,
                                          .take_back = take_back,
                                          .give = give,
                                          .destroy = destroy};
const struct former_ops former_hash_ops = {.create = create_of_hash,
                                           .keep = keep,
                                           .take_back = take_back,
                                           .give = give,
                                           .destroy = destroy};
const struct former_ops former_zset_ops = {.create = create_of_zset,
                                           .keep = keep,
                                           .take_back = take_back,
                                           .give = give,
                                           .destroy = destroy};
