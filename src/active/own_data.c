#include "active/own_data.h"

#include "active/part.h"
#include "active/place.h"
#include "base/gate.h"
#include "server/durable/libraries.h"
#include "server/durable/value_words.h"
#include "store/window.h"

#include <string.h>

enum {
    WORDS_MOST = 8,    /* of a value */
    BATCH_STEPS = 1024 /* then what waits is merged */
};

/* Then the name; of each word its size and bytes; the steps. */
struct kept_key {
    struct merge_place last;
    size_t name_size;
    uint64_t step_count;
    unsigned db;
    uint32_t word_count; /* 0: there are only steps */
    bool overwrote;
};

/* Then its words. */
struct kept_step {
    struct merge_place place;
    uint64_t previous;
    int64_t wall;
    struct merge_joined joined;
    size_t size;
};

struct keeping {
    struct own_data *own;
    struct kept_key key;
    struct slice name;
    struct access *access;
};

/* Of a place that is no operation's it is not known. */
static bool they_have(const struct own_data *own, struct merge_place place)
{
    return place.origin < MERGE_ORIGIN_FLOOR && place.stamp != 0 &&
           place.stamp <= merge_vector_get(own->theirs, place.origin);
}

static void keep_head(struct keeping *keeping)
{
    struct buffer *bytes = &keeping->own->bytes;

    keeping->key.name_size = keeping->name.size;
    buffer_append(bytes, &keeping->key, sizeof(keeping->key));
    buffer_append_slice(bytes, keeping->name);
}

static void keep_words(const struct slice *words, uint32_t count, struct blob *value, void *context)
{
    struct keeping *keeping = context;
    struct buffer *bytes = &keeping->own->bytes;

    (void)value;
    assert(count != 0 && count <= WORDS_MOST);
    keeping->key.word_count = count;
    keep_head(keeping);
    for (uint32_t i = 0; i < count; i++) {
        buffer_append(bytes, &words[i].size, sizeof(words[i].size));
        buffer_append_slice(bytes, words[i]);
    }
    keeping->own->values++;
}

static void keep_value(struct keeping *keeping, struct access *access, unsigned db, const struct key *key,
                       struct merge_place last, bool overwrote)
{
    keeping->key.last = last;
    keeping->key.db = db;
    keeping->key.overwrote = overwrote;
    keeping->name = key->name;
    value_words(access, db, key, keep_words, keeping);
}

static void keep_entry(struct access *access, unsigned db, const struct entry *entry, void *context)
{
    struct keeping *keeping = context;
    const struct key key = key_make(entry_key(entry));
    const uint64_t version = entry_version(entry);
    struct merge_record base;

    if (window_find(access, db, &key) != NULL)
        return;
    window_base(access, db, true, version, &base);
    if (version == 0)
        base.base_place = (struct merge_place){0, 0}; /* of a plain file: anything with a stamp is younger */
    if (they_have(keeping->own, base.base_place))
        return;
    keeping->key.step_count = 0;
    keep_value(keeping, access, db, &key, base.base_place, base.base_overwrote);
}

/* What the steps began with is in the state, or is nothing. Where nodes meet that know nothing of each other (level 0)
 * what was missing here has nothing to do with what is there. */
static bool they_have_base(const struct own_data *own, const struct merge_record *record)
{
    if (record->base_overwrote && they_have(own, record->base_place))
        return true;
    if (own->level == 0)
        return !record->base_overwrote && merge_record_base_is_missing(record);
    return record->base_place.stamp <= own->level;
}

/* The first of the operations that a step stands for: they may have some of them alone. */
static struct merge_place first_place(const struct merge_op *op)
{
    return merge_op_is_joined(op) ? (struct merge_place){op->entry->joined.first, op->place.origin} : op->place;
}

static bool they_have_any(const struct own_data *own, const struct merge_op *op)
{
    return they_have(own, op->place) || they_have(own, first_place(op));
}

static bool they_have_part(const struct own_data *own, const struct merge_record *record)
{
    struct merge_spot spot = {0, 0};
    const struct merge_step *step;

    while (record->has_joined && (step = merge_record_next(record, &spot)) != NULL) {
        if (they_have_any(own, step->op) && !they_have(own, step->op->place))
            return true;
    }
    return false;
}

static uint64_t count_steps(const struct own_data *own, const struct merge_record *record)
{
    struct merge_spot spot = {0, 0};
    const struct merge_step *step;
    uint64_t count = 0;

    while ((step = merge_record_next(record, &spot)) != NULL)
        count += !they_have_any(own, step->op);
    return count;
}

static void keep_steps(struct own_data *own, const struct merge_record *record)
{
    struct merge_spot spot = {0, 0};
    const struct merge_step *step;

    while ((step = merge_record_next(record, &spot)) != NULL) {
        const struct kept_step kept = {.place = step->op->place,
                                       .previous = step->op->entry->prev,
                                       .wall = step->op->entry->wall,
                                       .joined = step->op->entry->joined,
                                       .size = step->op->words.size};

        if (they_have_any(own, step->op))
            continue;
        buffer_append(&own->bytes, &kept, sizeof(kept));
        buffer_append_slice(&own->bytes, step->op->words);
        own->steps++;
    }
}

static void keep_known(struct access *access, struct window_key *known, void *context)
{
    struct keeping *keeping = context;
    const struct merge_record *record = &known->record;
    const struct key key = window_name(known);
    const bool has_base = they_have_base(keeping->own, record) && !they_have_part(keeping->own, record);

    keeping->key = (struct kept_key){.db = known->db, .step_count = count_steps(keeping->own, record)};
    keeping->name = key.name;
    if (keeping->key.step_count == 0 && (has_base || they_have(keeping->own, merge_record_last(record))))
        return;
    if (has_base)
        keep_head(keeping);
    else
        keep_value(keeping, access, known->db, &key, merge_record_last(record),
                   record->count == 0 && record->base_overwrote);
    keep_steps(keeping->own, record);
}

static void keep_library(struct slice name, void *context)
{
    struct keeping *keeping = context;
    const struct key key = key_make(name);
    const unsigned db = horizon_libraries_db(&keeping->access->store->horizon);

    keeping->key.step_count = 0;
    if (keeping->access->store->window == NULL || window_find(keeping->access, db, &key) == NULL)
        keep_value(keeping, keeping->access, db, &key, (struct merge_place){0, 0}, false);
}

void own_data_begin(struct own_data *own, const struct merge_vector *deeds, const struct merge_vector *theirs)
{
    assert(own->bytes.size == 0);
    own->theirs = theirs;
    own->level = part_level(deeds, theirs);
}

void own_data_keep(struct own_data *own, struct access *access)
{
    struct keeping keeping = {.own = own, .access = access};
    const struct access_visitor visitor = {.visit = keep_entry, .context = &keeping, .sees_expired = true};

    gate_assert_alone();
    for (unsigned db = 0; db < access->store->database_count; db++)
        access_each(access, db, &visitor);
    libraries_each_name(keep_library, &keeping);
    for (uint32_t i = 0; access->store->window != NULL && i <= access->store->stripe_mask; i++)
        window_each(access, i, keep_known, &keeping);
}

void own_data_keep_key(struct own_data *own, struct access *access, unsigned db, const struct key *key)
{
    struct keeping keeping = {.own = own};
    struct window_key *known = window_find(access, db, key);
    const struct entry *entry = access_probe(access, db, key);

    gate_assert_alone();
    if (known != NULL)
        keep_known(access, known, &keeping);
    else if (entry != NULL)
        keep_entry(access, db, entry, &keeping);
}

/* ---------------------------------------------------------------------------------------------------- putting -- */

static size_t take(const struct own_data *own, size_t at, void *to, size_t size)
{
    assert(size <= own->bytes.size - at);
    memcpy(to, own->bytes.data + at, size);
    return at + size;
}

static size_t take_slice(const struct own_data *own, size_t at, size_t size, struct slice *slice)
{
    assert(size <= own->bytes.size - at);
    *slice = slice_make(own->bytes.data + at, size);
    return at + size;
}

/* Returns what is behind them. */
static size_t take_words(const struct own_data *own, size_t at, uint32_t count, struct slice words[WORDS_MOST])
{
    assert(count <= WORDS_MOST);
    for (uint32_t i = 0; i < count; i++) {
        size_t size;

        at = take(own, at, &size, sizeof(size));
        at = take_slice(own, at, size, &words[i]);
    }
    return at;
}

/* What waits is merged from time to time. */
static void note_step(struct place *place, struct worker *worker, uint64_t *placed)
{
    if (++*placed % BATCH_STEPS != 0)
        return;
    place_end(place);
    place_begin_again(place, worker);
}

uint64_t own_data_put(const struct own_data *own, struct worker *worker)
{
    struct place place = {.worker = NULL};
    uint64_t stay = 0, placed = 0;

    place_begin_again(&place, worker);
    for (size_t at = 0; at < own->bytes.size;) {
        struct slice words[WORDS_MOST], name;
        struct kept_key kept;
        struct key key;
        bool stays = false;

        at = take(own, at, &kept, sizeof(kept));
        at = take_slice(own, at, kept.name_size, &name);
        at = take_words(own, at, kept.word_count, words);
        key = key_make(name);
        if (kept.word_count != 0)
            stays = place_value(&place, &(struct place_value){.db = kept.db,
                                                              .key = key,
                                                              .last = kept.last,
                                                              .overwrote = kept.overwrote,
                                                              .words = words,
                                                              .word_count = kept.word_count});
        stay += stays;
        for (uint64_t i = 0; i < kept.step_count; i++) {
            struct window_step step = {.exists = true};
            struct kept_step from;

            at = take(own, at, &from, sizeof(from));
            at = take_slice(own, at, from.size, &step.words);
            step.place = from.place;
            step.previous = from.previous;
            step.wall = from.wall;
            step.joined = from.joined;
            if (stays)
                continue;
            place_step(&place, kept.db, &key, &step);
            if (step.joined.first != 0) /* what of theirs belongs in between is not known */
                place_doubt(&place, kept.db, &key);
            note_step(&place, worker, &placed);
        }
    }
    place_end(&place);
    place_fini(&place);
    return stay;
}

void own_data_fini(struct own_data *own)
{
    buffer_fini(&own->bytes);
    *own = (struct own_data){.level = 0};
}
