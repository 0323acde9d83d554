#include "server/run/wake_later.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "data/radix.h"
#include "net/loop.h"
#include "server/config/command_block.h"
#include "server/core/server.h"
#include "server/core/worker.h"
#include "server/run/dispatch.h"
#include "server/run/pause.h"
#include "store/waiters.h"

enum {
    HELD_MS = 1,      /* until the next try while another thread has the stripe */
    REFUSED_MS = 100, /* likewise, while writes may not be */
    SLEEP_MS = 24 * 60 * 60 * 1000
};

struct wake {
    struct mail mail; /* takes it to its worker */
    struct worker *worker;
    struct loop_timer timer;
    int64_t due_us; /* of the monotonic clock */
    bool is_done;   /* its key was touched */
    uint64_t hash;
    unsigned db;
    size_t size; /* of what follows: the database's number, and the name */
    char id[];
};

/* A worker's own thread's. */
static struct state {
    struct radix *wakes; /* database and name -> wake; NULL: there never was one */
} CACHE_ALIGNED states[WORKERS_MOST + 1];

static struct slice id_of(const struct wake *wake)
{
    return slice_make(wake->id, wake->size);
}

static struct key key_of(const struct wake *wake)
{
    return (struct key){slice_make(wake->id + sizeof(wake->db), wake->size - sizeof(wake->db)), wake->hash};
}

static struct wake *wake_create(struct worker *worker, unsigned db, const struct key *key)
{
    struct wake *wake = mem_alloc(sizeof(*wake) + sizeof(db) + key->name.size);

    *wake = (struct wake){.worker = worker, .hash = key->hash, .db = db, .size = sizeof(db) + key->name.size};
    memcpy(wake->id, &db, sizeof(db));
    if (key->name.size != 0)
        memcpy(wake->id + sizeof(db), key->name.data, key->name.size);
    return wake;
}

static bool may_serve(const struct worker *worker)
{
    return !worker->reentrant && !pause_is_on() && (command_blocks() & COMMAND_BLOCKS_OF_WRITES) == 0;
}

/* From here on there is none for the key: whoever is served in vain asks for another one. */
static void touch(struct worker *worker, void *context)
{
    struct wake *wake = context;
    struct access *access = &worker->run.access;
    const struct key key = key_of(wake);
    struct stripe *stripe = &access->store->stripes[access_stripe_of(access, &key)];

    worker_assert_inside(worker);
    if (!may_serve(worker)) /* since just now */
        return;
    wake->is_done = true;
    (void)radix_remove(states[worker->index].wakes, id_of(wake), NULL);
    if (stripe->registries != NULL)
        waiters_touch_key(access, stripe, wake->db, &key);
}

static void on_timer(struct loop *loop, struct loop_timer *timer);

static void start(struct wake *wake, int64_t after_us)
{
    struct loop *loop = wake->worker->loop;
    const int64_t late_us = clock_monotonic_us() - loop_now_us(loop); /* the loop's time is that of the turn */

    loop_timer_start(loop, &wake->timer, MAX(after_us + late_us, INT64_C(0)), on_timer);
}

static void on_timer(struct loop *loop, struct loop_timer *timer)
{
    struct wake *wake = container_of(timer, struct wake, timer);
    struct worker *worker = wake->worker;
    const struct key key = key_of(wake);

    (void)loop;
    worker_assert_outside(worker);
    if (!may_serve(worker)) {
        start(wake, REFUSED_MS * 1000);
        return;
    }
    if (!dispatch_serve_unasked(worker, &key, 1, touch, wake) || !wake->is_done) {
        start(wake, HELD_MS * 1000);
        return;
    }
    mem_free(wake);
    if (worker->has_deferred)
        worker_run_deferred(worker);
}

/* Takes it over; the worker's own thread. */
static void enroll(struct wake *made)
{
    struct state *mine = &states[made->worker->index];
    struct wake *wake = made;
    bool is_sooner = true;
    void *found = NULL;

    worker_assert_self(made->worker);
    if (mine->wakes == NULL)
        mine->wakes = radix_create();
    if (radix_find(mine->wakes, id_of(made), &found)) {
        wake = found;
        is_sooner = made->due_us < wake->due_us;
        wake->due_us = MIN(wake->due_us, made->due_us);
        mem_free(made);
    } else {
        radix_set(mine->wakes, id_of(made), made, NULL);
    }
    if (is_sooner)
        start(wake, wake->due_us - clock_monotonic_us());
}

static void deliver(struct worker *worker, struct mail *mail)
{
    struct wake *wake = container_of(mail, struct wake, mail);

    assert(wake->worker == worker);
    enroll(wake);
}

void wake_later(struct worker *worker, unsigned db, const struct key *key, int64_t after_ms)
{
    const bool is_loader = worker->index == WORKER_OF_LOADER;
    struct wake *wake = wake_create(is_loader ? &worker->server->workers[0] : worker, db, key);

    worker_assert_inside(worker);
    wake->due_us = clock_monotonic_us() + MIN(MAX(after_ms, INT64_C(0)), (int64_t)SLEEP_MS) * 1000;
    if (is_loader) { /* which does not live until then; worker 0 reads its mail ten times a second, or sooner */
        wake->mail.deliver = deliver;
        worker_post_quietly(wake->worker, &wake->mail);
    } else {
        enroll(wake);
    }
}

static void fini(struct worker *worker)
{
    struct state *mine = &states[worker->index];
    struct radix_iter iter;

    if (mine->wakes == NULL)
        return;
    radix_iter_init(&iter, mine->wakes);
    for (bool more = radix_seek(&iter, RADIX_FIRST, SLICE_EMPTY); more; more = radix_next(&iter))
        loop_timer_stop(worker->loop, &((struct wake *)iter.value)->timer);
    radix_iter_fini(&iter);
    radix_destroy(&mine->wakes, mem_free);
}

const struct lifecycle wake_later_lifecycle = {
    .worker_fini = fini,
};
