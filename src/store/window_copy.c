#include "store/window_copy.h"

#include "base/array.h"
#include "base/mem.h"
#include "store/lookup.h"
#include "store/snapshot_large.h"
#include "store/snapshot_live.h"
#include "store/snapshot_string.h"
#include "store/undo_priv.h"
#include "store/window.h"

#include <string.h>

/* A store of one stripe and one key, whose lock guards all of this. It has the rank of stripes: nobody who holds it
 * takes another one. */
struct window_copy {
    struct store *store; /* const */
    struct access access;
    struct store_counters counters;
    struct {
        struct key_undo **items;
        uint32_t count, capacity;
    } undos; /* of the steps, from the oldest on */
};

/* Its name is not that of the key that it stands for. */
static struct key key_of(void)
{
    return key_make(SLICE("value"));
}

struct window_copy *window_copy_create(const struct store *of)
{
    struct window_copy *copy = mem_alloc_zero(sizeof(*copy));

    copy->store = store_create(1, 1);
    memcpy(copy->store->types, of->types, sizeof(of->types));
    access_init(&copy->access, copy->store, &copy->counters);
    copy->access.is_script = true; /* nothing waits until a stripe is released */
    return copy;
}

void window_copy_destroy(struct window_copy **handle)
{
    struct window_copy *copy = *handle;

    gate_assert_alone();
    *handle = NULL;
    if (copy == NULL)
        return;
    ARRAY_FINI(&copy->undos);
    store_destroy(&copy->store);
    mem_free(copy);
}

/* What is to be taken back. Returns whether that needs the value that the key has now. */
static bool gather(struct window_copy *copy, const struct merge_record *record)
{
    struct merge_spot spot = {0, 0};

    copy->undos.count = 0;
    for (const struct merge_step *step; (step = merge_record_next(record, &spot)) != NULL;) {
        struct key_undo *undo = (struct key_undo *)step->undo;

        if (undo == NULL)
            continue;
        *ARRAY_PUSH(&copy->undos) = undo;
        if (key_undo_is_whole(undo))
            return false;
    }
    return true;
}

static void put(struct window_copy *copy, const struct entry *entry)
{
    const struct key key = key_of();
    struct change change;

    change_begin(&change, &copy->access, 0, &key);
    change_copy_value(&change, entry, entry_expire_ms(entry));
    change_end(&change, EVENT_GENERIC, NULL);
}

/* What takes back is the list's, too, so that it is not spent. */
static void take_back(struct window_copy *copy)
{
    const struct key key = key_of();

    for (uint32_t i = copy->undos.count; i-- != 0;) {
        struct key_undo *undo = key_undo_acquire(copy->undos.items[i]);

        undo_apply(&copy->access, 0, &key, undo);
        key_undo_release(&copy->access, &undo);
    }
}

static struct entry *look(const struct window_copy *copy)
{
    const struct key key = key_of();

    return lookup_in_table(&stripe_db(&copy->store->stripes[0], 0)->keys, &key);
}

static void enter(struct window_copy *copy) NO_THREAD_SAFETY_ANALYSIS
{
    spinlock_acquire(&copy->store->stripes[0].lock);
    access_begin(&copy->access, 0, false); /* before all deadlines */
    assert(look(copy) == NULL);
}

const struct entry *window_copy_base(struct window_copy *copy, struct access *access, const struct window_key *known)
{
    const struct key key = window_name(known);
    const struct entry *entry = lookup_raw(access, known->db, &key);

    access_assert_holds(access, access_stripe_of(access, &key));
    enter(copy);
    if (gather(copy, &known->record) && entry != NULL)
        put(copy, entry);
    take_back(copy);
    return look(copy);
}

void window_copy_release(struct window_copy *copy) NO_THREAD_SAFETY_ANALYSIS
{
    if (look(copy) != NULL) {
        const struct key key = key_of();
        struct change change;

        change_begin(&change, &copy->access, 0, &key);
        change_delete(&change);
        change_end(&change, EVENT_GENERIC, NULL);
    }
    spinlock_release(&copy->store->stripes[0].lock);
}

/* ------------------------------------------------------------------------------------------- large values -- */

static bool suits(const struct store *store, const struct entry *entry)
{
    return entry != NULL && (entry->type == TYPE_STRING ? long_string_suits(entry) : large_suits(store, entry));
}

/* The value to begin with: the key's, or one that it had. NULL: it is no large one. */
static const struct entry *find_large(const struct window_copy *copy, struct access *access,
                                      const struct window_key *known, bool needs_key)
{
    const struct key key = window_name(known);
    const struct entry *entry;

    if (needs_key)
        entry = lookup_raw(access, known->db, &key);
    else
        entry = copy->undos.items[copy->undos.count - 1]->whole;
    return suits(access->store, entry) ? entry : NULL;
}

static void copy_steps(const struct window_copy *copy, struct buffer *steps)
{
    for (uint32_t i = 0; i < copy->undos.count; i++)
        buffer_append(steps, copy->undos.items[i]->steps, copy->undos.items[i]->steps_size);
}

static void move_steps(struct buffer *from, struct buffer *to)
{
    *to = *from;
    *from = (struct buffer){0};
}

static bool is_taken_back(const struct store *store, const struct entry *entry, struct slice steps)
{
    return entry->type != TYPE_STRING && former_takes_back(store->types[entry->type].ops, entry_value(entry), steps);
}

static int64_t deadline_before(struct slice steps, int64_t expire_ms)
{
    struct value_step step;

    while (value_steps_take(&steps, &step)) {
        if (step.kind == UNDO_STEP_DEADLINE)
            expire_ms = (int64_t)step.a;
    }
    return expire_ms;
}

struct live_earlier *window_copy_leave(struct window_copy *copy, struct access *access, const struct window_key *known,
                                       struct live_snapshot *live, int64_t *expire_ms,
                                       struct buffer *back) NO_THREAD_SAFETY_ANALYSIS
{
    const struct key key = window_name(known);
    const uint32_t stripe = access_stripe_of(access, &key);
    struct live_earlier *earlier = NULL;
    struct buffer steps = {0};
    const struct entry *entry;

    assert(back->size == 0);
    access_assert_holds(access, stripe);
    spinlock_acquire(&copy->store->stripes[0].lock);
    entry = find_large(copy, access, known, gather(copy, &known->record));
    if (entry != NULL) {
        copy_steps(copy, &steps);
        *expire_ms = deadline_before(buffer_slice(&steps), entry_expire_ms(entry));
        if (!is_taken_back(access->store, entry, buffer_slice(&steps)))
            move_steps(&steps, back);
        earlier = live_leave_earlier(live, &access->store->stripes[stripe], known->db, entry, &steps);
    }
    spinlock_release(&copy->store->stripes[0].lock);
    buffer_fini(&steps);
    return earlier;
}

const struct entry *window_copy_rebuild(struct window_copy *copy, void (*fill)(struct change *change, void *context),
                                        void *context, struct slice steps)
{
    const struct key key = key_of();
    struct key_undo *undo = mem_alloc_zero(sizeof(*undo) + steps.size);
    struct change change;

    undo->references = 1;
    undo->steps_size = steps.size;
    memcpy(undo->steps, steps.data, steps.size);
    enter(copy);
    change_begin(&change, &copy->access, 0, &key);
    fill(&change, context);
    change_end(&change, EVENT_GENERIC, NULL);
    undo_apply(&copy->access, 0, &key, undo);
    mem_free_sized(undo, sizeof(*undo) + undo->steps_size);
    return look(copy);
}
