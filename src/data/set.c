#include "data/set.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/mem_move.h"
#include "base/table.h"
#include "data/intset.h"
#include "data/listpack.h"
#include "data/packed_text.h"
#include "data/sample.h"
#include "data/former_members.h"
#include "data/undo.h"

#include <string.h>

/* A member that is not packed into its slot: see packed_text.h. */
struct member {
    uint32_t size;
    char bytes[];
};

struct set_table {
    struct table members;
};

/* ----------------------------------------------------------------------------------------------------- members -- */

static struct slice member_text(const void *item, char scratch[NUMBER_I64_SPACE])
{
    const struct member *member = item;

    return packed_text_is(item) ? packed_text_get(item, scratch) : slice_make(member->bytes, member->size);
}

static struct member *member_create(struct slice text)
{
    struct member *member = mem_alloc(sizeof(*member) + text.size);

    member->size = (uint32_t)text.size; /* not 0: that is packed */
    memcpy(member->bytes, text.data, text.size);
    return member;
}

static uint64_t member_hash(const void *item)
{
    char scratch[NUMBER_I64_SPACE];
    const struct slice text = member_text(item, scratch);

    return hash_bytes(text.data, text.size);
}

/* A text that is looked for: packed if it can be, for then its member is. */
struct wanted {
    struct slice text;
    void *packed;
    uint64_t hash;
};

static struct wanted wanted_make(struct slice text)
{
    return (struct wanted){text, packed_text_make(text), hash_bytes(text.data, text.size)};
}

static bool member_matches(const void *item, const void *key)
{
    const struct wanted *wanted = key;
    const struct member *member = item;

    if (wanted->packed != NULL || packed_text_is(item))
        return item == wanted->packed;
    return slice_equal(slice_make(member->bytes, member->size), wanted->text);
}

static void member_free(void *item, void *context)
{
    const struct member *member = item;

    (void)context;
    if (!packed_text_is(item))
        mem_free_sized(item, sizeof(*member) + member->size);
}

static uint64_t *find_slot(const struct set_table *table, const struct wanted *wanted)
{
    return table_find_slot(&table->members, wanted->hash, member_matches, wanted);
}

static bool add_to_table(struct set_table *table, struct slice text)
{
    const struct wanted wanted = wanted_make(text);

    if (find_slot(table, &wanted) != NULL)
        return false;
    table_insert(&table->members, wanted.hash, wanted.packed != NULL ? wanted.packed : member_create(text),
                 member_hash);
    return true;
}

static const struct table *table_of(struct value set)
{
    return &((const struct set_table *)set.data)->members;
}

static bool as_number(struct slice text, int64_t *number)
{
    return text.size != 0 && text.size < NUMBER_I64_SPACE && text.data[0] <= '9' && number_parse_i64(text, number);
}

/* ------------------------------------------------------------------------------------------------------- whole -- */

static struct value make_table(void)
{
    return (struct value){mem_alloc_zero(sizeof(struct set_table)), ENCODING_HASHTABLE};
}

struct value set_create(const struct set_limits *limits, struct slice first, uint64_t count_hint)
{
    int64_t number;

    if (count_hint <= limits->intset_entries && as_number(first, &number))
        return (struct value){intset_create(), ENCODING_INTSET};
    if (count_hint <= limits->listpack_entries && first.size <= limits->listpack_bytes)
        return (struct value){listpack_create(), ENCODING_LISTPACK};
    return make_table();
}

uint64_t set_count(struct value set)
{
    switch (set.encoding) {
    case ENCODING_INTSET:
        return intset_count(set.data);
    case ENCODING_LISTPACK:
        return listpack_count(set.data);
    default:
        return table_count(table_of(set));
    }
}

static void destroy(struct value set)
{
    if (set.encoding == ENCODING_HASHTABLE)
        table_clear(&((struct set_table *)set.data)->members, member_free, NULL);
    mem_free(set.data);
}

static void copy_member(void *item, void *context)
{
    char scratch[NUMBER_I64_SPACE];

    (void)add_to_table(context, member_text(item, scratch));
}

static struct value copy(struct value set)
{
    struct value fresh;

    if (set.encoding == ENCODING_INTSET)
        return (struct value){intset_copy(set.data), ENCODING_INTSET};
    if (set.encoding == ENCODING_LISTPACK)
        return (struct value){listpack_copy(set.data), ENCODING_LISTPACK};
    fresh = make_table();
    table_each(table_of(set), copy_member, fresh.data);
    return fresh;
}

static uint64_t member_memory(const void *item)
{
    return packed_text_is(item) ? 0 : mem_usable(item);
}

static uint64_t memory_bytes(struct value set, uint64_t samples)
{
    uint64_t bytes = mem_usable(set.data);

    if (set.encoding == ENCODING_HASHTABLE)
        bytes += table_memory_bytes(table_of(set)) + sample_memory(table_of(set), samples, member_memory);
    return bytes;
}

static uint64_t free_effort(struct value set)
{
    return set.encoding == ENCODING_HASHTABLE ? set_count(set) : 1;
}

static const struct table *as_table(struct value set)
{
    return set.encoding == ENCODING_HASHTABLE ? &((const struct set_table *)set.data)->members : NULL;
}

static void *move_member(void *item, void *context)
{
    return packed_text_is(item) ? item : mem_move(context, item, 0);
}

static uint64_t relocate(struct value *set, uint64_t position, uint64_t most, struct mem_mover *mover)
{
    struct set_table *table;

    if (position == 0)
        set->data = mem_move(mover, set->data, 0);
    if (set->encoding != ENCODING_HASHTABLE)
        return 0;
    table = set->data;
    return table_relocate(&table->members, position, most, mover, move_member, mover);
}

static void undo(struct value *set, const struct value_step *step);

static const struct value_member_ops member_ops = {.has = set_has, .remove = set_remove};
const struct value_ops set_ops = {.destroy = destroy,
                                  .copy = copy,
                                  .memory_bytes = memory_bytes,
                                  .free_effort = free_effort,
                                  .relocate = relocate,
                                  .count = set_count,
                                  .table = as_table,
                                  .undo = undo,
                                  .validate = set_validate,
                                  .members = &member_ops,
                                  .former = &former_set_ops};

/* -------------------------------------------------------------------------------------------- reading, changing -- */

static bool has_in_table(const struct set_table *table, struct slice member)
{
    const struct wanted wanted = wanted_make(member);

    return find_slot(table, &wanted) != NULL;
}

bool set_has(struct value set, struct slice member)
{
    int64_t number;

    switch (set.encoding) {
    case ENCODING_INTSET:
        return as_number(member, &number) && intset_has(set.data, number);
    case ENCODING_LISTPACK:
        return listpack_find(set.data, listpack_first(set.data), member, 0) != LISTPACK_NONE;
    default:
        return has_in_table(set.data, member);
    }
}

static void add_to_listpack_member(struct slice member, void *context)
{
    listpack_append(context, member);
}

static void add_to_table_member(struct slice member, void *context)
{
    (void)add_to_table(context, member);
}

static void become_table(struct value *set)
{
    struct value fresh = make_table();

    set_each(*set, add_to_table_member, fresh.data);
    destroy(*set);
    *set = fresh;
}

static void become_listpack(struct value *set)
{
    struct listpack *list = listpack_create();

    set_each(*set, add_to_listpack_member, &list);
    destroy(*set);
    *set = (struct value){list, ENCODING_LISTPACK};
}

/* An integer in a listpack has at most 20 digits as text; the limit applies to these. */
static bool fits_listpack(struct value set, const struct set_limits *limits, struct slice member)
{
    char room[NUMBER_I64_SPACE];

    if (set_count(set) + 1 > limits->listpack_entries || member.size > limits->listpack_bytes)
        return false;
    if (set.encoding == ENCODING_LISTPACK)
        return listpack_fits(set.data, member.size, 1);
    return set_count(set) == 0 ||
           (number_format_i64(room, intset_at(set.data, 0)) <= limits->listpack_bytes &&
            number_format_i64(room, intset_at(set.data, intset_count(set.data) - 1)) <= limits->listpack_bytes);
}

static bool add_to_listpack(struct value *set, struct slice member)
{
    struct listpack *list = set->data;

    listpack_append(&list, member);
    set->data = list;
    return true;
}

static bool add_to_intset(struct value *set, const struct set_limits *limits, int64_t number)
{
    struct intset *numbers = set->data;
    bool added = intset_add(&numbers, number);

    set->data = numbers;
    if (added && intset_count(numbers) > limits->intset_entries)
        become_table(set);
    return added;
}

/* A listpack is not searched for it. */
static bool add(struct value *set, const struct set_limits *limits, struct slice member)
{
    int64_t number;

    if (set->encoding == ENCODING_HASHTABLE)
        return add_to_table(set->data, member);
    if (set->encoding == ENCODING_INTSET && as_number(member, &number))
        return add_to_intset(set, limits, number);
    if (!fits_listpack(*set, limits, member)) {
        become_table(set);
        return add_to_table(set->data, member);
    }
    if (set->encoding == ENCODING_INTSET)
        become_listpack(set);
    return add_to_listpack(set, member);
}

static NOINLINE bool add_watched(struct value_log *log, struct value *set, const struct set_limits *limits,
                                 struct slice member)
{
    if (set_has(*set, member))
        return false;
    value_log_note(log, &(struct value_step){.first = member, .kind = VALUE_STEP_NEW});
    (void)add(set, limits, member);
    value_log_moved(log, set->data);
    return true;
}

bool set_add(struct value *set, const struct set_limits *limits, struct slice member)
{
    struct value_log *log = value_log_of(set->data);

    if (UNLIKELY(log != NULL))
        return add_watched(log, set, limits, member);
    if (set->encoding == ENCODING_LISTPACK && set_has(*set, member))
        return false;
    return add(set, limits, member);
}

void set_add_new(struct value *set, const struct set_limits *limits, struct slice member)
{
    struct value_log *log = value_log_of(set->data);
    bool added = UNLIKELY(log != NULL) ? add_watched(log, set, limits, member) : add(set, limits, member);

    assert(added);
}

static bool remove_from_table(struct set_table *table, struct slice member)
{
    const struct wanted wanted = wanted_make(member);
    uint64_t *slot = find_slot(table, &wanted);

    if (slot == NULL)
        return false;
    member_free(table_remove(&table->members, wanted.hash, slot), NULL);
    return true;
}

static bool remove_member(struct value *set, struct slice member)
{
    struct intset *numbers = set->data;
    struct listpack *list = set->data;
    listpack_at at;
    int64_t number;
    bool removed;

    switch (set->encoding) {
    case ENCODING_INTSET:
        removed = as_number(member, &number) && intset_remove(&numbers, number);
        set->data = numbers;
        return removed;
    case ENCODING_LISTPACK:
        at = listpack_find(list, listpack_first(list), member, 0);
        if (at != LISTPACK_NONE)
            listpack_remove(&list, at, 1);
        set->data = list;
        return at != LISTPACK_NONE;
    default:
        return remove_from_table(set->data, member);
    }
}

static NOINLINE bool remove_watched(struct value_log *log, struct value *set, struct slice member)
{
    if (!set_has(*set, member))
        return false;
    value_log_note(log, &(struct value_step){.first = member, .kind = VALUE_STEP_OLD});
    (void)remove_member(set, member);
    value_log_moved(log, set->data);
    return true;
}

bool set_remove(struct value *set, struct slice member)
{
    struct value_log *log = value_log_of(set->data);

    return UNLIKELY(log != NULL) ? remove_watched(log, set, member) : remove_member(set, member);
}

/* A set is never in an earlier form than it was before: what was in this one fits into it. A snapshot that watches the
 * set hears of it. */
static void undo(struct value *set, const struct value_step *step)
{
    static const struct set_limits unlimited = {UINT64_MAX, UINT64_MAX, UINT64_MAX};

    if (step->kind == VALUE_STEP_OLD)
        (void)set_add(set, &unlimited, step->first);
    else
        (void)set_remove(set, step->first);
}

/* ----------------------------------------------------------------------------------------------------- walking -- */

struct visit {
    set_member_fn fn;
    void *context;
};

static void visit_member(void *item, void *context)
{
    const struct visit *visit = context;
    char scratch[NUMBER_I64_SPACE];

    visit->fn(member_text(item, scratch), visit->context);
}

static void each_number(const struct intset *numbers, set_member_fn fn, void *context)
{
    char scratch[NUMBER_I64_SPACE];

    for (uint32_t i = 0; i < intset_count(numbers); i++)
        fn(slice_make(scratch, number_format_i64(scratch, intset_at(numbers, i))), context);
}

static void each_listed(const struct listpack *list, set_member_fn fn, void *context)
{
    char scratch[NUMBER_I64_SPACE];

    for (listpack_at at = listpack_first(list); at != LISTPACK_NONE; at = listpack_next(list, at))
        fn(listpack_text(list, at, scratch), context);
}

void set_each(struct value set, set_member_fn fn, void *context)
{
    struct visit visit = {fn, context};

    if (set.encoding == ENCODING_INTSET)
        each_number(set.data, fn, context);
    else if (set.encoding == ENCODING_LISTPACK)
        each_listed(set.data, fn, context);
    else
        table_each(table_of(set), visit_member, &visit);
}

uint64_t set_scan(struct value set, uint64_t cursor, uint64_t want, set_member_fn fn, void *context)
{
    struct visit visit = {fn, context};

    if (set.encoding == ENCODING_HASHTABLE)
        return table_scan(table_of(set), cursor, want, visit_member, &visit);
    set_each(set, fn, context);
    return 0;
}

struct slice set_random(struct value set, struct random *random, char scratch[NUMBER_I64_SPACE])
{
    if (set.encoding == ENCODING_HASHTABLE)
        return member_text(sample_random(table_of(set), random), scratch);
    if (set.encoding == ENCODING_LISTPACK)
        return listpack_text(set.data, listpack_seek(set.data, (int64_t)random_below(random, set_count(set))), scratch);
    return slice_make(scratch,
                      number_format_i64(scratch, intset_at(set.data, (uint32_t)random_below(random, set_count(set)))));
}

struct picking {
    struct sample_picker picker;
    struct random *random;
    set_member_fn fn;
    void *context;
};

static void pick(struct slice member, void *context)
{
    struct picking *picking = context;

    if (sample_pick(&picking->picker, picking->random))
        picking->fn(member, picking->context);
}

void set_random_some(struct value set, struct random *random, uint64_t count, set_member_fn fn, void *context)
{
    struct picking picking = {{set_count(set), count}, random, fn, context};
    struct visit visit = {fn, context};

    if (set.encoding == ENCODING_HASHTABLE)
        sample_some(table_of(set), random, count, visit_member, &visit);
    else
        set_each(set, pick, &picking);
}

void set_validate(struct value set)
{
    if (set.encoding == ENCODING_INTSET)
        intset_validate(set.data);
    else if (set.encoding == ENCODING_LISTPACK)
        listpack_validate(set.data);
    else
        table_validate(table_of(set), member_hash);
}
