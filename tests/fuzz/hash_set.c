/* Steps chosen by the input on a hash, on a set of its fields, and on an array, with limits so low that both pass
 * through all of their forms. Properties: the same answers, walks that tell each pair once, scans that leave out
 * nothing; every invariant. */
#include "data/hash.h"
#include "data/set.h"

#include "fuzz.h"

#include <stdio.h>

enum { TEXTS = 64, STEPS_MOST = 400 };

static const struct hash_limits hash_limits = {.listpack_entries = 8, .listpack_bytes = 16};
static const struct set_limits set_limits = {.intset_entries = 6, .listpack_entries = 12, .listpack_bytes = 16};

struct model {
    bool is_there[TEXTS];
    uint8_t values[TEXTS];
    uint64_t count;
    uint64_t told; /* a bit each, by a walk */
};

struct subject {
    struct value hash, set;
    struct model model;
};

/* Numbers first, then texts, then some that are too long for a listpack. */
static struct slice text_of(unsigned number, char room[32])
{
    int size;

    switch (number * 4 / TEXTS) {
    case 0:
        size = snprintf(room, 32, "%u", number);
        break;
    case 1:
        size = snprintf(room, 32, "-%u00000000000", number);
        break;
    case 2:
        size = snprintf(room, 32, "field %u", number);
        break;
    default:
        size = snprintf(room, 32, "a field of many letters %u", number);
        break;
    }
    return slice_make(room, (size_t)size);
}

static unsigned number_of(struct slice text)
{
    char room[32];

    for (unsigned i = 0; i < TEXTS; i++) {
        if (slice_equal(text, text_of(i, room)))
            return i;
    }
    assert(false);
    return 0;
}

static void note(struct slice text, void *context)
{
    struct model *model = context;
    unsigned number = number_of(text);

    assert(model->is_there[number]);
    model->told |= UINT64_C(1) << number;
}

static void note_pair(struct slice field, struct slice value, void *context)
{
    struct model *model = context;
    char room[32];

    note(field, context);
    assert(slice_equal(value, text_of(model->values[number_of(field)], room)));
}

static void check_told(struct model *model)
{
    for (unsigned i = 0; i < TEXTS; i++)
        assert(((model->told >> i & 1) != 0) == model->is_there[i]);
    model->told = 0;
}

static void check_walks(struct subject *subject, uint64_t want)
{
    struct model *model = &subject->model;
    uint64_t cursor = 0;

    hash_each(subject->hash, note_pair, model);
    check_told(model);
    set_each(subject->set, note, model);
    check_told(model);
    do
        cursor = hash_scan(subject->hash, cursor, want, note_pair, model);
    while (cursor != 0);
    check_told(model);
    do
        cursor = set_scan(subject->set, cursor, want, note, model);
    while (cursor != 0);
    check_told(model);
}

static void put(struct subject *subject, unsigned field, unsigned value)
{
    struct model *model = &subject->model;
    char room[32], value_room[32];
    struct slice texts[] = {text_of(field, room), text_of(value, value_room)};

    hash_expect(&subject->hash, &hash_limits, texts, 2);
    assert(hash_put(&subject->hash, &hash_limits, texts[0], texts[1]) == !model->is_there[field]);
    assert(set_add(&subject->set, &set_limits, texts[0]) == !model->is_there[field]);
    model->count += !model->is_there[field];
    model->is_there[field] = true;
    model->values[field] = (uint8_t)value;
}

static void take(struct subject *subject, unsigned field)
{
    struct model *model = &subject->model;
    char room[32];
    struct slice text = text_of(field, room);

    assert(hash_remove(&subject->hash, text) == model->is_there[field]);
    assert(set_remove(&subject->set, text) == model->is_there[field]);
    model->count -= model->is_there[field];
    model->is_there[field] = false;
}

static void look(struct subject *subject, unsigned field)
{
    const struct model *model = &subject->model;
    char room[32], value_room[32], scratch[NUMBER_I64_SPACE];
    struct slice text = text_of(field, room), value;

    assert(set_has(subject->set, text) == model->is_there[field]);
    assert(hash_has(subject->hash, text) == model->is_there[field]);
    if (hash_get(subject->hash, text, scratch, &value))
        assert(model->is_there[field] && slice_equal(value, text_of(model->values[field], value_room)));
    else
        assert(!model->is_there[field]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slice input = slice_make(bytes, size);
    struct subject subject = {.hash = hash_create()};
    char room[32];

    subject.set = set_create(&set_limits, text_of(fuzz_take_byte(&input) % TEXTS, room), 0);
    for (unsigned i = 0; i < STEPS_MOST && input.size != 0; i++) {
        unsigned kind = fuzz_take_byte(&input), field = fuzz_take_byte(&input) % TEXTS;

        switch (kind % 8) {
        case 0:
        case 1:
            take(&subject, field);
            break;
        case 2:
            look(&subject, field);
            break;
        case 3:
            check_walks(&subject, 1 + (kind >> 3));
            break;
        default:
            put(&subject, field, fuzz_take_byte(&input) % TEXTS);
            break;
        }
        hash_validate(subject.hash);
        set_validate(subject.set);
        assert(hash_count(subject.hash) == subject.model.count && set_count(subject.set) == subject.model.count);
    }
    check_walks(&subject, 10);
    hash_ops.destroy(subject.hash);
    set_ops.destroy(subject.set);
    return 0;
}
