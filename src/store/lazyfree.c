#include "store/lazyfree.h"

#include "base/background.h"
#include "base/mem.h"
#include "store/journal_blob.h"
#include "store/snapshot_large.h"
#include "store/snapshot_string.h"
#include "store/subkey_ttl_priv.h"

enum {
    LARGE_BYTES = 1 << 18, /* of a blob */
    /* Of any other value. To wake the thread takes about as long as to free this many members: with fewer whoever sends
     * one DEL at a time would hold up his worker for longer, not shorter. */
    LONG_EFFORT = 128,
    SAMPLES = 5,     /* elements whose memory stands for all of a value */
    BOUND_SHARE = 4, /* of used memory: what may wait for the background thread */
    BOUND_LEAST = 64 << 20
};

/* Atomic, relaxed: objects that were handed to the background threads so far, and those they have freed. */
static _Atomic uint64_t submitted_count, done_count;
static _Atomic uint64_t pending_bytes; /* atomic: what is between them, estimated; the release of its decrease orders
                                        * it behind the memory that was freed */

void lazyfree_submit(uint64_t objects, uint64_t bytes, void (*run)(void *argument), void *argument)
{
    atomic_fetch_add_explicit(&submitted_count, objects, memory_order_relaxed);
    atomic_fetch_add_explicit(&pending_bytes, bytes, memory_order_relaxed);
    background_submit(BACKGROUND_FREE, run, argument);
}

void lazyfree_done(uint64_t objects, uint64_t bytes)
{
    mem_thread_publish(); /* used memory is less before what is pending is less */
    atomic_fetch_sub_explicit(&pending_bytes, bytes, memory_order_release);
    atomic_fetch_add_explicit(&done_count, objects, memory_order_relaxed);
}

uint64_t lazyfree_pending_bytes(void)
{
    return atomic_load_explicit(&pending_bytes, memory_order_acquire);
}

/* The value that reaches the bound still goes to the thread: one is never too large. */
static bool too_much_waits(void)
{
    return lazyfree_pending_bytes() >= MAX(mem_used() / BOUND_SHARE, (uint64_t)BOUND_LEAST);
}

void access_background_frees(uint64_t *pending, uint64_t *done)
{
    *done = atomic_load_explicit(&done_count, memory_order_relaxed); /* first: it never overtakes the other */
    *pending = atomic_load_explicit(&submitted_count, memory_order_relaxed) - *done;
}

/* A large value whose key has gone, or something else to do. */
struct access_garbage {
    struct access_garbage *next;
    void (*function)(struct access *access); /* not NULL: instead of the rest */
    struct access *access;
    bool in_background;
    void (*destroy)(struct value value);
    struct value value;
    uint64_t bytes; /* about */
};

static void garbage_free(struct access_garbage *garbage)
{
    garbage->destroy(garbage->value);
    mem_free(garbage);
}

static void garbage_job(void *argument)
{
    const struct access_garbage *garbage = argument;
    uint64_t bytes = garbage->bytes;

    garbage_free(argument);
    lazyfree_done(1, bytes);
}

static void garbage_end(struct access_garbage *garbage)
{
    if (garbage->function != NULL) {
        garbage->function(garbage->access);
        mem_free(garbage);
    } else if (garbage->in_background && !too_much_waits()) {
        lazyfree_submit(1, garbage->bytes, garbage_job, garbage);
    } else {
        garbage_free(garbage);
    }
}

struct access_garbage *lazyfree_of_garbage(struct access_garbage *garbage)
{
    spinlock_assert_may_sleep();
    while (garbage != NULL) {
        struct access_garbage *next = garbage->next;

        garbage_end(garbage);
        garbage = next;
    }
    return NULL;
}

static void free_large(struct access *access, enum free_reason reason, void (*destroy)(struct value value),
                       struct value value, uint64_t bytes)
{
    struct access_garbage *garbage = mem_alloc(sizeof(*garbage));

    *garbage = (struct access_garbage){
        .next = access->garbage,
        .in_background = (atomic_load_explicit(&access->store->frees_later, memory_order_relaxed) & reason) != 0,
        .destroy = destroy,
        .value = value,
        .bytes = bytes,
    };
    /* At the gate no stripe is held, and nothing is released in the end; a script may make garbage without end. */
    if (access->exclusive || access->is_script)
        garbage_end(garbage);
    else
        access->garbage = garbage;
}

void lazyfree_call(struct access *access, void (*function)(struct access *access))
{
    struct access_garbage *garbage = mem_alloc(sizeof(*garbage));

    *garbage = (struct access_garbage){.next = access->garbage, .function = function, .access = access};
    access->garbage = garbage;
}

static void blob_destroy(struct value value)
{
    struct blob *blob = value.data;

    journal_blob_release_value(&blob);
}

static void subkey_ttls_destroy(struct value value)
{
    subkey_ttl_free(value.data);
}

void lazyfree_of_subkey_ttls(struct access *access, struct subkey_ttls *lifetimes, enum free_reason reason)
{
    struct value value = {lifetimes, ENCODING_RAW};

    subkey_ttl_drop_view(access, lifetimes, reason);
    if (deadlines_count(&lifetimes->members) >= LONG_EFFORT)
        free_large(access, reason, subkey_ttls_destroy, value, deadlines_memory_bytes(&lifetimes->members, SAMPLES));
    else
        subkey_ttls_destroy(value);
}

void lazyfree_of_part(const struct change *change, const struct value_ops *ops, struct value part)
{
    access_assert_holds(change->access, change->stripe->index);
    if (ops->free_effort(part) >= LONG_EFFORT)
        free_large(change->access, FREE_SERVER_DEL, ops->destroy, part, ops->memory_bytes(part, SAMPLES));
    else
        ops->destroy(part);
}

void lazyfree_of_value(struct access *access, struct entry *entry, enum free_reason reason)
{
    struct blob *blob = entry_blob(entry);

    if (blob != NULL) {
        long_string_lose(access->store, blob);
        if (blob->capacity >= LARGE_BYTES)
            free_large(access, reason, blob_destroy, (struct value){blob, ENCODING_RAW}, blob_footprint(blob));
        else
            journal_blob_release_value(&blob);
    } else if (entry->type != TYPE_STRING) {
        const struct value_ops *ops = access->store->types[entry->type].ops;
        struct value value = entry_value(entry);
        struct subkey_ttls *lifetimes = NULL;

        if (UNLIKELY((entry->flags & ENTRY_MEMBERS) != 0)) {
            lifetimes = subkey_ttl_take(entry);
            subkey_ttl_drop_view(access, lifetimes, reason);
        }
        if (!large_take(access->store, value)) { /* else both are freed when snapshots have it, maybe at once */
            if (ops->free_effort(value) >= LONG_EFFORT)
                free_large(access, reason, ops->destroy, value, ops->memory_bytes(value, SAMPLES));
            else
                ops->destroy(value);
            if (UNLIKELY(lifetimes != NULL))
                lazyfree_of_subkey_ttls(access, lifetimes, reason);
        }
    }
}
