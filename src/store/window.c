#include "store/window.h"

#include "base/mem.h"
#include "base/number.h"
#include "base/panic.h"
#include "store/effects.h"
#include "store/lazyfree.h"
#include "store/lookup.h"
#include "store/noted_steps.h"
#include "store/undo.h"

#include <string.h>

/* What steps of a stripe take in the logs, of about two ages of the window: they are settled without a look at it. */
struct noted_share {
    _Atomic uint64_t bytes[2], keys[2]; /* of the age that ends with `mark`, and of the one before */
    uint64_t mark;
};

/* Its own cache line, as each thread works on other stripes. What a noted step needs stands in the first one. */
struct CACHE_ALIGNED window_stripe {
    struct table keys;      /* of struct window_key, by name and database */
    uint64_t noted_last;    /* the greatest stamp of the steps that are noted; 0: there is none */
    struct noted_share its; /* atomic: relaxed, as those below; written with the stripe held */
    struct list by_change;  /* clean keys, in the order of their last change */
    struct list dirty;
    _Atomic uint64_t bytes, tombstones, tombstone_bytes, dirty_count, given_up, joined;
    _Atomic uint64_t bytes_joined; /* likewise: that it had when its steps were joined last */
    _Atomic bool has_unjoined;     /* likewise: steps were left then that may be joined */
    uint32_t added;                /* keys, since writers settled last */
    bool is_left;                  /* for the keeper; if there is one */
    _Atomic uint64_t oldest;       /* likewise: the last stamp of the first by change; 0: none */
};

struct window {
    struct window_stripe *stripes;
    struct window_keeper *_Atomic keeper; /* atomic: relaxed; set with the gate owned, cleared when all was left */
    _Atomic uint64_t given_up;            /* atomic: relaxed, rises: noted steps up to this stamp are none any more */
    _Atomic uint64_t given_up_keys;       /* atomic: relaxed: of noted steps */
    _Atomic uint64_t newest_library;      /* atomic: relaxed: rises, but is 0 again when all libraries are forgotten */
    struct noted_steps noted;
};

const char window_there;
static struct merge_touch (*touch_of)(struct slice words); /* global: const once the window is there */

enum {
    TRIM_LEAST = 16,     /* steps, from which on writers drop what is settled */
    NOTE_LEAST = 64,     /* steps, from which on they note what each one touches: others will go before many */
    SETTLE_STEPS = 2048, /* of one key that are dropped at once; each is memory to be freed */
    JOIN_LEAST = 4,      /* steps of one key, from which on some are joined */
    JOIN_MOST = 4096,    /* that are looked at */
    GROWN_BYTES = 1024,
    NOTED_KEY_BYTES = 1024,     /* of a key on average; those of fewer are smaller packed than joined */
    NOTED_MOST_BYTES = 2 << 20, /* of a stripe; making records of them takes some ms */
    SETTLE_EVERY = 8,           /* records that are added, until a writer settles */
    SETTLE_WITH = 24,           /* as many; so the window does not grow faster than it is settled */
    SETTLE_BATCH = 16           /* records whose memory is fetched together */
};

/* ------------------------------------------------------------------------------------------------------- models -- */

static struct merge_undo *undo_acquire(const struct merge_model *model, struct merge_undo *undo)
{
    (void)model;
    return undo != NULL ? (struct merge_undo *)key_undo_acquire((struct key_undo *)undo) : NULL;
}

static void undo_release(const struct merge_model *model, struct merge_undo *undo)
{
    struct key_undo *its = (struct key_undo *)undo;

    key_undo_release(((const struct window_model *)model)->access, &its);
}

/* Memory of what has expired is freed by those who look for that (F and W allow it): here nothing is known of it. */
static struct merge_value *keep(const struct merge_model *model, struct merge_value *value, int64_t wall)
{
    (void)model;
    (void)wall;
    return value;
}

static void destroy(const struct merge_model *model, struct merge_value *value)
{
    (void)model;
    (void)value;
}

static struct merge_touch touch(const struct merge_model *model, const struct merge_op *op)
{
    (void)model;
    return touch_of(op->words);
}

static bool undo_is_apart(const struct merge_model *model, const struct merge_undo *undo, enum merge_touch_kind kind)
{
    const struct key_undo *its = (const struct key_undo *)undo;

    (void)model;
    if (kind == MERGE_PUSHES_FIRST || kind == MERGE_PUSHES_LAST)
        return key_undo_is_push(its);
    return key_undo_is_apart(its, kind == MERGE_ADDS);
}

static uint64_t weight_of(const struct merge_op *op, int64_t amount)
{
    return merge_op_is_joined(op) ? op->entry->joined.weight : (uint64_t)(amount < 0 ? -amount : amount);
}

static struct slice sum_words(struct slice name, struct slice member, int64_t amount)
{
    char digits[NUMBER_I64_SPACE];
    const struct slice text = slice_make(digits, number_format_i64(digits, amount));
    const struct slice to_key[] = {SLICE("INCRBY"), name, text};
    const struct slice to_field[] = {SLICE("HINCRBY"), name, member, text};
    struct buffer words = {0};

    if (member.data == NULL)
        effects_append_words(&words, to_key, countof(to_key));
    else
        effects_append_words(&words, to_field, countof(to_field));
    return buffer_slice(&words);
}

static bool join(const struct merge_model *model, const struct merge_op *older, const struct merge_undo *older_undo,
                 const struct merge_op *younger, const struct merge_undo *younger_undo, struct merge_sum *sum)
{
    const struct key_undo *first = (const struct key_undo *)older_undo, *last = (const struct key_undo *)younger_undo;
    struct slice member, other;
    const int64_t amount = key_undo_amount(first, &member), more = key_undo_amount(last, &other);

    if ((member.data == NULL) != (other.data == NULL) || !slice_equal(member, other))
        return false;
    sum->weight = weight_of(older, amount) + weight_of(younger, more);
    if (sum->weight >= WINDOW_JOINED_MOST)
        return false;
    sum->words = sum_words(((const struct window_model *)model)->name, member, amount + more);
    sum->undo = (struct merge_undo *)key_undo_join(first, last);
    return true;
}

void window_set_touch(struct merge_touch (*its)(struct slice words))
{
    touch_of = its;
}

void window_model_init(struct window_model *model, struct access *access)
{
    *model = (struct window_model){{.touch = touch,
                                    .undo_is_apart = undo_is_apart,
                                    .join = join,
                                    .undo_acquire = undo_acquire,
                                    .undo_release = undo_release,
                                    .expire = keep,
                                    .destroy = destroy},
                                   .access = access};
}

/* ------------------------------------------------------------------------------------------------ begin and end -- */

static void release_noted(const struct noted_step *step, void *context)
{
    key_undo_drop_image(context, step->undo.data);
}

void window_create(struct store *store)
{
    const uint32_t count = store->stripe_mask + 1;
    struct window *window;

    gate_assert_alone();
    if (store->window != NULL)
        return;
    window = mem_aligned_alloc(CACHE_LINE_BYTES, sizeof(*window));
    atomic_init(&window->keeper, NULL);
    atomic_init(&window->given_up, 0);
    atomic_init(&window->given_up_keys, 0);
    atomic_init(&window->newest_library, 0);
    noted_steps_init(&window->noted, count);
    window->stripes = mem_aligned_alloc(CACHE_LINE_BYTES, count * sizeof(struct window_stripe));
    memset(window->stripes, 0, count * sizeof(struct window_stripe));
    for (uint32_t i = 0; i < count; i++) {
        list_init(&window->stripes[i].by_change);
        list_init(&window->stripes[i].dirty);
    }
    atomic_store_explicit(&store->window, window, memory_order_release);
}

void window_destroy(struct access *access)
{
    struct store *store = access->store;

    gate_assert_alone();
    if (store->window == NULL)
        return;
    for (uint32_t i = 0; i <= store->stripe_mask; i++)
        assert(store->window->stripes[i].keys.count == 0);
    (void)noted_steps_drop(&store->window->noted, UINT64_MAX, release_noted, access); /* all are settled, or records */
    noted_steps_fini(&store->window->noted);
    mem_free(store->window->stripes);
    mem_free(store->window);
    store->window = NULL;
}

/* ------------------------------------------------------------------------------------------------------- keys -- */

static COLD void leave_now(struct access *access, uint32_t index)
{
    struct window *window = access->store->window;
    struct window_keeper *keeper = atomic_load_explicit(&window->keeper, memory_order_relaxed);

    access_assert_holds(access, index);
    if (keeper == NULL || window->stripes[index].is_left)
        return;
    window->stripes[index].is_left = true; /* to leave it one looks at it */
    keeper->leave(keeper, access, index);
}

static inline struct window_stripe *stripe_at(struct access *access, uint32_t index)
{
    const struct window *window = access->store->window;

    access_assert_holds(access, index);
    if (UNLIKELY(atomic_load_explicit(&window->keeper, memory_order_relaxed) != NULL))
        leave_now(access, index);
    return &window->stripes[index];
}

static inline struct window_stripe *stripe_of(struct access *access, const struct key *key)
{
    return stripe_at(access, access_stripe_of(access, key));
}

static struct window_stripe *stripe_of_known(struct access *access, const struct window_key *known)
{
    const struct key key = window_name(known);

    return stripe_of(access, &key);
}

struct key window_name(const struct window_key *known)
{
    return (struct key){slice_make(known->name, known->name_size), known->hash};
}

struct wanted {
    const struct key *key;
    unsigned db;
};

static bool is_wanted(const void *item, const void *key)
{
    const struct window_key *known = item;
    const struct wanted *wanted = key;

    return known->hash == wanted->key->hash && known->db == wanted->db &&
           slice_equal(slice_make(known->name, known->name_size), wanted->key->name);
}

static uint64_t hash_of(const void *item)
{
    return ((const struct window_key *)item)->hash;
}

/* Up to which stamp noted steps are none any more: settled, or given up. */
static inline uint64_t noted_end(const struct access *access)
{
    const uint64_t frontier = horizon_frontier(&access->store->horizon);

    return MAX(frontier, atomic_load_explicit(&access->store->window->given_up, memory_order_relaxed));
}

bool window_fetch(const struct access *access, const uint64_t *hashes, uint32_t count)
{
    struct window_stripe *stripes = access->store->window->stripes, *known[WINDOW_FETCH_MOST];
    const uint64_t end = noted_end(access);
    uint32_t known_count = 0;
    bool is_blank = true;

    count = MIN(count, (uint32_t)WINDOW_FETCH_MOST);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = (uint32_t)hashes[i] & access->store->stripe_mask;

        access_assert_holds(access, index);
        __builtin_prefetch(&stripes[index], 1);
        noted_steps_prefetch(&access->store->window->noted, index);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct window_stripe *stripe = &stripes[hashes[i] & access->store->stripe_mask];

        known[i] = stripe->keys.count != 0 ? stripe : NULL;
        known_count += known[i] != NULL;
        is_blank = is_blank && known[i] == NULL && stripe->noted_last <= end;
        if (LIKELY(known[i] == NULL))
            continue;
        table_prefetch_directory(&stripe->keys, hashes[i]);
        __builtin_prefetch(stripe->by_change.head.before, 1);
    }
    if (LIKELY(known_count == 0))
        return is_blank;
    for (uint32_t i = 0; i < count; i++) {
        if (known[i] != NULL)
            table_prefetch_bucket(&known[i]->keys, hashes[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (known[i] != NULL)
            table_prefetch_item(&known[i]->keys, hashes[i]);
    }
    return false;
}

static NOINLINE struct window_key *find_among(struct window_stripe *stripe, unsigned db, const struct key *key)
{
    const struct wanted wanted = {key, db};

    return table_find(&stripe->keys, key->hash, is_wanted, &wanted);
}

static inline struct window_key *find(struct window_stripe *stripe, unsigned db, const struct key *key)
{
    return stripe->keys.count != 0 ? find_among(stripe, db, key) : NULL;
}

/* Of a key that has no version. */
static NOINLINE void base_of_horizon(const struct access *access, unsigned db, bool exists, struct merge_record *record)
{
    const struct merge_horizon horizon = horizon_of(&access->store->horizon, db);

    if (exists) /* from the time before */
        record->base_place = merge_place_floor(horizon.floor);
    else
        merge_record_init(record, &horizon);
}

static ALWAYS_INLINE struct merge_place place_of_version(const struct access *access, uint64_t version)
{
    const uint64_t origin = origins_of_version(&access->store->origins, version);

    /* Which of two with the same stamp is the older one is not known any more: another one is late. */
    return (struct merge_place){version_stamp(version), origin != 0 ? origin : MERGE_ORIGIN_FLOOR};
}

void window_base(const struct access *access, unsigned db, bool exists, uint64_t version, struct merge_record *record)
{
    *record = (struct merge_record){.value = window_value(exists)};
    if (UNLIKELY(version == 0)) {
        base_of_horizon(access, db, exists, record);
        return;
    }
    record->base_place = place_of_version(access, version);
    record->base_overwrote = version_overwrote(version);
}

/* ---------------------------------------------------------------------------------------------------- counting -- */

static void add(_Atomic uint64_t *count, uint64_t more)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + more, memory_order_relaxed);
}

static bool is_tombstone(const struct window_key *known)
{
    return known->record.count == 0 && known->record.value == NULL;
}

static uint64_t step_bytes(const struct merge_step *step)
{
    return merge_op_bytes(step->op) + sizeof(struct merge_entry) + sizeof(*step) +
           (step->undo != NULL ? key_undo_bytes((struct key_undo *)step->undo) : 0);
}

static uint64_t count_bytes(const struct window_key *known)
{
    uint64_t bytes = sizeof(*known) + known->name_size;
    struct merge_spot spot = {0, 0};
    const struct merge_step *step;

    while ((step = merge_record_next(&known->record, &spot)) != NULL)
        bytes += step_bytes(step);
    return bytes;
}

static void note_oldest(struct window_stripe *stripe)
{
    struct list_node *first = list_first(&stripe->by_change);
    uint64_t stamp = 0;

    if (first != NULL)
        stamp = MAX(container_of(first, struct window_key, node)->linked, UINT64_C(1));
    if (stamp != atomic_load_explicit(&stripe->oldest, memory_order_relaxed))
        atomic_store_explicit(&stripe->oldest, stamp, memory_order_relaxed);
}

/* It is one now, of so many bytes, or it is none. */
static void count_tombstone(struct window_stripe *stripe, struct window_key *known, bool is_one, uint64_t bytes)
{
    if (LIKELY(!is_one && !known->counts_as_tombstone))
        return;
    add(&stripe->tombstones, (uint64_t)is_one - (uint64_t)known->counts_as_tombstone);
    add(&stripe->tombstone_bytes, (is_one ? bytes : 0) - (known->counts_as_tombstone ? known->bytes : 0));
    known->counts_as_tombstone = is_one;
}

/* What is counted of the key is taken out before its record changes, and put in behind. */
static void link_key(struct window_stripe *stripe, struct window_key *known)
{
    known->linked = merge_record_last(&known->record).stamp;
    list_push_back(known->dirty.stamp != 0 ? &stripe->dirty : &stripe->by_change, &known->node);
    if (list_first(&stripe->by_change) == &known->node)
        note_oldest(stripe);
}

static void remove_known(struct access *access, struct window_stripe *stripe, struct window_key **known)
{
    const struct key key = window_name(*known);
    const struct wanted wanted = {&key, (*known)->db};
    struct window_model model;

    window_model_init(&model, access);
    add(&stripe->bytes, 0 - (*known)->bytes);
    count_tombstone(stripe, *known, false, 0);
    add(&stripe->dirty_count, 0 - (uint64_t)((*known)->dirty.stamp != 0));
    (void)table_remove(&stripe->keys, (*known)->hash,
                       table_find_slot(&stripe->keys, (*known)->hash, is_wanted, &wanted));
    list_remove(&(*known)->node);
    note_oldest(stripe);
    merge_record_fini(&(*known)->record, &model.model);
    mem_free(*known);
    *known = NULL;
}

static void recount(struct window_stripe *stripe, struct window_key *known, uint64_t bytes)
{
    add(&stripe->bytes, bytes - known->bytes);
    count_tombstone(stripe, known, is_tombstone(known), bytes);
    known->bytes = bytes;
}

static void relink(struct window_stripe *stripe, struct window_key *known)
{
    list_remove(&known->node);
    link_key(stripe, known);
    note_oldest(stripe);
}

static bool is_needed(const struct window_key *known)
{
    return known->record.count != 0 || known->record.value == NULL || known->dirty.stamp != 0;
}

static void note_library(const struct access *access, const struct window_key *known)
{
    _Atomic uint64_t *newest = &access->store->window->newest_library;
    const uint64_t stamp = merge_record_last(&known->record).stamp;
    uint64_t before = atomic_load_explicit(newest, memory_order_relaxed);

    while (stamp > before &&
           !atomic_compare_exchange_weak_explicit(newest, &before, stamp, memory_order_relaxed, memory_order_relaxed))
        ;
}

static bool is_library(const struct access *access, unsigned db)
{
    return UNLIKELY(db == horizon_libraries_db(&access->store->horizon));
}

struct window_key *window_add(struct access *access, unsigned db, const struct key *key,
                              const struct merge_record *record)
{
    struct window_stripe *stripe = stripe_of(access, key);
    struct window_key *known;

    /* Many together, as their memory was not touched for long. */
    if (++stripe->added >= SETTLE_EVERY && window_has_settled(access->store, access_stripe_of(access, key))) {
        stripe->added = 0;
        (void)window_settle(access, access_stripe_of(access, key), SETTLE_WITH);
    }
    known = mem_alloc(sizeof(*known) + key->name.size);
    debug_assert(find(stripe, db, key) == NULL);
    *known = (struct window_key){.record = *record, .hash = key->hash, .db = db, .name_size = (uint32_t)key->name.size};
    if (key->name.size != 0)
        memcpy(known->name, key->name.data, key->name.size);
    if (LIKELY(record->steps == NULL))
        merge_record_lend(&known->record, &known->first, 1);
    (void)table_insert(&stripe->keys, key->hash, known, hash_of);
    recount(stripe, known, count_bytes(known));
    link_key(stripe, known);
    if (is_library(access, db))
        note_library(access, known);
    return known;
}

void window_changed(struct access *access, struct window_key **known)
{
    struct window_stripe *stripe = stripe_of_known(access, *known);

    if (!is_needed(*known)) {
        remove_known(access, stripe, known);
        return;
    }
    recount(stripe, *known, count_bytes(*known));
    relink(stripe, *known);
    if (is_library(access, (*known)->db))
        note_library(access, *known);
}

/* The frontier, or as if it were so far back that no more steps are dropped than at once. */
static uint64_t settles_until(const struct access *access, const struct merge_record *record)
{
    const uint64_t frontier = horizon_frontier(&access->store->horizon);

    return merge_record_step_count(record) <= SETTLE_STEPS ? frontier
                                                           : MIN(frontier, merge_record_stamp_at(record, SETTLE_STEPS));
}

/* True if nothing of it is left; false: what is, is to be counted. */
static bool settle_key(struct access *access, struct window_stripe *stripe, struct window_key **known, uint64_t until)
{
    struct merge_horizon horizon = horizon_of(&access->store->horizon, (*known)->db);
    struct window_model model;

    horizon.frontier = until;
    window_model_init(&model, access);
    if (merge_record_settle(&(*known)->record, &horizon, (*known)->dirty.stamp != 0, &model.model)) {
        horizon_raise_floor(&access->store->horizon, horizon.frontier);
        remove_known(access, stripe, known);
        return true;
    }
    if (!is_needed(*known)) {
        remove_known(access, stripe, known);
        return true;
    }
    return false;
}

void window_appended(struct access *access, struct window_key *known)
{
    if (UNLIKELY(known->record.count >= NOTE_LEAST || known->record.older != NULL) && touch_of != NULL) {
        struct window_model model;

        window_model_init(&model, access);
        merge_record_note_last(&known->record, &model.model);
    }
    window_inserted(access, known, &known->record.steps[known->record.count - 1]);
}

/* Of the steps that F has passed. */
static uint64_t settled_bytes(const struct merge_record *record, uint64_t frontier)
{
    struct merge_spot spot = {0, 0};
    uint64_t bytes = 0;

    for (const struct merge_step *step; (step = merge_record_next(record, &spot)) != NULL;) {
        if (step->op->place.stamp > frontier)
            break;
        bytes += step_bytes(step);
    }
    return bytes;
}

void window_inserted(struct access *access, struct window_key *known, const struct merge_step *step)
{
    struct window_stripe *stripe = stripe_of_known(access, known);
    const struct merge_record *record = &known->record;
    uint64_t bytes = known->bytes + step_bytes(step);

    /* A key that is changed all the time. Half of it goes at once, so each step is moved but once. */
    if (UNLIKELY(record->count >= TRIM_LEAST) &&
        merge_record_drop_from(record) <= horizon_frontier(&access->store->horizon)) {
        const uint64_t until = settles_until(access, record), settled = settled_bytes(record, until);

        (void)settle_key(access, stripe, &known, until);
        if (known == NULL)
            return;
        bytes = settled < bytes ? bytes - settled : count_bytes(known); /* what takes back may have grown meanwhile */
    }
    recount(stripe, known, bytes); /* it keeps its place: its neighbours there would be touched */
}

void window_mark(struct access *access, struct window_key *known, struct merge_place mark)
{
    struct window_stripe *stripe = stripe_of_known(access, known);

    assert(mark.stamp != 0);
    if (known->dirty.stamp == 0)
        add(&stripe->dirty_count, 1);
    known->dirty = mark;
    relink(stripe, known);
}

void window_clean(struct access *access, struct window_key *known)
{
    struct window_stripe *stripe = stripe_of_known(access, known);

    if (known->dirty.stamp != 0)
        add(&stripe->dirty_count, UINT64_MAX);
    known->dirty = (struct merge_place){0};
    relink(stripe, known);
}

void window_remove(struct access *access, struct window_key **known)
{
    remove_known(access, stripe_of_known(access, *known), known);
}

void window_freed(struct access *access, unsigned db, const struct key *key)
{
    struct window_key *known = find(stripe_of(access, key), db, key);

    if (LIKELY(known == NULL || known->record.value == NULL))
        return;
    known->record.value = NULL;
    window_changed(access, &known);
}

/* -------------------------------------------------------------------------------------------------- noted steps -- */

/* Of a key before a step. */
struct noted_base {
    struct merge_place place;
    bool overwrote, exists;
};

struct putting {
    struct access *access;
    struct window_stripe *stripe;
    uint64_t settled; /* steps up to this stamp are */
};

static uint64_t noted_bytes_of(const struct window_stripe *stripe)
{
    return atomic_load_explicit(&stripe->its.bytes[0], memory_order_relaxed) +
           atomic_load_explicit(&stripe->its.bytes[1], memory_order_relaxed);
}

static uint64_t noted_keys_of(const struct window_stripe *stripe)
{
    return atomic_load_explicit(&stripe->its.keys[0], memory_order_relaxed) +
           atomic_load_explicit(&stripe->its.keys[1], memory_order_relaxed);
}

static void begin_age(struct noted_share *its, uint64_t mark, bool keeps_last)
{
    atomic_store_explicit(&its->bytes[1], keeps_last ? its->bytes[0] : 0, memory_order_relaxed);
    atomic_store_explicit(&its->keys[1], keeps_last ? its->keys[0] : 0, memory_order_relaxed);
    atomic_store_explicit(&its->bytes[0], 0, memory_order_relaxed);
    atomic_store_explicit(&its->keys[0], 0, memory_order_relaxed);
    its->mark = mark;
}

/* A step at the end of a key becomes one of a record. */
static void put_step(struct putting *putting, const struct noted_step *step, bool exists)
{
    struct access *access = putting->access;
    const struct key key = {step->name, step->hash};
    const struct merge_item item = {.words = step->words};
    struct key_undo *undo = step->undo.size != 0 ? key_undo_of_image(step->undo.data) : NULL;
    struct window_key *known = find(putting->stripe, step->db, &key);
    struct merge_entry *entry;

    if (known == NULL) {
        const struct merge_record record = {.base_place = step->base,
                                            .base_overwrote = step->base_overwrote,
                                            .value = window_value(step->existed)};

        known = window_add(access, step->db, &key, &record);
    }
    entry = merge_entry_create(step->place.origin, step->place.stamp, step->previous, step->wall, false, &item, 1);
    merge_record_ran(&known->record, &entry->ops[0], (struct merge_undo *)undo, !step->existed, window_value(exists));
    window_appended(access, known);
}

static void put_noted(const struct noted_step *step, void *context)
{
    struct putting *putting = context;

    if (step->place.stamp > putting->settled)
        put_step(putting, step, true);
    else if (step->owns) /* the next one of its key has it as its base */
        release_noted(step, putting->access);
}

/* Somebody asks for a record. */
static COLD void put_all(struct access *access, struct window_stripe *stripe)
{
    struct window *window = access->store->window;
    struct putting putting = {access, stripe, noted_end(access)};

    stripe->noted_last = 0;
    begin_age(&stripe->its, 0, false);
    noted_steps_take(&window->noted, (uint32_t)(stripe - window->stripes), put_noted, &putting);
}

static inline bool has_noted(const struct access *access, const struct window_stripe *stripe)
{
    return stripe->noted_last > noted_end(access);
}

static inline void put_if_any(struct access *access, struct window_stripe *stripe)
{
    if (UNLIKELY(has_noted(access, stripe)))
        put_all(access, stripe);
}

struct window_key *window_find(struct access *access, unsigned db, const struct key *key)
{
    struct window_stripe *stripe = stripe_of(access, key);

    put_if_any(access, stripe);
    return find(stripe, db, key);
}

struct window_key *window_find_for_step(struct access *access, unsigned db, const struct key *key)
{
    return find(stripe_of(access, key), db, key);
}

/* Its last operation was a step that is not settled. */
static bool may_be_noted(const struct access *access, uint64_t version)
{
    return version != 0 && !version_overwrote(version) && version_stamp(version) > noted_end(access);
}

struct window_key *window_find_for_overwriting(struct access *access, unsigned db, const struct key *key,
                                               uint64_t version)
{
    struct window_stripe *stripe = stripe_of(access, key);

    if (UNLIKELY(has_noted(access, stripe)) && may_be_noted(access, version))
        put_all(access, stripe);
    return find(stripe, db, key);
}

static ALWAYS_INLINE struct noted_step make_noted(unsigned db, const struct key *key, const struct noted_base *base,
                                                  const struct window_step *step, uint64_t end)
{
    return (struct noted_step){.place = step->place,
                               .base = base->place,
                               .previous = step->previous,
                               .wall = step->wall,
                               .hash = key->hash,
                               .db = db,
                               .base_overwrote = base->overwrote,
                               .existed = base->exists,
                               .is_first = base->overwrote || base->place.stamp <= end,
                               .owns = step->undo.size != 0 && key_undo_image_owns(step->undo.data),
                               .name = key->name,
                               .words = step->words,
                               .undo = step->undo};
}

/* One behind which its key is missing is a tombstone when it is settled, so it is never only noted; nor one that is not
 * younger than what was given up. */
static NOINLINE void put_at_once(struct access *access, struct window_stripe *stripe, unsigned db,
                                 const struct key *key, const struct noted_base *base, const struct window_step *step)
{
    const struct noted_step noted = make_noted(db, key, base, step, 0);
    struct putting putting = {access, stripe, 0};

    put_if_any(access, stripe);
    put_step(&putting, &noted, step->exists);
}

static ALWAYS_INLINE void note_step(struct access *access, struct window_stripe *stripe, unsigned db,
                                    const struct key *key, const struct noted_base *base,
                                    const struct window_step *step)
{
    struct window *window = access->store->window;
    const uint32_t index = (uint32_t)key->hash & access->store->stripe_mask;
    const uint64_t end = noted_end(access);
    struct noted_step noted;

    if (UNLIKELY(!step->exists || step->place.stamp <= end)) {
        put_at_once(access, stripe, db, key, base, step);
        return;
    }
    if (UNLIKELY(stripe->its.mark <= end))
        begin_age(&stripe->its, step->place.stamp, stripe->noted_last > end);
    noted_add_count(&stripe->its.keys[0], base->overwrote || base->place.stamp <= end);
    stripe->noted_last = MAX(stripe->noted_last, step->place.stamp);
    noted = make_noted(db, key, base, step, end);
    noted_add_count(&stripe->its.bytes[0], noted_steps_add(&window->noted, index, &noted, end, release_noted, access));
    if (UNLIKELY(atomic_load_explicit(&stripe->its.bytes[0], memory_order_relaxed) > NOTED_MOST_BYTES / 2))
        put_all(access, stripe);
}

void window_note(struct access *access, unsigned db, const struct key *key, const struct merge_record *base,
                 const struct window_step *step)
{
    struct window_stripe *stripe = stripe_of(access, key);

    debug_assert(find(stripe, db, key) == NULL);
    note_step(access, stripe, db, key,
              &(struct noted_base){base->base_place, base->base_overwrote, base->value != NULL}, step);
}

static NOINLINE void note_unversioned(struct access *access, struct window_stripe *stripe, unsigned db,
                                      const struct key *key, bool existed, const struct window_step *step)
{
    struct merge_record base;

    window_base(access, db, existed, 0, &base);
    note_step(access, stripe, db, key, &(struct noted_base){base.base_place, base.base_overwrote, base.value != NULL},
              step);
}

struct window_key *window_note_own(struct access *access, unsigned db, const struct key *key, uint64_t version,
                                   bool existed, const struct window_step *step)
{
    struct window_stripe *stripe = stripe_of(access, key);
    struct window_key *known = find(stripe, db, key);

    if (known != NULL)
        return known;
    if (UNLIKELY(version == 0))
        note_unversioned(access, stripe, db, key, existed, step);
    else
        note_step(access, stripe, db, key,
                  &(struct noted_base){place_of_version(access, version), version_overwrote(version), existed}, step);
    return NULL;
}

void window_settle_noted(struct access *access)
{
    struct noted_steps *noted = &access->store->window->noted;

    (void)noted_steps_drop(noted, noted_end(access), release_noted, access);
    noted_steps_trim(noted);
    lazyfree_after_release(access);
}

uint64_t window_oldest_noted(const struct store *store)
{
    return noted_steps_oldest(&store->window->noted);
}

uint64_t window_give_up_noted(struct access *access, uint64_t stamp)
{
    struct window *window = access->store->window;
    uint64_t count;

    if (stamp > atomic_load_explicit(&window->given_up, memory_order_relaxed))
        atomic_store_explicit(&window->given_up, stamp, memory_order_relaxed);
    count = noted_steps_drop(&window->noted, stamp, release_noted, access);
    lazyfree_after_release(access);
    atomic_fetch_add_explicit(&window->given_up_keys, count, memory_order_relaxed);
    return count;
}

bool window_is_wasteful(const struct store *store)
{
    const struct noted_steps *noted = &store->window->noted;

    return noted_steps_taken_bytes(noted) > noted_steps_bytes(noted) / 4;
}

bool window_has_noted(const struct store *store, uint32_t stripe)
{
    return noted_bytes_of(&store->window->stripes[stripe]) != 0;
}

void window_put_noted(struct access *access, uint32_t stripe)
{
    put_if_any(access, stripe_at(access, stripe));
}

/* ------------------------------------------------------------------------------------------------- many of them -- */

void window_each(struct access *access, uint32_t stripe_index,
                 void (*visit)(struct access *access, struct window_key *known, void *context), void *context)
{
    struct window_stripe *stripe = stripe_at(access, stripe_index);

    put_if_any(access, stripe);
    window_each_lasting(access, stripe_index, visit, context);
}

void window_each_lasting(struct access *access, uint32_t stripe_index,
                         void (*visit)(struct access *access, struct window_key *known, void *context), void *context)
{
    struct window_stripe *stripe = stripe_at(access, stripe_index);

    LIST_FOREACH_SAFE(node, &stripe->dirty)
        visit(access, container_of(node, struct window_key, node), context);
    LIST_FOREACH_SAFE(node, &stripe->by_change)
        visit(access, container_of(node, struct window_key, node), context);
}

static void forget_of_db(struct access *access, struct window_key *known, void *context)
{
    if (known->db == *(const unsigned *)context)
        window_remove(access, &known);
}

void window_forget_db(struct access *access, unsigned db)
{
    gate_assert_alone();
    if (access->store->window == NULL)
        return;
    for (uint32_t i = 0; i <= access->store->stripe_mask; i++)
        window_each(access, i, forget_of_db, &db);
    if (is_library(access, db))
        atomic_store_explicit(&access->store->window->newest_library, 0, memory_order_relaxed);
}

uint64_t window_newest_library(const struct store *store)
{
    return store->window != NULL ? atomic_load_explicit(&store->window->newest_library, memory_order_relaxed) : 0;
}

uint64_t window_oldest(const struct store *store, uint32_t stripe)
{
    return atomic_load_explicit(&store->window->stripes[stripe].oldest, memory_order_relaxed);
}

bool window_has_settled(const struct store *store, uint32_t stripe)
{
    const uint64_t oldest = window_oldest(store, stripe);

    return oldest != 0 && oldest <= horizon_frontier(&store->horizon);
}

bool window_has_dirty(const struct store *store, uint32_t stripe)
{
    return atomic_load_explicit(&store->window->stripes[stripe].dirty_count, memory_order_relaxed) != 0;
}

/* The oldest keys were not touched for long: the memory of many is fetched at once. */
static void fetch_settled(const struct window_stripe *stripe, uint64_t frontier, uint32_t count)
{
    const struct window_key *keys[SETTLE_BATCH];
    uint32_t found = 0;

    LIST_FOREACH(node, &stripe->by_change) {
        const struct window_key *known = container_of(node, struct window_key, node);

        if (found == MIN(count, (uint32_t)SETTLE_BATCH) || known->linked > frontier)
            break;
        keys[found++] = known;
        __builtin_prefetch((const char *)known + CACHE_LINE_BYTES);
        __builtin_prefetch((const char *)known + 2 * CACHE_LINE_BYTES);
        table_prefetch_bucket(&stripe->keys, known->hash);
    }
    for (uint32_t i = 0; i < found; i++) {
        const struct merge_record *record = &keys[i]->record;

        if (record->count == 0)
            continue;
        __builtin_prefetch(record->steps[0].op);
        __builtin_prefetch((const char *)record->steps[0].op - CACHE_LINE_BYTES, 1);
        if (record->steps[0].undo != NULL)
            __builtin_prefetch(record->steps[0].undo, 1);
    }
}

bool window_settle(struct access *access, uint32_t stripe_index, uint32_t most)
{
    struct window_stripe *stripe = stripe_at(access, stripe_index);
    const uint64_t frontier = horizon_frontier(&access->store->horizon);
    struct list_node *first;
    uint64_t until, settled;
    uint32_t fetched = 0;

    for (; (first = list_first(&stripe->by_change)) != NULL; most--) {
        struct window_key *known = container_of(first, struct window_key, node);

        if (known->linked > frontier)
            return false;
        if (most == 0)
            return true;
        if (fetched-- == 0) {
            fetch_settled(stripe, frontier, most);
            fetched = SETTLE_BATCH - 1;
        }
        if (merge_record_last(&known->record).stamp > frontier) {
            relink(stripe, known);
            continue;
        }
        until = settles_until(access, &known->record);
        settled = until != frontier ? settled_bytes(&known->record, until) : 0;
        if (settle_key(access, stripe, &known, until))
            continue;
        if (until == frontier)
            panic("A record that is settled stays");
        recount(stripe, known, MAX(known->bytes, settled) - settled);
        return true;
    }
    return false;
}

static uint64_t bytes_of(const struct window_stripe *stripe)
{
    return atomic_load_explicit(&stripe->bytes, memory_order_relaxed) + noted_bytes_of(stripe);
}

bool window_has_grown(const struct store *store, uint32_t stripe_index)
{
    const struct window_stripe *stripe = &store->window->stripes[stripe_index];
    const uint64_t joined = atomic_load_explicit(&stripe->bytes_joined, memory_order_relaxed);

    return bytes_of(stripe) > joined + joined / 4 + GROWN_BYTES;
}

bool window_may_join(const struct store *store, uint32_t stripe_index)
{
    const struct window_stripe *stripe = &store->window->stripes[stripe_index];

    return atomic_load_explicit(&stripe->has_unjoined, memory_order_relaxed) ||
           bytes_of(stripe) != atomic_load_explicit(&stripe->bytes_joined, memory_order_relaxed);
}

struct join_visit {
    struct window_model model;
    struct window_stripe *stripe;
    uint64_t until;
    bool has_left; /* steps that were not looked at and may be joined */
};

static void join_key(struct window_key *known, struct join_visit *visit)
{
    struct merge_record *record = &known->record;
    uint64_t joined;

    if (record->count < JOIN_LEAST && record->older == NULL)
        return;
    visit->model.name = slice_make(known->name, known->name_size);
    joined = merge_record_join(record, visit->until, JOIN_MOST, &visit->model.model);
    if (joined != 0 || merge_record_last(record).stamp > visit->until)
        visit->has_left = true;
    if (joined == 0)
        return;
    recount(visit->stripe, known, count_bytes(known));
    add(&visit->stripe->joined, joined);
}

void window_join(struct access *access, uint32_t stripe_index, uint64_t until)
{
    struct window_stripe *stripe = stripe_at(access, stripe_index);
    struct join_visit visit = {.stripe = stripe, .until = until};

    if (touch_of == NULL)
        return;
    window_model_init(&visit.model, access);
    if (noted_bytes_of(stripe) > noted_keys_of(stripe) * NOTED_KEY_BYTES)
        put_if_any(access, stripe);
    LIST_FOREACH(node, &stripe->by_change)
        join_key(container_of(node, struct window_key, node), &visit);
    LIST_FOREACH(node, &stripe->dirty)
        join_key(container_of(node, struct window_key, node), &visit);
    atomic_store_explicit(&stripe->bytes_joined, bytes_of(stripe), memory_order_relaxed);
    atomic_store_explicit(&stripe->has_unjoined, visit.has_left, memory_order_relaxed);
}

uint64_t window_give_up_lists(struct access *access, uint32_t stripe_index, uint64_t stamp)
{
    struct window_stripe *stripe = stripe_at(access, stripe_index);
    struct window_model model;
    uint64_t count = 0;

    window_model_init(&model, access);
    LIST_FOREACH_SAFE(node, &stripe->by_change) {
        struct window_key *known = container_of(node, struct window_key, node);

        if (known->record.count == 0 || merge_record_last(&known->record).stamp > stamp)
            continue;
        merge_record_forget_list(&known->record, &model.model);
        count++;
        if (is_needed(known))
            recount(stripe, known, count_bytes(known)); /* it keeps its place */
        else
            remove_known(access, stripe, &known);
    }
    note_oldest(stripe);
    add(&stripe->given_up, count);
    return count;
}

uint64_t window_give_up_tombstones(struct access *access, uint32_t stripe_index, uint64_t stamp)
{
    struct window_stripe *stripe = stripe_at(access, stripe_index);
    uint64_t count = 0;

    horizon_raise_floor(&access->store->horizon, stamp);
    LIST_FOREACH_SAFE(node, &stripe->by_change) {
        struct window_key *known = container_of(node, struct window_key, node);

        if (!is_tombstone(known) || known->record.base_place.stamp > stamp)
            continue;
        remove_known(access, stripe, &known);
        count++;
    }
    add(&stripe->given_up, count);
    return count;
}

/* --------------------------------------------------------------------------------------- one moment of all of it -- */

void window_leave(struct access *access, uint32_t stripe)
{
    access_assert_holds(access, stripe);
    if (access->store->window != NULL)
        (void)stripe_at(access, stripe);
}

void window_keep(struct store *store, struct window_keeper *keeper)
{
    struct window *window = store->window;

    gate_assert_alone();
    assert(atomic_load_explicit(&window->keeper, memory_order_relaxed) == NULL);
    for (uint32_t i = 0; i <= store->stripe_mask; i++)
        window->stripes[i].is_left = false;
    atomic_store_explicit(&window->keeper, keeper, memory_order_relaxed);
}

void window_keep_end(struct store *store)
{
    atomic_store_explicit(&store->window->keeper, NULL, memory_order_relaxed);
}

void window_totals(const struct store *store, struct window_totals *totals)
{
    const struct window *window = atomic_load_explicit(&store->window, memory_order_acquire);

    *totals = (struct window_totals){0};
    if (window == NULL)
        return;
    for (uint32_t i = 0; i <= store->stripe_mask; i++) {
        const struct window_stripe *stripe = &window->stripes[i];

        totals->bytes += atomic_load_explicit(&stripe->bytes, memory_order_relaxed);
        totals->tombstones += atomic_load_explicit(&stripe->tombstones, memory_order_relaxed);
        totals->tombstone_bytes += atomic_load_explicit(&stripe->tombstone_bytes, memory_order_relaxed);
        totals->dirty += atomic_load_explicit(&stripe->dirty_count, memory_order_relaxed);
        totals->given_up += atomic_load_explicit(&stripe->given_up, memory_order_relaxed);
        totals->joined += atomic_load_explicit(&stripe->joined, memory_order_relaxed);
        totals->keys += table_count(&stripe->keys);
    }
    totals->keys += noted_steps_keys(&window->noted);
    totals->bytes += noted_steps_bytes(&window->noted);
    totals->given_up += atomic_load_explicit(&window->given_up_keys, memory_order_relaxed);
}
