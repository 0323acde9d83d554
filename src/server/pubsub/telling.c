#include "server/pubsub/telling.h"

#include "base/assert.h"
#include "server/core/worker.h"
#include "server/pubsub/broadcast.h"
#include "server/pubsub/events.h"
#include "server/pubsub/monitor.h"
#include "server/pubsub/tracking.h"

COLD void telling_noted_slow(struct worker *worker)
{
    worker_assert_self(worker);
    worker->run.access.has_noted = false; /* publishing looks, too */
    monitor_tell_noted(worker);
    tracking_tell_noted(worker); /* first: an event may be what makes a client look at its copies */
    broadcast_tell_noted(worker);
    events_tell_noted(worker);
}

static void reach(struct worker *worker, struct mail *mail)
{
    worker_assert_self(worker);
    assert(!container_of(mail, struct reply_place, mail)->is_reached);
    container_of(mail, struct reply_place, mail)->is_reached = true;
}

void reply_place_open(struct reply_place *place, struct client *client)
{
    worker_assert_inside(client->worker);
    assert(client->aside == NULL && (client->flags & CLIENT_REPLY_ASIDE) == 0);
    *place = (struct reply_place){.mail = {.deliver = reach}, .client = client};
    output_init(&place->reply, loop_output_pool(client->worker->loop));
    client->aside = &place->reply;
    client->flags |= CLIENT_REPLY_ASIDE;
}

void reply_place_mark(struct reply_place *place)
{
    struct worker *worker = place->client->worker;

    worker_assert_inside(worker);
    assert(!place->is_marked);
    /* The sender of a delivery has counted it before, and has released the stripes that this worker holds now. */
    place->is_marked = atomic_load(&worker->backlog_bytes) != 0;
    if (place->is_marked)
        worker_post_quietly(worker, &place->mail);
}

void reply_place_take(struct reply_place *place, struct client *client)
{
    worker_assert_inside(client->worker);
    place->client = NULL;
    if (atomic_load(&client->worker->backlog_bytes) == 0)
        return;
    reply_place_open(place, client);
    reply_place_mark(place);
}

void reply_place_close(struct reply_place *place)
{
    struct client *client = place->client;

    if (client == NULL)
        return;
    worker_assert_outside(client->worker);
    assert(client->aside == &place->reply);
    client->aside = NULL;
    client->flags &= ~(uint32_t)CLIENT_REPLY_ASIDE;
    if (place->is_marked)
        worker_read_mail_until(client->worker, &place->is_reached);
    assert(place->is_reached == place->is_marked);
    output_splice(&client->conn.output, &place->reply);
}
