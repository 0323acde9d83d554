#include "server/run/reentrant.h"

#include "base/assert.h"
#include "server/core/lifecycle.h"
#include "server/core/worker.h"
#include "server/durable/aof_hold.h"
#include "server/run/rendezvous.h"

#include <string.h>

/* Everything that points into the worker points to the right things again once it is put back. */
static void put_aside(struct worker *worker, struct execution *aside)
{
    struct execution *run = &worker->run;

    *aside = *run;
    run->access.garbage = NULL;
    run->access.ready = run->access.ready_last = NULL;
    run->access.has_noted = false; /* notes of the running command wait with it */
    run->effects = (struct effects){0};
    run->changed = (struct changed){0};
    run->scratch = (struct resp_scratch){0};
    run->keys = (struct key_list){0};
    memset(&run->stripes, 0, sizeof(run->stripes));
}

static void put_back(struct worker *worker, const struct execution *aside)
{
    struct execution *run = &worker->run;

    assert(run->effects.count == 0 && !run->access.has_noted);
    effects_fini(&run->effects);
    changed_fini(&run->changed);
    resp_scratch_fini(&run->scratch);
    key_list_fini(&run->keys);
    ARRAY_FINI(&run->stripes);
    *run = *aside;
}

void reentrant_serve(struct worker *worker)
{
    struct execution aside;

    worker_assert_inside(worker);
    assert(!worker->reentrant);
    put_aside(worker, &aside);
    worker->reentrant = true;
    if (aof_hold_is_on())
        aof_hold_turn(worker); /* sends the output so far */
    lifecycle_worker_inner_begin(worker);
    worker_serve_requests(worker);
    rendezvous_serve(worker);
    loop_serve_reentrant(worker->loop);
    lifecycle_worker_inner_turn(worker);
    worker->reentrant = false;
    put_back(worker, &aside);
}
