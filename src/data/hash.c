#include "data/hash.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/mem_move.h"
#include "base/number.h"
#include "base/panic.h"
#include "base/table.h"
#include "data/listpack.h"
#include "data/sample.h"
#include "data/former_members.h"
#include "data/undo.h"

#include <string.h>

struct pair {
    uint32_t field_size;
    uint32_t value_size;
    char bytes[]; /* the field, then the value */
};

struct hash_table {
    struct table pairs;
};

/* ------------------------------------------------------------------------------------------------------- pairs -- */

static struct slice pair_field(const struct pair *pair)
{
    return slice_make(pair->bytes, pair->field_size);
}

static struct slice pair_value(const struct pair *pair)
{
    return slice_make(pair->bytes + pair->field_size, pair->value_size);
}

static size_t pair_bytes(const struct pair *pair)
{
    return sizeof(*pair) + pair->field_size + pair->value_size;
}

static struct pair *pair_create(struct slice field, struct slice value)
{
    struct pair *pair = mem_alloc(sizeof(*pair) + field.size + value.size);

    pair->field_size = (uint32_t)field.size;
    pair->value_size = (uint32_t)value.size;
    if (field.size != 0)
        memcpy(pair->bytes, field.data, field.size);
    if (value.size != 0)
        memcpy(pair->bytes + field.size, value.data, value.size);
    return pair;
}

static uint64_t pair_hash(const void *item)
{
    const struct pair *pair = item;

    return hash_bytes(pair->bytes, pair->field_size);
}

static bool pair_matches(const void *item, const void *key)
{
    const struct slice *field = key;

    return slice_equal(pair_field(item), *field);
}

static void pair_free(void *item, void *context)
{
    (void)context;
    mem_free_sized(item, pair_bytes(item));
}

static uint64_t *find_slot(const struct hash_table *table, struct slice field, uint64_t hash)
{
    return table_find_slot(&table->pairs, hash, pair_matches, &field);
}

static const struct pair *find_pair(const struct hash_table *table, struct slice field)
{
    const uint64_t *slot = find_slot(table, field, hash_bytes(field.data, field.size));

    return slot != NULL ? table_slot_item(slot) : NULL;
}

/* ------------------------------------------------------------------------------------------------------- whole -- */

struct value hash_create(void)
{
    return (struct value){listpack_create(), ENCODING_LISTPACK};
}

uint64_t hash_count(struct value hash)
{
    if (hash.encoding == ENCODING_LISTPACK)
        return listpack_count(hash.data) / 2;
    return table_count(&((const struct hash_table *)hash.data)->pairs);
}

static void destroy(struct value hash)
{
    struct listpack *list = hash.data;
    struct hash_table *table = hash.data;

    if (hash.encoding == ENCODING_LISTPACK) {
        listpack_destroy(&list);
    } else {
        table_clear(&table->pairs, pair_free, NULL);
        mem_free(table);
    }
}

static void put_new(struct hash_table *table, struct slice field, struct slice value)
{
    table_insert(&table->pairs, hash_bytes(field.data, field.size), pair_create(field, value), pair_hash);
}

static void copy_pair(void *item, void *context)
{
    put_new(context, pair_field(item), pair_value(item));
}

static struct value copy(struct value hash)
{
    struct hash_table *table;

    if (hash.encoding == ENCODING_LISTPACK)
        return (struct value){listpack_copy(hash.data), ENCODING_LISTPACK};
    table = mem_alloc_zero(sizeof(*table));
    table_each(&((const struct hash_table *)hash.data)->pairs, copy_pair, table);
    return (struct value){table, ENCODING_HASHTABLE};
}

static uint64_t pair_memory(const void *item)
{
    return mem_usable(item);
}

static uint64_t memory_bytes(struct value hash, uint64_t samples)
{
    const struct hash_table *table = hash.data;

    if (hash.encoding == ENCODING_LISTPACK)
        return mem_usable(hash.data);
    return mem_usable(table) + table_memory_bytes(&table->pairs) + sample_memory(&table->pairs, samples, pair_memory);
}

static uint64_t free_effort(struct value hash)
{
    return hash.encoding == ENCODING_LISTPACK ? 1 : hash_count(hash);
}

static const struct table *as_table(struct value hash)
{
    return hash.encoding == ENCODING_HASHTABLE ? &((const struct hash_table *)hash.data)->pairs : NULL;
}

static void *move_pair(void *item, void *context)
{
    return mem_move(context, item, 0);
}

static uint64_t relocate(struct value *hash, uint64_t position, uint64_t most, struct mem_mover *mover)
{
    struct hash_table *table;

    if (position == 0)
        hash->data = mem_move(mover, hash->data, 0);
    if (hash->encoding != ENCODING_HASHTABLE)
        return 0;
    table = hash->data;
    return table_relocate(&table->pairs, position, most, mover, move_pair, mover);
}

static void undo(struct value *hash, const struct value_step *step);

static const struct value_member_ops member_ops = {.has = hash_has, .remove = hash_remove};
const struct value_ops hash_ops = {.destroy = destroy,
                                   .copy = copy,
                                   .memory_bytes = memory_bytes,
                                   .free_effort = free_effort,
                                   .relocate = relocate,
                                   .count = hash_count,
                                   .table = as_table,
                                   .undo = undo,
                                   .validate = hash_validate,
                                   .members = &member_ops,
                                   .former = &former_hash_ops};

/* -------------------------------------------------------------------------------------------- reading, changing -- */

bool hash_get(struct value hash, struct slice field, char scratch[NUMBER_I64_SPACE], struct slice *value)
{
    if (hash.encoding == ENCODING_LISTPACK) {
        listpack_at at = listpack_find(hash.data, listpack_first(hash.data), field, 1);

        if (at == LISTPACK_NONE)
            return false;
        *value = listpack_text(hash.data, listpack_next(hash.data, at), scratch);
    } else {
        const struct pair *pair = find_pair(hash.data, field);

        if (pair == NULL)
            return false;
        *value = pair_value(pair);
    }
    return true;
}

bool hash_has(struct value hash, struct slice field)
{
    if (hash.encoding == ENCODING_LISTPACK)
        return listpack_find(hash.data, listpack_first(hash.data), field, 1) != LISTPACK_NONE;
    return find_pair(hash.data, field) != NULL;
}

static void become_table(struct value *hash)
{
    struct listpack *list = hash->data;
    struct hash_table *table = mem_alloc_zero(sizeof(*table));
    char field_room[NUMBER_I64_SPACE], value_room[NUMBER_I64_SPACE];

    for (listpack_at at = listpack_first(list); at != LISTPACK_NONE; at = listpack_next(list, at)) {
        struct slice field = listpack_text(list, at, field_room);

        at = listpack_next(list, at);
        put_new(table, field, listpack_text(list, at, value_room));
    }
    listpack_destroy(&list);
    *hash = (struct value){table, ENCODING_HASHTABLE};
}

static void expect(struct value *hash, const struct hash_limits *limits, const struct slice *texts, uint32_t text_count)
{
    uint64_t bytes = 0;

    if (hash->encoding != ENCODING_LISTPACK)
        return;
    for (uint32_t i = 0; i < text_count; i++) {
        bytes += texts[i].size;
        if (texts[i].size > limits->listpack_bytes) {
            become_table(hash);
            return;
        }
    }
    if (!listpack_fits(hash->data, bytes, text_count))
        become_table(hash);
}

void hash_expect(struct value *hash, const struct hash_limits *limits, const struct slice *texts, uint32_t text_count)
{
    struct value_log *log = value_log_of(hash->data);

    expect(hash, limits, texts, text_count);
    value_log_moved(log, hash->data);
}

/* log NULL: the hash is not watched. */
static ALWAYS_INLINE void note_new(struct value_log *log, struct slice field)
{
    if (log != NULL)
        value_log_note(log, &(struct value_step){.first = field, .kind = VALUE_STEP_NEW});
}

static ALWAYS_INLINE void note_old(struct value_log *log, struct slice field, struct slice value)
{
    if (log != NULL)
        value_log_note(log, &(struct value_step){.first = field, .second = value, .kind = VALUE_STEP_OLD});
}

static ALWAYS_INLINE bool put_in_listpack(struct value_log *log, struct value *hash, const struct hash_limits *limits,
                                          struct slice field, struct slice value)
{
    char scratch[NUMBER_I64_SPACE];
    struct listpack *list = hash->data;
    listpack_at at = listpack_find(list, listpack_first(list), field, 1);
    bool is_new = at == LISTPACK_NONE;

    if (is_new) {
        note_new(log, field);
        listpack_append(&list, field);
        listpack_append(&list, value);
    } else {
        at = listpack_next(list, at);
        if (log != NULL)
            note_old(log, field, listpack_text(list, at, scratch));
        listpack_replace(&list, at, value);
    }
    hash->data = list;
    if (is_new && hash_count(*hash) > limits->listpack_entries)
        become_table(hash);
    return is_new;
}

static ALWAYS_INLINE bool put_in_table(struct value_log *log, struct hash_table *table, struct slice field,
                                       struct slice value)
{
    uint64_t hash = hash_bytes(field.data, field.size);
    uint64_t *slot = find_slot(table, field, hash);
    struct pair *pair;

    if (slot == NULL) {
        note_new(log, field);
        table_insert(&table->pairs, hash, pair_create(field, value), pair_hash);
        return true;
    }
    pair = table_slot_item(slot);
    note_old(log, field, pair_value(pair));
    if (pair->value_size == value.size ||
        mem_good_size(pair_bytes(pair)) == mem_good_size(sizeof(*pair) + field.size + value.size)) {
        pair->value_size = (uint32_t)value.size; /* the block fits without reallocation */
        if (value.size != 0)
            memcpy(pair->bytes + field.size, value.data, value.size);
    } else {
        table_slot_replace(slot, pair_create(field, value));
        pair_free(pair, NULL);
    }
    return false;
}

static ALWAYS_INLINE bool put(struct value_log *log, struct value *hash, const struct hash_limits *limits,
                              struct slice field, struct slice value)
{
    const struct slice texts[] = {field, value};

    expect(hash, limits, texts, countof(texts));
    return hash->encoding == ENCODING_LISTPACK ? put_in_listpack(log, hash, limits, field, value)
                                               : put_in_table(log, hash->data, field, value);
}

static ALWAYS_INLINE bool remove_field(struct value *hash, struct slice field)
{
    if (hash->encoding == ENCODING_LISTPACK) {
        struct listpack *list = hash->data;
        listpack_at at = listpack_find(list, listpack_first(list), field, 1);

        if (at == LISTPACK_NONE)
            return false;
        listpack_remove(&list, at, 2);
        hash->data = list;
    } else {
        struct hash_table *table = hash->data;
        uint64_t code = hash_bytes(field.data, field.size), *slot = find_slot(table, field, code);

        if (slot == NULL)
            return false;
        pair_free(table_remove(&table->pairs, code, slot), NULL);
    }
    return true;
}

static NOINLINE bool put_watched(struct value_log *log, struct value *hash, const struct hash_limits *limits,
                                 struct slice field, struct slice value)
{
    const bool is_new = put(log, hash, limits, field, value);

    value_log_moved(log, hash->data);
    return is_new;
}

static NOINLINE bool remove_watched(struct value_log *log, struct value *hash, struct slice field)
{
    char scratch[NUMBER_I64_SPACE];
    struct slice value;

    if (!hash_get(*hash, field, scratch, &value))
        return false;
    note_old(log, field, value);
    (void)remove_field(hash, field);
    value_log_moved(log, hash->data);
    return true;
}

bool hash_put(struct value *hash, const struct hash_limits *limits, struct slice field, struct slice value)
{
    struct value_log *log = value_log_of(hash->data);

    if (UNLIKELY(log != NULL))
        return put_watched(log, hash, limits, field, value);
    return put(NULL, hash, limits, field, value);
}

void hash_add(struct value *hash, const struct hash_limits *limits, struct slice field, int64_t amount, int64_t sum)
{
    struct value_log *log = value_log_of(hash->data);
    char digits[NUMBER_I64_SPACE];

    if (UNLIKELY(log != NULL))
        value_log_note(log, &(struct value_step){(uint64_t)amount, 0, field, SLICE_EMPTY, VALUE_STEP_ADDITION});
    (void)put(NULL, hash, limits, field, slice_make(digits, number_format_i64(digits, sum)));
    value_log_moved(log, hash->data);
}

bool hash_remove(struct value *hash, struct slice field)
{
    struct value_log *log = value_log_of(hash->data);

    if (UNLIKELY(log != NULL))
        return remove_watched(log, hash, field);
    return remove_field(hash, field);
}

static void take_off(struct value *hash, const struct hash_limits *limits, struct slice field, uint64_t amount)
{
    char scratch[NUMBER_I64_SPACE];
    struct slice text;
    int64_t sum;

    if (!hash_get(*hash, field, scratch, &text) || !number_parse_i64(text, &sum))
        panic("What was added to is no integer any more");
    hash_add(hash, limits, field, (int64_t)(0 - amount), (int64_t)((uint64_t)sum - amount));
}

/* What was in a listpack fits into one. A snapshot that watches the hash hears of it. */
static void undo(struct value *hash, const struct value_step *step)
{
    static const struct hash_limits unlimited = {UINT64_MAX, UINT64_MAX};

    if (step->kind == VALUE_STEP_ADDITION)
        take_off(hash, &unlimited, step->first, step->a);
    else if (step->kind == VALUE_STEP_OLD)
        (void)hash_put(hash, &unlimited, step->first, step->second);
    else
        (void)hash_remove(hash, step->first);
}

/* ----------------------------------------------------------------------------------------------------- walking -- */

struct visit {
    hash_pair_fn fn;
    void *context;
};

static void visit_pair(void *item, void *context)
{
    const struct visit *visit = context;

    visit->fn(pair_field(item), pair_value(item), visit->context);
}

static void give_listpack_pair(const struct listpack *list, listpack_at at, hash_pair_fn fn, void *context)
{
    char field_room[NUMBER_I64_SPACE], value_room[NUMBER_I64_SPACE];
    struct slice field = listpack_text(list, at, field_room);

    fn(field, listpack_text(list, listpack_next(list, at), value_room), context);
}

void hash_each(struct value hash, hash_pair_fn fn, void *context)
{
    if (hash.encoding == ENCODING_LISTPACK) {
        const struct listpack *list = hash.data;

        for (listpack_at at = listpack_first(list); at != LISTPACK_NONE;
             at = listpack_next(list, listpack_next(list, at)))
            give_listpack_pair(list, at, fn, context);
    } else {
        struct visit visit = {fn, context};

        table_each(&((const struct hash_table *)hash.data)->pairs, visit_pair, &visit);
    }
}

uint64_t hash_scan(struct value hash, uint64_t cursor, uint64_t want, hash_pair_fn fn, void *context)
{
    struct visit visit = {fn, context};

    if (hash.encoding == ENCODING_LISTPACK) {
        hash_each(hash, fn, context);
        return 0;
    }
    return table_scan(&((const struct hash_table *)hash.data)->pairs, cursor, want, visit_pair, &visit);
}

void hash_random(struct value hash, struct random *random, hash_pair_fn fn, void *context)
{
    if (hash.encoding == ENCODING_LISTPACK) {
        uint64_t index = random_below(random, hash_count(hash));

        give_listpack_pair(hash.data, listpack_seek(hash.data, (int64_t)index * 2), fn, context);
    } else {
        const struct pair *pair = sample_random(&((const struct hash_table *)hash.data)->pairs, random);

        fn(pair_field(pair), pair_value(pair), context);
    }
}

void hash_random_some(struct value hash, struct random *random, uint64_t count, hash_pair_fn fn, void *context)
{
    if (hash.encoding == ENCODING_LISTPACK) {
        const struct listpack *list = hash.data;
        struct sample_picker picker = {.left = hash_count(hash), .wanted = count};

        for (listpack_at at = listpack_first(list); at != LISTPACK_NONE;
             at = listpack_next(list, listpack_next(list, at)))
            if (sample_pick(&picker, random))
                give_listpack_pair(list, at, fn, context);
    } else {
        struct visit visit = {fn, context};

        sample_some(&((const struct hash_table *)hash.data)->pairs, random, count, visit_pair, &visit);
    }
}

void hash_validate(struct value hash)
{
    if (hash.encoding == ENCODING_LISTPACK) {
        listpack_validate(hash.data);
        assert(listpack_count(hash.data) % 2 == 0);
    } else {
        assert(hash.encoding == ENCODING_HASHTABLE);
        table_validate(&((const struct hash_table *)hash.data)->pairs, pair_hash);
    }
}
