#include "server/run/reentrant.h"

#include "base/mem.h"
#include "server/core/worker.h"
#include "server/durable/aof_hold.h"
#include "server/run/rendezvous.h"

/* What a command under way has in its worker, put aside. Everything that points into the worker points to the right
 * things again once it is put back. */
struct aside {
    struct access access;
    struct effects effects;
    const struct request *running;
    struct resp_scratch scratch;
    struct job jobs[GROUP_MOST];
    struct key_positions positions;
    struct key *keys;
    uint32_t key_count, key_capacity;
    uint32_t *stripes;
    uint32_t stripe_count, stripe_capacity;
};

static void put_aside(struct worker *worker, struct aside *aside)
{
    aside->access = worker->access;
    aside->effects = worker->effects;
    aside->running = worker->running;
    aside->scratch = worker->scratch;
    memcpy(aside->jobs, worker->jobs, sizeof(aside->jobs));
    aside->positions = worker->positions;
    aside->keys = worker->keys;
    aside->key_count = worker->key_count;
    aside->key_capacity = worker->key_capacity;
    aside->stripes = worker->stripes;
    aside->stripe_count = worker->stripe_count;
    aside->stripe_capacity = worker->stripe_capacity;
    worker->access.garbage = NULL;
    worker->access.ready = worker->access.ready_last = NULL;
    worker->access.has_noted = false; /* what the command under way has noted so far waits with it */
    worker->effects = (struct effects){0};
    worker->scratch = (struct resp_scratch){0};
    worker->positions = (struct key_positions){0};
    worker->keys = NULL;
    worker->key_count = worker->key_capacity = 0;
    worker->stripes = NULL;
    worker->stripe_count = worker->stripe_capacity = 0;
}

static void put_back(struct worker *worker, struct aside *aside)
{
    effects_fini(&worker->effects);
    resp_scratch_fini(&worker->scratch);
    key_positions_fini(&worker->positions);
    mem_free(worker->keys);
    mem_free(worker->stripes);
    worker->access = aside->access;
    worker->effects = aside->effects;
    worker->running = aside->running;
    worker->scratch = aside->scratch;
    memcpy(worker->jobs, aside->jobs, sizeof(aside->jobs));
    worker->positions = aside->positions;
    worker->keys = aside->keys;
    worker->key_count = aside->key_count;
    worker->key_capacity = aside->key_capacity;
    worker->stripes = aside->stripes;
    worker->stripe_count = aside->stripe_count;
    worker->stripe_capacity = aside->stripe_capacity;
}

void reentrant_serve(struct worker *worker)
{
    struct aside aside;

    put_aside(worker, &aside);
    worker->reentrant = true;
    if (aof_hold_is_on())
        aof_hold_turn(worker); /* it sends what was written so far */
    worker_serve_requests(worker);
    rendezvous_serve(worker);
    loop_serve_reentrant(worker->loop);
    worker->reentrant = false;
    put_back(worker, &aside);
}
