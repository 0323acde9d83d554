#include "server/run/batch.h"

#include "server/core/server.h"
#include "server/run/pause.h"
#include "store/access.h"
#include "store/waiters.h"

#include <stdlib.h>

void batch_init(struct batch *batch, struct worker *worker, enum gate_wish wish)
{
    worker_assert_self(worker);
    *batch = (struct batch){.worker = worker, .stripe_mask = worker->server->store->stripe_mask, .wish = wish};
}

void batch_fini(struct batch *batch)
{
    batch_drop(batch);
    ARRAY_FINI(&batch->stripes);
}

/* ----------------------------------------------------------------------------------------------------- its keys -- */

void batch_need_gate(struct batch *batch)
{
    batch->needs_gate = true;
}

void batch_clear(struct batch *batch)
{
    assert(batch->state == BATCH_OPEN);
    for (uint32_t i = 0; i < batch->stripes.count; i++)
        batch->known[batch->stripes.items[i] / 64] = 0;
    batch->stripes.count = 0;
    batch->needs_gate = false;
}

static int compare_stripes(const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;

    return (first > second) - (first < second);
}

static void arrange_stripes(struct batch *batch)
{
    const uint32_t words = batch->stripe_mask / 64 + 1;
    uint32_t count = 0;

    if (batch->stripes.count == 0)
        return;                             /* there may be no array */
    if (batch->stripes.count < words / 8) { /* to look at each word would take longer */
        qsort(batch->stripes.items, batch->stripes.count, sizeof(uint32_t), compare_stripes);
        return;
    }
    for (uint32_t i = 0; i < words; i++) {
        for (uint64_t bits = batch->known[i]; bits != 0; bits &= bits - 1)
            batch->stripes.items[count++] = i * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    assert(count == batch->stripes.count);
}

/* ------------------------------------------------------------------------------------------------------- taking -- */

static bool is_held(const struct batch *batch)
{
    return UNLIKELY(atomic_load_explicit(&batch->worker->server->journal.is_lagging, memory_order_relaxed) ||
                    (pause_is_on() && pause_holds_writes()));
}

/* What was asked before it was inside of the gate may have changed: all of these ask again. */

static bool take_gate(struct batch *batch)
{
    struct worker *worker = batch->worker;

    if (!exclusive_begin(worker, batch->wish))
        return false;
    if (is_held(batch)) {
        exclusive_end(worker);
        return false;
    }
    worker->run.access.exclusive = true;
    batch->state = BATCH_ALONE;
    return true;
}

static bool lock_stripes(struct batch *batch)
{
    struct worker *worker = batch->worker;
    struct access *access = &worker->run.access;
    uint32_t busy = 0;

    if (!gate_enter(&worker->member))
        return false;
    access->exclusive = false;
    arrange_stripes(batch);
    while (!access_lock(access, batch->stripes.items, batch->stripes.count, &busy)) {
        if (stripe_wait(&worker->server->store->stripes[busy], worker->index)) {
            gate_leave(&worker->member);
            return false;
        }
    }
    return true;
}

static void unlock_stripes(struct batch *batch)
{
    access_unlock(&batch->worker->run.access, batch->stripes.items, batch->stripes.count);
    gate_leave(&batch->worker->member);
}

static bool take_stripes(struct batch *batch)
{
    if (!lock_stripes(batch))
        return false;
    /* Clients that wait for a key to change another one: those who wait for ours came before we held its stripe. */
    if (waiters_have_needs(batch->worker->server->store)) {
        unlock_stripes(batch);
        batch->needs_gate = true;
        return take_gate(batch);
    }
    if (is_held(batch)) {
        unlock_stripes(batch);
        return false;
    }
    batch->state = BATCH_STRIPED;
    return true;
}

static bool wants_gate(const struct batch *batch)
{
    return batch->needs_gate || batch->stripes.count > BATCH_STRIPES_MOST ||
           exclusive_is_wished(batch->worker, batch->wish) || waiters_have_needs(batch->worker->server->store);
}

enum batch_state batch_take(struct batch *batch, bool prefers_gate)
{
    bool is_taken = false;

    worker_assert_outside(batch->worker);
    assert(batch->state == BATCH_OPEN || batch->state == BATCH_WAITS);
    batch->state = BATCH_WAITS;
    if (is_held(batch))
        exclusive_drop(batch->worker, batch->wish); /* nobody else shall wait meanwhile */
    else
        is_taken = prefers_gate || wants_gate(batch) ? take_gate(batch) : take_stripes(batch);
    assert(is_taken == (batch->state != BATCH_WAITS));
    if (is_taken)
        worker_assert_inside(batch->worker);
    return batch->state;
}

void batch_release(struct batch *batch)
{
    worker_assert_inside(batch->worker);
    assert(batch->state == BATCH_STRIPED || batch->state == BATCH_ALONE);
    if (batch->state == BATCH_ALONE)
        exclusive_end(batch->worker);
    else
        unlock_stripes(batch);
    batch->state = BATCH_OPEN;
}

void batch_drop(struct batch *batch)
{
    worker_assert_self(batch->worker);
    assert(batch->state == BATCH_OPEN || batch->state == BATCH_WAITS);
    exclusive_drop(batch->worker, batch->wish);
    batch->state = BATCH_OPEN;
}
