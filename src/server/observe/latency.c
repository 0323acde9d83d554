#include "server/observe/latency.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/gate.h"
#include "base/spinlock.h"

#include <stdatomic.h>
#include <string.h>

static const char *const names[LATENCY_EVENT_COUNT] = {
    [LATENCY_COMMAND] = "command",
    [LATENCY_FAST_COMMAND] = "fast-command",
    [LATENCY_EXPIRE_CYCLE] = "expire-cycle",
    [LATENCY_EVICTION_CYCLE] = "eviction-cycle",
    [LATENCY_EVICTION_DEL] = "eviction-del",
    [LATENCY_FORK] = "fork",
    [LATENCY_ACTIVE_DEFRAG_CYCLE] = "active-defrag-cycle",
};

struct ring {
    struct latency_sample samples[LATENCY_SAMPLES];
    size_t next, count;
    int64_t worst_ms;
};

static struct {
    _Atomic int64_t threshold_ms; /* atomic, relaxed */
    struct spinlock lock;         /* rank LOCK_REGISTRY */
    struct ring rings[LATENCY_EVENT_COUNT] GUARDED_BY(lock);
} latency;

void latency_setup(void)
{
    gate_assert_main_alone();
    spinlock_init(&latency.lock, LOCK_REGISTRY);
}

void latency_set_threshold(int64_t ms)
{
    assert(ms >= 0);
    atomic_store_explicit(&latency.threshold_ms, ms, memory_order_relaxed);
}

int64_t latency_threshold(void)
{
    return atomic_load_explicit(&latency.threshold_ms, memory_order_relaxed);
}

void latency_add(enum latency_event event, int64_t ms)
{
    const int64_t threshold = latency_threshold();
    struct ring *ring = &latency.rings[event];
    struct latency_sample *last;
    int64_t now_s;

    assert(event < LATENCY_EVENT_COUNT);
    if (threshold == 0 || ms < threshold)
        return;
    now_s = clock_wall_us() / 1000000;
    spinlock_acquire(&latency.lock);
    assert(ring->next < LATENCY_SAMPLES && ring->count <= LATENCY_SAMPLES);
    last = &ring->samples[(ring->next + LATENCY_SAMPLES - 1) % LATENCY_SAMPLES];
    ring->worst_ms = MAX(ring->worst_ms, ms);
    if (ring->count != 0 && last->time_s == now_s) {
        last->ms = MAX(last->ms, ms);
    } else {
        ring->samples[ring->next] = (struct latency_sample){now_s, ms};
        ring->next = (ring->next + 1) % LATENCY_SAMPLES;
        ring->count = MIN(ring->count + 1, (size_t)LATENCY_SAMPLES);
    }
    spinlock_release(&latency.lock);
}

const char *latency_event_name(enum latency_event event)
{
    assert(event < LATENCY_EVENT_COUNT);
    return names[event];
}

bool latency_find_event(struct slice name, enum latency_event *event)
{
    for (unsigned i = 0; i < LATENCY_EVENT_COUNT; i++) {
        if (slice_equal_text(name, names[i])) {
            *event = (enum latency_event)i;
            return true;
        }
    }
    return false;
}

void latency_read(enum latency_event event, struct latency_history *history)
{
    const struct ring *ring = &latency.rings[event];

    assert(event < LATENCY_EVENT_COUNT);
    spinlock_acquire(&latency.lock);
    history->count = ring->count;
    history->worst_ms = ring->worst_ms;
    for (size_t i = 0; i < ring->count; i++)
        history->samples[i] = ring->samples[(ring->next + LATENCY_SAMPLES - ring->count + i) % LATENCY_SAMPLES];
    spinlock_release(&latency.lock);
}

bool latency_reset(enum latency_event event)
{
    struct ring *ring = &latency.rings[event];
    bool was_used;

    assert(event < LATENCY_EVENT_COUNT);
    spinlock_acquire(&latency.lock);
    was_used = ring->count != 0;
    memset(ring, 0, sizeof(*ring));
    spinlock_release(&latency.lock);
    return was_used;
}
